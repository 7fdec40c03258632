"""Attributes as River's users give them: numbers, words and None by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["NUMBER_CLASSES", "categories", "is_word", "ordered", "rows_of"]

NUMBER_CLASSES = {float, int, bool}  # types of numbers


def is_word(value: Any) -> bool:
    """Whether a value is a category."""
    return value is None or isinstance(value, str)


def categories(x: dict[Any, Any]) -> dict[Any, Any]:
    """Words and None as attributes of their own, 1 where they are.

    Examples
    --------
    >>> categories({"size": 2.5, "colour": "red", "maker": None})
    {'size': 2.5, 'colour=red': 1.0, 'maker=None': 1.0}
    """
    return {
        **{name: value for name, value in x.items() if not is_word(value)},
        **{f"{name}={value}": 1.0 for name, value in x.items() if is_word(value)},
    }


def ordered(names: Iterable[Any]) -> list[Any]:
    """Sorted, by what they look like when they are of several kinds."""
    try:
        return sorted(names)
    except TypeError:
        return sorted(names, key=repr)


def rows_of(table: Any) -> list[dict[Any, Any]]:
    """The rows of a pandas table, which River's interface has."""
    if not hasattr(table, "index") or not hasattr(table, "to_dict"):
        kind = f"{type(table).__module__.split('.')[0]}.{type(table).__name__}"
        raise TypeError(
            f"X must be a pandas DataFrame, as in River, got {kind}; try pandas.DataFrame(X) or X.to_pandas()"
        )
    return list(table.to_dict("records"))
