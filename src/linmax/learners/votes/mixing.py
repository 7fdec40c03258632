"""Mixtures of pools for votes that learned apart.

A logit with precision P, weights w and a prior of precision r about the weights h has learned, from its trials,

    the information J = P - r  and  the pull  b = P w - r h,

both of which its steps only add to, and forget at its rate g. After T trials they are those of about
c(T) = 1 + g + ... + g^(T-1) of them. The mixture of parts that learned T_i trials each, T together, has

    J = c(T) sum_i (T_i / T) J_i / c(T_i),

b likewise, and w = (J + r)^-1 (b + r h). Without forgetting these are plain sums: what one would have learned from all
trials, to second order. With it, the mixture remembers as much as one that learned them all, and every part's own
recent trials are recent. Shares have no say in this. What all parts went on from is taken once. So it does not matter
in which order parts are merged. For the rest:

* the prior means h are averaged by the information on their coordinates;
* the factors that sharpen the logits are mixed as weights are;
* the weights of the members are mixed by their logarithms, with the shares;
* guessed labels, the sizes of raters' scores, how voters agreed and what they named are counts, and add up;
* the trials that the refitted softmax keeps are folded into its Gaussian (`linmax.learners.softmax_mixing`).

Where curvature is a diagonal, J and P are diagonals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linmax.learners.mixing import Mixture, Placement
from linmax.learners.softmax_mixing import PlacedSoftmax, mix_softmaxes, moved_to
from linmax.learners.softmax_state import symmetric
from linmax.learners.votes.agreement import DUE, LIMIT, ROWS, no_agreement
from linmax.learners.votes.confusions import KEPT
from linmax.learners.votes.growth import (
    has_matrices,
    narrowed,
    no_factors,
    no_information,
    silent_block,
    spread_agreement,
    spread_out,
    spread_pool,
)
from linmax.learners.votes.mixed_counts import (
    mixed_agreement,
    mixed_confusions,
    mixed_guesses,
    mixed_members,
    mixed_sharpness,
    mixed_silence,
)
from linmax.learners.votes.mixture import (
    AGREED,
    LOGITS,
    MEMORIES,
    NARROW,
    OUTSET,
    RIDGE,
    SPOKEN,
    STEADY,
    TRIALS,
    Pool,
)
from linmax.learners.votes.parts import Blocks, PoolPart, remembered
from linmax.learners.votes.trial import VOTERS
from linmax.util.blas import one_blas_thread

if TYPE_CHECKING:
    from linmax.learners.votes.pool import RunningVotes

__all__ = ["mix_pools"]

FAINTEST = 1e-9  # information, for each trial, of a coordinate that has spoken and told nothing


def mix_pools(target: RunningVotes, mixture: Mixture) -> None:
    """Write the mixture over ``target``, which has learned nothing."""
    everyone = [*mixture.parts, *([] if mixture.base is None else [mixture.base])]
    voters = 1 + max((int(part.voters.max(initial=-1)) for part in everyone), default=-1)
    raters = 1 + max((int(part.raters.max(initial=-1)) for part in everyone), default=-1)
    thresholds = mixture.k if any(part.state.blocks[2] for part in everyone) else 0
    blocks = Blocks(voters, raters, thresholds, silent_block(voters, raters + thresholds))
    target.blocks, target.room = np.array(blocks, np.int64), None
    target.signs = np.ones(blocks.voters)
    for part in everyone:
        target.signs[part.voters[: part.state.signs.size]] = part.state.signs
    scales = _scales(mixture, blocks.raters)
    parts, shares = [_placed(part, blocks, scales) for part in mixture.parts], mixture.shares
    base = None if mixture.base is None else _placed(mixture.base, blocks, scales)
    target.confusions = mixed_confusions(parts, base, blocks, mixture.k, 1.0)
    target.lately = mixed_confusions(parts, base, blocks, mixture.k, KEPT)
    learned = [part for part in parts if part.rows > (0 if base is None else base.rows)]
    if len(learned) <= 1:
        _take(target, (learned or parts)[0], blocks, mixture.k)
        return
    target.refitted = mix_softmaxes(
        [_softmax(part) for part in parts], None if base is None else _softmax(base), blocks.narrow - VOTERS
    )
    target.pool = _mixed(parts, shares, base, blocks, scales)
    target.agreement = mixed_agreement(parts, shares, base, blocks, mixture.k)
    numbers = target.agreement.numbers
    if numbers.size and mixture.known >= 2 and (numbers[LIMIT] or numbers[ROWS] >= numbers[DUE]):
        target.follow_agreement(mixture.known)


def _placed(part: Placement, blocks: Blocks, scales: np.ndarray) -> PoolPart:
    running: RunningVotes = part.state
    own_voters, own_raters, own_thresholds, own_silent = running.blocks.tolist()
    voters, raters, classes = part.voters[:own_voters], part.raters[:own_raters], part.classes[:own_thresholds]
    places = np.concatenate(
        [np.arange(VOTERS), VOTERS + voters, VOTERS + blocks.voters + raters,
         VOTERS + blocks.voters + blocks.raters + classes, blocks.narrow + voters[: min(own_silent, blocks.silent)]]
    ).astype(np.int64)  # fmt: skip
    units = np.ones(places.size)
    own, all_of = running.pool.scales[:own_raters], scales[raters]
    told = (own[:, 1] > 0.0) & (all_of[:, 1] > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.sqrt(own[:, 1] / own[:, 0]) / np.sqrt(all_of[:, 1] / all_of[:, 0])
    units[VOTERS + own_voters : VOTERS + own_voters + own_raters] = np.where(told, sizes, 1.0)
    pool = running.pool if blocks.silent else narrowed(running.pool)
    return PoolPart(running, pool, places, voters, raters, part.classes, units)


def _scales(mixture: Mixture, raters: int) -> np.ndarray:
    """Trials and sums of squares of the raters."""
    scales = np.zeros((raters, 2))
    for part, sign in mixture.counted:
        own = part.state.pool.scales
        scales[part.raters[: len(own)]] += sign * own
    return scales


def _softmax(part: PoolPart) -> PlacedSoftmax:
    return PlacedSoftmax(part.running.refitted, part.places[VOTERS : part.pool.counts[NARROW]] - VOTERS)


def _take(target: RunningVotes, part: PoolPart, blocks: Blocks, k: int) -> None:
    """The only one that learned anything, bit for bit."""
    own = part.running
    target.refitted = moved_to(_softmax(part), blocks.narrow - VOTERS)
    target.pool = spread_pool(part.pool, part.places, blocks.size, blocks.narrow, part.raters, blocks.raters)
    target.agreement = no_agreement()
    if own.agreement.trust.size and target.pool.precision.size:
        classes = part.classes[: own.agreement.habits.shape[1]]
        target.agreement = spread_agreement(own.agreement, part.voters, blocks.voters, classes, k)


# -- logits -------------------------------------------------------------------------------------------------------


class LogitEvidence(NamedTuple):
    """What a logit has learned from its trials, over the coordinates of the mixture."""

    information: np.ndarray  # (n, n), or (n,) where it is a diagonal
    pull: np.ndarray
    home: np.ndarray
    trials: int

    def faded(self, factor: float) -> LogitEvidence:
        """The same, so much of it."""
        return self._replace(information=factor * self.information, pull=factor * self.pull)


def _learned(part: PoolPart, m: int, size: int) -> LogitEvidence:
    """The information of logit m; the one that agreement guides is the steady one where it has told nothing yet."""
    pool = part.pool
    m = STEADY if m == AGREED and not part.guided else m
    weights, home = pool.weights[m] / part.units, pool.home[m] / part.units
    if pool.precision.size:
        own = symmetric(pool.precision[m]) - RIDGE[m] * np.eye(len(part.units))
        own *= np.outer(part.units, part.units)
    else:
        own = (pool.diagonal[m] - RIDGE[m]) * part.units**2
    full = has_matrices(size)
    if not full and own.ndim == 2:
        own = np.diag(own)
    pull = (own @ weights if own.ndim == 2 else own * weights) + RIDGE[m] * (weights - home)
    if not full:
        information = spread_out(own, part.places, size)
    else:
        information = np.zeros((size, size))
        information[np.ix_(part.places, part.places)] = own
    return LogitEvidence(
        information, spread_out(pull, part.places, size), spread_out(home, part.places, size), part.trials
    )


def _joined(parts: Sequence[LogitEvidence], base: LogitEvidence | None, kept: float, seen: np.ndarray) -> LogitEvidence:
    """What they have learned together; ``seen`` tells which part knows which coordinate."""
    before = 0 if base is None else base.trials
    total = sum(part.trials - before for part in parts)
    information, pull = np.zeros_like(parts[0].information), np.zeros_like(parts[0].pull)
    home, told = np.zeros_like(pull), np.zeros_like(pull)
    for place, part in enumerate(parts):
        fresh = part.trials - before
        if fresh <= 0:
            continue
        share = remembered(total, kept) * fresh / total / remembered(fresh, kept)
        new = part.faded(share)
        if base is not None:
            old = base.faded(share * kept**fresh)
            new = new._replace(information=new.information - old.information, pull=new.pull - old.pull)
        information += new.information
        pull += new.pull
        # a coordinate that spoke and told nothing counts for next to nothing, so that its prior mean is not lost
        weight = np.where(seen[place], np.maximum(_diagonal(new.information), FAINTEST * fresh), 0.0)
        home += weight * part.home
        told += weight
    if base is not None:
        rest = base.faded(kept**total)
        information += rest.information
        pull += rest.pull
        home += FAINTEST * base.home
        told += FAINTEST * (base.home != 0.0)
    home = np.divide(home, told, out=home, where=told > 0.0)
    home[:VOTERS] = np.where(told[:VOTERS] > 0.0, home[:VOTERS], OUTSET)
    return LogitEvidence(information, pull, home, before + total)


def _diagonal(information: np.ndarray) -> np.ndarray:
    return np.diag(information) if information.ndim == 2 else information


def _mixed(
    parts: Sequence[PoolPart], shares: np.ndarray, base: PoolPart | None, blocks: Blocks, scales: np.ndarray
) -> Pool:
    """The pool of the mixture, with the logit that agreement guides where it guided those of the parts, on average."""
    size = blocks.size
    precision, diagonal = no_information(size)
    everyone = [*parts, *([] if base is None else [base])]
    seen = np.array([spread_out(part.pool.seen, part.places, size) for part in parts]).max(axis=0)
    spoke = np.array([spread_out(part.pool.seen, part.places, size) == 1 for part in parts])
    spoke[:, :VOTERS], spoke[:, VOTERS + blocks.voters + blocks.raters :] = True, True
    weights, home = np.zeros((LOGITS, size)), np.zeros((LOGITS, size))
    for m in range(LOGITS):
        learned = [_learned(part, m, size) for part in everyone]
        found = _joined(learned[: len(parts)], None if base is None else learned[-1], float(MEMORIES[m]), spoke)
        home[m] = found.home
        right = found.pull + RIDGE[m] * found.home
        if precision.size:
            precision[m] += found.information
            with one_blas_thread():
                weights[m] = np.linalg.solve(precision[m], right)
        else:
            diagonal[m] += found.information
            weights[m] = right / diagonal[m]
    counts = np.array([0, 0, 0, 0, blocks.narrow])
    sums = np.zeros((LOGITS, 2))
    experts = [slice(VOTERS, VOTERS + blocks.voters), slice(VOTERS + blocks.voters, VOTERS + sum(blocks[:2]))]
    for kind, block in enumerate(experts):
        counts[SPOKEN + kind] = (seen[block] == 1).sum()
        sums[:, kind] = (weights[:, block] * (seen[block] == 1)).sum(axis=1)
    before = 0 if base is None else base.trials
    counts[TRIALS] = before + sum(part.trials - before for part in parts)
    return Pool(
        weights, home, np.tril(precision), no_factors(precision), diagonal, seen, sums, scales.copy(),
        mixed_members(parts, shares, bool(precision.size)), mixed_guesses(parts, base), counts,
        mixed_silence(parts, base), mixed_sharpness(parts, base),
    )  # fmt: skip
