"""Members of the pool for attributes as learners of their own: bins and pairs of bins, and the nearest rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from linmax.learners.attributes import GroupLearner
from linmax.learners.members import Group
from linmax.learners.nearest_rows import NearestRows
from linmax.learners.pair_features import MOST_BINS
from linmax.learners.pair_members import PairMembers

__all__ = ["BinnedPairs", "Nearest", "binned_pairs", "nearest"]


@dataclass(frozen=True)
class BinnedPairs(GroupLearner):
    """Description of bins and their pairs; made by `linmax.binned_pairs`."""

    bins: int = 16
    name: ClassVar[str] = "binned-pairs"

    def __post_init__(self) -> None:
        if self.bins != int(self.bins) or not 2 <= self.bins < MOST_BINS:
            raise ValueError(f"bins must be a whole number from 2 to {MOST_BINS - 1}, got {self.bins!r}; try 16")

    def group(self) -> Group:
        return PairMembers(int(self.bins))


@dataclass(frozen=True)
class Nearest(GroupLearner):
    """Description of the nearest rows; made by `linmax.nearest`."""

    name: ClassVar[str] = "nearest"

    def group(self) -> Group:
        return NearestRows()


def binned_pairs(bins: int = 16) -> BinnedPairs:
    """Learn from quantile bins of dense attributes and from pairs of bins, by AROW against all classes.

    Parameters
    ----------
    bins
        Of each attribute, at most; one with fewer values has a bin for each value.

    Returns
    -------
    BinnedPairs
        The learner.

    Notes
    -----
    The edges are set from the first trials (again at 64, 256 and 512 of them, and what was learned is learned once
    more) and follow slow change from then on. Pairs are made of the 20 most telling bins of a row that speak; the
    expansion is hashed, and never stored. The same features as a table, for any rule and with the bounds of rules
    that depend on the logarithm of their number only, are those of `linmax.features.bins` and `conjunctions`.

    References
    ----------
    Littlestone (1988), Learning quickly when irrelevant attributes abound, section 5: conjunctions as attributes.

    Examples
    --------
    >>> import linmax, numpy as np
    >>> points = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 2))
    >>> labels = points[:, 0] * points[:, 1] > 0.0  # no linear threshold of the two attributes
    >>> float(linmax.run("binned-pairs(8)", linmax.experts(attributes=points), labels).wrong[1000:].mean()) < 0.1
    True
    """
    return BinnedPairs(bins)


def nearest() -> Nearest:
    """Predict from the nearest among the rows that were not predicted surely when they came.

    Returns
    -------
    Nearest
        The learner.

    Notes
    -----
    At most 4,096 rows are remembered, fewer of many attributes. Distances are taken after division by the deviations.

    References
    ----------
    Aha, Kibler and Albert (1991), Instance-based learning algorithms: IB2.

    Examples
    --------
    >>> import linmax, numpy as np
    >>> points = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 2))
    >>> labels = points[:, 0] * points[:, 1] > 0.0
    >>> float(linmax.run("nearest", linmax.experts(attributes=points), labels).wrong[1000:].mean()) < 0.1
    True
    """
    return Nearest()
