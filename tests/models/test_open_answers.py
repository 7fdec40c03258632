"""Open answers: every trial has its own candidates, and nothing is learned about single answers."""

from __future__ import annotations

import pickle
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmax
from linmax.data.answers import KEYS
from linmax.models import asking
from linmax.models.shard import learn_rows

SKILLS = [0.85, 0.8, 0.6, 0.5, 0.4, 0.3]


def questions(count: int, seed: int = 0) -> tuple[list[list[Any]], list[str]]:
    """Answers that no other question has; wrong ones are shared by about a third of the voters."""
    rng = np.random.default_rng(seed)
    rows, labels = [], []
    for t in range(count):
        truth = f"{t}.5"
        wrong = [f"{t}.{digit}" for digit in (1, 2, 3)]
        row: list[Any] = [truth if rng.random() < skill else str(rng.choice(wrong)) for skill in SKILLS]
        if rng.random() < 0.2:
            row[int(rng.integers(len(row)))] = None
        rows.append(row)
        labels.append(truth if rng.random() < 0.95 else "nobody")
    return rows, labels


def fitted(**options: Any) -> linmax.VoteFusion:
    return linmax.VoteFusion(answers="open", **options).fit(*questions(200))


def test_it_beats_plurality_and_never_sees_an_answer_again() -> None:
    report = fitted().report()
    assert report.online.trials == 200
    assert report.online.accuracy["fusion"] > report.online.accuracy["plurality"] + 0.05
    rows, labels = questions(200, seed=1)
    test = fitted().report(rows, labels).test
    assert test is not None
    assert test.accuracy["fusion"] > test.accuracy["plurality"] + 0.05


def test_probabilities_of_each_trial_add_up_to_one() -> None:
    fusion = fitted()
    rows, _ = questions(30, seed=2)
    for row, shares, answer in zip(rows, fusion.predict_proba(rows), fusion.predict(rows), strict=True):
        assert set(shares) == {*row, None}
        assert sum(shares.values()) == pytest.approx(1.0)
        assert answer == max((name for name in shares if name is not None), key=shares.__getitem__)
    unnamed = sum(label not in row for row, label in zip(*questions(200), strict=True))
    assert shares[None] == pytest.approx((0.5 + unnamed) / 210.0)


def test_empty_text_is_an_answer_where_nothing_means_abstention() -> None:
    rows, labels = [["", "", "x"], ["y", "", None], ["", "z", ""]] * 10, ["", "y", ""] * 10
    fusion = linmax.VoteFusion(answers="open", abstain=set()).fit(rows, labels)
    assert fusion.report().online.trials == 30
    assert fusion.predict(rows[:1]).tolist() == [""]
    assert set(fusion.predict_proba([["", None, np.nan]])[0]) == {"", None}
    silent = linmax.VoteFusion(answers="open").fit(rows, labels)
    assert silent.report().online.trials == 10
    assert set(silent.predict_proba([["", "x", " "]])[0]) == {"x", None}


def test_a_trial_without_answers_has_none() -> None:
    fusion = fitted()
    assert fusion.predict([[None] * 6]).tolist() == [None]
    assert fusion.predict_proba([[None] * 6]) == [{None: 1.0}]


def test_a_label_that_no_voter_gave_is_a_mistake_and_changes_no_weight() -> None:
    fusion = fitted()
    weights, trials = fusion._current_model.weights.arrays.voters, fusion.report().online
    fusion.partial_fit([["p", "q", "p", "r", "q", "p"]], ["none of these"])
    after = fusion.report().online
    assert (after.trials, after.mistakes) == (trials.trials + 1, trials.mistakes + 1)
    np.testing.assert_array_equal(fusion._current_model.weights.arrays.voters, weights)


@pytest.mark.parametrize("learner", ["auto", "A-perceptron", "winnow(1.1)"])
def test_cuts_and_files_change_nothing(learner: str, tmp_path: Path) -> None:
    rows, labels = questions(60)
    labels[7] = None  # type: ignore[call-overload]
    whole = linmax.VoteFusion(learner, answers="open").fit(rows, labels)
    parts = linmax.VoteFusion(learner, answers="open")
    for t in range(60):
        parts.partial_fit(rows[t : t + 1], labels[t : t + 1])
        if t == 30:
            parts.save(tmp_path / "fusion.linmax")
            parts = linmax.VoteFusion.load(tmp_path / "fusion.linmax")
    test = questions(20, seed=3)[0]
    assert parts.predict_proba(test) == whole.predict_proba(test)
    assert parts.report().online.to_dict() == whole.report().online.to_dict()


