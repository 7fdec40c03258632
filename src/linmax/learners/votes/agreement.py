"""What rows without a label teach: how far each voter is to be trusted, from how voters agree with each other.

Let r_ij be the correlation of the votes of i and j beyond what their habits explain, how often each names each class.
If voters agree because they are right, r_ij = a_i a_j, where a_i is the correlation of voter i with the truth (the
model of Dawid and Skene with one number a voter; the rank-one form is that of Parisi et al.). Here

    a_i = median over j of r_ij / a_j,

weighted by how often the two spoke together, so that a clique that copies itself deceives only itself as long as most
voters are outside. A voter who always names the same class tells nothing and keeps the trust of an average one. Where
voters do not agree beyond chance, agreement tells nothing of any of them; and what sets one apart from the others
counts as far as it is more than chance explains (empirical Bayes: a_i is drawn to the mean of all).

Trust is the fifth power of the log-odds of the accuracy that a_i means. Were errors independent, the log-odds
themselves would be best, and the power costs little; as a rule voters err together, on the same hard instances, and
then the best ones are worth much more than their log-odds say. Trust in a voter who was compared with few others, or
with others who always say the same, stays near that of plurality.

References
----------
Dawid and Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm. Parisi, Strino,
Nadler and Kluger (2014), Ranking and combining multiple predictors without labeled data.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linmax.jit.compiling import kernel
from linmax.learners.base import Field

__all__ = ["AGREEMENT_FIELDS", "CREDIT", "DUE", "LIMIT", "REST", "ROWS", "fit_trust", "note_row"]

FIRST = 10  # the row of the first fit; each later one comes after half as many rows again
HALVING_ROWS = 16_384  # rows at which all counts are halved, so that voters who change are followed
USUAL = 0.3  # correlation with the truth of a voter of whom nothing is known
PRIOR = 10.0  # rows that this counts for, with each other voter
MEDIAN_ROUNDS = 20  # of the medians
LEAST, HIGHEST, LOWEST = 0.1, 0.98, -0.9  # bounds on correlations
POWER = 5.0
CONVINCED = 100.0  # rows after which trust is half agreement and half plurality, for a voter who was often compared
COMPANY = 2.0  # others with whom a voter must be compared for half of that
AGREED = 4.0  # standard errors by which voters must agree beyond chance for half of it
SHRINKAGE = 3.0  # times the variance of chance by which a correlation with the truth is drawn to the mean
STRENGTH = 6.0  # sum of the weights of those who speak in an average row

ROWS, DUE, CREDIT, LIMIT, REST = range(5)  # of `numbers`


# Counts over rows without a label, of all voters or, where these are not compared, of none.
AGREEMENT_FIELDS = {
    "together": Field(("compared", "compared")),  # rows in which both voted
    "agreed": Field(("compared", "compared")),  # likewise: and named the same class
    "habits": Field(("compared", "voted class")),  # votes for each class
    "trust": Field((2, "compared"), [[0.0], [1.0]], ""),  # the weight of each voter as of the last fit, and by how much
    # of its usual weight it is to be completed
    "numbers": Field((5,), [0.0, FIRST, 0.0, 0.0, 1.0], ""),  # rows, those at the next fit; what the logit was credited
    # with, of how much at most; and how much of its usual weight the share of votes keeps
}


@kernel()
def note_row(pool: Any, known: int) -> None:
    """Count how the voters of a row agree."""
    row, signs, together, agreed, speakers, count = pool.row, pool.signs, pool.together, pool.agreed, pool.chain[0], 0
    for i in range(row.size):
        if 0 <= row[i] < known and signs[i] == 1.0:
            pool.habits[i, row[i]] += 1.0
            speakers[count] = i
            count += 1
    for a in range(count):
        i = speakers[a]
        for b in range(a):
            j = speakers[b]
            same = 1.0 if row[i] == row[j] else 0.0
            together[i, j] += 1.0
            together[j, i] += 1.0
            agreed[i, j] += same
            agreed[j, i] += same
    pool.numbers[ROWS] += 1.0


def correlations(agreement: Any, known: int) -> tuple[np.ndarray, np.ndarray]:
    """How far every two voters agree beyond what their habits explain, and in how many rows that could have shown."""
    chance = 1.0 / known
    habits = agreement.habits[:, :known]
    shares = habits / np.maximum(habits.sum(axis=1, keepdims=True), 1.0)
    spread = np.sqrt(np.maximum(0.0, 1.0 - (shares**2).sum(axis=1)) / (1.0 - chance))
    beyond = (agreement.agreed - agreement.together * (shares @ shares.T)) / (1.0 - chance)
    weight = agreement.together * np.outer(spread, spread)
    for table in (beyond, weight):
        np.fill_diagonal(table, 0.0)
    return beyond, weight


def competence(table: np.ndarray, heard: np.ndarray) -> np.ndarray:
    """The correlation of each voter with the truth."""
    found, total, rows = np.full(len(table), 0.5), heard.sum(axis=1), np.arange(len(table))[:, None]
    for _ in range(MEDIAN_ROUNDS):
        ratios = table / np.maximum(found, LEAST)
        order = np.argsort(ratios, axis=1, kind="stable")
        below = np.cumsum((heard * np.maximum(found, 0.5 * LEAST))[rows, order], axis=1)
        middle = (below < 0.5 * below[:, -1:]).sum(axis=1)
        medians = ratios[rows[:, 0], order[rows[:, 0], middle]]
        found = 0.5 * found + 0.5 * np.clip((total * medians + USUAL) / (total + 1.0), LOWEST, HIGHEST)
    return found


def drawn_together(found: np.ndarray, noise: np.ndarray, told: np.ndarray) -> np.ndarray:
    """The correlations of those who were compared, drawn to their mean as far as chance explains the differences."""
    compared = told > 0.5
    if compared.sum() < 2:
        return found
    weight = 1.0 / (noise[compared] + 0.01)
    mean = float(weight @ found[compared] / weight.sum())
    apart = max(0.0, float(weight @ ((found[compared] - mean) ** 2 - noise[compared]) / weight.sum()))
    return np.where(compared, mean + (found - mean) * apart / (apart + SHRINKAGE * noise + 1e-12), found)


def fit_trust(agreement: Any, known: int) -> None:
    """What agreement tells of the weights of voters and of the share of votes."""
    rows = float(agreement.numbers[ROWS])
    beyond, weight = correlations(agreement, known)
    heard = weight / (weight + PRIOR)
    found, told = competence((beyond + PRIOR * USUAL**2) / (weight + PRIOR), heard), heard.sum(axis=1)
    noise = 1.0 / np.maximum((known - 1) * (weight @ found**2), 1e-9)
    found = drawn_together(found, noise, told)
    errors = max(0.0, float(beyond.sum())) / math.sqrt(max(float(weight.sum()) * 2.0 / (known - 1), 1e-12))
    right = np.clip(1.0 / known + (1.0 - 1.0 / known) * found, 0.02, 0.98)
    odds = np.log(right / (1.0 - right) * (known - 1))
    weights = np.copysign(np.abs(odds) ** POWER, odds)
    votes = agreement.habits.sum(axis=1)
    sure = rows**2 / (rows**2 + CONVINCED**2) * told / (told + COMPANY) * errors**2 / (errors**2 + AGREED**2)
    unit = STRENGTH * rows / max(float(votes @ np.abs(weights)), 1e-12)
    agreement.trust[0] = sure * unit * weights
    agreement.trust[1] = 1.0 - sure
    agreement.numbers[REST] = 1.0 - float(votes @ sure) / max(float(votes.sum()), 1.0)
    agreement.numbers[DUE] += max(1.0, rows // 2.0)
    if rows >= HALVING_ROWS:
        for counts in (agreement.together, agreement.agreed, agreement.habits):
            counts *= 0.5
        agreement.numbers[[ROWS, DUE]] = 0.5 * rows, 0.75 * rows
