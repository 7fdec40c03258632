"""How pools for attributes that learned from different trials become one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from linmax.learners.mixing import Mixture
from linmax.learners.pool_members import width_of

if TYPE_CHECKING:
    from linmax.learners.members import Group
    from linmax.learners.running_pool import RunningPool

__all__ = ["mix_pools"]


def mix_pools(pool: RunningPool, mixture: Mixture) -> None:
    """Make a pool that has seen nothing the mixture: what was decided is that of the part with the greatest share."""
    largest = max(mixture.weighed, key=lambda pair: pair[1])[0].state
    mixture = mixture._replace(anew=mixture.base is not None and mixture.base.state.first.open)
    placed = pool.kinds.mix(mixture, largest.kinds)
    for name in dict.fromkeys(name for part in mixture.parts for name in part.state.groups):
        pool.join(name, pool.make(name))
    for name, group in pool.groups.items():
        group.mix(placed.of(partial(_group_of, name)), width_of(mixture.k))
    places = [_places(pool, part.state) for part in mixture.parts]
    base = None if mixture.base is None else _places(pool, mixture.base.state)
    pool.fusion.mix(mixture.of(lambda state: state.fusion), places, base)
    pool.first.mix(mixture)
    pool.at_large.mix(mixture)
    if not pool.first.open:
        pool.kinds.settle()


def _places(pool: RunningPool, part: RunningPool) -> np.ndarray:
    """The places of the part's members among those of the pool; -1 if they are none of them."""
    mine = {name: place for place, name, _ in pool.placed()}
    places = []
    for name, group in part.groups.items():
        many = len(group.members)
        places += list(range(mine[name], mine[name] + many)) if name in mine else [-1] * many
    return np.array(places, int)


def _group_of(name: str, state: RunningPool) -> Group | None:
    return state.groups.get(name)
