"""The arrays of the pool for votes before the first trial, and over more coordinates."""

from __future__ import annotations

import numpy as np

from linmax.core.contract import Instances
from linmax.jit.blocks import SIDE
from linmax.learners.votes.agreement import Agreement, new_agreement
from linmax.learners.votes.mixture import AGE, AGREED, FIRST_SHARES, FULL_PRECISION, LOGITS, NARROW, OUTSET, RIDGE, Pool
from linmax.learners.votes.sharpness import new_sharpness
from linmax.learners.votes.trial import VOTERS

__all__ = [
    "blocked",
    "blocks_of",
    "has_matrices",
    "narrowed",
    "new_pool",
    "no_factors",
    "no_information",
    "restored",
    "silent_block",
    "spread_agreement",
    "spread_out",
    "spread_pool",
]

GUESSES, OTHERS = 1.0, 9.0  # labels taken to have been seen, guessed and not, before the first


def new_pool() -> Pool:
    """Before the first trial: no voters and no raters."""
    precision = RIDGE[:, None, None] * np.eye(VOTERS)
    return Pool(
        weights=np.tile(OUTSET, (LOGITS, 1)),
        home=np.tile(OUTSET, (LOGITS, 1)),
        precision=precision,
        factor=no_factors(precision),
        diagonal=np.zeros((LOGITS, 0)),
        seen=np.zeros(VOTERS, np.int64),
        sums=np.zeros((LOGITS, 2)),
        scales=np.zeros((0, 2)),
        mixture=FIRST_SHARES.copy(),
        guesses=np.tile([GUESSES, OTHERS], (FIRST_SHARES.size, 1)),
        counts=np.array([0, 0, 0, 0, VOTERS]),
        silence=np.zeros(3),
        sharpness=new_sharpness(LOGITS),
    )


def spread_out(array: np.ndarray, places: np.ndarray, size: int) -> np.ndarray:
    """An array whose last axis has ``size`` coordinates: its own at these places, 0 elsewhere."""
    new = np.zeros((*array.shape[:-1], size), array.dtype)
    new[..., places] = array
    return new


def has_matrices(size: int) -> bool:
    """Whether the precisions over so many coordinates are full matrices, and voters are compared with each other."""
    return size <= FULL_PRECISION


def silent_block(voters: int, others: int) -> int:
    """How many coordinates votes have by how many are silent: as many as voters, or none where that would be too many.

    Examples
    --------
    >>> silent_block(20, 10), silent_block(200, 10)
    (20, 0)
    """
    return voters if has_matrices(VOTERS + 2 * voters + others) else 0


def blocks_of(instances: Instances, k: int) -> np.ndarray:
    """How many voters, raters and thresholds there are, and voters by how many are silent."""
    voters, raters, thresholds = instances.signs.size, instances.scores.shape[1], k if instances.constant else 0
    return np.array([voters, raters, thresholds, silent_block(voters, raters + thresholds)])


def narrowed(pool: Pool) -> Pool:
    """The pool without the coordinates of votes by how many are silent."""
    narrow = int(pool.counts[NARROW])
    return pool._replace(
        weights=pool.weights[:, :narrow],
        home=pool.home[:, :narrow],
        precision=pool.precision[:, :narrow, :narrow],
        diagonal=pool.diagonal[:, :narrow],
        seen=pool.seen[:narrow],
    )


def blocked(size: int) -> int:
    """The size of a factor of a matrix of this size: the next multiple of that of a block.

    Examples
    --------
    >>> [blocked(size) for size in (3, 4, 5)]
    [4, 4, 8]
    """
    return -(-size // SIDE) * SIDE


def no_factors(precision: np.ndarray) -> np.ndarray:
    """Room for the factors of these precisions."""
    size = blocked(precision.shape[1])
    return np.zeros((LOGITS, size, size))


def restored(arrays: dict[str, np.ndarray]) -> Pool:
    """A stored pool. Earlier versions had factors of another form, did not count who is silent, and did not sharpen."""
    arrays = {"sharpness": new_sharpness(LOGITS)} | arrays
    if "silence" not in arrays:
        counts = np.append(arrays["counts"], arrays["weights"].shape[1])
        arrays = arrays | {"silence": np.zeros(3), "counts": counts}
    pool = Pool(**arrays)
    room = no_factors(pool.precision)
    if pool.factor.shape == room.shape:
        return pool
    pool.counts[AGE] = 0
    return pool._replace(factor=room)


def no_information(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Precisions over so many coordinates of which nothing is known: full matrices or diagonals, and none of the other.

    Examples
    --------
    >>> [array.shape for array in no_information(10)]
    [(6, 10, 10), (6, 0)]
    """
    if has_matrices(size):
        return RIDGE[:, None, None] * np.eye(size), np.zeros((LOGITS, 0))
    return np.zeros((LOGITS, 0, 0)), np.tile(RIDGE[:, None], size)


def spread_pool(pool: Pool, places: np.ndarray, size: int, narrow: int, raters: np.ndarray, count: int) -> Pool:
    """The pool over ``size`` coordinates and ``count`` raters; what it has is at these places among them.

    From ``narrow`` on they are those of votes by how many are silent.
    """
    precision, diagonal = no_information(size)
    mixture = pool.mixture.copy()
    if precision.size:
        for mine, own in zip(precision, pool.precision, strict=True):
            whole = np.tril(own) + np.tril(own, -1).T
            mine[np.ix_(places, places)] = whole
            mine[:] = np.tril(mine)
    else:
        full = pool.precision.size > 0
        diagonal[:, places] = np.diagonal(pool.precision, axis1=1, axis2=2) if full else pool.diagonal
        if mixture[AGREED] > 0.0:  # so many voters are not compared
            mixture[AGREED] = 0.0
            mixture /= mixture.sum()
    scales = np.zeros((count, 2))
    scales[raters] = pool.scales
    counts = pool.counts.copy()
    counts[[AGE, NARROW]] = 0, narrow
    return pool._replace(
        weights=spread_out(pool.weights, places, size),
        home=spread_out(pool.home, places, size),
        precision=precision,
        factor=no_factors(precision),
        diagonal=diagonal,
        seen=spread_out(pool.seen, places, size),
        sums=pool.sums.copy(),
        scales=scales,
        mixture=mixture,
        guesses=pool.guesses.copy(),
        counts=counts,
        silence=pool.silence.copy(),
        sharpness=pool.sharpness.copy(),
    )


def spread_agreement(old: Agreement, voters: np.ndarray, count: int, classes: np.ndarray, k: int) -> Agreement:
    """Agreement among ``count`` voters on k classes; what it has is at these places among them."""
    new = new_agreement(count, k)
    if old.trust.size:
        new.together[np.ix_(voters, voters)], new.agreed[np.ix_(voters, voters)] = old.together, old.agreed
        new.habits[np.ix_(voters, classes)] = old.habits
        new.trust[:, voters], new.trust[:, -1] = old.trust[:, :-1], old.trust[:, -1]
        new.numbers[:] = old.numbers
    return new
