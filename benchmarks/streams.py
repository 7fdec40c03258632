"""Streams against Vowpal Wabbit and scikit-learn: parsing, start-up, one pass from text, the default, raw text, memory.

    python benchmarks/streams.py [--megabytes 600] [--runs 3] [--json OUT] [--vw-python P] [--folder F] [--only vw,...]

All on one machine, in one run, on the same files, each timed --runs times in turn and the fastest taken. The marginal
cost is the time for the large file less that for a quarter of it, so that start-up drops out. Vowpal Wabbit runs as
``python -m vowpalwabbit --oaa 20``, from its text and from its own cache file. It needs the extra "bench" and, for raw
text and dense data, LINMAX_DATA. With --folder the files are kept, and a further run adds to the figures in --json.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

CLASSES, FEATURES, COLUMNS = 20, 60, 2**18


def write_data(folder: Path, megabytes: int) -> tuple[Path, Path]:
    """The same rows as svmlight and as Vowpal Wabbit's text: some 60 attributes, half of them telling of the class."""
    random = np.random.default_rng(0)
    own = random.integers(0, COLUMNS, (CLASSES, 2000))
    svm, vw = folder / f"{megabytes}.svm", folder / f"{megabytes}.vw"
    if vw.exists():
        return svm, vw
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


class Cost(NamedTuple):
    """What a command took."""

    seconds: float
    megabytes: float  # most memory at a time


def cost(command: list[str], repeat: int) -> Cost:
    """The fastest of some runs of a command, in the environment of a user: Python keeps its bytecode."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    found = []
    for _ in range(repeat):
        with tempfile.TemporaryFile() as said:
            begin = time.perf_counter()
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, env=environment)
            _, status, used = os.wait4(process.pid, 0)
            taken = time.perf_counter() - begin
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                said.seek(0)
                raise SystemExit(f"{' '.join(command)}: {said.read()[-2000:].decode()}")
        found.append(Cost(taken, used.ru_maxrss / 1e3))
    return min(found)


def in_turn(commands: dict[str, list[str]], repeat: int) -> dict[str, Cost]:
    """The fastest of some rounds in which each command runs once."""
    rounds = [{name: cost(command, 1) for name, command in commands.items()} for _ in range(repeat)]
    return {name: min(one[name] for one in rounds) for name in commands}


def parsing(path: Path, repeat: int) -> float:
    """Megabytes a second of reading and parsing alone, on one core, with names known as after the first pass.

    Every batch is timed in every run and its fastest time taken, so that what else the machine does counts little.
    """
    from linmax.io.reader import StreamReader
    from linmax.io.vocabulary import Vocabulary

    vocabulary, runs = Vocabulary(), []
    for _ in range(2 * repeat + 1):
        moments = [time.perf_counter()]
        moments += [time.perf_counter() for _batch in StreamReader([path], vocabulary=vocabulary)]
        runs.append(np.diff(moments))
    return float(path.stat().st_size / 1e6 / np.min(runs[1:], axis=0).sum())


PERCEPTRON = ("--learner", "perceptron", "--scale", "none")  # on attributes as they are


def learn(path: Path, *more: str) -> list[str]:
    """``linmax learn``."""
    return [sys.executable, "-m", "linmax.cli", "learn", str(path), "--quiet", *more]


def wabbit(python: str, path: Path, *more: str) -> list[str]:
    """Vowpal Wabbit with as many classes and bits."""
    return [python, "-m", "vowpalwabbit", "--oaa", str(CLASSES), "-b", "22", "--quiet", "-d", str(path), *more]


def news(folder: Path) -> Path:
    """20 newsgroups four times over, shuffled: label, tab, text."""
    path = folder / "news.tsv"
    if not path.exists():
        source = Path(os.environ["LINMAX_DATA"]) / "text_20newsgroups" / "train.tsv.gz"
        lines = gzip.decompress(source.read_bytes()).decode().splitlines() * 4
        np.random.default_rng(0).shuffle(lines)
        path.write_text("\n".join(lines) + "\n")
    return path


def news_words(folder: Path) -> Path:
    """The same as words in Vowpal Wabbit's text, with the classes numbered."""
    source, path = news(folder), folder / "news.vw"
    if not path.exists():
        rows = [line.split("\t", 1) for line in source.read_text().splitlines()]
        numbers = {label: i + 1 for i, label in enumerate(sorted({label for label, _ in rows}))}
        with path.open("w") as file:
            for label, text in rows:
                words = " ".join(re.findall(r"[a-z0-9_]{2,}", text.lower()))
                file.write(f"{numbers[label]} | {words}\n")
    return path


def cover(folder: Path) -> Path:
    """Forest cover as a table."""
    path = folder / "covtype.csv"
    if not path.exists():
        path.write_bytes(gzip.decompress((Path(os.environ["LINMAX_DATA"]) / "covtype" / "covtype.csv.gz").read_bytes()))
    return path


