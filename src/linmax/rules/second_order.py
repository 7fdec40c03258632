"""What second-order rules share: each weight has a variance, large at first, that shrinks as the weight is used.

S is the diagonal matrix of variances. A step moves the weights along S z and takes a multiple of S z (S z)' off S.
"""

from __future__ import annotations

import numpy as np

from linmax.contract import kernel

__all__ = ["move", "variance"]


@kernel()
def variance(variances: np.ndarray, index: np.ndarray, z: np.ndarray) -> float:
    """z'Sz, the variance of the margin."""
    total = 0.0
    for j in range(index.size):
        total += variances[index[j]] * z[j] * z[j]
    return total


@kernel()
def move(
    weights: np.ndarray, variances: np.ndarray, index: np.ndarray, z: np.ndarray, rate: float, shrink: float
) -> None:
    """w <- w + rate S z; S <- S - shrink S z (S z)', its diagonal."""
    for j in range(index.size):
        i = index[j]
        pull = variances[i] * z[j]
        weights[i] += rate * pull
        variances[i] -= shrink * pull * pull
