"""A row is a set of attributes: their order within it changes nothing but rounding, in no learner and in no face."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pytest
from scipy import sparse

import linmax
from linmax import Learner, StreamModel, rules, run
from linmax.data.arrays import Layout, no_trials
from linmax.data.instances import instances
from linmax.engine.engine import Engine, Settings
from linmax.jit.compiling import JIT

WHOLE = ["softmax", "softmax(5)", "robust-softmax", "naive-bayes", "recent-label", "attributes", "auto"]
NEED = {
    "winnow": "(1.3)", "balanced-winnow": "(1.3)", "p-norm": "(3)", "alma": "(2)", "quasi-additive": "(sinh, 0.3)",
    "committee": "(1.3)",
}  # fmt: skip
RULES = [name + NEED.get(name, "") for name in rules.REGISTRY if name != "elimination"]
TECHNIQUES = [
    "AR(s=10, u=3)-perceptron",
    "V(h=4, w=4, r=8, d=5)-winnow(1.3)",
    "combine(robust-softmax, A-perceptron, how=weighted)",
    "combine(softmax, naive-bayes, how=best)",
    "stack(softmax, perceptron, fusion=softmax)",
]
LEARNERS = [*WHOLE, *RULES, *TECHNIQUES]
FEW = ["softmax", "robust-softmax", "perceptron", "combine(robust-softmax, A-perceptron, how=weighted)"]
SIZE, WIDTH, MOST = 80 if JIT else 16, 12, 7  # trials, attributes, attributes of a row
LOOSE = ("attributes", "auto")  # learners that compute in single precision


def rows_of(seed: int) -> tuple[list[dict[str, float]], list[str]]:
    """Rows by name, in the order of the names, and labels; the first row has all names, so that columns are fixed."""
    rng = np.random.default_rng(seed)
    columns = [np.arange(WIDTH), *(np.sort(rng.permutation(WIDTH)[:MOST]) for _ in range(SIZE - 1))]
    truth = rng.normal(size=(WIDTH, 3))
    rows, labels = [], []
    for row in columns:
        values = rng.uniform(0.1, 1.0, len(row))
        rows.append({f"a{f:02}": float(v) for f, v in zip(row, values, strict=True)})
        labels.append("pqr"[int(np.argmax(values @ truth[row]))])
    return rows, labels


def shuffled(rows: list[dict[str, float]], seed: int) -> list[dict[str, float]]:
    """The same with the attributes of each row but the first in another order."""
    rng = np.random.default_rng(seed)
    mixed = [{name: row[name] for name in rng.permutation(list(row)).tolist()} for row in rows[1:]]
    return [rows[0], *mixed]


def close(learner: str, one: Any, other: Any) -> None:
    tolerance = 1e-3 if learner in LOOSE else 1e-7
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.small
@pytest.mark.parametrize("learner", LEARNERS)
def test_rows_in_any_order_of_coordinates_are_the_same_to_an_engine(learner):
    rows, labels = rows_of(1)
    codes = np.array(["pqr".index(label) for label in labels], np.int32)
    told, tables = [], []
    for given in (rows, shuffled(rows, 2)):
        columns = [int(name[1:]) for row in given for name in row]
        instances = no_trials(SIZE)._replace(
            indptr=np.cumsum([0, *map(len, given)]),
            indices=np.array(columns, np.int32),
            values=np.array([value for row in given for value in row.values()]),
            constant=1.0,
        )
        engine = Engine(linmax.parse(learner), Layout(0, 0, 0, WIDTH, 1.0), 3, Settings())
        told.append(engine.run(instances._replace(labels=codes)).predictions.tolist())
        tables.append(engine.judge(instances)[1])
    assert told[0] == told[1]
    close(learner, *tables)


@pytest.mark.parametrize("learner", LEARNERS)
def test_dicts_in_any_order_are_the_same_to_a_learner(learner):
    rows, labels = rows_of(3)
    models = [Learner(learner) for _ in range(2)]
    told = [
        [model.learn(row, label=label) for row, label in zip(given, labels, strict=True)]
        for model, given in zip(models, (rows, shuffled(rows, 4)), strict=True)
    ]
    assert told[0] == told[1]
    for row in rows[:5]:
        close(learner, *(list(model.scores(row).values()) for model in models))


@pytest.mark.parametrize("learner", LEARNERS)
def test_columns_numbered_in_any_order_are_the_same_to_a_run(learner):
    """Names get their columns as they come, so that other columns stand for the same attributes."""
    rows, labels = rows_of(5)
    first = {name: rows[0][name] for name in reversed(rows[0])}
    traces = [run(learner, instances(attributes=given), labels) for given in (rows, [first, *shuffled(rows, 6)[1:]])]
    assert traces[0].predictions.tolist() == traces[1].predictions.tolist()
    assert traces[0].mistakes[-1] < SIZE


@pytest.mark.parametrize("learner", FEW)
def test_lines_in_any_order_are_the_same_to_a_stream(learner):
    rows, labels = rows_of(7)
    told, tables = [], []
    for given in (rows, shuffled(rows, 8)):
        lines = [
            f"{label} | " + " ".join(f"{name}:{value!r}" for name, value in row.items())
            for row, label in zip(given, labels, strict=True)
        ]
        model = StreamModel(learner)
        told.append([list(model.learn(batch)) for batch in linmax.stream(lines, format="vw", model=model, rows=13)])
        tables.append(np.concatenate([model.scores(b) for b in linmax.stream(lines, format="vw", model=model)]))
    assert told[0] == told[1]
    close(learner, *tables)


@pytest.mark.parametrize("learner", FEW)
def test_dicts_in_any_order_are_the_same_to_river(learner):
    pytest.importorskip("river", reason="River is the extra 'river'")
    from linmax import river

    rows, labels = rows_of(9)
    told = []
    for given in (rows, shuffled(rows, 10)):
        model = river.LinearMaxClassifier(learner)
        told.append([])
        for row, label in zip(given, labels, strict=True):
            told[-1].append(model.predict_one(row))
            model.learn_one(row, label)
    assert told[0] == told[1]


# -- an attribute twice in a row --------------------------------------------------------------------------------------


def test_an_attribute_given_twice_is_added_up_where_rows_are_matrices():
    twice = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    assert instances(attributes=twice).csr.toarray().tolist() == [[2.0, 5.0]]
    (batch,) = linmax.stream((twice, ["p"]))
    assert dict(zip(batch.indices.tolist(), batch.values.tolist(), strict=True)) == {0: 2.0, 1: 5.0}


@pytest.mark.parametrize("kind", ["frame", "pair", "vw"])
def test_names_hashed_to_one_column_are_added_up(kind):
    """One of four columns is hit twice by six names."""
    names = "uvwxyz"
    if kind == "frame":
        source: Any = pandas.DataFrame({name: ["1"] for name in names} | {"label": ["p"]})
    elif kind == "pair":
        source = (sparse.csr_array(np.ones((1, 6))), ["p"])
    else:
        source = ["p | " + " ".join(names)]
    (batch,) = linmax.stream(source, hash_bits=2, format="vw" if kind == "vw" else None)
    assert len(set(batch.indices.tolist())) == len(batch.indices) < 6
    assert batch.indptr.tolist() == [0, len(batch.indices)]
    assert batch.values.sum() == 6.0
