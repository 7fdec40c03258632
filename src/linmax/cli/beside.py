"""Compile part of what a first run needs in a second process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

__all__ = ["compiling_beside"]


@contextmanager
def compiling_beside(script: str, module: ModuleType) -> Iterator[bool]:
    """Run a script in another process if nothing of a module is in the cache yet; yields whether it does.

    The module is one of which the command itself compiles a function: else it would do so at every run.
    """
    from linmax.jit import compiling

    first = compiling.JIT and not any(Path(compiling.cache_folder(str(module.__file__))).rglob("*.nbc"))
    if not first:
        yield False
        return
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        yield True
