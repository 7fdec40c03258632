"""A classifier for Dask collections: it fits on the workers, and predicts lazily."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from linmax.cluster.collections import (
    Collection,
    Part,
    added_columns,
    as_read,
    is_collection,
    is_joint,
    joined,
    lazily,
    type_of_labels,
)
from linmax.cluster.fit import fit
from linmax.models.fusion import VoteFusion
from linmax.models.streams import Stream, StreamModel, stream
from linmax.techniques.technique import LearnerLike
from linmax.util.aliases import Labels, Matrix

if TYPE_CHECKING:
    import pandas
    from distributed import Client
from linmax.util.files import State

__all__ = ["DaskClassifier"]


class DaskClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for Dask DataFrames, arrays and bags of lines, which may be larger than memory.

    It learns from the partitions on the workers of the current client, as `linmax.cluster.fit` does, or in this process
    if there is none. Predictions of a collection are a collection: nothing is computed before it is asked for.

    Parameters
    ----------
    learner, passes, mix, scale, thresholds, hash_bits, reading, checkpoint, resume
        As in `linmax.cluster.fit`; without ``y``, ``reading={"label": "class"}`` names the column of the labels.

    Attributes
    ----------
    classes_ : array
        The classes, sorted, in the order of the columns of `predict_proba`.
    feature_names_in_ : array
        The columns of X, if it was a frame.
    n_features_in_ : int
        How many columns X had, if it was a frame or an array.
    model_ : linmax.StreamModel
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
        learner: LearnerLike | StreamModel = "auto",
        *,
        passes: int = 1,
        mix: str = "uniform",
        scale: str = "auto",
        thresholds: bool = True,
        hash_bits: int | None = None,
        reading: dict[str, object] | None = None,
        checkpoint: str | None = None,
        resume: bool = False,
    ) -> None:
        self.learner, self.passes, self.mix, self.scale = learner, passes, mix, scale
        self.thresholds, self.hash_bits, self.reading, self.checkpoint = thresholds, hash_bits, reading, checkpoint
        self.resume = resume

    def fit(
        self, X: Collection | Matrix, y: Collection | Labels | None = None, sample_weight: Collection | None = None
    ) -> Self:
        """Learn from all partitions.

        Parameters
        ----------
        X
            A Dask DataFrame or array, a bag of lines or records, or whatever else `linmax.cluster.fit` takes as shards.
        y
            The labels, as a Dask Series or array with the same partitions; without it they are in X.
        sample_weight
            How much each row counts, in partitions like those of y.

        Returns
        -------
        DaskClassifier
            Itself.
        """
        if isinstance(self.learner, VoteFusion):
            raise TypeError("learner is a fusion of votes; linmax.cluster.fit learns it from tables of votes")
        if y is None and sample_weight is not None:
            raise ValueError("sample_weight needs y; without it name the column of weights: reading={'weight': ...}")
        rows = (X,) if y is None else (X, y) if sample_weight is None else (X, y, sample_weight)
        given = X if y is None else rows
        reading, data = {**(self.reading or {}), **added_columns(given)}, given
        if y is not None and not is_joint(given):
            data = [joined(*rows, columns=list(added_columns(given).values()))]
        self.result_ = fit(
            self.learner, data, client=_current_client(), passes=self.passes, mix=self.mix, scale=self.scale,
            thresholds=self.thresholds, hash_bits=self.hash_bits, reading=reading, checkpoint=self.checkpoint,
            resume=self.resume,
        )  # fmt: skip
        self.model_ = self.result_.model
        self._describe(X, reading)
        self._type = type_of_labels(given, cast("str | None", reading.get("label")))
        named = in_type(np.array(self.model_.classes, dtype=object), self._type)
        order = np.argsort(named)
        self.classes_ = named[order]
        self._fitted_model = FittedModel(uuid.uuid4().hex, self.model_.state(), self._type, order.tolist())
        return self

    def _describe(self, X: Collection | Matrix, reading: Mapping[str, object]) -> None:
        """Say which attributes X had, where they are its columns, as scikit-learn's estimators do."""
        for name in ("feature_names_in_", "n_features_in_"):
            self.__dict__.pop(name, None)
        if hasattr(X, "columns"):
            others = (reading.get("label"), reading.get("weight"))
            names = [name for name in X.columns if name not in others]
            if all(isinstance(name, str) for name in names):
                self.feature_names_in_ = np.array(names, dtype=object)
            self.n_features_in_ = len(names)
        elif len(shape := tuple(getattr(X, "shape", ()))) == 2:
            self.n_features_in_ = int(shape[1])

    def predict(self, X: Collection | Matrix) -> Collection | np.ndarray:
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

    def score(self, X: Collection | Matrix, y: Collection | Labels, sample_weight: Collection | None = None) -> float:
        """The share of rows whose class is predicted.

        Parameters
        ----------
        X, y
            Rows and their classes.
        sample_weight
            How much each row counts.

        Returns
        -------
        float
            The accuracy, computed.
        """
        import dask

        found, labels, weights = dask.compute(self.predict(X), y, sample_weight)
        return float(accuracy_score(np.ravel(labels), np.asarray(found), sample_weight=weights))

    def predict_proba(self, X: Collection | Matrix) -> Collection | np.ndarray:
        """The probability of each class for each row: of a collection a collection, else an array.

        Parameters
        ----------
        X
            Rows without labels, or with labels that are not looked at.

        Returns
        -------
        Dask DataFrame, array or bag, or array
            One column for each of `classes_`; those of a DataFrame are called like the classes.
        """
        check_is_fitted(self, "model_")
        return self._asked(X, probabilities, np.zeros((0, len(self.classes_))))

    def _asked(
        self, X: Collection | Matrix, function: Callable[[Part, FittedModel], Part], empty: np.ndarray
    ) -> Collection | np.ndarray:
        if not is_collection(X):
            return np.asarray(function(X, self._fitted_model))
        frame = hasattr(X, "columns")
        return lazily(X, function, self._fitted_model, _with_index(None, empty, self.classes_) if frame else empty)


