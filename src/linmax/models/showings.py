"""Weights of instances: what a weight of w means, and how learners that cannot weigh a trial show it several times.

A weight of w says that an instance counts w times. It is predicted, and its mistake counted, once. Then

- the pool for attributes (the default, ``attributes``, ``binned-pairs``, ``nearest``) takes one step that is scaled:
  C = w in PA-I and SCW-I, r / w in AROW and in the fusion of the members, w counts in naive Bayes; weights beyond 10^6
  count as 10^6. This is w times the loss, not w trials: a weight of 2 is near to the instance twice, not the same;
- any other learner, rules and techniques among them, is shown the instance floor(w) times, and once more with the
  probability of the rest, but no more than `MOST_SHOWINGS` times in a row. So a mistake bound, which counts updates,
  holds for the trials that were shown. The draws are made from the number of the instance: the same stream gives the
  same model. An instance whose class is new is always shown.

A weight of 1 gives the same bits as none. 0 leaves an instance out: it is predicted only, and its class not taken in.
"""

from __future__ import annotations

import numpy as np

from linmax.core.contract import KNOWN, Trials
from linmax.data.arrays import cut, repeated
from linmax.engine.engine import Engine, Outcome
from linmax.engine.outcome import joined
from linmax.learners.attributes.pool import HEAVIEST_ROW

__all__ = ["MOST_SHOWINGS", "heaviest", "play_shown", "showings"]

MOST_SHOWINGS = 100  # showings in a row, by which a learner has nothing more to learn from an instance


def heaviest(engine: Engine) -> float:
    """The weight beyond which instances count no more."""
    return MOST_SHOWINGS if engine.top.weighing is None else HEAVIEST_ROW


def drawn(first: int, size: int) -> np.ndarray:
    """Numbers in [0, 1) for the instances from number ``first`` on, which look random and depend on it alone.

    Examples
    --------
    >>> bool((drawn(0, 10)[3:] == drawn(3, 7)).all()), bool(abs(drawn(0, 10_000).mean() - 0.5) < 0.02)
    (True, True)
    """
    mixed = np.arange(first, first + size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2.0**53


def showings(weights: np.ndarray, first: int = 0) -> np.ndarray:
    """Return how often instances of these weights are shown, the first of them being number ``first``.

    Examples
    --------
    >>> showings(np.array([1.0, 2.0, 0.0, 1e9])).tolist()
    [1, 2, 0, 100]
    >>> bool(abs(showings(np.full(10_000, 0.3)).mean() - 0.3) < 0.02)
    True
    """
    return (
        np.floor(np.minimum(weights, MOST_SHOWINGS) + drawn(first, len(weights)))
        .astype(np.int64)
        .clip(max=MOST_SHOWINGS)
    )


def play_shown(
    engine: Engine, instances: Trials, labels: np.ndarray, weights: np.ndarray, first: int, scored: int
) -> Outcome:
    """Play trials as often as their weights say, each predicted once; the scores are those of the last ``scored``."""
    times = showings(weights, first)
    times[labels < 0] = 1
    known = np.maximum.accumulate(np.concatenate([[engine.state.shape[KNOWN]], labels[:-1] + 1]))
    times[labels >= known] = np.maximum(times[labels >= known], 1)
    edges = np.flatnonzero(np.diff(times.clip(max=2)) != 0) + 1
    parts: list[Outcome] = []
    for begin, end in zip([0, *edges.tolist()], [*edges.tolist(), len(labels)], strict=True):
        here, own = cut(instances, begin, end), labels[begin:end]
        if times[begin] == 0:
            parts.append(_judged(engine, here))
        elif times[begin] == 1:
            parts.append(engine.run(here._replace(labels=own), scored=end - begin))
        else:
            parts += [
                _several_times(engine, cut(here, t, t + 1), own[t : t + 1], int(times[begin + t]))
                for t in range(end - begin)
            ]
    found = joined(parts)
    found.scores = found.scores[len(labels) - scored :] if scored and found.scores is not None else None
    return found


def _judged(engine: Engine, trials: Trials) -> Outcome:
    predictions, table = engine.judge(trials)
    return Outcome(predictions, np.zeros(trials.size, np.uint8), None, table / engine.top.unit(engine))


def _several_times(engine: Engine, instance: Trials, label: np.ndarray, times: int) -> Outcome:
    """Show one instance several times; what it was predicted as is that of the first."""
    instance = instance._replace(labels=label)
    outcome = engine.run(instance, scored=1)
    engine.run(repeated(instance, times - 1))
    return outcome
