"""The service over HTTP: one table of operations, from which come the routes and the OpenAPI description."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from importlib import resources
from typing import Any

import msgspec
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from linmax.service import bodies, openapi, views
from linmax.service.keys import COOKIE, SESSION_SECONDS, Gate, Key
from linmax.service.metrics import Metrics
from linmax.service.model import Model
from linmax.service.refusals import Refusal
from linmax.service.service import Service
from linmax.service.settings import Settings

__all__ = ["HEADERS", "Answer", "App", "Operation", "Resource"]

logger = logging.getLogger("linmax.service")

encode = msgspec.json.Encoder().encode
LOOPBACK = {b"localhost", b"127.0.0.1", b"[::1]"}
JSON = b"application/json"
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
PAGE_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", POLICY),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
PAGE = {
    "index.html": b"text/html; charset=utf-8",
    "page.css": b"text/css; charset=utf-8",
    "page.js": b"text/javascript; charset=utf-8",
    "uPlot.iife.min.js": b"text/javascript; charset=utf-8",
    "uPlot.min.css": b"text/css; charset=utf-8",
    "icon.svg": b"image/svg+xml",
}
STREAM_SECONDS = 0.2
QUIET_SECONDS = 10.0
MOST_STREAMS = 200


@dataclass(slots=True)
class Request:
    """What a handler needs to know."""

    app: App
    operation: Operation
    parameters: dict[str, str]
    query: dict[str, str]
    body: Any
    key: Key | None
    headers: dict[bytes, bytes]
    secure: bool


class Answer(msgspec.Struct):
    """What goes back."""

    content: bytes
    status: int = 200
    kind: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


Content = bytes | bytearray
Handler = Callable[[Request], Awaitable[Answer]]
Begin = Callable[[Service, Model, list[Any], Callable[[list[Any]], None]], None]


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    `scope` is what a key must allow ("" for everybody), `body` the type of the JSON that is taken, `returns` that of
    the answer, `refuses` the statuses beyond those that every operation may give. `begin` is there when it is about
    trials.
    """

    name: str
    method: str
    path: str
    scope: str
    summary: str
    handler: Handler
    body: Any = None
    returns: Any = None
    status: int = 200
    refuses: tuple[int, ...] = ()
    query: tuple[tuple[str, dict[str, Any], str], ...] = ()
    kind: str = "application/json"
    begin: Begin | None = None


