"""One instance at a time through River's interface: microseconds, compared with River.

    python benchmarks/river_speed.py [--json FILE]

CPU time a sample of `predict_one` and then `learn_one`, from the first instance on, and once more over the same data;
the default learner, `A-perceptron`, and River's LogisticRegression (one against all where there are more classes), on
data sets that ship with River. They take turns, so that a slow moment of the machine meets all of them, and the medians
of the rounds are shown, and the median of the ratios. Compiled code is made ready before.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

from river import datasets, linear_model, multiclass

from linmax import river

SETS = {"Phishing": datasets.Phishing, "ImageSegments": datasets.ImageSegments, "Bananas": datasets.Bananas}
ROUNDS, QUICK_ROUNDS = 5, 25  # of the default, and of what takes little time


def microseconds(model: Any, rows: list[tuple[dict[str, float], Any]], asked: str = "predict_one") -> float:
    """CPU time a sample."""
    ask = getattr(model, asked)
    begin = time.process_time()
    for x, y in rows:
        ask(x)
        model.learn_one(x, y)
    return (time.process_time() - begin) / len(rows) * 1e6


def logistic(classes: int) -> Any:
    """River's own."""
    model = linear_model.LogisticRegression()
    return model if classes == 2 else multiclass.OneVsRestClassifier(model)


def measure(rows: list[tuple[dict[str, float], Any]]) -> dict[str, float]:
    """Of one data set."""
    classes = len({y for _, y in rows})
    for ready in river.LinearMaxClassifier(), river.LinearMaxClassifier("A-perceptron"):
        microseconds(ready, rows[:600], "predict_proba_one")
    found: dict[str, list[float]] = {}

    def take(what: str, model: Any, asked: str = "predict_one") -> float:
        found.setdefault(what, []).append(microseconds(model, rows, asked))
        return found[what][-1]

    for _ in range(ROUNDS):
        model = river.LinearMaxClassifier()
        take("default", model)
        take("default, once more", model)
        take("default, probabilities", river.LinearMaxClassifier(), "predict_proba_one")
    for _ in range(QUICK_ROUNDS):
        ours, theirs = take("A-perceptron", river.LinearMaxClassifier("A-perceptron")), take("River", logistic(classes))
        found.setdefault("A-perceptron / River", []).append(ours / theirs)
    return {what: statistics.median(values) for what, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = {}
    for name, load in SETS.items():
        found[name] = measure(list(load()))
        print(name, *(f"{what} {value:.2f}" for what, value in found[name].items()), sep="  ")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
