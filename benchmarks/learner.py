"""One trial at a time: microseconds to predict and learn, beside River's binary Perceptron on the same dicts.

    python benchmarks/learner.py [--json FILE]

CPU time, the best of several rounds; ours and River's take turns. River is in the extra "bench"; without it there is no
ratio.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import linmax

ROUNDS = 9


def dicts(size: int, attributes: int = 1000, each: int = 20) -> list[dict[str, float]]:
    generator = random.Random(1)
    names = [f"attribute_{i}" for i in range(attributes)]
    return [{name: generator.random() for name in generator.sample(names, each)} for _ in range(size)]


def ask_and_teach(learner: linmax.Learner, instances: list[dict[str, Any]], labels: list[int]) -> None:
    for instance, label in zip(instances, labels, strict=True):
        learner.predict(**instance)
        learner.learn(**instance, label=label)


def microseconds(work: Callable[[], None], size: int) -> float:
    begin = time.process_time()
    work()
    return (time.process_time() - begin) / size * 1e6


def measure() -> dict[str, float]:
    found: dict[str, float] = {}
    xs = dicts(3000)
    labels = [random.Random(t).randrange(5) for t in range(len(xs))]
    perceptron = linmax.Learner("perceptron")

    def ours() -> None:
        for x, label in zip(xs, labels, strict=True):
            perceptron.predict(x)
            perceptron.learn(x, label=label)

    works: dict[str, Callable[[], None]] = {"dict of 20, k = 5": ours}
    try:
        from river.linear_model import Perceptron
    except ImportError:
        print('River is not installed: pip install "linmax[bench]" for the ratio')
    else:
        river = Perceptron()

        def theirs() -> None:
            for x, label in zip(xs, labels, strict=True):
                river.predict_one(x)
                river.learn_one(x, label > 2)

        works["the same, River, k = 2"] = theirs
    problem = linmax.datasets.majority_problem(n=29, r=15, k=5, noise=0.05, trials=3000, seed=1)
    votes = [{"votes": row} for row in problem.votes.tolist()]
    single = linmax.Learner("perceptron")
    works["29 votes, perceptron"] = lambda: ask_and_teach(single, votes, problem.labels.tolist())
    ours()  # all names have a column
    for _ in range(ROUNDS):
        for name, work in works.items():
            found[name] = min(found.get(name, 1e9), microseconds(work, 3000))
    for k in (5, 10):
        found[f"29 votes, vr-combine, k = {k}"] = pool(k)
    return found


def pool(k: int) -> float:
    """Microseconds of VR-Combine on votes for k classes."""
    problem = linmax.datasets.majority_problem(n=29, r=15, k=k, noise=0.05, trials=3000, seed=1)
    votes, labels = [{"votes": row} for row in problem.votes.tolist()], problem.labels.tolist()
    learner = linmax.Learner("vr-combine")
    ask_and_teach(learner, votes[:500], labels[:500])
    parts = [slice(begin, begin + 500) for begin in range(500, 3000, 500)]
    return min(microseconds(lambda p=part: ask_and_teach(learner, votes[p], labels[p]), 500) for part in parts)


def files() -> dict[str, float]:
    """MB a second to save and to load a learner of many attributes, beside writing and reading the bytes."""
    learner = linmax.Learner("perceptron", classes=range(20))
    for begin in range(0, 20_000, 2000):
        learner.learn({f"a{i}": 1.0 for i in range(begin, begin + 2000)}, label=begin // 2000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.linmax"
        learner.save(path)
        size = path.stat().st_size / 1e6
        begin_time = time.perf_counter()
        learner.save(path)
        saved = time.perf_counter()
        linmax.Learner.load(path)
        loaded = time.perf_counter()
    return {"file, MB": size, "save, MB/s": size / (saved - begin_time), "load, MB/s": size / (loaded - saved)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = measure() | files()
    if "the same, River, k = 2" in found:
        found["share of River's time"] = found["dict of 20, k = 5"] / found["the same, River, k = 2"]
    for name, value in found.items():
        print(f"{name:30} {value:10.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
