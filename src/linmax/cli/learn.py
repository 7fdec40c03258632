"""Learn from files and pipes; every line is predicted before it is learned from.

DATA may be svmlight, Vowpal Wabbit's text, a table (CSV, TSV, Parquet, Arrow),
JSON lines of any objects, or label<tab>text. The error
shown is progressive: each prediction is made before its label is seen.

  linmax learn train.vw --model model.linmax
  zcat logs.jsonl.gz | linmax learn - --format jsonl --scale idf
  linmax learn train.csv --label class --test test.csv --json -
  linmax learn ranked.jsonl --candidates --model ranker.linmax
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmax.cli.clustered import add_cluster_options, run_on_cluster
from linmax.cli.interrupts import unbroken
from linmax.cli.output import add_json_option, console
from linmax.cli.reading import (
    add_reading_options,
    add_shuffle_option,
    counted,
    no_labels,
    nothing_read,
    reading_options,
    refuse_too_many,
    refused_share,
    show_refusals,
)

if TYPE_CHECKING:
    from rich.console import Console

    from linmax.cli.predictions import Predictions
    from linmax.io.batch import Runs
    from linmax.io.choices import ChoiceLine
    from linmax.io.options import Refusals
    from linmax.models.online import Learner
    from linmax.models.streams import Batch, Stream, StreamModel
    from linmax.models.streams.progressive import Milestone, Progressive

__all__ = ["configure", "run"]

STANDARD = "-"
LEARNER = "auto"
HOLDOUT = 10  # with several passes, every tenth line
EARLY_STOP = 3  # passes
EVERY = 1_000_000  # trials between checkpoints
SCALINGS_TEXT = "none, max, length, log, idf, standard or auto"
SUSPICIOUS = 100  # classes, half of them numbers, that are perhaps none
BETWEEN = 0.1  # seconds between two updates of the live line


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``linmax learn``."""
    add_reading_options(parser)
    add = parser.add_argument_group("learning").add_argument
    add("--learner", metavar="L", default=LEARNER, help=f"what learns, such as 'AR-winnow(1.2)' (default: {LEARNER})")
    add("--scale", metavar="S", default="auto", help=f"scale attributes on-line: {SCALINGS_TEXT} (default: auto)")
    add("--hash-bits", metavar="B", type=int, help="hash names to 2^B columns instead of keeping them")
    add("--memory", metavar="SIZE", help="a budget for names and weights, such as 500MB (default: none)")
    add("--numeric-classes", action="store_true", help="learn even if labels look like continuous values")
    add("--no-thresholds", action="store_true", help="leave out the constant attribute")
    add(
        "--candidates",
        action="store_true",
        help="trials have candidates of their own: JSON lines, or VW's blocks of lines",
    )
    add("--start", metavar="MODEL", help="continue with a model learned before")
    add("--passes", metavar="N", type=int, default=1, help="go through the data N times (default: 1)")
    add(
        "--holdout",
        metavar="N",
        type=int,
        help=f"predict every N-th line, but never learn from it (default: 0 = none; with several passes {HOLDOUT})",
    )
    add(
        "--early-stop",
        metavar="P",
        type=int,
        default=EARLY_STOP,
        help=f"stop after P passes without fewer mistakes on the held-out lines; 0 = never (default: {EARLY_STOP})",
    )
    add_shuffle_option(parser, "learn the rows in a random order; all of them are held in memory")
    add = parser.add_argument_group("output").add_argument
    add("--model", metavar="OUT", help="save what was learned")
    add("--test", metavar="FILE", help="at the end, report the error on this file")
    add("--predictions", metavar="OUT", help="write the class predicted for each line ('-' = standard output)")
    add("--readable", metavar="OUT", help="write all weights as a table: attribute, class, weight")
    add("--plot", metavar="OUT", help="save the progressive error as .png, .svg or .pdf")
    add(
        "--checkpoint",
        metavar="FILE",
        help="save the state from time to time, and continue from this file if it exists",
    )
    add("--every", metavar="N", type=int, default=EVERY, help=f"lines between checkpoints (default: {EVERY:,})")
    add("--quiet", action="store_true", help="show only the result")
    add_cluster_options(parser)
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> None:
    """Learn; show the table as it grows, then the result; save the requested files."""
    from linmax.util.outputs import claimed

    if arguments.candidates:
        _learn_candidates(arguments)
        return
    if arguments.cluster:
        run_on_cluster(arguments)
        return
    _check(arguments)
    job = _LearnJob(arguments)
    written = [arguments.model, arguments.predictions, arguments.checkpoint]
    with unbroken() as held, claimed(written):
        job.begin()
        try:
            job.learn(held)
        except BaseException as error:
            with held():
                job.rescue(error)
            if isinstance(error, OverflowError):
                raise ValueError(str(error)) from None
            raise
        with held():
            job.finish()


