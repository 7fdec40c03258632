"""`merge`: one model from several that learned from different examples.

Every model is a `Model` under names. A union (`Union`) joins the names of several models and places each one's columns
among all; then the parts of the engine are mixed: rules by `Rule.mix`, learners that are not rules by their `Field`s
(`linmax.learners.base`). Around them:

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from inspect import signature
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from linmax.core import averages
from linmax.core.contract import EXPERTS, GAUGE, KNOWN, OWN, RAW, SHIFT, STRIDE, TRIALS, Part, Rule
from linmax.data.arrays import Layout
from linmax.data.scaling import WITHIN, Scaling, pooled_moments
from linmax.data.side_columns import Sides
from linmax.engine.engine import Engine, Settings
from linmax.engine.loop import start_means
from linmax.engine.notation import as_learner
from linmax.io.bytes import PADDING
from linmax.io.vocabulary import Vocabulary
from linmax.learners.base import Field, Mixture, Placement, grown
from linmax.models.asking import Asking, Recent
from linmax.models.baselines import Tally
from linmax.models.fusion import FusionState, VoteFusion
from linmax.models.model import Model
from linmax.models.online import Learner
from linmax.models.streams.stream_model import StreamModel
from linmax.models.weights import Columns
from linmax.rules.mixing import MULTIPLICATIVE, mixture_of
from linmax.techniques.technique import LearnerLike
from linmax.util.checks import finite, one_of
from linmax.util.files import State
from linmax.util.parts import handed_over

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


Item = TypeVar("Item")
Learned: TypeAlias = Learner | StreamModel | VoteFusion
Mergeable = TypeVar("Mergeable", Learner, StreamModel, VoteFusion)
HOW = ("uniform", "trials", "mistakes")


class ColumnsDiffer(ValueError):
    """Two models learned from tables with different columns of numbers."""

    def __init__(self, place: int, other: int, names: Sequence[str]) -> None:
        self.place, self.other, self.names = place, other, ", ".join(names[:5])
        super().__init__(
            f"models must have the same columns of numbers: model {place} and model {other} differ in {self.names}"
        )


# -- checks and shares ------------------------------------------------------------------------------------------------


def refuse_unmergeable(learner: LearnerLike) -> None:
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
    if isinstance(models, tuple(UNIONS)) or not isinstance(models, Iterable):
        raise TypeError(f"models must be a list, got {models!r}; put it in square brackets")
    models = list(models)
    if not models:
        raise ValueError("models must hold at least one model, got none")
    for place, model in enumerate(models):
        if type(model) not in UNIONS or type(model) is not type(models[0]):
            raise TypeError(
                f"models must all be Learner objects, all stream models or all fusions; number {place} is a "
                f"{type(model).__name__}, number 0 a {type(models[0]).__name__}"
            )
    return models


def refuse_different(models: Sequence[Learned], names: Sequence[str] = ()) -> None:
    """Refuse models with different options, or with instances that wait for labels; ``names`` are those of files."""
    first, names = options_of(models[0]), names or [f"number {place}" for place in range(len(models))]
    for model, name in zip(models, names, strict=True):
        for option, value in options_of(model).items():
            if first[option] != value:
                raise ValueError(
                    f"models must have the same {option}: {name} has {value!r}, {names[0]} {first[option]!r}"
                )
        if len(models) > 1 and isinstance(model, Learner) and model.pending:
            raise ValueError(f"{name}: {model.pending} instances wait for their labels; learn or forget() them first")


def options_of(model: Learned) -> dict[str, Any]:
    """Return the options that must be equal; the order of the classes of a fusion does not matter."""
    if not isinstance(model, VoteFusion):
        return dict(model.options)
    found = {name: getattr(model, name) for name in signature(VoteFusion).parameters}
    found = {name: list(value) if isinstance(value, (tuple, np.ndarray)) else value for name, value in found.items()}
    classes = None if found["classes"] is None else sorted(map(repr, found["classes"]))
    return found | {"classes": classes, "learner": str(as_learner(model.learner))}


def model_of(given: Learned | None) -> Model | None:
    """Return the `Model` under a `Learner`, stream model or fusion; None before it has learned."""
    if given is None or (isinstance(given, VoteFusion) and not given.__sklearn_is_fitted__()):
        return None
    return given._current_model


def shares_of(models: Sequence[Learned], base: Learned | None, how: str | Sequence[float]) -> np.ndarray:
    """Return the shares mu_i: at least 0, with the sum 1."""
    if isinstance(how, str):
        one_of("how", how, HOW)
        start, *counts = (
            np.zeros(3) if model is None else np.array([model.trials, model.updates, model.mistakes], float)
            for model in map(model_of, (base, *models))
        )
        gained = [count - start for count in counts]
        return shares_by(how, [(float(since[0] > 0.0), *since.tolist()) for since in gained])
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


# -- merging ----------------------------------------------------------------------------------------------------------


def merge(
    models: Sequence[Mergeable], how: str | Sequence[float] = "uniform", multiplicative: str = "log"
) -> Mergeable:
    """Mix models of the same learner into one, which can predict and keep learning.

    Parameters
    ----------
    models
        `linmax.Learner` objects, `linmax.StreamModel` objects, or `linmax.VoteFusion` objects, that learned
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
    hypotheses that saw a trial over the number of all trials.

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
        models = [model for model, share in zip(models, shares, strict=True) if share]
        how = shares[shares > 0.0].tolist()
    return merge_since(None, models, how, multiplicative)


