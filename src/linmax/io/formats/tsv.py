"""Tables with a header whose fields are separated by tabs."""

from __future__ import annotations

from collections.abc import Sequence

from linmax.io.formats.base import COLUMN_OPTIONS
from linmax.io.formats.csv import Csv

__all__ = ["Tsv"]


class Tsv(Csv):
    """As `Csv`, with tabs."""

    endings = (".tsv",)
    separator = "\t"
    takes = COLUMN_OPTIONS | {"header"}

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """A tab."""
        return b"\t" in lines[0]
