"""The search for the comparator that makes a bound least, and what the learner did beside it."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from linmax import bounds
from linmax.core.contract import Rule
from linmax.data.instances import Experts
from linmax.data.labels import label_array, unique_labels
from linmax.engine.notation import Learner, as_learner
from linmax.models.run import run
from linmax.models.threshold import LinearThreshold
from linmax.techniques.recycling import Recycled
from linmax.techniques.voting import Voted
from linmax.theory.certificates.margins import (
    NO_MARGIN,
    SOFTNESS,
    Rows,
    Vector,
    comparator,
    one_thread,
    widest_margin_of,
)
from linmax.theory.certificates.plans import TUNABLE, Multiplicative, Plan, plan_of
from linmax.util.checks import finite, whole

MOST_ROWS = 20_000
"""Above so many rows (trials times wrong classes) the comparator is sought on a sample of the trials."""

LEAST_MARGIN = 1e-5
"""No margin below this share of the largest is taken: too few digits of u.z are left to divide by it."""

ROUNDING = 1e-8
"""What rounding can add to a bound, relative to it."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """How many mistakes a learner can make on given data, at most, and how many it made.

    Attributes
    ----------
    learner
        The learner, as text.
    trials
        Number of trials.
    bound
        The learner makes at most so many mistakes on any data with this u, margin and noise; a rule also at
        most so many updates, and a recycled rule, with those on stored instances.
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
        The bound is no less than the number of trials, and so says nothing.
    separable
        Whether some u of the kind makes no mistake; None if it was not settled.
    sampled
        Number of trials on which u was sought, when not on all. Margin, noise and bound are of all trials
        in any case.
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
    sampled: int | None

    def __str__(self) -> str:
        lines = [
            ("mistakes", "not run" if self.mistakes is None else f"{self.mistakes} ({self.updates} updates)"),
            ("bound", f"{_shown(self.bound)}{' (vacuous)' if self.vacuous else ''}"),
            ("margin", f"{self.margin:.6g}"),
            ("noise", f"{self.noise:.6g}"),
            ("separable", {True: "yes", False: "no", None: "not settled"}[self.separable]),
            ("comparator", self._heaviest()),
        ]
        if self.alpha is not None and self.tuned_bound is not None:
            empty = ", vacuous" if _says_nothing(self.tuned_bound, self.trials) else ""
            lines.insert(2, ("best alpha", f"{self.alpha:.6g} (bound {_shown(self.tuned_bound)}{empty})"))
        if self.sampled is not None:
            lines.append(("sample", f"u was sought on {self.sampled} of {self.trials} trials, measured on all"))
        width = max(len(name) for name, _ in lines)
        head = f"{self.learner}, {self.trials} trials"
        return "\n".join([head, "-" * len(head), *(f"{name:<{width}}  {text}" for name, text in lines)])

    def _heaviest(self) -> str:
        order = np.argsort(-np.abs(self.u), kind="stable")[:4]
        shown = ", ".join(f"u[{i}] = {self.u[i]:.3g}" for i in order if self.u[i])
        return f"{len(self.u)} weights; {shown or 'all 0'}"


def _says_nothing(bound: float, trials: int) -> bool:
    return bound >= trials * (1.0 - 1e-9)


def _shown(bound: float) -> str:
    return "infinite" if math.isinf(bound) else f"{bound:.1f}"


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
        A rule, R- (recycling), V- (voting) or VR- of a rule, or its text. "winnow", "committee" and
        "balanced-winnow" without a parameter take the alpha that theory recommends for these data.
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
    with Patience("certify") as patience:
        rows, names = _rows_of(instances, labels, patience)
        found = _certify(rows, described, whole("most_rows", most_rows, 1), seed, patience)
        rule = as_learner(f"{described}({found.alpha!r})") if isinstance(described, str) else described
        patience.tell("running the learner")
        many = isinstance(instances, Experts)
        trace = run(rule, instances, names) if many else LinearThreshold(rule).run(instances, names)
    _stands(found, int(trace.wrong.sum()), None if isinstance(rule, Voted) else int(trace.model.updates))
    return replace(found, mistakes=int(trace.wrong.sum()), updates=int(trace.changed.sum()))


def _stands(found: Certificate, mistakes: int, updates: int | None) -> None:
    """A theorem that a run contradicts is an error of this package, and not to be shown to anyone."""
    for what, made in (("mistakes", mistakes), ("updates", updates)):
        if made is not None and made > found.bound * (1.0 + ROUNDING):
            raise RuntimeError(
                f"internal error: {found.learner} made {made} {what} in {found.trials} trials, and its certificate "
                f"allows {found.bound:.6g}; this is a bug of linmax, please report it with the data"
            )


def _described(learner: Any) -> Learner | str:
    """A learner, or the bare name of a rule whose alpha is to be found."""
    name = learner.strip().lower().replace("_", "-") if isinstance(learner, str) else ""
    return name if name in TUNABLE else as_learner(learner)


