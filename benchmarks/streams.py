"""Streams against Vowpal Wabbit and scikit-learn: parsing alone, one pass from text, raw text, start-up.

    python benchmarks/streams.py [--megabytes 600] [--runs 3] [--json OUT] [--vw-python P] [--skip vw,text,...]

All on one machine, in one run, on the same files, each timed --runs times in turn and the fastest taken. The marginal
cost is the time for the large file less that for a quarter of it, so that start-up drops out. Vowpal Wabbit runs as
``python -m vowpalwabbit --oaa 20``, from its text and from its own cache file. It needs the extra "bench" and, for raw
text, LINMAX_DATA.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

CLASSES, FEATURES, COLUMNS = 20, 60, 2**18


def write_data(folder: Path, megabytes: int) -> tuple[Path, Path]:
    """The same rows as svmlight and as Vowpal Wabbit's text: some 60 attributes, half of them telling of the class."""
    random = np.random.default_rng(0)
    own = random.integers(0, COLUMNS, (CLASSES, 2000))
    svm, vw = folder / f"{megabytes}.svm", folder / f"{megabytes}.vw"
    size = 0
    with svm.open("w") as first, vw.open("w") as second:
        while size < megabytes * 10**6:
            rows = []
            for label in random.integers(0, CLASSES, 2000).tolist():
                common = (COLUMNS ** random.random(FEATURES // 2)).astype(int) - 1
                mine = own[label][random.integers(0, 2000, FEATURES // 2)]
                columns = np.unique(np.concatenate([common, mine])).tolist()
                values = random.integers(1, 10000, len(columns)).tolist()
                rows.append((label, " ".join(f"{c}:0.{v:04d}" for c, v in zip(columns, values, strict=True))))
            text = "".join(f"{label} {row}\n" for label, row in rows)
            first.write(text)
            second.write("".join(f"{label + 1} | {row}\n" for label, row in rows))
            size += len(text)
    return svm, vw


def seconds(command: list[str], repeat: int) -> float:
    """The fastest of some runs of a command."""
    best = np.inf
    for _ in range(repeat):
        begin = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stderr[-2000:]}")
        best = min(best, time.perf_counter() - begin)
    return best


def parsing(path: Path, repeat: int) -> float:
    """Megabytes a second of reading and parsing alone, on one core, with names known as after the first pass."""
    from linmax.streams.reader import LineReader
    from linmax.streams.vocabulary import Vocabulary

    vocabulary, best = Vocabulary(), np.inf
    for _ in range(repeat + 1):
        begin = time.perf_counter()
        for _batch in LineReader([path], vocabulary=vocabulary):
            pass
        best = min(best, time.perf_counter() - begin)
    return path.stat().st_size / 1e6 / best


def learn(path: Path, *more: str) -> list[str]:
    """``linmax learn`` with the multi-class Perceptron on attributes as they are."""
    options = ["--learner", "perceptron", "--scale", "none", "--quiet"]
    return [sys.executable, "-m", "linmax.cli", "learn", str(path), *options, *more]


def wabbit(python: str, path: Path, *more: str) -> list[str]:
    """Vowpal Wabbit with as many classes and bits."""
    return [python, "-m", "vowpalwabbit", "--oaa", str(CLASSES), "-b", "22", "--quiet", "-d", str(path), *more]


def raw_text(folder: Path, repeat: int) -> dict[str, Any]:
    """Tokenising and learning 20 newsgroups four times over, against HashingVectorizer and SGDClassifier."""
    source = Path(os.environ["LINMAX_DATA"]) / "text_20newsgroups" / "train.tsv.gz"
    lines = gzip.decompress(source.read_bytes()).decode().splitlines() * 4
    np.random.default_rng(0).shuffle(lines)
    path = folder / "news.tsv"
    path.write_text("\n".join(lines) + "\n")
    script = """
import sys
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
rows = [line.rstrip("\\n").split("\\t", 1) for line in open(sys.argv[1])]
classes = sorted({label for label, _ in rows})
words, model = HashingVectorizer(), SGDClassifier()
for begin in range(0, len(rows), 1000):
    part = rows[begin : begin + 1000]
    model.partial_fit(words.transform([text for _, text in part]), [label for label, _ in part], classes)
"""
    ours = seconds(
        [sys.executable, "-m", "linmax.cli", "learn", str(path), "--learner", "perceptron", "--quiet"], repeat
    )
    theirs = seconds([sys.executable, "-c", script, str(path)], repeat)
    return {"linmax": ours, "scikit_learn": theirs, "ratio": theirs / ours, "megabytes": path.stat().st_size / 1e6}


def main() -> None:
    """Measure all and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=600)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--vw-python", default=sys.executable, help="a Python that has vowpalwabbit")
    parser.add_argument("--skip", default="", help="of parsing, start, learn, vw, text")
    given = parser.parse_args()
    skipped = given.skip.split(",")
    figures: dict[str, Any] = {"megabytes": given.megabytes}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {size: write_data(folder, size) for size in (given.megabytes // 4, given.megabytes)}
        small, large = files[given.megabytes // 4], files[given.megabytes]
        difference = (large[0].stat().st_size - small[0].stat().st_size) / 1e6
        tiny = folder / "tiny.svm"
        with small[0].open() as lines:
            tiny.write_text("".join(next(lines) for _ in range(10)))
        seconds(learn(tiny), 1)  # compiles what is not in the cache
        if "parsing" not in skipped:
            figures["parsing_mb_per_second"] = {
                kind: parsing(small[i], given.runs) for i, kind in enumerate(("svmlight", "vw"))
            }
        if "start" not in skipped:
            figures["start_seconds"] = seconds(learn(tiny), given.runs)
        if "learn" not in skipped:
            figures["learn"] = {}
            for i, kind in enumerate(("svmlight", "vw")):
                times = [seconds(learn(pair[i]), given.runs) for pair in (small, large)]
                figures["learn"][kind] = {"small": times[0], "large": times[1], "marginal": times[1] - times[0]}
        if "vw" not in skipped:
            figures["vowpal_wabbit"] = {}
            for kind, more in (("text", []), ("cache", ["--cache", "--passes", "1"])):
                if kind == "cache":
                    for pair in (small, large):
                        seconds(wabbit(given.vw_python, pair[1], *more), 1)  # writes the cache
                times = [seconds(wabbit(given.vw_python, pair[1], *more), given.runs) for pair in (small, large)]
                figures["vowpal_wabbit"][kind] = {"small": times[0], "large": times[1], "marginal": times[1] - times[0]}
        if "learn" in figures and "vowpal_wabbit" in figures:
            ours, theirs = figures["learn"], figures["vowpal_wabbit"]
            figures["ratios"] = {
                "marginal_to_text": theirs["text"]["marginal"] / ours["vw"]["marginal"],
                "marginal_to_text_svmlight": theirs["text"]["marginal"] / ours["svmlight"]["marginal"],
                "marginal_to_cache": theirs["cache"]["marginal"] / ours["vw"]["marginal"],
                "whole_to_text": theirs["text"]["large"] / ours["vw"]["large"],
            }
        figures["difference_megabytes"] = difference
        if "text" not in skipped and os.environ.get("LINMAX_DATA"):
            figures["raw_text"] = raw_text(folder, given.runs)
    print(json.dumps(figures, indent=2))
    if given.json:
        Path(given.json).write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
