"""Right or wrong alone: B-L through every interface, and its bound in the mean."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import linmax
from linmax.theory import adversaries, bounds

DATA = linmax.datasets.majority_problem(n=9, r=3, k=4, trials=400, noise=0.05, seed=3)
VOTES = linmax.instances(votes=DATA.votes)
CLASSES = sorted(set(DATA.labels.tolist()))


@pytest.mark.parametrize("learner", ["B-perceptron", "B(gamma=0.3)AR-winnow(1.2)", "B(gamma=0.05)-auto"])
def test_the_same_however_trials_are_cut_and_saved(learner: str, tmp_path: Path) -> None:
    trace = linmax.run(learner, VOTES, DATA.labels)
    one_by_one = linmax.Learner(learner, classes=CLASSES)
    found = []
    for t, (votes, label) in enumerate(zip(DATA.votes.tolist(), DATA.labels.tolist(), strict=True)):
        if t == 200:
            one_by_one.save(tmp_path / "bandit.model")
            one_by_one = linmax.Learner.load(tmp_path / "bandit.model")
        found.append(one_by_one.learn(votes=votes, label=label))
    assert found == trace.predictions.tolist()
    assert trace.model.labels_used == one_by_one._current_model.labels_used < 400
    fusion = linmax.VoteFusion(learner, classes=CLASSES)
    for begin, end in [(0, 1), (1, 2), (2, 150), (150, 400)]:
        fusion.partial_fit(DATA.votes[begin:end], DATA.labels[begin:end])
    assert fusion.labels_used_ == trace.model.labels_used
    assert fusion.report().online.mistakes == trace.mistakes[-1]


@pytest.mark.parametrize("learner", ["B-perceptron", "B(gamma=0.2)R-winnow(1.2)", "B-softmax"])
def test_right_and_wrong_are_all_that_it_uses(learner: str) -> None:
    """With labels, and with nothing but the answer to "is it this class?", the same is learned."""
    trace = linmax.run(learner, VOTES, DATA.labels)
    told = linmax.Learner(learner, classes=CLASSES)
    tried = []
    for votes, label in zip(DATA.votes.tolist(), DATA.labels.tolist(), strict=True):
        tried.append(told.explore(votes=votes))
        assert told.explore(votes=votes) == tried[-1]  # until the next trial
        told.learn(votes=votes, **({"label": label} if tried[-1] == label else {"wrong": tried[-1]}))
    assert tried == trace.predictions.tolist()
    assert told.weights.arrays.flat == pytest.approx(trace.model.weights.arrays.flat, rel=1e-12, abs=1e-12)
    fusion = linmax.VoteFusion(learner, classes=CLASSES)
    wrong = trace.predictions != DATA.labels
    for t in range(400):  # the first trial of a fusion has no model that could be told
        fusion.partial_fit(DATA.votes[t : t + 1], [tried[t]], wrong=wrong[t : t + 1]) if t else fusion.partial_fit(
            DATA.votes[:1], DATA.labels[:1]
        )
    assert fusion.predict(DATA.votes).tolist() == trace.model.predict(VOTES).tolist()


@pytest.mark.small
def test_two_classes_need_no_draws() -> None:
    data = linmax.datasets.majority_problem(n=7, r=3, k=2, trials=200, noise=0.1, seed=2)
    votes = linmax.instances(votes=data.votes)
    plain, bandit = (linmax.run(text, votes, data.labels) for text in ("perceptron", "B(gamma=0)-perceptron"))
    assert plain.predictions.tolist() == bandit.predictions.tolist()
    assert bandit.model.labels_used == 200
    assert (plain.bound(data.target, 0.1) == bandit.bound(data.target, 0.1)).all()


@pytest.mark.small
def test_draws_are_uniform_with_given_frequency() -> None:
    votes = linmax.instances(votes=[["a"]] * 3000, classes=["a", "b", "c"])
    tried = linmax.run("B(gamma=0.6)-perceptron", votes, ["a"] * 3000).predictions[100:]  # a is soon predicted
    shares = [float(np.mean(tried == name)) for name in "abc"]
    assert shares == pytest.approx([0.6, 0.2, 0.2], abs=0.03)
    model = linmax.run("B(gamma=0.6)-perceptron", votes, ["a"] * 3000).model
    assert set(model.predict(votes)) == {"a"}  # predict never draws


@pytest.mark.small
def test_wrong_class_in_rule_and_pool() -> None:
    said = {"x": 1.0}
    rule = linmax.Learner("B(gamma=0)-perceptron", classes=list("abc"))
    pool = linmax.Learner("B(gamma=0)-softmax", classes=list("abc"))
    for learner in (rule, pool):
        before = learner.predict(said)
        learner.learn(said, wrong=before)
        assert learner.trials == 1
    assert not rule.weights.arrays.flat.any()
    assert rule.predict(said) == "a"
    assert pool.predict(said) != "a"
    rule.learn(said, label="a")  # tied, and right: learned only if it was drawn
    assert not rule.weights.arrays.flat.any()
    assert rule._current_model.labels_used == 0


@pytest.mark.small
def test_a_new_class_is_learned_and_ids_wait() -> None:
    learner = linmax.Learner("B(gamma=0)-perceptron")
    for label in "abcd":
        learner.learn({label: 1.0}, label=label)
    assert learner._current_model.known == list("abcd")
    assert learner._current_model.labels_used == 4
    learner.predict({"a": 1.0}, id=1)
    assert learner.learn(id=1, wrong="d") is not None
    assert learner.trials == 5
    with pytest.raises(ValueError, match="id 1 has had its label already"):
        learner.learn(id=1, wrong="d")
    assert linmax.Learner("perceptron", classes=["x", "y"]).explore({"f": 1.0}) == "x"  # any other learner: predict
    assert linmax.Learner("B-perceptron").explore({"f": 1.0}) is None


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "words"),
    [("B(gamma=1.5)-pa", "gamma must lie from 0 to 1"), ("B(seed=-1)-pa", "seed must be"), ("B(c=1)-pa", "no option")],
)
def test_bad_parameters_are_named(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        linmax.parse(text)


def below(made: np.ndarray, bound: float) -> bool:
    """Whether a mean is at most so much, up to three standard errors."""
    return bool(made.mean() - 3.0 * made.std() / math.sqrt(len(made)) <= bound)


@pytest.mark.parametrize(("rule", "noise"), [("perceptron", 0.0), ("p-norm(3)", 0.05), ("balanced-winnow(1.2)", 0.05)])
def test_the_mean_stays_below_the_bound(rule: str, noise: float) -> None:
    data = linmax.datasets.majority_problem(n=6, r=3, k=3, noise=noise, trials=800, seed=5)
    votes = linmax.instances(votes=data.votes)
    for gamma in (0.15, 0.6):
        traces = [linmax.run(f"B(gamma={gamma}, seed={seed})-{rule}", votes, data.labels) for seed in range(10)]
        made = np.array([trace.mistakes for trace in traces])
        found = linmax.theory.certify(votes, data.labels, f"B(gamma={gamma})-{rule}")
        bound = traces[0].bound(found.u, found.margin)
        assert bound[-1] >= found.bound * (1.0 - 1e-6)  # equal but for Balanced Winnow, whose u may be shorter
        assert all(below(made[:, t], bound[t]) for t in (10, 100, 799))
        assert linmax.theory.certify(votes, data.labels, rule).bound < found.bound


def adversarial(rule: str, k: int, gamma: float, trials: int, seed: int) -> tuple[int, int]:
    """Mistakes, and wrong predictions among them, against instances orthogonal to the weights."""
    u, margin = np.eye(20)[0], 0.3
    adversary = adversaries.orthogonal(u, margin, seed=seed)
    model, wrong, predicted = None, 0, 0
    for _ in range(trials):
        z = adversary(np.zeros(20) if model is None else model.weights.arrays.flat)
        scores, labels = adversaries.as_scores([u if z is None else z], k)
        instance = linmax.instances(scores=scores, classes=range(k), thresholds=False)
        predicted += 1 if model is None else int(model.predict(instance)[0] != k - 1)
        if model is None:
            trace = linmax.run(f"B(gamma={gamma}, seed={seed})-{rule}", instance, labels)
            model = trace.model
        else:
            trace = model.run(instance, labels)
        wrong += int(trace.wrong[0])
    return wrong, predicted


def test_an_adversary_reaches_the_bound_and_does_not_break_it() -> None:
    k, gamma, trials = 3, 0.5, 150
    made = np.array([adversarial("perceptron", k, gamma, trials, seed) for seed in range(15)])
    bound = bounds.bandit(bounds.perceptron, trials, k, gamma, radius=1.0, norm=1.0, margin=0.3)
    of_predictions = bounds.perceptron(1.0, 1.0, 0.3) * k / gamma
    assert below(made[:, 0], bound)
    assert below(made[:, 1], of_predictions)
    assert made[:, 1].mean() > 0.8 * of_predictions  # so that the factor k/gamma is no slack of the proof


def test_the_bound_is_the_formula() -> None:
    kept = {"radius": 2.0, "norm": 1.0, "margin": 0.5}
    full = bounds.perceptron(noise=0.02 / 4 * 3.0, **kept)
    expected = 0.02 * 0.75 * 1000 + 0.98 * full / (0.02 / 4)
    assert bounds.bandit(bounds.perceptron, 1000, 4, 0.02, noise=3.0, **kept) == pytest.approx(expected, rel=1e-12)
    with_radius = bounds.perceptron(2.0 * math.sqrt(4 / 0.02), 1.0, 0.5, 3.0)
    assert full / (0.02 / 4) == pytest.approx(with_radius, rel=1e-12)
    assert bounds.bandit(bounds.perceptron, 1000, 2, 0.5, noise=3.0, **kept) == pytest.approx(
        250.0 + 0.5 * bounds.perceptron(noise=3.0, **kept)
    )
    assert bounds.bandit(bounds.perceptron, 1000, 4, 1.0, **kept) == 750.0
    assert math.isinf(bounds.bandit(bounds.perceptron, 1000, 4, 0.0, **kept))
    best = bounds.best_bandit_gamma(bounds.perceptron, 10**6, 4, noise=3.0, **kept)
    least = bounds.bandit(bounds.perceptron, 10**6, 4, best, noise=3.0, **kept)
    assert all(
        least <= bounds.bandit(bounds.perceptron, 10**6, 4, g, noise=3.0, **kept) for g in np.linspace(0.001, 1, 500)
    )
    assert bounds.best_bandit_gamma(bounds.perceptron, 10**6, 2, **kept) == 0.0
    for words, bad in (("gamma must lie", {"gamma": 1.5}), ("classes must be", {"classes": 1})):
        with pytest.raises(ValueError, match=words):
            bounds.bandit(bounds.perceptron, **({"trials": 10, "classes": 3, "gamma": 0.1} | bad), **kept)


def test_certificates_of_expected_mistakes() -> None:
    certificate = linmax.theory.certify(VOTES, DATA.labels, "B(gamma=0.5)-perceptron")
    assert certificate.expected
    assert "in the mean" in str(certificate)
    for learner, words in (
        ("B-arow", "a rule that updates on mistakes only"),
        ("B-perceptron(margin=1)", "a rule that updates on mistakes only"),
        ("B-R-perceptron", "a rule that updates on mistakes only"),
        ("B(gamma=0)-perceptron", "it may never see a label"),
    ):
        with pytest.raises(ValueError, match=words):
            linmax.theory.certify(VOTES, DATA.labels, learner.replace("B-R-", "BR-"))
    found = linmax.run("B-perceptron", VOTES, DATA.labels, discover=True)
    with pytest.raises(ValueError, match="all classes known from the start"):
        found.bound(DATA.target)