def _check(arguments: argparse.Namespace) -> None:
    """Raise now errors that would otherwise come at the end."""
    from linmax.util import checks
    from linmax.util.outputs import check_outputs
    from linmax.util.plots import check_plot

    checks.whole("passes", arguments.passes, 1)
    if arguments.holdout is None:
        arguments.holdout = HOLDOUT if arguments.passes > 1 else 0
    checks.whole("holdout", arguments.holdout, 0)
    checks.whole("early-stop", arguments.early_stop, 0)
    checks.whole("every", arguments.every, 1)
    if arguments.holdout == 1:
        raise ValueError("holdout must be >= 2, got 1; every line held out leaves nothing to learn from")
    once = next((path for path in arguments.data if path == STANDARD or Path(path).is_fifo()), None)
    if arguments.passes > 1 and once is not None:
        source = "standard input" if once == STANDARD else f"{once}, a pipe,"
        raise ValueError(f"{source} can be read once only; write it to a file for more passes")
    if arguments.json == STANDARD == arguments.predictions:
        raise ValueError("figures and predictions cannot both go to standard output; give one of them a file")
    _check_shuffle(arguments)
    refused_share(arguments)
    inputs = [*arguments.data, *([arguments.test] if arguments.test else [])]
    outputs = [arguments.json, arguments.model, arguments.predictions, arguments.checkpoint, arguments.plot]
    check_outputs([*outputs, arguments.readable], inputs)
    if arguments.plot:
        check_plot("--plot", arguments.plot)
    for path in inputs:
        if path != STANDARD:
            if Path(path).is_dir():
                raise ValueError(f"{path} is a folder; give a file")
            if Path(path).is_fifo():  # who writes into a pipe would lose what is not read
                continue
            with open(path, "rb"):
                pass


def _check_shuffle(arguments: argparse.Namespace) -> None:
    """Refuse what needs the rows in their own order."""
    if arguments.shuffle is None:
        return
    for name, value in (("--checkpoint", arguments.checkpoint), ("--predictions", arguments.predictions)):
        if value:
            raise ValueError(
                f"{name} needs the rows in their order and cannot go with --shuffle; leave one of them out"
            )


def _in_order(batches: Iterable[Batch], arguments: argparse.Namespace, number: int) -> Iterator[Batch]:
    """The batches of pass ``number`` as they come, or all of their rows shuffled, in every pass otherwise."""
    from linmax.io.batch import shuffled

    return iter(batches) if arguments.shuffle is None else shuffled(batches, arguments.shuffle + number)


def _sorted_warning(runs: Runs) -> str:
    """What to say about rows that look sorted; nothing if they do not."""
    if not runs.long:
        return ""
    return (
        f"Warning: the rows look sorted by class: the same label comes {runs.rows / runs.runs:,.0f} times in a row on "
        f"average ({runs.rows / runs.expected:,.1f} in random order), so the progressive error says little about "
        "other rows; try --shuffle"
    )


