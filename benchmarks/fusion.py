"""Fusion on real votes: language models answering questions, and labelling rules with and without the text.

    LINMAX_DATA=... python benchmarks/fusion.py                  # all, some minutes
    LINMAX_DATA=... python benchmarks/fusion.py --only mmlu
    LINMAX_DATA=... python benchmarks/fusion.py --only trec --orders 1
    LINMAX_DATA=... python benchmarks/fusion.py --only bars
    LINMAX_DATA=... python benchmarks/fusion.py --only open
    LINMAX_DATA=... python benchmarks/fusion.py --only probabilities --seed 10
    LINMAX_DATA=... python benchmarks/fusion.py --learner "AR-perceptron" --json fusion.json

mmlu: the answers of 29 language models to MMLU-Pro; 8,000 random questions to learn, the rest to test; medians over the
shuffles. trec: 68 rules that mostly abstain, and the words of the question; the training part to learn, in random
orders, the test part to test; means over the orders. bars: few labels, voters that change, labels that are a sharp
function of the votes, many workers who speak rarely, and what a trial costs, each beside what is asked of `auto`.
open: questions that have answers of their own, models asked one by one, and the cost of many answers.
probabilities: calibration error and log loss on the test part of mmlu, coverage and size of prediction sets.
There is nothing to tune, but the constants of the pool for votes were chosen on the first five shuffles of mmlu, and
``--seed 5`` was looked at once; ``--seed 10`` shows others. Accuracies are shares of right answers: on-line, each trial
predicted before its label was seen, and on the test part.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import resource
import statistics
import time
from functools import partial
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
from linmax.models.asking import simulate_asking
from linmax.models.baselines import fixed_share, ratings_of, refitted

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
    votes = votes_of([*train, *test])
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
        instances = linmax.instances(**blocks, classes=range(k))
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


def votes_of(rows: list[Row]) -> np.ndarray:
    """The votes of the 68 rules, -1 where one does not apply."""
    votes = np.full((len(rows), 68), -1)
    for t, line in enumerate(rows):
        for rule, label in line["votes"].items():
            votes[t, int(rule)] = label
    return votes


def trec_votes() -> tuple[np.ndarray, np.ndarray, int]:
    """Votes and labels of the training part, and the number of classes."""
    rows = lines(folder("fusion_weaksup_trec") / "train.jsonl")
    labels = np.array([line["label"] for line in rows])
    return votes_of(rows), labels, int(labels.max()) + 1


def lines(path: Path) -> list[Row]:
    """The objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# -- rows without labels ------------------------------------------------------------------------------------------


def unlabelled(learner: str, seeds: range) -> list[Row]:
    """Accuracy on held-out rows after all others without a label, and then few labels: with those rows and without."""
    problems = {
        "MMLU-Pro": lambda _: (*read_mmlu(), 10),
        "TREC's rules": lambda _: trec_votes(),
        "few good voters": lambda seed: crowd(np.r_[np.full(3, 0.9), np.full(17, 0.33)], seed),
        "a clique of 8 among 20": clique,
        "6 of 20 mislead": lambda seed: crowd(np.r_[np.linspace(0.5, 0.9, 14), np.full(6, 0.05)], seed),
        "hard questions": hard_questions,
    }
    found = []
    for name, make in problems.items():
        results = []
        for seed in seeds:
            votes, labels, k = make(seed)
            order = np.random.default_rng(seed).permutation(len(labels))
            votes, labels, half = votes[order], labels[order], 2 * len(labels) // 3
            instances = linmax.instances(votes=votes, abstain=-1, classes=range(k))
            test, right = instances[half:], labels[half:]
            results.append([np.mean(plurality(votes[half:], k) == right)])
            for rows in (half - 100, 0):
                model = linmax.run(learner, instances[:rows], [None] * rows).model
                for first, last in ((0, 0), (0, 10), (10, 30), (30, 100)):
                    model.run(instances[half - 100 + first : half - 100 + last], labels[half - 100 :][first:last])
                    results[-1].append(np.mean(model.predict(test) == right))
        medians = np.median(results, axis=0)
        found.append({"what": f"{name}: plurality", "found": medians[0], "asked": None})
        for place, size in enumerate((0, 10, 30, 100)):
            asked = 0.64 if name == "MMLU-Pro" and not size else None
            told = f"{name}: {size} labels and rows without (those labels alone {medians[5 + place]:.4f})"
            found.append({"what": told, "found": medians[1 + place], "asked": asked})
    return found


