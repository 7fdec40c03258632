"""What the estimators share: classes, calibrated shares, sample weights, files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import wraps
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from linmax.core.contract import KNOWN, Instances
from linmax.data.experts import Experts
from linmax.data.labels import no_label, refuse_wide
from linmax.data.scaling import Scaling
from linmax.engine.engine import Engine, Settings
from linmax.engine.notation import as_learner
from linmax.learners.base import scales_attributes
from linmax.models.experts_model import ExpertsModel
from linmax.models.sklearn.nested import PREFIX, parameters_of, with_parameters
from linmax.models.weights import WeightArrays
from linmax.models.wrong import run_with_wrong
from linmax.util import files
from linmax.util.checks import refuse_masked
from linmax.util.names import apart

DEFAULT_LEARNER = "auto"


def scale_for(learner: Any, scale: str | None) -> str:
    """How attributes are scaled where the user does not say: by the pools themselves, or by their maxima."""
    if scale is not None:
        return scale
    return "none" if scales_attributes(as_learner(learner)) else "max"


def one_vector(engine: Engine) -> np.ndarray | None:
    """The weights over all coordinates, where the learner predicts with one vector of them."""
    if not engine.top.linear:
        return None
    try:
        return engine.top.hypothesis(engine)[0]
    except ValueError:
        return None


def unit_scores(engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Predictions, and the scores of weights of 2-norm 1, so that scores given at different times can be compared.

    A learner without one weight vector gives its scores as they are: votes, shares, or sums of such unit scores. A
    class whose first label is still to come has -inf.
    """
    weights = one_vector(engine)
    if weights is None:
        predictions, table = engine.judge(instances, size)
    else:
        predictions, table = engine.rate(instances, size, weights)
        norm = float(np.linalg.norm(weights))
        table = table / norm if norm > 0.0 else table
    table[:, int(engine.state.shape[KNOWN]) :] = -np.inf
    return predictions, table


def all_or_nothing(method: Callable[..., Any]) -> Callable[..., Any]:
    """Leave an estimator as it was if learning fails: what it holds is replaced, or changed by checked trials only."""

    @wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = vars(self).copy()
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded


class OnLineClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A model that learns trial by trial, with its scores and their probabilities in scikit-learn's terms."""

    learner: Any

    _model: ExpertsModel
    _scaling: Scaling
    _sparse: bool
    _declared: bool
    _follows = False  # whether the coverage of prediction sets is kept
    classes_: np.ndarray

    def _start(self, instances: Experts, classes: np.ndarray, *, declared: bool, discover: bool) -> None:
        """A learner that has seen nothing."""
        # Classes that are discovered join at their first labels, so that calls may be cut anywhere.
        met = [] if discover and not instances.layout.raters else classes.tolist()
        self._model = ExpertsModel(self.learner, instances.layout, met, Settings(discover=discover))
        if self._follows:
            self._model.follow()
        self.classes_, self._declared = classes, declared

    def _classes_for(self, y: np.ndarray, classes: Any, wrong: np.ndarray | None = None) -> np.ndarray:
        """All classes when these labels have been seen; ``wrong`` are classes that others are known not to be of."""
        met = np.unique(y)
        if not hasattr(self, "_model"):
            if classes is None:
                if not len(met):
                    raise ValueError("sample_weight leaves out every sample, so that no class is known; pass classes=")
                return met
            known, fixed = np.unique(classes), True
        else:
            known, fixed = self.classes_, self._declared
        given = known if classes is None else np.asarray(classes)
        for names in (met, given) if wrong is None else (met, given, wrong):
            if len(names) and (names.dtype.kind in "OUS") != (known.dtype.kind in "OUS"):
                raise ValueError(f"y: {names.tolist()[0]!r} is of another kind than the classes {known[:10].tolist()}")
        extra = given[~np.isin(given, known)]
        if len(extra):
            raise ValueError(f"classes: {extra[0]!r} was not there at the first call; leave it to its first label")
        new = met[~np.isin(met, known)]
        if fixed and len(new):
            raise ValueError(
                f"y: {new[0]!r} is not among the classes {known[:10].tolist()} of the first call; leave classes= out "
                "there to let classes appear"
            )
        return np.union1d(known, new) if len(new) else known

    @property
    def mistakes_(self) -> int:
        """Mistakes so far, each made before the label was seen; those of later passes count as well."""
        return self._model.mistakes

    def _learn(
        self, instances: Experts, labels: np.ndarray, first_pass: bool = True, weights: np.ndarray | None = None
    ) -> bool:
        """Play the trials; returns whether anything was learned."""
        trace = self._model.run(instances, labels, grow=True, first_pass=first_pass, weights=weights)
        return bool(trace.changed.any())

    def _learn_told(self, instances: Experts, labels: np.ndarray, denied: np.ndarray, weights: np.ndarray) -> None:
        """Play trials of which some say only that the label is not the one given."""
        if denied.any():
            self._model = deepcopy(self._model)  # as it was, should a trial be refused
            run_with_wrong(self._model, instances, labels, denied, weights)
        else:
            self._learn(instances, labels, weights=weights)

    def _judge(self, instances: Experts) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores in the model's classes."""
        return self._model.judge(self._model.fitted(instances), len(instances))

    def _shown(self, name: str) -> WeightArrays:
        """The weights to look at: scaled to 2-norm 1 as the scores are, or the linear form of a pool."""
        if not hasattr(self, "_model"):
            raise AttributeError(f"{name} is known only after fit or partial_fit")
        weights = one_vector(self._model.engine)
        if weights is not None:
            return self._model.weights.arrays.over(float(np.linalg.norm(weights)) or 1.0)
        with suppress(ValueError):
            return self._model.weights.arrays
        raise AttributeError(
            f"{name}: {self._model.learner} predicts with several weight vectors; choose one such as 'AR-perceptron', "
            "or ask decision_function"
        )

    @property
    def _order(self) -> np.ndarray:
        """The model's number of each class in `classes_`."""
        return np.array([self._model.classes.index(name) for name in self.classes_.tolist()], np.int64)

    def _like_the_first(self, X: Any) -> Any:
        """Dense or sparse as the samples were that the weights are laid out for."""
        if self._sparse:
            return sparse.csr_array(X)
        return X.toarray() if sparse.issparse(X) else X

    def _instances_of(self, X: Any) -> Experts:
        raise NotImplementedError

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores zeta(j) of weights of 2-norm 1: (n, k), or for two classes (n,), the second's less the first's."""
        check_is_fitted(self)
        instances = self._instances_of(X)
        table = unit_scores(self._model.engine, self._model.fitted(instances), len(instances))[1][:, self._order]
        return table[:, 1] - table[:, 0] if len(self.classes_) == 2 else table

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample; nothing is learned."""
        check_is_fitted(self)
        return self.classes_[np.argsort(self._order)[self._judge(self._instances_of(X))[0]]]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class (n, k): softmax of the scores, as sharp as they proved right, with some doubt.

        Sharpness and doubt are fitted to the scores of up to 1,000 of the latest samples, each given before its label
        was seen (in ``fit``, of samples that were held out; see `linmax.models.calibration`).
        """
        check_is_fitted(self)
        return self._model.probabilities(self._judge(self._instances_of(X))[1])[:, self._order]

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithms of `predict_proba`."""
        return np.log(self.predict_proba(X))

    # -- parameters of the learner --

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; if ``deep``, also those of the learner: ``learner__alpha``."""
        found = dict(super().get_params(deep=deep))
        if deep:
            with suppress(TypeError, ValueError):  # a learner that cannot be is refused by `fit`
                found |= {PREFIX + name: value for name, value in parameters_of(self.learner).items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``learner__alpha=1.2`` sets one of the learner."""
        nested = {name.removeprefix(PREFIX): params.pop(name) for name in [*params] if name.startswith(PREFIX)}
        super().set_params(**params)
        if nested:
            self.learner = with_parameters(self.learner, nested)
        return self

    # -- keeping --

    def __getstate__(self) -> dict[str, Any]:
        # Plain data and arrays, as `skops.io` takes them; an engine knows compiled functions by their address.
        state = dict(super().__getstate__())
        if "_model" in state:
            state["_model"] = self._model.packed()
        if "_scaling" in state:
            state["_scaling"] = (self._scaling.description, self._scaling.arrays)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_model" in state:
            self._model = ExpertsModel.from_state(*state["_model"])
        if "_scaling" in state:
            self._scaling = Scaling.from_state(*state["_scaling"])

    def _pack(self, path: str | os.PathLike[str], parameters: dict[str, Any]) -> None:
        """Write parameters and all that was learned as a model file."""
        check_is_fitted(self)
        header, state = self._model.state()
        if not isinstance(parameters["learner"], str):
            parameters["learner"] = str(self._model.learner)
        for name, value in parameters.items():
            if value is not None and not isinstance(value, (bool, int, float, str)):
                raise TypeError(f"{name}={value!r} cannot be saved; use a number or text")
        description = {
            "parameters": parameters,
            "model": header,
            "scaling": self._scaling.description if hasattr(self, "_scaling") else None,
            "classes": {"names": self.classes_.tolist(), "type": self.classes_.dtype.str},
            "features": self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None,
            "plain": {name: getattr(self, name) for name in PLAIN_FIELDS if hasattr(self, name)},
            "models": list(getattr(self, "named_estimators_", ())),
        }
        scaling = self._scaling.arrays if hasattr(self, "_scaling") else {}
        arrays = {f"model.{name}": array for name, array in state.items()}
        arrays |= {f"scaling.{name}": array for name, array in scaling.items()}
        arrays |= {f"extra.{name}": array for name, array in self._extra.items()}
        files.write(path, type(self).__name__, description, arrays)

    @property
    def _extra(self) -> dict[str, np.ndarray]:
        """Further arrays that are learned."""
        return {}

    def _unpack(self, description: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Take over what `_pack` wrote; returns the further arrays."""
        classes, parts = description["classes"], apart(arrays)
        self._model = ExpertsModel.from_state(description["model"], parts["model"])
        if description["scaling"] is not None:
            self._scaling = Scaling.from_state(description["scaling"], parts.get("scaling", {}))
        self.classes_ = np.array(classes["names"], dtype=classes["type"])
        if description["features"] is not None:
            self.feature_names_in_ = np.array(description["features"], dtype=object)
        for name, value in description["plain"].items():
            if name in PLAIN_FIELDS:
                setattr(self, name, value)
        return parts.get("extra", {})


PLAIN_FIELDS = ("n_features_in_", "n_iter_", "stack_method_", "_declared", "_sparse")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say of a file that was read but lacks something that it is the file."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)} does not hold a whole estimator: {error}") from error


def targets(X: Any, y: Any) -> np.ndarray:
    """The labels as scikit-learn takes them."""
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None; give the labels")
    refuse_masked("y", y)
    refuse_mixed(y)
    labels = column_or_1d(y, warn=True)
    check_consistent_length(X, labels)
    check_classification_targets(labels)
    return labels


def refuse_mixed(y: Any) -> None:
    """Say which labels are missing, or of a kind that cannot be sorted among the others."""
    labels = np.asarray(y, dtype=object) if isinstance(y, (list, tuple)) else np.asarray(y)
    if labels.dtype.kind != "O" or labels.ndim != 1:
        return
    for place, label in enumerate(labels.tolist()):
        if no_label(label):
            raise ValueError(f"y: the label of sample {place} is {label!r}; leave out samples without a label")
        refuse_wide("y", label)
    kinds = {"text" if isinstance(label, str) else "numbers" for label in labels.tolist()}
    if len(kinds) > 1:
        raise TypeError("y has text and numbers among its labels, which have no order; make all of them text")
