"""The engine: how trials are cut into runs and slices, and whether panels are used, changes no bit."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import linmax
import linmax.engine.bench as bench_module
import linmax.engine.engine as machine_module
from compare import CASES, Case, Problem, problem, problems, random_votes
from linmax import average, combine, parse, recycle, run, vote, vr_combine
from linmax.datasets import majority_problem
from linmax.jit.compiling import JIT

pytestmark = pytest.mark.portable

TRIALS = 60 if JIT else 14
ALL = problems(TRIALS)
KINDS = [
    "votes",
    "abstaining votes",
    "negated votes",
    "scores",
    "dense",
    "sparse, no thresholds",
    "hybrid",
    "ties",
    "one voter",
    "nine classes",
]
PROBLEMS = {kind: ALL[kind] for kind in (KINDS if JIT else KINDS[::4])}
compiled = pytest.mark.skipif(not JIT, reason="needs many trials")

VOTE = "V(h=4, w=10, r=10, d=15)"
LEARNERS = [
    "perceptron",
    "A-winnow(1.3)",
    "A(scale=max)-alma(3)",
    "A(scale=l1)-p-norm(3)",
    "A-alma(2.5, alpha=0.9)",
    "A-sasb",
    "R(s=10, u=3)-winnow(1.3)",
    "AR(s=10, u=3)-alma(2)",
    f"{VOTE}-winnow(1.3)",
    f"{VOTE}A-alma(3)",
    "V(h=4, w=10, r=10, d=15, scale=l1)R(s=10)-balanced-winnow(1.3)",
    f"{VOTE}AR(s=10)-winnow(1.3)",
    f"{VOTE}-combine(R(s=10)-perceptron, AR(s=10)-perceptron, A-winnow(1.3), alma(3))",
    "combine(perceptron, A-winnow(1.3), how=wma)",
    "V(h=6, saved=random, seed=2)R(s=10)-balanced-winnow(1.3)",
    "combine(perceptron, A-winnow(1.3), V(h=4)-alma(3), how=weighted)",
    "combine(V(h=4, scale=l1)A-alma(3), V(h=4, scale=raw)-winnow(1.3))",
    "stack(perceptron, A-winnow(1.3), V(h=4)A-alma(3), fusion=AR-winnow(1.3))",
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"discover": True, "margins": True},
    {"tie": "largest", "update_on_tie": False},
    {"margins": True},
    {"discover": True, "tie": "largest"},
]
learners = pytest.mark.parametrize("learner", LEARNERS)


def half(learner: str, part: int) -> list[Problem]:
    """Every other kind of instance; in the next part, and with the next learner, the others."""
    kinds = list(PROBLEMS.values())
    return kinds[(LEARNERS.index(learner) + part) % 2 :: 2] if JIT else kinds


def everything(trace: Any) -> dict[str, np.ndarray]:
    """All that a run leaves behind."""
    arrays = {name: array.copy() for name, array in trace.model.engine.arrays.items()}
    return arrays | {"predictions": trace.predictions, "wrong": trace.wrong, "changed": trace.changed}


def assert_same(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> None:
    assert ours.keys() == theirs.keys()
    different = [
        name for name in ours if not np.array_equal(ours[name], theirs[name], equal_nan=ours[name].dtype == float)
    ]
    assert not different


def in_pieces(learner: Any, given: Problem, length: int, **options: Any) -> dict[str, np.ndarray]:
    """The same trials in several runs of one machine."""
    options.pop("margins", None)
    trace = run(learner, given.instances[:length], given.labels[:length], **options)
    traces = [trace]
    for begin in range(length, len(given.labels), length):
        piece = slice(begin, begin + length)
        traces.append(trace.model.run(given.instances[piece], given.labels[piece]))
    found = everything(traces[-1])
    for name in ("predictions", "wrong", "changed"):
        found[name] = np.concatenate([getattr(piece, name) for piece in traces])
    return found


# -- nothing depends on how the work is cut up -----------------------------------------------------------------


@pytest.mark.small
@learners
@pytest.mark.parametrize(("part", "length"), list(enumerate([1, 3, 50])))
def test_run_resumes(learner: str, part: int, length: int) -> None:
    for given in half(learner, part):
        assert_same(in_pieces(learner, given, length), everything(run(learner, given.instances, given.labels)))


@pytest.mark.small
@learners
@pytest.mark.parametrize(("part", "length"), list(enumerate([1, 7])))
def test_classes_discovered_in_several_runs(learner: str, part: int, length: int) -> None:
    """Classes not yet known are numbered anew in every run; what is kept of earlier instances must follow."""
    for given in half(learner, part):
        whole = everything(run(learner, given.instances, given.labels, discover=True))
        assert_same(in_pieces(learner, given, length, discover=True), whole)


@pytest.mark.small
@learners
def test_panels_and_slices_change_nothing(learner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for given in PROBLEMS.values():

        def whole(given: Problem = given) -> dict[str, np.ndarray]:
            return everything(run(learner, given.instances, given.labels))

        expected = whole()
        for name, value in [
            ("SMALL", 0),
            ("LONGEST_SLICE", 7),
            ("LONGEST_SLICE", 1),
            ("MEMORY", 1),
            ("MEMORY", 40_000),
        ]:
            with monkeypatch.context() as patch:
                patch.setattr(machine_module, name, value)
                assert_same(whole(), expected)
        with monkeypatch.context() as patch:  # no panels, and slices of 5
            for name, value in [("SMALL", 0), ("LONGEST_SLICE", 5), ("MEMORY", 1)]:
                patch.setattr(machine_module, name, value)
            assert_same(whole(), expected)


@pytest.mark.small
@learners
def test_online_predictions_equal_predict(learner: str) -> None:
    given = PROBLEMS["votes" if "nine classes" not in PROBLEMS else "dense"]
    whole = run(learner, given.instances, given.labels)
    trace = run(learner, given.instances[:5], given.labels[:5])
    for t in range(5, TRIALS):
        one = given.instances[t : t + 1]
        before = {name: array.copy() for name, array in trace.model.engine.arrays.items()}
        assert trace.model.predict(one)[0] == whole.predictions[t]
        assert trace.model.predict(given.instances)[t] == whole.predictions[t]
        trace.model.scores(given.instances)
        assert_same(trace.model.engine.arrays, before)  # nothing is learned
        trace.model.run(one, given.labels[t : t + 1])


@pytest.mark.small
@learners
def test_margins_are_kept_and_change_nothing(learner: str) -> None:
    given = PROBLEMS["votes"]
    plain = run(learner, given.instances, given.labels)
    with_margins = run(learner, given.instances, given.labels, margins=True)
    assert_same(everything(plain), everything(with_margins))
    assert with_margins.margins.shape == (TRIALS,)


@pytest.mark.small
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_rule_alone_takes_a_shorter_way_to_the_same_end(case: Case) -> None:
    """A combination of one rule goes the way of all techniques."""
    for given, options in zip(PROBLEMS.values(), cycle(OPTIONS), strict=False):
        alone = run(case.rule, given.instances, given.labels, **options)
        combined = run(combine([case.rule]), given.instances, given.labels, **options)
        ours, theirs = everything(alone), everything(combined)
        theirs.pop("node0.mistakes")
        assert_same(ours, theirs)
        if options.get("margins"):
            np.testing.assert_array_equal(alone.margins, combined.margins)
        assert_same(in_pieces(case.rule, given, 7, **options), ours)


# -- memory ----------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("learner", ["A-perceptron", "R(s=5)-perceptron", "V(r=5)A-winnow(1.3)"])
def test_panels_are_no_longer_than_the_memory_allows(learner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = PROBLEMS["votes"]
    lengths = []
    fill = bench_module.fill_panel

    def watched(trials: Any, begin: int, end: int) -> None:
        lengths.append((len(trials.labels), trials.codes.size + trials.ratings.size))
        fill(trials, begin, end)

    monkeypatch.setattr(bench_module, "fill_panel", watched)
    run(learner, given.instances, given.labels)
    assert lengths
    assert all(room for _, room in lengths)
    lengths.clear()
    monkeypatch.setattr(machine_module, "MEMORY", 8 * 5 * 14 * 6)  # room for six instances
    run(learner, given.instances, given.labels)
    assert max(length for length, _ in lengths) <= 6 + 5  # and the recent ones
    assert len(lengths) >= TRIALS // 6


@pytest.mark.small
@pytest.mark.parametrize("kind", ["votes", "scores", "dense", "sparse"])
def test_arrays_may_be_written_over_between_runs(kind: str) -> None:
    """Recycling and voting look at recent instances again: not at what a user's buffer holds by then."""
    rng = np.random.default_rng(5)
    rows = {
        "votes": rng.integers(3, size=(TRIALS, 4)),
        "scores": rng.random((TRIALS, 4, 3)),
        "dense": rng.uniform(-1.0, 1.0, (TRIALS, 4)),
        "sparse": rng.uniform(-1.0, 1.0, (TRIALS, 4)),
    }[kind]
    labels = rng.integers(3, size=TRIALS)

    def block(values: Any) -> Any:
        if kind == "sparse":
            return linmax.instances(attributes=values, classes=range(3))
        return linmax.instances(**{"attributes" if kind == "dense" else kind: values}, classes=range(3))

    learner = "VR(s=10)-perceptron"
    whole = run(learner, block(sparse.csr_array(rows) if kind == "sparse" else rows), labels)
    buffer = sparse.csr_array(rows[:7]) if kind == "sparse" else rows[:7].copy()
    given_labels = labels[:7].copy()
    trace = run(learner, block(buffer), given_labels)
    predictions = [trace.predictions]
    for begin in range(7, TRIALS - TRIALS % 7, 7):
        if kind == "sparse":
            buffer.data[:] = rows[begin : begin + 7].ravel()
        else:
            buffer[:] = rows[begin : begin + 7]
        given_labels[:] = labels[begin : begin + 7]
        predictions.append(trace.model.run(block(buffer), given_labels).predictions)
    joined = np.concatenate(predictions)
    assert joined.tolist() == whole.predictions[: len(joined)].tolist()


