"""Learn from files and pipes; every line is predicted before it is learned from.

DATA may be svmlight, Vowpal Wabbit's text, a table (CSV, TSV, Parquet, Arrow),
JSON lines of any objects, or lines of label<tab>text. The error shown is
progressive: each prediction is made before its label is seen.

  linmax learn train.vw --model model.linmax
  zcat logs.jsonl.gz | linmax learn - --format jsonl --scale idf
  linmax learn train.csv --label class --test test.csv --json -
  linmax learn ranked.jsonl --candidates --model ranker.linmax
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmax.cli.interrupts import unbroken
from linmax.cli.options import (
    CLUSTER_OPTIONS,
    INPUT_OPTIONS,
    JSON_OPTION,
    LABEL_OPTION,
    SHUFFLE_OPTION,
    reading_options,
    refuse_options,
    refused_share,
)
from linmax.cli.output import console, counted, no_labels, nothing_read, refuse_too_many, say, show_refusals
from linmax.io.read_options import Refusals

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from linmax.cli.models import ModelFile
    from linmax.cli.predictions import ProgressiveFile
    from linmax.io.batch import Runs
    from linmax.models.metrics import Evaluation
    from linmax.models.streams import Batch, Stream, StreamModel
    from linmax.models.streams.progressive import Milestone, Progressive

__all__ = ["OPTIONS", "run"]

STANDARD = "-"
HOLDOUT = 10  # with several passes, every tenth line
SUSPICIOUS = 100  # classes, half of them numbers, that are perhaps none
BETWEEN = 0.1  # seconds between two updates of the live line
HEADINGS = ("error", "since last", "trials", "label", "predicted", "attributes")
WIDTHS = (7, 10, 11, 15, 15, 10)
# Options that make no sense with trials of candidates, and on a cluster
NOT_WITH_CANDIDATES = (
    "scale=auto hash_bits memory passes=1 holdout checkpoint plot format weight ignore categorical text ngrams pairs "
    "cluster shuffle readable no_thresholds class_weight=none"
)
MOST_NOTES = 5  # about the columns of all shards
SERIAL_LEARN_OPTIONS = "class_weight=none start holdout predictions plot memory shuffle"


OPTIONS = f"""
most used:
DATA...  files, compressed (gzip, bzip2, xz, zstd) or not; - is standard input
{LABEL_OPTION}
--model FILE  save the model
--test FILE  at the end, report the figures of this file
{INPUT_OPTIONS}
learning:
--learner L=auto  what learns, such as 'AR-winnow(1.2)'
--scale S=auto  scale attributes online: none, max, length, log, idf, standard or auto
--hash-bits B:int  hash names to 2^B columns instead of keeping them
--memory SIZE  a budget for names and weights, such as 500MB (default: none)
--numeric-classes  learn even if labels look like continuous values
--no-thresholds  leave out the constant attribute
--class-weight none|balanced=none  balanced: weigh classes equally, by the labels so far
--candidates  each trial lists its own candidates: JSON lines, or VW's blocks of lines
--start MODEL  continue learning with a saved model
--passes N:int=1  go through the data N times
--holdout N:int  predict every N-th line, but never learn from it (default: 0 = none; with several passes {HOLDOUT})
--early-stop P:int=3  stop after P passes without fewer mistakes on the held-out lines; 0 = never
{SHUFFLE_OPTION}
output:
--predictions FILE  write the class predicted for each line ('-' = standard output)
--readable FILE  write all weights as a table: attribute, class, weight
--plot FILE  save the progressive error as .png, .svg or .pdf
--checkpoint FILE  save the state regularly, and continue from it if it exists (with --cluster a folder)
--every N:int=1000000  lines between checkpoints
--quiet  show only the result
{JSON_OPTION}
{CLUSTER_OPTIONS.replace("MIX", "uniform")}"""


def run(arguments: argparse.Namespace) -> None:
    """Learn; show the table as it grows, then the result; save the requested files."""
    from linmax.util.outputs import claimed

    if arguments.candidates:
        refuse_options(arguments, NOT_WITH_CANDIDATES, "does not go with --candidates", "--candidates")
    if arguments.cluster:
        refuse_options(arguments, SERIAL_LEARN_OPTIONS, "requires the order of one stream", "--cluster")
    else:
        refuse_options(arguments, "resume mix=uniform", "requires --cluster")
    _check(arguments)
    if arguments.candidates:
        _learn_candidates(arguments)
        return
    if arguments.cluster:
        _learn_on_cluster(arguments)
        return
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
        arguments.holdout = HOLDOUT if arguments.passes > 1 and not arguments.cluster else 0
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
    if arguments.shuffle is not None:
        for name in ("checkpoint", "predictions"):
            if getattr(arguments, name):
                raise ValueError(
                    f"--{name} needs the rows in their order and cannot go with --shuffle; remove one of them"
                )
    refused_share(arguments)
    inputs = [*([] if arguments.cluster else arguments.data), *([arguments.test] if arguments.test else [])]
    checkpoint = None if arguments.cluster else arguments.checkpoint
    outputs = [arguments.json, arguments.model, arguments.predictions, checkpoint, arguments.plot, arguments.readable]
    check_outputs(outputs, inputs)
    if arguments.plot:
        check_plot("--plot", arguments.plot)
    for path in inputs:
        if path != STANDARD and Path(path).is_dir():
            raise ValueError(f"{path} is a folder; give a file")
        if path != STANDARD and not Path(path).is_fifo():  # who writes into a pipe would lose what is not read
            with open(path, "rb"):
                pass


# -- the result, however it was learned ---------------------------------------------------------------------------


@dataclass
class LearningResult:
    """Result of learning: the model, figures, the rows read, and what else there is to print and save."""

    model: ModelFile
    figures: dict[str, Any]
    rows: int
    messages: Sequence[str] = ()
    output: ProgressiveFile | None = None
    points: Sequence[tuple[int, int]] = ()  # of the mistake curve
    metrics: Evaluation | None = None  # progressive


def _finish(arguments: argparse.Namespace, screen: Console, learned: LearningResult) -> None:
    """Save the model, test it, print the figures and write them."""
    from linmax.util import outputs, plots

    model, figures = learned.model, learned.figures
    failed: Exception | None = None
    try:
        if learned.output is not None:
            learned.output.close(keep=True)
        if arguments.model:
            model.model.save(arguments.model)
        if arguments.readable:
            _write_readable(model.model, arguments.readable)
    except (OSError, ValueError) as error:  # still report the results
        failed = error
    say(screen, *learned.messages)
    tested, metrics = None, learned.metrics
    if arguments.test:
        model.refusals = Refusals()
        try:
            tested, metrics = model.test(arguments)
        finally:
            show_refusals(screen, model.refusals)
            say(screen, *model.remarks())
        figures |= {"test_trials": tested.labelled, "test_error": tested.error, "test_refused": model.refusals.total}
        figures |= {} if metrics is None else {"test": metrics.to_dict()}
    if learned.metrics is not None:
        figures["progressive"] = learned.metrics.to_dict()
    _report(screen, figures)
    if metrics is not None and not arguments.quiet:
        what = "on the test file" if tested is not None else "before each label was seen"
        say(screen, *(f"{line[0].upper()}{line[1:]}" for line in metrics.summary()), f"Predictions {what}:")
        say(screen, *(f"  {line}" for line in metrics.table()))
    if arguments.plot:
        trials, mistakes = zip(*learned.points, strict=True)
        plots.plot_error(trials, mistakes, arguments.plot, subtitle=figures["learner"])
    if arguments.json:
        outputs.write_json(figures, arguments.json)
    if failed is not None:
        raise failed
    if arguments.checkpoint and not arguments.cluster:
        Path(arguments.checkpoint).unlink(missing_ok=True)
    refuse_too_many(arguments, learned.rows, figures["refused"])
    if tested is not None:
        refuse_too_many(arguments, tested.lines, figures["test_refused"])


def _report(screen: Console, figures: dict[str, Any]) -> None:
    """Print the figures of learning."""
    error, scale = figures["progressive_error"], figures.get("scale", "none")
    kind = f" from {counted(len(figures['shards']), 'shard')}" if "shards" in figures else ""
    columns = [
        ("classes", "class", "classes"),
        ("features", "attribute", ""),
        ("raters", "rater", ""),
        ("voters", "voter", ""),
    ]
    candidates = " with candidates" if "raters" in figures else ""
    say(
        screen,
        f"{figures['learner']}{kind}: {'no labels' if error is None else f'progressive error {error:.4f}'}, "
        f"{counted(figures['mistakes'], 'mistake')} in {counted(figures['trials'], 'trial')}{candidates}; "
        + ", ".join(counted(figures[name], *nouns) for name, *nouns in columns if name in figures)
        + ("" if scale == "none" else f", scaled: {scale}")  # pools scale by themselves
        + f"; {figures['seconds']:.1f} s",
    )
    if figures.get("unlabelled"):
        what = counted(figures["unlabelled"], "trial" if candidates else "line")
        say(screen, f"{what} without a label {'was' if figures['unlabelled'] == 1 else 'were'} predicted only.")
    for name, what in (("holdout_error", "error on the lines held out"), ("test_error", "test error")):
        if figures.get(name) is not None:
            say(screen, f"{what} {figures[name]:.4f}")


def _write_readable(model: StreamModel, path: str) -> None:
    """Write attribute, class and weight, tab-separated, wherever the weight is not 0.

    The file is moved into place when it is complete. A learner without weights of its own raises ValueError.
    """
    from linmax.util.files import replacing

    weights, classes = model.weights, model.classes
    with replacing(path, text=True) as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(["attribute", "class", "weight"])
        writer.writerows(["(threshold)", name, repr(float(w))] for name, w in weights["thresholds"].items())
        for name, row in zip(model.attributes, weights.arrays.attributes, strict=True):
            writer.writerows([name, classes[c], repr(float(row[c]))] for c in row.nonzero()[0].tolist())


# -- trials with candidates ---------------------------------------------------------------------------------------


def _learn_candidates(arguments: argparse.Namespace) -> None:
    from linmax.cli.models import CandidatesFile
    from linmax.cli.predictions import PredictionCounts, ProgressiveFile
    from linmax.models.online import Learner

    learner = Learner.load(arguments.start) if arguments.start else Learner(arguments.learner)
    begun, counts, model = time.perf_counter(), PredictionCounts(), CandidatesFile(model=learner)
    output = ProgressiveFile(arguments.predictions) if arguments.predictions else None
    unlabelled, screen = 0, console(arguments)
    try:
        for part in model.read(arguments, arguments.data):
            answers = model.learn(part)
            if answers is not None:
                counts.add(part.labels, answers.predicted)
                unlabelled += part.data.label is None and part.data.wrong is None
                if output is not None:
                    output.write(answers.predicted)
        if not counts.lines:
            raise ValueError(nothing_read(arguments.data, model.refusals))
    except BaseException:
        if output is not None:
            output.close(keep=False)
        raise
    show_refusals(screen, model.refusals)
    figures: dict[str, Any] = {
        "learner": str(learner.learner),
        "trials": learner.trials,
        "mistakes": learner.mistakes,
        "progressive_error": learner.mistakes / learner.trials if learner.trials else None,
        "raters": len(learner.raters),
        "voters": len(learner.voters),
        "unlabelled": unlabelled,
        "refused": model.refusals.total,
        "seconds": time.perf_counter() - begun,
    }
    _finish(arguments, screen, LearningResult(model, figures, counts.lines, output=output))


# -- on a cluster -------------------------------------------------------------------------------------------------


def _learn_on_cluster(arguments: argparse.Namespace) -> None:
    """Learn each file as a shard on the workers of a cluster, merging the models after each pass."""
    from linmax.cli.clustered import connected, show_refused_shards
    from linmax.cli.models import StreamFile
    from linmax.cluster import fit

    screen = console(arguments)
    reading = {name: value for name, value in reading_options(arguments).items() if value is not None}
    options = {"scale": arguments.scale, "thresholds": not arguments.no_thresholds, "hash_bits": arguments.hash_bits}
    options |= {"passes": arguments.passes, "mix": arguments.mix}
    options |= {"checkpoint": arguments.checkpoint, "resume": arguments.resume}
    with connected(arguments, arguments.data) as (client, shards, watch):
        result = fit(arguments.learner, shards, client=client, reading=reading, watch=watch, **options)
    first, model = result.passes[0], result.model
    if not (arguments.quiet or screen.is_terminal):
        for number, one in enumerate(result.passes, 1):
            say(screen, f"pass {number}: {one.mistakes:,} mistakes in {one.trials:,} trials")
    if not arguments.quiet:
        say(screen, *result.notes[:MOST_NOTES])
    figures = {
        "learner": str(model.learner),
        "scale": model._scaling.in_effect,
        "trials": first.trials,
        "mistakes": first.mistakes,
        "progressive_error": first.mistakes / first.trials if first.trials else None,
        "updates": model.updates,
        "classes": len(model.classes),
        "features": model.features,
        "refused": sum(counts.refused for counts in first.shards),
        "seconds": sum(one.seconds for one in result.passes),
        "shards": result.shards,
        "passes": [{"trials": one.trials, "mistakes": one.mistakes} for one in result.passes],
    }
    show_refused_shards(result)
    rows = sum(counts.trials + counts.unlabelled for counts in first.shards)
    _finish(arguments, screen, LearningResult(StreamFile(model=model), figures, rows))


# -- a stream -----------------------------------------------------------------------------------------------------


@dataclass
class _LearnJob:
    """Learning from one stream."""

    arguments: argparse.Namespace
    work: Progressive = field(init=False)
    stream: Stream = field(init=False)
    output: ProgressiveFile | None = None
    runs: Runs = field(init=False)
    noted: bool = False
    crowded: bool = False
    kept_pass: int | None = None  # the pass that the model is from, if not the last
    rows: int = 0  # that this process has learned from
    heaviest: float = 1.0  # of their weights
    kept_at: int = 0  # rows at the last checkpoint
    started: float = field(default_factory=time.perf_counter)

    @cached_property
    def screen(self) -> Console:
        return console(self.arguments)

    def remark(self, *messages: str) -> None:
        """Print messages unless ``--quiet`` is given."""
        if not self.arguments.quiet:
            say(self.screen, *messages)

    # -- before ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Make the model, or load it from the checkpoint."""
        from linmax.cli.predictions import ProgressiveFile
        from linmax.io.batch import Runs
        from linmax.models.streams import StreamModel
        from linmax.models.streams.progressive import Progressive

        given, written = self.arguments, 0
        self.runs = Runs()
        if given.checkpoint and Path(given.checkpoint).exists():
            self.work, settings, extra = Progressive.load(given.checkpoint)
            self._refuse_others(settings)
            written = int(extra["written"])
            trials = self.work.counts.trials
            say(self.screen, f"Continuing from {given.checkpoint}, after {trials:,} trials.")
        elif given.start is not None:
            model = StreamModel.load(given.start)
            if given.memory is not None:
                model.limit(given.memory)
            self.work = Progressive(model, given.holdout)
        else:
            options = {"scale": given.scale, "thresholds": not given.no_thresholds}
            model = StreamModel(given.learner, hash_bits=given.hash_bits, memory=given.memory, **options)
            self.work = Progressive(model, given.holdout)
        self.work.balanced = given.class_weight == "balanced"
        if given.predictions:
            self.output = ProgressiveFile(given.predictions, written)

    def _settings(self) -> dict[str, object]:
        """Return what must not change between a checkpoint and its continuation."""
        from linmax.models.streams.progressive import fingerprint

        given = self.arguments
        names = "data format label ignore categorical text delimiter no_header ngrams learner scale"
        names += " weight class_weight pairs memory hash_bits no_thresholds start passes holdout early_stop predictions"
        settings = {name: getattr(given, name) for name in names.split()}
        once = [path == STANDARD or Path(path).is_fifo() for path in given.data]  # what is read from a pipe is gone
        settings["files"] = [None if pipe else fingerprint(path) for path, pipe in zip(given.data, once, strict=True)]
        return settings

    def _refuse_others(self, settings: dict[str, object]) -> None:
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
        given, work = self.arguments, self.work
        with _Live(self) as live:
            for number in range(len(work.passes) - 1, given.passes):
                if self._has_stopped():
                    break
                self.stream = self._open()
                live.begin()  # the first batch is being read meanwhile
                for batch in self._batches(number):
                    with held():
                        self._learn_batch(batch)
                        live.show(batch)
                with held():
                    if given.passes > 1 and given.early_stop and work.counts.held_out:
                        work.keep_best()
                    work.finish_pass(again=number + 1 < given.passes)
        self.kept_pass = work.return_to_best()
        if self.kept_pass is not None:
            self.remark(f"The model is that of pass {self.kept_pass}, with the fewest mistakes on the lines held out.")
        first = work.passes[0]
        if not first.trials + first.unlabelled + first.held_out:
            raise ValueError(nothing_read(given.data, self.stream.refusals))
        if not first.trials + first.held_out:
            raise ValueError(no_labels(given.data, first.unlabelled, self.stream.notes))

    def _has_stopped(self) -> bool:
        """Return whether the error on the lines held out has not fallen for some passes, before the next one."""
        patience = self.arguments.early_stop
        errors = [counts.held_out_mistakes for counts in self.work.passes[:-1] if counts.held_out]
        if not patience or len(errors) <= patience or min(errors[-patience:]) < min(errors[:-patience]):
            return False
        self.work.passes.pop()
        self.remark(
            f"The error on the lines held out has not fallen for {patience} passes: stopped after {len(errors)}."
        )
        return True

    def _open(self) -> Stream:
        from linmax.models.streams import Position, stream

        options = reading_options(self.arguments)
        work, place = self.work, self.work.position
        if place != Position():
            options |= {"position": place, "settled": work.settled, "format": work.kind}
        data = self.arguments.data
        return stream(data[0] if len(data) == 1 else [Path(name) for name in data], model=work.model, **options)

    def _batches(self, number: int) -> Iterator[Batch]:
        """Return the batches of pass ``number`` as they come, or all of their rows in a new random order."""
        from linmax.io.batch import shuffled

        seed = self.arguments.shuffle
        return iter(self.stream) if seed is None else shuffled(self.stream, seed + number)

    def _learn_batch(self, batch: Batch) -> None:
        if not self.noted:
            self.noted = True
            self.remark(*self.stream.notes)
        predicted = self.work.play(batch)
        self.work.kind = self.stream.format
        self.rows += len(batch)
        self._refuse_continuous()
        self._remark_crowded()
        self.heaviest = max(self.heaviest, float(batch.importance.max(initial=0.0)))
        if len(self.work.passes) == 1:
            self.runs.count(batch.codes)
            if self.output is not None:
                names = [*batch.classes, ""]
                self.output.write([names[number] for number in predicted.tolist()], batch.tags)
        if self.arguments.checkpoint and self.rows - self.kept_at >= self.arguments.every:
            self._keep()

    def _remark_crowded(self) -> None:
        """Remark once that the budget of memory is used up."""
        model = self.work.model
        if self.crowded or not model.crowded:
            return
        from linmax.models.streams.budget import bytes_shown

        self.crowded = True
        say(
            self.screen,
            f"The memory of {bytes_shown(model.memory or 0)} is used up by {len(model._vocabulary):,} attributes of "
            f"{counted(len(model._labels), 'class', 'classes')}, after {self.rows:,} lines; new ones share columns.",
        )

    def _refuse_continuous(self) -> None:
        """Stop when labels look like numbers to be predicted rather than classes, unless --numeric-classes is given."""
        names = self.work.model._labels.names
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
        if hasattr(self, "stream") and not given.strict:
            show_refusals(self.screen, self.stream.refusals)
        if interrupted and self.work.passes[0].trials:
            _report(self.screen, self._figures())
        for save in (self._rescue_model, self._rescue_predictions):
            try:
                save(interrupted)
            except OSError as second:  # report the first error, and this one with it
                say(self.screen, f"It could not be saved: {second}")

    def _rescue_model(self, interrupted: bool) -> None:
        given, trials = self.arguments, self.work.model.trials
        if trials and given.checkpoint and interrupted:
            self._keep()
        if trials and given.model:
            self.work.model.save(given.model)
            say(self.screen, f"What was learned from {trials:,} trials is saved in {given.model}.")

    def _rescue_predictions(self, interrupted: bool) -> None:
        if self.output is not None:
            self.output.close(keep=False, part=interrupted)
            if interrupted and not self.output.passes_on:
                say(self.screen, f"The predictions so far are in {self.output.draft}.")

    def finish(self) -> None:
        """Save, test and report."""
        from linmax.cli.models import StreamFile

        work, figures = self.work, self._figures()
        show_refusals(self.screen, self.stream.refusals)
        model, messages = StreamFile(model=work.model), self._messages(figures)
        result = LearningResult(model, figures, work.rows, messages, self.output, work.points, work.metrics)
        _finish(self.arguments, self.screen, result)

    def _figures(self) -> dict[str, Any]:
        work, given, seconds = self.work, self.arguments, time.perf_counter() - self.started
        first, model = work.passes[0], work.model
        figures: dict[str, Any] = {
            "learner": str(model.learner),
            "scale": model._scaling.in_effect,
            "format": self.stream.format,
            "trials": first.trials,
            "mistakes": first.mistakes,
            "progressive_error": first.error,
            "updates": model.updates,
            "classes": len(model.classes),
            "features": model.features,
            "decided": model.decided or None,
            "repeats": model.repeats,
            **({"crowded": model.crowded} if model.memory is not None else {}),
            "unlabelled": first.unlabelled,
            "refused": self.stream.refusals.total,
            "seconds": seconds,
            "trials_per_second": self.rows / seconds if seconds else None,
        }
        if self.runs.long:
            figures["mean_run"] = self.runs.rows / self.runs.runs
        if given.passes > 1:
            figures["passes"] = [{"trials": p.trials, "mistakes": p.mistakes, "error": p.error} for p in work.passes]
        if given.holdout:
            kept = self.kept_pass or len(work.passes)
            figures["holdout_error"] = work.passes[kept - 1].held_out_error
            if given.passes > 1:
                figures["kept_pass"] = kept
        return figures

    def _messages(self, figures: dict[str, Any]) -> list[str]:
        """Return messages about the data and the result."""
        from linmax.cli.models import decided_text
        from linmax.engine.engine import HEAVIEST
        from linmax.io.schema import MISSING

        found, runs, model = list(self.stream.remarks()), self.runs, self.work.model
        if self.heaviest > HEAVIEST:
            most = f"{HEAVIEST:g}"
            found.append(f"Weights beyond {most} count as {most} for this learner; the largest is {self.heaviest:g}.")
        if figures["decided"]:
            text = decided_text(figures["decided"])
            by_data = figures["decided"]["decided by"] == "the data"
            end = "; auto(dense) or auto(sparse) overrules that." if by_data else "."
            found.append(f"{text[0].upper()}{text[1:]}{end}")
        if figures["repeats"] and self.arguments.passes == 1:
            share = figures["repeats"] / max(1, figures["trials"])
            found.append(
                f"{figures['repeats']:,} rows ({share:.1%}) have the attributes of an earlier row, so the progressive "
                "error is not that of new rows alone."
            )
        if runs.long:
            found.append(
                f"Warning: the rows look sorted by class: the same label comes {runs.rows / runs.runs:,.0f} times in a "
                f"row on average ({runs.rows / runs.expected:,.1f} in random order), so the progressive error says "
                "little about other rows; try --shuffle"
            )
        if figures["classes"] == 1 and figures["trials"]:
            found.append(
                f"All labels are {model.classes[0]!r}: there is nothing to learn. A classifier requires two "
                "classes or more; check the label (--label), or add rows of other classes."
            )
        missing = next((name for name in model.classes if name.lower() in MISSING), None)
        if missing is not None:
            found.append(f"Labels such as {missing!r} are a class; leave a label that is missing empty.")
        return found


