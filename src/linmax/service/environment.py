"""What a learner's bits depend on besides its trials: the versions of the libraries and the processor.

With the same libraries on the same processor a replay gives the same bits. On another processor sums are rounded
differently, and results agree within `ROUNDING_TOLERANCE`; other versions may learn differently.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import cache

import numba
import numpy as np
from numba.core.registry import cpu_target

from linmax import __version__

__all__ = ["ROUNDING_TOLERANCE", "agree", "environment", "same_versions", "versions"]

Environment = dict[str, str]
ROUNDING_TOLERANCE = {
    "double": 1e-9,
    "single": 1e-5,
}  # relative differences that another processor may cause, by precision


@cache
def environment() -> Environment:
    """Return the versions of the libraries and the processor that kernels are compiled for.

    Examples
    --------
    >>> sorted(environment())
    ['linmax', 'numba', 'numpy', 'processor']
    """
    triple, name, features = cpu_target.target_context.codegen().magic_tuple()
    processor = f"{triple} {name} {zlib.crc32(features.encode()):08x}"
    return {"linmax": __version__, "numba": numba.__version__, "numpy": np.__version__, "processor": processor}


def same_versions(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Return whether two environments differ in the processor at most.

    Examples
    --------
    >>> same_versions(environment(), environment() | {"processor": "another"})
    True
    """
    return all(one.get(name) == other.get(name) for name in ("linmax", "numba", "numpy"))


def versions(by: Mapping[str, str]) -> str:
    """Name the versions of an environment.

    Examples
    --------
    >>> versions({"linmax": "1.0", "numba": "0.60", "numpy": "2.1", "processor": "x86_64"})
    'linmax 1.0 (numba 0.60, numpy 2.1)'
    """
    return "linmax {} (numba {}, numpy {})".format(*(by.get(name, "?") for name in ("linmax", "numba", "numpy")))


def agree(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> bool:
    """Return whether the states of two learners agree within the tolerance of their precision.

    Differences are relative to the largest number of an array; a state with an array in single precision is one of a
    learner that computes so.

    Examples
    --------
    >>> agree({"weights": np.array([1.0, 2.0])}, {"weights": np.array([1.0, 2.0 + 1e-12])})
    True
    >>> agree({"weights": np.array([1.0, 2.0])}, {"weights": np.array([1.0, 2.1])})
    False
    """
    if one.keys() != other.keys():
        return False
    precision = "single" if any(array.dtype == np.float32 for array in one.values()) else "double"
    return all(_is_near(array, other[name], ROUNDING_TOLERANCE[precision]) for name, array in one.items())


def _is_near(one: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind != "f" or not one.size:
        return bool(np.array_equal(one, other))
    finite = np.abs(one[np.isfinite(one)])
    limit = tolerance * float(finite.max(initial=0.0))
    return bool(np.allclose(one, other, rtol=0.0, atol=limit, equal_nan=True))
