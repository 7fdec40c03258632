"""`LinearMaxClassifier`: any learner on attributes, as a scikit-learn classifier."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from functools import wraps
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from linmax.data.instances import Instances, instances
from linmax.data.names import no_label, refuse_wide
from linmax.data.scaling import SCALINGS, Scaling
from linmax.engine.engine import Settings
from linmax.engine.notation import as_learner
from linmax.io.typed_tables import FrameReader, is_columnar
from linmax.io.vocabulary import Vocabulary
from linmax.learners.base import scales_attributes
from linmax.models.model import Model, mask_of
from linmax.models.sklearn.early_stopping import Samples, StoppingRule, fit, foresee, relative_weights, weights_of
from linmax.models.sklearn.params import DEFAULT_LEARNER, LearnerParameters, scale_for
from linmax.models.weights import WeightArrays
from linmax.techniques.technique import LearnerLike
from linmax.util import files
from linmax.util.aliases import Label, Labels, Matrix, PathLike
from linmax.util.checks import boolean, one_of, refuse_masked
from linmax.util.files import Arrays, Header, State
from linmax.util.parts import by_part

__all__ = ["LinearMaxClassifier", "all_or_nothing", "known_classes", "labels_of", "whole_file"]

SAVED_FIELDS = ("n_features_in_", "n_iter_", "_declared", "_sparse")  # plain data in a model file


# -- labels and errors ------------------------------------------------------------------------------------------------


def all_or_nothing(method: Callable[..., Any]) -> Callable[..., Any]:
    """Restore an estimator if a method fails, which must replace attributes instead of changing them."""

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


@contextmanager
def whole_file(path: PathLike) -> Iterator[None]:
    """Name the file in errors about something that it lacks."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)} does not hold a whole estimator: {error}") from error


def labels_of(X: Matrix, y: Labels | None) -> np.ndarray:
    """Return checked labels, one for each sample."""
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None; pass the labels")
    refuse_masked("X", X)
    refuse_masked("y", y)
    labels = np.asarray(y, dtype=object) if isinstance(y, (list, tuple)) else np.asarray(y)
    if labels.dtype.kind == "O" and labels.ndim == 1:
        for place, label in enumerate(labels.tolist()):
            if no_label(label):
                raise ValueError(f"y: the label of sample {place} is {label!r}; remove samples without a label")
            refuse_wide("y", label)
        if len({isinstance(label, str) for label in labels.tolist()}) > 1:
            raise TypeError("y must have labels of one kind, got text and numbers; convert all of them to text")
    labels = column_or_1d(y, warn=True)
    check_consistent_length(X, labels)
    check_classification_targets(labels)
    return labels


def known_classes(
    y: np.ndarray, wrong: np.ndarray, classes: Labels | None, known: np.ndarray | None, fixed: bool
) -> np.ndarray:
    """Return the sorted classes once the labels ``y`` have been seen.

    ``wrong`` are classes known not to be the label, ``classes`` what the user declares, ``known`` the classes so far.
    """
    seen = np.unique(y)
    if known is None:
        if classes is None:
            if not len(seen):
                raise ValueError("classes= is required where no sample has a label and a weight > 0")
            return seen
        known, fixed = np.unique(np.asarray(classes)), True
    declared = known if classes is None else np.asarray(classes)
    for names in (seen, declared, wrong):
        if len(names) and (names.dtype.kind in "OUS") != (known.dtype.kind in "OUS"):
            raise ValueError(f"y: {names.tolist()[0]!r} is of another kind than the classes {known[:10].tolist()}")
    for name in np.setdiff1d(declared, known).tolist():
        raise ValueError(f"classes: {name!r} was not declared in the first call; remove it, it joins with its label")
    new = np.setdiff1d(seen, known)
    if fixed and len(new):
        raise ValueError(
            f"y: {new.tolist()[0]!r} is not among the classes {known[:10].tolist()} of the first call; remove "
            "classes= there to let classes appear"
        )
    return np.union1d(known, new) if len(new) else known


def filled(instances: Instances) -> Instances:
    """Return scaled instances with 0 where a number is missing."""
    if not np.isnan(instances.dense).any():
        return instances
    return replace(instances, dense=np.where(np.isnan(instances.dense), 0.0, instances.dense))