@dataclass
class _LearnJob:
    """One run of the command."""

    arguments: argparse.Namespace
    work: Progressive = field(init=False)
    stream: Stream | None = None
    output: Predictions | None = None
    resumed: bool = False
    noted: bool = False
    crowded: bool = False
    kept_pass: int | None = None  # the pass that the model is from, if not the last
    runs: Runs = field(init=False)
    rows: int = 0  # that this process has learned from
    heaviest: float = 1.0  # of their weights
    kept_at: int = 0  # rows at the last checkpoint
    started: float = field(default_factory=time.perf_counter)

    @cached_property
    def screen(self) -> Console:
        """Where messages go."""
        from rich.console import Console

        if self.arguments.predictions == STANDARD:
            return Console(stderr=True, highlight=False)
        return console(self.arguments)

    # -- before ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Make the model, or load it from the checkpoint."""
        from linmax.cli.predictions import Predictions
        from linmax.io.batch import Runs
        from linmax.models.streams import StreamModel
        from linmax.models.streams.progressive import Progressive

        given, written = self.arguments, 0
        self.runs = Runs()
        if given.checkpoint and Path(given.checkpoint).exists():
            self.work, settings, extra = Progressive.load(given.checkpoint)
            self._refuse_others(settings)
            self.resumed, written = True, int(extra["written"])
            trials = self.work.counts.trials
            self.screen.print(f"Going on from {given.checkpoint}, after {trials:,} trials.")
        else:
            model = self._model() if given.start is None else StreamModel.load(given.start)
            if given.start is not None and given.memory is not None:
                model.limit(given.memory)
            self.work = Progressive(model, given.holdout)
        if given.predictions:
            self.output = Predictions(given.predictions, written if self.resumed else 0)

    def _model(self) -> StreamModel:
        from linmax.models.streams import StreamModel

        given = self.arguments
        return StreamModel(
            given.learner,
            scale=given.scale,
            thresholds=not given.no_thresholds,
            hash_bits=given.hash_bits,
            memory=given.memory,
        )

    def _settings(self) -> dict[str, Any]:
        """What must not change between a checkpoint and its continuation."""
        from linmax.models.streams.progressive import fingerprint

        given = self.arguments
        names = "data format label ignore categorical text delimiter no_header ngrams learner scale"
        names += " weight pairs memory hash_bits no_thresholds start passes holdout early_stop predictions"
        settings = {name: getattr(given, name) for name in names.split()}
        once = [path == STANDARD or Path(path).is_fifo() for path in given.data]  # what is read from a pipe is gone
        settings["files"] = [None if pipe else fingerprint(path) for path, pipe in zip(given.data, once, strict=True)]
        return settings

    def _refuse_others(self, settings: dict[str, Any]) -> None:
        for name, value in self._settings().items():
            if settings.get(name) != value:
                what = "the beginning of the files" if name == "files" else f"--{name.replace('_', '-')}"
                raise ValueError(
                    f"{self.arguments.checkpoint} was made with another {what}: {settings.get(name)!r}, not {value!r}; "
                    "remove it to start over"
                )

    # -- learning -------------------------------------------------------------------------------------------------

    def learn(self, held: Callable[[], AbstractContextManager[None]]) -> None:
        """Make all passes over the data; within ``held()`` nothing interrupts."""
        done = len(self.work.passes) - 1
        with _Live(self) as live:
            for number in range(done, self.arguments.passes):
                if self._has_stopped():
                    break
                self.stream = self._open()
                batches = _in_order(self.stream, self.arguments, number)
                live.begin()  # the first batch is being read meanwhile
                for batch in batches:
                    with held():
                        self._note()
                        self._batch(batch)
                        live.show(batch)
                with held():
                    if self._stops_early:
                        self.work.keep_best()
                    self.work.finish_pass(again=number + 1 < self.arguments.passes)
        kept = self.work.return_to_best()
        if kept is not None:
            self.kept_pass = kept
            if not self.arguments.quiet:
                told = f"The model is that of pass {kept}, which had the fewest mistakes on the lines held out."
                self.screen.print(told, soft_wrap=True)
        first = self.work.passes[0]
        assert self.stream is not None
        if not first.trials + first.unlabelled + first.held_out:
            raise ValueError(nothing_read(self.arguments.data, self.stream.refusals))
        if not first.trials + first.held_out:
            raise ValueError(no_labels(self.arguments.data, first.unlabelled, self.stream.notes))

    @property
    def _stops_early(self) -> bool:
        """Whether the lines held out decide which pass is kept."""
        return bool(self.arguments.passes > 1 and self.arguments.early_stop and self.work.counts.held_out)

    def _has_stopped(self) -> bool:
        """Whether the error on the lines held out has not fallen for some passes; the pass at hand has not begun."""
        patience = self.arguments.early_stop
        errors = [counts.held_out_mistakes for counts in self.work.passes[:-1] if counts.held_out]
        if not patience or len(errors) <= patience or min(errors[-patience:]) < min(errors[:-patience]):
            return False
        self.work.passes.pop()
        if not self.arguments.quiet:
            told = f"The error on the lines held out has not fallen for {patience} passes: enough after {len(errors)}."
            self.screen.print(told, soft_wrap=True)
        return True

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
        self._refuse_continuous()
        self._report_crowded()
        self.heaviest = max(self.heaviest, float(batch.importance.max(initial=0.0)))
        if len(self.work.passes) == 1:
            self.runs.count(batch.codes)
        if self.output is not None and len(self.work.passes) == 1:
            self.output.write(batch, predicted)
        if self.arguments.checkpoint and self.rows - self.kept_at >= self.arguments.every:
            self._keep()

    def _note(self) -> None:
        """Say what was found out about the data, once."""
        assert self.stream is not None
        if not self.noted and not self.arguments.quiet:
            for note in self.stream.notes:
                self.screen.print(note, soft_wrap=True, markup=False)
        self.noted = True

    def _report_crowded(self) -> None:
        """Say once that the budget of memory is used up."""
        model = self.work.model
        if self.crowded or not model.crowded:
            return
        from linmax.models.streams.budget import bytes_shown

        self.crowded = True
        told = (
            f"The memory of {bytes_shown(model.memory or 0)} is used up by {len(model.vocabulary):,} attributes of "
            f"{_many(len(model.labels), 'class', 'classes')}, after {self.rows:,} lines; those that are new share "
            "columns."
        )
        self.screen.print(told, soft_wrap=True)

    def _weight_remark(self) -> str:
        """What to say of weights that count less than they are."""
        most = self.work.model.heaviest
        if self.heaviest <= most:
            return ""
        return f"Weights beyond {most:g} count as {most:g} for this learner; the largest is {self.heaviest:g}."

    def _refuse_continuous(self) -> None:
        """Stop when labels look like numbers to be predicted rather than classes, unless --numeric-classes is given."""
        names = self.work.model.labels.names
        if self.arguments.numeric_classes or len(names) < SUSPICIOUS or 2 * len(names) < self.rows:
            return
        from linmax.io.schema import is_number

        numbers = [name for name in names if is_number(name)]
        if 2 * len(numbers) > len(names):
            raise ValueError(
                f"labels must be classes, got {len(names):,} different ones in {self.rows:,} rows, such as "
                f"{numbers[0]} and {numbers[-1]}; these look like continuous values (regression). Check --label, or "
                "pass --numeric-classes to learn each as a class"
            )

    def _keep(self) -> None:
        written = 0 if self.output is None else self.output.sync()
        self.work.save(self.arguments.checkpoint, self._settings(), {"written": written})
        self.kept_at = self.rows

    # -- after ----------------------------------------------------------------------------------------------------

    def rescue(self, error: BaseException) -> None:
        """After an error, save what was learned so far to the requested files."""
        given = self.arguments
        interrupted = isinstance(error, KeyboardInterrupt)
        if self.stream is not None and not given.strict:
            show_refusals(self.screen, self.stream.refusals)
        if interrupted and self.work.passes[0].trials:
            self._report(self._figures(time.perf_counter() - self.started))
        for save in (self._save_model, self._save_predictions):
            try:
                save(interrupted)
            except OSError as second:  # report the first error, with this one beside it
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
        if interrupted and not self.output.passes_on:
            self.screen.print(f"The predictions so far are in {self.output.draft}.", soft_wrap=True)

    def finish(self) -> None:
        """Save, test and report."""
        from linmax.util import outputs, plots

        given, assert_stream = self.arguments, self.stream
        assert assert_stream is not None
        seconds = time.perf_counter() - self.started
        failed: Exception | None = None
        try:
            if self.output is not None:
                self.output.close(keep=True)
            if given.model:
                self.work.model.save(given.model)
            if given.readable:
                _write_readable(self.work.model, given.readable)
        except (OSError, ValueError) as error:  # still report the results
            failed = error
        show_refusals(self.screen, assert_stream.refusals)
        for remark in [*assert_stream.remarks(), *filter(None, [self._weight_remark()])]:
            self.screen.print(remark, soft_wrap=True, markup=False)
        figures = self._figures(seconds)
        tested = _FileTest(given, self.work.model, self.screen) if given.test else None
        figures |= tested.figures if tested else {}
        self._report(figures)
        if given.plot:
            trials, mistakes = zip(*self.work.points, strict=True)
            plots.plot_error(trials, mistakes, given.plot, subtitle=str(self.work.model.learner))
        if given.json:
            outputs.write_json(figures, given.json)
        if failed is not None:
            raise failed
        if given.checkpoint:
            Path(given.checkpoint).unlink(missing_ok=True)
        refuse_too_many(given, self.work.rows, assert_stream.refusals)
        if tested:
            tested.refuse_too_many()

    def _figures(self, seconds: float) -> dict[str, Any]:
        first, model = self.work.passes[0], self.work.model
        assert self.stream is not None
        figures: dict[str, Any] = {
            "learner": str(model.learner),
            "scale": model.scaling.in_effect,
            "format": self.stream.format,
            "trials": first.trials,
            "mistakes": first.mistakes,
            "progressive_error": first.error,
            "updates": model.updates,
            "classes": len(model.classes),
            "features": model.features,
            "decided": model.decided or None,
            **({"crowded": model.crowded} if model.memory is not None else {}),
            "unlabelled": first.unlabelled,
            "refused": self.stream.refusals.total,
            "seconds": seconds,
            "trials_per_second": self.rows / seconds if seconds else None,
        }
        if self.runs.long:
            figures["mean_run"] = self.runs.rows / self.runs.runs
        if self.arguments.passes > 1:
            figures["passes"] = [
                {"trials": p.trials, "mistakes": p.mistakes, "error": p.error} for p in self.work.passes
            ]
        if self.arguments.holdout:
            last = len(self.work.passes)
            figures["holdout_error"] = self.work.passes[(self.kept_pass or last) - 1].held_out_error
            if self.arguments.passes > 1:
                figures["kept_pass"] = self.kept_pass or last
        return figures

    def _report(self, figures: dict[str, Any]) -> None:
        from linmax.cli.models import decided_text

        error = figures["progressive_error"]
        told = "no labels" if error is None else f"progressive error {error:.4f}"
        scaled = "" if figures["scale"] == "none" else f", scaled: {figures['scale']}"  # pools scale by themselves
        self.screen.print(
            f"{figures['learner']}: {told}, {_many(figures['mistakes'], 'mistake')} in "
            f"{_many(figures['trials'], 'trial')}; {_many(figures['classes'], 'class', 'classes')}, "
            f"{_many(figures['features'], 'attribute')}{scaled}; {figures['seconds']:.1f} s",
            soft_wrap=True,
        )
        if figures["decided"]:
            told = decided_text(figures["decided"])
            by_data = figures["decided"]["decided by"] == "the data"
            overruled = "; auto(dense) or auto(sparse) overrules that." if by_data else "."
            self.screen.print(f"{told[0].upper()}{told[1:]}{overruled}", soft_wrap=True)
        if told := _sorted_warning(self.runs):
            self.screen.print(told, soft_wrap=True)
        if figures["unlabelled"]:
            were = "was" if figures["unlabelled"] == 1 else "were"
            self.screen.print(f"{_many(figures['unlabelled'], 'line')} without a label {were} predicted only.")
        if figures["classes"] == 1 and figures["trials"]:
            only = self.work.model.classes[0]
            self.screen.print(
                f"All labels are {only!r}: there is nothing to tell apart. A classifier requires two classes or more; "
                "check the label (--label), or add rows of other classes.",
                soft_wrap=True,
                markup=False,
            )
        if told := _like_missing(self.work.model.classes):
            self.screen.print(told, soft_wrap=True, markup=False)
        for name, what in [("holdout_error", "error on the lines held out"), ("test_error", "test error")]:
            if figures.get(name) is not None:
                self.screen.print(f"{what} {figures[name]:.4f}")


