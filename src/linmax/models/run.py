"""The only loop over instances: predict, see the label, let the rule update.

`run` lowers a description to arrays once, plays the trials in compiled code and returns a `Trace`; `Trace.learner`
is the `Machine` afterwards, which goes on learning, predicts, and shows its weights.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numba import int32, int64, types, uint8

from linmax.core.contract import EXPERTS, KNOWN, RECYCLED, STRIDE, TRIALS, UPDATES, Instances
from linmax.data.instances import Experts, Layout, missing, widen
from linmax.engine.composition import as_learner
from linmax.engine.engine import Engine, Settings
from linmax.engine.nodes import BestOf, Node, Weighing
from linmax.jit.compiling import kernel
from linmax.techniques.combining import Combined
from linmax.techniques.voting import Voted
from linmax.util.checks import boolean, whole

__all__ = ["Machine", "Member", "Trace", "Weights", "as_array", "label_array", "run", "unique_labels"]

COUNTED = 65_536  # labels that are whole numbers in a range up to this are counted


# -- the machine --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Weights:
    """The weights by what they belong to; the true ones are these times exp(log_scale)."""

    voters: np.ndarray
    raters: np.ndarray
    thresholds: np.ndarray
    attributes: np.ndarray
    log_scale: float

    @property
    def flat(self) -> np.ndarray:
        """All of them in the order of the coordinates: voters, raters, thresholds, attributes by class."""
        return np.concatenate([self.voters, self.raters, self.thresholds, self.attributes.ravel()])


@dataclass(frozen=True, eq=False)
class Member:
    """One of the learners that a combination runs side by side, and the mistakes that it has made by itself."""

    name: str
    mistakes: int
    machine: Machine
    node: Node

    @property
    def weights(self) -> Weights:
        """A copy of the weights that it would predict with now."""
        return self.machine.weights_of(self.node)


class Machine:
    """A learner with its state: what `run` leaves behind. Make one through `run`."""

    def __init__(
        self,
        learner: Any,
        instances: Experts,
        classes: Sequence[Any],
        *,
        tie: str,
        update_on_tie: bool,
        discover: bool,
    ) -> None:
        if tie not in ("smallest", "largest"):
            raise ValueError(f"tie must be 'smallest' or 'largest', got {tie!r}")
        self.learner = learner
        self.classes = list(classes)
        self.layout = instances.layout
        settings = Settings(tie == "largest", update_on_tie, discover)
        self.engine = Engine(learner, self.layout, len(self.classes), settings)
        self._grows = False

    @classmethod
    def restored(
        cls,
        learner: Any,
        layout: Layout,
        classes: Sequence[Any],
        settings: Settings,
        arrays: Mapping[str, np.ndarray],
    ) -> Machine:
        """A machine that goes on where the ``engine.arrays`` of another one were taken."""
        machine = cls.__new__(cls)
        machine.learner, machine.layout, machine.classes = learner, layout, list(classes)
        machine.engine = Engine.restored(learner, layout, len(machine.classes), settings, arrays)
        machine._grows = True
        return machine

    def __repr__(self) -> str:
        return f"<{self.learner} over {len(self.classes)} classes after {self.trials} trials>"

    @property
    def trials(self) -> int:
        """Trials played so far."""
        return int(self.engine.state.counts[0, TRIALS])

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
    def weights(self) -> Weights:
        """A copy of the weights that it predicts with now (see `Weights`)."""
        return self.weights_of(self.engine.top)

    @property
    def members(self) -> list[Member]:
        """What a combination, or a vote over one, runs side by side; none for any other learner.

        Examples
        --------
        >>> import linmax
        >>> data = linmax.majority_problem(trials=500, seed=1)
        >>> learner = linmax.combine(["perceptron", "AR-perceptron"])
        >>> trace = linmax.run(learner, linmax.experts(votes=data.votes), data.labels)
        >>> [member.name for member in sorted(trace.learner.members, key=lambda member: member.mistakes)]
        ['AR-perceptron', 'perceptron']
        """
        described, node = self.learner, self.engine.top
        while isinstance(described, Voted):
            described, node = described.base, node.children[0]
        if not isinstance(described, Combined) or not isinstance(node, (BestOf, Weighing)):
            return []
        parts = zip(described.members, node.mistakes.tolist(), node.children, strict=True)
        return [Member(str(learner), mistakes, self, child) for learner, mistakes, child in parts]

    def weights_of(self, node: Node) -> Weights:
        """The weights of one part of the learner (see `Member`)."""
        stored, log_scale = node.hypothesis(self.engine)
        shape, k = self.engine.state.shape, len(self.classes)
        experts, stride = int(shape[EXPERTS]), int(shape[STRIDE])
        rows = stored[experts:].reshape(-1, stride)[: self.layout.rows, :k] if stride else np.zeros((0, k))
        return Weights(
            stored[: self.layout.voters].copy(),
            stored[self.layout.voters : experts].copy(),
            rows[0].copy() if self.layout.constant else np.zeros(0),
            rows[1:].copy(),
            log_scale,
        )

    def margin(self, instances: Experts, labels: Sequence[Any] | np.ndarray) -> float:
        """min over trials of (zeta(label) - zeta(rival)) / (sqrt(2) ||w||_2): the margin that these weights give.

        For attributes alone this is the textbook margin of a multi-class linear classifier: with R = instances.radius
        and gamma the largest margin of any weights, cyclic passes of the Perceptron end after R^2/gamma^2 violations.
        """
        numbers = _numbered(*distinct_labels(labels, len(instances)), self.classes)
        if not len(numbers) or len(self.classes) < 2:
            raise ValueError("margin needs at least one instance and two classes")
        weights, _ = self.engine.top.hypothesis(self.engine)
        _, table = self.engine.rate(self._fit(instances, self.layout, self.classes), len(instances), weights)
        rows = np.arange(len(numbers))
        right = table[rows, numbers].copy()
        table[rows, numbers] = -np.inf
        norm = float(np.linalg.norm(weights))
        return float((right - table.max(axis=1)).min() / (math.sqrt(2.0) * norm)) if norm else 0.0

    def run(
        self, instances: Experts, labels: Sequence[Any] | np.ndarray, *, margins: bool = False, grow: bool = False
    ) -> Trace:
        """Go on with further trials; returns their Trace.

        With ``grow`` the instances may have further voters, raters and attributes, at the right of their block, and
        labels and votes may name further classes. A new sub-expert starts with the weight of one that has always been
        there and never spoke; a new class is predicted only after its first label (Mesterharm 2001, section 6).

        Examples
        --------
        >>> import linmax
        >>> machine = linmax.run("perceptron", linmax.experts(votes=[["a"], ["b"]]), ["a", "b"]).learner
        >>> more = linmax.experts(votes=[["a", "c"], ["c", "c"]])
        >>> machine.run(more, ["c", "c"], grow=True).predictions.tolist()
        ['a', 'c']
        >>> machine.classes, machine.layout.voters
        (['a', 'b', 'c'], 2)
        """
        _refuse_others(instances)
        return self._go_on(instances, labels, distinct_labels(labels, len(instances)), margins, grow)

    def _go_on(
        self, instances: Experts, labels: Any, found: tuple[list[Any], np.ndarray], margins: bool, grow: bool = False
    ) -> Trace:
        """`run`, given the distinct labels and the place of each label among them."""
        distinct, inverse = found
        classes, layout = list(self.classes), self.layout
        known = int(self.engine.state.shape[KNOWN])
        met: list[Any] = []  # in the order of their first trials, where it matters
        if grow or known < len(classes):
            met = [distinct[i] for i in dict.fromkeys(inverse.tolist())]
        if grow:
            classes = list(dict.fromkeys([*classes, *met, *instances.names]))
            layout = self._wider(instances.layout)
        grown = classes
        if known < len(classes):  # those not yet known are numbered in the order of these labels
            among = set(classes)
            classes = list(dict.fromkeys([*classes[:known], *(name for name in met if name in among), *classes]))
        numbers = _numbered(distinct, inverse, classes)
        played = self._fit(instances, layout, classes, grow)
        self._grows |= grow
        if grow and (layout != self.layout or len(classes) > len(self.classes)):
            self.engine.grow(layout, len(classes))
            self.layout = layout
        if classes != grown:
            self.engine.renumber([grown.index(name) for name in classes])
        self.classes = classes
        first = self.trials == 0
        trace = self._play(played, numbers, margins)
        return replace(trace, seen=(instances, labels)) if first else trace

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
        return self._names(self.engine.judge(self._fit(instances, self.layout, self.classes), len(instances))[0])

    def scores(self, instances: Experts) -> np.ndarray:
        """The votes zeta(j) of each instance for each class, up to one positive factor; nothing is learned."""
        return self.engine.judge(self._fit(instances, self.layout, self.classes), len(instances))[1]

    def check_range(self, instances: Experts) -> None:
        """Refuse instances beyond the range that a rule needs."""
        bounded = next((run.rule for run in self.engine.runs if run.rule.bounded), None)
        if bounded is not None and instances.range > 1.0 + 1e-12:
            raise ValueError(
                f"{bounded} needs ratings that differ by at most 1 and attributes in [-1, 1], but the instances reach "
                f"{instances.range:g}; pass scale='max' to experts(...) or divide them yourself"
            )

    def _fit(self, instances: Experts, layout: Layout, classes: Sequence[Any], grow: bool = False) -> Instances:
        """The instances in these columns and classes, after the checks that the rules need."""
        _refuse_others(instances)
        # Where columns have joined, who is missing does not speak; else it is a mistake.
        if instances.layout != layout and not ((grow or self._grows) and layout.holds(instances.layout)):
            raise ValueError(
                f"instances have {instances.layout}, but the learner was made for {self.layout}; give experts(...) the "
                "same blocks and options, and the vocabulary= of named attributes"
            )
        self.check_range(instances)
        return widen(instances.compiled(classes), layout, len(classes))

    def _names(self, numbers: np.ndarray) -> np.ndarray:
        names = as_array(self.classes)
        if names.dtype == np.int64 and (names == names[0] + np.arange(len(names))).all():
            found = np.empty(len(numbers), np.int64)
            if name_numbers(numbers, int(names[0]), found):
                return found
        if (numbers < 0).any():  # before the first class is known
            return np.array([self.classes[i] if i >= 0 else None for i in numbers], dtype=object)
        return names[numbers]

    def _play(self, played: Instances, numbers: np.ndarray, margins: bool) -> Trace:
        outcome = self.engine.run(played, numbers, margins)
        wrong = outcome.predictions != numbers
        return Trace(self, self._names(outcome.predictions), wrong, outcome.changed.view(np.bool_), outcome.margins)


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


def _refuse_others(instances: Any) -> None:
    if not isinstance(instances, Experts):
        raise TypeError(
            f"instances must come from experts(...), got {type(instances).__name__}; try experts(attributes=...)"
        )


def _short(items: Sequence[Any]) -> str:
    return repr(list(items)) if len(items) <= 10 else f"[{', '.join(map(repr, items[:10]))}, ... {len(items)} in all]"


def label_array(labels: Any) -> np.ndarray:
    """Labels as an array, one of objects unless they came in one, so that each keeps its type."""
    if isinstance(labels, np.ndarray):
        return labels
    if not isinstance(labels, (list, tuple)):
        return np.asarray(labels, dtype=object)
    array = np.empty(len(labels), dtype=object)
    for t, name in enumerate(labels):
        array[t] = name  # one by one: numpy would take a tuple apart
    return array


def as_array(names: Sequence[Any]) -> np.ndarray:
    """Labels as an array of their own kind, or of objects if they are of several."""
    array = np.array(names) if not any(isinstance(name, tuple) for name in names) else np.zeros((0, 0))
    return array if array.ndim == 1 and array.tolist() == list(names) else label_array(list(names))


def distinct_labels(labels: Sequence[Any] | np.ndarray, size: int) -> tuple[list[Any], np.ndarray]:
    """`unique_labels` of one label for each of ``size`` trials."""
    names = label_array(labels)
    if names.ndim != 1 or len(names) != size:
        raise ValueError(f"labels must be one a trial: got shape {names.shape} for {size} instances")
    return unique_labels(names)


@kernel(types.void(int64[::1], int64, int32[::1], uint8[::1]))
def place_labels(labels: np.ndarray, lowest: int, places: np.ndarray, there: np.ndarray) -> None:
    """How far each label is above the lowest, and which such places are taken."""
    for t in range(labels.size):
        place = np.uint64(labels[t] - lowest)
        places[t] = place
        there[place] = 1


@kernel(types.boolean(int32[::1], int64, int64[::1]))
def name_numbers(numbers: np.ndarray, first: int, names: np.ndarray) -> bool:
    """Class indices as whole numbers from ``first`` on; returns whether all of them were known."""
    known = True
    for t in range(numbers.size):
        names[t] = first + numbers[t]
        known &= numbers[t] >= 0
    return known


def unique_labels(labels: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Distinct labels (sorted when they can be) and the place of each label among them; missing ones are refused."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        t = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise ValueError(f"labels: {labels[t]!r} at trial {t} is not a class; drop the trial or fill it in")
    if labels.dtype.kind in "iu" and labels.size:
        lowest, highest = int(labels.min()), int(labels.max())
        if highest - lowest < COUNTED and highest < 2**63:  # counting: sorting would take as long as learning
            places, there = np.zeros(labels.size, np.int32), np.zeros(highest - lowest + 1, np.uint8)
            place_labels(np.require(labels, np.int64, ("C", "W")), lowest, places, there)
            taken = np.flatnonzero(there)
            if taken.size < there.size:
                return [lowest + place for place in taken.tolist()], (np.cumsum(there, dtype=np.int32) - 1)[places]
            return list(range(lowest, highest + 1)), places
    if labels.dtype != object:
        distinct, inverse = np.unique(labels, return_inverse=True)
        return distinct.tolist(), inverse
    for t, name in enumerate(labels):
        if not isinstance(name, Hashable):
            raise TypeError(f"labels: {name!r} at trial {t} is not hashable; use text, a number or a tuple")
        if missing(name):
            raise ValueError(f"labels: {name!r} at trial {t} is not a class; drop the trial or fill it in")
    try:
        names = sorted(set(labels.tolist()))
    except TypeError:  # labels of several kinds have no order
        names = list(dict.fromkeys(labels.tolist()))
    place = {name: i for i, name in enumerate(names)}
    return names, np.array([place[name] for name in labels], np.int64)


# -- run ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Trace:
    """What happened, trial by trial.

    Attributes
    ----------
    learner
        The `Machine` afterwards.
    predictions
        The class predicted at each trial, before its label was seen (None before any class was known).
    wrong, changed
        Whether each trial was a mistake; whether it changed the weights. The second counts ties as well, and is what
        mistake bounds bound.
    margins
        zeta(label) - zeta(rival) at each trial, when asked for.
    epochs, consistent
        Passes played, and whether the last one made no update.
    seen
        Instances and labels, when these were the learner's first trials and played once: what `bound` needs.
    """

    learner: Any
    predictions: np.ndarray
    wrong: np.ndarray
    changed: np.ndarray
    margins: np.ndarray | None = None
    epochs: int = 1
    consistent: bool = False
    seen: tuple[Any, Any] | None = None

    @property
    def mistakes(self) -> np.ndarray:
        """Mistakes up to and including each trial."""
        return np.cumsum(self.wrong)

    @property
    def updates(self) -> np.ndarray:
        """Updates up to and including each trial."""
        return np.cumsum(self.changed)

    def __len__(self) -> int:
        return len(self.predictions)

    def __repr__(self) -> str:
        share = f" ({self.wrong.mean():.1%})" if len(self) else ""
        counts = f"{len(self)} trials, {self.wrong.sum()} mistakes{share}, {self.changed.sum()} updates"
        return f"<{self.learner.learner}: {counts}>"

    def bound(self, u: Any, margin: float | None = None) -> np.ndarray:
        """The mistake bound after each trial for the comparator u (see `linmax.theory.certificates.bound_so_far`)."""
        if self.seen is None:
            raise ValueError("bound() needs the learner's first trials, played once; this trace goes on from others")
        from linmax.theory.certificates import bound_so_far

        return bound_so_far(self.learner.learner, *self.seen, u, margin)

    def plot(self, path: str | Path | None = None, bound: Any = None) -> Any:
        """Draw the mistake curve, and a bound beside it if given; returns the figure, saved when given a path.

        Needs matplotlib (the extra ``plot``).
        """
        from linmax.util.plots import plot_mistakes

        curves = {str(self.learner.learner): self.mistakes}
        return plot_mistakes(curves if bound is None else curves | {"bound": np.asarray(bound)}, path)


def run(
    learner: Any,
    instances: Experts,
    labels: Sequence[Any] | np.ndarray,
    *,
    max_epochs: int = 1,
    margins: bool = False,
    discover: bool = False,
    tie: str = "smallest",
    update_on_tie: bool = True,
) -> Trace:
    """Play the trials: predict each instance, then see its label and update.

    Parameters
    ----------
    learner
        A rule such as ``rules.winnow(1.1)``, one of your own, or text such as "winnow(1.1)".
    instances
        From `experts`.
    labels
        The right class of each instance.
    max_epochs
        More than 1 plays the instances cyclically until a pass makes no update, at most this often: the multi-class
        Perceptron of textbooks when the rule is ``perceptron()`` and ``update_on_tie=False``. The trace then holds
        the trials of every pass.
    margins
        Keep zeta(label) - zeta(rival) of every trial.
    discover
        Classes are known only from their first label on: before, they are never predicted, and the trial that
        discovers one updates with the new class rated 0 (Mesterharm 2001, section 6.2).
    tie
        Which of the tied classes is predicted: the "smallest" (first) or the "largest" (last).
    update_on_tie
        Whether a right prediction that only ties is an update, as the bounds allow and the transformation asks.

    Examples
    --------
    >>> import linmax
    >>> trace = linmax.run("perceptron", linmax.experts(attributes=[[0.0], [1.0], [0.0]]), ["low", "high", "low"])
    >>> trace.predictions.tolist(), trace.mistakes.tolist()
    (['high', 'low', 'high'], [1, 2, 3])
    """
    described = as_learner(learner)
    _refuse_others(instances)
    whole("max_epochs", max_epochs, 1)
    margins, discover = boolean("margins", margins), boolean("discover", discover)
    update_on_tie = boolean("update_on_tie", update_on_tie)
    names = label_array(labels)
    found = distinct_labels(names, len(instances))
    machine = Machine(
        described, instances, _classes(instances, found[0]), tie=tie, update_on_tie=update_on_tie, discover=discover
    )
    trace = machine._go_on(instances, names, found, margins)
    traces = [trace]
    while len(traces) < max_epochs and traces[-1].changed.any():
        traces.append(machine._go_on(instances, names, found, margins))
    if len(traces) > 1:
        trace = Trace(
            machine,
            np.concatenate([t.predictions for t in traces]),
            np.concatenate([t.wrong for t in traces]),
            np.concatenate([t.changed for t in traces]),
            np.concatenate([t.margins for t in traces]) if margins else None,
        )
    return replace(trace, epochs=len(traces), consistent=not traces[-1].changed.any())


def _classes(instances: Experts, labels: list[Any]) -> list[Any]:
    """All classes: those given, or else those met in votes and labels, sorted when they can be."""
    if instances.fixed:
        return list(instances.names)
    met = {*instances.names, *labels}
    if not met:
        raise ValueError("there are no trials and no classes; pass classes= to experts(...)")
    try:
        return sorted(met)
    except TypeError:
        return list(dict.fromkeys([*labels, *instances.names]))