@pytest.mark.parametrize("learner", ["auto", "R-perceptron", "V-perceptron", "AR-winnow(1.1)", "vr-combine"])
def test_it_learns_as_a_learner_of_candidates(learner: str) -> None:
    rows, labels = questions(60)
    fusion, one = linmax.VoteFusion(learner, answers="open"), linmax.Learner(learner)
    for row, label in zip(rows, labels, strict=True):
        answers = sorted({*row} - {None}, key=lambda answer: zlib.crc32(repr(answer).encode()))
        if label not in answers:
            continue
        votes = {str(i): answer for i, answer in enumerate(row)}
        predicted = one.learn(candidates=answers, votes=votes, label=label)
        if fusion.__sklearn_is_fitted__():
            assert fusion.predict([row])[0] == predicted
        fusion.partial_fit([row], [label])
    assert fusion.report().online.mistakes == one.mistakes


def test_a_learner_answers_as_a_fusion(tmp_path: Path) -> None:
    rows, labels = questions(80)
    labels[7] = None  # type: ignore[call-overload]
    rows[9] = [None if vote is None else f"{vote}0" if t % 2 else vote for t, vote in enumerate(rows[9])]
    fusion, one = linmax.VoteFusion(answers="open", key="number"), linmax.Learner(answers="open", key="number")
    for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
        votes = {str(i): answer for i, answer in enumerate(row)}
        if fusion.__sklearn_is_fitted__():
            assert one.predict_proba(votes=votes) == pytest.approx(fusion.predict_proba([row])[0])
            assert one.predict(votes=votes, id=t) == fusion.predict([row])[0]
            one.learn(id=t, label=label) if label is not None else one.learn(votes=votes, label=None)
        else:
            one.learn(votes=votes, label=label)
        fusion.partial_fit([row], [label])
        if t == 40:
            one.save(tmp_path / "one.linmax")
            one = linmax.Learner.load(tmp_path / "one.linmax")
    report = fusion.report().online
    assert (one.trials, one.mistakes) == (report.trials, report.mistakes)
    one.forget(7)
    heard: dict[str, Any] = {}
    while (voter := one.ask(heard, tolerance=0.01)) is not None:
        assert fusion.ask(heard, tolerance=0.01) == voter
        heard[voter] = rows[0][int(voter)]
    assert fusion.ask(heard, tolerance=0.01) is None
    assert one.predict_proba(votes=heard) == pytest.approx(fusion.predict_proba([heard])[0])
    one.learn(votes=heard, label=labels[0])
    fusion.partial_fit([heard], labels[:1])
    assert one.predict_proba(votes=heard) == pytest.approx(fusion.predict_proba([heard])[0])
    assert one.predict(votes={"0": None}) is None
    assert one.predict_proba(votes={"0": None}) == {None: 1.0}
    early = linmax.Learner.load(tmp_path / "one.linmax")
    early.forget(7)
    merged = linmax.merge([one, early])
    assert (merged.key, merged.trials) == ("number", one.trials + early.trials)


def test_a_learner_takes_scores_of_answers_in_any_spelling() -> None:
    one, rng = linmax.Learner(answers="open", key="number"), np.random.default_rng(0)
    for t in range(150):
        votes = {"ann": f"{t}", "bob": f"{t + 1}"}
        right = f"{t + int(rng.integers(2))}.0"
        one.learn(votes=votes, scores={"sure": {right: 0.9, "999": 1.0}}, label=right)
    assert one.predict(votes={"ann": "5", "bob": "6"}, scores={"sure": {"6.00": 0.9}}) == "6"
    with pytest.raises(TypeError, match="dict from answer to number"):
        one.predict(votes={"ann": "5", "bob": "6"}, scores={"sure": [0.1, 0.2]})
    with pytest.raises(ValueError, match="candidates must be absent"):
        one.predict(votes={"ann": "5"}, candidates=["5"])