@dataclass(frozen=True)
class _Unwrapped:
    """The rule inside, how often recycling may use an instance, and the first wait of voting."""

    rule: Rule | str
    uses: float = 1.0
    wait: int | None = None

    def total(self, bound: float, trials: int) -> float:
        """The bound of the whole learner from that of its rule."""
        return bound if self.wait is None else bounds.voting(bound, bounds.most_restarts(trials, self.wait))


def _unwrapped(learner: Learner | str) -> _Unwrapped:
    if isinstance(learner, (str, Rule)):
        return _Unwrapped(learner)
    if isinstance(learner, Voted) and isinstance(learner.base, (Rule, Recycled)):
        return replace(_unwrapped(learner.base), wait=learner.d)
    if isinstance(learner, Recycled) and isinstance(learner.base, Rule):
        return _Unwrapped(learner.base, learner.u)
    raise ValueError(f"no bound is known for {learner}; known: rules, R- and V- of a rule, VR- of a rule")


def _rows_of(instances: Any, labels: Sequence[Any], patience: Patience) -> tuple[Rows, Any]:
    names = label_array(labels)
    size = instances.shape[0] if sparse.issparse(instances) else len(instances)
    if names.ndim != 1 or len(names) != size:
        raise ValueError(f"labels must be one a trial: got shape {names.shape} for {size} instances")
    if size == 0:
        raise ValueError("there are no trials to certify; give at least one")
    distinct, inverse = unique_labels(names)
    if not isinstance(instances, Experts):
        return _two_class_rows(instances, distinct, inverse), names
    classes = _class_order(instances, distinct)
    if len(classes) < 2:
        raise ValueError(
            f"labels must have two classes or more, got only {classes!r}; one class leaves nothing to learn"
        )
    blocks = []
    for t, place in enumerate(inverse):
        blocks.append(sparse.csr_array(instances.differences(t, distinct[place], classes)))
        patience.tell("reading the instances", t / size)
    matrix = sparse.vstack(blocks, format="csr")
    dense = matrix.nnz > 0.2 * math.prod(matrix.shape) and math.prod(matrix.shape) <= 50_000_000
    return Rows(matrix.toarray() if dense else matrix, np.repeat(np.arange(size), len(classes) - 1)), names


def _class_order(instances: Experts, distinct: list[Any]) -> list[Any]:
    """The classes in the order in which a run numbers them, so that u is laid out like its weights."""
    if instances.fixed:
        unknown = [name for name in distinct if name not in instances.names]
        if unknown:
            raise ValueError(f"labels: {unknown[0]!r} is not among the classes {list(instances.names)!r}")
        return list(instances.names)
    try:
        return sorted({*instances.names, *distinct})
    except TypeError:  # labels of several kinds have no order
        return list(dict.fromkeys([*distinct, *instances.names]))


def _two_class_rows(attributes: Any, distinct: list[Any], inverse: npt.NDArray[Any]) -> Rows:
    if len(distinct) != 2:
        raise ValueError(f"labels must be two for plain attributes, got {distinct[:5]!r}; use experts(attributes=...)")
    signs = np.where(inverse == 1, 1.0, -1.0)
    if sparse.issparse(attributes):
        return Rows(sparse.csr_array(sparse.diags_array(signs) @ sparse.csr_array(attributes)))
    table = np.asarray(attributes, dtype=float)
    if table.ndim != 2:
        raise ValueError(f"instances must be (trials, attributes), got shape {table.shape}")
    return Rows(signs[:, None] * table)


def _certify(
    rows: Rows, learner: Learner | str, most_rows: int, seed: int, patience: Patience | None = None
) -> Certificate:
    inside = _unwrapped(learner)
    plan, seen = plan_of(inside.rule, rows)
    sample = _sample(seen, most_rows, seed)
    free = replace(plan, alpha=None)
    weight = seen.trials / sample.trials * (inside.uses if math.isfinite(inside.uses) else 1e6)
    with one_thread():
        candidates, separable = _hard(plan, sample, seen)
        for each in [plan] if plan == free else [plan, free]:
            for stage, u in enumerate(each.search(sample, weight)):
                candidates.append(u)
                if patience is not None:
                    patience.tell("searching for the comparator", stage / len(SOFTNESS))
        measured = [(u, np.sort(seen.lowest(u))) for u in candidates]
        u, margin, noise, bound = _best(plan, measured, inside.uses)
        alpha = tuned = None
        if isinstance(free, Multiplicative):
            best_u, best_margin, best_noise, tuned = _best(free, measured, inside.uses)
            alpha = free.best_alpha(free.measure(best_u), best_margin, _counted(best_noise, inside.uses))
            tuned = inside.total(tuned, seen.trials)
        bound = inside.total(bound, seen.trials)
    named = isinstance(learner, str) and alpha is not None
    return Certificate(
        learner=f"{learner}({alpha:g})" if named else str(learner),
        trials=seen.trials,
        u=u,
        margin=margin,
        noise=noise,
        bound=bound,
        alpha=alpha,
        tuned_bound=tuned,
        mistakes=None,
        updates=None,
        vacuous=_says_nothing(bound, seen.trials),
        separable=separable,
        sampled=None if sample is seen else sample.trials,
    )


