"""A user's own rule: in a script, at a prompt, in a notebook; its cache, its errors, and check_rule."""

from __future__ import annotations

import copy
import gc
import importlib
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

from linmax import (
    Learner,
    LinearMaxClassifier,
    LinearThreshold,
    VoteFusion,
    average,
    check_rule,
    experts,
    majority_problem,
    rivals,
    rule,
    rules,
    run,
)
from linmax.jit.compiling import JIT
from linmax.rules.digest import digest_of
from linmax.rules.own import OWN_RULES, TAKEN
from linmax.rules.quasi_additive import LINKS
from linmax.rules.shipping import Shipped
from linmax.techniques import REGISTRY as TECHNIQUES

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
from constants import PAIR, RATE
from helpers import chained, curved, double
LOCAL = 1.0

def apply(step):
    weights = np.zeros(1)
    step(weights, np.zeros((0, 1)), np.zeros(6), np.zeros(1, np.int64), np.ones(1), 0.0, np.zeros(1))
    return weights[0]

@rule
def own(weights, memory, scalars, index, z, margin, params):
    for j in range(index.size):
        weights[index[j]] += 1.0 * z[j]
    return True

@rule
def local(weights, memory, scalars, index, z, margin, params):
    for j in range(index.size):
        weights[index[j]] += LOCAL * z[j]
    return True

@rule
def by_name(weights, memory, scalars, index, z, margin, params):
    for j in range(index.size):
        weights[index[j]] += double(z[j])
    return True

@rule
def by_module(weights, memory, scalars, index, z, margin, params):
    for j in range(index.size):
        weights[index[j]] += helpers.double(z[j])
    return True

@rule
def nested(weights, memory, scalars, index, z, margin, params):
    for j in range(index.size):
        weights[index[j]] += chained(z[j])
    return True

@rule
def constant(weights, memory, scalars, index, z, margin, params):
    for j in range(index.size):
        weights[index[j]] += RATE * z[j]
    return True

@rule
def constant_of_module(weights, memory, scalars, index, z, margin, params):
    for j in range(index.size):
        weights[index[j]] += constants.RATE * z[j]
    return True

@rule
def by_attribute(weights, memory, scalars, index, z, margin, params):
    for j in range(index.size):
        weights[index[j]] += curved(z[j])
    return True

@rule
def by_field(weights, memory, scalars, index, z, margin, params):
    for j in range(index.size):
        weights[index[j]] += PAIR.first * z[j]
    return True

found = {}
for made in (own, local, by_name, by_module, nested, constant, constant_of_module, by_attribute, by_field):
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
        "import math\n@njit\ndef curved(x):\n    return math.floor(x + 0.5)\n"
    )
    pair = "from collections import namedtuple\nPAIR = namedtuple('Pair', 'first second')(1.0, 8.0)\n"
    constants.write_text(pair + "RATE = 2.0\n")

    def play() -> tuple[dict[str, float], dict[str, int]]:
        found = in_a_process(script, PYTHONDONTWRITEBYTECODE="1")  # which Python would not renew within a second
        return {name: pair[0] for name, pair in found.items()}, {name: pair[1] for name, pair in found.items()}

    weights, hits = play()
    around = ("by_name", "by_module", "nested", "constant", "constant_of_module")
    own = {"own": 1.0, "local": 1.0}
    assert weights == own | dict.fromkeys(around, 2.0) | {"by_attribute": 1.0, "by_field": 1.0}
    assert set(hits.values()) == {0}
    again, hits = play()
    assert again == weights
    assert {name for name, count in hits.items() if count} == set(weights) - {"by_module", "constant_of_module"}
    # Everything around the rules is edited, but not their file.
    (tmp_path / "deeper.py").write_text("from numba import njit\n@njit\ndef twice(x):\n    return 5.0 * x\n")
    edited = helpers.read_text().replace("return 2.0 * x", "return 3.0 * x")
    helpers.write_text(edited.replace("math.floor(x", "math.ceil(x"))
    constants.write_text(pair.replace("first second", "second first") + "RATE = 7.0\n")
    weights, _ = play()
    changed = dict(zip((*around, "by_attribute", "by_field"), (3.0, 3.0, 5.0, 7.0, 7.0, 2.0, 8.0), strict=True))
    assert weights == own | changed
    script.write_text(HELPED.replace("+= 1.0 * z", "+= 4.0 * z").replace("LOCAL = 1.0", "LOCAL = 9.0"))
    weights, _ = play()
    assert weights == {"own": 4.0, "local": 9.0} | changed


