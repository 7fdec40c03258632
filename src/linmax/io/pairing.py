"""Pairs of attributes that are asked for (`linmax.data.features.products`), added to the batches of a stream.

The pair of two columns of numbers is a column of numbers. With hashed names there are no groups, and ``all`` hashes the
two numbers.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from linmax.data.features.products import ALL, belongs
from linmax.io.batches import Batch
from linmax.io.name_table import number_names
from linmax.io.pair_rows import FIRST_DENSE, FRESH, join_names, merge_rows, pair_rows, place_pairs
from linmax.io.scan import PADDING
from linmax.io.vocabulary import Vocabulary
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["PAIRED_BATCH_ROWS", "Pairing"]

PAIRED_BATCH_ROWS = 64  # of a batch, because pairs are many
MOST_PAIRS = 1 << 22  # pairs of a row


class Pairing:
    """Adds the pairs to the batches of one stream."""

    def __init__(self, pairs: tuple[str, ...], vocabulary: Vocabulary, grows: bool) -> None:
        if vocabulary.bits and pairs != (ALL,):
            raise ValueError(
                f"pairs: {', '.join(pairs)} need the names of attributes, which hash_bits does away with; leave that "
                "out, or pair all"
            )
        self.vocabulary, self.grows = vocabulary, grows
        names = list(dict.fromkeys(group for asked in pairs for group in asked.split(":"))) if pairs != (ALL,) else []
        self.bits = {name: 1 << place for place, name in enumerate(names)}
        asked = [[self.bits[group] for group in pair.split(":")] for pair in pairs] if names else [[1, 1]]
        self.asked = np.array(asked, np.int64)
        self.groups = np.zeros(0, np.int64)  # of the names met
        self.keys, self.columns, self.many = np.zeros(1024, np.int64), np.zeros(1024, np.int32), 0
        self.products: list[tuple[int, int]] | None = None  # of columns of numbers
        self.met = 0  # the bits of all groups that attributes belong to

    def batches(self, given: Iterator[Batch]) -> Generator[Batch, None, None]:
        """The same batches, with pairs."""
        for batch in given:
            yield self.paired(batch)

    def remarks(self) -> list[str]:
        """Groups that no attribute belongs to."""
        none = [repr(name) for name, bit in self.bits.items() if not self.met & bit]
        told = f"There is nothing to pair: no attribute, column or namespace is called {' or '.join(none)}."
        return [told] if none else []

    def group_of(self, name: str) -> int:
        """The bits of the groups that a name belongs to."""
        if not self.bits:
            return 1
        return sum(bit for group, bit in self.bits.items() if belongs(name, group))

    def paired(self, batch: Batch) -> Batch:
        """A batch with its pairs."""
        dense_groups = np.array([self.group_of(name) for name in batch.dense_names], np.int64)
        self._meet(len(self.vocabulary) if self.vocabulary.bits else int(batch.indices.max(initial=-1)) + 1)
        if self.products is None:
            self.products = self._of_numbers(dense_groups)
            self.met |= int(np.bitwise_or.reduce(dense_groups, initial=0))
        rows = batch.dense, batch.indptr, batch.indices, batch.values, self.groups, dense_groups, self.asked
        ends, none = np.zeros(len(batch) + 1, np.int64), (np.zeros(0, np.int64), np.zeros(0))
        total = pair_rows(*rows, False, ends, *none)
        longest = int(np.diff(ends).max(initial=0))
        if longest > MOST_PAIRS:
            line = int(batch.lines[int(np.diff(ends).argmax())])
            raise ValueError(f"line {line} has {longest:,} pairs of attributes; name those that matter, as in a:b")
        keys, amounts = np.zeros(total, np.int64), np.zeros(total)
        pair_rows(*rows, True, ends, keys, amounts)
        found = self._columns_of(keys, batch.dense_names)
        return self._merged(batch, ends, found, amounts)

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
        while 2 * (self.many + pairs.size) > self.keys.size:
            self._grow()
        found, fresh = np.zeros(pairs.size, np.int32), np.zeros(pairs.size, np.int64)
        many = place_pairs(pairs, self.keys, self.columns, found, fresh)
        if many:
            self.many += many
            places = fresh[:many]
            numbers = self._named(self.keys[places], dense_names).astype(np.int32)
            self.columns[places] = numbers
            new = found <= FRESH
            found[new] = numbers[FRESH - found[new]]
        return found

    def _grow(self) -> None:
        """Make the table of pairs twice as large."""
        used = self.keys != 0
        keys, columns = self.keys[used], self.columns[used]
        self.keys, self.columns = np.zeros(2 * self.keys.size, np.int64), np.zeros(2 * self.keys.size, np.int32)
        fresh, found = np.zeros(keys.size, np.int64), np.zeros(keys.size, np.int32)
        place_pairs(keys, self.keys, self.columns, found, fresh)
        self.columns[fresh] = columns

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
        if self.grows:
            self.vocabulary.reserve(len(pairs), total)
        found = np.zeros(len(pairs), np.int64)
        number_names(self.vocabulary.names, block, offsets, found, 0, self.grows)
        return found

    def _merged(self, batch: Batch, ends: np.ndarray, found: np.ndarray, amounts: np.ndarray) -> Batch:
        size = len(batch.values) + len(found)
        indptr, indices, values = np.zeros(len(batch) + 1, np.int64), np.zeros(size, np.int32), np.zeros(size)
        rows = batch.indptr, batch.indices, batch.values
        unknown = merge_rows(*rows, ends, found, amounts, indptr, indices, values)
        indices, values = indices[: indptr[-1]], values[: indptr[-1]]
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
            columns=len(self.vocabulary), unknown=batch.unknown + unknown,
        )  # fmt: skip


def _sizes(columns: np.ndarray, sizes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The lengths of the names of columns."""
    is_number = columns >= FIRST_DENSE
    found = np.zeros(len(columns), np.int64)
    found[~is_number] = sizes[columns[~is_number]]
    found[is_number] = numbers[columns[is_number] - FIRST_DENSE]
    return found
