"""`linmax.Learner`: one trial at a time, by name."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import linmax
from golden import learners, streams
from golden.record import answers, by_name, case, digest, plain, sample

FACES = ["learner-attributes", "learner-votes", "learner-scores", "learner-mixed", "learner-others"]

Instance = dict[str, Any]


def attributes() -> tuple[list[Instance], list[str]]:
    rows, labels = streams.counts()
    return [{"attributes": row} for row in rows], labels


def votes() -> tuple[list[Instance], list[str]]:
    given = streams.votes(abstain=False)
    return [{"votes": dict(zip(streams.VOTERS, row, strict=True))} for row in given.votes], given.labels


def scores() -> tuple[list[Instance], list[str]]:
    table, labels = streams.scores()
    rated = [
        {"scores": {rater: dict(zip(streams.CLASSES, row, strict=True)) for rater, row in zip(streams.RATERS, rows, strict=True)}}
        for rows in table.tolist()
    ]  # fmt: skip
    return rated, labels


def mixed() -> tuple[list[Instance], list[str]]:
    spoken, labels = votes()
    noise = streams.chance(12, streams.TRIALS, 3).tolist()
    names = [f"a{i}" for i in range(3)]
    shown = [
        {name: 0.5 * x + 0.5 * (label == place) for name, x, place in zip(names, row, streams.CLASSES, strict=True)}
        for row, label in zip(noise, labels, strict=True)
    ]
    return [{**said, "attributes": row} for said, row in zip(spoken, shown, strict=True)], labels


GIVEN = {
    "learner-attributes": attributes,
    "learner-votes": votes,
    "learner-scores": scores,
    "learner-mixed": mixed,
}


def told(learner: linmax.Learner, rows: list[Instance]) -> dict[str, Any]:
    """What a learner holds, and what it says of some instances."""
    found: dict[str, Any] = {
        "trials": learner.trials,
        "mistakes_counted": learner.mistakes,
        "updates": learner.updates,
        "pending": learner.pending,
        "classes": plain(learner.classes),
        "names": digest([*learner.voters, *learner.raters, *learner.attributes]),
        "curve": digest([plain(part) for part in learner.curve]),
        "predicted": digest(learner.predict(**row) for row in rows[-20:]),
        "scores": sample([value for row in rows[-5:] for value in learner.scores(**row).values()]),
    }
    with suppress(ValueError):  # no single weight vector
        found["weights"] = by_name(learner.weights)
    return found


def options(face: str) -> dict[str, Any]:
    """Classes are discovered where there are only attributes, and fixed elsewhere."""
    return {} if face == "learner-attributes" else {"classes": streams.CLASSES}


def play(face: str, text: str) -> dict[str, Any]:
    rows, labels = GIVEN[face]()
    learner = linmax.Learner(text, **options(face))
    said = [learner.learn(**row, label=label) for row, label in zip(rows, labels, strict=True)]
    return {**answers(said, labels), **told(learner, rows)}


for face in GIVEN:
    for text in learners.ALL:
        if face == "learner-attributes" or text in learners.SOME or text in learners.RULES[::3]:
            small = text in ("perceptron", "winnow(1.2)", "alma(2)")
            case(face, text, play, face, text, small=small)


def late(face: str, text: str) -> dict[str, Any]:
    """Predictions by id, labels ten trials later, some never; every seventh instance has its label at once."""
    rows, labels = GIVEN[face]()
    learner = linmax.Learner(text, **options(face), thresholds=False)
    for row, label in zip(rows[:6], labels[:6], strict=True):
        learner.learn(**row, label=label)
    said, waiting = [], []
    for t in range(6, len(rows)):
        if t % 7 == 0:
            said.append(learner.learn(**rows[t], label=labels[t]))
        else:
            said.append(learner.predict(**rows[t], id=t))
            waiting.append(t)
        if len(waiting) > 10:
            due = waiting.pop(0)
            if due % 13 == 0:
                learner.forget(due)
            else:
                learner.learn(id=due, label=labels[due])
    return {**answers(said, labels[6:]), **told(learner, rows)}


def saved(face: str, text: str) -> dict[str, Any]:
    """Saved and loaded in the middle, with an instance that waits."""
    rows, labels = GIVEN[face]()
    learner = linmax.Learner(text, **options(face), tie="largest", update_on_tie=False)
    said = []
    for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
        if t == 60:
            learner.predict(**rows[0], id="kept")
        if t in (61, 100):
            with tempfile.TemporaryDirectory() as folder:
                learner.save(Path(folder) / "model")
                learner = linmax.Learner.load(Path(folder) / "model")
        said.append(learner.learn(**row, label=label))
    found = answers(said, labels)
    found["kept"] = plain(learner.learn(id="kept", label=labels[0]))
    return {**found, **told(learner, rows)}


def arrays(text: str) -> dict[str, Any]:
    """Instances as arrays."""
    table, labels = 0.5 + 0.5 * streams.dense()[0], streams.dense()[1]
    learner = linmax.Learner(text, classes=streams.CLASSES)
    said = [learner.learn(row, label=label) for row, label in zip(table, labels, strict=True)]
    return {**answers(said, labels), **told(learner, [{"attributes": row} for row in table])}


def together(text: str) -> dict[str, Any]:
    """`learn_rows` after all names and classes were met."""
    rows, labels = streams.counts()
    learner = linmax.Learner(text)
    for row, label in zip(rows, labels, strict=True):
        learner.learn(row, label=label)
    more, right = streams.counts(seed=13)
    matrix = streams.csr(more)
    places = {name: place for place, name in enumerate(learner.attributes)}
    known = [all(name in places for name in row) for row in more]
    kept = [i for i, fine in enumerate(known) if fine]
    part = matrix[kept]
    columns = [places[streams.WORDS[i]] for i in part.indices]
    numbers = [learner.classes.index(right[i]) for i in kept]
    found = learner.learn_rows(part.indptr, np.array(columns, np.int32), part.data, np.array(numbers, np.int32))
    return {**answers(found.tolist(), numbers), **told(learner, [{"attributes": row} for row in rows])}


for text in learners.SOME:
    for face in GIVEN:
        if text in learners.FEW or face in ("learner-attributes", "learner-votes"):
            if text != "softmax" or face != "learner-attributes":  # late labels mix the order of names
                case("learner-others", f"late-{face}-{text}", late, face, text)
            case("learner-others", f"saved-{face}-{text}", saved, face, text)
    case("learner-others", f"rows-{text}", together, text)
for text in learners.FEW:
    case("learner-others", f"arrays-{text}", arrays, text)
