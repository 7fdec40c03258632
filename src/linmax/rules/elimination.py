"""Elimination of literals, for disjunctions. On a false positive, drop every literal that is true. Valiant (1984)."""

from __future__ import annotations

import numpy as np

from linmax.core.contract import OWN, STEP, Rule
from linmax.jit.compiling import kernel

__all__ = ["elimination"]

INCONSISTENT = OWN  # false negatives seen: the data are no disjunction of the literals


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
    if index.size == 0 and margin < 0.0:
        scalars[INCONSISTENT] += 1.0  # a positive instance with no true literal at all
        return False
    if index.size == 0 or margin > 0.0 or (z[0] > 0.0 and margin >= 0.0):
        return False
    if z[0] > 0.0:
        scalars[INCONSISTENT] += 1.0
        return False
    for j in range(index.size):
        weights[index[j]] = 0.0
    return True


def elimination() -> Rule:
    """Start with every literal; predict 1 if one that is left is true; on a false positive drop the true ones.

    It never errs on the positives of a disjunction. A false negative shows that the data are no disjunction of the
    given literals: nothing changes and `LinearThreshold.inconsistent` counts it.

    Notes
    -----
    Monotone disjunctions: at most n mistakes; with the 2n literals x and 1 - x: at most n + 1.

    References
    ----------
    Valiant (1984), A theory of the learnable.

    Examples
    --------
    >>> import linmax
    >>> learner = linmax.theory.LinearThreshold(linmax.rules.elimination())
    >>> learner.run([[1, 1, 0], [0, 1, 1], [1, 0, 0]], [1, 0, 1]).mistakes.tolist()
    [0, 1, 1]
    """
    least = float(np.nextafter(0.0, 1.0))  # w.x >= least is "some literal is true"
    return Rule(
        "elimination",
        {},
        step,
        start=1.0,
        scalars=(0.0,),
        bounded=True,
        nonnegative=True,
        threshold=least,
        mix="only rules without a fixed threshold are merged",
    )
