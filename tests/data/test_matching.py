"""Mistakes of users are caught, not learned."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import linmax


def test_text_for_numbers_is_matched_with_a_word_about_it() -> None:
    votes, labels = [["1", "0"], ["0", "1"], ["1", None]], [1, 0, 1]
    fusion = linmax.VoteFusion("perceptron")
    with pytest.warns(UserWarning, match="votes: '0' is taken for the label 0, and so for 1 more"):
        fusion.fit(votes, labels)
    assert fusion.classes_.tolist() == [0, 1]
    with pytest.warns(UserWarning, match="is taken for the label"):
        assert fusion.predict(votes).tolist() == [1, 0, 1]
    same = linmax.VoteFusion("perceptron").fit([[1, 0], [0, 1], [1, None]], labels)
    assert fusion.weights() == same.weights()


def test_whole_numbers_with_gaps_as_pandas_writes_them(tmp_path) -> None:
    frame = pd.DataFrame({"a": [1, None, 2], "b": [2, 1, 2]})
    frame.to_csv(tmp_path / "votes.csv", index=False)  # 1.0, 2.0 in column a
    text = pd.read_csv(tmp_path / "votes.csv", dtype=str)
    assert "1.0" in text["a"].tolist()
    with pytest.warns(UserWarning, match="'1.0' is taken for the label '1'"):
        fusion = linmax.VoteFusion("perceptron").fit(text, ["1", "1", "2"])
    assert fusion.classes_.tolist() == ["1", "2"]
    numbers = linmax.VoteFusion("perceptron").fit(frame, [1, 1, 2])  # 1.0 is 1
    assert numbers.weights() == fusion.weights()


def test_votes_and_labels_of_two_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="votes are text, such as 'cat', and labels are not, such as 0"):
        linmax.VoteFusion("perceptron").fit([["cat"], ["dog"]], [0, 1])
    with pytest.raises(ValueError, match="votes are numbers, such as 3, and labels are not, such as 'cat'"):
        linmax.VoteFusion("perceptron").fit([[3], [4]], ["cat", "dog"])


def test_probabilities_are_refused_with_the_right_call() -> None:
    random = np.random.default_rng(0)
    chances, labels = random.random((30, 3)), random.integers(0, 2, 30)
    with pytest.raises(ValueError, match=r"is never a label. Probabilities .*np.stack\(\[1 - p, p\], axis=2\)"):
        linmax.VoteFusion().fit(chances, labels)
    fusion = linmax.VoteFusion("perceptron").fit(np.stack([1 - chances, chances], axis=2), labels)
    assert len(fusion.voters_) == 3
    halves = linmax.VoteFusion("perceptron").fit([[0.5], [1.5]], [0.5, 1.5])  # labels with fractions are labels
    assert halves.classes_.tolist() == [0.5, 1.5]


def test_no_vote_is_asked_about() -> None:
    votes, labels = [[0, -1], [1, 1]], [0, 1]
    with pytest.raises(ValueError, match="votes: -1 is never a label; pass abstain=-1"):
        linmax.VoteFusion("perceptron").fit(votes, labels)
    fusion = linmax.VoteFusion("perceptron", abstain=-1).fit(votes, labels)
    assert fusion.classes_.tolist() == [0, 1]
    assert linmax.VoteFusion("perceptron").fit(votes, [-1, 1]).classes_.tolist() == [-1, 0, 1]


def test_an_id_is_no_voter() -> None:
    frame = pd.DataFrame({"question": [f"q{t}" for t in range(40)], "a": ["x", "y"] * 20})
    with pytest.raises(ValueError, match="column 'question' has another value in every row, such as 'q0'"):
        linmax.VoteFusion("perceptron").fit(frame, ["x", "y"] * 20)
    with pytest.raises(ValueError, match="column 0 has another value in every row"):
        linmax.VoteFusion("perceptron").fit(frame.to_numpy(), ["x", "y"] * 20)


def test_nothing_is_learned_from_what_is_refused() -> None:
    fusion = linmax.VoteFusion("perceptron").partial_fit([["a", "b"]] * 3, ["a"] * 3)
    before = fusion.weights()
    for votes in ([[0.3, 0.4]], [[3, 4]]):
        with pytest.raises(ValueError, match="votes"):
            fusion.partial_fit(votes * 2, [0, 1] if votes == [[0.3, 0.4]] else ["a", "b"])
    assert fusion.weights() == before
    assert fusion.classes_.tolist() == ["a", "b"]


def test_votes_that_name_other_classes_are_what_they_are() -> None:
    fusion = linmax.VoteFusion("perceptron").partial_fit([["a"]], ["b"])  # text for text: a class of its own
    assert sorted(fusion.classes_.tolist()) == ["a", "b"]
