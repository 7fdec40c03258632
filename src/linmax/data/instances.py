"""Instances: votes, scores and attributes, and any mix of them, as sub-experts side by side.

A sub-expert rates every class. A voter rates its class 1 and the others 0, a rater gives k scores, an attribute is k
sub-experts "this much for class c" (stored as a row of a linear machine), and the constant attribute gives the k
threshold sub-experts (Mesterharm 2001, sections 2.1, 2.2 and 5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.core.contract import HUGE, Instances
from linmax.data.features import pack
from linmax.util.checks import boolean, finite, refuse_masked
from linmax.util.lazy import Later

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = Later("scipy.sparse")

__all__ = [
    "COPY",
    "Experts",
    "Layout",
    "Scale",
    "concatenate",
    "copied",
    "cut",
    "experts",
    "missing",
    "no_instances",
    "widen",
]


@dataclass(frozen=True)
class Layout:
    """The numbers of voters, raters and attributes, which determine the layout of the weights."""

    voters: int
    raters: int
    dense: int
    sparse: int
    constant: float
    names: tuple[str, ...] = ()  # of attributes given by name, whose columns depend on order of appearance

    @property
    def rows(self) -> int:
        """Rows of the linear machine: the constant (kept even if unused), then the attributes."""
        return 1 + self.dense + self.sparse if self.constant or self.dense or self.sparse else 0

    def holds(self, other: Layout) -> bool:
        """Whether instances of the other layout fit into this one, with its last columns silent."""
        return (
            other.voters <= self.voters
            and other.raters <= self.raters
            and other.dense <= self.dense
            and other.sparse <= self.sparse
            and other.constant == self.constant
            and other.names == self.names[: len(other.names)]
            and (not self.dense or not self.sparse or self.dense == other.dense)
        )

    def __str__(self) -> str:
        parts = [f"{self.voters} voters", f"{self.raters} raters", f"{self.dense + self.sparse} attributes"]
        told = ", ".join(map(repr, self.names[:5])) + (", ..." if len(self.names) > 5 else "")
        parts[2] += f" ({told})" if self.names else ""
        return ", ".join(parts) + (" and thresholds" if self.constant else " and no thresholds")


@dataclass(frozen=True)
class Scale:
    """Divisors by which ratings and attributes were scaled; pass it on to scale later instances in the same way."""

    raters: np.ndarray
    attributes: np.ndarray


@dataclass(frozen=True, eq=False)
class Experts:
    """Instances for `run`. Made by `experts`; may be sliced by trial: ``instances[100:200]``."""

    votes: np.ndarray  # int32 (T, voters): place in `names`, -1 = abstains
    signs: np.ndarray
    scores: np.ndarray  # (T, raters, k)
    dense: np.ndarray
    csr: sparse.csr_array | None
    constant: float
    names: tuple[Any, ...]  # the classes met in votes, or given
    fixed: bool  # whether `names` are all the classes there are
    scale: Scale
    voter_names: tuple[str, ...]
    attribute_names: tuple[str, ...]
    vocabulary: Mapping[Any, int] | None
    sides: tuple[Any, ...] = ()  # values of the side column for which there are copies of the voters

    def __len__(self) -> int:
        return len(self.votes)

    def __repr__(self) -> str:
        return f"<{len(self)} instances: {self.layout}>"

    def __getitem__(self, trials: slice | np.ndarray | Sequence[int]) -> Experts:
        if isinstance(trials, (int, np.integer)):
            raise TypeError(f"instances[{trials}] is one trial; slice it: instances[{trials}:{int(trials) + 1}]")
        csr = None if self.csr is None else self.csr[trials]
        votes, scores, dense = (np.ascontiguousarray(block[trials]) for block in (self.votes, self.scores, self.dense))
        return replace(self, votes=votes, scores=scores, dense=dense, csr=csr)

    @property
    def layout(self) -> Layout:
        """Numbers of voters, raters and attributes."""
        width = 0 if self.csr is None else self.csr.shape[1]
        names = () if self.vocabulary is None else self.attribute_names
        return Layout(len(self.signs), self.scores.shape[1], self.dense.shape[1], width, self.constant, names)

    @cached_property
    def range(self) -> float:
        """Largest difference between two ratings of one sub-expert; some rules need it to be at most 1."""
        sizes = [1.0 if len(self.signs) else 0.0, abs(self.constant)]
        if self.scores.size:
            sizes.append(float(np.ptp(self.scores, axis=2).max()))
        blocks = [block for block in (self.dense, self._sparse[-1]) if block.size]
        return max([*sizes, *(max(float(block.max()), -float(block.min())) for block in blocks)])

    def refuse_huge(self) -> None:
        """Refuse numbers so large that sums of their squares would overflow."""
        for name, block in [("scores", self.scores), ("attributes", self.dense), ("attributes", self._sparse[-1])]:
            if not block.size or max(float(block.max()), -float(block.min())) <= HUGE:
                continue
            place = tuple(int(i) for i in np.argwhere(np.abs(block) > HUGE)[0])
            trial, where = place[0], f"rater {place[1]}" if name == "scores" else f"attribute {place[-1]}"
            if block.ndim == 1 and self.csr is not None:
                trial = int(np.searchsorted(self.csr.indptr, place[0], side="right")) - 1
                where = f"attribute {int(self.csr.indices[place[0]])}"
            raise ValueError(
                f"{name} must be at most {HUGE:g} in magnitude, got {block[place]:g} at trial {trial} ({where}); "
                "scale the instances down"
            )

    @property
    def radius(self) -> float:
        """R = max over instances of the 2-norm of the attributes, the constant included."""
        if self.layout.voters or self.layout.raters:
            raise ValueError("radius is defined for attributes only; these instances have voters or raters")
        squares = np.full(len(self), self.constant**2)
        squares += np.einsum("tm,tm->t", self.dense, self.dense)
        if self.csr is not None:
            squares += np.asarray(self.csr.multiply(self.csr).sum(axis=1)).ravel()
        return float(np.sqrt(squares.max(initial=0.0)))

    def compiled(self, classes: Sequence[Any]) -> Instances:
        """The arrays for the kernels, with classes numbered as given."""
        place = {name: i for i, name in enumerate(classes)}
        table = np.array([place.get(name, -2) for name in self.names] + [-1], np.int32)
        votes = table[self.votes]
        if (votes == -2).any():
            t, i = np.argwhere(votes == -2)[0]
            raise ValueError(
                f"votes: voter {self.voter_names[i]!r} voted for {self.names[self.votes[t, i]]!r} at trial {t}, which "
                "is not among the classes of the learner"
            )
        scores = self.scores
        if scores.shape[1] and tuple(classes) != self.names:
            if set(classes) != set(self.names):
                raise ValueError(f"scores rate the classes {list(self.names)!r}, but the learner has {list(classes)!r}")
            scores = np.ascontiguousarray(scores[:, :, [self.names.index(name) for name in classes]])
        return Instances(votes, self.signs, scores, self.dense, *self._sparse, self.constant)

    @cached_property
    def _sparse(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row starts, columns and values, in the types that the kernels take."""
        if self.csr is None or not self.csr.shape[1]:
            return np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0)
        starts, columns = self.csr.indptr, self.csr.indices
        return np.require(starts, np.int64, ["C", "W"]), np.require(columns, np.int32, ["C", "W"]), self.csr.data

    def matrix(self, t: int, classes: Sequence[Any] | None = None) -> np.ndarray:
        """Instance t as (k, n) ratings, in the order of `WeightArrays.flat`. For small problems and checks."""
        names = list(self.names if classes is None else classes)
        k, layout = len(names), self.layout
        one = self[t : t + 1].compiled(names)
        votes = np.zeros((k, layout.voters))
        for i, vote in enumerate(one.votes[0]):
            if vote >= 0:
                votes[vote, i] = self.signs[i]
        row = [self.constant] if self.constant else []
        values = np.concatenate([row, self.dense[t], [] if self.csr is None else self.csr[[t]].toarray()[0]])
        return np.hstack([votes, one.scores[0].T if layout.raters else np.zeros((k, 0)), np.kron(values, np.eye(k))])

    def differences(self, t: int, label: Any, classes: Sequence[Any] | None = None) -> np.ndarray:
        """x^label - x^j for every other class j: (k - 1, n)."""
        names = list(self.names if classes is None else classes)
        full, rho = self.matrix(t, names), names.index(label)
        return full[rho] - np.delete(full, rho, axis=0)


