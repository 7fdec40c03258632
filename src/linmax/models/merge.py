"""`merge`: one model from several that learned from different examples.

Each rule mixes its own states (`Rule.mix`), and so does each learner that is not a rule (`linmax.learners.base`).
Around them:

* voters, raters, attributes and classes are joined by name; where a model never saw one, it has the initial weight;
* averages stay averages: the hypotheses that saw a trial are added up over all models, whatever their shares (fading
  averages are stretched to the length of one stream);
* counts of trials, updates and mistakes add up, and with them the mistakes by which a combination chooses;
* statistics of scaling are pooled: counts, sums and moments add up, the largest values are kept;
* recent instances, which recycling repeats, and recent labels are dropped: several streams have no common order.

No mistake bound covers the result. For the Perceptron on separable data repeated mixing converges (McDonald et al.).

References
----------
McDonald, Hall and Mann, "Distributed training strategies for the structured perceptron", NAACL (2010).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, NamedTuple, TypeVar

import numpy as np

from linmax.core import averages
from linmax.core.contract import EXPERTS, GAUGE, KNOWN, OWN, RAW, SHIFT, STRIDE, TRIALS, Part, Rule
from linmax.data.arrays import Layout
from linmax.data.scaling import WITHIN, Scaling, pooled_moments
from linmax.data.side_columns import Sides
from linmax.engine.engine import Engine, Settings
from linmax.engine.loop import start_means
from linmax.engine.notation import as_learner
from linmax.io.bytes import PADDING
from linmax.io.vocabulary import Vocabulary, number_names
from linmax.learners.base import Mixture, Placement
from linmax.models.asking import Asking, Recent
from linmax.models.baselines import Tally
from linmax.models.fusion import FusionState, VoteFusion
from linmax.models.model import Model
from linmax.models.online import Learner
from linmax.models.streams.model import StreamModel
from linmax.models.weights import Columns
from linmax.rules.mixing import MULTIPLICATIVE, mixture_of
from linmax.util.checks import finite, one_of
from linmax.util.names import handed_over

__all__ = [
    "HOW",
    "ColumnsDiffer",
    "Mergeable",
    "merge",
    "merge_since",
    "merge_states",
    "open_state",
    "refuse_different",
    "refuse_unmergeable",
    "shares_by",
]


State = tuple[dict[str, Any], dict[str, np.ndarray]]  # of a model
Mergeable = TypeVar("Mergeable", Learner, StreamModel, VoteFusion)
HOW = ("uniform", "trials", "mistakes")
MERGED_ROWS = 2048  # of a table of weights


class ColumnsDiffer(ValueError):
    """Two models learned from tables with different columns of numbers."""

    def __init__(self, place: int, other: int, names: Sequence[str]) -> None:
        self.place, self.other, self.names = place, other, ", ".join(names[:5])
        super().__init__(
            f"models must have the same columns of numbers: model {place} and model {other} differ in {self.names}"
        )


def refuse_unmergeable(learner: Any) -> None:
    """Raise with the reason where a learner has no sound mixture."""
    engine = Engine(as_learner(learner), Layout(0, 0, 0, 0, 1.0), 0, Settings(discover=True))
    refuse_unmixable_nodes(engine)
    for run in engine.runs:
        mixture_of(run.rule)


def refuse_unmixable_nodes(engine: Engine) -> None:
    """Raise for parts without a mixture; a pool creates some of its parts as it sees data."""
    for node in engine.top.walk():
        if node.unmixable:
            raise ValueError(f"{engine.learner} cannot be merged: {node.unmixable}")


def checked_models(models: Sequence[Mergeable]) -> Sequence[Mergeable]:
    """Return the models as a list, refused unless they are all of one kind."""
    if isinstance(models, (Learner, StreamModel, VoteFusion)) or not isinstance(models, Iterable):
        raise TypeError(f"models must be a list, got {models!r}; put it in square brackets")
    models = list(models)
    if not models:
        raise ValueError("models must hold at least one model, got none")
    for place, model in enumerate(models):
        if not isinstance(model, (Learner, StreamModel, VoteFusion)) or type(model) is not type(models[0]):
            raise TypeError(
                f"models must all be Learner objects, all stream models or all fusions; number {place} is a "
                f"{type(model).__name__}, number 0 a {type(models[0]).__name__}"
            )
    return models


def refuse_different(models: Sequence[Any], names: Sequence[str] = ()) -> None:
    """Refuse models with different options, or with instances that wait for labels; ``names`` are those of files."""
    first, names = models[0].options, names or [f"number {place}" for place in range(len(models))]
    for place, model in enumerate(models[1:], 1):
        for name, value in model.options.items():
            if first[name] != value:
                raise ValueError(
                    f"models must have the same {name}: {names[place]} has {value!r}, {names[0]} {first[name]!r}"
                )
    if len(models) > 1:
        for place, model in enumerate(models):
            if isinstance(model, Learner) and model.pending:
                raise ValueError(
                    f"{model.pending} instances of model {place} wait for their labels; learn or forget() them first"
                )


def shares_of(models: Sequence[Any], base: Any, how: str | Sequence[float]) -> np.ndarray:
    """Return the shares mu_i: at least 0, with the sum 1."""
    if isinstance(how, str):
        one_of("how", how, HOW)
        trials, updates, mistakes = (0, 0, 0) if base is None else (base.trials, base.updates, base.mistakes)
        return shares_by(
            how,
            [
                (model.trials > trials, model.trials - trials, model.updates - updates, model.mistakes - mistakes)
                for model in models
            ],
        )
    shares = np.array([finite("how", share) for share in how], float)
    if len(shares) != len(models) or (shares < 0.0).any() or not shares.sum() > 0.0:
        raise ValueError(
            f"how must be {', '.join(map(repr, HOW))}, or {len(models)} numbers >= 0 that are not all 0, got {how!r}"
        )
    return shares / shares.sum()


def shares_by(how: str, counts: Sequence[tuple[float, float, float, float]]) -> np.ndarray:
    """Return mu_i from (models that learned anything, trials, updates, mistakes) of each model."""
    learned, trials, updates, mistakes = np.array(counts, float).T
    kinds = {"uniform": [], "trials": [trials], "mistakes": [updates, mistakes]}[how]  # pools count no updates
    for shares in [*kinds, learned, np.ones(len(counts))]:
        if shares.sum() > 0.0:
            break
    return np.asarray(shares / shares.sum())


def merge(
    models: Sequence[Mergeable], how: str | Sequence[float] = "uniform", multiplicative: str = "log"
) -> Mergeable:
    """Mix models of the same learner into one, which can predict and keep learning.

    Parameters
    ----------
    models
        `linmax.Learner` objects, `linmax.streams.StreamModel` objects, or `linmax.VoteFusion` objects, that learned
        from different examples.
    how
        Shares of the models: "uniform" over those that learned anything, "trials" in proportion to the trials they
        learned from, "mistakes" in proportion to their updates (for a mistake-driven rule its mistakes, ties included;
        for a pool its mistakes), or one number >= 0 a model; a model with the share 0 is left out altogether.
    multiplicative
        For the Winnows: "log" mixes the logarithms of the weights, "plain" the weights.

    Returns
    -------
    A new model; the given ones stay as they are. One model alone gives a copy with the same bits.

    Raises
    ------
    ValueError
        For a learner that has no sound mixture (voting, stacking, softmax, a custom rule with a memory), for
        models of different learners or settings, and for models with instances that wait for their labels.

    Notes
    -----
    With shares mu_i: w = sum mu_i w_i for additive rules; log w = sum mu_i log w_i for Winnow; for second-order rules
    P = sum mu_i P_i and w = P^-1 sum mu_i P_i w_i with the precisions P. An averaged hypothesis is the sum of all
    hypotheses that met a trial over the number of all trials.

    With "trials" and "mistakes" it does not matter, but for rounding, in which order models are merged: merging two and
    then a third gives what merging all three does. With "uniform" it does: two models that were merged count as one.

    References
    ----------
    McDonald, Hall and Mann (2010), Distributed training strategies for the structured perceptron.

    Examples
    --------
    >>> import linmax
    >>> north, south = linmax.Learner("perceptron"), linmax.Learner("perceptron")
    >>> for learner, weather in [(north, "snow"), (south, "sun")]:
    ...     for label, word in [("coat", weather), ("hat", "noon"), ("coat", weather), ("hat", "noon")]:
    ...         _ = learner.learn({word: 1.0}, label=label)
    >>> both = linmax.merge([north, south])
    >>> both.attributes, both.trials
    (['snow', 'noon', 'sun'], 8)
    >>> both.predict({"sun": 1.0}), both.predict({"noon": 1.0})
    ('coat', 'hat')
    """
    if not isinstance(how, str):
        models = checked_models(models)
        shares = shares_of(models, None, how)
        models, how = (
            [model for model, share in zip(models, shares, strict=True) if share],
            shares[shares > 0.0].tolist(),
        )
    return merge_since(None, models, how, multiplicative)


def merge_since(
    base: Mergeable | None,
    models: Sequence[Mergeable],
    how: str | Sequence[float] = "uniform",
    multiplicative: str = "log",
    last: bool = False,
) -> Mergeable:
    """Merge models that all continued from ``base``, whose counts and sums are taken once.

    ``last`` if the mixture ends a pass.
    """
    one_of("multiplicative", multiplicative, MULTIPLICATIVE)
    models = checked_models(models)
    if isinstance(models[0], VoteFusion):
        return merge_fusions(models, how, multiplicative, base)
    refuse_unmergeable(models[0].learner)
    refuse_different(models)
    for model in models:
        if model.engine is not None:
            refuse_unmixable_nodes(model.engine)
    if len(models) == 1:
        shares_of(models, base, how)
        return type(models[0]).from_state(*models[0].state())
    shares = shares_of(models, base, how)
    if isinstance(models[0], Learner):
        return _merge_learners(base, models, shares, multiplicative)
    return _merge_streams(base, models, shares, multiplicative, last)


def merge_states(
    kind: Any,
    base: State,
    states: Sequence[State],
    shares: Sequence[float],
    multiplicative: str = "log",
    last: bool = False,
) -> State:
    """Merge models of one kind given by their states, all of which continued from ``base``; returns a state."""
    start, *models = (open_state(kind, state, learns=False) for state in (base, *states))
    merged: State = merge_since(start, models, shares, multiplicative, last).state()
    return merged


def open_state(kind: Any, state: State, learns: bool = True) -> Any:
    """Return the model of a state. One that does not learn shares its arrays with the state."""
    if kind is not StreamModel:
        return kind.from_state(*state)
    known = _last_names.vocabulary_of(state)
    return StreamModel.from_state(*state, deepcopy(known) if learns and known is not None else known, copied=learns)


class LastNames(threading.local):
    """The table of names that this thread has made last: many models of a cluster have the same names."""

    vocabulary: Vocabulary | None = None

    def vocabulary_of(self, state: State) -> Vocabulary | None:
        """Return the table of a state's names, which must not grow; None if it is to be made by the model itself."""
        names = {part.removeprefix("names."): array for part, array in state[1].items() if part.startswith("names.")}
        if state[0]["hash_bits"] or "shared" in names:
            return None
        found = self.vocabulary
        others = {} if found is None else found.arrays()
        if found is None or not all(np.array_equal(names[part], others[part]) for part in names):
            found = self.vocabulary = Vocabulary.from_arrays(names)
        return found


