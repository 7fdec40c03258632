"""Techniques as text: what prints parses back and means the same; what cannot be read says why."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import linmax
from linmax import average, combine, parse, recycle, run, stack, vote, vr_combine
from linmax.jit.compiling import JIT

DESCRIBED: list[tuple[Any, str]] = [
    (average("perceptron"), "A-perceptron"),
    (average("perceptron", "max"), "A(scale=max)-perceptron"),
    (average(recycle("winnow(1.2)")), "AR-winnow(1.2)"),
    (average(recycle("winnow(1.2)", s=200), "l1"), "A(scale=l1)R(s=200)-winnow(1.2)"),
    (recycle("alma(2.5, alpha=0.9)", u=math.inf), "R(u=inf)-alma(2.5, alpha=0.9)"),
    (recycle("perceptron", u=math.inf, passes=7), "R(u=inf, passes=7)-perceptron"),
    (recycle("perceptron", passes=7), "R(passes=7)-perceptron"),
    (recycle("perceptron", 1, 1), "R(s=1, u=1)-perceptron"),
    (vote("balanced-winnow(1.1)"), "V-balanced-winnow(1.1)"),
    (vote("A-perceptron", h=10), "V(h=10)A-perceptron"),
    (vote("AR(s=7)-p-norm(3)", 3, 4, 5, 6, "raw"), "V(h=3, w=4, r=5, d=6, scale=raw)AR(s=7)-p-norm(3)"),
    (combine(["perceptron", "A-winnow(1.1)"]), "combine(perceptron, A-winnow(1.1))"),
    (combine(["perceptron"], how="wma", beta=0.25), "combine(perceptron, how=wma, beta=0.25)"),
    (
        combine(["alma(2, alpha=0.9)", "R(s=3)-perceptron"], "weighted"),
        "combine(alma(2, alpha=0.9), R(s=3)-perceptron, how=weighted)",
    ),
    (vote(combine(["perceptron", "AR-winnow(1.1)"]), h=4), "V(h=4)-combine(perceptron, AR-winnow(1.1))"),
    (
        combine([combine(["perceptron"], "wma"), vote("winnow(1.1)")]),
        "combine(combine(perceptron, how=wma), V-winnow(1.1))",
    ),
    (stack(["perceptron", "winnow(1.1)"]), "stack(perceptron, winnow(1.1), fusion=perceptron)"),
    (
        stack(["V(h=3)-perceptron", stack(["alma(2)"])], combine(["perceptron", "A-alma(2)"], "wma")),
        "stack(V(h=3)-perceptron, stack(alma(2), fusion=perceptron), fusion=combine(perceptron, A-alma(2), how=wma))",
    ),
    (vr_combine(), "VR-combine"),
    (vr_combine(s=50, u=3, h=10), "V(h=10)R(s=50, u=3)-combine"),
    (recycle("winnow(1.6)", u=math.inf, passes=1000), "R(u=inf, passes=1000)-winnow(1.6)"),
]


@pytest.mark.small
@pytest.mark.parametrize(("learner", "text"), DESCRIBED, ids=[text for _, text in DESCRIBED])
def test_what_prints_parses_back(learner: Any, text: str) -> None:
    assert str(learner) == text
    again = parse(text)
    assert again == learner
    assert str(again) == text
    assert hash(again) == hash(learner)


@pytest.mark.small
@pytest.mark.parametrize(("learner", "text"), DESCRIBED[:-3], ids=[text for _, text in DESCRIBED[:-3]])
def test_and_does_the_same(learner: Any, text: str) -> None:
    rng = np.random.default_rng(1)
    votes = rng.integers(3, size=(40 if JIT else 8, 4))
    instances, labels = (
        linmax.instances(votes=votes, classes=range(3)),
        np.where(rng.random(len(votes)) < 0.8, votes[:, 0], 1),
    )
    ours, theirs = run(learner, instances, labels), run(text, instances, labels)
    assert ours.predictions.tolist() == theirs.predictions.tolist()
    assert ours.model.updates == theirs.model.updates


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a-Perceptron", "A-perceptron"),
        ("ar-Balanced_Winnow(1.2)", "AR-balanced-winnow(1.2)"),
        ("A-R-winnow(1.2)", "AR-winnow(1.2)"),
        ("v(H=4)-perceptron", "H"),
        ("V(h = 4,w=3)A( scale = max )-perceptron", "V(h=4, w=3)A(scale=max)-perceptron"),
        ("V(scale=L1)-perceptron", "V(scale=l1)-perceptron"),
        ("R(u=Inf)-perceptron", "R(u=inf)-perceptron"),
        ("R(s=100, u=5)-perceptron", "R-perceptron"),
        ("COMBINE", "combine"),
        ("v-combine", "V-combine"),
        ("Vr-Combine", "VR-combine"),
        ("R-combine", "R-combine"),
        ("R(passes=3)-combine", "R(passes=3)-combine"),
        ("V(h=10)R(u=2)-combine", "V(h=10)R(u=2)-combine"),
        ("combine(perceptron,alma,how=WMA)", "combine(perceptron, alma(2), how=wma)"),
        ("combine( perceptron , beta=.2 , how=wma )", "combine(perceptron, how=wma, beta=0.2)"),
        ("stack(alma(3), fusion = AR-winnow(1.1))", "stack(alma(3), fusion=AR-winnow(1.1))"),
        ("A-alma", "A-alma(2)"),
        ("AR-alma(2.5, 0.9)", "AR-alma(2.5, alpha=0.9)"),
        ("alma(3)", "alma(3)"),
    ],
)
def test_forms_of_writing(text: str, printed: str) -> None:
    if printed == "H":  # names of options are as they are
        with pytest.raises(ValueError, match="V has no option 'H'; it has h, w, r, d, scale"):
            parse(text)
    else:
        assert str(parse(text)) == printed


@pytest.mark.small
def test_the_combinations_of_the_paper() -> None:
    assert parse("VR-combine") == vr_combine()
    assert parse("V(h=3)R(s=9, u=2)-combine") == vr_combine(s=9, u=2, h=3)
    assert len(parse("combine").members) == 62
    assert parse("V-combine").base == parse("combine")
    assert parse("R-combine").members[0] == recycle("winnow(1.01)")
    assert parse("R(s=9)-combine").members[-1] == average(recycle("alma(9)", s=9))


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            "A-percepton",
            ValueError,
            "unknown learner 'percepton'; did you mean 'perceptron'\\? known: adagrad, .*combine, stack",
        ),
        ("AR-winow(1.1)", ValueError, "unknown learner 'winow'; did you mean 'winnow'\\?"),
        ("VR-combin", ValueError, "unknown learner 'combin'; did you mean 'combine'\\?"),
        ("X-perceptron", ValueError, "unknown learner 'X-perceptron'; did you mean 'perceptron'\\?"),
        ("combine(perceptron, winow(2))", ValueError, "unknown learner 'winow'; did you mean 'winnow'\\?"),
        ("AR-", ValueError, "learner 'AR-' cannot be read; write a name"),
        ("A", ValueError, "unknown learner 'A'.*prefixes A-, R-, V-"),
        ("", ValueError, "learner '' cannot be read"),
        ("-perceptron", ValueError, "cannot be read"),
        ("A-winnow(1.1) extra", ValueError, "cannot be read"),
        ("winnow(1.1)-A", ValueError, "cannot be read"),
        ("V(h=10-perceptron", ValueError, "a bracket is never closed"),
        ("V(h=)-perceptron", ValueError, "the parameters 'h=' cannot be read"),
        ("V(10)-perceptron", ValueError, "options of A, R, V, S and B are written key=value, got '10'"),
        ("V(k=3)-perceptron", ValueError, "V has no option 'k'; it has h, w, r, d, scale"),
        ("R(h=3)-perceptron", ValueError, "R has no option 'h'; it has s, u, passes"),
        ("A(s=3)-perceptron", ValueError, "A has no option 's'; it has scale"),
        ("R(learner=3)-perceptron", ValueError, "R has no option 'learner'"),
        ("VR(k=3)-combine", ValueError, "R has no option 'k'"),
        ("R(s=3, s=4)-perceptron", ValueError, "s is given twice"),
        ("winnow(alpha=1.1, alpha=1.2)", ValueError, "alpha is given twice"),
        ("combine(perceptron, how=wma, how=best)", ValueError, "how is given twice"),
        ("stack(perceptron, fusion=alma, fusion=alma)", ValueError, "fusion is given twice"),
        ("combine(perceptron, how=bad)", ValueError, "how must be one of best, wma, weighted, got 'bad'"),
        ("combine(perceptron, beta=)", ValueError, "cannot be read"),
        ("combine(perceptron, how=wma, beta=2)", ValueError, "beta must be in \\(0, 1\\), got 2"),
        ("combine()", ValueError, "combine\\(\\) needs at least one learner"),
        ("stack(fusion=perceptron)", ValueError, "stack\\(\\) needs at least one learner"),
        ("stack(perceptron, fusion=)", ValueError, "learner '' cannot be read"),
        ("V(h=1e3)-perceptron", TypeError, "learner 'V\\(h=1e3\\)-perceptron': h must be a whole number, got 1000.0"),
        ("V(h=__import__('os'))-perceptron", ValueError, "cannot be read"),
        ("R(u=0)-perceptron", ValueError, "u must be >= 1, got 0"),
        ("A(scale=l3)-perceptron", ValueError, "scale must be one of raw, max, l1, got 'l3'"),
        ("A-winnow", TypeError, r"winnow needs a value for alpha; write it in brackets, as in winnow\(1.1\)"),
        ("WMA", TypeError, r"learner 'WMA': WMA is read as committee\(alpha\), .* as in committee\(1.1\)"),
        ("A-Committee", TypeError, r"how=wma\)\); committee needs a value for alpha; write it in brackets"),
        ("p-norm", TypeError, r"p-norm needs a value for p; write it in brackets, as in p-norm\(3\)"),
        ("winnow(speed=3)", TypeError, "winnow has no parameter 'speed'; it has alpha, "),
    ],
)
def test_what_cannot_be_read(text: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        parse(text)
    with pytest.raises(kind, match=message):
        run(text, linmax.instances(votes=[[0, 1]], classes=range(2)), [0])


@pytest.mark.small
def test_text_is_taken_wherever_a_learner_is() -> None:
    assert vote("R(s=5)-perceptron") == vote(recycle("perceptron", s=5))
    assert combine(["VR-combine", "A-perceptron"]).members[0] == vr_combine()
    assert stack(["perceptron"], fusion="AR-perceptron").fusion == average(recycle("perceptron"))
