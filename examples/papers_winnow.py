"""
The papers: irrelevant features
===============================

The lecture on irrelevant features and Winnow: the majority of k of n experts. The Perceptron makes at most n k
mistakes, Winnow 2 k^2 ln n; on disjunctions Winnow makes at most 2 + 3 k (1 + lg n).
"""

import matplotlib.pyplot as plt
import numpy as np

from linmax import theory
from linmax.theory import bounds

k, delta = 5, 1 / 5
alpha = ((1 + delta) / (1 - delta)) ** 0.5  # the best for a margin of delta

# %%
# Sections 1 and 2.1: mistakes as irrelevant experts are added, and the bounds.

sizes = [15, 50, 150, 500, 1500]
mistakes = {"perceptron": [], f"winnow({alpha!r})": []}
for n in sizes:
    experts = np.random.default_rng(0).choice([-1.0, 1.0], (3000, n))
    right = np.where(experts[:, :k].sum(axis=1) > 0, 1, -1)
    for rule, counts in mistakes.items():
        counts.append(theory.LinearThreshold(rule, labels=(-1, 1)).run(experts, right).mistakes[-1])
figure, axes = plt.subplots(figsize=(8, 4))
for counts, name in zip(mistakes.values(), ["Perceptron", "Winnow"], strict=True):
    axes.loglog(sizes, counts, "o-", label=name)
    print(f"{name}: {counts[0]} mistakes with {sizes[0]} experts, {counts[-1]} with {sizes[-1]}")
axes.loglog(sizes, [bounds.perceptron(n**0.5, 1.0, k**-0.5) for n in sizes], ":", color="C0", label="n k")
axes.loglog(sizes, [2 * k**2 * np.log(n) for n in sizes], ":", color="C1", label="2 k^2 ln n")
axes.set(xlabel="experts", ylabel="mistakes")
axes.legend()
plt.show()

# %%
# The bound holds for Winnow without a threshold. The algorithm as printed there, with threshold n on 0/1 experts, may
# err for ever on majorities: with beta = 1 no weights suit the threshold for long.

experts = np.random.default_rng(0).integers(0, 2, (20_000, 15)).astype(float)
right = (experts[:, :k].sum(axis=1) > k / 2).astype(int)
for beta in (1, 0.5):
    learner = theory.LinearThreshold(f"winnow(beta={beta}, threshold=15)", labels=(0, 1))
    learner.run(experts, right)
    print(f"as printed, beta = {beta}: {learner.mistakes} mistakes")

# %%
# Section 2.2: disjunctions, for which beta = 1 does have a bound.

right = experts[:, :k].any(axis=1).astype(int)
learner = theory.LinearThreshold("winnow(beta=1, threshold=15)", labels=(0, 1))
learner.run(experts, right)
print(f"disjunction: {learner.mistakes} mistakes, bound {bounds.winnow2_disjunction(k, 15):.0f}")
