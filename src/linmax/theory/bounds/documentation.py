"""Descriptions of the bounds' parameters, each written once; `documented` adds them to docstrings."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])

TYPES = {"npt.ArrayLike": "array-like", "Callable[..., float]": "callable", "Any": "float"}

PARAMETERS = {
    "B": "Factor of the required margin, > 0; 1/alpha by default.",
    "C": "Factor of the step, > 0.",
    "alpha": "Factor of the multiplicative steps, > 1.",
    "best": "Mistakes of the best member.",
    "bound": "Bound of the rule, a function of `linmax.theory.bounds`.",
    "classes": "Number of classes k.",
    "correlation": "Matrix sum z z' over the trials named above.",
    "error": "Desired error epsilon, between 0 and 1.",
    "failure": "Probability delta that the statement fails.",
    "hypothesis": "Number of the hypothesis: 1 for the first.",
    "k": "Number of relevant attributes.",
    "known": "Other arguments of ``bound``, by name.",
    "largest": "Largest magnitude X of a coordinate of z.",
    "learned": "Divergence of the comparator, by `divergence`.",
    "loss": "Mean online loss.",
    "margin": "Margin gamma or delta: by how much the comparator u is right, u.z >= margin.",
    "members": "Number of members.",
    "mistakes": "Largest number M of mistakes.",
    "n": "Number of attributes.",
    "noise": "Hinge loss N of u: the sum over trials of max(0, margin - u.z).",
    "norm": "Length of the comparator u.",
    "p": "Order of the norm, >= 2.",
    "radius": "Largest 2-norm R of an instance z.",
    "start": "First weights, > 0; 1 by default.",
    "switches": "Number of times that the sequence of members changes its member.",
    "thickness": "Thickness tau: the rule also updates where w.z <= tau sum(w).",
    "threshold": "Threshold theta; n by default.",
    "total": "Sum of the target's weights mu.",
    "trials": "Number of trials.",
    "u": "Comparator: weights that would be right, or nearly so.",
}

UPDATES_RETURNED = "Bound on the updates; infinite where nothing can be promised."


def documented(returns: str = UPDATES_RETURNED, **special: str) -> Callable[[Function], Function]:
    """Add the sections Parameters and Returns to a docstring.

    Parameters
    ----------
    returns : str
        Description of the result.
    **special : str
        Descriptions of parameters where they differ from `PARAMETERS`.

    Examples
    --------
    >>> @documented("Bound on the mistakes.", n="Number of voters.")
    ... def weakest(n: int, margin: float = 1.0) -> float:
    ...     '''Bound something.
    ...
    ...     Source: none.
    ...     '''
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

    def document(function: Function) -> Function:
        signature = inspect.signature(function)
        descriptions = PARAMETERS | special
        parameters = [_entry(parameter, descriptions[name]) for name, parameter in signature.parameters.items()]
        result = _section("Returns", [_described(str(signature.return_annotation), returns)])
        text, heading, examples = inspect.cleandoc(function.__doc__ or "").partition("\n\nExamples\n")
        function.__doc__ = f"{text}\n\n{_section('Parameters', parameters)}\n\n{result}{heading}{examples}"
        return function

    return document


def _entry(parameter: inspect.Parameter, description: str) -> str:
    kind = str(parameter.annotation).removesuffix(" | None")
    default = "" if parameter.default is parameter.empty else f", default={parameter.default!r}"
    if parameter.default is None:
        default = ", optional"
    stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
    return _described(f"{stars}{parameter.name} : {TYPES.get(kind, kind)}{default}", description)


def _described(head: str, description: str) -> str:
    return f"{head}\n{textwrap.fill(description, 112, initial_indent='    ', subsequent_indent='    ')}"


def _section(name: str, entries: list[str]) -> str:
    return "\n".join([name, "-" * len(name), *entries])
