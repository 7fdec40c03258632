"""`Learner.ask` and `Learner.panel`: votes by name to `linmax.models.asking`, which works on voter indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.blocks import missing
from linmax.models.asking import Choice, Inquiry, Question, VoterPanels, add_class, read_costs, read_share
from linmax.models.online.candidates import among_candidates
from linmax.models.online.frugal import MOST_ASKED
from linmax.models.online.reading import Attributes, Given

if TYPE_CHECKING:
    from linmax.models.online.answers import NamedAnswers

__all__ = ["ask_by", "inquiry_of", "panels", "read_choice"]


def inquiry_of(
    learner: NamedAnswers,
    votes: Mapping[Any, Any],
    *,
    attributes: Attributes,
    candidates: Sequence[Any] | None,
    costs: Any,
    tolerance: float,
    explore: float,
    voters: Sequence[Any] | None,
) -> Inquiry:
    """Return the question which voter to ask next, checked against what the learner knows."""
    if not isinstance(votes, Mapping):
        raise TypeError(f"votes must be a dict from voter to vote, got {votes!r}")
    names = learner.voters
    if not names:
        raise ValueError("ask() needs voters, and this learner has met none; learn from trials with votes= first")
    for given, block in ("votes", votes), ("voters", () if voters is None else voters):
        unknown = [name for name in block if name not in names]
        if unknown:
            raise ValueError(f"{given}: {unknown[0]!r} is not a known voter; the voters are {names!r}")
    if candidates is not None and attributes is not None:
        raise TypeError("attributes have a weight for each class, and candidates have no weights of their own")
    allowed = None if voters is None else np.array([name in voters for name in names], bool)
    tolerance, explore, prices = (
        read_share("tolerance", tolerance), read_share("explore", explore), read_costs(costs, names)
    )  # fmt: skip
    choice = read_choice(learner, tolerance, costs, attributes is not None)
    asked = np.array([name in votes for name in names], bool)
    cast = {name: vote for name, vote in votes.items() if not missing(vote)}
    for name, vote in cast.items():
        if vote.__hash__ is None:
            raise TypeError(f"votes: {vote!r} of {name!r} is not hashable; a vote is one class")
    if candidates is None:
        cast = learner._reading.read(None, cast, None).votes
    codes = learner._heard_from(cast)[0] if choice is not None else np.zeros(0, np.int32)
    question = partial(_question, learner, cast, attributes, candidates, asked)
    return Inquiry(learner, codes, asked, question, tolerance, prices, explore, choice, allowed)


def _question(
    learner: NamedAnswers,
    cast: Mapping[Any, Any],
    attributes: Attributes,
    candidates: Sequence[Any] | None,
    asked: np.ndarray,
) -> Question:
    """Return the instance as the model of all voters sees it."""
    widen = None
    if candidates is not None:
        engine, instance = among_candidates(learner, cast, candidates)
    else:
        numbers = {} if attributes is None else learner._reading.read(attributes, None, None).attributes
        model, engine, instance = learner._judging(Given(numbers, dict(cast), {}))
        widen = partial(add_class, model, engine.layout) if engine.settings.by_votes else None
    return Question(engine, instance, asked, np.eye(len(asked), instance.votes.shape[1], dtype=bool), widen)


def ask_by(learner: NamedAnswers, choice: Choice | None) -> None:
    """Let the learner ask by this from now on: by a tolerance and costs, or exactly."""
    if learner._asked().choose(choice):
        learner._settle()
        learner._renamed()


def read_choice(learner: NamedAnswers, tolerance: float, costs: Any, attributes: bool = False) -> Choice | None:
    """Return what to ask by, checked; None to ask exactly."""
    if read_share("tolerance", tolerance) == 0.0:
        return None
    refuse_others(learner, f"tolerance={tolerance:g}", "ask with tolerance=0", attributes)
    return Choice.read(tolerance, costs, learner.voters)


def panels(learner: NamedAnswers, costs: Any) -> Callable[[], VoterPanels]:
    """See `Learner.panel`."""
    refuse_others(learner, "panel()", "make a Learner for the votes")
    return learner._asked().compared(learner, read_costs(costs, learner.voters))


def refuse_others(learner: NamedAnswers, what: str, remedy: str, attributes: bool = False) -> None:
    """Refuse to choose a few of the voters of a learner that has more than votes."""
    if not learner.voters:
        raise ValueError(f"{what} needs voters, and this learner has met none; learn from trials with votes= first")
    if len(learner.voters) > MOST_ASKED:
        raise ValueError(
            f"{what} needs at most {MOST_ASKED} voters, and this learner has {len(learner.voters)}; {remedy}"
        )
    others = {
        "candidates": learner._choosing,
        "attributes": bool(learner.attributes) or attributes,
        "raters": bool(learner.raters),
    }
    present = [name for name, there in others.items() if there]
    if present:
        raise ValueError(f"{what} needs a learner of votes alone, and this one has {present[0]}; {remedy}")
