"""Two classes: the linear-threshold algorithms themselves, threshold forms of Winnow included.

This is what the linear-max transformation starts from, and so does not stand on `linmax.models.model.Model`, which is
what it leads to: there every class has weights and the highest score wins, here there is one weight for each attribute,
and a threshold that may be fixed, which the transformation does not lift (`Rule.lifts`). Rules and their steps, arrays,
the reading of instances and `Trace` are those of everything else.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from copy import copy
from typing import Any, cast

import numpy as np
from numba import float64, int64
from scipy import sparse

from linmax.core.averages import NUMBERS
from linmax.core.contract import (
    GAUGE,
    OWN,
    REACH,
    SHIFT,
    TRIALS,
    UPDATES,
    Bytes,
    Labels,
    Played,
    RunningTrials,
    State,
    Vector,
)
from linmax.core.member import FAILED, RunningRule, present
from linmax.core.rivals import activation
from linmax.data.arrays import Layout
from linmax.data.instances import Instances
from linmax.data.instances import instances as instances_of
from linmax.data.names import as_array, distinct_labels, label_array
from linmax.engine.bench import Room, new_member
from linmax.engine.notation import as_rule
from linmax.jit.compiling import kernel
from linmax.models.trace import Trace
from linmax.techniques.node import Run
from linmax.techniques.technique import LearnerLike
from linmax.util.aliases import Attributes, Label, Matrix, Name
from linmax.util.aliases import Labels as Answers
from linmax.util.checks import boolean

__all__ = ["LinearThreshold"]


@kernel()
def support_of(trials: RunningTrials, t: int, index: np.ndarray, x: np.ndarray) -> int:
    """The attributes of instance t that are not 0: coordinates and values. Coordinate 0 is the constant."""
    count, dense, indptr = 0, trials.dense, trials.indptr
    if trials.constant != 0.0:
        index[count] = 0
        x[count] = trials.constant
        count += 1
    for f in range(dense.shape[1]):
        if dense[t, f] != 0.0:
            index[count] = 1 + f
            x[count] = dense[t, f]
            count += 1
    if indptr.size:
        for place in range(indptr[t], indptr[t + 1]):
            index[count] = 1 + dense.shape[1] + trials.indices[place]
            x[count] = trials.values[place]
            count += 1
    return count


@kernel(int64(RunningRule.numba_type, float64, int64, Labels, Bytes, Vector))
def learn(
    m: RunningRule,
    threshold: float,
    zero_side: int,
    predictions: np.ndarray,
    changes: np.ndarray,
    activations: np.ndarray,
) -> int:
    """Play the trials; their labels are -1 and +1, or 0 to predict without learning."""
    sides, z, counts = m.trials.labels, m.z, m.counts
    for t in range(sides.size):
        count = support_of(m.trials, t, m.index, z)
        total = activation(m, count) - threshold
        predictions[t] = zero_side if total == 0.0 else (1 if total > 0.0 else -1)
        changes[t] = 0
        activations[t] = total
        side = sides[t]
        if side == 0:
            continue
        counts[TRIALS] += 1
        m.margin = side * total
        if m.margin > m.scalars[REACH]:
            continue
        for place in range(count):
            z[place] *= side
        outcome = present(m, count)
        if outcome == FAILED:
            return t
        changes[t] = outcome
        counts[UPDATES] += outcome
    return -1


class LinearThreshold:
    """A two-class linear-threshold algorithm: predict the sign of w.x - theta, then let the rule update.

    Parameters
    ----------
    rule
        Any rule, the threshold forms of Winnow and `elimination` included, or its text.
    labels
        (negative, positive): any two labels. Without it they are taken from the first labels seen, sorted.
    zero_label
        The label predicted when w.x = 0; the positive one by default. It changes predictions, never weights.
    constant
        Add an attribute that is always 1, so that a threshold is learned.

    Attributes
    ----------
    mistakes, updates, trials
        Counters. Every mistake bound bounds the updates (w.z at most the rule's reach), hence the mistakes.
    inconsistent
        For `elimination`: positives that no literal explains.

    References
    ----------
    Littlestone (1988), Learning quickly when irrelevant attributes abound: a new linear-threshold algorithm.

    Examples
    --------
    >>> import linmax
    >>> learner = linmax.theory.LinearThreshold(linmax.rules.winnow(2, threshold=4))
    >>> trace = learner.run([[1, 0, 0, 0], [0, 1, 1, 1], [1, 1, 0, 0]], [1, 0, 1])
    >>> trace.mistakes.tolist(), learner.weights.tolist()
    ([1, 1, 2], [4.0, 2.0, 1.0, 1.0])
    """

    def __init__(
        self,
        rule: LearnerLike,
        labels: tuple[Label, Label] | None = None,
        zero_label: Label | None = None,
        constant: bool = False,
    ) -> None:
        self.learner = as_rule(rule)
        if self.learner.rivals != "best":
            raise ValueError(f"{self.learner} chooses among rivals, but of two classes there is one; leave rivals out")
        self.constant = boolean("constant", constant)
        if labels is not None and (len(labels) != 2 or labels[0] == labels[1]):
            raise ValueError(f"labels must be two different labels (negative, positive), got {labels!r}")
        self.labels = None if labels is None else (labels[0], labels[1])
        self.zero_label = zero_label
        self.mistakes = 0
        self._state: State | None = None
        self._layout: Layout | None = None
        self._vocabulary: Mapping[Name, int] | None = None
        if zero_label is not None and not self.learner.lifts:
            raise ValueError(
                f"zero_label={zero_label!r}: {self.learner} predicts the positive label at its threshold; remove it"
            )

    def __repr__(self) -> str:
        return f"<{self.learner}: {self.trials} trials, {self.mistakes} mistakes, {self.updates} updates>"

    @property
    def trials(self) -> int:
        """Trials played so far."""
        return 0 if self._state is None else int(self._state.counts[0, TRIALS])

    @property
    def updates(self) -> int:
        """Updates made so far."""
        return 0 if self._state is None else int(self._state.counts[0, UPDATES])

    @property
    def inconsistent(self) -> int:
        """Positives that no remaining literal explains (`elimination` only)."""
        if self.learner.name != "elimination":
            raise AttributeError(f"inconsistent belongs to elimination, not to {self.learner}")
        return 0 if self._state is None else int(self._state.scalars[0, OWN])

    @property
    def log_scale(self) -> float:
        """The true weights are `weights` times exp(log_scale)."""
        return 0.0 if self._state is None else float(self._state.scalars[0, SHIFT] + self._state.scalars[0, GAUGE])

    @property
    def weights(self) -> np.ndarray:
        """One weight an attribute; with a constant, its weight comes first."""
        if self._state is None:
            raise ValueError("the learner has seen no instance yet, so the number of its weights is not known")
        return self._state.weights[0, 0 if self.constant else 1 :].copy()

    def run(self, attributes: Matrix, labels: Answers) -> Trace:
        """Play trials: predict each row, then see its label and update."""
        instances = self._instances(attributes)
        names = label_array(labels)
        if names.ndim != 1 or len(names) != len(instances):
            raise ValueError(f"labels must be one per trial: got shape {names.shape} for {len(instances)} instances")
        distinct, inverse = distinct_labels(names)
        pair = self.labels
        if pair is None:
            if len(distinct) != 2:
                raise ValueError(
                    f"labels must have two distinct values, got {distinct!r}; pass labels=(negative, positive)"
                )
            pair = (distinct[0], distinct[1])
        for name in distinct:
            if name not in pair:
                t = int(np.flatnonzero(inverse == distinct.index(name))[0])
                raise ValueError(f"labels: {name!r} at trial {t} is neither {pair[0]!r} nor {pair[1]!r}")
        self._check_zero(pair)
        self.labels = pair
        return self._play(instances, np.array([1 if name == pair[1] else -1 for name in distinct], np.int32)[inverse])

    def learn(self, attributes: Attributes, label: Label) -> Label:
        """One trial: returns the prediction made before the label was seen."""
        if self.labels is None:
            raise ValueError("learn() needs to know both labels; pass labels=(negative, positive) to LinearThreshold")
        return cast("Label", self.run(_rows(attributes)[0], [label]).predictions[0])

    def score(self, attributes: Attributes | Matrix) -> float | np.ndarray:
        """Return w.x - theta of each row, or of one instance, up to a positive factor; nothing is learned."""
        rows, single = _rows(attributes)
        found = self._judge(rows)[1]
        return float(found[0]) if single else found

    def predict(self, attributes: Attributes | Matrix) -> Label | np.ndarray:
        """Return the label of each row, or of one instance, under the current weights; nothing is learned."""
        if self.labels is None:
            raise ValueError("predict() requires both labels; pass labels=(negative, positive), or call run first")
        rows, single = _rows(attributes)
        found = self._names(self._judge(rows)[0])
        return cast("Label", found[0]) if single else found

    # -- lowering --

    def _check_zero(self, pair: tuple[Label, Label]) -> None:
        if self.zero_label is not None and self.zero_label not in pair:
            raise ValueError(f"zero_label must be {pair[0]!r} or {pair[1]!r}, got {self.zero_label!r}")

    def _instances(self, attributes: Matrix) -> Instances:
        instances = instances_of(attributes=attributes, thresholds=self.constant, vocabulary=self._vocabulary)
        by_name = self._vocabulary is not None and instances.vocabulary is not None
        if self._layout is not None and instances.layout != self._layout and not by_name:
            raise ValueError(
                f"instances have {instances.layout}, but the learner was made for {self._layout}; "
                "give it the same attributes"
            )
        instances.refuse_huge()
        rule = self.learner
        if rule.bounded and instances.range > 1.0 + 1e-12:
            raise ValueError(
                f"{rule} needs attributes of size at most 1, but these reach {instances.range:g}; scale them first"
            )
        if rule.nonnegative:
            least = min(
                instances.dense.min(initial=0.0),
                instances.csr.data.min(initial=0.0) if instances.csr is not None else 0.0,
            )
            if least < 0.0:
                raise ValueError(
                    f"{rule} needs attributes in [0, 1], got {least:g}; use balanced_winnow or negated literals"
                )
        return instances

    def _prepare(self, instances: Instances) -> State:
        count = 1 + instances.layout.dense + instances.layout.sparse
        if self._state is None or count > self._state.weights.shape[1]:
            self._state = self._grown(self._state, count)
        self._layout, self._vocabulary = instances.layout, instances.vocabulary
        return self._state

    def _grown(self, state: State | None, count: int) -> State:
        """Return the state over more coordinates: new ones are as if they had always been there with the value 0."""
        rule, first = self.learner, int(not self.constant)  # without a constant there is no coordinate 0
        weights, memory = np.full((1, count), rule.start), np.full((1, len(rule.slots), count), np.nan)
        weights[0, :first] = 0.0
        rule.fill(memory[0], np.arange(first, count))
        if state is None:
            scalars = np.array([rule.first_scalars()])
            rule.place_first(weights[0], memory[0], scalars[0], np.arange(first, count))
            counts, shape = np.zeros((1, 5), np.int64), np.zeros(5, np.int64)
            return State(weights, memory, scalars, np.zeros((1, 0)), np.zeros((1, NUMBERS)), counts, shape)
        before = state.weights.shape[1]
        weights *= math.exp(-state.scalars[0, SHIFT])
        weights[:, :before], memory[:, : state.memory.shape[1], :before] = state.weights, state.memory
        return state._replace(weights=weights, memory=memory, scalars=state.scalars.copy())

    def _loop(self, instances: Instances, sides: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        state = self._prepare(instances)
        size = len(instances)
        predictions, changes, activations = np.zeros(size, np.int32), np.zeros(size, np.uint8), np.zeros(size)
        zero_side = -1 if self.zero_label is not None and self.labels and self.zero_label == self.labels[0] else 1
        theta = 0.0 if self.learner.threshold is None else self.learner.threshold
        trials = RunningTrials(**instances.compiled(())._replace(labels=sides)._asdict(), shape=state.shape)
        member = new_member(Run(self.learner), state, 0, trials, Played(), False)
        coordinates = state.weights.shape[1]
        Room.of(coordinates, self.learner.everywhere, 0, 1 + coordinates, 0).lend(member)
        failed = learn(member, theta, zero_side, predictions, changes, activations)
        if failed >= 0:
            raise OverflowError(
                f"the weights of {self.learner} left the range of floats at trial {failed}; scale the instances down"
            )
        return predictions, changes, activations

    def _play(self, instances: Instances, sides: np.ndarray) -> Trace:
        surprised = self.inconsistent if self.learner.name == "elimination" else 0
        predictions, changes, _ = self._loop(instances, sides)
        wrong = predictions != sides
        self.mistakes += int(wrong.sum())
        if self.learner.name == "elimination" and self.inconsistent > surprised:
            warnings.warn(
                f"{self.inconsistent - surprised} positive instances have no literal left: the labels are not a "
                "disjunction of the attributes",
                stacklevel=3,
            )
        model: Any = self  # plays, predicts and shows its weights as a `Model` does
        return Trace(model, self._names(predictions), wrong, changes != 0)

    def _judge(self, rows: Matrix) -> tuple[np.ndarray, np.ndarray]:
        instances = self._instances(rows)
        learner = copy(self) if self._state is None else self  # the first weights are not kept: nothing was learned
        predictions, _, activations = learner._loop(instances, np.zeros(len(instances), np.int32))
        return predictions, activations

    def _names(self, sides: np.ndarray) -> np.ndarray:
        assert self.labels is not None
        return as_array(self.labels)[(sides > 0).astype(int)]


def _rows(attributes: Attributes | Matrix) -> tuple[Matrix, bool]:
    """Return rows, and whether a single instance was given: a mapping, or numbers without rows."""
    if isinstance(attributes, Mapping):
        return cast("Matrix", [attributes]), True
    array: np.ndarray | sparse.sparray
    array = cast("sparse.sparray", attributes) if sparse.issparse(attributes) else np.asarray(attributes)
    if array.ndim == 1 and array.dtype != object:  # objects are rows of mappings
        return array.reshape((1, -1)), True
    return cast("Matrix", attributes), False
