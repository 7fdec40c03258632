"""Trials with candidates of their own: how many there are, and who they are, may differ from trial to trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Choices", "choices"]


@dataclass(frozen=True, eq=False)
class Choices:
    """Trials with candidates; made by `linmax.choices`."""

    candidates: Sequence[Sequence[Any]]
    votes: Sequence[Any] | None
    scores: Sequence[Any] | None

    def __len__(self) -> int:
        return len(self.candidates)

    def __getitem__(self, trials: slice) -> Choices:
        parts = (None if block is None else block[trials] for block in (self.candidates, self.votes, self.scores))
        return Choices(*parts)  # type: ignore[arg-type]

    def trial(self, t: int) -> dict[str, Any]:
        """Trial t as `Learner.learn` takes it."""
        said = {"votes": self.votes, "scores": self.scores}
        return {"candidates": self.candidates[t]} | {
            name: block[t] for name, block in said.items() if block is not None
        }


def choices(
    candidates: Sequence[Sequence[Any]], *, votes: Sequence[Any] | None = None, scores: Sequence[Any] | None = None
) -> Choices:
    """Instances whose classes are candidates: for `linmax.run`, beside `linmax.experts`.

    Parameters
    ----------
    candidates
        For each trial those who may win, seen before or not, in any number.
    votes
        For each trial {voter: candidate}, or one candidate a voter; who names nobody, or nobody of these, abstains.
    scores
        For each trial {rater: {candidate: number}}, or {rater: numbers in the order of the candidates}. A candidate not
        rated has 0.

    Notes
    -----
    Voters and raters have one weight each, whatever the candidates. Thresholds and attributes, which have a weight for
    each class, do not exist here.

    Returns
    -------
    Choices
        The instances, for `linmax.run`.

    See Also
    --------
    linmax.experts : instances whose classes are the same at every trial.

    Examples
    --------
    >>> import linmax
    >>> trials = linmax.choices(
    ...     [["oslo", "rome"], ["bern", "lima", "riga"], ["kiev", "baku"]],
    ...     scores=[{"map": [1, 0], "dice": [0, 1]}, {"map": [0, 0, 1], "dice": [1, 0, 0]}, {"map": [0, 1]}],
    ... )
    >>> linmax.run("perceptron", trials, ["oslo", "riga", "baku"]).predictions.tolist()
    ['oslo', 'riga', 'baku']
    """
    if votes is None and scores is None:
        raise TypeError("choices() needs votes= or scores=; got neither")
    for name, block in (("votes", votes), ("scores", scores)):
        if block is not None and len(block) != len(candidates):
            raise ValueError(
                f"{name} must be one per trial: got {len(block)} for {len(candidates)} trials of candidates"
            )
    return Choices(candidates, votes, scores)
