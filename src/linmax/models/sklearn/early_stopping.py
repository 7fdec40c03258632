"""Passes of a batch fit over its samples, until the loss of samples that were held out stops falling.

Samples with the same attributes are held out together, so that no held-out sample is known. The loss is checked after
each pass. The held-out samples decide when to stop, and their scores calibrate the probabilities: scores of samples
that were learned, perhaps many times, are too good. Finally all samples are learned, in the best number of passes.

The pool for attributes differs. It settles, by samples from the whole batch, what it would settle by the first rows of
a stream. It takes weights as they are, gives probabilities without calibration, and learns most in the first pass. Of
`MANY_SAMPLES` it makes no other where mistakes did not become fewer during the first, and of any number it stops when a
pass brings nothing; then it continues with the held-out samples instead of starting again. Of fewer than 1,000 samples
it makes `FEW_PASSES` over all. Its members are then better than they were when the fusion weighed them by rows that
were new, and so the fusion learns from copies: each makes the passes over one half, and then meets the other (stacking:
Wolpert 1992, Stacked generalization).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from linmax.data.instances import Instances
from linmax.engine.record import JUDGED, keep_table
from linmax.learners.attributes.pool import marks_of
from linmax.learners.attributes.warm_up import LAST
from linmax.models.calibration import fit_losses
from linmax.models.model import Model
from linmax.util.aliases import Label, Matrix
from linmax.util.checks import at_least, whole

__all__ = ["PassOrder", "Samples", "StoppingRule", "fit", "foresee", "relative_weights", "repetitions", "weights_of"]

FEW_SAMPLES = 1000  # below this, all samples are held out once, in two halves
FEWEST_HELD_OUT = 300  # samples that are held out at least, where there are more
MANY_SAMPLES = 10_000  # from here on a pool makes a second pass only where its mistakes became fewer during the first
FEWEST_SAMPLES = 12  # below this, no sample is held out
NOISE = 1.0  # standard errors by which the loss must fall
FEW_PASSES = 5  # of a pool over few samples
SUM_ROUNDING = 1e-9  # by which a sum of fractional weights may miss a whole number


# -- weights of samples -----------------------------------------------------------------------------------------------


def weights_of(sample_weight: npt.ArrayLike | None, X: Matrix) -> np.ndarray:
    """Return a weight for each sample, 1 by default; in one of many calls all may be 0."""
    given = None if sample_weight is None else np.asarray(sample_weight)
    if given is not None and given.ndim and not given.any():
        check_consistent_length(X, given)
        return np.zeros(len(given))
    weights = np.asarray(_check_sample_weight(given, X, dtype=np.float64))
    if (weights < 0.0).any():
        raise ValueError(f"sample_weight must be >= 0, got {weights.min():g}; 0 leaves a sample out")
    return weights


def relative_weights(
    sample_weight: npt.ArrayLike | None, class_weight: Mapping[Label, float] | str | None, X: Matrix, y: np.ndarray
) -> np.ndarray:
    """Return the weights of a fit, scaled so that those above 0 have mean 1: only their ratios count.

    Examples
    --------
    >>> import numpy as np
    >>> weights = relative_weights([0.02, 0.02, 0.0, 0.04], None, np.zeros((4, 1)), np.array(["a", "b", "b", "b"]))
    >>> weights.round(2).tolist()
    [0.75, 0.75, 0.0, 1.5]
    """
    weights = weights_of(sample_weight, X)
    if class_weight is not None:
        used, weights = weights > 0.0, weights.copy()
        weights[used] *= compute_sample_weight(class_weight, y[used])
    largest = float(weights.max(initial=0.0))
    if largest == 0.0:
        raise ValueError("sample_weight must have a weight > 0, got zeros only; remove it")
    scaled = weights / largest
    return np.asarray(scaled * (np.count_nonzero(scaled) / scaled.sum()))


def repetitions(weights: np.ndarray, begin: float = 0.0) -> np.ndarray:
    """Return how often each sample counts: floor(W_t) - floor(W_{t-1}), W_t the sum of ``begin`` and weights up to t.

    Examples
    --------
    >>> import numpy as np
    >>> repetitions(np.array([2.0, 0.0, 0.5, 0.25, 0.5]))
    array([2, 0, 0, 0, 1])
    """
    return np.diff(np.floor(begin + np.cumsum(weights) + SUM_ROUNDING).astype(np.int64), prepend=0)


class PassOrder:
    """Order in which passes show samples."""

    def __init__(self, rows: np.ndarray, random: np.random.RandomState | None) -> None:
        self.rows, self.random = rows, random

    def next(self) -> np.ndarray:
        """Return the rows of the next pass; without ``random`` in their own order."""
        return self.rows if self.random is None else self.random.permutation(self.rows)


class PassResult(NamedTuple):
    """Result of a pass: whether rows taught anything, and mistakes before labels were seen, by weight."""

    learned: bool
    mistakes: np.ndarray

    def falls(self, tolerance: float) -> bool:
        """Return whether mistakes became fewer, by more than chance: the last quarter less the second one."""
        _, early, _, late = np.array_split(self.mistakes, 4)
        chance = NOISE * math.sqrt(float(early.var() / early.size + late.var() / late.size))
        return float(early.mean() - late.mean()) > max(tolerance, chance)


@dataclass(frozen=True)
class Samples:
    """Rows to learn, and their order in each pass."""

    instances: Instances
    labels: np.ndarray
    weights: np.ndarray
    shuffle: bool
    random: np.random.RandomState
    pooled: bool  # whether the learner is the pool for attributes

    @property
    def rows(self) -> np.ndarray:
        """Samples with a weight above 0."""
        return np.flatnonzero(self.weights > 0.0)

    def order(self, rows: np.ndarray) -> PassOrder:
        """Return the order of passes over these rows."""
        return PassOrder(rows, np.random.RandomState(self.random.randint(2**31)) if self.shuffle else None)

    def numbers(self, rows: np.ndarray, model: Model) -> np.ndarray:
        """Return the labels of these rows as class numbers of the model."""
        place = {name: number for number, name in enumerate(model.classes)}
        return np.array([place[name] for name in self.labels[rows].tolist()], np.int32)

    def play(self, model: Model, rows: np.ndarray, first: bool) -> PassResult:
        """Show these rows."""
        weights = self.weights[rows]
        trace = model.run(self.instances[rows], self.labels[rows], grow=True, first_pass=first, weights=weights)
        return PassResult(bool(trace.changed.any()), trace.wrong * weights / weights.mean())


# -- when to stop -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StoppingRule:
    """When a fit ends, in scikit-learn's terms."""

    max_iter: int
    tol: float | None
    early_stopping: bool | str
    validation_fraction: float
    n_iter_no_change: int
    verbose: int

    def check(self) -> None:
        """Refuse invalid parameters."""
        whole("max_iter", self.max_iter, 1)
        whole("n_iter_no_change", self.n_iter_no_change, 1)
        if self.tol is not None:
            at_least("tol", self.tol, 0.0)
        if not (isinstance(self.early_stopping, (bool, np.bool_)) or self.early_stopping == "auto"):
            raise ValueError(f"early_stopping must be True, False or 'auto', got {self.early_stopping!r}")
        if not 0.0 < self.validation_fraction < 1.0:
            raise ValueError(f"validation_fraction must be between 0 and 1, got {self.validation_fraction!r}; try 0.1")


