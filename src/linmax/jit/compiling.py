"""How the functions of this package are compiled, kept in a cache, read from there, and called by address.

Importing a module makes nothing ready: of its many functions a program runs a few, and these come from the cache.

With NUMBA_BOUNDSCHECK=1 in the environment every access to an array is checked, and one outside raises IndexError.
Such code is slower, and is kept in a cache of its own.
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
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding
from numba import njit, types
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import _nrt_python, rtsys
from numba.extending import typeof_impl

__all__ = [
    "CHECKED",
    "JIT",
    "OPTIONS",
    "Kernel",
    "address_of",
    "cache_folder",
    "caching_in",
    "caller",
    "function_at",
    "inside",
    "inside_array",
    "kernel",
]

JIT = not numba.config.DISABLE_JIT
CHECKED = JIT and bool(numba.config.BOUNDSCHECK)  # whether every access to an array is checked

# -- the cache ----------------------------------------------------------------------------------------------------

HERE = Path(__file__).parents[1]  # the package
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
        base = HERE.joinpath(*package.split("."))
        files = [base.with_suffix(".py"), *(base / f"{name}.py" for name in re.findall(r"\w+", names))]
        found.extend(other for other in files if other.is_file() and holds_kernels(other))
    return found


def sources_of(path: Path) -> list[Path]:
    """The file, this one, and those whose compiled functions it calls: a change in any makes its kernels stale.

    Numba looks only at the file of the outermost function, and would run old code after a file that it calls into
    was edited. Rules are called by address, so the loops do not depend on them.
    """
    found, waiting = {path, Path(__file__)}, [path]
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
    bases = [os.environ.get("NUMBA_CACHE_DIR"), HERE / "__pycache__", Path.home() / ".cache" / "linmax"]
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


def _loader(kept: Any, allocates: bool) -> Callable[[Any, Any], Any]:
    """How a kernel is read from the cache. Numba would first load all that it needs to compile one, for longer than
    the kernels of a whole command take; the compiler sees to that itself when there is nothing in the cache.
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
                return kept._load_overload(signature, target)
            finally:
                codegen._library_class = usual

    return load


def _keeper(kept: Any, name: str) -> Callable[[Any, Any], None]:
    """How a kernel is put into the cache: where that is impossible, say so; what was compiled runs all the same."""
    usual = kept.save_overload

    def save(signature: Any, data: Any) -> None:
        if bool(numba.config.BOUNDSCHECK) != CHECKED:
            raise RuntimeError("NUMBA_BOUNDSCHECK has changed since linmax was imported; set it before that")
        try:
            usual(signature, data)
        except OSError as error:
            told = f"{name} is compiled but cannot be kept in {kept.cache_path}: {error.strerror or error}"
            warnings.warn(f"{told}; make room there, or set NUMBA_CACHE_DIR", RuntimeWarning, stacklevel=2)

    return save


# -- compiling ----------------------------------------------------------------------------------------------------

# `contract` fuses multiply and add; sums keep their order, nan and infinity keep their meaning.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "nsz"},
    "boundscheck": CHECKED,
}


class HelperCode(JITCodeLibrary):  # type: ignore[misc]
    """The code of a helper, ready to be linked into its callers. Numba would make it ready to run as well, in vain."""

    def _finalize_final_module(self) -> None:
        self._finalized = True

    @property
    def codegen(self) -> HelperCode:
        """Asked for `set_env` only."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing: helpers refer to none of Python's objects. What a check of bounds raises is part of the code."""


class HotCode(HelperCode):
    """That of a helper that is written out in its callers: it is optimised there, and need not be before."""

    def _optimize_final_module(self) -> None:
        pass


class HelperCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, but that `HelperCode` is what comes out."""

    code = HelperCode

    def compile_extra(self, function: Any) -> Any:
        """Compile it."""
        self.state.library = self.code(self.state.targetctx.codegen(), function.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(function)


class HotCompiler(HelperCompiler):
    """The same with `HotCode`."""

    code = HotCode


class Kernel:
    """A compiled function of this package. Made by `kernel`."""

    def __init__(self, function: Callable[..., Any], signature: Any, options: dict[str, Any], allocates: bool) -> None:
        update_wrapper(self, function)
        self.py_func, self.signature = function, signature
        self._options, self._allocates = options, allocates

    @property
    def _helps(self) -> bool:
        """Whether its code is in its callers alone."""
        return self.signature is None and not self._allocates

    @cached_property
    def dispatcher(self) -> Any:
        """What Numba makes of it, and by which it is compiled into its callers."""
        if self._helps:
            compiler = HotCompiler if "forceinline" in self._options else HelperCompiler
            return njit(pipeline_class=compiler, no_cpython_wrapper=True, **self._options)(self.py_func)
        with caching_in(cache_folder(self.py_func.__code__.co_filename)):
            made = njit(cache=True, **self._options)(self.py_func)
        made._cache.load_overload = _loader(made._cache, self._allocates)
        made._cache.save_overload = _keeper(made._cache, self.py_func.__qualname__)
        return made

    @cached_property
    def compiled(self) -> Any:
        """What Python calls: the compiled function, or the function itself if its code is in its callers alone."""
        if self._helps:
            return self.py_func
        if self.signature is not None:
            self.dispatcher.compile(self.signature)
            self.dispatcher.disable_compile()  # arguments of other types are converted or refused
        return self.dispatcher

    def __call__(self, *args: Any) -> Any:
        return self.compiled(*args)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__  # a name in its module


@typeof_impl.register(Kernel)  # type: ignore[untyped-decorator]
def _type_of_kernel(function: Kernel, _: Any) -> Any:
    return types.Dispatcher(function.dispatcher if function.signature is None else function.compiled)


def kernel(
    signature: Any = None,
    *,
    allocates: bool = False,
    hot: bool = False,
    reorders: bool = False,
    locked: bool = False,
) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function of this package; the one place that holds Numba's options.

    With a signature the function is compiled (or read from the cache) when it is first wanted and has an address;
    without one it is a helper, compiled into its callers, and runs uncompiled when Python calls it. Arrays are not
    counted by reference unless it ``allocates``: counting costs more than a small rule, so kernels work in arrays that
    they are given.

    A ``hot`` helper is always written out in its caller: handing over a bench and its scratch, some three hundred
    numbers, costs more than a search. Such a helper should have few call sites. One that ``reorders`` may add up in
    any order, where nothing hangs on the last bit. A ``locked`` one looks at Python's objects, and so keeps the
    interpreter's lock.
    """
    options = OPTIONS | {"no_cfunc_wrapper": True}
    if not allocates:
        options |= {"_nrt": False}
    if locked:
        options |= {"nogil": False}
    if hot:
        options |= {"forceinline": True}
    if reorders:
        options |= {"fastmath": OPTIONS["fastmath"] | {"reassoc"}}
    return lambda function: Kernel(function, signature, options, allocates) if JIT else function


# -- checks where memory is accessed by its address ---------------------------------------------------------------


def inside(context: Any, builder: Any, start: Any, count: Any, size: Any) -> None:
    """Write code that raises IndexError unless ``count`` numbers from ``start`` on are among ``size``, if `CHECKED`.

    For functions that write their code themselves: Numba sees nothing of what they load and store.
    """
    if not CHECKED:
        return
    whole = start.type
    some = builder.icmp_signed(">", count, whole(0))
    before = builder.icmp_signed("<", start, whole(0))
    beyond = builder.icmp_signed(">", builder.add(start, count), size)
    with cgutils.if_unlikely(builder, builder.and_(some, builder.or_(before, beyond))):
        context.call_conv.return_user_exc(builder, IndexError, ("a vector is out of bounds",))


def inside_array(context: Any, builder: Any, kind: Any, array: Any, start: Any, count: Any) -> None:
    """The same for a contiguous array, whose numbers are counted through all dimensions."""
    if CHECKED:
        size = cgutils.create_struct_proxy(kind)(context, builder, array).nitems
        inside(context, builder, start, count, size)


# -- calling by address -------------------------------------------------------------------------------------------

_PYTHON_FUNCTIONS: dict[int, Callable[..., Any]] = {}


def address_of(function: Any, signature: Any) -> int:
    """Return the number by which kernels call ``function`` (0 for None)."""
    if function is None:
        return 0
    if not JIT:
        _PYTHON_FUNCTIONS[id(function)] = function
        return id(function)
    if isinstance(function, Kernel):
        function = function.compiled
    if signature.args not in function.overloads:
        function.compile(signature.args)
    compiled = function.overloads[signature.args]
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


def function_at(address: int) -> Callable[..., Any]:
    """The function that has this number, when nothing is compiled."""
    return _PYTHON_FUNCTIONS[address]


def caller(signature: Any) -> Any:
    """Make a function that calls ``signature`` by address, for use inside kernels."""
    if not JIT:
        return lambda address, *args: function_at(address)(*args)

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(signature.return_type, signature.args)
        pointer = builder.inttoptr(args[0], kind.as_pointer())
        status, result = convention.call_function(builder, pointer, signature.return_type, signature.args, args[1:])
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return result

    return codegen
