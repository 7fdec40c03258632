"""`FusionClassifier`: any learner over the answers of base models, as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from inspect import signature
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.ensemble import StackingClassifier
from sklearn.ensemble._base import _fit_single_estimator
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.pipeline import _name_estimators
from sklearn.utils import Bunch, _safe_indexing, check_array, indexable
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_feature_names,
    _check_feature_names_in,
    _check_sample_weight,
    check_is_fitted,
)

from linmax.data.instances import Instances, instances
from linmax.data.scaling import Scaling
from linmax.engine.notation import as_learner
from linmax.learners.auto import AutomaticPool
from linmax.models.model import chosen, mask_of
from linmax.models.sklearn.classifier import (
    LinearMaxClassifier,
    all_or_nothing,
    known_classes,
    labels_of,
    saved_parameters,
    whole_file,
)
from linmax.models.sklearn.early_stopping import weights_of
from linmax.models.sklearn.params import DEFAULT_LEARNER, LearnerParameters, scale_for
from linmax.normalization import log_shares
from linmax.techniques.technique import LearnerLike
from linmax.util import files
from linmax.util.aliases import Label, Labels, Matrix, PathLike
from linmax.util.checks import boolean, fraction, one_of, refuse_masked
from linmax.util.parts import by_part

__all__ = ["Fuser", "FusionClassifier"]

METHODS = ("predict_proba", "decision_function", "predict")
FIRST_SAMPLES = 16  # that start models without training
LARGEST_BLOCK = 1024  # samples
NamedModels: TypeAlias = list[tuple[str, ClassifierMixin]]
Answers: TypeAlias = np.ndarray | sparse.csr_array  # of base models, and attributes, side by side


class Fuser(LinearMaxClassifier):
    """A learner on the answers of base models: ratings and votes for each class, and perhaps attributes.

    Its samples have k columns for each model, the ratings of `classes_` or a 1 for the class voted for, and then those
    of the attributes. For the default learner the ratings are attributes too, which have a weight for each class: so it
    learns what the rating of one class by one model says about every class.

    Parameters
    ----------
    learner : learner or str, default="auto"
        See `FusionClassifier`.
    methods : list of str
        The method of each model that gave the answers.
    shuffle, random_state
        See `FusionClassifier`.
    """

    _keeps_coverage = True

    def __init__(
        self,
        learner: LearnerLike = DEFAULT_LEARNER,
        methods: Sequence[str] = (),
        *,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        super().__init__(learner, max_iter=1, shuffle=shuffle, random_state=random_state)
        self.methods = methods

    def start(self, X: Matrix) -> None:
        """Begin with samples like these, and learn nothing from them."""
        self._sparse, self._declared, self.n_iter_ = sparse.issparse(X), True, 0
        self._scaling = Scaling(scale_for(self.learner, None))
        self._model = self._new_model(self._experts(X), self.classes_.tolist())

    def with_classes(self, classes: np.ndarray) -> Self:
        """Return a fuser on the same model whose samples have columns for these classes."""
        other = type(self).__new__(type(self))
        known = getattr(self, "_rated", [])
        rated = [*known, *(name for name in classes.tolist() if name not in known)]
        other.__dict__.update(self.__dict__ | {"classes_": classes, "_rated": rated})
        return other

    def _known_classes(self, y: np.ndarray, wrong: np.ndarray, classes: Labels | None, resume: bool) -> np.ndarray:  # noqa: ARG002
        return self.classes_

    def _attributes(self, X: Matrix, reset: bool = False) -> Any:  # noqa: ARG002
        return X if sparse.issparse(X) else np.asarray(X)

    def _experts(self, X: Any, grow: bool = False) -> Instances:  # noqa: ARG002
        shape = (X.shape[0], len(self.methods), len(self.classes_))
        width = shape[1] * shape[2]
        answers, attributes = X[:, :width], X[:, width:]
        tables = (answers.toarray() if sparse.issparse(X) else answers).reshape(shape)
        votes, scores = [], []
        for place, method in enumerate(self.methods):
            if method == "predict":
                votes.append(self.classes_[tables[:, place].argmax(axis=1)])
            else:
                scores.append(tables[:, place])
            if method == "predict_proba":  # only logarithms distinguish improbable from nearly impossible
                scores.append(log_shares(tables[:, place]))
        rating = [place for place, method in enumerate(self.methods) if method != "predict"]
        blocks = [attributes]
        if rating and isinstance(as_learner(self.learner), AutomaticPool):  # by class, since classes join at the right
            by_class = tables[:, rating][:, :, np.searchsorted(self.classes_, self._rated)].swapaxes(1, 2)
            blocks.append(by_class.reshape(len(tables), -1))
        if self._sparse:
            attributes = sparse.csr_array(sparse.hstack(blocks, format="csr"))
        else:
            attributes = np.hstack([block.toarray() if sparse.issparse(block) else block for block in blocks])
        return instances(
            votes=np.column_stack(votes) if votes else None,
            scores=np.stack(scores, axis=1) if scores else None,
            attributes=attributes if attributes.shape[1] else None,
            classes=self.classes_.tolist(),
        )

    @property
    def model_weights(self) -> list[float]:
        """The weight of each model, in their order."""
        weights = self._weight_arrays("weights_")
        voters, raters = iter(weights.voters.tolist()), iter(weights.raters.tolist())
        copies = {"predict_proba": 2}  # probabilities and their logarithms
        return [
            next(voters) if method == "predict" else sum(next(raters) for _ in range(copies.get(method, 1)))
            for method in self.methods
        ]


class FusionClassifier(LearnerParameters, StackingClassifier):  # type: ignore[misc]
    """Base models fused online: one weight for each, learned from predictions made before the label was seen.

    A model with ``predict_proba`` or ``decision_function`` rates every class, a model with ``predict`` votes for one;
    the class with the highest weighted sum is predicted (Mesterharm and Hsu). It is a scikit-learn
    ``StackingClassifier`` that continues with ``partial_fit``.

    Parameters
    ----------
    estimators : list of (str, classifier)
        The base models by name; "drop" in place of a classifier removes it.
    learner : learner or str, default="auto"
        What fuses them: a rule, a technique, or text such as "AR-winnow(1.1)".
    cv : int, splitter, iterable of splits or "prefit", default=None
        How ``fit`` splits the samples, so that each is predicted by models that have not seen it; 5 folds by default.
        "prefit": the models are fitted, and the samples are new to them.
    stack_method : str, default="auto"
        "predict_proba", "decision_function" or "predict"; "auto" is the first of them that a model has.
    passthrough : bool, default=False
        Give the fusion the attributes as well, each divided by its largest magnitude so far: a hybrid of models and
        attributes.
    shuffle, random_state : bool, default=True, and int or RandomState, default=0
        Whether ``fit`` shows the samples to the fusion in random order, and its seed; see `LinearMaxClassifier`.
    n_jobs, verbose : int
        As in ``StackingClassifier``.

    Attributes
    ----------
    estimators_, named_estimators_, stack_method_
        The fitted models, the same by name, and the method that gives the answers of each.
    final_estimator_
        The learner that fuses them.
    weights_
        The weight of each model by name; the magnitudes sum to 1. Only of learners with one weight vector, and pools.
    mistakes_
        Mistakes of the fusion so far, each counted before the label was seen.

    Notes
    -----
    ``partial_fit`` lets the models predict first; the fusion learns from that, and then the models that have a
    ``partial_fit``: nothing is tested on what it has seen. Models of scikit-learn must know all classes from the start;
    they are not shown samples of a class that appears later. A model in a ``FrozenEstimator`` never learns.

    Decision values are scaled to [0, 1] within each sample, the lowest class to 0 and the highest to 1. A model with
    ``predict_proba`` rates twice, by its probabilities and by their logarithms (see `linmax.normalization`); its weight
    is the sum of both. The default learner also gets the ratings as attributes: it learns how much a weight for each
    model, class rated and class predicted adds to one weight for each model.

    Rows are learned in blocks, each predicted by the models as they were at its beginning. The blocks depend on the
    number of rows so far alone, so that with models that can continue it does not matter how rows are cut into calls.

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

    classes_: np.ndarray
    _learned: int  # samples
    _edge: int  # of them, where the block ends
    _judges: list[ClassifierMixin] | None  # the models as they were where it began, if it has begun in an earlier call

    def __init__(
        self,
        estimators: Sequence[tuple[str, object]],
        learner: LearnerLike = DEFAULT_LEARNER,
        *,
        cv: object | None = None,
        stack_method: str = "auto",
        passthrough: bool = False,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = 0,
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

    @property
    def final_estimator(self) -> Fuser:
        """Estimator that fuses the models, not fitted."""
        return Fuser(self.learner, shuffle=self.shuffle, random_state=self.random_state)

    # -- learning --

    @all_or_nothing
    def fit(self, X: Matrix, y: Labels, sample_weight: npt.ArrayLike | None = None, **params: Any) -> Self:
        """Fit the models and learn to fuse them.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (samples, attributes)
            The samples, as the models take them.
        y : array of shape (samples,)
            The class of each sample.
        sample_weight : array of shape (samples,), default=None
            A weight for each sample, for every model (with scikit-learn's metadata routing, for those that request it)
            and for the fusion, where only the ratios of weights count (see `LinearMaxClassifier`).
        **params
            With metadata routing: what the models request.

        Returns
        -------
        FusionClassifier
            This estimator.
        """
        models, y = self._checked(), labels_of(X, y)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        self._declared = False
        answers = self._fit_models(models, X, y, np.unique(y), weights, params)
        self.final_estimator_ = self._new_fuser().fit(answers, y, weights)
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
        """Let the models predict these samples, the fusion learn from that, and then the models that can.

        The first call starts the models if all of them have a ``partial_fit``; otherwise it fits them as in `fit`, and
        the fusion learns in the order of the samples.

        Parameters
        ----------
        X, y
            As in `fit`.
        classes : array, default=None
            In the first call: all classes there will be. By default classes join with their first label.
        sample_weight : array of shape (samples,), default=None
            How much each sample counts, 1 by default: it scales the fusion's step, and is the models' own weight.
        wrong : array of bool of shape (samples,), default=None
            Samples of which only a class that is not the label is known, the one in y. The fusion learns that; the
            models learn from the other samples, which come first in the first call.

        Returns
        -------
        FusionClassifier
            This estimator.
        """
        models, y = self._checked(), labels_of(X, y)
        first = not hasattr(self, "final_estimator_")
        denied = np.zeros(len(y), np.bool_) if wrong is None else mask_of(wrong, len(y))
        weights = None if sample_weight is None else weights_of(sample_weight, X)
        if first and denied.any():
            if denied.all():
                raise ValueError("wrong answers alone cannot start the models; pass samples with labels first")
            for rows in np.flatnonzero(~denied), np.flatnonzero(denied):
                part = None if weights is None else weights[rows]
                self.partial_fit(_safe_indexing(X, rows), y[rows], classes, part, wrong=denied[rows])
            return self
        known, fixed = (None, False) if first else (self.classes_, self._declared)
        labelled = ~denied if weights is None else ~denied & (weights > 0.0)
        names, begin = known_classes(y[labelled], y[denied], classes, known, fixed), 0
        if first:
            self._declared = classes is not None
            if self.cv != "prefit" and not all(map(can_continue, dict(models).values())):
                answers = self._fit_models(models, X, y, names, weights, {})
                self.final_estimator_ = self._new_fuser().partial_fit(answers, y, self.classes_, weights)
                return self
            begin = self._start_models(models, X, y, names, weights)
            names = self.classes_
        self.classes_, self.final_estimator_ = names, self.final_estimator_.with_classes(names)
        continuing = any(map(can_continue, self.estimators_))
        while begin < len(y):
            if self._learned == self._edge:
                self._edge, self._judges = self._edge + min(max(1, self._edge), LARGEST_BLOCK), None
            end = min(begin + self._edge - self._learned, len(y)) if continuing else len(y)
            if self._judges is None and continuing and self._learned + end - begin < self._edge:
                self._judges = [deepcopy(model) if can_continue(model) else model for model in self.estimators_]
            rows, begin = np.arange(begin, end), end
            block, part = _safe_indexing(X, rows), None if weights is None else weights[rows]
            tables = self._answers(self._judges or self.estimators_, block)
            self.final_estimator_.partial_fit(tables, y[rows], names, part, wrong=denied[rows])
            for model in filter(can_continue, self.estimators_):
                continue_with(model, X, y, weights, rows[~denied[rows]])
            self._learned += len(rows) if continuing else 0
        return self
        return self

    def _checked(self) -> NamedModels:
        """Check the parameters; return the models that are not dropped, by name."""
        boolean("passthrough", self.passthrough)
        boolean("shuffle", self.shuffle)
        one_of("stack_method", self.stack_method, ["auto", *METHODS])
        if isinstance(self.cv, str):
            one_of("cv", self.cv, ["prefit"])
        for item in self.estimators:
            if not (isinstance(item, (tuple, list)) and len(item) == 2 and isinstance(item[0], str)):
                remedy = f"; try {_name_estimators([item])}" if hasattr(item, "fit") else ""
                raise ValueError(f"estimators must be a list of (name, classifier), got {item!r} in it{remedy}")
        models = [(name, model) for name, model in zip(*self._validate_estimators(), strict=True) if model != "drop"]
        for name, model in models:
            if not is_classifier(model):
                raise ValueError(f"estimators: {name!r} must be a classifier or 'drop', got {model!r}")
        return models

    def _routed(self, models: NamedModels, weights: np.ndarray | None, params: dict[str, Any]) -> list[Any]:
        """Return the parameters for the ``fit`` of each model."""
        given = params if weights is None else params | {"sample_weight": weights}
        if _routing_enabled():
            routed = process_routing(self, "fit", **given)
            return [routed[name]["fit"] for name, _ in models]
        if params:
            raise TypeError(
                f"fit() got {sorted(params)[0]!r}, which is metadata for the models; call "
                "sklearn.set_config(enable_metadata_routing=True) and set their requests"
            )
        for name, model in models if given else []:
            refuse_unweighted(name, model, "fit")
        return [given] * len(models)

    def _fit_models(
        self,
        models: NamedModels,
        X: Matrix,
        y: np.ndarray,
        classes: np.ndarray,
        weights: np.ndarray | None,
        params: dict[str, Any],
    ) -> Answers:
        """Fit the models; return what models like them answer for samples that these have not seen."""
        methods = [self._method_name(name, model, self.stack_method) for name, model in models]
        if self.cv == "prefit":
            fitted = [model for _, model in models]
            for model in fitted:
                check_is_fitted(model)
            names = [np.asarray(model.classes_) for model in fitted]
            answers = [getattr(model, method)(X) for model, method in zip(fitted, methods, strict=True)]
        else:
            routed, (X,) = self._routed(models, weights, params), indexable(X)
            folds = list(check_cv(self.cv, y=y, classifier=True).split(X, y))
            parallel, options = Parallel(n_jobs=self.n_jobs), {"n_jobs": self.n_jobs, "verbose": self.verbose}
            fitted = parallel(
                delayed(_fit_single_estimator)(clone(model), X, y, given)
                for (_, model), given in zip(models, routed, strict=True)
            )
            answers = parallel(
                delayed(cross_val_predict)(clone(model), X, y, cv=folds, method=method, params=given, **options)
                for (_, model), method, given in zip(models, methods, routed, strict=True)
            )
            names = [np.unique(y)] * len(models)
        self.classes_ = np.unique(np.concatenate([classes, *names]))
        self._adopt(X, models, fitted, methods, len(y))
        tables = [
            rated(known, answer, self.classes_, method)
            for known, answer, method in zip(names, answers, methods, strict=True)
        ]
        return self._joined(X, tables)

    def _adopt(
        self,
        X: Matrix,
        models: NamedModels,
        fitted: list[ClassifierMixin],
        methods: list[str],
        learned: int,
    ) -> None:
        self.estimators_, self.stack_method_ = fitted, methods
        self.named_estimators_ = Bunch(**dict(zip([name for name, _ in models], fitted, strict=True)))
        self._learned = self._edge = learned
        self._judges = None
        _check_feature_names(self, X, reset=True)

    def _new_fuser(self) -> Fuser:
        fuser = self.final_estimator
        fuser.methods = self.stack_method_
        return fuser.with_classes(self.classes_)

    def _start_models(
        self,
        models: NamedModels,
        X: Matrix,
        y: np.ndarray,
        classes: np.ndarray,
        weights: np.ndarray | None,
    ) -> int:
        """Start the models with the first samples, and a fusion that has learned nothing; return their number."""
        head = np.arange(0 if self.cv == "prefit" else min(FIRST_SAMPLES, max(1, len(y) // 2)))
        if self.cv == "prefit":
            fitted = [model for _, model in models]
            for model in fitted:
                check_is_fitted(model)
            classes = np.unique(np.concatenate([classes, *(np.asarray(model.classes_) for model in fitted)]))
        else:
            fitted = [clone(model) for _, model in models]
            for model in fitted:
                grows = isinstance(model, (LinearMaxClassifier, FusionClassifier)) and not self._declared
                continue_with(model, X, y, weights, head, None if grows else classes)
        self.classes_ = classes
        methods = [self._method_name(name, model, self.stack_method) for name, model in models]
        self._adopt(X, models, fitted, methods, len(head))
        self.final_estimator_ = self._new_fuser()
        tables = [np.zeros((1, len(classes)))] * len(models)
        self.final_estimator_.start(self._joined(_safe_indexing(X, np.arange(1)), tables))
        return len(head)

    # -- answers --

    def _concatenate_predictions(self, X: Matrix, predictions: list[np.ndarray]) -> Answers:
        """Return the answers of the fitted models, as the fusion takes them; scikit-learn's hook."""
        return self._answers(self.estimators_, X, predictions)

    def _answers(
        self, models: list[ClassifierMixin], X: Matrix, predictions: list[np.ndarray] | None = None
    ) -> Answers:
        """Return the answers of these models, as the fusion takes them."""
        if predictions is None:
            predictions = [getattr(model, method)(X) for model, method in zip(models, self.stack_method_, strict=True)]
        tables = [
            rated(model.classes_, answer, self.classes_, method)
            for model, answer, method in zip(models, predictions, self.stack_method_, strict=True)
        ]
        return self._joined(X, tables)

    def _joined(self, X: Matrix, tables: list[np.ndarray]) -> Answers:
        """Return ratings and votes, and the attributes if they pass through, side by side."""
        if not self.passthrough:
            return np.hstack(tables)
        refuse_masked("X", X)
        attributes = check_array(X, accept_sparse="csr", dtype=np.float64)
        if sparse.issparse(attributes):
            return sparse.csr_array(sparse.hstack([*tables, attributes], format="csr"))
        return np.hstack([*tables, attributes])

    def transform(self, X: Matrix) -> np.ndarray:
        """Return what the fusion learns from: k ratings by each model, a vote being 1 for its class.

        With ``passthrough`` the attributes follow.
        """
        return self._transform(X)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return the names of the columns of `transform`: model_class, then those of the attributes."""
        check_is_fitted(self)
        given = _check_feature_names_in(self, input_features, generate_names=self.passthrough)
        names = [f"{model}_{label}" for model in self.named_estimators_ for label in self.classes_.tolist()]
        return np.array([*names, *given] if self.passthrough else names, dtype=object)

    def predict(self, X: Matrix, *, reject: float | None = None) -> np.ndarray:
        """Return the class of each sample.

        With ``reject``, a risk, the answer is None, "do not know", where the probability of an error is larger.
        """
        check_is_fitted(self)
        answers = self._transform(X)
        predictions = self.final_estimator_.predict(answers)
        if reject is not None:
            predictions = np.array(predictions, dtype=object)
            probabilities = self.final_estimator_.predict_proba(answers)
            predictions[probabilities.max(axis=1) < 1.0 - fraction("reject", reject, 0.1)] = None
        return predictions

    def predict_proba(self, X: Matrix) -> np.ndarray:
        """Return the probability of each class (n, k); see `LinearMaxClassifier.predict_proba`."""
        check_is_fitted(self)
        return self.final_estimator_.predict_proba(self._transform(X))

    def predict_log_proba(self, X: Matrix) -> np.ndarray:
        """Return the logarithms of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def predict_set(self, X: Matrix, coverage: float = 0.9) -> list[tuple[Label, ...]]:
        """Return for each sample classes that include the right one as often as ``coverage``, the most probable first.

        Coverage is maintained online, whatever changes (see `VoteFusion.predict_set`): best after ``partial_fit``.
        """
        check_is_fitted(self)
        model, scores = self.final_estimator_._model, self.final_estimator_._scores(self._transform(X))[1]
        return chosen(scores, model.sets(scores, coverage), model.classes)

    @property
    def mistakes_(self) -> int:
        """Mistakes of the fusion so far, each counted before the label was seen."""
        return int(self.final_estimator_.mistakes_)

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of each model, the largest first; the magnitudes sum to 1."""
        found = self.final_estimator_.model_weights
        weights = dict(zip(self.named_estimators_, found, strict=False))
        total = sum(map(abs, weights.values())) or 1.0
        return {name: weight / total for name, weight in sorted(weights.items(), key=lambda item: -abs(item[1]))}

    # -- files --

    def save(self, path: PathLike) -> None:
        """Save the fusion to a file that is safe to open: arrays and plain data (see `linmax.util.files`).

        The models are not in it, because they may be of any kind; save them by their own means.
        """
        check_is_fitted(self)
        fuser, arrays = self.final_estimator_._state()
        arrays = {f"fuser.{name}": array for name, array in arrays.items()}
        description = {
            "parameters": saved_parameters(self, but=("estimators", "cv")),
            "models": list(self.named_estimators_),
            "methods": self.stack_method_,
            "declared": self._declared,
            "fuser": fuser,
            "learned": [self._learned, self._edge],
            "rated": [self.classes_.tolist().index(name) for name in self.final_estimator_._rated],
        }
        files.write(path, type(self).__name__, description, arrays)

    @classmethod
    def load(cls, path: PathLike, estimators: Sequence[tuple[str, object]]) -> Self:
        """Load a fusion written by `save`, over these fitted models: those it was saved with, in the same order.

        It continues exactly where the other stopped, except that the next rows of a block that was begun are predicted
        by the models as they are now; its ``cv`` is "prefit".
        """
        description, arrays = files.read(path, cls.__name__)
        with whole_file(path):
            fusion, parts = cls(estimators, cv="prefit", **description["parameters"]), by_part(arrays)
            fuser = Fuser._from_state(description["fuser"], parts["fuser"])
            fuser._rated = fuser.classes_[description["rated"]].tolist()
            fusion.final_estimator_, fusion.classes_ = fuser, fuser.classes_
            names, methods = description["models"], description["methods"]
            fusion._declared = description["declared"]
        models = fusion._checked()
        if [name for name, _ in models] != names:
            raise ValueError(f"estimators: {path} fuses {names}, got {[name for name, _ in models]}")
        fitted = [model for _, model in models]
        for model in fitted:
            check_is_fitted(model)
            if len(np.setdiff1d(model.classes_, fusion.classes_)):
                raise ValueError(
                    f"estimators know classes beyond {fusion.classes_.tolist()}; pass the models of {path}"
                )
        fusion._adopt(np.zeros(0), models, fitted, methods, 0)
        fusion._learned, fusion._edge = description["learned"]
        if hasattr(fitted[0], "feature_names_in_"):
            fusion.feature_names_in_ = fitted[0].feature_names_in_
        return fusion


# -- base models ------------------------------------------------------------------------------------------------------


def can_continue(model: ClassifierMixin) -> bool:
    """Return whether a model can learn more; one in a ``FrozenEstimator`` cannot."""
    return hasattr(model, "partial_fit") and not isinstance(model, FrozenEstimator)


def continue_with(
    model: ClassifierMixin,
    X: Matrix,
    y: np.ndarray,
    weights: np.ndarray | None,
    rows: np.ndarray,
    classes: np.ndarray | None = None,
) -> None:
    """Let a model learn these rows; without ``classes`` leave out samples of a class that it cannot add."""
    options: dict[str, Any] = {} if classes is None else {"classes": classes}
    if classes is None and not isinstance(model, (LinearMaxClassifier, FusionClassifier)):
        rows = rows[np.isin(y[rows], model.classes_)]
    if weights is not None:
        refuse_unweighted(type(model).__name__, model, "partial_fit")
        options["sample_weight"] = weights[rows]
    if len(rows):
        model.partial_fit(_safe_indexing(X, rows), y[rows], **options)


def refuse_unweighted(name: str, model: ClassifierMixin, method: str) -> None:
    """Refuse a model that takes no sample weights."""
    if "sample_weight" not in signature(getattr(model, method)).parameters:
        raise ValueError(f"sample_weight: the {method} of {name!r} takes none; remove it, or drop that model")


def rated(names: np.ndarray, answers: np.ndarray, classes: np.ndarray, method: str = "predict_proba") -> np.ndarray:
    """Return ratings in [0, 1] of all classes, from what a model answers about those that it knows.

    Examples
    --------
    >>> import numpy as np
    >>> rated(np.array(["a", "c"]), np.array([-3.0, 2.0]), np.array(["a", "b", "c"]), "decision_function")
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    table = np.zeros((len(answers), len(classes)))
    if method == "predict":
        table[np.arange(len(answers)), np.searchsorted(classes, answers)] = 1.0
        return table
    values = np.asarray(answers, dtype=np.float64)
    if values.ndim == 1:  # one number for two classes
        values = np.column_stack([-values, values])
    if values.shape[1] != len(names):
        raise ValueError(
            f"{method} must have a column for each of {len(names)} classes, got {values.shape[1]}; try "
            "stack_method='predict'"
        )
    table[:, np.searchsorted(classes, names)] = unit_range(values) if method == "decision_function" else values
    return table


def unit_range(values: np.ndarray) -> np.ndarray:
    """Return each row scaled to [0, 1]; the smallest float, scikit-learn's mark for an absent class, counts as 0."""
    present = values > np.finfo(np.float64).min
    low = np.where(present, values, np.inf).min(axis=1, keepdims=True, initial=np.inf)
    high = np.where(present, values, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    width = np.where(high > low, high - low, 1.0)
    return np.where(present, (np.where(present, values, low) - low) / width, 0.0)
