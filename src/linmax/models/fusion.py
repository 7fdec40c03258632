"""`VoteFusion`: online fusion of votes or scores.

A row of votes takes this path: `VoteFusion.partial_fit` -> `FusionState.learn_row` (one plain row of known voters and
classes: a dict lookup for each vote) or `VoteFusion._learn` (anything else: `read_ballots`, spelling matched, voters in
their columns, `make_batch`) -> `Model.play` -> the engine. `FusionState` is what has been learned.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from itertools import pairwise
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from linmax.core.contract import KNOWN, Instances
from linmax.data.arrays import no_instances
from linmax.data.experts import Experts, experts, experts_of
from linmax.data.names import (
    ROWS_OF_IDS,
    IdWatch,
    Names,
    as_array,
    distinct_classes,
    distinct_labels,
    label_array,
    named,
    no_label,
    silent_votes,
    warn_of_strangers,
)
from linmax.data.normalization import Normalizer, log_shares, soft_votes
from linmax.data.side_columns import Sides, read_sides
from linmax.data.votes import Ballots, encode_votes, in_classes, read_ballots
from linmax.engine.engine import Engine, settings_of
from linmax.engine.notation import as_learner
from linmax.models.asking import (
    EXPLORE,
    TOLERANCE,
    Asking,
    Choice,
    Few,
    Inquiry,
    Question,
    Recent,
    VoterPanels,
    add_class,
    asked_among,
    read_costs,
    read_share,
)
from linmax.models.baselines import (
    BEST_RECENT,
    BEST_SO_FAR,
    FIRST_VOTER,
    FUSION,
    PLURALITY,
    Comparison,
    LogitRival,
    Tally,
)
from linmax.models.calibration import Reliability, reliability
from linmax.models.kept_trials import KeptTrials
from linmax.models.model import Model, chosen, mask_of
from linmax.models.report import Details, Explanation, Report, Side, Voter
from linmax.util import files
from linmax.util.checks import at_least, fraction, one_of
from linmax.util.names import apart

__all__ = ["FUSION_KIND", "FusionState", "VoteBatch", "VoteFusion", "fusion_from", "fusion_state", "side_columns"]

FUSION_KIND = "vote fusion"
SEVERAL = (list, np.ndarray)  # types of several votes
ONE_TRIAL = np.zeros(1, np.int64)
THRESHOLDS = "(thresholds)"
TOGETHER = "(together)"
F = TypeVar("F")

Part = tuple[np.ndarray, Model, Instances]  # trials, the model that scores them, and the trials as it takes them


# -- trials as users give them ------------------------------------------------------------------------------------


class Options(Protocol):
    """The parameters of a `VoteFusion` that matter for reading votes."""

    abstain: Any
    thresholds: bool
    by: Any


@dataclass(frozen=True)
class VoteBatch:
    """Trials of the voters, and their votes: places in ``names``, -1 for an abstention or a voter not asked.

    ``places`` are the values of the side columns, as `Sides.places` gives them.
    """

    instances: Experts
    said: np.ndarray
    names: tuple[Any, ...]
    places: np.ndarray
    asked: np.ndarray  # bool (trials, voters)
    soft: np.ndarray | None = None  # scores only: the answer of soft voting, as places in ``names``
    logs: np.ndarray | None = None  # (trials, raters, classes) logarithms of scores, as shares

    def __len__(self) -> int:
        return len(self.said)

    def __getitem__(self, trials: slice | np.ndarray) -> VoteBatch:
        soft, logs = (None if block is None else block[trials] for block in (self.soft, self.logs))
        asked = self.asked[trials]
        return VoteBatch(self.instances[trials], self.said[trials], self.names, self.places[trials], asked, soft, logs)


def weights_given(sample_weight: Any, count: int) -> np.ndarray | None:
    """Return one weight >= 0 for each of ``count`` trials, or None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=object)
    if weights.shape != (count,):
        raise ValueError(f"sample_weight must be one number per trial: got shape {weights.shape} for {count} trials")
    for t, weight in enumerate(weights.tolist()):
        at_least(f"sample_weight of trial {t}", weight, 0.0, "0, which leaves it out")
    return weights.astype(float)


def one_weight(sample_weight: Any) -> np.ndarray | None:
    """Return the positive weight of the only trial, or None for anything else."""
    if not isinstance(sample_weight, SEVERAL) or len(sample_weight) != 1:
        return None
    weight = sample_weight[0].item() if isinstance(sample_weight, np.ndarray) else sample_weight[0]
    plain = type(weight) in (float, int) and 0.0 < weight < np.inf
    return np.array([weight], float) if plain else None


def one_mark(wrong: Any) -> bool | None:
    """Return whether the only label is wrong, or None for anything but one truth value."""
    if not isinstance(wrong, SEVERAL) or len(wrong) != 1 or not isinstance(wrong[0], (bool, np.bool_)):
        return None
    return bool(wrong[0])


def labels_given(y: Any, count: int) -> np.ndarray:
    """Return one label for each of ``count`` trials, None where there is none yet."""
    labels = label_array([None] * count if y is None else y)
    if labels.shape != (count,):
        raise ValueError(f"y must be one label per trial: got shape {labels.shape} for {count} trials of votes")
    return labels


def _respelled(labels: np.ndarray, known: Iterable[Any]) -> np.ndarray:
    """Return labels in the spelling of the classes that votes have named."""
    found = Names(known).respell(distinct_labels(labels, gaps=True)[0])
    return np.array([found.get(label, label) for label in labels.tolist()], dtype=object) if found else labels


def joined(state: FusionState | None, ballots: Ballots) -> tuple[tuple[str, ...], bool]:
    """Return all voters, those of ``ballots`` included, and whether they go by name."""
    if state is None:
        return ballots.voters(None, False), ballots.names is not None
    if ballots.scored != (state.normalizer is not None):
        fitted, given = ("scores", "votes") if state.normalizer is not None else ("votes", "scores")
        raise ValueError(f"this VoteFusion was fitted to {fitted}, got {given}")
    # Voters without names have numbers, and votes may use these as names.
    by_name = state.named or (ballots.names is not None and set(ballots.names).issubset(state.voters))
    return ballots.voters(state.voters, by_name), by_name


def make_batch(
    options: Options,
    ballots: Ballots,
    voters: tuple[str, ...],
    by_name: bool,
    fixed: tuple[Any, ...] | None,
    normalizer: Normalizer | None,
    sides: Sides,
) -> VoteBatch:
    """Return the trials with a column for each voter and numbers for classes."""
    table, asked = ballots.aligned(voters, by_name)
    places = sides.places(read_sides(sides.names, ballots.sides), len(table))
    if normalizer is None:
        codes, names = in_classes(table, ballots.named, fixed, voters)
        instances = experts_of(codes, names, voters, fixed is not None, options.thresholds)
        return VoteBatch(instances, codes, names, places, asked)
    if fixed is None or table.shape[2] != len(fixed):
        raise ValueError(
            f"scores rate {table.shape[2]} classes, but there are {len(fixed or ())}: {list(fixed or ())!r}"
        )
    instances = experts(scores=normalizer.apply(table), classes=fixed, thresholds=options.thresholds)
    said = np.where(np.ptp(table, axis=2) > 0.0, table.argmax(axis=2), -1)
    shared = soft_votes(table).argmax(axis=1)
    return VoteBatch(instances, said, fixed, places, asked, shared, log_shares(table))


def later(options: Options, state: FusionState, votes: Any) -> VoteBatch:
    """Return trials of voters that are all known; votes for unknown classes are abstentions to the model."""
    ballots = read_ballots(votes, side_columns(options.by))
    ballots = ballots.matched(state.model.classes, options.abstain, learning=False)
    voters, by_name = joined(state, ballots)
    if len(voters) > len(state.voters):
        if by_name:
            raise ValueError(
                f"votes: {voters[len(state.voters)]!r} is not a known voter; partial_fit with it, or drop it"
            )
        raise ValueError(f"votes have {len(voters)} columns, but {len(state.voters)} voters are known; drop the others")
    return make_batch(options, ballots, voters, by_name, state.fixed, state.normalizer, state.sides)


