"""``linmax warm`` compiles beforehand, in several processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from linmax.cli import warm
from linmax.jit.compiling import CHECKED, JIT

pytestmark = pytest.mark.skipif(not JIT or CHECKED, reason="is about code that is kept in the cache")


def test_tasks_are_claimed_once(tmp_path: Path) -> None:
    done: list[str] = []
    tasks = [partial(done.append, name) for name in "ab"]
    warm._take(str(tmp_path), tasks)
    warm._take(str(tmp_path), tasks)
    (tmp_path / "1").unlink()
    warm._take(str(tmp_path), tasks)
    assert done == ["a", "b", "b"]


COMPILE = """
import json
from linmax.cli import warm
from linmax.core.averages import multiple
from linmax.data.distinct import place_few
warm.processors = lambda: 2
warm.missing_kernels = lambda: [multiple, place_few]
warm.in_parallel(warm.kernel_tasks())
hits = [sum(kernel.compiled.stats.cache_hits.values()) for kernel in (multiple, place_few)]
print(json.dumps(hits))
"""


def test_two_processes_share_the_work(in_a_process: Callable[..., Any], tmp_path: Path) -> None:
    hits = in_a_process(COMPILE, NUMBA_CACHE_DIR=str(tmp_path))
    assert sorted(hits) in ([0, 0], [0, 1])  # what this process has not compiled it read
    assert len(list(tmp_path.rglob("*.nbi"))) == 2


LEARNER = """
import json
from linmax.cli import main, warm
status = main(["warm", "perceptron"])
before = len(warm.missing_kernels())
import linmax
learner = linmax.Learner("perceptron")
for t in range(40):
    learner.learn({"u": 0.5, "v": t % 3}, label="xyz"[t % 3])
print()
print(json.dumps([status, before, len(warm.missing_kernels())]))
"""


def test_a_learner_that_was_warmed_compiles_nothing(in_a_process: Callable[..., Any], tmp_path: Path) -> None:
    status, before, after = in_a_process(LEARNER, NUMBA_CACHE_DIR=str(tmp_path))
    assert status == 0
    assert before == after > 0


def test_an_error_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(claims: str, tasks: list[Any]) -> None:
        if os.getpid() == here:
            raise OSError("no space")
        time.sleep(600)

    here = os.getpid()
    monkeypatch.setattr(warm, "_take", fail)
    monkeypatch.setattr(warm, "processors", lambda: 2)
    with pytest.raises(OSError, match="no space"):
        warm.in_parallel([lambda: None, lambda: None])
