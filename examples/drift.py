"""
A stream that drifts
====================

Ten attributes, two classes, and a boundary that jumps every 2,000 rows: a market, a sensor, a campaign. Nobody says
when. A model that was fitted once is soon wrong; one that learns every row follows.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import linmax

ROWS, WINDOW = 8000, 250
rng = np.random.default_rng(0)
X = rng.normal(size=(ROWS, 10))
directions = rng.normal(size=(4, 10))
y = np.einsum("ij,ij->i", X, directions[np.arange(ROWS) // 2000]) + 0.3 * rng.normal(size=ROWS) > 0

# %%
# Each row is predicted before it is learned, so the error is that on new data. The default learner, a pool, fuses
# members that follow change with steady ones, and trusts those with the least recent loss.

recent = np.ones(WINDOW) / WINDOW
instances = linmax.instances(attributes=X)
figure, axes = plt.subplots(figsize=(8, 4.5))
errors = {}
for name, learner in {
    "auto (the default)": "auto",
    "Perceptron": "perceptron",
    "averaged Perceptron": "A-perceptron",
    "AROW": "arow(1)",
}.items():
    wrong = linmax.run(learner, instances, y).wrong
    errors[name] = np.convolve(wrong, recent, "valid")
    axes.plot(errors[name], label=name)
    print(f"{name:20s} {wrong.mean():.3f} wrong")
axes.set(xlabel="row", title=f"error over the last {WINDOW} rows", ylim=(0, 0.6))
axes.legend()

# %%
# A model that was fitted to the first 2,000 rows and then left alone:

fitted = linmax.LinearMaxClassifier().fit(X[:2000], y[:2000])
stale = np.convolve(fitted.predict(X[2000:]) != y[2000:], recent, "valid")
figure, axes = plt.subplots(figsize=(8, 3.5))
axes.plot(errors["auto (the default)"], label="learns every row")
axes.plot(np.arange(2000, 2000 + len(stale)), stale, label="fitted once, to the first 2,000 rows")
axes.set(xlabel="row", title=f"error over the last {WINDOW} rows", ylim=(0, 0.8))
axes.legend()
plt.show()

# %%
# In production rows come one at a time, labels later, and the process restarts. `Learner` keeps each instance under its
# id until the label is there; a model that was saved continues with the same bits. When the error of the last rows is
# well above that of all rows, something has changed, which deserves a message even if the model follows.

learner, alarms, wrong = linmax.Learner(), [], []
file = Path(tempfile.mkdtemp()) / "model.linmax"
for t, (row, label) in enumerate(zip(X[:4500].tolist(), y[:4500].tolist(), strict=True)):
    answer = learner.predict(row, id=t)
    learner.learn(id=t, label=label)  # here at once; usually later
    wrong.append(answer != label)
    if t == 1000:
        learner.save(file)
        learner = linmax.Learner.load(file)
    if t > 500 and np.mean(wrong[-50:]) > np.mean(wrong) + 0.2 and (not alarms or t > alarms[-1] + 500):
        alarms.append(t)
print(f"the boundary jumped at 2000 and 4000; alarms at {alarms}")
