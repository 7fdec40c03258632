"""`Learner.ask` and `Learner.panel`: whom to ask next, and how few voters are enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.blocks import missing
from linmax.models.asking.asking import Choice, read_share
from linmax.models.asking.panel import VoterPanels
from linmax.models.asking.question import Question, newcomer, order_by_worth, order_to_settle, read_costs
from linmax.models.online.candidates import among_candidates
from linmax.models.online.frugal import MOST_ASKED
from linmax.models.online.reading import Attributes, Given

if TYPE_CHECKING:
    from linmax.models.online.answers import NamedAnswers

__all__ = ["Inquiry", "ask_by", "panels", "read_choice"]


class Inquiry:
    """A question whom to ask next, checked against what a learner knows."""

    def __init__(
        self,
        learner: NamedAnswers,
        votes: Mapping[Any, Any],
        *,
        attributes: Attributes,
        candidates: Sequence[Any] | None,
        costs: Any,
        tolerance: float,
        explore: float,
        voters: Sequence[Any] | None,
    ) -> None:
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
        self.learner, self.votes, self.names = learner, votes, names
        self.attributes, self.candidates = attributes, candidates
        self.among = None if voters is None else np.array([name in voters for name in names], bool)
        self.tolerance, self.explore = read_share("tolerance", tolerance), read_share("explore", explore)
        self.costs, self.prices = costs, read_costs(costs, names)
        self.choice = read_choice(learner, self.tolerance, costs, attributes is not None)
        self.asked = np.array([name in votes for name in names], bool)
        self.said = {name: vote for name, vote in votes.items() if not missing(vote)}
        for name, vote in self.said.items():
            if vote.__hash__ is None:
                raise TypeError(f"votes: {vote!r} of {name!r} is not hashable; a vote is one class")
        if candidates is None:
            self.said = learner._reading.read(None, self.said, None).votes

    @property
    def changes(self) -> bool:
        """Whether the learner asks by something else so far; what is learned of few votes depends on it."""
        return self.choice != self.learner._asking.choice

    def next(self) -> Any:
        """Whom to ask next, or None."""
        found = self._next_of_all() if self.choice is None else self._next_of_few()
        return None if found is None else self.names[found]

    def _next_of_few(self) -> int | None:
        learner, asking = self.learner, self.learner._asked()
        codes, _ = learner._heard_from(self.said)
        asked = self.asked if self.among is None else self.asked | ~self.among  # who must not be asked is silent
        found = asking.next_of_few(learner, codes, asked, asking.explores(self.explore))
        if found is None and self.among is not None and not self.asked.any():  # none of the few may be asked
            order = order_by_worth(learner.worth(), self.prices).tolist()
            found = next((voter for voter in order if self.among[voter]), None)
        return found

    def _next_of_all(self) -> int | None:
        learner, model = self.learner, None
        if self.candidates is not None:
            engine, instance = among_candidates(learner, self.said, self.candidates)
        else:
            numbers = {}
            if self.attributes is not None:
                numbers = learner._reading.read(self.attributes, None, None).attributes
            model, engine, instance = learner._judging(Given(numbers, self.said, {}))
        columns = np.eye(len(self.names), instance.votes.shape[1], dtype=bool)
        worth = learner.worth()
        order = order_to_settle(worth, self.prices).tolist()
        visited = None
        if model is not None and engine.settings.by_votes:
            visited = partial(newcomer, model, engine.layout)
        question = Question(engine, instance, self.asked, columns, visited)
        return question.next([i for i in order if self.among is None or self.among[i]], worth)


def ask_by(learner: NamedAnswers, choice: Choice | None) -> None:
    """Let the learner ask by this from now on: by a tolerance and costs, or exactly."""
    if learner._asked().choose(choice):
        learner._settle()
        learner._renamed()


def read_choice(learner: NamedAnswers, tolerance: float, costs: Any, attributes: bool = False) -> Choice | None:
    """What to ask by, checked; None to ask exactly."""
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
    met = [name for name, there in others.items() if there]
    if met:
        raise ValueError(f"{what} needs a learner of votes alone, and this one has {met[0]}; {remedy}")
