"""The pools beyond the paper's: against the formulas, cut anywhere, grown, restored; naive Bayes and recent labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import linmax
from linmax import combine, parse, pool, run, stack, vr_combine
from linmax.datasets import majority_problem
from linmax.jit.compiling import JIT
from linmax.learners import naive_bayes, recent_label
from linmax.learners.attributes.pool import CHUNK
from reference_learners import ReferenceBayes, ReferencePool

TRIALS = 150 if JIT else 20
K = 3


def texts(seed: int = 0, trials: int = TRIALS, columns: int = 30, k: int = K) -> tuple[sparse.csr_array, np.ndarray]:
    """Counts of words, some of which go with a class."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, k, trials)
    rates = np.full((k, columns), 0.1)
    for c in range(k):
        rates[c, c::k] = 0.35
    return sparse.csr_array(random.poisson(rates[labels]).astype(float)), labels


def points(seed: int = 0, trials: int = TRIALS, columns: int = 4) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, K, trials)
    centres = random.normal(size=(K, columns))
    rows = 100.0 * (centres[labels] + random.normal(size=(trials, columns))) + 7.0
    rows[:, -1] = 5.0  # says nothing
    return rows, labels


SPARSE, DENSE = texts(), points()


@pytest.mark.small
@pytest.mark.parametrize("thresholds", [True, False])
@pytest.mark.parametrize(
    ("rows", "labels", "k"), [(*SPARSE, K), (*texts(k=20), 20), (*DENSE, K)], ids=["sparse", "many classes", "dense"]
)
def test_the_pool_for_attributes_agrees_with_the_formulas(
    rows: Any, labels: np.ndarray, k: int, thresholds: bool
) -> None:
    """To single precision, in which the members' weights are kept."""
    instances = linmax.instances(attributes=rows, classes=range(k), thresholds=thresholds)
    machine = run(f"attributes({'sparse' if sparse.issparse(rows) else 'dense'})", instances[:0], []).model
    running = machine.engine.top.running
    dense = rows.toarray() if sparse.issparse(rows) else rows
    slow = ReferencePool(sparse.issparse(rows), rows.shape[1], k, float(thresholds))
    for t in range(TRIALS):
        judged = machine.scores(instances[t : t + 1])[0]
        expected = slow.trial(dense[t], int(labels[t]))
        np.testing.assert_allclose(judged, expected if t else 0.0 * judged, rtol=1e-3, atol=1e-3)
        machine.run(instances[t : t + 1], labels[t : t + 1])
        for own, logit in zip(running.fusion.weights, slow.fusion.logits, strict=True):
            np.testing.assert_allclose(own, logit.weights, rtol=1e-3, atol=1e-3)
    if sparse.issparse(rows):
        assert running.groups["sparse"].met[0] == slow.members[2].seen.sum()  # attributes met


@pytest.mark.small
@pytest.mark.parametrize("learner", ["attributes", "auto"])
@pytest.mark.parametrize(("rows", "labels"), [SPARSE, DENSE], ids=["sparse", "dense"])
def test_cutting_the_trials_changes_no_bit(rows: Any, labels: np.ndarray, learner: str) -> None:
    instances = linmax.instances(attributes=rows, classes=range(K))
    whole = run(learner, instances, labels)
    pieces = run(learner, instances[:0], []).model
    predictions = []
    for begin, end in [(0, 1), (1, 7), (7, TRIALS)]:
        predictions += pieces.run(instances[begin:end], labels[begin:end]).predictions.tolist()
    assert predictions == whole.predictions.tolist()
    assert np.array_equal(pieces.scores(instances), whole.model.scores(instances))


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_longer_than_a_chunk() -> None:
    rows, labels = texts(3, 2 * CHUNK + 5)
    instances = linmax.instances(attributes=rows, classes=range(K))
    whole = run("attributes", instances, labels)
    pieces = run("attributes", instances[:1], labels[:1]).model
    found = [pieces.run(instances[t : t + 100], labels[t : t + 100]).predictions for t in range(1, len(labels), 100)]
    assert np.array_equal(whole.predictions[1:], np.concatenate(found))
    for name, array in whole.model.engine.arrays.items():
        assert np.array_equal(array, pieces.engine.arrays[name]), name


def hybrid(seed: int = 1) -> tuple[Any, np.ndarray]:
    rows, labels = texts(seed)
    random = np.random.default_rng(seed)
    votes = np.where(random.random((TRIALS, 5)) < 0.6, labels[:, None], random.integers(0, K, (TRIALS, 5)))
    return linmax.instances(votes=votes, attributes=rows, classes=range(K)), labels


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_a_hybrid_uses_both() -> None:
    instances, labels = hybrid()
    wrong = run("auto", instances, labels).wrong.mean()
    votes = run("auto", linmax.instances(votes=instances.votes, classes=range(K)), labels).wrong.mean()
    words = run("auto", linmax.instances(attributes=instances.csr, classes=range(K)), labels).wrong.mean()
    assert wrong < min(votes, words)


