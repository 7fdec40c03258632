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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from inspect import signature
from itertools import count
from operator import itemgetter
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)
from urllib.parse import quote, urlencode, urlsplit

from linmax.service.ids import Ids

if TYPE_CHECKING:
    from linmax.util.aliases import Attributes, Candidates, Scores, Votes

if TYPE_CHECKING:
    pass

__all__ = ["AsyncClient", "Client", "ServiceError"]

ACCEPTED, AGAIN = 202, (429, 503)
LONGEST_PAUSE = 5.0
POOL = 64

Label = str | int
Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)
P = ParamSpec("P")


class Missing(Enum):
    """Type of arguments that are not given, where None is a value."""

    MISSING = 0


NOT_GIVEN = Missing.MISSING


# -- what is sent, and what comes back --------------------------------------------------------------------------------


class Evidence(TypedDict, total=False):
    """Votes and scores of an instance."""

    votes: Votes
    scores: Scores


class Blocks(Evidence, total=False):
    """Parts of an instance besides its attributes."""

    candidates: Candidates


class Limits(TypedDict, total=False):
    """Options that can be changed."""

    max_pending: int
    max_features: int
    max_names: int
    expire: float | None


class Options(Limits, total=False):
    """Options of a new model besides its learner."""

    kind: str
    labels: str
    classes: Sequence[Label] | None
    candidates: bool
    answers: str
    key: str | None
    thresholds: bool
    tie: str
    update_on_tie: bool


class ModelOptions(Options):
    """Options of a model."""

    learner: str


class Question(TypedDict, total=False):
    """Options of a question about the next voter."""

    attributes: Attributes
    candidates: Sequence[Label]
    costs: Mapping[str, float]
    tolerance: float
    explore: float
    voters: Sequence[str]


class Summary(TypedDict):
    """Figures of a model."""

    name: str
    state: str
    options: ModelOptions
    trials: int
    mistakes: int
    updates: int
    classes: list[Label]
    pending: int
    applied_seq: int
    snapshot_seq: int
    created: int


class Problem(TypedDict, total=False):
    """The reason for a refusal."""

    title: str
    status: int
    detail: str
    field: str
    confirm: str
    quarantined: bool


class Probability(TypedDict):
    """The probability of a class."""

    label: Label | None
    probability: float


class Result(TypedDict, total=False):
    """The answer to one item of a batch, or an error."""

    label: Label | None
    id: str
    seq: int
    probabilities: list[Probability]
    set: list[Label]
    sure: bool
    wrong: Label
    predicted: Label | None
    mistake: bool | None
    error: Problem


class Weight(TypedDict, total=False):
    """One weight; with ``label`` if each class has its own."""

    name: str
    weight: float
    label: Label


class Weights(TypedDict):
    """The largest weights of each kind."""

    voters: list[Weight]
    raters: list[Weight]
    thresholds: list[Weight]
    attributes: list[Weight]


class Score(TypedDict):
    """The score of a class."""

    label: Label
    score: float


class Explanation(TypedDict):
    """The label, the score of every class, and the weights behind them."""

    label: Label | None
    scores: list[Score]
    weights: Weights


class WaitingPrediction(TypedDict):
    """A prediction that waits for its label."""

    id: str
    seq: int
    at: int
    label: Label | None


class Trial(TypedDict):
    """A trial with its events."""

    id: str
    state: str
    events: list[dict[str, object]]


class PanelLine(TypedDict):
    """Some voters, their cost and their accuracy."""

    voters: list[str]
    cost: float
    accuracy: float
    behind: float


class Panel(TypedDict):
    """Panels of few voters that may be enough, and the trials that measured them."""

    trials: int
    panels: list[PanelLine]


class Imported(TypedDict):
    """Counts of imported lines, and the first problems with their lines."""

    stored: int
    repeated: int
    refused: int
    problems: list[tuple[int, Problem]]


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


def _whole(answer: Any) -> Any:
    return answer


