"""Requests, answers and operations: what a handler takes, what it returns, and what it is for."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.types import Receive, Send

from linmax.service.keys import Key
from linmax.service.model import ServedModel
from linmax.service.refusals import Refusal
from linmax.service.trials import TrialOperations

if TYPE_CHECKING:
    from linmax.service.app import App

__all__ = [
    "JSON",
    "STANDARD_HEADERS",
    "Answer",
    "Content",
    "Operation",
    "Request",
    "encode",
    "refused_answer",
    "send_answer",
]

encode = msgspec.json.Encoder().encode
JSON = b"application/json"
STANDARD_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


@dataclass(slots=True)
class Request:
    """What a handler needs to know."""

    app: App
    operation: Operation
    parameters: dict[str, str]
    query: dict[str, str]
    body: Any
    key: Key | None
    headers: dict[bytes, bytes]
    secure: bool
    head: bool = False  # only the headers of the answer are wanted


class Answer(msgspec.Struct):
    """What goes back."""

    content: bytes
    status: int = 200
    kind: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


Content = bytes | bytearray
Handler = Callable[[Request], Awaitable[Answer]]
Stream = Callable[[Request, Receive, Send], Awaitable[None]]
Begin = Callable[[TrialOperations, ServedModel, list[Any], Callable[[list[Any]], None]], None]


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    `scope` is what a key must allow ("" for everybody), `body` the type of the JSON that is taken, `returns` that of
    the answer, `refuses` the statuses beyond those that every operation may give. Operations on trials have `begin`,
    and streams answer piece by piece (`stream`) instead of by their handler.
    """

    name: str
    method: str
    path: str
    scope: str
    summary: str
    handler: Handler
    body: Any = None
    returns: Any = None
    status: int = 200
    refuses: tuple[int, ...] = ()
    query: tuple[tuple[str, dict[str, Any], str], ...] = ()
    kind: str = "application/json"
    begin: Begin | None = None
    stream: Stream | None = None
    cost: int = 1  # in trials, against the rate of a key


def refused_answer(refusal: Refusal) -> Answer:
    headers: list[tuple[bytes, bytes]] = []
    if refusal.retry_after is not None:
        headers.append((b"retry-after", str(max(1, math.ceil(refusal.retry_after))).encode()))
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    if "allow" in refusal.details:
        headers.append((b"allow", refusal.details["allow"].encode()))
    return Answer(encode(refusal.body()), refusal.status, headers=tuple(headers))


async def send_answer(send: Send, method: str, answer: Answer) -> None:
    length = str(len(answer.content)).encode()
    headers = [(b"content-type", answer.kind), (b"content-length", length), *answer.headers, *STANDARD_HEADERS]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else answer.content})