def _current_client() -> Client | None:
    """The client of this process, if it has one."""
    with suppress(ImportError, ValueError):
        from distributed import default_client

        return default_client()
    return None


class FittedModel(NamedTuple):
    """Model with all that a worker needs to predict."""

    name: str
    state: State
    kind: np.dtype | None  # of the labels
    order: list[int]  # of the model's classes, when they are sorted


_opened: dict[str, StreamModel] = {}  # at most one model, which the last task of this process has asked
_lock = Lock()


def _model(fitted: FittedModel) -> StreamModel:
    """The model, which a process makes once for all partitions."""
    with _lock:
        if fitted.name not in _opened:
            _opened.clear()
            _opened[fitted.name] = StreamModel.from_state(*fitted.state)
        return _opened[fitted.name]


def in_type(names: np.ndarray, kind: np.dtype | None) -> np.ndarray:
    """Names of classes as the labels were.

    Examples
    --------
    >>> in_type(np.array(["True", "0"], dtype=object), np.dtype(bool)), in_type(np.array(["2"]), np.dtype(int))
    (array([ True, False]), array([2]))
    >>> in_type(np.array(["9007199254740993"]), np.dtype(int)).tolist()  # too large for floats to distinguish
    [9007199254740993]
    """
    if kind is None:
        return names
    if kind.kind == "b":
        return np.array([name in ("True", "1") for name in names.tolist()], dtype=bool)
    if kind.kind == "f":
        return names.astype(kind)
    return np.array([int(float(name)) if "." in name else int(name) for name in names.tolist()], dtype=kind)


def predicted(part: Part, fitted: FittedModel) -> Part:
    """The classes of a partition."""
    return _with_index(part, in_type(_answers(part, fitted, StreamModel.predict), fitted.kind), None)


def probabilities(part: Part, fitted: FittedModel) -> Part:
    """The probabilities of a partition."""
    shares = _answers(part, fitted, StreamModel.predict_proba)[:, fitted.order]
    classes = in_type(np.array(_model(fitted).classes, dtype=object), fitted.kind)[fitted.order]
    return _with_index(part, shares, classes)


def _answers(part: Part, fitted: FittedModel, ask: Callable[..., np.ndarray]) -> np.ndarray:
    """Ask for each row of a partition, which must have one answer."""
    model = _model(fitted)
    nothing = np.zeros(0, object) if ask is StreamModel.predict else np.zeros((0, len(model.classes)))
    with _lock:  # a model numbers names while it reads
        answers = np.concatenate([nothing, *(ask(model, batch) for batch in _batches(model, part))])
    rows = part.shape[0] if hasattr(part, "shape") else len(part) if isinstance(part, (list, tuple)) else len(answers)
    if rows != len(answers):
        raise ValueError(f"{rows:,} lines are {len(answers):,} rows; leave out empty lines, and give one row in each")
    return answers


def _batches(model: StreamModel, part: Part) -> Stream:
    if isinstance(part, (list, tuple)) and part and isinstance(part[0], (list, tuple, np.ndarray)):
        part = np.asarray(part)
    matrix = isinstance(part, np.ndarray) or hasattr(part, "tocsr")
    rows = (part, [None] * cast(np.ndarray, part).shape[0]) if matrix else as_read(part)
    return stream(rows, model=model, grow=False, prefetch=False, strict=True)


def _with_index(
    part: Part | None, found: np.ndarray, classes: np.ndarray | None
) -> pandas.Series | pandas.DataFrame | np.ndarray:
    """As a Series, or as a DataFrame with a column for each class, with the index of a partition that has one."""
    if part is not None and not (hasattr(part, "index") and hasattr(part, "columns")):
        return found
    import pandas as pd

    index = None if part is None else part.index
    if found.ndim == 1:
        return pd.Series(found, index=index, dtype="str" if found.dtype == object else found.dtype)
    return pd.DataFrame(found, index=index, columns=[str(name) for name in classes] if classes is not None else None)
