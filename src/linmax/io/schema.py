"""Columns of tables: which is the label, which hold numbers, categories or texts, and which are left out.

Without a label column by name, the first of ``label target class y`` is taken, else the last column; never one that
only numbers the rows, as pandas writes its index. Dates and times are left out: as categories they say nothing about
rows to come. Notes name what was chosen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from linmax.io.read_options import ReadOptions

__all__ = [
    "LABEL_NAMES",
    "MISSING",
    "TRUTH_NAMES",
    "Schema",
    "cell_type",
    "dense_columns",
    "is_number",
    "label_of",
    "named_columns",
    "plain_name",
    "refuse_other_columns",
    "refuse_repeated",
    "schema_of",
]

TYPE_SAMPLE = 100  # rows that decide the types of the columns
MISSING = ("", "na", "nan", "null", "none", "?")  # fields that mean a missing number, in lower case
TRUTH = ("false", "true")  # words that mean 0 and 1, in lower case
LABEL_NAMES = ("label", "target", "class", "y")  # names of the label, in the order of preference
# Names of the label of a table of votes, in the order of preference
TRUTH_NAMES = (
    *(
        "label",
        "truth",
        "gold",
        "ground_truth",
        "target",
        "correct",
        "answer",
        "expected",
        "reference",
        "ideal",
        "class",
    ),
    *("y", "true_label", "gold_label", "correct_label", "correct_answer", "right_answer", "gold_answer", "true_answer"),
    *("right", "truth_label", "true_class", "solution", "y_true", "answer_key", "gt"),
)
INDEX = re.compile(r"unnamed: \d+|__index_level_\d+__|__null_dask_index__|level_0", re.IGNORECASE)
DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([T ]\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?)?"
    r"( ?(Z|UTC|[+-]\d{2}:?\d{2}))?|\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?"
)
TRIMMINGS = str.maketrans("", "", ",'_%$€£¥ \u00a0\u202f")  # of numbers that are written for readers
SHARE_OF_NUMBERS = 0.8  # share of the values that must be numbers; the others are categories within the column
NUMBER, CATEGORY = "number", "category"
DATES = "dates or times"
TEXT_WORDS = 4  # in a value, on average: it is a text rather than a category
COLUMNS_SHOWN = 8  # columns that a note names


@dataclass(frozen=True)
class Schema:
    """The kind of each column (label, id, weight, ignored, number, category, text), and what there is to say of it."""

    kinds: list[str]
    notes: list[str] = field(default_factory=list)


def cell_type(cells: Sequence[str]) -> str:
    """The type of a column of text from values that are not missing: a number, a category, or why it is left out.

    Examples
    --------
    >>> cell_type(["1", "2.5"]), cell_type(["red", "2"]), cell_type(["2024-02-29", "2024-03-01"])
    ('number', 'category', 'dates or times')
    """
    if sum(is_number(cell) or cell.lower() in TRUTH for cell in cells) >= SHARE_OF_NUMBERS * len(cells):
        return NUMBER
    return words_type(cells)


def words_type(cells: Sequence[object]) -> str:
    """The type of a column of words: categories, or dates, which are left out."""
    met = [cell for cell in cells if cell != ""]
    return DATES if met and all(isinstance(cell, str) and DATE.fullmatch(cell) for cell in met) else CATEGORY


def is_number(text: str) -> bool:
    """Return whether a field is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def schema_of(name: str, header: Sequence[str], type_of: Callable[[str], str], options: ReadOptions) -> Schema:
    """The kinds of the columns; from the model, if there is one."""
    if options.known:
        return Schema(_known_kinds(name, header, options))
    wanted = [options.label, options.id, options.weight, *options.ignore, *options.categorical, *options.text]
    for column in wanted:
        if column is not None and column not in header:
            raise ValueError(f"{name} has no column {column!r}; it has {', '.join(header)}")
    types = {column: _type(column, type_of, options) for column in header}
    label = options.label if options.label is not None else _chosen_label(header, types, options)
    kinds, reasons = [], {}
    for column in header:
        kind = types[column]
        if column == label:
            kind = "label"
        elif kind not in ("id", "weight", "ignored", "text", NUMBER, CATEGORY):
            reasons[column], kind = kind, "ignored"
        kinds.append(kind)
    if not {NUMBER, CATEGORY, "text"} & set(kinds):
        others = [f"{column!r} is {types[column]}" for column in header if column != label]
        message = "; ".join(others) or "there is no other; is the delimiter right?"
        raise ValueError(f"{name} has no column to learn from: {label!r} is the label; {message}")
    return Schema(kinds, _notes(header, kinds, label, reasons, options))


