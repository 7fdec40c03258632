"""Trials: requests turned into events, and events into answers. Long batches are worked through in slices of time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from linmax.service import pipeline
from linmax.service.bodies import (
    LabelBody,
    LearnBody,
    Learned,
    Likely,
    PredictBody,
    Predicted,
    Wanted,
    WantsBody,
)
from linmax.service.instances import checked_truth, instance_of
from linmax.service.log import ASKS, FORGET, LABEL, LEARN, PREDICT, WANTS, Body, Event, EventLog, Instance, Label
from linmax.service.model import EMPTY_INSTANCE, UNFIT, ServedModel
from linmax.service.pipeline import Entry
from linmax.service.refusals import Refusal

if TYPE_CHECKING:
    from linmax.service.service import Service

__all__ = [
    "TrialOperations",
    "store_label",
    "store_loss",
    "store_prediction",
    "store_question",
    "store_trial",
    "waiting_question",
]

logger = logging.getLogger("linmax.service")

Done = Callable[[list[Any]], None]
NOTHING_MORE = Likely()
MOST_PENDING = 100_000
read_likely = msgspec.json.Decoder(Likely).decode
Admit = Callable[[Instance, Label | None], None]  # takes the new names of a trial, or refuses


class TrialOperations:
    """What is done with trials. `done` is called with one answer for each item: at once, or when all are stored."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def predict(self, model: ServedModel, items: list[PredictBody], done: Done) -> None:
        """Serve labels; keep the instances that expect one."""
        self._each(items, lambda body: self._predicted(model, body), done)

    def _predicted(self, model: ServedModel, body: PredictBody) -> Predicted | tuple[str, Entry]:
        instance = instance_of(body, model.choices)
        try:
            label = model.predict(instance)
            likely = _likely(model, instance, body, label)
        except UNFIT as error:
            raise Refusal(422, str(error), field=model.options.kind) from None
        if body.id is None and not body.store:
            return _served(label, likely)
        id, number = body.id or self.service.ids.new(), model.number
        told = None if likely == NOTHING_MORE else msgspec.json.encode(likely)
        stored = Body(instance, served=label, likely=told)
        return id, Entry(lambda log: store_prediction(log, number, id, stored), model)

    def learn(self, model: ServedModel, items: list[LearnBody], done: Done) -> None:
        """Store instances with their labels, and learn them."""
        self._each(items, lambda body: self._to_learn(model, body), done)

    def _to_learn(self, model: ServedModel, body: LearnBody) -> tuple[str, Entry]:
        instance = instance_of(body, model.choices)
        label, wrong = checked_truth(body, model.choices)
        model.check(instance, label, "wrong" if wrong else "label")
        id, admit = body.id or self.service.ids.new(), self.service.admit
        stored = Body(instance, label, wrong)
        return id, Entry(lambda log: store_trial(log, model.number, id, stored, partial(admit, model)), model)

    def label(self, model: ServedModel, items: list[LabelBody], done: Done) -> None:
        """Store labels of earlier predictions, and learn them."""
        self._each(items, lambda body: self._to_label(model, body), done)

    def _to_label(self, model: ServedModel, body: LabelBody) -> tuple[str, Entry]:
        stored = Body(None, *checked_truth(body, model.choices))
        id, admit = body.id, self.service.admit
        return id, Entry(lambda log: store_label(log, model.number, id, stored, partial(admit, model)), model)

    def wants_label(self, model: ServedModel, items: list[WantsBody], done: Done) -> None:
        """Say whether labels are worth asking for; what a selective learner draws is stored."""
        self._each(items, lambda body: self._wanting(model, body), done)

    def _wanting(self, model: ServedModel, body: WantsBody) -> Wanted | tuple[str, Entry]:
        number = model.number
        if body.id is not None and all(
            block is None for block in (body.attributes, body.votes, body.scores, body.candidates)
        ):
            id = body.id
            if model.selects:
                return id, Entry(lambda log: store_question(log, number, id, None), model)
            return id, Entry(lambda log: waiting_question(log, number, id), model)
        instance = instance_of(body, model.choices)
        if not model.selects:
            return Wanted(wanted=True)
        try:
            model.learner.scores(**(instance or EMPTY_INSTANCE))
        except UNFIT as error:
            raise Refusal(422, str(error), field=model.options.kind) from None
        id = body.id or self.service.ids.new()
        return id, Entry(lambda log: store_question(log, number, id, instance), model)

    async def forget(self, model: ServedModel, ids: list[str]) -> list[Event | Refusal | None]:
        """Store that no label will come for these predictions."""
        entries = [Entry(lambda log, id=id: store_loss(log, model.number, id), model) for id in ids]  # type: ignore[misc]
        stored = asyncio.Event()
        self.service.pipeline.submit(entries, stored.set)
        await stored.wait()
        return [entry.outcome for entry in entries]

    async def ask_by(self, model: ServedModel, tolerance: float, costs: dict[str, float] | None) -> None:
        """Store by what voters are asked from now on."""
        asking: Instance = {"tolerance": tolerance} | ({} if costs is None else {"costs": costs})
        entry = Entry(lambda log: log.append(model.number, ASKS, body=Body(asking)), model)
        stored = asyncio.Event()
        self.service.pipeline.submit([entry], stored.set)
        await stored.wait()
        if isinstance(entry.outcome, Refusal):
            raise entry.outcome

    # -- shared ---------------------------------------------------------------------------------------

    def _each(self, items: list[Any], work: Callable[[Any], Any], done: Done) -> None:
        """Work on item after item; a long list gives way to other requests now and then."""
        _Items(self, items, work, done).go_on()

    def store(self, results: list[Any], done: Done) -> None:
        """Submit the entries among the results; then they become answers."""
        entries = [result[1] for result in results if type(result) is tuple]

        def stored() -> None:
            done([_answer(*result) if type(result) is tuple else result for result in results])

        if entries:
            self.service.pipeline.submit(entries, stored)
        else:
            done(results)