_last_names = LastNames()


class Places(NamedTuple):
    """Places of a model's columns among those of the merged model."""

    voters: np.ndarray = np.zeros(0, np.int64)
    raters: np.ndarray = np.zeros(0, np.int64)
    dense: np.ndarray = np.zeros(0, np.int64)
    sparse: np.ndarray = np.zeros(0, np.int64)


def merge_models(
    models: Sequence[Model],
    base: Model | None,
    places: Sequence[Places],
    layout: Layout,
    columns: Columns,
    shares: np.ndarray,
    multiplicative: str,
    last: bool = False,
) -> tuple[Model, list[np.ndarray]]:
    """Merge models whose columns have these places in the layout, those of the base last.

    Return the model and the places of each one's classes. Curve and calibration start from scratch: the trials of
    several streams have no common order.
    """
    everyone = [*models, *([] if base is None else [base])]
    known = [int(model.engine.state.shape[KNOWN]) for model in everyone]
    classes, count, class_maps = union_of_classes([model.classes for model in everyone], known)
    placed = [PlacedEngine(model.engine, *at, own) for model, at, own in zip(everyone, places, class_maps, strict=True)]
    before = None if base is None else placed.pop()
    engine = merge_engines(before, placed, layout, len(classes), count, shares, multiplicative, last)
    mistakes = sum(model.mistakes for model in models) - (0 if base is None else (len(models) - 1) * base.mistakes)
    return Model.of(engine, classes, columns, mistakes, models), class_maps


