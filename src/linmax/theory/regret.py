"""Regret of the pool for votes: its log loss minus that of its members in hindsight, and the bound on it.

The trials are played again, one by one, to see what probability each member gave to the label. The mixture is that of
fixed share (`linmax.theory.bounds.fixed_share`): its log loss is at most that of any sequence of members, and what this
sequence costs, the logarithms of its first weight and of its changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linmax.data.arrays import cut
from linmax.data.instances import Instances
from linmax.data.names import distinct_labels
from linmax.learners.votes.pool import RATE
from linmax.util.aliases import Label
from linmax.util.checks import whole

if TYPE_CHECKING:
    from linmax.learners.votes.pool import RunningVotes
    from linmax.models.model import Model

__all__ = ["Losses", "Regret", "least", "losses_of"]


class Regret(NamedTuple):
    """Log losses, summed over the trials, in nats.

    ``best`` is that of the sequence of members for which ``best + bound`` is least, of all that change so often; it
    changes ``switches`` times at most. ``loss``, the pool's own, is never more than ``best + bound``.
    """

    loss: float
    best: float
    bound: float
    switches: int


class Losses(NamedTuple):
    """Log loss of the pool and of each member at each trial, and the first weights of the members."""

    mixture: np.ndarray  # (trials,)
    members: np.ndarray  # (trials, members)
    first: np.ndarray  # (members,)


def votes_of(model: Model) -> RunningVotes:
    """The pool for votes in a model."""
    found = model.engine.top.pools.get("votes")
    if found is None:
        raise ValueError(
            f"regret is that of a mixture of probabilities, and {model.learner} mixes none on these instances; use "
            "votes or auto on votes or scores"
        )
    return found


def losses_of(model: Model, instances: Instances, labels: Sequence[Label] | np.ndarray) -> Losses:
    """The losses of a pool that has learned nothing yet, on its first trials."""
    distinct, inverse = distinct_labels(labels, len(instances), gaps=True)
    known = len(model.classes)
    if (inverse < 0).any() or model.engine.settings.discover:
        raise ValueError("regret needs a label at every trial and all classes known from the start; see discover=")
    places = np.array([model.classes.index(name) for name in distinct], np.int32)[inverse]
    played, pool = model.fitted(instances)._replace(labels=places), votes_of(model)
    working = pool.mixture > 0.0
    first, mixture, members = pool.mixture[working], [], []
    for t, label in enumerate(places.tolist()):
        running = votes_of(model)
        weights, guesses = running.mixture[working].copy(), running.guesses[working].copy()
        model.engine.run(cut(played, t, t + 1))
        guess = guesses[:, 0] / guesses.sum(axis=1)
        probabilities = (1.0 - guess) * running.shares[working, label] + guess / known
        members.append(-np.log(probabilities))
        mixture.append(-float(np.log(weights @ probabilities)))
    return Losses(np.array(mixture), np.array(members).reshape(-1, len(first)), first)


def least(losses: Losses, switches: int) -> Regret:
    """The regret against sequences of members that change at most so often."""
    trials, m = losses.members.shape
    most = min(whole("switches", switches, 0), max(0, trials - 1)) if m > 1 else 0
    if trials == 0:
        return Regret(0.0, 0.0, 0.0, 0)
    change, stay = np.log(m / RATE), -np.log1p(-RATE * (m - 1) / m)
    # cost[j, i] is the least of a sequence that ends with member i after j changes; lost is the part of its losses
    cost, lost = np.full((most + 1, m), np.inf), np.zeros((most + 1, m))
    cost[0], lost[0] = losses.members[0] - np.log(losses.first), losses.members[0]
    for row in losses.members[1:]:
        from_other = np.argmin(cost[:-1], axis=1)
        moved = np.take_along_axis(cost[:-1], from_other[:, None], 1) + change
        cost, carried = cost + stay, lost.copy()
        better = moved < cost[1:]
        carried[1:] = np.where(better, np.take_along_axis(lost[:-1], from_other[:, None], 1), lost[1:])
        cost[1:] = np.where(better, moved, cost[1:])
        cost, lost = cost + row, carried + row
    j, i = np.unravel_index(int(np.argmin(cost)), cost.shape)
    return Regret(float(losses.mixture.sum()), float(lost[j, i]), float(cost[j, i] - lost[j, i]), int(j))
