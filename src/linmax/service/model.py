"""One named model: a learner, its results so far, and its position in the log.

The learner sees only labelled instances, in the order of the log; predictions do not change it. So the log alone
determines its state, and a replay gives the same bits.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from linmax import bounds
from linmax.core.contract import Rule
from linmax.models.online import Learner
from linmax.service.accounts import Account
from linmax.service.bodies import Choices, ModelOptions
from linmax.service.log import FORGET, LABEL, LEARN, PREDICT, Event, EventLog, ModelRow
from linmax.service.packing import ATTRIBUTE, CLASS, Instance, Label, Packed, SentNames, unpack
from linmax.service.refusals import Refusal
from linmax.util import files

__all__ = ["SNAPSHOT", "UNFIT", "ServedModel"]

logger = logging.getLogger("linmax.service")

SNAPSHOT = "service snapshot"
NOTHING: Instance = {"attributes": {}}  # an empty instance is still an instance
UNFIT = (ValueError, TypeError, ArithmeticError)  # what a learner raises about an instance
FEWEST_ROWS, MOST_ROWS = 64, 16_384  # of a replay, learned together
LARGE_VALUE = 1e6  # beyond it rows are learned one by one, so that an overflow hits the same trial in a replay
Noted = Callable[[int, Label | None], None]


class ServedModel:
    """A model at work.

    Parameters
    ----------
    row : what the log says of it.
    """

    def __init__(self, row: ModelRow) -> None:
        self.number, self.name, self.created = row.number, row.name, row.created
        self.options = msgspec.convert(row.description, ModelOptions)
        self.choices = Choices(self.options)
        self.learner = _learner(self.options)
        self.account = Account()
        self.applied = 0  # sequence number of the last event in the state
        self.saved = 0  # the same for the newest snapshot
        self.pending = 0  # predictions that wait for their label
        self.arriving = 0  # predictions that are being stored
        self.unlearned = 0  # stored, but refused by the learner
        self.late = 0  # labels that came after their prediction was served

    def predict(self, instance: Instance) -> Label | None:
        """The label to serve; the state does not change."""
        return self.learner.predict(**(instance or NOTHING))

    def check(self, instance: Instance, label: Label) -> None:
        """Refuse what could not be learned, before it is stored."""
        if self.learner.bounded:
            try:
                self.learner.check(**(instance or NOTHING), label=label)
            except UNFIT as error:
                raise Refusal(422, str(error), field=self.options.kind) from None

    def apply(self, event: Event, note: Noted) -> str | None:
        """Apply a stored event; returns why it could not be learned, if so.

        `note` is called with what was predicted just before a learn event.
        """
        fault = None
        if event.kind == PREDICT:
            self.pending += 1
        elif event.kind == FORGET:
            self.pending -= 1
        else:
            fault = self._teach(event, note)
        self.applied = event.seq
        return fault

    def _teach(self, event: Event, note: Noted) -> str | None:
        assert event.instance is not None
        assert event.label is not None
        if event.kind == LABEL:
            self.pending -= 1
            self.late += 1
        fault = None
        try:
            predicted = self.learner.learn(**(event.instance or NOTHING), label=event.label)
        except UNFIT as error:
            # It stays in the log; a replay refuses it again, so the state is the same.
            self.unlearned += 1
            logger.error("model %s: event %d is stored but cannot be learned: %s", self.name, event.seq, error)
            predicted, fault = None, str(error)
        if event.kind == LEARN:
            event.served, event.answered = predicted, True
            note(event.seq, predicted)
        self.account.add(event.instance, event.served, event.label)
        return fault

    def bound(self) -> tuple[float, float] | None:
        """(a, b): at every trial so far the mistakes are at most a + b m, m being those of the best voter.

        Known for Winnow over votes when every label came with its instance. The best voter is a comparator u with
        margin 1; a trial that it gets wrong adds at most 2 to the hinge loss N, so with r = ln alpha
        M <= (ln n + r N)/(r - ln cosh r) + k. The k trials that bring a new class are counted apart: a class cannot
        be predicted before. See `linmax.bounds.multiplicative`.
        """
        rule, account = self.learner.learner, self.account
        if not isinstance(rule, Rule) or rule.name != "winnow" or self.choices.kind != "votes":
            return None
        if rule.parameters["threshold"] is not None or rule.parameters["thickness"] or self.late or not account.votes:
            return None
        n = len(self.learner.voters) + (len(self.learner.classes) if self.options.thresholds else 0)
        best, alpha = np.eye(1, n)[0], rule.parameters["alpha"]
        first = bounds.multiplicative(best, 1.0, alpha)
        slope = bounds.multiplicative(best, 1.0, alpha, noise=2.0) - first
        if not math.isfinite(first):
            return None
        return first + (0 if self.learner.fixed else len(self.learner.known)), slope

    def warm_up(self) -> None:
        """Compile everything the learner needs, so that no request waits for it. Spoils the learner."""
        labels: list[Any] = self.choices.classes or (["a", "b"] if self.choices.wanted is str else [0, 1])
        blocks = {"attributes": {"a": 1.0}, "votes": {"a": labels[0]}, "scores": {"a": {labels[0]: 1.0}}}
        kinds = blocks if self.choices.kind == "mixed" else (self.choices.kind,)
        instance = {kind: blocks[kind] for kind in kinds}
        for label in (*labels[:2], labels[0], labels[0]):
            self.predict(instance)
            self.learner.learn(**instance, label=label)

    # -- snapshots and recovery -----------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The whole state, copied: plain data and arrays."""
        description, arrays = self.learner_state()
        told = {
            "model": self.number,
            "applied_seq": self.applied,
            "pending": self.pending,
            "unlearned": self.unlearned,
            "late": self.late,
            "options": msgspec.to_builtins(self.options),
            "account": self.account.state(),
            "learner": description,
        }
        return told, arrays

    def learner_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The learner's state, copied, so that it can be written while the learner continues."""
        description, arrays = self.learner.state()
        return description, {name: array.copy() for name, array in arrays.items()}

    def restore(self, path: Path) -> None:
        """Continue from a snapshot; ValueError if it is damaged or of another model."""
        told, arrays = files.read(path, SNAPSHOT)
        if told["model"] != self.number or told["options"] != msgspec.to_builtins(self.options):
            raise ValueError(f"{path} is a snapshot of another model")
        self.learner = Learner.from_state(told["learner"], arrays)
        self.account = Account.from_state(told["account"])
        self.applied = self.saved = told["applied_seq"]
        self.pending, self.unlearned, self.late = told["pending"], told["unlearned"], told["late"]

    def replay(self, log: EventLog, note: Noted) -> int:
        """Apply all later events of the log; returns the number of labelled trials among them."""
        counts = log.counts(self.number, self.applied)
        names = log.models[self.number].names
        rows = log.replay(self.number, self.applied)
        bulk = _Bulk(self, names, log.answered)
        size = FEWEST_ROWS
        while chunk := list(islice(rows, size)):
            # Long stretches without a new name or class are learned together; rows with something new one by one.
            if bulk.learn(chunk, note):
                size = min(2 * size, MOST_ROWS)
                continue
            size = FEWEST_ROWS
            for seq, kind, label, served, *packed in chunk:
                known = None if served is None else names.texts[CLASS][served]
                event = Event(seq, kind, unpack(Packed(*packed), names), known, names.texts[CLASS][label])
                self._teach(event, note)
        self.pending += counts.get(PREDICT, 0) - counts.get(FORGET, 0)
        self.applied = max(self.applied, log.last(self.number))
        return counts.get(LEARN, 0) + counts.get(LABEL, 0)


