"""`VoteFusion.ask` and `panel`: fewer calls of voters for nearly the same answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from linmax.data.blocks import missing
from linmax.data.votes import Ballots
from linmax.models.asking import Question, order_by_worth, order_to_settle, read_costs
from linmax.models.fusion.few import Few
from linmax.models.fusion.panel import VoterPanels, panel_of
from linmax.models.fusion.shares import voter_weights
from linmax.models.fusion.state import FusionState
from linmax.models.fusion.trials import VoteBatch
from linmax.util.checks import at_least, finite
from linmax.util.draws import drawn

__all__ = ["Frugal"]

AGAINST = 0.5  # with side columns: share of the weight not yet asked that may speak against the answer
FURTHER = 2  # likewise: voters beyond a panel that is enough, who are asked where it is in doubt
STALE = 0.1  # growth of the trials after which panels are compared afresh
TRIED = 8.0  # questions of late after which a voter who does better than the panel may join it
GAIN_ERRORS = 1.0  # standard errors by which it does better; who joins by chance leaves again


class Frugal:
    """What a fusion does to ask fewer voters."""

    _panel: tuple[int, tuple[float, ...], VoterPanels] | None = None

    @property
    def _fitted(self) -> FusionState:
        """What has been learned."""
        raise NotImplementedError

    def _later(self, votes: Any) -> VoteBatch:
        """Trials of voters that are all known."""
        raise NotImplementedError

    def ask(
        self, votes: Mapping[Any, Any], costs: Any = None, tolerance: float = 0.002, explore: float = 0.05
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
        tolerance = at_least("tolerance", tolerance, 0.0)
        explore = finite("explore", at_least("explore", explore, 0.0))
        prices, asked = read_costs(costs, state.voters), _asked(state, votes)
        if tolerance == 0.0 or state.sides.names:
            state.few = None  # answers are those of all
            chosen, found = self._next_of_all(self._question(votes, asked), prices, tolerance)
        else:
            chosen, found = self._next_of_few(votes, asked, prices, tolerance)
        if found is None and tolerance > 0.0 and drawn(1, state.tally.trials) < explore:
            found = _explored(state, [voter for voter in range(len(state.voters)) if voter not in chosen], asked)
        return None if found is None else state.voters[found]

    def _question(self, votes: Mapping[Any, Any], asked: np.ndarray) -> Question:
        """The instance as `predict` sees it, and where further votes would stand."""
        state = self._fitted
        said = {str(name): vote for name, vote in votes.items()}
        table = np.empty((1, len(asked)), dtype=object)
        table[0] = [said.get(name) for name in state.voters]
        names, sides = state.voters if state.named else None, tuple([said.get(name)] for name in state.sides.names)
        batch = self._later(Ballots(table, names, sides))
        ((_, model, part),) = state.parts_of(batch)
        voters = np.arange(len(asked))[:, None]
        columns = voters == state.sides.columns[:, 0] if state.sides.names else voters == voters.T
        if state.sides.names:
            columns &= state.sides.holds(batch.places)
        columns = columns[:, : model.layout.voters]
        visited = partial(state.newcomer, model) if model.engine.settings.by_votes else None
        return Question(model.engine, model.fitted(part), asked, columns, visited)

    def _next_of_all(self, question: Question, costs: np.ndarray, tolerance: float) -> tuple[list[int], int | None]:
        """Who may be asked, and whom to ask next, by the model of all voters."""
        state = self._fitted
        worth = voter_weights(state)
        if tolerance == 0.0:
            chosen = order_to_settle(worth, costs).tolist()
            return chosen, question.next(chosen, worth)
        chosen = order_by_worth(worth, costs).tolist()
        chosen = chosen[: len(self._panels(costs).enough(tolerance).voters) + FURTHER]
        chosen = [*_risen(state, chosen), *chosen]
        return chosen, question.next(chosen, worth, AGAINST)

    def _next_of_few(
        self, votes: Mapping[Any, Any], asked: np.ndarray, costs: np.ndarray, tolerance: float
    ) -> tuple[list[int], int | None]:
        """The same by models of the few who may be asked."""
        few, state = self._few(costs, tolerance), self._fitted
        return [*few.members, *few.risen], few.next(_codes(state, votes), asked)

    def _few(self, costs: np.ndarray, tolerance: float) -> Few:
        """Those to be asked: as many, in order of worth, as pay, and whoever proved better of late."""
        state = self._fitted
        few, choice, model = state.few, [tolerance, costs.tolist()], state.model
        if few is None or not few.fits(model) or few.choice != choice or model.trials > (1.0 + STALE) * few.trials:
            order = order_by_worth(voter_weights(state), costs).tolist()
            state.few = few = Few.fitted(order, costs, choice, model, state.recent.rows())
        risen = _risen(state, few.members, few.risen)
        if risen != few.risen:
            few.rise(risen)
        return few

    @property
    def recent_rows(self) -> int:
        """Trials in which voters spoke as usual, of those kept to compare panels on."""
        return len(self._fitted.recent.rows()[1])

    def panel(self, costs: Any = None) -> VoterPanels:
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
        return self._panels(read_costs(costs, state.voters))

    def _panels(self, costs: np.ndarray) -> VoterPanels:
        """The panels, compared afresh when there is something new."""
        state, key = self._fitted, tuple(costs.tolist())
        if self._panel is not None and self._panel[1] == key and state.tally.trials < self._panel[0] * (1.0 + STALE):
            return self._panel[2]
        order = order_by_worth(voter_weights(state), costs)
        model = state.model
        found = panel_of(model.learner, state.recent.rows(), order, costs, state.voters, bool(model.layout.constant))
        self._panel = state.tally.trials, key, found
        return found


def _explored(state: FusionState, outside: Sequence[int], asked: np.ndarray) -> int | None:
    """One of those outside, unless one was asked: who was asked least, or as often who was right most of late."""
    if not outside or asked[outside].any():
        return None
    if drawn(4, state.tally.trials) < 0.5:
        ever = state.recent.ever
        return min(outside, key=lambda voter: (ever[voter], voter))
    right = state.recent.accuracy_lately()
    return max(outside, key=lambda voter: (right[voter], -voter))


def _risen(state: FusionState, chosen: Sequence[int], joined: Sequence[int] = ()) -> list[int]:
    """Voters that have been right more often of late than any of the chosen ones, by more than chance has it.

    Who has joined for that reason stays as long as it is not behind.
    """
    asked = state.recent.lately[1]
    right = state.recent.lately[0] / np.maximum(asked, 1.0)
    best = right[list(chosen)].max(initial=0.0)
    sure = right > best + GAIN_ERRORS * np.sqrt(best * (1.0 - best) / np.maximum(asked, 1.0))
    stays = [voter for voter in joined if right[voter] >= best]
    found = np.flatnonzero(sure & (asked >= TRIED)).tolist()
    return [*stays, *(voter for voter in found if voter not in chosen and voter not in joined)]


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


def _codes(state: FusionState, votes: Mapping[Any, Any]) -> np.ndarray:
    """Votes by the model's numbers; -1 for those that it does not know, and for silence."""
    place = {name: at for at, name in enumerate(state.model.classes)}
    said = {str(name): vote for name, vote in votes.items()}
    found = [-1 if missing(said.get(name)) else place.get(said[name], -1) for name in state.voters]
    return np.array(found, np.int32)
