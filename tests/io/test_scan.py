"""Decimal numbers and names in compiled code, against Python's own."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import float64, int64, types

from linmax.io.bytes import (
    BAD,
    GOOD,
    HARD,
    PADDING,
    WILD,
    Block,
    number,
    plain_number,
    powers,
    stops,
    trailing,
    whole_number,
)
from linmax.io.vocabulary import Vocabulary
from linmax.jit.compiling import JIT, kernel

pytestmark = pytest.mark.small

_read = kernel(types.Tuple((float64, int64, int64))(Block, int64, float64[::1], int64[:, ::1]))(
    number.py_func if JIT else number
)
_stop = kernel(int64(Block, int64, int64, int64))(lambda block, place, a, b: trailing(stops(block, place, a, b)))


_plain = kernel(float64(Block, int64, int64, float64[::1]))(
    lambda block, place, length, tens: plain_number(block, place, length, tens)
)
_whole = kernel(int64(Block, int64, int64))(lambda block, place, length: whole_number(block, place, length))


def block_of(text: bytes) -> np.ndarray:
    return np.frombuffer(text + b"\n" * PADDING, np.uint8).copy()


def read(text: str) -> tuple[float, int, int]:
    value, end, status = _read(block_of(text.encode()), 0, *powers())
    return float(value), int(end), int(status)


def same(a: float, b: float) -> bool:
    return struct.pack("d", a) == struct.pack("d", b)


@settings(max_examples=300, deadline=None)
@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["{!r}", "{:.17g}", "{:e}", "{:.3f}", "{:.20g}", "{:.1f}"]),
)
@example(5e-324, "{!r}")
@example(2.2250738585072011e-308, "{!r}")
@example(1.7976931348623157e308, "{!r}")
@example(9007199254740993.0, "{:.1f}")
def test_rounds_as_python_does(value, form):
    text = form.format(value)
    found, end, status = read(text)
    if status == HARD:
        assert sum(c.isdigit() for c in text) > 18
        return
    if status == WILD:
        assert math.isinf(float(text))
        return
    assert status == GOOD
    assert end == len(text)
    assert same(found + 0.0, float(text) + 0.0), text  # the sign of 0 is not kept


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 10**18), st.integers(-330, 300))
def test_rounds_any_mantissa_and_exponent(mantissa, exponent):
    text = f"{mantissa}e{exponent}"
    found, _, status = read(text)
    expected = float(text)
    assert status == (WILD if math.isinf(expected) else GOOD)
    assert math.isinf(expected) or same(found, expected), text


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "-0",
        "+1",
        ".5",
        "5.",
        "1e5",
        "1E-5",
        "00012.50",
        "123456789012345678",
        "0.1",
        "1e-400",
        "0e999",
        "0.000000000000000000000000001",
    ],
)
def test_forms(text):
    found, end, status = read(text)
    assert (end, status) == (len(text), GOOD)
    assert found == float(text)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", BAD),
        (".", BAD),
        ("-", BAD),
        ("e5", BAD),
        ("1e", BAD),
        ("x", BAD),
        ("nan", WILD),
        ("-inf", WILD),
        ("1e400", WILD),
        ("9" * 400, WILD),
    ],
)
def test_invalid_numbers(text, status):
    assert read(text)[2] == status


def test_digits_that_cannot_be_dropped_are_left_to_python():
    text = "0.1000000000000000055511151231257827021181583404541015626"
    value, end, status = read(text)
    assert end == len(text)
    assert status in (GOOD, HARD)
    assert abs(value - float(text)) <= math.ulp(0.1)


digits = st.text("0123456789", max_size=9)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.builds("{}{}{}".format, digits, st.sampled_from(["", "."]), digits), st.text("09.:/-e\xff", max_size=17)
    )
)
@example("")
@example(".")
@example("5.")
@example("99999999")
@example("1234567.12345678")
@example("12345678.1234567")
@example("0.12345678901234")
@example("1..2")
@example("1/2")
@example("0.1234567:")
def test_plain_numbers(text):
    raw = text.encode("latin-1")
    found = float(_plain(block_of(b"7" + raw + b"7"), 1, len(raw), powers()[0]))
    is_plain = text.isascii() and text.replace(".", "", 1).isdigit() and len(text) <= 16
    if not is_plain:
        assert found == -1.0
    elif len(text) <= 8 or "." in text[:8]:
        assert same(found, float(text))
    else:
        assert found == -1.0  # left to `number`


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.integers(0, 10**8 - 1).map(str), st.text("0189:/.a\xff", min_size=1, max_size=8)))
def test_whole_numbers(text):
    raw = text.encode("latin-1")
    found = int(_whole(block_of(b"1" + raw + b"1"), 1, len(raw)))
    assert found == (int(text) if text.isascii() and text.isdigit() else -1)


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=1, max_size=31))
def test_stops_at_the_first_delimiter(text):
    expected = next((i for i, c in enumerate(text + b"\n") if c <= 32 or c in b":|"))
    assert _stop(block_of(text), 0, 58, 124) == expected


# -- names --------------------------------------------------------------------------------------------------------

names = st.lists(st.text("abcd\u00e9^=", max_size=20), max_size=60)


@settings(max_examples=80, deadline=None)
@given(names, st.data())
def test_numbers_names_as_a_dict_does(words, data):
    vocabulary, expected = Vocabulary(), {}
    cut = data.draw(st.integers(0, len(words)))
    for part in (words[:cut], words[cut:]):
        found = vocabulary.numbers(part).tolist()
        assert found == [expected.setdefault(word, len(expected)) for word in part]
    assert [vocabulary[i] for i in range(len(vocabulary))] == list(expected)
    again = Vocabulary.from_arrays(vocabulary.arrays())
    assert again.numbers(words, add=False).tolist() == [expected[word] for word in words]
    assert len(again) == len(expected)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.text("ab", min_size=1, max_size=18), st.text("abc", min_size=1, max_size=18)), max_size=30)
)
def test_a_prefix_and_a_rest_are_one_name(pairs):
    split, whole = Vocabulary(), Vocabulary()
    for head, rest in pairs:
        number = split.numbers([rest], split.prefixes([head.encode()])[0])[0]
        assert number == whole.numbers([head + rest])[0]
        assert split[int(number)] == head + rest
        assert split.numbers([head + rest], add=False)[0] == number
    assert len(split) == len(whole)


def test_many_names_in_few_slots():
    vocabulary = Vocabulary()
    words = [f"name{i}" for i in range(5000)] + [f"a rather long name, number {i}" for i in range(5000)]
    assert vocabulary.numbers(words).tolist() == list(range(10000))
    assert vocabulary.numbers(words[::-1]).tolist() == list(range(10000))[::-1]
    assert vocabulary[9999] == words[9999]
    first = Vocabulary.from_arrays(vocabulary.arrays(100))
    assert len(first) == 100
    assert first.numbers([words[100]], add=False).tolist() == [-1]


def test_hashed_names():
    vocabulary = Vocabulary(4)
    found = vocabulary.numbers([f"name{i}" for i in range(1000)])
    assert len(vocabulary) == 16
    assert set(found.tolist()) == set(range(16))
    assert vocabulary[3] == "#3"
    assert vocabulary.numbers(["name7"]).tolist() == [found[7]]


def test_refusals():
    with pytest.raises(ValueError, match="hash bits must be from 1 to 30, got 40; try 18"):
        Vocabulary(40)
    with pytest.raises(IndexError, match="0 names"):
        Vocabulary()[0]
    with pytest.raises(ValueError, match="damaged"):
        Vocabulary.from_arrays({"names": np.zeros(2, np.uint8), "offsets": np.array([0, 1, 3])})
    with pytest.raises(ValueError, match="twice"):
        Vocabulary.from_arrays({"names": np.zeros(2, np.uint8), "offsets": np.array([0, 1, 2])})
