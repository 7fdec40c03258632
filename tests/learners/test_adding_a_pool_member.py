"""A member of the pool for attributes is one file, here, and one line of a registry."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

import linmax
from linmax import Learner, merge, run
from linmax.learners.attributes.group import Group, Task
from linmax.learners.attributes.pool import REGISTRY
from linmax.learners.base import Field

COLUMN = 2


class Majority(Group):
    """Counts the labels by the sign of one attribute."""

    members = ("majority by sign",)
    fields: ClassVar = {"counts": Field((2, "class"))}

    def play(self, task: Task, votes: np.ndarray, place: int) -> None:
        for t, row in enumerate(task.rows):
            own = self.counts[int(row[min(COLUMN, row.size - 1)] > 0.0)]
            known = task.trials.known[t]
            votes[t, place, :known] = own[:known]
            if task.learn:
                own[task.trials.labels[t]] += 1.0


@pytest.mark.small
def test_it_is_fused_saved_merged_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "majority", Majority)
    random = np.random.default_rng(0)
    rows = random.normal(size=(60, 3)) + 0.01
    labels = (rows[:, COLUMN] > 0.0).astype(int)
    instances = linmax.instances(attributes=rows, classes=[0, 1])
    model = run("auto", instances, labels).model
    assert model.pool.members()[-1].name == "majority by sign"
    assert model.pool.groups["majority"].counts.sum() == 60.0
    again = run("auto", instances[:0], []).model
    again.engine.restore(model.engine.arrays)
    assert np.array_equal(again.scores(instances), model.scores(instances))
    learners = [Learner("auto"), Learner("auto")]
    for t, row in enumerate(rows):
        learners[t % 2].learn(dict(zip("abc", row.tolist(), strict=True)), label="ny"[labels[t]])
    together = merge(learners)
    assert together.trials == 60
    hybrid = linmax.instances(attributes=rows, votes=labels.reshape(-1, 1), classes=[0, 1])
    assert len(run("auto", hybrid, labels)) == 60
