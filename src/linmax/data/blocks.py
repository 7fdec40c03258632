"""The blocks of instances as users give them: votes, scores and attributes, checked and as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.features import pack
from linmax.data.names import missing
from linmax.util.checks import finite, refuse_masked
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")
from linmax.util.aliases import Label, Name

__all__ = [
    "COPY",
    "Scale",
    "copied",
    "copies_for",
    "length_of",
    "read_attributes",
    "read_scores",
    "scaled",
    "split_voters",
]


@dataclass(frozen=True)
class Scale:
    """Divisors by which ratings and attributes were scaled; pass it on to scale later instances in the same way."""

    raters: np.ndarray
    attributes: np.ndarray


COPY = 0.15  # rating of a copy made for one value of a side column


def copies_for(
    by: Any,
    known: Sequence[Label] | None,
    codes: np.ndarray,
    signs: np.ndarray,
    names: tuple[str, ...],
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...], tuple[Label, ...]]:
    """The voters and their copies for each value of a side column, and these values in order."""
    if by is None:
        if known:
            raise ValueError(f"sides names {len(known)} values, but by is not given; pass the column")
        return codes, signs, names, ()
    column = by.tolist() if hasattr(by, "tolist") else list(by)
    if len(column) != len(codes):
        raise ValueError(f"by must have one value per trial: got {len(column)} for {len(codes)} trials")
    if not codes.shape[1]:
        raise ValueError("by= requires votes, got none; pass votes=")
    column = [None if missing(value) else value for value in column]
    values = tuple(dict.fromkeys([*(known or ()), *(value for value in column if value is not None)]))
    place = {value: i for i, value in enumerate(values)}
    held = np.array([-2 if value is None else place[value] for value in column], np.int32)
    sides = np.repeat(np.arange(-1, len(values)), codes.shape[1])
    wide = copied(codes, np.tile(np.arange(codes.shape[1]), 1 + len(values)), (sides < 0) | (held[:, None] == sides))
    copies = tuple(f"{name} | {value}" for value in values for name in names)
    return wide, np.append(signs, np.full(len(copies), COPY)), names + copies, values


def copied(codes: np.ndarray, voters: np.ndarray, holds: np.ndarray) -> np.ndarray:
    """Votes of these voters, one column each, where the condition holds; elsewhere they abstain."""
    return np.ascontiguousarray(np.where(holds, codes[:, voters], np.int32(-1)))


def length_of(name: str, block: Any) -> int:
    if sparse.issparse(block):
        return int(block.shape[0])
    try:
        return len(block)
    except TypeError:
        raise TypeError(f"{name} must be an array with one row per trial, got {type(block).__name__}") from None


def _numbers(name: str, block: Any, dimensions: int) -> np.ndarray:
    """A C-contiguous, writable float64 array of finite numbers (copied only if necessary)."""
    wanted = "(trials, attributes)" if dimensions == 2 else "(trials, raters, classes)"
    refuse_masked(name, block)
    try:
        array = block.to_numpy() if hasattr(block, "to_numpy") else np.asarray(block)
    except ValueError:
        raise ValueError(f"{name} must be {wanted}, got rows of different lengths; make them equally long") from None
    if array.dtype.kind not in "fiub":
        try:
            array = np.asarray(array if hasattr(block, "to_numpy") else block, dtype=object)  # numbers and text
            if any(isinstance(v, (str, bytes)) for v in array.ravel()):
                raise TypeError
            array = array.astype(float)
        except (TypeError, ValueError):
            bad = next((v for v in array.ravel() if isinstance(v, (str, bytes, complex)) or v is None), array.dtype)
            raise TypeError(f"{name} must be numbers, got {bad!r}; encode text and categories first") from None
    if array.ndim != dimensions:
        raise ValueError(f"{name} must be {wanted}, got shape {array.shape}; reshape it")
    array = np.require(array, np.float64, ["C", "W", "A"])
    _refuse_nonfinite(name, array)
    return array


def _refuse_nonfinite(name: str, array: np.ndarray) -> None:
    # A sum is finite unless some value is not, or values are absurdly large: one pass, no copy.
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()
    if not np.isfinite(total) and not np.isfinite(array).all():
        place = np.argwhere(~np.isfinite(array))[0]
        value = array[tuple(place)]
        raise ValueError(f"{name} must be finite, got {value} at {tuple(int(i) for i in place)}; fill or drop it")


def read_scores(scores: Any, size: int, names: tuple[Label, ...] | None) -> np.ndarray:
    if scores is None:
        return np.zeros((size, 0, 0))
    array = _numbers("scores", scores, 3)
    if names is not None and array.shape[2] != len(names):
        raise ValueError(f"scores rate {array.shape[2]} classes, but classes= names {len(names)}; give each a column")
    return array


def read_attributes(
    attributes: Any, size: int, vocabulary: Mapping[Name, int] | None
) -> tuple[np.ndarray, sparse.csr_array | None, tuple[str, ...], Mapping[Name, int] | None]:
    nothing = np.zeros((size, 0))
    if attributes is None:
        return nothing, None, (), vocabulary
    if isinstance(attributes, Sequence) and size and isinstance(attributes[0], Mapping):
        packed, vocabulary = pack(attributes, vocabulary)
        return nothing, _csr(packed), tuple(map(str, sorted(vocabulary, key=vocabulary.__getitem__))), vocabulary
    if sparse.issparse(attributes):
        return nothing, _csr(attributes), tuple(map(str, range(attributes.shape[1]))), None
    array = _numbers("attributes", attributes, 2)
    columns = getattr(attributes, "columns", range(array.shape[1]))
    return array, None, tuple(map(str, columns)), None


def _csr(matrix: Any) -> sparse.csr_array:
    """Canonical rows (no duplicates, no explicit zeros), float64, finite."""
    csr = sparse.csr_array(matrix)
    if csr.dtype.kind not in "fiub":
        raise TypeError(f"attributes must be numbers, got a sparse array of {csr.dtype}")
    if csr.shape[1] >= 2**31:
        raise ValueError(f"attributes must have fewer than 2^31 columns, got {csr.shape[1]}; hash them to fewer")
    if not csr.has_canonical_format or np.count_nonzero(csr.data) < csr.data.size:
        csr = csr.copy()
        csr.sum_duplicates()
        csr.eliminate_zeros()
    data = np.require(csr.data, np.float64, ["C", "W", "A"])
    _refuse_nonfinite("attributes", data)
    return sparse.csr_array((data, csr.indices, csr.indptr), shape=csr.shape, copy=False)


def scaled(
    dense: np.ndarray, csr: sparse.csr_array | None, ratings: np.ndarray, scale: str | float | Scale | None
) -> tuple[np.ndarray, sparse.csr_array | None, np.ndarray, Scale]:
    columns = dense.shape[1] if csr is None else csr.shape[1]
    if scale is None:
        return dense, csr, ratings, Scale(np.ones(ratings.shape[1]), np.ones(columns))
    if isinstance(scale, Scale):
        if len(scale.attributes) != columns or len(scale.raters) != ratings.shape[1]:
            raise ValueError(
                f"scale was taken from {len(scale.attributes)} attributes and {len(scale.raters)} raters; these "
                f"instances have {columns} and {ratings.shape[1]}"
            )
        used = scale
    elif isinstance(scale, str):
        if scale != "max":
            raise ValueError(f"scale must be 'max', a number or the .scale of earlier instances, got {scale!r}")
        spreads = np.ptp(ratings, axis=2).max(axis=0, initial=0.0) if ratings.size else np.ones(ratings.shape[1])
        if csr is not None:
            largest = abs(csr).max(axis=0).toarray().ravel() if csr.shape[0] else np.zeros(columns)
        else:
            largest = np.abs(dense).max(axis=0, initial=0.0)
        used = Scale(np.where(spreads > 0.0, spreads, 1.0), np.where(largest > 0.0, largest, 1.0))
    else:
        number = finite("scale", scale)
        if number <= 0.0:
            raise ValueError(f"scale must be > 0, got {scale!r}; try 'max'")
        used = Scale(np.full(ratings.shape[1], number), np.full(columns, number))
    if csr is not None:
        csr = sparse.csr_array((csr.data / used.attributes[csr.indices], csr.indices, csr.indptr), shape=csr.shape)
    else:
        dense = dense / used.attributes
    return dense, csr, ratings / used.raters[:, None] if ratings.size else ratings, used


def split_voters(
    split: str | Mapping[int, Label] | None,
    codes: np.ndarray,
    ratings: np.ndarray,
    names: tuple[Label, ...],
    voter_names: tuple[str, ...],
) -> tuple[np.ndarray, sparse.csr_array | None, tuple[tuple[str, ...], tuple[str, ...]]]:
    """x_i^c as attributes: dense for raters, sparse for voters; and the names of both."""
    size, voters = codes.shape
    raters = ratings.shape[1]
    if split is None:
        return np.zeros((size, 0)), None, ((), ())
    if isinstance(split, str):
        if split != "all":
            raise ValueError(f"split must be 'all' or a dict from voter to class, got {split!r}")
        split = dict.fromkeys(range(voters + raters), "all")
    dense: list[tuple[str, np.ndarray]] = []
    columns: list[tuple[str, np.ndarray]] = []
    if not isinstance(split, Mapping):
        raise TypeError(f"split must be 'all' or a dict from voter to class, got {split!r}")
    for i, cls in split.items():
        if not isinstance(i, (int, np.integer)) or not 0 <= i < voters + raters:
            raise ValueError(f"split: {i!r} is not the number of a voter or rater (0 to {voters + raters - 1})")
        if cls != "all" and cls not in names:
            raise ValueError(f"split: {cls!r} is not among the classes {list(names)!r}")
        for c in range(len(names)) if cls == "all" else [names.index(cls)]:
            if i < voters:
                columns.append((f"{voter_names[i]}:{names[c]}", codes[:, i] == c))
            else:
                dense.append((f"rater {i - voters}:{names[c]}", ratings[:, i - voters, c]))
    names_of = (tuple(name for name, _ in dense), tuple(name for name, _ in columns))
    block = np.column_stack([column for _, column in dense]) if dense else np.zeros((size, 0))
    if not columns:
        return block, None, names_of
    return block, sparse.csr_array(np.column_stack([column for _, column in columns]).astype(float)), names_of
