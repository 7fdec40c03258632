"""What base models are asked for and taught: their answers as ratings and votes, and how they go on learning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing

from linmax.models.sklearn.shared import OnLineClassifier

METHODS = ("predict_proba", "decision_function", "predict")
Said = tuple[np.ndarray, Any]  # classes, and what a model says of them


def asked(models: Sequence[Any], methods: Sequence[str], X: Any) -> list[Said]:
    """What each model says of the samples, and of which classes."""
    return [(model.classes_, getattr(model, method)(X)) for model, method in zip(models, methods, strict=True)]


def rated(names: np.ndarray, said: Any, classes: np.ndarray, method: str) -> np.ndarray:
    """Ratings in [0, 1] of all classes, from what a model says of those that it knows.

    Examples
    --------
    >>> import numpy as np
    >>> rated(np.array(["a", "c"]), np.array([-3.0, 2.0]), np.array(["a", "b", "c"]), "decision_function")
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    table = np.zeros((len(said), len(classes)))
    if method == "predict":
        table[np.arange(len(said)), np.searchsorted(classes, said)] = 1.0
        return table
    values = np.asarray(said, dtype=np.float64)
    if values.ndim == 1:  # one number for two classes
        values = np.column_stack([-values, values])
    if values.shape[1] != len(names):
        raise ValueError(
            f"{method} gives {values.shape[1]} columns for {len(names)} classes; one for each class is needed, or "
            "stack_method='predict'"
        )
    if method == "decision_function":
        values = between(values)
    table[:, np.searchsorted(classes, names)] = values
    return table


def between(values: np.ndarray) -> np.ndarray:
    """Each row shifted and stretched to [0, 1]; scikit-learn marks a class that a fold lacks by the least float."""
    told = values > np.finfo(np.float64).min
    low = np.where(told, values, np.inf).min(axis=1, keepdims=True, initial=np.inf)
    high = np.where(told, values, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    width = np.where(high > low, high - low, 1.0)
    return np.where(told, (np.where(told, values, low) - low) / width, 0.0)


def goes_on(model: Any) -> bool:
    """Whether a model can learn more; one in a ``FrozenEstimator`` is not to."""
    return hasattr(model, "partial_fit") and not isinstance(model, FrozenEstimator)


def teach(model: Any, X: Any, y: np.ndarray, weights: np.ndarray | None, classes: np.ndarray | None = None) -> None:
    """Let one model go on learning; samples of a class that it cannot take in are left out."""
    options: dict[str, Any] = {} if classes is None else {"classes": classes}
    if classes is None and not isinstance(model, OnLineClassifier):
        kept = np.flatnonzero(np.isin(y, model.classes_))
        X, y, weights = _safe_indexing(X, kept), y[kept], None if weights is None else weights[kept]
    if weights is not None:
        options["sample_weight"] = weights
    if len(y):
        model.partial_fit(X, y, **options)


def refuse_unweighted(models: Sequence[tuple[str, Any]], method: str) -> None:
    """sample_weight is for all models or for none."""
    for name, model in models:
        if "sample_weight" not in signature(getattr(model, method)).parameters:
            raise ValueError(f"sample_weight: the {method} of {name!r} takes none; leave it out, or drop that model")


def doubling(begin: int, size: int) -> Iterator[np.ndarray]:
    """All samples at once; or, when the first ``begin`` are spent, stretches as long as all before them."""
    while begin < size:
        end = min(2 * begin, size) if begin else size
        yield np.arange(begin, end)
        begin = end


def fitted_like(model: Any, X: Any, y: np.ndarray, options: dict[str, Any]) -> Any:
    """A model like this one, fitted."""
    return clone(model).fit(X, y, **options)
