"""Pipes that pause, close and break, and signals at any moment: lines are answered as they come, and nothing is lost."""

from __future__ import annotations

import gzip
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from linmax.cli import main
from linmax.models.streams import StreamModel, progressive

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX pipes and signals")

LINES = ["a |f x y\n", "b |f z w\n"]
SECONDS = 300  # of a test that would fail; a busy machine takes long to import and compile


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model of two classes, in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("data.vw").write_text("".join(LINES * 20))
    assert main(["learn", "data.vw", "--model", "m", "--learner", "perceptron", "--scale", "idf", "--quiet"]) == 0
    return tmp_path / "m"


def restore_signals() -> None:
    """Undo what a shell (background jobs) or nohup make a process ignore."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command as a process with pipes, which ends with the test."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "linmax.cli", *arguments]
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, preexec_fn=restore_signals
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[bytes], text: str = "") -> bytes:
    """Send text and wait for a line."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(text.encode())
    assert select.select([process.stdout], [], [], SECONDS)[0], f"no answer to {text!r}"
    return process.stdout.readline()


def test_lines_are_answered_as_they_come(model: Path) -> None:
    with running("predict", "m", "-") as process:
        for _ in range(3):
            assert said(process, "|f x\n") == b"a\n"
            assert said(process, "|f w\n") == b"b\n"
        assert said(process, "|f x\n|f z\n|f") == b"a\n"
        assert said(process) == b"b\n"
        assert said(process, " w z\n") == b"b\n"
        assert process.communicate(timeout=SECONDS)[0] == b""
    assert process.returncode == 0


def test_lines_are_answered_while_learning_and_from_a_packed_pipe(model: Path) -> None:
    with running("learn", "-", "--predictions", "-", "--quiet", "--learner", "perceptron") as process:
        assert said(process, "a |f x\n") == b"\n"  # no class is known
        assert said(process, "b |f z\n") == b"a\n"
        assert said(process, "b |f z\n") == b"b\n"
    with running("predict", "m", "-") as process:
        assert process.stdin is not None
        process.stdin.write(gzip.compress(b"|f x\n|f w\n"))
        assert said(process) == b"a\n"
        assert said(process) == b"b\n"


# For each format: what comes before the rows, a row of either class with its label, and without.
SLOW = {
    "vw": ("", ["a |f x y\n", "b |f z w\n"], ["|f x y\n", "|f z w\n"]),
    "svmlight": ("", ["1 1:1 2:1\n", "2 3:1 4:1\n"], ["1:1 2:1\n", "3:1 4:1\n"]),
    "text": ("", ["a\tred apple\n", "b\tgreen pear\n"], ["red apple\n", "green pear\n"]),
    "csv": ("x,y,label\n", ["1,0,a\n", "0,1,b\n"], ["1,0,\n", "0,1,\n"]),
    "tsv": ("x\ty\tlabel\n", ["1\t0\ta\n", "0\t1\tb\n"], ["1\t0\t\n", "0\t1\t\n"]),
    "jsonl": ("", ['{"class": "a", "x": 1}\n', '{"class": "b", "z": 1}\n'], ['{"x": 1}\n', '{"z": 1}\n']),
}


