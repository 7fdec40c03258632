"""Names and memory that models may take: new names are refused before anything is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

from linmax.models.online import Learner
from linmax.service.bodies import Instance, Label
from linmax.service.schemas import Refusal

if TYPE_CHECKING:
    from linmax.service.served_model import ServedModel

__all__ = ["Budget", "KnownNames", "named_in"]

STORED_NAME_BYTES = 400  # of memory that a name takes here and in the learner, besides its letters
NAME_FIELDS = ("attributes", "votes", "scores", "label")
CLASS = 3


def named_in(instance: Instance, label: Label | None = None, is_open: bool = False) -> list[set[Label]]:
    """Return the attributes, voters, raters and classes that a trial names; candidates and open answers are none.

    Examples
    --------
    >>> named_in({"votes": {"ann": "x", "bob": None}}, "y") == [set(), {"ann", "bob"}, set(), {"x", "y"}]
    True
    """
    votes, scores = instance.get("votes") or {}, instance.get("scores") or {}
    classes: set[Label] = set()
    if "candidates" not in instance and not is_open:
        classes = {*votes.values(), label}.union(*scores.values()) - {None}
    return [set(instance.get("attributes") or ()), set(votes), set(scores), classes]


class KnownNames:
    """The names of one model's stored trials, by kind; those of predictions count when their labels come."""

    def __init__(self, learner: Learner) -> None:
        columns = learner._current_model.columns
        kinds = (columns.attributes, columns.voters, columns.raters, learner.classes)
        self.kinds: list[set[Label]] = [set(cast("Iterable[Label]", names)) for names in kinds]
        self._is_open = learner._answers is not None
        self.bytes = sum(_bytes(names) for names in self.kinds)

    def __len__(self) -> int:
        return sum(map(len, self.kinds))

    def new_in(self, instance: Instance, label: Label | None) -> list[set[Label]] | None:
        """Return the new names in a trial, by kind; None if there are none."""
        attributes = instance.get("attributes")
        if attributes and len(instance) == 1 and self.kinds[0].issuperset(attributes):  # the usual case, without a copy
            return None if label is None or label in self.kinds[CLASS] else [set(), set(), set(), {label}]
        named = named_in(instance, label, self._is_open)
        new = [names - known for names, known in zip(named, self.kinds, strict=True)]
        return new if any(new) else None

    def add(self, new: list[set[Label]]) -> None:
        """Add names."""
        for known, names in zip(self.kinds, new, strict=True):
            known |= names
            self.bytes += _bytes(names)


class Budget:
    """Memory for models, in bytes: of each one, and of all together.

    Parameters
    ----------
    each, total : how much they may take.
    models : returns all models.
    """

    def __init__(self, each: int, total: int, models: Callable[[], Iterable[ServedModel]]) -> None:
        self.each, self.total, self._models = each, total, models

    def check(self, model: ServedModel) -> None:
        """Refuse a whole model that is too large."""
        total = model.size + sum(other.size for other in list(self._models()))
        if model.size > self.each or total > self.total:
            message = f"the model takes {_mega(model.size)}, with the others {_mega(total)}"
            raise Refusal(507, f"{message}; allowed are {_mega(self.each)} and {_mega(self.total)} (--memory)")

    def admit(self, model: ServedModel, new: list[set[Label]]) -> None:
        """Add new names to a model; 422 if they are too many, 422 or 507 if there is no memory left."""
        names, most = model.names, model.options.max_names
        kind = next(kind for kind, found in enumerate(new) if found)
        field, example = NAME_FIELDS[kind], min(map(str, new[kind]))
        if len(names) + sum(map(len, new)) > most:
            message = f"this model takes at most {most} names, and has {len(names)}; {example!r} is new"
            raise Refusal(422, message, field=field)
        more = sum(map(_bytes, new))
        if model.size + more > self.each:
            message = f"this model takes {_mega(model.size)} of {_mega(self.each)} (--model-memory), and {example!r} is"
            raise Refusal(422, f"{message} new; raise the limit, or send known names only", field=field)
        total = sum(other.size for other in list(self._models()))
        if total + more > self.total:
            message = f"the models take {_mega(total)} of {_mega(self.total)} (--memory), and {example!r} is new"
            raise Refusal(507, f"{message}; raise the limit, or delete a model", field=field)
        names.add(new)


def _bytes(names: Iterable[Label]) -> int:
    return sum(STORED_NAME_BYTES + len(str(name)) for name in names)


def _mega(count: int) -> str:
    return f"{count / 2**20:,.1f} MB"
