"""The best class but the label, masks of nonzero values and paired coordinates against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from linmax.jit import selection
from linmax.jit.compiling import JIT

pytestmark = pytest.mark.skipif(not JIT, reason="without the compiler the reference is what runs")

LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 17, 31, 60, 100]


@njit
def best_but(scores: Any, known: int, skip: int, largest: int) -> int:
    return selection.best_but(scores, known, skip, largest)


@njit
def leads(scores: Any, known: int, label: int, reach: float) -> bool:
    return selection.leads(scores, known, label, reach)


@njit
def bits_of(values: Any, first: int) -> tuple[int, int]:
    bits = selection.nonzero_bits(values, first)
    return bits, selection.lowest_bit(bits) if bits else 64


@njit
def put_pairs(
    index: Any, z: Any, count: int, places: Any, sign: float, rows: Any, values: Any, lo: int, hi: int
) -> None:
    selection.put_pairs(index, z, count, places, sign, rows, values, lo, hi)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([-np.inf, -2.0, -1.0, 0.0, 1.0, 1e300]), min_size=0, max_size=33),
    st.integers(-1, 40),
    st.booleans(),
)
def test_best_but(scores: list[float], skip: int, largest: bool) -> None:
    room = np.full(-(-len(scores) // 8) * 8 + 8, 1e308)  # beyond the known classes, never to be found
    room[: len(scores)] = scores
    got = best_but(room, len(scores), skip, int(largest))
    others = [score for j, score in enumerate(scores) if j != skip]
    if others and max(others) == -np.inf:  # a score that is not a number: any class will do
        assert 0 <= got < len(scores)
        assert got != skip
        return
    assert got == selection.plain_best_but(np.array(scores), len(scores), skip, int(largest))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([-np.inf, np.inf, np.nan, -2.0, -1.0, 0.0, 1.0, 1e300]), min_size=2, max_size=33),
    st.integers(0, 40),
    st.sampled_from([0.0, 1.0, np.inf]),
    st.booleans(),
)
def test_leads(scores: list[float], label: int, reach: float, ahead: bool) -> None:
    label %= len(scores)
    if ahead:
        scores = [min(score, 1.0) for score in scores]
        scores[label] = 1e301
    room = np.full(-(-len(scores) // 8) * 8, 1e308)  # beyond the known classes, never to be looked at
    room[: len(scores)] = scores
    assert leads(room, len(scores), label, reach) == selection.plain_leads(np.array(scores), len(scores), label, reach)


@pytest.mark.parametrize("length", LENGTHS)
def test_put_pairs(length):
    random = np.random.default_rng(length)
    rows, values = random.integers(0, 2**31 - 1, length + 5, dtype=np.int32), random.normal(size=length + 5)
    values[::3] = -0.0
    for sign, places in ((1.0, (3, 5, 24)), (-1.0, (0, 1, 2)), (1.0, (7, 2**40, 1))):
        found = np.full(2 * length + 9, -7), np.full(2 * length + 9, np.nan)
        wanted = found[0].copy(), found[1].copy()
        put_pairs(*found, 3, places, sign, rows, values, 2, 2 + length)
        selection.plain_put_pairs(*wanted, 3, places, sign, rows.astype(np.int64), values, 2, 2 + length)
        assert [one.tobytes() for one in found] == [one.tobytes() for one in wanted]


@njit
def put_votes(index: Any, z: Any, votes: Any, signs: Any, label: int, rival: int) -> int:
    return selection.put_votes(index, z, votes, signs, label, rival)


@pytest.mark.parametrize("voters", LENGTHS)
def test_put_votes(voters: int) -> None:
    random = np.random.default_rng(voters)
    votes, signs = random.integers(-1, 4, voters, dtype=np.int32), random.choice([-1.0, 1.0], voters)
    for label, rival in ((0, 1), (3, 2), (-1, 2), (1, -1)):
        found, wanted = ((np.full(voters, -7), np.full(voters, np.nan)) for _ in range(2))
        count = put_votes(*found, votes, signs, label, rival)
        assert count == selection.plain_put_votes(*wanted, votes, signs, label, rival)
        assert all(np.array_equal(one[:count], other[:count]) for one, other in zip(found, wanted, strict=True))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([0.0, -0.0, 1.0, 5e-324, -3.0]), max_size=150), st.data())
def test_nonzero_bits(values: list[float], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(values)))
    bits, lowest = bits_of(np.array(values), first)
    expected = selection.plain_nonzero_bits(np.array(values), first)
    assert bits % 2**64 == expected
    assert lowest == (selection.plain_lowest_bit(expected) if expected else 64)


@njit
def agreeing(votes: Any, cls: int) -> int:
    return selection.agreeing(votes, cls)


@pytest.mark.parametrize("voters", [0, 1, 4, 7, 8, 13, 20, 31, 63])
def test_agreeing(voters: int) -> None:
    votes = np.random.default_rng(voters).integers(-1, 3, voters, dtype=np.int32)
    for cls in range(4):
        assert agreeing(votes, cls) == selection.plain_agreeing(votes, cls)