@pytest.mark.parametrize(
    "kind",
    ["vw", "text", "csv", "jsonl", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("svmlight", "tsv"))],
)
def test_the_first_line_is_answered_before_the_second_in_every_format(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before, labelled, others = SLOW[kind]
    fast = ["--format", kind, "--learner", "perceptron", "--quiet"]
    with running("learn", "-", "--predictions", "-", "--model", "m", *fast) as process:
        assert said(process, before + labelled[0]) == b"\n"  # no class is known
        first, second = (b"1\n", b"2\n") if kind == "svmlight" else (b"a\n", b"b\n")
        assert said(process, labelled[1]) == first
        for _ in range(5):
            said(process, labelled[0])
            said(process, labelled[1])
        process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    with running("predict", "m", "-", "--format", kind, "--json", "figures") as process:
        assert said(process, before + others[0]) == first
        time.sleep(0.7)  # longer than a pipe is waited for
        assert said(process, labelled[1]) == second
        assert said(process, labelled[0]) == first
        process.communicate(timeout=SECONDS)
    figures = json.loads(Path("figures").read_text())
    assert (figures["lines"], figures["labelled"], figures["mistakes"]) == (3, 2, 0), "labels that come later count"


def test_a_text_before_a_tab_is_a_label_only_if_it_can_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.tsv").write_text("good fruit\tred apple\nbad fruit\tgreen pear\n" * 9)
    fast = ["--format", "text", "--learner", "perceptron", "--quiet"]
    assert main(["learn", "data.tsv", "--model", "m", *fast]) == 0
    Path("new.tsv").write_text("good fruit\tred apple\nred apple\tsweet\nplum\tred apple\n")
    assert main(["predict", "m", "new.tsv", "--json", "figures"]) == 0
    figures = json.loads(Path("figures").read_text())
    assert (figures["lines"], figures["labelled"], figures["mistakes"]) == (3, 2, 1)


def test_a_table_waits_for_its_first_rows_only() -> None:
    with running("learn", "-", "--predictions", "-", "--quiet", "--learner", "perceptron") as process:
        assert process.stdin is not None
        process.stdin.write(b"x,y\n")
        time.sleep(0.2)
        assert said(process, "1,p\n") == b"\n"
        assert said(process, "2,q\n") == b"p\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_on_a_quiet_pipe_saves_the_model(number: signal.Signals, model: Path) -> None:
    with running("learn", "-", "--model", "n", "--predictions", "p", "--learner", "perceptron") as process:
        assert process.stdin is not None
        said(process, "".join(LINES))
        while b" 2 " not in said(process):
            pass
        process.send_signal(number)
        out, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + number
    assert b"What was learned from 2 trials is saved in n." in out
    assert errors in (b"linmax: interrupted\n", b"linmax: asked to end\n")
    assert StreamModel.load("n").trials == 2
    assert Path("p.part").read_text().splitlines() == ["", "a"]


def test_signals_at_random_moments_leave_a_whole_model(model: Path) -> None:
    draw = random.Random(1)
    Path("many.vw").write_text("".join(f"{draw.choice('abc')} | w{draw.randrange(999)} v{i}\n" for i in range(60_000)))
    for _ in range(6):
        Path("n").unlink(missing_ok=True)
        arguments = ["many.vw", "--model", "n", "--learner", "perceptron", "--passes", "50", "--quiet"]
        with running("learn", *arguments, "--checkpoint", "c", "--every", "20000") as process:
            time.sleep(draw.uniform(0.3, 1.5))
            process.send_signal(draw.choice([signal.SIGINT, signal.SIGTERM]))
            process.communicate(timeout=SECONDS)
        if Path("n").exists():
            assert StreamModel.load("n").trials > 0
        if Path("c").exists():
            assert progressive.Progressive.load("c")[0].model.trials > 0
        left = {path.name for path in Path().iterdir()} - {"data.vw", "many.vw", "m", "n", "c"}
        assert not left, "nothing else stays behind"


@pytest.mark.parametrize("failing", ["play", "_count"])
def test_without_memory_the_model_is_saved(
    failing: str, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("long.vw").write_text("".join(LINES * 5000))
    done = getattr(progressive.Progressive, failing)

    def fail(self: progressive.Progressive, *given: object) -> object:
        if self.counts.trials:
            raise MemoryError
        return done(self, *given)

    monkeypatch.setattr(progressive.Progressive, failing, fail)
    assert main(["learn", "long.vw", "--model", "n", "--learner", "perceptron", "--quiet"]) == 1
    assert "out of memory" in capsys.readouterr().err
    assert StreamModel.load("n").trials >= 4096


# -- outputs ------------------------------------------------------------------------------------------------------


def test_two_processes_do_not_write_one_model(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running("learn", "-", "--model", "m", "--format", "vw", "--predictions", "-", "--quiet") as process:
        said(process, LINES[0])  # it has begun
        assert main(["learn", "data.vw", "--model", "m", "--quiet"]) == 2
        assert "m is being written by another process" in capsys.readouterr().err
        process.communicate(timeout=SECONDS)
    assert main(["learn", "data.vw", "--model", "m", "--learner", "perceptron", "--quiet"]) == 0
    assert {path.name for path in Path().iterdir()} == {"data.vw", "m"}


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_closed_streams_are_no_matter(closed: int, model: Path) -> None:
    command = [sys.executable, "-m", "linmax.cli", "predict", "m", "-" if closed == 0 else "data.vw", "--out", "p"]
    shell = f'exec "$@" {closed}{"<" if closed == 0 else ">"}&-'
    done = subprocess.run(["sh", "-c", shell, "sh", *command], capture_output=True, text=True, timeout=SECONDS)
    assert "Traceback" not in done.stderr
    assert done.returncode == (2 if closed == 0 else 0)
    if closed == 0:
        assert "standard input is closed" in done.stderr
    else:
        assert len(Path("p").read_text().splitlines()) == 40


@pytest.mark.parametrize(
    "arguments",
    [["predict", "m", "many.vw"], ["learn", "many.vw", "--predictions", "-", "--quiet", "--learner", "perceptron"]],
)
def test_closed_pipe_is_no_error(arguments: list[str], model: Path) -> None:
    Path("many.vw").write_text("".join(LINES * 20_000))
    with running(*arguments) as process:
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.parametrize("output", [["predict", "m", "many.vw", "--out", "p"],
                                    ["learn", "many.vw", "--predictions", "p", "--quiet"],
                                    ["learn", "many.vw", "--checkpoint", "c", "--every", "9000", "--quiet"],
                                    ["learn", "many.vw", "--model", "m", "--quiet"]])  # fmt: skip
def test_a_full_disk(output: list[str], model: Path) -> None:
    Path("many.vw").write_text("".join(f"{'ab'[i % 2]} | w{i} x\n" for i in range(20_000)))
    before = Path("m").read_bytes()
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (9999, 9999)); from linmax.cli import main; "
    )
    code += f"sys.exit(main({[*output, *(['--learner', 'perceptron'] if output[0] == 'learn' else [])]!r}))"
    # -B: Python itself would leave half of a module's bytecode behind, if that were not there yet.
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 2
    assert f"linmax: error: {output[-1] if output[0] == 'predict' else output[3]}: File too large\n" in done.stderr
    assert Path("m").read_bytes() == before
    assert {path.name for path in Path().iterdir()} == {"data.vw", "many.vw", "m"}


@pytest.mark.parametrize("module", ["linmax", "linmax.cli"])
def test_the_status_reaches_the_shell(module: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", module, "learn", "nothing.vw"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 2


def test_a_named_pipe_is_opened_once_and_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "".join(f"{'ab'[i % 2]} |f w{i % 2} x{i % 50}\n" for i in range(12_000))
    Path("data.vw").write_text(text)
    fast = ["--learner", "perceptron", "--quiet"]
    assert main(["learn", "data.vw", *fast, "--model", "whole"]) == 0
    os.mkfifo("pipe")
    writer = [sys.executable, "-c", "open('pipe', 'w').write(open('data.vw').read())"]
    command = ["learn", "pipe", "--format", "vw", *fast, "--model", "piped", "--checkpoint", "kept", "--every", "1000"]
    with running(*command) as process, subprocess.Popen(writer) as feeding:
        try:
            process.communicate(timeout=SECONDS)
        finally:
            feeding.kill()
    assert process.returncode == 0
    assert StreamModel.load("piped").trials == 12_000
    assert Path("piped").read_bytes() == Path("whole").read_bytes()


def test_a_named_pipe_is_read_once_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    assert main(["learn", "pipe", "--passes", "2"]) == 2
    assert "pipe, a pipe, can be read once only; write it to a file for more passes" in capsys.readouterr().err
