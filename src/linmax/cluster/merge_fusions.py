"""One fusion from several that learned from different trials.

The models under them are merged like any others: voters, raters, copies for values of side columns and classes are
joined by name. Around them counts add up, with those of a common base taken once: who was right, how often each value
of a side column held, how differently raters ranked classes. The trials of several streams have no common order, so
curves and the logit that reports compare with begin afresh; of the trials kept for panels each fusion gives its latest.
A model of the few voters to be asked is fitted to these when one is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import replace
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from linmax.cluster.coordinates import PlacedEngine
from linmax.cluster.merge_checks import refuse_unmergeable, refuse_unmixable_nodes, shares_of
from linmax.cluster.merge_engines import merge_engines
from linmax.cluster.unions import union_of_classes, union_of_names
from linmax.core.contract import KNOWN
from linmax.data.arrays import Layout
from linmax.data.normalisation import Normaliser
from linmax.data.side_columns import Sides
from linmax.engine.notation import as_learner
from linmax.models.asking import Asking, Recent
from linmax.models.baselines import Tally
from linmax.models.columns import Columns
from linmax.models.experts_model import ExpertsModel
from linmax.models.fusion import FusionState, OnLineFusion

__all__ = ["merge_fusions"]


class NothingLearned(NamedTuple):
    """What a fusion that has not been fitted counts for."""

    trials: int = 0
    updates: int = 0
    mistakes: int = 0


class Union(NamedTuple):
    """The voters and classes of all, and the places of those of each fusion, with the base last."""

    voters: list[str]
    voter_maps: list[np.ndarray]
    classes: list[Any]
    known: int
    class_maps: list[np.ndarray]
    sides: Sides


def merge_fusions(
    fusions: Sequence[OnLineFusion], how: str | Sequence[float], multiplicative: str, base: OnLineFusion | None = None
) -> OnLineFusion:
    """See `linmax.merge`."""
    first = fusions[0]
    refuse_unmergeable(first.learner)
    _refuse_different(fusions)
    found = [getattr(fusion, "_state", None) for fusion in fusions]
    before: FusionState | None = getattr(base, "_state", None)
    counted = [NothingLearned() if state is None else state.model for state in found]
    shares = shares_of(counted, None if before is None else before.model, how)
    states = [state for state in found if state is not None]
    merged = copy(first)
    merged.__dict__.pop("_panel", None)
    if len(states) > 1:
        _refuse_other_data(states)
        shares = shares[[state is not None for state in found]]
        merged._state = _joined(before, states, shares / shares.sum(), multiplicative)
    elif states:
        merged._state = deepcopy(states[0])
    return merged


def _refuse_different(fusions: Sequence[OnLineFusion]) -> None:
    """Refuse fusions that were made with different parameters; the order of classes does not matter."""
    names = list(signature(type(fusions[0])).parameters)
    first = _parameters(fusions[0], names)
    for place, fusion in enumerate(fusions[1:], 1):
        for name, value in _parameters(fusion, names).items():
            if first[name] != value:
                raise ValueError(
                    f"fusions must have the same {name}: number {place} has {value!r}, number 0 {first[name]!r}"
                )


def _parameters(fusion: OnLineFusion, names: Sequence[str]) -> dict[str, Any]:
    found = {name: getattr(fusion, name) for name in names}
    found = {name: list(value) if isinstance(value, (tuple, np.ndarray)) else value for name, value in found.items()}
    if found["classes"] is not None:
        found["classes"] = sorted(map(repr, found["classes"]))
    return found | {"learner": str(as_learner(fusion.learner))}


def _refuse_other_data(states: Sequence[FusionState]) -> None:
    first = states[0]
    for state in states:
        refuse_unmixable_nodes(state.model.engine)
        if (state.normaliser is None) != (first.normaliser is None):
            raise ValueError("fusions of votes and fusions of scores cannot be merged; merge those of one kind")
        if state.named != first.named:
            raise ValueError("in some fusions voters go by name, in others by place; fit them all with names")
        if (state.fixed is None) != (first.fixed is None) or set(state.fixed or ()) != set(first.fixed or ()):
            raise ValueError(
                f"fusions must have the same classes, got {list(first.fixed or ())!r} and {list(state.fixed or ())!r}; "
                "give classes= to each"
            )


def _joined(
    base: FusionState | None, states: Sequence[FusionState], shares: np.ndarray, multiplicative: str
) -> FusionState:
    everyone = [*states, *([] if base is None else [base])]
    signs = [1] * len(states) + ([] if base is None else [1 - len(states)])
    union = _union(everyone, signs)
    model = _model(base, states, union, shares, multiplicative)
    first, size = states[0], len(union.voters)
    tallies = [(state.tally, there) for state, there in zip(everyone, union.voter_maps, strict=True)]
    recents = zip(states, union.voter_maps, union.class_maps, strict=False)
    tally = Tally.added_up(tallies, signs, size)
    recent = Recent.joined([(state.recent, there, classes) for state, there, classes in recents], size)
    recent.told = tally.trials
    return FusionState(
        model,
        first.fixed,
        first.named,
        tuple(union.voters),
        _normaliser(states, union),
        union.sides,
        tally,
        Asking(recent),
    )


def _union(everyone: Sequence[FusionState], signs: Sequence[int]) -> Union:
    voters, voter_maps = union_of_names([state.voters for state in everyone])
    known = [int(state.model.engine.state.shape[KNOWN]) for state in everyone]
    classes, count, class_maps = union_of_classes([state.model.classes for state in everyone], known)
    sides = everyone[0].sides
    if sides.names:
        values = dict.fromkeys(value for state in everyone for value in state.sides.values)
        held = [[value for column, value in values if column == place] for place in range(len(sides.names))]
        sides = Sides(sides.names).joined(held, len(voters))
        place, counts = {value: p for p, value in enumerate(sides.values)}, sides.counts.copy()
        for state, sign in zip(everyone, signs, strict=True):
            np.add.at(counts, [place[value] for value in state.sides.values], sign * state.sides.counts)
        sides = replace(sides, counts=counts)
    return Union(voters, voter_maps, classes, count, class_maps, sides)


def _model(
    base: FusionState | None, states: Sequence[FusionState], union: Union, shares: np.ndarray, multiplicative: str
) -> ExpertsModel:
    none = np.zeros(0, np.int64)
    placed, copies = [], states[0].copies
    scored = states[0].normaliser is not None
    for state, there, classes in zip(
        [*states, *([] if base is None else [base])], union.voter_maps, union.class_maps, strict=True
    ):
        voters, raters = _columns(state, there, union.sides), none
        if scored:
            voters, raters = none, (there[:, None] * copies + np.arange(copies)).ravel()
        placed.append(PlacedEngine(state.model.engine, voters, raters, none, none, classes))
    size = len(union.sides.columns) if union.sides.names else len(union.voters)
    constant = states[0].model.layout.constant
    layout = Layout(0, size * copies, 0, 0, constant) if scored else Layout(size, 0, 0, 0, constant)
    before = placed.pop() if base is not None else None
    engine = merge_engines(before, placed, layout, len(union.classes), union.known, shares, multiplicative)
    mistakes = sum(state.model.mistakes for state in states)
    mistakes -= (len(states) - 1) * (0 if base is None else base.model.mistakes)
    return ExpertsModel.of(engine, union.classes, Columns(), mistakes, [state.model for state in states])


def _columns(state: FusionState, voters: np.ndarray, sides: Sides) -> np.ndarray:
    """The places of a fusion's columns of votes in the union."""
    if not sides.names:
        return voters
    place = {pair: at for at, pair in enumerate(map(tuple, sides.columns.tolist()))}
    value = {name: at for at, name in enumerate(sides.values)}
    own = [value[name] for name in state.sides.values]
    columns = state.sides.columns.tolist()
    return np.array([place[int(voters[v]), own[side] if side >= 0 else side] for v, side in columns], np.int64)


def _normaliser(states: Sequence[FusionState], union: Union) -> Normaliser | None:
    first = states[0].normaliser
    if first is None:
        return None
    merged = Normaliser(first.kinds, temperature=first.temperature)
    lows, highs = np.full(len(union.voters), np.inf), np.full(len(union.voters), -np.inf)
    longest = 0
    for state, there in zip(states, union.voter_maps, strict=False):
        assert state.normaliser is not None
        own = there[: len(state.normaliser.lows)]
        lows[own] = np.minimum(lows[own], state.normaliser.lows)
        highs[own] = np.maximum(highs[own], state.normaliser.highs)
        longest = max(longest, int(own.max(initial=-1)) + 1)
    merged.restore({"lows": lows[:longest], "highs": highs[:longest]})
    return merged
