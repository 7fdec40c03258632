"""
How few voters are enough
=========================

Every model of a jury costs money and time. After some labels, the weights say whom to ask first; how many of them
does it take?
"""

import matplotlib.pyplot as plt
import numpy as np

import linmax

jury = linmax.jury_problem(families=6, sizes=4, trials=3000, seed=1)


def table(names, rows):
    return {name: jury.votes[name][rows] for name in names}


past, new = slice(2000), slice(2000, None)
everyone = linmax.VoteFusion().fit(table(jury.votes, past), jury.labels[past])
weights = everyone.weights()
order = sorted(weights, key=weights.get, reverse=True)

sizes = [1, 2, 3, 4, 6, 8, 12, 16, 20, 24]
accuracy = []
for m in sizes:
    few = order[:m]
    fusion = linmax.VoteFusion().fit(table(few, past), jury.labels[past])
    accuracy.append(np.mean(fusion.predict(table(few, new)) == jury.labels[new]))
    print(f"{m:2d} of {len(order)} models: {accuracy[-1]:.3f}")

# %%
# A few models that fail in different ways are worth nearly as much as all; the best one alone is not.

figure, axes = plt.subplots(figsize=(8, 4))
axes.plot(sizes, accuracy, "o-")
axes.axhline(accuracy[-1], color="grey", linewidth=1, linestyle=":")
axes.set(xlabel="models asked, the heaviest first", title="accuracy on 1,000 new questions")
plt.show()
