"""Bounds as functions, certificates, bounds along a trace, and conversion to a batch hypothesis."""

from __future__ import annotations

from typing import Any

import linmax
from golden import streams
from golden.play_run import votes_given
from golden.record import case, digest, plain, sample
from linmax import bounds, conversion

FACES = ["bounds", "certificates", "conversion"]

SEARCHED = 1e-5  # what an optimiser finds differs from version to version
U = [0.5, 0.25, 0.125, 0.125, 0.0]
SIGNED = [0.5, -0.25, 0.125, -0.125, 0.0]
SQUARE = [[4.0, 1.0], [1.0, 2.0]]

VALUES: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "alma": [((2, 0.3), {"noise": 2.5, "alpha": 0.9}), ((3.5, 0.1), {})],
    "alma_noisy_printed": [((2.5, 0.1, 1.1), {})],
    "alma_printed": [((3, 0.2, 0.8), {})],
    "alma_separable": [((2, 0.3, 0.9), {}), ((4, 0.1), {"C": 1.0})],
    "alma_unprojected": [((2, 0.13), {})],
    "arow": [(([1.0, 0.5], SQUARE, 1.5, 3), {"r": 0.3})],
    "average_risk": [((0.1, 1000, 0.05), {})],
    "average_risk_printed": [((0.1, 1000, 0.05), {})],
    "balanced": [((SIGNED, 0.2, 1.1), {"noise": 3.0, "thickness": 0.01}), ((SIGNED, 0.3, 1.2), {})],
    "balanced_printed": [((SIGNED, 0.2), {"noise": 2.0})],
    "best_alpha": [((1.2, 0.3), {}), ((1.2, 0.3), {"noise": 5.0, "thickness": 0.05})],
    "best_beta": [((62, 100), {})],
    "best_winnow2_alpha": [((1000, 7 / 3, 1 / 3), {})],
    "committee_printed": [((20000, 1 / 3), {})],
    "divergence": [((U,), {}), ((U, [1.0, 2.0, 1.0, 0.5, 1.0]), {})],
    "divergence_balanced": [((SIGNED,), {})],
    "elimination": [((10, True), {})],
    "exponentiated_gradient": [((2.0, 3.0, 1.5, 0.7), {})],
    "log_growth": [((0.2, 0.05, 1.0), {})],
    "most_restarts": [((5000, 100), {})],
    "multiclass_perceptron": [((2.0, 0.3), {})],
    "multiplicative": [((U, 0.2, 1.1), {"noise": 3.0}), ((U, 0.2, 1.1), {"thickness": 0.01, "largest": 0.8})],
    "p_norm": [((3.0, 1.2, 0.9, 0.1), {"noise": 2.0})],
    "passive_aggressive": [
        ((2.0, 3.0), {"hinge": 1.5, "C": 0.3}),
        ((2.0, 3.0), {"hinge": 1.5, "C": 0.3, "squared": True}),
    ],
    "perceptron": [((3.0, 1.0, 0.5), {"noise": 2.0, "threshold": 0.5})],
    "perceptron_deviations": [((1.0, 1.0, 0.3, 0.7), {})],
    "recycling": [((bounds.perceptron, 5), {"noise": 0.2, "radius": 1, "norm": 1, "margin": 0.4})],
    "second_order_perceptron": [(([1.0, 0.5], SQUARE, 0.7), {"noise": 0.4, "a": 0.5})],
    "selection_penalty": [((1000, 900, 0.05), {})],
    "selection_risk": [((0.1, 100000, 0.05), {})],
    "survival_error": [((54, 0.05), {"mistakes": 10}), ((54, 0.05), {"hypothesis": 4})],
    "survival_examples": [((10, 0.1, 0.05), {})],
    "survival_run": [((10, 0.1, 0.05), {})],
    "survival_run_printed": [((0.1, 0.05), {})],
    "survival_run_unknown": [((3, 0.1, 0.05), {})],
    "two_phase_examples": [((10, 0.1, 0.05), {})],
    "voted_risk": [((999, 51.5), {})],
    "voting": [((50, 2), {})],
    "weighted_majority": [((62, 100), {"beta": 0.9})],
    "winnow1_disjunction": [((3, 1000), {})],
    "winnow2": [((1000, 7 / 3, 1 / 3, 1.2), {})],
    "winnow2_disjunction": [((5, 1000), {"alpha": 1.5})],
    "winnow2_printed": [((1000, 7 / 3, 1 / 3), {})],
    "winnow_printed": [((100, 1.0, 1.0, 0.3), {})],
}


