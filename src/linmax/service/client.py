"""A client of ``linmax serve``, with the standard library alone: `Client`, and `AsyncClient` for asyncio.

The methods are those of `linmax.Learner`, with the model's name first. A request that may have been lost is sent
again; every trial to be learned carries an id, so the service learns it once however often it arrives.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from linmax.service.client_verbs import ClientRequest, RetryLater, ServiceError, Verbs

__all__ = ["AsyncClient", "Client", "ServiceError"]

POOL = 64


class Client(Verbs):
    """A client for threads: each thread has its own connection.

    Parameters
    ----------
    address : "http://HOST:PORT".
    key : the text that ``linmax serve keys add`` has shown; None when the service has no keys.
    timeout : seconds to wait for an answer before the connection is given up.
    retries : how often a request is sent again when the connection fails or the service says "later".

    See Also
    --------
    AsyncClient : the same for asyncio.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8471")
    >>> client.create("spam", "winnow(1.1)")                        # doctest: +SKIP
    >>> client.learn("spam", {"offer": 1.0}, label="junk")          # doctest: +SKIP
    >>> id, label = client.keep("spam", {"offer": 1.0})             # doctest: +SKIP
    >>> client.learn("spam", id=id, label="junk")                   # doctest: +SKIP
    'junk'
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._own = threading.local()

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._own, "connection", None)
        if connection is not None:
            connection.close()
            self._own.connection = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, asked: ClientRequest) -> Any:
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                return self._judge(asked, *self._exchange(asked))
            except RetryLater as later:
                if last:
                    raise later.error from None
                pause = later.seconds
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if last or not (asked.repeatable or isinstance(error, ConnectionRefusedError)):
                    raise
                pause = 0.0
            time.sleep(self._pause(attempt, pause))
        raise AssertionError("not reached")

    def _exchange(self, asked: ClientRequest) -> tuple[int, dict[str, str], bytes]:
        if not asked.repeatable:  # the service may have closed an idle connection meanwhile
            self.close()
        connection = getattr(self._own, "connection", None)
        if connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            connection = self._own.connection = kind(self._host, self._port, timeout=self._timeout)
        connection.request(asked.method, asked.path, asked.body, self._headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


class AsyncClient(Verbs):
    """The same for asyncio: every method is awaited.

    Parameters
    ----------
    address, key, timeout, retries
        As for `Client`.

    See Also
    --------
    Client : the same for threads, with every method described.

    Examples
    --------
    >>> async def teach():
    ...     async with AsyncClient("http://127.0.0.1:8471") as client:
    ...         return await client.learn("spam", {"offer": 1.0}, label="junk")
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def close(self) -> None:
        """Close the connections that are not in use."""
        while self._idle:
            _, writer = self._idle.pop()
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ask(self, asked: ClientRequest) -> Any:
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                async with asyncio.timeout(self._timeout):
                    answer = await self._exchange(asked)
                return self._judge(asked, *answer)
            except RetryLater as later:
                if last:
                    raise later.error from None
                pause = later.seconds
            except (OSError, EOFError) as error:
                if last or not (asked.repeatable or isinstance(error, ConnectionRefusedError)):
                    raise
                pause = 0.0
            await asyncio.sleep(self._pause(attempt, pause))
        raise AssertionError("not reached")

    async def _exchange(self, asked: ClientRequest) -> tuple[int, dict[str, str], bytes]:
        if self._idle and asked.repeatable:
            reader, writer = self._idle.pop()
        else:  # always if it may not be repeated: the service may have closed an idle connection meanwhile
            context = ssl.create_default_context() if self._secure else None
            reader, writer = await asyncio.open_connection(self._host, self._port, ssl=context)
        try:
            writer.write(_request_text(asked, self._headers))
            await writer.drain()
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
            content = await reader.readexactly(int(headers.get("content-length", 0)))
        except BaseException:
            writer.close()
            raise
        if headers.get("connection", "").lower() == "close" or len(self._idle) >= POOL:
            writer.close()
        else:
            self._idle.append((reader, writer))
        return int(head[0].split()[1]), headers, content


def _request_text(asked: ClientRequest, headers: Mapping[str, str]) -> bytes:
    body = asked.body or b""
    lines = [f"{asked.method} {asked.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode("latin-1") + body
