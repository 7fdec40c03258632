"""The pool for attributes: a few cheap, diverse learners on scaled attributes, fused as sub-experts of another.

The members are a team for sparse attributes and the recent-label voter, or a team for dense ones, or both (see
`linmax.learners.teams`). Each member's scores of the known classes are centred, divided by their root mean square so
far and made shares in [0, 1] by softmax. The shares are sub-experts x_m with weights w, all 1 at first, for AROW with
a full matrix S, I at first: with z = x^label - x^rival, if w.z < 1 then b = 1/(z'Sz + 10), w <- w + (1 - w.z) b Sz,
S <- S - b Sz (Sz)' + 10^-4 I. What is added keeps it tracking. Nothing is to be tuned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numba import boolean, float32, int32, types

from linmax.core.contract import KNOWN, Indices, Instances, Labels, Matrix, Vector
from linmax.core.linear_max import top_two
from linmax.jit.compiling import kernel
from linmax.learners import Whole, Worker, silent
from linmax.learners.recent_label import RecentWorker
from linmax.learners.teams import MEMBERS, DenseTeam, SparseTeam, Task

__all__ = ["SLOTS", "AttributePool", "AttributeWorker", "Seen"]

REGULARISER = 10.0
INFLATION = 1e-4
DECAY = 0.8  # of the recent-label voter
CHUNK = 1024  # trials whose scores are kept at a time
FOUR = 4  # numbers of classes that the members have room for are multiples of it


@kernel()
def exponentials(values: np.ndarray, bits: np.ndarray, known: int) -> None:
    """exp of single-precision numbers <= 0, in place, to 1e-6; ``bits`` are the same numbers as integers.

    Plain loops, which become vectors: 2^y = 2^floor(y) times a polynomial in the rest.
    """
    for c in range(known):
        y = max(values[c] * np.float32(1.4426950408889634), np.float32(-126.0))
        whole = np.floor(y)
        t = y - whole
        p = np.float32(0.0018671303)
        p = p * t + np.float32(0.00901702968)
        p = p * t + np.float32(0.0557999137)
        p = p * t + np.float32(0.24016445)
        p = p * t + np.float32(0.693151312)
        values[c] = p * t + np.float32(1.0)
        bits[c] += np.int32(whole) << 23


@kernel()
def to_votes(
    scores: np.ndarray, bits: np.ndarray, known: int, squares: np.ndarray, m: int, trials: float, learn: bool
) -> None:
    """Scores of member m become shares, in place: centred, over their root mean square so far, softmax."""
    mean, square = 0.0, 0.0
    for c in range(known):
        mean += scores[c]
    mean /= max(known, 1)
    for c in range(known):
        square += (scores[c] - mean) ** 2
    total = squares[m] + square / max(known, 1)
    if learn:
        squares[m] = total
    factor = 1.0 / math.sqrt(total / (trials + 1.0)) if total > 0.0 else 0.0
    largest, sum_ = scores[0], 0.0
    for c in range(1, known):
        largest = max(largest, scores[c])
    for c in range(known):
        scores[c] = (scores[c] - largest) * factor
    exponentials(scores, bits, known)
    for c in range(known):
        sum_ += scores[c]
    for c in range(known):
        scores[c] /= sum_


@kernel()
def learn_weights(
    votes: np.ndarray, label: int, rival: int, weights: np.ndarray, matrix: np.ndarray, z: np.ndarray, along: np.ndarray
) -> None:
    """AROW's step on z = x^label - x^rival."""
    n, margin, v = weights.size, 0.0, 0.0
    for m in range(n):
        z[m] = votes[m, label] - votes[m, rival]
        margin += weights[m] * z[m]
    if margin >= 1.0:
        return
    for m in range(n):
        along[m] = 0.0
        for i in range(n):
            along[m] += matrix[m, i] * z[i]
        v += z[m] * along[m]
    b = 1.0 / (v + REGULARISER)
    for m in range(n):
        weights[m] += (1.0 - margin) * b * along[m]
        for i in range(n):
            matrix[m, i] -= b * along[m] * along[i]
        matrix[m, m] += INFLATION