class LossCurve:
    """Losses so far, and whether they still fall: by more than ``tol``, and by more than chance."""

    def __init__(self, rule: StoppingRule) -> None:
        self.rule = rule
        self.losses, self.idle, self.best = list[float](), 0, np.zeros(0)

    @property
    def latest_is_best(self) -> bool:
        """True if the latest loss is lower than all others."""
        return self.losses[-1] < min(self.losses[:-1], default=math.inf)

    def add(self, losses: np.ndarray) -> bool:
        """Add the losses of the samples after one more pass; return whether to continue."""
        rule = self.rule
        self.losses.append(float(losses.mean()))
        if rule.verbose:
            print(f"pass {len(self.losses)}: loss {self.losses[-1]:.4f}")
        if len(self.losses) == 1:
            self.best = losses
        elif rule.tol is not None:
            fall = self.best - losses
            chance = NOISE * float(fall.std()) / math.sqrt(len(fall))
            self.idle = 0 if fall.mean() > max(rule.tol, chance) else self.idle + 1
        if losses.mean() < self.best.mean():
            self.best = losses
        return self.idle < rule.n_iter_no_change and len(self.losses) < rule.max_iter


class Pilot:
    """A model that learns all samples but those of one part, which test it."""

    def __init__(self, model: Model, samples: Samples, learned: np.ndarray, held_out: np.ndarray) -> None:
        self.model, self.samples, self.held_out = model, samples, held_out
        self.order, self.started = samples.order(learned), False
        self.tested = model.fitted(samples.instances[held_out])

    def advance(self) -> PassResult:
        """Make a pass."""
        played = self.samples.play(self.model, self.order.next(), first=not self.started)
        self.started = True
        return played

    def scores(self) -> np.ndarray:
        """Return the scores of the held-out samples, in the unit of the model's record."""
        table = self.model.judge(self.tested)[1]
        return np.asarray(table / self.model.engine.top.unit(self.model.engine))


