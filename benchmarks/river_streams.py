"""Progressive error on River's generators, compared with River's trees, forests and logistic regression, as Markdown.

    python benchmarks/river_streams.py [--rows N]

All predict every row before they learn from it; nothing is tuned.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from river import forest, linear_model, multiclass, preprocessing, tree
from river.datasets import synth

from linmax.river import LinearMaxClassifier

BLOBS = {"seed_model": 1, "seed_sample": 2, "n_classes": 4, "n_features": 10, "n_centroids": 30}
STREAMS: dict[str, Callable[[], Any]] = {
    "RandomRBF": lambda: synth.RandomRBF(**BLOBS),
    "RandomRBFDrift": lambda: synth.RandomRBFDrift(**BLOBS, change_speed=0.001, n_drift_centroids=15),
    "Agrawal(1)": lambda: synth.Agrawal(1, seed=3, perturbation=0.05),
    "Agrawal(0)": lambda: synth.Agrawal(0, seed=3, perturbation=0.05),
    "Sine(2)": lambda: synth.Sine(2, seed=6),
    "LED": lambda: synth.LED(seed=4, noise_percentage=0.1),
    "Waveform": lambda: synth.Waveform(seed=9),
    "SEA": lambda: synth.SEA(variant=0, seed=1, noise=0.1),
    "Hyperplane": lambda: synth.Hyperplane(
        seed=5, n_features=10, n_drift_features=5, mag_change=0.01, noise_percentage=0.05
    ),
}
MODELS: dict[str, Callable[[], Any]] = {
    "linmax": LinearMaxClassifier,
    "tree": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=1),
    "forest": lambda: forest.ARFClassifier(n_models=5, seed=1),
    "logistic": lambda: (
        preprocessing.StandardScaler() | multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
    ),
}


def error(model: Any, rows: Iterable[tuple[dict[str, float], Any]]) -> float:
    """The share of rows that were predicted wrongly."""
    wrong = []
    for x, y in rows:
        wrong.append(model.predict_one(x) != y)
        model.learn_one(x, y)
    return sum(wrong) / len(wrong)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    rows = parser.parse_args().rows
    print(f"| | {' | '.join(MODELS)} |\n|{'---|' * (1 + len(MODELS))}")
    for name, stream in STREAMS.items():
        data = [({str(k): float(v) for k, v in x.items()}, y) for x, y in islice(iter(stream()), rows)]
        print(f"| {name} | {' | '.join(f'{100 * error(make(), data):.1f}' for make in MODELS.values())} |", flush=True)


if __name__ == "__main__":
    main()
