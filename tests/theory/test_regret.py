"""The regret of the pool for votes: against every sequence of members, and never more than fixed share allows."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

import linmax
from linmax.learners.votes.pool import RATE
from linmax.theory import adversaries, bounds
from linmax.theory.regret import Losses, least, losses_of


def losses(learner: str, instances: linmax.data.instances.Instances, labels: np.ndarray) -> Losses:
    trace = linmax.run(learner, instances, labels)
    model = type(trace.model)(trace.model.learner, instances.layout, trace.model.classes, trace.model.engine.settings)
    return losses_of(model, instances, labels)


@pytest.mark.small
def test_it_is_the_least_over_all_sequences() -> None:
    random = np.random.default_rng(0)
    first = np.array([0.5, 0.3, 0.2])
    made = Losses(np.zeros(7), 9.0 * random.random((7, 3)), first)
    for switches in range(4):
        found = least(made, switches)
        values = []
        for members in product(range(3), repeat=7):
            changes = sum(a != b for a, b in pairwise(members))
            if changes <= switches:
                loss = float(made.members[np.arange(7), members].sum())
                cost = bounds.fixed_share(3, 7, changes, RATE * 2 / 3, first=float(first[members[0]]))
                values.append((loss + cost, loss, changes))
        total, loss, changes = min(values)
        assert found.best + found.bound == pytest.approx(total, rel=1e-12)
        assert found.best == pytest.approx(loss, rel=1e-12)
        assert found.switches == changes
    with pytest.raises(ValueError, match="switches"):
        least(made, -1)


@pytest.mark.parametrize("learner", ["votes", "auto"])
def test_the_pool_never_loses_more(learner: str) -> None:
    """Voters that change sides half-way, and ones that do not; the losses are those of the run itself."""
    data = linmax.datasets.majority_problem(n=8, r=4, k=3, trials=250, noise=0.1, seed=4)
    for votes, labels in (adversaries.turncoats(n=6, relevant=2, k=3, trials=250, seed=1), (data.votes, data.labels)):
        instances = linmax.instances(votes=votes)
        trace = linmax.run(learner, instances, labels)
        made = losses(learner, instances, labels)
        previous = np.inf
        for switches in (0, 1, 3):
            found = trace.regret(switches)
            assert found == least(made, switches)
            assert found.loss <= found.best + found.bound
            assert found.best + found.bound <= previous  # more sequences to choose from
            previous = found.best + found.bound
        model = type(trace.model)(
            trace.model.learner, instances.layout, trace.model.classes, trace.model.engine.settings
        )
        given = []
        for t, label in enumerate(labels.tolist()):
            rates = model.scores(instances[t : t + 1])[0]
            given.append(-rates[model.classes.index(label)])
            model.run(instances[t : t + 1], [label])
        same = np.isclose(made.mixture, given, rtol=1e-9, atol=1e-9)
        assert same.mean() > 0.98  # all but where the answer takes the largest probability


@pytest.mark.small
def test_missing_regret_gives_reason() -> None:
    data = linmax.datasets.majority_problem(trials=30, seed=0)
    votes = linmax.instances(votes=data.votes)
    with pytest.raises(ValueError, match="perceptron mixes none"):
        linmax.run("perceptron", votes, data.labels).regret()
    with pytest.raises(ValueError, match="auto mixes none"):
        linmax.run("auto", linmax.instances(attributes=np.eye(3)), [0, 1, 2]).regret()
    with pytest.raises(ValueError, match="all classes known from the start"):
        linmax.run("votes", votes, data.labels, discover=True).regret()
    with pytest.raises(ValueError, match="a label at every trial"):
        linmax.run("votes", votes, [None, *data.labels.tolist()[1:]]).regret()
    trace = linmax.run("votes", votes, data.labels)
    with pytest.raises(ValueError, match="first trials"):
        trace.model.run(votes, data.labels).regret()
    with pytest.raises(ValueError, match="regret bounds the log loss of pools"):
        trace.bound(data.target)
