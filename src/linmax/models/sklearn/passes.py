"""How a batch fit goes over its samples: pass after pass, until the loss no longer falls.

The loss is that of samples which were held out. It tells when to stop, and these samples' scores tell how sharp the
probabilities may be: those of samples that were learned, perhaps many times, are too good.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from linmax.data.experts import Experts
from linmax.engine.record import JUDGED, keep_table
from linmax.models.calibration import fit_loss
from linmax.models.experts_model import ExpertsModel
from linmax.models.sklearn.weighting import Showing
from linmax.util.checks import at_least, boolean, whole

FEW_SAMPLES = 1000  # samples, of which all are held out once, in FOLDS parts, and not only a fraction
FOLDS = 4
FEWEST_SAMPLES = 12  # samples, of which none are held out


@dataclass(frozen=True)
class PassPlan:
    """When a fit ends, in scikit-learn's words."""

    max_iter: int
    tol: float | None
    early_stopping: bool | str
    validation_fraction: float
    n_iter_no_change: int
    verbose: int

    def check(self) -> None:
        """Refuse what cannot be."""
        whole("max_iter", self.max_iter, 1)
        whole("n_iter_no_change", self.n_iter_no_change, 1)
        if self.tol is not None:
            at_least("tol", self.tol, 0.0)
        if not (isinstance(self.early_stopping, str) and self.early_stopping == "auto"):
            boolean("early_stopping", self.early_stopping)
        if not 0.0 < self.validation_fraction < 1.0:
            raise ValueError(f"validation_fraction must be between 0 and 1, got {self.validation_fraction!r}; try 0.1")


@dataclass(frozen=True)
class Samples:
    """What is learned, and in which order passes show it."""

    instances: Experts
    labels: np.ndarray
    weights: np.ndarray
    shuffle: bool
    random: np.random.RandomState

    def showing(self, rows: np.ndarray) -> Showing:
        """The passes over these rows."""
        return Showing(rows, self.weights, np.random.RandomState(self.random.randint(2**31)) if self.shuffle else None)

    @property
    def rows(self) -> np.ndarray:
        """Those that are shown at all."""
        return np.flatnonzero(self.weights > 0.0)


@dataclass
class Fitted:
    """What came of a fit."""

    model: ExpertsModel
    passes: int
    losses: list[float]  # after each pass


class Decline:
    """Whether a loss still falls: it has, by more than ``tol``, within the last passes."""

    def __init__(self, plan: PassPlan) -> None:
        self.plan, self.losses, self.best, self.idle = plan, list[float](), np.inf, 0

    def goes_on(self, loss: float) -> bool:
        """Take the loss of one more pass; whether another is worth it."""
        if self.plan.verbose:
            print(f"pass {len(self.losses) + 1}: loss {loss:.4f}")
        self.losses.append(loss)
        if self.plan.tol is not None:
            self.idle = 0 if loss < self.best - self.plan.tol else self.idle + 1
        self.best = min(self.best, loss)
        return self.idle < self.plan.n_iter_no_change and len(self.losses) < self.plan.max_iter


class Pilot:
    """A model that learns all samples but those of one part, which judge it."""

    def __init__(self, model: ExpertsModel, samples: Samples, learned: np.ndarray, held: np.ndarray) -> None:
        self.model, self.samples, self.held = model, samples, held
        self.showing = samples.showing(learned)
        self.judging = samples.instances[held]

    def advance(self, first: bool) -> bool:
        """One pass; whether anything was learned."""
        return one_pass(self.model, self.samples, self.showing.order(), first)[0]

    def scores(self) -> np.ndarray:
        """Of the samples that were held out, in the unit of the model's record."""
        table = self.model.judge(self.model.fitted(self.judging), len(self.held))[1]
        return np.asarray(table / self.model.engine.top.unit(self.model.engine))


def one_pass(model: ExpertsModel, samples: Samples, order: np.ndarray, first: bool) -> tuple[bool, float]:
    """Show the samples once; whether anything was learned, and the share of mistakes before the label was seen."""
    trace = model.run(samples.instances[order], samples.labels[order], grow=True, first_pass=first)
    return bool(trace.changed.any()), float(trace.mistakes[-1]) / len(order)


