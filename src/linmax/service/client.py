"""A client of ``linmax serve``, with the standard library alone: `Client`, and `AsyncClient` for asyncio.

The methods are those of `linmax.Learner`, with the model's name first. A request that may have been lost is sent
again; every trial to be learned carries an id, so the service learns it once however often it arrives.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlsplit

from linmax.service.ids import Ids

__all__ = ["AsyncClient", "Client", "ServiceError"]

AGAIN = (429, 503)
LONGEST_PAUSE = 5.0
POOL = 64


class ServiceError(RuntimeError):
    """The service refused: `status` is HTTP's, `field` the field at fault or None."""

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.message, self.field = status, message, field


class _Asked:
    """A request, and how to read its answer."""

    __slots__ = ("body", "method", "path", "pick", "repeatable")

    def __init__(self, method: str, path: str, body: Any, pick: Any, repeatable: bool) -> None:
        self.method, self.path, self.pick, self.repeatable = method, path, pick, repeatable
        self.body = None if body is None else json.dumps(body, allow_nan=False).encode()


class _Verbs:
    """The methods of both clients; `_ask` sends a request, in a call or awaited."""

    def __init__(
        self, address: str = "http://127.0.0.1:8471", key: str | None = None, *, timeout: float = 30.0, retries: int = 8
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"address must be http://HOST:PORT, got {address!r}")
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port or (443 if self._secure else 80)
        self._timeout, self._retries = timeout, retries
        self._ids = Ids()
        self._headers = {"Content-Type": "application/json", "Host": parts.netloc}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"

    def _ask(self, asked: _Asked) -> Any:
        raise NotImplementedError

    def create(self, name: str, learner: str = "auto", **options: Any) -> Any:
        """Make a model: ``kind`` ("attributes", "votes", "scores", "mixed"), ``classes`` and the like; its summary."""
        body = {"name": name, "learner": learner} | options
        return self._ask(_Asked("POST", "/v1/models", body, _whole, repeatable=False))

    def models(self) -> Any:
        """Summaries of all models."""
        return self._ask(_Asked("GET", "/v1/models", None, lambda answer: answer["models"], repeatable=True))

    def model(self, name: str) -> Any:
        """The summary of one model: trials, mistakes, classes, options and so on."""
        return self._ask(_Asked("GET", _path(name), None, _whole, repeatable=True))

    def delete(self, name: str, confirm: str) -> Any:
        """Delete a model and its log; `confirm` is the word that `ask_to_delete` gave."""
        return self._ask(_Asked("DELETE", f"{_path(name)}?confirm={quote(confirm)}", None, _whole, repeatable=False))

    def ask_to_delete(self, name: str) -> Any:
        """The word to confirm a deletion with; it holds for two minutes."""
        return self._ask(_Asked("DELETE", _path(name), None, _confirmation, repeatable=True))

    def predict(
        self, model: str, attributes: Any = None, *, votes: Any = None, scores: Any = None, id: str | None = None
    ) -> Any:
        """The label of an instance, None before a class is known. With an ``id`` it is kept until its label comes."""
        body = _instance(attributes, votes, scores) | ({} if id is None else {"id": id})
        return self._ask(_Asked("POST", _path(model, "predict"), body, lambda answer: answer["label"], repeatable=True))

    def keep(self, model: str, attributes: Any = None, *, votes: Any = None, scores: Any = None) -> Any:
        """(id, label): predict an instance and keep it under a new id until its label comes."""
        id = self._ids.new()
        body = _instance(attributes, votes, scores) | {"id": id}
        return self._ask(
            _Asked("POST", _path(model, "predict"), body, lambda answer: (id, answer["label"]), repeatable=True)
        )

    def learn(
        self,
        model: str,
        attributes: Any = None,
        *,
        votes: Any = None,
        scores: Any = None,
        label: Any,
        id: str | None = None,
    ) -> Any:
        """Learn an instance with its label, or with ``id`` alone the label of a kept one; what was predicted for it."""
        given = _instance(attributes, votes, scores)
        verb = "learn" if given or id is None else "label"
        body = given | {"label": label, "id": id or self._ids.new()}
        return self._ask(_Asked("POST", _path(model, verb), body, lambda answer: answer["predicted"], repeatable=True))

    def predict_many(self, model: str, items: Sequence[Mapping[str, Any]]) -> Any:
        """Results for several instances, each a dict with ``attributes`` and so on, and ``id`` if it is to be kept."""
        body = {"items": list(items)}
        return self._ask(_Asked("POST", _path(model, "predict/batch"), body, _results, repeatable=True))

    def learn_many(self, model: str, items: Sequence[Mapping[str, Any]]) -> Any:
        """Results of learning several instances in this order, each a dict with ``label`` and perhaps ``id``."""
        body = {"items": [{"id": self._ids.new()} | dict(item) for item in items]}
        return self._ask(_Asked("POST", _path(model, "learn/batch"), body, _results, repeatable=True))

    def label_many(self, model: str, items: Sequence[Mapping[str, Any]]) -> Any:
        """Results of learning the labels of kept instances, each a dict with ``id`` and ``label``."""
        body = {"items": list(items)}
        return self._ask(_Asked("POST", _path(model, "label/batch"), body, _results, repeatable=True))

    def forget(self, model: str, id: str) -> Any:
        """Give up a kept instance whose label will not come."""
        path = _path(model, f"predictions/{quote(id, safe='')}")
        return self._ask(_Asked("DELETE", path, None, _whole, repeatable=True))

    def explain(self, model: str, attributes: Any = None, *, votes: Any = None, scores: Any = None) -> Any:
        """The label, the score of every class, and the weights behind them."""
        body = _instance(attributes, votes, scores)
        return self._ask(_Asked("POST", _path(model, "explain"), body, _whole, repeatable=True))

    def weights(self, model: str, limit: int = 100) -> Any:
        """The largest weights of each kind."""
        return self._ask(_Asked("GET", _path(model, f"weights?limit={limit}"), None, _whole, repeatable=True))

    def curve(self, model: str, points: int = 1000) -> Any:
        """Points [trials, mistakes, plurality's mistakes, best voter's mistakes]."""
        path = _path(model, f"curve?points={points}")
        return self._ask(_Asked("GET", path, None, lambda answer: answer["points"], repeatable=True))

    def trial(self, model: str, id: str) -> Any:
        """What the log knows of one trial: its state and its events."""
        return self._ask(_Asked("GET", _path(model, f"trials/{quote(id, safe='')}"), None, _whole, repeatable=True))

    def waiting(self, model: str, after: int = 0, limit: int = 100) -> Any:
        """Predictions that wait for their label, oldest first."""
        path = _path(model, f"predictions?after={after}&limit={limit}")
        return self._ask(_Asked("GET", path, None, lambda answer: answer["predictions"], repeatable=True))

    def change(self, model: str, **limits: Any) -> Any:
        """Change ``max_pending``, ``max_features``, ``max_names`` or ``expire`` of a model; its summary."""
        return self._ask(_Asked("PATCH", _path(model), limits, _whole, repeatable=True))

    def predict_proba(self, model: str, attributes: Any = None, *, votes: Any = None, scores: Any = None) -> Any:
        """The probability of each class, {class: probability}, the likeliest first."""
        body = _instance(attributes, votes, scores) | {"probabilities": True}
        return self._ask(_Asked("POST", _path(model, "predict"), body, _probabilities, repeatable=True))

    def snapshot(self, model: str) -> Any:
        """The model as bytes of a file that `linmax.Learner.load` reads."""
        return self._ask(_Asked("GET", _path(model, "snapshot"), None, _whole, repeatable=True))

    # -- shared by both ways of sending ---------------------------------------------------------------

    def _judge(self, asked: _Asked, status: int, headers: Mapping[str, str], content: bytes) -> Any:
        """The result for the caller; raises `_Later` when the request should be sent again."""
        is_json = headers.get("content-type", "") == "application/json"
        answer = json.loads(content) if is_json and content else content or None
        if status in AGAIN:
            raise _Later(float(headers.get("retry-after", 1)), _error(status, answer))
        if status < 400 or asked.pick is _confirmation or (isinstance(answer, dict) and "results" in answer):
            return asked.pick(answer)
        raise _error(status, answer)

    def _pause(self, attempt: int, wanted: float) -> float:
        return min(LONGEST_PAUSE, max(wanted, 0.05 * 2.0 ** min(attempt, 30))) * random.uniform(0.5, 1.0)


