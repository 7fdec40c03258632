"""On-line scaling against plain formulas on the past, cut anywhere, saved anywhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import linmax
from linmax.core.contract import Trials
from linmax.data.arrays import no_trials
from linmax.data.scaling import SCALINGS, WITHIN, Scaling

pytestmark = pytest.mark.small


def expected(kind: str, rows: list[dict[int, float]], dense: np.ndarray, constant: float) -> list[tuple]:
    """(dense row, sparse row as a dict, constant) of every trial, from the definition."""
    found = []
    for t, row in enumerate(rows):
        seen, width = rows[: t + 1], dense.shape[1]
        x, s, c = dense[t].copy(), dict(row), constant
        if kind in ("log", "idf"):
            x = np.sign(x) * np.log1p(np.abs(x))
            s = {i: math.copysign(math.log1p(abs(v)), v) for i, v in s.items()}
            c = math.log1p(c)
        if kind == "idf":
            s = {i: v * math.log((t + 2) / sum(i in r for r in seen)) for i, v in s.items()}
        if kind == "standard":
            past = dense[: t + 1]
            spread = past.std(axis=0)
            flat = spread <= 1e-10 * np.abs(past.mean(axis=0))
            x = np.where(flat, 0.0, np.clip((x - past.mean(axis=0)) / np.where(flat, 1.0, spread), -5, 5))
            rms = {i: math.sqrt(np.mean([r[i] ** 2 for r in seen if i in r])) for i in s}
            s = {i: min(5.0, max(-5.0, v / rms[i])) for i, v in s.items()}
        if kind == "max":
            largest = np.abs(dense[: t + 1]).max(axis=0)
            x = np.where(largest > 0, x / np.where(largest > 0, largest, 1), 0.0)
            s = {i: v / max(abs(r[i]) for r in seen if i in r) for i, v in s.items()}
        divisor = 1.0
        if kind == "standard":
            divisor = math.sqrt(max(1, width + len(s)))
        elif kind in ("length", "log", "idf"):
            divisor = math.sqrt(sum(x**2) + sum(v**2 for v in s.values()) + c**2) or 1.0
        if kind != "max":
            c /= divisor
        found.append((x / divisor, {i: v / divisor for i, v in s.items()}, c))
    return found


def pack(rows: list[dict[int, float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    indices = np.array([i for row in rows for i in row], np.int32)
    return indptr, indices, np.array([v for row in rows for v in row.values()], float)


values = st.floats(-100, 100).map(lambda v: round(v, 2)).filter(bool)


@st.composite
def blocks(draw):
    count, width = draw(st.integers(1, 6)), draw(st.integers(0, 3))
    rows = draw(st.lists(st.dictionaries(st.integers(0, 4), values, max_size=5), min_size=count, max_size=count))
    cells = st.lists(values, min_size=width, max_size=width)
    dense = np.array(draw(st.lists(cells, min_size=count, max_size=count)), float).reshape(count, width)
    return rows, dense


@settings(max_examples=80, deadline=None)
@given(blocks(), st.sampled_from(["max", "length", "log", "idf", "standard"]), st.sampled_from([0.0, 1.0]))
def test_equals_the_definition(block, kind, constant):
    rows, dense = block
    scaling = Scaling(kind)
    got = scaling.scale(dense, *pack(rows), constant, 5)
    new_dense, indptr, indices, new_values, left = got
    shift, width = int(scaling.prepends), dense.shape[1]
    for t, (x, s, c) in enumerate(expected(kind, rows, dense, constant)):
        part = slice(indptr[t], indptr[t + 1])
        found = dict(zip(indices[part].tolist(), new_values[part].tolist(), strict=True))
        row = new_dense[t]
        if shift and width:
            row, left = row[1:], row[0]
        elif shift:
            left = found.pop(0)
            found = {i - 1: v for i, v in found.items()}
        np.testing.assert_allclose(row, x, rtol=1e-7, atol=1e-9)
        assert found.keys() == s.keys()
        assert all(math.isclose(found[i], v, rel_tol=1e-9, abs_tol=1e-12) for i, v in s.items())
        assert left == pytest.approx(c, rel=1e-12)


def trials_of(dense: np.ndarray, rows: Any) -> Trials:
    indptr, indices, values = pack(rows)
    return no_trials(len(dense))._replace(dense=dense, indptr=indptr, indices=indices, values=values, constant=1.0)


def stream(random: np.random.Generator, count: int = 60) -> Trials:
    rows = [
        {int(i): float(v) for i, v in zip(random.permutation(30)[:7], random.normal(size=7), strict=True)}
        for _ in range(count)
    ]
    return trials_of(random.normal(size=(count, 3)) * [1, 100, 0.01], rows)


def part(given: Trials, begin: int, end: int) -> Trials:
    lo, hi = given.indptr[begin], given.indptr[end]
    return given._replace(
        dense=given.dense[begin:end],
        indptr=given.indptr[begin : end + 1] - lo,
        indices=given.indices[lo:hi],
        values=given.values[lo:hi],
    )


@pytest.mark.parametrize("kind", [kind for kind in SCALINGS if kind != "auto"])
@pytest.mark.parametrize("step", [1, 7, 59])
def test_cut_and_saved_anywhere_gives_the_same_bits(kind, step):
    whole = stream(np.random.default_rng(5))
    expected = Scaling(kind).apply(whole)
    scaling, found = Scaling(kind), []
    for begin in range(0, 60, step):
        piece = part(whole, begin, min(60, begin + step))
        judged = scaling.apply(piece, learn=False)
        if step == 1:  # what is judged is what is learned, when nothing comes between
            assert judged.values.tobytes() == scaling.apply(piece, learn=False).values.tobytes()
        learned = scaling.apply(piece)
        if step == 1:
            assert judged.values.tobytes() == learned.values.tobytes()
            assert judged.dense.tobytes() == learned.dense.tobytes()
        found.append(learned)
        scaling = Scaling.from_state(scaling.description, {k: v.copy() for k, v in scaling.arrays.items()})
    assert np.concatenate([f.dense for f in found]).tobytes() == expected.dense.tobytes()
    assert np.concatenate([f.values for f in found]).tobytes() == expected.values.tobytes()
    assert np.concatenate([f.indices for f in found]).tolist() == expected.indices.tolist()
    assert {f.constant for f in found} == {expected.constant}


def test_auto_looks_at_the_first_instances():
    assert Scaling().kind == "auto"
    thick, thin = Scaling(), Scaling()
    thick.apply(np.ones((2, 2)))
    thin.apply(sparse.csr_array(np.eye(3)))
    assert (thick.in_effect, thin.in_effect) == ("standard", "idf")
    assert (thick.prepends, thin.prepends) == (False, True)
    with pytest.raises(ValueError, match="there were 0 dense attributes so far, got 2"):
        thin.apply(np.ones((1, 2)))


def sparse_rows(random: np.random.Generator, present: int, count: int = 60) -> list[dict[int, float]]:
    """Of 40 attributes so many are there; some of them every time."""
    return [
        {int(i): float(v) for i, v in zip(random.permutation(40)[:present], random.normal(size=present), strict=True)}
        for _ in range(count)
    ]


@pytest.mark.parametrize("kind", ["auto", WITHIN])
@pytest.mark.parametrize("present", [2, 9, 40])
def test_auto_takes_sparse_numbers_for_numbers(kind, present):
    rows = sparse_rows(np.random.default_rng(present), present)
    scaling = Scaling()
    if kind == WITHIN:
        scaling.keep_within()
    got = scaling.scale(np.zeros((60, 0)), *pack(rows), 1.0, 40)
    kinds = {"idf", "standard" if kind == "auto" else "max"}
    by_kind = {one: expected(one, rows, np.zeros((60, 0)), 1.0) for one in kinds}
    told = []
    for t in range(60):
        met = len({i for row in rows[:t] for i in row})
        share = sum(map(len, rows[:t])) / max(1, met * t)
        told.append("idf" if share < max(0.1, 1.2 / math.sqrt(max(1, t))) else (kinds - {"idf"}).pop())
        _, row, constant = by_kind[told[-1]][t]
        piece = slice(got[1][t], got[1][t + 1])
        found = dict(zip(got[2][piece].tolist(), got[3][piece].tolist(), strict=True))
        assert found.pop(0) == pytest.approx(constant)
        assert found == pytest.approx({i + 1: value for i, value in row.items()})
    assert (set(told[30:]) == {"idf"}) == (present == 2)
    assert kind == "auto" or np.abs(got[3]).max() <= 1.0


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("present", [2, 9, 40])
def test_auto_is_the_same_cut_and_saved_anywhere(within, present):
    rows = sparse_rows(np.random.default_rng(present), present)
    whole = trials_of(np.zeros((60, 0)), rows)
    scaling, once, found = Scaling(), Scaling(), []
    if within:
        scaling.keep_within()
        once.keep_within()
    for begin in range(0, 60, 7):
        piece = part(whole, begin, min(60, begin + 7))
        scaling.apply(piece, learn=False)
        found.append(scaling.apply(piece).values)
        scaling = Scaling.from_state(scaling.description, {k: v.copy() for k, v in scaling.arrays.items()})
    assert np.concatenate(found).tobytes() == once.apply(whole).values.tobytes()
    assert scaling.in_effect == once.in_effect


def test_columns_grow():
    scaling = Scaling("idf", constant=0)
    first = scaling.apply(sparse.csr_array([[1.0, 1.0]]))
    second = scaling.apply(sparse.csr_array([[1.0, 0.0, 1.0]]))
    np.testing.assert_allclose(first.toarray(), [[math.sqrt(0.5), math.sqrt(0.5)]])
    common, rare = math.log(3 / 2), math.log(3)
    np.testing.assert_allclose(second.toarray()[0, [0, 2]], np.array([common, rare]) / math.hypot(common, rare))
    assert scaling.arrays["sparse"].shape == (3, 2)


def test_missing_values_are_not_learned():
    scaling = Scaling("standard", constant=0)
    found = scaling.apply(np.array([[1.0], [np.nan], [3.0]]))
    assert found.ravel().tolist() == [0.0, 0.0, 1.0]
    assert scaling.arrays["dense"][0, 0] == 2


def test_constant_column_is_not_amplified():
    assert not Scaling("standard", constant=0).apply(np.full((1000, 1), 0.1)).any()


def test_instances_from_experts():
    given = linmax.instances(votes=[["a"], ["b"]], attributes=[{"x": 1.0}, {"y": 2.0}])
    scaled = Scaling("idf").apply(given)
    assert scaled.attribute_names == ("constant", "x", "y")
    assert scaled.vocabulary == {"constant": 0, "x": 1, "y": 2}
    assert scaled.constant == 0.0
    np.testing.assert_allclose(np.linalg.norm(scaled.csr.toarray(), axis=1), 1.0)
    assert linmax.run("perceptron", scaled, ["a", "b"]).mistakes[-1] <= 2
    plain = linmax.instances(attributes=[[1.0, 2.0], [3.0, 5.0]])
    assert Scaling("standard").apply(plain).constant == pytest.approx(math.sqrt(0.5))


def test_refusals():
    with pytest.raises(ValueError, match="kind must be one of none, max"):
        Scaling("minmax")
    with pytest.raises(ValueError, match="at most 1e\\+100"):
        Scaling("max").apply(np.array([[1e200]]))
    with pytest.raises(ValueError, match="shape"):
        Scaling("max").apply(np.ones(3))
    scaling = Scaling("standard")
    scaling.apply(np.ones((1, 2)))
    with pytest.raises(ValueError, match="2 dense attributes so far, got 3"):
        scaling.apply(np.ones((1, 3)))


def test_arrays_that_may_not_be_written_to() -> None:
    table = np.array([[1.0, -2.0], [3.0, 0.5]])
    matrix = sparse.csr_array(table)
    for kind in SCALINGS:
        expected_dense, expected_sparse = Scaling(kind).apply(table), Scaling(kind).apply(matrix).toarray()
        for array in (table, matrix.data, matrix.indices, matrix.indptr):
            array.flags.writeable = False
        np.testing.assert_array_equal(Scaling(kind).apply(table), expected_dense)
        np.testing.assert_array_equal(Scaling(kind).apply(matrix).toarray(), expected_sparse)
        np.testing.assert_array_equal(table, [[1.0, -2.0], [3.0, 0.5]])