def _like_missing(classes: list[str]) -> str:
    """What to say of classes called like something that is missing; "" if there are none."""
    from linmax.io.schema import MISSING

    found = [name for name in classes if name.lower() in MISSING]
    return f"Labels such as {found[0]!r} are a class; leave a label that is missing empty." if found else ""


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"


class _Live:
    """The table, with rows at doubling intervals, and on a terminal a line that changes."""

    HEAD = ("error", "since last", "trials", "label", "predicted", "attributes")
    WIDTHS = (7, 10, 11, 15, 15, 10)
    GAP = 2
    LEAST = 4  # characters of a label

    def __init__(self, job: _LearnJob) -> None:
        self.job = job
        self.quiet = job.arguments.quiet
        self.status: Any = None
        self.headed = False
        self.shown = 0.0
        self.before = (0, 0, 0.0)  # trials, mistakes and time when the line was last shown
        self.first = (0.0, 0.0)  # share of the data read and time when it first was

    def __enter__(self) -> _Live:
        return self

    def begin(self) -> None:
        """A pass begins: show activity."""
        screen = self.job.screen
        self.before, self.first = (0, 0, 0.0), (0.0, 0.0)
        if not self.quiet and self.status is None:
            self.job.work.watch = self.milestone
            if screen.is_terminal:
                self.status = screen.status("reading")
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


