"""The service as an ASGI application: routes from the table of operations, start-up and shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from importlib import resources
from typing import Any

from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from linmax.service import openapi
from linmax.service.handlers import PAGE
from linmax.service.keys import Gate
from linmax.service.messages import Operation, encode, refused_answer, send_answer
from linmax.service.metrics import Metrics
from linmax.service.operations import MODEL, OPERATIONS
from linmax.service.refusals import Refusal
from linmax.service.resource import Resource
from linmax.service.service import Service
from linmax.service.settings import ServiceSettings

__all__ = ["App"]

logger = logging.getLogger("linmax.service")


class App:
    """The ASGI application.

    Parameters
    ----------
    settings : where the data are, and the limits.
    options : passed on to `Service`.
    """

    def __init__(self, settings: ServiceSettings, **options: Any) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.gate = Gate(settings.data)
        self.service = Service(settings, observe=self.metrics.commit, **options)
        self.metrics.watch(self.service)
        self.page = {name: resources.files("linmax.service").joinpath("static", name).read_bytes() for name in PAGE}
        self.description = encode(openapi.describe(OPERATIONS))
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
        self._started.add_done_callback(_end_if_failed)
        yield
        await asyncio.wait([self._started])
        await self.service.stop()

    async def _nowhere(self, scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        refusal = Refusal(404, "there is nothing at this address; /openapi.json lists what there is")
        await send_answer(send, scope["method"], refused_answer(refusal))
        self.metrics.request("unknown", 404, 0.0)

    def note_error(self, operation: str, status: int, message: str) -> None:
        """Remember an error for the page; the answer 503 of `/ready` is none."""
        if operation == "ready":
            return
        errors, count = self.service.errors, 1
        told = {"operation": operation, "status": status, "message": message[:200]}
        if errors and told.items() <= errors[-1].items():  # the same again
            count = errors.pop()["count"] + 1
        errors.append(told | {"time": time.time(), "count": count})


def _end_if_failed(task: asyncio.Task[None]) -> None:
    """End the process if recovery fails, so that no server waits for ever."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.critical("recovery failed, the process ends", exc_info=error)
        raise SystemExit(1)
