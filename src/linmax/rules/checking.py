"""What every rule must hold: `check_rule` puts it through all, `stays_within` looks for indices out of bounds."""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from linmax.core.contract import OWN, REACH, Rule

__all__ = ["check_rule", "stays_within", "trace_of"]


def check_rule(candidate: Rule | Callable[[], Rule], seed: int = 0) -> None:
    """Put a rule through what the trial loop relies on; raises AssertionError with the reason if one fails.

    Checked on random and on awkward z (ties, zeros, single coordinates, repeated instances): the step returns a
    bool; it changes weights and memory only at the coordinates of z; where it returns False it changes no weight; it
    does nothing beyond its reach; equal inputs give equal bits; weights stay finite. That it stays within its arrays
    was checked by `rule`.

    Parameters
    ----------
    candidate
        A rule, or a factory that needs no arguments.
    seed
        Of the random z.

    See Also
    --------
    linmax.rule : makes a rule of a function.

    Examples
    --------
    >>> import linmax
    >>> linmax.check_rule(linmax.rules.perceptron())
    """
    subject = candidate if isinstance(candidate, Rule) else candidate()
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


def stays_within(subject: Rule, seed: int = 0) -> None:
    """Run a user's step uncompiled for a while: compiled code does not notice an index out of bounds.

    Raises IndexError that says what was reached for and what to declare. Other errors are not looked at: compiled
    code computes 1/0 and log(-1) without one.
    """
    bench, random = _Bench(subject, watched=True), np.random.default_rng(seed)
    for trial in range(40):
        index, z = _awkward(random, trial, subject)
        try:
            with np.errstate(all="ignore"):
                bench.step(index.view(_Watched).called("index"), z.view(_Watched).called("z"))
        except _Beyond as error:
            raise IndexError(f"rule {subject.name!r} {error}") from None
        except Exception:
            continue


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


class _Beyond(IndexError):
    """An index out of bounds of a watched array."""


class _Watched(np.ndarray):
    """An array that tells which it is when an index is out of bounds."""

    name = ""

    def called(self, name: str) -> _Watched:
        self.name = name
        return self

    def __array_finalize__(self, source: Any) -> None:
        self.name = getattr(source, "name", "")

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except IndexError:
            raise _Beyond(self._remedy(key)) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        try:
            super().__setitem__(key, value)
        except IndexError:
            raise _Beyond(self._remedy(key)) from None

    def _remedy(self, key: Any) -> str:
        places = ", ".join(str(place) for place in (key if isinstance(key, tuple) else (key,)))
        size = self.shape[0] if self.ndim else 0
        advice = {
            "memory": f"memory has {size} rows, one for each of slots=; give slots= the first value of each, such as "
            "slots=(0.0,), and change memory at the coordinates of index only",
            "scalars": f"there are {size}, of which your own start at {OWN}; give scalars= their first values, such "
            "as scalars=(0.0,)",
            "params": f"there are {size}; give parameters= a name and a default for each, such as "
            'parameters={"rate": 1.0}',
            "weights": f"there are {size} coordinates here; change weights at the coordinates of index only",
        }.get(self.name, f"z has {size} coordinates here, and may have none; loop over range(index.size)")
        return f"reaches for {self.name}[{places}], but {advice}"


def _uncompiled(function: Any, done: dict[int, Any]) -> Any:
    """The function, and those compiled ones that it calls, as plain Python."""
    function = getattr(function, "py_func", function)
    if not isinstance(function, FunctionType) or id(function) in done:
        return done.get(id(function), function)
    names = dict(function.__globals__)
    copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__, _cells(function, done))
    copy.__kwdefaults__ = function.__kwdefaults__
    done[id(function)] = copy
    for name in function.__code__.co_names:
        if name in names:
            names[name] = _plain(names[name], done)
    return copy


def _plain(value: Any, done: dict[int, Any]) -> Any:
    if isinstance(value, Dispatcher):
        return _uncompiled(value, done)
    if isinstance(value, ModuleType) and any(isinstance(found, Dispatcher) for found in vars(value).values()):
        return SimpleNamespace(**{name: _plain_function(found, done) for name, found in vars(value).items()})
    return value


def _plain_function(value: Any, done: dict[int, Any]) -> Any:
    return _uncompiled(value, done) if isinstance(value, Dispatcher) else value


def _cells(function: FunctionType, done: dict[int, Any]) -> tuple[CellType, ...] | None:
    if function.__closure__ is None:
        return None
    made = []
    for cell in function.__closure__:
        try:
            made.append(CellType(_plain(cell.cell_contents, done)))
        except ValueError:  # an empty cell
            made.append(cell)
    return tuple(made)


class _Bench:
    """One member on its own, fed with z directly."""

    n = 12

    def __init__(self, subject: Rule, watched: bool = False) -> None:
        self.rule = subject
        self.function = _uncompiled(subject.step, {}) if watched else subject.step
        self.weights = np.full(self.n, subject.start)
        self.memory = np.full((subject.rows_of_memory(self.n), self.n), np.nan)
        subject.fill(self.memory, np.arange(self.n))
        self.scalars = np.array(subject.first_scalars(self.n))
        self.params = np.array(subject.values, float)
        if watched:
            for name in ("weights", "memory", "scalars", "params"):
                setattr(self, name, getattr(self, name).view(_Watched).called(name))

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
        return float(np.asarray(self.weights)[np.asarray(index)] @ np.asarray(z) - side * threshold)

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
