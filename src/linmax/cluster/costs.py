"""What a pass of iterative parameter mixing costs, from a few measured numbers.

One pass over T trials in S shards on W workers, with a model of M bytes of which a share f changes in a pass:

    asking    d                               seconds of driver and scheduler, and of taking sums over the whole model
    learning  ceil(S / W) (T / S * c + h)     c seconds a trial, h of overhead a shard
    moving    (1 + L) (F - 1) f M / b         L = ceil(log_4 W), F = min(4, W): what changed up the levels of the tree
                                              above the workers, F - 1 at a time through the line of the worker that
                                              mixes, of b bytes a second, and back to all of them
    mixing    (ceil(S / W) + 4 L) f M a       a seconds a byte: the shards of a worker, then what meets at each level

One core alone takes T c. Mixing pays where T c (1 - ceil(S / W) / S) exceeds the rest, which does not grow with T; at
the *break-even* number of trials both take the same time. This compares one pass with one pass; mixing may need more
passes for the same error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from linmax.cluster.tree import FAN, top

__all__ = ["Cost", "Measured", "estimate"]


@dataclass(frozen=True)
class Measured:
    """What a machine, a learner and its data cost."""

    seconds_per_trial: float
    state_bytes: float  # of the model with all its arrays
    bytes_per_second: float
    task_seconds: float
    mix_seconds_per_byte: float
    pass_seconds: float = 0.0  # of driver and scheduler, and whatever else does not depend on shards
    changed: float = 1.0  # share of the model that a pass changes


@dataclass(frozen=True)
class Cost:
    """Seconds of one pass, and bytes moved in it."""

    serial: float
    asking: float
    learning: float
    moving: float
    mixing: float
    moved: float
    break_even: float  # trials at which a pass takes as long as on one core; infinity where it always loses

    @property
    def total(self) -> float:
        """Seconds of the pass on the cluster."""
        return self.asking + self.learning + self.moving + self.mixing


def _levels(workers: int) -> int:
    return top(workers)[0]


def estimate(measured: Measured, trials: float, shards: int, workers: int) -> Cost:
    """The cost of a pass.

    Examples
    --------
    >>> box = Measured(1e-6, 1e6, 1e8, 0.01, 1e-9)
    >>> cost = estimate(box, trials=1e7, shards=8, workers=2)
    >>> round(cost.serial, 2), round(cost.total, 2), round(cost.break_even)
    (10.0, 5.07, 136000)
    """
    rounds, levels = math.ceil(shards / workers), _levels(workers)
    size = measured.changed * measured.state_bytes
    moved = 2.0 * workers * size
    moving = (1 + levels) * (min(FAN, workers) - 1) * size / measured.bytes_per_second
    mixing = (rounds + FAN * levels) * size * measured.mix_seconds_per_byte
    fixed = measured.pass_seconds + rounds * measured.task_seconds + moving + mixing
    saved = 1.0 - rounds / shards
    return Cost(
        trials * measured.seconds_per_trial,
        measured.pass_seconds,
        rounds * (trials / shards * measured.seconds_per_trial + measured.task_seconds),
        moving,
        mixing,
        moved,
        fixed / (saved * measured.seconds_per_trial) if saved > 0.0 else math.inf,
    )
