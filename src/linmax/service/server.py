"""The process: uvicorn around the application, with one worker; slow clients and signals."""

from __future__ import annotations

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
from typing import Any

import uvicorn

from linmax.service.app import App
from linmax.service.protocol import Protocol
from linmax.service.settings import ServiceSettings

__all__ = ["serve"]

logger = logging.getLogger("linmax.service")

SWEEP_SECONDS = 1.0
DRAIN_SECONDS = 30
SWITCH_SECONDS = 0.001  # for which another thread may go on while the event loop wants the interpreter
# New objects, and rounds, before the garbage collector looks at the youngest, the younger and all: short pauses.
SERVER_COLLECT_AFTER = (10_000, 4, 10)


class _Server(uvicorn.Server):
    """Ends streams when a signal comes, and hangs up on clients that never finish their request."""

    def __init__(
        self, config: uvicorn.Config, app: App, settings: ServiceSettings, announce: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self.service, self.settings = app.service, settings
        self._announce = announce
        self._swept = time.monotonic()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then announce the address."""
        await super().startup(sockets)
        if self.started:
            self._announce()

    def handle_exit(self, sig: int, _frame: FrameType | None) -> None:
        """Shut down gracefully, with exit status 0; a second Ctrl-C does not wait."""
        self.service.stopping.set()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        if time.monotonic() - self._swept > SWEEP_SECONDS:
            self.sweep()
        return await super().on_tick(counter)

    def sweep(self) -> None:
        """Close connections whose request started too long ago, or that have been idle for too long."""
        now = self._swept = time.monotonic()
        for connection in list(self.server_state.connections):
            assert isinstance(connection, Protocol)
            connection.expire(now, self.settings.receive_seconds)


def serve(settings: ServiceSettings, *, host: str, port: int, told: str | None = None, **options: Any) -> None:
    """Serve until a signal comes.

    Parameters
    ----------
    settings : where the data are, and the limits.
    host, port : where to listen; without keys only a loopback address is taken, port 0 means any free one.
    told : a file to write the address to, as JSON, once the server listens; "-" is standard output.
    options : passed on to the service.
    """
    app = App(settings, loaded=gc.freeze, **options)
    if app.gate.open and not _is_loopback(host):
        app.service.log.close()
        raise ValueError(
            f"host must be a loopback address while there is no key, got {host!r}; make a key with "
            f"'linmax serve keys add --data {settings.data}', or use 127.0.0.1"
        )
    listener = _listen(host, port)
    draft = Path(f"{told}.partial")
    if told not in (None, "-"):
        draft.write_text(" " * 4096)  # keeps its space on a disk that is nearly full
    address = "http://{}:{}".format(f"[{host}]" if ":" in host else host, listener.getsockname()[1])

    def announce() -> None:
        note = json.dumps({"address": address, "pid": os.getpid(), "data": str(settings.data.resolve())})
        if told == "-":
            print(note, flush=True)
        elif told is not None:
            with draft.open("r+") as file:
                file.write(note + "\n")
                file.truncate()
            draft.replace(told)
        print(f"linmax: serving {settings.data} at {address}", file=sys.stderr)
        if app.gate.open:
            print("linmax: no keys: open to everybody on this machine, and to nobody else", file=sys.stderr)
        sys.stderr.flush()

    config = uvicorn.Config(
        app,
        http=Protocol,
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
    _Server(config, app, settings, announce).run(sockets=[listener])


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
