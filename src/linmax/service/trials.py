"""Trials: requests turned into events, and events into answers. Long batches are processed in slices of time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from linmax.service import pipeline, schemas
from linmax.service.bodies import Instance, Label, instance_of, truth_of
from linmax.service.log import ASKS, FORGET, LABEL, LEARN, PREDICT, WANTS, Body, Event, EventLog
from linmax.service.operations import Call, json_response, refusal_response
from linmax.service.pipeline import Entry
from linmax.service.schemas import Batch, Refusal, Results
from linmax.service.served_model import EMPTY_INSTANCE, UNFIT, ServedModel

if TYPE_CHECKING:
    from linmax.service.service import Service

MOST_PENDING = 100_000
Answer = schemas.Predicted | schemas.Learned | schemas.Wanted | Refusal
Admit = Callable[[Instance, Label | None], None]  # takes the new names of a trial, or refuses
read_likely = msgspec.json.Decoder(schemas.Likely).decode


class TrialService:
    """The work on trials: `each` does one kind of it on all items, and returns when all are stored and applied."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def predict(self, model: ServedModel, body: schemas.PredictBody) -> Answer | Entry:
        instance = instance_of(body, model.limits)
        try:
            label = model.predict(instance)
            likely = _likely(model, instance, body, label)
        except UNFIT as error:
            raise Refusal(422, str(error), field=model.options.kind) from None
        if body.id is None and not body.store:
            return _served(label, likely)
        stored = Body(instance, served=label, likely=None if likely is None else msgspec.json.encode(likely))
        return self._entry(store_prediction, model, body.id, stored)

    def learn(self, model: ServedModel, body: schemas.LearnBody) -> Entry:
        instance = instance_of(body, model.limits)
        label, wrong = truth_of(body, model.limits)
        model.check(instance, label, "wrong" if wrong else "label")
        admit = partial(self.service.admit, model)
        return self._entry(store_trial, model, body.id, Body(instance, label, wrong, weight=body.weight), admit)

    def label(self, model: ServedModel, body: schemas.LabelBody) -> Entry:
        stored = Body(None, *truth_of(body, model.limits), weight=body.weight)
        return self._entry(store_label, model, body.id, stored, partial(self.service.admit, model))

    def wants_label(self, model: ServedModel, body: schemas.WantsBody) -> Answer | Entry:
        blocks = (body.attributes, body.votes, body.scores, body.candidates)
        if body.id is not None and all(block is None for block in blocks):
            return self._entry(store_question if model.selects else waiting_question, model, body.id, None)
        instance = instance_of(body, model.limits)
        if not model.selects:
            return schemas.Wanted(wanted=True)
        try:
            model.learner.scores(**(instance or EMPTY_INSTANCE))
        except UNFIT as error:
            raise Refusal(422, str(error), field=model.options.kind) from None
        return self._entry(store_question, model, body.id, instance)

    async def forget(self, model: ServedModel, ids: list[str]) -> list[Event | Refusal | None]:
        """Store that no label will come for these predictions."""
        entries = [self._entry(store_loss, model, id) for id in ids]
        await self.service.pipeline.submit(entries)
        return [entry.outcome for entry in entries]

    async def ask_by(self, model: ServedModel, tolerance: float, costs: dict[str, float] | None) -> None:
        """Store the tolerance and the costs by which voters are asked from now on."""
        asking: Instance = {"tolerance": tolerance} | ({} if costs is None else {"costs": costs})
        entry = Entry(lambda log: log.append(model.number, ASKS, body=Body(asking)), model)
        await self.service.pipeline.submit([entry])
        if isinstance(entry.outcome, Refusal):
            raise entry.outcome

    # -- shared ---------------------------------------------------------------------------------------

    def _entry(self, store: Callable[..., Event], model: ServedModel, id: str | None, *arguments: object) -> Entry:
        """Return an entry that the writer stores by calling `store`; without an id it gets a new one."""
        id = id or self.service.ids.new()
        return Entry(lambda log: store(log, model.number, id, *arguments), model, id)

    async def each(self, model: ServedModel, items: list[Any], work: Work) -> list[Answer]:
        """Work on one item after another; a long list yields to other requests now and then. Then store."""
        results: list[Answer | Entry] = []
        deadline = time.monotonic() + pipeline.SLICE
        for body in items:
            if results and time.monotonic() > deadline:
                await asyncio.sleep(0)
                deadline = time.monotonic() + pipeline.SLICE
            try:
                results.append(work(model, body))
            except Refusal as refusal:
                results.append(refusal)
        if entries := [result for result in results if type(result) is Entry]:
            await self.service.pipeline.submit(entries)
        return [_answer(result) if type(result) is Entry else cast(Answer, result) for result in results]


