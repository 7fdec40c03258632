"""OpenAPI 3.1, generated from the table of operations and from the types that the service checks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from linmax import __version__
from linmax.service import bodies

if TYPE_CHECKING:
    from linmax.service.messages import Operation

__all__ = ["describe"]

MEANINGS = {
    207: "Some items succeeded; each result says for itself",
    400: "Not HTTP as it should be",
    401: "No valid key",
    403: "The key does not allow this",
    404: "There is no such model or id",
    405: "Not for this address",
    409: "The id or the name is in use for something else",
    413: "The body is too large",
    415: "The body is not declared as JSON",
    422: "The body or a parameter is wrong; `field` says where",
    428: "Ask again with the word in `confirm`",
    429: "Too many; try again after Retry-After seconds",
    500: "The server failed",
    503: "Not now; try again after Retry-After seconds",
    507: "The disk is full: nothing was stored",
}
PATH_PARAMETERS: dict[str, dict[str, Any]] = {
    "model": {"type": "string", "minLength": 1},
    "id": {"type": "string", "minLength": 1},
    "name": {"type": "string", "minLength": 1},
}
RETRY = {"Retry-After": {"schema": {"type": "integer", "minimum": 1}, "description": "seconds"}}


def describe(operations: Sequence[Operation]) -> dict[str, Any]:
    """The whole description."""
    types = [kind for operation in operations for kind in (operation.body, operation.returns) if kind is not None]
    structures = [*types, bodies.Error]
    schemas, components = msgspec.json.schema_components(structures, ref_template="#/components/schemas/{name}")
    named = dict(zip(map(id, structures), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, named)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "linmax serve",
            "version": __version__,
            "description": "On-line learning that loses nothing: 200 means stored on stable storage and applied.",
        },
        "paths": paths,
        "components": {
            "schemas": _plain(components),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "linmax serve keys add"}},
        },
    }


def _operation(operation: Operation, schemas: dict[int, Any]) -> dict[str, Any]:
    error = {"application/json": {"schema": schemas[id(bodies.Error)]}}
    told: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {str(operation.status): _success(operation, schemas)},
        "security": [{"key": []}, {}] if operation.scope else [],
    }
    if operation.scope:
        told["description"] = f"Needs a key that allows {operation.scope!r}, when there are keys."
    statuses = {403, 500, *operation.refuses}
    statuses |= {401} if operation.scope else set()
    statuses |= {413, 415, 422} if operation.body is not None else set()
    statuses |= {422} if operation.query else set()
    for status in sorted(statuses):
        answer: dict[str, Any] = {"description": MEANINGS[status], "content": error}
        if status == HTTPStatus.MULTI_STATUS:
            answer["content"] = {"application/json": {"schema": schemas[id(operation.returns)]}}
        if status in (429, 503):
            answer["headers"] = RETRY
        told["responses"][str(status)] = answer
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": PATH_PARAMETERS[name]}
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    parameters += [
        {"name": name, "in": "query", "schema": schema, "description": meaning}
        for name, schema, meaning in operation.query
    ]
    if parameters:
        told["parameters"] = parameters
    if operation.body is not None:
        content = {"application/json": {"schema": schemas[id(operation.body)]}}
        told["requestBody"] = {"required": True, "content": content}
    return told


def _success(operation: Operation, schemas: dict[int, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": operation.summary}
    if operation.status != HTTPStatus.NO_CONTENT:
        schema = schemas[id(operation.returns)] if operation.returns is not None else {"type": "string"}
        answer["content"] = {operation.kind: {"schema": schema}}
    if operation.name == "predict":
        answer["links"] = {
            "label": {
                "operationId": "label",
                "parameters": {"model": "$request.path.model"},
                "requestBody": {"id": "$response.body#/id", "label": "$response.body#/label"},
            }
        }
    return answer


def _plain(schemas: dict[str, Any]) -> dict[str, Any]:
    """Python's anchors as those of ECMA-262, which JSON Schema takes."""
    if isinstance(schemas, dict):
        return {name: _pattern(value) if name == "pattern" else _plain(value) for name, value in schemas.items()}
    if isinstance(schemas, list):
        return [_plain(item) for item in schemas]
    return schemas


def _pattern(value: Any) -> Any:
    return re.sub(r"\\Z$", "$", re.sub(r"^\\A", "^", value)) if isinstance(value, str) else _plain(value)
