"""
A jury of language models
=========================

Twelve models answer multiple-choice questions. Four are good, the others outvote them. `VoteFusion` predicts each
answer before it sees the right one, and learns a weight for each model.

`jury_problem` generates the answers; its models fail together, as real ones do. On the real answers of 29
models to MMLU-Pro plurality is right on 59 % of the questions, the best model on 70 %, the fusion on 73 %.
"""

import matplotlib.pyplot as plt
import numpy as np

import linmax

jury = linmax.datasets.jury_problem(trials=4000, seed=0)
fusion = linmax.VoteFusion().fit(jury.votes, jury.labels)
report = fusion.report()
print(report)

# %%
# Accuracy so far, each trial predicted before its label. `linmax.run` plays the same trials and returns every
# prediction.

said = np.array(list(jury.votes.values()))
letters = np.array(list("ABCDEFGHIJ"))
counts = np.array([(said == letter).sum(axis=0) for letter in letters])
curves = {
    "fusion": ~linmax.run("auto", linmax.instances(votes=said.T), jury.labels).wrong,
    "best model": max(said == jury.labels, key=np.mean),
    "plurality": letters[counts.argmax(axis=0)] == jury.labels,
}

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=[3, 2])
trials = np.arange(1, len(jury.labels) + 1)
for name, hits in curves.items():
    left.plot(trials, np.cumsum(hits) / trials, label=name)
left.set(ylim=(0.5, 0.85), xlabel="questions", title="accuracy so far")
left.legend()

weights = fusion.weights()
names = sorted(weights, key=weights.get)
right.barh(names, [weights[name] for name in names], color=["C1" if weights[name] < 0 else "C0" for name in names])
right.set_title("weight of each model")
plt.show()
