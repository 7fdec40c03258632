"""Batches of rows from a stream: their classes, their order, all of them as one matrix, and reading them ahead."""

from __future__ import annotations

import queue
import re
import threading
import weakref
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.blocks import Scale
from linmax.data.instances import Instances
from linmax.io.read_options import Position
from linmax.io.schema import TRUTH
from linmax.io.vocabulary import Vocabulary
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["LONG_RUNS", "Batch", "Classes", "Runs", "ahead", "canonical", "joined", "shuffled"]

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
MOST_CLASSES = 2**16


def canonical(text: str) -> str:
    """The name of a class: a whole number in its plain form, anything else unchanged.

    Examples
    --------
    >>> canonical("+1"), canonical("2.0"), canonical(" spam"), canonical("0.5")
    ('1', '2', 'spam', '0.5')
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        value = float(text)
        if value.is_integer() and abs(value) < 2**53:
            return str(int(value))
    return text


class Classes:
    """Classes in order of their first labels; different ways of writing a number, or true and false, are one class."""

    def __init__(self, names: list[str] | None = None, grows: bool = True) -> None:
        self.grows = grows
        self.names: list[str] = []
        self._texts: dict[str, int] = {}  # the class of each text
        self._places: dict[str, int] = {}
        for name in names or []:
            self._add(name)

    def __len__(self) -> int:
        return len(self.names)

    def _add(self, name: str) -> int:
        if name not in self._places:
            if len(self.names) == MOST_CLASSES:
                raise ValueError(f"more than {MOST_CLASSES:,} classes, such as {name!r}; are these the labels?")
            self._places[name] = len(self.names)
            self.names.append(name)
        return self._places[name]

    def _spelled(self, name: str) -> str:
        """True and false as they were first written: pandas writes them with a capital letter, JSON without, R in
        capitals.
        """
        if name in self._places or name.lower() not in TRUTH:
            return name
        return next((known for known in self.names if known.lower() == name.lower()), name)

    def number(self, text: str) -> int:
        """The class of a label, new or not; -1 when it is new and may not be added."""
        number = self._texts.get(text)
        if number is None:
            name = self._spelled(canonical(text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")))
            number = self._texts[text] = self._add(name) if self.grows else self._places.get(name, -1)
        return number


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a stream.

    Attributes
    ----------
    dense, indptr, indices, values
        Attributes: a dense block (columns of numbers) and sparse rows; columns are numbered as in ``vocabulary``.
    codes
        The class of each row as its place in ``classes``; -1 without a label.
    importance, lines, tags
        How much each row counts, the number of its line, and tags if there are any.
    columns
        How many names the vocabulary had after the batch.

    See Also
    --------
    linmax.stream : yields them.

    Examples
    --------
    >>> import linmax
    >>> (batch,) = linmax.stream(["ham |w hello friend", "spam |w buy now"])
    >>> len(batch.codes), batch.labelled.names
    (2, ['ham', 'spam'])
    """

    dense: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    codes: np.ndarray
    importance: np.ndarray
    lines: np.ndarray
    tags: list[str] | None
    columns: int
    vocabulary: Vocabulary
    labelled: Classes  # what the codes mean
    dense_names: tuple[str, ...]
    position: Position
    unknown: int = 0  # attributes left out because the vocabulary does not grow
    done: float | None = None  # share of the input read
    settled: dict[str, Any] = field(default_factory=dict)  # what the format found out (see `linmax.io.formats`)

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        wide = len(self.dense_names) + self.columns
        return f"<{len(self)} rows, {len(self.values)} values, {wide} attributes, {len(self.classes)} classes>"

    @property
    def classes(self) -> list[str]:
        """Names of the classes that labels have named so far."""
        return self.labelled.names

    @cached_property
    def labels(self) -> np.ndarray:
        """The name of each row's class, None without a label."""
        return np.array([*self.classes, None], dtype=object)[self.codes]

    @cached_property
    def matrix(self) -> np.ndarray | sparse.csr_array:
        """The attributes as scikit-learn takes them: an array when all are dense, else CSR with dense columns first."""
        csr = sparse.csr_array((self.values, self.indices, self.indptr), shape=(len(self), self.columns))
        if not self.dense.shape[1]:
            return csr
        if not self.columns:
            return self.dense
        return sparse.hstack([sparse.csr_array(self.dense), csr], format="csr")

    @property
    def names(self) -> list[str]:
        """The names of the matrix's columns."""
        return [*self.dense_names, *(self.vocabulary[i] for i in range(self.columns))]

    @cached_property
    def instances(self) -> Instances:
        """The rows as instances for `linmax.run`, with thresholds."""
        return self.with_constant(1.0)

    def with_constant(self, constant: float) -> Instances:
        """The rows as instances with this constant attribute."""
        size, columns = len(self), self.columns
        wide = self.dense.shape[1]
        csr = None
        if columns or not wide:
            csr = sparse.csr_array((self.values, self.indices, self.indptr), shape=(size, columns))
        return Instances(
            np.zeros((size, 0), np.int32),
            np.zeros(0),
            np.zeros((size, 0, 0)),
            self.dense,
            csr,
            constant,
            (),
            False,
            Scale(np.ones(0), np.ones(wide + columns)),
            (),
            (),
            None,
        )

    def dicts(self) -> Iterator[dict[str, float]]:
        """Each row as ``{name: value}``, as `linmax.Learner` takes it; missing numbers are left out."""
        for t in range(len(self)):
            row = {n: float(v) for n, v in zip(self.dense_names, self.dense[t], strict=True) if v == v and v != 0.0}
            part = slice(self.indptr[t], self.indptr[t + 1])
            for i, v in zip(self.indices[part].tolist(), self.values[part].tolist(), strict=True):
                row[self.vocabulary[i]] = v
            yield row


