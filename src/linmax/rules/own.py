"""A user's own rule: `rule` makes a plain function one, and `OwnRule` is what it makes."""

from __future__ import annotations

import dis
import linecache
import math
import os
import re
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any

import numba
from numba.core.dispatcher import Dispatcher

from linmax.core.contract import STEP, Rule
from linmax.jit.compiling import JIT, OPTIONS, Kernel, cache_folder, caching_in
from linmax.rules.checking import stays_within
from linmax.rules.digest import digest_of
from linmax.rules.mixing import mix_weights
from linmax.rules.shipping import Made, Shipped
from linmax.util.checks import boolean, finite

__all__ = ["OWN_RULES", "TAKEN", "OwnRule", "compile_function", "rule"]


ARGUMENTS = ("weights", "memory", "scalars", "index", "z", "margin", "params")  # of a step


def compile_function(function: Callable[..., Any], signature: Any, what: str) -> Any:
    """Compile a user's function for calling by address; a failure is told in one sentence with the line."""
    if isinstance(function, (Dispatcher, Kernel)):
        function = function.py_func
    if not isinstance(function, FunctionType):
        example = "" if what == "rule" else ", such as lambda v: math.tanh(v)"
        raise TypeError(
            f"{what} must be a function written in Python, got {function!r}; write one that calls it{example}"
        )
    if not JIT:
        return function
    digest, folder = digest_of(function), cache_folder(__file__)
    try:
        with caching_in(os.path.join(folder, f"own-{digest}") if digest else folder):
            try:
                return numba.njit(signature, cache=digest is not None, **OPTIONS)(function)
            except ModuleNotFoundError:  # of which the kept copy was a part, in the process that compiled it
                return numba.njit(signature, **OPTIONS)(function)
    except OSError:
        raise
    except Exception as error:  # Numba has many, not all of one family
        raise TypeError(_explain(function, error, what)) from None


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


def _check_arguments(function: Any) -> None:
    """Refuse a step with other arguments; they are handed over by place, so that another order would go unnoticed."""
    code = getattr(getattr(function, "py_func", function), "__code__", None)
    if code is None:
        return  # no function, which the compiler says
    names = code.co_varnames[: code.co_argcount]
    misplaced = any(name in ARGUMENTS and ARGUMENTS.index(name) != place for place, name in enumerate(names))
    if len(names) != len(ARGUMENTS) or misplaced:
        raise TypeError(
            f"rule {function.__name__!r} must take {', '.join(ARGUMENTS)}, in this order; it takes "
            f"{', '.join(names) or 'nothing'}"
        )


# -- rules -----------------------------------------------------------------------------------------------------------

OWN_RULES: dict[str, OwnRule] = {}  # by name, so that text can call for them too
TAKEN = {"combine", "stack"}  # what text calls otherwise; the built-in rules join where they are listed


class OwnRule:
    """What `rule` returns: call it with parameters for a `Rule`, or use it as it is with the defaults."""

    def __init__(
        self, function: Callable[..., Any], parameters: Mapping[str, float], options: Mapping[str, Any]
    ) -> None:
        _check_arguments(function)
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
        self()  # stays within its arrays
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
        plain = not (self.options["slots"] or self.options["scalars"])
        made = Made(
            self.__name__,
            values,
            self.step,
            values=tuple(values.values()),
            defaults=self.parameters,
            maker=self,
            mix=mix_weights if plain else "it remembers more than its weights, of which no mixture is known",
            **self.options,
        )
        stays_within(made)  # compiled code would write beyond the arrays; which it does may hang on a parameter
        return made

    def __reduce__(self) -> Any:
        return _remade, (Shipped(self.__wrapped__, f"rule {self.__name__!r}", self), self.parameters, self.options)

    def __deepcopy__(self, _: Any) -> OwnRule:
        return self

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

    Returns
    -------
    function or decorator
        The factory of the rule; called with parameters, it gives a learner.

    See Also
    --------
    check_rule : puts a rule through what the trial loop relies on.
    linmax.rules.register_rule : for a rule with its mixture and its bound.

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
    if not isinstance(reach, (int, float)) or math.isnan(reach) or reach < 0.0:
        raise ValueError(f"reach must be a number >= 0, got {reach!r}; try 0, or math.inf to see every trial")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise TypeError(f'parameters must be names with defaults, such as {{"rate": 1.0}}, got {parameters!r}')
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


def _remade(shipped: Shipped, parameters: Mapping[str, float], options: Mapping[str, Any]) -> OwnRule:
    """The rule that was pickled: the same one in the same process; text means it unless the name is in use."""
    if isinstance(shipped.owner, OwnRule):
        return shipped.owner
    before = dict(OWN_RULES)
    made = shipped.owner = OwnRule(shipped.function, parameters, options)
    OWN_RULES.update(before)
    return made
