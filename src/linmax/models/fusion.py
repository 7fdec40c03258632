"""`VoteFusion`: online fusion of votes or scores.

A row of votes takes this path: `VoteFusion.partial_fit` -> `RowReader.read` (one plain row of known voters and classes:
a dict lookup for each vote) or `VoteFusion._learn` (anything else: `read_ballots`, spelling matched, voters in their
columns) -> `FusionState.advance` -> `Model.play` -> the engine. `FusionState` is what has been learned.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from inspect import signature
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np
import numpy.typing as npt

from linmax.core.contract import KNOWN, Trials
from linmax.data.answers import Key, OpenAnswers, are_open, none_probability, opened_key, stored_key
from linmax.data.arrays import Layout, no_trials
from linmax.data.instances import Instances, instances_of_codes
from linmax.data.instances import instances as instances_of
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
from linmax.data.side_columns import Sides, read_sides
from linmax.data.votes import Ballots, encode_votes, in_classes, read_ballots, read_ratings
from linmax.engine.engine import settings_of
from linmax.engine.notation import as_learner
from linmax.models.asking import (
    EXPLORE,
    TOLERANCE,
    Answering,
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
    StoredRivals,
    Tally,
)
from linmax.models.calibration import Reliability, reliability
from linmax.models.kept_trials import KeptTrials
from linmax.models.model import Model, chosen, mask_of
from linmax.models.report import Details, Explanation, Report, Side, StoredRows, Voter
from linmax.normalization import Normalizer, log_shares, soft_votes
from linmax.techniques.technique import LearnerLike
from linmax.util import files
from linmax.util.aliases import Costs, Label, Labels, Name, PathLike, VoteColumns
from linmax.util.checks import at_least, fraction, one_of, warn
from linmax.util.parts import by_part
from linmax.util.progress import LateProgress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FUSION_KIND", "FusionState", "VoteBatch", "VoteFusion", "side_columns"]

FUSION_KIND = "vote fusion"
ROWS_TO_A_TICK = 5000  # learned between updates of the progress bar
SEVERAL = (list, np.ndarray)  # types of several votes
THRESHOLDS = "(thresholds)"
TOGETHER = "(together)"

# Distinct labels, and for each trial the place of its label, as in `Model.play`.
NumberedLabels = tuple[Sequence[Label], np.ndarray]


# -- trials as users give them ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VoteBatch:
    """Trials of the voters: votes as places in ``names``, -1 for an abstention or a voter that was not queried.

    ``places`` are the values of the side columns, as `Sides.places` gives them. The names of trials that were read by a
    `RowReader` are the list of the model's classes itself. Where answers are open, the model's classes are places among
    the answers of a trial, which ``answers`` spells.
    """

    codes: np.ndarray
    names: Sequence[Name]
    asked: np.ndarray  # bool (trials, voters)
    places: np.ndarray
    scores: np.ndarray | None = None  # of raters, under each normalization
    soft: np.ndarray | None = None  # scores only: the answer of soft voting, as places in ``names``
    logs: np.ndarray | None = None  # (trials, raters, classes) logarithms of scores, as shares
    answers: Sequence[Sequence[Label]] | None = None  # of each trial
    ratings: np.ndarray | None = None  # (trials, raters, candidates) of the raters of open answers

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, trials: slice | np.ndarray) -> VoteBatch:
        scores, soft, logs = (None if b is None else b[trials] for b in (self.scores, self.soft, self.logs))
        codes, asked, places = self.codes[trials], self.asked[trials], self.places[trials]
        answers = None if self.answers is None else [self.answers[t] for t in np.arange(len(self))[trials].tolist()]
        ratings = None if self.ratings is None else self.ratings[trials]
        return VoteBatch(codes, self.names, asked, places, scores, soft, logs, answers, ratings)

    def spelled(self, trial: int, classes: Sequence[Label]) -> Sequence[Label]:
        """Return the names of the model's classes in a trial."""
        return classes if self.answers is None else self.answers[trial]


