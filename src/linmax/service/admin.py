"""Handlers for operators: models, the export of the log, health, metrics and the page."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta
from starlette.responses import Response, StreamingResponse

from linmax.models.online import Learner
from linmax.service.log import EventLog
from linmax.service.model import ServedModel
from linmax.service.operations import Call, encode, json_response
from linmax.service.schemas import Limits, ModelOptions, Models, NewModel, Ready, Refusal, Status, Summary
from linmax.service.service import Creation, Service
from linmax.service.views import After, summary

EXPORT_ROWS = 200
CREATE_SECONDS = 2.0  # that a creation waits for the compiler if the client does not say how long
PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
}
PAGE = {
    "index.html": "text/html",
    "page.css": "text/css",
    "page.js": "text/javascript",
    "uPlot.iife.min.js": "text/javascript",
    "uPlot.min.css": "text/css",
    "icon.svg": "image/svg+xml",
}
PAGE_PARTS = {name: resources.files("linmax.service").joinpath("static", name).read_bytes() for name in PAGE}


async def models(call: Call[None]) -> Response | Models:
    """Return all models."""
    call.service.check_ready()
    quarantined = [{"name": model.name, "reason": model.reason} for model in call.service.quarantined.values()]
    shown = []
    for model in list(call.service.models.values()):
        shown.append(msgspec.Raw(encode(summary(model))))
        await asyncio.sleep(0)  # thousands of classes each: other requests come in between
    shown += [msgspec.Raw(encode(_compiling(creation))) for creation in list(call.service.creations.values())]
    return json_response({"models": shown, "quarantined": quarantined})


async def create(
    call: Call[NewModel],
    *,
    wait: Annotated[float, Meta(ge=0, le=300, description="seconds to wait for its code to compile")] = CREATE_SECONDS,
) -> Response | Summary:
    """Create a model; 202 if its code still compiles: it answers once its state is "ready"."""
    if prefer := re.search(r"(?:^|[,;\s])wait=(\d+)", call.request.headers.get("prefer", "")):
        wait = min(300.0, float(prefer[1]))
    status, found = await call.service.create(call.body, wait)
    response = json_response(summary(found) if isinstance(found, ServedModel) else _compiling(found), status)
    if status == 202:
        response.headers["retry-after"] = "1"
    return response


def _compiling(creation: Creation) -> Summary:
    options = msgspec.convert(creation.description, ModelOptions)
    return Summary(name=creation.name, state="compiling", options=options, created=int(1000 * creation.began))


async def model(call: Call[None]) -> Summary:
    """Return one model."""
    if call.service.ready and (creation := call.service.creations.get(call.request.path_params["model"])):
        return _compiling(creation)
    return summary(call.model)


async def delete(
    call: Call[None], *, confirm: Annotated[str, Meta(description="the word from the first answer")] = ""
) -> None:
    """Delete a model with its log; requires a second request that confirms it."""
    call.service.check_ready()
    await call.service.delete(call.request.path_params["model"], confirm)


async def change(call: Call[Limits]) -> Summary:
    """Change a model's limits."""
    model, limits = call.model, msgspec.to_builtins(call.body)
    await call.service.pipeline.call(lambda log: log.change(model.number, limits))
    model.change(limits)
    return summary(model)


async def snapshot(call: Call[None]) -> Response:
    """Return the model as a file that linmax.Learner.load reads."""
    model = call.model
    name = f'attachment; filename="{model.name}-{model.applied}.linmax"'
    content = await asyncio.to_thread(_model_file, *model.learner_state())
    return Response(content, headers={"content-disposition": name}, media_type="application/octet-stream")


def _model_file(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="linmax-") as folder:  # which nobody else can read
        path = Path(folder) / "model.linmax"
        Learner.from_state(description, arrays).save(path)
        return path.read_bytes()


async def export(
    call: Call[None],
    *,
    since: After = 0,
    model: Annotated[str, Meta(description="of this model alone")] = "",
) -> Response:
    """Return the log as lines of JSON: the events that there are when it begins."""
    call.service.check_ready()
    number = call.service.model(model).number if model else None
    last = await call.service.pipeline.call(lambda log: log.seq)
    lines = _lines(call.service, since, last if call.request.method == "GET" else since, number)
    return StreamingResponse(lines, media_type="application/x-ndjson")


async def _lines(service: Service, since: int, last: int, number: int | None) -> AsyncIterator[bytes]:
    while since < last and not service.stopping.is_set():
        events = await service.pipeline.call(partial(EventLog.export, after=since, number=number, most=EXPORT_ROWS))
        yield b"".join(encode(event) + b"\n" for event in events if event["seq"] <= last)
        since = events[-1]["seq"] if len(events) == EXPORT_ROWS else last


async def health(_call: Call[None]) -> Status:
    """Return whether the process is alive."""
    return Status(status="alive")


async def ready(call: Call[None]) -> Ready:
    """Return whether requests are taken."""
    service = call.service
    if service.stopping.is_set():
        raise Refusal(503, "the server is stopping", retry_after=5)
    service.check_ready()
    return Ready(
        status="ready",
        disk_full=service.pipeline.full,
        compiling=sorted(service.creations),
        quarantined=sorted(service.quarantined),
        incidents=service.incidents,
    )


async def metrics(call: Call[None]) -> Response:
    """Return figures for Prometheus."""
    return Response(call.app.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def openapi(call: Call[None]) -> Response | dict[str, Any]:
    """Return this description."""
    return Response(call.app.description, media_type="application/json")


async def page(_call: Call[None]) -> Response:
    """Return the page."""
    return Response(PAGE_PARTS["index.html"], headers=PAGE_HEADERS, media_type="text/html")


async def part(call: Call[None]) -> Response:
    """Return a part of the page."""
    name = call.request.path_params["name"]
    if name not in PAGE:  # a look-up in memory: no name from a request reaches the file system
        raise Refusal(404, "there is no such part of the page")
    return Response(PAGE_PARTS[name], headers=PAGE_HEADERS, media_type=PAGE[name])
