"""Adversaries: sequences of instances that try to make a learner break its bound.

They work in z-form (the instance times its label; the right answer is always +1), in which every rule and
every bound of this package is stated. An adaptive adversary is a function that sees the current weights and
answers with the next z, or with None when it can force no further update. Weights matter up to a positive
factor only.

`play` lets an adversary meet a learner; `as_votes` turns its instances into votes of a two-class problem, `as_scores`
into ratings of many classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import hadamard

from linmax.engine.notation import as_rule
from linmax.techniques.technique import LearnerLike
from linmax.theory.rows import Vector
from linmax.theory.threshold import LinearThreshold
from linmax.util.checks import finite, whole

__all__ = [
    "Adversary",
    "Game",
    "as_scores",
    "as_votes",
    "balanced_mass",
    "meet",
    "orthogonal",
    "play",
    "sparse_target",
    "ties",
    "turncoats",
    "worst_flips",
]

Adversary: TypeAlias = Callable[[Vector], Vector | None]


# -- games ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Game:
    """Trials of a game: the instances (trials, n) and whether each caused an update.

    Attributes
    ----------
    rows : array (trials, n)
        The instances z that were played.
    updated : array of bool (trials,)
        Whether each caused an update.

    See Also
    --------
    play, meet : how a game is made.

    Examples
    --------
    >>> from linmax.theory.adversaries import meet, orthogonal
    >>> game = meet(orthogonal([1.0, 0.0, 0.0], margin=0.5), "perceptron", n=3, trials=100)
    >>> game.updates, game.rows.shape
    (3, (3, 3))
    """

    rows: Vector
    updated: npt.NDArray[np.bool_]

    @property
    def updates(self) -> int:
        """Number of updates."""
        return int(self.updated.sum())


def play(adversary: Adversary, weights: Callable[[], Vector], update: Callable[[Vector], bool], trials: int) -> Game:
    """Let an adversary play against a learner given by two functions, until it gives up or trials run out.

    Parameters
    ----------
    adversary
        From this module.
    weights
        Returns the learner's present weights.
    update
        Shows the learner one z and returns whether it updated.
    trials
        The most trials to play.

    Returns
    -------
    Game
        What was played.

    See Also
    --------
    meet : the same against a rule of this package.

    Examples
    --------
    A Perceptron in two lines meets vectors orthogonal to its weights; the bound is 1/margin^2 = 100:

    >>> from linmax.theory.adversaries import orthogonal, play
    >>> w = np.zeros(150)
    >>> def learn(z):
    ...     w[:] += z
    ...     return True
    >>> play(orthogonal(np.eye(150)[0], margin=0.1), lambda: w, learn, trials=1000).updates
    100
    """
    rows: list[Vector] = []
    updated: list[bool] = []
    for _ in range(whole("trials", trials, 0)):
        z = adversary(np.asarray(weights(), dtype=float))
        if z is None:
            break
        rows.append(z)
        updated.append(bool(update(z)))
    return Game(np.array(rows), np.array(updated, dtype=bool))


def meet(adversary: Adversary, rule: LearnerLike, n: int, trials: int) -> Game:
    """`play` against a rule of this package, or its text, with n weights.

    Parameters
    ----------
    adversary
        From this module.
    rule
        A rule, or its text.
    n
        Number of weights.
    trials
        The most trials to play.

    Returns
    -------
    Game
        What was played.

    See Also
    --------
    play : the same against any learner.

    Examples
    --------
    >>> import linmax
    >>> from linmax.theory.adversaries import balanced_mass, meet
    >>> game = meet(balanced_mass(n=200, relevant=3), "committee(1.4142135)", n=200, trials=1000)
    >>> game.updates <= linmax.theory.bounds.multiplicative([1 / 3] * 3 + [0] * 197, 1 / 3, 1.4142135)
    True
    """
    described = as_rule(rule)
    learner = LinearThreshold(described, labels=(-1, 1))
    begun = False

    def weights() -> Vector:
        return np.asarray(learner.weights) if begun else np.full(n, described.start)

    def update(z: Vector) -> bool:
        nonlocal begun
        begun = True
        return bool(learner.run(z[None, :], [1]).changed[0])

    return play(adversary, weights, update, trials)


# -- adversaries that see the weights ---------------------------------------------------------------------------------


def balanced_mass(n: int, relevant: int) -> Adversary:
    """The greedy adversary of multiplicative rules with positive weights.

    The first ``relevant`` (odd) attributes are right by one vote: u = 1/relevant each, margin delta =
    1/relevant. The lightest of them are those that are right. All others are split so that w.z comes as
    close to 0 from below as it can. Every z_i is -1 or +1 and w.z is nearly 0, the case in which the bound
    is tight; `bounds.multiplicative` is reached within 5 per cent.

    With n = 20000 and 3 relevant attributes it forces 183 mistakes on WMA with alpha = (1 - delta)^(-1/2),
    where Mesterharm (2001) prints 2 ln(n)/delta^2 = 178.3 (`bounds.committee_printed`), and 153 with alpha
    = sqrt((1 + delta)/(1 - delta)), for which that is true.

    Source: derived here; the counter-example to Mesterharm (2001), section 4.2.

    Parameters
    ----------
    n
        Attributes in all.
    relevant
        How many of them matter; an odd number below n.

    Returns
    -------
    Adversary
        Sees the weights, answers with the next z, or None when it gives up.

    Examples
    --------
    >>> balanced_mass(n=5, relevant=1)(np.ones(5)).tolist()
    [1.0, -1.0, -1.0, -1.0, 1.0]
    """
    n, relevant = whole("n", n, 2), _odd("relevant", relevant, n - 1)

    def answer(weights: Vector) -> Vector | None:
        # equal weights that differ by rounding are one group
        w = np.round(weights / (float(np.abs(weights).max()) or 1.0), 14)
        z = np.ones(n)
        z[np.argsort(w[:relevant], kind="stable")[(relevant + 1) // 2 :]] = -1.0
        # a hair below 0, so that rounding in the learner's sum cannot turn an update into none
        lead = float(w[:relevant] @ z[:relevant]) + 1e-13 * float(np.abs(w).sum())
        signs, lead = _split(np.abs(w[relevant:]), lead)
        z[relevant:] = np.where(w[relevant:] < 0.0, -signs, signs)
        return None if lead > 0.0 else z

    return answer


def _split(weights: Vector, lead: float) -> tuple[Vector, float]:
    """Signs that bring lead + sum of signed weights as close to 0 from below as possible, heaviest first."""
    signs = np.ones(len(weights))
    order = np.argsort(-weights, kind="stable")
    heavy = weights[order]
    starts = np.flatnonzero(np.concatenate([[True], heavy[1:] != heavy[:-1]]))
    for start, end in zip(starts, np.append(starts[1:], len(heavy)), strict=True):
        value, count = float(heavy[start]), int(end - start)
        if value <= 0.0:
            break  # weights that have vanished decide nothing
        minus = min(count, max(0, math.ceil((count + lead / value) / 2.0)))
        signs[order[start : start + minus]] = -1.0
        lead += value * (count - 2 * minus)
    return signs, lead


def orthogonal(u: npt.ArrayLike, margin: float, first: npt.ArrayLike | None = None, seed: int = 0) -> Adversary:
    """Unit vectors orthogonal to the weights, ties on every trial, with u.z = margin: the Perceptron's worst.

    ``u`` has unit length. The Perceptron updates about 1/margin^2 - 1 times, its bound being 1/margin^2.
    ``first`` is shown before all else: with first = -u, a flipped label, ALMA_2(1; C = 1) exceeds
    `bounds.alma_noisy_printed`.

    Source: Novikoff (1962) has the bound that it reaches.

    Parameters
    ----------
    u
        The comparator, of unit length, with at least 3 coordinates.
    margin
        u.z of every instance, between 0 and 1.
    first
        An instance to be shown before all else.
    seed
        Of the directions that are free.

    Returns
    -------
    Adversary
        Sees the weights, answers with the next z, or None when it gives up.

    Examples
    --------
    >>> z = orthogonal([1.0, 0.0, 0.0], margin=0.5)(np.array([0.0, 2.0, 0.0]))
    >>> round(float(z[0]), 9), round(float(z[1]), 9), round(float(z @ z), 9)
    (0.5, 0.0, 1.0)
    """
    target = np.asarray(u, dtype=float)
    if target.ndim != 1 or target.size < 3 or abs(float(target @ target) - 1.0) > 1e-9:
        raise ValueError("u must have unit length and at least 3 coordinates; divide it by its 2-norm")
    gap = finite("margin", margin)
    if not 0.0 < gap < 1.0:
        raise ValueError(f"margin must lie between 0 and 1, got {margin!r}; try 0.1")
    random = np.random.default_rng(seed)
    opening = [] if first is None else [np.asarray(first, dtype=float)]

    def answer(weights: Vector) -> Vector | None:
        if opening:
            return opening.pop()
        along = float(weights @ target)
        across = weights - along * target
        length = float(np.linalg.norm(across))
        rest = math.sqrt(1.0 - gap * gap)
        # z = margin u + s across/|across| + the remainder in a fresh direction; s makes w.z = 0 if it can
        s = -along * gap / length if length > 1e-12 else 0.0
        if s < -rest or (length <= 1e-12 and along > 0.0):
            return None
        s = min(s, rest)
        z = gap * target
        if length > 1e-12:
            z = z + s * across / length
        fresh = random.normal(size=target.size)
        for direction, size in ((target, 1.0), (across, length)):
            if size > 1e-12:
                fresh -= float(fresh @ direction) / size**2 * direction
        z = z + math.sqrt(max(0.0, rest * rest - s * s)) * fresh / float(np.linalg.norm(fresh))
        lead = float(weights @ z)
        return z - (lead + 1e-15) / float(weights @ weights) * weights if lead > 0.0 else z

    return answer


def worst_flips(adversary: Adversary, u: npt.ArrayLike, times: int) -> Adversary:
    """Label noise at the worst moment: ``times`` flipped labels among the instances of another adversary.

    A flipped instance is wrong in every relevant attribute (u.z = -sum |u_i|) and right in as many others as
    still make the learner err; it costs the noise margin + sum |u_i|. It hurts most when relevant and other
    attributes weigh the same: then w.z is nearly 0 and nothing of the learner's progress pays for it. With
    `balanced_mass` the bound is reached within 6 per cent, its noise term included.

    Source: derived here.

    Parameters
    ----------
    adversary
        The adversary whose instances are played between the flips.
    u
        The comparator.
    times
        How many labels are flipped.

    Returns
    -------
    Adversary
        Sees the weights, answers with the next z, or None when it gives up.

    Examples
    --------
    >>> inner = balanced_mass(n=3, relevant=1)
    >>> worst_flips(inner, [1, 0, 0], times=1)(np.array([9.0, 1.0, 1.0])).tolist()
    [-1.0, 1.0, 1.0]
    """
    target = np.asarray(u, dtype=float)
    left = whole("times", times, 0)
    others = np.flatnonzero(target == 0.0)

    def answer(weights: Vector) -> Vector | None:
        nonlocal left
        z = adversary(weights)
        learned = float(weights @ np.sign(target)) >= float(np.abs(weights[others]).sum())
        if left == 0 or not (learned or z is None):
            return z
        left -= 1
        flipped: Vector = -np.sign(target)
        order = others[np.argsort(np.abs(weights[others]), kind="stable")]
        lead = float(weights @ flipped) + np.cumsum(np.abs(weights[order]))
        chosen = order[lead <= 0.0]
        flipped[chosen] = np.where(weights[chosen] < 0.0, -1.0, 1.0)
        return flipped

    return answer


def _odd(name: str, value: int, most: int) -> int:
    number = whole(name, value, 1)
    if number % 2 == 0 or number > most:
        raise ValueError(f"{name} must be odd and at most {most}, got {value!r}; a majority needs an odd number")
    return number


# -- instances fixed in advance ---------------------------------------------------------------------------------------


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
    rows = hadamard(n).astype(float)
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
    linmax.theory.bounds.fixed_share : what following a changing best member costs.

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
    """Instances with z_i in {-1, 0, 1} as votes between two classes, for `linmax.instances` (abstain=-1).

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
    linmax.instances : takes the votes, with ``abstain=-1``.

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
    """Instances z as ratings of many classes, for `linmax.instances`: the label is rated z, all others 0.

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