def _likely(
    model: ServedModel, instance: Instance, body: schemas.PredictBody, label: Label | None
) -> schemas.Likely | None:
    """Return the requested probabilities and the like; None if nothing is requested."""
    if not body.probabilities and body.coverage is None and body.reject is None:
        return None
    likely = schemas.Likely()
    if body.coverage is not None:
        likely.set = model.likely_set(instance, body.coverage)
    if body.probabilities or body.reject is not None:
        rows = model.probabilities(instance)
        if body.probabilities:
            likely.probabilities = rows
        if body.reject is not None:
            likely.sure = any(row.label == label and row.probability >= 1.0 - body.reject for row in rows)
    return likely


def _served(
    label: Label | None, likely: schemas.Likely | None, id: str | UnsetType = UNSET, seq: int | UnsetType = UNSET
) -> schemas.Predicted:
    """Return the answer to a prediction; without a label if it is not sure enough."""
    if likely is None:
        return schemas.Predicted(label=label, id=id, seq=seq)
    shown, sure = None if likely.sure is False else label, likely.sure
    return schemas.Predicted(label=shown, id=id, seq=seq, probabilities=likely.probabilities, set=likely.set, sure=sure)


def _answer(entry: Entry) -> Answer:
    event, id = entry.outcome, entry.id
    if not isinstance(event, Event):
        assert event is not None
        return event
    if event.kind == WANTS:
        return schemas.Wanted(wanted=event.wanted, id=id, seq=event.seq)
    if event.kind == PREDICT:
        likely = None if event.likely is None else read_likely(event.likely)
        return _served(event.served, likely, id=id, seq=event.seq)
    if event.label is None:
        return schemas.Learned(id=id, seq=event.seq, label=None, predicted=event.served, mistake=None)
    keyed = entry.model.keyed
    same = keyed(event.served) == keyed(event.label)
    if event.wrong:
        return schemas.Learned(id=id, seq=event.seq, wrong=event.label, predicted=event.served, mistake=same)
    return schemas.Learned(id=id, seq=event.seq, label=event.label, predicted=event.served, mistake=not same)


# -- in the writer's thread: a request becomes an event, or repeats one, or contradicts one -----------------------


def store_prediction(log: EventLog, number: int, id: str, body: Body) -> Event:
    """Store a prediction whose label will come later."""
    row = log.model(number)
    if row.pending >= row.limit("max_pending", MOST_PENDING) and log.find(number, id) is None:
        message = f"{row.pending} predictions wait for labels, the most this model stores; label or forget some"
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
    asked = f"?{id}"  # an id that no client can use
    first = log.find(number, asked)
    if first is None:
        given = waiting_question(log, number, id, None).instance if instance is None else instance
        return log.append(number, WANTS, asked, body=Body(given))
    if instance is not None and first.instance != instance:
        raise Refusal(409, f"id {id!r} was asked about with another instance; choose another", field="id")
    return first


def waiting_question(log: EventLog, number: int, id: str, _instance: None) -> Event:
    """Return the prediction that waits for its label, as a question that any learner answers with yes."""
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
    if not event.repeat or (event.label, event.wrong, event.weight) == (body.label, body.wrong, body.weight):
        return event
    if (event.label, event.wrong) == (body.label, body.wrong):
        raise Refusal(
            409, f"id {id!r} was learned with the weight {event.weight:g}, got {body.weight:g}", field="weight"
        )
    known = f"is known not to be {event.label!r}" if event.wrong else f"has the label {event.label!r} already"
    if event.label is None:
        known = "was learned without a label"
    got = f"got wrong={body.label!r}" if body.wrong else f"got {body.label!r}"
    raise Refusal(409, f"id {id!r} {known}, {got}", field="wrong" if body.wrong else "label")


