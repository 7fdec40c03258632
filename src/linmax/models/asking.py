"""Asking fewer voters: which voter to ask next, and how few voters are enough; on voter indices.

`VoteFusion`, `Learner` and the service share this module. They read votes into arrays (`codes`: class numbers, -1 for
none; `asked`: which voters were queried) and get back the index of a voter.

- `Recent` stores the latest trials in which voters were asked as usual, and the recent accuracy of each voter.
- `Few` is a chain of models, each of the first voters to be asked, fitted to their votes alone. A stopping rule that
  was chosen on the trials of `Recent` decides when to stop; the models answer and learn the trials in which only these
  voters were asked.
- `Question` tests whether the remaining voters can still change the answer of the model of all voters (``tolerance=0``
  for one weight vector).

The tolerance and the costs of the latest question are stored (`Asking.choose`). A question changes nothing else: the
same trials in the same order leave the same state.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numba import types

from linmax.core.contract import Indices, Labels, LabelTable, Matrix, Trials, Vector
from linmax.data.arrays import Layout, no_trials, repeated
from linmax.engine.engine import Engine, Settings
from linmax.engine.record import latest
from linmax.jit.compiling import kernel
from linmax.models.baselines import fit_logit, ratings_of
from linmax.models.kept_trials import KeptTrials
from linmax.models.model import Model
from linmax.techniques.technique import LearnerLike
from linmax.util.aliases import Costs, Label, Name, Votes
from linmax.util.checks import finite
from linmax.util.draws import drawn
from linmax.util.parts import by_part

__all__ = [
    "EXPLORE",
    "TOLERANCE",
    "Asking",
    "AskingModel",
    "AskingRule",
    "Choice",
    "Few",
    "Inquiry",
    "PanelLine",
    "Question",
    "Recent",
    "Simulation",
    "VoterPanels",
    "add_class",
    "asked_among",
    "choose_rule",
    "panel_of",
    "read_costs",
    "read_share",
    "simulate_asking",
    "stopping_levels",
]

TOLERANCE = 0.002  # accuracy that may be given up, by default
EXPLORE = 0.05  # share of instances at which a voter from outside the panel is asked as well
STALE = 0.1  # growth of the trials after which the few are chosen again
TRIED = 8.0  # recent questions after which a voter that is more accurate than the panel may join it
OCCASION, OUTSIDER = 1, 4  # streams of draws
ALL_SIZES_TRIED = 12  # voters up to which every panel size is compared
POOL, ORDERED = 16, 6  # voters of most worth among which the first ones are chosen by what they add, and how many
CLEAR = 6.0  # logarithm of the likelihood by which a voter must add more than the next one by worth
MOST_COMPARED = 2**20  # numbers that a logit is fitted to there
MORE_SIZES = (16, 24, 32, 48, 64, 100)
COMPARED_TRIALS = 1000  # trials on which a chain is fitted and its stopping rule chosen
WARM_UP = 5  # the first of this many parts of them does not count
ORDERING_SHARE = 0.4  # of the trials of a panel, by which its voters are ordered
LEAST_SHARE = 1e-12  # smallest probability whose logarithm is taken
AGREEMENT = 0.3  # extra worth of a voter of positive weight, which usually votes for the answer
NEW_CLASS = object()  # stands for a class that no vote has named yet

RECENT_TRIALS = 2000  # trials stored
FEWEST_COMPARED = 50  # trials needed to choose a panel
FORGET = 0.97  # factor on a voter's counts each time it is asked
FADE = 0.998  # factor on all counts at each trial that is not stored, so that old records of rare voters lose weight
PACE = 0.05  # at which the usual number of voters asked is updated
RIGHT, ASKED = 0, 1  # rows of `Recent.recent`
SEEN, KEPT, PASSED = range(3)  # entries of `Recent.numbers`

# By the probabilities of all voters a few give up more than they do by the labels, since those of all are not always
# the better ones: 2 to 3 times on MMLU-Pro and on votes of image classifiers.
OVERSTATED = 3.0
WORTH = 3.0  # tolerances that a call should gain
MOST_REPAIRED = 0.1  # of the mistakes of all voters: a call that repairs more is made
CHEAPER = 0.8  # factor on the price of a call, as long as a rule gives up too much
PRICES_TRIED = 40
QUANTILES = 11  # leads tried for the weighted lead
LARGEST_AGREEMENT = 4  # of the rules "until m agree"

Rows = tuple[np.ndarray, np.ndarray]  # votes by class number, -1 for none, and labels
Answering = tuple[np.ndarray, Model, Trials]  # trials, the model that answers them, and they as it takes them


# -- checked arguments --------------------------------------------------------------------------------------------


def read_costs(costs: Costs, voters: Sequence[Name]) -> np.ndarray:
    """Return what asking each voter costs, 1 by default; checked."""
    if costs is None:
        return np.ones(len(voters))
    if not isinstance(costs, Mapping):
        raise TypeError(f"costs must be a dict from voter to number, got {costs!r}")
    given: dict[Name, float] = dict(costs.items())
    missing = [name for name in voters if name not in given]
    if missing:
        raise ValueError(f"costs must have a number for every voter; {missing[0]!r} has none")
    unknown = [name for name in given if name not in voters]
    if unknown:
        raise ValueError(f"costs: {unknown[0]!r} is not a known voter; the voters are {', '.join(map(str, voters))}")
    prices = np.array([finite(f"costs of {name!r}", given[name]) for name in voters])
    if (prices < 0.0).any():
        at = int(np.argmax(prices < 0.0))
        raise ValueError(f"costs of {voters[at]!r} must be >= 0, got {prices[at]:g}")
    return prices


def read_share(name: str, value: object) -> float:
    """Return a number from 0 to 1, checked."""
    number = finite(name, value)
    if not 0.0 <= number <= 1.0:
        advice = EXPLORE if name == "explore" else TOLERANCE
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}; try {advice}")
    return number


def asked_among(votes: Votes, voters: Sequence[Name], others: Collection[Name] = ()) -> np.ndarray:
    """Return which voters these votes are of, checked; ``others`` may stand among them."""
    if not isinstance(votes, Mapping):
        raise TypeError(f"votes must be a dict from voter to vote, got {votes!r}")
    place, asked = {name: i for i, name in enumerate(voters)}, np.zeros(len(voters), bool)
    for name, vote in votes.items():
        if vote.__hash__ is None:
            raise TypeError(f"votes: {vote!r} of {name!r} is not hashable; a vote must be one class")
        if name in place:
            asked[place[name]] = True
        elif name not in others:
            raise ValueError(f"votes: {name!r} is not a known voter; the voters are {', '.join(map(str, voters))}")
    return asked


class Choice(NamedTuple):
    """Tolerance and costs by which the few are chosen."""

    tolerance: float
    costs: tuple[float, ...] | None  # of the voters known at the question; 1 each if None

    @classmethod
    def read(cls, tolerance: float, costs: Costs, voters: Sequence[Name]) -> Choice:
        """Return the choice, checked."""
        prices = tuple(read_costs(costs, voters).tolist())
        return cls(tolerance, None if costs is None else prices)

    def prices(self, count: int) -> np.ndarray:
        """Return the costs of ``count`` voters; one that joined later costs 1."""
        given = () if self.costs is None else self.costs[:count]
        return np.concatenate([given, np.ones(count - len(given))])


# -- recent trials ------------------------------------------------------------------------------------------------


@kernel(types.void(LabelTable, Labels, types.boolean[:, ::1], Indices, Vector, Matrix, Indices, types.boolean[::1]))
def count_asked(
    votes: np.ndarray,
    labels: np.ndarray,
    asked: np.ndarray,
    numbers: np.ndarray,
    usual: np.ndarray,
    recent: np.ndarray,
    ever: np.ndarray,
    kept: np.ndarray,
) -> None:
    """Count right votes, and mark the trials in which voters were asked as usual: they are to be stored."""
    for t in range(labels.size):
        count = 0
        for i in range(votes.shape[1]):
            if asked[t, i]:
                count += 1
                ever[i] += 1
                recent[RIGHT, i] = FORGET * recent[RIGHT, i] + (votes[t, i] == labels[t])
                recent[ASKED, i] = FORGET * recent[ASKED, i] + 1.0
        kept[t] = not numbers[KEPT] or 2 * count >= usual[0] or numbers[PASSED] >= RECENT_TRIALS
        if kept[t]:
            usual[0] += (count - usual[0]) * (PACE if usual[0] else 1.0)
            numbers[KEPT] += 1
            numbers[PASSED] = 0
        else:
            numbers[PASSED] += 1


class Recent:
    """The latest trials in which voters were asked as usual, and the recent accuracy of each voter.

    Votes and labels are class numbers; -1 is an abstention. A trial in which fewer than half the usual number of voters
    were asked is not stored, unless that has been so for long. A voter that was asked and abstained is not right.
    """

    COUNTS = ("numbers", "usual", "recent", "ever")

    def __init__(self, voters: int = 0) -> None:
        self.kept = KeptTrials(RECENT_TRIALS)
        self.numbers = np.zeros(3, np.int64)  # trials counted, those stored, and those passed over since
        self.usual = np.zeros(1)  # how many voters are asked in a trial
        self.recent = np.zeros((2, voters))
        self.ever = np.zeros(voters, np.int64)  # how often each voter was asked

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """State arrays by name."""
        counts = {name: getattr(self, name) for name in self.COUNTS}
        return counts | {f"kept.{name}": array for name, array in self.kept.arrays.items()}

    @classmethod
    def restored(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Restore from `arrays`."""
        recent, blocks = cls(), by_part(arrays)
        for name, array in blocks.get("", {}).items():
            setattr(recent, name, array.copy())
        if "kept" in blocks:
            recent.kept = KeptTrials.restored(blocks["kept"])
        return recent

    @classmethod
    def joined(cls, parts: Sequence[tuple[Recent, np.ndarray, np.ndarray]], voters: int, trials: int) -> Self:
        """Join the latest trials of several, equally many of each, given the places of its voters and classes."""
        whole = cls(voters)
        for recent, there, classes in parts:
            votes, labels = (rows[-(RECENT_TRIALS // len(parts)) :] for rows in recent.rows())
            table = np.full((len(votes), voters), -1, np.int32)
            table[:, there[: votes.shape[1]]] = np.append(classes, -1)[votes]
            whole.add(table, classes[labels], np.ones(table.shape, bool))
        whole.recent[:], whole.ever[:], whole.numbers[SEEN] = 0.0, 0, trials
        for recent, there, _ in parts:
            whole.recent[:, there[: recent.recent.shape[1]]] += recent.recent
            whole.ever[there[: len(recent.ever)]] += recent.ever
        return whole

    @property
    def trials(self) -> int:
        """Trials counted, stored or not."""
        return int(self.numbers[SEEN])

    @property
    def enough(self) -> bool:
        """True if there are enough trials to choose a few of the voters."""
        return bool(self.numbers[KEPT] >= FEWEST_COMPARED)

    def add(self, votes: np.ndarray, labels: np.ndarray, asked: np.ndarray) -> None:
        """Add trials; voters may have joined at the right."""
        if not len(labels):
            return
        self._widen(votes.shape[1])
        self.numbers[SEEN] += len(labels)
        votes, labels = np.ascontiguousarray(votes, np.int32), np.ascontiguousarray(labels, np.int32)
        kept = np.zeros(len(labels), bool)
        counts = self.numbers, self.usual, self.recent, self.ever
        count_asked(votes, labels, np.ascontiguousarray(asked), *counts, kept)
        if kept.any():
            self.kept.add(votes=votes[kept], labels=labels[kept])

    def note(self, votes: np.ndarray, asked: np.ndarray, label: int) -> None:
        """Count right votes in one trial that is not stored."""
        self._widen(len(votes))
        there = np.flatnonzero(asked)
        self.numbers[SEEN] += 1
        self.recent *= FADE
        self.recent[:, there] *= FORGET
        self.recent[RIGHT, there] += votes[there] == label
        self.recent[ASKED, there] += 1.0
        self.ever[there] += 1

    def _widen(self, voters: int) -> None:
        missing = voters - len(self.ever)
        if missing > 0:
            self.recent = np.pad(self.recent, ((0, 0), (0, missing)))
            self.ever = np.pad(self.ever, (0, missing))

    def rows(self, voters: int = 0) -> Rows:
        """Return votes, padded to ``voters`` columns, and labels, the oldest first."""
        if not len(self.kept):
            return np.full((0, voters), -1, np.int32), np.zeros(0, np.int32)
        votes = self.kept["votes"]
        missing = max(0, voters - votes.shape[1])
        return np.pad(votes, ((0, 0), (0, missing)), constant_values=-1), self.kept["labels"]

    def counts(self, voters: int) -> np.ndarray:
        """Return (2, voters) decayed counts: right votes of each voter, and how often it was asked."""
        self._widen(voters)
        return self.recent

    def accuracy(self, voters: int = 0) -> np.ndarray:
        """Return the recent accuracy of each voter, smoothed toward 1/2."""
        right, asked = self.counts(voters)
        return np.asarray((right + 1.0) / (asked + 2.0))


# -- chains of models ---------------------------------------------------------------------------------------------


class PanelFit(NamedTuple):
    """A model of some voters, and its answers to the latest trials, before it saw each label, as probabilities."""

    model: Model
    shares: np.ndarray
    right: np.ndarray

    def given_up(self, by: PanelFit) -> np.ndarray:
        """Return how much more probable this answer is than that of another fit, as this one sees it."""
        other = by.shares.argmax(axis=1)
        return np.asarray(self.shares.max(axis=1) - self.shares[np.arange(len(other)), other])


@dataclass(frozen=True)
class Fitter:
    """Fits models like the one of all voters to the votes of some; independent of what that model learns later."""

    learner: LearnerLike
    classes: tuple[Label, ...]
    settings: Settings
    thresholds: bool

    @classmethod
    def like(cls, whole: Model) -> Self:
        """Return a fitter of models like this one."""
        own = whole.engine.settings
        settings = Settings(own.largest, own.update_on_tie, candidates=own.candidates)
        return cls(whole.learner, tuple(whole.classes), settings, bool(whole.layout.constant))

    def __call__(self, votes: np.ndarray, labels: np.ndarray) -> PanelFit:
        """Fit a model to these trials."""
        layout = Layout(votes.shape[1], 0, 0, 0, 1.0 if self.thresholds else 0.0)
        model = Model(self.learner, layout, self.classes, self.settings).follow()
        labels = labels.astype(np.int32)
        right = model.play(_instances(model, votes)._replace(labels=labels)).predictions == labels
        return PanelFit(model, model.own_probabilities(latest(model.record)[0]), right)


def sizes_tried(n: int) -> list[int]:
    """Return the panel sizes compared: every size up to `ALL_SIZES_TRIED`, then some, and n."""
    return sorted({*range(1, min(ALL_SIZES_TRIED, n) + 1), *(m for m in MORE_SIZES if m < n), n})


def latest_rows(rows: Rows, count: int) -> Rows:
    """Return the latest votes and labels; raise ValueError if there are fewer than two."""
    votes, labels = (block[-count:] for block in rows)
    if len(labels) < 2:
        raise ValueError(
            f"a panel requires trials with the votes of all voters, got {len(labels)}; learn from some first"
        )
    return votes, labels


def order_by_worth(weights: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return voters by weight for cost, the largest first; one that costs nothing comes before all that cost."""
    worth = np.where(costs > 0.0, np.abs(weights) / np.where(costs > 0.0, costs, 1.0), np.inf)
    return np.lexsort((np.arange(len(worth)), -np.abs(weights), -worth))


def order_by_gain(weights: np.ndarray, costs: np.ndarray, votes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return voters in the order in which to ask them: the first ones by what each adds to those before it.

    The next of the voters of most worth gives way to one that adds clearly more to the likelihood of a logit for its
    cost: a voter that agrees with those before it adds little, however good it is. The others follow by worth.
    """
    order = order_by_worth(weights, costs).tolist()
    pool = order[:POOL]
    chosen: list[int] = []
    names, places = np.unique(np.append(votes[:, pool], labels), return_inverse=True)
    room = MOST_COMPARED // (len(names) * len(pool))
    places = places.reshape(-1)
    numbers, truth = places[: votes[:, pool].size].reshape(len(votes), -1)[-room:], places[-len(labels) :][-room:]
    silent = len(names) > 0 and names[0] < 0
    ratings = ratings_of(numbers - silent, len(names) - silent)
    reached = -len(truth) * math.log(max(len(names) - silent, 1))
    while len(chosen) < min(ORDERED, len(pool)):
        gains: dict[int, tuple[float, float]] = {}
        for place in range(len(pool)):
            if place not in chosen:
                _, found = fit_logit(ratings[:, :, np.array([*chosen, place])], truth - silent)
                cost = costs[pool[place]]
                gains[place] = (math.inf if cost == 0.0 else (found - reached) / cost), found
        first, best = next(iter(gains)), max(gains, key=lambda place: gains[place][0])
        best = first if gains[best][0] - gains[first][0] < CLEAR / costs.mean() else best
        chosen.append(best)
        reached = gains[best][1]
    ahead = [pool[place] for place in chosen]
    return np.array([*ahead, *(voter for voter in order if voter not in ahead)])


def _leads(shares: np.ndarray) -> np.ndarray:
    """Return the lead of the best class: the difference of the two largest log-probabilities."""
    if shares.shape[1] < 2:
        return np.full(len(shares), np.inf)
    best = np.log(np.maximum(np.partition(shares, -2, axis=1)[:, -2:], LEAST_SHARE))
    return np.asarray(best[:, 1] - best[:, 0])


def most_votes(votes: np.ndarray) -> np.ndarray:
    """Return (trials, voters) how many of the first voters named the class that most of them named.

    Examples
    --------
    >>> most_votes(np.array([[0, 1, 1, -1], [-1, 2, 2, 2]])).tolist()
    [[1, 1, 2, 2], [0, 1, 2, 3]]
    """
    counts = np.zeros((len(votes), int(votes.max(initial=-1)) + 2), np.int64)
    found = np.zeros(votes.shape, np.int64)
    for i, column in enumerate(votes.T):
        counts[np.arange(len(votes)), column] += 1  # abstentions are counted in the last column
        found[:, i] = counts[:, :-1].max(axis=1, initial=0)
    return found


def _instances(model: Model, votes: np.ndarray) -> Trials:
    layout = model.layout
    return no_trials(len(votes))._replace(
        votes=np.ascontiguousarray(votes, np.int32), signs=np.ones(layout.voters), constant=layout.constant
    )


# -- panels -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PanelLine:
    """A panel of the first voters, its cost for each trial, and its accuracy without the others.

    ``behind`` is how much more often all voters are right on the same trials, and ``error`` the standard error of that.
    ``expected`` estimates the same on other trials, by which `VoterPanels.enough` chooses.
    """

    voters: tuple[Name, ...]
    cost: float
    accuracy: float
    behind: float
    error: float
    expected: float


@dataclass(frozen=True)
class VoterPanels:
    """Result of `VoteFusion.panel` and `Learner.panel`: a line for each panel size tried, the smallest first."""

    lines: tuple[PanelLine, ...]
    trials: int

    def __iter__(self) -> Iterator[PanelLine]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, place: int) -> PanelLine:
        return self.lines[place]

    def enough(self, tolerance: float = TOLERANCE) -> PanelLine:
        """Return the smallest panel expected to give up no more than ``tolerance``.

        Its accuracy is measured on trials that chose neither the order of the voters nor the size of the panel.
        """
        return next((line for line in self.lines if line.expected <= tolerance), self.lines[-1])

    def to_dict(self) -> list[dict[str, Any]]:
        """Return plain numbers and text, ready for JSON."""
        return [
            {"voters": list(line.voters), "cost": line.cost, "accuracy": line.accuracy, "behind": line.behind}
            for line in self.lines
        ]

    def __str__(self) -> str:
        rows = [
            f"{len(line.voters):>3}  {line.accuracy:>8.3f}  {line.cost:>10g}  {line.voters[-1]}" for line in self.lines
        ]
        return "\n".join([f"  m  accuracy  {'cost':>10}  adds ({self.trials} trials)", *rows])


def panel_of(fit: Fitter, rows: Rows, costs: np.ndarray, names: Sequence[Name]) -> VoterPanels:
    """Compare panels of the first m voters, each fitted alone.

    The first part of the trials orders the voters. Every second one of the others estimates what each panel gives up:
    by labels or by the probabilities of all voters, whichever is more. The rest measures accuracy.
    """
    votes, labels = latest_rows(rows, RECENT_TRIALS)
    begin = max(1, int(ORDERING_SHARE * len(labels)))
    first = votes[:begin], labels[:begin]
    order = order_by_gain(worth_of(fit(*first).model, *first), costs, *first)
    fits = [(size, fit(votes[:, order[:size]], labels)) for size in sizes_tried(len(order))]
    whole, scored = fits[-1][1], len(fits[-1][1].shares)
    chooses, measures = (np.arange(first, len(labels), 2) for first in (min(begin, len(labels) - 2), begin + 1))
    if not len(measures):
        measures = chooses
    lines = []
    for size, own in fits:
        behind, members = whole.right * 1.0 - own.right, order[:size]
        seen = chooses[chooses >= len(labels) - scored] - (len(labels) - scored)
        expected = max(float(behind[chooses].mean()), float(whole.given_up(own)[seen].mean()))
        error = float(behind[measures].std() / math.sqrt(len(measures)))
        figures = float(own.right[measures].mean()), float(behind[measures].mean()), error, expected
        lines.append(PanelLine(tuple(names[i] for i in members), float(costs[members].sum()), *figures))
    return VoterPanels(tuple(lines), len(measures))


def worth_of(model: Model, votes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the weight of each voter, or its accuracy if the learner is not a single weight vector."""
    try:
        return np.asarray(model.weights.arrays.voters)
    except ValueError:
        return np.asarray((votes == labels[:, None]).mean(axis=0))


# -- when to stop -------------------------------------------------------------------------------------------------


class AskingRule(NamedTuple):
    """Stops after the first step at which a statistic reaches its level; -inf at the last step and beyond.

    ``kind`` is "agree" (the statistic is how many voters named the same class) or "lead" (how far the best class leads,
    in log-probability: with one level for all steps the weighted lead, with a level for each the expected gain).
    """

    kind: str
    levels: np.ndarray

    def stops(self, statistic: np.ndarray) -> np.ndarray:
        """Return the step at which each trial stops, given (trials, steps) the statistic."""
        reached = statistic >= self.levels
        reached[:, -1] = True
        return np.asarray(reached.argmax(axis=1))


def stopping_levels(leads: np.ndarray, losses: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """Return the lead at which to stop after each step: where asking more is expected to gain less than its price.

    Parameters
    ----------
    leads, losses
        (trials, steps): how far the best class led after each step, and the accuracy given up by stopping there.
    prices
        Of each step, in accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> leads = np.array([[3.0, 4.0], [1.0, 4.0], [3.0, 3.0], [1.0, 1.0]])
    >>> losses = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 0.0], [0.5, 0.0]])
    >>> stopping_levels(leads, losses, np.array([0.1, 0.1])).tolist()
    [2.0, -inf]
    >>> stopping_levels(leads, losses, np.array([0.6, 0.6])).tolist()
    [-inf, -inf]
    """
    trials, steps = leads.shape
    levels, later = np.full(steps, -np.inf), losses[:, -1]
    for step in range(steps - 2, -1, -1):
        here, order = leads[:, step], np.argsort(leads[:, step], kind="stable")
        worse = losses[:, step] - (later + prices[step + 1])  # by stopping
        gain = np.concatenate([[0.0], np.cumsum(worse[order])])  # if asking continues for those that lead least
        ranked = here[order]
        gain[1:-1][np.diff(ranked) <= 0.0] = -np.inf  # ties stop together
        count = int(gain.argmax())
        if count:
            levels[step] = np.inf if count == trials else 0.5 * (ranked[count - 1] + ranked[count])
        later = np.where(here >= levels[step], losses[:, step], later + prices[step + 1])
    levels[int(np.argmin(levels)) :] = -np.inf  # the first that always stops
    return levels


def flat_levels(statistic: np.ndarray, losses: np.ndarray, prices: np.ndarray, agreeing: int = 0) -> np.ndarray:
    """Return the same level for all steps but the last one, with the least accuracy given up and paid.

    The level is ``agreeing``, with more steps than that, or else some quantile of the statistic.
    """
    rows, spent, steps = np.arange(len(statistic)), np.cumsum(prices), statistic.shape[1]
    quantiles = np.unique(np.quantile(statistic, np.linspace(0.0, 1.0, QUANTILES))).tolist()
    best, least = np.full(steps, -np.inf), math.inf
    for level in [agreeing] if agreeing else quantiles:
        levels = np.full(steps, level)
        stops = AskingRule("", levels).stops(statistic)
        for last in range(min(agreeing, steps - 1), steps):
            at = np.minimum(stops, last)
            total = float((losses[rows, at] + spent[at]).mean())
            if total < least:
                best, least = np.where(np.arange(steps) < last, level, -np.inf), total
    return best


def choose_rule(
    leads: np.ndarray, agreeing: np.ndarray, losses: np.ndarray, costs: np.ndarray, tolerance: float, errors: float
) -> AskingRule:
    """Choose among "until m agree", the weighted lead and the expected gain.

    Each rule is fitted to every second trial and scored on the others, by what it gives up and pays. Among rules that
    are not clearly worse than the best one, the one that gives up least is chosen.

    Parameters
    ----------
    leads, agreeing, losses
        (trials, steps): the lead of the best class, the votes for the class named most, and the accuracy given up.
    costs
        Of each step; a voter costs 1 in the mean.
    tolerance, errors
        Accuracy that may be given up, and the share of wrong answers of all voters.
    """
    statistics = {"lead": leads, "agree": agreeing.astype(float)}
    halves = [np.arange(len(leads)) % 2 == parity for parity in (0, 1)]
    price = min(WORTH * tolerance, MOST_REPAIRED * errors)
    for _ in range(PRICES_TRIED):
        prices = price * costs
        fits: list[tuple[str, Callable[..., np.ndarray]]] = [("lead", stopping_levels), ("lead", flat_levels)]
        fits += [("agree", partial(flat_levels, agreeing=m)) for m in range(2, LARGEST_AGREEMENT + 1)]
        lost, total = np.zeros((2, len(fits), len(leads)))
        for number, (kind, fit) in enumerate(fits):
            for test, train in (halves, halves[::-1]):
                rule = AskingRule(kind, fit(statistics[kind][train], losses[train], prices))
                steps = rule.stops(statistics[kind][test])
                lost[number, test] = losses[test, steps]
                total[number, test] = losses[test, steps] + np.cumsum(prices)[steps]
        best = int(total.mean(axis=1).argmin())
        beyond = total - total[best]
        near = beyond.mean(axis=1) <= beyond.std(axis=1) / math.sqrt(len(leads))
        chosen = int(np.where(near, lost.mean(axis=1), np.inf).argmin())
        error = float(lost[chosen].std() / math.sqrt(len(leads)))
        if lost[chosen].mean() <= OVERSTATED * tolerance + 2.0 * error:
            break
        price *= CHEAPER
    kind, fit = fits[chosen]
    return AskingRule(kind, fit(statistics[kind], losses, prices))


# -- models of the first voters -----------------------------------------------------------------------------------


@dataclass
class Few:
    """Indices of the few voters, and their models, whose classes are those of the model of all voters."""

    members: list[int]  # in the order in which they are asked
    sizes: list[int]  # panel sizes after which asking may stop
    kind: str  # of the stopping rule
    levels: np.ndarray  # of its statistic, after each size
    models: list[Model]  # one for each size; all voters that joined are in each
    choice: tuple[float, list[float]]  # what the members were chosen by: tolerance and costs
    trials: int  # that the model of all had learned from
    joined: list[int] = field(default_factory=list)  # further voters that were recently more accurate at some time
    risen: list[int] = field(default_factory=list)  # those of them that are so now: they are asked first

    @classmethod
    def fitted(
        cls, members: list[int], costs: np.ndarray, choice: tuple[float, list[float]], whole: Model, rows: Rows
    ) -> Few:
        """Fit models like the one of all voters to these trials, each to the votes of the first voters alone."""
        votes, labels = rows
        tolerance, fit = choice[0], Fitter.like(whole)
        of_all = fit(votes, labels)
        late = slice(len(of_all.shares) // WARM_UP, None)
        sizes, fits, lost = sizes_tried(len(members)), [], []
        for size in sizes:
            fits.append(fit(votes[:, members[:size]], labels))
            lost.append(of_all.given_up(fits[-1])[late])
            if size >= ALL_SIZES_TRIED and lost[-1].mean() <= tolerance:
                break
        sizes = sizes[: len(fits)]
        leads, losses = np.stack([_leads(one.shares)[late] for one in fits], axis=1), np.stack(lost, axis=1)
        places, prices = np.array(sizes) - 1, costs / (costs.mean() or 1.0)
        agreeing = most_votes(votes[-len(of_all.shares) :, members])[late][:, places]
        steps = np.diff(np.cumsum(prices[members])[places], prepend=0.0)
        kind, levels = choose_rule(
            leads, agreeing, losses, steps, tolerance, float(1.0 - of_all.shares[late].max(axis=1).mean())
        )
        count = int(np.argmin(levels)) + 1 if np.isneginf(levels).any() else len(levels)
        models = [one.model for one in fits[:count]]
        return cls(members[: sizes[count - 1]], sizes[:count], kind, levels[:count], models, choice, whole.trials)

    def fits(self, whole: Model) -> bool:
        """Return whether the classes are still the same."""
        return self.models[0].classes == whole.classes

    def rise(self, voters: list[int]) -> None:
        """Ask these first from now on; a voter new to the models starts as one that never voted."""
        self.risen = voters
        new = [voter for voter in voters if voter not in self.joined]
        if new:
            self.joined += new
            for model in self.models:
                model.grow(replace(model.layout, voters=model.layout.voters + len(new)))

    def asked(self, votes: np.ndarray, asked: np.ndarray) -> np.ndarray:
        """Mark the trials in which one of the few voted, and at most one other, of two or more, was asked."""
        own = [*self.members, *self.joined]
        others = np.delete(asked, own, axis=1)
        return np.asarray((votes[:, own] >= 0).any(axis=1) & (others.sum(axis=1) <= 1) & (others.shape[1] > 1))

    def next(self, votes: np.ndarray, asked: np.ndarray) -> int | None:
        """Return the voter to ask next, or None when the rule stops."""
        for voter in self.risen:
            if not asked[voter]:
                return voter
        heard = asked[self.members]
        if heard.all():
            return None
        size = int(np.argmin(heard))
        if size in self.sizes:
            step = self.sizes.index(size)
            if self._statistic(step, votes) >= self.levels[step]:
                return None
        return self.members[size]

    def _statistic(self, step: int, votes: np.ndarray) -> float:
        """Return what the stopping rule looks at, after the voters of one model have been asked."""
        own = votes[None, self.columns(step)]
        if self.kind == "agree":
            return float(most_votes(own)[0, -1])
        model = self.models[step]
        return float(_leads(model.own_probabilities(model.judge(_instances(model, own))[1]))[0])

    def columns(self, step: int) -> list[int]:
        """Return the voters of a model."""
        return [*self.members[: self.sizes[step]], *self.joined]

    def steps(self, asked: np.ndarray) -> np.ndarray:
        """Return the model for each trial: the smallest one that has all voters that were asked."""
        own = asked[:, self.members]
        last = np.where(own.any(axis=1), own.shape[1] - own[:, ::-1].argmax(axis=1), 1)
        return np.array([bisect_left(self.sizes, size) for size in last.tolist()], np.int64)

    def parts(self, trials: np.ndarray, votes: np.ndarray, asked: np.ndarray) -> Iterator[Answering]:
        """Yield these of the trials, the model that answers them, and their votes as it takes them."""
        steps = self.steps(asked[trials])
        for step in np.unique(steps).tolist():
            found = trials[steps == step]
            yield found, self.models[step], self.instances(votes[found], step)

    def instances(self, votes: np.ndarray, step: int) -> Trials:
        """Return rows of votes of all voters as one of the models takes them."""
        return _instances(self.models[step], votes[:, self.columns(step)])

    def learn(self, votes: np.ndarray, asked: np.ndarray, label: int) -> int:
        """Learn from one trial, as far as its voters were asked; return the place of the class that was predicted."""
        last = int(self.steps(asked[None])[0])
        for step, model in enumerate(self.models[: last + 1]):
            trial = self.instances(votes[None], step)._replace(labels=np.array([label], np.int32))
            predicted = int(model.play(trial).predictions[0])
        return predicted

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return plain data and arrays."""
        description = {part.name: getattr(self, part.name) for part in fields(self)}
        arrays, headers = {"levels": description.pop("levels")}, []
        for step, model in enumerate(description.pop("models")):
            header, own = model.state()
            headers.append(header)
            arrays |= {f"{step}.{name}": array for name, array in own.items()}
        return {**description, "models": headers, "choice": list(self.choice)}, arrays

    @classmethod
    def restored(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Few:
        """Restore from `state`."""
        blocks = by_part(arrays)
        models = [Model.from_state(header, blocks[str(step)]) for step, header in enumerate(description["models"])]
        read = {"models": models, "levels": arrays["levels"].copy(), "choice": tuple(description["choice"])}
        return cls(**deepcopy({**description, "models": []}) | read)


# -- whether the answer is settled --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """One instance with the votes so far; ``asked`` marks the voters that have voted or abstained.

    ``columns`` (voters, columns) marks where each voter's vote is stored in the instance. Where votes may bring new
    classes, ``widen`` returns an engine that knows one more class, which stands for any of them.
    """

    engine: Engine
    instance: Trials
    asked: np.ndarray
    columns: np.ndarray
    widen: Callable[[], Engine] | None = None

    def next(self, order: Sequence[int]) -> int | None:
        """Return the first voter of ``order`` not yet asked, or None if the answer is settled without these.

        Only for one weight vector is the worst case known; with any other learner all voters are asked.
        """
        left = np.array([voter for voter in order if not self.asked[voter]], np.int64)
        single = self.engine.top.single(self.engine)
        if not len(left) or (self.asked.any() and single and not self._overturned(left)):
            return None
        return int(left[0])

    def _judged(self, engine: Engine, left: np.ndarray, votes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return predictions and scores where the remaining voters cast, row by row, ``votes`` (-1 = none)."""
        present, owner = self.columns[left].any(axis=0), self.columns[left].argmax(axis=0)
        rows = repeated(self.instance, len(votes))
        rows.votes[:, present] = votes[:, owner[present]]
        return engine.judge(rows)

    def _overturned(self, left: np.ndarray) -> bool:
        """Return whether the answer changes in the worst case for some rival class.

        In the worst case all remaining voters vote for the rival, except those of negative weight, which vote for the
        answer. For one weight vector no other votes can do more.
        """
        answer, known = (
            int(self.engine.judge(self.instance)[0][0]),
            int(self.engine.known_in(self.instance, False).known[0]),
        )
        if answer < 0:
            return True
        alone = np.full((len(left) + 1, len(left)), -1, np.int32)
        np.fill_diagonal(alone[1:], answer)
        scores = self._judged(self.engine, left, alone)[1][:, answer]
        gains = scores[1:] - scores[0]  # what each vote adds to the answer
        rivals = np.array([c for c in range(known) if c != answer], np.int32)
        worst = np.where(gains >= 0.0, rivals[:, None], np.int32(answer))
        if len(rivals) and (self._judged(self.engine, left, worst)[0] != answer).any():
            return True
        if self.widen is None:
            return False
        gains[int(gains.argmax())] = 0.0  # somebody must name the new class
        worst = np.where(gains >= 0.0, np.int32(known), np.int32(answer))[None]
        return bool(self._judged(self.widen(), left, worst)[0][0] != answer)


def add_class(model: Model, layout: Layout) -> Engine:
    """Return a copy of the model's engine, with this layout, that knows one more class named by a vote."""
    return model.enlarged(layout, [NEW_CLASS]).engine


# -- what a model stores to ask fewer voters ----------------------------------------------------------------------


class AskingModel(Protocol):
    """Voters, the model that fuses them, and what is stored to ask fewer of them."""

    @property
    def model(self) -> Model:
        """The model of all voters."""

    @property
    def asking(self) -> Asking:
        """State for asking fewer voters."""

    @property
    def voters(self) -> Sequence[Name]:
        """Names of the voters, one for each column of the model."""

    def worth(self) -> np.ndarray:
        """Return the weight of each voter, or its recent accuracy if the learner is not a single weight vector."""


class Asking:
    """The latest trials, and the few voters that are asked where some accuracy may be given up."""

    def __init__(self, recent: Recent | None = None, choice: Choice | None = None, few: Few | None = None) -> None:
        self.recent = Recent() if recent is None else recent
        self.choice = choice
        self.few = few  # as of the last trial that was not asked of all
        self.of_few = 0  # trials that the few have learned, and the model of all has not
        self._current: Few | None = None  # up to date, until something is learned
        self._advised: Few | None = None  # of a fusion with side columns, where the few neither answer nor learn

    # -- state ----------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, dict[str, np.ndarray]]]:
        """Return plain data, and blocks of arrays."""
        description: dict[str, Any] = {"of_few": self.of_few} if self.of_few else {}
        blocks = {"recent": self.recent.arrays}
        if self.choice is not None:
            tolerance, costs = self.choice
            description["choice"] = [tolerance, None if costs is None else list(costs)]
        if self.few is not None:
            description["few"], blocks["few"] = self.few.state()
        return description, blocks

    @classmethod
    def restored(cls, description: Mapping[str, Any], blocks: Mapping[str, Mapping[str, np.ndarray]]) -> Asking:
        """Restore from `state`."""
        few = Few.restored(description["few"], blocks["few"]) if "few" in description else None
        choice = None
        if "choice" in description:
            tolerance, costs = description["choice"]
            choice = Choice(tolerance, None if costs is None else tuple(costs))
        found = cls(Recent.restored(blocks.get("recent", {})), choice, few)
        found.of_few = description.get("of_few", 0)
        return found

    # -- the few --------------------------------------------------------------------------------------------------

    def choose(self, choice: Choice | None) -> bool:
        """Choose the few by this from now on, or ask all voters; return whether that is something new."""
        if choice == self.choice:
            return False
        self.choice, self.few, self._current = choice, None, None
        return True

    def current(self, jury: AskingModel) -> Few | None:
        """Return the few, up to date; None if all are asked, or there are too few trials to choose by."""
        if self.choice is None or not self.recent.enough:
            return None
        if self._current is None:
            self._current = self._up_to_date(jury, self.choice, self.few)
        return self._current

    def advised(self, jury: AskingModel, choice: Choice) -> Few | None:
        """Return the few for one question, where the model of all voters answers and learns."""
        self._advised = self._up_to_date(jury, choice, self._advised) if self.recent.enough else None
        return self._advised

    def _up_to_date(self, jury: AskingModel, choice: Choice, few: Few | None) -> Few:
        """Return as many voters, in order of worth, as pay, and those that were recently more accurate."""
        model, given = jury.model, few
        prices = choice.prices(len(jury.voters))
        chosen_by = choice.tolerance, prices.tolist()
        if few is None or not few.fits(model) or few.choice != chosen_by or model.trials > (1.0 + STALE) * few.trials:
            rows = latest_rows(self.recent.rows(len(prices)), COMPARED_TRIALS)
            order = order_by_gain(jury.worth(), prices, *rows).tolist()
            few = Few.fitted(order, prices, chosen_by, model, rows)
        risen = self.risen(len(prices), few.members, few.risen)
        if risen != few.risen:
            few = deepcopy(few) if few is given else few
            few.rise(risen)
        return few

    def answering(self, jury: AskingModel, votes: np.ndarray, asked: np.ndarray) -> tuple[Model, Trials] | None:
        """Return the model of the few that answers one trial, and the trial as it takes it; None: the model of all."""
        few = None if self.choice is None or asked.all() else self.current(jury)
        if few is None or not few.asked(votes[None], asked[None])[0]:
            return None
        return next(few.parts(np.zeros(1, np.int64), votes[None], asked[None]))[1:]

    def learn_few(self, jury: AskingModel, votes: np.ndarray, asked: np.ndarray, label: int) -> tuple[int, int] | None:
        """Learn one trial with the few, the label coded as in `Model.play`; return the class predicted, and the label.

        None, and nothing is learned, if the trial is for the model of all.
        """
        if self.choice is None or asked.all() or asked[len(jury.voters) :].any():
            return None
        self.few = few = self.current(jury)
        if few is None or not few.asked(votes[None], asked[None])[0]:
            return None
        self._current = None
        self.of_few += 1
        if label >= 0:
            self.recent.note(votes, asked, label)
        return few.learn(votes, asked, label), label

    def learn_all(self, votes: np.ndarray, asked: np.ndarray, labels: np.ndarray) -> None:
        """Store trials, by the model's numbers, that the model of all has learned."""
        self.changed()
        self.recent.add(votes, labels, asked)

    def changed(self) -> None:
        """Drop what is cached, since the model of all voters has learned."""
        self._current = None

    # -- voters outside the panel ---------------------------------------------------------------------------------

    def explores(self, share: float) -> bool:
        """Draw whether a voter from outside is asked about this instance; the draw stays until the next label."""
        return drawn(OCCASION, self.recent.trials) < share

    def explored(self, outside: Sequence[int], asked: np.ndarray) -> int | None:
        """Return a voter from outside, unless one was asked: the one asked least or the most accurate one recently."""
        if not outside or asked[list(outside)].any():
            return None
        if drawn(OUTSIDER, self.recent.trials) < 0.5:
            return min(outside, key=lambda voter: (self.recent.ever[voter], voter))
        right = self.recent.accuracy(len(asked))
        return max(outside, key=lambda voter: (right[voter], -voter))

    def risen(self, count: int, chosen: Sequence[int], joined: Sequence[int]) -> list[int]:
        """Return voters recently more accurate than all of the chosen ones, by more than a standard error.

        A voter that has joined for that reason stays as long as it is not behind.
        """
        correct, asked = self.recent.counts(count)
        right = correct / np.maximum(asked, 1.0)
        best = right[list(chosen)].max(initial=0.0)
        sure = right > best + np.sqrt(best * (1.0 - best) / np.maximum(asked, 1.0))
        stays = [voter for voter in joined if right[voter] >= best]
        found = np.flatnonzero(sure & (asked >= TRIED)).tolist()
        return [*stays, *(voter for voter in found if voter not in chosen and voter not in joined)]

    def compared(self, jury: AskingModel, costs: np.ndarray) -> Callable[[], VoterPanels]:
        """Return a function that compares panels on the trials up to now, independent of later learning."""
        rows = latest_rows(self.recent.rows(len(costs)), RECENT_TRIALS)
        return partial(panel_of, Fitter.like(jury.model), rows, costs, list(jury.voters))


@dataclass(frozen=True)
class Inquiry:
    """A checked question: which voter to ask next about one instance.

    Attributes
    ----------
    jury
        The voters and their models.
    codes, asked
        Votes so far as class numbers, -1 for none, and which voters were asked.
    question
        Returns the instance as the model of all voters sees it.
    tolerance, costs, explore
        As in `VoteFusion.ask`; a cost for each voter.
    choice
        What the few are chosen by where they answer and learn; None where the model of all voters does.
    allowed
        Which voters may be asked; None for all.
    """

    jury: AskingModel
    codes: np.ndarray
    asked: np.ndarray
    question: Callable[[], Question]
    tolerance: float
    costs: np.ndarray
    explore: float
    choice: Choice | None
    allowed: np.ndarray | None = None

    @property
    def changes(self) -> bool:
        """True if the model so far asks by another tolerance or other costs, on which later learning depends."""
        return self.choice != self.jury.asking.choice

    def next(self) -> Name | None:
        """Return the name of the voter to ask next, or None when asking more is not worth it."""
        worth = self.jury.worth()
        if self.tolerance == 0.0:  # voters of positive weight, usually for the answer, settle it sooner
            worth = worth * np.where(worth < 0.0, 1.0 - AGREEMENT, 1.0 + AGREEMENT)
        order = order_by_worth(worth, self.costs).tolist()
        left = [i for i in order if not self.asked[i] and (self.allowed is None or self.allowed[i])]
        voter = self.question().next(left) if self.tolerance == 0.0 else self._next_of_few(left)
        return None if voter is None else self.jury.voters[voter]

    def _next_of_few(self, left: list[int]) -> int | None:
        """Ask all, in order of worth, as long as there are too few trials to choose by; then as the few decide."""
        asking, first = self.jury.asking, next(iter(left), None)
        if self.choice is not None:
            few = asking.current(self.jury)
        else:
            few = asking.advised(self.jury, Choice(self.tolerance, tuple(self.costs.tolist())))
        asked = self.asked if self.allowed is None else self.asked | ~self.allowed  # the others count as abstaining
        if few is None:
            return first
        voter = few.next(self.codes, asked)
        if voter is None and asking.explores(self.explore):
            chosen = {*few.members, *few.risen}
            voter = asking.explored([i for i in range(len(asked)) if i not in chosen], asked)
        return first if voter is None and not self.asked.any() else voter  # none of the few may be asked


# -- simulation ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Simulation:
    """Means over the trials after the ``first`` ones, which all voters were asked about."""

    trials: int
    first: int
    voters: int
    calls: float
    cost: float
    accuracy: float
    full_cost: float
    full_accuracy: float
    tolerance: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"Asking one by one with tolerance {self.tolerance:g}, after {self.first:,d} rows with all votes: "
            f"{self.calls:.2f} calls of {self.voters} (cost {self.cost:.4g} of {self.full_cost:.4g}), "
            f"accuracy {self.accuracy:.4f}; asking all: {self.full_accuracy:.4f}"
        )


def simulate_asking(
    make: Callable[[], Any],
    table: Mapping[str, np.ndarray],
    labels: Sequence[Label] | np.ndarray,
    voters: Sequence[str],
    *,
    first: int,
    tolerance: float = TOLERANCE,
    costs: Mapping[str, float] | None = None,
) -> Simulation:
    """Learn from the first rows with all votes, then ask one by one and learn only from what was asked.

    Parameters
    ----------
    make
        Makes a fusion that has learned nothing; two are needed, since one learns all votes.
    table, labels
        Columns of votes, and of values of side columns; the right labels.
    voters
        Which columns are voters.
    first
        Rows that all are asked about.
    tolerance, costs
        As in `VoteFusion.ask`.
    """
    if not 1 < first < len(labels):
        raise ValueError(f"first must leave rows to ask about one by one, got {first} of {len(labels)} rows")
    head = {name: column[:first] for name, column in table.items()}
    frugal, full = (make().partial_fit(head, labels[:first]) for _ in range(2))
    price = dict.fromkeys(voters, 1.0) if costs is None else costs
    sums = np.zeros(4)  # calls, cost, right answers, those of all voters
    for t in range(first, len(labels)):
        heard: dict[str, Label] = {name: table[name][t] for name in table if name not in voters}
        spent = []
        while (voter := frugal.ask(heard, costs=costs, tolerance=tolerance)) is not None:
            heard[voter] = table[voter][t]
            spent.append(price[voter])
        row, whole = {name: [v] for name, v in heard.items()}, {name: [column[t]] for name, column in table.items()}
        right = frugal.predict(row)[0] == labels[t], full.predict(whole)[0] == labels[t]
        sums += len(spent), sum(spent), *right
        frugal.partial_fit(row, [labels[t]])
        full.partial_fit(whole, [labels[t]])
    calls, cost, accuracy, full_accuracy = (sums / (len(labels) - first)).tolist()
    everything, size = float(sum(price[name] for name in voters)), len(labels) - first
    figures = calls, cost, accuracy, everything, full_accuracy
    return Simulation(size, first, len(voters), *figures, tolerance)
