"""A model brought up to date from the log: the same trials in the same order give the same bits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import cast

import numpy as np

from linmax.models.online import Learner
from linmax.service.log import FORGET, LABEL, LEARN, PREDICT, SKIPPED, Damaged, Event, EventLog
from linmax.service.served_model import PENDING, UNFIT, Noted, ServedModel

__all__ = ["Interrupted", "replay"]

FEWEST_ROWS, MOST_ROWS, LARGE_STATE_ROWS = 64, 512, 16_384  # learned together: more are slower, but for large states
STATE_BYTES = 2**13  # a row, of the state that is copied for each chunk
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
    stopping : asked from time to time; `Interrupted` is raised when it returns True.
    """
    row = log.models[model.number]
    if model.applied < row.kept:
        message = (
            f"the log begins after event {row.kept}, and no snapshot that this linmax can read reaches that far; go "
            "back to the linmax that wrote the snapshots, or restore a backup"
        )
        raise Damaged(row.kept, message)
    faults = log.faults(model.number, model.applied)
    skipped = {seq for seq, fault in faults.items() if fault == SKIPPED}
    last = row.last if until is None else until
    with contextlib.closing(log.replay(model.number, model.applied, last, model.crc, skipped)) as events:
        return _apply(model, events, faults, log.answered, note, stopping)


def _apply(
    model: ServedModel,
    events: Iterator[Event],
    faults: Mapping[int, str],
    written: int,
    note: Noted,
    stopping: Callable[[], bool],
) -> int:
    size, trials = FEWEST_ROWS, 0
    while chunk := list(islice(events, size)):
        if stopping():
            raise Interrupted
        # Long stretches without a new name or class are learned together; rows with something new one by one.
        taught = [event for event in chunk if event.kind not in (PREDICT, FORGET)]
        is_clean = not faults or not any(event.seq in faults for event in taught)
        if is_clean and _learn_rows(model, taught, written, note):
            size = min(2 * size, LARGE_STATE_ROWS, max(MOST_ROWS, model.nbytes // STATE_BYTES))
            model.pending += sum(PENDING.get(event.kind, 0) for event in chunk if event.kind != LEARN)
            model.applied, model.crc = chunk[-1].seq, chunk[-1].crc
            trials += len(taught)
        else:
            size = FEWEST_ROWS
            for event in chunk:
                try:
                    model.apply(event, note, faults.get(event.seq))
                except Exception as error:
                    message = f"event {event.seq} cannot be replayed: {type(error).__name__}: {error}"
                    raise Damaged(event.seq, message) from error
            trials += sum(event.label is not None for event in taught)
    return trials


def _learn_rows(model: ServedModel, events: list[Event], written: int, note: Noted) -> bool:
    """Learn rows of attributes together if all their names and classes are known; False if that cannot be done."""
    learner = model.learner
    if not events:
        return True
    if model.limits.kind != "attributes" or model.fragile:
        return False
    if any(e.label is None or e.wrong or e.weight != 1.0 or e.kind not in (LEARN, LABEL) for e in events):
        return False
    places = cast(Mapping[str, int], learner._current_model.columns.attributes)
    classes = {name: number for number, name in enumerate(learner._model.known)}
    instances = [event.instance.get("attributes", {}) for event in events if event.instance is not None]
    ends = np.cumsum([0, *map(len, instances)])
    try:
        columns = np.fromiter(map(places.__getitem__, chain.from_iterable(instances)), np.int32, ends[-1])
        labels = np.fromiter(map(classes.__getitem__, [event.label for event in events]), np.int32, len(events))
    except KeyError:
        return False
    values = np.fromiter(chain.from_iterable(map(dict.values, instances)), float, ends[-1])
    if not values.size or np.abs(values).max() > (1.0 if learner._bounded is not None else LARGE_VALUE):
        return False
    before = model.learner_state()
    try:
        predicted = learner._learn_rows(ends, columns, values, labels)
    except UNFIT:
        model.learner = Learner.from_state(*before)
        return False
    late, wrong, names = 0, [], learner.classes
    for event, code in zip(events, predicted.tolist(), strict=True):
        if event.kind == LEARN:
            event.served = names[code]
            if event.seq > written:
                note(event.seq, event.served, None)
        late += event.kind == LABEL
        wrong.append(event.served != event.label)
    model.account.add_many(np.array(wrong))
    model.late += late
    return True
