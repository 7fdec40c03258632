"""The pool for attributes: a few cheap, diverse learners on scaled attributes, fused as sub-experts of another.

The members are a group for sparse attributes (`sparse_members`) and the recent-label voter, or a group for dense ones
(`dense_members`), or both; how they are fused is in `member_fusion`. Nothing is to be tuned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import methodcaller
from typing import ClassVar, NamedTuple

import numpy as np

from linmax.core.contract import KNOWN, Instances
from linmax.learners import Description, Running, silent
from linmax.learners.dense_members import DenseMembers
from linmax.learners.member_fusion import MemberFusion
from linmax.learners.members import MEMBERS, Task
from linmax.learners.mixing import Mixture
from linmax.learners.recent_label import RunningRecent
from linmax.learners.sparse_members import SparseMembers

__all__ = ["SLOTS", "AttributePool", "PoolMember", "RunningPool"]

DECAY = 0.8  # of the recent-label voter
CHUNK = 1024  # trials whose scores are kept at a time
FOUR = 4  # numbers of classes that the members have room for are multiples of it
SPARSE, DENSE = 0, 1  # kinds of groups
SIZES = {SPARSE: MEMBERS + 1, DENSE: MEMBERS}  # members of a group; the recent-label voter is with the sparse ones
FIRST_SLOTS = {SPARSE: 0, DENSE: MEMBERS + 1}
SLOTS = sum(SIZES.values())  # members that there can be
STORED = "team"  # what the groups are called in files


class FusedTrials(NamedTuple):
    """What came of trials."""

    begin: int
    end: int
    predictions: np.ndarray
    table: np.ndarray  # scores
    votes: np.ndarray  # of the members, (trials, members, classes and more)


class PoolMember(NamedTuple):
    """A member of the pool, to be looked at."""

    name: str
    weight: float  # with which it is fused
    sparse: bool  # whether its attributes are the sparse ones


class RunningPool(Running):
    """The groups of members, in the order in which they joined, and the weights by which they are fused."""

    def __init__(self) -> None:
        self.order = np.zeros(0, np.int64)  # kinds of the groups
        self.groups: list[SparseMembers | DenseMembers] = []
        self.recent = RunningRecent(DECAY)
        self.fusion = MemberFusion()

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        found = {"order": self.order} | self.fusion.arrays | self.recent.arrays
        for place, group in enumerate(self.groups):
            found |= {f"{STORED}{place}.{name}": array for name, array in group.arrays.items()}
        return found

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.order = arrays["order"].copy()
        self.fusion.restore(arrays)
        self.recent.restore(arrays)
        self.groups = [SparseMembers() if kind == SPARSE else DenseMembers() for kind in self.order]
        for place, group in enumerate(self.groups):
            group.restore({name: arrays[f"{STORED}{place}.{name}"] for name in group.names})

    def _fit(self, instances: Instances, k: int) -> None:
        """Let groups join for the attributes that these instances are the first to have, and make room."""
        if not instances.indptr.size and not instances.dense.shape[1]:
            raise ValueError("this pool learns from attributes, and these instances have none; use pool='votes'")
        if instances.indptr.size:
            self._join(SPARSE)
        if instances.dense.shape[1]:
            self._join(DENSE)
        self._make_room(instances, k)

    def _make_room(self, instances: Instances, k: int) -> None:
        for group in self.groups:
            group.fit(instances, _width(k))

    def _join(self, kind: int) -> None:
        if kind not in self.order:
            self.order = np.append(self.order, kind)
            self.groups = [*self.groups, SparseMembers() if kind == SPARSE else DenseMembers()]
            self.fusion.join(SIZES[kind])

    def group(self, kind: int) -> SparseMembers | DenseMembers | None:
        """The group of this kind, if it has joined."""
        return dict(zip(self.order.tolist(), self.groups, strict=True)).get(kind)

    # -- learning -------------------------------------------------------------------------------------------------

    def chunks(
        self, shape: np.ndarray, instances: Instances, labels: np.ndarray, begin: int, end: int, k: int
    ) -> Iterator[FusedTrials]:
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

    def judged(self, shape: np.ndarray, instances: Instances, size: int, k: int) -> FusedTrials:
        """Predictions, scores and votes without learning. Attributes not met before leave nothing behind."""
        known = int(shape[KNOWN])
        if not self.groups:
            if not instances.indptr.size and not instances.dense.shape[1]:
                predictions = silent(shape, np.full(size, known))
                return FusedTrials(0, size, predictions, np.zeros((size, k)), np.zeros((size, 0, k), np.float32))
            fresh = RunningPool()
            fresh._fit(instances, k)
            return fresh.judged(shape, instances, size, k)
        used = [(group, group.used) for group in self.groups if isinstance(group, SparseMembers)]
        self._make_room(instances, k)
        task = Task(known, instances, np.zeros(0, np.int32), 0, size, False)
        found = self._follow(task, *self._lead(task), shape, k)
        for group, rows in used:
            group.used = rows
        return found

    def _places(self) -> Iterator[tuple[int, SparseMembers | DenseMembers]]:
        """Each group, after the place of its first member; the recent-label voter comes last among sparse ones."""
        place = 0
        for kind, group in zip(self.order.tolist(), self.groups, strict=True):
            yield place, group
            place += SIZES[kind]

    def _lead(self, task: Task) -> tuple[np.ndarray, np.ndarray]:
        """The members' scores, (trials, members, classes), but for those that follow; and what these need."""
        votes = np.zeros((task.end - task.begin, len(self.fusion.weights), self.groups[0].cells.shape[2]), np.float32)
        scaled = np.zeros(0, np.float32)
        for place, group in self._places():
            if isinstance(group, SparseMembers):
                scaled = group.lead(task, votes, place)
            else:
                group.play(task, votes, place)
        return votes, scaled

    def _follow(self, task: Task, votes: np.ndarray, scaled: np.ndarray, shape: np.ndarray, k: int) -> FusedTrials:
        """The others' scores, and all of them fused."""
        known, instances, labels, begin, end, learn = task
        for place, group in self._places():
            if isinstance(group, SparseMembers):
                group.follow(task, scaled, votes, place)
                shape[KNOWN] = known
                if learn:
                    votes[:, place + MEMBERS, :k] = self.recent.play(shape, instances, labels, begin, end, k)[1]
                else:
                    votes[:, place + MEMBERS, :k] = self.recent.judge(shape, instances, end - begin, k)[1]
        shape[KNOWN] = known
        predictions, table = self.fusion.fuse(votes, labels[begin:end] if learn else labels, shape, learn, k)
        return FusedTrials(begin, end, predictions, table, votes)

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

    # -- looking at it, and mixing --------------------------------------------------------------------------------

    def in_slots(self, votes: np.ndarray, k: int) -> np.ndarray:
        """The members' votes, (trials, SLOTS, classes), each at a place of its own; absent ones give 0."""
        slots = np.zeros((len(votes), SLOTS, k))
        for kind, (place, _) in zip(self.order.tolist(), self._places(), strict=True):
            first, members = FIRST_SLOTS[kind], SIZES[kind]
            slots[:, first : first + members] = votes[:, place : place + members, :k]
        return slots

    def members(self) -> list[PoolMember]:
        """The members in their order."""
        found = []
        for place, group in self._places():
            sparse = isinstance(group, SparseMembers)
            names = [*group.tables(0), *(["recent labels"] if sparse else [])]
            for name, weight in zip(names, self.fusion.weights[place:].tolist(), strict=False):
                found.append(PoolMember(name, weight, sparse))
        return found

    def linear_form(self, dense: int, sparse: int, k: int, slots: np.ndarray | None = None) -> np.ndarray:
        """sum_m w_m W_m / r_m: the members' weights for attributes as they scale them, as they are fused.

        r_m is the root mean square of a member's scores, and each attribute's weights are centred over the classes:
        this is what the pool says where the shares are taken as linear in the scores. The recent labels are left out.
        ``slots`` are other weights of the members, at the places that `in_slots` gives them.
        """
        form = np.zeros((1 + dense + sparse, k))
        for kind, (place, group) in zip(self.order.tolist(), self._places(), strict=True):
            members = slice(place, place + MEMBERS)
            weights = self.fusion.weights[members]
            if slots is not None:
                weights = slots[FIRST_SLOTS[kind] : FIRST_SLOTS[kind] + MEMBERS]
            own = weights * self.fusion.inverse_sizes[members]
            for factor, table in zip(own.tolist(), group.tables(k).values(), strict=True):
                centred = factor * (table - table.mean(axis=1, keepdims=True)) if table.size else table
                width, first = centred.shape[1], 1 if kind == DENSE else 1 + dense
                form[0, :width] += centred[0] if len(centred) else 0.0
                form[first : first + len(centred) - 1, :width] += centred[1:]
        return form

    def mix(self, mixture: Mixture) -> None:
        for kind in dict.fromkeys(kind for part, _ in mixture.counted for kind in part.state.order.tolist()):
            self._join(kind)
        for kind, group in zip(self.order.tolist(), self.groups, strict=True):
            group.mix(mixture.of(methodcaller("group", kind)), _width(mixture.k))
        places = [self._members_of(part.state) for part in mixture.parts]
        base = None if mixture.base is None else self._members_of(mixture.base.state)
        self.fusion.mix(mixture.of(lambda state: state.fusion), places, base)
        self.recent.mix(mixture.of(lambda state: state.recent))

    def _members_of(self, other: RunningPool) -> np.ndarray:
        """The places of another's members among these."""
        mine = {kind: place for kind, (place, _) in zip(self.order.tolist(), self._places(), strict=True)}
        return np.array([mine[kind] + member for kind in other.order.tolist() for member in range(SIZES[kind])], int)


def _width(k: int) -> int:
    """Classes that there is room for."""
    return FOUR * -(-k // FOUR)


@dataclass(frozen=True)
class AttributePool(Description):
    """Description of the pool; made by ``linmax.vr_combine(pool="attributes")``."""

    name: ClassVar[str] = "attributes"
    from_zero: ClassVar[bool] = False
    makes_room: ClassVar[bool] = True
    unmixable: ClassVar[str] = ""

    def start(self, size: int) -> Running:
        return RunningPool()
