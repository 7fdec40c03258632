"""How differently raters rank classes: their cognitive diversity, summed over the trials of a fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from linmax.data.rank_scores import cognitive_diversity
from linmax.data.votes import Ballots

__all__ = ["RaterDiversity"]

SAMPLED = 1000  # trials from which the diversity of raters is taken; then as many of each time as many trials again


@dataclass
class RaterDiversity:
    """Sums over trials, for each pair of raters; empty for voters, who have no diversity."""

    apart: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))  # cognitive diversity
    together: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))  # over so many trials

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All of it, by name."""
        return {"apart": self.apart, "together": self.together}

    def add(self, ballots: Ballots, voters: Sequence[str], named: bool, before: int) -> None:
        """Add the trials of those who rated, which come after ``before`` others."""
        if not ballots.scored:
            return
        named = named and ballots.names is not None
        present = [voters.index(name) for name in ballots.names or ()] if named else range(ballots.table.shape[1])
        new = len(voters) - len(self.apart)
        self.apart, self.together = (np.pad(matrix, (0, new)) for matrix in (self.apart, self.together))
        pairs = np.ix_(present, present)
        trials = before + np.arange(len(ballots))
        strides = 1 << np.log2(np.maximum(trials // SAMPLED, 1)).astype(np.int64)
        for stride in np.unique(strides).tolist():
            sample = ballots.table[(strides == stride) & (trials % stride == 0)]
            if len(sample):
                self.apart[pairs] += stride * len(sample) * cognitive_diversity(sample)
                self.together[pairs] += stride * len(sample)

    def strengths(self, voters: Sequence[str]) -> dict[str, float]:
        """Mean cognitive diversity of each rater to those it was seen with."""
        met = self.together > 0.0
        mean = np.divide(self.apart, self.together, out=np.zeros_like(self.apart), where=met)
        others = np.maximum(met.sum(axis=1) - 1, 1)
        return dict(zip(voters, (mean.sum(axis=1) / others).tolist(), strict=False))
