"""scikit-learn estimators: `LinearMaxClassifier` on attributes, `FusionClassifier` over base models.

Both hold a learner of this library that predicts each trial before it learns from it, and both go on with
``partial_fit``. ``fit`` starts afresh, and shows the samples in random order: an on-line learner that first sees all of
one class and then all of another remembers the last.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, replace
from functools import wraps
from inspect import signature
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, TransformerMixin, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import Bunch, _safe_indexing, check_array, check_random_state, get_tags
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from linmax import files
from linmax.calibration import KEPT, Calibration
from linmax.checks import boolean, one_of, whole
from linmax.composition import as_learner
from linmax.contract import KNOWN, Instances
from linmax.instances import Experts, Layout, experts
from linmax.learners import Auto
from linmax.learners.attributes import AttributePool
from linmax.machine import Engine, Settings
from linmax.scaling import KINDS, Scaling
from linmax.trials import Machine, Weights

__all__ = ["FusionClassifier", "LinearMaxClassifier"]

DEFAULT_LEARNER = "auto"
ROUNDING = 1e-9  # by which a sum of fractional weights may miss a whole number
ENOUGH_TRIALS, MOST_PASSES = 1000, 10  # of fit, when the number of passes is not given
MOST_SHOWINGS = 1000  # mean showings of a sample, beyond which sample_weight is taken for a slip


# -- what both share ----------------------------------------------------------------------------------------------


def scale_for(learner: Any, scale: str | None) -> str:
    """How attributes are scaled where the user does not say: by the pools themselves, or by their maxima."""
    if scale is not None:
        return scale
    return "none" if isinstance(as_learner(learner), (Auto, AttributePool)) else "max"


def weights_of(sample_weight: Any, X: Any) -> np.ndarray:
    """One weight for each sample, 1 by default; in one of many calls all may be 0."""
    if sample_weight is not None and np.shape(sample_weight) and not np.any(sample_weight):
        check_consistent_length(X, sample_weight)
        return np.zeros(len(sample_weight))
    return np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64))


def showings(weights: np.ndarray, carry: float = 0.0) -> tuple[np.ndarray, float]:
    """How often each sample is shown, floor(W_t) - floor(W_{t-1}) for W_t the sum of weights up to t; and what is left.

    A whole weight is that many showings; fractions add up, and each time they reach 1 the sample at hand is shown.

    Examples
    --------
    >>> import numpy as np
    >>> showings(np.array([2.0, 0.0, 0.5, 0.25, 0.5]))
    (array([2, 0, 0, 0, 1]), 0.25)
    """
    if (weights < 0.0).any():
        raise ValueError(f"sample_weight must be >= 0, got {weights.min():g}; 0 leaves a sample out")
    total = carry + np.cumsum(weights)
    if len(total) and total[-1] > MOST_SHOWINGS * len(total):
        raise ValueError(
            f"sample_weight asks for {total[-1]:.3g} showings of {len(total)} samples; a weight of 1 is one showing, "
            f"so divide the weights by {total[-1] / len(total):.3g}"
        )
    whole_part = np.floor(total + ROUNDING).astype(np.int64)
    left = max(float(total[-1] - whole_part[-1]), 0.0) if len(total) else carry
    return np.diff(whole_part, prepend=0), left


def shown_rows(weights: np.ndarray) -> np.ndarray:
    """The numbers of the samples, each as often as it is shown; weights that leave nearly all out are a slip."""
    counts, _ = showings(weights)
    shown, wanted = int(np.count_nonzero(counts)), int(np.count_nonzero(weights))
    if shown == 0:
        raise ValueError(f"sample_weight must add up to 1 or more, got {weights.sum():g}; 1 shows a sample once")
    if shown < wanted / 2:
        warnings.warn(
            f"sample_weight shows only {shown} of {wanted} samples: a weight of 1 is one showing, and these are less",
            stacklevel=3,
        )
    return np.repeat(np.arange(len(counts)), counts)


def stretches(size: int, fresh: bool) -> Iterator[slice]:
    """Cut trials so that the latest can be judged by what was learned before them; it changes no prediction."""
    latest = min(KEPT // 2, size - size // 2 if fresh else size)
    begin = size - latest
    inner = [begin + latest * quarter // 4 for quarter in (1, 2, 3)] if latest >= 64 else []
    cuts = sorted({0, begin, *inner, size})
    for first, last in pairwise(cuts):
        yield slice(first, last)


def one_vector(engine: Engine) -> np.ndarray | None:
    """The weights over all coordinates, where the learner predicts with one vector of them."""
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
    """A machine that learns trial by trial, with its scores and their probabilities in scikit-learn's terms."""

    _machine: Machine
    _calibration: Calibration
    _scaling: Scaling
    _sparse: bool
    _carry: float
    _declared: bool
    classes_: np.ndarray

    def _start(self, instances: Experts, classes: np.ndarray, *, declared: bool, discover: bool) -> None:
        """A learner that has seen nothing."""
        self._machine = Machine(
            as_learner(self.learner), instances, classes.tolist(), tie="smallest", update_on_tie=True, discover=discover
        )
        self.classes_, self._declared = classes, declared
        self._calibration, self._carry, self.mistakes_ = Calibration(), 0.0, 0

    def _classes_for(self, y: np.ndarray, classes: Any) -> np.ndarray:
        """All classes when these labels have been seen."""
        met = np.unique(y)
        if not hasattr(self, "_machine"):
            if classes is None:
                if not len(met):
                    raise ValueError("sample_weight shows no sample, so that no class is known; pass classes=")
                return met
            known, fixed = np.unique(classes), True
        else:
            known, fixed = self.classes_, self._declared
        given = known if classes is None else np.asarray(classes)
        for names in (met, given):
            if len(names) and (names.dtype.kind in "OUS") != (known.dtype.kind in "OUS"):
                raise ValueError(f"y: {names[0]!r} is of another kind than the classes {known[:10].tolist()}")
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

    def _learn(self, instances: Experts, labels: np.ndarray, calibrate: bool = True) -> bool:
        """Play the trials; returns whether anything was learned."""
        machine, changed = self._machine, False
        machine.check_range(instances)
        for part in stretches(len(instances), machine.trials == 0) if calibrate else [slice(None)]:
            piece, names = instances[part], labels[part]
            if calibrate and machine.trials and set(piece.names) <= set(machine.classes):
                self._calibrate(piece, names)
            trace = machine.run(piece, names, grow=True)
            changed |= bool(trace.changed.any())
            self.mistakes_ += int(trace.wrong.sum())
        return changed

    def _calibrate(self, instances: Experts, labels: np.ndarray) -> None:
        """Keep the scores of trials that are still to be learned from; a class met for the first time has none."""
        classes = self._machine.classes
        place = {name: c for c, name in enumerate(classes)}
        numbers = np.array([place.get(name, -1) for name in labels.tolist()], np.int64)
        met = np.flatnonzero(numbers >= 0)[-KEPT:]
        self._calibration.add(self._judge(instances[met])[1], numbers[met], classes)

    def _judge(self, instances: Experts) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores in the machine's classes; the scores are those of weights of 2-norm 1."""
        machine = self._machine
        return unit_scores(machine.engine, instances.compiled(machine.classes), len(instances))

    def _one_vector(self, name: str) -> Weights:
        """The weights, scaled to 2-norm 1 as the scores are; else why there are none."""
        if not hasattr(self, "_machine"):
            raise AttributeError(f"{name} is known only after fit or partial_fit")
        weights = one_vector(self._machine.engine)
        if weights is None:
            raise AttributeError(
                f"{name}: {self._machine.learner} predicts with several weight vectors; choose one such as "
                "'AR-perceptron', or ask decision_function"
            )
        found = self._machine.weights
        norm = float(np.linalg.norm(weights)) or 1.0
        return replace(
            found,
            voters=found.voters / norm,
            raters=found.raters / norm,
            thresholds=found.thresholds / norm,
            attributes=found.attributes / norm,
        )

    @property
    def _order(self) -> np.ndarray:
        """The machine's number of each class in `classes_`."""
        return np.array([self._machine.classes.index(name) for name in self.classes_.tolist()], np.int64)

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
        table = self._judge(self._instances_of(X))[1][:, self._order]
        return table[:, 1] - table[:, 0] if len(self.classes_) == 2 else table

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample; nothing is learned."""
        check_is_fitted(self)
        return self.classes_[np.argsort(self._order)[self._judge(self._instances_of(X))[0]]]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class (n, k): softmax of the scores, as sharp as they proved right, with some doubt.

        Sharpness and doubt are fitted to the scores of up to 1,000 of the latest samples, each given before its label
        was seen (in ``fit``, those of the last half of the first pass; see `linmax.calibration`).
        """
        check_is_fitted(self)
        scores = self._judge(self._instances_of(X))[1]
        return self._calibration.probabilities(scores)[:, self._order]

    # -- keeping --

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_machine" in state:  # which knows compiled functions by their address in this process
            state["_machine"] = frozen(state["_machine"])
        if "_scaling" in state:
            state["_scaling"] = (self._scaling.description, self._scaling.arrays)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_machine" in state:
            self._machine = Machine.restored(*state["_machine"])
        if "_scaling" in state:
            self._scaling = Scaling.from_state(*state["_scaling"])

    def _pack(self, path: str | os.PathLike[str], parameters: dict[str, Any]) -> None:
        """Write parameters and all that was learned as a model file."""
        check_is_fitted(self)
        learner, layout, classes, settings, state = frozen(self._machine)
        if not isinstance(parameters["learner"], str):
            parameters["learner"] = str(learner)
        for name, value in parameters.items():
            if value is not None and not isinstance(value, (bool, int, float, str)):
                raise TypeError(f"{name}={value!r} cannot be saved; use a number or text")
        description = {
            "parameters": parameters,
            "machine": {
                "learner": str(learner),
                "classes": classes,
                "layout": asdict(layout),
                "settings": asdict(settings),
            },
            "scaling": self._scaling.description if hasattr(self, "_scaling") else None,
            "judged": self._calibration.classes,
            "classes": {"names": self.classes_.tolist(), "type": self.classes_.dtype.str},
            "features": self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None,
            "plain": {name: getattr(self, name) for name in PLAIN if hasattr(self, name)},
            "models": list(getattr(self, "named_estimators_", ())),
        }
        scaling = self._scaling.arrays if hasattr(self, "_scaling") else {}
        blocks = {"machine": state, "calibration": self._calibration.arrays, "scaling": scaling}
        arrays = {f"{block}.{name}": array for block, found in blocks.items() for name, array in found.items()}
        files.write(path, type(self).__name__, description, arrays)

    def _unpack(self, description: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Take over what `_pack` wrote."""
        machine, classes = description["machine"], description["classes"]
        blocks: dict[str, dict[str, np.ndarray]] = {"machine": {}, "calibration": {}, "scaling": {}}
        for name, array in arrays.items():
            block, _, rest = name.partition(".")
            blocks[block][rest] = array
        layout = Layout(**machine["layout"] | {"names": tuple(machine["layout"]["names"])})
        settings = Settings(**machine["settings"])
        learner = as_learner(machine["learner"])
        self._machine = Machine.restored(learner, layout, machine["classes"], settings, blocks["machine"])
        self._calibration = Calibration.restored(description["judged"], blocks["calibration"])
        if description["scaling"] is not None:
            self._scaling = Scaling.from_state(description["scaling"], blocks["scaling"])
        self.classes_ = np.array(classes["names"], dtype=classes["type"])
        if description["features"] is not None:
            self.feature_names_in_ = np.array(description["features"], dtype=object)
        for name, value in description["plain"].items():
            if name in PLAIN:
                setattr(self, name, value)


PLAIN = ("n_features_in_", "n_iter_", "mistakes_", "stack_method_", "_carry", "_declared", "_sparse")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say of a file that was read but lacks something that it is the file."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)} does not hold a whole estimator: {error}") from error


def frozen(machine: Machine) -> tuple[Any, Layout, list[Any], Settings, dict[str, np.ndarray]]:
    """What `Machine.restored` makes the machine from again."""
    engine = machine.engine
    return machine.learner, machine.layout, machine.classes, engine.settings, engine.arrays


def targets(X: Any, y: Any) -> np.ndarray:
    """The labels as scikit-learn takes them."""
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None; give the labels")
    labels = column_or_1d(y, warn=True)
    check_consistent_length(X, labels)
    check_classification_targets(labels)
    return labels


# -- attributes ---------------------------------------------------------------------------------------------------


class LinearMaxClassifier(OnLineClassifier):
    """A linear classifier learned on-line: any learner of this library on attributes, for scikit-learn.

    The score of class j is zeta(j) = w_j . x + b_j, the weights w those of the learner; the prediction is the class
    with the highest score (Mesterharm 2001, sections 2.2 and 5).

    Parameters
    ----------
    learner
        A rule, a technique, or text such as "AR-winnow(1.1)". The default is the pool for attributes, with nothing to
        tune (see `linmax.vr_combine`); it is no single weight vector.
    scale
        "max": each attribute is divided by its largest magnitude, because many rules need attributes in [-1, 1]; in
        ``fit`` that over the samples given, in ``partial_fit`` that so far, the sample itself included. A larger one
        in ``predict`` counts as the largest. "none": attributes are taken as they are, and a rule that needs it
        refuses larger ones. Others are those of `linmax.scaling`. None: "none" for the pools that scale attributes by
        themselves ("auto", "attributes"), and "max" for all other learners.
    thresholds
        Learn a threshold b_j for each class.
    max_epochs
        Most passes of ``fit``; it stops earlier after a pass without update. None: one, and on less than a thousand
        samples as many as make a thousand trials, up to ten.
    shuffle
        Whether ``fit`` shows the samples in random order, anew in each pass. ``partial_fit`` never does.
    random_state
        Of the order; an integer gives the same model each time.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_
        As everywhere in scikit-learn. ``classes_`` grows when ``partial_fit`` meets a class for the first time.
    coef_, intercept_
        Weights and thresholds in the attributes' own scale, (k, n_features) and (k,), for two classes (1, n_features)
        and (1,): ``X @ coef_.T + intercept_`` is `decision_function` for samples within the scale. Only of learners
        that are one weight vector, with the scale "max" or "none".
    n_iter_
        Passes made by ``fit``, calls of ``partial_fit`` since.
    mistakes_
        Mistakes so far, each made before the label was seen (in ``fit``, in all passes).

    Notes
    -----
    ``sample_weight``: a sample of weight w is shown w times. Fractions add up from sample to sample, and each time
    they reach 1 the sample at hand is shown once. Mistake-driven rules have no step to scale that would mean the same
    for all of them, and this is exact for whole weights: ``fit(X, y, sample_weight=w)`` is ``fit`` on the samples
    repeated w times.

    References
    ----------
    Mesterharm (2001), Transforming linear-threshold learning algorithms into multi-class linear learning algorithms,
    Rutgers dcs-tr-460.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import linmax
    >>> X, y = load_iris(return_X_y=True)
    >>> model = linmax.LinearMaxClassifier("AR-perceptron", max_epochs=10).fit(X, y)
    >>> model.coef_.shape, bool(model.score(X, y) > 0.95)
    ((3, 4), True)
    """

    def __init__(
        self,
        learner: Any = DEFAULT_LEARNER,
        *,
        scale: str | None = None,
        thresholds: bool = True,
        max_epochs: int | None = None,
        shuffle: bool = True,
        random_state: Any = 0,
    ) -> None:
        self.learner = learner
        self.scale = scale
        self.thresholds = thresholds
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything and learn from these samples."""
        self._check_parameters()
        X, y = self._validated(X, y, reset=True)
        rows = shown_rows(_check_sample_weight(sample_weight, X, dtype=np.float64))
        random = check_random_state(self.random_state)
        self._sparse = sparse.issparse(X)
        self._scaling = Scaling(scale_for(self.learner, self.scale))
        instances = self._experts(X)
        self._scaling.apply(instances[np.unique(rows)])
        instances = self._scaling.apply(instances, learn=False)
        self._start(instances, np.unique(y), declared=False, discover=False)
        self.n_iter_ = 0
        passes = (
            min(MOST_PASSES, -(-ENOUGH_TRIALS // max(1, len(rows)))) if self.max_epochs is None else self.max_epochs
        )
        for epoch in range(passes):
            order = random.permutation(rows) if self.shuffle else rows
            self.n_iter_ += 1
            if not self._learn(instances[order], y[order], calibrate=epoch == 0):
                break
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from these samples, in their order.

        Parameters
        ----------
        classes
            At the first call: all classes there will be. Without it, classes are taken in as their labels come.
        """
        self._check_parameters()
        first = not hasattr(self, "_machine")
        X, y = self._validated(X, y, reset=first)
        counts, carry = showings(weights_of(sample_weight, X), 0.0 if first else self._carry)
        rows = np.repeat(np.arange(len(y)), counts)
        known = self._classes_for(y[rows], classes)
        if first:
            self._sparse = sparse.issparse(X)
        scaling = Scaling(scale_for(self.learner, self.scale)) if first else deepcopy(self._scaling)
        instances = scaling.apply(self._experts(self._like_the_first(X)[rows]))
        if first:
            self._start(instances, known, declared=classes is not None, discover=classes is None)
            self.n_iter_ = 0
        self._learn(instances, y[rows])
        self._scaling, self._carry, self.classes_ = scaling, carry, known
        self.n_iter_ += 1
        return self

    @property
    def coef_(self) -> np.ndarray:
        """The weights of each class, in the attributes' own scale."""
        table = self._linear("coef_").attributes[:, self._order].T
        if self._scaling.kind == "max":
            maxima = self._scaling.arrays["sparse"][:, 1] if self._sparse else self._scaling.arrays["dense"][:, 0]
            table = table / np.where(maxima > 0.0, maxima, 1.0)
        return table[1:] - table[:1] if len(self.classes_) == 2 else table

    @property
    def intercept_(self) -> np.ndarray:
        """The threshold of each class; 0 without thresholds."""
        found = self._linear("intercept_").thresholds
        found = found[self._order] if self.thresholds else np.zeros(len(self.classes_))
        return found[1:] - found[:1] if len(self.classes_) == 2 else found

    def _linear(self, name: str) -> Weights:
        found = self._one_vector(name)
        if self._scaling.kind not in ("max", "none"):
            raise AttributeError(f"{name}: with scale={self._scaling.kind!r} scores are not linear in the attributes")
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that is safe to open: arrays and plain data (see `linmax.files`)."""
        self._pack(path, self.get_params(deep=False))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; it goes on exactly where the other stopped."""
        description, arrays = files.read(path, cls.__name__)
        with whole_file(path):
            model = cls(**description["parameters"])
            model._unpack(description, arrays)
        return model

    def _check_parameters(self) -> None:
        boolean("thresholds", self.thresholds)
        boolean("shuffle", self.shuffle)
        if self.max_epochs is not None:
            whole("max_epochs", self.max_epochs, 1)
        if self.scale is not None:
            one_of("scale", self.scale, KINDS)

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Any, np.ndarray]:
        if y is None:
            targets(X, y)
        X, y = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype=np.float64, order="C")
        check_classification_targets(y)
        return X, y

    def _experts(self, X: Any) -> Experts:
        return experts(attributes=X, thresholds=bool(self.thresholds))

    def _instances_of(self, X: Any) -> Experts:
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64, order="C")
        return self._scaling.apply(self._experts(self._like_the_first(X)), learn=False)


