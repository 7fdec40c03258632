"""Custom rules: `rule` turns a Python function into a rule that runs compiled, wherever a built-in rule does."""

from __future__ import annotations

import math
import pickle
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import FunctionType
from typing import Any, TypeAlias, overload

import numba
import numpy as np

from linmax.core.contract import STEP, Rule
from linmax.jit.compiling import JIT, OPTIONS
from linmax.rules.check import check_in_python, failing_line
from linmax.rules.mixing import mix_weights
from linmax.util.checks import boolean, finite

__all__ = ["CUSTOM_RULES", "TAKEN", "CustomFunction", "CustomRule", "RuleWithCode", "as_pickled", "rule"]

Step: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, np.ndarray], bool]
ARGUMENTS = ("weights", "memory", "scalars", "index", "z", "margin", "params")  # of a step
CUSTOM_RULES: dict[str, CustomRule] = {}  # by their names in text
TAKEN = {"combine", "stack"}  # other names in text; `linmax.rules` adds the built-in rules

_PICKLED: weakref.WeakValueDictionary[bytes, CustomFunction] = weakref.WeakValueDictionary()


class CustomFunction:
    """A user's function, compiled for calls by address. Pickles contain its code.

    Parameters
    ----------
    function : callable
        A Python function, or one compiled by Numba.
    signature : numba signature
        Types of its arguments and result.
    kind : str
        "rule" or "link", for messages.
    """

    def __init__(self, function: Any, signature: Any, kind: str) -> None:
        function = getattr(function, "py_func", function)
        if not isinstance(function, FunctionType):
            example = "" if kind == "rule" else ", such as lambda v: math.tanh(v)"
            raise TypeError(f"{kind} must be a Python function, got {function!r}; wrap it in one{example}")
        self.function, self.signature, self.kind = function, signature, kind
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.arguments: tuple[Any, ...] = (signature, kind)  # of its class, after the function

    @cached_property
    def compiled(self) -> Any:
        """The compiled function."""
        if not JIT:
            return self.function
        try:
            return numba.njit(self.signature, **OPTIONS)(self.function)
        except Exception as error:  # Numba raises many kinds
            lines = [line.strip() for line in str(error).splitlines()]
            noise = ("Failed in", "During:", "File ", "<source", "^")
            reason = next((line for line in lines if line and not line.startswith(noise)), "unknown reason")
            raise TypeError(
                f"{self.kind} {self.__name__!r} cannot be compiled{failing_line(self.function, error)} ({reason}); "
                "use numbers, loops and the functions of math on the arrays that are passed"
            ) from error

    @cached_property
    def pickled(self) -> bytes:
        """Class, code and description, by cloudpickle: also from a script, a notebook or inside a function."""
        import cloudpickle

        try:
            data = cloudpickle.dumps((type(self), self.function, *self.arguments))
        except Exception as error:  # depends on what the function refers to
            raise pickle.PicklingError(
                f"{self.__name__!r} cannot be pickled, because it refers to something that cannot ({error}); refer to "
                "numbers, arrays and compiled functions only"
            ) from error
        _PICKLED[data] = self
        return data

    def __reduce__(self) -> Any:
        return _restore, (self.pickled,)

    def __deepcopy__(self, _: Any) -> CustomFunction:
        return self


def _restore(pickled: bytes) -> CustomFunction:
    """Return the unpickled function, compiled once in a process."""
    found = _PICKLED.get(pickled)
    if found is None:
        kind, *arguments = pickle.loads(pickled)
        found = kind(*arguments)
        assert isinstance(found, CustomFunction)
        vars(found)["pickled"] = pickled
        _PICKLED[pickled] = found
        if isinstance(found, CustomRule):
            CUSTOM_RULES.setdefault(found.text_name, found)
    return found


@dataclass(frozen=True, eq=False, repr=False)
class RuleWithCode(Rule):
    """A rule that contains a user's function: its factory `CustomRule`, or its link."""

    code: CustomFunction | None = None


def as_pickled(learner: Any, rules: Iterable[Rule]) -> Any:
    """Return what pickles contain for a learner with these rules: its text, or itself if it has a user's code."""
    return learner if any(isinstance(each, RuleWithCode) and each.code for each in rules) else str(learner)