def cut(instances: Instances, begin: int, end: int) -> Instances:
    """Trials begin..end."""
    indptr, indices, values = instances.indptr, instances.indices, instances.values
    if indptr.size:
        lo, hi = int(indptr[begin]), int(indptr[end])
        indptr, indices, values = indptr[begin : end + 1] - lo, indices[lo:hi], values[lo:hi]
    block = slice(begin, end)
    return instances._replace(
        votes=instances.votes[block],
        scores=instances.scores[block],
        dense=instances.dense[block],
        indptr=indptr,
        indices=indices,
        values=values,
    )


def no_instances(size: int) -> Instances:
    """Instances without sub-experts."""
    none = np.zeros(0, np.int32)
    return Instances(
        np.zeros((size, 0), np.int32),
        np.zeros(0),
        np.zeros((size, 0, 0)),
        np.zeros((size, 0)),
        np.zeros(0, np.int64),
        none,
        np.zeros(0),
        0.0,
    )


def widen(instances: Instances, layout: Layout, k: int) -> Instances:
    """The same instances in a layout with more columns on the right of each block and more classes, all of them silent.

    Negated voters have their own columns, so a sign stays with its column.
    """
    size = len(instances.votes)

    def wider(block: np.ndarray, columns: int, filling: float) -> np.ndarray:
        missing = columns - block.shape[1]
        if not missing:
            return block
        return np.concatenate([block, np.full((size, missing, *block.shape[2:]), filling, block.dtype)], axis=1)

    scores = instances.scores
    if layout.raters and scores.shape[2] < k:
        scores = np.concatenate([scores, np.zeros((*scores.shape[:2], k - scores.shape[2]))], axis=2)
    signs = np.concatenate([instances.signs, np.ones(layout.voters - len(instances.signs))])
    indptr = np.zeros(size + 1, np.int64) if layout.sparse and not instances.indptr.size else instances.indptr
    return instances._replace(
        votes=wider(instances.votes, layout.voters, -1),
        signs=signs,
        scores=wider(scores, layout.raters, 0.0),
        dense=wider(instances.dense, layout.dense, 0.0),
        indptr=indptr,
    )