# -- fitting ----------------------------------------------------------------------------------------------------------


def foresee(model: Model, samples: Samples) -> None:
    """Let a pool for attributes that has learned nothing settle by some of the samples what it can."""
    if model.pool is not None:
        rows = samples.random.permutation(samples.rows)[:LAST]
        trials = model.fitted(samples.instances[rows])._replace(labels=samples.numbers(rows, model))
        model.pool.foresee(trials, len(model.classes))


def fit(model: Model, samples: Samples, rule: StoppingRule) -> tuple[Model, int, list[float]]:
    """Fit until the loss stops falling, and calibrate the probabilities on held-out samples.

    Returns
    -------
    Model, int, list
        The fitted model, which may be another one; its passes; and the loss at each check.
    """
    model.grow(model.layout, np.unique(samples.labels[samples.rows]).tolist())
    pool = samples.pooled
    if pool and rule.early_stopping == "auto":
        rule = replace(rule, n_iter_no_change=1)
        if len(samples.rows) < FEW_SAMPLES:
            rule = replace(rule, max_iter=min(rule.max_iter, FEW_PASSES), tol=None, early_stopping=False)
    if pool and rule.early_stopping is False:
        return _fit_pool(model, samples, rule)
    restart = None if pool else model.snapshot()
    pilots = [] if rule.max_iter == 1 and rule.early_stopping is not True else _pilots(model, samples, rule)
    if not pilots or rule.early_stopping is False:
        curve = _fit_all(model, samples, LossCurve(rule))
        passes = len(curve.losses)
        if pilots and passes > 1:
            for _ in range(passes):
                learned = [pilot.advance().learned for pilot in pilots]
                if not any(learned):
                    break
            _calibrate(model, samples, pilots, [pilot.scores() for pilot in pilots])
        return model, passes, curve.losses
    costly = pool and rule.early_stopping == "auto" and len(samples.rows) >= MANY_SAMPLES
    curve, best, going = LossCurve(rule), pilots[0].model, True
    while going:
        played = [pilot.advance() for pilot in pilots]
        latest = [pilot.scores() for pilot in pilots]
        going = curve.add(_losses(samples, pilots, latest)) and any(pass_.learned for pass_ in played)
        if costly and len(curve.losses) == 1 and rule.tol is not None:
            going = going and played[0].falls(rule.tol)
        if curve.latest_is_best:
            passes, scores = len(curve.losses), latest
            stored: Callable[[], Model] | None = pilots[0].model.snapshot() if going else None
    if rule.early_stopping is True or restart is None:
        best = pilots[0].model if stored is None else stored()
        if pool and rule.early_stopping is True:
            copy = best.snapshot()()
            samples.play(copy, samples.order(pilots[0].held_out).next(), first=False)
            _fuse_as(best, [copy])
        elif pool:
            samples.play(best, samples.order(pilots[0].held_out).next(), first=False)
    else:
        best = restart()
        order = samples.order(samples.rows)
        for number in range(passes):
            if not samples.play(best, order.next(), first=number == 0).learned:
                break
    if not pool:
        _calibrate(best, samples, pilots, scores)
    return best, passes, curve.losses


def _fit_pool(model: Model, samples: Samples, rule: StoppingRule) -> tuple[Model, int, list[float]]:
    """Fit a pool to all samples, and its fusion to predictions of members that have not learned the sample."""
    pilots = [] if rule.max_iter == 1 else _pilots(model, samples, rule)
    curve = _fit_all(model, samples, LossCurve(rule))
    if pilots and len(curve.losses) > 1:
        for pilot in pilots:
            for _ in curve.losses:
                pilot.advance()
            samples.play(pilot.model, samples.order(pilot.held_out).next(), first=False)
        _fuse_as(model, [pilot.model for pilot in pilots])
    return model, len(curve.losses), curve.losses


