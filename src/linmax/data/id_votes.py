"""Trials that come one by one, watched for a voter that is an id: it names something never met before, every time."""

from __future__ import annotations

import warnings
from collections.abc import Container, Hashable, Mapping, Sequence

from linmax.data.blocks import missing
from linmax.data.matching import ROWS_OF_IDS

__all__ = ["IdWatch"]


class IdWatch:
    """Counts in how many trials on end each voter named a class that was new and not the label.

    Only trials with such votes need be shown. There is one warning for a voter; what was learned does not change.

    Examples
    --------
    >>> watch = IdWatch()
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     for trial in range(25):
    ...         watch.see(trial, {"ann": "yes", "row": trial}, {"yes", "no"}, "yes")
    >>> [str(warning.message)[:46] for warning in caught]
    ["votes: 'row' named a class never met before in"]
    """

    def __init__(self) -> None:
        self._runs: dict[Hashable, tuple[int, int]] = {}  # how many trials on end, and the last one
        self._told: set[Hashable] = set()

    def see(self, trial: int, votes: Mapping[Hashable, Hashable], known: Container[Hashable], label: Hashable) -> None:
        """Meet the votes of trial number ``trial``; ``known`` are the classes before it."""
        for voter, vote in votes.items():
            if vote in known or missing(vote) or vote == label:
                continue
            run, last = self._runs.get(voter, (0, trial))
            run = run + 1 if trial - last <= 1 else 1
            self._runs[voter] = run, trial
            if run >= ROWS_OF_IDS and voter not in self._told:
                self._told.add(voter)
                warnings.warn(
                    f"votes: {voter!r} named a class never met before in {run} trials on end, such as {vote!r}, and "
                    "never the label; it looks like an id, and is no voter: leave it out",
                    stacklevel=6,
                )

    def see_rows(
        self,
        trial: int,
        rows: Sequence[Sequence[Hashable]],
        voters: Sequence[Hashable],
        labels: Sequence[Hashable],
        known: set[Hashable],
    ) -> None:
        """Meet some trials, from number ``trial`` on; to ``known`` is added what they name."""
        for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
            self.see(trial + t, dict(zip(voters, row, strict=True)), known, label)
            known.update(row, [label])
