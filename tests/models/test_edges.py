"""Inputs at the edge of what makes sense, through every face: huge numbers, masked arrays, no columns at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from linmax import FusionClassifier, Learner, LinearMaxClassifier, VoteFusion, instances, rules, run
from linmax.theory import LinearThreshold, certify

# -- numbers whose squares overflow ----------------------------------------------------------------------------

TEXTS = {
    "balanced-winnow": "(1.5)",
    "committee": "(1.5)",
    "p-norm": "(2.5)",
    "quasi-additive": "(identity)",
    "winnow": "(1.5)",
}
LIFTED = [name + TEXTS.get(name, "") for name in rules.REGISTRY if name != "elimination"]
TOO_LARGE = r"(must be at most 1e\+100 in magnitude, got -?1e\+155 at trial 1 \(.*; scale the instances down)|needs (ratings|attributes)"


@pytest.mark.small
@pytest.mark.parametrize("text", [*LIFTED, "A-pa", "R-adagrad", "V-arow", "combine(pa, perceptron)"])
def test_huge_numbers_are_refused_by_every_rule(text: str) -> None:
    attributes = [[1.0, 0.5], [-1e155, 1.0], [0.0, 1.0]]
    for block in ({"attributes": attributes}, {"attributes": sparse.csr_array(attributes)}):
        with pytest.raises(ValueError, match=TOO_LARGE):
            run(text, instances(**block, classes=[0, 1]), [0, 1, 0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=TOO_LARGE):
        run(text, instances(scores=[[[0.5, 0.0]], [[1e155, 0.0]]]), [0, 1])
    learner = Learner(text, classes=["x", "y"])
    learner.learn({"a": 0.5}, label="x")
    for call in (learner.learn, lambda given, label: learner.predict(given)):
        with pytest.raises(
            ValueError, match=r"'a' must be at most 1e\+100 in magnitude, got 1e\+155; scale|needs attr"
        ):
            call({"a": 1e155}, label="y")
    assert learner.trials == 1


def test_huge_numbers_are_refused_by_every_face() -> None:
    huge = np.array([[1.0, 0.5], [1e155, 1.0], [0.0, 1.0]])
    threshold = LinearThreshold("pa", labels=(0, 1))
    with pytest.raises(ValueError, match=TOO_LARGE):
        threshold.run(huge, [0, 1, 0])
    machine = run("pa", instances(attributes=huge[:1], classes=[0, 1]), [0]).model
    before = machine.weights.arrays.flat.tolist()
    for call in (machine.predict, lambda given: machine.run(given, [0, 1, 0])):
        with pytest.raises(ValueError, match=TOO_LARGE):
            call(instances(attributes=huge, classes=[0, 1]))
    assert machine.weights.arrays.flat.tolist() == before
    for scale in ("max", None):
        with pytest.raises(ValueError, match=r"must be at most 1e\+100 in magnitude, got 1e\+155"):
            LinearMaxClassifier("pa", scale=scale).fit(huge, [0, 1, 0])
    scaled = run("pa", instances(attributes=huge, classes=[0, 1], scale="max"), [0, 1, 0])
    assert np.isfinite(scaled.model.weights.arrays.flat).all()


# -- masked arrays -----------------------------------------------------------------------------------------------

MASK = [[False, False], [True, False], [False, False]]
NUMBERS = np.ma.array([[0.1, 0.2], [0.9, 0.4], [0.5, 0.6]], mask=MASK)
VOTES = np.ma.array([[0, 1], [1, 1], [1, 0]], mask=MASK)
LABELS = np.ma.array([0, 1, 0], mask=[False, True, False])
CUBE = np.ma.array(np.zeros((3, 2, 2)) + 0.5, mask=np.repeat(np.array(MASK)[:, :, None], 2, axis=2))
PLAIN = NUMBERS.data


@pytest.mark.small
@pytest.mark.parametrize(
    "call",
    [
        lambda: instances(attributes=NUMBERS),
        lambda: instances(attributes=list(NUMBERS)),
        lambda: instances(scores=CUBE),
        lambda: instances(scores=list(CUBE)),
        lambda: run("perceptron", instances(attributes=PLAIN), LABELS),
        lambda: run("perceptron", instances(attributes=PLAIN), list(LABELS)),
        lambda: certify(instances(attributes=PLAIN), LABELS, "perceptron"),
        lambda: LinearThreshold("perceptron").run(NUMBERS, [0, 1, 0]),
        lambda: LinearThreshold("perceptron").run(PLAIN, LABELS),
        lambda: LinearMaxClassifier("perceptron").fit(NUMBERS, [0, 1, 0]),
        lambda: LinearMaxClassifier("perceptron").fit(PLAIN, LABELS),
        lambda: LinearMaxClassifier("perceptron").partial_fit(PLAIN, LABELS, classes=[0, 1]),
        lambda: LinearMaxClassifier("perceptron").fit(PLAIN, [0, 1, 0]).predict(NUMBERS),
        lambda: FusionClassifier([("a", LinearMaxClassifier("pa"))]).fit(NUMBERS, [0, 1, 0]),
        lambda: FusionClassifier([("a", LinearMaxClassifier("pa"))]).fit(PLAIN, LABELS),
        lambda: VoteFusion("perceptron").fit(VOTES, LABELS),
        lambda: VoteFusion("perceptron").fit(CUBE, [0, 1, 0]),
        lambda: VoteFusion("perceptron").fit(list(CUBE), [0, 1, 0]),
        lambda: VoteFusion("perceptron").fit({"a": CUBE[:, 0], "b": CUBE[:, 1]}, [0, 1, 0]),
        lambda: Learner("perceptron").learn({"a": 1.0}, label=np.ma.masked),
    ],
)
@pytest.mark.filterwarnings("ignore:.*masked element")
def test_masked_numbers_and_labels_are_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(
        (ValueError, TypeError),
        match=r"is masked; fill or drop it|must be finite|finite number|label must be hashable, got masked",
    ):
        call()


@pytest.mark.small
def test_masked_votes_abstain() -> None:
    plain = [[0, 1], [None, 1], [1, 0]]
    for votes in (VOTES, list(VOTES)):
        assert instances(votes=votes).votes.tolist() == instances(votes=plain).votes.tolist()
        fused = VoteFusion("perceptron").fit(votes, [0, 1, 0])
        assert fused.predict(votes).tolist() == VoteFusion("perceptron").fit(plain, [0, 1, 0]).predict(plain).tolist()
    named = {"a": VOTES[:, 0], "b": VOTES[:, 1]}
    assert VoteFusion("perceptron").fit(named, [0, 1, 0]).predict(named).tolist() == fused.predict(VOTES).tolist()
    first, second = Learner("perceptron"), Learner("perceptron")
    for masked, row, label in zip(VOTES, plain, [0, 1, 0], strict=True):
        first.learn(votes=dict(zip("ab", masked, strict=True)), label=label)
        second.learn(votes=dict(zip("ab", row, strict=True)), label=label)
    assert first.weights == second.weights


@pytest.mark.small
def test_masks_that_hide_nothing_change_nothing() -> None:
    attributes, labels = np.ma.array(PLAIN), np.ma.array([0, 1, 0])
    assert run("pa", instances(attributes=attributes), labels).predictions.tolist() == (
        run("pa", instances(attributes=PLAIN), [0, 1, 0]).predictions.tolist()
    )
    assert LinearMaxClassifier("pa").fit(attributes, labels).predict(attributes).shape == (3,)


# -- no columns --------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("text", [*LIFTED, "A-pa", "R-pa", "V-pa", "vr-combine", "auto", "softmax(0.1)"])
@pytest.mark.parametrize("thresholds", [True, False])
def test_instances_of_nothing(text: str, thresholds: bool) -> None:
    """Thresholds alone learn the commonest class (but for the pool); nothing at all predicts the smallest."""
    for block in (
        {"attributes": np.zeros((4, 0))},
        {"attributes": sparse.csr_array((4, 0))},
        {"attributes": [{}] * 4},
        {"votes": np.zeros((4, 0), int)},
        {"votes": [[]] * 4},
        {"scores": np.zeros((4, 0, 2))},
    ):
        trace = run(text, instances(**block, classes=["a", "b"], thresholds=thresholds), ["b"] * 4)  # type: ignore[arg-type]
        assert trace.predictions.tolist()[-1] == ("b" if thresholds and text != "auto" else "a")
        assert len(trace.model.predict(instances(**block, classes=["a", "b"], thresholds=thresholds))) == 4  # type: ignore[arg-type]
    learner = Learner(text, classes=["a", "b"], thresholds=thresholds)
    for given in ({"attributes": {}}, {"votes": {}}, {"scores": {}}, {"attributes": {}}):
        learner.learn(**given, label="b")  # type: ignore[arg-type]
    assert learner.predict({}) == ("b" if thresholds and text != "auto" else "a")


def test_faces_without_columns() -> None:
    nothing = np.zeros((4, 0))
    with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(4, 0\)\) while a minimum of 1 is required"):
        LinearMaxClassifier("pa").fit(nothing, [0, 1, 0, 1])
    for votes in (nothing, [[]] * 4, {}, np.zeros((4, 0, 2))):
        with pytest.raises(ValueError, match="votes must have at least one trial and one voter"):
            VoteFusion("perceptron").fit(votes, [0, 1, 0, 1])
    trace = LinearThreshold("perceptron").run(nothing, [0, 1, 0, 1])
    assert len(trace.predictions) == 4


# -- ties ----------------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("text", ["perceptron", "pa-i(0.1)", "A-pa-i(0.1)", "adagrad", "perceptron(margin=1)"])
def test_ties_that_are_no_updates(text: str) -> None:
    """Without updates on ties a tied right prediction is left alone by every rule; small leads are its own affair."""
    given = instances(attributes=[[1.0], [1.0], [1.0], [1.0]], classes=["a", "b"], thresholds=False)
    labels = ["a", "b", "a", "a"]  # a tie that is right, a tie that is wrong, then mistakes and small margins
    assert run(text, given, labels).changed.tolist()[:2] == [True, True]
    trace = run(text, given, labels, update_on_tie=False)
    assert trace.predictions.tolist()[:3] == ["a", "a", "b"]
    assert trace.changed.tolist()[:3] == [False, True, True]
    learner = Learner(text, classes=["a", "b"], thresholds=False, update_on_tie=False)
    assert [learner.learn({"x": 1.0}, label=label) for label in labels] == trace.predictions.tolist()
    small = instances(attributes=[[0.1]] * 3, classes=["a", "b"], thresholds=False)
    again = run(text, small, ["b", "b", "b"], update_on_tie=False)
    assert again.changed.tolist() == [True, text != "perceptron", again.changed[2]]
