"""Search for the comparator that minimizes a bound, and a run of the learner to compare."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from linmax.data.experts import Experts
from linmax.engine.notation import Learner, as_learner
from linmax.models.run import run
from linmax.models.threshold import LinearThreshold
from linmax.rules import REGISTRY
from linmax.techniques.voting import Voted
from linmax.theory.bounding import Bound, MultiplicativeBound
from linmax.theory.certificates.certificate import Certificate, says_nothing, shown_alpha
from linmax.theory.certificates.margins import NO_MARGIN, SOFTNESS, widest_margin_of
from linmax.theory.certificates.searching import search
from linmax.theory.differences import rows_of
from linmax.theory.mistake_bounds import LearnerBound, bound_of
from linmax.theory.rows import Rows, Vector
from linmax.util.blas import one_blas_thread
from linmax.util.checks import whole
from linmax.util.progress import LateProgress

__all__ = ["certify", "certify_rows"]

MOST_ROWS = 20_000
"""Above so many rows (trials times wrong classes) the comparator is sought on a sample of the trials."""

LEAST_MARGIN = 1e-5
"""No margin below this share of the largest is taken: too few digits of u.z are left to divide by it."""

BOUND_ROUNDING = 1e-8
"""Relative rounding error of a bound."""


def certify_rows(
    rows: Any,
    trial: npt.ArrayLike | None = None,
    learner: Any = "winnow",
    *,
    most_rows: int = MOST_ROWS,
    seed: int = 0,
) -> Certificate:
    """`certify` on the vectors z themselves (see `Rows`); nothing is run.

    Examples
    --------
    >>> certificate = certify_rows([[1.0, 0.0, 0.0], [1.0, 1.0, -1.0]] * 50, learner="perceptron")
    >>> round(certificate.bound, 6), round(certificate.margin, 6), certificate.separable
    (3.0, 1.0, True)
    """
    return _certify(Rows(rows, trial), _described(learner), whole("most_rows", most_rows, 1), seed)


def certify(
    instances: Any,
    labels: Sequence[Any],
    learner: Any = "winnow",
    *,
    most_rows: int = MOST_ROWS,
    seed: int = 0,
) -> Certificate:
    """The least mistake bound of a learner on given data, beside the mistakes that it makes there.

    Parameters
    ----------
    instances
        From `linmax.experts`; or an array (trials, attributes) with two labels: then the learner is run as
        `linmax.LinearThreshold`, without a constant (append a column of ones for a threshold).
    labels
        The right class of each instance.
    learner
        A rule, R- (recycling), V- (voting) or VR- of a rule, S- of perceptron or p-norm, B- of a rule that updates on
        mistakes only, or its text. "winnow", "committee" and "balanced-winnow" without a parameter take the alpha that
        theory recommends for these data.
    most_rows
        Above so many rows (trials times wrong classes) u is sought on a sample of the trials, which the
        certificate says; margin, noise and bound are of all trials in any case.
    seed
        Of that sample.

    Returns
    -------
    Certificate
        Prints as a short table.

    Notes
    -----
    Rows of zeros (all sub-experts agree on two classes) have margin 0 and count fully as noise. A bound is
    infinite where theory is silent: an alpha too large for every margin of the data, ALMA without
    projection on noisy data. The learner's own run is held against the bound: more mistakes or updates than
    it allows would be a bug of this package, and raise RuntimeError.

    See Also
    --------
    linmax.bounds : the bounds themselves.
    linmax.Trace.bound : the bound after each trial, for a given comparator.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.majority_problem(n=6, r=3, k=3, noise=0.0, trials=300, seed=1)
    >>> certificate = certify(linmax.experts(votes=data.votes), data.labels, "winnow(1.1)")
    >>> certificate.mistakes <= certificate.updates <= certificate.bound < 300
    True
    >>> print(certificate)
    winnow(1.1), 300 trials
    -----------------------
    mistakes    ... (... updates)
    bound       ...
    best alpha  ... (bound ...)
    margin      ...
    noise       ...
    separable   yes
    comparator  9 weights; ...
    """
    described = _described(learner)
    with LateProgress("certify") as progress:
        rows, names = rows_of(instances, labels, progress.tell)
        found = _certify(rows, described, whole("most_rows", most_rows, 1), seed, progress)
        rule = as_learner(f"{described}({found.alpha!r})") if isinstance(described, str) else described
        progress.tell("running the learner")
        many = isinstance(instances, Experts)
        trace = run(rule, instances, names) if many else LinearThreshold(rule).run(instances, names)
    if not found.expected:
        _stands(found, int(trace.wrong.sum()), None if isinstance(rule, Voted) else int(trace.model.updates))
    return replace(found, mistakes=int(trace.wrong.sum()), updates=int(trace.changed.sum()))


def _stands(found: Certificate, mistakes: int, updates: int | None) -> None:
    """A theorem that a run contradicts is an error of this package, and not to be shown to anyone."""
    for what, made in (("mistakes", mistakes), ("updates", updates)):
        if made is not None and made > found.bound * (1.0 + BOUND_ROUNDING):
            raise RuntimeError(
                f"internal error: {found.learner} made {made} {what} in {found.trials} trials, and its certificate "
                f"allows {found.bound:.6g}; this is a bug of linmax, please report it with the data"
            )


def _described(learner: Any) -> Learner | str:
    """A learner, or the bare name of a rule whose alpha is to be found."""
    name = learner.strip().lower().replace("_", "-") if isinstance(learner, str) else ""
    return name if name in REGISTRY and _needs_alpha(name) else as_learner(learner)


def _needs_alpha(name: str) -> bool:
    """Return whether a rule has an alpha without a default."""
    alpha = inspect.signature(REGISTRY[name]).parameters.get("alpha")
    return alpha is not None and alpha.default is alpha.empty


def _bound_of(learner: Learner | str, rows: Rows) -> LearnerBound:
    """The bound that the learner obeys; that of a bare name with the best alpha."""
    if not isinstance(learner, str):
        return bound_of(learner, rows)
    found = _at_best_alpha(bound_of(REGISTRY[learner](alpha=2.0), rows))  # any alpha: it is taken out again
    if found is None:
        raise ValueError(f"learner {learner!r}: its bound does not tell the best alpha; give one")
    return found


def _at_best_alpha(bound: LearnerBound) -> LearnerBound | None:
    """The bound with the best alpha, if it speaks of one."""
    inside = bound.of_rule
    return replace(bound, of_rule=replace(inside, alpha=None)) if isinstance(inside, MultiplicativeBound) else None


def _certify(
    rows: Rows, learner: Learner | str, most_rows: int, seed: int, progress: LateProgress | None = None
) -> Certificate:
    found = _bound_of(learner, rows)
    seen = found.of_rule.rows
    sample = _sample(seen, most_rows, seed)
    free = _at_best_alpha(found)
    with one_blas_thread():
        candidates, separable = _candidates(found, free, sample, progress)
        measured = [(u, np.sort(seen.lowest(u))) for u in candidates]
        u, margin, noise, bound = _best(found, measured)
        alpha = tuned = None
        if free is not None and isinstance(free.of_rule, MultiplicativeBound):
            best_u, best_margin, best_noise, tuned = _best(free, measured)
            learned = free.of_rule.measure(best_u)
            alpha = free.of_rule.best_alpha(learned, best_margin, free.counted(best_noise))
            tuned = free.total(tuned, seen.trials)
        bound = found.total(bound, seen.trials)
    most = min(float(seen.trials), found.total(seen.trials, seen.trials))
    named = f"({shown_alpha(alpha)})" if isinstance(learner, str) and alpha is not None else ""
    return Certificate(
        learner=f"{learner}{named}",
        trials=seen.trials,
        u=u,
        margin=margin,
        noise=noise,
        bound=bound,
        alpha=alpha,
        tuned_bound=tuned,
        mistakes=None,
        updates=None,
        vacuous=says_nothing(bound, most),
        separable=separable,
        sampled=None if sample is seen else sample.trials,
        expected=found.expected,
        most=most,
    )


def _sample(rows: Rows, most_rows: int, seed: int) -> Rows:
    count = rows.shape[0]
    if count <= most_rows:
        return rows
    chosen = max(1, rows.trials * most_rows // count)
    trials = np.random.default_rng(seed).choice(rows.trials, chosen, replace=False)
    return rows.take(trials)


def _candidates(
    found: LearnerBound, free: LearnerBound | None, sample: Rows, progress: LateProgress | None
) -> tuple[list[Vector], bool | None]:
    """Comparators worth measuring, for the given alpha and for the best; and whether the data are separable."""
    seen, bound = found.of_rule.rows, found.of_rule
    weight = seen.trials / sample.trials * (found.uses if math.isfinite(found.uses) else 1e6)
    candidates, separable = _hard(bound, sample, seen)
    fixed = isinstance(bound, MultiplicativeBound) and bound.alpha is not None
    for each in [bound, free.of_rule] if fixed and free is not None else [bound]:
        for stage, u in enumerate(search(each, sample, weight)):
            candidates.append(u)
            if progress is not None:
                progress.tell("searching for the comparator", stage / len(SOFTNESS))
    return candidates, separable


def _hard(bound: Bound, sample: Rows, seen: Rows) -> tuple[list[Vector], bool | None]:
    """The comparator of widest margin, if there is one, and whether the data are separable."""
    try:
        u, margin = widest_margin_of(sample, bound.order, bound.positive)
    except RuntimeError:
        return [], None
    if margin <= NO_MARGIN * sample.largest:
        return [], False
    if sample is seen:
        return [u], True
    return [u], True if float(seen.lowest(u).min()) > 0.0 else None


def _best(bound: LearnerBound, measured: list[tuple[Vector, Vector]]) -> tuple[Vector, float, float, float]:
    """The candidate, margin, noise and value with the least bound; the margin is sought along each candidate."""
    found = [(*_Line(bound, u, lowest).least(), u) for u, lowest in measured]
    value, margin, noise, u = min(found, key=lambda item: item[0])
    return u, margin, noise, value


class _Line:
    """The bound of one comparator as a function of the margin, which has one valley."""

    def __init__(self, bound: LearnerBound, u: Vector, lowest: Vector) -> None:
        self.of_learner, self.lowest = bound, lowest
        self.measure, self.reach = bound.of_rule.measure(u), bound.of_rule.reach

    def noise(self, margin: float) -> float:
        below = int(np.searchsorted(self.lowest, margin))
        return float((margin - self.lowest[:below]).sum())

    def bound(self, margin: float) -> float:
        return self.of_learner.value(self.measure, margin, self.noise(margin))

    def least(self) -> tuple[float, float, float]:
        """Bound, margin and noise at the bottom: golden section around the best of a grid."""
        # far beyond every u.z the bound comes near to one mistake a trial, which is the best for some data
        grid = np.geomspace(LEAST_MARGIN * self.reach, 1e8 * self.reach, 44)
        at = int(np.argmin([self.bound(float(margin)) for margin in grid]))
        low, high = float(grid[max(at - 1, 0)]), float(grid[min(at + 1, len(grid) - 1)])
        golden = (math.sqrt(5.0) - 1.0) / 2.0
        left, right = high - golden * (high - low), low + golden * (high - low)
        at_left, at_right = self.bound(left), self.bound(right)
        for _ in range(30):
            if at_left <= at_right:
                high, right, at_right = right, left, at_left
                left = high - golden * (high - low)
                at_left = self.bound(left)
            else:
                low, left, at_left = left, right, at_right
                right = low + golden * (high - low)
                at_right = self.bound(right)
        margins = [self.reach, float(grid[at]), left, right]
        if self.lowest[0] >= LEAST_MARGIN * self.reach:
            margins.append(float(self.lowest[0]))  # the largest margin without noise
        found = [self.bound(margin) for margin in margins]
        first = next(
            i for i, bound in enumerate(found) if bound <= min(found) * (1.0 + 1e-12)
        )  # of u = 0 all are equal
        return found[first], margins[first], self.noise(margins[first])
