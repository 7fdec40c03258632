"""The running scale against a loop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from linmax.scaling import divided, largest, running

BLOCKS = arrays(
    float,
    st.tuples(st.integers(0, 7), st.integers(1, 4)),
    elements=st.sampled_from([0.0, 1.0, -2.5, 7.0, 1e-300, -1e300]),
)


def slow(block, maxima):
    maxima, scaled = list(maxima), np.zeros_like(block)
    for t, row in enumerate(block):
        for i, value in enumerate(row):
            maxima[i] = max(maxima[i], abs(value))
            scaled[t, i] = value / maxima[i] if maxima[i] else 0.0
    return scaled, maxima


@pytest.mark.small
@given(block=BLOCKS, cut=st.integers(0, 7))
@settings(max_examples=60, deadline=None)
def test_running(block, cut):
    expected, maxima = slow(block, np.zeros(block.shape[1]))
    for kind in (np.array, sparse.csr_array):
        head, between = running(kind(block[:cut]), np.zeros(block.shape[1]))
        tail, after = running(kind(block[cut:]), between)
        found = np.vstack([part.toarray() if sparse.issparse(part) else part for part in (head, tail)])
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(after, maxima)
        np.testing.assert_array_equal(largest(kind(block)), maxima)


@pytest.mark.small
def test_what_comes_in_is_left_alone():
    block, maxima = sparse.csr_array([[2.0, 0.0], [0.0, 4.0]]), np.ones(2)
    block.data.flags.writeable = False
    running(block, maxima)
    divided(block, maxima)
    np.testing.assert_array_equal(maxima, 1.0)
    np.testing.assert_array_equal(block.toarray(), [[2.0, 0.0], [0.0, 4.0]])


def test_a_column_not_yet_seen_is_divided_by_one():
    np.testing.assert_array_equal(divided(np.array([[3.0, 4.0]]), np.array([0.0, 2.0])), [[3.0, 2.0]])