def _sample(rows: Rows, most_rows: int, seed: int) -> Rows:
    count = rows.shape[0]
    if count <= most_rows:
        return rows
    chosen = max(1, rows.trials * most_rows // count)
    trials = np.random.default_rng(seed).choice(rows.trials, chosen, replace=False)
    return rows.take(trials)


def _hard(plan: Plan, sample: Rows, seen: Rows) -> tuple[list[Vector], bool | None]:
    """The comparator of widest margin, if there is one, and whether the data are separable."""
    try:
        u, margin = widest_margin_of(sample, plan.order, plan.positive)
    except RuntimeError:
        return [], None
    if margin <= NO_MARGIN * sample.largest:
        return [], False
    if sample is seen:
        return [u], True
    return [u], True if float(seen.lowest(u).min()) > 0.0 else None


def _best(plan: Plan, measured: list[tuple[Vector, Vector]], uses: float) -> tuple[Vector, float, float, float]:
    """The candidate, margin and noise with the least bound; the margin is sought along each candidate."""
    found = [(*_Line(plan, u, lowest, uses).least(), u) for u, lowest in measured]
    bound, margin, noise, u = min(found, key=lambda item: item[0])
    return u, margin, noise, bound


def _counted(noise: float, uses: float) -> float:
    """The noise of the updates, each instance used so often; none stays none even for unlimited use."""
    return 0.0 if noise == 0.0 else uses * noise


class _Line:
    """The bound of one comparator as a function of the margin, which has one valley."""

    def __init__(self, plan: Plan, u: Vector, lowest: Vector, uses: float) -> None:
        self.plan, self.lowest, self.uses = plan, lowest, uses
        self.measure = plan.measure(u)

    def noise(self, margin: float) -> float:
        below = int(np.searchsorted(self.lowest, margin))
        return float((margin - self.lowest[:below]).sum())

    def bound(self, margin: float) -> float:
        return self.plan.value(self.measure, margin, _counted(self.noise(margin), self.uses))

    def least(self) -> tuple[float, float, float]:
        """Bound, margin and noise at the bottom: golden section around the best of a grid."""
        # far beyond every u.z the bound comes near to one mistake a trial, which is the best for some data
        grid = np.geomspace(LEAST_MARGIN * self.plan.reach, 1e8 * self.plan.reach, 44)
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
        margins = [self.plan.reach, float(grid[at]), left, right]
        if self.lowest[0] >= LEAST_MARGIN * self.plan.reach:
            margins.append(float(self.lowest[0]))  # the largest margin without noise
        found = [self.bound(margin) for margin in margins]
        first = next(
            i for i, bound in enumerate(found) if bound <= min(found) * (1.0 + 1e-12)
        )  # of u = 0 all are equal
        return found[first], margins[first], self.noise(margins[first])


def bound_so_far(
    learner: Any, instances: Any, labels: Sequence[Any], u: npt.ArrayLike, margin: float | None = None
) -> Vector:
    """The learner's bound after each trial, for one comparator: its noise is that of the trials so far.

    Parameters
    ----------
    u
        The comparator, one number a weight (the order of `Weights.flat`), of any length: it is divided by the norm
        that the learner's bound speaks of.
    margin
        The margin wanted of u after that division; by default the least that it has on these trials.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.majority_problem(trials=200, seed=1)
    >>> instances = linmax.experts(votes=data.votes)
    >>> trace = linmax.run("winnow(1.017)", instances, data.labels)
    >>> bool((trace.bound(data.target) >= trace.mistakes).all())
    True
    """
    inside = _unwrapped(as_learner(learner))
    with Patience("bound") as patience:
        rows, _ = _rows_of(instances, labels, patience)
    plan, seen = plan_of(inside.rule, rows)
    weights = plan.unit(comparator(u, seen))
    lowest = seen.lowest(weights)
    wanted = float(lowest.min()) if margin is None else finite("margin", margin)
    if wanted <= 0.0:
        told = "u does not separate these trials" if margin is None else f"margin must be > 0, got {margin!r}"
        raise ValueError(f"{told}; give margin= for the margin that the noise is measured from")
    noise = np.cumsum(seen.losses(weights, wanted))
    measure = plan.measure(weights)
    values: dict[float, float] = {}
    for amount in noise.tolist():
        if amount not in values:
            values[amount] = plan.value(measure, wanted, _counted(amount, inside.uses))
    return np.array([inside.total(values[amount], t + 1) for t, amount in enumerate(noise.tolist())])


# -- patience ----------------------------------------------------------------------------------------------


class Patience:
    """A progress bar on a terminal, once the work has taken more than a few seconds."""

    SECONDS = 3.0

    def __init__(self, title: str) -> None:
        self.title, self.begun = title, time.monotonic()
        self.bar: Any = None  # rich is imported only when a bar is shown
        self.task: Any = None

    def __enter__(self) -> Patience:
        return self

    def tell(self, doing: str, share: float | None = None) -> None:
        if self.bar is None:
            if time.monotonic() - self.begun < self.SECONDS or not sys.stderr.isatty():
                return
            self._open()
        self.bar.update(self.task, description=doing, completed=share, total=None if share is None else 1.0)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self.bar = Progress(console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task(self.title, total=None)
        self.bar.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
