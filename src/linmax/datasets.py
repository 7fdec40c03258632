"""Generated problems: the majority learning problem of Mesterharm and Hsu, and a jury of language models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from string import ascii_uppercase

import numpy as np

from linmax.util.checks import at_least, whole

__all__ = ["Jury", "MajorityProblem", "jury_problem", "majority_problem"]

FAMILIES = ("alder", "birch", "cedar", "damson", "elder", "fir", "gorse", "hazel")
MODEL_SIZES = ("large", "medium", "small", "tiny")
SUBJECTS = ("law", "physics", "history", "biology")


@dataclass(frozen=True, eq=False)
class MajorityProblem:
    """Trials of the majority learning problem and the weights that solve it.

    Attributes
    ----------
    votes : int32 array (trials, n)
        The class, 0..k-1, that each sub-expert votes for. The first r sub-experts are the relevant ones.
    labels : int32 array (trials,)
        Labels that the learner sees, noise included.
    clean : int32 array (trials,)
        The labels before noise.
    target : array (n + k,)
        Weights u >= 0 with sum 1 that predict every clean label: the n sub-experts, then the thresholds of
        classes 0..k-1.
    margin : float
        delta, the least lead that `target` gives the clean label over any other class.

    See Also
    --------
    majority_problem : makes one.

    Examples
    --------
    >>> majority_problem(trials=10, seed=1).votes.shape
    (10, 20)
    """

    votes: np.ndarray
    labels: np.ndarray
    clean: np.ndarray
    target: np.ndarray
    margin: float


def _most_voted(votes: np.ndarray, k: int) -> np.ndarray:
    """The class with most votes in each row; argmax takes the first, so a tie goes to the smallest class."""
    trials = len(votes)
    cells = np.arange(trials)[:, np.newaxis] * k + votes
    counts = np.bincount(cells.ravel(), minlength=trials * k).reshape(trials, k)
    return np.asarray(np.argmax(counts, axis=1), dtype=np.int32)


def _target(n: int, r: int, k: int) -> tuple[np.ndarray, float]:
    """The weights of the paper for any n, r, k.

    Neighbouring thresholds differ by delta, which decides ties; one vote must outweigh the largest
    difference of two thresholds, (k - 1) delta, by delta, so a relevant sub-expert weighs k delta. The sum 1
    fixes delta.
    """
    parts = r * k + math.comb(k, 2)
    units = np.zeros(n + k)
    units[:r] = k
    units[n:] = np.arange(k - 1, -1, -1)
    return units / parts, 1.0 / parts


def majority_problem(
    n: int = 20, r: int = 10, k: int = 5, noise: float = 0.0, trials: int = 5000, seed: int = 0
) -> MajorityProblem:
    """Generate trials of the majority learning problem.

    In each trial each of n sub-experts votes for one of k classes, uniformly. The label is the class with
    most votes among the first r sub-experts, the smallest such class on a tie. With probability ``noise`` the
    label is replaced by one of the k - 1 others, uniformly; up to noise = 1 - 1/k, no learner can expect a
    lower error than that.

    The target weighs each relevant sub-expert k delta and the threshold of class c (k - 1 - c) delta, with
    delta = 1 / (r k + k (k - 1) / 2): for the default 1/12 each, thresholds 4/60, 3/60, 2/60, 1/60, 0 and
    margin delta = 1/60. A learner needs the k thresholds (``instances(votes=...)`` adds them) for the ties.

    Parameters
    ----------
    n, r, k
        Sub-experts, the relevant ones among them, and classes.
    noise
        Probability of a wrong label.
    trials
        Number of trials.
    seed
        Whole number >= 0. It starts three independent streams: the votes, row by row; one uniform number a
        trial, below ``noise`` when the label is replaced; which other class replaces it. So a longer run
        begins with the same trials, and all noise levels share their votes (a trial noisy at .05 is noisy at
        .1, with the same label).

    Returns
    -------
    MajorityProblem
        ``votes``, ``labels``, ``clean``, ``target`` and ``margin``.

    References
    ----------
    Mesterharm and Hsu, "Combinatorial fusion with on-line learning algorithms", section VII.

    Examples
    --------
    >>> problem = majority_problem(noise=0.05, trials=1000, seed=1)
    >>> problem.votes.shape, problem.target.shape
    ((1000, 20), (25,))
    >>> round(1 / problem.margin, 9)
    60.0
    >>> bool(0.03 < np.mean(problem.labels != problem.clean) < 0.07)
    True
    """
    n, r, k = whole("n", n, 1), whole("r", r, 1), whole("k", k, 2)
    trials, seed = whole("trials", trials, 1), whole("seed", seed, 0)
    noise = at_least("noise", noise, 0.0)
    if noise > 1.0:
        raise ValueError(f"noise must be <= 1 (it is a probability), got {noise:g}; try 0.05")
    if r > n:
        raise ValueError(f"r must be <= n = {n} (the relevant are among the n sub-experts), got {r}; try {n}")

    streams = np.random.SeedSequence(seed).spawn(3)
    voting, flipping, replacing = (np.random.default_rng(stream) for stream in streams)
    votes = voting.integers(k, size=(trials, n), dtype=np.int32)
    clean = _most_voted(votes[:, :r], k)
    flipped = flipping.random(trials) < noise
    other = replacing.integers(k - 1, size=trials, dtype=np.int32)
    other += other >= clean  # 0..k-2 without the clean label -> the k-1 other classes
    target, margin = _target(n, r, k)
    return MajorityProblem(votes, np.where(flipped, other, clean), clean, target, margin)


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

    See Also
    --------
    jury_problem : makes one.

    Examples
    --------
    >>> sorted(jury_problem(families=1, sizes=2, seed=1).votes)
    ['alder-large', 'alder-medium']
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