class App:
    """The ASGI application.

    Parameters
    ----------
    settings : where the data are, and the limits.
    options : passed on to `Service`.
    """

    def __init__(self, settings: Settings, **options: Any) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.gate = Gate(settings.data)
        self.service = Service(settings, observe=self.metrics.commit, **options)
        self.metrics.watch(self.service)
        self.page = {name: resources.files("linmax.service").joinpath("static", name).read_bytes() for name in PAGE}
        self.description = encode(openapi.describe(OPERATIONS))
        self.streams = 0
        self._started: asyncio.Task[None] | None = None
        paths: dict[str, dict[str, Operation]] = {}
        for operation in OPERATIONS:
            paths.setdefault(operation.path, {})[operation.method] = operation
        found = {path: Resource(self, methods) for path, methods in paths.items()}
        endpoints = [Route(path, endpoint=resource) for path, resource in found.items()]
        self.trials = {verb.encode(): found[f"{MODEL}/{verb}"] for verb in ("predict", "learn", "label")}
        self.router = Router(endpoints, default=self._nowhere, redirect_slashes=False, lifespan=self._lifespan)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        await self.router(scope, receive, send)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _app: Any) -> AsyncIterator[None]:
        """Listen at once; `/ready` says when the log has been replayed."""
        self._started = asyncio.create_task(self.service.start())
        self._started.add_done_callback(_told)
        yield
        await asyncio.wait([self._started])
        await self.service.stop()

    async def _nowhere(self, scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        refusal = Refusal(404, "there is nothing at this address; /openapi.json lists what there is")
        await _send(send, scope["method"], _refused(refusal))
        self.metrics.request("unknown", 404, 0.0)

    def note_error(self, operation: str, status: int, message: str) -> None:
        """Remember an error for the page; who asks whether the service is ready is told, which is none."""
        if operation == "ready":
            return
        errors, count = self.service.errors, 1
        told = {"operation": operation, "status": status, "message": message[:200]}
        if errors and told.items() <= errors[-1].items():  # the same again
            count = errors.pop()["count"] + 1
        errors.append(told | {"time": time.time(), "count": count})


def _told(task: asyncio.Task[None]) -> None:
    """A recovery that fails must not leave a server that waits for ever."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.critical("recovery failed, the process ends", exc_info=error)
        raise SystemExit(1)


class Resource:
    """One path: finds the operation, lets it in, reads, handles, answers, counts."""

    def __init__(self, app: App, methods: dict[str, Operation]) -> None:
        self.app = app
        self.methods = dict(methods)
        if "GET" in methods:
            self.methods["HEAD"] = methods["GET"]
        self.allow = ", ".join(sorted(self.methods)).encode()
        self.decoders = {
            operation.method: msgspec.json.Decoder(operation.body)
            for operation in methods.values()
            if operation.body is not None
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        app, method = self.app, scope["method"]
        operation = self.methods.get(method)
        name = operation.name if operation else "unknown"
        try:
            if operation is None:
                allowed = self.allow.decode()
                raise Refusal(405, f"{method} is not for this address; allowed: {allowed}", allow=allowed)
            request = await self._request(operation, scope, receive)
            if operation.name == "stream":
                await _stream(request, receive, send)
                app.metrics.request(name, 200, time.perf_counter() - began)
                return
            answer = await operation.handler(request)
        except _Gone:
            return
        except Exception as error:
            answer = self._failed(name, error)
        await _send(send, method, answer)
        trials = operation is not None and operation.begin is not None
        self._count(name, answer.status, time.perf_counter() - began, trials)
        if app.settings.log_requests:
            self._log(dict(scope["headers"]), name, answer.status, time.perf_counter() - began)

    def begin(self, model: str, headers: dict[bytes, bytes], content: Content, done: Callable[[Answer], None]) -> None:
        """The short way of a request about one trial: `done` hears the answer, at once or when it is stored."""
        began = time.perf_counter()
        app, operation = self.app, self.methods["POST"]
        name = operation.name

        def finish(results: list[Any]) -> None:
            result = results[0]
            answer = self._failed(name, result) if isinstance(result, Refusal) else Answer(encode(result))
            done(answer)
            self._count(name, answer.status, time.perf_counter() - began, True)
            if app.settings.log_requests:
                self._log(headers, name, answer.status, time.perf_counter() - began)

        try:
            assert operation.begin is not None
            key = self._admit(operation, headers)
            body = self._decode(operation, headers, content, key)
            operation.begin(app.service, app.service.model(model), [body], finish)
        except Refusal as refusal:
            finish([refusal])
        except Exception as error:
            done(self._failed(name, error))

    def _failed(self, name: str, error: Exception) -> Answer:
        """The answer to what was refused, or what failed through our own fault."""
        if not isinstance(error, Refusal):
            logger.error("%s failed", name, exc_info=error)
            error = Refusal(500, "the server failed; its log says why")
        self.app.note_error(name, error.status, error.message)
        return _refused(error)

    def _count(self, name: str, status: int, seconds: float, trials: bool) -> None:
        self.app.metrics.request(name, status, seconds)
        if trials:
            self.app.metrics.trial(seconds)

    def _admit(self, operation: Operation, headers: dict[bytes, bytes]) -> Key | None:
        app, key = self.app, None
        if app.gate.open:
            host = headers.get(b"host", b"")
            if host not in LOOPBACK and host.rpartition(b":")[0] not in LOOPBACK:  # no other site reaches in by DNS
                raise Refusal(403, "without keys only this machine is served; the Host header names another")
        if operation.scope:
            safe = operation.method == "GET"
            key = app.gate.admit(
                headers.get(b"authorization", b""), headers.get(b"cookie", b""), operation.scope, safe=safe
            )
        return key

    def _decode(self, operation: Operation, headers: dict[bytes, bytes], content: Content, key: Key | None) -> Any:
        kind = headers.get(b"content-type", b"")
        if kind != JSON and kind.partition(b";")[0].strip().lower() != JSON:
            raise Refusal(415, "the body must be JSON; send Content-Type: application/json", field="content-type")
        body = bodies.decoded(self.decoders[operation.method], content)
        if operation.begin is not None:
            self.app.gate.charge(key, len(body.items) if hasattr(body, "items") else 1)
        return body

    async def _request(self, operation: Operation, scope: Scope, receive: Receive) -> Request:
        app, headers = self.app, dict(scope["headers"])
        key, body = self._admit(operation, headers), None
        if operation.body is not None:
            body = self._decode(operation, headers, await _read(receive, headers, app.settings), key)
        query = _query(scope["query_string"]) if operation.query else {}
        return Request(app, operation, scope["path_params"], query, body, key, headers, scope["scheme"] == "https")

    def _log(self, headers: dict[bytes, bytes], name: str, status: int, seconds: float) -> None:
        trace = headers.get(b"traceparent", b"").decode("latin-1")
        more = {"operation": name, "status": status, "milliseconds": round(seconds * 1e3, 3)}
        logger.info("request", extra=more | ({"traceparent": trace} if trace else {}))


class _Gone(Exception):
    """The client hung up before its request was complete."""


async def _read(receive: Receive, headers: dict[bytes, bytes], settings: Settings) -> bytes:
    """The body, when it is small enough."""
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > settings.max_body:
        raise _too_large(settings)
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > settings.max_body:
            raise _too_large(settings)
        more = message.get("more_body", False)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(settings: Settings) -> Refusal:
    return Refusal(413, f"the body must be at most {settings.max_body} bytes", field="body")


def _query(text: bytes) -> dict[str, str]:
    from urllib.parse import parse_qsl

    return dict(parse_qsl(text.decode("latin-1"), keep_blank_values=True))


def _refused(refusal: Refusal) -> Answer:
    headers: list[tuple[bytes, bytes]] = []
    if refusal.retry_after is not None:
        headers.append((b"retry-after", str(max(1, math.ceil(refusal.retry_after))).encode()))
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    if "allow" in refusal.details:
        headers.append((b"allow", refusal.details["allow"].encode()))
    return Answer(encode(refusal.body()), refusal.status, headers=tuple(headers))


async def _send(send: Send, method: str, answer: Answer) -> None:
    length = str(len(answer.content)).encode()
    headers = [(b"content-type", answer.kind), (b"content-length", length), *answer.headers, *HEADERS]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else answer.content})


# -- handlers -----------------------------------------------------------------------------------------


async def _results(request: Request, items: list[Any]) -> list[Any]:
    service, begin = request.app.service, request.operation.begin
    assert begin is not None
    found: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()

    def done(results: list[Any]) -> None:
        if not found.done():  # nobody waits any more when the server's patience has ended
            found.set_result(results)

    begin(service, service.model(request.parameters["model"]), items, done)
    return await found


async def _trial(request: Request) -> Answer:
    result = (await _results(request, [request.body]))[0]
    if isinstance(result, Refusal):
        raise result
    return Answer(encode(result))


async def _trials(request: Request) -> Answer:
    results = await _results(request, request.body.items)
    refused = [result for result in results if isinstance(result, Refusal)]
    shown = [result.body() if isinstance(result, Refusal) else result for result in results]
    # A reason that concerns all of them is the answer to the whole request.
    if len(refused) == len(results) and len({refusal.status for refusal in refused}) == 1:
        status = refused[0].status
        headers = _refused(refused[0]).headers
        return Answer(encode({"results": shown} | refused[0].body()), status, headers=headers)
    return Answer(encode({"results": shown}), 207 if refused else 200)


async def _forget(request: Request) -> Answer:
    service = request.app.service
    await service.forget(service.model(request.parameters["model"]), request.parameters["id"])
    return Answer(b"", 204)


async def _explain(request: Request) -> Answer:
    service = request.app.service
    return Answer(encode(views.explanation(service.model(request.parameters["model"]), request.body)))


async def _models(request: Request) -> Answer:
    service = request.app.service
    if not service.ready:
        raise Refusal(503, "the log is being replayed; try again", retry_after=1)
    return Answer(encode({"models": [views.summary(model) for model in service.models.values()]}))


async def _create(request: Request) -> Answer:
    return Answer(encode(views.summary(await request.app.service.create(request.body))), 201)


async def _show(request: Request) -> Answer:
    return Answer(encode(views.summary(request.app.service.model(request.parameters["model"]))))


async def _delete(request: Request) -> Answer:
    service = request.app.service
    await service.delete(service.model(request.parameters["model"]), request.query.get("confirm"))
    return Answer(b"", 204)


async def _weights(request: Request) -> Answer:
    model = request.app.service.model(request.parameters["model"])
    return Answer(encode(views.weights(model, _whole(request, "limit", 100, 100_000))))


async def _curve(request: Request) -> Answer:
    model = request.app.service.model(request.parameters["model"])
    most = _whole(request, "points", 1000, 100_000)
    return Answer(encode(views.curve(model, _whole(request, "after", 0, 2**53, least=0), most)))


async def _snapshot(request: Request) -> Answer:
    service = request.app.service
    model = service.model(request.parameters["model"])
    name = f'attachment; filename="{model.name}-{model.applied}.linmax"'.encode()
    content = await asyncio.to_thread(views.model_file, *model.learner_state())
    return Answer(content, kind=b"application/octet-stream", headers=((b"content-disposition", name),))


def _whole(request: Request, name: str, default: int, most: int, least: int = 1) -> int:
    text = request.query.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 17 and least <= int(text) <= most):
        raise Refusal(422, f"{name} must be a whole number from {least} to {most}, got {text[:40]!r}", field=name)
    return int(text)


async def _health(_request: Request) -> Answer:
    return Answer(encode({"status": "alive"}))


async def _ready(request: Request) -> Answer:
    service = request.app.service
    if service.stopping.is_set():
        raise Refusal(503, "the server is stopping", retry_after=5)
    if not service.ready:
        raise Refusal(503, "the log is being replayed; try again", retry_after=1)
    return Answer(encode({"status": "ready", "disk_full": service.pipeline.full}))


async def _metrics(request: Request) -> Answer:
    return Answer(request.app.metrics.text(), kind=b"text/plain; version=0.0.4; charset=utf-8")


async def _openapi(request: Request) -> Answer:
    return Answer(request.app.description)


async def _index(request: Request) -> Answer:
    return Answer(request.app.page["index.html"], kind=PAGE["index.html"], headers=PAGE_HEADERS)


async def _static(request: Request) -> Answer:
    name = request.parameters["name"]
    if name not in PAGE:  # a look-up in memory: no name from a request reaches the file system
        raise Refusal(404, "there is no such part of the page")
    return Answer(request.app.page[name], kind=PAGE[name], headers=PAGE_HEADERS)


async def _log_in(request: Request) -> Answer:
    word = request.app.gate.begin_session(request.headers.get(b"authorization", b""))
    secure = "; Secure" if request.secure else ""
    cookie = f"{COOKIE}={word}; HttpOnly; SameSite=Strict; Path=/; Max-Age={SESSION_SECONDS}{secure}"
    return Answer(b"", 204, headers=((b"set-cookie", cookie.encode()),))


async def _log_out(request: Request) -> Answer:
    request.app.gate.end_session(request.headers.get(b"cookie", b""))
    return Answer(b"", 204, headers=((b"set-cookie", f"{COOKIE}=; Path=/; Max-Age=0".encode()),))


async def _nothing(_request: Request) -> Answer:
    raise AssertionError("a stream answers by itself")


async def _stream(request: Request, receive: Receive, send: Send) -> None:
    """Send points as they come, at most five a second; an event's id is where to go on after a reconnection."""
    app = request.app
    service, model = app.service, app.service.model(request.parameters["model"])
    if app.streams >= MOST_STREAMS:
        raise Refusal(503, "too many streams are open", retry_after=10)
    last = request.headers.get(b"last-event-id", b"").decode("latin-1")
    reached = views.reached(model, last, _whole(request, "after", 0, 2**53, least=0))
    kind = (b"content-type", b"text/event-stream; charset=utf-8")
    await send({"type": "http.response.start", "status": 200, "headers": [kind, *HEADERS]})
    ends = [asyncio.create_task(_hung_up(receive)), asyncio.create_task(service.stopping.wait())]
    app.streams += 1
    try:
        told, quiet = None, 0.0
        while not any(end.done() for end in ends) and service.models.get(model.name) is model:
            state = (model.account.trials, len(service.errors) and service.errors[-1])
            if state != told or quiet > QUIET_SECONDS:
                news = encode(views.news(model, reached, app.metrics.latency(), list(service.errors))).decode()
                text = f"id: {model.number}.{model.account.trials}\ndata: {news}\n\n"
                await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
                told, reached, quiet = state, model.account.trials, 0.0
            quiet += STREAM_SECONDS
            await asyncio.wait(ends, timeout=STREAM_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        await send({"type": "http.response.body", "body": b""})
    finally:
        app.streams -= 1
        for end in ends:
            end.cancel()


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


MODEL = "/v1/models/{model}"
NUMBER = {"type": "integer", "minimum": 0}
LEARNING = (404, 409, 429, 503, 507)

# The paths that are asked most come first: they are looked for in this order.
OPERATIONS: list[Operation] = [
    Operation(
        "predict", "POST", f"{MODEL}/predict", "predict", "Predict the label of an instance; keep it when it has an id",
        _trial, bodies.PredictBody, bodies.Predicted, refuses=LEARNING, begin=Service.predict,
    ),
    Operation(
        "learn", "POST", f"{MODEL}/learn", "learn", "Store an instance with its label and learn it",
        _trial, bodies.LearnBody, bodies.Learned, refuses=LEARNING, begin=Service.learn,
    ),
    Operation(
        "label", "POST", f"{MODEL}/label", "learn", "Store the label of an earlier prediction and learn it",
        _trial, bodies.LabelBody, bodies.Learned, refuses=LEARNING, begin=Service.label,
    ),
    Operation(
        "predictBatch", "POST", f"{MODEL}/predict/batch", "predict", "Predict several instances",
        _trials, bodies.PredictBatch, bodies.PredictedBatch, refuses=(207, *LEARNING), begin=Service.predict,
    ),
    Operation(
        "learnBatch", "POST", f"{MODEL}/learn/batch", "learn", "Learn several instances in this order",
        _trials, bodies.LearnBatch, bodies.LearnedBatch, refuses=(207, *LEARNING), begin=Service.learn,
    ),
    Operation(
        "labelBatch", "POST", f"{MODEL}/label/batch", "learn", "Learn the labels of several earlier predictions",
        _trials, bodies.LabelBatch, bodies.LearnedBatch, refuses=(207, *LEARNING), begin=Service.label,
    ),
    Operation(
        "forget", "DELETE", f"{MODEL}/predictions/{{id}}", "learn", "Give up a prediction whose label will not come",
        _forget, status=204, refuses=LEARNING,
    ),
    Operation(
        "explain", "POST", f"{MODEL}/explain", "predict", "Scores of all classes, and what speaks for them",
        _explain, bodies.ExplainBody, views.Explanation, refuses=(404, 503),
    ),
    Operation("models", "GET", "/v1/models", "predict", "All models", _models, None, views.Models, refuses=(503,)),
    Operation(
        "create", "POST", "/v1/models", "admin", "Make a model",
        _create, bodies.NewModel, views.Summary, 201, refuses=(409, 429, 503, 507),
    ),
    Operation("model", "GET", MODEL, "predict", "One model", _show, None, views.Summary, refuses=(404, 503)),
    Operation(
        "delete", "DELETE", MODEL, "admin", "Delete a model with its log; must be asked twice",
        _delete, status=204, refuses=(404, 428, 503, 507),
        query=(("confirm", {"type": "string"}, "the word that the first asking was answered with"),),
    ),
    Operation(
        "weights", "GET", f"{MODEL}/weights", "predict", "The largest weights",
        _weights, None, views.Weights, refuses=(404, 503),
        query=(("limit", {"type": "integer", "minimum": 1, "maximum": 100_000, "default": 100}, "how many of a kind"),),
    ),
    Operation(
        "curve", "GET", f"{MODEL}/curve", "predict", "Mistakes along the trials",
        _curve, None, views.CurveView, refuses=(404, 503),
        query=(
            ("after", {**NUMBER, "maximum": 2**53, "default": 0}, "only points beyond this trial"),
            ("points", {"type": "integer", "minimum": 1, "maximum": 100_000, "default": 1000}, "at most so many"),
        ),
    ),
    Operation(
        "stream", "GET", f"{MODEL}/events", "predict", "News of a model as server-sent events",
        _nothing, refuses=(404, 503), kind="text/event-stream",
        query=(("after", {**NUMBER, "maximum": 2**53}, "only points beyond this trial"),),
    ),
    Operation(
        "snapshot", "GET", f"{MODEL}/snapshot", "admin", "The model as a file that linmax.Learner.load reads",
        _snapshot, refuses=(404, 503), kind="application/octet-stream",
    ),
    Operation("health", "GET", "/health", "", "Whether the process is alive", _health, None, views.Status),
    Operation("ready", "GET", "/ready", "", "Whether requests are taken", _ready, None, views.Ready, refuses=(503,)),
    Operation("metrics", "GET", "/metrics", "predict", "Figures for Prometheus", _metrics, kind="text/plain"),
    Operation("logIn", "POST", "/v1/session", "predict", "A cookie for the page", _log_in, status=204),
    Operation("logOut", "DELETE", "/v1/session", "", "Give the cookie up", _log_out, status=204),
    Operation("openapi", "GET", "/openapi.json", "", "This description", _openapi, None, dict[str, Any]),
    Operation("page", "GET", "/", "", "The page", _index, kind="text/html"),
    Operation("part", "GET", "/static/{name}", "", "A part of the page", _static, refuses=(404,), kind="*/*"),
]  # fmt: skip