def value(name: str) -> dict[str, Any]:
    return {"values": [plain(getattr(bounds, name)(*given, **named)) for given, named in VALUES[name]]}


for name in VALUES:
    rounding = SEARCHED if name.startswith("best_") else 1e-9
    case("bounds", name, value, name, rounding=rounding, small=True)


def certified(text: str, kind: str) -> dict[str, Any]:
    if kind == "votes":
        instances, labels = votes_given()
        instances, labels = instances[:60], labels[:60]
    else:
        table, labels = streams.halves(80)
        instances = table
    found = linmax.certify(instances, labels, text)
    return {
        "learner": found.learner,
        "counted": [found.trials, found.mistakes, found.updates],
        "said": [found.vacuous, found.separable, found.sampled],
        "numbers": plain([found.bound, found.alpha, found.tuned_bound]),
        "margin": found.margin if found.separable else None,
    }


CERTIFIED = [
    "perceptron",
    "winnow(1.1)",
    "balanced-winnow(1.1)",
    "p-norm(3)",
    "alma(2)",
    "R-perceptron",
    "V-winnow(1.1)",
]
for text in CERTIFIED:
    for kind in ("votes", "two"):
        if kind == "votes" or text[1] != "-":
            case("certificates", f"{kind}-{text}", certified, text, kind, rounding=SEARCHED)


def so_far(text: str) -> dict[str, Any]:
    """The bound after each trial against a fixed comparator."""
    instances, labels = votes_given()
    u = [0.5, 0.3, 0.2, *[0.0] * (len(streams.VOTERS) - 3), *[0.0] * len(streams.CLASSES)]
    trace = linmax.run(text, instances, labels)
    return {"bound": sample(trace.bound(u, 0.2), 8), "mistakes": int(trace.mistakes[-1])}


for text in ("perceptron", "winnow(1.1)", "alma(2)", "p-norm(3)"):
    case("certificates", f"so-far-{text}", so_far, text)


def converted(how: str, text: str, kind: str) -> dict[str, Any]:
    if kind == "votes":
        given = streams.votes(150, seed=41, abstain=False)
        examples: list[tuple[Any, Any]] = [(row, label) for row, label in zip(given.votes, given.labels, strict=True)]
    else:
        table, labels = streams.dense(150, seed=42)
        examples = list(zip(table, labels, strict=True))
    learner = conversion.OneByOne(text, classes=streams.CLASSES, kind=kind)
    if how == "first_survivor":
        found = conversion.first_survivor(learner, examples * 3, error=0.45 if kind == "votes" else 0.65, failure=0.2)
    elif how == "drawn":
        found = conversion.drawn(learner, examples, failure=0.1, seed=5)
    else:
        found = getattr(conversion, how)(learner, examples[:70], failure=0.1)
    return {
        "numbers": [found.error, found.failure],
        "counted": [found.examples, found.mistakes],
        "basis": found.basis,
        "predicted": digest(found.hypothesis.predict(x) for x, _ in examples[:60]),
    }


def two_phase(text: str) -> dict[str, Any]:
    given = streams.votes(700, seed=43, abstain=False)
    learner = conversion.OneByOne(text, classes=streams.CLASSES, kind="votes")
    examples = zip(given.votes, [row[0] for row in given.votes], strict=True)
    found = conversion.two_phase(learner, examples, mistakes=30, error=0.9, failure=0.5)
    return {"numbers": [found.error, found.failure], "counted": [found.examples, found.mistakes], "basis": found.basis}


for text in ("perceptron", "winnow(1.2)", "A-arow"):
    for kind in ("votes", "attributes"):
        for how in ("first_survivor", "longest_survivor", "selected", "drawn"):
            case("conversion", f"{how}-{kind}-{text}", converted, how, text, kind)
    case("conversion", f"two_phase-{text}", two_phase, text)
