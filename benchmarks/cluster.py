"""Iterative parameter mixing: how good, how fast, and from what size on it pays.

    LINMAX_DATA=/data python benchmarks/cluster.py           # all; needs the extra "cluster"
    python benchmarks/cluster.py --quick                     # a tenth of everything
    python benchmarks/cluster.py --only quality,speed,memory --json cluster.json

quality  error on held-out rows of the default learner and the averaged Perceptron after 5 passes: one shard (the serial
         run) against 8 mixed ones, on forest cover and 20 newsgroups (from LINMAX_DATA), and of the last hypotheses.
speed    seconds a pass on 1 and 2 workers and on one core without a cluster, over jobs of growing size.
fixed    seconds of a pass that remain when the rows go to zero: 32 shards of two rows, 10 classes, 100,000 names.
memory   peak memory of the workers over shards of growing size.

Wall-clock time: run it on a machine that does nothing else. The load is printed with the results.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from linmax import StreamModel, cluster, stream

PASSES, SHARDS = 5, 8
LEARNER = "A-perceptron"
PARTS = ("quality", "speed", "fixed", "memory")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--only", default=",".join(PARTS), help="which parts, with commas between them")
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows of the largest job")
    parser.add_argument("--json", metavar="FILE", help="also write the figures")
    given = parser.parse_args()
    screen, figures = Console(highlight=False), {"load": os.getloadavg(), "cores": os.cpu_count()}
    screen.print(f"{figures['cores']} cores, load {figures['load'][0]:.1f}")
    share = 10 if given.quick else 1
    with tempfile.TemporaryDirectory() as folder:
        if "quality" in given.only:
            figures["quality"] = quality(screen, Path(folder), share)
        if "speed" in given.only:
            figures["speed"] = speed(screen, Path(folder), given.rows // share)
        if "fixed" in given.only:
            figures["fixed"] = fixed(screen)
        if "memory" in given.only:
            figures["memory"] = memory(screen, Path(folder), given.rows // share)
    if given.json:
        Path(given.json).write_text(json.dumps(figures, indent=1))


# -- quality -----------------------------------------------------------------------------------------------------------


def quality(screen: Console, folder: Path, share: int) -> dict[str, Any]:
    """Errors of one shard and of eight."""
    table = Table("data", "learner", "serial", "8 shards", "relative", title="test error after 5 passes")
    found = {}
    for name, read in [("forest cover", forest_cover), ("20 newsgroups", newsgroups)]:
        data = read(share)
        if data is None:
            screen.print(f"{name} is not in LINMAX_DATA and is left out")
            continue
        train, test, ending = data
        whole, test_path = folder / f"whole{ending}", folder / f"test{ending}"
        whole.write_text("".join(train))
        test_path.write_text("".join(test))
        shards = []
        for place, rows in enumerate(np.array_split(np.arange(len(train)), SHARDS)):
            shards.append(folder / f"shard{place}{ending}")
            shards[-1].write_text("".join(train[rows[0] : rows[-1] + 1]))
        for learner in ("auto", LEARNER, "perceptron"):
            serial = cluster.fit(learner, whole, passes=PASSES).model
            mixed = cluster.fit(learner, shards, passes=PASSES).model
            errors = error(serial, test_path), error(mixed, test_path)
            found[f"{name}, {learner}"] = errors
            relative = f"{errors[1] / errors[0] - 1:+.1%}"
            table.add_row(name, learner, f"{errors[0]:.4f}", f"{errors[1]:.4f}", relative)
    screen.print(table)
    return found


def error(model: StreamModel, path: Path) -> float:
    wrong = trials = 0
    for batch in stream(path, model=model, grow=False):
        wrong += int((model._judge(model._scaled(batch, learn=False)) != batch.codes).sum())
        trials += len(batch)
    return wrong / trials


def forest_cover(share: int) -> tuple[list[str], list[str], str] | None:
    path = Path(os.environ.get("LINMAX_DATA", "")) / "covtype" / "covtype.csv.gz"
    if not path.is_file():
        return None
    with gzip.open(path, "rt") as file:
        next(file)
        lines = [_svmlight(line) for place, line in enumerate(file) if place % share == 0]
    order = np.random.default_rng(0).permutation(len(lines))
    held = len(lines) // 5
    return [lines[i] for i in order[held:]], [lines[i] for i in order[:held]], ".svm"


def _svmlight(line: str) -> str:
    *values, label = line.strip().split(",")
    return f"{label} " + " ".join(f"{i}:{v}" for i, v in enumerate(values, 1) if v != "0") + "\n"


def newsgroups(share: int) -> tuple[list[str], list[str], str] | None:
    folder = Path(os.environ.get("LINMAX_DATA", "")) / "text_20newsgroups"
    if not folder.is_dir():
        return None
    parts = []
    for name in ("train", "test"):
        with gzip.open(folder / f"{name}.tsv.gz", "rt") as file:
            lines = [line for place, line in enumerate(file) if place % share == 0]
        parts.append([lines[i] for i in np.random.default_rng(0).permutation(len(lines))])
    return parts[0], parts[1], ".tsv"


# -- speed -------------------------------------------------------------------------------------------------------------


def made(rows: int, seed: int, features: int = 100_000, stored: int = 40, classes: int = 10) -> Iterator[str]:
    """Sparse rows whose label is that of the best of ten linear scores."""
    random = np.random.default_rng(seed)
    plane = np.random.default_rng(1).normal(size=(features, classes)).astype(np.float32)
    for _ in range(0, rows, 1000):
        columns = np.minimum((features * random.random((1000, stored)) ** 3).astype(np.int64), features - 1)
        columns.sort(axis=1)
        labels = plane[columns].sum(axis=1).argmax(axis=1)
        for row, label in zip(columns.tolist(), labels.tolist(), strict=True):
            yield f"{label} " + " ".join(f"{i}:1" for i in dict.fromkeys(row)) + "\n"


def write_shards(folder: Path, rows: int, shards: int) -> list[str]:
    paths = []
    for place in range(shards):
        path = folder / f"made-{rows}-{place}-of-{shards}.svm"
        with path.open("w") as file:
            file.writelines(made(rows // shards, place))
        paths.append(str(path))
    return paths


def speed(screen: Console, folder: Path, largest: int) -> dict[str, Any]:
    """Seconds a pass."""
    sizes = [largest // 64, largest // 16, largest // 4, largest]
    found: dict[str, Any] = {"sizes": sizes, "one core": [], "1 workers": [], "2 workers": []}
    shards = {size: write_shards(folder, size, SHARDS) for size in sizes}
    warnings.filterwarnings("ignore", message="Port 8787")  # the dashboard of the other cluster
    with cluster.connect("local:1") as one, cluster.connect("local:2") as two:
        places = {"one core": None, "1 workers": one, "2 workers": two}
        for client in places.values():
            cluster.fit(LEARNER, shards[sizes[0]], client=client, scale="none")  # compiled code is read once
        for size in sizes:
            for name, seconds in epoch_seconds(shards[size], places).items():
                found[name].append(seconds)
    table = Table("rows", "one core, s", "1 worker", "2 workers", "2 over 1", title="one pass")
    for place, size in enumerate(sizes):
        serial, first, second = (found[name][place] for name in ("one core", "1 workers", "2 workers"))
        table.add_row(f"{size:,}", *(f"{s:.2f}" for s in (serial, first, second)), f"{first / second:.2f}")
    screen.print(table)
    return found


def epoch_seconds(paths: list[str], places: dict[str, Any]) -> dict[str, float]:
    """The better of two second passes: the vocabulary is known by then, as in all later ones. Places take turns."""
    best = dict.fromkeys(places, math.inf)
    for _ in range(2):
        for name, client in places.items():
            one = cluster.fit(LEARNER, paths, client=client, passes=2, scale="none").passes[1]
            best[name] = min(best[name], one.seconds)
    return best


# -- what remains without rows -----------------------------------------------------------------------------------------


def fixed(screen: Console, shards: int = 32, passes: int = 7) -> dict[str, float]:
    """Median seconds of a pass over hardly any rows, from a model that has seen all names."""
    model = StreamModel(LEARNER, scale="none")
    for batch in stream(list(made(60_000, 0)), model=model):
        model.learn(batch)
    parts = [list(made(2, 1 + seed))[:2] for seed in range(shards)]
    table = Table("where", "seconds", title=f"a pass over {shards} shards of two rows")
    found: dict[str, float] = {}
    with cluster.connect("local:1") as one, cluster.connect("local:2") as two:
        for name, client in {"this process": None, "1 worker": one, "2 workers": two}.items():
            result = cluster.fit(model, parts, client=client, passes=passes)
            found[name] = float(np.median([each.seconds for each in result.passes[2:]]))  # the first brings the model
            table.add_row(name, f"{found[name]:.3f}")
    screen.print(table)
    return found


# -- memory ------------------------------------------------------------------------------------------------------------


def memory(screen: Console, folder: Path, largest: int) -> list[dict[str, float]]:
    """Peak memory of fresh workers."""
    table = Table("rows a shard", "MB a shard", "peak of a worker, MB", title="memory")
    found = []
    for rows in (largest // 64, largest // 8):
        paths = write_shards(folder, 2 * rows, 2)
        size = os.path.getsize(paths[0]) / 1e6
        with cluster.connect("local:2") as client:
            cluster.fit(LEARNER, paths, client=client, passes=2, scale="none")
            peak = max(client.run(peak_memory).values())
        found.append({"rows": rows, "shard": size, "peak": peak})
        table.add_row(f"{rows:,}", f"{size:.0f}", f"{peak:.0f}")
    screen.print(table)
    return found


def peak_memory() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    started = time.perf_counter()
    main()
    print(f"{time.perf_counter() - started:.0f} s in all")