def without(instances: Instances, columns: int) -> Instances:
    """The same without the sparse attributes from this column on."""
    kept = instances.indices < columns
    before = np.concatenate([[0], np.cumsum(kept)])
    return instances._replace(
        indptr=before[instances.indptr].astype(np.int64),
        indices=np.ascontiguousarray(instances.indices[kept]),
        values=np.ascontiguousarray(instances.values[kept]),
    )


def concatenate(first: Instances, second: Instances) -> Instances:
    """The trials of both, one after the other."""
    return second._replace(
        votes=np.concatenate([first.votes, second.votes]),
        scores=np.concatenate([first.scores, second.scores]),
        dense=np.concatenate([first.dense, second.dense]),
        indptr=np.concatenate([first.indptr, second.indptr[1:] + first.indptr[-1]])
        if first.indptr.size
        else first.indptr,
        indices=np.concatenate([first.indices, second.indices]),
        values=np.concatenate([first.values, second.values]),
    )


def experts(
    votes: Any = None,
    scores: Any = None,
    attributes: Any = None,
    classes: Sequence[Any] | None = None,
    thresholds: bool = True,
    *,
    abstain: Any = None,
    negated: bool = False,
    split: str | Mapping[int, Any] | None = None,
    scale: str | float | Scale | None = None,
    vocabulary: Mapping[Any, int] | None = None,
    by: Any = None,
    sides: Sequence[Any] | None = None,
) -> Experts:
    """Combine votes, scores and attributes into instances; any mix of the three is a hybrid problem.

    Parameters
    ----------
    votes
        (T, n) class labels, any hashable; None or nan abstains. A DataFrame gives the voters' names.
    scores
        (T, n, k) ratings of every class by each of n raters, classes in the order of ``classes`` (0..k-1 if absent).
    attributes
        (T, m) numbers, dense or sparse, or a list of ``{name: strength}`` dicts whose names form a growing
        vocabulary.
    classes
        All classes, in order. Without it they are those met in votes and labels.
    thresholds
        Add the constant attribute 1, that is one threshold for each class.
    abstain
        A label that also means abstention, such as -1.
    negated
        Add a copy -x of every voter, rater and attribute, for rules whose weights stay positive.
    split
        "all", or ``{i: class}`` / ``{i: "all"}`` for voter or rater i (raters count after voters): add its rating of
        that class (of every class) as attributes, so that it may be trusted for one class and not for another.
    scale
        Divide ratings and attributes so that rules that need it see at most 1: "max" (the largest magnitude of each
        column over the instances given), one number, or the ``.scale`` of earlier instances. By default
        nothing is scaled.
    vocabulary
        Names of attributes seen before, from ``.vocabulary``.
    by
        A side column, one value a trial, such as a subject or a source: adds copies of every voter for each value,
        which vote where it holds and abstain elsewhere, so that a voter may be trusted on one subject and not on
        another. A copy rates its class 0.15, so that it takes more evidence to trust it than to trust the voter (for
        a softmax its prior is 44 times as firm). A missing value has no copies.
    sides
        Values for which there are copies already, from ``.sides`` of earlier instances; new ones come after them.

    References
    ----------
    Mesterharm (2001), Rutgers dcs-tr-460, sections 2.1 (sub-experts), 4.2 (negated copies), 5 (attributes, splits).

    Examples
    --------
    >>> import linmax
    >>> linmax.experts(votes=[["a", "b", None], ["b", "b", "a"]])
    <2 instances: 3 voters, 0 raters, 0 attributes and thresholds>
    >>> linmax.experts(votes=[["a"], ["b"]], attributes=[[0.5, 1.0], [0.0, 0.2]], split="all")
    <2 instances: 1 voters, 0 raters, 4 attributes and thresholds>
    """
    thresholds, negated = boolean("thresholds", thresholds), boolean("negated", negated)
    sizes = {
        name: _length(name, block)
        for name, block in [("votes", votes), ("scores", scores), ("attributes", attributes)]
        if block is not None
    }
    if not sizes:
        raise ValueError("experts() needs votes, scores or attributes; got none of them")
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise ValueError(f"votes, scores and attributes must have one row a trial, but {told}")
    size = next(iter(sizes.values()))
    names = None if classes is None else _distinct(classes)
    codes, names_met, voter_names = _votes(votes, size, names, abstain)
    ratings = _scores(scores, size, names)
    if ratings.shape[1] and names is None:
        names = tuple(range(ratings.shape[2]))
        if set(names_met) - set(names):
            extra = sorted(set(names_met) - set(names), key=str)[0]
            raise ValueError(f"votes: {extra!r} is not among the {len(names)} classes that scores rate; pass classes=")
        codes = np.array([*(names.index(name) for name in names_met), -1], np.int32)[codes]
        names_met = names
    dense, csr, attribute_names, vocabulary = _attributes(attributes, size, vocabulary)
    dense, csr, ratings, used = _scaled(dense, csr, ratings, scale)
    signs = np.ones(codes.shape[1])
    met = codes  # only the voters themselves are split
    codes, signs, voter_names, values = _copies(by, sides, codes, signs, voter_names)
    extra_dense, extra_csr, extra_names = _splits(split, met, ratings, names_met, voter_names)
    if negated:
        codes, signs = np.hstack([codes, codes]), np.concatenate([signs, -signs])
        voter_names = voter_names + tuple(f"-{name}" for name in voter_names)
        ratings = np.concatenate([ratings, -ratings], axis=1)
        dense = np.hstack([dense, -dense])
        csr = None if csr is None else sparse.csr_array(sparse.hstack([csr, -csr], format="csr"))
        attribute_names = attribute_names + tuple(f"-{name}" for name in attribute_names)
    dense = np.hstack([dense, extra_dense])
    attribute_names = attribute_names + extra_names[0] if csr is None else extra_names[0] + attribute_names
    attribute_names = attribute_names + extra_names[1]
    if extra_csr is not None:
        csr = extra_csr if csr is None else sparse.csr_array(sparse.hstack([csr, extra_csr], format="csr"))
    return Experts(
        np.ascontiguousarray(codes, np.int32),
        signs,
        np.ascontiguousarray(ratings),
        np.ascontiguousarray(dense),
        csr,
        1.0 if thresholds else 0.0,
        tuple(names_met),
        names is not None,
        used,
        voter_names,
        attribute_names,
        vocabulary,
        values,
    )


