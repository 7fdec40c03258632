"""What README.md and docs/ say: every block of code runs, and every name, file, test and link in them exists.

The blocks of a page run in order, in one namespace and one temporary folder, where `FILES` puts what the page takes
for granted. A block below ``<!-- not run: needs ... -->`` is left out; of its commands only the arguments are checked.
"""

from __future__ import annotations

import contextlib
import doctest
import gzip
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
import traceback
import urllib.request
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from linmax import cli
from linmax.io import formats

ROOT = Path(__file__).parents[1]
PAGES = {path.name: path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}
TEXTS = PAGES | {name: ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md")}
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: \w.* -->\n+\s*\Z")
OPTIONAL = ("river", "distributed", "matplotlib", "pandas", "polars", "pyarrow")
INSTALLING = ("pip install", "python -m venv")
SERVE = "linmax serve --data"
ADDRESS = "http://127.0.0.1:8471"
PATIENCE = 300  # seconds; a slow machine may have to compile
EXPECTED = {
    "fusion.md": ["Fusion beats the best voter"],
    "explain.md": ["rather than"],
    "side-information.md": ["rather than"],
}


@dataclass
class Block:
    """A fenced block of a page."""

    page: Path
    line: int  # of its first line of code
    language: str
    code: str
    runs: bool

    @property
    def place(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start(3)) + 1
        runs = NOT_RUN.search(text[: found.start()]) is None
        yield Block(page, line, found[2], found[3], runs)


def commands_of(block):
    """The arguments of each `linmax` command in a block of shell."""
    command = r"(?:^|\||\$\(|&&)\s*(?:\w+=\S* )*(?:[\w./]*/)?(?:python -m )?linmax ([^|)\n]*)"
    for arguments in re.findall(command, block.code.replace("\\\n", " "), re.MULTILINE):
        yield shlex.split(arguments, comments=True)


# -- what pages take for granted ---------------------------------------------------------------------------------------


def write_votes(folder):
    rng = np.random.default_rng(0)
    rows = ["question_id,category,anna,ben,carl,answer"]
    for number in range(200):
        label = rng.choice(list("ABC"))
        said = [label if rng.random() < 0.8 else rng.choice(list("ABC")) for _ in range(3)]
        rows.append(",".join([str(number), ("law", "physics")[number % 2], *said, label]))
    (folder / "votes.csv").write_text("\n".join(rows) + "\n")
    (folder / "more.csv.gz").write_bytes(gzip.compress(("\n".join([rows[0], *rows[-50:]]) + "\n").encode()))
    (folder / "new.csv").write_text("\n".join(row.rpartition(",")[0] for row in [rows[0], *rows[-9:]]) + "\n")


def write_streams(folder):
    rng = np.random.default_rng(0)
    table = rng.random((300, 4)).round(3)
    names = np.array(["low", "high"])[(table[:, 0] > 0.5).astype(int)]
    for name, rows in [("train", slice(0, 200)), ("test", slice(200, 300)), ("new", slice(200, 300))]:
        pairs = list(zip(table[rows], names[rows], strict=True))
        vw = [f"{label} |f " + " ".join(f"a{i}:{v}" for i, v in enumerate(row)) for row, label in pairs]
        csv = ["a,b,c,d,class", *(",".join([*map(str, row), label]) for row, label in pairs)]
        (folder / f"{name}.vw").write_text("\n".join(vw) + "\n")
        (folder / f"{name}.csv").write_text("\n".join(csv) + "\n")
    objects = [{"label": label, "features": {"a": row[0]}} for row, label in zip(table.tolist(), names, strict=True)]
    lines = "\n".join(map(json.dumps, objects)) + "\n"
    (folder / "logs.jsonl.gz").write_bytes(gzip.compress(lines.encode()))


def write_shards(folder):
    rng = np.random.default_rng(0)
    (folder / "data").mkdir()
    for name in ("data/part-0.svm", "data/part-1.svm", "monday.svm", "tuesday.svm"):
        rows = [f"{1 if a > 0.5 else 2} 1:{a:.3f} 2:{b:.3f}" for a, b in rng.random((100, 2))]
        (folder / name).write_text("\n".join(rows) + "\n")


FILES = {
    "fusion.md": write_votes,
    "side-information.md": write_votes,
    "streams.md": write_streams,
    "cluster.md": write_shards,
    "coming-from-vowpal-wabbit.md": write_streams,
}


# -- running them --------------------------------------------------------------------------------------------------


class Shell:
    """Runs blocks of shell with bash; `linmax serve` goes on in the background, at a port of its own."""

    def __init__(self, folder):
        self.folder, self.server, self.address = folder, None, ADDRESS
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTHON": sys.executable,
        }

    def close(self):
        if self.server is not None:
            self.server.terminate()
            assert self.server.wait(PATIENCE) == 0

    def run(self, block):
        lines = []
        for line in block.code.splitlines():
            if line.startswith(SERVE):
                self.serve(shlex.split(line, comments=True)[1:])
            elif not line.startswith(INSTALLING):
                lines.append(line.replace(ADDRESS, self.address))
        script = [
            "set -euo pipefail",
            'linmax() { "$PYTHON" -m linmax "$@"; }',
            "curl() { command curl -w '%{stderr}status %{http_code}\\n' \"$@\"; }",
            *lines,
        ]
        done = subprocess.run(
            ["bash", "-c", "\n".join(script)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, f"{block.place}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        refused = set(re.findall(r"^status ([45]\d\d)$", done.stderr, re.MULTILINE)) - {"428"}  # deletion asks again
        assert not refused, f"{block.place}: HTTP status {refused}\n{done.stdout}\n{done.stderr}"

    def serve(self, arguments):
        told, end = self.folder / "address.json", time.monotonic() + PATIENCE
        command = [sys.executable, "-m", "linmax", *arguments, "--port", "0", "--json", str(told)]
        self.server = subprocess.Popen(command, cwd=self.folder, env=self.environment, stderr=subprocess.DEVNULL)
        while not self.is_ready(told):
            assert self.server.poll() is None, "linmax serve has ended"
            assert time.monotonic() < end, "linmax serve does not start"
            time.sleep(0.05)

    def is_ready(self, told):
        if not (told.exists() and told.read_text().endswith("\n")):
            return False
        self.address = json.loads(told.read_text())["address"]
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.address}/ready") as answer:
            return answer.status == 200
        return False


def run_python(block, namespace, address):
    code = block.code.replace(ADDRESS, address)
    for module in OPTIONAL:
        if re.search(rf"^(?:>>> )?(?:from|import) {module}\b", code, re.MULTILINE):
            pytest.importorskip(module)
    if code.startswith(">>>"):
        run_session(block, code, namespace)
        return
    try:
        exec(compile("\n" * (block.line - 1) + code, str(block.page), "exec"), namespace)
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(block.page)]
        line = frames[0].lineno if frames else block.line
        pytest.fail(f"{block.page.relative_to(ROOT)}:{line}: {type(error).__name__}: {error}")


