"""Whether votes that have not been given yet can change the answer of the pool for votes.

Member m gives class c the score s_m(c), to which each voter adds something by what it says. For the answer a and a
rival c the lead s_m(a) - s_m(c) is least when each voter left says what lowers it most; the share of all votes makes
that depend on how many of them speak at all, as do the second weights of voters by how many are silent, so each number
is looked at by itself. From the least leads x over all rivals follows a bound on the difference of the probabilities
that the member gives to a and to c,

    (1 - exp(-x_c)) / (1 + sum_j exp(-x_j))  if x_c >= 0,   (exp(x_c) - 1) / (exp(x_c) + 1)  if not,

and the sum of these by the mixture is a bound on that of the pool. Where it is above 0 for every rival, no votes change
the answer. The converse does not hold: one set of votes need not be the worst for every member.

Voters may also name classes that nobody has named before. All of these look alike, so one stands for them all; but what
evidence the votes give depends, a little, on how many classes there are (`linmax.learners.votes.features`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from linmax.learners.votes.features import Confusions, evidence_range, silence_rating

__all__ = ["Evidence", "Outlook", "Silence", "ratings_ahead", "stays"]

EACH_COUNT = 32  # voters left up to which each number of those who speak is looked at alone; beyond, ranges of numbers
SURE = 1e-12  # a difference of probabilities that is more than rounding


@dataclass(frozen=True)
class Evidence:
    """What a member makes of what voters named before: its weight, as a rating, and the counts."""

    member: int
    weight: float
    counts: Confusions


@dataclass(frozen=True)
class Silence:
    """What the second weights of voters add, which count by how many are silent (`linmax.learners.votes.features`)."""

    scores: np.ndarray  # (members, classes): of those who have spoken, for a rating of 1
    pulls: np.ndarray  # (members, voters left): what a vote adds to the score of its class, for a rating of 1
    most: np.ndarray  # (members,): the magnitudes of all of these weights
    lowest: np.ndarray  # (voters counted left + 1,): the least rating if no more than so many of them speak
    highest: np.ndarray  # the same, the greatest if no fewer do

    def between(self, fewest: int, most: int) -> tuple[float, float]:
        """The middle of the ratings if from ``fewest`` to ``most`` speak, and how far they can be from it."""
        low, high = float(self.lowest[most]), float(self.highest[fewest])
        return 0.5 * (high + low), 0.5 * (high - low)


def ratings_ahead(
    silence: np.ndarray, silent: np.ndarray, columns: np.ndarray, whole: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The ``lowest`` and ``highest`` of `Silence`.

    ``silent`` are the columns of the pool that are silent now, ``columns`` those of each voter left, which speak
    at most if it does, and ``whole`` its own one, which then does. The first argument is the pool's ``silence``.
    """
    counted, now = whole.any(axis=1), int(silent.sum())
    most, least = (columns & silent).sum(axis=1), (whole & silent).any(axis=1)
    more = np.cumsum([most[~counted].sum(), *np.sort(most[counted])[::-1]])
    fewer = np.cumsum([0, *np.sort(least[counted])])
    lowest, highest = ([silence_rating(silence, now - int(heard)) for heard in ways] for ways in (more, fewer))
    return np.array(lowest), np.array(highest)


@dataclass(frozen=True)
class Outlook:
    """One instance as the members see it, and what those who have not spoken can add.

    The voters of the pool are its columns; a voter who is asked has one or, with side columns, several of them.
    """

    answer: int
    trust: np.ndarray  # (members,): by which their probabilities count in the pool's
    scores: np.ndarray  # (members, classes): all that is certain, without evidence and the shares of votes
    pulls: np.ndarray  # (members, voters left): what a vote adds to the score of its class
    shared: np.ndarray  # (members,): weight of the share of votes that a class has
    silence: Silence
    naming: np.ndarray  # (members,): weight of being named at all
    votes: np.ndarray  # (classes,): votes so far, raters' included
    speakers: float  # how many they are of
    named: np.ndarray  # bool (classes,): by voters
    evidence: list[Evidence]
    said: np.ndarray  # (columns,): classes, -1 = silent
    columns: np.ndarray  # (voters left,): where a voter counts as a speaker, -1 if nowhere
    fresh: bool  # whether voters may name new classes, for which the last one stands


@dataclass(frozen=True)
class _Spoken:
    """For some number of classes in all: the leads without shares of votes, and what each vote can add to them."""

    leads: np.ndarray  # (members, classes)
    for_answer: np.ndarray  # (members, voters, classes): without pulls, if the voter names the answer
    for_rival: np.ndarray  # the same if it names the rival
    for_others: np.ndarray  # and if it names another one, the worst


def stays(outlook: Outlook) -> bool:
    """Whether the answer is the same whatever those say who are left; False also where that cannot be told."""
    classes, left = outlook.scores.shape[1], outlook.pulls.shape[1]
    if not outlook.fresh:
        return _holds(outlook, np.ones(classes), (classes, classes))
    old = np.append(np.ones(classes - 1), 0.0)
    new = np.append(np.ones(classes - 1), float(left))
    return _holds(outlook, old, (classes - 1, classes - 1)) and _holds(outlook, new, (classes, classes - 1 + left))


def _holds(outlook: Outlook, times: np.ndarray, numbers: tuple[int, int]) -> bool:
    """The same where there are so many classes in all, each of those known as often as ``times`` says."""
    rivals = times > 0.0
    rivals[outlook.answer] = False
    if not rivals.any():
        return True
    spoken = _spoken(outlook, times > 0.0, numbers)
    for fewest, most in _ranges(int((outlook.columns >= 0).sum())):
        least, others, gain = (part[:, rivals] for part in _leads(outlook, spoken, fewest, most))
        if not (outlook.trust @ _differences(least, others, gain, times[rivals]) > SURE).all():
            return False
    return True


