"""What learning costs in calls and in labels: fewer voters asked, right or wrong only, candidates, selective labels.

    LINMAX_DATA=... python benchmarks/asking.py                  # all, some minutes
    LINMAX_DATA=... python benchmarks/asking.py --only labels --shuffles 5 --seed 10

labels: the votes of 29 language models on MMLU-Pro, 8,000 random questions of which a selective learner asks for some
labels, the rest to test.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import linmax

LEARNED = 8000  # questions of MMLU-Pro to learn from; the others are to test


class Questions(NamedTuple):
    """Answers of the models to questions, in random order."""

    voters: list[str]
    votes: np.ndarray
    labels: np.ndarray

    def table(self, part: slice) -> dict[str, np.ndarray]:
        """Votes by voter."""
        return dict(zip(self.voters, self.votes[part].T, strict=True))


def shuffled(seed: int, shuffles: int) -> Iterator[Questions]:
    """MMLU-Pro in several orders."""
    path = Path(os.environ.get("LINMAX_DATA", ".")) / "fusion_mmlu_pro" / "votes.csv"
    if not path.is_file():
        raise SystemExit(f"no file {path}; set LINMAX_DATA to the folder that holds fusion_mmlu_pro")
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    votes = np.array([[vote or None for vote in row[4:-1]] for row in rows], dtype=object)
    labels = np.array([row[-1] for row in rows])
    for shuffle in range(seed, seed + shuffles):
        order = np.random.default_rng(shuffle).permutation(len(rows))
        yield Questions(header[4:-1], votes[order], labels[order])


def told(what: str, rows: list[dict[str, float]], bars: dict[str, str]) -> None:
    """Print the median of each figure, its range, and what is asked of it."""
    print(f"{what} ({len(rows)} runs)")
    for key in rows[0]:
        found = [row[key] for row in rows]
        bar = f"   asked: {bars[key]}" if key in bars else ""
        print(f"  {key:<34} {statistics.median(found):10.4f}   [{min(found):.4f}, {max(found):.4f}]{bar}")


def labels(options: argparse.Namespace) -> None:
    """Labels only when they are worth it."""
    rows = []
    learn, test = slice(0, LEARNED), slice(LEARNED, None)
    for asked in shuffled(options.seed, options.shuffles):
        fusion = linmax.VoteFusion(options.selective, classes=list("ABCDEFGHIJ"))
        fusion.fit(asked.table(learn), asked.labels[learn])
        accuracy = float(np.mean(fusion.predict(asked.table(test)) == asked.labels[test]))
        whole = linmax.VoteFusion("auto", classes=list("ABCDEFGHIJ")).fit(asked.table(learn), asked.labels[learn])
        full = float(np.mean(whole.predict(asked.table(test)) == asked.labels[test]))
        rows.append({"labels": fusion.labels_used_, "test accuracy": accuracy, "with all 8,000 labels": full})
    told(f"selective labels, {options.selective}", rows, {"labels": "<= 700", "test accuracy": ">= .720"})


PARTS: dict[str, Any] = {"labels": labels}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--shuffles", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of the first shuffle")
    parser.add_argument("--selective", default="S(b=0.08)-auto", help="the learner of labels")
    options = parser.parse_args()
    for part in [options.only] if options.only else PARTS:
        PARTS[part](options)


if __name__ == "__main__":
    main()
