"""Trials: requests turned into events, and events into answers. Long batches are worked through in slices of time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
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
    Probability,
    Wanted,
    WantsBody,
)
from linmax.service.instances import checked_truth, instance_of
from linmax.service.log_rows import PREDICT, WANTS, Event
from linmax.service.model import EMPTY_INSTANCE, UNFIT, ServedModel
from linmax.service.packing import Instance, Label
from linmax.service.pipeline import Entry
from linmax.service.refusals import Refusal

if TYPE_CHECKING:
    from linmax.service.service import Service

__all__ = ["TrialOperations"]

logger = logging.getLogger("linmax.service")

Done = Callable[[list[Any]], None]
NOTHING_MORE = Likely()
read_likely = msgspec.json.Decoder(Likely | list[Probability]).decode  # a list as it was written formerly


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
        return id, Entry(lambda log: log.predict(number, id, instance, label, told), model)

    def learn(self, model: ServedModel, items: list[LearnBody], done: Done) -> None:
        """Store instances with their labels, and learn them."""
        self._each(items, lambda body: self._to_learn(model, body), done)

    def _to_learn(self, model: ServedModel, body: LearnBody) -> tuple[str, Entry]:
        instance = instance_of(body, model.choices)
        label, wrong = checked_truth(body, model.choices)
        model.check(instance, label, "wrong" if wrong else "label")
        id, number = body.id or self.service.ids.new(), model.number
        return id, Entry(lambda log: log.learn(number, id, instance, label, wrong), model)

    def label(self, model: ServedModel, items: list[LabelBody], done: Done) -> None:
        """Store labels of earlier predictions, and learn them."""
        self._each(items, lambda body: self._to_label(model, body), done)

    def _to_label(self, model: ServedModel, body: LabelBody) -> tuple[str, Entry]:
        label, wrong = checked_truth(body, model.choices)
        id, number = body.id, model.number
        return id, Entry(lambda log: log.label(number, id, label, wrong), model)

    def wants_label(self, model: ServedModel, items: list[WantsBody], done: Done) -> None:
        """Say whether labels are worth asking for; what a selective learner draws is stored."""
        self._each(items, lambda body: self._wanting(model, body), done)

    def _wanting(self, model: ServedModel, body: WantsBody) -> Wanted | tuple[str, Entry]:
        number = model.number
        if body.id is not None and all(
            block is None for block in (body.attributes, body.votes, body.scores, body.candidates)
        ):
            id = body.id
            return id, Entry(lambda log: log.wants(number, id, None) if model.selects else log.kept(number, id), model)
        instance = instance_of(body, model.choices)
        if not model.selects:
            return Wanted(wanted=True)
        try:
            model.learner.scores(**(instance or EMPTY_INSTANCE))
        except UNFIT as error:
            raise Refusal(422, str(error), field=model.options.kind) from None
        id = body.id or self.service.ids.new()
        return id, Entry(lambda log: log.wants(number, id, instance), model)

    async def forget(self, model: ServedModel, ids: list[str]) -> list[Event | Refusal | None]:
        """Store that no label will come for these predictions."""
        entries = [Entry(lambda log, id=id: log.forget(model.number, id), model) for id in ids]  # type: ignore[misc]
        stored = asyncio.Event()
        self.service.pipeline.submit(entries, stored.set)
        await stored.wait()
        return [entry.outcome for entry in entries]

    async def ask_by(self, model: ServedModel, tolerance: float, costs: dict[str, float] | None) -> None:
        """Store by what voters are asked from now on."""
        asking: Instance = {"asking": {"tolerance": tolerance}} | ({} if costs is None else {"costs": costs})
        entry = Entry(lambda log: log.asks(model.number, asking), model)
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
        told = NOTHING_MORE if event.probabilities is None else read_likely(event.probabilities)
        likely = Likely(probabilities=told) if isinstance(told, list) else told
        return _served(event.served, likely, id=id, seq=event.seq)
    if event.label is None:
        return Learned(id=id, seq=event.seq, label=None, predicted=event.served, mistake=None)
    if event.wrong:
        mistake = event.served == event.label
        return Learned(id=id, seq=event.seq, wrong=event.label, predicted=event.served, mistake=mistake)
    mistake = event.served != event.label
    return Learned(id=id, seq=event.seq, label=event.label, predicted=event.served, mistake=mistake)
