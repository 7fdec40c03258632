"""Storage of the latest trials: columns of arrays, which grow as trials come and as voters or classes join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

__all__ = ["KeptTrials"]

JOINED_AT_ONCE = 256  # additions that are joined at a time


class KeptTrials:
    """At most ``room`` trials; when there are more, the oldest are dropped, half of the room at a time.

    A column is an array whose first axis is the trials. What joins later has no value in earlier trials: it is -1
    in columns of integers and 0 in others.

    Examples
    --------
    >>> kept = KeptTrials(room=4)
    >>> for trial in range(5):
    ...     kept.add(votes=np.array([[0, 1]]), labels=np.array([trial]))
    >>> kept["labels"].tolist(), kept.dropped
    ([2, 3, 4], 2)
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self.dropped = 0
        self._columns: dict[str, np.ndarray] = {}
        self._added: list[dict[str, np.ndarray]] = []

    def add(self, room: int | None = None, **columns: np.ndarray) -> None:
        """Add trials; ``room`` changes the limit."""
        if room is not None and room != self.room:
            self._join()
            self.room = room
        self._added.append(columns)
        if len(self._added) >= JOINED_AT_ONCE:
            self._join()

    def __getitem__(self, name: str) -> np.ndarray:
        self._join()
        return self._columns[name]

    def __len__(self) -> int:
        self._join()
        return min(map(len, self._columns.values()), default=0)

    def clear(self) -> None:
        """Drop all trials."""
        self.dropped += len(self)
        self._columns = {name: column[:0] for name, column in self._columns.items()}

    def _join(self) -> None:
        if not self._added:
            return
        parts = [self._columns, *self._added] if self._columns else self._added
        joined = {name: _stacked([part[name] for part in parts]) for name in parts[0]}
        half, beyond = max(1, self.room // 2), min(map(len, joined.values())) - self.room
        drop = half * -(-beyond // half) if beyond > 0 else 0
        self._columns = {name: column[drop:].copy() if drop else column for name, column in joined.items()}
        self._added = []
        self.dropped += drop

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """State arrays by name."""
        self._join()
        return {**self._columns, "kept": np.array([self.room, self.dropped])}

    @classmethod
    def restored(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Restore from `arrays`."""
        kept = cls(int(arrays["kept"][0]))
        kept.dropped = int(arrays["kept"][1])
        kept._columns = {name: array.copy() for name, array in arrays.items() if name != "kept"}
        return kept


def _stacked(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the parts one after the other, each as wide as the widest."""
    if len({part.shape[1:] for part in parts}) > 1:
        widest = np.max([part.shape[1:] for part in parts], axis=0)
        missing = [[(0, 0), *((0, int(more)) for more in widest - part.shape[1:])] for part in parts]
        fill = -1 if np.issubdtype(parts[0].dtype, np.integer) else 0
        parts = [np.pad(part, more, constant_values=fill) for part, more in zip(parts, missing, strict=True)]
    return np.concatenate(parts) if len(parts) > 1 else parts[0]
