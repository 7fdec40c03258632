"""Weights of rows: what they mean for pools and for rules, from every format, through every interface."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmax
from linmax import StreamModel, stream
from linmax.cli import main

RNG = np.random.default_rng(3)
LABELS = RNG.integers(0, 3, 150)
TABLE = RNG.normal(size=(150, 4)) + np.eye(3, 4)[LABELS]
WEIGHTS = RNG.choice([0.25, 0.5, 1.0, 2.0, 3.5], 150)
LEARNERS = ["auto", "attributes(sparse)", "binned-pairs", "perceptron", "AR-perceptron", "combine(perceptron, arow)"]


def taught(learner: str, weights: np.ndarray | None, rows: int = 4096) -> StreamModel:
    model = StreamModel(learner)
    table = (TABLE, LABELS) if weights is None else (TABLE, LABELS, weights)
    for batch in stream(table, model=model, rows=rows):
        model.learn(batch)
    return model


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("weight", [0.5, 0.1])
def test_fractions_favour_no_class_of_rows_that_alternate(learner: str, weight: float) -> None:
    labels = np.arange(600) % 2
    table = np.random.default_rng(0).normal(size=(600, 3)) + 3.0 * labels[:, None]
    model = StreamModel(learner)
    for batch in stream((table, labels, np.full(600, weight)), model=model):
        model.learn(batch)
    (batch,) = stream((table, labels), model=model, grow=False)
    assert (model.predict(batch) == batch.labels).mean() > 0.88


@pytest.mark.parametrize("learner", [*LEARNERS, "logistic", "softmax(1)"])
def test_a_huge_weight_is_no_loop(learner: str) -> None:
    weights = np.ones(150)
    weights[[20, 149]] = 1e9
    model = taught(learner, weights)
    (batch,) = stream((TABLE[149:], LABELS[149:]), model=model, grow=False)
    if learner != "AR-perceptron":  # in whose average every trial counts once
        assert model.predict(batch).tolist() == [str(LABELS[149])]
    assert np.isfinite(model.predict_proba(batch)).all()
    assert model.trials < 500


@pytest.mark.parametrize("learner", ["auto", "A-perceptron", "arow"])
def test_a_class_that_weighs_more_is_predicted_more_often(learner: str) -> None:
    rng = np.random.default_rng(1)
    labels, table = rng.integers(0, 2, 1000), rng.normal(size=(1000, 3))
    table += 0.4 * labels[:, None]
    shares = []
    for factor in (0.2, 1.0, 5.0):
        model = StreamModel(learner)
        for batch in stream((table, labels, np.where(labels == 1, factor, 1.0)), model=model):
            model.learn(batch)
        (batch,) = stream((table, labels), model=model, grow=False)
        shares.append(float((model.predict(batch) == "1").mean()))
    assert shares[0] < shares[1] < shares[2]


@pytest.mark.small
def test_a_weighed_step_follows_its_formula() -> None:
    """One row (1, 1 beside the constant) of class a, then one of class b with weight w."""
    cells = {}
    for weight in (1.0, 0.25, 4.0):
        model = StreamModel("attributes(sparse)")
        for batch in stream(["a |f x", f"b {weight} |f y"], model=model):
            model.learn(batch)
        assert model._current_model is not None
        pool = model._current_model.pool
        assert pool is not None
        group: Any = pool.groups["sparse"]
        cells[weight] = group.cells[2], group.counts[2]
        x = 1.0 / np.sqrt(2.0)  # log(2) twice, length 1
        constant, curvature = group.cells[0], 10.0 * weight / 4.0  # of the softmax, whose shares are .5
        rarity = np.log(3.0)  # naive Bayes has y weighted by idf, of length 1 beside the constant
        assert group.counts[2, 1] == pytest.approx(weight * rarity / np.sqrt(1.0 + rarity**2))
        assert constant[2, 1] == pytest.approx(1.0 - x**2 * curvature / (1.0 + curvature))
    assert cells[0.25][0][1, 1] < cells[1.0][0][1, 1] < cells[4.0][0][1, 1]


# -- formats ------------------------------------------------------------------------------------------------------


def as_vw() -> list[str]:
    rows = zip(LABELS, WEIGHTS, TABLE, strict=True)
    return [f"{y} {w} | " + " ".join(f"{i}:{v!r}" for i, v in enumerate(row.tolist())) for y, w, row in rows]


def as_svmlight() -> list[str]:
    rows = zip(LABELS, WEIGHTS, TABLE, strict=True)
    return [f"{y} cost:{w} " + " ".join(f"{i}:{v!r}" for i, v in enumerate(row.tolist())) for y, w, row in rows]


def as_csv() -> list[str]:
    rows = zip(LABELS, WEIGHTS, TABLE, strict=True)
    return ["importance,0,1,2,3,y", *(f"{w}," + ",".join(map(repr, row.tolist())) + f",{y}" for y, w, row in rows)]


def as_json() -> list[str]:
    rows = zip(LABELS.tolist(), WEIGHTS.tolist(), TABLE.tolist(), strict=True)
    return [json.dumps({"y": y, "importance": w, "features": row}) for y, w, row in rows]


@pytest.mark.parametrize(
    ("made", "weight"), [(as_vw, None), (as_svmlight, None), (as_csv, "importance"), (as_json, "importance")]
)
def test_the_same_weights_from_every_format(made: Callable[[], list[str]], weight: str | None) -> None:
    model, expected = StreamModel("auto(dense)"), taught("auto(dense)", WEIGHTS)
    for batch in stream(made(), model=model, weight=weight):
        model.learn(batch)
    assert model.mistakes == expected.mistakes
    found, wanted = (
        m._current_model.pool.arrays
        for m in (model, expected)
        if m._current_model is not None and m._current_model.pool is not None
    )
    for name in ("dense.cells", "pairs16.cells"):
        np.testing.assert_array_equal(found[name], wanted[name])


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_the_same_weights_from_tables(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    columns = {str(i): TABLE[:, i] for i in range(4)} | {"importance": WEIGHTS, "y": LABELS}
    source: Any
    if library == "pandas":
        import pandas as pd

        source = pd.DataFrame(columns)
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        source = tmp_path / "table.parquet"
        pq.write_table(pa.table(columns), source)
    model = StreamModel("auto(dense)")
    for batch in stream(source, model=model, weight="importance"):
        model.learn(batch)
    assert model.mistakes == taught("auto(dense)", WEIGHTS).mistakes


@pytest.mark.parametrize(
    ("lines", "options", "given"),
    [
        (["a |f x", "b {} |f y", "b |f y"], {}, ["-1", "nan", "inf", "1e400", "heavy"]),
        (["1 1:1", "2 cost:{} 2:1", "2 2:1"], {}, ["-1", "nan", "inf", "1e400", "heavy"]),
        (["x,y,w", "1,a,{}", "2,b,1"], {"weight": "w", "label": "y"}, ["-1", "nan", "inf", "1e400", "heavy", ""]),
        (['{{"label": "a", "w": 1, "x": 1}}', '{{"label": "b", "w": {}, "x": 2}}'], {"weight": "w"}, ["-1", "true"]),
    ],
    ids=["vw", "svmlight", "csv", "json"],
)
def test_weights_that_cannot_be_are_refused_with_their_line(lines: list[str], options: Any, given: list[str]) -> None:
    for text in given:
        rows = stream([line.format(text) for line in lines], **options)
        model = StreamModel("perceptron")
        for batch in rows:
            model.learn(batch)
        told = rows.refusals.first
        assert [(line, reason) for _, line, reason in told] == [
            (2, f"the weight is not a finite number >= 0, but {text!r}; 0 leaves a row out")
        ]
        assert model.trials > 0
        with pytest.raises(ValueError, match="line 2: the weight is not a finite number >= 0, but"):
            list(stream([line.format(text) for line in lines], strict=True, **options))


def test_invalid_weights_change_nothing() -> None:
    model = StreamModel("perceptron")
    (batch,) = stream(["a |f x", "b |f y"], model=model)
    batch.importance[1] = np.nan
    with pytest.raises(ValueError, match="line 2: the weight nan is not a finite number >= 0; 0 leaves a row out"):
        model.learn(batch)
    assert model.trials == 0


def test_an_option_for_tables_does_not_apply_elsewhere() -> None:
    with pytest.raises(ValueError, match="weight does not apply to Lines, which is Vowpal Wabbit's text"):
        list(stream(["a |f x"], weight="w"))
    with pytest.raises(ValueError, match="has no column 'importance'"):
        list(stream(["x,y", "1,a"], weight="importance"))


def test_rows_that_are_only_predicted_need_no_weight(tmp_path: Path) -> None:
    model = StreamModel("perceptron")
    for batch in stream(as_csv(), model=model, weight="importance"):
        model.learn(batch)
    model.save(tmp_path / "model")
    loaded = StreamModel.load(tmp_path / "model")
    bare = [line.split(",", 1)[1] for line in as_csv()]
    (batch,) = stream(bare, model=loaded, grow=False)
    (whole,) = stream(as_csv(), model=model, grow=False)
    assert loaded.predict(batch).tolist() == model.predict(whole).tolist()
    with pytest.raises(ValueError, match="has no column 'importance' for weights"):
        list(stream(bare, model=loaded))


# -- interfaces ---------------------------------------------------------------------------------------------------


def test_a_weight_of_a_label_that_comes_later() -> None:
    now, later = linmax.Learner("perceptron"), linmax.Learner("perceptron")
    for learner in (now, later):
        learner.learn({"x": 1.0}, label="a")
    now.learn({"y": 1.0}, label="b", weight=3.0)
    later.predict({"y": 1.0}, id=1)
    assert later.learn(id=1, label="b", weight=3.0) == "a"
    assert (now.mistakes, now.weights["attributes"]) == (later.mistakes, later.weights["attributes"])
    assert later.pending == 0
    before = later.mistakes, later.trials
    assert later.learn({"y": 1.0}, label="c", weight=0.0) == "b"
    assert (later.mistakes, later.trials) == before
    assert later.classes == ["a", "b"]
    for bad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="weight must be"):
            later.learn({"y": 1.0}, label="b", weight=bad)
    later.learn({"y": 1.0}, wrong="b", weight=0.0)
    assert (later.mistakes, later.trials) == before
    later.learn({"y": 1.0}, wrong="b", weight=2.0)
    assert later.trials == before[1] + 1


@pytest.mark.parametrize("option", [["--weight", "w"], ["--pairs", "a:b"], ["--memory", "1GB"]])
def test_options_that_do_not_go_together(option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data.jsonl").write_text("{}\n")
    assert main(["learn", str(tmp_path / "data.jsonl"), "--candidates", *option]) == 2
    assert f"{option[0]} does not go with --candidates" in capsys.readouterr().err


def test_the_command_weighs_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data.csv"
    data.write_text("\n".join([*as_csv(), "1e9,1,1,1,1,0"]))
    assert main(["learn", str(data), "--weight", "importance", "--learner", "perceptron"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Rows count as much as 'importance' says." in told
    assert "Weights beyond 1e+06 count as 1e+06 for this learner; the largest is 1e+09." in told
