"""How fast one pass is, against a hand-vectorised C loop and against other libraries, in one run.

    python benchmarks/speed.py            # a few minutes; --quick for a small version
    python benchmarks/speed.py --json speed.json
    python benchmarks/speed.py --check    # the C loops against slow numpy, and linmax against the C loops

Times are never asserted: a shared machine may halve any of them. See README.md for how to read the tables.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import c_loops
import numpy as np
import peers
from problems import Problem, forest, noise_stream, real_forest, zipf
from rich.console import Console
from rich.table import Table

import linmax

ALPHA = 1.1
RULES: dict[str, Callable[[], Any]] = {
    "perceptron": linmax.rules.perceptron,
    "balanced_winnow": partial(linmax.rules.balanced_winnow, ALPHA),
}


@dataclass(frozen=True)
class Size:
    """How much to measure."""

    sparse_trials: int
    sparse_features: int
    dense_trials: int
    chunk: int
    rounds: int


FULL = Size(200_000, 100_000, 500_000, chunk=10_000, rounds=7)
QUICK = Size(20_000, 10_000, 50_000, chunk=2_000, rounds=5)


@dataclass
class Result:
    """One contender on one problem."""

    problem: str
    system: str
    rule: str
    seconds: list[float] = field(default_factory=list)
    mistakes: int | None = None
    missing: str = ""

    @property
    def best(self) -> float:
        """Fastest round, in microseconds a trial."""
        return 1e6 * min(self.seconds) if self.seconds else float("nan")

    @property
    def median(self) -> float:
        """Median round, in microseconds a trial."""
        return 1e6 * statistics.median(self.seconds) if self.seconds else float("nan")


# -- one pass against the others ----------------------------------------------------------------------------


def linmax_timer(problem: Problem, rule: str, result: Result) -> peers.Timer:
    """A whole `linmax.run`: labels looked up, weights allocated, every trial played, the Trace made."""
    instances = linmax.instances(attributes=problem.rows)

    def timer() -> float:
        start = time.perf_counter()
        trace = linmax.run(RULES[rule](), instances, problem.labels)
        seconds = time.perf_counter() - start
        result.mistakes = int(trace.mistakes[-1])
        return seconds / problem.trials

    timer()  # compile, or load from the cache
    return timer


def c_timer(problem: Problem, rule: str, loops: c_loops.Loops | None, why: str, result: Result) -> peers.Timer:
    """A pass of loops.c, its weights allocated afresh."""
    if loops is None:
        raise peers.Missing(why)
    prepared = loops.prepare(problem)

    def timer() -> float:
        start = time.perf_counter()
        result.mistakes, _, _ = prepared.run(rule, ALPHA)
        return (time.perf_counter() - start) / problem.trials

    timer()
    return timer


def contenders(
    problem: Problem, loops: c_loops.Loops | None, why: str, folder: Path
) -> list[tuple[Result, Callable[[Result], peers.Timer]]]:
    """What runs on one problem: a result to fill and how to make its timer."""
    listed: list[tuple[str, str, Callable[[Result], peers.Timer]]] = []
    for rule in RULES:
        listed.append(("linmax", rule, partial(linmax_timer, problem, rule)))
        listed.append(("C, vectorised", rule, partial(c_timer, problem, rule, loops, why)))
    libm = partial(c_timer, problem, "balanced_winnow_libm", loops, why)
    listed.append(("C, sinh of libm", "balanced_winnow", libm))
    fastest = ["--sgd", "--loss_function", "hinge"]
    listed += [
        ("scikit-learn", "perceptron", lambda _: peers.scikit_learn(problem)),
        ("Vowpal Wabbit", "default", lambda _: peers.vowpal_wabbit(problem, [], folder)),
        ("Vowpal Wabbit", "sgd hinge", lambda _: peers.vowpal_wabbit(problem, fastest, folder)),
        ("River", "perceptron", lambda _: peers.river(problem)),
    ]
    return [(Result(problem.name, system, rule), make) for system, rule, make in listed]


def race(problem: Problem, loops: c_loops.Loops | None, why: str, rounds: int) -> list[Result]:
    """Time every contender once a round, so that a slow moment of the machine meets all of them."""
    results, timers = [], []
    with tempfile.TemporaryDirectory(prefix="linmax-vw-") as folder:
        for result, make in contenders(problem, loops, why, Path(folder)):
            results.append(result)
            try:
                timers.append((result, make(result)))
            except peers.Missing as reason:
                result.missing = str(reason)
        for _ in range(rounds):
            for result, timer in timers:
                result.seconds.append(timer())
    return results


def reference(results: list[Result], result: Result) -> Result:
    """The linmax row that a result is compared with: the same rule, or the Perceptron."""
    ours = {r.rule: r for r in results if r.system == "linmax"}
    return ours.get(result.rule, ours["perceptron"])


# -- what a trial's cost depends on, and memory -------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """Cost of a trial at one place of the sweep."""

    varied: str
    features: int
    trials_before: int
    microseconds: float


class Steady:
    """A Perceptron on rows that come again and again with fresh random labels: every chunk is equally hard."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.instances = linmax.instances(attributes=problem.rows, classes=range(problem.classes))
        self.generator = np.random.default_rng(1)
        self.model = linmax.run(linmax.rules.perceptron(), self.instances, problem.labels).model

    def chunk(self) -> float:
        """Learn one more chunk; seconds a trial."""
        labels = self.generator.integers(0, self.problem.classes, self.problem.trials)
        start = time.perf_counter()
        self.model.run(self.instances, labels)
        return (time.perf_counter() - start) / self.problem.trials

    def after(self, chunks: int) -> Steady:
        """The same after this many chunks."""
        while self.model.trials < chunks * self.problem.trials:
            self.chunk()
        return self


