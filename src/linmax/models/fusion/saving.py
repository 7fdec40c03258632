"""Files of fusions: arrays and plain data."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from linmax.engine.notation import as_learner
from linmax.models.fusion.state import FusionState
from linmax.models.fusion.trials import side_columns
from linmax.util import files

__all__ = ["fusion_from", "fusion_state", "read_fusion", "write_fusion"]

FUSION_KIND = "vote fusion"
F = TypeVar("F")


def fusion_state(
    parameters: Mapping[str, Any], state: FusionState | None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The parameters of a fusion, as given, and what it has learned, if anything: plain data and arrays."""
    description, arrays = (None, {}) if state is None else state.parts()
    parameters = {**parameters, "learner": str(as_learner(parameters["learner"]))}
    normalise, by = parameters["normalise"], parameters["by"]
    if not isinstance(normalise, str):
        parameters["normalise"] = list(normalise)
    if not isinstance(by, (str, int, type(None))):
        parameters["by"] = [column if isinstance(column, str) else int(column) for column in side_columns(by)]
    parameters = _with_labels(parameters, files.plain) | {"abstain": _plain_silence(parameters["abstain"])}
    told = None if description is None else _with_labels(description, files.plain)
    return {"parameters": parameters, "state": told}, arrays


def fusion_from(
    description: Mapping[str, Any], arrays: Mapping[str, np.ndarray], make: Callable[..., F]
) -> tuple[F, FusionState | None]:
    """A fusion made with the parameters that `fusion_state` gave, and what it had learned."""
    parameters = _with_labels(description["parameters"], files.named)
    fusion = make(**parameters | {"abstain": _silence(parameters["abstain"])})
    told = description["state"]
    return fusion, None if told is None else FusionState.restored(_with_labels(told, files.named), arrays)


def _plain_silence(abstain: Any) -> Any:
    """What means abstention, as JSON: a label, or a list of them."""
    if isinstance(abstain, (set, frozenset)):
        return sorted(map(files.plain, abstain), key=repr)
    return files.plain(abstain)


def _silence(told: Any) -> Any:
    return {files.named(label) for label in told} if isinstance(told, list) else files.named(told)


def write_fusion(path: str | os.PathLike[str], parameters: Mapping[str, Any], state: FusionState) -> None:
    """Write the parameters of a fusion, as given, and what it has learned."""
    files.write(path, FUSION_KIND, *fusion_state(parameters, state))


def read_fusion(path: str | os.PathLike[str], make: Callable[..., F]) -> tuple[F, FusionState]:
    """A fusion made with the parameters in a file, and what it had learned."""
    description, arrays = files.read(path, FUSION_KIND)
    try:
        fusion, state = fusion_from(description, arrays, make)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)} does not hold a whole VoteFusion: {error}") from None
    if state is None:
        raise ValueError(f"{os.fspath(path)} does not hold a whole VoteFusion: it has learned nothing")
    return fusion, state


def _with_labels(description: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The same with every list of labels changed to what a file holds, or back."""
    lists = {name: description.get(name) for name in ("classes", "fixed", "judged", "side_values")}
    changed = {name: [change(label) for label in labels] for name, labels in lists.items() if labels is not None}
    return {**description, **changed}
