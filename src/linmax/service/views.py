"""What can be seen of a model from outside."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from linmax.models.asking import Inquiry
from linmax.models.online import Learner
from linmax.service import bodies
from linmax.service.instances import instance_of
from linmax.service.model import EMPTY_INSTANCE, UNFIT, ServedModel
from linmax.service.refusals import Refusal
from linmax.service.weighing import NO_WEIGHTS, WeightsView

__all__ = [
    "CurveView",
    "ExplanationView",
    "Models",
    "News",
    "PanelView",
    "Ranking",
    "Ready",
    "Status",
    "Summary",
    "TrialView",
    "WaitingView",
    "WeightsView",
    "curve",
    "explanation",
    "inquiry",
    "model_file",
    "news",
    "panel",
    "ranking",
    "summary",
    "weights",
]

PAGE_POINTS = 500  # of the curve, sent at a time
PAGE_WEIGHTS = 40


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


class Score(Struct, kw_only=True):
    """The score of a class."""

    label: bodies.Label
    score: float


class ExplanationView(Struct, kw_only=True):
    """The label that would be served, the score of every class, and the 1,000 largest weights behind this instance."""

    label: bodies.Label | None
    scores: list[Score]
    weights: WeightsView


class Ranking(Struct, kw_only=True):
    """The candidates with their scores, the best first."""

    ranking: list[Score]


class PanelLineView(Struct, kw_only=True):
    """So many voters, what they cost a trial, how often they are right alone, and how much more often all are."""

    voters: list[str]
    cost: float
    accuracy: float
    behind: float


class PanelView(Struct, kw_only=True):
    """For 1, 2, ... voters those worth most for their cost, by the latest trials; the fewest first."""

    trials: int
    panels: list[PanelLineView]


class Bound(Struct, kw_only=True):
    """The mistakes are at most constant + slope * those of the best voter, at every point."""

    constant: float
    slope: float


class WaitingPrediction(Struct, kw_only=True):
    """A prediction that waits for its label; `at` in milliseconds since 1970."""

    id: str
    seq: int
    at: int
    label: bodies.Label | None


class WaitingView(Struct, kw_only=True):
    """Predictions that wait for their label, oldest first; ask again `after` the last seq for more."""

    pending: int
    predictions: list[WaitingPrediction]


class TrialView(Struct, kw_only=True):
    """A trial: "pending", "learned", "refused", "forgotten" or only "asked" about; with its events in the log."""

    id: str
    state: str
    events: list[dict[str, Any]]


class News(Struct, kw_only=True):
    """Figures of a model, the points of its curve beyond a trial, its largest weights, and recent errors."""

    model: int
    after: int
    trials: int
    mistakes: int
    pending: int
    points: list[list[int | None]]
    weights: WeightsView
    bound: Bound | None
    latency: dict[str, float] | None
    errors: list[dict[str, Any]]


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
        classes=[] if model.options.candidates else list(model.learner.classes),
        pending=model.pending,
        applied_seq=model.applied,
        snapshot_seq=model.saved,
        created=model.created,
    )


async def weights(model: ServedModel, most: int) -> WeightsView:
    """The largest weights of each kind."""
    try:
        return await model.weighing.largest(model.learner, model.applied, most)
    except ValueError as error:
        raise Refusal(409, f"{model.learner.learner} has no weights to show: {error}") from None


async def explanation(model: ServedModel, body: bodies.ExplainBody) -> ExplanationView:
    """Scores of all classes, and the weights of what the instance holds."""
    instance = instance_of(body, model.choices)
    try:
        scores = model.learner.scores(**(instance or EMPTY_INSTANCE))
        label = model.predict(instance)
    except UNFIT as error:
        raise Refusal(422, str(error), field=model.options.kind) from None
    return ExplanationView(
        label=label,
        scores=[Score(label=name, score=float(score)) for name, score in scores.items()],
        weights=await model.weighing.behind(model.learner, model.applied, instance),
    )


def ranking(model: ServedModel, body: bodies.RankBody) -> Ranking:
    """The candidates in order; ties as the learner breaks them."""
    instance = instance_of(body, model.choices)
    try:
        scores = model.learner.scores(**instance)
        order = model.learner.rank(**instance)
    except UNFIT as error:
        raise Refusal(422, str(error), field=model.options.kind) from None
    return Ranking(ranking=[Score(label=name, score=scores[name]) for name in order])


def inquiry(model: ServedModel, body: bodies.AskBody) -> Inquiry:
    """The question whom to ask next, checked."""
    instance = instance_of(
        bodies.ExplainBody(attributes=body.attributes, votes=body.votes, candidates=body.candidates), model.choices
    )
    given = {name: instance[name] for name in ("attributes", "candidates") if name in instance}
    try:
        return model.learner.inquiry(
            body.votes,
            costs=body.costs,
            tolerance=body.tolerance,
            explore=body.explore,
            voters=body.voters,
            **given,
        )
    except UNFIT as error:
        fields = ("costs", "tolerance", "explore", "voters")
        field = next((name for name in fields if str(error).startswith(name)), "votes")
        raise Refusal(422, str(error), field=field) from None


async def panel(model: ServedModel, body: bodies.PanelBody) -> PanelView:
    """How few voters are enough."""
    try:
        found = await asyncio.to_thread(model.learner.panels_to_compare(body.costs))
    except UNFIT as error:
        field = "costs" if str(error).startswith("costs") else None
        raise Refusal(422 if field else 409, str(error), field=field) from None
    return PanelView(trials=found.trials, panels=[PanelLineView(**line) for line in found.to_dict()])


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


async def news(model: ServedModel, after: int, latency: dict[str, float] | None, errors: list[Any]) -> News:
    """Collect what the page shows, beyond a trial; from the first one if there are not as many."""
    try:
        largest = await model.weighing.largest(model.learner, model.applied, PAGE_WEIGHTS)
    except ValueError:  # it has none to show
        largest = NO_WEIGHTS
    account = model.account
    after = after if after <= account.trials else 0
    shown = curve(model, after, PAGE_POINTS)
    return News(
        model=model.number,
        after=after,
        trials=account.trials,
        mistakes=account.mistakes,
        pending=model.pending,
        points=shown.points,
        weights=largest,
        bound=shown.bound,
        latency=latency,
        errors=errors,
    )


def model_file(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """A learner's state as the library's model file."""
    with tempfile.TemporaryDirectory(prefix="linmax-") as folder:  # which nobody else can read
        path = Path(folder) / "model.linmax"
        Learner.from_state(description, arrays).save(path)
        return path.read_bytes()