class _Live:
    """The table, with rows at doubling intervals, and on a terminal a line that changes."""

    def __init__(self, job: _LearnJob) -> None:
        self.job = job
        self.status: Status | None = None
        self.headed = False
        self.shown = 0.0
        self.before = (0, 0, 0.0)  # trials, mistakes and time when the line was last shown
        self.first = (0.0, 0.0)  # share of the data read and time when it first was

    def __enter__(self) -> _Live:
        return self

    def begin(self) -> None:
        """Begin a pass: show activity."""
        self.before, self.first = (0, 0, 0.0), (0.0, 0.0)
        if not self.job.arguments.quiet and self.status is None:
            self.job.work.watch = self.milestone
            if self.job.screen.is_terminal:
                self.status = self.job.screen.status("reading")
                self.status.start()

    def __exit__(self, *_: object) -> None:
        if self.status is not None:
            self.status.stop()

    def _print(self, *cells: str) -> None:
        """Print a row; long labels are cut, and on a narrow terminal the last columns."""
        pairs = zip(cells, WIDTHS, strict=True)
        text = "  ".join(
            (cell if len(cell) <= width else f"{cell[: width - 1]}…").rjust(width) for cell, width in pairs
        )
        screen = self.job.screen
        screen.print(text, markup=False, no_wrap=True, overflow="crop", soft_wrap=not screen.is_terminal)

    def milestone(self, made: Milestone) -> None:
        """Print one row of the table."""
        if not self.headed:
            self._print(*HEADINGS)
            self.headed = True
        error, since = made.mistakes / made.trials, made.since_mistakes / made.since_trials
        self._print(
            f"{error:.4f}", f"{since:.4f}", f"{made.trials:,}", made.label, made.predicted, f"{made.features:,}"
        )

    def show(self, batch: Batch) -> None:
        """Update the line, but not too often."""
        now = time.perf_counter()
        if self.status is None or now - self.shown < BETWEEN:
            return
        job, counts = self.job, self.job.work.counts
        trials, mistakes, then = self.before
        recent = (counts.mistakes - mistakes) / max(1, counts.trials - trials)
        parts = [f"pass {len(job.work.passes)} of {job.arguments.passes}"] if job.arguments.passes > 1 else []
        parts += [f"{counts.trials:,} trials", f"error {counts.error or 0.0:.4f}, recently {recent:.4f}"]
        if then:
            parts.append(f"{(counts.trials - trials) / (now - then):,.0f} a second")
            if batch.done and batch.done > self.first[0]:
                left = (now - self.first[1]) * (1.0 - batch.done) / (batch.done - self.first[0])
                parts.append(f"{left:.0f} s left")
        else:
            self.first = (batch.done or 0.0, now)
        parts += [f"{len(job.work.model.classes):,} classes", f"{job.work.model.features:,} attributes"]
        while len("  ".join(parts)) > job.screen.width - 3:  # next to the spinner
            parts.pop()
        self.status.update("  ".join(parts))
        self.shown, self.before = now, (counts.trials, counts.mistakes, now)
