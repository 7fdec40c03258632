"""`linmax.run` and the machine that it leaves behind."""

from __future__ import annotations

from typing import Any

import linmax
from golden import learners, streams
from golden.record import answers, case, digest, sample

FACES = ["run-votes", "run-scores", "run-dense", "run-sparse", "run-mixed", "run-options", "run-going-on"]


def told(trace: Any, instances: Any, labels: Any) -> dict[str, Any]:
    """What a trace and its machine hold."""
    machine = trace.model
    found = answers(trace.predictions.tolist(), [*labels] * trace.passes)
    found |= {
        "trials": machine.trials,
        "updates": machine.updates,
        "recycled": machine.recycled,
        "changed": digest(trace.changed.tolist()),
        "epochs": trace.passes,
        "consistent": trace.consistent,
        "classes": machine.classes,
        "known": len(machine.known),
        "predicted": digest(machine.predict(instances).tolist()),
        "scores": sample(machine.scores(instances)),
        "members": [[member.name, member.mistakes] for member in machine.members][:4],
    }
    try:
        weights = machine.weights.arrays
    except ValueError:  # no single weight vector
        return found
    found["weights"] = sample(weights.flat)
    found["log_scale"] = float(weights.log_scale)
    return found


def votes_given() -> tuple[Any, list[str]]:
    given = streams.votes()
    return linmax.experts(votes=given.votes), given.labels


def scores_given() -> tuple[Any, list[str]]:
    table, labels = streams.scores()
    return linmax.experts(scores=table, classes=streams.CLASSES), labels


def dense_given() -> tuple[Any, list[str]]:
    table, labels = streams.dense()
    return linmax.experts(attributes=table), labels


def positive_given() -> tuple[Any, list[str]]:
    table, labels = streams.dense()
    return linmax.experts(attributes=0.5 + 0.5 * table), labels


def sparse_given() -> tuple[Any, list[str]]:
    rows, labels = streams.counts()
    return linmax.experts(attributes=streams.csr(rows)), labels


def mixed_given() -> tuple[Any, list[str]]:
    given = streams.votes()
    table, _ = streams.scores()
    attributes = [
        [0.5 * a + 0.5 * (label == name) for a, name in zip(row, streams.CLASSES, strict=False)]
        for row, label in zip(streams.chance(11, streams.TRIALS, 3).tolist(), given.labels, strict=True)
    ]
    return linmax.experts(
        votes=given.votes, scores=table[:, :2], attributes=attributes, classes=streams.CLASSES
    ), given.labels


def by_dicts() -> tuple[Any, list[str]]:
    rows, labels = streams.counts()
    return linmax.experts(attributes=rows, thresholds=False), labels


GIVEN = {
    "run-votes": votes_given,
    "run-scores": scores_given,
    "run-dense": dense_given,
    "run-sparse": sparse_given,
    "run-mixed": mixed_given,
}


def play(given: Any, learner: str, **options: Any) -> dict[str, Any]:
    instances, labels = given()
    trace = linmax.run(learner, instances, labels, **options)
    found = told(trace, instances, labels)
    if trace.margins is not None:
        found["margins"] = sample(trace.margins)
    return found


for face, given in GIVEN.items():
    for learner in learners.ALL:
        counted = face == "run-dense" and "naive-bayes" in learner
        small = learner in ("perceptron", "winnow(1.2)", "alma(2)", "A-arow")
        case(face, learner, play, positive_given if counted else given, learner, small=small)


def option(given: Any, learner: str, options: dict[str, Any]) -> dict[str, Any]:
    return play(given, learner, **options)


OPTIONS: list[tuple[str, Any, dict[str, Any]]] = [
    ("discover-votes", votes_given, {"discover": True}),
    ("discover-dense", dense_given, {"discover": True}),
    ("discover-sparse", sparse_given, {"discover": True}),
    ("passes-dense", dense_given, {"passes": 4}),
    ("passes-votes", votes_given, {"passes": 3}),
    ("largest-scores", scores_given, {"tie": "largest"}),
    ("no-update-on-tie-sparse", sparse_given, {"update_on_tie": False}),
    ("dicts", by_dicts, {}),
]
for name, given, options in OPTIONS:
    for learner in learners.SOME:
        case("run-options", f"{name}-{learner}", option, given, learner, options)
for learner in ("perceptron", "winnow(1.2)", "alma(2)", "arow", "R-perceptron"):
    case("run-options", f"margins-{learner}", option, dense_given, learner, {"margins": True})


def shaped(learner: str, kind: str) -> dict[str, Any]:
    """Instances with copies: negated, split, by a side column, scaled."""
    given = streams.votes()
    table, labels = streams.dense()
    blocks: dict[str, Any] = {
        "negated": {"votes": given.votes, "negated": True},
        "split": {"votes": given.votes, "split": "all"},
        "by": {"votes": given.votes, "by": given.subjects},
        "scaled": {"attributes": 7.0 * table, "scale": "max"},
        "bare": {"attributes": table, "thresholds": False},
    }
    instances = linmax.experts(**blocks[kind], classes=streams.CLASSES)
    right = labels if "attributes" in blocks[kind] else given.labels
    return told(linmax.run(learner, instances, right), instances, right)


for kind in ("negated", "split", "by", "scaled", "bare"):
    for learner in ("perceptron", "winnow(1.2)", "AR-winnow(1.2)", "A-arow", "auto"):
        case("run-options", f"{kind}-{learner}", shaped, learner, kind)


def going_on(learner: str, kind: str) -> dict[str, Any]:
    """A machine that goes on, with voters, attributes and a class that join."""
    given = streams.votes()
    rows, names = streams.counts()
    if kind == "votes":
        early = [[None if vote == "oak" else vote for vote in row[:4]] for row in given.votes]
        labels = [label if label != "oak" else "elm" for label in given.labels]
        first, rest = linmax.experts(votes=early[:80]), linmax.experts(votes=given.votes[80:])
        right = [labels[:80], given.labels[80:]]
    else:
        labels = [label if label != "oak" else "elm" for label in names]
        first = linmax.experts(attributes=rows[:80])
        rest = linmax.experts(attributes=rows[80:], vocabulary=first.vocabulary)
        right = [labels[:80], names[80:]]
    begun = linmax.run(learner, first, right[0])
    trace = begun.model.run(rest, right[1], grow=True)
    return {"first": answers(begun.predictions.tolist(), right[0]), **told(trace, rest, right[1])}


for kind in ("votes", "dicts"):
    for learner in learners.SOME:
        case("run-going-on", f"{kind}-{learner}", going_on, learner, kind)
