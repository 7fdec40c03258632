"""Tables with text, categories, booleans, dates and missing values mean the same in every interface."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import linmax


def frame(rows=600, seed=0):
    rng = np.random.default_rng(seed)
    found = pd.DataFrame(
        {
            "size": rng.normal(size=rows).round(3),
            "color": rng.choice(["red", "green", "blue"], rows),
            "ok": rng.random(rows) < 0.5,
            "kind": pd.Categorical(rng.choice(list("abcd"), rows)),
        }
    )
    found.loc[::7, "size"] = np.nan
    found.loc[::11, "color"] = None
    labels = np.where((found["color"] == "red") ^ (found["size"].fillna(0.0) > 0.5), "yes", "no")
    return found, labels


LEARNER = "A-perceptron"


def fitted(table, labels, learner=LEARNER, scale=None):
    return linmax.LinearMaxClassifier(learner, scale=scale).partial_fit(table, labels)


def test_pandas_polars_and_arrow_give_the_same_model():
    table, labels = frame()
    first = fitted(table, labels)
    for other in (pl.from_pandas(table), pa.Table.from_pandas(table)):
        found = fitted(other, labels)
        assert found.mistakes_ == first.mistakes_
        np.testing.assert_array_equal(found.predict_proba(other), first.predict_proba(table))
    assert first.feature_names_in_.tolist() == ["size", "color", "ok", "kind"]
    assert first.n_features_in_ == 4
    assert first.score(table, labels) > 0.75


@pytest.mark.parametrize("scale", ["standard", "max", "none"])
def test_the_estimator_reads_as_a_stream_does(scale):
    table, labels = frame()
    model = linmax.StreamModel(LEARNER, scale=scale)
    for batch in linmax.stream(table.assign(label=labels), model=model):
        model.learn(batch)
    assert fitted(table, labels, scale=scale).mistakes_ == model.mistakes


def test_rows_are_the_same_one_by_one():
    """A `Learner` and River read a row of a table as the estimator does."""
    pytest.importorskip("river")
    from linmax import river

    table, labels = frame(200)
    learner, online = linmax.Learner(LEARNER), river.LinearMaxClassifier(LEARNER, scale="none")
    for row, label in zip(table.to_dict("records"), labels, strict=True):
        learner.learn(row, label=label)
        online.learn_one(row, label)
    assert learner.mistakes == online.mistakes == fitted(table, labels, scale="none").mistakes_


def test_calls_may_be_cut_anywhere():
    table, labels = frame()
    whole, cut = fitted(table, labels), fitted(table[:5], labels[:5])
    cut.partial_fit(table[5:90], labels[5:90]).partial_fit(table[90:], labels[90:])
    np.testing.assert_array_equal(cut.predict_proba(table), whole.predict_proba(table))


def test_a_category_never_seen_changes_nothing():
    table, labels = frame()
    model = fitted(table, labels)
    before = model.predict_proba(table)
    new = table.assign(color="violet")
    np.testing.assert_array_equal(model.predict_proba(new), model.predict_proba(table.assign(color=None)))
    np.testing.assert_array_equal(model.predict_proba(table), before)


def test_dates_are_left_out_with_a_warning():
    table, labels = frame()
    dated = table.assign(when=pd.date_range("2024-01-01", periods=len(table)))
    with pytest.warns(UserWarning, match="Ignored, being dates or times: 'when'"):
        model = fitted(dated, labels)
    assert model.mistakes_ == fitted(table, labels).mistakes_
    learner = linmax.Learner("perceptron")
    with pytest.warns(UserWarning, match="'when' holds dates or times"):
        learner.learn({"when": pd.Timestamp("2024-01-01"), "x": 1.0}, label="a")
    assert list(learner.attributes) == ["x"]


def test_saved_and_pickled(tmp_path):
    table, labels = frame()
    model = linmax.LinearMaxClassifier("auto", max_iter=1).fit(table, labels)
    expected = model.predict_proba(table)
    model.save(tmp_path / "model")
    for other in (pickle.loads(pickle.dumps(model)), linmax.load(tmp_path / "model")):
        np.testing.assert_array_equal(other.predict_proba(table), expected)
        other.partial_fit(table.assign(color="violet"), labels)


def test_tables_and_arrays_are_not_mixed_up():
    table, labels = frame()
    numbers = table[["size"]].fillna(0.0).assign(other=1.0)
    with pytest.raises(ValueError, match="must be a table with the columns of fit, such as"):
        fitted(table, labels).predict(np.zeros((2, 4)))
    with pytest.raises(ValueError, match="X has text, categories or dates"):
        fitted(numbers, labels).predict(table[["size", "color"]])
    with pytest.raises(ValueError, match="feature names"):
        fitted(table, labels).predict(table[["size", "color", "ok"]])
    dates = pd.DataFrame({"when": pd.date_range("2024-01-01", periods=4)})
    with pytest.warns(UserWarning, match="being dates"), pytest.raises(ValueError, match="no column of numbers, text"):
        fitted(dates, [0, 1, 0, 1])


@pytest.mark.parametrize("scale", ["max", "standard", "none"])
def test_nan_in_an_array_is_missing(scale):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = x[:, 1] > 0.0
    x[::3, 0] = np.nan
    model = fitted(x, y, scale=scale)
    named = pd.DataFrame(x, columns=list("abc"))
    np.testing.assert_array_equal(fitted(named, y, scale=scale).predict_proba(named), model.predict_proba(x))
    stream = linmax.StreamModel(LEARNER, scale=scale)
    for batch in linmax.stream((x, y), model=stream):
        stream.learn(batch)
    assert stream.mistakes == model.mistakes_


def test_text_in_a_dict_is_a_category():
    learner = linmax.Learner("perceptron")
    for _ in range(3):
        learner.learn({"sender": "ann", "size": None}, label="ham")
        learner.learn({"sender": "bob", "size": float("nan")}, label="spam")
    assert list(learner.attributes) == ["sender=ann", "sender=bob"]
    assert learner.predict({"sender": "ann"}) == "ham"
    assert learner.predict({"sender": "eve"}) in ("ham", "spam")
    weights = learner.weights["attributes"]["sender=ann"]
    assert weights["ham"] > weights["spam"]
    learner.learn({"sender": "ann", "digits": "3.5"}, label="ham")  # text, though it looks like a number
    assert "digits=3.5" in learner.attributes