def _fuse_as(model: Model, others: list[Model]) -> None:
    """Let the pool of a model fuse its members as those of others, which were weighed by rows that were new to them."""
    pools = [other.pool for other in others]
    if model.pool is not None and all(p is not None and list(p.groups) == list(model.pool.groups) for p in pools):
        model.pool.fusion.take_over([p.fusion for p in pools if p is not None])


def _fit_all(model: Model, samples: Samples, curve: LossCurve) -> LossCurve:
    """Make passes over all samples until the mistakes, counted before labels are seen, stop falling."""
    order, going = samples.order(samples.rows), True
    while going:
        played = samples.play(model, order.next(), first=not curve.losses)
        going = curve.add(played.mistakes.mean(keepdims=True)) and played.learned
    return curve


def _pilots(model: Model, samples: Samples, rule: StoppingRule) -> list[Pilot]:
    """Return models that hold out a part of the samples: one a fraction, or of few samples two a half each.

    They are copies, except for the first where it becomes the fitted model.
    """
    rows = samples.rows
    if len(rows) < FEWEST_SAMPLES:
        if rule.early_stopping is True:
            raise ValueError(f"early_stopping=True needs {FEWEST_SAMPLES} samples or more, got {len(rows)}; try 'auto'")
        return []
    halves = len(rows) < FEW_SAMPLES and rule.early_stopping is not True
    share = max(rule.validation_fraction, 0.0 if rule.early_stopping is True else FEWEST_HELD_OUT / len(rows))
    parts = 2 if halves else max(2, round(1.0 / share))
    same = _distinct(samples.instances[rows], model)
    one = np.unique(same, return_index=True)[1]  # of each group of equal samples
    mixed = samples.random.permutation(len(one))
    by_class = mixed[np.argsort(samples.labels[rows[one[mixed]]], kind="stable")]
    part = np.empty(len(one), np.int64)
    part[by_class] = np.arange(len(one)) % parts  # stratified
    part = part[same]
    if not halves and rule.validation_fraction > 0.5:
        part = 1 - np.minimum(part, 1)
    copied, number = rule.early_stopping is False, 2 if halves else 1
    models = [model.snapshot()() if copied or place else model for place in range(number)]
    return [Pilot(copy, samples, rows[part != place], rows[part == place]) for place, copy in enumerate(models)]


def _distinct(instances: Instances, model: Model) -> np.ndarray:
    """Return a number for each sample, the same for samples with the same attributes; if these are few, its own."""
    marks = marks_of(model.fitted(instances))
    found, same = np.unique(marks, return_inverse=True)
    return same if len(found) >= FEWEST_SAMPLES else np.arange(len(instances))


def _losses(samples: Samples, pilots: list[Pilot], scores: list[np.ndarray]) -> np.ndarray:
    """Return the log losses of the held-out samples."""
    if not samples.pooled:
        return fit_losses(*_held_out(samples, pilots, scores))
    rows, table = np.concatenate([pilot.held_out for pilot in pilots]), np.concatenate(scores)
    return -samples.weights[rows] * table[np.arange(len(rows)), samples.numbers(rows, pilots[0].model)]


def _held_out(samples: Samples, pilots: list[Pilot], scores: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and label numbers of all held-out samples, repeated by weight."""
    rows = np.concatenate([pilot.held_out for pilot in pilots])
    order = np.repeat(np.arange(len(rows)), repetitions(samples.weights[rows], 0.5))
    return np.concatenate(scores)[order], samples.numbers(rows, pilots[0].model)[order]


def _calibrate(model: Model, samples: Samples, pilots: list[Pilot], scores: list[np.ndarray]) -> None:
    """Replace the scores in the model's record, which calibrate its probabilities, by those of held-out samples."""
    table, numbers = _held_out(samples, pilots, scores)
    order = np.random.RandomState(0).permutation(len(numbers))  # the ring keeps the last ones
    model.record.counts[JUDGED] = 0
    keep_table(model.record, np.ascontiguousarray(table[order]), numbers[order], np.full(len(order), table.shape[1]))
