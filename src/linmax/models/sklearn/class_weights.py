"""A rater over base models that has a weight for each model, each class rated and each class predicted.

It is a ridge multinomial logit over what the models say, fitted in one go: what stacking is. Where models are good at
some classes and take others for each other it knows more than one weight a model can say, and where they are not, or
samples are few, less. So it is one more rater, whose ratings the fusion learns from are of samples that it was not
fitted on.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

__all__ = ["ClassWeights", "cross_fitted", "from_arrays", "rate", "shares", "to_arrays"]

SAMPLE_PARTS = 3  # of the samples, each of which is rated by a logit that was fitted on the others
FEWEST_FITTED = 30  # samples for which it is fitted
OPTIMISER_STEPS = 300  # of the optimiser, at most

ClassWeights = dict[str, np.ndarray]  # plain data, which every way of keeping models takes


def fit_class_weights(said: np.ndarray, y: np.ndarray, weights: np.ndarray | None, classes: np.ndarray) -> ClassWeights:
    """The logit over ratings (samples, models, classes)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is near enough by then
        model = LogisticRegression(max_iter=OPTIMISER_STEPS).fit(said.reshape(len(said), -1), y, sample_weight=weights)
    coefficients, intercept = model.coef_, model.intercept_
    if len(model.classes_) == 2:
        coefficients = np.vstack([np.zeros_like(coefficients), coefficients])
        intercept = np.append(0.0, intercept)
    return {"coefficients": coefficients, "intercept": intercept, "classes": model.classes_, "rated": classes}


def rate(found: ClassWeights, said: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Probabilities of all classes; of those that it was not fitted on, 0."""
    then = said[:, :, np.searchsorted(classes, found["rated"])]  # further classes may have come since
    scores = then.reshape(len(said), -1) @ found["coefficients"].T + found["intercept"]
    table = np.zeros((len(said), len(classes)))
    table[:, np.searchsorted(classes, found["classes"])] = softmax(scores, axis=1)
    return table


def cross_fitted(
    said: np.ndarray, y: np.ndarray, weights: np.ndarray | None, classes: np.ndarray
) -> tuple[ClassWeights, np.ndarray] | None:
    """The logit of all samples, and ratings of each by one that was not fitted on it; None where samples are few."""
    if len(y) < FEWEST_FITTED or len(np.unique(y)) < 2:
        return None
    mixed = np.random.RandomState(0).permutation(len(y))
    part = np.empty(len(y), np.int64)
    part[mixed[np.argsort(y[mixed], kind="stable")]] = (
        np.arange(len(y)) % SAMPLE_PARTS
    )  # of each class as much to every part
    table = np.zeros((len(y), len(classes)))
    for number in range(SAMPLE_PARTS):
        learned, held = np.flatnonzero(part != number), np.flatnonzero(part == number)
        if len(np.unique(y[learned])) < 2:
            return None
        found = fit_class_weights(said[learned], y[learned], None if weights is None else weights[learned], classes)
        table[held] = rate(found, said[held], classes)
    return fit_class_weights(said, y, weights, classes), table


def shares(found: ClassWeights, models: int) -> np.ndarray:
    """How much of it is about each model: the magnitudes of its weights, centred over the classes predicted."""
    centred = found["coefficients"] - found["coefficients"].mean(axis=0)
    sizes: Any = np.abs(centred).reshape(len(centred), models, -1).sum(axis=(0, 2))
    return np.asarray(sizes / (sizes.sum() or 1.0))


def to_arrays(found: ClassWeights | None, classes: np.ndarray) -> dict[str, np.ndarray]:
    """For a file: numbers alone, classes by their places."""
    if found is None:
        return {}
    places = {name: np.searchsorted(classes, found[name]).astype(np.int64) for name in ("classes", "rated")}
    return found | places


def from_arrays(arrays: dict[str, np.ndarray], classes: np.ndarray) -> ClassWeights | None:
    """What `to_arrays` wrote."""
    return arrays | {name: classes[arrays[name]] for name in ("classes", "rated")} if arrays else None