def _differences(least: np.ndarray, others: np.ndarray, gain: np.ndarray, times: np.ndarray) -> np.ndarray:
    """(members, rivals): lower bounds of the probability of the answer less that of a rival; see `_leads`.

    Where the answer leads, the numerator of the difference, over the sum of all odds, is concave in the gains and the
    sum convex: it is least where one rival has all gain.
    """
    worst, usual = np.exp(-least), np.exp(-others)
    behind = np.minimum(least, 0.0)
    apart = np.where(
        least >= 0.0, (1.0 - worst) / (1.0 + worst @ times)[:, None], np.expm1(behind) / (np.exp(behind) + 1.0)
    )
    total, raised = 1.0 + usual @ times, usual * np.expm1(gain)
    first = raised.argmax(axis=1)
    highest = raised[np.arange(len(raised)), first]
    rest = raised.copy()
    rest[np.arange(len(raised)), first] = -np.inf
    second = np.where(np.arange(raised.shape[1]) == first[:, None], rest.max(axis=1)[:, None], highest[:, None])
    to_it = (1.0 - usual - raised) / (total[:, None] + raised)
    to_another = (1.0 - usual) / (total[:, None] + np.maximum(second, 0.0))
    return np.where(usual + raised < 1.0, np.maximum(apart, np.minimum(to_it, to_another)), apart)


def _ranges(left: int) -> Iterator[tuple[int, int]]:
    """Numbers of voters left that may speak, the largest first: one by one, or of many in ranges that grow."""
    last = left
    while last >= 0:
        first = last if left <= EACH_COUNT else min(last, last * 7 // 8)
        yield first, last
        last = first - 1


def _spoken(outlook: Outlook, there: np.ndarray, numbers: tuple[int, int]) -> _Spoken:
    """Evidence, as far as it is sure whatever the number of classes is."""
    members, left = outlook.pulls.shape
    classes, answer = outlook.scores.shape[1], outlook.answer
    places = np.arange(classes)
    leads = outlook.scores[:, [answer]] - outlook.scores
    others = there.sum() > 2
    shape = (members, left, classes)
    for_answer, for_rival = np.zeros(shape), np.zeros(shape)
    for_others = np.full(shape, 0.0 if others else np.inf)
    told: dict[int, np.ndarray] = {}
    for evidence in outlook.evidence:
        low, high = evidence_range(evidence.counts, classes, numbers)
        if evidence.weight < 0.0:
            low, high = high, low
        lead = evidence.weight * (low[:, :, [answer]] - high)  # (columns, votes, rivals)
        spoke = np.flatnonzero(outlook.said >= 0)
        leads[evidence.member] += lead[spoke, outlook.said[spoke]].sum(axis=0)
        told[evidence.member] = told.get(evidence.member, 0.0) + lead
    counted = outlook.columns >= 0
    for member, table in told.items():
        own = np.where(counted[:, None, None], table[outlook.columns], 0.0)
        for_answer[member] = own[:, answer]
        for_rival[member] = own[:, places, places]
        if others:
            own = own.copy()
            own[:, ~there] = own[:, answer] = own[:, places, places] = np.inf
            for_others[member] = own.min(axis=1)
    return _Spoken(leads, for_answer, for_rival, for_others)


def _leads(outlook: Outlook, spoken: _Spoken, fewest: int, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Leads of the answer if from ``fewest`` to ``most`` of the voters left speak, each (members, classes).

    The least lead over each rival, whatever is said; the least if nobody left names that rival; and by how much more
    the lead over one rival, any of them, falls if they do: all rivals together cannot gain more.
    """
    answer, sizes = outlook.answer, outlook.speakers + np.array([fewest, most], float)
    units = np.divide(1.0, sizes, out=np.zeros(2), where=sizes > 0.0)
    ahead = outlook.votes[answer] - outlook.votes
    shares = (outlook.shared[:, None, None] * ahead[:, None] * units).min(axis=2)
    unnamed = ~outlook.named if most else np.zeros(len(outlook.named), bool)
    naming = outlook.naming[:, None] * (outlook.named[answer] * 1.0 - outlook.named)
    naming = naming - np.maximum(outlook.naming, 0.0)[:, None] * unnamed
    if unnamed[answer]:
        naming = naming + np.minimum(outlook.naming, 0.0)[:, None]
    rating, apart = outlook.silence.between(fewest, most)
    seconds = rating * (outlook.silence.scores[:, [answer]] - outlook.silence.scores)
    sure = spoken.leads + shares + naming + seconds - apart * outlook.silence.most[:, None]
    counted = outlook.columns >= 0
    gains, pulls = outlook.shared[:, None] * units, outlook.pulls + rating * outlook.silence.pulls
    low = pulls + gains.min(axis=1)[:, None] * counted
    high = pulls + gains.max(axis=1)[:, None] * counted
    elsewhere = np.minimum(spoken.for_answer + low[:, :, None], spoken.for_others)
    added = np.minimum(elsewhere, spoken.for_rival - high[:, :, None])
    sums = np.pad(np.cumsum(np.sort(added[:, counted], axis=1), axis=1), ((0, 0), (1, 0), (0, 0)))
    least = sure + np.minimum(added[:, ~counted], 0.0).sum(axis=1) + sums[:, fewest : most + 1].min(axis=1)
    elsewhere = np.minimum(elsewhere, 0.0)
    gain = np.maximum(elsewhere - added, 0.0).max(axis=2).sum(axis=1)
    return least, sure + elsewhere.sum(axis=1), np.repeat(gain[:, None], sure.shape[1], axis=1)
