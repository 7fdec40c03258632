"""The memory of many names: five million attributes and five classes, learned, saved and loaded by the commands.

    python benchmarks/memory.py
    python benchmarks/memory.py --names 500000

Every row has 25 names that are new and 25 that are not. The peak is that of the process, as the operating system counts
it, with the interpreter and the compiled code.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

NEW = 25
PEAK = """
import resource, sys
from linmax.cli import main
status = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(status)
"""


def rows(names: int) -> Iterator[str]:
    """Rows in Vowpal Wabbit's text."""
    rng = np.random.default_rng(0)
    for met in range(0, names, NEW):
        old = rng.integers(0, met + NEW, NEW).tolist()
        told = " ".join(f"w{name}" for name in [*range(met, met + NEW), *old])
        yield f"{rng.integers(1, 6)} | {told}\n"


def peak(*arguments: str | Path) -> float:
    """The peak of a command, in units of 10^6 bytes."""
    command = [sys.executable, "-c", PEAK, *map(str, arguments)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return int(told.split()[-1]) * (1 if sys.platform == "darwin" else 1024) / 1e6


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", type=int, default=5_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, few, model = (Path(folder) / name for name in ("rows.vw", "few.vw", "model.linmax"))
        with data.open("w") as file:
            file.writelines(rows(given.names))
        few.write_text("1 | w1 w2 w3\n")
        print(f"learn              {peak('learn', data, '--quiet'):8,.0f} MB")
        print(f"learn and save     {peak('learn', data, '--quiet', '--model', model):8,.0f} MB")
        print(f"the file           {model.stat().st_size / 1e6:8,.0f} MB")
        print(f"load and predict   {peak('predict', model, few, '--out', Path(folder) / 'out'):8,.0f} MB")


if __name__ == "__main__":
    main()
