"""CPU time of `linmax learn` by format, against another checkout of linmax, run in turns.

    python benchmarks/reading.py --against /tmp/old/src [--rows 100000] [--runs 3] [--only csv,vw] [--folder F]

Each command runs in a process of its own, once to compile and then --runs times in turn with the other checkout's. The
least CPU time of user and system counts, less that of the first ten lines, so that start-up drops out. The ratio is
old time over new time, above 1 if this checkout is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src"
BARE = ("--learner", "perceptron", "--scale", "none")
WORDS = [f"w{place}" for place in range(5000)]
CASES = {  # the file and the options of each case, and the ratio that is wanted
    "csv bare": ("csv", BARE, 1 / 1.15),
    "csv": ("csv", (), 1 / 1.05),
    "vw bare": ("vw", BARE, 1 / 1.1),
    "vw": ("vw", (), 1 / 1.1),
    "svmlight bare": ("svm", BARE, 1 / 1.1),
    "svmlight": ("svm", (), 1 / 1.1),
    "text bare": ("tsv", BARE, 1 / 1.1),
    "numbers bare": ("numbers.jsonl", BARE, 4.0),
    "texts bare": ("texts.jsonl", BARE, 4.0),
    "parquet bare": ("parquet", BARE, 1 / 1.1),
}


def lines_of(kind: str, rows: int) -> Iterator[str]:
    """Yield the lines of a problem in a format."""
    draw = random.Random(0)
    if kind == "csv":
        yield "x0,x1,x2,x3,x4,x5,count,size,color,shape,label"
    for _ in range(rows):
        label = draw.choice("abcde")
        if kind == "csv":
            numbers = [f"{draw.gauss(0, 1):.4f}" for _ in range(6)]
            more = [str(draw.randrange(50)), str(draw.randrange(10000)), draw.choice("rgb"), draw.choice("xyz")]
            yield ",".join([*numbers, *more, label])
        elif kind in ("vw", "svm"):
            places = sorted({int(50000 ** draw.random()) for _ in range(40)})
            row = " ".join(f"{place}:{draw.random():.4f}" for place in places)
            yield f"{label} | {row}" if kind == "vw" else f"{'abcde'.index(label)} {row}"
        else:
            words = " ".join(draw.choices(WORDS, k=20))
            record = {"label": label, "text": words}
            if kind == "numbers.jsonl":
                record = {"label": label} | {f"x{i}": round(draw.gauss(0, 1), 4) for i in range(10)}
            yield f"{label}\t{words}" if kind == "tsv" else json.dumps(record)


def write_data(path: Path, rows: int) -> None:
    """Write the file of a case unless it is there."""
    if path.exists():
        return
    if path.suffix == ".parquet":
        from pyarrow import csv, parquet

        table = path.with_suffix(".csv")
        write_data(table, rows)
        parquet.write_table(csv.read_csv(table), path)
        return
    with path.open("w") as file:
        file.writelines(f"{line}\n" for line in lines_of(path.name.partition(".")[2], rows))


def cost(sources: Path, cache: Path, path: Path, options: tuple[str, ...]) -> float:
    """CPU seconds of `linmax learn` with the package of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(sources), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "linmax", "learn", str(path), "--label", "label", "--quiet", *options]
    if path.suffix not in (".csv", ".jsonl", ".parquet"):
        command = [word for word in command if word not in ("--label", "label")]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure the cases and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", required=True, type=Path, help="the folder src of another checkout")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--folder", type=Path, help="keep the files and the compiled code there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = given.folder or Path(name)
        checkouts = {"old": (given.against, folder / "old-cache"), "new": (SOURCES, folder / "new-cache")}
        print(f"{'case':15} {'old s':>7} {'new s':>7} {'ratio':>6} {'wanted':>6}   with start-up")
        for case in given.only.split(","):
            kind, options, wanted = CASES[case]
            least: dict[tuple[str, int], float] = {}
            for run in range(given.runs + 1):
                for which, (sources, cache) in checkouts.items():
                    for rows in (10, given.rows):
                        path = folder / f"{rows}.{kind}"
                        write_data(path, rows)
                        seconds = cost(sources, cache, path, options)
                        if run:  # the first one compiles
                            least[which, rows] = min(seconds, least.get((which, rows), seconds))
            old, new = (least[which, given.rows] for which in checkouts)
            old_net, new_net = old - least["old", 10], new - least["new", 10]
            figures = f"{old_net:7.2f} {new_net:7.2f} {old_net / new_net:6.2f} {wanted:6.2f}"
            print(f"{case:15} {figures}   {old:.2f} {new:.2f} {old / new:.2f}", flush=True)


if __name__ == "__main__":
    main()
