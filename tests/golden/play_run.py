"""Results of `linmax.run` for every learner, on each kind of instance: they agree on all processors."""

from __future__ import annotations

from typing import Any

import linmax
from golden import learners, streams
from golden.record import answers, case, digest, sample


def result_of(trace: Any, instances: Any, labels: Any) -> dict[str, Any]:
    """Results of a run and the state of its model."""
    model = trace.model
    found = answers(trace.predictions.tolist(), [*labels] * trace.passes)
    found |= {
        "trials": model.trials,
        "updates": model.updates,
        "recycled": model.recycled,
        "changed": digest(trace.changed.tolist()),
        "epochs": trace.passes,
        "consistent": trace.consistent,
        "classes": model.classes,
        "known": len(model.known),
        "predicted": digest(model.predict(instances).tolist()),
        "scores": sample(model.scores(instances)),
        "members": [[member.name, member.mistakes] for member in model.members][:4],
    }
    try:
        weights = model.weights.arrays
    except ValueError:  # no single weight vector
        return found
    found["weights"] = sample(weights.flat)
    found["log_scale"] = float(weights.log_scale)
    return found


def votes_given() -> tuple[Any, list[str]]:
    given = streams.votes()
    return linmax.instances(votes=given.votes), given.labels


def scores_given() -> tuple[Any, list[str]]:
    table, labels = streams.scores()
    return linmax.instances(scores=table, classes=streams.CLASSES), labels


def dense_given() -> tuple[Any, list[str]]:
    table, labels = streams.dense()
    return linmax.instances(attributes=table), labels


def positive_given() -> tuple[Any, list[str]]:
    table, labels = streams.dense()
    return linmax.instances(attributes=0.5 + 0.5 * table), labels


def sparse_given() -> tuple[Any, list[str]]:
    rows, labels = streams.counts()
    return linmax.instances(attributes=streams.csr(rows)), labels


def mixed_given() -> tuple[Any, list[str]]:
    given = streams.votes()
    table, _ = streams.scores()
    attributes = [
        [0.5 * a + 0.5 * (label == name) for a, name in zip(row, streams.CLASSES, strict=False)]
        for row, label in zip(streams.chance(11, streams.TRIALS, 3).tolist(), given.labels, strict=True)
    ]
    return linmax.instances(
        votes=given.votes, scores=table[:, :2], attributes=attributes, classes=streams.CLASSES
    ), given.labels


GIVEN = {
    "run-votes": votes_given,
    "run-scores": scores_given,
    "run-dense": dense_given,
    "run-sparse": sparse_given,
    "run-mixed": mixed_given,
}


def play(given: Any, learner: str) -> dict[str, Any]:
    instances, labels = given()
    return result_of(linmax.run(learner, instances, labels), instances, labels)


for face, given in GIVEN.items():
    for learner in learners.ALL:
        counted = face == "run-dense" and "naive-bayes" in learner
        small = learner in ("perceptron", "winnow(1.2)", "alma(2)", "A-arow")
        case(face, learner, play, positive_given if counted else given, learner, small=small)
