"""What a `VoteFusion` has learned, and how it goes on, trial by trial."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from linmax.core.contract import KNOWN
from linmax.data.experts import Experts
from linmax.data.id_votes import IdWatch
from linmax.data.labels import as_array, labels_with_gaps
from linmax.data.normalisation import Normaliser
from linmax.data.side_columns import Sides
from linmax.engine.engine import Engine
from linmax.models.asking.asking import Asking
from linmax.models.asking.few import Few
from linmax.models.asking.question import newcomer
from linmax.models.asking.recent import Recent
from linmax.models.experts_model import ExpertsModel
from linmax.models.fusion.comparison import Comparison, Tally
from linmax.models.fusion.diversity import RaterDiversity
from linmax.models.fusion.logit import LogitRival
from linmax.models.fusion.row_reader import RowReader
from linmax.models.fusion.shares import unit, voter_of, voter_weights
from linmax.models.fusion.trials import VoteBatch, in_order
from linmax.models.model import chosen
from linmax.models.reliability import Reliability, reliability
from linmax.util.names import apart

__all__ = ["FusionState"]


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
    asking: Asking = field(default_factory=Asking)
    diversity: RaterDiversity = field(default_factory=RaterDiversity)
    logit: LogitRival = field(default_factory=LogitRival)
    ids: IdWatch = field(default_factory=IdWatch)
    _reader: RowReader | None = field(default=None, init=False)
    _newcomer: Engine | None = field(default=None, init=False)  # until something is learned

    def parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All of it as plain data and arrays."""
        return self._described(*self.model.state())

    def _described(
        self, header: dict[str, Any], state: dict[str, np.ndarray]
    ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The state of the model, and what is the fusion's own."""
        told, asking = self.asking.state()
        blocks = {
            "model": state,
            "tally": self.tally.arrays,
            **asking,
            "normaliser": {} if self.normaliser is None else self.normaliser.arrays,
            "raters": self.diversity.arrays,
            "logit": self.logit.arrays,
            "sides": {"columns": self.sides.columns, "counts": self.sides.counts},
        }
        description = {
            "model": header,
            "fixed": self.fixed,
            "named": self.named,
            "voters": list(self.voters),
            "kinds": None if self.normaliser is None else list(self.normaliser.kinds),
            **self.sides.description,
            **told,
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
        tally, asking = Tally.restored(blocks["tally"]), Asking.restored(description, blocks)
        if "told" not in blocks.get("recent", {}):  # stored before they were counted
            asking.recent.told = tally.trials
        return cls(
            ExpertsModel.from_state(description["model"], blocks["model"]),
            None if description["fixed"] is None else tuple(description["fixed"]),
            description["named"],
            tuple(description["voters"]),
            normaliser,
            sides,
            tally,
            asking,
            RaterDiversity(**blocks["raters"]),
            LogitRival.restored(blocks.get("logit", {})),
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

    @property
    def recent(self) -> Recent:
        """The latest trials."""
        return self.asking.recent

    @property
    def few(self) -> Few | None:
        """Those asked, where voters are asked one by one and some accuracy may be given up."""
        return self.asking.current(self)

    def worth(self) -> np.ndarray:
        """See `linmax.models.asking.asking.AskingModel`."""
        return voter_weights(self)

    def welcome(self, held: Sequence[Sequence[Any]]) -> None:
        """Make columns for the voters, and for the values of the side columns at the trials to come."""
        if self.sides.names:
            self.sides = self.sides.joined(held, len(self.voters))

    def placed(self, batch: VoteBatch, held: Sequence[Sequence[Any]]) -> VoteBatch:
        """The batch with the values of the side columns as they are numbered now."""
        return replace(batch, places=self.sides.places(held, len(batch))) if self.sides.names else batch

    def advance(self, batch: VoteBatch, labels: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Learn from these trials, as many at a time as there is room for; they count as much as ``weights`` say.

        The model of a few knows no weights: with them, the model of all learns every trial.
        """
        self._newcomer = None
        if self.asking.choice is None or weights is not None:
            self._advance_all(batch, labels, weights)
            return
        # Trials in which all were asked are learned together; of the others each one may be for the few.
        whole = np.asarray(batch.asked.all(axis=1))
        edges = [t for t in range(1, len(batch)) if not (whole[t] and whole[t - 1])]
        for begin, end in pairwise([0, *edges, len(batch)]):
            part, label = batch[begin:end], labels[begin:end]
            few = None if whole[begin] else self._few_for(part, label[0])
            if few is None:
                self._advance_all(part, label, None)
            else:
                self._advance_few(few, part, label)

    def _few_for(self, batch: VoteBatch, label: Any) -> Few | None:
        """The few, if this one trial is for them."""
        met = set(self.model.known)
        said = [batch.names[vote] for vote in batch.said[0].tolist() if vote >= 0]
        return self.asking.for_few(self, batch.asked[0]) if label in met and met.issuperset(said) else None

    def _advance_few(self, few: Few, batch: VoteBatch, labels: np.ndarray) -> None:
        place = self.model.classes.index(labels[0])
        predicted = self.asking.learn_few(few, self._codes(batch)[0], batch.asked[0], place)
        self.count(self.tally, batch, labels, np.array([predicted == place]), few=True)

    def _advance_all(self, batch: VoteBatch, labels: np.ndarray, weights: np.ndarray | None) -> None:
        wrong = np.zeros(len(batch), bool)
        for begin in range(0, len(batch), self.sides.stretch()):
            part = slice(begin, begin + self.sides.stretch())
            weights_here, instances = None if weights is None else weights[part], self.laid_out(batch[part])
            wrong[part] = self.model.run(instances, labels[part], grow=True, weights=weights_here).wrong
        self.sides = self.sides.counted(batch.places)
        told = labels_with_gaps(labels)[1] >= 0
        self.count(self.tally, batch.taken(told), labels[told], ~wrong[told])

    def _of_few(self, batch: VoteBatch) -> np.ndarray:
        """Which trials the models of a few answer: few votes, and all for known classes."""
        if self.asking.choice is None or batch.asked.all() or self.few is None:
            return np.zeros(len(batch), bool)
        met = set(self.model.known)
        strange = np.array([name not in met for name in batch.names] + [False])
        return self.few.asked(batch.asked) & ~strange[batch.said].any(axis=1)

    def _codes(self, batch: VoteBatch) -> np.ndarray:
        """Votes by the model's numbers."""
        place = {name: i for i, name in enumerate(self.model.classes)}
        return np.array([*(place.get(name, -1) for name in batch.names), -1], np.int32)[batch.said]

    def learn_row(self, votes: Any, y: Any) -> bool:
        """Learn from one row of votes whose voters, classes and label are all known; False if it is anything else.

        The same as `advance` on it, at a small part of the price.
        """
        if self.sides.names or self.normaliser is not None or len(self.voters) != self.model.layout.voters:
            return False
        if self._reader is None or not self._reader.fits(self):
            self._reader = RowReader(self)
        reader, known = self._reader, int(self.model.engine.state.shape[KNOWN])
        place = reader.label(y)
        codes, asked = reader.codes(votes) if 0 <= place < known else (None, None)
        if codes is None or asked is None or (known < len(reader.classes) and codes.max(initial=-1) >= known):
            return False
        self._newcomer = None
        labels = np.array([place], np.int32)
        few = self.asking.for_few(self, asked[0])
        if few is not None:
            right = np.array([self.asking.learn_few(few, codes[0], asked[0], place) == place])
        else:
            right = self.model.play(reader.instances(codes), labels).predictions == labels
            self.asking.learn_all(codes, asked, labels)
        self.tally.add(right, reader.order[codes], reader.order[labels], len(reader.order) - 1)
        self.logit.add_row(codes, labels, right)
        return True

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
        few: bool = False,
    ) -> None:
        """Count who was right; what only these voters or labels name is a class too. Those for a ``few`` are kept."""
        names = labels.tolist()
        # Plurality breaks ties by the order of the classes, which must not hang on when each of them was met.
        met = [*self.model.classes, *batch.names, *names]
        classes = list(dict.fromkeys(met)) if self.fixed is not None else in_order(met)
        place = {name: i for i, name in enumerate(classes)}
        said = np.array([*(place[name] for name in batch.names), -1], np.int32)[batch.said]
        told = np.array([place[name] for name in names])
        soft = None if batch.soft is None else np.array([place[name] for name in batch.names])[batch.soft] == told
        tally.add(right, said, told, len(classes), leaders, soft)
        if tally is self.tally:  # by the model's numbers, which stay what they are when classes join
            place = {name: i for i, name in enumerate(self.model.classes)}
            said, told = self._codes(batch), np.array([place[name] for name in names], np.int64)
            if not few:
                self.asking.learn_all(said, batch.asked, told)
            self.logit.add(said, told, right, batch.logs)

    def compared(self, seed: int, held: tuple[VoteBatch, np.ndarray] | None = None) -> Comparison:
        """The fusion beside its rivals, on-line, or on held-out trials and their labels."""
        random, k = np.random.default_rng(seed), len(self.model.classes)
        if held is None:
            comparison, logit = self.tally.compare(self.voters, seed), self.logit.online(k, random)
        else:
            batch, labels = held
            right, tally = self.predict(batch) == labels, Tally(len(self.voters))
            self.count(tally, batch, labels, right, self.tally.leaders)
            comparison = tally.compare(self.voters, seed, self.tally.leaders)
            place = {name: i for i, name in enumerate(self.model.classes)}
            said = self._codes(batch)
            told = np.array([place.get(name, -1) for name in labels.tolist()])
            logit = self.logit.held_out(said, batch.logs, told, right, k, random)
        return comparison if logit is None else replace(comparison, rivals={**comparison.rivals, "logit": logit})

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
        for trials, model, part in self.parts_of(batch):
            scores = model.rates(part)
            for t, names in zip(trials, chosen(scores, model.sets(scores, coverage), model.classes), strict=True):
                found[t] = names
        return found

    def predict(self, batch: VoteBatch) -> np.ndarray:
        """The class of each trial."""
        found = np.empty(len(batch), dtype=object)
        for trials, model, part in self.parts_of(batch):
            found[trials] = model.predict(part).tolist()
        return as_array(found.tolist())

    def scores(self, batch: VoteBatch) -> np.ndarray:
        """Scores in units of the weight of those who may speak; -inf for classes that are not yet known."""
        return self._table(batch, self._rated)

    def _rated(self, model: ExpertsModel, instances: Experts) -> np.ndarray:
        few = model is not self.model and self.few is not None and any(model is own for own in self.few.models)
        try:
            total, factor = unit(self, model if few else None)
        except ValueError:  # the learner is not a single weight vector: its scores have their own unit
            total, factor = 1.0, 1.0
        return model.rates(instances) / (total * factor)

    def judge_of(self, batch: VoteBatch) -> tuple[ExpertsModel, Experts, np.ndarray]:
        """What answers one trial: a model, the trial as it takes it, and the voter of each of its columns."""
        few = self.few if self._of_few(batch)[0] else None
        if few is not None:
            votes, step = self._codes(batch), int(few.steps(batch.asked)[0])
            return few.models[step], few.instances(votes, step), np.array(few.columns(step))
        return self.model, self.known(self.laid_out(batch)), voter_of(self)

    def _table(self, batch: VoteBatch, judge: Callable[[ExpertsModel, Experts], np.ndarray]) -> np.ndarray:
        """What the model says of each of `classes` for each trial."""
        classes = self.classes
        table = np.zeros((len(batch), len(classes)))
        for trials, model, part in self.parts_of(batch):
            place = {name: i for i, name in enumerate(model.classes)}
            table[trials] = judge(model, part)[:, [place[name] for name in classes]]
        return table

    def parts_of(self, batch: VoteBatch) -> Iterator[tuple[np.ndarray, ExpertsModel, Experts]]:
        """Trials as the model knows them, as many at a time as there is room for.

        Where votes name classes that are not yet known, a guest takes its place that has met these.
        """
        known, size = set(self.model.known), self.sides.stretch()
        strange = np.array([name not in known for name in batch.names] + [False])
        guests = strange[batch.said].any(axis=1) if self.model.engine.settings.by_votes else np.zeros(len(batch), bool)
        few = self._of_few(batch)
        chosen = self.few if few.any() else None
        if chosen is not None:
            trials, codes = np.flatnonzero(few), self._codes(batch.taken(few))
            steps = chosen.steps(batch.asked[few])
            for step in np.unique(steps).tolist():
                yield trials[steps == step], chosen.models[step], chosen.instances(codes[steps == step], step)
        usual = np.flatnonzero(~guests & ~few)
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

    def hosting(self, voters: tuple[str, ...], batch: VoteBatch) -> FusionState:
        """A copy to judge these trials by, with voters who are new as guests; this one stays."""
        other = copy(self)
        other.voters, other.asking, other._newcomer = voters, Asking(), None
        other.sides = self.sides.joined([[] for _ in self.sides.names], len(voters)) if self.sides.names else self.sides
        other.model = self.model.visited(other.laid_out(batch).layout, (), ())
        return other

    def newcomer(self, model: ExpertsModel) -> Engine:
        """Like the engine of the model, with one more class that a vote has named; kept until something is learned."""
        if model is not self.model:
            return newcomer(model, model.layout)
        if self._newcomer is None:
            self._newcomer = newcomer(model, model.layout)
        return self._newcomer

    def held(self, places: np.ndarray) -> dict[str, Any]:
        """The values of the side columns at one trial; None for one that is missing or was never met."""
        named = zip(self.sides.names, places.tolist(), strict=True)
        return {name: self.sides.values[place][1] if place >= 0 else None for name, place in named}