def _source(body: str, before: str = "") -> str:
    return f"import math\nimport numpy as np\nfrom collections import namedtuple\n{before}\n" + textwrap.dedent(body)


BASE = "def f(v, w=1.0):\n    return math.sinh(v) + K * w\n"
DIFFERENT = {
    "an attribute": (BASE.replace("sinh", "tanh"), "K = 1.0"),
    "a constant": (BASE, "K = 2.0"),
    "the type of a constant": (BASE, "K = 1"),
    "a default": (BASE.replace("w=1.0", "w=2.0"), "K = 1.0"),
    "a keyword's default": (BASE.replace("w=1.0", "*, w=2.0"), "K = 1.0"),
    "another keyword's default": (BASE.replace("w=1.0", "*, w=3.0"), "K = 1.0"),
    "a dtype": (BASE, "K = np.zeros(2, np.float32)"),
    "another dtype": (BASE, "K = np.zeros(2, np.int32)"),
    "a type": (BASE, "K = np.float32"),
    "another type": (BASE, "K = np.float64"),
    "numbers": (BASE, "K = (1, 23)"),
    "other numbers": (BASE, "K = (12, 3)"),
    "fields": (BASE, "K = namedtuple('P', 'a b')(1.0, 2.0)"),
    "other fields": (BASE, "K = namedtuple('P', 'b a')(1.0, 2.0)"),
    "a function of a library": (BASE, "K = math.sqrt"),
    "another function of a library": (BASE, "K = math.exp"),
    "the same called otherwise": (BASE.replace("math.sinh", "np.sinh"), "K = 1.0"),
    "options of the compiler": (BASE, "import numba\n@numba.njit\ndef K(x):\n    return x"),
    "other options": (BASE, "import numba\n@numba.njit(fastmath=True)\ndef K(x):\n    return x"),
    "nothing": (BASE, "K = 1.0"),
}


def test_every_difference_is_in_the_digest(tmp_path: Path) -> None:
    """What a compiled copy holds decides where it is kept, however small the difference; and nothing else does."""
    found = {}
    for what, (body, before) in DIFFERENT.items():
        names: dict[str, Any] = {}
        file = tmp_path / "same.py"
        file.write_text("")
        exec(compile(_source(body, before), str(file), "exec"), names)
        found[what] = digest_of(names["f"])
        assert found[what] is not None, what
        exec(compile(_source(body, before), str(file), "exec"), names)
        assert digest_of(names["f"]) == found[what], what
    assert len(set(found.values())) == len(found)
    for unknown in ("K = [1.0]", "K = object()", "K = np.dtype('f4')", "K = np.random.default_rng(1)"):
        exec(compile(_source(BASE, unknown), str(file), "exec"), names)
        assert digest_of(names["f"]) is None, unknown


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


