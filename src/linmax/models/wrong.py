"""Learning from "not this class": most learners draw another class in its stead, as probable as they hold it to be.

If P(j) are the model's probabilities and the class c is known to be wrong, the likelihood of that event is 1 - P(c),
and its gradient is the mean of the gradients of log P(j) over j drawn from P(j) / (1 - P(c)), j not c. So learning the
label that was drawn follows the likelihood of the event in the mean.

The pool for attributes is told the class that is wrong: its members let it fall behind the best other class. What is
drawn is no label to them, since their scores are no probabilities, and a wrong label teaches them more than an event.
There the class that was drawn is only what a mistake is counted by. Beside votes, it is what the pool for voters and
raters learns, which decides over those members.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linmax.core.contract import Instances
from linmax.data.experts import Experts
from linmax.techniques.exploring import Exploring
from linmax.util.draws import another

if TYPE_CHECKING:
    from linmax.models.experts_model import ExpertsModel
    from linmax.models.model import Model

__all__ = ["denied", "draw_other", "mask_of", "other_label", "run_with_wrong"]

WRONG_STREAM = 2  # of the draws of other classes


class Another(NamedTuple):
    """The class drawn in place of the label, and the number of the class that is wrong."""

    label: Any
    wrong: int


def draw_other(shares: Mapping[Any, float], wrong: Any, trials: int) -> Another | None:
    """Draw another class than ``wrong`` by these probabilities; None if there is no other, or ``wrong`` is unknown."""
    label = another(shares, wrong, WRONG_STREAM, trials) if wrong in shares else None
    return None if label is None else Another(label, list(shares).index(wrong))


def other_label(judge: Model, instance: Instances, wrong: Any, trials: int) -> Another | None:
    """Draw another class for one instance by the probabilities of the model that scores it."""
    known = judge.known
    if wrong not in known:
        return None
    table = judge.engine.judge(instance, 1)[1][:, : len(known)]
    return draw_other(dict(zip(known, judge.own_probabilities(table)[0].tolist(), strict=True)), wrong, trials)


@contextmanager
def denied(model: Model, place: int) -> Iterator[None]:
    """Mark this class as wrong for the next trial, for a learner that can learn from that.

    With two classes the other one is the label.
    """
    top = model.engine.top
    pool = top.deniable if len(model.known) > 2 else None
    if isinstance(top, Exploring):
        top.deny(place)
    if pool is not None:
        pool.denied = place
    try:
        yield
    finally:
        if isinstance(top, Exploring):
            top.undeny()
        if pool is not None:
            pool.denied = -1


def mask_of(wrong: Any, size: int) -> np.ndarray:
    """Return the mask of trials of which only a class that is not the label is known."""
    mask = np.asarray(wrong)
    if mask.dtype != bool or mask.shape != (size,):
        raise ValueError(
            f"wrong must be a mask, True or False for each of the {size} trials; got {mask.dtype} of shape {mask.shape}"
        )
    return mask


def run_with_wrong(
    model: ExpertsModel, instances: Experts, labels: np.ndarray, wrong: np.ndarray, weights: np.ndarray
) -> None:
    """Learn weighted trials; where ``wrong``, all that is known is that the label is not the one given.

    Such a trial teaches nothing while no other class is known, or if the class is unknown.
    """
    begin = 0
    for t in [*np.flatnonzero(wrong).tolist(), len(wrong)]:
        if t > begin:
            model.run(instances[begin:t], labels[begin:t], grow=True, weights=weights[begin:t])
        begin = t + 1
        if t == len(wrong):
            break
        one = instances[t : t + 1]
        drawn = other_label(model, model.fitted(one), labels[t : t + 1].tolist()[0], model.trials)
        if drawn is not None:
            top = model.engine.top  # repeated by weight, these would take the drawn class for the label
            once = isinstance(top, Exploring) or (top.deniable is not None and top.weighing is None)
            with denied(model, drawn.wrong):
                model.run(one, [drawn.label], grow=True, weights=None if once else weights[t : t + 1])
