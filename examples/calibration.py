"""
Calibrated probabilities
========================

Answers with a probability of 80 % should be right in 80 of 100 cases. `VoteFusion` fits its probabilities to scores
computed before their labels were seen, so they are calibrated on new questions too.
"""

import matplotlib.pyplot as plt
import numpy as np

import linmax

jury = linmax.datasets.jury_problem(trials=5000, seed=2)


def table(rows):
    return {name: votes[rows] for name, votes in jury.votes.items()}


past, new = slice(2500), slice(2500, None)
fusion = linmax.VoteFusion().fit(table(past), jury.labels[past])
probabilities = fusion.predict_proba(table(new))
says = probabilities.max(axis=1)
right = fusion.classes_[probabilities.argmax(axis=1)] == jury.labels[new]
shares = np.array(
    [
        np.mean([votes[t] == answer for votes in table(new).values()])
        for t, answer in enumerate(fusion.predict(table(new)))
    ]
)

bins = np.linspace(0, 1, 11)


def reliability(confidence):
    """Mean confidence, accuracy and size of each bin."""
    place = np.clip(np.digitize(confidence, bins) - 1, 0, 9)
    return np.array(
        [(confidence[place == b].mean(), right[place == b].mean(), (place == b).sum()) for b in np.unique(place)]
    )


figure, axes = plt.subplots(figsize=(5.5, 5))
axes.plot([0, 1], [0, 1], color="grey", linewidth=1)
for name, confidence in [("probability of the fusion", says), ("share of votes for its answer", shares)]:
    said, held, count = reliability(confidence).T
    error = np.sum(count * np.abs(said - held)) / count.sum()
    axes.plot(said, held, "o-", label=f"{name} (off by {error:.3f})")
    print(f"{name}: expected calibration error {error:.3f}")
axes.set(xlabel="probability", ylabel="accuracy", title="2,500 new questions")
axes.legend()
plt.show()

# %%
# Where one answer is too uncertain, `predict_set` returns a set that contains the right one with a given probability.
# Sets are small where the models agree.

figure, (left, right_side) = plt.subplots(1, 2, figsize=(9, 3.6))
wanted = [0.8, 0.85, 0.9, 0.95]
covered, sizes = [], []
for coverage in wanted:
    sets = fusion.predict_set(table(new), coverage=coverage)
    covered.append(np.mean([label in found for label, found in zip(jury.labels[new], sets, strict=True)]))
    sizes.append([len(found) for found in sets])
    print(f"sets for {coverage:.0%} hold the right answer in {covered[-1]:.3f}, {np.mean(sizes[-1]):.2f} answers each")
left.plot([0.75, 1], [0.75, 1], color="grey", linewidth=1)
left.plot(wanted, covered, "o-")
left.set(xlabel="requested coverage", ylabel="observed coverage", title="coverage on new questions")
right_side.hist(sizes[2], bins=np.arange(-0.5, 11), rwidth=0.8)
right_side.set(xlabel="answers in a set", title="sets for 90 %")
plt.show()
