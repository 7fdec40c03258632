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
        found = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {value!r}") from None
    if math.isnan(found):
        raise ValueError(f"{name} must be a number, got nan")
    return found


def amount(name: str, value: float) -> float:
    """Require a number >= 0."""
    found = number(name, value)
    if found < 0.0:
        raise ValueError(f"{name} must be >= 0, got {value!r}; a loss, length or count is never negative")
    return found


def finite_margin(name: str, value: float) -> float:
    """Require a number, for a margin without which there is no bound: not positive, it makes the bound infinite."""
    return number(name, value)


def above(least: float, advice: float) -> Callable[[str, float], float]:
    """Return a check that requires a number > ``least``."""

    def check(name: str, value: float) -> float:
        found = number(name, value)
        if found <= least:
            raise ValueError(f"{name} must be > {least:g}, got {value!r}; try {advice:g}")
        return found

    return check


def count(least: int) -> Callable[[str, float], float]:
    """Return a check that requires a number >= ``least``."""

    def check(name: str, value: float) -> float:
        found = number(name, value)
        if found < least:
            raise ValueError(f"{name} must be >= {least}, got {value!r}; try {least}")
        return found

    return check


def inside(low: float, high: float, advice: float) -> Callable[[str, float], float]:
    """Return a check that requires a number between ``low`` and ``high``, neither of them."""

    def check(name: str, value: float) -> float:
        found = number(name, value)
        if not low < found < high:
            raise ValueError(f"{name} must lie between {low:g} and {high:g}, got {value!r}; try {advice:g}")
        return found

    return check


fraction = inside(0.0, 1.0, 0.05)


def positive_share(name: str, value: float) -> float:
    """Require a number in (0, 1]."""
    found = number(name, value)
    if not 0.0 < found <= 1.0:
        raise ValueError(f"{name} must be in (0, 1], got {value!r}; try 0.9")
    return found


def between(low: float, high: float, advice: float) -> Callable[[str, float], float]:
    """Return a check that requires a number from ``low`` to ``high``."""

    def check(name: str, value: float) -> float:
        found = number(name, value)
        if not low <= found <= high:
            raise ValueError(f"{name} must lie from {low:g} to {high:g}, got {value!r}; try {advice:g}")
        return found

    return check


def weights(name: str, u: npt.ArrayLike) -> Vector:
    """Require weights of any sign whose magnitudes sum to at most 1."""
    found = np.asarray(u, dtype=float)
    if found.ndim != 1 or found.size == 0:
        raise ValueError(f"{name} must be one row of weights, got shape {found.shape}; give a list of numbers")
    if not np.all(np.isfinite(found)):
        raise ValueError(f"{name} must be finite, got nan or infinity; drop unknown weights")
    total = float(np.abs(found).sum())
    if total > 1.0 + 1e-9:
        raise ValueError(f"{name} must have sum |u_i| <= 1, got {total:g}; divide {name} and the margin by it")
    return found


def shares(name: str, u: npt.ArrayLike) -> Vector:
    """Require weights >= 0 with sum 1."""
    found = np.asarray(u, dtype=float)
    if found.size and found.min() < 0.0:
        raise ValueError(f"{name} must be >= 0, got {found.min():g}; use the balanced bound for weights of both signs")
    total = float(found.sum())
    if found.size and (total > 1.0 + 1e-9 or total < 1.0 - 1e-9):
        raise ValueError(f"{name} must have sum u_i = 1, got {total:g}; divide {name} and the margin by it")
    return weights(name, found)


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
