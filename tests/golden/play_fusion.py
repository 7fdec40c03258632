"""`linmax.VoteFusion`: votes and scores that exist already."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import linmax
from golden import learners, streams
from golden.record import by_name, case, digest, plain, sample

FACES = ["fusion"]
LEARNED = 120  # trials; the rest is held out

Given = tuple[Any, Any, list[str], list[str], dict[str, Any]]


def told(fusion: linmax.VoteFusion, held: Any, labels: list[str]) -> dict[str, Any]:
    """What a fusion says of itself and of trials held out."""
    found: dict[str, Any] = {
        "classes": plain(fusion.classes_),
        "voters": fusion.voters_,
        "predicted": digest(fusion.predict(held).tolist()),
        "decisions": sample(fusion.decision_function(held)),
        "probabilities": sample(fusion.predict_proba(held)),
        "report": by_name(fusion.report(held, labels).to_dict(), 8),
    }
    try:
        found["weights"] = by_name(fusion.weights())
        found["copies"] = by_name(fusion.weights(copies=True))
    except ValueError:  # no single weight vector
        pass
    return found


def votes() -> Given:
    given = streams.votes()
    return given.votes[:LEARNED], given.votes[LEARNED:], given.labels[:LEARNED], given.labels[LEARNED:], {}


def named() -> Given:
    given = streams.votes()
    table = {name: [row[i] for row in given.votes] for i, name in enumerate(streams.VOTERS)}
    first, rest = ({name: column[part] for name, column in table.items()} for part in parts())
    return first, rest, given.labels[:LEARNED], given.labels[LEARNED:], {"thresholds": False}


def by_subject() -> Given:
    given = streams.votes()
    table: dict[str, list[Any]] = {name: [row[i] for row in given.votes] for i, name in enumerate(streams.VOTERS)}
    table["subject"] = given.subjects
    first, rest = ({name: column[part] for name, column in table.items()} for part in parts())
    return first, rest, given.labels[:LEARNED], given.labels[LEARNED:], {"by": "subject"}


def scores() -> Given:
    table, labels = streams.scores()
    return table[:LEARNED], table[LEARNED:], labels[:LEARNED], labels[LEARNED:], {"classes": streams.CLASSES}


def ranks() -> Given:
    table, labels = streams.scores()
    first, rest = ({name: table[part, i] for i, name in enumerate(streams.RATERS)} for part in parts())
    options = {"classes": streams.CLASSES, "normalize": ["minmax", "borda"]}
    return first, rest, labels[:LEARNED], labels[LEARNED:], options


def parts() -> tuple[slice, slice]:
    return slice(LEARNED), slice(LEARNED, None)


GIVEN = {"votes": votes, "named": named, "by": by_subject, "scores": scores, "ranks": ranks}


def cut(table: Any, begin: int, end: int) -> Any:
    return {name: column[begin:end] for name, column in table.items()} if isinstance(table, dict) else table[begin:end]


def fitted(kind: str, text: str) -> dict[str, Any]:
    first, rest, labels, right, options = GIVEN[kind]()
    return told(linmax.VoteFusion(text, **options).fit(first, labels), rest, right)


def in_cuts(kind: str, text: str) -> dict[str, Any]:
    """Learned in cuts, saved and loaded between two of them."""
    first, rest, labels, right, options = GIVEN[kind]()
    fusion = linmax.VoteFusion(text, **options)
    edges = [0, 40, 41, 90, LEARNED]
    for begin, end in pairwise(edges):
        fusion.partial_fit(cut(first, begin, end), labels[begin:end])
        if end == 41:
            with tempfile.TemporaryDirectory() as folder:
                fusion.save(Path(folder) / "fusion")
                fusion = linmax.VoteFusion.load(Path(folder) / "fusion")
    return told(fusion, rest, right)


def explained(kind: str, text: str) -> dict[str, Any]:
    first, rest, labels, _, options = GIVEN[kind]()
    fusion = linmax.VoteFusion(text, **options).fit(first, labels)
    row = {name: column[0] for name, column in rest.items()} if isinstance(rest, dict) else rest[0]
    return by_name(fusion.explain(row).to_dict(), 8)


FUSERS = [text for text in learners.SOME if text not in ("naive-bayes", "attributes")]
for kind in GIVEN:
    for text in FUSERS:
        case("fusion", f"{kind}-{text}", fitted, kind, text)
    for text in learners.FEW:
        case("fusion", f"cuts-{kind}-{text}", in_cuts, kind, text)
    case("fusion", f"explain-{kind}", explained, kind, "AR-winnow(1.2)")
