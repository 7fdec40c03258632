"""The pool for votes on many tables of votes and scores, with few and many labels, against its rivals.

    LINMAX_DATA=... python benchmarks/vote_tables.py                        # all, some minutes
    LINMAX_DATA=... python benchmarks/vote_tables.py --tables digits,music --shuffles 2
    LINMAX_DATA=... python benchmarks/vote_tables.py --part tuned           # those that constants may be chosen on
    LINMAX_DATA=... python benchmarks/vote_tables.py --part proved          # the others
    LINMAX_DATA=... python benchmarks/vote_tables.py --details              # every table, not the bars alone

Tables of votes are those under LINMAX_DATA: language models on MMLU-Pro, rules for TREC's questions, four crowds.
Tables of votes and probabilities are made here: twelve small models of scikit-learn, of several kinds, each fitted to
some rows and columns of a data set, rate the rows that none of them has seen; their votes are their most probable
classes.

Each shuffle divides a table into rows to learn and rows to test. All methods see the same rows, and differences are
paired over the shuffles: `2 se` is twice the standard error of their mean. A bar is met on a table if the mean
difference is on its side, or, where it says "by 2 se", not beyond it by more than that.

Soft voting answers by the mean of the probabilities, plurality breaks ties by chance (its expected accuracy), the
smoothed share of votes gives class c the probability (v_c + 1/k) / (n + 1). One-hot is LogisticRegression on a column
for each voter and class, C = 1; the best voter so far is the one most often right on the labels learned.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table as Printed
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import linmax
from linmax.models.calibration import reliability

SIZES = (1, 5, 10, 30, 100, 300, 1000)  # labels after which all methods are measured
SCORED = (10, 30, 100, 300)  # those at which probabilities must be worth more than votes
MOST_LEARNED, MOST_TESTED = 1000, 1500  # rows of a shuffle
MODELS = 12  # voters made for each data set
MODEL_ROWS, COLUMNS = 400, 0.5  # rows that each of them is fitted to, and its share of the columns
CALIBRATED = 1000  # labels after which the probabilities on MMLU-Pro are measured
LONG = (1, 10, 30, 100, 300, 1000, 3000, 8000)
ACCURACIES = (0.614, 0.654, 0.688, 0.702, 0.713, 0.719, 0.729, 0.734)  # asked of MMLU-Pro at these
Draws = dict[str, list[float]]  # of each figure, one for each shuffle


def folder(name: str) -> Path:
    """Return the folder of a data set."""
    path = Path(os.environ.get("LINMAX_DATA", ".")) / name
    if not path.is_dir():
        raise SystemExit(f"no folder {path}; set LINMAX_DATA to the folder that holds {name}")
    return path


# -- tables -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VoteTable:
    """Votes by class number (-1 abstains), labels, and probabilities (rows, voters, classes) if there are any."""

    name: str
    votes: np.ndarray
    labels: np.ndarray
    classes: int
    scores: np.ndarray | None = None

    def __getitem__(self, rows: np.ndarray) -> VoteTable:
        scores = None if self.scores is None else self.scores[rows]
        return VoteTable(self.name, self.votes[rows], self.labels[rows], self.classes, scores)


def mmlu_pro() -> VoteTable:
    """Return the answers of 29 language models to MMLU-Pro."""
    with (folder("fusion_mmlu_pro") / "votes.csv").open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    places = {letter: c for c, letter in enumerate("ABCDEFGHIJ")}
    votes = np.array([[places.get(vote, -1) for vote in row[4:-1]] for row in rows])
    return VoteTable("mmlu_pro", votes, np.array([places[row[-1]] for row in rows]), 10)


def trec_rules() -> VoteTable:
    """Return the votes of 68 rules, most of which abstain."""
    lines = (folder("fusion_weaksup_trec") / "train.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    votes = np.full((len(rows), 68), -1)
    for t, row in enumerate(rows):
        for rule, vote in row["votes"].items():
            votes[t, int(rule)] = vote
    labels = np.array([row["label"] for row in rows])
    return VoteTable("trec_rules", votes, labels, int(labels.max()) + 1)


def crowd(name: str) -> VoteTable:
    """Return the votes of crowd workers, most of whom abstain."""
    read: list[list[list[str]]] = []
    for file_name in ("truth.csv", "label.csv"):
        with (folder("fusion_crowd") / name / file_name).open(newline="", encoding="utf-8") as file:
            read.append(list(csv.reader(file))[1:])
    truth, given = read
    items = {item: t for t, (item, _) in enumerate(truth)}
    workers = {worker: i for i, worker in enumerate(dict.fromkeys(worker for _, worker, _ in given))}
    classes = {c: place for place, c in enumerate(sorted({c for *_, c in [*truth, *given]}))}
    votes = np.full((len(items), len(workers)), -1)
    for item, worker, vote in given:
        if item in items:
            votes[items[item], workers[worker]] = classes[vote]
    return VoteTable(name, votes, np.array([classes[label] for _, label in truth]), len(classes))


def dense(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels of a data set of PMLB."""
    with gzip.open(folder("pmlb") / f"{name}.tsv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t"))[1:]
    return np.array([row[:-1] for row in rows], float), np.array([row[-1] for row in rows])


