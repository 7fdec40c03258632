"""Instances in arrays, as the kernels take them: cut, joined, widened; and how many columns of each kind there are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linmax.core.contract import Instances

__all__ = ["Layout", "attributes_of", "concatenate", "cut", "no_instances", "repeated", "widen", "without"]


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
        """Return whether instances of the other layout fit into this one, with its last columns silent."""
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
        shown = ", ".join(map(repr, self.names[:5])) + (", ..." if len(self.names) > 5 else "")
        parts[2] += f" ({shown})" if self.names else ""
        return ", ".join(parts) + (" and thresholds" if self.constant else " and no thresholds")


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


_NOTHING = no_instances(1)


def attributes_of(instances: Instances, t: int) -> Instances:
    """The attributes of one trial alone, in memory of their own."""
    indptr, indices, values = instances.indptr, instances.indices, instances.values
    if indptr.size:
        lo, hi = indptr[t], indptr[t + 1]
        indptr, indices, values = np.array([0, hi - lo], np.int64), indices[lo:hi].copy(), values[lo:hi].copy()
    none, dense = _NOTHING, instances.dense[t : t + 1].copy()
    return Instances(none.votes, none.signs, none.scores, dense, indptr, indices, values, instances.constant)


def widen(instances: Instances, layout: Layout, k: int) -> Instances:
    """Widen instances to a layout with more columns on the right of each block and more classes, all of them silent.

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
    """Drop the sparse attributes from this column on."""
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


def repeated(instance: Instances, times: int) -> Instances:
    """Repeat one trial."""
    none = not instance.indptr.size
    return instance._replace(
        votes=np.repeat(instance.votes, times, axis=0),
        scores=np.repeat(instance.scores, times, axis=0),
        dense=np.repeat(instance.dense, times, axis=0),
        indptr=instance.indptr if none else np.arange(times + 1, dtype=np.int64) * instance.indptr[-1],
        indices=np.tile(instance.indices, times),
        values=np.tile(instance.values, times),
    )
