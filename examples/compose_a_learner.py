"""
Compose a learner
=================

A technique takes a learner and returns a learner, written as functions or as text. Twenty voters name one of five
classes; ten of them are informative, some abstain, one label in twenty is wrong.
"""

import matplotlib.pyplot as plt
import numpy as np

import linmax

problem = linmax.datasets.majority_problem(n=20, r=10, k=5, noise=0.05, trials=2000, seed=0)
votes = problem.votes.astype(object)
votes[np.random.default_rng(0).random(votes.shape) < 0.1] = None  # None abstains
instances = linmax.instances(votes=votes)

# Two notations for the same learner; the prefixes of text are prefixes A (average), R (recycle), V (vote).
composed = linmax.average(linmax.recycle("winnow(1.2)", s=200))
print(f"composed: {composed}, and back from text: {linmax.parse('AR(s=200)-winnow(1.2)')}\n")

for learner in ["winnow(1.2)", "A-winnow(1.2)", "R-winnow(1.2)", composed, "VR-winnow(1.2)"]:
    trace = linmax.run(learner, instances, problem.labels)
    print(f"{trace.mistakes[-1]:4d} mistakes by {learner}")

# Which rule suits the problem? Run several, follow the best so far, and vote over the hypotheses that it had.
pool = ["AR-perceptron", "AR-winnow(1.2)", "AR-alma(4)", "A-balanced-winnow(1.1)"]
trace = linmax.run(linmax.vote(linmax.combine(pool)), instances, problem.labels)
print(f"{trace.mistakes[-1]:4d} mistakes by the vote over the best of")
for member in trace.model.members:
    print(f"       {member.mistakes:4d} by {member.name}")

# %%
# The weights of the vote: the first ten voters, the informative ones, have the largest.

weights = trace.model.weights.arrays.voters
figure, axes = plt.subplots(figsize=(8, 3))
axes.bar(np.arange(1, 21), weights / weights.max(), color=["C0"] * 10 + ["C1"] * 10)
axes.set(xlabel="voter", title="weights", xticks=range(1, 21))
plt.show()
