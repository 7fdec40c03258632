"""VoteFusion: what it learns, what it says of itself, and how it is kept."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rich.console import Console
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

import linmax
from linmax import VoteFusion
from linmax.models.baselines import FIRST_VOTER, FUSION, PLURALITY, Rival, Tally
from linmax.models.calibration import fit_probabilities
from linmax.models.report import Report, Voter, bar

LETTERS = np.array(list("abc"))


def problem(trials=120, seed=0, voters=5, noise=0.1):
    """Votes of letters with abstentions: the later the voter, the worse."""
    random = np.random.default_rng(seed)
    labels = random.integers(3, size=trials)
    votes = np.full((trials, voters), None, dtype=object)
    for i in range(voters):
        right = random.random(trials) < 0.95 - 0.15 * i
        said = LETTERS[np.where(right, labels, random.integers(3, size=trials))]
        votes[:, i] = np.where(random.random(trials) < 0.1, None, said)
    labels = np.where(random.random(trials) < noise, random.integers(3, size=trials), labels)
    return votes, LETTERS[labels]


def ratings(trials=90, raters=4, seed=0):
    random = np.random.default_rng(seed)
    labels = random.integers(3, size=trials)
    scores = random.normal(size=(trials, raters, 3))
    for i in range(raters):
        scores[:, i] += (3.0 - i) * np.eye(3)[labels]
        scores[:, i] *= 10.0**i
    return scores, LETTERS[labels]


# -- learning -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["perceptron", "AR-winnow(1.1)", "combine(perceptron, winnow(1.2), how=wma)"])
def test_it_is_the_learner_on_the_votes(learner):
    votes, labels = problem()
    trace = linmax.run(learner, linmax.instances(votes=votes, classes=list("abc")), labels)
    fusion = VoteFusion(learner, classes=list("abc")).fit(votes, labels)
    report = fusion.report()
    assert report.online.mistakes == trace.mistakes[-1]
    more, _ = problem(40, seed=1)
    expected = trace.model.predict(linmax.instances(votes=more, classes=list("abc")))
    np.testing.assert_array_equal(fusion.predict(more), expected)
    assert fusion.classes_.tolist() == ["a", "b", "c"]
    assert fusion.score(more, expected) == 1.0


def test_a_label_is_not_known_before_its_trial():
    fusion = VoteFusion("perceptron").partial_fit([["b", "b"], ["b", "b"]], ["a", "b"])
    assert fusion.classes_.tolist() == ["a", "b"]
    assert fusion.report().online.mistakes == 2  # nothing is known, then a alone


def test_fit_forgets():
    votes, labels = problem()
    fusion = VoteFusion("perceptron").fit(votes[::-1], labels[::-1]).fit(votes, labels)
    fresh = VoteFusion("perceptron").fit(votes, labels)
    assert fusion.report().to_dict() == fresh.report().to_dict()


FORMS = {
    "array": lambda votes: votes,
    "lists": lambda votes: votes.tolist(),
    "nan": lambda votes: np.where(votes == None, float("nan"), votes),  # noqa: E711
    "masked": lambda votes: np.ma.array(np.where(votes == None, "?", votes), mask=votes == None),  # noqa: E711
    "dict": lambda votes: {f"v{i}": votes[:, i].tolist() for i in range(votes.shape[1])},
    "pandas": lambda votes: pd.DataFrame(votes, columns=[f"v{i}" for i in range(votes.shape[1])]),
    "pandas NA": lambda votes: pd.DataFrame(votes).astype("string"),
    "categories": lambda votes: pd.DataFrame(votes).astype("category"),
    "polars": lambda votes: pl.DataFrame({f"v{i}": votes[:, i].tolist() for i in range(votes.shape[1])}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("as_y", [lambda y: y, list, pd.Series, pl.Series], ids=["array", "list", "pandas", "polars"])
def test_votes_in_any_form(form, as_y):
    votes, labels = problem(40)
    expected = VoteFusion("winnow(1.2)").fit(votes, labels)
    fusion = VoteFusion("winnow(1.2)").fit(FORMS[form](votes), as_y(labels))
    np.testing.assert_array_equal(fusion.predict(FORMS[form](votes)), expected.predict(votes))
    assert list(fusion.weights().values()) == list(expected.weights().values())
    named = form in ("dict", "pandas", "polars")
    assert fusion.voters_ == [f"v{i}" if named else str(i) for i in range(5)]
    assert fusion.n_features_in_ == 5


def test_labels_keep_their_kind():
    for labels in ([1, 2, 1], [(0, 1), (1, 1), (0, 1)], [True, False, True], ["x", 7, "x"]):
        votes = [[label, labels[0]] for label in labels]
        fusion = VoteFusion("perceptron").fit(votes, labels)
        found = fusion.predict(votes)
        assert found.tolist() == labels
        assert [type(name) for name in found.tolist()] == [type(name) for name in labels]
    with_nan = pd.DataFrame({"a": [1, 2, None], "b": [1.0, 1.0, 2.0]})  # pandas makes these floats
    assert VoteFusion("perceptron").fit(with_nan, [1, 2, 2]).classes_.tolist() == [1, 2]


def test_abstain_names_a_further_abstention():
    votes, labels = problem()
    marked = np.where(votes == None, "-", votes)  # noqa: E711
    fusion = VoteFusion("winnow(1.2)", abstain="-").fit(marked, labels)
    assert fusion.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(fusion.predict(marked), VoteFusion("winnow(1.2)").fit(votes, labels).predict(votes))


# -- growth -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["perceptron", "winnow(1.3)", "AR-winnow(1.1)", "V-perceptron"])
def test_a_voter_that_joins_had_abstained_until_then(learner):
    votes, labels = problem(200)
    votes[:100, 3:] = None
    names = [f"v{i}" for i in range(5)]
    frame = pd.DataFrame(votes, columns=names)
    whole = (
        VoteFusion(learner, classes=list("abc")).fit(frame[:100], labels[:100]).partial_fit(frame[100:], labels[100:])
    )
    grown = VoteFusion(learner, classes=list("abc")).fit(frame[:100][names[:3]], labels[:100])
    grown.partial_fit(frame[100:][["v4", "v1", "v3", "v0", "v2"]], labels[100:])  # in another order
    assert grown.voters_ == ["v0", "v1", "v2", "v4", "v3"]
    assert grown.report().online == whole.report().online
    np.testing.assert_array_equal(grown.predict(frame), whole.predict(frame))
    for name, weight in whole.weights().items():
        assert grown.weights()[name] == pytest.approx(weight, abs=1e-12)
    left = frame.drop(columns="v1")
    np.testing.assert_array_equal(grown.predict(left), whole.predict(frame.assign(v1=None)))


def test_voters_without_names_join_at_the_right():
    votes, labels = problem(100)
    fusion = VoteFusion("winnow(1.2)").fit(votes[:50, :3], labels[:50]).partial_fit(votes[50:], labels[50:])
    assert fusion.voters_ == ["0", "1", "2", "3", "4"]
    with pytest.raises(ValueError, match="4 columns without names, but 5 voters"):
        fusion.predict(votes[:, :4])


def test_a_class_that_joins():
    votes, labels = problem(200)
    late = np.where(np.arange(200) < 100, np.where(labels == "c", "a", labels), labels)
    early = np.where(votes == "c", "a", votes)
    fusion = VoteFusion("AR-winnow(1.2)").fit(early[:100], late[:100])
    assert fusion.classes_.tolist() == ["a", "b"]
    assert fusion.decision_function(early).shape == (200,)  # two classes: one number per trial
    strange = [["c"] * 5, ["c", "c", "c", "b", "b"]]
    assert fusion.predict(strange).tolist()[0] == "c"  # what was never met is a class too once it is voted for
    assert fusion.predict_proba(strange).sum() < 2.0  # c has no column
    assert fusion.predict_proba(early).sum() == pytest.approx(200.0)
    papers = VoteFusion("AR-winnow(1.2)", discover="labels").fit(early[:100], late[:100])
    assert papers.predict(strange).tolist()[1] == "b"  # votes for what was never met abstain
    fusion.partial_fit(votes[100:], late[100:])
    assert fusion.classes_.tolist() == ["a", "b", "c"]
    assert fusion.predict([["c"] * 5]).tolist() == ["c"]
    probabilities = fusion.predict_proba(votes)
    assert probabilities.shape == (200, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_a_class_that_only_votes_name():
    """It may win from the first vote on, or in the papers' way never."""
    fusion = VoteFusion("winnow(1.2)").fit([["a", "b"]], ["a"]).partial_fit([["z", "b"]], ["b"])
    assert fusion.predict([["z", "z"], ["a", "z"]]).tolist()[0] == "z"
    assert fusion.predict_proba([["z", "z"]]).argmax() == fusion.classes_.tolist().index("z")
    fusion = VoteFusion("winnow(1.2)", discover="labels").fit([["a", "b"]], ["a"])
    fusion.partial_fit([["z", "b"]], ["b"])
    assert fusion.classes_.tolist() == ["a", "b"]  # no label has named z
    assert fusion.predict([["z", "z"]]).tolist() != ["z"]
    alone = VoteFusion("perceptron", discover="labels").fit([["a"]], ["a"]).partial_fit([["b"], ["a"]], ["a", "a"])
    assert alone.classes_.tolist() == ["a"]
    assert alone.predict([["b"]]).tolist() == ["a"]
    assert alone.predict_proba([["b"]]).tolist() == [[1.0]]


