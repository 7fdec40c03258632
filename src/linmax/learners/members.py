"""What the members of the pool for attributes share: small groups of diverse linear learners, in single precision.

A group has four numbers for each sparse attribute and class and five for each dense one, side by side, so that an
attribute's numbers share their cache lines: two and a half times the memory of one rule's weights at most. Attributes
are scaled on-line; see `sparse_members` and `dense_members` for what is learned from them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import float32

from linmax.core.contract import Instances
from linmax.jit.compiling import kernel

__all__ = ["MEMBERS", "Single", "SingleCube", "SingleMatrix", "Task", "best_rival"]

MEMBERS = 3  # of a group

Single = float32[::1]
SingleMatrix = float32[:, ::1]
SingleCube = float32[:, :, ::1]


class Task(NamedTuple):
    """Trials for the members."""

    known: int  # classes before them
    instances: Instances
    labels: np.ndarray
    begin: int
    end: int
    learn: bool


@kernel()
def best_rival(scores: np.ndarray, label: int, known: int) -> int:
    """The best of the known classes but the label; -1 without any."""
    rival = -1
    for c in range(known):
        if c != label and (rival < 0 or scores[c] > scores[rival]):
            rival = c
    return rival
