"""Side columns of votes: `VoteFusion(by=...)` and ``linmax fuse --by``."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import linmax
from linmax import VoteFusion
from linmax.cli import main
from linmax.data.blocks import COPY

LETTERS = np.array(list("abc"))
SUBJECTS = np.array(["maths", "law", "art"], dtype=object)
VOTERS = 4


def problem(trials: int = 150, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Voter i is good at subject i; some values are missing, some votes too."""
    random = np.random.default_rng(seed)
    labels, subject = random.integers(3, size=trials), random.integers(3, size=trials)
    told = np.where(random.random(trials) < 0.1, None, SUBJECTS[subject])
    columns = {"subject": told, "level": random.integers(1, 3, size=trials)}
    for i in range(VOTERS):
        right = random.random(trials) < np.where(subject == i, 0.95, 0.4)
        said = LETTERS[np.where(right, labels, random.integers(3, size=trials))].astype(object)
        columns[f"v{i}"] = np.where(random.random(trials) < 0.1, None, said)
    return pd.DataFrame(columns, dtype=object), LETTERS[labels]


def by_hand(frame: pd.DataFrame, by: list[str], values: list[tuple[str, Any]]) -> np.ndarray:
    """The voters and their copies as raters, (trials, raters, 3)."""
    plain = np.zeros((len(frame), VOTERS, 3))
    for i in range(VOTERS):
        for c, letter in enumerate("abc"):
            plain[:, i, c] = frame[f"v{i}"] == letter
    holds = [(frame[name] == value).to_numpy() for name, value in values if name in by]
    return np.concatenate([plain, *(COPY * plain * held[:, None, None] for held in holds)], axis=1)


def met(frame: pd.DataFrame, by: list[str]) -> list[tuple[str, Any]]:
    return [(name, value) for name in by for value in dict.fromkeys(frame[name]) if value is not None]


# -- learning -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["perceptron", "AR-winnow(1.1)"])
@pytest.mark.parametrize("by", [["subject"], ["subject", "level"]])
def test_copies_are_raters_by_hand(learner: str, by: list[str]) -> None:
    frame, labels = problem()
    new, truth = problem(60, seed=1)
    unused = [name for name in ("subject", "level") if name not in by]
    ratings = by_hand(frame, by, met(frame, by))
    trace = linmax.run(learner, linmax.instances(scores=ratings, classes=list("abc")), labels)
    fusion = VoteFusion(learner, classes=list("abc"), by=by if len(by) > 1 else by[0]).fit(
        frame.drop(columns=unused), labels
    )
    report = fusion.report(new.drop(columns=unused), truth)
    assert report.online.mistakes == trace.mistakes[-1]
    later = linmax.instances(scores=by_hand(new, by, met(frame, by)), classes=list("abc"))
    expected = trace.model.predict(later)
    np.testing.assert_array_equal(fusion.predict(new.drop(columns=unused)), expected)
    assert report.test.accuracy["fusion"] == pytest.approx(np.mean(expected == truth))
    assert fusion.voters_ == ["v0", "v1", "v2", "v3"]
    assert fusion.n_features_in_ == VOTERS


def test_a_column_of_experts_is_the_same() -> None:
    frame, labels = problem()
    votes = frame[["v0", "v1", "v2", "v3"]]
    instances = linmax.instances(votes=votes, by=frame["subject"], classes=list("abc"))
    trace = linmax.run("AR-perceptron", instances, labels)
    fusion = VoteFusion("AR-perceptron", classes=list("abc"), by="subject").fit(frame.drop(columns="level"), labels)
    assert fusion.report().online.mistakes == trace.mistakes[-1]


FORMS = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.DataFrame({name: frame[name].tolist() for name in frame}),
    "dict": lambda frame: {name: frame[name].tolist() for name in frame},
    "other order": lambda frame: frame[["v2", "subject", "v0", "v1", "v3"]],
}


