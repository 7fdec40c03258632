"""A model brought up to date from the log: the same trials in the same order give the same bits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

import numpy as np

from linmax.models.online import Learner
from linmax.service import log_reading
from linmax.service.log import EventLog
from linmax.service.log_reading import SKIPPED, Damaged, StoredEvent
from linmax.service.log_rows import ASKS, FORGET, LABEL, LEARN, PREDICT, WANTS, Event, unsigned
from linmax.service.model import UNFIT, Noted, ServedModel
from linmax.service.packing import ATTRIBUTE, CLASS, LOOSE, Packed, SentNames, class_of, unpack

__all__ = ["Interrupted", "replay"]

FEWEST_ROWS, MOST_ROWS = 64, 16_384  # learned together
LARGE_VALUE = 1e6  # beyond it rows are learned one by one, so that an overflow hits the same trial in a replay


class Interrupted(Exception):
    """The server is asked to stop while it replays the log."""


def replay(
    model: ServedModel,
    log: EventLog,
    note: Noted,
    *,
    until: int | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> int:
    """Apply all later events of the log; returns the number of labelled trials among them.

    Parameters
    ----------
    model : the model, fresh or from a snapshot.
    log : the log.
    note : called with what was predicted in a learn event, and why an event cannot be learned.
    until : the last event to apply; by default the last one that there is.
    stopping : asked from time to time; `Interrupted` is raised when it says yes.
    """
    row = log.models[model.number]
    if model.applied < row.kept:
        message = (
            f"the log begins after event {row.kept}, and no snapshot that this linmax can read reaches that far; go "
            "back to the linmax that wrote the snapshots, or restore a backup"
        )
        raise Damaged(row.kept, message)
    names, bulk = row.names, _Bulk(model, row.names, log.answered)
    faults = log_reading.faults(log, model.number, model.applied)
    skipped = {seq for seq, fault in faults.items() if fault == SKIPPED}
    last = row.last if until is None else until
    rows = log_reading.replay(log, model.number, model.applied, last, model.hash, skipped)
    with contextlib.closing(rows):
        return _apply(model, rows, names, faults, bulk, note, stopping)


def _apply(
    model: ServedModel,
    rows: Iterator[tuple[StoredEvent, bytes]],
    names: SentNames,
    faults: Mapping[int, str],
    bulk: _Bulk,
    note: Noted,
    stopping: Callable[[], bool],
) -> int:
    size, trials = FEWEST_ROWS, 0
    while chunk := list(islice(rows, size)):
        if stopping():
            raise Interrupted
        taught = [event for event, _ in chunk if event.kind not in (PREDICT, FORGET)]
        # Long stretches without a new name or class are learned together; rows with something new one by one.
        if not any(event.seq in faults for event in taught) and bulk.learn(taught, note):
            size = min(2 * size, MOST_ROWS)
        else:
            size = FEWEST_ROWS
            for event in taught:
                _teach(model, event, names, note, faults.get(event.seq))
        kinds = [event.kind for event, _ in chunk]
        model.pending += kinds.count(PREDICT) - kinds.count(FORGET)
        model.applied, model.hash = chunk[-1][0].seq, chunk[-1][1]
        trials += sum(event.label is not None for event in taught)
    return trials


def _teach(model: ServedModel, row: StoredEvent, names: SentNames, note: Noted, fault: str | None) -> None:
    try:
        instance = unpack(Packed(row.votes, row.scores, row.places, row.numbers), names)
        if row.kind in (WANTS, ASKS):
            apply = model.draw if row.kind == WANTS else model.ask_by
            apply(Event(row.seq, row.kind, instance), note, fault)
            return
        code, wrong = (None, False) if row.label is None else unsigned(row.label)
        served, label = class_of(row.served, instance, names), class_of(code, instance, names)
        model.teach(Event(row.seq, row.kind, instance, served, label, wrong=wrong), note, fault)
    except Exception as error:
        message = f"event {row.seq} cannot be replayed: {type(error).__name__}: {error}"
        raise Damaged(row.seq, message) from error


class _Bulk:
    """Learns rows of attributes together if all their names and classes are known."""

    def __init__(self, model: ServedModel, names: SentNames, written: int) -> None:
        self.model, self.names, self.written = model, names, written
        self._columns = np.zeros(0, np.int32)  # where the learner has the attribute of each number, -1 for nowhere
        self._count = -1

    def learn(self, rows: list[StoredEvent], note: Noted) -> bool:
        """Learn all rows, or return that they must be learned one by one."""
        model, learner = self.model, self.model.learner
        if not rows:
            return True
        if model.choices.kind != "attributes" or model.fragile:
            return False
        seqs, kinds, labels, served, votes, _, places, numbers = zip(*rows, strict=True)
        if LOOSE in votes or not {*kinds} <= {LEARN, LABEL} or None in labels or min(labels) < 0:
            return False
        values = np.frombuffer(b"".join(numbers), "<f8")
        columns = self._places()[np.frombuffer(b"".join(places), "<u4")]
        codes = np.array(labels)
        known = self._known()[codes]
        most = 1.0 if learner.bounded else LARGE_VALUE
        if not values.size or np.abs(values).max() > most or columns.min() < 0 or known.min() < 0:
            return False
        indptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(place) // 4 for place in places], out=indptr[1:])
        before = model.learner_state()
        try:
            predicted = learner.learn_rows(indptr, columns, values, known)
        except UNFIT:
            model.learner = Learner.from_state(*before)
            return False
        late = np.array(kinds) == LABEL
        told = np.array([-1 if code is None else code for code in served])
        model.account.add_many(np.where(late, told != codes, predicted != known))
        model.pending -= int(late.sum())
        model.late += int(late.sum())
        if seqs[-1] > self.written:
            for i in np.flatnonzero(~late).tolist():
                note(seqs[i], learner.classes[predicted[i]], None)
        return True

    def _places(self) -> np.ndarray:
        own = self.model.learner.attributes
        if len(own) != self._count:
            self._count = len(own)
            place = {name: number for number, name in enumerate(own)}
            self._columns = np.array([place.get(name, -1) for name in self.names.texts[ATTRIBUTE]], np.int32)
        return self._columns

    def _known(self) -> np.ndarray:
        """Where the learner has each class that it may predict, -1 for nowhere."""
        place = {name: number for number, name in enumerate(self.model.learner.known)}
        return np.array([place.get(name, -1) for name in self.names.texts[CLASS]], np.int32)
