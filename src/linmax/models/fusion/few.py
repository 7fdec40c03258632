"""Few voters: a model of those who are asked, fitted to their votes alone.

The weights of a voter among all and among a few are not the same: who speaks for many others weighs more when these are
silent. And trials in which few were asked say little about all, since asking stopped where these agreed. So where a
fusion asks few, a model of its own learns from the trials in which all voters spoke, seen through the votes of the few.
Of the trials with few votes it learns from those, drawn by lot, at which none of the few was left out, and from those
with a vote of somebody who joined since; the model of all voters learns from none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linmax.data.arrays import no_instances
from linmax.data.experts import Experts, experts
from linmax.engine.engine import Settings
from linmax.models.asking import order_by_worth
from linmax.models.experts_model import ExpertsModel
from linmax.util.draws import drawn

__all__ = ["Few"]

FIRST_TRIALS = 1000  # trials that it begins with
ASKING_STREAM = 3  # of the draws


@dataclass
class Few:
    """The few, by their places among the voters, and their model, whose classes are those of the model of all."""

    members: list[int]
    risen: int  # the last so many of them joined since they proved better of late
    choice: list[Any]  # what they were chosen by: tolerance, costs, and how much is explored
    trials: int  # that the model of all had learned from
    model: ExpertsModel

    @classmethod
    def fitted(
        cls,
        members: list[int],
        risen: list[int],
        choice: list[Any],
        whole: ExpertsModel,
        rows: tuple[np.ndarray, np.ndarray],
    ) -> Few:
        """Fit a model like the one of all voters to the votes of a few in these trials, as if others were silent."""
        votes, labels = (block[-FIRST_TRIALS:] for block in rows)
        names, settings = list(whole.classes), whole.engine.settings
        own = votes[:, [*members, *risen]]
        own[:, len(members) :] = -1  # what they said before they got better says nothing
        instances = _experts(own, names, bool(whole.layout.constant))
        kept = Settings(settings.largest, settings.update_on_tie)
        model = ExpertsModel(whole.learner, instances.layout, names, kept).follow()
        model.run(instances, np.array([names[place] for place in labels.tolist()], dtype=object))
        return cls([*members, *risen], len(risen), choice, whole.trials, model)

    def fits(self, whole: ExpertsModel) -> bool:
        """Whether the classes are still the same."""
        return self.model.classes == whole.classes

    def asked(self, spoke: np.ndarray) -> np.ndarray:
        """Which trials, given who spoke, were asked of the few: at most one voter besides, of two or more."""
        others = np.delete(spoke, self.members, axis=1)
        return np.asarray(spoke[:, self.members].any(axis=1) & (others.sum(axis=1) <= 1) & (others.shape[1] > 1))

    def order(self, weights: np.ndarray, costs: np.ndarray) -> list[int]:
        """Members by place among them, in the order in which they are asked: those that have risen, then by worth."""
        first = len(self.members) - self.risen
        worth = order_by_worth(weights, costs[self.members]).tolist()
        return [*(at for at in worth if at >= first), *(at for at in worth if at < first)]

    @property
    def weights(self) -> np.ndarray:
        """Of the members; all the same if the learner is not a single weight vector."""
        try:
            return self.model.weights.arrays.voters
        except ValueError:
            return np.ones(len(self.members))

    def judge(self, votes: np.ndarray) -> np.ndarray:
        """The classes predicted, as places, for rows of votes of the members."""
        layout = self.model.layout
        given = no_instances(len(votes))._replace(
            votes=np.ascontiguousarray(votes, np.int32), signs=np.ones(layout.voters), constant=layout.constant
        )
        return self.model.engine.judge(given, len(votes))[0]

    def instances(self, votes: np.ndarray) -> Experts:
        """Rows of votes of all voters, as the model takes them."""
        return _experts(votes[:, self.members], list(self.model.classes), bool(self.model.layout.constant))

    def explores(self, number: int) -> bool:
        """Whether all of them are asked at this trial, by lot: half of what is explored."""
        return drawn(ASKING_STREAM, number) < 0.5 * float(self.choice[-1])

    def learn(self, votes: np.ndarray, label: int, number: int) -> bool:
        """Learn from one trial, unless asking stopped early; returns whether the answer was right."""
        own = np.ascontiguousarray(votes[None, self.members], np.int32)
        right = bool(self.judge(own)[0] == label)
        spoke = own[0] >= 0
        if (spoke.all() and self.explores(number)) or spoke[len(self.members) - self.risen :].any():
            layout = self.model.layout
            given = no_instances(1)._replace(votes=own, signs=np.ones(layout.voters), constant=layout.constant)
            self.model.play(given, np.array([label], np.int32))
        return right

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Plain data and arrays."""
        header, arrays = self.model.state()
        told = {"members": self.members, "risen": self.risen, "choice": self.choice, "trials": self.trials}
        return {**told, "model": header}, arrays

    @classmethod
    def restored(cls, told: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Few:
        """What `state` gave."""
        model = ExpertsModel.from_state(told["model"], arrays)
        return cls(list(told["members"]), told["risen"], list(told["choice"]), told["trials"], model)


def _experts(votes: np.ndarray, names: Sequence[Any], thresholds: bool) -> Experts:
    given = experts(votes.astype(np.int32), classes=range(len(names)), abstain=-1, thresholds=thresholds)
    return replace(given, names=tuple(names))
