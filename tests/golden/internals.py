"""The one place where the cases reach what is not public; a module that moves is followed here."""

from __future__ import annotations

from typing import Any

from linmax.streams import StreamModel


def progressive(model: StreamModel, **options: Any) -> Any:
    """Progressive validation, as ``linmax learn`` does it."""
    from linmax.models.streams.progressive import Progressive

    return Progressive(model, **options)


def served(description: dict[str, Any]) -> Any:
    """A model of the service, without log and server."""
    from linmax.service.log import ModelRow
    from linmax.service.model import ServedModel as Served

    return Served(ModelRow(1, "golden", description, 0))


def events() -> tuple[Any, int, int, int, int]:
    """The class of what the service's log holds, and its kinds: predict, label, learn, forget."""
    from linmax.service.log import FORGET, LABEL, LEARN, PREDICT, Event

    return Event, PREDICT, LABEL, LEARN, FORGET


def log(path: Any) -> Any:
    """A log of the service in a file."""
    from linmax.service.log import EventLog

    return EventLog(path)


def body(**content: Any) -> Any:
    """The content of an event in the service's log."""
    from linmax.service.log import Body

    return Body(**content)


def served_again(row: Any) -> Any:
    """A model of the service from its row in a log."""
    from linmax.service.model import ServedModel as Served

    return Served(row)


def replay(model: Any, book: Any, note: Any) -> int:
    """The events of a log, taken in by a model of the service."""
    from linmax.service.replay import replay as replayed

    return replayed(model, book, note)
