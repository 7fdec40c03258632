"""Figures of predictions: error against the majority, precision and recall by class, log loss, AUC, calibration.

Everything is counted as it comes, in memory that grows with the classes and not with the rows. Counts add up: those of
the parts of a stream, joined, are those of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

__all__ = ["Evaluation", "balanced_weights"]

TABLE_CLASSES = 10
BINS = 10  # of the confidence
LEAST_RATED = 1e-12  # smallest probability that the log loss counts
STEPS, REACH = 800, 20.0  # bins of the AUC: per unit of log odds, and how far they reach


class Evaluation:
    """Figures of predictions with labels.

    Parameters
    ----------
    names : list of str
        Names of the classes by number; the list may grow while predictions are counted.

    See Also
    --------
    linmax.StreamModel : predicts rows of streams.

    Examples
    --------
    >>> found = Evaluation(["ham", "spam"])
    >>> found.add(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]))
    >>> found.rate(np.array([0, 0, 0, 1]), np.array([[0.9, 0.1], [0.6, 0.4], [0.4, 0.6], [0.3, 0.7]]))
    >>> round(found.error, 2), round(found.majority_error, 2), found.majority
    (0.25, 0.25, 'ham')
    >>> round(found.log_loss, 3), found.auc, found.of_class("ham")
    (0.472, 1.0, {'rows': 3, 'precision': 1.0, 'recall': 0.6666666666666666})
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.counts = np.zeros((3, 0), np.int64)  # rows with the label, with the prediction, and with both
        self.rated = 0  # rows with probabilities
        self._loss = 0.0
        self._bins = np.zeros((3, BINS))  # rows, sum of confidences, rows answered rightly
        self._odds: np.ndarray | None = (
            None  # int64 (2, bins): rows of either class by log odds; None without two classes
        )

    # -- counting -------------------------------------------------------------------------------------------------

    def add(self, labels: np.ndarray, predicted: np.ndarray) -> None:
        """Count predictions by the numbers of their classes; rows without a label (-1) are left out."""
        labels, predicted = labels[labels >= 0], predicted[labels >= 0]
        wide = max(int(labels.max(initial=-1)), int(predicted.max(initial=-1))) + 1
        if wide > self.counts.shape[1]:
            self.counts = np.pad(self.counts, ((0, 0), (0, wide - self.counts.shape[1])))
        for row, found in enumerate((labels, predicted[predicted >= 0], labels[labels == predicted])):
            self.counts[row] += np.bincount(found, minlength=self.counts.shape[1])

    def rate(self, labels: np.ndarray, probabilities: np.ndarray) -> None:
        """Count the probabilities of rows, by class in the order of their columns; a label beyond them has none."""
        known = labels >= 0
        labels, probabilities = labels[known], probabilities[known]
        rows, wide = probabilities.shape
        if not rows or not wide:
            return
        given = np.where(labels < wide, probabilities[np.arange(rows), np.minimum(labels, wide - 1)], 0.0)
        self._loss += float(-np.log(np.maximum(given, LEAST_RATED)).sum())
        self.rated += rows
        confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
        which = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
        for row, amounts in enumerate((None, confidence, right.astype(float))):
            self._bins[row] += np.bincount(which, amounts, BINS)
        if wide == 2:
            self._odds = np.zeros((2, int(2 * REACH * STEPS) + 1), np.int64) if self._odds is None else self._odds
            ratio = np.maximum(probabilities[:, 1], LEAST_RATED) / np.maximum(probabilities[:, 0], LEAST_RATED)
            places = ((np.clip(np.log(ratio), -REACH, REACH) + REACH) * STEPS).round().astype(np.int64)
            for label in range(2):
                self._odds[label] += np.bincount(places[labels == label], minlength=self._odds.shape[1])

    def join(self, other: Evaluation) -> None:
        """Count what another has counted, whose classes have the same numbers."""
        wide = max(self.counts.shape[1], other.counts.shape[1])
        self.counts, more = (np.pad(one.counts, ((0, 0), (0, wide - one.counts.shape[1]))) for one in (self, other))
        self.counts = self.counts + more
        self.rated, self._loss, self._bins = (
            self.rated + other.rated,
            self._loss + other._loss,
            self._bins + other._bins,
        )
        if other._odds is not None:
            self._odds = other._odds + (0 if self._odds is None else self._odds)

    # -- figures --------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """Number of rows with a label."""
        return int(self.counts[0].sum())

    @property
    def mistakes(self) -> int:
        """Number of wrong predictions."""
        return self.rows - int(self.counts[2].sum())

    @property
    def error(self) -> float | None:
        """Share of wrong predictions."""
        return self.mistakes / self.rows if self.rows else None

    @property
    def majority(self) -> str | None:
        """The most frequent class."""
        return self.names[int(self.counts[0].argmax())] if self.rows else None

    @property
    def majority_error(self) -> float | None:
        """Error of always predicting the most frequent class."""
        return 1.0 - int(self.counts[0].max()) / self.rows if self.rows else None

    @property
    def balanced_accuracy(self) -> float | None:
        """Mean recall of the classes that are labels."""
        seen = self.counts[0] > 0
        return float((self.counts[2][seen] / self.counts[0][seen]).mean()) if seen.any() else None

    @property
    def log_loss(self) -> float | None:
        """Mean negative logarithm of the label's probability, in nats."""
        return self._loss / self.rated if self.rated else None

    @property
    def auc(self) -> float | None:
        """Area under the ROC curve of two classes: how often the right one of a pair is ranked higher, ties half."""
        if self._odds is None or not self._odds.sum(axis=1).all():
            return None
        negative, positive = self._odds
        below = np.cumsum(negative) - negative
        return float((positive * (below + negative / 2)).sum() / negative.sum() / positive.sum())

    @property
    def calibration_error(self) -> float | None:
        """Mean difference between stated confidence and accuracy, in ten bins of confidence."""
        return float(np.abs(self._bins[1] - self._bins[2]).sum() / self.rated) if self.rated else None

    def of_class(self, name: str) -> dict[str, int | float | None]:
        """Rows, precision and recall of a class; None where there are no rows to count."""
        label, predicted, both = self.counts[:, list(self.names).index(name)].tolist()
        return {
            "rows": label,
            "precision": both / predicted if predicted else None,
            "recall": both / label if label else None,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        names = ("rows", "mistakes", "error", "majority", "majority_error", "balanced_accuracy")
        figures = {name: getattr(self, name) for name in names}
        figures |= {"rated": self.rated, "log_loss": self.log_loss, "auc": self.auc}
        figures["calibration_error"] = self.calibration_error
        seen = np.flatnonzero(self.counts[:2].any(axis=0)).tolist()
        return figures | {"classes": {self.names[place]: self.of_class(self.names[place]) for place in seen}}

    def __str__(self) -> str:
        return "\n".join([*self.summary(), *self.table()])

    def summary(self) -> list[str]:
        """Return the figures about all classes as text."""
        found = []
        if self.majority_error is not None:
            found.append(f"always predicting {self.majority!r} has error {self.majority_error:.4f}")
        if self.log_loss is not None:
            auc = "" if self.auc is None else f", AUC {self.auc:.4f}"
            found.append(
                f"log loss {self.log_loss:.4f}{auc}, calibration error {100 * (self.calibration_error or 0):.1f} %"
            )
        return found

    def table(self) -> list[str]:
        """Return precision and recall by class as lines of text, the most frequent classes first."""
        order = np.argsort(-self.counts[0], kind="stable")[: self.counts[:2].any(axis=0).sum()]
        shown = [str(self.names[place]) for place in order[:TABLE_CLASSES].tolist()]
        wide = min(30, max(map(len, [*shown, "class"])))
        lines = [f"{'class':<{wide}}  {'rows':>9}  precision  recall"]
        for name in shown:
            figures = self.of_class(name)
            shares = [
                "      -" if one is None else f"{100.0 * one:5.1f} %"
                for one in (figures["precision"], figures["recall"])
            ]
            lines.append(f"{name[:wide]:<{wide}}  {figures['rows']:>9,}    {shares[0]}  {shares[1]}")
        more = len(order) - len(shown)
        return lines + ([f"and {more:,} more classes, in --json"] if more else [])

    # -- state ----------------------------------------------------------------------------------------------------

    def state(self) -> list[list[int]]:
        """Return the counts of predictions as plain data."""
        return [list(map(int, row)) for row in self.counts.tolist()]

    @classmethod
    def from_state(cls, names: Sequence[str], state: Sequence[Sequence[int]]) -> Self:
        """Return the metrics with these counts."""
        made = cls(names)
        made.counts = np.array(state, np.int64).reshape(3, -1)
        return made


def balanced_weights(codes: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return the weight n / (k n_c) of each row from the labels up to it, after rows counted ``before`` by class.

    n rows had k classes so far, n_c of them the label of this row; a row without a label weighs 1.

    Examples
    --------
    >>> balanced_weights(np.array([0, 0, 0, 1, -1]), np.zeros(0, np.int64)).round(2).tolist()
    [1.0, 1.0, 1.0, 2.0, 1.0]
    """
    weights, rows = np.ones(len(codes)), np.flatnonzero(codes >= 0)
    labels = codes[rows]
    counts = np.pad(before, (0, max(0, int(labels.max(initial=-1)) + 1 - len(before))))
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], labels)
    rank = np.empty(len(labels), np.int64)
    rank[order] = np.arange(len(labels))
    own = counts[labels] + rank - starts + 1
    classes = np.count_nonzero(counts) + np.cumsum(own == 1)
    weights[rows] = (counts.sum() + 1 + np.arange(len(labels))) / (classes * own)
    return weights