COPY = 0.15  # rating of a copy made for one value of a side column


def _copies(
    by: Any, known: Sequence[Any] | None, codes: np.ndarray, signs: np.ndarray, names: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...], tuple[Any, ...]]:
    """The voters and their copies for each value of a side column, and these values in order."""
    if by is None:
        if known:
            raise ValueError(f"sides names {len(known)} values, but by is not given; pass the column")
        return codes, signs, names, ()
    column = by.tolist() if hasattr(by, "tolist") else list(by)
    if len(column) != len(codes):
        raise ValueError(f"by must have one value a trial: got {len(column)} for {len(codes)} trials")
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


def _length(name: str, block: Any) -> int:
    if sparse.issparse(block):
        return int(block.shape[0])
    try:
        return len(block)
    except TypeError:
        raise TypeError(f"{name} must be an array with one row a trial, got {type(block).__name__}") from None


def _distinct(classes: Sequence[Any]) -> tuple[Any, ...]:
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


def _votes(
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
        distinct, inverse = np.unique(table, return_inverse=True)
        met, codes = distinct.tolist(), inverse.reshape(table.shape).astype(np.int32)
    else:
        flat = [None if missing(v) else v for v in table.ravel().tolist()]
        try:
            met = sorted({v for v in flat if v is not None})
        except TypeError:
            met = list(dict.fromkeys(v for v in flat if v is not None))
        place = {name: i for i, name in enumerate(met)}
        codes = np.array([-1 if v is None else place[v] for v in flat], np.int32).reshape(table.shape)
    if abstain is not None and abstain in met:
        codes[codes == met.index(abstain)] = -1
    order = names or tuple(name for name in met if abstain is None or name != abstain)
    place = {name: i for i, name in enumerate(order)}
    unknown = [name for i, name in enumerate(met) if name not in place and (codes == i).any()]
    if unknown:
        t, i = np.argwhere(codes == met.index(unknown[0]))[0]
        raise ValueError(
            f"votes: voter {columns[i]!r} voted for {unknown[0]!r} at trial {t}, which is not among "
            f"classes={list(order)!r}; add it, or name it with abstain="
        )
    return np.array([*(place.get(name, -1) for name in met), -1], np.int32)[codes], order, columns


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


def _scores(scores: Any, size: int, names: tuple[Any, ...] | None) -> np.ndarray:
    if scores is None:
        return np.zeros((size, 0, 0))
    array = _numbers("scores", scores, 3)
    if names is not None and array.shape[2] != len(names):
        raise ValueError(f"scores rate {array.shape[2]} classes, but classes= names {len(names)}; give each a column")
    return array


def _attributes(
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


def _scaled(
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


def _splits(
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
