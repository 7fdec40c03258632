"""The pool that suits the instances: one for attributes, one for voters and raters, or both.

With both, the votes of the members of the first are further raters, and the second decides.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from linmax.core.contract import Trials
from linmax.data.arrays import Layout, cut, no_trials
from linmax.learners.attributes.pool import RunningPool, kind_of, slots
from linmax.learners.base import Description, Mixture, Placement, Running, WeightForm, silent
from linmax.learners.votes.pool import RunningVotes
from linmax.util.parts import by_part

__all__ = ["AutomaticPool", "RunningAuto"]


class RunningAuto(Running):
    """State: the two pools, as far as they are needed, and what each rater of the second is.

    ``columns`` has a rater of the instances, or -1 - m for member m of the first pool, in the order in which they came.
    """

    def __init__(self, kind: int) -> None:
        self.attribute_kind = kind
        self.columns = np.zeros(0, np.int64)
        self.attributes: RunningPool | None = None
        self.votes: RunningVotes | None = None

    @property
    def pools(self) -> dict[str, Any]:
        pools = {"attributes": self.attributes, "votes": self.votes}
        return {name: pool for name, pool in pools.items() if pool is not None}

    @property
    def takes_gaps(self) -> bool:  # type: ignore[override]
        """Return whether there are no attributes: their pool needs labels."""
        return self.attributes is None

    @property
    def gives_logarithms(self) -> bool:  # type: ignore[override]
        """Return whether the pool for voters and raters decides."""
        return self.votes is not None

    @property
    def gives_probabilities(self) -> bool:  # type: ignore[override]
        """Return whether the pool for attributes decides."""
        return self.votes is None and self.attributes is not None

    def meet(self, layout: Layout) -> None:
        if layout.dense or layout.sparse:
            self.attributes = self.attributes or RunningPool(self.attribute_kind)
        if layout.voters or layout.raters:
            raters = np.arange((self.columns >= 0).sum(), layout.raters)
            new = self.attributes is not None and not (self.columns < 0).any()
            self.columns = np.concatenate([self.columns, raters, -1 - np.arange(slots() if new else 0)])
            self.votes = self.votes or RunningVotes(self.open)

    def stage(self, layout: Layout, k: int, size: int) -> Hashable:
        raters = layout.raters + (slots() if layout.dense or layout.sparse else 0)
        return None if self.votes is None else self.votes.stage(replace(layout, raters=raters), k, size)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        inner = {f"{part}.{name}": array for part, pool in self.pools.items() for name, array in pool.arrays.items()}
        return {"columns": self.columns} | inner

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        saved = by_part(arrays)
        self.columns = saved[""]["columns"].copy()
        if "attributes" in saved:
            self.attributes = self.attributes or RunningPool(self.attribute_kind)
        if "votes" in saved:
            self.votes = self.votes or RunningVotes(self.open)
        for name, pool in self.pools.items():
            pool.restore(saved[name])

    def _fused(self, attributes: RunningPool, trials: Trials, votes: np.ndarray, k: int) -> Trials:
        """Return trials for the second pool: voters and raters, and the votes of the members of the first."""
        size, given = len(votes), self.columns >= 0
        scores = np.zeros((size, len(self.columns), k))
        if given.any():
            scores[:, given] = trials.scores[:, self.columns[given], :k]
        if not given.all():
            scores[:, ~given] = attributes.in_slots(votes, trials.known, k)[:, -1 - self.columns[~given]]
        none = no_trials(0)
        return trials._replace(
            scores=scores,
            dense=np.zeros((size, 0)),
            indptr=none.indptr,
            indices=none.indices,
            values=none.values,
        )

    def play(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        if self.votes is None and self.attributes is not None:
            return self.attributes.play(shape, trials, k)
        if self.attributes is None and self.votes is not None:
            return self.votes.play(shape, trials, k)
        predictions, table = silent(shape, trials.known), np.zeros((trials.size, k))
        if self.attributes is not None and self.votes is not None:
            for played in self.attributes.chunks(shape, trials, k):
                first, last = played.begin, played.end
                fused = self._fused(self.attributes, cut(trials, first, last), played.votes, k)
                predictions[first:last], table[first:last] = self.votes.play(shape, fused, k)
        return predictions, table

    def judge(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        if self.attributes is not None:
            judged = self.attributes.judged(shape, trials, k)
            if self.votes is None:
                return judged.predictions, judged.table
            trials = self._fused(self.attributes, trials, judged.votes, k)
        if self.votes is not None:
            return self.votes.judge(shape, trials, k)
        return silent(shape, trials.known), np.zeros((trials.size, k))

    def watch(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Predict, and let the pool for voters and raters learn from how voters agree."""
        if self.votes is None:
            return self.judge(shape, trials, k)
        if self.attributes is not None:
            trials = self._fused(self.attributes, trials, self.attributes.judged(shape, trials, k).votes, k)
        return self.votes.play(shape, trials, k)

    def hypothesis(self) -> np.ndarray:
        """Return about that of the pool for voters and raters, where it is alone."""
        if self.attributes is not None or self.votes is None:
            return super().hypothesis()
        return self.votes.hypothesis()

    def linear_form(self, layout: Layout, k: int) -> WeightForm | None:
        """Return the weights of the members as fused; with both pools the second weighs the members of the first."""
        if self.attributes is None:
            return None if self.votes is not None else WeightForm(np.zeros(0), np.zeros((layout.rows, k)))
        if self.votes is None:
            return self.attributes.linear_form(layout, k)
        inner = layout.voters + len(self.columns)
        found = self.votes.hypothesis()
        found = np.append(found, np.zeros(max(0, inner + k - len(found))))
        raters, given, own = found[layout.voters : inner], self.columns >= 0, np.zeros(slots())
        own[-1 - self.columns[~given]] = raters[~given]
        form = self.attributes.linear_form(layout, k, own).rows
        form[0] += found[inner : inner + k] if layout.constant else 0.0
        experts = np.zeros(layout.voters + layout.raters)
        experts[: layout.voters] = found[: layout.voters]
        experts[layout.voters + self.columns[given]] = raters[given]
        return WeightForm(experts, form)

    def mix(self, mixture: Mixture) -> None:
        if self.attributes is not None:
            self.attributes.mix(mixture.of(lambda state: state.attributes))
        if self.votes is not None:
            self.votes.mix(mixture.map(self._with_members).of(lambda state: state.votes))

    def _with_members(self, part: Placement) -> Placement:
        """Return the part with the places of all raters of its second pool, members of the first among them."""
        places = {column: place for place, column in enumerate(self.columns.tolist())}
        columns = [column for column in part.state.columns.tolist() if column < part.raters.size]  # those that rated
        own = [int(part.raters[column]) if column >= 0 else column for column in columns]
        return part._replace(raters=np.array([places[column] for column in own], np.int64))


@dataclass(frozen=True)
class AutomaticPool(Description):
    """Description of the pool that suits the instances; made by ``linmax.pool("auto")``.

    ``kind`` is what the attributes are, "dense" or "sparse", if the data are not to decide it.
    """

    kind: str = ""
    name: ClassVar[str] = "auto"
    from_zero: ClassVar[bool] = False
    makes_room: ClassVar[tuple[bool, bool]] = (True, False)
    unmixable: ClassVar[str] = ""
    linear: ClassVar[bool] = False
    scales_attributes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        kind_of(self.kind)

    def start(self, size: int) -> Running:
        return RunningAuto(kind_of(self.kind))
