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
from linmax.learners.votes.agreement import CREDIT, DUE, LIMIT, ROWS, Agreement, new_agreement, no_agreement
from linmax.learners.votes.confusions import KEPT, Confusions, PlacedConfusions, join_confusions
from linmax.learners.votes.growth import (
    GUESSES,
    OTHERS,
    has_matrices,
    narrowed,
    no_factors,
    no_information,
    silent_block,
    spread_agreement,
    spread_out,
    spread_pool,
)
from linmax.learners.votes.mixture import (
    AGREED,
    FIRST_SHARES,
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
from linmax.learners.votes.trial import VOTERS
from linmax.util.blas import one_blas_thread

if TYPE_CHECKING:
    from linmax.learners.votes.pool import RunningVotes

__all__ = ["mix_pools"]

FAINTEST = 1e-9  # information, for each trial, of a coordinate that has spoken and told nothing


class PoolPart(NamedTuple):
    """A pool that learned apart, the places of its coordinates in the mixture, and how its scores have to be scaled."""

    running: RunningVotes
    pool: Pool  # its own, without votes by how many are silent if the mixture has none
    places: np.ndarray
    voters: np.ndarray
    raters: np.ndarray
    classes: np.ndarray
    units: np.ndarray  # of its coordinates, in those of the mixture; 1 but for raters

    @property
    def trials(self) -> int:
        """Trials learned."""
        return int(self.pool.counts[TRIALS])

    @property
    def rows(self) -> int:
        """Trials learned, and rows without a label: in which voters were compared."""
        agreement = self.running.agreement
        return self.trials + (round(float(agreement.numbers[ROWS])) if agreement.trust.size else 0)

    @property
    def guided(self) -> bool:
        """Whether agreement guides a logit."""
        return bool(self.pool.mixture[AGREED] > 0.0)


class Blocks(NamedTuple):
    """How many voters, raters, thresholds, and voters by how many are silent, the mixture has."""

    voters: int
    raters: int
    thresholds: int
    silent: int

    @property
    def size(self) -> int:
        """All coordinates, those of all votes together included."""
        return VOTERS + sum(self)

    @property
    def narrow(self) -> int:
        """Those without votes by how many are silent."""
        return self.size - self.silent


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
    target.confusions = _confusions(parts, base, blocks, mixture.k, 1.0)
    target.lately = _confusions(parts, base, blocks, mixture.k, KEPT)
    learned = [part for part in parts if part.rows > (0 if base is None else base.rows)]
    if len(learned) <= 1:
        _take(target, (learned or parts)[0], blocks, mixture.k)
        return
    target.refitted = mix_softmaxes(
        [_softmax(part) for part in parts], None if base is None else _softmax(base), blocks.narrow - VOTERS
    )
    target.pool = _mixed(parts, shares, base, blocks, scales)
    target.agreement = _agreement(parts, shares, base, blocks, mixture.k)
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


def _remembered(trials: int, kept: float) -> float:
    """c(T): how many trials the information after so many is that of."""
    return float(trials) if kept == 1.0 else (1.0 - kept**trials) / (1.0 - kept)


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
        share = _remembered(total, kept) * fresh / total / _remembered(fresh, kept)
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
        _members(parts, shares, bool(precision.size)), _guesses(parts, base), counts, _silence(parts, base),
    )  # fmt: skip


# -- the rest -----------------------------------------------------------------------------------------------------


def _silence(parts: Sequence[PoolPart], base: PoolPart | None) -> np.ndarray:
    """How many were silent, in all trials: counts, which add up."""
    total = sum(part.pool.silence for part in parts)
    return np.asarray(total if base is None else total - (len(parts) - 1) * base.pool.silence)


