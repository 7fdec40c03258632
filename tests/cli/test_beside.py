"""First runs: what the commands compile in several processes is what they need."""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from linmax.cli import beside, demo, fuse, learn
from linmax.jit.compiling import CHECKED, JIT

pytestmark = pytest.mark.skipif(not JIT or CHECKED, reason="is about code that is kept in the cache")

USED = """
import gc, json
from linmax.cli import main
from linmax.jit.compiling import Kernel
status = main({arguments})
kernels = [it for it in gc.get_objects() if isinstance(it, Kernel) and "compiled" in vars(it)]
kernels = [it for it in kernels if it.signature is not None]
names = sorted(f"{{it.py_func.__module__.removeprefix('linmax.')}}:{{it.py_func.__name__}}" for it in kernels)
print()
print(json.dumps([status, names]))
"""


def files(folder: Path) -> dict[str, str]:
    """Small files: votes, and lines of each format."""
    draw = random.Random(1)
    rows = [(draw.randrange(3), draw.random(), draw.sample(range(1, 400), 9)) for _ in range(2000)]
    texts = {
        "votes.csv": "a,b,c,label\n" + "".join(f"{c},{c},{words[0] % 3},{c}\n" for c, _, words in rows[:1000]),
        "rows.csv": "x,y,class\n" + "".join(f"{c + x},{x},c{c}\n" for c, x, _ in rows),
        "mixed.csv": "x,y,class\n" + "".join(f"{c + x},w{words[0]},c{c}\n" for c, x, words in rows),
        "rows.svm": "".join(f"{c} {' '.join(f'{w}:{x:.3f}' for w in sorted(words))}\n" for c, x, words in rows),
        "rows.vw": "".join(f"{c} | {' '.join(f'w{w}' for w in words)}\n" for c, _, words in rows),
        "rows.tsv": "".join(f"c{c}\t{' '.join(f'w{w}' for w in words)}\n" for c, _, words in rows),
        "rows.jsonl": "".join(json.dumps({"label": f"c{c}", "x": x, "word": f"w{w[0]}"}) + "\n" for c, x, w in rows),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="ascii")
    return {name: str(folder / name) for name in texts}


def listed(entries: tuple[str, ...]) -> set[str]:
    return {kernel for entry in entries for kernel in entry.split()}


@pytest.mark.parametrize(
    ("command", "entries"),
    [
        (["demo", "--no-plot", "--trials", "3000"], demo.DEMO_KERNELS),
        (["fuse", "votes.csv"], fuse.FUSE_KERNELS),
        (["learn", "rows.csv", "--label", "class"], learn.LEARN_KERNELS["csv"]),
        (["learn", "mixed.csv", "--label", "class"], learn.WORDED_TABLE),
        (["learn", "rows.svm"], learn.LEARN_KERNELS["svmlight"]),
        (["learn", "rows.vw"], learn.LEARN_KERNELS["vw"]),
        (["learn", "rows.tsv", "--format", "text"], learn.LEARN_KERNELS["text"]),
        (["learn", "rows.jsonl"], learn.LEARN_KERNELS["jsonl"]),
    ],
    ids=["demo", "fuse", "csv", "mixed", "svmlight", "vw", "text", "jsonl"],
)
def test_what_is_listed_is_needed(
    command: list[str], entries: tuple[str, ...], in_a_process: Callable[..., Any], tmp_path: Path
) -> None:
    """And everything that takes long is listed: jsonl and text may need more, by what is in the lines."""
    known = files(tmp_path)
    status, used = in_a_process(USED.format(arguments=[known.get(part, part) for part in command]))
    assert status == 0
    assert listed(entries) <= set(used)
    if command[-1] not in ("rows.jsonl", "text"):
        assert listed(entries) == set(used)


@pytest.mark.parametrize(
    ("text", "options", "entries"),
    [
        ("x,y,class\n1.5,2,a\n2.5,1,b\n", [], learn.LEARN_KERNELS["csv"]),
        ("x,y,class\n1.5,u,a\n2.5,v,b\n", [], learn.WORDED_TABLE),
        ("x,y,class\n1.5,u,a\n2.5,v,b\n", ["--ignore", "y"], learn.LEARN_KERNELS["csv"]),
        ("x,y,class\n1.5,2,a\n2.5,1,b\n", ["--categorical", "y"], learn.WORDED_TABLE),
        ("1.5,2,a\n2.5,1,b\n", ["--no-header", "--label", "3"], learn.LEARN_KERNELS["csv"]),
        ("1.5,2,3\n2.5,1,4\n", [], learn.LEARN_KERNELS["csv"]),
    ],
    ids=["numbers", "words", "ignored", "categorical", "no header", "cannot be read"],
)
def test_a_table_tells_what_it_needs(
    text: str, options: list[str], entries: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[tuple[str, ...]] = []
    parser = argparse.ArgumentParser()
    learn.configure(parser)
    monkeypatch.setattr(learn, "compile_beside", asked.append)
    (tmp_path / "rows.csv").write_text(text, encoding="ascii")
    learn._prepare(parser.parse_args([str(tmp_path / "rows.csv"), *options]))
    assert asked == [entries]


def test_entries_are_claimed_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiled: list[str] = []

    class Recorded:
        def __init__(self, name: str) -> None:
            self.name = name

        @property
        def compiled(self) -> None:
            compiled.append(self.name)

    monkeypatch.setattr(beside, "named", Recorded)
    beside._take(str(tmp_path), ["a b", "c"])
    beside._take(str(tmp_path), ["a b", "c"])
    (tmp_path / "1").unlink()
    beside._take(str(tmp_path), ["a b", "c"])
    assert compiled == ["a", "b", "c", "c"]


PLAY = """
import json, os, threading
import numpy as np
from linmax.cli import beside
from linmax.core.averages import multiple
from linmax.data.distinct import place_few
beside.processors = lambda: 2
{threads}
beside.compile_beside(("core.averages:multiple", "data.distinct:place_few"))
hits = [sum(kernel.compiled.stats.cache_hits.values()) for kernel in (multiple, place_few)]
beside.compile_all = None  # would fail: everything is there now
beside.compile_beside(("core.averages:multiple", "data.distinct:place_few"))
print(json.dumps(hits))
"""


@pytest.mark.parametrize("threads", ["", "threading.Thread(target=threading.Event().wait, daemon=True).start()"])
def test_two_processes_share_the_work(threads: str, in_a_process: Callable[..., Any], tmp_path: Path) -> None:
    """Forked from one that has no threads, else started anew."""
    hits = in_a_process(PLAY.format(threads=threads), NUMBA_CACHE_DIR=str(tmp_path))
    assert sorted(hits) in ([0, 0], [0, 1])  # what this process has not compiled it read
    assert len(list(tmp_path.rglob("*.nbi"))) == 2


def test_an_error_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(claims: str, kernels: list[str]) -> None:
        if os.getpid() == here:
            raise OSError("no space")
        time.sleep(600)

    here = os.getpid()
    monkeypatch.setattr(beside, "_take", fail)
    with pytest.raises(OSError, match="no space"):
        beside.compile_all(["a", "b"], 2)
