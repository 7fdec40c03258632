"""The classes for River, played one instance at a time."""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from contextlib import suppress
from typing import Any

from golden import learners, streams
from golden.record import answers, by_name, case, plain

FACES = ["river"]


def told(model: Any, rows: list[Any]) -> dict[str, Any]:
    found = {"mistakes_counted": model.mistakes, "predicted": plain([model.predict_one(row) for row in rows[-8:]])}
    found["probabilities"] = by_name({i: model.predict_proba_one(row) for i, row in enumerate(rows[-8:])})
    return found


def play(text: str, kind: str, **options: Any) -> dict[str, Any]:
    from linmax import river

    rows, labels = streams.counts()
    if kind == "dense":
        table, labels = streams.dense()
        rows = [{f"x{i}": 5.0 + 5.0 * value for i, value in enumerate(row)} for row in table.tolist()]
    model = river.LinearMaxClassifier(text, **options)
    said = []
    for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
        said.append(model.predict_one(row) if t else None)
        model.learn_one(row, label)
        if t == 70:
            model = pickle.loads(pickle.dumps(model))
    return {**answers(said, labels), **told(model, rows)}


def unscaled(text: str) -> dict[str, Any]:
    return play(text, "sparse", scale="none", thresholds=False)


for text in learners.SOME:
    case("river", f"sparse-{text}", play, text, "sparse", needs="river")
    case("river", f"dense-{text}", play, text, "dense", needs="river")
case("river", "unscaled", unscaled, "A-arow", needs="river")


def base_models() -> list[Any]:
    """Models of our own: their results are the same with every version of River."""
    from river import base

    class Frequent(base.Classifier):
        """The class that came most often when a column was above its middle, or below."""

        def __init__(self, name: str, soft: bool = True) -> None:
            self.name, self.soft = name, soft
            self.seen: dict[bool, Counter[Any]] = defaultdict(Counter)

        @property
        def _multiclass(self) -> bool:
            return True

        def learn_one(self, x: dict[str, float], y: Any) -> None:
            self.seen[x[self.name] > 0.0][y] += 1

        def predict_proba_one(self, x: dict[str, float]) -> dict[Any, float]:
            if not self.soft:
                raise NotImplementedError
            counted = self.seen[x[self.name] > 0.0]
            total = sum(counted.values())
            return {y: counted[y] / total for y in sorted(counted)}

        def predict_one(self, x: dict[str, float], **_: Any) -> Any:
            counted = self.seen[x[self.name] > 0.0]
            return min(counted, key=lambda y: (-counted[y], y), default=None)

    return [Frequent("x0"), Frequent("x1", False), Frequent("x2"), Frequent("x5", False), Frequent("x7")]


def fused(text: str, soft: bool) -> dict[str, Any]:
    from linmax import river

    table, labels = streams.dense()
    rows = [{f"x{i}": value for i, value in enumerate(row)} for row in table.tolist()]
    models = base_models()
    for model in models:  # so that no class appears in an order of its own
        for label in streams.CLASSES:
            for row in (dict.fromkeys(rows[0], 1.0), dict.fromkeys(rows[0], -1.0)):
                model.learn_one(row, label)
    model = river.FusionClassifier(models, text, soft=soft)
    said = []
    for row, label in zip(rows, labels, strict=True):
        said.append(model.predict_one(row))
        model.learn_one(row, label)
    found = {**answers(said, labels), **told(model, rows)}
    with suppress(ValueError):  # no single weight vector
        found["weights"] = model.weights
    return found


for text in [text for text in learners.SOME if text not in ("naive-bayes", "attributes")]:
    case("river", f"fusion-soft-{text}", fused, text, True, needs="river")
for text in learners.FEW:
    case("river", f"fusion-hard-{text}", fused, text, False, needs="river")
