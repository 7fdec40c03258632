"""What asking voters one by one would have cost and lost, on a table of all votes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from linmax.models.fusion.online import OnLineFusion

__all__ = ["Simulation", "simulate_asking"]


@dataclass(frozen=True)
class Simulation:
    """Means over the trials after the ``first`` ones, which all voters were asked about."""

    trials: int
    first: int
    voters: int
    calls: float
    cost: float
    accuracy: float
    full_cost: float
    full_accuracy: float
    tolerance: float

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"asked one by one, tolerance {self.tolerance:g}, after {self.first:,d} rows with all votes: "
            f"{self.calls:.2f} calls of {self.voters} (cost {self.cost:.4g} of {self.full_cost:.4g}), "
            f"accuracy {self.accuracy:.4f}; asking all {self.full_accuracy:.4f}"
        )


def simulate_asking(
    make: Callable[[], OnLineFusion],
    table: Mapping[str, np.ndarray],
    labels: Sequence[Any] | np.ndarray,
    voters: Sequence[str],
    *,
    first: int,
    tolerance: float = 0.002,
    costs: Mapping[str, float] | None = None,
) -> Simulation:
    """Learn from the first rows with all votes, then ask one by one and learn only from what was asked.

    Parameters
    ----------
    make
        Makes a fusion that has learned nothing; two are needed, since one goes on with all votes.
    table, labels
        Columns of votes, and of values of side columns; the right labels.
    voters
        Which columns are voters.
    first
        Rows that all are asked about.
    tolerance, costs
        As in `VoteFusion.ask`.
    """
    if not 1 < first < len(labels):
        raise ValueError(f"first must leave rows to ask about one by one, got {first} of {len(labels)} rows")
    head = {name: column[:first] for name, column in table.items()}
    frugal, full = (make().partial_fit(head, labels[:first]) for _ in range(2))
    price = dict.fromkeys(voters, 1.0) if costs is None else costs
    sides = [name for name in table if name not in voters]
    calls = right = right_of_all = 0
    spent = 0.0
    for t in range(first, len(labels)):
        heard: dict[str, Any] = {name: table[name][t] for name in sides}
        while (voter := frugal.ask(heard, costs=costs, tolerance=tolerance)) is not None:
            heard[voter] = table[voter][t]
            calls += 1
            spent += price[voter]
        said = {name: [vote] for name, vote in heard.items()}
        whole = {name: [column[t]] for name, column in table.items()}
        right += frugal.predict(said)[0] == labels[t]
        right_of_all += full.predict(whole)[0] == labels[t]
        frugal.partial_fit(said, [labels[t]])
        full.partial_fit(whole, [labels[t]])
    size = len(labels) - first
    return Simulation(
        size,
        first,
        len(voters),
        calls / size,
        spent / size,
        right / size,
        float(sum(price[name] for name in voters)),
        right_of_all / size,
        tolerance,
    )