class CustomRule(CustomFunction):
    """Factory of a custom rule: call it with parameters, or use it as a learner with the defaults."""

    def __init__(self, function: Any, parameters: Mapping[str, float], options: Mapping[str, Any]) -> None:
        super().__init__(function, STEP, "rule")
        _check_arguments(self.function)
        if self.text_name in TAKEN:
            raise ValueError(f"rule {self.__name__!r}: this is the name of a built-in; try my_{self.__name__}")
        self.parameters = {name: finite(name, value) for name, value in parameters.items()}
        self.options = dict(options)
        self.arguments = (self.parameters, self.options)
        self()  # checks and compiles the function

    @property
    def text_name(self) -> str:
        """Name in text, such as "my-rule"."""
        return self.__name__.replace("_", "-").lower()

    def __call__(self, *args: float, **kwargs: float) -> Rule:
        names = list(self.parameters)
        if len(args) > len(names):
            raise TypeError(
                f"{self.__name__} takes {len(names)} parameters ({', '.join(names) or 'none'}), got {len(args)}"
            )
        given = dict(zip(names, args, strict=False)) | kwargs
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise TypeError(f"{self.__name__} has no parameter {unknown[0]!r}; it has {', '.join(names) or 'none'}")
        values = {name: finite(name, given.get(name, default)) for name, default in self.parameters.items()}
        only_weights = not (self.options["slots"] or self.options["scalars"])
        made = RuleWithCode(
            self.__name__,
            values,
            step=None,
            values=tuple(values.values()),
            defaults=self.parameters,
            mix=mix_weights if only_weights else "it remembers more than its weights, of which no mixture is known",
            code=self,
            **self.options,
        )
        check_in_python(made, self.function)  # an index out of bounds may depend on a parameter
        return replace(made, step=self.compiled)

    def __repr__(self) -> str:
        return f"<rule {self.__name__}({', '.join(f'{k}={v:g}' for k, v in self.parameters.items())})>"


def _check_arguments(function: FunctionType) -> None:
    """Refuse a step with other arguments: they are passed by position, so another order would go unnoticed."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    misplaced = any(name in ARGUMENTS and ARGUMENTS.index(name) != place for place, name in enumerate(names))
    if len(names) != len(ARGUMENTS) or misplaced:
        raise TypeError(
            f"rule {function.__name__!r} must take {', '.join(ARGUMENTS)}, in this order; got "
            f"{', '.join(names) or 'nothing'}"
        )


@overload
def rule(
    function: Step,
    *,
    parameters: Mapping[str, float] | None = None,
    start: float = 0.0,
    slots: tuple[float, ...] = (),
    scalars: tuple[float, ...] = (),
    reach: float = 0.0,
    bounded: bool = False,
) -> CustomRule: ...


@overload
def rule(
    function: None = None,
    *,
    parameters: Mapping[str, float] | None = None,
    start: float = 0.0,
    slots: tuple[float, ...] = (),
    scalars: tuple[float, ...] = (),
    reach: float = 0.0,
    bounded: bool = False,
) -> Callable[[Step], CustomRule]: ...


def rule(
    function: Step | None = None,
    *,
    parameters: Mapping[str, float] | None = None,
    start: float = 0.0,
    slots: tuple[float, ...] = (),
    scalars: tuple[float, ...] = (),
    reach: float = 0.0,
    bounded: bool = False,
) -> CustomRule | Callable[[Step], CustomRule]:
    """Turn a function into a rule: it is compiled and runs inside the trial loop, wherever a built-in rule does.

    The function is ``step(weights, memory, scalars, index, z, margin, params) -> bool``. ``index`` and ``z`` are the
    coordinates and values of z = x^label - x^rival where it is not 0, times the weight of the trial (`sample_weight`),
    ``margin`` is w.z without that weight. Change ``weights`` (and
    ``memory``) at ``index`` only, and return whether you did. Before it is compiled, the function runs in Python on
    small arrays, which finds most mistakes.

    Parameters
    ----------
    function : callable, optional
        The step. Without it, `rule` returns a decorator.
    parameters : mapping of str to float, optional
        Names and defaults, in the order in which ``params`` contains them.
    start : float, default=0.0
        Weight of a coordinate never seen.
    slots : tuple of float, default=()
        First value of each per-coordinate array: ``memory[0, i]``, ``memory[1, i]``, ...
    scalars : tuple of float, default=()
        First values of the rule's own numbers, ``scalars[7]`` onwards (see `linmax.core.contract`).
    reach : float, default=0.0
        Promise that nothing happens while margin > reach: 0 for mistake-driven rules, a margin, or
        ``math.inf`` to be called on every trial.
    bounded : bool, default=False
        Whether the rule requires |z_i| <= 1.

    Returns
    -------
    CustomRule or decorator
        The factory of the rule; called with parameters, it returns a learner.

    See Also
    --------
    check_rule : tests a rule against what the trial loop relies on.
    linmax.rules.register_rule : for a rule with a mixture and a bound.

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
    >>> data = linmax.datasets.majority_problem(trials=300, seed=1)
    >>> trace = linmax.run(hinge(rate=0.1), linmax.instances(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 150
    True
    >>> str(hinge(0.1))
    'hinge(rate=0.1)'
    """
    if not isinstance(reach, (int, float)) or math.isnan(reach) or reach < 0.0:
        raise ValueError(f"reach must be a number >= 0, got {reach!r}; try 0, or math.inf to see every trial")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise TypeError(f'parameters must be names with defaults, such as {{"rate": 1.0}}, got {parameters!r}')
    options = {
        "start": finite("start", start),
        "slots": tuple(finite("slots", value) for value in slots),
        "scalars": tuple(finite("scalars", value) for value in scalars),
        "reach": float(reach),
        "bounded": boolean("bounded", bounded),
    }

    def decorate(step: Step) -> CustomRule:
        made = CustomRule(step, parameters or {}, options)
        CUSTOM_RULES[made.text_name] = made
        return made

    return decorate if function is None else decorate(function)
