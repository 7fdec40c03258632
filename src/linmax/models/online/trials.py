"""One trial of a model whose columns go by name: judged and learned, in compiled code where there is a path for it."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from linmax.core.contract import Instances
from linmax.data.arrays import Layout, no_instances
from linmax.data.labels import no_label
from linmax.engine.engine import Engine
from linmax.engine.one_trial.choice import path_for
from linmax.engine.one_trial.path import LARGE, REFUSED, NamePlaces
from linmax.models.model import Model
from linmax.models.online.frugal import FrugalTrials
from linmax.models.online.reading import (
    UNSET,
    Attributes,
    Given,
    Scores,
    Votes,
    check_places,
    check_rows,
    numbered,
    said,
)

__all__ = ["NamedTrials"]

SAFE = nullcontext()
PLAIN_TYPES = (float, int)


class NamedTrials(FrugalTrials):
    """How a `Learner` judges and learns one instance."""

    @property
    def model(self) -> Model:
        """The model under it, with the recent instances in their place; for the rest of the library."""
        self._settle()
        return self._model

    @property
    def engine(self) -> Engine:
        """The engine, with the recent instances in their place; for the rest of the library."""
        self._settle()
        return self._engine

    def _judge(self, given: Given) -> tuple[Model, np.ndarray, np.ndarray]:
        """The model that judged, its predictions and scores. The state stays as it is: whoever is new is a guest."""
        model, engine, instance = self._judging(given)
        return model, *engine.judge(instance, 1)

    def _judging(self, given: Given) -> tuple[Model, Engine, Instances]:
        """The model that judges an instance, the engine that does it, and the instance in its columns."""
        if self._asking.choice is not None:
            found = self._judged_by_few(given)
            if found is not None:
                return found[0], found[0].engine, found[1]
        known, blocks = (self._attributes, self._voters, self._raters), list[Mapping[Any, Any]](given)
        voted = self._voted(given.votes)
        fresh = any(block.keys() - names.keys() for block, names in zip(blocks, known, strict=True))
        if not voted and (self._from_zero or not fresh):
            return self._model, self._engine, self._instances(given)
        layout, guests = self._guests(known, blocks)
        if not voted:
            return self._model, self._engine.hosting(layout), self._instances(given, layout, guests)
        rated = [name for row in given.scores.values() for name in row]
        model = self._model.visited(layout, [*voted, *rated], voted)
        places = {name: place for place, name in enumerate(model.classes)}
        return model, model.engine, self._instances(given, layout, guests, places)

    def _rated(self, attributes: Attributes, votes: Votes, scores: Scores) -> tuple[Model, np.ndarray]:
        """The model that judges an instance, and its scores of the classes that may be predicted."""
        path = self._path
        if self._short and scores is None and (path is None or path.asked is not None):
            answered = self._ask(attributes, votes) is not REFUSED or self._again(attributes, votes) is not REFUSED
            if answered and self._path is not None and self._path.asked is not None:
                return self._model, self._path.asked[:, : len(self._known)].copy()
        model, _, table = self._judge(self._reading.read(attributes, votes, scores))
        return model, table[:, : len(model.known)]

    def _guests(
        self, known: Sequence[dict[Any, int]], blocks: Sequence[Mapping[Any, Any]]
    ) -> tuple[Layout, list[Mapping[Any, int]]]:
        """Columns for all names, with those that are new behind the others."""
        fresh = [[name for name in block if name not in names] for block, names in zip(blocks, known, strict=True)]
        guests: list[Mapping[Any, int]] = [
            ChainMap({name: len(names) + place for place, name in enumerate(new)}, names)
            for new, names in zip(fresh, known, strict=True)
        ]
        attributes, voters, raters = map(len, guests)
        return Layout(voters, raters, 0, attributes, self._engine.layout.constant), guests

    def _judge_with(self, model: Model, given: Given) -> np.ndarray:
        """The scores by this model or a copy of it, whose classes are places; whoever is new is a guest."""
        known, blocks = (self._attributes, self._voters, self._raters), list[Mapping[Any, Any]](given)
        layout, guests = self._guests(known, blocks)
        places = {place: place for place in range(len(model.classes))}
        engine = model.engine if layout == model.layout else model.engine.hosting(layout)
        return engine.judge(self._instances(given, layout, guests, places), 1)[1]

    def _learn(self, given: Given, label: Hashable, served: Hashable = UNSET, weight: float = 1.0) -> Any:
        self._alone()
        if not self.fixed:
            self._ids.see(self.trials, given.votes, self._places, label)
        place = -1 if no_label(label) else self._known.get(label, -1)
        if place >= 0 and weight == 1.0 and self._asking.choice is not None:
            number = self._learned_by_few(given, place, None if served is UNSET else self._places.get(served, -1))
            if number is not None:
                return self.classes[number] if number >= 0 else None
        model, met = self._model, [len(names) for names in self._all_names]
        try:
            layout = self._columns(given)
            labels = [] if no_label(label) else [label.item() if isinstance(label, np.generic) else label]
            for name in labels:
                self._class(name)
            model.grow(layout, self._places)
        except ValueError:  # too wide for a rule that keeps a matrix
            for names, count in zip(self._all_names, met, strict=True):
                while len(names) > count:
                    names.popitem()
            raise
        model.meet(labels, self._voted(given.votes))
        self._places = {name: place for place, name in enumerate(model.classes)}
        try:
            predicted = self._play(self._instances(given), self._places[label] if labels else -1, served, weight)
        finally:
            self._renamed()
        if labels and self._of_votes:
            self._hear(given.votes, labels[0])
        self._asking.changed()
        return predicted

    def _unharmed(self, given: Given) -> AbstractContextManager[None]:
        """Roll back if huge numbers carry the weights out of the range of floats."""
        return self._rolled_back() if given.largest > LARGE else SAFE

    @contextmanager
    def _rolled_back(self) -> Iterator[None]:
        try:
            with self._model.rolled_back():
                yield
        except OverflowError:
            self._prepare()
            raise

    def _widened(self, numbers: Mapping[Any, float], voted: Mapping[Any, Any]) -> bool:
        """Give new attributes their columns, if nothing else is new and there is a one-trial path; whether there is."""
        engine, met = self._engine, self._attributes
        layout = engine.layout
        new = [name for name in numbers if name not in met]
        if not new or not layout.sparse or not self._short:
            return False
        if voted and not (voted.keys() <= self._voters.keys() and self._places.keys() >= set(said(voted).values())):
            return False
        wider = Layout(layout.voters, layout.raters, 0, layout.sparse + len(new), layout.constant, layout.names)
        stays = self._path is not None and wider.rows <= engine.capacity
        if not stays:
            self._alone()
        engine.grow(wider, engine.k)
        for place, name in enumerate(new, layout.sparse):
            met[name] = place
        if stays:
            return True
        self._renamed()
        return self._open(numbers, voted or None)

    def _new_attributes(self, attributes: Attributes, votes: Votes, label: Hashable) -> bool:
        """`_widened` for a plain dict of plain numbers, without reading it first."""
        if self._path is None or votes is not None or type(attributes) is not dict or self._bounded is not None:
            return False
        try:
            if label not in self._known:
                return False
        except TypeError:  # not hashable
            return False
        for value in attributes.values():
            if type(value) not in PLAIN_TYPES or not -LARGE <= value <= LARGE:
                return False
        return self._widened(attributes, {})

    def _play(self, played: Instances, place: int, served: Hashable = UNSET, weight: float = 1.0) -> Any:
        """Learn one instance; a mistake is counted against what was ``served`` for it, if that was at another time."""
        self._alone()
        answers = None if served is UNSET else np.array([self._places.get(served, -1)], np.int32)
        weights, label = np.array([weight]), np.array([place], np.int32)
        number = int(self._model.play(played, label, served=answers, weights=weights).predictions[0])
        return self.classes[number] if number >= 0 else None

    def _play_known(self, played: Instances, votes: Votes, label: Hashable, weight: float = 1.0) -> Any:
        """Learn one instance whose names and label are all known."""
        predicted = self._play(played, self._known[label], weight=weight)
        if self._of_votes:
            self._hear(votes, label)
        return predicted

    def _at_once(self, attributes: Attributes, votes: Votes, scores: Scores) -> Instances | None:
        """The arrays of an instance whose names are all known, or None."""
        layout = self._engine.layout
        if (
            self._choosing
            or self._asking.choice is not None
            or scores is not None
            or layout.raters
            or (self._bounded is not None and attributes is not None)
        ):
            return None
        try:
            codes = self._codes(votes)
            if attributes is None:
                return None if votes is None else self._of_voters(codes)
            if not isinstance(attributes, Mapping):
                return None
            columns = np.array([self._attributes[name] for name in attributes], np.int32)
            values = np.array(list(attributes.values()), np.float64)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            return None
        if values.ndim != 1 or not (np.abs(values) <= LARGE).all():
            return None
        indptr = np.array([0, len(columns)] if layout.sparse else [], np.int64)
        return self._of_voters(codes)._replace(indptr=indptr, indices=columns, values=values)

    def _codes(self, votes: Votes) -> np.ndarray:
        """The place that each voter voted for, in the order of the voters."""
        if votes is None or isinstance(votes, dict):
            codes = np.full((1, len(self._voters)), -1, np.int32)
            if votes:
                there = list(map(self._voters.__getitem__, votes))
                codes[0, there] = list(map(self._chosen.__getitem__, votes.values()))
            return codes
        if len(votes) != len(self._voters) or self._count_numbered() < len(votes):
            raise KeyError
        places = map(self._chosen.__getitem__, votes.tolist() if isinstance(votes, np.ndarray) else votes)
        return np.array([list(places)], np.int32)

    def _again(self, attributes: Attributes, votes: Votes, *label: Hashable) -> Any:
        """Try the short way once more, if the instance can be written more simply or a path be set up."""
        if label and self._new_attributes(attributes, votes, *label):
            predicted = self._teach(attributes, votes, *label)
            if predicted is not REFUSED:
                return predicted
        given = [block.tolist() if type(block) is np.ndarray else block for block in (attributes, votes)]
        if given[0] is not attributes or given[1] is not votes:
            predicted = self._teach(*given, *label) if label else self._ask(*given)
            if predicted is not REFUSED:
                return predicted
        if not self._open(*given):
            return REFUSED
        return self._teach(*given, *label) if label else self._ask(*given)

    def _open(self, attributes: Attributes, votes: Votes) -> bool:
        """Set up a one-trial path for an instance whose names are all known; whether there is a new one."""
        engine = self._engine
        if not self._short:
            return False
        numbers = attributes.values() if type(attributes) is dict else attributes if type(attributes) is list else ()
        count = len(numbers)
        largest = max((abs(v) for v in numbers if isinstance(v, (int, float)) and abs(v) <= LARGE), default=0.0)
        if self._path is not None and self._path.has_room(count, largest):
            return False
        for given, met in (attributes, self._attributes), (votes, self._voters):
            if isinstance(given, dict) and not given.keys() <= met.keys():
                return False  # it would be closed before it is used
        names = NamePlaces(
            self._attributes, self._voters, self._chosen, self._known, self.classes,
            numbered(self._attributes), numbered(self._voters),
        )  # fmt: skip
        self._settle()
        path = path_for(engine, names, self._model.record, count, largest)
        if path is None:
            return False
        self._path, self._ask, self._teach = path, path.ask, path.teach
        return True

    def _settle(self) -> None:
        """Hand the recent instances that the path keeps to the engine."""
        if self._path is not None:
            self._path.settle()

    def _alone(self) -> Engine:
        """The engine, to play trials that the path does not see."""
        self._settle()
        if self._path is not None and self._path.remembers:
            self._renamed()
        return self._engine

    def learn_rows(self, indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Learn many instances of known attributes: the same as `learn` on each of them, in less time.

        Parameters
        ----------
        indptr, columns, values
            The rows as in a CSR array; a column is a place in `attributes`. Rows are finite and within bounds.
        labels
            Places in `known`.

        Returns
        -------
        numpy.ndarray
            What was predicted, as places in `classes`.

        Examples
        --------
        >>> from linmax import Learner
        >>> learner = Learner("perceptron")
        >>> for name in "yes", "no":
        ...     _ = learner.learn({name: 1.0}, label=name)
        >>> learner.learn_rows(np.array([0, 1, 2]), np.array([0, 1]), np.array([1.0, 2.0]), np.array([0, 1]))
        array([1, 1], dtype=int32)
        """
        size, layout = len(labels), self._engine.layout
        check_rows(indptr, len(columns), len(values), size)
        check_places("columns", columns, layout.sparse, "attributes")
        check_places("labels", labels, len(self._known), "known classes")
        instances = no_instances(size)._replace(
            votes=np.full((size, layout.voters), -1, np.int32),
            signs=np.ones(layout.voters),
            scores=np.zeros((size, layout.raters, self._engine.k if layout.raters else 0)),
            indptr=np.ascontiguousarray(indptr, np.int64),
            indices=np.ascontiguousarray(columns, np.int32),
            values=np.require(values, float, ["C", "W", "A"]),
            constant=layout.constant,
        )
        places = np.ascontiguousarray(labels, np.int32)
        self._alone()
        return self._model.play(instances, places).predictions
