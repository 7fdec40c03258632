"""The functions that compose learners: what they accept, and what they say to what they refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import linmax
from linmax import average, combine, parse, recycle, rule, rules, run, stack, vote, vr_combine
from linmax.core.contract import Rule
from linmax.engine.notation import as_learner, as_rule
from linmax.jit.compiling import JIT
from linmax.rules import paper_pool
from linmax.rules.paper_pool import PAPER_ALPHAS, PAPER_NORMS
from linmax.techniques.averaging import Averaged
from linmax.techniques.recycling import Recycled

TWO = linmax.instances(votes=[[0, 1], [1, 1]], classes=range(2))

BAD: list[tuple[Any, type[Exception], str]] = [
    (lambda: average("perceptron", "l3"), ValueError, "scale must be one of raw, max, l1, got 'l3'"),
    (lambda: average("perceptron", None), ValueError, "scale must be one of raw, max, l1, got None"),
    (lambda: average("perceptron", ["raw"]), ValueError, "scale must be one of raw, max, l1, got \\['raw'\\]"),
    (lambda: average(3), TypeError, "learner must be a rule, a technique or text such as 'AR-winnow\\(1.1\\)', got 3"),
    (lambda: average(rules.perceptron), TypeError, "got the function perceptron; call it: perceptron\\(...\\)"),
    (lambda: recycle("perceptron", u=0), ValueError, "u must be >= 1, got 0; try 1"),
    (
        lambda: recycle("winnow(1.6)", u=math.inf),
        ValueError,
        r"u=inf requires passes= with winnow\(1.6\), .* above 0.227",
    ),
    (lambda: parse("R(u=inf)-combine"), ValueError, r"with winnow\(1.01\), got none: .* 0.00498"),
    (lambda: recycle("quasi-additive(sinh, 0.5)", u=math.inf), ValueError, "pass passes=100, a budget, a finite u"),
    (lambda: recycle("perceptron", u=-math.inf), TypeError, "u must be a whole number, got -inf"),
    (lambda: recycle("perceptron", u=math.nan), TypeError, "u must be a whole number, got nan"),
    (lambda: recycle("perceptron", u=2.5), TypeError, "u must be a whole number, got 2.5"),
    (lambda: recycle("perceptron", u=2**40), ValueError, "u must be <= 2147483647, got 1099511627776"),
    (lambda: recycle("perceptron", s=0), ValueError, "s must be >= 1, got 0; try 1"),
    (lambda: recycle("perceptron", s=-5), ValueError, "s must be >= 1, got -5; try 1"),
    (lambda: recycle("perceptron", s=1.5), TypeError, "s must be a whole number, got 1.5"),
    (lambda: recycle("perceptron", s=True), TypeError, "s must be a whole number, got True"),
    (lambda: recycle("perceptron", s=2**70), ValueError, "s must be <= 2147483647"),
    (lambda: recycle("perceptron", passes=0), ValueError, "passes must be >= 1, got 0; try 1"),
    (lambda: vote("perceptron", h=0), ValueError, "h must be >= 1, got 0; try 1"),
    (lambda: vote("perceptron", h=2.5), TypeError, "h must be a whole number, got 2.5"),
    (lambda: vote("perceptron", h="4"), TypeError, "h must be a whole number, got '4'"),
    (lambda: vote("perceptron", w=-1), ValueError, "w must be >= 0, got -1; try 0"),
    (lambda: vote("perceptron", r=0), ValueError, "r must be >= 1, got 0; try 1"),
    (lambda: vote("perceptron", d=0), ValueError, "d must be >= 1, got 0; try 1"),
    (lambda: vote("perceptron", w=2**70), ValueError, "w must be <= 2147483647"),
    (lambda: vote("perceptron", scale="max"), ValueError, "scale must be one of l2, l1, raw, got 'max'"),
    (lambda: combine([]), ValueError, "combine\\(\\) needs at least one learner, got none"),
    (lambda: stack([]), ValueError, "stack\\(\\) needs at least one learner, got none"),
    (lambda: vr_combine([]), ValueError, "combine\\(\\) needs at least one learner, got none"),
    (lambda: combine("perceptron"), TypeError, "learners must be a list, got 'perceptron'; put it in square brackets"),
    (lambda: stack("perceptron"), TypeError, "learners must be a list, got 'perceptron'; put it in square brackets"),
    (lambda: combine(rules.perceptron()), TypeError, "learners must be a list, got <rule perceptron>"),
    (lambda: combine(None), TypeError, "learners must be a list, got None"),
    (lambda: combine([None]), TypeError, "learner must be a rule, a technique or text .*, got None"),
    (lambda: combine(["percepton"]), ValueError, "unknown learner 'percepton'; did you mean 'perceptron'\\?"),
    (lambda: combine(["perceptron"], how="worst"), ValueError, "how must be one of best, wma, weighted, got 'worst'"),
    (
        lambda: combine(["perceptron"], how=["wma"]),
        ValueError,
        "how must be one of best, wma, weighted, got \\['wma'\\]",
    ),
    (lambda: combine(["perceptron"], "wma", 1.0), ValueError, "beta must be in \\(0, 1\\), got 1.0; try 0.5"),
    (lambda: combine(["perceptron"], "wma", 0), ValueError, "beta must be in \\(0, 1\\), got 0; try 0.5"),
    (lambda: combine(["perceptron"], "wma", "x"), TypeError, "beta must be a number, got 'x'"),
    (lambda: combine(["perceptron"], "wma", math.nan), ValueError, "beta must be finite, got nan"),
    (lambda: stack(["perceptron"], fusion="foo"), ValueError, "unknown learner 'foo'; known: adagrad, alma"),
    (lambda: stack(["perceptron"], fusion=7), TypeError, "learner must be a rule, .* got 7"),
    (lambda: vr_combine("paper"), TypeError, "learners must be a list, got 'paper'"),
    (lambda: vr_combine(["A-perceptron"]), ValueError, "rules must be plain rules.*; got A-perceptron"),
    (lambda: vr_combine(rules.perceptron()), TypeError, "learners must be a list, got <rule perceptron>"),
    (lambda: vr_combine(u=0), ValueError, "u must be >= 1, got 0"),
    (lambda: vr_combine(h=0), ValueError, "h must be >= 1, got 0"),
    (lambda: as_rule("A-perceptron"), TypeError, "a plain rule is needed here, got A-perceptron"),
]


@pytest.mark.small
@pytest.mark.parametrize(("call", "kind", "message"), BAD)
def test_bad_input(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


BAD_TOGETHER = [
    ("AA-perceptron", "AA-perceptron averages twice; once is enough"),
    ("RR-perceptron", "RR-perceptron recycles twice; once is enough"),
    ("RA-perceptron", "RA-perceptron recycles an average; average what is recycled instead: AR, not RA"),
    ("ARA-perceptron", "averages twice|recycles an average"),
    ("AV-perceptron", "work on a rule; write VA-perceptron$"),
    ("RV(h=3)-perceptron", "work on a rule; write V\\(h=3\\)R-perceptron$"),
    ("ARV-perceptron", "work on a rule; write VAR-perceptron$"),
    ("AVR-perceptron", "work on a rule; write VAR-perceptron$"),
    ("A(fade=True)S-perceptron", "work on a rule; write SA\\(fade=True\\)-perceptron$"),
    ("RB-winnow(1.1)", "work on a rule; write BR-winnow\\(1.1\\)$"),
    ("A-auto", "auto.*remove them$"),
    ("A-combine", "work on a rule; apply them to the members of combine instead"),
    ("VAR-combine", "work on a rule; apply them to the members of R-combine instead"),
    ("R-combine(perceptron)", "work on a rule; apply them to the members of combine\\(perceptron\\) instead"),
    ("A-stack(perceptron)", "work on a rule; apply them to the members of stack"),
    ("VV-perceptron", "VV-perceptron votes twice; once is enough"),
    ("VB-perceptron", "vote\\(\\) needs hypotheses that are weights; B-perceptron has none: write BV-perceptron$"),
    ("V-auto", "vote\\(\\) needs hypotheses that are weights; auto has none: vote over a rule$"),
    (
        "V-combine(perceptron, how=wma)",
        "vote\\(\\) needs hypotheses that are weights; combine\\(perceptron, how=wma\\)",
    ),
    ("elimination", "elimination has a fixed threshold and does not lift to many classes; use LinearThreshold"),
    ("A-elimination", "elimination has a fixed threshold and does not lift"),
    ("V-winnow(2, threshold=3)", "winnow\\(2, threshold=3\\) has a fixed threshold and does not lift"),
    ("combine(perceptron, R-elimination)", "elimination has a fixed threshold and does not lift"),
    ("stack(perceptron, fusion=elimination)", "elimination has a fixed threshold and does not lift"),
]


@pytest.mark.small
@pytest.mark.parametrize(("text", "message"), BAD_TOGETHER)
def test_invalid_compositions(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(text, TWO, [0, 1])


@pytest.mark.small
def test_nothing_is_changed_silently() -> None:
    """Odd or large numbers are taken as they are."""
    odd = vote(recycle("perceptron", s=3, u=10**9), h=7, w=0, r=1, d=1)
    assert str(odd) == "V(h=7, w=0, r=1, d=1)R(s=3, u=1000000000)-perceptron"
    machine = run(odd, TWO, [0, 1]).model
    assert len(machine.engine.top.ballot.centres) == 7
    assert list(machine.engine.runs[0].recycling) == [3, 10**9, 2**31 - 1, 0]
    endless = run(recycle("perceptron", u=math.inf), TWO, [0, 1]).model
    assert list(endless.engine.runs[0].recycling) == [100, 2**31 - 1, 1000, 0]


@pytest.mark.small
def test_learners_come_in_many_forms() -> None:
    expected = average(recycle(rules.winnow(1.1), s=7))
    assert average(recycle("winnow(1.1)", s=7)) == expected
    assert as_learner(expected) is expected
    assert as_learner("AR(s=7)-winnow(1.1)") == expected
    assert average("R(s=7)-winnow(1.1)") == expected
    assert combine(text for text in ["perceptron", "winnow(1.1)"]) == combine(["perceptron", rules.winnow(1.1)])
    assert hash(combine(("perceptron",))) == hash(combine(["perceptron"]))
    assert combine(["perceptron"]) != combine(["perceptron"], how="wma")
    assert isinstance(average("perceptron"), Averaged)
    assert isinstance(recycle("perceptron", np.int64(3), np.int64(2)), Recycled)
    assert str(recycle("perceptron", np.int64(3), np.int64(2))) == "R(s=3, u=2)-perceptron"


@pytest.mark.small
def test_own_rules_compose() -> None:
    @rule(parameters={"rate": 1.0})
    def additive_step(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
        if margin > 0.0:
            return False
        for j in range(index.size):
            weights[index[j]] += params[0] * z[j]
        return True

    rng = np.random.default_rng(1)
    votes = rng.integers(3, size=(40 if JIT else 10, 4))
    instances, labels = linmax.instances(votes=votes, classes=range(3)), votes[:, 0]
    for make in (average, recycle, vote, lambda x: vote(average(recycle(x))), lambda x: combine([x, "winnow(1.1)"])):
        ours, theirs = run(make(additive_step), instances, labels), run(make("perceptron"), instances, labels)
        assert ours.predictions.tolist() == theirs.predictions.tolist()
    assert str(vote(additive_step(rate=2.0))) == "V-additive-step(rate=2)"
    assert parse("AR-additive-step(rate=2)") == average(recycle(additive_step(2.0)))


@pytest.mark.small
def test_the_paper_pool() -> None:
    pool = paper_pool()
    assert len(pool) == 31
    assert all(isinstance(member, Rule) for member in pool)
    assert {1.01, 1.03, 1.2, 1.25, 1.3, 1.35, 1.5, 1.6} < set(PAPER_ALPHAS)
    assert len(PAPER_ALPHAS) == len(PAPER_NORMS) == 15
    assert PAPER_NORMS[0] == 2.0
    assert PAPER_NORMS[-1] == 9.0
    combined = vr_combine().base
    assert len(combined.members) == 62
    assert combined.members[:31] == tuple(recycle(member) for member in pool)
    assert combined.members[31:] == tuple(average(recycle(member)) for member in pool)


@pytest.mark.small
def test_vr_combine_of_own_rules() -> None:
    learner = vr_combine(["perceptron", rules.winnow(1.1)], s=9, u=2, h=4, w=3, r=5, d=6, scale="l1")
    assert str(learner) == (
        "V(h=4, w=3, r=5, d=6, scale=l1)-combine(R(s=9, u=2)-perceptron, R(s=9, u=2)-winnow(1.1), "
        "AR(s=9, u=2)-perceptron, AR(s=9, u=2)-winnow(1.1))"
    )
    assert parse(str(learner)) == learner
    assert len(run(learner, TWO, [0, 1])) == 2
    assert len(run(learner, TWO, [0, 1]).model.engine.runs) == 2  # averages share their rule
