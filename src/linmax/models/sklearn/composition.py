"""A classifier made of others: its parameters, its looks, and the checks of what it is made of, as in scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import MetaEstimatorMixin, is_classifier
from sklearn.ensemble._stacking import _VisualBlock  # where all versions have it
from sklearn.model_selection import check_cv
from sklearn.pipeline import _name_estimators
from sklearn.utils import Bunch, get_tags
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import check_is_fitted

from linmax.models.sklearn.base_models import METHODS, goes_on, refuse_unweighted
from linmax.util.checks import boolean, one_of

__all__ = ["Composition"]


class Composition(MetaEstimatorMixin, _BaseComposition):  # type: ignore[misc]
    """Named models under one roof."""

    estimators: Sequence[tuple[str, Any]]
    learner: Any
    cv: Any
    stack_method: str
    passthrough: bool
    shuffle: bool
    ensemble: bool

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

    # -- metadata --

    def get_metadata_routing(self) -> MetadataRouter:
        """What ``fit`` and ``partial_fit`` pass on to the models, as they request it, and to the splitter."""
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        for name, model in self.estimators:
            if not isinstance(model, str):
                mapping = MethodMapping().add(caller="fit", callee="fit")
                if goes_on(model):
                    mapping = mapping.add(caller="partial_fit", callee="partial_fit")
                router.add(**{name: model}, method_mapping=mapping)
        if not self._prefit:
            mapping = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=check_cv(self.cv, classifier=True), method_mapping=mapping)
        return router

    def _routed(
        self, method: str, models: list[tuple[str, Any]], weights: np.ndarray | None, others: dict[str, Any]
    ) -> dict[str, dict[str, Any]]:
        """Parameters for the ``method`` of each model and for the splitter, by name.

        Without scikit-learn's metadata routing the weights go to every model, and there are no other parameters.
        """
        if _routing_enabled():
            given = others | ({} if weights is None else {"sample_weight": weights})
            routed = process_routing(self, method, **given)
            found = {name: dict(routed[name][method]) for name, model in models if hasattr(model, method)}
            split = {} if self._prefit or method != "fit" else dict(routed["splitter"]["split"])
            return found | {"splitter": split}
        if others:
            raise TypeError(
                f"{method}() got {sorted(others)[0]!r}, which is metadata for the models; call "
                "sklearn.set_config(enable_metadata_routing=True) and set their requests"
            )
        if weights is not None:
            refuse_unweighted([(name, model) for name, model in models if hasattr(model, method)], method)
        options = {} if weights is None else {"sample_weight": weights}
        return {name: options for name, _ in models} | {"splitter": {}}

    # -- the models --

    @property
    def _prefit(self) -> bool:
        return isinstance(self.cv, str)

    def _checked(self) -> list[tuple[str, Any]]:
        """The models that are not dropped, by name."""
        boolean("passthrough", self.passthrough)
        boolean("shuffle", self.shuffle)
        boolean("ensemble", self.ensemble)
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