@kernel(
    types.void(
        float32[:, :, ::1],
        int32[:, :, ::1],
        Labels,
        Indices,
        Vector,
        Matrix,
        Vector,
        Vector,
        boolean,
        Labels,
        Matrix,
        Matrix,
    )
)  # fmt: skip
def fuse(
    votes: np.ndarray,
    bits: np.ndarray,
    labels: np.ndarray,
    shape: np.ndarray,
    weights: np.ndarray,
    matrix: np.ndarray,
    squares: np.ndarray,
    trials: np.ndarray,
    learn: bool,
    predictions: np.ndarray,
    table: np.ndarray,
    room: np.ndarray,
) -> None:
    """Make votes of the members' scores, in place, and fuse them."""
    members, k = votes.shape[1], table.shape[1]
    for t in range(predictions.size):
        known = shape[KNOWN]
        for m in range(members):
            to_votes(votes[t, m], bits[t, m], known, squares, m, trials[0], learn)
        for c in range(k):
            table[t, c] = 0.0
        for m in range(members):
            for c in range(known):
                table[t, c] += weights[m] * votes[t, m, c]
        first, second = top_two(table[t], shape)
        predictions[t] = first
        if not learn:
            continue
        trials[0] += 1.0
        label = labels[t]
        if label >= known:
            shape[KNOWN] = label + 1
            if first >= 0:
                learn_weights(votes[t], label, first, weights, matrix, room[0], room[1])
        elif second >= 0:
            learn_weights(votes[t], label, second if first == label else first, weights, matrix, room[0], room[1])


SPARSE, DENSE = 0, 1
SLOTS = 2 * MEMBERS + 1  # members that there can be: a team for sparse attributes with the voter, one for dense ones


class Fused(NamedTuple):
    """What came of trials."""

    begin: int
    end: int
    predictions: np.ndarray
    table: np.ndarray  # scores
    votes: np.ndarray  # of the members, (trials, members, classes and more)


class Seen(NamedTuple):
    """A member of the pool, as `linmax show` has it."""

    name: str
    weight: float  # with which it is fused
    sparse: bool  # whether its attributes are the sparse ones
    table: np.ndarray | None  # its weights, (constant and attributes, classes and more)