# -- telling ------------------------------------------------------------------------------------------------------

CASES = [
    (learner, thresholds) for learner in ("perceptron", "AR-winnow(1.1)", "V-alma(2)") for thresholds in (True, False)
]


@pytest.mark.parametrize(("learner", "thresholds"), CASES)
def test_contributions_add_up_to_the_difference(learner, thresholds):
    votes, labels = problem()
    fusion = VoteFusion(learner, classes=list("abc"), thresholds=thresholds).fit(votes, labels)
    scores, predicted = fusion.decision_function(votes), fusion.predict(votes)
    np.testing.assert_array_equal(fusion.classes_[scores.argmax(axis=1)], predicted)
    weights = fusion.weights()
    assert sum(map(abs, weights.values())) == pytest.approx(1.0)
    assert list(map(abs, weights.values())) == sorted(map(abs, weights.values()), reverse=True)
    for t in range(20):
        told = fusion.explain(votes[t])
        winner, second = (fusion.classes_.tolist().index(name) for name in (told.winner, told.runner_up))
        assert told.winner == predicted[t]
        assert told.difference == pytest.approx(scores[t, winner] - scores[t, second], abs=1e-12)
        assert told.difference == pytest.approx(sum(told.contributions.values()))
        assert ("(thresholds)" in told.contributions) == thresholds
        for i, vote in enumerate(votes[t]):
            name = str(i)
            sign = (vote == told.winner) - (vote == told.runner_up)
            assert told.contributions[name] == pytest.approx(sign * weights[name], abs=1e-12)
            assert told.votes[name] == vote


