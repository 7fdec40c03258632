"""
A stream that drifts
====================

Ten attributes, two classes, and a boundary that jumps every 2,000 rows. Each row is predicted before it is learned.
The pool for attributes fuses fast and slow learners, and follows those with the fewest recent mistakes.
"""

import matplotlib.pyplot as plt
import numpy as np

import linmax

ROWS, WINDOW = 8000, 250
rng = np.random.default_rng(0)
X = rng.normal(size=(ROWS, 10))
directions = rng.normal(size=(4, 10))
y = np.einsum("ij,ij->i", X, directions[np.arange(ROWS) // 2000]) + 0.3 * rng.normal(size=ROWS) > 0

instances = linmax.instances(attributes=X)
figure, axes = plt.subplots(figsize=(8, 4.5))
for name, learner in {
    "auto (the default)": "auto",
    "Perceptron": "perceptron",
    "averaged Perceptron": "A-perceptron",
    "AROW": "arow(1)",
}.items():
    wrong = linmax.run(learner, instances, y).wrong
    axes.plot(np.convolve(wrong, np.ones(WINDOW) / WINDOW, "valid"), label=name)
    print(f"{name:20s} {wrong.mean():.3f} wrong")
axes.set(xlabel="row", title=f"error over the last {WINDOW} rows", ylim=(0, 0.6))
axes.legend()
plt.show()