def rated_questions(count: int, seed: int = 0) -> tuple[list[dict[str, Any]], list[str]]:
    """Two voters that are right by turns, as the first rater knows; the second one rates what nobody says as well."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    labels = []
    for t in range(count):
        right = int(rng.integers(2))
        answers = [f"{2 * t}.50", f"{2 * t + 1}"]
        sure: dict[str, float | None] = {answers[right].rstrip("0"): float(rng.uniform(0.4, 1.0)), "999": 1.0}
        row: dict[str, Any] = {"ann": answers[0], "bob": answers[1], "cy": str(rng.choice(answers)), "sure": sure}
        if t > 5:
            row["length"] = {answers[0]: len(answers[0]), answers[1]: None}
        if t and rng.random() < 0.2:
            row["sure"] = None
        rows.append(row)
        labels.append(answers[right] if rng.random() < 0.9 else "nobody")
    return rows, labels


@pytest.mark.parametrize("learner", ["auto", "perceptron", "AR-winnow(1.1)"])
def test_raters_in_a_table_are_those_of_a_learner(learner: str, tmp_path: Path) -> None:
    rows, labels = rated_questions(120)
    if "winnow" in learner:  # takes numbers that differ by at most 1
        rows = [{name: cell for name, cell in row.items() if name != "length"} for row in rows]
    fusion = linmax.VoteFusion(learner, answers="open", key="number")
    one = linmax.Learner(learner, answers="open", key="number", thresholds=False)
    for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
        votes = {name: row[name] for name in ("ann", "bob", "cy")}
        scores = {name: {a: v for a, v in (row[name] or {}).items() if v is not None} for name in row.keys() - votes}
        if t > 10:
            assert one.predict_proba(votes=votes, scores=scores) == pytest.approx(fusion.predict_proba([row])[0])
        one.learn(votes=votes, scores=scores, label=label)
        fusion.partial_fit([row], [label])
    whole = linmax.VoteFusion(learner, answers="open", key="number").fit(rows, labels)
    whole.save(tmp_path / "whole.linmax")
    more = rated_questions(20, seed=1)[0]
    if "winnow" in learner:
        more = [{name: cell for name, cell in row.items() if name != "length"} for row in more]
    for other in (whole, linmax.VoteFusion.load(tmp_path / "whole.linmax"), pickle.loads(pickle.dumps(whole))):
        for mine, theirs in zip(fusion.predict_proba(more), other.predict_proba(more), strict=True):
            assert mine == pytest.approx(theirs)


def test_raters_find_the_right_answer_where_votes_cannot(tmp_path: Path) -> None:
    rows, labels = rated_questions(200)
    fusion = linmax.VoteFusion(key="number").fit(rows, labels)
    assert fusion.voters_ == ["ann", "bob", "cy"]
    assert {*fusion.weights()} == {"ann", "bob", "cy", "sure", "length"}
    row = {"ann": "7.5", "bob": "8", "cy": "8", "sure": {"7.50": 0.9}}
    assert fusion.predict([row])[0] == "7.5"
    explanation = fusion.explain(row)
    assert max(explanation.contributions, key=explanation.contributions.__getitem__) == "sure"
    assert fusion.predict([{**row, "sure": {"8": 0.9}}])[0] == "8"
    report = fusion.report(*rated_questions(100, seed=2))
    assert report.test is not None
    assert report.test.accuracy["fusion"] > report.test.accuracy["plurality"] + 0.1
    assert "ann" in str(report)
    report.to_html(tmp_path / "page.html")
    votes = {name: row[name] for name in ("ann", "sure")}
    with pytest.raises(ValueError, match="tolerance=0.002 requires votes alone"):
        fusion.ask(votes)
    assert fusion.ask(votes, tolerance=0) in {"bob", "cy"}
    columns = {name: [row.get(name) for row in rows] for name in ("ann", "bob", "cy", "sure", "length")}
    table = linmax.VoteFusion(key="number").fit(columns, labels)
    assert table.predict_proba([row]) == fusion.predict_proba([row])
    frame = pytest.importorskip("pandas").DataFrame(columns)
    assert linmax.VoteFusion(key="number").fit(frame, labels).predict_proba([row]) == fusion.predict_proba([row])
    assert fusion.predict([{**row, "sure": None}])[0] in {"7.5", "8"}


def test_merged_fusions_join_their_raters() -> None:
    rows, labels = rated_questions(100)
    one = linmax.VoteFusion("perceptron", key="number").fit(rows[:50], labels[:50])
    other = linmax.VoteFusion("perceptron", key="number").fit(
        [{"self": {row["ann"]: 1.0}, "bob": row["bob"], "ann": row["ann"]} for row in rows[50:]], labels[50:]
    )
    merged = linmax.merge([one, other])
    assert {*merged.weights()} == {"ann", "bob", "cy", "sure", "length", "self"}
    assert merged.weights()["sure"] > 0.0


def test_shards_take_open_answers_with_their_scores() -> None:
    rows, labels = questions(60)
    table: dict[str, Any] = {name: [row[v] for row in rows] for v, name in enumerate("abcdef")}
    whole = linmax.VoteFusion(answers="open").fit(
        table | {"sure:b": [{row[1]: t % 3} if row[1] is not None else {} for t, row in enumerate(rows)]}, labels
    )
    shard = linmax.VoteFusion(answers="open")
    counts = learn_rows(shard, table | {"sure:b": [t % 3 for t in range(60)], "label": labels})
    assert shard.raters_ == ["sure:b"]
    assert (counts.strange, shard.report().to_dict()) == ([], whole.report().to_dict())


@pytest.mark.parametrize(
    ("column", "options", "message"),
    [
        ([{"1": 0.5}, 3], {}, "rates answers, so each cell must be a dict from answer to number; got 3 at trial 1"),
        ([{"1": "high"}, None], {}, "'sure' must rate answers by numbers of at most .* got 'high' for '1' at trial 0"),
        ([{"1": 1.0}, None], {"answers": "closed"}, "'sure' rates answers by dicts, which is for open answers"),
    ],
)
def test_bad_ratings_are_named(column: list[Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        linmax.VoteFusion(**options).fit({"ann": ["1", "2"], "sure": column}, ["1", "2"])


def test_raters_keep_their_role() -> None:
    rows, labels = rated_questions(50)
    fusion = linmax.VoteFusion(key="number").fit(rows, labels)
    row = {"ann": "1", "bob": "2", "cy": "2"}
    before = fusion.predict_proba([row])
    for wrong in ({"sure": "1"}, {"new": {"1": 1.0}}, {"bob": {"1": 1.0}}):
        with pytest.raises((TypeError, ValueError), match="'sure' rates|'new' is not a known rater|'bob'"):
            fusion.predict([{**row, **wrong}])
    with pytest.raises(ValueError, match="'bob' is a voter already, and rates answers"):
        fusion.partial_fit([{"ann": "1", "bob": {"1": 1.0}}], ["1"])
    assert fusion.predict_proba([row]) == before
    with pytest.raises(ValueError, match="raters require names"):
        linmax.VoteFusion(answers="open").fit([["1", {"1": 1.0}]], ["1"])


def test_a_prediction_changes_nothing_and_may_have_more_candidates_than_any_trial() -> None:
    fusion = linmax.VoteFusion(answers="open").fit([["x", "x", "y", "x", "y", "x"]] * 10, ["x"] * 10)
    before = {name: array.copy() for name, array in fusion.state()[1].items()}
    assert fusion.predict([list("abcdef")])[0] in "abcdef"
    assert len(fusion.predict_proba([list("abcdef")])[0]) == 7
    for name, array in fusion.state()[1].items():
        np.testing.assert_array_equal(array, before[name])


def test_a_key_decides_which_answers_are_the_same() -> None:
    fusion = linmax.VoteFusion(key="number").fit([["0.50", "1/2", "3"], ["2", "2 m", "1"]] * 10, [".5", 2] * 10)
    assert fusion.predict([[".5", "1/2", "7 apples"]])[0] in (".5", "1/2")
    assert len(fusion.predict_proba([[".5", "1/2", "7 apples"]])[0]) == 3  # two answers, and none of them


def test_the_heaviest_voter_spells_the_answer() -> None:
    rows = [[f"{t}", f"{t}", f"{t + 1}"] for t in range(40)]
    labels = [f"{t}" if t % 4 else f"{t + 1}" for t in range(40)]
    rows = [[first if t % 8 else f"{t + 1}", second, third] for t, (first, second, third) in enumerate(rows)]
    fusion = linmax.VoteFusion(key="number").fit(rows, labels)
    assert fusion.predict([["1.0", "1.00", "9"]])[0] == "1.0"


@pytest.mark.parametrize("key", [*KEYS, None])
def test_open_answers_are_found_by_themselves(key: str | None) -> None:
    with pytest.warns(UserWarning, match="taken as open"):
        fusion = linmax.VoteFusion().fit(*questions(60))
    assert isinstance(fusion.predict_proba(questions(1)[0])[0], dict)


def test_closed_answers_stay_closed() -> None:
    jury = linmax.datasets.jury_problem(trials=100)
    fusion = linmax.VoteFusion().fit(jury.votes, jury.labels)
    assert fusion.predict_proba({name: votes[:1] for name, votes in jury.votes.items()}).shape == (1, 10)


def test_wrong_unlabelled_and_weighted_trials() -> None:
    rows, labels = questions(50)
    fusion = linmax.VoteFusion(answers="open").fit(rows, labels)
    trials = fusion.report().online.trials
    fusion.partial_fit(rows[:2], [None, None])
    assert fusion.report().online.trials == trials
    before = fusion.predict_proba([["a", "b", "b", "a", "a", "b"]])[0]["a"]
    for _ in range(20):
        fusion.partial_fit([["a", "b", "b", "a", "a", "b"]], ["a"], wrong=np.array([True]))
    assert fusion.predict_proba([["a", "b", "b", "a", "a", "b"]])[0]["a"] < before
    fusion.partial_fit(rows, labels, sample_weight=np.full(50, 2.0))


def test_asking_explaining_and_sets() -> None:
    fusion = fitted()
    row = ["p", "p", "q", "q", "r", None]
    explanation = fusion.explain(row)
    assert explanation.winner == "p"
    assert explanation.votes["4"] == "r"
    assert "p" in fusion.predict_set([row])[0]
    votes: dict[str, Any] = {}
    while (voter := fusion.ask(votes, tolerance=0.05)) is not None:
        votes[voter] = row[int(voter)]
    assert 1 <= len(votes) <= 6
    assert fusion.panel().enough().voters
    assert fusion.predict([row], reject=1e-6).tolist() == [None]


def test_lead_of_only_candidate(monkeypatch: Any) -> None:
    levels = np.array([np.inf, 5.0, 5.0, 5.0, 5.0, -np.inf])
    monkeypatch.setattr(asking, "choose_rule", lambda *_: asking.AskingRule("lead", levels))
    fusion, votes = fitted(), dict[str, Any]()
    while (voter := fusion.ask(votes, tolerance=0.01, explore=0.0)) is not None:
        votes[voter] = "p"
    assert len(votes) == 2


def test_the_few_answer_only_where_one_of_them_does() -> None:
    fusion, votes = fitted(), dict[str, Any]()
    while (voter := fusion.ask(votes, tolerance=0.05, explore=0.0)) is not None:
        votes[voter] = None
    others = [name for name in fusion.voters_ if name not in votes]
    assert fusion.predict([dict.fromkeys(votes) | dict.fromkeys(others[:1], "p")])[0] == ("p" if others else None)


def test_reports_leave_out_what_needs_classes() -> None:
    rows, labels = questions(200)
    rows = [[*row, row[0]] for row in rows]
    labels[150] = rows[150][5] if rows[150][5] not in (None, labels[150]) else "151.1"
    report = linmax.VoteFusion(answers="open").fit(rows, labels).report()
    with pytest.raises(ValueError, match="requires classes"):
        report.confusion("0")
    assert report.suspicions() == ["0 and 6 give the same answer in every row. Keep one."]
    assert {doubt.label for doubt in report.suspicious_labels()} <= {None}
    assert "<svg" in report._repr_html_()


def test_voters_may_join_and_models_merge() -> None:
    rows, labels = questions(80)
    first = linmax.VoteFusion(answers="open").fit(rows[:40], labels[:40])
    second = linmax.VoteFusion(answers="open").fit(rows[40:], labels[40:])
    merged = linmax.merge([first, second])
    assert merged.report().online.trials == 80
    assert isinstance(merged.predict_proba(rows[:1])[0], dict)
    first.partial_fit([[*row, label] for row, label in zip(rows[:5], labels[:5], strict=True)], labels[:5])
    assert len(first.voters_) == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"answers": "some"}, "answers"),
        ({"answers": "open", "key": "numbers"}, "key must be"),
        ({"answers": "closed", "key": "number"}, "open answers"),
        ({"answers": "open", "classes": ["x"]}, "classes must not be given"),
        ({"key": lambda answer: 1 // 0}, r"key failed for the answer '0.5' at trial 0.*ZeroDivisionError"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        linmax.VoteFusion(**options).fit([["0.5", "x"], ["x", "0.5"]], ["x", "x"])


def test_a_key_that_is_not_hashable_names_the_answer_and_changes_nothing() -> None:
    fusion = linmax.VoteFusion(answers="open", key=lambda answer: [answer] if answer == "bad" else answer)
    fusion.fit([["x", "y"], ["x", "x"]], ["x", "x"])
    before = fusion.predict_proba([["x", "y"]])
    with pytest.raises(TypeError, match="hashable.*'bad' at trial 1, voter 1"):
        fusion.partial_fit([["x", "y"], ["x", "bad"]], ["x", "x"])
    assert fusion.predict_proba([["x", "y"]]) == before


def test_a_key_that_is_a_function_is_given_again_after_loading(tmp_path: Path) -> None:
    fusion = linmax.VoteFusion(key=str.lower).fit([["X", "x", "y"]] * 5, ["x"] * 5)
    fusion.save(tmp_path / "fusion.linmax")
    loaded = linmax.VoteFusion.load(tmp_path / "fusion.linmax")
    with pytest.raises(ValueError, match="set_params"):
        loaded.predict([["X", "x", "y"]])
    loaded.set_params(key=str.lower)
    assert loaded.predict_proba([["X", "x", "y"]]) == fusion.predict_proba([["X", "x", "y"]])
