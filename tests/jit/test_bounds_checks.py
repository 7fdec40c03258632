"""With NUMBA_BOUNDSCHECK=1 no access outside an array goes unnoticed, wherever in compiled code it happens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from linmax.jit import compiling

pytestmark = pytest.mark.skipif(not compiling.JIT, reason="is about the compiler")

START = """
import json
import numpy as np
from numba import boolean, float32, float64, int64, types, uint8
import linmax
from linmax.jit import compiling, panels, scores as row_sums, sinh as sinh_loops
from linmax.jit.compiling import address_of, kernel
from linmax.core.contract import STEP, Indices, Matrix, Vector, call_step
from linmax.jit import float_rows as lanes
from linmax.io import bytes as scan

def told(action, *arguments):
    try:
        action(*arguments)
    except IndexError as error:
        return str(error)
    return "nothing"

"""

KERNELS = """
@kernel()
def helper(values, place):
    return values[place]

@kernel(hot=True)
def hot(values, place):
    return values[place]

@kernel(float64(Vector, int64))
def direct(values, place):
    return values[place]

@kernel(float64(Vector, int64))
def by_helper(values, place):
    return helper(values, place) + 1.0

@kernel(float64(Vector, int64))
def by_hot_helper(values, place):
    return hot(values, place) + 1.0

@kernel(float64(Vector, int64))
def by_kernel(values, place):
    return direct(values, place) + 1.0

@kernel(float64(Vector, int64), allocates=True)
def allocating(values, place):
    return np.zeros(values.size)[place] + values[0]

@kernel(types.void(Vector, int64), locked=True)
def writing(values, place):
    values[place] = 1.0

@kernel(STEP)
def step(weights, memory, scalars, index, z, margin, params):
    weights[index[0]] = 1.0
    return True

@kernel(boolean(int64, Vector, Matrix, Indices))
def calling(address, values, memory, index):
    return call_step(address, values, memory, values, index, values, 0.0, values)

def by_address(values, place):
    return calling(address_of(step, STEP), values, np.zeros((0, values.size)), np.array([place]))

functions = (direct, by_helper, by_hot_helper, by_kernel, allocating, writing, by_address)
found = {}
for function in functions:
    inside, beyond, before = (told(function, np.zeros(16), place) for place in (15, 16, -17))
    found[function.__name__] = [inside, beyond, before]
print(json.dumps([found, compiling.CHECKED, direct.compiled.stats.cache_path]))
"""


def test_a_wrong_index_raises_wherever_it_is(in_a_process: Callable[..., Any], tmp_path: Path) -> None:
    script = tmp_path / "kernels.py"
    script.write_text(START + KERNELS)
    for _ in range(2):  # compiled, then read from the cache
        found, checked, folder = in_a_process(script, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path / "cache"))
        assert checked
        assert Path(folder).parent == tmp_path / "cache" / "checked"
        assert len(found) == 7
        for name, outcome in found.items():
            assert outcome == ["nothing", "index is out of bounds", "index is out of bounds"], name


VECTORS = """
Bytes, Floats, Rows = uint8[::1], float32[::1], types.int32[::1]

@kernel(types.void(Vector, Vector, Rows, int64))
def rows(scores, weights, places, base):
    row_sums.sum_rows(scores, scores, 0, 1.0, weights, base, 8, places, weights, 0, places.size)

@kernel(types.void(Vector, Vector, int64))
def dense(scores, weights, base):
    row_sums.sum_dense(scores, weights, base - 8, 1.0, weights, base, 8, weights[:2])

@kernel(float64(Vector, int64))
def largest(scores, known):
    return row_sums.largest_but(scores, known, 0)

@kernel(int64(types.int8[::1], int64), allocates=True)
def codes(block, start):
    return panels.close_codes(np.zeros((2, 16), np.float32), block, start, np.zeros(32, np.float32), 0.0)

@kernel(int64(Floats, int64), allocates=True)
def ratings(block, start):
    return panels.close_ratings(np.zeros((2, 16), np.float32), block, start, np.zeros(3, np.float32), 0.0)

