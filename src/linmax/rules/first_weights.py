"""First weights of a rule: one number for every coordinate, or a vector w_init (Mesterharm 2001, section 2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linmax.util.checks import finite, positive

__all__ = ["NO_BOUND", "first_weights"]

NO_BOUND = "its first weights are a vector; pass start= to a function of linmax.theory.bounds that has it"


def first_weights(start: float | Sequence[float], default: float, above_zero: bool = False) -> tuple[Any, float, Any]:
    """Check ``start``: return it as shown, the weight of every other coordinate, and the vector or ().

    Examples
    --------
    >>> first_weights(2, 1.0, above_zero=True), first_weights([1, 0.5], 1.0)
    ((2.0, 2.0, ()), ((1.0, 0.5), 1.0, (1.0, 0.5)))
    """

    def check(value: Any) -> float:
        return positive("start", value, 1.0) if above_zero else finite("start", value)

    if isinstance(start, (Sequence, np.ndarray)) and not isinstance(start, str):
        vector = tuple(check(value) for value in np.asarray(start).tolist())
        return vector, default, vector
    value = check(start)
    return value, value, ()
