"""
The papers: from two classes to many
====================================

Mesterharm (2001), "Transforming linear-threshold learning algorithms into multi-class linear learning algorithms". A
sub-expert rates every class; its weight is learned by any rule for two classes, from z = x(label) - x(rival).
"""

import matplotlib.pyplot as plt
import numpy as np

import linmax
from linmax import theory

problem = linmax.datasets.majority_problem(trials=1500, seed=1)  # 20 voters, 5 classes, 10 voters matter
votes = linmax.instances(votes=problem.votes, classes=range(5))

# %%
# Section 4: Perceptron, WMA and quasi-additive rules, each over five classes. The curves count mistakes.

figure, axes = plt.subplots(figsize=(8, 4))
for rule in ["perceptron", "WMA(1.1)", "quasi-additive(sinh, rate=0.1)", "p-norm(3)"]:
    mistakes = linmax.run(rule, votes, problem.labels).mistakes
    axes.plot(mistakes, label=f"{rule}: {mistakes[-1]}")
axes.set(xlabel="trials", ylabel="mistakes")
axes.legend()
plt.show()

# %%
# Section 3: the bound of the rule for two classes holds. The certificate seeks the best comparator for these trials.

certificate = theory.certify(votes, problem.labels, "winnow(1.02)")
print(f"winnow(1.02): {certificate.mistakes} mistakes, bound {certificate.bound:.0f}")

# %%
# Section 5: a linear machine over attributes, alone or with voters.

ratings = np.eye(5)[problem.votes].reshape(1500, -1)  # the same votes as 100 attributes: five weights for each
machine = linmax.instances(attributes=ratings, classes=range(5))
print(f"voters: {linmax.run('perceptron', votes, problem.labels).mistakes[-1]} mistakes")
print(f"attributes: {linmax.run('perceptron', machine, problem.labels).mistakes[-1]} mistakes")

# %%
# Section 6: sub-experts and classes may be new at any trial.

learner = linmax.Learner("winnow(1.1)")
for t, (row, label) in enumerate(zip(problem.votes.tolist(), problem.labels.tolist(), strict=True)):
    joined = row[: 5 + t // 50]  # five voters at first, one more every 50 trials
    learner.learn(votes={f"voter {i}": vote for i, vote in enumerate(joined)}, label=label)
print(f"{len(learner.weights['voters'])} voters, {len(learner.classes)} classes, {learner.mistakes} mistakes")
