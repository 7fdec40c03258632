"""Draw the figures that are kept beside the pages: those of README.md, and of the benchmarks' figures.

    python docs/figures.py            # all
    python docs/figures.py jury       # one

Scripts of the gallery are drawn by running them; what benchmarks have measured is in docs/benchmarks/*.json, as the
scripts in benchmarks/ write it with --json.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from gallery_looks import style  # noqa: E402


def of_the_gallery(script: str) -> Callable[[], None]:
    """The one figure of a script."""

    def draw() -> None:
        plt.show = lambda: None
        runpy.run_path(str(HERE.parent / "examples" / f"{script}.py"), run_name="__main__")

    return draw


def measured(name: str) -> dict:
    """What a benchmark has written."""
    return json.loads((HERE / "benchmarks" / f"{name}.json").read_text(encoding="utf-8"))


def cold_start() -> None:
    """Accuracy after so many labels."""
    found = measured("cold_start")
    _, axes = plt.subplots(figsize=(8, 4.2))
    for number, (name, row) in enumerate(found["median"].items()):
        axes.plot(found["labels"], row, "o-", color=f"C{number}", label=name)
        axes.plot(found["labels"], found["worst"][name], ":", color=f"C{number}")
    title = "MMLU-Pro: accuracy on new questions (dotted: the worst shuffle)"
    axes.set(xscale="log", xlabel="labels seen", ylim=(0.4, 0.76), title=title)
    axes.legend(loc="lower right")


FIGURES: dict[str, Callable[[], None]] = {
    "jury": of_the_gallery("jury"),
    "change": of_the_gallery("change_half_way"),
    "linear-max": of_the_gallery("linear_max"),
    "benchmark-cold-start": cold_start,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or FIGURES:
        plt.close("all")
        mpl.rcdefaults()
        style(None, name)
        FIGURES[name]()
        plt.savefig(HERE / f"{name}.png", dpi=110)
        print(f"docs/{name}.png")