# -- handlers -----------------------------------------------------------------------------------------------------

Work = Callable[[ServedModel, Any], Answer | Entry]


async def _one(call: Call[Any], work: Work) -> Any:
    key = call.headers.get(b"idempotency-key")
    if key is not None and not isinstance(call.body, schemas.LabelBody):  # whose id is that of its prediction
        call.body.id = _id_of(key, call.body.id)
    (answer,) = await call.service.trials.each(call.model, [call.body], work)
    if isinstance(answer, Refusal):
        raise answer
    return answer


def _id_of(key: bytes, id: str | None) -> str:
    """Return the id of a trial whose request has an Idempotency-Key."""
    try:
        given = msgspec.convert(key.decode("latin-1").strip('"'), schemas.Id)
    except msgspec.ValidationError:
        message = f"must be an id: {schemas.ID.description}"
        raise Refusal(422, f"Idempotency-Key {message}", field="idempotency-key") from None
    if id not in (None, given):
        raise Refusal(422, f"id is {id!r}, but Idempotency-Key is {given!r}; send one of them", field="id")
    return given


async def _several(call: Call[Any], work: Work) -> Response:
    answers = await call.service.trials.each(call.model, call.body.items, work)
    refused = [answer for answer in answers if isinstance(answer, Refusal)]
    results = {"results": [{"error": answer.problem} if isinstance(answer, Refusal) else answer for answer in answers]}
    if len(refused) == len(answers) and len({refusal.status for refusal in refused}) == 1:  # one reason for all
        return refusal_response(refused[0], results)
    return json_response(results, 207 if refused else 200)


async def predict(call: Call[schemas.PredictBody]) -> schemas.Predicted:
    """Predict the label of an instance; store it if it has an id, which requires a key that allows learning."""
    if call.body.id is not None or call.body.store or b"idempotency-key" in call.headers:
        call.require_learn("a prediction with an id is stored")
    return cast(schemas.Predicted, await _one(call, call.service.trials.predict))


async def learn(call: Call[schemas.LearnBody]) -> schemas.Learned:
    """Store an instance with its label and learn it."""
    return cast(schemas.Learned, await _one(call, call.service.trials.learn))


async def label(call: Call[schemas.LabelBody]) -> schemas.Learned:
    """Store the label of an earlier prediction and learn it."""
    return cast(schemas.Learned, await _one(call, call.service.trials.label))


async def wants_label(call: Call[schemas.WantsBody]) -> schemas.Wanted:
    """Return whether a label is worth asking for; draws are stored."""
    return cast(schemas.Wanted, await _one(call, call.service.trials.wants_label))


async def predict_batch(call: Call[Batch[schemas.PredictBody]]) -> Response | Results[schemas.PredictedItem]:
    """Predict several instances; those with an id are stored, which requires a key that allows learning."""
    if any(item.id is not None or item.store for item in call.body.items):
        call.require_learn("a prediction with an id is stored")
    return await _several(call, call.service.trials.predict)


async def learn_batch(call: Call[Batch[schemas.LearnBody]]) -> Response | Results[schemas.LearnedItem]:
    """Learn several instances in this order."""
    return await _several(call, call.service.trials.learn)


async def label_batch(call: Call[Batch[schemas.LabelBody]]) -> Response | Results[schemas.LearnedItem]:
    """Learn the labels of several earlier predictions."""
    return await _several(call, call.service.trials.label)


async def forget(call: Call[None]) -> None:
    """Give up a prediction whose label will not come."""
    (outcome,) = await call.service.trials.forget(call.model, [call.request.path_params["id"]])
    if isinstance(outcome, Refusal):
        raise outcome
