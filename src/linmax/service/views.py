"""What can be seen of a model from outside."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from linmax.models.online import Learner
from linmax.service import bodies
from linmax.service.model import UNFIT, ServedModel
from linmax.service.refusals import Refusal

__all__ = [
    "CurveView",
    "ExplanationView",
    "Models",
    "Ready",
    "Status",
    "Summary",
    "WeightsView",
    "curve",
    "explanation",
    "model_file",
    "news",
    "reached",
    "summary",
    "weights",
]

STREAM_POINTS = 500  # of the past, sent when a stream begins
STREAM_BARS = 40


class Status(Struct, kw_only=True):
    """Alive."""

    status: str


class Ready(Struct, kw_only=True):
    """Ready; with a full disk, only for predictions that are not stored.

    Models in quarantine are not served; `incidents` are what an operator must know and has not settled yet.
    """

    status: str
    disk_full: bool
    quarantined: list[str]
    incidents: list[str]


class Summary(Struct, kw_only=True):
    """A model in figures; mistakes are those of the labels that were served."""

    name: str
    options: bodies.ModelOptions
    trials: int
    mistakes: int
    updates: int
    classes: list[bodies.Label]
    pending: int
    applied_seq: int
    snapshot_seq: int
    created: int


class QuarantinedView(Struct, kw_only=True):
    """A model that could not be replayed, and why."""

    name: str
    reason: str


class Models(Struct, kw_only=True):
    """All models; those in quarantine are not served."""

    models: list[Summary]
    quarantined: list[QuarantinedView]


class Weight(Struct, kw_only=True, omit_defaults=True):
    """One weight; with `label` if each class has its own."""

    name: str
    weight: float
    label: bodies.Label | None = None


class WeightsView(Struct, kw_only=True):
    """The largest weights of each kind, by magnitude."""

    voters: list[Weight]
    raters: list[Weight]
    thresholds: list[Weight]
    attributes: list[Weight]


class Score(Struct, kw_only=True):
    """The score of a class."""

    label: bodies.Label
    score: float


class ExplanationView(Struct, kw_only=True):
    """The label that would be served, the score of every class, and the weights behind this instance."""

    label: bodies.Label | None
    scores: list[Score]
    weights: WeightsView


class Bound(Struct, kw_only=True):
    """The mistakes are at most constant + slope * those of the best voter, at every point."""

    constant: float
    slope: float


class CurveView(Struct, kw_only=True):
    """Points [trials, mistakes, plurality's mistakes, best voter's mistakes]; the last two null without votes.

    `bound` is present for Winnow over votes as long as every label comes with its instance.
    """

    trials: int
    points: list[list[int | None]]
    bound: Bound | None


def summary(model: ServedModel) -> Summary:
    """The model in figures."""
    return Summary(
        name=model.name,
        options=model.options,
        trials=model.account.trials,
        mistakes=model.account.mistakes,
        updates=model.learner.updates,
        classes=list(model.learner.classes),
        pending=model.pending,
        applied_seq=model.applied,
        snapshot_seq=model.saved,
        created=model.created,
    )


def weights(model: ServedModel, most: int) -> WeightsView:
    """The largest weights of each kind."""
    try:
        return _view(model.learner.weights, most)
    except ValueError as error:
        raise Refusal(409, f"{model.learner.learner} has no weights to show: {error}") from None


def _view(found: Mapping[str, dict[Any, Any]], most: int) -> WeightsView:
    return WeightsView(
        voters=_largest(found.get("voters", {}), most),
        raters=_largest(found.get("raters", {}), most),
        thresholds=_largest(found.get("thresholds", {}), most),
        attributes=_largest_of_classes(found.get("attributes", {}), most),
    )


def _weights_or_none(model: ServedModel) -> Mapping[str, dict[Any, Any]]:
    """Nothing, where a combination has no weights to show."""
    try:
        return model.learner.weights
    except ValueError:
        return {}


def _largest(table: dict[Any, float], most: int) -> list[Weight]:
    rows = [Weight(name=str(name), weight=float(weight)) for name, weight in table.items()]
    return sorted(rows, key=lambda row: -abs(row.weight))[:most]


def _largest_of_classes(table: dict[str, dict[Any, float]], most: int) -> list[Weight]:
    rows = [
        Weight(name=str(name), weight=float(weight), label=label)
        for name, classes in table.items()
        for label, weight in classes.items()
        if weight
    ]
    return sorted(rows, key=lambda row: -abs(row.weight))[:most]


def explanation(model: ServedModel, body: bodies.ExplainBody) -> ExplanationView:
    """Scores of all classes, and the weights of what the instance holds."""
    instance = bodies.instance_of(body, model.choices)
    try:
        scores = model.learner.scores(**instance)
        label = model.predict(instance)
    except UNFIT as error:
        raise Refusal(422, str(error), field=model.options.kind) from None
    found = _weights_or_none(model)
    kept: dict[str, dict[Any, Any]] = {"thresholds": found.get("thresholds", {})}
    for ours, theirs in (("voters", "votes"), ("raters", "scores"), ("attributes", "attributes")):
        block = found.get(ours, {})
        kept[ours] = {name: block[name] for name in instance.get(theirs, {}) if name in block}
    return ExplanationView(
        label=label,
        scores=[Score(label=name, score=float(score)) for name, score in scores.items()],
        weights=_view(kept, model.options.max_features),
    )


def curve(model: ServedModel, after: int, most: int) -> CurveView:
    """Points after a trial; the present one is last."""
    account = model.account
    points = account.curve.after(after, most)
    if account.trials > after and (not points or points[-1][0] < account.trials):
        points = [*points, account.point]
    return CurveView(trials=account.trials, points=[list(point) for point in points], bound=bound(model))


def bound(model: ServedModel) -> Bound | None:
    """The mistake bound, when one is known."""
    found = model.bound()
    return None if found is None else Bound(constant=found[0], slope=found[1])


def reached(model: ServedModel, last: str, after: int) -> int:
    """The trial after which a stream continues: from the id of the last event seen, if it was of this model."""
    number, _, trials = last.partition(".")
    if number.isdigit() and trials.isdigit() and len(trials) < 17 and int(number) == model.number:
        after = int(trials)
    return after if after <= model.account.trials else 0


def news(model: ServedModel, after: int, latency: dict[str, float] | None, errors: list[Any]) -> dict[str, Any]:
    """The news that a stream sends."""
    account = model.account
    return {
        "model": model.number,
        "after": after,
        "trials": account.trials,
        "mistakes": account.mistakes,
        "pending": model.pending,
        "points": curve(model, after, STREAM_POINTS).points,
        "weights": msgspec.to_builtins(_view(_weights_or_none(model), STREAM_BARS)),
        "bound": bound(model),
        "latency": latency,
        "errors": errors,
    }


def model_file(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """A learner's state as the library's model file."""
    handle, name = tempfile.mkstemp(suffix=".linmax")
    os.close(handle)
    try:
        Learner.from_state(description, arrays).save(name)
        return Path(name).read_bytes()
    finally:
        Path(name).unlink()
