"""Streams: from files, pipes and frames to batches of instances, in bounded memory and at the speed of compiled code.

`stream` reads svmlight, Vowpal Wabbit's text, tables, JSON lines, labelled texts, Parquet and Arrow, packed or not;
`StreamModel` learns from what it yields, with names, scaling and weights in one file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from linmax.io.batches import Batch, Classes
from linmax.io.formats import FORMATS, register_format
from linmax.io.frames import TableReader, is_table
from linmax.io.options import ROWS, Position, ReadOptions
from linmax.io.prefetch import ahead
from linmax.io.reader import StreamReader
from linmax.io.refusals import Refusals
from linmax.io.sources import LinesAsFile, refuse_unreadable
from linmax.io.vocabulary import Vocabulary
from linmax.models.streams.model import StreamModel
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

    def __init__(self, reader: StreamReader | TableReader, prefetch: bool) -> None:
        self._reader, self._prefetch = reader, prefetch

    def __iter__(self) -> Iterator[Batch]:
        """The batches, read by another thread while one is worked on, unless that was declined."""
        return ahead(iter(self._reader)) if self._prefetch else iter(self._reader)

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
    def format(self) -> str | None:
        """The format, once it is known."""
        return self._reader.kind


def stream(
    source: Any,
    *,
    format: str | None = None,
    label: str | None = None,
    ignore: Sequence[str] = (),
    categorical: Sequence[str] = (),
    ngrams: int = 1,
    hash_bits: int | None = None,
    rows: int = ROWS,
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
        or polars frame, an Arrow table or batch, a pair (X, y) as of ``load_svmlight_file``, or an iterable of these.
    format
        One of `FORMATS`: svmlight, vw, text, csv, tsv, parquet, arrow, jsonl, and what `register_format` has added;
        else it is told by the file's ending and content.
    label, ignore, categorical
        Columns of a table: the label (the last one if not given), those to leave out, and those whose numbers are
        categories. For JSON lines ``label`` is the key of the label.
    ngrams
        Longest run of words of a text that is an attribute.
    hash_bits
        Hash names to 2^bits columns; else they are numbered as they come, and kept.
    rows
        Most rows of a batch.
    strict
        Raise at the first line that cannot be read, instead of counting it in ``refusals``.
    model
        Number names and classes as this `StreamModel` does.
    grow
        Whether names that were not met before get a column; else they are left out.
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
    linmax.streams.StreamModel : learns from them.

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
    whole("ngrams", ngrams, 1)
    for name, value in [("strict", strict), ("grow", grow), ("prefetch", prefetch)]:
        boolean(name, value)
    if isinstance(ignore, str) or isinstance(categorical, str):
        raise TypeError("ignore and categorical must be lists of columns")
    vocabulary = model.vocabulary if model is not None else Vocabulary(hash_bits)
    classes = model.labels if model is not None else Classes()
    options = ReadOptions(
        label=label,
        ignore=tuple(ignore),
        categorical=tuple(categorical),
        ngrams=ngrams,
        known=None if model is None or not model.schema else dict(model.schema),
        grows=grow,
        strict=strict,
        rows=rows,
        position=position or Position(),
        settled=settled,
    )
    tables, paths = _sorted_out(source)
    if tables is not None:
        return Stream(TableReader(tables, options, vocabulary, classes), prefetch)
    for path in paths:
        refuse_unreadable(path)
    return Stream(StreamReader(paths, format, options, vocabulary, classes), prefetch)


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
