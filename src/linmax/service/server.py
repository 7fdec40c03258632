"""The process: uvicorn around the application, with one worker; limits of connections, slow clients and signals."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from linmax.service.app import App
from linmax.service.service_settings import ServiceSettings

__all__ = ["serve"]

logger = logging.getLogger("linmax.service")

MOST_HEAD = 64 * 1024  # bytes of a request that are not its body
TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%b"
)
TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
LIVELY = 64 * 1024  # bytes of a body that a client must send within the patience with it
SWEEP_SECONDS = 1.0
DRAIN_SECONDS = 30
SWITCH_SECONDS = 0.001  # for which another thread may continue while the event loop wants the interpreter
# New objects, and rounds, before the garbage collector looks at the youngest, the younger and all: short pauses.
SERVER_COLLECT_AFTER = (10_000, 4, 10)


class _Writer:
    """A transport that sends what is written in one turn of the event loop, such as head and body, with one call."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop, self._parts = transport, loop, list[bytes]()
        self.is_closing = transport.is_closing  # which is asked most often

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send data at the end of this turn."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        """Send what is left, and close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._parts:
            self._transport.write(b"".join(self._parts))
            self._parts.clear()


class Connection(HttpToolsProtocol):
    """uvicorn's connection, which limits the size of a request's head and notes since when it has been waiting."""

    since: float | None = None  # when the present request began to arrive
    stuck: float | None = None  # since when the client has taken nothing
    is_headed = False  # the headers of the present request are complete
    taken = 0  # bytes of its body since it last showed life
    head = 0  # bytes of the present request that are not its body

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, _Writer(cast(asyncio.Transport, transport), self.loop)))
        self.since = time.monotonic()
        if len(self.connections) > cast(App, self.config.app).settings.max_connections:
            self.transport.write(TOO_MANY)
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Take data; refuse a request whose address and headers are too long before anything else."""
        self.head += len(data)
        super().data_received(data)
        if self.head > MOST_HEAD and not self.transport.is_closing():
            message = b"the address and the headers must be at most %d bytes" % MOST_HEAD
            self.transport.write(TOO_LONG % (len(message), message))
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be read, and hang up."""
        super().send_400_response(msg)
        cast(App, self.config.app).metrics.request("unreadable", 400, 0.0)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.since, self.is_headed = time.monotonic(), False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.is_headed:  # else it is a trailer, which does not belong to the headers
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self.is_headed = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self.head -= len(body)
        self.taken += len(body)
        if self.taken > LIVELY:  # a long import is no slow client
            self.since, self.taken = time.monotonic(), 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.since, self.head = None, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.pipeline:  # requests that have arrived come first: they must not pile up
            self.flow.pause_reading()
        if self.since is not None:  # the next request has begun, but could not continue while reading was paused
            self.since = time.monotonic()

    def expire(self, now: float, patience: float) -> None:
        """Hang up if a request has been arriving for too long, or if the client has not read for too long."""
        if not (self.transport.is_closing() or self.flow.write_paused):
            self.stuck = None
        elif self.stuck is None:
            self.stuck = now
        arriving = None if self.flow.read_paused else self.since
        if any(began is not None and now - began > patience for began in (self.stuck, arriving)):
            self.transport.abort()


class _Server(uvicorn.Server):
    """Ends streams when a signal comes, and hangs up on clients that never finish their request."""

    def __init__(self, config: uvicorn.Config, app: App, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self.app, self._announce, self._swept = app, announce, time.monotonic()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then announce the address."""
        await super().startup(sockets)
        if self.started:
            self._announce()

    def handle_exit(self, sig: int, _frame: FrameType | None) -> None:
        """Shut down gracefully, with exit status 0; a second Ctrl-C does not wait."""
        self.app.service.stopping.set()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        if (now := time.monotonic()) - self._swept > SWEEP_SECONDS:
            self._swept = now
            for connection in list(self.server_state.connections):
                cast(Connection, connection).expire(now, self.app.settings.receive_seconds)
        return await super().on_tick(counter)


def serve(
    settings: ServiceSettings, *, host: str, port: int, notice: str | None = None, vfs: str | None = None
) -> None:
    """Serve until a signal comes.

    Parameters
    ----------
    settings : where the data are, and the limits.
    host, port : where to listen; without keys only a loopback address is taken, port 0 means any free one.
    notice : a file to write the address to, as JSON, once the server listens; "-" is standard output.
    vfs : name of the SQLite virtual file system, for tests.
    """
    app = App(settings, loaded=gc.freeze, vfs=vfs)
    if app.gate.open and not _is_loopback(host):
        app.service.log.close()
        raise ValueError(
            f"host must be a loopback address while there is no key, got {host!r}; make a key with "
            f"'linmax serve keys add --data {settings.data}', or use 127.0.0.1"
        )
    listener = _listen(host, port)
    draft = Path(f"{notice}.partial")
    if notice not in (None, "-"):
        draft.write_text(" " * 4096)  # keeps its space on a disk that is nearly full
    address = "http://{}:{}".format(f"[{host}]" if ":" in host else host, listener.getsockname()[1])

    def announce() -> None:
        text = json.dumps({"address": address, "pid": os.getpid(), "data": str(settings.data.resolve())})
        if notice == "-":
            print(text, flush=True)
        elif notice is not None:
            with draft.open("r+") as file:
                file.write(text + "\n")
                file.truncate()
            draft.replace(notice)
        print(f"linmax: serving {settings.data} at {address}", file=sys.stderr)
        if app.gate.open:
            print("linmax: no keys: open to everybody on this machine, and to nobody else", file=sys.stderr)
        sys.stderr.flush()

    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        backlog=2048,
    )
    gc.set_threshold(*SERVER_COLLECT_AFTER)
    sys.setswitchinterval(SWITCH_SECONDS)
    _Server(config, app, announce).run(sockets=[listener])


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise ValueError(f"cannot listen on {host}, port {port}: {error}; try --port 0") from None
    return listener