def in_turn(timers: list[peers.Timer], rounds: int = 60) -> list[float]:
    """The fastest of each, in microseconds; they take turns, so that a slow moment meets all of them."""
    seconds = [[timer() for timer in timers] for _ in range(rounds)]
    return [1e6 * min(column) for column in zip(*seconds, strict=True)]


def sweep_features(size: Size) -> list[Point]:
    """The same rows in spaces 1, 10 and 100 times as large."""
    steady = [Steady(noise_stream(size.chunk, size.chunk, spread, classes=8)).after(2) for spread in (1, 10, 100)]
    best = in_turn([learner.chunk for learner in steady])
    return [
        Point("features", learner.problem.features, 2 * size.chunk, microseconds)
        for learner, microseconds in zip(steady, best, strict=True)
    ]


def sweep_trials(size: Size) -> list[Point]:
    """The same learner early (a new one every time), ten times and a hundred times later."""
    problem = noise_stream(size.chunk, size.chunk, 1, classes=8)
    later = [Steady(problem).after(chunks) for chunks in (10, 100)]
    best = in_turn([lambda: Steady(problem).chunk(), *(learner.chunk for learner in later)])
    return [
        Point("trials so far", problem.features, chunks * size.chunk, microseconds)
        for chunks, microseconds in zip((1, 10, 100), best, strict=True)
    ]


@dataclass(frozen=True)
class Memory:
    """Bytes that one run adds, the instances not counted."""

    problem: str
    rule: str
    weights: int  # of all attributes and classes; twice for Balanced Winnow, which keeps exponents too
    trace: int  # what the Trace holds, a few bytes a trial
    traced_peak: int
    resident_peak: int | None


def measure_memory(problem: Problem, rule: str) -> Memory:
    """Run in a fresh process: what numpy allocates (tracemalloc) and what the process grows by (Linux)."""
    instances = linmax.instances(attributes=problem.rows)
    linmax.run(RULES[rule](), instances[:100], problem.labels[:100])
    before = reset_resident_peak()
    trace = linmax.run(RULES[rule](), instances, problem.labels)
    resident = None if before is None else status("VmHWM") - before
    tracemalloc.start()
    trace = linmax.run(RULES[rule](), instances, problem.labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    numbers = (problem.features + 1) * problem.classes * (1 if rule == "perceptron" else 2)
    kept = [value for value in vars(trace).values() if isinstance(value, np.ndarray)]
    return Memory(problem.name, rule, 8 * numbers, sum(array.nbytes for array in kept), peak, resident)


def reset_resident_peak() -> int | None:
    """Set the high-water mark back to now; the resident bytes now, or None where that is impossible."""
    try:
        ctypes.CDLL(None).malloc_trim(0)  # memory freed but not given back would hide what is allocated next
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError):
        return None
    return status("VmRSS")


