"""
A table with few frauds
=======================

A table of payments: numbers, categories, missing values, and a class with about 1 % of the rows. Accuracy says nothing
here, since "never fraud" is right 99 % of the time. What counts is which payments are worth a check.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import linmax

# %%
# The payments are synthetic. Fraud is more frequent at night, abroad, and with new cards; a third of the ages of cards
# is unknown.

ROWS = 24_000
rng = np.random.default_rng(0)
payments = pd.DataFrame(
    {
        "amount": rng.lognormal(3.5, 1.0, ROWS).round(2),
        "hour": rng.integers(0, 24, ROWS),
        "country": rng.choice(["home", "near", "far"], ROWS, p=[0.8, 0.15, 0.05]),
        "card_age": rng.exponential(900.0, ROWS).round(),
    }
)
night = (payments.hour < 6).to_numpy()
risk = -6.8 + 2.0 * night + 3.0 * (payments.country == "far") + 0.8 * np.log(payments.amount / 30.0)
risk += 2.5 * (payments.card_age < 60)
fraud = rng.random(ROWS) < 1.0 / (1.0 + np.exp(-risk.to_numpy()))
labels = np.where(fraud, "fraud", "fine")
payments.loc[rng.random(ROWS) < 0.3, "card_age"] = np.nan
past, new = slice(0, 16_000), slice(16_000, None)
print(f"{fraud.mean():.2%} of {ROWS:,} payments are fraud")

# %%
# The table goes in as it is: text is a category, and what is missing is left out.

model = linmax.LinearMaxClassifier().fit(payments[past], labels[past])
chance = model.predict_proba(payments[new])[:, model.classes_.tolist().index("fraud")]
print(f"stated: {chance.mean():.2%} frauds; there are {fraud[new].mean():.2%}")

# %%
# A check costs 4, and a missed fraud 100. So a payment is worth a check from a probability of 4 % on. The probabilities
# are calibrated, so the cheapest threshold found afterwards is near.

CHECK, MISSED = 4.0, 100.0
thresholds = np.geomspace(0.002, 0.5, 60)
costs = [CHECK * (chance > t).sum() + MISSED * (fraud[new] & (chance <= t)).sum() for t in thresholds]
checked = chance > CHECK / MISSED
print(f"{checked.sum():,} checks find {fraud[new][checked].sum()} of {fraud[new].sum()} frauds")

figure, axes = plt.subplots(figsize=(8, 4))
axes.semilogx(thresholds, costs)
axes.axvline(CHECK / MISSED, linestyle="--", color="#555555", label="check / missed fraud")
axes.axhline(MISSED * fraud[new].sum(), linestyle=":", color="#555555", label="no checks")
axes.set(xlabel="checked from this probability on", title="cost of 8,000 payments")
axes.legend()

# %%
# Are stated probabilities right? Groups of payments with about the same probability, from safe to risky:

order = np.argsort(chance)
groups = np.array_split(order, 12)
stated, found = ([values[group].mean() for group in groups] for values in (chance, fraud[new]))
figure, axes = plt.subplots(figsize=(5, 4))
axes.loglog(stated, np.maximum(found, 1e-4), "o")
axes.loglog([1e-3, 0.3], [1e-3, 0.3], color="#555555", linewidth=1)
axes.set(xlabel="stated probability", title="share of frauds")
plt.show()

# %%
# Labels keep arriving, and the model keeps learning, here in batches of a day. ``class_weight="balanced"`` would raise
# the recall of ``predict`` instead; for decisions by cost the probabilities are enough.

for begin in range(16_000, ROWS, 2_000):
    day = slice(begin, begin + 2_000)
    chance = model.predict_proba(payments[day])[:, model.classes_.tolist().index("fraud")]
    checked = chance > CHECK / MISSED
    cost = CHECK * checked.sum() + MISSED * (fraud[day] & ~checked).sum()
    print(f"{checked.sum():4d} checks, cost {cost:6,.0f}; without checks {MISSED * fraud[day].sum():6,.0f}")
    model.partial_fit(payments[day], labels[day])
