"""Handlers for operators: models, the export of the log, health, metrics and the page."""

from __future__ import annotations

import asyncio
import re
import tempfile
import zlib
from collections.abc import AsyncIterator
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta
from starlette.responses import Response, StreamingResponse

from linmax.models.online import Learner
from linmax.service.importing import Importer
from linmax.service.log import EventLog
from linmax.service.operations import Call, encode, json_response
from linmax.service.schemas import (
    MODEL_NAME,
    CopyBody,
    Imported,
    Kind,
    Limits,
    ModelName,
    ModelOptions,
    Models,
    NewModel,
    Ready,
    Refusal,
    Status,
    Summary,
)
from linmax.service.served_model import Account, ServedModel, options_of
from linmax.service.service import Creation, Service
from linmax.service.views import After, summary

EXPORT_ROWS = 200
NDJSON, GZIP = "application/x-ndjson", 31
MOST_UNZIPPED = 2**18  # bytes at a time
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


async def models(
    call: Call[None],
    *,
    after: Annotated[str, Meta(description="only models whose name comes later")] = "",
    limit: Annotated[int, Meta(ge=1, le=1000, description="the most models")] = 1000,
    kind: Annotated[str, Meta(description="of this kind alone")] = "",
    learner: Annotated[str, Meta(description="of this learner alone")] = "",
    state: Annotated[Literal["", "ready", "compiling"], Meta(description="in this state alone")] = "",
) -> Response | Models:
    """Return models, by name."""
    call.service.check_ready()
    quarantined = [{"name": model.name, "reason": model.reason} for model in call.service.quarantined.values()]
    found: dict[str, ServedModel | Creation] = {**call.service.creations, **call.service.models}
    names = sorted(name for name, one in found.items() if name > after and kind in ("", one.options.kind) and (
        learner in ("", one.options.learner) and state in ("", "compiling" if isinstance(one, Creation) else "ready")
    ))  # fmt: skip
    shown = []
    for name in names[:limit]:
        shown.append(msgspec.Raw(encode(_shown(found[name]))))
        await asyncio.sleep(0)  # thousands of classes each: other requests come in between
    more = names[limit - 1] if len(names) > limit else None
    return json_response({"models": shown, "quarantined": quarantined, "next": more})


async def create(
    call: Call[NewModel],
    *,
    wait: Annotated[float, Meta(ge=0, le=300, description="seconds to wait for its code to compile")] = CREATE_SECONDS,
) -> Response | Summary:
    """Create a model; 202 if its code still compiles: it answers once its state is "ready"."""
    if prefer := re.search(r"(?:^|[,;\s])wait=(\d+)", call.request.headers.get("prefer", "")):
        wait = min(300.0, float(prefer[1]))
    status, found = await call.service.create(call.body, wait)
    response = json_response(_shown(found), status)
    if status == 202:
        response.headers["retry-after"] = "1"
    return response


def _shown(found: ServedModel | Creation) -> Summary:
    if isinstance(found, ServedModel):
        return summary(found)
    options = msgspec.convert(found.description, ModelOptions)
    return Summary(name=found.name, state="compiling", options=options, created=int(1000 * found.began))


async def model(call: Call[None]) -> Summary:
    """Return one model."""
    if call.service.ready and (creation := call.service.creations.get(call.request.path_params["model"])):
        return _shown(creation)
    return summary(call.model)


async def delete(
    call: Call[None], *, confirm: Annotated[str, Meta(description="the word from the first answer")] = ""
) -> None:
    """Delete a model with its log; requires a second request that confirms it."""
    call.service.check_ready()
    await call.service.delete(call.request.path_params["model"], confirm)


async def change(call: Call[Limits]) -> Summary:
    """Change a model's limits, or its name."""
    model = call.model
    await call.service.change(model, call.body)
    return summary(model)


async def copy(call: Call[CopyBody]) -> Summary:
    """Copy a model with what it has learned; predictions that wait for their label stay with it."""
    model = call.model
    learner, account = Learner.from_state(*model.learner_state()), Account.from_state(model.account.state())
    return summary(await call.service.adopt(call.body.name, model.options, (learner, account)))


