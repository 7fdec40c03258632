"""One thread for BLAS: small matrices are solved faster so, and always alike.

With several threads a product is summed in another order, so that the last bits depend on the number of cores and on
what else the process does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import RLock

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

__all__ = ["one_blas_thread"]

_LOCK = RLock()  # the number of threads is that of the whole process: who leaves would restore it for all others


@cache
def _libraries() -> ThreadpoolController:
    """NumPy's library and SciPy's, which is another; one that is loaded later would not be held."""
    import_module("scipy.linalg")
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread; other threads that ask for it wait.

    Examples
    --------
    >>> import numpy as np
    >>> with one_blas_thread():
    ...     np.linalg.solve([[2.0]], [4.0]).tolist()
    [2.0]
    """
    with _LOCK, _libraries().limit(limits=1, user_api="blas"):
        yield