def _type(column: str, type_of: Callable[[str], str], options: ReadOptions) -> str:
    """Return the kind of a column by the options, else by its name or its values."""
    if column in options.ignore:
        return "ignored"
    if column == options.id:
        return "id"
    if column == options.weight:
        return "weight"
    if column in options.text:
        return "text"
    if column in options.categorical:
        return CATEGORY
    return "the numbers of rows" if INDEX.fullmatch(column) else type_of(column)


def label_of(columns: Iterable[str], given: str | None = None, names: Sequence[str] = LABEL_NAMES) -> str | None:
    """Name of the column with the labels: the given one, else the first of these names however written, else None.

    Examples
    --------
    >>> label_of(["x", "Class", "y"]), label_of(["x", "Class"], given="x"), label_of(["x"])
    ('Class', 'x', None)
    >>> label_of(["ann", "Ground Truth"], names=TRUTH_NAMES)
    'Ground Truth'
    """
    if given is not None:
        return given
    plain = {plain_name(column): column for column in reversed([*columns])}
    return next((plain[name] for name in names if name in plain), None)


def plain_name(column: str) -> str:
    """A name in lower case, with words joined by underscores."""
    return re.sub(r"[\s.\-]+", "_", column.strip()).lower()


def _chosen_label(header: Sequence[str], types: Mapping[str, str], options: ReadOptions) -> str:
    open_to_choice = [c for c in header if c not in options.text and types[c] not in ("ignored", "id", "weight")]
    if (label := label_of(open_to_choice)) is not None:
        return label
    usual = [column for column in open_to_choice if types[column] in (NUMBER, CATEGORY)]
    return [*(open_to_choice or header), *usual][-1]


def _notes(
    header: Sequence[str], kinds: Sequence[str], label: str, reasons: Mapping[str, str], options: ReadOptions
) -> list[str]:
    counted = {"number": "number", "category": "category", "text": "text"}
    plural = {"number": "numbers", "category": "categories", "text": "texts"}
    parts = []
    for kind in counted:
        many = sum(one == kind for one in kinds)
        if many:
            parts.append(f"{many} {counted[kind] if many == 1 else plural[kind]}")
    why = "" if options.label is not None else " (the last one)" if label == header[-1] else " (by its name)"
    notes = [f"The label is {label!r}{why}; columns: {', '.join(parts)}."]
    if options.weight is not None:
        notes.append(f"Rows count as much as {options.weight!r} says.")
    of = {reason: [column for column, one in reasons.items() if one == reason] for reason in reasons.values()}
    return notes + [ignored_note(reason, columns) for reason, columns in of.items()]


def ignored_note(reason: str, columns: Sequence[str]) -> str:
    """Return the note about columns that are left out."""
    more = f" and {len(columns) - COLUMNS_SHOWN} more" if len(columns) > COLUMNS_SHOWN else ""
    return f"Ignored, being {reason}: {', '.join(map(repr, columns[:COLUMNS_SHOWN]))}{more}."


