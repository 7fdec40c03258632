"""Generated problems: the majority learning problem against its definition, and a jury against its description."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linmax.datasets import jury_problem, majority_problem


def label_of(votes, k):
    """The definition, for one trial: most votes, ties to the smallest class."""
    counts = Counter(int(v) for v in votes)
    return max(range(k), key=lambda c: (counts[c], -c))


def scores(weights, votes, k):
    """Linear-max scores of one trial: voters, then the k thresholds."""
    total = np.array(weights[len(votes) :], dtype=float)
    np.add.at(total, np.asarray(votes), weights[: len(votes)])
    return total


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_labels_follow_the_definition(data):
    n = data.draw(st.integers(1, 8))
    r = data.draw(st.integers(1, n))
    k = data.draw(st.integers(2, 6))
    problem = majority_problem(n, r, k, 0.3, 30, data.draw(st.integers(0, 1000)))
    assert problem.votes.shape == (30, n)
    assert problem.votes.dtype == problem.labels.dtype == problem.clean.dtype == np.int32
    assert problem.votes.min() >= 0
    assert problem.votes.max() < k
    assert problem.clean.tolist() == [label_of(v[:r], k) for v in problem.votes]
    assert problem.labels.min() >= 0
    assert problem.labels.max() < k


def test_the_target_of_the_paper():
    problem = majority_problem(trials=1)
    expected = [1 / 12] * 10 + [0] * 10 + [4 / 60, 3 / 60, 2 / 60, 1 / 60, 0]
    np.testing.assert_allclose(problem.target, expected, rtol=1e-14)
    assert problem.margin == pytest.approx(1 / 60, rel=1e-14)
    u = problem.target[problem.target > 0]
    assert 3.2 * 3600 * (np.log(25) + np.sum(u * np.log(u))) == pytest.approx(7328.85, abs=0.01)


@pytest.mark.parametrize(("r", "k"), [(1, 2), (1, 3), (2, 2), (2, 3), (3, 2), (3, 4), (4, 3), (5, 3)])
def test_the_margin_is_exact_over_all_instances(r, k):
    """Brute force over every vote of the relevant: the least lead is delta, neither less nor more."""
    problem = majority_problem(r + 1, r, k, trials=1)
    leads = []
    for votes in product(range(k), repeat=r):
        label = label_of(votes, k)
        s = scores(problem.target, [*votes, 0], k)
        leads.append(s[label] - np.delete(s, label).max())
    assert problem.target.sum() == pytest.approx(1.0, rel=1e-14)
    assert min(leads) == pytest.approx(problem.margin, rel=1e-9)


def test_a_longer_run_begins_with_the_same_trials():
    short, long = (majority_problem(noise=0.2, trials=t, seed=7) for t in (333, 2000))
    for name in ("votes", "labels", "clean"):
        np.testing.assert_array_equal(getattr(short, name), getattr(long, name)[:333])


def test_noise_levels_share_their_trials():
    clean, low, high = (majority_problem(noise=p, seed=3) for p in (0.0, 0.1, 0.3))
    np.testing.assert_array_equal(clean.votes, high.votes)
    np.testing.assert_array_equal(clean.labels, clean.clean)
    noisy = low.labels != low.clean
    assert noisy.any()
    np.testing.assert_array_equal(low.labels[noisy], high.labels[noisy])


def test_seeds_differ_and_repeat():
    one, again, two = (majority_problem(seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.votes, again.votes)
    assert np.mean(one.votes != two.votes) == pytest.approx(0.8, abs=0.02)


def test_votes_and_noise_are_uniform():
    problem = majority_problem(noise=0.4, trials=50_000, seed=5)
    frequencies = np.bincount(problem.votes.ravel(), minlength=5) / problem.votes.size
    np.testing.assert_allclose(frequencies, 0.2, atol=0.003)
    noisy = problem.labels != problem.clean
    assert noisy.mean() == pytest.approx(0.4, abs=0.01)
    shift = (problem.labels[noisy] - problem.clean[noisy]) % 5
    np.testing.assert_allclose(np.bincount(shift, minlength=5)[1:] / noisy.sum(), 0.25, atol=0.02)


def test_noise_one_is_never_right():
    for k in (2, 5):
        problem = majority_problem(k=k, noise=1.0, trials=500)
        assert (problem.labels != problem.clean).all()


def test_the_perceptron_makes_as_many_mistakes_as_it_should():
    """About 374 in 5000 trials without noise (mean of runs; a run varies by about 20)."""
    totals = []
    for seed in range(6):
        problem = majority_problem(seed=seed)
        weights, mistakes = np.zeros(25), 0
        hot = np.concatenate([np.eye(5)[problem.votes], np.broadcast_to(np.eye(5), (5000, 5, 5))], axis=1)
        for x, label in zip(hot, problem.labels, strict=True):
            s = weights @ x
            mistakes += int(np.argmax(s)) != label
            others = s.copy()
            others[label] = -np.inf
            rival = int(np.argmax(others))
            if s[label] <= s[rival]:
                weights += x[:, label] - x[:, rival]
        totals.append(mistakes)
    assert np.mean(totals) == pytest.approx(374, abs=25)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"n": 0}, ValueError, "n must be >= 1, got 0"),
        ({"n": 2.5}, TypeError, "n must be a whole number, got 2.5"),
        ({"n": True}, TypeError, "n must be a whole number, got True"),
        ({"r": 0}, ValueError, "r must be >= 1, got 0"),
        ({"r": 21}, ValueError, "r must be <= n = 20"),
        ({"k": 1}, ValueError, "k must be >= 2, got 1"),
        ({"k": "5"}, TypeError, "k must be a whole number, got '5'"),
        ({"noise": -0.1}, ValueError, "noise must be >= 0, got -0.1"),
        ({"noise": 1.1}, ValueError, "noise must be <= 1 .*, got 1.1"),
        ({"noise": float("nan")}, ValueError, "noise must be finite, got nan"),
        ({"noise": "much"}, TypeError, "noise must be a number, got 'much'"),
        ({"trials": 0}, ValueError, "trials must be >= 1, got 0"),
        ({"seed": -1}, ValueError, "seed must be >= 0, got -1"),
        ({"seed": None}, TypeError, "seed must be a whole number, got None"),
    ],
)
def test_bad_arguments(arguments, error, words):
    with pytest.raises(error, match=words):
        majority_problem(**arguments)


# -- juries -----


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
def test_invalid_arguments_are_refused(argument, value, remedy):
    with pytest.raises(ValueError, match=remedy):
        jury_problem(**{argument: value})