def test_an_instance_in_any_form_is_explained():
    votes, labels = problem(50)
    frame = pd.DataFrame(votes, columns=list("vwxyz"))
    fusion = VoteFusion("winnow(1.2)").fit(frame, labels)
    expected = fusion.explain(votes[7])
    forms = [votes[7].tolist(), votes[7:8], frame.iloc[7], frame.iloc[7:8], dict(zip("vwxyz", votes[7], strict=True))]
    for form in forms:
        assert fusion.explain(form) == expected
    shown = str(expected)
    assert f"{expected.winner} rather than {expected.runner_up}, by" in shown
    assert json.loads(json.dumps(expected.to_dict()))["winner"] == expected.winner
    absent = {name: vote for name, vote in zip("vwxyz", votes[7], strict=True) if name != "v"}
    assert fusion.explain(absent).contributions["v"] == 0.0
    with pytest.raises(ValueError, match="one trial, got 2"):
        fusion.explain(votes[:2])


def slow_tally(votes, labels, fusion_right, k):
    """Trial by trial in plain Python: rights, wins and losses of plurality (ties by chance) and of the voters."""
    n = len(votes[0])
    right, wins, losses = ([0] * (FIRST_VOTER + n) for _ in range(3))
    recent = [0.0] * n
    for row, label, fused in zip(votes, labels, fusion_right, strict=True):
        counts = [sum(v == c for v in row) for c in range(k)]
        tied = counts.count(max(counts))
        answers = [fused, (max(counts) == counts[label] > 0) / tied]
        so_far = right[FIRST_VOTER:]
        answers.append(row[so_far.index(max(so_far))] == label)
        answers.append(row[recent.index(max(recent))] == label)
        recent = [0.99 * before + (v == label) for before, v in zip(recent, row, strict=True)]
        answers += [False, *(v == label for v in row)]  # there is no soft voting without scores
        for i, answer in enumerate(answers):
            right[i] += answer
            wins[i] += fused * (1 - answer)
            losses[i] += answer * (1 - fused)
    return right, wins, losses


