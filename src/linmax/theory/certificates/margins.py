"""The widest margin that any comparator has on given rows, and the least noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linprog, minimize, nnls

from linmax.theory.bounding import norm_of
from linmax.theory.rows import Rows, Vector, comparator
from linmax.util.blas import one_blas_thread

__all__ = [
    "descend",
    "hinge_noise",
    "least_noise",
    "slope_of_norm",
    "widest_margin",
]

SOFTNESS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
"""Softness of the hinge, relative to the margin, from one round of the search to the next."""

LP_SECONDS = 10.0
"""HiGHS gives up a linear program after this time; the search then goes on without it."""


NO_MARGIN = 1e-12
"""Margins below this share of the largest |z_i| are rounding."""


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
    return table.noise(comparator(u, table), float(margin))


# -- linear programs and their kin -------------------------------------------------------------------------


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
    with one_blas_thread():
        return widest_margin_of(Rows(rows, trial), order, positive)


def widest_margin_of(table: Rows, order: float, positive: bool) -> tuple[Vector, float]:
    scaled = table.scaled(1.0 / table.largest)  # the solvers take what is far below 1 for 0
    u, margin = _linear_margin(scaled, positive)
    if order > 1.0:
        if margin <= NO_MARGIN:
            return np.zeros(table.shape[1]), 0.0
        exact = order == 2.0 and math.prod(table.shape) <= 2_000_000
        u = _least_distance(scaled) if exact else _soft_margin(scaled, order, u)
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
    return np.asarray(u / (norm_of(u, 2.0) or 1.0))


def _dense(matrix: Any) -> Vector:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)


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
    for softness in (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 1e-3, 3e-4, 1e-4, 1e-5):
        margin = float(rows.lowest(best).min())
        x = descend(objective, best, softness * margin)
        best = max(best, x / norm_of(x, order), key=lambda u: float(rows.lowest(u).min()))
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
    scaled, wanted = table.scaled(1.0 / table.largest), float(margin) / table.largest
    with one_blas_thread():
        if order == 1.0:
            u = _linear_noise(scaled, wanted, positive)
        else:
            v = _path(scaled, order, 1.0 / wanted)
            u = v / max(1.0 / wanted, norm_of(v, order))
            u = min((u, _polished(scaled, order, wanted, u)), key=lambda x: scaled.noise(x, wanted))
    return u, table.noise(u, float(margin))


def _linear_noise(rows: Rows, margin: float, positive_only: bool) -> Vector:
    count, n = rows.shape
    block = _signed(rows.matrix, positive_only)
    width = block.shape[1]
    slack = sparse.csr_array((np.ones(count), (np.arange(count), rows.owners)), shape=(count, rows.trials))
    upper = -sparse.hstack([block, slack], format="csr")
    equal = sparse.csr_array(np.append(np.ones(width), np.zeros(rows.trials))[None, :])
    cost = np.append(np.zeros(width), np.ones(rows.trials))
    result = _solve(cost, upper, np.full(count, -margin), equal, [(0.0, None)] * (width + rows.trials))
    return np.asarray(result.x[:n] if positive_only else result.x[:n] - result.x[n:width])


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
