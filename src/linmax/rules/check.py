"""Tests of a rule against its contract: `check_rule` for any rule, `check_in_python` before one is compiled."""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from linmax.core.contract import OWN, REACH, Rule

__all__ = ["check_in_python", "check_rule", "failing_line", "trace_of"]


def check_rule(candidate: Rule | Callable[[], Rule], seed: int = 0) -> None:
    """Test a rule against what the trial loop relies on.

    Checked on random and on awkward z (ties, zeros, single coordinates, repeated instances): the step returns a
    bool; it changes weights and memory only at the coordinates of z; where it returns False it changes no weight; it
    does nothing beyond its reach; equal inputs give equal bits; weights stay finite.

    Parameters
    ----------
    candidate : Rule or callable
        A rule, or a factory that needs no arguments.
    seed : int, default=0
        Seed of the random z.

    Raises
    ------
    AssertionError
        With the reason, if a test fails.

    See Also
    --------
    linmax.rule : turns a function into a rule.

    Examples
    --------
    >>> import linmax
    >>> linmax.testing.check_rule(linmax.rules.perceptron())
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


def check_in_python(subject: Rule, function: FunctionType) -> None:
    """Run the step in Python on small NumPy arrays: compiled code does not notice an index out of bounds.

    Compiled functions that the step calls by a global name run in Python, too.
    """
    plain = {name: getattr(value, "py_func", value) for name, value in function.__globals__.items()}
    step = FunctionType(function.__code__, plain, function.__name__, function.__defaults__, function.__closure__)
    bench, random = _Bench(subject, step), np.random.default_rng(0)
    for trial in range(40):
        index, z = _awkward(random, trial, subject)
        try:
            with np.errstate(all="ignore"):
                changed = bench.step(index, z)
        except (ArithmeticError, ValueError):
            continue  # compiled code computes 1/0 and log(-1) without an error
        except IndexError as error:
            raise IndexError(
                f"rule {subject.name!r} indexes outside an array{failing_line(function, error)} ({error}); memory has "
                f"{len(subject.slots)} rows (slots=), scalars {OWN + len(subject.scalars)} numbers (scalars= adds to "
                f"{OWN}), params {len(subject.values)} (parameters=); loop over range(index.size), which may be 0"
            ) from error
        except Exception as error:
            raise TypeError(
                f"rule {subject.name!r} fails{failing_line(function, error)} ({type(error).__name__}: {error}); use "
                "numbers, loops and the functions of math on the arrays that are passed"
            ) from error
        if not isinstance(changed, (bool, np.bool_)):
            raise TypeError(f"rule {subject.name!r} must return True or False on every path, got {changed!r}")


def failing_line(function: FunctionType, error: Exception) -> str:
    """Return where in the function an error arose, in Python or in Numba: ", line 3 of script.py: weights[0] = 1"."""
    file = function.__code__.co_filename
    numbers = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    numbers += [int(number) for number in re.findall(r'File "[^"]*", line (\d+)', str(error))]
    first = function.__code__.co_firstlineno
    last = max((line for *_, line in function.__code__.co_lines() if line), default=first)
    inside = [number for number in numbers if number is not None and first <= number <= last]
    number = inside[-1] if inside else first
    source = linecache.getline(file, number).strip()
    return f", line {number} of {file}" + (f": {source}" if source else "")


def trace_of(subject: Rule) -> list[float]:
    """Return the state after a few fixed z, as finite numbers: a saved model recognizes its rule by them.

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


class _Bench:
    """One member without a loop: z is passed to its step directly."""

    n = 12

    def __init__(self, subject: Rule, function: Any = None) -> None:
        self.rule = subject
        self.function = subject.step if function is None else function
        self.weights = np.full(self.n, subject.start)
        self.memory = np.full((len(subject.slots), self.n), np.nan)
        subject.fill(self.memory, np.arange(self.n))
        self.scalars = np.array(subject.first_scalars())
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
    """Draw z over the first half of the coordinates; the others are never seen."""
    size = (0, 1, 2, 6)[trial % 4]
    index = np.sort(random.permutation(_Bench.n // 2)[:size]).astype(np.int64)
    z = random.choice([-1.0, 1.0], size) if trial % 3 else random.uniform(-1.0, 1.0, size)
    if subject.nonnegative:  # z = y x with x >= 0: one sign
        z = np.abs(z) * (1.0 if trial % 5 < 2 else -1.0)
    return index, z
