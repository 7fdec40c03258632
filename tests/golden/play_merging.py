"""`linmax.merge`: learners and models of streams that learned apart."""

from __future__ import annotations

from typing import Any

import linmax
from golden import learners, streams
from golden.play_learner import told as told_of_learner
from golden.play_stream import told as told_of_model
from golden.record import case, digest

FACES = ["merging"]
HOW: dict[str, Any] = {"uniform": "uniform", "mistakes": "mistakes", "shares": [1.0, 2.0, 0.5]}
MERGEABLE = [
    *learners.RULES,
    *learners.AVERAGES,
    "AR-winnow(1.2)",
    "combine(perceptron, A-winnow(1.1), alma(2))",
    "combine(perceptron, AR-winnow(1.1), arow, how=weighted)",
]


def merged(text: str, how: str, multiplicative: str = "log") -> dict[str, Any]:
    """Three learners, each taught a stream of its own after the same first trials; the merged one goes on."""
    first, right = streams.counts(12)
    parts = []
    for seed in (51, 52, 53):
        learner = linmax.Learner(text)
        rows, labels = streams.counts(60, seed)
        for row, label in zip([*first, *rows], [*right, *labels], strict=True):
            learner.learn(row, label=label)
        parts.append(learner)
    found = linmax.merge(parts, HOW[how], multiplicative)
    rows, labels = streams.counts(40, 54)
    before = digest(found.predict(row) for row in rows)
    said = [found.learn(row, label=label) for row, label in zip(rows, labels, strict=True)]
    return {"before": before, "after": digest(said), **told_of_learner(found, [{"attributes": row} for row in rows])}


def models(kind: str, text: str) -> dict[str, Any]:
    """Three models of streams, each of a third of the lines."""
    lines, _, reading = streams.FILES[kind]
    given = lines()
    head = given[:1] if kind == "csv" else []
    parts = []
    for place in range(3):
        model = linmax.streams.StreamModel(text, scale="none" if kind != "csv" else "max")
        part = [*head, *given[len(head) + place :: 3]]
        for batch in linmax.stream(part, model=model, prefetch=False, **reading):
            model.learn(batch)
        parts.append(model)
    found = linmax.merge(parts)
    last = next(iter(linmax.stream(given, model=found, prefetch=False, grow=False, **reading)))
    return told_of_model(found, last)


for text in MERGEABLE:
    case("merging", f"uniform-{text}", merged, text, "uniform")
for text in ("perceptron", "winnow(1.2)", "A-arow"):
    for how in ("mistakes", "shares"):
        case("merging", f"{how}-{text}", merged, text, how)
for text in ("winnow(1.2)", "balanced-winnow(1.2)"):
    case("merging", f"plain-{text}", merged, text, "uniform", "plain")
for text in ("vr-combine", "VA-pa", "stack(perceptron, winnow(1.1), fusion=winnow(1.05))", "auto"):
    case("merging", f"uniform-{text}", merged, text, "uniform")
for kind in streams.FILES:
    for text in ("perceptron", "A-arow", "winnow(1.2)"):
        case("merging", f"models-{kind}-{text}", models, kind, text)
