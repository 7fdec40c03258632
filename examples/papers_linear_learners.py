"""
The papers: additive and multiplicative updates
===============================================

The notes on linear learners: Perceptron and Winnow, what each is good at, and from mistakes to PAC.
"""

import matplotlib.pyplot as plt
import numpy as np

from linmax import features, theory
from linmax.theory import adversaries, bounds, conversion

# %%
# Section 7: one relevant attribute of n, orthogonal instances. The Perceptron needs n mistakes, Winnow log n.

sizes = [2**i for i in range(3, 10)]
counts = {rule: [] for rule in ("perceptron", "winnow(2)")}
for n in sizes:
    for rule, updates in counts.items():
        learner = theory.LinearThreshold(rule, labels=(-1, 1))
        updates.append(learner.run(adversaries.sparse_target(n), np.ones(n, int)).changed.sum())
figure, axes = plt.subplots(figsize=(8, 4))
for rule, updates in counts.items():
    axes.loglog(sizes, updates, "o-", label=rule)
    print(f"{rule}: {updates[-1]} updates with {sizes[-1]} attributes")
axes.set(xlabel="attributes", ylabel="updates")
axes.legend()
plt.show()

# %%
# Sections 2 and 6: XOR of the first two of ten attributes is a disjunction of two conjunctions of literals.

random = np.random.default_rng(0)
x = random.integers(0, 2, (3000, 10)).astype(float)
y = (x[:, 0] != x[:, 1]).astype(int)
conjunctions, terms = features.conjunctions(x, 2, negated=True)
for rule in [f"winnow(2, threshold={len(terms)})", "elimination"]:
    learner = theory.LinearThreshold(rule, labels=(0, 1))
    learner.run(conjunctions, y)
    print(f"{rule}: {learner.mistakes} mistakes; weights: {sorted(terms[i] for i in np.argsort(-learner.weights)[:2])}")
print(f"bound of Winnow: {bounds.winnow2_disjunction(k=2, n=len(terms)):.0f}")

# %%
# Section 9: the first hypothesis that survives long enough has error at most .05 with probability .95.

examples = iter(zip(conjunctions, y, strict=True))
learner = theory.LinearThreshold(f"winnow(2, threshold={len(terms)})", labels=(0, 1))
found = conversion.first_survivor(learner, examples, error=0.05, failure=0.05)
print(f"found after {found.examples} examples, error {np.mean(found.hypothesis.predict(conjunctions) != y):.3f}")
