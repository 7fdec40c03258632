"""Predictions of commands: what is predicted, counted, and written as plain lines, CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from linmax.util.checks import about
from linmax.util.files import is_special

if TYPE_CHECKING:
    from linmax.models.fusion import OnLineFusion
    from linmax.models.streams import Batch

__all__ = ["FORMS", "STANDARD", "Answers", "OutputOptions", "PredictionCounts", "Predictions", "make_form"]

STANDARD = "-"
WHAT = ("labels", "scores", "probabilities")
RESERVED = ("line", "predicted", "set", *WHAT)  # names in the output that no column of ids may have
ONE = {"scores": "score", "probabilities": "probability"}


@dataclass(frozen=True)
class Answers:
    """What is predicted for a batch: the class of each row, and scores or probabilities of the classes if wanted."""

    lines: list[int]
    tags: list[str] | None
    predicted: list[str]
    table: np.ndarray | None
    classes: list[str]
    sets: list[list[str]] | None = None  # the prediction set of each row, the likeliest class first

    def best(self, row: int, count: int) -> list[tuple[str, float]]:
        """The classes with the highest numbers."""
        assert self.table is not None
        order = np.argsort(-self.table[row], kind="stable")[:count]
        return [(self.classes[place], float(self.table[row, place])) for place in order.tolist()]


@dataclass(frozen=True)
class OutputOptions:
    """Output of a prediction: labels, scores or probabilities; the highest risk of an answer; the coverage of sets."""

    what: str
    reject: float | None = None
    coverage: float | None = None

    def answers(self, fusion: OnLineFusion, votes: Any, lines: list[int], tags: list[str] | None = None) -> Answers:
        """Return the answers of a fusion for these rows."""
        table = None
        if self.what == "probabilities":
            table = fusion.predict_proba(votes)
        elif self.what == "scores":
            table = fusion.decision_function(votes)
            if table.ndim == 1:  # of two classes
                table = np.column_stack([np.zeros(len(table)), table])
        predicted = fusion.predict(votes, reject=self.reject).tolist()
        sets = None
        if self.coverage is not None:
            sets = [list(map(str, found)) for found in fusion.predict_set(votes, self.coverage)]
        names = [str(name) for name in fusion.classes_.tolist()]
        return Answers(lines, tags, ["" if name is None else str(name) for name in predicted], table, names, sets)


class Form:
    """Writes answers to a binary file. ``top`` is the number of classes a row, 0 for all."""

    def __init__(self, target: IO[bytes], what: str, top: int, id: str | None = None) -> None:
        self.target, self.what, self.top, self.tagged = target, what, top, id is not None
        self.tag = id or "tag"  # the name of the column of ids
        self.lost = 0  # tags for which there is no column

    def write(self, answers: Answers) -> None:
        """Write what is predicted for a batch."""
        raise NotImplementedError

    def end(self, answers: Answers) -> None:
        """Write what comes last; the answers for no rows tell the columns if there was no batch."""

    def _put(self, text: str) -> None:
        self.target.write(text.encode("utf-8", "surrogateescape"))


class Plain(Form):
    """The class of each row, and its tag."""

    def write(self, answers: Answers) -> None:
        """One line for each row."""
        tags = answers.tags or [""] * len(answers.lines)
        pairs = zip(answers.predicted, tags, strict=True)
        self._put("".join(f"{name} {tag}\n" if tag else f"{name}\n" for name, tag in pairs))


class ColumnForm(Form):
    """What has columns: the line, the tag, the class, and numbers."""

    headed = False

    def names(self, answers: Answers) -> list[str]:
        """The names of the columns."""
        first = ["line", *([self.tag] if self.tagged else []), "predicted", *([] if answers.sets is None else ["set"])]
        if answers.table is None:
            return first
        if not self.top:
            return [*first, *answers.classes]
        several = range(1, min(self.top, len(answers.classes)) + 1)
        return [*first, *(f"{what}_{i}" for i in several for what in ("class", ONE[self.what]))]

    def cell(self, names: list[str]) -> str | list[str]:
        """A prediction set in one cell: as JSON."""
        return json.dumps(names, ensure_ascii=False)

    def rows(self, answers: Answers) -> list[list[Any]]:
        """The cells."""
        found = []
        for t, line in enumerate(answers.lines):
            row: list[Any] = [line]
            tag = answers.tags[t] if answers.tags is not None else ""
            if self.tagged:
                row.append(tag)
            else:
                self.lost += bool(tag)
            row.append(answers.predicted[t])
            if answers.sets is not None:
                row.append(self.cell(answers.sets[t]))
            if answers.table is not None and self.top:
                row += [cell for pair in answers.best(t, self.top) for cell in pair]
            elif answers.table is not None:
                row += answers.table[t].tolist()
            found.append(row)
        return found


class CsvForm(ColumnForm):
    """A table with a header."""

    def write(self, answers: Answers) -> None:
        """One line for each row, and the header before the first."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        self.tagged |= not self.headed and answers.tags is not None
        writer.writerows([] if self.headed else [self.names(answers)])
        self.headed = True
        writer.writerows(self.rows(answers))
        self._put(text.getvalue())

    def end(self, answers: Answers) -> None:
        """The header, if nothing else was written."""
        if not self.headed:
            self.write(answers)


