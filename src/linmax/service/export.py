"""The log as lines of JSON, sent piece by piece while the service goes on."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.types import Receive, Send

from linmax.service.handlers import query_number
from linmax.service.log import EventLog
from linmax.service.messages import STANDARD_HEADERS, Request, encode

__all__ = ["stream_export"]

EXPORT_ROWS = 200


def _slice(log: EventLog, *, after: int, number: int | None) -> list[dict[str, Any]]:
    return log.export(after, number, EXPORT_ROWS)


async def stream_export(request: Request, _receive: Receive, send: Send) -> None:
    """Send all events that there are when it begins, after `since`, of one model or of all."""
    service = request.app.service
    service.check_ready()
    since = query_number(request, "since", 0, 2**53, least=0)
    number = service.model(request.query["model"]).number if "model" in request.query else None
    last = await service.pipeline.call(lambda log: log.seq)
    kind = (b"content-type", b"application/x-ndjson")
    await send({"type": "http.response.start", "status": 200, "headers": [kind, *STANDARD_HEADERS]})
    more = not request.head
    while more and not service.stopping.is_set():
        events = await service.pipeline.call(partial(_slice, after=since, number=number))
        lines = b"".join(encode(event) + b"\n" for event in events if event["seq"] <= last)
        more = bool(lines) and len(events) == EXPORT_ROWS and events[-1]["seq"] < last
        since = events[-1]["seq"] if events else since
        await send({"type": "http.response.body", "body": lines, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
