"""Pairs of attributes that are asked for (`linmax.data.features`), added to the batches of a stream.

Attributes are numbered, the dense ones first, then those of the vocabulary. Each has a bit for each group that it
belongs to. A pair has the key first 2^32 + second, and as its value the product of theirs. The pair of two columns of
numbers is a column of numbers. With hashed names there are no groups, and ``all`` hashes the two numbers.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numba import boolean, float64, int64, types

from linmax.data.features import ALL, belongs
from linmax.io.batch import Batch
from linmax.io.bytes import PADDING
from linmax.io.vocabulary import Vocabulary
from linmax.jit.compiling import kernel
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["PAIRED_BATCH_ROWS", "Pairing"]

STAR = 42


@kernel(hot=True)
def wanted(one: int, other: int, asked: np.ndarray) -> int:
    """Return 1 if groups of bits ``one`` and ``other`` are to be paired, -1 for the reverse order, else 0."""
    for p in range(asked.shape[0]):
        if one & asked[p, 0] and other & asked[p, 1]:
            return 1
        if other & asked[p, 0] and one & asked[p, 1]:
            return -1
    return 0


@kernel(int64(int64, int64[::1], int64[::1], float64[::1], int64[::1], int64[:, ::1], boolean, int64[::1], int64[::1],
              float64[::1]))  # fmt: skip
def pair_rows(
    wide: int,
    indptr: np.ndarray,
    attributes: np.ndarray,
    values: np.ndarray,
    groups: np.ndarray,
    asked: np.ndarray,
    fill: bool,
    ends: np.ndarray,
    keys: np.ndarray,
    products: np.ndarray,
) -> int:
    """Write where the pairs of each row end into ``ends``, and with ``fill`` the pairs; return their number.

    ``groups`` are those of each attribute of the rows, the ``wide`` dense ones first, whose pairs are left out. Of
    attributes that are asked for in both orders the lower comes first.
    """
    put = 0
    for t in range(indptr.size - 1):
        for a in range(indptr[t], indptr[t + 1]):
            one = attributes[a]
            if one < wide or groups[a] == 0:
                continue
            for b in range(indptr[t], a):
                other, order = attributes[b], wanted(groups[a], groups[b], asked)
                if order == 0 or one == other:
                    continue
                if fill:
                    first, second = (one, other) if order > 0 else (other, one)
                    if order == wanted(groups[b], groups[a], asked) and first > second:
                        first, second = second, first
                    keys[put] = (first << 32) + second
                    products[put] = values[a] * values[b]
                put += 1
        ends[t + 1] = put
    return put


@kernel(types.void(int64[::1], types.uint8[::1], int64[::1], types.uint8[::1], int64[::1], types.uint8[::1],
                   int64[::1]))  # fmt: skip
def join_names(
    pairs: np.ndarray,
    store: np.ndarray,
    offsets: np.ndarray,
    numbers: np.ndarray,
    number_offsets: np.ndarray,
    block: np.ndarray,
    ends: np.ndarray,
) -> None:
    """The names of pairs, ``first*second``, one after the other; ``ends`` say where each ends in the block."""
    put = 0
    for i in range(pairs.size):
        for part in range(2):
            column = pairs[i] >> 32 if part == 0 else pairs[i] & 0xFFFFFFFF
            wide = number_offsets.size - 1
            if column < wide:
                names, begin, end = numbers, number_offsets[column], number_offsets[column + 1]
            else:
                names, begin, end = store, offsets[column - wide], offsets[column - wide + 1]
            for c in range(begin, end):
                block[put] = names[c]
                put += 1
            if part == 0:
                block[put] = STAR
                put += 1
        ends[i + 1] = put


PAIRED_BATCH_ROWS = 64  # of a batch, because pairs are many
MOST_PAIRS = 1 << 22  # pairs of a row


class Pairing:
    """Adds the pairs to the batches of one stream."""

    def __init__(self, pairs: tuple[str, ...], vocabulary: Vocabulary, grows: bool) -> None:
        if vocabulary.bits and pairs != (ALL,):
            raise ValueError(
                f"pairs: {', '.join(pairs)} require the names of attributes, which hash_bits= does not store; remove "
                "hash_bits=, or pass pairs=['all']"
            )
        self.vocabulary, self.grows = vocabulary, grows
        names = list(dict.fromkeys(group for asked in pairs for group in asked.split(":"))) if pairs != (ALL,) else []
        self.bits = {name: 1 << place for place, name in enumerate(names)}
        asked = [[self.bits[group] for group in pair.split(":")] for pair in pairs] if names else [[1, 1]]
        self.asked = np.array(asked, np.int64)
        self.groups = np.zeros(0, np.int64)  # of the names met
        self.seen, self.columns = Vocabulary(), np.zeros(0, np.int32)  # the pairs met, by their keys, and their columns
        self.products: list[tuple[int, int]] | None = None  # of columns of numbers
        self.met = 0  # the bits of all groups that attributes belong to

    def batches(self, given: Iterator[Batch]) -> Generator[Batch, None, None]:
        """Yield the batches with their pairs."""
        for batch in given:
            yield self.paired(batch)

    def remarks(self) -> list[str]:
        """Groups that no attribute belongs to."""
        none = [repr(name) for name, bit in self.bits.items() if not self.met & bit]
        message = f"There is nothing to pair: no attribute, column or namespace is called {' or '.join(none)}."
        return [message] if none else []

    def group_of(self, name: str) -> int:
        """The bits of the groups that a name belongs to."""
        if not self.bits:
            return 1
        return sum(bit for group, bit in self.bits.items() if belongs(name, group))

    def paired(self, batch: Batch) -> Batch:
        """A batch with its pairs."""
        wide = len(batch.dense_names)
        dense_groups = np.array([self.group_of(name) for name in batch.dense_names], np.int64)
        self._meet(len(self.vocabulary) if self.vocabulary.bits else int(batch.indices.max(initial=-1)) + 1)
        if self.products is None:
            self.products = self._of_numbers(dense_groups)
            self.met |= int(np.bitwise_or.reduce(dense_groups, initial=0))
        present = (batch.dense != 0.0) & ~np.isnan(batch.dense)
        numbers = present.sum(axis=1), np.nonzero(present)[1], batch.dense[present]
        indptr, attributes, values = _interleaved(
            numbers, (np.diff(batch.indptr), batch.indices.astype(np.int64) + wide, batch.values)
        )
        groups = np.concatenate([dense_groups, self.groups])[attributes]
        rows, ends = (wide, indptr, attributes, values, groups, self.asked), np.zeros(len(batch) + 1, np.int64)
        total = pair_rows(*rows, False, ends, np.zeros(0, np.int64), np.zeros(0))
        longest = int(np.diff(ends).max(initial=0))
        if longest > MOST_PAIRS:
            line = int(batch.lines[int(np.diff(ends).argmax())])
            raise ValueError(f"line {line} has {longest:,} pairs of attributes; name those that matter, as in a:b")
        keys, amounts = np.zeros(total, np.int64), np.zeros(total)
        pair_rows(*rows, True, ends, keys, amounts)
        return self._merged(batch, ends, self._columns_of(keys, batch.dense_names), amounts)

    def _meet(self, names: int) -> None:
        """Find the groups of names that were not met before."""
        old = len(self.groups)
        if names <= old:
            return
        if not self.bits:
            self.groups = np.ones(max(names, 2 * old), np.int64)
            return
        more = [self.group_of(self.vocabulary[number]) for number in range(old, names)]
        self.groups = np.concatenate([self.groups, np.array(more, np.int64)])
        self.met |= int(np.bitwise_or.reduce(self.groups[old:]))

    def _of_numbers(self, groups: np.ndarray) -> list[tuple[int, int]]:
        """Pairs of columns of numbers."""
        return [
            (a, b)
            for a, b in combinations(range(len(groups)), 2)
            if any((x & groups[a] and y & groups[b]) or (y & groups[a] and x & groups[b]) for x, y in self.asked)
        ]

    def _columns_of(self, pairs: np.ndarray, dense_names: tuple[str, ...]) -> np.ndarray:
        """The number of each pair in the vocabulary; below 0 for those that are not in it."""
        if self.vocabulary.bits:
            mixed = (pairs >> 32) * 0x2C1B3C6D + (pairs & 0xFFFFFFFF) * 0x297A2D39
            mixed = (mixed ^ (mixed >> 15) ^ (mixed >> 33)) & 0x7FFFFFFF
            return (((mixed * 0x1B873593) >> 13) & (len(self.vocabulary) - 1)).astype(np.int32)
        before, begins = len(self.seen), 8 * np.arange(pairs.size)
        block = np.append(pairs.view(np.uint8), np.zeros(PADDING, np.uint8))
        found = self.seen.numbers_of(block, begins, begins + 8)
        fresh = self.seen.names.store[8 * before : 8 * len(self.seen)].view(np.int64)
        self.columns = np.append(self.columns, self._named(fresh, dense_names).astype(np.int32))
        return self.columns[found]

    def _named(self, pairs: np.ndarray, dense_names: tuple[str, ...]) -> np.ndarray:
        """The numbers of pairs by their names, which the vocabulary takes in if it grows."""
        raw = [name.encode() for name in dense_names]
        numbers = np.frombuffer(b"".join(raw) + bytes(1), np.uint8).copy()
        number_offsets = np.cumsum([0, *map(len, raw)], dtype=np.int64)
        names = self.vocabulary.names
        sizes = np.diff(names.offsets)
        spans = [pairs >> 32, pairs & 0xFFFFFFFF]
        total = sum(int(_sizes(span, sizes, np.diff(number_offsets)).sum()) for span in spans) + len(pairs)
        block, offsets = np.zeros(total + PADDING, np.uint8), np.zeros(len(pairs) + 1, np.int64)
        join_names(pairs, names.store, names.offsets, numbers, number_offsets, block, offsets)
        return self.vocabulary.numbers_of(block, offsets[:-1], offsets[1:], add=self.grows)

    def _merged(self, batch: Batch, ends: np.ndarray, found: np.ndarray, amounts: np.ndarray) -> Batch:
        """The rows with their pairs behind them, but for those of value 0, and without a column."""
        kept = (found >= 0) & (amounts != 0.0)
        counts = np.diff(np.concatenate([[0], np.cumsum(kept)])[ends])
        single = np.diff(batch.indptr), batch.indices, batch.values
        indptr, indices, values = _interleaved(single, (counts, found[kept], amounts[kept]))
        if self.vocabulary.bits or self.vocabulary.full:  # two pairs may share a column
            csr = sparse.csr_array((values, indices, indptr), shape=(len(batch), len(self.vocabulary)))
            csr.sum_duplicates()
            indptr, indices, values = csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data
        dense, names = batch.dense, batch.dense_names
        assert self.products is not None
        if self.products:
            first, second = np.array(self.products).T
            dense = np.ascontiguousarray(np.hstack([dense, dense[:, first] * dense[:, second]]))
            names = (*names, *(f"{names[a]}*{names[b]}" for a, b in self.products))
        return replace(
            batch, dense=dense, dense_names=names, indptr=indptr, indices=indices, values=values,
            columns=len(self.vocabulary), unknown=batch.unknown + int((found < 0).sum()),
        )  # fmt: skip


def _interleaved(*parts: tuple[np.ndarray, np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Join sparse rows of several parts, each with its counts by row, columns and values."""
    sizes = [np.repeat(np.arange(len(counts)), counts) for counts, _, _ in parts]
    order = np.argsort(np.concatenate(sizes), kind="stable")
    indptr = np.concatenate([[0], np.cumsum(sum(counts for counts, _, _ in parts))]).astype(np.int64)
    columns, values = (np.concatenate([part[place] for part in parts])[order] for place in (1, 2))
    return indptr, columns, values


def _sizes(columns: np.ndarray, sizes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The lengths of the names of columns, those of numbers first."""
    return np.concatenate([numbers, sizes])[columns]
