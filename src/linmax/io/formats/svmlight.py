"""svmlight and LIBSVM: ``label index:value ...``."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from linmax.io.batches import Classes
from linmax.io.formats.base import LineFormat
from linmax.io.parsing import Work
from linmax.io.vocabulary import Vocabulary
from linmax.util.lazy import LazyModule

__all__ = ["Svmlight"]

parser = LazyModule("linmax.io.parsers.svmlight")

_PAIRS = re.compile(rb"[^\s|]+(\s+(qid:\d+|cost:[^\s|]+|\d+:[^\s|]+))+\s*(#.*)?")
_LABEL_ONLY = re.compile(rb"[+-]?\d+(\.\d*)?\s*(#.*)?")


class Svmlight(LineFormat):
    """``label index:value ...``."""

    endings = (".svm", ".svmlight", ".libsvm")
    title = "svmlight"

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """A line of pairs; the first may have none."""
        line = lines[1] if len(lines) > 1 and _LABEL_ONLY.fullmatch(lines[0]) else lines[0]
        return _PAIRS.fullmatch(line) is not None

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines."""
        return int(parser.parse_svmlight(block, work, vocabulary.names, classes.texts.names))
