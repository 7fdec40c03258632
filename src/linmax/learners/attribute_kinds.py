"""What kind of attributes these are: numbers that are mostly there, or words of which each row has a few.

It is decided by the data, not by what they came in (`linmax.data.numeric`); a 0 counts as absent. Numbers are learned
from by the groups for dense attributes, words by those for sparse ones, whatever array they are in.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numba import boolean, int32, int64, types

from linmax.core.contract import Indices, Instances, Matrix, Vector
from linmax.data.numeric import MOST_NUMERIC, are_numbers
from linmax.jit.compiling import kernel
from linmax.learners.mixing import Mixture, Placement

__all__ = ["DENSE", "MIXED", "SPARSE", "UNDECIDED", "Kinds"]

UNDECIDED, DENSE, SPARSE, MIXED = range(4)
MILLION = 1_000_000

Whole = int32[::1]


@kernel(types.void(Matrix, Indices, Whole, Vector, int64, Indices, Indices, Indices, boolean, Indices))
def meet(
    dense: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    begin: int,
    dense_places: np.ndarray,
    sparse_places: np.ndarray,
    counts: np.ndarray,
    count: bool,
    met: np.ndarray,
) -> None:
    """Number the attributes in the order in which they are met: not 0 in some trial.

    ``counts`` are the attributes met and the numbers that were not 0.
    """
    for t in range(met.size):
        for f in range(dense.shape[1]):
            if dense[begin + t, f] != 0.0:
                if dense_places[f] < 0:
                    dense_places[f] = counts[0]
                    counts[0] += 1
                counts[1] += count
        if indptr.size:
            for j in range(indptr[begin + t], indptr[begin + t + 1]):
                if values[j] != 0.0:
                    if sparse_places[indices[j]] < 0:
                        sparse_places[indices[j]] = counts[0]
                        counts[0] += 1
                    counts[1] += count
        met[t] = counts[0]


@kernel(types.void(Matrix, Indices, Whole, Vector, int64, Indices, Indices, Matrix))
def gather(
    dense: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    begin: int,
    dense_places: np.ndarray,
    sparse_places: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Rows of the attributes met, in their order; those that were not met, or have no column, are left out."""
    for t in range(rows.shape[0]):
        for f in range(min(dense_places.size, dense.shape[1])):
            if 0 <= dense_places[f] < rows.shape[1]:
                rows[t, dense_places[f]] = dense[begin + t, f]
        if indptr.size:
            for j in range(indptr[begin + t], indptr[begin + t + 1]):
                if indices[j] < sparse_places.size and 0 <= sparse_places[indices[j]] < rows.shape[1]:
                    rows[t, sparse_places[indices[j]]] += values[j]


class Kinds:
    """State: places of the attributes among those met, -1 before; the attributes met, the numbers that were not 0, the
    trials looked at, what was decided, what the user decided, whether words came in a dense array, and the
    share that it was decided from, in millionths.
    """

    names = ("dense_places", "sparse_places", "counts")

    def __init__(self, fixed: int = UNDECIDED) -> None:
        self.dense_places, self.sparse_places = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.counts = np.array([0, 0, 0, fixed, fixed, 0, 0])

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All the state."""
        return {name: getattr(self, name) for name in self.names}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over a state."""
        for name in self.names:
            setattr(self, name, arrays[name].copy())

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
        self.dense_places = _longer(self.dense_places, instances.dense.shape[1])
        self.sparse_places = _longer(self.sparse_places, sparse)

    def meet(self, instances: Instances, begin: int, end: int, count: bool) -> np.ndarray:
        """Number what is met in these trials, and count it; how many attributes had been met at each of them."""
        met = np.zeros(end - begin, np.int64)
        if count or self.kind == DENSE:
            self.fit(instances)
            meet(
                instances.dense, instances.indptr, instances.indices, instances.values, begin, self.dense_places,
                self.sparse_places, self.counts, count, met,
            )  # fmt: skip
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
        gather(
            instances.dense, instances.indptr, instances.indices, instances.values, begin, self.dense_places,
            self.sparse_places, rows,
        )  # fmt: skip
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
        for name, own, there in (
            ("dense_places", other.dense_places, part.dense),
            ("sparse_places", other.sparse_places, part.sparse),
        ):
            setattr(self, name, _longer(getattr(self, name), int(there.max(initial=-1)) + 1))
            mine = getattr(self, name)
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


def _longer(places: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([places, np.full(max(0, size - places.size), -1)])
