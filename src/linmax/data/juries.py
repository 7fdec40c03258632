"""A generated jury: models of several families answer multiple-choice questions of several subjects."""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_uppercase

import numpy as np

from linmax.util.checks import at_least, whole

__all__ = ["Jury", "jury_problem"]

FAMILIES = ("alder", "birch", "cedar", "damson", "elder", "fir", "gorse", "hazel")
MODEL_SIZES = ("large", "medium", "small", "tiny")
SUBJECTS = ("law", "physics", "history", "biology")


@dataclass(frozen=True, eq=False)
class Jury:
    """Questions, and what each model of a jury answers.

    Attributes
    ----------
    votes : dict from str to array of str or None (trials,)
        The answer of each model to each question, "A", "B", ...; None abstains.
    labels : array of str (trials,)
        The right answers.
    subjects : array of str (trials,)
        The subject of each question.
    """

    votes: dict[str, np.ndarray]
    labels: np.ndarray
    subjects: np.ndarray


def jury_problem(
    families: int = 4,
    sizes: int = 3,
    classes: int = 10,
    trials: int = 4000,
    abstain: float = 0.05,
    seed: int = 0,
) -> Jury:
    """Make up the answers of a jury of language models, for examples and tests.

    What makes real juries hard is in it. Questions differ in difficulty, so that models fail together. They share
    their errors: a question has one tempting wrong answer for all, and one for each family. Weak models outnumber
    strong ones, so that a plain vote follows them. Each family is better at one subject.

    Model m is right on question t with probability 1 / (1 + exp(d_t - s_m)), its skill s_m against the difficulty
    d_t. If it is wrong, it names the answer that tempts all with probability .5, that of its family with probability
    .3, else any.

    Parameters
    ----------
    families, sizes
        The number of families (at most 8), and of models in each (at most 4). The larger a model, the more skill.
    classes
        Possible answers, at most 26.
    trials
        Questions.
    abstain
        Probability that a model gives no answer.
    seed
        Whole number >= 0; the same seed gives the same jury.

    Returns
    -------
    Jury
        ``votes``, ``labels`` and ``subjects``.

    See Also
    --------
    majority_problem : votes without errors in common, of which some matter.

    Examples
    --------
    >>> jury = jury_problem(trials=1000)
    >>> list(jury.votes)[:3], jury.labels[:5].tolist()
    (['alder-large', 'alder-medium', 'alder-small'], ['I', 'G', 'F', 'C', 'D'])
    >>> right = {name: float((votes == jury.labels).mean()) for name, votes in jury.votes.items()}
    >>> max(right, key=right.get), min(right, key=right.get)
    ('alder-large', 'damson-small')
    """
    families, sizes = whole("families", families, 1), whole("sizes", sizes, 1)
    classes, trials, seed = whole("classes", classes, 2), whole("trials", trials, 1), whole("seed", seed, 0)
    abstain = at_least("abstain", abstain, 0.0)
    for name, value, most in [
        ("families", families, len(FAMILIES)),
        ("sizes", sizes, len(MODEL_SIZES)),
        ("classes", classes, len(ascii_uppercase)),
        ("abstain", abstain, 1),
    ]:
        if value > most:
            raise ValueError(f"{name} must be <= {most}, got {value:g}; try {most}")
    rng = np.random.default_rng(seed)
    letters = np.array(list(ascii_uppercase[:classes]))
    truth = rng.integers(classes, size=trials)
    subject = rng.integers(len(SUBJECTS), size=trials)
    difficulty = rng.normal(0.0, 4.0, size=trials)
    tempting = _other(truth, classes, rng)
    votes = {}
    for family in range(families):
        shared = _other(truth, classes, rng)
        for size in range(sizes):
            skill = 2.6 - 0.4 * family - 2.2 * size + 1.2 * (subject == family % len(SUBJECTS))
            right = rng.random(trials) < 1.0 / (1.0 + np.exp(difficulty - skill))
            kind, any_other = rng.random(trials), _other(truth, classes, rng)
            wrong = np.select([kind < 0.5, kind < 0.8], [tempting, shared], any_other)
            said = letters[np.where(right, truth, wrong)].astype(object)
            said[rng.random(trials) < abstain] = None
            votes[f"{FAMILIES[family]}-{MODEL_SIZES[size]}"] = said
    return Jury(votes, letters[truth].astype(object), np.array(SUBJECTS, dtype=object)[subject])


def _other(truth: np.ndarray, classes: int, rng: np.random.Generator) -> np.ndarray:
    """For each trial a class that is not the right one, uniformly."""
    other = rng.integers(classes - 1, size=len(truth))
    return np.asarray(other + (other >= truth))