def fit(begin: Callable[[], ExpertsModel], samples: Samples, plan: PassPlan) -> Fitted:
    """Learn the samples until the loss no longer falls, and fit the probabilities to samples that were held out.

    ``begin`` gives a model to go on from, the same each time.
    """
    pilots = [] if plan.max_iter == 1 and plan.early_stopping is not True else held_out(begin, samples, plan)
    if not pilots or plan.early_stopping is False:
        found = by_mistakes(begin(), samples, plan)
        if pilots and found.passes > 1:
            calibrate(found.model, samples, pilots, scores_after(pilots, found.passes))
        return found
    kept = begin() if plan.early_stopping is True else None
    decline, best, scores, going = Decline(plan), 0, [], True
    while going:
        learned = [pilot.advance(first=not decline.losses) for pilot in pilots]
        latest = [pilot.scores() for pilot in pilots]
        loss = held_out_loss(samples, pilots, latest)
        if not decline.losses or loss < decline.best:
            best, scores = len(decline.losses) + 1, latest
            if kept is not None:
                kept = deepcopy(pilots[0].model)
        going = decline.goes_on(loss) and any(learned)
    if kept is None:
        kept, showing = begin(), samples.showing(samples.rows)
        for number in range(best):
            if not one_pass(kept, samples, showing.order(), first=number == 0)[0]:
                break
    calibrate(kept, samples, pilots, scores)
    return Fitted(kept, best, decline.losses)


def by_mistakes(model: ExpertsModel, samples: Samples, plan: PassPlan) -> Fitted:
    """Passes over all samples, until mistakes, each made before the label was seen, become no fewer."""
    decline, showing, going = Decline(plan), samples.showing(samples.rows), True
    while going:
        learned, loss = one_pass(model, samples, showing.order(), first=not decline.losses)
        going = decline.goes_on(loss) and learned
    return Fitted(model, len(decline.losses), decline.losses)


def held_out(begin: Callable[[], ExpertsModel], samples: Samples, plan: PassPlan) -> list[Pilot]:
    """Models that have parts of the samples held out: one of a fraction, or of few samples several, of all parts."""
    rows = samples.rows
    if len(rows) < FEWEST_SAMPLES:
        if plan.early_stopping is True:
            raise ValueError(f"early_stopping=True needs {FEWEST_SAMPLES} samples or more, got {len(rows)}; try 'auto'")
        return []
    several = len(rows) < FEW_SAMPLES and plan.early_stopping is not True
    parts = FOLDS if several else max(2, round(1.0 / plan.validation_fraction))
    mixed = samples.random.permutation(rows)
    by_class = mixed[np.argsort(samples.labels[mixed], kind="stable")]
    part = np.empty(len(rows), np.int64)
    part[np.searchsorted(rows, by_class)] = np.arange(len(rows)) % parts  # of each class as much to every part
    if not several and plan.validation_fraction > 0.5:
        part = 1 - np.minimum(part, 1)
    return [
        Pilot(begin(), samples, rows[part != number], rows[part == number]) for number in range(FOLDS if several else 1)
    ]


def scores_after(pilots: list[Pilot], passes: int) -> list[np.ndarray]:
    """What the samples that were held out score after so many passes."""
    for number in range(passes):
        learned = [pilot.advance(first=number == 0) for pilot in pilots]
        if not any(learned):
            break
    return [pilot.scores() for pilot in pilots]


def judged(samples: Samples, pilots: list[Pilot], scores: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Scores and numbers of the labels of all samples that were held out, each as often as it is shown."""
    rows, table = np.concatenate([pilot.held for pilot in pilots]), np.concatenate(scores)
    place = {name: number for number, name in enumerate(pilots[0].model.classes)}
    numbers = np.array([place[name] for name in samples.labels[rows].tolist()], np.int32)
    order = Showing(np.arange(len(rows)), samples.weights[rows], None).order()
    return table[order], numbers[order]


def held_out_loss(samples: Samples, pilots: list[Pilot], scores: list[np.ndarray]) -> float:
    """The mean log loss of samples that were held out, under the probabilities that suit their scores best."""
    return fit_loss(*judged(samples, pilots, scores))


def calibrate(model: ExpertsModel, samples: Samples, pilots: list[Pilot], scores: list[np.ndarray]) -> None:
    """Let the scores of samples that were held out stand for the model's own, for its probabilities."""
    table, numbers = judged(samples, pilots, scores)
    order = np.random.RandomState(0).permutation(len(numbers))  # the ring keeps the last ones
    model.record.counts[JUDGED] = 0
    keep_table(model.record, np.ascontiguousarray(table[order]), numbers[order], table.shape[1])