def crowd(accuracies: np.ndarray, seed: int, trials: int = 3000, k: int = 4) -> tuple[np.ndarray, np.ndarray, int]:
    """Independent voters who are right that often."""
    random = np.random.default_rng(seed)
    labels, shape = random.integers(0, k, trials), (trials, len(accuracies))
    wrong = (labels[:, None] + random.integers(1, k, shape)) % k
    return np.where(random.random(shape) < accuracies, labels[:, None], wrong), labels, k


def clique(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Eight voters who copy a poor one, among twelve independent ones."""
    random = np.random.default_rng(seed)
    votes, labels, k = crowd(np.r_[0.5, random.uniform(0.55, 0.8, 12)], seed)
    shape = (len(labels), 8)
    copies = np.where(random.random(shape) < 0.95, votes[:, :1], random.integers(0, k, shape))
    return np.hstack([copies, votes[:, 1:]]), labels, k


def hard_questions(seed: int, trials: int = 3000, n: int = 20, k: int = 5) -> tuple[np.ndarray, np.ndarray, int]:
    """Instances of all degrees of difficulty, with one wrong class that attracts the voters."""
    random, shape = np.random.default_rng(seed), (trials, n)
    labels = random.integers(0, k, trials)
    bait = np.where(random.random(shape) < 0.6, ((labels + 1) % k)[:, None], random.integers(0, k, shape))
    ease = random.normal(0.5, 1.0, n) - random.normal(0.0, 1.2, trials)[:, None]
    return np.where(random.random(shape) < 1.0 / (1.0 + np.exp(-ease)), labels[:, None], bait), labels, k


# -- what is asked of the pool for votes --------------------------------------------------------------------------

LABELS = {1: 0.61, 10: 0.64, 30: 0.685, 50: 0.695, 100: 0.708, 200: 0.715, 1000: 0.725, 8000: 0.731}


def plurality(votes: np.ndarray, k: int) -> np.ndarray:
    """The class with most votes; the first of those that tie."""
    return np.stack([(votes == c).sum(axis=1) for c in range(k)], axis=1).argmax(axis=1)


def bars(learner: str, seeds: range) -> list[Row]:
    """Each figure, median over the shuffles, beside what is asked: at least (+) or at most (-) so much."""
    votes, labels = read_mmlu()
    found = [*few_labels(learner, votes, labels, seeds), *reversal(learner, votes, labels, seeds)]
    for noise, asked in ((0.0, -30.0), (0.4, -0.402)):
        found.append(majority(learner, noise, asked, seeds))
    return [*found, workers(learner, seeds), *costs(learner, votes, labels)]


def few_labels(learner: str, votes: np.ndarray, labels: np.ndarray, seeds: range) -> list[Row]:
    """Accuracy on held-out questions after so many labels, on-line, and how often it is below plurality."""
    instances = linmax.instances(votes=votes, abstain=-1, classes=range(10))
    tested: list[list[float]] = []
    online, below = [], 0
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(labels))
        learn, test = order[:LEARNED], order[LEARNED:]
        model, seen, wrong = linmax.run(learner, instances[learn[:0]], labels[:0]).model, 0, 0
        tested.append([])
        for size in LABELS:
            part = learn[seen:size]
            wrong, seen = wrong + model.run(instances[part], labels[part]).wrong.sum(), size
            tested[-1].append(np.mean(model.predict(instances[test]) == labels[test]))
        counted = np.mean(plurality(votes[test], 10) == labels[test])
        below += sum(accuracy < counted for accuracy in tested[-1])
        online.append(1.0 - wrong / LEARNED)
    medians = np.median(tested, axis=0)
    found = [
        {"what": f"MMLU-Pro after {size:,d} labels", "found": medians[i], "asked": asked}
        for i, (size, asked) in enumerate(LABELS.items())
    ]
    found.append({"what": "of these below plurality, any shuffle", "found": float(below), "asked": -0.0})
    found.append({"what": "MMLU-Pro on-line", "found": statistics.median(online), "asked": 0.7251})
    return found


def reversal(learner: str, votes: np.ndarray, labels: np.ndarray, seeds: range) -> list[Row]:
    """Half-way the best voter's votes become the worst one's, and so on: errors after that; rivals that forget."""
    after: dict[str, list[tuple[float, float]]] = {}
    half = LEARNED // 2
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(labels))[:LEARNED]
        given, right = reversed_half_way(votes[order], labels[order]), labels[order]
        ratings = ratings_of(given, 10)
        answers = {
            learner: linmax.run(learner, linmax.instances(votes=given, abstain=-1, classes=range(10)), right).wrong,
            "logit of the last 100": refitted(ratings, right, 100) != right,
            "fixed share": fixed_share(given, right, 10) != right,
        }
        for name, wrong in answers.items():
            after.setdefault(name, []).append((wrong[half : half + 500].mean(), wrong[half:].mean()))
    rows = []
    for name, found in after.items():
        for what, error, asked in zip(
            ("error of the next 500", "error of the second half"),
            np.median(found, axis=0),
            (-0.335, -0.285),
            strict=True,
        ):
            rows.append({"what": f"voters reversed, {name}: {what}", "found": error, "asked": asked})
    return rows


def majority(learner: str, noise: float, asked: float, seeds: range) -> Row:
    """Mistakes without noise, otherwise the final error."""
    results = []
    for seed in seeds:
        data = linmax.datasets.majority_problem(noise=noise, seed=seed)
        trace = linmax.run(learner, linmax.instances(votes=data.votes), data.labels)
        test = linmax.datasets.majority_problem(noise=noise, trials=20_000, seed=seed + 100_000)
        error = np.mean(trace.model.predict(linmax.instances(votes=test.votes)) != test.labels)
        results.append(float(error) if noise else float(trace.mistakes[-1]))
    told = "final error" if noise else "mistakes"
    return {"what": f"majority problem, noise {noise:g}: {told}", "found": statistics.median(results), "asked": asked}


def workers(learner: str, seeds: range) -> Row:
    """3,000 workers, right 60 to 95 times in 100, 8 of whom vote on each of 2,000 tasks with 4 classes."""
    results, counted = [], []
    for seed in seeds:
        random = np.random.default_rng(seed)
        good, labels = random.uniform(0.6, 0.95, 3000), random.integers(0, 4, 2000)
        votes = np.full((2000, 3000), -1)
        for row, label in zip(votes, labels, strict=True):
            who = random.choice(3000, 8, replace=False)
            row[who] = np.where(random.random(8) < good[who], label, (label + random.integers(1, 4, 8)) % 4)
        trace = linmax.run(learner, linmax.instances(votes=votes, abstain=-1, classes=range(4)), labels)
        results.append(1.0 - trace.wrong.mean())
        counted.append(np.mean(plurality(votes, 4) == labels))
    told = f"3,000 workers on-line (plurality {statistics.median(counted):.4f})"
    return {"what": told, "found": statistics.median(results), "asked": 0.99}


def costs(learner: str, votes: np.ndarray, labels: np.ndarray) -> list[Row]:
    """Microseconds of the processor for a trial: all at once, and one by one through two faces."""
    instances = linmax.instances(votes=votes, abstain=-1, classes=range(10))
    linmax.run(learner, instances[:20], labels[:20])
    spent = [time.process_time()]
    linmax.run(learner, instances[:LEARNED], labels[:LEARNED])
    spent.append(time.process_time())
    one_by_one = linmax.Learner(learner)
    named = [{str(i): int(vote) for i, vote in enumerate(row) if vote >= 0} for row in votes[:1000]]
    spent.append(time.process_time())
    for row, label in zip(named, labels.tolist(), strict=False):
        one_by_one.learn(votes=row, label=label)
    spent.append(time.process_time())
    table = np.where(votes[:1000] < 0, None, votes[:1000].astype(object))
    fusion = linmax.VoteFusion(learner)
    spent.append(time.process_time())
    for t in range(len(table)):
        fusion.partial_fit(table[t : t + 1], labels[t : t + 1])
    spent.append(time.process_time())
    faces = {"run": (0, LEARNED), "Learner": (2, len(named)), "VoteFusion.partial_fit": (4, len(table))}
    return [
        {
            "what": f"microseconds a trial, {face}",
            "found": 1e6 * (spent[first + 1] - spent[first]) / size,
            "asked": -150.0 if face == "run" else None,
        }
        for face, (first, size) in faces.items()
    ]


# -- open answers -------------------------------------------------------------------------------------------------


ACCURACY = {5: 0.84, 10: 0.87, 30: 0.90, 100: 0.905, 300: 0.915}
LOG_LOSS = {5: -0.75, 10: -0.62, 30: -0.53, 100: -0.46, 300: -0.42}
ALL_ASKED = 300  # questions before models are asked one by one


def open_answers(learner: str, seeds: range) -> list[Row]:
    """41 language models on competition mathematics; and what 100,000 rows with 100,000 answers cost."""
    with (folder("fusion_open_answers") / "math_l5.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    voters, table = header[1:], np.array(rows, dtype=object)
    table[table == ""] = None
    found: dict[int, list[tuple[float, float]]] = {size: [] for size in ACCURACY}
    asked = []
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(table))
        labels, votes = table[order, 0], table[order, 1:]
        fusion, seen = linmax.VoteFusion(learner, answers="open"), 0
        for size, figures in found.items():
            fusion.partial_fit(votes[seen:size], labels[seen:size])
            shares, seen = fusion.predict_proba(votes[size:]), size
            losses = [-math.log(one.get(label, one[None])) for one, label in zip(shares, labels[size:], strict=True)]
            figures.append((float(np.mean(fusion.predict(votes[size:]) == labels[size:])), float(np.mean(losses))))
        make = partial(linmax.VoteFusion, learner, answers="open")
        columns = dict(zip(voters, votes.T, strict=True))
        asked.append(simulate_asking(make, columns, labels, voters, first=ALL_ASKED))
    told = []
    for place, (name, bars) in enumerate((("accuracy", ACCURACY), ("log loss", LOG_LOSS))):
        for size, bar in bars.items():
            mean = float(np.mean(found[size], axis=0)[place])
            told.append({"what": f"{name} after {size} labels", "found": mean, "asked": bar})
    calls = float(np.mean([one.calls for one in asked]))
    given_up = float(np.mean([one.full_accuracy - one.accuracy for one in asked]))
    told += [
        {"what": f"calls of {len(voters)}, one by one", "found": calls, "asked": -3.0},
        {"what": "accuracy given up by that", "found": given_up, "asked": -0.005},
    ]
    return told + many_answers(learner)


def many_answers(learner: str) -> list[Row]:
    """Processor seconds and memory of 100,000 rows of 10 voters with 100,000 distinct answers."""
    random, size = np.random.default_rng(0), 100_000
    labels = random.integers(0, size, size)
    right = random.random((size, 10)) < np.linspace(0.8, 0.3, 10)
    votes = np.where(right, labels[:, None], random.integers(0, size, (size, 10)))
    linmax.VoteFusion(learner, answers="open").fit(votes[:50], labels[:50])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    linmax.VoteFusion(learner, answers="open").fit(votes, labels)
    spent, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return [
        {"what": "100,000 rows with 100,000 answers: seconds", "found": spent, "asked": -30.0},
        {"what": "megabytes of the process, at most", "found": peak / 1e3, "asked": -500.0},
        {"what": "megabytes more than before", "found": (peak - before) / 1e3, "asked": None},
    ]


# -- probabilities and sets ---------------------------------------------------------------------------------------


def probabilities(learner: str, seeds: range) -> list[Row]:
    """Calibration error and log loss on the test part after so many labels; coverage and size of 90 % sets on-line.

    Coverage is the least and the largest over any 1,000 trials in a row after the first 500, in any shuffle.
    """
    votes, labels = read_mmlu()
    judged: dict[int, list[tuple[float, float]]] = {200: [], 1000: [], LEARNED: []}
    sets: dict[bool, list[tuple[float, float, float]]] = {False: [], True: []}
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(labels))
        learn, test = order[:LEARNED], order[LEARNED:]
        fusion, seen = linmax.VoteFusion(learner, classes=range(10), abstain=-1), 0
        for size, found in judged.items():
            fusion.partial_fit(votes[learn[seen:size]], labels[learn[seen:size]])
            told = fusion.report(votes[test], labels[test]).test_reliability
            found.append((told.calibration_error, told.log_loss))
            seen = size
        for changes, found in sets.items():
            given = reversed_half_way(votes[learn], labels[learn]) if changes else votes[learn]
            found.append(covered(learner, given, labels[learn]))
    rows = []
    for size, found in judged.items():
        error, loss = np.median(found, axis=0)
        asked = {200: -0.03, 1000: -0.02}.get(size)
        rows.append({"what": f"calibration error after {size:,d} labels", "found": error, "asked": asked})
        rows.append({"what": f"log loss after {size:,d} labels", "found": loss, "asked": None})
    for changes, found in sets.items():
        told = "voters reversed half-way" if changes else "no change"
        least, most, size = zip(*found, strict=True)
        rows.append({"what": f"90 % sets, {told}: least coverage of 1,000", "found": min(least), "asked": 0.88})
        rows.append({"what": f"90 % sets, {told}: largest coverage of 1,000", "found": max(most), "asked": -0.92})
        mean = statistics.median(size)
        rows.append({"what": f"90 % sets, {told}: mean size", "found": mean, "asked": None if changes else -3.8})
    return rows


def covered(learner: str, votes: np.ndarray, labels: np.ndarray) -> tuple[float, float, float]:
    """Least and largest coverage of 1,000 trials in a row, and mean size, of sets given before each label."""
    one = linmax.Learner(learner, classes=range(10))
    inside, sizes = [], []
    table = np.where(votes < 0, None, votes.astype(object)).tolist()
    for row, label in zip(table, labels.tolist(), strict=True):
        found = one.predict_set(votes=row, coverage=0.9)
        inside.append(label in found)
        sizes.append(len(found))
        one.learn(votes=row, label=label)
    shares = np.convolve(inside[500:], np.full(1000, 1e-3), "valid")
    return float(shares.min()), float(shares.max()), float(np.mean(sizes[500:]))


def reversed_half_way(votes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The same votes, but half-way the best voter's become the worst one's, and so on."""
    half, changed = len(labels) // 2, votes.copy()
    ranks = np.argsort((votes == labels[:, None]).mean(axis=0))
    swapped = np.empty_like(ranks)
    swapped[ranks] = ranks[::-1]
    changed[half:] = votes[half:, swapped]
    return changed


def read_mmlu() -> tuple[np.ndarray, np.ndarray]:
    """Votes and labels of MMLU-Pro as numbers; -1 abstains."""
    with (folder("fusion_mmlu_pro") / "votes.csv").open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    places = {letter: c for c, letter in enumerate("ABCDEFGHIJ")}
    votes = np.array([[places.get(vote, -1) for vote in row[4:-1]] for row in rows])
    return votes, np.array([places[row[-1]] for row in rows])


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


def show_bars(title: str, rows: list[Row]) -> None:
    """Print what was found and what was asked."""
    table = Table("", title=title, title_justify="left")
    for heading in ("found", "asked", ""):
        table.add_column(heading, justify="right")
    for row in rows:
        asked = row["asked"]
        if asked is None:
            table.add_row(row["what"], f"{row['found']:.4g}", "", "")
            continue
        most = math.copysign(1.0, asked) < 0.0
        met = row["found"] <= -asked if most else row["found"] >= asked
        bound = f"{'at most' if most else 'at least'} {abs(asked):g}"
        table.add_row(row["what"], f"{row['found']:.4g}", bound, "met" if met else "missed")
    Console().print(table)


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("mmlu", "trec", "unlabelled", "bars", "open", "probabilities"))
    parser.add_argument("--learner", default="auto")
    parser.add_argument("--shuffles", type=int, default=5, help="of mmlu (default: 5)")
    parser.add_argument("--orders", type=int, default=3, help="of trec (default: 3)")
    parser.add_argument("--seed", type=int, default=0, help="of the first run of unlabelled and bars (default: 0)")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = {}
    if arguments.only in (None, "mmlu"):
        found["mmlu"] = mmlu(arguments.learner, arguments.shuffles)
        show(f"29 language models on MMLU-Pro, median of {arguments.shuffles} shuffles", found["mmlu"])
    if arguments.only in (None, "trec"):
        found["trec"] = trec(arguments.learner, arguments.orders)
        show(f"68 rules and the words of TREC, mean of {arguments.orders} orders", found["trec"])
    seeds = range(arguments.seed, arguments.seed + arguments.shuffles)
    if arguments.only in (None, "unlabelled"):
        found["unlabelled"] = unlabelled(arguments.learner, seeds)
        show_bars(f"Rows without labels, median of {arguments.shuffles} runs", found["unlabelled"])
    if arguments.only in (None, "bars"):
        found["bars"] = bars(arguments.learner, seeds)
        show_bars(f"What is asked of the pool for votes, median of {arguments.shuffles} runs", found["bars"])
    if arguments.only in (None, "open"):
        found["open"] = open_answers(arguments.learner, seeds)
        show_bars(f"Open answers, mean of {arguments.shuffles} shuffles", found["open"])
    if arguments.only in (None, "probabilities"):
        found["probabilities"] = probabilities(arguments.learner, seeds)
        show_bars(f"Probabilities and sets on MMLU-Pro, {arguments.shuffles} shuffles", found["probabilities"])
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2, default=float) + "\n")


if __name__ == "__main__":
    main()