def _merge_learners(
    base: Learner | None, learners: Sequence[Learner], shares: np.ndarray, multiplicative: str
) -> Learner:
    everyone = [*learners, *([] if base is None else [base])]
    voters, voter_maps = union_of_names([learner.voters for learner in everyone])
    raters, rater_maps = union_of_names([learner.raters for learner in everyone])
    attributes, attribute_maps = union_of_names([learner.attributes for learner in everyone])
    places = [Places(*maps[:2], sparse=maps[2]) for maps in zip(voter_maps, rater_maps, attribute_maps, strict=True)]
    constant = learners[0].engine.layout.constant
    model, class_maps = merge_models(
        [learner.model for learner in learners],
        None if base is None else base.model,
        places,
        Layout(len(voters), len(raters), 0, len(attributes), constant),
        Columns(voters, raters, attributes),
        shares,
        multiplicative,
    )
    header, arrays = model.state()
    description = learners[0].state()[0] | {
        "asking": {},
        "model": header,
        "max_pending": max(learner.max_pending for learner in learners),
        "labelled": list(dict.fromkeys(id for learner in learners for id in learner._waiting.labelled)),
    }
    merged = Learner.from_state(description, arrays)
    kept = [learner.asking.recent for learner in learners]
    if all(recent.trials for recent in kept) and not (raters or attributes):
        maps, trials = list(zip(kept, voter_maps, class_maps, strict=False)), sum(recent.trials for recent in kept)
        merged._asking = Asking(Recent.joined(maps, len(voters), trials))
    return merged


