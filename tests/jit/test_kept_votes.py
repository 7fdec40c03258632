"""Kept instances side by side, and the search for the next close ones, against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from linmax.jit import kept_votes, vote_panels
from linmax.jit.compiling import JIT
from linmax.jit.kept_votes import KEPT_LANES
from linmax.jit.panels import LANES


@njit
def copy_kept(copy: Any, numbers: Any, count: int, codes: Any, span: Any, uses: Any, limit: int) -> int:
    return kept_votes.copy_kept(copy, numbers, count, codes, span, uses, limit)


@njit
def next_kept(sums: Any, copy: Any, tables: Any, slack: int, span: Any, alive: Any) -> int:
    return kept_votes.next_kept(sums, copy, tables, slack, span, alive)


def codes_of(random: np.random.Generator, vectors: int, blocks: int) -> np.ndarray:
    return random.integers(0, 16, blocks * vectors * LANES).astype(np.int8)


@pytest.mark.skipif(not JIT, reason="without the compiler the reference is what runs")
@pytest.mark.parametrize("limit", [1, 3, 2**31 - 1])
@pytest.mark.parametrize("vectors", [1, 6, 34])
def test_copies_of_what_may_be_used(vectors: int, limit: int) -> None:
    random = np.random.default_rng(vectors + limit)
    codes, uses = codes_of(random, vectors, 6), random.integers(0, 6, 6 * LANES).astype(np.int32)
    uses[2 * LANES : 3 * LANES] = 2**31 - 1  # a block of which nothing is left
    for begin, end, count in ((0, 96, 0), (3, 77, 5), (17, 18, 64), (32, 48, 1), (95, 96, 31)):
        found, wanted = (np.zeros((vectors, 192), np.int8) for _ in range(2))
        numbers, which = (np.zeros(192, np.int32) for _ in range(2))
        found[:, :count] = wanted[:, :count] = 7
        after = kept_votes.plain_copy_kept(wanted, which, count, codes, (begin, end), uses, limit)
        assert copy_kept(found, numbers, count, codes, (begin, end), uses, limit) == after
        assert np.array_equal(found[:, :after], wanted[:, :after])
        assert np.array_equal(numbers[count:after], which[count:after])


@pytest.mark.small
def test_a_copy_by_hand() -> None:
    codes = np.arange(2 * LANES, dtype=np.int8)  # two vectors: 0 to 15 and 16 to 31
    uses = np.full(LANES, 9, np.int32)
    uses[[2, 5, 6, 13]] = 0
    copy, numbers = np.zeros((2, 64), np.int8), np.zeros(64, np.int32)
    count = kept_votes.plain_copy_kept(copy, numbers, 0, codes, (3, 14), uses, 9)
    assert (count, numbers[:count].tolist()) == (3, [5, 6, 13])
    assert copy[:, :count].tolist() == [[5, 6, 13], [21, 22, 29]]


@pytest.mark.skipif(not JIT, reason="without the compiler the reference is what runs")
@pytest.mark.parametrize("groups", [1, 5, 8, 9, 16])
@pytest.mark.parametrize("rows", [2, 3, 5, 6, 7, 12])
def test_the_next_that_are_close(rows: int, groups: int) -> None:
    random = np.random.default_rng(100 * rows + groups)
    tables, blocks = np.zeros(groups * vote_panels.TABLE, np.int8), 4
    weights = random.normal(size=4 * groups)
    vote_panels.plain_fill_tables(weights, vote_panels.whole_steps(groups) / np.abs(weights).sum(), tables)
    copy = random.integers(0, 16, ((rows + rows % 2) * groups, blocks * KEPT_LANES)).astype(np.int8)
    alive = random.integers(0, 2**32, blocks)
    alive[1] = 0
    for begin, end in ((0, 128), (3, 120), (17, 18), (32, 64), (70, 71), (127, 128)):
        for slack in (-3000, -700, 0, 32767):
            sums, plain = (np.zeros(rows * KEPT_LANES, np.int16) for _ in range(2))
            wanted = kept_votes.plain_next_kept(plain, copy, tables, slack, (begin, end), alive)
            assert next_kept(sums, copy, tables, slack, (begin, end), alive) == wanted
            if wanted >= 0:
                found, right = (array.reshape(rows, KEPT_LANES) for array in (sums, plain))
                assert np.array_equal(found - found[0], right - right[0])


@pytest.mark.small
def test_places_of_sums() -> None:
    places = [kept_votes.kept_place(row, lane) for row in range(3) for lane in range(KEPT_LANES)]
    assert sorted(places) == list(range(3 * KEPT_LANES))
    assert places[:9] == [*range(8), 16]
