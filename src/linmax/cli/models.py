"""Model files as commands use them: one interface to streams, fusions and learners of candidates.

`open_model` returns an object with ``read`` (the rows of data files, in parts), ``predict`` (the answers for a part)
and ``describe`` (figures for people and programs). No command needs to know which kind of model a file holds.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linmax.cli.options import listed, reading_options
from linmax.cli.output import counted, no_labels, nothing_read
from linmax.cli.predictions import Answers, OutputOptions, PredictionCounts
from linmax.io.read_options import Refusals
from linmax.util import files

if TYPE_CHECKING:
    from types import TracebackType

    from linmax.io.choices import ChoiceLine
    from linmax.models.fusion import VoteFusion
    from linmax.models.metrics import Evaluation
    from linmax.models.model import Model
    from linmax.models.online import Learner
    from linmax.models.streams import Batch, Stream, StreamModel

__all__ = ["CandidatesFile", "ModelFile", "RowPart", "StreamFile", "decided_text", "members_of", "open_model"]

CLASSES_SHOWN = 5
WEIGHT_PARTS = ("voters", "raters", "thresholds")


@dataclass
class RowPart:
    """Rows that are predicted together: their line numbers, labels where there are any, and tags."""

    lines: list[int]
    labels: list[str | None]
    tags: list[str] | None
    data: Any


def open_model(path: str) -> ModelFile:
    """Open a file that linmax saved; raise ValueError for a damaged file, or one of another program."""
    kind = files.kind_of(path)
    return MODEL_FILES.get(kind, ModelFile)(path, kind)


NONE_OF_THESE = "(none of these)"  # the event that no voter gives the right answer


class ModelFile:
    """Any file that linmax saved, or the model of one. Kinds that predict have their own class."""

    def __init__(self, path: str = "", kind: str = "", model: Any = None) -> None:
        self.path, self.kind, self.model = path, kind, model
        self.refusals = Refusals()
        self.found: list[str] = []  # remarks on the data so far

    def check(self, arguments: argparse.Namespace, wanted: OutputOptions, form: str) -> None:  # noqa: ARG002
        """Load the model; raise ValueError if it cannot predict as the options ask."""
        raise ValueError(f"{self.path} holds a {self.kind!r}; linmax predict requires a model of linmax learn or fuse")

    def _refuse_reasons(self, wanted: OutputOptions) -> None:
        """Raise if predictions are to be explained, and the model has voters or candidates."""
        if wanted.reasons:
            raise ValueError(f"--explain requires a model of attributes, got {self.path}, a {self.kind!r}; remove it")

    def read(self, arguments: argparse.Namespace, paths: Sequence[str]) -> Iterator[RowPart]:
        """Yield the rows of data files; unreadable lines are counted in ``refusals``."""
        raise NotImplementedError

    def predict(self, part: RowPart, wanted: OutputOptions) -> Answers | None:
        """Return the answers for some rows; None if they are refused."""
        raise NotImplementedError

    def remarks(self) -> list[str]:
        """Return remarks on the data that were read."""
        return list(dict.fromkeys(self.found))

    def test(self, arguments: argparse.Namespace) -> tuple[PredictionCounts, Evaluation | None]:
        """Predict the labeled rows of ``--test``; return the counts, and figures of fixed classes."""
        counts, paths = PredictionCounts(), [arguments.test]
        metrics = self._tested(arguments, paths, counts)
        if not counts.lines:
            raise ValueError(nothing_read(paths, self.refusals))
        if not counts.labelled:
            raise ValueError(no_labels(paths, counts.lines, ()))
        return counts, metrics

    def _tested(
        self, arguments: argparse.Namespace, paths: Sequence[str], counts: PredictionCounts
    ) -> Evaluation | None:
        for part in self.read(arguments, paths):
            answers = self.predict(part, OutputOptions())
            if answers is not None:
                counts.add(part.labels, answers.predicted)
        return None

    def describe(self, arguments: argparse.Namespace) -> dict[str, Any]:  # noqa: ARG002
        """Return the plain data in the file, and the shapes of its arrays."""
        description, arrays = files.read(self.path, self.kind)
        shapes = {name: list(array.shape) for name, array in sorted(arrays.items())}
        return {"kind": self.kind, **description, "arrays": shapes}


class StreamFile(ModelFile):
    """A model of ``linmax learn``, or a checkpoint of one."""

    model: StreamModel
    rows: Stream | None = None  # the data, once they are read

    def check(self, arguments: argparse.Namespace, wanted: OutputOptions, form: str) -> None:  # noqa: ARG002
        """Refuse checkpoints, and sets of classes."""
        from linmax.models.streams import StreamModel

        if self.kind == "stream checkpoint":
            raise ValueError(f"{self.path} holds a {self.kind!r}, not a 'stream model'; pass the file of learn --model")
        if wanted.coverage is not None:
            raise ValueError(
                f"--sets requires a fusion, saved by linmax fuse, but {self.path} is a stream model; remove --sets"
            )
        self.model = StreamModel.load(self.path)

    def read(self, arguments: argparse.Namespace, paths: Sequence[str]) -> Iterator[RowPart]:
        """Read as the data were read that the model learned from."""
        from linmax.models.streams import stream

        source = paths[0] if len(paths) == 1 else [Path(name) for name in paths]
        options = reading_options(arguments) | {"id": getattr(arguments, "id", None)}
        self.rows = stream(source, model=self.model, grow=False, **options)
        self.strangers = Strangers(list(self.model.classes))
        try:
            for batch in self.rows:
                self.refusals = self.rows.refusals
                self.strangers.add(batch)
                names = [*batch.classes, None]
                labels = [names[code] for code in batch.codes.tolist()]
                yield RowPart(batch.lines.tolist(), labels, batch.tags, batch)
        finally:
            self.refusals = self.rows.refusals

    def predict(self, part: RowPart, wanted: OutputOptions) -> Answers:
        """Return classes, and scores or probabilities if wanted."""
        model, batch = self.model, part.data
        names = [*model._labels.names, ""]
        predicted = [names[code] for code in model._judge(model._scaled(batch, learn=False)).tolist()]
        if wanted.reject is not None:
            sure = model.predict_proba(batch).max(axis=1, initial=0.0) >= 1.0 - wanted.reject
            predicted = [name if known else "" for name, known in zip(predicted, sure.tolist(), strict=True)]
        tables = {"scores": model.scores, "probabilities": model.predict_proba}
        table = tables[wanted.what](batch) if wanted.what in tables else None
        reasons = None
        if wanted.reasons:
            found = model.explain(batch, wanted.reasons)
            reasons = [{str(name): added for name, added in row.contributions.items()} for row in found]
        return Answers(part.lines, part.tags, predicted, table, model.classes, reasons=reasons)

    def _tested(
        self, arguments: argparse.Namespace, paths: Sequence[str], counts: PredictionCounts
    ) -> Evaluation | None:
        from linmax.models.metrics import Evaluation

        metrics = Evaluation(self.model._labels.names)
        for part in self.read(arguments, paths):
            predicted, probabilities = self.model._answers(part.data)
            metrics.add(part.data.codes, predicted)
            metrics.rate(part.data.codes, probabilities)
            counts.lines += len(part.lines)
        counts.labelled, counts.mistakes = metrics.rows, metrics.mistakes
        return metrics

    def remarks(self) -> list[str]:
        """Return remarks of the reader, and on names and labels that the model has not learned."""
        return [] if self.rows is None else [*self.rows.remarks(), *self.strangers.messages()]

    def describe(self, arguments: argparse.Namespace) -> dict[str, Any]:
        """Return what `figures_of` returns; of a checkpoint, also how far it has come."""
        from linmax.models.streams import StreamModel

        description, arrays = files.read(self.path, self.kind)
        figures: dict[str, Any] = {}
        if self.kind == "stream checkpoint":
            figures = {name: description[name] for name in ("passes", "position", "settings")}
            description = description["model"]
        model = StreamModel.from_state(description, arrays)
        more = {"scale": model._scaling.in_effect, "features": model.features}
        return (
            {"kind": self.kind}
            | figures
            | figures_of(model, model._current_model)
            | more
            | weights_of(model, arguments)
        )


class CandidatesFile(ModelFile):
    """A learner, as ``linmax learn --candidates`` and `linmax.Learner` save it."""

    model: Learner

    def check(self, arguments: argparse.Namespace, wanted: OutputOptions, form: str) -> None:
        """Refuse options that candidates do not have, and learners of fixed classes."""
        from linmax.models.online import Learner

        self._refuse_reasons(wanted)
        if wanted.what != "labels" and form != "jsonl":
            raise ValueError(
                f"each trial has its own candidates, so that {wanted.what} fill no columns; write them --as jsonl"
            )
        for option in ("format", "id"):
            if getattr(arguments, option) is not None:
                raise ValueError(
                    f"--{option} requires a model of classes, but this one chooses among candidates; remove --{option}"
                )
        self.model = Learner.load(self.path)
        if self.model.trials and not self.model._takes_candidates:
            raise ValueError(
                f"{self.path} holds a 'learner' of classes, not of candidates: linmax predict takes models of linmax "
                "learn and fuse; load it with linmax.load"
            )

    def read(self, arguments: argparse.Namespace, paths: Sequence[str]) -> Iterator[RowPart]:
        """Read JSON lines, or Vowpal Wabbit's blocks of lines, trial by trial."""
        from linmax.io.choices import read_choices
        from linmax.io.sources import Source

        self._strict = arguments.strict
        for path in paths:
            source = Source.of(path)
            self._name = source.name
            try:
                for trial in read_choices(source.lines(), arguments.label or "label", self._refuse):
                    label = None if trial.label is None else str(trial.label)
                    yield RowPart([trial.line], [label], None, trial)
            finally:
                source.close()

    def _refuse(self, line: int, reason: str) -> None:
        """Count a trial that cannot be played, or raise for the first one with ``--strict``."""
        if self._strict:
            raise ValueError(f"{self._name}, line {line}: {reason}")
        self.refusals.add(self._name, line, "no trial with candidates", reason)

    def learn(self, part: RowPart) -> Answers | None:
        """Learn one trial; return what was predicted before, or None if it is refused."""
        trial: ChoiceLine = part.data
        if trial.label is None and trial.wrong is None:
            return self.predict(part, OutputOptions())
        known = {"label": trial.label} if trial.label is not None else {"wrong": trial.wrong}
        try:
            answer = self.model.learn(**known, **trial.given)
        except (TypeError, ValueError) as error:
            self._refuse(trial.line, str(error))
            return None
        return Answers(part.lines, None, [str(answer)], None, [])

    def predict(self, part: RowPart, wanted: OutputOptions) -> Answers | None:
        """Return the winner of one trial, and the numbers or the set that are wanted."""
        learner, given, table, classes, sets = self.model, part.data.given, None, list[str](), None
        try:
            answer = learner.predict(**given, reject=wanted.reject)
            if wanted.what != "labels":
                rated = (learner.predict_proba if wanted.what == "probabilities" else learner.scores)(**given)
                table, classes = np.array([list(rated.values())]), list(map(str, rated))
            if wanted.coverage is not None:
                sets = [list(map(str, learner.predict_set(**given, coverage=wanted.coverage)))]
        except (TypeError, ValueError) as error:
            self._refuse(part.data.line, str(error))
            return None
        return Answers(part.lines, None, ["" if answer is None else str(answer)], table, classes, sets)

    def describe(self, arguments: argparse.Namespace) -> dict[str, Any]:
        """Return what `figures_of` returns, and weights."""
        from linmax.models.online import Learner

        learner = Learner.load(self.path)
        figures = {"kind": self.kind} | figures_of(learner, learner._current_model) | {"pending": learner.pending}
        return figures | weights_of(learner, arguments)


