"""Mistakes of users are caught, not learned."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import linmax
from linmax.data.names import distinct_names


def test_text_for_numbers_is_matched_with_a_word_about_it() -> None:
    votes, labels = [["1", "0"], ["0", "1"], ["1", None]], [1, 0, 1]
    fusion = linmax.VoteFusion("perceptron")
    with pytest.warns(UserWarning, match="'0' is taken for the class 0, and so for 1 more"):
        fusion.fit(votes, labels)
    assert fusion.classes_.tolist() == [0, 1]
    with pytest.warns(UserWarning, match="is taken for the class"):
        assert fusion.predict(votes).tolist() == [1, 0, 1]
    same = linmax.VoteFusion("perceptron").fit([[1, 0], [0, 1], [1, None]], labels)
    assert fusion.weights() == same.weights()


def test_whole_numbers_with_gaps_as_pandas_writes_them(tmp_path) -> None:
    frame = pd.DataFrame({"a": [1, None, 2], "b": [2, 1, 2]})
    frame.to_csv(tmp_path / "votes.csv", index=False)  # 1.0, 2.0 in column a
    text = pd.read_csv(tmp_path / "votes.csv", dtype=str)
    assert "1.0" in text["a"].tolist()
    with pytest.warns(UserWarning, match="'1.0' is taken for the class '1'"):
        fusion = linmax.VoteFusion("perceptron").fit(text, ["1", "1", "2"])
    assert fusion.classes_.tolist() == ["1", "2"]
    numbers = linmax.VoteFusion("perceptron").fit(frame, [1, 1, 2])  # 1.0 is 1
    assert numbers.weights() == fusion.weights()


def test_votes_and_labels_of_two_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="votes.*'cat'.*labels.* 0"):
        linmax.VoteFusion("perceptron").fit([["cat"], ["dog"]], [0, 1])
    with pytest.raises(ValueError, match="votes.* 3.*labels.*'cat'"):
        linmax.VoteFusion("perceptron").fit([[3], [4]], ["cat", "dog"])


def test_probabilities_are_refused_with_the_right_call() -> None:
    random = np.random.default_rng(0)
    chances, labels = random.random((30, 3)), random.integers(0, 2, 30)
    with pytest.raises(
        ValueError, match=r"is not a label; probabilities .* numbers such as np.stack\(\[1 - p, p\], axis=2\)"
    ):
        linmax.VoteFusion().fit(chances, labels)
    fusion = linmax.VoteFusion("perceptron").fit(np.stack([1 - chances, chances], axis=2), labels)
    assert len(fusion.voters_) == 3
    halves = linmax.VoteFusion("perceptron").fit([[0.5], [1.5]], [0.5, 1.5])  # labels with fractions are labels
    assert halves.classes_.tolist() == [0.5, 1.5]


def test_no_vote_is_asked_about() -> None:
    votes, labels = [[0, -1], [1, 1]], [0, 1]
    with pytest.raises(ValueError, match="votes: -1 at trial 0.*abstain=-1"):
        linmax.VoteFusion("perceptron").fit(votes, labels)
    fusion = linmax.VoteFusion("perceptron", abstain=-1).fit(votes, labels)
    assert fusion.classes_.tolist() == [0, 1]
    assert linmax.VoteFusion("perceptron").fit(votes, [-1, 1]).classes_.tolist() == [-1, 0, 1]


def test_an_id_is_no_voter() -> None:
    frame = pd.DataFrame({"question": [f"q{t}" for t in range(40)], "a": ["x", "y"] * 20})
    with pytest.raises(ValueError, match="'question'.*'q0'"):
        linmax.VoteFusion("perceptron").fit(frame, ["x", "y"] * 20)
    with pytest.raises(ValueError, match="column 0 has another value in every row"):
        linmax.VoteFusion("perceptron").fit(frame.to_numpy(), ["x", "y"] * 20)


def test_refused_input_changes_nothing() -> None:
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


def plain(trials: int = 60) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    labels = random.integers(0, 3, trials)
    return np.where(random.random((trials, 3)) < 0.8, labels[:, None], random.integers(0, 3, (trials, 3))), labels


def test_an_id_that_counts_from_0_is_no_voter_either() -> None:
    votes, labels = plain()
    frame = pd.DataFrame(votes, columns=["a", "b", "c"]).assign(id=np.arange(60))
    for y in (labels, None):
        with pytest.raises(ValueError, match="column 'id' has another value in every row, such as 3"):
            linmax.VoteFusion("perceptron").fit(frame, y)
    answers = [[f"answer {t}", f"answer {t}" if t % 3 == 0 else f"guess {t}"] for t in range(40)]
    with pytest.warns(UserWarning, match="taken as open"):
        open_ended = linmax.VoteFusion("perceptron").fit(answers, [f"answer {t}" for t in range(40)])
    assert open_ended.voters_ == ["0", "1"]  # another answer to every question, and a voter that is mostly wrong


def test_predict_refuses_what_learn_refuses() -> None:
    votes, labels = plain()
    fusion = linmax.VoteFusion("perceptron").fit(votes, labels)
    with pytest.raises(ValueError, match="0.25 at trial 0, voter 0 is not a label"):
        fusion.predict([[0.25, 0.5, 0.75]])
    with pytest.raises(ValueError, match="votes: -1 at trial 0.*abstain=-1"):
        fusion.predict_proba([[-1, 0, 1]])
    with pytest.raises(ValueError, match="votes are text, such as 'cat'"):
        fusion.predict([["cat", "cat", "dog"]])
    text = linmax.VoteFusion("perceptron").fit(votes.astype(str), labels.astype(str))
    with pytest.raises(ValueError, match="votes: '-1' at trial .*abstain='-1'"):
        text.predict([["-1", "0", "1"]])
    assert text.predict([["3", "3", "3"]]).tolist() == ["3"]  # a class that may be new


def test_no_vote_is_asked_about_in_text() -> None:
    votes, labels = plain()
    for y in (labels.astype(str), labels, None):
        with pytest.raises(ValueError, match="votes: '-1' at trial .*abstain='-1'"):
            linmax.VoteFusion("perceptron").fit(np.where(votes == 2, -1, votes).astype(str), y)


def test_classes_are_written_as_labels_are() -> None:
    votes, labels = plain()
    gaps = pd.DataFrame(votes).astype(float).mask(np.random.default_rng(1).random(votes.shape) < 0.1)
    fusion = linmax.VoteFusion("perceptron").fit(gaps, labels)
    assert list(map(type, fusion.classes_.tolist())) == [int, int, int]
    assert fusion.predict(gaps).dtype.kind == "i"
    truth = linmax.VoteFusion("perceptron").fit(votes > 0, (labels > 0).astype(int))
    assert list(map(type, truth.classes_.tolist())) == [int, int]


def test_spaces_around_a_class_are_not_meant() -> None:
    rows, labels = [["yes ", "no"], ["no", " no"], ["yes", ""]], ["yes", "no", "  "]
    with pytest.warns(UserWarning, match="' no' is taken for the class 'no', and so for 1 more"):
        fusion = linmax.VoteFusion("perceptron").fit(rows, labels)
    assert fusion.classes_.tolist() == ["no", "yes"]
    assert fusion.report().online.trials == 2  # the third has no label, and its second voter abstains


def test_votes_of_which_none_is_a_label() -> None:
    votes, labels = plain()
    said, told = np.array(["Yes", "No", "Perhaps"])[votes], np.array(["yes", "no", "perhaps"])[labels]
    with pytest.raises(ValueError, match="'No'.*'no'"):
        linmax.VoteFusion("perceptron").fit(said, told)
    frame = pd.DataFrame(said, columns=["a", "b", "c"]).assign(subject=["law", "physics"] * 30)
    with pytest.warns(UserWarning, match="column 'subject'.*'law'.*remove"):
        linmax.VoteFusion("perceptron").fit(frame, np.array(["Yes", "No", "Perhaps"])[labels])


def test_held_out_labels_are_matched_too() -> None:
    votes, labels = plain()
    fusion = linmax.VoteFusion("perceptron").fit(votes, labels)
    with pytest.warns(UserWarning, match="is taken for the class"):
        told = fusion.report(votes, labels.astype(str))
    assert told.test is not None
    assert told.test.accuracy == fusion.report(votes, labels).test.accuracy


def test_unusable_class_is_named() -> None:
    fusion = linmax.VoteFusion("perceptron").fit({"ann": ["x", "y"], "bob": ["x", "x"]}, ["x", "y"])
    with pytest.raises(TypeError, match="votes: {'x'} at trial 0, voter 'bob'"):
        fusion.partial_fit({"ann": ["x"], "bob": [{"x"}]}, ["x"])
    with pytest.raises(TypeError, match=r"'ann'.*\['x', 'y'\]"):
        fusion.wants_label({"ann": ["x", "y"]})
    with pytest.raises(ValueError, match="voter 'bob' voted for 'z'"):
        linmax.VoteFusion("perceptron", classes=["x", "y"]).fit({"ann": ["x"], "bob": ["z"]}, ["x"])
    with pytest.raises(ValueError, match="scores.*1e.100.*1e.308 at trial 1, rater 0"):
        linmax.VoteFusion("perceptron").fit([[[0.1, 0.2]], [[1e308, 0.0]]], [0, 1])


def test_run_refuses_votes_and_labels_of_two_kinds() -> None:
    with pytest.raises(ValueError, match="votes are text, such as '0', and labels are not, such as"):
        linmax.run("perceptron", linmax.instances(votes=[["1", "0"], ["0", "0"]]), [1, 0])
    instances = linmax.instances(votes=[["a", ""], ["b", "b"]])
    assert (instances.names, instances.votes.tolist()) == (("a", "b"), [[0, -1], [1, 1]])
    assert linmax.run("perceptron", instances, ["a", "b"]).model.classes == ["a", "b"]


def test_near_miss_votes_are_reported():
    labels = ["A", "B", "C", "D"] * 10
    votes = {"ann": labels, "bob": [f"{label}." if t % 3 else label.lower() for t, label in enumerate(labels)]}
    with pytest.warns(UserWarning, match=r"'A.'.*'A'.* 7 others"):
        linmax.VoteFusion("perceptron").fit(votes, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        linmax.VoteFusion("perceptron").fit({"ann": ["a", "A"] * 15, "bob": ["a", "Z"] * 15}, ["a", "A"] * 15)


@pytest.mark.small
@pytest.mark.parametrize(
    "array",
    [
        np.array([[3, -1], [7, 3]]),
        np.array([5, 5, 5], np.uint8),
        np.array([[1, 2, 3], [3, 2, 1]], np.int16)[:, ::-1],
        np.array([0, 10**9]),
        np.array([2**63 + 1, 2**63], np.uint64),
        np.array([2**63 - 1, 2**63 - 3]),
        np.array([-(2**63), -(2**63) + 3]),
        np.array([-(2**63), 2**63 - 1]),
        np.array([True, False, True]),
        np.array([1.5, -0.0, 1.5]),
        np.array(["b", "a", "b"]),
        np.array(["b", "a", "b"], dtype=object),
        np.zeros((0, 3), np.int64),
    ],
    ids=str,
)
def test_distinct_names_are_those_of_numpy(array: np.ndarray) -> None:
    names, codes = distinct_names(array)
    expected, inverse = np.unique(array, return_inverse=True)
    assert names == expected.tolist()
    np.testing.assert_array_equal(codes, inverse.reshape(array.shape))
    assert [type(name) for name in names] == [type(name) for name in expected.tolist()]