def _merge_streams(
    base: StreamModel | None, models: Sequence[StreamModel], shares: np.ndarray, multiplicative: str, last: bool
) -> StreamModel:
    everyone = [*models, *([] if base is None else [base])]
    started = [place for place, model in enumerate(models) if model.model is not None]
    if not started:
        return StreamModel.from_state(*models[0].state())
    first = models[started[0]]
    _refuse_other_columns(models, started)
    vocabulary, maps = union_of_vocabularies(everyone)
    columns = 2**first.vocabulary.bits if first.vocabulary.bits else len(vocabulary)
    scaling = merge_scalings(
        None if base is None else _ordered_scaling(base, first),
        [_ordered_scaling(models[place], first) for place in started],
        [maps[place] for place in [*started, *range(len(models), len(everyone))]],
        columns,
    )
    wide, extra = len(first.dense_names), int(scaling.prepends)
    has_sparse = any(model.engine is not None and model.engine.layout.sparse for model in models)
    assert first.engine is not None
    sparse = columns + extra * (not wide) if has_sparse else 0
    layout = Layout(0, 0, wide + extra * bool(wide), sparse, first.engine.layout.constant)
    merged, places = [], []
    for model, names in zip(everyone, maps, strict=True):
        if model.model is None or model.engine is None:
            continue
        dense = np.concatenate([np.arange(extra * bool(wide)), extra + _dense_places(model, first)]).astype(np.int64)
        at = np.concatenate([[0], 1 + names]).astype(np.int64) if extra and not wide else names
        merged.append(model.model)
        places.append(Places(dense=dense, sparse=at[: model.engine.layout.sparse]))
    before = merged.pop() if base is not None and base.model is not None else None
    share = shares[started] / shares[started].sum()
    mixed, _ = merge_models(merged, before, places, layout, Columns(), share, multiplicative, last)
    header, state = mixed.state()
    description = first.state()[0] | {
        "scaling": scaling.description,
        "labels": list(dict.fromkeys([*mixed.classes, *(name for model in models for name in model.labels.names)])),
        "columns": columns,
        "model": header,
        "schema": _kinds_of_columns(models),
    }
    arrays = {f"names.{name}": array for name, array in vocabulary.arrays().items()}
    arrays |= {f"scaling.{name}": array for name, array in scaling.arrays.items()}
    arrays |= {f"model.{name}": array for name, array in state.items()}
    return StreamModel.from_state(description, handed_over(arrays), vocabulary)


def _kinds_of_columns(models: Sequence[StreamModel]) -> list[tuple[str, str]]:
    """Kinds of the columns of all tables; the first model that has a column decides."""
    kinds: dict[str, str] = {}
    for model in models:
        kinds = kinds | {name: kind for name, kind in model.schema.items() if name not in kinds}
    return list(kinds.items())


def _refuse_other_columns(models: Sequence[StreamModel], started: Sequence[int]) -> None:
    first = models[started[0]]
    for place in started[1:]:
        other = models[place]
        differ = sorted(set(other.dense_names) ^ set(first.dense_names))
        if differ:
            raise ColumnsDiffer(place, started[0], differ)
        if other.scaling.kind != first.scaling.kind or other.scaling.prepends != first.scaling.prepends:
            raise ValueError(
                f"models must have the same scaling: model {place} has {other.scaling.kind!r}, model {started[0]} "
                f"{first.scaling.kind!r}; pass scale="
            )


def _dense_places(model: StreamModel, first: StreamModel) -> np.ndarray:
    """Places of the model's columns of numbers among those of the first model."""
    place = {name: number for number, name in enumerate(first.dense_names)}
    return np.array([place[name] for name in model.dense_names], np.int64)


def _ordered_scaling(model: StreamModel, first: StreamModel) -> Scaling:
    """Scaling of the model, with columns of numbers in the order of the first model."""
    if model.dense_names in ((), first.dense_names):
        return model.scaling
    arrays = dict(model.scaling.arrays)
    if len(arrays["dense"]):
        arrays["dense"] = arrays["dense"][np.argsort(_dense_places(model, first))]
    return Scaling.from_state(model.scaling.description, arrays)


# -- fusions of votes --------------------------------------------------------------------------------------------------


class NothingLearned(NamedTuple):
    """Counts of a fusion that has not been fitted."""

    trials: int = 0
    updates: int = 0
    mistakes: int = 0


def merge_fusions(
    fusions: Sequence[VoteFusion], how: str | Sequence[float], multiplicative: str, base: VoteFusion | None = None
) -> VoteFusion:
    """Merge fusions, as `merge` does.

    Counts add up, with those of a common base taken once. Curves and the logit that reports compare with start from
    scratch, since the trials of several streams have no common order; of the trials stored for panels each fusion
    gives its latest.
    """
    first = fusions[0]
    refuse_unmergeable(first.learner)
    _refuse_different_parameters(fusions)
    found = [getattr(fusion, "_state", None) for fusion in fusions]
    before: FusionState | None = getattr(base, "_state", None)
    counted = [NothingLearned() if state is None else state.model for state in found]
    shares = shares_of(counted, None if before is None else before.model, how)
    states = [state for state in found if state is not None]
    merged = copy(first)
    merged.__dict__.pop("_panel", None)
    if len(states) > 1:
        _refuse_other_kinds(states)
        shares = shares[[state is not None for state in found]]
        merged._state = _join_fusion_states(before, states, shares / shares.sum(), multiplicative)
    elif states:
        merged._state = deepcopy(states[0])
    return merged