def _write_readable(model: StreamModel, path: str) -> int:
    """Write attribute, class and weight, tab-separated, wherever the weight is not 0; returns the number of weights.

    The file is moved into place when it is complete. A learner without weights of its own raises ValueError.
    """
    weights = model.weights
    names, classes, table = model.attributes, model.classes, weights.arrays.attributes
    from linmax.util.files import replacing

    count, thresholds = 0, dict(weights["thresholds"])
    with replacing(path, text=True) as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(["attribute", "class", "weight"])
        for name, weight in thresholds.items():
            writer.writerow(["(threshold)", name, repr(float(weight))])
        for name, row in zip(names, table, strict=True):
            some = [[name, classes[c], repr(float(row[c]))] for c in row.nonzero()[0].tolist()]
            writer.writerows(some)
            count += len(some)
    return count + len(thresholds)


class _FileTest:
    """The error on a file that is not learned from."""

    def __init__(self, arguments: argparse.Namespace, model: StreamModel, screen: Console) -> None:
        self.arguments, self.screen = arguments, screen
        self.rows = 0
        self.refusals: Refusals | None = None
        self.figures = self._run(model)

    def _run(self, model: StreamModel) -> dict[str, Any]:
        from linmax.cli.models import Strangeness
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
        for message in strange.messages():
            self.screen.print(message, soft_wrap=True, markup=False)
        if not trials:
            raise ValueError(f"{self.arguments.test}: there is no line with a label")
        return {"test_trials": trials, "test_error": mistakes / trials, "test_refused": rows.refusals.total}

    def refuse_too_many(self) -> None:
        """Raise if more lines of the file could not be read than may be."""
        if self.refusals is not None:
            refuse_too_many(self.arguments, self.rows, self.refusals)


