"""
Sparse text, compared with Vowpal Wabbit
========================================

Four thousand short documents of ten topics, as lines of Vowpal Wabbit's text. `linmax.stream` reads them; the default
learner has no parameters to tune. The same lines were given to Vowpal Wabbit 9.11.9 with each of three losses, once, by

    vw --oaa 10 -b 22 --loss_function squared -d docs.vw -P 500

and its progressive error is drawn for comparison. Both predict each line before they learn it, in one pass.
"""

import matplotlib.pyplot as plt
import numpy as np

import linmax


def documents(rows=4000, words=3000, topics=10, seed=0):
    """Words are drawn by Zipf's law, each topic with a taste of its own."""
    rng = np.random.default_rng(seed)
    taste = np.exp(rng.normal(0, 1, size=(topics, words))) / np.arange(1, words + 1)
    taste /= taste.sum(axis=1, keepdims=True)
    for topic in rng.integers(topics, size=rows):
        drawn = rng.choice(words, size=rng.integers(10, 40), p=taste[topic])
        counts = zip(*np.unique(drawn, return_counts=True), strict=True)
        yield f"{topic + 1} | " + " ".join(f"w{word}:{n}" if n > 1 else f"w{word}" for word, n in counts)


VOWPAL_WABBIT = {
    "squared": [0.2580, 0.1730, 0.1347, 0.1185, 0.1040, 0.0957, 0.0877, 0.0850],
    "logistic": [0.2980, 0.2050, 0.1580, 0.1335, 0.1176, 0.1057, 0.0966, 0.0928],
    "hinge": [0.2600, 0.1820, 0.1413, 0.1230, 0.1088, 0.1007, 0.0926, 0.0900],
}

lines = list(documents())
print(lines[0][:100], "...")

figure, axes = plt.subplots(figsize=(8, 4.5))
for learner in ["auto", "perceptron"]:
    model = linmax.StreamModel(learner)
    error = []
    for batch in linmax.stream(lines, format="vw", rows=500):
        model.learn(batch)
        error.append(model.mistakes / model.trials)
    axes.plot(500 * np.arange(1, 9), error, "o-", label=f"linmax, {learner}")
    print(f"linmax, {learner}: {error[-1]:.4f} of {model.trials} wrong")
for loss, error in VOWPAL_WABBIT.items():
    axes.plot(500 * np.arange(1, 9), error, "s:", label=f"Vowpal Wabbit, {loss}")
    print(f"Vowpal Wabbit, {loss}: {error[-1]:.4f}")
axes.set(xlabel="lines", title="error so far", ylim=(0, 0.5))
axes.legend()
plt.show()
