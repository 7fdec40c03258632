"""Predictions of commands: counted, and written as plain lines, CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from linmax.util.checks import about
from linmax.util.files import is_special

__all__ = ["FORMS", "STANDARD", "Answers", "OutputOptions", "PredictionCounts", "PredictionWriter", "ProgressiveFile"]

STANDARD = "-"
WHAT = ("labels", "scores", "probabilities")
FORMS = ("plain", "csv", "jsonl", "parquet")
RESERVED = ("line", "predicted", "set", *WHAT)  # names in the output that no column of ids may have
ONE = {"scores": "score", "probabilities": "probability"}


@dataclass(frozen=True)
class OutputOptions:
    """Output of a prediction: labels, scores or probabilities; the highest risk of an answer; the coverage of sets.

    ``reasons`` is the number of attributes that explain each prediction.
    """

    what: str = "labels"
    reject: float | None = None
    coverage: float | None = None
    reasons: int = 0


@dataclass(frozen=True)
class Answers:
    """Predictions for some rows: classes ("" for no answer), and numbers and sets of classes if they are wanted."""

    lines: list[int]
    tags: list[str] | None
    predicted: list[str]
    table: np.ndarray | None
    classes: list[str]
    sets: list[list[str]] | None = None  # the prediction set of each row, the most probable class first
    reasons: list[dict[str, float]] | None = None  # what moved each prediction, and by how much


def plain_lines(predicted: Sequence[str], tags: Sequence[str] | None) -> bytes:
    """Return a line for each row: the class, and the tag if there is one."""
    lines = predicted if tags is None else [f"{n} {tag}" if tag else n for n, tag in zip(predicted, tags, strict=True)]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


class PredictionWriter:
    """Write answers to a binary file in one of `FORMS`.

    ``top`` is the number of classes a row, 0 for all; ``id`` the column that identifies rows, if one was given;
    ``digits`` the significant digits of numbers as text, 0 for all.
    """

    def __init__(
        self, form: str, target: IO[bytes], what: str, top: int = 0, id: str | None = None, digits: int = 6
    ) -> None:
        if id in RESERVED and form != "plain":
            raise ValueError(f"--id {id}: the output has a column {id!r} of its own; rename the column of the data")
        self.target, self.what, self.top = target, what, top
        self.shown = (lambda number: float(f"{number:.{digits}g}")) if digits else float
        self.tag, self.tagged = id or "tag", id is not None
        self.lost = 0  # tags for which there is no column
        self.begun = False
        self.parquet: Any = None
        self.write_rows = {"plain": self._plain, "csv": self._csv, "jsonl": self._json_lines, "parquet": self._parquet}[
            form
        ]

    def write(self, answers: Answers) -> None:
        """Write the answers for some rows."""
        self.write_rows(answers)
        self.begun = True

    def end(self) -> None:
        """Write what comes last."""
        if self.parquet is not None:
            self.parquet.close()

    def _put(self, text: str) -> None:
        self.target.write(text.encode("utf-8", "surrogateescape"))

    def _plain(self, answers: Answers) -> None:
        self.target.write(plain_lines(answers.predicted, answers.tags))

    def _json_lines(self, answers: Answers) -> None:
        order = self._order(answers)
        for row, line in enumerate(answers.lines):
            entry: dict[str, object] = {"line": line, "predicted": answers.predicted[row] or None}
            if answers.tags is not None and (answers.tags[row] or self.tagged):
                entry[self.tag] = answers.tags[row]
            if answers.sets is not None:
                entry["set"] = answers.sets[row]
            if answers.reasons is not None:
                entry["reasons"] = {name: self.shown(added) for name, added in answers.reasons[row].items()}
            if answers.table is not None:
                entry[self.what] = {answers.classes[c]: self.shown(answers.table[row, c]) for c in order[row].tolist()}
            self._put(json.dumps(entry, ensure_ascii=False) + "\n")

    def _csv(self, answers: Answers) -> None:
        text, columns = io.StringIO(), self._columns(answers)
        columns = [
            (name, [*map(self.shown, cells)] if cells and isinstance(cells[0], float) else cells)
            for name, cells in columns
        ]
        writer = csv.writer(text, lineterminator="\n")
        if not self.begun:
            writer.writerow([name for name, _ in columns])
        if answers.sets is not None:  # a cell holds a set as JSON
            place = [name for name, _ in columns].index("set")
            columns[place] = "set", [json.dumps(names, ensure_ascii=False) for names in answers.sets]
        writer.writerows(zip(*(cells for _, cells in columns), strict=True))
        self._put(text.getvalue())

    def _parquet(self, answers: Answers) -> None:
        import pyarrow
        from pyarrow import parquet

        columns = self._columns(answers)
        kinds = {"line": pyarrow.int64(), "set": pyarrow.list_(pyarrow.string())}
        kinds |= dict.fromkeys((self.tag, "predicted"), pyarrow.string())
        text = [place for place, (name, _) in enumerate(columns) if self.top and name.startswith("class_")]
        first = 2 + self.tagged + (answers.sets is not None)  # column of numbers
        fields = [
            (name, kinds[name] if place < first else pyarrow.string() if place in text else pyarrow.float64())
            for place, (name, _) in enumerate(columns)
        ]
        cells = [pyarrow.array(cells, kind) for (_, cells), (_, kind) in zip(columns, fields, strict=True)]
        schema = pyarrow.schema(fields)
        if self.parquet is None:
            self.parquet = parquet.ParquetWriter(self.target, schema)
        self.parquet.write_table(pyarrow.Table.from_arrays(cells, schema=schema))

    def _columns(self, answers: Answers) -> list[tuple[str, list[Any]]]:
        """Return names and cells of the columns; classes may be called like other columns."""
        self.tagged |= not self.begun and answers.tags is not None
        tags = answers.tags or [""] * len(answers.lines)
        self.lost += 0 if self.tagged else sum(map(bool, tags))
        found: list[tuple[str, list[Any]]] = [
            ("line", answers.lines),
            *([(self.tag, tags)] if self.tagged else []),
        ]
        found += [("predicted", answers.predicted), *([] if answers.sets is None else [("set", answers.sets)])]
        if answers.table is None:
            return found
        if not self.top:
            return [*found, *zip(answers.classes, answers.table.T.tolist(), strict=True)]
        order = self._order(answers)
        numbers = np.take_along_axis(answers.table, order, axis=1)
        for place in range(order.shape[1]):
            found.append((f"class_{place + 1}", [answers.classes[c] for c in order[:, place].tolist()]))
            found.append((f"{ONE[self.what]}_{place + 1}", numbers[:, place].tolist()))
        return found

    def _order(self, answers: Answers) -> np.ndarray:
        """Return the classes to write for each row, as places: all, or those with the highest numbers."""
        rows, classes = len(answers.lines), len(answers.classes)
        if answers.table is None or not self.top:
            return np.broadcast_to(np.arange(classes), (rows, classes))
        return np.argsort(-answers.table, axis=1, kind="stable")[:, : self.top]


@dataclass
class PredictionCounts:
    """Lines, those without an answer, and of the others those with a label and those answered wrongly."""

    lines: int = 0
    unanswered: int = 0
    labelled: int = 0
    mistakes: int = 0

    def add(self, labels: Sequence[str | None], predicted: Sequence[str]) -> None:
        """Count a batch; a label may be missing, and an answer that is empty is none.

        Examples
        --------
        >>> counts = PredictionCounts()
        >>> counts.add(["a", "b", None, "b"], ["a", "a", "a", ""])
        >>> counts.messages()
        ['error 0.5000, 1 mistakes in 2 labels', '1 of 4 lines not answered']
        """
        for label, answer in zip(labels, predicted, strict=True):
            self.lines += 1
            self.unanswered += not answer
            if label is not None and answer:
                self.labelled += 1
                self.mistakes += label != answer

    @property
    def error(self) -> float | None:
        """The share of mistakes among answers with a label."""
        return self.mistakes / self.labelled if self.labelled else None

    def figures(self, reject: float | None) -> dict[str, float | None]:
        """Return the figures for programs; with a risk, also how many lines have no answer."""
        found = {"lines": self.lines, "labelled": self.labelled, "mistakes": self.mistakes, "error": self.error}
        return found if reject is None else found | {"unanswered": self.unanswered}

    def messages(self) -> list[str]:
        """Return the figures as text."""
        found = []
        if self.labelled:
            found.append(f"error {self.error:.4f}, {self.mistakes:,} mistakes in {self.labelled:,} labels")
        if self.unanswered:
            found.append(f"{self.unanswered:,} of {self.lines:,} lines not answered")
        return found


class ProgressiveFile:
    """The predictions made while learning: written to a draft, which is moved into place when it is complete.

    Of a draft that is there the first ``keep`` bytes are kept.
    """

    def __init__(self, path: str, keep: int = 0) -> None:
        self.path = path
        self.draft = Path(path).with_name(f"{Path(path).name}.part")
        self.passes_on = path == STANDARD or is_special(Path(path))  # a device or a pipe is not replaced by a file
        if path == STANDARD:
            self.file: IO[bytes] = os.fdopen(os.dup(1), "wb")
        elif self.passes_on:
            self.file = open(path, "wb")  # noqa: SIM115
        else:
            self.file = open(self.draft, "r+b" if keep else "wb")  # noqa: SIM115
            self.file.truncate(keep)
            self.file.seek(keep)

    def write(self, predicted: Sequence[str], tags: Sequence[str] | None = None) -> None:
        """Write one line for each row: the class, and the tag if there is one."""
        with about(self.path):
            self.file.write(plain_lines(predicted, tags))
            if self.passes_on:
                self.file.flush()  # somebody may be waiting for the answer

    def sync(self) -> int:
        """Flush everything to disk; return the number of bytes."""
        with about(self.path):
            self.file.flush()
        if self.passes_on:
            return 0
        os.fsync(self.file.fileno())
        return self.file.tell()

    def close(self, keep: bool, part: bool = False) -> None:
        """Close; move the file to its destination if it is to be kept, unless it stays a part, to be continued."""
        try:
            with about(self.path):
                self.file.close()
            if not self.passes_on and keep and not part:
                self.draft.replace(self.path)
        finally:
            if not self.passes_on and not part:
                self.draft.unlink(missing_ok=True)
