"""What learning costs in calls and in labels: fewer voters asked, right or wrong only, candidates, selective labels.

    LINMAX_DATA=... python benchmarks/asking.py                  # all, some minutes
    LINMAX_DATA=... python benchmarks/asking.py --only labels --shuffles 5 --seed 10

labels: the votes of 29 language models on MMLU-Pro, 8,000 random questions of which a selective learner asks for some
labels, the rest to test. calls: 1,000 of the same questions with all votes, then voters asked one by one. images: the
same with ten small classifiers of MNIST, against asking the best first until two agree. wrong: right or wrong in the
place of labels. candidates: two candidates never seen before in each of 300 trials. retrieval:
documents that ten rankers score, and clicks.
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
from real_data import STREAMS

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


def candidates(options: argparse.Namespace) -> None:
    """Two candidates never seen before in each of 300 trials; one rater is always right, the others are noise."""
    for noise in (2, 4, 9):
        _candidates(options, noise)


def _candidates(options: argparse.Namespace, noise: int) -> None:
    rows = []
    for seed in range(options.seed, options.seed + options.shuffles):
        random = np.random.default_rng(seed)
        learner = linmax.Learner(options.ranker)
        for t in range(300):
            names, right = [f"{t}a", f"{t}b"], int(random.integers(2))
            said = {f"noise {i}": random.random(2).tolist() for i in range(noise)}
            learner.learn(candidates=names, scores=said | {"right": [1.0 - right, float(right)]}, label=names[right])
        rows.append({"mistakes of 300": learner.mistakes})
    told(f"two unseen candidates a trial, {noise} raters of noise, {options.ranker}", rows, {"mistakes of 300": "<= 2"})


RANKERS, DOCUMENTS, QUERIES = 10, 50, 1000


def retrieval(options: argparse.Namespace) -> None:
    """Documents that ten rankers score, of which a user clicks one; relevance is one of several mixtures of signals.

    Each query is about one of four topics, and relevance weighs eight hidden signals as the topic says. Each ranker
    sees three of the signals through noise, in a unit of its own; two see nothing. The click is the most relevant
    document, or with probability .2 one of the five next. Rivals: reciprocal-rank fusion, and the ranker best so far.
    """
    rows = []
    for seed in range(options.seed, options.seed + options.shuffles):
        random = np.random.default_rng(seed)
        topics = random.dirichlet(np.full(8, 0.5), size=4)
        sees = random.random((RANKERS, 8)) * (random.random((RANKERS, 8)) < 3 / 8)
        sees[-2:] = 0.0
        unit = 10.0 ** random.uniform(-2, 2, RANKERS)
        learner, hits, single = linmax.Learner(options.ranker), {"fused": [], "rrf": [], "best": []}, np.zeros(RANKERS)
        for t in range(QUERIES):
            signals = random.random((DOCUMENTS, 8))
            order = np.argsort(-(signals @ topics[random.integers(4)]))
            click = int(order[0] if random.random() < 0.8 else order[random.integers(1, 6)])
            scores = (signals @ sees.T + 0.3 * random.normal(size=(DOCUMENTS, RANKERS))) * unit
            ranks = np.argsort(np.argsort(-scores, axis=0), axis=0)
            names = [f"{t}/{i}" for i in range(DOCUMENTS)]
            said = {f"ranker {i}": scores[:, i].tolist() for i in range(RANKERS)}
            hits["fused"].append(learner.learn(candidates=names, scores=said, label=names[click]) == names[click])
            hits["rrf"].append(int(np.argmax((1.0 / (60 + ranks)).sum(axis=1))) == click)
            hits["best"].append(int(np.argmax(scores[:, int(np.argmax(single))])) == click)
            single += ranks[click] == 0
        late = slice(100, None)
        rows.append(
            {
                "fused, first 100 clicks": float(np.mean(hits["fused"][:100])),
                "fused, from 100 clicks on": float(np.mean(hits["fused"][late])),
                "reciprocal-rank fusion": float(np.mean(hits["rrf"][late])),
                "best single ranker so far": float(np.mean(hits["best"][late])),
                "ahead of both": float(np.mean(hits["fused"][late]))
                - max(float(np.mean(hits["rrf"][late])), float(np.mean(hits["best"][late]))),
            }
        )
    told(f"clicks on the first of 50 documents, {options.ranker}", rows, {"ahead of both": "> 0"})


ALL = 1000  # questions with all votes, before voters are asked one by one


def calls(options: argparse.Namespace) -> None:
    """Voters asked one by one, and learned from as far as they were asked."""
    rows = []
    for asked in shuffled(options.seed, options.shuffles):
        rows.append(one_by_one(asked, list("ABCDEFGHIJ"), options))
        print(rows[-1], flush=True)
    bars = {"calls": "<= 3", "given up": "<= .004"}
    told(f"asked one by one, tolerance {options.tolerance}", rows, bars)


def images(options: argparse.Namespace) -> None:
    """Ten small classifiers of MNIST, asked one by one, and the best first until two agree."""
    rows, digits = [], votes_on_digits()
    for shuffle in range(options.seed, options.seed + options.shuffles):
        order = np.random.default_rng(shuffle).permutation(len(digits.labels))
        asked = Questions(digits.voters, digits.votes[order], digits.labels[order])
        first, later = slice(0, ALL), slice(ALL, min(options.questions, len(order)))
        best = np.argsort(-(asked.votes[first] == asked.labels[first, None]).mean(axis=0), kind="stable")
        counts, right = [], []
        for votes, label in zip(asked.votes[later][:, best].tolist(), asked.labels[later].tolist(), strict=True):
            size = next((i + 1 for i in range(len(votes)) if votes[i] in votes[:i]), len(votes))
            answer = votes[size - 1] if votes[size - 1] in votes[: size - 1] else votes[0]
            counts.append(size)
            right.append(answer == label)
        rival = {"calls until two agree": float(np.mean(counts)), "accuracy, two agree": float(np.mean(right))}
        rows.append(one_by_one(asked, list(range(10)), options) | rival)
        print(rows[-1], flush=True)
    told(f"digits asked one by one, tolerance {options.tolerance}", rows, {"accuracy": ">= accuracy, two agree"})


def votes_on_digits() -> Questions:
    """Answers of ten small models, each fitted to a few thousand digits, to 20,000 others."""
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    stream = STREAMS["mnist"]().shuffled(0)
    pictures, labels = np.asarray(stream.rows, np.float32) / 255.0, np.asarray(stream.labels).astype(int)
    pictures = pictures[:, pictures[:1000].std(axis=0) > 0]
    random, size = np.random.default_rng(0), len(labels) - 20_000
    models = {
        "logistic": make_pipeline(PCA(60), LogisticRegression(max_iter=200)),
        "ridge": RidgeClassifier(10.0),
        "bayes": make_pipeline(PCA(30), GaussianNB()),
        "lda": make_pipeline(PCA(60), LinearDiscriminantAnalysis()),
        "qda": make_pipeline(PCA(30), QuadraticDiscriminantAnalysis(reg_param=0.05)),
        "neighbors": make_pipeline(PCA(30), KNeighborsClassifier(5)),
        "forest": RandomForestClassifier(60, random_state=0),
        "tree": DecisionTreeClassifier(random_state=0),
        "svm": make_pipeline(PCA(40), SVC(C=5)),
        "network": make_pipeline(PCA(40), MLPClassifier((40,), max_iter=60, random_state=0)),
    }
    votes = []
    for model in models.values():
        chosen = random.choice(size, 3000, replace=False)
        votes.append(model.fit(pictures[chosen], labels[chosen]).predict(pictures[size:]).astype(int))
    return Questions(list(models), np.array(votes).T.astype(object), labels[size:])


def one_by_one(asked: Questions, classes: list[Any], options: argparse.Namespace) -> dict[str, float]:
    """Figures of asking one by one after `ALL` questions with all votes, and of asking all."""
    first = slice(0, ALL)
    whole, frugal = (
        linmax.VoteFusion("auto", classes=classes).fit(asked.table(first), asked.labels[first]) for _ in range(2)
    )
    counts, right, right_all = [], [], []
    for t in range(ALL, min(options.questions, len(asked.labels))):
        votes, label = dict(zip(asked.voters, asked.votes[t], strict=True)), asked.labels[t]
        row = {name: [vote] for name, vote in votes.items()}
        right_all.append(whole.predict(row)[0] == label)
        heard = sequence(frugal, votes, options.tolerance)
        counts.append(len(heard))
        given = {name: [vote] for name, vote in heard.items()}
        right.append(frugal.predict(given)[0] == label)
        whole.partial_fit(row, [label])
        frugal.partial_fit(given, [label])
    return {
        "calls": float(np.mean(counts)),
        "accuracy": float(np.mean(right)),
        "accuracy of asking all": float(np.mean(right_all)),
        "given up": float(np.mean(right_all) - np.mean(right)),
    }


def sequence(fusion: Any, votes: dict[str, Any], tolerance: float) -> dict[str, Any]:
    """The votes of those who are asked."""
    found: dict[str, Any] = {}
    while (voter := fusion.ask(found, tolerance=tolerance)) is not None:
        found[voter] = votes[voter]
    return found


SETS = ("covtype", "mnist", "shuttle", "elec2", "letter")  # with attributes: the four largest, and one of many classes


def wrong(options: argparse.Namespace) -> None:
    """Right or wrong only, from the first trial: on MMLU-Pro, and on sets with attributes."""
    rows = []
    for asked in shuffled(options.seed, options.shuffles):
        size = min(options.questions, len(asked.labels))
        table = [dict(zip(asked.voters, row, strict=True)) for row in asked.votes[:size]]
        full, bandit = (on_line(table, asked.labels[:size], known, "votes") for known in (True, False))
        rows.append({"accuracy": bandit, "accuracy with labels": full, "given up": full - bandit})
    told("right or wrong only, MMLU-Pro", rows, {"given up": "<= .005"})
    for name in SETS:
        stream = STREAMS[name]().shuffled(options.seed).head(options.rows)
        table = [{i: float(x) for i, x in enumerate(row)} for row in np.asarray(stream.rows)]
        full, bandit = (on_line(table, stream.labels, known, "attributes") for known in (True, False))
        ratio = {"mistakes, with labels = 1": (1 - bandit) / (1 - full), "error with labels": 1 - full}
        told(f"right or wrong only, {name}, {len(table)} rows", [ratio], {"mistakes, with labels = 1": "<= 1.5"})


def on_line(rows: list[dict[Any, Any]], labels: np.ndarray, known: bool, block: str) -> float:
    """Accuracy, with labels or with right and wrong only."""
    learner = linmax.Learner(classes=sorted(set(labels.tolist())))
    right = 0
    for row, label in zip(rows, labels.tolist(), strict=True):
        answer = learner.predict(**{block: row})
        right += answer == label
        learner.learn(**{block: row}, **({"label": label} if known or answer == label else {"wrong": answer}))
    return right / len(rows)


PARTS: dict[str, Any] = {
    "labels": labels,
    "calls": calls,
    "images": images,
    "wrong": wrong,
    "candidates": candidates,
    "retrieval": retrieval,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--shuffles", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of the first shuffle")
    parser.add_argument("--selective", default="S(b=0.08)-auto", help="the learner of labels")
    parser.add_argument("--ranker", default="auto", help="the learner of candidates")
    parser.add_argument("--tolerance", type=float, default=0.002)
    parser.add_argument("--questions", type=int, default=20_000, help="most questions of calls and images")
    parser.add_argument("--rows", type=int, default=5000, help="rows of the sets with attributes")
    options = parser.parse_args()
    for part in [options.only] if options.only else PARTS:
        PARTS[part](options)


if __name__ == "__main__":
    main()
