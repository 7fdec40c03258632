"""The cache of compiled functions.

A folder of the cache belongs to one state of a source file and of those whose compiled functions it calls, wherever the
package is installed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numba
from llvmlite import binding
from numba.core.base import BaseContext
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.codegen import CPUCodegen, JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import _nrt_python, rtsys
from numba.core.typing.templates import Signature

__all__ = ["CHECKED", "JIT", "KernelCache", "cache_folder", "is_kept", "sources_of"]

JIT = not numba.config.DISABLE_JIT
CHECKED = JIT and bool(numba.config.BOUNDSCHECK)  # whether every access to an array is checked

PACKAGE = Path(__file__).parents[1]  # the package
COMPILER = Path(__file__).with_name("compiling.py")  # what it does is part of all compiled code
STATES_KEPT = 8  # states of one file whose compiled code is kept


@cache
def _text(path: Path) -> str:
    return path.read_text()


@cache
def holds_kernels(path: Path) -> bool:
    """Return whether functions of this file are compiled, or write code that is."""
    return re.search(r"^\s*@(kernel|intrinsic)\b|^from llvmlite import ir$", _text(path), re.MULTILINE) is not None


_IMPORTS = re.compile(r"^from linmax([\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


@cache
def _called(path: Path) -> list[Path]:
    """The files with compiled functions from which this one imports."""
    found: list[Path] = []
    for package, names in _IMPORTS.findall(_text(path)):
        base = PACKAGE.joinpath(*package.split("."))
        files = [base.with_suffix(".py"), *(base / f"{name}.py" for name in re.findall(r"\w+", names))]
        found.extend(other for other in files if other.is_file() and holds_kernels(other))
    return found


def sources_of(path: Path) -> list[Path]:
    """The file, the compiler's, and those whose compiled functions it calls: a change in any makes its kernels stale.

    Numba looks only at the file of the outermost function, and would run old code after a file that it calls into
    was edited. Rules are called by address, so the loops do not depend on them.
    """
    found, waiting = {path, COMPILER}, [path]
    while waiting:
        for other in _called(waiting.pop()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return sorted(found)


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@cache
def _cache_base() -> Path:
    bases = [os.environ.get("NUMBA_CACHE_DIR"), PACKAGE / "__pycache__", Path.home() / ".cache" / "linmax"]
    name = "checked" if CHECKED else "kernels"
    for base in bases:
        if base and _writable(Path(base)):
            return Path(base) / name
    return Path(tempfile.gettempdir()) / f"linmax-{os.getuid() if hasattr(os, 'getuid') else 0}" / name


@cache
def cache_folder(file: str) -> str:
    """Return the folder of a file's compiled functions: one folder per state of its sources, of which a few remain."""
    digest = hashlib.sha256()
    for path in sources_of(Path(file)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    stem = Path(file).stem
    folder = _cache_base() / f"{stem}-{digest.hexdigest()[:16]}"
    if not folder.exists():
        with contextlib.suppress(OSError):
            others = sorted(folder.parent.glob(f"{stem}-*"), key=lambda path: path.stat().st_mtime, reverse=True)
            for old in others[STATES_KEPT - 1 :]:
                shutil.rmtree(old, ignore_errors=True)
    return str(folder)


class ReadCode(JITCodeLibrary):  # type: ignore[misc]
    """Code read from the cache, ready to run. What it takes to be linked with others is looked at if that is wanted."""

    _shared_module: binding.ModuleRef | None = None
    for_linking: bytes

    @classmethod
    def _unserialize(cls, codegen: CPUCodegen, state: tuple[str, str, Any]) -> JITCodeLibrary:
        name, kind, data = state
        if kind != "object":
            return super()._unserialize(codegen, state)
        code = codegen.create_library(name)
        machine_code, code.for_linking = data
        code.enable_object_caching()
        code._set_compiled_object(machine_code)
        code._finalize_final_module()
        return code

    def get_pointer_to_function(self, name: str) -> int:
        """Address of one of its functions; Numba would ask for those of the linkable form whether it is there."""
        return int(self._codegen._engine.get_function_address(name))

    def _get_module_for_linking(self) -> binding.ModuleRef:
        if self._shared_module is None:
            self._shared_module = binding.parse_bitcode(self.for_linking)
            self._codegen._engine._load_defined_symbols(self._shared_module)
        return self._shared_module


@cache
def _name_helpers() -> None:
    """Register with LLVM the functions that take arrays out of Python's objects."""
    for name, address in _nrt_python.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class _Folder(_CacheLocator):  # type: ignore[misc]
    """The folder of a function's cached code. Its name stands for the sources, so any checkout may share it."""

    def __init__(self, function: Callable[..., object], file: str) -> None:
        self._py_file, self._lineno, self._path = file, function.__code__.co_firstlineno, cache_folder(file)

    @classmethod
    def from_function(cls, function: Callable[..., object], file: str) -> _Folder:
        return cls(function, file)

    def get_cache_path(self) -> str:
        return self._path

    def get_source_stamp(self) -> str:
        return Path(self._path).name

    def get_disambiguator(self) -> str:
        return str(self._lineno)


class _CachedForm(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes: ClassVar[list[type]] = [_Folder]


class KernelCache(FunctionCache):  # type: ignore[misc]
    """The cache of one function."""

    _impl_class = _CachedForm

    def __init__(self, function: Callable[..., object], allocates: bool) -> None:
        super().__init__(function)
        self._allocates = allocates

    def load_overload(self, signature: Signature, target: BaseContext) -> CompileResult | None:
        """Read a compiled form, or return None.

        Numba would first load all that the compiler needs, which takes longer than reading the kernels of a command.
        """
        if self._allocates:
            rtsys.initialize(target)
        else:
            _name_helpers()
        codegen = target.codegen()
        with global_compiler_lock, self._guard_against_spurious_io_errors():
            usual, codegen._library_class = codegen._library_class, ReadCode
            try:
                return self._load_overload(signature, target)
            finally:
                codegen._library_class = usual

    def save_overload(self, signature: Signature, data: CompileResult) -> None:
        """Store a compiled form; warn where that is impossible."""
        if bool(numba.config.BOUNDSCHECK) != CHECKED:
            raise RuntimeError("NUMBA_BOUNDSCHECK has changed since linmax was imported; set it before that")
        try:
            super().save_overload(signature, data)
        except OSError as error:
            name, reason = self._py_func.__qualname__, error.strerror or error
            message = f"{name} is compiled but cannot be kept in {self.cache_path}: {reason}"
            warnings.warn(f"{message}; make room there, or set NUMBA_CACHE_DIR", RuntimeWarning, stacklevel=2)


def is_kept(dispatcher: Any) -> bool:
    """Return whether some compiled form of a function is in the cache."""
    return Path(dispatcher._cache._cache_file._index_path).exists()
