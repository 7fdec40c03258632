"""OpenAPI 3.1, generated from the operations and from the types that the service checks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from linmax import __version__
from linmax.service.operations import JSON, PROBLEM
from linmax.service.schemas import Problem

if TYPE_CHECKING:
    from linmax.service.operations import Operation

__all__ = ["describe"]

Described = dict[str, Any]  # JSON
MEANINGS = {
    200: "It exists already",
    202: "Not yet done; ask again after Retry-After seconds",
    207: "Some items succeeded; each result has its own status",
    400: "Malformed HTTP",
    401: "No valid key",
    403: "The key does not allow this",
    404: "There is no such model or id",
    405: "The method is not allowed for this path",
    409: "The id or the name is in use for something else",
    413: "The body is too large",
    415: "The body is not declared as JSON",
    422: "The body or a parameter is wrong; `field` names it",
    428: "Repeat the request with the word in `confirm`",
    429: "Too many; try again after Retry-After seconds",
    500: "The server failed",
    503: "Not now; try again after Retry-After seconds",
    507: "The disk is full: nothing was stored",
}
RETRY = {"Retry-After": {"schema": {"type": "integer", "minimum": 1}, "description": "seconds"}}


def describe(operations: Sequence[Operation]) -> Described:
    """Return the whole description."""
    forms = [form for operation in operations for form in (operation.body, operation.returns) if form] + [Problem]
    schemas, components = msgspec.json.schema_components(forms, ref_template="#/components/schemas/{name}")
    named = dict(zip(map(id, forms), schemas, strict=True))
    paths: dict[str, Described] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, named)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "linmax serve",
            "version": __version__,
            "description": "Online learning that loses nothing: 200 means stored on stable storage and applied.",
        },
        "paths": paths,
        "components": {
            "schemas": _ecma(components),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "linmax serve keys add"}},
        },
    }


def _operation(operation: Operation, schemas: dict[int, Described]) -> Described:
    def content(form: object, kind: str = "application/json") -> Described:
        return {kind: {"schema": {"type": "string"} if form is None else schemas[id(form)]}}

    success: Described = {"description": operation.summary}
    if operation.status != HTTPStatus.NO_CONTENT:
        success["content"] = content(operation.returns, operation.kind)
    if operation.name == "predict":
        links = {"id": "$response.body#/id", "label": "$response.body#/label"}
        model = {"model": "$request.path.model"}
        success["links"] = {"label": {"operationId": "label", "parameters": model, "requestBody": links}}
    responses = {str(operation.status): success}
    statuses = {403, 500, *operation.refuses} | ({401} if operation.scope else set())
    statuses |= {413, 415, 422} if operation.reader is not None else {422}
    for status in sorted(statuses):
        form, kind = (operation.returns, JSON) if status < HTTPStatus.MULTIPLE_CHOICES else (Problem, PROBLEM)
        responses[str(status)] = {"description": MEANINGS[status], "content": content(form, kind)}
        if status in (202, 429, 503):
            responses[str(status)]["headers"] = RETRY
    text = {"type": "string", "minLength": 1}
    parameters: list[Described] = [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    for name, (form, default) in operation.query.items():
        schema = msgspec.json.schema(form) | ({} if default is None else {"default": default})
        parameters.append({"name": name, "in": "query", "schema": schema})
    described: Described = {"operationId": operation.name, "summary": operation.summary, "responses": responses}
    described["security"] = [{"key": []}, {}] if operation.scope else []
    if operation.scope:
        described["description"] = f"Requires a key that allows {operation.scope!r}, when there are keys."
    if parameters:
        described["parameters"] = parameters
    if operation.reader is not None:
        described["requestBody"] = {"required": True, "content": content(operation.body)}
    elif operation.takes:
        described["requestBody"] = {"required": True, "content": content(None, operation.takes)}
    return described


def _ecma(schemas: Any) -> Any:
    """Return schemas with Python's anchors as those of ECMA-262, which JSON Schema takes."""
    if isinstance(schemas, dict):
        found = {name: _ecma(value) for name, value in schemas.items()}
        if isinstance(pattern := found.get("pattern"), str):
            found["pattern"] = re.sub(r"\\Z$", "$", re.sub(r"^\\A", "^", pattern))
        return found
    return [_ecma(item) for item in schemas] if isinstance(schemas, list) else schemas
