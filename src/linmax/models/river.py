"""River's interface: `LinearMaxClassifier` on dicts of attributes, `FusionClassifier` over River models.

Needs River (the extra ``river``). Both learn one instance at a time, or the rows of a table one after the other, take
in attributes and classes as they appear, and work in River's pipelines and evaluation. Import the module:
``from linmax import river``.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Hashable, Iterator
from inspect import signature
from typing import TYPE_CHECKING, Any

try:
    from river import base, naive_bayes, tree
except ImportError as error:
    raise ImportError("linmax.river needs River; install linmax with the extra 'river'") from error

import numpy as np

from linmax.models.online import Learner
from linmax.models.river_attributes import NUMBER_CLASSES, categories, is_word, ordered, rows_of
from linmax.models.sklearn.params import DEFAULT_LEARNER, scale_for
from linmax.util.checks import at_least, boolean, one_of
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")

__all__ = ["FusionClassifier", "LinearMaxClassifier"]

Read = tuple[dict[Any, Any] | None, dict[Any, float]]  # attributes with a new maximum among them; as they are learned


class OnLineRiver(base.MiniBatchClassifier):  # type: ignore[misc]
    """What both share: a `Learner`, the probabilities of its scores, weights of instances, and mini-batches."""

    learner: Any
    _learner: Learner

    @property
    def _multiclass(self) -> bool:
        return True

    def _begin(self, thresholds: bool) -> None:
        self._learner = Learner(self.learner, thresholds=thresholds)

    # -- many at a time --

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: Any = 1.0) -> None:
        """Learn the rows of a table one after the other, as `learn_one` does.

        Parameters
        ----------
        X
            One instance a row; the columns are its attributes.
        y
            The class of each row.
        w
            One weight for all rows, or one for each.
        """
        rows = rows_of(X)
        if len(y) != len(rows):
            raise ValueError(f"y must have one class for each of {len(rows)} rows, got {len(y)}")
        weights = [float(w)] * len(rows) if np.ndim(w) == 0 else list(w)
        if len(weights) != len(rows):
            raise ValueError(f"w must be one number, or one for each of {len(rows)} rows; got {len(weights)}")
        for x, label, weight in zip(rows, y.tolist(), weights, strict=True):
            self.learn_one(x, label, weight)

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """The class of each row, under the index of the table.

        Parameters
        ----------
        X
            One instance a row.

        Returns
        -------
        pandas.Series
            The classes.
        """
        return pd.Series([self.predict_one(x) for x in rows_of(X)], index=X.index, dtype=object).infer_objects()

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """The probability of each class, one column each, under the index of the table.

        Parameters
        ----------
        X
            One instance a row.

        Returns
        -------
        pandas.DataFrame
            The probabilities.
        """
        return pd.DataFrame([self.predict_proba_one(x) for x in rows_of(X)], index=X.index)

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

    Notes
    -----
    A word or None as the value of an attribute is a category: ``{"colour": "red"}`` is ``{"colour=red": 1.0}``.

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
        self._latest: tuple[tuple[Any, ...], list[Any]] = ((), [])
        self._held: tuple[dict[Any, Any], Read] = ({}, (None, {}))  # what was read last; learning follows predicting
        self._begin(thresholds)

    def learn_one(self, x: dict[Any, Any], y: Hashable, w: float = 1.0) -> None:
        """One trial: the learner predicts, sees the label and updates.

        Parameters
        ----------
        x
            The attributes.
        y
            The class.
        w
            How much the instance counts (see `linmax.models.showings`); 0 leaves it out.
        """
        numbers, scaled = self._read(x)
        self._learner.learn(scaled, label=y, weight=w if w == 1.0 else at_least("w", w, 0.0))
        if numbers is not None and w:
            maxima, self._held = self._maxima, ({}, (None, {}))
            for name, value in scaled.items():
                if value in (1.0, -1.0):  # the largest so far
                    maxima[name] = abs(numbers[name])

    def predict_one(self, x: dict[Any, Any], **_: Any) -> Any:
        """The class, None before one is known."""
        return self._learner.predict(self._read(x)[1])

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """The probability of each class seen so far (see `linmax.models.calibration`)."""
        return self._learner.predict_proba(self._read(x)[1])

    def _read(self, x: dict[Any, Any]) -> Read:
        """The attributes over their maxima so far, these ones included; and as they are, if there is a new maximum.

        They come by name, because sums depend on their order.
        """
        held, found = self._held
        try:
            if x == held:
                return found
        except (TypeError, ValueError):
            pass  # values that cannot be compared
        found = self._read_anew(x)
        self._held = x.copy(), found
        return found

    def _read_anew(self, x: dict[Any, Any]) -> Read:
        names, order = self._latest
        if tuple(x) != names:
            names, order = tuple(x), ordered(x)
            self._latest = names, order
        maxima = self._maxima
        if self._kind == "max":
            try:
                scaled = {name: x[name] / maxima[name] for name in order}
                if not scaled or (max(scaled.values()) <= 1.0 and min(scaled.values()) >= -1.0):
                    return None, scaled
            except (KeyError, TypeError, ValueError):
                pass  # an attribute that is new, or was 0 until now, or no number
        if not NUMBER_CLASSES.issuperset(map(type, x.values())) and any(map(is_word, x.values())):
            x = categories(x)
            order = ordered(x)
        if self._kind == "none":
            return None, {name: x[name] for name in order}
        try:
            return x, {name: x[name] / (max(maxima.get(name, 0.0), abs(x[name])) or 1.0) for name in order}
        except (TypeError, ValueError):
            return x, x  # the learner says which is not a number


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

    def learn_one(self, x: dict[Any, Any], y: Hashable, w: float = 1.0) -> None:
        """The models predict, the fusion learns from that, then the models learn.

        Parameters
        ----------
        x, y, w
            As in `LinearMaxClassifier.learn_one`. A model that takes a weight gets it; others learn once.
        """
        instance = self._asked(x)
        self._learner.learn(**instance, label=y, weight=w if w == 1.0 else at_least("w", w, 0.0))
        for model in self:
            if w != 1.0 and "w" in signature(model.learn_one).parameters:
                model.learn_one(x, y, w=w)
            else:
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
