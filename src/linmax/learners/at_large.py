"""A sample of all trials, for predicting rows that do not follow a stream which has long runs of one label.

Where rows are sorted by class, the members that follow the last labels are right on the way, and wrong about any other
row. So when runs are long, rows that are only predicted are decided by weights of the members that fit the sample:
every s-th trial, s doubled whenever there are too many.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linmax.core.contract import KNOWN, Instances
from linmax.data.arrays import attributes_of, cut
from linmax.learners.first_trials import FirstTrials
from linmax.learners.member_fusion import MemberFusion
from linmax.learners.mixing import Mixture

__all__ = ["AtLarge"]

SAMPLE_ROWS = 256  # of the sample, at most
RUN = 50  # trials with the same label, on average, that are a long run
FEWEST_TRIALS = 200  # trials
PASSES = 4  # over the sample


class AtLarge:
    """State: the sample, every how many-th trial is taken, the trials, the runs of labels, and the last label."""

    def __init__(self) -> None:
        self.rows: list[tuple[Instances, np.ndarray]] = []
        self.step, self.trials, self.runs, self.last = 1, 0, 0, -1
        self.found: tuple[int, MemberFusion] | None = None  # the weights, and after how many trials

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All the state."""
        numbers = np.array([self.step, self.trials, self.runs, self.last], np.float64)
        held = self._together().arrays
        return {name: array for name, array in held.items() if name != "numbers"} | {
            "numbers": np.append(numbers, held["numbers"])
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over a state."""
        self.step, self.trials, self.runs, self.last = arrays["numbers"][:4].astype(int).tolist()
        held, self.found = FirstTrials(), None
        held.restore(dict(arrays) | {"numbers": arrays["numbers"][4:]})
        self.rows = [(cut(held.instances, t, t + 1), held.labels[t : t + 1]) for t in range(len(held.labels))]

    def _together(self) -> FirstTrials:
        held = FirstTrials()
        for instances, label in self.rows:
            held.keep(np.zeros(KNOWN + 1, np.int64), instances, label)
        return held

    def keep(self, instances: Instances, labels: np.ndarray, begin: int, end: int) -> None:
        """Meet these trials."""
        own = labels[begin:end]
        self.runs += int(own[0] != self.last) + int(np.count_nonzero(own[1:] != own[:-1]))
        self.last = int(own[-1])
        t = begin + -self.trials % self.step
        while t < end:
            self._add(attributes_of(instances, t), labels[t : t + 1].copy())
            t = begin + -(-(self.trials + t + 1 - begin) // self.step) * self.step - self.trials
        self.trials += end - begin

    def _add(self, instance: Instances, label: np.ndarray) -> None:
        """Take a trial into the sample, which leaves out every other one when there are too many."""
        self.rows.append((instance, label))
        if len(self.rows) > SAMPLE_ROWS:
            self.rows, self.step = self.rows[::2], 2 * self.step

    @property
    def due(self) -> bool:
        """Whether the next trial is one of the sample."""
        return self.trials % self.step == 0

    def keep_one(self, instance: Instances | None, label: int) -> None:
        """Meet one trial, whose attributes, in memory of their own, are needed if it is `due`."""
        if instance is not None and self.due:
            self._add(instance, np.array([label], np.int32))
        self.runs += label != self.last
        self.last = label
        self.trials += 1

    @property
    def long_runs(self) -> bool:
        """Whether labels come in long runs."""
        return self.trials >= FEWEST_TRIALS and self.runs > 1 and self.trials >= RUN * self.runs

    @property
    def sample(self) -> tuple[Instances, np.ndarray]:
        """The trials, and their labels."""
        held = self._together()
        return held.instances, held.labels

    def fit(self, votes: np.ndarray, labels: np.ndarray, shape: np.ndarray, k: int) -> MemberFusion:
        """Weights by which the members' scores for the sample are fused best."""
        fusion, order = MemberFusion(), np.random.default_rng(0)
        fusion.join(votes.shape[1])
        for _ in range(PASSES):
            rows = order.permutation(len(labels))
            shown = np.ascontiguousarray(votes[rows]), np.ascontiguousarray(labels[rows]), np.ones(len(rows))
            fusion.fuse(*shown, shape.copy(), True, k)
        self.found = self.trials, fusion
        return fusion

    def mix(self, mixture: Mixture) -> None:
        """Take trials of all parts."""
        firsts = FirstTrials()
        samples = [(part, *part.state.at_large.sample) for part in mixture.parts]
        firsts.take([(part, kept, labels, np.ones(len(labels))) for part, kept, labels in samples])
        share = max(1, -(-len(firsts.labels) // SAMPLE_ROWS))
        self.rows = [
            (cut(firsts.instances, t, t + 1), firsts.labels[t : t + 1]) for t in range(0, len(firsts.labels), share)
        ]
        for part, sign in mixture.counted:
            self.trials += sign * part.state.at_large.trials
            self.runs += sign * part.state.at_large.runs
        self.step = max(share * part.state.at_large.step for part in mixture.parts)
