"""Columns of tables: which is the label, which hold numbers, which categories, and which are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from linmax.io.options import ReadOptions

__all__ = ["MISSING", "column_kinds", "dense_columns", "refuse_repeated"]

MISSING = ("", "na", "nan", "null", "none", "?")  # fields that mean a missing number, in lower case


def column_kinds(
    name: str, header: Sequence[str], is_numeric: Callable[[str], bool], options: ReadOptions
) -> list[str]:
    """The kind of each column: label, ignored, number or category; from the model, if there is one."""
    if options.known:
        return _known_kinds(name, header, options.known, options.label)
    label = options.label if options.label is not None else header[-1]
    for column in [label, *options.ignore, *options.categorical]:
        if column not in header:
            raise ValueError(f"{name} has no column {column!r}; it has {', '.join(header)}")
    kinds = []
    for column in header:
        if column == label:
            kinds.append("label")
        elif column in options.ignore:
            kinds.append("ignored")
        elif column in options.categorical or not is_numeric(column):
            kinds.append("category")
        else:
            kinds.append("number")
    return kinds


def _known_kinds(name: str, header: Sequence[str], known: Mapping[str, str], label: str | None) -> list[str]:
    """The kinds of columns that a model has learned from; others are ignored, and the label may be absent."""
    if label is not None and known.get(label) != "label":
        theirs = next((column for column, kind in known.items() if kind == "label"), None)
        raise ValueError(f"the model has learned the column {theirs!r}, not {label!r}")
    absent = [column for column, kind in known.items() if kind in ("number", "category") and column not in header]
    if absent:
        raise ValueError(
            f"{name} has no column {absent[0]!r}, which the model learned from; it has {', '.join(header)}"
        )
    return [known.get(column, "ignored") for column in header]


def dense_columns(header: Sequence[str], kinds: Sequence[str], known: Mapping[str, str] | None) -> tuple[str, ...]:
    """The columns of numbers, in the order in which a model has them."""
    order = known.items() if known else zip(header, kinds, strict=True)
    return tuple(column for column, kind in order if kind == "number")


def refuse_repeated(name: str, header: Sequence[str]) -> None:
    """Refuse columns with the same name."""
    repeated = next((column for i, column in enumerate(header) if column in header[:i]), None)
    if repeated is not None:
        raise ValueError(f"{name} has two columns {repeated!r}; rename one")
