"""One run of the majority problem: which learners play, and the errors of their last hypotheses.

The problem has 20 voters, 10 of them relevant, 5 classes and 5 thresholds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linmax.core.contract import Rule
from linmax.data.experts import Experts, experts
from linmax.data.problems import MajorityProblem, majority_problem
from linmax.engine.pools import PAPER_ALPHAS, paper_pool, vr_combine
from linmax.experiments.published import LEARNER_GROUPS
from linmax.models.run import run
from linmax.rules import balanced_winnow
from linmax.techniques import average, combine

__all__ = [
    "RUNS",
    "TEST",
    "TRIALS",
    "Exam",
    "MajorityRun",
    "Place",
    "RunResult",
    "draw_problem",
    "examine",
    "fewest",
    "play",
    "pool_of",
    "seeds_of",
]

Place = tuple[str, str]  # reading and group
VOTERS, RELEVANT, CLASSES = 20, 10, 5
RUNS, TRIALS, TEST = 20, 5000, 50_000


@dataclass(frozen=True)
class MajorityRun:
    """One run of the majority problem."""

    noise: float
    seed: int
    trials: int
    readings: tuple[str, ...] = ("positive",)


@dataclass(frozen=True)
class RunResult:
    """The result of one learner in one run: its mistakes and its last weights."""

    mistakes: int
    weights: np.ndarray


def pool_of(reading: str) -> list[Rule]:
    """The paper's 31 rules, with "Balanced" read as Winnow with positive weights or as Balanced Winnow, w+ - w-.

    Examples
    --------
    >>> print(pool_of("positive")[1], pool_of("balanced")[1], pool_of("balanced")[15])
    winnow(1.03) balanced-winnow(1.03) perceptron
    """
    rules = paper_pool()
    if reading == "positive":
        return rules
    return [*(balanced_winnow(alpha) for alpha in PAPER_ALPHAS), *rules[len(PAPER_ALPHAS) :]]


def draw_problem(noise: float, trials: int, seed: int) -> tuple[MajorityProblem, Experts]:
    problem = majority_problem(VOTERS, RELEVANT, CLASSES, noise, trials, seed)
    return problem, experts(votes=problem.votes, classes=range(CLASSES))


def play(setting: MajorityRun) -> dict[Place, dict[str, RunResult]]:
    """Run every learner of the table once; results by reading and group, then by name.

    VR-Combine runs the recycled rules and their averages as its members, so one run gives them all; the rules and
    averages without recycling need another.
    """
    problem, instances = draw_problem(setting.noise, setting.trials, setting.seed)
    found: dict[Place, dict[str, RunResult]] = {
        (reading, group): {} for reading in setting.readings for group in LEARNER_GROUPS
    }
    for reading in setting.readings:
        rules = pool_of(reading)
        fused = run(vr_combine(rules), instances, problem.labels)
        plain = run(combine([*rules, *map(average, rules)]), instances, problem.labels)
        found[reading, "vr_combine"]["VR-combine"] = RunResult(int(fused.mistakes[-1]), fused.model.weights.arrays.flat)
        for member in [*fused.model.members, *plain.model.members]:
            prefix = member.name.partition("-")[0]
            if prefix != "R":  # recycled but not averaged: the table has no column for it
                group = {"AR": "best_ar", "A": "best_a"}.get(prefix, "best_b")
                found[reading, group][member.name] = RunResult(member.mistakes, member.weights.arrays.flat)
    return found


@dataclass(frozen=True)
class Exam:
    """Hypotheses to be tested: one row of weights each, first of the voters, then of the thresholds."""

    noise: float
    seed: int
    size: int
    weights: np.ndarray


def examine(exam: Exam) -> np.ndarray:
    """The share of fresh instances that each hypothesis gets wrong."""
    problem = majority_problem(VOTERS, RELEVANT, CLASSES, exam.noise, exam.size, exam.seed)
    votes = np.ascontiguousarray(problem.votes.T)
    voters, thresholds = exam.weights[:, :VOTERS], exam.weights[:, VOTERS:, np.newaxis]
    scores = np.stack([voters @ (votes == label) + thresholds[:, label] for label in range(CLASSES)])
    wrong = scores.argmax(axis=0) != problem.labels  # argmax: the smallest of tied classes
    return np.asarray(wrong.mean(axis=1))


def seeds_of(seed: int, runs: int) -> list[tuple[int, int]]:
    """For each run, the seeds of its trials and of its test instances; more runs begin with the same seeds.

    Examples
    --------
    >>> seeds_of(0, 3)[:2] == seeds_of(0, 2)
    True
    """
    pairs = np.random.SeedSequence(seed).generate_state(2 * runs, np.uint64).reshape(runs, 2)
    return [(int(first), int(second)) for first, second in pairs]


def fewest(played: Sequence[Mapping[str, RunResult]]) -> str:
    """The learner with the fewest mistakes over the runs; the first of tied ones."""
    totals = {name: sum(each[name].mistakes for each in played) for name in played[0]}
    return min(totals, key=lambda name: totals[name])
