"""Certificates: the best mistake bound that given data allow, and what the learner really did.

A bound of `linmax.bounds` holds for every comparator u and every margin. `certify` looks for the pair that
makes it least, so that it says as much as theory can about these data.

How u is found. The margin in the 1-norm and the least noise at a given margin are linear programs (HiGHS).
The bound itself, as a function of u and margin, is convex over affine for the multiplicative rules and a
convex condition for the additive ones, hence has no false minima: it is minimised by L-BFGS with the hinge
softened and then made sharp in steps. The search may stop short of the best u; the certificate is valid all
the same, because margin, noise and bound are computed afterwards, exactly and on all trials, for the u that
was found.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linprog, minimize, nnls
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from linmax import bounds
from linmax.checks import finite, whole
from linmax.composition import Learner, as_learner
from linmax.contract import Rule
from linmax.instances import Experts
from linmax.techniques.recycling import Recycled
from linmax.techniques.voting import Voted
from linmax.threshold import LinearThreshold
from linmax.trials import run, unique_labels

__all__ = ["Certificate", "bound_so_far", "certify", "certify_rows", "hinge_noise", "least_noise", "widest_margin"]

Vector = npt.NDArray[np.float64]

MOST_ROWS = 20_000
"""Above so many rows (trials times wrong classes) the comparator is sought on a sample of the trials."""

SOFTNESS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
"""Softness of the hinge, relative to the margin, from one round of the search to the next."""

LP_SECONDS = 10.0
"""HiGHS gives up a linear program after this time; the search then goes on without it."""


# -- rows -------------------------------------------------------------------------------------------------


class Rows:
    """The vectors z of all trials: one each for two classes, x^label - x^j for every wrong class j for many.

    Parameters
    ----------
    matrix
        (rows, n), dense or sparse.
    trial
        Which trial each row belongs to; by default each row is a trial of its own.
    """

    def __init__(self, matrix: Any, trial: npt.ArrayLike | None = None) -> None:
        rows = sparse.csr_array(matrix, dtype=float) if sparse.issparse(matrix) else np.asarray(matrix, float)
        if rows.ndim != 2 or 0 in rows.shape:
            raise ValueError(f"rows must be (rows, weights) and not empty, got shape {rows.shape}")
        if not np.all(np.isfinite(rows.data if sparse.issparse(rows) else rows)):
            raise ValueError("rows must be finite, got nan or infinity; drop or fill those instances")
        owner = np.arange(rows.shape[0]) if trial is None else np.asarray(trial)
        if owner.shape != (rows.shape[0],):
            raise ValueError(f"trial must name one trial a row: {rows.shape[0]} rows, got shape {owner.shape}")
        order = np.argsort(owner, kind="stable")
        if np.any(order[1:] < order[:-1]):
            rows, owner = rows[order], owner[order]
        self.matrix = rows
        self.starts = np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]]))

    @property
    def trials(self) -> int:
        return len(self.starts)

    @property
    def owners(self) -> npt.NDArray[np.int64]:
        """The trial of each row, numbered from 0."""
        return np.repeat(np.arange(self.trials), np.diff(np.append(self.starts, self.shape[0])))

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.matrix.shape[0]), int(self.matrix.shape[1])

    def take(self, trials: npt.NDArray[np.int64]) -> Rows:
        """The rows of some trials."""
        chosen = np.isin(self.owners, trials)
        return Rows(self.matrix[chosen], self.owners[chosen])

    def lowest(self, u: Vector) -> Vector:
        """min_j u.z of each trial."""
        return np.asarray(np.minimum.reduceat(self.matrix @ u, self.starts))

    def noise(self, u: Vector, margin: float) -> float:
        """Hinge loss: sum over trials of max(0, margin - min_j u.z)."""
        return float(np.maximum(0.0, margin - self.lowest(u)).sum())

    def sizes(self, p: float) -> Vector:
        """||z||_p of each row."""
        magnitude = abs(self.matrix)
        scale = float(magnitude.max()) or 1.0
        total = ((magnitude / scale) ** p).sum(axis=1)
        return np.asarray(scale * np.asarray(total).ravel() ** (1.0 / p))

    def divided(self, sizes: Vector) -> Rows:
        """Every row divided by its number; rows with 0 stay as they are."""
        factors = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
        if sparse.issparse(self.matrix):
            return Rows(sparse.diags_array(factors) @ self.matrix, self.owners)
        return Rows(self.matrix * factors[:, None], self.owners)

    def soft_noise(self, u: Vector, margin: float, softness: float) -> tuple[float, Vector]:
        """A smooth bound of the noise and its slope in u: s sum_t ln(1 + sum_j exp((margin - u.z)/s))."""
        excess = (margin - self.matrix @ u) / softness
        top = np.maximum(np.maximum.reduceat(excess, self.starts), 0.0)
        counts = np.diff(np.append(self.starts, len(excess)))
        parts = np.exp(excess - np.repeat(top, counts))
        total = np.exp(-top) + np.add.reduceat(parts, self.starts)
        shares = parts / np.repeat(total, counts)
        return softness * float((top + np.log(total)).sum()), -(self.matrix.T @ shares)


def hinge_noise(rows: Any, u: npt.ArrayLike, margin: float, trial: npt.ArrayLike | None = None) -> float:
    """N = sum over trials of max(0, margin - u.z), over the worst row where a trial has several.

    Examples
    --------
    >>> hinge_noise([[1.0, 0.0], [-1.0, 0.0]], [1.0, 0.0], margin=0.5)
    1.5
    >>> hinge_noise([[1.0, 0.0], [-1.0, 0.0]], [1.0, 0.0], margin=0.5, trial=[0, 0])
    1.5
    """
    table = Rows(rows, trial)
    return table.noise(_comparator(u, table), float(margin))


def _comparator(u: npt.ArrayLike, rows: Rows) -> Vector:
    weights = np.asarray(u, dtype=float)
    if weights.shape != (rows.shape[1],):
        raise ValueError(f"u must have one weight a column: {rows.shape[1]}, got shape {weights.shape}")
    return weights


def _one_thread() -> Any:
    """The products here are small: handing them to threads costs many times what they do."""
    return threadpool_limits(1)


# -- linear programs and their kin -------------------------------------------------------------------------


def _norm(v: Vector, order: float) -> float:
    largest = float(np.abs(v).max(initial=0.0))
    return 0.0 if largest == 0.0 else largest * float(((np.abs(v) / largest) ** order).sum()) ** (1.0 / order)


def _slope_of_norm(v: Vector, order: float) -> Vector:
    norm = _norm(v, order)
    return np.zeros_like(v) if norm == 0.0 else np.sign(v) * (np.abs(v) / norm) ** (order - 1.0)


def _checked_order(order: float, positive_only: bool) -> float:
    if not 1.0 <= order <= 2.0:
        raise ValueError(f"order must be from 1 to 2, got {order!r}; 1 is for Winnow, 2 for the Perceptron")
    if positive_only and order != 1.0:
        raise ValueError(f"positive=True belongs to order=1, got order={order!r}")
    return float(order)


def widest_margin(
    rows: Any, trial: npt.ArrayLike | None = None, *, order: float = 1.0, positive: bool = False
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
    with _one_thread():
        return _widest_margin(Rows(rows, trial), order, positive)


def _widest_margin(table: Rows, order: float, positive: bool) -> tuple[Vector, float]:
    u, margin = _linear_margin(table, positive)
    if order == 1.0:
        return u, margin
    if margin <= 1e-12:
        return np.zeros(table.shape[1]), 0.0
    exact = order == 2.0 and math.prod(table.shape) <= 2_000_000
    u = _least_distance(table) if exact else _soft_margin(table, order, u)
    return u, float(table.lowest(u).min())


def _solve(cost: Vector, upper: Any, limit: Vector, equal: Any, bound: list[tuple[float | None, float | None]]) -> Any:
    result = linprog(
        cost,
        A_ub=upper,
        b_ub=limit,
        A_eq=equal,
        b_eq=[1.0],
        bounds=bound,
        method="highs",
        options={"time_limit": LP_SECONDS},
    )
    if result.x is None or result.status != 0:
        raise RuntimeError(f"the linear program was not solved: {result.message}; take fewer rows")
    return result


def _signed(matrix: Any, positive_only: bool) -> Any:
    """The columns z, or z and -z for weights of both signs."""
    block = sparse.csr_array(matrix)
    return block if positive_only else sparse.hstack([block, -block], format="csr")


def _unsigned(x: Vector, n: int, positive_only: bool) -> Vector:
    u = x[:n] if positive_only else x[:n] - x[n : 2 * n]
    total = float(np.abs(u).sum())
    return u / total if total > 0.0 else u


def _linear_margin(rows: Rows, positive_only: bool) -> tuple[Vector, float]:
    count, n = rows.shape
    block = _signed(rows.matrix, positive_only)
    width = block.shape[1]
    upper = sparse.hstack([-block, np.ones((count, 1))], format="csr")
    equal = sparse.csr_array(np.append(np.ones(width), 0.0)[None, :])
    cost = np.append(np.zeros(width), -1.0)
    result = _solve(cost, upper, np.zeros(count), equal, [(0.0, None)] * width + [(None, None)])
    u = _unsigned(result.x, n, positive_only)
    return u, float(rows.lowest(u).min())


def _least_distance(rows: Rows) -> Vector:
    """min ||v||_2 subject to v.z >= 1 for all rows (Lawson and Hanson, chapter 23), at unit length."""
    dense = _dense(rows.matrix)
    stacked = np.vstack([dense.T, np.ones(len(dense))])
    weights, _ = nnls(stacked, np.append(np.zeros(dense.shape[1]), 1.0), maxiter=10 * len(dense) + 1000)
    u = dense.T @ weights
    return np.asarray(u / (_norm(u, 2.0) or 1.0))


def _dense(matrix: Any) -> Vector:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)


def _soft_margin(rows: Rows, order: float, start: Vector) -> Vector:
    """maximise the soft minimum -s ln sum exp(-u.z/s) over u = x/||x||, with s ever smaller against the margin."""

    def objective(x: Vector, softness: float) -> tuple[float, Vector]:
        size = _norm(x, order)
        u = x / size
        reach = rows.matrix @ u / softness
        least = float(reach.min())
        parts = np.exp(least - reach)
        total = float(parts.sum())
        slope = -(rows.matrix.T @ (parts / total))
        slope = (slope - float(slope @ u) * _slope_of_norm(x, order)) / size
        return softness * (math.log(total) - least), slope

    best = start / _norm(start, order)
    for softness in (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 1e-3, 3e-4, 1e-4, 1e-5):
        margin = float(rows.lowest(best).min())
        x = _descend(objective, best, softness * margin)
        best = max(best, x / _norm(x, order), key=lambda u: float(rows.lowest(u).min()))
    return np.asarray(best)


def least_noise(
    rows: Any,
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
    if order == 1.0:
        return _linear_noise(table, float(margin), positive)
    with _one_thread():
        v = _path(table, order, 1.0 / float(margin))
        u = v / max(1.0 / float(margin), _norm(v, order))
        u = min((u, _polished(table, order, float(margin), u)), key=lambda x: table.noise(x, float(margin)))
    return u, table.noise(u, float(margin))


def _linear_noise(rows: Rows, margin: float, positive_only: bool) -> tuple[Vector, float]:
    count, n = rows.shape
    block = _signed(rows.matrix, positive_only)
    width = block.shape[1]
    slack = sparse.csr_array((np.ones(count), (np.arange(count), rows.owners)), shape=(count, rows.trials))
    upper = -sparse.hstack([block, slack], format="csr")
    equal = sparse.csr_array(np.append(np.ones(width), np.zeros(rows.trials))[None, :])
    cost = np.append(np.zeros(width), np.ones(rows.trials))
    result = _solve(cost, upper, np.full(count, -margin), equal, [(0.0, None)] * (width + rows.trials))
    u = np.asarray(result.x[:n] if positive_only else result.x[:n] - result.x[n:width])
    return u, rows.noise(u, margin)


def _descend(objective: Callable[..., tuple[float, Vector]], start: Vector, softness: float, **limits: Any) -> Vector:
    options = {"maxiter": 500, "maxcor": 30, "ftol": 1e-12, "gtol": 1e-9}
    found = minimize(objective, start, args=(softness,), jac=True, method="L-BFGS-B", options=options, **limits)
    return np.asarray(found.x)


def _path(rows: Rows, order: float, length: float) -> Vector:
    """min ||v||_order^2/2 + C noise(v, 1), C such that ||v|| = length (or large, when v stays shorter)."""

    def at(log_c: float, v: Vector, rounds: Sequence[float]) -> Vector:
        c = math.exp(log_c)

        def objective(x: Vector, softness: float) -> tuple[float, Vector]:
            norm = _norm(x, order)
            noise, slope = rows.soft_noise(x, 1.0, softness)
            return 0.5 * norm**2 + c * noise, norm * _slope_of_norm(x, order) + c * slope

        for softness in rounds:
            v = _descend(objective, v, softness)
        return v

    low, high = math.log(1e-6 / rows.trials), math.log(1e6)
    v = at(low, np.zeros(rows.shape[1]), SOFTNESS[:4])
    while high - low > 1e-2:
        middle = 0.5 * (low + high)
        v = at(middle, v, SOFTNESS[3:5])
        low, high = (low, middle) if _norm(v, order) > length else (middle, high)
    return at(high, v, SOFTNESS[3:])


def _polished(rows: Rows, order: float, margin: float, u: Vector) -> Vector:
    """The same problem from nearby, with the hinge sharpened further, over u = x/max(1, ||x||)."""

    def objective(x: Vector, softness: float) -> tuple[float, Vector]:
        size = max(1.0, _norm(x, order))
        noise, slope = rows.soft_noise(x / size, margin, softness * margin)
        if size > 1.0:
            slope = (slope - float(slope @ x) / size * _slope_of_norm(x, order)) / size
        return noise, slope

    # from outside the ball when u lies on it, so that the search moves along its surface
    x = 2.0 * u if _norm(u, order) > 0.99 else u
    for softness in (1e-2, 1e-3, 1e-4):
        x = _descend(objective, x, softness)
    return np.asarray(x / max(1.0, _norm(x, order)))


# -- what a rule's bound asks for --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Additive:
    """Perceptron, p-norm, ALMA: M <= noise(v, 1) + rho sqrt(M), where v = u/margin, rho = factor ||v||."""

    order: float
    factor: float
    value: Callable[[float, float], float]  # (margin, noise) -> bound, for ||u|| = 1
    positive = False
    alpha: float | None = None

    def bound(self, _: Vector, margin: float, noise: float) -> float:
        return self.value(margin, noise)

    def unit(self, u: Vector) -> Vector:
        return u / (_norm(u, self.order) or 1.0)

    def search(self, rows: Rows, weight: float) -> Iterator[Vector]:
        def objective(v: Vector, softness: float) -> tuple[float, Vector]:
            noise, slope = rows.soft_noise(v, 1.0, softness)
            rho, turn = self.factor * _norm(v, self.order), self.factor * _slope_of_norm(v, self.order)
            root = math.sqrt(rho * rho / 4.0 + weight * noise)
            return rho / 2.0 + root, turn / 2.0 + (rho * turn / 2.0 + weight * slope) / (2.0 * root)

        mean = np.asarray(rows.matrix.mean(axis=0), float).ravel()
        direction = self.unit(mean) if np.abs(mean).max() > 0.0 else self.unit(np.ones_like(mean))
        lengths = np.geomspace(1e-2, 1e4, 25)
        v = direction * min(lengths, key=lambda c: objective(c * direction, 1.0)[0])
        yield direction
        for softness in SOFTNESS:
            v = _descend(objective, v, softness)
            yield v


@dataclass(frozen=True)
class _Winnow:
    """Both Winnows: M = (RE + r N)/(delta r - growth(r)), r = ln alpha; alpha=None takes the best."""

    positive: bool
    alpha: float | None
    thickness: float
    largest: float
    order = 1.0

    def bound(self, u: Vector, margin: float, noise: float) -> float:
        alpha = self.alpha or self.best_alpha(u, margin, noise)
        form = bounds.multiplicative if self.positive else bounds.balanced
        return (
            math.inf if alpha is None else form(u, margin, alpha, noise, thickness=self.thickness, largest=self.largest)
        )

    def best_alpha(self, u: Vector, margin: float, noise: float) -> float | None:
        """None when the margin is within the thickness, where no alpha gives a bound."""
        if margin <= self.thickness:
            return None
        learned = bounds.divergence(u) if self.positive else bounds.divergence_balanced(u)
        return bounds.best_alpha(learned, margin, noise, self.thickness, self.largest)

    def unit(self, u: Vector) -> Vector:
        return u / (float(np.abs(u).sum()) or 1.0)

    def search(self, rows: Rows, weight: float) -> Iterator[Vector]:
        n = rows.shape[1]
        fixed = None if self.alpha is None else math.log(self.alpha)
        # below this margin the bound of a fixed alpha is infinite
        floor = self.thickness if fixed is None else bounds.log_growth(fixed, self.thickness, self.largest) / fixed
        yield self.unit(np.ones(n))

        def objective(x: Vector, softness: float) -> tuple[float, Vector]:
            share = _softmax(x[:-1])
            u = share if self.positive else share[:n] - share[n:]
            logs = np.log(np.maximum(share, 1e-300))
            learned = max(math.log(len(share)) + float(share @ logs), 1e-12)
            step = math.exp(x[-1])
            margin = floor + step
            noise, slope = rows.soft_noise(u, margin, softness * margin)
            noise, slope = weight * noise, weight * slope
            by_margin = (noise - float(u @ slope)) / margin  # the soft noise is homogeneous in (u, margin)
            rate = fixed or math.log(bounds.best_alpha(learned, margin, noise, self.thickness, self.largest))
            gain = rate * step  # for a fixed alpha, by the choice of the floor
            if fixed is None:
                gain = margin * rate - bounds.log_growth(rate, self.thickness, self.largest)
            cost = learned + rate * noise
            pull = rate * slope if self.positive else rate * np.concatenate([slope, -slope])
            by_share = (logs + 1.0 + pull) / cost
            turn = share * (by_share - float(share @ by_share))
            return math.log(cost) - math.log(gain), np.append(turn, step * (rate * by_margin / cost - rate / gain))

        x = np.append(np.zeros(n if self.positive else 2 * n), math.log(0.05 * self.largest))
        limits = [(None, None)] * (len(x) - 1) + [(math.log(1e-5 * self.largest), math.log(1e3 * self.largest))]
        for softness in SOFTNESS:
            x = _descend(objective, x, softness, bounds=limits)
            share = _softmax(x[:-1])
            yield share if self.positive else share[:n] - share[n:]


def _softmax(x: Vector) -> Vector:
    parts = np.exp(x - x.max())
    return np.asarray(parts / parts.sum())


_Plan = _Additive | _Winnow

TUNABLE = {"winnow": True, "committee": True, "balanced-winnow": False}
"""Rules that may be named without an alpha, and whether their weights are positive."""


def _plan(learner: Rule | str, rows: Rows) -> tuple[_Plan, Rows]:
    """The bound that a rule obeys, and the rows as that bound sees them."""
    if isinstance(learner, str):
        return _Winnow(TUNABLE[learner], None, 0.0, _largest(rows)), rows
    known = dict(learner.parameters)
    name = learner.name
    if not learner.lifts or name not in PLANS:
        raise ValueError(f"no bound from data is known for {learner}; known: {', '.join(sorted(PLANS))}")
    if learner.rivals == "all":
        raise ValueError(f"{learner} is one two-class problem for each class; certify these one by one")
    return PLANS[name](known, rows)


def _largest(rows: Rows) -> float:
    return float(abs(rows.matrix).max()) or 1.0


def _perceptron_plan(known: dict[str, Any], rows: Rows) -> tuple[_Plan, Rows]:
    threshold = known.get("margin", 0.0) / known.get("rate", 1.0)
    radius = float(rows.sizes(2.0).max())

    def value(margin: float, noise: float) -> float:
        return bounds.perceptron(radius, 1.0, margin, noise, threshold)

    return _Additive(2.0, math.sqrt(radius**2 + 2.0 * threshold), value), rows


def _p_norm_plan(known: dict[str, Any], rows: Rows) -> tuple[_Plan, Rows]:
    p = known["p"]
    size = float(rows.sizes(p).max())

    def value(margin: float, noise: float) -> float:
        return bounds.p_norm(p, size, 1.0, margin, noise)

    return _Additive(p / (p - 1.0), math.sqrt(p - 1.0) * size, value), rows


def _alma_plan(known: dict[str, Any], rows: Rows) -> tuple[_Plan, Rows]:
    p, alpha, B, C = known["p"], known["alpha"], known["B"], known["C"]
    sizes = rows.sizes(p)
    scaled = rows.divided(sizes if known["normalise"] else np.full(len(sizes), known["bound"]))
    covered = bool(known["normalise"] or sizes.max() <= known["bound"] * (1.0 + 1e-12))

    def value(margin: float, noise: float) -> float:
        if not covered:
            return math.inf
        if not known["project"]:
            return bounds.alma_unprojected(p, margin) if noise == 0.0 and alpha == 1.0 else math.inf
        return bounds.alma(p, margin, noise, alpha, B, C)

    factor = math.sqrt(p - 1.0) * (2.0 / C + C + 2.0 * (1.0 - alpha) * (1.0 / alpha if B is None else B))
    return _Additive(p / (p - 1.0), factor, value), scaled


def _winnow_plan(known: dict[str, Any], rows: Rows) -> tuple[_Plan, Rows]:
    return _Winnow(True, known["alpha"], known["thickness"], _largest(rows)), rows


def _balanced_plan(known: dict[str, Any], rows: Rows) -> tuple[_Plan, Rows]:
    # w+ w- = 1 keeps sum(w+ + w-) >= 2n, so an absolute margin is at most this thick
    thickness = known["thickness"] + known["margin"] / (2.0 * rows.shape[1])
    return _Winnow(False, known["alpha"], thickness, _largest(rows)), rows


def _quasi_additive_plan(known: dict[str, Any], rows: Rows) -> tuple[_Plan, Rows]:
    link, alpha = known["link"], math.exp(known["rate"])
    if link == "identity":
        return _perceptron_plan({}, rows)
    if link not in ("exp", "sinh"):
        raise ValueError(f"no bound is known for the link {link!r}; known: identity, exp, sinh")
    return _Winnow(link == "exp", alpha, 0.0, _largest(rows)), rows


PLANS: dict[str, Callable[[dict[str, Any], Rows], tuple[_Plan, Rows]]] = {
    "alma": _alma_plan,
    "balanced_winnow": _balanced_plan,
    "committee": _winnow_plan,
    "p_norm": _p_norm_plan,
    "perceptron": _perceptron_plan,
    "quasi_additive": _quasi_additive_plan,
    "winnow": _winnow_plan,
}


# -- certificates ------------------------------------------------------------------------------------------


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
        the 1-norm for the Winnow family, the q-norm for p-norm rules (2 for the Perceptron). For ALMA they
        are those of z/||z||_p.
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
            lines.insert(2, ("best alpha", f"{self.alpha:.6g} (bound {_shown(self.tuned_bound)})"))
        if self.sampled is not None:
            lines.append(("sample", f"u was sought on {self.sampled} of {self.trials} trials, measured on all"))
        width = max(len(name) for name, _ in lines)
        head = f"{self.learner}, {self.trials} trials"
        return "\n".join([head, "-" * len(head), *(f"{name:<{width}}  {text}" for name, text in lines)])

    def _heaviest(self) -> str:
        order = np.argsort(-np.abs(self.u), kind="stable")[:4]
        shown = ", ".join(f"u[{i}] = {self.u[i]:.3g}" for i in order if self.u[i])
        return f"{len(self.u)} weights; {shown or 'all 0'}"


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
    projection on noisy data.

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
    with _Patience("certify") as patience:
        rows, names = _rows_of(instances, labels, patience)
        found = _certify(rows, described, whole("most_rows", most_rows, 1), seed, patience)
        rule = as_learner(f"{described}({found.alpha!r})") if isinstance(described, str) else described
        patience.tell("running the learner")
        many = isinstance(instances, Experts)
        trace = run(rule, instances, names) if many else LinearThreshold(rule).run(instances, names)
    return replace(found, mistakes=int(trace.wrong.sum()), updates=int(trace.changed.sum()))


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


def _rows_of(instances: Any, labels: Sequence[Any], patience: _Patience) -> tuple[Rows, Any]:
    names = labels if isinstance(labels, np.ndarray) else np.asarray(labels, dtype=object)
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
    rows: Rows, learner: Learner | str, most_rows: int, seed: int, patience: _Patience | None = None
) -> Certificate:
    inside = _unwrapped(learner)
    plan, seen = _plan(inside.rule, rows)
    sample = _sample(seen, most_rows, seed)
    free = replace(plan, alpha=None)
    weight = seen.trials / sample.trials * (inside.uses if math.isfinite(inside.uses) else 1e6)
    with _one_thread():
        candidates, separable = _hard(plan, sample, seen)
        for each in [plan] if plan == free else [plan, free]:
            for stage, u in enumerate(each.search(sample, weight)):
                candidates.append(each.unit(u))
                if patience is not None:
                    patience.tell("searching for the comparator", stage / len(SOFTNESS))
        measured = [(u, np.sort(seen.lowest(u))) for u in candidates]
        u, margin, noise, bound = _best(plan, measured, inside.uses)
        alpha = tuned = None
        if isinstance(free, _Winnow):
            best_u, best_margin, best_noise, tuned = _best(free, measured, inside.uses)
            alpha = free.best_alpha(best_u, best_margin, _counted(best_noise, inside.uses))
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
        vacuous=bound >= seen.trials * (1.0 - 1e-9),
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


def _hard(plan: _Plan, sample: Rows, seen: Rows) -> tuple[list[Vector], bool | None]:
    """The comparator of widest margin, if there is one, and whether the data are separable."""
    try:
        u, margin = _widest_margin(sample, plan.order, plan.positive)
    except RuntimeError:
        return [], None
    if margin <= 1e-12:
        return [], False
    if sample is seen:
        return [u], True
    return [u], True if float(seen.lowest(u).min()) > 0.0 else None


def _best(plan: _Plan, measured: list[tuple[Vector, Vector]], uses: float) -> tuple[Vector, float, float, float]:
    """The candidate, margin and noise with the least bound; the margin is sought along each candidate."""
    found = [(*_Line(plan, u, lowest, uses).least(), u) for u, lowest in measured]
    bound, margin, noise, u = min(found, key=lambda item: item[0])
    return u, margin, noise, bound


def _counted(noise: float, uses: float) -> float:
    """The noise of the updates, each instance used so often; none stays none even for unlimited use."""
    return 0.0 if noise == 0.0 else uses * noise


class _Line:
    """The bound of one comparator as a function of the margin, which has one valley."""

    def __init__(self, plan: _Plan, u: Vector, lowest: Vector, uses: float) -> None:
        self.plan, self.u, self.lowest, self.uses = plan, u, lowest, uses
        self.sums = np.concatenate([[0.0], np.cumsum(lowest)])
        self.scale = float(np.abs(lowest).max()) or 1.0

    def noise(self, margin: float) -> float:
        below = int(np.searchsorted(self.lowest, margin))
        return max(0.0, below * margin - float(self.sums[below]))

    def bound(self, margin: float) -> float:
        return self.plan.bound(self.u, margin, _counted(self.noise(margin), self.uses))

    def least(self) -> tuple[float, float, float]:
        """Bound, margin and noise at the bottom: golden section around the best of a grid."""
        grid = np.geomspace(1e-4 * self.scale, 1e2 * self.scale, 40)
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
        margins = [float(grid[at]), left, right]
        if self.lowest[0] > 0.0:
            margins.append(float(self.lowest[0]))  # the largest margin without noise
        margin = min(margins, key=self.bound)
        return self.bound(margin), margin, self.noise(margin)


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
    with _Patience("bound") as patience:
        rows, _ = _rows_of(instances, labels, patience)
    plan, seen = _plan(inside.rule, rows)
    weights = plan.unit(_comparator(u, seen))
    lowest = seen.lowest(weights)
    wanted = float(lowest.min()) if margin is None else finite("margin", margin)
    if wanted <= 0.0:
        told = "u does not separate these trials" if margin is None else f"margin must be > 0, got {margin!r}"
        raise ValueError(f"{told}; give margin= for the margin that the noise is measured from")
    noise = np.cumsum(np.maximum(0.0, wanted - lowest))
    values: dict[float, float] = {}
    for amount in noise.tolist():
        if amount not in values:
            values[amount] = plan.bound(weights, wanted, _counted(amount, inside.uses))
    return np.array([inside.total(values[amount], t + 1) for t, amount in enumerate(noise.tolist())])


# -- patience ----------------------------------------------------------------------------------------------


class _Patience:
    """A progress bar on a terminal, once the work has taken more than a few seconds."""

    SECONDS = 3.0

    def __init__(self, title: str) -> None:
        self.title, self.begun = title, time.monotonic()
        self.bar: Any = None  # rich is imported only when a bar is shown
        self.task: Any = None

    def __enter__(self) -> _Patience:
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
