"""A learner at work: names of classes and columns, growth, counts and their curve, probabilities, and all its state.

Everything that users hold is thin on top of a `Model`: `run`, `Learner`, streams, fusion, and the interfaces of
scikit-learn and River. It plays instances in arrays and classes by number; a `linmax.models.experts_model.ExpertsModel`
plays instances from `linmax.experts` and labels as users write them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import astuple
from functools import partial
from typing import Any, Self

import numpy as np

from linmax.core.contract import KNOWN, RECYCLED, TRIALS, UPDATES, Instances
from linmax.data.arrays import Layout, cut
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
from linmax.models.calibration import Calibration, Confidence
from linmax.models.columns import Columns
from linmax.models.inspecting import Inspectable
from linmax.models.showings import play_shown
from linmax.rules.custom import as_pickled
from linmax.techniques.exploring import Exploring
from linmax.techniques.selecting import Selecting
from linmax.util import files
from linmax.util.names import apart

__all__ = ["Model", "chosen"]

LARGEST_TABLE = 16 * LARGEST_RING  # scores of the trials that are played at a time


class Model(Confidence, Inspectable):
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
    def trials(self) -> int:
        """Trials learned from so far; an instance that was shown three times for its weight is three."""
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
    def labels_used(self) -> int:
        """Labels learned from: those of all trials, or of a learner that does not see all those that it saw."""
        top = self.engine.top
        if isinstance(top, Exploring):
            return top.told
        return top.asked_for if isinstance(top, Selecting) else self.trials

    @property
    def known(self) -> list[Any]:
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
        return next((rule for rule in self.engine.facing if rule.bounded), None)

    # -- growth ---------------------------------------------------------------------------------------------------

    def grow(self, layout: Layout, classes: Iterable[Any] = ()) -> None:
        """Make room for the columns of this layout and for further classes, which are not yet known."""
        names = list(dict.fromkeys([*self.classes, *classes]))
        if layout != self.layout or len(names) > len(self.classes):
            self.engine.grow(layout, len(names))
            self.record = widened(self.record, len(names))
            self.classes = names

    def meet(self, labels: Iterable[Any], voted: Iterable[Any] = ()) -> None:
        """Number the classes that are not yet known: those ``voted`` for, then in the order of these labels.

        All of them are among the classes. A vote for a class makes it known before the trial is predicted, unless
        classes are discovered by labels alone; a label after it.
        """
        known = int(self.engine.state.shape[KNOWN])
        if known == len(self.classes):
            return
        place = {name: i for i, name in enumerate(self.classes)}
        named = dict.fromkeys(place[name] for name in voted) if self.engine.settings.by_votes else {}
        everyone = range(len(self.classes))
        order = list(dict.fromkeys([*range(known), *named, *(place[name] for name in labels), *everyone]))
        if order != sorted(order):
            self.engine.renumber(order)
            self.classes = [self.classes[i] for i in order]
        if more := sum(number >= known for number in named):
            self.engine.know(known + more)

    def visited(self, layout: Layout, classes: Iterable[Any], voted: Iterable[Any]) -> Self:
        """A copy to judge instances by, with further columns and classes, and some voted for; this one stays."""
        other = copy(self)
        other.engine = deepcopy(self.engine)
        other.grow(layout, classes)
        other.meet((), voted)
        return other

    # -- trials in arrays -----------------------------------------------------------------------------------------

    def play(
        self,
        instances: Instances,
        places: np.ndarray,
        margins: bool = False,
        first_pass: bool = True,
        served: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> Outcome:
        """Predict each instance, then see its label, a place in `classes`, and update; count, and keep the scores.

        Those of instances that have been learned from before say nothing about ones to come: they are not kept.
        Mistakes are counted against what was ``served`` for the instances, if they were predicted at another time.
        Instances count as much as ``weights`` > 0 say (see `linmax.models.showings`), and are predicted once.
        """
        if weights is not None and (weights == 1.0).all():
            weights = None
        size, followed = len(places), first_pass and self.follows
        most = max(1, LARGEST_TABLE // max(1, len(self.classes))) if followed else size
        if size <= most:
            return self._stretch(instances, places, margins, first_pass, served, weights)
        parts = []
        for begin in range(0, size, most):
            end = min(size, begin + most)
            answers = None if served is None else served[begin:end]
            weights_here = None if weights is None else weights[begin:end]
            here = cut(instances, begin, end), places[begin:end]
            parts.append(self._stretch(*here, margins, first_pass, answers, weights_here))
        return joined(parts)

    def _stretch(
        self,
        instances: Instances,
        places: np.ndarray,
        margins: bool,
        first_pass: bool,
        served: np.ndarray | None,
        weights: np.ndarray | None,
    ) -> Outcome:
        known, room = int(self.engine.state.shape[KNOWN]), len(self.record.labels)
        scored = 0 if not first_pass else len(places) if self.follows else room
        if weights is None:
            outcome = self.engine.run(instances, places, margins, scored=scored)
        elif self.engine.top.weighing is not None:
            outcome = self.engine.run_weighed(instances, places, weights, min(scored, len(places)))
        else:
            first = int(self.record.counts[COUNTED])
            outcome = play_shown(self.engine, instances, places, weights, first, min(scored, len(places)))
        note_all(self.record, outcome.predictions if served is None else served, places)
        if outcome.scores is not None:
            late = len(places) - len(outcome.scores)
            if late:
                known = pass_over(self.record, places[:late], known)
            keep_table(self.record, outcome.scores, places[late:], known)
        return outcome

    def judge(self, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores without learning; a class not yet known has the score -inf."""
        predictions, table = self.engine.judge(instances, size)
        table[:, int(self.engine.state.shape[KNOWN]) :] = -np.inf
        return predictions, table

    @property
    def selects(self) -> bool:
        """Whether it is a selective learner, which draws whether it wants a label."""
        return isinstance(self.engine.top, Selecting)

    def wants_label(self, table: np.ndarray, known: int | None = None) -> bool:
        """Whether the label of an instance is wanted, given its scores from `judge`, of so many classes.

        A selective learner draws, and learns from the next label if it wants one; any other wants all labels.
        """
        top = self.engine.top
        if not isinstance(top, Selecting):
            return True
        return top.wants(table, int(self.engine.state.shape[KNOWN]) if known is None else known)

    def explored(self, prediction: int) -> int:
        """The class to try, given the prediction: of a learner that explores sometimes another one."""
        top, known = self.engine.top, int(self.engine.state.shape[KNOWN])
        return top.tried(prediction, known) if isinstance(top, Exploring) and known else prediction

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """Undo everything if the weights leave the range of floats."""
        kept = self.kept()
        try:
            yield
        except OverflowError:
            self.__dict__.update(vars(kept()))
            raise

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
            "columns": self.columns.plain(),
            "grows": self.grows,
        }
        arrays = {f"engine.{name}": array for name, array in self.engine.arrays.items()}
        return header, arrays | {f"record.{name}": array for name, array in self.record._asdict().items()}

    def kept(self) -> Callable[[], Self]:
        """A copy of all that it is, as arrays; called, the model that it was."""
        header, arrays = self._state(self.learner)
        return partial(self.from_state, header, {name: array.copy() for name, array in arrays.items()})

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

    def packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Its state as pickles hold it: with a user's own rules in it."""
        return self._state(as_pickled(self.learner, self.engine.rules))


def chosen(scores: np.ndarray, sets: np.ndarray, classes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Prediction sets by name, the classes with the highest scores first."""
    order = np.argsort(-scores, axis=1, kind="stable")
    return [tuple(classes[c] for c in row if inside[c]) for row, inside in zip(order.tolist(), sets, strict=True)]
