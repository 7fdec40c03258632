"""Checks of arguments: each error names the argument, the value and the remedy. Disk errors name the file."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

__all__ = [
    "LARGEST_INT32",
    "about",
    "at_least",
    "boolean",
    "counted",
    "finite",
    "fraction",
    "greater",
    "one_of",
    "positive",
    "refuse_masked",
    "warn",
    "whole",
]


def finite(name: str, value: object) -> float:
    """A finite real number."""
    if isinstance(value, (str, bytes, bool)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {value!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return number


def greater(name: str, value: object, bound: float, advice: object) -> float:
    """A finite number > bound."""
    number = finite(name, value)
    if number <= bound:
        raise ValueError(f"{name} must be > {bound:g}, got {value!r}; try {advice}")
    return number


def at_least(name: str, value: object, bound: float, advice: object = None) -> float:
    """A finite number >= bound."""
    number = finite(name, value)
    if number < bound:
        raise ValueError(f"{name} must be >= {bound:g}, got {value!r}; try {bound if advice is None else advice}")
    return number


def positive(name: str, value: object, advice: object) -> float:
    """A finite number > 0."""
    return greater(name, value, 0.0, advice)


def fraction(name: str, value: object, advice: object) -> float:
    """A number between 0 and 1, neither of them included."""
    number = finite(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}; try {advice}")
    return number


def whole(name: str, value: object, least: int) -> int:
    """A whole number >= least."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    number = value.__index__()
    if number < least:
        raise ValueError(f"{name} must be >= {least}, got {value!r}; try {least}")
    return int(number)


LARGEST_INT32 = 2**31 - 1


def counted(name: str, value: object, least: int) -> int:
    """A whole number from least to LARGEST_INT32, for the kernels' counters."""
    number = whole(name, value, least)
    if number > LARGEST_INT32:
        raise ValueError(f"{name} must be <= {LARGEST_INT32}, got {value!r}; try {LARGEST_INT32}")
    return number


def one_of(name: str, value: object, known: Iterable[str]) -> str:
    """One of the known names."""
    names = list(known)
    if value not in names:
        raise ValueError(f"{name} must be one of {', '.join(names)}, got {value!r}")
    return str(value)


def boolean(name: str, value: object) -> bool:
    """True or False."""
    if value not in (True, False):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def refuse_masked(name: str, block: object) -> None:
    """Refuse masked numbers and labels: NumPy would read the values under the mask."""
    masked = np.ma.getmaskarray(block) if isinstance(block, np.ma.MaskedArray) else None
    if masked is not None and masked.any():
        place = tuple(int(i) for i in np.argwhere(masked)[0])
        raise ValueError(f"{name}: the value at {place if len(place) > 1 else place[0]} is masked; fill or drop it")
    if isinstance(block, (list, tuple)) and block:
        if isinstance(block[0], (list, tuple, np.ma.MaskedArray)):
            for t, row in enumerate(block):
                refuse_masked(f"{name}, row {t}", row)
        masked_at = next((t for t, value in enumerate(block) if value is np.ma.masked), None)
        if masked_at is not None:
            raise ValueError(f"{name}: the value at {masked_at} is masked; fill or drop it")


def warn(message: str) -> None:
    """Warn at the line of the user that led here: the first outside the library."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "linmax":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


@contextmanager
def about(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add this file's name to an error of the operating system, such as a full disk, that names none.

    Examples
    --------
    >>> with about("model"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device: 'model'
    """
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise
