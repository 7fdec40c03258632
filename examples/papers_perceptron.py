"""
The papers: the multi-class Perceptron
======================================

The slides on the multi-class Perceptron: cycle through separable points until none is misclassified. There are at
most (R / gamma)^2 violations, R the largest length of a point, gamma the largest margin.
"""

import matplotlib.pyplot as plt
import numpy as np

import linmax
from linmax.theory.certificates import multiclass_margin

random = np.random.default_rng(2)
points = random.normal(size=(400, 2))
rated = points @ np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])  # what three vectors rate each point
order = np.sort(rated, axis=1)
clear = order[:, 2] - order[:, 1] > 0.3  # a margin
points, labels = points[clear], rated[clear].argmax(axis=1) + 1

# %%
# The algorithm: passes over the points; ties go to the smaller label, and a right tie is no violation.

instances = linmax.instances(attributes=points, thresholds=False)
trace = linmax.run("perceptron", instances, labels, passes=200, update_on_tie=False)
print(f"{trace.changed.sum()} violations, consistent: {trace.consistent}")

# %%
# The margin of the vectors found, the largest one, and the theorem.

best = multiclass_margin(points, labels)
print(f"margin {trace.model.margin(instances, labels):.4f}, largest {best.gamma:.4f}")
print(f"bound R^2 / gamma^2: {best.bound:.0f} violations")

# %%
# The regions of the three vectors: three rays.

x, y = np.meshgrid(np.linspace(-3.5, 3.5, 200), np.linspace(-3.5, 3.5, 200))
plane = linmax.instances(attributes=np.c_[x.ravel(), y.ravel()], thresholds=False)
figure, axes = plt.subplots(figsize=(5, 5))
axes.contourf(x, y, trace.model.predict(plane).astype(float).reshape(x.shape), levels=[0.5, 1.5, 2.5, 3.5], alpha=0.3)
for label in (1, 2, 3):
    axes.plot(*points[labels == label].T, ".", label=f"label {label}")
axes.legend()
plt.show()