def _refuse_different_parameters(fusions: Sequence[VoteFusion]) -> None:
    """Raise for fusions with different parameters; the order of classes does not matter."""
    names = list(signature(type(fusions[0])).parameters)
    first = _parameters(fusions[0], names)
    for place, fusion in enumerate(fusions[1:], 1):
        for name, value in _parameters(fusion, names).items():
            if first[name] != value:
                raise ValueError(
                    f"fusions must have the same {name}: number {place} has {value!r}, number 0 {first[name]!r}"
                )


def _parameters(fusion: VoteFusion, names: Sequence[str]) -> dict[str, Any]:
    found = {name: getattr(fusion, name) for name in names}
    found = {name: list(value) if isinstance(value, (tuple, np.ndarray)) else value for name, value in found.items()}
    if found["classes"] is not None:
        found["classes"] = sorted(map(repr, found["classes"]))
    return found | {"learner": str(as_learner(fusion.learner))}


def _refuse_other_kinds(states: Sequence[FusionState]) -> None:
    first = states[0]
    for state in states:
        refuse_unmixable_nodes(state.model.engine)
        if (state.normalizer is None) != (first.normalizer is None):
            raise ValueError("fusions of votes and fusions of scores cannot be merged; merge those of one kind")
        if state.named != first.named:
            raise ValueError("voters must be named in all fusions or in none; fit all of them with names")
        if (state.fixed is None) != (first.fixed is None) or set(state.fixed or ()) != set(first.fixed or ()):
            raise ValueError(
                f"fusions must have the same classes, got {list(first.fixed or ())!r} and {list(state.fixed or ())!r}; "
                "give classes= to each"
            )


def _join_fusion_states(
    base: FusionState | None, states: Sequence[FusionState], shares: np.ndarray, multiplicative: str
) -> FusionState:
    everyone = [*states, *([] if base is None else [base])]
    signs = [1] * len(states) + ([] if base is None else [1 - len(states)])
    voters, voter_maps = union_of_names([state.voters for state in everyone])
    sides, first, copies = _join_sides(everyone, signs, len(voters)), states[0], states[0].copies
    constant, size = first.model.layout.constant, len(voters)
    if first.normalizer is not None:
        layout = Layout(0, size * copies, 0, 0, constant)
        places = [Places(raters=(own[:, None] * copies + np.arange(copies)).ravel()) for own in voter_maps]
    else:
        layout = Layout(len(sides.columns) if sides.names else size, 0, 0, 0, constant)
        places = [Places(_places_of_votes(state, own, sides)) for state, own in zip(everyone, voter_maps, strict=True)]
    models, before = [state.model for state in states], None if base is None else base.model
    model, class_maps = merge_models(models, before, places, layout, Columns(), shares, multiplicative)
    tally = Tally.added_up([(state.tally, own) for state, own in zip(everyone, voter_maps, strict=True)], signs, size)
    kept = zip(states, voter_maps, class_maps, strict=False)
    asking = Asking(Recent.joined([(state.recent, own, classes) for state, own, classes in kept], size, tally.trials))
    return FusionState(model, first.fixed, first.named, tuple(voters), first.normalizer, sides, tally, asking)


def _join_sides(everyone: Sequence[FusionState], signs: Sequence[int], voters: int) -> Sides:
    """Return the side columns of all fusions, their counts added up."""
    sides = everyone[0].sides
    if not sides.names:
        return sides
    values = dict.fromkeys(value for state in everyone for value in state.sides.values)
    held = [[value for column, value in values if column == place] for place in range(len(sides.names))]
    sides = Sides(sides.names).joined(held, voters)
    place, counts = {value: p for p, value in enumerate(sides.values)}, sides.counts.copy()
    for state, sign in zip(everyone, signs, strict=True):
        np.add.at(counts, [place[value] for value in state.sides.values], sign * state.sides.counts)
    return replace(sides, counts=counts)


def _places_of_votes(state: FusionState, voters: np.ndarray, sides: Sides) -> np.ndarray:
    """Places of a fusion's columns of votes in the union."""
    if not sides.names:
        return voters
    place = {pair: at for at, pair in enumerate(map(tuple, sides.columns.tolist()))}
    value = {name: at for at, name in enumerate(sides.values)}
    own = [value[name] for name in state.sides.values]
    columns = state.sides.columns.tolist()
    return np.array([place[int(voters[v]), own[side] if side >= 0 else side] for v, side in columns], np.int64)


# -- names ------------------------------------------------------------------------------------------------------------


