"""Adversaries whose instances are fixed in advance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from linmax.theory.adversaries.games import Vector
from linmax.util.checks import whole

__all__ = ["as_scores", "as_votes", "sparse_target", "ties", "turncoats"]


def sparse_target(n: int, relevant: int = 0) -> Vector:
    """The classic lower bound for the Perceptron on a sparse target: n instances, an update on each.

    n is a power of 2. The rows are those of a Hadamard matrix times the label, which is the attribute
    number ``relevant``; they are orthogonal, so additive rules learn nothing from one about the next: w.z =
    0 on all n trials, exactly the bound R^2/gamma^2 = n. Winnow needs about log2 n.

    Source: Kivinen, Warmuth and Auer (1997), The Perceptron algorithm versus Winnow.

    Parameters
    ----------
    n
        Attributes, and instances; a power of 2.
    relevant
        The attribute that is the label.

    Returns
    -------
    array (n, n)
        The instances z, one per row.

    Examples
    --------
    >>> rows = sparse_target(8)
    >>> rows.shape, (rows @ rows.T == 8 * np.eye(8)).all(), rows[:, 0].tolist() == [1.0] * 8
    ((8, 8), np.True_, True)
    """
    n = _power_of_two("n", n)
    if not 0 <= whole("relevant", relevant, 0) < n:
        raise ValueError(f"relevant must be one of 0..{n - 1}, got {relevant!r}")
    rows = np.ones((1, 1))
    while len(rows) < n:
        rows = np.block([[rows, rows], [rows, -rows]])
    return rows * rows[:, [relevant]]


def ties(n: int) -> Vector:
    """log2(n) instances on each of which every rule that treats attributes alike has w.z = 0.

    n is a power of 2, the target is attribute 0 with margin 1. At each trial half of those that were never
    wrong, attribute 0 among them, are right; the others of them are wrong, and the rest say nothing. What
    is still alive has equal weights, so that the halves cancel. WMA with alpha to infinity is the halving
    algorithm, whose bound log2(n) is reached.

    Source: Littlestone (1988), the halving algorithm.

    Parameters
    ----------
    n
        Attributes; a power of 2.

    Returns
    -------
    array (log2 n, n)
        The instances z, one per row.

    Examples
    --------
    >>> ties(4).tolist()
    [[1.0, -1.0, 1.0, -1.0], [1.0, 0.0, -1.0, 0.0]]
    """
    n = _power_of_two("n", n)
    rows = []
    for step in (2**i for i in range(n.bit_length() - 1)):
        z = np.zeros(n)
        z[::step] = -1.0
        z[:: 2 * step] = 1.0
        rows.append(z)
    return np.array(rows).reshape(-1, n)


def turncoats(
    n: int, relevant: int, k: int, trials: int, turn: int | None = None, seed: int = 0
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Voters that change sides: votes (trials, n) and labels of a problem with k classes.

    Up to trial ``turn`` (half of the trials) the first ``relevant`` voters are right and all others vote at
    random; from then on those first ones always vote for a wrong class, and the next ``relevant`` are
    right. No fixed weights are good throughout: all is noise to one half or the other.

    Parameters
    ----------
    n
        Voters.
    relevant
        How many are right before the turn, and how many others after it; at most n/2.
    k
        Classes.
    trials
        Number of trials.
    turn
        The trial at which they change sides; half of the trials by default.
    seed
        Of votes and labels.

    Returns
    -------
    tuple of arrays
        Votes (trials, n) and labels (trials,).

    See Also
    --------
    linmax.bounds.fixed_share : what following a changing best member costs.

    Examples
    --------
    >>> votes, labels = turncoats(n=4, relevant=2, k=3, trials=6, turn=3)
    >>> (votes[:3, :2] == labels[:3, None]).all(), (votes[3:, :2] != labels[3:, None]).all()
    (np.True_, np.True_)
    """
    n, relevant, k = whole("n", n, 2), whole("relevant", relevant, 1), whole("k", k, 2)
    trials = whole("trials", trials, 1)
    if 2 * relevant > n:
        raise ValueError(f"relevant must be at most n/2 = {n // 2}, got {relevant}; both sides need voters")
    moment = trials // 2 if turn is None else whole("turn", turn, 0)
    random = np.random.default_rng(seed)
    labels = random.integers(k, size=trials)
    votes = random.integers(k, size=(trials, n))
    votes[:moment, :relevant] = labels[:moment, None]
    wrong = (labels[moment:, None] + random.integers(1, k, size=(max(0, trials - moment), relevant))) % k
    votes[moment:, :relevant] = wrong
    votes[moment:, relevant : 2 * relevant] = labels[moment:, None]
    return votes, labels


def as_votes(rows: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Instances with z_i in {-1, 0, 1} as votes between two classes, for `linmax.experts` (abstain=-1).

    The label is always class 0; z_i = 1 votes for it, -1 for class 1, 0 abstains. The linear-max learner
    (without thresholds) then sees exactly these z.

    Parameters
    ----------
    rows
        Instances (trials, n) of -1, 0 and 1.

    Returns
    -------
    tuple of arrays
        Votes (trials, n), -1 for an abstention, and labels, all 0.

    See Also
    --------
    linmax.experts : takes the votes, with ``abstain=-1``.

    Examples
    --------
    >>> votes, labels = as_votes([[1, -1, 0]])
    >>> votes.tolist(), labels.tolist()
    ([[0, 1, -1]], [0])
    """
    z = np.asarray(rows, dtype=float)
    if z.ndim != 2 or not np.all(np.isin(z, (-1.0, 0.0, 1.0))):
        raise ValueError("rows must be (trials, n) with entries -1, 0 and 1; other values are no votes")
    votes = np.where(z > 0.0, 0, np.where(z < 0.0, 1, -1)).astype(np.int64)
    return votes, np.zeros(len(z), dtype=np.int64)


def as_scores(rows: npt.ArrayLike, classes: int) -> tuple[Vector, npt.NDArray[np.int64]]:
    """Instances z as ratings of many classes, for `linmax.experts`: the label is rated z, all others 0.

    The label is always the last class, so that a tie is a mistake; the linear-max learner (without thresholds) sees
    exactly these z, whichever rival it takes.

    Parameters
    ----------
    rows
        Instances (trials, n).
    classes
        Number of classes, at least 2.

    Returns
    -------
    tuple of arrays
        Scores (trials, n, classes) and labels, all classes - 1.

    See Also
    --------
    as_votes : votes between two classes.

    Examples
    --------
    >>> scores, labels = as_scores([[1.0, -0.5]], classes=3)
    >>> scores.tolist(), labels.tolist()
    ([[[0.0, 0.0, 1.0], [0.0, 0.0, -0.5]]], [2])
    """
    z, k = np.asarray(rows, dtype=float), whole("classes", classes, 2)
    if z.ndim != 2:
        raise ValueError(f"rows must be (trials, n), got shape {z.shape}")
    scores = np.zeros((*z.shape, k))
    scores[:, :, -1] = z
    return scores, np.full(len(z), k - 1, dtype=np.int64)


def _power_of_two(name: str, value: int) -> int:
    number = whole(name, value, 1)
    if number & (number - 1):
        raise ValueError(f"{name} must be a power of 2, got {value!r}; try {1 << (number.bit_length() - 1)}")
    return number
