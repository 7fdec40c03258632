"""Instances that wait for their label, and the ids that have had theirs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from linmax.models.online.reading import Given
from linmax.util import files

__all__ = ["Waiting", "WaitingRoom"]


@dataclass
class Waiting:
    """An instance whose label has not come, and what was predicted for it."""

    attributes: dict[Any, float]
    votes: dict[Any, Any]
    scores: dict[Any, dict[Any, float]]
    predicted: Any
    candidates: list[Any] | None = None  # then the instance, and what was predicted, are in places among them

    @property
    def given(self) -> Given:
        """The instance."""
        return Given(self.attributes, self.votes, self.scores)

    @property
    def answer(self) -> Any:
        """What was predicted, by name."""
        return self.predicted if self.candidates is None else self.candidates[self.predicted]


class WaitingRoom:
    """Instances by id, ``size`` at most; as many ids that have had their label are remembered."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._waiting: dict[Any, Waiting] = {}
        self.labelled: dict[Any, None] = {}  # in order; the oldest are forgotten

    def __len__(self) -> int:
        return len(self._waiting)

    def __getitem__(self, id: Hashable) -> Waiting:
        return self._waiting[id]

    def __setitem__(self, id: Hashable, kept: Waiting) -> None:
        self._waiting[id] = kept

    def check_new(self, id: Hashable) -> None:
        """Refuse an id under which nothing can be kept."""
        if not isinstance(id, (str, int)) or isinstance(id, bool):
            raise TypeError(f"id must be text or a whole number, got {id!r}")
        if id in self._waiting or id in self.labelled:
            raise ValueError(f"id {id!r} is in use already; give each instance an id of its own")
        if len(self._waiting) >= self.size:
            raise ValueError(
                f"{len(self._waiting)} instances are waiting for their labels already, which is max_pending; learn or "
                "forget() some first"
            )

    def kept(self, id: Hashable, *blocks: Any) -> Given:
        """The instance that waits under this id; ``blocks`` are what was given beside it, which must be nothing."""
        if any(block is not None for block in blocks):
            raise TypeError("id= means the instance that was kept; give the instance or the id, not both")
        if id in self.labelled:
            raise ValueError(f"id {id!r} has had its label already; a label is learned once")
        if id not in self._waiting:
            raise KeyError(f"id {id!r} is not waiting for a label; predict(..., id={id!r}) comes first")
        return self._waiting[id].given

    def label(self, id: Hashable) -> None:
        """The label of an instance has been learned."""
        del self._waiting[id]
        self.labelled[id] = None
        while len(self.labelled) > self.size:
            del self.labelled[next(iter(self.labelled))]

    def forget(self, id: Hashable) -> None:
        """Drop an instance whose label will not come."""
        if id not in self._waiting:
            raise KeyError(f"id {id!r} is not waiting for a label")
        del self._waiting[id]

    def description(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        waiting = [
            {
                "id": id,
                "attributes": _pairs(kept.attributes),
                "votes": _pairs(kept.votes),
                "scores": [[files.plain(name), _pairs(row)] for name, row in kept.scores.items()],
                "predicted": files.plain(kept.predicted),
                "candidates": kept.candidates and [files.plain(name) for name in kept.candidates],
            }
            for id, kept in self._waiting.items()
        ]
        return {"max_pending": self.size, "waiting": waiting, "labelled": list(self.labelled)}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        """The waiting room whose `description` this was."""
        room = cls(int(description["max_pending"]))
        for kept in description["waiting"]:
            room[kept["id"]] = Waiting(
                _unpaired(kept["attributes"]),
                _unpaired(kept["votes"]),
                {files.named(name): _unpaired(row) for name, row in kept["scores"]},
                files.named(kept["predicted"]),
                kept.get("candidates") and [files.named(name) for name in kept["candidates"]],
            )
        room.labelled = dict.fromkeys(description["labelled"])
        return room


def _pairs(named: Mapping[Any, Any]) -> list[list[Any]]:
    return [[files.plain(name), files.plain(value)] for name, value in named.items()]


def _unpaired(pairs: Sequence[Sequence[Any]]) -> dict[Any, Any]:
    return {files.named(name): files.named(value) for name, value in pairs}
