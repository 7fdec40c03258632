"""River's interface: `LinearMaxClassifier` on dicts of attributes, `FusionClassifier` over River models.

Needs River (the extra ``river``). Both learn one instance at a time, take in attributes and classes as they appear, and
work in River's pipelines and evaluation. Import the module: ``from linmax import river``.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

try:
    from river import base, naive_bayes, tree
except ImportError as error:
    raise ImportError("linmax.river needs River; install linmax with the extra 'river'") from error

from linmax.models.online import Learner
from linmax.models.sklearn.shared import DEFAULT_LEARNER, scale_for
from linmax.util.checks import boolean, one_of

__all__ = ["FusionClassifier", "LinearMaxClassifier"]


class OnLineRiver(base.Classifier):  # type: ignore[misc]
    """What both share: a `Learner`, and the probabilities of its scores."""

    learner: Any
    _learner: Learner

    @property
    def _multiclass(self) -> bool:
        return True

    def _begin(self, thresholds: bool) -> None:
        self._learner = Learner(self.learner, thresholds=thresholds)

    @property
    def mistakes(self) -> int:
        """Mistakes so far, each made before the label was seen."""
        return self._learner.mistakes

    @property
    def _raw_memory_usage(self) -> int:
        # Of what it has learned; River would follow the rules into the compiler.
        description, arrays = self._learner.state()
        rest = {name: value for name, value in self.__dict__.items() if name != "_learner"}
        return len(json.dumps(description)) + sum(array.nbytes for array in arrays.values()) + len(pickle.dumps(rest))

    def __getstate__(self) -> dict[str, Any]:
        # A learner knows compiled functions by their address in this process.
        return self.__dict__ | {"_learner": self._learner.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._learner = Learner.from_state(*state["_learner"])


class LinearMaxClassifier(OnLineRiver):
    """A linear classifier for two or many classes, learned on-line by any learner of this library.

    Parameters
    ----------
    learner
        A rule, a technique, or text such as "AR-winnow(1.1)"; "auto" is a pool that needs no tuning.
    scale
        "max": each attribute is divided by its largest magnitude so far, the present instance included, because many
        rules need attributes in [-1, 1]. "none": attributes are taken as they are. None: "none" for the pools that
        scale attributes by themselves ("auto", "attributes"), and "max" for all other learners.
    thresholds
        Learn a threshold for each class.

    References
    ----------
    Mesterharm (2001), Transforming linear-threshold learning algorithms into multi-class linear learning algorithms,
    Rutgers dcs-tr-460.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from linmax import river
    >>> model = river.LinearMaxClassifier("AR-perceptron")
    >>> metric = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    >>> metric.get() > 0.85
    True
    """

    def __init__(
        self,
        learner: str = DEFAULT_LEARNER,
        scale: str | None = None,
        thresholds: bool = True,
    ) -> None:
        if scale is not None:
            one_of("scale", scale, ["max", "none"])
        self.learner = learner
        self.scale = scale
        self.thresholds = boolean("thresholds", thresholds)
        self._kind = scale_for(learner, scale)
        self._maxima: dict[Any, float] = {}
        self._begin(thresholds)

    def learn_one(self, x: dict[Any, Any], y: Hashable) -> None:
        """One trial: the learner predicts, sees the label and updates."""
        scaled = self._scaled(x)
        self._learner.learn(scaled, label=y)
        if self._kind == "max":
            maxima = self._maxima
            for name, value in scaled.items():
                if value in (1.0, -1.0):  # the largest so far
                    maxima[name] = abs(x[name])

    def predict_one(self, x: dict[Any, Any], **_: Any) -> Any:
        """The class, None before one is known."""
        return self._learner.predict(self._scaled(x))

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """The probability of each class seen so far (see `linmax.models.calibration`)."""
        return self._learner.predict_proba(self._scaled(x))

    def _scaled(self, x: dict[Any, Any]) -> dict[Any, float]:
        """The attributes over their maxima so far, these ones included; by name, as sums depend on their order."""
        names = ordered(x)
        if self._kind == "none":
            return {name: x[name] for name in names}
        maxima = self._maxima
        try:
            scaled = {name: x[name] / maxima[name] for name in names}
            if all(-1.0 <= value <= 1.0 for value in scaled.values()):
                return scaled
        except KeyError:
            pass  # an attribute that is new, or was 0 until now
        return {name: x[name] / (max(maxima.get(name, 0.0), abs(x[name])) or 1.0) for name in names}


def ordered(names: Iterable[Any]) -> list[Any]:
    """Sorted, by what they look like when they are of several kinds."""
    try:
        return sorted(names)
    except TypeError:
        return sorted(names, key=repr)


class FusionClassifier(OnLineRiver, base.Ensemble):  # type: ignore[misc]
    """River models fused on-line: one weight for each, learned from predictions made before the label was seen.

    Parameters
    ----------
    models
        The classifiers. They predict, the fusion learns from that, and then they learn.
    learner
        What fuses them: a rule, a technique, or text such as "AR-winnow(1.1)".
    soft
        Whether a model that has probabilities rates every class by them; otherwise it votes for one.

    References
    ----------
    Mesterharm and Hsu, Combinatorial fusion with on-line learning algorithms.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, naive_bayes, tree
    >>> from linmax import river
    >>> model = river.FusionClassifier([naive_bayes.GaussianNB(), tree.HoeffdingTreeClassifier()], "A-perceptron")
    >>> metric = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    >>> metric.get() > 0.85
    True
    """

    def __init__(self, models: list[base.Classifier], learner: str = DEFAULT_LEARNER, soft: bool = True) -> None:
        super().__init__(models)
        self.learner = learner
        self.soft = boolean("soft", soft)
        self._begin(thresholds=True)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"models": [naive_bayes.GaussianNB(), tree.HoeffdingTreeClassifier()], "learner": "perceptron"}

    @property
    def weights(self) -> list[float]:
        """The weight of each model; the magnitudes add up to 1."""
        found = self._learner.weights
        named = found["voters"] | found["raters"]
        raw = [named.get(place, 0.0) for place in range(len(self))]
        total = sum(map(abs, raw)) or 1.0
        return [weight / total for weight in raw]

    def learn_one(self, x: dict[Any, Any], y: Hashable) -> None:
        """The models predict, the fusion learns from that, then the models learn."""
        instance = self._asked(x)
        self._learner.learn(**instance, label=y)
        for model in self:
            model.learn_one(x, y)

    def predict_one(self, x: dict[Any, Any], **_: Any) -> Any:
        """The class, None before one is known."""
        return self._learner.predict(**self._asked(x))

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """The probability of each class seen so far (see `linmax.models.calibration`)."""
        return self._learner.predict_proba(**self._asked(x))

    def _asked(self, x: dict[Any, Any]) -> dict[str, Any]:
        """What each model says, by its place."""
        votes, scores = {}, {}
        for place, model in enumerate(self):
            if self.soft:
                try:
                    scores[place] = model.predict_proba_one(x)
                    continue
                except NotImplementedError:
                    pass
            votes[place] = model.predict_one(x)
        return {"votes": votes, "scores": scores}
