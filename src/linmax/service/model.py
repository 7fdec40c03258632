"""One named model: a learner, its results so far, and its position in the log.

The learner sees only labelled instances, in the order of the log; predictions do not change it. So the log alone
determines its state, and a replay gives the same bits.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from linmax import bounds
from linmax.core.contract import Rule
from linmax.models.online import Learner
from linmax.service.accounts import Account
from linmax.service.environment import environment
from linmax.service.instances import Instance, InstanceLimits, Label
from linmax.service.log import ASKS, FORGET, LABEL, LEARN, PREDICT, WANTS, Event, ModelRow
from linmax.service.names import KnownNames
from linmax.service.pipeline import Guess
from linmax.service.probing import is_fragile
from linmax.service.schemas import ModelOptions, Probability, Refusal
from linmax.service.weights import WeightsCache

__all__ = ["EMPTY_INSTANCE", "UNFIT", "Noted", "ServedModel"]

logger = logging.getLogger("linmax.service")

STATE_GROWTH = 1.02  # of the number of names, before the learner is measured again
LARGE = 1e50  # numbers beyond it are looked at more closely
EMPTY_INSTANCE: Instance = {"attributes": {}}  # an empty instance is still an instance
UNFIT = (ValueError, TypeError, ArithmeticError)  # what a learner raises about an instance
# What a state depends on.
SAME = ("learner", "kind", "labels", "classes", "candidates", "thresholds", "tie", "update_on_tie")
Noted = Callable[[int, Guess, str | None], None]


class ServedModel:
    """A model at work.

    Parameters
    ----------
    row : what the log says of it.
    """

    def __init__(self, row: ModelRow) -> None:
        self.number, self.name, self.created = row.number, row.name, row.created
        self.options = msgspec.convert(row.description | row.limits, ModelOptions)
        self.limits = InstanceLimits(self.options)
        self.learner = _learner(self.options)
        self.account = Account()
        self.applied = 0  # sequence number of the last event in the state
        self.crc = row.kept_crc  # the running checksum after it
        self.saved = 0  # the same for the newest snapshot
        self.pending = 0  # predictions that wait for their label
        self.unlearned = 0  # stored, but refused by the learner
        self.weights = WeightsCache()
        self.names = KnownNames(self.learner)
        self.nbytes = self.measure()
        self._measured = 0  # names in the learner when it was measured
        self.late = 0  # labels that came after their prediction was served, or say only what is wrong

    def change(self, limits: Mapping[str, Any]) -> None:
        """Change options that have no part in what is learned."""
        self.options = msgspec.convert(msgspec.to_builtins(self.options) | dict(limits), ModelOptions)
        self.limits = InstanceLimits(self.options)

    def predict(self, instance: Instance) -> Label | None:
        """The label to serve; the state does not change."""
        return self.learner.predict(**(instance or EMPTY_INSTANCE))

    def probabilities(self, instance: Instance) -> list[Probability]:
        """How likely each class is, the likeliest first."""
        found = self.learner.predict_proba(**(instance or EMPTY_INSTANCE))
        rows = [Probability(label=label, probability=value) for label, value in found.items()]
        return sorted(rows, key=lambda row: -row.probability)

    def likely_set(self, instance: Instance, coverage: float) -> list[Label]:
        """The classes that hold the right one as often as ``coverage`` says, the likeliest first."""
        return list(self.learner.predict_set(**(instance or EMPTY_INSTANCE), coverage=coverage))

    @property
    def selects(self) -> bool:
        """Whether it draws which labels it wants."""
        return self.learner.model.selects

    @property
    def fragile(self) -> bool:
        """Whether ordinary numbers can spoil the learner."""
        return is_fragile(self.options.learner, self.options.kind, self.options.thresholds)

    @property
    def size(self) -> int:
        """Bytes of the learner's arrays and of the names."""
        return self.nbytes + self.names.bytes

    def measure(self) -> int:
        """Return the bytes of the learner's arrays."""
        return sum(array.nbytes for array in self.learner.state()[1].values())

    def note_growth(self) -> None:
        """Measure the learner again if it has noticeably more names than last time."""
        columns = self.learner.model.columns
        count = sum(map(len, (columns.voters, columns.raters, columns.attributes, self.learner.classes)))
        if count > self._measured * STATE_GROWTH:
            self._measured, self.nbytes = count, self.measure()

    def probe(self) -> None:
        """Find out what is tried out once for all such learners, so that no request waits for it."""
        is_fragile(self.options.learner, self.options.kind, self.options.thresholds)

    def check(self, instance: Instance, label: Label | None, field: str = "label") -> None:
        """Refuse what could not be learned, before it is stored; `field` is where the label stands."""
        attributes = instance.get("attributes")
        safe = not self.learner.bounded and len(instance) == (attributes is not None)
        if safe and (not attributes or -LARGE < min(attributes.values()) <= max(attributes.values()) < LARGE):
            return
        try:
            self.learner.check(**(instance or EMPTY_INSTANCE), label=label)
        except UNFIT as error:
            if "candidates" in instance and label not in instance["candidates"]:
                raise Refusal(422, f"{field}{str(error).removeprefix('label')}", field=field) from None
            raise Refusal(422, str(error), field=self.options.kind) from None

    def apply(self, event: Event, note: Noted) -> str | None:
        """Apply a stored event; returns why it could not be learned, if so.

        `note` is called with what was predicted just before a learn event, and with why an event cannot be learned.
        """
        fault = None
        if event.kind == PREDICT:
            self.pending += 1
        elif event.kind == FORGET:
            self.pending -= 1
        elif event.kind == WANTS:
            fault = self.draw(event, note)
        elif event.kind == ASKS:
            fault = self.ask_by(event, note)
        else:
            fault = self.teach(event, note)
        self.applied, self.crc = event.seq, event.crc
        return fault

    def teach(self, event: Event, note: Noted, fault: str | None = None) -> str | None:
        """Learn a labelled trial, unless a `fault` of it is known; returns why it could not be learned, if so."""
        assert event.instance is not None
        if event.kind == LABEL:
            self.pending -= 1
        self.late += event.kind == LABEL or event.wrong
        predicted = None
        if fault is None:
            try:
                predicted = self._learn(event.instance or EMPTY_INSTANCE, event.label, event.wrong)
            except UNFIT as error:
                # It stays in the log; a replay refuses it again, so the state is the same.
                logger.error("model %s: event %d is stored but cannot be learned: %s", self.name, event.seq, error)
                fault = str(error)
        self.unlearned += fault is not None
        self.note_growth()
        if event.kind == LEARN:
            event.served, event.answered = predicted, True
        if event.kind == LEARN or fault is not None:
            note(event.seq, predicted, fault)
        if event.label is not None:
            self.account.add(event.instance, event.served, event.label, wrong=event.wrong)
        return fault

    def draw(self, event: Event, note: Noted, fault: str | None = None) -> str | None:
        """Draw whether a label is wanted, unless a `fault` is known; returns why it could not be drawn, if so."""
        assert event.instance is not None
        try:
            wanted = fault is None and self.learner.wants_label(**(event.instance or EMPTY_INSTANCE))
        except UNFIT as error:
            wanted, fault = False, str(error)
        event.tell(wanted)
        note(event.seq, wanted, fault)
        return fault

    def ask_by(self, event: Event, note: Noted, fault: str | None = None) -> str | None:
        """Choose by what voters are asked, unless a `fault` is known; returns why that could not be done, if so."""
        assert event.instance is not None
        if fault is None:
            try:
                self.learner.ask_by(event.instance["tolerance"], event.instance.get("costs"))
            except UNFIT as error:
                fault = str(error)
        if fault is not None:
            note(event.seq, None, fault)
        return fault

    def _learn(self, instance: Instance, label: Label | None, wrong: bool) -> Label | None:
        """Learn, or raise and leave the learner as it was."""
        told: dict[str, Any] = {"wrong" if wrong else "label": label}
        if not self.fragile:
            return self.learner.learn(**instance, **told)
        before = self.learner_state()
        try:
            return self.learner.learn(**instance, **told)
        except UNFIT:
            self.learner = Learner.from_state(*before)
            raise

    def bound(self) -> tuple[float, float] | None:
        """(a, b): at every trial so far the mistakes are at most a + b m, m being those of the best voter.

        Known for Winnow over votes when every label came with its instance. The best voter is a comparator u with
        margin 1; a trial that it gets wrong adds at most 2 to the hinge loss N, so with r = ln alpha
        M <= (ln n + r N)/(r - ln cosh r) + k. The k trials that bring a new class are counted apart: a class cannot
        be predicted before. See `linmax.bounds.multiplicative`.
        """
        rule, account = self.learner.learner, self.account
        if not isinstance(rule, Rule) or rule.name != "winnow" or self.limits.kind != "votes":
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
        """Compile and try out everything the learner needs, so that no request waits for it. Spoils the learner."""
        self.probe()
        labels: list[Any] = self.limits.classes or (["a", "b"] if self.limits.label_type is str else [0, 1])
        blocks = {"attributes": {"a": 1.0}, "votes": {"a": labels[0]}, "scores": {"a": {labels[0]: 1.0}}}
        kinds = blocks if self.limits.kind == "mixed" else (self.limits.kind,)
        instance: Instance = {kind: blocks[kind] for kind in kinds}
        if self.options.candidates:
            instance = {kind: block for kind, block in instance.items() if kind != "attributes"}
            instance["candidates"] = labels
        for label in (*labels[:2], labels[0], labels[0]):
            self.predict(instance)
            self.learner.predict_proba(**instance)
            self.learner.learn(**instance, label=label)

    # -- snapshots and recovery -----------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The whole state, copied: plain data and arrays."""
        description, arrays = self.learner_state()
        told = {
            "model": self.number,
            "applied_seq": self.applied,
            "crc": self.crc,
            "pending": self.pending,
            "unlearned": self.unlearned,
            "late": self.late,
            "options": msgspec.to_builtins(self.options),
            "written_by": environment(),
            "account": self.account.state(),
            "learner": description,
        }
        return told, arrays

    def learner_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The learner's state, copied, so that it can be written while the learner continues."""
        description, arrays = self.learner.state()
        return description, {name: array.copy() for name, array in arrays.items()}

    def restore(self, told: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from a state; ValueError if it is of another model."""
        own = msgspec.to_builtins(self.options)
        if told["model"] != self.number or any(told["options"].get(name, False) != own[name] for name in SAME):
            raise ValueError("it is of another model")
        learner, account = Learner.from_state(told["learner"], arrays), Account.from_state(told["account"])
        pending, unlearned, late = told["pending"], told["unlearned"], told["late"]
        self.learner, self.account = learner, account
        self.applied = self.saved = told["applied_seq"]
        self.crc = told["crc"]
        self.pending, self.unlearned, self.late = pending, unlearned, late


def _learner(options: ModelOptions) -> Learner:
    if options.candidates and options.kind == "attributes":
        message = (
            "candidates need votes or scores: an attribute has a weight for each class, and candidates are no classes"
        )
        raise Refusal(422, f'{message}; choose kind "votes", "scores" or "mixed"', field="kind")
    try:
        learner = Learner(
            options.learner,
            classes=options.classes,
            thresholds=options.thresholds,
            tie=options.tie,
            update_on_tie=options.update_on_tie,
        )
        if options.candidates:  # from the first ones on it chooses among candidates only
            learner.predict(votes={}, candidates=["one"])
        return learner
    except (ValueError, TypeError) as error:
        raise Refusal(422, str(error), field="learner") from None
