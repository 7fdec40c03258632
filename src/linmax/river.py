"""River's interface: `LinearMaxClassifier` on dicts of attributes, `FusionClassifier` over River models.

Requires River (the extra ``river``). Both learn one instance at a time, or the rows of a table in order, add attributes
and classes as they appear, and work in River's pipelines and evaluation. Import the module:
``from linmax import river``.
"""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterable, Iterator, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

try:
    from river import base, naive_bayes, tree
except ImportError as error:
    raise ImportError("linmax.river needs River; install linmax with the extra 'river'") from error

import numpy as np

from linmax.data.features import row_attributes
from linmax.models.online import Learner
from linmax.models.sklearn.params import DEFAULT_LEARNER, scale_for
from linmax.util.checks import at_least, boolean, one_of
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")
from linmax.util.aliases import Label, Name, Ratings

__all__ = ["FusionClassifier", "LinearMaxClassifier"]

Row: TypeAlias = dict[Name, Any]  # an instance of River: numbers, text and None by name


class Inputs(TypedDict, total=False):
    """An instance as arguments of a `Learner`."""

    attributes: dict[Name, float]
    votes: dict[Name, Label]
    scores: dict[Name, Ratings]


class OnlineRiver(base.MiniBatchClassifier):  # type: ignore[misc]
    """A `Learner` in River's terms: instances with weights, and mini-batches."""

    _learner: Learner

    @property
    def _multiclass(self) -> bool:
        return True

    def _inputs(self, x: Row) -> Inputs:
        """Return an instance as arguments of the learner."""
        raise NotImplementedError

    def predict_one(self, x: Row, **_: object) -> Label | None:
        """Return the class, None before one is known."""
        return self._learner.predict(**self._inputs(x))

    def predict_proba_one(self, x: Row, **_: object) -> dict[Label, float]:
        """Return the probability of each class seen so far (see `linmax.models.calibration`)."""
        return self._learner.predict_proba(**self._inputs(x))

    def _learn(self, inputs: Inputs, y: Label, w: float) -> None:
        self._learner.learn(**inputs, label=y, weight=w if w == 1.0 else at_least("w", w, 0.0))

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: float | Sequence[float] = 1.0) -> None:
        """Learn the rows of a table in order, as `learn_one` does.

        Parameters
        ----------
        X : pandas.DataFrame
            One instance a row; the columns are its attributes.
        y : pandas.Series
            The class of each row.
        w : float or sequence of float, default=1.0
            One weight for all rows, or one for each.
        """
        rows = rows_of(X)
        if len(y) != len(rows):
            raise ValueError(f"y must have one class for each of {len(rows)} rows, got {len(y)}")
        weights = np.full(len(rows), w, float).tolist() if np.ndim(w) == 0 else list(np.asarray(w).tolist())
        if len(weights) != len(rows):
            raise ValueError(f"w must be one number, or one for each of {len(rows)} rows; got {len(weights)}")
        for x, label, weight in zip(rows, y.tolist(), weights, strict=True):
            self.learn_one(x, label, weight)

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Return the class of each row, as a series with the table's index."""
        return pd.Series([self.predict_one(x) for x in rows_of(X)], index=X.index, dtype=object).infer_objects()

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the probability of each class, one column each, as a table with the same index."""
        return pd.DataFrame([self.predict_proba_one(x) for x in rows_of(X)], index=X.index)

    @property
    def mistakes(self) -> int:
        """Mistakes so far, each counted before the label was seen."""
        return self._learner.mistakes

    @property
    def _raw_memory_usage(self) -> int:
        # River would follow the rules into the compiler.
        description, arrays = self._learner.state()
        rest = {name: value for name, value in self.__dict__.items() if name != "_learner"}
        return len(json.dumps(description)) + sum(array.nbytes for array in arrays.values()) + len(pickle.dumps(rest))

    def __getstate__(self) -> dict[str, Any]:
        # A learner holds compiled functions by their address in this process.
        return self.__dict__ | {"_learner": self._learner.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._learner = Learner.from_state(*state["_learner"])


class LinearMaxClassifier(OnlineRiver):
    """A linear classifier for two or more classes, trained online by any learner of this library.

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
    Text is a category: ``{"color": "red"}`` is ``{"color=red": 1.0}``. None and nan are missing.

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
        self._maxima: dict[Name, float] = {}
        self._names: tuple[tuple[Name, ...], list[Name]] = (), []  # of the last instance, and sorted
        self._latest: tuple[Row, dict[Name, float], Row | None] = {}, {}, None
        self._learner = Learner(learner, thresholds=thresholds)

    def learn_one(self, x: Row, y: Label, w: float = 1.0) -> None:
        """Predict, see the label and update.

        Parameters
        ----------
        x : dict
            The attributes.
        y : hashable
            The class.
        w : float, default=1.0
            How much the instance counts: it scales the learner's step; 0 leaves it out.
        """
        self._learn(self._inputs(x), y, w)
        _, scaled, larger = self._latest
        if larger is not None and w:
            self._latest = {}, {}, None
            self._maxima |= {name: abs(larger[name]) for name, value in scaled.items() if value in (1.0, -1.0)}

    def _inputs(self, x: Row) -> Inputs:
        """Return the attributes over their largest magnitudes so far, this instance included.

        They come by name, because sums depend on their order. An instance is kept: learning follows predicting.
        """
        before, scaled, _ = self._latest
        try:
            if x == before:
                return {"attributes": scaled}
        except (TypeError, ValueError):
            pass  # values that cannot be compared
        scaled, larger = self._scaled(x)
        self._latest = x.copy(), scaled, larger
        return {"attributes": scaled}

    def _scaled(self, x: Row) -> tuple[dict[Name, float], Row | None]:
        """Return scaled attributes; and the attributes themselves if one may be larger than before."""
        names, order = self._names
        if tuple(x) != names:
            self._names = names, order = tuple(x), in_order(x)
        maxima = self._maxima
        if self._kind == "max":
            try:
                scaled = {name: x[name] / maxima[name] for name in order}
                if not scaled or (max(scaled.values()) <= 1.0 and min(scaled.values()) >= -1.0):
                    return scaled, None
            except (KeyError, TypeError, ValueError):
                pass  # an attribute is new, was always 0, or is no number
        plain = dict(row_attributes(x))
        if plain.keys() != x.keys():
            x, order = plain, in_order(plain)
        if self._kind == "none":
            return {name: x[name] for name in order}, None
        try:
            largest = {name: max(maxima.get(name, 0.0), abs(x[name])) or 1.0 for name in order}
            return {name: x[name] / most if most < math.inf else x[name] for name, most in largest.items()}, x
        except (TypeError, ValueError):
            return x, x  # the learner names the one that is no number