class _Later(Exception):
    def __init__(self, seconds: float, error: ServiceError) -> None:
        super().__init__(str(error))
        self.seconds, self.error = seconds, error


class Client(_Verbs):
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

    def _ask(self, asked: _Asked) -> Any:
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                return self._judge(asked, *self._exchange(asked))
            except _Later as later:
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

    def _exchange(self, asked: _Asked) -> tuple[int, dict[str, str], bytes]:
        connection = getattr(self._own, "connection", None)
        if connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            connection = self._own.connection = kind(self._host, self._port, timeout=self._timeout)
        connection.request(asked.method, asked.path, asked.body, self._headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


class AsyncClient(_Verbs):
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

    async def _ask(self, asked: _Asked) -> Any:
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                async with asyncio.timeout(self._timeout):
                    answer = await self._exchange(asked)
                return self._judge(asked, *answer)
            except _Later as later:
                if last:
                    raise later.error from None
                pause = later.seconds
            except (OSError, EOFError) as error:
                if last or not (asked.repeatable or isinstance(error, ConnectionRefusedError)):
                    raise
                pause = 0.0
            await asyncio.sleep(self._pause(attempt, pause))
        raise AssertionError("not reached")

    async def _exchange(self, asked: _Asked) -> tuple[int, dict[str, str], bytes]:
        if self._idle:
            reader, writer = self._idle.pop()
        else:
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


def _request_text(asked: _Asked, headers: Mapping[str, str]) -> bytes:
    body = asked.body or b""
    lines = [f"{asked.method} {asked.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode("latin-1") + body


def _path(model: str, rest: str = "") -> str:
    return f"/v1/models/{quote(model, safe='')}" + (f"/{rest}" if rest else "")


def _instance(attributes: Any, votes: Any, scores: Any) -> dict[str, Any]:
    """The parts of an instance that are given, with arrays as lists."""
    blocks = {"attributes": attributes, "votes": votes, "scores": scores}
    return {name: _plain(block) for name, block in blocks.items() if block is not None}


def _plain(block: Any) -> Any:
    if isinstance(block, Mapping):
        return {str(name): _plain(value) for name, value in block.items()}
    return block.tolist() if hasattr(block, "tolist") else block


def _whole(answer: Any) -> Any:
    return answer


def _probabilities(answer: Any) -> Any:
    return {row["label"]: row["probability"] for row in answer["probabilities"]}


def _results(answer: Any) -> Any:
    return answer["results"]


def _confirmation(answer: Any) -> Any:
    error = answer["error"]
    if "confirm" not in error:
        raise _error(error["status"], answer)
    return error["confirm"]


def _error(status: int, answer: Any) -> ServiceError:
    told = answer.get("error", {}) if isinstance(answer, dict) else {}
    return ServiceError(status, told.get("message", "the service gave no reason"), told.get("field"))