class _Bulk:
    """Learns rows of attributes together if all their names and classes are known."""

    def __init__(self, model: ServedModel, names: SentNames, written: int) -> None:
        self.model, self.names, self.written = model, names, written
        self._columns = np.zeros(0, np.int32)  # where the learner has the attribute of each number, -1 for nowhere
        self._count = -1

    def learn(self, chunk: list[tuple[Any, ...]], note: Noted) -> bool:
        """Learn all rows, or return that they must be learned one by one."""
        model, learner = self.model, self.model.learner
        if model.choices.kind != "attributes":
            return False
        seqs, kinds, labels, served, _, _, places, numbers = zip(*chunk, strict=True)
        values = np.frombuffer(b"".join(numbers), "<f8")
        columns = self._places()[np.frombuffer(b"".join(places), "<u4")]
        codes = np.array(labels)
        known = self._known()[codes]
        most = 1.0 if learner.bounded else LARGE_VALUE
        if not values.size or np.abs(values).max() > most or columns.min() < 0 or known.min() < 0:
            return False
        indptr = np.zeros(len(chunk) + 1, np.int64)
        np.cumsum([len(place) // 4 for place in places], out=indptr[1:])
        predicted = learner.learn_rows(indptr, columns, values, known)
        late = np.array(kinds) == LABEL
        told = np.array([-1 if code is None else code for code in served])
        model.account.add_many(np.where(late, told != codes, predicted != known))
        model.pending -= int(late.sum())
        model.late += int(late.sum())
        if seqs[-1] > self.written:
            for i in np.flatnonzero(~late).tolist():
                note(seqs[i], learner.classes[predicted[i]])
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


def _learner(options: ModelOptions) -> Learner:
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
