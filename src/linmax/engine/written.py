"""Where trials are written out: instances as a panel, and the hypotheses of the members as a log."""

from __future__ import annotations

import numpy as np

from linmax.core.contract import Panel, State
from linmax.core.member import LANES
from linmax.engine.coordinates import aligned
from linmax.jit.panels import GROUP_SIZE
from linmax.techniques.hypothesis_log import LOG_NUMBERS, Log

__all__ = ["NO_LOG", "NO_PANEL", "new_log", "new_panel", "state_log"]

NO_PANEL = Panel(np.zeros(0, np.int8), np.zeros(0, np.float32), 0.0)
NO_LOG = Log(np.zeros((0, 0, 0)), np.zeros((0, 0, 0)), np.zeros((0, 0, LOG_NUMBERS)), np.zeros((0, 0), np.int32))


def new_panel(state: State, size: int, k: int, codes: bool, largest: float) -> Panel:
    """An empty panel for this many instances: ratings of 0 and 1 as ``codes``, or others up to ``largest``."""
    places, coordinates = -(-size // LANES) * LANES, state.weights.shape[1]
    if codes:
        return Panel(aligned(places * k * -(-coordinates // GROUP_SIZE), dtype=np.int8), NO_PANEL.ratings, 1.0)
    return Panel(NO_PANEL.codes, aligned(places * k * coordinates, dtype=np.float32), largest)


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