class FusionClassifier(OnlineRiver, base.Ensemble):  # type: ignore[misc]
    """River models fused online: one weight for each, learned from predictions made before the label was seen.

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
        self._learner = Learner(learner)

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

    def learn_one(self, x: Row, y: Label, w: float = 1.0) -> None:
        """Let the models predict, the fusion learn from that, and then the models.

        Parameters
        ----------
        x, y, w
            As in `LinearMaxClassifier.learn_one`. A model that takes a weight gets it; others learn once.
        """
        self._learn(self._inputs(x), y, w)
        for model in self:
            weighted = w != 1.0 and "w" in signature(model.learn_one).parameters
            model.learn_one(x, y, **({"w": w} if weighted else {}))

    def _inputs(self, x: Row) -> Inputs:
        """Return the answer of each model, by its place."""
        votes: dict[Name, Label] = {}
        scores: dict[Name, Ratings] = {}
        for place, model in enumerate(self):
            if self.soft:
                try:
                    scores[place] = model.predict_proba_one(x)
                    continue
                except NotImplementedError:
                    pass
            votes[place] = model.predict_one(x)
        return {"votes": votes, "scores": scores}


# -- attributes -------------------------------------------------------------------------------------------------------


def in_order(names: Iterable[Name]) -> list[Name]:
    """Sort names, those of several types by what they print."""
    try:
        return sorted(names)  # type: ignore[type-var]
    except TypeError:
        return sorted(names, key=repr)


def rows_of(table: pd.DataFrame) -> list[Row]:
    """Return the rows of a pandas table."""
    if not hasattr(table, "index") or not hasattr(table, "to_dict"):
        kind = f"{type(table).__module__.split('.')[0]}.{type(table).__name__}"
        raise TypeError(
            f"X must be a pandas DataFrame, as in River, got {kind}; try pandas.DataFrame(X) or X.to_pandas()"
        )
    return list(table.to_dict("records"))