def merge_since(
    base: Mergeable | None,
    models: Sequence[Mergeable],
    how: str | Sequence[float] = "uniform",
    multiplicative: str = "log",
    last: bool = False,
) -> Mergeable:
    """Merge models that all continued from ``base``, whose counts and sums are taken once.

    Curve and calibration start from scratch: the trials of several streams have no common order. ``last`` if the
    mixture ends a pass.
    """
    one_of("multiplicative", multiplicative, MULTIPLICATIVE)
    models = checked_models(models)
    refuse_unmergeable(models[0].learner)
    refuse_different(models)
    shares = shares_of(models, base, how)
    begun: list[int] = [place for place, model in enumerate(models) if model_of(model) is not None]
    everyone = [*(models[place] for place in begun), *([] if model_of(base) is None else [base])]
    parts, count, shares = [model for one in everyone if (model := model_of(one))], len(begun), shares[begun]
    for part in parts[:count]:
        refuse_unmixable_nodes(part.engine)
    if count < 2:
        return deepcopy(models[begun[0] if begun else 0])
    union = UNIONS[type(models[0])](everyone, count)
    classes, places = union_of_names(model.classes for model in parts)
    placed = [at._replace(state=model, classes=own) for at, model, own in zip(union.places, parts, places, strict=True)]
    before = placed[count] if len(placed) > count else None
    mixture = Mixture(placed[:count], shares / shares.sum(), before, len(classes), len(classes), last=last)
    engine = merge_engines(mixture.of(lambda model: model.engine), union.layout, multiplicative)
    mistakes = sum(times * part.state.mistakes for part, times in mixture.counted)
    merged: Mergeable = union.finish(Model.of(engine, classes, union.columns, mistakes, parts[:count]), mixture)
    return merged


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
    known = vocabulary_of(state)
    return StreamModel.from_state(*state, deepcopy(known) if learns and known is not None else known, copied=learns)


_latest = threading.local()


def vocabulary_of(state: State) -> Vocabulary | None:
    """Return the names of a stream model's state, which must not grow; None if the model has to make them itself.

    Many models of a cluster have the same names, so that each thread keeps the latest.
    """
    names = {part.removeprefix("names."): array for part, array in state[1].items() if part.startswith("names.")}
    if state[0]["hash_bits"] or "shared" in names:
        return None
    found: Vocabulary | None = getattr(_latest, "names", None)
    known = {} if found is None else found.arrays()
    if found is None or not all(np.array_equal(names[part], known[part]) for part in names):
        found = _latest.names = Vocabulary.from_arrays(names)
    return found