class JsonLinesForm(Form):
    """One object for each row."""

    def write(self, answers: Answers) -> None:
        """One line for each row."""
        for t, line in enumerate(answers.lines):
            entry: dict[str, Any] = {"line": line, "predicted": answers.predicted[t] or None}
            if answers.tags is not None and (answers.tags[t] or self.tagged):
                entry[self.tag] = answers.tags[t]
            if answers.sets is not None:
                entry["set"] = answers.sets[t]
            if answers.table is not None:
                entry[self.what] = dict(answers.best(t, self.top)) if self.top else dict(
                    zip(answers.classes, answers.table[t].tolist(), strict=True)
                )  # fmt: skip
            self._put(json.dumps(entry, ensure_ascii=False) + "\n")


class ParquetForm(ColumnForm):
    """A Parquet file."""

    writer: Any = None

    def cell(self, names: list[str]) -> str | list[str]:
        """A prediction set in one cell: a list."""
        return names

    def write(self, answers: Answers) -> None:
        """A group of rows."""
        import pyarrow
        from pyarrow import parquet

        if self.writer is None:
            self.tagged |= answers.tags is not None
        names = self.names(answers)
        text = {self.tag, "predicted"} | {name for name in names if self.top and name.startswith("class_")}
        kinds = [pyarrow.string() if name in text else pyarrow.float64() for name in names]
        kinds[0] = pyarrow.int64()
        if answers.sets is not None:
            kinds[names.index("predicted") + 1] = pyarrow.list_(pyarrow.string())
        schema = pyarrow.schema(list(zip(names, kinds, strict=True)))
        rows = self.rows(answers)
        cells = [pyarrow.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
        if self.writer is None:
            self.writer = parquet.ParquetWriter(self.target, schema)
        self.writer.write_table(pyarrow.Table.from_arrays(cells, schema=schema))

    def end(self, answers: Answers) -> None:
        """The footer."""
        if self.writer is None:
            self.write(answers)
        self.writer.close()


FORMS: dict[str, type[Form]] = {"plain": Plain, "csv": CsvForm, "jsonl": JsonLinesForm, "parquet": ParquetForm}


def make_form(form: str, target: IO[bytes], what: str, top: int, id: str | None = None) -> Form:
    """The form of this name; ``id`` is the column that identifies rows, if one was given."""
    if id in RESERVED and form != "plain":
        raise ValueError(f"--id {id}: the output has a column {id!r} of its own; rename the column of the data")
    return FORMS[form](target, what, top, id)


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


class Predictions:
    """The file of predictions: written beside its destination and moved there when it is complete."""

    def __init__(self, path: str, keep: int) -> None:
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

    def write(self, batch: Batch, predicted: np.ndarray) -> None:
        """Write one line for each row: the class, and the tag if there is one."""
        names = [*batch.classes, ""]
        if batch.tags is None:
            lines = [names[number] for number in predicted.tolist()]
        else:
            pairs = zip(predicted.tolist(), batch.tags, strict=True)
            lines = [f"{names[number]} {tag}" if tag else names[number] for number, tag in pairs]
        with about(self.path):
            self.file.write(("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))
            if self.passes_on:
                self.file.flush()  # somebody may be waiting for the answer

    def sync(self) -> int:
        """Flush everything to disk; returns the number of bytes."""
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
