"""What a terminal shows while ``linmax learn`` runs."""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linmax.cli.learn_job import LearnJob
    from linmax.models.streams import Batch
    from linmax.models.streams.progressive import Milestone

__all__ = ["Live"]

BETWEEN = 0.1  # seconds between two updates of the live line


class Live:
    """The table, with rows at doubling intervals, and on a terminal a line that changes."""

    HEAD = ("error", "since last", "trials", "label", "predicted", "attributes")
    WIDTHS = (7, 10, 11, 15, 15, 10)
    GAP = 2
    LEAST = 4  # characters of a label

    def __init__(self, job: LearnJob) -> None:
        self.job = job
        self.quiet = job.arguments.quiet
        self.status: Any = None
        self.headed = False
        self.shown = 0.0
        self.before = (0, 0, 0.0)  # trials, mistakes and time when the line was last shown
        self.first = (0.0, 0.0)  # share of the data read and time when it first was

    def __enter__(self) -> Live:
        return self

    def begin(self) -> None:
        """A pass begins: show activity."""
        screen = self.job.screen
        self.before, self.first = (0, 0, 0.0), (0.0, 0.0)
        if not self.quiet and self.status is None:
            self.job.work.watch = self.milestone
            if screen.is_terminal:
                self.status = screen.status("reading (a first run compiles, which takes some seconds)")
                self.status.start()

    def __exit__(self, *_: object) -> None:
        if self.status is not None:
            self.status.stop()

    def _line(self, *cells: str) -> None:
        from rich.markup import escape

        shown = (_fitted(cell, width) for cell, width in zip(cells, self.widths, strict=False))
        self.job.screen.print(escape((" " * self.GAP).join(shown)), soft_wrap=True)

    @cached_property
    def widths(self) -> list[int]:
        """The widths of the columns that fit the screen: labels are cut, and on a narrow one the last columns go."""
        widths, screen = list(self.WIDTHS), self.job.screen
        room = screen.width if screen.is_terminal else sum(widths) + self.GAP * len(widths)
        while len(widths) > 3 and sum(widths) + self.GAP * (len(widths) - 1) > room:
            label = widths[3:5]
            if label and max(label) > self.LEAST:
                for place in range(3, 3 + len(label)):
                    widths[place] -= 1
            else:
                widths.pop()
        return widths

    def milestone(self, made: Milestone) -> None:
        """One row of the table."""
        if not self.headed:
            self._line(*self.HEAD)
            self.headed = True
        error, since = made.mistakes / made.trials, made.since_mistakes / made.since_trials
        cells = (f"{error:.4f}", f"{since:.4f}", f"{made.trials:,}", made.label, made.predicted, f"{made.features:,}")
        self._line(*cells)

    def show(self, batch: Batch) -> None:
        """Update the line, but not too often."""
        now = time.perf_counter()
        if self.status is None or now - self.shown < BETWEEN:
            return
        job, counts = self.job, self.job.work.counts
        trials, mistakes, then = self.before
        recent = (counts.mistakes - mistakes) / max(1, counts.trials - trials)
        speed = (counts.trials - trials) / (now - then) if then else 0.0
        parts = [f"pass {len(job.work.passes)} of {job.arguments.passes}"] if job.arguments.passes > 1 else []
        parts += [f"{counts.trials:,} trials", f"error {counts.error or 0.0:.4f}, recently {recent:.4f}"]
        if then:
            parts.append(f"{speed:,.0f} a second")
            if batch.done and batch.done > self.first[0]:
                left = (now - self.first[1]) * (1.0 - batch.done) / (batch.done - self.first[0])
                parts.append(f"{left:.0f} s left")
        else:
            self.first = (batch.done or 0.0, now)
        parts += [f"{len(job.work.model.classes):,} classes", f"{job.work.model.features:,} attributes"]
        while len("  ".join(parts)) > job.screen.width - 3:  # beside the spinner
            parts.pop()
        self.status.update("  ".join(parts))
        self.shown, self.before = now, (counts.trials, counts.mistakes, now)


def _fitted(text: str, width: int) -> str:
    return (text if len(text) <= width else text[: width - 1] + "…").rjust(width)
