"""A user's own rule: `rule` makes a plain function one, and `check_rule` puts it through what every rule must hold."""

from __future__ import annotations

import linecache
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError

from linmax.checks import boolean, finite
from linmax.contract import JIT, OPTIONS, REACH, STEP, Rule

__all__ = ["OWN_RULES", "OwnRule", "check_rule", "compile_function", "rule"]


def compile_function(function: Callable[..., Any], signature: Any, what: str) -> Any:
    """Compile a user's function for calling by address; a failure is told in one sentence with the line."""
    if isinstance(function, Dispatcher):
        function = function.py_func
    if not JIT:
        return function
    try:
        return numba.njit(signature, cache=_may_cache(function), **OPTIONS)(function)
    except NumbaError as error:
        raise TypeError(_explain(function, str(error), what)) from None


def _may_cache(function: Any) -> bool:
    """Whether a cached copy can go stale unnoticed: only a function that calls nothing of another file is cached."""
    code = function.__code__
    called = [function.__globals__.get(name) for name in code.co_names]
    called += [cell.cell_contents for cell in function.__closure__ or ()]
    inside = all(g.py_func.__code__.co_filename == code.co_filename for g in called if isinstance(g, Dispatcher))
    if not inside:
        return False
    try:
        numba.njit(cache=True)(function)
    except RuntimeError:  # typed at a prompt: there is no file to cache beside
        return False
    return True


def _explain(function: Any, text: str, what: str) -> str:
    """The reason and the line out of Numba's page."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reasons = [line for line in lines if not line.startswith(("Failed in", "During:", "File ", "<source", "^"))]
    reason = reasons[0] if reasons else "unknown reason"
    places = re.findall(r'File "([^"]+)", line (\d+)|at (\S+) \((\d+)\)', text)
    code = function.__code__
    numbers = [int(a or b) for _, a, _, b in places if (a or b)]
    number = numbers[-1] if numbers else code.co_firstlineno
    source = linecache.getline(code.co_filename, number).strip()
    shown = f": {source}" if source else ""
    return (
        f"{what} {function.__name__!r} cannot be compiled, line {number} of {code.co_filename}{shown} ({reason}); "
        "use numbers, loops and the functions of math on the arrays that it is given"
    )


OWN_RULES: dict[str, OwnRule] = {}  # by name, so that text can call for them too


class OwnRule:
    """What `rule` returns: call it with parameters for a `Rule`, or use it as it is with the defaults."""

    def __init__(self, function: Callable[..., Any], parameters: Mapping[str, float], options: Mapping[str, Any]) -> None:
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__wrapped__ = function
        self.step = compile_function(function, STEP, "rule")
        self.parameters = {name: finite(name, value) for name, value in parameters.items()}
        self.options = dict(options)
        OWN_RULES[self.__name__.replace("_", "-").lower()] = self

    def __call__(self, *args: float, **kwargs: float) -> Rule:
        names = list(self.parameters)
        if len(args) > len(names):
            raise TypeError(f"{self.__name__} takes {len(names)} parameters ({', '.join(names) or 'none'}), got {len(args)}")
        given = dict(zip(names, args, strict=False)) | kwargs
        unknown = set(given) - set(names)
        if unknown:
            raise TypeError(f"{self.__name__} has no parameter {sorted(unknown)[0]!r}; it has {', '.join(names) or 'none'}")
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
        First values of numbers of your own, ``scalars[5]`` onwards (see `linmax.contract`).
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

    Checked on random and on awkward z (ties, zeros, single coordinates, repeated instances): the step returns a bool;
    it changes weights and memory only at the coordinates it is given; where it returns False it changes no weight;
    it does nothing beyond its reach; equal inputs give equal bits; weights stay finite; coordinates never seen keep
    the starting weight; an update moves no weight of an empty z.

    Examples
    --------
    >>> import linmax
    >>> linmax.check_rule(linmax.rules.perceptron())
    """
    subject = candidate() if isinstance(candidate, OwnRule) else candidate
    first, second = _Bench(subject), _Bench(subject)
    random = np.random.default_rng(seed)
    for trial in range(300):
        index, z = _awkward(random, trial, subject)
        before = first.copy()
        changed = first.step(index, z)
        again = second.step(index, z)
        name = f"{subject} at trial {trial}"
        assert isinstance(changed, (bool, np.bool_)), f"{name}: the step must return a bool, got {changed!r}"
        assert changed == again and first.same(second), f"{name}: equal inputs must give equal bits"
        outside = np.setdiff1d(np.arange(first.n), index) if not subject.everywhere else np.arange(0)
        assert np.array_equal(first.weights[outside], before.weights[outside]), f"{name}: changed weights outside z"
        assert np.array_equal(first.memory[:, outside], before.memory[:, outside]), f"{name}: changed memory outside z"
        assert changed or np.array_equal(first.weights, before.weights), f"{name}: changed weights but returned False"
        assert np.isfinite(first.weights).all(), f"{name}: weights are not finite"
        assert not (changed and before.margin(index, z) > before.scalars[REACH]), f"{name}: updated beyond its reach"
    unseen = first.weights[first.n // 2 :]
    assert subject.everywhere or (unseen == subject.start).all(), f"{subject}: weights of unseen coordinates differ"


class _Bench:
    """One member on its own, fed with z directly."""

    n = 12

    def __init__(self, subject: Rule) -> None:
        self.rule = subject
        self.weights = np.full(self.n, subject.start)
        self.memory = np.repeat(np.array(subject.slots, float).reshape(-1, 1), self.n, axis=1)
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
        if margin > self.scalars[REACH]:
            return False
        result: bool = self.rule.step(self.weights, self.memory, self.scalars, index, z, margin, self.params)
        return result


def _awkward(random: np.random.Generator, trial: int, subject: Rule) -> tuple[np.ndarray, np.ndarray]:
    """z over the first half of the coordinates; the rest is never seen."""
    size = (0, 1, 2, 6)[trial % 4]
    index = np.sort(random.permutation(_Bench.n // 2)[:size]).astype(np.int64)
    z = random.choice([-1.0, 1.0], size) if trial % 3 else random.uniform(-1.0, 1.0, size)
    if subject.nonnegative:  # z = y x with x >= 0: one sign
        z = np.abs(z) * (1.0 if trial % 5 < 2 else -1.0)
    return index, z
