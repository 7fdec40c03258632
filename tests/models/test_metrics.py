"""Figures of predictions agree with scikit-learn's, however the rows are cut."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn import metrics as reference

import linmax
from linmax.cli import main
from linmax.models.metrics import balanced_weights


def problem(classes, rows=500, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(-1, classes, rows)
    scores = rng.normal(size=(rows, classes))
    scores[np.arange(rows), labels] += 1.0
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return labels, probabilities


@pytest.mark.parametrize("classes", [2, 5])
def test_figures_are_those_of_scikit_learn(classes):
    labels, probabilities = problem(classes)
    predicted = probabilities.argmax(axis=1)
    found = linmax.Evaluation([f"c{place}" for place in range(classes)])
    found.add(labels, predicted)
    found.rate(labels, probabilities)
    known = labels >= 0
    y, p, q = labels[known], predicted[known], probabilities[known]
    assert found.rows == len(y)
    assert found.error == pytest.approx(1.0 - reference.accuracy_score(y, p))
    assert found.balanced_accuracy == pytest.approx(reference.balanced_accuracy_score(y, p))
    assert found.log_loss == pytest.approx(reference.log_loss(y, q))
    assert found.majority_error == pytest.approx(1.0 - np.bincount(y).max() / len(y))
    precision, recall, _, rows = reference.precision_recall_fscore_support(y, p)
    for place in range(classes):
        expected = {"rows": rows[place], "precision": precision[place], "recall": recall[place]}
        assert found.of_class(f"c{place}") == pytest.approx(expected)
    assert found.auc == (pytest.approx(reference.roc_auc_score(y, q[:, 1]), abs=1e-4) if classes == 2 else None)
    confidence, right = q.max(axis=1), p == y
    error = 0.0
    for low in range(10):
        inside = (confidence * 10 >= low) & (confidence * 10 < low + 1)
        error += abs(confidence[inside].sum() - right[inside].sum()) / len(y)
    assert found.calibration_error == pytest.approx(error)


def test_parts_add_up():
    labels, probabilities = problem(2)
    names = ["a", "b"]
    whole, joined = linmax.Evaluation(names), linmax.Evaluation(names)
    whole.add(labels, probabilities.argmax(axis=1))
    whole.rate(labels, probabilities)
    for part in np.array_split(np.arange(len(labels)), 7):
        one = linmax.Evaluation(names)
        one.add(labels[part], probabilities[part].argmax(axis=1))
        one.rate(labels[part], probabilities[part])
        joined.join(one)
    found, expected = joined.to_dict(), whole.to_dict()
    assert found.pop("classes") == expected.pop("classes")
    assert found == pytest.approx(expected)
    assert linmax.Evaluation.from_state(names, whole.state()).error == whole.error


def test_a_label_never_learned_has_no_probability():
    found = linmax.Evaluation(["a", "b", "new"])
    found.add(np.array([0, 2]), np.array([0, -1]))
    found.rate(np.array([0, 2]), np.array([[0.5, 0.5], [0.9, 0.1]]))
    assert found.log_loss == pytest.approx((np.log(2.0) - np.log(1e-12)) / 2)
    assert found.of_class("new") == {"rows": 1, "precision": None, "recall": 0.0}


def test_nothing_counted():
    found = linmax.Evaluation([])
    assert (found.error, found.auc, found.log_loss, found.majority, found.balanced_accuracy) == (None,) * 5


@pytest.mark.parametrize("cuts", [[], [1], [3, 50, 51]])
def test_balanced_weights_row_by_row(cuts):
    labels = np.random.default_rng(1).choice([-1, 0, 1, 2], 80, p=[0.1, 0.7, 0.15, 0.05])
    expected, seen = [], []
    for label in labels.tolist():
        if label < 0:
            expected.append(1.0)
            continue
        seen.append(label)
        expected.append(len(seen) / (len({*seen}) * seen.count(label)))
    found, before = [], np.zeros(0, np.int64)
    for part in np.split(labels, cuts):
        found += balanced_weights(part, before).tolist()
        counts = np.bincount(part[part >= 0], minlength=len(before))
        counts[: len(before)] += before
        before = counts
    assert found == pytest.approx(expected)


@pytest.fixture
def rare(tmp_path, monkeypatch):
    """Rows of which few are of class yes, and that can hardly be told from the others."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 2))
    y = rng.random(3000) < 1.0 / (1.0 + np.exp(2.5 - x[:, 0]))
    lines = [f"{a:.3f},{b:.3f},{'yes' if label else 'no'}" for (a, b), label in zip(x, y, strict=True)]
    for name, part in (("train.csv", lines[:2000]), ("test.csv", lines[2000:])):
        (tmp_path / name).write_text("a,b,label\n" + "\n".join(part) + "\n", encoding="utf-8")


def learn(*options):
    arguments = ["learn", "train.csv", "--test", "test.csv", "--learner", "arow", "--json", "f.json", *options]
    assert main(arguments) == 0
    with open("f.json", encoding="utf-8") as file:
        return json.load(file)


def test_learn_reports_what_matters(rare, capsys):
    figures = learn()
    shown = capsys.readouterr().out
    assert f"Always predicting 'no' has error {figures['test']['majority_error']:.4f}" in shown
    assert f"AUC {figures['test']['auc']:.4f}" in shown
    assert "rows  precision  recall" in shown
    assert figures["test"]["error"] == figures["test_error"]
    assert figures["progressive"]["rows"] == figures["trials"]
    assert figures["progressive"]["mistakes"] == figures["mistakes"]
    assert figures["progressive"]["auc"] > 0.6


def test_class_weight_balanced(rare):
    plain, balanced = learn(), learn("--class-weight", "balanced")
    assert balanced["test"]["balanced_accuracy"] > plain["test"]["balanced_accuracy"] + 0.1
    assert balanced["test"]["classes"]["yes"]["recall"] > 0.5
    with open("train.csv", encoding="utf-8") as file:
        whole = file.read().splitlines()
    for name, part in (("one.csv", whole[:900]), ("two.csv", [whole[0], *whole[900:]])):
        with open(name, "w", encoding="utf-8") as file:
            file.write("\n".join(part) + "\n")
    options = ["--class-weight", "balanced", "--learner", "arow", "--json", "g.json"]
    assert main(["learn", "one.csv", "two.csv", *options]) == 0
    with open("g.json", encoding="utf-8") as file:
        assert json.load(file)["mistakes"] == balanced["mistakes"]  # however the rows are cut
