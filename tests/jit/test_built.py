"""Code compiled ahead is read instead of compiled, but only where it fits."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from linmax.jit import built
from linmax.jit.compiling import CHECKED, JIT

pytestmark = pytest.mark.skipif(not JIT or CHECKED, reason="is about compiled code that is shipped")

SCRIPT = """
import json
import numpy as np
from linmax.core.averages import multiple
value = multiple(1, np.zeros(6), np.arange(12.0))
stats = multiple.compiled.stats
print(json.dumps([value, sum(stats.cache_hits.values()), sum(stats.cache_misses.values())]))
"""
OLD = {"NUMBA_CPU_NAME": "x86-64-v2", "NUMBA_CPU_FEATURES": "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16"}


@pytest.fixture
def shipped(in_a_process: Callable[..., Any], tmp_path: Path) -> Path:
    """A folder with one function, compiled for processors of long ago where this is one of their family."""
    level = OLD if platform.machine().lower() in ("x86_64", "amd64") else {}
    folder = tmp_path / "built"
    cache = str(tmp_path / "first")
    _, hits, misses = in_a_process(SCRIPT, LINMAX_BUILD_AHEAD=str(folder), NUMBA_CACHE_DIR=cache, **level)
    assert (hits, misses) == (0, 1)
    return folder


def test_what_was_compiled_ahead_is_not_compiled(
    in_a_process: Callable[..., Any], tmp_path: Path, shipped: Path
) -> None:
    def again(folder: Path, cache: str) -> list[float]:
        found: list[float] = in_a_process(SCRIPT, LINMAX_BUILT=str(folder), NUMBA_CACHE_DIR=str(tmp_path / cache))
        return found

    value, *compiled = again(tmp_path / "nowhere", "plain")
    assert compiled == [0, 1]
    assert again(shipped, "second") == [value, 1, 0]
    assert not list((tmp_path / "second").rglob("*.nbc"))
    (level,) = shipped.iterdir()
    (level / "features").write_text("+sse3,+wings\n", encoding="ascii")
    assert again(shipped, "third") == [value, 0, 1]  # no processor has these


def test_another_python_or_numba_is_another_kind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LINMAX_BUILT", str(tmp_path))
    for kind, features in (
        (built.kind_of_python(), ""),
        ("cpython-27-numba-0.1", ""),
        (built.kind_of_python(), "+a,+b"),
    ):
        folder = tmp_path / f"{kind}-{features.count('+')}"
        folder.mkdir()
        (folder / "features").write_text(features, encoding="ascii")
    monkeypatch.setattr(built.binding, "get_host_cpu_features", lambda: {"a": True, "b": True})
    found = built.levels.__wrapped__()
    assert [folder.name[-1] for folder in found] == ["2", "0"]  # the more demanding first
    monkeypatch.setattr(built.binding, "get_host_cpu_features", lambda: {"a": True})
    assert [folder.name[-1] for folder in built.levels.__wrapped__()] == ["0"]
