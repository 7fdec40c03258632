"""A learner of streams with all that belongs to it: names of attributes and classes, scaling, weights, counters.

It takes batches, predicts every row before it learns from it, grows as names and classes appear, and is saved as one
file; continued from there it gives the same bits. Rows go through one after the other, so that cutting a stream
differently changes nothing, except for rules with a thick separator: their margin counts the attributes that the batch
brings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from linmax.core.contract import Trials
from linmax.data.arrays import Layout, no_trials, without
from linmax.data.scaling import SCALINGS, Scaling
from linmax.engine.engine import Engine, Settings
from linmax.engine.notation import as_learner, read_back, written
from linmax.io.batch import Batch, Classes
from linmax.io.vocabulary import Vocabulary
from linmax.learners.attributes.pool import PoolMember
from linmax.learners.base import scales_attributes
from linmax.models.explanation import InstanceExplanation, explain_trials
from linmax.models.model import Model
from linmax.models.streams.budget import bytes_given, refuse_small, room_for
from linmax.models.weights import WeightArrays, Weights
from linmax.techniques.technique import LearnerLike
from linmax.util import files
from linmax.util.aliases import PathLike
from linmax.util.checks import boolean, one_of
from linmax.util.files import State
from linmax.util.parts import by_part, handed_over

__all__ = ["STREAM_KIND", "StreamModel"]

STREAM_KIND = "stream model"
NO_CLASS = -1  # predicted before a class is known


class StreamModel:
    """Learn batches of a stream, and all that belongs to it: names, classes, scaling, weights and counts.

    Parameters
    ----------
    learner : learner or str, default="auto"
        A rule, a composition of techniques, or text such as "A-perceptron"; "auto" is a pool that needs no tuning.
    scale : str, default="auto"
        Scaling of attributes online, a kind of `linmax.data.scaling`. "auto" is "none" for the learner "auto", whose
        members scale by themselves, and "max" for dense attributes when a rule needs them in [-1, 1].
    thresholds : bool, default=True
        Add the constant attribute.
    hash_bits : int, optional
        Hash the names of attributes to 2^bits columns instead of storing them.
    memory : int or str, optional
        A budget for names and weights, in bytes or as "500MB". When it is used up (`crowded`), attributes that come
        later share columns.
    tie, update_on_tie
        As in `linmax.run`.

    See Also
    --------
    linmax.stream : reads what it learns from.

    Examples
    --------
    >>> import linmax
    >>> model = linmax.StreamModel("perceptron", scale="none")
    >>> for batch in linmax.stream(["ham |w hello friend", "spam |w buy now", "spam |w sell now"]):
    ...     print(model.learn(batch))
    [None 'ham' 'spam']
    >>> model.classes, model.trials
    (['ham', 'spam'], 3)
    """

    def __init__(
        self,
        learner: LearnerLike = "auto",
        *,
        scale: str = "auto",
        thresholds: bool = True,
        hash_bits: int | None = None,
        memory: int | str | None = None,
        tie: str = "smallest",
        update_on_tie: bool = True,
    ) -> None:
        self.learner = as_learner(learner)
        one_of("tie", tie, ("smallest", "largest"))
        self.thresholds = boolean("thresholds", thresholds)
        self._settings = Settings(tie == "largest", boolean("update_on_tie", update_on_tie), discover=True)
        self._vocabulary = Vocabulary(hash_bits)
        self._labels = Classes()
        self.memory: int | None = None
        if memory is not None:
            self.limit(memory)
        one_of("scale", scale, SCALINGS)
        if scale == "auto" and scales_attributes(self.learner):
            scale = "none"  # each of its members scales as it needs
        self._scaling = Scaling(scale, constant=float(self.thresholds))
        self._model: Model | None = None  # made at the first batch
        self._dense_names: tuple[str, ...] = ()
        self._schema: dict[str, str] = {}  # the kind of each column of a table
        self._reading: dict[str, Any] = {}  # the format and the options with which its data were read
        self._columns = 0  # of the vocabulary, as far as the engine has it
        self._places = np.zeros(0, np.int32)  # of the labels among the model's classes, -1 for those not learned from

    # -- what it knows --------------------------------------------------------------------------------------------

    @property
    def _current_model(self) -> Model | None:
        return self._model

    @property
    def options(self) -> dict[str, Any]:
        """Learner and options that decide what is learned."""
        return {
            "learner": str(self.learner),
            "thresholds": self.thresholds,
            "tie": "largest" if self._settings.largest else "smallest",
            "update_on_tie": self._settings.update_on_tie,
            "hash_bits": self._vocabulary.bits,
        }

    @property
    def classes(self) -> list[str]:
        """Classes learned from, in the order of their first labels."""
        return [] if self._model is None else self._model.classes

    @property
    def crowded(self) -> bool:
        """True if the budget is used up, so that new attributes share columns."""
        return self._vocabulary.full

    @property
    def trials(self) -> int:
        """Number of trials learned from."""
        return 0 if self._model is None else self._model.trials

    @property
    def mistakes(self) -> int:
        """Number of mistakes, each made before the label was seen; those of later passes count as well."""
        return 0 if self._model is None else self._model.mistakes

    @property
    def updates(self) -> int:
        """Number of updates by all members, recycled ones included."""
        return 0 if self._model is None else self._model.updates

    @property
    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Trials, and the mistakes up to each (see `linmax.Learner.curve`)."""
        return (np.zeros(0, np.int64), np.zeros(0, np.int64)) if self._model is None else self._model.curve

    @property
    def features(self) -> int:
        """Number of attributes, without the constant."""
        return len(self._dense_names) + self._columns

    @property
    def attributes(self) -> list[str]:
        """Names of the rows of `weights`."""
        names = ["constant"] if self._scaling.prepends else []
        return [*names, *self._dense_names, *(self._vocabulary[i] for i in range(self._columns))]

    @property
    def weights(self) -> Weights:
        """Weights of the present hypothesis, by name, up to one positive factor (see `linmax.Learner.weights`)."""
        if self._model is None:
            none = np.zeros(0)
            return Weights(WeightArrays(none, none, none, np.zeros((0, 0))), [], [], [], [])
        return Weights(self._model.weights.arrays, self.classes, [], [], self.attributes)

    @property
    def pool(self) -> list[PoolMember]:
        """Members of the pool for attributes, and their weights in the fusion; none for other learners."""
        pool = None if self._model is None else self._model.pool
        return [] if pool is None else pool.members()

    @property
    def decided(self) -> dict[str, str | int | float]:
        """Decision of the pool for attributes, numbers or words, and its reason; empty for other learners.

        Overrule it by ``auto(dense)`` or ``auto(sparse)``.
        """
        pool = None if self._model is None else self._model.pool
        return {} if pool is None else pool.decided()

    @property
    def repeats(self) -> int | None:
        """Rows learned with the attributes of an earlier row, which the pool for attributes counts; None: no pool."""
        pool = None if self._model is None else self._model.pool
        return None if pool is None else pool.fusion.repeats

    def __repr__(self) -> str:
        return f"<{self.learner} over {len(self.classes)} classes and {self.features} attributes, {self.trials} trials>"

    def limit(self, memory: int | str) -> None:
        """Keep names and weights within a budget from now on; what there is already stays."""
        budget = bytes_given(memory)
        if self._vocabulary.bits is not None:
            raise ValueError(
                f"memory={memory} and hash_bits={self._vocabulary.bits} both say how many columns; give one"
            )
        refuse_small(budget, self.learner)
        self.memory = budget
        self._vocabulary.room = partial(room_for, budget, self.learner)
        self._vocabulary.fit_classes(len(self._labels))

    # -- learning -------------------------------------------------------------------------------------------------

    def learn(self, batch: Batch) -> np.ndarray:
        """Predict each row, then learn from it; return the predictions by name, None before a class is known.

        Rows without a label, or of weight 0, are predicted only; other weights scale the step.
        """
        weights = weights_of(batch)
        codes = self._play(self._scaled(batch), batch.codes, weights)
        return np.array([*self._labels.names, None], dtype=object)[codes]

    def predict(self, batch: Batch) -> np.ndarray:
        """Return the class of each row by name; nothing is learned."""
        return np.array([*self._labels.names, None], dtype=object)[self._judge(self._scaled(batch, False))]

    def scores(self, batch: Batch) -> np.ndarray:
        """Return the scores of each row for each of `classes`, up to one positive factor; nothing is learned."""
        return self._scores(self._scaled(batch, False))

    def predict_proba(self, batch: Batch) -> np.ndarray:
        """Return the probability of each of `classes` for each row; nothing is learned."""
        table = self.scores(batch)
        return self._model.probabilities(table) if self._model is not None and table.size else table

    def explain(self, batch: Batch, most: int | None = None) -> list[InstanceExplanation]:
        """Return what moved the prediction of each row, ``most`` attributes of each (see `linmax.Learner.explain`)."""
        instances = self._scaled(batch, False)
        if self._model is None or len(self._model.known) < 2:
            raise ValueError(f"explain() requires two classes, got {self.classes!r}; learn rows of both first")
        names, wide = self.attributes, self._model.layout.dense
        found = explain_trials(self._model, self._model.engine, instances)
        return [row.named(self.classes, ((row.dense, names[:wide]), (row.sparse, names[wide:])), most) for row in found]

    def _answers(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """The number of the class predicted for each row, and the probabilities by the numbers of all classes."""
        instances = self._scaled(batch, False)
        if self._model is None or not self.classes:
            return self._judge(instances), np.zeros((len(batch), 0))
        predicted, table = self._judged(self._model.engine, instances)
        known = np.flatnonzero(self._places >= 0)
        given = self._model.probabilities(table[:, : len(self.classes)])
        probabilities = np.zeros((len(batch), int(known[-1]) + 1))
        probabilities[:, known] = given[:, self._places[known]]
        return self._codes(predicted), probabilities

    def _scaled(self, batch: Batch, learn: bool = True) -> Trials:
        """A batch as the engine takes it; with ``learn`` the scaling learns from it, and room is made."""
        self._adopt(batch)
        if self._dense_names != batch.dense_names:
            if self._model is not None:
                raise ValueError(
                    f"the columns of numbers are {_short(batch.dense_names)}, but those learned from were "
                    f"{_short(self._dense_names)}; give data of that kind"
                )
            self._dense_names = batch.dense_names
        if learn and not self._schema and "kinds" in batch.settled:
            self._schema = dict(zip(batch.settled["header"], batch.settled["kinds"], strict=True))
        if learn and not self._reading:
            self._reading = dict(batch.settled.get("reading", {}))
        indptr, columns = batch.indptr, batch.columns
        if not columns and not self._columns and self._dense_names:
            indptr = np.zeros(0, np.int64)
        if learn and not self._scaling.trials and self._bounded() is not None:
            self._scaling.keep_within()
        dense, indptr, indices, values, constant = self._scaling.scale(
            batch.dense, indptr, batch.indices, batch.values, float(self.thresholds), columns, learn
        )
        if self._scaling.kind == "none" and dense.size and np.isnan(dense).any():
            dense = np.nan_to_num(dense)
        if learn:
            self._columns = columns
            extra = int(self._scaling.prepends)
            wide = len(self._dense_names)
            sparse = columns + extra * (not wide) if indptr.size else 0
            self._grow(Layout(0, 0, wide + extra * bool(wide), sparse, constant))
        made = no_trials(len(batch))
        made = made._replace(dense=dense, indptr=indptr, indices=indices, values=values, constant=constant)
        self._refuse_large(made)
        return made

    def _adopt(self, batch: Batch) -> None:
        """Number names and classes as the first stream does; later ones must do the same."""
        if batch.vocabulary is self._vocabulary and batch.labelled is self._labels:
            return
        if self._model is not None:
            raise ValueError(
                "this batch numbers its names differently from the model; read it by stream(..., model=model)"
            )
        if self.memory is not None:
            raise ValueError("a model with memory= numbers names itself; read the batch by stream(..., model=model)")
        if batch.vocabulary.bits != self._vocabulary.bits:
            raise ValueError(
                f"the stream has hash_bits={batch.vocabulary.bits}, the model {self._vocabulary.bits}; make them equal"
            )
        self._vocabulary, self._labels = batch.vocabulary, batch.labelled

    def _bounded(self) -> Any:
        """A rule that needs attributes in [-1, 1], if there is one."""
        model = self._model or Model(self.learner, Layout(0, 0, 0, 0, 1.0), (), self._settings)
        return model.bounded

    def _refuse_large(self, instances: Trials) -> None:
        rule = None if self._model is None else self._bounded()
        if rule is None:
            return
        largest = max((float(np.abs(part).max(initial=0.0)) for part in (instances.dense, instances.values)), default=0)
        if largest > 1.0 + 1e-12:
            raise ValueError(f"{rule} needs attributes in [-1, 1], but they reach {largest:g}; scale them by 'max'")

    def _grow(self, layout: Layout) -> None:
        if self._model is None:
            self._model = Model(self.learner, layout, (), self._settings)
        else:
            self._model.grow(layout)

    def _numbers(self, codes: np.ndarray) -> np.ndarray:
        """Return labels as classes of the model, which gets those that are new."""
        assert self._model is not None
        if len(self._places) < len(self._labels):
            more = np.full(len(self._labels) - len(self._places), NO_CLASS, np.int32)
            self._places = np.concatenate([self._places, more])
        numbers = self._places[codes]
        if (numbers < 0).any():
            new = list(dict.fromkeys(codes[numbers < 0].tolist()))
            self._places[new] = len(self._model.classes) + np.arange(len(new))
            self._model.grow(self._model.layout, [self._labels.names[code] for code in new])
            numbers = self._places[codes]
        return numbers

    def _codes(self, numbers: np.ndarray) -> np.ndarray:
        """Classes of the model as labels."""
        codes = np.full(len(self.classes) + 1, NO_CLASS, np.int32)
        known = np.flatnonzero(self._places >= 0)
        codes[self._places[known]] = known
        return codes[numbers]

    def _play(
        self, instances: Trials, codes: np.ndarray, weights: np.ndarray | None = None, first_pass: bool = True
    ) -> np.ndarray:
        """Predict scaled rows, and learn those with a weight (all, if none are given); returns the labels predicted."""
        if not len(codes):
            return np.zeros(0, np.int32)
        if self._model is None or (weights is not None and not weights.any()):
            return self._judge(instances)
        labels = np.full(len(codes), -1, np.int32)
        learned = slice(None) if weights is None else weights > 0.0
        labels[learned] = self._numbers(codes[learned])
        trials = instances._replace(labels=labels)
        if weights is not None:
            trials = trials._replace(weights=weights)
        played = self._model.play(trials, first_pass=first_pass)
        return self._codes(played.predictions)

    def _judge(self, instances: Trials) -> np.ndarray:
        """The labels predicted for scaled rows."""
        if self._model is None or not self.classes:
            return np.full(len(instances.votes), NO_CLASS, np.int32)
        return self._codes(self._judged(self._model.engine, instances)[0])

    def _scores(self, instances: Trials) -> np.ndarray:
        if self._model is None or not self.classes:
            return np.zeros((len(instances.votes), 0))
        return self._judged(self._model.engine, instances)[1][:, : len(self.classes)]

    def _judged(self, engine: Engine, instances: Trials) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores. New attributes have the weight that they would start with."""
        need, layout = int(instances.indices.max(initial=-1)) + 1, engine.layout
        if need > layout.sparse:
            if engine.from_zero:
                instances = without(instances, layout.sparse)
            else:
                engine = engine.hosting(replace(layout, sparse=need))
        return engine.judge(instances)

    # -- state ----------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return all that was learned: plain data that JSON can hold, and arrays."""
        header, state = (None, {}) if self._model is None else self._model.state()
        description = self.options | {
            "learner": written(self.learner),
            "scaling": self._scaling.description,
            "labels": self._labels.names,
            "dense_names": list(self._dense_names),
            "schema": list(self._schema.items()),
            "reading": self._reading,
            "columns": self._columns,
            "model": header,
        }
        if self.memory is not None:
            description["memory"] = self.memory
        arrays = {f"names.{name}": array for name, array in self._vocabulary.arrays(self._columns).items()}
        arrays |= {f"scaling.{name}": array for name, array in self._scaling.arrays.items()}
        return description, arrays | {f"model.{name}": array for name, array in state.items()}

    @classmethod
    def from_state(
        cls,
        description: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray],
        vocabulary: Vocabulary | None = None,
        copied: bool = True,
    ) -> Self:
        """Return the model with this `state`, which continues as if it had never stopped.

        With the vocabulary of its names, which is taken over, they need not be looked up again one by one. Of arrays
        that are not copied comes a model that can be looked at and merged, but must not learn. Those handed over
        (`linmax.util.parts.Handed`) are used up.
        """
        parts = by_part(arrays)
        try:
            bits = description["hash_bits"]
            self = cls(
                read_back(description["learner"]),
                thresholds=description["thresholds"],
                tie=description["tie"],
                update_on_tie=description["update_on_tie"],
                hash_bits=bits,
            )
            self._vocabulary = (
                Vocabulary.from_arrays(parts.pop("names", {}), bits) if vocabulary is None else vocabulary
            )
            self._labels = Classes(description["labels"])
            self._scaling = Scaling.from_state(description["scaling"], parts.get("scaling", {}))
            self._dense_names, self._columns = tuple(description["dense_names"]), int(description["columns"])
            self._schema = {str(name): str(kind) for name, kind in description["schema"]}
            self._reading = dict(description.get("reading", {}))
            if description.get("memory") is not None:
                self.limit(int(description["memory"]))
            self._places = np.full(len(self._labels), NO_CLASS, np.int32)
            if description["model"] is not None:
                self._model = Model.from_state(description["model"], parts["model"], copied)
                place = {name: code for code, name in enumerate(self._labels.names)}
                self._places[[place[name] for name in self._model.classes]] = np.arange(len(self._model.classes))
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(f"the model is damaged: {error!r}") from None
        return self

    def save(self, path: PathLike) -> None:
        """Write everything to one file, which holds no code and is replaced only when the new one is complete."""
        files.write(path, STREAM_KIND, *self.state())

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Load a model that was saved, which continues as if it had never stopped."""
        description, arrays = files.read(path, STREAM_KIND)
        return cls.from_state(description, handed_over(arrays))


def weights_of(batch: Batch) -> np.ndarray | None:
    """Return how much each row counts, 0 without a label; None when all count 1."""
    weights = batch.importance
    if (weights == 1.0).all() and (batch.codes >= 0).all():
        return None
    bad = np.flatnonzero(~((weights >= 0.0) & (weights < np.inf)))
    if bad.size:
        line, value = int(batch.lines[bad[0]]), float(weights[bad[0]])
        raise ValueError(f"line {line}: the weight {value:g} is not a finite number >= 0; 0 leaves a row out")
    return np.where(batch.codes >= 0, weights, 0.0)


def _short(names: tuple[str, ...]) -> str:
    text = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return text or "none"