def in_another_order(margin, weights, memory, scalars, index, z, params):  # type: ignore[no-untyped-def]
    return False


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
        (lambda: rule(plain_perceptron, reach=math.nan), ValueError, "reach must be a number >= 0, got nan; try 0"),
        (lambda: rule(plain_perceptron, reach=-1.0), ValueError, "reach must be a number >= 0, got -1.0; try 0"),
        (lambda: rule(plain_perceptron, reach="far"), ValueError, "reach must be a number >= 0, got 'far'; try 0"),
        (lambda: rule(plain_perceptron, parameters=["rate"]), TypeError, "parameters must be names with defaults"),
        (
            lambda: rule(too_few),
            TypeError,
            "rule 'too_few' must take weights, memory, scalars, index, z, margin, params, in this order; it takes "
            "weights, memory, scalars, index, z, margin$",
        ),
        (lambda: rule(in_another_order), TypeError, "in this order; it takes margin, weights, memory"),
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
    scalars[6] += 1.0
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
        (missing_slot, {}, r"reaches for memory\[0, \d+\], but memory has 0 rows.*such as slots=\(0.0,\)"),
        (missing_row, {"slots": (0.0,)}, r"reaches for memory\[1\], but memory has 1 rows.*slots="),
        (missing_parameter, {}, r"reaches for params\[0\], but there are 0; give parameters="),
        (missing_scalar, {}, r"reaches for scalars\[6\], but there are 6, of which your own start at 6; give scalars="),
        (too_far, {}, r"reaches for weights\[12\], .*change weights at the coordinates of index only"),
        (first_of_z, {}, r"reaches for index\[0\], but z has 0 coordinates here.*loop over range\(index.size\)"),
        (through_another, {"slots": (0.0, 0.0)}, r"reaches for memory\[2, \d+\], but memory has 2 rows"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_out_of_bounds(function: Any, options: dict[str, Any], message: str) -> None:
    """Compiled code would read and write beyond the arrays, so that such a rule is never made."""
    with pytest.raises(IndexError, match=f"rule '{function.__name__}' {message}"):
        rule(function, **options)
    assert function.__name__.replace("_", "-") not in OWN_RULES


@pytest.mark.small
def test_out_of_bounds_with_some_parameters_only() -> None:
    own = rule(with_momentum, parameters={"momentum": 0.0}, reach=math.inf)
    with pytest.raises(IndexError, match=r"rule 'with_momentum' reaches for memory\[0, .*slots="):
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
data = linmax.majority_problem(trials=40, seed=2)
found = [linmax.run(rule, linmax.experts(votes=data.votes), data.labels).model.weights.arrays.flat.tolist() for rule in rules]
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


@pytest.mark.small
@pytest.mark.parametrize("name", rules.REGISTRY)
def test_built_in_rules_are_made_again(name: str) -> None:
    """No address of a compiled function is in a pickle."""
    needed = {"winnow": (1.5,), "balanced-winnow": (1.5,), "committee": (1.5,), "quasi-additive": ("sinh",)}
    made = rules.REGISTRY[name](*needed.get(name, (2.5,) if name == "p-norm" else ()))
    data = pickle.dumps(made)
    assert pickle.loads(data) == made
    assert b"made_again" in data
    assert all(np.float64(value).tobytes() not in data for value in made.values if 0.0 < value < 1e-300)


@compiled
def test_pickles_in_another_process(
    in_a_process: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules, written in a module or inside of a function, and estimators that learned with them."""
    (tmp_path / "own_links.py").write_text("def cubed(v):\n    return v * v * v\n")
    monkeypatch.syspath_prepend(tmp_path)
    cubed = importlib.import_module("own_links").cubed
    factor = 3.0

    @rule(parameters={"rate": 1.0})
    def inside(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
        if margin > 0.0:
            return False
        for j in range(index.size):
            weights[index[j]] += factor * params[0] * z[j]
        return True

    sent = [inside(0.5), rules.quasi_additive(lambda v: 2.0 * v), rules.quasi_additive(cubed), rules.arow()]
    models = [LinearMaxClassifier(learner).fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"]) for learner in sent]
    fusion = VoteFusion(inside).fit([["a", "b"], ["b", "a"]], ["a", "b"])
    learner = Learner(sent[1])
    learner.learn(votes={"ann": "x", "bob": "y"}, label="y")
    path, script = tmp_path / "sent.pickle", tmp_path / "script.py"
    path.write_bytes(pickle.dumps((sent, models)))
    script.write_text(ROUND_TRIP.replace("sys.argv[1]", repr(str(path))))
    data = majority_problem(trials=40, seed=2)
    expected = [run(r, experts(votes=data.votes), data.labels).model.weights.arrays.flat.tolist() for r in sent]
    assert in_a_process(script) == [expected, [["a"]] * 4]
    path.write_bytes(pickle.dumps((fusion, learner)))
    script.write_text(
        f"import json, pickle\nfusion, learner = pickle.load(open({str(path)!r}, 'rb'))\n"
        "print(json.dumps([fusion.predict([['a', 'b']]).tolist(), learner.predict(votes={'bob': 'y'})]))"
    )
    assert in_a_process(script) == [["a"], "y"]


@pytest.mark.small
def test_what_cannot_be_pickled_says_why() -> None:
    lock = threading.Lock()

    def link(v: float, kept: Any = lock) -> float:
        return v

    shipped = Shipped(link, "link 'link'", rule(plain_perceptron, parameters={"rate": 1.0}))
    with pytest.raises(
        pickle.PicklingError, match="link 'link' cannot be pickled, since it refers to something .*lock"
    ):
        pickle.dumps(shipped)


@pytest.mark.small
@pytest.mark.parametrize("name", LINKS)
def test_a_link_of_ones_own_by_a_built_in_name(name: str) -> None:
    def own(v: float) -> float:
        return v * v * v

    own.__name__ = name
    with pytest.raises(ValueError, match=f"link '{name}': text means a built-in by that name; try my_{name}"):
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
    assert {*(name for name in TECHNIQUES if len(name) > 1), *rules.REGISTRY} <= TAKEN
