"""The model from which a pass starts, as a process keeps it from pass to pass.

A worker holds it twice: as it is, and once more to learn from a shard. Where the shard changed few rows
(`linmax.cluster.rows`), these are taken, and the copy gets back what they were; else the copy itself is the result, and
the next shard gets a new one. After the pass the rows that were mixed are written over both. What is held spares work
and changes no result: all of it follows from the arguments of a task.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np

from linmax.cluster.addresses import opened
from linmax.cluster.differences import StateDifference
from linmax.cluster.model_states import is_fusion
from linmax.cluster.rows import Base, ModelRows, apply_rows, few_rows_change, others_changed, whole
from linmax.cluster.shards import Refused, ShardCounts, State, same_names, why
from linmax.cluster.voting import HeldFusion
from linmax.io.batches import Batch
from linmax.io.vocabulary import Vocabulary
from linmax.models.streams import StreamModel, stream
from linmax.models.streams.model import weights_of

__all__ = ["Held", "Learned", "borrowed", "forget"]

Learned = State | ModelRows | StateDifference  # a model, or how it differs from the one it started from


class Held:
    """The model from which pass ``number`` starts."""

    def __init__(self, number: int, state: State) -> None:
        self.number, self.state = number, state
        self._owned = False  # whether the arrays are ours to change, not those of a task's result
        self._names: Vocabulary | None = None
        self._base: Base | None = None
        self._model: StreamModel | None = None  # the copy to learn with
        self._arrays: dict[str, np.ndarray] = {}  # those of the copy, as long as it is of the form
        self._form: ModelForm | None = None
        self._by_rows = False  # whether a shard changes few of its rows
        self._scaled = np.zeros(0, np.int64)  # what its scaling has counted before a shard

    def advance(self, mixed: Learned) -> None:
        """Go on to the next pass, which starts from what was mixed in this one."""
        self.number += 1
        if isinstance(mixed, StateDifference):
            mixed = mixed.applied(self.state)
        if not isinstance(mixed, ModelRows):
            self.state, self._owned, self._base, self._model = mixed, False, None, None
            if self._names is not None and not same_names(mixed, self._names):
                self._names = None
            return
        if not self._owned:
            description, arrays = self.state
            self.state, self._owned = (dict(description), {name: array.copy() for name, array in arrays.items()}), True
            self._base = None
        if apply_rows(mixed, self.base()):
            self._model = None
        elif self._model is not None:
            self._put_back(mixed.columns, self._model)
            self._model.scaling.recount()
            self._scaled = self._model.scaling.counts.copy()

    def base(self) -> Base:
        """The model as rows are taken from it."""
        if self._base is None:
            model = self.looked_at().model
            assert model is not None
            self._base = Base(self.state, model)
        return self._base

    def looked_at(self) -> StreamModel:
        """The model, not to be changed."""
        return StreamModel.from_state(*self.state, self._vocabulary(), copied=False)

    def made(self, learned: Learned) -> StreamModel:
        """A model that is only looked at; if it met no new names, it shares those it started with."""
        if isinstance(learned, StateDifference):
            learned = learned.applied(self.state)
        state = whole(learned, self.base()) if isinstance(learned, ModelRows) else learned
        known = self._vocabulary()
        return StreamModel.from_state(*state, known if same_names(state, known) else None, copied=False)

    def state_of(self, model: StreamModel) -> State:
        """The state of a model."""
        return model.state()

    def _vocabulary(self) -> Vocabulary:
        if self._names is None:
            description, arrays = self.state
            parts = {part: arrays[f"names.{part}"] for part in ("names", "offsets")}
            self._names = Vocabulary.from_arrays(parts, description["hash_bits"])
        return self._names

    def _put_back(self, columns: np.ndarray, model: StreamModel) -> None:
        """Give the copy these rows of the start."""
        base = self.base()
        base.write(base.rows(columns), self._arrays)
        model.scaling.counts[1:] = self._scaled[1:]  # the first is among the arrays

    def learn(
        self, source: Any, reading: Mapping[str, Any], by_rows: bool
    ) -> tuple[State | ModelRows, ShardCounts] | Refused:
        """Go through one shard, once; ``by_rows`` if the rows that it changes may be all that is returned."""
        began = time.perf_counter()
        if self._model is None:
            self._model = StreamModel.from_state(*self.state, self._vocabulary())
            self._arrays, self._form = self._model.state()[1], ModelForm(self._model)
            self._by_rows = few_rows_change(self._model.engine)
            self._scaled = self._model.scaling.counts.copy()
        model, self._model = self._model, None
        names, updates, tally = len(model.vocabulary), model.updates, ShardTally(model)
        try:
            with opened(source) as file:
                rows = stream(file, model=model, prefetch=False, **reading)
                for batch in rows:
                    tally.play(batch)
        except (ValueError, TypeError, OverflowError, FileNotFoundError, IsADirectoryError, ImportError) as error:
            self._know_again(names)
            return Refused(why(error))
        self._know_again(names)
        if not tally.trials and rows.refusals.total:
            file, line, reason = rows.refusals.first[0]
            return Refused(f"not one of {rows.refusals.total:,} lines could be read; {file}, line {line}: {reason}")
        updates = model.updates - updates
        changed = self._changed(model, tally) if by_rows and self._names is not None else model.state()
        refused = "".join(f"{file}, line {line}: {reason}" for file, line, reason in rows.refusals.first[:1])
        return changed, ShardCounts(
            tally.trials, tally.mistakes, updates, tally.unlabelled, rows.refusals.total,
            time.perf_counter() - began, refused, list(rows.notes),
        )  # fmt: skip

    def _know_again(self, names: int) -> None:
        """Keep the lookup table of names unless the shard has added some."""
        if self._names is not None and len(self._names) != names:
            self._names = None

    def _changed(self, model: StreamModel, tally: ShardTally) -> State | ModelRows:
        """What the shard changed; the model learns on if it can be put back."""
        if not self._by_rows or ModelForm(model) != self._form:
            return model.state()
        columns = tally.columns()
        if 2 * columns.size >= model.columns:
            return model.state()
        base, live = self.base(), self._arrays
        rows = base.rows(columns, live)
        rows = ModelRows(
            columns, {name: array.copy() if array is live[name] else array for name, array in rows.arrays.items()}
        )
        if not others_changed(rows, base):
            self._model = model
            self._put_back(columns, model)
        return rows


class ModelForm:
    """All that a shard may change of a model but for the numbers in its arrays: names, classes, columns.

    While it is the same, the model has the same description and the same arrays.
    """

    def __init__(self, model: StreamModel) -> None:
        inner, engine, scaling = model.model, model.engine, model.scaling
        state = None if engine is None else engine.state
        record = None if inner is None else inner.record
        self.holders = engine, state, record, model.classes, model.schema, model.reading
        self.facts = (
            None if engine is None else engine.layout, inner is not None and inner.grows, len(model.labels),
            len(model.classes), model.dense_names, model.columns, scaling.kind, scaling.prepends,
            *(array.ctypes.data for array in scaling.arrays.values()),
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ModelForm):
            return NotImplemented
        alike = all(one is another for one, another in zip(self.holders, other.holders, strict=True))
        return alike and self.facts == other.facts

    __hash__ = None  # type: ignore[assignment]


class ShardTally:
    """Counts of a shard, and the columns that it met."""

    def __init__(self, model: StreamModel) -> None:
        self.model = model
        self.trials = self.mistakes = self.unlabelled = 0
        self.met = np.zeros(model.columns, bool)

    def play(self, batch: Batch) -> None:
        """Learn from a batch."""
        labelled = batch.codes >= 0
        predicted = self.model.play(self.model.scaled(batch), batch.codes, weights_of(batch))
        many = int(labelled.sum())
        self.trials += many
        self.mistakes += int((predicted[labelled] != batch.codes[labelled]).sum())
        self.unlabelled += len(batch) - many
        if self.model.columns == self.met.size:
            self.met[batch.indices] = True

    def columns(self) -> np.ndarray:
        """Those met, in order."""
        return np.flatnonzero(self.met)


_held: dict[str, list[Held | HeldFusion]] = {}  # by run: one for each thread that works for it
_lock = Lock()
RUNS = 2  # whose models are held: a driver that was killed leaves one behind


@contextmanager
def borrowed(topic: str, number: int, results: Sequence[Learned]) -> Iterator[Held | HeldFusion]:
    """The model from which pass ``number`` of a run starts.

    ``results`` are a whole model and what was mixed in the passes after it, up to the one before this. A model that
    this process has of one of these passes is brought up to date instead of making it again.
    """
    begun = number - len(results) + 1
    with _lock:
        mine = _held.get(topic, [])
        held = mine.pop() if mine else None
    if held is None or not begun <= held.number <= number:
        first = results[0]
        assert not isinstance(first, (ModelRows, StateDifference))
        held = HeldFusion(begun, first) if is_fusion(first) else Held(begun, first)
    for mixed in results[held.number - begun + 1 :]:
        held.advance(mixed)
    yield held
    with _lock:  # not after an error, which may have left it in between
        _held[topic] = [*_held.pop(topic, []), held]
        for other in list(_held)[:-RUNS]:
            del _held[other]


def forget(topic: str) -> None:
    """The run has ended."""
    with _lock:
        _held.pop(topic, None)
