"""
The papers: fusion with online learners
=======================================

Mesterharm and Hsu, "Combinatorial fusion with on-line learning algorithms". The last hypothesis of a mistake-driven
rule may be a bad one. Averages, votes over saved hypotheses and recycled instances repair that.
"""

import matplotlib.pyplot as plt
import numpy as np

import linmax

problem = linmax.datasets.majority_problem(trials=2500, noise=0.05, seed=1)
train, test = slice(0, 2000), slice(2000, 2500)
votes = linmax.instances(votes=problem.votes, classes=range(5))

# %%
# Section IV: the accuracy of the last hypothesis jumps from trial to trial, that of the average does not.

figure, axes = plt.subplots(figsize=(8, 4))
for name in ["Balanced(1.2)", "A-Balanced(1.2)"]:
    model, accuracy = linmax.run(name, votes[:0], []).model, []
    for t in range(400):
        model.run(votes[t : t + 1], problem.labels[t : t + 1])
        accuracy.append(np.mean(model.predict(votes[test]) == problem.clean[test]))
    axes.plot(accuracy, label=name)
    print(f"{name} falls by up to {-np.diff(accuracy)[200:].min():.3f} in one trial")
axes.set(xlabel="trials", ylabel="accuracy on other instances")
axes.legend()
plt.show()

# %%
# Sections V and VI: votes over a random sample of hypotheses and over those saved at doubling distances, recycling,
# and all of it over 62 algorithms. Mistakes on 2,000 trials, and the error of the last hypothesis.

learners = ["Balanced(1.2)", "A-Balanced(1.2)", "V(h=30, saved=random)-Balanced(1.2)", "V-Balanced(1.2)"]
for name in [*learners, "R-Balanced(1.2)", "AR-Balanced(1.2)", "VR-combine"]:
    trace = linmax.run(name, votes[train], problem.labels[train])
    error = np.mean(trace.model.predict(votes[test]) != problem.clean[test])
    print(f"{name:36s}{trace.mistakes[-1]:4d} mistakes, last error {error:.3f}")
