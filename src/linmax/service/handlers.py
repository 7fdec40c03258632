"""Handlers of the operations."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from linmax.service import views
from linmax.service.bodies import Asked
from linmax.service.messages import Answer, Request, encode, refused_answer
from linmax.service.refusals import Refusal

__all__ = [
    "PAGE",
    "answer_trial",
    "answer_trials",
    "ask_next",
    "change_model",
    "create_model",
    "delete_model",
    "explain",
    "forget",
    "health",
    "list_models",
    "list_waiting",
    "metrics_text",
    "no_answer",
    "openapi_description",
    "page_index",
    "page_part",
    "query_number",
    "rank",
    "ready",
    "send_snapshot",
    "show_curve",
    "show_model",
    "show_news",
    "show_panel",
    "show_trial",
    "show_weights",
]

POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", POLICY),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
PAGE = {
    "index.html": b"text/html; charset=utf-8",
    "page.css": b"text/css; charset=utf-8",
    "page.js": b"text/javascript; charset=utf-8",
    "uPlot.iife.min.js": b"text/javascript; charset=utf-8",
    "uPlot.min.css": b"text/css; charset=utf-8",
    "icon.svg": b"image/svg+xml",
}


async def _results(request: Request, items: list[Any]) -> list[Any]:
    service, begin = request.app.service, request.operation.begin
    assert begin is not None
    found: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()

    def done(results: list[Any]) -> None:
        if not found.done():  # the server may have given up waiting
            found.set_result(results)

    begin(service.trials, service.model(request.parameters["model"]), items, done)
    return await found


async def answer_trial(request: Request) -> Answer:
    result = (await _results(request, [request.body]))[0]
    if isinstance(result, Refusal):
        raise result
    return Answer(encode(result))


async def answer_trials(request: Request) -> Answer:
    results = await _results(request, request.body.items)
    refused = [result for result in results if isinstance(result, Refusal)]
    shown = [result.body() if isinstance(result, Refusal) else result for result in results]
    # A reason that concerns all items is the answer to the whole request.
    if len(refused) == len(results) and len({refusal.status for refusal in refused}) == 1:
        status = refused[0].status
        headers = refused_answer(refused[0]).headers
        return Answer(encode({"results": shown} | refused[0].body()), status, headers=headers)
    return Answer(encode({"results": shown}), 207 if refused else 200)


async def forget(request: Request) -> Answer:
    service = request.app.service
    outcome = (await service.trials.forget(service.model(request.parameters["model"]), [request.parameters["id"]]))[0]
    if isinstance(outcome, Refusal):
        raise outcome
    return Answer(b"", 204)


async def explain(request: Request) -> Answer:
    service = request.app.service
    return Answer(encode(await views.explanation(service.model(request.parameters["model"]), request.body)))


async def rank(request: Request) -> Answer:
    return Answer(encode(views.ranking(request.app.service.model(request.parameters["model"]), request.body)))


async def ask_next(request: Request) -> Answer:
    service, body = request.app.service, request.body
    model = service.model(request.parameters["model"])
    if views.inquiry(model, body).changes:  # which is stored, like what is learned
        if request.key is not None and "learn" not in request.key.scopes:
            told = "asking by another tolerance or other costs than before changes what is learned of few votes"
            raise Refusal(403, f"{told}, and the key {request.key.name!r} does not allow 'learn'")
        await service.trials.ask_by(model, body.tolerance, body.costs)
    inquiry = views.inquiry(model, body)
    if inquiry.changes:
        told = "another request asked by another tolerance or other costs in the meantime; agree on one for each model"
        raise Refusal(409, told, field="tolerance")
    return Answer(encode(Asked(voter=inquiry.next())))


async def show_panel(request: Request) -> Answer:
    return Answer(encode(await views.panel(request.app.service.model(request.parameters["model"]), request.body)))


async def list_models(request: Request) -> Answer:
    service = request.app.service
    service.check_ready()
    kept = [{"name": model.name, "reason": model.reason} for model in service.quarantined.values()]
    shown = []
    for model in list(service.models.values()):
        shown.append(msgspec.Raw(encode(views.summary(model))))
        await asyncio.sleep(0)  # thousands of classes each: others come in between
    return Answer(encode({"models": shown, "quarantined": kept}))


async def create_model(request: Request) -> Answer:
    return Answer(encode(views.summary(await request.app.service.create(request.body))), 201)


async def show_model(request: Request) -> Answer:
    return Answer(encode(views.summary(request.app.service.model(request.parameters["model"]))))


async def delete_model(request: Request) -> Answer:
    service = request.app.service
    service.check_ready()
    await service.delete(request.parameters["model"], request.query.get("confirm"))
    return Answer(b"", 204)


async def show_weights(request: Request) -> Answer:
    model = request.app.service.model(request.parameters["model"])
    return Answer(encode(await views.weights(model, query_number(request, "limit", 100, 10_000))))


async def show_curve(request: Request) -> Answer:
    model = request.app.service.model(request.parameters["model"])
    most = query_number(request, "points", 1000, 100_000)
    return Answer(encode(views.curve(model, query_number(request, "after", 0, 2**53, least=0), most)))


async def change_model(request: Request) -> Answer:
    service = request.app.service
    model = service.model(request.parameters["model"])
    limits = msgspec.to_builtins(request.body)
    await service.pipeline.call(lambda log: log.change(model.number, limits))
    model.change(limits)
    return Answer(encode(views.summary(model)))


async def list_waiting(request: Request) -> Answer:
    service = request.app.service
    model = service.model(request.parameters["model"])
    after, most = query_number(request, "after", 0, 2**53, least=0), query_number(request, "limit", 100, 1000)
    found = await service.pipeline.call(lambda log: log.waiting(model.number, after, most))
    return Answer(encode({"pending": model.pending, "predictions": found}))


async def show_trial(request: Request) -> Answer:
    service = request.app.service
    number, id = service.model(request.parameters["model"]).number, request.parameters["id"]
    return Answer(encode(await service.pipeline.call(lambda log: log.trial(number, id))))


async def show_news(request: Request) -> Answer:
    app = request.app
    model = app.service.model(request.parameters["model"])
    after = query_number(request, "after", 0, 2**53, least=0)
    news = await views.news(model, after, app.metrics.latency(), list(app.service.errors))
    return Answer(encode(news))


async def send_snapshot(request: Request) -> Answer:
    service = request.app.service
    model = service.model(request.parameters["model"])
    name = f'attachment; filename="{model.name}-{model.applied}.linmax"'.encode()
    content = await asyncio.to_thread(views.model_file, *model.learner_state())
    return Answer(content, kind=b"application/octet-stream", headers=((b"content-disposition", name),))


def query_number(request: Request, name: str, default: int, most: int, least: int = 1) -> int:
    text = request.query.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 17 and least <= int(text) <= most):
        raise Refusal(422, f"{name} must be a whole number from {least} to {most}, got {text[:40]!r}", field=name)
    return int(text)


async def health(_request: Request) -> Answer:
    return Answer(encode({"status": "alive"}))


async def ready(request: Request) -> Answer:
    service = request.app.service
    if service.stopping.is_set():
        raise Refusal(503, "the server is stopping", retry_after=5)
    service.check_ready()
    told = views.Ready(
        status="ready",
        disk_full=service.pipeline.full,
        quarantined=sorted(service.quarantined),
        incidents=service.incidents,
    )
    return Answer(encode(told))


async def metrics_text(request: Request) -> Answer:
    return Answer(request.app.metrics.text(), kind=b"text/plain; version=0.0.4; charset=utf-8")


async def openapi_description(request: Request) -> Answer:
    return Answer(request.app.description)


async def page_index(request: Request) -> Answer:
    return Answer(request.app.page["index.html"], kind=PAGE["index.html"], headers=PAGE_HEADERS)


async def page_part(request: Request) -> Answer:
    name = request.parameters["name"]
    if name not in PAGE:  # a look-up in memory: no name from a request reaches the file system
        raise Refusal(404, "there is no such part of the page")
    return Answer(request.app.page[name], kind=PAGE[name], headers=PAGE_HEADERS)


async def no_answer(_request: Request) -> Answer:
    raise AssertionError("a stream answers by itself")
