"""On-line to batch: the right hypothesis comes back, and its guarantee holds as often as promised."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linmax
import reference
from linmax.theory import bounds, conversion
from linmax.theory.conversion import Guaranteed, drawn, first_survivor, longest_survivor, selected, two_phase

Example = tuple[Any, int]


class Ladder:
    """Hypotheses of known errors: the i-th is wrong where x < errors[i]; all labels are 1."""

    def __init__(self, errors: list[float]) -> None:
        self.errors, self.at = errors, 0

    @property
    def error(self) -> float:
        return self.errors[min(self.at, len(self.errors) - 1)]

    def predict(self, x: float) -> int:
        return int(x >= self.error)

    def learn(self, x: float, label: int) -> None:
        assert self.predict(x) != label, "a conservative run teaches after mistakes only"
        self.at += 1


class Disjunction:
    """Winnow2 with labels 0 and 1, one instance at a time."""

    def __init__(self, n: int) -> None:
        self.winnow = reference.Winnow(n, 2.0, float(n))

    def predict(self, x: Any) -> int:
        return self.winnow.predict(x)

    def learn(self, x: Any, label: int) -> None:
        self.winnow.update(x, label)


def draws(seed: int) -> Iterator[Example]:
    random = np.random.default_rng(seed)
    while True:
        yield float(random.random()), 1


def take(seed: int, count: int) -> list[Example]:
    stream = draws(seed)
    return [next(stream) for _ in range(count)]


def disjunction(seed: int, n: int, k: int, noise: float = 0.0) -> Iterator[Example]:
    random = np.random.default_rng(seed)
    while True:
        x = (random.random(n) < 0.3).astype(float)
        label = int(x[:k].any())
        yield x, 1 - label if random.random() < noise else label


# -- the first survivor ----------------------------------------------------------------------------------


def test_first_survivor_of_a_known_bound() -> None:
    found = first_survivor(Ladder([1.0, 1.0, 0.0]), draws(1), error=0.1, failure=0.05, mistakes=2)
    run = bounds.survival_run(2, 0.1, 0.05)
    assert found.hypothesis.at == 2
    assert found.mistakes == 2
    assert found.examples == 2 + run <= bounds.survival_examples(2, 0.1, 0.05)
    assert "probability 0.95" in str(found)


def test_first_survivor_of_an_unknown_bound() -> None:
    found = first_survivor(Ladder([1.0] * 5 + [0.0]), draws(1), error=0.1, failure=0.05)
    assert found.examples == 5 + bounds.survival_run_unknown(6, 0.1, 0.05)


def test_the_printed_run_deceives_too_often() -> None:
    """With M hypotheses just above the wanted error, (1/eps) ln(1/delta) in a row is luck too often."""
    wanted, failure, count = 0.1, 0.05, 10
    bad = wanted + 1e-3

    def deceived(run: int) -> float:
        return 1 - (1 - (1 - bad) ** run) ** count

    assert deceived(bounds.survival_run_printed(wanted, failure)) > 4 * failure
    assert deceived(bounds.survival_run(count, wanted, failure)) <= failure


def test_winnow_by_survival() -> None:
    n, k = 12, 2
    promised = int(bounds.winnow2_disjunction(k, n))
    found = first_survivor(Disjunction(n), disjunction(3, n, k), error=0.05, mistakes=promised)
    assert found.mistakes <= promised
    fresh = disjunction(4, n, k)
    tests = [next(fresh) for _ in range(2000)]
    assert np.mean([found.hypothesis.predict(x) != y for x, y in tests]) <= 0.05


# -- the longest survivor --------------------------------------------------------------------------------


def test_longest_survivor() -> None:
    examples = [(0.0, 1)] + [(0.9, 1)] * 40 + [(0.15, 1)] + [(0.9, 1)] * 10
    found = longest_survivor(Ladder([0.1, 0.2, 0.3]), examples, failure=0.05, mistakes=3)
    assert found.hypothesis.at == 1
    assert found.error == pytest.approx(1 - (0.05 / 4) ** (1 / 40))
    assert (found.examples, found.mistakes) == (52, 2)
    unknown = longest_survivor(Ladder([0.1, 0.2, 0.3]), examples, failure=0.05)
    assert unknown.error == pytest.approx(1 - (0.05 / 6) ** (1 / 40))


def test_longest_survivor_without_any_run() -> None:
    found = longest_survivor(Ladder([1.0]), [(0.0, 1)] * 3)
    assert found.error == 1.0


@given(st.integers(1, 30), st.integers(1, 500))
def test_enough_examples_give_a_long_run(mistakes: int, seed: int) -> None:
    """After (M + 1) s examples some hypothesis has been right s times in a row."""
    run = bounds.survival_run(mistakes, 0.2, 0.1)
    errors = [*np.random.default_rng(seed).uniform(0, 0.5, mistakes), 0.0]
    found = longest_survivor(Ladder(errors), take(seed, (mistakes + 1) * run), failure=0.1, mistakes=mistakes)
    assert found.error <= 0.2


# -- two phases ------------------------------------------------------------------------------------------


def test_two_phase_takes_the_fewest_errors() -> None:
    learn, test = bounds.two_phase_examples(3, 0.2, 0.1)
    found = two_phase(
        Ladder([0.5, 0.01, 0.4, 0.3]),
        _early_mistakes(learn) + take(9, test),
        mistakes=3,
        error=0.2,
        failure=0.1,
        mistakes_only=True,
    )
    assert found.hypothesis.at == 1
    assert found.examples == learn + test
    assert (found.error, found.failure) == (0.2, 0.1)


def _early_mistakes(count: int) -> list[Example]:
    return [(0.0, 1)] * 3 + [(0.99, 1)] * (count - 3)


# -- selection and drawing -------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), n=st.integers(1, 120))
@settings(max_examples=40, deadline=None)
def test_selected_is_the_least_of_all_sums(seed: int, n: int) -> None:
    """Against the definition, over all n hypotheses H_0..H_(n-1), repeated ones included."""
    errors = list(np.random.default_rng(seed).uniform(0, 0.6, 40))
    examples = take(seed, n)
    found = selected(Ladder(errors), examples, failure=0.05, mistakes_only=True)
    learner, sums = Ladder(errors), []
    for t, (x, label) in enumerate(examples):
        wrong = sum(learner.predict(z) != y for z, y in examples[t:])
        sums.append((wrong / (n - t) + bounds.selection_penalty(n, n - t, 0.05), learner.at))
        if learner.predict(x) != label:
            learner.learn(x, label)
    assert found.error == pytest.approx(min(1.0, min(sums)[0]))
    assert found.hypothesis.at == min(sums)[1]
    assert found.mistakes == learner.at


def test_selection_copes_with_noise() -> None:
    n = 10
    stream = disjunction(5, n, 2, noise=0.1)
    found = selected(Disjunction(n), [next(stream) for _ in range(500)], failure=0.05, mistakes_only=True)
    fresh = disjunction(6, n, 2, noise=0.1)
    tests = [next(fresh) for _ in range(2000)]
    risk = float(np.mean([found.hypothesis.predict(x) != y for x, y in tests]))
    assert risk <= found.error <= bounds.selection_risk(found.mistakes / 500, 500, 0.05)


def test_drawn_by_how_often_they_were_used() -> None:
    examples = [(0.9, 1)] * 10 + [(0.05, 1)] + [(0.9, 1)] * 29
    picks = [drawn(Ladder([0.1, 0.0]), examples, seed=seed, mistakes_only=True).hypothesis.at for seed in range(400)]
    assert np.mean(picks) == pytest.approx(29 / 40, abs=0.06)
    found = drawn(Ladder([0.1, 0.0]), examples, failure=0.05, mistakes_only=True)
    assert found.error == pytest.approx(1 / 40 + math.sqrt(math.log(20) / 80))


def test_mean_risk_of_the_hypotheses_holds_often_enough() -> None:
    failure, n, runs = 0.1, 100, 300
    failed = 0
    for seed in range(runs):
        learner, risks = Ladder([0.4, 0.35, 0.3, 0.3, 0.25, 0.2, 0.1]), []
        for x, label in take(seed, n):
            risks.append(learner.error)
            if learner.predict(x) != label:
                learner.learn(x, label)
        failed += float(np.mean(risks)) > bounds.average_risk(learner.at / n, n, failure)
    assert failed <= failure * runs


# -- every guarantee -------------------------------------------------------------------------------------

HARD = [0.105] * 10 + [0.0]  # errors just above the one wanted
GUARANTEES: dict[str, Callable[[int], Guaranteed]] = {
    "first, bound known": lambda seed: first_survivor(Ladder(HARD), draws(seed), error=0.1, failure=0.1, mistakes=10),
    "first, bound unknown": lambda seed: first_survivor(Ladder(HARD), draws(seed), error=0.1, failure=0.1),
    "longest": lambda seed: longest_survivor(Ladder([0.3, 0.2, 0.1, 0.05, 0.02]), take(seed, 60), failure=0.1),
    "two phases": lambda seed: two_phase(
        Ladder([0.25, 0.22, 0.21, 0.2, 0.0]), draws(seed), mistakes=4, error=0.2, failure=0.1, mistakes_only=True
    ),
    "selected": lambda seed: selected(
        Ladder([0.5, 0.4, 0.3, 0.2, 0.1]), take(seed, 80), failure=0.1, mistakes_only=True
    ),
}


@pytest.mark.parametrize("name", GUARANTEES)
def test_the_guarantee_holds_often_enough(name: str) -> None:
    runs = 60 if name == "two phases" else 300
    found = [GUARANTEES[name](seed) for seed in range(runs)]
    assert sum(each.hypothesis.error > each.error for each in found) <= 0.1 * runs


# -- learners that are shown every trial -----------------------------------------------------------------


class Steps(Ladder):
    """A ladder that climbs with every trial it is shown."""

    def learn(self, x: float, label: int) -> None:
        self.at += 1


def test_every_trial_is_shown_unless_asked_otherwise() -> None:
    errors = list(np.linspace(0.6, 0.0, 300))
    examples = take(3, 250)
    found = selected(Steps(errors), examples, failure=0.05)
    sums = []
    for since in [place * 250 // 100 for place in range(100)]:
        wrong = sum(x < errors[since] for x, _ in examples[since:])
        sums.append((wrong / (250 - since) + bounds.selection_penalty(250, 250 - since, 0.05), since))
    assert (found.error, found.hypothesis.at) == (pytest.approx(min(sums)[0]), min(sums)[1])
    assert found.mistakes == sum(x < errors[t] for t, (x, _) in enumerate(examples))
    picks = [drawn(Steps(errors), examples, seed=seed).hypothesis.at for seed in range(300)]
    assert np.mean(picks) == pytest.approx(124.5, abs=15)
    assert max(picks) < 250


def test_two_phase_of_a_learner_that_always_changes() -> None:
    """It fails as seldom as promised, though at first all and later few of its hypotheses are bad."""
    failure, error, bad = 0.2, 0.2, 6
    learn, test = bounds.two_phase_examples(bad, error, failure, mistakes_only=False)
    errors = [1.0] * bad + [0.0] * (learn // 4) + [0.21] * (learn // 2) + [0.0]
    failed, runs = 0, 60
    for seed in range(runs):
        stream = [(0.5, 1)] * learn + take(seed, test)  # no mistakes but the first
        found = two_phase(Steps(errors), stream, mistakes=bad, error=error, failure=failure, seed=seed)
        assert (found.examples, found.mistakes) == (learn + test, bad)
        failed += found.hypothesis.error > error
    assert failed <= failure * runs


# -- bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: first_survivor(Ladder([0.0]), [(0.5, 1)] * 9, error=0.1, mistakes=1), "ran out after 9"),
        (lambda: first_survivor(Ladder([0.0]), [(0.5, 1)] * 9, error=0.1, mistakes=1), "74 always suffice"),
        (lambda: first_survivor(Ladder([1.0]), draws(1), error=0.1, mistakes=2), "got 2, but it made 3"),
        (lambda: longest_survivor(Ladder([1.0]), take(1, 5), mistakes=2), "got 2, but it made 3"),
        (lambda: first_survivor(Ladder([0.0]), draws(1), error=0.0), "error must lie between"),
        (
            lambda: two_phase(Ladder([0.0]), take(1, 10), mistakes=1, error=0.1, mistakes_only=True),
            "591 to learn and 1532 to test, got 10",
        ),
        (lambda: selected(Ladder([0.0]), []), "must not be empty"),
        (lambda: drawn(Ladder([0.0]), []), "must not be empty"),
        (lambda: drawn(Ladder([0.0]), take(1, 5), failure=1.0), "failure must lie between"),
    ],
)
def test_bad_input_is_named(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("learner", ["perceptron", "AR-winnow(1.2)", "V-perceptron"])
@pytest.mark.parametrize("kind", ["votes", "attributes", "scores"])
def test_one_by_one_equals_a_run(learner: str, kind: str) -> None:
    data = linmax.datasets.majority_problem(n=4, r=3, k=3, trials=40, seed=3)
    ratings = np.eye(3)[data.votes]
    blocks = {"votes": data.votes, "scores": ratings, "attributes": ratings.reshape(40, -1)}
    whole_run = linmax.run(learner, linmax.instances(**{kind: blocks[kind]}, classes=range(3)), data.labels)
    single = conversion.OneByOne(learner, range(3), kind)
    predictions = []
    for x, label in zip(blocks[kind], data.labels.tolist(), strict=True):
        first = single.predict(x)
        assert single.learn(x, label) == first
        predictions.append(first)
    assert predictions == whole_run.predictions.tolist()


def test_one_by_one_refuses_other_kinds() -> None:
    with pytest.raises(ValueError, match="kind must be 'attributes', 'votes' or 'scores', got 'text'"):
        conversion.OneByOne("perceptron", [0, 1], kind="text")
