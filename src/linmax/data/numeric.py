"""Whether attributes are numbers, of which most are there, or words, of which each instance has a few.

It is told by the share of the attributes met so far that are there. While few instances are known that says little, so
that more is asked for.
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
    """Whether so many values in so many trials, of so many attributes, are numbers.

    Examples
    --------
    >>> are_numbers(950, 100, 10), are_numbers(950, 100, 500)
    (True, False)
    """
    enough = max(NUMERIC_SHARE, FIRST_DOUBT / math.sqrt(max(1, trials)))
    return attributes <= MOST_NUMERIC and there / max(1, attributes * trials) >= enough
