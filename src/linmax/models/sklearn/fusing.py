"""`FusionClassifier`: an on-line learner over the answers of base models."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import MetaEstimatorMixin, TransformerMixin, clone, is_classifier
from sklearn.ensemble._stacking import _VisualBlock  # where all versions have it
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.pipeline import _name_estimators
from sklearn.utils import Bunch, _safe_indexing, check_array, check_random_state, get_tags
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from linmax.data.experts import Experts, experts
from linmax.data.normalisation import log_shares
from linmax.data.scaling import Scaling
from linmax.models.model import chosen
from linmax.models.sklearn.base_models import (
    METHODS,
    Said,
    asked,
    doubling,
    fitted_like,
    goes_on,
    rated,
    refuse_unweighted,
    teach,
)
from linmax.models.sklearn.shared import (
    DEFAULT_LEARNER,
    OnLineClassifier,
    all_or_nothing,
    scale_for,
    targets,
    whole_file,
)
from linmax.models.sklearn.weighting import Showing, shares_of, weights_of
from linmax.models.wrong import mask_of
from linmax.util import files
from linmax.util.checks import boolean, one_of, refuse_masked

__all__ = ["FusionClassifier"]


FIRST = 16  # samples that start models which have seen none


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

    Decision values are brought to [0, 1] sample by sample, the lowest class at 0 and the highest at 1. A model with
    ``predict_proba`` rates twice, by its probabilities and by their logarithms (see `linmax.normalisation`); its weight
    is the sum of both.

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
        models = [item[1] for item in self.estimators if isinstance(item, (tuple, list)) and hasattr(item[1], "fit")]
        tags.input_tags.sparse = all(get_tags(model).input_tags.sparse for model in models)
        tags.input_tags.allow_nan = not self.passthrough and all(get_tags(m).input_tags.allow_nan for m in models)
        return tags

    def _sk_visual_block_(self) -> _VisualBlock:
        """The models side by side, then what fuses them, for the HTML representation."""
        names, models = zip(*self.estimators, strict=True)
        parallel = _VisualBlock("parallel", models, names=names, dash_wrapped=False)
        return _VisualBlock("serial", (parallel, str(self.learner)), dash_wrapped=False)

    # -- learning --

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the models and learn to fuse them.

        Parameters
        ----------
        X
            The samples, as the models take them.
        y
            The class of each sample.
        sample_weight
            A weight for each sample. It goes to every model (one that takes none is refused) and to the fusion, where
            only the ratios of weights count (see `LinearMaxClassifier`).

        Returns
        -------
        FusionClassifier
            This one.
        """
        models = self._checked()
        y = targets(X, y)
        self._check_columns(X, reset=True)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        shares = shares_of(weights, None, X, y)
        random = check_random_state(self.random_state) if self.shuffle else None
        order = Showing(np.flatnonzero(shares > 0.0), shares, random).order()
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
        hefts: np.ndarray | None = None,
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
            fitted = Parallel(n_jobs=self.n_jobs)(delayed(fitted_like)(model, X, y, options) for _, model in models)
        self._adopt(models, fitted, methods)
        self._keep_scale(X, known=True)
        instances = self._instances(outputs, X, classes)
        self._start(instances, classes, declared=declared, discover=False)
        self._learn(instances[order], y[order], weights=None if hefts is None else hefts[order])

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
        if weights is not None:
            refuse_unweighted([(name, model) for name, model in models if goes_on(model)], "partial_fit")
        hefts = np.ones(len(y)) if weights is None else weights
        known, begin = self._classes_for(y[~denied], classes), 0
        if first and (self._prefit or not all(goes_on(model) for _, model in models)):
            rows = np.flatnonzero(hefts > 0.0)
            self._fit(models, X, y, weights, rows, known, declared=classes is not None, hefts=hefts)
            known, begin = self.classes_, len(y)
        elif first:
            begin = self._begin(models, X, y, weights, known, declared=classes is not None)
        for part in doubling(begin, len(y)):
            block, labels = _safe_indexing(X, part), y[part]
            rows, own = np.flatnonzero(hefts[part] > 0.0), hefts[part]
            outputs = asked(self.estimators_, self.stack_method_, block)
            instances = self._instances(outputs, block, known, learning=True)[rows]
            self._learn_told(instances, labels[rows], denied[part][rows], own[rows])
            if denied[part].any():
                part = part[~denied[part]]
                block, labels = _safe_indexing(X, part), y[part]
            for model in self.estimators_:
                if goes_on(model) and len(part):
                    teach(model, block, labels, None if weights is None else weights[part])
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

    def predict_set(self, X: Any, coverage: float = 0.9) -> list[tuple[Any, ...]]:
        """For each sample the classes that hold the right one as often as ``coverage`` says, the likeliest first.

        Coverage is kept on-line, whatever changes (see `VoteFusion.predict_set`), and so best after ``partial_fit``.
        """
        check_is_fitted(self)
        table = self._judge(self._instances_of(X))[1]
        return chosen(table, self._model.sets(table, coverage), self._model.classes)

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
        total = sum(map(abs, named.values())) or 1.0
        heaviest = sorted(named.items(), key=lambda item: -abs(item[1]))
        return {name: weight / total for name, weight in heaviest}

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
        ratings = []
        for (names, output), method in said:
            if method != "predict":
                ratings.append(rated(names, output, classes, method))
            if method == "predict_proba":  # what is surely wrong shows in the logarithm alone
                ratings.append(log_shares(ratings[-1]))
        attributes = None
        if self.passthrough:
            refuse_masked("X", X)
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
        models = list(self.estimators)
        for item in models:
            if not (isinstance(item, (tuple, list)) and len(item) == 2 and isinstance(item[0], str)):
                remedy = f"; try {_name_estimators([item])}" if hasattr(item, "fit") else ""
                raise ValueError(f"estimators must be a list of (name, classifier), got {item!r} in it{remedy}")
        if not models:
            raise ValueError("estimators must be a list of (name, classifier), got none")
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
