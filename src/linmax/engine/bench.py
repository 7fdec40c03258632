"""The structs through which kernels see an engine: its members, the compiled nodes above them, and working memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.core.contract import SPREAD, STEP, STRIDE, Played, RunningTrials, State, Trials
from linmax.core.linear_max import TIED
from linmax.core.member import RunningRule, learn, note_update, present_everywhere, rescale, rescore, search
from linmax.core.rivals import RIVALS, present_rivals
from linmax.core.search import fill_panel, search_panel
from linmax.engine.coordinates import aligned, most_touched
from linmax.engine.loop import MANY, detail, play, predict, predict_average, run
from linmax.jit.compiling import address_of
from linmax.jit.panels import GROUP_SIZE, LANES
from linmax.jit.struct import entry
from linmax.techniques.node import Chunk, Node, PlayedChunk, Run, Turn
from linmax.techniques.recycling import KEPT, recycle_instances

if TYPE_CHECKING:
    from linmax.engine.engine import Engine

__all__ = ["Bench", "Room", "new_member"]

NO_CODES, NO_RATINGS, NO_TABLES = np.zeros(0, np.int8), np.zeros(0, np.float32), np.zeros(0, np.float32)
NO_MARKS, NO_LABELS = np.zeros(0), np.zeros(0, np.int32)


@lru_cache(maxsize=256)
def _numbers(values: tuple[float, ...]) -> np.ndarray:
    """Return numbers as an array; rules that list powers have thousands."""
    return np.array(values, float)


@dataclass
class Room:
    """Working memory that members and nodes share; it holds nothing between their turns."""

    scores: np.ndarray  # as long as the stride: scores of the classes
    spare: np.ndarray
    own: np.ndarray
    index: np.ndarray  # z where it is not 0
    z: np.ndarray
    before: np.ndarray
    full_index: np.ndarray  # z on all coordinates, for rules that want it
    full_z: np.ndarray
    tables: np.ndarray  # float32: weights for a panel
    lanes: np.ndarray  # float32 (k, 16): scores of sixteen instances

    @classmethod
    def of(cls, size: int, everywhere: bool, width: int, support: int, rows: int) -> Room:
        """Room for ``size`` coordinates, of which a z touches at most ``support``, and a panel of ``rows`` classes."""
        full, tables = size if everywhere else 0, -(-size // GROUP_SIZE) * LANES if rows else 0
        width = max(8, -(-width // 8) * 8)  # whole vectors
        return cls(
            np.zeros(width), np.zeros(width), np.zeros(width),
            np.zeros(support, np.int64), np.zeros(support), np.zeros(support), np.zeros(full, np.int64), np.zeros(full),
            np.zeros(tables, np.float32), np.zeros((rows, LANES), np.float32),
        )  # fmt: skip

    def lend(self, member: RunningRule) -> None:
        """Let a member work in it."""
        member.bind(
            scores=self.scores, spare=self.spare, own=self.own, index=self.index, z=self.z, before=self.before,
            full_index=self.full_index, full_z=self.full_z, lanes=self.lanes,
        )  # fmt: skip


NO_ROOM = Room.of(0, False, 0, 0, 0)


def new_member(
    run: Run, state: State, number: int, trials: RunningTrials, played: Played, tracked: bool
) -> RunningRule:
    """The member of this number, without working memory."""
    rule, spread = run.rule, run.rule.spread is not None
    noted = not rule.everywhere and bool(tracked or run.averaging)
    return RunningRule(
        step=address_of(rule.step, STEP), spread=address_of(rule.spread, SPREAD),
        search=entry(search), scan=entry(search), learn=entry(learn),
        present=0 if rule.rivals == "best" else entry(present_rivals),
        everywhere=entry(present_everywhere) if rule.everywhere else 0,
        note=entry(note_update) if noted else 0,
        rescale=entry(rescale) if spread else 0, rescore=entry(rescore) if spread else 0,
        average=entry(predict_average) if run.averaging else 0,
        recycle=entry(recycle_instances) if run.recycling[KEPT] else 0,
        row=2 * number, kind=run.averaging, tracked=int(tracked), gain=int(rule.gain),
        scales=int(not rule.weighs), multiplies=int(spread and rule.bounded), only_sign=int(rule.only_sign),
        rivals=RIVALS[rule.rivals], total=-1.0, recycling=np.array(run.recycling, np.int64),
        params=_numbers(rule.values), shape=state.shape, weights=state.weights[number],
        memory=state.memory[number], scalars=state.scalars[number],
        marks=state.memory[number, 0] if rule.marks else NO_MARKS,
        backlog=state.backlog[number] if run.averaging else state.backlog[number, :0], sums=state.means[number],
        counts=state.counts[number], uses=NO_LABELS, trials=trials, played=played, tables=NO_TABLES,
    )  # fmt: skip


class Bench:
    """An engine at work. It holds addresses of the engine's arrays, and is made again when these are replaced."""

    def __init__(self, engine: Engine) -> None:
        self.state, self.everywhere, self.top, self.classes = engine.state, engine.everywhere, engine.top, 0
        self.trials = RunningTrials(
            shape=self.state.shape, coordinates=self.state.weights.shape[1], codes=NO_CODES, ratings=NO_RATINGS
        )
        self.played = Played()
        self.members = [
            new_member(run, self.state, number, self.trials, self.played, engine.tracked)
            for number, run in enumerate(engine.runs)
        ]
        self.addresses = np.array([member.address for member in self.members], np.int64)
        self.turns: dict[int, Turn] = {}
        for number, member in enumerate(self.members):
            for averaged in (0, 1):
                self.turns[2 * number + averaged] = Turn(member, play, predict, which=averaged)
        self.nodes: list[Node] = []  # compiled ones, children first
        for node in reversed(engine.top.walk()):
            turn = None if node.row in self.turns else node.part(self)
            if turn is not None:
                self.turns[node.row] = turn
                self.nodes.append(node)
        self.first = [node for node in self.nodes if all(below.row in self.turns for below in node.walk())]
        self._ready = False
        self.room = NO_ROOM

    # -- what kernels work on --

    def reserve(self, classes: int, support: int, rows: int) -> None:
        """Make room for instances with this many classes in their scores, and z; and for panels of ``rows`` classes."""
        size, width, room = self.state.weights.shape[1], max(classes, int(self.state.shape[STRIDE])), self.room
        if width <= len(room.scores) and support <= len(room.z) and rows <= len(room.lanes) and room is not NO_ROOM:
            return
        support, rows = max(support, len(room.z)), max(rows, len(room.lanes))
        self.room = Room.of(size, self.everywhere, width, support, rows)
        for member in self.members:
            self.room.lend(member)
            self._bound_ties(member)

    def _bound_ties(self, member: RunningRule) -> None:
        """Say up to which lead classes may tie up to rounding (see `linmax.core.member.bound_ties`)."""
        if member.multiplies:
            largest = max(member.weights.max(initial=0.0), -member.weights.min(initial=0.0))
            member.close = TIED * float(largest) * len(self.room.index)

    def show(self, trials: Trials) -> None:
        """Let the kernels see these trials; weights may have changed since the last ones."""
        self.trials.bind(**trials._asdict(), weighted=int((trials.weights != 1.0).any()))
        self.reserve(trials.scores.shape[2], most_touched(trials), 0)
        for member in self.members:
            member.total, member.limit = -1.0, 0
            self._bound_ties(member)

    def lay_out(self, engine: Engine, size: int, largest: float, ones: bool, fill: int) -> None:
        """Lay out a panel for ``size`` instances with ratings up to ``largest``, if it pays; write the first out.

        ``ones`` if voters and constants rate 1.
        """
        trials, weights, k = self.trials, self.state.weights.shape[1], engine.k
        trials.bind(codes=NO_CODES, ratings=NO_RATINGS, largest=0.0, classes=k)
        if 1e-30 < largest < 1e30:  # neither too small nor too large for single precision
            places, layout = -(-size // LANES) * LANES, engine.layout
            if ones and layout.raters + layout.dense + layout.sparse == 0:
                trials.bind(codes=aligned(places * k * -(-weights // GROUP_SIZE), dtype=np.int8), largest=1.0)
            else:
                trials.bind(ratings=aligned(places * k * weights, dtype=np.float32), largest=largest)
            self.reserve(0, 0, k)
            fill_panel(trials, 0, fill)
        filled = trials.largest > 0.0
        for member in self.members:
            if filled and not member.tables.size:
                member.tables = np.zeros_like(self.room.tables)
            elif not filled and member.tables.size:
                member.tables = NO_TABLES
            member.search = entry(search_panel if filled else search)

    def reserve_outputs(self, size: int, scored: int, margins: bool, detailed: bool, classes: int) -> None:
        """Make room for what the parts do in this many trials; ``detailed`` if members write their scores.

        ``scored`` is of how many trials, the last ones, scores are wanted.
        """
        members, self.classes = len(self.members), classes
        rows = max([2 * members, *(node.row + 1 for node in self.top.walk())]) if self.nodes else 2 * members
        followed = (rows, size) if self.nodes else (0, 0)
        before, after = np.zeros(followed, np.int32), np.zeros(followed, np.int32)
        if self.nodes:
            before[: 2 * members] = after[: 2 * members] = np.arange(2 * members)[:, None]
        changed = np.zeros((rows, size), np.uint8)
        changed[1 : 2 * members : 2] = 1
        self.played.bind(
            predictions=np.zeros((rows, size), np.int32), changed=changed, before=before, after=after,
            tables=np.zeros((rows, scored, self.classes) if scored else (0, 0, 0)), scored=size - scored,
            margins=np.zeros(size if margins else 0),
        )  # fmt: skip
        for member in self.members:
            member.detail = entry(detail) if (detailed and scored) or margins else 0
        for node in self.nodes:
            node.begin(self)

    # -- playing --

    def turns_of(self, nodes: Sequence[Node], members: bool) -> tuple[list[Any], np.ndarray, np.ndarray, int]:
        """Return the parts that take turns, the addresses of their structs and kernels, and how long a turn is."""
        own = [(node, self.turns[node.row]) for node in nodes]
        order: list[tuple[Any, Any, Any]] = [(node, turn.part, turn.look) for node, turn in own if turn.look]
        step = 1 if order else MANY
        if members:
            order += [(number, member, play) for number, member in enumerate(self.members)]
        order += [(node, turn.part, turn.play) for node, turn in own]
        who = [name for name, _, _ in order]
        parts = np.array([part.address for _, part, _ in order], np.int64)
        return who, parts, np.array([entry(kernel) for _, _, kernel in order], np.int64), step

    def run(self, nodes: Sequence[Node], chunk: Chunk, members: bool = False) -> tuple[Any, int] | None:
        """Let nodes play a chunk, after the members or without; return who failed, and at which trial."""
        who, parts, kernels, step = self.turns_of(nodes, members)
        chunk.ran.update(node.row for node in nodes)
        if members:
            chunk.ran.update(range(2 * len(self.members)))
        failed = run(parts, kernels, chunk.begin, chunk.end, step) if who else -1
        return None if failed < 0 else (who[failed // MANY], failed % MANY)

    def write(self, row: int, played: PlayedChunk, chunk: Chunk) -> None:
        """Write what a node did in Python, for the nodes above it."""
        place = slice(chunk.begin, chunk.end)
        self.played.predictions[row, place], self.played.changed[row, place] = played.predictions, played.changed
        if played.scores is not None and self.played.tables.shape[1]:
            wanted = self.played.tables[row, max(0, chunk.begin - self.played.scored) :]
            wanted[...] = played.scores[len(played.scores) - len(wanted) :]

    def ready(self) -> None:
        """Prepare the parts to predict without learning."""
        if not self._ready:
            for member in self.members:
                member.predict = entry(predict)
            for node in self.first:
                node.ready(self)
            self._ready = True
