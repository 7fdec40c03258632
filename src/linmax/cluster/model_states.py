"""Models that shards are learned with, as states that travel: stream models, and fusions of votes."""

from __future__ import annotations

from inspect import signature
from typing import Any

from linmax.cluster.shards import State
from linmax.engine.notation import as_learner
from linmax.models.fusion import OnLineFusion, fusion_from, fusion_state
from linmax.models.streams import StreamModel

__all__ = ["ShardModel", "is_fusion", "model_of", "settings_of_model", "state_of"]

ShardModel = StreamModel | OnLineFusion
IS_ESTIMATOR = "estimator"  # in the description of a fusion alone: whether it is to be an estimator of scikit-learn


def is_fusion(state: State) -> bool:
    """Whether this is the state of a fusion."""
    return IS_ESTIMATOR in state[0]


def state_of(model: ShardModel) -> State:
    """The state of a model; a fusion may have learned nothing yet."""
    if isinstance(model, StreamModel):
        return model.state()
    parameters = {name: getattr(model, name) for name in signature(OnLineFusion).parameters}
    description, arrays = fusion_state(parameters, getattr(model, "_state", None))
    return description | {IS_ESTIMATOR: type(model) is not OnLineFusion}, arrays


def model_of(state: State, *, at_work: bool = False) -> ShardModel:
    """The model again. ``at_work`` leaves out of a fusion what only users need, and what takes long to import."""
    if not is_fusion(state):
        return StreamModel.from_state(*state)
    make: type[OnLineFusion] = OnLineFusion
    if state[0][IS_ESTIMATOR] and not at_work:
        from linmax.models.vote_fusion import VoteFusion

        make = VoteFusion
    fusion, learned = fusion_from(*state, make)
    if learned is not None:
        fusion._state = learned
    return fusion


def settings_of_model(model: ShardModel) -> dict[str, Any]:
    """What it was made with."""
    if isinstance(model, StreamModel):
        described = model.state()[0]
        names = ("learner", "thresholds", "tie", "update_on_tie", "hash_bits")
        return {name: described[name] for name in names} | {"scale": model.scaling.asked}
    parameters = state_of(model)[0]["parameters"]
    return {**parameters, "learner": str(as_learner(model.learner))}
