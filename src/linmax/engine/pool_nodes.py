"""The nodes of learners that are no rule: one that stands alone, and the pool that suits the instances at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from linmax.core.contract import EXPERTS, KNOWN, STRIDE, Instances
from linmax.data.arrays import cut, no_instances
from linmax.learners.attributes.pool import ATTRIBUTE_KINDS, RunningPool, slots
from linmax.learners.base import Description, Mixture, Placement, silent
from linmax.learners.votes.pool import RunningVotes
from linmax.techniques.node import Chunk, Node, PlayedChunk
from linmax.util.names import apart

if TYPE_CHECKING:
    from linmax.engine.engine import Engine

__all__ = ["AutoPoolNode", "LearnerNode"]


class LearnerNode(Node):
    """A learner that is no rule, with all its work and state its own (see `linmax.learners`)."""

    always_changes = True

    def __init__(self, described: Description) -> None:
        self.described = described
        self.from_zero = described.from_zero
        self.unmixable = described.unmixable
        self.takes_gaps = described.takes_gaps
        self.learns_attributes = described.learns_attributes
        self.passes_attributes_over = "" if described.learns_attributes else str(described)

    def hosts(self, experts: bool) -> bool:
        return self.described.makes_room

    @property
    def linear(self) -> bool:
        return self.described.linear

    def prepare(self, engine: Engine) -> None:
        self.running = self.described.start(engine.state.weights.shape[1])

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return self.running.arrays

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.running.restore(arrays)

    def renumber(self, order: Sequence[int]) -> None:
        self.running.renumber(order)

    def move(self, moved: Callable[[np.ndarray], np.ndarray]) -> None:
        self.running.move(moved)

    def play(self, engine: Engine, chunk: Chunk) -> PlayedChunk:
        shape = engine.state.shape
        shape[KNOWN] = chunk.known
        played = self.running.play(shape, chunk.instances, chunk.labels, chunk.begin, chunk.end, engine.k)
        return PlayedChunk(played[0], np.ones(len(played[0]), np.uint8), played[1])

    def play_one(self, engine: Engine, instances: Instances, label: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        return self.running.play(engine.state.shape, instances, label, 0, 1, engine.k)

    @property
    def weighing(self) -> RunningPool | None:  # type: ignore[override]
        """A group of members does."""
        return self.running if isinstance(self.running, RunningPool) else None

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        return self.running.judge(engine.state.shape, instances, size, engine.k)

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        return filled_up(self.running.hypothesis(), engine), 0.0

    def shown(self, engine: Engine) -> tuple[np.ndarray, float]:
        form = self.running.linear_form(engine.layout.dense, engine.layout.sparse, engine.k)
        return self.hypothesis(engine) if form is None else (in_coordinates(engine, form), 0.0)

    def mix(self, mixture: Mixture) -> None:
        self.running.mix(mixture.of(lambda node: node.running))


def filled_up(weights: np.ndarray, engine: Engine) -> np.ndarray:
    """Weights over all coordinates of the engine; those left out are 0."""
    return np.append(weights, np.zeros(engine.state.weights.shape[1] - len(weights)))


def in_coordinates(engine: Engine, form: np.ndarray) -> np.ndarray:
    """Weights of the constant and the attributes for each class, (rows, classes), where the engine would keep them."""
    experts, stride = (int(n) for n in engine.state.shape[[EXPERTS, STRIDE]])
    stored = np.zeros(experts + engine.capacity * stride)
    if stride:
        rows = engine.layout.rows
        stored[experts:].reshape(-1, stride)[:rows, : engine.k] = form[:rows]
    return stored


class AutoPoolNode(Node):
    """A pool for what there is: one for attributes, one for voters and raters, or both.

    With both, the votes of the first one's members are raters beside the others, and the second one decides.
    ``columns`` says what each rater of the second is: a rater of the instances, or -1 - m for member m. They stand in
    the order in which they came.
    """

    from_zero = False
    linear = False
    always_changes = True
    learns_attributes = True
    unmixable = ""

    def __init__(self, kind: str = "") -> None:
        self.kind = ATTRIBUTE_KINDS[kind]

    def hosts(self, experts: bool) -> bool:
        return not experts

    def prepare(self, engine: Engine) -> None:
        self.columns = np.zeros(0, np.int64)
        self.attributes: RunningPool | None = None
        self.votes: RunningVotes | None = None
        self._fit(engine)

    def _fit(self, engine: Engine) -> None:
        """Make the parts that the layout needs, or let them grow."""
        layout = engine.layout
        if layout.dense or layout.sparse:
            self.attributes = self.attributes or RunningPool(self.kind)
        raters = np.arange(self.columns[self.columns >= 0].size, layout.raters)
        members = -1 - np.arange(slots())
        if not (layout.voters or layout.raters):
            return
        if self.attributes is None or (self.columns < 0).any():
            members = members[:0]
        self.columns = np.concatenate([self.columns, raters, members])
        self.votes = self.votes or RunningVotes()

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        found = {"columns": self.columns}
        if self.attributes is not None:
            found |= {f"attributes.{name}": array for name, array in self.attributes.arrays.items()}
        if self.votes is not None:
            found |= {f"votes.{name}": array for name, array in self.votes.arrays.items()}
        return found

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        parts = apart(arrays)
        self.columns = parts[""]["columns"].copy()
        if "attributes" in parts:
            self.attributes = self.attributes or RunningPool(self.kind)
            self.attributes.restore(parts["attributes"])
        if "votes" in parts:
            self.votes = self.votes or RunningVotes()
            self.votes.restore(parts["votes"])

    def grown(self, engine: Engine) -> None:
        self._fit(engine)

    def _fused(self, instances: Instances, begin: int, end: int, votes: np.ndarray | None, k: int) -> Instances:
        """Trials begin..end as the pool for voters and raters sees them, with the votes of the other's members."""
        part = cut(instances, begin, end)
        scores = np.zeros((end - begin, len(self.columns), k if len(self.columns) else 0))
        given = self.columns >= 0
        scores[:, given] = part.scores[:, self.columns[given], :k] if given.any() else 0.0
        if self.attributes is not None and votes is not None and not given.all():
            scores[:, ~given] = self.attributes.in_slots(votes, k)[:, -1 - self.columns[~given]]
        return no_instances(end - begin)._replace(
            votes=part.votes, signs=part.signs, scores=scores, constant=part.constant
        )

    def play(self, engine: Engine, chunk: Chunk) -> PlayedChunk:
        shape = engine.state.shape
        shape[KNOWN] = chunk.known
        size = chunk.end - chunk.begin
        predictions = silent(shape, np.maximum.accumulate([chunk.known, *chunk.seen[:-1] + 1])[:size])
        table = np.zeros((size, engine.k))
        if self.attributes is None:
            self._vote(engine, chunk, chunk.begin, chunk.end, None, predictions, table)
        else:
            fused = self.attributes.chunks(shape, chunk.instances, chunk.labels, chunk.begin, chunk.end, engine.k)
            for begin, end, classes, scores, votes in fused:
                place = slice(begin - chunk.begin, end - chunk.begin)
                predictions[place], table[place] = classes, scores
                self._vote(engine, chunk, begin, end, votes, predictions, table)
        return PlayedChunk(predictions, np.ones(size, np.uint8), table)

    @property
    def weighing(self) -> RunningPool | None:  # type: ignore[override]
        """The pool for attributes, where it decides."""
        return self.attributes if self.votes is None else None

    @property
    def deniable(self) -> RunningPool | None:
        """The pool for attributes, also where the one for voters and raters decides over its members."""
        return self.attributes

    @property
    def takes_gaps(self) -> bool:  # type: ignore[override]
        """The pool for attributes needs labels."""
        return self.attributes is None

    def watch(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        """The pool for voters and raters learns from how voters agree."""
        if self.votes is None:
            return self.judge(engine, instances, size)
        votes = None
        if self.attributes is not None:
            *_, votes = self.attributes.judged(engine.state.shape, instances, size, engine.k)
        fused, none = self._fused(instances, 0, size, votes, engine.k), np.full(size, -1, np.int32)
        return self.votes.play(engine.state.shape, fused, none, 0, size, engine.k)

    def play_one(self, engine: Engine, instances: Instances, label: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """For voters alone."""
        if self.votes is None or self.attributes is not None or engine.layout.raters:
            return None
        return self.votes.play(engine.state.shape, instances, label, 0, 1, engine.k)

    def _vote(
        self,
        engine: Engine,
        chunk: Chunk,
        begin: int,
        end: int,
        votes: np.ndarray | None,
        predictions: np.ndarray,
        table: np.ndarray,
    ) -> None:
        """Have the pool for voters and raters decide trials begin..end, if there is one."""
        if self.votes is None:
            return
        fused = self._fused(chunk.instances, begin, end, votes, engine.k)
        place, shape = slice(begin - chunk.begin, end - chunk.begin), engine.state.shape
        shape[KNOWN] = max(chunk.known, int(chunk.labels[chunk.begin : begin].max(initial=-1)) + 1)
        labels = chunk.labels[begin:end]
        predictions[place], table[place] = self.votes.play(shape, fused, labels, 0, end - begin, engine.k)

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        votes, known = None, np.full(size, engine.state.shape[KNOWN])
        predictions, table = silent(engine.state.shape, known), np.zeros((size, engine.k))
        if self.attributes is not None:
            *_, predictions, table, votes = self.attributes.judged(engine.state.shape, instances, size, engine.k)
        if self.votes is not None:
            fused = self._fused(instances, 0, size, votes, engine.k)
            return self.votes.judge(engine.state.shape, fused, size, engine.k)
        return predictions, table

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        """For voters and raters alone: about that of their pool."""
        if self.attributes is not None or self.votes is None:
            return super().hypothesis(engine)
        return filled_up(self.votes.hypothesis(), engine), 0.0

    def shown(self, engine: Engine) -> tuple[np.ndarray, float]:
        """With both, the members of the first have the weights that the second gives them."""
        layout = engine.layout
        if self.attributes is None:
            if self.votes is not None:
                return self.hypothesis(engine)
            return in_coordinates(engine, np.zeros((layout.rows, engine.k))), 0.0
        if self.votes is None:
            return in_coordinates(engine, self.attributes.linear_form(layout.dense, layout.sparse, engine.k)), 0.0
        inner = layout.voters + len(self.columns)
        found = self.votes.hypothesis()
        found = np.append(found, np.zeros(max(0, inner + engine.k - len(found))))
        raters, given, own = found[layout.voters : inner], self.columns >= 0, np.zeros(slots())
        own[-1 - self.columns[~given]] = raters[~given]
        form = self.attributes.linear_form(layout.dense, layout.sparse, engine.k, own)
        form[0] += found[inner : inner + engine.k] if layout.constant else 0.0
        stored = in_coordinates(engine, form)
        stored[: layout.voters] = found[: layout.voters]
        stored[layout.voters + self.columns[given]] = raters[given]
        return stored, 0.0

    def mix(self, mixture: Mixture) -> None:
        if self.attributes is not None:
            self.attributes.mix(mixture.of(lambda node: node.attributes))
        if self.votes is not None:
            self.votes.mix(mixture.map(self._with_members).of(lambda node: node.votes))

    def _with_members(self, part: Placement) -> Placement:
        """The part with the places of all raters of its pool for voters and raters, members among them."""
        there = {column: place for place, column in enumerate(self.columns.tolist())}
        own = [int(part.raters[column]) if column >= 0 else column for column in part.state.columns.tolist()]
        return part._replace(raters=np.array([there[column] for column in own], np.int64))
