"""What a page about a fusion shows beside the report: curves, likeness of the voters' errors, panels, changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linmax.models.asking.panel import VoterPanels, panel_of
from linmax.models.asking.question import order_by_worth
from linmax.models.fusion.comparison import BEST_SO_FAR, FIRST_VOTER, FUSION, PLURALITY, Tally
from linmax.models.model import Model

__all__ = ["Change", "Details"]

STRETCHES = 40  # in which accuracy over time is shown
CHANGE_ERRORS = 3.5  # standard errors by which a voter's accuracy must have changed to be told of


@dataclass(frozen=True)
class Change:
    """A voter whose accuracy changed, about which trial, and its accuracy before and after."""

    voter: str
    trial: int
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Details:
    """Copies of what a fusion had counted and kept when the report was made."""

    voters: tuple[str, ...]
    leader: int
    times: np.ndarray  # trials at the ends of stretches, from 0
    mistakes: np.ndarray  # (times, rivals): up to each
    rows: tuple[np.ndarray, np.ndarray]  # recent votes and labels
    learner: Any
    weights: np.ndarray
    scored: bool
    thresholds: bool
    costs: np.ndarray | None = None  # of asking each voter, if they are known

    @classmethod
    def of(
        cls,
        tally: Tally,
        voters: Sequence[str],
        recent: Any,
        model: Model,
        weights: Any,
        scored: bool,
        costs: np.ndarray | None = None,
    ) -> Details:
        """Take copies."""
        times = np.unique(np.linspace(0, tally.trials, min(STRETCHES, tally.trials) + 1).astype(int))
        points, counts = tally.points()
        table = np.array([np.interp(times, points, column) for column in counts.T]).T
        taken = tuple(voters), tally.leader, times, table, recent.rows(), model.learner, np.asarray(weights)
        return cls(*taken, scored, bool(model.layout.constant), costs)

    @cached_property
    def curves(self) -> dict[str, np.ndarray]:
        """Share of right answers in each stretch: of the fusion and of what it is compared with."""
        sizes = np.maximum(np.diff(self.times), 1)
        right = 1.0 - np.diff(self.mistakes, axis=0) / sizes[:, None]
        best = f"best voter, {self.voters[self.leader]}"
        places = {"fusion": FUSION, "plurality": PLURALITY, "best voter so far": BEST_SO_FAR}
        return {name: right[:, place] for name, place in {**places, best: FIRST_VOTER + self.leader}.items()}

    @cached_property
    def likeness(self) -> np.ndarray:
        """Correlation of the errors of every two voters, where both spoke; nan where that cannot be told."""
        votes, labels = self.rows
        n = len(self.voters)
        found = np.full((n, n), np.nan)
        width = min(votes.shape[1], n)
        spoke = votes[:, :width] >= 0
        wrong = np.where(spoke, votes[:, :width] != labels[:, None], 0).astype(float)
        both = spoke.T.astype(float) @ spoke
        first, joint = wrong.T @ spoke, wrong.T @ wrong
        with np.errstate(invalid="ignore", divide="ignore"):
            mean, other = first / both, (first / both).T
            found[:width, :width] = (joint / both - mean * other) / np.sqrt(mean * (1 - mean) * other * (1 - other))
        found[~np.isfinite(found)] = np.nan
        return found

    @cached_property
    def independent(self) -> float | None:
        """n / (1 + (n - 1) r): to how many independent voters these amount, r the mean correlation of their errors."""
        n = len(self.voters)
        pairs = self.likeness[~np.eye(n, dtype=bool)]
        if n < 2 or not np.isfinite(pairs).any():
            return None
        return float(n / (1.0 + (n - 1) * max(0.0, float(np.nanmean(pairs)))))

    @cached_property
    def panel(self) -> VoterPanels | None:
        """How few are enough; None of scores and of too few trials."""
        if self.scored or len(self.rows[1]) < 50 or len(self.voters) < 2:
            return None
        costs = np.ones(len(self.voters)) if self.costs is None else self.costs
        order = order_by_worth(self.weights, costs)
        return panel_of(self.learner, self.rows, order, costs, self.voters, self.thresholds)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Voters whose accuracy changed for good at some time, the largest change first."""
        found = []
        total = int(self.times[-1])
        for place, name in enumerate(self.voters):
            wrong = self.mistakes[:, FIRST_VOTER + place]
            best: tuple[float, Change] | None = None
            for cut in range(len(self.times) // 8, len(self.times) - len(self.times) // 8):
                t = int(self.times[cut])
                if min(t, total - t) < 50:
                    continue
                before, after = wrong[cut] / t, (wrong[-1] - wrong[cut]) / (total - t)
                share = wrong[-1] / total
                error = math.sqrt(max(share * (1 - share), 1e-9) * (1 / t + 1 / (total - t)))
                if best is None or abs(after - before) / error > best[0]:
                    best = abs(after - before) / error, Change(name, t, 1.0 - before, 1.0 - after)
            if best is not None and best[0] > CHANGE_ERRORS:
                found.append(best[1])
        return tuple(sorted(found, key=lambda change: -abs(change.after - change.before)))