@settings(max_examples=40, deadline=None)
@given(arrays(np.int64, st.tuples(st.integers(1, 12), st.integers(2, 5)), elements=st.integers(-1, 2)), st.data())
def test_the_tally_is_its_definition(table, data):
    votes, labels = table[:, 1:], np.abs(table[:, 0])
    fused = np.array(data.draw(st.lists(st.booleans(), min_size=len(table), max_size=len(table))))
    cut = data.draw(st.integers(0, len(table)))
    tally = Tally()
    for part in (slice(0, cut), slice(cut, None)):
        tally.add(fused[part], votes[part], labels[part], 3)
    right, wins, losses = slow_tally(votes.tolist(), labels.tolist(), fused.tolist(), 3)
    np.testing.assert_allclose(tally.right, right)
    np.testing.assert_allclose(tally.arrays["counts"][1:3], [wins, losses])
    assert tally.answered[FIRST_VOTER:].tolist() == (votes >= 0).sum(axis=0).tolist()
    np.testing.assert_array_equal(tally.curve(FUSION), np.cumsum(~fused))
    np.testing.assert_array_equal(tally.curve(FIRST_VOTER), np.cumsum(votes[:, 0] != labels))


def test_curves_are_thinned_not_lost():
    random = np.random.default_rng(0)
    right = random.random(5000) < 0.7
    tally = Tally()
    for begin in range(0, 5000, 37):
        part = right[begin : begin + 37]
        tally.add(part, np.zeros((len(part), 1), np.int64), np.zeros(len(part), np.int64), 1)
    assert len(tally.arrays["times"]) == 5000 // 8
    curve = tally.curve(FUSION)
    assert len(curve) == 5000
    assert curve[-1] == (~right).sum()
    assert np.abs(curve - np.cumsum(~right)).max() < 30
    np.testing.assert_array_equal(tally.curve(PLURALITY), 0.0)


@pytest.mark.parametrize("won", [0.001, 0.005, 0.02])
@pytest.mark.parametrize("lost", [0.001, 0.005, 0.02])
def test_intervals_cover_the_difference(won, lost):
    """Of 400 rows with few wins and losses, where a percentile bootstrap covers the truth in less than half."""
    random = np.random.default_rng(3)
    wins, losses, _ = random.multinomial(400, [won, lost, 1.0 - won - lost], size=2000).T
    rivals = [Rival.of("voter", 0, *pair, 400) for pair in zip(wins.tolist(), losses.tolist(), strict=True)]
    assert np.mean([rival.low <= won - lost <= rival.high for rival in rivals]) > 0.93
    assert [rival.difference for rival in rivals[:9]] == ((wins - losses) / 400)[:9].tolist()


def test_every_verdict():
    random = np.random.default_rng(0)
    labels = random.integers(3, size=400)
    good, fair, as_fair = (np.where(random.random(400) < share, labels, (labels + 1) % 3) for share in (0.95, 0.7, 0.7))
    cases = [
        (good, fair, "beats", "fusion", "Fusion beats the best voter (Smith, Ann) by"),
        (fair, good, "loses to", "best_voter", "Fusion loses to the best voter (Smith, Ann) by"),
        (
            fair,
            as_fair,
            "unclear",
            None,
            "Fusion does not differ clearly from the best voter (Smith, Ann) and plurality.",
        ),
    ]
    for fused, voter, verdict, winner, sentence in cases:
        tally = Tally()
        tally.add(fused == labels, voter[:, None], labels, 3)
        comparison = tally.compare(["Smith, Ann"])
        assert comparison.rivals["best_voter"].verdict == verdict
        assert winner in (None, comparison.winner)
        shown = str(Report("perceptron", comparison, None, (Voter("Smith, Ann", None, 0.7, 1.0),)))
        assert sentence in shown


