"""The forms in which ``linmax predict`` writes: plain lines, CSV, JSON lines and Parquet."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from linmax.models.streams import Batch, StreamModel

__all__ = ["FORMS", "WHAT", "Answers", "make_form"]

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

    @classmethod
    def of(cls, batch: Batch, model: StreamModel, what: str, codes: np.ndarray, reject: float | None = None) -> Answers:
        """Those of a batch for which the classes ``codes`` are predicted; none where the risk is above ``reject``."""
        names = [*model.labels.names, ""]
        table = {"scores": model.scores, "probabilities": model.predict_proba}[what](batch) if what in ONE else None
        predicted = [names[code] for code in codes.tolist()]
        if reject is not None:
            sure = model.predict_proba(batch).max(axis=1, initial=0.0) >= 1.0 - reject
            predicted = [name if known else "" for name, known in zip(predicted, sure.tolist(), strict=True)]
        return cls(batch.lines.tolist(), batch.tags, predicted, table, model.classes)

    def best(self, row: int, count: int) -> list[tuple[str, float]]:
        """The classes with the highest numbers."""
        assert self.table is not None
        order = np.argsort(-self.table[row], kind="stable")[:count]
        return [(self.classes[place], float(self.table[row, place])) for place in order.tolist()]


class Form:
    """Writes answers to a binary file. ``top`` is the number of classes a row, 0 for all."""

    def __init__(self, target: BinaryIO, what: str, top: int, id: str | None = None) -> None:
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


def make_form(form: str, target: BinaryIO, what: str, top: int, id: str | None = None) -> Form:
    """The form of this name; ``id`` is the column that identifies rows, if one was given."""
    if id in RESERVED and form != "plain":
        raise ValueError(f"--id {id}: the output has a column {id!r} of its own; rename the column of the data")
    return FORMS[form](target, what, top, id)
