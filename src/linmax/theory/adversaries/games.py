"""Games between an adversary and a learner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linmax.util.checks import whole

__all__ = ["Adversary", "Game", "Vector", "meet", "play"]

Vector = npt.NDArray[np.float64]
Adversary = Callable[[Vector], Vector | None]


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
    >>> from linmax.adversaries import meet, orthogonal
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

    >>> from linmax.adversaries import orthogonal, play
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


def meet(adversary: Adversary, rule: Any, n: int, trials: int) -> Game:
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
    >>> from linmax.adversaries import balanced_mass, meet
    >>> game = meet(balanced_mass(n=200, relevant=3), "committee(1.4142135)", n=200, trials=1000)
    >>> game.updates <= linmax.bounds.multiplicative([1 / 3] * 3 + [0] * 197, 1 / 3, 1.4142135)
    True
    """
    # Imported here: the adversaries themselves need no compiled loop.
    from linmax.engine.notation import as_rule
    from linmax.models.threshold import LinearThreshold

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
