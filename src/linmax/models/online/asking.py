"""`Learner.ask`: voters are asked in order of worth until those left cannot change the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.blocks import missing
from linmax.models.asking import Question, order_by_worth, read_costs
from linmax.models.online.candidates import best_first, judged
from linmax.models.online.reading import Attributes, Given

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
    names, known = learner.voters, learner.known if candidates is None else list(candidates)
    for given, block in ("votes", votes), ("voters", among):
        unknown = [name for name in block if name not in names]
        if unknown:
            raise ValueError(f"{given}: {unknown[0]!r} is not a known voter; the voters are {names!r}")
    weights = learner.weights.arrays.voters
    order = order_by_worth(weights, read_costs(costs, names))
    place = {name: at for at, name in enumerate(known)}
    codes = np.array(
        [place.get(votes.get(name), -1) if not missing(votes.get(name)) else -1 for name in names], np.int32
    )
    asked = np.array([name in votes for name in names], bool)
    if candidates is not None and attributes is not None:
        raise TypeError("attributes have a weight for each class, and candidates have no weights of their own")
    numbers = learner._reading.read(attributes, None, None).attributes if attributes is not None else {}

    def judge(rows: np.ndarray) -> np.ndarray:
        if candidates is not None:
            voted = [{names[i]: code for i, code in enumerate(row) if code >= 0} for row in rows.tolist()]
            found = (judged(learner, Given({}, row, {}), len(known)) for row in voted)
            return np.array([best_first(learner, rated)[0] for rated in found])
        said = [{names[i]: known[code] for i, code in enumerate(row) if code >= 0} for row in rows.tolist()]
        return np.array([learner._judge(Given(numbers, row, {}))[1][0] for row in said])

    found = Question(codes, asked).next([i for i in order if names[i] in among], weights, judge, len(known))
    return None if found is None else names[found]
