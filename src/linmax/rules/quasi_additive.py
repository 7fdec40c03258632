"""Quasi-additive rules. If w.z <= 0: v <- v + rate z, w = link(v). Grove, Littlestone and Schuurmans (1997)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numba import float64, types

from linmax.core.contract import LINK, STEP, UNTOUCHED, Part, Rule, Vector, as_number, call_link
from linmax.jit.compiling import address_of, kernel
from linmax.rules.custom import CustomFunction, RuleWithCode
from linmax.rules.mixing import average, keep_untouched, mix_memory
from linmax.rules.perceptron import perceptron_bound
from linmax.theory.bounding import Bound, MultiplicativeBound, bounds
from linmax.theory.rows import Rows
from linmax.util.checks import positive

__all__ = ["LINKS", "quasi_additive"]


@kernel(STEP)
def step(
    weights: np.ndarray,
    memory: np.ndarray,
    scalars: np.ndarray,
    index: np.ndarray,
    z: np.ndarray,
    margin: float,
    params: np.ndarray,
) -> bool:
    if margin > 0.0:
        return False
    for j in range(index.size):
        i = index[j]
        memory[0, i] += params[0] * z[j]
        weights[i] = call_link(params[1], memory[0, i])
    return True


@kernel(types.void(float64, Vector, Vector))
def apply_link(link: float, v: np.ndarray, weights: np.ndarray) -> None:
    """w = link(v)."""
    for i in range(v.size):
        weights[i] = call_link(link, v[i])


@kernel(LINK)
def identity(v: float) -> float:
    return v


@kernel(LINK)
def sinh(v: float) -> float:
    return math.sinh(v)


@kernel(LINK)
def exp(v: float) -> float:
    return math.exp(v)


LINKS = {"identity": identity, "sinh": sinh, "exp": exp}


def mix(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    """v is mixed; ``plain`` mixes the weights of the links "exp" and "sinh" instead."""
    link = rule.parameters["link"]
    if plain and link in ("exp", "sinh"):
        weights = average([part.weights for part in parts], shares)
        target.memory[0] = np.log(weights) if link == "exp" else np.arcsinh(weights)
        keep_untouched(parts, target)
    else:
        mix_memory(parts, shares, target)
    apply_link(rule.values[1], target.memory[0], target.weights)


def bound(rule: Rule, rows: Rows) -> Bound:
    """The bound of the Perceptron, of Winnow or of Balanced Winnow, as the link says."""
    link, rate = rule.parameters["link"], rule.parameters["rate"]
    if link == "identity":
        return perceptron_bound(rows)
    alpha = math.exp(rate) if rate <= bounds.LARGEST_RATE else math.inf
    return MultiplicativeBound(rows, positive=link == "exp", alpha=alpha, thickness=0.0)


def quasi_additive(link: str | Callable[[float], float] | CustomFunction, rate: float = 1.0) -> Rule:
    """Any quasi-additive rule: steps are taken in v, predictions made with w = link(v), coordinate by coordinate.

    Parameters
    ----------
    link
        "identity" (Perceptron), "sinh" (Balanced Winnow), "exp" (Winnow, positive weights), or your own
        nondecreasing function of one float, which is compiled and has a name that is none of these.
    rate
        Size of a step in v. For "sinh" and "exp" it is the logarithm of alpha.

    Notes
    -----
    Bounds are known for the links above and for powers (`p_norm`). The weights are link(v) themselves: when they
    outgrow a float the run stops with an error; `winnow` and `balanced_winnow` keep logarithms and never do.

    References
    ----------
    Grove, Littlestone and Schuurmans (1997), General convergence results for linear discriminant updates.
    Mesterharm (2001), section 4.3.

    Examples
    --------
    >>> import linmax
    >>> cubic = linmax.rules.quasi_additive(lambda v: v * v * v)
    >>> data = linmax.datasets.majority_problem(trials=300, seed=1)
    >>> trace = linmax.run(cubic, linmax.instances(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 150
    True
    """
    rate = positive("rate", rate, 0.1)
    if isinstance(link, str):
        if link not in LINKS:
            raise ValueError(
                f"link must be one of {', '.join(LINKS)} or a function, got {link!r}; pass a custom link as a "
                "function, not as text"
            )
        name, function, code = link, LINKS[link], None
    else:
        built_in = next((name for name, known in LINKS.items() if known is link), None)
        if built_in is not None:
            return quasi_additive(built_in, rate)
        code = link if isinstance(link, CustomFunction) else CustomFunction(link, LINK, "link")
        name, function = code.__name__, code.compiled
        if name in LINKS:
            raise ValueError(f"link {name!r}: this is the name of a built-in; try my_{name}")
    start = float(function(0.0))
    if not math.isfinite(start):
        raise ValueError(f"link must be finite at 0, got {start!r}; shift it")
    return RuleWithCode(
        "quasi_additive",
        {"link": name, "rate": rate},
        step,
        values=(rate, as_number(address_of(function, LINK))),
        start=start,
        slots=(UNTOUCHED if start else 0.0,),
        marks=start != 0.0,
        mix=mix,
        bound=bound if code is None else f"none is known for this link; known for {', '.join(LINKS)}",
        defaults={"rate": 1.0},
        code=code,
    )
