"""Figure 5: mistakes of the best of each group on the majority problem, beside the optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from linmax.experiments.majority import RUNS, TRIALS, MajorityRun, draw_problem, fewest, play, seeds_of
from linmax.experiments.processes import JobPool, Progress, silent
from linmax.experiments.published import LEARNER_GROUPS, interval
from linmax.models.run import run
from linmax.util.checks import whole

__all__ = ["LATE", "figure5", "figure5_claims"]

FIGURE5_NOISE = 0.05
LATE = 1000  # trials at the end over which a late error is taken
FIGURE5_POINTS = 100  # of a curve, in the figures


def curves_of(noise: float, trials: int, names: Sequence[str], seed: int) -> np.ndarray:
    """Mistakes of each learner after each trial; the last row is for the target itself."""
    problem, instances = draw_problem(noise, trials, seed)
    learned = [run(name, instances, problem.labels).mistakes for name in names]
    return np.array([*learned, np.cumsum(problem.labels != problem.clean)])


def figure5(
    runs: int = RUNS, seed: int = 0, *, trials: int = TRIALS, jobs: int = 1, progress: Progress = silent
) -> dict[str, Any]:
    """Figure 5: mistakes at noise .05, averaged over the runs, of the best of each group and of the optimum.

    Parameters are those of `table1`.

    Returns
    -------
    dict
        ``curves`` by group: ``name, mistakes, ci95, late_error`` and ``curve`` at the trials ``at``; ``claims``: what
        the paper says of the figure, and whether it holds here; ``mean``: the whole curves, arrays by group.

    Examples
    --------
    >>> list(figure5(runs=2, trials=200)["curves"])
    ['best_b', 'best_a', 'best_ar', 'vr_combine', 'optimal']
    """
    runs, trials = whole("runs", runs, 2), whole("trials", trials, 1)
    jobs, seed = whole("jobs", jobs, 1), whole("seed", seed, 0)
    first = [pair[0] for pair in seeds_of(seed, runs)]
    with JobPool(jobs, progress) as workers:
        played = workers.map("choosing", play, [MajorityRun(FIGURE5_NOISE, each, trials) for each in first])
        groups = list(reversed(LEARNER_GROUPS))
        names = [fewest([each["positive", group] for each in played]) for group in groups]
        curves = np.array(workers.map("learning", partial(curves_of, FIGURE5_NOISE, trials, names), first))
    late = max(0, trials - 1 - LATE)
    at = np.unique(np.linspace(1, trials, min(FIGURE5_POINTS, trials)).astype(int))
    found: dict[str, dict[str, Any]] = {}
    for place, (group, name) in enumerate(zip([*groups, "optimal"], [*names, "optimal"], strict=True)):
        mistakes, ci95 = interval(curves[:, place, -1])
        mean = curves[:, place].mean(axis=0)
        slope = float(mean[-1] - mean[late]) / (trials - 1 - late) if trials > 1 else float(mean[-1])
        found[group] = {
            "name": name,
            "mistakes": mistakes,
            "ci95": ci95,
            "late_error": slope,
            "curve": mean[at - 1],
        }
    return {
        "at": at,
        "curves": found,
        "claims": figure5_claims(found),
        "mean": {group: curves[:, place].mean(axis=0) for place, group in enumerate(found)},
    }


def figure5_claims(curves: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the paper says about the figure; its numbers are not printed."""
    total = {group: entry["mistakes"] for group, entry in curves.items()}
    late = {group: entry["late_error"] for group, entry in curves.items()}
    return [
        {
            "claim": "best basic > best averaged > best averaged and recycled > optimal",
            "holds": total["best_b"] > total["best_a"] > total["best_ar"] > total["optimal"],
        },
        {
            "claim": "VR-Combine makes about as many mistakes as the best AR (within 10 %)",
            "holds": abs(total["vr_combine"] - total["best_ar"]) <= 0.1 * total["best_ar"],
        },
        {
            "claim": "the late error of both is about that of the optimum (within .01)",
            "holds": max(late["vr_combine"], late["best_ar"]) - late["optimal"] <= 0.01,
        },
    ]
