"""Words of texts: how they are cut out of a text, folded, and joined.

A word is a run of two or more letters, digits, marks or underscores of any script; everything else, typographic quotes
and dashes included, separates. Letters are made small, one for one; an ideograph is a word by itself.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np

__all__ = ["OWN", "SKIPPED", "Words", "letters", "words_for"]

SHORTEST_WORD = 2  # letters of a word
LAST_LETTER = 0x32000  # code points beyond are no letters of a script in use
SKIPPED, OWN = 1, 1 << 30  # dropped within a word; a word by itself
OWN_SCRIPTS = ((0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, LAST_LETTER))  # ideographs
JOINERS = (0xAD, 0x200B, 0x200C, 0x200D, 0x2060)


class Words(NamedTuple):
    """Tables by which kernels cut texts into words."""

    folded: np.ndarray  # uint8 (256,): what each byte becomes in a word; 0: it separates, or begins another letter
    letters: np.ndarray  # uint32: the same for code points beyond ASCII, see `letters`; empty until it is wanted
    most: int  # words in a row that are an attribute


def words_for(ngrams: int) -> Words:
    """The settings as the kernels take them; the table of letters is made when a text needs it."""
    found = np.zeros(256, np.uint8)
    for c in range(128):
        if chr(c).isalnum() or c == ord("_"):
            found[c] = ord(chr(c).lower())
    return Words(found, np.zeros(0, np.uint32), ngrams)


@cache
def letters() -> np.ndarray:
    """For each code point the small letter that it becomes, 0 if it separates, SKIPPED, or with OWN its own word."""
    found = np.zeros(LAST_LETTER, np.uint32)
    for code in range(128, LAST_LETTER):
        letter = chr(code)
        if letter.isalnum() or unicodedata.category(letter) in ("Mn", "Mc", "Me", "Pc"):
            small = letter.casefold()
            found[code] = ord(small if len(small) == 1 else letter.lower()[0])
    for first, last in OWN_SCRIPTS:
        part = found[first : last + 1]
        part[part > 0] |= OWN
    found[list(JOINERS)] = SKIPPED
    return found
