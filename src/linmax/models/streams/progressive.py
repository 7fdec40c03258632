"""Progressive validation of a stream: every row is predicted, counted, and then learned from; at any moment all can be
saved, and continued elsewhere as if nothing had happened.

Rows may be held out (counted, never learned from), labels may come some rows later, and the whole may be repeated.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from linmax.io.batch import Batch
from linmax.io.read_options import Position
from linmax.models.metrics import Evaluation, balanced_weights
from linmax.models.streams.stream_model import StreamModel, weights_of
from linmax.util import files
from linmax.util.parts import by_part

__all__ = ["CHECKPOINT", "Milestone", "PassCounts", "Progressive"]

CHECKPOINT = "stream checkpoint"
STREAM_POINTS = 2048  # of the mistake curve


@dataclass
class PassCounts:
    """Counts of one pass."""

    trials: int = 0
    mistakes: int = 0
    unlabelled: int = 0
    held_out: int = 0
    held_out_mistakes: int = 0

    @property
    def error(self) -> float | None:
        """Share of mistakes."""
        return self.mistakes / self.trials if self.trials else None

    @property
    def held_out_error(self) -> float | None:
        """Counts of the held-out rows."""
        return self.held_out_mistakes / self.held_out if self.held_out else None


@dataclass(frozen=True)
class Milestone:
    """The state of things when the trials have doubled."""

    trials: int
    mistakes: int
    since_trials: int  # since the last one
    since_mistakes: int
    label: str
    predicted: str
    features: int  # of the row


@dataclass(frozen=True)
class BestPass:
    """A model as it was after a pass, and its mistakes on the rows held out."""

    number: int  # of the pass, from 1
    mistakes: int
    description: dict[str, Any]
    arrays: dict[str, np.ndarray]


@dataclass
class Progressive:
    """A model at work on a stream.

    Parameters
    ----------
    model
        What learns.
    holdout
        Every holdout-th labelled row is predicted and never learned from; 0 for none.
    watch
        Called with each `Milestone`.
    balanced
        Weigh classes equally: a row counts n / (k n_c) times, by the labels up to it (see `balanced_weights`).
    """

    model: StreamModel
    holdout: int = 0
    watch: Callable[[Milestone], None] | None = None
    passes: list[PassCounts] = field(default_factory=lambda: [PassCounts()])
    position: Position = field(default_factory=Position)
    settled: dict[str, Any] = field(default_factory=dict)
    kind: str | None = None
    points: list[tuple[int, int]] = field(default_factory=list)
    every: int = 1  # trials between points
    rows: int = 0  # of this pass, those without a label too
    last: tuple[int, int] = (0, 0)  # trials and mistakes at the last milestone
    best: BestPass | None = None  # the model after the pass with the fewest mistakes on rows held out
    balanced: bool = False
    labels: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # rows of each class so far

    def __post_init__(self) -> None:
        self.counted = Evaluation(self.model._labels.names)

    @property
    def counts(self) -> PassCounts:
        """Counts of the present pass."""
        return self.passes[-1]

    def play(self, batch: Batch) -> np.ndarray:
        """Predict, count and learn a batch; returns the label predicted for each row, as its place in the names."""
        weights = weights_of(batch)
        held_out = self._held_out(batch)
        if self.balanced:
            weights = (batch.codes >= 0 if weights is None else weights) * balanced_weights(batch.codes, self.labels)
            counts = np.bincount(batch.codes[batch.codes >= 0], minlength=len(self.labels))
            counts[: len(self.labels)] += self.labels
            self.labels = counts
        if held_out is not None:
            weights = np.where(held_out, 0.0, 1.0 if weights is None else weights)
        instances = self.model._scaled(batch)
        predicted = self.model._play(instances, batch.codes, weights, first_pass=len(self.passes) == 1)
        self._count(batch, predicted, held_out)
        self.position, self.settled = batch.position, batch.settled
        return predicted

    def _held_out(self, batch: Batch) -> np.ndarray | None:
        """Which rows are held out: the same in every pass."""
        first = self.rows
        self.rows += len(batch)
        if not self.holdout:
            return None
        return (np.arange(first + 1, self.rows + 1) % self.holdout == 0) & (batch.codes >= 0)

    def finish_pass(self, again: bool) -> None:
        """End a pass over the stream; with ``again`` another one begins."""
        if again:
            self.passes.append(PassCounts())
            self.position, self.rows = Position(), 0

    def keep_best(self) -> None:
        """At the end of a pass: keep a copy of the model if no pass before had as few mistakes on rows held out."""
        made = self.counts.held_out_mistakes
        if self.best is None or made < self.best.mistakes:
            description, arrays = self.model.state()
            copied = {name: np.array(array) for name, array in arrays.items()}
            self.best = BestPass(len(self.passes), made, description, copied)

    def return_to_best(self) -> int | None:
        """Go back to the model that was kept, if a later pass was no better; returns the pass that it is from."""
        best, self.best = self.best, None
        if best is None or best.number == len(self.passes):
            return None
        self.model = StreamModel.from_state(best.description, best.arrays)
        return best.number

    # -- counting -------------------------------------------------------------------------------------------------

    def _count(self, batch: Batch, predicted: np.ndarray, held_out: np.ndarray | None) -> None:
        counts, first = self.counts, len(self.passes) == 1
        labelled = batch.codes >= 0
        counts.unlabelled += int(len(batch) - labelled.sum())
        wrong = predicted != batch.codes
        if held_out is not None:
            counts.held_out += int(held_out.sum())
            counts.held_out_mistakes += int((wrong & held_out).sum())
            labelled &= ~held_out
        places = np.flatnonzero(labelled & (batch.importance > 0.0))
        mistakes = counts.mistakes + np.cumsum(wrong[places])
        if first and len(places):
            self.counted.names = self.model._labels.names
            self.counted.add(batch.codes[places], predicted[places])
            self._milestones(batch, predicted, places, mistakes)
            self._curve(mistakes)
        counts.trials += len(places)
        counts.mistakes = int(mistakes[-1]) if len(places) else counts.mistakes

    def _milestones(self, batch: Batch, predicted: np.ndarray, places: np.ndarray, mistakes: np.ndarray) -> None:
        """Say when the trials have doubled."""
        begin = self.counts.trials
        names = self.model._labels.names
        target = max(1, 2 * self.last[0])
        while target <= begin + len(places):
            at = target - begin - 1
            row, total = int(places[at]), int(mistakes[at])
            features = len(batch.dense_names) + int(batch.indptr[row + 1] - batch.indptr[row])
            answer = names[predicted[row]] if predicted[row] >= 0 else "-"
            made = Milestone(
                target, total, target - self.last[0], total - self.last[1], names[batch.codes[row]], answer, features
            )
            self.last = (target, total)
            if self.watch is not None:
                self.watch(made)
            target *= 2

    def _curve(self, mistakes: np.ndarray) -> None:
        """Keep points of the mistake curve, evenly spread, at most STREAM_POINTS of them."""
        begin = self.counts.trials
        end = begin + len(mistakes)
        trials = np.arange((begin // self.every + 1) * self.every, end + 1, self.every)
        self.points += zip(trials.tolist(), mistakes[trials - begin - 1].tolist(), strict=True)
        while len(self.points) > STREAM_POINTS:
            self.points = self.points[1::2]
            self.every *= 2

    @property
    def metrics(self) -> Evaluation:
        """Figures of the first pass; those of probabilities are of recent trials, predicted before their labels."""
        found = Evaluation(self.model._labels.names)
        found.join(self.counted)
        model = self.model._current_model
        foreseen = None if model is None else model.foreseen
        if foreseen is not None:
            probabilities, labels = foreseen
            found.rate(labels, probabilities)
        return found

    # -- state ----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], settings: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
        """Write all to a checkpoint; ``settings`` say what the run was asked, ``extra`` is kept along."""
        description, arrays = self.model.state()
        description = {
            "model": description,
            "settings": dict(settings),
            "extra": dict(extra),
            "passes": [asdict(counts) for counts in self.passes],
            "position": asdict(self.position),
            "settled": self.settled,
            "kind": self.kind,
            "points": self.points,
            "every": self.every,
            "rows": self.rows,
            "last": self.last,
            "holdout": self.holdout,
            "counted": self.counted.state(),
            "labels": self.labels.tolist(),
        }
        if self.best is not None:
            description["best"] = [self.best.number, self.best.mistakes, self.best.description]
            arrays = arrays | {f"best.{name}": array for name, array in self.best.arrays.items()}
        files.write(path, CHECKPOINT, description, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> tuple[Progressive, dict[str, Any], dict[str, Any]]:
        """Contents of a checkpoint: the work to continue, the settings and what was stored with them."""
        description, arrays = files.read(path, CHECKPOINT)
        try:
            made = cls(
                StreamModel.from_state(description["model"], arrays),
                int(description["holdout"]),
                None,
                [PassCounts(**counts) for counts in description["passes"]],
                Position(**description["position"]),
                description["settled"],
                description["kind"],
                [(int(t), int(m)) for t, m in description["points"]],
                int(description["every"]),
                int(description["rows"]),
                (int(description["last"][0]), int(description["last"][1])),
            )
            made.counted = Evaluation.from_state(made.model._labels.names, description["counted"])
            made.labels = np.array(description["labels"], np.int64)
            if "best" in description:
                number, mistakes, kept = description["best"]
                made.best = BestPass(int(number), int(mistakes), kept, by_part(arrays)["best"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged: {error!r}") from None
        return made, description["settings"], description["extra"]


def fingerprint(path: str | os.PathLike[str]) -> str:
    """Return the fingerprint of a file: a hash of its first bytes."""
    with Path(path).open("rb") as file:
        return hashlib.sha256(file.read(2**16)).hexdigest()[:16]
