"""Online scaling: each instance is scaled with what was seen up to and including it, never with what comes later.

``none``      x as it is
``max``       x_i / largest |x_i| so far: within [-1, 1]
``length``    x / ||x||_2
``log``       sign(x_i) log(1 + |x_i|), then length 1
``idf``       the same with sparse attributes weighted by log((t + 2) / df_i) first: t instances came before, df_i of
              them and this one have attribute i
``standard``  dense: (x_i - mean_i) / deviation_i, at most 5 in magnitude, over sqrt(d). Sparse attributes are not
              centered, which would make every one of them present: x_i / rms_i, over occurrences
``auto``      standard when there are dense attributes. Sparse ones alone: idf while they are words, and standard once
              they are numbers, of which most are there (`are_numbers`); idf would leave nothing of them. For
              rules that need values in [-1, 1], max instead of standard (`Scaling.keep_within`)

The constant attribute is scaled like any other. Left at 1 in short scaled rows it would outweigh them: on 20
newsgroups it doubles the error of passive-aggressive learning. Where its value then differs from instance to instance
it becomes the first attribute (`Scaling.prepends`).

Rows are scaled one after the other, so that cutting a stream differently changes no bit.

References
----------
Sparck Jones, "A statistical interpretation of term specificity", Journal of Documentation 28 (1972): idf.
Welford, "Note on a method for calculating corrected sums of squares", Technometrics 4 (1962): running deviation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import boolean, float64, int32, int64, types

from linmax.core.contract import Trials
from linmax.jit.compiling import kernel
from linmax.util import checks
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")
from linmax.util.files import Header

__all__ = [
    "LIMIT",
    "MOST_NUMERIC",
    "SCALINGS",
    "STEADY",
    "WITHIN",
    "Scaling",
    "are_numbers",
    "pooled_moments",
    "squash",
    "standardise",
]

KINDS = ("none", "max", "length", "log", "idf", "standard", "auto", "auto within 1")
NONE, MAX, LENGTH, LOG, IDF, STANDARD, AUTO, AUTO_WITHIN = range(8)
CLIP = 5.0
STEADY = 1e-10  # a deviation this far below the mean is rounding
SCALINGS = KINDS[:-1]
WITHIN = KINDS[-1]  # auto for rules that need values in [-1, 1]
LIMIT = 1e100  # squares of larger values would overflow
NUMERIC_SHARE = 0.1  # of attributes that are there, from which on they are numbers
FIRST_DOUBT = 1.2  # over the root of the trials: the share that is asked for at first
MOST_NUMERIC = 2048  # attributes that are taken for numbers, at most

_NOTHING = (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0))


# -- kernels ----------------------------------------------------------------------------------------------------------


@kernel()
def are_numbers(there: int, trials: int, attributes: int) -> bool:
    """Return whether this many values, in this many trials of this many attributes, are numbers.

    Examples
    --------
    >>> are_numbers(950, 100, 10), are_numbers(950, 100, 500)
    (True, False)
    """
    enough = max(NUMERIC_SHARE, FIRST_DOUBT / math.sqrt(max(1, trials)))
    return attributes <= MOST_NUMERIC and there / max(1, attributes * trials) >= enough


@kernel()
def squash(value: float) -> float:
    """sign(v) log(1 + |v|)."""
    if value == 1.0:
        return 0.6931471805599453
    return math.copysign(math.log1p(abs(value)), value)


@kernel()
def clipped(value: float) -> float:
    """At most CLIP in magnitude."""
    return min(CLIP, max(-CLIP, value))


@kernel()
def standardise(value: float, stats: np.ndarray, learn: bool) -> float:
    """(v - mean) / deviation, this value included; ``stats`` are count, mean and sum of squared deviations."""
    count = stats[0] + 1.0
    delta = value - stats[1]
    mean = stats[1] + delta / count
    squares = stats[2] + delta * (value - mean)
    if learn:
        stats[0], stats[1], stats[2] = count, mean, squares
    deviation = math.sqrt(squares / count)
    return clipped((value - mean) / deviation) if deviation > STEADY * abs(mean) else 0.0


@kernel()
def kind_now(asked: int, trials: int, values: int, attributes: int) -> int:
    """Return the kind, or the one decided by the numbers of sparse values, attributes and trials so far."""
    if asked < AUTO:
        return asked
    if not are_numbers(values, trials, attributes):
        return IDF
    return MAX if asked == AUTO_WITHIN else STANDARD


@kernel()
def note(asked: int, kind: int, value: float, trials: np.ndarray, stats: np.ndarray) -> None:
    """Count a value of a sparse attribute, and what of its statistics the present kind does not keep itself."""
    trials[1] += 1
    trials[2] += stats[0] == 0.0
    if kind == MAX:
        stats[0] += 1.0
    elif kind == IDF:
        stats[1] = max(stats[1], abs(value)) if asked == AUTO_WITHIN else stats[1] + value * value


@kernel(
    types.void(
        int64, boolean, float64, int64, float64[:, ::1], int64[::1], int32[::1], float64[::1], int64[::1],
        float64[:, ::1], float64[:, ::1], float64[:, ::1], int64[::1], int32[::1], float64[::1],
    )
)  # fmt: skip
def scale_rows(
    kind: int,
    learn: bool,
    constant: float,
    shift: int,
    dense: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    trials: np.ndarray,
    dense_stats: np.ndarray,
    sparse_stats: np.ndarray,
    new_dense: np.ndarray,
    new_indptr: np.ndarray,
    new_indices: np.ndarray,
    new_values: np.ndarray,
) -> None:
    """Scale rows into the ``new`` arrays; with ``shift`` 1 the constant comes first, among the dense ones if any.

    ``sparse_stats`` are occurrences and the sum of squares (or the largest magnitude) of each attribute; ``trials`` are
    followed by the sparse values and attributes met in them.
    """
    width, past, asked = dense.shape[1], trials[0], kind
    dense_shift = shift if width else 0
    sparse_shift = shift - dense_shift
    put = 0
    for t in range(dense.shape[0]):
        kind = kind_now(asked, past, trials[1], trials[2])
        squares = 0.0
        for f in range(width):
            value = dense[t, f]
            if value != value:  # missing: says nothing and teaches nothing
                value = 0.0
            elif kind == STANDARD:
                value = standardise(value, dense_stats[f], learn)
            elif kind == MAX:
                largest = max(dense_stats[f, 0], abs(value))
                if learn:
                    dense_stats[f, 0] = largest
                value = value / largest if largest > 0.0 else 0.0
            elif kind == LOG or kind == IDF:
                value = squash(value)
            squares += value * value
            new_dense[t, f + dense_shift] = value
        begin, end = put, put
        if indptr.size:
            put += sparse_shift
            begin, end = put, put + indptr[t + 1] - indptr[t]
            offset = indptr[t] - begin
            rarity = math.log(past + 2.0)
            for place in range(begin, end):
                column, value = indices[place + offset], values[place + offset]
                if asked >= AUTO and learn:
                    note(asked, kind, value, trials, sparse_stats[column])
                if kind == LOG or kind == IDF:
                    value = squash(value)
                if kind == IDF:
                    count = sparse_stats[column, 0] + 1.0
                    value *= rarity - math.log(count)
                    if learn:
                        sparse_stats[column, 0] = count
                elif kind == STANDARD:
                    count = sparse_stats[column, 0] + 1.0
                    total = sparse_stats[column, 1] + value * value
                    if learn:
                        sparse_stats[column, 0], sparse_stats[column, 1] = count, total
                    value = clipped(value / math.sqrt(total / count)) if total > 0.0 else 0.0
                elif kind == MAX:
                    largest = max(sparse_stats[column, 1], abs(value))
                    if learn:
                        sparse_stats[column, 1] = largest
                    value = value / largest if largest > 0.0 else 0.0
                squares += value * value
                new_indices[place] = column + sparse_shift
                new_values[place] = value
            put = end
            new_indptr[t + 1] = put
        one = squash(constant) if kind == LOG or kind == IDF else constant
        factor = 1.0
        if kind == STANDARD:
            factor = 1.0 / math.sqrt(max(1.0, float(width + end - begin)))
        elif kind == LENGTH or kind == LOG or kind == IDF:
            squares += one * one
            factor = 1.0 / math.sqrt(squares) if squares > 0.0 else 1.0
        for f in range(new_dense.shape[1]):
            new_dense[t, f] *= factor
        for place in range(begin, end):
            new_values[place] *= factor
        if dense_shift:
            new_dense[t, 0] = one * factor
        if sparse_shift:
            new_indices[begin - 1], new_values[begin - 1] = 0, one * factor
        if learn:
            past += 1
    trials[0] = past


# -- scaling with its state -------------------------------------------------------------------------------------------


class Scaling:
    """Online scaling with its state.

    Parameters
    ----------
    kind
        One of `SCALINGS`; "auto" is settled by the first instances.
    constant
        Value of the constant attribute before scaling, for attributes given as a matrix (instances bring their own);
        0 for none.

    Examples
    --------
    >>> import numpy as np
    >>> scaling = Scaling("standard", constant=0)
    >>> scaling.apply(np.array([[1.0], [3.0], [3.0]])).round(2).tolist()
    [[0.0], [1.0], [0.71]]
    >>> scaling.trials
    3
    """

    def __init__(self, kind: str = "auto", *, constant: float = 1.0) -> None:
        self.asked = checks.one_of("kind", kind, SCALINGS)
        self.kind = self.asked
        self.constant = checks.finite("constant", constant)
        self.prepends = False
        self._trials = np.zeros(3, np.int64)  # and values and attributes met in them
        self._dense = np.zeros((0, 3))
        self._sparse = np.zeros((0, 2))
        self._columns = 0

    def __repr__(self) -> str:
        return f"<Scaling {self.kind!r} after {self.trials} instances>"

    @property
    def trials(self) -> int:
        """Instances learned from."""
        return int(self._trials[0])

    @property
    def counts(self) -> np.ndarray:
        """Instances learned from, values of sparse attributes in them, and how many attributes these were."""
        return self._trials

    @property
    def in_effect(self) -> str:
        """The kind by which the next instance is scaled."""
        return KINDS[kind_now(KINDS.index(self.kind), *self._trials.tolist())] if self.trials else self.kind

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All state by name."""
        return {"trials": self._trials[:1], "dense": self._dense, "sparse": self._sparse[: self._columns]}

    @property
    def description(self) -> Header:
        """State that is not in the arrays, as plain data."""
        return {"asked": self.asked, "kind": self.kind, "constant": self.constant, "prepends": self.prepends}

    @classmethod
    def from_state(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Scaling:
        """Return a scaling that continues where another stopped."""
        made = cls(description["asked"], constant=description["constant"])
        made.kind = checks.one_of("kind", description["kind"], KINDS)
        made.prepends = checks.boolean("prepends", description["prepends"])
        made._dense = arrays["dense"].astype(np.float64).reshape(-1, 3)
        made._sparse = arrays["sparse"].astype(np.float64).reshape(-1, 2)
        made._columns = len(made._sparse)
        made._trials[0] = arrays["trials"].item()
        made.recount()
        return made

    def recount(self) -> None:
        """Take from the statistics how many values and attributes were met, after these have been written over."""
        counts = self._sparse[: self._columns, 0]
        self._trials[1:] = int(counts.sum()), np.count_nonzero(counts)

    def keep_within(self) -> None:
        """From the first instance on scale into [-1, 1], if the kind is still to be settled."""
        if self.kind == "auto" and not self.trials:
            self.kind = WITHIN

    def grow(self, columns: int) -> None:
        """Make room for this many sparse attributes; further ones come at the right."""
        if columns > len(self._sparse):
            room = np.zeros((max(columns, 2 * len(self._sparse)), 2))
            room[: self._columns] = self._sparse[: self._columns]
            self._sparse = room
        self._columns = max(self._columns, columns)

    def apply(self, attributes: Any, learn: bool = True) -> Any:
        """Scale instances (from `linmax.instances`), a dense or sparse matrix, or the kernels' `Trials`.

        What comes out is of the same kind. ``learn=False`` gives the values that ``learn=True`` would, and forgets
        them. Dense nan is missing and becomes 0.
        """
        if isinstance(attributes, Trials):
            return self._instances(attributes, learn)
        if hasattr(attributes, "csr") and hasattr(attributes, "attribute_names"):
            return self._experts(attributes, learn)
        if sparse.issparse(attributes):
            csr = attributes.tocsr()
            _refuse_wild(csr.data)
            blocks = (
                np.zeros((csr.shape[0], 0)),
                csr.indptr.astype(np.int64),
                csr.indices.astype(np.int32),
                np.require(csr.data, np.float64, ["C", "W", "A"]),
            )
            _, indptr, indices, values, _ = self.scale(*blocks, self.constant, csr.shape[1], learn)
            return sparse.csr_array((values, indices, indptr), shape=(csr.shape[0], csr.shape[1] + self.prepends))
        dense = np.require(attributes, np.float64, ["C", "W", "A"])  # kernels take no array that is read-only
        if dense.ndim != 2:
            raise ValueError(f"attributes must be (trials, attributes), got shape {dense.shape}; reshape it")
        _refuse_wild(dense)
        return self.scale(dense, *_NOTHING, self.constant, 0, learn)[0]

    def scale(
        self,
        dense: np.ndarray,
        indptr: np.ndarray,
        indices: np.ndarray,
        values: np.ndarray,
        constant: float,
        columns: int,
        learn: bool = True,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
        """Scale the blocks of `Trials`, which are trusted to be finite; ``columns`` are sparse ones.

        Returns the four blocks and the constant that is left: 0 when it has become the first attribute.
        """
        width = dense.shape[1]
        if self.kind in ("auto", WITHIN) and width and not self.trials:
            self.kind = "standard" if self.kind == "auto" else "max"
        if self.kind == "none":
            return dense, indptr, indices, values, constant
        if self._dense.shape[0] != width:
            if self.trials:
                raise ValueError(f"there were {self._dense.shape[0]} dense attributes so far, got {width}")
            self._dense = np.zeros((width, 3))
        varies = self.kind in ("length", "log", "idf", "auto", WITHIN) or (self.kind == "standard" and columns > 0)
        if not self.trials:
            self.prepends = varies and constant != 0.0
        elif self.prepends != (varies and constant != 0.0):
            raise ValueError("the constant and sparse attributes must be there from the first instance on, or never")
        before = self._columns
        self.grow(columns)
        shift = int(self.prepends)
        rows = len(dense)
        dense_shift = shift if width else 0
        extra = 0 if width or not indptr.size else shift
        new_dense = np.zeros((rows, width + dense_shift))
        new_indptr = np.zeros(indptr.size, np.int64)
        size = (int(indptr[-1] - indptr[0]) if indptr.size else 0) + extra * rows
        new_indices, new_values = np.zeros(size, np.int32), np.zeros(size)
        scale_rows(
            KINDS.index(self.kind), learn, constant, shift, dense, indptr, indices, values, self._trials,
            self._dense, self._sparse, new_dense, new_indptr, new_indices, new_values,
        )  # fmt: skip
        if not learn:
            self._columns = before
        left = 0.0 if self.prepends else constant
        if self.kind == "standard" and not self.prepends and width:
            left = constant / math.sqrt(width)
        return new_dense, new_indptr, new_indices, new_values, left

    def _instances(self, given: Trials, learn: bool) -> Trials:
        _refuse_wild(given.dense)
        _refuse_wild(given.values)
        columns = int(given.indices.max(initial=-1)) + 1
        dense, indptr, indices, values, constant = self.scale(
            given.dense, given.indptr, given.indices, given.values, given.constant, max(columns, self._columns), learn
        )
        return given._replace(dense=dense, indptr=indptr, indices=indices, values=values, constant=constant)

    def _experts(self, given: Any, learn: bool) -> Any:
        """Scale the attributes of instances; votes and scores stay as they are."""
        csr = given.csr
        columns = 0 if csr is None else csr.shape[1]
        indptr, indices, values = _NOTHING
        if csr is not None:
            indptr, indices = csr.indptr.astype(np.int64), csr.indices.astype(np.int32)
            values = np.require(csr.data, np.float64, ["C"])
        _refuse_wild(given.dense)
        _refuse_wild(values)
        dense, indptr, indices, values, constant = self.scale(
            given.dense, indptr, indices, values, given.constant, columns, learn
        )
        names, vocabulary = given.attribute_names, given.vocabulary
        if self.prepends:
            names = ("constant", *names)
            if vocabulary is not None:
                vocabulary = {"constant": 0} | {name: column + 1 for name, column in vocabulary.items()}
        if csr is not None:
            shape = (len(dense), columns + int(self.prepends and not given.dense.shape[1]))
            csr = sparse.csr_array((values, indices, indptr), shape=shape)
        return replace(given, dense=dense, csr=csr, constant=constant, attribute_names=names, vocabulary=vocabulary)


def _refuse_wild(values: np.ndarray) -> None:
    """Refuse values whose squares would overflow; nan passes, as a missing value (elsewhere it was refused before)."""
    if values.size:
        largest = float(np.nanmax(np.abs(values), initial=0.0))
        if largest > LIMIT:
            raise ValueError(f"attributes must be at most {LIMIT:g} in magnitude, got {largest:g}; divide them")


def pooled_moments(tables: Sequence[np.ndarray], signs: Sequence[int]) -> np.ndarray:
    """Tables of count, mean and sum of squared deviations, a row an attribute, added with signs.

    Chan, Golub and LeVeque (1983): about a common centre c the sums of x - c and (x - c)^2 simply add up. The centre is
    that of the last table.
    """
    centre = tables[-1][:, 1]
    count, linear, square = (np.zeros(len(centre)) for _ in range(3))
    for sign, table in zip(signs, tables, strict=True):
        away = table[:, 1] - centre
        count += sign * table[:, 0]
        linear += sign * table[:, 0] * away
        square += sign * (table[:, 2] + table[:, 0] * away * away)
    mean = np.divide(linear, count, out=np.zeros_like(linear), where=count > 0.0)
    return np.column_stack([count, centre + mean, np.maximum(square - count * mean * mean, 0.0)])
