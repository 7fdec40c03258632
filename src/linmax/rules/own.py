"""A user's own rule: `rule` makes a plain function one, and `check_rule` puts it through what every rule must hold."""

from __future__ import annotations

import dis
import hashlib
import linecache
import math
import os
import re
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from linmax.core.contract import OWN, REACH, STEP, Rule
from linmax.jit.compiling import JIT, OPTIONS, Kernel, cache_folder, caching_in
from linmax.util.checks import boolean, finite

__all__ = ["OWN_RULES", "TAKEN", "OwnRule", "check_rule", "compile_function", "rule", "trace_of"]


def compile_function(function: Callable[..., Any], signature: Any, what: str) -> Any:
    """Compile a user's function for calling by address; a failure is told in one sentence with the line."""
    if isinstance(function, (Dispatcher, Kernel)):
        function = function.py_func
    if not isinstance(function, FunctionType):
        raise TypeError(
            f"{what} must be a function written in Python, got {function!r}; write one that calls it, such as "
            "lambda v: math.tanh(v)"
        )
    if not JIT:
        return function
    folder = _cache_of(function)
    try:
        with caching_in(folder or cache_folder(__file__)):
            return numba.njit(signature, cache=folder is not None, **OPTIONS)(function)
    except OSError:
        raise
    except Exception as error:  # Numba has many, not all of one family
        raise TypeError(_explain(function, error, what)) from None


# -- caching: what a compiled copy has frozen into it names the folder that it is kept in ----------------------------


class _CannotCache(Exception):
    """Something was met of which one cannot tell whether it has changed since."""


def _cache_of(function: FunctionType) -> str | None:
    """A folder for the compiled function, or None where a copy could go stale or there is no file to cache for.

    Numba keeps a copy until the function's own file changes. But a copy holds everything that the function refers
    to: constants and compiled functions of other files, too.
    """
    if not os.path.exists(function.__code__.co_filename):
        return None
    digest = hashlib.sha256()
    try:
        _add_function(digest, function, set())
    except _CannotCache:
        return None
    return os.path.join(cache_folder(__file__), f"own-{digest.hexdigest()[:16]}")


def _add_function(digest: Any, function: Any, seen: set[int]) -> None:
    if id(function) in seen:
        return
    seen.add(id(function))
    referred = _add_code(digest, function.__code__)
    digest.update(repr(function.__defaults__).encode())
    for name in referred:
        if name in function.__globals__:
            digest.update(name.encode())
            _add_value(digest, function.__globals__[name], seen)
    for cell in function.__closure__ or ():
        try:
            _add_value(digest, cell.cell_contents, seen)
        except ValueError:  # an empty cell
            raise _CannotCache from None


def _add_code(digest: Any, code: CodeType) -> set[str]:
    """Put in what the code does; returns the names that it may look up outside."""
    digest.update(code.co_code)
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _add_code(digest, constant)
        else:
            digest.update(repr(constant).encode())
    return names


def _add_value(digest: Any, value: Any, seen: set[int]) -> None:
    if isinstance(value, (Dispatcher, Kernel)):
        _add_function(digest, value.py_func, seen)
    elif isinstance(value, np.ndarray):
        digest.update(repr((value.dtype, value.shape)).encode() + value.tobytes())
    elif value is None or isinstance(value, (bool, int, float, complex, str, np.generic)):
        digest.update(repr(value).encode())
    elif isinstance(value, tuple):
        for item in value:
            _add_value(digest, item, seen)
    elif _of_a_library(value):
        digest.update(repr(getattr(value, "__name__", None)).encode())
    else:
        raise _CannotCache


def _of_a_library(value: Any) -> bool:
    """Whether it belongs to math or numpy, which do not change under a cached copy."""
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(home, str) and home.partition(".")[0] in ("math", "numpy")


# -- errors ----------------------------------------------------------------------------------------------------------


