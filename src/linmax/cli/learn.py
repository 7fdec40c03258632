"""Learn from files and pipes; every line is predicted before it is learned from.

DATA may be svmlight, Vowpal Wabbit's text, a table (CSV, TSV, Parquet, Arrow),
JSON lines of {label, features} or {label, text}, or label<tab>text. The error
shown is progressive: each prediction is made before its label is seen.

  linmax learn train.vw --model model.linmax
  zcat logs.jsonl.gz | linmax learn - --format jsonl --scale idf
  linmax learn train.csv --label class --test test.csv --json -
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from linmax.cli.clustered import add_cluster_options, run_on_cluster
from linmax.cli.output import add_json_option, console
from linmax.cli.reading import add_reading_options, nothing_read, reading_options, show_refusals
from linmax.util.checks import about

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from linmax.models.streams import Batch, Model, Stream
    from linmax.models.streams.progressive import Milestone, Progressive

__all__ = ["configure", "run"]

LEARNER = "auto"
EVERY = 1_000_000  # trials between checkpoints
BETWEEN = 0.1  # seconds between two updates of the live line
STANDARD = "-"
KINDS = "none, max, length, log, idf, standard or auto"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``linmax learn``."""
    add_reading_options(parser)
    add = parser.add_argument
    add("--learner", metavar="L", default=LEARNER, help=f"what learns, such as 'AR-winnow(1.2)' (default: {LEARNER})")
    add("--scale", metavar="S", default="auto", help=f"scale attributes on-line: {KINDS} (default: auto)")
    add("--hash-bits", metavar="B", type=int, help="hash names to 2^B columns instead of keeping them")
    add("--no-thresholds", action="store_true", help="leave out the constant attribute")
    add("--start", metavar="MODEL", help="go on with a model learned before")
    add("--passes", metavar="N", type=int, default=1, help="go through the data N times (default: 1)")
    add("--holdout", metavar="N", type=int, default=0, help="never learn from every N-th line, only predict it")
    add("--delay", metavar="D", type=int, default=0, help="labels come D lines later")
    add("--test", metavar="FILE", help="at the end, the error on this file")
    add("--model", metavar="OUT", help="save what was learned")
    add("--predictions", metavar="OUT", help="write the class predicted for each line ('-' = standard output)")
    add("--checkpoint", metavar="FILE", help="save all as it goes, and continue from there if the file exists")
    add("--every", metavar="N", type=int, default=EVERY, help=f"lines between checkpoints (default: {EVERY:,})")
    add("--plot", metavar="PATH", help="save the progressive error as .png, .svg or .pdf")
    add("--quiet", action="store_true", help="show nothing but the result")
    add_cluster_options(parser)
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> None:
    """Learn; show the table as it grows, then the result; save what was asked for."""
    if arguments.cluster:
        run_on_cluster(arguments)
        return
    _check(arguments)
    job = Job(arguments)
    job.begin()
    try:
        job.learn()
    except BaseException as error:
        job.rescue(error)
        if isinstance(error, OverflowError):
            raise ValueError(str(error)) from None
        raise
    job.finish()


def _check(arguments: argparse.Namespace) -> None:
    """Raise now what would go wrong at the end."""
    from linmax.util import checks
    from linmax.util.outputs import check_output
    from linmax.util.plots import PLOT_FORMATS, figure_class

    checks.whole("passes", arguments.passes, 1)
    checks.whole("holdout", arguments.holdout, 0)
    checks.whole("delay", arguments.delay, 0)
    checks.whole("every", arguments.every, 1)
    if arguments.holdout == 1:
        raise ValueError("holdout must be >= 2, got 1; every line held out leaves nothing to learn from")
    if arguments.passes > 1 and STANDARD in arguments.data:
        raise ValueError("standard input can be read once only; write it to a file for more passes")
    if arguments.json == STANDARD == arguments.predictions:
        raise ValueError("figures and predictions cannot both go to standard output; give one of them a file")
    for path in [arguments.json, arguments.model, arguments.predictions, arguments.checkpoint]:
        if path not in (None, STANDARD):
            check_output(path)
    if arguments.plot:
        check_output(arguments.plot, PLOT_FORMATS)
        figure_class()
    for path in [*arguments.data, *([arguments.test] if arguments.test else [])]:
        if path != STANDARD:
            if Path(path).is_dir():
                raise ValueError(f"{path} is a folder; give a file")
            with open(path, "rb"):
                pass


