"""Kinds of attributes: numbers that are mostly there, or words of which each row has a few.

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
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numba import boolean, types

from linmax.core.contract import KNOWN, Indices, Matrix, Trials, TrialsT
from linmax.data.arrays import Layout, attributes_of, cut, no_trials, widen
from linmax.data.scaling import MOST_NUMERIC, are_numbers
from linmax.jit.compiling import kernel
from linmax.learners.attributes.group import renamed
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


@kernel(types.void(KindsT, TrialsT, boolean, Indices))
def meet(kinds: Any, trials: Trials, count: bool, met: np.ndarray) -> None:
    """Number the attributes in the order in which they are met, not 0 in some trial; and count what is not 0."""
    dense, indptr, counts = trials.dense, trials.indptr, kinds.counts
    dense_places, sparse_places = kinds.dense_places, kinds.sparse_places
    for t in range(met.size):
        for f in range(dense.shape[1]):
            if dense[t, f] != 0.0:
                if dense_places[f] < 0:
                    dense_places[f] = counts[0]
                    counts[0] += 1
                counts[1] += count
        if indptr.size:
            for j in range(indptr[t], indptr[t + 1]):
                if trials.values[j] != 0.0:
                    column = trials.indices[j]
                    if sparse_places[column] < 0:
                        sparse_places[column] = counts[0]
                        counts[0] += 1
                    counts[1] += count
        met[t] = counts[0]


@kernel(types.void(KindsT, TrialsT, Matrix))
def gather(kinds: Any, trials: Trials, rows: np.ndarray) -> None:
    """Write rows of the attributes met, in their order, without those that were not met or have no column."""
    dense, indptr = trials.dense, trials.indptr
    dense_places, sparse_places = kinds.dense_places, kinds.sparse_places
    for t in range(rows.shape[0]):
        for f in range(min(dense_places.size, dense.shape[1])):
            if 0 <= dense_places[f] < rows.shape[1]:
                rows[t, dense_places[f]] = dense[t, f]
        if indptr.size:
            for j in range(indptr[t], indptr[t + 1]):
                column = trials.indices[j]
                if column < sparse_places.size and 0 <= sparse_places[column] < rows.shape[1]:
                    rows[t, sparse_places[column]] += trials.values[j]


class Kinds(LearnerState):
    """Kind of the attributes, and the places of those seen."""

    fields: ClassVar = FIELDS

    def __init__(self, fixed: int = UNDECIDED) -> None:
        self.counts[3:5] = fixed

    @property
    def kind(self) -> int:
        """Kind decided."""
        return int(self.counts[3])

    @property
    def fixed(self) -> int:
        """Kind chosen by the user, if any."""
        return int(self.counts[4])

    @property
    def share(self) -> float:
        """Share of the attributes seen that were not 0 in the trials examined."""
        return float(self.counts[1] / max(1, self.counts[0] * self.counts[2]))

    @property
    def share_seen(self) -> float:
        """Share when the kind was last decided."""
        return float(self.counts[6]) / MILLION

    def decide(self, trials: Trials) -> bool:
        """Decide from what was met so far; whether that is something new."""
        kind = self.fixed
        if kind == UNDECIDED:
            met, there, size = (int(count) for count in self.counts[:3])
            kind = DENSE if are_numbers(there, size, met) else SPARSE
            self.counts[6] = int(MILLION * self.share)
        if kind == SPARSE and trials.indptr.size and trials.dense.shape[1]:
            kind = MIXED  # columns of numbers with words: as they came
        changed = kind != self.kind
        self.counts[3] = kind
        return changed

    def begin(self, trials: Trials) -> bool:
        """Decide before the first trial; later, whether the other array of attributes comes for the first time."""
        both = bool(trials.indptr.size and trials.dense.shape[1])
        if self.kind == UNDECIDED:
            self.counts[3] = SPARSE
            self.decide(trials)
        elif self.kind == SPARSE and both:
            self.counts[3] = MIXED
            return True
        if self.kind == SPARSE and not trials.indptr.size:
            self.counts[5] = 1
        return False

    def fit(self, trials: Trials) -> None:
        """Make room for the attributes of these trials."""
        sparse = int(trials.indices.max(initial=-1)) + 1 if trials.indptr.size else 0
        self.grow(dense=trials.dense.shape[1], sparse=sparse)

    def meet(self, trials: Trials, count: bool) -> np.ndarray:
        """Number what is met in these trials, and count it; how many attributes had been met at each of them."""
        met = np.zeros(trials.size, np.int64)
        if count or self.kind == DENSE:
            self.fit(trials)
            meet(self.struct, trials, count, met)
        self.counts[2] += count * trials.size
        return met

    def count(self, values: np.ndarray) -> None:
        """Count one trial, whose attributes, of these values, have all been met."""
        self.counts[1] += np.count_nonzero(values)
        self.counts[2] += 1

    def again(self) -> None:
        """Start again: the same trials are learned once more."""
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

    def rows(self, trials: Trials) -> np.ndarray:
        """Dense attributes of these trials."""
        if self.kind == SPARSE:
            return np.zeros((trials.size, 0))
        if self.kind == MIXED:
            return trials.dense
        rows = np.zeros((trials.size, self.width))
        gather(self.struct, trials, rows)
        return rows

    def words(self, trials: Trials) -> Trials:
        """Trials whose sparse attributes are those that are taken for words."""
        none = np.zeros(0, np.int64)
        if self.kind == SPARSE and not trials.indptr.size and trials.dense.shape[1]:
            rows, columns = np.nonzero(trials.dense)
            indptr = np.searchsorted(rows, np.arange(len(trials.dense) + 1)).astype(np.int64)
            values = np.ascontiguousarray(trials.dense[rows, columns])
            return trials._replace(indptr=indptr, indices=columns.astype(np.int32), values=values)
        if self.kind != DENSE:
            return trials
        if self.counts[0] <= MOST_NUMERIC:
            return trials._replace(indptr=none, indices=none.astype(np.int32), values=np.zeros(0))
        known = np.append(self.sparse_places, -1)
        kept = known[np.minimum(trials.indices, known.size - 1)] >= MOST_NUMERIC
        before = np.concatenate([[0], np.cumsum(kept)])
        return trials._replace(
            indptr=before[trials.indptr].astype(np.int64),
            indices=np.ascontiguousarray(trials.indices[kept]),
            values=np.ascontiguousarray(trials.values[kept]),
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
        """Return the places of the columns of the dense and the sparse groups, given those of the instances."""
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
    """State: the trials kept, without votes and scores, and whether more are kept."""

    names = ("dense", "indptr", "indices", "values", "known", "labels", "weights")

    def __init__(self) -> None:
        self._trials = no_trials(0)
        self._latest: list[Trials] = []  # not yet put together with the others
        self.size, self.open = 0, True

    @property
    def trials(self) -> Trials:
        """The trials kept."""
        self._put_together()
        return self._trials

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All the state."""
        kept = self.trials
        found = {name: getattr(kept, name) for name in self.names}
        return found | {"numbers": np.array([self.open, kept.constant])}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over a state."""
        is_open, constant = arrays["numbers"].tolist()
        self.open, self.size, self._latest = bool(is_open), len(arrays["labels"]), []
        parts = {name: arrays[name].copy() for name in self.names}
        self._trials = no_trials(self.size)._replace(**parts, constant=constant)

    @property
    def until(self) -> int:
        """Trials until the next power of 2."""
        return (1 << self.size.bit_length()) - self.size

    @property
    def due(self) -> bool:
        """True if it is time to look at them."""
        return self.until == self.size or self.size >= LAST

    def keep(self, trials: Trials) -> None:
        """Keep further trials."""
        held = {name: getattr(trials, name).copy() for name in self.names}
        self.add(no_trials(trials.size)._replace(**held, constant=trials.constant))

    def add(self, trials: Trials) -> None:
        """Keep trials, which have memory of their own."""
        self._latest.append(trials)
        self.size += trials.size

    def _put_together(self) -> None:
        """Join what was kept last to the rest."""
        if not self._latest:
            return
        parts = [self._trials, *self._latest]
        sparse = any(part.indptr.size for part in parts)
        layout = Layout(0, 0, max(part.dense.shape[1] for part in parts), int(sparse), 0.0)
        fitting = [part.dense.shape[1] == layout.dense and (part.indptr.size > 0) == sparse for part in parts]
        parts = [part if fits else widen(part, layout, 0) for part, fits in zip(parts, fitting, strict=True)]
        filled = np.concatenate([np.diff(part.indptr) for part in parts]) if sparse else np.zeros(0, np.int64)
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in self.names}
        columns["indptr"] = np.concatenate([[0], np.cumsum(filled)]).astype(np.int64) if sparse else filled
        self._trials = no_trials(self.size)._replace(**columns, constant=parts[-1].constant)
        self._latest = []

    def mix(self, mixture: Mixture) -> None:
        """Keep the trials of all parts, those of the base once, if all of them still keep theirs and they are few."""
        base = 0 if mixture.base is None else mixture.base.state.first.size
        firsts = [part.state.first for part in mixture.parts]
        if not all(first.open for first in firsts) or sum(first.size - base for first in firsts) + base >= LAST:
            self.close()
            return
        kept = [cut(first.trials, base if place else 0, first.size) for place, first in enumerate(firsts)]
        self.take(list(zip(mixture.parts, kept, strict=True)))

    def take(self, parts: Sequence[tuple[Placement, Trials]]) -> None:
        """Keep trials of several, at their places among all columns and classes."""
        known = 0
        for part, kept in parts:
            dense = np.zeros((len(kept.dense), int(part.dense.max(initial=-1)) + 1))
            dense[:, part.dense[: kept.dense.shape[1]]] = kept.dense
            indices, labels = part.sparse[kept.indices].astype(np.int32), renamed(kept.labels, part.classes)
            highest = np.maximum.accumulate(np.append(known, labels + 1)).astype(np.int64)
            places = np.append(0, np.maximum.accumulate(part.classes + 1))[kept.known]
            counts = np.maximum(highest[:-1], places)
            self.keep(kept._replace(dense=dense, indices=indices, labels=labels, known=counts))
            known = int(highest[-1])

    def close(self) -> None:
        """Forget them; no more are kept."""
        self._trials, self._latest, self.size, self.open = no_trials(0), [], 0, False


SAMPLE_ROWS = 256  # of the sample, at most
SORTED_ROWS, SORTED_NUMBERS = 8192, 1 << 19  # of the sample where runs are long
LONG_RUN = 50  # trials with the same label, on average, that are a long run
FEWEST_TRIALS = 200
SAMPLE_PASSES = 4  # over the sample


class AtLarge:
    """State: the sample, every how many-th trial is taken, the trials, the runs of labels, and the last label."""

    def __init__(self) -> None:
        self.rows: list[Trials] = []
        self.numbers = 0  # in the sample
        self.step, self.trials, self.runs, self.last = 1, 0, 0, -1
        self.counts = np.zeros(0, np.int64)  # trials of each class
        self.found: tuple[int, MemberFusion] | None = None  # the weights, and after how many trials
        self.learned: tuple[tuple[int, ...], RunningPool] | None = None  # of the sample, after what it depends on

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All the state."""
        numbers = np.array([self.step, self.trials, self.runs, self.last], np.float64)
        held = self.together().arrays
        return {name: array for name, array in held.items() if name != "numbers"} | {
            "numbers": np.append(numbers, held["numbers"]), "counts": self.counts,
        }  # fmt: skip

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over a state."""
        self.step, self.trials, self.runs, self.last = arrays["numbers"][:4].astype(int).tolist()
        held, self.found, self.learned, self.counts = FirstTrials(), None, None, arrays["counts"].copy()
        held.restore(dict(arrays) | {"numbers": arrays["numbers"][4:]})
        self._take(held, 1)

    def _take(self, held: FirstTrials, share: int) -> None:
        """Let the sample be one in ``share`` of these trials."""
        self.rows = [cut(held.trials, t, t + 1) for t in range(0, held.size, share)]
        self.numbers = sum(map(_size, self.rows))

    def together(self, places: np.ndarray | None = None) -> FirstTrials:
        """The sample, or the trials at these places in it."""
        held = FirstTrials()
        for row in self.rows if places is None else [self.rows[place] for place in places.tolist()]:
            held.add(row)
        return held

    def keep(self, trials: Trials) -> None:
        """Take in those trials that have a label."""
        places = np.flatnonzero(trials.labels >= 0)
        own, size = trials.labels[places], places.size
        if not size:
            return
        before = self.runs + np.append(0, np.cumsum(np.append(own[0] != self.last, own[1:] != own[:-1])))
        self.last = int(own[-1])
        t = -self.trials % self.step
        while t < size:
            self._add(attributes_of(trials, int(places[t]))._replace(weights=np.ones(1)), t, int(before[t]))
            t = -(-(self.trials + t + 1) // self.step) * self.step - self.trials
        self.trials, self.runs = self.trials + size, int(before[-1])
        self._count(np.bincount(own))

    def _count(self, counts: np.ndarray) -> None:
        if counts.size > self.counts.size:
            self.counts = np.append(self.counts, np.zeros(counts.size - self.counts.size, np.int64))
        self.counts[: counts.size] += counts

    def _add(self, instance: Trials, later: int, runs: int) -> None:
        """Take a trial into the sample, which leaves out every other one when there are too many.

        It comes ``later`` trials later, after this many runs of labels in all.
        """
        self.rows.append(instance)
        self.numbers += _size(instance)
        most = SORTED_ROWS if self.trials + later >= LONG_RUN * runs else SAMPLE_ROWS
        if len(self.rows) > most or (self.numbers > SORTED_NUMBERS and len(self.rows) > SAMPLE_ROWS):
            self.rows, self.step = self.rows[::2], 2 * self.step
            self.numbers = sum(map(_size, self.rows))

    @property
    def due(self) -> bool:
        """True if the next trial is one of the sample."""
        return self.trials % self.step == 0

    def keep_one(self, instance: Trials | None, label: int) -> None:
        """Meet one trial, whose attributes, in memory of their own, are needed if it is `due`."""
        if instance is not None and self.due:
            self._add(instance._replace(weights=np.ones(1)), 0, self.runs)
        self.runs += label != self.last
        self.last = label
        self.trials += 1
        if label >= self.counts.size:
            self._count(np.zeros(label + 1, np.int64))
        self.counts[label] += 1

    @property
    def long_runs(self) -> bool:
        """True if labels come in long runs: fewer than half as many as in a random order, n - sum n_c^2 / n."""
        if self.trials < FEWEST_TRIALS or self.runs <= 1 or self.trials < LONG_RUN * self.runs:
            return False
        return 2 * self.runs < self.trials - float(self.counts @ self.counts) / self.trials

    @property
    def settled(self) -> int:
        """Return the number of sample trials to learn from: all until one that makes those of a class 1, 2, 4, 8, ...

        So they need not be learned again after each trial. At most every eighth is left for the next time.
        """
        labels, size = np.array([int(row.labels[0]) for row in self.rows]), len(self.rows)
        spare = max(0, size.bit_length() - 4)
        found = (size >> spare) << spare
        for label in np.unique(labels):
            own = np.flatnonzero(labels == label)
            found = max(found, 1 + int(own[(1 << (own.size.bit_length() - 1)) - 1]))
        return found

    def fit(self, votes: np.ndarray, trials: Trials, shape: np.ndarray, k: int) -> MemberFusion:
        """Weights by which the members' scores for the sample are fused best."""
        fusion, order = MemberFusion(), np.random.default_rng(0)
        fusion.join(votes.shape[1])
        for _ in range(SAMPLE_PASSES):
            rows = order.permutation(trials.size)
            columns = {name: getattr(trials, name)[rows] for name in ("known", "labels", "weights")}
            shown, none = np.ascontiguousarray(votes[rows]), np.zeros(len(rows), np.int64)
            fusion.fuse(shown, none, trials._replace(**columns), shape, True, k)
        self.found = self.trials, fusion
        return fusion

    def mix(self, mixture: Mixture) -> None:
        """Take trials of all parts."""
        firsts = FirstTrials()
        firsts.take([(part, part.state.at_large.together().trials) for part in mixture.parts])
        most = SORTED_ROWS if all(part.state.at_large.long_runs for part in mixture.parts) else SAMPLE_ROWS
        numbers = sum(part.state.at_large.numbers for part in mixture.parts)
        share = max(1, -(-firsts.size // most), -(-numbers // SORTED_NUMBERS))
        self._take(firsts, share)
        for part, sign in mixture.counted:
            self.trials += sign * part.state.at_large.trials
            self.runs += sign * part.state.at_large.runs
            own = part.state.at_large.counts
            self._count(sign * np.bincount(part.classes[: own.size], own, mixture.k).astype(np.int64))
        self.step = max(share * part.state.at_large.step for part in mixture.parts)


def _size(trials: Trials) -> int:
    return int(trials.dense.size + trials.values.size)


def all_known(held: FirstTrials, known: int) -> Trials:
    """Return trials kept, with the classes known by now."""
    return held.trials._replace(known=np.full(held.size, known))


def pool_at_large(pool: RunningPool, shape: np.ndarray, k: int) -> RunningPool | None:
    """A pool that learned the sample in a random order, where numbers are sorted by class; else None."""
    large, known = pool.at_large, int(shape[KNOWN])
    if pool.kinds.kind != DENSE or not large.long_runs or large.runs >= 2 * known:
        return None
    size = large.settled
    depends = size, large.step, known, k
    if large.learned is None or large.learned[0] != depends:
        held = all_known(large.together(np.random.default_rng(0).permutation(size)), known)
        fresh = type(pool)(DENSE, pool.registry)
        fresh.play(shape, held, k)
        large.learned = depends, fresh
    return large.learned[1]


def fusion_at_large(pool: RunningPool, shape: np.ndarray, k: int) -> MemberFusion:
    """Return the fusion of the members for rows that do not follow the stream, where it has long runs of one label."""
    large = pool.at_large
    if large.found is not None and large.found[0] == large.trials:
        return large.found[1]
    held = large.together(np.arange(0, len(large.rows), -(-len(large.rows) // SAMPLE_ROWS)))
    sample = all_known(held, int(shape[KNOWN]))
    return large.fit(pool.scores_of(sample, k), sample, shape, k)