class _Items:
    """The items of one request, worked through in slices; without reference cycles, which only the collector frees."""

    __slots__ = ("count", "done", "left", "operations", "results", "work")

    def __init__(self, operations: TrialOperations, items: list[Any], work: Callable[[Any], Any], done: Done) -> None:
        self.operations, self.work, self.done = operations, work, done
        self.left, self.count = iter(items), len(items)
        self.results: list[Any] = []

    def go_on(self) -> None:
        """Work until the slice is over; then other requests get a turn."""
        deadline = time.monotonic() + pipeline.SLICE
        for body in self.left:
            try:
                self.results.append(self.work(body))
            except Refusal as refusal:
                self.results.append(refusal)
            if len(self.results) < self.count and time.monotonic() > deadline:
                asyncio.get_running_loop().call_soon(self._later)
                return
        self.operations.store(self.results, self.done)

    def _later(self) -> None:
        try:
            self.go_on()
        except Exception as error:
            if not isinstance(error, Refusal):
                logger.error("a batch failed", exc_info=error)
                error = Refusal(500, "the server failed; its log says why")
            self.done([error] * self.count)


def _likely(model: ServedModel, instance: Instance, body: PredictBody, label: Label | None) -> Likely:
    """What is wanted beside the label."""
    likely = Likely()
    if body.coverage is not None:
        likely.set = model.likely_set(instance, body.coverage)
    if body.probabilities or body.reject is not None:
        rows = model.probabilities(instance)
        if body.probabilities:
            likely.probabilities = rows
        if body.reject is not None:
            likely.sure = any(row.label == label and row.probability >= 1.0 - body.reject for row in rows)
    return likely


def _served(label: Label | None, likely: Likely, **kept: Any) -> Predicted:
    """The answer; none where it is not sure enough."""
    shown = None if likely.sure is False else label
    return Predicted(label=shown, probabilities=likely.probabilities, set=likely.set, sure=likely.sure, **kept)


def _answer(id: str, entry: Entry) -> Predicted | Learned | Wanted | Refusal:
    event = entry.outcome
    if not isinstance(event, Event):
        assert event is not None
        return event
    if event.kind == WANTS:
        return Wanted(wanted=event.wanted, id=id, seq=event.seq)
    if event.kind == PREDICT:
        likely = NOTHING_MORE if event.likely is None else read_likely(event.likely)
        return _served(event.served, likely, id=id, seq=event.seq)
    if event.label is None:
        return Learned(id=id, seq=event.seq, label=None, predicted=event.served, mistake=None)
    if event.wrong:
        mistake = event.served == event.label
        return Learned(id=id, seq=event.seq, wrong=event.label, predicted=event.served, mistake=mistake)
    mistake = event.served != event.label
    return Learned(id=id, seq=event.seq, label=event.label, predicted=event.served, mistake=mistake)


# -- in the writer's thread: how a request becomes an event, or is a repetition of one, or contradicts it ----------


