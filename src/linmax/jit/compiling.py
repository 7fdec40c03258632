"""Compilation of the functions of this package, and calls by address; `linmax.jit.caching` keeps them.

Importing a module makes nothing ready: of its many functions a program runs a few, and these come from the cache.

With NUMBA_BOUNDSCHECK=1 in the environment every access to an array is checked, and one outside raises IndexError.
Such code is slower, and is kept in a cache of its own.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import update_wrapper
from inspect import Parameter
from inspect import Signature as PythonSignature
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.typing.templates import Signature
from numba.extending import intrinsic, typeof_impl

from linmax.jit.announce import announced
from linmax.jit.caching import CHECKED, JIT, KernelCache, cache_folder

__all__ = [
    "CHECKED",
    "JIT",
    "OPTIONS",
    "Kernel",
    "address_of",
    "cache_folder",
    "caller",
    "calling",
    "function_at",
    "inside",
    "inside_array",
    "kernel",
]

# -- compiling ----------------------------------------------------------------------------------------------------

# `contract` fuses multiply and add; sums keep their order, nan and infinity keep their meaning.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "nsz"},
    "boundscheck": CHECKED,
}


class KernelCode(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel. Numba would optimise it twice, to find references to drop in between; it has none."""

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class HelperCode(JITCodeLibrary):  # type: ignore[misc]
    """The code of a helper, ready to be linked into its callers.

    It is optimised there. Numba would do so before as well, and make it ready to run, in vain.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    @property
    def codegen(self) -> HelperCode:
        """Asked for `set_env` only."""
        return self

    def set_env(self, name: str, env: object) -> None:
        """Do nothing: helpers refer to none of Python's objects. What a check of bounds raises is part of the code."""


class AnnouncedCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, announced to the user who waits for it."""

    code: type[JITCodeLibrary] | None = None  # the library to compile into, if not Numba's own

    def compile_extra(self, function: Callable[..., object]) -> CompileResult:
        """Compile a function; Numba has looked into the cache before it calls this."""
        if self.code is not None:
            self.state.library = self.code(self.state.targetctx.codegen(), function.__qualname__)
            self.state.library.enable_object_caching()
        with announced(function.__name__):
            return super().compile_extra(function)


class KernelCompiler(AnnouncedCompiler):
    """Compile into `KernelCode`."""

    code = KernelCode


class HelperCompiler(AnnouncedCompiler):
    """Compile into `HelperCode`."""

    code = HelperCode


def general(kind: types.Type) -> types.Type:
    """The type that a helper is compiled for where it is called with this one.

    Numba would compile it once more for each constant, and for each kind of integer.
    """
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) and kind.bitwidth < types.int64.bitwidth else kind


def called_in_general(dispatcher: Any) -> Dispatcher:
    """Let kernels call a dispatcher by the types that `general` gives."""
    usual = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, named: usual(
        tuple(map(general, args)), {name: general(kind) for name, kind in named.items()}
    )
    return dispatcher


@contextmanager
def no_collection() -> Iterator[None]:
    """Pause the garbage collector: the compiler makes millions of objects, and little garbage.

    Enter under the compiler's lock, so that no other thread restarts the collector.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


class computed_once:
    """A property computed by one thread, under the compiler's lock, and stored in the instance.

    The compiler's lock is the only one, so threads cannot wait for each other in a circle (as they would with a lock
    for each property), and a thread that waited finds the value instead of compiling again.
    """

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        values, name = vars(instance), self.compute.__name__
        with global_compiler_lock:
            if name not in values:
                values[name] = self.compute(instance)
            return values[name]


class Kernel:
    """A compiled function of this package. Made by `kernel`."""

    def __init__(
        self, function: Callable[..., Any], signature: Signature | None, options: dict[str, Any], allocates: bool
    ) -> None:
        update_wrapper(self, function)
        self.py_func, self.signature = function, signature
        self._options, self._allocates = options, allocates

    @property
    def _helps(self) -> bool:
        """True if its code is in its callers alone."""
        return self.signature is None and not self._allocates

    @computed_once
    def dispatcher(self) -> Dispatcher:
        """Numba's dispatcher, by which the function is compiled into its callers."""
        if self._helps:
            made = njit(pipeline_class=HelperCompiler, no_cpython_wrapper=True, **self._options)(self.py_func)
            return called_in_general(made)
        compiler = AnnouncedCompiler if self._allocates else KernelCompiler
        made = njit(pipeline_class=compiler, **self._options)(self.py_func)
        made._cache = KernelCache(self.py_func, self._allocates)
        return made

    @computed_once
    def compiled(self) -> Any:
        """Callable for Python: the compiled function, or the function itself if its code is in its callers alone."""
        if self._helps:
            return self.py_func
        if self.signature is not None:
            with no_collection():
                self.dispatcher.compile(self.signature)
            self.dispatcher.disable_compile()  # arguments of other types are converted or refused
        return self.dispatcher

    @computed_once
    def address(self) -> int:
        """Address of the compiled function; looking it up takes as long as a thousand trials."""
        return _address(self.compiled, self.signature)

    def __call__(self, *args: Any) -> Any:
        return self.compiled(*args)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__  # a name in its module


