"""Reading the body of a request: by its type, or a refusal that names the field."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec
from msgspec import Struct

from linmax.service.bodies import ID, MODEL_NAME
from linmax.service.refusals import Refusal

__all__ = ["BodyReader"]

NAMED_FIELD = re.compile(r"(?:unknown|required) field `(\w+)`")
ANY_NAME, NAME_ITSELF = "[...]", "key` in `"  # how msgspec calls a value, and a name, of an object with free names
PATH_STEP = re.compile(r"\w+|\[\d+\]|\[\.\.\.\]")
GOT = re.compile(r"got `(\w+)`")
JSON_TYPES = {"str": str, "int": int, "float": float, "bool": bool, "null": type(None), "array": list, "object": dict}
MOST_SHOWN = 100


class BodyReader:
    """Reads bodies of one type.

    Parameters
    ----------
    form : a struct, or one whose only field is a list of structs.
    """

    def __init__(self, form: type[Struct]) -> None:
        self._decoder = msgspec.json.Decoder(form)

    def read(self, body: bytes | bytearray) -> Any:
        """The body as its type, or a 422 that names the field."""
        try:
            return self._decoder.decode(body)
        except msgspec.ValidationError as error:
            raise _not_of_this_type(error, body) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Refusal(422, f"the body is not JSON: {error}", field="body") from None


def _loaded(body: bytes | bytearray) -> Any:
    """What a body holds; None if it is not JSON behind the place where reading it by its type has stopped."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _blamed(value: Any, steps: list[str], message: str) -> tuple[str, Any] | None:
    """The path of the value that a message is about, where msgspec says no more than [...], and the value."""
    if not steps:
        got = GOT.search(message)
        kind = JSON_TYPES.get(got[1]) if got else None
        return ("", value) if (type(value) is kind if kind else value in (math.inf, -math.inf)) else None
    step, *rest = steps
    ways: list[tuple[str, Any]] = []
    if step == ANY_NAME:
        ways = [(f"[{name[:MOST_SHOWN]!r}]", one) for name, one in value.items()] if isinstance(value, dict) else []
        ways += [(f"[{i}]", one) for i, one in enumerate(value)] if isinstance(value, list) else []
    elif step.startswith("[") and isinstance(value, list):
        ways = [(step, value[int(step[1:-1])])]
    elif isinstance(value, dict):
        ways = [(f".{step}", value[step])]
    for way, one in ways:
        if found := _blamed(one, rest, message):
            return way + found[0], found[1]
    return None


def _not_of_this_type(error: msgspec.ValidationError, body: bytes | bytearray) -> Refusal:
    message, _, place = str(error).partition(" - at `")
    named = NAMED_FIELD.search(message)
    name_itself = place.startswith(NAME_ITSELF)
    field = place.removeprefix(NAME_ITSELF).rstrip("`").removeprefix("$").removeprefix(".")
    if name_itself:
        message = f"a name in it: {message}"
    elif ANY_NAME in field and (found := _blamed(_loaded(body), PATH_STEP.findall(field), message)):
        path, value = found
        field = path.removeprefix(".")
        message += f": {json.dumps(value)[:MOST_SHOWN]}"
        if isinstance(value, str) and ".attributes[" in path:
            name = path.rpartition("[")[2][1:-2]
            message += (
                f"; attributes are numbers: write a category as {json.dumps({f'{name}={value}'[:MOST_SHOWN]: 1})}"
            )
    if named:
        field = f"{field}.{named[1]}".removeprefix(".")
    field = field or "body"
    for form in (ID, MODEL_NAME):
        if f"matching regex {form.pattern!r}" in message:
            message = f"must be made of {form.description}"
    return Refusal(422, f"{field}: {message}", field=field)
