"""One named model: a learner, how it has fared, and how far into the log it has come.

The learner sees nothing but labelled instances, in the order of the log; predictions leave no trace in it. So the
log alone determines its state, and a replay gives the same bits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from linmax import files
from linmax.learner import Learner
from linmax.serve.accounts import Account
from linmax.serve.bodies import Choices, Options
from linmax.serve.log import FORGET, LABEL, LEARN, PREDICT, Event, Log, ModelRow
from linmax.serve.packing import CLASS, Instance, Label, Packed, unpack
from linmax.serve.refusals import Refusal

__all__ = ["SNAPSHOT", "UNFIT", "Model"]

logger = logging.getLogger("linmax.serve")

SNAPSHOT = "service snapshot"
NOTHING: Instance = {"attributes": {}}  # an instance that says nothing is still an instance
UNFIT = (ValueError, TypeError, ArithmeticError)  # what a learner raises about an instance
Noted = Callable[[int, Label | None], None]


class Model:
    """A model at work.

    Parameters
    ----------
    row : what the log says of it.
    """

    def __init__(self, row: ModelRow) -> None:
        self.number, self.name, self.created = row.number, row.name, row.created
        self.options = msgspec.convert(row.description, Options)
        self.choices = Choices(self.options)
        self.learner = _learner(self.options)
        self.account = Account()
        self.applied = 0  # the last event that is part of the state
        self.saved = 0  # the same of the newest snapshot
        self.pending = 0  # predictions that wait for their label
        self.arriving = 0  # predictions on their way to the log
        self.unlearned = 0  # stored, but refused by the learner

    def predict(self, instance: Instance) -> Label | None:
        """What to serve; the state does not change."""
        return self.learner.predict(**(instance or NOTHING))

    def check(self, instance: Instance, label: Label) -> None:
        """Refuse what could not be learned, before it is stored."""
        if self.learner.bounded:
            try:
                self.learner.check(**(instance or NOTHING), label=label)
            except UNFIT as error:
                raise Refusal(422, str(error), field=self.options.kind) from None

    def apply(self, event: Event, note: Noted) -> None:
        """Take in a stored event; `note` hears what was predicted just before a learn event."""
        if event.kind == PREDICT:
            self.pending += 1
        elif event.kind == FORGET:
            self.pending -= 1
        else:
            self._teach(event, note)
        self.applied = event.seq

    def _teach(self, event: Event, note: Noted) -> None:
        assert event.instance is not None
        assert event.label is not None
        if event.kind == LABEL:
            self.pending -= 1
        try:
            predicted = self.learner.learn(**(event.instance or NOTHING), label=event.label)
        except UNFIT as error:
            # It is in the log and stays there; a replay refuses it again, so that the state is the same.
            self.unlearned += 1
            logger.error("model %s: event %d is stored but cannot be learned: %s", self.name, event.seq, error)
            predicted = None
        if event.kind == LEARN:
            event.served, event.answered = predicted, True
            note(event.seq, predicted)
        self.account.add(event.instance, event.served, event.label)

    def warm_up(self) -> None:
        """Have everything compiled that the learner needs, lest the first requests wait for it. Spoils the learner."""
        labels: list[Any] = self.choices.classes or (["a", "b"] if self.choices.wanted is str else [0, 1])
        blocks = {"attributes": {"a": 1.0}, "votes": {"a": labels[0]}, "scores": {"a": {labels[0]: 1.0}}}
        kinds = blocks if self.choices.kind == "mixed" else (self.choices.kind,)
        instance = {kind: blocks[kind] for kind in kinds}
        for label in (*labels[:2], labels[0], labels[0]):
            self.predict(instance)
            self.learner.learn(**instance, label=label)

    # -- snapshots and recovery -----------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All of it, copied: plain data and arrays."""
        description, arrays = self.learner_state()
        told = {
            "model": self.number,
            "applied_seq": self.applied,
            "pending": self.pending,
            "unlearned": self.unlearned,
            "options": msgspec.to_builtins(self.options),
            "account": self.account.state(),
            "learner": description,
        }
        return told, arrays

    def learner_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The learner's state, copied: it may be written while the learner goes on."""
        description, arrays = self.learner.state()
        return description, {name: array.copy() for name, array in arrays.items()}

    def restore(self, path: Path) -> None:
        """Go on from a snapshot; ValueError when it is damaged or of another model."""
        told, arrays = files.read(path, SNAPSHOT)
        if told["model"] != self.number or told["options"] != msgspec.to_builtins(self.options):
            raise ValueError(f"{path} is a snapshot of another model")
        self.learner = Learner.from_state(told["learner"], arrays)
        self.account = Account.from_state(told["account"])
        self.applied = self.saved = told["applied_seq"]
        self.pending, self.unlearned = told["pending"], told["unlearned"]

    def replay(self, log: Log, note: Noted) -> int:
        """Take in all that the log has beyond the state; the number of labelled trials among it."""
        counts = log.counts(self.number, self.applied)
        labelled = counts.get(LEARN, 0) + counts.get(LABEL, 0)
        for event in _events(log, self.number, self.applied):
            self._teach(event, note)
            if event.kind == LABEL:
                self.pending += 1  # its prediction is counted below
        self.pending += counts.get(PREDICT, 0) - counts.get(LABEL, 0) - counts.get(FORGET, 0)
        self.applied = max(self.applied, log.last(self.number))
        return labelled


def _learner(options: Options) -> Learner:
    try:
        return Learner(
            options.learner,
            classes=options.classes,
            thresholds=options.thresholds,
            tie=options.tie,
            update_on_tie=options.update_on_tie,
        )
    except (ValueError, TypeError) as error:
        raise Refusal(422, str(error), field="learner") from None


def _events(log: Log, number: int, after: int) -> Iterator[Event]:
    names = log.models[number].names
    classes = names.texts[CLASS]
    for seq, kind, label, served, *packed in log.replay(number, after):
        known = None if served is None else classes[served]
        yield Event(seq, kind, unpack(Packed(*packed), names), known, classes[label])
