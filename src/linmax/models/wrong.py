"""Learning from "not this class": another class is drawn in its stead, as probable as the model holds it to be.

If P(j) are the model's probabilities and the class c is known to be wrong, the likelihood of that event is 1 - P(c),
and its gradient is the mean of the gradients of log P(j) over j drawn from P(j) / (1 - P(c)), j not c. So learning the
label that was drawn follows the likelihood of the event in the mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from linmax.techniques.exploring import Exploring
from linmax.techniques.selecting import drawn

if TYPE_CHECKING:
    from linmax.models.model import Model

__all__ = ["another", "denied"]

STREAM = 2  # of the draws


def another(probabilities: Mapping[Any, float], wrong: Any, number: int) -> Any:
    """A class other than ``wrong``, by draw ``number``; None if there is no other.

    Examples
    --------
    >>> another({"a": 0.9, "b": 0.1, "c": 0.0}, "a", 0)
    'b'
    """
    others = {name: float(share) for name, share in probabilities.items() if name != wrong}
    total = sum(others.values())
    if not total > 0.0:
        others, total = dict.fromkeys(others, 1.0), float(len(others))
    left = drawn(STREAM, number) * total
    for name, share in others.items():
        left -= share
        if left < 0.0:
            return name
    return next(reversed(others), None)


@contextmanager
def denied(model: Model, place: int) -> Iterator[None]:
    """Let the next trial say that this class is wrong, and no more, to a learner that looks only at that."""
    top = model.engine.top
    if isinstance(top, Exploring):
        top.deny(place)
    try:
        yield
    finally:
        if isinstance(top, Exploring):
            top.undeny()
