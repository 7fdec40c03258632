"""Labelled texts: ``label<tab>text``, whose words and n-grams are the attributes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linmax.io.batches import Classes, canonical
from linmax.io.formats.base import TEXT_OPTIONS, LineFormat
from linmax.io.options import ReadOptions
from linmax.io.parsing import Work
from linmax.io.schema import LABEL_NAMES
from linmax.io.vocabulary import Vocabulary
from linmax.io.words import letters, words_for
from linmax.util.lazy import LazyModule

__all__ = ["Text"]

parser = LazyModule("linmax.io.parsers.text")
FORMAT_SAMPLE = 20  # lines that decide whether a file is of this format
HEADER_WORDS = 3  # that name the text in a header, at most
LABEL_HEADERS = (*LABEL_NAMES, "labels", "category", "sentiment")  # names of the label in a header, in lower case


class Text(LineFormat):
    """``label<tab>text``; n-grams up to ``options.ngrams`` words.

    Rows to be predicted may be texts alone. There a tab ends a label if one word comes before it, or several that a
    model knows as a class; else it is part of the text.
    """

    endings = (".tsv",)
    title = "labelled text"
    takes = TEXT_OPTIONS

    def __init__(self, options: ReadOptions, kind: str = "text") -> None:
        super().__init__(options, kind)
        self._scratch = np.zeros(0, np.uint8)
        self._words = words_for(options.ngrams)
        self._known = Vocabulary()  # labels of several words
        self._known.numbers([name for name in options.classes if " " in name])

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """One tab in each line, and several words behind one of them."""
        first = lines[:FORMAT_SAMPLE]
        return {line.count(b"\t") for line in first} == {1} and any(
            len(line.split(b"\t")[1].split()) > 1 for line in first
        )

    def begin(self, name: str, head: bytes) -> tuple[int, int]:  # noqa: ARG002
        """Skip a header: the name of a label and a few words, unless that name is a class."""
        line = head.partition(b"\n")[0].decode("utf-8", "replace")
        label, tab, text = line.partition("\t")
        named = label.strip().lower() in LABEL_HEADERS and canonical(label) not in self.options.classes
        if tab and named and len(text.split()) <= HEADER_WORDS and b"\n" + label.encode() + b"\t" not in head:
            note = f"The first line is a header: {line.strip()!r}."
            self.notes += [note] if note not in self.notes else []
            return head.find(b"\n") + 1 or len(head), 1
        return 0, 0

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines."""
        if self._scratch.size < 3 * block.size:
            self._scratch = np.zeros(3 * block.size, np.uint8)
        names, labels = vocabulary.names, classes.texts.names
        return int(parser.parse_text(block, work, names, labels, self._scratch, self._words, self._known.names))

    def new_letters(self) -> None:
        """Make the table of letters."""
        self._words = self._words._replace(letters=letters())
