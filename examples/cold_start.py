"""
Accuracy after few labels
=========================

Without labels, plurality is the best rule. A fusion that overfits its first labels is worse than plurality at first.
The default pool starts as plurality and departs from it as labels accumulate.
"""

import matplotlib.pyplot as plt
import numpy as np

import linmax

LABELS = [1, 3, 10, 30, 100, 300, 1000]
JURIES = 5


def table(votes, rows):
    return {name: column[rows] for name, column in votes.items()}


def plurality(votes):
    said = np.array(list(votes.values()))
    counts = np.array([(said == letter).sum(axis=0) for letter in "ABCDEFGHIJ"])
    return np.array(list("ABCDEFGHIJ"))[counts.argmax(axis=0)]


found = {"linmax (auto)": [], "conditional logit, ridge 10": [], "best model so far": [], "plurality": []}
for seed in range(JURIES):
    jury = linmax.datasets.jury_problem(trials=2000, seed=seed)
    test, truth = table(jury.votes, slice(1000, None)), jury.labels[1000:]
    rows = {name: [] for name in found}
    for n in LABELS:
        past, seen = table(jury.votes, slice(n)), jury.labels[:n]
        for name, learner in [("linmax (auto)", "auto"), ("conditional logit, ridge 10", "softmax(10)")]:
            fusion = linmax.VoteFusion(learner, classes=list("ABCDEFGHIJ")).fit(past, seen)
            rows[name].append(np.mean(fusion.predict(test) == truth))
        best = max(past, key=lambda name: np.mean(past[name] == seen))
        rows["best model so far"].append(np.mean(test[best] == truth))
        rows["plurality"].append(np.mean(plurality(test) == truth))
    for name, accuracies in rows.items():
        found[name].append(accuracies)

# %%
# Accuracy on 1,000 questions that were never learned from; the mean of five juries, and the worst.

figure, axes = plt.subplots(figsize=(8, 4.5))
for number, (name, accuracies) in enumerate(found.items()):
    axes.plot(LABELS, np.mean(accuracies, axis=0), "o-", color=f"C{number}", label=name)
    axes.plot(LABELS, np.min(accuracies, axis=0), ":", color=f"C{number}")
axes.set(xscale="log", xlabel="labels seen", title="accuracy on new questions (dotted: the worst of five juries)")
axes.legend()
plt.show()

print(f"{'labels':28s}" + "".join(f"{n:7d}" for n in LABELS))
for name, accuracies in found.items():
    print(f"{name:28s}" + "".join(f"{a:7.3f}" for a in np.mean(accuracies, axis=0)))
