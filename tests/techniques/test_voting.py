"""Voting: the schedule of saved hypotheses, their windows, replacement, restarts and the guarantee."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import linmax
from compare import problem
from compare_techniques import follow_technique
from linmax import Learner, combine, parse, recycle, run, vote
from linmax.datasets import majority_problem
from linmax.engine.engine import Engine
from linmax.jit.compiling import JIT
from linmax.techniques.voting import BASIC, CENTRE, OPEN, RESTARTS, SIZE, SPACING, TAU, VOTING, WAIT, half_window

pytestmark = pytest.mark.portable

NEVER = 2**30
compiled = pytest.mark.skipif(not JIT, reason="needs many trials")


class Watched:
    """A vote over a Perceptron that is never wrong after its first trial, so that nothing restarts."""

    def __init__(self, **options: Any) -> None:
        self.instances = linmax.instances(votes=[[0, 1]], classes=range(2), thresholds=False)
        self.machine = run(vote("perceptron", d=NEVER, **options), self.instances[:0], []).model

    def play(self, trials: int = 1) -> Watched:
        self.machine.run(self.instances[np.zeros(trials, int)], [0] * trials)
        return self

    @property
    def ballot(self) -> Any:
        return self.machine.engine.top.ballot

    @property
    def saved(self) -> list[int]:
        return sorted(self.ballot.centres[: self.ballot.marks[SIZE]].tolist())


def schedule(h: int, trials: int, **options: Any) -> list[list[int]]:
    """The nominal trials of the saved hypotheses after each trial."""
    watched = Watched(h=h, **options)
    return [watched.play().saved for _ in range(trials)]


@pytest.mark.small
def test_schedule_of_four() -> None:
    """1, 2, 3, 4 | 6, 8 | 12, 16, in the places of 1, 3 | 2, 6 | 4, 12."""
    after = schedule(4, 33, w=0)
    by_trial = {t + 1: saved for t, saved in enumerate(after)}
    assert by_trial[1] == [1]
    assert by_trial[4] == by_trial[5] == [1, 2, 3, 4]
    assert by_trial[6] == by_trial[7] == [2, 3, 4, 6]
    assert by_trial[8] == by_trial[11] == [2, 4, 6, 8]
    assert by_trial[12] == [4, 6, 8, 12]
    assert by_trial[16] == by_trial[23] == [4, 8, 12, 16]
    assert by_trial[24] == [8, 12, 16, 24]
    assert by_trial[32] == [8, 16, 24, 32]


@compiled
def test_entry_sixteen_of_thirty() -> None:
    """Still there at trial 480, gone at 512."""
    for w in (0, 100):
        watched = Watched(h=30, w=w)
        first, second = (480 - 4, 512 - 8) if w else (480, 512)  # where windows open, at spacings 16 and 32
        assert watched.play(first).saved == list(range(16, 481, 16))
        assert watched.play(second - first - 1).saved == list(range(16, 481, 16))
        assert watched.play().saved == [*range(32, 481, 16), 512]


@compiled
def test_the_window_of_256_with_spacing_128() -> None:
    assert half_window.py_func(10**6, 128) == 32  # 224 to 288
    watched = Watched(h=2, w=10**6)
    opened, closed = [], []
    for t in range(1, 400):
        was = bool(watched.ballot.marks[OPEN])
        centre, spacing = watched.ballot.marks[[CENTRE, SPACING]].tolist()
        watched.play()
        if centre == 256 and spacing == 128:
            now = bool(watched.ballot.marks[OPEN])
            opened += [t] if now and not was else []
            closed += [t] if was and not now else []
    assert opened == [224]
    assert closed == [288]


@pytest.mark.small
@pytest.mark.parametrize(
    ("widest", "spacing", "half"),
    [(100, 1, 0), (100, 2, 0), (100, 4, 1), (100, 128, 32), (100, 256, 50), (7, 256, 3), (0, 256, 0), (1, 256, 0)],
)
def test_windows_are_never_larger_than_w(widest: int, spacing: int, half: int) -> None:
    function = half_window.py_func if JIT else half_window
    assert function(widest, spacing) == half
    assert 1 + 2 * half <= 1 + min(widest, spacing / 2)


@compiled
@pytest.mark.parametrize("h", [1, 2, 3, 5, 7, 8, 20, 21])
def test_odd_and_even_numbers_of_hypotheses(h: int) -> None:
    """All h slots are in use from trial h on, and nowhere is a gap wider than the spacing."""
    for w in (0, 100):
        watched = Watched(h=h, w=w)
        for t in range(1, 300):
            saved = watched.play().saved
            assert len(saved) == min(h, t)
            assert len(set(saved)) == len(saved)
            spacing = int(watched.ballot.marks[SPACING])
            assert np.diff(saved).max(initial=0) <= spacing
            assert t - spacing <= saved[-1] <= t + half_window.py_func(w, spacing)


@pytest.mark.small
def test_the_sum_is_that_of_the_saved_hypotheses() -> None:
    data = majority_problem(n=5, r=3, k=3, trials=60, noise=0.1, seed=1)
    machine = run(
        vote("winnow(1.5)", h=5, w=9, r=9), linmax.instances(votes=data.votes, classes=range(3)), data.labels
    ).model
    ballot = machine.engine.top.ballot
    np.testing.assert_allclose(ballot.total, ballot.saved[: ballot.marks[SIZE]].sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(ballot.saved[: ballot.marks[SIZE]], axis=1), 1.0, rtol=1e-9)


# -- restarts and fallback -------------------------------------------------------------------------------------


def drifting(trials: int, period: int) -> tuple[np.ndarray, np.ndarray]:
    """Four voters, of whom another one is right in every period: old hypotheses are worse than none."""
    rng = np.random.default_rng(2)
    votes = rng.integers(3, size=(trials, 4))
    return votes, votes[np.arange(trials), np.arange(trials) // period % 4]


@compiled
def test_restarts_double_the_wait() -> None:
    votes, labels = drifting(1200, 60)
    instances = linmax.instances(votes=votes, classes=range(3))
    machine = run(vote("alma(3)", d=10, h=8), instances[:0], []).model
    marks = machine.engine.top.ballot.marks
    waits = []
    for t in range(len(labels)):
        before = marks.copy()
        trace = machine.run(instances[t : t + 1], labels[t : t + 1])
        trusted = before[VOTING] <= before[BASIC]
        assert machine.engine.top.trusted == (marks[VOTING] <= marks[BASIC])
        if not trusted:  # then what it votes over speaks
            assert trace.wrong[0] == (marks[BASIC] > before[BASIC]) or marks[TAU] == 0
        if marks[RESTARTS] > before[RESTARTS]:
            assert before[TAU] + 1 >= before[WAIT]
            assert marks[WAIT] == 2 * before[WAIT]
            assert marks[[SIZE, TAU, VOTING, BASIC, OPEN]].tolist() == [0] * 5
            assert marks[[SPACING, CENTRE]].tolist() == [1, 1]
            waits.append(int(marks[WAIT]))
    assert len(waits) >= 3
    assert waits == [10 * 2 ** (i + 1) for i in range(len(waits))]
    assert len(waits) <= math.log2(1200 / 10 + 1)


@compiled
@pytest.mark.parametrize("scale", ["l2", "l1", "raw"])
def test_restarts_equal_the_reference(scale: str) -> None:
    votes, labels = drifting(160, 20)
    learner = vote("alma(3)", d=5, h=4, w=10, r=10, scale=scale)
    assert follow_technique(learner, problem(labels, 3, votes=votes)) > 40
    assert run(learner, linmax.instances(votes=votes), labels).model.engine.top.ballot.marks[RESTARTS] >= 2


@compiled
@pytest.mark.parametrize(
    "base", ["perceptron", "A-winnow(1.3)", "R(s=20)-alma(2)", "combine(perceptron, A-perceptron)"]
)
def test_the_guarantee(base: str) -> None:
    """Mistakes <= 2 M_B + restarts + 1 and restarts <= lg(T/d + 1), whatever comes."""
    for votes, labels in (drifting(800, 40), drifting(800, 3), drifting(800, 200)):
        instances = linmax.instances(votes=votes, classes=range(3))
        alone = run(base, instances, labels).mistakes[-1]
        trace = run(vote(base, d=10, h=8), instances, labels)
        restarts = trace.model.engine.top.ballot.marks[RESTARTS]
        assert trace.mistakes[-1] <= 2 * alone + restarts + 1
        assert restarts <= math.log2(800 / 10 + 1)


@compiled
def test_voting_helps_on_the_majority_problem_with_noise() -> None:
    data = majority_problem(trials=3000, noise=0.2, seed=1)
    instances = linmax.instances(votes=data.votes)
    assert run("VR-perceptron", instances, data.labels).wrong[1000:].mean() < 0.27
    assert run("R-perceptron", instances, data.labels).wrong[1000:].mean() > 0.3


# -- a random sample -------------------------------------------------------------------------------------------


@compiled
def test_every_hypothesis_is_as_probable_in_a_sample() -> None:
    """Each of 1,000 places holds each of 41 hypotheses with probability 1/41, whatever the others hold."""
    data = majority_problem(n=4, r=3, k=3, trials=40, seed=1)
    instances = linmax.instances(votes=data.votes, classes=range(3))
    counts = np.zeros(42)
    for seed in range(10):
        learner = vote("perceptron", h=1000, saved="random", seed=seed)
        sample = run(learner, instances, data.labels).model.engine.top.sample
        counts += np.bincount(sample.centres, minlength=42)
    expected = 10_000 / 41
    assert counts[0] == 0
    assert ((counts[1:] - expected) ** 2 / expected).sum() < 73.4  # chi-squared with 40 degrees: 1 in 1,000


@pytest.mark.small
def test_a_sample_depends_on_its_seed_alone() -> None:
    data = majority_problem(n=5, r=3, k=3, trials=60, noise=0.2, seed=1)
    instances = linmax.instances(votes=data.votes, classes=range(3))

    def sample(seed: int, cuts: list[int]) -> dict[str, np.ndarray]:
        machine = run(vote("winnow(1.5)", h=5, saved="random", seed=seed), instances[:0], []).model
        for begin, end in pairwise([0, *cuts, 60]):
            machine.run(instances[begin:end], data.labels[begin:end])
            machine.predict(instances)  # draws nothing
        return machine.engine.arrays

    whole, cut, other = sample(4, []), sample(4, [1, 2, 17]), sample(5, [])
    assert all(np.array_equal(cut[name], array, equal_nan=True) for name, array in whole.items())
    assert not np.array_equal(whole["node0.centres"], other["node0.centres"])


@pytest.mark.parametrize("option", ["w=3", "r=3", "d=3", "scale=raw"])
def test_a_sample_has_no_windows(option: str) -> None:
    with pytest.raises(
        ValueError, match=f"has no meaning with saved='random', got {option}; remove {option.partition('=')[0]}"
    ):
        parse(f"V(saved=random, {option})-perceptron")
    with pytest.raises(ValueError, match="seed has no meaning with saved='doubling', got seed=3; remove seed"):
        vote("perceptron", seed=3)


# -- in a window -----------------------------------------------------------------------------------------------


@pytest.mark.small
def test_a_better_hypothesis_takes_the_slot() -> None:
    """With a wide window the saved hypothesis is one that is right on most of the recent instances."""
    data = majority_problem(n=6, r=3, k=3, trials=120 if JIT else 16, noise=0.15, seed=4)
    instances = linmax.instances(votes=data.votes, classes=range(3))
    machine = run(vote("perceptron", h=2, w=50, r=12, d=NEVER), instances[:0], []).model
    ballot = machine.engine.top.ballot
    taken = 0
    for t in range(len(data.labels)):
        was_open = bool(ballot.marks[OPEN])
        before = ballot.saved.copy()
        machine.run(instances[t : t + 1], data.labels[t : t + 1])
        slot = int(ballot.marks[9])
        if not was_open or np.array_equal(before, ballot.saved):
            continue
        taken += 1
        recent = slice(max(0, t - 11), t + 1)

        def right(weights: np.ndarray, recent: slice = recent) -> int:
            rated = [
                instances.matrix(s) @ weights[: instances.matrix(s).shape[1]] for s in range(recent.start, recent.stop)
            ]
            return sum(
                int(np.argmax(scores)) == label for scores, label in zip(rated, data.labels[recent], strict=True)
            )

        columns = np.r_[:6, 6:9]  # six voters, then thresholds of three classes in a row of four
        assert right(ballot.saved[slot][columns]) > right(before[slot][columns])
    assert taken or not JIT


# -- what may vote ---------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize(
    "base",
    [
        combine(["perceptron", "winnow(1.1)"], how="wma"),
        combine(["perceptron", "winnow(1.1)"], how="weighted"),
        "stack(perceptron, winnow(1.1))",
        combine(["perceptron", vote("winnow(1.1)")]),
    ],
    ids=str,
)
def test_only_weights_may_vote(base: Any) -> None:
    instances = linmax.instances(votes=[[0, 1]], classes=range(2))
    with pytest.raises(
        ValueError, match="vote\\(\\) needs hypotheses that are weights; .* has none: vote over its members"
    ):
        run(vote(base), instances, [0])


def test_no_hypothesis_votes_twice() -> None:
    with pytest.raises(ValueError, match="^VV-perceptron votes twice; once is enough$"):
        run(vote("V-perceptron"), linmax.instances(votes=[[0, 1]], classes=range(2)), [0])


@pytest.mark.small
def test_untrusted_vote_has_weights_of_base() -> None:
    votes, labels = drifting(400 if JIT else 40, 20)
    instances = linmax.instances(votes=votes, classes=range(3))
    machine = run(vote(recycle("alma(3)", s=5), d=NEVER, h=4), instances[:0], []).model
    alone = run(recycle("alma(3)", s=5), instances[:0], []).model
    distrusted = 0
    for t in range(0, len(labels), 10):
        machine.run(instances[t : t + 10], labels[t : t + 10])
        alone.run(instances[t : t + 10], labels[t : t + 10])
        if not machine.engine.top.trusted:
            distrusted += 1
            assert np.array_equal(machine.weights.arrays.flat, alone.weights.arrays.flat)
            assert machine.weights.arrays.log_scale == alone.weights.arrays.log_scale
            assert machine.predict(instances).tolist() == alone.predict(instances).tolist()
    assert distrusted or not JIT


def exact_vote(votes: np.ndarray, labels: np.ndarray, k: int, scale: str, largest: bool) -> tuple[list[int], int]:
    """V-perceptron that saves the hypothesis of every trial, to fifty digits; and how many votes tie."""

    def best(scores: list[Decimal]) -> tuple[int, bool]:
        tied = [c for c in range(k) if max(scores) - scores[c] < Decimal("1e-40")]
        return (tied[-1] if largest else tied[0]), len(tied) > 1

    def scores_of(weights: list[Decimal], row: np.ndarray) -> list[Decimal]:
        return [sum((w for w, v in zip(weights, row, strict=True) if v == c), Decimal(0)) for c in range(k)]

    def scaled(weights: list[Decimal]) -> list[Decimal]:
        norm = sum(w * w for w in weights).sqrt() if scale == "l2" else sum(abs(w) for w in weights)  # type: ignore[union-attr]
        return weights if scale == "raw" or not norm else [w / norm for w in weights]

    weights = [Decimal(0)] * votes.shape[1]
    total, wrong, basic_wrong, ties = list(weights), 0, 0, 0
    predictions = []
    for row, label in zip(votes, labels.tolist(), strict=True):
        own = scores_of(weights, row)
        basic = best(own)[0]
        voted, tied = best(scores_of([a + b for a, b in zip(total, scaled(weights), strict=True)], row))
        predictions.append(voted if wrong <= basic_wrong else basic)
        wrong, basic_wrong, ties = wrong + (voted != label), basic_wrong + (basic != label), ties + tied
        rival = best([Decimal(-99) if c == label else value for c, value in enumerate(own)])[0]
        if own[label] <= own[rival]:
            weights = [w + int(v == label) - int(v == rival) for w, v in zip(weights, row, strict=True)]
        total = [a + b for a, b in zip(total, scaled(weights), strict=True)]
    return predictions, ties


@pytest.mark.small
@pytest.mark.parametrize("tie", ["smallest", "largest"])
@pytest.mark.parametrize("scale", ["l2", "l1", "raw"])
def test_ties_are_ties(scale: str, tie: str) -> None:
    """Hypotheses divided by their norms add up to what rounding makes of them; a tie goes to the smallest class."""
    learner, met = vote("perceptron", h=20, w=0, d=NEVER, scale=scale), 0
    with localcontext(prec=50):
        for seed in range(25 if JIT else 4):
            random = np.random.default_rng(seed)
            votes, labels = random.integers(0, 2, (20, 6)), random.integers(0, 2, 20)
            expected, ties = exact_vote(votes, labels, 2, scale, tie == "largest")
            met += ties
            given = linmax.instances(votes=votes, classes=range(2), thresholds=False)
            assert run(learner, given, labels, tie=tie).predictions.tolist() == expected
            if seed % 10 == 0:
                one = Learner(learner, classes=range(2), thresholds=False, tie=tie)
                machine = run(learner, given[:0], [], tie=tie).model
                for t, row in enumerate(votes.tolist()):
                    named = {str(i): vote for i, vote in enumerate(row)}
                    assert one.predict(votes=named) == expected[t]
                    assert machine.predict(given[t : t + 1]).tolist() == [expected[t]]
                    one.learn(votes=named, label=int(labels[t]))
                    machine.run(given[t : t + 1], labels[t : t + 1])
    assert met > seed


@pytest.mark.small
@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_recent_instances_are_counted_alike_with_and_without_a_panel(
    noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = majority_problem(trials=600 if JIT else 60, noise=noise, seed=3)
    instances = linmax.instances(votes=data.votes)
    found = run("V-combine(AR-perceptron, A-winnow(1.2))", instances, data.labels)
    monkeypatch.setattr(Engine, "small", lambda engine, trials: False)
    wanted = run("V-combine(AR-perceptron, A-winnow(1.2))", instances, data.labels)
    assert np.array_equal(found.predictions, wanted.predictions)
    for name, array in wanted.model.engine.arrays.items():
        assert np.array_equal(found.model.engine.arrays[name], array, equal_nan=True), name
