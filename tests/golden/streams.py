"""Small streams, the same everywhere and with every version of NumPy: all chance comes from `random.Random.random`.

The streams are plain on purpose: names come sorted within an instance and appear in that order, all instances of a
stream have about as many of them, and classes appear in their order. Other orders have tests of their own.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

CLASSES = ["ash", "elm", "oak"]
TRIALS = 160
VOTERS = ["ann", "bob", "cat", "dan", "eve", "fay"]
SKILLS = [0.9, 0.75, 0.6, 0.5, 0.4, 0.3]
RATERS = ["r0", "r1", "r2", "r3"]
NOISE = 0.08


def chance(seed: int, *shape: int) -> np.ndarray:
    """Uniform numbers in [0, 1)."""
    random = Random(seed)
    return np.array([random.random() for _ in range(int(np.prod(shape)))]).reshape(shape)


def pick(share: float, items: list[Any]) -> Any:
    """The item at this share of a list."""
    return items[min(int(share * len(items)), len(items) - 1)]


def in_order(labels: list[str]) -> list[str]:
    """The same, begun with each class once, in order."""
    return [*CLASSES, *labels[len(CLASSES) :]]


class Votes(NamedTuple):
    """Votes (trials, voters), None for an abstention, and labels."""

    votes: list[list[str | None]]
    labels: list[str]
    subjects: list[str]


def votes(trials: int = TRIALS, seed: int = 1, abstain: bool = True) -> Votes:
    """Voters of different skills; one subject reverses the two best and the two worst."""
    random = chance(seed, trials, 3 + 2 * len(VOTERS))
    labels = in_order([pick(row[0], CLASSES) for row in random])
    subjects = [pick(row[1], ["sea", "land"]) for row in random]
    table: list[list[str | None]] = []
    for row, label, subject in zip(random, labels, subjects, strict=True):
        skills = SKILLS if subject == "sea" else [*SKILLS[4:], *SKILLS[2:4], *SKILLS[:2]]
        skills = [0.5 * (a + b) for a, b in zip(SKILLS, skills, strict=True)] if row[2] < 0.5 else SKILLS
        said: list[str | None] = []
        for i, skill in enumerate(skills):
            right, other = row[3 + 2 * i], row[4 + 2 * i]
            silent = abstain and right > 0.97
            said.append(label if right < skill else None if silent else pick(other, CLASSES))
        table.append(said)
    return Votes(table, labels, subjects)


def scores(trials: int = TRIALS, seed: int = 2) -> tuple[np.ndarray, list[str]]:
    """Ratings (trials, raters, classes) in [0, 1): the label's is higher, for good raters by more."""
    random = chance(seed, trials, 1 + len(RATERS) * len(CLASSES))
    labels = in_order([pick(row[0], CLASSES) for row in random])
    table = random[:, 1:].reshape(trials, len(RATERS), len(CLASSES)).copy()
    for t, label in enumerate(labels):
        for rater in range(len(RATERS)):
            lift = 0.5 / (1 + rater)
            table[t, rater] *= 1.0 - lift
            table[t, rater, CLASSES.index(label)] += lift
    return table, labels


WIDTH = 8
PLANES = 2.0 * chance(99, WIDTH, len(CLASSES)) - 1.0


def dense(trials: int = TRIALS, seed: int = 3) -> tuple[np.ndarray, list[str]]:
    """Attributes in (-1, 1), classes by planes, some labels wrong."""
    random = chance(seed, trials, WIDTH + 2)
    table = 2.0 * random[:, :WIDTH] - 1.0
    found = [CLASSES[i] for i in (table @ PLANES).argmax(axis=1)]
    labels = [pick(row[-1], CLASSES) if row[-2] < NOISE else label for row, label in zip(random, found, strict=True)]
    return table, in_order(labels)


WORDS = [f"w{i:02d}" for i in range(30)]
LENGTH = 5


