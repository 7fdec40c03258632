"""What base models are asked for and taught: their answers as ratings and votes, and how they go on learning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if

from linmax.models.sklearn.shared import OnLineClassifier

METHODS = ("predict_proba", "decision_function", "predict")
Folds = list[tuple[np.ndarray, np.ndarray]]  # samples that are learned, and those that are held out


class FoldModels(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """One model fitted on all samples, and others like it that lack a fold each; they answer together.

    The mean of what several say varies less than what one says, and what each of the others says of its own fold is
    what the fusion learned from. Whatever else is asked of it is answered by the one fitted on all samples.
    """

    def __init__(self, whole: Any, others: Sequence[Any]) -> None:
        self.whole = whole
        self.others = others

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "whole" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.whole, name)

    @property
    def models(self) -> list[Any]:
        """All of them."""
        return [self.whole, *self.others]

    @property
    def classes_(self) -> np.ndarray:
        """Those of the model that was fitted on all samples."""
        return np.asarray(self.whole.classes_)

    def together(self, X: Any, method: str) -> np.ndarray:
        """The mean of their ratings in [0, 1], or of their votes."""
        classes = self.classes_
        tables = [rated(model.classes_, getattr(model, method)(X), classes, method) for model in self.models]
        return np.asarray(np.mean(tables, axis=0))

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @available_if(lambda self: hasattr(self.whole, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """The mean of their probabilities."""
        return self.together(X, "predict_proba")

    def predict(self, X: Any) -> np.ndarray:
        """The class that they find likeliest, or vote for most."""
        method = "predict_proba" if hasattr(self.whole, "predict_proba") else "predict"
        return self.classes_[self.together(X, method).argmax(axis=1)]


def ratings(models: Sequence[Any], methods: Sequence[str], X: Any, classes: np.ndarray) -> list[Any]:
    """What each model says of the samples: ratings of all classes, (samples, classes), or votes."""
    found = []
    for model, method in zip(models, methods, strict=True):
        if isinstance(model, FoldModels) and method != "predict":
            found.append(placed(model.classes_, model.together(X, method), classes))
        elif method == "predict":
            found.append(np.asarray(model.predict(X)))
        else:
            found.append(rated(model.classes_, getattr(model, method)(X), classes, method))
    return found


def placed(names: np.ndarray, table: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Ratings of some classes among those of all; others have 0."""
    wide = np.zeros((len(table), len(classes)))
    wide[:, np.searchsorted(classes, names)] = table
    return wide


def out_of_fold(
    model: Any, method: str, data: tuple[Any, np.ndarray, dict[str, Any]], folds: Folds, verbose: int
) -> tuple[Any, Any]:
    """What models like this one say of samples that they were not fitted on; and they, with one fitted on all."""
    X, y, options = data
    classes, others = np.unique(y), []
    said = np.empty(len(y), y.dtype) if method == "predict" else np.zeros((len(y), len(classes)))
    for number, (learned, held) in enumerate(folds):
        if verbose:
            print(f"fold {number + 1} of {len(folds)}: {type(model).__name__}")
        own = {name: _part(value, learned, len(y)) for name, value in options.items()}
        other = clone(model).fit(_safe_indexing(X, learned), y[learned], **own)
        said[held] = ratings([other], [method], _safe_indexing(X, held), classes)[0]
        others.append(other)
    return said, FoldModels(clone(model).fit(X, y, **options), others)


def _part(value: Any, rows: np.ndarray, size: int) -> Any:
    """A parameter of `fit` for some of the samples, if it has an item for each."""
    by_sample = hasattr(value, "__len__") and not isinstance(value, (str, dict)) and len(value) == size
    return _safe_indexing(value, rows) if by_sample else value


def checked_folds(splits: Any, y: np.ndarray) -> Folds:
    """The splits, which must hold out each sample once."""
    folds = [(np.asarray(learned), np.asarray(held)) for learned, held in splits]
    held = np.sort(np.concatenate([part for _, part in folds])) if folds else np.zeros(0)
    if not np.array_equal(held, np.arange(len(y))):
        raise ValueError("cv must hold out every sample exactly once, as KFold does; this one does not")
    for number, (learned, _) in enumerate(folds):
        lacking = np.setdiff1d(y, y[learned])
        if len(lacking):
            told = f"fold {number + 1} of cv holds out all samples of class {lacking.tolist()[0]!r}"
            warnings.warn(f"{told}: models fitted without it rate that class 0; try fewer folds", RuntimeWarning, 4)
    return folds


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
    one = model.whole if isinstance(model, FoldModels) else model
    return hasattr(one, "partial_fit") and not isinstance(one, FrozenEstimator)


def teach(model: Any, X: Any, y: np.ndarray, weights: np.ndarray | None, classes: np.ndarray | None = None) -> None:
    """Let one model go on learning; samples of a class that it cannot take in are left out."""
    if isinstance(model, FoldModels):
        for one in model.models:
            teach(one, X, y, weights, classes)
        return
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