def union_of_names(lists: Sequence[Sequence[Any]]) -> tuple[list[Any], list[np.ndarray]]:
    """Join names in order of appearance; returns them and the places of each list's names."""
    table: dict[Any, int] = {}
    maps = [np.array([table.setdefault(name, len(table)) for name in names], np.int64) for names in lists]
    return list(table), maps


def union_of_classes(classes: Sequence[Sequence[Any]], known: Sequence[int]) -> tuple[list[Any], int, list[np.ndarray]]:
    """Join classes, known ones first; returns them, the number of known ones, and their places."""
    first = list(dict.fromkeys(name for names, count in zip(classes, known, strict=True) for name in names[:count]))
    names, maps = union_of_names([first, *classes])
    return names, len(first), maps[1:]


def union_of_vocabularies(models: Sequence[StreamModel]) -> tuple[Vocabulary, list[np.ndarray]]:
    """Join the names of all models; returns them and the places of each model's columns."""
    first = models[0].vocabulary
    if first.bits:
        return Vocabulary(first.bits), [np.arange(2**first.bits) for _ in models]
    longest = max(models, key=lambda model: model.columns)
    names = longest.vocabulary.arrays(longest.columns)
    if all(begins_with(names, model.vocabulary.arrays(model.columns)) for model in models):
        whole = len(longest.vocabulary) == longest.columns
        union = deepcopy(longest.vocabulary) if whole else Vocabulary.from_arrays(names)
        return union, [np.arange(model.columns) for model in models]
    union = Vocabulary()
    return union, [_number_names(union, model) for model in models]


def begins_with(names: Mapping[str, np.ndarray], first: Mapping[str, np.ndarray]) -> bool:
    """Return whether names, as in `Vocabulary.arrays`, begin with others."""
    return all(np.array_equal(names[part][: first[part].size], first[part]) for part in ("offsets", "names"))


def _number_names(union: Vocabulary, model: StreamModel) -> np.ndarray:
    """Add the model's names to the union; returns their numbers."""
    arrays = model.vocabulary.arrays(model.columns)
    store, offsets = arrays["names"], np.ascontiguousarray(arrays["offsets"], np.int64)
    block = np.concatenate([store, np.zeros(PADDING, np.uint8)])
    numbers = np.zeros(offsets.size - 1, np.int64)
    union.reserve(numbers.size, store.size)
    number_names(union.names, block, offsets, numbers, 0, True)
    return numbers


# -- scalings ---------------------------------------------------------------------------------------------------------


def merge_scalings(
    base: Scaling | None, scalings: Sequence[Scaling], maps: Sequence[np.ndarray], columns: int
) -> Scaling:
    """Pool the statistics of scalings, counting the base once; ``maps`` place their columns, the base's last."""
    parts, kind = [scaling.arrays for scaling in scalings], scalings[0].kind
    sources = [*parts, *([] if base is None else [base.arrays])]
    signs = [1] * len(parts) + ([1 - len(parts)] if base is not None else [])
    trials = sum(sign * int(source["trials"].item()) for sign, source in zip(signs, sources, strict=True))
    dense = np.zeros_like(parts[0]["dense"])
    sparse = np.zeros((columns if any(len(source["sparse"]) for source in sources) else 0, 2))
    pooled = {"trials": np.array([trials], np.int64), "dense": dense, "sparse": sparse}
    if not (dense.size or sparse.size):
        return Scaling.from_state(scalings[0].description, pooled)
    for source, places in zip(parts, maps, strict=False):
        own = source["sparse"]
        sparse[places[: len(own)], 1] = np.maximum(sparse[places[: len(own)], 1], own[:, 1])
    largest = kind in ("max", WITHIN)
    if not largest:
        sparse[:, 1] = 0.0
    for sign, source, places in zip(signs, sources, maps, strict=True):
        own, kept_columns = source["sparse"], 1 if largest else 2
        sparse[places[: len(own)], :kept_columns] += sign * own[:, :kept_columns]
    if largest:
        dense[:, 0] = np.max([source["dense"][:, 0] for source in parts], axis=0)
    elif dense.size:
        full = [
            (sign, source["dense"])
            for sign, source in zip(signs, sources, strict=True)
            if source["dense"].shape == dense.shape  # a base may not have seen them
        ]
        pooled["dense"] = pooled_moments([table for _, table in full], [sign for sign, _ in full])
    return Scaling.from_state(scalings[0].description, pooled)