def counts(trials: int = TRIALS, seed: int = 4) -> tuple[list[dict[str, float]], list[str]]:
    """Dicts of five words and their strengths in (0, 1], names sorted; more of the words come as the trials go on."""
    random = chance(seed, trials, 2 * LENGTH + 3)
    rows, labels = [], in_order([pick(row[0], CLASSES) for row in random])
    for t, (row, label) in enumerate(zip(random, labels, strict=True)):
        met = WORDS[: 12 + (18 * t) // trials]
        own = [word for i, word in enumerate(met) if i % len(CLASSES) == CLASSES.index(label)]
        chosen: dict[str, float] = {}
        place = 0
        while len(chosen) < LENGTH:
            share = (row[1 + place % LENGTH] + 0.37 * (place // LENGTH)) % 1.0
            chosen[pick(share, own if place % 5 < 2 and row[-1] > NOISE else met)] = (
                1.0 - row[1 + LENGTH + place % LENGTH]
            )
            place += 1
        rows.append({name: float(chosen[name]) for name in sorted(chosen)})
    names: dict[str, str] = {}  # by their first appearance
    for row in rows:
        for name in row:
            names.setdefault(name, WORDS[len(names)])
    return [dict(sorted((names[name], value) for name, value in row.items())) for row in rows], labels


def csr(rows: list[dict[str, float]]) -> sparse.csr_array:
    """The same as a sparse array, columns in the order of WORDS."""
    indptr = np.cumsum([0, *map(len, rows)])
    columns = [WORDS.index(name) for row in rows for name in row]
    values = [value for row in rows for value in row.values()]
    return sparse.csr_array((values, columns, indptr), shape=(len(rows), len(WORDS)))


# -- lines of files ------------------------------------------------------------------------------------------------


def svmlight(trials: int = TRIALS) -> list[str]:
    """Lines in svmlight's format; labels are numbers."""
    rows, labels = counts(trials)
    return [
        f"{CLASSES.index(label)} " + " ".join(f"{1 + WORDS.index(name)}:{value!r}" for name, value in row.items())
        for row, label in zip(rows, labels, strict=True)
    ]


def vw(trials: int = TRIALS) -> list[str]:
    """Lines of Vowpal Wabbit's text; some have a tag, a weight, or no label."""
    rows, labels = counts(trials, seed=6)
    lines = []
    for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
        head = "" if t % 31 == 30 else f"{label} 2 " if t % 17 == 16 else f"{label} "
        names = list(row)
        tag = f"'t{t} " if t % 5 == 0 else ""
        first = " ".join(f"{name}:{row[name]!r}" for name in names[:3])
        lines.append(f"{head}{tag}|a {first} |b {' '.join(names[3:])}")
    return lines


def table(trials: int = TRIALS) -> list[str]:
    """Lines of a CSV file: four numbers, a category, the label."""
    rows, labels = dense(trials, seed=7)
    colours = chance(8, trials)
    lines = ["one,two,three,four,colour,kind"]
    for row, label, share in zip(rows.tolist(), labels, colours, strict=True):
        colour = pick(share, ["red", "green", "blue"])
        lines.append(",".join([*map(repr, (row[0], 10.0 * row[1], row[2] + 3.0, row[3])), colour, label]))
    return lines


def jsonl(trials: int = TRIALS) -> list[str]:
    """JSON lines of {label, features}."""
    import json

    rows, labels = counts(trials, seed=9)
    return [json.dumps({"label": label, "features": row}) for row, label in zip(rows, labels, strict=True)]


def texts(trials: int = TRIALS) -> list[str]:
    """Lines of label<tab>text."""
    rows, labels = counts(trials, seed=10)
    return [f"{label}\t{' '.join(row)}" for row, label in zip(rows, labels, strict=True)]


FILES = {
    "svmlight": (svmlight, "data.svm", {"format": "svmlight"}),
    "vw": (vw, "data.vw", {"format": "vw"}),
    "csv": (table, "data.csv", {"format": "csv", "label": "kind"}),
    "jsonl": (jsonl, "data.jsonl", {"format": "jsonl"}),
    "text": (texts, "data.txt", {"format": "text", "ngrams": 2}),
}