@dataclass(frozen=True)
class ClientRequest(Generic[Answer]):
    """A request, and the function that picks the result from its answer."""

    method: str
    path: str
    body: object = None  # for JSON, or bytes
    pick: Callable[[Any], Answer] = _whole
    repeatable: bool = True

    @property
    def content(self) -> bytes | None:
        """The body as bytes."""
        if self.body is None or isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body, allow_nan=False).encode()


class Verb(Protocol[P, Answer_co]):
    """A method of both clients, whose result a `Client` returns, and an `AsyncClient` when it is awaited."""

    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, Answer_co]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, Awaitable[Answer_co]]: ...


def verb(make: Callable[Concatenate[Verbs, P], ClientRequest[Answer]]) -> Verb[P, Answer]:
    """Return the method that sends the requests that ``make`` returns."""

    @wraps(make)
    def send(client: Verbs, *arguments: P.args, **options: P.kwargs) -> object:
        return client._send(make(client, *arguments, **options))

    described = signature(make)
    result = str(described.return_annotation).removeprefix("ClientRequest[").removesuffix("]")
    send.__signature__ = described.replace(return_annotation=result)  # type: ignore[attr-defined]
    return cast("Verb[P, Answer]", send)


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

    def _send(self, request: ClientRequest[Answer]) -> object:
        raise NotImplementedError

    # -- models ---------------------------------------------------------------------------------------

    @verb
    def create(self, name: str, learner: str = "auto", **options: Unpack[Options]) -> ClientRequest[Summary]:
        """Create a model: ``kind`` ("attributes", "votes", "scores", "mixed"), ``classes`` and so on; its summary.

        The first model of its kind on a machine waits until its code is compiled. The same model may be created again.
        """
        path = f"/v1/models?wait={self._timeout / 2:g}"
        return ClientRequest("POST", path, {"name": name, "learner": learner} | _given(**options))

    @verb
    def models(self, after: str = "", limit: int = 1000) -> ClientRequest[list[Summary]]:
        """Return summaries of models by name, those ``after`` a name."""
        return ClientRequest("GET", _query("/v1/models", after=after, limit=limit), pick=itemgetter("models"))

    @verb
    def copy(self, model: str, name: str) -> ClientRequest[Summary]:
        """Copy a model with what it has learned; the summary of the copy."""
        return ClientRequest("POST", _path(model, "copy"), {"name": name}, repeatable=False)

    @verb
    def model(self, name: str) -> ClientRequest[Summary]:
        """Return the summary of one model: trials, mistakes, classes, options and so on."""
        return ClientRequest("GET", _path(name))

    @verb
    def change(self, model: str, *, name: str | None = None, **limits: Unpack[Limits]) -> ClientRequest[Summary]:
        """Change ``name``, ``max_pending``, ``max_features``, ``max_names`` or ``expire`` of a model; its summary."""
        return ClientRequest("PATCH", _path(model), {**limits, **_given(name=name)})

    @verb
    def ask_to_delete(self, name: str) -> ClientRequest[str]:
        """Return the word that confirms a deletion; it is valid for two minutes."""
        return ClientRequest("DELETE", _path(name), pick=_confirmation)

    @verb
    def delete(self, name: str, confirm: str) -> ClientRequest[None]:
        """Delete a model and its log; `confirm` is the word that `ask_to_delete` returned."""
        return ClientRequest("DELETE", _query(_path(name), confirm=confirm), repeatable=False)

    @verb
    def weights(self, model: str, limit: int = 100) -> ClientRequest[Weights]:
        """Return the largest weights of each kind."""
        return ClientRequest("GET", _query(_path(model, "weights"), limit=limit))

    @verb
    def curve(self, model: str, points: int = 1000) -> ClientRequest[list[list[int | None]]]:
        """Return points [trials, mistakes, plurality's mistakes, best voter's mistakes]."""
        return ClientRequest("GET", _query(_path(model, "curve"), points=points), pick=itemgetter("points"))

    @verb
    def snapshot(self, model: str) -> ClientRequest[bytes]:
        """Return the model as bytes of a file that `linmax.Learner.load` reads."""
        return ClientRequest("GET", _path(model, "snapshot"))

    @verb
    def upload(self, name: str, content: bytes) -> ClientRequest[Summary]:
        """Create a model from the bytes of a file, such as `snapshot` returns and `linmax.Learner.save` writes."""
        return ClientRequest("PUT", _path(name, "snapshot"), content, repeatable=False)

    # -- predictions ----------------------------------------------------------------------------------

    @verb
    def predict(
        self,
        model: str,
        attributes: Attributes = None,
        *,
        id: str | None = None,
        reject: float | None = None,
        **blocks: Unpack[Blocks],
    ) -> ClientRequest[Label | None]:
        """Return the label of an instance, None before a class is known. With an ``id`` it is stored for its label.

        With ``reject``, a risk, the answer is None, "do not know", where the probability of being wrong is greater.
        Here and below ``blocks`` are ``votes``, ``scores`` and ``candidates``, as for `linmax.Learner`.
        """
        body = _instance(attributes, blocks) | _given(id=id, reject=reject)
        return ClientRequest("POST", _path(model, "predict"), body, itemgetter("label"))

    @verb
    def keep(
        self, model: str, attributes: Attributes = None, **blocks: Unpack[Blocks]
    ) -> ClientRequest[tuple[str, Label | None]]:
        """Predict an instance and store it under a new id until its label comes; return (id, label)."""
        id = self._ids.new()
        body = _instance(attributes, blocks) | {"id": id}
        return ClientRequest("POST", _path(model, "predict"), body, lambda answer: (id, answer["label"]))

    @verb
    def predict_proba(
        self, model: str, attributes: Attributes = None, **blocks: Unpack[Blocks]
    ) -> ClientRequest[dict[Label | None, float]]:
        """Return the probability of each class or candidate, {class: probability}, the most probable first."""
        body = _instance(attributes, blocks) | {"probabilities": True}
        return ClientRequest("POST", _path(model, "predict"), body, _probabilities)

    @verb
    def predict_set(
        self, model: str, attributes: Attributes = None, *, coverage: float = 0.9, **blocks: Unpack[Blocks]
    ) -> ClientRequest[tuple[Label, ...]]:
        """Return the classes or candidates that contain the label as often as ``coverage``, the most probable first."""
        body = _instance(attributes, blocks) | {"coverage": coverage}
        return ClientRequest("POST", _path(model, "predict"), body, lambda answer: tuple(answer["set"]))

    @verb
    def predict_many(self, model: str, items: Sequence[Mapping[str, object]]) -> ClientRequest[list[Result]]:
        """Return results for several instances, dicts with ``attributes`` and so on, and ``id`` to store them."""
        return ClientRequest("POST", _path(model, "predict", "batch"), {"items": list(items)}, itemgetter("results"))

    @verb
    def explain(
        self, model: str, attributes: Attributes = None, **blocks: Unpack[Blocks]
    ) -> ClientRequest[Explanation]:
        """Return the label, the score of every class, and the weights behind them."""
        return ClientRequest("POST", _path(model, "explain"), _instance(attributes, blocks))

    @verb
    def rank(self, model: str, candidates: Sequence[Label], **blocks: Unpack[Evidence]) -> ClientRequest[list[Label]]:
        """Return the candidates, the best first."""
        body = _instance(None, Blocks(candidates=candidates, **blocks))
        return ClientRequest("POST", _path(model, "rank"), body, lambda answer: [r["label"] for r in answer["ranking"]])

    # -- labels ---------------------------------------------------------------------------------------

    @verb
    def learn(
        self,
        model: str,
        attributes: Attributes = None,
        *,
        label: Label | Missing | None = NOT_GIVEN,
        wrong: Label | Missing = NOT_GIVEN,
        weight: float | None = None,
        id: str | None = None,
        **blocks: Unpack[Blocks],
    ) -> ClientRequest[Label | None]:
        """Learn an instance with its label, or with ``id`` alone the label of a stored one; return the prediction.

        With ``wrong`` in place of the label all that is known is that the label is not this class.
        """
        if (label is NOT_GIVEN) == (wrong is NOT_GIVEN):
            raise TypeError("learn() requires label= or wrong=, one of them")
        given = _instance(attributes, blocks)
        truth = {"label": _plain(label)} if wrong is NOT_GIVEN else {"wrong": _plain(wrong)}
        action = "learn" if given or id is None else "label"
        body = given | truth | _given(weight=weight) | {"id": id or self._ids.new()}
        return ClientRequest("POST", _path(model, action), body, itemgetter("predicted"))

    @verb
    def learn_many(self, model: str, items: Sequence[Mapping[str, object]]) -> ClientRequest[list[Result]]:
        """Learn several instances in this order, dicts with ``label`` and perhaps ``id``; return the results."""
        body = {"items": [{"id": self._ids.new()} | dict(item) for item in items]}
        return ClientRequest("POST", _path(model, "learn", "batch"), body, itemgetter("results"))

    @verb
    def label_many(self, model: str, items: Sequence[Mapping[str, object]]) -> ClientRequest[list[Result]]:
        """Learn the labels of stored instances, dicts with ``id`` and ``label``; return the results."""
        return ClientRequest("POST", _path(model, "label", "batch"), {"items": list(items)}, itemgetter("results"))

    @verb
    def forget(self, model: str, id: str) -> ClientRequest[None]:
        """Give up a stored instance whose label will not come."""
        return ClientRequest("DELETE", _path(model, "predictions", id))

    @verb
    def waiting(self, model: str, after: int = 0, limit: int = 100) -> ClientRequest[list[WaitingPrediction]]:
        """Return predictions that wait for their label, oldest first."""
        path = _query(_path(model, "predictions"), after=after, limit=limit)
        return ClientRequest("GET", path, pick=itemgetter("predictions"))

    @verb
    def trial(self, model: str, id: str) -> ClientRequest[Trial]:
        """Return the state of one trial and its events in the log."""
        return ClientRequest("GET", _path(model, "trials", id))

    @verb
    def wants_label(
        self, model: str, attributes: Attributes = None, *, id: str | None = None, **blocks: Unpack[Blocks]
    ) -> ClientRequest[bool]:
        """Return whether the label of an instance is worth asking for; with ``id`` alone that of a stored one."""
        body = _instance(attributes, blocks) | {"id": id or self._ids.new()}
        return ClientRequest("POST", _path(model, "wants_label"), body, itemgetter("wanted"))

    @verb
    def export(self, model: str = "", since: int = 0) -> ClientRequest[bytes]:
        """Return the events after a number, of one model or of all, as lines of JSON."""
        return ClientRequest("GET", _query("/v1/export", model=model, since=since))

    @verb
    def import_events(self, lines: bytes, model: str = "") -> ClientRequest[Imported]:
        """Store and learn the events of an export, all as those of ``model`` if it is given; repeating is harmless."""
        return ClientRequest("POST", _query("/v1/import", model=model), lines)

    # -- voters ---------------------------------------------------------------------------------------

    @verb
    def ask(
        self, model: str, votes: Mapping[str, Label | None], **options: Unpack[Question]
    ) -> ClientRequest[str | None]:
        """Return the voter to ask next, given the votes so far; None if asking more is not worth it.

        ``options`` are ``attributes``, ``candidates``, ``costs``, ``tolerance``, ``explore`` and ``voters``. See
        `linmax.Learner.ask`, whose defaults the service has.
        """
        return ClientRequest("POST", _path(model, "ask"), _given(votes=votes, **options), itemgetter("voter"))

    @verb
    def panel(self, model: str, costs: Mapping[str, float] | None = None) -> ClientRequest[Panel]:
        """Return how few voters are enough: {"trials", "panels": [{"voters", "cost", "accuracy", "behind"}, ...]}."""
        return ClientRequest("POST", _path(model, "panel"), _given(costs=costs))

    # -- shared by both ways of sending ---------------------------------------------------------------

    def _result(
        self, request: ClientRequest[Answer], status: int, headers: Mapping[str, str], content: bytes
    ) -> Answer:
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

    def _pause(self, request: ClientRequest[Answer], attempt: int, error: Exception) -> float:
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

    def __init__(
        self, address: str = "http://127.0.0.1:8471", key: str | None = None, *, timeout: float = 30.0, retries: int = 8
    ) -> None:
        super().__init__(address, key, timeout=timeout, retries=retries)
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

    def _send(self, request: ClientRequest[Answer]) -> Answer:
        for attempt in count():
            try:
                return self._result(request, *self._exchange(request))
            except (RetryLater, OSError, http.client.HTTPException) as error:
                if not isinstance(error, RetryLater):
                    self.close()
                pause = self._pause(request, attempt, error)
            time.sleep(pause)
        raise AssertionError("not reached")

    def _exchange(self, request: ClientRequest[Answer]) -> tuple[int, dict[str, str], bytes]:
        if not request.repeatable:  # the service may have closed an idle connection meanwhile
            self.close()
        connection = getattr(self._own, "connection", None)
        if connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            connection = self._own.connection = kind(self._host, self._port, timeout=self._timeout)
        connection.request(request.method, request.path, request.content, self._headers)
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

    def __init__(
        self, address: str = "http://127.0.0.1:8471", key: str | None = None, *, timeout: float = 30.0, retries: int = 8
    ) -> None:
        super().__init__(address, key, timeout=timeout, retries=retries)
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

    async def _send(self, request: ClientRequest[Answer]) -> Answer:
        for attempt in count():
            try:
                async with asyncio.timeout(self._timeout):
                    answer = await self._exchange(request)
                return self._result(request, *answer)
            except (RetryLater, OSError, EOFError) as error:
                pause = self._pause(request, attempt, error)
            await asyncio.sleep(pause)
        raise AssertionError("not reached")

    async def _exchange(self, request: ClientRequest[Answer]) -> tuple[int, dict[str, str], bytes]:
        if self._idle and request.repeatable:
            reader, writer = self._idle.pop()
        else:  # always if it may not be repeated: the service may have closed an idle connection meanwhile
            context = ssl.create_default_context() if self._secure else None
            reader, writer = await asyncio.open_connection(self._host, self._port, ssl=context)
        try:
            body = request.content or b""
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


