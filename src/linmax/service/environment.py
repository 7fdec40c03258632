"""Environment that a learner's bits depend on besides its trials: the versions of the libraries and the processor.

With the same libraries on the same processor a replay gives the same bits. On another processor sums are rounded
differently, and other versions may learn differently.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import cache

import numba
import numpy as np
from numba.core.registry import cpu_target

from linmax import __version__

__all__ = ["environment", "versions"]

Environment = dict[str, str]


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


def versions(by: Mapping[str, str]) -> str:
    """Name an environment.

    Examples
    --------
    >>> versions({"linmax": "1.0", "numba": "0.60", "numpy": "2.1", "processor": "x86_64 zen4 1234abcd"})
    'linmax 1.0 (numba 0.60, numpy 2.1) on x86_64 zen4 1234abcd'
    """
    names = ("linmax", "numba", "numpy", "processor")
    return "linmax {} (numba {}, numpy {}) on {}".format(*(by.get(name, "?") for name in names))