@typeof_impl.register(Kernel)  # type: ignore[untyped-decorator]
def _type_of_kernel(function: Kernel, _: object) -> types.Dispatcher:
    return types.Dispatcher(function.dispatcher if function.signature is None else function.compiled)


def kernel(
    signature: Signature | None = None,
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

    A ``hot`` helper is always inlined in its caller; it should have few call sites. One that ``reorders`` may add up in
    any order, where nothing hangs on the last bit. A ``locked`` one keeps the interpreter's lock.
    """
    # By default Numba would inline all calls of a hot function.
    options = OPTIONS | {"no_cfunc_wrapper": True, "forceinline": hot}
    if not allocates:
        options |= {"_nrt": False}
    if locked:
        options |= {"nogil": False}
    if reorders:
        options |= {"fastmath": OPTIONS["fastmath"] | {"reassoc"}}
    return lambda function: Kernel(function, signature, options, allocates) if JIT else function


# -- checks where memory is accessed by its address ---------------------------------------------------------------


def inside(context: BaseContext, builder: ir.IRBuilder, start: ir.Value, count: ir.Value, size: ir.Value) -> None:
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


def inside_array(
    context: BaseContext, builder: ir.IRBuilder, kind: types.Array, array: ir.Value, start: ir.Value, count: ir.Value
) -> None:
    """Check a range of a contiguous array, whose numbers are counted through all dimensions."""
    if CHECKED:
        size = cgutils.create_struct_proxy(kind)(context, builder, array).nitems
        inside(context, builder, start, count, size)


# -- calling by address -------------------------------------------------------------------------------------------

_PYTHON_FUNCTIONS: dict[int, Callable[..., Any]] = {}


def address_of(function: Any, signature: Signature) -> int:
    """Return the number by which kernels call ``function`` (0 for None)."""
    if function is None:
        return 0
    if not JIT:
        _PYTHON_FUNCTIONS[id(function)] = function
        return id(function)
    if isinstance(function, Kernel):
        return function.address if function.signature == signature else _address(function.compiled, signature)
    return _address(function, signature)


def _address(function: Dispatcher, signature: Signature) -> int:
    with global_compiler_lock:
        if signature.args not in function.overloads:
            function.compile(signature.args)
    compiled = function.overloads[signature.args]
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


def function_at(address: int) -> Callable[..., Any]:
    """The function that has this number, when nothing is compiled."""
    return _PYTHON_FUNCTIONS[address]


def caller(signature: Signature) -> Callable[..., ir.Value]:
    """Make the code of an intrinsic that calls a function of this signature by its first argument, an address."""

    def codegen(context: BaseContext, builder: ir.IRBuilder, _: Signature, args: Sequence[ir.Value]) -> ir.Value:
        convention = context.call_conv
        kind = convention.get_function_type(signature.return_type, signature.args)
        pointer = builder.inttoptr(args[0], kind.as_pointer())
        status, result = convention.call_function(builder, pointer, signature.return_type, signature.args, args[1:])
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value() if signature.return_type == types.void else result

    return codegen


def calling(signature: Signature) -> Callable[..., Any]:
    """Return a function for kernels that calls a function of this signature: ``call(address, *arguments)``."""
    if not JIT:
        return lambda address, *args: function_at(address)(*args)

    def call(_: object, *args: types.Type) -> tuple[Signature, Callable[..., ir.Value]]:
        return signature.return_type(types.int64, *signature.args), caller(signature)

    names = ["typing", "address", *(f"argument{place}" for place in range(len(signature.args)))]
    call.__signature__ = PythonSignature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])  # type: ignore[attr-defined]
    found: Callable[..., Any] = intrinsic(call)
    return found
