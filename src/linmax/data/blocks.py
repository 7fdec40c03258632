"""The blocks of instances as users give them: votes, scores and attributes, checked and as arrays."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.distinct import distinct_of
from linmax.data.features import pack
from linmax.util.checks import finite, refuse_masked
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")


__all__ = [
    "COPY",
    "Scale",
    "copied",
    "copies_for",
    "distinct_classes",
    "length_of",
    "missing",
    "read_attributes",
    "read_scores",
    "read_votes",
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
    by: Any, known: Sequence[Any] | None, codes: np.ndarray, signs: np.ndarray, names: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...], tuple[Any, ...]]:
    """The voters and their copies for each value of a side column, and these values in order."""
    if by is None:
        if known:
            raise ValueError(f"sides names {len(known)} values, but by is not given; pass the column")
        return codes, signs, names, ()
    column = by.tolist() if hasattr(by, "tolist") else list(by)
    if len(column) != len(codes):
        raise ValueError(f"by must have one value per trial: got {len(column)} for {len(codes)} trials")
    if not codes.shape[1]:
        raise ValueError("by makes copies of voters, and there are none; pass votes")
    column = [None if missing(value) else value for value in column]
    values = tuple(dict.fromkeys([*(known or ()), *(value for value in column if value is not None)]))
    place = {value: i for i, value in enumerate(values)}
    held = np.array([-2 if value is None else place[value] for value in column], np.int32)
    sides = np.repeat(np.arange(-1, len(values)), codes.shape[1])
    wide = copied(codes, np.tile(np.arange(codes.shape[1]), 1 + len(values)), (sides < 0) | (held[:, None] == sides))
    told = tuple(f"{name} | {value}" for value in values for name in names)
    return wide, np.append(signs, np.full(len(told), COPY)), names + told, values


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


def distinct_classes(classes: Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(classes, str):
        raise TypeError(f"classes must be a list of labels, got the text {classes!r}; try list({classes!r})")
    names = tuple(c.item() if isinstance(c, np.generic) else c for c in classes)
    if len(set(names)) < len(names):
        repeated = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"classes must be distinct, got {repeated!r} twice")
    if not names:
        raise ValueError("classes must not be empty; leave it out to take them from votes and labels")
    return names


def missing(value: Any) -> bool:
    """Whether a value is missing: None, nan, masked, or pandas' NA."""
    return value is None or value is np.ma.masked or type(value).__name__ == "NAType" or value != value


def silent_votes(abstain: Any) -> Collection[Any]:
    """What ``abstain`` names: one label that means abstention, a set of them, or none."""
    if isinstance(abstain, (set, frozenset)):
        return abstain
    return () if abstain is None else (abstain,)


def read_votes(
    votes: Any, size: int, names: tuple[Any, ...] | None, abstain: Any
) -> tuple[np.ndarray, tuple[Any, ...], tuple[str, ...]]:
    """Codes (-1 = abstains), the classes they stand for and the voters' names."""
    if votes is None:
        return np.zeros((size, 0), np.int32), names or (), ()
    columns = tuple(str(c) for c in votes.columns) if hasattr(votes, "columns") else None
    if isinstance(votes, np.ma.MaskedArray):
        objects = np.array(votes.data, dtype=object)
        objects[np.ma.getmaskarray(votes)] = None
        votes = objects
    table = (
        votes.to_numpy()
        if hasattr(votes, "to_numpy")
        else np.asarray(votes)
        if isinstance(votes, np.ndarray)
        else _table(votes)
    )
    if table.ndim != 2:
        raise ValueError(f"votes must be (trials, voters), got shape {table.shape}; one voter is votes.reshape(-1, 1)")
    if columns is None:
        columns = tuple(str(i) for i in range(table.shape[1]))
    if table.dtype.kind in "iubUS" or (table.dtype.kind == "f" and not np.isnan(table).any()):
        distinct, places = distinct_of(table)
        met, codes = distinct.tolist(), places.astype(np.int32)
    else:
        flat = [None if missing(v) else v for v in table.ravel().tolist()]
        try:
            met = sorted({v for v in flat if v is not None})
        except TypeError:  # no order; or no class at all
            _refuse_unhashable(flat, columns)
            met = list(dict.fromkeys(v for v in flat if v is not None))
        place = {name: i for i, name in enumerate(met)}
        codes = np.array([-1 if v is None else place[v] for v in flat], np.int32).reshape(table.shape)
    silent = {vote for vote in ("", *silent_votes(abstain)) if vote in met}
    for vote in silent:
        codes[codes == met.index(vote)] = -1
    order = names or tuple(name for name in met if name not in silent)
    place = {name: i for i, name in enumerate(order)}
    unknown = [name for i, name in enumerate(met) if name not in place and (codes == i).any()]
    if unknown:
        t, i = np.argwhere(codes == met.index(unknown[0]))[0]
        raise ValueError(
            f"votes: voter {columns[i]!r} voted for {unknown[0]!r} at trial {t}, which is not among "
            f"classes={list(order)!r}; add it, or name it with abstain="
        )
    return np.array([*(place.get(name, -1) for name in met), -1], np.int32)[codes], order, columns


def _refuse_unhashable(flat: list[Any], columns: Sequence[str]) -> None:
    for i, vote in enumerate(flat):
        try:
            hash(vote)
        except TypeError:
            t, voter = divmod(i, len(columns))
            raise TypeError(
                f"votes: {vote!r} at trial {t}, voter {columns[voter]}, is not hashable; a vote is one class: text, a "
                "number or a tuple"
            ) from None


def _table(rows: Any) -> np.ndarray:
    """Nested lists as an array of objects, so that labels keep their types."""
    rows = [row if isinstance(row, str) or not isinstance(row, Iterable) else list(row) for row in rows]
    bad = next((t for t, row in enumerate(rows) if not isinstance(row, list) or len(row) != len(rows[0])), None)
    if bad is not None:
        raise ValueError(
            f"votes must be (trials, voters), every row a list of the same length, got {rows[bad]!r} at trial {bad}; "
            "one voter is [[vote], [vote], ...]"
        )
    table = np.empty((len(rows), len(rows[0]) if rows else 0), dtype=object)
    for t, row in enumerate(rows):
        for i, vote in enumerate(row):
            table[t, i] = vote
    return table


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
            array = np.asarray(array if hasattr(block, "to_numpy") else block, dtype=object)  # numbers beside text
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


def read_scores(scores: Any, size: int, names: tuple[Any, ...] | None) -> np.ndarray:
    if scores is None:
        return np.zeros((size, 0, 0))
    array = _numbers("scores", scores, 3)
    if names is not None and array.shape[2] != len(names):
        raise ValueError(f"scores rate {array.shape[2]} classes, but classes= names {len(names)}; give each a column")
    return array


def read_attributes(
    attributes: Any, size: int, vocabulary: Mapping[Any, int] | None
) -> tuple[np.ndarray, sparse.csr_array | None, tuple[str, ...], Mapping[Any, int] | None]:
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
    split: str | Mapping[int, Any] | None,
    codes: np.ndarray,
    ratings: np.ndarray,
    names: tuple[Any, ...],
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
    told = (tuple(name for name, _ in dense), tuple(name for name, _ in columns))
    block = np.column_stack([column for _, column in dense]) if dense else np.zeros((size, 0))
    if not columns:
        return block, None, told
    return block, sparse.csr_array(np.column_stack([column for _, column in columns]).astype(float)), told
