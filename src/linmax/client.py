"""Clients of ``linmax serve``, with the standard library alone: `Client`, and `AsyncClient` for asyncio.

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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any
from urllib.parse import quote, urlsplit

from linmax.service.ids import Ids

__all__ = ["AsyncClient", "Client", "ServiceError"]

ACCEPTED, AGAIN = 202, (429, 503)
LONGEST_PAUSE = 5.0
POOL = 64
UNSET: Any = object()
INSTANCE_BLOCKS = ("attributes", "votes", "scores", "candidates")


class ServiceError(RuntimeError):
    """A refusal by the service.

    Attributes
    ----------
    status : int
        Status of HTTP.
    message : str
        What is wrong, and the remedy.
    field : str or None
        The field at fault.

    See Also
    --------
    Client : raises it.

    Examples
    --------
    >>> print(ServiceError(404, "there is no model 'jury'"))
    404: there is no model 'jury'
    """

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.message, self.field = status, message, field


class RetryLater(Exception):
    """An answer after which the request is sent again."""

    def __init__(self, seconds: float, error: ServiceError | None) -> None:
        super().__init__(str(error))
        self.seconds, self.error = seconds, error


class ClientRequest:
    """A request, and the function that picks the result from its answer."""

    def __init__(self, method: str, path: str, body: Any, pick: Callable[[Any], Any], repeatable: bool) -> None:
        self.method, self.path, self.pick, self.repeatable = method, path, pick, repeatable
        self.body = None if body is None else json.dumps(body, allow_nan=False).encode()


class Verbs:
    """The methods of both clients; `_send` sends a request, in a call or awaited."""

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

    def _send(self, request: ClientRequest) -> Any:
        raise NotImplementedError

    def _ask(
        self, method: str, path: str, body: Any = None, pick: str | Callable[[Any], Any] = "", repeatable: bool = True
    ) -> Any:
        """Send a request; the result is a field of the answer, or what `pick` makes of it, or the whole answer."""
        function = pick if callable(pick) else (lambda answer: answer[pick]) if pick else (lambda answer: answer)
        return self._send(ClientRequest(method, path, body, function, repeatable))

    # -- models ---------------------------------------------------------------------------------------

    def create(self, name: str, learner: str = "auto", **options: Any) -> Any:
        """Create a model: ``kind`` ("attributes", "votes", "scores", "mixed"), ``classes`` and so on; its summary.

        The first model of its kind on a machine waits until its code is compiled. The same model may be created again.
        """
        return self._ask("POST", f"/v1/models?wait={self._timeout / 2:g}", {"name": name, "learner": learner} | options)

    def models(self, after: str = "", limit: int = 1000) -> Any:
        """Return summaries of models by name, those ``after`` a name."""
        return self._ask("GET", f"/v1/models?after={quote(after)}&limit={limit}", pick="models")

    def copy(self, model: str, name: str) -> Any:
        """Copy a model with what it has learned; the summary of the copy."""
        return self._ask("POST", _path(model, "copy"), {"name": name}, repeatable=False)

    def model(self, name: str) -> Any:
        """Return the summary of one model: trials, mistakes, classes, options and so on."""
        return self._ask("GET", _path(name))

    def change(self, model: str, **limits: Any) -> Any:
        """Change ``name``, ``max_pending``, ``max_features``, ``max_names`` or ``expire`` of a model; its summary."""
        return self._ask("PATCH", _path(model), limits)

    def ask_to_delete(self, name: str) -> Any:
        """Return the word that confirms a deletion; it is valid for two minutes."""
        return self._ask("DELETE", _path(name), pick=_confirmation)

    def delete(self, name: str, confirm: str) -> Any:
        """Delete a model and its log; `confirm` is the word that `ask_to_delete` returned."""
        return self._ask("DELETE", f"{_path(name)}?confirm={quote(confirm)}", repeatable=False)

    def weights(self, model: str, limit: int = 100) -> Any:
        """Return the largest weights of each kind."""
        return self._ask("GET", _path(model, f"weights?limit={limit}"))

    def curve(self, model: str, points: int = 1000) -> Any:
        """Return points [trials, mistakes, plurality's mistakes, best voter's mistakes]."""
        return self._ask("GET", _path(model, f"curve?points={points}"), pick="points")

    def snapshot(self, model: str) -> Any:
        """Return the model as bytes of a file that `linmax.Learner.load` reads."""
        return self._ask("GET", _path(model, "snapshot"))

    # -- predictions ----------------------------------------------------------------------------------

    def predict(
        self, model: str, attributes: Any = None, *, id: str | None = None, reject: float | None = None, **blocks: Any
    ) -> Any:
        """Return the label of an instance, None before a class is known. With an ``id`` it is stored for its label.

        With ``reject``, a risk, the answer is None, "do not know", where the probability of being wrong is greater.
        Here and below ``blocks`` are ``votes``, ``scores`` and ``candidates``, as for `linmax.Learner`.
        """
        body = _instance(attributes, blocks) | _given(id=id, reject=reject)
        return self._ask("POST", _path(model, "predict"), body, "label")

    def keep(self, model: str, attributes: Any = None, **blocks: Any) -> Any:
        """Predict an instance and store it under a new id until its label comes; return (id, label)."""
        id = self._ids.new()
        body = _instance(attributes, blocks) | {"id": id}
        return self._ask("POST", _path(model, "predict"), body, lambda answer: (id, answer["label"]))

    def predict_proba(self, model: str, attributes: Any = None, **blocks: Any) -> Any:
        """Return the probability of each class or candidate, {class: probability}, the most probable first."""
        body = _instance(attributes, blocks) | {"probabilities": True}
        return self._ask("POST", _path(model, "predict"), body, _probabilities)

    def predict_set(self, model: str, attributes: Any = None, *, coverage: float = 0.9, **blocks: Any) -> Any:
        """Return the classes or candidates that contain the label as often as ``coverage``, the most probable first."""
        body = _instance(attributes, blocks) | {"coverage": coverage}
        return self._ask("POST", _path(model, "predict"), body, lambda answer: tuple(answer["set"]))

    def predict_many(self, model: str, items: Sequence[Mapping[str, Any]]) -> Any:
        """Return results for several instances, dicts with ``attributes`` and so on, and ``id`` to store them."""
        return self._ask("POST", _path(model, "predict/batch"), {"items": list(items)}, "results")

    def explain(self, model: str, attributes: Any = None, **blocks: Any) -> Any:
        """Return the label, the score of every class, and the weights behind them."""
        return self._ask("POST", _path(model, "explain"), _instance(attributes, blocks))

    def rank(self, model: str, candidates: Any, **blocks: Any) -> Any:
        """Return the candidates, the best first."""
        body = _instance(None, blocks | {"candidates": candidates})
        return self._ask("POST", _path(model, "rank"), body, lambda answer: [row["label"] for row in answer["ranking"]])

    # -- labels ---------------------------------------------------------------------------------------

    def learn(
        self,
        model: str,
        attributes: Any = None,
        *,
        label: Any = UNSET,
        wrong: Any = UNSET,
        weight: float | None = None,
        id: str | None = None,
        **blocks: Any,
    ) -> Any:
        """Learn an instance with its label, or with ``id`` alone the label of a stored one; return the prediction.

        With ``wrong`` in place of the label all that is known is that the label is not this class.
        """
        if (label is UNSET) == (wrong is UNSET):
            raise TypeError("learn() requires label= or wrong=, one of them")
        given = _instance(attributes, blocks)
        truth = {"label": _plain(label)} if wrong is UNSET else {"wrong": _plain(wrong)}
        verb = "learn" if given or id is None else "label"
        body = given | truth | _given(weight=weight) | {"id": id or self._ids.new()}
        return self._ask("POST", _path(model, verb), body, "predicted")

    def learn_many(self, model: str, items: Sequence[Mapping[str, Any]]) -> Any:
        """Learn several instances in this order, dicts with ``label`` and perhaps ``id``; return the results."""
        body = {"items": [{"id": self._ids.new()} | dict(item) for item in items]}
        return self._ask("POST", _path(model, "learn/batch"), body, "results")

    def label_many(self, model: str, items: Sequence[Mapping[str, Any]]) -> Any:
        """Learn the labels of stored instances, dicts with ``id`` and ``label``; return the results."""
        return self._ask("POST", _path(model, "label/batch"), {"items": list(items)}, "results")

    def forget(self, model: str, id: str) -> Any:
        """Give up a stored instance whose label will not come."""
        return self._ask("DELETE", _path(model, f"predictions/{quote(id, safe='')}"))

    def waiting(self, model: str, after: int = 0, limit: int = 100) -> Any:
        """Return predictions that wait for their label, oldest first."""
        return self._ask("GET", _path(model, f"predictions?after={after}&limit={limit}"), pick="predictions")

    def trial(self, model: str, id: str) -> Any:
        """Return the state of one trial and its events in the log."""
        return self._ask("GET", _path(model, f"trials/{quote(id, safe='')}"))

    def wants_label(self, model: str, attributes: Any = None, *, id: str | None = None, **blocks: Any) -> Any:
        """Return whether the label of an instance is worth asking for; with ``id`` alone that of a stored one."""
        body = _instance(attributes, blocks) | {"id": id or self._ids.new()}
        return self._ask("POST", _path(model, "wants_label"), body, "wanted")

    # -- voters ---------------------------------------------------------------------------------------

    def ask(self, model: str, votes: Mapping[str, Any], **options: Any) -> Any:
        """Return the voter to ask next, given the votes so far; None if asking more is not worth it.

        ``options`` are ``attributes``, ``candidates``, ``costs``, ``tolerance``, ``explore`` and ``voters``. See
        `linmax.Learner.ask`, whose defaults the service has.
        """
        return self._ask("POST", _path(model, "ask"), _given(votes=votes, **options), "voter")

    def panel(self, model: str, costs: Mapping[str, float] | None = None) -> Any:
        """Return how few voters are enough: {"trials", "panels": [{"voters", "cost", "accuracy", "behind"}, ...]}."""
        return self._ask("POST", _path(model, "panel"), _given(costs=costs))

    # -- shared by both ways of sending ---------------------------------------------------------------

    def _result(self, request: ClientRequest, status: int, headers: Mapping[str, str], content: bytes) -> Any:
        """Return the result for the caller; raise `RetryLater` if the request should be sent again."""
        is_json = headers.get("content-type", "") in ("application/json", "application/problem+json")
        answer = json.loads(content) if is_json and content else content or None
        if status == ACCEPTED:  # it compiles
            raise RetryLater(float(headers.get("retry-after", 1)), None)
        if status in AGAIN:
            raise RetryLater(float(headers.get("retry-after", 1)), _error(status, answer))
        if status < 400 or request.pick is _confirmation or (isinstance(answer, dict) and "results" in answer):
            return request.pick(answer)
        raise _error(status, answer)

    def _pause(self, request: ClientRequest, attempt: int, error: Exception) -> float:
        """Return the seconds until a request is sent again, or raise the error if it is not."""
        if isinstance(error, RetryLater) and error.error is None:
            return error.seconds
        if attempt >= self._retries:
            raise (error.error if isinstance(error, RetryLater) and error.error else error) from None
        if not isinstance(error, (RetryLater, ConnectionRefusedError)) and not request.repeatable:
            raise error
        wanted = error.seconds if isinstance(error, RetryLater) else 0.0
        return min(LONGEST_PAUSE, max(wanted, 0.05 * 2.0 ** min(attempt, 30))) * random.uniform(0.5, 1.0)


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

    def _send(self, request: ClientRequest) -> Any:
        for attempt in count():
            try:
                return self._result(request, *self._exchange(request))
            except (RetryLater, OSError, http.client.HTTPException) as error:
                if not isinstance(error, RetryLater):
                    self.close()
                pause = self._pause(request, attempt, error)
            time.sleep(pause)
        raise AssertionError("not reached")

    def _exchange(self, request: ClientRequest) -> tuple[int, dict[str, str], bytes]:
        if not request.repeatable:  # the service may have closed an idle connection meanwhile
            self.close()
        connection = getattr(self._own, "connection", None)
        if connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            connection = self._own.connection = kind(self._host, self._port, timeout=self._timeout)
        connection.request(request.method, request.path, request.body, self._headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


class AsyncClient(Verbs):
    """A client for asyncio: every method is awaited.

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

    async def _send(self, request: ClientRequest) -> Any:
        for attempt in count():
            try:
                async with asyncio.timeout(self._timeout):
                    answer = await self._exchange(request)
                return self._result(request, *answer)
            except (RetryLater, OSError, EOFError) as error:
                pause = self._pause(request, attempt, error)
            await asyncio.sleep(pause)
        raise AssertionError("not reached")

    async def _exchange(self, request: ClientRequest) -> tuple[int, dict[str, str], bytes]:
        if self._idle and request.repeatable:
            reader, writer = self._idle.pop()
        else:  # always if it may not be repeated: the service may have closed an idle connection meanwhile
            context = ssl.create_default_context() if self._secure else None
            reader, writer = await asyncio.open_connection(self._host, self._port, ssl=context)
        try:
            body = request.body or b""
            lines = [f"{request.method} {request.path} HTTP/1.1"]
            lines += [f"{name}: {value}" for name, value in self._headers.items()]
            writer.write("\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode("latin-1") + body)
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


def _path(model: str, rest: str = "") -> str:
    return f"/v1/models/{quote(model, safe='')}" + (f"/{rest}" if rest else "")


def _instance(attributes: Any, blocks: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of an instance that are given, with arrays as lists."""
    if unknown := blocks.keys() - INSTANCE_BLOCKS:
        raise TypeError(f"unexpected argument {min(unknown)!r}; an instance is {', '.join(INSTANCE_BLOCKS)}")
    return _given(attributes=attributes, **blocks)


def _given(**fields: Any) -> dict[str, Any]:
    return {name: _plain(value) for name, value in fields.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _probabilities(answer: Any) -> Any:
    return {row["label"]: row["probability"] for row in answer["probabilities"]}


def _confirmation(answer: Any) -> Any:
    if "confirm" not in answer:
        raise _error(answer["status"], answer)
    return answer["confirm"]


def _error(status: int, answer: Any) -> ServiceError:
    problem = answer if isinstance(answer, dict) else {}
    return ServiceError(status, problem.get("detail", "the service gave no reason"), problem.get("field"))