HASHING = """
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


def raw_text(folder: Path, repeat: int) -> dict[str, Any]:
    """Tokenising and learning, against HashingVectorizer and SGDClassifier."""
    path = news(folder)
    both = {
        "linmax": learn(path, "--learner", "perceptron"),
        "scikit_learn": [sys.executable, "-c", HASHING, str(path)],
    }
    found = in_turn(both, repeat)
    ours, theirs = found["linmax"].seconds, found["scikit_learn"].seconds
    return {"linmax": ours, "scikit_learn": theirs, "ratio": theirs / ours, "megabytes": path.stat().st_size / 1e6}


def default(path: Path, scale: str, tiny: Path, vw_python: str | None, repeat: int) -> dict[str, Any]:
    """The learner that ``linmax learn`` takes by default, end to end, and against one Perceptron, start-up deducted."""
    single = ["--learner", "perceptron", "--scale", scale]
    commands = {
        "auto": learn(path),
        "perceptron": learn(path, *single),
        "auto_start": learn(tiny),
        "perceptron_start": learn(tiny, *single),
    }
    if vw_python:
        commands["vowpal_wabbit"] = wabbit(vw_python, path)
    for command in commands.values():
        cost(command, 1)  # compiles what is not in the cache, and has the file in memory
    found = {name: taken.seconds for name, taken in in_turn(commands, repeat).items()}
    net = (found[name] - found[f"{name}_start"] for name in ("auto", "perceptron"))
    found["times_perceptron"] = next(net) / next(net)
    if vw_python:
        found["vowpal_wabbit_over_auto"] = found["vowpal_wabbit"] / found["auto"]
    return found | {"megabytes": path.stat().st_size / 1e6}


def first_lines(path: Path, count: int) -> Path:
    """The beginning of a file, as a file."""
    made = path.with_name(f"tiny-{path.name}")
    with path.open() as lines:
        made.write_text("".join(next(lines) for _ in range(count)))
    return made


def passes(name: str, commands: dict[str, list[str]], repeat: int) -> dict[str, Any]:
    """Small file and large file, and what the difference costs."""
    found = in_turn(commands, repeat)
    small, large = found["small"], found["large"]
    return {
        "what": name,
        "small": small.seconds,
        "large": large.seconds,
        "marginal": large.seconds - small.seconds,
        "peak_megabytes_small": small.megabytes,
        "peak_megabytes_large": large.megabytes,
    }


PARTS = ("parsing", "start", "learn", "vw", "cache", "text", "default", "words", "dense")


def main() -> None:
    """Measure all and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=600)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--vw-python", default=sys.executable, help="a Python that has vowpalwabbit")
    parser.add_argument("--folder", help="keep the files there for a further run")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        figures = measured(given, Path(given.folder or name), set(given.only.split(",")))
    print(json.dumps(figures, indent=2))
    if given.json:
        Path(given.json).write_text(json.dumps(figures, indent=2) + "\n")


def measured(given: argparse.Namespace, folder: Path, wanted: set[str]) -> dict[str, Any]:
    """All figures that are wanted, and those of earlier runs in the same folder."""
    figures: dict[str, Any] = {"megabytes": given.megabytes}
    if given.folder and given.json and Path(given.json).exists():
        figures = json.loads(Path(given.json).read_text())
    small, large = (write_data(folder, size) for size in (given.megabytes // 4, given.megabytes))
    runs, vw = given.runs, given.vw_python
    tiny = first_lines(small[0], 10)
    cost(learn(tiny, *PERCEPTRON), 1)  # compiles what is not in the cache
    figures["difference_megabytes"] = (large[0].stat().st_size - small[0].stat().st_size) / 1e6
    if "parsing" in wanted:
        figures["parsing_mb_per_second"] = {kind: parsing(small[i], runs) for i, kind in enumerate(("svmlight", "vw"))}
    if "start" in wanted:
        figures["start_seconds"] = cost(learn(tiny, *PERCEPTRON), runs).seconds
    if "learn" in wanted:
        for i, kind in enumerate(("svmlight", "vw")):
            pair = {"small": learn(small[i], *PERCEPTRON), "large": learn(large[i], *PERCEPTRON)}
            figures[f"linmax_{kind}"] = passes(f"linmax, {kind}", pair, runs)
    if "vw" in wanted:
        pair = {"small": wabbit(vw, small[1]), "large": wabbit(vw, large[1])}
        figures["wabbit_text"] = passes("Vowpal Wabbit, text", pair, runs)
    if "cache" in wanted:
        cached = ("--cache", "--passes", "1")
        pair = {"small": wabbit(vw, small[1], *cached), "large": wabbit(vw, large[1], *cached)}
        for command in pair.values():
            cost(command, 1)  # writes the cache
        figures["wabbit_cache"] = passes("Vowpal Wabbit, cache", pair, runs)
    if {"linmax_svmlight", "linmax_vw", "wabbit_text", "wabbit_cache"} <= set(figures):
        ours, text, cache = figures["linmax_vw"], figures["wabbit_text"], figures["wabbit_cache"]
        figures["ratios"] = {
            "marginal_to_text": text["marginal"] / ours["marginal"],
            "marginal_to_text_svmlight": text["marginal"] / figures["linmax_svmlight"]["marginal"],
            "marginal_to_cache": cache["marginal"] / ours["marginal"],
            "whole_to_text": text["large"] / ours["large"],
        }
    if "default" in wanted:
        figures["default"] = default(small[1], "idf", first_lines(small[1], 10), vw, runs)
    if os.environ.get("LINMAX_DATA"):
        if "text" in wanted:
            figures["raw_text"] = raw_text(folder, runs)
        if "words" in wanted:
            words = news_words(folder)
            figures["default_on_words"] = default(words, "idf", first_lines(words, 10), vw, runs)
        if "dense" in wanted:
            table = cover(folder)
            figures["default_on_dense"] = default(table, "standard", first_lines(table, 11), None, runs)
    return figures


if __name__ == "__main__":
    main()
