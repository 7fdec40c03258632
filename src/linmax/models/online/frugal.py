"""What a `Learner` of votes alone keeps to ask fewer voters, and the trials of the few who are asked."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from linmax.core.contract import Instances
from linmax.engine.record import note_all
from linmax.models.asking import Asking
from linmax.models.model import Model
from linmax.models.online.named import Named
from linmax.models.online.reading import Given, Votes, said
from linmax.util.names import apart

__all__ = ["FrugalTrials"]

HeardVotes = dict[Any, Any] | np.ndarray  # by name, or as places of classes, those of all voters
MOST_ASKED = 1000  # of whom trials are kept
NOTED_TOGETHER = 256  # trials taken in at a time


class FrugalTrials(Named):
    """Trials of voters alone, kept for `Learner.ask` and `Learner.panel`."""

    _asking: Asking
    _heard: list[tuple[HeardVotes, Hashable]]  # votes and labels not yet taken in

    @property
    def model(self) -> Model:
        """The model under it."""
        raise NotImplementedError

    @property
    def trials(self) -> int:
        """Labels learned from so far."""
        return super().trials + self._asking.of_few

    def _renamed(self) -> None:
        super()._renamed()
        many = len(self._voters) > MOST_ASKED
        self._of_votes = bool(self._voters) and not (self._attributes or self._raters or self._choosing or many)
        if not self._of_votes and (self._heard or self._asking.recent.told):
            self._heard, self._asking = [], Asking()
        self._short = self._short and self._asking.choice is None

    def _asking_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What is kept, as plain data and arrays; nothing of other learners."""
        asking = self._asked()
        if not asking.recent.told and asking.choice is None:
            return {}, {}
        told, blocks = asking.state()
        named = ((f"asking.{block}.{name}", a) for block, arrays in blocks.items() for name, a in arrays.items())
        return {"asking": told}, dict(named)

    def _restore_asking(self, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Keep what `_asking_state` gave."""
        self._heard = []
        self._asking = Asking.restored(description.get("asking", {}), apart(apart(arrays).get("asking", {})))

    @property
    def asking(self) -> Asking:
        """What is kept to ask fewer voters; for the rest of the library."""
        return self._asked()

    def worth(self) -> np.ndarray:
        """See `linmax.models.asking.AskingModel`."""
        try:
            weights = self.weights.arrays.voters
        except ValueError:  # not a single weight vector
            return self._asked().recent.accuracy_lately(len(self._voters))
        total = np.abs(weights).sum()
        return np.asarray(weights / total if total > 0.0 else weights)

    def _hear(self, votes: Votes, label: Hashable) -> None:
        """Note a trial that has been learned."""
        if votes is None:
            return
        self._heard.append((dict(votes) if isinstance(votes, Mapping) else dict(enumerate(votes)), label))
        if len(self._heard) >= NOTED_TOGETHER:
            self._asked()

    def _hear_taught(self, votes: Votes, label: Hashable) -> None:
        """The same of the trial that the path was taught last, which has read the votes."""
        if votes is None or self._path is None or len(votes) < len(self._voters):
            self._hear(votes, label)
            return
        self._heard.append((self._path.taught_votes().copy(), label))
        if len(self._heard) >= NOTED_TOGETHER:
            self._asked()

    def _asked(self) -> Asking:
        """What is kept, with all trials so far."""
        if self._heard:
            heard, self._heard = self._heard, []
            labels = np.array([self._places[label] for _, label in heard], np.int32)
            self._asking.learn_all(*self._in_columns([votes for votes, _ in heard]), labels)
        return self._asking

    def _in_columns(self, rows: Sequence[HeardVotes]) -> tuple[np.ndarray, np.ndarray]:
        """Rows of votes as places of classes, -1 for silence, and who was asked: voters and classes are known."""
        shape, places = (len(rows), len(self._voters)), self._places | {None: -1}
        if {*map(len, rows)} == {shape[1]} and dict not in {*map(type, rows)}:
            return np.array(rows, np.int32), np.ones(shape, bool)
        codes, asked = np.full(shape, -1, np.int32), np.zeros(shape, bool)
        for t, row in enumerate(rows):
            there: Any = slice(len(row))  # further voters have joined since
            if isinstance(row, dict):
                there = list(map(self._voters.__getitem__, row))
            codes[t, there] = list(map(places.__getitem__, row.values())) if isinstance(row, dict) else row
            asked[t, there] = True
        return codes, asked

    def _heard_from(self, votes: Mapping[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
        """The same of one row, of known voters; a class that is not known is silence."""
        codes, asked = self._in_columns(
            [{name: vote if vote in self._places else None for name, vote in votes.items()}]
        )
        return codes[0], asked[0]

    def _for_all(self, given: Given) -> bool:
        """Whether a trial is none for the few, whoever they are: it has a name or a class that is new."""
        if self._asking.choice is None or given.attributes or given.scores or given.votes.keys() - self._voters.keys():
            return True
        return not self._known.keys() >= set(said(given.votes).values())

    def _judged_by_few(self, given: Given) -> tuple[Model, Instances] | None:
        """The model of the few that answers this trial, and the instance in its columns."""
        if self._for_all(given):
            return None
        codes, asked = self._heard_from(given.votes)
        few = None if asked.all() else self._asked().current(self)
        if few is None or not few.asked(asked[None])[0]:
            return None
        step = int(few.steps(asked[None])[0])
        return few.models[step], few.instance(codes, step)

    def _learned_by_few(self, given: Given, place: int, served: int | None) -> int | None:
        """Learn a trial of the few; the class that was predicted, or None if it is for the model of all."""
        if self._for_all(given):
            return None
        codes, asked = self._heard_from(given.votes)
        asking = self._asked()
        few = asking.for_few(self, asked)
        if few is None:
            return None
        predicted = asking.learn_few(few, codes, asked, place)
        answer = predicted if served is None else served
        note_all(self._model.record, np.array([answer], np.int32), np.array([place], np.int32))
        return predicted