def texts(path: str, coarse: bool = False) -> tuple[sparse.csr_array, np.ndarray]:
    """Return weights of words and labels; of a label A:b only the A if ``coarse``."""
    with gzip.open(folder(path.split("/")[0]) / path.split("/")[1], "rt", encoding="utf-8", errors="replace") as file:
        rows = [line.rstrip("\n").partition("\t") for line in file]
    labels = [label.partition(":")[0] if coarse else label for label, _, _ in rows]
    return sparse.csr_array(TfidfVectorizer(min_df=3).fit_transform(text for *_, text in rows)), np.array(labels)


def unbalanced() -> tuple[np.ndarray, np.ndarray]:
    """Return satimage's rows, with a tenth of the rows of every second class."""
    rows, labels = dense("satimage")
    places = np.unique(labels, return_inverse=True)[1]
    kept = (places % 2 == 0) | (np.random.default_rng(0).random(len(labels)) < 0.1)
    return rows[kept], labels[kept]


DATA: dict[str, Callable[[], tuple[np.ndarray | sparse.csr_array, np.ndarray]]] = {
    "digits": lambda: load_digits(return_X_y=True),
    "pendigits": lambda: dense("pendigits"),
    "letter": lambda: dense("letter"),
    "satimage": lambda: dense("satimage"),
    "shuttle": lambda: dense("shuttle"),
    "unbalanced": unbalanced,
    "sms": lambda: texts("text_sms_spam/all.tsv.gz"),
    "questions": lambda: texts("text_trec_qc/train.tsv.gz", coarse=True),
    "newsgroups": lambda: texts("text_20newsgroups/train.tsv.gz"),
    "agnews": lambda: texts("text_agnews_24k/train.tsv.gz"),
}
READ: dict[str, Callable[[], VoteTable]] = {
    "mmlu_pro": mmlu_pro,
    "trec_rules": trec_rules,
    **{name: lambda name=name: crowd(name) for name in ("dog", "web", "music", "zencrowd")},
}
TUNED = ("mmlu_pro", "dog", "music", "digits", "letter", "unbalanced", "sms", "agnews")
PROVED = ("trec_rules", "web", "zencrowd", "pendigits", "satimage", "shuttle", "questions", "newsgroups")


def voters_of(name: str) -> VoteTable:
    """Return the votes and probabilities of small models on the rows of a data set that none was fitted to."""
    rows, names = DATA[name]()
    words = sparse.issparse(rows)
    classes, labels = np.unique(names, return_inverse=True)
    random = np.random.default_rng(int(hashlib.sha256(name.encode()).hexdigest()[:8], 16))
    order = random.permutation(len(labels))
    seen = min(len(labels) // 3, 3 * MODEL_ROWS)
    fit, rest = order[:seen], order[seen : seen + MOST_LEARNED + MOST_TESTED]
    if not words:
        rows = StandardScaler().fit(rows[fit]).transform(rows)
    kinds = (
        [lambda: LogisticRegression(max_iter=200), lambda: MultinomialNB(alpha=0.1)]
        if words
        else [
            lambda: LogisticRegression(max_iter=200),
            GaussianNB,
            lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1),
            lambda: KNeighborsClassifier(3),
        ]
    )
    kinds += [
        lambda: DecisionTreeClassifier(min_samples_leaf=3, random_state=0),
        lambda: ExtraTreesClassifier(20, random_state=0),
    ]
    scores = np.zeros((len(rest), MODELS, len(classes)))
    for i in range(MODELS):
        size = max(1, round(rows.shape[1] * random.uniform(0.3, 1.0) * (1.0 if words else COLUMNS)))
        columns, own = random.permutation(rows.shape[1])[:size], random.permutation(seen)[:MODEL_ROWS]
        model = kinds[i % len(kinds)]()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(rows[fit[own]][:, columns], labels[fit[own]])
            scores[:, i, model.classes_] = model.predict_proba(rows[rest][:, columns])
    return VoteTable(name, scores.argmax(axis=2), labels[rest], len(classes), scores)


