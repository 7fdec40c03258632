"""Bins of numbers as features, and Winnow over their conjunctions within its bound."""

from __future__ import annotations

import numpy as np
import pytest
from linmax.features import bins, conjunctions

import linmax


@pytest.mark.small
def test_bins_of_quantiles_and_of_few_values() -> None:
    rows = np.column_stack([np.arange(100.0), np.arange(100) % 3])
    features, binning = bins(rows, 4, names=["n", "c"])
    assert features.shape == (100, 7)
    assert features.sum(axis=0).tolist() == [25, 25, 25, 25, 34, 33, 33]
    assert binning.names == (
        "n < 25", "25 <= n < 50", "50 <= n < 75", "n >= 75", "c < 0.5", "0.5 <= c < 1.5", "c >= 1.5",
    )  # fmt: skip
    later, same = bins([[-5.0, 2.0], [1000.0, 0.0]], like=binning)
    assert same is binning
    assert later.indices.tolist() == [0, 6, 3, 4]


@pytest.mark.small
def test_what_cannot_be_cut() -> None:
    _, binning = bins([[1.0], [2.0]])
    with pytest.raises(ValueError, match="x must be finite, got nan in row 0, column 1; replace it"):
        bins([[1.0, np.nan]])
    with pytest.raises(ValueError, match="x must have 1 columns as the table cut before, got 2"):
        bins([[1.0, 2.0]], like=binning)
    with pytest.raises(ValueError, match="names must have one name for each of the 2 columns of x, got 1"):
        bins([[1.0, 2.0]], names=["a"])


def test_winnow_over_pairs_of_bins_keeps_its_bound() -> None:
    """A rectangle among many attributes: one pair of bins of each, whatever the others are."""
    random = np.random.default_rng(0)
    rows = random.integers(0, 4, (1500, 8)).astype(float)
    literals, binning = bins(rows, 4)
    features, terms = conjunctions(literals, 2, names=binning.names)
    labels = ((rows[:, 0] == 1) & (rows[:, 1] == 2)) | ((rows[:, 2] == 0) & (rows[:, 3] == 3))
    machine = linmax.LinearThreshold(linmax.rules.winnow(2, threshold=len(terms)))
    machine.run(features, labels)
    assert machine.mistakes <= 2 + 3 * 2 * (1 + np.log2(len(terms)))
