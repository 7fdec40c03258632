"""Draw the figures that are kept beside the pages: those of README.md, and of the benchmarks' figures.

    python docs/figures.py            # all
    python docs/figures.py jury       # one

Scripts of the gallery are drawn by running them; what benchmarks have measured is in docs/benchmarks/*.json, as the
scripts in benchmarks/ write it with --json. The badges say what pyproject.toml says.
"""

from __future__ import annotations

import json
import runpy
import sys
import tomllib
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
    found = measured("cold_start")["mmlu"]
    _, axes = plt.subplots(figsize=(8, 4.2))
    for number, (name, row) in enumerate(found["median"].items()):
        axes.plot(found["labels"], row, "o-", color=f"C{number}", label=name)
        axes.plot(found["labels"], found["worst"][name], ":", color=f"C{number}")
    title = "MMLU-Pro: accuracy on new questions (dotted: the worst shuffle)"
    axes.set(xscale="log", xlabel="labels seen", ylim=(0.4, 0.76), title=title)
    axes.legend(loc="lower right")


def accuracy() -> None:
    """Each set's error as a share of Vowpal Wabbit's best."""
    sets = {name: found for name, found in measured("accuracy")["attributes"].items() if "ratio" in found}
    names = sorted(sets, key=lambda name: sets[name]["ratio"], reverse=True)
    _, axes = plt.subplots(figsize=(8, 0.33 * len(names) + 1.2))
    axes.barh(names, [sets[name]["ratio"] for name in names], color="C0")
    for place, name in enumerate(names):
        learners = sets[name]["learners"]
        ours = learners["linmax"]["error"]
        theirs = min(row["error"] for learner, row in learners.items() if learner.startswith("VW"))
        axes.text(1.02, place, f"{100 * ours:.2f} : {100 * theirs:.2f} %", va="center", fontsize=8)
    axes.axvline(1.0, color="0.4", linewidth=1)
    title = "Progressive error, linmax / best of three Vowpal Wabbits (1 is equal)"
    axes.set(xlim=(0.0, 1.2), title=title)
    axes.grid(False, axis="y")


def speed() -> None:
    """How many times as fast as its rivals in the same run."""
    one, lines = measured("learner"), measured("streams")
    ratios = {
        "Perceptron, one dict at a time\nagainst River": one["the same, River, k = 2"] / one["dict of 20, k = 5"],
        "Perceptron, more lines of VW's text\nagainst Vowpal Wabbit": lines["ratios"]["marginal_to_text"],
        "the same, against its cache file": lines["ratios"]["marginal_to_cache"],
        "the same, a file from start to end\nagainst Vowpal Wabbit": lines["ratios"]["whole_to_text"],
        "the default learner, a file from start to end\nagainst Vowpal Wabbit": lines["default"][
            "vowpal_wabbit_over_auto"
        ],
    }
    _, axes = plt.subplots(figsize=(8, 3.4))
    bars = axes.barh(list(ratios)[::-1], list(ratios.values())[::-1], color="C0")
    axes.bar_label(bars, fmt="%.1f", padding=3)
    axes.axvline(1.0, color="0.4", linewidth=1)
    axes.set(title="Times as fast, both in one run", xlim=(0.0, 1.12 * max(ratios.values())))
    axes.grid(False, axis="y")


BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{name}: {value}">
<title>{name}: {value}</title>
<rect width="{width}" height="20" rx="3" fill="#555"/>
<path fill="#0072b2" d="M{left} 0H{edge}a3 3 0 0 1 3 3V17a3 3 0 0 1-3 3H{left}z"/>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="{first}" y="14">{name}</text><text x="{second}" y="14">{value}</text></g>
</svg>
"""


def badges() -> dict[str, str]:
    """What each badge of README.md says, as a drawing."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line]
    said = {
        "python": f"{versions[0]} to {versions[-1]}",
        "licence": project["license"],
        "types": "checked" if "Typing :: Typed" in project["classifiers"] else "none",
    }
    made = {}
    for name, value in said.items():
        left, width = 7 * len(name) + 12, 7 * (len(name) + len(value)) + 24
        made[name] = BADGE.format(
            name=name, value=value, width=width, left=left, edge=width - 3, first=left / 2, second=(left + width) / 2
        )
    return made


FIGURES: dict[str, Callable[[], None]] = {
    "jury": of_the_gallery("jury"),
    "change": of_the_gallery("change_half_way"),
    "linear-max": of_the_gallery("linear_max"),
    "benchmark-cold-start": cold_start,
    "benchmark-accuracy": accuracy,
    "benchmark-speed": speed,
}

if __name__ == "__main__":
    for name, drawing in badges().items():
        (HERE / "_static" / f"badge-{name}.svg").write_text(drawing, encoding="utf-8")
    for name in sys.argv[1:] or FIGURES:
        plt.close("all")
        mpl.rcdefaults()
        style(None, name)
        FIGURES[name]()
        plt.savefig(HERE / f"{name}.png", dpi=110)
        print(f"docs/{name}.png")
