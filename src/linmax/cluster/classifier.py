"""A classifier for Dask collections: it fits on the workers, and predicts lazily."""

from __future__ import annotations

import uuid
from contextlib import suppress
from threading import Lock
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from linmax.cluster.mixing import fit
from linmax.cluster.partitions import is_collection, label_of, lazily, type_of_labels
from linmax.cluster.shards import State
from linmax.models.streams import StreamModel, stream

__all__ = ["DaskClassifier"]


class DaskClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for Dask DataFrames, arrays and bags of lines, which may be larger than memory.

    It learns from the partitions on the workers of the current client, as `linmax.cluster.fit` does, or in this process
    if there is none. Predictions of a collection are a collection: nothing is computed before it is asked for.

    Parameters
    ----------
    learner, passes, mix, scale, thresholds, hash_bits, reading, checkpoint
        As in `linmax.cluster.fit`; without ``y``, ``reading={"label": "class"}`` names the column of the labels.

    Attributes
    ----------
    classes_ : array
        The classes, in the order of the columns of `predict_proba`.
    model_ : linmax.streams.StreamModel
        The model, which can be saved.
    result_ : linmax.cluster.Fit
        What happened in each pass.

    See Also
    --------
    linmax.cluster.fit : the function under it.

    Examples
    --------
    >>> import pandas as pd
    >>> import dask.dataframe as dd
    >>> import linmax
    >>> rows = pd.DataFrame({"x": [1.0, -1.0, 2.0, -2.0] * 10, "class": ["p", "q", "p", "q"] * 10})
    >>> rows = dd.from_pandas(rows, npartitions=2)
    >>> model = linmax.cluster.DaskClassifier("perceptron", passes=2).fit(rows[["x"]], rows["class"])
    >>> model.predict(rows[["x"]]).compute().tolist()[:3]
    ['p', 'q', 'p']
    """

    def __init__(
        self,
        learner: Any = "auto",
        *,
        passes: int = 1,
        mix: str = "uniform",
        scale: str = "auto",
        thresholds: bool = True,
        hash_bits: int | None = None,
        reading: dict[str, Any] | None = None,
        checkpoint: str | None = None,
    ) -> None:
        self.learner, self.passes, self.mix, self.scale = learner, passes, mix, scale
        self.thresholds, self.hash_bits, self.reading, self.checkpoint = thresholds, hash_bits, reading, checkpoint

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from all partitions.

        Parameters
        ----------
        X
            A Dask DataFrame or array, a bag of lines, or whatever else `linmax.cluster.fit` takes as shards.
        y
            The labels, as a Dask Series or array with the same partitions; without it they are in X.

        Returns
        -------
        DaskClassifier
            Itself.
        """
        data = X if y is None else (X, y)
        self.result_ = fit(
            self.learner, data, client=_current_client(), passes=self.passes, mix=self.mix, scale=self.scale,
            thresholds=self.thresholds, hash_bits=self.hash_bits, reading=self.reading, checkpoint=self.checkpoint,
        )  # fmt: skip
        self.model_ = self.result_.model
        label = (self.reading or {}).get("label") if label_of(data) is None else label_of(data)
        self._type = type_of_labels(data, label)
        self.classes_ = self._named(np.array(self.model_.classes, dtype=object))
        self._told = uuid.uuid4().hex, self.model_.state()
        return self

    def predict(self, X: Any) -> Any:
        """The class of each row: of a collection a collection, else an array.

        Parameters
        ----------
        X
            Rows without labels, or with labels that are not looked at.

        Returns
        -------
        Dask Series, array or bag, or array
            Classes.
        """
        check_is_fitted(self, "model_")
        return self._asked(X, predicted, self.classes_[:0])

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class for each row: of a collection a collection, else an array.

        Parameters
        ----------
        X
            Rows without labels, or with labels that are not looked at.

        Returns
        -------
        Dask DataFrame, array or bag, or array
            One column for each of `classes_`.
        """
        check_is_fitted(self, "model_")
        return self._asked(X, probabilities, np.zeros((0, len(self.classes_))))

    def _asked(self, X: Any, function: Any, empty: np.ndarray) -> Any:
        told = (*self._told, self._type)
        return lazily(X, function, told, empty) if is_collection(X) else _plain(function(told, X))

    def _named(self, names: np.ndarray) -> np.ndarray:
        return names if self._type is None else names.astype(float).astype(self._type)


def _current_client() -> Any:
    """The client of this process, if it has one."""
    with suppress(ImportError, ValueError):
        from distributed import default_client

        return default_client()
    return None


def _plain(found: Any) -> np.ndarray:
    return np.asarray(found)


Told = tuple[str, State, np.dtype | None]  # a name for the model, its state, and the type of the labels
_opened: dict[str, StreamModel] = {}  # at most one model, which the last task of this process has asked
_lock = Lock()


def _model(told: Told) -> StreamModel:
    """The model, which a process makes once for all partitions."""
    name, state, _ = told
    with _lock:
        if name not in _opened:
            _opened.clear()
            _opened[name] = StreamModel.from_state(*state)
        return _opened[name]


def predicted(told: Told, part: Any) -> Any:
    """The classes of a partition."""
    model, kind, found = _model(told), told[2], [np.zeros(0, object)]
    with _lock:  # a model numbers names while it reads
        found += [model.predict(batch) for batch in _batches(model, part)]
    names = np.concatenate(found)
    return _like(part, names if kind is None else names.astype(float).astype(kind))


def probabilities(told: Told, part: Any) -> Any:
    """The probabilities of a partition."""
    model = _model(told)
    with _lock:
        found = [model.predict_proba(batch) for batch in _batches(model, part)]
    return _like(part, np.concatenate([np.zeros((0, len(model.classes))), *found]))


def _batches(model: StreamModel, part: Any) -> Any:
    rows = (part, [None] * part.shape[0]) if _is_matrix(part) else part
    return stream(rows, model=model, grow=False, prefetch=False)


def _is_matrix(part: Any) -> bool:
    return isinstance(part, np.ndarray) or hasattr(part, "tocsr")


def _like(part: Any, found: np.ndarray) -> Any:
    """As a Series or a DataFrame with the index of a partition that has one."""
    if not hasattr(part, "index") or not hasattr(part, "columns"):
        return found
    import pandas as pd

    return pd.Series(found, index=part.index) if found.ndim == 1 else pd.DataFrame(found, index=part.index)
