"""Second-order softmax, plain and robust: against the formulas, and as a part of larger learners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

import linmax
from linmax import combine, parse, run, stack
from linmax.datasets import majority_problem
from linmax.jit.compiling import JIT
from linmax.learners import robust_softmax, softmax
from linmax.learners import second_order as module
from reference_learners import ReferenceSoftmax, shares

TRIALS = 60 if JIT else 24
BOTH = pytest.mark.parametrize("text", ["softmax(0.1)", "robust-softmax(0.1)"])


def problems() -> dict[str, tuple[Any, np.ndarray]]:
    """Votes with abstentions, scores, dense and sparse attributes, and all of them."""
    random = np.random.default_rng(5)
    data = majority_problem(n=5, r=3, k=3, trials=TRIALS, noise=0.2, seed=2)
    votes = np.where(random.random(data.votes.shape) < 0.2, -1, data.votes)
    scores, dense = random.normal(size=(TRIALS, 2, 3)), random.normal(size=(TRIALS, 2))
    wide = sparse.random_array((TRIALS, 4), density=0.4, rng=random, format="csr")
    options: dict[str, Any] = {"classes": range(3), "abstain": -1}
    return {
        "votes": (linmax.instances(votes=votes, **options), data.labels),
        "scores": (linmax.instances(scores=scores, classes=range(3), thresholds=False), data.labels),
        "dense": (linmax.instances(attributes=dense, classes=range(3)), data.labels),
        "all": (linmax.instances(votes=votes, scores=scores, attributes=wide, split="all", **options), data.labels),
    }


PROBLEMS = problems()


def reference_of(text: str, n: int) -> ReferenceSoftmax:
    return ReferenceSoftmax(n, 0.1, text.startswith("robust"))


@pytest.mark.small
@BOTH
@pytest.mark.parametrize("kind", PROBLEMS)
def test_every_trial_agrees_with_the_formulas(text: str, kind: str) -> None:
    instances, labels = PROBLEMS[kind]
    machine = run(text, instances[:0], []).model
    slow = reference_of(text, instances.matrix(0).shape[1])
    for t in range(TRIALS):
        x = instances.matrix(t)
        np.testing.assert_allclose(machine.scores(instances[t : t + 1])[0], slow.scores(x), rtol=1e-4, atol=1e-5)
        machine.run(instances[t : t + 1], labels[t : t + 1])
        slow.learn(x, int(labels[t]))
        np.testing.assert_allclose(machine.weights.arrays.flat, slow.weights, rtol=1e-4, atol=1e-5)
    assert machine.trials == machine.updates == TRIALS
    assert machine.engine.top.running.guess[0] == pytest.approx(slow.guess, rel=1e-6)


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_a_refit_reaches_the_maximum() -> None:
    """The search stops when a step gains less than .02; nothing better than that plus a little is to be found."""
    data = majority_problem(n=6, r=3, k=4, trials=333, noise=0.3, seed=3)
    instances = linmax.instances(votes=data.votes, classes=range(4))
    machine = run("robust-softmax(0.1)", instances, data.labels).model
    slow = ReferenceSoftmax(10, 0.1, True)
    slow.seen = [(instances.matrix(t), int(data.labels[t])) for t in range(333)]
    running = machine.engine.top.running
    running._refit()
    found, guess = machine.weights.arrays.flat, float(running.guess[0])
    best = minimize(lambda v: -slow.posterior(v[:-1], v[-1])[0], np.append(found, guess), method="L-BFGS-B",
                    bounds=[(None, None)] * 10 + [(1e-6, 0.99)])  # fmt: skip
    assert -slow.posterior(found, guess)[0] < best.fun + 0.05


@pytest.mark.small
@BOTH
def test_cutting_the_trials_changes_no_bit(text: str) -> None:
    instances, labels = PROBLEMS["all"]
    whole = run(text, instances, labels)
    pieces = run(text, instances[:0], []).model
    predictions = []
    for begin, end in [(0, 1), (1, 2), (2, 13), (13, TRIALS)]:
        predictions += pieces.run(instances[begin:end], labels[begin:end]).predictions.tolist()
    assert predictions == whole.predictions.tolist()
    for name, array in whole.model.engine.arrays.items():
        assert np.array_equal(array, pieces.engine.arrays[name]), name


@pytest.mark.small
def test_a_state_can_be_restored() -> None:
    instances, labels = PROBLEMS["votes"]
    half = TRIALS // 2
    first = run("robust-softmax(0.1)", instances[:half], labels[:half]).model
    second = run("robust-softmax(0.1)", instances[:0], []).model
    second.engine.restore(first.engine.arrays)
    for machine in (first, second):
        machine.run(instances[half:], labels[half:])
    assert np.array_equal(first.weights.arrays.flat, second.weights.arrays.flat)


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_old_trials_are_folded_not_forgotten() -> None:
    """Half of the store is replaced by a parabola: the fit stays close to the one on all trials."""
    size = module.STORE + 2000
    data = majority_problem(n=6, r=3, k=3, trials=size, noise=0.2, seed=4)
    instances = linmax.instances(votes=data.votes, classes=range(3))
    machine = run("softmax(0.1)", instances, data.labels).model
    running = machine.engine.top.running
    assert running.sizes[module.COUNT] == module.STORE // 2 + 2000
    x = np.zeros((size, 3, 9))
    x[np.arange(size)[:, None], data.votes, np.arange(6)] = 1.0
    x[:, np.arange(3), 6 + np.arange(3)] = 1.0

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = x @ weights
        logs = scores - scores.max(axis=1, keepdims=True)
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        rows = np.arange(size)
        gradient = (np.exp(logs)[:, :, None] * x).sum(axis=(0, 1)) - x[rows, data.labels].sum(axis=0)
        return 0.05 * weights @ weights - logs[rows, data.labels].sum(), gradient + 0.1 * weights

    best = minimize(loss, np.zeros(9), jac=True, method="BFGS")
    np.testing.assert_allclose(machine.weights.arrays.flat, best.x, atol=0.02)


@pytest.mark.small
def test_many_coordinates_have_a_diagonal() -> None:
    """H_i <- H_i + variance of x_i under P, w_i <- w_i + g_i / H_i."""
    random = np.random.default_rng(1)
    size = 30 if JIT else 4
    table = random.normal(size=(size, module.FULL // 2))
    labels = random.integers(0, 3, size)
    machine = run("softmax(2)", linmax.instances(attributes=table, classes=range(3)), labels).model
    assert not machine.engine.top.running.full
    weights, curvature = np.zeros((module.FULL // 2 + 1, 3)), np.full((module.FULL // 2 + 1, 3), 2.0)
    for row, label in zip(np.hstack([np.ones((size, 1)), table]), labels, strict=True):
        p = shares(row @ weights)
        curvature += row[:, None] ** 2 * p * (1 - p)
        weights += row[:, None] * (np.eye(3)[label] - p) / curvature
    np.testing.assert_allclose(machine.weights.arrays.flat, weights.ravel(), rtol=1e-8, atol=1e-10)


@pytest.mark.small
@BOTH
def test_growth_is_as_if_all_had_always_been_there(text: str) -> None:
    """Two voters that abstain at first may as well be announced later."""
    labels = PROBLEMS["votes"][1]
    half = TRIALS // 2
    random = np.random.default_rng(8)
    late = random.integers(0, 3, (TRIALS, 2))
    late[:half] = -1
    votes = np.hstack([PROBLEMS["votes"][0].votes, late])
    whole = linmax.instances(votes=votes, classes=range(3), abstain=-1)
    early = linmax.instances(votes=votes[:half, :-2], classes=range(3), abstain=-1)
    grown = run(text, early, labels[:half]).model
    grown.run(whole[half:], labels[half:], grow=True)
    np.testing.assert_allclose(
        grown.weights.arrays.flat, run(text, whole, labels).model.weights.arrays.flat, rtol=1e-6, atol=1e-9
    )


@pytest.mark.small
@BOTH
def test_a_class_is_unknown_before_its_first_label(text: str) -> None:
    instances = linmax.instances(votes=[["b"], ["b"], ["c"], ["c"], ["b"]], classes=["a", "b", "c"])
    trace = run(text, instances, ["a", "b", "c", "c", "b"], discover="labels")
    assert trace.predictions.tolist()[:3] == [None, "a", trace.predictions[2]]
    assert trace.predictions[2] in ("a", "b")
    assert trace.predictions[3] == "c"


@pytest.mark.skipif(not JIT, reason="needs many trials")
@pytest.mark.parametrize(("noise", "most", "error"), [(0.0, 40, 0.0), (0.2, 1120, 0.205)])
def test_the_majority_problem(noise: float, most: int, error: float) -> None:
    """Mesterharm and Hsu print 34 mistakes without noise, for VR-Combine; the noise floor is .2."""
    data, test = majority_problem(noise=noise, seed=1), majority_problem(noise=noise, trials=20000, seed=2)
    trace = run("robust-softmax(0.1)", linmax.instances(votes=data.votes), data.labels)
    assert trace.mistakes[-1] <= most
    assert np.mean(trace.model.predict(linmax.instances(votes=test.votes)) != test.labels) <= error + 0.005


@pytest.mark.small
def test_members_of_combinations() -> None:
    instances, labels = PROBLEMS["votes"]
    alone = run("softmax(0.1)", instances, labels)
    for learner in (combine(["softmax(0.1)"]), combine([softmax(0.1)], how="weighted")):
        assert run(learner, instances, labels).predictions.tolist() == alone.predictions.tolist()
    mixed = run(combine(["perceptron", "softmax(0.1)", "robust-softmax(1)"]), instances, labels).model
    assert mixed.members[1].mistakes == alone.mistakes[-1]
    assert np.array_equal(mixed.members[1].weights.arrays.flat, alone.model.weights.arrays.flat)
    assert len(run(stack(["perceptron", softmax()], fusion=robust_softmax()), instances, labels)) == TRIALS


def test_notation_and_invalid_parameters() -> None:
    for text in ("softmax(0.1)", "robust-softmax(30)", "combine(softmax(0.1), perceptron)"):
        assert str(parse(text)) == text
    assert parse("Robust_Softmax") == robust_softmax(0.1)
    with pytest.raises(ValueError, match="prior must be > 0, got 0; try 0.1"):
        parse("softmax(0)")
    with pytest.raises(ValueError, match=r"average\(\) and recycle\(\) work on a rule"):
        run("A-softmax(0.1)", PROBLEMS["votes"][0], PROBLEMS["votes"][1])
    with pytest.raises(ValueError, match=r"vote\(\) needs hypotheses that are weights"):
        run("V-softmax(0.1)", PROBLEMS["votes"][0], PROBLEMS["votes"][1])
    huge = linmax.instances(attributes=np.full((10, 1), 1e200), classes=range(2))
    with pytest.raises(ValueError, match="scale the instances down"):
        run("softmax(0.1)", huge, [0, 1] * 5)


@pytest.mark.small
@BOTH
@pytest.mark.parametrize("by_class", [False, True])
def test_rows_of_very_different_sizes(text: str, by_class: bool) -> None:
    """The curvature is then indefinite by rounding, and a refit must get over it."""
    random = np.random.default_rng(3)
    table = random.normal(size=(109, 6))  # up to a refit
    labels = table[:, :3].argmax(axis=1)  # which no size changes
    table[random.random(109) < 0.3] *= 1e10
    order = np.argsort(labels, kind="stable") if by_class else np.arange(109)
    trace = run(text, linmax.instances(attributes=table[order], classes=range(3)), labels[order])
    assert np.isfinite(trace.model.weights.arrays.flat).all()
    running = trace.model.engine.top.running
    guess = float(running.guess[0])
    assert running._posterior(running.weights, guess)[0] >= module.ASTRAY * running._ignorance(guess)
