"""Few labels on real votes: the default learner beside a ridge conditional logit, the best model so far, and plurality.

    LINMAX_DATA=... python benchmarks/cold_start.py --json cold_start.json

The answers of 29 language models to MMLU-Pro. After so many labels, accuracy on 4,032 questions that were never learned
from, the median over the shuffles; the shuffles from 10 on are those on which nothing of the pool was chosen. The
conditional logit is fitted in batch, P(c) proportional to exp(b_c + sum of w_i over voters who name c), with the square
of all w and b times half of the ridge; 10 was the best ridge on other shuffles. With crowd-kit installed, Dawid-Skene
on all questions without any label.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from fusion import LEARNED, folder
from rich.console import Console
from rich.table import Table
from scipy.optimize import minimize

import linmax

LABELS = [1, 10, 30, 100, 300, 1000, 8000]
RIDGE = 10.0


def answers() -> tuple[np.ndarray, np.ndarray]:
    """Votes (questions, voters), -1 for none, and labels, as whole numbers."""
    with (folder("fusion_mmlu_pro") / "votes.csv").open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    place = {letter: number for number, letter in enumerate("ABCDEFGHIJ")}
    votes = np.array([[place.get(vote, -1) for vote in row[4:-1]] for row in rows])
    return votes, np.array([place[row[-1]] for row in rows])


def named(votes: np.ndarray) -> np.ndarray:
    """(questions, voters, classes): 1 where a voter names a class."""
    return np.asarray(votes[:, :, None] == np.arange(10), dtype=float)


def plurality(votes: np.ndarray, labels: np.ndarray, test: np.ndarray) -> np.ndarray:  # noqa: ARG001
    """The class that most name."""
    return np.asarray(named(test).sum(axis=1).argmax(axis=1))


def best_so_far(votes: np.ndarray, labels: np.ndarray, test: np.ndarray) -> np.ndarray:
    """The voter most often right among the labels seen, of equals any; 0 where it abstains."""
    right = (votes == labels[:, None]).sum(axis=0)
    best = np.random.default_rng(len(labels)).choice(np.flatnonzero(right == right.max()))
    return np.maximum(test[:, best], 0)


def conditional_logit(votes: np.ndarray, labels: np.ndarray, test: np.ndarray) -> np.ndarray:
    """A weight for each voter and each class, in batch, with a ridge."""
    x, n = named(votes), votes.shape[1]

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        scores = np.einsum("tnc,n->tc", x, parameters[:n]) + parameters[n:]
        scores -= scores.max(axis=1, keepdims=True)
        share = np.exp(scores)
        share /= share.sum(axis=1, keepdims=True)
        rows = np.arange(len(labels))
        value = -np.log(share[rows, labels]).sum() + RIDGE / 2 * parameters @ parameters
        share[rows, labels] -= 1.0
        slope = np.concatenate([np.einsum("tnc,tc->n", x, share), share.sum(axis=0)])
        return float(value), slope + RIDGE * parameters

    found = minimize(loss, np.zeros(n + 10), jac=True, method="L-BFGS-B").x
    return np.asarray((np.einsum("tnc,n->tc", named(test), found[:n]) + found[n:]).argmax(axis=1))


def default(votes: np.ndarray, labels: np.ndarray, test: np.ndarray) -> np.ndarray:
    """linmax with nothing named."""
    trace = linmax.run("auto", linmax.experts(votes=votes, abstain=-1, classes=range(10)), labels)
    return np.asarray(trace.model.predict(linmax.experts(votes=test, abstain=-1, classes=range(10))))


def dawid_skene(votes: np.ndarray, labels: np.ndarray) -> float | None:
    """Accuracy of crowd-kit's Dawid-Skene on all questions, without labels; None where it is not installed."""
    try:
        import pandas as pd
        from crowdkit.aggregation import DawidSkene
    except ImportError:
        return None
    task, worker = np.nonzero(votes >= 0)
    frame = pd.DataFrame({"task": task, "worker": worker, "label": votes[task, worker]})
    return float(np.mean(DawidSkene(n_iter=50).fit_predict(frame).to_numpy() == labels))


METHODS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "linmax, auto": default,
    "conditional logit, ridge 10": conditional_logit,
    "best model so far": best_so_far,
    "plurality": plurality,
}


def main() -> None:
    """Measure, show, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shuffles", type=int, default=5)
    parser.add_argument("--seed", type=int, default=10, help="of the first shuffle (default: 10)")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    votes, labels = answers()
    runs: dict[str, list[list[float]]] = {name: [] for name in METHODS}
    for seed in range(arguments.seed, arguments.seed + arguments.shuffles):
        order = np.random.default_rng(seed).permutation(len(labels))
        test = order[LEARNED:]
        for name, method in METHODS.items():
            predicted = (method(votes[order[:n]], labels[order[:n]], votes[test]) for n in LABELS)
            runs[name].append([float(np.mean(answer == labels[test])) for answer in predicted])
    found = {
        "labels": LABELS,
        "shuffles": [arguments.seed, arguments.shuffles],
        "median": {name: np.median(rows, axis=0).tolist() for name, rows in runs.items()},
        "worst": {name: np.min(rows, axis=0).tolist() for name, rows in runs.items()},
        "Dawid-Skene of crowd-kit, no label": dawid_skene(votes, labels),
    }
    table = Table("median", *map(str, LABELS), title="MMLU-Pro, accuracy on new questions after so many labels")
    for name, row in found["median"].items():
        table.add_row(name, *(f"{value:.3f}" for value in row))
    Console().print(table)
    Console().print("Dawid-Skene of crowd-kit, no label:", found["Dawid-Skene of crowd-kit, no label"])
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
