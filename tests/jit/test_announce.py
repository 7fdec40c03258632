"""Compilation is announced to whoever waits for it, and eight threads may ask for it at once."""

from __future__ import annotations

import logging
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from linmax.jit import announce
from linmax.jit.announce import announced
from linmax.jit.compiling import JIT

compiled = pytest.mark.skipif(not JIT, reason="requires the compiler")

THREADS = """
import json, threading
from linmax import Learner

failures, mistakes = [], {}


def play(learner):
    try:
        model = Learner(learner)
        for i in range(30):
            model.learn({"f": 0.5, "g": i % 3 * 0.2}, label="xyz"[i % 3])
        model.predict_proba({"f": 0.5})
        mistakes[learner] = model.mistakes
    except BaseException as error:
        failures.append(f"{learner}: {error!r}")


learners = ["auto", "AR-perceptron", "winnow(1.1)", "A-arow(1)", "R-perceptron", "softmax", "perceptron", "V-perceptron"]
threads = [threading.Thread(target=play, args=(learner,), daemon=True) for learner in learners]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(400)
failures += [f"{learner}: still waiting" for learner, thread in zip(learners, threads) if thread.is_alive()]
print(json.dumps([failures, mistakes]))
"""


@compiled
def test_eight_threads_compile_eight_learners(in_a_process: Callable[..., Any], tmp_path: Path) -> None:
    failures, together = in_a_process(THREADS, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert failures == []
    in_turn = THREADS.replace("    thread.start()\n", "    thread.start()\n    thread.join(400)\n")
    assert in_a_process(in_turn, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == [[], together]


LEARN_ALONE = """
from linmax import Learner
from linmax.jit import announce

announce.DELAY = 0.01  # any compilation is long enough
model = Learner("perceptron")
for i in range(3):
    model.learn({"f": 0.5}, label="xy"[i % 2])
"""


def on_a_terminal(arguments: list[str], cache: Path, **environment: str) -> str:
    """Run Python with a terminal as standard error; return what it shows."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONWARNINGS": "ignore"} | environment,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # Linux reports the end of a terminal as an error
        pass
    finally:
        os.close(ours)
    assert process.wait() == 0, shown
    return shown.decode()


@compiled
def test_python_users_see_one_line_for_each_learner(tmp_path: Path) -> None:
    shown = on_a_terminal(["-c", LEARN_ALONE], tmp_path)
    assert shown.splitlines() == ["linmax: compiling kernels for perceptron (first use only) ..."]
    assert on_a_terminal(["-c", LEARN_ALONE], tmp_path) == ""  # the kernels are cached now


@compiled
def test_quiet_silences_the_terminal(tmp_path: Path) -> None:
    assert on_a_terminal(["-c", LEARN_ALONE], tmp_path, LINMAX_QUIET="1") == ""


@compiled
def test_commands_show_what_they_compile(tmp_path: Path) -> None:
    rows = tmp_path / "rows.svm"
    rows.write_text("".join(f"{i % 2} 1:{i % 3} 2:1\n" for i in range(20)))
    command = ["-m", "linmax", "learn", str(rows), "--learner", "perceptron"]
    shown = on_a_terminal(command, tmp_path / "cache", TERM="xterm", COLUMNS="100")
    assert "compiling cut_lines" in shown
    assert "for perceptron (first use only)" in shown
    assert "compiling" not in on_a_terminal(command, tmp_path / "cache", TERM="xterm", COLUMNS="100")


def test_short_compilations_add_up(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(announce, "DELAY", 0.3)
    monkeypatch.setattr(announce, "_seconds", {})
    with caplog.at_level(logging.INFO, "linmax"):
        for _ in range(2):
            with announced("kernel"):
                time.sleep(0.2)
        with announced("kernel"):
            time.sleep(0.4)
    assert [record.getMessage() for record in caplog.records] == ["compiling kernels (first use only) ..."]


def test_a_quick_compilation_is_not_announced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(announce, "_seconds", {})
    with caplog.at_level(logging.INFO, "linmax"), announced("kernel"):
        pass
    assert caplog.records == []