def store_prediction(log: EventLog, number: int, id: str, body: Body) -> Event:
    """Store a prediction whose label will come later."""
    row = log.model(number)
    if row.pending >= row.limit("max_pending", MOST_PENDING) and log.find(number, id) is None:
        message = f"{row.pending} predictions wait for labels, the most this model keeps; label or forget some"
        raise Refusal(429, message, retry_after=60)
    event = log.append(number, PREDICT, id, body=body)
    if event.repeat and event.kind != PREDICT:
        raise Refusal(409, f"id {id!r} was used by a learn request; choose another", field="id")
    return _with_same_instance(event, body, id)


def store_trial(log: EventLog, number: int, id: str, body: Body, admit: Admit) -> Event:
    """Store an instance together with its label, if it has one, or with a class that is not its label."""
    assert body.instance is not None
    try:
        admit(body.instance, body.label)
        event = log.append(number, LEARN, id, body=body)
    except Refusal:
        first = log.find(number, id)
        if first is None:
            raise
        event = first
    if event.repeat and event.kind != LEARN:
        raise Refusal(409, f"id {id!r} names a prediction; send its label without the instance", field="id")
    return _with_same_label(_with_same_instance(event, body, id), body, id)


def store_label(log: EventLog, number: int, id: str, body: Body, admit: Admit) -> Event:
    """Store the label of an earlier prediction, or a class that is not its label."""
    first = _trial(log, number, id)
    if first.kind == LEARN:
        return _with_same_label(first, body, id)
    known = log.closing(first.seq)
    if known is not None and known.kind == FORGET:
        raise Refusal(404, f"the prediction {id!r} was forgotten", field="id")
    if known is not None:
        return _with_same_label(known, body, id)
    assert first.instance is not None
    candidates = first.instance.get("candidates")
    if candidates is not None and body.label not in candidates:
        field = "wrong" if body.wrong else "label"
        raise Refusal(422, f"{field}: {body.label!r} is not among the candidates {candidates!r}", field=field)
    admit(first.instance, body.label)
    event = log.append(number, LABEL, refers=first.seq, body=body)
    event.instance, event.served = first.instance, first.served
    return event


def store_loss(log: EventLog, number: int, id: str) -> Event:
    """Store that no label will come for a prediction."""
    first = _trial(log, number, id)
    event = first if first.kind == LEARN else log.append(number, FORGET, refers=first.seq)
    if event.kind != FORGET:
        raise Refusal(409, f"id {id!r} has its label already", field="id")
    return event


def store_question(log: EventLog, number: int, id: str, instance: Instance | None) -> Event:
    """Store that a label may be asked for: of an instance, or of the prediction that waits under this id."""
    asked = f"?{id}"  # which is nobody's id
    first = log.find(number, asked)
    if first is None:
        given = waiting_question(log, number, id).instance if instance is None else instance
        return log.append(number, WANTS, asked, body=Body(given))
    if instance is not None and first.instance != instance:
        raise Refusal(409, f"id {id!r} was asked about with another instance; choose another", field="id")
    return first


def waiting_question(log: EventLog, number: int, id: str) -> Event:
    """Return the prediction that waits for its label, as a question that any learner says yes to."""
    first = _trial(log, number, id)
    if first.kind != PREDICT or log.closing(first.seq) is not None:
        raise Refusal(409, f"id {id!r} does not wait for a label any more", field="id")
    return Event(first.seq, WANTS, first.instance, repeat=True)


def _trial(log: EventLog, number: int, id: str) -> Event:
    found = log.find(number, id)
    if found is None or found.kind == WANTS:
        raise Refusal(404, f"no trial of this model has the id {id!r}", field="id")
    return found


def _with_same_instance(event: Event, body: Body, id: str) -> Event:
    if event.repeat and event.instance != body.instance:  # whatever the order of its names
        raise Refusal(409, f"id {id!r} was used for another instance; choose another", field="id")
    return event


def _with_same_label(event: Event, body: Body, id: str) -> Event:
    if not event.repeat or (event.label, event.wrong) == (body.label, body.wrong):
        return event
    told = f"is known not to be {event.label!r}" if event.wrong else f"has the label {event.label!r} already"
    if event.label is None:
        told = "was learned without a label"
    got = f"got wrong={body.label!r}" if body.wrong else f"got {body.label!r}"
    raise Refusal(409, f"id {id!r} {told}, {got}", field="wrong" if body.wrong else "label")
