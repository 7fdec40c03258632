"""ALMA_p: approximate maximal margin with the p-norm. Gentile (2001).

theta = c Theta with Theta in memory: the projection onto the unit ball then only changes the number c.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from linmax.core.contract import GAUGE, MASS, OWN, PEAK, SHIFT, STEP, WEIGHT, Part, Rule
from linmax.jit.compiling import kernel
from linmax.rules.mixing import average, mix_memory
from linmax.rules.p_norm import log_norm, move, power, spread, weights_of_v
from linmax.theory.bounding import AdditiveBound, bounds
from linmax.theory.rows import Rows
from linmax.util.checks import at_least, boolean, finite, positive

__all__ = ["alma"]

UPDATES, LOG_C = OWN, OWN + 1  # k - 1, and ln c
NORMALISE, PROJECT, BOUND, SIZES = 4, 5, 6, 7  # of the parameters; from the last on, p-norms of this many ones
LISTED_NORMS = 64  # p-norms of this many ones are looked up
FOLD = -100.0  # c^(p-1) below e^-100 is multiplied into Theta, which would outgrow a float: rare


@cache
def sizes(p: float) -> tuple[float, ...]:
    """The p-norms of this many ones; votes need no others."""
    return tuple(math.pow(m, 1.0 / p) for m in range(LISTED_NORMS))


@kernel()
def pace(scalars: np.ndarray, params: np.ndarray) -> float:
    """C / (sqrt(p-1) sqrt(k))."""
    return params[3] / math.sqrt((params[0] - 1.0) * (scalars[UPDATES] + 1.0))


@kernel()
def step_size(scalars: np.ndarray, params: np.ndarray, size: float) -> float:
    """C / (sqrt(p-1) sqrt(k) ||z||_p)."""
    return pace(scalars, params) / size


@kernel()
def project(weights: np.ndarray, memory: np.ndarray, scalars: np.ndarray, params: np.ndarray) -> None:
    """The second half of an update: theta is brought into the unit ball, and one update more is counted."""
    p, norm = params[0], log_norm(weights, memory, scalars, params[0])  # of Theta
    if params[PROJECT] != 0.0 and norm + scalars[LOG_C] > 0.0:
        scalars[LOG_C] = -norm
    if (p - 1.0) * scalars[LOG_C] < FOLD:
        shrink = math.exp(scalars[LOG_C])
        for i in range(memory.shape[1]):
            memory[0, i] *= shrink
        scalars[SHIFT] += (p - 1.0) * scalars[LOG_C]  # so that no stored weight changes
        scalars[MASS] *= shrink
        scalars[PEAK] *= shrink
        norm += scalars[LOG_C]
        scalars[LOG_C] = 0.0
    scalars[GAUGE] = scalars[LOG_C] - (p - 2.0) * norm if norm > -np.inf else scalars[LOG_C]
    scalars[UPDATES] += 1.0


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
    p, alpha, b, normalise = params[0], params[1], params[2], params[NORMALISE] != 0.0
    largest, even = 0.0, True
    for j in range(index.size):
        largest = max(largest, abs(z[j]))
        even &= abs(z[j]) == abs(z[0])
    if largest == 0.0:
        return False
    size = params[BOUND]
    if normalise and even and index.size < LISTED_NORMS:  # as those of votes are
        size = largest * params[SIZES + index.size]
    elif normalise:
        total = 0.0
        for j in range(index.size):
            share = abs(z[j]) / largest
            total += 1.0 if share == 1.0 else power(share, p)
        size = largest * total ** (1.0 / p)
    wanted = (1.0 - alpha) * b * math.sqrt((p - 1.0) / (scalars[UPDATES] + 1.0))
    if wanted > 0.0:  # else only the sign of the margin matters, not its scale
        margin *= math.exp(scalars[SHIFT] + scalars[GAUGE])
    if margin > wanted * size:
        return False
    rate, inside, mass, shift = (
        step_size(scalars, params, size) * scalars[WEIGHT],
        math.exp(scalars[LOG_C]),
        scalars[MASS],
        scalars[SHIFT],
    )
    for j in range(index.size):
        mass += move(weights, memory, shift, index[j], rate * z[j] / inside, p)
    scalars[MASS] = mass
    project(weights, memory, scalars, params)
    return True


def mix(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    """theta is mixed, and c becomes 1."""
    mix_memory(parts, shares, target)
    target.memory[0] = average([part.memory[0] * math.exp(part.scalars[LOG_C]) for part in parts], shares)
    target.scalars[LOG_C] = 0.0
    weights_of_v(rule, target)


def mistake_bound(rule: Rule, rows: Rows) -> AdditiveBound:
    """`linmax.theory.bounds.alma` on z / ||z||_p; without projection `linmax.theory.bounds.alma_unprojected`."""
    known = rule.parameters
    p, alpha, B, C = known["p"], known["alpha"], known["B"], known["C"]
    sizes = rows.sizes(p)
    scaled = rows.divided(sizes if known["normalise"] else np.full(len(sizes), known["bound"]))
    covered = bool(known["normalise"] or sizes.max() <= known["bound"] * (1.0 + 1e-12))

    def value(_: float, margin: float, noise: float) -> float:
        if not covered:
            return math.inf
        if not known["project"]:
            return bounds.alma_unprojected(p, margin) if noise == 0.0 and alpha == 1.0 else math.inf
        return bounds.alma(p, margin, noise, alpha, B, C)

    factor = math.sqrt(p - 1.0) * (2.0 / C + C + 2.0 * (1.0 - alpha) * (1.0 / alpha if B is None else B))
    return AdditiveBound(scaled, p / (p - 1.0), factor, value)


def alma(
    p: float = 2.0,
    alpha: float = 1.0,
    B: float | None = None,
    C: float = math.sqrt(2.0),
    normalise: bool = True,
    project: bool = True,
    bound: float = 1.0,
    preset: str | None = None,
) -> Rule:
    """ALMA_p(alpha; B, C): after k - 1 updates, with zhat = z / ||z||_p,

    if w.zhat <= (1 - alpha) B sqrt(p-1) / sqrt(k): theta <- theta + C / (sqrt(p-1) sqrt(k)) zhat, projected onto
    ||theta||_p <= 1; w_i = sign(theta_i) |theta_i|^(p-1) / ||theta||_p^(p-2).

    Parameters
    ----------
    p
        At least 2; larger makes the updates more multiplicative.
    alpha
        In (0, 1]: the margin reached is (1 - alpha) of the best. 1 updates on mistakes only.
    B, C
        Constants of the margin and of the step. B defaults to 1/alpha, C to sqrt(2).
    normalise
        Divide z by its p-norm; when False ``bound`` >= ||z||_p takes its place.
    project
        Keep theta in the unit ball.
    preset
        "fusion": alpha = .9, B = 1/alpha, C = sqrt(2), no projection, which fits the experiments of Mesterharm and
        Hsu best.

    Notes
    -----
    Separable with margin gamma: updates <= (p-1)(A+1)^2 / (4 C^2 gamma^2) + A, A = max(1, C^2 + 2(1-alpha) B C).

    References
    ----------
    Gentile (2001), A new approximate maximal margin classification algorithm.

    Examples
    --------
    >>> import linmax
    >>> str(linmax.rules.alma(2.5)), str(linmax.rules.alma(2, preset="fusion"))
    ('alma(2.5)', 'alma(2, alpha=0.9, project=False)')
    """
    p = at_least("p", p, 2.0)
    if preset is not None:
        if preset != "fusion":
            raise ValueError(f"preset must be 'fusion' or None, got {preset!r}")
        alpha, B, C, normalise, project = 0.9, None, math.sqrt(2.0), True, False
    alpha = finite("alpha", alpha)
    if not 0.0 < alpha <= 1.0:
        raise ValueError(f"alpha must be in (0, 1], got {alpha!r}; try 0.9")
    margin_constant = 1.0 / alpha if B is None else positive("B", B, 1.0)
    step_constant = positive("C", C, 1.414)
    normalise, project = boolean("normalise", normalise), boolean("project", project)
    bound = positive("bound", bound, 1.0)
    return Rule(
        "alma",
        {
            "p": p,
            "alpha": alpha,
            "B": B,
            "C": step_constant,
            "normalise": normalise,
            "project": project,
            "bound": bound,
        },
        step,
        values=(
            *(p, alpha, margin_constant, step_constant, float(normalise), float(project), bound),
            *sizes(p),
        ),
        slots=(0.0,),
        scalars=(0.0, 0.0),
        reach=0.0 if alpha == 1.0 else math.inf,
        only_sign=alpha == 1.0,
        spread=spread,
        weighs=True,
        mix=mix,
        bound=mistake_bound,
        defaults={"alpha": 1.0, "B": None, "C": math.sqrt(2.0), "normalise": True, "project": True, "bound": 1.0},
    )
