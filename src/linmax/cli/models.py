"""Model files as commands use them: one interface to streams, fusions and learners of candidates.

`open_model` returns an object with ``read`` (the rows of data files, in parts), ``predict`` (the answers for a part)
and ``describe`` (figures for people and programs). No command needs to know which kind of model a file holds.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from linmax.cli.predictions import Answers, OutputOptions
from linmax.cli.reading import counted, listed, reading_options, shown_name, some
from linmax.cli.votes import (
    VOTES_SHOWN,
    Columns,
    as_ballots,
    in_places,
    leave_out,
    match,
    of_strange_votes,
    table_of,
)

if TYPE_CHECKING:
    import numpy as np

    from linmax.io.choices import ChoiceLine
    from linmax.models.fusion import OnLineFusion
    from linmax.models.model import Model
    from linmax.models.online import Learner
    from linmax.models.streams import Batch, Stream

__all__ = ["CandidateTrials", "ModelFile", "RowPart", "Strangeness", "decided_text", "members_of", "open_model"]

CLASSES_SHOWN = 5


@dataclass
class RowPart:
    """Rows that are predicted together: their line numbers, labels where there are any, and tags."""

    lines: list[int]
    labels: list[str | None]
    tags: list[str] | None
    data: Any


def open_model(path: str) -> ModelFile:
    """Open a file that linmax saved; a damaged file, or one of another program, is refused by name."""
    from linmax.util.files import kind_of

    kind = kind_of(path)
    return MODEL_FILES.get(kind, ModelFile)(path, kind)


class ModelFile:
    """Any file that linmax saved. Kinds that predict have their own class."""

    def __init__(self, path: str, kind: str) -> None:
        from linmax.io.options import Refusals

        self.path, self.kind, self.refusals = path, kind, Refusals()
        self.found: list[str] = []  # remarks on the data so far

    def check(self, arguments: argparse.Namespace, wanted: OutputOptions, form: str) -> None:  # noqa: ARG002
        """Raise ValueError if this model cannot predict as the options ask."""
        raise ValueError(f"{self.path} holds a {self.kind!r}; linmax predict requires a model of linmax learn or fuse")

    def read(self, arguments: argparse.Namespace) -> Iterator[RowPart]:
        """Yield the rows of the data files of a command; unreadable lines are counted in ``refusals``."""
        raise NotImplementedError

    def predict(self, part: RowPart, wanted: OutputOptions) -> Answers | None:
        """Return the answers for some rows; None if they are refused."""
        raise NotImplementedError

    def nothing(self, wanted: OutputOptions) -> Answers:
        """Return the answers for no rows, which name the columns of the output."""
        raise NotImplementedError

    def remarks(self) -> list[str]:
        """Return remarks on the data that were read."""
        return list(dict.fromkeys(self.found))

    def describe(self, arguments: argparse.Namespace) -> dict[str, Any]:  # noqa: ARG002
        """Return what the file holds: its plain data, and the shapes of its arrays."""
        from linmax.util import files

        description, arrays = files.read(self.path, self.kind)
        shapes = {name: list(array.shape) for name, array in sorted(arrays.items())}
        return {"kind": self.kind, **description, "arrays": shapes}


class StreamFile(ModelFile):
    """A model of ``linmax learn``, or a checkpoint of one."""

    rows: Stream | None = None  # the data, once they are read

    def check(self, arguments: argparse.Namespace, wanted: OutputOptions, form: str) -> None:  # noqa: ARG002
        """Refuse checkpoints, and sets of classes."""
        if self.kind == "stream checkpoint":
            raise ValueError(f"{self.path} holds a {self.kind!r}, not a 'stream model'; pass the file of learn --model")
        if wanted.coverage is not None:
            raise ValueError(f"--sets needs a fusion, saved by linmax fuse; {arguments.model} is none: leave it out")

    def read(self, arguments: argparse.Namespace) -> Iterator[RowPart]:
        """Read as the data were read that the model learned from."""
        from linmax.models.streams import StreamModel, stream

        self.model, data = StreamModel.load(self.path), arguments.data
        source = data[0] if len(data) == 1 else [Path(name) for name in data]
        options = reading_options(arguments)
        self.rows = stream(source, model=self.model, grow=False, id=arguments.id, **options)
        self.refusals, self.strange = self.rows.refusals, Strangeness(self.model.classes)
        for batch in self.rows:
            self.strange.add(batch)
            names = [*batch.classes, None]
            yield RowPart(batch.lines.tolist(), [names[code] for code in batch.codes.tolist()], batch.tags, batch)

    def predict(self, part: RowPart, wanted: OutputOptions) -> Answers:
        """Return classes, and scores or probabilities if wanted."""
        model, batch = self.model, part.data
        names = [*model.labels.names, ""]
        predicted = [names[code] for code in model.judge(model.scaled(batch, learn=False)).tolist()]
        if wanted.reject is not None:
            sure = model.predict_proba(batch).max(axis=1, initial=0.0) >= 1.0 - wanted.reject
            predicted = [name if known else "" for name, known in zip(predicted, sure.tolist(), strict=True)]
        tables = {"scores": model.scores, "probabilities": model.predict_proba}
        table = tables[wanted.what](batch) if wanted.what in tables else None
        return Answers(part.lines, part.tags, predicted, table, model.classes)

    def nothing(self, wanted: OutputOptions) -> Answers:
        """Return no rows of all classes."""
        import numpy as np

        classes = self.model.classes
        return Answers([], None, [], None if wanted.what == "labels" else np.zeros((0, len(classes))), classes)

    def remarks(self) -> list[str]:
        """Return remarks of the reader, and on names and labels that the model has not learned."""
        return [] if self.rows is None else [*self.rows.remarks(), *self.strange.messages()]

    def describe(self, arguments: argparse.Namespace) -> dict[str, Any]:
        """Return counts, members and the largest weights of each class."""
        from linmax.models.streams import StreamModel
        from linmax.util import files

        description, arrays = files.read(self.path, self.kind)
        figures: dict[str, Any] = {"kind": self.kind}
        if self.kind == "stream checkpoint":
            figures |= {name: description[name] for name in ("passes", "position", "settings")}
            description = description["model"]
        model = StreamModel.from_state(description, arrays)
        figures |= {
            "learner": str(model.learner),
            "scale": model.scaling.in_effect,
            "trials": model.trials,
            "updates": model.updates,
            "features": model.features,
            "classes": model.classes,
        }
        if model.model is not None:
            figures |= {"decided": model.decided or None, "members": members_of(model.model)}
        try:
            weights = model.weights
        except ValueError as error:  # a combination
            return figures | {"weights": str(error)}
        table = weights.arrays.attributes
        columns = {name: table[:, c] for c, name in enumerate(model.classes)}
        return figures | {
            "thresholds": weights["thresholds"] or None,
            "weights": _largest_by_class(columns, model.attributes, arguments),
        }


class CandidatesFile(ModelFile):
    """A learner, as ``linmax learn --candidates`` and `linmax.Learner` save it."""

    def check(self, arguments: argparse.Namespace, wanted: OutputOptions, form: str) -> None:
        """Refuse options that candidates do not have, and learners of fixed classes."""
        from linmax.models.online import Learner

        if wanted.what != "labels" and form != "jsonl":
            raise ValueError(
                f"each trial has its own candidates, so that {wanted.what} fill no columns; write them --as jsonl"
            )
        for option in ("format", "id"):
            if getattr(arguments, option) is not None:
                raise ValueError(f"--{option} does not go with a model that chooses among candidates; leave it out")
        self.learner: Learner = Learner.load(self.path)
        if self.learner.trials and not self.learner.takes_candidates:
            raise ValueError(
                f"{self.path} holds a 'learner' of classes, not of candidates: linmax predict takes models of linmax "
                "learn and fuse; load it with linmax.load"
            )

    def read(self, arguments: argparse.Namespace) -> Iterator[RowPart]:
        """Read JSON lines, or Vowpal Wabbit's blocks of lines, trial by trial."""
        self.trials = CandidateTrials(arguments)
        self.refusals = self.trials.refusals
        for trial in self.trials.read(arguments.data):
            yield RowPart([trial.line], [None if trial.label is None else str(trial.label)], None, trial)

    def predict(self, part: RowPart, wanted: OutputOptions) -> Answers | None:
        """Return the winner of one trial, and the numbers or the set that are wanted."""
        import numpy as np

        learner, given = self.learner, part.data.given
        try:
            rated = (learner.predict_proba if wanted.what == "probabilities" else learner.scores)(**given)
            answer = learner.predict(**given, reject=wanted.reject)
            sets = None
            if wanted.coverage is not None:
                sets = [list(map(str, learner.predict_set(**given, coverage=wanted.coverage)))]
        except (TypeError, ValueError) as error:
            self.trials.refuse(part.data.line, str(error))
            return None
        table = None if wanted.what == "labels" else np.array([list(rated.values())])
        return Answers(part.lines, None, ["" if answer is None else str(answer)], table, list(map(str, rated)), sets)

    def nothing(self, wanted: OutputOptions) -> Answers:  # noqa: ARG002
        """Return no rows; candidates have no columns."""
        return Answers([], None, [], None, [])

    def describe(self, arguments: argparse.Namespace) -> dict[str, Any]:
        """Return counts, members and weights."""
        from linmax.models.online import Learner

        learner = Learner.load(self.path)
        figures = {
            "kind": self.kind,
            "learner": str(learner.learner),
            "trials": learner.trials,
            "mistakes": learner.mistakes,
            "updates": learner.updates,
            "pending": learner.pending,
            "classes": [str(name) for name in learner.classes],
        }
        if learner.model is not None:
            pool = learner.model.pool
            figures |= {"decided": (pool and pool.decided()) or None, "members": members_of(learner.model)}
        try:
            weights = learner.weights
        except ValueError as error:  # a combination
            return figures | {"weights": str(error)}
        rows = [list(row.values()) for row in weights["attributes"].values()]
        columns = {str(name): [row[place] for row in rows] for place, name in enumerate(learner.classes)}
        parts = {part: {str(name): weight for name, weight in weights[part].items()} for part in WEIGHT_PARTS}
        return figures | parts | {
            "weights": _largest_by_class(columns, list(map(str, weights["attributes"])), arguments)
        }  # fmt: skip