# -- engines ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlacedEngine:
    """Engine with the places of its columns and classes in the union."""

    engine: Engine
    voters: np.ndarray
    raters: np.ndarray
    dense: np.ndarray
    sparse: np.ndarray
    classes: np.ndarray

    def places(self, target: Engine) -> np.ndarray | None:
        """Places of its coordinates among those of the target; None if they are the same, in the same order."""
        own, layout = self.engine.layout, target.layout
        maps = (self.voters, self.raters, self.dense, self.sparse, self.classes)
        if own == layout and self.engine.k == target.k and all(map(_is_range, maps)):
            return None
        rows = np.concatenate([np.zeros(1 if own.constant else 0), 1 + self.dense, 1 + layout.dense + self.sparse])
        experts, rows = layout.voters + layout.raters, rows.astype(np.int64) - _first_row(layout)
        table = (experts + rows * target.k)[:, None] + self.classes
        return np.concatenate([self.voters, layout.voters + self.raters, table.ravel()]).astype(np.int64)


def _is_range(numbers: np.ndarray) -> bool:
    return bool((numbers == np.arange(numbers.size)).all())


def _first_row(layout: Layout) -> int:
    """First row in use: row 0 belongs to the constant even if there is none."""
    return 0 if layout.constant else 1


def _table(engine: Engine, stored: np.ndarray) -> np.ndarray:
    """View of the rows in use of the linear machine, with one column for each class."""
    shape = engine.state.shape
    experts, stride = int(shape[EXPERTS]), int(shape[STRIDE])
    padded = stored[..., experts:].reshape(*stored.shape[:-1], engine.capacity, stride)
    return padded[..., _first_row(engine.layout) : engine.layout.rows, : engine.k]


def read_existing(engine: Engine, stored: np.ndarray) -> np.ndarray:
    """Copy the coordinates in use from an array whose last axis has spare capacity."""
    experts, table = int(engine.state.shape[EXPERTS]), _table(engine, stored)
    rows = table.shape[-2] * engine.k
    if not experts:
        return table.copy().reshape(*stored.shape[:-1], rows)
    found = np.empty((*stored.shape[:-1], experts + rows), stored.dtype)
    found[..., :experts] = stored[..., :experts]
    found[..., experts:].reshape(table.shape)[...] = table
    return found


def write_existing(engine: Engine, stored: np.ndarray, existing: np.ndarray) -> None:
    """Write the coordinates in use to their places."""
    experts, table = int(engine.state.shape[EXPERTS]), _table(engine, stored)
    stored[..., :experts] = existing[..., :experts]
    table[...] = existing[..., experts:].reshape(table.shape)


def merge_engines(
    base: PlacedEngine | None,
    placed: Sequence[PlacedEngine],
    layout: Layout,
    classes: int,
    known: int,
    shares: np.ndarray,
    multiplicative: str,
    last: bool = False,
) -> Engine:
    """Mix engines of the same learner into one over the union; ``last`` if it ends a pass (see `Mixture`)."""
    first = placed[0].engine
    merged = Engine(first.learner, layout, classes, first.settings)
    merged.state.shape[KNOWN] = known
    spots = [one.places(merged) for one in placed]
    _count(base, placed, merged)
    _mix_nodes(base, placed, merged, shares, last)
    for member, run in enumerate(merged.runs):
        rule, state = run.rule, merged.state
        blank = _part(rule, merged, member)
        parts = [_spread_out(rule, one.engine, member, there, blank) for one, there in zip(placed, spots, strict=True)]
        target = Part(*(array.copy() for array in blank))
        mixture_of(rule)(rule, parts, shares, multiplicative == "plain", target)
        _write(rule, merged, member, target)
        if not np.isfinite(target.weights).all():
            raise OverflowError(f"the mixed weights of {rule} left the range of floats")
        if run.averaging:
            add_averages(run.averaging, merged, member, [*zip(placed, spots, strict=True)], base)
        state.means[member, averages.START] = rule.start * math.exp(-state.scalars[member, SHIFT])
        if merged.tracked:
            start_means(merged.bench.members[member], 0, 0)
        if run.fade:
            state.means[member, [averages.IDLE, averages.AGE]] = state.counts[member, TRIALS] + 1
    return merged


def _part(rule: Rule, engine: Engine, member: int) -> Part:
    """Copy a member's state at the coordinates in use."""
    state, slots = engine.state, len(rule.slots)
    memory = state.memory[member, :slots]
    weights = read_existing(engine, state.weights[member])
    return Part(
        weights,
        read_existing(engine, memory) if len(memory) else np.zeros((0, weights.size)),
        state.scalars[member, : OWN + len(rule.scalars)].copy(),
    )


def _spread_out(rule: Rule, engine: Engine, member: int, there: np.ndarray | None, blank: Part) -> Part:
    """Copy a member's state over the union; coordinates it has not seen have their initial value."""
    own, slots = _part(rule, engine, member), len(rule.slots)
    if there is None:
        return own
    weights, memory = blank.weights.copy(), blank.memory.copy()
    weights[:] = rule.start * math.exp(-own.scalars[SHIFT])
    weights[there] = own.weights
    memory[:slots, there] = own.memory[:slots]
    return Part(weights, memory, own.scalars)


def _write(rule: Rule, engine: Engine, member: int, part: Part) -> None:
    state, slots = engine.state, len(rule.slots)
    write_existing(engine, state.weights[member], part.weights)
    if slots:
        write_existing(engine, state.memory[member, :slots], part.memory[:slots])
    state.scalars[member, : len(part.scalars)] = part.scalars