# -- columns and names, joined ----------------------------------------------------------------------------------------


class Union(NamedTuple):
    """Columns of several models together.

    ``places`` say where each model's columns are in the layout; ``finish`` makes the merged object of its model.
    """

    layout: Layout
    places: list[Placement]
    columns: Columns
    finish: Callable[[Model, Mixture], Any]


def union_of_names(lists: Iterable[Sequence[Item]]) -> tuple[list[Item], list[np.ndarray]]:
    """Join names in order of appearance; returns them and the places of each list's names."""
    table: dict[Item, int] = {}
    maps = [np.array([table.setdefault(name, len(table)) for name in names], np.int64) for names in lists]
    return list(table), maps


def join_recent(parts: Sequence[tuple[Recent, np.ndarray]], mixture: Mixture, voters: int, trials: int) -> Asking:
    """Join the trials stored for panels, the latest of each, with the places of their voters."""
    kept = [(recent, own, part.classes) for (recent, own), part in zip(parts, mixture.parts, strict=False)]
    return Asking(Recent.joined(kept, voters, trials))


def union_of_learners(everyone: Sequence[Learner], count: int) -> Union:
    voters, voter_maps = union_of_names(one.voters for one in everyone)
    raters, rater_maps = union_of_names(one.raters for one in everyone)
    attributes, maps = union_of_names(one.attributes for one in everyone)
    blocks = zip(voter_maps, rater_maps, maps, strict=True)
    places = [Placement(None, voters=own, raters=rated, sparse=sparse) for own, rated, sparse in blocks]
    learners = everyone[:count]

    def finish(model: Model, mixture: Mixture) -> Learner:
        header, arrays = model.state()
        description = learners[0].state()[0] | {
            "asking": {},
            "model": header,
            "max_pending": max(learner.max_pending for learner in learners),
            "labelled": list(dict.fromkeys(id for learner in learners for id in learner._pending.labelled)),
        }
        if "answers" in description:
            unnamed = sum(learner._answers.unnamed for learner in learners if learner._answers is not None)
            description["answers"] = description["answers"] | {"unnamed": unnamed}
        merged = Learner.from_state(description, arrays)
        signs = [*[1] * count, *[1 - count] * (len(everyone) - count)]
        of_few = sum(sign * learner._asked().of_few for learner, sign in zip(everyone, signs, strict=True))
        kept = [learner._asked().recent for learner in learners]
        if all(recent.trials for recent in kept) and not (raters or attributes):
            trials = sum(recent.trials for recent in kept)
            merged._asking = join_recent([*zip(kept, voter_maps, strict=False)], mixture, len(voters), trials)
        merged._asking.of_few = of_few
        return merged

    layout = Layout(len(voters), len(raters), 0, len(attributes), learners[0]._current_model.layout.constant)
    return Union(layout, places, Columns(voters, raters, attributes), finish)


# -- stream models ----------------------------------------------------------------------------------------------------


