"""One trial at a time: instances by name, labels at once or later, and voters, attributes and classes that appear.

A `Learner` names its columns: voters, raters and attributes are met in dicts or arrays, and get a column when they are
first learned from. Its state is arrays and plain data; saved, loaded and continued it gives the same bits.
"""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from linmax.core.contract import Instances
from linmax.data.arrays import Layout, no_instances
from linmax.data.labels import no_label
from linmax.engine.engine import Engine, settings_of
from linmax.engine.one_trial.objects import FAILED, LARGE, REFUSED, Names, refuse
from linmax.engine.one_trial.one_rule import OneRulePath
from linmax.engine.one_trial.path import OneTrialPath
from linmax.engine.one_trial.with_techniques import TechniquesPath, has_path
from linmax.jit.compiling import JIT
from linmax.models.model import Columns, Model, chosen
from linmax.models.online.asking import next_voter
from linmax.models.online.candidates import (
    NeedsCandidates,
    best_first,
    choosing_model,
    judge_candidates,
    judged,
    learn_candidates,
    read_candidates,
    softmax_shares,
)
from linmax.models.online.reading import Given, Reading, check_places, check_rows, distinct, numbered
from linmax.models.weights import Weights
from linmax.models.wrong import another
from linmax.util import files
from linmax.util.checks import boolean, fraction, one_of, whole

__all__ = ["KIND", "Learner"]

KIND = "learner"
UNSET: Any = object()


@dataclass
class Waiting:
    """An instance whose label has not come, and what was predicted for it."""

    attributes: dict[Any, float]
    votes: dict[Any, Any]
    scores: dict[Any, dict[Any, float]]
    predicted: Any
    candidates: list[Any] | None = None  # then the instance, and what was predicted, are in places among them


