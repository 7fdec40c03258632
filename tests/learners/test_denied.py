"""Members of the pool for attributes, told only that a class is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from linmax.data.arrays import no_trials
from linmax.learners.attributes.group import DENIED, Task
from linmax.learners.attributes.nearest import USED, NearestRows
from linmax.learners.attributes.pairs import PairMembers


def task(rows: np.ndarray, labels: list[int], weight: float = 1.0, learn: bool = True) -> Task:
    size = len(rows)
    met = np.full(size, rows.shape[1])
    trials = no_trials(size)._replace(
        known=np.full(size, 3), labels=np.array(labels, np.int32), weights=np.full(size, weight)
    )
    return Task(trials, learn, rows, met)


@pytest.mark.small
def test_denying_row_is_stored_unless_sure() -> None:
    member, votes = NearestRows(), np.zeros((1, 1, 4), np.float32)
    row = np.array([[1.0, 2.0]])
    member.fit(2, 4)
    for wrong in (0, 1):  # of which nothing is known
        member.play(task(row + 9.0 * wrong, [DENIED - wrong]), votes, 0)
    assert member.places[USED] == 2
    member.play(task(row + 5.0, [2]), votes, 0)
    member.play(task(row + 5.0, [DENIED - 0]), votes, 0)
    assert member.places[USED] == 3


@pytest.mark.small
def test_denied_class_in_pairs() -> None:
    rows = np.random.default_rng(0).random((40, 3))
    member, votes = PairMembers(8), np.zeros((1, 1, 4), np.float32)
    member.fit(3, 4)
    member.study(rows, np.arange(40) % 3)
    member.play(task(rows[:1], [DENIED - 1], weight=1e6), votes, 0)
    member.play(task(rows[:1], [0], learn=False), votes, 0)
    assert votes[0, 0, :3] == pytest.approx([0.0, -2.0, 0.0], abs=1e-3)