def text_note(header: Sequence[str], kinds: Sequence[str], cells: Mapping[str, Sequence[str]]) -> list[str]:
    """Return notes about categories that look like texts."""
    notes = []
    for column, kind in zip(header, kinds, strict=True):
        found = cells.get(column, [])
        if kind == CATEGORY and found and sum(len(cell.split()) for cell in found) >= TEXT_WORDS * len(found):
            notes.append(f"The values of {column!r} look like texts; --text {column} takes their words.")
    return notes


def number_note(kinds: Mapping[str, str], cells: Mapping[str, Sequence[object]]) -> list[str]:
    """Return notes about categories that look like numbers.

    Examples
    --------
    >>> number_note({"price": "category"}, {"price": ["1,250", "980.5"]})[0].partition("; ")[0]
    "The values of 'price', such as '1,250', are taken for categories"
    """
    notes = []
    for column in (column for column, kind in kinds.items() if kind == CATEGORY):
        found = [cell for cell in cells.get(column, []) if cell != ""]
        like = [cell for cell in found if isinstance(cell, str) and is_number(cell.translate(TRIMMINGS))]
        if like and len(like) >= SHARE_OF_NUMBERS * len(found):
            shown = next((cell for cell in like if not is_number(cell)), like[0])
            remedy = "give them as numbers, not as text" if is_number(shown) else "write them plainly (1234.5)"
            message = f"The values of {column!r}, such as {shown!r}, are taken for categories"
            notes.append(f"{message}; if they are numbers, {remedy}.")
    return notes


def _known_kinds(name: str, header: Sequence[str], options: ReadOptions) -> list[str]:
    """The kinds of columns that a model has learned from; others are ignored, and the label may be absent."""
    known, label = options.known or {}, options.label
    if label is not None and known.get(label) != "label":
        theirs = next((column for column, kind in known.items() if kind == "label"), None)
        raise ValueError(f"the model has learned the column {theirs!r}, not {label!r}")
    if options.id is not None and options.id not in header:
        raise ValueError(f"{name} has no column {options.id!r}; it has {', '.join(header)}")
    wanted = (NUMBER, CATEGORY, "text")
    weight = None if options.unlabelled else options.weight  # rows that are only predicted need none
    if weight is not None and (weight not in header or known.get(weight) in wanted):
        message = "which the model learned from" if weight in header else f"it has {', '.join(header)}"
        raise ValueError(f"{name} has no column {weight!r} for weights; {message}")
    absent = [column for column, kind in known.items() if kind in wanted and column not in header]
    if absent:
        raise ValueError(
            f"{name} has no column {absent[0]!r}, which the model learned from; it has {', '.join(header)}"
        )
    kinds = ["ignored" if (kind := known.get(column, "ignored")) == "weight" else kind for column in header]
    own = {options.id: "id", weight: "weight"}  # the id may be a column that the model learned from, or the label
    return [own.get(column, kind) if kind == "ignored" else kind for column, kind in zip(header, kinds, strict=True)]


def dense_columns(header: Sequence[str], kinds: Sequence[str], known: Mapping[str, str] | None) -> tuple[str, ...]:
    """The columns of numbers, in the order in which a model has them."""
    order = known.items() if known else zip(header, kinds, strict=True)
    return tuple(column for column, kind in order if kind == NUMBER)


def named_columns(header: Sequence[str]) -> list[str]:
    """The columns with names for those that have none, as pandas gives them."""
    return [column.strip() or f"Unnamed: {place}" for place, column in enumerate(header)]


def refuse_repeated(name: str, header: Sequence[str]) -> None:
    """Refuse columns with the same name."""
    last = {column: place for place, column in enumerate(header)}
    repeated = next((column for place, column in enumerate(header) if last[column] != place), None)
    if repeated is not None:
        raise ValueError(f"{name} has two columns {repeated!r}; rename one")


def refuse_other_columns(name: str, found: Sequence[str], header: Sequence[str]) -> None:
    """Raise because a table has other columns than those before it."""
    shown, wanted = (", ".join(columns[:5]) for columns in (found, header))
    raise ValueError(f"{name} has other columns than the data before it: {shown} ..., not {wanted} ...")
