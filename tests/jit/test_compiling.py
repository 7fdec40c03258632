"""Compiled code across processes: both modes agree, every kernel is read from the cache, and edits are noticed."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from linmax import rules
from linmax.core.contract import STEP, as_number
from linmax.jit import caching, compiling
from linmax.jit.compiling import JIT, address_of, kernel

PACKAGE = Path(compiling.__file__).parents[1]
compiled = pytest.mark.skipif(not JIT, reason="is about the compiler")

COMPILE_FIRST = Path(__file__).parents[1] / "compile_first.py"

KERNELS = """
import json
from linmax.cli.warm import kernels

hits, misses = 0, []
for kernel in kernels():
    name = kernel.py_func.__qualname__
    stats = kernel.compiled.stats
    hits += sum(stats.cache_hits.values())
    misses += [name] * sum(stats.cache_misses.values())
print(json.dumps({"hits": hits, "misses": misses}))
"""

TRACES = """
import json
import numpy as np
from linmax.theory import LinearThreshold
from linmax import instances, rules, run

rng = np.random.default_rng(4)
size = 40
votes, labels = rng.integers(-1, 3, (size, 3)), rng.integers(3, size=size)
instances = instances(
    votes=votes, scores=rng.random((size, 2, 3)), attributes=rng.uniform(-1, 1, (size, 2)), abstain=-1,
    classes=range(3), negated=True, split="all",
)
learners = [
    "perceptron(margin=0.5)", "winnow(1.3)", "winnow(1.3, thickness=0.05)", "committee(2)", "balanced-winnow(1.5)",
    "balanced-winnow(1.5, thickness=0.05)", "quasi-additive(sinh, rate=0.3)", "p-norm(3)", "p-norm(60)",
    "alma(2.5, alpha=0.8)", "alma(3, project=False, normalise=False)", "sasb",
]
found = {}
for text in learners:
    trace = run(text, instances, labels, margins=True)
    weights = trace.model.weights.arrays
    found[text] = [
        trace.predictions.tolist(), trace.changed.tolist(), trace.margins.tolist(), weights.flat.tolist(),
        weights.log_scale, trace.model.scores(instances[:5]).tolist(),
    ]
x = np.abs(rng.uniform(-1, 1, (size, 4)))
thick = "winnow(1.5, thickness=0.25, threshold=1.5, demotion=0)"
for text in ["winnow(2, threshold=1.5)", thick, "perceptron", "sasb"]:
    learner = LinearThreshold(text, labels=(0, 1))
    trace = learner.run(x, labels > 0)
    found["two classes: " + text] = [
        trace.predictions.tolist(), trace.changed.tolist(), learner.weights.tolist(), learner.log_scale,
        learner.score(x[:5]).tolist(),
    ]
print(json.dumps(found))
"""


def flat(value: Any) -> list[float]:
    return [number for item in value for number in flat(item)] if isinstance(value, list) else [float(value)]


@compiled
def test_both_modes_agree(in_a_process: Callable[..., Any]) -> None:
    fast, slow = in_a_process(TRACES), in_a_process(TRACES, NUMBA_DISABLE_JIT="1")
    assert fast.keys() == slow.keys()
    for text, outcome in fast.items():
        assert outcome[:2] == slow[text][:2], text  # predictions and updates
        np.testing.assert_allclose(flat(outcome[2:]), flat(slow[text][2:]), rtol=1e-11, atol=1e-13, err_msg=text)


@compiled
def test_a_second_process_reads_every_kernel_from_the_cache(in_a_process: Callable[..., Any]) -> None:
    in_a_process(COMPILE_FIRST)
    assert in_a_process(COMPILE_FIRST) == 0  # nothing is left to compile
    found = in_a_process(KERNELS)
    assert found["misses"] == []
    assert found["hits"] > 80


@compiled
def test_editing_a_rule_is_noticed(in_a_process: Callable[..., Any], tmp_path: Path) -> None:
    source = tmp_path / "src"
    shutil.copytree(PACKAGE, source / "linmax", ignore=shutil.ignore_patterns("__pycache__"))
    script = """
