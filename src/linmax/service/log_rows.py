"""What the log knows of a model, and what a request added to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import apsw
import msgspec

from linmax.service.packing import CLASS, NAME_KINDS, NAME_OVERHEAD, Instance, Label, SentNames, named_in
from linmax.service.probing import Footprint
from linmax.service.refusals import Refusal

__all__ = [
    "ASKS",
    "FORGET",
    "LABEL",
    "LEARN",
    "PREDICT",
    "WANTS",
    "Budget",
    "Event",
    "Guess",
    "ModelRow",
    "Place",
    "made_row",
    "signed",
    "unsigned",
    "unstored_row",
]

PREDICT, LEARN, LABEL, FORGET, WANTS, ASKS = 1, 2, 3, 4, 5, 6
FIELDS = ("attributes", "votes", "scores", "label")
MOST_NAMES, MOST_PENDING = 1_000_000, 100_000


@dataclass(slots=True)
class ModelRow:
    """A model as the log knows it: its names, its last event with the running hash, and what waits for a label."""

    number: int
    name: str
    description: dict[str, Any]
    created: int
    limits: dict[str, Any]
    base: int
    base_hash: bytes
    kept: int
    named: int
    names: SentNames
    last: int
    hash: bytes
    pending: int
    footprint: Footprint | None = None  # how its size grows, when that is known

    @property
    def max_pending(self) -> int:
        """How many predictions may wait for their label."""
        return int(self.limits.get("max_pending", self.description.get("max_pending", MOST_PENDING)))

    @property
    def max_names(self) -> int:
        """How many names there may be."""
        return int(self.limits.get("max_names", self.description.get("max_names", MOST_NAMES)))

    @property
    def size(self) -> int:
        """About how much memory the model takes."""
        return self._size([0] * len(NAME_KINDS))

    def _size(self, new: Sequence[int]) -> int:
        if self.footprint is None:
            return self.names.bytes
        attributes, voters, raters, classes = (
            len(texts) + more for texts, more in zip(self.names.texts, new, strict=True)
        )
        classes = max(classes, len(self.description.get("classes") or ()))
        return self.footprint.bytes([attributes, voters, raters], classes) + self.names.bytes + sum(new) * NAME_OVERHEAD

    def admit(self, instance: Instance, label: Label | None, budget: Budget) -> None:
        """Refuse a trial whose new names are too many (422), or need too much memory (422, 507)."""
        found = named_in(instance)
        if "candidates" not in instance and label is not None:
            found[CLASS].add(label)
        new = [names - self.names.numbers[kind].keys() for kind, names in zip(NAME_KINDS, found, strict=True)]
        counts = list(map(len, new))
        if not any(counts):
            return
        kind = next(kind for kind in NAME_KINDS if new[kind])
        if len(self.names) + sum(counts) > self.max_names:
            name = min(map(str, new[kind]))
            message = f"this model takes at most {self.max_names} names, and has {len(self.names)}; {name!r} is new"
            raise Refusal(422, message, field=FIELDS[kind])
        budget.check(self, self._size(counts), FIELDS[kind])

    def begin_after(self, kept: int, base: int, base_hash: bytes) -> None:
        """Undo a cut."""
        self.kept, self.base, self.base_hash = kept, base, base_hash

    def go_back(self, last: int, hash: bytes, pending: int) -> None:
        """Undo what a transaction has added."""
        self.last, self.hash, self.pending = last, hash, pending


class Budget:
    """Memory for the states of models, in bytes: of each one, and of all together.

    Parameters
    ----------
    each, total : how much they may take.
    rows : gives all models.
    """

    def __init__(self, each: int, total: int, rows: Callable[[], Iterable[ModelRow]]) -> None:
        self.each, self.total, self._rows = each, total, rows

    def check(self, row: ModelRow, wanted: int, field: str) -> None:
        """Refuse a model that would grow to `wanted` bytes."""
        if wanted > self.each:
            message = f"the new names and classes would let this model grow to {_mega(wanted)}, and it may have "
            raise Refusal(422, f"{message}{_mega(self.each)} (--model-memory)", field=field)
        others = sum(other.size for other in self._rows() if other is not row)
        if others + wanted > self.total:
            message = f"the new names and classes would let the models grow to {_mega(others + wanted)}, and together "
            raise Refusal(507, f"{message}they may have {_mega(self.total)} (--memory)", field=field)


def _mega(count: int) -> str:
    return f"{count / 2**20:,.1f} MB"


class Place(msgspec.Struct, frozen=True):
    """An answer that is stored as it is: the place of a candidate, or 1 for yes and 0 for no."""

    number: int


Guess = Label | Place | None  # what was predicted, or drawn


def signed(code: int, wrong: bool) -> int:
    """A class in the place of the label: below 0 if it is known not to be the label.

    Examples
    --------
    >>> signed(3, False), signed(3, True), unsigned(-4)
    (3, -4, (3, True))
    """
    return -1 - code if wrong else code


def unsigned(code: int) -> tuple[int, bool]:
    """The class, and whether it is known not to be the label."""
    return (code, False) if code >= 0 else (-1 - code, True)


class Event(msgspec.Struct):
    """What a request added to the log, or what was there already (`repeat`)."""

    seq: int
    kind: int
    instance: Instance | None = None
    served: Label | None = None
    label: Label | None = None
    repeat: bool = False
    answered: bool = True  # `served` is known (of a learn event: it has been applied and written down)
    hash: bytes = b""
    fault: str | None = None  # why it could not be learned
    probabilities: bytes | None = None  # as JSON, when they were served; with the set, if one was
    wrong: bool = False  # all that is known is that the label is not `label`
    wanted: bool = True  # of a draw: whether the label is

    def tell(self, guess: Guess) -> None:
        """Take in what was predicted or drawn."""
        if self.kind == WANTS:
            self.wanted = isinstance(guess, Place) and guess.number == 1
        elif isinstance(guess, Place):
            assert self.instance is not None
            self.served = self.instance["candidates"][guess.number]
        else:
            self.served = guess
        self.answered = True


def unstored_row(name: str, description: dict[str, Any]) -> ModelRow:
    """A model that the log does not know, to try things out."""
    return ModelRow(0, name, description, 0, {}, 0, b"", 0, 0, SentNames(), 0, b"", 0)


def made_row(
    database: apsw.Connection,
    number: int,
    name: str,
    description: str,
    created: int,
    limits: str,
    base: int,
    base_hash: bytes,
    kept: int,
    named: bytes,
) -> ModelRow:
    """The model of a row of the table, with what the other tables know of it."""
    known = database.execute("SELECT kind, name FROM names WHERE model = ? ORDER BY kind, number", (number,))
    last, hash = database.execute(
        "SELECT seq, hash FROM events WHERE model = ? ORDER BY seq DESC LIMIT 1", (number,)
    ).get or (0, None)
    if hash is None or last <= base:
        last, hash = max(last, base), base_hash
    pending = database.execute("SELECT count(*) FROM pending WHERE model = ?", (number,)).get
    told, changed = json.loads(description), json.loads(limits)
    return ModelRow(
        number, name, told, created, changed, base, base_hash, kept, int.from_bytes(named, "big"),
        SentNames(known), last, hash, pending,
    )  # fmt: skip
