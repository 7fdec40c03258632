"""Trials in arrays, as the kernels take them: cut, joined, widened; and how many columns of each kind there are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linmax.core.contract import NO_LABEL, Trials

__all__ = ["Layout", "attributes_of", "concatenate", "cut", "no_trials", "repeated", "widen", "without"]


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


def cut(trials: Trials, begin: int, end: int) -> Trials:
    """Trials begin..end."""
    indptr, indices, values = trials.indptr, trials.indices, trials.values
    if indptr.size:
        lo, hi = int(indptr[begin]), int(indptr[end])
        indptr, indices, values = indptr[begin : end + 1] - lo, indices[lo:hi], values[lo:hi]
    block = slice(begin, end)
    return Trials(
        trials.votes[block], trials.signs, trials.scores[block], trials.dense[block], indptr, indices, values,
        trials.constant, trials.known[block], trials.labels[block], trials.weights[block],
    )  # fmt: skip


def no_trials(size: int) -> Trials:
    """Trials without sub-experts and labels, which count 1 each; their known classes are those of the engine."""
    none = np.zeros(0, np.int32)
    return Trials(
        np.zeros((size, 0), np.int32), np.zeros(0), np.zeros((size, 0, 0)), np.zeros((size, 0)), np.zeros(0, np.int64),
        none, np.zeros(0), 0.0, np.zeros(size, np.int64), np.full(size, NO_LABEL, np.int32), np.ones(size),
    )  # fmt: skip


def attributes_of(trials: Trials, t: int) -> Trials:
    """One trial without its votes and scores, in memory of its own."""
    indptr, indices, values = trials.indptr, trials.indices, trials.values
    if indptr.size:
        lo, hi = indptr[t], indptr[t + 1]
        indptr, indices, values = np.array([0, hi - lo], np.int64), indices[lo:hi].copy(), values[lo:hi].copy()
    (votes, signs, scores, *_), one = _NOTHING, slice(t, t + 1)
    columns = (trials.known[one].copy(), trials.labels[one].copy(), trials.weights[one].copy())
    return Trials(votes, signs, scores, trials.dense[one].copy(), indptr, indices, values, trials.constant, *columns)


_NOTHING = no_trials(1)


def widen(trials: Trials, layout: Layout, k: int) -> Trials:
    """Widen trials to a layout with more columns on the right of each block and more classes, all of them silent.

    Negated voters have their own columns, so a sign stays with its column.
    """
    size = len(trials.votes)

    def wider(block: np.ndarray, columns: int, filling: float) -> np.ndarray:
        missing = columns - block.shape[1]
        if not missing:
            return block
        return np.concatenate([block, np.full((size, missing, *block.shape[2:]), filling, block.dtype)], axis=1)

    scores = trials.scores
    if layout.raters and scores.shape[2] < k:
        scores = np.concatenate([scores, np.zeros((*scores.shape[:2], k - scores.shape[2]))], axis=2)
    signs = np.concatenate([trials.signs, np.ones(layout.voters - len(trials.signs))])
    indptr = np.zeros(size + 1, np.int64) if layout.sparse and not trials.indptr.size else trials.indptr
    return trials._replace(
        votes=wider(trials.votes, layout.voters, -1),
        signs=signs,
        scores=wider(scores, layout.raters, 0.0),
        dense=wider(trials.dense, layout.dense, 0.0),
        indptr=indptr,
    )


def without(trials: Trials, columns: int) -> Trials:
    """Drop the sparse attributes from this column on."""
    kept = trials.indices < columns
    before = np.concatenate([[0], np.cumsum(kept)])
    return trials._replace(
        indptr=before[trials.indptr].astype(np.int64),
        indices=np.ascontiguousarray(trials.indices[kept]),
        values=np.ascontiguousarray(trials.values[kept]),
    )


def concatenate(first: Trials, second: Trials) -> Trials:
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
        known=np.concatenate([first.known, second.known]),
        labels=np.concatenate([first.labels, second.labels]),
        weights=np.concatenate([first.weights, second.weights]),
    )


def repeated(instance: Trials, times: int) -> Trials:
    """Repeat one trial."""
    none = not instance.indptr.size
    return instance._replace(
        votes=np.repeat(instance.votes, times, axis=0),
        scores=np.repeat(instance.scores, times, axis=0),
        dense=np.repeat(instance.dense, times, axis=0),
        indptr=instance.indptr if none else np.arange(times + 1, dtype=np.int64) * instance.indptr[-1],
        indices=np.tile(instance.indices, times),
        values=np.tile(instance.values, times),
        known=np.repeat(instance.known, times),
        labels=np.repeat(instance.labels, times),
        weights=np.repeat(instance.weights, times),
    )