# -- base models --------------------------------------------------------------------------------------------------

METHODS = ("predict_proba", "decision_function", "predict")
FIRST = 16  # samples that start models which have seen none
Said = tuple[np.ndarray, Any]  # classes, and what a model says of them


class FusionClassifier(TransformerMixin, MetaEstimatorMixin, _BaseComposition, OnLineClassifier):  # type: ignore[misc]
    """Base models fused on-line: one weight for each, learned from predictions made before the label was seen.

    A model with ``predict_proba`` or ``decision_function`` rates every class, a model with ``predict`` votes for one;
    the class with the highest weighted sum is predicted (Mesterharm and Hsu). In the manner of scikit-learn's
    ``StackingClassifier``, and it goes on with ``partial_fit``.

    Parameters
    ----------
    estimators
        List of (name, classifier); "drop" in place of a classifier leaves it out.
    learner
        What fuses them: a rule, a technique, or text such as "AR-winnow(1.1)".
    cv
        How ``fit`` splits the samples to have each predicted by models that have not seen it: a number of folds, a
        splitter, or an iterable of splits; 5 folds by default. "prefit": the models are fitted already, and the
        samples are new to them.
    stack_method
        "auto" (the first that a model has), "predict_proba", "decision_function" or "predict".
    passthrough
        Give the fusion the attributes as well, each divided by its largest magnitude so far: a hybrid of models and
        attributes.
    shuffle, random_state
        Whether ``fit`` shows the samples to the fusion in random order, and which; see `LinearMaxClassifier`.
    n_jobs, verbose
        As in ``StackingClassifier``.

    Attributes
    ----------
    estimators_, named_estimators_, stack_method_
        The fitted models, the same by name, and the method that each is asked by.
    weights_
        The weight of each model by name; the magnitudes add up to 1. Only of learners that are one weight vector.
    mistakes_
        Mistakes of the fusion so far, each made before the label was seen.

    Notes
    -----
    ``partial_fit`` lets the models predict first, the fusion learn from that, and then the models learn that have a
    ``partial_fit`` of their own: nothing is judged by what it has seen. Models of scikit-learn know all classes from
    the start; samples of a class that appears later are left out for them. A model in a ``FrozenEstimator`` stays as it
    is.

    Decision values are brought to [0, 1] sample by sample, the lowest class at 0 and the highest at 1.

    References
    ----------
    Mesterharm and Hsu, Combinatorial fusion with on-line learning algorithms. Wolpert (1992), Stacked generalization.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import linmax
    >>> X, y = load_iris(return_X_y=True)
    >>> models = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(random_state=0))]
    >>> fusion = linmax.FusionClassifier(models, "AR-perceptron").fit(X, y)
    >>> sorted(fusion.weights_), bool(fusion.score(X, y) > 0.95)
    (['bayes', 'tree'], True)
    """

    def __init__(
        self,
        estimators: Sequence[tuple[str, Any]],
        learner: Any = DEFAULT_LEARNER,
        *,
        cv: Any = None,
        stack_method: str = "auto",
        passthrough: bool = False,
        shuffle: bool = True,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.learner = learner
        self.cv = cv
        self.stack_method = stack_method
        self.passthrough = passthrough
        self.shuffle = shuffle
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- parameters, as scikit-learn's composite estimators have them --

    @property
    def named_estimators(self) -> Bunch:
        """The models as given, by name."""
        return Bunch(**dict(self.estimators))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, those of the models included: ``name__parameter``."""
        return super()._get_params("estimators", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, replace or drop a model by its name."""
        self._set_params("estimators", **params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        models = [model for _, model in self.estimators if not isinstance(model, str)]
        tags.input_tags.sparse = all(get_tags(model).input_tags.sparse for model in models)
        tags.input_tags.allow_nan = not self.passthrough and all(get_tags(m).input_tags.allow_nan for m in models)
        return tags

    # -- learning --

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the models and learn to fuse them.

        ``sample_weight`` goes to every model (one that takes none is refused) and to the fusion, where a sample of
        weight w is shown w times (see `LinearMaxClassifier`).
        """
        models = self._checked()
        y = targets(X, y)
        self._check_columns(X, reset=True)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        rows = shown_rows(np.ones(len(y)) if weights is None else weights)
        order = check_random_state(self.random_state).permutation(rows) if self.shuffle else rows
        self._fit(models, X, y, weights, order, np.unique(y), declared=False)
        return self

    def _fit(
        self,
        models: list[tuple[str, Any]],
        X: Any,
        y: np.ndarray,
        weights: np.ndarray | None,
        order: np.ndarray,
        classes: np.ndarray,
        declared: bool,
    ) -> None:
        """Fit the models, and let the fusion learn from what they say of samples that they have not seen."""
        methods = [self._method(name, model) for name, model in models]
        if self._prefit:
            fitted, classes = self._taken(models, classes)
            outputs = asked(fitted, methods, X)
        else:
            options = {} if weights is None else {"sample_weight": weights}
            if weights is not None:
                refuse_unweighted(models, "fit")
            outputs = [(np.unique(y), said) for said in self._out_of_fold(models, methods, X, y, options)]
            fitted = Parallel(n_jobs=self.n_jobs)(delayed(_fitted)(model, X, y, options) for _, model in models)
        self._adopt(models, fitted, methods)
        self._keep_scale(X, known=True)
        instances = self._instances(outputs, X, classes)
        self._start(instances, classes, declared=declared, discover=False)
        self._learn(instances[order], y[order])

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Let the models predict these samples, the fusion learn from that, and then the models that can.

        The first call starts the models: where all of them have a ``partial_fit``, the samples come in stretches of
        doubling length, each predicted before it is learned; otherwise it is a ``fit`` in the order of the samples.

        Parameters
        ----------
        classes
            At the first call: all classes there will be. Without it, classes are taken in as their labels come.
        """
        models = self._checked()
        first = not hasattr(self, "_machine")
        y = targets(X, y)
        self._check_columns(X, reset=first)
        weights = None if sample_weight is None else weights_of(sample_weight, X)
        if weights is not None:
            refuse_unweighted([(name, model) for name, model in models if goes_on(model)], "partial_fit")
        counts, carry = showings(np.ones(len(y)) if weights is None else weights, 0.0 if first else self._carry)
        known, begin = self._classes_for(y, classes), 0
        if first and (self._prefit or not all(goes_on(model) for _, model in models)):
            rows = np.repeat(np.arange(len(y)), counts)
            self._fit(models, X, y, weights, rows, known, declared=classes is not None)
            known, begin = self.classes_, len(y)
        elif first:
            begin = self._begin(models, X, y, weights, known, declared=classes is not None)
        for part in doubling(begin, len(y)):
            block, labels = _safe_indexing(X, part), y[part]
            rows = np.repeat(np.arange(len(labels)), counts[part])
            outputs = asked(self.estimators_, self.stack_method_, block)
            self._learn(self._instances(outputs, block, known, learning=True)[rows], labels[rows])
            for model in self.estimators_:
                if goes_on(model):
                    teach(model, block, labels, None if weights is None else weights[part])
        self._carry, self.classes_ = carry, known
        return self

    def _begin(
        self,
        models: list[tuple[str, Any]],
        X: Any,
        y: np.ndarray,
        weights: np.ndarray | None,
        known: np.ndarray,
        declared: bool,
    ) -> int:
        """Start models that have seen nothing with the first samples, and a fusion that has seen none; how many."""
        head = np.arange(min(FIRST, max(1, len(y) // 2)))
        fitted = [clone(model) for _, model in models]
        for model in fitted:
            names = None if isinstance(model, OnLineClassifier) and not declared else known
            teach(model, _safe_indexing(X, head), y[head], None if weights is None else weights[head], names)
        methods = [self._method(name, model) for name, model in models]
        self._adopt(models, fitted, methods)
        self._keep_scale(X, known=False)
        silent = [(known, known[:0] if method == "predict" else np.zeros((0, len(known)))) for method in methods]
        nothing = self._instances(silent, _safe_indexing(X, np.arange(0)), known)
        self._start(nothing, known, declared=declared, discover=False)
        return len(head)

    def _out_of_fold(
        self, models: list[tuple[str, Any]], methods: list[str], X: Any, y: np.ndarray, options: dict[str, Any]
    ) -> list[np.ndarray]:
        """What each model says of samples that it was not fitted on."""
        folds = list(check_cv(self.cv, y=y, classifier=True).split(X, y))  # the same for all, whatever it draws
        return list(
            Parallel(n_jobs=self.n_jobs)(
                delayed(cross_val_predict)(
                    clone(model), X, y, cv=folds, method=method, params=options, verbose=self.verbose
                )
                for (_, model), method in zip(models, methods, strict=True)
            )
        )

    # -- what the models say --

    def transform(self, X: Any) -> Any:
        """What the models say of each sample: k ratings of each, a vote being 1 for its class; then the attributes,
        if they pass through."""
        check_is_fitted(self)
        self._check_columns(X, reset=False)
        blocks = [
            rated(names, said, self.classes_, method)
            for (names, said), method in zip(
                asked(self.estimators_, self.stack_method_, X), self.stack_method_, strict=True
            )
        ]
        if not self.passthrough:
            return np.hstack(blocks)
        attributes = check_array(X, accept_sparse="csr", dtype=np.float64)
        if sparse.issparse(attributes):
            return sparse.hstack([*blocks, attributes], format="csr")
        return np.hstack([*blocks, attributes])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The columns of `transform`: model_class, then the attributes if they pass through."""
        check_is_fitted(self)
        given = _check_feature_names_in(self, input_features, generate_names=self.passthrough)
        names = [f"{model}_{label}" for model in self.named_estimators_ for label in self.classes_.tolist()]
        return np.array([*names, *given] if self.passthrough else names, dtype=object)

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of each model; the magnitudes add up to 1."""
        found = self._one_vector("weights_")
        voters, raters = iter(found.voters.tolist()), iter(found.raters.tolist())
        named = {
            name: next(voters if method == "predict" else raters)
            for name, method in zip(self.named_estimators_, self.stack_method_, strict=True)
        }
        total = sum(map(abs, named.values())) or 1.0
        return {name: weight / total for name, weight in named.items()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fusion to a file that is safe to open: arrays and plain data (see `linmax.files`).

        The models are not in it: they may be of any kind, and are kept by their own means.
        """
        parameters = self.get_params(deep=False)
        self._pack(path, {name: value for name, value in parameters.items() if name not in ("estimators", "cv")})

    @classmethod
    def load(cls, path: str | os.PathLike[str], estimators: Sequence[tuple[str, Any]]) -> Self:
        """Read a fusion that `save` wrote, over these fitted models: those it was saved with, in the same order.

        The fusion goes on exactly where the other stopped; its ``cv`` is "prefit".
        """
        description, arrays = files.read(path, cls.__name__)
        with whole_file(path):
            model = cls(estimators, cv="prefit", **description["parameters"])
            model._unpack(description, arrays)
            names = description["models"]
        kept = model._checked()
        if [name for name, _ in kept] != names:
            raise ValueError(f"estimators: {path} fuses {names}, got {[name for name, _ in kept]}")
        fitted, classes = model._taken(kept, model.classes_)
        if len(classes) > len(model.classes_):
            raise ValueError(f"estimators know classes beyond {model.classes_.tolist()}; give the models of {path}")
        model._adopt(kept, fitted, model.stack_method_)
        return model

    def _instances_of(self, X: Any) -> Experts:
        self._check_columns(X, reset=False)
        return self._instances(asked(self.estimators_, self.stack_method_, X), X, self.classes_)

    def _instances(self, outputs: list[Said], X: Any, classes: np.ndarray, *, learning: bool = False) -> Experts:
        """What the models said, and the attributes if they pass through, as voters, raters and attributes."""
        said = list(zip(outputs, self.stack_method_, strict=True))
        votes = [output for (_, output), method in said if method == "predict"]
        ratings = [rated(names, output, classes, method) for (names, output), method in said if method != "predict"]
        attributes = None
        if self.passthrough:
            attributes = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=0)
            attributes = self._like_the_first(attributes)
        instances = experts(
            votes=np.column_stack(votes) if votes else None,
            scores=np.stack(ratings, axis=1) if ratings else None,
            attributes=attributes,
            classes=classes.tolist(),
        )
        return self._scaling.apply(instances, learning) if self.passthrough else instances

    def _check_columns(self, X: Any, reset: bool) -> None:
        """Their number and names; what they hold is for the models to check."""
        if getattr(X, "ndim", 2) == 1:
            check_array(X)  # which says how to reshape it
        validate_data(self, X, skip_check_array=True, reset=reset)

    def _keep_scale(self, X: Any, known: bool) -> None:
        """Begin the scale of attributes that pass through."""
        if self.passthrough:
            attributes = check_array(X, accept_sparse="csr", dtype=np.float64)
            self._sparse = sparse.issparse(attributes)
            self._scaling = Scaling(scale_for(self.learner, None))
            if known:
                self._scaling.apply(experts(attributes=attributes))

    # -- the models --

    @property
    def _prefit(self) -> bool:
        return isinstance(self.cv, str)

    def _checked(self) -> list[tuple[str, Any]]:
        """The models that are not dropped, by name."""
        boolean("passthrough", self.passthrough)
        boolean("shuffle", self.shuffle)
        one_of("stack_method", self.stack_method, ["auto", *METHODS])
        if self._prefit:
            one_of("cv", self.cv, ["prefit"])
        models = [tuple(item) for item in self.estimators]
        bad = next((item for item in models if len(item) != 2 or not isinstance(item[0], str)), None)
        if bad is not None or not models:
            raise ValueError(f"estimators must be a list of (name, classifier), got {bad or models!r}")
        self._validate_names([name for name, _ in models])
        kept = [(name, model) for name, model in models if not isinstance(model, str) or model != "drop"]
        for name, model in kept:
            if not is_classifier(model):
                raise ValueError(f"estimators: {name!r} must be a classifier or 'drop', got {model!r}")
        if not kept:
            raise ValueError("estimators: all are dropped; keep at least one")
        return kept

    def _method(self, name: str, model: Any) -> str:
        wanted = METHODS if self.stack_method == "auto" else (self.stack_method,)
        found = next((method for method in wanted if hasattr(model, method)), None)
        if found is None:
            raise ValueError(f"estimators: {name!r} has no {' or '.join(wanted)}; try stack_method='auto'")
        return found

    def _taken(self, models: list[tuple[str, Any]], classes: np.ndarray) -> tuple[list[Any], np.ndarray]:
        """Models that are fitted already, and all classes that they or the labels name."""
        fitted = [model for _, model in models]
        for model in fitted:
            check_is_fitted(model)
        return fitted, np.unique(np.concatenate([classes, *(model.classes_ for model in fitted)]))

    def _adopt(self, models: list[tuple[str, Any]], fitted: list[Any], methods: list[str]) -> None:
        self.estimators_, self.stack_method_ = list(fitted), methods
        self.named_estimators_ = Bunch(**dict(zip([name for name, _ in models], fitted, strict=True)))


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


def _fitted(model: Any, X: Any, y: np.ndarray, options: dict[str, Any]) -> Any:
    return clone(model).fit(X, y, **options)
