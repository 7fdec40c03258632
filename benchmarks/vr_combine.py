"""VR-Combine: linmax against the plain compiled reading of `plain.py`, in one run, on one thread, taking turns.

    python benchmarks/vr_combine.py                 # the majority problem at four noises, a minute or two
    python benchmarks/vr_combine.py --json vr.json
    python benchmarks/vr_combine.py --large 2000    # 1,000 voters, 100 classes, 90 % abstaining; 100000 for all

Seconds are CPU time of the thread, so that a busy machine disturbs them less. The large problem is fed in stretches
and never held as a whole: time and peak memory after 1/4, 1/2 and all of the trials show how both grow.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import plain
from rich.console import Console
from rich.table import Table

import linmax

NOISES = (0.0, 0.05, 0.2, 0.4)
STRETCH = 250  # trials of the large problem made and fed at a time


def race(noise: float, trials: int, rounds: int, seed: int) -> dict[str, Any]:
    """Both on the same trials, in turns; the first turn of each compiles and is not counted."""
    problem = linmax.datasets.majority_problem(noise=noise, trials=trials, seed=seed)
    labels = np.asarray(problem.labels)
    instances = linmax.instances(votes=problem.votes)
    seconds: dict[str, list[float]] = {"plain": [], "linmax": []}
    mistakes = {"plain": 0, "linmax": 0}
    for turn in range(rounds + 1):
        start = time.thread_time()
        predictions = plain.vr_combine(problem.votes, labels, 5)
        middle = time.thread_time()
        trace = linmax.run("VR-combine", instances, labels)
        end = time.thread_time()
        if turn:
            seconds["plain"].append(middle - start)
            seconds["linmax"].append(end - middle)
        mistakes = {"plain": int((predictions != labels).sum()), "linmax": int(trace.mistakes[-1])}
    least = {name: min(times) for name, times in seconds.items()}
    median = {name: statistics.median(times) for name, times in seconds.items()}
    return {
        "noise": noise,
        "seconds": seconds,
        "min": least,
        "median": median,
        "ratio of minima": least["plain"] / least["linmax"],
        "ratio of medians": median["plain"] / median["linmax"],
        "mistakes": mistakes,
    }


def stretch(begin: int, size: int, voters: int, classes: int) -> tuple[Any, np.ndarray]:
    """Trials begin.. of the large problem: one voter in ten is right in three votes of ten, the others guess."""
    generator = np.random.default_rng([7, begin])
    labels = generator.integers(0, classes, size)
    right = generator.random((size, voters)) < np.where(np.arange(voters) % 10 == 0, 0.3, 0.0)
    votes = np.where(right, labels[:, None], generator.integers(0, classes, (size, voters)))
    votes[generator.random((size, voters)) < 0.9] = -1
    return linmax.instances(votes=votes, abstain=-1, classes=list(range(classes))), labels


def peak() -> float:
    """Most memory this process has held so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def large(trials: int, console: Console, voters: int = 1000, classes: int = 100) -> list[dict[str, Any]]:
    """Feed the large problem; seconds, mistakes and peak memory at 1/4, 1/2 and all of the trials."""
    linmax.run("VR-combine", *stretch(0, 2, voters, classes))  # compiles
    marks = {trials // 4, trials // 2, trials}
    rows: list[dict[str, Any]] = []
    machine, played, mistakes, seconds = None, 0, 0, 0.0
    while played < trials:
        size = min(STRETCH, min(mark for mark in marks if mark > played) - played)
        instances, labels = stretch(played, size, voters, classes)
        start = time.thread_time()
        trace = linmax.run("VR-combine", instances, labels) if machine is None else machine.run(instances, labels)
        seconds += time.thread_time() - start
        machine = trace.model
        mistakes += int(trace.mistakes[-1])
        played += size
        if played in marks:
            rows.append({"trials": played, "seconds": seconds, "mistakes": mistakes, "peak MB": peak()})
            console.print(f"{played} trials: {seconds:.1f} s, {mistakes} mistakes, peak {peak():.0f} MB")
    return rows


def show(rows: list[dict[str, Any]], rounds: int, console: Console) -> None:
    """The race as a table."""
    table = Table(title=f"VR-Combine, milliseconds of CPU, min / median of {rounds} rounds")
    for column in ("noise", "plain", "linmax", "times as fast", "mistakes plain", "mistakes linmax"):
        table.add_column(column, justify="right")
    for row in rows:
        times = [f"{1e3 * row['min'][name]:.0f} / {1e3 * row['median'][name]:.0f}" for name in ("plain", "linmax")]
        ratio = f"{row['ratio of minima']:.1f} / {row['ratio of medians']:.1f}"
        counts = [str(row["mistakes"][name]) for name in ("plain", "linmax")]
        table.add_row(f"{row['noise']:g}", *times, ratio, *counts)
    console.print(table)


def main() -> None:
    """Read the options, measure, print, write."""
    parser = argparse.ArgumentParser(description="VR-Combine against its plain compiled reading.")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each that are counted (default 5)")
    parser.add_argument("--trials", type=int, default=5000, help="trials of the majority problem (default 5000)")
    parser.add_argument("--noise", type=float, nargs="+", default=NOISES, help="noises of the majority problem")
    parser.add_argument("--seed", type=int, default=1000, help="seed of the majority problem (default 1000)")
    parser.add_argument("--large", type=int, metavar="TRIALS", help="instead, 1,000 voters and 100 classes")
    parser.add_argument("--json", type=Path, help="also write the measurements to this file")
    options = parser.parse_args()
    if options.rounds < 1 or options.trials < 1 or (options.large is not None and options.large < 4):
        parser.error("--rounds and --trials must be at least 1, --large at least 4")
    console = Console()
    found: dict[str, Any] = {}
    if options.large is not None:
        found["large"] = large(options.large, console)
    else:
        found["race"] = [race(noise, options.trials, options.rounds, options.seed) for noise in options.noise]
        show(found["race"], options.rounds, console)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
