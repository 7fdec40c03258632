"""News of a model as server-sent events."""

from __future__ import annotations

import asyncio

from starlette.types import Receive, Send

from linmax.service import views
from linmax.service.handlers import query_number
from linmax.service.messages import STANDARD_HEADERS, Request, encode
from linmax.service.model import ServedModel
from linmax.service.refusals import Refusal
from linmax.service.weighing import NO_WEIGHTS, WeightsView

__all__ = ["stream_events"]

STREAM_SECONDS = 0.2  # of the quickest stream; with many, all are slower
QUIET_SECONDS = 10.0
MOST_STREAMS = 200
STREAM_BARS = 40


async def stream_events(request: Request, receive: Receive, send: Send) -> None:
    """Send points as they come, at most five a second; an event's id is where to go on after a reconnection."""
    app = request.app
    model = app.service.model(request.parameters["model"])
    if app.streams >= MOST_STREAMS:
        raise Refusal(503, "too many streams are open", retry_after=10)
    last = request.headers.get(b"last-event-id", b"").decode("latin-1")
    reached = views.reached(model, last, query_number(request, "after", 0, 2**53, least=0))
    app.streams += 1
    try:
        await _send_events(request, model, reached, receive, send)
    finally:
        app.streams -= 1


async def _send_events(request: Request, model: ServedModel, reached: int, receive: Receive, send: Send) -> None:
    app, service = request.app, request.app.service
    kind = (b"content-type", b"text/event-stream; charset=utf-8")
    await send({"type": "http.response.start", "status": 200, "headers": [kind, *STANDARD_HEADERS]})
    if request.head:  # that there is a stream, and no more
        await send({"type": "http.response.body", "body": b""})
        return
    ends = [asyncio.create_task(_hung_up(receive)), asyncio.create_task(service.stopping.wait())]
    try:
        told, quiet = None, 0.0
        while not any(end.done() for end in ends) and service.models.get(model.name) is model:
            state = (model.account.trials, len(service.errors) and service.errors[-1])
            if state != told or quiet > QUIET_SECONDS:
                bars = await _bars(model)
                trials, errors = model.account.trials, list(service.errors)
                news = encode(views.news(model, reached, bars, app.metrics.latency(), errors)).decode()
                text = f"id: {model.number}.{trials}\ndata: {news}\n\n"
                await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
                told, reached, quiet = state, trials, 0.0
            quiet += STREAM_SECONDS
            await asyncio.wait(ends, timeout=STREAM_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        await send({"type": "http.response.body", "body": b""})
    finally:
        for end in ends:
            end.cancel()


async def _bars(model: ServedModel) -> WeightsView:
    try:
        return await model.weighing.largest(model.learner, model.applied, STREAM_BARS)
    except ValueError:  # it has none to show
        return NO_WEIGHTS


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
