"""`linmax.LinearMaxClassifier` and `linmax.FusionClassifier`, as scikit-learn knows them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

import linmax
from golden import learners, streams
from golden.record import by_name, case, digest, plain, sample

FACES = ["classifier", "fusion-classifier"]


def told(model: Any, table: Any) -> dict[str, Any]:
    """What a model learned and what it says."""
    found: dict[str, Any] = {
        "classes": plain(model.classes_),
        "mistakes": int(model.mistakes_),
        "predicted": digest(model.predict(table).tolist()),
        "decisions": sample(model.decision_function(table)),
        "probabilities": sample(model.predict_proba(table)),
    }
    for name in ("coef_", "intercept_"):
        if hasattr(model, name):
            found[name] = sample(getattr(model, name))
    if hasattr(model, "weights_"):
        found["weights_"] = by_name(model.weights_)
    return found


def given(kind: str) -> tuple[Any, np.ndarray]:
    if kind == "sparse":
        rows, labels = streams.counts()
        return streams.csr(rows), np.array(labels)
    table, labels = streams.dense()
    if kind == "two":
        return 5.0 * table, np.array([int(label == "oak") for label in labels])
    return 5.0 + 5.0 * table, np.array(labels)


def fitted(text: str, kind: str, **options: Any) -> dict[str, Any]:
    table, labels = given(kind)
    model = linmax.LinearMaxClassifier(text, random_state=3, **options).fit(table, labels)
    return {"passes": model.n_iter_, **told(model, table)}


def in_cuts(text: str, kind: str) -> dict[str, Any]:
    """`partial_fit` in cuts, saved and loaded between two of them."""
    table, labels = given(kind)
    model = linmax.LinearMaxClassifier(text)
    for begin, end in ((0, 50), (50, 51), (51, 120), (120, 160)):
        model.partial_fit(table[begin:end], labels[begin:end])
        if end == 51:
            with tempfile.TemporaryDirectory() as folder:
                model.save(Path(folder) / "model")
                model = linmax.LinearMaxClassifier.load(Path(folder) / "model")
    return told(model, table)


def weighted(text: str) -> dict[str, Any]:
    """Sample weights, and classes declared at the start."""
    table, labels = given("dense")
    weights = np.floor(8.0 * streams.chance(31, len(labels))) / 4.0
    fit = linmax.LinearMaxClassifier(text, max_iter=2, scale="standard").fit(table, labels, sample_weight=weights)
    cut = linmax.LinearMaxClassifier(text).partial_fit(table[:80], labels[:80], classes=["ash", "elm", "fir", "oak"])
    cut.partial_fit(table[80:], labels[80:], sample_weight=weights[80:])
    return {"fit": told(fit, table), "cuts": told(cut, table)}


for text in learners.SOME:
    case("classifier", f"dense-{text}", fitted, text, "dense")
    case("classifier", f"sparse-{text}", fitted, text, "sparse")
    case("classifier", f"cuts-dense-{text}", in_cuts, text, "dense")
    if text != "softmax":
        case("classifier", f"cuts-sparse-{text}", in_cuts, text, "sparse")
for text in learners.FEW:
    case("classifier", f"two-{text}", fitted, text, "two")
    case("classifier", f"weighted-{text}", weighted, text)


class Nearest(ClassifierMixin, BaseEstimator):
    """The class whose mean is nearest in some columns: a base model that is the same with every scikit-learn."""

    def __init__(self, columns: tuple[int, ...] = (0, 1)) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any) -> Self:
        self.classes_ = np.unique(y)
        self.sums_, self.counts_ = np.zeros((len(self.classes_), len(self.columns))), np.zeros(len(self.classes_))
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        if not hasattr(self, "classes_"):
            self.classes_ = np.unique(y if classes is None else classes)
            self.sums_, self.counts_ = np.zeros((len(self.classes_), len(self.columns))), np.zeros(len(self.classes_))
        for row, label in zip(np.asarray(X), y, strict=True):
            place = int(np.flatnonzero(self.classes_ == label)[0])
            self.sums_[place] += row[list(self.columns)]
            self.counts_[place] += 1.0
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[self._near(X).argmax(axis=1)]

    def _near(self, X: Any) -> np.ndarray:
        means = self.sums_ / np.maximum(self.counts_, 1.0)[:, None]
        parts = np.asarray(X)[:, list(self.columns)]
        return -np.abs(parts[:, None, :] - means[None]).sum(axis=2)


class Rating(Nearest):
    """The same with decision values."""

    def decision_function(self, X: Any) -> np.ndarray:
        return self._near(X)


class Sharing(Nearest):
    """The same with probabilities."""

    def predict_proba(self, X: Any) -> np.ndarray:
        near = self._near(X)
        shares = 1.0 / (1.0 - near)
        return shares / shares.sum(axis=1, keepdims=True)


def models() -> list[tuple[str, Any]]:
    return [("votes", Nearest((0, 1, 2))), ("rates", Rating((2, 3, 4))), ("shares", Sharing((4, 5, 6, 7)))]


def fused(text: str, how: str) -> dict[str, Any]:
    table, labels = streams.dense()
    y = np.array(labels)
    model = linmax.FusionClassifier(models(), text, passthrough=how == "passthrough", random_state=5)
    if how == "cuts":
        for begin, end in ((0, 60), (60, 100), (100, 160)):
            model.partial_fit(table[begin:end], y[begin:end], classes=streams.CLASSES if not begin else None)
    else:
        model.fit(table, y)
    return {**told(model, table), "transformed": sample(model.transform(table).astype(float))}


FUSERS = [text for text in learners.SOME if text not in ("naive-bayes", "attributes")]
for how in ("fit", "cuts", "passthrough"):
    for text in FUSERS:
        case("fusion-classifier", f"{how}-{text}", fused, text, how)