def test_report_on_held_out_trials():
    votes, labels = problem(600, seed=5)
    frame = pd.DataFrame(votes, columns=[f"v{i}" for i in range(5)])
    fusion = VoteFusion("AR-winnow(1.1)").fit(frame[:400], labels[:400])
    report = fusion.report(frame[400:], labels[400:])
    assert report.test.trials == 200
    accuracy = report.test.accuracy
    assert accuracy["fusion"] == pytest.approx(fusion.score(frame[400:], labels[400:]))
    alone = [(votes[400:, i] == labels[400:]).mean() for i in range(5)]
    assert accuracy["best_voter"] == pytest.approx(max(alone))
    leader = int(np.argmax([(votes[:400, i] == labels[:400]).sum() for i in range(5)]))
    assert accuracy["best_so_far"] == pytest.approx(alone[leader])
    figures = json.loads(json.dumps(report.to_dict()))
    assert set(figures) >= {"trials", "mistakes", "accuracy", "test_accuracy", "weights", "comparisons"}
    always = {"fusion", "plurality", "best_voter", "best_so_far", "best_recent", "logit"}
    assert set(figures["accuracy"]) == always | {"logit_recent", "fixed_share"}
    assert set(figures["test_accuracy"]) == always
    shown = str(report)
    assert "Held out: 200 trials" in shown
    assert re.search(r"Fusion .*(beats|differ|loses)", shown)
    assert "plurality breaks ties by chance" in shown
    before = fusion.report().to_dict()
    fusion.report(frame[400:], np.where(labels[400:] == "a", "new", labels[400:]))  # a class nobody knows
    assert fusion.report().to_dict() == before
    with pytest.raises(ValueError, match="both votes and y"):
        fusion.report(frame)
    with pytest.raises(ValueError, match="shape \\(3,\\) for 600"):
        fusion.report(frame, labels[:3])


def test_the_report_fits_a_terminal_without_block_characters():
    votes, labels = problem(100, voters=40)
    names = [f"[bold]a voter with quite a long name {i}" for i in range(40)]
    fusion = VoteFusion("perceptron").fit(pd.DataFrame(votes, columns=names), labels)
    narrow = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="ascii"), width=60)
    narrow.print(fusion.report())
    narrow.file.flush()
    shown = narrow.file.buffer.getvalue().decode("ascii", errors="strict")
    assert "#" in shown
    assert "and 10 more voters" in shown
    assert max(map(len, shown.splitlines())) <= 60
    assert "[bold]a voter" in str(fusion.report())
    assert bar(1e9) == "█" * 20
    assert bar(-1.0) == "░" * 20  # negative weights look negative without colours too


def test_learners_without_one_weight_vector():
    votes, labels = problem()
    for learner in ("combine(perceptron, winnow(1.2), how=wma)", "stack(perceptron, winnow(1.2), fusion=winnow(1.1))"):
        fusion = VoteFusion(learner).fit(votes, labels)
        with pytest.raises(ValueError, match="not a single weight vector"):
            fusion.weights()
        report = fusion.report()
        assert report.to_dict()["weights"] == {}
        assert "no single weight for each voter" in str(report)
        scores = fusion.decision_function(votes)
        np.testing.assert_array_equal(fusion.classes_[scores.argmax(axis=1)], fusion.predict(votes))


def test_plot_names_its_curves(tmp_path):
    votes, labels = problem()
    fusion = VoteFusion("winnow(1.2)").fit(votes, labels)
    figure = fusion.plot(tmp_path / "curves.svg")
    told = " ".join(text.get_text() for text in figure.axes[0].get_legend().get_texts())
    assert (tmp_path / "curves.svg").stat().st_size > 1000
    for name in ("fusion", "plurality", "best voter, 0", "best voter so far"):
        assert name in told
    online = fusion.report().online
    wrong = online.trials * (1.0 - online.accuracy["best_so_far"])
    assert f"best voter so far  {wrong:.0f}" in told


# -- probabilities ------------------------------------------------------------------------------------------------


def test_sharpness_and_guess_rate_are_the_likeliest():
    random = np.random.default_rng(0)
    scores = random.normal(size=(2000, 4))
    labels = (scores + random.gumbel(size=(2000, 4)) / 3).argmax(axis=1)
    labels = np.where(random.random(2000) < 0.2, random.integers(4, size=2000), labels)

    def loss(beta, guess):
        shares = np.exp(beta * scores) / np.exp(beta * scores).sum(axis=1, keepdims=True)
        return -np.log((1 - guess) * shares[np.arange(2000), labels] + guess / 4).sum() - np.log(guess)

    beta, guess = fit_probabilities(scores, labels)
    for factor in (0.5, 0.98, 1.02, 2.0):
        assert loss(beta, guess) < loss(beta * factor, guess)
        assert loss(beta, guess) < loss(beta, guess * factor)
    assert beta == pytest.approx(3.0, rel=0.3)
    assert guess == pytest.approx(0.2, abs=0.07)


