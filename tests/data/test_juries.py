"""A generated jury is what its description says."""

import numpy as np
import pytest

from linmax import jury_problem


def test_the_same_seed_gives_the_same_jury():
    one, other = jury_problem(trials=50, seed=3), jury_problem(trials=50, seed=3)
    assert all((one.votes[name] == other.votes[name]).all() for name in one.votes)
    assert one.labels.tolist() == other.labels.tolist() != jury_problem(trials=50, seed=4).labels.tolist()


def test_sizes_and_answers():
    jury = jury_problem(families=8, sizes=4, classes=3, trials=200, abstain=0.2)
    assert len(jury.votes) == 32
    assert set(jury.labels) == set("ABC")
    said = np.array(list(jury.votes.values()))
    assert set(said.ravel()) == {"A", "B", "C", None}
    assert 0.17 < np.mean(said == None) < 0.23  # noqa: E711


def test_models_fail_together_and_weak_ones_outvote_the_strong():
    jury = jury_problem(trials=4000)
    right = np.array([votes == jury.labels for votes in jury.votes.values()])
    assert right.mean(axis=1).argmax() == 0
    letters = np.array(list("ABCDEFGHIJ"))
    counts = np.array([(np.array(list(jury.votes.values())) == letter).sum(axis=0) for letter in letters])
    plurality = np.mean(letters[counts.argmax(axis=0)] == jury.labels)
    assert plurality < right.mean(axis=1).max() - 0.05
    assert np.corrcoef(right)[0, 3] > 0.3  # the large models of two families


@pytest.mark.parametrize(
    ("argument", "value", "remedy"),
    [
        ("families", 9, "families must be <= 8"),
        ("classes", 27, "classes must be <= 26"),
        ("abstain", 1.5, "abstain"),
        ("sizes", 0, "sizes"),
    ],
)
def test_what_cannot_be_is_refused(argument, value, remedy):
    with pytest.raises(ValueError, match=remedy):
        jury_problem(**{argument: value})
