"""HTTP connections: uvicorn's, with a short path for the most frequent requests.

A request about one trial needs no ASGI scope, no task and no event: the application gets it when its body is complete,
and its answer is written when it is ready. Anything unusual takes the long path: an address that must be decoded, a
body of unknown or excessive length, a pipelined request, a client that does not read.
"""

from __future__ import annotations

import time
from functools import lru_cache
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from linmax.service.app import App
from linmax.service.messages import STANDARD_HEADERS, Answer
from linmax.service.resource import Resource

__all__ = ["Protocol"]

MOST_HEAD = 64 * 1024  # bytes of a request that are not its body
ONCE = (b"host", b"authorization")  # headers that nobody sends twice in good faith
Pairs = tuple[tuple[bytes, bytes], ...]


TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%b"
)


class _Nobody:
    """Stands in for the event with which uvicorn reports the end of a cycle; nothing waits for it."""

    def set(self) -> None:
        """Do nothing."""


class _Trial:
    """A request on the short path; for uvicorn's connection it is a cycle like any other."""

    __slots__ = ("body", "disconnected", "headers", "keep_alive", "model", "protocol", "resource", "response_complete")
    message_event = _Nobody()

    def __init__(
        self, protocol: Protocol, resource: Resource, model: str, headers: dict[bytes, bytes], keep_alive: bool
    ) -> None:
        self.protocol, self.resource, self.model, self.headers = protocol, resource, model, headers
        self.keep_alive, self.disconnected, self.response_complete = keep_alive, False, False
        self.body = bytearray()

    def begin(self) -> None:
        """The body is complete."""
        self.resource.begin(self.model, self.headers, self.body, self.answer)

    def answer(self, answer: Answer) -> None:
        """Write the answer, unless the client has hung up."""
        protocol = self.protocol
        transport = protocol.transport
        self.response_complete = True
        if transport.is_closing():
            return
        usual = tuple(protocol.server_state.default_headers)
        head = _head(usual, answer.status, answer.kind, answer.headers, self.keep_alive)
        transport.write(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(answer.content), answer.content))
        if not self.keep_alive:
            transport.close()
        protocol.on_response_complete()


@lru_cache(maxsize=64)
def _head(usual: Pairs, status: int, kind: bytes, more: Pairs, keep_alive: bool) -> bytes:
    """The first lines of an answer."""
    last = () if keep_alive else ((b"connection", b"close"),)
    pairs = (*usual, (b"content-type", kind), *more, *STANDARD_HEADERS, *last)
    lines = [b"%b: %b\r\n" % pair for pair in pairs]
    return b"HTTP/1.1 %d %b\r\n%b" % (status, HTTPStatus(status).phrase.encode(), b"".join(lines))


class Protocol(HttpToolsProtocol):
    """A connection. It knows since when it has waited for the rest of a request, or for the next one."""

    since: float | None = None
    idle: float | None = None
    stuck: float | None = None  # since when the client has taken nothing
    complete = False  # the headers of the present request are
    head = 0  # bytes of the present request that are not its body

    def data_received(self, data: bytes) -> None:
        """Take what has come; a request whose address and headers are too long is refused before anything else."""
        self.head += len(data)
        super().data_received(data)
        if self.head > MOST_HEAD and not self.transport.is_closing():
            told = b"the address and the headers must be at most %d bytes" % MOST_HEAD
            self.transport.write(TOO_LONG % (len(told), told))
            self.transport.close()

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.service = cast(App, self.config.app)
        self.trial: _Trial | None = None
        self.since = time.monotonic()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read, and hang up."""
        super().send_400_response(msg)
        self.service.metrics.request("unreadable", 400, 0.0)

    def on_message_begin(self) -> None:
        self.url, self.headers, self.expect_100_continue = b"", [], False
        self.complete = False
        self.since, self.idle = time.monotonic(), None

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.complete:  # else it is a trailer, which says nothing of the request
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self.complete = True
        names = [name for name, _ in self.headers]
        if any(names.count(name) > 1 for name in ONCE):
            raise ValueError("who reads the first one and who reads the last one would see different requests")
        self.trial = self._trial()
        if self.trial is not None:
            self.cycle = self.trial  # type: ignore[assignment]
            return
        url, headers, expect = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()  # makes the scope
        self.url, self.expect_100_continue = url, expect
        self.headers.extend(headers)
        super().on_headers_complete()

    def _trial(self) -> _Trial | None:
        parts, parser = self.url.split(b"/"), self.parser
        if len(parts) != 5 or parts[1] != b"v1" or parts[2] != b"models" or parser.get_method() != b"POST":
            return None
        model, resource = parts[3], self.service.trials.get(parts[4])
        if resource is None or not model or b"%" in model:
            return None
        if parser.get_http_version() != "1.1" or parser.should_upgrade():
            return None
        headers = dict(self.headers)
        length = headers.get(b"content-length", b"")
        if not length.isdigit() or int(length) > self.service.settings.max_body or self.expect_100_continue:
            return None
        if self.flow.write_paused or not (self.cycle is None or self.cycle.response_complete):
            return None
        return _Trial(self, resource, model.decode("latin-1"), headers, parser.should_keep_alive())

    def on_body(self, body: bytes) -> None:
        self.head -= len(body)
        if self.trial is not None:
            self.trial.body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self.since, self.head = None, 0
        if self.trial is not None:
            self.trial.begin()
        else:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Continue with the next request; idle connections are closed by the server's sweep, without a timer each."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        now = time.monotonic()
        if self.since is not None:  # the next request has begun, but could not continue while reading was paused
            self.since = now
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        else:
            self.idle = now

    def expire(self, now: float, patience: float) -> None:
        """Hang up if a request has been arriving for too long, if none has come, or if nothing can be sent."""
        if not (self.transport.is_closing() or self.flow.write_paused):
            self.stuck = None
        elif self.stuck is None:
            self.stuck = now
        elif now - self.stuck > patience:
            self.transport.abort()
        if self.since is not None and now - self.since > patience and not self.flow.read_paused:
            self.transport.abort()
        elif self.since is None and self.idle is not None and now - self.idle > self.timeout_keep_alive:
            self.transport.close()
