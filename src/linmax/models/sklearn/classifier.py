"""`LinearMaxClassifier`: an on-line learner on attributes."""

from __future__ import annotations

import os
from copy import deepcopy
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    validate_data,
)

from linmax.data.experts import Experts, experts
from linmax.data.scaling import SCALINGS, Scaling
from linmax.models.sklearn.passes import PassPlan, Samples, fit, foresee
from linmax.models.sklearn.shared import (
    DEFAULT_LEARNER,
    OnLineClassifier,
    all_or_nothing,
    refuse_mixed,
    scale_for,
    targets,
    whole_file,
)
from linmax.models.sklearn.weighting import shares_of, weights_of
from linmax.models.weights import WeightArrays
from linmax.models.wrong import mask_of
from linmax.util import files
from linmax.util.checks import boolean, one_of, refuse_masked

__all__ = ["LinearMaxClassifier"]


class LinearMaxClassifier(OnLineClassifier):
    """A linear classifier learned on-line: any learner of this library on attributes, for scikit-learn.

    The score of class j is zeta(j) = w_j . x + b_j, the weights w those of the learner; the prediction is the class
    with the highest score (Mesterharm 2001, sections 2.2 and 5).

    Parameters
    ----------
    learner
        A rule, a technique, or text such as "AR-winnow(1.1)". The default is the pool for attributes, with nothing to
        tune (see `linmax.vr_combine`); it is not a single weight vector.
    scale
        "max": each attribute is divided by its largest magnitude, because many rules need attributes in [-1, 1]; in
        ``fit`` that over the samples given, in ``partial_fit`` that so far, the sample itself included. A larger one
        in ``predict`` counts as the largest. "none": attributes are taken as they are, and a rule that needs it
        refuses larger ones. Others: `linmax.data.scaling`. None: "none" for the pools that scale attributes by
        themselves ("auto", "attributes"), and "max" for all other learners.
    thresholds
        Learn a threshold b_j for each class.
    max_iter
        Most passes of ``fit`` over the samples. With 1 nothing is held out.
    tol, n_iter_no_change
        ``fit`` stops when at ``n_iter_no_change`` looks in a row the loss was not lower than before by more than
        ``tol`` (a loss of samples held out, by more than chance too), or when a pass changes nothing. ``tol=None``:
        only then. There is a look after each pass; with a pool for attributes, after the first, eight in a pass, or two
        where samples are less than a thousand.
    early_stopping
        Which loss that is. "auto": the log loss of samples that are held out, ``validation_fraction`` of them and at
        least 300, or of less than a thousand samples all, in two halves. In the end all samples are learned, in as many
        passes as were best; a pool goes on with those that were held out. True: that of ``validation_fraction`` of the
        samples, which are never learned from; the model is that of the best look. False: the share of mistakes in a
        pass over all samples, each made before the label was seen.
    validation_fraction
        Part of the samples that is held out.
    shuffle
        Whether ``fit`` shows the samples in random order, anew in each pass. ``partial_fit`` never does.
    class_weight
        {class: factor of the weights of its samples}, 1 for classes that are left out; "balanced": all classes weigh
        the same in ``fit``.
    warm_start
        Whether ``fit`` goes on from the model that there is, instead of starting afresh.
    verbose
        Whether ``fit`` prints the loss after each pass.
    random_state
        Of the order and of what is held out; an integer gives the same model each time.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_
        As everywhere in scikit-learn. ``classes_`` grows when ``partial_fit`` meets a class for the first time.
    coef_, intercept_
        Weights and thresholds in the attributes' own scale, (k, n_features) and (k,), for two classes (1, n_features)
        and (1,): ``X @ coef_.T + intercept_`` is `decision_function` for samples within the scale. For a pool such
        as the default, which is not a single weight vector, they are an approximation, to look at and to select
        attributes by: the weights of its members, for the attributes as each scales them, added up as they are fused.
        Other learners with several weight vectors have none, and the scale must be "max" or "none".
    n_iter_
        Passes of ``fit`` over the samples, a part counted as one; calls of ``partial_fit`` since.
    loss_curve_
        The loss by which ``fit`` decided when to stop, at each look.
    mistakes_
        Mistakes so far, each made before the label was seen (in ``fit``, in all passes).

    Notes
    -----
    ``sample_weight`` in ``fit``: a sample is shown in proportion to its weight, so that only the ratios of weights
    count; a pass shows as many samples as have a weight, one of small weight only now and then. In ``partial_fit`` a
    sample of weight w counts w times: the default pool scales its steps, other learners are shown it w times, fractions
    by chance (`linmax.models.showings`).

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

    def __init__(
        self,
        learner: Any = DEFAULT_LEARNER,
        *,
        scale: str | None = None,
        thresholds: bool = True,
        max_iter: int = 20,
        tol: float | None = 1e-3,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 2,
        shuffle: bool = True,
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = 0,
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from these samples until the loss no longer falls; without ``warm_start``, forget everything before.

        Parameters
        ----------
        X
            The attributes, (samples, attributes): an array, a table, or sparse.
        y
            The class of each sample.
        sample_weight
            A weight for each sample, 1 by default; only their ratios count, and 0 leaves a sample out.

        Returns
        -------
        LinearMaxClassifier
            This one.
        """
        plan = self._check_parameters()
        goes_on = bool(self.warm_start) and hasattr(self, "_model")
        X, y = self._validated(X, y, reset=not goes_on)
        samples = self._samples(X, y, sample_weight, goes_on)
        known = self._classes_for(samples.labels[samples.rows], None) if goes_on else np.unique(y)
        if not goes_on:
            self._start(samples.instances, known, declared=False, discover=False)
            if plan.max_iter > 1:
                foresee(self._model, samples)
        found = fit(self._model.kept()() if goes_on else self._model, samples, plan)
        self._model, self.n_iter_, self.loss_curve_, self.classes_ = found.model, found.passes, found.losses, known
        return self

    def _samples(self, X: Any, y: np.ndarray, sample_weight: Any, goes_on: bool) -> Samples:
        """What `fit` shows, scaled by all of it."""
        weights = shares_of(sample_weight, self.class_weight, X, y)
        if not goes_on:
            self._sparse = sparse.issparse(X)
            self._scaling = Scaling(scale_for(self.learner, self.scale))
        instances = self._experts(self._like_the_first(X))
        scaling = deepcopy(self._scaling)
        scaling.apply(instances[np.flatnonzero(weights > 0.0)])
        self._scaling = scaling
        instances = scaling.apply(instances, learn=False)
        return Samples(instances, y, weights, bool(self.shuffle), check_random_state(self.random_state))

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, wrong: Any = None) -> Self:
        """Go on learning from these samples, one after the other, in their order.

        Parameters
        ----------
        X, y
            As in `fit`.
        classes
            At the first call: all classes there will be. Without it, classes are taken in as their labels come.
        sample_weight
            How much each sample counts, 1 by default (see `linmax.models.showings`); 0 leaves it out.
        wrong
            True or False for each sample: whether all that is known is that its label is *not* the one in y. Another
            class is learned in its stead, drawn as probable as the model holds it to be.

        Returns
        -------
        LinearMaxClassifier
            This one.
        """
        self._check_parameters()
        first = not hasattr(self, "_model")
        X, y = self._validated(X, y, reset=first)
        weights = self._weights(sample_weight, X, y)
        rows = np.flatnonzero(weights > 0.0)
        denied = np.zeros(len(y), np.bool_) if wrong is None else mask_of(wrong, len(y))
        if first and classes is None and denied[rows].all() and len(rows):
            raise ValueError("wrong answers alone name no class; pass classes=")
        known = self._classes_for(y[rows][~denied[rows]], classes, y[denied])
        if first:
            self._sparse = sparse.issparse(X)
        scaling = Scaling(scale_for(self.learner, self.scale)) if first else deepcopy(self._scaling)
        instances = scaling.apply(self._experts(self._like_the_first(X)[rows]))
        if first:
            self._start(instances, known, declared=classes is not None, discover=classes is None)
            self.n_iter_ = 0
        self._learn_told(instances, y[rows], denied[rows], weights[rows])
        self._scaling, self.classes_ = scaling, known
        self.n_iter_ += 1
        return self

    def _weights(self, sample_weight: Any, X: Any, y: np.ndarray) -> np.ndarray:
        """The weights of samples of one of many calls."""
        weights = weights_of(sample_weight, X)
        if self.class_weight is None:
            return weights
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all samples at once, which partial_fit never has; give a "
                "dict, or sample_weight"
            )
        return weights * np.array([self.class_weight.get(name, 1.0) for name in y.tolist()])

    @property
    def coef_(self) -> np.ndarray:
        """The weights of each class, in the attributes' own scale; of a pool, of the attributes as it scales them."""
        table = self._shown("coef_").attributes[:, self._order].T
        if self._scaling.kind == "max":
            maxima = self._scaling.arrays["sparse"][:, 1] if self._sparse else self._scaling.arrays["dense"][:, 0]
            table = table / np.where(maxima > 0.0, maxima, 1.0)
        return table[1:] - table[:1] if len(self.classes_) == 2 else table

    @property
    def intercept_(self) -> np.ndarray:
        """The threshold of each class; 0 without thresholds."""
        found = self._shown("intercept_").thresholds
        found = found[self._order] if self.thresholds else np.zeros(len(self.classes_))
        return found[1:] - found[:1] if len(self.classes_) == 2 else found

    def _shown(self, name: str) -> WeightArrays:
        found = super()._shown(name)
        if self._scaling.kind not in ("max", "none"):
            raise AttributeError(
                f"{name}: with scale={self._scaling.in_effect!r} scores are not linear in the attributes"
            )
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that is safe to open: arrays and plain data (see `linmax.util.files`)."""
        self._pack(path, self.get_params(deep=False))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; it goes on exactly where the other stopped."""
        description, arrays = files.read(path, cls.__name__)
        with whole_file(path):
            model = cls(**description["parameters"])
            model._unpack(description, arrays)
        return model

    def _check_parameters(self) -> PassPlan:
        for name in ("thresholds", "shuffle", "warm_start"):
            boolean(name, getattr(self, name))
        if self.scale is not None:
            one_of("scale", self.scale, SCALINGS)
        plan = PassPlan(
            self.max_iter,
            self.tol,
            self.early_stopping,
            self.validation_fraction,
            self.n_iter_no_change,
            self.verbose,
        )
        plan.check()
        return plan

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Any, np.ndarray]:
        if y is None:
            targets(X, y)
        refuse_masked("X", X)
        refuse_masked("y", y)
        refuse_mixed(y)
        X, y = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype=np.float64, order="C")
        check_classification_targets(y)
        return X, y

    def _experts(self, X: Any) -> Experts:
        return experts(attributes=X, thresholds=bool(self.thresholds))

    def _instances_of(self, X: Any) -> Experts:
        refuse_masked("X", X)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64, order="C")
        return self._scaling.apply(self._experts(self._like_the_first(X)), learn=False)
