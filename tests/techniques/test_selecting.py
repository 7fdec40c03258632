"""Labels only when they are worth it: S-B through every interface, and its bound in the mean."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import linmax
from linmax.theory import bounds

DATA = linmax.datasets.majority_problem(trials=400, noise=0.1, seed=3)
VOTES = linmax.instances(votes=DATA.votes)
CLASSES = sorted(set(DATA.labels.tolist()))


@pytest.mark.parametrize("learner", ["S-perceptron", "S(b=0.05)R-winnow(1.2)", "S(b=0.1)-auto"])
def test_the_same_however_trials_are_cut_saved_and_asked_for(learner: str, tmp_path: Path) -> None:
    trace = linmax.run(learner, VOTES, DATA.labels)
    one_by_one = linmax.Learner(learner, classes=CLASSES)
    asked = linmax.Learner(learner, classes=CLASSES)
    found, wanted = [], []
    for t, (votes, label) in enumerate(zip(DATA.votes.tolist(), DATA.labels.tolist(), strict=True)):
        if t == 200:
            one_by_one.save(tmp_path / "selective.model")
            one_by_one = linmax.Learner.load(tmp_path / "selective.model")
        found.append(one_by_one.learn(votes=votes, label=label))
        wanted.append(asked.predict(votes=votes))
        if asked.wants_label(votes=votes):
            asked.learn(votes=votes, label=label)
    assert found == wanted == trace.predictions.tolist()
    used = trace.model.labels_used
    assert used == one_by_one._current_model.labels_used == asked._current_model.labels_used == asked.trials < 300
    assert one_by_one.trials == 400
    fusion = linmax.VoteFusion(learner, classes=CLASSES)
    for begin, end in [(0, 1), (1, 2), (2, 150), (150, 400)]:
        fusion.partial_fit(DATA.votes[begin:end], DATA.labels[begin:end])
    assert fusion.labels_used_ == used
    assert fusion.report().online.mistakes == trace.mistakes[-1]


@pytest.mark.small
def test_a_label_wanted_is_learned_from_and_only_such() -> None:
    learner = linmax.Learner("S(b=1e-9)-perceptron", classes=["a", "b"])
    assert learner.wants_label({"x": 1.0})  # nothing is known: a tie
    assert learner.wants_label({"x": 1.0}, votes={"v": "a"})
    for _ in range(2):
        assert learner.learn({"x": 1.0}, label="b") in ("a", "b")
    assert learner._current_model.labels_used == 2
    before = learner.weights.arrays.flat.copy()
    assert not learner.wants_label({"x": 1.0})
    assert learner.learn({"x": 1.0}, label="a") == "b"
    assert (learner.weights.arrays.flat == before).all()
    assert learner.mistakes == 2


@pytest.mark.small
def test_an_instance_that_waits_is_asked_about_by_its_id() -> None:
    learner = linmax.Learner("S-perceptron", classes=["a", "b"])
    learner.predict({"x": 1.0}, id=7)
    assert learner.wants_label(id=7)
    learner.learn(id=7, label="b")
    with pytest.raises(ValueError, match="id 7 has had its label already"):
        learner.wants_label(id=7)
    with pytest.raises(KeyError, match="id 8 is not waiting"):
        learner.wants_label(id=8)
    with pytest.raises(TypeError, match="give the instance or the id, not both"):
        learner.wants_label({"x": 1.0}, id=7)


@pytest.mark.small
def test_classes_and_columns_join() -> None:
    learner = linmax.Learner("S(b=1e-6)-perceptron")
    for label in "abcd":
        assert learner.learn({label: 1.0}, label=label) != label
    assert learner._current_model.known == list("abcd")  # a label that brings a new class is always learned from
    assert learner._current_model.labels_used == 4
    assert linmax.Learner.from_state(*learner.state()).predict({"d": 1.0}) == learner.predict({"d": 1.0})
    assert linmax.Learner("perceptron").wants_label({"x": 1.0})  # any other learner wants all labels


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "words"),
    [("S(b=0)-perceptron", "b must be > 0"), ("S(seed=-1)-perceptron", "seed must be"), ("S(c=1)-pa", "no option 'c'")],
)
def test_bad_parameters_are_named(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        linmax.parse(text)


def test_a_range_that_a_rule_needs_is_checked_inside() -> None:
    with pytest.raises(ValueError, match="needs ratings that differ by at most 1"):
        linmax.run("S-winnow(1.1)", linmax.instances(attributes=[[3.0], [0.0]]), ["a", "b"])


@pytest.mark.parametrize("rule", ["perceptron", "p-norm(3)"])
def test_the_mean_stays_below_the_bound(rule: str) -> None:
    data = linmax.datasets.majority_problem(n=9, r=3, k=3, trials=300, seed=5)
    votes = linmax.instances(votes=data.votes)
    full = linmax.run(rule, votes, data.labels)
    for b in (0.5, 4.0):
        traces = [linmax.run(f"S(b={b}, seed={seed})-{rule}", votes, data.labels) for seed in range(20)]
        mistakes = np.array([trace.mistakes for trace in traces])
        bound = traces[0].bound(data.target)
        noise = 3.0 * mistakes[:, -1].std() / math.sqrt(len(traces))
        assert mistakes[:, -1].mean() - noise <= bound[-1]
        assert full.bound(data.target)[-1] <= bound[-1] * (1 + 1e-9)  # fewer labels are not better
        assert bound.shape == (300,)


def test_certificate_of_expected_mistakes() -> None:
    data = linmax.datasets.majority_problem(n=6, r=3, k=3, noise=0.0, trials=300, seed=1)
    votes = linmax.instances(votes=data.votes)
    certificate = linmax.theory.certify(votes, data.labels, "S(b=2)-perceptron")
    assert certificate.expected
    assert "in the mean" in str(certificate)
    radius = math.sqrt(max(float((row**2).sum()) for row in _rows(votes, data.labels)))
    expected = bounds.selective_perceptron(radius, 1.0, certificate.margin, 2.0, certificate.noise)
    assert certificate.bound == pytest.approx(expected)
    assert not linmax.theory.certify(votes, data.labels, "perceptron").expected
    with pytest.raises(ValueError, match=r"no bound is known for S-winnow\(1.1\); known: S-perceptron and S-p-norm"):
        linmax.theory.certify(votes, data.labels, "S-winnow(1.1)")
    with pytest.raises(ValueError, match="it learns from several rivals"):
        linmax.theory.certify(votes, data.labels, "S-perceptron(rivals=violated)")


def _rows(votes: linmax.data.instances.Instances, labels: np.ndarray) -> list[np.ndarray]:
    found = []
    for t, label in enumerate(labels.tolist()):
        ratings = votes.matrix(t, votes.names)
        place = votes.names.index(label)
        found += [ratings[place] - ratings[j] for j in range(len(ratings)) if j != place]
    return found


def test_votes_are_asked_about_one_row_at_a_time() -> None:
    fusion = linmax.VoteFusion("S(b=0.5)-auto").fit(DATA.votes[:300], DATA.labels[:300])
    wanted = [fusion.wants_label(row) for row in DATA.votes[300:].tolist()]
    assert 0 < sum(wanted) < 80
    with pytest.raises(ValueError, match="takes one trial"):
        fusion.wants_label(DATA.votes[:2])


@pytest.mark.parametrize("learner", ["perceptron", "auto"])
def test_update_counts_are_equal(learner: str) -> None:
    """Every label asked for, no class drawn: what changed is what changes the learner itself, of rules and of pools."""
    alone = linmax.run(learner, VOTES, DATA.labels)
    selective = linmax.run(linmax.selective(learner, b=1e12), VOTES, DATA.labels)
    assert selective.model.labels_used == len(DATA.labels)
    assert selective.changed.tolist() == alone.changed.tolist()
    assert selective.model.updates == alone.model.updates
    two = linmax.datasets.majority_problem(k=2, trials=200, noise=0.1, seed=4)
    votes = linmax.instances(votes=two.votes)
    told = linmax.run(linmax.bandit(learner, gamma=0.0), votes, two.labels)
    assert told.changed.tolist() == linmax.run(learner, votes, two.labels).changed.tolist()