def status(name: str) -> int:
    """A line of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name + ":")).split()[1])


def all_memory(problems: list[Problem]) -> list[Memory]:
    """`measure_memory` of every problem and rule, each in a process of its own."""
    found = []
    for problem in problems:
        for rule in RULES:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                found.append(pool.submit(measure_memory, problem, rule).result())
    return found


# -- output -------------------------------------------------------------------------------------------------


def show_race(console: Console, problem: Problem, results: list[Result]) -> None:
    """The table of one problem."""
    title = (
        f"{problem.name}: {problem.trials:,} trials, {problem.features:,} features, {problem.nonzeros:.0f} stored a row"
    )
    table = Table(title=title, title_justify="left")
    for column in ("system", "rule"):
        table.add_column(column)
    for column in ("best us/trial", "median", "mistakes", "time / linmax", "of medians"):
        table.add_column(column, justify="right")
    for result in results:
        name = result.rule.replace("_", " ")
        if result.missing:
            table.add_row(result.system, name, result.missing)
            continue
        mistakes = "" if result.mistakes is None else f"{result.mistakes:,}"
        ours = reference(results, result)
        ratios = [f"{result.best / ours.best:.2f}", f"{result.median / ours.median:.2f}"]
        if result is ours:
            ratios = ["", ""]
        table.add_row(result.system, name, f"{result.best:.3f}", f"{result.median:.3f}", mistakes, *ratios)
    console.print(table)


def show_sweep(console: Console, points: list[Point]) -> None:
    """The table of the sweeps."""
    table = Table(title="cost of a trial (Perceptron, k = 8, 60 nonzeros, random labels)", title_justify="left")
    table.add_column("varied")
    for column in ("features", "trials before", "us/trial", "against the first"):
        table.add_column(column, justify="right")
    for point in points:
        first = next(p for p in points if p.varied == point.varied)
        ratio = f"{point.microseconds / first.microseconds:.2f}"
        table.add_row(
            point.varied,
            f"{point.features:,}",
            f"{point.trials_before:,}",
            f"{point.microseconds:.3f}",
            ratio,
        )
    console.print(table)


def show_memory(console: Console, found: list[Memory]) -> None:
    """The table of memory."""
    table = Table(title="memory of a run, MB (the instances not counted)", title_justify="left")
    for column in ("problem", "rule"):
        table.add_column(column)
    for column in ("weights", "trace", "peak, numpy", "peak, process"):
        table.add_column(column, justify="right")
    for row in found:
        numbers = [row.weights, row.trace, row.traced_peak, row.resident_peak]
        shown = ["?" if number is None else f"{number / 1e6:.2f}" for number in numbers]
        table.add_row(row.problem, row.rule.replace("_", " "), *shown)
    console.print(table)


def machine(loops: c_loops.Loops | None, why: str) -> dict[str, Any]:
    """What the figures were taken on."""
    versions = {}
    for package in ("linmax", "numpy", "scipy", "numba", "scikit-learn", "vowpalwabbit", "river"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "compiler": loops.compiler if loops else f"none: {why}",
        "versions": versions,
    }


def as_json(races: dict[str, list[Result]], points: list[Point], memory: list[Memory]) -> dict[str, Any]:
    """All figures, plain."""
    rows = []
    for results in races.values():
        for result in results:
            row = asdict(result) | {"best_us": result.best, "median_us": result.median}
            ours = reference(results, result)
            row["time_over_linmax"] = {
                "best": result.best / ours.best,
                "median": result.median / ours.median,
            }
            rows.append(row if not result.missing else {k: row[k] for k in ("problem", "system", "rule", "missing")})
    return {
        "speed": rows,
        "sweep": [asdict(point) for point in points],
        "memory": [asdict(row) for row in memory],
    }


# -- the program --------------------------------------------------------------------------------------------


def run_checks(console: Console, loops: c_loops.Loops) -> None:
    """Agreement of the C loops with numpy, and of linmax with the C loops."""
    for line in c_loops.check(loops):
        console.print(line)
    for problem in (zipf(5_000, 2_000, 20), zipf(5_000, 2_000, 2), forest(5_000)):
        instances = linmax.instances(attributes=problem.rows)
        for rule, make in RULES.items():
            _, expected, _ = loops.prepare(problem).run(rule, ALPHA)
            got = linmax.run(make(), instances, problem.labels).predictions
            differ = int(np.sum(got != expected))
            # sinh and powers are rounded differently, so Balanced Winnow may part ways at a near tie
            assert rule != "perceptron" or differ == 0, f"{problem.name}: {differ} predictions differ"
            console.print(f"{problem.name:12} {rule:21} linmax and C: {differ} of {problem.trials} predictions differ")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    parser.add_argument("--rounds", type=int, help="times that each contender runs (7, with --quick 5)")
    parser.add_argument("--only", choices=["race", "sweep", "memory"], help="one part instead of all three")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument("--check", action="store_true", help="compare results on small data, time nothing")
    return parser.parse_args()


def main() -> int:
    """Run what was asked for."""
    asked = arguments()
    console = Console(width=None if sys.stdout.isatty() else 110)
    size = QUICK if asked.quick else FULL
    loops, why = None, ""
    try:
        loops = c_loops.compile_loops()
    except c_loops.Missing as reason:
        why = str(reason)
        console.print(f"C loops: {why}")
    if asked.check:
        if loops is None:
            return 1
        run_checks(console, loops)
        return 0
    streams = [
        zipf(size.sparse_trials, size.sparse_features, 20),
        zipf(size.sparse_trials, size.sparse_features, 2),
        forest(size.dense_trials),
    ]
    real = real_forest(size.dense_trials)
    races: dict[str, list[Result]] = {}
    if asked.only in (None, "race"):
        for problem in [*streams, *([real] if real else [])]:
            races[problem.name] = race(problem, loops, why, asked.rounds or size.rounds)
            show_race(console, problem, races[problem.name])
    points = sweep_features(size) + sweep_trials(size) if asked.only in (None, "sweep") else []
    if points:
        show_sweep(console, points)
    memory = all_memory(streams) if asked.only in (None, "memory") else []
    if memory:
        show_memory(console, memory)
    if asked.json:
        figures = {"machine": machine(loops, why), **as_json(races, points, memory)}
        asked.json.write_text(json.dumps(figures, indent=1) + "\n")
        console.print(f"figures written to {asked.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
