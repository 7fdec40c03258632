"""Asking fewer voters: which voter to ask next, and how few voters are enough; on voter indices.

`VoteFusion`, `Learner` and the service share this module. They read votes into arrays (`codes`: class numbers, -1 for
none; `asked`: which voters were queried) and get back the index of a voter. Three parts do the work:

- `Recent` keeps the latest trials in which voters were asked as usual, and each voter's recent accuracy.
- `Few` is a chain of models, each of the first voters to be asked, fitted to their votes alone. It decides when the
  answer leads by enough, and answers and learns the trials in which only its voters were asked.
- `Question` tests whether the remaining voters can still change the answer of the model of all voters (``tolerance=0``
  for one weight vector).

The tolerance and the costs last asked with are stored (`Asking.choose`). Apart from that a question changes nothing:
the same trials in the same order leave the same state, whether anybody asked in between or not.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numba import types

from linmax.core.contract import KNOWN, Indices, Instances, Labels, LabelTable, Matrix, Vector
from linmax.data.arrays import Layout, no_instances, repeated
from linmax.engine.engine import Engine, Settings
from linmax.engine.record import latest
from linmax.jit.compiling import kernel
from linmax.models.kept_trials import KeptTrials
from linmax.models.model import Model
from linmax.util.checks import finite
from linmax.util.draws import drawn
from linmax.util.names import apart

__all__ = [
    "EXPLORE",
    "TOLERANCE",
    "Asking",
    "AskingModel",
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
    "panel_of",
    "read_costs",
    "read_share",
    "simulate_asking",
    "stopping_leads",
]

TOLERANCE = 0.002  # accuracy that may be given up, by default
EXPLORE = 0.05  # share of instances at which a voter from outside the panel is asked as well
STALE = 0.1  # growth of the trials after which the few are chosen again
TRIED = 8.0  # recent questions after which a voter that is more accurate than the panel may join it
GAIN_ERRORS = 1.0  # standard errors by which it must be more accurate; one that joins by chance leaves again
OCCASION, OUTSIDER = 1, 4  # streams of draws
ALL_SIZES_TRIED = 12  # voters up to which every panel size is compared
COMPARED_TRIALS = 1000  # trials on which panels are compared
WARM_UP = 5  # the first of this many parts of them does not count
LEAST_SHARE = 1e-12  # smallest probability whose logarithm is taken
AGREEMENT = 0.3  # extra worth of a voter of positive weight, which usually votes for the answer
NEW_CLASS = object()  # stands for a class that no vote has named yet

RECENT_TRIALS = 2000  # trials kept
FEWEST_COMPARED = 50  # trials needed to choose a panel
FORGET = 0.97  # factor on a voter's counts each time it is asked
FADE = 0.998  # factor on all counts at each trial that is not kept, so that old records of rare voters lose weight
PACE = 0.05  # at which the usual number of voters asked is updated
RIGHT, ASKED = 0, 1  # rows of `Recent.recent`
SEEN, KEPT, PASSED = range(3)  # entries of `Recent.numbers`

CHEAPEST, DEAREST = 1e-7, 1.0  # prices of a call, in accuracy
HALVINGS = 25  # of the range of their logarithms
WORTH = 2.5  # tolerances that a call should gain

Rows = tuple[np.ndarray, np.ndarray]  # votes by class number, -1 for none, and labels
Answering = tuple[np.ndarray, Model, Instances]  # trials, the model that answers them, and they as it takes them


# -- checked arguments --------------------------------------------------------------------------------------------


def read_costs(costs: Any, voters: Sequence[Any]) -> np.ndarray:
    """Return what asking each voter costs, 1 by default; checked."""
    if costs is None:
        return np.ones(len(voters))
    if not isinstance(costs, Mapping):
        raise TypeError(f"costs must be a dict from voter to number, got {costs!r}")
    missing = [name for name in voters if name not in costs]
    if missing:
        raise ValueError(f"costs: {missing[0]!r} has none; give one to every voter")
    if len(costs) > len(voters):
        unknown = next(name for name in costs if name not in voters)
        raise ValueError(f"costs: {unknown!r} is not a known voter; the voters are {', '.join(map(str, voters))}")
    prices = np.array([finite(f"costs of {name!r}", costs[name]) for name in voters])
    if (prices < 0.0).any():
        at = int(np.argmax(prices < 0.0))
        raise ValueError(f"costs of {voters[at]!r} must be >= 0, got {prices[at]:g}")
    return prices


def read_share(name: str, value: Any) -> float:
    """Return a number from 0 to 1, checked."""
    number = finite(name, value)
    if not 0.0 <= number <= 1.0:
        advice = EXPLORE if name == "explore" else TOLERANCE
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}; try {advice}")
    return number


def asked_among(votes: Any, voters: Sequence[Any], others: Collection[Any] = ()) -> np.ndarray:
    """Return which voters these votes are of, checked; ``others`` may stand among them."""
    if not isinstance(votes, Mapping):
        raise TypeError(f"votes must be a dict from voter to vote, got {votes!r}")
    place, asked = {name: i for i, name in enumerate(voters)}, np.zeros(len(voters), bool)
    for name, vote in votes.items():
        if vote.__hash__ is None:
            raise TypeError(f"votes: {vote!r} of {name!r} is not hashable; a vote is one class")
        if name in place:
            asked[place[name]] = True
        elif name not in others:
            raise ValueError(f"votes: {name!r} is not a known voter; the voters are {', '.join(map(str, voters))}")
    return asked


class Choice(NamedTuple):
    """Tolerance and costs by which the few are chosen."""

    tolerance: float
    costs: tuple[float, ...] | None  # of the voters that there were; 1 each if None

    @classmethod
    def read(cls, tolerance: float, costs: Mapping[Any, Any] | None, voters: Sequence[Any]) -> Choice:
        """Return the choice, checked."""
        prices = tuple(read_costs(costs, voters).tolist())
        return cls(tolerance, None if costs is None else prices)

    def prices(self, count: int) -> np.ndarray:
        """Return the costs of ``count`` voters; one that has joined since costs 1."""
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
    """Count right votes, and mark the trials in which voters were asked as usual: they are to be kept."""
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
    were asked is not kept, unless that has been so for long. A voter that was asked and abstained is not right.
    """

    def __init__(self, voters: int = 0) -> None:
        self.kept = KeptTrials(RECENT_TRIALS)
        self.numbers = np.zeros(3, np.int64)  # trials counted, those kept, and those passed over since
        self.usual = np.zeros(1)  # how many voters are asked in a trial
        self.recent = np.zeros((2, voters))
        self.ever = np.zeros(voters, np.int64)  # how often each voter was asked

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """State arrays by name."""
        counts = {name: getattr(self, name) for name in ("numbers", "usual", "recent", "ever")}
        return counts | {f"kept.{name}": array for name, array in self.kept.arrays.items()}

    @classmethod
    def restored(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Restore from `arrays`."""
        recent, kept = cls(), {}
        for name, array in arrays.items():
            if name.startswith("kept."):
                kept[name.removeprefix("kept.")] = array
            else:
                setattr(recent, name, array.copy())
        recent.kept = KeptTrials.restored(kept) if kept else recent.kept
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
        """Trials counted, kept or not."""
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
        """Count right votes in one trial that is not kept."""
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


# -- panels -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PanelLine:
    """A panel of the first voters, its cost for each trial, and its accuracy alone.

    ``behind`` is how much more often all voters are right on the same trials, and ``error`` the standard error of that.
    """

    voters: tuple[Any, ...]
    cost: float
    accuracy: float
    behind: float
    error: float


@dataclass(frozen=True)
class VoterPanels:
    """Result of `VoteFusion.panel` and `Learner.panel`: a line for each panel size tried, the smallest first."""

    lines: tuple[PanelLine, ...]
    trials: int

    def __iter__(self) -> Any:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, place: int) -> PanelLine:
        return self.lines[place]

    def enough(self, tolerance: float = 0.002) -> PanelLine:
        """Return the smallest panel that gives up no more than ``tolerance``, estimated on these trials."""
        best = min(line.behind for line in self.lines)
        near = (line for line in self.lines if line.behind - best <= tolerance + line.error)
        return next(near, self.lines[-1])

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain numbers and text, ready for JSON."""
        return [
            {"voters": list(line.voters), "cost": line.cost, "accuracy": line.accuracy, "behind": line.behind}
            for line in self.lines
        ]

    def __str__(self) -> str:
        rows = [
            f"{len(line.voters):>3}  {line.accuracy:.3f}  {line.cost:>10g}  {line.voters[-1]}" for line in self.lines
        ]
        return "\n".join([f"  m  right  {'cost':>10}  and this one ({self.trials} trials)", *rows])


def sizes_tried(n: int) -> list[int]:
    """Return the panel sizes compared: every size up to `ALL_SIZES_TRIED`, then some, and n."""
    return sorted({*range(1, min(ALL_SIZES_TRIED, n) + 1), *(m for m in (16, 24, 32, 48, 64, 100) if m < n), n})


def latest_rows(rows: Rows) -> Rows:
    """Return the latest `COMPARED_TRIALS` votes and labels; raise ValueError if there are fewer than two."""
    votes, labels = (block[-COMPARED_TRIALS:] for block in rows)
    if len(labels) < 2:
        raise ValueError(
            f"a panel needs trials with the votes of all, and there are {len(labels)}; learn from some first"
        )
    return votes, labels


class PanelFit(NamedTuple):
    """A model of some voters, and its answers to the trials before it saw each label: right or not, probabilities."""

    model: Model
    right: np.ndarray
    shares: np.ndarray  # of the latest trials, where there are very many classes


@dataclass(frozen=True)
class Fitter:
    """Fits models like one of all voters to the votes of some; it does not follow that model as it learns.

    By what was learned from a trial itself, a few would look better at it than they are at others: the answers are
    those before each label.
    """

    learner: Any
    classes: tuple[Any, ...]
    settings: Settings
    thresholds: bool

    @classmethod
    def like(cls, whole: Model) -> Self:
        """Return what fits models like this one."""
        settings = Settings(whole.engine.settings.largest, whole.engine.settings.update_on_tie)
        return cls(whole.learner, tuple(whole.classes), settings, bool(whole.layout.constant))

    def __call__(self, votes: np.ndarray, labels: np.ndarray) -> PanelFit:
        """Fit a model to these trials."""
        layout = Layout(votes.shape[1], 0, 0, 0, 1.0 if self.thresholds else 0.0)
        model = Model(self.learner, layout, self.classes, self.settings).follow()
        labels = labels.astype(np.int32)
        right = model.play(_instances(model, votes), labels).predictions == labels
        return PanelFit(model, right, model.own_probabilities(latest(model.record)[0]))


def panel_of(fit: Fitter, rows: Rows, order: np.ndarray, costs: np.ndarray, names: Sequence[Any]) -> VoterPanels:
    """Compare panels of the first m voters in this order, each fitted alone."""
    votes, labels = latest_rows(rows)
    sizes, late = sizes_tried(len(order)), slice(len(labels) // WARM_UP, None)
    right = [fit(votes[:, order[:size]], labels).right[late].astype(float) for size in sizes]
    lines = []
    for size, own in zip(sizes, right, strict=True):
        behind, chosen = right[-1] - own, order[:size]
        error = float(behind.std() / math.sqrt(len(behind)))
        figures = float(costs[chosen].sum()), float(own.mean()), float(behind.mean()), error
        lines.append(PanelLine(tuple(names[i] for i in chosen), *figures))
    return VoterPanels(tuple(lines), len(right[-1]))


# -- when to stop -------------------------------------------------------------------------------------------------


def stopping_leads(leads: np.ndarray, losses: np.ndarray, costs: np.ndarray, tolerance: float) -> np.ndarray:
    """Return the lead at which to stop after each step; -inf at the last step that is needed and beyond.

    Parameters
    ----------
    leads, losses
        (trials, steps): how far the best class led after each step, and the accuracy given up by stopping there.
    costs
        Of each step.
    tolerance
        Accuracy that may be given up in the mean of the trials. Where every choice gives up more, about the least is.

    Examples
    --------
    >>> import numpy as np
    >>> leads = np.array([[3.0, 4.0], [1.0, 4.0], [3.0, 3.0], [1.0, 1.0]])
    >>> losses = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 0.0], [0.5, 0.0]])
    >>> stopping_leads(leads, losses, np.ones(2), tolerance=0.01).tolist()
    [2.0, -inf]
    >>> stopping_leads(leads, losses, np.ones(2), tolerance=0.5).tolist()
    [-inf, -inf]
    """
    prices = costs / costs.mean() if costs.any() else costs
    orders = np.argsort(leads, axis=0, kind="stable")

    def chosen(price: float) -> tuple[np.ndarray, float, float]:
        return _chosen(leads, losses, price * prices, orders)

    def dearest(errors: float) -> float:
        """Return the highest price that gives up at most the tolerance and this many standard errors."""
        cheap, dear = CHEAPEST, DEAREST
        for _ in range(HALVINGS):
            price = math.sqrt(cheap * dear)
            lost, error = chosen(price)[1:]
            if lost <= tolerance + errors * error:
                cheap = price
            else:
                dear = price
        return cheap

    return chosen(min(max(dearest(0.0), WORTH * tolerance), dearest(1.0)))[0]


def _chosen(
    leads: np.ndarray, losses: np.ndarray, prices: np.ndarray, orders: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """Return the best leads at these prices, the mean accuracy given up, and its standard error."""
    trials, steps = leads.shape
    found, lost, paid = np.full(steps, -np.inf), losses[:, -1], np.zeros(trials)
    for step in range(steps - 2, -1, -1):
        here, order = leads[:, step], orders[:, step]
        worse = losses[:, step] - (lost + paid + prices[step + 1])  # by stopping
        gain = np.concatenate([[0.0], np.cumsum(worse[order])])  # if asking continues for those that lead least
        ranked = here[order]
        gain[1:-1][np.diff(ranked) <= 0.0] = -np.inf  # ties stop together
        count = int(gain.argmax())
        if count:
            found[step] = np.inf if count == trials else 0.5 * (ranked[count - 1] + ranked[count])
        stops = here >= found[step]
        lost = np.where(stops, losses[:, step], lost)
        paid = np.where(stops, 0.0, paid + prices[step + 1])
    last = int(np.argmin(found))  # the first that always stops
    found[last:] = -np.inf
    return found, float(lost.mean()), float(lost.std() / math.sqrt(trials))


# -- models of the first voters -----------------------------------------------------------------------------------


@dataclass
class Few:
    """Indices of the few voters, and their models, whose classes are those of the model of all voters."""

    members: list[int]  # in the order in which they are asked
    sizes: list[int]  # panel sizes after which asking may stop
    leads: np.ndarray  # of the best class, at which it does
    models: list[Model]  # one for each size; all voters that joined are in each
    joined: list[int]  # further voters that were recently more accurate at some time
    risen: list[int]  # those of them that are so now: they are asked first
    choice: list[Any]  # what the members were chosen by: tolerance and costs
    trials: int  # that the model of all had learned from

    @classmethod
    def fitted(
        cls,
        order: Sequence[int],
        costs: np.ndarray,
        choice: list[Any],
        whole: Model,
        rows: Rows,
    ) -> Few:
        """Fit models like the one of all voters to these trials, each to the votes of the first voters alone."""
        votes, labels = latest_rows(rows)
        tolerance, members = float(choice[0]), list(order)
        sizes, fit = sizes_tried(len(members)), Fitter.like(whole)
        of_all = fit(votes, labels).shares
        models: list[Model] = []
        leads, losses = np.zeros((len(of_all), len(sizes))), np.zeros((len(of_all), len(sizes)))
        late = slice(len(of_all) // WARM_UP, None)
        for step, size in enumerate(sizes):
            model, _, shares = fit(votes[:, members[:size]], labels)
            leads[:, step], losses[:, step] = _leads(shares), _given_up(of_all, shares)
            models.append(model)
            if size >= ALL_SIZES_TRIED and losses[late, step].mean() <= tolerance:
                break
        sizes, steps = sizes[: len(models)], slice(len(models))
        prices = np.diff(np.cumsum(costs[members])[np.array(sizes) - 1], prepend=0.0)
        stops = stopping_leads(leads[late, steps], losses[late, steps], prices, tolerance)
        count = int(np.argmin(stops)) + 1
        sizes = sizes[:count]
        return cls(members[: sizes[-1]], sizes, stops[:count], models[:count], [], [], choice, whole.trials)

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

    def asked(self, asked: np.ndarray) -> np.ndarray:
        """Mark the trials for the few, given which voters were asked: at most one from outside, of two or more."""
        own = [*self.members, *self.joined]
        others = np.delete(asked, own, axis=1)
        return np.asarray(asked[:, own].any(axis=1) & (others.sum(axis=1) <= 1) & (others.shape[1] > 1))

    def next(self, votes: np.ndarray, asked: np.ndarray) -> int | None:
        """Return the voter to ask next, or None when the answer leads by enough."""
        for voter in self.risen:
            if not asked[voter]:
                return voter
        heard = asked[self.members]
        if heard.all():
            return None
        size = int(np.argmin(heard))
        if size in self.sizes:
            step = self.sizes.index(size)
            if leads_of(self.models[step], votes[None, self.columns(step)])[0] >= self.leads[step]:
                return None
        return self.members[size]

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

    def instances(self, votes: np.ndarray, step: int) -> Instances:
        """Return rows of votes of all voters as one of the models takes them."""
        return _instances(self.models[step], votes[:, self.columns(step)])

    def learn(self, votes: np.ndarray, asked: np.ndarray, label: int) -> int:
        """Learn from one trial, as far as its voters were asked; returns the class that was predicted, as a place."""
        last = int(self.steps(asked[None])[0])
        for step, model in enumerate(self.models[: last + 1]):
            predicted = int(model.play(self.instances(votes[None], step), np.array([label], np.int32)).predictions[0])
        return predicted

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return plain data and arrays."""
        description = {part.name: getattr(self, part.name) for part in fields(self)}
        arrays, headers = {"leads": description.pop("leads")}, []
        for step, model in enumerate(description.pop("models")):
            header, own = model.state()
            headers.append(header)
            arrays |= {f"{step}.{name}": array for name, array in own.items()}
        return {**description, "models": headers}, arrays

    @classmethod
    def restored(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Few:
        """Restore from `state`."""
        blocks = apart(arrays)
        models = [Model.from_state(header, blocks[str(step)]) for step, header in enumerate(description["models"])]
        return cls(**deepcopy({**description, "models": []}) | {"models": models, "leads": arrays["leads"].copy()})


def leads_of(model: Model, votes: np.ndarray) -> np.ndarray:
    """Return by how much the answer of a model leads for rows of votes."""
    return _leads(model.own_probabilities(model.engine.judge(_instances(model, votes), len(votes))[1]))


def _leads(shares: np.ndarray) -> np.ndarray:
    """Return the lead of the best class: the difference of the two largest log-probabilities."""
    if shares.shape[1] < 2:
        return np.full(len(shares), np.inf)
    best = np.partition(shares, -2, axis=1)[:, -2:]
    return np.asarray(np.log(np.maximum(best[:, 1], LEAST_SHARE)) - np.log(np.maximum(best[:, 0], LEAST_SHARE)))


def _given_up(of_all: np.ndarray, of_few: np.ndarray) -> np.ndarray:
    """Return the probability of the answer of all voters less that of the answer of a few, both as all see it."""
    trials = np.arange(len(of_all))
    return np.asarray(of_all.max(axis=1) - of_all[trials, of_few.argmax(axis=1)])


def _instances(model: Model, votes: np.ndarray) -> Instances:
    layout = model.layout
    return no_instances(len(votes))._replace(
        votes=np.ascontiguousarray(votes, np.int32), signs=np.ones(layout.voters), constant=layout.constant
    )


# -- whether the answer is settled --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """One instance with the votes so far; ``asked`` marks the voters that have voted or abstained.

    ``columns`` (voters, columns) marks where each voter's vote is stored in the instance. Where votes may bring new
    classes, ``widen`` returns an engine that knows one more class, which stands for any of them.
    """

    engine: Engine
    instance: Instances
    asked: np.ndarray
    columns: np.ndarray
    widen: Callable[[], Engine] | None = None

    def next(self, order: Sequence[int]) -> int | None:
        """Return the first voter of ``order`` not yet asked, or None if the answer is settled without these."""
        left = np.array([voter for voter in order if not self.asked[voter]], np.int64)
        if not len(left) or (self.asked.any() and self.single and not self._overturned(left)):
            return None
        return int(left[0])

    @cached_property
    def single(self) -> bool:
        """True for one weight vector. Only then is the worst case known, and asking can be exact."""
        return self.engine.top.single(self.engine)

    @cached_property
    def widened(self) -> Engine | None:
        """An engine that knows one more class, if votes may bring any."""
        return None if self.widen is None else self.widen()

    @cached_property
    def answer(self) -> int:
        """The class predicted from the votes so far, as a number."""
        return int(self.engine.judge(self.instance, 1)[0][0])

    def _judged(self, engine: Engine, left: np.ndarray, votes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores where the remaining voters cast, row by row, ``votes``: class numbers, -1 = none."""
        present, owner = self.columns[left].any(axis=0), self.columns[left].argmax(axis=0)
        rows = repeated(self.instance, len(votes))
        rows.votes[:, present] = votes[:, owner[present]]
        return engine.judge(rows, len(votes))

    def _gains(self, left: np.ndarray) -> np.ndarray:
        """Return what the vote of each remaining voter adds to the score of the answer."""
        alone = np.full((len(left) + 1, len(left)), -1, np.int32)
        np.fill_diagonal(alone[1:], self.answer)
        scores = self._judged(self.engine, left, alone)[1][:, self.answer]
        return np.asarray(scores[1:] - scores[0])

    def _overturned(self, left: np.ndarray) -> bool:
        """Return whether the answer changes in the worst case for some rival class.

        In the worst case all remaining voters vote for the rival, except those of negative weight, which vote for the
        answer. For one weight vector no other votes can do more.
        """
        answer, known = self.answer, int(self.engine.state.shape[KNOWN])
        if answer < 0:
            return True
        gains = self._gains(left)
        rivals = np.array([c for c in range(known) if c != answer], np.int32)
        worst = np.where(gains >= 0.0, rivals[:, None], np.int32(answer))
        if len(rivals) and (self._judged(self.engine, left, worst)[0] != answer).any():
            return True
        if self.widened is None:
            return False
        gains[int(gains.argmax())] = 0.0  # somebody must name the new class
        worst = np.where(gains >= 0.0, np.int32(known), np.int32(answer))[None]
        return bool(self._judged(self.widened, left, worst)[0][0] != answer)


def add_class(model: Model, layout: Layout) -> Engine:
    """Return a copy of the model's engine, with this layout, that knows one more class named by a vote."""
    return model.visited(layout, [NEW_CLASS], [NEW_CLASS]).engine


def order_by_worth(weights: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Voters, the most weight for its cost first; one that costs nothing comes before all that cost something."""
    worth = np.where(costs > 0.0, np.abs(weights) / np.where(costs > 0.0, costs, 1.0), np.inf)
    return np.lexsort((np.arange(len(worth)), -np.abs(weights), -worth))


def order_to_settle(weights: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """`order_by_worth` for exact asking, where voters of positive weight, usually for the answer, settle it sooner."""
    return order_by_worth(weights * np.where(weights < 0.0, 1.0 - AGREEMENT, 1.0 + AGREEMENT), costs)


# -- what a model keeps to ask fewer voters -----------------------------------------------------------------------


class AskingModel(Protocol):
    """Voters, the model that fuses them, and what is kept to ask fewer of them."""

    @property
    def model(self) -> Model:
        """The model of all voters."""

    @property
    def asking(self) -> Asking:
        """State kept to ask fewer voters."""

    @property
    def voters(self) -> Sequence[Any]:
        """Names of the voters, one for each column of the model."""

    def worth(self) -> np.ndarray:
        """Weight of each voter, or its recent accuracy if the learner is not a single weight vector."""


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
        """Plain data, and blocks of arrays."""
        description: dict[str, Any] = {"of_few": self.of_few} if self.of_few else {}
        blocks = {"recent": self.recent.arrays}
        if self.choice is not None:
            description["choice"] = [
                self.choice.tolerance,
                None if self.choice.costs is None else list(self.choice.costs),
            ]
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
        """Choose the few by this from now on, or ask all voters; returns whether that is something new."""
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
        if not self.recent.enough:
            return None
        self._advised = self._up_to_date(jury, choice, self._advised)
        return self._advised

    def _up_to_date(self, jury: AskingModel, choice: Choice, few: Few | None) -> Few:
        """Return as many voters, in order of worth, as pay, and those that were recently more accurate."""
        model, given = jury.model, few
        prices = choice.prices(len(jury.voters))
        chosen_by = [choice.tolerance, prices.tolist()]
        if few is None or not few.fits(model) or few.choice != chosen_by or model.trials > (1.0 + STALE) * few.trials:
            order = order_by_worth(jury.worth(), prices).tolist()
            few = Few.fitted(order, prices, chosen_by, model, self.recent.rows(len(prices)))
        risen = self.risen(len(prices), few.members, few.risen)
        if risen != few.risen:
            few = deepcopy(few) if few is given else few
            few.rise(risen)
        return few

    def answering(self, jury: AskingModel, votes: np.ndarray, asked: np.ndarray) -> tuple[Model, Instances] | None:
        """Return the model of the few that answers one trial, and the trial as it takes it; None: the model of all."""
        few = None if self.choice is None or asked.all() else self.current(jury)
        if few is None or not few.asked(asked[None])[0]:
            return None
        return next(few.parts(np.zeros(1, np.int64), votes[None], asked[None]))[1:]

    def learn_few(self, jury: AskingModel, votes: np.ndarray, asked: np.ndarray, label: int) -> tuple[int, int] | None:
        """Learn one trial with the few, the label coded as in `Model.play`; return the classes predicted and learned.

        None, and nothing is learned, if the trial is for the model of all.
        """
        if self.choice is None or asked.all() or asked[len(jury.voters) :].any():
            return None
        self.few = few = self.current(jury)
        if few is None or not few.asked(asked[None])[0]:
            return None
        if label < 0:
            _, model, instances = next(few.parts(np.zeros(1, np.int64), votes[None], asked[None]))
            other = model.other_than(-2 - label, instances, self.recent.trials)
            if other is None:
                return None
            label = other
        self._current = None
        self.of_few += 1
        self.recent.note(votes, asked, label)
        return few.learn(votes, asked, label), label

    def learn_all(self, votes: np.ndarray, asked: np.ndarray, labels: np.ndarray) -> None:
        """Keep trials, by the model's numbers, that the model of all has learned."""
        self.changed()
        self.recent.add(votes, labels, asked)

    def changed(self) -> None:
        """Drop what is cached, since the model of all voters has learned."""
        self._current = None

    # -- those outside --------------------------------------------------------------------------------------------

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
        """Return voters recently more accurate than all of the chosen ones, by more than chance.

        Who has joined for that reason stays as long as it is not behind.
        """
        correct, asked = self.recent.counts(count)
        right = correct / np.maximum(asked, 1.0)
        best = right[list(chosen)].max(initial=0.0)
        sure = right > best + GAIN_ERRORS * np.sqrt(best * (1.0 - best) / np.maximum(asked, 1.0))
        stays = [voter for voter in joined if right[voter] >= best]
        found = np.flatnonzero(sure & (asked >= TRIED)).tolist()
        return [*stays, *(voter for voter in found if voter not in chosen and voter not in joined)]

    # -- panels ---------------------------------------------------------------------------------------------------

    def compared(self, jury: AskingModel, costs: np.ndarray) -> Callable[[], VoterPanels]:
        """Return a function that compares panels on the trials up to now, independent of later learning."""
        order, rows = order_by_worth(jury.worth(), costs), latest_rows(self.recent.rows(len(costs)))
        return partial(panel_of, Fitter.like(jury.model), rows, order, costs, list(jury.voters))


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

    def next(self) -> Any:
        """Return the name of the voter to ask next, or None when asking more is not worth it."""
        voter = self._next_exact() if self.tolerance == 0.0 else self._next_of_few()
        return None if voter is None else self.jury.voters[voter]

    def _in_order(self, order: np.ndarray) -> Iterator[int]:
        """Yield the voters that may be asked and have not been."""
        return (i for i in order.tolist() if not self.asked[i] and (self.allowed is None or self.allowed[i]))

    def _next_exact(self) -> int | None:
        return self.question().next(list(self._in_order(order_to_settle(self.jury.worth(), self.costs))))

    def _next_of_few(self) -> int | None:
        """Ask all, in order of worth, as long as there are too few trials to choose by; then as the few decide."""
        jury, asking, choice = self.jury, self.jury.asking, self.choice
        if choice is not None:
            few = asking.current(jury)
        else:
            few = asking.advised(jury, Choice(self.tolerance, tuple(self.costs.tolist())))
        asked = self.asked if self.allowed is None else self.asked | ~self.allowed  # the others count as abstaining
        order = order_by_worth(jury.worth(), self.costs)
        if few is None:
            return next(self._in_order(order), None)
        voter = few.next(self.codes, asked)
        if voter is None and asking.explores(self.explore):
            chosen = {*few.members, *few.risen}
            voter = asking.explored([i for i in range(len(asked)) if i not in chosen], asked)
        if voter is None and not self.asked.any():  # none of the few may be asked
            voter = next(self._in_order(order), None)
        return voter


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
        """Plain numbers, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"asked one by one, tolerance {self.tolerance:g}, after {self.first:,d} rows with all votes: "
            f"{self.calls:.2f} calls of {self.voters} (cost {self.cost:.4g} of {self.full_cost:.4g}), "
            f"accuracy {self.accuracy:.4f}; asking all {self.full_accuracy:.4f}"
        )


def simulate_asking(
    make: Callable[[], Any],
    table: Mapping[str, np.ndarray],
    labels: Sequence[Any] | np.ndarray,
    voters: Sequence[str],
    *,
    first: int,
    tolerance: float = 0.002,
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
    sides = [name for name in table if name not in voters]
    calls = right = right_of_all = 0
    spent = 0.0
    for t in range(first, len(labels)):
        heard: dict[str, Any] = {name: table[name][t] for name in sides}
        while (voter := frugal.ask(heard, costs=costs, tolerance=tolerance)) is not None:
            heard[voter] = table[voter][t]
            calls += 1
            spent += price[voter]
        said = {name: [vote] for name, vote in heard.items()}
        whole = {name: [column[t]] for name, column in table.items()}
        right += frugal.predict(said)[0] == labels[t]
        right_of_all += full.predict(whole)[0] == labels[t]
        frugal.partial_fit(said, [labels[t]])
        full.partial_fit(whole, [labels[t]])
    size = len(labels) - first
    return Simulation(
        size,
        first,
        len(voters),
        calls / size,
        spent / size,
        right / size,
        float(sum(price[name] for name in voters)),
        right_of_all / size,
        tolerance,
    )