WEIGHT_PARTS = ("voters", "raters", "thresholds")


class FusionFile(ModelFile):
    """A fusion of votes or scores."""

    def check(self, arguments: argparse.Namespace, wanted: OutputOptions, form: str) -> None:  # noqa: ARG002
        """Load the fusion, which answers with everything."""
        from linmax.models.fusion import OnLineFusion

        self.fusion: OnLineFusion = OnLineFusion.load(self.path)

    def read(self, arguments: argparse.Namespace) -> Iterator[RowPart]:
        """Read whole tables; columns that are not voters are left out."""
        import numpy as np

        fusion = self.fusion
        for path in arguments.data:
            needed = [name for name in (arguments.id, arguments.label) if name]
            table = table_of(arguments, path, needed, [*fusion.voters_, *_sides(fusion)])
            columns, rows = table.columns, len(table.lines)
            self.refusals.join(table.refusals)
            tags = None if not arguments.id else ["" if cell is None else str(cell) for cell in columns[arguments.id]]
            labels = columns.pop(arguments.label) if arguments.label else [None] * rows
            with _caught(self.found):
                votes = self._votes(shown_name(path), columns, np.arange(rows))
            named = [None if label is None else str(label) for label in labels]
            part = RowPart(table.lines, named, tags, votes)
            self._name = shown_name(path)
            yield part

    def predict(self, part: RowPart, wanted: OutputOptions) -> Answers:
        """Return classes, and numbers or sets if wanted."""
        with _caught(self.found):
            answers = wanted.answers(self.fusion, part.data, part.lines, part.tags)
        self.found += _new_answers(self.fusion, answers.predicted, self._name)
        self._last = answers
        return answers

    def nothing(self, wanted: OutputOptions) -> Answers:  # noqa: ARG002
        """Return the last answers, which have the columns."""
        return self._last

    def describe(self, arguments: argparse.Namespace) -> dict[str, Any]:  # noqa: ARG002
        """Return counts, members, calibration and the report."""
        from linmax.models.fusion import OnLineFusion

        fusion = OnLineFusion.load(self.path)
        model, by = fusion.model, fusion.by
        beta, guess = model.calibration
        judged = model.reliability is not None  # before that, it is chance
        return {
            "kind": self.kind,
            "learner": str(model.learner),
            "trials": model.trials,
            "mistakes": model.mistakes,
            "classes": [str(name) for name in fusion.classes_.tolist()],
            "by": [] if by is None else [str(by)] if isinstance(by, (str, int)) else list(by),
            "normalizations": fusion.normalizations,
            "members": members_of(model),
            "calibration": {"sharpness": beta, "guess rate": guess} if judged else {},
            "report": fusion.report(),
        }

    def _votes(self, name: str, columns: Columns, rows: np.ndarray) -> Any:
        """The votes or scores of the voters that the fusion knows, and its side columns."""
        fusion, by = self.fusion, _sides(self.fusion)
        for side in by:
            if side not in columns:
                raise ValueError(f"{name} has no column {side!r}, by which the fusion was learned; add it")
        known = set(fusion.voters_)
        voters = {column: cells for column, cells in columns.items() if column in known and column not in by}
        raters = {column: cells for column, cells in columns.items() if column.rpartition(":")[0] in known}
        present = set(voters) | {column.rpartition(":")[0] for column in raters}
        if not present:
            raise ValueError(
                f"{name} has no column of a voter of the fusion, such as {fusion.voters_[0]!r}; it has "
                f"{', '.join(columns)}"
            )
        absent = [voter for voter in fusion.voters_ if voter not in present]
        if absent:
            self.found.append(f"{name}: {len(absent)} of {len(known)} voters are absent, and abstain: {some(absent)}")
        from linmax.data.score_columns import rated_columns

        scored = rated_columns(name, raters) if raters and not voters else None
        if scored is not None:
            return in_places(scored, fusion.classes_.tolist(), name)
        return as_ballots(self._known_votes(name, voters), {side: columns[side] for side in by}, rows)

    def _known_votes(self, name: str, voters: Columns) -> Columns:
        """The votes as the fusion takes them; those that name no class are remarked on."""
        from linmax.data.blocks import silent_votes

        fusion = self.fusion
        classes = fusion.classes_.tolist()
        remarks = match(voters, classes)
        named = {vote for votes in voters.values() for vote in votes if vote is not None}
        silent = named.difference(classes)
        if fusion.classes is None:  # others may be right
            silent &= set(silent_votes(fusion.abstain))
        remarks += of_strange_votes(leave_out(voters, named - silent), classes, "no class of the fusion")
        self.found += [f"{name}: {remark}" for remark in remarks]
        return voters


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

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.messages += [str(warning.message) for warning in self.log or ()]


