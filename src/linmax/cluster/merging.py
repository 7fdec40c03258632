"""`merge`: one model from several that learned from different examples.

What is mixed rule by rule is in `linmax.rules.mixtures`. Around it:

* voters, raters, attributes and classes are joined by name; what a model never met has its first weight there;
* averages stay averages: the hypotheses that met a trial are added up over all models, whatever their shares (where
  averages fade, stretched to what as many trials of one stream would count for);
* counts of trials, updates and mistakes add up, and with them the mistakes by which a combination chooses;
* statistics of scaling are pooled (`Scaling`): counts, sums and moments add up, the largest values are kept;
* recent instances, which recycling shows again, are dropped: those of several streams have no common order.

No mistake bound covers the result. For the Perceptron on separable data repeated mixing converges (McDonald et al.).

References
----------
McDonald, Hall and Mann, "Distributed training strategies for the structured perceptron", NAACL (2010).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from linmax.core import averages
from linmax.core.contract import EXPERTS, GAUGE, KNOWN, OWN, RAW, SHIFT, STRIDE, TRIALS, Rule
from linmax.data.instances import Layout
from linmax.data.scaling import Scaling
from linmax.engine.composition import as_learner
from linmax.engine.engine import Engine, Settings
from linmax.engine.loop import start_means
from linmax.engine.nodes import BestOf, Leaf, Node, Stacking, Voting, Weighing
from linmax.engine.one_trial import POINTS
from linmax.io.scan import PADDING
from linmax.io.vocabulary import Vocabulary, number_names
from linmax.models.online import Learner
from linmax.models.streams.model import StreamModel
from linmax.rules.mixtures import MULTIPLICATIVE, Part, mix, refuse_unmixable
from linmax.util import files
from linmax.util.checks import finite, one_of

__all__ = ["HOW", "merge", "merge_since", "refuse_unmergeable"]

HOW = ("uniform", "mistakes")
REASONS = {
    Voting: "its saved hypotheses were judged on the recent instances of one stream; merge what it votes over",
    Stacking: "its fusion has learned to weigh the scores of other members than the merged ones",
}
M = TypeVar("M", Learner, StreamModel)


def merge(models: Sequence[M], how: str | Sequence[float] = "uniform", multiplicative: str = "log") -> M:
    """Mix models of the same learner into one, which goes on learning and predicting.

    Parameters
    ----------
    models
        `linmax.Learner` objects, or `linmax.streams.StreamModel` objects, that learned from different examples.
    how
        Shares of the models: "uniform" over those that learned anything, "mistakes" in proportion to their updates
        (for a mistake-driven rule its mistakes, ties included), or one number >= 0 a model.
    multiplicative
        For the Winnows: "log" mixes the logarithms of the weights, "plain" the weights.

    Returns
    -------
    A new model; the given ones stay as they are. One model alone gives a copy with the same bits.

    Raises
    ------
    ValueError
        For a learner that has no sound mixture (voting, stacking, a rule of one's own with a memory), for models of
        different learners or settings, and for models with instances that wait for their labels.

    Notes
    -----
    With shares mu_i: w = sum mu_i w_i for additive rules; log w = sum mu_i log w_i for Winnow; for second-order rules
    P = sum mu_i P_i and w = P^-1 sum mu_i P_i w_i with the precisions P. An averaged hypothesis is the sum of all
    hypotheses that met a trial over the number of all trials.

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
    return merge_since(None, models, how, multiplicative)


def merge_since(
    base: M | None, models: Sequence[M], how: str | Sequence[float] = "uniform", multiplicative: str = "log"
) -> M:
    """`merge` for models that all went on from ``base``: what it had counted and added up is taken once."""
    one_of("multiplicative", multiplicative, MULTIPLICATIVE)
    models = _checked(models)
    refuse_unmergeable(models[0].learner)
    _refuse_different(models)
    if len(models) == 1:
        shares_of(models, base, how)
        return type(models[0]).from_state(*models[0].state())
    shares = shares_of(models, base, how)
    if isinstance(models[0], Learner):
        return _merge_learners(base, models, shares, multiplicative)
    return _merge_models(base, models, shares, multiplicative)


# -- what can be merged ----------------------------------------------------------------------------------------------


def refuse_unmergeable(learner: Any) -> None:
    """Raise with the reason where a learner has no sound mixture."""
    described = as_learner(learner)
    engine = Engine(described, Layout(0, 0, 0, 0, 1.0), 0, Settings(discover=True))
    for node in engine.top.walk():
        if not isinstance(node, (Leaf, BestOf, Weighing)):
            reason = REASONS.get(type(node), "no mixture of its states is known")
            raise ValueError(f"{described} cannot be merged: {reason}")
    for run in engine.runs:
        refuse_unmixable(run.rule)


def _checked(models: Sequence[M]) -> Sequence[M]:
    if isinstance(models, (Learner, StreamModel)) or not isinstance(models, Iterable):
        raise TypeError(f"models must be a list, got {models!r}; put it in square brackets")
    models = list(models)
    if not models:
        raise ValueError("models must hold at least one model, got none")
    for place, model in enumerate(models):
        if not isinstance(model, (Learner, StreamModel)) or type(model) is not type(models[0]):
            raise TypeError(
                f"models must all be Learner objects or all stream models; number {place} is a "
                f"{type(model).__name__}, number 0 a {type(models[0]).__name__}"
            )
    return models


SETTINGS = ("learner", "thresholds", "tie", "update_on_tie", "fixed", "hash_bits")


def _refuse_different(models: Sequence[Any]) -> None:
    first = models[0].state()[0]
    for place, model in enumerate(models[1:], 1):
        other = model.state()[0]
        for name in SETTINGS:
            if first.get(name) != other.get(name):
                raise ValueError(
                    f"models must have the same {name}: number {place} has {other.get(name)!r}, number 0 "
                    f"{first.get(name)!r}"
                )
    if len(models) > 1:
        for place, model in enumerate(models):
            if isinstance(model, Learner) and model.pending:
                raise ValueError(
                    f"{model.pending} instances of model {place} wait for their labels; learn or forget() them first"
                )


def shares_of(models: Sequence[Any], base: Any, how: str | Sequence[float]) -> np.ndarray:
    """mu_i: at least 0, with the sum 1."""
    if isinstance(how, str):
        one_of("how", how, HOW)
        trials, updates = (0, 0) if base is None else (base.trials, base.updates)
        learned = np.array([float(model.trials > trials) for model in models])
        counts = np.array([float(model.updates - updates) for model in models]) if how == "mistakes" else learned
        for shares in (counts, learned, np.ones(len(models))):
            if shares.sum() > 0.0:
                return shares / shares.sum()
    shares = np.array([finite("how", share) for share in how], float)
    if len(shares) != len(models) or (shares < 0.0).any() or not shares.sum() > 0.0:
        raise ValueError(
            f"how must be {', '.join(map(repr, HOW))}, or {len(models)} numbers >= 0 that are not all 0, got {how!r}"
        )
    return shares / shares.sum()


# -- engines ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placed:
    """An engine, and where its columns and classes are in the union."""

    engine: Engine
    voters: np.ndarray
    raters: np.ndarray
    dense: np.ndarray
    sparse: np.ndarray
    classes: np.ndarray

    def places(self, target: Engine) -> np.ndarray | None:
        """Where its coordinates are among those of the target; None where they are the same, in the same order."""
        own, layout = self.engine.layout, target.layout
        maps = (self.voters, self.raters, self.dense, self.sparse, self.classes)
        if own == layout and self.engine.k == target.k and all(map(_in_order, maps)):
            return None
        rows = np.concatenate([np.zeros(1 if own.constant else 0), 1 + self.dense, 1 + layout.dense + self.sparse])
        experts, rows = layout.voters + layout.raters, rows.astype(np.int64) - _first_row(layout)
        table = (experts + rows * target.k)[:, None] + self.classes
        return np.concatenate([self.voters, layout.voters + self.raters, table.ravel()]).astype(np.int64)


def _in_order(numbers: np.ndarray) -> bool:
    return bool((numbers == np.arange(numbers.size)).all())


def _first_row(layout: Layout) -> int:
    """The first row whose coordinates exist: that of the constant is kept even if there is none."""
    return 0 if layout.constant else 1


def _table(engine: Engine, stored: np.ndarray) -> np.ndarray:
    """A view of the rows of the linear machine that exist, with a column a class."""
    experts, stride = (int(n) for n in engine.state.shape[[EXPERTS, STRIDE]])
    padded = stored[..., experts:].reshape(*stored.shape[:-1], engine.capacity, stride)
    return padded[..., _first_row(engine.layout) : engine.layout.rows, : engine.k]


def _existing(engine: Engine, stored: np.ndarray) -> np.ndarray:
    """The coordinates that exist, of an array that has room for more in its last axis; copied."""
    experts, table = int(engine.state.shape[EXPERTS]), _table(engine, stored)
    found = np.empty((*stored.shape[:-1], experts + table.shape[-2] * engine.k), stored.dtype)
    found[..., :experts] = stored[..., :experts]
    found[..., experts:].reshape(table.shape)[...] = table
    return found


def _store(engine: Engine, stored: np.ndarray, existing: np.ndarray) -> None:
    """Write the coordinates that exist to where they are kept."""
    experts, table = int(engine.state.shape[EXPERTS]), _table(engine, stored)
    stored[..., :experts] = existing[..., :experts]
    table[...] = existing[..., experts:].reshape(table.shape)


def merge_engines(
    base: Placed | None,
    placed: Sequence[Placed],
    layout: Layout,
    classes: int,
    known: int,
    shares: np.ndarray,
    multiplicative: str,
) -> Engine:
    """One engine over the union from engines of the same learner."""
    first = placed[0].engine
    merged = Engine(first.learner, layout, classes, first.settings)
    merged.state.shape[KNOWN] = known
    spots = [one.places(merged) for one in placed]
    _count(base, placed, merged)
    for member, run in enumerate(merged.runs):
        rule, state = run.rule, merged.state
        blank = _part(rule, merged, member)
        parts = [_spread_out(rule, one.engine, member, there, blank) for one, there in zip(placed, spots, strict=True)]
        target = Part(*(array.copy() for array in blank))
        mix(rule, parts, shares, multiplicative, target)
        _write(rule, merged, member, target)
        if not np.isfinite(target.weights).all():
            raise OverflowError(f"the mixed weights of {rule} left the range of floats")
        if run.averaging:
            _add_up(run.averaging, merged, member, [*zip(placed, spots, strict=True)], base)
        state.means[member, averages.START] = rule.start * math.exp(-state.scalars[member, SHIFT])
        if merged.tracked:
            start_means(merged.members, state, member)
        if run.fade:
            state.means[member, [averages.IDLE, averages.AGE]] = state.counts[member, TRIALS] + 1
    return merged


def _part(rule: Rule, engine: Engine, member: int) -> Part:
    """A member's state at the coordinates that exist, copied."""
    state, slots = engine.state, len(rule.slots)
    memory = state.memory[member, :slots]
    if rule.matrix:
        memory = state.memory[member][np.concatenate([np.arange(slots), slots + _numbers(engine)])]
    return Part(
        _existing(engine, state.weights[member]),
        _existing(engine, memory),
        state.scalars[member, : OWN + len(rule.scalars)].copy(),
    )


def _numbers(engine: Engine) -> np.ndarray:
    """Where the coordinates that exist are kept."""
    return _existing(engine, np.arange(engine.state.weights.shape[1]))


def _spread_out(rule: Rule, engine: Engine, member: int, there: np.ndarray | None, blank: Part) -> Part:
    """A member's state over the union: what it has not met is as it was at first."""
    own, slots = _part(rule, engine, member), len(rule.slots)
    if there is None:
        return own
    weights, memory = blank.weights.copy(), blank.memory.copy()
    weights[:] = rule.start * math.exp(-own.scalars[SHIFT])
    weights[there] = own.weights
    memory[:slots, there] = own.memory[:slots]
    if rule.matrix:
        memory[np.ix_(slots + there, there)] = own.memory[slots:]
    return Part(weights, memory, own.scalars)


def _write(rule: Rule, engine: Engine, member: int, part: Part) -> None:
    state, slots = engine.state, len(rule.slots)
    _store(engine, state.weights[member], part.weights)
    _store(engine, state.memory[member, :slots], part.memory[:slots])
    if rule.matrix:
        places = _numbers(engine)
        state.memory[member][np.ix_(slots + places, places)] = part.memory[slots:]
    state.scalars[member, : len(part.scalars)] = part.scalars


class Sums:
    """What a member's average adds up: the hypotheses that met a trial.

    That is S without its last term, the present hypothesis, which has not met a trial yet (see `linmax.core.averages`).
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
        """Add it to a total over the union."""
        state = self.engine.state
        own = _existing(self.engine, state.weights[self.member])
        own *= self.multiple
        own -= _existing(self.engine, state.backlog[self.member])
        if self.there is not None:
            seen, own = own, np.full(total.size, self.unseen)
            own[self.there] = seen
        own *= factor
        total += own


def _add_up(
    kind: int,
    merged: Engine,
    member: int,
    spots: Sequence[tuple[Placed, np.ndarray | None]],
    base: Placed | None,
) -> None:
    """The average of all: the sums of all, those of the base once."""
    state = merged.state
    numbers, scalars = state.means[member], state.scalars[member]
    sums = [Sums(one.engine, member, there) for one, there in spots]
    anchor = max(one.log for one in sums)
    scale = float(scalars[SHIFT] + scalars[GAUGE])
    if kind == RAW and scale > anchor + averages.FAR:
        anchor = scale
    terms = [(one, math.exp(one.log - anchor)) for one in sums]
    ages = sum(one.ages for one in sums)
    if base is not None:
        before, many = Sums(base.engine, member, base.places(merged)), len(sums) - 1
        terms.append((before, -many * math.exp(before.log - anchor)))
        ages -= many * before.ages
    total, unseen = np.zeros_like(_existing(merged, state.backlog[member])), 0.0
    for one, factor in terms:
        one.add_to(total, factor)
        unseen += factor * one.unseen
    if merged.runs[member].fade and ages:
        trials = int(state.counts[member, TRIALS])
        stretch = trials * (trials + 1) / 2 / ages
        total, unseen = stretch * total, stretch * unseen
    _store(merged, state.backlog[member], -total)
    numbers[averages.UNSEEN], numbers[averages.ANCHOR] = -unseen, anchor


def _count(base: Placed | None, placed: Sequence[Placed], merged: Engine) -> None:
    """Counts of trials and updates, and of the mistakes and sizes by which nodes choose."""

    def together(count: np.ndarray, others: Sequence[np.ndarray], before: np.ndarray | None) -> None:
        count[...] = sum(others) - (len(others) - 1) * (0 if before is None else before)

    engines = [one.engine for one in placed]
    together(
        merged.state.counts,
        [engine.state.counts for engine in engines],
        None if base is None else base.engine.state.counts,
    )
    walks: list[list[Node]] = [engine.top.walk() for engine in engines]
    start = None if base is None else base.engine.top.walk()
    for place, node in enumerate(merged.top.walk()):
        if isinstance(node, (BestOf, Weighing)):
            for name, array in node.arrays.items():
                others = [walk[place].arrays[name] for walk in walks]
                together(array, others, None if start is None else start[place].arrays[name])


# -- names -----------------------------------------------------------------------------------------------------------


def _union(lists: Sequence[Sequence[Any]]) -> tuple[list[Any], list[np.ndarray]]:
    """All names in the order in which they are met, and the place of each list's names among them."""
    table: dict[Any, int] = {}
    maps = [np.array([table.setdefault(name, len(table)) for name in names], np.int64) for names in lists]
    return list(table), maps


def _union_of_classes(
    classes: Sequence[Sequence[Any]], known: Sequence[int]
) -> tuple[list[Any], int, list[np.ndarray]]:
    """The classes of all, known ones first, how many are known, and their places."""
    first = list(dict.fromkeys(name for names, count in zip(classes, known, strict=True) for name in names[:count]))
    names, maps = _union([first, *classes])
    return names, len(first), maps[1:]


# -- learners --------------------------------------------------------------------------------------------------------


def _merge_learners(
    base: Learner | None, learners: Sequence[Learner], shares: np.ndarray, multiplicative: str
) -> Learner:
    all_of = [*learners, *([] if base is None else [base])]
    engines = [learner.engine for learner in all_of]
    known = [int(engine.state.shape[KNOWN]) for engine in engines]
    classes, count, class_maps = _union_of_classes([learner.classes for learner in all_of], known)
    voters, voter_maps = _union([learner.voters for learner in all_of])
    raters, rater_maps = _union([learner.raters for learner in all_of])
    attributes, attribute_maps = _union([learner.attributes for learner in all_of])
    layout = Layout(len(voters), len(raters), 0, len(attributes), engines[0].layout.constant)
    none = np.zeros(0, np.int64)
    placed = [
        Placed(engine, voter_maps[i], rater_maps[i], none, attribute_maps[i], class_maps[i])
        for i, engine in enumerate(engines)
    ]
    size = len(learners)
    before = placed[size] if base is not None else None
    merged = merge_engines(before, placed[:size], layout, len(classes), count, shares, multiplicative)
    trials = int(merged.state.counts[0, TRIALS])
    mistakes = sum(learner.mistakes for learner in learners) - (size - 1) * (base.mistakes if base is not None else 0)
    description = learners[0].state()[0] | {
        "classes": [files.plain(name) for name in classes],
        "voters": [files.plain(name) for name in voters],
        "raters": [files.plain(name) for name in raters],
        "attributes": [files.plain(name) for name in attributes],
        "mistakes": mistakes,
        "stride": max(1, 2 ** math.ceil(math.log2(max(1, trials) / POINTS))),
        "max_pending": max(learner.max_pending for learner in learners),
        "labelled": list(dict.fromkeys(id for learner in learners for id in learner._labelled)),
    }
    # The curve of mistakes has no order any more; it begins afresh at the present count.
    return Learner.from_state(description, merged.arrays | {"curve": np.zeros((0, 2), np.int64)})


# -- models of streams -----------------------------------------------------------------------------------------------


def _merge_models(
    base: StreamModel | None, models: Sequence[StreamModel], shares: np.ndarray, multiplicative: str
) -> StreamModel:
    all_of = [*models, *([] if base is None else [base])]
    started = [place for place, model in enumerate(models) if model.engine is not None]
    if not started:
        return StreamModel.from_state(*models[0].state())
    first = models[started[0]]
    _refuse_other_columns(models, started)
    vocabulary, maps = _union_of_vocabularies(all_of)
    columns = 2**first.vocabulary.bits if first.vocabulary.bits else len(vocabulary)
    scaling = merge_scalings(
        None if base is None else base.scaling,
        [models[place].scaling for place in started],
        [maps[place] for place in [*started, *range(len(models), len(all_of))]],
        columns,
    )
    classes, known, class_maps = _union_of_classes(
        [model.classes for model in all_of], [len(model.classes) for model in all_of]
    )
    wide, extra = len(first.dense_names), int(scaling.prepends)
    assert first.engine is not None
    has_sparse = any(model.engine is not None and model.engine.layout.sparse for model in models)
    constant = first.engine.layout.constant
    layout = Layout(0, 0, wide + extra * bool(wide), columns + extra * (not wide) if has_sparse else 0, constant)
    placed = {}
    for place, model in enumerate(all_of):
        if model.engine is not None:
            placed[place] = _placed(model.engine, layout, maps[place], bool(extra and not wide), class_maps[place])
    before = placed.get(len(models)) if base is not None else None
    engine = merge_engines(
        before,
        [placed[place] for place in started],
        layout,
        len(classes),
        known,
        shares[started] / shares[started].sum(),
        multiplicative,
    )
    names = list(dict.fromkeys([*classes, *(name for model in models for name in model.labels.names)]))
    logs = [math.log(models[place].temperature) for place in started]
    description = first.state()[0] | {
        "scaling": scaling.description,
        "labels": names,
        "order": list(range(len(classes))),
        "columns": columns,
        "layout": [layout.dense, layout.sparse, layout.constant],
        "temperature": math.exp(sum(logs) / len(logs)),
    }
    arrays = {f"names.{name}": array for name, array in vocabulary.arrays().items()}
    arrays |= {f"scaling.{name}": array for name, array in scaling.arrays.items()}
    arrays |= {f"engine.{name}": array for name, array in engine.arrays.items()}
    return StreamModel.from_state(description, arrays, vocabulary)


def _refuse_other_columns(models: Sequence[StreamModel], started: Sequence[int]) -> None:
    first = models[started[0]]
    for place in started[1:]:
        other = models[place]
        if other.dense_names != first.dense_names:
            differ = sorted(set(other.dense_names) ^ set(first.dense_names)) or ["another order"]
            raise ValueError(
                f"models must have the same columns of numbers: model {place} and model {started[0]} differ in "
                f"{', '.join(differ[:5])}"
            )
        if other.scaling.kind != first.scaling.kind or other.scaling.prepends != first.scaling.prepends:
            raise ValueError(
                f"models must be scaled alike: model {place} has {other.scaling.kind!r}, model {started[0]} "
                f"{first.scaling.kind!r}; say which by scale="
            )


def _union_of_vocabularies(models: Sequence[StreamModel]) -> tuple[Vocabulary, list[np.ndarray]]:
    """The names of all, and the place of each model's columns."""
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
    return union, [_joined(union, model) for model in models]


def begins_with(names: Mapping[str, np.ndarray], first: Mapping[str, np.ndarray]) -> bool:
    """Whether the first names are those; both as `Vocabulary.arrays` gives them."""
    return all(np.array_equal(names[part][: first[part].size], first[part]) for part in ("offsets", "names"))


def _joined(union: Vocabulary, model: StreamModel) -> np.ndarray:
    """The numbers of the model's names in the union, where new ones are added."""
    arrays = model.vocabulary.arrays(model.columns)
    store, offsets = arrays["names"], np.ascontiguousarray(arrays["offsets"], np.int64)
    block = np.concatenate([store, np.zeros(PADDING, np.uint8)])
    numbers = np.zeros(offsets.size - 1, np.int64)
    union.reserve(numbers.size, store.size)
    number_names(union.names, block, offsets, numbers, 0, True)
    return numbers


def _placed(engine: Engine, layout: Layout, columns: np.ndarray, shifted: bool, classes: np.ndarray) -> Placed:
    none = np.zeros(0, np.int64)
    sparse = np.concatenate([[0], 1 + columns]).astype(np.int64) if shifted else columns
    return Placed(engine, none, none, np.arange(layout.dense), sparse[: engine.layout.sparse], classes)


def merge_scalings(
    base: Scaling | None, scalings: Sequence[Scaling], maps: Sequence[np.ndarray], columns: int
) -> Scaling:
    """Pool what scalings have learned, the base's once; ``maps`` place their columns, the base's last."""
    first = scalings[0]
    kept = len(scalings) - 1
    sources = [*scalings, *([] if base is None else [base])]
    signs = [1] * len(scalings) + ([-kept] if base is not None else [])
    dense = np.zeros_like(first.arrays["dense"])
    sparse = np.zeros((columns if any(len(scaling.arrays["sparse"]) for scaling in sources) else 0, 2))
    trials = sum(sign * scaling.trials for sign, scaling in zip(signs, sources, strict=True))
    for scaling, places in zip(scalings, maps, strict=False):
        own = scaling.arrays["sparse"]
        sparse[places[: len(own)], 1] = np.maximum(sparse[places[: len(own)], 1], own[:, 1])
    if first.kind == "max":
        dense[:, 0] = np.max([scaling.arrays["dense"][:, 0] for scaling in scalings], axis=0)
    else:
        sparse[:] = 0.0
        for sign, scaling, places in zip(signs, sources, maps, strict=True):
            own = scaling.arrays["sparse"]
            sparse[places[: len(own)]] += sign * own
        dense = _pooled_moments([scaling.arrays["dense"] for scaling in sources], signs, dense)
    arrays = {"trials": np.array([trials], np.int64), "dense": dense, "sparse": sparse}
    return Scaling.from_state(first.description, arrays)


def _pooled_moments(tables: Sequence[np.ndarray], signs: Sequence[int], blank: np.ndarray) -> np.ndarray:
    """Counts, means and sums of squared deviations, added with signs, about the last table's means.

    Chan, Golub and LeVeque (1983): about a common centre c the sums of x - c and (x - c)^2 simply add up.
    """
    full = [(sign, table) for sign, table in zip(signs, tables, strict=True) if table.shape == blank.shape]
    if not blank.size:
        return blank
    centre = full[-1][1][:, 1]
    count, linear, square = (np.zeros(len(blank)) for _ in range(3))
    for sign, table in full:
        away = table[:, 1] - centre
        count += sign * table[:, 0]
        linear += sign * table[:, 0] * away
        square += sign * (table[:, 2] + table[:, 0] * away * away)
    mean = np.divide(linear, count, out=np.zeros_like(linear), where=count > 0.0)
    return np.column_stack([count, centre + mean, np.maximum(square - count * mean * mean, 0.0)])
