"""The weights that pools answer with: the linear form, through every face."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import linmax
from linmax import StreamModel, run
from linmax.jit.compiling import JIT
from linmax.models.sklearn import LinearMaxClassifier
from linmax.river import LinearMaxClassifier as RiverClassifier

TRIALS = 400 if JIT else 40
K = 3


def texts(seed: int = 0) -> tuple[sparse.csr_array, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, K, TRIALS)
    rates = np.full((K, 30), 0.1)
    for c in range(K):
        rates[c, c::K] = 0.5
    return sparse.csr_array(random.poisson(rates[labels]).astype(float)), labels


def points(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, K, TRIALS)
    return 100.0 * (np.eye(K)[labels] + 0.4 * random.normal(size=(TRIALS, K))) + 7.0, labels


def rows_of(table: Any, labels: np.ndarray) -> list[tuple[dict[str, float], str]]:
    dense = table.toarray()
    return [
        ({f"w{j}": float(row[j]) for j in np.flatnonzero(row)}, "abc"[c]) for row, c in zip(dense, labels, strict=True)
    ]


@pytest.mark.small
@pytest.mark.parametrize("dense", [True, False])
def test_those_of_naive_bayes_give_its_scores(dense: bool) -> None:
    table, labels = texts()
    rows = table.toarray()
    instances = linmax.instances(attributes=rows if dense else table, classes=range(K))
    model = run("naive-bayes(0.3)", instances, labels).model
    arrays = model.weights.arrays
    assert not arrays.thresholds.any()
    np.testing.assert_allclose(rows @ arrays.attributes, model.scores(instances), rtol=1e-9, atol=1e-9)


@pytest.mark.skipif(not JIT, reason="needs many trials")
@pytest.mark.parametrize("learner", ["attributes", "auto", "combine(auto, perceptron)"])
def test_the_linear_form_mostly_decides_as_the_pool_does(learner: str) -> None:
    table, labels = texts()
    words = learner.replace("attributes", "attributes(sparse)").replace("auto", "auto(sparse)")
    model = run(words, linmax.instances(attributes=table, classes=range(K)), labels).model
    x = np.log1p(table.toarray())
    x /= np.linalg.norm(np.hstack([x, np.full((TRIALS, 1), np.log(2.0))]), axis=1, keepdims=True)
    arrays = model.weights.arrays
    np.testing.assert_allclose(arrays.attributes.sum(axis=1), 0.0, atol=1e-5)
    linear = (x @ arrays.attributes + arrays.thresholds).argmax(axis=1)
    assert np.mean(linear == model.predict(linmax.instances(attributes=table, classes=range(K)))) > 0.9

    points_, labels = points()
    model = run(learner, linmax.instances(attributes=points_, classes=range(K)), labels).model
    arrays = model.weights.arrays
    linear = (((points_ - points_.mean(axis=0)) / points_.std(axis=0)) @ arrays.attributes + arrays.thresholds).argmax(
        1
    )
    assert np.mean(linear == model.predict(linmax.instances(attributes=points_, classes=range(K)))) > 0.9


def for_its_class(weights: Any, classes: str = "abc") -> float:
    """How often the words of a class have their largest weight there."""
    found = [max(row, key=row.get) == classes[int(name.split("w")[-1]) % K] for name, row in weights.items()]
    return float(np.mean(found))


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_every_face() -> None:
    rows = rows_of(*texts())
    learner = linmax.Learner()
    assert dict(learner.weights)["attributes"] == {}
    for row, label in rows:
        learner.learn(row, label=label)
    assert for_its_class(learner.weights["attributes"]) > 0.9
    assert set(learner.weights["thresholds"]) == set("abc")

    lines = [f"{label} |x {' '.join(f'{name}:{value}' for name, value in row.items())}" for row, label in rows]
    model = StreamModel()
    assert model.weights["attributes"] == {}
    for batch in linmax.stream(lines, model=model):
        model.learn(batch)
    assert for_its_class(model.weights["attributes"]) > 0.9

    river = RiverClassifier("auto")
    for row, label in rows:
        river.learn_one(row, label)
    assert for_its_class(river._learner.weights["attributes"]) > 0.9


@pytest.mark.small
def test_numbers_and_words_of_one_table() -> None:
    values, labels = points()
    lines = [
        "x,y,z,word,label",
        *(f"{a},{b},{c},{'uvw'[y]},{'abc'[y]}" for (a, b, c), y in zip(values, labels, strict=True)),
    ]
    model = StreamModel()
    for batch in linmax.stream(lines, model=model, format="csv"):
        model.learn(batch)
    weights = model.weights["attributes"]
    assert list(weights)[:3] == ["x", "y", "z"]
    for name, label in (("x", "a"), ("y", "b"), ("z", "c"), ("word=u", "a"), ("word=v", "b"), ("word=w", "c")):
        assert max(weights[name], key=weights[name].get) == label


@pytest.mark.small
def test_votes_with_attributes() -> None:
    table, labels = texts()
    random = np.random.default_rng(1)
    chances = np.array([0.95, 0.3, 0.3])
    votes = np.where(random.random((TRIALS, 3)) < chances, labels[:, None], random.integers(0, K, (TRIALS, 3)))
    model = run("auto", linmax.instances(votes=votes, attributes=table, classes=range(K)), labels).model
    weights = model.weights
    assert weights.arrays.voters.argmax() == 0
    assert weights.arrays.attributes.shape == (30, K)
    if JIT:
        found = weights.arrays.attributes.argmax(axis=1) == np.arange(30) % K
        assert found.mean() > 0.9


@pytest.mark.small
def test_what_has_none() -> None:
    values, labels = points()
    instances = linmax.instances(attributes=values, classes=range(K))
    with pytest.raises(ValueError, match="looks at labels only, and has no weights"):
        _ = run("recent-label(0.8)", instances, labels).model.weights
    with pytest.raises(ValueError, match="not a single weight vector"):
        _ = run("stack(perceptron, arow)", instances, labels).model.weights
    fitted = LinearMaxClassifier("stack(perceptron, arow)").fit(values, labels)
    with pytest.raises(AttributeError, match="several weight vectors"):
        _ = fitted.coef_
