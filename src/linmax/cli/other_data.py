"""Data that a model has not learned from: what is strange to it, and the error on a file of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linmax.cli.reading import reading_options, refuse_too_many, show_refusals

if TYPE_CHECKING:
    from rich.console import Console

    from linmax.io.refusals import Refusals
    from linmax.models.streams import Batch, StreamModel

__all__ = ["FileTest", "Strangeness"]

CLASSES_SHOWN = 5


@dataclass
class Strangeness:
    """How many attributes and labels a model meets that it has not learned."""

    classes: Sequence[str]
    known: int = 0
    unknown: int = 0
    labels: int = 0
    strange: int = 0
    example: str = ""

    def add(self, batch: Batch) -> None:
        """Count a batch, whose classes begin with those of the model."""
        self.known, self.unknown = self.known + len(batch.values), self.unknown + batch.unknown
        self.labels += int((batch.codes >= 0).sum())
        beyond = batch.codes[batch.codes >= len(self.classes)]
        if len(beyond):
            self.example = self.example or batch.classes[int(beyond[0])]
            self.strange += len(beyond)

    def told(self) -> list[str]:
        """Warnings, if the model knows few of the attributes by name, or not all of the classes."""
        found = []
        if self.unknown > self.known:
            found.append(
                f"{self.unknown:,} of {self.known + self.unknown:,} attributes are unknown to the model and were left "
                "out; is this another kind of data?"
            )
        if self.strange:
            met = ", ".join(map(repr, self.classes[:CLASSES_SHOWN])) + ", ..." * (len(self.classes) > CLASSES_SHOWN)
            found.append(
                f"{self.strange:,} of {self.labels:,} labels are classes that the model has not learned, such as "
                f"{self.example!r}, and count as mistakes; it has learned {met}."
            )
        return found


class FileTest:
    """The error on a file that is not learned from."""

    def __init__(self, arguments: argparse.Namespace, model: StreamModel, screen: Console) -> None:
        self.arguments, self.screen = arguments, screen
        self.rows = 0
        self.refusals: Refusals | None = None
        self.figures = self._run(model)

    def _run(self, model: StreamModel) -> dict[str, Any]:
        from linmax.models.streams import stream

        trials, mistakes, strange = 0, 0, Strangeness(list(model.classes))
        rows = stream(self.arguments.test, model=model, grow=False, **reading_options(self.arguments))
        for batch in rows:
            known = batch.codes >= 0
            wrong = model.judge(model.scaled(batch, learn=False)) != batch.codes
            trials, mistakes = trials + int(known.sum()), mistakes + int((wrong & known).sum())
            self.rows += len(batch)
            strange.add(batch)
        self.refusals = rows.refusals
        show_refusals(self.screen, rows.refusals)
        for told in strange.told():
            self.screen.print(told, soft_wrap=True, markup=False)
        if not trials:
            raise ValueError(f"{self.arguments.test}: there is no line with a label")
        return {"test_trials": trials, "test_error": mistakes / trials, "test_refused": rows.refusals.total}

    def refuse_too_many(self) -> None:
        """Raise if more lines of the file could not be read than may be."""
        if self.refusals is not None:
            refuse_too_many(self.arguments, self.rows, self.refusals)
