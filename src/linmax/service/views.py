"""Views of a model: figures, weights, explanations, questions about voters."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, cast

from msgspec import Meta

from linmax.models.asking import Inquiry
from linmax.service import schemas
from linmax.service.bodies import Label, instance_of
from linmax.service.operations import Call
from linmax.service.schemas import Refusal
from linmax.service.served_model import EMPTY_INSTANCE, UNFIT, ServedModel

PAGE_POINTS = 500  # of the curve, sent at a time
PAGE_WEIGHTS = 40
After = Annotated[int, Meta(ge=0, le=2**53, description="only points, predictions or events beyond this number")]


def summary(model: ServedModel) -> schemas.Summary:
    """Return the figures of a model."""
    classes = cast("list[Label]", list(model.learner.classes))
    return schemas.Summary(
        name=model.name,
        options=model.options,
        trials=model.account.trials,
        mistakes=model.account.mistakes,
        updates=model.learner.updates,
        classes=[] if model.options.candidates or model.options.answers == "open" else classes,
        pending=model.pending,
        applied_seq=model.applied,
        snapshot_seq=model.saved,
        created=model.created,
    )


async def weights(
    call: Call[None], *, limit: Annotated[int, Meta(ge=1, le=10_000, description="how many of a kind")] = 100
) -> schemas.WeightsView:
    """Return the largest weights."""
    model = call.model
    try:
        return await model.weights.largest(model.learner, model.applied, limit)
    except ValueError as error:
        raise Refusal(409, f"{model.learner.learner} has no weights to show: {error}") from None


async def explain(call: Call[schemas.Instanced]) -> schemas.ExplanationView:
    """Return the scores of all classes, and the weights behind them."""
    model = call.model
    instance = instance_of(call.body, model.limits)
    try:
        scores = model.learner.scores(**(instance or EMPTY_INSTANCE))
        label = model.predict(instance)
    except UNFIT as error:
        raise Refusal(422, str(error), field=model.options.kind) from None
    return schemas.ExplanationView(
        label=label,
        scores=[schemas.Score(label=cast("Label", name), score=float(score)) for name, score in scores.items()],
        weights=await model.weights.behind(model.learner, model.applied, instance),
    )


async def rank(call: Call[schemas.RankBody]) -> schemas.Ranking:
    """Return the candidates in order, the best first."""
    model = call.model
    instance = instance_of(call.body, model.limits)
    try:
        scores = model.learner.scores(**instance)
        order = model.learner.rank(**instance)  # ties as the learner breaks them
    except UNFIT as error:
        raise Refusal(422, str(error), field=model.options.kind) from None
    return schemas.Ranking(ranking=[schemas.Score(label=cast("Label", name), score=scores[name]) for name in order])


async def ask(call: Call[schemas.AskBody]) -> schemas.Asked:
    """Return the voter to ask next; none if more is not worth it."""
    model, body = call.model, call.body
    if _inquiry(model, body).changes:  # which is stored, like what is learned
        call.require_learn(
            "asking by another tolerance or other costs than before changes what is learned of few votes"
        )
        await call.service.trials.ask_by(model, body.tolerance, body.costs)
    inquiry = _inquiry(model, body)
    if inquiry.changes:
        message = "another request asked by another tolerance or other costs in the meantime; agree on one per model"
        raise Refusal(409, message, field="tolerance")
    voter = inquiry.next()
    return schemas.Asked(voter=None if voter is None else str(voter))


def _inquiry(model: ServedModel, body: schemas.AskBody) -> Inquiry:
    """Return the checked question about the next voter."""
    asked = schemas.Instanced(attributes=body.attributes, votes=body.votes, candidates=body.candidates)
    instance = instance_of(asked, model.limits)
    given = {name: instance[name] for name in ("attributes", "candidates") if name in instance}
    options = {name: getattr(body, name) for name in ("costs", "tolerance", "explore", "voters")}
    try:
        return model.learner._inquiry(body.votes, **options, **given)
    except UNFIT as error:
        field = next((name for name in options if str(error).startswith(name)), "votes")
        raise Refusal(422, str(error), field=field) from None


async def panel(call: Call[schemas.PanelBody]) -> schemas.PanelView:
    """Return how few voters are enough."""
    try:
        found = await asyncio.to_thread(call.model.learner._panels_to_compare(call.body.costs))
    except UNFIT as error:
        field = "costs" if str(error).startswith("costs") else None
        raise Refusal(422 if field else 409, str(error), field=field) from None
    return schemas.PanelView(trials=found.trials, panels=[schemas.PanelLineView(**line) for line in found.to_dict()])


async def curve(
    call: Call[None],
    *,
    after: After = 0,
    points: Annotated[int, Meta(ge=1, le=100_000, description="the most points")] = 1000,
) -> schemas.CurveView:
    """Return the mistakes along the trials."""
    return schemas.CurveView(**_curve(call.model, after, points))


def _curve(model: ServedModel, after: int, most: int) -> dict[str, Any]:
    """Return the points after a trial, the present one last, and the bound."""
    account, bound = model.account, model.bound()
    points = account.curve.after(after, most)
    if account.trials > after and (not points or points[-1][0] < account.trials):
        points = [*points, account.point]
    shown = None if bound is None else schemas.Bound(constant=bound[0], slope=bound[1])
    return {"trials": account.trials, "points": [list(point) for point in points], "bound": shown}


async def news(call: Call[None], *, after: After = 0) -> schemas.News:
    """Return figures, new points of the curve, weights and errors, for the page."""
    model = call.model
    try:
        largest = await model.weights.largest(model.learner, model.applied, PAGE_WEIGHTS)
    except ValueError:  # it has none to show
        largest = schemas.WeightsView()
    after = after if after <= model.account.trials else 0  # another model may have the name now
    return schemas.News(
        model=model.number,
        after=after,
        mistakes=model.account.mistakes,
        pending=model.pending,
        weights=largest,
        latency=call.app.metrics.latency(),
        errors=list(call.service.errors),
        **_curve(model, after, PAGE_POINTS),
    )


async def waiting(
    call: Call[None],
    *,
    after: After = 0,
    limit: Annotated[int, Meta(ge=1, le=1000, description="the most predictions")] = 100,
) -> schemas.WaitingView:
    """Return predictions that wait for their label, oldest first."""
    model = call.model
    rows = await call.service.pipeline.call(lambda log: log.waiting(model.number, after, limit))
    return schemas.WaitingView(pending=model.pending, predictions=rows)


async def trial(call: Call[None]) -> schemas.TrialView:
    """Return one trial as the log has it."""
    number, id = call.model.number, call.request.path_params["id"]
    return await call.service.pipeline.call(lambda log: log.trial(number, id))
