"""Feature maps against brute force."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from linmax import instances, rules, run
from linmax.data.features import pack
from linmax.features import bins, conjunctions, conjunctions_of, constant, negated_literals
from linmax.theory import LinearThreshold

pytestmark = pytest.mark.small


def all_terms(n, k, negated):
    """Every conjunction as a set of literals (variable, negated), by brute force."""
    signs = (False, True) if negated else (False,)
    return [
        frozenset(zip(variables, marks, strict=True))
        for size in range(1, min(n, k) + 1)
        for variables in combinations(range(n), size)
        for marks in product(signs, repeat=size)
    ]


def true_in(row, term):
    return all(bool(row[v]) != negated for v, negated in term)


@st.composite
def problems(draw):
    n = draw(st.integers(1, 5))
    rows = draw(st.lists(st.lists(st.integers(0, 1), min_size=n, max_size=n), min_size=0, max_size=5))
    return np.array(rows, dtype=float).reshape(-1, n), draw(st.integers(1, 6)), draw(st.booleans())


@settings(max_examples=60, deadline=None)
@given(problems(), st.booleans())
def test_conjunctions_equal_brute_force(problem, as_sparse):
    x, k, negated = problem
    features, names = conjunctions(sparse.csr_matrix(x) if as_sparse else x, k, negated)
    expected = all_terms(x.shape[1], k, negated)
    terms = [frozenset((int(part.lstrip("~x")), "~" in part) for part in name.split(" & ")) for name in names]
    assert len(terms) == len(expected) == features.shape[1]
    assert set(terms) == set(expected)
    for term, column in zip(terms, features.toarray().T, strict=True):
        assert column.tolist() == [float(true_in(row, term)) for row in x]
    assert features.has_canonical_format
    assert (features.data == 1).all()


@settings(max_examples=30, deadline=None)
@given(problems(), st.integers(0, 3))
def test_columns_stay_when_variables_are_added(problem, extra):
    x, k, negated = problem
    wider = np.hstack([x, np.ones((len(x), extra))])
    narrow, terms = conjunctions(x, k, negated)
    wide, more = conjunctions(wider, k, negated)
    assert terms == more[: len(terms)]
    np.testing.assert_array_equal(narrow.toarray(), wide.toarray()[:, : len(terms)])


def test_strange_names_do_not_clash():
    names = ["a", "b", "a & b", "~a", "\\", "&", "~", " ", "a &", "& b"]
    terms = conjunctions(np.ones((1, len(names))), 3, negated=True, names=names)[1]
    assert len(set(terms)) == len(terms)


def as_read_only(x):
    x = np.array(x)
    x.setflags(write=False)
    return x


KINDS = {
    "float32": lambda x: x.astype(np.float32),
    "bool": lambda x: x.astype(bool),
    "int8": lambda x: x.astype(np.int8),
    "list": lambda x: x.tolist(),
    "fortran": np.asfortranarray,
    "read-only": as_read_only,
    "strided": lambda x: np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda x: np.ascontiguousarray(x[:, ::-1])[:, ::-1],
    "csr_matrix": sparse.csr_matrix,
    "csr_array float32": lambda x: sparse.csr_array(x.astype(np.float32)),
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_matrix_is_welcome_and_left_alone(kind):
    x = np.array([[0, 1, 1], [1, 0, 1], [0, 0, 0]], dtype=float)
    given_x = KINDS[kind](x)

    def dense(m):
        return m.toarray() if sparse.issparse(m) else np.asarray(m)

    before = dense(given_x).copy()
    terms = all_terms(3, 2, True)
    features, names = conjunctions(given_x, 2, negated=True)
    assert features.toarray().sum() == sum(true_in(row, t) for row in x for t in terms)
    assert names[0] == "x0"
    np.testing.assert_array_equal(dense(negated_literals(given_x)), np.hstack([x, 1 - x]))
    np.testing.assert_array_equal(dense(negated_literals(given_x, "signed")), np.hstack([x, -x]))
    np.testing.assert_array_equal(dense(constant(given_x)), np.hstack([x, np.ones((3, 1))]))
    np.testing.assert_array_equal(dense(given_x), before)
    for out in (negated_literals(given_x), constant(given_x)):
        assert sparse.issparse(out) == sparse.issparse(given_x)
        assert out.dtype == np.float64


def test_unsorted_rows_and_stored_zeros():
    x = sparse.csr_array((np.array([1.0, 0.0, 1.0]), np.array([2, 1, 0]), np.array([0, 3])), shape=(1, 3))
    features, terms = conjunctions(x, 2)
    assert [terms[c] for c in features.indices] == ["x0", "x2", "x0 & x2"]
    assert x.indices.tolist() == [2, 1, 0]


def test_signed_negations_stay_sparse():
    x = sparse.random_array((20, 50), density=0.05, rng=np.random.default_rng(0), format="csr")
    assert negated_literals(x, "signed").nnz == 2 * x.nnz
    assert negated_literals(x, "unit").nnz == 20 * 50 + x.nnz


def test_xor_is_learned_through_conjunctions():
    """x3 xor x7 among ten variables: no linear function of them, a linear one of their 2-conjunctions."""
    x = np.random.default_rng(4).integers(0, 2, (200, 10))
    labels = x[:, 3] ^ x[:, 7]

    def mistakes_of_each_pass(rows, passes=12):
        stream = sparse.vstack([sparse.csr_array(rows)] * passes, format="csr")
        trace = run(rules.perceptron(), instances(attributes=stream), np.tile(labels, passes))
        return np.diff(trace.mistakes[len(x) - 1 :: len(x)], prepend=0)

    features, _ = conjunctions(x, 2, negated=True)
    assert mistakes_of_each_pass(features)[0] > 0
    assert mistakes_of_each_pass(features)[-1] == 0
    assert mistakes_of_each_pass(x).min() > 50


# -- bins -----------------------------------------------------------------------------------------------


def test_bins_of_quantiles_and_of_few_values():
    rows = np.column_stack([np.arange(100.0), np.arange(100) % 3])
    features, binning = bins(rows, 4, names=["n", "c"])
    assert features.shape == (100, 7)
    assert features.sum(axis=0).tolist() == [25, 25, 25, 25, 34, 33, 33]
    assert binning.names == (
        "n < 25", "25 <= n < 50", "50 <= n < 75", "n >= 75", "c < 0.5", "0.5 <= c < 1.5", "c >= 1.5",
    )  # fmt: skip
    later, same = bins([[-5.0, 2.0], [1000.0, 0.0]], like=binning)
    assert same is binning
    assert later.indices.tolist() == [0, 6, 3, 4]


def test_invalid_bins():
    _, binning = bins([[1.0], [2.0]])
    with pytest.raises(ValueError, match="x must be finite, got nan in row 0, column 1; replace it"):
        bins([[1.0, np.nan]])
    with pytest.raises(ValueError, match="x must have 1 columns as the table cut before, got 2"):
        bins([[1.0, 2.0]], like=binning)
    with pytest.raises(ValueError, match="names.*2 columns.*got 1"):
        bins([[1.0, 2.0]], names=["a"])


def test_winnow_over_pairs_of_bins_keeps_its_bound():
    """A rectangle among many attributes: one pair of bins of each, whatever the others are."""
    random = np.random.default_rng(0)
    rows = random.integers(0, 4, (1500, 8)).astype(float)
    literals, binning = bins(rows, 4)
    features, terms = conjunctions(literals, 2, names=binning.names)
    labels = ((rows[:, 0] == 1) & (rows[:, 1] == 2)) | ((rows[:, 2] == 0) & (rows[:, 3] == 3))
    machine = LinearThreshold(rules.winnow(2, threshold=len(terms)))
    machine.run(features, labels)
    assert machine.mistakes <= 2 + 3 * 2 * (1 + np.log2(len(terms)))


# -- instances as dicts ---------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(st.text("ab&~\\ ", max_size=3), st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0, 3.0]), max_size=5),
    st.integers(1, 6),
)
def test_conjunctions_of_a_dict_equal_brute_force(instance, k):
    result = conjunctions_of(instance, k)
    active = {name: s for name, s in instance.items() if s}
    chosen = [c for j in range(1, k + 1) for c in combinations(sorted(active), j)]
    assert len(result) == len(chosen)
    assert list(result.values()) == [math.prod(active[name] for name in c) for c in chosen]
    assert conjunctions_of(dict(reversed(instance.items())), k) == result


def test_conjunctions_of_a_dict_and_of_a_matrix_have_the_same_names():
    names = ["red", "large", "AT&T", "~odd"]
    x = np.array([[1, 0, 1, 1], [0, 1, 1, 0]])
    features, terms = conjunctions(x, 3, names=names)
    for row, stored in zip(x, features.toarray(), strict=True):
        instance = {name: int(v) for name, v in zip(names, row, strict=True)}
        found = {frozenset(term.split(" & ")) for term in conjunctions_of(instance, 3)}
        assert found == {frozenset(terms[column].split(" & ")) for column in np.flatnonzero(stored)}


def test_pack_grows_its_vocabulary_and_leaves_the_given_one():
    first, vocabulary = pack([{"b": 1, "a": 2.5}, {}, {"c": True, "b": 0}])
    np.testing.assert_array_equal(first.toarray(), [[1, 2.5, 0], [0, 0, 0], [0, 0, 1]])
    assert vocabulary == {"b": 0, "a": 1, "c": 2}
    second, grown = pack(({name: 1.0} for name in ("d", "a")), vocabulary)
    np.testing.assert_array_equal(second.toarray(), [[0, 0, 0, 1], [0, 1, 0, 0]])
    assert vocabulary == {"b": 0, "a": 1, "c": 2}
    assert grown == vocabulary | {"d": 3}
    assert second.has_sorted_indices


def test_pack_takes_any_hashable_name_and_numpy_numbers():
    rows, vocabulary = pack([{("word", 3): np.float32(0.5), 7: np.int8(2), "on": np.True_}])
    assert vocabulary == {("word", 3): 0, 7: 1, "on": 2}
    assert rows.toarray().tolist() == [[0.5, 2.0, 1.0]]


def test_pack_of_nothing():
    rows, vocabulary = pack([])
    assert rows.shape == (0, 0)
    assert vocabulary == {}


# -- bad input ------------------------------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: conjunctions([[0, 2]], 2),
            ValueError,
            "x must be 0 or 1, got 2 in row 0, column 1; try x > 0.5",
        ),
        (lambda: conjunctions([[0, 1], [NAN, 1]], 2), ValueError, "got nan in row 1, column 0"),
        (
            lambda: conjunctions(sparse.csr_array([[0, 1], [0, -1]]), 2),
            ValueError,
            "got -1 in row 1, column 1",
        ),
        (
            lambda: conjunctions(sparse.csr_array([[0.0], [0.0], [NAN]]), 2),
            ValueError,
            "got nan in row 2, column 0",
        ),
        (lambda: conjunctions([0, 1], 2), ValueError, r"two dimensions .* got shape \(2,\)"),
        (lambda: conjunctions([[0, 1], [1]], 2), ValueError, "rows of different lengths"),
        (lambda: conjunctions(np.zeros((3, 0)), 2), ValueError, "at least one column"),
        (lambda: conjunctions([["a"]], 2), TypeError, "x must hold numbers"),
        (lambda: conjunctions([[1j]], 2), TypeError, "x must hold numbers"),
        (lambda: conjunctions([[None]], 2), TypeError, "x must hold numbers, got dtype object"),
        (lambda: conjunctions([[0]], 0), ValueError, "k must be >= 1, got 0; try 1"),
        (lambda: conjunctions([[0]], 1.5), TypeError, "k must be a whole number, got 1.5"),
        (lambda: conjunctions([[0]], True), TypeError, "k must be a whole number, got True"),
        (lambda: conjunctions([[0, 1]], 2, names=["a"]), ValueError, "each of the 2 columns of x, got 1"),
        (lambda: conjunctions([[0, 1]], 2, names=["a", "a"]), ValueError, "names must differ, got 'a'"),
        (lambda: conjunctions([[0, 1]], 2, names="ab"), TypeError, "names must be a list of strings"),
        (lambda: conjunctions([[0, 1]], 2, names=["a", 1]), TypeError, "names must be strings, got 1"),
        (lambda: conjunctions(np.zeros((1, 5_000)), 60), ValueError, "k must be smaller: 5000 variables have"),
        (lambda: constant([[INF]]), ValueError, "x must be finite, got inf in row 0, column 0"),
        (lambda: negated_literals([[1.5]]), ValueError, "x must be from 0 to 1, got 1.5"),
        (lambda: negated_literals([[-0.5]]), ValueError, "x must be from 0 to 1, got -0.5"),
        (lambda: negated_literals([[-2]], "signed"), ValueError, "x must be from -1 to 1, got -2"),
        (lambda: negated_literals([[NAN]], "signed"), ValueError, "got nan"),
        (
            lambda: negated_literals([[1]], "binary"),
            ValueError,
            "domain must be 'unit' or 'signed', got 'binary'",
        ),
        (lambda: conjunctions_of([1], 2), TypeError, "instance must be a dict"),
        (lambda: conjunctions_of({1: 1.0}, 2), TypeError, "must be strings, got 1"),
        (lambda: conjunctions_of({"a": "1"}, 2), TypeError, "strength of 'a' must be a number, got '1'"),
        (lambda: conjunctions_of({"a": INF}, 2), ValueError, "strength of 'a' must be finite, got inf"),
        (lambda: conjunctions_of({"a": 1e200, "b": 1e200}, 2), ValueError, "'a & b' must be finite"),
        (lambda: pack({"a": 1.0}), TypeError, "got one dict; put it into a list"),
        (lambda: pack([{"a": 1.0}, ["a"]]), TypeError, r"instances\[1\] must be a dict"),
        (lambda: pack([{"a": NAN}]), ValueError, "strength of 'a' must be finite, got nan"),
        (lambda: pack([{"a": None}]), TypeError, "strength of 'a' must be a number, got None"),
        (lambda: pack([], {"a": 1}), ValueError, "vocabulary must give its 1 names the columns 0..0"),
        (lambda: pack([], {"a": 0, "b": 0}), ValueError, "vocabulary must give its 2 names"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()
