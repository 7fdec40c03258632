"""What is no weight of a logit in mixtures of pools for votes: counts, which add up, and the weights of members."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linmax.learners.votes.agreement import CREDIT, DUE, LIMIT, ROWS, Agreement, new_agreement, no_agreement
from linmax.learners.votes.confusions import Confusions, PlacedConfusions, join_confusions
from linmax.learners.votes.growth import GUESSES, OTHERS, has_matrices
from linmax.learners.votes.mixture import AGREED, FIRST_SHARES
from linmax.learners.votes.parts import Blocks, PoolPart, of_logits, remembered
from linmax.learners.votes.sharpness import SHARPNESS_KEPT, join_sharpness

__all__ = [
    "mixed_agreement",
    "mixed_confusions",
    "mixed_guesses",
    "mixed_members",
    "mixed_sharpness",
    "mixed_silence",
]


def mixed_silence(parts: Sequence[PoolPart], base: PoolPart | None) -> np.ndarray:
    """How many were silent, in all trials: counts, which add up."""
    total = sum(part.pool.silence for part in parts)
    return np.asarray(total if base is None else total - (len(parts) - 1) * base.pool.silence)


def _counted(parts: Sequence[PoolPart], base: PoolPart | None, kept: float) -> list[tuple[PoolPart, float]]:
    """How often what each part has counted is taken, and what the base has; forgotten as logits forget."""
    before = 0 if base is None else base.trials
    fresh = [part.trials - before for part in parts]
    total = sum(fresh)
    # of the only one that learned, all counts for what it did, to the last bit
    times = [
        remembered(total, kept) * count / total / remembered(count, kept) if 0 < count < total else float(count > 0)
        for count in fresh
    ]
    counted = list(zip(parts, times, strict=True))
    if base is not None:
        old = sum(often * kept**count for often, count in zip(times, fresh, strict=True))
        counted.append((base, kept**total - old))
    return counted


def mixed_confusions(
    parts: Sequence[PoolPart], base: PoolPart | None, blocks: Blocks, k: int, kept: float
) -> Confusions:
    """What voters named: in all trials, or lately where ``kept`` is less than 1."""
    placed = [
        PlacedConfusions(
            part.running.confusions if kept == 1.0 else part.running.lately, part.voters, part.classes, often
        )
        for part, often in _counted(parts, base, kept)
    ]
    return join_confusions(placed, blocks.voters, k, kept)


def mixed_sharpness(parts: Sequence[PoolPart], base: PoolPart | None) -> np.ndarray:
    """The factors of the logits, by the information about them, as weights are mixed."""
    return join_sharpness(
        [(of_logits(part, part.pool.sharpness), often) for part, often in _counted(parts, base, SHARPNESS_KEPT)]
    )


def mixed_members(parts: Sequence[PoolPart], shares: np.ndarray, full: bool) -> np.ndarray:
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


def mixed_guesses(parts: Sequence[PoolPart], base: PoolPart | None) -> np.ndarray:
    """Labels guessed and not, as each member saw it, added up."""
    first = np.tile([GUESSES, OTHERS], (FIRST_SHARES.size, 1)) if base is None else _guessed(base)
    return np.asarray(first + sum(_guessed(part) - first for part in parts))


def _guessed(part: PoolPart) -> np.ndarray:
    return of_logits(part, part.running.pool.guesses)


def mixed_agreement(
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
