"""The service as a Starlette application: the table of operations, admission, errors, start-up and shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import AsyncIterator
from typing import Unpack

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from linmax.service import admin, openapi, trials, views
from linmax.service.keys import Gate, Key
from linmax.service.monitoring import Metrics
from linmax.service.operations import JSON, Call, Operation, encode, refusal_response
from linmax.service.schemas import RecentError, Refusal
from linmax.service.service import Service, ServiceOptions
from linmax.service.service_settings import ServiceSettings

__all__ = ["OPERATIONS", "App"]

logger = logging.getLogger("linmax.service")

MODEL = "/v1/models/{model}"
FILE, LINES = "application/octet-stream", "application/x-ndjson"
LEARNING = (404, 409, 429, 503, 507)
BATCH_LEARNING = (207, *LEARNING)
# The most frequent paths come first: routes are tried in this order.
OPERATIONS = [
    Operation("POST", f"{MODEL}/predict", trials.predict, "predict", LEARNING, cost=None),
    Operation("POST", f"{MODEL}/learn", trials.learn, "learn", LEARNING, cost=None),
    Operation("POST", f"{MODEL}/label", trials.label, "learn", LEARNING, cost=None),
    Operation("POST", f"{MODEL}/predict/batch", trials.predict_batch, "predict", BATCH_LEARNING, cost=None),
    Operation("POST", f"{MODEL}/learn/batch", trials.learn_batch, "learn", BATCH_LEARNING, cost=None),
    Operation("POST", f"{MODEL}/label/batch", trials.label_batch, "learn", BATCH_LEARNING, cost=None),
    Operation("POST", f"{MODEL}/wants_label", trials.wants_label, "learn", LEARNING, cost=None),
    Operation("DELETE", f"{MODEL}/predictions/{{id}}", trials.forget, "learn", LEARNING, status=204),
    Operation("POST", f"{MODEL}/explain", views.explain, "predict", (404, 503)),
    Operation("POST", f"{MODEL}/rank", views.rank, "predict", (404, 503)),
    Operation("POST", f"{MODEL}/ask", views.ask, "predict", (404, 409, 503, 507)),
    Operation("POST", f"{MODEL}/panel", views.panel, "predict", (404, 409, 503), cost=100),
    Operation("GET", f"{MODEL}/weights", views.weights, "predict", (404, 409, 503), cost=10),
    Operation("GET", f"{MODEL}/curve", views.curve, "predict", (404, 503)),
    Operation("GET", f"{MODEL}/news", views.news, "predict", (404, 503)),
    Operation("GET", f"{MODEL}/predictions", views.waiting, "learn", (404, 503, 507), cost=10),
    Operation("GET", f"{MODEL}/trials/{{id}}", views.trial, "learn", (404, 503, 507)),
    Operation("GET", "/v1/models", admin.models, "predict", (503,)),
    Operation("POST", "/v1/models", admin.create, "admin", (200, 202, 409, 422, 429, 503, 507), status=201),
    Operation("GET", MODEL, admin.model, "predict", (404, 503)),
    Operation("PATCH", MODEL, admin.change, "admin", (404, 503, 507)),
    Operation("DELETE", MODEL, admin.delete, "admin", (404, 428, 503, 507), status=204),
    Operation("GET", f"{MODEL}/snapshot", admin.snapshot, "admin", (404, 503), kind=FILE, cost=100),
    Operation("PUT", f"{MODEL}/snapshot", admin.upload, "admin", (409, 413, 429, 503, 507), status=201, takes=FILE),
    Operation("POST", f"{MODEL}/copy", admin.copy, "admin", (404, 409, 429, 503, 507), status=201),
    Operation("POST", "/v1/import", admin.import_events, "admin", (404, 413, 503, 507), takes=LINES, cost=None),
    Operation("GET", "/v1/export", admin.export, "admin", (404, 503, 507), kind=LINES, cost=100),
    Operation("GET", "/health", admin.health),
    Operation("GET", "/ready", admin.ready, refuses=(503,)),
    Operation("GET", "/metrics", admin.metrics, "predict", kind="text/plain"),
    Operation("GET", "/openapi.json", admin.openapi),
    Operation("GET", "/", admin.page, kind="text/html"),
    Operation("GET", "/static/{name}", admin.part, refuses=(404,), kind="*/*"),
]
STANDARD_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
SMALL_BODY = 16_384  # bytes of a body that is not counted among those that arrive
LOOPBACK = re.compile(rb"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE)
NO_TIME_LIMIT = contextlib.nullcontext()  # of trials: they are answered as soon as they are stored
ONCE = (b"host", b"authorization")  # headers that nobody sends twice in good faith


class App(Starlette):
    """The ASGI application.

    Parameters
    ----------
    settings : where the data are, and the limits.
    options : passed on to `Service`.
    """

    def __init__(self, settings: ServiceSettings, **options: Unpack[ServiceOptions]) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self._arriving = 0  # bytes of large bodies that are being read
        self.gate = Gate(settings.data)
        self.service = Service(settings, observe=self.metrics.commit, **options)
        self.metrics.watch(self.service)
        self.description = encode(openapi.describe(OPERATIONS))
        paths: dict[str, dict[str, Operation]] = {}
        for operation in OPERATIONS:
            paths.setdefault(operation.path, {})[operation.method] = operation
        routes = [Route(path, _Endpoint(self, found), methods=list(found)) for path, found in paths.items()]
        super().__init__(routes=routes, exception_handlers={HTTPException: self._misdirected}, lifespan=_lifespan)
        self.router.redirect_slashes = False

    async def answer(self, operation: Operation, request: Request) -> Response:
        """Admit a request, read it, handle it, count it."""
        began = time.perf_counter()
        headers = dict(request.scope["headers"])
        try:
            async with NO_TIME_LIMIT if operation.cost is None else asyncio.timeout(self.settings.answer_seconds):
                key = self._admitted(operation, request, headers)
                body = None if operation.reader is None else await self._body(operation, request, headers, key)
                response = await operation(Call(self, request, headers, key, body))
        except ClientDisconnect:
            return Response()
        except TimeoutError:
            response = self._failed(operation, Refusal(503, "this took too long; try again", retry_after=5))
        except Exception as error:
            response = self._failed(operation, error)
        response.raw_headers.extend(STANDARD_HEADERS)
        seconds = time.perf_counter() - began
        self.metrics.request(operation.name, response.status_code, seconds)
        if operation.cost is None:
            self.metrics.trial(seconds)
        if self.settings.log_requests:
            trace = headers.get(b"traceparent", b"").decode("latin-1")
            more = {
                "operation": operation.name,
                "status": response.status_code,
                "milliseconds": round(seconds * 1e3, 3),
            }
            logger.info("request", extra=more | ({"traceparent": trace} if trace else {}))
        return response

    def _admitted(self, operation: Operation, request: Request, headers: dict[bytes, bytes]) -> Key | None:
        """Return the key of a request; refuse what the key, or the lack of keys, does not allow."""
        if len(headers) < len(request.scope["headers"]):  # some are repeated
            names = [name for name, _ in request.scope["headers"]]
            if any(names.count(name) > 1 for name in ONCE):
                raise Refusal(400, "Host and Authorization must be sent once: readers may differ in which one counts")
        if self.gate.open and not LOOPBACK.fullmatch(headers.get(b"host", b"")):  # no other site reaches in by DNS
            raise Refusal(403, "without keys only this machine is served; the Host header names another")
        if not operation.scope:
            return None
        key = self.gate.admit(headers.get(b"authorization", b""), operation.scope)
        if operation.cost is not None:
            self.gate.charge(key, operation.cost)
        return key

    async def _body(
        self, operation: Operation, request: Request, headers: dict[bytes, bytes], key: Key | None
    ) -> object:
        """Return the body of a request, as far as it is small enough and of the operation's type."""
        length, most = headers.get(b"content-length", b"0"), self.settings.max_body
        if not length.isdigit() or int(length) > most:
            raise _too_large(most)
        expected = int(length) if b"content-length" in headers else most
        if expected <= SMALL_BODY:
            return await self._read(operation, request, headers, key)
        if self._arriving + expected > self.settings.max_arriving:
            raise Refusal(503, f"bodies of {self._arriving} bytes are arriving; try again", retry_after=1)
        self._arriving += expected
        try:
            return await self._read(operation, request, headers, key)
        finally:
            self._arriving -= expected

    async def _read(
        self, operation: Operation, request: Request, headers: dict[bytes, bytes], key: Key | None
    ) -> object:
        assert operation.reader is not None
        parts: list[bytes] = []
        size, more, most = 0, True, self.settings.max_body
        while more:  # as Request.stream does, in half the time
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            size, more = size + len(parts[-1]), message.get("more_body", False)
            if size > most:
                raise _too_large(most)
        if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != JSON.encode():
            raise Refusal(415, "the body must be JSON; send Content-Type: application/json", field="content-type")
        body = operation.reader.read(b"".join(parts))
        if operation.cost is None:
            self.gate.charge(key, len(getattr(body, "items", "1")))
        return body

    def _failed(self, operation: Operation, error: Exception) -> Response:
        """Return the answer to a request that was refused, or that failed through an internal error."""
        if not isinstance(error, Refusal):
            logger.error("%s failed", operation.name, exc_info=error)
            error = Refusal(500, "the server failed; its log says why")
        if operation.name != "ready":  # whose 503 is not an error
            errors, now, message = self.service.errors, time.time(), error.message[:200]
            shown = RecentError(operation=operation.name, status=error.status, message=message, time=now)
            if errors and msgspec.structs.replace(errors[-1], time=now, count=1) == shown:  # the same again
                shown.count = errors.pop().count + 1
            errors.append(shown)
        return refusal_response(error)

    async def _misdirected(self, request: Request, error: Exception) -> Response:
        """Answer a request for which there is no path, or no such method of a path."""
        assert isinstance(error, HTTPException)
        refusal = Refusal(404, "there is nothing at this address; /openapi.json lists the paths")
        allowed = ", ".join(sorted(dict(error.headers or {}).get("Allow", "").split(", ")))
        if allowed:
            refusal = Refusal(405, f"method {request.method} not allowed; use {allowed}")
        response = refusal_response(refusal)
        response.raw_headers += [*STANDARD_HEADERS, *([(b"allow", allowed.encode())] if allowed else [])]
        self.metrics.request("unknown", refusal.status, 0.0)
        return response


def _too_large(most: int) -> Refusal:
    return Refusal(413, f"the body must be at most {most} bytes", field="body")


class _Endpoint:
    """One path as an ASGI application."""

    def __init__(self, app: App, operations: dict[str, Operation]) -> None:
        self.app, self.operations = app, operations | ({"HEAD": operations["GET"]} if "GET" in operations else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self.app.answer(self.operations[scope["method"]], Request(scope, receive))
        await response(scope, receive, send)


@contextlib.asynccontextmanager
async def _lifespan(app: App) -> AsyncIterator[None]:
    """Listen at once; `/ready` says when the log has been replayed."""
    started = asyncio.create_task(app.service.start())
    started.add_done_callback(_end_if_failed)
    yield
    await asyncio.wait([started])
    await app.service.stop()


def _end_if_failed(task: asyncio.Task[None]) -> None:
    """End the process if recovery fails, so that no server waits for ever."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.critical("recovery failed, the process ends", exc_info=error)
        raise SystemExit(1)
