"""
Linear-max in pictures
======================

How a rule for two classes learns many. Each voter has one weight. The score of a class is the sum of the weights of
its voters; the highest score wins. After a mistake, voters of the right class move up and voters of the wrong one that
won move down: one step of the two-class rule on the difference z.
"""

import matplotlib.pyplot as plt
import numpy as np

import linmax

voters, classes = ["ann", "ben", "cas", "dee"], ["cat", "dog", "fox"]
trials = [
    (["cat", "dog", "dog", "fox"], "cat"),
    (["dog", "dog", "fox", "fox"], "dog"),
    (["fox", "cat", "cat", "dog"], "fox"),
]

figure, rows = plt.subplots(len(trials), 3, figsize=(9.5, 7), sharex="col")
learner = linmax.Learner("winnow(1.5)", thresholds=False, classes=classes)
for (vote, score, step), (votes, label) in zip(rows, trials, strict=True):
    said = dict(zip(voters, votes, strict=True))
    scores = learner.scores(votes=said)
    answer = max(scores, key=scores.get)
    before = dict(learner.weights["voters"]) if learner.trials else dict.fromkeys(voters, 1.0)
    learner.learn(votes=said, label=label)
    after = dict(learner.weights["voters"])

    vote.barh(voters, [before[v] for v in voters], color=[f"C{classes.index(said[v])}" for v in voters])
    for place, voter in enumerate(voters):
        vote.text(0.04, place, f"{voter} says {said[voter]}", va="center", color="white")
    score.barh(classes, [scores[c] for c in classes], color=[f"C{i}" for i in range(3)])
    score.text(0.04, classes.index(answer), "predicted", va="center", color="white")
    score.text(scores[label] + 0.05, classes.index(label), "right", va="center")
    step.barh(voters, [np.log(after[v] / before[v]) for v in voters], color="grey")
    for axes in (vote, score, step):
        axes.invert_yaxis()
        axes.tick_params(left=False)
    vote.set_yticks([])
    step.axvline(0, color="black", linewidth=0.8)
    step.set_xlim(-0.5, 0.5)
    score.set_xlim(0, 2.7)
    if after == before:
        step.text(0, 1.5, "right: no step", ha="center", va="center")
rows[0][0].set_title("weights and votes")
rows[0][1].set_title("sum for each class")
rows[0][2].set_title("step of the weights (log)")
plt.show()

print(learner.weights["voters"])
print(f"{learner.mistakes} mistakes in {learner.trials} trials")
