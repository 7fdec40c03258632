"""Vowpal Wabbit's text: ``label |namespace name:value ...``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linmax.io.batches import Classes
from linmax.io.formats.base import LineFormat
from linmax.io.formats.delimiters import delimiter_of
from linmax.io.options import ReadOptions
from linmax.io.parsing import Work
from linmax.io.vocabulary import Vocabulary
from linmax.util.lazy import LazyModule

__all__ = ["VowpalWabbit"]

parser = LazyModule("linmax.io.parsers.vw")


class VowpalWabbit(LineFormat):
    """``label |namespace name:value ...``."""

    endings = (".vw",)
    title = "Vowpal Wabbit's text"

    def __init__(self, options: ReadOptions, kind: str = "vw") -> None:
        super().__init__(options, kind)
        self._spaces = Vocabulary()

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """A bar, unless it stands in the text behind the only tab, or between the names of columns."""
        line = lines[0]
        if len(lines) > 1 and b" " not in line and b":" not in line and delimiter_of(lines) == "|":
            return False
        return b"|" in line and not (line.count(b"\t") == 1 and line.index(b"\t") < line.index(b"|"))

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines."""
        tables = vocabulary.names, classes.texts.names, self._spaces.names
        return int(parser.parse_vw(block, work, *tables))

    def new_prefix(self, raw: bytes, vocabulary: Vocabulary) -> None:
        """Number the namespace like its prefix, less one. The vocabulary may have others, from streams before."""
        for head in vocabulary.heads[len(self._spaces) + 1 :]:
            self._spaces.numbers([head.removesuffix(b"^") if head.endswith(b"^") else b"\0" + head])
        number = int(self._spaces.numbers([raw])[0])
        assert vocabulary.prefix(raw + b"^") == number + 1
