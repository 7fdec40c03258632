"""The estimators for scikit-learn at their defaults beside scikit-learn's own: error, log loss, time of `fit`.

    LINMAX_DATA=... python benchmarks/estimators.py                          # all, some minutes
    LINMAX_DATA=... python benchmarks/estimators.py --only iris,letter --folds 3
    LINMAX_DATA=... python benchmarks/estimators.py --part fusion
    LINMAX_DATA=... python benchmarks/estimators.py --json now.json --rivals before.json
    LINMAX_DATA=... python benchmarks/estimators.py --part fusion --keep /tmp/models

classifier: `LinearMaxClassifier` against LogisticRegression on standardised attributes (tf-idf of words) and
HistGradientBoostingClassifier, and the geometric means of the ratios. fusion: `FusionClassifier` against
StackingClassifier and soft voting, over the same four models, which are fitted once for all three, so that no times are
shown; ``--keep`` is a folder for what these models said, for the next run. All by 5-fold cross-validation; of the
larger sets 5,000 rows are drawn. With ``--rivals`` what the rivals did is taken from an earlier run. Nothing is tuned.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from real_data import STREAMS, NoData
from rich.console import Console
from rich.table import Table
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import linmax

ROWS = 5000
SMALL = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
LARGE = ("pendigits", "satimage", "shuttle", "letter", "20news")
Figures = dict[str, float]  # error, its standard error, log loss, seconds of fit


class Remembered(ClassifierMixin, BaseEstimator):
    """A model that is fitted only for answers that no model like it, fitted on the same samples, has given before."""

    def __init__(self, model: Any, memory: joblib.Memory) -> None:
        self.model, self.memory = model, memory

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: np.ndarray) -> Remembered:
        """Keep the samples until the model is needed."""
        self.samples_, self.classes_ = (X, y), np.unique(y)
        self.key_ = joblib.hash((repr(self.model), content(X), np.asarray(y, np.int64)))
        return self

    def _answer(self, key: str, X: Any) -> np.ndarray:
        if not hasattr(self, "fitted_"):
            self.fitted_ = clone(self.model).fit(*self.samples_)
        return np.asarray(self.fitted_.predict_proba(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """As the model does."""
        key = joblib.hash((self.key_, content(X)))
        return np.asarray(self.memory.cache(Remembered._answer, ignore=["self", "X"], verbose=0)(self, key, X))

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def content(rows: Any) -> tuple[Any, ...]:
    """What identifies rows, dense or sparse."""
    return (rows.data, rows.indices, rows.indptr) if sparse.issparse(rows) else (np.ascontiguousarray(rows),)


def problem(name: str) -> tuple[Any, np.ndarray]:
    """Rows and labels, at most ROWS of them, drawn at random."""
    if name in SMALL:
        rows, labels = SMALL[name](return_X_y=True)
    else:
        stream = STREAMS[name]()
        rows, labels = stream.rows, stream.labels
    order = np.random.default_rng(0).permutation(len(labels))[:ROWS]
    return rows[order], np.unique(labels[order], return_inverse=True)[1]


def judged(model: Any, rows: Any, labels: np.ndarray, folds: int) -> Figures:
    """Error over the folds, log loss, and the time of a fit: of all processors, so that other work does not count."""
    wrong, losses, seconds = np.zeros(len(labels)), [], []
    classes = np.unique(labels)
    for learn, test in StratifiedKFold(folds, shuffle=True, random_state=1).split(np.zeros(len(labels)), labels):
        fold = clone(model)
        start = time.process_time()
        fold.fit(rows[learn], labels[learn])
        seconds.append(time.process_time() - start)
        given = fold.predict_proba(rows[test])
        wrong[test] = fold.predict(rows[test]) != labels[test]
        shares = np.zeros((len(test), len(classes)))
        shares[:, np.searchsorted(classes, fold.classes_)] = given
        shares = np.clip(shares, 1e-15, None)
        losses.append(log_loss(labels[test], shares / shares.sum(axis=1, keepdims=True), labels=classes) * len(test))
    error = float(wrong.mean())
    return {
        "error": max(error, 0.5 / len(labels)),  # so that ratios are finite
        "standard error": float(np.sqrt(error * (1 - error) / len(labels))),
        "log loss": sum(losses) / len(labels),
        "fit": float(np.median(seconds)),
    }


def logistic(rows: Any) -> Any:
    """LogisticRegression on attributes of a size that suits it."""
    return make_pipeline(
        TfidfTransformer() if sparse.issparse(rows) else StandardScaler(), LogisticRegression(max_iter=1000)
    )


def classifiers(rows: Any, memory: joblib.Memory) -> dict[str, Any]:  # noqa: ARG001
    """What is compared."""
    found = {"linmax": linmax.LinearMaxClassifier(), "logistic": logistic(rows)}
    return found if sparse.issparse(rows) else found | {"boosting": HistGradientBoostingClassifier(random_state=0)}


def fusions(rows: Any, memory: joblib.Memory) -> dict[str, Any]:
    """A fusion, stacking and voting, over the same models."""
    words = sparse.issparse(rows)
    near = KNeighborsClassifier(metric="cosine") if words else KNeighborsClassifier()
    found = {
        "logistic": logistic(rows),
        "bayes": MultinomialNB() if words else make_pipeline(StandardScaler(), GaussianNB(var_smoothing=1e-3)),
        "neighbours": make_pipeline(TfidfTransformer() if words else StandardScaler(), near),
        "tree": DecisionTreeClassifier(random_state=0),
    }
    models = [(name, Remembered(model, memory)) for name, model in found.items()]
    return {
        "linmax": linmax.FusionClassifier(models),
        "stacking": StackingClassifier(models, LogisticRegression(max_iter=1000)),
        "voting": VotingClassifier(models, voting="soft"),
    }


def mean_ratio(found: dict[str, dict[str, Figures]], rival: str, what: str) -> float:
    """The geometric mean of linmax's figures over the rival's, on the sets that it has."""
    both = [figures for figures in found.values() if rival in figures]
    return float(np.exp(np.mean([np.log(figures["linmax"][what] / figures[rival][what]) for figures in both])))


def show(part: str, found: dict[str, dict[str, Figures]], console: Console) -> None:
    """A row for each set, and the means."""
    names = list(dict.fromkeys(name for figures in found.values() for name in figures))
    shown = ("error", "log loss") if part == "fusion" else ("error", "log loss", "fit")
    table = Table("", *(f"{name}\n{what}" for what in shown for name in names), title=part)
    for data, figures in found.items():
        cells = [f"{figures[name][what]:.4f}" if name in figures else "" for what in shown for name in names]
        table.add_row(data, *cells)
    console.print(table)
    for rival in names[1:]:
        ratios = "  ".join(f"{what} {mean_ratio(found, rival, what):.3f}" for what in shown)
        console.print(f"linmax / {rival}, geometric mean: {ratios}")
    if part == "fusion":
        for data, figures in found.items():
            worse = max(figures["stacking"]["error"], figures["voting"]["error"])
            if figures["linmax"]["error"] > worse + figures["linmax"]["standard error"]:
                console.print(f"{data}: behind both by more than a standard error")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["classifier", "fusion"], help="one of the two parts")
    parser.add_argument("--only", default=",".join([*SMALL, *LARGE]), help="sets, with commas between them")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--rivals", type=Path, help="figures of the rivals, from an earlier --json")
    parser.add_argument("--keep", type=Path, help="folder for what the models said that are fused")
    parser.add_argument("--json", type=Path, help="write all figures here")
    options = parser.parse_args()
    console, warmed = Console(width=150), load_iris(return_X_y=True)
    linmax.LinearMaxClassifier().fit(*warmed).predict_proba(warmed[0])  # compiled code is made ready
    known = json.loads(options.rivals.read_text()) if options.rivals else {}
    found: dict[str, dict[str, dict[str, Figures]]] = {}
    warnings.simplefilter("ignore", ConvergenceWarning)
    for told in "The least populated class", "Number of classes in training fold":
        warnings.filterwarnings("ignore", told)  # shuttle has classes of few samples
    memory = joblib.Memory(options.keep or tempfile.mkdtemp(prefix="linmax-estimators-"), verbose=0)
    for part, made in ("classifier", classifiers), ("fusion", fusions):
        if options.part not in (None, part):
            continue
        found[part] = {}
        for name in options.only.split(","):
            try:
                rows, labels = problem(name)
            except NoData as error:
                console.print(f"{name}: left out; {error}")
                continue
            rivals = known.get(part, {}).get(name, {})
            found[part][name] = {
                model: judged(estimator, rows, labels, options.folds)
                if model == "linmax" or model not in rivals
                else rivals[model]
                for model, estimator in made(rows, memory).items()
            }
            if options.json:
                options.json.write_text(json.dumps(found, indent=1))
        show(part, found[part], console)


if __name__ == "__main__":
    main()