# Options of `linmax learn` that mean nothing here, and the values that they have when they are not given.
OTHER_OPTIONS = (
    "scale hash_bits memory passes holdout checkpoint plot format weight ignore categorical text ngrams pairs "
    "cluster no_thresholds"
)
COUNTED_FIGURES = ("mistake", "trial", "rater", "voter")
NOT_GIVEN = (None, "", False, 0, 1, "auto")


def _learn_candidates(arguments: argparse.Namespace) -> None:
    """Learn; show the result; save the requested files."""
    from rich.console import Console

    from linmax.cli.models import CandidateTrials
    from linmax.models.online import Learner
    from linmax.util.files import replacing
    from linmax.util.outputs import check_output, write_json

    for name in OTHER_OPTIONS.split():
        if getattr(arguments, name) not in NOT_GIVEN:
            raise ValueError(f"--{name.replace('_', '-')} does not go with --candidates; leave it out")
    refused_share(arguments)
    for path in [arguments.json, arguments.model, arguments.predictions]:
        if path not in (None, STANDARD):
            check_output(path)
    learner = Learner.load(arguments.start) if arguments.start else Learner(arguments.learner)
    begun = time.perf_counter()
    counts = _Counts()
    trials = CandidateTrials(arguments)
    refusals = trials.refusals
    trials.play(arguments.data, partial(_learn, learner, counts))
    if not counts.predicted:
        raise ValueError(nothing_read(arguments.data, refusals))
    figures: dict[str, Any] = {
        "learner": str(learner.learner),
        "trials": learner.trials,
        "mistakes": learner.mistakes,
        "progressive_error": learner.mistakes / learner.trials if learner.trials else None,
        "raters": len(learner.raters),
        "voters": len(learner.voters),
        "unlabelled": counts.unlabelled,
        "seconds": time.perf_counter() - begun,
    }
    played = len(counts.predicted)
    if arguments.test:
        test = _Counts()
        trials.play([arguments.test], partial(_predict, learner, test))
        if not test.labelled:
            raise ValueError(f"{arguments.test}: there is no trial with a label")
        played += len(test.predicted)
        figures |= {"test_trials": test.labelled, "test_error": test.wrong / test.labelled}
    if arguments.model:
        learner.save(arguments.model)
    if arguments.predictions:
        text = "\n".join([*counts.predicted, ""])
        if arguments.predictions == STANDARD:
            print(text, end="")
        else:
            with replacing(arguments.predictions) as file:
                file.write(text.encode())
    if arguments.json:
        write_json(figures | {"refused": refusals.total}, arguments.json)
    if STANDARD not in (arguments.json, arguments.predictions):
        _report_candidates(arguments, figures)
    show_refusals(Console(stderr=True, highlight=False), refusals)
    refuse_too_many(arguments, played, refusals)


