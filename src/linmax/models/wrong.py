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

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.experts import Experts
from linmax.techniques.exploring import Exploring
from linmax.util.draws import another

if TYPE_CHECKING:
    from linmax.models.experts_model import ExpertsModel
    from linmax.models.model import Model

__all__ = ["WRONG_STREAM", "denied", "mask_of", "run_with_wrong"]

WRONG_STREAM = 2  # of the draws of other classes


@contextmanager
def denied(model: Model, place: int) -> Iterator[None]:
    """Let the next trial say that this class is wrong, and no more, to a learner that can learn from that.

    With two classes it is the label that is told.
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
    """Which of so many trials say only that a label is not theirs."""
    mask = np.asarray(wrong)
    if mask.dtype != bool or mask.shape != (size,):
        raise ValueError(
            f"wrong must be a mask, True or False for each of the {size} trials; got {mask.dtype} of shape {mask.shape}"
        )
    return mask


def run_with_wrong(
    model: ExpertsModel, instances: Experts, labels: np.ndarray, wrong: np.ndarray, weights: np.ndarray
) -> None:
    """Go on with trials, weighed, of which some, ``wrong``, say only that the label is not the one given.

    Such a trial teaches nothing while no other class is known, or if it denies one that nobody has met.
    """
    begin = 0
    for t in [*np.flatnonzero(wrong).tolist(), len(wrong)]:
        if t > begin:
            model.run(instances[begin:t], labels[begin:t], grow=True, weights=weights[begin:t])
        begin = t + 1
        not_this = labels[t : t + 1].tolist()
        if not not_this or not_this[0] not in model.known:
            continue
        one = instances[t : t + 1]
        table = model.judge(model.fitted(one), 1)[1][:, : len(model.known)]
        shares = dict(zip(model.known, model.own_probabilities(table)[0].tolist(), strict=True))
        label = another(shares, not_this[0], WRONG_STREAM, model.trials)
        if label is not None:
            top = model.engine.top  # shown again, these would take what was drawn for the label
            once = isinstance(top, Exploring) or (top.deniable is not None and top.weighing is None)
            with denied(model, model.known.index(not_this[0])):
                model.run(one, [label], grow=True, weights=None if once else weights[t : t + 1])
