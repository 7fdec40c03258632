"""Compile what a first run needs, in as many processes as there are processors."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linmax.jit.compiling import Kernel

__all__ = ["compile_all", "compile_beside", "named", "processors"]

TOLD = "compiling what this command needs, once on this machine: some ten seconds"
PROCESSES = 4  # at most: each needs some 200 MB


def compile_beside(kernels: Sequence[str]) -> None:
    """Compile those of the kernels that are not in the cache yet, if they are several.

    A kernel is written ``module:function``, the module without ``linmax.``; some that share helpers stand together,
    with spaces between, and are compiled by one process. What takes longest comes first. This process and others take
    one entry after the other and put it into the cache. What another process failed to compile is compiled when it is
    called, as ever.
    """
    from linmax.jit.caching import CHECKED, JIT, is_kept

    if not JIT or CHECKED:
        return
    missing = [entry for entry in kernels if not all(is_kept(named(kernel).dispatcher) for kernel in entry.split())]
    count = min(PROCESSES, processors(), len(missing))
    if count > 1:
        if sys.stderr.isatty():
            print(TOLD, file=sys.stderr)
        compile_all(missing, count)


def compile_all(kernels: list[str], count: int) -> None:
    """Compile them in so many processes, this one included."""
    import multiprocessing

    from numba.core.registry import cpu_target

    forks = sys.platform == "linux" and threading.active_count() == 1
    if forks:  # the others have then what the compiler loads at first
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as claims:
        context = multiprocessing.get_context("fork") if forks else multiprocessing.get_context("spawn")
        others = [context.Process(target=_help, args=(claims, kernels), daemon=True) for _ in range(count - 1)]
        try:
            with warnings.catch_warnings():  # Python counts the threads of BLAS, which know of forks
                warnings.simplefilter("ignore", DeprecationWarning)
                for other in others:
                    other.start()
            _take(claims, kernels)
            for other in others:
                other.join()
        finally:
            for other in others:  # after an error or a signal: else they have ended
                if other.pid is not None:
                    other.terminate()
                    other.join()


def _help(claims: str, kernels: list[str]) -> None:
    """Take part, in a process for that; its errors come again where the kernel is called."""
    os.environ["LINMAX_QUIET"] = "1"  # the main process announces the compilation
    with suppress(BaseException):
        _take(claims, kernels)


def _take(claims: str, kernels: list[str]) -> None:
    """Compile what no other process has claimed, by a file in this folder."""
    for number, entry in enumerate(kernels):
        try:
            os.close(os.open(Path(claims) / str(number), os.O_CREAT | os.O_EXCL))
        except OSError:
            continue
        for kernel in entry.split():
            _ = named(kernel).compiled


def named(kernel: str) -> Kernel:
    """The kernel that is written ``module:function``."""
    module, _, function = kernel.partition(":")
    found: Kernel = getattr(import_module(f"linmax.{module}"), function)
    return found


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
