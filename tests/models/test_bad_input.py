"""Data that are not what they seemed: handled as one would expect, or refused with the line, the value and the remedy."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmax
from linmax import StreamModel, stream
from linmax.cli import main

RNG = np.random.default_rng(0)
ROWS = [f"{RNG.normal() + 2 * (i % 2):.3f},{'ab'[i % 2]},{'yes' if i % 2 else 'no'}" for i in range(200)]
HEADER = "size,letter,label"
NUMBERS = RNG.normal(size=(40, 2))
LETTERS = np.where(NUMBERS[:, 0] > 0.0, "a", "b")


def taught(lines: list[str]) -> tuple[StreamModel, list[str]]:
    model = StreamModel("auto")
    rows = stream(lines, model=model)
    for batch in rows:
        model.learn(batch)
    return model, rows.remarks()


def test_a_column_that_turns_from_numbers_to_words() -> None:
    turned = [f"{'large' if row.endswith('yes') else 'small'},,{row.split(',')[2]}" for row in ROWS[150:]]
    model, remarks = taught([HEADER, *ROWS[:150], *turned])
    assert remarks == [
        "Column 'size' has words among its numbers, the first in line 152; they are taken as categories."
    ]
    assert {"size=large", "size=small"} <= set(model.attributes)
    for lines in (turned, ROWS[:150]):  # what was learned of the numbers is still there
        (batch,) = stream([HEADER, *lines], model=model, grow=False)
        assert (model.predict(batch) == batch.labels).mean() > 0.95


FACES: dict[str, Callable[[], Any]] = {
    "run": lambda: linmax.run("votes", linmax.instances(attributes=NUMBERS), LETTERS),
    "run, votes too": lambda: linmax.run(
        "votes", linmax.instances(attributes=NUMBERS, votes=LETTERS[:, None]), LETTERS
    ),
    "selective": lambda: linmax.run("S-votes", linmax.instances(attributes=NUMBERS), LETTERS),
    "stacked": lambda: linmax.run("stack(votes, votes)", linmax.instances(attributes=NUMBERS), LETTERS),
    "learner": lambda: linmax.Learner("votes").learn({"x": 1.0}, "a"),
    "stream": lambda: StreamModel("votes").learn(next(iter(stream(["a | x", "b | y"])))),
    "estimator": lambda: linmax.LinearMaxClassifier("votes").fit(NUMBERS, LETTERS),
    "partial": lambda: linmax.LinearMaxClassifier("votes").partial_fit(NUMBERS, LETTERS, ["a", "b"]),
    "river": lambda: linmax.river.LinearMaxClassifier("votes").learn_one({"x": 1.0}, "a"),
}


@pytest.mark.small
@pytest.mark.parametrize("face", FACES)
def test_attributes_are_not_passed_over_by_the_pool_for_votes(face: str) -> None:
    with pytest.raises(
        ValueError, match="^votes learns from votes and scores, and these instances have attributes; .*auto"
    ):
        FACES[face]()


@pytest.mark.small
def test_a_learner_that_refuses_attributes_is_not_changed() -> None:
    learner = linmax.Learner("votes")
    for label in "abab":
        learner.learn(votes={"ann": label}, label=label)
    before = pickle.dumps(learner)
    for ask in (
        lambda: learner.learn({"x": 1.0}, votes={"ann": "a", "ben": "a"}, label="c"),
        lambda: learner.predict({"x": 1.0}, votes={"ann": "a"}),
        lambda: learner.predict_proba({"x": 1.0}),
    ):
        with pytest.raises(ValueError, match="these instances have attributes"):
            ask()
    assert pickle.dumps(learner) == before


@pytest.mark.small
def test_votes_with_attribute_members_are_matched() -> None:
    both = linmax.instances(attributes=NUMBERS, votes=LETTERS[:, None])
    assert linmax.run("combine(votes, perceptron)", both, LETTERS).mistakes[-1] < 5


def test_the_command_refuses_the_pool_for_votes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.csv").write_text("\n".join([HEADER, *ROWS]))
    model = tmp_path / "model"
    assert main(["learn", str(tmp_path / "rows.csv"), "--learner", "votes", "--model", str(model)]) == 2
    assert "votes learns from votes and scores, and these instances have attributes" in capsys.readouterr().err
    assert not model.exists()


def test_a_category_never_seen() -> None:
    model, _ = taught([HEADER, *ROWS])
    (batch,) = stream([HEADER, "5.5,zebra,", "-3.5,zebra,"], model=model, grow=False)
    assert batch.unknown == 2
    assert model.predict(batch).tolist() == ["yes", "no"]
    assert "letter=zebra" not in model.attributes


@pytest.mark.parametrize("value", ["inf", "-inf", "1e400", "1e101"])
def test_infinities_cost_their_line(value: str) -> None:
    for given, lines in (
        (value, [HEADER, *ROWS[:20], f"{value},a,no", *ROWS[20:40]]),
        (f"x:{value}", ["yes |f x:1"] * 21 + [f"no |f x:{value}"] + ["yes |f x:1"] * 20),
        (f"1:{value}", ["1 1:1"] * 21 + [f"2 1:{value}"] + ["1 1:1"] * 20),
    ):
        model = StreamModel("auto")
        rows = stream(lines, model=model)
        for batch in rows:
            model.learn(batch)
        shown = given if ":" in given else str(float(given))  # tables hold numbers
        assert [(line, reason) for _, line, reason in rows.refusals.first] == [
            (22, f"a value is not finite, or beyond 1e100: {shown!r}; leave it out, or scale it")
        ]
        assert model.trials == len(lines) - (2 if lines[0] == HEADER else 1)
        assert np.isfinite(model.weights.arrays.attributes).all()


def test_infinities_in_json_cost_their_line() -> None:
    rows = stream(['{"label": "a", "x": 1, "y": {"z": 1e999}}', '{"label": "b", "x": 2}'])
    assert sum(len(batch) for batch in rows) == 1
    assert [reason for *_, reason in rows.refusals.first] == [
        "a value is not finite, or beyond 1e100: 'y.z: inf'; leave it out, or scale it"
    ]


def test_a_budget_smaller_than_one_row() -> None:
    long = "a |f " + " ".join(f"x{i}" for i in range(20_000))
    model = StreamModel("auto", memory="200kB")
    for batch in stream([long, "b |f y0 y1"] * 4, model=model):
        model.learn(batch)
    assert model.crowded
    assert model.features < 2000
    for batch in stream([long, "b |f y0 y1"], model=model, grow=False):
        assert model.predict(batch).tolist() == ["a", "b"]


def test_what_was_decided_is_saved_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, _ = taught([HEADER, *ROWS])
    model.save(tmp_path / "model")
    loaded = StreamModel.load(tmp_path / "model")
    assert loaded.decided == model.decided
    assert loaded.decided["attributes are"] == "numbers"
    assert loaded._schema == {"size": "number", "letter": "category", "label": "label"}
    main(["show", str(tmp_path / "model")])
    assert "attributes are taken for numbers" in capsys.readouterr().out


def test_namespaces_come_in_another_order() -> None:
    model, _ = taught(["yes |f good |g here", "no |f bad |g there"] * 20)
    (batch,) = stream(["|h new |g there |f bad", "|f good"], model=model, grow=False)
    assert [sorted(row) for row in batch.dicts()] == [["f^bad", "g^there"], ["f^good"]]
    for batch in stream(["no |h new |g there", "yes |g here |f good"], model=model):
        model.learn(batch)
    assert model.attributes[-1] == "h^new"


def test_data_of_another_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, _ = taught([HEADER, *ROWS])
    (batch,) = stream(["yes |f x"], model=model, grow=False, format="vw")  # columns go before: size=, letter=
    with pytest.raises(ValueError, match="columns of numbers.*none.*size"):
        model.predict(batch)
    with pytest.raises(ValueError, match="'size'.*width, letter"):
        list(stream(["width,letter", "1,a"], model=model, grow=False))
    words, _ = taught(["yes |f good", "no |f bad"] * 20)
    words.save(tmp_path / "model")
    (tmp_path / "other.vw").write_text("|g strange words |h here\n|f good\n")
    assert main(["predict", str(tmp_path / "model"), str(tmp_path / "other.vw")]) == 0
    told = capsys.readouterr()
    assert told.out.split()[1] == "yes"
    expected = "3 of 4 attributes are unknown to the model and were left out; is this another kind of data?"
    assert expected in " ".join(told.err.split())
