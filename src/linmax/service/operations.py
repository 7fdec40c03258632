"""The table of operations, from which the routes and the OpenAPI description are made."""

from __future__ import annotations

from typing import Any

from linmax.service import bodies, views
from linmax.service.export import stream_export
from linmax.service.handlers import (
    answer_trial,
    answer_trials,
    ask_next,
    change_model,
    create_model,
    delete_model,
    explain,
    forget,
    health,
    list_models,
    list_waiting,
    metrics_text,
    no_answer,
    openapi_description,
    page_index,
    page_part,
    rank,
    ready,
    send_snapshot,
    show_curve,
    show_model,
    show_news,
    show_panel,
    show_trial,
    show_weights,
)
from linmax.service.messages import Operation
from linmax.service.trials import TrialOperations

__all__ = ["MODEL", "OPERATIONS"]

MODEL = "/v1/models/{model}"
COUNT_SCHEMA = {"type": "integer", "minimum": 0}
LEARNING = (404, 409, 429, 503, 507)
# The most frequent paths come first: routes are tried in this order.
OPERATIONS: list[Operation] = [
    Operation(
        "predict", "POST", f"{MODEL}/predict", "predict", "Predict the label of an instance; keep it when it has an id",
        answer_trial, bodies.PredictBody, bodies.Predicted, refuses=LEARNING, begin=TrialOperations.predict,
    ),
    Operation(
        "learn", "POST", f"{MODEL}/learn", "learn", "Store an instance with its label and learn it",
        answer_trial, bodies.LearnBody, bodies.Learned, refuses=LEARNING, begin=TrialOperations.learn,
    ),
    Operation(
        "label", "POST", f"{MODEL}/label", "learn", "Store the label of an earlier prediction and learn it",
        answer_trial, bodies.LabelBody, bodies.Learned, refuses=LEARNING, begin=TrialOperations.label,
    ),
    Operation(
        "predictBatch", "POST", f"{MODEL}/predict/batch", "predict", "Predict several instances",
        answer_trials, bodies.PredictBatch, bodies.PredictedBatch, refuses=(207, *LEARNING),
        begin=TrialOperations.predict,
    ),
    Operation(
        "learnBatch", "POST", f"{MODEL}/learn/batch", "learn", "Learn several instances in this order",
        answer_trials, bodies.LearnBatch, bodies.LearnedBatch, refuses=(207, *LEARNING), begin=TrialOperations.learn,
    ),
    Operation(
        "labelBatch", "POST", f"{MODEL}/label/batch", "learn", "Learn the labels of several earlier predictions",
        answer_trials, bodies.LabelBatch, bodies.LearnedBatch, refuses=(207, *LEARNING), begin=TrialOperations.label,
    ),
    Operation(
        "forget", "DELETE", f"{MODEL}/predictions/{{id}}", "learn", "Give up a prediction whose label will not come",
        forget, status=204, refuses=LEARNING,
    ),
    Operation(
        "explain", "POST", f"{MODEL}/explain", "predict", "Scores of all classes, and what speaks for them",
        explain, bodies.ExplainBody, views.ExplanationView, refuses=(404, 503),
    ),
    Operation(
        "rank", "POST", f"{MODEL}/rank", "predict", "Candidates in order, the best first",
        rank, bodies.RankBody, views.Ranking, refuses=(404, 503),
    ),
    Operation(
        "ask", "POST", f"{MODEL}/ask", "predict", "Whom of the voters to ask next; nobody when more is not worth it",
        ask_next, bodies.AskBody, bodies.Asked, refuses=(404, 409, 503, 507),
    ),
    Operation(
        "panel", "POST", f"{MODEL}/panel", "predict", "How few voters are enough",
        show_panel, bodies.PanelBody, views.PanelView, refuses=(404, 409, 503), cost=100,
    ),
    Operation(
        "wantsLabel", "POST", f"{MODEL}/wants_label", "learn", "Whether a label is worth asking for; draws are stored",
        answer_trial, bodies.WantsBody, bodies.Wanted, refuses=LEARNING, begin=TrialOperations.wants_label,
    ),
    Operation("models", "GET", "/v1/models", "predict", "All models", list_models, None, views.Models, refuses=(503,)),
    Operation(
        "create", "POST", "/v1/models", "admin", "Make a model",
        create_model, bodies.NewModel, views.Summary, 201, refuses=(409, 429, 503, 507),
    ),
    Operation("model", "GET", MODEL, "predict", "One model", show_model, None, views.Summary, refuses=(404, 503)),
    Operation(
        "delete", "DELETE", MODEL, "admin", "Delete a model with its log; must be asked twice",
        delete_model, status=204, refuses=(404, 428, 503, 507),
        query=(("confirm", {"type": "string"}, "the word that the first asking was answered with"),),
    ),
    Operation(
        "weights", "GET", f"{MODEL}/weights", "predict", "The largest weights",
        show_weights, None, views.WeightsView, refuses=(404, 409, 503),
        query=(("limit", {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 100}, "how many of a kind"),),
        cost=10,
    ),
    Operation(
        "curve", "GET", f"{MODEL}/curve", "predict", "Mistakes along the trials",
        show_curve, None, views.CurveView, refuses=(404, 503),
        query=(
            ("after", {**COUNT_SCHEMA, "maximum": 2**53, "default": 0}, "only points beyond this trial"),
            ("points", {"type": "integer", "minimum": 1, "maximum": 100_000, "default": 1000}, "at most so many"),
        ),
    ),
    Operation(
        "news", "GET", f"{MODEL}/news", "predict", "Figures, new points of the curve, weights and errors, for the page",
        show_news, None, views.News, refuses=(404, 503),
        query=(("after", {**COUNT_SCHEMA, "maximum": 2**53, "default": 0}, "only points beyond this trial"),),
    ),
    Operation(
        "snapshot", "GET", f"{MODEL}/snapshot", "admin", "The model as a file that linmax.Learner.load reads",
        send_snapshot, refuses=(404, 503), kind="application/octet-stream", cost=100,
    ),
    Operation(
        "change", "PATCH", MODEL, "admin", "Change a model's limits",
        change_model, bodies.Limits, views.Summary, refuses=(404, 503, 507),
    ),
    Operation(
        "waiting", "GET", f"{MODEL}/predictions", "learn", "Predictions that wait for their label, oldest first",
        list_waiting, None, views.WaitingView, refuses=(404, 503, 507), cost=10,
        query=(
            ("after", {**COUNT_SCHEMA, "maximum": 2**53, "default": 0}, "only those with a later seq"),
            ("limit", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}, "at most so many"),
        ),
    ),
    Operation(
        "trial", "GET", f"{MODEL}/trials/{{id}}", "learn", "One trial as the log has it",
        show_trial, None, views.TrialView, refuses=(404, 503, 507),
    ),
    Operation(
        "export", "GET", "/v1/export", "admin", "The log as lines of JSON",
        no_answer, refuses=(404, 503, 507), kind="application/x-ndjson", stream=stream_export, cost=100,
        query=(
            ("since", {**COUNT_SCHEMA, "maximum": 2**53, "default": 0}, "only later events"),
            ("model", {"type": "string"}, "of this model alone"),
        ),
    ),
    Operation("health", "GET", "/health", "", "Whether the process is alive", health, None, views.Status),
    Operation("ready", "GET", "/ready", "", "Whether requests are taken", ready, None, views.Ready, refuses=(503,)),
    Operation("metrics", "GET", "/metrics", "predict", "Figures for Prometheus", metrics_text, kind="text/plain"),
    Operation("openapi", "GET", "/openapi.json", "", "This description", openapi_description, None, dict[str, Any]),
    Operation("page", "GET", "/", "", "The page", page_index, kind="text/html"),
    Operation("part", "GET", "/static/{name}", "", "A part of the page", page_part, refuses=(404,), kind="*/*"),
]  # fmt: skip
