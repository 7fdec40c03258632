"""Pools for votes that learned apart, and where their coordinates are in the mixture."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linmax.learners.votes.agreement import ROWS
from linmax.learners.votes.mixture import AGREED, STEADY, TRIALS, Pool
from linmax.learners.votes.trial import VOTERS

if TYPE_CHECKING:
    from linmax.learners.votes.pool import RunningVotes

__all__ = ["Blocks", "PoolPart", "of_logits", "remembered"]


class PoolPart(NamedTuple):
    """A pool that learned apart, the places of its coordinates in the mixture, and how its scores have to be scaled."""

    running: RunningVotes
    pool: Pool  # its own, without votes by how many are silent if the mixture has none
    places: np.ndarray
    voters: np.ndarray
    raters: np.ndarray
    classes: np.ndarray
    units: np.ndarray  # of its coordinates, in those of the mixture; 1 but for raters

    @property
    def trials(self) -> int:
        """Trials learned."""
        return int(self.pool.counts[TRIALS])

    @property
    def rows(self) -> int:
        """Trials learned, and rows without a label: in which voters were compared."""
        agreement = self.running.agreement
        return self.trials + (round(float(agreement.numbers[ROWS])) if agreement.trust.size else 0)

    @property
    def guided(self) -> bool:
        """Whether agreement guides a logit."""
        return bool(self.pool.mixture[AGREED] > 0.0)


class Blocks(NamedTuple):
    """How many voters, raters, thresholds, and voters by how many are silent, the mixture has."""

    voters: int
    raters: int
    thresholds: int
    silent: int

    @property
    def size(self) -> int:
        """All coordinates, those of all votes together included."""
        return VOTERS + sum(self)

    @property
    def narrow(self) -> int:
        """Those without votes by how many are silent."""
        return self.size - self.silent


def remembered(trials: int, kept: float) -> float:
    """c(T): how many trials the information after so many is that of."""
    return float(trials) if kept == 1.0 else (1.0 - kept**trials) / (1.0 - kept)


def of_logits(part: PoolPart, array: np.ndarray) -> np.ndarray:
    """What a part has of its logits: the one that agreement guides is the steady one where it has told nothing yet."""
    found = array.copy()
    if not part.guided:
        found[AGREED] = found[STEADY]
    return found
