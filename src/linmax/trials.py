"""The only loop over instances: predict, see the label, let the rule update.

`run` lowers a description to arrays once, plays the trials in compiled code and returns a `Trace`; `Trace.learner`
is the `Machine` afterwards, which goes on learning, predicts, and shows its weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numba import int64, types

from linmax.checks import boolean, whole
from linmax.contract import (
    DISCOVER,
    EXPERTS,
    GAUGE,
    HUGE,
    KNOWN,
    LARGEST,
    MASS,
    ON_TIES,
    PEAK,
    REACH,
    SHIFT,
    SPREAD,
    STEP,
    STRIDE,
    TRIALS,
    UPDATES,
    Bytes,
    Instances,
    InstancesT,
    Labels,
    Matrix,
    Members,
    MembersT,
    Rule,
    State,
    StateT,
    Vector,
    address_of,
    borrow,
    call_spread,
    call_step,
    kernel,
)
from linmax.instances import Experts
from linmax.linear_max import TINY, difference, rescore, score, top_two
from linmax.notation import as_learner

__all__ = ["Machine", "Trace", "Weights", "run"]


# -- kernels ------------------------------------------------------------------------------------------------------


@kernel()
def rescale(spread: int, weights: np.ndarray, memory: np.ndarray, scalars: np.ndarray, params: np.ndarray) -> None:
    """Raise SHIFT so that the largest stored weight becomes 1. Rare: a weight must first grow by 150 decades."""
    largest = -np.inf
    for i in range(weights.size):
        factor, log = call_spread(spread, memory, scalars, i, params)
        if factor == factor and factor != 0.0:
            largest = max(largest, log + math.log(abs(factor)))
    shrink = math.exp(scalars[SHIFT] - largest)
    scalars[SHIFT] = largest
    scalars[REACH] *= shrink
    scalars[MASS] *= shrink
    scalars[PEAK] *= shrink
    for i in range(weights.size):
        factor, log = call_spread(spread, memory, scalars, i, params)
        if factor == factor:  # nan: the coordinate does not exist
            weights[i] = factor * math.exp(log - largest)


@kernel()
def settle(
    spread: int, weights: np.ndarray, memory: np.ndarray, scalars: np.ndarray, params: np.ndarray, index: np.ndarray
) -> bool:
    """After an update: keep the weights in range. False when a weight has left it and cannot be brought back."""
    for place in range(index.size):
        if not abs(weights[index[place]]) < HUGE:
            if spread == 0:
                return False
            rescale(spread, weights, memory, scalars, params)
            return True
    return True


@kernel()
def everything(index: np.ndarray, z: np.ndarray, count: int, full_index: np.ndarray, full_z: np.ndarray) -> None:
    """z over all coordinates, for rules whose update may change every weight."""
    for i in range(full_index.size):
        full_index[i] = i
        full_z[i] = 0.0
    for place in range(count):
        full_z[index[place]] = z[place]


@kernel(int64(MembersT, StateT, int64, InstancesT, Labels, int64, int64, int64, Labels, Bytes, Vector))
def learn(
    members: Members,
    state: State,
    member: int,
    instances: Instances,
    labels: np.ndarray,
    begin: int,
    end: int,
    support: int,
    predictions: np.ndarray,
    changes: np.ndarray,
    margins: np.ndarray,
) -> int:
    """Play trials begin..end for one member. Returns -1, or the trial at which its weights left the range."""
    step, spread = members.steps[member], members.spreads[member]
    weights, memory = borrow(state.weights[member]), borrow(state.memory[member])
    scalars, params = borrow(state.scalars[member]), borrow(members.params[member])
    shape = borrow(state.shape)
    scores_kept = np.empty(max(shape[STRIDE], instances.scores.shape[2]))
    index_kept, z_kept = np.empty(support, np.int64), np.empty(support)
    size = weights.size if members.everywhere[member] else 0
    full_index_kept, full_z_kept = np.empty(size, np.int64), np.empty(size)
    scores, index, z = borrow(scores_kept), borrow(index_kept), borrow(z_kept)
    full_index, full_z = borrow(full_index_kept), borrow(full_z_kept)
    for t in range(begin, end):
        label = labels[t]
        score(instances, t, shape, weights, scores)
        first, second = top_two(scores, shape)
        if spread != 0 and first >= 0 and abs(scores[first]) < TINY:
            rescore(instances, t, shape, spread, memory, scalars, params, index, z, scores)
            first, second = top_two(scores, shape)
        predictions[t] = first
        changes[t] = 0
        state.counts[member, TRIALS] += 1
        rival = second if first == label else first
        new = label >= shape[KNOWN]
        if new:
            shape[KNOWN] = label + 1
        if rival < 0:
            continue  # no other class is known: nothing to learn
        margin = (0.0 if new else scores[label]) - scores[rival]
        if margins.size:
            margins[t] = margin * math.exp(scalars[SHIFT] + scalars[GAUGE])
        if not (margin <= scalars[REACH] or new) or (first == label and not shape[ON_TIES] and margin <= 0.0):
            continue
        count = difference(instances, t, shape, -1 if new else label, rival, index, z)
        if size:
            everything(index, z, count, full_index, full_z)
            changed = call_step(step, weights, memory, scalars, full_index, full_z, margin, params)
        else:
            changed = call_step(step, weights, memory, scalars, index[:count], z[:count], margin, params)
        if changed:
            changes[t] = 1
            state.counts[member, UPDATES] += 1
            if not settle(spread, weights, memory, scalars, params, full_index if size else index[:count]):
                return t
    return -1


@kernel(types.void(MembersT, StateT, int64, InstancesT, int64, int64, int64, Labels, Matrix))
def judge(
    members: Members,
    state: State,
    member: int,
    instances: Instances,
    begin: int,
    end: int,
    support: int,
    predictions: np.ndarray,
    table: np.ndarray,
) -> None:
    """Predictions, and scores where ``table`` has rows, without learning."""
    spread = members.spreads[member]
    weights, memory = borrow(state.weights[member]), borrow(state.memory[member])
    scalars, params, shape = borrow(state.scalars[member]), borrow(members.params[member]), borrow(state.shape)
    scores = np.empty(max(shape[STRIDE], instances.scores.shape[2]))
    index, z = np.empty(support, np.int64), np.empty(support)
    for t in range(begin, end):
        score(instances, t, shape, weights, scores)
        first, _ = top_two(scores, shape)
        if spread != 0 and first >= 0 and abs(scores[first]) < TINY:
            rescore(instances, t, shape, spread, memory, scalars, params, index, z, scores)
            first, _ = top_two(scores, shape)
        predictions[t] = first
        if table.shape[0]:
            for c in range(table.shape[1]):
                table[t, c] = scores[c]


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


def _stride(classes: int) -> int:
    """Classes a row of weights has room for: whole vectors, so that rows start at cache lines."""
    if classes <= 2:
        return classes
    return 4 if classes <= 4 else -(-classes // 8) * 8


def _aligned(*shape: int) -> np.ndarray:
    """Zeros that start at a cache line."""
    size = math.prod(shape)
    raw = np.zeros(size + 8)
    offset = (-raw.ctypes.data % 64) // 8
    return raw[offset : offset + size].reshape(shape)


class Machine:
    """A learner with its state: what `run` leaves behind. Make one through `run`."""

    def __init__(
        self,
        learner: Rule,
        instances: Experts,
        classes: Sequence[Any],
        *,
        tie: str,
        update_on_tie: bool,
        discover: bool,
    ) -> None:
        if tie not in ("smallest", "largest"):
            raise ValueError(f"tie must be 'smallest' or 'largest', got {tie!r}")
        if not learner.lifts:
            raise ValueError(
                f"{learner} has a fixed threshold and does not lift to many classes; use LinearThreshold({learner!s}), "
                "or a zero-threshold rule such as winnow(1.1)"
            )
        self.learner = learner
        self.classes = list(classes)
        self.layout = instances.layout
        k = len(self.classes)
        stride = _stride(k)
        experts = self.layout.voters + self.layout.raters
        rows = self.layout.rows
        coordinates = experts + rows * stride
        real = np.concatenate([np.ones(experts, bool), np.tile(np.arange(stride) < k, rows)])
        weights = _aligned(1, coordinates)
        weights[:, real] = learner.start
        memory = np.full((1, len(learner.slots), coordinates), np.nan)
        for slot, value in enumerate(learner.slots):
            memory[0, slot, real] = value
        scalars = np.array([learner.first_scalars(int(real.sum()))])
        known = 0 if discover else k
        shape = np.array([experts, stride, known, tie == "largest", update_on_tie, discover], np.int64)
        self.state = State(weights, memory, scalars, np.zeros((1, 2), np.int64), shape)
        self._members = Members(
            np.array([address_of(learner.step, STEP)]),
            np.array([address_of(learner.spread, SPREAD)]),
            np.array([learner.everywhere], np.int64),
            np.array([learner.values], float).reshape(1, -1),
        )

    def __repr__(self) -> str:
        return f"<{self.learner} over {len(self.classes)} classes after {self.trials} trials>"

    @property
    def trials(self) -> int:
        """Trials played so far."""
        return int(self.state.counts[0, TRIALS])

    @property
    def updates(self) -> int:
        """Updates made so far; all mistake bounds bound this."""
        return int(self.state.counts[0, UPDATES])

    @property
    def known(self) -> list[Any]:
        """The classes that may be predicted: all, or in discovery those whose label has been seen."""
        return self.classes[: int(self.state.shape[KNOWN])]

    @property
    def weights(self) -> Weights:
        """A copy of the weights (see `Weights`)."""
        stored = self.state.weights[0]
        experts, stride, k = int(self.state.shape[EXPERTS]), int(self.state.shape[STRIDE]), len(self.classes)
        rows = stored[experts:].reshape(-1, stride)[:, :k]
        has_constant = self.layout.constant != 0.0
        scalars = self.state.scalars[0]
        return Weights(
            stored[: self.layout.voters].copy(),
            stored[self.layout.voters : experts].copy(),
            rows[0].copy() if has_constant else np.zeros(0),
            rows[1:].copy(),
            float(scalars[SHIFT] + scalars[GAUGE]),
        )

    def margin(self, instances: Experts, labels: Sequence[Any]) -> float:
        """min over trials of (zeta(label) - zeta(rival)) / (sqrt(2) ||w||_2): the margin that these weights give.

        For attributes alone this is the textbook margin of a multi-class linear classifier: with R = instances.radius
        and gamma the largest margin of any weights, cyclic passes of the Perceptron end after R^2/gamma^2 violations.
        """
        numbers = self._numbers(labels, len(instances))
        if not len(numbers) or len(self.classes) < 2:
            raise ValueError("margin needs at least one instance and two classes")
        table = self.scores(instances)
        rows = np.arange(len(numbers))
        right = table[rows, numbers].copy()
        table[rows, numbers] = -np.inf
        norm = float(np.linalg.norm(self.weights.flat))
        return float((right - table.max(axis=1)).min() / (math.sqrt(2.0) * norm)) if norm else 0.0

    def run(self, instances: Experts, labels: Sequence[Any], *, margins: bool = False) -> Trace:
        """Go on with further trials; returns their Trace."""
        _refuse_others(instances)
        numbers = self._numbers(labels, len(instances))
        return self._play(self._fit(instances), numbers, margins)

    def predict(self, instances: Experts) -> np.ndarray:
        """The class of each instance under the current weights; nothing is learned."""
        return self._names(self._judge(instances, 0)[0])

    def scores(self, instances: Experts) -> np.ndarray:
        """The votes zeta(j) of each instance for each class, up to one positive factor; nothing is learned."""
        return self._judge(instances, len(self.classes))[1]

    def _judge(self, instances: Experts, columns: int) -> tuple[np.ndarray, np.ndarray]:
        played = self._fit(instances)
        size = len(instances)
        predictions = np.zeros(size, np.int32)
        table = np.zeros((size if columns else 0, columns))
        judge(self._members, self.state, 0, played, 0, size, _support(played), predictions, table)
        return predictions, table

    def _fit(self, instances: Experts) -> Instances:
        """The instances in this machine's classes, after the checks that its rule needs."""
        _refuse_others(instances)
        if instances.layout != self.layout:
            raise ValueError(f"instances have {instances.layout}, but the learner was made for {self.layout}")
        if self.learner.bounded and instances.range > 1.0 + 1e-12:
            raise ValueError(
                f"{self.learner} needs ratings that differ by at most 1 and attributes in [-1, 1], but the instances reach "
                f"{instances.range:g}; pass scale='max' to experts(...) or divide them yourself"
            )
        return instances.compiled(self.classes)

    def _numbers(self, labels: Sequence[Any], size: int) -> np.ndarray:
        """Labels as class indices."""
        names = np.asarray(labels, dtype=object) if not isinstance(labels, np.ndarray) else labels
        if names.ndim != 1:
            raise ValueError(f"labels must be one a trial, got an array of shape {names.shape}")
        if len(names) != size:
            raise ValueError(f"labels and instances must have the same length, got {len(names)} and {size}")
        distinct, inverse = unique_labels(names)
        if self.state.shape[DISCOVER]:  # classes are numbered as they appear; those never seen have no weights yet
            order = [*self.known, *(distinct[i] for i in dict.fromkeys(inverse.tolist())), *self.classes]
            self.classes = [name for name in dict.fromkeys(order) if name in set(self.classes)]
        place = {name: i for i, name in enumerate(self.classes)}
        missing = [name for name in distinct if name not in place]
        if missing:
            t = int(np.flatnonzero(inverse == distinct.index(missing[0]))[0])
            raise ValueError(
                f"labels: {missing[0]!r} at trial {t} is not among the classes {_short(self.classes)}; "
                "pass all classes to experts(classes=...)"
            )
        return np.array([place[name] for name in distinct], np.int32)[inverse] if len(names) else np.zeros(0, np.int32)

    def _names(self, numbers: np.ndarray) -> np.ndarray:
        if (numbers < 0).any():  # before the first class is known
            return np.array([self.classes[i] if i >= 0 else None for i in numbers], dtype=object)
        return np.array(self.classes)[numbers] if len(numbers) else np.array([], dtype=np.array(self.classes).dtype)

    def _play(self, played: Instances, numbers: np.ndarray, margins: bool) -> Trace:
        size = len(numbers)
        predictions, changes = np.zeros(size, np.int32), np.zeros(size, np.uint8)
        kept = np.zeros(size if margins else 0)
        failed = learn(
            self._members, self.state, 0, played, numbers, 0, size, _support(played), predictions, changes, kept
        )
        if failed >= 0:
            raise OverflowError(
                f"the weights of {self.learner} left the range of floats at trial {failed}; scale the instances down, "
                "or use a rule that keeps logarithms, such as winnow or balanced_winnow"
            )
        return Trace(self, self._names(predictions), predictions != numbers, changes != 0, kept if margins else None)