class FusionFile(ModelFile):
    """A fusion of votes or scores."""

    model: VoteFusion

    def check(self, arguments: argparse.Namespace, wanted: OutputOptions, form: str) -> None:  # noqa: ARG002
        """Load the fusion, and refuse what does not go with open answers."""
        from linmax.models.fusion import VoteFusion

        self._refuse_reasons(wanted)
        self.model = VoteFusion.load(self.path)
        self._single = self.model.is_open and wanted.what != "labels"
        if self._single and (wanted.what == "scores" or form != "jsonl"):
            raise ValueError(
                f"{self.path} has open answers: each row has its own; pass --write probabilities --as jsonl, or --sets"
            )

    def read(self, arguments: argparse.Namespace, paths: Sequence[str]) -> Iterator[RowPart]:
        """Read all tables as one; columns that are not voters are left out."""
        from linmax.cli.votes import votes_for

        with _caught(self.found):
            table = votes_for(self.model, arguments, paths)
        self.refusals.join(table.refusals)
        self.found += table.remarks
        labels = [None if label is None else str(label) for label in table.labels]
        self._name, votes = table.name, table.rows()
        rows = np.arange(len(table.lines))
        for part in rows[:, None] if self._single else [rows]:
            tags = None if table.tags is None else [table.tags[row] for row in part]
            cells = {name: column[part] for name, column in votes.items()}
            yield RowPart([table.lines[row] for row in part], [labels[row] for row in part], tags, cells)

    def predict(self, part: RowPart, wanted: OutputOptions) -> Answers:
        """Return classes, and numbers or sets if wanted."""
        fusion, votes, table, sets = self.model, part.data, None, None
        with _caught(self.found):
            if wanted.what == "probabilities":
                table = fusion.predict_proba(votes)
            elif wanted.what == "scores":
                table = fusion.decision_function(votes)
                if table.ndim == 1:  # of two classes
                    table = np.column_stack([np.zeros(len(table)), table])
            predicted = ["" if name is None else str(name) for name in fusion.predict(votes, reject=wanted.reject)]
            if wanted.coverage is not None:
                sets = [list(map(str, found)) for found in fusion.predict_set(votes, wanted.coverage)]
        names = list(map(str, fusion.classes_.tolist()))
        if fusion.is_open:
            if isinstance(table, list):
                names = [NONE_OF_THESE if name is None else str(name) for name in table[0]]
                table = np.array([list(table[0].values())])
        else:
            self._remark_new(predicted, names)
        assert not isinstance(table, list)
        return Answers(part.lines, part.tags, predicted, table, names, sets)

    def describe(self, arguments: argparse.Namespace) -> dict[str, Any]:  # noqa: ARG002
        """Return counts, members, calibration and the report."""
        from linmax.models.fusion import VoteFusion
        from linmax.models.vote_table import side_names

        fusion = VoteFusion.load(self.path)
        model = fusion._current_model
        beta, guess = model.calibration
        # before there is a reliability the calibration is chance
        calibration = {} if model.reliability is None else {"sharpness": beta, "guess rate": guess}
        figures = {"kind": self.kind} | figures_of(model, model) | {"classes": list(map(str, fusion.classes_.tolist()))}
        figures |= {"by": side_names(fusion), "normalizations": fusion.normalizations, "calibration": calibration}
        return figures | {"report": fusion.report()}

    def _remark_new(self, predicted: Sequence[str], known: Sequence[str]) -> None:
        """Remark on answers that were never seen in learning."""
        from linmax.models.vote_table import VOTES_SHOWN

        counts = Counter(predicted)
        for name in ["", *known]:
            counts.pop(name, None)
        if counts:
            shown = ", ".join(f"{answer!r} ({often:,d})" for answer, often in counts.most_common(VOTES_SHOWN))
            self.found.append(
                f"{self._name}: {counted(counts.total(), 'row')} answered with a class that the fusion had never met: "
                f"{shown}; if it means no answer, leave these votes empty"
            )


