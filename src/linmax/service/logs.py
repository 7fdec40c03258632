"""Logs as lines of JSON on standard error: time, level, message, and the extra fields of a record."""

from __future__ import annotations

import json
import logging
import time

__all__ = ["JsonFormatter", "set_up"]

STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}


class JsonFormatter(logging.Formatter):
    """One JSON object for each record.

    Examples
    --------
    >>> record = logging.makeLogRecord({"msg": "ready", "created": 0.0, "levelname": "INFO", "models": 2})
    >>> JsonFormatter().format(record)
    '{"time": "1970-01-01T00:00:00.000Z", "level": "info", "message": "ready", "models": 2}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{seconds}.{int(record.created * 1000) % 1000:03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in STANDARD_FIELDS}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def set_up() -> None:
    """Send the service's records, and uvicorn's errors, to standard error as lines."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    for name, level in (("linmax", logging.INFO), ("uvicorn", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
