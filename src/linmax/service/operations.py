"""Operations: a handler with its types, and the method and path at which it is served."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import UnionType
from typing import TYPE_CHECKING, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from linmax.service.keys import Key
from linmax.service.schemas import BodyReader, Refusal

if TYPE_CHECKING:
    from linmax.service.app import App
    from linmax.service.served_model import ServedModel
    from linmax.service.service import Service

__all__ = ["Call", "Operation", "encode", "json_response", "refusal_response"]

Body = TypeVar("Body")
JSON, PROBLEM = "application/json", "application/problem+json"
encode = msgspec.json.Encoder().encode


def json_response(content: object, status: int = 200, kind: str = JSON) -> Response:
    """Encode plain data or structs as an answer."""
    return Response(encode(content), status, media_type=kind)


def refusal_response(refusal: Refusal, more: Mapping[str, object] | None = None) -> Response:
    """Return a refusal as an answer, with `more` in its body."""
    content = refusal.problem if more is None else {**more, **msgspec.to_builtins(refusal.problem)}
    response = json_response(content, refusal.status, PROBLEM)
    if refusal.retry_after is not None:
        response.headers["retry-after"] = str(max(1, math.ceil(refusal.retry_after)))
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        response.headers["www-authenticate"] = "Bearer"
    return response


@dataclass(slots=True)
class Call(Generic[Body]):
    """An admitted request: the argument of every handler."""

    app: App
    request: Request
    headers: Mapping[bytes, bytes]
    key: Key | None
    body: Body

    @property
    def service(self) -> Service:
        """The service behind the application."""
        return self.app.service

    @property
    def model(self) -> ServedModel:
        """The model that the path names."""
        return self.app.service.model(self.request.path_params["model"])

    def require_learn(self, what: str) -> None:
        """Refuse what is stored, or changes what is learned, if the key only allows predictions."""
        if self.key is not None and "learn" not in self.key.scopes:
            raise Refusal(403, f"{what}, and the key {self.key.name!r} does not allow 'learn'")


class Operation:
    """One method of one path. Its name, types and description are those of the handler.

    Parameters
    ----------
    method, path : where it is served.
    handler : takes a `Call` of the type of the body, and the parameters of the query by keyword; returns a struct for
        JSON, a response, or None.
    scope : what a key must allow; "" for everybody.
    refuses : statuses beyond those that every operation may give.
    status, kind : of an answer that is a success.
    takes : media type of a body that the handler reads itself.
    cost : in trials, against the rate of a key; None for the number of trials in the body.
    """

    def __init__(
        self,
        method: str,
        path: str,
        handler: Callable[..., Awaitable[object]],
        scope: str = "",
        refuses: tuple[int, ...] = (),
        *,
        status: int = 200,
        kind: str = JSON,
        takes: str = "",
        cost: int | None = 1,
    ) -> None:
        self.method, self.path, self.handler, self.scope = method, path, handler, scope
        self.refuses, self.status, self.kind, self.takes, self.cost = refuses, status, kind, takes, cost
        self.name = re.sub(r"_(\w)", lambda match: match[1].upper(), handler.__name__)
        self.summary = (handler.__doc__ or "").partition("\n")[0].rstrip(".")
        hints = get_type_hints(handler, include_extras=True)
        body = get_args(next(iter(hints.values())))[0]
        self.body = None if body is type(None) else body
        self.reader = None if self.body is None else BodyReader(body)
        returned = hints["return"]
        kinds = get_args(returned) if get_origin(returned) in (Union, UnionType) else (returned,)
        self.returns = next((kind for kind in kinds if kind not in (Response, type(None))), None)
        parameters = inspect.signature(handler).parameters.values()
        self.query = {p.name: (hints[p.name], p.default) for p in parameters if p.kind is p.KEYWORD_ONLY}

    def parameters(self, request: Request) -> dict[str, object]:
        """Return the parameters of the query, or raise a 422 that names one."""
        for name in request.query_params:
            if name not in self.query:
                known = ", ".join(self.query) or "none"
                raise Refusal(422, f"there is no parameter {name[:40]!r}; there are: {known}", field=name[:40])
        found = {}
        for name, (form, _) in self.query.items():
            if (text := request.query_params.get(name)) is not None:
                try:
                    found[name] = msgspec.convert(text, form, strict=False)
                except msgspec.ValidationError as error:
                    raise Refusal(422, f"{name}: {error}: {text[:40]!r}", field=name) from None
        return found

    async def __call__(self, call: Call[object]) -> Response:
        """Answer an admitted request."""
        found = await self.handler(
            call, **(self.parameters(call.request) if call.request.scope["query_string"] else {})
        )
        if isinstance(found, Response):
            return found
        return Response(status_code=204) if found is None else json_response(found, self.status)
