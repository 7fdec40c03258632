"""Votes as people have them: rows as dicts, Arrow tables, numbers for names, other spellings; the same through all."""

from __future__ import annotations

import numpy as np
import pytest

from linmax import Learner, VoteFusion

pa = pytest.importorskip("pyarrow")


def jury(trials: int = 120, seed: int = 0) -> tuple[list[dict[str, int]], list[int]]:
    random = np.random.default_rng(seed)
    labels = random.integers(1, 4, trials)
    votes = np.where(
        random.random((trials, 4)) < [0.9, 0.6, 0.6, 0.5], labels[:, None], random.integers(1, 4, (trials, 4))
    )
    return [dict(zip("abcd", row, strict=True)) for row in votes.tolist()], labels.tolist()


def columns(rows: list[dict[str, int]]) -> dict[str, list[int | None]]:
    return {name: [row.get(name) for row in rows] for name in "abcd"}


def test_rows_as_dicts_are_columns() -> None:
    rows, labels = jury()
    by_rows, by_columns = VoteFusion().fit(rows[:80], labels[:80]), VoteFusion().fit(columns(rows[:80]), labels[:80])
    assert np.array_equal(by_rows.predict_proba(rows[80:]), by_columns.predict_proba(columns(rows[80:])))


def test_who_is_absent_from_a_row_was_not_asked() -> None:
    rows, labels = jury()
    few = [{"a": 1, "b": 1}, {"a": 2, "c": 1}, {"a": 3, "b": None, "c": 3, "d": 1}]
    one, other = VoteFusion().fit(rows, labels), VoteFusion().fit(rows, labels)
    one.partial_fit(few, [1, 2, 3])
    for row, label in zip(few, [1, 2, 3], strict=True):
        other.partial_fit({name: [vote] for name, vote in row.items()}, [label])
    assert str(one.panel()) == str(other.panel())
    assert np.array_equal(one.predict_proba(rows), other.predict_proba(rows))
    with pytest.raises(TypeError, match=r"trial 1 is \[1, 2\]; give all alike"):
        one.predict([{"a": 1}, [1, 2]])


def test_a_table_of_arrow() -> None:
    rows, labels = jury()
    fusion, table = VoteFusion().fit(rows, labels), pa.table(columns(rows))
    assert np.array_equal(fusion.predict_proba(table), fusion.predict_proba(rows))
    assert np.array_equal(VoteFusion().fit(table, labels).predict(table), fusion.predict(rows))


@pytest.mark.parametrize("vote", [1, "cat"])
def test_one_vote_is_no_column(vote: int | str) -> None:
    fusion = VoteFusion().fit(*jury())
    with pytest.raises(TypeError, match="votes of 'a' must be a column, with one vote for each trial, got"):
        fusion.predict({"a": vote, "b": vote})


def test_voters_without_names_go_by_number() -> None:
    rows, labels = jury()
    table = [list(row.values()) for row in rows]
    fusion, other = VoteFusion().fit(table, labels), VoteFusion().fit(table, labels)
    voter = fusion.ask({}, tolerance=0)
    assert voter is not None
    fusion.partial_fit({voter: [2]}, [2])  # as `ask` says to do
    other.partial_fit([[2 if str(i) == voter else ... for i in range(4)]], [2])
    assert np.array_equal(fusion.predict_proba(table), other.predict_proba(table))
    said = {"3": [1], "0": [2]}
    assert np.array_equal(fusion.predict_proba(said), fusion.predict_proba([[2, ..., ..., 1]]))
    assert str(fusion.explain({"0": 2, "3": 1})) == str(fusion.explain([2, ..., ..., 1]))


def test_asking_takes_votes_as_they_are_meant() -> None:
    rows, labels = jury(200)
    fusion = VoteFusion().fit(rows, labels)
    for said in ({"a": 1, "b": 1}, {"a": 1, "b": 2, "c": 1}):
        whom = fusion.ask(said, tolerance=0.01)
        with pytest.warns(UserWarning, match="'1' is taken for the class 1"):
            assert fusion.ask({name: str(vote) for name, vote in said.items()}, tolerance=0.01) == whom
    for vote, told in ((0.3, "0.3 at trial 0, voter 'a' is not a label"), (-1, "pass None or abstain=-1")):
        with pytest.raises(ValueError, match=told):
            fusion.ask({"a": vote}, tolerance=0.01)


@pytest.mark.parametrize("seed", range(3))
def test_wrong_with_new_names_equals_learner(seed: int) -> None:
    random = np.random.default_rng(seed)
    fusion, learner = VoteFusion(), Learner()
    for t in range(60):
        present = [name for name, begin in zip("abcde", (0, 0, 0, 9, 30), strict=True) if t >= begin]
        classes = "xyz"[: 2 if t < 20 else 3]
        label, row = random.choice(list(classes)), {}
        for name in present:
            row[name] = str(label if random.random() < 0.7 else random.choice(list(classes)))
        wrong = next((vote for vote in row.values() if vote != label), None)
        one = {name: [vote] for name, vote in row.items()}
        if wrong is not None and (len(set(row.values())) > 1 or t) and random.random() < 0.6:
            fusion.partial_fit(one, [wrong], wrong=[True])
            learner.learn(votes=row, wrong=wrong)
        else:
            fusion.partial_fit(one, [str(label)])
            learner.learn(votes=row, label=str(label))
        found = learner.predict_proba(votes=row)
        assert dict(zip(fusion.classes_.tolist(), fusion.predict_proba(one)[0], strict=True)) == pytest.approx(found)


def test_a_wrong_answer_with_a_new_voter_and_side_columns() -> None:
    rows, labels = jury()
    fusion = VoteFusion(by="subject").fit({**columns(rows), "subject": ["law", "art"] * 60}, labels)
    fusion.partial_fit({"a": [1], "new": [1], "subject": ["music"]}, [1], wrong=[True])
    assert fusion.voters_ == ["a", "b", "c", "d", "new"]
    first = VoteFusion(by="subject").partial_fit({"a": [1], "b": [2], "subject": ["law"]}, [1], wrong=[True])
    assert first.classes_.tolist() == [1, 2]


def test_scores_and_wrong_answers_know_the_classes_of_all_trials() -> None:
    random = np.random.default_rng(1)
    labels = random.choice(["x", "y", "z"], 60)
    scores = random.random((60, 3, 3)) + 2.0 * (labels[:, None, None] == np.array(["x", "y", "z"]))
    wrong = np.arange(60) % 3 == 0
    said = np.where(wrong, [{"x": "y", "y": "z", "z": "x"}[label] for label in labels], labels)
    fusion = VoteFusion().partial_fit(scores, said, wrong=wrong)
    assert (fusion.predict(scores) == labels).mean() > 0.9
