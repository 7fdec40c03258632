"""A learner at work: names of classes and columns, growth, counts and their curve, probabilities, and all its state.

Everything that users hold is thin on top of a `Model`: `run`, `Learner`, streams, fusion, and the interfaces of
scikit-learn and River. It plays instances in arrays and classes by number (`play`, `judge`); or instances from
`linmax.experts` and labels as users write them (`run`, `predict`, `predict_proba`, `scores`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np

from linmax.core.contract import EXPERTS, KNOWN, RECYCLED, STRIDE, TRIALS, UPDATES, Instances
from linmax.data.arrays import Layout, widen
from linmax.data.experts import Experts
from linmax.data.labels import distinct_labels, named
from linmax.engine.engine import Engine, Outcome, Settings
from linmax.engine.notation import as_learner, read_back, written
from linmax.engine.record import FILLED, MISTAKES, Record, begun, keep_table, latest, new_record, note_all, widened
from linmax.engine.record import TRIALS as COUNTED
from linmax.models.calibration import Calibration
from linmax.models.trace import Trace, in_a_row
from linmax.models.weights import WeightArrays, Weights
from linmax.rules.shipping import in_pickles
from linmax.techniques.combining import BestOf, Combined, Weighing
from linmax.techniques.node import Node
from linmax.techniques.voting import Voted
from linmax.util import files

__all__ = ["Columns", "Member", "Model", "apart", "refuse_others"]


@dataclass
class Columns:
    """Names of the columns, as far as they have any; others go by their numbers."""

    voters: Collection[Any] = ()
    raters: Collection[Any] = ()
    attributes: Collection[Any] = ()

    def all(self, layout: Layout) -> tuple[Collection[Any], Collection[Any], Collection[Any]]:
        """One name for each voter, rater and attribute."""
        counts = (layout.voters, layout.raters, layout.dense + layout.sparse)
        blocks = (self.voters, self.raters, self.attributes)
        voters, raters, attributes = (
            block if len(block) == count else [*block, *range(len(block), count)]
            for block, count in zip(blocks, counts, strict=True)
        )
        return voters, raters, attributes


@dataclass(frozen=True, eq=False)
class Member:
    """One of the learners that a combination runs side by side, and the mistakes that it has made by itself."""

    name: str
    mistakes: int
    model: Model = field(repr=False)
    node: Node = field(repr=False)

    @property
    def weights(self) -> Weights:
        """A copy of the weights that it would predict with now."""
        return self.model.weights_of(self.node)


class Model:
    """A learner at work.

    Parameters
    ----------
    learner
        What the user writes: a rule, a composition of techniques, a pool, or text.
    layout
        How many voters, raters and attributes there are.
    classes
        The classes, in the order of their numbers.
    settings
        How ties are broken, whether they update, and whether classes are known only from their first label on.
    """

    def __init__(
        self,
        learner: Any,
        layout: Layout,
        classes: Sequence[Any] = (),
        settings: Settings | None = None,
        columns: Columns | None = None,
    ) -> None:
        self.learner = as_learner(learner)
        self.classes = list(classes)
        self.columns = columns or Columns()
        self.engine = Engine(self.learner, layout, len(self.classes), settings or Settings())
        self.record = new_record(len(self.classes))
        self.grows = False  # whether columns have joined: then one that is missing does not speak
        self._calibration = Calibration()

    def __repr__(self) -> str:
        mistakes = f"{self.mistakes} mistake{'s' if self.mistakes != 1 else ''}"
        return f"<{self.learner} over {len(self.classes)} classes: {mistakes} in {self.trials} trials>"

    # -- what it knows --------------------------------------------------------------------------------------------

    @property
    def layout(self) -> Layout:
        """Numbers of voters, raters and attributes."""
        return self.engine.layout

    @property
    def trials(self) -> int:
        """Trials learned from so far."""
        return int(self.engine.state.counts[0, TRIALS])

    @property
    def mistakes(self) -> int:
        """Mistakes so far, each made before the label was seen."""
        return int(self.record.counts[MISTAKES])

    @property
    def updates(self) -> int:
        """Updates made so far, by all members, recycled ones included; every mistake bound bounds a member's."""
        return int(self.engine.state.counts[:, UPDATES].sum())

    @property
    def recycled(self) -> int:
        """Of the updates, those on old instances."""
        return int(self.engine.state.counts[:, RECYCLED].sum())

    @property
    def known(self) -> list[Any]:
        """The classes that may be predicted: all, or in discovery those whose label has been seen."""
        return self.classes[: int(self.engine.state.shape[KNOWN])]

    @property
    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Trials, and the mistakes up to each: at most 1,024 points, evenly spread, and the present one."""
        counts = self.record.counts
        points = self.record.curve[: counts[FILLED]]
        if counts[COUNTED] and (not len(points) or points[-1, 0] != counts[COUNTED]):
            points = np.vstack([points, counts[[COUNTED, MISTAKES]]])
        return points[:, 0].copy(), points[:, 1].copy()

    @property
    def options(self) -> dict[str, Any]:
        """How it was made, in the words of `linmax.run`."""
        settings = self.engine.settings
        return {
            "learner": str(self.learner),
            "thresholds": bool(self.layout.constant),
            "tie": "largest" if settings.largest else "smallest",
            "update_on_tie": settings.update_on_tie,
        }

    @property
    def bounded(self) -> Any:
        """A rule that needs attributes in [-1, 1] and ratings that differ by at most 1, or None."""
        return next((run.rule for run in self.engine.runs if run.rule.bounded), None)

    @property
    def weights(self) -> Weights:
        """A copy of the weights that it predicts with now, by name, up to one positive factor."""
        return self.weights_of(self.engine.top)

    def weights_of(self, node: Node) -> Weights:
        """The weights of one part of the learner (see `Member`)."""
        stored, log_scale = node.shown(self.engine)
        layout, k = self.layout, len(self.classes)
        experts, stride = (int(n) for n in self.engine.state.shape[[EXPERTS, STRIDE]])
        rows = stored[experts:].reshape(-1, stride)[: layout.rows, :k] if stride else np.zeros((layout.rows, k))
        arrays = WeightArrays(
            stored[: layout.voters].copy(),
            stored[layout.voters : experts].copy(),
            rows[0].copy() if layout.constant else np.zeros(0),
            rows[1:].copy(),
            log_scale,
        )
        return Weights(arrays, self.classes, *self.columns.all(layout))

    @property
    def members(self) -> list[Member]:
        """What a combination, or a vote over one, runs side by side; none for any other learner.

        Examples
        --------
        >>> import linmax
        >>> data = linmax.majority_problem(trials=500, seed=1)
        >>> learner = linmax.combine(["perceptron", "AR-perceptron"])
        >>> trace = linmax.run(learner, linmax.experts(votes=data.votes), data.labels)
        >>> [member.name for member in sorted(trace.model.members, key=lambda member: member.mistakes)]
        ['AR-perceptron', 'perceptron']
        """
        described, node = self.learner, self.engine.top
        while isinstance(described, Voted):
            described, node = described.base, node.children[0]
        if not isinstance(described, Combined) or not isinstance(node, (BestOf, Weighing)):
            return []
        parts = zip(described.members, node.mistakes.tolist(), node.children, strict=True)
        return [Member(str(learner), mistakes, self, child) for learner, mistakes, child in parts]

    # -- growth ---------------------------------------------------------------------------------------------------

    def grow(self, layout: Layout, classes: Iterable[Any] = ()) -> None:
        """Make room for the columns of this layout and for further classes, which are not yet known."""
        names = list(dict.fromkeys([*self.classes, *classes]))
        if layout != self.layout or len(names) > len(self.classes):
            self.engine.grow(layout, len(names))
            self.record = widened(self.record, len(names))
            self.classes = names

    def meet(self, labels: Iterable[Any]) -> None:
        """Number the classes that are not yet known in the order of these labels; all of them are classes."""
        known = int(self.engine.state.shape[KNOWN])
        if known == len(self.classes):
            return
        place = {name: i for i, name in enumerate(self.classes)}
        order = list(dict.fromkeys([*range(known), *(place[name] for name in labels), *range(len(self.classes))]))
        if order != sorted(order):
            self.engine.renumber(order)
            self.classes = [self.classes[i] for i in order]

    # -- trials in arrays -----------------------------------------------------------------------------------------

    def play(
        self,
        instances: Instances,
        places: np.ndarray,
        margins: bool = False,
        first_pass: bool = True,
        served: np.ndarray | None = None,
    ) -> Outcome:
        """Predict each instance, then see its label, a place in `classes`, and update; count, and keep the scores.

        Those of instances that have been learned from before say nothing about ones to come: they are not kept.
        Mistakes are counted against what was ``served`` for the instances, if they were predicted at another time.
        """
        known, room = int(self.engine.state.shape[KNOWN]), len(self.record.labels)
        outcome = self.engine.run(instances, places, margins, scored=room if first_pass else 0)
        note_all(self.record, outcome.predictions if served is None else served, places)
        if outcome.scores is not None:
            late = len(places) - len(outcome.scores)
            known = max(known, int(places[:late].max(initial=-1)) + 1)
            keep_table(self.record, outcome.scores, places[late:], known)
        return outcome

    def judge(self, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores without learning; a class not yet known has the score -inf."""
        predictions, table = self.engine.judge(instances, size)
        table[:, int(self.engine.state.shape[KNOWN]) :] = -np.inf
        return predictions, table

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Scores from `judge` as probabilities, as sharp as they lately proved right (`linmax.models.calibration`)."""
        return self._calibration.probabilities(self.record, scores / self.engine.top.unit(self.engine))

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """Undo everything if the weights leave the range of floats."""
        header, arrays = self._state(self.learner)
        arrays = {name: array.copy() for name, array in arrays.items()}
        try:
            yield
        except OverflowError:
            self.__dict__.update(vars(self.from_state(header, arrays)))
            raise

    # -- trials as users have them --------------------------------------------------------------------------------

    def run(
        self,
        instances: Experts,
        labels: Sequence[Any] | np.ndarray,
        *,
        margins: bool = False,
        grow: bool = False,
        first_pass: bool = True,
    ) -> Trace:
        """Go on with further trials; returns their `Trace`.

        With ``grow`` the instances may have further voters, raters and attributes, at the right of their block, and
        labels and votes may name further classes. A new sub-expert starts with the weight of one that has always been
        there and never spoke; a new class is predicted only after its first label (Mesterharm 2001, section 6).

        Examples
        --------
        >>> import linmax
        >>> model = linmax.run("perceptron", linmax.experts(votes=[["a"], ["b"]]), ["a", "b"]).model
        >>> more = linmax.experts(votes=[["a", "c"], ["c", "c"]])
        >>> model.run(more, ["c", "c"], grow=True).predictions.tolist()
        ['a', 'c']
        >>> model.classes, model.layout.voters
        (['a', 'b', 'c'], 2)
        """
        refuse_others(instances)
        found = distinct_labels(labels, len(instances))
        options: dict[str, Any] = {"margins": margins, "grow": grow, "first_pass": first_pass}
        begins = self._debuts(instances, found) if grow else [0]
        if len(begins) == 1:
            return self.run_numbered(self._named_here(instances) if grow else instances, found, **options)
        parts = []
        for begin, end in pairwise([*begins, len(instances)]):
            part = slice(begin, end)
            seen = np.unique(found[1][part])
            told = [found[0][i] for i in seen], np.searchsorted(seen, found[1][part])
            parts.append(self.run_numbered(self._named_here(instances[part]), told, **options))
        return in_a_row(parts)

    def _debuts(self, instances: Experts, found: tuple[list[Any], np.ndarray]) -> list[int]:
        """The first trial, and those at which a label or a vote names a class for the first time.

        There the model grows, so that it does not matter how trials are cut into calls.
        """
        strange, size = set(found[0]).union(instances.names) - set(self.classes), len(instances)
        if not strange or instances.fixed or instances.layout.raters:
            return [0]
        begins = {0}
        for names, codes in ((found[0], found[1][:, None]), (instances.names, instances.votes)):
            first = np.full(len(names) + 1, size)
            first[codes[::-1].ravel()] = np.repeat(np.arange(size)[::-1], codes.shape[1])
            begins |= {int(t) for name, t in zip(names, first, strict=False) if name in strange and t < size}
        return sorted(begins)

    def _named_here(self, instances: Experts) -> Experts:
        """The instances without names of classes, new to the model, for which none of them votes."""
        if instances.fixed or instances.layout.raters or set(instances.names) <= set(self.classes):
            return instances
        used = np.unique(instances.votes[instances.votes >= 0])
        place = np.full(len(instances.names) + 1, -1, np.int32)
        place[used] = np.arange(len(used))
        return replace(instances, votes=place[instances.votes], names=tuple(instances.names[i] for i in used))

    def run_numbered(
        self,
        instances: Experts,
        labels: tuple[list[Any], np.ndarray],
        *,
        margins: bool = False,
        grow: bool = False,
        first_pass: bool = True,
    ) -> Trace:
        """`run`, given the distinct labels and the place of each label among them."""
        distinct, inverse = labels
        classes, layout = self.classes, self.layout
        known = int(self.engine.state.shape[KNOWN])
        met: list[Any] = []  # in the order of their first trials, where it matters
        if grow or known < len(classes):
            met = [distinct[i] for i in dict.fromkeys(inverse.tolist())]
        if grow:
            classes, layout = list(dict.fromkeys([*classes, *met, *instances.names])), self._wider(instances.layout)
        if known < len(classes):  # those not yet known are numbered in the order of these labels
            among = set(classes)
            classes = list(dict.fromkeys([*classes[:known], *(name for name in met if name in among), *classes]))
        places = _numbered(distinct, inverse, classes)
        played = self.fitted(instances, layout, classes, grow)
        self.grows |= grow
        self.grow(layout, classes)
        self.meet(met)
        self.columns = Columns(
            max(self.columns.voters, instances.voter_names, key=len),
            self.columns.raters,
            max(self.columns.attributes, instances.attribute_names, key=len),
        )
        outcome = self.play(played, places, margins, first_pass)
        predictions, changed = outcome.predictions, outcome.changed.view(np.bool_)
        return Trace(self, named(predictions, self.classes), predictions != places, changed, outcome.margins)

    def _wider(self, other: Layout) -> Layout:
        """The layout that holds this one's columns and the other's."""
        mine = self.layout
        both = Layout(
            max(mine.voters, other.voters),
            max(mine.raters, other.raters),
            max(mine.dense, other.dense),
            max(mine.sparse, other.sparse),
            mine.constant,
            max(mine.names, other.names, key=len),
        )
        return both if both.holds(mine) and both.holds(other) else mine

    def predict(self, instances: Experts) -> np.ndarray:
        """The class of each instance under the current weights; nothing is learned."""
        return named(self.engine.judge(self.fitted(instances), len(instances))[0], self.classes)

    def scores(self, instances: Experts) -> np.ndarray:
        """The votes zeta(j) of each instance for each class, up to one positive factor; nothing is learned."""
        return self.engine.judge(self.fitted(instances), len(instances))[1]

    def predict_proba(self, instances: Experts) -> np.ndarray:
        """The probability of each of `classes` for each instance; nothing is learned."""
        return self.probabilities(self.judge(self.fitted(instances), len(instances))[1])

    def margin(self, instances: Experts, labels: Sequence[Any] | np.ndarray) -> float:
        """min over trials of (zeta(label) - zeta(rival)) / (sqrt(2) ||w||_2): the margin that these weights give.

        For attributes alone this is the textbook margin of a multi-class linear classifier: with R = instances.radius
        and gamma the largest margin of any weights, cyclic passes of the Perceptron end after R^2/gamma^2 violations.
        """
        numbers = _numbered(*distinct_labels(labels, len(instances)), self.classes)
        if not len(numbers) or len(self.classes) < 2:
            raise ValueError("margin needs at least one instance and two classes")
        weights, _ = self.engine.top.hypothesis(self.engine)
        _, table = self.engine.rate(self.fitted(instances), len(instances), weights)
        rows = np.arange(len(numbers))
        right = table[rows, numbers].copy()
        table[rows, numbers] = -np.inf
        norm = float(np.linalg.norm(weights))
        return float((right - table.max(axis=1)).min() / (math.sqrt(2.0) * norm)) if norm else 0.0

    def check_range(self, instances: Experts) -> None:
        """Refuse instances beyond the range of floats, or that which a rule needs."""
        instances.refuse_huge()
        if self.bounded is not None and instances.range > 1.0 + 1e-12:
            raise ValueError(
                f"{self.bounded} needs ratings that differ by at most 1 and attributes in [-1, 1], but the instances "
                f"reach {instances.range:g}; pass scale='max' to experts(...) or divide them yourself"
            )

    def fitted(
        self,
        instances: Experts,
        layout: Layout | None = None,
        classes: Sequence[Any] | None = None,
        grow: bool = False,
    ) -> Instances:
        """The instances in these columns and classes, or else the present ones, after the checks that rules need."""
        refuse_others(instances)
        layout, classes = layout or self.layout, self.classes if classes is None else classes
        if instances.layout != layout and not ((grow or self.grows) and layout.holds(instances.layout)):
            raise ValueError(
                f"instances have {instances.layout}, but the learner was made for {self.layout}; give experts(...) the "
                "same blocks and options, and the vocabulary= of named attributes"
            )
        self.check_range(instances)
        return widen(instances.compiled(classes), layout, len(classes))

    # -- state ----------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All that it is: plain data that JSON can hold, and arrays. Copies of neither."""
        return self._state(written(self.learner))

    def _state(self, learner: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header = {
            "learner": learner,
            "classes": [files.plain(name) for name in self.classes],
            "layout": list(astuple(self.layout)),
            "settings": list(astuple(self.engine.settings)),
            "columns": [[files.plain(name) for name in block] for block in astuple(self.columns)],
            "grows": self.grows,
        }
        arrays = {f"engine.{name}": array for name, array in self.engine.arrays.items()}
        return header, arrays | {f"record.{name}": array for name, array in self.record._asdict().items()}

    @classmethod
    def from_state(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], copied: bool = True) -> Self:
        """The model whose `state` this was; it goes on as if it had never stopped.

        Of arrays that are not copied comes a model that can be looked at and merged, but must not learn.
        """
        parts = apart(arrays)
        voters, raters, dense, sparse, constant, names = header["layout"]
        layout = Layout(voters, raters, dense, sparse, constant, tuple(names))
        settings = Settings(*header["settings"])
        model = cls.__new__(cls)
        model.learner = read_back(header["learner"])
        model.classes = [files.named(name) for name in header["classes"]]
        model.columns = Columns(*([files.named(name) for name in block] for block in header["columns"]))
        made = Engine.restored if copied else Engine.shown
        model.engine = made(model.learner, layout, len(model.classes), settings, parts["engine"])
        kept = {name: array.copy() if copied else array for name, array in parts["record"].items()}
        model.record, model.grows, model._calibration = Record(**kept), bool(header["grows"]), Calibration()
        return model

    @classmethod
    def of(
        cls, engine: Engine, classes: Sequence[Any], columns: Columns, mistakes: int, parts: Sequence[Model]
    ) -> Self:
        """The model of a merged engine. Its recent scores are those of the ``parts``, the latest of each."""
        model = cls.__new__(cls)
        model.learner, model.engine, model.classes, model.columns = engine.learner, engine, list(classes), columns
        model.record = begun(len(model.classes), int(engine.state.counts[0, TRIALS]), mistakes)
        place = {name: number for number, name in enumerate(model.classes)}
        for part in parts:
            scores, labels = (kept[-len(model.record.labels) // len(parts) :] for kept in latest(part.record))
            there = np.array([place[name] for name in part.classes], np.int32)
            table = np.full((len(labels), len(place)), -np.inf)
            table[:, there] = scores
            keep_table(model.record, table, there[labels], len(place))
        model.grows, model._calibration = True, Calibration()
        return model

    def __reduce__(self) -> Any:
        # The engine knows compiled functions by their address in this process.
        header, arrays = self.packed()
        return type(self).from_state, (header, {name: array.copy() for name, array in arrays.items()})

    def packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Its state as pickles hold it: with a user's own rules in it."""
        return self._state(in_pickles(self.learner, [run.rule for run in self.engine.runs]))


def apart(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Arrays named "part.name", by part."""
    parts: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        part, _, rest = name.partition(".")
        parts.setdefault(part, {})[rest] = array
    return parts


def _numbered(distinct: list[Any], inverse: np.ndarray, classes: Sequence[Any]) -> np.ndarray:
    """Labels as class indices."""
    place = {name: i for i, name in enumerate(classes)}
    missing = [name for name in distinct if name not in place]
    if missing:
        t = int(np.flatnonzero(inverse == distinct.index(missing[0]))[0])
        raise ValueError(
            f"labels: {missing[0]!r} at trial {t} is not among the classes {_short(classes)}; "
            "pass all classes to experts(classes=...)"
        )
    numbers = np.array([place[name] for name in distinct], np.int32)
    if (numbers == np.arange(len(numbers))).all():  # as a rule
        return inverse.astype(np.int32, copy=False)
    return numbers[inverse]


def refuse_others(instances: Any) -> None:
    """Say how to make instances of what is not."""
    if not isinstance(instances, Experts):
        raise TypeError(
            f"instances must come from experts(...), got {type(instances).__name__}; try experts(attributes=...)"
        )


def _short(items: Sequence[Any]) -> str:
    return repr(list(items)) if len(items) <= 10 else f"[{', '.join(map(repr, items[:10]))}, ... {len(items)} in all]"
