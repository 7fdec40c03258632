"""Sub-experts that never voted change nothing, and one that appears later is as one that was silent until then.

Mesterharm (2001), section 6.1, for every kind of rule, technique, learner and pool.
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

TRIALS, SILENT, LATE = 300, 1000, 3
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
    "softmax(0.1)",
    "robust-softmax(0.1)",
    "recent-label",
    "stack(winnow(1.1), perceptron, softmax(0.1))",
    "votes",
    "auto",
]
POOLS = ["softmax(0.1)", "robust-softmax(0.1)", "votes", "auto"]


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


@pytest.mark.parametrize("text", POOLS)
def test_a_crowd_that_appears_one_by_one(text: str) -> None:
    """Voters appear throughout, enough of them to change how a pool computes: no cut of the trials matters."""
    data = majority_problem(n=150, r=5, k=4, trials=TRIALS, noise=0.1, seed=2)
    votes = np.where(np.arange(150)[None, :] * 2 > np.arange(TRIALS)[:, None] + 10, -1, data.votes)
    several = instances(votes=votes, classes=range(4), abstain=-1)
    whole = run(text, several, data.labels)
    silent = np.full((TRIALS, SILENT), -1)
    crowd = run(text, instances(votes=np.hstack([votes, silent]), classes=range(4), abstain=-1), data.labels)
    model = run(text, several[:0], []).model
    parts = [model.run(several[t : t + 37], data.labels[t : t + 37]) for t in range(0, TRIALS, 37)]
    joined = instances(votes=votes[:, :20], classes=range(4), abstain=-1)
    first = run(text, joined[:20], data.labels[:20])
    second = first.model.run(several[20:], data.labels[20:], grow=True)
    for predictions in (crowd.predictions, np.concatenate([part.predictions for part in parts])):
        assert predictions.tolist() == whole.predictions.tolist()
    assert [*first.predictions, *second.predictions] == whole.predictions.tolist()
    assert model.predict(several).tolist() == whole.model.predict(several).tolist()
    np.testing.assert_array_equal(model.weights.arrays.voters, whole.model.weights.arrays.voters)


@pytest.mark.parametrize("text", ["perceptron", *POOLS])
def test_silent_raters_change_nothing(text: str) -> None:
    data = majority_problem(n=8, r=5, k=4, trials=TRIALS, noise=0.1, seed=5)
    scores = 0.6 * np.eye(4)[data.votes] + 0.4 * np.random.default_rng(0).random((TRIALS, 8, 4))
    scores[:20, :3] = 0.5  # three of them come late
    found = []
    for silent in (0, 40, 400):
        padded = np.concatenate([scores, np.full((TRIALS, silent, 4), 0.25)], axis=1)
        trace = run(text, instances(scores=padded, classes=range(4)), data.labels)
        found.append((trace.predictions.tolist(), trace.model.predict(instances(scores=padded[:9], classes=range(4)))))
        np.testing.assert_array_equal(found[-1][1], found[0][1])
        assert found[-1][0] == found[0][0]


@pytest.mark.parametrize("text", ["votes", "auto"])
def test_pools_with_silent_voters_are_saved_merged_and_continued(text: str) -> None:
    data = majority_problem(n=40, r=10, k=4, trials=TRIALS, noise=0.1, seed=6)
    votes = np.where(np.arange(40)[None, :] * 6 > np.arange(TRIALS)[:, None], -1, data.votes)
    wide = instances(votes=np.hstack([votes, np.full((TRIALS, 300), -1)]), classes=range(4), abstain=-1)
    whole = run(text, wide, data.labels)
    first = run(text, wide[:100], data.labels[:100])
    again = type(first.model).from_state(*first.model.state())
    second = again.run(wide[100:], data.labels[100:])
    assert [*first.predictions, *second.predictions] == whole.predictions.tolist()
    assert again.weights.arrays.voters[40:].tolist() == [0.0] * 300
    assert (again.weights.arrays.voters[:40] != 0.0).all()


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