@kernel(float64(Vector, Matrix, Indices))
def sinh(weights, memory, index):
    return sinh_loops.sinh_weights(weights, memory, index, 1.0)

@kernel(int64(Bytes, int64))
def words(block, place):
    return scan.word(block, place)

@kernel(int64(Bytes, int64))
def stops(block, place):
    return scan.stops(block, place, 10, 10)

@kernel(types.float32(Floats, int64))
def sums(cells, place):
    return lanes.sum_row(cells, place, 5)

def whole(*numbers):
    return np.array(numbers, np.int32)

found = {
    "rows": [told(rows, np.zeros(8), np.zeros(32), whole(0, place), 8) for place in (2, 3, -2)],
    "no room for scores": [told(rows, np.zeros(size), np.zeros(32), whole(0), 8) for size in (8, 7)],
    "dense": [told(dense, np.zeros(8), np.zeros(32), base) for base in (16, 24, 7)],
    "largest": [told(largest, np.zeros(16), known) for known in (16, 17)],
    "codes": [told(codes, np.zeros(128, np.int8), start) for start in (64, 65, -1)],
    "ratings": [told(ratings, np.zeros(192, np.float32), start) for start in (96, 97, -1)],
    "sinh": [told(sinh, np.zeros(9), np.zeros((1, 9)), np.array([place])) for place in (8, 9, -1)],
    "words": [told(words, np.zeros(80, np.uint8), place) for place in (72, 73, -1)],
    "stops": [told(stops, np.zeros(80, np.uint8), place) for place in (16, 17)],
    "sums": [told(sums, np.zeros(20, np.float32), place) for place in (15, 16, -1)],
}
print(json.dumps(found))
"""


def test_vectors_are_checked_too(in_a_process: Callable[..., Any], tmp_path: Path) -> None:
    script = tmp_path / "vectors.py"
    script.write_text(START + VECTORS)
    found = in_a_process(script, NUMBA_BOUNDSCHECK="1")
    assert len(found) == 10
    for name, (inside, *outside) in found.items():
        assert inside == "nothing", name
        assert set(outside) == {"a vector is out of bounds"}, name


OWN = """
@linmax.rule
def own(weights, memory, scalars, index, z, margin, params):
    if z.size == 4:  # which the check of a new rule does not try
        beyond = weights.size if weights[index[0]] > 4.0 else 0
        weights[index[0] + beyond] += 1.0
    return z.size == 4

votes, labels = [["a", "b"]] * 12, ["a", "b"] * 6

def learns(learner):
    for vote, label in zip(votes, labels):
        learner.learn(votes=vote, label=label)
    assert learner._path is not None

found = [told(linmax.run, own, linmax.instances(votes=votes), labels)]
for learner in (linmax.Learner(own), linmax.Learner(linmax.recycle(own))):
    found.append([told(learns, learner), learner._path.__class__.__name__])
print(json.dumps(found))
"""


def test_a_wrong_index_in_an_own_rule_raises(in_a_process: Callable[..., Any], tmp_path: Path) -> None:
    script = tmp_path / "own.py"
    script.write_text(START + OWN)
    at_once, plain, recycled = in_a_process(script, NUMBA_BOUNDSCHECK="1")
    assert at_once == "index is out of bounds"
    assert plain == [at_once, "RulesPath"]  # which Python calls as a built-in function
    assert recycled == [at_once, "RulesPath"]


def test_the_mode_cannot_change_in_between(in_a_process: Callable[..., Any], tmp_path: Path) -> None:
    script = tmp_path / "late.py"
    late = """
import os
os.environ["NUMBA_BOUNDSCHECK"] = "0" if compiling.CHECKED else "1"

@kernel(float64(Vector))
def first(values):
    return values[0]

try:
    first(np.zeros(1))
except RuntimeError as error:
    print(json.dumps(str(error)))
"""
    script.write_text(START + late)
    assert in_a_process(script).startswith("NUMBA_BOUNDSCHECK has changed since linmax was imported")
