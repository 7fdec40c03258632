"""Declarations of bounds: `declared` checks the arguments of a function and describes them in its docstring.

Each parameter is described, and its check named, once, in `PARAMETERS`.
"""

from __future__ import annotations

import functools
import inspect
import math
import textwrap
from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Vector: TypeAlias = npt.NDArray[np.float64]
Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")
Check: TypeAlias = Callable[[str, Any], object]  # name and value; returns the value as a float or an array, or raises

# -- checks; unlike those of `linmax.util.checks` they allow infinity -------------------------------------------------


def number(name: str, value: float) -> float:
    """Require a number."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {value!r}") from None
    if math.isnan(found):
        raise ValueError(f"{name} must be a number, got nan")
    return found


def amount(name: str, value: float) -> float:
    """Require a number >= 0."""
    found = number(name, value)
    if found < 0.0:
        raise ValueError(f"{name} must be >= 0, got {value!r}; a loss, length or count is never negative")
    return found


def finite_margin(name: str, value: float) -> float:
    """Require a number, for a margin without which there is no bound: not positive, it makes the bound infinite."""
    return number(name, value)


def above(least: float, advice: float) -> Callable[[str, float], float]:
    """Return a check that requires a number > ``least``."""

    def check(name: str, value: float) -> float:
        found = number(name, value)
        if found <= least:
            raise ValueError(f"{name} must be > {least:g}, got {value!r}; try {advice:g}")
        return found

    return check


def count(least: int) -> Callable[[str, float], float]:
    """Return a check that requires a number >= ``least``."""

    def check(name: str, value: float) -> float:
        found = number(name, value)
        if found < least:
            raise ValueError(f"{name} must be >= {least}, got {value!r}; try {least}")
        return found

    return check


def inside(low: float, high: float, advice: float) -> Callable[[str, float], float]:
    """Return a check that requires a number between ``low`` and ``high``, neither of them."""

    def check(name: str, value: float) -> float:
        found = number(name, value)
        if not low < found < high:
            raise ValueError(f"{name} must lie between {low:g} and {high:g}, got {value!r}; try {advice:g}")
        return found

    return check


fraction = inside(0.0, 1.0, 0.05)


def positive_share(name: str, value: float) -> float:
    """Require a number in (0, 1]."""
    found = number(name, value)
    if not 0.0 < found <= 1.0:
        raise ValueError(f"{name} must be in (0, 1], got {value!r}; try 0.9")
    return found


def between(low: float, high: float, advice: float) -> Callable[[str, float], float]:
    """Return a check that requires a number from ``low`` to ``high``."""

    def check(name: str, value: float) -> float:
        found = number(name, value)
        if not low <= found <= high:
            raise ValueError(f"{name} must lie from {low:g} to {high:g}, got {value!r}; try {advice:g}")
        return found

    return check


def weights(name: str, u: npt.ArrayLike) -> Vector:
    """Require weights of any sign whose magnitudes sum to at most 1."""
    found = np.asarray(u, dtype=float)
    if found.ndim != 1 or found.size == 0:
        raise ValueError(f"{name} must be one row of weights, got shape {found.shape}; give a list of numbers")
    if not np.all(np.isfinite(found)):
        raise ValueError(f"{name} must be finite, got nan or infinity; drop unknown weights")
    total = float(np.abs(found).sum())
    if total > 1.0 + 1e-9:
        raise ValueError(f"{name} must have sum |u_i| <= 1, got {total:g}; divide {name} and the margin by it")
    return found


def shares(name: str, u: npt.ArrayLike) -> Vector:
    """Require weights >= 0 with sum 1."""
    found = np.asarray(u, dtype=float)
    if found.size and found.min() < 0.0:
        raise ValueError(f"{name} must be >= 0, got {found.min():g}; use the balanced bound for weights of both signs")
    total = float(found.sum())
    if found.size and (total > 1.0 + 1e-9 or total < 1.0 - 1e-9):
        raise ValueError(f"{name} must have sum u_i = 1, got {total:g}; divide {name} and the margin by it")
    return weights(name, found)


def possible(margin: float, largest: float, noise: float) -> float:
    """Require a margin that u.z can reach."""
    if noise == 0.0 and margin > largest * (1.0 + 1e-9):
        raise ValueError(
            f"margin must be <= {largest:g}, the most that u.z can be, got {margin:g}; give largest=max |z_i|"
        )
    return margin


# -- declarations -----------------------------------------------------------------------------------------------------

TYPES = {"npt.ArrayLike": "array-like", "Callable[..., float]": "callable"}

PARAMETERS: dict[str, tuple[str, Check | None]] = {
    "B": ("Factor of the required margin, > 0; 1/alpha by default.", above(0.0, 1.0)),
    "C": ("Factor of the step, > 0.", above(0.0, 1.414)),
    "alpha": ("Factor of the multiplicative steps, > 1.", above(1.0, 1.1)),
    "best": ("Mistakes of the best member.", amount),
    "bound": ("Bound of the rule, a function of `linmax.theory.bounds`.", None),
    "classes": ("Number of classes k.", count(2)),
    "correlation": ("Matrix sum z z' over the trials named above.", None),
    "error": ("Desired error epsilon, between 0 and 1.", fraction),
    "failure": ("Probability delta that the statement fails.", fraction),
    "hypothesis": ("Number of the hypothesis: 1 for the first.", count(1)),
    "k": ("Number of relevant attributes.", count(0)),
    "known": ("Other arguments of ``bound``, by name.", None),
    "largest": ("Largest magnitude X of a coordinate of z.", above(0.0, 1.0)),
    "learned": ("Divergence of the comparator, by `divergence`.", amount),
    "loss": ("Mean online loss.", amount),
    "margin": ("Margin gamma or delta: by how much the comparator u is right, u.z >= margin.", finite_margin),
    "members": ("Number of members.", count(1)),
    "mistakes": ("Largest number M of mistakes.", count(0)),
    "n": ("Number of attributes.", count(1)),
    "noise": ("Hinge loss N of u: the sum over trials of max(0, margin - u.z).", amount),
    "norm": ("Length of the comparator u.", amount),
    "p": ("Order of the norm, >= 2.", count(2)),
    "radius": ("Largest 2-norm R of an instance z.", amount),
    "start": ("First weights, > 0; 1 by default.", None),
    "switches": ("Number of times that the sequence of members changes its member.", count(0)),
    "thickness": ("Thickness tau: the rule also updates where w.z <= tau sum(w).", amount),
    "threshold": ("Threshold theta; n by default.", None),
    "total": ("Sum of the target's weights mu.", amount),
    "trials": ("Number of trials.", count(1)),
    "u": ("Comparator: weights that would be right, or nearly so.", None),
}

UPDATES_RETURNED = "Bound on the updates; infinite where nothing can be promised."
MISTAKES_RETURNED = "Bound on the mistakes; infinite where nothing can be promised."


def declared(
    returns: str = UPDATES_RETURNED, **special: str | Check | tuple[str, Check]
) -> Callable[[Callable[Arguments, Value]], Callable[Arguments, Value]]:
    """Check the arguments of a bound, and add the sections Parameters and Returns to its docstring.

    A margin that is not positive gives infinity, unless the function has another check for it.

    Parameters
    ----------
    returns : str
        Description of the result.
    **special : str, function, or pair of both
        Descriptions and checks of parameters where they differ from `PARAMETERS`.

    Examples
    --------
    >>> @declared("Bound on the mistakes.", n="Number of voters.")
    ... def weakest(n: int, margin: float = 1.0) -> float:
    ...     '''Bound something.
    ...
    ...     Source: none.
    ...     '''
    ...     return n / margin
    >>> weakest(3, 0.5), weakest(3, -1.0)
    (6.0, inf)
    >>> weakest(0)
    Traceback (most recent call last):
    ValueError: n must be >= 1, got 0; try 1
    >>> print(inspect.getdoc(weakest))
    Bound something.
    <BLANKLINE>
    Source: none.
    <BLANKLINE>
    Parameters
    ----------
    n : int
        Number of voters.
    margin : float, default=1.0
        Margin gamma or delta: by how much the comparator u is right, u.z >= margin.
    <BLANKLINE>
    Returns
    -------
    float
        Bound on the mistakes.
    """

    def declare(function: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
        signature = inspect.signature(function)
        described = {name: _described(name, special.get(name)) for name in signature.parameters}
        checks = {name: check for name, (_, check) in described.items() if check is not None}
        optional = {name for name, parameter in signature.parameters.items() if parameter.default is None}
        infinite = checks.get("margin") is finite_margin

        @functools.wraps(function)
        def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
            bound = signature.bind(*args, **kwargs)
            for name, value in bound.arguments.items():
                if name in checks and not (value is None and name in optional):
                    bound.arguments[name] = checks[name](name, value)
            if infinite and bound.arguments.get("margin", 1.0) <= 0.0:
                return math.inf  # type: ignore[return-value]  # such functions return a float
            return function(*bound.args, **bound.kwargs)

        parameters = [_entry(parameter, described[name][0]) for name, parameter in signature.parameters.items()]
        result = _section("Returns", [_indented(str(signature.return_annotation), returns)])
        text, heading, examples = inspect.cleandoc(function.__doc__ or "").partition("\n\nExamples\n")
        checked.__doc__ = f"{text}\n\n{_section('Parameters', parameters)}\n\n{result}{heading}{examples}"
        return checked

    return declare


def _described(name: str, special: str | Check | tuple[str, Check] | None) -> tuple[str, Check | None]:
    description, check = PARAMETERS.get(name, ("", None))
    if isinstance(special, tuple):
        return special
    return (special, check) if isinstance(special, str) else (description, special or check)


def _entry(parameter: inspect.Parameter, description: str) -> str:
    kind = str(parameter.annotation).removesuffix(" | None")
    default = "" if parameter.default is parameter.empty else f", default={parameter.default!r}"
    if parameter.default is None:
        default = ", optional"
    stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
    return _indented(f"{stars}{parameter.name} : {TYPES.get(kind, kind)}{default}", description)


def _indented(head: str, description: str) -> str:
    return f"{head}\n{textwrap.fill(description, 112, initial_indent='    ', subsequent_indent='    ')}"


def _section(name: str, entries: list[str]) -> str:
    return "\n".join([name, "-" * len(name), *entries])
