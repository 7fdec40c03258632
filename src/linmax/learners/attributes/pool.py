"""The pool for attributes: a few cheap, diverse learners on scaled attributes, fused by a logit, with nothing to tune.

Members come in groups (`REGISTRY`), some for numbers and some for words; the data decide which of them learn (`Kinds`).
Every group has one protocol (`Group`): `play` gives the members' scores of a trial and learns it, `fit` makes room for
attributes and classes, `mix` merges. `MemberFusion` weighs the members and gives the probabilities of the pool.

The first 512 trials are stored. At trials 1, 2, 4, ... 512 the pool decides again what the attributes are; where the
decision changes, and where a group studies the first trials, all members start from scratch and learn the stored
trials once more.

A label of -2 - c says only that the class is not c (`DENIED`): members let c fall behind the best other class. A trial
of weight w scales the members' steps: C = w in PA-I and SCW-I, r / w in AROW, w losses in softmax, w counts in naive
Bayes.

Rows that follow a stream of long runs of one label say little about other rows. Predictions for such rows come from
members weighed on a sample of the stream, or from a pool that learned the sample in random order (`AtLarge`).

`AttributePool`, `BinnedPairs` and `Nearest` are the descriptions: the whole pool, and single groups as learners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from linmax.core.contract import Trials
from linmax.data.arrays import Layout, cut
from linmax.learners.attributes.group import Group, Task
from linmax.learners.attributes.linear import DenseMembers
from linmax.learners.attributes.nearest import NearestRows
from linmax.learners.attributes.pairs import MOST_BINS, PairMembers
from linmax.learners.attributes.stacker import MemberFusion, fingerprints
from linmax.learners.attributes.warm_up import (
    DENSE,
    LAST,
    MIXED,
    SPARSE,
    UNDECIDED,
    AtLarge,
    FirstTrials,
    Kinds,
    fusion_at_large,
    pool_at_large,
)
from linmax.learners.attributes.words import LINEAR, ROOM, SparseMembers
from linmax.learners.base import Description, Mixture, Running, WeightForm, silent
from linmax.learners.latest_label import RecentLabels
from linmax.util.parts import by_part

if TYPE_CHECKING:
    from linmax.learners.attributes.group import Group

__all__ = [
    "REGISTRY",
    "AttributePool",
    "BinnedPairs",
    "FusedTrials",
    "GroupLearner",
    "Nearest",
    "PoolMember",
    "Registry",
    "RunningPool",
    "binned_pairs",
    "bytes_of_attribute",
    "decided",
    "first_slots",
    "kind_of",
    "linear_form",
    "mix_pools",
    "nearest",
    "sizes",
    "slots",
    "width_of",
]


CLASS_BLOCK = 4  # numbers of classes that members have room for are multiples of it, but for those in `NEVER_PADDED`
NEVER_PADDED = (5, 6)  # where much of the memory would be room

Registry = Mapping[str, Callable[[], Group]]

# By the names that saved models know them by, in the order in which they are fused.
REGISTRY: dict[str, Callable[[], Group]] = {
    "sparse": SparseMembers,
    "recent": RecentLabels,
    "dense": DenseMembers,
    "pairs8": partial(PairMembers, 8),
    "pairs16": partial(PairMembers, 16),
    "nearest": NearestRows,
}


def sizes() -> dict[str, int]:
    """Return the number of members of each group."""
    return {name: len(make().members) for name, make in REGISTRY.items()}


def first_slots() -> dict[str, int]:
    """A place of its own for each member of all groups: where those of each group begin."""
    found, place = {}, 0
    for name, members in sizes().items():
        found[name] = place
        place += members
    return found


def width_of(k: int) -> int:
    """Classes that the members have room for."""
    return k if k in NEVER_PADDED else CLASS_BLOCK * -(-k // CLASS_BLOCK)


def bytes_of_attribute(k: int) -> float:
    """About how much memory a sparse attribute takes with k classes."""
    return (1.0 + 1.0 / ROOM) * ((LINEAR + 1) * 4 * width_of(k) + 8)


def marks_of(trials: Trials) -> np.ndarray:
    """Return the fingerprints of the rows."""
    found = np.zeros(trials.size, np.int64)
    fingerprints(trials.dense, trials.indptr, trials.indices, trials.values, found)
    return found


KIND_WORDS = {DENSE: "numbers", SPARSE: "words", MIXED: "numbers and words, as they came"}


def decided(pool: RunningPool) -> dict[str, str | int | float]:
    """Return what the attributes were taken for, and what that was decided from."""
    kinds = pool.kinds
    if kinds.kind == UNDECIDED:
        return {}
    found: dict[str, str | int | float] = {"attributes are": KIND_WORDS[kinds.kind]}
    found["decided by"] = "the learner" if kinds.fixed else "the data"
    if kinds.counts[2] and not kinds.fixed:
        found |= {"trials looked at": int(kinds.counts[2]), "share not 0": round(kinds.share_seen, 4)}
    for group in pool.groups.values():
        found |= group.decided()
    return found


def linear_form(pool: RunningPool, layout: Layout, k: int, slots: np.ndarray | None) -> WeightForm:
    """sum_m w_m W_m / r_m: the weights of the linear members for attributes as they scale them, as they are fused.

    r_m is the root mean square of a member's scores, and each attribute's weights are centred over the classes: this is
    what they say where the shares are taken as linear in the scores. Members that are not linear in the attributes are
    left out. ``slots`` are other weights of the members, at the places that `RunningPool.in_slots` gives them.
    """
    dense, sparse, first, fusion = layout.dense, layout.sparse, first_slots(), pool.fusion
    form = np.zeros((1 + dense + sparse, k))
    columns = pool.kinds.places(1 + np.arange(dense), 1 + dense + np.arange(sparse))
    for place, name, group in pool.placed():
        for m, table in enumerate(group.tables(k).values()):
            weight = fusion.member_weights[place + m] if slots is None else slots[first[name] + m]
            if not table.size:
                continue
            centred = weight * fusion.inverse_sizes[place + m] * (table - table.mean(axis=1, keepdims=True))
            rows = columns[group.sparse][: len(table) - 1]
            form[0, : table.shape[1]] += centred[0]
            form[rows, : table.shape[1]] += centred[1 : 1 + rows.size]
    if slots is None:
        form[0, : fusion.intercepts.shape[1]] += fusion.intercepts[0, :k]
    return WeightForm(np.zeros(0), form)


def mix_pools(pool: RunningPool, mixture: Mixture) -> None:
    """Make a pool that has seen nothing the mixture: what was decided is that of the part with the greatest share."""
    largest = max(mixture.weighed, key=lambda pair: pair[1])[0].state
    mixture = mixture._replace(restarted=mixture.base is not None and mixture.base.state.first.open)
    placed = pool.kinds.mix(mixture, largest.kinds)
    for name in dict.fromkeys(name for part in mixture.parts for name in part.state.groups):
        pool.join(name, pool.make(name))
    for name, group in pool.groups.items():
        group.mix(placed.of(partial(_group_of, name)), width_of(mixture.k))
    places = [_places(pool, part.state) for part in mixture.parts]
    base = None if mixture.base is None else _places(pool, mixture.base.state)
    same = all((where == np.arange(where.size)).all() for part in mixture.parts for where in (part.dense, part.sparse))
    pool.fusion.mix(mixture.of(lambda state: state.fusion), places, base, same)
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


CHUNK = 1024  # trials whose scores are kept at a time
STUDIES = (16, 64, 256, LAST)  # trials after which they are studied


def slots() -> int:
    """Members that there can be."""
    return sum(sizes().values())


class FusedTrials(NamedTuple):
    """Predictions, scores and votes of the members for some trials."""

    begin: int
    end: int
    predictions: np.ndarray
    table: np.ndarray  # scores
    votes: np.ndarray  # standardized scores of the members, (trials, members, classes and more)


class PoolMember(NamedTuple):
    """A member of the pool, to be looked at."""

    name: str
    weight: float  # with which it is fused
    sparse: bool  # whether its attributes are the sparse ones


class RunningPool(Running):
    """The groups of members, in the order in which they joined, and the weights by which they are fused.

    ``kind`` is what the attributes are, if it is not to be decided; ``registry`` are the groups that may join.
    """

    gives_probabilities = True

    def __init__(self, kind: int = UNDECIDED, registry: Registry = REGISTRY) -> None:
        self.registry = registry
        self.kinds, self.first, self.at_large = Kinds(kind), FirstTrials(), AtLarge()
        self._begin()

    def _begin(self) -> None:
        """No group has joined."""
        self.groups: dict[str, Group] = {}
        self.fusion = MemberFusion()

    @property
    def pools(self) -> dict[str, Running]:
        return {"attributes": self}

    @property
    def states(self) -> dict[str, Any]:
        """The parts of the state by name, groups in their order."""
        return {"kinds": self.kinds, "first": self.first, "large": self.at_large, "fusion": self.fusion} | self.groups

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        names = sorted(self.groups)
        found = {"order": np.array([names.index(name) for name in self.groups], np.int64)}
        for name, part in self.states.items():
            found |= {f"{name}.{key}": array for key, array in part.arrays.items()}
        return found

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        saved = by_part(arrays)
        self._begin()
        names = sorted(set(saved) - set(self.states) - {""})
        for place in saved[""]["order"].tolist():
            self.groups[names[place]] = self.make(names[place])
        for name, part in self.states.items():
            part.restore(saved[name])

    def make(self, name: str) -> Group:
        """A group that has seen nothing."""
        if name not in self.registry:
            raise ValueError(f"the pool has no members called {name!r}; there are {', '.join(self.registry)}")
        return self.registry[name]()

    def _fit(self, words: Trials, columns: int, k: int) -> None:
        """Let groups join for the attributes that these instances are the first to have, and make room."""
        for name in self.registry:
            group = self.groups.get(name) or self.make(name)
            if name not in self.groups and (words.indptr.size if group.sparse else columns):
                self.join(name, group)
        self._make_room(words, columns, k)

    def join(self, name: str, group: Group) -> None:
        """Let a group be one of the pool."""
        self.groups[name] = group
        self.fusion.join(len(group.members))

    def _make_room(self, words: Trials, columns: int, k: int) -> None:
        sparse = int(words.indices.max(initial=-1)) + 1 if words.indptr.size else 0
        for group in self.groups.values():
            group.fit(sparse if group.sparse else columns, width_of(k))

    # -- learning -------------------------------------------------------------------------------------------------

    def chunks(self, shape: np.ndarray, trials: Trials, k: int) -> Iterator[FusedTrials]:
        """Predict and learn trials, CHUNK at a time."""
        if not trials.indptr.size and not trials.dense.shape[1]:
            raise ValueError(
                "this learner needs attributes, and these instances have none; use 'votes', 'auto' or a rule"
            )
        if self.kinds.begin(trials):
            self._meet_both(shape, k)
        self.at_large.keep(trials)
        begin, end, behind = 0, trials.size, False  # whether the members have yet to learn the trials kept
        while begin < end and self.first.open:
            last = min(end, begin + self.first.until)
            part = cut(trials, begin, last)
            idle = bool(part.known[0] < 2) and (behind or (self.first.size == 0 and begin + 1 < end))
            if behind and not idle:
                self._again(shape, k, False)
            self.first.keep(part)
            played = self._agreed(shape, part, k) if idle else self._played(shape, part, k)
            for fused in played:
                yield fused._replace(begin=begin + fused.begin, end=begin + fused.end)
            behind = self._look(shape, k, idle) if self.first.due else idle
            begin = last
        if begin < end:
            for fused in self._played(shape, cut(trials, begin, end), k):
                yield fused._replace(begin=begin + fused.begin, end=begin + fused.end)

    def foresee(self, trials: Trials, k: int) -> None:
        """Decide by some of the trials to come, where they are known, what the first trials decide otherwise.

        It has learned nothing yet, and learns nothing from them here.
        """
        size = trials.size
        if size < STUDIES[0]:
            return
        self.kinds.begin(trials)
        self.kinds.meet(trials, True)
        self.kinds.decide(trials)
        self._fit(self.kinds.words(trials), self._columns(trials), k)
        for group in self.groups.values():
            group.study(self.kinds.rows(trials), trials.labels)
        self.first.close()
        self.kinds.settle()

    def _agreed(self, shape: np.ndarray, trials: Trials, k: int) -> Iterator[FusedTrials]:
        """One of the first two trials, with at most one class known before it: all members agree, and are not asked.

        They learn it when the second has been looked at. Then those for words are never needed where all are numbers.
        """
        self.kinds.meet(trials, True)
        self._fit(self.kinds.words(trials), self._columns(trials), k)
        votes = np.zeros((1, len(self.fusion.squares), width_of(k)), np.float32)
        yield FusedTrials(0, 1, *self.fusion.fuse(votes, marks_of(trials), trials, shape, True, k), votes)

    def _look(self, shape: np.ndarray, k: int, behind: bool) -> bool:
        """Look at the trials kept; if that changes anything, or there are two and the members are behind, learn them.

        Returns whether the members are still behind.
        """
        size, changed = self.first.size, self.kinds.decide(self.first.trials)
        studied = size >= STUDIES[0] and self._columns(self.first.trials) > 0
        due = size in STUDIES and any(make().studies for make in self.registry.values())
        again = changed or (behind and size > 1) or (studied and due)
        if again:
            self._again(shape, k, studied)
        if size >= LAST:
            self.first.close()
            self.kinds.settle()
        return behind and not again

    def _again(self, shape: np.ndarray, k: int, study: bool) -> None:
        """Learn the trials kept from the beginning."""
        self._begin()
        self.kinds.again()
        for _ in self._played(shape, self.first.trials, k, study):
            pass

    def _meet_both(self, shape: np.ndarray, k: int) -> None:
        """Numbers join words, or words join what came in a dense array and was taken for words."""
        if not self.kinds.counts[5]:
            return
        if not self.first.open:
            raise ValueError(
                "the columns of numbers learned from so far were mostly 0 and taken for words, and now there are "
                "words as well; pass all of them by name from the first row on, or learn by 'attributes(dense)'"
            )
        self._again(shape, k, self.first.size >= STUDIES[0])

    def _columns(self, trials: Trials) -> int:
        """Dense attributes that the groups have."""
        if self.kinds.kind == MIXED:
            return trials.dense.shape[1]
        return self.kinds.width if self.kinds.kind == DENSE else 0

    def _played(self, shape: np.ndarray, trials: Trials, k: int, study: bool = False) -> Iterator[FusedTrials]:
        """Trials that no decision falls into."""
        met = self.kinds.meet(trials, self.first.open)
        words, columns = self.kinds.words(trials), self._columns(trials)
        if self.kinds.kind != DENSE:
            met[:] = columns
        self._fit(words, columns, k)
        words = self._with_rows(words)
        if study:
            for group in self.groups.values():
                group.study(self.kinds.rows(trials), trials.labels)
        for first in range(0, trials.size, CHUNK):
            last = min(trials.size, first + CHUNK)
            part = cut(trials, first, last)
            task = Task(cut(words, first, last), True, self.kinds.rows(part), met[first:last])
            votes = self._votes(task, k)
            yield FusedTrials(first, last, *self.fusion.fuse(votes, marks_of(part), part, shape, True, k), votes)

    def judged(self, shape: np.ndarray, trials: Trials, k: int) -> FusedTrials:
        """Predictions, scores and votes without learning. Attributes not met before leave nothing behind."""
        size = trials.size
        if not self.groups:
            predictions = silent(shape, trials.known)
            return FusedTrials(0, size, predictions, np.zeros((size, k)), np.zeros((size, 0, k), np.float32))
        fusion, marks = self.fusion, marks_of(trials)
        if self.at_large.long_runs:
            other = pool_at_large(self, shape, k)
            if other is not None:
                return other.judged(shape, trials, k)
            fusion, marks = fusion_at_large(self, shape, k), np.zeros(size, np.int64)
        votes = self.scores_of(trials, k)
        return FusedTrials(0, size, *fusion.fuse(votes, marks, trials, shape, False, k), votes)

    def scores_of(self, trials: Trials, k: int) -> np.ndarray:
        """The members' scores, without learning."""
        marks = [(group, group.mark()) for group in self.groups.values()]
        words, rows = self._with_rows(self.kinds.words(trials)), self.kinds.rows(trials)
        self._make_room(words, rows.shape[1], k)
        met = np.full(trials.size, self.kinds.width if self.kinds.kind == DENSE else rows.shape[1])
        votes = self._votes(Task(words, False, rows, met), k)
        for group, mark in marks:
            group.rewind(mark)
        return votes

    @staticmethod
    def _with_rows(words: Trials) -> Trials:
        """Return trials that have rows of words, which may be empty."""
        return words if words.indptr.size else words._replace(indptr=np.zeros(words.size + 1, np.int64))

    def placed(self) -> Iterator[tuple[int, str, Group]]:
        """Each group, after the place of its first member."""
        place = 0
        for name, group in self.groups.items():
            yield place, name, group
            place += len(group.members)

    def _votes(self, task: Task, k: int) -> np.ndarray:
        """Return the members' scores, (trials, members, classes), made before they learn each trial."""
        votes = np.zeros((task.trials.size, len(self.fusion.squares), width_of(k)), np.float32)
        for place, _, group in self.placed():
            group.play(task, votes, place)
        return votes

    def play(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        predictions, table = np.zeros(trials.size, np.int32), np.zeros((trials.size, k))
        for first, last, classes, scores, _ in self.chunks(shape, trials, k):
            predictions[first:last], table[first:last] = classes, scores
        return predictions, table

    def judge(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        found = self.judged(shape, trials, k)
        return found.predictions, found.table

    # -- looking at it, and mixing --------------------------------------------------------------------------------

    def in_slots(self, votes: np.ndarray, known: np.ndarray, k: int) -> np.ndarray:
        """Return shares exp z / sum exp z of the members, (trials, slots, classes); absent ones give 0."""
        found, first = np.zeros((len(votes), slots(), k)), first_slots()
        shares = np.exp(votes[:, :, :k]) * (np.arange(k) < known[:, None])[:, None]
        shares /= np.maximum(shares.sum(axis=2, keepdims=True), np.finfo(np.float32).tiny)
        for place, name, group in self.placed():
            many = len(group.members)
            found[:, first[name] : first[name] + many] = shares[:, place : place + many]
        return found

    def members(self) -> list[PoolMember]:
        """The members in their order."""
        return [
            PoolMember(name, float(self.fusion.member_weights[place + m]), group.sparse)
            for place, _, group in self.placed()
            for m, name in enumerate(group.members)
        ]

    def decided(self) -> dict[str, str | int | float]:
        """Return what the attributes were taken for, and what that was decided from."""
        return decided(self)

    def typical(self, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
        """Return the means of attributes that are taken for numbers, dense and sparse ones; 0 for words."""
        dense, sparse = np.zeros(layout.dense), np.zeros(layout.sparse)
        group = self.groups.get("dense")
        if group is None:
            return dense, sparse
        means = np.append(group.stats[:, 1], 0.0)  # the last is for attributes without a place
        if self.kinds.kind == MIXED:
            dense[: len(group.stats)] = means[:-1]
            return dense, sparse
        for found, places in ((dense, self.kinds.dense_places), (sparse, self.kinds.sparse_places)):
            own = places[: found.size]
            found[: own.size] = means[np.where((own >= 0) & (own < len(group.stats)), own, -1)]
        return dense, sparse

    def linear_form(self, layout: Layout, k: int, slots: np.ndarray | None = None) -> WeightForm:
        return linear_form(self, layout, k, slots)

    def mix(self, mixture: Mixture) -> None:
        mix_pools(self, mixture)


ATTRIBUTE_KINDS = {"": UNDECIDED, "dense": DENSE, "sparse": SPARSE}


def kind_of(name: str) -> int:
    """Return what attributes are taken for by name; "" leaves the decision to the data."""
    if name not in ATTRIBUTE_KINDS:
        raise ValueError(f"kind must be dense or sparse, got {name!r}; leave it out and the data decide")
    return ATTRIBUTE_KINDS[name]


@dataclass(frozen=True)
class AttributePool(Description):
    """Description of the pool; made by ``linmax.pool("attributes")``.

    ``kind`` is "dense" or "sparse" if it is not to be decided by the data.
    """

    kind: str = ""
    name: ClassVar[str] = "attributes"
    from_zero: ClassVar[bool] = False
    makes_room: ClassVar[tuple[bool, bool]] = (True, True)
    scales_attributes: ClassVar[bool] = True
    unmixable: ClassVar[str] = ""

    def __post_init__(self) -> None:
        kind_of(self.kind)

    def start(self, size: int) -> Running:
        return RunningPool(kind_of(self.kind))


@dataclass(frozen=True)
class GroupLearner(Description):
    """A group of members by itself, with the first trials kept and learned again as in the pool."""

    from_zero: ClassVar[bool] = False
    makes_room: ClassVar[tuple[bool, bool]] = (True, True)
    scales_attributes: ClassVar[bool] = True
    unmixable: ClassVar[str] = ""

    def group(self) -> Group:
        """The group, which has seen nothing."""
        raise NotImplementedError

    def start(self, size: int) -> Running:
        return RunningPool(DENSE, {self.name: self.group})


@dataclass(frozen=True)
class BinnedPairs(GroupLearner):
    """Description of bins and their pairs; made by `linmax.learners.binned_pairs`."""

    bins: int = 16
    name: ClassVar[str] = "binned-pairs"

    def __post_init__(self) -> None:
        if self.bins != int(self.bins) or not 2 <= self.bins < MOST_BINS:
            raise ValueError(f"bins must be a whole number from 2 to {MOST_BINS - 1}, got {self.bins!r}; try 16")

    def group(self) -> Group:
        return PairMembers(int(self.bins))


@dataclass(frozen=True)
class Nearest(GroupLearner):
    """Description of the nearest rows; made by `linmax.learners.nearest`."""

    name: ClassVar[str] = "nearest"

    def group(self) -> Group:
        return NearestRows()


def binned_pairs(bins: int = 16) -> BinnedPairs:
    """Learn from quantile bins of dense attributes and from pairs of bins, by AROW against all classes.

    Parameters
    ----------
    bins
        Of each attribute, at most; one with fewer values has a bin for each value.

    Returns
    -------
    BinnedPairs
        The learner.

    Notes
    -----
    The edges are set from the first trials (again at 64, 256 and 512 of them, and what was learned is learned once
    more) and follow slow change from then on. Pairs are made of the 20 most informative bins of a row; the
    expansion is hashed, and never stored. The same features as a table, for any rule and with the bounds of rules
    that depend on the logarithm of their number only, are those of `linmax.features.bins` and `conjunctions`.

    References
    ----------
    Littlestone (1988), Learning quickly when irrelevant attributes abound, section 5: conjunctions as attributes.

    Examples
    --------
    >>> import linmax, numpy as np
    >>> points = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 2))
    >>> labels = points[:, 0] * points[:, 1] > 0.0  # no linear threshold of the two attributes
    >>> float(linmax.run("binned-pairs(8)", linmax.instances(attributes=points), labels).wrong[1000:].mean()) < 0.1
    True
    """
    return BinnedPairs(bins)


def nearest() -> Nearest:
    """Predict from the nearest among the rows that were not predicted surely when they came.

    Returns
    -------
    Nearest
        The learner.

    Notes
    -----
    At most 4,096 rows are remembered, fewer of many attributes. Distances are taken after division by the deviations.

    References
    ----------
    Aha, Kibler and Albert (1991), Instance-based learning algorithms: IB2.

    Examples
    --------
    >>> import linmax, numpy as np
    >>> points = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 2))
    >>> labels = points[:, 0] * points[:, 1] > 0.0
    >>> float(linmax.run("nearest", linmax.instances(attributes=points), labels).wrong[1000:].mean()) < 0.1
    True
    """
    return Nearest()
