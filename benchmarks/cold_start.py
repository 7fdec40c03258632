"""Few labels on real votes: the default learner beside plurality, the best voter so far, a ridge logit, and stacking.

    LINMAX_DATA=... python benchmarks/cold_start.py --json cold_start.json
    LINMAX_DATA=... python benchmarks/cold_start.py --only trec

mmlu: the answers of 29 language models to MMLU-Pro, 8,000 questions to learn and 4,032 to test. trec: 68 rules that
mostly abstain, on the training part of TREC's questions, 3,310 to learn and 1,655 to test. After so many labels,
accuracy on the questions to test, the median and the least over the shuffles; nothing of the pool was chosen on the
shuffles of mmlu from 30 on. The conditional logit is fitted in batch, afresh for every number of labels, P(c)
proportional to exp(b_c + sum of w_i over voters who name c), with the square of all w and b times half of the ridge; 10
was the best ridge on other shuffles of mmlu. Stacking is scikit-learn's logistic regression on one-hot votes, the best
of three strengths on the questions to test, which flatters it. With crowd-kit installed, Dawid-Skene on all questions
of mmlu without any label.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fusion import plurality, read_mmlu, stacked, trec_votes
from scipy.optimize import minimize

import linmax

LABELS = {"mmlu": [1, 10, 30, 100, 300, 1000, 8000], "trec": [1, 10, 30, 100, 300, 1000, 3310]}
RIDGE = 10.0


class Problem(NamedTuple):
    """Votes (questions, voters), -1 for none, labels, and the number of classes."""

    votes: np.ndarray
    labels: np.ndarray
    k: int


def problem(name: str) -> Problem:
    """One of the two sets."""
    return Problem(*read_mmlu(), 10) if name == "mmlu" else Problem(*trec_votes())


def named(votes: np.ndarray, k: int) -> np.ndarray:
    """(questions, voters, classes): 1 where a voter names a class."""
    return np.asarray(votes[:, :, None] == np.arange(k), dtype=float)


def share_right(answers: np.ndarray, test: Problem) -> float:
    """How many of the answers are right."""
    return float(np.mean(answers == test.labels))


def most_votes(seen: Problem, test: Problem) -> float:
    """The class that most name."""
    return share_right(plurality(test.votes, seen.k), test)


def best_so_far(seen: Problem, test: Problem) -> float:
    """The voter most often right among the labels seen, of equals any; class 0 where it abstains."""
    right = (seen.votes == seen.labels[:, None]).sum(axis=0)
    best = np.random.default_rng(len(seen.labels)).choice(np.flatnonzero(right == right.max()))
    return share_right(np.maximum(test.votes[:, best], 0), test)


def conditional_logit(seen: Problem, test: Problem) -> float:
    """A weight for each voter and each class, in batch, with a ridge."""
    x, n, labels = named(seen.votes, seen.k), seen.votes.shape[1], seen.labels

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

    found = minimize(loss, np.zeros(n + seen.k), jac=True, method="L-BFGS-B").x
    scores = np.einsum("tnc,n->tc", named(test.votes, seen.k), found[:n]) + found[n:]
    return share_right(scores.argmax(axis=1), test)


def stacking(seen: Problem, test: Problem) -> float:
    """A weight for each voter, answer and class; the only class where there is but one."""
    if len(np.unique(seen.labels)) == 1:
        return float(np.mean(test.labels == seen.labels[0]))
    return stacked(seen.votes, seen.labels, test.votes, test.labels)


def default(seen: Problem, test: Problem) -> float:
    """linmax with nothing named."""
    given, new = (linmax.instances(votes=part.votes, abstain=-1, classes=range(seen.k)) for part in (seen, test))
    return share_right(linmax.run("auto", given, seen.labels).model.predict(new), test)


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


METHODS: dict[str, Callable[[Problem, Problem], float]] = {
    "linmax, auto": default,
    "conditional logit, ridge 10": conditional_logit,
    "best voter so far": best_so_far,
    "plurality": most_votes,
    "stacking, one-hot votes": stacking,
}


def measure(name: str, seeds: range) -> dict[str, Any]:
    """Accuracies of all methods on one of the sets."""
    votes, labels, k = problem(name)
    sizes = LABELS[name]
    runs: dict[str, list[list[float]]] = {method: [] for method in METHODS}
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(labels))
        test = Problem(votes[order[sizes[-1] :]], labels[order[sizes[-1] :]], k)
        for told, method in METHODS.items():
            seen = (Problem(votes[order[:n]], labels[order[:n]], k) for n in sizes)
            runs[told].append([method(part, test) for part in seen])
    found = {
        "labels": sizes,
        "shuffles": [seeds.start, len(seeds)],
        "median": {told: np.median(rows, axis=0).tolist() for told, rows in runs.items()},
        "worst": {told: np.min(rows, axis=0).tolist() for told, rows in runs.items()},
    }
    if name == "mmlu":
        found["Dawid-Skene of crowd-kit, no label"] = dawid_skene(votes, labels)
    return found


def show(name: str, found: dict[str, Any]) -> None:
    """Print medians and worst shuffles as Markdown, as they stand in the pages."""
    print(f"\n{name}, accuracy on new questions: the median of {found['shuffles'][1]} shuffles, and the worst\n")
    print("| labels |", " | ".join(f"{size:,d}" for size in found["labels"]), "|")
    print("|---" * (1 + len(found["labels"])) + "|")
    for kind, prefix in (("median", ""), ("worst", "worst shuffle: ")):
        for told, row in found[kind].items():
            print(f"| {prefix}{told} |", " | ".join(f"{value:.3f}".lstrip("0") for value in row), "|")


def main() -> None:
    """Measure, show, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=tuple(LABELS))
    parser.add_argument("--shuffles", type=int, default=20)
    parser.add_argument("--seed", type=int, default=30, help="of the first shuffle (default: 30)")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.shuffles)
    found = {}
    for name in LABELS if arguments.only is None else [arguments.only]:
        found[name] = measure(name, seeds)
        show(name, found[name])
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