def weights_given(sample_weight: npt.ArrayLike | None, count: int) -> np.ndarray | None:
    """Return one weight >= 0 for each of ``count`` trials, or None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=object)
    if weights.shape != (count,):
        raise ValueError(f"sample_weight must be one number per trial: got shape {weights.shape} for {count} trials")
    for t, weight in enumerate(weights.tolist()):
        at_least(f"sample_weight of trial {t}", weight, 0.0, "0, which leaves it out")
    return weights.astype(float)


def labels_given(y: Labels | None, count: int) -> np.ndarray:
    """Return one label for each of ``count`` trials, None where there is none yet."""
    labels = label_array([None] * count if y is None else y)
    if labels.shape != (count,):
        raise ValueError(f"y must be one label per trial: got shape {labels.shape} for {count} trials of votes")
    return labels


def _respelled(labels: np.ndarray, known: Iterable[Label]) -> np.ndarray:
    """Return labels in the spelling of the classes that votes have named."""
    found = Names(known).respell(distinct_labels(labels, gaps=True)[0])
    return np.array([found.get(label, label) for label in labels.tolist()], dtype=object) if found else labels


def side_columns(by: str | int | Sequence[str | int] | None) -> tuple[str | int, ...]:
    """Return the side columns as given: one or several names or places."""
    columns = () if by is None else (by,) if isinstance(by, (str, int, np.integer)) else tuple(by)
    for column in columns:
        if isinstance(column, (bool, np.bool_)) or not isinstance(column, (str, int, np.integer)):
            raise TypeError(f"by must be a column's name or place, or a list of these, got {column!r}")
    if len(set(columns)) < len(columns):
        raise ValueError(f"by names a column twice: {', '.join(map(repr, columns))}; drop one")
    return columns


def in_order(names: Iterable[Label]) -> list[Label]:
    """Return the distinct classes, sorted if they can be; the first of equal ones."""
    distinct = list(dict.fromkeys(names))
    try:
        return sorted(distinct)  # type: ignore[type-var]
    except TypeError:
        return distinct


class RowReader:
    """Reads single rows of votes of a fusion whose voters, classes and side values stay as they are.

    Anything but one plain row of known voters, classes and values is left to `read_ballots`.
    """

    def __init__(self, state: FusionState) -> None:
        model, sides = state.model, state.sides
        self.classes, self.layout, self.values = model.classes, model.layout, sides.values
        self.labels, self.known = Names(model.classes), int(model.engine.state.shape[KNOWN])
        self.named, self.scored, self.open = state.named, state.normalizer is not None, state.open
        self.voters, self.count = Names(state.voters), len(state.voters)
        self.whole = model.layout.voters == (len(sides.columns) or self.count)  # voters may join that few learn from
        self.sides = {
            name: {None: -1} | {value: place for place, (of, value) in enumerate(sides.values) if of == column}
            for column, name in enumerate(sides.names)
        }

    def fits(self, state: FusionState) -> bool:
        """Return whether voters, classes and side values are still the same."""
        model = state.model
        same = self.classes is model.classes and self.layout is model.layout and self.values is state.sides.values
        return same and self.known == int(model.engine.state.shape[KNOWN]) and self.count == len(state.voters)

    def label(self, y: Labels | None) -> int | None:
        """Return the number of the only label, -1 if there is none yet, or None unless it may be predicted."""
        if y is None:
            return -1
        if not isinstance(y, (list, tuple, np.ndarray)) or len(y) != 1:
            return None
        try:
            place = self.labels.code(y[0].item() if isinstance(y[0], np.generic) else y[0])
        except (KeyError, TypeError):
            return None
        return place if place < self.known else None

    def read(self, votes: VoteColumns) -> VoteBatch | None:
        """Return one plain row, or None for anything else."""
        if self.scored or not self.whole:
            return None
        if isinstance(votes, dict):
            several = not all(isinstance(column, SEVERAL) and len(column) == 1 for column in votes.values())
            return None if several or not self.named else self.row({name: column[0] for name, column in votes.items()})
        if self.named or self.sides or not isinstance(votes, (list, np.ndarray)) or len(votes) != 1:
            return None
        cells = votes[0].tolist() if isinstance(votes[0], np.ndarray) else votes[0]
        if not isinstance(cells, (list, tuple)) or len(cells) != self.count:
            return None
        return self.row(dict(zip(self.voters.names, cells, strict=True)))

    def row(self, cells: dict[Name, Label] | dict[str, Label]) -> VoteBatch | None:
        """Return the trial with one vote of each voter that was queried, and the values of the side columns."""
        if self.open:
            return None
        codes = np.full((1, self.count), -1, np.int32)
        asked = np.zeros(codes.shape, bool)
        try:
            places = [of[cells.pop(name)] for name, of in self.sides.items()]
            if cells:
                columns = self.voters.encode(cells)
                codes[0, columns] = votes = self.labels.encode(cells.values())
                asked[0, columns] = True
                if votes.max() >= self.known:
                    return None
        except (KeyError, TypeError):  # a new voter, class or value; nan; or something that is not hashable
            return None
        return VoteBatch(codes, self.classes, asked, np.array([places], np.int64))


# -- what has been learned ----------------------------------------------------------------------------------------


@dataclass
class FusionState:
    """Learned state of a `VoteFusion`."""

    model: Model
    fixed: tuple[Label, ...] | None  # all classes, if no more may join
    named: bool  # whether voters came with names
    voters: tuple[str, ...]
    normalizer: Normalizer | None
    sides: Sides = field(default_factory=Sides)
    tally: Tally = field(default_factory=Tally)
    asking: Asking = field(default_factory=Asking)
    stored: StoredRivals = field(default_factory=StoredRivals)
    ids: IdWatch = field(default_factory=IdWatch)
    unnamed: int | None = None  # labelled trials whose label no voter gave, where answers are open; else None
    raters: tuple[str, ...] = ()  # of open answers
    _reader: RowReader | None = field(default=None, init=False)

    # -- files ----------------------------------------------------------------------------------------------------

    def parts(self, packed: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return everything as plain data and arrays; if ``packed``, with a user's own rules as pickles hold them."""
        header, state = self.model.packed() if packed else self.model.state()
        described, asking = self.asking.state()
        blocks = {
            "model": state,
            "tally": self.tally.arrays,
            **asking,
            "stored": self.stored.kept.arrays,
            "sides": {"columns": self.sides.columns, "counts": self.sides.counts},
        }
        description = {
            "model": header,
            "fixed": self.fixed,
            "named": self.named,
            "voters": list(self.voters),
            "kinds": None if self.normalizer is None else list(self.normalizer.kinds),
            "unnamed": self.unnamed,
            **({"raters": list(self.raters)} if self.raters else {}),
            **self.sides.description,
            **described,
        }
        arrays = {f"{block}.{name}": array for block, arrays in blocks.items() for name, array in arrays.items()}
        return _with_labels(description, files.plain), arrays

    @classmethod
    def restored(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> FusionState:
        """Return the state that `parts` described."""
        description, blocks, kinds = _with_labels(description, files.named), by_part(arrays), description["kinds"]
        return cls(
            Model.from_state(description["model"], blocks["model"]),
            None if description["fixed"] is None else tuple(description["fixed"]),
            description["named"],
            tuple(description["voters"]),
            None if kinds is None else Normalizer(kinds),
            Sides.restored(description, blocks["sides"]),
            Tally.restored(blocks["tally"]),
            Asking.restored(description, blocks),
            StoredRivals(KeptTrials.restored(blocks["stored"])),
            unnamed=description["unnamed"],
            raters=tuple(description.get("raters", ())),
        )

    def __reduce__(self) -> Any:
        description, arrays = self.parts(packed=True)
        return FusionState.restored, (description, {name: array.copy() for name, array in arrays.items()})

    # -- reading --------------------------------------------------------------------------------------------------

    @property
    def reader(self) -> RowReader:
        """Reader of single rows, up to date."""
        if self._reader is None or not self._reader.fits(self):
            self._reader = RowReader(self)
        return self._reader

    def joined(self, ballots: Ballots) -> tuple[tuple[str, ...], bool]:
        """Return all voters, those of ``ballots`` included, and whether they go by name."""
        if ballots.scored != (self.normalizer is not None):
            fitted, given = ("scores", "votes") if self.normalizer is not None else ("votes", "scores")
            raise ValueError(f"this VoteFusion was fitted to {fitted}, got {given}")
        # Voters without names have numbers, and votes may use these as names.
        by_name = self.named or (ballots.names is not None and set(ballots.names).issubset(self.voters))
        return ballots.voters(self.voters, by_name), by_name

    def joined_raters(self, ballots: Ballots) -> tuple[str, ...]:
        """Return all raters of open answers, those of ``ballots`` included."""
        raters = tuple(dict.fromkeys([*self.raters, *ballots.ratings]))
        both = next((name for name in raters if name in {*self.voters, *(ballots.names or ())}), None)
        if both is not None:
            raise ValueError(f"votes: {both!r} is a voter already, and rates answers here; rename one")
        return raters

    def rated(self, batch: VoteBatch, opened: OpenAnswers, raters: tuple[str, ...]) -> VoteBatch:
        """Return trials with a score of each of these raters for each answer."""
        if not raters:
            return batch
        table = np.zeros((len(batch), len(raters), opened.ratings.shape[2]))
        table[:, [raters.index(name) for name in opened.given.ratings]] = opened.ratings
        return replace(batch, ratings=table)

    def ratings_of(self, batch: VoteBatch, classes: Sequence[Label]) -> np.ndarray:
        """Return the ratings of open answers, with a column for each class that a model has."""
        if batch.ratings is None:
            return np.zeros((len(batch), len(self.raters), len(classes)))
        return np.pad(batch.ratings, ((0, 0), (0, 0), (0, len(classes) - batch.ratings.shape[2])))

    def batch(self, ballots: Ballots, voters: tuple[str, ...], by_name: bool) -> VoteBatch:
        """Return the trials with a column for each voter and numbers for classes."""
        table, asked = ballots.aligned(voters, by_name)
        places = self.sides.places(read_sides(self.sides.names, ballots.sides), len(table))
        if self.normalizer is None:
            codes, names = in_classes(table, ballots.named, self.fixed, voters)
            return VoteBatch(codes, names, asked, places)
        fixed = self.fixed or ()
        if table.shape[2] != len(fixed):
            raise ValueError(f"scores rate {table.shape[2]} classes, but there are {len(fixed)}: {list(fixed)!r}")
        codes, soft = np.where(np.ptp(table, axis=2) > 0.0, table.argmax(axis=2), -1), soft_votes(table).argmax(axis=1)
        return VoteBatch(codes, fixed, asked, places, self.normalizer.apply(table), soft, log_shares(table))

    def later(self, ballots: Ballots, abstain: Any) -> VoteBatch:
        """Return trials of voters that are all known; votes for unknown classes are abstentions to the model."""
        ballots = ballots.matched(self.model.classes, abstain, learning=False)
        voters, by_name = self.joined(ballots)
        known = len(self.voters)
        if len(voters) > known and by_name:
            raise ValueError(f"votes: {voters[known]!r} is not a known voter; partial_fit with it, or drop it")
        if len(voters) > known:
            raise ValueError(f"votes have {len(voters)} columns, but {known} voters are known; drop the others")
        return self.batch(ballots, voters, by_name)

    def one_row(self, instance: Any, by: Any) -> Ballots:
        """Return one instance as a table of one row."""
        if hasattr(instance, "columns"):
            rows = instance
        elif hasattr(instance, "to_dict") and hasattr(instance, "index"):  # a row of a DataFrame
            rows = {name: [vote] for name, vote in instance.to_dict().items()} if self.named else [instance.tolist()]
        elif isinstance(instance, Mapping):
            rows = {name: [vote] for name, vote in instance.items()}
            several = next((n for n, v in instance.items() if self.normalizer is None and isinstance(v, SEVERAL)), None)
            if several is not None:
                raise TypeError(f"one trial is required; {several!r} has {instance[several]!r} instead of one vote")
        else:
            wanted = 1 if self.normalizer is None else 2
            rows = instance if isinstance(instance, np.ndarray) and instance.ndim > wanted else [instance]
            rows = np.asarray(rows) if isinstance(instance, np.ndarray) else rows
        ballots = read_ballots(rows, side_columns(by), self.raters)
        if len(ballots) != 1:
            raise ValueError(f"this takes one trial, got {len(ballots)}; give it a row")
        return ballots

    def so_far(self, cells: Mapping[str, Label]) -> Ballots:
        """Return one trial with a cell for each side column and voter."""
        sides = tuple([cells[name]] for name in self.sides.names)
        codes, named, _ = encode_votes(label_array([cells[name] for name in self.voters])[None], self.voters)
        ratings = {name: read_ratings(name, [cells[name]]) for name in self.raters}
        return Ballots(codes, named, self.voters if self.named else None, sides, ratings=ratings)

    # -- voters and their weights ---------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """True if every trial has its own answers; classes are then places among these."""
        return self.unnamed is not None

    @property
    def none_probability(self) -> float:
        """Probability that no voter gives the right answer."""
        return none_probability(self.unnamed or 0, self.tally.trials)

    @property
    def classes(self) -> list[Label]:
        """Classes as users see them: as given, or sorted if they can be; the model has them as they appeared."""
        return list(self.model.classes) if self.fixed is not None else in_order(self.model.classes)

    @property
    def copies(self) -> int:
        """Number of columns of a voter."""
        return 1 if self.normalizer is None else len(self.normalizer.kinds)

    def columns_in(self, model: Model) -> np.ndarray:
        """Return the weights that a model gives the columns of the voters."""
        weights = model.weights.arrays
        return weights.voters if self.normalizer is None else weights.raters

    @property
    def recent(self) -> Recent:
        """The latest trials."""
        return self.asking.recent

    @property
    def few(self) -> Few | None:
        """The voters that are asked one by one where some accuracy may be given up."""
        return self.asking.current(self)

    def unit(self, model: Model) -> tuple[float, float]:
        """Return the total weight of the voters, and the ratio of the model's scores to w.x.

        The engine gives scores up to one positive factor, which shows when the voter of the largest weight votes alone.
        For a learner that only resembles w.x, such as a mixture, the ratio is 1. The model may be one of the `Few`.
        """
        few = self.few
        model = model if few is not None and model in few.models else self.model  # not one that a vote has widened
        columns, k, layout = self.columns_in(model), len(model.classes), model.layout
        largest = int(np.abs(columns).argmax())
        means = self.sides.mean_weights(columns, self.tally.trials) if self.sides.names else columns
        total = float(np.abs(means).sum())
        if total == 0.0 or k < 2:
            return 1.0, 1.0
        if not model.engine.top.linear:
            return total, 1.0
        votes, scores = np.full((2, layout.voters), -1, np.int32), np.zeros((2, layout.raters, k))
        if layout.voters:
            votes[1, largest] = 0
        else:
            scores[1, largest, 0] = 1.0
        probe = no_trials(2)._replace(votes=votes, scores=scores, signs=np.ones(layout.voters))
        silent, alone = model.engine.judge(probe._replace(constant=layout.constant))[1]
        return total, float(((alone - silent)[0] - (alone - silent)[1]) / columns[largest])

    def shares(self) -> np.ndarray:
        """Return (voters, copies) weights whose magnitudes add up to 1, or are all 0."""
        table = self._of_voters(self.columns_in(self.model))
        total = np.abs(table).sum()
        return table / total if total > 0.0 else table

    def rater_weights(self) -> dict[str, float]:
        """Return the weights of the raters of open answers, the largest first, in the unit of `shares`."""
        weights = self.model.weights.arrays.raters[: len(self.raters)]
        total = np.abs(self._of_voters(self.columns_in(self.model))).sum() if self.raters else 0.0
        found = zip(self.raters, (weights / total if total > 0.0 else weights).tolist(), strict=False)
        return dict(sorted(found, key=lambda item: -abs(item[1])))

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
        return columns.reshape(len(self.voters), -1)

    def worth(self) -> np.ndarray:
        """Return each voter's weight, or its recent accuracy if the learner is not a single weight vector."""
        try:
            return self.shares().sum(axis=1)
        except ValueError:
            return self.recent.accuracy()

    # -- learning -------------------------------------------------------------------------------------------------

    def advance(self, batch: VoteBatch, labels: NumberedLabels, weights: np.ndarray | None = None) -> None:
        """Learn these trials; with ``weights`` the model of all voters learns every trial."""
        distinct, places = labels
        if self.asking.choice is None or weights is not None:
            self._advance_all(batch, labels, weights)
            return
        # Trials in which all voters were asked are learned together; each of the others may be for the few.
        complete = np.asarray(batch.asked.all(axis=1))
        edges = [t for t in range(1, len(batch)) if not (complete[t] and complete[t - 1])]
        for begin, end in pairwise([0, *edges, len(batch)]):
            part, places_here = batch[begin:end], places[begin:end]
            if complete[begin] or not self._advance_few(part, distinct, int(places_here[0])):
                self._advance_all(part, (distinct, places_here), None)

    def _advance_few(self, batch: VoteBatch, distinct: Sequence[Label], place: int) -> bool:
        """Learn one trial with the few; return False, and learn nothing, if it is not for them."""
        codes, known = self._codes(batch)[0], int(self.model.engine.state.shape[KNOWN])
        name = distinct[place if place >= 0 else -2 - place] if place != -1 else None
        label = int(Names(self.model.classes).encode_known([name])[0])
        if not 0 <= label < known or self._strange(batch).any():
            return False
        answer = self.asking.learn_few(self, codes, batch.asked[0], label if place >= 0 else -2 - label)
        if answer is None:
            return False
        predicted, learned = answer
        self._count(batch, np.array([learned], np.int32), np.array([predicted == learned]), few=True)
        return True

    def miss(self, batch: VoteBatch) -> None:
        """Count trials whose label no voter gave: a mistake of all, from which nothing else is learned."""
        assert self.unnamed is not None
        self.unnamed += len(batch)
        absent = np.full(len(batch), len(self.voters), np.int32)  # no candidate has this place
        self.tally.add(np.zeros(len(batch), bool), batch.codes, absent, len(self.voters) + 1)

    def _advance_all(self, batch: VoteBatch, labels: NumberedLabels, weights: np.ndarray | None) -> None:
        """Let the model of all voters learn."""
        if self.open and len(batch.names) > len(self.model.classes):
            self.model.grow(self.model.layout, batch.names)
        if batch.names is self.model.classes and labels[0] is batch.names:  # one row, of which all is known
            learned = labels[1]
            trials = self.instances(batch)._replace(labels=learned)
            right = (
                self.model.play(trials if weights is None else trials._replace(weights=weights)).predictions == learned
            )
        else:
            right, learned = np.zeros(len(batch), bool), np.full(len(batch), -1, np.int32)
            for begin in range(0, len(batch), self.sides.stretch()):
                part = slice(begin, begin + self.sides.stretch())
                weights_here, found = None if weights is None else weights[part], (list(labels[0]), labels[1][part])
                trace = self.model.run_numbered(self.as_instances(batch[part]), found, grow=True, weights=weights_here)
                right[part], learned[part] = ~trace.wrong, trace.learned
        if self.sides.names:
            self.sides = self.sides.counted(batch.places)
        self._count(batch, learned, right)

    def _count(self, batch: VoteBatch, learned: np.ndarray, right: np.ndarray, few: bool = False) -> None:
        """Count the labels learned, by the model's numbers; the trials of a ``few`` are already kept."""
        self.asking.changed()
        labelled = learned >= 0
        if not labelled.all():
            batch, learned, right = batch[labelled], learned[labelled], right[labelled]
        self.tally.widen(len(self.voters))
        if not len(learned):
            return
        codes = self._codes(batch)
        soft = None if batch.soft is None else batch.soft == learned
        self.tally.add(right, codes, learned, len(self.model.classes), soft=soft)
        if not few:
            self.asking.learn_all(codes, batch.asked, learned)
        self.stored.add(codes, learned, right, batch.logs, batch.places)

    # -- predicting -----------------------------------------------------------------------------------------------

    def _codes(self, batch: VoteBatch, model: Model | None = None) -> np.ndarray:
        """Return votes by the model's numbers; -1 for unknown classes."""
        classes = self.model.classes if model is None else model.classes
        if batch.names is classes:
            return batch.codes
        return np.append(Names(classes).encode_known(batch.names), np.int32(-1))[batch.codes]

    def _strange(self, batch: VoteBatch) -> np.ndarray:
        """Return which votes are for classes that are not yet known."""
        codes = self._codes(batch)
        return (batch.codes >= 0) & ((codes < 0) | (codes >= int(self.model.engine.state.shape[KNOWN])))

    def as_instances(self, batch: VoteBatch) -> Instances:
        """Return the trials for `Model.run`: voters, and their copies for each value of the side columns."""
        thresholds = bool(self.model.layout.constant)
        if batch.scores is not None:
            return instances_of(scores=batch.scores, classes=batch.names, thresholds=thresholds)
        made = instances_of_codes(batch.codes, batch.names, self.voters, self.fixed is not None, thresholds)
        if self.raters:  # the model has grown: it has a class for each place among the answers
            classes = tuple(self.model.classes)
            made = replace(made, names=classes, scores=self.ratings_of(batch, classes))
        return self.sides.laid_out(made, batch.places)

    def instances(self, batch: VoteBatch, model: Model | None = None) -> Trials:
        """Return the trials as the model takes them; votes for classes that it does not have abstain."""
        layout = self.model.layout
        if batch.scores is not None:
            made = self.as_instances(batch)
            return self.model.fitted(replace(made, scores=np.ascontiguousarray(made.scores[:, : layout.raters])))
        votes, signs = self._codes(batch, model), np.ones(layout.voters)
        if self.sides.names:
            votes, signs = self.sides.laid_out_votes(votes, batch.places), self.sides.signs
        votes, signs = np.ascontiguousarray(votes[:, : layout.voters]), signs[: layout.voters]
        trials = no_trials(len(batch))._replace(votes=votes, signs=signs, constant=layout.constant)
        if not layout.raters:
            return trials
        ratings = self.ratings_of(batch, (self.model if model is None else model).classes)
        return trials._replace(scores=np.ascontiguousarray(ratings[:, : layout.raters]))

    def parts_of(self, batch: VoteBatch) -> Iterator[Answering]:
        """Yield the trials as the models take them, as many at a time as memory allows.

        The few answer where few voters were asked, all for known classes. Where votes name classes that are not yet
        known, a copy of the model that knows them takes its place.
        """
        few = None if self.asking.choice is None or batch.asked.all() else self.few
        if few is None and batch.names is self.model.classes:
            yield np.arange(len(batch)), self.model, self.instances(batch)
            return
        if self.open and len(batch.names) > len(self.model.classes):  # more answers than in any trial learned
            larger = self.model.enlarged(self.model.layout, batch.names)
            yield np.arange(len(batch)), larger, self.instances(batch, larger)
            return
        size, strange = self.sides.stretch(), self._strange(batch)
        beyond = strange.any(axis=1)
        of_few = np.zeros(len(batch), bool) if few is None else few.asked(self._codes(batch), batch.asked) & ~beyond
        if few is not None and of_few.any():
            yield from few.parts(np.flatnonzero(of_few), self._codes(batch), batch.asked)
        joining = beyond & self.model.engine.settings.by_votes
        usual = np.flatnonzero(~joining & ~of_few)
        for begin in range(0, len(usual), size):
            trials = usual[begin : begin + size]
            yield trials, self.model, self.instances(batch[trials])
        alike: dict[tuple[int, ...], list[int]] = {}
        for t in np.flatnonzero(joining).tolist():
            alike.setdefault(tuple(dict.fromkeys(batch.codes[t, strange[t]].tolist())), []).append(t)
        for votes, places in alike.items():
            names, trials = [batch.names[vote] for vote in votes], np.array(places)
            larger = self.model.enlarged(self.model.layout, names)
            yield trials, larger, self.instances(batch[trials], larger)

    def predict(self, batch: VoteBatch) -> np.ndarray:
        """Return the class of each trial, or the answer."""
        found = np.empty(len(batch), dtype=object)
        for trials, model, instances in self.parts_of(batch):
            places = model.engine.judge(instances)[0]
            if batch.answers is None:
                found[trials] = named(places, model.classes).tolist()
            else:
                own = [batch.answers[t] for t in trials.tolist()]
                found[trials] = [names[place] if names else None for names, place in zip(own, places, strict=True)]
        return found if batch.answers is not None else as_array(found.tolist())

    def probabilities(self, batch: VoteBatch) -> np.ndarray:
        """Return the probability of each class; what is missing from 1 is that of unknown classes, or of no answer."""
        table = self._table(batch, lambda model, scores: model.probabilities(scores))
        return table * (1.0 - self.none_probability) if self.open else table

    def scores(self, batch: VoteBatch) -> np.ndarray:
        """Return scores in units of the weight of the voters; -inf for classes that are not yet known."""
        return self._table(batch, self._in_units)

    def _in_units(self, model: Model, scores: np.ndarray) -> np.ndarray:
        try:
            total, factor = self.unit(model)
        except ValueError:  # not a single weight vector: its scores have their own unit
            total, factor = 1.0, 1.0
        return scores / (total * factor)

    def _table(self, batch: VoteBatch, change: Callable[[Model, np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the scores of each trial for each of `classes`, changed by a function."""
        parts = list(self.parts_of(batch))
        classes = list(range(max(len(model.classes) for _, model, _ in parts))) if self.open else self.classes
        table = np.zeros((len(batch), len(classes)))
        for trials, model, instances in parts:
            columns = Names(model.classes).encode(classes)
            table[trials] = change(model, model.judge(instances)[1])[:, columns]
        return table

    def sets(self, batch: VoteBatch, coverage: float) -> list[tuple[Label, ...]]:
        """Return the prediction set of each trial."""
        found: list[tuple[Label, ...]] = [()] * len(batch)
        for trials, model, instances in self.parts_of(batch):
            scores = model.judge(instances)[1]
            inside = chosen(scores, model.sets(scores, coverage), range(len(model.classes)))
            for t, places in zip(trials.tolist(), inside, strict=True):
                names = batch.spelled(t, model.classes)
                found[t] = tuple(names[place] for place in places if place < len(names))
        return found

    def question(self, batch: VoteBatch, asked: np.ndarray) -> Question:
        """Return one instance as `predict` sees it, and where further votes would be stored."""
        ((_, model, instances),) = self.parts_of(batch)
        voters = np.arange(len(asked))[:, None]
        columns = voters == self.sides.columns[:, 0] if self.sides.names else voters == voters.T
        if self.sides.names:
            columns &= self.sides.holds(batch.places)
        widen = partial(add_class, model, model.layout) if model.engine.settings.by_votes else None
        return Question(model.engine, instances, asked, columns[:, : model.layout.voters], widen)

    # -- reports --------------------------------------------------------------------------------------------------

    def explain(self, batch: VoteBatch) -> Explanation:
        """Return which voters moved the decision on one trial, and by how much."""
        ((_, model, instances),) = self.parts_of(batch)
        predictions, table = model.judge(instances)
        names = batch.spelled(0, model.classes)
        if np.isfinite(table[0]).sum() < 2 or len(names) < 2:
            raise ValueError(f"explain() requires two classes, or different answers, got {list(names)!r}")
        winner, scores, weights = int(predictions[0]), table[0].copy(), model.weights.arrays
        lead = scores[winner]
        scores[winner] = -np.inf
        second, total = int(scores.argmax()), self.unit(model)[0]
        votes, rated = instances.votes[0], instances.scores[0]
        by_votes = weights.voters * instances.signs * ((votes == winner) * 1.0 - (votes == second))
        by_scores = weights.raters * (rated[:, winner] - rated[:, second]) if len(rated) else np.zeros(0)
        added = np.concatenate([by_votes, by_scores]) / total
        few, count = self.few, len(self.voters)
        if few is not None and model in few.models:
            voters = np.array(few.columns(few.models.index(model)))
        else:
            votes_added = len(added) - len(by_scores) if self.normalizer is None else len(added)
            voters = self.sides.columns[:, 0] if self.sides.names else np.arange(votes_added) // self.copies
        moved = np.bincount(voters, added[: len(voters)], minlength=count).tolist() + added[len(voters) :].tolist()
        found = dict(zip([*self.voters, *self.raters], moved, strict=False))
        if model.layout.constant:
            found[THRESHOLDS] = float(weights.thresholds[winner] / total - weights.thresholds[second] / total)
        if not model.engine.top.linear:
            found[TOGETHER] = float(lead - scores[second]) / total - sum(found.values())
        ordered = dict(sorted(found.items(), key=lambda item: -abs(item[1])))
        given = batch.spelled(0, batch.names)
        cast = {name: given[v] if v >= 0 else None for name, v in zip(self.voters, batch.codes[0], strict=True)}
        values = [self.sides.values[place][1] if place >= 0 else None for place in batch.places[0].tolist()]
        sides = dict(zip(self.sides.names, values, strict=True))
        return Explanation(names[winner], names[second], sum(ordered.values()), ordered, cast, sides)

    def compared(self, held_out: tuple[VoteBatch, np.ndarray] | None = None) -> Comparison:
        """Compare the fusion with the baselines, online or on held-out trials and their labels."""
        k = len(self.model.classes)
        if held_out is None:
            comparison, further = self.tally.compare(self.voters), self.stored.online(k)
            if self.unnamed:  # these rivals are not shown the trials whose label no voter gave: mistakes of theirs, too
                named = 1.0 - self.unnamed / self.tally.trials
                further = {name: replace(rival, accuracy=named * rival.accuracy) for name, rival in further.items()}
        else:
            batch, labels = held_out
            right, tally = self.predict(batch) == labels, Tally(len(self.voters))
            everything = [*self.model.classes, *batch.names, *labels.tolist()]
            classes = Names(everything if self.fixed is not None else in_order(everything))
            place, numbers = np.append(classes.encode(batch.names), np.int32(-1)), classes.encode(labels.tolist())
            soft = None if batch.soft is None else place[batch.soft] == numbers
            tally.add(right, place[batch.codes], numbers, len(classes), self.tally.leaders, soft)
            comparison = tally.compare(self.voters, self.tally.leaders)
            numbers = Names(self.model.classes).encode_known(labels.tolist())
            further = self.stored.held_out(self._codes(batch), batch.logs, numbers, right, k)
        return replace(comparison, rivals={**comparison.rivals, **further})

    def reliability(self, batch: VoteBatch, labels: np.ndarray) -> Reliability:
        """Return how reliable the probabilities of these trials are."""
        table = self.probabilities(batch)
        if self.open:  # the last column: that no voter is right
            codes, k = labels.astype(np.int32), table.shape[1]
            named = codes <= batch.codes.max(axis=1, initial=-1)
            table = np.hstack([table, 1.0 - table.sum(axis=1, keepdims=True)])
            return reliability(table, np.where(named, codes, np.int32(k)))
        return reliability(table, Names(self.classes).encode_known(labels.tolist()))

    def stored_rows(self) -> StoredRows:
        """Return the latest trials, with their probabilities as of now; after a merge those stored for panels."""
        kept, model, shares = self.stored.kept, self.model, None
        names = None if self.open else tuple(model.classes), tuple(self.sides.labels)
        if not len(kept):
            votes, labels = self.recent.rows(len(self.voters))
            places, right = np.full((len(labels), len(self.sides.names)), -1), np.zeros(0, bool)
            return StoredRows(*names, votes, labels, places, right, None, self.tally.trials - len(labels))
        votes, labels, places = kept["votes"], kept["labels"], kept["places"].astype(np.int64)
        votes = np.pad(votes, ((0, 0), (0, len(self.voters) - votes.shape[1])), constant_values=-1)
        logs = kept["scores"].astype(float) if self.normalizer is not None else None
        # Of other ratings logarithms alone are kept, and none of open answers.
        if not self.raters and (self.normalizer is None or self.normalizer.kinds == ("log",)):
            batch = VoteBatch(votes, model.classes, np.ones(votes.shape, bool), places, logs)
            shares = np.zeros((len(batch), len(model.classes)))
            for begin in range(0, len(batch), self.sides.stretch()):
                part = batch[begin : begin + self.sides.stretch()]
                table = model.judge(self.instances(part))[1]
                shares[begin : begin + len(part)] = model.probabilities(table)
        return StoredRows(*names, votes, labels, places, kept["right"].astype(bool), shares, kept.dropped)

    def spelled(self, opened: OpenAnswers) -> list[list[Label]]:
        """Return the candidates of each trial, each as the voter of the largest weight spells it."""
        codes, _ = opened.ballots.aligned(*self.joined(opened.ballots))
        given, _ = opened.given.aligned(*self.joined(opened.given))
        worth = np.zeros(codes.shape[1])
        worth[: len(self.voters)] = self.worth()
        order = np.argsort(-worth, kind="stable")
        found = []
        for places, answers, count in zip(codes[:, order], given[:, order], opened.counts.tolist(), strict=True):
            first = [int((places == place).argmax()) for place in range(count)]
            found.append([opened.given.named[answers[voter]] for voter in first])
        return found

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


def _with_labels(description: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Convert every list of labels to the form stored in a file, or back."""
    lists = {name: description.get(name) for name in ("classes", "fixed", "side_values")}
    changed = {name: [change(label) for label in labels] for name, labels in lists.items() if labels is not None}
    return {**description, **changed}


# -- the fusion ---------------------------------------------------------------------------------------------------


class VoteFusion:
    """Learn online how far to trust each of several voters, and fuse them.

    Each trial is predicted before its label is seen, then learned from; the order of the rows is the order of the
    trials. So `report` gives the accuracy on the very trials that were learned from.

    Parameters
    ----------
    learner : learner or str, default="auto"
        A rule, a composition of techniques, a pool, or text. The default has nothing to tune (see `linmax.pool`).
    classes : sequence, optional
        All classes, in order. By default they are those of votes and labels, and more may join at any `partial_fit`.
    discover : {"votes", "labels"}, default="votes"
        From when on a class may be predicted, without ``classes``. "votes": from the first vote for it on, or after
        its first label; also by `predict`, where a new class has no column in `predict_proba`, whose rows then add up
        to less than 1. "labels": after its first label only (Mesterharm 2001, section 6.2).
    answers : {"auto", "open", "closed"}, default="auto"
        "closed": votes and labels name classes. "open": every trial has its own answers, which are its candidates; each
        voter has one weight, whatever the answers, and nothing is learned about single answers. "auto" is open if a
        ``key`` is given, or raters score answers, or, with a warning, if most of the trials of the first call bring
        answers never seen before.
    key : str or callable, optional
        Which open answers are the same: a function of the answer, or "number", "text", "math" or "json" (see
        `linmax.data.answers`). By default only the same text and equal whole numbers are.
    normalize : str or sequence of str, default="auto"
        Normalizations under which raters enter (see `linmax.normalization`); for scores of classes only.
    abstain : label or set of labels, optional
        Means abstention, in addition to None, nan, pandas' NA and empty text. With an empty set empty text is an answer
        like others.
    by : str, int or sequence, optional
        Side columns among the votes, such as a subject or a source, by name, or by place where votes have no names.
        Each voter gets a copy for each of their values, which votes where the value holds, so that a voter may be
        trusted on one subject and not on another (see `linmax.instances`). Where a value is missing or unknown, the
        voters themselves decide. For votes only.
    thresholds : bool, default=True
        Let the learner prefer a class regardless of votes.
    tie, update_on_tie
        As in `linmax.run`.

    Notes
    -----
    Votes are (trials, voters) labels: an array, lists, a dict of columns, or a DataFrame of pandas or polars, whose
    columns name the voters. Scores are (trials, raters, classes) numbers, or a dict from a rater's name to its (trials,
    classes) array; the first call then fixes the classes: those given, or else the labels, sorted, when there are as
    many, or else 0 to k - 1.

    Where answers are open, a named column of dicts from answer to number is a rater: its scores accompany the votes, as
    a model's own confidence does, and it has one weight, too. An answer without a score has 0.

    A known voter may be absent later, which means that it was not asked, as does a vote ``...`` among others; one with
    None was asked and abstained. Neither moves its weight, but only the second counts against asking it again (see
    `ask`). New voters may join at any `partial_fit`; without names, they are further columns on the right.

    Probabilities are calibrated on predictions made before their labels were seen (see `linmax.models.calibration`).

    References
    ----------
    Mesterharm and Hsu, Combinatorial fusion with on-line learning algorithms.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(n=20, r=10, k=5, noise=0.05, trials=1500, seed=1)
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
        learner: LearnerLike = "auto",
        *,
        classes: Sequence[Label] | None = None,
        discover: str = "votes",
        answers: str = "auto",
        key: Key = None,
        normalize: str | Sequence[str] = "auto",
        abstain: Label | Collection[Label] = None,
        by: str | Sequence[str] | None = None,
        thresholds: bool = True,
        tie: str = "smallest",
        update_on_tie: bool = True,
    ) -> None:
        self.learner = learner
        self.classes = classes
        self.discover = discover
        self.answers = answers
        self.key = key
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

    def score(self, votes: VoteColumns, y: Labels, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the accuracy on held-out trials."""
        weights = None if sample_weight is None else np.asarray(sample_weight, float)
        return float(np.average(self.predict(votes) == np.asarray(y), weights=weights))

    def __repr__(self) -> str:
        first = {name: parameter.default for name, parameter in signature(type(self)).parameters.items()}
        changed = [f"{name}={value!r}" for name, value in self.get_params().items() if value is not first[name]]
        return f"VoteFusion({', '.join(changed)})"

    def _repr_html_(self) -> str:
        """Return the core of the report, for notebooks; before the first trial the parameters."""
        if self.__sklearn_is_fitted__():
            return self.report()._repr_html_()
        return f"<pre>{escape(repr(self))}</pre>"

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_state", None) is not None

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags("classifier", TargetTags(required=False), classifier_tags=ClassifierTags())

    # -- learning -------------------------------------------------------------------------------------------------

    def fit(self, votes: VoteColumns, y: Labels | None = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit from scratch, in row order: the same as `partial_fit` on a new fusion."""
        self._state = self._learn(None, votes, y, sample_weight)
        return self

    def partial_fit(
        self,
        votes: VoteColumns,
        y: Labels | None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        wrong: Labels | None = None,
    ) -> Self:
        """Learn further trials; voters and classes may join. An error leaves the model as it was.

        It does not matter how trials are cut into calls.

        Parameters
        ----------
        votes : table of votes or scores
            The trials.
        y : sequence, optional
            A label for each trial. None, nan or empty text means that there is none yet, and no ``y`` that there are
            none at all: from such trials the default learner learns how far voters agree. Reports do not count them.
        sample_weight : sequence of float, optional
            Scales the step of each trial, 1 by default: 2 equals two separate rows up to the learner's own
            nonlinearity; 0 leaves the trial out.
        wrong : sequence of bool, optional
            Where it is True, the label is *not* the class in ``y``, and nothing else is known. Pools learn just that;
            any other learner learns another class, drawn by the present probabilities. Reports do not count such
            trials.
        """
        state: FusionState | None = getattr(self, "_state", None)
        row = state.reader.read(votes) if state is not None and self.abstain is None else None
        place = state.reader.label(y) if state is not None and row is not None else None
        if state is not None and row is not None and place is not None:
            weights = weights_given(sample_weight, 1)
            denied = wrong is not None and bool(_denied(y, labels_given(y, 1), wrong)[0])
            if weights is None or weights[0]:
                labels = np.array([-2 - place if denied else place], np.int32)
                state.advance(row, (state.model.classes, labels), weights)
        else:
            self._state = self._learn(state, votes, y, sample_weight, wrong)
        return self

    def _learn(
        self, state: FusionState | None, votes: Any, y: Any, sample_weight: Any, wrong: Any = None
    ) -> FusionState:
        ballots = read_ballots(votes, side_columns(self.by), () if state is None else state.raters)
        labels, weights = labels_given(y, len(ballots)), weights_given(sample_weight, len(ballots))
        denied = np.zeros(len(ballots), bool) if wrong is None else _denied(y, labels, wrong)
        if weights is not None and not weights.all():
            positive = weights > 0.0
            if not positive.any():
                if state is None:
                    raise ValueError("sample_weight must have a weight > 0, got only 0; remove it, or raise some")
                return state
            ballots, labels, weights, denied = ballots[positive], labels[positive], weights[positive], denied[positive]
        opened, unnamed = self._opened(state, ballots, labels), np.zeros(len(ballots), bool)
        if opened is None:
            labels = _respelled(labels, () if state is None else state.model.classes)
            distinct, inverse = distinct_labels(labels, gaps=True)
            right = [
                distinct[i] for i in np.unique(inverse[~denied]).tolist() if i >= 0
            ]  # what is wrong may be no class
            known = [*(self.classes if self.classes is not None and state is None else ()), *right]
            ballots = ballots.matched(known if state is None else [*state.model.classes, *known], self.abstain)
        else:
            ballots, distinct, right = opened.ballots, opened.ballots.named, []
            unnamed = opened.labels == opened.counts
            inverse = np.where(unnamed, np.int32(-1), opened.labels)
            unnamed &= ~denied
        if state is None and opened is None and not ballots.scored and (inverse >= 0).sum() >= ROWS_OF_IDS:
            warn_of_strangers(ballots.columns, ballots.shown, distinct)
        fixed = self._fixed(ballots, distinct) if state is None else state.fixed
        unknown = [name for name in right if fixed is not None and name not in fixed]
        if unknown:
            t = int(np.flatnonzero(inverse == distinct.index(unknown[0]))[0])
            raise ValueError(f"y: {unknown[0]!r} at trial {t} is not among the classes {list(fixed or ())!r}; add it")
        begun = state is not None
        state = self._new_state(ballots, fixed, opened is not None) if state is None else state
        voters, by_name = state.joined(ballots)
        held = read_sides(state.sides.names, ballots.sides)
        begins = state.sides.debuts(held)
        if state.sides.names:
            state.sides.joined(held, len(voters))  # refused as a whole, or not at all
        batch, raters = state.batch(ballots, voters, by_name), state.joined_raters(ballots)
        if opened is not None:
            batch = state.rated(batch, opened, raters)
        if len(ballots) < ROWS_OF_IDS and not ballots.scored and fixed is None and opened is None:
            seen = {*state.model.classes, *silent_votes(self.abstain)}
            rows = [[batch.names[vote] if vote >= 0 else None for vote in row] for row in batch.codes.tolist()]
            state.ids.see_rows(state.tally.trials, rows, voters, labels.tolist(), seen)
        state.voters, state.raters = voters, raters
        numbers = np.where(denied & (inverse >= 0), -2 - inverse, inverse)
        unlearned = (np.flatnonzero(np.diff(unnamed)) + 1).tolist()
        edges = sorted({*begins, *unlearned, *range(0, len(ballots), ROWS_TO_A_TICK), len(ballots)})
        with LateProgress("learning") as progress:
            for first, last in pairwise(edges):
                here, part = slice(first, last), batch[first:last]
                if state.sides.names:  # columns for new voters, and for the values that are new here
                    values = [column[here] for column in held]
                    state.sides = state.sides.joined(values, len(voters))
                    part = replace(part, places=state.sides.places(values, len(part)))
                if unnamed[first]:
                    state.miss(part)
                else:
                    state.advance(part, (distinct, numbers[here]), None if weights is None else weights[here])
                progress.update("learning", last / len(ballots))
        if not begun and denied.any() and not state.model.trials:
            raise ValueError("nothing could be learned: wrong answers alone, and no other class; give classes=")
        return state

    def _opened(
        self, state: FusionState | None, ballots: Ballots, labels: Sequence[Label] | np.ndarray | None
    ) -> OpenAnswers | None:
        """Return the trials as places among their own answers, or None if answers are closed."""
        one_of("answers", self.answers, ("auto", "open", "closed"))
        is_open = self.answers == "open" if state is None else state.open
        silent = silent_votes(self.abstain)
        heard = ballots.without(silent)
        if state is None and self.answers == "auto" and self.classes is None:
            meant = self.key is not None or bool(ballots.ratings)
            is_open = meant or are_open(heard, [] if labels is None else labels)
            if is_open and not meant:
                warn(
                    "answers are taken as open, since most trials bring answers never seen before: each trial has "
                    "its own candidates; pass answers='open' to confirm, or answers='closed' to fuse them as classes"
                )
        if not is_open:
            if ballots.ratings:
                raise ValueError(
                    f"votes: {next(iter(ballots.ratings))!r} rates answers by dicts, which is for open answers; pass "
                    "answers='open', or remove the column"
                )
            if self.key is not None:
                raise ValueError(f"key={self.key!r} is for open answers; pass answers='open', or remove key")
            return None
        if self.classes is not None:
            raise ValueError("classes must not be given where answers are open; remove classes, or answers='open'")
        if ballots.scored:
            raise ValueError("open answers must be votes, got scores")
        return OpenAnswers.read(heard, labels, self.key, blank="" not in silent)

    def _new_state(self, ballots: Ballots, fixed: tuple[Label, ...] | None, is_open: bool) -> FusionState:
        """Return the state for trials like these, before the first of them."""
        one_of("discover", self.discover, ("votes", "labels"))
        settings = settings_of(self.tie, self.update_on_tie, self.discover if fixed is None and not is_open else False)
        settings = replace(settings, discover=settings.discover or is_open, candidates=is_open)
        normalizer = Normalizer(self.normalize) if ballots.scored else None
        constant = 1.0 if self.thresholds and not is_open else 0.0
        raters = 0 if normalizer is None else ballots.count * len(normalizer.kinds)
        layout = Layout(0 if raters else ballots.count, raters, 0, 0, constant)
        model = Model(self.learner, layout, fixed or (), settings).follow()
        voters, sides = ballots.voters(None, False), Sides(tuple(map(str, side_columns(self.by))))
        unnamed = 0 if is_open else None
        return FusionState(model, fixed, ballots.names is not None, voters, normalizer, sides, unnamed=unnamed)

    def _fixed(self, ballots: Ballots, labels: Sequence[Label]) -> tuple[Label, ...] | None:
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

    def _read(self, votes: VoteColumns | Ballots, labels: np.ndarray | None = None) -> tuple[VoteBatch, np.ndarray]:
        """Return trials to predict, and labels as the model has them: classes, or places among the answers."""
        state = self._fitted
        ballots = read_ballots(votes, side_columns(self.by), state.raters)
        opened = self._opened(state, ballots, labels)
        if opened is not None:
            strange = next((name for name in ballots.ratings if name not in state.raters), None)
            if strange is not None:
                raise ValueError(f"votes: {strange!r} is not a known rater; partial_fit with it, or drop it")
            batch = state.rated(state.later(opened.ballots, None), opened, state.raters)
            answers = state.spelled(opened) if labels is None else None
            return replace(batch, answers=answers), label_array(opened.labels.tolist())
        found = np.zeros(0) if labels is None else _respelled(labels, state.model.classes)
        return state.later(ballots, self.abstain), found

    def _batch(self, votes: VoteColumns) -> VoteBatch:
        """Return trials to predict."""
        row = self._fitted.reader.read(votes) if self.abstain is None else None
        return self._read(votes)[0] if row is None else row

    def _one_trial(self, instance: Any) -> VoteBatch:
        return self._read(self._fitted.one_row(instance, self.by))[0]

    @property
    def classes_(self) -> np.ndarray:
        """Classes in the order of the columns of `predict_proba`: as given, or sorted; None where answers are open."""
        return as_array([] if self.is_open else self._fitted.classes)

    @property
    def is_open(self) -> bool:
        """True if every trial has its own answers."""
        return self._fitted.open

    @property
    def voters_(self) -> list[str]:
        """Names of the voters."""
        return list(self._fitted.voters)

    @property
    def raters_(self) -> list[str]:
        """Names of the raters of open answers."""
        return list(self._fitted.raters)

    @property
    def n_features_in_(self) -> int:
        """Number of voters."""
        return len(self._fitted.voters)

    @property
    def _current_model(self) -> Model:
        return self._fitted.model

    @property
    def normalizations(self) -> list[str]:
        """Normalizations under which raters enter; none for votes."""
        return [] if self._fitted.normalizer is None else list(self._fitted.normalizer.kinds)

    @property
    def labels_used_(self) -> int:
        """Number of labels learned from; a selective learner asks for some only."""
        return self._fitted.model.labels_used

    def predict(self, votes: VoteColumns, *, reject: float | None = None) -> np.ndarray:
        """Return the class of each trial; nothing is learned.

        Parameters
        ----------
        votes : table of votes or scores
            The trials.
        reject : float, optional
            Return None, "do not know", where the probability of being wrong is greater.
        """
        state, batch = self._fitted, self._batch(votes)
        found = state.predict(batch)
        if reject is None or not len(batch):
            return found
        least, answers = 1.0 - fraction("reject", reject, 0.1), np.array(found, dtype=object)
        answers[state.probabilities(batch).max(axis=1) < least] = None
        return answers

    def decision_function(self, votes: VoteColumns) -> np.ndarray:
        """Return the score of each class: (trials, classes); of two classes the second's less the first's.

        A vote adds the weight of its voter as in `weights`, whose magnitudes add up to 1; where few were asked (see
        `ask`), its weight among these.
        """
        if self.is_open:
            raise ValueError("answers are open, so there are no scores by class; use predict_proba or predict_set")
        scores = self._fitted.scores(self._batch(votes))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, votes: VoteColumns) -> np.ndarray | list[dict[Label, float]]:
        """Return the probability of each class: (trials, classes); nothing is learned.

        Where answers are open, a list with a dict from each answer of the trial to its probability; None is the
        probability that no voter is right.
        """
        batch = self._batch(votes)
        table = self._fitted.probabilities(batch)
        if batch.answers is None:
            return table
        found = [dict(zip(names, row, strict=False)) for names, row in zip(batch.answers, table.tolist(), strict=True)]
        return [shares | {None: 1.0 - sum(shares.values())} for shares in found]

    def predict_set(self, votes: VoteColumns, coverage: float = 0.9) -> list[tuple[Label, ...]]:
        """Return for each trial classes that contain the right one as often as ``coverage``, the most probable first.

        Sets widen after they have missed the label of a trial, and narrow otherwise, so that over the trials learned
        their coverage approaches the one asked for, whatever changes (Gibbs and Candes 2021;
        `linmax.theory.bounds.adaptive_coverage` bounds the difference). Coverages of 50, 60, 70, 80, 85, 90, 95, 97.5
        and 99 % are followed; others are interpolated.

        Examples
        --------
        >>> import linmax
        >>> data = linmax.datasets.majority_problem(n=20, r=10, k=5, noise=0.3, trials=1500, seed=1)
        >>> fusion = VoteFusion("AR-winnow(1.1)").fit(data.votes[:1000], data.labels[:1000])
        >>> sets = fusion.predict_set(data.votes[1000:], coverage=0.9)
        >>> covered = np.mean([label in found for label, found in zip(data.labels[1000:].tolist(), sets)])
        >>> bool(abs(covered - 0.9) < 0.04)
        True
        """
        return self._fitted.sets(self._batch(votes), coverage)

    def wants_label(self, instance: Mapping[str, Label]) -> bool:
        """Return whether the label of one trial is worth asking for: drawn by a selective learner, else True.

        If the label is wanted, `partial_fit` learns from the next one, so call this once for each trial.

        Parameters
        ----------
        instance : dict of voter to vote, or sequence
            One row of votes or of scores.

        Examples
        --------
        >>> fusion = VoteFusion("S(b=0.1)-auto").fit([["x", "y"], ["y", "x"]] * 20, ["x", "y"] * 20)
        >>> asked = sum(fusion.wants_label(["x", "y"]) for _ in range(100))
        >>> asked < 30
        True
        """
        state, batch = self._fitted, self._one_trial(instance)
        return state.model.wants_label(state.model.engine.judge(state.instances(batch))[1])

    # -- asking fewer voters --------------------------------------------------------------------------------------

    def ask(
        self,
        votes: Mapping[str, Label],
        costs: Costs = None,
        tolerance: float = TOLERANCE,
        explore: float = EXPLORE,
    ) -> str | None:
        """Return the voter to ask next about one instance, or None when asking more is not worth it.

        Parameters
        ----------
        votes : dict of voter to vote
            The votes so far, and the side columns. A voter with None was asked and abstained; an absent one was not
            asked.
        costs : dict of voter to number, optional
            Cost of asking each voter, 1 by default. The most weight for its cost comes first.
        tolerance : float, default=0.002
            Accuracy that may be given up. A stopping rule, chosen on the trials with all votes, decides when another
            vote is not worth its cost. With 0 voters are asked until those left cannot change the answer: whether they
            name any class, a new class (unless ``classes`` were given), or abstain. Only a learner with a single weight
            vector, such as "winnow(1.1)", can decide that; any other, the default included, asks all.
        explore : float, default=0.05
            Share of the instances at which one voter from outside the panel is asked as well, the one asked least or
            the one right most often, so that a voter that improves is found. Not with ``tolerance=0``.

        Notes
        -----
        Learn such a trial from these votes: ``partial_fit({name: [vote] for ...}, [label])``. A voter that is not among
        the columns, or whose vote is ``...`` (in a table of many trials), was not asked and keeps its weight. With a
        tolerance, instances with the votes of the panel alone are answered, and learned, by models of its first voters;
        with ``tolerance=0`` by the model of all voters. Where raters accompany open answers, the tolerance must be 0.

        Examples
        --------
        >>> import linmax
        >>> data = linmax.datasets.majority_problem(n=20, r=3, k=3, trials=500, seed=1)
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
        if state.raters and tolerance > 0.0:
            raise ValueError(
                f"tolerance={tolerance:g} requires votes alone, and answers are rated by {state.raters[0]!r}; ask with "
                "tolerance=0"
            )
        cast = {str(name): vote for name, vote in votes.items()} if isinstance(votes, Mapping) else votes
        rated = {name: cast.pop(name, None) for name in state.raters} if isinstance(cast, dict) else {}
        asked, prices = asked_among(cast, state.voters, state.sides.names), read_costs(costs, state.voters)
        choice = Choice.read(tolerance, costs, state.voters) if tolerance > 0.0 and not state.sides.names else None
        cells = dict.fromkeys([*state.sides.names, *state.voters]) | cast | rated  # voters not yet queried abstain
        row = state.reader.row(dict(cells)) if self.abstain is None else None
        batch = self._read(state.so_far(cells))[0] if row is None else row
        state.asking.choose(choice)
        codes, question = state._codes(batch)[0], partial(state.question, batch, asked)
        voter = Inquiry(state, codes, asked, question, tolerance, prices, explore, choice).next()
        return None if voter is None else str(voter)

    @property
    def recent_rows(self) -> int:
        """Number of recent trials, with the usual number of votes, on which panels are compared."""
        return len(self._fitted.recent.rows()[1])

    def panel(self, costs: Costs = None) -> VoterPanels:
        """Return how few voters are enough: for m = 1, 2, ... the voters, their cost, and their accuracy alone.

        The voters are taken in order of weight for cost. Each panel's accuracy is online, by the same learner started
        on the votes of these alone, in up to 1,000 of the last trials in which voters were asked as usual; the first
        fifth of them is not counted.

        Examples
        --------
        >>> import linmax
        >>> data = linmax.datasets.majority_problem(n=20, r=3, k=2, trials=500, seed=1)
        >>> panel = linmax.VoteFusion().fit(data.votes, data.labels).panel()
        >>> sorted(panel[2].voters), panel[2].accuracy > 0.95, len(panel.enough().voters)
        (['0', '1', '2'], True, 3)
        """
        state = self._fitted
        if state.normalizer is not None:
            raise ValueError("panel() needs votes; this fusion was fitted to scores")
        return state.asking.compared(state, read_costs(_by_text(costs), state.voters))()

    # -- reports --------------------------------------------------------------------------------------------------

    @overload
    def weights(self, *, copies: Literal[False] = False) -> dict[str, float]: ...

    @overload
    def weights(self, *, copies: Literal[True]) -> dict[str, dict[str, float]]: ...

    def weights(self, *, copies: bool = False) -> dict[str, float] | dict[str, dict[str, float]]:
        """Return the weight of each voter, the largest first; their magnitudes add up to 1.

        Raters of open answers follow, each with what a score of 1 adds, in the same unit.

        With ``copies`` a dict for each rater: its weight under each normalization; or, with side columns, for each
        voter: its weight where each value holds, of which the weight without ``copies`` is the mean over the trials
        learned. A learner that is not a single weight vector raises ValueError.
        """
        state = self._fitted
        table = state.shares()
        order = np.argsort(-np.abs(table.sum(axis=1)), kind="stable")
        if not copies:
            return {state.voters[i]: float(table[i].sum()) for i in order} | state.rater_weights()
        if state.sides.names:
            by = state.shares_by()
            return {state.voters[i]: {value: float(weights[i]) for value, weights in by.items()} for i in order}
        kinds = state.normalizer.kinds if state.normalizer is not None else ("vote",)
        return {state.voters[i]: dict(zip(kinds, table[i].tolist(), strict=True)) for i in order}

    def explain(self, instance: Mapping[str, Label]) -> Explanation:
        """Return which voters moved the decision on one trial, and by how much.

        Parameters
        ----------
        instance : dict of voter to vote, or sequence
            One row of votes or of scores.

        Examples
        --------
        >>> import linmax
        >>> fusion = linmax.VoteFusion("winnow(1.5)").fit([["x", "y"], ["x", "y"], ["y", "x"]], ["x", "x", "y"])
        >>> explanation = fusion.explain(["y", "x"])
        >>> explanation.winner, explanation.contributions["0"] > 0 > explanation.contributions["1"]
        ('y', True)
        """
        return self._fitted.explain(self._one_trial(instance))

    def report(self, votes: VoteColumns | None = None, y: Labels | None = None, *, costs: Costs = None) -> Report:
        """Compare the fusion with plurality, soft voting, the best voters and a logit.

        Parameters
        ----------
        votes, y : table of votes and sequence of labels, optional
            Held-out trials to score as well; nothing is learned from them. There the best voter in hindsight is the
            best on them, and the best so far the one that led when learning ended.
        costs : dict of voter to number, optional
            Cost of asking each voter, by which panels are ordered.

        Notes
        -----
        Intervals are those of Agresti and Min for paired trials. They assume independent trials, which those of a
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
            weights = {name: weight for name, weight in self.weights().items() if name not in state.raters}
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
            Details.of(state.tally, state.voters, state.stored_rows(), panels, costs is not None),
        )

    def _held_out(self, votes: VoteColumns, y: Labels | None) -> tuple[VoteBatch, np.ndarray]:
        """Return trials that are not learned, and their labels."""
        ballots = read_ballots(votes, side_columns(self.by), self._fitted.raters)
        labels = labels_given(y, len(ballots))
        distinct_labels(labels)  # refuses what is no label
        return self._read(ballots, labels)

    def plot(self, path: PathLike | None = None) -> Figure:
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

    def plot_reliability(
        self, path: PathLike | None = None, *, votes: VoteColumns | None = None, y: Labels | None = None
    ) -> Figure:
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
        """Return the parameters and all that was learned, if anything: plain data that JSON can hold, and arrays."""
        state: FusionState | None = getattr(self, "_state", None)
        learned, arrays = (None, {}) if state is None else state.parts()
        parameters = {**self.get_params(), "learner": str(as_learner(self.learner)), "key": stored_key(self.key)}
        normalize, by, abstain = self.normalize, self.by, self.abstain
        if not isinstance(normalize, str):
            parameters["normalize"] = list(normalize)
        if not isinstance(by, (str, int, type(None))):
            parameters["by"] = [column if isinstance(column, str) else int(column) for column in side_columns(by)]
        parameters = _with_labels(parameters, files.plain)
        parameters["abstain"] = (
            sorted(map(files.plain, abstain), key=repr)
            if isinstance(abstain, (set, frozenset))
            else files.plain(abstain)
        )
        return {"parameters": parameters, "state": learned}, arrays

    @classmethod
    def from_state(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """Return the fusion whose `state` this was."""
        parameters, learned = _with_labels(description["parameters"], files.named), description["state"]
        abstain = parameters["abstain"]
        several = isinstance(abstain, list)
        parameters["abstain"] = {files.named(label) for label in abstain} if several else files.named(abstain)
        fusion = cls(**parameters | {"key": opened_key(parameters["key"])})
        if learned is not None:
            fusion._state = FusionState.restored(learned, arrays)
        return fusion

    # -- files ----------------------------------------------------------------------------------------------------

    def save(self, path: PathLike) -> None:
        """Save the fusion and all that it has learned to one file of arrays and plain data.

        Labels may be text, numbers, truth values and tuples of these. A loaded fusion resumes bit for bit.
        """
        _ = self._fitted  # raises NotFittedError
        files.write(path, FUSION_KIND, *self.state())

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Load a fusion from a file that `save` wrote.

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
            fusion = cls.from_state(description, arrays)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)} does not hold a whole VoteFusion: {error}") from None
        if not fusion.__sklearn_is_fitted__():
            raise ValueError(f"{os.fspath(path)} does not hold a whole VoteFusion: it has learned nothing")
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


OnLineFusion = VoteFusion
