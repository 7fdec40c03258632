"""Fusion on real votes: language models answering questions, and labelling rules with and without the text.

    LINMAX_DATA=... python benchmarks/fusion.py                  # both, some minutes
    LINMAX_DATA=... python benchmarks/fusion.py --only mmlu
    LINMAX_DATA=... python benchmarks/fusion.py --only trec --orders 1
    LINMAX_DATA=... python benchmarks/fusion.py --learner "AR-perceptron" --json fusion.json

mmlu: the answers of 29 language models to MMLU-Pro; 8,000 random questions to learn, the rest to test; medians over the
shuffles. trec: 68 rules that mostly abstain, and the words of the question; the training part to learn, in random
orders, the test part to test; means over the orders. Nothing is tuned. Accuracies are shares of right answers: on-line,
each trial predicted before its label was seen, and on the test part.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder, normalize

import linmax

LEARNED = 8000  # questions of MMLU-Pro
Row = dict[str, Any]


def folder(name: str) -> Path:
    """Where a set is."""
    path = Path(os.environ.get("LINMAX_DATA", ".")) / name
    if not path.is_dir():
        raise SystemExit(f"no folder {path}; set LINMAX_DATA to the folder that holds {name}")
    return path


# -- votes of language models -------------------------------------------------------------------------------------


def mmlu(learner: str, shuffles: int) -> list[Row]:
    """Fusion, its rivals and stacking, each the median over the shuffles."""
    with (folder("fusion_mmlu_pro") / "votes.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    voters = header[4:-1]
    votes = np.array([[vote or None for vote in row[4:-1]] for row in rows], dtype=object)
    subjects, labels = np.array([row[1] for row in rows]), np.array([row[-1] for row in rows])
    runs: list[dict[str, tuple[float, float | None]]] = []
    seconds = []
    for seed in range(shuffles):
        order = np.random.default_rng(seed).permutation(len(rows))
        learn, test = order[:LEARNED], order[LEARNED:]
        fusion = linmax.VoteFusion(learner)
        start = time.perf_counter()
        fusion.fit(dict(zip(voters, votes[learn].T, strict=True)), labels[learn])
        seconds.append(time.perf_counter() - start)
        report = fusion.report(dict(zip(voters, votes[test].T, strict=True)), labels[test])
        found = {key: (report.online.accuracy[key], report.test.accuracy[key]) for key in report.online.accuracy}
        sided = linmax.VoteFusion(learner, by="subject")
        sided.fit(dict(zip(voters, votes[learn].T, strict=True)) | {"subject": subjects[learn]}, labels[learn])
        judged = sided.predict(dict(zip(voters, votes[test].T, strict=True)) | {"subject": subjects[test]})
        online = sided.report().online.accuracy["fusion"]
        found["fusion by subject"] = (online, float(np.mean(judged == labels[test])))
        found["stacking, batch logistic"] = (None, stacked(votes[learn], labels[learn], votes[test], labels[test]))
        runs.append(found)
    rows_out = []
    for key in runs[0]:
        online = [run[key][0] for run in runs if run[key][0] is not None]
        rows_out.append(
            {
                "what": f"{key}, {learner}" if key.startswith("fusion") else key.replace("_", " "),
                "online": statistics.median(online) if online else None,
                "test": statistics.median(run[key][1] for run in runs),
                "seconds": statistics.median(seconds) if key == "fusion" else None,
            }
        )
    return rows_out


def stacked(votes: np.ndarray, labels: np.ndarray, test_votes: np.ndarray, test_labels: np.ndarray) -> float:
    """Logistic regression on the votes, as scikit-learn's StackingClassifier would learn from given base models.

    Of three strengths of regularisation it gets the best on the test part, which flatters it.
    """
    encoder = OneHotEncoder(handle_unknown="ignore")
    votes, test_votes = (np.where(np.equal(table, None), "", table) for table in (votes, test_votes))
    seen, unseen = encoder.fit_transform(votes), encoder.transform(test_votes)
    models = [LogisticRegression(C=strength, max_iter=1000).fit(seen, labels) for strength in (0.01, 0.1, 1.0)]
    return max(float(model.score(unseen, test_labels)) for model in models)


# -- rules and words ----------------------------------------------------------------------------------------------


def trec(learner: str, orders: int) -> list[Row]:
    """Rules alone, words alone and both, each the mean over the orders."""
    train, test = (lines(folder("fusion_weaksup_trec") / f"{part}.jsonl") for part in ("train", "test"))
    votes = np.full((len(train) + len(test), 68), -1)
    for t, line in enumerate([*train, *test]):
        for rule, label in line["votes"].items():
            votes[t, int(rule)] = label
    labels = np.array([line["label"] for line in [*train, *test]])
    words = CountVectorizer(token_pattern=r"\S+").fit([line["text"] for line in train])
    counts = words.transform([line["text"] for line in [*train, *test]]).astype(float)
    attributes = sparse.csr_array(normalize(counts.log1p()))
    words_given = sparse.csr_array(counts) if learner == "auto" else attributes  # it scales by itself
    size, k = len(train), int(labels.max()) + 1
    sets = {
        "rules": {"votes": votes, "abstain": -1},
        "words": {"attributes": words_given},
        "rules and words": {"votes": votes, "abstain": -1, "attributes": words_given},
    }
    found = []
    for name, blocks in sets.items():
        instances = linmax.experts(**blocks, classes=range(k))
        results = []
        for seed in range(orders):
            order = np.random.default_rng(seed).permutation(size)
            start = time.perf_counter()
            trace = linmax.run(learner, instances[order], labels[order])
            seconds = time.perf_counter() - start
            right = trace.model.predict(instances[size:]) == labels[size:]
            results.append((1.0 - trace.wrong.mean(), right.mean(), seconds))
        online, tested, seconds = np.mean(results, axis=0)
        found.append({"what": f"{name}, {learner}", "online": online, "test": tested, "seconds": seconds})
    counted = np.stack([(votes == c).sum(axis=1) for c in range(k)], axis=1).argmax(axis=1) == labels
    found.append({"what": "rules, plurality", "online": counted[:size].mean(), "test": counted[size:].mean()})
    batch = LogisticRegression(max_iter=1000).fit(attributes[:size], labels[:size])
    found.append({"what": "words, batch logistic", "test": batch.score(attributes[size:], labels[size:])})
    return found


def lines(path: Path) -> list[Row]:
    """The objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# -- showing ------------------------------------------------------------------------------------------------------


def show(title: str, rows: list[Row]) -> None:
    """Print a table."""
    table = Table("", title=title, title_justify="left")
    for heading in ("on-line", "test", "seconds"):
        table.add_column(heading, justify="right")
    for row in rows:
        shares = ["-" if row.get(key) is None else f"{row[key]:.4f}" for key in ("online", "test")]
        table.add_row(row["what"], *shares, "-" if row.get("seconds") is None else f"{row['seconds']:.1f}")
    Console().print(table)


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("mmlu", "trec"))
    parser.add_argument("--learner", default="auto")
    parser.add_argument("--shuffles", type=int, default=5, help="of mmlu (default: 5)")
    parser.add_argument("--orders", type=int, default=3, help="of trec (default: 3)")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = {}
    if arguments.only != "trec":
        found["mmlu"] = mmlu(arguments.learner, arguments.shuffles)
        show(f"29 language models on MMLU-Pro, median of {arguments.shuffles} shuffles", found["mmlu"])
    if arguments.only != "mmlu":
        found["trec"] = trec(arguments.learner, arguments.orders)
        show(f"68 rules and the words of TREC, mean of {arguments.orders} orders", found["trec"])
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2, default=float) + "\n")


if __name__ == "__main__":
    main()
