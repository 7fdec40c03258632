"""``linmax warm`` compiles beforehand, in several processes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from linmax.cli import warm
from linmax.jit.compiling import CHECKED, JIT

pytestmark = pytest.mark.skipif(not JIT or CHECKED, reason="is about code that is kept in the cache")


def fail(place: int) -> None:
    raise OSError(f"no space {place}")


def test_a_task_that_fails_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for processes in (1, 2):
        monkeypatch.setattr(warm, "processors", lambda count=processes: count)
        files = [tmp_path / f"{processes}-{name}" for name in "ab"]
        warm.in_parallel([partial(fail, 0), *(file.touch for file in files), partial(fail, 1)])
        assert all(file.exists() for file in files)


COMPILE = """
import json
from linmax.cli import warm
from linmax.core.averages import multiple
from linmax.data.scaling import scale_rows
warm.processors = lambda: 2
warm.missing_kernels = lambda: [multiple, scale_rows]
warm.in_parallel(warm.kernel_tasks())
hits = [sum(kernel.compiled.stats.cache_hits.values()) for kernel in (multiple, scale_rows)]
print(json.dumps(hits))
"""


def test_two_processes_share_the_work(in_a_process: Callable[..., Any], tmp_path: Path) -> None:
    hits = in_a_process(COMPILE, NUMBA_CACHE_DIR=str(tmp_path))
    assert hits == [1, 1]  # this process reads what others compiled
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


@pytest.mark.nightly
def test_a_learner_that_was_warmed_compiles_nothing(in_a_process: Callable[..., Any], tmp_path: Path) -> None:
    status, before, after = in_a_process(LEARNER, NUMBA_CACHE_DIR=str(tmp_path))
    assert status == 0
    assert before == after > 0
