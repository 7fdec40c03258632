"""What there is to see of the pool for attributes: what it decided about them, and weights that stand for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linmax.learners.attribute_kinds import DENSE, MIXED, SPARSE, UNDECIDED
from linmax.learners.pair_members import PairMembers
from linmax.learners.pool_members import first_slots

if TYPE_CHECKING:
    from linmax.learners.running_pool import RunningPool

__all__ = ["decided", "linear_form"]

KIND_WORDS = {DENSE: "numbers", SPARSE: "words", MIXED: "numbers and words, as they came"}


def decided(pool: RunningPool) -> dict[str, str | int | float]:
    """What the attributes were taken for, and what that was decided from."""
    kinds = pool.kinds
    if kinds.kind == UNDECIDED:
        return {}
    found: dict[str, str | int | float] = {"attributes are": KIND_WORDS[kinds.kind]}
    found["decided by"] = "the learner" if kinds.fixed else "the data"
    if kinds.counts[2] and not kinds.fixed:
        found |= {"trials looked at": int(kinds.counts[2]), "share not 0": round(kinds.share_seen, 4)}
    pairs = [group for group in pool.groups.values() if isinstance(group, PairMembers) and group.ready]
    if pairs:
        numbers = int(np.count_nonzero(pairs[-1].levels[:, 0]))
        found |= {"columns of numbers": numbers, "columns of few values": len(pairs[-1].levels) - numbers}
    return found


def linear_form(pool: RunningPool, dense: int, sparse: int, k: int, slots: np.ndarray | None) -> np.ndarray:
    """sum_m w_m W_m / r_m: the weights of the linear members for attributes as they scale them, as they are fused.

    r_m is the root mean square of a member's scores, and each attribute's weights are centred over the classes: this is
    what they say where the shares are taken as linear in the scores. Members that are not linear in the attributes are
    left out. ``slots`` are other weights of the members, at the places that `RunningPool.in_slots` gives them.
    """
    form, first, fusion = np.zeros((1 + dense + sparse, k)), first_slots(), pool.fusion
    columns = pool.kinds.places(1 + np.arange(dense), 1 + dense + np.arange(sparse))
    for place, name, group in pool.placed():
        for m, table in enumerate(group.tables(k).values()):
            weight = fusion.weights[place + m] if slots is None else slots[first[name] + m]
            if not table.size:
                continue
            centred = weight * fusion.inverse_sizes[place + m] * (table - table.mean(axis=1, keepdims=True))
            rows = columns[group.sparse][: len(table) - 1]
            form[0, : table.shape[1]] += centred[0]
            form[rows, : table.shape[1]] += centred[1 : 1 + rows.size]
    return form
