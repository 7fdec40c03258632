"""
A jury that changes half-way
============================

Models are replaced behind their names, prompts are edited, a provider has a bad week. Here the voters are permuted
half-way: the best gets the answers of the worst, the second best those of the second worst, and so on. The old weights
are then worse than none. The pool for votes mixes memories of several lengths and follows those that were right
recently.
"""

import matplotlib.pyplot as plt
import numpy as np

import linmax

TRIALS, WINDOW = 4000, 200
jury = linmax.datasets.jury_problem(trials=TRIALS, seed=0)
ranked = sorted(jury.votes, key=lambda name: -np.mean(jury.votes[name] == jury.labels))
half = TRIALS // 2
votes = np.array([jury.votes[name] for name in ranked]).T  # a column for each voter, the best first
votes[half:] = votes[half:, ::-1]
instances = linmax.instances(votes=votes)

learners = {
    "auto (the default)": "auto",
    "VR-Combine of the papers": "VR-combine",
    "logit, all of the past": "softmax(10)",
}
figure, axes = plt.subplots(figsize=(8, 4.5))
for name, learner in learners.items():
    wrong = linmax.run(learner, instances, jury.labels).wrong
    axes.plot(np.convolve(wrong, np.ones(WINDOW) / WINDOW, "valid"), label=name)
    print(f"{name:26s} error in the 500 trials after the change {wrong[half : half + 500].mean():.3f}", end="")
    print(f", in the whole second half {wrong[half:].mean():.3f}")
axes.axvline(half, color="grey", linewidth=1)
axes.set(
    xlabel="trial", title=f"error over the last {WINDOW} trials; at trial {half} the voters change places", ylim=(0, 1)
)
axes.legend()
plt.show()
