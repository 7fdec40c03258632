"""All state of an engine as arrays by name, and taken over from such arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from linmax.core.contract import State, Trials
from linmax.techniques.node import overwrite
from linmax.util.parts import by_part

if TYPE_CHECKING:
    from linmax.engine.engine import Engine

__all__ = ["arrays_of", "take_over"]


def arrays_of(engine: Engine) -> dict[str, np.ndarray]:
    """See `Engine.arrays`."""
    found = {f"state.{name}": array for name, array in engine.state._asdict().items()}
    for place, node in enumerate(engine.top.walk()):
        found |= {f"node{place}.{name}": array for name, array in node.arrays.items()}
    if engine.tail is not None:
        found |= {f"tail.{name}": np.atleast_1d(array) for name, array in engine.tail._asdict().items()}
        found["tail.uses"] = engine.tail_uses
    return found


def take_over(engine: Engine, arrays: Mapping[str, np.ndarray], copied: bool) -> None:
    """See `Engine.restore`."""
    parts = by_part(arrays)
    state = parts.pop("state", {})
    if copied:
        overwrite(engine.state._asdict(), state, str(engine.learner))
    else:
        engine.state = State(**state)
    for place, node in enumerate(engine.top.walk()):
        node.restore(parts.pop(f"node{place}", {}))
    tail = parts.pop("tail", None) if engine.memory else None
    if tail is not None:
        blocks = {name: tail[name].copy() for name in Trials._fields if name != "constant"}
        engine.tail = Trials(**blocks, constant=float(tail["constant"][0]))
        engine.tail_uses = tail["uses"].copy()
    if parts:
        raise ValueError(f"{sorted(parts)[0]!r} is not part of {engine.learner}")
