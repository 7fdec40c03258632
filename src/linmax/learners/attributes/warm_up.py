"""What kind of attributes these are: numbers that are mostly there, or words of which each row has a few.

It is decided by the data, not by what they came in (`are_numbers`); a 0 counts as absent. Numbers are learned
from by the groups for dense attributes, words by those for sparse ones, whatever array they are in.

The first trials of a stream, kept until nothing more is decided from them.

A sample of all trials, for predicting rows that do not follow a stream which has long runs of one label.

Where rows are sorted by class, the members that follow the last labels are right on the way, and wrong about any other
row. So when runs are long, rows that are only predicted are decided by weights of the members that fit the sample:
every s-th trial, s doubled whenever there are too many. Numbers whose classes came once each ask for more, since bins
and margins that were learned from one class at a time say nothing: they are predicted by a pool that learned a larger
sample in a random order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numba import boolean, int64, types

from linmax.core.contract import KNOWN, Indices, Instances, InstancesT, Matrix
from linmax.data.arrays import Layout, attributes_of, cut, no_instances, widen
from linmax.data.scaling import MOST_NUMERIC, are_numbers
from linmax.jit.compiling import kernel
from linmax.learners.attributes.member import renamed
from linmax.learners.attributes.stacker import MemberFusion
from linmax.learners.base import Field, LearnerState, Mixture, Placement, struct_of

if TYPE_CHECKING:
    from linmax.learners.attributes.pool import RunningPool

__all__ = [
    "DENSE",
    "LAST",
    "MIXED",
    "SPARSE",
    "UNDECIDED",
    "AtLarge",
    "FirstTrials",
    "Kinds",
    "Relearned",
    "fusion_at_large",
    "pool_at_large",
]


UNDECIDED, DENSE, SPARSE, MIXED = range(4)
MILLION = 1_000_000


FIELDS = {
    "dense_places": Field(("dense",), -1, "", np.int64),  # of the attributes among those met, -1 before
    "sparse_places": Field(("sparse",), -1, "", np.int64),
    # the attributes met, the numbers that were not 0, the trials looked at, what was decided, what the user decided,
    # whether words came in a dense array, and the share that it was decided from, in millionths
    "counts": Field((7,), merge="", dtype=np.int64),
}
KindsT = struct_of(FIELDS).numba_type


@kernel(types.void(KindsT, InstancesT, int64, boolean, Indices))
def meet(kinds: Any, instances: Instances, begin: int, count: bool, met: np.ndarray) -> None:
    """Number the attributes in the order in which they are met, not 0 in some trial; and count what is not 0."""
    dense, indptr, counts = instances.dense, instances.indptr, kinds.counts
    dense_places, sparse_places = kinds.dense_places, kinds.sparse_places
    for t in range(met.size):
        for f in range(dense.shape[1]):
            if dense[begin + t, f] != 0.0:
                if dense_places[f] < 0:
                    dense_places[f] = counts[0]
                    counts[0] += 1
                counts[1] += count
        if indptr.size:
            for j in range(indptr[begin + t], indptr[begin + t + 1]):
                if instances.values[j] != 0.0:
                    column = instances.indices[j]
                    if sparse_places[column] < 0:
                        sparse_places[column] = counts[0]
                        counts[0] += 1
                    counts[1] += count
        met[t] = counts[0]


@kernel(types.void(KindsT, InstancesT, int64, Matrix))
def gather(kinds: Any, instances: Instances, begin: int, rows: np.ndarray) -> None:
    """Write rows of the attributes met, in their order, without those that were not met or have no column."""
    dense, indptr = instances.dense, instances.indptr
    dense_places, sparse_places = kinds.dense_places, kinds.sparse_places
    for t in range(rows.shape[0]):
        for f in range(min(dense_places.size, dense.shape[1])):
            if 0 <= dense_places[f] < rows.shape[1]:
                rows[t, dense_places[f]] = dense[begin + t, f]
        if indptr.size:
            for j in range(indptr[begin + t], indptr[begin + t + 1]):
                column = instances.indices[j]
                if column < sparse_places.size and 0 <= sparse_places[column] < rows.shape[1]:
                    rows[t, sparse_places[column]] += instances.values[j]


class Kinds(LearnerState):
    """What kind of attributes there are, and the places of those met."""

    fields: ClassVar = FIELDS

    def __init__(self, fixed: int = UNDECIDED) -> None:
        self.counts[3:5] = fixed

    @property
    def kind(self) -> int:
        """What was decided."""
        return int(self.counts[3])

    @property
    def fixed(self) -> int:
        """What the user decided, if anything."""
        return int(self.counts[4])

    @property
    def share(self) -> float:
        """Of the attributes met that were not 0 in the trials looked at."""
        return float(self.counts[1] / max(1, self.counts[0] * self.counts[2]))

    @property
    def share_seen(self) -> float:
        """The same, as it was when it was last decided."""
        return float(self.counts[6]) / MILLION

    def decide(self, instances: Instances) -> bool:
        """Decide from what was met so far; whether that is something new."""
        kind = self.fixed
        if kind == UNDECIDED:
            met, there, trials = (int(count) for count in self.counts[:3])
            kind = DENSE if are_numbers(there, trials, met) else SPARSE
            self.counts[6] = int(MILLION * self.share)
        if kind == SPARSE and instances.indptr.size and instances.dense.shape[1]:
            kind = MIXED  # columns of numbers beside words: as they came
        changed = kind != self.kind
        self.counts[3] = kind
        return changed

    def begin(self, instances: Instances) -> bool:
        """Decide before the first trial; later, whether the other array of attributes comes for the first time."""
        both = bool(instances.indptr.size and instances.dense.shape[1])
        if self.kind == UNDECIDED:
            self.counts[3] = SPARSE
            self.decide(instances)
        elif self.kind == SPARSE and both:
            self.counts[3] = MIXED
            return True
        if self.kind == SPARSE and not instances.indptr.size:
            self.counts[5] = 1
        return False

    def fit(self, instances: Instances) -> None:
        """Make room for the attributes of these instances."""
        sparse = int(instances.indices.max(initial=-1)) + 1 if instances.indptr.size else 0
        self.grow(dense=instances.dense.shape[1], sparse=sparse)

    def meet(self, instances: Instances, begin: int, end: int, count: bool) -> np.ndarray:
        """Number what is met in these trials, and count it; how many attributes had been met at each of them."""
        met = np.zeros(end - begin, np.int64)
        if count or self.kind == DENSE:
            self.fit(instances)
            meet(self.struct, instances, begin, count, met)
        self.counts[2] += count * (end - begin)
        return met

    def count(self, values: np.ndarray) -> None:
        """Count one trial, whose attributes, of these values, have all been met."""
        self.counts[1] += np.count_nonzero(values)
        self.counts[2] += 1

    def again(self) -> None:
        """The same trials are met once more."""
        self.dense_places[:] = self.sparse_places[:] = -1
        self.counts[:3] = 0

    def settle(self) -> None:
        """Nothing will be decided again: what only decisions need is forgotten."""
        if self.kind != DENSE:
            self.dense_places, self.sparse_places = np.zeros(0, np.int64), np.zeros(0, np.int64)

    # -- the attributes as the groups take them -------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Dense attributes that the groups have, if it is the attributes met."""
        return min(int(self.counts[0]), MOST_NUMERIC)

    def rows(self, instances: Instances, begin: int, end: int) -> np.ndarray:
        """Dense attributes of these trials."""
        if self.kind == SPARSE:
            return np.zeros((end - begin, 0))
        if self.kind == MIXED:
            return instances.dense[begin:end]
        rows = np.zeros((end - begin, self.width))
        gather(self.struct, instances, begin, rows)
        return rows

    def words(self, instances: Instances) -> Instances:
        """Instances whose sparse attributes are those that are taken for words."""
        none = np.zeros(0, np.int64)
        if self.kind == SPARSE and not instances.indptr.size and instances.dense.shape[1]:
            rows, columns = np.nonzero(instances.dense)
            indptr = np.searchsorted(rows, np.arange(len(instances.dense) + 1)).astype(np.int64)
            values = np.ascontiguousarray(instances.dense[rows, columns])
            return instances._replace(indptr=indptr, indices=columns.astype(np.int32), values=values)
        if self.kind != DENSE:
            return instances
        if self.counts[0] <= MOST_NUMERIC:
            return instances._replace(indptr=none, indices=none.astype(np.int32), values=np.zeros(0))
        known = np.append(self.sparse_places, -1)
        kept = known[np.minimum(instances.indices, known.size - 1)] >= MOST_NUMERIC
        before = np.concatenate([[0], np.cumsum(kept)])
        return instances._replace(
            indptr=before[instances.indptr].astype(np.int64),
            indices=np.ascontiguousarray(instances.indices[kept]),
            values=np.ascontiguousarray(instances.values[kept]),
        )

    def mix(self, mixture: Mixture, leading: Kinds) -> Mixture:
        """Take over what pools met; what was counted adds up. Returns them with the columns of their groups."""
        self.counts[3:] = leading.counts[3:]
        for part, sign in mixture.counted if leading.kind == DENSE else []:
            if part.state.kinds.kind == DENSE:
                self.counts[1:3] += sign * part.state.kinds.counts[1:3]
        return mixture.map(lambda part: self._take(part.state.kinds, part, leading))

    def _take(self, other: Kinds, part: Placement, leading: Kinds) -> Placement:
        """Take over the places of what another met; returns ``part`` with the columns of its groups."""
        if leading.kind != DENSE or other.kind != DENSE:
            dense, sparse = other.places(part.dense, part.sparse)
            return part._replace(dense=dense, sparse=sparse)
        found = np.zeros(int(other.counts[0]), np.int64)
        self.grow(dense=int(part.dense.max(initial=-1)) + 1, sparse=int(part.sparse.max(initial=-1)) + 1)
        for mine, own, there in (
            (self.dense_places, other.dense_places, part.dense),
            (self.sparse_places, other.sparse_places, part.sparse),
        ):
            for column in np.flatnonzero(own >= 0)[np.argsort(own[own >= 0])].tolist():
                if mine[there[column]] < 0:
                    mine[there[column]] = self.counts[0]
                    self.counts[0] += 1
                found[own[column]] = mine[there[column]]
        return part._replace(dense=found[:MOST_NUMERIC])

    def places(self, dense: np.ndarray, sparse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the columns of the dense and of the sparse groups are, given where those of the instances are."""
        if self.kind == MIXED:
            return dense, sparse
        if self.kind != DENSE:
            return dense[:0], sparse if sparse.size else dense
        order = np.zeros(int(self.counts[0]), np.int64)
        for own, there in ((self.dense_places, dense), (self.sparse_places, sparse)):
            met = np.flatnonzero(own >= 0)
            order[own[met]] = there[met]
        return order[:MOST_NUMERIC], sparse


LAST = 512  # trials that are kept, at most


class FirstTrials:
    """State: attributes, labels and weights of the trials kept, classes known before them, whether more are kept."""

    names = ("dense", "indptr", "indices", "values", "labels", "weights", "numbers")

    def __init__(self) -> None:
        self._instances, self._labels, self._weights = no_instances(0), np.zeros(0, np.int32), np.zeros(0)
        self._latest: list[tuple[Instances, np.ndarray, np.ndarray]] = []  # not yet put together with the others
        self.size, self.known, self.open = 0, 0, True

    @property
    def instances(self) -> Instances:
        """The attributes of the trials kept."""
        self._put_together()
        return self._instances

    @property
    def labels(self) -> np.ndarray:
        """Their labels."""
        self._put_together()
        return self._labels

    @property
    def weights(self) -> np.ndarray:
        """Their weights."""
        self._put_together()
        return self._weights

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All the state."""
        numbers = np.array([self.known, self.open, self.instances.constant])
        found = {name: getattr(self.instances, name) for name in self.names[:4]}
        return found | {"labels": self.labels, "weights": self.weights, "numbers": numbers}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over a state."""
        known, is_open, constant = arrays["numbers"].tolist()
        self.known, self.open, self._labels = int(known), bool(is_open), arrays["labels"].copy()
        self.size, self._latest = len(self._labels), []
        self._weights = arrays["weights"].copy()
        parts = {name: arrays[name].copy() for name in self.names[:4]}
        self._instances = no_instances(self.size)._replace(**parts, constant=constant)

    @property
    def until(self) -> int:
        """Trials until the next power of 2."""
        return (1 << self.size.bit_length()) - self.size

    @property
    def due(self) -> bool:
        """Whether it is time to look at them."""
        return self.until == self.size or self.size >= LAST

    def keep(
        self, shape: np.ndarray, instances: Instances, labels: np.ndarray, weights: np.ndarray | None = None
    ) -> None:
        """Keep further trials, which count 1 each or as much as ``weights`` say."""
        if not self.size:
            self.known = int(shape[KNOWN])
        held = {name: getattr(instances, name).copy() for name in self.names[:4]}
        counted = np.ones(len(labels)) if weights is None else weights.copy()
        self.add(no_instances(len(labels))._replace(**held, constant=instances.constant), labels.copy(), counted)

    def add(self, instances: Instances, labels: np.ndarray, weights: np.ndarray) -> None:
        """Keep trials after the first, which have memory of their own."""
        self._latest.append((instances, labels, weights))
        self.size += len(labels)

    def _put_together(self) -> None:
        """Join what was kept lately to the rest."""
        if not self._latest:
            return
        parts = [self._instances, *(instances for instances, *_ in self._latest)]
        sparse = any(part.indptr.size for part in parts)
        layout = Layout(0, 0, max(part.dense.shape[1] for part in parts), int(sparse), 0.0)
        fitting = [part.dense.shape[1] == layout.dense and (part.indptr.size > 0) == sparse for part in parts]
        parts = [part if fits else widen(part, layout, 0) for part, fits in zip(parts, fitting, strict=True)]
        filled = np.concatenate([np.diff(part.indptr) for part in parts]) if sparse else np.zeros(0, np.int64)
        self._labels = np.concatenate([self._labels, *(labels for _, labels, _ in self._latest)])
        self._weights = np.concatenate([self._weights, *(weights for *_, weights in self._latest)])
        self._instances = no_instances(self.size)._replace(
            dense=np.concatenate([part.dense for part in parts]),
            indptr=np.concatenate([[0], np.cumsum(filled)]).astype(np.int64) if sparse else np.zeros(0, np.int64),
            indices=np.concatenate([part.indices for part in parts]),
            values=np.concatenate([part.values for part in parts]),
            constant=parts[-1].constant,
        )
        self._latest = []

    def mix(self, mixture: Mixture) -> None:
        """Keep the trials of all parts, those of the base once, if all of them still keep theirs and they are few."""
        base = 0 if mixture.base is None else mixture.base.state.first.size
        firsts = [part.state.first for part in mixture.parts]
        if not all(first.open for first in firsts) or sum(first.size - base for first in firsts) + base >= LAST:
            self.close()
            return
        found = []
        for place, (part, first) in enumerate(zip(mixture.parts, firsts, strict=True)):
            begin = base if place else 0
            kept = cut(first.instances, begin, first.size)
            found.append((part, kept, first.labels[begin:], first.weights[begin:]))
        self.take(found)
        self.known = firsts[0].known

    def take(self, parts: Sequence[tuple[Placement, Instances, np.ndarray, np.ndarray]]) -> None:
        """Keep trials of several, at their places among all columns and classes."""
        for part, kept, labels, weights in parts:
            dense = np.zeros((len(kept.dense), int(part.dense.max(initial=-1)) + 1))
            dense[:, part.dense[: kept.dense.shape[1]]] = kept.dense
            indices = part.sparse[kept.indices].astype(np.int32)
            own = renamed(labels, part.classes)
            self.keep(np.zeros(KNOWN + 1, np.int64), kept._replace(dense=dense, indices=indices), own, weights)

    def close(self) -> None:
        """Forget them; no more are kept."""
        self._instances, self._labels, self._weights = no_instances(0), np.zeros(0, np.int32), np.zeros(0)
        self._latest, self.size, self.open = [], 0, False


SAMPLE_ROWS = 256  # of the sample, at most
SORTED_ROWS, SORTED_NUMBERS = 8192, 1 << 19  # of the sample where runs are long
LONG_RUN = 50  # trials with the same label, on average, that are a long run
FEWEST_TRIALS = 200
SAMPLE_PASSES = 4  # over the sample


class Relearned(NamedTuple):
    """A pool that learned the sample in a random order."""

    pool: RunningPool
    scores: np.ndarray  # of its trials, before their labels were seen
    labels: np.ndarray


class AtLarge:
    """State: the sample, every how many-th trial is taken, the trials, the runs of labels, and the last label."""

    def __init__(self) -> None:
        self.rows: list[tuple[Instances, np.ndarray]] = []
        self.numbers = 0  # in the sample
        self.step, self.trials, self.runs, self.last = 1, 0, 0, -1
        self.found: tuple[int, MemberFusion] | None = None  # the weights, and after how many trials
        self.learned: tuple[tuple[int, ...], Relearned] | None = None  # the sample, after what that depends on

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All the state."""
        numbers = np.array([self.step, self.trials, self.runs, self.last], np.float64)
        held = self.together().arrays
        return {name: array for name, array in held.items() if name != "numbers"} | {
            "numbers": np.append(numbers, held["numbers"])
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over a state."""
        self.step, self.trials, self.runs, self.last = arrays["numbers"][:4].astype(int).tolist()
        held, self.found, self.learned = FirstTrials(), None, None
        held.restore(dict(arrays) | {"numbers": arrays["numbers"][4:]})
        self._take(held, 1)

    def _take(self, held: FirstTrials, share: int) -> None:
        """Let the sample be one in ``share`` of these trials."""
        places = range(0, len(held.labels), share)
        self.rows = [(cut(held.instances, t, t + 1), held.labels[t : t + 1]) for t in places]
        self.numbers = sum(_size(instances) for instances, _ in self.rows)

    def together(self, places: np.ndarray | None = None) -> FirstTrials:
        """The sample, or the trials at these places in it."""
        held = FirstTrials()
        for instances, label in self.rows if places is None else [self.rows[place] for place in places.tolist()]:
            held.add(instances, label, np.ones(1))
        return held

    def keep(self, instances: Instances, labels: np.ndarray, begin: int, end: int) -> None:
        """Meet these trials."""
        own = labels[begin:end]
        before = self.runs + np.append(0, np.cumsum(np.append(own[0] != self.last, own[1:] != own[:-1])))
        self.last = int(own[-1])
        t = begin + -self.trials % self.step
        while t < end:
            self._add(attributes_of(instances, t), labels[t : t + 1].copy(), t - begin, int(before[t - begin]))
            t = begin + -(-(self.trials + t + 1 - begin) // self.step) * self.step - self.trials
        self.trials, self.runs = self.trials + end - begin, int(before[-1])

    def _add(self, instance: Instances, label: np.ndarray, later: int, runs: int) -> None:
        """Take a trial into the sample, which leaves out every other one when there are too many.

        It comes so many trials ``later``, after so many runs of labels in all.
        """
        self.rows.append((instance, label))
        self.numbers += _size(instance)
        most = SORTED_ROWS if self.trials + later >= LONG_RUN * runs else SAMPLE_ROWS
        if len(self.rows) > most or (self.numbers > SORTED_NUMBERS and len(self.rows) > SAMPLE_ROWS):
            self.rows, self.step = self.rows[::2], 2 * self.step
            self.numbers = sum(_size(instances) for instances, _ in self.rows)

    @property
    def due(self) -> bool:
        """Whether the next trial is one of the sample."""
        return self.trials % self.step == 0

    def keep_one(self, instance: Instances | None, label: int) -> None:
        """Meet one trial, whose attributes, in memory of their own, are needed if it is `due`."""
        if instance is not None and self.due:
            self._add(instance, np.array([label], np.int32), 0, self.runs)
        self.runs += label != self.last
        self.last = label
        self.trials += 1

    @property
    def long_runs(self) -> bool:
        """Whether labels come in long runs."""
        return self.trials >= FEWEST_TRIALS and self.runs > 1 and self.trials >= LONG_RUN * self.runs

    @property
    def settled(self) -> int:
        """How many trials of the sample are learned from: all until one that makes those of a class 1, 2, 4, 8, ...

        So they need not be learned again after each trial. At most every eighth is left for the next time.
        """
        labels, size = np.array([int(label[0]) for _, label in self.rows]), len(self.rows)
        spare = max(0, size.bit_length() - 4)
        found = (size >> spare) << spare
        for label in np.unique(labels):
            own = np.flatnonzero(labels == label)
            found = max(found, 1 + int(own[(1 << (own.size.bit_length() - 1)) - 1]))
        return found

    def fit(self, votes: np.ndarray, labels: np.ndarray, shape: np.ndarray, k: int) -> MemberFusion:
        """Weights by which the members' scores for the sample are fused best."""
        fusion, order = MemberFusion(), np.random.default_rng(0)
        fusion.join(votes.shape[1])
        for _ in range(SAMPLE_PASSES):
            rows = order.permutation(len(labels))
            shown = np.ascontiguousarray(votes[rows]), np.ascontiguousarray(labels[rows]), np.ones(len(rows))
            fusion.fuse(*shown, shape.copy(), True, k)
        self.found = self.trials, fusion
        return fusion

    def mix(self, mixture: Mixture) -> None:
        """Take trials of all parts."""
        samples = [(part, part.state.at_large.together()) for part in mixture.parts]
        firsts = FirstTrials()
        firsts.take([(part, held.instances, held.labels, np.ones(held.size)) for part, held in samples])
        most = SORTED_ROWS if all(part.state.at_large.long_runs for part in mixture.parts) else SAMPLE_ROWS
        numbers = sum(part.state.at_large.numbers for part in mixture.parts)
        share = max(1, -(-len(firsts.labels) // most), -(-numbers // SORTED_NUMBERS))
        self._take(firsts, share)
        for part, sign in mixture.counted:
            self.trials += sign * part.state.at_large.trials
            self.runs += sign * part.state.at_large.runs
        self.step = max(share * part.state.at_large.step for part in mixture.parts)


def _size(instances: Instances) -> int:
    return int(instances.dense.size + instances.values.size)


def pool_at_large(pool: RunningPool, shape: np.ndarray, k: int) -> Relearned | None:
    """A pool that learned the sample in a random order, where numbers are sorted by class; else None."""
    large, known = pool.at_large, int(shape[KNOWN])
    if pool.kinds.kind != DENSE or not large.long_runs or large.runs >= 2 * known:
        return None
    size = large.settled
    depends = size, large.step, known, k
    if large.learned is None or large.learned[0] != depends:
        held = large.together(np.random.default_rng(0).permutation(size))
        fresh = type(pool)(DENSE, pool.registry)
        _, scores = fresh.play(shape.copy(), held.instances, held.labels, 0, size, k)
        large.learned = depends, Relearned(fresh, scores, held.labels)
    return large.learned[1]


def fusion_at_large(pool: RunningPool, shape: np.ndarray, k: int) -> MemberFusion:
    """How members are fused for rows that do not follow the stream, where it has long runs of one label."""
    large = pool.at_large
    if large.found is not None and large.found[0] == large.trials:
        return large.found[1]
    held = large.together(np.arange(0, len(large.rows), -(-len(large.rows) // SAMPLE_ROWS)))
    return large.fit(pool.scores_of(shape, held.instances, held.size, k)[1], held.labels, shape, k)
