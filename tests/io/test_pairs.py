"""Pairs of attributes that are asked for, in every format, saved with the model."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import linmax
from linmax import StreamModel, stream
from linmax.cli import main

VW = ["a |t x y |b u:2", "b |t x |b v w", "a |t y |b u |c z"]
CSV = ["y,n,m,c,d", "a,1.5,2,red,u", "b,2,0,blue,u", "a,,4,red,w"]


def rows_of(lines: Any, **options: Any) -> list[dict[str, float]]:
    return [row for batch in stream(lines, **options) for row in batch.dicts()]


def group_of(name: str) -> str:
    return name.partition("^")[0] if "^" in name else name.partition("=")[0]


@pytest.mark.small
@pytest.mark.parametrize("pairs", [["t:b"], ["b:t"], ["t:t"], ["t:b", "b:c"], ["all"], ["t^x:b"], ["t:b", "b:t"]])
def test_pairs_are_products(pairs: list[str]) -> None:
    for plain, found in zip(rows_of(VW), rows_of(VW, pairs=pairs), strict=True):
        asked = [pair.split(":") for pair in pairs if pair != "all"]
        expected = dict(plain)
        for one, other in itertools.permutations(plain, 2):
            ways = [(one, group_of(one)), (other, group_of(other))]
            if pairs == ["all"] or any(a in ways[0] and b in ways[1] for a, b in asked):
                names = {f"{one}*{other}", f"{other}*{one}"}
                assert len(names & found.keys()) == 1
                expected[(names & found.keys()).pop()] = plain[one] * plain[other]
        assert found == expected


@pytest.mark.small
def test_the_order_is_that_of_the_question() -> None:
    assert "t^x*b^u" in rows_of(VW, pairs=["t:b"])[0]
    assert "b^u*t^x" in rows_of(VW, pairs=["b:t"])[0]


@pytest.mark.small
def test_columns_of_tables() -> None:
    (batch,) = stream(CSV, pairs=["all"], label="y", categorical=["d"])
    assert batch.dense_names == ("n", "m", "n*m")
    assert batch.dense[:2].tolist() == [[1.5, 2.0, 3.0], [2.0, 0.0, 0.0]]
    assert np.isnan(batch.dense[2, [0, 2]]).all()
    rows = list(batch.dicts())
    assert rows[0]["n*c=red"] == 1.5
    assert rows[0]["c=red*d=u"] == 1.0
    assert not any("n*" in name for name in rows[2])  # its number is missing
    assert "m*c=blue" not in rows[1]  # its number is 0


@pytest.mark.parametrize("rows", [1, 7, 4096])
def test_pool_learns_interactions(rows: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{(a + b) % 2} |p a{a} |q b{b} |r c{c}" for a, b, c in rng.integers(0, 6, (600, 3))]
    model = StreamModel("attributes(sparse)")
    for batch in stream(lines, model=model, pairs=["p:q"], rows=rows):
        model.learn(batch)
    assert model.mistakes < 100
    assert model.features == 18 + 36
    model.save(tmp_path / "model")
    loaded = StreamModel.load(tmp_path / "model")
    right = [loaded.predict(batch) == batch.labels for batch in stream(lines, model=loaded, grow=False)]
    assert np.concatenate(right).all()
    with pytest.raises(ValueError, match="pairs.*'all'.*'p:q'.*remove"):
        stream(lines, model=loaded, pairs=["all"])


def test_arrays_keep_their_pairs(tmp_path: Path) -> None:
    table, labels = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    model = StreamModel("perceptron")
    for batch in stream((table, labels), model=model, pairs=["0:1"]):
        model.learn(batch)
    model.save(tmp_path / "model")
    loaded = StreamModel.load(tmp_path / "model")
    for batch in stream((table, labels), model=loaded, grow=False):
        assert batch.dense_names == ("0", "1", "2", "0*1")
        loaded.predict(batch)


@pytest.mark.small
def test_hashed_names() -> None:
    batches = list(stream(VW, pairs=["all"], hash_bits=10))
    assert [len(batch.values) for batch in batches] == [6 + 6 + 6]
    with pytest.raises(ValueError, match="t:b.*hash_bits"):
        stream(VW, pairs=["t:b"], hash_bits=10)


@pytest.mark.parametrize("pairs", [["t"], ["t:"], [":b"], ["a:b:c"]])
def test_invalid_pairs(pairs: list[str]) -> None:
    with pytest.raises(ValueError, match="names no two groups of attributes; write a:b, or all"):
        stream(VW, pairs=pairs)


def test_a_text_is_no_list() -> None:
    with pytest.raises(TypeError, match="pairs must be a list"):
        stream(VW, pairs="t:b")


def test_too_many_pairs_of_a_row() -> None:
    lines = ["a | " + " ".join(map(str, range(5000)))]
    with pytest.raises(ValueError, match="line 1.*12,497,500 pairs"):
        list(stream(lines, pairs=["all"]))


def test_missing_group_is_reported() -> None:
    rows = stream(VW, pairs=["t:nobody"])
    assert len(list(rows)) == 1
    assert rows.remarks() == ["There is nothing to pair: no attribute, column or namespace is called 'nobody'."]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "data.vw", tmp_path / "model.linmax"
    rng = np.random.default_rng(0)
    lines = [f"{(a + b) % 2} |p a{a} |q b{b}" for a, b in rng.integers(0, 4, (400, 2))]
    data.write_text("\n".join(lines))
    main(["learn", str(data), "--pairs", "p:q", "--model", str(model), "--quiet"])
    capsys.readouterr()
    main(["predict", str(model), str(data)])
    assert capsys.readouterr().out.split() == [line[0] for line in lines]


def test_words_of_two_texts_interact() -> None:
    lines = ['{"label": "yes", "a": "big", "b": "cat"}', '{"label": "no", "a": "big", "b": "dog"}']
    assert rows_of(lines, pairs=["a:b"])[0]["a=big*b=cat"] == 1.0
    trace = None
    for batch in linmax.stream(lines, pairs=["a:b"]):
        trace = linmax.run("perceptron", batch.instances, batch.labels)
    assert trace is not None


@pytest.mark.small
@pytest.mark.parametrize("asked", [["t:b"], ["b:t"], ["t:t"], ["t:b", "b:c"], ["all"], ["t^x:b"], ["t:b", "b:t"]])
def test_pairs_of_one_instance_are_those_of_a_stream(asked: list[str]) -> None:
    for plain, found in zip(rows_of(VW), rows_of(VW, pairs=asked), strict=True):
        made = linmax.features.pairs_of(plain, asked)
        sorted_names = {"*".join(sorted(name.split("*"))): value for name, value in found.items()}
        assert {"*".join(sorted(name.split("*"))): value for name, value in made.items()} == sorted_names
        if asked != ["all"] and asked != ["t:t"]:
            assert made == found  # the order is that of the question


@pytest.mark.parametrize("learner", ["auto", "perceptron"])
@pytest.mark.parametrize("asked", [["0:1"], ["all"]])
def test_every_face_gives_the_same_figures(learner: str, asked: list[str]) -> None:
    rng = np.random.default_rng(3)
    table = rng.integers(-3, 4, (300, 3)).astype(float)
    labels = np.where(table[:, 0] * table[:, 1] > 0.0, "a", "b")
    lines = [
        f"{label} | " + " ".join(f"{i}:{v:g}" for i, v in enumerate(row) if v)
        for row, label in zip(table, labels, strict=True)
    ]
    streamed = StreamModel(learner, scale="none")
    predicted = [p for batch in stream(lines, model=streamed, pairs=asked) for p in streamed.learn(batch)]
    made = [linmax.features.pairs_of({str(i): v for i, v in enumerate(row) if v}, asked) for row in table.tolist()]
    one = linmax.Learner(learner)
    assert [one.learn(row, label) for row, label in zip(made, labels.tolist(), strict=True)] == predicted
    assert 0 < one.mistakes == streamed.mistakes < 60
    river = linmax.river.LinearMaxClassifier(learner, scale="none")
    said = []
    for row, label in zip(made, labels.tolist(), strict=True):
        said.append(river.predict_one(row))
        river.learn_one(row, label)
    assert said == predicted
    for x in (table, sparse.csr_array(table), pd.DataFrame(table, columns=["0", "1", "2"])):
        wide = linmax.features.pairs(x, asked)
        trace = linmax.run(learner, linmax.instances(attributes=wide), labels, discover=True)
        assert trace.mistakes[-1] in (one.mistakes - 1, one.mistakes)  # the first label is no mistake in `run`
        estimator = linmax.LinearMaxClassifier(learner).partial_fit(wide, labels, ["a", "b"])
        assert (estimator.predict(wide) == labels).mean() > 0.85


@pytest.mark.small
def test_pairs_that_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="'a\\*b' is there already"):
        linmax.features.pairs_of({"a": 1.0, "b": 1.0, "a*b": 1.0}, ["a:b"])
    with pytest.raises(TypeError, match="names of an instance must be strings, got 1"):
        linmax.features.pairs_of({1: 1.0}, ["all"])
    with pytest.raises(ValueError, match="'a\\*b' must be finite"):
        linmax.features.pairs_of({"a": 1e200, "b": 1e200}, ["a:b"])
    with pytest.raises(TypeError, match="a list such as"):
        linmax.features.pairs([[1.0]], "all")
    with pytest.raises(ValueError, match="names.*1 columns.*got 2"):
        linmax.features.pairs([[1.0]], ["all"], ["a", "b"])
    with pytest.raises(ValueError, match="linmax.stream"):
        linmax.features.pairs(sparse.csr_array((1, 5000)))
