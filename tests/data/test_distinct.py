"""Distinct values, counted or sorted."""

from __future__ import annotations

import numpy as np
import pytest

from linmax.data.distinct import distinct_of


@pytest.mark.small
@pytest.mark.parametrize(
    "array",
    [
        np.array([[3, -1], [7, 3]]),
        np.array([5, 5, 5], np.uint8),
        np.array([[1, 2, 3], [3, 2, 1]], np.int16)[:, ::-1],
        np.array([0, 10**9]),
        np.array([63, 0, 5, 63]) - 9,
        np.array([64, 0, 5, 64]) - 9,
        np.array([2**63 + 1, 2**63], np.uint64),
        np.array([-(2**62), -(2**62) + 3]),
        np.array([-(2**63), 2**63 - 1]),
        np.array([True, False, True]),
        np.array([1.5, -0.0, 1.5]),
        np.array(["b", "a", "b"]),
        np.zeros((0, 3), np.int64),
    ],
    ids=str,
)
def test_distinct_values_are_those_of_numpy(array):
    values, places = distinct_of(array)
    expected, inverse = np.unique(array, return_inverse=True)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(places, inverse.reshape(array.shape))
    assert values.dtype == array.dtype
    assert [type(value) for value in values.tolist()] == [type(value) for value in expected.tolist()]


@pytest.mark.small
@pytest.mark.parametrize("late", [-1, 0, 31, 32, 70_000, -(2**63), 2**63 - 1])
def test_many_values_are_placed_as_few_are(late, monkeypatch):
    monkeypatch.setattr("linmax.data.distinct.MANY_VALUES", 1)
    array = np.append(np.arange(70) % 5, late)
    values, places = distinct_of(array)
    expected, inverse = np.unique(array, return_inverse=True)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(places, inverse)