def _path(model: str, *rest: str) -> str:
    return "/".join(["/v1/models", *(quote(step, safe="") for step in (model, *rest))])


def _query(path: str, **parameters: str | int) -> str:
    given = {name: value for name, value in parameters.items() if value != ""}
    return f"{path}?{urlencode(given)}" if given else path


def _instance(attributes: Attributes, blocks: Blocks) -> dict[str, object]:
    """Return the parts of an instance that are given, with arrays as lists."""
    if unknown := blocks.keys() - Blocks.__annotations__.keys():
        known = ", ".join(("attributes", *Blocks.__annotations__))
        raise TypeError(f"unexpected argument {min(unknown)!r}; an instance is {known}")
    return _given(attributes=attributes, **blocks)


def _given(**fields: object) -> dict[str, object]:
    return {name: _plain(value) for name, value in fields.items() if value is not None}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    to_list = getattr(value, "tolist", None)
    return value if to_list is None else to_list()


def _probabilities(answer: dict[str, list[Probability]]) -> dict[Label | None, float]:
    return {row["label"]: row["probability"] for row in answer["probabilities"]}


def _confirmation(answer: Problem) -> str:
    if "confirm" not in answer:
        raise _error(answer["status"], answer)
    return answer["confirm"]


def _error(status: int, answer: object) -> ServiceError:
    problem = answer if isinstance(answer, dict) else {}
    return ServiceError(status, problem.get("detail", "the service gave no reason"), problem.get("field"))