@pytest.mark.small
@pytest.mark.parametrize("kind", ["votes", "attributes", "hybrid"])
def test_auto_resumes(kind: str) -> None:
    both, labels = hybrid()
    instances = {
        "votes": linmax.instances(votes=both.votes, classes=range(K)),
        "attributes": linmax.instances(attributes=both.csr, classes=range(K)),
        "hybrid": both,
    }[kind]
    half = TRIALS // 2
    first = run("auto", instances[:half], labels[:half]).model
    second = run("auto", instances[:0], []).model
    second.engine.restore(first.engine.arrays)
    for machine in (first, second):
        machine.run(instances[half:], labels[half:])
    assert np.array_equal(first.scores(instances), second.scores(instances))


@pytest.mark.small
def test_auto_is_the_pool_for_what_there_is() -> None:
    both, labels = hybrid()
    for text, instances in (
        ("votes", linmax.instances(votes=both.votes, classes=range(K))),
        ("attributes", linmax.instances(attributes=both.csr, classes=range(K))),
    ):
        assert run("auto", instances, labels).predictions.tolist() == run(text, instances, labels).predictions.tolist()


@pytest.mark.small
@pytest.mark.parametrize("learner", ["attributes", "auto", "naive-bayes(0.1)"])
def test_new_words_and_classes(learner: str) -> None:
    """Known only when first met, or announced at once: the same."""
    rows, labels = texts(2)
    labels = np.sort(labels)
    half = int(np.flatnonzero(labels == 2)[0])
    early = rows[:half].toarray()
    early[:, -3:] = 0.0
    table = sparse.csr_array(np.vstack([early, rows[half:].toarray()]))
    instances = linmax.instances(attributes=table, classes=range(K))
    whole = run(learner, instances, labels, discover=True)
    begun = run(
        learner, linmax.instances(attributes=table[:half, :-3], classes=range(2)), labels[:half], discover=True
    ).model
    rest = begun.run(instances[half:], labels[half:], grow=True)
    assert rest.predictions.tolist() == whole.predictions[half:].tolist()


@pytest.mark.small
def test_auto_meets_attributes_late() -> None:
    both, labels = hybrid()
    half = TRIALS // 2
    machine = run("auto", linmax.instances(votes=both.votes[:half], classes=range(K)), labels[:half]).model
    trace = machine.run(both[half:], labels[half:], grow=True)
    assert len(trace) == TRIALS - half
    assert machine.predict(both).shape == (TRIALS,)


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_votes_beat_the_papers_pool() -> None:
    for noise in (0.0, 0.2):
        data, test = majority_problem(noise=noise, seed=11), majority_problem(noise=noise, trials=10000, seed=12)
        instances = linmax.instances(votes=data.votes)
        ours, papers = run("votes", instances, data.labels), run("vr-combine", instances, data.labels)
        assert ours.mistakes[-1] < papers.mistakes[-1]
        later = linmax.instances(votes=test.votes)
        errors = [np.mean(trace.model.predict(later) != test.labels) for trace in (ours, papers)]
        assert errors[0] <= errors[1] + 1e-9
        weights = run("auto", instances, data.labels).model.weights.arrays.voters
        assert weights[:10].min() > weights[10:].max()


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_scores_of_any_range() -> None:
    """Scores beyond 1 are what Winnow cannot take; the pool then does without."""
    random = np.random.default_rng(0)
    labels = random.integers(0, K, 300)
    scores = random.normal(size=(300, 4, K)) * 50.0
    scores[np.arange(300), :, labels] += 60.0
    trace = run("auto", linmax.instances(scores=scores, classes=range(K)), labels)
    best = scores.sum(axis=1).argmax(axis=1) != labels  # all raters are equally good
    assert trace.wrong[100:].sum() <= 1.3 * best[100:].sum()


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_drift_and_sorted_streams() -> None:
    rows, labels = texts(5, 1500)
    order = np.argsort(labels, kind="stable")
    assert run("attributes", linmax.instances(attributes=rows[order]), labels[order]).wrong.mean() < 0.02
    switched = np.where(np.arange(1500) < 750, labels, (labels + 1) % K)
    trace = run("attributes", linmax.instances(attributes=rows), switched)
    steady = run("attributes", linmax.instances(attributes=rows), labels)
    assert trace.wrong[1200:].mean() < steady.wrong[1200:].mean() + 0.1


