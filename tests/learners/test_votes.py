"""The pool for voters and raters: against the formulas, cut anywhere, grown, restored, on nasty inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linmax
from linmax import Learner, VoteFusion, merge, run
from linmax.datasets import majority_problem
from linmax.jit.compiling import JIT
from linmax.learners.votes import jury
from linmax.learners.votes import pool as mixture
from linmax.normalization import log_shares
from reference_learners import ReferenceVotes

TRIALS = 80 if JIT else 24
K = 4


def trials(seed: int, voters: int, raters: int, silent: float = 0.2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Votes (-1 where silent), scores of any unit, and labels."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, K, TRIALS)
    good = np.linspace(0.3, 0.9, voters)
    votes = np.where(random.random((TRIALS, voters)) < good, labels[:, None], random.integers(0, K, (TRIALS, voters)))
    scores = random.normal(size=(TRIALS, raters, K)) + np.eye(K)[labels][:, None]
    return np.where(random.random(votes.shape) < silent, -1, votes), scores, labels


def instances_of(votes: np.ndarray, scores: np.ndarray, thresholds: bool = True) -> Any:
    blocks: dict[str, Any] = {"votes": votes, "abstain": -1} if votes.shape[1] else {}
    blocks |= {"scores": scores} if scores.shape[1] else {}
    return linmax.instances(**blocks, classes=range(K), thresholds=thresholds)


def nasty() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Voters who are always right, always wrong, never speak or come late; raters who rate all alike, or hugely."""
    votes, scores, labels = trials(3, 6, 3)
    votes[:, 0], votes[:, 1], votes[:, 2] = labels, (labels + 1) % K, -1
    votes[: TRIALS // 2, 3] = -1
    votes[5] = -1
    scores[:, 0] = 7.0
    scores[:, 1] *= 1e-3
    scores[9] = 0.0
    return votes, scores, labels


CASES = {
    "votes": trials(0, 5, 0),
    "scores": trials(1, 0, 3),
    "both": trials(2, 4, 2),
    "nasty": nasty(),
}


def played(machine: Any, instances: Any, label: int, weight: float = 1.0) -> None:
    """Let a model play one trial with any label, and any weight."""
    trial = machine.fitted(instances)._replace(labels=np.array([label], np.int32), weights=np.array([weight]))
    machine.engine.run(trial)


@pytest.mark.small
@pytest.mark.parametrize("full", [True, False], ids=["full", "diagonal"])
@pytest.mark.parametrize("thresholds", [True, False])
@pytest.mark.parametrize("kind", CASES)
def test_every_trial_agrees_with_the_formulas(
    kind: str, thresholds: bool, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not full:
        monkeypatch.setattr("linmax.learners.votes.pool.FULL_PRECISION", 1)
    votes, scores, labels = CASES[kind]
    instances = instances_of(votes, scores, thresholds)
    machine = run("votes", instances[:0], []).model
    slow = ReferenceVotes(votes.shape[1], scores.shape[1], K, thresholds, full)
    for t in range(TRIALS):
        judged = machine.scores(instances[t : t + 1])[0]
        np.testing.assert_allclose(judged, slow.scores(votes[t], scores[t]), rtol=1e-4, atol=1e-5)
        if t % 7 == 5:
            played(machine, instances[t : t + 1], -1)
            slow.watch(votes[t], scores[t])
        else:
            played(machine, instances[t : t + 1], int(labels[t]))
            slow.learn(votes[t], scores[t], int(labels[t]))
        pool = machine.engine.top.running
        np.testing.assert_allclose(pool.weights, slow.weights, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(pool.mixture, slow.mixture, rtol=1e-4, atol=1e-6)


@pytest.mark.small
@pytest.mark.parametrize("full", [True, False], ids=["full", "diagonal"])
def test_weights_and_denials_match_formulas(full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not full:
        monkeypatch.setattr("linmax.learners.votes.pool.FULL_PRECISION", 1)
    votes, scores, labels = CASES["both"]
    instances = instances_of(votes, scores)
    machine = run("votes", instances[:0], []).model
    slow = ReferenceVotes(votes.shape[1], scores.shape[1], K, True, full)
    for t in range(20):  # nearly: the refitted softmax is compared elsewhere
        weight, label = [0.5, 1.0, 3.0][t % 3], int(labels[t])
        label = -2 - (label + 1) % K if weight == 1.0 else label
        played(machine, instances[t : t + 1], label, weight)
        slow.learn(votes[t], scores[t], label, weight)
        pool = machine.engine.top.running
        np.testing.assert_allclose(pool.weights, slow.weights, rtol=0.05, atol=1e-3)
        np.testing.assert_allclose(
            np.delete(pool.mixture, mixture.REFIT), np.delete(slow.mixture, mixture.REFIT), rtol=0.2
        )


@pytest.mark.small
def test_weight_0_and_unknown_denial_change_nothing() -> None:
    votes, scores, labels = CASES["both"]
    instances = instances_of(votes, scores)
    model = run("votes", instances[:-1], labels[:-1]).model
    pool = model.engine.top.running
    before = {name: pool.arrays[name].copy() for name in ("weights", "voted", "mixture", "rows", "unlabelled")}
    for label in (0, -1, -2):
        played(model, instances[-1:], label, 0.0)
    for name, array in before.items():
        assert np.array_equal(pool.arrays[name], array), name


@pytest.mark.small
@pytest.mark.parametrize("learner", ["votes", "auto"])
@pytest.mark.parametrize("kind", CASES)
def test_cutting_the_trials_changes_no_bit(kind: str, learner: str) -> None:
    votes, scores, labels = CASES[kind]
    instances = instances_of(votes, scores)
    for discover in (False, True):
        whole = run(learner, instances, labels, discover=discover)
        pieces = run(learner, instances[:0], [], discover=discover).model
        found = []
        for begin, end in [(0, 1), (1, 2), (2, 11), (11, TRIALS)]:
            found += pieces.run(instances[begin:end], labels[begin:end]).predictions.tolist()
        assert found == whole.predictions.tolist()
        for name, array in whole.model.engine.arrays.items():
            assert np.array_equal(array, pieces.engine.arrays[name]), name


@pytest.mark.small
def test_scores_are_logarithms_of_probabilities() -> None:
    votes, scores, labels = CASES["both"]
    instances = instances_of(votes, scores)
    model = run("votes", instances, labels).model
    np.testing.assert_allclose(np.exp(model.scores(instances)).sum(axis=1), 1.0)


@pytest.mark.small
def test_the_unit_of_a_rater_does_not_matter_to_the_logits() -> None:
    votes, scores, labels = CASES["both"]
    first, second = (
        run("votes", instances_of(votes, given), labels).model.engine.top.running for given in (scores, 64.0 * scores)
    )
    np.testing.assert_allclose(first.weights, second.weights, rtol=1e-9, atol=1e-12)


@pytest.mark.small
def test_it_starts_as_plurality() -> None:
    votes, _, labels = trials(5, 7, 0)
    counts = np.stack([(votes == c).sum(axis=1) for c in range(K)], axis=1)
    model = run("votes", instances_of(votes[:0], np.zeros((0, 0, K))), labels[:0]).model
    predicted = model.predict(instances_of(votes, np.zeros((TRIALS, 0, K))))
    assert np.array_equal(counts[np.arange(TRIALS), predicted], counts.max(axis=1))


@pytest.mark.small
def test_a_newcomer_has_the_trust_of_an_average_voter() -> None:
    votes, scores, labels = trials(6, 6, 0)
    votes[:-1, 5] = -1
    instances = instances_of(votes, scores)
    model = run("votes", instances[:-1], labels[:-1]).model
    before = model.engine.top.running.weights.copy()
    weights = model.weights.arrays.voters
    assert weights[:5].mean() / 3.0 < weights[5] < weights[:5].max()  # evidence has to be learned
    model.run(instances[-1:], labels[-1:])
    home = model.engine.top.running.home[:, mixture.VOTERS + 5]
    np.testing.assert_allclose(home, (mixture.TRUST + before[:, mixture.VOTERS : mixture.VOTERS + 5].sum(axis=1)) / 6.0)


@pytest.mark.small
@pytest.mark.parametrize("full", [True, False])
def test_voters_raters_and_classes_may_come_late(full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known only when first met, or announced at once: the same."""
    if not full:
        monkeypatch.setattr("linmax.learners.votes.pool.FULL_PRECISION", 1)
    votes, scores, labels = trials(7, 5, 2)
    half = TRIALS // 2
    labels[:half] %= K - 1
    votes[:half] = np.where(votes[:half] == K - 1, -1, votes[:half])
    votes[:half, 4], scores[:half, 1] = -1, 0.0
    instances = instances_of(votes, scores)
    whole = run("votes", instances, labels, discover=True)
    early = linmax.instances(
        votes=votes[:half, :4], scores=scores[:half, :1, : K - 1], abstain=-1, classes=range(K - 1)
    )
    begun = run("votes", early, labels[:half], discover=True).model
    judged = begun.predict(early[:5])
    assert judged.shape == (5,)
    rest = begun.run(instances[half:], labels[half:], grow=True)
    assert rest.predictions.tolist() == whole.predictions[half:].tolist()
    np.testing.assert_allclose(begun.scores(instances), whole.model.scores(instances), rtol=1e-6, atol=1e-8)


@pytest.mark.small
def test_from_a_matrix_to_its_diagonal(monkeypatch: pytest.MonkeyPatch) -> None:
    votes, scores, labels = trials(8, 5, 0)
    monkeypatch.setattr("linmax.learners.votes.pool.FULL_PRECISION", 9)
    model = run("votes", instances_of(votes[:10, :2], scores[:10]), labels[:10]).model
    assert model.engine.top.running.precision.size
    model.run(instances_of(votes[10:], scores[10:]), labels[10:], grow=True)
    pool = model.engine.top.running
    assert not pool.precision.size
    assert all(np.isfinite(array).all() for array in pool.arrays.values())
    assert (pool.diagonal >= mixture.RIDGES[:, None] * (1 - 1e-9)).all()


@pytest.mark.small
@pytest.mark.parametrize("kind", CASES)
def test_restored_pool_resumes(kind: str) -> None:
    votes, scores, labels = CASES[kind]
    instances, half = instances_of(votes, scores), TRIALS // 2
    first = run("votes", instances[:half], labels[:half]).model
    second = run("votes", instances[:0], []).model
    second.engine.restore(first.engine.arrays)
    for machine in (first, second):
        machine.run(instances[half:], labels[half:])
    for name, array in first.engine.arrays.items():
        assert np.array_equal(array, second.engine.arrays[name]), name


@pytest.mark.small
def test_judging_changes_nothing() -> None:
    votes, scores, labels = CASES["both"]
    instances = instances_of(votes, scores)
    model = run("votes", instances, labels).model
    before = {name: array.copy() for name, array in model.engine.arrays.items()}
    model.scores(instances)
    for name, array in model.engine.arrays.items():
        assert np.array_equal(array, before[name]), name


@pytest.mark.small
def test_the_names_of_classes_do_not_matter() -> None:
    """Classes are met one by one, in an order that is not the sorted one."""
    votes, _, labels = trials(9, 4, 0, silent=0.0)
    found = []
    for names in ("abcd", "dacb", "cbda"):
        learner = Learner("auto")
        predicted = []
        for row, label in zip(votes, labels, strict=True):
            given = {str(i): names[vote] for i, vote in enumerate(row)}
            predicted.append(learner.predict(votes=given))
            learner.learn(votes=given, label=names[label])
        found.append([name if name is None else names.index(name) for name in predicted])
    assert found[0] == found[1] == found[2]


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_more_coordinates_than_are_factorised_at_every_trial() -> None:
    """The step by an older factor stays near that by a fresh one."""
    random = np.random.default_rng(4)
    labels = random.integers(0, K, 800)
    good = np.linspace(0.3, 0.8, 140)
    votes = np.where(random.random((800, 140)) < good, labels[:, None], random.integers(0, K, (800, 140)))
    votes = np.where(random.random(votes.shape) < 0.9, -1, votes)
    trace = run("votes", linmax.instances(votes=votes, abstain=-1, classes=range(K)), labels)
    pool = trace.model.engine.top.running
    assert 700 < pool.counts[mixture.AGE] < 800  # since the last voter joined
    assert pool.weights.shape[1] > 2 * 64
    assert all(np.isfinite(array).all() for array in pool.arrays.values())
    counts = np.stack([(votes == c).sum(axis=1) for c in range(K)], axis=1)
    assert trace.wrong.mean() <= np.mean(counts.argmax(axis=1) != labels) + 0.01


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_sparse_workers_match_plurality() -> None:
    random = np.random.default_rng(1)
    good, labels = random.uniform(0.55, 0.95, 1000), random.integers(0, K, 1000)
    votes = np.full((1000, 1000), -1)
    for row, label in zip(votes, labels, strict=True):
        who = random.choice(1000, 8, replace=False)
        row[who] = np.where(random.random(8) < good[who], label, random.integers(0, K, 8))
    counts = np.stack([(votes == c).sum(axis=1) for c in range(K)], axis=1)
    trace = run("auto", linmax.instances(votes=votes, abstain=-1, classes=range(K)), labels)
    assert trace.wrong.mean() <= np.mean(counts.argmax(axis=1) != labels) + 0.002


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_voters_that_change_are_followed() -> None:
    """All voters turn round half-way: the best become the worst."""
    random = np.random.default_rng(2)
    labels = random.integers(0, K, 4000)
    good = np.linspace(0.2, 0.8, 9)
    chance = np.where(np.arange(4000)[:, None] < 2000, good, good[::-1])
    votes = np.where(random.random((4000, 9)) < chance, labels[:, None], random.integers(0, K, (4000, 9)))
    wrong = run("auto", linmax.instances(votes=votes, classes=range(K)), labels).wrong
    assert wrong[2200:].mean() < wrong[:2000].mean() + 0.02


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_labels_that_are_a_sharp_function_of_the_votes() -> None:
    data = majority_problem(seed=21)
    assert run("auto", linmax.instances(votes=data.votes), data.labels).mistakes[-1] <= 32


@pytest.mark.small
def test_unlabeled_rows_set_weights() -> None:
    """Three good voters among nine that guess alike; the influence of such rows fades as labels arrive."""
    random = np.random.default_rng(0)
    labels = random.integers(0, K, 400 if JIT else 160)
    good = np.r_[np.full(3, 0.9), np.full(6, 0.3)]
    votes = np.where(random.random((labels.size, 9)) < good, labels[:, None], random.integers(0, K, (labels.size, 9)))
    counts = np.stack([(votes == c).sum(axis=1) for c in range(K)], axis=1)
    instances, half = linmax.instances(votes=votes, classes=range(K)), labels.size // 2
    model = run("votes", instances[:half], [None] * half).model
    right = model.predict(instances[half:]) == labels[half:]
    assert right.mean() > np.mean(counts[half:].argmax(axis=1) == labels[half:])
    pool = model.engine.top.running
    assert pool.rows.tolist() == [half, 0.0]
    assert pool.unlabelled[:3, 1].min() > pool.unlabelled[3:, 1].max()
    model.run(instances[half:], labels[half:])
    assert pool.rows.tolist() == [half, labels.size - half]


@pytest.mark.small
def test_rows_without_labels_merge_and_grow() -> None:
    votes = trials(11, 5, 0)[0]
    whole = run("votes", instances_of(votes, np.zeros((TRIALS, 0, K))), [None] * TRIALS).model
    few = VoteFusion(classes=range(K), abstain=-1, learner="votes")
    few.partial_fit({f"v{i}": votes[:, i] for i in range(3)})
    pool = few._current_model.engine.top.running
    assert pool.unlabelled.shape == (3, 2)
    few.partial_fit({f"v{i}": votes[:, i] for i in range(5)})
    assert pool.unlabelled[3:, 0].tolist() == whole.engine.top.running.unlabelled[3:, 0].tolist()
    parts = [
        VoteFusion(classes=range(K), abstain=-1, learner="votes").partial_fit(votes[a:b]) for a, b in ((0, 9), (9, 20))
    ]
    merged = merge(parts)._current_model.engine.top.running
    own = [part._current_model.engine.top.running for part in parts]
    np.testing.assert_allclose(merged.unlabelled, own[0].unlabelled + own[1].unlabelled)
    assert merged.rows[0] == 20


@pytest.mark.small
def test_the_answer_is_the_most_probable_class() -> None:
    for kind in CASES:
        votes, scores, labels = CASES[kind]
        instances = instances_of(votes, scores)
        for size in (0, 3, TRIALS):
            model = run("votes", instances[:size], labels[:size]).model
            assert np.array_equal(model.predict(instances), model.scores(instances).argmax(axis=1))


@pytest.mark.small
def test_probabilities_and_their_logarithms_are_the_same_scores() -> None:
    """In three forms; and a rater votes for its highest class."""
    _, scores, labels = CASES["scores"]
    p = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    found = []
    for given in (p, np.log(p), log_shares(p)):
        model = run("votes", linmax.instances(scores=given, classes=range(K)), labels).model
        found.append(model.scores(linmax.instances(scores=given, classes=range(K))))
        pool = model.engine.top.running
        assert pool.voted[:, 1].tolist() == [int((p[:, i].argmax(axis=1) == labels).sum()) for i in range(3)]
        soft = run("votes", linmax.instances(scores=given[:0], classes=range(K)), labels[:0]).model
        agree = soft.scores(linmax.instances(scores=given, classes=range(K))).argmax(axis=1) == p.mean(axis=1).argmax(
            axis=1
        )
        assert agree.mean() > 0.9
    for other in found[1:]:
        agree = np.isclose(other, found[0], rtol=1e-3, atol=1e-3)
        assert agree.mean() > 0.99  # but for the refitted softmax, which sees scores as they are


@pytest.mark.small
def test_open_answers_count_nothing_by_class() -> None:
    votes, scores, labels = CASES["both"]
    model = run(mixture.VotesPool("open"), instances_of(votes, scores, False), labels).model
    pool = model.engine.top.running
    assert not pool.confused.size
    assert not pool.weights[mixture.WIDE == 1, pool.counts[mixture.NARROW] :].any()
    turned = (labels + 1) % K, np.where(votes < 0, -1, (votes + 1) % K), np.roll(scores, 1, axis=2)
    other = run(mixture.VotesPool("open"), instances_of(turned[1], turned[2], False), turned[0]).model
    np.testing.assert_allclose(
        other.scores(instances_of(turned[1], turned[2], False)),
        np.roll(model.scores(instances_of(votes, scores, False)), 1, axis=1),
        rtol=1e-6,
    )


@pytest.mark.small
def test_open_answers_are_weighed_by_a_power_of_accuracy() -> None:
    votes, _, labels = CASES["both"]
    pool = run(
        mixture.VotesPool("open"), instances_of(votes, np.zeros((len(votes), 0, K)), False), labels
    ).model.engine.top.running
    for voter, column in enumerate(votes.T):
        right, voted = ((column == labels) & (column >= 0)).sum(), (column >= 0).sum()
        expected = ((4.0 * 0.7 + right) / (4.0 + voted)) ** 8
        assert jury.weight_of(pool.struct, voter, K) == pytest.approx(expected)


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_confusions_are_learned() -> None:
    """Each voter takes one class for another that only it confuses: the votes tell more than how often it is right."""
    random = np.random.default_rng(5)
    labels = random.integers(0, 6, 1500)
    votes = np.stack([np.where(random.random(1500) < 0.7, (labels // 2) * 2, labels) for _ in range(4)], axis=1)
    votes[:, 3] = np.where(random.random(1500) < 0.9, (labels + 1) % 6, votes[:, 3])  # misleads in the same way
    wrong = run("votes", linmax.instances(votes=votes, classes=range(6)), labels).wrong
    logit = run("softmax(10)", linmax.instances(votes=votes, classes=range(6)), labels).wrong
    assert wrong[500:].mean() < 0.5 * logit[500:].mean()


@pytest.mark.small
def test_too_many_counts_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a size nothing is counted: there is no evidence, and all else goes on."""
    votes, scores, labels = trials(10, 5, 1)
    monkeypatch.setattr("linmax.learners.votes.evidence.MOST_COUNTS", 4 * K * K)
    model = run("votes", instances_of(votes[:20, :3], scores[:20]), labels[:20]).model
    running = model.engine.top.running
    assert running.confused.sum() == (votes[:20, :3] >= 0).sum() + 20  # a rater votes as well
    assert running.labelled.sum() == 20
    model.run(instances_of(votes[20:], scores[20:]), labels[20:], grow=True)
    assert not running.confused.size
    assert running.labelled.sum() == TRIALS
    assert np.isfinite(model.scores(instances_of(votes, scores))).all()


def test_the_best_member_leads_before_it_is_sure() -> None:
    """Of independent voters the logits with a narrow prior know the order first, at small scores."""
    random = np.random.default_rng(0)
    labels, accuracies = random.integers(0, K, 600), random.uniform(0.3, 0.7, 15)
    wrong = (labels[:, None] + random.integers(1, K, (600, 15))) % K
    votes = np.where(random.random((600, 15)) < accuracies, labels[:, None], wrong)
    model = run("votes", linmax.instances(votes=votes[:40]), labels[:40]).model
    counts = np.array([[np.sum(row == c) for c in range(K)] for row in votes[40:]])
    assert np.mean(model.predict(linmax.instances(votes=votes[40:])) == labels[40:]) > np.mean(
        counts.argmax(axis=1) == labels[40:]
    )
    assert model.engine.top.running.sharpness[1, 0] > 1.5