@pytest.mark.parametrize("form", FORMS)
def test_votes_in_any_form(form: str) -> None:
    frame, labels = problem(60)
    frame = frame.drop(columns="level")
    expected = VoteFusion("winnow(1.2)", by="subject").fit(frame, labels)
    fusion = VoteFusion("winnow(1.2)", by="subject").fit(FORMS[form](frame), labels)
    np.testing.assert_array_equal(fusion.predict(FORMS[form](frame)), expected.predict(frame))
    assert fusion.weights() == pytest.approx(expected.weights())
    placed = VoteFusion("winnow(1.2)", by=0).fit(frame.to_numpy(), labels)
    np.testing.assert_array_equal(placed.predict(frame.to_numpy().tolist()), expected.predict(frame))
    assert placed.voters_ == ["0", "1", "2", "3"]


def test_values_and_voters_join() -> None:
    """Calls may be cut anywhere: who joins had always been there and never spoken."""
    frame, labels = problem(200)
    frame = frame.drop(columns="level")
    first = frame["subject"].isin(["maths"]).to_numpy()
    order = np.concatenate([np.flatnonzero(first), np.flatnonzero(~first)])
    frame, labels = frame.iloc[order].reset_index(drop=True), labels[order]
    cut = int(first.sum())
    frame.loc[: cut - 1, "v3"] = None
    whole = VoteFusion("AR-perceptron", classes=list("abc"), by="subject").fit(frame, labels)
    parts = VoteFusion("AR-perceptron", classes=list("abc"), by="subject")
    parts.partial_fit(frame[:cut].drop(columns="v3"), labels[:cut])
    assert parts._state.model.layout.voters == 3 * 2
    parts.partial_fit(frame[cut : cut + 20], labels[cut : cut + 20])
    parts.partial_fit(frame[cut + 20 :], labels[cut + 20 :])
    assert parts._state.model.layout.voters == 4 * 4
    np.testing.assert_allclose(parts.decision_function(frame), whole.decision_function(frame), atol=1e-12)
    for name, found in whole.weights(copies=True).items():
        assert parts.weights(copies=True)[name] == pytest.approx(found, abs=1e-12)


def test_many_columns_come_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, labels = problem()
    frame = frame.drop(columns="level")
    whole = VoteFusion("AR-winnow(1.1)", by="subject").fit(frame, labels)
    monkeypatch.setattr("linmax.data.side_columns.VOTES_AT_ONCE", 16 * 7)
    parts = VoteFusion("AR-winnow(1.1)", by="subject").fit(frame, labels)
    np.testing.assert_array_equal(whole.decision_function(frame), parts.decision_function(frame))
    assert whole.report().to_dict() == parts.report().to_dict()


def test_where_a_value_is_not_known_the_voters_decide() -> None:
    frame, labels = problem()
    fusion = VoteFusion("perceptron", classes=list("abc"), by="subject").fit(frame.drop(columns="level"), labels)
    votes = frame[["v0", "v1", "v2", "v3"]]
    unseen, missing = (fusion.decision_function(votes.assign(subject=value)) for value in ("music", None))
    np.testing.assert_array_equal(unseen, missing)
    weights = fusion._state.model.weights.arrays
    total = fusion._state.unit(fusion._state.model)[0]
    expected = by_hand(frame, [], []).transpose(0, 2, 1) @ weights.voters[:VOTERS] + weights.thresholds
    np.testing.assert_allclose(unseen, expected / total, atol=1e-12)
    assert np.abs(fusion.decision_function(frame.drop(columns="level")) - unseen).max() > 0.01


def test_specialists_are_worth_it() -> None:
    frame, labels = problem(1200)
    votes = frame.drop(columns="level")
    sided = VoteFusion(by="subject").fit(votes, labels).report().online
    plain = VoteFusion().fit(votes.drop(columns="subject"), labels).report().online
    assert sided.mistakes < 0.85 * plain.mistakes