async def upload(
    call: Call[None], *, kind: Annotated[Kind | None, Meta(description="by default that of the names it knows")] = None
) -> Summary:
    """Create a model from a file such as snapshot gives, or Learner.save writes."""
    name = call.request.path_params["model"]
    try:
        msgspec.convert(name, ModelName)
    except msgspec.ValidationError:
        raise Refusal(422, f"the name must be made of {MODEL_NAME.description}", field="model") from None
    call.service.check_ready()
    content = bytearray()
    async for part in call.request.stream():
        content += part
        if len(content) > call.service.budget.each:
            raise Refusal(413, f"the file must be at most {call.service.budget.each} bytes", field="body")
    learner = await asyncio.to_thread(_learner_in, bytes(content))
    account = Account()
    account.trials, account.mistakes = learner.trials, learner.mistakes
    return summary(await call.service.adopt(name, options_of(learner, kind), (learner, account)))


def _learner_in(content: bytes) -> Learner:
    with tempfile.TemporaryDirectory(prefix="linmax-") as folder:
        path = Path(folder) / "model.linmax"
        path.write_bytes(content)
        try:
            return Learner.load(path)
        except (ValueError, KeyError, TypeError, OSError) as error:
            reason = str(error).replace(str(path), "the file")
            raise Refusal(422, f"the body must be a model file of linmax: {reason}", field="body") from None


async def snapshot(call: Call[None]) -> Response:
    """Return the model as a file that linmax.Learner.load reads."""
    model = call.model
    name = f'attachment; filename="{model.name}-{model.applied}.linmax"'
    content = await asyncio.to_thread(_model_file, *model.learner_state())
    return Response(content, headers={"content-disposition": name}, media_type="application/octet-stream")


def _model_file(description: dict[str, object], arrays: dict[str, np.ndarray]) -> bytes:
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
    """Return the log as lines of JSON: the events that there are when it begins; gzipped for clients that accept it."""
    call.service.check_ready()
    number = call.service.model(model).number if model else None
    last = await call.service.pipeline.call(lambda log: log.seq)
    lines = _lines(call.service, since, last if call.request.method == "GET" else since, number)
    if "gzip" not in call.request.headers.get("accept-encoding", ""):
        return StreamingResponse(lines, media_type=NDJSON)
    return StreamingResponse(_zipped(lines), media_type=NDJSON, headers={"content-encoding": "gzip"})


async def _zipped(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    zipper = zlib.compressobj(1, wbits=GZIP)
    async for some in lines:
        yield zipper.compress(some)
    yield zipper.flush()


async def _lines(service: Service, since: int, last: int, number: int | None) -> AsyncIterator[bytes]:
    while since < last and not service.stopping.is_set():
        events = await service.pipeline.call(partial(EventLog.export, after=since, number=number, most=EXPORT_ROWS))
        yield b"".join(encode(event) + b"\n" for event in events if event["seq"] <= last)
        since = events[-1]["seq"] if len(events) == EXPORT_ROWS else last


async def import_events(
    call: Call[None],
    *,
    model: Annotated[str, Meta(description="all events are of this model, whatever they say")] = "",
) -> Imported:
    """Store and learn the events of an export: lines of JSON, gzipped or not; repeating it is harmless."""
    call.service.check_ready()
    return await Importer(call.service, model).run(_unzipped(call))


async def _unzipped(call: Call[None]) -> AsyncIterator[bytes]:
    """Yield the body in parts of moderate size, whatever its compression makes of it."""
    if call.headers.get(b"content-encoding", b"identity") != b"gzip":
        async for part in call.request.stream():
            yield part
        return
    unzipper = zlib.decompressobj(wbits=GZIP)
    async for part in call.request.stream():
        while part:
            try:
                yield unzipper.decompress(part, MOST_UNZIPPED)
            except zlib.error as error:
                raise Refusal(422, f"the body is not gzip: {error}", field="body") from None
            part = unzipper.unconsumed_tail
            if unzipper.eof and unzipper.unused_data:  # files joined together
                part, unzipper = unzipper.unused_data, zlib.decompressobj(wbits=GZIP)
    if not unzipper.eof:
        raise Refusal(422, "the gzip body is not whole; repeat the import with all of it", field="body")


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
