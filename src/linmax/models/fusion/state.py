"""What a `VoteFusion` has learned, and how trials come to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from linmax.data.arrays import no_instances
from linmax.data.experts import Experts, experts
from linmax.data.labels import as_array, labels_with_gaps
from linmax.data.matching import matched
from linmax.data.normalisation import Normaliser, cognitive_diversity, soft_votes
from linmax.data.side_columns import Sides, read_sides
from linmax.data.votes import Ballots, read_ballots
from linmax.models.experts_model import ExpertsModel
from linmax.models.fusion.comparison import FIRST_VOTER, Tally
from linmax.models.fusion.recent import Recent
from linmax.models.fusion.report import Side, Voter
from linmax.models.model import chosen
from linmax.models.reliability import Reliability, reliability
from linmax.util.names import apart

__all__ = [
    "FusionState",
    "VoteBatch",
    "in_order",
    "joined",
    "later",
    "make_batch",
    "one_row",
    "read_votes",
    "side_columns",
]

SAMPLE = 1000  # trials from which the diversity of raters is taken; then as many of each time as many trials again


class Options(Protocol):
    """How votes are read: the parameters of a `VoteFusion` that matter for it."""

    abstain: Any
    thresholds: bool
    by: Any


@dataclass(frozen=True)
class VoteBatch:
    """Trials of the voters, and what each said: places in ``names``, -1 for an abstention.

    ``places`` are the values of the side columns, as `Sides.places` gives them.
    """

    instances: Experts
    said: np.ndarray
    names: tuple[Any, ...]
    places: np.ndarray
    soft: np.ndarray | None = None  # what soft voting says of scores: places in ``names``

    def __len__(self) -> int:
        return len(self.said)

    def __getitem__(self, trials: slice) -> VoteBatch:
        return self.taken(trials)

    def taken(self, trials: slice | np.ndarray) -> VoteBatch:
        """Some of the trials."""
        soft = None if self.soft is None else self.soft[trials]
        return VoteBatch(self.instances[trials], self.said[trials], self.names, self.places[trials], soft)


@dataclass
class FusionState:
    """What a VoteFusion has learned."""

    model: ExpertsModel
    fixed: tuple[Any, ...] | None  # all classes, when no more may join
    named: bool  # whether voters came with names
    voters: tuple[str, ...]
    normaliser: Normaliser | None
    sides: Sides = field(default_factory=Sides)
    tally: Tally = field(default_factory=Tally)
    recent: Recent = field(default_factory=Recent)
    apart: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))  # cognitive diversity of raters, summed
    together: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))  # over so many trials
    _named_classes: list[Any] | None = field(default=None, init=False)  # those that the two that follow are about
    _numbered: dict[Any, int] = field(default_factory=dict, init=False)
    _order: np.ndarray = field(
        default_factory=lambda: np.zeros(0, np.int32), init=False
    )  # their places when they are sorted

    def parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All of it as plain data and arrays."""
        return self._described(*self.model.state())

    def _described(
        self, header: dict[str, Any], state: dict[str, np.ndarray]
    ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The state of the model, and what is the fusion's own."""
        blocks = {
            "model": state,
            "tally": self.tally.arrays,
            "recent": self.recent.arrays,
            "normaliser": {} if self.normaliser is None else self.normaliser.arrays,
            "raters": {"apart": self.apart, "together": self.together},
            "sides": {"columns": self.sides.columns, "counts": self.sides.counts},
        }
        description = {
            "model": header,
            "fixed": self.fixed,
            "named": self.named,
            "voters": list(self.voters),
            "kinds": None if self.normaliser is None else list(self.normaliser.kinds),
            **self.sides.description,
        }
        return description, {f"{block}.{name}": a for block, arrays in blocks.items() for name, a in arrays.items()}

    @classmethod
    def restored(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> FusionState:
        """What `parts` gave, at work again."""
        blocks, normaliser = apart(arrays), None
        sides = Sides.restored(description, blocks["sides"])
        if description["kinds"] is not None:
            normaliser = Normaliser(description["kinds"])
            normaliser.restore(blocks.get("normaliser", {}))
        return cls(
            ExpertsModel.from_state(description["model"], blocks["model"]),
            None if description["fixed"] is None else tuple(description["fixed"]),
            description["named"],
            tuple(description["voters"]),
            normaliser,
            sides,
            Tally.restored(blocks["tally"]),
            Recent.restored(blocks.get("recent", {})),
            **blocks["raters"],
        )

    def __getstate__(self) -> dict[str, Any]:
        description, arrays = self._described(*self.model.packed())
        return {"description": description, "arrays": {name: array.copy() for name, array in arrays.items()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = FusionState.restored(state["description"], state["arrays"]).__dict__

    @property
    def copies(self) -> int:
        """Columns of a voter."""
        return 1 if self.normaliser is None else len(self.normaliser.kinds)

    def welcome(self, held: Sequence[Sequence[Any]]) -> None:
        """Make columns for the voters, and for the values of the side columns at the trials to come."""
        if self.sides.names:
            self.sides = self.sides.joined(held, len(self.voters))

    def placed(self, batch: VoteBatch, held: Sequence[Sequence[Any]]) -> VoteBatch:
        """The batch with the values of the side columns as they are numbered now."""
        return replace(batch, places=self.sides.places(held, len(batch))) if self.sides.names else batch

    def advance(self, batch: VoteBatch, labels: np.ndarray) -> None:
        """Learn from these trials, as many at a time as there is room for."""
        wrong = [np.zeros(0, bool)]
        for begin in range(0, len(batch), self.sides.stretch()):
            part = slice(begin, begin + self.sides.stretch())
            wrong.append(self.model.run(self.laid_out(batch[part]), labels[part], grow=True).wrong)
        self.sides = self.sides.counted(batch.places)
        told = labels_with_gaps(labels)[1] >= 0
        self.count(self.tally, batch.taken(told), labels[told], ~np.concatenate(wrong)[told])

    def learn_row(self, votes: Any, y: Any) -> bool:
        """Learn from one row of votes whose voters, classes and label are all known; False if it is anything else.

        The same as `advance` on it, at a small part of the price.
        """
        codes = self._codes_of(votes)
        if codes is None or not isinstance(y, (list, tuple, np.ndarray)) or len(y) != 1:
            return False
        label = y[0].item() if isinstance(y[0], np.generic) else y[0]
        place = self._places.get(label, -1) if isinstance(label, Hashable) else -1
        known = len(self.model.known)
        if not 0 <= place < known or codes.max(initial=-1) >= known:
            return False
        layout, labels = self.model.layout, np.array([place], np.int32)
        instances = no_instances(1)._replace(votes=codes, signs=np.ones(layout.voters), constant=layout.constant)
        right = self.model.play(instances, labels).predictions == labels
        order = self._order
        self.tally.add(right, np.append(order, -1)[codes], order[labels], len(order))
        self.recent.add(codes, labels)
        return True

    def _codes_of(self, votes: Any) -> np.ndarray | None:
        """One row of votes as places among the classes, or None if it is anything but one plain row."""
        if self.sides.names or self.normaliser is not None or len(self.voters) != self.model.layout.voters:
            return None
        if isinstance(votes, dict):
            if not self.named or any(
                not isinstance(vote, (list, np.ndarray)) or len(vote) != 1 for vote in votes.values()
            ):
                return None
            row: Sequence[Any] = [votes[name][0] if name in votes else None for name in self.voters]
            known = sum(name in votes for name in self.voters) == len(votes)
        elif isinstance(votes, (list, np.ndarray)) and len(votes) == 1 and not self.named:
            first = votes[0]
            row = first.tolist() if isinstance(first, np.ndarray) else first
            known = isinstance(row, (list, tuple)) and len(row) == len(self.voters)
        else:
            return None
        places = self._places
        try:
            codes = [places[vote] for vote in row] if known else None
        except (KeyError, TypeError):  # a class that is new, nan, or something that is no class
            return None
        return None if codes is None else np.array([codes], np.int32)

    @property
    def _places(self) -> dict[Any, int]:
        """The place of each class, -1 for None, as long as the classes stay what they are."""
        if self._named_classes is not self.model.classes:
            self._named_classes = self.model.classes
            names = self.classes
            self._numbered = {name: place for place, name in enumerate(self.model.classes)} | {None: -1}
            self._order = np.array([names.index(name) for name in self.model.classes], np.int32)
        return self._numbered

    def laid_out(self, batch: VoteBatch) -> Experts:
        """Trials for the model: voters, and their copies for each value of the side columns."""
        return self.sides.laid_out(batch.instances, batch.places)

    def count(
        self,
        tally: Tally,
        batch: VoteBatch,
        labels: np.ndarray,
        right: np.ndarray,
        leaders: tuple[int, int] | None = None,
    ) -> None:
        """Count who was right; what only these voters or labels name is a class too."""
        names = labels.tolist()
        # Plurality breaks ties by the order of the classes, which must not hang on when each of them was met.
        met = [*self.model.classes, *batch.names, *names]
        classes = list(dict.fromkeys(met)) if self.fixed is not None else in_order(met)
        place = {name: i for i, name in enumerate(classes)}
        said = np.array([*(place[name] for name in batch.names), -1])[batch.said]
        told = np.array([place[name] for name in names])
        soft = None if batch.soft is None else np.array([place[name] for name in batch.names])[batch.soft] == told
        tally.add(right, said, told, len(classes), leaders, soft)
        if tally is self.tally:  # by the model's numbers, which stay what they are when classes join
            place = {name: i for i, name in enumerate(self.model.classes)}
            said = np.array([*(place.get(name, -1) for name in batch.names), -1])[batch.said]
            self.recent.add(said, np.array([place[name] for name in names], np.int64))

    def known(self, instances: Experts, more: Collection[Any] = ()) -> Experts:
        """The instances without voters that have not joined yet; votes for classes not met, nor ``more``, abstain."""
        layout, classes = self.model.layout, {*self.model.classes, *more}
        votes = instances.votes[:, : layout.voters]
        strange = [i for i, name in enumerate(instances.names) if name not in classes]
        if strange:
            votes = np.where(np.isin(votes, strange), np.int32(-1), votes)
        return replace(
            instances,
            votes=np.ascontiguousarray(votes),
            signs=instances.signs[: layout.voters],
            scores=np.ascontiguousarray(instances.scores[:, : layout.raters]),
        )

    @property
    def classes(self) -> list[Any]:
        """The classes as users see them: as given, or sorted when they can be; the model has them as they were met."""
        return list(self.model.classes) if self.fixed is not None else in_order(self.model.classes)

    def probabilities(self, batch: VoteBatch) -> np.ndarray:
        """The probability of each class for each trial; what is missing from 1 is of classes that were never met."""
        return self._table(batch, ExpertsModel.predict_proba)

    def reliability(self, batch: VoteBatch, labels: np.ndarray) -> Reliability:
        """How far the probabilities of these trials can be believed."""
        place = {name: i for i, name in enumerate(self.classes)}
        return reliability(self.probabilities(batch), np.array([place.get(name, -1) for name in labels.tolist()]))

    def sets(self, batch: VoteBatch, coverage: float) -> list[tuple[Any, ...]]:
        """The prediction set of each trial."""
        found: list[tuple[Any, ...]] = [()] * len(batch)
        for trials, model, part in self._parts(batch):
            scores = model.rates(part)
            for t, names in zip(trials, chosen(scores, model.sets(scores, coverage), model.classes), strict=True):
                found[t] = names
        return found

    def predict(self, batch: VoteBatch) -> np.ndarray:
        """The class of each trial."""
        found = np.empty(len(batch), dtype=object)
        for trials, model, part in self._parts(batch):
            found[trials] = model.predict(part).tolist()
        return as_array(found.tolist())

    def scores(self, batch: VoteBatch) -> np.ndarray:
        """Scores in units of the voters' weight; -inf for classes that are not yet known."""
        scores = self._table(batch, ExpertsModel.rates)
        try:
            total, factor = self.unit()
        except ValueError:  # the learner is no single weight vector: its scores have their own unit
            total, factor = 1.0, 1.0
        return scores / (total * factor)

    def _table(self, batch: VoteBatch, judge: Callable[[ExpertsModel, Experts], np.ndarray]) -> np.ndarray:
        """What the model says of each of `classes` for each trial."""
        classes = self.classes
        table = np.zeros((len(batch), len(classes)))
        for trials, model, part in self._parts(batch):
            place = {name: i for i, name in enumerate(model.classes)}
            table[trials] = judge(model, part)[:, [place[name] for name in classes]]
        return table

    def _parts(self, batch: VoteBatch) -> Iterator[tuple[np.ndarray, ExpertsModel, Experts]]:
        """Trials as the model knows them, as many at a time as there is room for.

        Where votes name classes that are not yet known, a guest takes its place that has met these.
        """
        known, size = set(self.model.known), self.sides.stretch()
        strange = np.array([name not in known for name in batch.names] + [False])
        guests = strange[batch.said].any(axis=1) if self.model.engine.settings.by_votes else np.zeros(len(batch), bool)
        usual = np.flatnonzero(~guests)
        for begin in range(0, len(usual), size):
            trials = usual[begin : begin + size]
            yield trials, self.model, self.known(self.laid_out(batch.taken(trials)))
        alike: dict[tuple[int, ...], list[int]] = {}
        for t in np.flatnonzero(guests).tolist():
            fresh = dict.fromkeys(vote for vote in batch.said[t].tolist() if strange[vote])
            alike.setdefault(tuple(fresh), []).append(t)
        for votes, places in alike.items():
            names, trials = [batch.names[vote] for vote in votes], np.array(places)
            guest = self.model.visited(self.model.layout, names, names)
            yield trials, guest, self.known(self.laid_out(batch.taken(trials)), names)

    def unit(self) -> tuple[float, float]:
        """Magnitude of the voters' weights, and how many times as large the model's scores are as w.x.

        The machine gives scores up to one positive factor. It shows when one voter, the heaviest, speaks alone. Of a
        learner that only resembles w.x, such as a mixture, it is 1.
        """
        weights, k = self.model.weights.arrays, len(self.model.classes)
        columns = np.concatenate([weights.voters, weights.raters])
        heaviest = int(np.abs(columns).argmax())
        total = float(np.abs(self._of_voters(columns)).sum())
        if total == 0.0 or k < 2:
            return 1.0, 1.0
        if not self.model.engine.top.linear:
            return total, 1.0
        ratings = np.zeros((2, len(columns), k))
        ratings[1, heaviest, 0] = 1.0
        layout = self.model.layout
        blocks: dict[str, Any] = {"scores": ratings}
        if layout.voters:
            blocks = {"votes": np.where(ratings[:, :, 0] > 0.0, 0, -1), "abstain": -1}
        probe = experts(**blocks, classes=range(k), thresholds=bool(layout.constant))
        silent, alone = self.model.scores(replace(probe, names=tuple(self.model.classes)))
        return total, float(((alone - silent)[0] - (alone - silent)[1]) / columns[heaviest])

    def shares(self) -> np.ndarray:
        """(voters, copies) weights that add up to 1 in magnitude, or are all 0."""
        weights = self.model.weights.arrays
        table = self._of_voters(np.concatenate([weights.voters, weights.raters]))
        total = np.abs(table).sum()
        return table / total if total > 0.0 else table

    def _of_voters(self, columns: np.ndarray) -> np.ndarray:
        """Weights of the columns as (voters, copies); with side columns the mean weight of each voter."""
        if self.sides.names:
            return self.sides.mean_weights(columns, self.tally.trials)[:, None]
        return columns.reshape(len(self.voters), self.copies)

    def shares_by(self) -> dict[str, np.ndarray]:
        """For each value of the side columns the voters' weights, in the unit of `shares`."""
        columns = self.model.weights.arrays.voters
        total = np.abs(self._of_voters(columns)).sum()
        found = zip(self.sides.labels, self.sides.weights_by(columns, self.tally.trials), strict=True)
        return {label: weights / total if total > 0.0 else weights for label, weights in found}

    def voter_of(self) -> np.ndarray:
        """The voter of each column."""
        if self.sides.names:
            return self.sides.columns[:, 0]
        return np.repeat(np.arange(len(self.voters)), self.copies)

    def held(self, places: np.ndarray) -> dict[str, Any]:
        """The values of the side columns at one trial; None for one that is missing or was never met."""
        named = zip(self.sides.names, places.tolist(), strict=True)
        return {name: self.sides.values[place][1] if place >= 0 else None for name, place in named}

    def side_lines(self, weighted: bool) -> tuple[Side, ...]:
        """What a report says of each value of the side columns: the most frequent first."""
        by = self.shares_by() if weighted and self.sides.names else {}
        lines = []
        for label, count in zip(self.sides.labels, self.sides.counts.tolist(), strict=True):
            weights = dict(zip(self.voters, by[label].tolist(), strict=True)) if weighted else {}
            lines.append(Side(label, count, dict(sorted(weights.items(), key=lambda item: -abs(item[1])))))
        return tuple(sorted(lines, key=lambda line: -line.trials))

    def compare_raters(self, ballots: Ballots) -> None:
        """Add to the cognitive diversity of those who rated."""
        if not ballots.scored:
            return
        named = self.named and ballots.names is not None
        present = [self.voters.index(name) for name in ballots.names or ()] if named else range(ballots.table.shape[1])
        new = len(self.voters) - len(self.apart)
        self.apart, self.together = (np.pad(matrix, (0, new)) for matrix in (self.apart, self.together))
        pairs = np.ix_(present, present)
        trials = self.tally.trials + np.arange(len(ballots))
        strides = 1 << np.log2(np.maximum(trials // SAMPLE, 1)).astype(np.int64)
        for stride in np.unique(strides).tolist():
            sample = ballots.table[(strides == stride) & (trials % stride == 0)]
            if len(sample):
                self.apart[pairs] += stride * len(sample) * cognitive_diversity(sample)
                self.together[pairs] += stride * len(sample)

    def voter_lines(self, weights: Mapping[str, float]) -> tuple[Voter, ...]:
        """What a report says of each voter: the heaviest first, or the most often right where there are no weights."""
        shares = {
            name: (counts[FIRST_VOTER:] / max(1, self.tally.trials)).tolist()
            for name, counts in (("right", self.tally.right), ("spoke", self.tally.spoke))
        }
        order = list(weights) or sorted(self.voters, key=lambda name: -shares["right"][self.voters.index(name)])
        strength = self.diversity_strength()
        lines = []
        for name in order:
            right, spoke = (shares[key][self.voters.index(name)] for key in ("right", "spoke"))
            lines.append(Voter(name, weights.get(name), right, spoke, strength.get(name)))
        return tuple(lines)

    def diversity_strength(self) -> dict[str, float]:
        """Mean cognitive diversity of each rater to those it was seen with; empty for voters, who have none."""
        met = self.together > 0.0
        mean = np.divide(self.apart, self.together, out=np.zeros_like(self.apart), where=met)
        others = np.maximum(met.sum(axis=1) - 1, 1)
        return dict(zip(self.voters, (mean.sum(axis=1) / others).tolist(), strict=False))


# -- from what users give to trials -------------------------------------------------------------------------------


def joined(state: FusionState | None, ballots: Ballots) -> tuple[tuple[str, ...], bool]:
    """The voters, these included, and whether they go by name."""
    if state is None:
        return ballots.voters(None, False), ballots.names is not None
    if ballots.scored != (state.normaliser is not None):
        fitted, given = ("scores", "votes") if state.normaliser is not None else ("votes", "scores")
        raise ValueError(f"this VoteFusion was fitted to {fitted}, got {given} of shape {ballots.table.shape}")
    return ballots.voters(state.voters, state.named), state.named


def make_batch(
    options: Options,
    ballots: Ballots,
    voters: tuple[str, ...],
    named: bool,
    fixed: tuple[Any, ...] | None,
    normaliser: Normaliser | None,
    sides: Sides,
    *,
    learn: bool,
) -> VoteBatch:
    table = ballots.aligned(voters, named)
    places = sides.places(read_sides(sides.names, ballots.sides), len(table))
    if normaliser is None:
        instances = experts(table, classes=fixed, abstain=options.abstain, thresholds=options.thresholds)
        return VoteBatch(instances, instances.votes, instances.names, places)
    if fixed is None or table.shape[2] != len(fixed):
        raise ValueError(
            f"scores rate {table.shape[2]} classes, but there are {len(fixed or ())}: {list(fixed or ())!r}"
        )
    spread = np.ptp(table, axis=2)
    if "raw" in normaliser.kinds and spread.max() > 1.0 + 1e-12:
        raise ValueError(
            f"raw scores must differ by at most 1 within a trial, got {spread.max():g}; divide them, or use another "
            "normalisation"
        )
    instances = experts(scores=normaliser.apply(table, learn=learn), classes=fixed, thresholds=options.thresholds)
    shared = soft_votes(table).argmax(axis=1)
    return VoteBatch(instances, np.where(spread > 0.0, table.argmax(axis=2), -1), fixed, places, shared)


def later(options: Options, state: FusionState, votes: Any) -> VoteBatch:
    """Trials of voters that are all known; votes for classes never met are abstentions to the model."""
    ballots = matched(read_votes(votes, options.by), state.model.classes, options.abstain, learning=False)
    voters, named = joined(state, ballots)
    if len(voters) > len(state.voters):
        if named:
            raise ValueError(f"votes: {voters[len(state.voters)]!r} is no known voter; partial_fit with it, or drop it")
        raise ValueError(f"votes have {len(voters)} columns, but {len(state.voters)} voters are known; drop the others")
    return make_batch(options, ballots, voters, named, state.fixed, state.normaliser, state.sides, learn=False)


def read_votes(votes: Any, by: Any) -> Ballots:
    """Votes, and the side columns among them apart."""
    ballots = read_ballots(votes)
    return ballots if ballots.sides else ballots.without(side_columns(by))


def side_columns(by: Any) -> tuple[str | int, ...]:
    """The side columns as given: one or several names or places."""
    columns = () if by is None else (by,) if isinstance(by, (str, int, np.integer)) else tuple(by)
    for column in columns:
        if isinstance(column, (bool, np.bool_)) or not isinstance(column, (str, int, np.integer)):
            raise TypeError(f"by must be a column's name or place, or a list of these, got {column!r}")
    if len(set(columns)) < len(columns):
        raise ValueError(f"by names a column twice: {', '.join(map(repr, columns))}; drop one")
    return columns


def one_row(instance: Any, state: FusionState, by: Any) -> Ballots:
    """One instance as a table of one row."""
    if hasattr(instance, "columns"):
        rows = instance
    elif hasattr(instance, "to_dict") and hasattr(instance, "index"):  # a row of a DataFrame
        rows = {name: [vote] for name, vote in instance.to_dict().items()} if state.named else [instance.tolist()]
    elif isinstance(instance, Mapping):
        rows = {name: [vote] for name, vote in instance.items()}
    else:
        wanted = 1 if state.normaliser is None else 2
        rows = instance if isinstance(instance, np.ndarray) and instance.ndim > wanted else [instance]
        rows = np.asarray(rows) if isinstance(instance, np.ndarray) else rows
    ballots = read_votes(rows, by)
    if len(ballots) != 1:
        raise ValueError(f"this takes one trial, got {len(ballots)}; give it a row")
    return ballots


def in_order(names: Sequence[Any]) -> list[Any]:
    """Distinct classes, sorted when they can be; of those that are equal, the first."""
    met = list(dict.fromkeys(names))
    try:
        return sorted(met)
    except TypeError:
        return met
