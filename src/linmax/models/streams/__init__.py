"""Streams: from files, pipes and frames to batches of instances, in bounded memory and at the speed of compiled code.

`stream` reads svmlight, Vowpal Wabbit's text, tables, JSON lines, labelled texts, Parquet and Arrow, packed or not;
`StreamModel` learns from what it yields, with names, scaling and weights in one file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from linmax.data.features import checked_pairs
from linmax.io.batch import Batch, Classes, ahead
from linmax.io.delimited import named_delimiter
from linmax.io.formats import FORMATS, register_format
from linmax.io.pairing import PAIRED_BATCH_ROWS, Pairing
from linmax.io.read_options import BATCH_ROWS, Position, ReadOptions, Refusals
from linmax.io.reader import StreamReader
from linmax.io.sources import LinesAsFile, refuse_unreadable
from linmax.io.typed_tables import Frames, is_table
from linmax.io.vocabulary import Vocabulary
from linmax.models.streams.stream_model import StreamModel
from linmax.util.aliases import Source
from linmax.util.checks import boolean, one_of, whole

__all__ = ["FORMATS", "Batch", "Position", "Refusals", "Stream", "StreamModel", "register_format", "stream"]


class Stream:
    """Batches of a stream, to be gone through once. Made by `stream`.

    Attributes
    ----------
    refusals : Refusals
        Lines that could not be read so far.

    See Also
    --------
    linmax.stream : makes it.

    Examples
    --------
    >>> import linmax
    >>> lines = linmax.stream(["ham |w hello friend", "spam |w buy now"])
    >>> [len(batch.codes) for batch in lines], lines.refusals.counts
    ([2], {})
    """

    def __init__(self, reader: StreamReader, prefetch: bool, pairing: Pairing | None = None) -> None:
        self._reader, self._prefetch, self._pairing = reader, prefetch, pairing

    def __iter__(self) -> Iterator[Batch]:
        """The batches, read by another thread while one is worked on, unless that was declined."""
        rows = iter(self._reader) if self._pairing is None else self._pairing.batches(iter(self._reader))
        return ahead(rows) if self._prefetch else rows

    @property
    def refusals(self) -> Refusals:
        """Lines that could not be read."""
        return self._reader.refusals

    @property
    def classes(self) -> list[str]:
        """Classes met, in the order of their labels."""
        return self._reader.classes.names

    @property
    def vocabulary(self) -> Vocabulary:
        """Names of the sparse attributes."""
        return self._reader.vocabulary

    @property
    def notes(self) -> list[str]:
        """Findings about the input: the label, columns that are left out and why."""
        return self._reader.notes

    def remarks(self) -> list[str]:
        """Remarks collected while reading: columns of numbers with words in them, pairs without any instance."""
        return [*self._reader.remarks(), *([] if self._pairing is None else self._pairing.remarks())]

    @property
    def format(self) -> str | None:
        """The format, once it is known."""
        return self._reader.kind


def stream(
    source: Source,
    *,
    format: str | None = None,
    label: str | None = None,
    weight: str | None = None,
    ignore: Sequence[str] = (),
    categorical: Sequence[str] = (),
    text: Sequence[str] = (),
    id: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    ngrams: int | None = None,
    pairs: Sequence[str] = (),
    hash_bits: int | None = None,
    rows: int = BATCH_ROWS,
    strict: bool = False,
    model: StreamModel | None = None,
    grow: bool = True,
    prefetch: bool = True,
    position: Position | None = None,
    settled: dict[str, Any] | None = None,
) -> Stream:
    """Read a stream batch by batch.

    Parameters
    ----------
    source
        A path ("-" is standard input), a list of `pathlib.Path`, an open binary file, an iterable of lines, a pandas
        or polars frame, an Arrow table or batch, arrays (X, y) as of ``load_svmlight_file`` or (X, y, weights), or an
        iterable of these.
    format
        One of `FORMATS`: svmlight, vw, text, csv, tsv, parquet, arrow, jsonl, and what `register_format` has added;
        else it is recognized by the file's ending and content.
    label, weight, ignore, categorical, text, id
        Columns of a table, or keys of JSON lines: the label (if not given, the first of ``label target class y``, else
        the last column), how much a row counts, those to leave out, those whose numbers
        are categories, those whose words are attributes, and one that becomes the ``tags`` of a batch.
    delimiter, header
        What separates the fields of a table, recognized if not given, and whether its first line names the columns;
        if not, they are called 1, 2, ...
    ngrams
        Longest run of words of a text that is an attribute (1).
    pairs
        Products of attributes that are attributes as well: ``["a:b"]`` for each of a with each of b, where a and b are
        namespaces, columns, keys or attributes, or ``["all"]``. That of x and y is called ``x*y``.
    hash_bits
        Hash names to 2^bits columns; else they are numbered as they come, and kept.
    rows
        Most rows of a batch.
    strict
        Raise at the first line that cannot be read, instead of counting it in ``refusals``.
    model
        Number names and classes as this `StreamModel` does, and read as the data were read that it has learned from,
        where the arguments say nothing else.
    grow
        Whether names that were not met before get a column; else they are left out, and rows need no label.
    prefetch
        Read ahead in another thread.
    position, settled
        Where to begin: the ``position`` and ``settled`` of the last batch.

    Returns
    -------
    Stream
        Batches, to be gone through once.

    See Also
    --------
    linmax.StreamModel : learns from them.

    Examples
    --------
    >>> import linmax
    >>> lines = ["1 3:0.5 7:1", "2 7:2", "no good"]
    >>> rows = linmax.stream(lines)
    >>> for batch in rows:
    ...     trace = linmax.run("perceptron", batch.instances, batch.labels)
    >>> batch.names, rows.refusals.first
    (['3', '7'], [('Lines', 3, 'the label is not a number')])
    """
    if format is not None:
        one_of("format", format, FORMATS)
    whole("rows", rows, 1)
    for name, value in [("strict", strict), ("grow", grow), ("prefetch", prefetch)]:
        boolean(name, value)
    vocabulary = model._vocabulary if model is not None else Vocabulary(hash_bits)
    classes = model._labels if model is not None else Classes()
    reading = {
        "label": label, "weight": weight, "ignore": ignore, "categorical": categorical, "text": text,
        "delimiter": delimiter, "header": header, "ngrams": ngrams, "pairs": pairs,
    }  # fmt: skip
    read = _reading(reading, {} if model is None else model._reading)
    pairing = Pairing(read["pairs"], vocabulary, grow) if read["pairs"] else None
    options = ReadOptions(
        **read,
        id=id,
        known=None if model is None or not model._schema else dict(model._schema),
        unlabelled=not grow,
        classes=frozenset() if model is None else frozenset(model.classes),
        learned_keys=None if model is None else model._reading.get("keys"),
        prefer=None if model is None else model._reading.get("format"),
        grows=grow,
        strict=strict,
        rows=rows if not read["pairs"] else min(rows, PAIRED_BATCH_ROWS),
        position=position or Position(),
        settled=settled,
    )
    tables, paths = _sorted_out(source)
    if tables is not None:
        return Stream(StreamReader(tables, None, options, vocabulary, classes, Frames(options)), prefetch, pairing)
    for path in paths:
        refuse_unreadable(path)
    return Stream(StreamReader(paths, format, options, vocabulary, classes), prefetch, pairing)


def _reading(given: dict[str, Any], learned: dict[str, Any]) -> dict[str, Any]:
    """The options of reading: those given, checked, and where there are none those that a model was learned with."""
    found: dict[str, Any] = {}
    for name in ("ignore", "categorical", "text"):
        if isinstance(given[name], str):
            raise TypeError(f"{name} must be a list of columns, got the text {given[name]!r}")
        if given[name]:
            found[name] = tuple(given[name])
    if given["ngrams"] is not None:
        found["ngrams"] = whole("ngrams", given["ngrams"], 1)
    if given["header"] is not None:
        found["header"] = boolean("header", given["header"])
    if given["delimiter"] is not None:
        found["delimiter"] = named_delimiter(given["delimiter"])
    for name in ("label", "weight"):
        if given[name] is not None:
            found[name] = given[name]
    if given["pairs"]:
        found["pairs"] = checked_pairs(given["pairs"])
    kept = {name: tuple(value) if isinstance(value, list) else value for name, value in learned.items()}
    for name in ("ngrams", "pairs"):
        if learned and name in found and found[name] != kept.get(name, getattr(ReadOptions, name)):
            raise ValueError(
                f"{name} is {found[name]!r}, but the model was learned with "
                f"{kept.get(name, getattr(ReadOptions, name))!r}; remove it"
            )
    learned = {name: value for name, value in kept.items() if name not in ("format", "keys") and name not in found}
    return {"pairs": ()} | learned | found | {"learned": frozenset(learned)}


def _sorted_out(source: Any) -> tuple[Iterable[Any] | None, list[Any]]:
    """Tables, or else paths and files."""
    if isinstance(source, (str, os.PathLike)) or hasattr(source, "read"):
        return None, [source]
    if is_table(source):
        return [source], []
    if isinstance(source, (list, tuple)) and source and all(isinstance(item, os.PathLike) for item in source):
        return None, list(source)
    if isinstance(source, (bytes, dict)) or not isinstance(source, Iterable):
        raise TypeError(f"source must be a path, a file, lines or tables, got {type(source).__name__}")
    items = iter(source)
    first = next(items, None)
    if first is None or isinstance(first, (str, bytes)):
        return None, [LinesAsFile(chain([] if first is None else [first], items))]
    return chain([first], items), []
