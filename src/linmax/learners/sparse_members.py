"""PA-I, AROW, naive Bayes and log odds over sparse attributes: a group of members of the pool for attributes.

Naive Bayes (`sparse_bayes`) scales attributes and weights them by what its counts tell, for itself and for the linear
members (`sparse_linear`). It sees nothing of theirs: `lead` may be ahead of `follow`, in another thread.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linmax.core.contract import Instances
from linmax.core.linear_max import longest_row
from linmax.learners.members import Group, Task
from linmax.learners.mixing import Mixture, Placement, mix_by_precision, spot_of
from linmax.learners.sparse_bayes import SMOOTHING, BayesRoom, log_odds, play_bayes
from linmax.learners.sparse_linear import LINEAR, MEAN, PA, VARIANCE, LinearRoom, play_linear
from linmax.util.names import taken

__all__ = ["SparseMembers"]

BAYES = 2  # the first member that counts
ROOM = 16  # one in so many of the attributes met is room for those to come


class SparseMembers(Group):
    """State: cells of the linear members, counts of naive Bayes, how many instances had each attribute, the classes'
    totals and, last, how many attributes were met; and the trials.
    """

    members = ("PA-I", "AROW", "naive Bayes", "log odds")
    sparse = True
    names = ("cells", "counts", "frequency", "totals", "trials")

    def __init__(self) -> None:
        self.cells = np.zeros((0, LINEAR, 0), np.float32)
        self.counts = np.zeros((0, 0), np.float32)
        self.frequency, self.totals, self.trials = np.zeros(0), np.zeros(1), np.zeros(1)
        self.used = 0  # attributes and the constant: rows of the arrays, which have room for more

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        found = {name: getattr(self, name) for name in self.names}
        rows = {name: found[name][: self.used] for name in ("cells", "counts")}
        return found | rows | {"frequency": self.frequency[: max(0, self.used - 1)]}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        for name in self.names:
            setattr(self, name, taken(arrays, name))
        self.used = len(self.cells)

    def fit(self, columns: int, width: int) -> None:
        self._make_room(max(self.used, columns + 1), max(width, self.cells.shape[2]))

    def mark(self) -> int:
        return self.used

    def rewind(self, mark: int) -> None:
        self.used = mark

    def _make_room(self, need: int, width: int) -> None:
        rows, _, old = self.cells.shape
        if need > rows and width == old and self._lengthen(need + need // ROOM + ROOM):
            rows = len(self.cells)
        if need > rows or width > old:
            rows = need + need // ROOM + ROOM if need > rows else rows
            cells, counts = np.zeros((rows, LINEAR, width), np.float32), np.zeros((rows, width), np.float32)
            frequency, totals = np.zeros(rows - 1), np.zeros(width + 1)
            cells[: self.used, VARIANCE] = 1.0
            cells[: self.used, :, :old], counts[: self.used, :old] = self.cells[: self.used], self.counts[: self.used]
            frequency[: max(0, self.used - 1)] = self.frequency[: max(0, self.used - 1)]
            totals[: len(self.totals) - 1], totals[-1] = self.totals[:-1], self.totals[-1]
            self.cells, self.counts, self.frequency, self.totals = cells, counts, frequency, totals
        self.cells[self.used : need, VARIANCE] = 1.0
        self.used = need

    def _lengthen(self, rows: int) -> bool:
        """Make the arrays longer where they are, which copies no pages of memory; whether nobody else looks at them."""
        width = self.cells.shape[2]
        try:
            self.cells.resize((rows, LINEAR, width))
            self.counts.resize((rows, width))
            self.frequency.resize(rows - 1)
        except ValueError:
            return False
        return True

    def tables(self, k: int) -> dict[str, np.ndarray]:
        """The weights of each member for x, (the constant and the attributes, classes).

        Those of PA-I and of log odds are times idf (KL + .1), those of naive Bayes times idf. Naive Bayes is linear in
        x >= 0; an attribute that it has not met has weight 0.
        """
        cells, counts = self.cells[: self.used, :, :k].astype(np.float64), self.counts[: self.used].astype(np.float64)
        rarity = np.log((self.trials[0] + 2.0) / (self.frequency[: max(0, self.used - 1)] + 1.0))
        rarity = np.concatenate([np.ones(min(1, self.used)), rarity])
        sums = counts.sum(axis=1)
        rest = self.totals[:-1].sum() - self.totals[:k] + SMOOTHING * self.totals[-1]
        bayes = np.log(np.maximum(rest, SMOOTHING)) - np.log(sums[:, None] - counts[:, :k] + SMOOTHING)
        bayes[sums == 0.0] = 0.0
        told, odds = log_odds(counts, self.totals[:-1])
        telling = (rarity * told)[:, None]
        return {
            "PA-I": cells[:, PA] * telling,
            "AROW": cells[:, MEAN],
            "naive Bayes": bayes * rarity[:, None],
            "log odds": odds[:, :k] * telling,
        }

    def mix(self, mixture: Mixture, width: int) -> None:
        """Become the mixture: PA-I by shares, AROW by precision; what was counted adds up."""
        spots = {id(part.state): _spot(part) for part, _ in mixture.counted}
        self._make_room(max(int(rows.max(initial=0)) + 1 for rows, _ in spots.values()), width)
        shape = (self.used, width)
        pa, means = np.zeros(shape), []
        for part, share in mixture.weighed:
            rows, columns = spots[id(part.state)]
            spot, cells = spot_of(rows, columns), part.state.cells[: rows.size, :, : columns.size]
            pa[spot] += share * cells[:, PA]
            means.append((spot, cells[:, MEAN], cells[:, VARIANCE], share))
        cells = self.cells[: self.used]
        cells[:, PA] = pa
        cells[:, MEAN], cells[:, VARIANCE] = mix_by_precision(shape, means)
        counts = np.zeros(shape)
        for part, sign in mixture.counted:
            rows, columns = spots[id(part.state)]
            counts[spot_of(rows, columns)] += sign * part.state.counts[: rows.size, : columns.size].astype(np.float64)
            self.frequency[rows[1:] - 1] += sign * part.state.frequency[: max(0, rows.size - 1)]
            self.totals[columns] += sign * part.state.totals[: columns.size]
            self.trials += sign * part.state.trials
        self.counts[: self.used] = np.maximum(counts, 0.0)
        self.totals[-1] = np.count_nonzero(counts.sum(axis=1) > 0.0)

    def lead(self, task: Task, votes: np.ndarray, place: int) -> np.ndarray:
        """Naive Bayes and log odds; returns x of all trials."""
        known, instances, labels, begin, end, learn = task[:6]
        width, longest = self.counts.shape[1], _longest(instances, begin, end)
        many = int(instances.indptr[end] - instances.indptr[begin]) + end - begin
        room = BayesRoom(
            np.empty((2, many), np.float32),
            np.empty(longest, np.float32),
            np.empty(longest, np.float32),
            np.zeros(width, np.float32),
            np.zeros(longest, np.int64),
            np.empty(longest, np.float32),
            np.zeros((2, width), np.float32),
            np.zeros(width, np.float32),
            np.zeros(width, np.float32),
        )
        play_bayes(
            instances, labels, task.weights, begin, end, known, self.counts, self.totals, self.frequency, self.trials,
            room, learn, votes, place + BAYES,
        )  # fmt: skip
        return room.scaled

    def follow(self, task: Task, led: np.ndarray, votes: np.ndarray, place: int) -> None:
        """The linear members, from what `lead` returned."""
        known, instances, labels, begin, end, learn = task[:6]
        width, longest = self.cells.shape[2], _longest(instances, begin, end)
        room = LinearRoom(
            np.empty((LINEAR, longest), np.float32),
            np.zeros(longest, np.int64),
            np.zeros((LINEAR, width), np.float32),
            np.zeros((2, width), np.float32),
        )
        play_linear(
            instances, labels, task.weights, begin, end, known, self.cells, led, room, learn, votes, place,
        )  # fmt: skip


def _longest(instances: Instances, begin: int, end: int) -> int:
    """Most attributes of a trial, the constant among them."""
    return int(longest_row(instances.indptr[begin : end + 1])) + 1


def _spot(part: Placement) -> tuple[np.ndarray, np.ndarray]:
    """Where the rows and classes of a state are among those of all together."""
    rows = np.concatenate([np.zeros(min(1, part.state.used), np.int64), 1 + part.sparse[: max(0, part.state.used - 1)]])
    return rows, part.classes[: part.state.cells.shape[2]]
