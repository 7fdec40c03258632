"""A learner that is shown one instance at a time, as conversions from on-line to batch need it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from linmax.data.experts import Experts, experts
from linmax.engine.notation import as_learner
from linmax.models.experts_model import ExpertsModel

__all__ = ["OneByOne", "TaughtLearner"]


class TaughtLearner(Protocol):
    """What is asked of a learner."""

    def predict(self, x: Any) -> Any: ...

    def learn(self, x: Any, label: Any) -> Any: ...


class OneByOne:
    """A learner of this library as these functions want it: one instance at a time.

    Parameters
    ----------
    learner
        A rule, a technique or text, as for `linmax.run`.
    classes
        All classes.
    kind
        What an instance is: "attributes" (numbers, or a dict of strengths), "votes" (one class a voter) or "scores"
        (one row of k ratings a rater).

    See Also
    --------
    linmax.Learner : for other uses; it has names, files and late labels.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.majority_problem(n=3, r=3, k=2, trials=2000, seed=1)
    >>> learner = OneByOne("winnow(1.2)", classes=[0, 1], kind="votes")
    >>> found = linmax.conversion.longest_survivor(learner, zip(data.votes, data.labels), failure=0.05)
    >>> found.error < 0.05, found.hypothesis.predict([0, 0, 1])
    (True, 0)
    """

    def __init__(self, learner: Any, classes: Sequence[Any], kind: str = "attributes") -> None:
        if kind not in ("attributes", "votes", "scores"):
            raise ValueError(f"kind must be 'attributes', 'votes' or 'scores', got {kind!r}")
        self.learner, self.classes, self.kind = as_learner(learner), list(classes), kind
        self._model: ExpertsModel | None = None

    def _instances(self, x: Any) -> Experts:
        block: dict[str, Any] = {self.kind: [x] if isinstance(x, dict) or self.kind == "votes" else np.asarray(x)[None]}
        instances = experts(**block, classes=self.classes)
        if self._model is None:
            self._model = ExpertsModel(self.learner, instances.layout, self.classes)
        return instances

    def predict(self, x: Any) -> Any:
        """The class of one instance; nothing is learned."""
        instances = self._instances(x)
        assert self._model is not None
        return self._model.predict(instances)[0].item()

    def learn(self, x: Any, label: Any) -> Any:
        """One trial; returns the prediction."""
        instances = self._instances(x)
        assert self._model is not None
        return self._model.run(instances, [label]).predictions[0].item()
