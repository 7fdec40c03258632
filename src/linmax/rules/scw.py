"""Soft confidence-weighted rules. If w.z < phi sqrt(z'Sz): w <- w + a Sz, S <- S - b Sz (Sz)'.

Weights are held to be normal with mean w and covariance S; the least change is sought after which z is right with
probability eta, phi = Phi^-1(eta). Wang, Zhao and Hoi (2012).
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from linmax.core.contract import GAIN, Rule
from linmax.jit.compiling import kernel
from linmax.rules.second_order import OWN, Gain, second_order
from linmax.util.checks import finite, positive

__all__ = ["scw_i", "scw_ii"]


@kernel()
def step_size(margin: float, v: float, phi: float, C: float) -> float:
    """a of SCW-I."""
    psi, xi = 1.0 + 0.5 * phi * phi, 1.0 + phi * phi
    root = math.sqrt(margin * margin * phi**4 / 4.0 + v * phi * phi * xi)
    return min(C, max(0.0, (root - margin * psi) / (v * xi)))


@kernel()
def squared_step_size(margin: float, v: float, phi: float, C: float) -> float:
    """a of SCW-II."""
    n = v + 0.5 / C
    square = phi * phi
    root = phi * math.sqrt(square * margin * margin * v * v + 4.0 * n * v * (n + v * square))
    return max(0.0, (root - margin * (2.0 * n + square * v)) / (2.0 * (n * n + n * v * square)))


@kernel()
def shrinkage(a: float, v: float, phi: float) -> float:
    """b: how much of Sz (Sz)' comes off S."""
    root = 0.5 * (math.sqrt(a * a * v * v * phi * phi + 4.0 * v) - a * v * phi)
    return a * phi / (root + v * a * phi)


@kernel(GAIN)
def gain(margin: float, v: float, weight: float, params: np.ndarray) -> tuple[float, float]:
    phi, C, squared = params[OWN], params[OWN + 1] * weight, params[OWN + 2]
    if margin >= phi * math.sqrt(v):
        return 0.0, 0.0
    a = squared_step_size(margin, v, phi, C) if squared != 0.0 else step_size(margin, v, phi, C)
    return a, shrinkage(a, v, phi)


def scw_i(eta: float = 0.9, C: float = 1.0) -> Rule:
    """SCW-I: soft confidence-weighted learning, no step larger than C.

    With v = z'Sz, m = w.z, psi = 1 + phi^2/2, xi = 1 + phi^2: if m < phi sqrt(v), then
    a = min(C, (sqrt(m^2 phi^4/4 + v phi^2 xi) - m psi) / (v xi)), q = (sqrt(a^2 v^2 phi^2 + 4v) - a v phi)/2,
    b = a phi / (q + v a phi); w <- w + a Sz and S <- S - b Sz (Sz)', of which the diagonal is kept, 1 at first.

    Parameters
    ----------
    eta
        Confidence wanted, between .5 and 1.
    C
        Aggressiveness, > 0: small for noisy labels.

    Notes
    -----
    No mistake bound is known that it would meet here. How large a margin it wants depends on z, so it looks at every
    trial.

    References
    ----------
    Wang, Zhao and Hoi (2012), Exact soft confidence-weighted learning.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(trials=300, seed=1)
    >>> trace = linmax.run(linmax.rules.scw_i(), linmax.instances(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 60
    True
    """
    return _scw("scw_i", eta, C, 0.0)


def scw_ii(eta: float = 0.9, C: float = 1.0) -> Rule:
    """SCW-II: as `scw_i`, with every step made shorter instead of the largest.

    With n = v + 1/(2C):
    a = (phi sqrt(phi^2 m^2 v^2 + 4 n v (n + v phi^2)) - m (2n + phi^2 v)) / (2 (n^2 + n v phi^2)).

    Parameters
    ----------
    eta
        Confidence wanted, between .5 and 1.
    C
        Aggressiveness, > 0: small for noisy labels.

    References
    ----------
    Wang, Zhao and Hoi (2012), Exact soft confidence-weighted learning.

    Examples
    --------
    >>> import linmax
    >>> str(linmax.rules.scw_ii(0.8, C=0.1))
    'scw-ii(eta=0.8, C=0.1)'
    """
    return _scw("scw_ii", eta, C, 1.0)


def _scw(name: str, eta: float, C: float, squared: float) -> Rule:
    eta, C = finite("eta", eta), positive("C", C, 1.0)
    if not 0.5 < eta < 1.0:
        raise ValueError(f"eta must be between 0.5 and 1, got {eta!r}; try 0.9")
    values = (NormalDist().inv_cdf(eta), C, squared)
    steps = Gain(gain, values, reach=math.inf)
    return second_order(name, {"eta": eta, "C": C}, {"eta": 0.9, "C": 1.0}, steps)
