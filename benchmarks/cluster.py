"""Iterative parameter mixing: how good, how fast, and from what size on it pays.

    LINMAX_DATA=/data python benchmarks/cluster.py           # all; needs the extra "cluster"
    python benchmarks/cluster.py --quick                     # a tenth of everything
    python benchmarks/cluster.py --only quality,speed,memory --json cluster.json

quality  error on held-out rows of the default learner and the averaged Perceptron after 5 passes: one shard (the serial
         run) against 8 mixed ones, on forest cover and 20 newsgroups (from LINMAX_DATA), and of the last hypotheses.
speed    seconds a pass on 1 and 2 workers and on one core without a cluster, over jobs of growing size, beside what
         the cost model (`linmax.cluster.costs`) makes of constants measured on the smallest and the largest job; then
         the model on paper, up to 10^12 examples.
fixed    seconds of a pass that remain when the rows go to zero: 32, 128 and 512 shards of two rows, 10 classes, 100,000
         names, in this process and on 1 and 2 workers, those of workers and driver apart, and the processor time of
         this process; then the model's curve up to 64 workers.
memory   peak memory of the workers over shards of growing size.
network  seconds of a pass on two workers in network namespaces, with lines of 100 and 20 Mbit/s (tc), beside
         what the cost model adds for moving; needs root, and is left out with a word where that is not permitted.

Wall-clock time: run it on a machine that does nothing else. The load is printed beside the results.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from linmax.streams import StreamModel
from rich.console import Console
from rich.table import Table

from linmax import cluster, stream
from linmax.cluster.costs import Measured, estimate
from linmax.cluster.dask_workers import workers_of
from linmax.cluster.groups import RunPlan
from linmax.cluster.merging import merge_since
from linmax.cluster.mixing import Job
from linmax.cluster.shards import shards_of
from linmax.cluster.tree import FAN

PASSES, SHARDS = 5, 8
LEARNER = "A-perceptron"
PARTS = ("quality", "speed", "fixed", "memory", "network")
NETWORK = 1e9  # bytes a second, for the extrapolation: ten gigabits


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
        if "network" in given.only:
            figures["network"] = network(screen, Path(folder))
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
        wrong += int((model.judge(model.scaled(batch, learn=False)) != batch.codes).sum())
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
    """Seconds a pass, measured and modelled."""
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
    measured = constants(shards, sizes, found)
    found["measured"] = vars(measured)
    table = Table("rows", "one core, s", "1 worker", "2 workers", "modelled", "2 over 1", title="one pass")
    found["modelled"] = []
    for place, size in enumerate(sizes):
        cost = estimate(measured, size, SHARDS, 2)
        found["modelled"].append(cost.total)
        serial, one, two = (found[name][place] for name in ("one core", "1 workers", "2 workers"))
        table.add_row(f"{size:,}", *(f"{s:.2f}" for s in (serial, one, two, cost.total)), f"{one / two:.2f}")
    screen.print(table)
    even = estimate(measured, 1, SHARDS, 2).break_even
    found["break even"] = even
    screen.print(f"break-even with 2 workers and {SHARDS} shards: {even:,.0f} rows; {measured}")
    found["paper"] = on_paper(screen, measured)
    return found


def epoch_seconds(paths: list[str], places: dict[str, Any]) -> dict[str, float]:
    """The better of two second passes: the vocabulary is known by then, as in all later ones. Places take turns."""
    best = dict.fromkeys(places, math.inf)
    for _ in range(2):
        for name, client in places.items():
            one = cluster.fit(LEARNER, paths, client=client, passes=2, scale="none").passes[1]
            best[name] = min(best[name], one.learning + one.mixing)
    return best


def constants(shards: dict[int, list[str]], sizes: list[int], found: dict[str, Any]) -> Measured:
    """From one core: seconds a trial. From one worker and the smallest job: what a shard costs beside them."""
    model = cluster.fit(LEARNER, shards[sizes[0]], scale="none").model
    state = float(sum(array.nbytes for array in model.state()[1].values()))
    began = time.perf_counter()
    merge_since(model, [StreamModel.from_state(*model.state()) for _ in range(FAN)])
    mixing = (time.perf_counter() - began) / (FAN * state)
    a_trial = (found["one core"][-1] - found["one core"][0]) / (sizes[-1] - sizes[0])
    beside = max(0.0, found["1 workers"][0] - sizes[0] * a_trial - SHARDS * state * mixing)
    moved = max(1e-9, found["2 workers"][0] - (found["1 workers"][0] / 2))
    return Measured(a_trial, state, 2 * FAN * state / moved, beside / SHARDS, mixing)


def on_paper(screen: Console, here: Measured) -> list[dict[str, float]]:
    """The same learner on a real cluster, with ten gigabits between its machines: not tested, calculated."""
    table = Table("examples", "workers", "one core", "cluster", "moved, GB", title="one pass on paper (hours)")
    found = []
    there = Measured(here.seconds_per_trial, here.state_bytes, NETWORK, 0.01, here.mix_seconds_per_byte)
    for examples, workers in [(1e9, 16), (1e9, 64), (1e12, 64), (1e12, 1024)]:
        cost = estimate(there, examples, 4 * workers, workers)
        found.append({"examples": examples, "workers": workers, "serial": cost.serial, "total": cost.total})
        hours = f"{cost.serial / 3600:,.1f}", f"{cost.total / 3600:,.2f}"
        table.add_row(f"{examples:.0e}", f"{workers:,}", *hours, f"{cost.moved / 1e9:,.1f}")
    screen.print(table)
    return found


# -- what remains without rows -----------------------------------------------------------------------------------------


def fixed(screen: Console, shards: int = 32, passes: int = 9) -> dict[str, Any]:
    """Median seconds of a pass over hardly any rows, from a model that has met all names."""
    model = StreamModel(LEARNER, scale="none")
    for batch in stream(list(made(60_000, 0)), model=model):
        model.learn(batch)
    parts = [list(made(2, 1 + seed))[:2] for seed in range(shards)]
    table = Table("where", "shards", "seconds", "workers", "driver", "CPU", title="a pass over shards of two rows")
    found: dict[str, dict[str, float]] = {}
    with cluster.connect("local:1") as one, cluster.connect("local:2") as two:
        for count in (shards, 4 * shards, 16 * shards):
            some = [parts[place % shards] for place in range(count)]
            for name, client in {"this process": None, "1 worker": one, "2 workers": two}.items():
                plan = RunPlan(count, "uniform", "log", {}, f"benchmark-{name.replace(' ', '-')}-{count}")
                spent = []  # processor time of this process, in which a busy machine does not show
                for many in (2, passes):
                    job = Job(shards_of(some), plan, None, None, workers_of(client))
                    given, began = job.start(model, many), time.process_time()
                    job.run(given, many)
                    spent.append(time.process_time() - began)
                later = job.result.passes[2:]  # in the first pass the workers get the model
                seconds, working = (
                    float(np.median(list(times)))
                    for times in ((one.learning + one.mixing for one in later), (one.working for one in later))
                )
                cpu = (spent[1] - spent[0]) / (passes - 2)
                found[f"{name}, {count} shards"] = {"seconds": seconds, "workers": working, "cpu here": cpu}
                told = (f"{number:.3f}" for number in (seconds, working, seconds - working, cpu))
                table.add_row(name, f"{count}", *told)
    screen.print(table)
    return found | {"curve": curve(screen, model, found, shards)}


def curve(
    screen: Console, model: StreamModel, found: dict[str, dict[str, float]], shards: int, rows: int = 16_000_000
) -> dict[str, dict[str, float]]:
    """The cost model with what was measured on 2 workers: without rows, and over rows that meet every name."""
    few, many = (found[f"2 workers, {count} shards"] for count in (shards, 4 * shards))
    a_shard = max(0.0, (many["workers"] - few["workers"]) / (3 * shards / 2))
    state = float(sum(array.nbytes for array in model.state()[1].values()))
    copies = [StreamModel.from_state(*model.state()) for _ in range(FAN)]
    began = time.perf_counter()
    merge_since(model, copies)
    mixing = (time.perf_counter() - began) / (FAN * state)
    sample = list(made(20_000, 9))
    began = time.perf_counter()
    for batch in stream(sample, model=copies[0], prefetch=False):
        copies[0].learn(batch)
    a_trial = (time.perf_counter() - began) / len(sample)
    asking = max(0.0, few["seconds"] - shards / 2 * a_shard)
    table = Table(
        "workers", "no rows, few names, s", "no rows, all names, s", f"{rows:,} rows, s", "times one core",
        title=f"the model's curve: {asking:.3f} s a pass, {a_shard * 1e3:.1f} ms a shard, "
        f"{a_trial * 1e6:.1f} us a row, {mixing * 1e9:.1f} ns a byte mixed, {state / 1e6:.0f} MB, "
        f"{NETWORK / 1e9:.0f} GB/s",
    )  # fmt: skip
    points = {}
    for workers in (1, 2, 4, 8, 16, 32, 64):
        cut = max(shards, workers)
        sparse, dense = (Measured(a_trial, state, NETWORK, a_shard, mixing, asking, f) for f in (0.001, 1.0))
        nothing, all_names, whole = (
            estimate(sparse, 0, cut, workers).total,
            estimate(dense, 0, cut, workers).total,
            estimate(dense, rows, cut, workers),
        )
        points[str(workers)] = {"few": nothing, "all": all_names, "seconds": whole.total, "serial": whole.serial}
        told = (f"{nothing:.3f}", f"{all_names:.2f}", f"{whole.total:.1f}", f"{whole.serial / whole.total:.1f}")
        table.add_row(f"{workers}", *told)
    screen.print(table)
    return points


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


# -- a slow network ----------------------------------------------------------------------------------------------------

DRIVER = """
import json, sys
from distributed import Client
from linmax import cluster

