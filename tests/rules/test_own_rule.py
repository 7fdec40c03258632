"""A user's own rule: in a script, at a prompt, in a notebook; its cache, its errors, and check_rule."""

from __future__ import annotations

import gc
import linecache
import math
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linmax import LinearThreshold, check_rule, experts, majority_problem, rule, rules, run
from linmax.engine.notation import COMBINATIONS
from linmax.jit.compiling import JIT
from linmax.rules.own import TAKEN

compiled = pytest.mark.skipif(not JIT, reason="is about the compiler")
DATA = majority_problem(trials=400 if JIT else 40, seed=2)
INSTANCES = experts(votes=DATA.votes)


# mypy cannot know the types of compiled functions, and Numba would not heed annotations.
def plain_perceptron(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    if margin > 0.0:
        return False
    for j in range(index.size):
        weights[index[j]] += params[0] * z[j]
    return True


def with_memory(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    """Each coordinate steps by 1/sqrt(its updates); scalars[6] counts them all."""
    if margin > params[0]:
        return False
    scalars[6] += 1.0
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
        run(halving, experts(attributes=[[3.0], [0.0]]), [0, 1])


@pytest.mark.small
def test_a_compiled_function_of_ones_own() -> None:
    numba = pytest.importorskip("numba")
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
@pytest.mark.parametrize("file", ["<stdin>", "<string>", "<ipython-input-3-0123456789ab>", "/tmp/ipykernel_77/42.py"])
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


HELPED = """
import json
import sys
import numpy as np
from linmax.rules.own import rule
import constants
import helpers
from constants import RATE
from helpers import chained, double
LOCAL = 1.0

def apply(step):
    weights = np.zeros(1)
    step(weights, np.zeros((0, 1)), np.zeros(6), np.zeros(1, np.int64), np.ones(1), 0.0, np.zeros(1))
    return weights[0]

@rule
def own(weights, memory, scalars, index, z, margin, params):
    weights[index[0]] += 1.0 * z[0]
    return True

@rule
def local(weights, memory, scalars, index, z, margin, params):
    weights[index[0]] += LOCAL * z[0]
    return True

@rule
def by_name(weights, memory, scalars, index, z, margin, params):
    weights[index[0]] += double(z[0])
    return True

@rule
def by_module(weights, memory, scalars, index, z, margin, params):
    weights[index[0]] += helpers.double(z[0])
    return True

@rule
def nested(weights, memory, scalars, index, z, margin, params):
    weights[index[0]] += chained(z[0])
    return True

@rule
def constant(weights, memory, scalars, index, z, margin, params):
    weights[index[0]] += RATE * z[0]
    return True

@rule
def constant_of_module(weights, memory, scalars, index, z, margin, params):
    weights[index[0]] += constants.RATE * z[0]
    return True

found = {}
for made in (own, local, by_name, by_module, nested, constant, constant_of_module):
    found[made.__name__] = [apply(made.step), sum(made.step.stats.cache_hits.values())]
print(json.dumps(found))
"""


@compiled
def test_cached_and_never_stale(in_a_process: Callable[..., Any], tmp_path: Path) -> None:
    """A script's rules are compiled once; an edit of the script, or of anything that they use, is noticed."""
    script, helpers, constants = (tmp_path / name for name in ("script.py", "helpers.py", "constants.py"))
    script.write_text(HELPED)
    (tmp_path / "deeper.py").write_text("from numba import njit\n@njit\ndef twice(x):\n    return 2.0 * x\n")
    helpers.write_text(
        "from numba import njit\nfrom deeper import twice\n@njit\ndef double(x):\n    return 2.0 * x\n"
        "@njit\ndef chained(x):\n    return twice(x)\n"
    )
    constants.write_text("RATE = 2.0\n")

    def play() -> tuple[dict[str, float], dict[str, int]]:
        found = in_a_process(script)
        return {name: pair[0] for name, pair in found.items()}, {name: pair[1] for name, pair in found.items()}

    weights, hits = play()
    around = ("by_name", "by_module", "nested", "constant", "constant_of_module")
    assert weights == {"own": 1.0, "local": 1.0} | dict.fromkeys(around, 2.0)
    assert set(hits.values()) == {0}
    again, hits = play()
    assert again == weights
    assert {name for name, count in hits.items() if count} == {"own", "local", "by_name", "nested", "constant"}
    # Everything around the rules is edited, but not their file.
    (tmp_path / "deeper.py").write_text("from numba import njit\n@njit\ndef twice(x):\n    return 5.0 * x\n")
    helpers.write_text(helpers.read_text().replace("return 2.0 * x", "return 3.0 * x"))
    constants.write_text("RATE = 7.0\n")
    weights, _ = play()
    changed = dict(zip(around, (3.0, 3.0, 5.0, 7.0, 7.0), strict=True))
    assert weights == {"own": 1.0, "local": 1.0} | changed
    script.write_text(HELPED.replace("+= 1.0 * z", "+= 4.0 * z").replace("LOCAL = 1.0", "LOCAL = 9.0"))
    weights, _ = play()
    assert weights == {"own": 4.0, "local": 9.0} | changed


# -- errors --------------------------------------------------------------------------------------------------


def unknown_name(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    weights[0] += 1.0
    weights[1] += nowhere  # type: ignore[name-defined] # noqa: F821
    return True


def text_as_weight(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    if margin > 0.0:
        return False
    weights[0] = "heavy"
    return True


def list_method(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    weights.append(1.0)
    return True


def nothing_returned(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    weights[0] = 1.0


def text_returned(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    return "yes"


def too_few(weights, memory, scalars, index, z, margin):  # type: ignore[no-untyped-def]
    return True


def opens_a_file(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    with open("weights") as file:
        return len(file.read()) > 0


def calls_python(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    return plain_perceptron.__name__ == "x"


@compiled
@pytest.mark.parametrize(
    ("function", "line", "reason"),
    [
        (unknown_name, "weights[1] += nowhere", "'nowhere' is not defined"),
        (text_as_weight, 'weights[0] = "heavy"', ""),
        (list_method, "weights.append(1.0)", "append"),
        (nothing_returned, "weights[0] = 1.0", "does not return True or False on every path"),
        (text_returned, 'return "yes"', "to bool"),
        (too_few, "def too_few", "7 argument types given, but function takes 6"),
        (opens_a_file, "", "with"),
        (calls_python, "plain_perceptron.__name__", ""),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_cannot_be_compiled(function: Any, line: str, reason: str) -> None:
    """One sentence: which function, which line of which file, why, and what to use instead."""
    with pytest.raises(TypeError) as caught:
        rule(function)
    message = str(caught.value)
    assert message.startswith(f"rule '{function.__name__}' cannot be compiled, line ")
    assert line in message
    assert reason in message
    assert f" of {__file__}" in message
    assert message.endswith("use numbers, loops and the functions of math on the arrays that it is given")
    assert message.count("\n") == 0
    assert len(message) < 700
    first = function.__code__.co_firstlineno
    number = int(message.split("line ")[1].split(" ")[0])
    source = Path(__file__).read_text().splitlines()
    assert first <= number <= first + 8
    assert line in source[number - 1]
    assert caught.value.__cause__ is None


@compiled
def test_the_line_of_a_cell() -> None:
    file = "<ipython-input-9-fedcba987654>"
    source = "\ndef cell(v):\n    w = v * 2.0\n    return w.upper()\n"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names: dict[str, Any] = {}
    exec(compile(source, file, "exec"), names)
    with pytest.raises(
        TypeError, match=r"link 'cell' cannot be compiled, line 4 of <ipython-.*>: return w.upper\(\) \("
    ):
        rules.quasi_additive(names["cell"])
    linecache.cache.pop(file)


@pytest.mark.small
@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: rule(math.tanh),
            TypeError,
            "rule must be a function written in Python, got <built-in function tanh>; write",
        ),
        (lambda: rule(3), TypeError, "rule must be a function written in Python, got 3"),
        (lambda: rule(plain_perceptron, start=math.nan), ValueError, "start must be finite, got nan; try 0"),
        (lambda: rule(plain_perceptron, reach=math.nan), ValueError, "reach must be a number, got nan; try 0"),
        (lambda: rule(plain_perceptron, slots=("x",)), TypeError, "slots must be a number, got 'x'"),
        (lambda: rule(plain_perceptron, scalars=(math.inf,)), ValueError, "scalars must be finite, got inf"),
        (lambda: rule(plain_perceptron, bounded="no"), TypeError, "bounded must be True or False, got 'no'"),
        (lambda: rule(plain_perceptron, parameters={"rate": "x"}), TypeError, "rate must be a number, got 'x'"),
    ],
)
def test_bad_descriptions(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


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


def missing_slot(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    if margin > 0.0:
        return False
    for j in range(index.size):
        memory[0, index[j]] += 1.0
    return True


def missing_parameter(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    return margin <= params[0]


def missing_scalar(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
    scalars[6] += 1.0
    return False


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
        (missing_slot, {}, "an index is out of bounds .*slots="),
        (missing_parameter, {}, "an index is out of bounds .*parameters="),
        (missing_scalar, {}, "an index is out of bounds .*scalars"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_check_rule_finds_what_is_wrong(function: Any, options: dict[str, Any], message: str) -> None:
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

    def counts(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
        return 0

    with pytest.raises(AssertionError, match="equal inputs must give equal bits"):
        check_rule(rule(remembers, reach=math.inf))
    with pytest.raises(AssertionError, match="the step must return a bool, got 0"):
        check_rule(rule(counts))


@pytest.mark.small
@pytest.mark.parametrize("name", ["winnow", "balanced_winnow", "p_norm", "combine"])
def test_a_name_that_text_gives_to_something_else_is_refused(name: str) -> None:
    def step(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
        return False

    step.__name__ = name
    with pytest.raises(ValueError, match=f"rule '{name}': text means a built-in by that name; try my_{name}"):
        rule(step)


@pytest.mark.small
def test_names_of_combinations_are_among_those_refused() -> None:
    assert {*COMBINATIONS, *rules.REGISTRY} <= TAKEN
