"""The methods of both clients: what is asked for, and how the answer is read. See `linmax.service.client`."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from linmax.service.ids import Ids

__all__ = ["ClientRequest", "RetryLater", "ServiceError", "Verbs"]

AGAIN = (429, 503)
LONGEST_PAUSE = 5.0
UNSET: Any = object()


class ServiceError(RuntimeError):
    """The service refused: `status` is HTTP's, `field` the field at fault or None."""

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.message, self.field = status, message, field


class ClientRequest:
    """A request, and how to read its answer."""

    __slots__ = ("body", "method", "path", "pick", "repeatable")

    def __init__(self, method: str, path: str, body: Any, pick: Any, repeatable: bool) -> None:
        self.method, self.path, self.pick, self.repeatable = method, path, pick, repeatable
        self.body = None if body is None else json.dumps(body, allow_nan=False).encode()


class Verbs:
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

    def _ask(self, asked: ClientRequest) -> Any:
        raise NotImplementedError

    def create(self, name: str, learner: str = "auto", **options: Any) -> Any:
        """Make a model: ``kind`` ("attributes", "votes", "scores", "mixed"), ``classes`` and the like; its summary."""
        body = {"name": name, "learner": learner} | options
        return self._ask(ClientRequest("POST", "/v1/models", body, _whole, repeatable=True))

    def models(self) -> Any:
        """Summaries of all models."""
        return self._ask(ClientRequest("GET", "/v1/models", None, lambda answer: answer["models"], repeatable=True))

    def model(self, name: str) -> Any:
        """The summary of one model: trials, mistakes, classes, options and so on."""
        return self._ask(ClientRequest("GET", _path(name), None, _whole, repeatable=True))

    def delete(self, name: str, confirm: str) -> Any:
        """Delete a model and its log; `confirm` is the word that `ask_to_delete` gave."""
        return self._ask(
            ClientRequest("DELETE", f"{_path(name)}?confirm={quote(confirm)}", None, _whole, repeatable=False)
        )

    def ask_to_delete(self, name: str) -> Any:
        """The word to confirm a deletion with; it holds for two minutes."""
        return self._ask(ClientRequest("DELETE", _path(name), None, _confirmation, repeatable=True))

    def predict(
        self,
        model: str,
        attributes: Any = None,
        *,
        votes: Any = None,
        scores: Any = None,
        candidates: Any = None,
        id: str | None = None,
        reject: float | None = None,
    ) -> Any:
        """The label of an instance, None before a class is known. With an ``id`` it is kept until its label comes.

        With ``reject``, a risk, the answer is None, "do not know", where the probability of being wrong is greater.
        """
        body = _instance(attributes, votes, scores, candidates) | ({} if id is None else {"id": id})
        body |= {} if reject is None else {"reject": reject}
        return self._ask(
            ClientRequest("POST", _path(model, "predict"), body, lambda answer: answer["label"], repeatable=True)
        )

    def keep(
        self, model: str, attributes: Any = None, *, votes: Any = None, scores: Any = None, candidates: Any = None
    ) -> Any:
        """(id, label): predict an instance and keep it under a new id until its label comes."""
        id = self._ids.new()
        body = _instance(attributes, votes, scores, candidates) | {"id": id}
        return self._ask(
            ClientRequest("POST", _path(model, "predict"), body, lambda answer: (id, answer["label"]), repeatable=True)
        )

    def learn(
        self,
        model: str,
        attributes: Any = None,
        *,
        votes: Any = None,
        scores: Any = None,
        candidates: Any = None,
        label: Any = UNSET,
        wrong: Any = UNSET,
        id: str | None = None,
    ) -> Any:
        """Learn an instance with its label, or with ``id`` alone the label of a kept one; what was predicted for it.

        With ``wrong`` in the place of the label all that is known is that the label is not this class.
        """
        if (label is UNSET) == (wrong is UNSET):
            raise TypeError("learn() takes label= or wrong=, one of them")
        given = _instance(attributes, votes, scores, candidates)
        verb = "learn" if given or id is None else "label"
        told = {"label": _plain(label)} if wrong is UNSET else {"wrong": _plain(wrong)}
        body = given | told | {"id": id or self._ids.new()}
        return self._ask(
            ClientRequest("POST", _path(model, verb), body, lambda answer: answer["predicted"], repeatable=True)
        )

    def rank(self, model: str, candidates: Any, *, votes: Any = None, scores: Any = None) -> Any:
        """The candidates, the best first."""
        body = _instance(None, votes, scores, candidates)
        return self._ask(ClientRequest("POST", _path(model, "rank"), body, _ranked, repeatable=True))

    def ask(
        self,
        model: str,
        votes: Mapping[str, Any],
        *,
        attributes: Any = None,
        candidates: Any = None,
        costs: Mapping[str, float] | None = None,
        tolerance: float | None = None,
        explore: float | None = None,
        voters: Sequence[str] | None = None,
    ) -> Any:
        """Whom of the voters to ask next, given the votes so far; None when asking more is not worth it.

        As `linmax.Learner.ask`, whose defaults the service has.
        """
        body = _instance(attributes, votes, None, candidates)
        more: dict[str, Any] = {"costs": costs, "tolerance": tolerance, "explore": explore}
        more["voters"] = None if voters is None else list(voters)
        body |= {name: _plain(value) for name, value in more.items() if value is not None}
        return self._ask(
            ClientRequest("POST", _path(model, "ask"), body, lambda answer: answer["voter"], repeatable=True)
        )

    def panel(self, model: str, costs: Mapping[str, float] | None = None) -> Any:
        """How few voters are enough: {"trials": ..., "panels": [{"voters", "cost", "accuracy", "behind"}, ...]}."""
        body = {} if costs is None else {"costs": _plain(costs)}
        return self._ask(ClientRequest("POST", _path(model, "panel"), body, _whole, repeatable=True))

    def wants_label(
        self,
        model: str,
        attributes: Any = None,
        *,
        votes: Any = None,
        scores: Any = None,
        candidates: Any = None,
        id: str | None = None,
    ) -> Any:
        """Whether the label of an instance is worth asking for; with ``id`` alone that of a kept one."""
        body = _instance(attributes, votes, scores, candidates) | {"id": id or self._ids.new()}
        path = _path(model, "wants_label")
        return self._ask(ClientRequest("POST", path, body, lambda answer: answer["wanted"], repeatable=True))

    def predict_many(self, model: str, items: Sequence[Mapping[str, Any]]) -> Any:
        """Results for several instances, each a dict with ``attributes`` and so on, and ``id`` if it is to be kept."""
        body = {"items": list(items)}
        return self._ask(ClientRequest("POST", _path(model, "predict/batch"), body, _results, repeatable=True))

    def learn_many(self, model: str, items: Sequence[Mapping[str, Any]]) -> Any:
        """Results of learning several instances in this order, each a dict with ``label`` and perhaps ``id``."""
        body = {"items": [{"id": self._ids.new()} | dict(item) for item in items]}
        return self._ask(ClientRequest("POST", _path(model, "learn/batch"), body, _results, repeatable=True))

    def label_many(self, model: str, items: Sequence[Mapping[str, Any]]) -> Any:
        """Results of learning the labels of kept instances, each a dict with ``id`` and ``label``."""
        body = {"items": list(items)}
        return self._ask(ClientRequest("POST", _path(model, "label/batch"), body, _results, repeatable=True))

    def forget(self, model: str, id: str) -> Any:
        """Give up a kept instance whose label will not come."""
        path = _path(model, f"predictions/{quote(id, safe='')}")
        return self._ask(ClientRequest("DELETE", path, None, _whole, repeatable=True))

    def explain(
        self, model: str, attributes: Any = None, *, votes: Any = None, scores: Any = None, candidates: Any = None
    ) -> Any:
        """The label, the score of every class, and the weights behind them."""
        body = _instance(attributes, votes, scores, candidates)
        return self._ask(ClientRequest("POST", _path(model, "explain"), body, _whole, repeatable=True))

    def weights(self, model: str, limit: int = 100) -> Any:
        """The largest weights of each kind."""
        return self._ask(ClientRequest("GET", _path(model, f"weights?limit={limit}"), None, _whole, repeatable=True))

    def curve(self, model: str, points: int = 1000) -> Any:
        """Points [trials, mistakes, plurality's mistakes, best voter's mistakes]."""
        path = _path(model, f"curve?points={points}")
        return self._ask(ClientRequest("GET", path, None, lambda answer: answer["points"], repeatable=True))

    def trial(self, model: str, id: str) -> Any:
        """What the log knows of one trial: its state and its events."""
        return self._ask(
            ClientRequest("GET", _path(model, f"trials/{quote(id, safe='')}"), None, _whole, repeatable=True)
        )

    def waiting(self, model: str, after: int = 0, limit: int = 100) -> Any:
        """Predictions that wait for their label, oldest first."""
        path = _path(model, f"predictions?after={after}&limit={limit}")
        return self._ask(ClientRequest("GET", path, None, lambda answer: answer["predictions"], repeatable=True))

    def change(self, model: str, **limits: Any) -> Any:
        """Change ``max_pending``, ``max_features``, ``max_names`` or ``expire`` of a model; its summary."""
        return self._ask(ClientRequest("PATCH", _path(model), limits, _whole, repeatable=True))

    def predict_proba(
        self, model: str, attributes: Any = None, *, votes: Any = None, scores: Any = None, candidates: Any = None
    ) -> Any:
        """The probability of each class or candidate, {class: probability}, the likeliest first."""
        body = _instance(attributes, votes, scores, candidates) | {"probabilities": True}
        return self._ask(ClientRequest("POST", _path(model, "predict"), body, _probabilities, repeatable=True))

    def predict_set(
        self,
        model: str,
        attributes: Any = None,
        *,
        votes: Any = None,
        scores: Any = None,
        candidates: Any = None,
        coverage: float = 0.9,
    ) -> Any:
        """The classes or candidates that hold the right one as often as ``coverage`` says, the likeliest first."""
        body = _instance(attributes, votes, scores, candidates) | {"coverage": coverage}
        return self._ask(ClientRequest("POST", _path(model, "predict"), body, _set, repeatable=True))

    def snapshot(self, model: str) -> Any:
        """The model as bytes of a file that `linmax.Learner.load` reads."""
        return self._ask(ClientRequest("GET", _path(model, "snapshot"), None, _whole, repeatable=True))

    # -- shared by both ways of sending ---------------------------------------------------------------

    def _judge(self, asked: ClientRequest, status: int, headers: Mapping[str, str], content: bytes) -> Any:
        """The result for the caller; raises `RetryLater` when the request should be sent again."""
        is_json = headers.get("content-type", "") == "application/json"
        answer = json.loads(content) if is_json and content else content or None
        if status in AGAIN:
            raise RetryLater(float(headers.get("retry-after", 1)), _error(status, answer))
        if status < 400 or asked.pick is _confirmation or (isinstance(answer, dict) and "results" in answer):
            return asked.pick(answer)
        raise _error(status, answer)

    def _pause(self, attempt: int, wanted: float) -> float:
        return min(LONGEST_PAUSE, max(wanted, 0.05 * 2.0 ** min(attempt, 30))) * random.uniform(0.5, 1.0)


