"""Asking fewer voters: what is kept of the trials for it, and the few who are asked.

How much accuracy may be given up, and what voters cost, is the choice of who asks (`Asking.choose`). Beside that a
question changes nothing: the few and their models follow from the trials learned, whether anybody asked in between or
not, so that the same trials in the same order leave the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from linmax.models.asking.few import Few
from linmax.models.asking.panel import VoterPanels, latest_rows, panel_of
from linmax.models.asking.question import order_by_worth, read_costs
from linmax.models.asking.recent import Recent
from linmax.models.model import Model
from linmax.util.checks import finite
from linmax.util.draws import drawn

__all__ = ["EXPLORE", "TOLERANCE", "Asking", "AskingModel", "Choice", "read_share"]

TOLERANCE = 0.002  # accuracy that may be given up, unless said otherwise
EXPLORE = 0.05  # share of instances at which one from outside is asked as well
STALE = 0.1  # growth of the trials after which panels are compared afresh
TRIED = 8.0  # questions of late after which a voter who does better than the panel may join it
GAIN_ERRORS = 1.0  # standard errors by which it does better; who joins by chance leaves again
WHETHER, WHOM = 1, 4  # streams of draws


class AskingModel(Protocol):
    """Voters and the model that fuses them."""

    @property
    def model(self) -> Model:
        """The model of all voters."""

    @property
    def voters(self) -> Sequence[Any]:
        """The names of the voters, as many as the model has columns."""

    def worth(self) -> np.ndarray:
        """The weight of each voter, or how often it was right of late if the learner is not a single weight vector."""


class Choice(NamedTuple):
    """What the few are chosen by."""

    tolerance: float
    costs: tuple[float, ...] | None  # of the voters that there were; 1 each if None

    @classmethod
    def read(cls, tolerance: float, costs: Mapping[Any, Any] | None, voters: Sequence[Any]) -> Choice:
        """The choice, checked."""
        prices = tuple(read_costs(costs, voters).tolist())
        return cls(tolerance, None if costs is None else prices)

    def prices(self, count: int) -> np.ndarray:
        """The costs of so many voters; whoever has joined since costs 1."""
        given = () if self.costs is None else self.costs[:count]
        return np.concatenate([given, np.ones(count - len(given))])


class Asking:
    """The latest trials, and the few who are asked where some accuracy may be given up."""

    def __init__(self, recent: Recent | None = None, choice: Choice | None = None, few: Few | None = None) -> None:
        self.recent = Recent() if recent is None else recent
        self.choice = choice
        self.few = few  # as of the last trial that was not asked of all
        self.of_few = 0  # trials that the few have learned, and the model of all has not
        self._current: Few | None = None  # up to date, until something is learned
        self._panels: tuple[int, tuple[float, ...], VoterPanels] | None = None

    # -- state ----------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, dict[str, np.ndarray]]]:
        """Plain data, and blocks of arrays."""
        told: dict[str, Any] = {"of_few": self.of_few} if self.of_few else {}
        blocks = {"recent": self.recent.arrays}
        if self.choice is not None:
            told["choice"] = [self.choice.tolerance, None if self.choice.costs is None else list(self.choice.costs)]
        if self.few is not None:
            told["few"], blocks["few"] = self.few.state()
        return told, blocks

    @classmethod
    def restored(cls, told: Mapping[str, Any], blocks: Mapping[str, Mapping[str, np.ndarray]]) -> Asking:
        """What `state` gave."""
        few = Few.restored(told["few"], blocks["few"]) if "few" in told else None
        choice = None
        if "choice" in told:
            tolerance, costs = told["choice"]
            choice = Choice(tolerance, None if costs is None else tuple(costs))
        elif few is not None:  # stored before the choice was
            tolerance, costs = few.choice
            choice = Choice(tolerance, None if set(costs) == {1.0} else tuple(costs))
        found = cls(Recent.restored(blocks.get("recent", {})), choice, few)
        found.of_few = told.get("of_few", 0)
        return found

    # -- the few --------------------------------------------------------------------------------------------------

    def choose(self, choice: Choice | None) -> bool:
        """Choose the few by this from now on, or ask all voters; returns whether that is something new."""
        if choice == self.choice:
            return False
        self.choice, self.few, self._current = choice, None, None
        return True

    def current(self, jury: AskingModel) -> Few | None:
        """The few as they are now; None if all are asked, or there are too few trials to choose by."""
        if self.choice is None or not self.recent.enough:
            return None
        if self._current is None:
            self._current = self._up_to_date(jury, self.choice)
        return self._current

    def _up_to_date(self, jury: AskingModel, choice: Choice) -> Few:
        """As many voters, in order of worth, as pay, and whoever proved better of late."""
        model, few = jury.model, self.few
        prices = choice.prices(model.layout.voters)
        told = [choice.tolerance, prices.tolist()]
        if few is None or not few.fits(model) or few.choice != told or model.trials > (1.0 + STALE) * few.trials:
            order = order_by_worth(jury.worth(), prices).tolist()
            few = Few.fitted(order, prices, told, model, self.recent.rows(len(prices)))
        risen = self.risen(len(prices), few.members, few.risen)
        if risen != few.risen:
            few = deepcopy(few) if few is self.few else few
            few.rise(risen)
        return few

    def for_few(self, jury: AskingModel, asked: np.ndarray) -> Few | None:
        """The few, if a trial in which these voters were asked, and no others, is for them to learn."""
        if self.choice is None or asked.all() or asked[jury.model.layout.voters :].any():
            return None
        self.few = self.current(jury)
        return self.few if self.few is not None and self.few.asked(asked[None])[0] else None

    def learn_few(self, few: Few, votes: np.ndarray, asked: np.ndarray, label: int) -> int:
        """Learn from one trial `for_few`, by the model's numbers; returns the class that was predicted."""
        self._current = None
        self.of_few += 1
        self.recent.note(votes, asked, label)
        return few.learn(votes, asked, label)

    def learn_all(self, votes: np.ndarray, asked: np.ndarray, labels: np.ndarray) -> None:
        """Keep trials, by the model's numbers, that the model of all has learned."""
        self.changed()
        self.recent.add(votes, labels, asked)

    def changed(self) -> None:
        """The model of all has learned something."""
        self._current = None

    def next_of_few(self, jury: AskingModel, votes: np.ndarray, asked: np.ndarray, explored: bool) -> int | None:
        """Whom of the few to ask next, or one from outside where that is ``explored``; votes by the model's numbers.

        All are asked, in order of worth, as long as there are too few trials to choose by.
        """
        few = self.current(jury)
        if few is None:
            assert self.choice is not None
            order = order_by_worth(jury.worth(), self.choice.prices(len(asked))).tolist()
            return next((voter for voter in order if not asked[voter]), None)
        found = few.next(votes, asked)
        if found is not None or not explored:
            return found
        chosen = {*few.members, *few.risen}
        return self.explored([voter for voter in range(len(asked)) if voter not in chosen], asked)

    # -- those outside --------------------------------------------------------------------------------------------

    def explores(self, share: float) -> bool:
        """Whether one from outside is asked about this instance: a draw that stays until the next label."""
        return drawn(WHETHER, self.recent.told) < share

    def explored(self, outside: Sequence[int], asked: np.ndarray) -> int | None:
        """One of those outside, unless one was asked: who was asked least, or as often who was right most of late."""
        if not outside or asked[list(outside)].any():
            return None
        if drawn(WHOM, self.recent.told) < 0.5:
            ever = self.recent.asked_ever(len(asked))
            return min(outside, key=lambda voter: (ever[voter], voter))
        right = self.recent.accuracy_lately(len(asked))
        return max(outside, key=lambda voter: (right[voter], -voter))

    def risen(self, count: int, chosen: Sequence[int], joined: Sequence[int] = ()) -> list[int]:
        """Voters that have been right more often of late than any of the chosen ones, by more than chance has it.

        Who has joined for that reason stays as long as it is not behind.
        """
        told, asked = self.recent.heard_lately(count)
        right = told / np.maximum(asked, 1.0)
        best = right[list(chosen)].max(initial=0.0)
        sure = right > best + GAIN_ERRORS * np.sqrt(best * (1.0 - best) / np.maximum(asked, 1.0))
        stays = [voter for voter in joined if right[voter] >= best]
        found = np.flatnonzero(sure & (asked >= TRIED)).tolist()
        return [*stays, *(voter for voter in found if voter not in chosen and voter not in joined)]

    # -- panels ---------------------------------------------------------------------------------------------------

    def compared(self, jury: AskingModel, costs: np.ndarray) -> Callable[[], VoterPanels]:
        """What compares panels on the trials up to now; it needs nothing that is learned later."""
        order, model = order_by_worth(jury.worth(), costs), jury.model
        rows, names = latest_rows(self.recent.rows(len(costs))), list(jury.voters)
        return partial(panel_of, model.learner, rows, order, costs, names, bool(model.layout.constant))

    def panels(self, jury: AskingModel, costs: np.ndarray) -> VoterPanels:
        """The panels, compared afresh when there are a good many more trials."""
        key, told = tuple(costs.tolist()), self.recent.told
        if self._panels is None or self._panels[1] != key or told > self._panels[0] * (1.0 + STALE):
            self._panels = told, key, self.compared(jury, costs)()
        return self._panels[2]


def read_share(name: str, value: Any) -> float:
    """A number from 0 to 1."""
    number = finite(name, value)
    if not 0.0 <= number <= 1.0:
        advice = EXPLORE if name == "explore" else TOLERANCE
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}; try {advice}")
    return number