def side_columns(by: Any) -> tuple[str | int, ...]:
    """Return the side columns as given: one or several names or places."""
    columns = () if by is None else (by,) if isinstance(by, (str, int, np.integer)) else tuple(by)
    for column in columns:
        if isinstance(column, (bool, np.bool_)) or not isinstance(column, (str, int, np.integer)):
            raise TypeError(f"by must be a column's name or place, or a list of these, got {column!r}")
    if len(set(columns)) < len(columns):
        raise ValueError(f"by names a column twice: {', '.join(map(repr, columns))}; drop one")
    return columns


def one_row(instance: Any, state: FusionState, by: Any) -> Ballots:
    """Return one instance as a table of one row."""
    if hasattr(instance, "columns"):
        rows = instance
    elif hasattr(instance, "to_dict") and hasattr(instance, "index"):  # a row of a DataFrame
        rows = {name: [vote] for name, vote in instance.to_dict().items()} if state.named else [instance.tolist()]
    elif isinstance(instance, Mapping):
        rows = {name: [vote] for name, vote in instance.items()}
        several = next((n for n, v in instance.items() if state.normalizer is None and isinstance(v, SEVERAL)), None)
        if several is not None:
            raise TypeError(f"this takes one trial; {several!r} has {instance[several]!r} instead of one vote")
    else:
        wanted = 1 if state.normalizer is None else 2
        rows = instance if isinstance(instance, np.ndarray) and instance.ndim > wanted else [instance]
        rows = np.asarray(rows) if isinstance(instance, np.ndarray) else rows
    ballots = read_ballots(rows, side_columns(by))
    if len(ballots) != 1:
        raise ValueError(f"this takes one trial, got {len(ballots)}; give it a row")
    return ballots


def in_order(names: Iterable[Any]) -> list[Any]:
    """Return the distinct classes, sorted if they can be; the first of equal ones."""
    distinct = list(dict.fromkeys(names))
    try:
        return sorted(distinct)
    except TypeError:
        return distinct


class RowReader:
    """Reads single rows of votes of a fusion whose voters, classes and side values stay as they are.

    Anything but one plain row of known voters, classes and values is left to `read_ballots`.
    """

    def __init__(self, state: FusionState) -> None:
        model, sides = state.model, state.sides
        self.classes, self.layout, self.values = model.classes, model.layout, sides.values
        self.names = Names(model.classes)
        self.named, self.voters = state.named, Names(state.voters)
        sorted_classes = state.classes
        self.order = np.array([*map(sorted_classes.index, model.classes), -1], np.int32)  # the last is an abstention
        self.sides = sides
        self.side_values = [
            {None: -1} | {value: place for place, (of, value) in enumerate(sides.values) if of == column}
            for column in range(len(sides.names))
        ]
        signs = sides.signs if sides.names else np.ones(model.layout.voters)
        self.empty = no_instances(1)._replace(signs=signs, constant=model.layout.constant)

    def fits(self, state: FusionState) -> bool:
        """Return whether voters, classes and side values are still the same."""
        model = state.model
        return self.classes is model.classes and self.layout is model.layout and self.values is state.sides.values

    def label(self, y: Any) -> int | None:
        """Return the number of the only label, -1 if there is none yet, or None for anything else."""
        if y is None:
            return -1
        if not isinstance(y, (list, tuple, np.ndarray)) or len(y) != 1:
            return None
        try:
            return self.names.code(y[0].item() if isinstance(y[0], np.generic) else y[0])
        except (KeyError, TypeError):
            return None

    def read(self, votes: Any) -> Row | None:
        """Return one plain row, or None for anything else."""
        try:
            if isinstance(votes, dict):
                return self._read_named(votes) if self.named else None
            if self.named or self.sides.names or not isinstance(votes, (list, np.ndarray)) or len(votes) != 1:
                return None
            row = votes[0].tolist() if isinstance(votes[0], np.ndarray) else votes[0]
            if not isinstance(row, (list, tuple)) or len(row) != len(self.voters):
                return None
            codes = self.names.encode(row)[None]
            return Row(codes, np.ones(codes.shape, bool), None, self.empty._replace(votes=codes))
        except (KeyError, TypeError):  # a new voter, class or value; nan; or something that is not hashable
            return None

    def _read_named(self, votes: dict[Any, Any]) -> Row | None:
        """Read one vote of each voter that was asked."""
        for column in votes.values():
            if not isinstance(column, SEVERAL) or len(column) != 1:
                return None
        places = None
        if self.sides.names:
            values = [votes[name][0] for name in self.sides.names]
            places = np.array([[of[value] for of, value in zip(self.side_values, values, strict=True)]], np.int64)
            votes = {name: column for name, column in votes.items() if name not in self.sides.names}
        codes = np.full((1, len(self.voters)), -1, np.int32)
        asked = np.zeros(codes.shape, bool)
        if votes:
            columns = self.voters.encode(votes)
            codes[0, columns] = self.names.encode([column[0] for column in votes.values()])
            asked[0, columns] = True
        laid_out = codes if places is None else self.sides.laid_out_votes(codes, places)
        return Row(codes, asked, places, self.empty._replace(votes=laid_out))


@dataclass(frozen=True)
class Row:
    """One trial of known voters: class numbers, which voters were asked, side values, and the trial for the model."""

    codes: np.ndarray
    asked: np.ndarray
    places: np.ndarray | None
    instances: Instances


# -- what has been learned ----------------------------------------------------------------------------------------