SHUFFLED_BATCH_ROWS = 4096  # of a batch in the new order
LONG_RUNS = 25  # times as few runs of equal labels as in random order: rows look sorted
FEWEST_ROWS = 200  # rows that are needed to say so


def joined(batches: Iterable[Batch]) -> Batch | None:
    """All rows of these batches, which follow each other in one stream, as one batch; None without any."""
    found = [(batch, batch.indices.copy(), batch.values.copy()) for batch in batches]  # they have room for more
    if not found:
        return None
    dense, codes, importance, lines = (
        np.concatenate([getattr(batch, name) for batch, *_ in found])
        for name in ("dense", "codes", "importance", "lines")
    )
    counts = np.concatenate([np.diff(batch.indptr) for batch, *_ in found])
    tags = [tag for batch, *_ in found for tag in batch.tags or [""] * len(batch)]
    return replace(
        found[-1][0], dense=dense, codes=codes, importance=importance, lines=lines,
        indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        indices=np.concatenate([indices for _, indices, _ in found]),
        values=np.concatenate([values for _, _, values in found]),
        tags=tags if any(batch.tags is not None for batch, *_ in found) else None,
    )  # fmt: skip


def shuffled(batches: Iterable[Batch], seed: int = 0) -> Iterator[Batch]:
    """All rows of these batches in a random order; all of them are read, and held in memory, before the first comes."""
    whole = joined(batches)
    order = np.random.default_rng(seed).permutation(0 if whole is None else len(whole))
    for first in range(0, len(order), SHUFFLED_BATCH_ROWS):
        assert whole is not None
        rows = order[first : first + SHUFFLED_BATCH_ROWS]
        sizes = np.diff(whole.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.repeat(whole.indptr[:-1][rows] - indptr[:-1], sizes) + np.arange(indptr[-1])
        yield replace(
            whole, dense=np.ascontiguousarray(whole.dense[rows]), indptr=indptr, indices=whole.indices[places],
            values=whole.values[places], codes=whole.codes[rows], importance=whole.importance[rows],
            lines=whole.lines[rows], tags=None if whole.tags is None else [whole.tags[row] for row in rows.tolist()],
            done=(first + len(rows)) / len(order),
        )  # fmt: skip


class Runs:
    """Counts how long the same label comes row after row."""

    def __init__(self) -> None:
        self.rows = self.runs = 0
        self.last = -1
        self.counts = np.zeros(0, np.int64)  # rows of each class

    def count(self, codes: np.ndarray) -> None:
        """Count further labels; rows without one are left out."""
        known = codes[codes >= 0]
        if known.size:
            self.runs += int(np.count_nonzero(np.diff(known, prepend=self.last)))
            self.rows, self.last = self.rows + known.size, int(known[-1])
            counts = np.bincount(known, minlength=len(self.counts))
            counts[: len(self.counts)] += self.counts
            self.counts = counts

    @property
    def long(self) -> bool:
        """True if rows look sorted by class: far fewer runs than a random order of the same labels would have."""
        return self.rows >= FEWEST_ROWS and self.runs > 1 and self.expected >= LONG_RUNS * self.runs

    @property
    def expected(self) -> float:
        """Number of runs to expect if the same labels came in random order."""
        shares = self.counts / max(1, self.rows)
        return float(1.0 + (self.rows - 1) * (1.0 - (shares**2).sum()))


def ahead(batches: Generator[Batch, None, None], many: int = 2) -> Generator[Batch, None, None]:
    """Read the batches ahead in another thread, which starts now."""
    waiting: queue.Queue[tuple[Batch | None, BaseException | None]] = queue.Queue(many)
    stop = threading.Event()

    def put(item: tuple[Batch | None, BaseException | None]) -> bool:
        while not stop.is_set():
            try:
                waiting.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for batch in batches:
                if not put((batch, None)):
                    return
            put((None, None))
        except BaseException as error:
            put((None, error))
        finally:
            batches.close()

    def take() -> Generator[Batch, None, None]:
        try:
            while True:
                batch, error = waiting.get()
                if error is not None:
                    raise error
                if batch is None:
                    return
                yield batch
        finally:
            stop.set()

    taken = take()
    weakref.finalize(taken, stop.set)  # even if no batch was taken
    threading.Thread(target=work, name="linmax-reader", daemon=True).start()
    return taken
