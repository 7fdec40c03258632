"""`VoteFusion.ask` and `panel`: fewer calls of voters for nearly the same answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from linmax.data.labels import label_array
from linmax.data.votes import Ballots
from linmax.models.asking.asking import EXPLORE, TOLERANCE, Choice, read_share
from linmax.models.asking.panel import VoterPanels
from linmax.models.asking.question import Question, order_by_worth, order_to_settle, read_costs
from linmax.models.fusion.state import FusionState
from linmax.models.fusion.trials import VoteBatch

__all__ = ["Frugal"]

AGAINST = 0.5  # with side columns: share of the weight not yet asked that may speak against the answer
FURTHER = 2  # likewise: voters beyond a panel that is enough, who are asked where it is in doubt


class Frugal:
    """What a fusion does to ask fewer voters."""

    @property
    def _fitted(self) -> FusionState:
        """What has been learned."""
        raise NotImplementedError

    def _later(self, votes: Any) -> VoteBatch:
        """Trials of voters that are all known."""
        raise NotImplementedError

    def ask(
        self,
        votes: Mapping[Any, Any],
        costs: Mapping[Any, float] | None = None,
        tolerance: float = TOLERANCE,
        explore: float = EXPLORE,
    ) -> str | None:
        """Whom to ask next about one instance, or None when asking more is not worth it.

        Parameters
        ----------
        votes
            The votes so far, {voter: vote}; who was asked and abstained is there with None. Side columns stand among
            them.
        costs
            What asking each voter costs, {voter: number}; 1 each by default. The most weight for its cost comes first.
        tolerance
            How much accuracy may be given up. With 0 voters are asked until those left cannot change the answer,
            whatever they say: a class, one that nobody has named before unless ``classes`` were given, or nothing.
            Otherwise voters are asked until the best class leads so far that more votes are not worth their cost: the
            leads are chosen on the trials with the votes of all, by how often those asked so far would have answered
            otherwise, and how probable each answer was.
        explore
            Share of the instances at which one voter from outside the panel is asked as well, the one asked least or
            the one right most often, so that one that got better is found. Not with ``tolerance=0``.

        Notes
        -----
        Learn from such a trial with the votes that there are: ``partial_fit({name: [vote] for ...}, [label])``. A voter
        that is not among the columns has not been asked, nor one whose vote is ``...`` (in a table of many trials); it
        keeps its weight. One that is there with None was asked, and abstained. With a tolerance, instances with the
        votes of the panel alone are answered, and learned, by models of its first voters; without one by that of all.

        Examples
        --------
        >>> import linmax
        >>> data = linmax.majority_problem(n=20, r=3, k=3, trials=500, seed=1)
        >>> fusion = linmax.VoteFusion().fit(data.votes, data.labels)
        >>> votes = {}
        >>> while (voter := fusion.ask(votes, tolerance=0)) is not None:
        ...     votes[voter] = 2  # call it
        >>> sorted(votes) in (["0", "1"], ["0", "2"], ["1", "2"])
        True
        """
        state = self._fitted
        if state.normaliser is not None:
            raise ValueError("ask() needs votes; what raters may still say has no limit")
        tolerance, explore = read_share("tolerance", tolerance), read_share("explore", explore)
        choice, asked = Choice.read(tolerance, _by_text(costs), state.voters), _asked(state, votes)
        asking, prices = state.asking, choice.prices(len(state.voters))
        explored = tolerance > 0.0 and asking.explores(explore)
        if tolerance == 0.0 or state.sides.names:
            asking.choose(None)  # answers are those of all
            chosen, found = self._next_of_all(self._question(votes, asked), prices, tolerance)
            if found is None and explored:
                found = asking.explored([voter for voter in range(len(prices)) if voter not in chosen], asked)
        else:
            codes = self._codes(votes)
            asking.choose(choice)
            found = asking.next_of_few(state, codes, asked, explored)
        return None if found is None else state.voters[found]

    def _question(self, votes: Mapping[Any, Any], asked: np.ndarray) -> Question:
        """The instance as `predict` sees it, and where further votes would stand."""
        state = self._fitted
        batch = self._later(_ballots(state, votes))
        ((_, model, part),) = state.parts_of(batch)
        voters = np.arange(len(asked))[:, None]
        columns = voters == state.sides.columns[:, 0] if state.sides.names else voters == voters.T
        if state.sides.names:
            columns &= state.sides.holds(batch.places)
        columns = columns[:, : model.layout.voters]
        visited = partial(state.newcomer, model) if model.engine.settings.by_votes else None
        return Question(model.engine, model.fitted(part), asked, columns, visited)

    def _codes(self, votes: Mapping[Any, Any]) -> np.ndarray:
        """Votes by the model's numbers; -1 for those that it does not know, and for silence."""
        state = self._fitted
        place = {name: at for at, name in enumerate(state.model.classes)} | {None: -1}
        said = _ballots(state, votes).table[0].tolist()
        try:
            return np.array([place[vote] for vote in said], np.int32)
        except KeyError:  # a class that is new, or written otherwise
            return np.asarray(state._codes(self._later(_ballots(state, votes)))[0])

    def _next_of_all(self, question: Question, costs: np.ndarray, tolerance: float) -> tuple[list[int], int | None]:
        """Who may be asked, and whom to ask next, by the model of all voters."""
        state = self._fitted
        worth = state.worth()
        if tolerance == 0.0:
            chosen = order_to_settle(worth, costs).tolist()
            return chosen, question.next(chosen, worth)
        chosen = order_by_worth(worth, costs).tolist()
        chosen = chosen[: len(state.asking.panels(state, costs).enough(tolerance).voters) + FURTHER]
        chosen = [*state.asking.risen(len(costs), chosen), *chosen]
        return chosen, question.next(chosen, worth, AGAINST)

    @property
    def recent_rows(self) -> int:
        """Trials in which voters spoke as usual, of those kept to compare panels on."""
        return len(self._fitted.recent.rows()[1])

    def panel(self, costs: Mapping[Any, float] | None = None) -> VoterPanels:
        """How few voters are enough: for m = 1, 2, ... which ones, their cost, and how often they are right alone.

        The voters are taken in order of weight for cost. Each panel's accuracy is on-line, by the same learner begun
        afresh on the votes of these alone, in up to 1,000 of the last trials in which voters spoke as usual; the first
        fifth of them is not counted.

        Examples
        --------
        >>> import linmax
        >>> data = linmax.majority_problem(n=20, r=3, k=2, trials=500, seed=1)
        >>> panel = linmax.VoteFusion().fit(data.votes, data.labels).panel()
        >>> sorted(panel[2].voters), panel[2].accuracy > 0.95, len(panel.enough().voters)
        (['0', '1', '2'], True, 3)
        """
        state = self._fitted
        if state.normaliser is not None:
            raise ValueError("panel() needs votes; this fusion was fitted to scores")
        return state.asking.compared(state, read_costs(_by_text(costs), state.voters))()


