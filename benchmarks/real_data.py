"""The real data sets under LINMAX_DATA as streams of raw attributes: counts of words, or the columns as they are."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

COVER_ROWS = 100_000
TOKEN = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[^\sa-z0-9]")


class NoData(RuntimeError):
    """LINMAX_DATA is not set, or lacks a file; the message says which."""


@dataclass(frozen=True)
class Stream:
    """Rows to learn from, in their own order if ``ordered``, and rows to test on afterwards, if there are any."""

    name: str
    rows: Any
    labels: np.ndarray
    ordered: bool = False
    test_rows: Any = None
    test_labels: np.ndarray | None = None

    def shuffled(self, seed: int) -> Stream:
        """The same in another order; a stream in time order stays as it is."""
        if self.ordered:
            return self
        order = np.random.default_rng(seed).permutation(len(self.labels))
        return replace(self, rows=self.rows[order], labels=self.labels[order])

    def head(self, size: int) -> Stream:
        """The first rows."""
        return replace(self, rows=self.rows[:size], labels=self.labels[:size])


def folder() -> Path:
    """Where the data are."""
    place = os.environ.get("LINMAX_DATA")
    if not place:
        raise NoData("set LINMAX_DATA to the folder with the data sets")
    return Path(place)


def _path(name: str) -> Path:
    path = folder() / name
    if not path.exists():
        raise NoData(f"{path} is missing")
    return path


def bags(texts: Iterable[Iterable[str]], vocabulary: dict[str, int]) -> sparse.csr_array:
    """Counts of tokens; the vocabulary grows."""
    indptr, indices, values = [0], [], []
    for text in texts:
        counts: dict[int, int] = {}
        for token in text:
            column = vocabulary.setdefault(token, len(vocabulary))
            counts[column] = counts.get(column, 0) + 1
        columns = sorted(counts)
        indices += columns
        values += [counts[column] for column in columns]
        indptr.append(len(indices))
    shape = (len(indptr) - 1, len(vocabulary))
    return sparse.csr_array(
        (np.array(values, float), np.array(indices, np.int32), np.array(indptr, np.int32)), shape=shape
    )


def _widen(rows: sparse.csr_array, columns: int) -> sparse.csr_array:
    return sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], columns))


def words(text: str) -> list[str]:
    """Words and signs, in small letters."""
    return TOKEN.findall(text.lower())


def _read_texts(name: str) -> tuple[list[str], list[list[str]]]:
    with gzip.open(_path(name), "rt", encoding="utf-8", errors="replace") as file:
        pairs = [line.rstrip("\n").split("\t", 1) for line in file]
    return [label for label, _ in pairs], [words(text) for _, text in pairs]


def _texts(name: str, train: str, test: str | None = None, coarse: bool = False) -> Stream:
    vocabulary: dict[str, int] = {}
    labels, texts = _read_texts(train)
    rows = bags(texts, vocabulary)
    short = [label.split(":")[0] if coarse else label for label in labels]
    if test is None:
        return Stream(name, rows, np.array(short))
    other_labels, other_texts = _read_texts(test)
    test_rows = bags(other_texts, vocabulary)
    other = [label.split(":")[0] if coarse else label for label in other_labels]
    return Stream(name, _widen(rows, len(vocabulary)), np.array(short), False, test_rows, np.array(other))


def _pmlb(name: str) -> Stream:
    with gzip.open(_path(f"pmlb/{name}.tsv.gz"), "rt") as file:
        header = file.readline().split("\t")
        table = np.loadtxt(file, delimiter="\t")
    assert header[-1].strip() == "target"
    return Stream(name, np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(int))


def _cover(shuffled: bool) -> Stream:
    with gzip.open(_path("covtype/covtype.csv.gz"), "rt") as file:
        file.readline()
        table = np.loadtxt(file, delimiter=",", max_rows=None if shuffled else COVER_ROWS)
    if shuffled:
        table = table[np.random.default_rng(0).permutation(len(table))[:COVER_ROWS]]
    name = "covtype, shuffled" if shuffled else "covtype"
    return Stream(name, np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(int), ordered=not shuffled)


def _electricity() -> Stream:
    with open(_path("elec2/elec.csv"), newline="") as file:
        rows = list(csv.reader(file))[1:]
    return Stream("elec2", np.array([row[:-1] for row in rows], float), np.array([row[-1] for row in rows]), True)


def _spam() -> Stream:
    from sklearn.datasets import load_svmlight_file

    rows, labels = load_svmlight_file(str(_path("drift_spam/spam.libsvm.gz")))
    parts = (rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32))  # scikit-learn wants 32 bits
    return Stream("spam", sparse.csr_array(parts, shape=rows.shape), labels.astype(int), ordered=True)


def _images(name: str) -> np.ndarray:
    with gzip.open(_path(f"mnist/{name}"), "rb") as file:
        magic, size = struct.unpack(">II", file.read(8))
        shape = (size,) if magic == 2049 else (size, *struct.unpack(">II", file.read(8)))
        return (
            np.frombuffer(file.read(), np.uint8).reshape(size, -1)
            if len(shape) > 1
            else np.frombuffer(file.read(), np.uint8)
        )


def _mnist() -> Stream:
    train, test = (_images(f"{part}-images-idx3-ubyte.gz").astype(float) for part in ("train", "t10k"))
    labels, test_labels = (_images(f"{part}-labels-idx1-ubyte.gz").astype(int) for part in ("train", "t10k"))
    return Stream("mnist", train, labels, False, test, test_labels)


def spelling_features(example: dict[str, Any]) -> list[str]:
    """Words within ten, and collocations: up to two neighbouring words or tags that touch the blank."""
    left, right = example["left"], example["right"]
    found = [f"w:{word.lower()}" for word, _ in left[-10:] + right[:10]]
    near = {-2: left[-2] if len(left) > 1 else None, -1: left[-1] if left else None}
    near |= {1: right[0] if right else None, 2: right[1] if len(right) > 1 else None}

    def forms(place: int) -> list[str]:
        at = near[place]
        return [] if at is None else [f"{place}={at[0].lower()}", f"{place}:{at[1]}"]

    found += forms(-1) + forms(1)
    for first, second in ((-2, -1), (-1, 1), (1, 2)):
        found += [f"{a}&{b}" for a in forms(first) for b in forms(second)]
    return found


def spelling() -> list[Stream]:
    """One stream for each confusion set, in the order of the corpus."""
    examples: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(_path("nlp_spelling_brown/examples.jsonl.gz"), "rt") as file:
        for line in file:
            example = json.loads(line)
            examples.setdefault(example["set"], []).append(example)
    return [
        Stream(f"spelling {name}", bags(map(spelling_features, found), {}), np.array([e["label"] for e in found]), True)
        for name, found in sorted(examples.items())
    ]


STREAMS: dict[str, Callable[[], Stream | list[Stream]]] = {
    "20news": lambda: _texts("20news", "text_20newsgroups/train.tsv.gz", "text_20newsgroups/test.tsv.gz"),
    "agnews": lambda: _texts("agnews", "text_agnews_24k/train.tsv.gz", "text_agnews_24k/test.tsv.gz"),
    "trec6": lambda: _texts("trec6", "text_trec_qc/train.tsv.gz", "text_trec_qc/test.tsv.gz", coarse=True),
    "trec50": lambda: _texts("trec50", "text_trec_qc/train.tsv.gz", "text_trec_qc/test.tsv.gz"),
    "sms": lambda: _texts("sms", "text_sms_spam/all.tsv.gz"),
    "spam": _spam,
    "spelling": spelling,
    "letter": lambda: _pmlb("letter"),
    "pendigits": lambda: _pmlb("pendigits"),
    "satimage": lambda: _pmlb("satimage"),
    "shuttle": lambda: _pmlb("shuttle"),
    "covtype": lambda: _cover(False),
    "covtype-shuffled": lambda: _cover(True),
    "elec2": _electricity,
    "mnist": _mnist,
}
