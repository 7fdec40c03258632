"""How few voters are enough: the accuracy that the first m of them, in order of worth, reach alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linmax.data.experts import experts
from linmax.engine.engine import Settings
from linmax.models.experts_model import ExpertsModel

__all__ = ["ALL_SIZES_TRIED", "PanelLine", "VoterPanels", "enough", "latest_rows", "numbers_tried", "panel_of"]

ALL_SIZES_TRIED = 12  # voters up to which every number of them is tried
COMPARED_TRIALS = 1000  # trials on which panels are compared


@dataclass(frozen=True)
class PanelLine:
    """The first so many voters, what they cost for each trial, and how often they are right alone.

    ``behind`` is how much more often all voters are right on the same trials, and ``error`` the standard error of that.
    """

    voters: tuple[Any, ...]
    cost: float
    accuracy: float
    behind: float
    error: float


@dataclass(frozen=True)
class VoterPanels:
    """What `VoteFusion.panel` and `Learner.panel` return: a line for each number of voters tried, the fewest first."""

    lines: tuple[PanelLine, ...]
    trials: int

    def __iter__(self) -> Any:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, place: int) -> PanelLine:
        return self.lines[place]

    def enough(self, tolerance: float = 0.002) -> PanelLine:
        """The fewest voters that give up no more than ``tolerance``, as far as these trials can tell."""
        return self.lines[enough(self.lines, tolerance)]

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain numbers and text, ready for JSON."""
        return [
            {"voters": list(line.voters), "cost": line.cost, "accuracy": line.accuracy, "behind": line.behind}
            for line in self.lines
        ]

    def __str__(self) -> str:
        rows = [
            f"{len(line.voters):>3}  {line.accuracy:.3f}  {line.cost:>10g}  {line.voters[-1]}" for line in self.lines
        ]
        return "\n".join([f"  m  right  {'cost':>10}  and this one ({self.trials} trials)", *rows])


def numbers_tried(n: int) -> list[int]:
    """How many of n voters are compared: every number up to `ALL_SIZES_TRIED`, then some, and all."""
    return sorted({*range(1, min(ALL_SIZES_TRIED, n) + 1), *(m for m in (16, 24, 32, 48, 64, 100) if m < n), n})


def latest_rows(rows: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The latest of these votes and labels, as many as are compared; refused if there are hardly any."""
    votes, labels = (block[-COMPARED_TRIALS:] for block in rows)
    if len(labels) < 2:
        raise ValueError(
            f"a panel needs trials with the votes of all, and there are {len(labels)}; learn from some first"
        )
    return votes, labels


def panel_of(
    learner: Any,
    rows: tuple[np.ndarray, np.ndarray],
    order: np.ndarray,
    costs: np.ndarray,
    names: Sequence[Any],
    thresholds: bool,
) -> VoterPanels:
    """Run the learner afresh, with thresholds or without, on the votes of the first m voters in this order."""
    votes, labels = latest_rows(rows)
    size, n = len(labels), len(order)
    numbers = numbers_tried(n)
    right = {m: _right(learner, votes[:, order[:m]], labels, thresholds) for m in numbers}
    late = slice(size // 5, None)  # when they have learned something
    lines = []
    for m in numbers:
        behind = right[n][late].astype(float) - right[m][late]
        error = float(behind.std() / math.sqrt(len(behind)))
        chosen = order[:m]
        lines.append(
            PanelLine(
                tuple(names[i] for i in chosen),
                float(costs[chosen].sum()),
                float(right[m][late].mean()),
                float(behind.mean()),
                error,
            )
        )
    return VoterPanels(tuple(lines), size - size // 5)


def _right(learner: Any, votes: np.ndarray, labels: np.ndarray, thresholds: bool) -> np.ndarray:
    k = int(max(votes.max(initial=0), labels.max(initial=0))) + 1
    instances = experts(votes=votes.astype(np.int32), classes=range(max(k, 2)), abstain=-1, thresholds=thresholds)
    model = ExpertsModel(learner, instances.layout, list(range(max(k, 2))), Settings())
    return ~model.run(instances, labels.astype(np.int64)).wrong


def enough(lines: Sequence[PanelLine], tolerance: float) -> int:
    """The first line that is behind the best by no more than the tolerance and one standard error."""
    best = min(line.behind for line in lines)
    return next(
        i for i, line in enumerate(lines) if line.behind - best <= tolerance + line.error or i + 1 == len(lines)
    )