def _by_text(costs: Any) -> Any:
    """Costs by the names that voters have here, which are text."""
    return {str(name): cost for name, cost in costs.items()} if isinstance(costs, Mapping) else costs


def _ballots(state: FusionState, votes: Mapping[Any, Any]) -> Ballots:
    """The votes so far as a trial; who has not been asked abstains in it."""
    said = {str(name): vote for name, vote in votes.items()}
    row = [said.get(name) for name in state.voters]
    names, sides = state.voters if state.named else None, tuple([said.get(name)] for name in state.sides.names)
    return Ballots(label_array(row)[None], names, sides)


def _asked(state: FusionState, votes: Any) -> np.ndarray:
    """Which voters these votes are of; checked."""
    if not isinstance(votes, Mapping):
        raise TypeError(f"votes must be a dict from voter to vote, got {votes!r}")
    voter = {name: place for place, name in enumerate(state.voters)}
    asked = np.zeros(len(voter), bool)
    for given, vote in votes.items():
        name = str(given)
        if vote.__hash__ is None:
            raise TypeError(f"votes: {vote!r} of {given!r} is not one vote; give {{voter: vote}} of one instance")
        if name in voter:
            asked[voter[name]] = True
        elif name not in state.sides.names:
            raise ValueError(f"votes: {given!r} is not a known voter; the voters are {', '.join(state.voters)}")
    return asked