# -- telling ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["perceptron", "auto"])
@pytest.mark.parametrize("by", [["subject"], ["subject", "level"]])
def test_weights_and_contributions(learner: str, by: list[str]) -> None:
    frame, labels = problem()
    votes = frame[[*by, "v0", "v1", "v2", "v3"]]
    fusion = VoteFusion(learner, by=by).fit(votes, labels)
    weights, copies = fusion.weights(), fusion.weights(copies=True)
    assert sum(map(abs, weights.values())) == pytest.approx(1.0)
    labelled = {f"{name}={value}" if len(by) > 1 else str(value) for name, value in met(frame, by)}
    assert {value for found in copies.values() for value in found} == labelled
    scores, predicted = fusion.decision_function(votes), fusion.predict(votes)
    for t in range(25):
        told = fusion.explain(votes.iloc[t])
        winner, second = (fusion.classes_.tolist().index(name) for name in (told.winner, told.runner_up))
        assert told.winner == predicted[t]
        assert told.difference == pytest.approx(scores[t, winner] - scores[t, second], abs=1e-9)
        assert told.difference == pytest.approx(sum(told.contributions.values()))
        assert told.sides == {name: votes[name][t] for name in by}
        if len(by) > 1 or told.sides["subject"] is None:
            continue
        for name in ("v0", "v1", "v2", "v3"):
            sign = (votes[name][t] == told.winner) - (votes[name][t] == told.runner_up)
            assert told.contributions[name] == pytest.approx(sign * copies[name][votes["subject"][t]], abs=1e-9)
    if by == ["subject"]:
        counts = Counter(votes["subject"].dropna())
        own = {name: _own(fusion, name) for name in weights}
        for name, weight in weights.items():
            told_by = sum(count * (copies[name][value] - own[name]) for value, count in counts.items()) / len(votes)
            assert weight == pytest.approx(own[name] + told_by)
    row = votes.iloc[0].to_dict()
    assert "subject: law" in str(fusion.explain({**row, "subject": "law"}))
    assert "missing or unknown" in str(fusion.explain({**row, "subject": "music"}))


def _own(fusion: VoteFusion, name: str) -> float:
    """Weight of the voter itself."""
    state = fusion._state
    return float(state.model.weights.arrays.voters[state.voters.index(name)] / state.unit(state.model)[0])


def test_report_shows_each_value() -> None:
    frame, labels = problem()
    fusion = VoteFusion("perceptron", by="subject").fit(frame.drop(columns="level"), labels)
    report = fusion.report()
    found = json.loads(json.dumps(report.to_dict()))["by"]
    counts = Counter(frame["subject"].dropna())
    assert {value: line["trials"] for value, line in found.items()} == dict(counts)
    assert list(found) == sorted(found, key=lambda value: -counts[value])
    copies = fusion.weights(copies=True)
    for value, line in found.items():
        assert line["weights"] == pytest.approx({name: copies[name][value] for name in copies})
    text = str(report)
    assert "Accuracy by value" in text
    assert all(value in text for value in counts)


def test_values_that_look_alike() -> None:
    votes = {"v": ["a", "b", "a", "b"], "side": [1, "1", 1, "1"]}
    fusion = VoteFusion("perceptron", by="side").fit(votes, ["a", "b", "a", "b"])
    assert set(fusion.weights(copies=True)["v"]) == {"1", "'1'"}


# -- keeping ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["file", "pickle"])
@pytest.mark.parametrize("learner", ["AR-winnow(1.1)", "auto"])
def test_loaded_fusion_resumes(way: str, learner: str, tmp_path: Path) -> None:
    frame, labels = problem(120)
    fusion = VoteFusion(learner, by=["subject", "level"]).fit(frame[:60], labels[:60])
    if way == "file":
        fusion.save(tmp_path / "fusion.linmax")
        other = VoteFusion.load(tmp_path / "fusion.linmax")
        assert other.by == ["subject", "level"]
    else:
        other = pickle.loads(pickle.dumps(fusion))
    for one in (fusion, other):
        one.partial_fit(frame[60:], labels[60:])
    np.testing.assert_array_equal(fusion.predict_proba(frame), other.predict_proba(frame))
    assert fusion.report().to_dict() == other.report().to_dict()


