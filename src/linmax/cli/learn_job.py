"""One run of ``linmax learn``: from the first batch, or a checkpoint, to the figures."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmax.cli.insides import in_words
from linmax.cli.live import Live
from linmax.cli.other_data import FileTest
from linmax.cli.output import console
from linmax.cli.prediction_file import STANDARD, Predictions
from linmax.cli.readable import write_readable
from linmax.cli.reading import no_labels, nothing_read, reading_options, refuse_too_many, show_refusals
from linmax.cli.row_order import in_order, told_of_runs
from linmax.io.schema import MISSING

if TYPE_CHECKING:
    from rich.console import Console

    from linmax.io.shuffling import Runs
    from linmax.models.streams import Batch, Stream, StreamModel
    from linmax.models.streams.progressive import Progressive

__all__ = ["LearnJob"]

SUSPICIOUS = 100  # classes, half of them numbers, that are perhaps none


@dataclass
class LearnJob:
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
        from linmax.io.shuffling import Runs
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
        with Live(self) as live:
            for number in range(done, self.arguments.passes):
                if self._has_stopped():
                    break
                self.stream = self._open()
                batches = in_order(self.stream, self.arguments, number)
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
        self._tell_crowded()
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

    def _tell_crowded(self) -> None:
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

    def _told_of_weights(self) -> str:
        """What to say of weights that count less than they are."""
        most = self.work.model.heaviest
        if self.heaviest <= most:
            return ""
        return f"Weights beyond {most:g} count as {most:g} for this learner; the largest is {self.heaviest:g}."

    def _refuse_continuous(self) -> None:
        """Stop when labels look like numbers to be predicted rather than classes, unless told to continue."""
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
            self._tell(self._figures(time.perf_counter() - self.started))
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
                write_readable(self.work.model, given.readable)
        except (OSError, ValueError) as error:  # still report the results
            failed = error
        show_refusals(self.screen, assert_stream.refusals)
        for remark in [*assert_stream.remarks(), *filter(None, [self._told_of_weights()])]:
            self.screen.print(remark, soft_wrap=True, markup=False)
        figures = self._figures(seconds)
        tested = FileTest(given, self.work.model, self.screen) if given.test else None
        figures |= tested.figures if tested else {}
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

    def _tell(self, figures: dict[str, Any]) -> None:
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
            told = in_words(figures["decided"])
            by_data = figures["decided"]["decided by"] == "the data"
            overruled = "; auto(dense) or auto(sparse) overrules that." if by_data else "."
            self.screen.print(f"{told[0].upper()}{told[1:]}{overruled}", soft_wrap=True)
        if told := told_of_runs(self.runs):
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
    found = [name for name in classes if name.lower() in MISSING]
    return f"Labels such as {found[0]!r} are a class; leave a label that is missing empty." if found else ""


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"
