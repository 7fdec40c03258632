"""Model: the names, engine state and record behind every interface.

`run`, `Learner`, `VoteFusion`, `StreamModel` and the estimators of scikit-learn and River hold a `Model`. Each of them
encodes its input as arrays and labels as numbers; `Model.play` predicts and learns the trials. A label is a class
number, -1 where there is none yet, or -2 - c where all that is known is that it is not class c.

Pools learn from "not class c" itself (`Node.takes_denied`). For other learners another class is drawn in its place,
with the probabilities they give. If P(j) are these probabilities, the likelihood of the event is 1 - P(c), and its
gradient is the mean of the gradients of log P(j) over j drawn from P(j) / (1 - P(c)), j not c. So learning the drawn
label follows the likelihood in the mean. It is a mistake if c was predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, Self, TypeVar

import numpy as np

from linmax.core.contract import EXPERTS, KNOWN, NO_LABEL, RECYCLED, STRIDE, TRIALS, UPDATES, Trials
from linmax.data.arrays import Layout, cut, widen
from linmax.data.instances import Instances
from linmax.data.names import distinct_labels, named
from linmax.engine.engine import Engine, Outcome, Settings
from linmax.engine.joined_records import joined_records
from linmax.engine.notation import as_learner, read_back, written
from linmax.engine.outcome import joined
from linmax.engine.record import (
    FILLED,
    LARGEST_RING,
    MISTAKES,
    Record,
    keep_table,
    new_record,
    note_all,
    pass_over,
    widened,
)
from linmax.engine.record import TRIALS as COUNTED
from linmax.learners.attributes.pool import RunningPool
from linmax.models.calibration import Calibration, Confidence
from linmax.models.trace import Trace
from linmax.models.weights import Columns, WeightArrays, Weights
from linmax.rules.custom import as_pickled
from linmax.techniques.combining import BestOf, Combined, WeightedCombination
from linmax.techniques.exploring import Exploring
from linmax.techniques.node import Node
from linmax.techniques.selecting import Selecting
from linmax.techniques.voting import Voted
from linmax.util import files
from linmax.util.aliases import Label
from linmax.util.draws import another
from linmax.util.files import State
from linmax.util.parts import by_part

__all__ = ["Member", "Model", "chosen", "mask_of", "refuse_others"]

LARGEST_TABLE = 16 * LARGEST_RING  # scores of the trials that are played at a time
Class = TypeVar("Class")
WRONG_STREAM = 2  # of the draws of other classes


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


class Model(Confidence):
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
        classes: Sequence[Label] = (),
        settings: Settings | None = None,
        columns: Columns | None = None,
    ) -> None:
        self.learner = as_learner(learner)
        self.classes = list(classes)
        self.columns = columns or Columns()
        self.engine = Engine(self.learner, layout, len(self.classes), settings or Settings())
        self.record = new_record(len(self.classes))
        self.grows = False  # whether columns have joined: then a missing one abstains
        self._calibration = Calibration()

    def __repr__(self) -> str:
        mistakes = f"{self.mistakes} mistake{'s' if self.mistakes != 1 else ''}"
        return f"<{self.learner} over {len(self.classes)} classes: {mistakes} in {self.trials} trials>"

    # -- what it knows --------------------------------------------------------------------------------------------

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
        """Updates on old instances, which `updates` includes."""
        return int(self.engine.state.counts[:, RECYCLED].sum())

    @property
    def labels_used(self) -> int:
        """Labels learned from: those of all trials, or of a learner that does not see all those that it saw."""
        top = self.engine.top
        if isinstance(top, Exploring):
            return top.labels_seen
        return top.asked_for if isinstance(top, Selecting) else self.trials

    @property
    def known(self) -> list[Label]:
        """The classes that may be predicted: all, or in discovery those that a label, or also a vote, has named."""
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
        """Learner and options, named as in `linmax.run`."""
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
        return next((rule for rule in self.engine.facing if rule.bounded), None)

    @property
    def layout(self) -> Layout:
        """Numbers of voters, raters and attributes."""
        return self.engine.layout

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
        """Learners that a combination, or a vote over one, runs in parallel; none for any other learner.

        Examples
        --------
        >>> import linmax
        >>> data = linmax.datasets.majority_problem(trials=500, seed=1)
        >>> learner = linmax.combine(["perceptron", "AR-perceptron"])
        >>> trace = linmax.run(learner, linmax.instances(votes=data.votes), data.labels)
        >>> [member.name for member in sorted(trace.model.members, key=lambda member: member.mistakes)]
        ['AR-perceptron', 'perceptron']
        """
        described, node = self.learner, self.engine.top
        while isinstance(described, Voted):
            described, node = described.base, node.children[0]
        if not isinstance(described, Combined) or not isinstance(node, (BestOf, WeightedCombination)):
            return []
        parts = zip(described.members, node.mistakes.tolist(), node.children, strict=True)
        return [Member(str(learner), mistakes, self, child) for learner, mistakes, child in parts]

    @property
    def pool(self) -> RunningPool | None:
        """The pool for attributes at work, if the learner is one."""
        return self.engine.top.pools.get("attributes")

    # -- growth ---------------------------------------------------------------------------------------------------

    def grow(self, layout: Layout, classes: Iterable[Label] = ()) -> None:
        """Make room for the columns of this layout and for further classes, which are numbered as they become known.

        A class is known after the first trial with its label or, where votes discover classes, in the first trial with
        a vote for it.
        """
        names = list(dict.fromkeys([*self.classes, *classes]))
        if layout != self.layout or len(names) > len(self.classes):
            self.engine.grow(layout, len(names))
            self.record = widened(self.record, len(names))
            self.classes = names

    def enlarged(self, layout: Layout, classes: Iterable[Label] = ()) -> Self:
        """Return a copy to predict with, which has further columns and classes; this model stays as it is."""
        other = copy(self)
        other.engine = deepcopy(self.engine)
        other.grow(layout, classes)
        other.engine.state.shape[KNOWN] = len(other.classes)
        return other

    # -- trials in arrays -----------------------------------------------------------------------------------------

    def play(
        self,
        trials: Trials,
        *,
        margins: bool = False,
        first_pass: bool = True,
        served: np.ndarray | None = None,
    ) -> Outcome:
        """Predict each instance, then see its label and update; count, and keep the scores.

        Parameters
        ----------
        trials
            Labels of which nothing can be learned become -1: those of trials of weight 0, which are predicted only,
            and "not class c" where c is unknown or there is no other class. Of two classes it is the other one.
        first_pass
            False for instances learned from before: their scores say nothing about new ones, and are not kept.
        served
            Predictions made earlier, which mistakes are counted against.
        """
        labels, size = trials.labels, trials.size
        if not trials.weights.min(initial=1.0) > 0.0:
            labels[trials.weights == 0.0] = NO_LABEL
        most = max(1, LARGEST_TABLE // max(1, len(self.classes))) if first_pass and self.follows else max(1, size)
        drawn = np.zeros(size, bool)
        if labels.min(initial=0) < NO_LABEL:
            trials, drawn = self._settle_denied(trials)
        if size <= most and not drawn.any():
            return self._stretch(trials, margins, first_pass, served)
        edges = {0, size, *range(0, size, most)}
        for t in np.flatnonzero(drawn).tolist():
            edges |= {t, t + 1}
        parts = []
        for begin, end in pairwise(sorted(edges)):
            part, answers = cut(trials, begin, end), None if served is None else served[begin:end]
            other = self._drawn_for(part) if drawn[begin] else None
            parts.append(self._stretch(part, margins, first_pass, answers, other))
        return joined(parts)

    def _settle_denied(self, trials: Trials) -> tuple[Trials, np.ndarray]:
        """Replace "not class c" where it says nothing, or which class it is; return also where one is to be drawn."""
        labels, top, known = trials.labels, self.engine.top, self.engine.known_in(trials, True).known
        wrong = NO_LABEL - 1 - labels
        idle = (labels < NO_LABEL) & ((wrong >= known) | (known < 2))
        labels[idle] = NO_LABEL
        if not isinstance(top, Exploring):  # which has to know what was tried
            labels[:] = np.where((labels < NO_LABEL) & (known == 2), 1 - wrong, labels)
        drawn = (labels < NO_LABEL) & (not top.takes_denied)
        return trials._replace(weights=np.where(idle, 0.0, trials.weights)), drawn

    def _drawn_for(self, trial: Trials) -> np.ndarray:
        """Return another class than the one that is not the label of a trial, drawn by their probabilities."""
        known = int(self.engine.known_in(trial, False).known[0])
        shares = self.own_probabilities(self.judge(trial)[1][:, :known])[0].tolist()
        wrong = NO_LABEL - 1 - int(trial.labels[0])
        return np.array([another(dict(enumerate(shares)), wrong, WRONG_STREAM, self.trials)], np.int32)

    def _stretch(
        self,
        trials: Trials,
        margins: bool,
        first_pass: bool,
        served: np.ndarray | None,
        learned: np.ndarray | None = None,
    ) -> Outcome:
        room, places = len(self.record.labels), trials.labels
        scored = 0 if not first_pass else trials.size if self.follows else room
        outcome = self.engine.run(trials if learned is None else trials._replace(labels=learned), margins, scored)
        note_all(self.record, outcome.predictions if served is None else served, places)
        if outcome.scores is not None:
            late, known = len(places) - len(outcome.scores), outcome.known
            if self.engine.settings.candidates:  # the label of a trial need not be one of its candidates
                self._hide_unknown(cut(trials, late, len(places)), outcome.scores)
                known = np.full(len(places), len(self.classes))
            if late:
                pass_over(self.record, places[:late], known[:late])
            keep_table(self.record, outcome.scores, places[late:], known[late:])
        return outcome

    def judge(self, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores without learning; a class not yet known has the score -inf."""
        predictions, table = self.engine.judge(trials)
        self._hide_unknown(trials, table)
        return predictions, table

    def _hide_unknown(self, trials: Trials, table: np.ndarray) -> None:
        """Give classes that are not known, or no candidates of a trial, the score -inf."""
        known = self.engine.known_in(trials, False).known
        if self.engine.settings.candidates:
            known = np.maximum(known, 1)
        table[np.arange(table.shape[1]) >= known[:, None]] = -np.inf

    @property
    def selects(self) -> bool:
        """True for a selective learner, which draws whether it wants a label."""
        return isinstance(self.engine.top, Selecting)

    def wants_label(self, table: np.ndarray, known: int | None = None) -> bool:
        """Return whether the label of an instance is wanted, given its scores from `judge` for the ``known`` classes.

        A selective learner draws, and learns from the next label if it wants one; any other wants all labels.
        """
        top = self.engine.top
        if not isinstance(top, Selecting):
            return True
        return top.wants(table, int(self.engine.state.shape[KNOWN]) if known is None else known)

    def explored(self, prediction: int, known: int) -> int:
        """The class to try, given the prediction: of a learner that explores sometimes another one."""
        top = self.engine.top
        return top.tried(prediction, known) if isinstance(top, Exploring) and known else prediction

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """Undo everything if the weights leave the range of floats."""
        before = self.snapshot()
        try:
            yield
        except OverflowError:
            self.__dict__.update(vars(before()))
            raise

    # -- trials from `linmax.instances` ------------------------------------------------------------------------------

    def run(
        self,
        instances: Instances,
        labels: Sequence[Label] | np.ndarray,
        *,
        margins: bool = False,
        grow: bool = False,
        first_pass: bool = True,
        weights: np.ndarray | None = None,
        wrong: np.ndarray | None = None,
    ) -> Trace:
        """Learn further trials; return their `Trace`. A label that is None, nan or empty is none yet.

        Trials count as much as ``weights`` say. Where ``wrong``, all that is known is that the label is not the one
        given; such a trial teaches nothing while no other class is known.

        With ``grow`` the instances may have further voters, raters and attributes, at the right of their block, and
        labels and votes may name further classes. A new sub-expert starts with the weight of one that has always been
        there and abstained; a new class is predicted only after its first label (Mesterharm 2001, section 6), or in
        discovery by votes from its first vote on.

        Examples
        --------
        >>> import linmax
        >>> model = linmax.run("perceptron", linmax.instances(votes=[["a"], ["b"]]), ["a", "b"]).model
        >>> more = linmax.instances(votes=[["a", "c"], ["c", "c"]])
        >>> model.run(more, ["c", "c"], grow=True).predictions.tolist()
        ['a', 'c']
        >>> model.classes, model.layout.voters
        (['a', 'b', 'c'], 2)
        """
        refuse_others(instances)
        distinct, places = distinct_labels(labels, len(instances), gaps=True)
        if wrong is not None:
            places = np.where(np.asarray(wrong) & (places >= 0), -2 - places, places)
        if weights is not None:
            places = np.where(weights > 0.0, places, NO_LABEL)
        return self.run_numbered(
            instances, (distinct, places), margins=margins, grow=grow, first_pass=first_pass, weights=weights
        )

    def run_numbered(
        self,
        instances: Instances,
        found: tuple[list[Label], np.ndarray],
        *,
        margins: bool = False,
        grow: bool = False,
        first_pass: bool = True,
        weights: np.ndarray | None = None,
    ) -> Trace:
        """`run`, given distinct labels and for each trial the place of its label among them (coded as in `play`)."""
        debuts = self._debuts(instances, found) if grow or self.engine.settings.discover else {}
        layout = self._wider(instances.layout) if grow else self.layout
        classes = [*self.classes, *(name for names in debuts.values() for name in names)]
        if instances.fixed and self.engine.settings.discover and not grow:
            _numbered(*found, instances.names)
        labels = _numbered(*found, classes)
        trials = self.fitted(instances, layout, classes, grow or self.grows)  # refused as a whole, or not at all
        trials = trials._replace(labels=labels, weights=trials.weights if weights is None else weights)
        self.grows |= grow
        self.columns = Columns(
            max(self.columns.voters, instances.voter_names, key=len),
            self.columns.raters,
            max(self.columns.attributes, instances.attribute_names, key=len),
        )
        self.grow(layout)
        parts = []
        for begin, end in pairwise(sorted({0, *debuts, len(labels)}) if len(labels) else [0, 0]):
            part = cut(trials, begin, end) if len(debuts.keys() | {0}) > 1 else trials
            self.grow(layout, debuts.get(begin, ()))
            parts.append(self.play(_among(part, len(self.classes)), margins=margins, first_pass=first_pass))
        outcome = parts[0] if len(parts) == 1 else joined([replace(part, scores=None) for part in parts])
        predictions, changed = outcome.predictions, outcome.changed.view(np.bool_)
        wrong = predictions != labels
        if labels.min(initial=0) < 0:
            wrong = np.where(labels < 0, (predictions >= 0) & (predictions == NO_LABEL - 1 - labels), wrong)
        return Trace(self, named(predictions, self.classes), wrong, changed, outcome.margins, learned=labels)

    def _debuts(self, instances: Instances, found: tuple[list[Label], np.ndarray]) -> dict[int, list[Label]]:
        """Return the classes that become known, by the trial that names each of them first.

        There the model grows, so that it does not matter how trials are cut into calls. In one trial those voted for
        come before the label.
        """
        known, first = set(self.classes), dict[Any, tuple[int, int]]()
        spelling = {name: name for name in found[0]}
        voted = (instances.names, instances.votes) if self.engine.settings.by_votes else ((), instances.votes)
        for kind, (names, codes) in enumerate([voted, (found[0], np.maximum(found[1], NO_LABEL)[:, None])]):
            if known.issuperset(names):
                continue
            places = np.full(len(names) + 1, codes.size)
            places[codes.ravel()[::-1]] = np.arange(codes.size)[::-1]  # of each name its first one
            for name, place in zip(names, places.tolist(), strict=False):
                if name not in known and place < codes.size:
                    trial, column = divmod(place, codes.shape[1])
                    here = (trial, column + kind * instances.votes.shape[1])
                    first[name] = min(first.get(name, here), here)
        debuts: dict[int, list[Label]] = {}
        for name, (trial, _) in sorted(first.items(), key=lambda item: item[1]):
            debuts.setdefault(trial, []).append(spelling.get(name, name))
        return debuts

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

    def predict(self, instances: Instances) -> np.ndarray:
        """The class of each instance under the current weights; nothing is learned."""
        return named(self.engine.judge(self.fitted(instances))[0], self.classes)

    def scores(self, instances: Instances) -> np.ndarray:
        """The votes zeta(j) of each instance for each class, up to one positive factor; nothing is learned."""
        return self.engine.judge(self.fitted(instances))[1]

    def rates(self, instances: Instances) -> np.ndarray:
        """Scores as in `scores`, -inf for classes not yet known."""
        return self.judge(self.fitted(instances))[1]

    def predict_proba(self, instances: Instances) -> np.ndarray:
        """The probability of each of `classes` for each instance; nothing is learned."""
        return self.probabilities(self.judge(self.fitted(instances))[1])

    def margin(self, instances: Instances, labels: Sequence[Label] | np.ndarray) -> float:
        """min over trials of (zeta(label) - zeta(rival)) / (sqrt(2) ||w||_2): the margin that these weights give.

        For attributes alone this is the textbook margin of a multi-class linear classifier: with R = instances.radius
        and gamma the largest margin of any weights, cyclic passes of the Perceptron end after R^2/gamma^2 violations.
        """
        numbers = _numbered(*distinct_labels(labels, len(instances)), self.classes)
        if not len(numbers) or len(self.classes) < 2:
            raise ValueError("margin needs at least one instance and two classes")
        weights, _ = self.engine.top.hypothesis(self.engine)
        _, table = self.engine.rate(self.engine.known_in(self.fitted(instances), False), weights)
        rows = np.arange(len(numbers))
        right = table[rows, numbers].copy()
        table[rows, numbers] = -np.inf
        norm = float(np.linalg.norm(weights))
        return float((right - table.max(axis=1)).min() / (math.sqrt(2.0) * norm)) if norm else 0.0

    def check_range(self, instances: Instances) -> None:
        """Refuse instances beyond the range of floats, or that which a rule needs."""
        instances.refuse_huge()
        if self.bounded is not None and instances.range > 1.0 + 1e-12:
            raise ValueError(
                f"{self.bounded} needs ratings that differ by at most 1 and attributes in [-1, 1], but the instances "
                f"reach {instances.range:g}; pass scale='max' to instances(...) or divide them yourself"
            )

    def fitted(
        self,
        instances: Instances,
        layout: Layout | None = None,
        classes: Sequence[Label] | None = None,
        grow: bool = False,
    ) -> Trials:
        """The instances in these columns and classes, or else the present ones, after the checks that rules need."""
        refuse_others(instances)
        layout, classes = layout or self.layout, self.classes if classes is None else classes
        if instances.layout != layout and not ((grow or self.grows) and layout.holds(instances.layout)):
            raise ValueError(
                f"instances have {instances.layout}, but the learner was made for {self.layout}; give instances(...) "
                "the same blocks and options, and the vocabulary= of named attributes"
            )
        self.check_range(instances)
        strict = not (grow or self.engine.settings.discover)
        return widen(instances.compiled(classes, strict), layout, len(classes))

    # -- state ----------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """All that it is: plain data that JSON can hold, and arrays. Copies of neither."""
        return self._state(written(self.learner))

    def _state(self, learner: object) -> State:
        header = {
            "learner": learner,
            "classes": [files.plain(name) for name in self.classes],
            "layout": list(astuple(self.layout)),
            "settings": list(astuple(self.engine.settings)),
            "columns": self.columns.plain(),
            "grows": self.grows,
        }
        arrays = {f"engine.{name}": array for name, array in self.engine.arrays.items()}
        return header, arrays | {f"record.{name}": array for name, array in self.record._asdict().items()}

    def snapshot(self) -> Callable[[], Self]:
        """Return a function that makes this model as it is now."""
        header, arrays = self._state(self.learner)
        return partial(self.from_state, header, {name: array.copy() for name, array in arrays.items()})

    @classmethod
    def from_state(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], copied: bool = True) -> Self:
        """Return the model with this `state`, which continues as if it had never stopped.

        Of arrays that are not copied comes a model that can be looked at and merged, but must not learn.
        """
        parts = by_part(arrays)
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
        cls, engine: Engine, classes: Sequence[Label], columns: Columns, mistakes: int, parts: Sequence[Model]
    ) -> Self:
        """The model of a merged engine. Its recent scores are those of the ``parts``, the latest of each."""
        model = cls.__new__(cls)
        model.learner, model.engine, model.classes, model.columns = engine.learner, engine, list(classes), columns
        place = {name: number for number, name in enumerate(model.classes)}
        records = [(part.record, np.array([place[name] for name in part.classes], np.int32)) for part in parts]
        trials, followed = int(engine.state.counts[0, TRIALS]), all(part.follows for part in parts)
        model.record = joined_records(records, len(place), trials, mistakes, followed)
        model.grows, model._calibration = True, Calibration()
        return model

    def __reduce__(self) -> Any:
        # The engine knows compiled functions by their address in this process.
        header, arrays = self.packed()
        return type(self).from_state, (header, {name: array.copy() for name, array in arrays.items()})

    def packed(self) -> State:
        """Its state as pickles hold it: with a user's own rules in it."""
        return self._state(as_pickled(self.learner, self.engine.rules))