def table_of(name: str) -> VoteTable:
    """Return a table; those made here are stored in a temporary folder."""
    if name in READ:
        return READ[name]()
    path = Path(tempfile.gettempdir()) / "linmax_vote_tables" / f"{name}.npz"
    if not path.is_file():
        made = voters_of(name)
        path.parent.mkdir(exist_ok=True)
        np.savez_compressed(path, votes=made.votes, labels=made.labels, classes=made.classes, scores=made.scores)
    with np.load(path) as stored:
        return VoteTable(name, stored["votes"], stored["labels"], int(stored["classes"]), stored["scores"])


# -- methods ------------------------------------------------------------------------------------------------------


def fair_plurality(table: VoteTable) -> float:
    """Return the expected accuracy of plurality with ties broken by chance; one of all classes where nobody votes."""
    counts = (table.votes[:, :, None] == np.arange(table.classes)).sum(axis=1)
    most = counts == counts.max(axis=1, keepdims=True)
    return float(np.mean(most[np.arange(len(counts)), table.labels] / most.sum(axis=1)))


def share_loss(table: VoteTable) -> float:
    """Return the log loss of the smoothed share of votes."""
    counts = (table.votes[:, :, None] == np.arange(table.classes)).sum(axis=1)
    shares = (counts + 1.0 / table.classes) / (counts.sum(axis=1, keepdims=True) + 1.0)
    return float(-np.log(shares[np.arange(len(counts)), table.labels]).mean())


def one_hot(learn: VoteTable, test: VoteTable) -> float:
    """Return the accuracy of logistic regression on a column for each voter and class."""
    encoder = OneHotEncoder(handle_unknown="ignore").fit(learn.votes)
    if len(np.unique(learn.labels)) == 1:
        return float(np.mean(test.labels == learn.labels[0]))
    with warnings.catch_warnings():  # those of 300 steps are as accurate
        warnings.simplefilter("ignore")
        model = LogisticRegression(max_iter=300).fit(encoder.transform(learn.votes), learn.labels)
    return float(np.mean(model.predict(encoder.transform(test.votes)) == test.labels))


def best_voter(learn: VoteTable, test: VoteTable) -> float:
    """Return the accuracy of the voter most often right so far."""
    best = int((learn.votes == learn.labels[:, None]).sum(axis=0).argmax())
    return float(np.mean(test.votes[:, best] == test.labels))


def measured(fusion: linmax.VoteFusion, given: np.ndarray, test: VoteTable) -> tuple[float, float, float]:
    """Return accuracy, log loss and calibration error."""
    table = fusion.predict_proba(given)
    judged = reliability(table, test.labels)
    return float(np.mean(fusion.predict(given) == test.labels)), judged.log_loss, judged.calibration_error


def fused(learn: VoteTable, test: VoteTable, sizes: Iterable[int], scored: bool, draws: Draws, learner: str) -> None:
    """Measure the fusion of votes, or of scores, after each number of labels."""
    fusion, seen = linmax.VoteFusion(learner, classes=range(learn.classes), abstain=-1), 0
    what = "scores" if scored else "votes"
    for size in sizes:
        part = slice(seen, size)
        given = learn.scores if scored else learn.votes
        tested = test.scores if scored else test.votes
        assert given is not None
        assert tested is not None
        fusion.partial_fit(given[part], learn.labels[part])
        found, seen = measured(fusion, tested, test), size
        for figure, value in zip(("accuracy", "loss", "error"), found, strict=True):
            draws.setdefault(f"{what} {figure} {size}", []).append(value)


