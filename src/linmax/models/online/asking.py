"""`Learner.ask`: voters are asked in order of worth until those left cannot change the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.blocks import missing
from linmax.models.asking import Question, newcomer, order_to_settle, read_costs
from linmax.models.online.candidates import among_candidates
from linmax.models.online.reading import Attributes

if TYPE_CHECKING:
    from linmax.models.online.answers import NamedAnswers

__all__ = ["next_voter"]


def next_voter(
    learner: NamedAnswers,
    votes: Mapping[Any, Any],
    attributes: Attributes,
    candidates: Sequence[Any] | None,
    costs: Any,
    among: Sequence[Any],
) -> Any:
    """See `Learner.ask`."""
    if not isinstance(votes, Mapping):
        raise TypeError(f"votes must be a dict from voter to vote, got {votes!r}")
    names = learner.voters
    for given, block in ("votes", votes), ("voters", among):
        unknown = [name for name in block if name not in names]
        if unknown:
            raise ValueError(f"{given}: {unknown[0]!r} is not a known voter; the voters are {names!r}")
    if candidates is not None and attributes is not None:
        raise TypeError("attributes have a weight for each class, and candidates have no weights of their own")
    asked = np.array([name in votes for name in names], bool)
    said = {name: vote for name, vote in votes.items() if not missing(vote)}
    if candidates is not None:
        engine, instance = among_candidates(learner, said, candidates)
        model = None
    else:
        model, engine, instance = learner._judging(learner._reading.read(attributes, said, None))
    columns = np.eye(len(names), instance.votes.shape[1], dtype=bool)
    weights = learner.weights.arrays.voters
    order = order_to_settle(weights, read_costs(costs, names))
    visited = None
    if model is not None and engine.settings.by_votes:
        visited = partial(newcomer, model, engine.layout)
    question = Question(engine, instance, asked, columns, visited)
    found = question.next([i for i in order if names[i] in among], weights)
    return None if found is None else names[found]
