"""The mistake bound of a learner on given rows, and along a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from linmax.core.contract import Rule
from linmax.data.instances import Instances
from linmax.data.names import distinct_labels, label_array
from linmax.engine.notation import Learner, as_learner
from linmax.techniques.exploring import Explored
from linmax.techniques.recycling import Recycled
from linmax.techniques.selecting import Selected
from linmax.techniques.technique import LearnerLike
from linmax.techniques.voting import Voted
from linmax.theory.bounding import AdditiveBound, Bound, bounds
from linmax.theory.rows import Rows, Vector, comparator
from linmax.util.aliases import Label, Labels, Matrix
from linmax.util.checks import finite
from linmax.util.lazy import LazyModule
from linmax.util.progress import LateProgress

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["LearnerBound", "bound_of", "bound_so_far", "rows_of"]


@dataclass(frozen=True, eq=False)
class LearnerBound:
    """The bound of a rule, and what is done with it: recycling, voting, exploring."""

    of_rule: Bound
    uses: float = 1.0  # how often an instance is learned from: recycled several times, explored in this share
    wait: int | None = None  # the first wait of voting
    expected: bool = False  # whether it bounds the mean over a learner's own draws
    gamma: float | None = None  # how often a class is drawn, of those that explore
    classes: int = 2

    def counted(self, noise: float) -> float:
        """The noise of the updates, each instance used so often; none stays none even for unlimited use."""
        return 0.0 if noise == 0.0 else self.uses * noise

    def value(self, measure: float, margin: float, noise: float) -> float:
        """The bound on the updates of the rule: those on stored instances included, or as if all labels were shown."""
        return self.of_rule.value(measure, margin, self.counted(noise)) / (1.0 if self.gamma is None else self.uses)

    def total(self, bound: float, trials: int) -> float:
        """The bound of the whole learner from that of its rule."""
        if self.gamma is not None:
            return self.gamma * (1.0 - 1.0 / self.classes) * trials + (1.0 - self.gamma) * bound
        return bound if self.wait is None else bounds.voting(bound, bounds.most_restarts(trials, self.wait))


def bound_of(learner: Learner, rows: Rows) -> LearnerBound:
    """The bound that a learner obeys on these rows; raises where there is none."""
    if isinstance(learner, Rule):
        return LearnerBound(_bound_of_rule(learner, rows))
    if isinstance(learner, Voted) and isinstance(learner.base, (Rule, Recycled)) and learner.saved == "doubling":
        return replace(bound_of(learner.base, rows), wait=learner.d)
    if isinstance(learner, Recycled) and isinstance(learner.base, Rule):
        return replace(bound_of(learner.base, rows), uses=learner.u)
    if isinstance(learner, Selected) and isinstance(learner.base, Rule):
        return LearnerBound(_bound_of_selective(learner, _bound_of_rule(learner.base, rows)), expected=True)
    if isinstance(learner, Explored):
        return _bound_of_bandit(learner, rows)
    raise ValueError(
        f"no bound is known for {learner}; known: rules, R-, V- and VR- of a rule, S- of perceptron and p-norm, "
        "B- of a rule that updates on mistakes only; trace.regret bounds the log loss of pools for votes"
    )


def _bound_of_bandit(learner: Explored, rows: Rows) -> LearnerBound:
    """The bound on expected mistakes from that with all labels (`linmax.theory.bounds.bandit`)."""
    rule, classes = learner.base, 1 + rows.shape[0] // rows.trials
    if not isinstance(rule, Rule) or rule.reach != 0.0 or rule.thickness != 0.0:
        raise ValueError(
            f"no bound is known for {learner}; known: B- of a rule that updates on mistakes only, such as B-perceptron "
            "and B-winnow(1.1)"
        )
    share = bounds.revealed_share(classes, learner.gamma)
    if share == 0.0:
        raise ValueError(f"no bound is known for {learner}: with gamma=0 it may never see a label; try gamma=0.1")
    inside = _bound_of_rule(rule, rows)
    return LearnerBound(inside, uses=share, expected=True, gamma=learner.gamma, classes=classes)


def _bound_of_selective(learner: Selected, full: Bound) -> Bound:
    """The bound on expected mistakes from that with all labels."""
    rule = learner.base
    if not isinstance(full, AdditiveBound) or rule.name not in ("perceptron", "p_norm") or rule.reach != 0.0:
        raise ValueError(f"no bound is known for {learner}; known: S-perceptron and S-p-norm, without a margin")
    if rule.rivals != "best":
        raise ValueError(f"no bound is known for {learner}: it learns from several rivals; leave rivals= out")
    radius, b = full.factor, learner.b
    return replace(full, value=lambda norm, margin, noise: bounds.selective_perceptron(radius, norm, margin, b, noise))


def _bound_of_rule(rule: Rule, rows: Rows) -> Bound:
    reason = rule.bound if rule.lifts else "it has a fixed threshold"
    if isinstance(reason, str):
        raise ValueError(f"no bound from data is known for {rule}: {reason}; try perceptron or winnow")
    if rule.rivals == "all":
        raise ValueError(f"{rule} is one two-class problem for each class; certify these one by one")
    # every violated rival causes an update of its own, so that each of them adds its hinge loss to the noise
    return reason(rule, rows.one_by_one() if rule.rivals == "violated" else rows)


def bound_so_far(
    learner: LearnerLike,
    instances: Instances | Matrix,
    labels: Labels,
    u: npt.ArrayLike,
    margin: float | None = None,
) -> Vector:
    """The learner's bound after each trial, for one comparator: its noise is that of the trials so far.

    Parameters
    ----------
    u
        The comparator, one number a weight (the order of `Weights.flat`), of any length: it is divided by the norm
        that the learner's bound covers.
    margin
        The margin wanted of u after that division; by default the least that it has on these trials.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(trials=200, seed=1)
    >>> instances = linmax.instances(votes=data.votes)
    >>> trace = linmax.run("winnow(1.017)", instances, data.labels)
    >>> bool((trace.bound(data.target) >= trace.mistakes).all())
    True
    """
    with LateProgress("bound") as progress:
        rows, _ = rows_of(instances, labels, progress.update)
    bound = bound_of(as_learner(learner), rows)
    rows = bound.of_rule.rows
    weights = bound.of_rule.unit(comparator(u, rows))
    wanted = float(rows.lowest(weights).min()) if margin is None else finite("margin", margin)
    if wanted <= 0.0:
        reason = "u does not separate these trials" if margin is None else f"margin must be > 0, got {margin!r}"
        raise ValueError(f"{reason}; give margin= for the margin that the noise is measured from")
    noise = np.cumsum(rows.losses(weights, wanted))
    measure = bound.of_rule.measure(weights)
    values: dict[float, float] = {}
    for amount in noise.tolist():
        if amount not in values:
            values[amount] = bound.value(measure, wanted, amount)
    return np.array([bound.total(values[amount], t + 1) for t, amount in enumerate(noise.tolist())])


# -- rows of labeled instances ---------------------------------------------------------------------------------------


def rows_of(
    instances: Instances | Matrix, labels: Labels, report: Callable[[str, float], None]
) -> tuple[Rows, np.ndarray]:
    """Return the vectors z of the trials, and the labels as an array; ``report`` takes a step and its finished share.

    z is x^label - x^j for every wrong class j of instances from `linmax.instances`, and the instance times the sign of
    its label for an array (trials, attributes) with two labels.
    """
    names = label_array(labels)
    size = len(instances) if isinstance(instances, Instances) else _table(instances).shape[0]
    if names.ndim != 1 or len(names) != size:
        raise ValueError(f"labels must be one per trial: got shape {names.shape} for {size} instances")
    if size == 0:
        raise ValueError("instances must not be empty; pass at least one trial")
    distinct, inverse = distinct_labels(names)
    if not isinstance(instances, Instances):
        return _two_class_rows(_table(instances), distinct, inverse), names
    classes = _class_order(instances, distinct)
    if len(classes) < 2:
        raise ValueError(
            f"labels must have two classes or more, got only {classes!r}; one class leaves nothing to learn"
        )
    blocks = []
    for t, place in enumerate(inverse):
        blocks.append(sparse.csr_array(instances.differences(t, distinct[place], classes)))
        report("reading the instances", t / size)
    matrix = sparse.vstack(blocks, format="csr")
    dense = matrix.nnz > 0.2 * math.prod(matrix.shape) and math.prod(matrix.shape) <= 50_000_000
    return Rows(matrix.toarray() if dense else matrix, np.repeat(np.arange(size), len(classes) - 1)), names


def _class_order(instances: Instances, distinct: list[Label]) -> list[Label]:
    """Return the classes in the order of a run, so that u is laid out like its weights."""
    if instances.fixed:
        unknown = [name for name in distinct if name not in instances.names]
        if unknown:
            raise ValueError(f"labels: {unknown[0]!r} is not among the classes {list(instances.names)!r}")
        return list(instances.names)
    try:
        return sorted({*instances.names, *distinct})  # type: ignore[type-var]  # raises where they have no order
    except TypeError:  # labels of several kinds have no order
        return list(dict.fromkeys([*distinct, *instances.names]))


def _table(attributes: Matrix) -> np.ndarray | sparse.csr_array:
    if sparse.issparse(attributes):
        return sparse.csr_array(attributes)
    table = np.asarray(attributes, dtype=float)
    if table.ndim != 2:
        raise ValueError(f"instances must be (trials, attributes), got shape {table.shape}")
    return table


def _two_class_rows(table: np.ndarray | sparse.csr_array, distinct: list[Label], inverse: np.ndarray) -> Rows:
    if len(distinct) != 2:
        raise ValueError(
            f"labels must be two for plain attributes, got {distinct[:5]!r}; use instances(attributes=...)"
        )
    signs = np.where(inverse == 1, 1.0, -1.0)
    return Rows(sparse.diags_array(signs) @ table if sparse.issparse(table) else signs[:, None] * table)