def shuffle(table: VoteTable, seed: int, learner: str, draws: Draws) -> None:
    """Measure all methods on one division of a table."""
    order = np.random.default_rng(seed).permutation(len(table.labels))
    half = min(MOST_LEARNED, len(order) // 2)
    learn, test = table[order[:half]], table[order[half : half + MOST_TESTED]]
    sizes = [size for size in SIZES if size <= half]
    fused(learn, test, sizes, False, draws, learner)
    figures = {"plurality": fair_plurality(test), "share loss": share_loss(test)}
    if table.scores is not None and test.scores is not None:
        fused(learn, test, sizes, True, draws, learner)
        figures["soft voting"] = float(np.mean(test.scores.mean(axis=1).argmax(axis=1) == test.labels))
    for size in sizes:
        first = learn[np.arange(size)]
        if size >= 100:
            figures[f"one-hot {size}"] = one_hot(first, test)
        if size in (30, 100):
            figures[f"best voter {size}"] = best_voter(first, test)
    # transduction: workers are paid for the rows that are to be labelled, and nobody has labels
    fusion = linmax.VoteFusion(learner, classes=range(table.classes), abstain=-1)
    rows = table[order[:4000]]
    fusion.partial_fit(rows.votes)
    figures["unlabelled"] = float(np.mean(fusion.predict(rows.votes) == rows.labels))
    figures["plurality of these"] = fair_plurality(rows)
    fusion.partial_fit(learn.votes[:10], learn.labels[:10])
    figures["unlabelled and 10"] = float(np.mean(fusion.predict(test.votes) == test.labels))
    for name, value in figures.items():
        draws.setdefault(name, []).append(value)


# -- bars ---------------------------------------------------------------------------------------------------------


@dataclass
class Bar:
    """A requirement: differences by table, each (mean, standard error), that must be at least ``least``."""

    name: str
    least: float
    share: float = 1.0  # of the tables that must meet it
    errors: float = 0.0  # standard errors by which it may be missed
    found: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, table: str, draws: Draws, ours: str, theirs: str, sign: float = 1.0) -> None:
        """Add the differences of two figures on a table, if it has both."""
        if ours in draws and theirs in draws:
            gaps = sign * (np.array(draws[ours]) - np.array(draws[theirs]))
            self.found[table] = float(gaps.mean()), float(gaps.std(ddof=min(1, len(gaps) - 1)) / np.sqrt(len(gaps)))

    def misses(self) -> list[str]:
        """Return the tables that miss it, the worst first."""
        worst = sorted(self.found.items(), key=lambda item: item[1][0])
        return [name for name, (mean, error) in worst if mean + self.errors * error < self.least]

    @property
    def met(self) -> bool:
        """True if enough tables meet it."""
        return len(self.misses()) <= (1.0 - self.share) * len(self.found) + 1e-9


def bars_of(tables: Mapping[str, Draws]) -> list[Bar]:
    """Return the requirements with what was found on these tables."""
    bars = []

    def bar(name: str, least: float, ours: str, theirs: str, *, share: float = 1.0, errors: float = 0.0) -> None:
        bars.append(Bar(name, least, share, errors))
        for table, draws in tables.items():
            bars[-1].add(table, draws, ours, theirs, -1.0 if "loss" in ours else 1.0)

    for size in SCORED:
        bar(f"scores less top choices, {size} labels", -0.002, f"scores accuracy {size}", f"votes accuracy {size}")
    for size in SCORED:
        bar(f"scores less soft voting, {size} labels", 0.0, f"scores accuracy {size}", "soft voting")
    for size in (1, 5, 10, 30):
        bar(f"log loss below share of votes, {size} labels", 0.0, f"votes loss {size}", "share loss", share=0.8)
    bar("no label, less plurality", -0.005, "unlabelled", "plurality of these")
    bar("rows without labels and 10 with one, less plurality", -0.005, "unlabelled and 10", "plurality")
    for size in (100, 300, 1000):
        bar(f"less one-hot, {size} labels, by 2 se", 0.0, f"votes accuracy {size}", f"one-hot {size}", errors=2.0)
    for size in (30, 100):
        bar(f"less best voter, {size} labels, by 2 se", 0.0, f"votes accuracy {size}", f"best voter {size}", errors=2.0)
    return [bar for bar in bars if bar.found]


