"""Custom rules: in a script, at a prompt, in a notebook; their errors, their pickles, and check_rule."""

from __future__ import annotations

import copy
import gc
import linecache
import math
import pickle
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from linmax import Learner, LinearMaxClassifier, VoteFusion, average, instances, rivals, rule, rules, run
from linmax.datasets import majority_problem
from linmax.jit.compiling import JIT
from linmax.rules.custom import CUSTOM_RULES, TAKEN
from linmax.rules.quasi_additive import LINKS
from linmax.techniques import REGISTRY as TECHNIQUES
from linmax.testing import check_rule
from linmax.theory import LinearThreshold

compiled = pytest.mark.skipif(not JIT, reason="is about the compiler")
DATA = majority_problem(trials=400 if JIT else 40, seed=2)
INSTANCES = instances(votes=DATA.votes)


# mypy cannot know the types of compiled functions, and Numba would not heed annotations.
def plain_perceptron(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    if margin > 0.0:
        return False
    for j in range(index.size):
        weights[index[j]] += params[0] * z[j]
    return True


def with_memory(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    """Each coordinate steps by 1/sqrt(its updates); scalars[7] counts them all."""
    if margin > params[0]:
        return False
    scalars[7] += 1.0
    for j in range(index.size):
        i = index[j]
        memory[0, i] += 1.0
        memory[1, i] += z[j]
        weights[i] += z[j] / math.sqrt(memory[0, i])
    return True


class WithMemory:
    """The same in plain Python."""

    def __init__(self, n: int, margin: float) -> None:
        self.w, self.count, self.sum, self.margin, self.updates = np.zeros(n), np.zeros(n), np.zeros(n), margin, 0

    def update(self, z: np.ndarray) -> bool:
        if self.w @ z > self.margin:
            return False
        on = z != 0.0
        self.updates += 1
        self.count[on] += 1.0
        self.sum[on] += z[on]
        self.w[on] += z[on] / np.sqrt(self.count[on])
        return True


# -- use -----------------------------------------------------------------------------------------------------


@pytest.mark.small
def test_as_good_as_built_in() -> None:
    own = rule(plain_perceptron, parameters={"rate": 1.0})
    first, second = run(own, INSTANCES, DATA.labels), run(rules.perceptron(), INSTANCES, DATA.labels)
    assert np.array_equal(first.predictions, second.predictions)
    assert np.array_equal(first.model.weights.arrays.flat, second.model.weights.arrays.flat)
    assert str(first.model.learner) == "plain-perceptron"
    assert repr(own) == "<rule plain_perceptron(rate=1)>"
    half = run(own(rate=0.5), INSTANCES, DATA.labels)
    assert np.array_equal(half.model.weights.arrays.flat, first.model.weights.arrays.flat / 2.0)
    assert np.array_equal(half.predictions, first.predictions)
    assert check_rule(own) is None
    assert check_rule(own(0.1)) is None


@pytest.mark.small
def test_memory_and_scalars() -> None:
    own = rule(parameters={"margin": 0.3}, slots=(0.0, 0.0), scalars=(0.0,), reach=math.inf)(with_memory)
    check_rule(own)
    rng = np.random.default_rng(1)
    learner, slow = LinearThreshold(own, labels=(-1, 1)), WithMemory(4, 0.3)
    x, y = rng.normal(size=(60, 4)) * (rng.random((60, 4)) < 0.6), rng.choice([-1, 1], 60)
    trace = learner.run(x, y)
    assert trace.changed.tolist() == [slow.update(side * row) for side, row in zip(y, x, strict=True)]
    np.testing.assert_allclose(learner.weights, slow.w, rtol=1e-12, atol=1e-15)
    assert learner.updates == slow.updates


@pytest.mark.small
def test_in_techniques_and_text() -> None:
    rule(plain_perceptron, parameters={"rate": 1.0})
    for text in ("A-plain-perceptron", "R-plain-perceptron(rate=2)", "AR-plain-perceptron"):
        own, built_in = run(text, INSTANCES, DATA.labels), run(text.replace("plain-", ""), INSTANCES, DATA.labels)
        assert np.array_equal(own.predictions, built_in.predictions)


@pytest.mark.small
def test_a_start_and_a_range() -> None:
    @rule(start=1.0, bounded=True)
    def halving(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
        if margin > 0.0:
            return False
        for j in range(index.size):
            weights[index[j]] *= 2.0 ** z[j]
        return True

    check_rule(halving)
    first, second = run(halving, INSTANCES, DATA.labels), run("winnow(2)", INSTANCES, DATA.labels)
    assert np.array_equal(first.predictions, second.predictions)
    with pytest.raises(ValueError, match="halving needs .*the instances reach 3; pass scale='max'"):
        run(halving, instances(attributes=[[3.0], [0.0]]), [0, 1])


@pytest.mark.small
def test_compiled_function() -> None:
    own = rule(numba.njit(plain_perceptron), parameters={"rate": 1.0})
    assert np.array_equal(
        run(own, INSTANCES, DATA.labels).predictions, run("perceptron", INSTANCES, DATA.labels).predictions
    )


@pytest.mark.small
def test_a_link_stays_alive() -> None:
    """A rule knows its link by address only; the compiled code must outlive the function that was handed over."""
    made = [rules.quasi_additive(lambda v: v * 2.0), rules.quasi_additive(lambda v: v * 3.0)]
    gc.collect()
    others = [rules.quasi_additive(lambda v: v - 1.0) for _ in range(3)]
    weights = [run(link, INSTANCES, DATA.labels).model.weights.arrays.flat for link in made]
    assert np.array_equal(weights[0] * 1.5, weights[1])
    assert len(others) == 3


# -- where it is written -------------------------------------------------------------------------------------

SOURCE = textwrap.dedent(
    """
    import linmax
    SCALE = 2.0
    @linmax.rule(parameters={"rate": 0.5})
    def typed(weights, memory, scalars, index, z, margin, params):
        if margin > 0.0:
            return False
        for j in range(index.size):
            weights[index[j]] += SCALE * params[0] * z[j]
        return True
    """
)


@pytest.mark.small
@pytest.mark.parametrize("file", ["<stdin>", "/tmp/ipykernel_77/42.py"])
def test_typed_at_a_prompt(file: str) -> None:
    """No file, or one that only a notebook knows; then also with its lines where notebooks keep them."""
    for known in (False, True):
        linecache.cache.pop(file, None)
        if known:
            linecache.cache[file] = (len(SOURCE), None, SOURCE.splitlines(True), file)
        names: dict[str, Any] = {}
        exec(compile(SOURCE, file, "exec"), names)
        trace = run(names["typed"], INSTANCES, DATA.labels)
        assert np.array_equal(trace.predictions, run("perceptron", INSTANCES, DATA.labels).predictions)
        exec(compile(SOURCE.replace("SCALE = 2.0", "SCALE = -2.0"), file, "exec"), names)
        turned = run(names["typed"], INSTANCES, DATA.labels)  # the cell was run again with another constant
        assert turned.wrong.sum() > trace.wrong.sum()
    linecache.cache.pop(file, None)


# -- errors --------------------------------------------------------------------------------------------------


def unknown_name(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    weights[0] += 1.0
    weights[1] += nowhere  # type: ignore[name-defined] # noqa: F821
    return True


def list_method(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    weights.append(1.0)
    return True


def nothing_returned(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    weights[0] = 1.0


def text_as_weight(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    if margin > 0.0:
        return False
    weights[0] = "heavy"
    return True


def attribute_of_a_function(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    return plain_perceptron.__name__ == "x"


def too_few(weights, memory, scalars, index, z, margin):  # type: ignore[no-untyped-def]
    return True


def in_another_order(margin, weights, memory, scalars, index, z, params):  # type: ignore[no-untyped-def]
    return False


@pytest.mark.small
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            unknown_name,
            r"fails, line \d+ of .*: weights\[1\] \+= nowhere.* \(NameError: name 'nowhere' is not defined\); use",
        ),
        (list_method, r"fails, line \d+ of .*: weights.append\(1.0\) \(AttributeError"),
        (nothing_returned, "must return True or False on every path, got None"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_mistakes_that_python_finds(function: Any, message: str) -> None:
    """The function runs in Python before it is compiled; the message names the line."""
    with pytest.raises(TypeError, match=f"rule '{function.__name__}' {message}"):
        rule(function)


@compiled
@pytest.mark.parametrize(
    ("function", "line"),
    [(text_as_weight, 'weights[0] = "heavy"'), (attribute_of_a_function, "plain_perceptron.__name__")],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_mistakes_that_the_compiler_finds(function: Any, line: str) -> None:
    with pytest.raises(
        TypeError, match=f"rule '{function.__name__}' cannot be compiled, line .*; use numbers"
    ) as caught:
        rule(function)
    assert line in str(caught.value)


@compiled
def test_a_link_that_cannot_be_compiled() -> None:
    with pytest.raises(TypeError, match="link '<lambda>' cannot be compiled, line .*upper"):
        rules.quasi_additive(lambda v: (v * 2.0).upper())  # type: ignore[attr-defined]


@pytest.mark.small
@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: rule(math.tanh),
            TypeError,
            "rule must be a Python function, got <built-in function tanh>; wrap",
        ),
        (lambda: rule(3), TypeError, "rule must be a Python function, got 3"),
        (lambda: rule(plain_perceptron, start=math.nan), ValueError, "start must be finite, got nan"),
        (lambda: rule(plain_perceptron, reach=math.nan), ValueError, "reach must be a number >= 0, got nan; try 0"),
        (lambda: rule(plain_perceptron, reach=-1.0), ValueError, "reach must be a number >= 0, got -1.0; try 0"),
        (lambda: rule(plain_perceptron, reach="far"), ValueError, "reach must be a number >= 0, got 'far'; try 0"),
        (lambda: rule(plain_perceptron, parameters=["rate"]), TypeError, "parameters must be names with defaults"),
        (
            lambda: rule(too_few),
            TypeError,
            "rule 'too_few' must take weights, memory, scalars, index, z, margin, params, in this order; got "
            "weights, memory, scalars, index, z, margin$",
        ),
        (lambda: rule(in_another_order), TypeError, "in this order; got margin, weights, memory"),
        (lambda: rule(plain_perceptron, slots=("x",)), TypeError, "slots must be a number, got 'x'"),
        (lambda: rule(plain_perceptron, scalars=(math.inf,)), ValueError, "scalars must be finite, got inf"),
        (lambda: rule(plain_perceptron, bounded="no"), TypeError, "bounded must be True or False, got 'no'"),
        (lambda: rule(plain_perceptron, parameters={"rate": "x"}), TypeError, "rate must be a number, got 'x'"),
    ],
)
def test_bad_descriptions(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


# -- out of bounds -------------------------------------------------------------------------------------------


def missing_slot(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    if margin > 0.0:
        return False
    for j in range(index.size):
        memory[0, index[j]] += 1.0
    return True


def missing_parameter(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    return margin <= params[0]


def missing_scalar(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    scalars[7] += 1.0
    return False


def missing_row(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    row = memory[1]
    for j in range(index.size):
        row[index[j]] += z[j]
    return True


def too_far(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    weights[weights.size] = 1.0
    return True


def first_of_z(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    weights[index[0]] += z[0]
    return True


def divides_by_nothing(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    weights[index.size - index.size] += math.log(0.0 * margin) / index.size
    memory[0, 0] = 1.0
    return True


@numba.njit  # type: ignore[untyped-decorator]
def remember(memory, i):  # type: ignore[no-untyped-def]
    memory[2, i] += 1.0


def through_another(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    for j in range(index.size):
        remember(memory, index[j])
    return True


def with_momentum(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    for j in range(index.size):
        if params[0] > 0.0:
            memory[0, index[j]] += z[j]
        weights[index[j]] += z[j]
    return True


@pytest.mark.small
@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (missing_slot, {}, r"memory\[0, index\[j\]\] \+= 1.0 \(.*\); memory has 0 rows \(slots=\)"),
        (missing_row, {"slots": (0.0,)}, r"row = memory\[1\] .*memory has 1 rows"),
        (missing_parameter, {}, r"return margin <= params\[0\] .*params 0 \(parameters=\)"),
        (missing_scalar, {}, r"scalars\[7\] \+= 1.0 .*scalars 7 numbers \(scalars= adds to 7\)"),
        (too_far, {}, r"weights\[weights.size\] = 1.0 "),
        (first_of_z, {}, r"weights\[index\[0\]\] .*loop over range\(index.size\), which may be 0"),
        (through_another, {"slots": (0.0, 0.0)}, r"remember\(memory, index\[j\]\) .*memory has 2 rows"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_out_of_bounds(function: Any, options: dict[str, Any], message: str) -> None:
    """Compiled code would read and write beyond the arrays, so that such a rule is never made."""
    with pytest.raises(IndexError, match=f"rule '{function.__name__}' indexes outside an array, line .*: {message}"):
        rule(function, **options)
    assert function.__name__.replace("_", "-") not in CUSTOM_RULES


@pytest.mark.small
def test_out_of_bounds_with_some_parameters_only() -> None:
    own = rule(with_momentum, parameters={"momentum": 0.0}, reach=math.inf)
    with pytest.raises(IndexError, match=r"rule 'with_momentum' indexes outside an array.*slots="):
        own(momentum=0.9)
    kept = rule(with_momentum, parameters={"momentum": 0.0}, slots=(0.0,), reach=math.inf)
    assert str(kept(0.9)) == "with-momentum(momentum=0.9)"


@pytest.mark.small
def test_errors_that_compiled_code_does_not_have() -> None:
    """1/0 and log(0) raise in Python alone, and say nothing about the arrays."""
    assert rule(divides_by_nothing, slots=(0.0,)).__name__ == "divides_by_nothing"


# -- pickles -------------------------------------------------------------------------------------------------


def cubed(v: float) -> float:
    return v * v * v


ROUND_TRIP = """
import json, pickle, sys
import linmax
rules, models = pickle.load(open(sys.argv[1], "rb"))
data = linmax.datasets.majority_problem(trials=40, seed=2)
found = [linmax.run(rule, linmax.instances(votes=data.votes), data.labels).model.weights.arrays.flat.tolist() for rule in rules]
print(json.dumps([found, [model.predict([[1.0, 0.0]]).tolist() for model in models]]))
"""


@pytest.mark.small
def test_pickles_in_the_same_process() -> None:
    own = rule(plain_perceptron, parameters={"rate": 1.0})
    for made in (own, own(0.5), average(own(0.5)), rules.quasi_additive(cubed), rivals(own(0.5), "all")):
        for copied in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
            assert copied == made
            assert str(copied) == str(made)
    assert pickle.loads(pickle.dumps(own)) is own


@compiled
def test_pickles_in_another_process(in_a_process: Callable[..., Any], tmp_path: Path) -> None:
    """Rules written inside a function, and estimators that learned with them."""
    factor = 3.0

    @rule(parameters={"rate": 1.0})
    def inside(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
        if margin > 0.0:
            return False
        for j in range(index.size):
            weights[index[j]] += factor * params[0] * z[j]
        return True

    sent = [inside(0.5), rules.quasi_additive(lambda v: 2.0 * v), rules.arow()]
    models = [LinearMaxClassifier(learner).fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"]) for learner in sent]
    fusion = VoteFusion(inside).fit([["a", "b"], ["b", "a"]], ["a", "b"])
    learner = Learner(sent[1])
    learner.learn(votes={"ann": "x", "bob": "y"}, label="y")
    path, script = tmp_path / "sent.pickle", tmp_path / "script.py"
    path.write_bytes(pickle.dumps((sent, models)))
    script.write_text(ROUND_TRIP.replace("sys.argv[1]", repr(str(path))))
    data = majority_problem(trials=40, seed=2)
    expected = [run(r, instances(votes=data.votes), data.labels).model.weights.arrays.flat.tolist() for r in sent]
    assert in_a_process(script) == [expected, [["a"]] * 3]
    path.write_bytes(pickle.dumps((fusion, learner)))
    script.write_text(
        f"import json, pickle\nfusion, learner = pickle.load(open({str(path)!r}, 'rb'))\n"
        "print(json.dumps([fusion.predict([['a', 'b']]).tolist(), learner.predict(votes={'bob': 'y'})]))"
    )
    assert in_a_process(script) == [["a"], "y"]


@pytest.mark.small
def test_error_of_a_link_that_cannot_be_pickled() -> None:
    lock = threading.Lock()

    def link(v: float) -> float:
        return v

    link.lock = lock  # type: ignore[attr-defined]

    made = rules.quasi_additive(link)
    with pytest.raises(pickle.PicklingError, match="'link' cannot be pickled, because it refers to .*lock"):
        pickle.dumps(made)


@pytest.mark.small
@pytest.mark.parametrize("name", LINKS)
def test_custom_link_with_a_built_in_name(name: str) -> None:
    def own(v: float) -> float:
        return v * v * v

    own.__name__ = name
    with pytest.raises(ValueError, match=f"link '{name}': this is the name of a built-in; try my_{name}"):
        rules.quasi_additive(own)
    assert rules.quasi_additive(LINKS[name]) == rules.quasi_additive(name)


# -- check_rule ----------------------------------------------------------------------------------------------


def beyond_z(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    if margin > 0.0:
        return False
    weights[weights.size - 1] += 1.0
    return True


def memory_beyond_z(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    if margin > 0.0:
        return False
    memory[0, weights.size - 1] += 1.0
    return True


def secretly(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    for j in range(index.size):
        weights[index[j]] += z[j]
    return False


def beyond_reach(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    if margin > 1.0:
        return False
    for j in range(index.size):
        weights[index[j]] += z[j]
    return True


def explodes(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    if margin > 0.0:
        return False
    for j in range(index.size):
        weights[index[j]] = weights[index[j]] * 1e200 + z[j]
    return True


COUNTER = np.zeros(1)


@pytest.mark.small
@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (beyond_z, {}, "changed weights outside z"),
        (memory_beyond_z, {"slots": (0.0,)}, "changed memory outside z"),
        (secretly, {"reach": math.inf}, "changed weights but returned False"),
        (beyond_reach, {}, "updated beyond its reach"),
        (explodes, {}, "weights are not finite"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_check_rule_finds_faults(function: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message), np.errstate(all="ignore"):
        check_rule(rule(function, **options))


@pytest.mark.small
@pytest.mark.skipif(JIT, reason="compiled code has no state of its own, and its result is a bool")
def test_check_rule_finds_what_only_plain_python_can_do() -> None:
    def remembers(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
        COUNTER[0] += 1.0
        for j in range(index.size):
            weights[index[j]] += COUNTER[0]
        return True

    with pytest.raises(AssertionError, match="equal inputs must give equal bits"):
        check_rule(rule(remembers, reach=math.inf))


@pytest.mark.small
@pytest.mark.parametrize("name", ["winnow", "balanced_winnow", "p_norm", "combine"])
def test_built_in_names_are_refused(name: str) -> None:
    def step(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
        return False

    step.__name__ = name
    with pytest.raises(ValueError, match=f"rule '{name}': this is the name of a built-in; try my_{name}"):
        rule(step)


@pytest.mark.small
def test_names_of_techniques_are_taken() -> None:
    assert {*(name for name in TECHNIQUES if len(name) > 1), *rules.REGISTRY} <= TAKEN
