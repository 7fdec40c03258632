"""Decide whether attributes are numbers, of which most are there, or words, of which each instance has a few.

The share of the attributes seen so far that an instance has decides. While few instances are known the share must be
larger.
"""

from __future__ import annotations

import math

from linmax.jit.compiling import kernel

__all__ = ["MOST_NUMERIC", "are_numbers"]

NUMERIC_SHARE = 0.1  # of attributes that are there, from which on they are numbers
FIRST_DOUBT = 1.2  # over the root of the trials: the share that is asked for at first
MOST_NUMERIC = 2048  # attributes that are taken for numbers, at most


@kernel()
def are_numbers(there: int, trials: int, attributes: int) -> bool:
    """Return whether this many values, in this many trials of this many attributes, are numbers.

    Examples
    --------
    >>> are_numbers(950, 100, 10), are_numbers(950, 100, 500)
    (True, False)
    """
    enough = max(NUMERIC_SHARE, FIRST_DOUBT / math.sqrt(max(1, trials)))
    return attributes <= MOST_NUMERIC and there / max(1, attributes * trials) >= enough
