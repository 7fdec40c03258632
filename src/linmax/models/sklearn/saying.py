"""What base models say of samples, as voters and raters, and beside it the rater with weights for each class."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from linmax.data.experts import Experts, experts
from linmax.data.normalization import log_shares
from linmax.data.scaling import Scaling
from linmax.engine.notation import as_learner
from linmax.learners.auto import AutomaticPool
from linmax.learners.votes.pool import VotesPool
from linmax.models.sklearn.base_models import rated, ratings
from linmax.models.sklearn.class_weights import ClassWeights, cross_fitted, rate, shares
from linmax.models.sklearn.shared import OnLineClassifier, scale_for
from linmax.util.checks import refuse_masked

__all__ = ["WhatModelsSay"]


class WhatModelsSay(TransformerMixin, OnLineClassifier):  # type: ignore[misc]
    """A fusion's instances, and its models' weights."""

    passthrough: bool
    estimators_: list[Any]
    stack_method_: list[str]
    named_estimators_: dict[str, Any]
    _detail: ClassWeights | None

    def transform(self, X: Any) -> Any:
        """What the models say of each sample: k ratings of each, a vote being 1 for its class; then the attributes,
        if they pass through."""
        check_is_fitted(self)
        self._check_columns(X, reset=False)
        said = ratings(self.estimators_, self.stack_method_, X, self.classes_)
        blocks = [
            rated(self.classes_, told, self.classes_, method) if method == "predict" else told
            for told, method in zip(said, self.stack_method_, strict=True)
        ]
        if not self.passthrough:
            return np.hstack(blocks)
        refuse_masked("X", X)
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
        """The weight of each model, the heaviest first; the magnitudes add up to 1. Of a pool, about its worth."""
        found = self._shown("weights_")
        voters, raters = iter(found.voters.tolist()), iter(found.raters.tolist())
        copies = {"predict_proba": 2}  # the probabilities and their logarithms
        named = {
            name: next(voters) if method == "predict" else sum(next(raters) for _ in range(copies.get(method, 1)))
            for name, method in zip(self.named_estimators_, self.stack_method_, strict=True)
        }
        if self._detail is not None:
            rating = [name for name, method in zip(named, self.stack_method_, strict=True) if method != "predict"]
            whole = sum(raters)
            for name, part in zip(rating, shares(self._detail, len(rating)).tolist(), strict=True):
                named[name] += whole * part
        total = sum(map(abs, named.values())) or 1.0
        heaviest = sorted(named.items(), key=lambda item: -abs(item[1]))
        return {name: weight / total for name, weight in heaviest}

    def _fit_detail(
        self, said: list[Any], y: np.ndarray, weights: np.ndarray | None, classes: np.ndarray
    ) -> np.ndarray | None:
        """Fit weights for each class where a pool fuses the models, which finds out how far they pay; its ratings."""
        self._detail: ClassWeights | None = None
        rates = self._rates(said)
        if rates is None or not isinstance(as_learner(self.learner), (AutomaticPool, VotesPool)):
            return None
        found = cross_fitted(rates, y, weights, classes)
        if found is not None:
            self._detail = found[0]
        return None if found is None else found[1]

    def _rates(self, said: list[Any]) -> np.ndarray | None:
        """What those say that rate classes, (samples, models, classes)."""
        tables = [told for told, method in zip(said, self.stack_method_, strict=True) if method != "predict"]
        return np.stack(tables, axis=1) if tables else None

    def _instances_of(self, X: Any) -> Experts:
        self._check_columns(X, reset=False)
        said = ratings(self.estimators_, self.stack_method_, X, self.classes_)
        return self._instances(said, X, self.classes_, self._detailed(said, self.classes_))

    def _detailed(self, said: list[Any], classes: np.ndarray) -> np.ndarray | None:
        """The ratings of the rater with weights for each class, if there is one."""
        rates = self._rates(said)
        return None if self._detail is None or rates is None else rate(self._detail, rates, classes)

    def _instances(
        self, said: list[Any], X: Any, classes: np.ndarray, detail: np.ndarray | None, *, learning: bool = False
    ) -> Experts:
        """What the models said, and the attributes if they pass through, as voters, raters and attributes."""
        told = list(zip(said, self.stack_method_, strict=True))
        votes = [output for output, method in told if method == "predict"]
        scores = []
        for output, method in [*told, *([] if detail is None else [(detail, "predict_proba")])]:
            if method != "predict":
                scores.append(output)
            if method == "predict_proba":  # what is surely wrong shows in the logarithm alone
                scores.append(log_shares(output))
        attributes = None
        if self.passthrough:
            refuse_masked("X", X)
            attributes = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=0)
            attributes = self._like_the_first(attributes)
        instances = experts(
            votes=np.column_stack(votes) if votes else None,
            scores=np.stack(scores, axis=1) if scores else None,
            attributes=attributes,
            classes=classes.tolist(),
        )
        return self._scaling.apply(instances, learning) if self.passthrough else instances

    def _check_columns(self, X: Any, reset: bool) -> None:
        """Their number and names; what they hold is for the models to check."""
        refuse_masked("X", X)
        if getattr(X, "ndim", 2) == 1:
            check_array(X)  # which says how to reshape it
        validate_data(self, X, skip_check_array=True, reset=reset)

    def _keep_scale(self, X: Any, known: bool) -> None:
        """Begin the scale of attributes that pass through."""
        if self.passthrough:
            refuse_masked("X", X)
            attributes = check_array(X, accept_sparse="csr", dtype=np.float64)
            self._sparse = sparse.issparse(attributes)
            self._scaling = Scaling(scale_for(self.learner, None))
            if known:
                self._scaling.apply(experts(attributes=attributes))
