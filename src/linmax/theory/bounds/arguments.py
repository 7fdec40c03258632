"""Checks of arguments of bounds. Unlike in `linmax.util.checks`, infinity is allowed here."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]


def number(name: str, value: float) -> float:
    """Require a number."""
    try:
        given = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {value!r}") from None
    if math.isnan(given):
        raise ValueError(f"{name} must be a number, got nan")
    return given


def amount(name: str, value: float) -> float:
    """Require a number >= 0."""
    given = number(name, value)
    if given < 0.0:
        raise ValueError(f"{name} must be >= 0, got {value!r}; a loss, length or count is never negative")
    return given


def above(name: str, value: float, least: float, advice: float) -> float:
    """Require a number > ``least``."""
    given = number(name, value)
    if given <= least:
        raise ValueError(f"{name} must be > {least:g}, got {value!r}; try {advice:g}")
    return given


def fraction(name: str, value: float) -> float:
    """Require a number between 0 and 1."""
    given = number(name, value)
    if not 0.0 < given < 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}; try 0.05")
    return given


def count(name: str, value: float, least: int) -> float:
    """Require a number >= ``least``."""
    given = number(name, value)
    if given < least:
        raise ValueError(f"{name} must be >= {least}, got {value!r}; try {least}")
    return given


def comparator(u: npt.ArrayLike, signed: bool) -> Vector:
    """Require weights >= 0 with sum 1, or ``signed`` ones whose magnitudes sum to at most 1."""
    weights = np.asarray(u, dtype=float)
    if weights.ndim != 1 or weights.size == 0:
        raise ValueError(f"u must be one row of weights, got shape {weights.shape}; give a list of numbers")
    if not np.all(np.isfinite(weights)):
        raise ValueError("u must be finite, got nan or infinity; drop unknown weights")
    if not signed and weights.min() < 0.0:
        raise ValueError(f"u must be >= 0, got {weights.min():g}; use the balanced bound for weights of both signs")
    total = float(np.abs(weights).sum())
    if total > 1.0 + 1e-9 or (not signed and total < 1.0 - 1e-9):
        what = "sum |u_i| <= 1" if signed else "sum u_i = 1"
        raise ValueError(f"u must have {what}, got {total:g}; divide u and the margin by it")
    return weights


def possible(margin: float, largest: float, noise: float) -> float:
    """Require a margin that u.z can reach."""
    if noise == 0.0 and margin > largest * (1.0 + 1e-9):
        raise ValueError(
            f"margin must be <= {largest:g}, the most that u.z can be, got {margin:g}; give largest=max |z_i|"
        )
    return margin


def golden_section(value: Callable[[float], float], low: float, high: float, rounds: int) -> float:
    """Return the minimizer of a function with one valley."""
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = value(left), value(right)
    for _ in range(rounds):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = value(right)
    return left if at_left <= at_right else right


def lowest_point(value: Callable[[float], float], low: float, high: float) -> float:
    """Return the minimizer of a function with one valley: golden section around the best of a grid."""
    grid = np.linspace(low, high, 201)
    at = 1 + int(np.argmin([value(float(x)) for x in grid[1:-1]]))
    return golden_section(value, float(grid[at - 1]), float(grid[at + 1]), 100)
