"""Rules in pickles: made again where they arrive, since a compiled function has its address in one process only."""

from __future__ import annotations

import pickle
import uuid
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from numba.core import serialize

from linmax.core.contract import Rule

__all__ = ["Made", "Shipped", "in_pickles", "made_again"]

_OWNERS: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()  # by what pickles call them
_CALLED: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, eq=False, repr=False)
class Made(Rule):
    """A rule with something of a user's in it: ``maker`` is its `OwnRule` or its `OwnLink`."""

    maker: Any = None


class Shipped:
    """A user's function on its way, by value: also from a script, a notebook or inside of a function.

    ``owner`` is what the function was made into; where that is still there, it is met again.
    """

    def __init__(self, function: Any, what: str, owner: Any) -> None:
        self.function, self.what, self.owner = function, what, owner

    def __reduce__(self) -> Any:
        key = _CALLED.setdefault(self.owner, uuid.uuid4().hex)
        _OWNERS[key] = self.owner
        try:
            code = serialize.dumps(self.function)
        except Exception as error:  # of whatever the function refers to
            raise pickle.PicklingError(
                f"{self.what} cannot be pickled, since it refers to something that cannot ({error}); let it refer to "
                "numbers, arrays and compiled functions only"
            ) from error
        return _arrived, (key, code, self.what)


def _arrived(key: str, code: bytes, what: str) -> Shipped:
    owner = _OWNERS.get(key)
    return Shipped(pickle.loads(code) if owner is None else owner.__wrapped__, what, owner)


def made_again(factory: Any, parameters: Mapping[str, Any], rivals: str) -> Rule:
    """The rule that was pickled."""
    rule: Rule = factory(**parameters)
    return rule if rule.rivals == rivals else replace(rule, rivals=rivals)


def in_pickles(learner: Any, rules: Iterable[Rule]) -> Any:
    """A learner with these rules as pickles hold it: as text, but itself where there is a user's code in it."""
    return learner if any(getattr(rule, "maker", None) is not None for rule in rules) else str(learner)