def _confusions(parts: Sequence[PoolPart], base: PoolPart | None, blocks: Blocks, k: int, kept: float) -> Confusions:
    """What voters named: in all trials, or lately where ``kept`` is less than 1; forgotten as logits forget."""
    before = 0 if base is None else base.trials
    fresh = [part.trials - before for part in parts]
    total = sum(fresh)
    # of the only one that learned, all counts for what it did, to the last bit
    times = [
        _remembered(total, kept) * count / total / _remembered(count, kept) if 0 < count < total else float(count > 0)
        for count in fresh
    ]
    counted = list(zip(parts, times, strict=True))
    if base is not None:
        old = sum(often * kept**count for often, count in zip(times, fresh, strict=True))
        counted.append((base, kept**total - old))
    placed = [
        PlacedConfusions(
            part.running.confusions if kept == 1.0 else part.running.lately, part.voters, part.classes, often
        )
        for part, often in counted
    ]
    return join_confusions(placed, blocks.voters, k, kept)


def _members(parts: Sequence[PoolPart], shares: np.ndarray, full: bool) -> np.ndarray:
    """The weights of the members: their logarithms mixed; that of the guided logit by its odds, where there is one."""
    others = np.arange(FIRST_SHARES.size) != AGREED
    logs = sum(share * np.log(part.running.pool.mixture[others]) for part, share in zip(parts, shares, strict=True))
    mixture = np.zeros(FIRST_SHARES.size)
    mixture[others] = np.exp(logs - np.max(logs))
    mixture /= mixture.sum()
    guided = [
        (part.running.pool.mixture[AGREED], share) for part, share in zip(parts, shares, strict=True) if part.guided
    ]
    if guided and full:
        weights, portions = np.array(guided).T
        mixture[AGREED] = np.exp(portions @ np.log(weights / (1.0 - weights)) / portions.sum())
        mixture /= mixture.sum()
    return mixture


def _guesses(parts: Sequence[PoolPart], base: PoolPart | None) -> np.ndarray:
    """Labels guessed and not, as each member saw it, added up."""
    first = np.tile([GUESSES, OTHERS], (FIRST_SHARES.size, 1)) if base is None else _guessed(base)
    return np.asarray(first + sum(_guessed(part) - first for part in parts))


def _guessed(part: PoolPart) -> np.ndarray:
    guesses = part.running.pool.guesses.copy()
    if not part.guided:
        guesses[AGREED] = guesses[STEADY]
    return guesses


def _agreement(
    parts: Sequence[PoolPart], shares: np.ndarray, base: PoolPart | None, blocks: Blocks, k: int
) -> Agreement:
    """How voters agreed, in all rows without a label."""
    everyone = [*parts, *([] if base is None else [base])]
    signs = [1.0] * len(parts) + [1.0 - len(parts)] * (base is not None)
    if not has_matrices(blocks.size) or not any(part.running.agreement.trust.size for part in everyone):
        return no_agreement()
    new = new_agreement(blocks.voters, k)
    rows, credits = 0.0, []
    for place, (part, sign) in enumerate(zip(everyone, signs, strict=True)):
        own = part.running.agreement
        if not own.trust.size:
            continue
        pairs = np.ix_(part.voters, part.voters)
        new.together[pairs] += sign * own.together
        new.agreed[pairs] += sign * own.agreed
        new.habits[np.ix_(part.voters, part.classes[: own.habits.shape[1]])] += sign * own.habits
        rows += sign * float(own.numbers[ROWS])
        if place < len(parts) and part.guided:
            credits.append((*own.numbers[[CREDIT, LIMIT]], shares[place]))
    for counted in (new.together, new.agreed, new.habits):
        np.maximum(counted, 0.0, out=counted)  # halved at different times, a common base may be more than is left
    new.numbers[ROWS] = max(0.0, rows)
    if credits:
        credit, limit, portions = np.array(credits).T
        new.numbers[[CREDIT, LIMIT]] = portions @ credit / portions.sum(), portions @ limit / portions.sum()
        new.numbers[DUE] = new.numbers[ROWS]
    return new
