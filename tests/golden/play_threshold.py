"""`linmax.LinearThreshold` and the regressors `linmax.EG` and `linmax.EGPM`."""

from __future__ import annotations

import warnings
from typing import Any

import linmax
from golden import learners, streams
from golden.record import answers, case, digest, sample

FACES = ["threshold", "regressors"]


def play(text: str, kind: str) -> dict[str, Any]:
    """Attributes 0 and 1, the same with strengths, numbers of both signs, or sparse ones, with two labels."""
    if kind in ("bits", "strengths"):
        table, labels = streams.halves()
        if kind == "strengths":  # sums of equal weights would tie up to rounding
            table = table * (0.5 + 0.5 * streams.chance(23, *table.shape))
    elif kind == "dense":
        table, labels = streams.dense()[0], [int(label == "oak") for label in streams.dense()[1]]
    else:
        rows, names = streams.counts()
        table, labels = streams.csr(rows), [int(label == "oak") for label in names]
    learner = linmax.LinearThreshold(text, labels=(0, 1), constant=kind in ("dense", "sparse"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # elimination says that noisy labels are no disjunction
        trace = learner.run(table[:120], labels[:120])
        more = learner.run(table[120:], labels[120:])
    found = answers([*trace.predictions.tolist(), *more.predictions.tolist()], labels)
    found |= {
        "counted": [learner.trials, learner.mistakes, learner.updates],
        "changed": digest(trace.changed.tolist()),
        "weights": sample(learner.weights),
        "log_scale": learner.log_scale,
        "scores": sample(learner.score(table)),
        "predicted": digest(learner.predict(table).tolist()),
    }
    if text == "elimination":
        found["inconsistent"] = learner.inconsistent
    return found


# Rules that take more than the best rival have no meaning for two classes.
RULES = [text for text in learners.RULES if "rivals" not in text]
for text in learners.TWO_CLASSES:
    case("threshold", f"bits-{text}", play, text, "bits", small=True)
for text in RULES:
    case("threshold", f"strengths-{text}", play, text, "strengths", small=True)
    for kind in ("dense", "sparse"):
        case("threshold", f"{kind}-{text}", play, text, kind, small=text in ("perceptron", "winnow(1.2)"))


def regressed(made: Any, signed: bool) -> dict[str, Any]:
    table = streams.chance(21, 100, 5)
    if signed:
        table = 2.0 * table - 1.0
    comparator = [0.1, 0.5, 0.0, 0.4, 0.0] if not signed else [0.3, -0.4, 0.0, 0.2, 0.0]
    values = table @ comparator + 0.1 * (streams.chance(22, 100) - 0.5)
    regressor = made()
    first = regressor.run(table[:60], values[:60])
    rest = [regressor.learn(x, y) for x, y in zip(table[60:], values[60:], strict=True)]
    return {
        "first": sample(first),
        "rest": sample(rest),
        "weights": sample(regressor.weights),
        "next": regressor.predict(table[0]),
        "bound": regressor.loss_bound(comparator, table, values),
    }


case("regressors", "eg", regressed, lambda: linmax.EG(), False, small=True)
case("regressors", "eg-slow", regressed, lambda: linmax.EG(eta=0.1, range=2.0), False, small=True)
case("regressors", "egpm", regressed, lambda: linmax.EGPM(), True, small=True)
case("regressors", "egpm-slow", regressed, lambda: linmax.EGPM(eta=0.05, total=2.0), True, small=True)