MODEL_FILES: dict[str, type[ModelFile]] = {
    "stream model": StreamFile,
    "stream checkpoint": StreamFile,
    "learner": CandidatesFile,
    "vote fusion": FusionFile,
}


class _caught(warnings.catch_warnings):
    """Collect the messages of warnings instead of showing them."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__(record=True)
        self.messages = messages

    def __enter__(self) -> None:
        self.log = super().__enter__()
        warnings.simplefilter("always", UserWarning)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self.messages += [str(warning.message) for warning in self.log or ()]


@dataclass
class Strangers:
    """Counts of attributes and labels that a model has not learned."""

    classes: list[str]
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

    def messages(self) -> list[str]:
        """Return warnings, if the model knows few of the attributes by name, or not all of the classes."""
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


class MemberFigure(NamedTuple):
    """A member of a combination or a pool: its name, its weight or mistakes, and these as text."""

    name: str
    value: float
    text: str


def members_of(model: Model) -> list[MemberFigure]:
    """Return the members that run side by side: mistakes in a combination, weights in a pool.

    The pool for votes gives shares that sum to 1, the one for attributes factors of either sign.
    """
    found = [MemberFigure(one.name, one.mistakes, f"{one.mistakes:,d} mistakes") for one in model.members]
    for node in model.engine.top.walk():
        if "votes" in node.pools:
            shares = node.pools["votes"].members
            found += [MemberFigure(name, share, f"{100.0 * share:.1f} %") for name, share in shares.items()]
    members = [] if model.pool is None else model.pool.members()
    both = len({member.sparse for member in members}) > 1
    for member in members:
        kind = "" if not both else " (sparse)" if member.sparse else " (dense)"
        found.append(MemberFigure(member.name + kind, member.weight, f"{member.weight:+.3f}"))
    return found


def decided_text(decided: Mapping[str, str | int | float]) -> str:
    """Return one sentence about what the pool for attributes decided."""
    reasons = []
    if "trials looked at" in decided:
        share, trials = 100.0 * float(decided["share not 0"]), int(decided["trials looked at"])
        first = f"first {trials:,} trials" if trials > 1 else "first trial"
        reasons.append(f"{share:.1f} % of them were not 0 in the {first}")
    if "columns of numbers" in decided:
        numbers, few = decided["columns of numbers"], decided["columns of few values"]
        reasons.append(f"columns of numbers: {numbers}, of few values: {few}")
    why = f" ({'; '.join(reasons)})" if reasons else ""
    return f"attributes are taken for {decided['attributes are']}, as {decided['decided by']} decided{why}"


def figures_of(given: Any, model: Model | None) -> dict[str, Any]:
    """Return learner, counts, classes and members of any kind of model; ``model`` is the one under it."""
    figures = {
        "learner": str(given.learner),
        "trials": given.trials,
        "mistakes": given.mistakes,
        "updates": given.updates,
        "classes": list(map(str, given.classes)),
    }
    if model is None:
        return figures
    return figures | {"decided": (model.pool and model.pool.decided()) or None, "members": members_of(model)}


def weights_of(model: StreamModel | Learner, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return weights of voters, raters and thresholds, and the attributes with the largest weights of each class."""
    try:
        weights = model.weights
    except ValueError as error:  # a combination
        return {"weights": str(error)}
    parts = {part: {str(name): weight for name, weight in weights[part].items()} or None for part in WEIGHT_PARTS}
    names, chosen, found = model.attributes, listed(arguments.classes), dict[str, dict[str, float]]()
    for name, column in zip(map(str, model.classes), weights.arrays.attributes.T, strict=True):
        if not chosen or name in chosen:
            order = np.argsort(-np.abs(column), kind="stable")[: arguments.top].tolist()
            found[name] = {str(names[i]): float(column[i]) for i in order if column[i] != 0.0}
    return parts | {"weights": found}
