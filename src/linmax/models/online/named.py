"""A model whose columns go by name: voters, raters, attributes and classes get their places when they are first met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linmax.core.contract import Instances
from linmax.data.arrays import Layout, no_instances
from linmax.data.id_votes import IdWatch
from linmax.data.normalisation import Normaliser
from linmax.engine.engine import Engine
from linmax.engine.one_trial.choice import may_have_path
from linmax.engine.one_trial.path import OneTrialPath, refuse
from linmax.models.columns import Columns
from linmax.models.model import Model
from linmax.models.online.candidates import NeedsCandidates
from linmax.models.online.reading import Given, Reading, numbered, said
from linmax.models.weights import Weights

__all__ = ["Named"]


class Named:
    """What a `Learner` knows: its model, and the names of columns and classes."""

    _model: Model
    _choosing: bool  # whether it chooses among candidates
    _normaliser: Normaliser | None  # of raters
    fixed: bool

    def _prepare(self) -> None:
        """What follows from the model and is not saved."""
        columns = self._model.columns
        self._voters, self._raters, self._attributes = (
            {name: place for place, name in enumerate(names)}
            for names in (columns.voters, columns.raters, columns.attributes)
        )
        self._model.columns = Columns(self._voters, self._raters, self._attributes)
        self._bounded, self._from_zero = self._model.bounded, self._engine.from_zero
        self._ids = IdWatch()
        self._renamed()

    def _renamed(self) -> None:
        """The columns or the classes have changed."""
        self._places = {name: place for place, name in enumerate(self.classes)}
        reading = NeedsCandidates if self._choosing else Reading
        self._reading = reading(self.classes, self.fixed, self._bounded, self._normaliser)
        self._known = {name: self._places[name] for name in self.known}
        # A vote for a class not yet known makes it known, which is no work for the short way.
        self._chosen = {None: -1} | (self._known if self._engine.settings.by_votes else self._places)
        self._short = may_have_path(self._engine)
        # Open while the arrays stay where they are (see `_open`).
        self._path: OneTrialPath | None = None
        self._ask = self._teach = refuse
        self._no_attributes: Instances | None = None
        self._numbered_voters: int | None = None

    def _of_voters(self, votes: np.ndarray) -> Instances:
        """An instance of known voters alone, given the places they vote for."""
        none, layout = self._no_attributes, self._engine.layout
        if none is None:
            indptr = np.zeros(2 if layout.sparse else 0, np.int64)
            none = no_instances(1)._replace(signs=np.ones(layout.voters), indptr=indptr, constant=layout.constant)
            self._no_attributes = none
        return Instances(votes, *none[1:])

    def _count_numbered(self) -> int:
        """How many of the voters, from the first on, are 0, 1, ..."""
        if self._numbered_voters is None:
            self._numbered_voters = numbered(self._voters)
        return self._numbered_voters

    @property
    def learner(self) -> Any:
        """The learner as it is described."""
        return self._model.learner

    @property
    def classes(self) -> list[Any]:
        """The classes met in labels, votes and scores, those that may be predicted first."""
        return self._model.classes

    @property
    def trials(self) -> int:
        """Labels learned from so far; one that was shown three times for its weight counts three times."""
        return self._model.trials

    @property
    def mistakes(self) -> int:
        """Mistakes so far, each made before the label was seen."""
        return self._model.mistakes

    @property
    def updates(self) -> int:
        """Updates so far, by all members, recycled ones included."""
        return self._model.updates

    @property
    def _engine(self) -> Engine:
        return self._model.engine

    @property
    def known(self) -> list[Any]:
        """The classes that may be predicted."""
        return self._model.known

    @property
    def voters(self) -> list[Any]:
        """Names of the voters."""
        return list(self._voters)

    @property
    def raters(self) -> list[Any]:
        """Names of the raters."""
        return list(self._raters)

    @property
    def attributes(self) -> list[Any]:
        """Names of the attributes."""
        return list(self._attributes)

    @property
    def bounded(self) -> bool:
        """Whether attributes must lie in [-1, 1], and ratings differ by at most 1."""
        return self._bounded is not None

    @property
    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Trials, and the mistakes up to each: at most 1,024 points, evenly spread, and the present one."""
        return self._model.curve

    @property
    def weights(self) -> Weights:
        """The weights that it predicts with, by name, up to one positive factor.

        A mapping with ``voters`` {name: weight}, ``raters``, ``thresholds`` {class: weight} and ``attributes`` {name:
        {class: weight}}. For "auto" over attributes, which is several learners, the linear form that is near to what
        they say together: each one's weights, divided by the size of its scores, times that by which it is fused.
        """
        return self._model.weights

    @property
    def _all_names(self) -> tuple[dict[Any, int], ...]:
        return self._attributes, self._voters, self._raters, self._places

    def _columns(self, given: Given) -> Layout:
        """Give new names their columns and new classes their places; returns the layout that they need."""
        numbers, voted, rated = given
        for names, met in [(self._attributes, numbers), (self._voters, voted), (self._raters, rated)]:
            for name in met:
                if name not in names:
                    names[name] = len(names)
        for name in [*said(voted).values(), *(c for row in rated.values() for c in row)]:
            self._class(name)
        return Layout(len(self._voters), len(self._raters), 0, len(self._attributes), self._engine.layout.constant)

    def _class(self, name: Any) -> int:
        """The place of a class, a new one if need be."""
        name = name.item() if isinstance(name, np.generic) else name
        return self._places.setdefault(name, len(self._places))

    def _instances(
        self,
        given: Given,
        layout: Layout | None = None,
        columns: Sequence[Mapping[Any, int]] | None = None,
        places: Mapping[Any, int] | None = None,
    ) -> Instances:
        """The arrays of one instance, in columns and classes that there are; others are left out."""
        numbers, voted, rated = given
        layout, places = self._engine.layout if layout is None else layout, self._places if places is None else places
        attributes, voters, raters = (self._attributes, self._voters, self._raters) if columns is None else columns
        votes = np.full((1, layout.voters), -1, np.int32)
        for name, choice in voted.items():
            if name in voters and choice in places:
                votes[0, voters[name]] = places[choice]
        scores = np.zeros((1, layout.raters, len(places) if layout.raters else 0))
        for name, row in rated.items():
            if name in raters:
                for choice, value in row.items():
                    if choice in places:
                        scores[0, raters[name], places[choice]] = value
        known = [(attributes[name], value) for name, value in numbers.items() if name in attributes]
        return no_instances(1)._replace(
            votes=votes,
            signs=np.ones(layout.voters),
            scores=scores,
            indptr=np.array([0, len(known)] if layout.sparse else [], np.int64),
            indices=np.array([column for column, _ in known], np.int32),
            values=np.array([value for _, value in known], float),
            constant=layout.constant,
        )

    def _voted(self, votes: Mapping[Any, Any]) -> list[Any]:
        """The classes not yet known that votes make known, in the order of the voters."""
        if not self._engine.settings.by_votes:
            return []
        fresh = {name: choice for name, choice in said(votes).items() if choice not in self._known}
        order = sorted(fresh, key=lambda name: self._voters.get(name, len(self._voters)))
        return [choice.item() if isinstance(choice, np.generic) else choice for choice in map(fresh.get, order)]
