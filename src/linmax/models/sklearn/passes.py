"""How a batch fit goes over its samples: pass after pass, until the loss no longer falls.

The loss is that of samples which were held out. It tells when to stop, and these samples' scores tell how sharp the
probabilities may be: those of samples that were learned, perhaps many times, are too good. In the end all samples are
learned, in as many passes as were best.

What a pool for attributes decides by the first rows of a stream it can decide here by rows from all of the batch. It
learns nearly all that it can in the first pass, so that the loss is looked at more often from then on, and in the end
it goes on with the samples that were held out instead of starting anew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linmax.data.experts import Experts
from linmax.engine.record import JUDGED, keep_table
from linmax.learners.attributes.warm_up import LAST
from linmax.models.calibration import fit_losses
from linmax.models.experts_model import ExpertsModel
from linmax.models.sklearn.weighting import Showing
from linmax.util.checks import at_least, whole

FEW_SAMPLES = 1000  # samples, of which all are held out once, in two halves, and not only a fraction
FEWEST_HELD_OUT = 300  # samples that are held out at least, where they are not few
FEWEST_SAMPLES = 12  # samples, of which none are held out
NOISE = 1.0  # standard errors by which a loss that still falls does so at least
LOOKS, LOOKS_OF_FEW = 8, 2  # at the loss of a pool, in each pass after the first


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
        if not (isinstance(self.early_stopping, (bool, np.bool_)) or self.early_stopping == "auto"):
            raise ValueError(f"early_stopping must be True, False or 'auto', got {self.early_stopping!r}")
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
    """Whether a loss still falls: at one of the last looks it has, by more than ``tol``, and not just by chance."""

    def __init__(self, plan: PassPlan, looks: int = 1) -> None:
        self.plan, self.looks = plan, looks  # in each pass after the first
        self.losses, self.idle, self.best = list[float](), 0, np.zeros(0)

    @property
    def passes(self) -> float:
        """Passes that were made."""
        return 1.0 + (len(self.losses) - 1) / self.looks if self.losses else 0.0

    @property
    def latest_is_best(self) -> bool:
        """Whether the loss has never been lower."""
        return min(self.losses) == self.losses[-1] and self.losses.count(self.losses[-1]) == 1

    def goes_on(self, losses: np.ndarray) -> bool:
        """Take the losses of the samples at one more look; whether another is worth it."""
        self.losses.append(float(losses.mean()))
        if self.plan.verbose:
            print(f"pass {self.passes:g}: loss {self.losses[-1]:.4f}")
        if len(self.losses) == 1:
            self.best = losses
        elif self.plan.tol is not None:
            fall = self.best - losses
            chance = NOISE * float(fall.std()) / math.sqrt(len(fall))
            self.idle = 0 if fall.mean() > max(self.plan.tol, chance) else self.idle + 1
        if losses.mean() < self.best.mean():
            self.best = losses
        return self.idle < self.plan.n_iter_no_change and self.passes < self.plan.max_iter


class Pilot:
    """A model that learns all samples but those of one part, which judge it."""

    def __init__(self, model: ExpertsModel, samples: Samples, learned: np.ndarray, held: np.ndarray) -> None:
        self.model, self.samples, self.held = model, samples, held
        self.showing, self.coming = samples.showing(learned), learned[:0]
        self.judging = model.fitted(samples.instances[held])
        self.begun = False

    def advance(self, looks: int = 1) -> bool:
        """A pass, or after the first the part of one up to the next look; whether anything was learned."""
        if not len(self.coming):
            self.coming = self.showing.order()
            self.step = -(-len(self.coming) // looks) if self.begun else len(self.coming)
        shown, self.coming = self.coming[: self.step], self.coming[self.step :]
        learned = one_pass(self.model, self.samples, shown, first=not self.begun)[0]
        self.begun = True
        return learned

    def scores(self) -> np.ndarray:
        """Of the samples that were held out, in the unit of the model's record."""
        table = self.model.judge(self.judging, len(self.held))[1]
        return np.asarray(table / self.model.engine.top.unit(self.model.engine))


def one_pass(model: ExpertsModel, samples: Samples, order: np.ndarray, first: bool) -> tuple[bool, float]:
    """Show the samples once; whether anything was learned, and the share of mistakes before the label was seen."""
    trace = model.run(samples.instances[order], samples.labels[order], grow=True, first_pass=first)
    return bool(trace.changed.any()), float(trace.mistakes[-1]) / len(order)


def foresee(model: ExpertsModel, samples: Samples) -> None:
    """Let a pool for attributes, which has learned nothing, decide by some of the samples what it can."""
    if model.pool is not None:
        rows = samples.random.permutation(samples.rows)[:LAST]
        place = {name: number for number, name in enumerate(model.classes)}
        numbers = np.array([place[name] for name in samples.labels[rows].tolist()], np.int32)
        model.pool.foresee(model.fitted(samples.instances[rows]), numbers, len(model.classes))