class AttributeWorker(Worker):
    """The teams, in the order in which they joined, and the weights by which they are fused."""

    own = ("order", "weights", "matrix", "squares", "trials")

    def __init__(self) -> None:
        self.order = np.zeros(0, np.int64)
        self.teams: list[SparseTeam | DenseTeam] = []
        self.recent = RecentWorker(DECAY)
        self.weights, self.matrix = np.zeros(0), np.zeros((0, 0))
        self.squares, self.trials = np.zeros(0), np.zeros(1)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        found = {name: getattr(self, name) for name in self.own} | self.recent.arrays
        for place, team in enumerate(self.teams):
            found |= {f"team{place}.{name}": array for name, array in team.arrays.items()}
        return found

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        for name in self.own:
            setattr(self, name, arrays[name].copy())
        self.recent.restore(arrays)
        self.teams = [SparseTeam() if kind == SPARSE else DenseTeam() for kind in self.order]
        for place, team in enumerate(self.teams):
            team.restore({name: arrays[f"team{place}.{name}"] for name in team.names})

    def _fit(self, instances: Instances, k: int) -> None:
        """Let teams join for the attributes that these instances are the first to have, and make room."""
        if not instances.indptr.size and not instances.dense.shape[1]:
            raise ValueError("this pool learns from attributes, and these instances have none; use pool='votes'")
        if instances.indptr.size and SPARSE not in self.order:
            self._join(SPARSE, SparseTeam(), MEMBERS + 1)
        if instances.dense.shape[1] and DENSE not in self.order:
            self._join(DENSE, DenseTeam(), MEMBERS)
        self._make_room(instances, k)

    def _make_room(self, instances: Instances, k: int) -> None:
        for team in self.teams:
            team.fit(instances, FOUR * -(-k // FOUR))

    def _join(self, kind: int, team: SparseTeam | DenseTeam, members: int) -> None:
        old = len(self.weights)
        matrix = np.eye(old + members)
        matrix[:old, :old] = self.matrix
        self.matrix, self.weights = matrix, np.append(self.weights, np.ones(members))
        self.squares = np.append(self.squares, np.zeros(members))
        self.order, self.teams = np.append(self.order, kind), [*self.teams, team]

    def chunks(
        self, shape: np.ndarray, instances: Instances, labels: np.ndarray, begin: int, end: int, k: int
    ) -> Iterator[Fused]:
        """Predict and learn trials begin..end, CHUNK at a time.

        The members that lead are a chunk ahead, in a thread of their own. No member sees another: nothing hangs on it.
        """
        self._fit(instances, k)
        known, tasks = int(shape[KNOWN]), []
        for first in range(begin, end, CHUNK):
            last = min(end, first + CHUNK)
            tasks.append(Task(known, instances, labels, first, last, True))
            known = max(known, int(labels[first:last].max()) + 1)
        if len(tasks) == 1:
            yield self._follow(tasks[0], *self._lead(tasks[0]), shape, k)
            return
        with ThreadPoolExecutor(1, "linmax-members") as beside:
            led = beside.submit(self._lead, tasks[0])
            for task, coming in zip(tasks, [*tasks[1:], None], strict=True):
                votes, scaled = led.result()
                if coming is not None:
                    led = beside.submit(self._lead, coming)
                yield self._follow(task, votes, scaled, shape, k)

    def judged(self, shape: np.ndarray, instances: Instances, size: int, k: int) -> Fused:
        """Predictions, scores and votes without learning. Attributes not met before leave nothing behind."""
        known = int(shape[KNOWN])
        if not self.teams:
            if not instances.indptr.size and not instances.dense.shape[1]:
                predictions = silent(shape, np.full(size, known))
                return Fused(0, size, predictions, np.zeros((size, k)), np.zeros((size, 0, k), np.float32))
            fresh = AttributeWorker()
            fresh._fit(instances, k)
            return fresh.judged(shape, instances, size, k)
        used = [(team, team.used) for team in self.teams if isinstance(team, SparseTeam)]
        self._make_room(instances, k)
        task = Task(known, instances, np.zeros(0, np.int32), 0, size, False)
        found = self._follow(task, *self._lead(task), shape, k)
        for team, rows in used:
            team.used = rows
        return found

    def _places(self) -> Iterator[tuple[int, SparseTeam | DenseTeam]]:
        """Each team, after the place of its first member; the recent-label voter comes last among sparse ones."""
        place = 0
        for kind, team in zip(self.order, self.teams, strict=True):
            yield place, team
            place += MEMBERS + 1 if kind == SPARSE else MEMBERS

    def _lead(self, task: Task) -> tuple[np.ndarray, np.ndarray]:
        """The members' scores, (trials, members, classes), but for those that follow; and what these need."""
        votes = np.zeros((task.end - task.begin, len(self.weights), self.teams[0].cells.shape[2]), np.float32)
        scaled = np.zeros(0, np.float32)
        for place, team in self._places():
            if isinstance(team, SparseTeam):
                scaled = team.lead(task, votes, place)
            else:
                team.play(task, votes, place)
        return votes, scaled

    def _follow(self, task: Task, votes: np.ndarray, scaled: np.ndarray, shape: np.ndarray, k: int) -> Fused:
        """The others' scores, and all of them fused."""
        known, instances, labels, begin, end, learn = task
        size = end - begin
        for place, team in self._places():
            if isinstance(team, SparseTeam):
                team.follow(task, scaled, votes, place)
                shape[KNOWN] = known
                if learn:
                    votes[:, place + MEMBERS, :k] = self.recent.play(shape, instances, labels, begin, end, k)[1]
                else:
                    votes[:, place + MEMBERS, :k] = self.recent.judge(shape, instances, size, k)[1]
        shape[KNOWN] = known
        predictions, table = np.zeros(size, np.int32), np.zeros((size, k))
        learned = labels[begin:end] if learn else labels
        fuse(
            votes, votes.view(np.int32), learned, shape, self.weights, self.matrix, self.squares, self.trials, learn,
            predictions, table, np.zeros((2, len(self.weights))),
        )  # fmt: skip
        return Fused(begin, end, predictions, table, votes)

    def members(self) -> list[Seen]:
        """The members in their order."""
        found = []
        for place, team in self._places():
            tables = team.tables()
            if isinstance(team, SparseTeam):
                tables |= {"recent labels": None}
            for (name, table), weight in zip(tables.items(), self.weights[place:], strict=False):
                found.append(Seen(name, float(weight), isinstance(team, SparseTeam), table))
        return found

    def in_slots(self, votes: np.ndarray, k: int) -> np.ndarray:
        """The members' votes, (trials, SLOTS, classes), each at a place of its own; absent ones give 0."""
        slots = np.zeros((len(votes), SLOTS, k))
        for place, team in self._places():
            first, members = (0, MEMBERS + 1) if isinstance(team, SparseTeam) else (MEMBERS + 1, MEMBERS)
            slots[:, first : first + members] = votes[:, place : place + members, :k]
        return slots

    def play(
        self, shape: np.ndarray, instances: Instances, labels: np.ndarray, begin: int, end: int, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        predictions, table = np.zeros(end - begin, np.int32), np.zeros((end - begin, k))
        for first, last, classes, scores, _ in self.chunks(shape, instances, labels, begin, end, k):
            place = slice(first - begin, last - begin)
            predictions[place], table[place] = classes, scores
        return predictions, table

    def judge(self, shape: np.ndarray, instances: Instances, size: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        found = self.judged(shape, instances, size, k)
        return found.predictions, found.table


@dataclass(frozen=True)
class AttributePool(Whole):
    """Description of the pool; made by ``linmax.vr_combine(pool="attributes")``."""

    name: ClassVar[str] = "attributes"
    from_zero: ClassVar[bool] = False
    makes_room: ClassVar[bool] = True

    def worker(self, size: int) -> Worker:
        return AttributeWorker()
