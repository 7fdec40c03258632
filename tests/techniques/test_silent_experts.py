"""Sub-experts that never voted change nothing, and one that appears later is as one that was silent until then.

Mesterharm (2001), section 6.1, for every rule and technique; the pools have tests of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linmax import instances, run
from linmax.datasets import majority_problem
from linmax.jit.compiling import JIT
from linmax.theory import LinearThreshold

pytestmark = [pytest.mark.small, pytest.mark.skipif(not JIT, reason="needs many trials")]

TRIALS, SILENT, LATE = 300, 200, 3
LEARNERS = [
    "perceptron",
    "winnow(1.2)",
    "winnow(1.05, thickness=0.005)",
    "committee(1.1, thickness=0.01)",
    "balanced-winnow(1.1, thickness=0.01)",
    "quasi-additive(exp, rate=0.1)",
    "p-norm(3)",
    "alma(2.5, alpha=0.9)",
    "arow",
    "A(scale=l1)-winnow(1.2)",
    "A(scale=max, fade=True)-winnow(1.1)",
    "A(scale=l1)-quasi-additive(exp, rate=0.1)",
    "AR-winnow(1.2)",
    "V-winnow(1.2)",
    "V(scale=l1)A-winnow(1.2)",
    "V-quasi-additive(exp, rate=0.1)",
    "S-winnow(1.2)",
    "B-winnow(1.2)",
    "combine(winnow(1.1), balanced-winnow(1.1), perceptron, how=weighted)",
    "stack(winnow(1.1), balanced-winnow(1.1), perceptron)",
    "VR-combine",
]


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    data = majority_problem(n=10, r=5, k=4, trials=TRIALS, noise=0.1, seed=seed)
    return np.asarray(data.votes, object), data.labels


@pytest.mark.parametrize("text", LEARNERS)
def test_silent_voters_change_nothing(text: str) -> None:
    votes, labels = problem()
    silent = np.full((TRIALS, SILENT), None, object)
    plain = run(text, instances(votes=votes, classes=range(4)), labels)
    crowd = run(text, instances(votes=np.hstack([votes, silent]), classes=range(4)), labels)
    assert crowd.predictions.tolist() == plain.predictions.tolist()
    assert crowd.changed.tolist() == plain.changed.tolist()


@pytest.mark.parametrize("text", LEARNERS)
def test_a_late_voter_is_one_that_was_silent(text: str) -> None:
    votes, labels = problem(1)
    begin = TRIALS // 2
    votes[:begin, -LATE:] = None
    whole = run(text, instances(votes=votes, classes=range(4)), labels)
    first = run(text, instances(votes=votes[:begin, :-LATE], classes=range(4)), labels[:begin])
    second = first.model.run(instances(votes=votes[begin:], classes=range(4)), labels[begin:], grow=True)
    assert [*first.predictions, *second.predictions] == whole.predictions.tolist()


@pytest.mark.parametrize("text", ["winnow(1.2, thickness=0.02)", "balanced-winnow(1.2, thickness=0.02)"])
def test_silent_attributes_of_two_classes(text: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (TRIALS, 5))
    labels = (x[:, 0] > x[:, 1]).astype(int)
    found: list[Any] = []
    for width in (5, 50):
        learner = LinearThreshold(text, labels=(0, 1))
        found.append(learner.run(np.pad(x, ((0, 0), (0, width - 5))), labels))
    assert found[0].changed.tolist() == found[1].changed.tolist()
    assert found[0].predictions.tolist() == found[1].predictions.tolist()
