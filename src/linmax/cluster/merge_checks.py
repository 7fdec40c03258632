"""Which models can be merged, and with which shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from linmax.data.arrays import Layout
from linmax.engine.engine import Engine, Settings
from linmax.engine.notation import as_learner
from linmax.models.fusion import OnLineFusion
from linmax.models.online import Learner
from linmax.models.streams.model import StreamModel
from linmax.rules.mixing import mixture_of
from linmax.util.checks import finite, one_of

__all__ = [
    "HOW",
    "Mergeable",
    "checked_models",
    "refuse_different",
    "refuse_unmergeable",
    "refuse_unmixable_nodes",
    "shares_by",
    "shares_of",
]

Mergeable = TypeVar("Mergeable", Learner, StreamModel, OnLineFusion)
HOW = ("uniform", "trials", "mistakes")


def refuse_unmergeable(learner: Any) -> None:
    """Raise with the reason where a learner has no sound mixture."""
    engine = Engine(as_learner(learner), Layout(0, 0, 0, 0, 1.0), 0, Settings(discover=True))
    refuse_unmixable_nodes(engine)
    for run in engine.runs:
        mixture_of(run.rule)


def refuse_unmixable_nodes(engine: Engine) -> None:
    """The same for what an engine has become: a pool may have made parts for the sub-experts that it met."""
    for node in engine.top.walk():
        if node.unmixable:
            raise ValueError(f"{engine.learner} cannot be merged: {node.unmixable}")


def checked_models(models: Sequence[Mergeable]) -> Sequence[Mergeable]:
    if isinstance(models, (Learner, StreamModel, OnLineFusion)) or not isinstance(models, Iterable):
        raise TypeError(f"models must be a list, got {models!r}; put it in square brackets")
    models = list(models)
    if not models:
        raise ValueError("models must hold at least one model, got none")
    for place, model in enumerate(models):
        if not isinstance(model, (Learner, StreamModel, OnLineFusion)) or type(model) is not type(models[0]):
            raise TypeError(
                f"models must all be Learner objects, all stream models or all fusions; number {place} is a "
                f"{type(model).__name__}, number 0 a {type(models[0]).__name__}"
            )
    return models


def refuse_different(models: Sequence[Any], names: Sequence[str] = ()) -> None:
    """Refuse models with different options, or with instances that wait for labels; ``names`` are those of files."""
    first, names = models[0].options, names or [f"number {place}" for place in range(len(models))]
    for place, model in enumerate(models[1:], 1):
        for name, value in model.options.items():
            if first[name] != value:
                raise ValueError(
                    f"models must have the same {name}: {names[place]} has {value!r}, {names[0]} {first[name]!r}"
                )
    if len(models) > 1:
        for place, model in enumerate(models):
            if isinstance(model, Learner) and model.pending:
                raise ValueError(
                    f"{model.pending} instances of model {place} wait for their labels; learn or forget() them first"
                )


def shares_of(models: Sequence[Any], base: Any, how: str | Sequence[float]) -> np.ndarray:
    """mu_i: at least 0, with the sum 1."""
    if isinstance(how, str):
        one_of("how", how, HOW)
        trials, updates, mistakes = (0, 0, 0) if base is None else (base.trials, base.updates, base.mistakes)
        return shares_by(
            how,
            [
                (model.trials > trials, model.trials - trials, model.updates - updates, model.mistakes - mistakes)
                for model in models
            ],
        )
    shares = np.array([finite("how", share) for share in how], float)
    if len(shares) != len(models) or (shares < 0.0).any() or not shares.sum() > 0.0:
        raise ValueError(
            f"how must be {', '.join(map(repr, HOW))}, or {len(models)} numbers >= 0 that are not all 0, got {how!r}"
        )
    return shares / shares.sum()


def shares_by(how: str, counts: Sequence[tuple[float, float, float, float]]) -> np.ndarray:
    """mu_i from what each model counts for: models that learned anything, trials, updates, mistakes."""
    learned, trials, updates, mistakes = np.array(counts, float).T
    kinds = {"uniform": [], "trials": [trials], "mistakes": [updates, mistakes]}[how]  # pools count no updates
    for shares in [*kinds, learned, np.ones(len(counts))]:
        if shares.sum() > 0.0:
            break
    return np.asarray(shares / shares.sum())