def chosen(scores: np.ndarray, sets: np.ndarray, classes: Sequence[Class]) -> list[tuple[Class, ...]]:
    """Prediction sets by name, the classes with the highest scores first."""
    order = np.argsort(-scores, axis=1, kind="stable")
    return [tuple(classes[c] for c in row if inside[c]) for row, inside in zip(order.tolist(), sets, strict=True)]


def mask_of(wrong: Any, size: int) -> np.ndarray:
    """Return the mask of trials of which only a class that is not the label is known."""
    mask = np.asarray(wrong)
    if mask.dtype != bool or mask.shape != (size,):
        raise ValueError(
            f"wrong must be a mask, True or False for each of the {size} trials; got {mask.dtype} of shape {mask.shape}"
        )
    return mask


def _among(trials: Trials, k: int) -> Trials:
    """Return trials with the first k classes alone: votes for others abstain."""
    votes, scores = trials.votes, trials.scores
    if scores.shape[2] > k:
        scores = np.ascontiguousarray(scores[:, :, :k])
    if votes.max(initial=-1) >= k:
        votes = np.where(votes < k, votes, np.int32(-1))
    return trials._replace(votes=votes, scores=scores)


def _numbered(distinct: list[Label], inverse: np.ndarray, classes: Sequence[Label]) -> np.ndarray:
    """Return labels as class numbers, coded as in `Model.play`; a class that is not a label may be unknown."""
    if inverse.min(initial=0) >= -1 and distinct == list(classes[: len(distinct)]):  # as a rule
        return inverse.astype(np.int32)
    place = {name: i for i, name in enumerate(classes)}
    numbers = np.array([*(place.get(name, len(classes)) for name in distinct), -1], np.int32)
    labels = np.where(
        inverse >= -1, numbers[np.maximum(inverse, -1)], -2 - numbers[np.minimum(-2 - inverse, len(distinct))]
    )
    unknown = labels == len(classes)
    if unknown.any():
        t = int(np.argmax(unknown))
        raise ValueError(
            f"labels: {distinct[inverse[t]]!r} at trial {t} is not among the classes {_short(classes)}; "
            "pass all classes to instances(classes=...)"
        )
    return labels.astype(np.int32)


def refuse_others(instances: Any) -> None:
    """Say how to make instances of what is not."""
    if not isinstance(instances, Instances):
        raise TypeError(
            f"instances must come from instances(...), got {type(instances).__name__}; try instances(attributes=...)"
        )


def _short(items: Sequence[Label]) -> str:
    return repr(list(items)) if len(items) <= 10 else f"[{', '.join(map(repr, items[:10]))}, ... {len(items)} in all]"