class Learner:
    """A learner that is asked and taught one instance at a time.

    Parameters
    ----------
    learner
        A rule, a composition of techniques, or text such as "AR-winnow(1.2)"; "auto" is a pool that needs no tuning.
    classes
        All classes, in order. Without it they are discovered.
    discover
        What discovers classes: a class may be predicted from its first vote on, or after its first label ("votes"), or
        only after its first label ("labels", as in the paper). The trial whose label brings a new class updates with
        the new class rated 0.
    thresholds
        Add the constant attribute 1: one threshold a class.
    tie, update_on_tie
        As in `linmax.run`.
    max_pending
        Instances that may wait for their label at a time; as many labelled ids are remembered.

    Notes
    -----
    An instance has ``attributes`` ({name: number}, or an array whose columns are named 0, 1, ...), ``votes`` ({voter:
    class}, or an array; None, nan and absent voters abstain) and ``scores`` ({rater: {class: number}}, or an array
    (raters, classes) in the order of `classes`; a class not rated has 0), any of them or all. Names may appear at any
    trial: a new sub-expert has the weight of one that has always been there and never spoke.

    References
    ----------
    Mesterharm (2001), Rutgers dcs-tr-460, section 6 (sub-experts and classes that appear).

    Examples
    --------
    >>> from linmax import Learner
    >>> learner = Learner("perceptron")
    >>> learner.learn({"rain": 1.0}, label="umbrella")
    >>> learner.learn({"sun": 1.0}, label="hat")
    'umbrella'
    >>> learner.predict({"sun": 1.0, "wind": 0.5})
    'hat'
    >>> learner.predict({"rain": 1.0}, id="monday")
    'hat'
    >>> learner.learn(id="monday", label="umbrella")
    'hat'
    >>> learner.mistakes, learner.trials
    (3, 3)
    """

    def __init__(
        self,
        learner: Any = "auto",
        *,
        classes: Sequence[Any] | None = None,
        discover: str = "votes",
        thresholds: bool = True,
        tie: str = "smallest",
        update_on_tie: bool = True,
        max_pending: int = 10_000,
    ) -> None:
        one_of("discover", discover, ("votes", "labels"))
        whole("max_pending", max_pending, 0)
        self.max_pending = max_pending
        self.fixed = classes is not None
        layout = Layout(0, 0, 0, 0, 1.0 if boolean("thresholds", thresholds) else 0.0)
        settings = settings_of(tie, update_on_tie, discover if classes is None else False)
        names = [] if classes is None else distinct(classes)
        self._model = Model(learner, layout, names, settings, Columns({}, {}, {})).follow()
        self._choosing = False  # whether it chooses among candidates
        self._prepare()
        self._waiting: dict[Any, Waiting] = {}
        self._labelled: dict[Any, None] = {}  # in order; the oldest are forgotten

    def _prepare(self) -> None:
        """What follows from the model and is not saved."""
        columns = self._model.columns
        self._voters, self._raters, self._attributes = (
            {name: place for place, name in enumerate(names)}
            for names in (columns.voters, columns.raters, columns.attributes)
        )
        self._model.columns = Columns(self._voters, self._raters, self._attributes)
        self._bounded, self._from_zero = self._model.bounded, self._engine.from_zero
        self._renamed()

    def _renamed(self) -> None:
        """The columns or the classes have changed."""
        self._places = {name: place for place, name in enumerate(self.classes)}
        reading = NeedsCandidates if self._choosing else Reading
        self._reading = reading(self.classes, self.fixed, self._bounded)
        self._known = {name: self._places[name] for name in self.known}
        # A vote for a class not yet known makes it known, which is no work for the short way.
        self._chosen = {None: -1} | (self._known if self._engine.settings.by_votes else self._places)
        self._short = JIT and (self._engine.plain or has_path(self._engine))  # whether there can be a path
        # Open while the arrays stay where they are (see `_open`).
        self._path: OneTrialPath | None = None
        self._ask = self._teach = refuse

    # -- what it knows --------------------------------------------------------------------------------------------

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
        """Labels learned from so far."""
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
    def pending(self) -> int:
        """Instances that wait for their label."""
        return len(self._waiting)

    @property
    def known(self) -> list[Any]:
        """The classes that may be predicted."""
        return self._model.known

    @property
    def options(self) -> dict[str, Any]:
        """How it was made: the learner and what else matters for what it learns."""
        by_votes = self._engine.settings.by_votes
        discover = None if self.fixed else "votes" if by_votes else "labels"
        return self._model.options | {"classes": self.classes if self.fixed else None, "discover": discover}

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

    def __repr__(self) -> str:
        return repr(self._model)

    # -- trials ---------------------------------------------------------------------------------------------------

    def predict(
        self,
        attributes: Any = None,
        *,
        votes: Any = None,
        scores: Any = None,
        id: Any = None,
        candidates: Any = None,
        reject: Any = None,
    ) -> Any:
        """The class of an instance, None before one is known. Nothing is learned.

        With an ``id`` the instance is kept until ``learn(id=..., label=...)``. With ``candidates`` only these may be
        predicted, and they need not have been seen before (see `learn`). With ``reject``, a risk, the answer is None,
        "do not know", where the probability of being wrong is greater.
        """
        if reject is not None:
            if candidates is not None:
                raise TypeError("reject needs probabilities of classes, which candidates have not; leave it out")
            return self._sure(attributes, votes, scores, id, fraction("reject", reject, 0.1))
        if candidates is not None:
            return self._choose(candidates, (attributes, votes, scores), id)
        if self._short and scores is None and id is None:
            predicted = self._ask(attributes, votes)
            if predicted is REFUSED:
                predicted = self._again(attributes, votes)
            if predicted is not REFUSED:
                return predicted
        if id is not None:
            self._refuse_id(id)
        played = self._at_once(attributes, votes, scores) if id is None else None
        if played is not None:
            number = int(self._engine.judge(played, 1)[0][0])
            return self.classes[number] if number >= 0 else None
        given = self._reading.read(attributes, votes, scores)
        if id is None and self._from_zero and not given[2] and not self._voted(given.votes):  # who is new has weight 0
            numbers = {name: value for name, value in given[0].items() if name in self._attributes}
            voted = {name: value for name, value in given[1].items() if name in self._voters and value in self._places}
            predicted = self._ask(numbers, voted or None)
            if predicted is not REFUSED:
                return predicted
        model, predictions, _ = self._judge(given)
        predicted = model.classes[predictions[0]] if predictions[0] >= 0 else None
        if id is not None:
            self._waiting[id] = Waiting(*given, predicted)
        return predicted

    def _sure(self, attributes: Any, votes: Any, scores: Any, id: Any, reject: float) -> Any:
        """The answer where it is wrong with this probability at most, else None."""
        found = self.predict_proba(attributes, votes=votes, scores=scores)
        predicted = self.predict(attributes, votes=votes, scores=scores, id=id)
        return predicted if found.get(predicted, 0.0) >= 1.0 - reject else None

    def rank(self, candidates: Any, *, votes: Any = None, scores: Any = None) -> list[Any]:
        """The candidates, the best first. Nothing is learned.

        Examples
        --------
        >>> learner = Learner()
        >>> for t in range(20):
        ...     said = {"bm25": [0.2, 0.9, 0.1], "clicks": [0.8, 0.3, 0.4]}
        ...     _ = learner.learn(candidates=[f"{t}a", f"{t}b", f"{t}c"], scores=said, label=f"{t}a")
        >>> learner.rank(["x", "y", "z"], scores={"bm25": [0.5, 0.1, 0.2], "clicks": [0.1, 0.4, 0.9]})
        ['z', 'y', 'x']
        """
        names = self._candidates(candidates)
        _, rated = judge_candidates(self, names, (None, votes, scores))
        return [names[place] for place in best_first(self, rated)]

    def scores(
        self, attributes: Any = None, *, votes: Any = None, scores: Any = None, candidates: Any = None
    ) -> dict[Any, float]:
        """The weighted vote zeta(j) for each class that may be predicted, up to one positive factor."""
        if candidates is not None:
            names = self._candidates(candidates)
            rated = judge_candidates(self, names, (attributes, votes, scores))[1]
            return dict(zip(names, rated.tolist(), strict=True))
        model, _, table = self._judge(self._reading.read(attributes, votes, scores))
        return dict(zip(model.known, table[0].tolist(), strict=False))

    def predict_proba(self, attributes: Any = None, *, votes: Any = None, scores: Any = None) -> dict[Any, float]:
        """The probability of each class that may be predicted (see `linmax.models.calibration`)."""
        model, _, table = self._judge(self._reading.read(attributes, votes, scores))
        table = table[:, : len(model.known)]
        return dict(zip(model.known, model.probabilities(table)[0].tolist(), strict=True)) if table.size else {}

    def predict_set(
        self, attributes: Any = None, *, votes: Any = None, scores: Any = None, coverage: float = 0.9
    ) -> tuple[Any, ...]:
        """The classes that hold the right one as often as ``coverage`` says, the likeliest first (see `Model.sets`).

        Examples
        --------
        >>> learner = Learner("perceptron")
        >>> for trial in range(100):
        ...     _ = learner.learn({"rain": 1.0}, label="umbrella" if trial % 10 else "hat")
        >>> learner.predict_set({"rain": 1.0}, coverage=0.99), learner.predict_set({"rain": 1.0}, coverage=0.8)
        (('umbrella', 'hat'), ('umbrella',))
        """
        model, _, table = self._judge(self._reading.read(attributes, votes, scores))
        table = table[:, : len(model.known)]
        return chosen(table, model.sets(table, coverage), model.known)[0] if table.size else ()

    def wants_label(
        self, attributes: Any = None, *, votes: Any = None, scores: Any = None, id: Any = None, candidates: Any = None
    ) -> bool:
        """Whether the label of an instance is worth asking for: drawn by a selective learner, True for any other.

        The draw counts, and if the label is wanted the next one that `learn` is given is learned from; so ask once for
        each instance. With an ``id`` alone the instance is the one that `predict` kept.

        Examples
        --------
        >>> learner = Learner("S(b=0.1)-perceptron", classes=["hat", "umbrella"])
        >>> for _ in range(50):
        ...     if learner.wants_label({"rain": 1.0}):
        ...         _ = learner.learn({"rain": 1.0}, label="umbrella")
        >>> learner.trials < 15, learner.predict({"rain": 1.0})
        (True, 'umbrella')
        """
        blocks = attributes, votes, scores
        if candidates is not None:
            return self._model.wants_label(judge_candidates(self, self._candidates(candidates), blocks)[1][None])
        given = self._reading.read(*blocks) if id is None else self._kept(id, *blocks)
        kept = self._waiting[id].candidates if id is not None else None
        return self._model.wants_label(self._judge(given)[2] if kept is None else judged(self, given, len(kept))[None])

    def learn(
        self,
        attributes: Any = None,
        label: Any = UNSET,
        *,
        votes: Any = None,
        scores: Any = None,
        id: Any = None,
        candidates: Any = None,
        wrong: Any = UNSET,
    ) -> Any:
        """Predict the instance, then see its label and update; returns what was predicted.

        A label that is None, nan or empty means that there is none yet: nothing is counted, and only what can be
        learned without a label is learned, such as how far voters agree.

        With an ``id`` alone the instance is the one that was kept, and a mistake is counted against what was predicted
        then; the update is made with the present weights.

        With ``candidates`` the label is one of these, and one of these is predicted. They may be others at each trial,
        and any number: voters name one of them, and raters rate them, by name or in their order. A learner that has
        been given candidates wants them with every instance.

        With ``wrong`` in the place of the label all that is known is that the label is not this class. Another one is
        drawn, by the present probabilities, and learned; a mistake is counted if that one was not predicted.
        """
        if wrong is not UNSET:
            if label is not UNSET:
                raise TypeError("learn() takes label= or wrong=, not both: a label says more")
            return self._learn_wrong(
                wrong, {"attributes": attributes, "votes": votes, "scores": scores}, id, candidates
            )
        if candidates is not None:
            return self._learn_choice(candidates, label, (attributes, votes, scores), id)
        if self._short and scores is None and id is None:
            predicted = self._teach(attributes, votes, label)
            if predicted is REFUSED:
                predicted = self._again(attributes, votes, label)
            if predicted is FAILED and self._path is not None:
                self._path.complain()
            if predicted is not REFUSED:
                return predicted
        if label is UNSET:
            raise TypeError("learn() needs label=; to ask for a prediction call predict()")
        try:
            place = self._known.get(label, -1)
        except TypeError:
            raise TypeError(f"label must be hashable, got {label!r}; use text, a number or a tuple") from None
        kept_choice = self._choosing and id is not None  # the instance that was kept has its candidates
        if place < 0 and not kept_choice and not no_label(label):
            self._reading.check_label(label)
        if id is None:
            played = self._at_once(attributes, votes, scores) if place >= 0 else None
            if played is not None:
                return self._play(played, place)
            given = self._reading.read(attributes, votes, scores)
            with self._unharmed(given):
                if place >= 0 and self._widened(given):
                    predicted = self._teach(given[0], given[1] or None, label)
                    if predicted is FAILED and self._path is not None:
                        self._path.complain()
                    if predicted is not REFUSED:
                        return predicted
                return self._learn(given, label)
        given, kept = self._kept(id, attributes, votes, scores), self._waiting[id]
        if no_label(label):
            raise ValueError(f"label must be a class, got {label!r} for id {id!r}; call learn when the label has come")
        place = self._place_of(label, kept.candidates) if kept.candidates is not None else -1
        with self._unharmed(given):
            if kept.candidates is None:
                self._learn(given, label, kept.predicted)
            else:
                learn_candidates(self, given, len(kept.candidates), place, kept.predicted)
        del self._waiting[id]
        self._labelled[id] = None
        while len(self._labelled) > self.max_pending:
            del self._labelled[next(iter(self._labelled))]
        return kept.predicted if kept.candidates is None else kept.candidates[kept.predicted]

    # -- right or wrong -------------------------------------------------------------------------------------------

    def _learn_wrong(self, wrong: Any, blocks: dict[str, Any], id: Any, candidates: Any) -> Any:
        """Learn that the label is not ``wrong``; where that says nothing, nothing is learned."""
        if id is not None:
            kept = self._kept(id, *blocks.values(), candidates)
            names, said = self._waiting[id].candidates, kept._asdict() if not self._choosing else {}
            rated = judged(self, kept, len(names)) if names is not None else None
        else:
            names, said = None if candidates is None else self._candidates(candidates), blocks
            rated = None if names is None else judge_candidates(self, names, tuple(blocks.values()))[1]
        if names is not None and rated is not None:
            self._place_of(wrong, names)
            shares = softmax_shares(rated)
            label = another(dict(zip(names, shares.tolist(), strict=True)), wrong, self.trials)
        else:
            self._reading.check_label(wrong)
            model, _, table = self._judge(self._reading.read(*(said.get(name) for name in blocks)))
            table = table[:, : len(model.known)]
            own = model.own_probabilities(table)[0].tolist() if table.size else []
            shares_by_class = dict(zip(model.known, own, strict=True))
            label = another(shares_by_class, wrong, self.trials) if wrong in shares_by_class else None
        if id is not None:
            return self._waiting[id].predicted if label is None else self.learn(id=id, label=label)
        given = blocks if candidates is None else blocks | {"candidates": candidates}
        return self.predict(**given) if label is None else self.learn(label=label, **given)

    # -- whom to ask ----------------------------------------------------------------------------------------------

    def ask(
        self,
        votes: Mapping[Any, Any],
        *,
        attributes: Any = None,
        costs: Any = None,
        voters: Sequence[Any] | None = None,
    ) -> Any:
        """Whom of the voters to ask next about an instance, None when those left cannot change the answer.

        Parameters
        ----------
        votes
            The votes so far, {voter: vote}; who was asked and abstained is there with None.
        attributes
            Those of the instance, if there are any.
        costs
            What asking each voter costs, {voter: number}; the most weight for its cost comes first.
        voters
            Who may be asked: all by default, or a panel (`VoteFusion.panel` tells how few are enough).

        Examples
        --------
        >>> learner = Learner("perceptron", thresholds=False)
        >>> for label in ["a", "b"] * 5:
        ...     _ = learner.learn(votes={"anna": label, "ben": "a", "carl": "b"}, label=label)
        >>> learner.ask({}), learner.ask({"anna": "a"})
        ('anna', None)
        """
        return next_voter(self, votes, attributes, costs, self.voters if voters is None else voters)

    # -- candidates -----------------------------------------------------------------------------------------------

    def _candidates(self, candidates: Any) -> list[Any]:
        """The candidates, checked. From the first ones on the learner chooses among candidates only."""
        names = read_candidates(candidates)
        if not self._choosing:
            if self.fixed or self.trials or self._waiting:
                told = "its classes were fixed" if self.fixed else "it has met classes that are no candidates"
                raise ValueError(f"candidates need a learner of their own, and {told}; make another Learner for them")
            self._model = choosing_model(self._model)
            self._choosing = True
            self._prepare()
        return names

    def _choose(self, candidates: Any, blocks: tuple[Any, Any, Any], id: Any) -> Any:
        if id is not None:
            self._refuse_id(id)
        names = self._candidates(candidates)
        given, rated = judge_candidates(self, names, blocks)
        place = int(best_first(self, rated)[0])
        if id is not None:
            self._waiting[id] = Waiting(*given, place, names)
        return names[place]

    def _learn_choice(self, candidates: Any, label: Any, blocks: tuple[Any, Any, Any], id: Any) -> Any:
        if id is not None:
            raise TypeError("id= means the instance that was kept, with its candidates; leave candidates= out")
        names = read_candidates(candidates)
        place = self._place_of(label, names)
        self._candidates(names)
        given, rated = judge_candidates(self, names, blocks)
        served = int(best_first(self, rated)[0])
        with self._unharmed(given):
            learn_candidates(self, given, len(names), place, served)
        return names[served]

    @staticmethod
    def _place_of(label: Any, candidates: Sequence[Any]) -> int:
        if label is UNSET:
            raise TypeError("learn() needs label=; to ask for a prediction call predict()")
        if label not in candidates:
            raise ValueError(f"label: {label!r} is not among the candidates {list(candidates)!r}")
        return candidates.index(label)

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

    def check(self, attributes: Any = None, *, votes: Any = None, scores: Any = None, label: Any) -> None:
        """Raise what `learn` would raise for such an instance and label; nothing is learned.

        Examples
        --------
        >>> Learner("perceptron", classes=["yes", "no"]).check({"rain": 1.0}, label="maybe")
        Traceback (most recent call last):
        ValueError: label: 'maybe' is not among the classes ['yes', 'no'], which were fixed
        """
        self._reading.check_label(label)
        self._reading.read(attributes, votes, scores)

    def instances_of(self, attributes: Any = None, *, votes: Any = None, scores: Any = None) -> Instances:
        """The arrays of an instance, checked, in columns that there are; for the rest of the library."""
        return self._instances(self._reading.read(attributes, votes, scores))

    def forget(self, id: Any) -> None:
        """Drop an instance whose label will not come."""
        if id not in self._waiting:
            raise KeyError(f"id {id!r} is not waiting for a label")
        del self._waiting[id]

    def _refuse_id(self, id: Any) -> None:
        if not isinstance(id, (str, int)) or isinstance(id, bool):
            raise TypeError(f"id must be text or a whole number, got {id!r}")
        if id in self._waiting or id in self._labelled:
            raise ValueError(f"id {id!r} is in use already; give each instance an id of its own")
        if len(self._waiting) >= self.max_pending:
            raise ValueError(
                f"{len(self._waiting)} instances wait for their label already, which is max_pending; learn or forget() "
                "some first"
            )

    def _kept(self, id: Any, *blocks: Any) -> Given:
        """The instance that waits under this id; ``blocks`` are what was given beside it, which must be nothing."""
        if any(block is not None for block in blocks):
            raise TypeError("id= means the instance that was kept; give the instance or the id, not both")
        if id in self._labelled:
            raise ValueError(f"id {id!r} has had its label already; a label is learned once")
        if id not in self._waiting:
            raise KeyError(f"id {id!r} is not waiting for a label; predict(..., id={id!r}) comes first")
        kept = self._waiting[id]
        return Given(kept.attributes, kept.votes, kept.scores)

    # -- instances ------------------------------------------------------------------------------------------------

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
        for name in [*voted.values(), *(c for row in rated.values() for c in row)]:
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

    # -- learning -------------------------------------------------------------------------------------------------

    def _voted(self, votes: Mapping[Any, Any]) -> list[Any]:
        """The classes not yet known that votes make known, in the order of the voters."""
        if not self._engine.settings.by_votes:
            return []
        fresh = {name: choice for name, choice in votes.items() if choice not in self._known}
        order = sorted(fresh, key=lambda name: self._voters.get(name, len(self._voters)))
        return [choice.item() if isinstance(choice, np.generic) else choice for choice in map(fresh.get, order)]

    def _judge(self, given: Given) -> tuple[Model, np.ndarray, np.ndarray]:
        """The model that judged, its predictions and scores. The state stays as it is: whoever is new is a guest."""
        known, blocks = (self._attributes, self._voters, self._raters), list[Mapping[Any, Any]](given)
        fresh = [[name for name in block if name not in names] for block, names in zip(blocks, known, strict=True)]
        voted = self._voted(given.votes)
        if not voted and (self._from_zero or not any(fresh)):
            return self._model, *self._engine.judge(self._instances(given), 1)
        guests = [
            ChainMap({name: len(names) + place for place, name in enumerate(new)}, names)
            for new, names in zip(fresh, known, strict=True)
        ]
        attributes, voters, raters = (len(names) + len(new) for new, names in zip(fresh, known, strict=True))
        layout = Layout(voters, raters, 0, attributes, self._engine.layout.constant)
        if not voted:
            return self._model, *self._engine.hosting(layout).judge(self._instances(given, layout, guests), 1)
        rated = [name for row in given.scores.values() for name in row]
        model = self._model.visited(layout, [*voted, *rated], voted)
        places = {name: place for place, name in enumerate(model.classes)}
        return model, *model.engine.judge(self._instances(given, layout, guests, places), 1)

    def _learn(self, given: Given, label: Any, served: Any = UNSET) -> Any:
        self._alone()
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
            return self._play(self._instances(given), self._places[label] if labels else -1, served)
        finally:
            self._renamed()

    @contextmanager
    def _unharmed(self, given: Given) -> Iterator[None]:
        """Roll back if huge numbers carry the weights out of the range of floats."""
        if not given.largest > LARGE:
            yield
            return
        try:
            with self._model.rolled_back():
                yield
        except OverflowError:
            self._prepare()
            raise

    def _widened(self, given: Given) -> bool:
        """Give new attributes their columns, if nothing else is new and the one-trial path can stay; whether it can."""
        numbers, voted, rated = given
        engine = self._engine
        new = [name for name in numbers if name not in self._attributes]
        layout = replace(engine.layout, sparse=engine.layout.sparse + len(new))
        if self._path is None or rated or not new or not engine.layout.sparse or layout.rows > engine.capacity:
            return False
        if not (voted.keys() <= self._voters.keys() and all(choice in self._places for choice in voted.values())):
            return False
        self._attributes.update((name, engine.layout.sparse + place) for place, name in enumerate(new))
        engine.grow(layout, engine.k)
        return True

    def _play(self, played: Instances, place: int, served: Any = UNSET) -> Any:
        """Learn one instance; a mistake is counted against what was ``served`` for it, if that was at another time."""
        self._alone()
        answers = None if served is UNSET else np.array([self._places.get(served, -1)], np.int32)
        number = int(self._model.play(played, np.array([place], np.int32), served=answers).predictions[0])
        return self.classes[number] if number >= 0 else None

    def _at_once(self, attributes: Any, votes: Any, scores: Any) -> Instances | None:
        """The arrays of an instance whose names are all known, or None."""
        layout = self._engine.layout
        if (
            self._choosing
            or scores is not None
            or layout.raters
            or (self._bounded is not None and attributes is not None)
        ):
            return None
        try:
            codes = np.array([list(self._codes(votes))], np.int32)
            given = {} if attributes is None else attributes
            columns = np.array([self._attributes[name] for name in given], np.int32)
            values = np.array(list(given.values()) if given else [], float)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            return None
        if not (np.abs(values) <= LARGE).all() or (attributes is None and votes is None):
            return None
        indptr = np.array([0, len(columns)] if layout.sparse else [], np.int64)
        return no_instances(1)._replace(
            votes=codes,
            signs=np.ones(layout.voters),
            indptr=indptr,
            indices=columns,
            values=values,
            constant=layout.constant,
        )

    def _again(self, attributes: Any, votes: Any, *label: Any) -> Any:
        """Try the short way once more, if the instance can be written more simply or a path be set up."""
        given = [block.tolist() if type(block) is np.ndarray else block for block in (attributes, votes)]
        if given[0] is not attributes or given[1] is not votes:
            predicted = self._teach(*given, *label) if label else self._ask(*given)
            if predicted is not REFUSED:
                return predicted
        if not self._open(*given):
            return REFUSED
        return self._teach(*given, *label) if label else self._ask(*given)

    def _open(self, attributes: Any, votes: Any) -> bool:
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
        names = Names(
            self._attributes, self._voters, self._chosen, self._known, self.classes,
            numbered(self._attributes), numbered(self._voters),
        )  # fmt: skip
        longest = max(32, 2 * count)
        if engine.plain:
            self._path = OneRulePath(engine, names, self._model.record, longest)
        else:
            self._settle()
            self._path = TechniquesPath(engine, names, self._model.record, longest, 2.0 * largest)
        self._ask, self._teach = self._path.ask, self._path.teach
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

    def _codes(self, votes: Any) -> Iterable[int]:
        """The place that each voter voted for, in the order of the voters."""
        if votes is None:
            return [-1] * len(self._voters)
        if isinstance(votes, dict):
            codes = [-1] * len(self._voters)
            for name, choice in votes.items():
                codes[self._voters[name]] = self._chosen[choice]
            return codes
        if len(votes) != len(self._voters) or numbered(self._voters) < len(votes):
            raise KeyError
        return map(self._chosen.__getitem__, votes.tolist() if isinstance(votes, np.ndarray) else votes)

    # -- state ----------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All that it is: plain data that JSON can hold, and arrays. Copies of neither."""
        self._settle()
        return self._described(*self._model.state())

    def _described(
        self, header: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The state of the model, and what is the learner's own."""
        waiting = [
            {
                "id": id,
                "attributes": _pairs(kept.attributes),
                "votes": _pairs(kept.votes),
                "scores": [[files.plain(name), _pairs(row)] for name, row in kept.scores.items()],
                "predicted": files.plain(kept.predicted),
                "candidates": kept.candidates and [files.plain(name) for name in kept.candidates],
            }
            for id, kept in self._waiting.items()
        ]
        own = {"fixed": self.fixed, "choosing": self._choosing, "max_pending": self.max_pending, "waiting": waiting}
        return own | {"model": header, "labelled": list(self._labelled)}, arrays

    @classmethod
    def from_state(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """The learner whose `state` this was; it goes on as if it had never stopped. The arrays are copied."""
        self = cls.__new__(cls)
        self.fixed, self.max_pending = bool(description["fixed"]), int(description["max_pending"])
        self._model = Model.from_state(description["model"], arrays)
        self._waiting = {
            kept["id"]: Waiting(
                _unpaired(kept["attributes"]),
                _unpaired(kept["votes"]),
                {files.named(name): _unpaired(row) for name, row in kept["scores"]},
                files.named(kept["predicted"]),
                kept.get("candidates") and [files.named(name) for name in kept["candidates"]],
            )
            for kept in description["waiting"]
        }
        self._labelled = dict.fromkeys(description["labelled"])
        self._choosing = bool(description.get("choosing"))
        self._prepare()
        return self

    def __reduce__(self) -> Any:
        # A learner knows compiled functions and its path by their address in this process.
        self._settle()
        return type(self).from_state, self._described(*self._model.packed())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, which holds no code and is replaced only when the new one is complete."""
        description, arrays = self.state()
        files.write(path, KIND, description, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The learner that was saved; it goes on as if it had never stopped.

        Examples
        --------
        >>> import os, tempfile
        >>> from linmax import Learner
        >>> name = os.path.join(tempfile.mkdtemp(), "model.linmax")
        >>> learner = Learner("A-winnow(1.2)")
        >>> _ = learner.learn(votes={"anna": "yes", "ben": "no"}, label="no")
        >>> learner.save(name)
        >>> Learner.load(name).predict(votes={"anna": "yes", "ben": "no"})
        'no'
        """
        return cls.from_state(*files.read(path, KIND))


def _pairs(named: Mapping[Any, Any]) -> list[list[Any]]:
    return [[files.plain(name), files.plain(value)] for name, value in named.items()]


def _unpaired(pairs: Sequence[Sequence[Any]]) -> dict[Any, Any]:
    return {files.named(name): files.named(value) for name, value in pairs}
