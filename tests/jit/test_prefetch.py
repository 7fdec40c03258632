"""A prefetch changes nothing, wherever it points."""

import numpy as np
import pytest
from numba import float64, int64

from linmax.jit.compiling import kernel
from linmax.jit.prefetch import fetch


@kernel(float64(float64[:, ::1], int64))
def read_after_prefetch(array, place):
    fetch(array, place)
    return array[0, 0]


@pytest.mark.small
@pytest.mark.parametrize("place", [0, 5, 6, 10**6])
def test_a_prefetch_changes_nothing(place):
    array = np.arange(6.0).reshape(2, 3) + 1.0
    assert read_after_prefetch(array, place) == 1.0
    assert array.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