# -- small and odd cases ---------------------------------------------------------------------------------------

ODD = ["VR-combine", "combine", LEARNERS[-1], LEARNERS[-2], LEARNERS[-3], "AR-alma(3)", "VA-sasb"]


@compiled
@pytest.mark.parametrize("learner", ODD)
def test_no_trial_one_trial_and_one_class(learner: str) -> None:
    three = linmax.instances(votes=[[0, 1, 2]], classes=range(3))
    nothing = run(learner, three[:0], [])
    assert len(nothing) == 0
    assert nothing.model.run(three, [1]).predictions.tolist() == run(learner, three, [1]).predictions.tolist()
    alone = run(learner, linmax.instances(votes=[["a", "a"]] * 4), ["a"] * 4)
    assert alone.predictions.tolist() == ["a"] * 4
    assert alone.model.updates == 0
    seen = run(learner, linmax.instances(votes=[["a", "b"]] * 4), ["a"] * 4, discover="labels")
    assert seen.predictions.tolist() == [None, "a", "a", "a"]
    assert seen.model.updates == 0


@compiled
@pytest.mark.parametrize("classes", [126, 127, 128, 129])
def test_many_classes(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Panels keep classes in eight bits; beyond 127 they must not."""
    given = random_votes(80, 4, classes, 9, abstain=0.1, thresholds=False)
    expected = everything(run("AR-winnow(1.3)", given.instances, given.labels))
    monkeypatch.setattr(machine_module, "SMALL", 0)
    assert_same(everything(run("AR-winnow(1.3)", given.instances, given.labels)), expected)


@pytest.mark.small
def test_members_are_shared() -> None:
    """A rule and its average are one member; other parameters, recycling or scales are others."""
    learner = combine(
        [
            "perceptron",
            "A-perceptron",
            "A(scale=max)-perceptron",
            "R-perceptron",
            "AR-perceptron",
            "R(s=7)-perceptron",
            "V-perceptron",
            "perceptron(rate=2)",
        ]
    )
    given = PROBLEMS["votes"]
    machine = run(learner, given.instances, given.labels).model
    described = [(str(run_.rule), run_.recycling[:2], run_.averaging) for run_ in machine.engine.runs]
    assert described == [
        ("perceptron", (0, 0), 1),
        ("perceptron", (0, 0), 2),
        ("perceptron", (100, 5), 1),
        ("perceptron", (7, 5), 0),
        ("perceptron(rate=2)", (0, 0), 0),
    ]
    for member in machine.members:
        alone = run(member.name, given.instances, given.labels)
        assert member.mistakes == alone.mistakes[-1]
        np.testing.assert_array_equal(member.weights.arrays.flat, alone.model.weights.arrays.flat)


@pytest.mark.small
@pytest.mark.parametrize("learner", ["perceptron", "A-perceptron", "A(scale=l1)-winnow(1.3)", "VA-perceptron"])
def test_the_margin_is_that_of_the_weights(learner: str) -> None:
    given = PROBLEMS["dense"]
    machine = run(learner, given.instances, given.labels).model
    flat = machine.weights.arrays.flat
    gaps = []
    for x, label in zip(given.matrices, given.labels, strict=True):
        scores = x @ flat
        gaps.append(scores[label] - np.delete(scores, label).max())
    assert machine.margin(given.instances, given.labels) == pytest.approx(min(gaps) / np.linalg.norm(flat) / np.sqrt(2))


@pytest.mark.small
@compiled
def test_a_weight_outside_the_range_of_floats_is_refused() -> None:
    data = majority_problem(trials=3000, noise=0.3, seed=1)
    learner = vote(recycle("winnow(4)", u=50), scale="raw")
    with pytest.raises(OverflowError, match="raw weights of R\\(u=50\\)-winnow\\(4\\).*scale='l2'"):
        run(learner, linmax.instances(votes=data.votes), data.labels)
    trace = run(vote(recycle("winnow(4)", u=50)), linmax.instances(votes=data.votes), data.labels)
    assert np.isfinite(trace.model.weights.arrays.flat).all()


@compiled
@pytest.mark.parametrize("learner", ["AR-winnow(4)", "VAR-winnow(4)", "VAR-balanced-winnow(4)", "VAR-p-norm(120)"])
def test_weights_that_grow_without_limit(learner: str) -> None:
    """Everything stays finite, and the vote still hears what it votes over."""
    data = majority_problem(trials=3000, noise=0.2, seed=2)
    given = linmax.instances(votes=data.votes)
    trace = run(learner, given, data.labels)
    for name, array in trace.model.engine.arrays.items():
        if name not in ("state.memory", "state.scalars"):  # where nan and infinity have a meaning
            assert np.isfinite(array.astype(float)).all(), name
    alone = run(learner.removeprefix("V"), given, data.labels).mistakes[-1]
    assert trace.mistakes[-1] <= 2 * alone + 10


@compiled
def test_vr_combine_is_fast_enough_on_large_problems() -> None:
    """Bounded memory and linear time: a thousand voters of whom nine in ten abstain, a hundred classes."""
    rng = np.random.default_rng(0)
    votes = rng.integers(100, size=(40, 1000))
    labels = votes[:, 0].copy()
    votes[rng.random(votes.shape) < 0.9] = -1
    instances = linmax.instances(votes=votes, classes=range(100), abstain=-1)
    trace = run(vr_combine(s=10, u=2), instances, labels)
    assert len(trace) == 40
    assert trace.model.engine.memory == 100


@pytest.mark.small
def test_a_recycled_member_with_a_longer_memory_than_the_stream() -> None:
    given = PROBLEMS["votes"]
    long = run(recycle("perceptron", s=10**6), given.instances, given.labels)
    enough = run(recycle("perceptron", s=TRIALS), given.instances, given.labels)
    assert long.predictions.tolist() == enough.predictions.tolist()
    assert_same(in_pieces(recycle("perceptron", s=10**6), given, 7), everything(long))


@pytest.mark.small
def test_the_learner_is_described() -> None:
    given = problem([0, 1, 0], 2, attributes=[[1.0], [-1.0], [0.5]])
    trace = run(average(recycle(parse("perceptron"), s=2)), given.instances, given.labels)
    assert repr(trace).startswith("<AR(s=2)-perceptron: 3 trials")
    assert repr(trace.model) == "<AR(s=2)-perceptron over 2 classes: 1 mistake in 3 trials>"


@pytest.mark.small
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_weights_that_leave_the_range_are_refused(kind: str) -> None:
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1e50]])
    given = sparse.csr_matrix(rows) if kind == "sparse" else rows
    instances = linmax.instances(attributes=given, thresholds=False)
    with pytest.raises(OverflowError, match=r"left the range of floats at trial 2; scale the instances down"):
        run("perceptron(1e60)", instances, [0, 1, 0])


@pytest.mark.small
@pytest.mark.parametrize("learner", ["perceptron", "A-perceptron", "R(s=10, u=2)-arow", "pa"])
def test_a_weight_counts_for_its_trial_alone(learner: str) -> None:
    """Trials of one weight are played by a path of their own, those with weights in between by the engine."""
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    mixed, weighed = linmax.Learner(learner), linmax.Learner(learner)
    for t, (row, label) in enumerate(zip(rows.tolist(), labels.tolist(), strict=True)):
        attributes, weight = dict(zip("abcd", row, strict=True)), 3.0 if t % 7 == 3 else 1.0
        expected = weighed.learn(attributes, label, weight=weight)
        assert mixed.learn(attributes, label, **({} if weight == 1.0 else {"weight": weight})) == expected
