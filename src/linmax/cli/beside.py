"""Compile what a first run needs, in as many processes as there are processors."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linmax.jit.compiling import Kernel

__all__ = ["compile_beside", "named", "take"]

PROCESSES = 4  # at most: each needs some 200 MB
SCRIPT = "import sys; from linmax.cli.beside import take; take(sys.argv[1], sys.argv[2:])"


def compile_beside(kernels: Sequence[str]) -> None:
    """Compile those of the kernels that are not in the cache yet, if they are several.

    A kernel is written ``module:function``, the module without ``linmax.``; those that take longest come first. This
    process and others take one after the other from the list and put it into the cache. What another process failed to
    compile is compiled when it is called, as ever.
    """
    from linmax.jit.caching import CHECKED, JIT, is_kept

    if not JIT or CHECKED:
        return
    missing = [kernel for kernel in kernels if not is_kept(named(kernel).dispatcher)]
    count = min(PROCESSES, _processors(), len(missing))
    if count < 2:
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as claims:
        command = [sys.executable, "-c", SCRIPT, claims, *missing]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        others = [subprocess.Popen(command, **quiet) for _ in range(count - 1)]
        try:
            take(claims, missing)
            for other in others:
                other.wait()
        finally:
            for other in others:  # after an error or a signal: else they have ended
                other.terminate()
                other.wait()


def take(claims: str, kernels: Sequence[str]) -> None:
    """Compile those of the kernels that no other process has claimed, by a file in this folder."""
    for number, kernel in enumerate(kernels):
        try:
            os.close(os.open(Path(claims) / str(number), os.O_CREAT | os.O_EXCL))
        except OSError:
            continue
        _ = named(kernel).compiled


def named(kernel: str) -> Kernel:
    """The kernel that is written ``module:function``."""
    module, _, function = kernel.partition(":")
    found: Kernel = getattr(import_module(f"linmax.{module}"), function)
    return found


def _processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