class RetryLater(Exception):
    def __init__(self, seconds: float, error: ServiceError) -> None:
        super().__init__(str(error))
        self.seconds, self.error = seconds, error


def _path(model: str, rest: str = "") -> str:
    return f"/v1/models/{quote(model, safe='')}" + (f"/{rest}" if rest else "")


def _instance(attributes: Any, votes: Any, scores: Any, candidates: Any = None) -> dict[str, Any]:
    """The parts of an instance that are given, with arrays as lists."""
    blocks = {"attributes": attributes, "votes": votes, "scores": scores}
    if candidates is not None:
        blocks["candidates"] = candidates if isinstance(candidates, str) else [_plain(name) for name in candidates]
    return {name: _plain(block) for name, block in blocks.items() if block is not None}


def _plain(block: Any) -> Any:
    if isinstance(block, Mapping):
        return {str(name): _plain(value) for name, value in block.items()}
    return block.tolist() if hasattr(block, "tolist") else block


def _whole(answer: Any) -> Any:
    return answer


def _probabilities(answer: Any) -> Any:
    return {row["label"]: row["probability"] for row in answer["probabilities"]}


def _set(answer: Any) -> Any:
    return tuple(answer["set"])


def _ranked(answer: Any) -> Any:
    return [row["label"] for row in answer["ranking"]]


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
