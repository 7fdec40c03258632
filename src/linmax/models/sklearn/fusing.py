"""`FusionClassifier`: an on-line learner over the answers of base models."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
)

from linmax.models.model import chosen
from linmax.models.sklearn.base_models import (
    checked_folds,
    doubling,
    goes_on,
    out_of_fold,
    placed,
    ratings,
    teach,
)
from linmax.models.sklearn.class_weights import from_arrays, to_arrays
from linmax.models.sklearn.composition import Composition
from linmax.models.sklearn.saying import WhatModelsSay
from linmax.models.sklearn.shared import DEFAULT_LEARNER, OnLineClassifier, all_or_nothing, targets, whole_file
from linmax.models.sklearn.weighting import Showing, shares_of, weights_of
from linmax.models.wrong import mask_of
from linmax.util import files
from linmax.util.checks import fraction

__all__ = ["FusionClassifier"]


FIRST_SAMPLES = 16  # samples that start models which have seen none


class FusionClassifier(Composition, WhatModelsSay):
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
    ensemble
        Whether the models that were fitted on all folds but one are kept, and answer together with the one that was
        fitted on everything (`CalibratedClassifierCV` has this word): fewer errors, and predicting takes as many times
        longer as there are folds, and one. False: only the latter answers, as in ``StackingClassifier``.
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
        The fitted models, the same by name, and the method that each is asked by. With ``ensemble`` each stands for
        several that answer together; whatever else is asked of it is told by the one that was fitted on everything.
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

    Decision values are brought to [0, 1] sample by sample, the lowest class at 0 and the highest at 1. A model with
    ``predict_proba`` rates twice, by its probabilities and by their logarithms (see `linmax.normalization`); its weight
    is the sum of both. For the default learner ``fit`` adds a rater with a weight for each model, class rated and class
    predicted (`linmax.models.sklearn.class_weights`), from which it learns how far such detail pays.

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

    _follows = True

    def __init__(
        self,
        estimators: Sequence[tuple[str, Any]],
        learner: Any = DEFAULT_LEARNER,
        *,
        cv: Any = None,
        stack_method: str = "auto",
        ensemble: bool = True,
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
        self.ensemble = ensemble
        self.passthrough = passthrough
        self.shuffle = shuffle
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- learning --

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Fit the models and learn to fuse them.

        Parameters
        ----------
        X
            The samples, as the models take them.
        y
            The class of each sample.
        sample_weight
            A weight for each sample. It goes to every model (one that takes none is refused; with scikit-learn's
            metadata routing, to those that request it) and to the fusion, where only the ratios of weights count (see
            `LinearMaxClassifier`).
        **params
            With metadata routing: what the models and the splitter request, such as ``groups``.

        Returns
        -------
        FusionClassifier
            This one.
        """
        models = self._checked()
        y = targets(X, y)
        self._check_columns(X, reset=True)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        random = check_random_state(self.random_state) if self.shuffle else None
        part = shares_of(weights, None, X, y)
        order = Showing(np.flatnonzero(part > 0.0), part, random).order()
        routed = self._routed("fit", models, weights, params) if not self._prefit else {}
        self._fit(models, (X, y, weights), order, routed, np.unique(y), declared=False)
        return self

    def _fit(
        self,
        models: list[tuple[str, Any]],
        data: tuple[Any, np.ndarray, np.ndarray | None],
        order: np.ndarray,
        routed: dict[str, dict[str, Any]],
        classes: np.ndarray,
        declared: bool,
        row_weights: np.ndarray | None = None,
    ) -> None:
        """Fit the models, and let the fusion learn from what they say of samples that they have not seen."""
        X, y, weights = data
        methods = [self._method(name, model) for name, model in models]
        if self._prefit:
            fitted, classes = self._taken(models, classes)
            said = ratings(fitted, methods, X, classes)
        else:
            splitter, (X,) = check_cv(self.cv, y=y, classifier=True), indexable(X)
            folds = checked_folds(splitter.split(X, y, **routed["splitter"]), y)  # the same for all, whatever it draws
            found = Parallel(n_jobs=self.n_jobs)(
                delayed(out_of_fold)(model, method, (X, y, routed[name]), folds, self.verbose)
                for (name, model), method in zip(models, methods, strict=True)
            )
            said = [
                answers if method == "predict" else placed(np.unique(y), answers, classes)
                for (answers, _), method in zip(found, methods, strict=True)
            ]
            fitted = [model if self.ensemble else model.whole for _, model in found]
        self._adopt(models, fitted, methods)
        self._keep_scale(X, known=True)
        detail = self._fit_detail(said, y, weights, classes)
        instances = self._instances(said, X, classes, detail)
        self._start(instances, classes, declared=declared, discover=False)
        self._learn(instances[order], y[order], weights=None if row_weights is None else row_weights[order])

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, wrong: Any = None) -> Self:
        """Let the models predict these samples, the fusion learn from that, and then the models that can.

        The first call starts the models: where all of them have a ``partial_fit``, the samples come in stretches of
        doubling length, each predicted before it is learned; otherwise it is a ``fit`` in the order of the samples.

        Parameters
        ----------
        X, y
            As in `fit`.
        classes
            At the first call: all classes there will be. Without it, classes are taken in as their labels come.
        sample_weight
            How much each sample counts, 1 by default: for the fusion (`linmax.models.showings`), and as the models' own
            weights.
        wrong
            True or False for each sample: whether all that is known is that its label is *not* the one in y. The fusion
            learns another class in its stead, drawn as probable as it holds it to be; the models learn from the other
            samples. In the first call these others come first.

        Returns
        -------
        FusionClassifier
            This one.
        """
        models = self._checked()
        first = not hasattr(self, "_model")
        y = targets(X, y)
        denied = np.zeros(len(y), np.bool_) if wrong is None else mask_of(wrong, len(y))
        if first and denied.any():
            return self._begin_with_wrong(X, y, classes, sample_weight, denied)
        self._check_columns(X, reset=first)
        weights = None if sample_weight is None else weights_of(sample_weight, X)
        begins = first and (self._prefit or not all(goes_on(model) for _, model in models))
        learning = [(name, model) for name, model in models if begins or goes_on(model)]
        routed = self._routed("fit" if begins else "partial_fit", learning, weights, {})
        row_weights = np.ones(len(y)) if weights is None else weights
        known, begin = self._classes_for(y[~denied], classes, y[denied]), 0
        if begins:
            rows = np.flatnonzero(row_weights > 0.0)
            self._fit(
                models, (X, y, weights), rows, routed, known, declared=classes is not None, row_weights=row_weights
            )
            known, begin = self.classes_, len(y)
        elif first:
            begin = self._begin(models, (X, y), routed, known, declared=classes is not None)
        for part in doubling(begin, len(y)):
            block, labels = _safe_indexing(X, part), y[part]
            rows, part_weights = np.flatnonzero(row_weights[part] > 0.0), row_weights[part]
            said = ratings(self.estimators_, self.stack_method_, block, known)
            instances = self._instances(said, block, known, self._detailed(said, known), learning=True)[rows]
            self._learn_told(instances, labels[rows], denied[part][rows], part_weights[rows])
            if denied[part].any():
                part = part[~denied[part]]
                block, labels = _safe_indexing(X, part), y[part]
            for name, model in self.named_estimators_.items():
                if goes_on(model) and len(part):
                    own = routed.get(name, {}).get("sample_weight")
                    teach(model, block, labels, None if own is None else own[part])
        self.classes_ = known
        return self

    def _begin_with_wrong(self, X: Any, y: np.ndarray, classes: Any, sample_weight: Any, denied: np.ndarray) -> Self:
        """A first call with samples that say only that an answer was wrong: they come after the others."""
        if denied.all():
            raise ValueError("wrong answers alone start no models; give samples with labels first")
        weights = None if sample_weight is None else weights_of(sample_weight, X)
        for rows in (np.flatnonzero(~denied), np.flatnonzero(denied)):
            more = None if weights is None else weights[rows]
            self.partial_fit(_safe_indexing(X, rows), y[rows], classes, more, wrong=denied[rows])
        return self

    def _begin(
        self,
        models: list[tuple[str, Any]],
        data: tuple[Any, np.ndarray],
        routed: dict[str, dict[str, Any]],
        known: np.ndarray,
        declared: bool,
    ) -> int:
        """Start models that have seen nothing with the first samples, and a fusion that has seen none; how many."""
        X, y = data
        head = np.arange(min(FIRST_SAMPLES, max(1, len(y) // 2)))
        fitted = [clone(model) for _, model in models]
        for (name, _), model in zip(models, fitted, strict=True):
            names = None if isinstance(model, OnLineClassifier) and not declared else known
            own = routed[name].get("sample_weight")
            teach(model, _safe_indexing(X, head), y[head], None if own is None else own[head], names)
        methods = [self._method(name, model) for name, model in models]
        self._adopt(models, fitted, methods)
        self._keep_scale(X, known=False)
        self._detail = None
        silent = [known[:0] if method == "predict" else np.zeros((0, len(known))) for method in methods]
        nothing = self._instances(silent, _safe_indexing(X, np.arange(0)), known, None)
        self._start(nothing, known, declared=declared, discover=False)
        return len(head)

    def predict(self, X: Any, *, reject: float | None = None) -> np.ndarray:
        """The class of each sample; nothing is learned.

        With ``reject``, a risk, the answer is None, "do not know", where the probability of being wrong is greater.
        """
        found = super().predict(X)
        if reject is None:
            return found
        answers = np.array(found, dtype=object)
        answers[self.predict_proba(X).max(axis=1) < 1.0 - fraction("reject", reject, 0.1)] = None
        return answers

    def predict_set(self, X: Any, coverage: float = 0.9) -> list[tuple[Any, ...]]:
        """For each sample the classes that hold the right one as often as ``coverage`` says, the likeliest first.

        Coverage is kept on-line, whatever changes (see `VoteFusion.predict_set`), and so best after ``partial_fit``.
        """
        check_is_fitted(self)
        table = self._judge(self._instances_of(X))[1]
        return chosen(table, self._model.sets(table, coverage), self._model.classes)

    @property
    def _extra(self) -> dict[str, np.ndarray]:
        return to_arrays(self._detail, self.classes_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fusion to a file that is safe to open: arrays and plain data (see `linmax.util.files`).

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
            model._detail = from_arrays(model._unpack(description, arrays), model.classes_)
            names = description["models"]
        kept = model._checked()
        if [name for name, _ in kept] != names:
            raise ValueError(f"estimators: {path} fuses {names}, got {[name for name, _ in kept]}")
        fitted, classes = model._taken(kept, model.classes_)
        if len(classes) > len(model.classes_):
            raise ValueError(f"estimators know classes beyond {model.classes_.tolist()}; give the models of {path}")
        model._adopt(kept, fitted, model.stack_method_)
        return model
