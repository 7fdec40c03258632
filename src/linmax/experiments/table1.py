"""Table I: the error of the last hypothesis, beside the paper's.

A run learns from 5,000 trials; the error of its last hypothesis is taken on 50,000 fresh instances with the same noise.
Of each group of learners the table shows the one with the fewest on-line mistakes, averaged over the runs.
``docs/reproduction.md`` says what the paper leaves open, and what was chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from linmax.experiments.majority import (
    RUNS,
    TEST,
    TRIALS,
    Exam,
    MajorityRun,
    Place,
    RunResult,
    examine,
    fewest,
    play,
    seeds_of,
)
from linmax.experiments.processes import JobPool, Progress, silent
from linmax.experiments.published import NOISES, PAPER, READINGS, Cell, agrees, interval, translated
from linmax.util.checks import whole

__all__ = ["table1"]


def table1(
    noises: Sequence[float] = NOISES,
    runs: int = RUNS,
    seed: int = 0,
    *,
    trials: int = TRIALS,
    test: int = TEST,
    jobs: int = 1,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Table I: the error of the last hypothesis, for both readings of "Balanced", beside the paper's.

    Parameters
    ----------
    noises
        Rows of the table, among `NOISES`.
    runs, seed
        Independent runs, at least 2, and what they are drawn from.
    trials, test
        Trials of a run, and instances on which its last hypothesis is tested.
    jobs
        Processes. With more than one, a script needs ``if __name__ == "__main__":``.
    progress
        Called with the stage, the amount done, and the total.

    Returns
    -------
    dict
        ``cells`` (positive weights, the likelier reading) and ``balanced`` (w+ - w-), both by noise and group:
        ``name, error, ci95, mistakes, mistakes_ci95, agrees`` and ``papers_choice``, the same for the learner that the
        paper names; ``paper`` in the same form.

    Examples
    --------
    >>> result = table1([0.05], runs=2, trials=200, test=1000)
    >>> sorted(result["cells"]["0.05"])
    ['best_a', 'best_ar', 'best_b', 'vr_combine']
    """
    runs, trials, test = whole("runs", runs, 2), whole("trials", trials, 1), whole("test", test, 1)
    jobs, seed = whole("jobs", jobs, 1), whole("seed", seed, 0)
    if not noises:
        raise ValueError(f"noises must hold at least one of {_listed(NOISES)}")
    for noise in noises:
        if noise not in NOISES:
            raise ValueError(f"noise must be one of the table's rows, {_listed(NOISES)}, got {noise:g}")
    pairs = seeds_of(seed, runs)
    settings = [MajorityRun(noise, first, trials, tuple(READINGS)) for noise in noises for first, _ in pairs]
    with JobPool(jobs, progress) as workers:
        played = workers.map("learning", play, settings)
        rows = [NoiseLevel(noise, played[place * runs : (place + 1) * runs]) for place, noise in enumerate(noises)]
        exams = [
            Exam(row.noise, second, test, row.weights(number))
            for row in rows
            for number, (_, second) in enumerate(pairs)
        ]
        errors = workers.map("testing", examine, exams)
    found: dict[str, dict[str, Any]] = {reading: {} for reading in READINGS}
    for place, row in enumerate(rows):
        for reading, cells in row.cells(np.array(errors[place * runs : (place + 1) * runs])).items():
            found[reading][f"{row.noise:g}"] = cells
    return {
        "cells": found["positive"],
        "balanced": found["balanced"],
        "paper": {f"{noise:g}": {group: cell.figures() for group, cell in PAPER[noise].items()} for noise in noises},
    }


def _listed(noises: Iterable[float]) -> str:
    return ", ".join(f"{noise:g}" for noise in noises)


class NoiseLevel:
    """One noise level: the learners shown, and their results in every run."""

    def __init__(self, noise: float, played: Sequence[Mapping[Place, Mapping[str, RunResult]]]) -> None:
        self.noise, self.played = noise, played
        self.shown: list[tuple[Place, str]] = []  # at each place the best, then the paper's choice if it is another
        for place in played[0]:
            best = fewest([each[place] for each in played])
            self.shown += [(place, name) for name in dict.fromkeys([best, self._named(place)])]

    def _named(self, place: Place) -> str:
        reading, group = place
        return translated(PAPER[self.noise][group].name, reading)

    def weights(self, number: int) -> np.ndarray:
        """The last hypotheses of one run, of those shown."""
        return np.array([self.played[number][place][name].weights for place, name in self.shown])

    def cells(self, errors: np.ndarray) -> dict[str, dict[str, Any]]:
        """The entries by reading and group, from the errors (runs, shown)."""
        found: dict[str, dict[str, Any]] = {reading: {} for reading in READINGS}
        for (place, name), sample in zip(self.shown, errors.T, strict=True):
            reading, group = place
            cell = Cell(name, *interval(sample), *interval([each[place][name].mistakes for each in self.played]))
            entry = {**cell.figures(), "agrees": agrees(group, cell, PAPER[self.noise][group])}
            found[reading].setdefault(group, dict(entry))
            if name == self._named(place):
                found[reading][group]["papers_choice"] = entry
        return found
