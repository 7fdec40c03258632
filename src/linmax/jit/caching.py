"""Where compiled functions are kept, and how they are read from there and put there.

A folder of the cache belongs to one state of a source file and of those whose compiled functions it calls. What is not
there may have been compiled ahead (see `linmax.jit.built`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import _nrt_python, rtsys

from linmax.jit import built

__all__ = ["CHECKED", "JIT", "cache_folder", "caching_in", "is_kept", "keeper", "loader", "sources_of"]

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
    """Whether functions of this file are compiled, or write code that is."""
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
    """Where compiled functions of a file are kept: one folder per state of its sources, of which a few remain."""
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


@contextlib.contextmanager
def caching_in(folder: str) -> Iterator[None]:
    """Numba's cache is this folder; other threads wait, by the lock that compiling takes as well."""
    with global_compiler_lock:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = folder
        try:
            yield
        finally:
            numba.config.CACHE_DIR = before


class ReadCode(JITCodeLibrary):  # type: ignore[misc]
    """Code read from the cache, ready to run. What it takes to be linked with others is looked at if that is wanted."""

    _shared_module: Any = None
    for_linking: bytes

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
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

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = binding.parse_bitcode(self.for_linking)
            self._codegen._engine._load_defined_symbols(self._shared_module)
        return self._shared_module


@cache
def _name_helpers() -> None:
    """Tell LLVM where the functions are by which arrays are taken out of Python's objects."""
    for name, address in _nrt_python.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def loader(kept: Any, allocates: bool, state: str) -> Callable[[Any, Any], Any]:
    """How a kernel is read from the cache, or from what was compiled ahead; ``state`` names its source's folder.

    Numba would first load all that it needs to compile one, for longer than the kernels of a whole command take; the
    compiler sees to that itself when there is nothing in the cache.
    """

    def load(signature: Any, target: Any) -> Any:
        if allocates:
            rtsys.initialize(target)
        else:
            _name_helpers()
        codegen = target.codegen()
        with global_compiler_lock, kept._guard_against_spurious_io_errors():
            usual, codegen._library_class = codegen._library_class, ReadCode
            try:
                found = kept._load_overload(signature, target)
                return built.read(kept, state, signature, target) if found is None and not CHECKED else found
            finally:
                codegen._library_class = usual

    return load


def is_kept(dispatcher: Any) -> bool:
    """Whether some compiled form of a function is in the cache, or was compiled ahead."""
    kept, function = dispatcher._cache, dispatcher.py_func
    state = Path(cache_folder(function.__code__.co_filename)).name
    return Path(kept._cache_file._index_path).exists() or built.holds(state, function)


def keeper(kept: Any, name: str, state: str) -> Callable[[Any, Any], None]:
    """How a kernel is put into the cache: where that is impossible, say so; what was compiled runs all the same."""
    usual = kept.save_overload

    def save(signature: Any, data: Any) -> None:
        if bool(numba.config.BOUNDSCHECK) != CHECKED:
            raise RuntimeError("NUMBA_BOUNDSCHECK has changed since linmax was imported; set it before that")
        if built.BUILDING:
            built.write(kept, state, signature, data)
        try:
            usual(signature, data)
        except OSError as error:
            told = f"{name} is compiled but cannot be kept in {kept.cache_path}: {error.strerror or error}"
            warnings.warn(f"{told}; make room there, or set NUMBA_CACHE_DIR", RuntimeWarning, stacklevel=2)

    return save
