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
    _check_sample_weight,
    validate_data,
)

from linmax.data.experts import Experts, experts
from linmax.data.scaling import KINDS, Scaling
from linmax.models.sklearn.shared import (
    DEFAULT_LEARNER,
    OnLineClassifier,
    all_or_nothing,
    scale_for,
    showings,
    shown_rows,
    targets,
    weights_of,
    whole_file,
)
from linmax.models.weights import WeightArrays
from linmax.util import files
from linmax.util.checks import boolean, one_of, refuse_masked, whole

__all__ = ["LinearMaxClassifier"]

ENOUGH_TRIALS, MOST_PASSES = 1000, 10  # of fit, when the number of passes is not given


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
        refuses larger ones. Others: `linmax.data.scaling`. None: "none" for the pools that scale attributes by
        themselves ("auto", "attributes"), and "max" for all other learners.
    thresholds
        Learn a threshold b_j for each class.
    passes
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
    >>> model = linmax.LinearMaxClassifier("AR-perceptron", passes=10).fit(X, y)
    >>> model.coef_.shape, bool(model.score(X, y) > 0.95)
    ((3, 4), True)
    """

    def __init__(
        self,
        learner: Any = DEFAULT_LEARNER,
        *,
        scale: str | None = None,
        thresholds: bool = True,
        passes: int | None = None,
        shuffle: bool = True,
        random_state: Any = 0,
    ) -> None:
        self.learner = learner
        self.scale = scale
        self.thresholds = thresholds
        self.passes = passes
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
        passes = min(MOST_PASSES, -(-ENOUGH_TRIALS // max(1, len(rows)))) if self.passes is None else self.passes
        for epoch in range(passes):
            order = random.permutation(rows) if self.shuffle else rows
            self.n_iter_ += 1
            if not self._learn(instances[order], y[order], first_pass=epoch == 0):
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
        first = not hasattr(self, "_model")
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

    def _linear(self, name: str) -> WeightArrays:
        found = self._one_vector(name)
        if self._scaling.kind not in ("max", "none"):
            raise AttributeError(f"{name}: with scale={self._scaling.kind!r} scores are not linear in the attributes")
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

    def _check_parameters(self) -> None:
        boolean("thresholds", self.thresholds)
        boolean("shuffle", self.shuffle)
        if self.passes is not None:
            whole("passes", self.passes, 1)
        if self.scale is not None:
            one_of("scale", self.scale, KINDS)

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Any, np.ndarray]:
        if y is None:
            targets(X, y)
        refuse_masked("X", X)
        refuse_masked("y", y)
        X, y = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype=np.float64, order="C")
        check_classification_targets(y)
        return X, y

    def _experts(self, X: Any) -> Experts:
        return experts(attributes=X, thresholds=bool(self.thresholds))

    def _instances_of(self, X: Any) -> Experts:
        refuse_masked("X", X)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64, order="C")
        return self._scaling.apply(self._experts(self._like_the_first(X)), learn=False)