def test_it_is_a_scikit_learn_estimator() -> None:
    frame, labels = problem()
    fusion = VoteFusion("winnow(1.2)", by="subject")
    assert clone(fusion).get_params() == fusion.get_params()
    assert cross_val_score(fusion, frame.drop(columns="level"), labels, cv=3).mean() > 0.5


# -- refusing -----------------------------------------------------------------------------------------------------

TABLE = {"v": ["a", "b"], "w": ["a", None], "subject": ["x", "y"]}


@pytest.mark.parametrize(
    ("by", "votes", "error", "said"),
    [
        ("topic", TABLE, ValueError, "no column 'topic'; they have v, w, subject"),
        ("topic", [["a"], ["b"]], ValueError, "'topic', since they came without names; give its place \\(0 to 0\\)"),
        (3, [["a", "x"], ["b", "y"]], ValueError, "no column 3; they have 2"),
        (0, [["a"], ["b"]], ValueError, "no column besides 0 that may be a voter"),
        (["subject", "subject"], TABLE, ValueError, "by names a column twice"),
        (True, TABLE, TypeError, "by must be a column's name or place, or a list of these, got True"),
        ([1.5], TABLE, TypeError, "got 1.5"),
        ("subject", {**TABLE, "subject": [["x"], ["y"]]}, (TypeError, ValueError), "one shape|not hashable"),
        (0, np.zeros((2, 2, 2)), ValueError, "by=.*got scores"),
    ],
)
def test_bad_columns_are_refused(by: Any, votes: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        VoteFusion("perceptron", by=by).fit(votes, ["a", "b"])


def test_a_column_missing_later_is_refused() -> None:
    fusion = VoteFusion("perceptron", by="subject").fit(TABLE, ["a", "b"])
    for call in (fusion.predict, fusion.decision_function, lambda votes: fusion.partial_fit(votes, ["a"])):
        with pytest.raises(ValueError, match="no column 'subject'; they have v, w"):
            call({"v": ["a"], "w": ["b"]})
    with pytest.raises(ValueError, match="no column 'subject'; they have v, w"):
        fusion.explain({"v": "a", "w": "b"})


def test_too_many_values_are_refused_before_anything_is_learned() -> None:
    votes = {f"v{i}": ["a", "b"] * 500 for i in range(10)}
    fusion = VoteFusion("perceptron", by="id").fit({**votes, "id": [0, 1] * 500}, ["a", "b"] * 500)
    before = fusion.report().to_dict()
    with pytest.raises(ValueError, match="'id'.*1,000 values.*10,010 columns"):
        fusion.partial_fit({**votes, "id": list(range(1000))}, ["a", "b"] * 500)
    assert fusion.report().to_dict() == before


# -- the command --------------------------------------------------------------------------------------------------


def test_fuse_by(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame, labels = problem(200)
    path, model = tmp_path / "votes.csv", tmp_path / "model.linmax"
    frame.assign(right=labels).to_csv(path, index=False)
    options = ["--label", "right", "--by", "subject,level", "--learner", "AR-winnow(1.1)", "--test-fraction", "0.25"]
    assert main(["fuse", str(path), *options, "--json", "-", "--model", str(model)]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert "4 voters, by subject (3 values), by level (2 values), 3 classes" in said.err
    assert "Accuracy by value" in said.err
    assert set(found["by"]) == {"subject=maths", "subject=law", "subject=art", "level=1", "level=2"}
    frame["level"] = frame["level"].astype(str)  # as they stand in the file
    expected = VoteFusion("AR-winnow(1.1)", classes=list("abc"), by=["subject", "level"])
    expected.fit(frame[:150], labels[:150])
    assert found["mistakes"] == expected.report().online.mistakes
    np.testing.assert_array_equal(VoteFusion.load(model).predict(frame), expected.predict(frame))


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("topic", "no column 'topic'; it has subject, v, right"),
        ("right", "--by right is the column of labels"),
        ("subject,v", "no column besides 'right' that may be a voter"),
    ],
)
def test_fuse_by_missing_column(by: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("subject,v,right\nx,a,a\ny,b,b\n")
    assert main(["fuse", str(path), "--label", "right", "--by", by]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.count("\n") == 1
