"""A sample of all trials, for predicting rows that do not follow a stream which has long runs of one label.

Where rows are sorted by class, the members that follow the last labels are right on the way, and wrong about any other
row. So when runs are long, rows that are only predicted are decided by weights of the members that fit the sample:
every s-th trial, s doubled whenever there are too many. Numbers whose classes came once each ask for more, since bins
and margins that were learned from one class at a time say nothing: they are predicted by a pool that learned a larger
sample in a random order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linmax.core.contract import KNOWN, Instances
from linmax.data.arrays import attributes_of, cut
from linmax.learners.attribute_kinds import DENSE
from linmax.learners.first_trials import FirstTrials
from linmax.learners.member_fusion import MemberFusion
from linmax.learners.mixing import Mixture

if TYPE_CHECKING:
    from linmax.learners.running_pool import RunningPool

__all__ = ["AtLarge", "Relearned", "fusion_at_large", "pool_at_large"]

SAMPLE_ROWS = 256  # of the sample, at most
SORTED_ROWS, SORTED_NUMBERS = 8192, 1 << 19  # of the sample where runs are long
LONG_RUN = 50  # trials with the same label, on average, that are a long run
FEWEST_TRIALS = 200
SAMPLE_PASSES = 4  # over the sample


class Relearned(NamedTuple):
    """A pool that learned the sample in a random order."""

    pool: RunningPool
    scores: np.ndarray  # of its trials, before their labels were seen
    labels: np.ndarray


class AtLarge:
    """State: the sample, every how many-th trial is taken, the trials, the runs of labels, and the last label."""

    def __init__(self) -> None:
        self.rows: list[tuple[Instances, np.ndarray]] = []
        self.numbers = 0  # in the sample
        self.step, self.trials, self.runs, self.last = 1, 0, 0, -1
        self.found: tuple[int, MemberFusion] | None = None  # the weights, and after how many trials
        self.learned: tuple[tuple[int, ...], Relearned] | None = None  # the sample, after what that depends on

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All the state."""
        numbers = np.array([self.step, self.trials, self.runs, self.last], np.float64)
        held = self.together().arrays
        return {name: array for name, array in held.items() if name != "numbers"} | {
            "numbers": np.append(numbers, held["numbers"])
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over a state."""
        self.step, self.trials, self.runs, self.last = arrays["numbers"][:4].astype(int).tolist()
        held, self.found, self.learned = FirstTrials(), None, None
        held.restore(dict(arrays) | {"numbers": arrays["numbers"][4:]})
        self._take(held, 1)

    def _take(self, held: FirstTrials, share: int) -> None:
        """Let the sample be one in ``share`` of these trials."""
        places = range(0, len(held.labels), share)
        self.rows = [(cut(held.instances, t, t + 1), held.labels[t : t + 1]) for t in places]
        self.numbers = sum(_size(instances) for instances, _ in self.rows)

    def together(self, places: np.ndarray | None = None) -> FirstTrials:
        """The sample, or the trials at these places in it."""
        held = FirstTrials()
        for instances, label in self.rows if places is None else [self.rows[place] for place in places.tolist()]:
            held.add(instances, label, np.ones(1))
        return held

    def keep(self, instances: Instances, labels: np.ndarray, begin: int, end: int) -> None:
        """Meet these trials."""
        own = labels[begin:end]
        before = self.runs + np.append(0, np.cumsum(np.append(own[0] != self.last, own[1:] != own[:-1])))
        self.last = int(own[-1])
        t = begin + -self.trials % self.step
        while t < end:
            self._add(attributes_of(instances, t), labels[t : t + 1].copy(), t - begin, int(before[t - begin]))
            t = begin + -(-(self.trials + t + 1 - begin) // self.step) * self.step - self.trials
        self.trials, self.runs = self.trials + end - begin, int(before[-1])

    def _add(self, instance: Instances, label: np.ndarray, later: int, runs: int) -> None:
        """Take a trial into the sample, which leaves out every other one when there are too many.

        It comes so many trials ``later``, after so many runs of labels in all.
        """
        self.rows.append((instance, label))
        self.numbers += _size(instance)
        most = SORTED_ROWS if self.trials + later >= LONG_RUN * runs else SAMPLE_ROWS
        if len(self.rows) > most or (self.numbers > SORTED_NUMBERS and len(self.rows) > SAMPLE_ROWS):
            self.rows, self.step = self.rows[::2], 2 * self.step
            self.numbers = sum(_size(instances) for instances, _ in self.rows)

    @property
    def due(self) -> bool:
        """Whether the next trial is one of the sample."""
        return self.trials % self.step == 0

    def keep_one(self, instance: Instances | None, label: int) -> None:
        """Meet one trial, whose attributes, in memory of their own, are needed if it is `due`."""
        if instance is not None and self.due:
            self._add(instance, np.array([label], np.int32), 0, self.runs)
        self.runs += label != self.last
        self.last = label
        self.trials += 1

    @property
    def long_runs(self) -> bool:
        """Whether labels come in long runs."""
        return self.trials >= FEWEST_TRIALS and self.runs > 1 and self.trials >= LONG_RUN * self.runs

    @property
    def settled(self) -> int:
        """How many trials of the sample are learned from: all until one that makes those of a class 1, 2, 4, 8, ...

        So they need not be learned again after each trial. At most every eighth is left for the next time.
        """
        labels, size = np.array([int(label[0]) for _, label in self.rows]), len(self.rows)
        spare = max(0, size.bit_length() - 4)
        found = (size >> spare) << spare
        for label in np.unique(labels):
            own = np.flatnonzero(labels == label)
            found = max(found, 1 + int(own[(1 << (own.size.bit_length() - 1)) - 1]))
        return found

    def fit(self, votes: np.ndarray, labels: np.ndarray, shape: np.ndarray, k: int) -> MemberFusion:
        """Weights by which the members' scores for the sample are fused best."""
        fusion, order = MemberFusion(), np.random.default_rng(0)
        fusion.join(votes.shape[1])
        for _ in range(SAMPLE_PASSES):
            rows = order.permutation(len(labels))
            shown = np.ascontiguousarray(votes[rows]), np.ascontiguousarray(labels[rows]), np.ones(len(rows))
            fusion.fuse(*shown, shape.copy(), True, k)
        self.found = self.trials, fusion
        return fusion

    def mix(self, mixture: Mixture) -> None:
        """Take trials of all parts."""
        samples = [(part, part.state.at_large.together()) for part in mixture.parts]
        firsts = FirstTrials()
        firsts.take([(part, held.instances, held.labels, np.ones(held.size)) for part, held in samples])
        most = SORTED_ROWS if all(part.state.at_large.long_runs for part in mixture.parts) else SAMPLE_ROWS
        numbers = sum(part.state.at_large.numbers for part in mixture.parts)
        share = max(1, -(-len(firsts.labels) // most), -(-numbers // SORTED_NUMBERS))
        self._take(firsts, share)
        for part, sign in mixture.counted:
            self.trials += sign * part.state.at_large.trials
            self.runs += sign * part.state.at_large.runs
        self.step = max(share * part.state.at_large.step for part in mixture.parts)


def _size(instances: Instances) -> int:
    return int(instances.dense.size + instances.values.size)


def pool_at_large(pool: RunningPool, shape: np.ndarray, k: int) -> Relearned | None:
    """A pool that learned the sample in a random order, where numbers are sorted by class; else None."""
    large, known = pool.at_large, int(shape[KNOWN])
    if pool.kinds.kind != DENSE or not large.long_runs or large.runs >= 2 * known:
        return None
    size = large.settled
    depends = size, large.step, known, k
    if large.learned is None or large.learned[0] != depends:
        held = large.together(np.random.default_rng(0).permutation(size))
        fresh = type(pool)(DENSE, pool.registry)
        _, scores = fresh.play(shape.copy(), held.instances, held.labels, 0, size, k)
        large.learned = depends, Relearned(fresh, scores, held.labels)
    return large.learned[1]


def fusion_at_large(pool: RunningPool, shape: np.ndarray, k: int) -> MemberFusion:
    """How members are fused for rows that do not follow the stream, where it has long runs of one label."""
    large = pool.at_large
    if large.found is not None and large.found[0] == large.trials:
        return large.found[1]
    held = large.together(np.arange(0, len(large.rows), -(-len(large.rows) // SAMPLE_ROWS)))
    return large.fit(pool.scores_of(shape, held.instances, held.size, k)[1], held.labels, shape, k)
