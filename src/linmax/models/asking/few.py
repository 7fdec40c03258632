"""Few voters: a chain of models, each of the first voters to be asked, fitted to their votes alone.

The weights of a voter among all and among a few are not the same: who speaks for many others weighs more when these are
silent. So where few are asked, there is a model of the first voter, of the first two, and so on. They begin with
the trials in which all voters spoke. A trial in which few were asked is learned by the models whose voters were all
asked: each then learns from just the trials that come as far, and these it is asked about. The model of all voters
learns from none of them, since asking stopped where the first voters agreed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linmax.core.contract import Instances
from linmax.data.arrays import no_instances
from linmax.data.experts import Experts, experts
from linmax.engine.engine import Settings
from linmax.engine.record import latest
from linmax.models.asking.panel import ALL_SIZES_TRIED, latest_rows, numbers_tried
from linmax.models.asking.stopping import stopping_leads
from linmax.models.experts_model import ExpertsModel
from linmax.models.model import Model

__all__ = ["Few"]

LEAST_SHARE = 1e-12  # least probability of which a lead is taken


@dataclass
class Few:
    """The few, by their places among the voters, and their models, whose classes are those of the model of all."""

    members: list[int]  # in the order in which they are asked
    sizes: list[int]  # after so many of them asking may stop
    leads: np.ndarray  # of the best class, at which it does
    models: list[ExpertsModel]  # of so many, and of all that joined
    joined: list[int]  # further voters, that proved better of late at some time
    risen: list[int]  # those of them that do now: they are asked first
    choice: list[Any]  # what the members were chosen by: tolerance and costs
    trials: int  # that the model of all had learned from

    @classmethod
    def fitted(
        cls,
        order: Sequence[int],
        costs: np.ndarray,
        choice: list[Any],
        whole: Model,
        rows: tuple[np.ndarray, np.ndarray],
    ) -> Few:
        """Fit models like the one of all voters to these trials, seen through the votes of the first voters alone."""
        votes, labels = latest_rows(rows)
        votes = np.pad(votes, ((0, 0), (0, whole.layout.voters - votes.shape[1])), constant_values=-1)
        given = np.array([whole.classes[place] for place in labels.tolist()], dtype=object)
        tolerance, members = float(choice[0]), list(order)
        sizes, of_all = numbers_tried(len(members)), _fitted(whole, votes, given)[1]
        models: list[ExpertsModel] = []
        leads, losses = np.zeros((len(of_all), len(sizes))), np.zeros((len(of_all), len(sizes)))
        late = slice(len(of_all) // 5, None)  # when they have learned something
        for step, size in enumerate(sizes):
            model, shares = _fitted(whole, votes[:, members[:size]], given)
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
        """Whether the classes are still the same."""
        return self.models[0].classes == whole.classes

    def rise(self, voters: list[int]) -> None:
        """Ask these first from now on; whoever is new to the models begins there as one never heard."""
        self.risen = voters
        new = [voter for voter in voters if voter not in self.joined]
        if new:
            self.joined += new
            for model in self.models:
                model.grow(replace(model.layout, voters=model.layout.voters + len(new)))

    def asked(self, asked: np.ndarray) -> np.ndarray:
        """Which trials, given who was asked, are for the few: at most one voter besides, of two or more."""
        own = [*self.members, *self.joined]
        others = np.delete(asked, own, axis=1)
        return np.asarray(asked[:, own].any(axis=1) & (others.sum(axis=1) <= 1) & (others.shape[1] > 1))

    def next(self, votes: np.ndarray, asked: np.ndarray) -> int | None:
        """Whom of them to ask next, or None when the answer leads enough."""
        for voter in self.risen:
            if not asked[voter]:
                return voter
        heard = asked[self.members]
        if heard.all():
            return None
        size = int(np.argmin(heard))
        if size in self.sizes:
            step = self.sizes.index(size)
            if judged(self.models[step], votes[None, self.columns(step)])[1][0] >= self.leads[step]:
                return None
        return self.members[size]

    def columns(self, step: int) -> list[int]:
        """The voters of a model."""
        return [*self.members[: self.sizes[step]], *self.joined]

    def steps(self, asked: np.ndarray) -> np.ndarray:
        """Which model each trial is for: that of the fewest voters with all that were asked."""
        own = asked[:, self.members]
        last = np.where(own.any(axis=1), own.shape[1] - own[:, ::-1].argmax(axis=1), 1)
        return np.array([bisect_left(self.sizes, size) for size in last.tolist()], np.int64)

    def instances(self, votes: np.ndarray, step: int) -> Experts:
        """Rows of votes of all voters, as one of the models takes them."""
        model = self.models[step]
        return _experts(votes[:, self.columns(step)], model.classes, bool(model.layout.constant))

    def instance(self, votes: np.ndarray, step: int) -> Instances:
        """The same of one row."""
        return _instances(self.models[step], votes[None, self.columns(step)])

    def learn(self, votes: np.ndarray, asked: np.ndarray, label: int) -> int:
        """Learn from one trial, as far as its voters were asked; returns the class that was predicted, as a place."""
        last = int(self.steps(asked[None])[0])
        for step, model in enumerate(self.models[: last + 1]):
            predicted = int(model.play(self.instance(votes, step), np.array([label], np.int32)).predictions[0])
        return predicted

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Plain data and arrays."""
        told: dict[str, Any] = {
            name: getattr(self, name) for name in ("members", "sizes", "joined", "risen", "choice", "trials")
        }
        arrays, headers = {"leads": self.leads}, []
        for step, model in enumerate(self.models):
            header, own = model.state()
            headers.append(header)
            arrays |= {f"{step}.{name}": array for name, array in own.items()}
        return {**told, "models": headers}, arrays

    @classmethod
    def restored(cls, told: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Few:
        """What `state` gave."""
        blocks: list[dict[str, np.ndarray]] = [{} for _ in told["models"]]
        for name, array in arrays.items():
            step, _, rest = name.partition(".")
            if rest:
                blocks[int(step)][rest] = array
        models = [ExpertsModel.from_state(header, own) for header, own in zip(told["models"], blocks, strict=True)]
        return cls(
            members=list(told["members"]),
            sizes=list(told["sizes"]),
            leads=arrays["leads"].copy(),
            models=models,
            joined=list(told["joined"]),
            risen=list(told["risen"]),
            choice=list(told["choice"]),
            trials=told["trials"],
        )


def judged(model: Model, votes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes predicted for rows of votes, as places, and their leads."""
    answers, table = model.engine.judge(_instances(model, votes), len(votes))
    return answers, _leads(model.own_probabilities(table))


def _leads(shares: np.ndarray) -> np.ndarray:
    """How far the best class leads, given the probabilities of all: by the difference of their logarithms."""
    if shares.shape[1] < 2:
        return np.full(len(shares), np.inf)
    best = np.partition(shares, -2, axis=1)[:, -2:]
    return np.asarray(np.log(np.maximum(best[:, 1], LEAST_SHARE)) - np.log(np.maximum(best[:, 0], LEAST_SHARE)))


def _given_up(of_all: np.ndarray, of_few: np.ndarray) -> np.ndarray:
    """The probability of the answer of all voters, as all see it, less that of the answer of a few."""
    trials = np.arange(len(of_all))
    return np.asarray(of_all.max(axis=1) - of_all[trials, of_few.argmax(axis=1)])


def _fitted(whole: Model, votes: np.ndarray, labels: np.ndarray) -> tuple[ExpertsModel, np.ndarray]:
    """A model like the whole one after these trials, and the probabilities that it gave before it saw each label.

    By what was learned from a trial itself, a few would look better at it than they are at others. Where there are very
    many classes the probabilities are those of the latest trials.
    """
    names, settings = list(whole.classes), whole.engine.settings
    instances = _experts(votes, names, bool(whole.layout.constant))
    kept = Settings(settings.largest, settings.update_on_tie)
    model = ExpertsModel(whole.learner, instances.layout, names, kept).follow()
    model.run(instances, labels)
    return model, model.own_probabilities(latest(model.record)[0])


def _instances(model: Model, votes: np.ndarray) -> Instances:
    layout = model.layout
    return no_instances(len(votes))._replace(
        votes=np.ascontiguousarray(votes, np.int32), signs=np.ones(layout.voters), constant=layout.constant
    )


def _experts(votes: np.ndarray, names: Sequence[Any], thresholds: bool) -> Experts:
    given = experts(votes.astype(np.int32), classes=range(len(names)), abstain=-1, thresholds=thresholds)
    return replace(given, names=tuple(names))