def _explain(function: FunctionType, error: Exception, what: str) -> str:
    """The reason and the line out of Numba's page."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reasons = [line for line in lines if not line.startswith(("Failed in", "During:", "File ", "<source", "^"))]
    reason = reasons[0] if reasons else "unknown reason"
    if "No conversion from none to bool" in reason:
        reason = "it does not return True or False on every path"
    code = function.__code__
    number = _line_of(code, error, text)
    source = linecache.getline(code.co_filename, number).strip()
    shown = f": {source}" if source else ""
    return (
        f"{what} {function.__name__!r} cannot be compiled, line {number} of {code.co_filename}{shown} ({reason}); "
        "use numbers, loops and the functions of math on the arrays that it is given"
    )


def _line_of(code: CodeType, error: Exception, text: str) -> int:
    """Where in the function it went wrong: as the page says, or where an unknown name is first used."""
    own = os.path.basename(code.co_filename)
    places = re.findall(r'File "([^"]+)", line (\d+)|at (\S+) \((\d+)\)', text)
    numbers = [int(a or b) for file_a, a, file_b, b in places if os.path.basename(file_a or file_b) == own]
    if numbers:
        return numbers[-1]
    unknown = re.search(r"name '(\w+)' is not defined", text)
    if unknown:
        uses = [i for i in dis.get_instructions(code) if i.argval == unknown[1] and i.positions is not None]
        if uses and uses[0].positions is not None and uses[0].positions.lineno:
            return uses[0].positions.lineno
    return int(getattr(getattr(error, "loc", None), "line", None) or code.co_firstlineno)


OWN_RULES: dict[str, OwnRule] = {}  # by name, so that text can call for them too
TAKEN = {"combine", "stack"}  # what text calls otherwise; the built-in rules join where they are listed


class OwnRule:
    """What `rule` returns: call it with parameters for a `Rule`, or use it as it is with the defaults."""

    def __init__(
        self, function: Callable[..., Any], parameters: Mapping[str, float], options: Mapping[str, Any]
    ) -> None:
        self.step = compile_function(function, STEP, "rule")
        called = function.__name__.replace("_", "-").lower()
        if called in TAKEN:
            raise ValueError(
                f"rule {function.__name__!r}: text means a built-in by that name; try my_{function.__name__}"
            )
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__wrapped__ = function
        self.parameters = {name: finite(name, value) for name, value in parameters.items()}
        self.options = dict(options)
        OWN_RULES[called] = self

    def __call__(self, *args: float, **kwargs: float) -> Rule:
        names = list(self.parameters)
        if len(args) > len(names):
            raise TypeError(
                f"{self.__name__} takes {len(names)} parameters ({', '.join(names) or 'none'}), got {len(args)}"
            )
        given = dict(zip(names, args, strict=False)) | kwargs
        unknown = set(given) - set(names)
        if unknown:
            raise TypeError(
                f"{self.__name__} has no parameter {sorted(unknown)[0]!r}; it has {', '.join(names) or 'none'}"
            )
        values = {name: finite(name, given.get(name, default)) for name, default in self.parameters.items()}
        return Rule(
            self.__name__, values, self.step, values=tuple(values.values()), defaults=self.parameters, **self.options
        )

    def __repr__(self) -> str:
        return f"<rule {self.__name__}({', '.join(f'{k}={v:g}' for k, v in self.parameters.items())})>"


def rule(
    function: Callable[..., Any] | None = None,
    *,
    parameters: Mapping[str, float] | None = None,
    start: float = 0.0,
    slots: tuple[float, ...] = (),
    scalars: tuple[float, ...] = (),
    reach: float = 0.0,
    bounded: bool = False,
) -> Any:
    """Make a function a rule: it is compiled and runs inside the trial loop, wherever a built-in rule does.

    The function is ``step(weights, memory, scalars, index, z, margin, params) -> bool``. ``index`` and ``z`` are the
    coordinates and values of z = x^label - x^rival where it is not 0, ``margin`` is w.z. Change ``weights`` (and
    ``memory``) at ``index`` only, and return whether you did.

    Parameters
    ----------
    parameters
        Names and defaults, in the order in which ``params`` holds them.
    start
        Weight of a coordinate never seen.
    slots
        First value of each per-coordinate array: ``memory[0, i]``, ``memory[1, i]``, ...
    scalars
        First values of numbers of your own, ``scalars[6]`` onwards (see `linmax.core.contract`).
    reach
        Your promise that nothing happens while margin > reach: 0 for mistake-driven rules, a margin, or
        ``math.inf`` to be called on every trial.
    bounded
        Whether the rule needs |z_i| <= 1.

    Examples
    --------
    >>> import linmax
    >>> @linmax.rule(parameters={"rate": 0.5}, reach=1.0)
    ... def hinge(weights, memory, scalars, index, z, margin, params):
    ...     if margin > 1.0:
    ...         return False
    ...     for j in range(index.size):
    ...         weights[index[j]] += params[0] * z[j]
    ...     return True
    >>> data = linmax.majority_problem(trials=300, seed=1)
    >>> trace = linmax.run(hinge(rate=0.1), linmax.experts(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 150
    True
    >>> str(hinge(0.1))
    'hinge(rate=0.1)'
    """
    if not math.isfinite(start):
        raise ValueError(f"start must be finite, got {start!r}; try 0")
    if math.isnan(reach):
        raise ValueError("reach must be a number, got nan; try 0, or math.inf to see every trial")
    options = {
        "start": float(start),
        "slots": tuple(finite("slots", value) for value in slots),
        "scalars": tuple(finite("scalars", value) for value in scalars),
        "reach": float(reach),
        "bounded": boolean("bounded", bounded),
    }

    def decorate(f: Callable[..., Any]) -> OwnRule:
        return OwnRule(f, parameters or {}, options)

    return decorate if function is None else decorate(function)


def check_rule(candidate: Rule | OwnRule, seed: int = 0) -> None:
    """Put a rule through what the trial loop relies on; raises AssertionError with the reason if one fails.

    Checked on random and on awkward z (ties, zeros, single coordinates, repeated instances): the step stays
    within the arrays it is given; it returns a bool; it changes weights and memory only at the coordinates of
    z; where it returns False it changes no weight; it does nothing beyond its reach; equal inputs give equal
    bits; weights stay finite.

    Examples
    --------
    >>> import linmax
    >>> linmax.check_rule(linmax.rules.perceptron())
    """
    subject = candidate() if isinstance(candidate, OwnRule) else candidate
    _stays_within(subject, seed)
    first, second = _Bench(subject), _Bench(subject)
    random = np.random.default_rng(seed)
    for trial in range(300):
        index, z = _awkward(random, trial, subject)
        before = first.copy()
        changed, again = first.step(index, z), second.step(index, z)
        name = f"{subject} at trial {trial}"
        assert isinstance(changed, (bool, np.bool_)), f"{name}: the step must return a bool, got {changed!r}"
        assert changed == again, f"{name}: equal inputs must give equal bits"
        assert first.same(second), f"{name}: equal inputs must give equal bits"
        outside = np.setdiff1d(np.arange(first.n), index) if not subject.everywhere else np.arange(0)
        kept = np.array_equal(first.weights[outside], before.weights[outside])
        assert kept, f"{name}: changed weights outside z"
        kept = np.array_equal(first.memory[:, outside], before.memory[:, outside])
        assert kept, f"{name}: changed memory outside z"
        kept = np.array_equal(first.weights, before.weights)
        assert changed or kept, f"{name}: changed weights but returned False"
        assert np.isfinite(first.weights).all(), f"{name}: weights are not finite"
        within = before.margin(index, z) <= before.scalars[REACH]
        assert within or not changed, f"{name}: updated beyond its reach"


def trace_of(subject: Rule) -> list[float]:
    """What the rule makes of a few fixed z, as finite numbers: by them a rule is known again in another process.

    Examples
    --------
    >>> import linmax
    >>> trace_of(linmax.rules.perceptron()) == trace_of(linmax.rules.perceptron(margin=1))
    False
    """
    bench, random = _Bench(subject), np.random.default_rng(0)
    for trial in range(40):
        index, z = _awkward(random, trial, subject)
        if z.size:
            bench.step(index, z)
    numbers = [*bench.weights, *bench.memory.ravel(), *bench.scalars, float(subject.bounded), *subject.values]
    return [float(value) for value in np.nan_to_num(numbers)]


def _stays_within(subject: Rule, seed: int) -> None:
    """Run the step uncompiled for a while: compiled code does not notice an index out of bounds."""
    bench, random = _Bench(subject, uncompiled=True), np.random.default_rng(seed)
    for trial in range(40):
        index, z = _awkward(random, trial, subject)
        try:
            with np.errstate(all="ignore"):
                bench.step(index, z)
        except IndexError as error:
            raise AssertionError(
                f"{subject} at trial {trial}: an index is out of bounds ({error}); memory has one row for each of "
                f"slots=, scalars of your own start at {OWN}, params has one number for each of parameters="
            ) from None
        except (NotImplementedError, TypeError):
            if bench.function.__module__.startswith("linmax."):  # what a built-in step calls has no uncompiled form
                return
            raise


class _Bench:
    """One member on its own, fed with z directly."""

    n = 12

    def __init__(self, subject: Rule, uncompiled: bool = False) -> None:
        self.rule = subject
        self.function = getattr(subject.step, "py_func", subject.step) if uncompiled else subject.step
        self.weights = np.full(self.n, subject.start)
        self.memory = np.full((subject.rows_of_memory(self.n), self.n), np.nan)
        subject.fill(self.memory, np.arange(self.n))
        self.scalars = np.array(subject.first_scalars(self.n))
        self.params = np.array(subject.values, float)

    def copy(self) -> _Bench:
        other = _Bench(self.rule)
        other.weights, other.memory, other.scalars = self.weights.copy(), self.memory.copy(), self.scalars.copy()
        return other

    def same(self, other: _Bench) -> bool:
        return all(
            np.array_equal(a, b, equal_nan=True)
            for a, b in [(self.weights, other.weights), (self.memory, other.memory), (self.scalars, other.scalars)]
        )

    def margin(self, index: np.ndarray, z: np.ndarray) -> float:
        threshold = self.rule.threshold or 0.0
        side = 1.0 if z.size == 0 or z[0] > 0 else -1.0
        return float(self.weights[index] @ z - side * threshold)

    def step(self, index: np.ndarray, z: np.ndarray) -> bool:
        if self.rule.everywhere:
            full = np.zeros(self.n)
            full[index] = z
            index, z = np.arange(self.n), full
        margin = self.margin(index, z)
        result: bool = self.function(self.weights, self.memory, self.scalars, index, z, margin, self.params)
        return result


def _awkward(random: np.random.Generator, trial: int, subject: Rule) -> tuple[np.ndarray, np.ndarray]:
    """z over the first half of the coordinates; the rest is never seen."""
    size = (0, 1, 2, 6)[trial % 4]
    index = np.sort(random.permutation(_Bench.n // 2)[:size]).astype(np.int64)
    z = random.choice([-1.0, 1.0], size) if trial % 3 else random.uniform(-1.0, 1.0, size)
    if subject.nonnegative:  # z = y x with x >= 0: one sign
        z = np.abs(z) * (1.0 if trial % 5 < 2 else -1.0)
    return index, z