def fit(model: ExpertsModel, samples: Samples, plan: PassPlan) -> Fitted:
    """Let the model learn the samples until the loss no longer falls; fit its probabilities to samples held out.

    What comes of it may be another model, and this one be spent.
    """
    model.grow(model.layout, np.unique(samples.labels[samples.rows]).tolist())
    begin = model.kept() if model.pool is None else None
    pilots = [] if plan.max_iter == 1 and plan.early_stopping is not True else held_out(model, samples, plan)
    if not pilots or plan.early_stopping is False:
        found = by_mistakes(model, samples, plan)
        if pilots and found.passes > 1:
            calibrate(found.model, samples, pilots, scores_after(pilots, found.passes))
        return found
    looks = 1 if pilots[0].model.pool is None or plan.tol is None else LOOKS if len(pilots) == 1 else LOOKS_OF_FEW
    decline, going = Decline(plan, looks), True
    while going:
        learned = [pilot.advance(looks) for pilot in pilots]
        latest = [pilot.scores() for pilot in pilots]
        going = decline.goes_on(fit_losses(*judged(samples, pilots, latest))) and any(learned)
        if decline.latest_is_best:
            passes, scores, kept = math.ceil(decline.passes), latest, pilots[0].model.kept() if going else None
    if plan.early_stopping is True:
        model = pilots[0].model if kept is None else kept()
    elif begin is None:
        model = pilots[0].model if kept is None else kept()
        one_pass(model, samples, samples.showing(pilots[0].held).order(), first=False)
    else:
        model = begin()
        repeat(model, samples, passes)
    calibrate(model, samples, pilots, scores)
    return Fitted(model, passes, decline.losses)


def repeat(model: ExpertsModel, samples: Samples, passes: int) -> None:
    """So many passes over all samples, or until one changes nothing."""
    showing = samples.showing(samples.rows)
    for number in range(passes):
        if not one_pass(model, samples, showing.order(), first=number == 0)[0]:
            break


def by_mistakes(model: ExpertsModel, samples: Samples, plan: PassPlan) -> Fitted:
    """Passes over all samples, until mistakes, each made before the label was seen, become no fewer."""
    decline, showing, going = Decline(plan), samples.showing(samples.rows), True
    while going:
        learned, mistakes = one_pass(model, samples, showing.order(), first=not decline.losses)
        going = decline.goes_on(np.array([mistakes])) and learned
    return Fitted(model, len(decline.losses), decline.losses)


def held_out(model: ExpertsModel, samples: Samples, plan: PassPlan) -> list[Pilot]:
    """Models that have parts of the samples held out: one of a fraction, or of few samples two, of a half each.

    They are copies, but for the first where it becomes the model that is fitted.
    """
    rows = samples.rows
    if len(rows) < FEWEST_SAMPLES:
        if plan.early_stopping is True:
            raise ValueError(f"early_stopping=True needs {FEWEST_SAMPLES} samples or more, got {len(rows)}; try 'auto'")
        return []
    halves = len(rows) < FEW_SAMPLES and plan.early_stopping is not True
    share = max(plan.validation_fraction, 0.0 if plan.early_stopping is True else FEWEST_HELD_OUT / len(rows))
    parts = 2 if halves else max(2, round(1.0 / share))
    mixed = samples.random.permutation(rows)
    by_class = mixed[np.argsort(samples.labels[mixed], kind="stable")]
    part = np.empty(len(rows), np.int64)
    part[np.searchsorted(rows, by_class)] = np.arange(len(rows)) % parts  # of each class as much to every part
    if not halves and plan.validation_fraction > 0.5:
        part = 1 - np.minimum(part, 1)
    copied, number = plan.early_stopping is False, 2 if halves else 1
    models = [model.kept()() if copied or place else model for place in range(number)]
    return [Pilot(own, samples, rows[part != place], rows[part == place]) for place, own in enumerate(models)]


def scores_after(pilots: list[Pilot], passes: int) -> list[np.ndarray]:
    """What the samples that were held out score after so many passes."""
    for _ in range(passes):
        learned = [pilot.advance() for pilot in pilots]
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


def calibrate(model: ExpertsModel, samples: Samples, pilots: list[Pilot], scores: list[np.ndarray]) -> None:
    """Let the scores of samples that were held out stand for the model's own, for its probabilities."""
    table, numbers = judged(samples, pilots, scores)
    order = np.random.RandomState(0).permutation(len(numbers))  # the ring keeps the last ones
    model.record.counts[JUDGED] = 0
    keep_table(model.record, np.ascontiguousarray(table[order]), numbers[order], table.shape[1])
