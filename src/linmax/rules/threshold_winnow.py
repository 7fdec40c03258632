"""Winnow with a fixed threshold, for two classes: Winnow1 and Winnow2. Littlestone (1988).

The loop subtracts the threshold: margin = y (w.x - theta), z = y x. A positive instance is promoted while it has not
reached theta + above, a negative one demoted while it has not fallen below theta - below; at equality a positive is
right and a negative wrong, since w.x >= theta predicts 1.
"""

from __future__ import annotations

import math

import numpy as np

from linmax.core.contract import STEP
from linmax.jit.compiling import kernel

__all__ = ["threshold_step"]

FAINT = 1e-280  # below this a product would lose digits and, at 0, could never grow again


@kernel(STEP)
def threshold_step(
    weights: np.ndarray,
    memory: np.ndarray,
    scalars: np.ndarray,
    index: np.ndarray,
    z: np.ndarray,
    margin: float,
    params: np.ndarray,
) -> bool:
    alpha, demotion, above, below = params[0], params[1], params[2], params[3]
    promotion = z[0] > 0.0 if index.size else margin < 0.0  # without attributes margin = -theta y
    if (promotion and margin >= above) or (not promotion and margin > below):
        return False
    factor = alpha if promotion else demotion
    for j in range(index.size):
        i = index[j]
        size = abs(z[j])
        memory[0, i] += size * math.log(factor) if factor > 0.0 else -np.inf
        weights[i] *= factor**size
        if weights[i] < FAINT:
            weights[i] = math.exp(memory[0, i])
    return True
