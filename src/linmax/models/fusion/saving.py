"""Files of fusions: arrays and plain data."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from linmax.engine.notation import as_learner
from linmax.models.fusion.state import FusionState
from linmax.models.fusion.trials import side_columns
from linmax.util import files

__all__ = ["read_fusion", "write_fusion"]

FUSION_KIND = "vote fusion"
F = TypeVar("F")


def write_fusion(path: str | os.PathLike[str], parameters: Mapping[str, Any], state: FusionState) -> None:
    """Write the parameters of a fusion, as given, and what it has learned."""
    description, arrays = state.parts()
    parameters = {**parameters, "learner": str(as_learner(parameters["learner"]))}
    normalise, by = parameters["normalise"], parameters["by"]
    if not isinstance(normalise, str):
        parameters["normalise"] = list(normalise)
    if not isinstance(by, (str, int, type(None))):
        parameters["by"] = [column if isinstance(column, str) else int(column) for column in side_columns(by)]
    parameters = _with_labels(parameters, files.plain) | {"abstain": files.plain(parameters["abstain"])}
    files.write(path, FUSION_KIND, {"parameters": parameters, "state": _with_labels(description, files.plain)}, arrays)


def read_fusion(path: str | os.PathLike[str], make: Callable[..., F]) -> tuple[F, FusionState]:
    """A fusion made with the parameters in a file, and what it had learned."""
    description, arrays = files.read(path, FUSION_KIND)
    try:
        parameters, state = (_with_labels(description[part], files.named) for part in ("parameters", "state"))
        fusion = make(**parameters | {"abstain": files.named(parameters["abstain"])})
        return fusion, FusionState.restored(state, arrays)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)} does not hold a whole VoteFusion: {error}") from None


def _with_labels(description: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The same with every list of labels changed to what a file holds, or back."""
    lists = {name: description.get(name) for name in ("classes", "fixed", "judged", "side_values")}
    changed = {name: [change(label) for label in labels] for name, labels in lists.items() if labels is not None}
    return {**description, **changed}
