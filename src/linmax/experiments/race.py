"""A live race of a few learners on the majority problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from linmax.experiments.majority import CLASSES, LATE, TRIALS, draw_problem
from linmax.models.run import run
from linmax.util.checks import whole
from linmax.util.tables import Heading, Table, table

__all__ = ["RACERS", "race", "standings"]

RACERS = ("perceptron", "winnow(1.03)", "balanced-winnow(1.1)", "auto")


def race(
    learners: Sequence[str] = RACERS, noise: float = 0.05, trials: int = TRIALS, seed: int = 0, frames: int = 1
) -> Iterator[dict[str, np.ndarray]]:
    """Run the learners side by side with two baselines; yield, after each of the frames, which predictions were wrong.

    "plurality" counts all voters alike; "optimal" knows the relevant ones, so that only noise defeats it.

    Examples
    --------
    >>> *_, wrong = race(["perceptron"], noise=0.0, trials=500)
    >>> {name: int(each.sum()) for name, each in wrong.items()}
    {'perceptron': 108, 'plurality': 222, 'optimal': 0}
    """
    problem, instances = draw_problem(noise, whole("trials", trials, 1), seed)
    counts = (problem.votes[:, :, np.newaxis] == np.arange(CLASSES)).sum(axis=1)
    predictions = {"plurality": counts.argmax(axis=1), "optimal": problem.clean}
    models = {name: run(name, instances[:0], []).model for name in learners}
    wrong: dict[str, np.ndarray] = {name: np.zeros(0, bool) for name in (*learners, *predictions)}
    cuts = np.unique(np.linspace(0, trials, frames + 1).astype(int))
    for begin, end in pairwise(cuts.tolist()):
        now, labels = slice(begin, end), problem.labels[begin:end]
        answers = {name: models[name].run(instances[now], labels).predictions for name in learners}
        answers |= {name: each[now] for name, each in predictions.items()}
        wrong = {name: np.append(wrong[name], each != labels) for name, each in answers.items()}
        yield wrong


def standings(wrong: dict[str, np.ndarray]) -> Table:
    """Lay out the mistakes so far and the error of the last trials, fewest mistakes first."""
    rows = [
        {"learner": name, "mistakes": int(each.sum()), "error": float(each[-LATE:].mean())}
        for name, each in sorted(wrong.items(), key=lambda item: int(item[1].sum()))
    ]
    trials = len(next(iter(wrong.values())))
    late = Heading("error", f"error, last {min(LATE, trials):,d}", ".3f")
    columns = [Heading("learner"), Heading("mistakes", format=",d"), late]
    return table(rows, columns, title=f"Majority problem, {trials:,d} trials")