def _support(played: Instances) -> int:
    """Most coordinates that a z can touch."""
    longest = int(np.diff(played.indptr).max(initial=0)) if played.indptr.size else 0
    return played.signs.size + played.scores.shape[1] + 2 * (1 + played.dense.shape[1] + longest)


def _refuse_others(instances: Any) -> None:
    if not isinstance(instances, Experts):
        raise TypeError(f"instances must come from experts(...), got {type(instances).__name__}; try experts(attributes=...)")


def _short(items: Sequence[Any]) -> str:
    return repr(list(items)) if len(items) <= 10 else f"[{', '.join(map(repr, items[:10]))}, ... {len(items)} in all]"


def unique_labels(labels: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Distinct labels (sorted when they can be) and the place of each label among them; missing ones are refused."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        t = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise ValueError(f"labels: {labels[t]!r} at trial {t} is not a class; drop the trial or fill it in")
    if labels.dtype != object:
        distinct, inverse = np.unique(labels, return_inverse=True)
        return distinct.tolist(), inverse
    for t, name in enumerate(labels):
        if name is None or name != name:
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
    """

    learner: Machine
    predictions: np.ndarray
    wrong: np.ndarray
    changed: np.ndarray
    margins: np.ndarray | None = None
    epochs: int = 1
    consistent: bool = False

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
        return f"<{self.learner.learner}: {len(self)} trials, {self.wrong.sum()} mistakes{share}, {self.changed.sum()} updates>"

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the mistake curve; needs matplotlib (the extra ``plot``). Returns the figure, saved when given a path."""
        from linmax.report import plot_mistakes

        return plot_mistakes({str(self.learner.learner): self.mistakes}, path)


def run(
    learner: Any,
    instances: Experts,
    labels: Sequence[Any],
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
    (['high', 'low', 'low'], [1, 2, 2])
    """
    described = as_learner(learner)
    _refuse_others(instances)
    whole("max_epochs", max_epochs, 1)
    boolean("update_on_tie", update_on_tie)
    names = np.asarray(labels, dtype=object) if not isinstance(labels, np.ndarray) else labels
    if names.ndim != 1 or len(names) != len(instances):
        raise ValueError(f"labels must be one a trial: got shape {names.shape} for {len(instances)} instances")
    machine = Machine(
        described, instances, _classes(instances, names), tie=tie, update_on_tie=update_on_tie, discover=discover
    )
    trace = machine.run(instances, names, margins=margins)
    traces = [trace]
    while len(traces) < max_epochs and traces[-1].changed.any():
        traces.append(machine.run(instances, names, margins=margins))
    if len(traces) > 1:
        trace = Trace(
            machine,
            np.concatenate([t.predictions for t in traces]),
            np.concatenate([t.wrong for t in traces]),
            np.concatenate([t.changed for t in traces]),
            np.concatenate([t.margins for t in traces]) if margins else None,  # type: ignore[misc]
        )
    return replace(trace, epochs=len(traces), consistent=not traces[-1].changed.any())


def _classes(instances: Experts, labels: np.ndarray) -> list[Any]:
    """All classes: those given, or else those met in votes and labels, sorted when they can be."""
    if instances.fixed:
        return list(instances.names)
    met = {*instances.names, *unique_labels(labels)[0]}
    if not met:
        raise ValueError("there are no trials and no classes; pass classes= to experts(...)")
    try:
        return sorted(met)
    except TypeError:
        return list(dict.fromkeys([*unique_labels(labels)[0], *instances.names]))
