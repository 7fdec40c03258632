"""Where trials are written out: instances as a panel, and the hypotheses of the members as a log."""

from __future__ import annotations

import numpy as np

from linmax.core.contract import Panel, State
from linmax.core.member import LANES
from linmax.engine.coordinates import aligned
from linmax.techniques.hypothesis_log import LOG_NUMBERS, Log
from linmax.techniques.recycling import BITS_IN_WORD

__all__ = ["NO_LOG", "NO_PANEL", "new_log", "new_panel", "state_log"]

NO_PANEL = Panel(np.zeros(0, np.int8), np.zeros(0, np.float32), 0.0, np.zeros((0, 0), np.int64))
NO_LOG = Log(np.zeros((0, 0, 0)), np.zeros((0, 0, 0)), np.zeros((0, 0, LOG_NUMBERS)), np.zeros((0, 0), np.int32))


def new_panel(state: State, size: int, k: int, codes: bool, largest: float) -> Panel:
    """An empty panel for so many instances: of votes as ``codes``, or of ratings up to ``largest``."""
    places, coordinates = -(-size // LANES) * LANES, state.weights.shape[1]
    if codes:
        rows, groups = k + k % 2, -(-coordinates // 4)
        voters = np.zeros((places, k), np.int64) if coordinates <= BITS_IN_WORD else NO_PANEL.voters
        return Panel(aligned(places * rows * groups, dtype=np.int8), NO_PANEL.ratings, largest, voters)
    return Panel(NO_PANEL.codes, aligned(places * coordinates * k, dtype=np.float32), largest, NO_PANEL.voters)


def state_log(state: State) -> Log:
    """A log of one trial that is the state itself."""
    count, coordinates = state.weights.shape
    weights, backlog = state.weights.reshape(count, 1, coordinates), state.backlog.reshape(count, 1, -1)
    return Log(weights, backlog, np.zeros((count, 1, LOG_NUMBERS)), np.zeros((count, 1), np.int32))


def new_log(state: State, size: int) -> Log:
    """A log for the hypotheses of so many trials."""
    count, coordinates = state.weights.shape
    versions = np.zeros((count, size), np.int32)
    backlog = np.zeros((count, size + 1, state.backlog.shape[1]))
    numbers = np.zeros((count, size + 1, LOG_NUMBERS))
    return Log(np.zeros((count, size + 1, coordinates)), backlog, numbers, versions)