@dataclass
class _Counts:
    """What came of trials."""

    predicted: list[str] = field(default_factory=list)
    labelled: int = 0
    wrong: int = 0
    unlabelled: int = 0

    def add(self, trial: ChoiceLine, answer: object) -> None:
        """Count one of them."""
        self.predicted.append(str(answer))
        self.unlabelled += trial.label is None and trial.wrong is None
        self.labelled += trial.label is not None
        self.wrong += trial.label is not None and answer != trial.label


def _learn(learner: Learner, counts: _Counts, trial: ChoiceLine) -> None:
    if trial.label is not None:
        counts.add(trial, learner.learn(label=trial.label, **trial.given))
    elif trial.wrong is not None:
        counts.add(trial, learner.learn(wrong=trial.wrong, **trial.given))
    else:
        _predict(learner, counts, trial)


def _predict(learner: Learner, counts: _Counts, trial: ChoiceLine) -> None:
    counts.add(trial, learner.predict(**trial.given))


def _report_candidates(arguments: argparse.Namespace, figures: dict[str, Any]) -> None:
    screen, error = console(arguments), figures["progressive_error"]
    told = "no labels" if error is None else f"progressive error {error:.4f}"
    mistakes, trials, raters, voters = (counted(figures[f"{what}s"], what) for what in COUNTED_FIGURES)
    screen.print(
        f"{figures['learner']}: {told}, {mistakes} in {trials} with candidates; {raters}, {voters}; "
        f"{figures['seconds']:.1f} s",
        soft_wrap=True,
    )
    if figures["unlabelled"]:
        were = "was" if figures["unlabelled"] == 1 else "were"
        screen.print(f"{counted(figures['unlabelled'], 'trial')} without a label {were} predicted only.")
    if "test_error" in figures:
        screen.print(f"test error {figures['test_error']:.4f}")
