"""Instance recycling, R-B: after an update, show the recent instances again until none calls for another.

Mesterharm and Hsu, section VI. The s most recent instances are kept, right ones too, each with the number of updates
it has caused; one that reaches u is not shown again. Updates made here are no mistakes, and the bound of the basic
rule holds for all updates together when an instance's noise is counted u times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from linmax.checks import MOST, counted
from linmax.contract import BEST, RECYCLED, UPDATES, Instances, kernel
from linmax.member import CHANGED, FAILED, Bench, Scratch, present_instance
from linmax.presenting import present_rivals
from linmax.search import search
from linmax.techniques import prefixed

__all__ = ["DEFAULTS", "Recycled", "default_passes", "recycle_instances"]

FOREVER = MOST  # "u = infinity", as a counter


@kernel(hot=True)
def recycle_instances(
    bench: Bench,
    room: Scratch,
    instances: Instances,
    panel: np.ndarray,
    labels: np.ndarray,
    begin: int,
    end: int,
    uses: np.ndarray,
    limit: int,
    passes: int,
    counts: np.ndarray,
    nothing: np.ndarray,
) -> bool:
    """Passes over begin..end, oldest first, until one makes no update. False when a weight left its range.

    After the last update of a pass at q the instances behind q have been looked at with the present weights, so the
    next pass need only reach q to know that it makes none.
    """
    stop = end
    for _ in range(passes):
        last = -1
        t = begin
        while t < stop:
            t, _, rival, margin = search(bench, room, instances, panel, labels, t, stop, uses, limit, nothing)
            if t == stop:
                break
            if bench.rivals != BEST:
                steps = present_rivals(bench, room, instances, t, labels[t])
            else:
                outcome = present_instance(bench, room, instances, t, labels[t], rival, margin)
                steps = -1 if outcome == FAILED else int(outcome == CHANGED)
            if steps < 0:
                return False
            if steps > 0:
                uses[t] += 1
                counts[UPDATES] += steps
                counts[RECYCLED] += steps
                last = t
                stop = end
            t += 1
        if last < 0:
            break
        stop = last + 1
    return True


DEFAULTS: dict[str, Any] = {"s": 100, "u": 5}


def default_passes(u: float) -> int:
    """Only u = infinity needs a cap; otherwise u updates of each instance end it."""
    return 1000 if u == math.inf else FOREVER


@dataclass(frozen=True)
class Recycled:
    """Description of R-B; made by `linmax.recycle`."""

    base: Any
    s: int
    u: float
    passes: int

    def __str__(self) -> str:
        return prefixed("R", self.options, DEFAULTS | {"passes": default_passes(self.u)}, self.base)

    @property
    def options(self) -> dict[str, Any]:
        """What the user may set."""
        return {"s": self.s, "u": self.u, "passes": self.passes}

    def __post_init__(self) -> None:
        counted("s", self.s, 1)
        if self.u != math.inf:
            counted("u", self.u, 1)
        counted("passes", self.passes, 1)

    @property
    def numbers(self) -> tuple[int, int, int]:
        """Instances kept, uses of each, passes: for the kernels."""
        return self.s, FOREVER if self.u == math.inf else int(self.u), self.passes
