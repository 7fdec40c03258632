"""Labelled texts: ``label<tab>text``, whose words and n-grams are the attributes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linmax.io.batches import Classes, canonical
from linmax.io.formats.base import TEXT_OPTIONS, ScratchFormat
from linmax.io.parsing import Work
from linmax.io.schema import LABEL_NAMES
from linmax.io.vocabulary import Vocabulary
from linmax.util.lazy import LazyModule

__all__ = ["Text"]

parser = LazyModule("linmax.io.parsers.text")
FORMAT_SAMPLE = 20  # lines that are looked at
LABEL_HEADERS = (*LABEL_NAMES, "labels", "category", "sentiment")  # names of the label in a header, in lower case


class Text(ScratchFormat):
    """``label<tab>text``, or where labels may be absent plain texts; n-grams up to ``options.ngrams`` words."""

    endings = (".tsv",)
    title = "labelled text"
    takes = TEXT_OPTIONS
    sample = FORMAT_SAMPLE

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """One tab in each line, and several words behind one of them."""
        first = lines[:FORMAT_SAMPLE]
        return {line.count(b"\t") for line in first} == {1} and any(
            len(line.split(b"\t")[1].split()) > 1 for line in first
        )

    def begin(self, name: str, head: bytes) -> tuple[int, int]:  # noqa: ARG002
        """Find a header, and whether there are labels: in half of the first lines one that the model knows."""
        lines = [line for line in head.split(b"\n")[: FORMAT_SAMPLE + 1] if line.strip()]
        labels = [canonical(line.partition(b"\t")[0].decode("utf-8", "replace")) for line in lines if b"\t" in line]
        if "lines" not in self.settled:
            known = self.options.classes
            labelled = not self.options.unlabelled or 2 * sum(label in known for label in labels) >= max(1, len(lines))
            kind = "labelled" if not self.options.unlabelled else "either" if labelled else "plain"
            self.settled = {"lines": kind}
        if labels and labels[0].lower() in LABEL_HEADERS and labels[0] not in labels[1:]:
            self.notes.append(f"The first line is a header: {lines[0].decode('utf-8', 'replace').strip()!r}.")
            return head.find(b"\n") + 1 or len(head), 1
        return 0, 0

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines."""
        scratch, names, labels = self.room_for(block), vocabulary.names, classes.texts.names
        mode = {"labelled": parser.LABELLED, "plain": parser.PLAIN, "either": parser.EITHER}[self.settled["lines"]]
        return int(parser.parse_text(block, work, names, labels, scratch, self.words, mode))
