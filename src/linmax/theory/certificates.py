"""Certificates: the best mistake bound that given data allow, and the mistakes that the learner really made.

A bound of `linmax.theory.bounds` holds for every comparator u and every margin. `certify` searches for the pair that
minimizes it, so that it says as much about these data as theory can.

The largest margin in the 1-norm and the least noise at a given margin are linear programs (HiGHS). The bound itself, as
a function of u and margin, is convex over affine for the multiplicative rules and a convex condition for the additive
ones, hence has no local minima: it is minimized by L-BFGS with a soft hinge that is sharpened in steps. The search may
stop short of the best u. The certificate is valid all the same, because margin, noise and bound are computed
afterwards, exactly and on all trials, for the u that was found.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linprog, minimize, nnls

from linmax.data.instances import Instances
from linmax.data.instances import instances as instances_of
from linmax.data.names import distinct_labels, label_array
from linmax.engine.notation import Learner, as_learner
from linmax.models.run import run
from linmax.rules import REGISTRY
from linmax.techniques.technique import LearnerLike
from linmax.techniques.voting import Voted
from linmax.theory import bounds
from linmax.theory.bounding import AdditiveBound, Bound, MultiplicativeBound, norm_of
from linmax.theory.mistake_bounds import LearnerBound, bound_of, rows_of
from linmax.theory.rows import Rows, Vector, comparator
from linmax.theory.threshold import LinearThreshold
from linmax.util.aliases import Label, Labels, Matrix, SparseMatrix
from linmax.util.blas import one_blas_thread
from linmax.util.checks import whole
from linmax.util.progress import LateProgress

__all__ = [
    "Certificate",
    "MulticlassMargin",
    "certify",
    "certify_rows",
    "hinge_noise",
    "least_noise",
    "multiclass_margin",
    "widest_margin",
]

MOST_ROWS = 20_000  # rows (trials times wrong classes) beyond which u is sought on a sample of the trials
LEAST_MARGIN = 1e-5  # smallest margin, relative to the largest: below it u.z has too few digits to divide by
NO_MARGIN = 1e-12  # margins below this share of the largest |z_i| are rounding
BOUND_ROUNDING = 1e-8  # relative rounding error of a bound
SOFTNESS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)  # of the hinge, relative to the margin, by rounds of the search
LP_SECONDS = 10.0  # time limit of a linear program; the search then continues without it


# -- certificates -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Certificate:
    """Largest number of mistakes that a learner can make on given data, and the number that it made.

    Attributes
    ----------
    learner
        The learner, as text.
    trials
        Number of trials.
    bound
        The learner makes at most this many mistakes on any data with this u, margin and noise; a rule also at
        most this many updates, and a recycled rule, with those on stored instances.
    u, margin, noise
        The comparator, its margin and its hinge noise over all trials. ||u|| = 1 in the norm of the bound:
        the 1-norm for the Winnow family, the q-norm for p-norm rules (2 for the Perceptron). A shorter u
        is one of Balanced Winnow with weight on both sides of an attribute (`bounds.divergence_balanced`);
        u = 0 is the best where nothing can be learned. For ALMA they are those of z/||z||_p. The noise of a
        trial is that of its worst rival, but for a rule with ``rivals="violated"`` the sum over all rivals,
        each of which can cause an update.
    alpha, tuned_bound
        The alpha that makes the bound least on these data, and that bound; None for rules without an alpha.
    mistakes, updates
        What the learner really did; None when it was not run.
    vacuous
        The bound is no less than ``most``, and so says nothing.
    separable
        Whether some u of the kind makes no mistake; None if it was not settled.
    widest
        (margin, bound) of the comparator that separates with the largest margin, where there is one. The least bound
        may still belong to another u or margin with some noise, which then appear as ``margin`` and ``noise``.
    sampled
        Number of trials on which u was sought, when not on all. Margin, noise and bound are of all trials
        in any case.
    expected
        The bound is one on the mean over the learner's own draws, which a single run may exceed.
    most
        Mistakes that the learner can make if it learns nothing: one a trial, but of B- in the mean a few less, as
        some of the classes drawn are right.
    """

    learner: str
    trials: int
    u: Vector
    margin: float
    noise: float
    bound: float
    alpha: float | None
    tuned_bound: float | None
    mistakes: int | None
    updates: int | None
    vacuous: bool
    separable: bool | None
    widest: tuple[float, float] | None
    sampled: int | None
    expected: bool
    most: float

    def __str__(self) -> str:
        lines = [
            ("mistakes", "not run" if self.mistakes is None else f"{self.mistakes} ({self.updates} updates)"),
            ("bound", f"{_shown(self.bound)}{' in the mean' * self.expected}{' (vacuous)' if self.vacuous else ''}"),
            ("margin", f"{self.margin:.6g}"),
            ("noise", f"{self.noise:.6g}"),
            ("separable", {True: "yes", False: "no", None: "not settled"}[self.separable]),
            ("comparator", self._heaviest()),
        ]
        if self.alpha is not None and self.tuned_bound is not None:
            empty = ", vacuous" if says_nothing(self.tuned_bound, self.most) else ""
            lines.insert(2, ("best alpha", f"{shown_alpha(self.alpha)} (bound {_shown(self.tuned_bound)}{empty})"))
        if self.widest is not None and self.noise > 0.0:
            margin, bound = self.widest
            without = f"{margin:.6g} (bound {_shown(bound)}); the margin and noise above bound less"
            lines.insert(-1, ("hard margin", without))
        if self.sampled is not None:
            lines.append(("sample", f"u was found on {self.sampled} of {self.trials} trials, and measured on all"))
        width = max(len(name) for name, _ in lines)
        head = f"{self.learner}, {self.trials} trials"
        return "\n".join([head, "-" * len(head), *(f"{name:<{width}}  {text}" for name, text in lines)])

    def _heaviest(self) -> str:
        order = np.argsort(-np.abs(self.u), kind="stable")[:4]
        shown = ", ".join(f"u[{i}] = {self.u[i]:.3g}" for i in order if self.u[i])
        return f"{len(self.u)} weights; {shown or 'all 0'}"


def says_nothing(bound: float, most: float) -> bool:
    """Return whether a bound is no less than the mistakes possible without any theory."""
    return bound >= most * (1.0 - 1e-9)


def shown_alpha(alpha: float) -> str:
    """Return an update factor with as many digits as distinguish it from 1.

    Examples
    --------
    >>> shown_alpha(1.1234567), shown_alpha(1.0000012345)
    ('1.12346', '1.00000123')
    """
    return next(
        text
        for digits in range(6, 18)
        if abs(float(text := f"{alpha:.{digits}g}") - alpha) <= 0.02 * (alpha - 1.0) or digits == 17
    )


def _shown(bound: float) -> str:
    return "infinite" if math.isinf(bound) else f"{bound:.1f}"


def certify(
    instances: Instances | Matrix,
    labels: Labels,
    learner: LearnerLike = "winnow",
    *,
    most_rows: int = MOST_ROWS,
    seed: int = 0,
) -> Certificate:
    """Return the least mistake bound of a learner on given data, and the mistakes that it makes there.

    Parameters
    ----------
    instances
        From `linmax.instances`; or an array (trials, attributes) with two labels: then the learner is run as
        `linmax.theory.LinearThreshold`, without a constant (append a column of ones for a threshold).
    labels
        The right class of each instance.
    learner
        A rule, R- (recycling), V- (voting) or VR- of a rule, S- of perceptron or p-norm, B- of a rule that updates on
        mistakes only, or its text. "winnow", "committee" and "balanced-winnow" without a parameter take the alpha that
        theory recommends for these data.
    most_rows
        Above this many rows (trials times wrong classes) u is sought on a sample of the trials, which the
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
    infinite where theory promises nothing: an alpha too large for every margin of the data, ALMA without
    projection on noisy data. The learner's run is checked against the bound: more mistakes or updates than
    it allows would be a bug of this package, and raise RuntimeError.

    See Also
    --------
    linmax.theory.bounds : the bounds themselves.
    linmax.Trace.bound : the bound after each trial, for a given comparator.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(n=6, r=3, k=3, noise=0.0, trials=300, seed=1)
    >>> certificate = certify(linmax.instances(votes=data.votes), data.labels, "winnow(1.1)")
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
    hard margin ...
    comparator  9 weights; ...
    """
    described = _described(learner)
    with LateProgress("certify") as progress:
        rows, names = rows_of(instances, labels, progress.update)
        found = _certify(rows, described, whole("most_rows", most_rows, 1), seed, progress)
        rule = as_learner(f"{described}({found.alpha!r})") if isinstance(described, str) else described
        progress.update("running the learner")
        if isinstance(instances, Instances):
            trace = run(rule, instances, names)
        else:
            trace = LinearThreshold(rule).run(instances, names)
    if not found.expected:
        _refuse_contradiction(
            found, int(trace.wrong.sum()), None if isinstance(rule, Voted) else int(trace.model.updates)
        )
    return replace(found, mistakes=int(trace.wrong.sum()), updates=int(trace.changed.sum()))


def certify_rows(
    rows: npt.ArrayLike | SparseMatrix,
    trial: npt.ArrayLike | None = None,
    learner: LearnerLike = "winnow",
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


def _refuse_contradiction(certificate: Certificate, mistakes: int, updates: int | None) -> None:
    """Raise if a run contradicts its bound, which can only be a bug."""
    for what, made in (("mistakes", mistakes), ("updates", updates)):
        if made is not None and made > certificate.bound * (1.0 + BOUND_ROUNDING):
            raise RuntimeError(
                f"internal error: {certificate.learner} made {made} {what} in {certificate.trials} trials, but its "
                f"certificate allows {certificate.bound:.6g}; this is a bug of linmax, please report it with the data"
            )


def _described(learner: LearnerLike) -> Learner | str:
    """Return a learner, or the bare name of a rule whose alpha is sought."""
    name = learner.strip().lower().replace("_", "-") if isinstance(learner, str) else ""
    return name if name in REGISTRY and _needs_alpha(name) else as_learner(learner)


def _needs_alpha(name: str) -> bool:
    """Return whether a rule has an alpha without a default."""
    alpha = inspect.signature(REGISTRY[name]).parameters.get("alpha")
    return alpha is not None and alpha.default is alpha.empty


def _bound_of(learner: Learner | str, rows: Rows) -> LearnerBound:
    """Return the bound of the learner; of a bare name, with the best alpha."""
    if not isinstance(learner, str):
        return bound_of(learner, rows)
    found = _at_best_alpha(bound_of(REGISTRY[learner](alpha=2.0), rows))  # any alpha: it is taken out again
    if found is None:
        raise ValueError(f"learner {learner!r}: its bound has no best alpha; pass one")
    return found


def _at_best_alpha(bound: LearnerBound) -> LearnerBound | None:
    """Return the bound with the best alpha, if it has one."""
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
        widest = None
        if separable:
            hard, lowest = measured[0]
            least = float(lowest[0])
            widest = least, found.total(found.value(found.of_rule.measure(hard), least, 0.0), seen.trials)
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
        widest=widest,
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
    """Return candidates for u, for the given alpha and for the best; and whether the data are separable."""
    seen, bound = found.of_rule.rows, found.of_rule
    weight = seen.trials / sample.trials * (found.uses if math.isfinite(found.uses) else 1e6)
    candidates, separable = _hard(bound, sample, seen)
    fixed = isinstance(bound, MultiplicativeBound) and bound.alpha is not None
    for each in [bound, free.of_rule] if fixed and free is not None else [bound]:
        for stage, u in enumerate(search(each, sample, weight)):
            candidates.append(u)
            if progress is not None:
                progress.update("searching for the comparator", stage / len(SOFTNESS))
    return candidates, separable


def _hard(bound: Bound, sample: Rows, seen: Rows) -> tuple[list[Vector], bool | None]:
    """Return the comparator with the largest margin, if there is one, and whether the data are separable."""
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
    """Return the candidate, margin, noise and value with the least bound, at the best margin of each candidate."""
    found = [(*_best_margin(bound, bound.of_rule.measure(u), lowest), u) for u, lowest in measured]
    value, margin, noise, u = min(found, key=lambda item: item[0])
    return u, margin, noise, value


def _best_margin(bound: LearnerBound, measure: float, lowest: Vector) -> tuple[float, float, float]:
    """Return the least bound of a comparator, its margin and noise: golden section around the best of a grid."""

    def noise(margin: float) -> float:
        below = int(np.searchsorted(lowest, margin))
        return float((margin - lowest[:below]).sum())

    def value(margin: float) -> float:
        return bound.value(measure, margin, noise(margin))

    # far beyond every u.z the bound comes near to one mistake a trial, which is the best for some data
    reach = bound.of_rule.reach
    grid = np.geomspace(LEAST_MARGIN * reach, 1e8 * reach, 44).tolist()
    at = int(np.argmin([value(margin) for margin in grid]))
    around = bounds.golden_section(value, grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)], 30)
    margins = [reach, grid[at], around]
    if lowest[0] >= LEAST_MARGIN * reach:
        margins.append(float(lowest[0]))  # the largest margin without noise
    values = [value(margin) for margin in margins]
    at = int(np.argmax(np.array(values) <= min(values) * (1.0 + 1e-12)))  # the first: of u = 0 all are equal
    return values[at], margins[at], noise(margins[at])


# -- comparators that minimize a bound --------------------------------------------------------------------------------


def search(bound: Bound, rows: Rows, weight: float) -> Iterator[Vector]:
    """Yield ever better comparators; ``rows`` may be a sample, whose noise counts ``weight`` times."""
    if isinstance(bound, AdditiveBound):
        return _search_additive(bound, rows, weight)
    return _search_multiplicative(bound, rows, weight)


def _search_additive(bound: AdditiveBound, rows: Rows, weight: float) -> Iterator[Vector]:
    scaled, factor = rows.scaled(1.0 / rows.largest), bound.factor / rows.largest

    def objective(v: Vector, softness: float) -> tuple[float, Vector]:
        noise, slope = scaled.soft_noise(v, 1.0, softness)
        rho, turn = factor * norm_of(v, bound.order), factor * slope_of_norm(v, bound.order)
        root = max(math.sqrt(rho * rho / 4.0 + weight * noise), 1e-150)
        return rho / 2.0 + root, turn / 2.0 + (rho * turn / 2.0 + weight * slope) / (2.0 * root)

    yield np.zeros(rows.shape[1])  # of data without a pattern nothing is better: a bound of one mistake a trial
    mean = np.asarray(scaled.matrix.mean(axis=0), float).ravel()
    direction = bound.unit(mean) if np.abs(mean).max() > 0.0 else bound.unit(np.ones_like(mean))
    lengths = np.geomspace(1e-2, 1e4, 25)
    v = direction * min(lengths, key=lambda c: objective(c * direction, 1.0)[0])
    yield direction
    for softness in SOFTNESS:
        v = descend(objective, v, softness)
        yield bound.unit(v)


def _search_multiplicative(bound: MultiplicativeBound, rows: Rows, weight: float) -> Iterator[Vector]:
    n = rows.shape[1]
    yield bound.unit(np.ones(n))
    if not bound.positive:
        yield np.zeros(n)
    fixed = None if bound.alpha is None else math.log(bound.alpha)
    if fixed is not None and math.isinf(fixed):
        return
    # below this margin the bound of a fixed alpha is infinite
    floor = bound.thickness if fixed is None else bounds.log_growth(fixed, bound.thickness, bound.largest) / fixed

    def objective(x: Vector, softness: float) -> tuple[float, Vector]:
        share = _softmax(x[:-1])
        u = share if bound.positive else share[:n] - share[n:]
        logs = np.log(np.maximum(share, 1e-300))
        learned = max(math.log(len(share)) + float(share @ logs), 1e-12)
        step = math.exp(x[-1])
        margin = floor + step
        noise, slope = rows.soft_noise(u, margin, softness * margin)
        noise, slope = max(weight * noise, 1e-300), weight * slope
        by_margin = (noise - float(u @ slope)) / margin  # the soft noise is homogeneous in (u, margin)
        rate = fixed or math.log(bounds.best_alpha(learned, margin, noise, bound.thickness, bound.largest))
        gain = rate * step  # for a fixed alpha, by the choice of the floor
        if fixed is None:
            exact = margin * rate - bounds.log_growth(rate, bound.thickness, bound.largest)
            gain = max(exact, 1e-12 * rate * margin)  # not below 0 where the difference is rounding
        cost = learned + rate * noise
        pull = rate * slope if bound.positive else rate * np.concatenate([slope, -slope])
        by_share = (logs + 1.0 + pull) / cost
        turn = share * (by_share - float(share @ by_share))
        return math.log(cost) - math.log(gain), np.append(turn, step * (rate * by_margin / cost - rate / gain))

    unit = max(bound.largest, floor)
    x = np.append(np.zeros(n if bound.positive else 2 * n), math.log(0.05 * unit))
    limits = [(None, None)] * (len(x) - 1) + [(math.log(1e-5 * unit), math.log(1e3 * unit))]
    for softness in SOFTNESS:
        x = descend(objective, x, softness, bounds=limits)
        share = _softmax(x[:-1])
        yield bound.unit(share) if bound.positive else share[:n] - share[n:]


def _softmax(x: Vector) -> Vector:
    parts = np.exp(x - x.max())
    return np.asarray(parts / parts.sum())


# -- largest margin and least noise ----------------------------------------------------------------------------------


def hinge_noise(
    rows: npt.ArrayLike | SparseMatrix, u: npt.ArrayLike, margin: float, trial: npt.ArrayLike | None = None
) -> float:
    """N = sum over trials of max(0, margin - u.z), over the worst row where a trial has several.

    Examples
    --------
    >>> hinge_noise([[1.0, 0.0], [-1.0, 0.0]], [1.0, 0.0], margin=0.5)
    1.5
    >>> hinge_noise([[1.0, 0.0], [-1.0, 0.0]], [1.0, 0.0], margin=0.5, trial=[0, 0])
    1.5
    """
    table = Rows(rows, trial)
    return table.noise(comparator(u, table), float(margin))


def slope_of_norm(v: Vector, order: float) -> Vector:
    """The gradient of ||v||, 0 at 0."""
    norm = norm_of(v, order)
    return np.zeros_like(v) if norm == 0.0 else np.sign(v) * (np.abs(v) / norm) ** (order - 1.0)


def _checked_order(order: float, positive_only: bool) -> float:
    if not 1.0 <= order <= 2.0:
        raise ValueError(f"order must be from 1 to 2, got {order!r}; 1 is for Winnow, 2 for the Perceptron")
    if positive_only and order != 1.0:
        raise ValueError(f"positive=True belongs to order=1, got order={order!r}")
    return float(order)


def widest_margin(
    rows: npt.ArrayLike | SparseMatrix,
    trial: npt.ArrayLike | None = None,
    *,
    order: float = 1.0,
    positive: bool = False,
) -> tuple[Vector, float]:
    """The comparator of unit norm with the largest margin, and that margin; not positive: not separable.

    maximise min over rows of u.z subject to ||u||_order = 1 (and u >= 0 if ``positive``).

    Order 1 is a linear program; order 2 the hard-margin support vector machine without bias, solved exactly as a
    least-distance problem (NNLS) unless it is very large; the others by a soft minimum that is made sharp in steps. For
    order > 1 data that are not separable give u = 0 and margin 0.

    Examples
    --------
    >>> u, margin = widest_margin([[1.0, 0.0], [0.0, 1.0]])
    >>> [round(x, 9) for x in u.tolist()], round(margin, 9)
    ([0.5, 0.5], 0.5)
    >>> u, margin = widest_margin([[1.0, 0.0], [0.0, 1.0]], order=2)
    >>> round(margin, 6)
    0.707107
    """
    order = _checked_order(order, positive)
    with one_blas_thread():
        return widest_margin_of(Rows(rows, trial), order, positive)


@dataclass(frozen=True, eq=False)
class MulticlassMargin:
    """Largest margin of the multi-class Perceptron on given data, and its bound; made by `multiclass_margin`.

    Attributes
    ----------
    gamma : float
        max over W of min over points p of label l and classes z != l of (w_l - w_z).p / sqrt(2 sum_i |w_i|^2); 0 where
        the data are not separable.
    radius : float
        R = max |p|_2.
    bound : float
        R^2/gamma^2, or infinity.
    weights : numpy.ndarray
        W, one row a class, sum_i |w_i|^2 = 1.
    classes : list
        Labels of the rows of W.
    """

    gamma: float
    radius: float
    bound: float
    weights: Vector
    classes: list[Label]


def multiclass_margin(attributes: Matrix, labels: Labels) -> MulticlassMargin:
    """Return gamma*, R and R^2/gamma*^2 of the multi-class Perceptron on given points.

    Parameters
    ----------
    attributes : array-like or sparse array
        One row a point; append a column of ones for a threshold.
    labels : sequence
        The class of each point.

    Returns
    -------
    MulticlassMargin
        The margin, the radius, the bound and the weights that reach the margin.

    References
    ----------
    Lecture slides on the multi-class Perceptron: at most R^2/gamma*^2 violations, in any order of the points.

    Examples
    --------
    >>> found = multiclass_margin([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], ["a", "b", "c"])
    >>> round(found.gamma, 4), round(found.radius, 4), round(found.bound, 4)
    (0.6124, 1.4142, 5.3333)
    """
    instances = instances_of(attributes=attributes, thresholds=False)
    with LateProgress("margin") as progress:
        rows, _ = rows_of(instances, labels, progress.update)
    u, margin = widest_margin(rows.matrix, rows.owners, order=2.0)
    classes = distinct_labels(label_array(labels))[0]
    gamma, radius = max(0.0, margin) / math.sqrt(2.0), instances.radius
    bound = bounds.multiclass_perceptron(radius, gamma)
    return MulticlassMargin(gamma, radius, bound, u.reshape(-1, len(classes)).T, classes)


def widest_margin_of(table: Rows, order: float, positive: bool) -> tuple[Vector, float]:
    scaled = table.scaled(1.0 / table.largest)  # the solvers take what is far below 1 for 0
    u = _linear_program(scaled, positive, -np.ones((table.shape[0], 1)), 0.0, -np.ones(1), None)
    u = u / (float(np.abs(u).sum()) or 1.0)
    if order > 1.0:
        if float(scaled.lowest(u).min()) <= NO_MARGIN:
            return np.zeros(table.shape[1]), 0.0
        exact = order == 2.0 and math.prod(table.shape) <= 2_000_000
        u = _least_distance(scaled) if exact else _soft_margin(scaled, order, u)
    return u, float(table.lowest(u).min())


def _linear_program(
    rows: Rows, positive: bool, extra: np.ndarray | sparse.sparray, limit: float, cost: Vector, least: float | None
) -> Vector:
    """Minimize cost.v subject to u.z + extra v >= limit in each row, sum |u_i| = 1 and v >= least; return u."""
    block, n = sparse.csr_array(rows.matrix), rows.shape[1]
    if not positive:  # u is a difference of two blocks of weights >= 0
        block = sparse.hstack([block, -block], format="csr")
    count, width = block.shape
    result = linprog(
        np.append(np.zeros(width), cost),
        A_ub=-sparse.hstack([block, extra], format="csr"),
        b_ub=np.full(count, -limit),
        A_eq=sparse.csr_array(np.append(np.ones(width), np.zeros(len(cost)))[None, :]),
        b_eq=[1.0],
        bounds=[(0.0, None)] * width + [(least, None)] * len(cost),
        method="highs",
        options={"time_limit": LP_SECONDS},
    )
    if result.x is None or result.status != 0:
        raise RuntimeError(f"the linear program was not solved: {result.message}; take fewer rows")
    return np.asarray(result.x[:n] if positive else result.x[:n] - result.x[n:width])


def _least_distance(rows: Rows) -> Vector:
    """min ||v||_2 subject to v.z >= 1 for all rows (Lawson and Hanson, chapter 23), at unit length."""
    dense = rows.dense()
    stacked = np.vstack([dense.T, np.ones(len(dense))])
    weights, _ = nnls(stacked, np.append(np.zeros(dense.shape[1]), 1.0), maxiter=10 * len(dense) + 1000)
    u = dense.T @ weights
    return np.asarray(u / (norm_of(u, 2.0) or 1.0))


def _soft_margin(rows: Rows, order: float, start: Vector) -> Vector:
    """maximise the soft minimum -s ln sum exp(-u.z/s) over u = x/||x||, with s ever smaller against the margin."""

    def objective(x: Vector, softness: float) -> tuple[float, Vector]:
        size = norm_of(x, order)
        u = x / size
        reach = rows.matrix @ u / softness
        least = float(reach.min())
        parts = np.exp(least - reach)
        total = float(parts.sum())
        slope = -(rows.matrix.T @ (parts / total))
        slope = (slope - float(slope @ u) * slope_of_norm(x, order)) / size
        return softness * (math.log(total) - least), slope

    best = start / norm_of(start, order)
    for softness in (*SOFTNESS, 3e-4, 1e-4, 1e-5):
        margin = float(rows.lowest(best).min())
        x = descend(objective, best, softness * margin)
        best = max(best, x / norm_of(x, order), key=lambda u: float(rows.lowest(u).min()))
    return np.asarray(best)


def least_noise(
    rows: npt.ArrayLike | SparseMatrix,
    margin: float,
    trial: npt.ArrayLike | None = None,
    *,
    order: float = 1.0,
    positive: bool = False,
) -> tuple[Vector, float]:
    """The comparator with the least hinge noise at a given margin, and that noise.

    minimise sum over trials of max(0, margin - min_j u.z) subject to ||u||_order <= 1, or to u >= 0 and
    sum u_i = 1 if ``positive``.

    Order 1 is a linear program. Other orders follow the path of min ||v||^2/2 + C noise(v, 1), each a smooth
    problem, until ||v|| = 1/margin.

    Examples
    --------
    >>> u, noise = least_noise([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], margin=0.5)
    >>> round(noise, 9)
    1.0
    """
    table = Rows(rows, trial)
    order = _checked_order(order, positive)
    if not margin > 0.0:
        raise ValueError(f"margin must be > 0, got {margin!r}; try widest_margin first")
    scaled, wanted = table.scaled(1.0 / table.largest), float(margin) / table.largest
    with one_blas_thread():
        if order == 1.0:
            count, trials = table.shape[0], table.trials
            slack = sparse.csr_array((np.ones(count), (np.arange(count), table.owners)), shape=(count, trials))
            u = _linear_program(scaled, positive, slack, wanted, np.ones(trials), 0.0)
        else:
            v = _path(scaled, order, 1.0 / wanted)
            u = v / max(1.0 / wanted, norm_of(v, order))
            u = min((u, _polished(scaled, order, wanted, u)), key=lambda x: scaled.noise(x, wanted))
    return u, table.noise(u, float(margin))


def descend(objective: Callable[..., tuple[float, Vector]], start: Vector, softness: float, **limits: Any) -> Vector:
    """Minimize the objective by L-BFGS."""
    options = {"maxiter": 500, "maxcor": 30, "ftol": 1e-12, "gtol": 1e-9}
    found = minimize(objective, start, args=(softness,), jac=True, method="L-BFGS-B", options=options, **limits)
    return np.asarray(found.x)


def _path(rows: Rows, order: float, length: float) -> Vector:
    """min ||v||_order^2/2 + C noise(v, 1), C such that ||v|| = length (or large, when v stays shorter)."""

    def at(log_c: float, v: Vector, rounds: Sequence[float]) -> Vector:
        c = math.exp(log_c)

        def objective(x: Vector, softness: float) -> tuple[float, Vector]:
            norm = norm_of(x, order)
            noise, slope = rows.soft_noise(x, 1.0, softness)
            return 0.5 * norm**2 + c * noise, norm * slope_of_norm(x, order) + c * slope

        for softness in rounds:
            v = descend(objective, v, softness)
        return v

    low, high = math.log(1e-6 / rows.trials), math.log(1e6)
    v = at(low, np.zeros(rows.shape[1]), SOFTNESS[:4])
    while high - low > 1e-2:
        middle = 0.5 * (low + high)
        v = at(middle, v, SOFTNESS[3:5])
        low, high = (low, middle) if norm_of(v, order) > length else (middle, high)
    return at(high, v, SOFTNESS[3:])


def _polished(rows: Rows, order: float, margin: float, u: Vector) -> Vector:
    """Solve the problem from a nearby start, with a sharper hinge, over u = x/max(1, ||x||)."""

    def objective(x: Vector, softness: float) -> tuple[float, Vector]:
        size = max(1.0, norm_of(x, order))
        noise, slope = rows.soft_noise(x / size, margin, softness * margin)
        if size > 1.0:
            slope = (slope - float(slope @ x) / size * slope_of_norm(x, order)) / size
        return noise, slope

    # from outside the ball when u lies on it, so that the search moves along its surface
    x = 2.0 * u if norm_of(u, order) > 0.99 else u
    for softness in (1e-2, 1e-3, 1e-4):
        x = descend(objective, x, softness)
    return np.asarray(x / max(1.0, norm_of(x, order)))
