"""How the service refuses: one exception with its HTTP status, and one form of error body."""

from __future__ import annotations

from typing import Any

__all__ = ["Refusal"]


class Refusal(Exception):
    """A request that is not granted: status, reason, the field at fault, and when to try again.

    Examples
    --------
    >>> Refusal(404, "no model is called 'spam'").body()
    {'error': {'status': 404, 'message': "no model is called 'spam'"}}
    """

    def __init__(
        self, status: int, message: str, *, field: str | None = None, retry_after: float | None = None, **details: Any
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.field = field
        self.retry_after = retry_after
        self.details = details

    def body(self) -> dict[str, Any]:
        """The JSON body; `field` is there when one field is at fault."""
        error: dict[str, Any] = {"status": self.status, "message": self.message}
        if self.field is not None:
            error["field"] = self.field
        return {"error": error | self.details}
