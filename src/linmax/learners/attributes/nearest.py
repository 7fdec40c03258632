"""A member of the pool for attributes: the nearest among rows that are remembered.

With D_i the distance of row i, the sum of squared differences over dense attributes, each divided by its variance, it
votes for its label by ((D_1 + e) / (D_i + e))^8 if that is more than 4^-8, D_1 the least distance. A row is remembered
when its label has less than `SURE_SHARE` of what is said; of rows with a weight below 1, only that share of them. When
there is no room, the oldest row is forgotten. A row that denies a class votes against it by as much, and is remembered
when no other class has `SURE_SHARE`: where nothing is known yet, what a row is not is most informative.

Aha, Kibler and Albert (1991), Instance-based learning algorithms: IB2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numba import types

from linmax.data.scaling import STEADY, pooled_moments
from linmax.jit.compiling import kernel
from linmax.learners.attributes.group import (
    DENIED,
    ROWS_PLAYED,
    Group,
    best_rival,
    moments_of,
    renamed,
)
from linmax.learners.base import Field, Mixture, Placement, struct_of

__all__ = ["NearestRows"]


MOST_NUMBERS = 1 << 16  # to be compared at a trial
MOST, FEWEST = 4096, 128  # rows remembered
SURE_SHARE = 0.9
GOLDEN = 0.6180339887498949  # multiples of it, less their whole part, are spread evenly
NEARNESS = 1e-3  # e, for each attribute
PARTIALS = 8  # sums and least distances that are kept side by side
USED, NEXT = range(2)


@kernel()
def measure(m: Any, row: np.ndarray, used: int, learn: bool) -> np.float32:
    """Write distances to the rows remembered, return the least of them; the variances learn from this row first.

    Four attributes at a time, so that distances are fetched and stored less often.
    """
    stats, memory, distances, values, factors = m.stats, m.memory, m.distances, m.values, m.factors
    for f in range(row.size):
        count, delta = stats[f, 0] + 1.0, row[f] - stats[f, 1]
        mean = stats[f, 1] + delta / count
        squares = stats[f, 2] + delta * (row[f] - mean)
        if learn:
            stats[f, 0], stats[f, 1], stats[f, 2] = count, mean, squares
        values[f] = row[f] - stats[f, 3]
        factors[f] = count / squares if math.sqrt(squares / count) > STEADY * abs(mean) else 0.0
    for i in range(used):
        distances[i] = 0.0
    fours = row.size - row.size % 4
    for f in range(0, fours, 4):
        first, second, third, fourth = memory[f], memory[f + 1], memory[f + 2], memory[f + 3]
        v, w, x, y = values[f], values[f + 1], values[f + 2], values[f + 3]
        a, b, c, d = factors[f], factors[f + 1], factors[f + 2], factors[f + 3]
        for i in range(used):
            p, q, r, s = first[i] - v, second[i] - w, third[i] - x, fourth[i] - y
            distances[i] += p * p * a + q * q * b + r * r * c + s * s * d
    for f in range(fours, row.size):
        first, v, a = memory[f], values[f], factors[f]
        for i in range(used):
            p = first[i] - v
            distances[i] += p * p * a
    return least_of(distances, used, m.lanes[0])


@kernel()
def least_of(distances: np.ndarray, used: int, lanes: np.ndarray) -> np.float32:
    """Return the least distance; each lane has the least of every eighth, so that eight are compared at once."""
    whole = used - used % lanes.size
    for j in range(lanes.size):
        lanes[j] = np.inf
    for i in range(0, whole, PARTIALS):
        for j in range(PARTIALS):
            distance = distances[i + j]
            lanes[j] = distance if distance < lanes[j] else lanes[j]
    least = lanes[0]
    for j in range(1, lanes.size):
        least = min(least, lanes[j])
    for i in range(whole, used):
        least = min(least, distances[i])
    return least


@kernel()
def vote_for(m: Any, used: int, least: np.float32, near: float) -> None:
    """Write into ``scores`` how much the rows vote for each class, or against it, as shares; distances are replaced.

    Sums are kept in lanes, which do not wait for each other.
    """
    distances, classes, scores, sums, totals = m.distances, m.classes, m.scores, m.sums, m.lanes[0]
    best, close = least + np.float32(near), np.float32(near)
    limit = np.float32(4.0) * best
    for i in range(used):
        part = best / (distances[i] + close)
        part *= part
        part *= part
        part *= part
        distances[i] = part if distances[i] < limit else np.float32(0.0)
    for j in range(PARTIALS):
        totals[j] = 0.0
        for c in range(scores.size):
            sums[j, c] = 0.0
    for i in range(used):
        part, label, j = distances[i], classes[i], i % PARTIALS
        totals[j] += part
        if label >= 0:
            sums[j, label] += part
        else:
            sums[j, DENIED - label] -= part
    total = np.float32(0.0)
    for j in range(PARTIALS):
        total += totals[j]
    for c in range(scores.size):
        scores[c] = 0.0
        if total > 0.0:
            for j in range(PARTIALS):
                scores[c] += sums[j, c]
            scores[c] /= total


FIELDS = {
    "stats": Field(("column", 4), merge=""),  # count, mean and squares of each attribute, and what is taken off its
    # values before they are stored in single precision
    "memory": Field(("column", "remembered"), merge="", dtype=np.float32),
    "classes": Field(("remembered",), merge="", dtype=np.int32),
    "places": Field((2,), merge="", dtype=np.int64),  # how many rows there are, and the place of the next
    "distances": Field(("remembered",), merge="", dtype=np.float32, saved=False),
    "values": Field(("column",), merge="", dtype=np.float32, saved=False),
    "factors": Field(("column",), merge="", dtype=np.float32, saved=False),
    "lanes": Field((1, PARTIALS), merge="", dtype=np.float32, saved=False),
    "sums": Field((PARTIALS, "class"), merge="", dtype=np.float32, saved=False),
    "scores": Field(("class",), merge="", dtype=np.float32, saved=False),
}


@kernel(types.void(struct_of(FIELDS).numba_type, *ROWS_PLAYED))
def play_nearest(
    m: Any,
    rows: np.ndarray,
    met: np.ndarray,
    constant: float,
    counts: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    learn: bool,
    votes: np.ndarray,
    member: int,
) -> None:
    """Score all rows, and learn; ``counts`` are the known classes."""
    stats, memory, classes, places, scores = m.stats, m.memory, m.classes, m.places, m.scores
    near = NEARNESS * rows.shape[1]
    for t in range(rows.shape[0]):
        least = measure(m, rows[t], places[USED], learn)
        vote_for(m, places[USED], least, near)
        for c in range(counts[t]):
            votes[t, member, c] = scores[c]
        if learn:
            label = labels[t]
            known = max(counts[t], label + 1)
            kept = weights[t] >= 1.0 or stats.shape[0] == 0 or (stats[0, 0] * GOLDEN) % 1.0 < weights[t]
            if label < 0:
                other = best_rival(scores, DENIED - label, known)
                unsure = other < 0 or scores[other] < np.float32(SURE_SHARE)
            else:
                unsure = scores[label] < np.float32(SURE_SHARE)
            if kept and unsure:
                for f in range(rows.shape[1]):
                    memory[f, places[NEXT]] = np.float32(rows[t, f] - stats[f, 3])
                classes[places[NEXT]] = label
                places[USED] = max(places[USED], places[NEXT] + 1)
                places[NEXT] = (places[NEXT] + 1) % classes.size


class NearestRows(Group):
    """Rows remembered, an attribute a row of ``memory``, and their classes."""

    members = ("nearest rows",)
    studies = True
    fields: ClassVar = FIELDS
    kernel = staticmethod(play_nearest)

    def __init__(self) -> None:
        self.grow(remembered=FEWEST)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        used = self.places[USED]
        return super().arrays | {
            "memory": self.memory[:, :used], "classes": self.classes[:used],
            "places": np.append(self.places, self.classes.size),
        }  # fmt: skip

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        *places, room = arrays["places"].tolist()
        super().restore(dict(arrays) | {"places": np.array(places)})
        self._set_room(self.memory, self.classes, room)

    def _set_room(self, memory: np.ndarray, classes: np.ndarray, room: int) -> None:
        """Remember these rows, with room for ``room`` of them."""
        self.memory, self.classes, self.distances = memory, classes, np.zeros(0, np.float32)
        self.grow(column=len(memory), remembered=room)

    def fit(self, columns: int, width: int) -> None:
        known = len(self.stats)
        super().fit(columns, width)
        self.stats[known:, 0] = self.stats[0, 0] if known else 0.0

    def study(self, rows: np.ndarray, labels: np.ndarray) -> None:
        room = min(MOST, max(FEWEST, MOST_NUMBERS // max(1, rows.shape[1])))
        self.stats[: rows.shape[1], 3] = np.median(rows, axis=0)
        self._set_room(self.memory[:, :0], self.classes[:0], room)

    def by_age(self) -> np.ndarray:
        """The places of the rows remembered, the oldest first."""
        used = int(self.places[USED])
        return np.roll(np.arange(used), -int(self.places[NEXT]) if used == self.classes.size else 0)

    def since(self, start: NearestRows | None) -> int:
        """Return how many rows it remembers that it did not at the start."""
        used, room = int(self.places[USED]), self.classes.size
        if start is None or used < room:
            return used - (0 if start is None else int(start.places[USED]))
        new = int(self.places[NEXT] - start.places[NEXT]) % room
        old = self.by_age()[: room - new]
        if old.max(initial=-1) >= start.places[USED]:
            return room
        same = (self.memory[: len(start.memory), old] == start.memory[:, old]).all()
        return new if same and (self.classes[old] == start.classes[old]).all() else room

    def mix(self, mixture: Mixture, width: int) -> None:
        """Remember the rows of the start and those that the parts remembered since; what was counted adds up.

        Where there is no room for all, as many of the start stay as did in the parts on average, by shares. The rest is
        for new rows, those of the parts with the greatest shares.
        """
        columns = self.columns_of(mixture)
        room = max(part.state.classes.size for part, _ in mixture.counted)
        self.fit(columns, width)
        parts, shares = [part for part, _ in mixture.weighed], np.array([share for _, share in mixture.weighed])
        tables = [moments_of(part, columns) for part, _ in mixture.counted]
        self.stats[:, :3] = pooled_moments([table[:, :3] for table in tables], [n for _, n in mixture.counted])
        self.stats[:, 3] = moments_of(parts[0], columns)[:, 3]
        start = mixture.start if mixture.start is not None and mixture.start.state.classes.size == room else None
        begun = None if start is None else start.state
        new = np.array([part.state.since(begun) for part in parts])
        stay = 0 if begun is None else math.ceil(float(np.minimum(begun.places[USED], room - new) @ shares) - 1e-9)
        taken = shared_out(new, shares, room - stay)
        found = [] if start is None else [self._placed(start, start.state.by_age())]
        found.append(self._in_turns(parts, new, taken))
        memory, classes = (np.concatenate(arrays, axis=-1)[..., -room:] for arrays in zip(*found, strict=True))
        following = classes.size
        if following == room:
            following = 0 if begun is None else (int(begun.places[NEXT]) + int(taken.sum())) % room
            following = int(parts[0].state.places[NEXT]) if len(parts) == 1 else following
            memory, classes = np.roll(memory, following, axis=1), np.roll(classes, following)
        self._set_room(memory, classes, room)
        self.places[:] = classes.size, following

    def _placed(self, part: Placement, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows that another remembers, as they are stored here, and their classes."""
        own, rows = part.state, np.zeros((len(self.stats), places.size))
        offsets = moments_of(part, len(self.stats))[:, 3] - self.stats[:, 3]
        rows[part.dense[: len(own.stats)]] = own.memory[:, places]
        return rows + offsets[:, None], renamed(own.classes[places], part.classes)

    def _in_turns(
        self, parts: Sequence[Placement], new: np.ndarray, taken: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ``taken`` of the new rows of each part, evenly spread, in turns."""
        rows, ages = [], []
        for part, many, some in zip(parts, new.tolist(), taken.tolist(), strict=True):
            latest = part.state.by_age()[int(part.state.places[USED]) - many :]
            turns = np.arange(1, some + 1)
            rows.append(self._placed(part, latest[turns * many // max(1, some) - 1]))
            ages.append((turns - 0.5) / max(1, some))
        order = np.argsort(np.concatenate(ages), kind="stable")
        memory, classes = (np.concatenate(arrays, axis=-1)[..., order] for arrays in zip(*rows, strict=True))
        return memory, classes


def shared_out(wanted: np.ndarray, shares: np.ndarray, room: int) -> np.ndarray:
    """Share out places: each gets as many as it wants while there are some, the greatest shares first.

    Rows that were remembered together complete each other: all rows of a few parts are worth more than a few of all.

    Examples
    --------
    >>> shared_out(np.array([10, 2, 30]), np.array([0.25, 0.25, 0.5]), 35).tolist()
    [5, 0, 30]
    """
    found, left = np.zeros_like(wanted), room
    for place in np.argsort(-shares.round(9), kind="stable").tolist():
        found[place] = min(int(wanted[place]), left)
        left -= int(found[place])
    return found
