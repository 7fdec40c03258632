"""A digest of all that is frozen into a compiled function, which names the folder that the copy is kept in.

Numba keeps a copy until the function's own file changes. But a copy holds everything that the function refers to:
constants and compiled functions of other files, too.
"""

from __future__ import annotations

import hashlib
import os
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from linmax.jit.compiling import Kernel

__all__ = ["digest_of"]


class _CannotTell(Exception):
    """Something was met of which one cannot tell whether it has changed since."""


def digest_of(function: FunctionType) -> str | None:
    """The digest, or None where a copy could go stale or there is no file to cache for."""
    if not os.path.exists(function.__code__.co_filename):
        return None
    parts = _Parts()
    try:
        parts.add_function(function)
    except _CannotTell:
        return None
    return parts.digest.hexdigest()[:16]


class _Parts:
    """What has been put in so far."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.seen: set[int] = set()

    def add(self, *parts: Any) -> None:
        """Put in texts, numbers and bytes, each with its type and its end."""
        told = repr(parts).encode()
        self.digest.update(b"%d:" % len(told) + told)

    def add_function(self, function: Any) -> None:
        if id(function) in self.seen:
            self.add("again", function.__qualname__)
            return
        self.seen.add(id(function))
        names = self.add_code(function.__code__)
        self.add_value(function.__defaults__)
        self.add_value(tuple(sorted((function.__kwdefaults__ or {}).items())))
        for name in sorted(names & function.__globals__.keys()):
            self.add(name)
            self.add_value(function.__globals__[name])
        for cell in function.__closure__ or ():
            try:
                self.add_value(cell.cell_contents)
            except ValueError:  # an empty cell
                raise _CannotTell from None

    def add_code(self, code: CodeType) -> set[str]:
        """Put in what the code does; returns the names that it may look up outside.

        The instructions give names by their place only: math.sinh and math.tanh have the same.
        """
        self.add(code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        names = set(code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                names |= self.add_code(constant)
            elif isinstance(constant, frozenset):
                self.add("set", *sorted(map(repr, constant)))
            else:
                self.add(constant)
        return names

    def add_value(self, value: Any) -> None:
        if isinstance(value, Dispatcher):
            self.add(sorted((name, repr(option)) for name, option in value.targetoptions.items()))
            self.add_function(value.py_func)
        elif isinstance(value, Kernel):
            self.add_function(value.py_func)
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self.add(value.dtype.descr, value.shape, value.tobytes())
        elif isinstance(value, tuple):
            self.add(type(value).__name__, getattr(value, "_fields", ()), len(value))
            for item in value:
                self.add_value(item)
        elif value is None or type(value) in (bool, int, float, complex, str) or isinstance(value, np.generic):
            self.add(type(value).__name__, value)
        elif _of_a_library(value):
            self.add(getattr(value, "__module__", None), value.__name__)
        else:
            raise _CannotTell


def _of_a_library(value: Any) -> bool:
    """Whether it is a module, function or type of math or numpy, which do not change under a cached copy."""
    if not isinstance(value, (ModuleType, FunctionType, BuiltinFunctionType, type, np.ufunc)):
        return False
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(home, str) and home.partition(".")[0] in ("math", "numpy")
