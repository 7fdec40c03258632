"""linmax.instances(...): what goes in, in every form, comes out as the same instances; what cannot be used is refused."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import linmax
from linmax import run
from linmax.jit.compiling import JIT

RULES = ["perceptron", "winnow(1.5)", "balanced-winnow(2)", "alma(3, alpha=0.8)", "p-norm(3)", "sasb"]
RNG = np.random.default_rng(11)
SIZE = 30 if JIT else 8
DENSE = RNG.integers(-4, 5, (SIZE, 3)) / 4.0  # exact in float16
VOTES = RNG.integers(3, size=(SIZE, 4))
RATINGS = RNG.integers(0, 5, (SIZE, 2, 3)) / 4.0
LABELS = RNG.integers(3, size=SIZE)


def outcome(instances: Any, labels: Any = LABELS) -> list[Any]:
    """Everything that a few rules make of the instances."""
    found: list[Any] = []
    for rule in RULES:
        trace = run(rule, instances, labels)
        weights = trace.model.weights.arrays
        found.append((trace.predictions.tolist(), trace.changed.tolist(), weights.flat.tolist(), weights.log_scale))
    return found


def frozen(array: np.ndarray) -> np.ndarray:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def strided(array: np.ndarray) -> np.ndarray:
    """The same numbers, every second of a larger array in each direction."""
    room = np.zeros([2 * n for n in array.shape], array.dtype)
    view = room[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


# -- forms of the same ---------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize(
    "form",
    [
        lambda a: a.astype(np.float32),
        lambda a: a.astype(np.float16),
        lambda a: a.astype(np.longdouble),
        lambda a: a.astype(">f8"),
        np.asfortranarray,
        frozen,
        strided,
        lambda a: a[::-1][::-1],
        lambda a: a.tolist(),
        lambda a: [list(row) for row in a],
        lambda a: a.astype(object),
    ],
    ids=[
        "float32",
        "float16",
        "longdouble",
        "big-endian",
        "Fortran",
        "read-only",
        "strided",
        "reversed",
        "list",
        "rows",
        "objects",
    ],
)
def test_numbers_of_any_form(form: Any) -> None:
    expected = outcome(linmax.instances(attributes=DENSE, scores=RATINGS))
    assert outcome(linmax.instances(attributes=form(DENSE), scores=form(RATINGS))) == expected


@pytest.mark.small
def test_whole_numbers_and_booleans() -> None:
    bits = (DENSE > 0).astype(float)
    expected = outcome(linmax.instances(attributes=bits))
    for kind in (bool, np.int8, np.uint8, np.int64, np.float32):
        assert outcome(linmax.instances(attributes=bits.astype(kind))) == expected
        assert outcome(linmax.instances(attributes=pd.DataFrame(bits.astype(kind)))) == expected


@pytest.mark.small
def test_data_frames_give_names() -> None:
    frame = pd.DataFrame(DENSE, columns=["x", "y", "z"], index=range(100, 100 + SIZE))
    instances = linmax.instances(attributes=frame)
    assert instances.attribute_names == ("x", "y", "z")
    assert outcome(instances, pd.Series(LABELS, index=frame.index)) == outcome(linmax.instances(attributes=DENSE))
    voters = pd.DataFrame(VOTES, columns=list("abcd"))
    assert linmax.instances(votes=voters).voter_names == ("a", "b", "c", "d")
    assert outcome(linmax.instances(votes=voters)) == outcome(linmax.instances(votes=VOTES))
    names = pd.DataFrame({"a": pd.Categorical(["u", "v"]), "b": ["v", None]})
    assert linmax.instances(votes=names).votes.tolist() == [[0, 1], [1, -1]]
    missing = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [2, 1]})
    assert linmax.instances(votes=missing).votes.tolist() == [[0, 1], [-1, 0]]


@pytest.mark.small
@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_sparse_of_any_kind(kind: str) -> None:
    """Sparse attributes are dense ones: the same predictions, updates and weights."""
    expected = outcome(linmax.instances(attributes=DENSE))
    for make in (sparse.csr_array, sparse.csr_matrix):
        assert outcome(linmax.instances(attributes=make(DENSE).asformat(kind))) == expected


@pytest.mark.small
def test_sparse_in_any_state() -> None:
    """Read-only, of other types, unsorted, with duplicates to be added up and zeros written out; never changed."""
    canonical = sparse.csr_array(DENSE)
    expected = outcome(linmax.instances(attributes=canonical))
    locked = sparse.csr_array(DENSE)
    for array in (locked.data, locked.indices, locked.indptr):
        array.flags.writeable = False
    wide = sparse.csr_array(DENSE)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    half = np.repeat(DENSE / 2.0, 2, axis=1)[:, ::-1]
    twice = sparse.csr_array((half.ravel(), np.tile([2, 2, 1, 1, 0, 0], SIZE), np.arange(SIZE + 1) * 6), DENSE.shape)
    zeros = sparse.csr_array((DENSE.ravel(), np.tile([0, 1, 2], SIZE), np.arange(SIZE + 1) * 3), DENSE.shape)
    for matrix in (locked, wide, twice, zeros, canonical.astype(np.float32)):
        before = (matrix.data.copy(), matrix.indices.copy(), matrix.indptr.copy())
        assert outcome(linmax.instances(attributes=matrix)) == expected
        assert all(
            np.array_equal(a, b) for a, b in zip(before, (matrix.data, matrix.indices, matrix.indptr), strict=True)
        )
    bits = sparse.csr_array(DENSE > 0)
    assert outcome(linmax.instances(attributes=bits)) == outcome(linmax.instances(attributes=(DENSE > 0).astype(float)))


@pytest.mark.small
def test_inputs_are_not_changed() -> None:
    dense, votes, ratings = DENSE.copy(), VOTES.copy(), RATINGS.copy()
    outcome(linmax.instances(votes, ratings, dense, negated=True, split="all", scale="max"))
    assert np.array_equal(dense, DENSE)
    assert np.array_equal(votes, VOTES)
    assert np.array_equal(ratings, RATINGS)


@pytest.mark.small
def test_votes_of_any_form() -> None:
    expected = outcome(linmax.instances(votes=VOTES))
    letters = np.array(["a", "b", "c"])
    for form in (
        VOTES.tolist(),
        VOTES.astype(np.int8),
        VOTES.astype(float),
        strided(VOTES),
        frozen(VOTES),
        VOTES.astype(object),
    ):
        assert outcome(linmax.instances(votes=form)) == expected
    named = [run(rule, linmax.instances(votes=letters[VOTES]), letters[LABELS]).predictions for rule in RULES]
    assert [letters[p].tolist() for p in (np.array(e[0]) for e in expected)] == [p.tolist() for p in named]


@pytest.mark.small
def test_abstaining() -> None:
    """None, nan, a masked entry, pandas' NA, or a label of one's own: all the same."""
    silent = RNG.random(VOTES.shape) < 0.4
    expected = linmax.instances(votes=np.where(silent, None, VOTES), classes=range(3)).votes
    assert (expected == np.where(silent, -1, VOTES)).all()
    forms = [
        {"votes": np.where(silent, np.nan, VOTES)},
        {"votes": np.ma.masked_array(VOTES, silent)},
        {"votes": np.where(silent, -1, VOTES), "abstain": -1},
        {"votes": np.where(silent, "?", VOTES.astype(object)), "abstain": "?"},
        {"votes": pd.DataFrame(VOTES).mask(silent)},
        {"votes": pd.DataFrame(VOTES).astype("Int64").mask(silent)},
        {
            "votes": [
                [None if s else int(v) for v, s in zip(*row, strict=True)] for row in zip(VOTES, silent, strict=True)
            ]
        },
    ]
    for form in forms:
        assert np.array_equal(linmax.instances(**form, classes=range(3)).votes, expected)
    nobody = linmax.instances(votes=[[None, None]] * 3, classes=["a", "b"], thresholds=False)
    trace = run("winnow(2)", nobody, ["b", "a", "b"])
    assert trace.predictions.tolist() == ["a", "a", "a"]
    assert trace.model.weights.arrays.voters.tolist() == [1.0, 1.0]


@pytest.mark.small
def test_votes_of_several_kinds_keep_their_type() -> None:
    instances = linmax.instances(votes=[[1, "a"], ["1", 1]])
    assert len(instances.names) == 3
    trace = run("perceptron", instances, [1, "1"])
    assert set(trace.model.classes) == {1, "1", "a"}


@pytest.mark.small
def test_named_attributes() -> None:
    rows = [{f"x{c}": v for c, v in enumerate(row) if v} for row in DENSE]
    instances = linmax.instances(attributes=rows)
    assert instances.vocabulary is not None
    order = [f"x{c}" for c in range(3)]
    again = linmax.instances(attributes=rows, vocabulary={name: i for i, name in enumerate(order)})
    assert again.attribute_names == tuple(order)
    assert outcome(again) == outcome(linmax.instances(attributes=sparse.csr_array(DENSE)))
    turned = linmax.instances(attributes=rows, vocabulary={"x2": 2, "x0": 0, "x1": 1})
    assert turned.attribute_names == tuple(order)
    more = linmax.instances(attributes=[{"new": 1.0}], vocabulary=again.vocabulary)
    assert more.attribute_names == (*order, "new")
    assert again.attribute_names == tuple(order)


# -- cutting and measuring -----------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize(
    "trials",
    [slice(3, 7), slice(None, None, 2), slice(None, None, -1), np.array([5, 0, 5]), [1, 2], np.arange(SIZE) % 3 == 0],
    ids=str,
)
def test_slices(trials: Any) -> None:
    whole = linmax.instances(VOTES, RATINGS, DENSE, classes=range(3))
    thin = linmax.instances(votes=VOTES, attributes=sparse.csr_array(DENSE), classes=range(3))
    part, thin_part = whole[trials], thin[trials]
    direct = linmax.instances(VOTES[trials], RATINGS[trials], DENSE[trials], classes=range(3))
    assert len(part) == len(VOTES[trials])
    assert outcome(part, LABELS[trials]) == outcome(direct, LABELS[trials])
    direct = linmax.instances(votes=VOTES[trials], attributes=sparse.csr_array(DENSE[trials]), classes=range(3))
    assert outcome(thin_part, LABELS[trials]) == outcome(direct, LABELS[trials])


def test_one_trial_is_a_slice() -> None:
    with pytest.raises(TypeError, match=r"instances\[3\] is one trial; slice it: instances\[3:4\]"):
        _ = linmax.instances(votes=VOTES)[3]


@pytest.mark.small
def test_range() -> None:
    """The largest difference of two ratings of one sub-expert; attributes count as they are."""
    assert linmax.instances(votes=VOTES, thresholds=False).range == 1.0
    assert linmax.instances(attributes=[[0.25, -3.0]], thresholds=False).range == 3.0
    assert linmax.instances(attributes=sparse.csr_array([[0.25, -3.0]])).range == 3.0
    assert linmax.instances(attributes=[[0.25]]).range == 1.0  # the constant
    assert linmax.instances(scores=[[[5.0, 7.5]]], thresholds=False).range == 2.5
    assert linmax.instances(scores=[[[5.0, 7.5]]], split="all", thresholds=False).range == 7.5


@pytest.mark.small
def test_scaling_is_asked_for_and_kept() -> None:
    x = np.array([[10.0, 0.0, -4.0], [5.0, 0.0, 8.0]])
    scaled = linmax.instances(attributes=x, scale="max")
    assert scaled.dense.tolist() == [[1.0, 0.0, -0.5], [0.5, 0.0, 1.0]]
    assert linmax.instances(attributes=sparse.csr_array(x), scale="max").csr.toarray().tolist() == scaled.dense.tolist()
    later = linmax.instances(attributes=[[20.0, 1.0, 0.0]], scale=scaled.scale)
    assert later.dense.tolist() == [[2.0, 1.0, 0.0]]
    assert linmax.instances(attributes=x, scale=2.0).dense.tolist() == (x / 2.0).tolist()
    ratings = np.array([[[1.0, 5.0], [0.0, 0.5]]])
    assert linmax.instances(scores=ratings, scale="max").scores.tolist() == [[[0.25, 1.25], [0.0, 1.0]]]
    assert linmax.instances(scores=ratings, scale="max").range == 1.0
    assert linmax.instances(attributes=x).dense.tolist() == x.tolist()
    run("winnow(1.1)", scaled, ["a", "b"])


@pytest.mark.small
def test_the_names_of_copies_and_splits() -> None:
    instances = linmax.instances(
        votes=pd.DataFrame([["u", "v"]], columns=["p", "q"]),
        attributes=pd.DataFrame([[1.0]], columns=["x"]),
        negated=True,
        split={1: "v"},
    )
    assert instances.voter_names == ("p", "q", "-p", "-q")
    assert instances.attribute_names == ("x", "-x", "q:v")
    assert repr(instances) == "<1 instances: 4 voters, 0 raters, 3 attributes and thresholds>"
    assert linmax.instances(votes=VOTES, thresholds=False).layout.rows == 0


# -- refusals ------------------------------------------------------------------------------------------------

BAD: list[tuple[Any, type[Exception], str]] = [
    (lambda: linmax.instances(), ValueError, r"instances\(\) needs votes, scores or attributes; got none of them"),
    (
        lambda: linmax.instances(votes=[["a"]], attributes=[[1.0], [2.0]]),
        ValueError,
        "one row per trial, but votes has 1, attributes has 2",
    ),
    (lambda: linmax.instances(votes=3), TypeError, "votes must be an array with one row per trial, got int"),
    (lambda: linmax.instances(votes=[1, 2, 3]), ValueError, "votes must be .*got 1 at trial 0; one voter is"),
    (lambda: linmax.instances(votes=["a", "b"]), ValueError, "votes must be .*got 'a' at trial 0; one voter is"),
    (
        lambda: linmax.instances(votes=[["a", "b"], ["a", ("b", ["c"])]]),
        TypeError,
        r"votes: \('b', \['c'\]\) at trial 1, voter 1 is not hashable; use one class",
    ),
    (
        lambda: linmax.instances(votes=[["a", "b"], ["a"]]),
        ValueError,
        r"same length, got \['a'\] at trial 1; one voter",
    ),
    (
        lambda: linmax.instances(votes=np.array([1, 2])),
        ValueError,
        r"votes must be \(trials, voters\), got shape \(2,\); one voter is",
    ),
    (
        lambda: linmax.instances(votes=[["a", "x"]], classes=["a", "b"]),
        ValueError,
        "voter '1' voted for 'x' at trial 0, .*not among classes=.*add it",
    ),
    (
        lambda: linmax.instances(attributes=[1.0, 2.0]),
        ValueError,
        r"attributes must be \(trials, attributes\), got shape \(2,\); reshape",
    ),
    (
        lambda: linmax.instances(attributes=[[1.0], [1.0, 2.0]]),
        ValueError,
        "attributes must be .*different lengths; make them equally long",
    ),
    (lambda: linmax.instances(attributes=[[1.0, "x"]]), TypeError, "attributes must be numbers, got 'x'; encode text"),
    (lambda: linmax.instances(attributes=[["1", "2"]]), TypeError, "attributes must be numbers, got '1'; encode text"),
    (
        lambda: linmax.instances(attributes=[[1.0, None]]),
        ValueError,
        r"attributes must be finite, got nan at \(0, 1\); fill or drop it",
    ),
    (lambda: linmax.instances(attributes=[[1j]]), TypeError, r"attributes must be numbers, got 1j; encode"),
    (
        lambda: linmax.instances(attributes=[[math.nan]]),
        ValueError,
        r"attributes must be finite, got nan at \(0, 0\); fill or drop it",
    ),
    (
        lambda: linmax.instances(attributes=[[0.0], [math.inf]]),
        ValueError,
        r"attributes must be finite, got inf at \(1, 0\); fill",
    ),
    (
        lambda: linmax.instances(attributes=[[math.inf], [-math.inf]]),
        ValueError,
        r"attributes must be finite, got inf at \(0, 0\)",
    ),
    (
        lambda: linmax.instances(attributes=sparse.csr_array([[math.nan]])),
        ValueError,
        "attributes must be finite, got nan at",
    ),
    (
        lambda: linmax.instances(attributes=sparse.csr_array([[1j]])),
        TypeError,
        "attributes must be numbers, got a sparse array of complex",
    ),
    (lambda: linmax.instances(attributes=[{"a": math.nan}]), ValueError, "nan"),
    (lambda: linmax.instances(attributes=[{"a": "x"}]), TypeError, "'x'"),
    (
        lambda: linmax.instances(scores=[[1.0, 2.0]]),
        ValueError,
        r"scores must be \(trials, raters, classes\), got shape \(1, 2\); reshape",
    ),
    (
        lambda: linmax.instances(scores=[[[1.0, math.nan]]]),
        ValueError,
        r"scores must be finite, got nan at \(0, 0, 1\)",
    ),
    (
        lambda: linmax.instances(scores=[[[1.0, 2.0]]], classes=["a"]),
        ValueError,
        "scores rate 2 classes, but classes= names 1; give each",
    ),
    (
        lambda: linmax.instances(votes=[[5]], scores=[[[1.0, 2.0]]]),
        ValueError,
        "votes: 5 is not among the 2 classes that scores rate; pass classes=",
    ),
    (
        lambda: linmax.instances(votes=[["a"]], classes="ab"),
        TypeError,
        r"classes must be a list of labels, got the text 'ab'; try list",
    ),
    (
        lambda: linmax.instances(votes=[["a"]], classes=["a", "b", "a"]),
        ValueError,
        "classes must be distinct, got 'a' twice",
    ),
    (lambda: linmax.instances(votes=[["a"]], classes=[]), ValueError, "classes must not be empty; remove it"),
    (
        lambda: linmax.instances(votes=[["a"]], split="some"),
        ValueError,
        "split must be 'all' or a dict from voter to class, got 'some'",
    ),
    (
        lambda: linmax.instances(votes=[["a"]], split=["a"]),
        TypeError,
        r"split must be 'all' or a dict from voter to class, got \['a'\]",
    ),
    (
        lambda: linmax.instances(votes=[["a"]], split={1: "a"}),
        ValueError,
        "split: 1 is not the number of a voter or rater",
    ),
    (lambda: linmax.instances(votes=[["a"]], split={0: "q"}), ValueError, "split: 'q' is not among the classes"),
    (
        lambda: linmax.instances(attributes=[[1.0]], scale="min"),
        ValueError,
        "scale must be 'max', a number or .*got 'min'",
    ),
    (lambda: linmax.instances(attributes=[[1.0]], scale=0), ValueError, "scale must be > 0, got 0; try 'max'"),
    (lambda: linmax.instances(attributes=[[1.0]], scale=math.nan), ValueError, "scale must be finite, got nan"),
    (
        lambda: linmax.instances(
            attributes=[[1.0, 2.0]], scale=linmax.instances(attributes=[[1.0]], scale="max").scale
        ),
        ValueError,
        "scale was taken from 1 attributes",
    ),
    (lambda: linmax.instances(votes=[["a"]], thresholds="no"), TypeError, "thresholds must be True or False, got 'no'"),
    (lambda: linmax.instances(votes=[["a"]], negated=2), TypeError, "negated must be True or False, got 2"),
]


@pytest.mark.parametrize(("call", "kind", "message"), BAD, ids=[message for _, _, message in BAD])
def test_bad_input(call: Any, kind: type[Exception], message: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(kind, match=message):
            call()


def test_huge_but_finite_numbers_are_numbers() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert linmax.instances(attributes=[[1e308], [1e308]]).range == 1e308