def _mix_nodes(
    base: PlacedEngine | None, placed: Sequence[PlacedEngine], merged: Engine, shares: np.ndarray, last: bool
) -> None:
    """Mix the nodes above the rules, and the learners that are not rules."""

    def walked(one: PlacedEngine) -> list[Placement]:
        maps = (one.voters, one.raters, one.dense, one.sparse, one.classes)
        return [Placement(node, *maps) for node in one.engine.top.walk()]

    walks, start = [walked(one) for one in placed], None if base is None else walked(base)
    for place, node in enumerate(merged.top.walk()):
        before = None if start is None else start[place]
        parts, known = [walk[place] for walk in walks], int(merged.state.shape[KNOWN])
        node.mix(Mixture(parts, shares, before, merged.k, known, last=last))


def _count(base: PlacedEngine | None, placed: Sequence[PlacedEngine], merged: Engine) -> None:
    """Add up counts of trials and updates."""
    merged.state.counts[...] = sum(one.engine.state.counts for one in placed)
    if base is not None:
        merged.state.counts[...] -= (len(placed) - 1) * base.engine.state.counts


class AverageSums:
    """Sum behind a member's average: the hypotheses that saw a trial.

    It is S of `linmax.core.averages` without its last term, the present hypothesis, which has not seen a trial yet.
    """

    def __init__(self, engine: Engine, member: int, there: np.ndarray | None) -> None:
        self.engine, self.member, self.there = engine, member, there
        state, kind = engine.state, engine.runs[member].averaging
        numbers, scalars = state.means[member], state.scalars[member]
        self.log = float(numbers[averages.ANCHOR]) if kind == RAW else 0.0  # the logarithm of its scale
        if kind == RAW:
            g = math.exp(scalars[SHIFT] + scalars[GAUGE] - self.log)
        else:
            g = 1.0 / numbers[averages.NORM] if numbers[averages.NORM] > 0.0 else 0.0
        self.multiple = numbers[averages.WEIGHT] + (numbers[averages.IDLE] - numbers[averages.AGE]) * g
        self.unseen = float(self.multiple * numbers[averages.START] - numbers[averages.UNSEEN])  # if it appears later
        trials = int(state.counts[member, TRIALS])
        self.ages = trials * (trials + 1) / 2  # what the trials count for together, where averages fade

    def add_to(self, total: np.ndarray, factor: float) -> None:
        """Add the sum, times a factor, to a total over the union."""
        state = self.engine.state
        weights, backlog = (_table(self.engine, array[self.member]) for array in (state.weights, state.backlog))
        experts = int(state.shape[EXPERTS])
        if self.there is None and not experts:  # in pieces that fit into the processor's cache
            target = total.reshape(weights.shape)
            for begin in range(0, len(weights), MERGED_ROWS):
                rows = slice(begin, begin + MERGED_ROWS)
                target[rows] += (weights[rows] * self.multiple - backlog[rows]) * factor
            return
        own = read_existing(self.engine, state.weights[self.member])
        own *= self.multiple
        own -= read_existing(self.engine, state.backlog[self.member])
        if self.there is not None:
            seen, own = own, np.full(total.size, self.unseen)
            own[self.there] = seen
        own *= factor
        total += own


def add_averages(
    kind: int,
    merged: Engine,
    member: int,
    spots: Sequence[tuple[PlacedEngine, np.ndarray | None]],
    base: PlacedEngine | None,
) -> None:
    """Average over all engines: add up their sums, with the base counted once."""
    state = merged.state
    numbers, scalars = state.means[member], state.scalars[member]
    sums = [AverageSums(one.engine, member, there) for one, there in spots]
    anchor = max(one.log for one in sums)
    scale = float(scalars[SHIFT] + scalars[GAUGE])
    if kind == RAW and scale > anchor + averages.LARGEST_G:
        anchor = scale
    terms = [(one, math.exp(one.log - anchor)) for one in sums]
    ages = sum(one.ages for one in sums)
    if base is not None:
        before, many = AverageSums(base.engine, member, base.places(merged)), len(sums) - 1
        terms.append((before, -many * math.exp(before.log - anchor)))
        ages -= many * before.ages
    total, unseen = (
        np.zeros(merged.layout.voters + merged.layout.raters + _table(merged, state.backlog[member]).size),
        0.0,
    )
    for one, factor in terms:
        one.add_to(total, factor)
        unseen += factor * one.unseen
    if merged.runs[member].fade and ages:
        trials = int(state.counts[member, TRIALS])
        stretch = trials * (trials + 1) / 2 / ages
        total, unseen = stretch * total, stretch * unseen
    write_existing(merged, state.backlog[member], -total)
    numbers[averages.UNSEEN], numbers[averages.ANCHOR] = -unseen, anchor
