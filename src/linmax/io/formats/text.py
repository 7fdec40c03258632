"""Labelled texts: ``label<tab>text``, whose words and n-grams are the attributes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linmax.io.batches import Classes
from linmax.io.formats.base import ScratchFormat
from linmax.io.parsing import Work
from linmax.io.vocabulary import Vocabulary
from linmax.util.lazy import Later

__all__ = ["Text"]

parser = Later("linmax.io.parsers.text")
SAMPLE = 20  # lines that are looked at


class Text(ScratchFormat):
    """``label<tab>text``; n-grams up to ``options.ngrams`` words."""

    endings = (".tsv",)

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """One tab in each line, and several words behind one of them."""
        first = lines[:SAMPLE]
        return {line.count(b"\t") for line in first} == {1} and any(
            len(line.split(b"\t")[1].split()) > 1 for line in first
        )

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines."""
        scratch, names, labels = self.room_for(block), vocabulary.names, classes.texts.names
        return int(parser.parse_text(block, work, names, labels, scratch, parser.FOLDED, self.options.ngrams))
