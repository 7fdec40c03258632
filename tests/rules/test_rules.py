"""Every rule against the slow reference, trial by trial; the papers' numbers; the limits of floating point."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from itertools import product
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

import linmax
import reference
from compare import CASES, Case, Problem, follow, problem, problems
from linmax import parse, rules, run
from linmax.core.contract import Rule
from linmax.datasets import majority_problem
from linmax.jit.compiling import JIT
from linmax.testing import check_rule
from linmax.theory import LinearThreshold

pytestmark = pytest.mark.portable

PROBLEMS = problems(25 if JIT else 8)
EXACT = [case for case in CASES if case.exact]
lifted = pytest.mark.parametrize("case", CASES, ids=str)
compiled = pytest.mark.skipif(not JIT, reason="needs many trials, or is about compiled arithmetic")


# -- against the reference -----------------------------------------------------------------------------------


def test_every_rule_of_the_registry_is_compared() -> None:
    assert {case.rule.name for case in CASES} | {"elimination"} == {name.replace("-", "_") for name in rules.REGISTRY}
    assert not rules.elimination().lifts
    assert not rules.winnow(2, threshold=3).lifts


@pytest.mark.small
@lifted
def test_equals_reference_on_every_kind_of_instance(case: Case) -> None:
    compared = {name: follow(case, given) for name, given in PROBLEMS.items()}
    total = sum(len(given.labels) for given in PROBLEMS.values())
    assert sum(compared.values()) > 0.7 * total, compared  # few close calls, or nothing was tested
    if case.exact:
        assert all(compared[name] == len(given.labels) for name, given in PROBLEMS.items() if given.exact)


@pytest.mark.small
@lifted
def test_equals_reference_against_an_opponent(case: Case) -> None:
    """The label is always another class than the prediction, so that every trial is a mistake."""
    rng = np.random.default_rng(3)
    trials, k = (25 if JIT else 6), 3
    dense = rng.uniform(-1.0, 1.0, (trials, 2))
    votes = rng.integers(k, size=(trials, 3))
    instances = problem([0] * trials, k, votes, attributes=dense)
    follow(case, instances, opponent=lambda t, prediction: (prediction + 1 + t % 2) % k)


@st.composite
def small_problems(draw: st.DrawFn) -> Problem:
    """Any mix of blocks and options, with values that make ties as likely as not."""
    trials, k = draw(st.integers(1, 10)), draw(st.integers(2, 5))
    value = draw(st.sampled_from([st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), st.floats(-1.0, 1.0, width=16)]))

    def table(width: int, element: Any) -> Any:
        row = st.lists(element, min_size=width, max_size=width)
        return draw(st.lists(row, min_size=trials, max_size=trials))

    voters, raters, attributes = draw(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3)))
    if voters + raters + attributes == 0:
        voters = 1
    rating = st.lists(value.map(abs), min_size=k, max_size=k)
    return problem(
        draw(st.lists(st.integers(0, k - 1), min_size=trials, max_size=trials)),
        k,
        table(voters, st.integers(-1, k - 1)) if voters else None,
        table(raters, rating) if raters else None,
        table(attributes, value) if attributes else None,
        thresholds=draw(st.booleans()),
        negated=draw(st.booleans()),
        split=draw(st.sampled_from([None, "all"])),
        as_sparse=bool(attributes) and draw(st.booleans()),
    )


@pytest.mark.small
@settings(max_examples=250 if JIT else 25, deadline=None)
@hypothesis.given(st.sampled_from(CASES), small_problems(), st.sampled_from(["smallest", "largest"]), st.booleans())
def test_equals_reference_on_anything(case: Case, given: Problem, tie: str, update_on_tie: bool) -> None:
    follow(case, given, tie=tie, update_on_tie=update_on_tie)


@pytest.mark.small
@settings(max_examples=60 if JIT else 10, deadline=None)
@hypothesis.given(st.sampled_from(CASES), small_problems(), st.sampled_from(["smallest", "largest"]))
def test_equals_reference_when_classes_are_discovered(case: Case, given: Problem, tie: str) -> None:
    follow(case, given, tie=tie, discover=True)


# -- threshold forms -----------------------------------------------------------------------------------------

WINNOWS: list[tuple[Rule, dict[str, Any]]] = [
    (rules.winnow(2, threshold=3), {"alpha": 2.0, "threshold": 3.0}),
    (rules.winnow(2, threshold=3, demotion=0), {"alpha": 2.0, "threshold": 3.0, "demotion": 0.0}),
    (
        rules.winnow(1.5, threshold=4, demotion=0.8, start=0.5),
        {"alpha": 1.5, "threshold": 4.0, "demotion": 0.8, "start": 0.5},
    ),
    (
        rules.winnow(1.3, (0.5, 0.25), threshold=2.0),
        {"alpha": 1.3, "threshold": 2.0, "thick_positive": 0.5, "thick_negative": 0.25},
    ),
    (
        rules.winnow(2, 1.0, threshold=2.0),
        {"alpha": 2.0, "threshold": 2.0, "thick_positive": 1.0, "thick_negative": 1.0},
    ),
]


@pytest.mark.small
@pytest.mark.parametrize("whole", [True, False], ids=["0 or 1", "in [0, 1]"])
@pytest.mark.parametrize(("rule", "options"), WINNOWS, ids=[str(rule) for rule, _ in WINNOWS])
def test_winnow_with_a_threshold_equals_reference(rule: Rule, options: dict[str, Any], whole: bool) -> None:
    trials = 200 if JIT else 20
    rng = np.random.default_rng(5)
    x = rng.random((trials, 6)) * (rng.random((trials, 6)) < 0.5)
    x = np.where(x > 0.3, 1.0, 0.0) if whole else x
    x[::7] = 0.0  # nothing active: promoted in name only
    labels = np.where(rng.random(trials) < 0.8, x[:, 0] + x[:, 1] > 0.5, rng.random(trials) < 0.5).astype(int)
    slow, fast = reference.Winnow(6, **options), LinearThreshold(rule, labels=(0, 1))
    for t in range(trials):
        reference.doubt.reset()
        expected = slow.predict(x[t]), slow.update(x[t], labels[t])
        trace = fast.run(x[t : t + 1], labels[t : t + 1])
        if reference.doubt.smallest < 1e-11 and (trace.predictions[0], trace.changed[0]) != expected:
            break
        assert (trace.predictions[0], trace.changed[0]) == expected, t
        np.testing.assert_allclose(fast.weights, slow.w, rtol=1e-9)
    assert t > trials // 2
    assert fast.updates == slow.promotions + slow.demotions or t < trials - 1


@pytest.mark.small
def test_winnow_recovers_from_weights_too_small_for_a_float() -> None:
    """Demoted 1500 times by 2, then promoted: the logarithm is kept, so no weight is stuck at 0."""
    learner = LinearThreshold(rules.winnow(2, 1e6, threshold=1e-3), labels=(0, 1))
    trials = 1500 if JIT else 1100
    learner.run(np.ones((trials, 1)), [0] * trials)
    assert learner.updates == trials
    assert learner.weights[0] == 0.0
    learner.run(np.ones((trials + 10, 1)), [1] * (trials + 10))
    assert learner.weights[0] == pytest.approx(1024.0)


@pytest.mark.small
def test_elimination_equals_reference() -> None:
    rng = np.random.default_rng(2)
    x = (rng.random((60, 8)) < 0.4).astype(float)
    labels = ((x[:, 1] + x[:, 4]) > 0).astype(int)
    slow, fast = reference.Elimination(8), LinearThreshold(rules.elimination(), labels=(0, 1))
    for t in range(60):
        expected = slow.predict(x[t]), slow.update(x[t], labels[t])
        trace = fast.run(x[t : t + 1], labels[t : t + 1])
        assert (trace.predictions[0], trace.changed[0]) == expected
        assert fast.weights.tolist() == slow.w.tolist()
    assert fast.inconsistent == 0
    assert fast.mistakes <= 8
    with pytest.warns(UserWarning, match="not a disjunction"):
        fast.run([[1.0, 0, 0, 0, 0, 0, 0, 0], [0.0] * 8], [1, 1])
    assert fast.inconsistent == 2


# -- the papers' numbers -------------------------------------------------------------------------------------


@pytest.mark.small
def test_alma_golden_values() -> None:
    """p = 3, alpha = 1, C = sqrt(2): the two steps worked out by hand."""
    learner = LinearThreshold(rules.alma(3, alpha=1, C=math.sqrt(2)), labels=(-1, 1))

    def weights() -> np.ndarray:
        return learner.weights * math.exp(learner.log_scale)

    learner.run([[1.0, 1.0]], [1])
    assert weights() == pytest.approx([0.62996052, 0.62996052], abs=1e-8)
    learner.run([[1.0, -1.0]], [-1])  # w.z = 0 is an update
    assert learner.updates == 2
    assert weights() == pytest.approx([0.02933855, 0.99664702], abs=1e-8)
    assert np.sum(np.abs(weights()) ** 1.5) == pytest.approx(1.0)


@compiled
@pytest.mark.parametrize(
    ("rule", "mistakes"),
    [
        ("perceptron", 374),
        ("winnow(1.1)", 289),
        ("committee(1.1)", 289),
        ("sasb", 461),
        ("A-perceptron", 113),
        ("R-perceptron", 122),
    ],
)
def test_mistakes_on_the_majority_problem(rule: str, mistakes: float) -> None:
    """Without noise, 5000 trials, averaged over eight seeds: within 8 per cent of what was found elsewhere."""
    counts = []
    for seed in range(8):
        data = majority_problem(seed=seed)
        counts.append(run(rule, linmax.instances(votes=data.votes), data.labels).wrong.sum())
    assert np.mean(counts) == pytest.approx(mistakes, rel=0.08)


@pytest.mark.small
def test_committee_is_winnow() -> None:
    data = majority_problem(trials=300 if JIT else 40, seed=3)
    instances = linmax.instances(votes=data.votes)
    first, second = (run(rule, instances, data.labels) for rule in (rules.committee(1.2), rules.winnow(1.2)))
    assert np.array_equal(first.model.weights.arrays.flat, second.model.weights.arrays.flat)
    assert np.array_equal(first.predictions, second.predictions)


@pytest.mark.small
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("quasi-additive(identity)", "perceptron"),
        ("quasi-additive(exp, rate=0.3)", "winnow(1.3498588075760032)"),
        ("quasi-additive(sinh, rate=0.3)", "balanced-winnow(1.3498588075760032)"),
        ("p-norm(2)", "perceptron"),
    ],
)
def test_members_of_one_family_make_the_same_predictions(one: str, other: str) -> None:
    trials = 400 if JIT else 40
    rng = np.random.default_rng(8)
    instances = linmax.instances(attributes=rng.uniform(-1, 1, (trials, 4)), classes=range(3))
    labels = rng.integers(3, size=trials)
    first, second = run(one, instances, labels), run(other, instances, labels)
    assert np.array_equal(first.predictions, second.predictions)
    assert np.array_equal(first.changed, second.changed)


# -- limits of floating point --------------------------------------------------------------------------------


MILLION = 1_000_000


@pytest.fixture(scope="module")
def a_million() -> Any:
    """One voter that always says class 0, and one that is silent."""
    return linmax.instances(votes=np.tile([0, -1], (MILLION, 1)), abstain=-1, classes=range(2), thresholds=False)


def labels(cls: int, trials: int) -> np.ndarray:
    return np.full(trials, cls)


@compiled
@pytest.mark.parametrize("alpha", [1.0001, 1.1, 2.0, 4.0])
@pytest.mark.parametrize("name", ["winnow", "balanced_winnow"])
def test_a_million_updates_of_one_weight(a_million: Any, name: str, alpha: float) -> None:
    """A separator thicker than all weights together updates on every trial: to alpha^1000000 and back below 1."""

    def log_of(weight: float) -> float:
        return math.log(abs(weight)) + machine.weights.arrays.log_scale

    trace = run(getattr(rules, name)(alpha, thickness=2.0), a_million, labels(0, MILLION))
    machine = trace.model
    assert trace.changed.all()
    assert not trace.wrong.any()
    assert log_of(machine.weights.arrays.voters[0]) == pytest.approx(MILLION * math.log(alpha), rel=1e-9)
    machine.run(a_million, labels(1, MILLION))
    machine.run(a_million[:1000], labels(1, 1000))
    assert machine.updates == 2 * MILLION + 1000
    voter, silent = machine.weights.arrays.voters
    assert np.isfinite([voter, silent]).all()
    if name == "balanced_winnow":
        assert voter < 0.0
        assert silent == 0.0
        expected = math.log(2.0 * math.sinh(1000 * math.log(alpha))) if alpha < 1.5 else 1000 * math.log(alpha)
        assert log_of(voter) == pytest.approx(expected, rel=1e-9)
    else:
        assert log_of(silent) == pytest.approx(0.0, abs=1e-9)  # never touched: where it began
        assert voter == pytest.approx(alpha**-1000.0, rel=1e-9)


@compiled
@pytest.mark.parametrize("p", [2.0, 3.0, 50.0])
@pytest.mark.parametrize("project", [True, False])
def test_a_million_updates_of_alma(a_million: Any, p: float, project: bool) -> None:
    """A margin that is never reached: with one coordinate theta is 1 after each projection, or the sum of steps."""
    trace = run(rules.alma(p, alpha=0.5, B=1e9, project=project), a_million, labels(0, MILLION))
    assert trace.changed.all()
    weights = trace.model.weights.arrays
    steps = math.sqrt(2.0 / (p - 1.0)) / np.sqrt(np.arange(1.0, MILLION + 1.0))
    expected = 1.0 if project else steps.sum()
    assert weights.voters[0] * math.exp(weights.log_scale) == pytest.approx(expected, rel=1e-6)
    assert weights.voters[1] == 0.0


@compiled
def test_a_million_updates_of_p_norm() -> None:
    """Labels that alternate keep v near 0; large steps take its powers far out of range and back."""
    x = np.ones((MILLION, 1))
    x[::1000] = 1e6
    learner = LinearThreshold(rules.p_norm(300), labels=(0, 1))
    trace = learner.run(x, np.arange(MILLION) % 2)
    assert trace.changed.sum() > MILLION // 3
    assert np.isfinite(learner.weights).all()
    assert math.isfinite(learner.log_scale)


@pytest.mark.small
@pytest.mark.parametrize("p", [3.0, 120.0, 1000.0])
@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0, 1e3, 1e9])
def test_p_norm_at_any_scale(p: float, size: float) -> None:
    """Weights of the p-norm rule scale with the instances, however far |v|^(p-1) is out of range."""
    trials = 60 if JIT else 20
    rng = np.random.default_rng(4)
    x = rng.normal(size=(trials, 3))
    x[trials // 2 :] *= 1e-4  # and within one run
    labels = rng.integers(2, size=trials)
    slow, fast = reference.PNorm(3, p), LinearThreshold(rules.p_norm(p), labels=(0, 1))
    for t in range(trials):
        reference.doubt.reset()
        expected = slow.update(x[t] * size * (1 if labels[t] else -1))
        trace = fast.run(x[t : t + 1] * size, labels[t : t + 1])
        if reference.doubt.smallest < 1e-11 and trace.changed[0] != expected:
            break
        assert trace.changed[0] == expected
        got = fast.weights * math.exp(fast.log_scale) if fast.log_scale < 700 else np.full(3, np.nan)
        np.testing.assert_allclose(got, slow.w, rtol=1e-9, atol=1e-12 * size)
    assert t > trials // 2


@pytest.mark.small
@pytest.mark.parametrize("p", [3.0, 120.0, 1000.0])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_p_norm_at_any_scale_with_many_classes(p: float, size: float) -> None:
    trials = 30 if JIT else 10
    rng = np.random.default_rng(4)
    x = rng.normal(size=(trials, 2)) * size * 10.0 ** rng.integers(-3, 2, size=(trials, 1))
    given = problem(rng.integers(3, size=trials), 3, attributes=x, thresholds=False)
    assert follow(Case(rules.p_norm(p), lambda n: reference.PNorm(n, p)), given) > trials // 2


class ExactWinnow:
    """Mistake-driven Winnow (or Balanced Winnow) over voters in fractions: nothing is rounded."""

    def __init__(self, exponents: list[int], alpha: Fraction, balanced: bool = False) -> None:
        self.s, self.alpha, self.balanced = list(exponents), alpha, balanced

    def scores(self, votes: list[str | None], classes: list[str]) -> list[Fraction]:
        powers = [self.alpha**s for s in self.s]
        weights = [p - 1 / p for p in powers] if self.balanced else powers
        pairs = list(zip(votes, weights, strict=True))
        return [sum((w for v, w in pairs if v == c), Fraction(0)) for c in classes]

    def trial(self, votes: list[str | None], label: str, classes: list[str]) -> tuple[str, bool]:
        scores = self.scores(votes, classes)
        prediction = classes[scores.index(max(scores))]
        others = [c for c in classes if c != label]
        rival = max(others, key=lambda c: (scores[classes.index(c)], -classes.index(c)))
        if scores[classes.index(label)] > scores[classes.index(rival)]:
            return prediction, False
        self.s = [s + (v == label) - (v == rival) for s, v in zip(self.s, votes, strict=True)]
        return prediction, True


# Five mistakes that multiply the weights of three voters by alpha (for alpha >= 2), and one that divides them.
GROW = [["a", "b", None], ["b", "a", "a"], ["a", "a", "b"], ["a", "b", None], ["b", "a", "a"]]
SHRINK = ["b", "b", "b"]


def with_bystanders(rows: list[Any], own: list[str | None]) -> list[list[str | None]]:
    return [[*row, *own] for row in rows]


@pytest.mark.small
@pytest.mark.parametrize("alpha", [2.5, 3.0, 4.0])
def test_mistakes_alone_can_take_weights_anywhere_and_back(alpha: float) -> None:
    """A mistake-driven run to alpha^cycles, decisions by far smaller weights, and the way back."""
    cycles = 20_000 if JIT else 300
    classes, silent = list("abc"), [None, None, None]
    # The bystanders' exponents become 2, 1 and -1.
    early: list[Any] = [[None, None, None, "a", "b", None], [None, None, None, "a", None, "b"]]
    early += [[None, None, None, "b", "a", "c"], [None, None, None, "b", "a", "c"]]

    def instances(rows: list[Any]) -> Any:
        return linmax.instances(votes=rows, classes=classes, thresholds=False)

    exact = ExactWinnow([0] * 6, Fraction(alpha))
    trace = run(rules.winnow(alpha), instances(early), ["a"] * len(early))
    machine = trace.model
    expected = [exact.trial(row, "a", classes) for row in early]
    assert list(zip(trace.predictions, trace.changed, strict=True)) == expected
    bystanders = exact.s[3:]

    def ask_everything() -> None:
        """All questions that only bystanders answer, with all labels; learning goes on."""
        for rows in product(["a", "b", "c"], repeat=3):
            for label in classes:
                row = [None, None, None, *rows]
                got = machine.run(instances([row]), [label])
                assert (got.predictions[0], bool(got.changed[0])) == exact.trial(row, label, classes), (rows, label)

    grown = machine.run(instances(with_bystanders(GROW * cycles, silent)), ["a"] * (5 * cycles))
    assert grown.changed.all()
    exact.s[:3] = [s + cycles for s in exact.s[:3]]
    assert exact.s[3:] == bystanders
    log = math.log(machine.weights.arrays.voters[0]) + machine.weights.arrays.log_scale
    assert log == pytest.approx(exact.s[0] * math.log(alpha), rel=1e-9)
    ask_everything()
    back = cycles + 400
    shrunk = machine.run(instances(with_bystanders([SHRINK] * back, silent)), ["a"] * back)
    assert shrunk.changed.all()
    exact.s[:3] = [s - back for s in exact.s[:3]]
    ask_everything()
    weights = machine.weights.arrays
    true = np.log(weights.voters[3:]) + weights.log_scale
    assert true == pytest.approx([s * math.log(alpha) for s in exact.s[3:]], abs=1e-9)


@pytest.mark.small
@pytest.mark.parametrize("balanced", [False, True], ids=["winnow", "balanced"])
@pytest.mark.parametrize("alpha", [1.5, 4.0])
def test_predictions_are_exact_where_weights_underflow(balanced: bool, alpha: float) -> None:
    """A voter hundreds of decades above the others (or, balanced, below) drowns none of their decisions."""
    growth = 5000 if JIT else 1200
    make = rules.balanced_winnow if balanced else rules.winnow
    classes = list("abc")
    # The giant, right alone or wrong alone; then four that are right alone 4, 3, 2 and 1 times.
    ratings = np.zeros((growth + 10, 5, 3))
    ratings[:growth, 0] = [0, 1, 1] if balanced else [1, 0, 0]
    for place, i in enumerate([1, 1, 1, 1, 2, 2, 2, 3, 3, 4]):
        ratings[growth + place, i] = [1, 0, 0]
    instances = linmax.instances(scores=ratings, classes=classes, thresholds=False)
    machine = run(make(alpha, thickness=3.0), instances, ["a"] * (growth + 10)).model
    assert machine.updates == growth + 10
    exact = ExactWinnow([-growth if balanced else growth, 4, 3, 2, 1], Fraction(alpha), balanced)
    rows = [list(row) for row in product([None, "a", "b"], *[[None, "b", "c"]] * 4)]
    one_hot = np.array([[[vote == c for c in classes] for vote in row] for row in rows], float)
    expected = [exact.scores(row, classes) for row in rows]
    asked = linmax.instances(scores=one_hot, classes=classes, thresholds=False)
    assert machine.predict(asked).tolist() == [classes[scores.index(max(scores))] for scores in expected]


@pytest.mark.small
@pytest.mark.parametrize("prefix", ["", "R(s=1, u=1)-"], ids=["straight", "with a technique"])
def test_a_thick_rule_finds_its_rival_where_weights_underflow(prefix: str) -> None:
    """The label leads by far and is still updated; which of the others is the rival hangs on weights near 0."""
    growth = 3000 if JIT else 1000
    ratings = np.zeros((growth + 4, 4, 3))
    ratings[:growth, :2, 0] = 1.0  # two giants
    ratings[growth : growth + 3, 3, 0] = 1.0  # s = 3 for the last, 0 for the one before
    ratings[-1] = [[1, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1]]  # giant for 0; the rivals: 1 with s = 0, 2 with s = 3
    instances = linmax.instances(scores=ratings, thresholds=False)
    machine = run(f"{prefix}winnow(4, thickness=2)", instances, labels(0, growth + 4)).model
    spread = machine.scores(linmax.instances(scores=[[[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1, 0]]], thresholds=False))[
        0
    ]
    assert spread[1] > spread[2] > 0.0
    even = machine.scores(
        linmax.instances(scores=[[[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1 / 17, 0]]], thresholds=False)
    )[0]
    assert even[1] < even[2]  # 4^2 / 17 < 1: the last was demoted from 4^3, the one before was not


# -- descriptions and bad parameters -------------------------------------------------------------------------

ALL_RULES = [
    *(case.rule for case in CASES),
    *(rule for rule, _ in WINNOWS),
    rules.elimination(),
    rules.alma(3, bound=2.0, normalise=False),
]


@pytest.mark.small
@pytest.mark.parametrize("rule", ALL_RULES, ids=str)
def test_contract_of_every_rule(rule: Rule) -> None:
    """The step passes `check_rule`; text and pickles give the rule back; it states its mixture and its bound."""
    for seed in range(3):
        check_rule(rule, seed)
    assert getattr(rule, "code", None) or parse(str(rule)) == rule  # text does not know a custom link
    data = pickle.dumps(rule)
    assert pickle.loads(data) == rule
    assert all(np.float64(value).tobytes() not in data for value in rule.values if 0.0 < value < 1e-300)  # addresses
    assert callable(rule.mix) == rule.lifts
    assert all(callable(stated) or stated for stated in (rule.mix, rule.bound))


def test_rules_are_equal_when_they_are_the_same() -> None:
    assert rules.winnow(1.1) == rules.winnow(1.1, 0.0)
    assert rules.winnow(1.1) != rules.winnow(1.2)
    assert rules.winnow(1.1) != rules.committee(1.1)
    assert len({rules.alma(2), rules.alma(2.0, 1.0), rules.alma(3)}) == 2


BAD = [
    (lambda: rules.pa_i(0), ValueError, "C must be > 0, got 0; try 1"),
    (lambda: rules.pa_ii(math.inf), ValueError, "C must be finite, got inf"),
    (lambda: rules.arow(-1), ValueError, "r must be > 0, got -1; try 1"),
    (lambda: rules.arow(start="x"), TypeError, "start must be a number, got 'x'"),
    (lambda: rules.arow(inflation=-1), ValueError, "inflation must be >= 0, got -1; try 0"),
    (lambda: rules.nherd(0), ValueError, "C must be > 0, got 0; try 1"),
    (lambda: rules.scw_i(0.5), ValueError, "eta must be between 0.5 and 1, got 0.5; try 0.9"),
    (lambda: rules.scw_ii(1), ValueError, "eta must be between 0.5 and 1, got 1.0; try 0.9"),
    (lambda: rules.scw_i(C=0), ValueError, "C must be > 0, got 0; try 1"),
    (lambda: rules.second_order_perceptron(0), ValueError, "a must be > 0, got 0; try 1"),
    (lambda: rules.adagrad(0), ValueError, "rate must be > 0, got 0; try 1"),
    (lambda: rules.ftrl(0), ValueError, "rate must be > 0, got 0; try 0.1"),
    (lambda: rules.ftrl(beta=-1), ValueError, "beta must be >= 0, got -1; try 1"),
    (lambda: rules.ftrl(l1=-1), ValueError, "l1 must be >= 0, got -1; try 0"),
    (lambda: rules.ftrl(loss="squared"), ValueError, "loss must be one of logistic, hinge, got 'squared'"),
    (lambda: rules.logistic(math.nan), ValueError, "rate must be finite, got nan"),
    (lambda: rules.perceptron(rate=0), ValueError, "rate must be > 0, got 0; try 1"),
    (lambda: rules.perceptron(margin=-1), ValueError, "margin must be >= 0, got -1; try 0"),
    (lambda: rules.perceptron(rate="fast"), TypeError, "rate must be a number, got 'fast'"),
    (lambda: rules.perceptron(rate=math.nan), ValueError, "rate must be finite, got nan"),
    (lambda: rules.winnow(1.0), ValueError, "alpha must be > 1, got 1.0; try 1.1"),
    (lambda: rules.winnow(0.9), ValueError, "alpha must be > 1, got 0.9; try 1.1"),
    (lambda: rules.winnow(math.inf), ValueError, "alpha must be finite, got inf"),
    (lambda: rules.winnow(True), TypeError, "alpha must be a number, got True"),
    (lambda: rules.winnow(1.1, start=0), ValueError, "start must be > 0, got 0; try 1"),
    (lambda: rules.winnow(1.1, thickness=-0.1), ValueError, "thickness must be >= 0, got -0.1; try 0"),
    (lambda: rules.winnow(1.1, thickness=(1, 2)), TypeError, r"thickness must be one number .*got \(1, 2\)"),
    (lambda: rules.winnow(1.1, demotion=0.5), ValueError, "demotion=0.5 .*give threshold="),
    (lambda: rules.winnow(2, threshold=0), ValueError, "threshold must be > 0, got 0; try"),
    (lambda: rules.winnow(2, threshold=5, demotion=1), ValueError, r"demotion must be in \[0, 1\), got 1; try 0.5"),
    (lambda: rules.winnow(2, threshold=5, thickness=(1, 2, 3)), ValueError, "thickness .*pair"),
    (lambda: rules.committee(1), ValueError, "alpha must be > 1, got 1; try 1.1"),
    (lambda: rules.balanced_winnow(0.5), ValueError, "alpha must be > 1, got 0.5; try 1.1"),
    (lambda: rules.balanced_winnow(2, margin=1, thickness=1), ValueError, "give margin or thickness, not both"),
    (lambda: rules.p_norm(1.5), ValueError, "p must be >= 2, got 1.5; try 2"),
    (lambda: rules.alma(1), ValueError, "p must be >= 2, got 1; try 2"),
    (lambda: rules.alma(2, alpha=0), ValueError, r"alpha must be in \(0, 1\], got 0.0; try 0.9"),
    (lambda: rules.alma(2, alpha=1.1), ValueError, r"alpha must be in \(0, 1\], got 1.1; try 0.9"),
    (lambda: rules.alma(2, B=0), ValueError, "B must be > 0, got 0; try 1"),
    (lambda: rules.alma(2, C=-1), ValueError, "C must be > 0, got -1; try 1.414"),
    (lambda: rules.alma(2, bound=0), ValueError, "bound must be > 0, got 0; try 1"),
    (lambda: rules.alma(2, normalise="yes"), TypeError, "normalise must be True or False, got 'yes'"),
    (lambda: rules.alma(2, preset="paper"), ValueError, "preset must be 'fusion' or None, got 'paper'"),
    (lambda: rules.quasi_additive("cosh"), ValueError, "link must be one of identity, sinh, exp .*got 'cosh'"),
    (lambda: rules.quasi_additive(3), TypeError, "link must be a Python function, got 3"),
    (lambda: rules.quasi_additive(math.tanh), TypeError, "link must be .*got <built-in function tanh>; .*lambda"),
    (lambda: rules.quasi_additive("exp", rate=0), ValueError, "rate must be > 0, got 0; try 0.1"),
    (lambda: rules.quasi_additive(lambda v: v + math.inf), ValueError, "link must be finite at 0, got inf"),
]


@pytest.mark.small
@pytest.mark.parametrize(("call", "kind", "message"), BAD, ids=[message for _, _, message in BAD])
def test_bad_parameters(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


@compiled
def test_a_link_that_outgrows_a_float_is_refused() -> None:
    instances = linmax.instances(votes=[["a", "b"]], thresholds=False)
    with pytest.raises(OverflowError, match="left the range of floats at trial 0; scale the instances down"):
        run(rules.quasi_additive("exp", rate=800.0), instances, ["b"])
    for learner in ("perceptron", "A-perceptron"):  # both loops refuse the same trial
        with pytest.raises(OverflowError, match="left the range of floats at trial 0; scale the instances down"):
            run(learner, linmax.instances(attributes=[[1e100], [1e100]], classes=["a", "b"]), ["b", "a"])
