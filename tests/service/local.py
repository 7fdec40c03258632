"""The application without a socket: an event loop in a thread, and requests as ASGI messages."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from types import SimpleNamespace

from linmax.service.app import App
from linmax.service.service_settings import ServiceSettings


class Local:
    """An application at work; `call` is a request, `do` runs a coroutine in its loop."""

    def __init__(self, data, *, keys=None, options=None, **settings):
        self.settings = ServiceSettings(data=Path(data), **settings)
        self.keys, self.options = keys or {}, options or {}

    def __enter__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.do(self._start())
        return self

    async def _start(self):
        self.app = App(self.settings, **self.options)
        self.service = self.app.service
        await self.service.start()

    def __exit__(self, *_):
        self.do(self.service.stop())
        self.abandon()

    def abandon(self):
        """Stop without any last words, as a crash would."""
        self.do(self.service.house.end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        if hasattr(self.service, "pipeline"):  # its thread may be busy with the file
            self.service.pipeline._inbox.put(None)
            self.service.pipeline._thread.join()
        self.service.log.abandon()

    def do(self, work, seconds=300):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(seconds)

    def sql(self, text):
        """One value from the log, asked by its writer."""

        async def ask():
            return await self.service.pipeline.call(lambda log: log.database.execute(text).get)

        return self.do(ask())

    def call(self, method, path, body=None, *, key=None, raw=None, headers=None):
        """Status, headers and decoded content of one request."""
        return self.do(self.request(method, path, body, key=key, raw=raw, headers=headers))

    async def request(self, method, path, body=None, *, key=None, raw=None, headers=None):
        content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        sent = {"host": "localhost", "content-type": "application/json", "content-length": str(len(content))}
        if key is not None:
            sent["authorization"] = f"Bearer {key}"
        sent |= headers or {}
        address, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": address,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "scheme": "http",
        }
        parts = [content[i : i + 1000] for i in range(0, len(content), 1000)] or [b""]
        messages = [
            {"type": "http.request", "body": part, "more_body": i < len(parts) - 1} for i, part in enumerate(parts)
        ]
        got = []

        async def receive():
            return messages.pop(0) if messages else await asyncio.Event().wait()  # the client stays

        async def send(message):
            got.append(message)

        await self.app(scope, receive, send)
        found = {name.decode(): value.decode() for name, value in got[0]["headers"]}
        text = b"".join(message.get("body", b"") for message in got[1:] if method != "HEAD")  # as uvicorn does
        is_json = found.get("content-type") in ("application/json", "application/problem+json") and text
        return SimpleNamespace(status=got[0]["status"], headers=found, body=json.loads(text) if is_json else text)