def union_of_streams(everyone: Sequence[StreamModel], count: int) -> Union:
    models, first, layouts = (
        everyone[:count],
        everyone[0],
        [one._current_model.layout for one in everyone if one._current_model],
    )
    refuse_other_columns(models)
    vocabulary, maps = union_of_vocabularies(everyone)
    columns = 2**vocabulary.bits if vocabulary.bits else len(vocabulary)
    wide, extra = len(first._dense_names), int(first._scaling.prepends)  # the constant is the first of the columns
    place = {name: number for number, name in enumerate(first._dense_names)}
    places, scalings = [], []
    for one, names, own in zip(everyone, maps, layouts, strict=True):
        dense = np.array([place[name] for name in one._dense_names], np.int64)
        scalings.append(Placement(one._scaling, dense=dense, sparse=names))
        sparse = np.append(0, 1 + names) if extra and not wide else names
        shifted = np.append(np.zeros(extra * bool(wide), np.int64), extra + dense)
        places.append(Placement(None, dense=shifted, sparse=sparse[: own.sparse]))
    most = columns + extra * (not wide) if any(own.sparse for own in layouts[:count]) else 0
    layout = Layout(0, 0, wide + extra * bool(wide), most, layouts[0].constant)

    def finish(model: Model, mixture: Mixture) -> StreamModel:
        header, state = model.state()
        base = scalings[count] if len(scalings) > count else None
        scaling = merge_scalings(mixture._replace(parts=scalings[:count], base=base), columns)
        schema = {name: kind for one in reversed(models) for name, kind in one._schema.items()}
        description = first.state()[0] | {
            "scaling": scaling.description,
            "labels": list(dict.fromkeys([*model.classes, *(name for one in models for name in one._labels.names)])),
            "columns": columns,
            "model": header,
            "schema": [(name, schema[name]) for name in dict.fromkeys(name for one in models for name in one._schema)],
        }
        blocks = {"names": vocabulary.arrays(), "scaling": scaling.arrays, "model": state}
        arrays = {f"{block}.{name}": array for block, arrays in blocks.items() for name, array in arrays.items()}
        return StreamModel.from_state(description, handed_over(arrays), vocabulary)

    return Union(layout, places, Columns(), finish)


def refuse_other_columns(models: Sequence[StreamModel]) -> None:
    """Raise for models of tables with other columns of numbers, or scaled in another way."""
    first = models[0]
    for place, other in enumerate(models):
        if differ := sorted(set(other._dense_names) ^ set(first._dense_names)):
            raise ColumnsDiffer(place, 0, differ)
        if other._scaling.kind != first._scaling.kind or other._scaling.prepends != first._scaling.prepends:
            raise ValueError(
                f"models must have the same scaling: model {place} has {other._scaling.kind!r}, model 0 "
                f"{first._scaling.kind!r}; pass scale="
            )


def union_of_vocabularies(models: Sequence[StreamModel]) -> tuple[Vocabulary, list[np.ndarray]]:
    """Join the names of all models; returns them and the places of each model's columns."""
    first = models[0]._vocabulary
    if first.bits:
        return Vocabulary(first.bits), [np.arange(2**first.bits) for _ in models]
    longest = max(models, key=lambda model: model._columns)
    names = longest._vocabulary.arrays(longest._columns)
    if all(begins_with(names, model._vocabulary.arrays(model._columns)) for model in models):
        whole = len(longest._vocabulary) == longest._columns
        union = deepcopy(longest._vocabulary) if whole else Vocabulary.from_arrays(names)
        return union, [np.arange(model._columns) for model in models]
    union = Vocabulary()
    return union, [add_names(union, model._vocabulary.arrays(model._columns)) for model in models]


def begins_with(names: Mapping[str, np.ndarray], first: Mapping[str, np.ndarray]) -> bool:
    """Return whether names, as in `Vocabulary.arrays`, begin with others."""
    return all(np.array_equal(names[part][: first[part].size], first[part]) for part in ("offsets", "names"))


