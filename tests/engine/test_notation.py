"""Learners as text: what prints parses back, and what cannot be read says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linmax
from compare import CASES
from linmax import parse, rule, rules, run
from linmax.core.contract import Rule
from linmax.jit.compiling import JIT

PRINTABLE = [
    *(case.rule for case in CASES if case.rule.parameters.get("link") not in ("tanh", "cube")),
    rules.winnow(2, threshold=100),
    rules.winnow(2, (1.0, 0.5), threshold=100, demotion=0),
    rules.winnow(1.5, threshold=4, demotion=0.8, start=0.5),
    rules.alma(3, alpha=0.9, B=2, C=0.5, normalise=False, project=False, bound=3),
    rules.elimination(),
    rules.winnow(1.0000000000000002),
    rules.perceptron(rate=1e-300, margin=1e20),
]


@pytest.mark.parametrize("described", PRINTABLE, ids=str)
def test_what_prints_parses_back(described: Rule) -> None:
    again = parse(str(described))
    assert again == described
    assert str(again) == str(described)
    assert again.values == described.values


@given(st.floats(1.0, 1e6, exclude_min=True), st.floats(0.0, 10.0), st.floats(1e-6, 1e6))
def test_every_digit_is_kept(alpha: float, thickness: float, start: float) -> None:
    described = rules.winnow(alpha, thickness, start=start)
    assert parse(str(described)).values == described.values


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("perceptron", "perceptron"),
        ("Perceptron()", "perceptron"),
        ("  PERCEPTRON ( rate = 2 ) ", "perceptron(rate=2)"),
        ("winnow(1.1)", "winnow(1.1)"),
        ("Winnow(alpha=1.1)", "winnow(1.1)"),
        ("balanced_winnow(2)", "balanced-winnow(2)"),
        ("Balanced-Winnow(2, thickness=0.5)", "balanced-winnow(2, thickness=0.5)"),
        ("winnow(2, threshold=10, demotion=0)", "winnow(2, threshold=10, demotion=0)"),
        ("winnow(2, (1, 2), threshold=10)", "winnow(2, thickness=(1, 2), threshold=10)"),
        ("alma(2.5, 0.9, normalise=False)", "alma(2.5, alpha=0.9, normalise=False)"),
        ("alma", "alma(2)"),
        ("alma(2, preset=fusion)", "alma(2, alpha=0.9, project=False)"),
        ("alma(2, preset='fusion')", "alma(2, alpha=0.9, project=False)"),
        ("quasi-additive(sinh, rate=0.25)", "quasi-additive(sinh, rate=0.25)"),
        ("p-norm(2)", "p-norm(2)"),
        ("Balanced(1.35)", "winnow(1.35)"),  # names of the papers
        ("A-Balanced(1.35)", "A-winnow(1.35)"),
        ("AR-Balanced(1.2)", "AR-winnow(1.2)"),
        ("Balanced Winnow(1.2)", "balanced-winnow(1.2)"),
        ("WMA(1.1)", "committee(1.1)"),
        ("Committee(1.1)", "committee(1.1)"),
        ("AR-ALMA(4)", "AR-alma(4)"),
        ("Multi-class Perceptron", "perceptron"),
        ("winnow(beta=1, threshold=20)", "winnow(2, threshold=20)"),
        ("V-Combine", "V-combine"),
    ],
)
def test_ways_of_writing(text: str, printed: str) -> None:
    assert str(parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            "percepton",
            ValueError,
            "unknown learner 'percepton'; did you mean 'perceptron'.* known: adagrad, alma, arow, balanced-winnow",
        ),
        ("Balancd(1.3)", ValueError, "unknown learner 'Balancd'; did you mean 'balanced'"),
        ("Winnow2(2)", ValueError, r"did you mean winnow\(2, threshold=n\) in linmax.theory.LinearThreshold"),
        ("SVM", ValueError, "unknown learner 'SVM'; did you mean pa-i"),
        ("weighted majority(1.1)", ValueError, r"did you mean wma\(1.1\), or combine\(..., how=wma\)"),
        ("winnow(1.1, beta=1)", TypeError, "alpha"),
        ("", ValueError, "learner '' cannot be read; write a name and its parameters, such as"),
        ("3", ValueError, "learner '3' cannot be read; write a name"),
        ("winnow(1.1", ValueError, "learner 'winnow.1.1'"),
        ("winnow(1.1)(2)", ValueError, "cannot be read"),
        ("winnow", TypeError, "learner 'winnow': .*alpha"),
        ("winnow(1.1, colour=3)", TypeError, "learner 'winnow.*colour"),
        ("winnow(x + 1)", ValueError, r"the parameters 'x \+ 1' cannot be read; write numbers, such as"),
        ("winnow(fast)", TypeError, "alpha must be a number, got 'fast'"),
        ("winnow(0.9)", ValueError, "alpha must be > 1, got 0.9; try 1.1"),
        ("winnow(**{'alpha': 2})", ValueError, "cannot be read; write numbers"),
        ("winnow(*[2])", ValueError, "cannot be read; write numbers"),
        ("winnow(__import__('os').getcwd())", ValueError, "cannot be read; write numbers"),
        ("p-norm(1)", ValueError, "p must be >= 2, got 1; try 2"),
    ],
)
def test_what_cannot_be_read(text: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        parse(text)


def test_text_is_text() -> None:
    value: Any = 3
    with pytest.raises(TypeError, match="text must be a string, got 3"):
        parse(value)


@pytest.mark.small
def test_text_and_rule_are_the_same_learner() -> None:
    rng = np.random.default_rng(0)
    instances = linmax.instances(votes=rng.integers(3, size=(30, 4)))
    labels = rng.integers(3, size=30)
    for described in (rules.winnow(1.5), rules.alma(3, alpha=0.9)):
        first, second = run(described, instances, labels), run(str(described), instances, labels)
        assert np.array_equal(first.model.weights.arrays.flat, second.model.weights.arrays.flat)
        assert np.array_equal(first.predictions, second.predictions)


@pytest.mark.small
@pytest.mark.skipif(not JIT, reason="one mode is enough")
def test_ones_own_rule_by_its_name() -> None:
    @rule(parameters={"rate": 0.5, "floor": 0.0})
    def a_rule_to_parse(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
        if margin > 0.0:
            return False
        for j in range(index.size):
            weights[index[j]] = max(weights[index[j]] + params[0] * z[j], params[1])
        return True

    described = a_rule_to_parse(0.25, floor=-1)
    assert str(described) == "a-rule-to-parse(rate=0.25, floor=-1)"
    assert parse(str(described)) == described
    assert str(parse("a_rule_to_parse")) == "a-rule-to-parse"
    with pytest.raises(TypeError, match="a_rule_to_parse has no parameter 'speed'; it has rate, floor"):
        a_rule_to_parse(speed=1)
    with pytest.raises(TypeError, match="takes 2 parameters .rate, floor., got 3"):
        a_rule_to_parse(1, 2, 3)
    with pytest.raises(TypeError, match="rate must be a number, got 'x'"):
        a_rule_to_parse("x")