with Client(sys.argv[1], timeout=180) as client:
    client.wait_for_workers(2, timeout=180)
    result = cluster.fit("A-perceptron", sys.argv[2:], client=client, passes=6, scale="none")
    size = sum(array.nbytes for array in result.model.state()[1].values())
    print(json.dumps([size, [(one.learning + one.mixing, one.working) for one in result.passes[2:]]]))
"""


def network(screen: Console, folder: Path, shards: int = 4, names: int = 40_000) -> list[dict[str, Any]] | None:
    """Passes over lines of different speeds, with shards that meet every name."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "cluster"))
    from machines import machines, why_not

    if why_not():
        screen.print(f"network is left out: {why_not()}")
        return None
    rows = [" ".join(f"{i + 1}:1" for i in range(begin, names, 10)) for begin in range(10)]
    files = [
        (f"part-{place}.svm", "".join(f"{(t + place) % 5} {row}\n" for t, row in enumerate(rows)))
        for place in range(shards)
    ]
    table = Table("line", "MB", "a pass, s", "of it not working", "more than at full speed", "the model says")
    found: list[dict[str, Any]] = []
    with machines(folder, 2, files) as made:
        paths = [str(made.folder / name) for name, _ in files]
        for rate, speed in (("", math.inf), ("100mbit", 12.5e6), ("20mbit", 2.5e6)):
            if rate:
                made.limit(rate)
            out, _ = made.drive(DRIVER, *paths).communicate(timeout=600)
            size, passes = json.loads(out)
            seconds, waiting = (
                float(np.median(times)) for times in ([a for a, _ in passes], [a - b for a, b in passes])
            )
            modelled = estimate(Measured(1e-6, size, speed, 0.0, 0.0), 0, shards, 2).moving
            found.append({"line": rate, "bytes": size, "seconds": seconds, "waiting": waiting, "modelled": modelled})
            more = waiting - found[0]["waiting"]
            numbers = (size / 1e6, seconds, waiting, more, modelled)
            table.add_row(rate or "full speed", *(f"{number:.2f}" for number in numbers))
    screen.print(table)
    return found


if __name__ == "__main__":
    started = time.perf_counter()
    main()
    print(f"{time.perf_counter() - started:.0f} s in all")
