"""A batch of rows from a stream, and the classes that its labels name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.blocks import Scale
from linmax.data.experts import Experts
from linmax.io.options import Position
from linmax.io.schema import TRUTH
from linmax.io.vocabulary import Vocabulary
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["Batch", "Classes", "canonical"]

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
        self.texts = Vocabulary()
        self.numbers = np.zeros(16, np.int32)  # the class of each text
        self.names: list[str] = []
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

    def number(self, raw: bytes) -> int:
        """The class of a label, new or not; -1 when it is new and may not be added."""
        name = self._spelled(canonical(raw.decode("utf-8", "backslashreplace")))
        number = self._add(name) if self.grows else self._places.get(name, -1)
        text = int(self.texts.numbers([raw])[0])
        if text >= self.numbers.size:
            self.numbers = np.concatenate([self.numbers, np.zeros_like(self.numbers)])
        self.numbers[text] = number
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
    def matrix(self) -> Any:
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
    def instances(self) -> Experts:
        """The rows as instances for `linmax.run`, with thresholds."""
        return self.experts(1.0)

    def experts(self, constant: float) -> Experts:
        """The rows as instances with this constant attribute."""
        size, columns = len(self), self.columns
        wide = self.dense.shape[1]
        csr = None
        if columns or not wide:
            csr = sparse.csr_array((self.values, self.indices, self.indptr), shape=(size, columns))
        return Experts(
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