def show(bars: list[Bar]) -> None:
    """Print each bar, on how many tables it is met, the median table and the worst ones."""
    printed = Printed("", title="Tables of votes and scores", title_justify="left")
    for heading in ("bar", "tables", "met on", "median", "", "missed on (worst first)"):
        printed.add_column(heading, justify="left" if "missed" in heading else "right")
    for bar in bars:
        missed = bar.misses()
        worst = ", ".join(f"{name} {bar.found[name][0]:+.4f} ({bar.found[name][1]:.4f})" for name in missed[:4])
        median = f"{np.median([mean for mean, _ in bar.found.values()]):+.4f}"
        counts = f"{len(bar.found)}", f"{len(bar.found) - len(missed)}"
        printed.add_row(bar.name, f"{bar.least:+g}", *counts, median, "met" if bar.met else "missed", worst)
    Console(width=190).print(printed)


def show_details(tables: Mapping[str, Draws]) -> None:
    """Print the means of all figures of each table."""
    for name, draws in tables.items():
        print(name)
        for figure, values in draws.items():
            print(f"  {figure:28} {np.mean(values):8.4f}")


# -- MMLU-Pro and costs -------------------------------------------------------------------------------------------


def long_run(learner: str, seeds: range) -> None:
    """Print accuracy on held-out questions of MMLU-Pro after up to 8,000 labels, and how honest probabilities are."""
    table, found, errors, unlabelled = mmlu_pro(), [], [], []
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(table.labels))
        learn, test, draws = table[order[:8000]], table[order[8000:]], Draws()
        fused(learn, test, LONG, False, draws, learner)
        found.append([draws[f"votes accuracy {size}"][0] for size in LONG])
        errors.append(draws[f"votes error {CALIBRATED}"][0])
        fusion = linmax.VoteFusion(learner, classes=range(10), abstain=-1).partial_fit(learn.votes)
        unlabelled.append(float(np.mean(fusion.predict(test.votes) == test.labels)))
    for size, accuracy, asked in zip(LONG, np.median(found, axis=0), ACCURACIES, strict=True):
        print(f"MMLU-Pro, {size:5,d} labels: {accuracy:.4f} (at least {asked - 0.002:.3f})")
    print(f"MMLU-Pro, without labels: {np.median(unlabelled):.4f} (at least .645)")
    print(f"calibration error at {CALIBRATED:,d}: {np.median(errors):.4f} (at most .02); shuffles {seeds}")


def costs(learner: str) -> None:
    """Print the processor time of a trial of 29 votes, and of 10,000 rows of 20 voters."""
    table, random = mmlu_pro(), np.random.default_rng(0)
    labels = random.integers(0, 5, 10_000)
    wrong = random.random((10_000, 20)) < np.linspace(0.2, 0.6, 20)
    votes = np.where(wrong, random.integers(0, 5, wrong.shape), labels[:, None])
    cases = (("29 votes, us a trial (at most 75)", table.votes[:8000], table.labels[:8000], 1e6 / 8000, 10),)
    cases += (("10,000 rows of 20 voters, s (at most .4)", votes, labels, 1.0, 5),)
    for name, rows, right, unit, k in cases:
        instances = linmax.instances(votes=rows, abstain=-1, classes=range(k))
        linmax.run(learner, instances[:50], right[:50])
        start = time.process_time()
        linmax.run(learner, instances, right)
        print(f"{name}: {unit * (time.process_time() - start):.3g}")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("tuned", "proved", "mmlu", "costs"))
    parser.add_argument("--tables", help="names, separated by commas")
    parser.add_argument("--learner", default="auto")
    parser.add_argument("--shuffles", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0, help="of the first shuffle (default: 0)")
    parser.add_argument("--details", action="store_true")
    parser.add_argument("--json", type=Path, help="write the figures of each table")
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.shuffles)
    names = {"tuned": TUNED, "proved": PROVED}.get(arguments.part, (*TUNED, *PROVED))
    names = tuple(arguments.tables.split(",")) if arguments.tables else names
    if arguments.part not in ("mmlu", "costs"):
        tables: dict[str, Draws] = {}
        for name in names:
            table, tables[name] = table_of(name), {}
            for seed in seeds:
                shuffle(table, seed, arguments.learner, tables[name])
        if arguments.details:
            show_details(tables)
        show(bars_of(tables))
        if arguments.json:
            arguments.json.write_text(json.dumps(tables) + "\n")
    if not arguments.tables and arguments.part in (None, "mmlu"):
        long_run(arguments.learner, seeds)
    if not arguments.tables and arguments.part in (None, "costs"):
        costs(arguments.learner)


if __name__ == "__main__":
    main()