@pytest.mark.small
def test_naive_bayes_by_hand() -> None:
    rows, labels = SPARSE
    table = rows.toarray()
    for attributes in (rows, table):
        instances = linmax.instances(attributes=attributes, classes=range(K))
        machine = run("naive-bayes(0.3)", instances[:0], []).model
        slow = ReferenceBayes(rows.shape[1], K, 0.3)
        for t in range(TRIALS):
            np.testing.assert_allclose(machine.scores(instances[t : t + 1])[0], slow.scores(table[t]), atol=1e-9)
            machine.run(instances[t : t + 1], labels[t : t + 1])
            slow.learn(table[t], int(labels[t]))
    with pytest.raises(ValueError, match="needs attributes >= 0, such as counts"):
        run("naive-bayes(0.1)", linmax.instances(attributes=-table), labels)
    with pytest.raises(ValueError, match="learns from attributes, and these instances have none"):
        run("naive-bayes(0.1)", linmax.instances(votes=labels.reshape(-1, 1)), labels)


@pytest.mark.small
def test_recent_labels() -> None:
    labels = ["a", "b", "b", "a", "a", "a"]
    instances = linmax.instances(attributes=np.zeros((6, 1)))
    assert run("recent-label(0)", instances, labels).predictions.tolist() == ["a", *labels[:-1]]
    assert run("recent-label(1)", instances, labels).predictions.tolist() == ["a", "a", "a", "b", "a", "a"]
    with pytest.raises(ValueError, match=r"decay must be in \[0, 1\], got 2; try 0.8"):
        recent_label(2)


@pytest.mark.small
def test_as_members() -> None:
    rows, labels = SPARSE
    instances = linmax.instances(attributes=rows, classes=range(K))
    alone = run("naive-bayes(0.1)", instances, labels)
    assert run(combine([naive_bayes(0.1)]), instances, labels).predictions.tolist() == alone.predictions.tolist()
    assert len(run(stack(["perceptron", "attributes", "recent-label(0.5)"], "arow"), instances, labels)) == TRIALS


def test_text() -> None:
    for text in ("votes", "attributes", "auto", "naive-bayes(0.25)", "recent-label(0.8)", "combine(auto, votes)"):
        assert str(parse(text)) == text
    assert str(pool("auto")) == "auto"
    assert str(vr_combine()) == "VR-combine"
    with pytest.raises(ValueError, match="kind must be one of votes, attributes, auto, got 'best'"):
        pool("best")
    with pytest.raises(ValueError, match="use 'votes', 'auto' or a rule"):
        run("attributes", linmax.instances(votes=[["a"]]), ["a"])


@pytest.mark.small
def test_copies_by_a_side_column() -> None:
    votes = [["a", "b"], ["b", None], ["a", "a"]]
    made = linmax.instances(votes=votes, by=["x", "y", None])
    assert made.voter_names == ("0", "1", "0 | x", "1 | x", "0 | y", "1 | y")
    assert made.sides == ("x", "y")
    expected = np.array([[1, 0, 0.15, 0, 0, 0], [0, 1, 0, 0.15, 0, 0]])
    np.testing.assert_allclose(made.matrix(0)[:, :6], expected)
    assert made.votes[2].tolist() == [0, 0, -1, -1, -1, -1]
    later = linmax.instances(votes=votes[:1], by=["z"], sides=made.sides)
    assert later.sides == ("x", "y", "z")
    assert later.layout.voters == 8
    assert linmax.instances(votes=votes, by=["x", "y", None], negated=True).layout.voters == 12
    with pytest.raises(ValueError, match="by must have one value per trial: got 1 for 3 trials"):
        linmax.instances(votes=votes, by=["x"])
    with pytest.raises(ValueError, match="by= requires votes, got none"):
        linmax.instances(attributes=[[1.0]], by=["x"])
    with pytest.raises(ValueError, match="by is not given; pass the column"):
        linmax.instances(votes=votes, sides=["x"])


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_side_information_helps_where_voters_are_specialists() -> None:
    random = np.random.default_rng(0)
    labels, side = random.integers(0, K, 1500), random.integers(0, 3, 1500)
    chance = np.where(side[:, None] == np.arange(6) % 3, 0.95, 0.35)
    votes = np.where(random.random((1500, 6)) < chance, labels[:, None], random.integers(0, K, (1500, 6)))
    plain, sided = (run("auto", linmax.instances(votes=votes, by=by), labels) for by in (None, side))
    assert sided.wrong.mean() < 0.8 * plain.wrong.mean()
