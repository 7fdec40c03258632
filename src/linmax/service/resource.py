"""One path of the service: admits a request, reads it, handles it, and answers."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Scope, Send

from linmax.service.body_reading import BodyReader
from linmax.service.keys import Key
from linmax.service.messages import JSON, Answer, Content, Operation, Request, encode, refused_answer, send_answer
from linmax.service.refusals import Refusal
from linmax.service.settings import ServiceSettings

if TYPE_CHECKING:
    from linmax.service.app import App

__all__ = ["Resource"]

logger = logging.getLogger("linmax.service")


LOOPBACK = re.compile(rb"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE)


class Resource:
    """One path: finds the operation, admits the request, reads, handles, answers, counts."""

    def __init__(self, app: App, methods: dict[str, Operation]) -> None:
        self.app = app
        self.methods = dict(methods)
        if "GET" in methods:
            self.methods["HEAD"] = methods["GET"]
        self.allow = ", ".join(sorted(self.methods)).encode()
        self.readers = {
            operation.method: BodyReader(operation.body) for operation in methods.values() if operation.body is not None
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
            request.head = method == "HEAD"
            if operation.stream is not None:
                await operation.stream(request, receive, send)
                app.metrics.request(name, 200, time.perf_counter() - began)
                return
            async with asyncio.timeout(app.settings.answer_seconds):
                answer = await operation.handler(request)
        except ClientGone:
            return
        except TimeoutError:
            answer = self._failed(name, Refusal(503, "this took too long; try again", retry_after=5))
        except Exception as error:
            answer = self._failed(name, error)
        await send_answer(send, method, answer)
        trials = operation is not None and operation.begin is not None
        self._count(name, answer.status, time.perf_counter() - began, trials)
        if app.settings.log_requests:
            self._log(dict(scope["headers"]), name, answer.status, time.perf_counter() - began)

    def begin(self, model: str, headers: dict[bytes, bytes], content: Content, done: Callable[[Answer], None]) -> None:
        """The short path for one trial: `done` is called with the answer, at once or when it is stored."""
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
            operation.begin(app.service.trials, app.service.model(model), [body], finish)
        except Refusal as refusal:
            finish([refusal])
        except Exception as error:
            done(self._failed(name, error))

    def _failed(self, name: str, error: Exception) -> Answer:
        """The answer to a refused request, or to one that failed through an internal error."""
        if not isinstance(error, Refusal):
            logger.error("%s failed", name, exc_info=error)
            error = Refusal(500, "the server failed; its log says why")
        self.app.note_error(name, error.status, error.message)
        return refused_answer(error)

    def _count(self, name: str, status: int, seconds: float, trials: bool) -> None:
        self.app.metrics.request(name, status, seconds)
        if trials:
            self.app.metrics.trial(seconds)

    def _admit(self, operation: Operation, headers: dict[bytes, bytes]) -> Key | None:
        app, key = self.app, None
        if app.gate.open and not LOOPBACK.fullmatch(headers.get(b"host", b"")):  # no other site reaches in by DNS
            raise Refusal(403, "without keys only this machine is served; the Host header names another")
        if operation.scope:
            key = app.gate.admit(headers.get(b"authorization", b""), operation.scope)
        return key

    def _decode(self, operation: Operation, headers: dict[bytes, bytes], content: Content, key: Key | None) -> Any:
        kind = headers.get(b"content-type", b"")
        if kind != JSON and kind.partition(b";")[0].strip().lower() != JSON:
            raise Refusal(415, "the body must be JSON; send Content-Type: application/json", field="content-type")
        body = self.readers[operation.method].read(content)
        if operation.begin is not None:
            self.app.gate.charge(key, len(body.items) if hasattr(body, "items") else 1)
        return body

    def _charge(self, operation: Operation, key: Key | None) -> None:
        """Count a request that is not about trials; those are counted when their number is known."""
        if operation.begin is None:
            self.app.gate.charge(key, operation.cost)

    async def _request(self, operation: Operation, scope: Scope, receive: Receive) -> Request:
        app, headers = self.app, dict(scope["headers"])
        key, body = self._admit(operation, headers), None
        self._charge(operation, key)
        if operation.body is not None:
            body = self._decode(operation, headers, await read_body(receive, headers, app.settings), key)
        query = _query(scope["query_string"]) if operation.query else {}
        return Request(app, operation, scope["path_params"], query, body, key, headers, scope["scheme"] == "https")

    def _log(self, headers: dict[bytes, bytes], name: str, status: int, seconds: float) -> None:
        trace = headers.get(b"traceparent", b"").decode("latin-1")
        more = {"operation": name, "status": status, "milliseconds": round(seconds * 1e3, 3)}
        logger.info("request", extra=more | ({"traceparent": trace} if trace else {}))


class ClientGone(Exception):
    """The client hung up before its request was complete."""


async def read_body(receive: Receive, headers: dict[bytes, bytes], settings: ServiceSettings) -> bytes:
    """The body, when it is small enough."""
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > settings.max_body:
        raise _too_large(settings)
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > settings.max_body:
            raise _too_large(settings)
        more = message.get("more_body", False)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(settings: ServiceSettings) -> Refusal:
    return Refusal(413, f"the body must be at most {settings.max_body} bytes", field="body")


def _query(text: bytes) -> dict[str, str]:
    from urllib.parse import parse_qsl

    return dict(parse_qsl(text.decode("latin-1"), keep_blank_values=True))