def run_session(block, code, namespace):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    test = doctest.DocTestParser().get_doctest(code, namespace, block.place, str(block.page), block.line - 1)
    test.globs = namespace  # not a copy: the page goes on with what a block defines
    said = []
    doctest.DocTestRunner(optionflags=flags, verbose=False).run(test, out=said.append, clear_globs=False)
    assert not said, "".join(said)


@pytest.fixture
def shell(tmp_path):
    shell = Shell(tmp_path)
    yield shell
    shell.close()


@pytest.fixture
def registry():
    """Formats that a page registers are forgotten afterwards."""
    before = dict(formats.REGISTRY)
    yield
    formats.REGISTRY.clear()
    formats.REGISTRY.update(before)


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if any(b.runs for b in blocks_of(page))])
def test_the_blocks_of_a_page_run(name, tmp_path, monkeypatch, capsys, shell, registry):
    monkeypatch.chdir(tmp_path)
    FILES.get(name, lambda folder: None)(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in blocks_of(PAGES[name]):
        if block.runs and block.language == "python":
            run_python(block, namespace, shell.address)
        elif block.runs and block.language == "sh":
            if SERVE in block.code:
                pytest.importorskip("apsw", reason="needs the extra 'serve'")
            shell.run(block)
    shown = capsys.readouterr().out
    assert [phrase for phrase in EXPECTED.get(name, []) if phrase not in shown] == []


@pytest.mark.parametrize("name", TEXTS)
def test_arguments_of_commands_parse(name):
    for block in blocks_of(TEXTS[name]):
        if block.language == "sh":
            for words in commands_of(block):
                assert words[0] in cli.COMMANDS, f"{block.place}: no command {words[0]}"
                assert isinstance(cli.command_parser(words[0]).parse_args(words[1:]), Namespace), block.place


def test_few_blocks_are_left_out():
    left_out = [block.place for page in PAGES.values() for block in blocks_of(page) if not block.runs]
    assert len(left_out) <= 6, left_out


def test_a_failure_names_the_page_and_the_line(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```python\nx = 1\nx / 0\n```\n\n```python\n>>> x\n2\n\n```\n")
    first, second = blocks_of(page)
    with pytest.raises(pytest.fail.Exception, match="page.md:5: ZeroDivisionError"):
        run_python(first, {}, ADDRESS)
    with pytest.raises(AssertionError, match='page.md", line 9'):
        run_python(second, {"x": 1}, ADDRESS)


# -- what they name ------------------------------------------------------------------------------------------------


def prose_of(page):
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def exists(name):
    """Whether a dotted name is that of a module or of something in it."""
    parts = name.split(".")
    value = importlib.import_module(parts[0])
    for place, part in enumerate(parts[1:], 1):
        if not hasattr(value, part):
            try:
                importlib.import_module(".".join(parts[: place + 1]))
            except ImportError:
                return False
        value = getattr(value, part)
    return True


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "CHANGELOG.md"])  # which also has names of the past
def test_names_of_the_library_exist(name):
    found = set(re.findall(r"`(linmax(?:\.\w+)+)", prose_of(TEXTS[name]))) - {"linmax.river"}  # needs an extra
    assert [one for one in sorted(found) if not exists(one)] == []


