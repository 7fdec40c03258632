"""A budget of memory for the names and weights of a stream: how many attributes it has room for.

Attributes that are met first have a column of their own. When the budget is used up, those that come later share the
last eighth of the columns, chosen by their hash (see `linmax.io.vocabulary`).
"""

from __future__ import annotations

import re
from typing import Any

from linmax.engine.coordinates import stride_for
from linmax.engine.lowering import lower
from linmax.learners.attributes.pool import bytes_of_attribute
from linmax.learners.base import Description, scales_attributes
from linmax.util.checks import whole

__all__ = ["bytes_given", "bytes_shown", "refuse_small", "room_for"]

UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
NAME_BYTES = 110  # bytes of a name: its slots, its letters, where it begins
SPARE_SPACE = 2.5  # times the weights of a rule, when they are moved to a place with more room
FEWEST_ATTRIBUTES = 1000  # attributes of two classes


def bytes_given(memory: int | str) -> int:
    """A budget as bytes.

    Examples
    --------
    >>> bytes_given("500MB"), bytes_given("1.5 GiB"), bytes_given(10**9)
    (500000000, 1610612736, 1000000000)
    """
    if not isinstance(memory, str):
        return whole("memory", memory, 1)
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", memory.lower())
    if found is None or found[2] not in UNITS:
        raise ValueError(f"memory must be a size such as 500MB or 2GB, got {memory!r}")
    return int(float(found[1]) * UNITS[found[2]])


def bytes_shown(memory: int) -> str:
    """Bytes as users write them.

    Examples
    --------
    >>> bytes_shown(500_000_000), bytes_shown(2_500)
    ('500MB', '2.5kB')
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if memory >= size:
            return f"{memory / size:.4g}{unit}"
    return f"{memory}B"


def room_for(memory: int, learner: Any, classes: int) -> int:
    """Return how many attributes, with their names, the budget holds for this many classes."""
    return int(memory // (NAME_BYTES + _weights(learner, max(2, classes))))


def refuse_small(memory: int, learner: Any) -> None:
    """Refuse a budget that holds next to nothing."""
    if room_for(memory, learner, 2) < FEWEST_ATTRIBUTES:
        least = FEWEST_ATTRIBUTES * (NAME_BYTES + _weights(learner, 2))
        raise ValueError(
            f"memory={bytes_shown(memory)} holds {room_for(memory, learner, 2):,} attributes of two classes; give at "
            f"least {bytes_shown(-(-int(least) // 1000) * 1000)}"
        )


def _weights(learner: Any, classes: int) -> float:
    """Bytes of the weights of an attribute."""
    if scales_attributes(learner):
        return bytes_of_attribute(classes)
    stride = 8 * stride_for(classes)
    if isinstance(learner, Description):
        return SPARE_SPACE * 2 * stride
    _, runs = lower(learner)
    arrays = sum(1 + len(run.rule.slots) + bool(run.averaging) for run in runs)
    return SPARE_SPACE * arrays * stride