@dataclass
class Job:
    """One run of the command."""

    arguments: argparse.Namespace
    work: Progressive = field(init=False)
    stream: Stream | None = None
    output: Predictions | None = None
    resumed: bool = False
    rows: int = 0  # this process has learned from
    kept_at: int = 0  # rows at the last checkpoint
    started: float = field(default_factory=time.perf_counter)

    @cached_property
    def screen(self) -> Console:
        """Where its words go."""
        from rich.console import Console

        if self.arguments.predictions == STANDARD:
            return Console(stderr=True, highlight=False)
        return console(self.arguments)

    # -- before ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Make the model, or take it from where it was left."""
        from linmax.models.streams import Model
        from linmax.models.streams.progressive import Progressive

        given, written = self.arguments, 0
        if given.checkpoint and Path(given.checkpoint).exists():
            self.work, settings, extra = Progressive.load(given.checkpoint)
            self._refuse_others(settings)
            self.resumed, written = True, int(extra["written"])
            trials = self.work.counts.trials
            self.screen.print(f"Going on from {given.checkpoint}, after {trials:,} trials.")
        else:
            model = self._model() if given.start is None else Model.load(given.start)
            self.work = Progressive(model, given.delay, given.holdout)
        if given.predictions:
            self.output = Predictions(given.predictions, written if self.resumed else 0)

    def _model(self) -> Model:
        from linmax.models.streams import Model

        given = self.arguments
        return Model(given.learner, scale=given.scale, thresholds=not given.no_thresholds, hash_bits=given.hash_bits)

    def _settings(self) -> dict[str, Any]:
        """What must not change between a checkpoint and going on from it."""
        from linmax.models.streams.progressive import fingerprint

        given = self.arguments
        names = "data format label ignore categorical ngrams learner scale hash_bits no_thresholds start passes"
        names += " holdout delay predictions"
        settings = {name: getattr(given, name) for name in names.split()}
        settings["files"] = [None if path == STANDARD else fingerprint(path) for path in given.data]
        return settings

    def _refuse_others(self, settings: dict[str, Any]) -> None:
        for name, value in self._settings().items():
            if settings.get(name) != value:
                what = "the beginning of the files" if name == "files" else f"--{name.replace('_', '-')}"
                raise ValueError(
                    f"{self.arguments.checkpoint} was made with another {what}: {settings.get(name)!r}, not {value!r}; "
                    "remove it to begin anew"
                )

    # -- learning -------------------------------------------------------------------------------------------------

    def learn(self) -> None:
        """Go through the data as often as asked."""
        done = len(self.work.passes) - 1
        with Live(self) as live, unbroken() as held:
            for number in range(done, self.arguments.passes):
                self.stream = self._open()
                batches = iter(self.stream)
                live.begin()  # the first batch is being read meanwhile
                for batch in batches:
                    with held():
                        self._batch(batch)
                        live.show(batch)
                with held():
                    self.work.finish_pass(again=number + 1 < self.arguments.passes)
        if not self.work.passes[0].trials + self.work.passes[0].unlabelled:
            assert self.stream is not None
            raise ValueError(nothing_read(self.arguments.data, self.stream.refusals))

    def _open(self) -> Stream:
        from linmax.models.streams import Position, stream

        options = reading_options(self.arguments)
        work, place = self.work, self.work.position
        if place != Position():
            options |= {"position": place, "settled": work.settled, "format": work.kind}
        data = self.arguments.data
        return stream(data[0] if len(data) == 1 else [Path(name) for name in data], model=work.model, **options)

    def _batch(self, batch: Batch) -> None:
        predicted = self.work.play(batch)
        assert self.stream is not None
        self.work.kind = self.stream.format
        self.rows += len(batch)
        if self.output is not None and len(self.work.passes) == 1:
            self.output.write(batch, predicted)
        if self.arguments.checkpoint and self.rows - self.kept_at >= self.arguments.every:
            self._keep()

    def _keep(self) -> None:
        written = 0 if self.output is None else self.output.sync()
        self.work.save(self.arguments.checkpoint, self._settings(), {"written": written})
        self.kept_at = self.rows

    # -- after ----------------------------------------------------------------------------------------------------

    def rescue(self, error: BaseException) -> None:
        """Save what was learned before things went wrong, where the user asked for it."""
        given = self.arguments
        interrupted = isinstance(error, KeyboardInterrupt)
        if self.stream is not None and not (given.quiet or given.strict):
            show_refusals(self.screen, self.stream.refusals)
        if interrupted and self.work.passes[0].trials:
            self._tell(self._figures(time.perf_counter() - self.started))
        for save in (self._save_model, self._save_predictions):
            try:
                save(interrupted)
            except OSError as second:  # the first error is the one to be told, and this beside it
                self.screen.print(f"It could not be saved: {second}", soft_wrap=True)

    def _save_model(self, interrupted: bool) -> None:
        given, trials = self.arguments, self.work.model.trials
        if trials and given.checkpoint and interrupted:
            self._keep()
        if trials and given.model:
            self.work.model.save(given.model)
            told = f"What was learned from {trials:,} trials is saved in {given.model}."
            self.screen.print(told, soft_wrap=True)

    def _save_predictions(self, interrupted: bool) -> None:
        if self.output is None:
            return
        self.output.close(keep=False, part=interrupted)
        if interrupted and self.output.path != STANDARD:
            self.screen.print(f"The predictions so far are in {self.output.draft}.", soft_wrap=True)

    def finish(self) -> None:
        """Save, test and tell."""
        from linmax.util import outputs, plots

        given, assert_stream = self.arguments, self.stream
        assert assert_stream is not None
        seconds, failed = time.perf_counter() - self.started, None
        try:
            if self.output is not None:
                self.output.close(keep=True)
            if given.model:
                self.work.model.save(given.model)
        except OSError as error:  # what came out is told all the same
            failed = error
        if not given.quiet:
            show_refusals(self.screen, assert_stream.refusals)
        figures = self._figures(seconds)
        if given.test:
            figures |= self._test()
        self._tell(figures)
        if given.plot:
            trials, mistakes = zip(*self.work.points, strict=True)
            plots.plot_error(trials, mistakes, given.plot, subtitle=str(self.work.model.learner))
        if given.json:
            outputs.write_json(figures, given.json)
        if failed is not None:
            raise failed
        if given.checkpoint:
            Path(given.checkpoint).unlink(missing_ok=True)

    def _figures(self, seconds: float) -> dict[str, Any]:
        first, model = self.work.passes[0], self.work.model
        assert self.stream is not None
        figures: dict[str, Any] = {
            "learner": str(model.learner),
            "scale": model.scaling.kind,
            "format": self.stream.format,
            "trials": first.trials,
            "mistakes": first.mistakes,
            "progressive_error": first.error,
            "updates": model.updates,
            "classes": len(model.classes),
            "features": model.features,
            "unlabelled": first.unlabelled,
            "refused": self.stream.refusals.total,
            "seconds": seconds,
            "trials_per_second": self.rows / seconds if seconds else None,
        }
        if self.arguments.passes > 1:
            figures["passes"] = [
                {"trials": p.trials, "mistakes": p.mistakes, "error": p.error} for p in self.work.passes
            ]
        if self.arguments.holdout:
            figures["holdout_error"] = self.work.passes[-1].held_out_error
        return figures

    def _test(self) -> dict[str, Any]:
        """The error on a file that is not learned from."""
        from linmax.models.streams import stream

        model, trials, mistakes = self.work.model, 0, 0
        rows = stream(self.arguments.test, model=model, grow=False, **reading_options(self.arguments))
        for batch in rows:
            known = batch.codes >= 0
            wrong = model.judge(model.scaled(batch, learn=False)) != batch.codes
            trials, mistakes = trials + int(known.sum()), mistakes + int((wrong & known).sum())
        if not trials:
            raise ValueError(f"{self.arguments.test}: there is no line with a label")
        return {"test_trials": trials, "test_error": mistakes / trials}

    def _tell(self, figures: dict[str, Any]) -> None:
        error = figures["progressive_error"]
        told = "no labels" if error is None else f"progressive error {error:.4f}"
        scaled = "" if figures["scale"] == "none" else f", scaled: {figures['scale']}"  # pools do it by themselves
        self.screen.print(
            f"{figures['learner']}: {told}, {_many(figures['mistakes'], 'mistake')} in "
            f"{_many(figures['trials'], 'trial')}; {_many(figures['classes'], 'class', 'classes')}, "
            f"{_many(figures['features'], 'attribute')}{scaled}; {figures['seconds']:.1f} s",
            soft_wrap=True,
        )
        if figures["unlabelled"]:
            self.screen.print(f"{figures['unlabelled']:,} lines without a label were predicted only.")
        for name, what in [("holdout_error", "error on the lines held out"), ("test_error", "test error")]:
            if figures.get(name) is not None:
                self.screen.print(f"{what} {figures[name]:.4f}")


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"