def without_nan(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return a sparse matrix without the numbers that are missing."""
    if not np.isnan(matrix.data).any():
        return matrix
    matrix = matrix.copy()
    matrix.data[np.isnan(matrix.data)] = 0.0
    return matrix


# -- the classifier ---------------------------------------------------------------------------------------------------


class LinearMaxClassifier(LearnerParameters, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier trained online by any learner of this library, on attributes.

    The score of class j is zeta(j) = w_j . x + b_j, with the weights w of the learner; the class with the highest score
    is predicted (Mesterharm 2001, sections 2.2 and 5).

    Parameters
    ----------
    learner : learner or str, default="auto"
        A rule, a technique, or text such as "AR-winnow(1.1)". The default is the pool for attributes, which needs no
        tuning (see `linmax.pool`); it is not a single weight vector.
    scale : str, default=None
        "max": each attribute is divided by its largest magnitude, because many rules need attributes in [-1, 1]: in
        ``fit`` the largest of all samples, in ``partial_fit`` the largest so far, the sample itself included. In
        ``predict`` larger values count as the largest. "none": attributes stay as they are, and a rule with limits
        refuses larger ones. Others: `linmax.data.scaling`. None: "none" for pools, which scale attributes themselves
        ("auto", "attributes"), and "max" for all other learners.
    thresholds : bool, default=True
        Learn a threshold b_j for each class.
    max_iter : int, default=20
        Largest number of passes of ``fit``. With 1 no sample is held out.
    tol, n_iter_no_change : float, default=1e-3, and int, default=2
        ``fit`` stops when at ``n_iter_no_change`` checks in a row the loss was not lower than before by more than
        ``tol`` (a held-out loss: and by more than chance), or when a pass changes nothing. ``tol=None``: only then.
        The loss is checked after each pass. With a pool for attributes and early_stopping="auto" one such check ends
        the fit, and fewer than 1,000 samples are learned in five passes without checks: its fusion then learns from
        two copies, each of which learned one half of the samples and predicted the other. 10,000 samples or more are
        learned once where mistakes did not become fewer during the first pass.
    early_stopping : bool or "auto", default="auto"
        Which loss decides. "auto": the log loss of held-out samples, ``validation_fraction`` of them and at least 300,
        or with fewer than 1,000 samples all, in two halves; samples with equal attributes are held out together.
        Finally all samples are learned, in the best number of passes; a pool continues with the held-out ones. True:
        the log loss of ``validation_fraction`` of the samples, which are never learned; the model is that of the best
        check. False: the share of mistakes in a pass over all samples, each counted before the label was seen.
    validation_fraction : float, default=0.1
        Fraction of the samples that is held out.
    shuffle : bool, default=True
        Whether ``fit`` shows the samples in random order, a new one for each pass. ``partial_fit`` never does.
    class_weight : dict or "balanced", default=None
        {class: factor for the weights of its samples}, 1 for other classes; "balanced": all classes have the same
        weight in ``fit``. The pools for attributes, such as the default, learn without it: the factors multiply their
        probabilities, which are divided by their sum.
    warm_start : bool, default=False
        Whether ``fit`` continues from the present model instead of starting again.
    verbose : int, default=0
        Whether ``fit`` prints the loss at each check.
    random_state : int or RandomState, default=0
        Seed of the order and of what is held out; an integer gives the same model each time.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn. ``classes_`` grows when ``partial_fit`` sees a class for the first time.
    coef_, intercept_
        Weights and thresholds for unscaled attributes, (k, n_features) and (k,), for two classes (1, n_features) and
        (1,): ``X @ coef_.T + intercept_`` is `decision_function` for samples within the scale. Of a pool such as the
        default, which is not a single weight vector, they are an approximation for inspection and feature selection:
        the weights of its members, each for the attributes as it scales them, summed as they are fused. Other learners
        with several weight vectors have none, and the scale must be "max" or "none".
    n_iter_
        Passes of ``fit``; then calls of ``partial_fit``.
    loss_curve_
        The loss at each check of ``fit``.
    mistakes_
        Mistakes so far, each counted before the label was seen (in ``fit``, in all passes).

    Notes
    -----
    ``sample_weight`` and ``class_weight`` scale the steps of the learner: a weight of 2 equals two separate rows up to
    the learner's own nonlinearity. In ``fit`` only the ratios of weights count.

    References
    ----------
    Mesterharm (2001), Transforming linear-threshold learning algorithms into multi-class linear learning algorithms,
    Rutgers dcs-tr-460.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import linmax
    >>> X, y = load_iris(return_X_y=True)
    >>> model = linmax.LinearMaxClassifier("AR-perceptron").fit(X, y)
    >>> model.coef_.shape, bool(model.score(X, y) > 0.95)
    ((3, 4), True)
    """

    _model: Model
    _scaling: Scaling
    _sparse: bool
    _declared: bool
    _keeps_coverage = False  # for prediction sets
    _frames: FrameReader | None = None  # of tables with categories
    _shift: np.ndarray | None = None  # added to the log probability of each class of `classes_`
    classes_: np.ndarray

    def __init__(
        self,
        learner: LearnerLike = DEFAULT_LEARNER,
        *,
        scale: str | None = None,
        thresholds: bool = True,
        max_iter: int = 20,
        tol: float | None = 1e-3,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 2,
        shuffle: bool = True,
        class_weight: Mapping[Label, float] | str | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.learner = learner
        self.scale = scale
        self.thresholds = thresholds
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    # -- learning --

    @all_or_nothing
    def fit(self, X: Matrix, y: Labels, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit until the loss stops falling; without ``warm_start``, from scratch.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (samples, attributes)
            The attributes. Text, categories and booleans of a DataFrame (pandas, polars, Arrow) are attributes as in
            `linmax.stream`; None and nan are missing, dates are left out with a warning.
        y : array of shape (samples,)
            The class of each sample.
        sample_weight : array of shape (samples,), default=None
            A weight for each sample, 1 by default; only their ratios count, and 0 leaves a sample out.

        Returns
        -------
        LinearMaxClassifier
            This estimator.
        """
        rule = self._stopping_rule()
        resume = bool(self.warm_start) and hasattr(self, "_model")
        y = labels_of(X, y)
        X = self._attributes(X, reset=not resume)
        shifts = scales_attributes(as_learner(self.learner))
        weights = relative_weights(sample_weight, None if shifts else self.class_weight, X, y)
        scaling = deepcopy(self._scaling) if resume else Scaling(scale_for(self.learner, self.scale))
        self._sparse = self._sparse if resume else sparse.issparse(X)
        instances = self._experts(X, grow=True)
        scaling.apply(instances[np.flatnonzero(weights > 0.0)])
        instances = filled(scaling.apply(instances, learn=False))
        samples = Samples(instances, y, weights, bool(self.shuffle), check_random_state(self.random_state), shifts)
        classes = self._known_classes(y[samples.rows] if resume else y, y[:0], None, resume)
        if resume:
            model = self._model.snapshot()()
        else:
            model, self._declared = self._new_model(instances, classes.tolist()), False
            if rule.max_iter > 1:
                foresee(model, samples)
        self._model, self.n_iter_, self.loss_curve_ = fit(model, samples, rule)
        self._scaling, self.classes_, self._shift = scaling, classes, None
        if shifts and self.class_weight is not None:
            given = self.class_weight if isinstance(self.class_weight, str) else dict(self.class_weight)
            self._shift = np.log(compute_class_weight(given, classes=classes, y=y[samples.rows]))
        return self

    @all_or_nothing
    def partial_fit(
        self,
        X: Matrix,
        y: Labels,
        classes: Labels | None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        wrong: Labels | None = None,
    ) -> Self:
        """Continue learning from these samples, in their order.

        Parameters
        ----------
        X, y
            As in `fit`.
        classes : array, default=None
            In the first call: all classes there will be. By default classes join with their first label.
        sample_weight : array of shape (samples,), default=None
            How much each sample counts, 1 by default: it scales the learner's step; 0 leaves it out.
        wrong : array of bool of shape (samples,), default=None
            Samples of which only a class that is not the label is known, the one in y. They are learned as another
            class, drawn with the model's own probabilities.

        Returns
        -------
        LinearMaxClassifier
            This estimator.
        """
        self._stopping_rule()
        first = not hasattr(self, "_model")
        y = labels_of(X, y)
        weights = self._weights(sample_weight, X, y)
        X = self._attributes(X, reset=first)
        rows = np.flatnonzero(weights > 0.0)
        denied = np.zeros(len(y), np.bool_) if wrong is None else mask_of(wrong, len(y))
        if first and classes is None and denied[rows].all() and len(rows):
            raise ValueError("wrong answers alone do not name the classes; pass classes=")
        names = self._known_classes(y[rows][~denied[rows]], y[denied], classes, not first)
        if first:
            self._sparse, self.n_iter_, self._declared = sparse.issparse(X), 0, classes is not None
        scaling = Scaling(scale_for(self.learner, self.scale)) if first else deepcopy(self._scaling)
        instances = filled(scaling.apply(self._experts(X, grow=True)[rows]))
        if first:  # undeclared classes join with their first labels, so that calls may be cut anywhere
            self._model = self._new_model(instances, None if classes is None else names.tolist())
        if denied.any():
            model = deepcopy(self._model)  # a trial may be refused
            model.run(instances, y[rows], grow=True, weights=weights[rows], wrong=denied[rows])
            self._model = model
        else:
            self._model.run(instances, y[rows], grow=True, weights=weights[rows])
        self._scaling, self.classes_, self._shift = scaling, names, None
        if isinstance(self.class_weight, Mapping) and scales_attributes(as_learner(self.learner)):
            self._shift = np.log([self.class_weight.get(name, 1.0) for name in names.tolist()])
        self.n_iter_ += 1
        return self

    def _known_classes(self, y: np.ndarray, wrong: np.ndarray, classes: Labels | None, resume: bool) -> np.ndarray:
        known, fixed = (self.classes_, self._declared) if resume else (None, False)
        return known_classes(y, wrong, classes, known, fixed)

    def _new_model(self, instances: Instances, classes: list[Label] | None) -> Model:
        """Return a model that has learned nothing; without ``classes`` they join."""
        model = Model(self.learner, instances.layout, classes or (), Settings(discover=classes is None))
        return model.follow() if self._keeps_coverage else model

    def _stopping_rule(self) -> StoppingRule:
        """Check the parameters."""
        for name in ("thresholds", "shuffle", "warm_start"):
            boolean(name, getattr(self, name))
        if self.scale is not None:
            one_of("scale", self.scale, SCALINGS)
        names = ("max_iter", "tol", "early_stopping", "validation_fraction", "n_iter_no_change", "verbose")
        rule = StoppingRule(*(getattr(self, name) for name in names))
        rule.check()
        return rule

    def _weights(self, sample_weight: npt.ArrayLike | None, X: Matrix, y: np.ndarray) -> np.ndarray:
        """Return the weights of samples of one of many calls."""
        weights = weights_of(sample_weight, X)
        if self.class_weight is None:
            return weights
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all samples at once, which partial_fit never has; pass a "
                "dict, or sample_weight"
            )
        if scales_attributes(as_learner(self.learner)):
            return weights
        return weights * np.array([self.class_weight.get(name, 1.0) for name in y.tolist()])

    # -- instances --

    def _attributes(self, X: Matrix, reset: bool = False) -> Any:
        """Return the checked attributes: a dense or sparse matrix, or a table with categories."""
        refuse_masked("X", X)
        columnar = is_columnar(X)
        if reset:
            self._frames = FrameReader.of(X) if columnar and FrameReader.has_categories(X) else None
        if self._frames is not None:
            if not columnar:
                raise ValueError(f"X must be a table with the columns of fit, such as {[*self._frames.kinds][:3]}")
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        if columnar and not reset and FrameReader.has_categories(X):
            raise ValueError(
                "X has text, categories or dates, but the model was fitted on numbers; fit it on such a table"
            )
        found = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=np.float64, order="C", ensure_all_finite="allow-nan"
        )
        return without_nan(found) if sparse.issparse(found) else found

    def _experts(self, X: Any, grow: bool = False) -> Instances:
        """Return attributes as instances, dense or sparse like those that the weights were made for.

        With ``grow`` new categories of a table get an attribute, else they are left out.
        """
        if self._frames is not None:
            return self._frames.read(X, grow).with_constant(float(bool(self.thresholds)))
        if self._sparse:
            X = sparse.csr_array(
                without_nan(X) if sparse.issparse(X) else np.nan_to_num(X, posinf=np.inf, neginf=-np.inf)
            )
        elif sparse.issparse(X):
            X = X.toarray()
        if sparse.issparse(X) or not np.isnan(X).any():
            return instances(attributes=X, thresholds=bool(self.thresholds))
        found = instances(attributes=np.where(np.isnan(X), 0.0, X), thresholds=bool(self.thresholds))
        return replace(found, dense=X)  # the scaling takes nan for missing

    def _instances(self, X: Matrix) -> Instances:
        check_is_fitted(self)
        return filled(self._scaling.apply(self._experts(self._attributes(X)), learn=False))

    # -- predictions --

    @property
    def _order(self) -> np.ndarray:
        """The model's number of each class in `classes_`."""
        return np.array([self._model.classes.index(name) for name in self.classes_.tolist()], np.int64)

    def decision_function(self, X: Matrix) -> np.ndarray:
        """Return the scores zeta(j) of weights of 2-norm 1: (n, k), or for two classes (n,), a difference.

        A learner without a single weight vector gives its scores as they are: votes, shares, or sums of such scores.
        """
        instances = self._instances(X)
        engine, fitted = self._model.engine, self._model.fitted(instances)
        weights = self._weight_vector()
        if weights is None:
            table = engine.judge(fitted)[1]
        else:
            table = engine.rate(engine.known_in(fitted, False), weights)[1] / (float(np.linalg.norm(weights)) or 1.0)
        table = table[:, self._order] + (0.0 if self._shift is None else self._shift)
        return table[:, 1] - table[:, 0] if len(self.classes_) == 2 else table

    def _scores(self, X: Matrix) -> tuple[np.ndarray, np.ndarray]:
        """Return predictions and scores in the model's classes."""
        instances = self._instances(X)
        predictions, scores = self._model.judge(self._model.fitted(instances))
        if self._shift is not None:
            scores[:, self._order] += self._shift
            predictions = scores.argmax(axis=1)
        return predictions, scores

    def predict(self, X: Matrix) -> np.ndarray:
        """Return the class of each sample."""
        predictions = self._scores(X)[0]
        return self.classes_[np.argsort(self._order)[predictions]]

    def predict_proba(self, X: Matrix) -> np.ndarray:
        """Return the probability of each class (n, k): a softmax of the scores.

        The pools for attributes learn these probabilities. Of other learners the softmax is calibrated: its sharpness
        and guess rate are fitted to the scores of up to 1,000 recent samples, each scored before its label was seen (in
        ``fit``, of held-out samples; see `linmax.models.calibration`).
        """
        scores = self._scores(X)[1]
        return self._model.probabilities(scores)[:, self._order]

    def predict_log_proba(self, X: Matrix) -> np.ndarray:
        """Return the logarithms of `predict_proba`."""
        return np.log(self.predict_proba(X))

    # -- what was learned --

    @property
    def mistakes_(self) -> int:
        """Mistakes so far, each counted before the label was seen; those of later passes count as well."""
        return self._model.mistakes

    def _weight_vector(self) -> np.ndarray | None:
        """Return the weights over all coordinates if the learner predicts with one vector."""
        engine = self._model.engine
        with suppress(ValueError):
            return engine.top.hypothesis(engine)[0] if engine.top.linear else None
        return None

    def _weight_arrays(self, name: str) -> WeightArrays:
        """Return the weights to inspect: scaled to 2-norm 1 as the scores are, or the linear form of a pool."""
        if not hasattr(self, "_model"):
            raise AttributeError(f"{name} is known only after fit or partial_fit")
        if self._scaling.kind not in ("max", "none"):
            raise AttributeError(
                f"{name}: with scale={self._scaling.in_effect!r} scores are not linear in the attributes"
            )
        weights = self._weight_vector()
        if weights is not None:
            return self._model.weights.arrays.over(float(np.linalg.norm(weights)) or 1.0)
        with suppress(ValueError):
            return self._model.weights.arrays
        raise AttributeError(
            f"{name}: {self._model.learner} predicts with several weight vectors; choose one such as 'AR-perceptron', "
            "or use decision_function"
        )

    @property
    def coef_(self) -> np.ndarray:
        """The weights of each class, for unscaled attributes; of a pool, for attributes as it scales them."""
        table = self._weight_arrays("coef_").attributes[:, self._order].T
        if self._scaling.kind == "max":
            maxima = np.concatenate([self._scaling.arrays["dense"][:, 0], self._scaling.arrays["sparse"][:, 1]])
            table = table / np.where(maxima > 0.0, maxima, 1.0)
        return table[1:] - table[:1] if len(self.classes_) == 2 else table

    @property
    def intercept_(self) -> np.ndarray:
        """The threshold of each class; 0 without thresholds."""
        thresholds = self._weight_arrays("intercept_").thresholds
        thresholds = thresholds[self._order] if self.thresholds else np.zeros(len(self.classes_))
        return thresholds[1:] - thresholds[:1] if len(self.classes_) == 2 else thresholds

    # -- files --

    def __getstate__(self) -> dict[str, Any]:
        # Plain data and arrays, as `skops.io` takes them; an engine holds compiled functions by address.
        state = dict(super().__getstate__())
        if "_model" in state:
            state |= {"_model": self._model.packed(), "_scaling": (self._scaling.description, self._scaling.arrays)}
        if self._frames is not None:
            state["_frames"] = self._frames.kinds, self._frames.vocabulary.arrays()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_model" in state:
            self._model = Model.from_state(*state["_model"])
            self._scaling = Scaling.from_state(*state["_scaling"])
        if state.get("_frames") is not None:
            kinds, names = state["_frames"]
            self._frames = FrameReader(kinds, Vocabulary.from_arrays(names))

    def _state(self) -> State:
        """Return parameters and all that was learned, as plain data and arrays."""
        check_is_fitted(self)
        header, state = self._model.state()
        description = {
            "parameters": saved_parameters(self),
            "model": header,
            "scaling": self._scaling.description,
            "classes": {"names": self.classes_.tolist(), "type": self.classes_.dtype.str},
            "features": self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None,
            "fields": {name: getattr(self, name) for name in SAVED_FIELDS if hasattr(self, name)},
        }
        frames: dict[str, np.ndarray] = {}
        if self._frames is not None:
            description["columns"], frames = list(self._frames.kinds.items()), self._frames.vocabulary.arrays()
        arrays = {f"names.{name}": array for name, array in frames.items()}
        arrays |= {f"model.{name}": array for name, array in state.items()}
        return description, arrays | {f"scaling.{name}": array for name, array in self._scaling.arrays.items()}

    @classmethod
    def _from_state(cls, description: Header, arrays: Arrays) -> Self:
        """Return the estimator whose `_state` this was."""
        model, parts, classes = cls(**description["parameters"]), by_part(arrays), description["classes"]
        model._model = Model.from_state(description["model"], parts["model"])
        model._scaling = Scaling.from_state(description["scaling"], parts.get("scaling", {}))
        model.classes_ = np.array(classes["names"], dtype=classes["type"])
        if description["features"] is not None:
            model.feature_names_in_ = np.array(description["features"], dtype=object)
        if "columns" in description:
            model._frames = FrameReader(dict(description["columns"]), Vocabulary.from_arrays(parts["names"]))
        for name in SAVED_FIELDS:
            if name in description["fields"]:
                setattr(model, name, description["fields"][name])
        return model

    def save(self, path: PathLike) -> None:
        """Save to a file that is safe to open: arrays and plain data (see `linmax.util.files`)."""
        files.write(path, type(self).__name__, *self._state())

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Load a model written by `save`; it continues exactly where the other stopped."""
        description, arrays = files.read(path, cls.__name__)
        with whole_file(path):
            return cls._from_state(description, arrays)


def saved_parameters(estimator: BaseEstimator, but: tuple[str, ...] = ()) -> Header:
    """Return the parameters of an estimator as plain data, without those named in ``but``."""
    parameters = {name: value for name, value in estimator.get_params(deep=False).items() if name not in but}
    if not isinstance(estimator.learner, str):
        parameters["learner"] = str(as_learner(estimator.learner))
    for name, value in parameters.items():
        if value is not None and not isinstance(value, (bool, int, float, str, list)):
            raise TypeError(f"{name}={value!r} cannot be saved; use a number or text")
    return parameters