import json
import numpy as np
from linmax.rules.perceptron import perceptron, step
weights = np.zeros(2)
scalars = np.array(perceptron().first_scalars())
step(weights, np.zeros((0, 2)), scalars, np.array([1]), np.array([0.5]), 0.0, np.array([1.0, 0.0]))
print(json.dumps([weights[1], sum(step.compiled.stats.cache_hits.values()), step.compiled.stats.cache_path]))
"""
    cache = str(tmp_path / "cache")
    weight, hits, folder = in_a_process(script, source, NUMBA_CACHE_DIR=cache)
    assert (weight, hits) == (0.5, 0)
    assert folder.startswith(cache)
    weight, hits, again = in_a_process(script, source, NUMBA_CACHE_DIR=cache)
    assert (weight, hits, again) == (0.5, 1, folder)
    elsewhere = shutil.copytree(source, tmp_path / "elsewhere")
    assert in_a_process(script, elsewhere, NUMBA_CACHE_DIR=cache) == [0.5, 1, folder]  # the same sources, another place
    rule = source / "linmax" / "rules" / "perceptron.py"
    old = "rate, fits = params[0], True"
    text = rule.read_text()
    assert old in text
    rule.write_text(text.replace(old, "rate, fits = 2.0 * params[0], True"))
    weight, hits, other = in_a_process(script, source, NUMBA_CACHE_DIR=cache)
    assert (weight, hits) == (1.0, 0)
    assert other != folder


def test_a_file_depends_on_the_kernels_that_it_calls() -> None:
    loop = {str(path.relative_to(PACKAGE)) for path in caching.sources_of(PACKAGE / "engine" / "loop.py")}
    called = {"engine/loop.py", "core/contract.py", "core/member.py", "jit/scores.py", "techniques/recycling.py"}
    assert called | {"jit/compiling.py"} <= loop
    assert "jit/vectors.py" in loop  # it writes code for others
    assert not any(path.startswith("rules") or path == "core/search.py" for path in loop)  # called by address
    alma = {path.name for path in caching.sources_of(PACKAGE / "rules" / "alma.py")}
    assert alma == {"alma.py", "p_norm.py", "mixing.py", "compiling.py", "contract.py", "struct.py", "vectors.py"}


@compiled
def test_the_cache_folder_follows_the_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one, other = tmp_path / "a.py", tmp_path / "b.py"
    one.write_text("1")
    monkeypatch.setattr(caching, "_cache_base", lambda: tmp_path / "cache")
    monkeypatch.setattr(caching, "sources_of", lambda _: [one, other])
    seen = []
    for state in range(caching.STATES_KEPT + 2):
        other.write_text(str(state))
        caching.cache_folder.cache_clear()
        folder = Path(caching.cache_folder(str(one)))
        caching.cache_folder.cache_clear()
        assert folder.parent == tmp_path / "cache"
        assert Path(caching.cache_folder(str(one))) == folder
        folder.mkdir(parents=True)
        os.utime(folder, (state, state))
        seen.append(folder)
    caching.cache_folder.cache_clear()
    assert len(set(seen)) == len(seen)
    assert [folder.exists() for folder in seen] == [False] * 2 + [True] * caching.STATES_KEPT  # the oldest are gone


def test_addresses() -> None:
    assert address_of(None, STEP) == 0
    first, second = (address_of(rule.step, STEP) for rule in (rules.perceptron(), rules.winnow(1.1)))
    assert first != second
    assert first == address_of(rules.perceptron(rate=2).step, STEP)
    assert np.float64(as_number(first)).view(np.int64) == first


LINKED = """
import json
import numpy as np
from linmax import instances, rule, run
from linmax.datasets import majority_problem
from linmax.rules.perceptron import step

@rule
def same(weights, memory, scalars, index, z, margin, params):
    return step(weights, memory, scalars, index, z, margin, np.array([1.0, 0.0]))

data = majority_problem(trials=300, seed=1)
mistakes = [int(run(learner, instances(votes=data.votes), data.labels).mistakes[-1]) for learner in (same, "perceptron")]
print(json.dumps([mistakes, sum(step.compiled.stats.cache_hits.values())]))
"""


@compiled
def test_code_read_from_the_cache_is_linked_into_other_code(in_a_process: Callable[..., Any]) -> None:
    in_a_process(LINKED)
    (mine, built_in), hits = in_a_process(LINKED)
    assert (mine, hits) == (built_in, 1)


@compiled
def test_importing_compiles_and_reads_nothing(in_a_process: Callable[..., Any]) -> None:
    script = """
import gc, json
import linmax, linmax.models.streams
from linmax.jit.compiling import Kernel
kernels = [value for value in gc.get_objects() if isinstance(value, Kernel)]
print(json.dumps([len(kernels), sum("dispatcher" in vars(kernel) for kernel in kernels)]))
"""
    kernels, ready = in_a_process(script)
    assert kernels > 100
    assert ready == 0


FULL = """
import json, resource, signal, warnings
import linmax
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    trace = linmax.run("perceptron", linmax.instances(votes=[["a", "b"], ["b", "b"]]), ["a", "b"])
print(json.dumps([trace.predictions.tolist(), [str(warning.message) for warning in told]]))
"""


@compiled
def test_a_full_disk_does_not_keep_from_learning(in_a_process: Callable[..., Any], tmp_path: Path) -> None:
    pytest.importorskip("resource")
    # Python itself would leave half of a module's bytecode behind, if that were not there yet.
    given = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    predictions, told = in_a_process(FULL, **given)
    assert predictions == ["a", "a"]  # a tie goes to the first class
    assert any(text.startswith("play is compiled but cannot be kept in") for text in told)
    assert all("File too large" in text for text in told)


def test_a_kernel_is_known_by_its_name() -> None:
    step = rules.perceptron().step
    assert pickle.loads(pickle.dumps(step)) is step
    assert copy.deepcopy(step) is step
    assert "linmax.rules.perceptron" in step.__module__


@kernel()
def product(a: float, b: int) -> float:
    return a * b


@kernel(hot=True)
def busy(a: float, b: int) -> float:
    return product(a, 2) + product(a, b) + product(a, 3)


def attributes(helper: Any) -> set[str]:
    """What LLVM is told of a helper, which must have been compiled once."""
    (code,) = helper.dispatcher.overloads.values()
    function = code.library._final_module.get_function(code.fndesc.llvm_func_name)
    return {name.decode() for line in function.attributes for name in line.split()}


@compiled
def test_a_helper_is_compiled_once_and_inlined_where_that_was_asked_for() -> None:
    """Numba would compile it for each constant, and inline all that something hot calls."""
    called = numba.njit(lambda a, b: (busy(a, b), busy(a, 7), busy(a, np.int32(b))))
    assert called(0.5, 3) == (4.0, 6.0, 4.0)  # 5 a + a b
    assert "alwaysinline" in attributes(busy)
    assert not {"alwaysinline", "noinline"} & attributes(product)


@compiled
def test_garbage_collector_runs_after_compiling() -> None:
    for running in (True, False):
        (gc.enable if running else gc.disable)()
        try:
            with compiling.no_collection():
                assert not gc.isenabled()
            assert gc.isenabled() == running
        finally:
            gc.enable()
