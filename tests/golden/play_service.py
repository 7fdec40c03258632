"""The service's model, played without a server: events at once, late labels, a snapshot and a replay of the log."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from golden import learners
from golden.internals import body, events, log, replay, served, served_again
from golden.play_learner import GIVEN, options, told
from golden.record import case, digest, plain

FACES = ["service"]
KINDS = {
    "attributes": "learner-attributes",
    "votes": "learner-votes",
    "scores": "learner-scores",
    "mixed": "learner-mixed",
}


def description(kind: str, text: str) -> dict[str, Any]:
    return {"learner": text, "kind": kind, **options(KINDS[kind])}


def summary(model: Any, rows: list[Any]) -> dict[str, Any]:
    bound = model.bound()
    return {
        "counted": [model.applied, model.pending, model.unlearned, model.late],
        "account": plain(model.account.point),
        "bound": None if bound is None else [float(part) for part in bound],
        **told(model.learner, rows),
    }


def played(kind: str, text: str) -> dict[str, Any]:
    """Every third instance is predicted and has its label six events later."""
    rows, labels = GIVEN[KINDS[kind]]()
    Event, predict, label_kind, learn, forget = events()
    model = served(description(kind, text))
    noted: list[Any] = []
    waiting: list[tuple[int, Any]] = []
    seq = 0
    for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
        seq += 1
        if t > 5 and t % 3 == 0:
            waiting.append((t, model.predict(row)))
            model.apply(Event(seq, predict), lambda *_: None)
        else:
            model.apply(Event(seq, learn, row, None, label), lambda at, said, _: noted.append([at, said]))
        if len(waiting) > 2:
            due, said = waiting.pop(0)
            seq += 1
            if due % 5 == 0:
                model.apply(Event(seq, forget), lambda *_: None)
            else:
                model.apply(Event(seq, label_kind, rows[due], said, labels[due]), lambda *_: None)
    return {"noted": digest(noted), **summary(model, rows)}


def replayed(kind: str, text: str) -> dict[str, Any]:
    """What a log holds, taken in after the fact."""
    rows, labels = GIVEN[KINDS[kind]]()
    _, predict, label_kind, learn, _ = events()
    with tempfile.TemporaryDirectory() as folder:
        book = log(Path(folder) / "log")
        book.begin()
        row_of = book.create("golden", description(kind, text))
        number = row_of.number
        for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
            if t > 5 and t % 4 == 0:
                predicted = book.append(number, predict, f"i{t}", body=body(instance=row, served=labels[0]))
                if t % 8 == 0:
                    book.append(number, label_kind, refers=predicted.seq, body=body(label=label))
            else:
                book.append(number, learn, f"i{t}", body=body(instance=row, label=label))
        book.commit()
        model = served_again(row_of)
        noted: list[Any] = []
        count = replay(model, book, lambda at, said, _: noted.append([at, said]))
        book.close()
    return {"count": count, "noted": digest(noted), **summary(model, rows)}


for kind in KINDS:
    for text in learners.SOME if kind in ("attributes", "votes") else learners.FEW:
        if kind == "votes" and text in ("naive-bayes", "attributes"):
            continue  # which need attributes
        case("service", f"{kind}-{text}", played, kind, text, needs="apsw")
    for text in learners.FEW:
        case("service", f"replayed-{kind}-{text}", replayed, kind, text, needs="apsw")