@dataclass
class FusionState:
    """Learned state of a `VoteFusion`."""

    model: Model
    fixed: tuple[Any, ...] | None  # all classes, if no more may join
    named: bool  # whether voters came with names
    voters: tuple[str, ...]
    normalizer: Normalizer | None
    sides: Sides = field(default_factory=Sides)
    tally: Tally = field(default_factory=Tally)
    asking: Asking = field(default_factory=Asking)
    logit: LogitRival = field(default_factory=LogitRival)
    ids: IdWatch = field(default_factory=IdWatch)
    _reader: RowReader | None = field(default=None, init=False)
    _widened: Engine | None = field(default=None, init=False)  # until something is learned

    # -- files ----------------------------------------------------------------------------------------------------

    def parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything as plain data and arrays."""
        return self._described(*self.model.state())

    def _described(
        self, header: dict[str, Any], state: dict[str, np.ndarray]
    ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Add what is not in the state of the model."""
        described, asking = self.asking.state()
        blocks = {
            "model": state,
            "tally": self.tally.arrays,
            **asking,
            "logit": self.logit.kept.arrays,
            "sides": {"columns": self.sides.columns, "counts": self.sides.counts},
        }
        description = {
            "model": header,
            "fixed": self.fixed,
            "named": self.named,
            "voters": list(self.voters),
            "kinds": None if self.normalizer is None else list(self.normalizer.kinds),
            **self.sides.description,
            **described,
        }
        return description, {f"{block}.{name}": a for block, arrays in blocks.items() for name, a in arrays.items()}

    @classmethod
    def restored(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> FusionState:
        """Return the state that `parts` described."""
        blocks, kinds = apart(arrays), description["kinds"]
        return cls(
            Model.from_state(description["model"], blocks["model"]),
            None if description["fixed"] is None else tuple(description["fixed"]),
            description["named"],
            tuple(description["voters"]),
            None if kinds is None else Normalizer(kinds),
            Sides.restored(description, blocks["sides"]),
            Tally.restored(blocks["tally"]),
            Asking.restored(description, blocks),
            LogitRival(KeptTrials.restored(blocks["logit"])),
        )

    def __getstate__(self) -> dict[str, Any]:
        description, arrays = self._described(*self.model.packed())
        return {"description": description, "arrays": {name: array.copy() for name, array in arrays.items()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = FusionState.restored(state["description"], state["arrays"]).__dict__

    # -- voters and their weights ---------------------------------------------------------------------------------

    @property
    def classes(self) -> list[Any]:
        """Classes as users see them: as given, or sorted if they can be; the model has them as they appeared."""
        return list(self.model.classes) if self.fixed is not None else in_order(self.model.classes)

    @property
    def copies(self) -> int:
        """Number of columns of a voter."""
        return 1 if self.normalizer is None else len(self.normalizer.kinds)

    @property
    def recent(self) -> Recent:
        """The latest trials."""
        return self.asking.recent

    @property
    def few(self) -> Few | None:
        """The voters that are asked one by one where some accuracy may be given up."""
        return self.asking.current(self)

    def unit(self, model: Model | None = None) -> tuple[float, float]:
        """Return the total weight of the voters, and the ratio of the model's scores to w.x.

        The engine gives scores up to one positive factor, which shows when the voter of the largest weight votes alone.
        For a learner that only resembles w.x, such as a mixture, the ratio is 1. ``model`` may be one of the `Few`.
        """
        own = self.model if model is None else model
        weights, k = own.weights.arrays, len(own.classes)
        columns = np.concatenate([weights.voters, weights.raters])
        largest = int(np.abs(columns).argmax())
        total = float(np.abs(self._of_voters(columns) if own is self.model else columns).sum())
        if total == 0.0 or k < 2:
            return 1.0, 1.0
        if not own.engine.top.linear:
            return total, 1.0
        ratings = np.zeros((2, len(columns), k))
        ratings[1, largest, 0] = 1.0
        layout = own.layout
        blocks: dict[str, Any] = {"scores": ratings}
        if layout.voters:
            blocks = {"votes": np.where(ratings[:, :, 0] > 0.0, 0, -1), "abstain": -1}
        probe = experts(**blocks, classes=range(k), thresholds=bool(layout.constant))
        silent, alone = own.scores(replace(probe, names=tuple(own.classes)))
        return total, float(((alone - silent)[0] - (alone - silent)[1]) / columns[largest])

    def shares(self) -> np.ndarray:
        """Return (voters, copies) weights whose magnitudes add up to 1, or are all 0."""
        weights = self.model.weights.arrays
        table = self._of_voters(np.concatenate([weights.voters, weights.raters]))
        total = np.abs(table).sum()
        return table / total if total > 0.0 else table

    def shares_by(self) -> dict[str, np.ndarray]:
        """Return the voters' weights for each value of the side columns, in the unit of `shares`."""
        columns = self.model.weights.arrays.voters
        total = np.abs(self._of_voters(columns)).sum()
        found = zip(self.sides.labels, self.sides.weights_by(columns, self.tally.trials), strict=True)
        return {label: weights / total if total > 0.0 else weights for label, weights in found}

    def _of_voters(self, columns: np.ndarray) -> np.ndarray:
        """Return the weights of the columns as (voters, copies); with side columns the mean weight of each voter."""
        if self.sides.names:
            return self.sides.mean_weights(columns, self.tally.trials)[:, None]
        return columns.reshape(len(self.voters), self.copies)

    def voter_of(self) -> np.ndarray:
        """Return the voter of each column."""
        if self.sides.names:
            return self.sides.columns[:, 0]
        return np.repeat(np.arange(len(self.voters)), self.copies)

    def worth(self) -> np.ndarray:
        """Return each voter's weight, or its recent accuracy if the learner is not a single weight vector."""
        try:
            return self.shares().sum(axis=1)
        except ValueError:
            return self.recent.accuracy()

    # -- learning -------------------------------------------------------------------------------------------------

    def read_row(self, votes: Any) -> Row | None:
        """Return one plain row of voters and classes that may all be predicted, or None for anything else."""
        layout = self.model.layout
        if self.normalizer is not None or layout.voters != (len(self.sides.columns) or len(self.voters)):
            return None
        if self._reader is None or not self._reader.fits(self):
            self._reader = RowReader(self)
        row, known = self._reader.read(votes), int(self.model.engine.state.shape[KNOWN])
        if row is None or (known < len(self.model.classes) and row.codes.max(initial=-1) >= known):
            return None
        return row

    def read_label(self, y: Any) -> int | None:
        """Return the number of the only label, -1 if there is none yet, or None for anything else.

        The class must be one that may be predicted. Call `read_row` first.
        """
        place = None if self._reader is None else self._reader.label(y)
        return None if place is None or place >= int(self.model.engine.state.shape[KNOWN]) else place

    def learn_row(self, votes: Any, y: Any, sample_weight: Any = None, wrong: bool = False) -> bool:
        """Learn one row of known voters, classes and label; return False, and learn nothing, if it is anything else.

        The result is that of `advance`, in much less time.
        """
        weights = None if sample_weight is None else one_weight(sample_weight)
        row = None if weights is None and sample_weight is not None else self.read_row(votes)
        place = None if row is None else self.read_label(y)
        if row is None or place is None or self._reader is None or (wrong and place < 0):
            return False
        self._widened = None
        labels = np.array([-2 - place if wrong else place], np.int32)
        few = self.asking.for_few(self, row.asked[0]) if weights is None and place >= 0 else None
        if few is not None:
            right = self._taught_few(few, row.codes[0], row.asked[0], labels)
        else:
            right = self.model.play(row.instances, labels, weights=weights).predictions == labels
            if row.places is not None:
                self.sides = self.sides.counted(row.places)
            if labels[0] >= 0:
                self.asking.learn_all(row.codes, row.asked, labels)
        if labels[0] < 0:
            self.asking.changed()
            return True
        order = self._reader.order
        self.tally.add(right, order[row.codes], order[labels], len(order) - 1)
        self.logit.add(row.codes, labels, right)
        return True

    def _taught_few(self, few: Few, codes: np.ndarray, asked: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Learn one trial with the few; return whether they were right. A label is coded as in `Model.play`."""
        if labels[0] < -1:
            step = int(few.steps(asked[None])[0])
            drawn = few.models[step].other_than(-2 - int(labels[0]), few.instance(codes, step), self.tally.trials)
            labels[0] = -1 if drawn is None else drawn
            if drawn is None:
                return np.zeros(1, bool)
        place = int(labels[0])
        return np.array([self.asking.learn_few(few, codes, asked, place) == place])

    def join(self, held: Sequence[Sequence[Any]]) -> None:
        """Add columns for new voters, and for the values of the side columns at the trials to come."""
        if self.sides.names:
            self.sides = self.sides.joined(held, len(self.voters))

    def placed(self, batch: VoteBatch, held: Sequence[Sequence[Any]]) -> VoteBatch:
        """Return the batch with the values of the side columns as they are numbered now."""
        return replace(batch, places=self.sides.places(held, len(batch))) if self.sides.names else batch

    def advance(
        self, batch: VoteBatch, labels: np.ndarray, weights: np.ndarray | None = None, wrong: np.ndarray | None = None
    ) -> None:
        """Learn these trials; with ``weights`` the model of all voters learns every trial.

        Where ``wrong``, the label is not the one given.
        """
        self._widened = None
        if self.asking.choice is None or weights is not None:
            self._advance_all(batch, labels, weights, wrong)
            return
        # Trials in which all voters were asked are learned together; each of the others may be for the few.
        complete = np.asarray(batch.asked.all(axis=1))
        edges = [t for t in range(1, len(batch)) if not (complete[t] and complete[t - 1])]
        for begin, end in pairwise([0, *edges, len(batch)]):
            part, label = batch[begin:end], labels[begin:end]
            mask = None if wrong is None else wrong[begin:end]
            few = None if complete[begin] else self._few_for(part, label[0])
            if few is None:
                self._advance_all(part, label, None, mask)
                continue
            place = self.model.classes.index(label[0])
            learned = np.array([-2 - place if mask is not None and mask[0] else place], np.int32)
            right = self._taught_few(few, self._codes(part)[0], part.asked[0], learned)
            if learned[0] >= 0:
                self.count(self.tally, part, [self.model.classes[learned[0]]], right, few=True)

    def _few_for(self, batch: VoteBatch, label: Any) -> Few | None:
        """Return the few if this one trial is for them to learn."""
        known = set(self.model.known)
        votes = [batch.names[vote] for vote in batch.said[0].tolist() if vote >= 0]
        return self.asking.for_few(self, batch.asked[0]) if label in known and known.issuperset(votes) else None

    def _advance_all(
        self, batch: VoteBatch, labels: np.ndarray, weights: np.ndarray | None, wrong: np.ndarray | None
    ) -> None:
        missed, learned = np.zeros(len(batch), bool), np.full(len(batch), -1, np.int32)
        for begin in range(0, len(batch), self.sides.stretch()):
            part = slice(begin, begin + self.sides.stretch())
            weights_here, mask = (None if block is None else block[part] for block in (weights, wrong))
            trace = self.model.run(
                self.laid_out(batch[part]), labels[part], grow=True, weights=weights_here, wrong=mask
            )
            missed[part], learned[part] = trace.wrong, trace.learned if trace.learned is not None else -1
        self.sides = self.sides.counted(batch.places)
        labelled = learned >= 0
        names = [self.model.classes[place] for place in learned[labelled].tolist()]
        self.count(self.tally, batch[labelled], names, ~missed[labelled])

    def count(
        self,
        tally: Tally,
        batch: VoteBatch,
        names: list[Any],
        right: np.ndarray,
        leaders: tuple[int, int] | None = None,
        few: bool = False,
    ) -> None:
        """Count right answers, given the labels; the trials of a ``few`` are already kept."""
        # Plurality breaks ties by the order of the classes, which must not depend on when each of them appeared.
        everything = [*self.model.classes, *batch.names, *names]
        classes = Names(everything if self.fixed is not None else in_order(everything))
        place = np.append(classes.encode(batch.names), np.int32(-1))
        votes, numbers = place[batch.said], classes.encode(names)
        soft = None if batch.soft is None else place[batch.soft] == numbers
        tally.add(right, votes, numbers, len(classes), leaders, soft)
        if tally is self.tally:  # by the model's numbers, which stay the same when classes join
            votes, numbers = self._codes(batch), Names(self.model.classes).encode(names)
            if not few:
                self.asking.learn_all(votes, batch.asked, numbers)
            self.logit.add(votes, numbers, right, batch.logs)

    def _codes(self, batch: VoteBatch) -> np.ndarray:
        """Return votes by the model's numbers; -1 for unknown classes."""
        return np.append(Names(self.model.classes).encode_known(batch.names), np.int32(-1))[batch.said]

    # -- predicting -----------------------------------------------------------------------------------------------

    def laid_out(self, batch: VoteBatch) -> Experts:
        """Return the trials for the model: voters, and their copies for each value of the side columns."""
        return self.sides.laid_out(batch.instances, batch.places)

    def known(self, instances: Experts, more: Collection[Any] = ()) -> Experts:
        """Return the instances without unknown voters; votes for classes neither known nor ``more`` abstain."""
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

    def _of_few(self, batch: VoteBatch) -> np.ndarray:
        """Return which trials the models of a few answer: few votes, all for known classes."""
        if self.asking.choice is None or batch.asked.all() or self.few is None:
            return np.zeros(len(batch), bool)
        known = set(self.model.known)
        strange = np.array([name not in known for name in batch.names] + [False])
        return self.few.asked(batch.asked) & ~strange[batch.said].any(axis=1)

    def part_of_row(self, row: Row) -> Part:
        """Return the model that scores one row, and the row as it takes it."""
        few = self.few if self.asking.choice is not None and not row.asked.all() else None
        if few is None or not few.asked(row.asked)[0]:
            return ONE_TRIAL, self.model, row.instances
        step = int(few.steps(row.asked)[0])
        return ONE_TRIAL, few.models[step], few.instance(row.codes[0], step)

    def parts_of(self, batch: VoteBatch) -> Iterator[Part]:
        """Yield the trials as the models take them, as many at a time as memory allows.

        Where votes name classes that are not yet known, a copy of the model that knows them takes its place.
        """
        known, size = set(self.model.known), self.sides.stretch()
        strange = np.array([name not in known for name in batch.names] + [False])
        guests = strange[batch.said].any(axis=1) if self.model.engine.settings.by_votes else np.zeros(len(batch), bool)
        of_few = self._of_few(batch)
        few = self.few if of_few.any() else None
        if few is not None:
            trials, codes = np.flatnonzero(of_few), self._codes(batch[of_few])
            steps = few.steps(batch.asked[of_few])
            for step in np.unique(steps).tolist():
                model = few.models[step]
                yield trials[steps == step], model, model.fitted(few.instances(codes[steps == step], step))
        usual = np.flatnonzero(~guests & ~of_few)
        for begin in range(0, len(usual), size):
            trials = usual[begin : begin + size]
            yield trials, self.model, self.model.fitted(self.known(self.laid_out(batch[trials])))
        alike: dict[tuple[int, ...], list[int]] = {}
        for t in np.flatnonzero(guests).tolist():
            fresh = dict.fromkeys(vote for vote in batch.said[t].tolist() if strange[vote])
            alike.setdefault(tuple(fresh), []).append(t)
        for votes, places in alike.items():
            names, trials = [batch.names[vote] for vote in votes], np.array(places)
            guest = self.model.visited(self.model.layout, names, names)
            yield trials, guest, guest.fitted(self.known(self.laid_out(batch[trials]), names))

    def judge_of(self, batch: VoteBatch) -> tuple[Model, Experts, np.ndarray]:
        """Return the model that answers one trial, the trial as it takes it, and the voter of each of its columns."""
        few = self.few if self._of_few(batch)[0] else None
        if few is not None:
            votes, step = self._codes(batch), int(few.steps(batch.asked)[0])
            return few.models[step], few.instances(votes, step), np.array(few.columns(step))
        return self.model, self.known(self.laid_out(batch)), self.voter_of()

    def predict(self, parts: Iterable[Part], size: int) -> np.ndarray:
        """Return the class of each trial."""
        found = np.empty(size, dtype=object)
        for trials, model, instances in parts:
            found[trials] = named(model.engine.judge(instances, len(trials))[0], model.classes).tolist()
        return as_array(found.tolist())

    def probabilities(self, parts: Iterable[Part], size: int) -> np.ndarray:
        """Return the probability of each class; what is missing from 1 is that of unknown classes."""
        return self._table(parts, size, lambda model, scores: model.probabilities(scores))

    def scores(self, parts: Iterable[Part], size: int) -> np.ndarray:
        """Return scores in units of the weight of the voters; -inf for classes that are not yet known."""
        return self._table(parts, size, self._in_units)

    def _in_units(self, model: Model, scores: np.ndarray) -> np.ndarray:
        of_few = model is not self.model and self.few is not None and any(model is own for own in self.few.models)
        try:
            total, factor = self.unit(model if of_few else None)
        except ValueError:  # not a single weight vector: its scores have their own unit
            total, factor = 1.0, 1.0
        return scores / (total * factor)

    def _table(self, parts: Iterable[Part], size: int, change: Callable[[Model, np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the scores of each trial for each of `classes`, changed by a function."""
        classes = self.classes
        table = np.zeros((size, len(classes)))
        for trials, model, instances in parts:
            columns = Names(model.classes).encode(classes)
            table[trials] = change(model, model.judge(instances, len(trials))[1])[:, columns]
        return table

    def sets(self, parts: Iterable[Part], size: int, coverage: float) -> list[tuple[Any, ...]]:
        """Return the prediction set of each trial."""
        found: list[tuple[Any, ...]] = [()] * size
        for trials, model, instances in parts:
            scores = model.judge(instances, len(trials))[1]
            for t, names in zip(trials, chosen(scores, model.sets(scores, coverage), model.classes), strict=True):
                found[t] = names
        return found

    def question(self, batch: VoteBatch, asked: np.ndarray) -> Question:
        """Return one instance as `predict` sees it, and where further votes would be stored."""
        ((_, model, instances),) = self.parts_of(batch)
        voters = np.arange(len(asked))[:, None]
        columns = voters == self.sides.columns[:, 0] if self.sides.names else voters == voters.T
        if self.sides.names:
            columns &= self.sides.holds(batch.places)
        widen = partial(self._engine_with_class, model) if model.engine.settings.by_votes else None
        return Question(model.engine, instances, asked, columns[:, : model.layout.voters], widen)

    def _engine_with_class(self, model: Model) -> Engine:
        """Return an engine that knows one more class; kept until something is learned."""
        if model is not self.model:
            return add_class(model, model.layout)
        if self._widened is None:
            self._widened = add_class(model, model.layout)
        return self._widened

    # -- reports --------------------------------------------------------------------------------------------------

    def compared(self, held_out: tuple[VoteBatch, np.ndarray] | None = None) -> Comparison:
        """Compare the fusion with the baselines, online or on held-out trials and their labels."""
        k = len(self.model.classes)
        if held_out is None:
            comparison, logit = self.tally.compare(self.voters), self.logit.online(k)
        else:
            batch, labels = held_out
            right, tally = self.predict(self.parts_of(batch), len(batch)) == labels, Tally(len(self.voters))
            self.count(tally, batch, labels.tolist(), right, self.tally.leaders)
            comparison = tally.compare(self.voters, self.tally.leaders)
            numbers = Names(self.model.classes).encode_known(labels.tolist())
            logit = self.logit.held_out(self._codes(batch), batch.logs, numbers, right, k)
        return comparison if logit is None else replace(comparison, rivals={**comparison.rivals, "logit": logit})

    def reliability(self, batch: VoteBatch, labels: np.ndarray) -> Reliability:
        """Return how reliable the probabilities of these trials are."""
        table = self.probabilities(self.parts_of(batch), len(batch))
        return reliability(table, Names(self.classes).encode_known(labels.tolist()))

    def side_values(self, places: np.ndarray) -> dict[str, Any]:
        """Return the values of the side columns at one trial; None for one that is missing or unknown."""
        pairs = zip(self.sides.names, places.tolist(), strict=True)
        return {name: self.sides.values[place][1] if place >= 0 else None for name, place in pairs}

    def voter_lines(self, weights: Mapping[str, float]) -> tuple[Voter, ...]:
        """Return a line for each voter, the largest weight first, or the most accurate if there are no weights."""
        trials = max(1, self.tally.trials)
        right = dict(zip(self.voters, (self.tally.right[FIRST_VOTER:] / trials).tolist(), strict=True))
        voted = dict(zip(self.voters, (self.tally.answered[FIRST_VOTER:] / trials).tolist(), strict=True))
        order = list(weights) or sorted(self.voters, key=lambda name: -right[name])
        return tuple(Voter(name, weights.get(name), right[name], voted[name]) for name in order)

    def side_lines(self, weighted: bool) -> tuple[Side, ...]:
        """Return a line for each value of the side columns, the most frequent first."""
        by = self.shares_by() if weighted and self.sides.names else {}
        lines = []
        for label, count in zip(self.sides.labels, self.sides.counts.tolist(), strict=True):
            weights = dict(zip(self.voters, by[label].tolist(), strict=True)) if weighted else {}
            lines.append(Side(label, count, dict(sorted(weights.items(), key=lambda item: -abs(item[1])))))
        return tuple(sorted(lines, key=lambda line: -line.trials))


# -- files --------------------------------------------------------------------------------------------------------


def fusion_state(
    parameters: Mapping[str, Any], state: FusionState | None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the parameters of a fusion and what it has learned, if anything, as plain data and arrays."""
    description, arrays = (None, {}) if state is None else state.parts()
    parameters = {**parameters, "learner": str(as_learner(parameters["learner"]))}
    normalize, by, abstain = parameters["normalize"], parameters["by"], parameters["abstain"]
    if not isinstance(normalize, str):
        parameters["normalize"] = list(normalize)
    if not isinstance(by, (str, int, type(None))):
        parameters["by"] = [column if isinstance(column, str) else int(column) for column in side_columns(by)]
    several = isinstance(abstain, (set, frozenset))
    parameters = _with_labels(parameters, files.plain)
    parameters["abstain"] = sorted(map(files.plain, abstain), key=repr) if several else files.plain(abstain)
    learned = None if description is None else _with_labels(description, files.plain)
    return {"parameters": parameters, "state": learned}, arrays


def fusion_from(
    description: Mapping[str, Any], arrays: Mapping[str, np.ndarray], make: Callable[..., F]
) -> tuple[F, FusionState | None]:
    """Return a fusion made with the parameters that `fusion_state` gave, and what it had learned."""
    parameters = _with_labels(description["parameters"], files.named)
    abstain = parameters["abstain"]
    several = isinstance(abstain, list)
    parameters["abstain"] = {files.named(label) for label in abstain} if several else files.named(abstain)
    learned = description["state"]
    fusion = make(**parameters)
    return fusion, None if learned is None else FusionState.restored(_with_labels(learned, files.named), arrays)


def _with_labels(description: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Convert every list of labels to the form stored in a file, or back."""
    lists = {name: description.get(name) for name in ("classes", "fixed", "side_values")}
    changed = {name: [change(label) for label in labels] for name, labels in lists.items() if labels is not None}
    return {**description, **changed}


# -- the fusion ---------------------------------------------------------------------------------------------------


class VoteFusion:
    """Learn on-line how far to trust each of several voters, and fuse them.

    Each trial is predicted before its label is seen, then learned from; the order of the rows is the order of the
    trials. So `report` can say what the fusion was worth on the very trials that it learned from.

    Parameters
    ----------
    learner
        Any learner of the library, described or as text. The default has nothing to tune (see `linmax.vr_combine`).
    classes
        All classes, in order. Without it they are those met in votes and labels, and more may join at any
        `partial_fit`.
    discover
        Without ``classes``: from when on a class may be predicted. "votes": from the first vote for it on, or after its
        first label; also by `predict`, where a class was never met before (it has no column in `predict_proba`, whose
        rows then add up to less than 1). "labels": after its first label only (Mesterharm 2001, section 6.2).
    normalize
        For scores only: under which normalizations the learner gets each rater (see `linmax.normalization`).
    abstain
        A label that means abstention, besides None, nan, pandas' NA and empty text; or a set of them.
    by
        Side columns among the votes, such as a subject or a source: a name, or a place where votes have no names, or a
        list of these. They are not voters: for each of their values every voter gets a copy, which votes where the
        value holds, so that a voter may be trusted on one subject and not on another (see `linmax.experts`). Where a
        value is missing or was never met, the voters themselves decide. For votes only.
    thresholds
        Let the learner prefer a class regardless of votes.
    tie, update_on_tie
        As in `linmax.run`.

    Notes
    -----
    Votes are (trials, voters) labels: an array, lists, a dict of columns, or a DataFrame of pandas or polars, whose
    columns name the voters. Scores are (trials, raters, classes) numbers, or a dict from a rater's name to its (trials,
    classes) array; the classes are then fixed by the first call: those given, or else the labels, sorted, when there
    are as many, or else 0 to k - 1. A voter that is known by name may be absent later, which means that it was not
    asked, as does a vote ``...`` among others; one with None was asked and abstained. Neither moves its weight, but
    only the second counts against asking it again (see `ask`). New ones may join at any `partial_fit`; without names,
    they are further columns at the right.

    Probabilities are a softmax of the scores, mixed with a guess, fitted to the last 1,000 trials as they were scored
    before their labels were seen (see `linmax.models.calibration`).

    References
    ----------
    Mesterharm and Hsu, Combinatorial fusion with on-line learning algorithms.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.majority_problem(n=20, r=10, k=5, noise=0.05, trials=1500, seed=1)
    >>> fusion = linmax.VoteFusion("AR-winnow(1.1)").fit(data.votes[:1000], data.labels[:1000])
    >>> report = fusion.report(data.votes[1000:], data.labels[1000:])
    >>> report.test.accuracy["fusion"] > 0.9 > report.test.accuracy["plurality"]
    True
    >>> sorted(int(name) for name in list(fusion.weights())[:10])  # the ten that matter
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    _estimator_type = "classifier"

    def __init__(
        self,
        learner: Any = "auto",
        *,
        classes: Sequence[Any] | None = None,
        discover: str = "votes",
        normalize: str | Sequence[str] = "auto",
        abstain: Any = None,
        by: Any = None,
        thresholds: bool = True,
        tie: str = "smallest",
        update_on_tie: bool = True,
    ) -> None:
        self.learner = learner
        self.classes = classes
        self.discover = discover
        self.normalize = normalize
        self.abstain = abstain
        self.by = by
        self.thresholds = thresholds
        self.tie = tie
        self.update_on_tie = update_on_tie

    # -- an estimator of scikit-learn, which takes a second to import ----------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name."""
        known = list(self.get_params())
        for name, value in parameters.items():
            setattr(self, one_of("parameter", name, known), value)
        return self

    def score(self, votes: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on held-out trials."""
        return float(np.average(self.predict(votes) == np.asarray(y), weights=sample_weight))

    def __repr__(self) -> str:
        first = {name: parameter.default for name, parameter in signature(type(self)).parameters.items()}
        changed = [f"{name}={value!r}" for name, value in self.get_params().items() if value is not first[name]]
        return f"VoteFusion({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_state", None) is not None

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags("classifier", TargetTags(required=False), classifier_tags=ClassifierTags())

    # -- learning -------------------------------------------------------------------------------------------------

    def fit(self, votes: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit from scratch, in row order: the same as `partial_fit` on a new fusion."""
        self._state = self._learn(None, votes, y, sample_weight)
        return self

    def partial_fit(self, votes: Any, y: Any = None, sample_weight: Any = None, *, wrong: Any = None) -> Self:
        """Learn further trials; voters and classes may join. An error leaves the model as it was.

        A class that was not given in ``classes`` is known from its first vote on, or after its first label, so that it
        does not matter how trials are cut into calls.

        Parameters
        ----------
        votes, y
            The trials and their labels. A label that is None, nan or empty means that there is none yet, and no ``y``
            that there are none at all: from such trials the default learner learns how far voters agree. Reports do not
            count them.
        sample_weight
            How much each trial counts, 1 by default: one of weight w is predicted and counted once, and learned w
            times, the rest of a fraction by a draw (see `linmax.models.showings`); 0 leaves it out.
        wrong
            A mask: where it is True, all that is known is that the label is not the class in ``y``. Another class is
            drawn there, by the present probabilities, and learned; figures of `report` count it as the label.
        """
        state: FusionState | None = getattr(self, "_state", None)
        mark = False if wrong is None else one_mark(wrong)
        plain = self.abstain is None and mark is not None
        if not plain or state is None or not state.learn_row(votes, y, sample_weight, bool(mark)):
            self._state = self._learn(state, votes, y, sample_weight, wrong)
        return self

    def _learn(
        self, state: FusionState | None, votes: Any, y: Any, sample_weight: Any, wrong: Any = None
    ) -> FusionState:
        ballots = read_ballots(votes, side_columns(self.by))
        labels, weights = labels_given(y, len(ballots)), weights_given(sample_weight, len(ballots))
        denied = None if wrong is None else _denied(y, labels, wrong)
        if weights is not None and not weights.all():
            positive = weights > 0.0
            if not positive.any():
                if state is None:
                    raise ValueError("sample_weight: all weights are 0; leave it out, or give some trial more")
                return state
            ballots, labels, weights = ballots[positive], labels[positive], weights[positive]
            denied = None if denied is None else denied[positive]
        labels = _respelled(labels, () if state is None else state.model.classes)
        distinct, inverse = distinct_labels(labels, gaps=True)
        right = distinct
        if denied is not None:  # what is wrong need not be a class
            right = [distinct[i] for i in np.unique(inverse[~denied]).tolist() if i >= 0]
        known = [*(self.classes if self.classes is not None and state is None else ()), *right]
        ballots = ballots.matched(known if state is None else [*state.model.classes, *known], self.abstain)
        if state is None and not ballots.scored and (inverse >= 0).sum() >= ROWS_OF_IDS:
            warn_of_strangers(ballots.columns, ballots.shown, distinct)
        fixed = self._fixed(ballots, distinct) if state is None else state.fixed
        unknown = [name for name in right if fixed is not None and name not in fixed]
        if unknown:
            t = int(np.flatnonzero(inverse == distinct.index(unknown[0]))[0])
            raise ValueError(f"y: {unknown[0]!r} at trial {t} is not among the classes {list(fixed or ())!r}; add it")
        voters, by_name = joined(state, ballots)
        normalizer = state.normalizer if state is not None else Normalizer(self.normalize) if ballots.scored else None
        sides = Sides(tuple(map(str, side_columns(self.by)))) if state is None else state.sides
        held = read_sides(sides.names, ballots.sides)
        begins = sides.debuts(held)
        complete = sides.joined(held, len(voters)) if sides.names else sides  # refused as a whole, or not at all
        batch = make_batch(self, ballots, voters, by_name, fixed, normalizer, complete)
        begun = state is not None
        if state is None:
            state = FusionState(self._new_model(batch, fixed), fixed, by_name, voters, normalizer, sides)
        if len(ballots) < ROWS_OF_IDS and not ballots.scored and fixed is None:
            seen = {*state.model.classes, *silent_votes(self.abstain)}
            rows = [[batch.names[vote] if vote >= 0 else None for vote in row] for row in batch.said.tolist()]
            state.ids.see_rows(state.tally.trials, rows, voters, labels.tolist(), seen)
        state.voters = voters
        for first, last in pairwise([*begins, len(ballots)]):
            state.join([column[first:last] for column in held])
            part = state.placed(batch[first:last], [column[first:last] for column in held])
            weights_here, mask = (None if block is None else block[first:last] for block in (weights, denied))
            state.advance(part, labels[first:last], weights_here, mask)
        if denied is not None and not begun and not state.model.trials:
            raise ValueError("nothing could be learned: wrong answers alone, and no other class; give classes=")
        return state

    def _new_model(self, batch: VoteBatch, fixed: tuple[Any, ...] | None) -> Model:
        """Return a model for trials like these, before the first of them."""
        one_of("discover", self.discover, ("votes", "labels"))
        settings = settings_of(self.tie, self.update_on_tie, self.discover if fixed is None else False)
        return Model(self.learner, batch.instances.layout, fixed or (), settings).follow()

    def _fixed(self, ballots: Ballots, labels: Sequence[Any]) -> tuple[Any, ...] | None:
        """Return the classes if no more may join: those given, or for scores those of the first call."""
        if self.classes is not None:
            return distinct_classes(self.classes)
        if not ballots.scored:
            return None
        assert ballots.scores is not None
        k = ballots.scores.shape[2]
        if len(labels) == k:
            return tuple(labels)
        if set(labels) <= set(range(k)):
            return tuple(range(k))
        raise ValueError(
            f"scores rate {k} classes but y has {len(labels)} labels, such as {labels[0]!r}; pass classes= in the "
            "order of the scores"
        )

    # -- predicting -----------------------------------------------------------------------------------------------

    @property
    def _fitted(self) -> FusionState:
        state: FusionState | None = getattr(self, "_state", None)
        if state is None:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this VoteFusion is not fitted; call fit(votes, y) or partial_fit(votes, y) first")
        return state

    def _parts(self, votes: Any) -> tuple[Iterable[Part], int]:
        """Return the trials as the models take them, and how many there are."""
        state = self._fitted
        row = state.read_row(votes) if self.abstain is None else None
        if row is not None:
            return (state.part_of_row(row),), 1
        batch = later(self, state, votes)
        return list(state.parts_of(batch)), len(batch)

    @property
    def classes_(self) -> np.ndarray:
        """The classes, in the order of the columns of `decision_function` and `predict_proba`: as given, or sorted."""
        return as_array(self._fitted.classes)

    @property
    def voters_(self) -> list[str]:
        """The voters' names."""
        return list(self._fitted.voters)

    @property
    def n_features_in_(self) -> int:
        """Number of voters."""
        return len(self._fitted.voters)

    @property
    def model(self) -> Model:
        """The model under it; for the rest of the library."""
        return self._fitted.model

    @property
    def normalizations(self) -> list[str]:
        """Normalizations under which raters enter; none for votes."""
        return [] if self._fitted.normalizer is None else list(self._fitted.normalizer.kinds)

    @property
    def labels_used_(self) -> int:
        """Labels learned from: those of all trials, or of a selective learner those that it asked for."""
        return self._fitted.model.labels_used

    def predict(self, votes: Any, *, reject: float | None = None) -> np.ndarray:
        """Return the class of each trial; nothing is learned.

        With ``reject``, a risk, the answer is None, "do not know", where the probability of being wrong is greater.
        """
        state, (parts, size) = self._fitted, self._parts(votes)
        found = state.predict(parts, size)
        if reject is None:
            return found
        least, answers = 1.0 - fraction("reject", reject, 0.1), np.array(found, dtype=object)
        answers[state.probabilities(parts, size).max(axis=1) < least] = None
        return answers

    def decision_function(self, votes: Any) -> np.ndarray:
        """Return the score of each class: (trials, classes); of two classes the second's less the first's.

        A voter's vote adds its weight as in `weights`, which add up to 1 in magnitude; where few were asked (see `ask`)
        its weight among these, which do so as well.
        """
        scores = self._fitted.scores(*self._parts(votes))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, votes: Any) -> np.ndarray:
        """Return the probability of each class: (trials, classes)."""
        return self._fitted.probabilities(*self._parts(votes))

    def predict_set(self, votes: Any, coverage: float = 0.9) -> list[tuple[Any, ...]]:
        """Return for each trial classes that contain the right one as often as ``coverage`` says, most probable first.

        Sets widen after they have missed the label of a trial, and narrow otherwise, so that over the trials learned
        their coverage comes to the one asked for, whatever changes (Gibbs and Candes 2021;
        `linmax.bounds.adaptive_coverage` bounds the difference). Any coverage may be asked for; 50, 60, 70, 80, 85,
        90, 95, 97.5 and 99 % are followed, the others lie between them.

        Examples
        --------
        >>> import linmax
        >>> data = linmax.majority_problem(n=20, r=10, k=5, noise=0.3, trials=1500, seed=1)
        >>> fusion = VoteFusion("AR-winnow(1.1)").fit(data.votes[:1000], data.labels[:1000])
        >>> sets = fusion.predict_set(data.votes[1000:], coverage=0.9)
        >>> covered = np.mean([label in found for label, found in zip(data.labels[1000:].tolist(), sets)])
        >>> bool(abs(covered - 0.9) < 0.04)
        True
        """
        return self._fitted.sets(*self._parts(votes), coverage)

    def wants_label(self, instance: Any) -> bool:
        """Return whether the label of one trial is worth asking for: drawn by a selective learner, else True.

        The draw counts, and if the label is wanted the next one that `partial_fit` is given is learned from.

        Parameters
        ----------
        instance
            One row of votes (or of scores), or a dict from voter to vote.

        Examples
        --------
        >>> fusion = VoteFusion("S(b=0.1)-auto").fit([["x", "y"], ["y", "x"]] * 20, ["x", "y"] * 20)
        >>> asked = sum(fusion.wants_label(["x", "y"]) for _ in range(100))
        >>> asked < 30
        True
        """
        state = self._fitted
        batch = later(self, state, one_row(instance, state, self.by))
        return state.model.wants_label(state.model.scores(state.known(state.laid_out(batch))))

    # -- asking fewer voters --------------------------------------------------------------------------------------

    def ask(
        self,
        votes: Mapping[Any, Any],
        costs: Mapping[Any, float] | None = None,
        tolerance: float = TOLERANCE,
        explore: float = EXPLORE,
    ) -> str | None:
        """Return the voter to ask next about one instance, or None when asking more is not worth it.

        Parameters
        ----------
        votes
            The votes so far, {voter: vote}; a voter that was asked and abstained is there with None. Side columns stand
            among them.
        costs
            What asking each voter costs, {voter: number}; 1 each by default. The most weight for its cost comes first.
        tolerance
            How much accuracy may be given up. Voters are asked until the best class leads so far that more votes are
            not worth their cost: the leads are chosen on the trials with the votes of all, by how often those asked so
            far would have answered otherwise, and how probable each answer was. With 0 voters are asked until those
            left cannot change the answer, whatever they vote: a class, one that nobody has named before unless
            ``classes`` were given, or nothing. That is certain only for a learner with a single weight vector, such as
            "winnow(1.1)"; for any other, the default too, all voters are asked.
        explore
            Share of the instances at which one voter from outside the panel is asked as well, the one asked least or
            the one right most often, so that one that got better is found. Not with ``tolerance=0``.

        Notes
        -----
        Learn from such a trial with the votes that there are: ``partial_fit({name: [vote] for ...}, [label])``. A voter
        that is not among the columns has not been asked, nor one whose vote is ``...`` (in a table of many trials); it
        keeps its weight. One that is there with None was asked, and abstained. With a tolerance, instances with the
        votes of the panel alone are answered, and learned, by models of its first voters; without one by that of all.

        Examples
        --------
        >>> import linmax
        >>> data = linmax.majority_problem(n=20, r=3, k=3, trials=500, seed=1)
        >>> fusion = linmax.VoteFusion("AR-winnow(1.1)").fit(data.votes, data.labels)
        >>> votes = {}
        >>> while (voter := fusion.ask(votes, tolerance=0)) is not None:
        ...     votes[voter] = 2  # call it
        >>> sorted(votes)  # three of the twenty voters settle the answer
        ['0', '1', '2']
        """
        state = self._fitted
        if state.normalizer is not None:
            raise ValueError("ask() needs votes, but this fusion was fitted to scores, which have no limit")
        tolerance, explore = read_share("tolerance", tolerance), read_share("explore", explore)
        costs = _by_text(costs)
        cast = {str(name): vote for name, vote in votes.items()} if isinstance(votes, Mapping) else votes
        asked, prices = asked_among(cast, state.voters, state.sides.names), read_costs(costs, state.voters)
        codes = self._codes(votes) if tolerance > 0.0 else np.zeros(0, np.int32)
        few_learn = tolerance > 0.0 and not state.sides.names
        choice = Choice.read(tolerance, costs, state.voters) if few_learn else None

        def question() -> Question:
            return state.question(later(self, state, _ballots(state, votes)), asked)

        state.asking.choose(choice)
        voter: str | None = Inquiry(state, codes, asked, question, tolerance, prices, explore, choice).next()
        return voter

    def _codes(self, votes: Mapping[Any, Any]) -> np.ndarray:
        """Return votes by the model's numbers; -1 for abstentions and unknown classes."""
        state = self._fitted
        cast = {str(name): vote for name, vote in votes.items()}
        try:
            return Names(state.model.classes).encode(map(cast.get, state.voters))
        except KeyError:  # a new class, or another spelling
            return np.asarray(state._codes(later(self, state, _ballots(state, votes)))[0])

    @property
    def recent_rows(self) -> int:
        """Number of recent trials, with the usual number of votes, on which panels are compared."""
        return len(self._fitted.recent.rows()[1])

    def panel(self, costs: Mapping[Any, float] | None = None) -> VoterPanels:
        """Return how few voters are enough: for m = 1, 2, ... which ones, their cost and their accuracy alone.

        The voters are taken in order of weight for cost. Each panel's accuracy is online, by the same learner started
        on the votes of these alone, in up to 1,000 of the last trials in which voters were asked as usual; the first
        fifth of them is not counted.

        Examples
        --------
        >>> import linmax
        >>> data = linmax.majority_problem(n=20, r=3, k=2, trials=500, seed=1)
        >>> panel = linmax.VoteFusion().fit(data.votes, data.labels).panel()
        >>> sorted(panel[2].voters), panel[2].accuracy > 0.95, len(panel.enough().voters)
        (['0', '1', '2'], True, 3)
        """
        state = self._fitted
        if state.normalizer is not None:
            raise ValueError("panel() needs votes; this fusion was fitted to scores")
        return state.asking.compared(state, read_costs(_by_text(costs), state.voters))()

    # -- reports --------------------------------------------------------------------------------------------------

    def weights(self, *, copies: bool = False) -> dict[str, Any]:
        """Return the weight of each voter, the largest first; their magnitudes add up to 1.

        With ``copies`` a dict for each rater: its weight under each normalization; or, with side columns, for each
        voter: its weight where each value holds, of which the weight without ``copies`` is the mean over the trials
        learned. A learner that is not a single weight vector raises ValueError.
        """
        state = self._fitted
        table = state.shares()
        order = np.argsort(-np.abs(table.sum(axis=1)), kind="stable")
        if not copies:
            return {state.voters[i]: float(table[i].sum()) for i in order}
        if state.sides.names:
            by = state.shares_by()
            return {state.voters[i]: {value: float(weights[i]) for value, weights in by.items()} for i in order}
        kinds = state.normalizer.kinds if state.normalizer is not None else ("vote",)
        return {state.voters[i]: dict(zip(kinds, table[i].tolist(), strict=True)) for i in order}

    def explain(self, instance: Any) -> Explanation:
        """Return which voters moved the decision on one trial, and by how much.

        Parameters
        ----------
        instance
            One row of votes (or of scores), or a dict from voter to vote.

        Examples
        --------
        >>> import linmax
        >>> fusion = linmax.VoteFusion("winnow(1.5)").fit([["x", "y"], ["x", "y"], ["y", "x"]], ["x", "x", "y"])
        >>> explanation = fusion.explain(["y", "x"])
        >>> explanation.winner, explanation.contributions["0"] > 0 > explanation.contributions["1"]
        ('y', True)
        """
        state = self._fitted
        batch = later(self, state, one_row(instance, state, self.by))
        if len(state.model.classes) < 2:
            raise ValueError(f"only the class {state.model.classes[0]!r} is known; there is nothing to explain")
        model, instances, voters = state.judge_of(batch)
        classes = model.classes
        winner = classes.index(model.predict(instances)[0])
        scores = model.scores(instances)[0]
        others = scores.copy()
        others[winner] = -np.inf
        second, total = int(others.argmax()), state.unit(None if model is state.model else model)[0]
        ratings = instances.matrix(0, classes)
        added = (ratings[winner] - ratings[second]) * model.weights.arrays.flat / total
        count = len(instances.signs) + instances.scores.shape[1]
        columns = np.bincount(voters, added[:count], minlength=len(state.voters))
        found = dict(zip(state.voters, columns.tolist(), strict=True))
        if model.layout.constant:
            found[THRESHOLDS] = float(added[count:].sum())
        if not model.engine.top.linear:
            found[TOGETHER] = float(scores[winner] - scores[second]) / total - sum(found.values())
        ordered = dict(sorted(found.items(), key=lambda item: -abs(item[1])))
        cast = {name: None if v < 0 else batch.names[v] for name, v in zip(state.voters, batch.said[0], strict=True)}
        sides = state.side_values(batch.places[0])
        return Explanation(classes[winner], classes[second], sum(ordered.values()), ordered, cast, sides)

    def report(self, votes: Any = None, y: Any = None, *, costs: Any = None) -> Report:
        """Compare the fusion with plurality, soft voting, the best voters and a logit.

        Parameters
        ----------
        votes, y
            Held-out trials, to be scored as well; nothing is learned from them. There the best voter in hindsight is
            the best on them, and the best so far the one that led when learning ended.
        costs
            What asking each voter costs, {voter: number}, for the page of `Report.to_html` that says how few are
            enough: the most weight for its cost comes first there.

        Notes
        -----
        Intervals are those of Agresti and Min for paired trials. They take trials as independent, which those of a
        drifting stream are not. The best voter in hindsight was chosen with the labels at hand, which flatters it.
        """
        state = self._fitted
        if (votes is None) != (y is None):
            raise ValueError(
                f"report() needs both votes and y of held-out trials, got only {'y' if y is not None else 'votes'}"
            )
        read_costs(costs, state.voters)
        test = test_reliability = None
        if votes is not None:
            batch, labels = self._held_out(votes, y)
            test, test_reliability = state.compared((batch, labels)), state.reliability(batch, labels)
        try:
            weights = self.weights()
        except ValueError:  # not a single weight vector
            weights = {}
        kinds = None
        if state.normalizer is not None:
            shares = np.abs(state.shares()).sum(axis=0).tolist() if weights else []
            kinds = dict(zip(state.normalizer.kinds, shares, strict=False))
        model, panels = state.model, None
        if state.normalizer is None and state.recent.enough and len(state.voters) > 1:
            panels = state.asking.compared(state, read_costs(costs, state.voters))
        return Report(
            str(model.learner),
            state.compared(),
            test,
            state.voter_lines(weights),
            kinds,
            state.side_lines(bool(weights)),
            model.reliability,
            test_reliability,
            model.coverage,
            Details.of(state.tally, state.voters, state.recent.rows(), panels, costs is not None),
        )

    def _held_out(self, votes: Any, y: Any) -> tuple[VoteBatch, np.ndarray]:
        """Return trials that are not learned, and their labels."""
        state = self._fitted
        batch = later(self, state, votes)
        labels = labels_given(y, len(batch))
        distinct_labels(labels)  # refuses what is no label
        return batch, _respelled(labels, state.model.classes)

    def plot(self, path: Any = None) -> Any:
        """Draw the mistake curves of the fusion and its baselines; return the figure, saved when given a path.

        Needs matplotlib (the extra ``plot``).
        """
        from linmax.util.plots import plot_mistakes

        tally, voters = self._fitted.tally, self._fitted.voters
        if not tally.trials:
            raise ValueError("no trial has a label yet, so there are no mistakes to draw; learn from some labels first")
        curves = {
            "fusion": tally.curve(FUSION),
            "plurality": tally.curve(PLURALITY),
            f"best voter, {voters[tally.leaders[0]]}": tally.curve(FIRST_VOTER + tally.leaders[0]),
            "best voter so far": tally.curve(BEST_SO_FAR),
            "best recent voter": tally.curve(BEST_RECENT),
        }
        subtitle = f"{self._fitted.model.learner}, {len(voters)} voters, {len(self._fitted.classes)} classes"
        return plot_mistakes(curves, path, title="Mistakes of the fusion", subtitle=subtitle)

    def plot_reliability(self, path: Any = None, *, votes: Any = None, y: Any = None) -> Any:
        """Draw accuracy against stated confidence; return the figure, saved when given a path.

        The trials are held-out ones, if ``votes`` and ``y`` are given, else recent ones (see `Report`).
        """
        from linmax.util.plots import plot_reliability

        state = self._fitted
        found = state.model.reliability if votes is None else state.reliability(*self._held_out(votes, y))
        if found is None:
            raise ValueError(f"{state.model.trials} trials are too few to say how often answers are right; learn more")
        bins = [(part.confidence, part.accuracy, part.trials) for part in found.bins]
        subtitle = (
            f"{found.trials:,d} {'recent' if votes is None else 'held-out'} trials, calibration error "
            f"{100.0 * found.calibration_error:.1f} %, log loss {found.log_loss:.3f}"
        )
        return plot_reliability(bins, path, title="Reliability of the fusion", subtitle=subtitle)

    # -- state ----------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the parameters and all that was learned: plain data that JSON can hold, and arrays."""
        return fusion_state(self.get_params(), getattr(self, "_state", None))

    @classmethod
    def from_state(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """Return the fusion whose `state` this was."""
        fusion, state = fusion_from(description, arrays, cls)
        if state is not None:
            fusion._state = state
        return fusion

    # -- files ----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fusion and all that it has learned to one file of arrays and plain data.

        Labels may be text, numbers, truth values and tuples of these. `load` resumes bit for bit.
        """
        files.write(path, FUSION_KIND, *fusion_state(self.get_params(), self._fitted))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the fusion from a file that `save` wrote.

        Examples
        --------
        >>> import os, tempfile
        >>> name = os.path.join(tempfile.mkdtemp(), "fusion.linmax")
        >>> VoteFusion("winnow(1.1)").fit([["x", "y"], ["y", "y"]], ["x", "y"]).save(name)
        >>> VoteFusion.load(name).predict([["x", "y"]]).tolist()
        ['x']
        """
        description, arrays = files.read(path, FUSION_KIND)
        try:
            fusion, state = fusion_from(description, arrays, cls)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)} does not hold a whole VoteFusion: {error}") from None
        if state is None:
            raise ValueError(f"{os.fspath(path)} does not hold a whole VoteFusion: it has learned nothing")
        fusion._state = state
        return fusion


def _denied(y: Any, labels: np.ndarray, wrong: Any) -> np.ndarray:
    """Return the mask of trials of which only a class that is not the label is known, checked."""
    if y is None:
        raise ValueError("wrong= says of which trials the class in y is wrong, and y is not given; pass it")
    mask = mask_of(wrong, len(labels))
    bare = next((t for t in np.flatnonzero(mask).tolist() if no_label(labels[t])), None)
    if bare is not None:
        raise ValueError(f"y: trial {bare} is marked wrong, but has no class: {labels[bare]!r}; give it, or unmark it")
    return mask


def _by_text(costs: Any) -> Any:
    """Return costs by the names that voters have here, which are text."""
    return {str(name): cost for name, cost in costs.items()} if isinstance(costs, Mapping) else costs


def _ballots(state: FusionState, votes: Mapping[Any, Any]) -> Ballots:
    """Return the votes so far as a trial in which voters not yet asked abstain."""
    cast = {str(name): vote for name, vote in votes.items()}
    row = [cast.get(name) for name in state.voters]
    names, sides = state.voters if state.named else None, tuple([cast.get(name)] for name in state.sides.names)
    codes, named, _ = encode_votes(label_array(row)[None], state.voters)
    return Ballots(codes, named, names, sides)


OnLineFusion = VoteFusion