@pytest.mark.parametrize("name", TEXTS)
def test_files_exist(name):
    text = TEXTS[name].read_text(encoding="utf-8")
    found = set(re.findall(r"\b((?:src|tests|docs|benchmarks|examples)/[\w./-]+\.\w+)", text))
    assert [one for one in sorted(found) if "NAME" not in one and not (ROOT / one).exists()] == []


@pytest.mark.parametrize("name", TEXTS)
def test_tests_exist(name):
    here = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    missing, file = [], ""
    for named, test in re.findall(r"`(test_\w+\.py)?::(\w+)", TEXTS[name].read_text(encoding="utf-8")):
        file = named or file
        if f"def {test}(" not in here.get(file, ""):
            missing.append(f"{file}::{test}")
    assert missing == []


def anchors_of(page):
    text = page.read_text(encoding="utf-8")
    for other in re.findall(r"^```\{include\} (\S+)$", text, re.MULTILINE):
        text += (page.parent / other).read_text(encoding="utf-8")
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_somewhere(name):
    page = TEXTS[name]
    for link in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        path, _, anchor = link.partition("#")
        if not path.startswith("http"):
            script = re.fullmatch(r"gallery/(\w+)", path)  # the site makes its pages from these
            if script and script[1] != "index":
                path = f"../examples/{script[1]}.py"
            target = (page.parent / path).resolve() if path else page
            if path == "gallery/index":
                target = ROOT / "examples" / "GALLERY_HEADER.rst"
            assert target.exists(), link
            assert not anchor or anchor in anchors_of(target), link