def _sides(fusion: OnLineFusion) -> list[str]:
    return [] if fusion.by is None else [fusion.by] if isinstance(fusion.by, str) else [str(side) for side in fusion.by]


def _new_answers(fusion: OnLineFusion, predicted: Sequence[str], name: str) -> list[str]:
    """A remark on answers that were never seen in learning, if there are any."""
    counts = Counter(predicted)
    for known in ["", *map(str, fusion.classes_.tolist())]:
        counts.pop(known, None)
    if not counts:
        return []
    shown = ", ".join(f"{answer!r} ({often:,d})" for answer, often in counts.most_common(VOTES_SHOWN))
    return [
        f"{name}: {counted(counts.total(), 'row')} answered with a class that the fusion had never met: {shown}; if it "
        "means no answer, leave these votes empty"
    ]


class CandidateTrials:
    """Trials with candidates, read from files; those that cannot be played are counted, or end it with --strict."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        from linmax.io.options import Refusals

        self.arguments, self.refusals = arguments, Refusals()
        self._name = ""

    def refuse(self, line: int, reason: str) -> None:
        """Count a trial of the file at hand that cannot be played."""
        if self.arguments.strict:
            raise ValueError(f"{self._name}, line {line}: {reason}")
        self.refusals.add(self._name, line, "no trial with candidates", reason)

    def read(self, paths: Sequence[str]) -> Iterator[ChoiceLine]:
        """Yield the trials of these files."""
        from linmax.io.choices import read_choices
        from linmax.io.sources import Source

        for path in paths:
            source = Source.of(path)
            self._name = source.name
            try:
                yield from read_choices(source.lines(), self.arguments.label or "label", self.refuse)
            finally:
                source.close()

    def play(self, paths: Sequence[str], play: Callable[[ChoiceLine], None]) -> None:
        """Call a function with each trial; those for which it raises an error are refused."""
        for trial in self.read(paths):
            try:
                play(trial)
            except (TypeError, ValueError) as error:
                self.refuse(trial.line, str(error))


@dataclass
class Strangeness:
    """Counts of attributes and labels that a model has not learned."""

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


def _largest_by_class(
    columns: Mapping[str, Any], names: Sequence[str], arguments: argparse.Namespace
) -> dict[str, dict[str, float]]:
    """The attributes with the largest weights of each class that is wanted."""
    import numpy as np

    chosen = listed(arguments.classes)
    found = {}
    for name, column in columns.items():
        if not chosen or name in chosen:
            weights = np.asarray(column, float)
            order = np.argsort(-np.abs(weights), kind="stable")[: arguments.top]
            found[name] = {names[i]: float(weights[i]) for i in order.tolist() if weights[i] != 0.0}
    return found