def test_probabilities_are_as_sure_as_they_are_right():
    data = linmax.datasets.majority_problem(n=20, r=10, k=5, noise=0.2, trials=4000, seed=2)
    fusion = VoteFusion("AR-winnow(1.1)").fit(data.votes[:2000], data.labels[:2000])
    probabilities = fusion.predict_proba(data.votes[2000:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert probabilities.max(axis=1).mean() == pytest.approx(
        fusion.score(data.votes[2000:], data.labels[2000:]), abs=0.05
    )
    np.testing.assert_array_equal(fusion.classes_[probabilities.argmax(axis=1)], fusion.predict(data.votes[2000:]))


# -- scores -------------------------------------------------------------------------------------------------------


def test_raters_on_any_scale_are_fused():
    scores, labels = ratings(600)
    kinds = ["minmax", "softmax", "borda", "onehot", "log"]
    fusion = VoteFusion("AR-winnow(1.1)", normalize=kinds).fit(scores[:300], labels[:300])
    report = fusion.report(scores[300:], labels[300:])
    assert report.test.accuracy["fusion"] > 0.9
    by_name = VoteFusion("AR-winnow(1.1)", normalize=kinds).fit(
        {str(i): scores[:300, i] for i in range(4)}, labels[:300]
    )
    np.testing.assert_array_equal(fusion.predict(scores), by_name.predict({str(i): scores[:, i] for i in range(4)}))
    copies = fusion.weights(copies=True)
    assert set(copies["0"]) == set(kinds)
    for name, weight in fusion.weights().items():
        assert sum(copies[name].values()) == pytest.approx(weight)
    figures = report.to_dict()
    assert sum(figures["normalizations"].values()) == pytest.approx(1.0)
    assert "Weight by normalization: minmax" in str(report)


def test_contributions_of_raters_add_up():
    scores, labels = ratings()
    fusion = VoteFusion("AR-balanced-winnow(1.1)", normalize="auto").fit(scores, labels)
    decided = fusion.decision_function(scores)
    for t in range(10):
        told = fusion.explain(scores[t])
        winner, second = (fusion.classes_.tolist().index(name) for name in (told.winner, told.runner_up))
        assert sum(told.contributions.values()) == pytest.approx(decided[t, winner] - decided[t, second], abs=1e-12)
        assert list(told.votes.values()).count(None) == 0


def test_a_rater_that_joins():
    scores, labels = ratings()
    fusion = VoteFusion("winnow(1.1)", normalize=["borda", "log"])
    fusion.fit({"a": scores[:50, 0], "b": scores[:50, 1]}, labels[:50])
    fusion.partial_fit({"c": scores[50:, 2], "a": scores[50:, 0]}, labels[50:])
    assert fusion.voters_ == ["a", "b", "c"]
    assert len(fusion.predict({"b": scores[:3, 1]})) == 3


def test_the_classes_of_scores():
    scores, labels = ratings(60)
    numbers = np.searchsorted(LETTERS, labels)
    assert VoteFusion("perceptron").fit(scores, labels).classes_.tolist() == ["a", "b", "c"]
    assert VoteFusion("perceptron").fit(scores, np.minimum(numbers, 1)).classes_.tolist() == [0, 1, 2]
    swapped = VoteFusion("winnow(1.1)", classes=["c", "b", "a"]).fit(scores[:, :, ::-1], labels)
    straight = VoteFusion("winnow(1.1)").fit(scores, labels)
    np.testing.assert_array_equal(swapped.predict(scores[:, :, ::-1]), straight.predict(scores))
    with pytest.raises(ValueError, match="scores rate 3 classes but y has 2 labels, such as 'a'; pass classes="):
        VoteFusion("perceptron").fit(scores, np.where(labels == "c", "a", labels))
    fusion = VoteFusion("perceptron").fit(scores, labels)
    with pytest.raises(ValueError, match="fitted to scores, got votes"):
        fusion.predict([["a", "b", "c", "a"]])
    with pytest.raises(ValueError, match="rate 2 classes, but there are 3"):
        fusion.predict(scores[:, :, :2])


# -- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("votes", "y", "error", "said"),
    [
        ([["a", "b"]], ["a", "b"], ValueError, "got shape (2,) for 1 trials"),
        ([["a"], ["b", "a"]], ["a", "b"], ValueError, "['b', 'a'] at trial 1"),
        (pd.DataFrame({"v": []}), [], ValueError, "at least one trial and one voter, got shape (0, 1)"),
        (np.empty((2, 0), object), ["a", "b"], ValueError, "one voter"),
        (np.array(["a", "b"]), ["a", "b"], ValueError, "(trials, voters) labels or (trials, raters, classes)"),
        ([["a", "b"]], [["a"]], TypeError, "not hashable"),
        ("a,b", ["a"], TypeError, "got str"),
        (7, ["a"], TypeError, "got int"),
        ([7], ["a"], ValueError, "got 7 at trial 0"),
        ([], [], ValueError, "got shape (0, 0)"),
        ({"v": ["a"], "w": ["a", "b"]}, ["a"], ValueError, "one shape"),
        (pd.DataFrame([["a", "b"]], columns=["v", "v"]), ["a"], ValueError, "two voters are called 'v'"),
        (np.full((2, 1, 2), np.nan), [0, 1], ValueError, "scores must be finite, got nan at (0, 0, 0)"),
    ],
)
def test_bad_trials_are_refused(votes, y, error, said):
    with pytest.raises(error, match=re.escape(said)):
        VoteFusion("perceptron").fit(votes, y)


def test_a_refused_call_leaves_the_model():
    votes, labels = problem(50)
    frame = pd.DataFrame(votes, columns=list("vwxyz"))
    fusion = VoteFusion("AR-winnow(1.1)", classes=list("abc")).fit(frame, labels)
    before = pickle.dumps(fusion._state.parts())
    bad = [
        (frame[:10], labels[:9]),
        (frame[:2].assign(new=["a", "d"]), ["a", "b"]),
        (frame[:2], ["a", "d"]),
        (frame[:2], [None, "d"]),
        (np.zeros((2, 5, 3)), ["a", "b"]),
        (votes[:2, :4], ["a", "b"]),
    ]
    for v, y in bad:
        with pytest.raises((ValueError, TypeError)):
            fusion.partial_fit(v, y)
    for v, y in bad[:4]:
        with pytest.raises((ValueError, TypeError)):
            fusion.fit(v, y)
    assert pickle.dumps(fusion._state.parts()) == before
    with pytest.raises(ValueError, match="'new' is not a known voter"):
        fusion.predict(frame.assign(new="a"))
    with pytest.raises(ValueError, match="voted for 'd'"):
        fusion.predict([["d"] * 5])


def test_unfitted_fusion():
    fusion = VoteFusion()
    for use in (fusion.predict, fusion.predict_proba, fusion.decision_function, fusion.explain):
        with pytest.raises(NotFittedError, match="call fit"):
            use([["a"]])
    for use in (fusion.report, fusion.weights, fusion.plot, lambda: fusion.classes_, lambda: fusion.save("x")):
        with pytest.raises(NotFittedError):
            use()
    with pytest.raises(TypeError, match="classes must be a list"):
        VoteFusion("perceptron", classes="abc").fit([["a"]], ["a"])
    with pytest.raises(ValueError, match="classes must be distinct"):
        VoteFusion("perceptron", classes=["a", "a"]).fit([["a"]], ["a"])
    with pytest.raises(ValueError, match="tie must be"):
        VoteFusion("perceptron", tie="first").fit([["a"]], ["a"])
    with pytest.raises(ValueError, match="did you mean 'perceptron'"):
        VoteFusion("percepton").fit([["a"]], ["a"])


def test_one_class_alone():
    fusion = VoteFusion("perceptron").fit([["a"], [None]], ["a", "a"])
    assert fusion.predict([["a"], ["b"]]).tolist() == ["a", "a"]
    assert fusion.predict_proba([["a"]]).tolist() == [[1.0]]
    with pytest.raises(ValueError, match="requires two classes, or different answers, got .'a'."):
        fusion.explain(["a"])


# -- keeping ------------------------------------------------------------------------------------------------------


def test_labels_of_every_plain_kind_are_kept(tmp_path):
    labels = ["text", 7, 2.5, True, ("a", (1, False))]
    fusion = VoteFusion("perceptron", classes=labels, abstain=("no", 0)).fit([[label] for label in labels], labels)
    fusion.save(tmp_path / "model")
    other = VoteFusion.load(tmp_path / "model")
    assert other.classes_.tolist() == labels
    assert [type(label) for label in other.classes_.tolist()] == [type(label) for label in labels]
    assert other.abstain == ("no", 0)
    strange = VoteFusion("perceptron").fit([[frozenset("a")]], [frozenset("a")])
    with pytest.raises(TypeError, match="cannot be saved; use text, numbers or tuples"):
        strange.save(tmp_path / "never")
    assert not (tmp_path / "never").exists()


def test_a_file_of_another_kind_is_refused(tmp_path):
    from linmax.util import files

    files.write(tmp_path / "other", "example", {}, {})
    with pytest.raises(ValueError, match="holds a 'example', not a 'vote fusion'"):
        VoteFusion.load(tmp_path / "other")
    files.write(tmp_path / "hollow", "vote fusion", {"parameters": {}}, {})
    with pytest.raises(ValueError, match="hollow does not hold a whole VoteFusion"):
        VoteFusion.load(tmp_path / "hollow")


def test_it_is_a_scikit_learn_estimator():
    votes, labels = problem(200)
    fusion = VoteFusion(linmax.rules.winnow(1.2), abstain="x", thresholds=False)
    twin = clone(fusion)
    assert twin.get_params() == fusion.get_params()
    assert twin.set_params(learner="perceptron").learner == "perceptron"
    assert "VoteFusion(" in repr(fusion)
    accuracy = cross_val_score(fusion, votes, labels, cv=4)
    assert accuracy.mean() > 0.75
    assert fusion.fit(votes, labels).score(votes, labels) > 0.75


# -- a real problem -----------------------------------------------------------------------------------------------


def test_language_models_are_fused_beyond_the_best():
    folder = os.environ.get("LINMAX_DATA")
    path = Path(folder or ".") / "fusion_mmlu_pro" / "votes.csv"
    if not path.exists():
        pytest.skip("LINMAX_DATA names no folder with fusion_mmlu_pro/votes.csv")
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    votes = np.array([[vote or None for vote in row[4:-1]] for row in rows], dtype=object)
    labels = np.array([row[-1] for row in rows])
    found = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(rows))
        learn, test = order[:8000], order[8000:]
        fusion = VoteFusion().fit(votes[learn], labels[learn])
        found.append(fusion.score(votes[test], labels[test]))
    assert np.median(found) >= 0.728
    report = fusion.report(votes[test], labels[test])
    assert report.test.rivals["best_voter"].verdict == "beats"
    assert report.test.rivals["plurality"].verdict == "beats"


