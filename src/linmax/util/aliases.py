"""Types of arguments and results, for annotations.

Voters, raters, attributes and classes are named by anything hashable, usually text or whole numbers.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import IO, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "Attributes",
    "Candidates",
    "Costs",
    "Frame",
    "Label",
    "Labels",
    "Matrix",
    "Name",
    "PathLike",
    "Ratings",
    "Scores",
    "Source",
    "SparseMatrix",
    "VoteColumns",
    "Votes",
]


class Frame(Protocol):
    """A table with named columns: a frame of pandas or Polars, or an Arrow table."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the table by Arrow's C interface."""


class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy."""

    def tocsr(self) -> object:
        """Return the same matrix by rows."""


PathLike: TypeAlias = str | os.PathLike[str]
Name: TypeAlias = Hashable  # of a voter, a rater or an attribute
Label: TypeAlias = Hashable  # of a class

# One instance.
Attributes: TypeAlias = Mapping[Name, float] | Mapping[str, float] | Sequence[float] | np.ndarray | None
Votes: TypeAlias = Mapping[Name, Label] | Mapping[str, Label] | Sequence[Label] | np.ndarray | None
Ratings: TypeAlias = Mapping[Label, float] | Mapping[str, float] | Sequence[float] | np.ndarray
Scores: TypeAlias = Mapping[Name, Ratings] | Mapping[str, Ratings] | Sequence[Sequence[float]] | np.ndarray | None
Candidates: TypeAlias = Sequence[Label] | None
Costs: TypeAlias = Mapping[Name, float] | Mapping[str, float] | None

# Many instances.
Labels: TypeAlias = Sequence[Label] | npt.ArrayLike
VoteColumns: TypeAlias = Mapping[Name, Labels] | Mapping[str, Labels] | Sequence[Votes] | npt.ArrayLike | Frame
Source: TypeAlias = PathLike | IO[bytes] | IO[str] | Frame | Iterable[object]  # files, lines, tables
Matrix: TypeAlias = npt.ArrayLike | Frame | SparseMatrix