class Predictions:
    """The file of predictions: written beside its place and put there when it is complete."""

    def __init__(self, path: str, keep: int) -> None:
        self.path = path
        self.draft = Path(path).with_name(f"{Path(path).name}.part")
        if path == STANDARD:
            self.file: IO[bytes] = os.fdopen(os.dup(1), "wb")
        else:
            self.file = open(self.draft, "r+b" if keep else "wb")  # noqa: SIM115
            self.file.truncate(keep)
            self.file.seek(keep)

    def write(self, batch: Batch, predicted: np.ndarray) -> None:
        """One line a row: the class, and the tag if there is one."""
        names = [*batch.classes, ""]
        if batch.tags is None:
            lines = [names[number] for number in predicted.tolist()]
        else:
            pairs = zip(predicted.tolist(), batch.tags, strict=True)
            lines = [f"{names[number]} {tag}" if tag else names[number] for number, tag in pairs]
        with about(self.path):
            self.file.write(("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))

    def sync(self) -> int:
        """Have all on disk; returns the number of bytes."""
        with about(self.path):
            self.file.flush()
        if self.path == STANDARD:
            return 0
        os.fsync(self.file.fileno())
        return self.file.tell()

    def close(self, keep: bool, part: bool = False) -> None:
        """End; the file takes its place if it is to be kept, unless it waits as a part to be continued."""
        try:
            with about(self.path):
                self.file.close()
            if self.path != STANDARD and keep and not part:
                self.draft.replace(self.path)
        finally:
            if self.path != STANDARD and not part:
                self.draft.unlink(missing_ok=True)


@contextlib.contextmanager
def unbroken() -> Iterator[Any]:
    """Ctrl-C waits until a batch is done, so that what is saved then is whole; a second one does not wait."""
    waiting = {"held": False, "asked": False}

    def on_interrupt(*_: Any) -> None:
        if not waiting["held"] or waiting["asked"]:
            raise KeyboardInterrupt
        waiting["asked"] = True

    @contextlib.contextmanager
    def held() -> Iterator[None]:
        waiting["held"] = True
        try:
            yield
        finally:
            waiting["held"] = False
        if waiting["asked"]:
            raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGINT, on_interrupt)
    except ValueError:  # not in the main thread: nobody can interrupt
        yield held
        return
    try:
        yield held
    finally:
        signal.signal(signal.SIGINT, before)


class Live:
    """The table at doubling intervals, and a line that changes while a terminal looks on."""

    HEAD = ("error", "since last", "trials", "label", "predicted", "attributes")
    WIDTHS = (8, 10, 12, 16, 16, 10)

    def __init__(self, job: Job) -> None:
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
        """Show that something is being done; a pass begins."""
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

        shown = (_fitted(cell, width) for cell, width in zip(cells, self.WIDTHS, strict=True))
        self.job.screen.print(escape("  ".join(shown)), soft_wrap=True)

    def milestone(self, made: Milestone) -> None:
        """One row of the table."""
        if not self.headed:
            self._line(*self.HEAD)
            self.headed = True
        error, since = made.mistakes / made.trials, made.since_mistakes / made.since_trials
        cells = (f"{error:.4f}", f"{since:.4f}", f"{made.trials:,}", made.label, made.predicted, f"{made.features:,}")
        self._line(*cells)

    def show(self, batch: Batch) -> None:
        """Change the line, not too often."""
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