@pytest.mark.small
def test_several_labels_may_mean_abstention(tmp_path):
    votes = {"ann": ["a", "N/A", "b", "b", "refused"], "bob": ["N/A", "b", "refused", "a", "b"]}
    empty = {name: [None if vote in ("N/A", "refused") else vote for vote in said] for name, said in votes.items()}
    y = ["a", "b", "b", "b", "b"]
    fusion = linmax.VoteFusion("perceptron", abstain={"N/A", "refused"})
    fusion.partial_fit(votes, [None, "a", "a", "a", "b"], wrong=[False, True, False, True, False])
    plain = linmax.VoteFusion("perceptron")
    plain.partial_fit(empty, [None, "a", "a", "a", "b"], wrong=[False, True, False, True, False])
    fusion.partial_fit(votes, y)
    plain.partial_fit(empty, y)
    fusion.save(tmp_path / "fusion.linmax")
    for one in (fusion, linmax.VoteFusion.load(tmp_path / "fusion.linmax"), clone(fusion).fit(votes, y)):
        assert one.abstain == {"N/A", "refused"}
        assert one.classes_.tolist() == ["a", "b"]
    loaded = linmax.VoteFusion.load(tmp_path / "fusion.linmax")
    np.testing.assert_array_equal(loaded.predict_proba(votes), plain.predict_proba(empty))
    assert fusion.report().to_dict() == plain.report().to_dict()