def add_names(union: Vocabulary, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Add names, as in `Vocabulary.arrays`, to a vocabulary; returns their numbers."""
    store, offsets = arrays["names"], np.ascontiguousarray(arrays["offsets"], np.int64)
    block = np.concatenate([store, np.zeros(PADDING, np.uint8)])
    return union.numbers_of(block, offsets[:-1], offsets[1:])


STATISTICS = {
    "trials": Field((1,), dtype=np.int64),
    "dense": Field(("dense", 3)),
    "sparse": Field(("sparse", 2)),
}


def merge_scalings(mixture: Mixture, columns: int) -> Scaling:
    """Pool the statistics of scalings, counting the base once."""
    first = mixture.parts[0].state
    sparse = any(len(part.state.arrays["sparse"]) for part, _ in mixture.counted)
    sizes = {"dense": len(first.arrays["dense"]), "sparse": columns * sparse}

    def placed(part: Placement) -> dict[str, np.ndarray]:
        state = SimpleNamespace(**part.state.arrays)
        return grown(STATISTICS, state, sizes, {"dense": part.dense, "sparse": part.sparse})

    tables = [(placed(part), times) for part, times in reversed(mixture.counted)]
    pooled = {name: np.sum([times * table[name] for table, times in tables], axis=0) for name in STATISTICS}
    if first.kind in ("max", WITHIN):
        largest = {name: np.max([table[name] for table, _ in tables], axis=0) for name in ("dense", "sparse")}
        pooled["dense"], pooled["sparse"][:, 1] = largest["dense"], largest["sparse"][:, 1]
    elif sizes["dense"]:
        pooled["dense"] = pooled_moments([table["dense"] for table, _ in tables], [times for _, times in tables])
    return Scaling.from_state(first.description, pooled)


# -- fusions of votes -------------------------------------------------------------------------------------------------


def union_of_fusions(everyone: Sequence[VoteFusion], count: int) -> Union:
    states: list[FusionState] = [fusion._fitted for fusion in everyone]
    refuse_other_kinds(states[:count])
    voters, voter_maps = union_of_names(state.voters for state in states)
    signs = [*[1] * count, *[1 - count] * (len(states) - count)]
    sides, first, size = join_sides(states, signs, len(voters)), states[0], len(voters)
    names, rater_maps = union_of_names(state.raters for state in states)
    columns, raters = (len(sides.columns) if sides.names else size), len(names)
    places = [
        Placement(None, voters=places_of_votes(s, own, sides), raters=rated)
        for s, own, rated in zip(states, voter_maps, rater_maps, strict=True)
    ]
    if first.normalizer is not None:
        columns, raters, copies = 0, size * first.copies, np.arange(first.copies)
        places = [Placement(None, raters=(own[:, None] * first.copies + copies).ravel()) for own in voter_maps]

    def finish(model: Model, mixture: Mixture) -> VoteFusion:
        tally = Tally.added_up([(s.tally, own) for s, own in zip(states, voter_maps, strict=True)], signs, size)
        recent = [(s.recent, own) for s, own in zip(states[:count], voter_maps, strict=False)]
        asking = join_recent(recent, mixture, size, tally.trials)
        merged = copy(everyone[0])
        merged.__dict__.pop("_panel", None)
        merged._state = FusionState(
            model,
            first.fixed,
            first.named,
            tuple(voters),
            first.normalizer,
            sides,
            tally,
            asking,
            unnamed=sum(sign * (s.unnamed or 0) for s, sign in zip(states, signs, strict=True)) if first.open else None,
            raters=tuple(names),
        )
        return merged

    return Union(Layout(columns, raters, 0, 0, first.model.layout.constant), places, Columns(), finish)


def refuse_other_kinds(states: Sequence[FusionState]) -> None:
    """Raise for fusions of votes and of scores, with voters with and without names, or of other classes."""
    first = states[0]
    for state in states:
        if (state.normalizer is None) != (first.normalizer is None):
            raise ValueError("fusions of votes and fusions of scores cannot be merged; merge those of one kind")
        if state.open != first.open:
            raise ValueError("fusions of open and of closed answers cannot be merged; merge those of one kind")
        if state.named != first.named:
            raise ValueError("voters must be named in all fusions or in none; fit all of them with names")
        if (state.fixed is None) != (first.fixed is None) or set(state.fixed or ()) != set(first.fixed or ()):
            raise ValueError(
                f"fusions must have the same classes, got {list(first.fixed or ())!r} and {list(state.fixed or ())!r}; "
                "give classes= to each"
            )


def join_sides(states: Sequence[FusionState], signs: Sequence[int], voters: int) -> Sides:
    """Return the side columns of all fusions, their counts added up."""
    sides = states[0].sides
    if not sides.names:
        return sides
    values, _ = union_of_names(state.sides.values for state in states)
    columns = [[value for column, value in values if column == place] for place in range(len(sides.names))]
    sides = Sides(sides.names).joined(columns, voters)
    place, counts = {value: p for p, value in enumerate(sides.values)}, sides.counts.copy()
    for state, sign in zip(states, signs, strict=True):
        np.add.at(counts, [place[value] for value in state.sides.values], sign * state.sides.counts)
    return replace(sides, counts=counts)


def places_of_votes(state: FusionState, voters: np.ndarray, sides: Sides) -> np.ndarray:
    """Return the places of a fusion's columns of votes in the union."""
    if not sides.names:
        return voters
    place = {pair: at for at, pair in enumerate(map(tuple, sides.columns.tolist()))}
    value = {name: at for at, name in enumerate(sides.values)}
    own = [value[name] for name in state.sides.values]
    columns = state.sides.columns.tolist()
    return np.array([place[int(voters[v]), own[side] if side >= 0 else side] for v, side in columns], np.int64)


UNIONS: dict[type, Callable[..., Union]] = {
    Learner: union_of_learners,
    StreamModel: union_of_streams,
    VoteFusion: union_of_fusions,
}


# -- engines ----------------------------------------------------------------------------------------------------------


def first_row(layout: Layout) -> int:
    """Return the first row in use: row 0 belongs to the constant even if there is none."""
    return 0 if layout.constant else 1


def views(engine: Engine, stored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates in use of an array with spare capacity: of experts, and a row of classes an attribute."""
    experts, stride = int(engine.state.shape[EXPERTS]), int(engine.state.shape[STRIDE])
    table = stored[..., experts:].reshape(*stored.shape[:-1], engine.capacity, stride)
    return stored[..., :experts], table[..., first_row(engine.layout) : engine.layout.rows, : engine.k]


def read_existing(engine: Engine, stored: np.ndarray) -> np.ndarray:
    """Copy the coordinates in use."""
    experts, table = views(engine, stored)
    size = experts.shape[-1]
    found = np.empty((*stored.shape[:-1], size + table.shape[-2] * engine.k), stored.dtype)
    found[..., :size], found[..., size:].reshape(table.shape)[...] = experts, table
    return found


def write_existing(engine: Engine, stored: np.ndarray, existing: np.ndarray) -> None:
    """Write the coordinates in use to their places."""
    experts, table = views(engine, stored)
    experts[...] = existing[..., : experts.shape[-1]]
    table[...] = existing[..., experts.shape[-1] :].reshape(table.shape)


class PlacedEngine:
    """Engine with the places of its coordinates among those of the target; None if they are the same, in order."""

    def __init__(self, part: Placement, target: Engine) -> None:
        self.engine, layout = part.state, target.layout
        experts = layout.voters + layout.raters
        self.size = experts + max(0, layout.rows - first_row(layout)) * target.k
        self.places: np.ndarray | None = None
        own = self.engine.layout
        if own != layout or self.engine.k != target.k or not all((at == np.arange(at.size)).all() for at in part[1:]):
            rows = np.concatenate([np.zeros(1 if own.constant else 0), 1 + part.dense, 1 + layout.dense + part.sparse])
            table = (experts + (rows.astype(np.int64) - first_row(layout)) * target.k)[:, None] + part.classes
            self.places = np.concatenate([part.voters, layout.voters + part.raters, table.ravel()]).astype(np.int64)

    def spread(self, existing: np.ndarray, fill: npt.ArrayLike) -> np.ndarray:
        """Return coordinates in use over the target; those that this engine has not seen are filled."""
        if self.places is None:
            return existing
        found = np.empty((*existing.shape[:-1], self.size))
        found[...] = fill
        found[..., self.places] = existing
        return found

    def part(self, rule: Rule, member: int) -> Part:
        """Copy a member's state over the target."""
        state, slots = self.engine.state, np.reshape(rule.slots, (-1, 1))
        scalars = state.scalars[member, : OWN + len(rule.scalars)].copy()
        weights, memory = (
            read_existing(self.engine, a[member]) for a in (state.weights, state.memory[:, : len(slots)])
        )
        return Part(self.spread(weights, rule.start * math.exp(-scalars[SHIFT])), self.spread(memory, slots), scalars)


def merge_engines(mixture: Mixture, layout: Layout, multiplicative: str) -> Engine:
    """Mix engines of the same learner into one with this layout."""
    first: Engine = mixture.parts[0].state
    merged = Engine(first.learner, layout, mixture.k, first.settings, begin=False)
    state = merged.state
    state.shape[KNOWN] = mixture.known
    state.counts[...] = sum(times * part.state.state.counts for part, times in mixture.counted)
    for place, node in enumerate(merged.top.walk()):
        node.mix(mixture.of(lambda engine, place=place: engine.top.walk()[place]))  # type: ignore[misc]
    counted = [(PlacedEngine(part, merged), times) for part, times in mixture.counted]
    for member, run in enumerate(merged.runs):
        rule, parts = run.rule, [one.part(run.rule, member) for one, _ in counted]
        target = PlacedEngine(Placement(merged), merged).part(rule, member)
        mixture_of(rule)(rule, parts[: len(mixture.parts)], mixture.shares, multiplicative == "plain", target)
        if not np.isfinite(target.weights).all():
            raise OverflowError(f"the mixed weights of {rule} left the range of floats")
        write_existing(merged, state.weights[member], target.weights)
        write_existing(merged, state.memory[member, : len(rule.slots)], target.memory[: len(rule.slots)])
        state.scalars[member, : len(target.scalars)] = target.scalars
        if run.averaging:
            merge_averages(merged, member, counted, [part.weights for part in parts])
        state.means[member, averages.START] = rule.start * math.exp(-state.scalars[member, SHIFT])
        if merged.tracked:
            start_means(merged.bench.members[member], 0, 0)
        if run.fade:
            state.means[member, [averages.IDLE, averages.AGE]] = state.counts[member, TRIALS] + 1
    return merged


def merge_averages(
    merged: Engine, member: int, counted: Sequence[tuple[PlacedEngine, int]], weights: Sequence[np.ndarray]
) -> None:
    """Average over all engines, of these weights: add up the sums of hypotheses that saw a trial, the base's once.

    Each is S of `linmax.core.averages` without its last term, the present hypothesis, which has not seen a trial yet.
    """
    run, numbers = merged.runs[member], merged.state.means[member]
    raw = run.averaging == RAW
    logs = [float(one.engine.state.means[member, averages.ANCHOR]) if raw else 0.0 for one, _ in counted]
    anchor = max(log for log, (_, times) in zip(logs, counted, strict=True) if times > 0)
    scale = float(merged.state.scalars[member, [SHIFT, GAUGE]].sum())
    if raw and scale > anchor + averages.LARGEST_G:
        anchor = scale
    total, unseen, ages = np.zeros(counted[0][0].size), 0.0, 0.0
    for log, own, (one, times) in zip(logs, weights, counted, strict=True):
        state = one.engine.state
        means, scalars, trials = state.means[member], state.scalars[member], int(state.counts[member, TRIALS])
        if raw:
            g = math.exp(scalars[SHIFT] + scalars[GAUGE] - log)
        else:
            g = 1.0 / means[averages.NORM] if means[averages.NORM] > 0.0 else 0.0
        multiple = means[averages.WEIGHT] + (means[averages.IDLE] - means[averages.AGE]) * g
        late = float(multiple * means[averages.START] - means[averages.UNSEEN])  # of a coordinate that appears later
        factor = times * math.exp(log - anchor)
        own *= multiple
        own -= one.spread(read_existing(one.engine, state.backlog[member]), means[averages.UNSEEN])
        own *= factor
        total += own
        unseen += factor * late
        ages += times * trials * (trials + 1) / 2  # what the trials count for together, where averages fade
    if run.fade and ages:
        trials = int(merged.state.counts[member, TRIALS])
        stretch = trials * (trials + 1) / 2 / ages
        total, unseen = stretch * total, stretch * unseen
    write_existing(merged, merged.state.backlog[member], -total)
    numbers[averages.UNSEEN], numbers[averages.ANCHOR] = -unseen, anchor
