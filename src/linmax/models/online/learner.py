"""One trial at a time: instances by name, labels at once or later, and voters, attributes and classes that appear.

A `Learner` names its columns: voters, raters and attributes are met in dicts or arrays, and get a column when they are
first learned from. Its state is arrays and plain data; saved, loaded and continued it gives the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from linmax.data.arrays import Layout
from linmax.data.labels import no_label
from linmax.engine.engine import settings_of
from linmax.engine.one_trial.path import FAILED, REFUSED
from linmax.models.columns import Columns
from linmax.models.model import Model
from linmax.models.online.answers import NamedAnswers
from linmax.models.online.candidates import check_choice, choose, learn_candidates, learn_choice, place_of
from linmax.models.online.reading import (
    UNSET,
    Attributes,
    Blocks,
    Candidates,
    Scores,
    Votes,
    check_given,
    distinct,
    normaliser_of,
)
from linmax.models.online.waiting import Waiting, WaitingRoom
from linmax.models.online.wrong import learn_wrong
from linmax.util import files
from linmax.util.checks import at_least, boolean, fraction, one_of, whole

__all__ = ["KIND", "Learner"]

KIND = "learner"


class Learner(NamedAnswers):
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
    normalise
        Under which normalisations raters are given to the learner, as in `linmax.VoteFusion`: "auto", a name or
        several (see `linmax.normalisation.Normaliser`; not "running"). Each rater then becomes several, named (rater,
        normalisation), in [0, 1] whatever its scale. None takes scores as they are.
    thresholds
        Add the constant attribute 1: one threshold per class.
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
        normalise: str | Sequence[str] | None = None,
        thresholds: bool = True,
        tie: str = "smallest",
        update_on_tie: bool = True,
        max_pending: int = 10_000,
    ) -> None:
        one_of("discover", discover, ("votes", "labels"))
        whole("max_pending", max_pending, 0)
        self._waiting = WaitingRoom(max_pending)
        self.fixed = classes is not None
        layout = Layout(0, 0, 0, 0, 1.0 if boolean("thresholds", thresholds) else 0.0)
        settings = settings_of(tie, update_on_tie, discover if classes is None else False)
        names = [] if classes is None else distinct(classes)
        self._model = Model(learner, layout, names, settings, Columns({}, {}, {})).follow()
        self._choosing = False
        self._normaliser = normaliser_of(normalise)
        self._restore_asking({}, {})
        self._prepare()

    @property
    def takes_candidates(self) -> bool:
        """Whether it chooses among candidates, which every instance then has to name."""
        return self._choosing

    @property
    def max_pending(self) -> int:
        """Instances that may wait for their label at a time."""
        return self._waiting.size

    @property
    def pending(self) -> int:
        """Instances that wait for their label."""
        return len(self._waiting)

    @property
    def options(self) -> dict[str, Any]:
        """How it was made: the learner and what else matters for what it learns."""
        by_votes = self._engine.settings.by_votes
        discover = None if self.fixed else "votes" if by_votes else "labels"
        kinds = None if self._normaliser is None else list(self._normaliser.kinds)
        own = {"classes": self.classes if self.fixed else None, "discover": discover, "normalise": kinds}
        return self._model.options | own

    def __repr__(self) -> str:
        return repr(self._model)

    def predict(
        self,
        attributes: Attributes = None,
        *,
        votes: Votes = None,
        scores: Scores = None,
        id: Hashable = None,
        candidates: Candidates = None,
        reject: Any = None,
    ) -> Any:
        """The class of an instance, None before one is known. Nothing is learned.

        With an ``id`` the instance is kept until ``learn(id=..., label=...)``. With ``candidates`` only these may be
        predicted, and they need not have been seen before (see `learn`). With ``reject``, a risk, the answer is None,
        "do not know", where the probability of being wrong is greater.
        """
        if self._short and scores is None and id is None and candidates is None and reject is None:
            predicted = self._ask(attributes, votes)
            if predicted is REFUSED:
                predicted = self._again(attributes, votes)
            if predicted is not REFUSED:
                return predicted
        if reject is not None:
            asked = {"attributes": attributes, "votes": votes, "scores": scores, "candidates": candidates}
            return self._sure(asked, id, fraction("reject", reject, 0.1))
        if candidates is not None:
            return choose(self, candidates, (attributes, votes, scores), id)
        if id is not None:
            self._waiting.check_new(id)
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

    def _sure(self, given: Mapping[str, Any], id: Hashable, reject: float) -> Any:
        """The answer where it is wrong with this probability at most, else None."""
        found = self.predict_proba(**given)
        predicted = self.predict(**given, id=id)
        return predicted if found.get(predicted, 0.0) >= 1.0 - reject else None

    def learn(
        self,
        attributes: Attributes = None,
        label: Hashable = UNSET,
        *,
        votes: Votes = None,
        scores: Scores = None,
        id: Hashable = None,
        candidates: Candidates = None,
        wrong: Hashable = UNSET,
        weight: float = 1.0,
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
        drawn, by the present probabilities, and learned; a mistake is counted if that one was not predicted. The pool
        for attributes learns the wrong class itself.

        With a ``weight`` the instance counts that many times, fractions too (see `linmax.models.showings`); 0 leaves it
        out.
        """
        if self._short and scores is None and id is None and candidates is None and wrong is UNSET and weight == 1.0:
            predicted = self._teach(attributes, votes, label)
            if predicted is REFUSED:
                predicted = self._again(attributes, votes, label)
            if predicted is FAILED and self._path is not None:
                self._path.complain()
            if predicted is not REFUSED:
                if self._of_votes:
                    self._hear_taught(votes, label)
                return predicted
        if weight != 1.0:
            if wrong is not UNSET or candidates is not None:
                raise TypeError("learn() takes weight= with a label only, and not with candidates; leave it out")
            weight = at_least("weight", weight, 0.0)
        if wrong is not UNSET:
            if label is not UNSET:
                raise TypeError("learn() takes label= or wrong=, not both: a label says more")
            blocks = {"attributes": attributes, "votes": votes, "scores": scores}
            return learn_wrong(self, wrong, blocks, id, candidates)
        if candidates is not None:
            return learn_choice(self, candidates, label, (attributes, votes, scores), id)
        check_given(label)
        try:
            place = self._known.get(label, -1)
        except TypeError:
            raise TypeError(f"label must be hashable, got {label!r}; use text, a number or a tuple") from None
        if weight != 1.0 and no_label(label):
            raise ValueError(f"weight={weight:g} needs a label, and does not go with candidates; leave it out")
        kept_choice = self._choosing and id is not None  # the instance that was kept has its candidates
        if place < 0 and not kept_choice and not no_label(label):
            label = self._reading.label_meant(label)
            self._reading.check_label(label)
        if id is None:
            return self._learn_now((attributes, votes, scores), label, place, weight)
        return self._learn_kept(id, (attributes, votes, scores), label, weight)

    def _learn_now(self, blocks: Blocks, label: Hashable, place: int, weight: float) -> Any:
        """Learn an instance with its label, whose place is -1 if the class may not be predicted yet."""
        if weight == 0.0:
            self._reading.read(*blocks, label)
            return self.predict(blocks[0], votes=blocks[1], scores=blocks[2])
        played = self._at_once(*blocks) if place >= 0 else None
        if played is not None:
            return self._play_known(played, blocks[1], label, weight)
        given = self._reading.read(*blocks, label)
        with self._unharmed(given):
            if weight == 1.0 and place >= 0 and not given.scores and self._widened(given.attributes, given.votes):
                predicted = self._teach(given.attributes, given.votes or None, label)
                if predicted is FAILED and self._path is not None:
                    self._path.complain()
                if predicted is not REFUSED:
                    return predicted
            return self._learn(given, label, weight=weight)

    def _learn_alone(self, blocks: Mapping[str, Any], label: Hashable) -> Any:
        """Learn an instance with a label whose class is known, beside the one-trial path."""
        played = self._at_once(**blocks)
        if played is not None:
            return self._play_known(played, blocks["votes"], label)
        given = self._reading.read(**blocks, label=label)
        with self._unharmed(given):
            return self._learn(given, label)

    def _learn_kept(self, id: Hashable, blocks: Blocks, label: Hashable, weight: float) -> Any:
        """Learn the instance that was kept under an id."""
        given, kept = self._waiting.kept(id, *blocks), self._waiting[id]
        if no_label(label):
            raise ValueError(f"label must be a class, got {label!r} for id {id!r}; call learn when the label has come")
        if kept.candidates is not None:
            if weight != 1.0:
                raise ValueError(f"weight={weight:g} needs a label, and does not go with candidates; leave it out")
            place = place_of(label, kept.candidates)
            with self._unharmed(given):
                learn_candidates(self, given, len(kept.candidates), place, kept.predicted)
        elif weight > 0.0:
            given = given._replace(votes=self._reading.meant(given.votes, label))
            with self._unharmed(given):
                self._learn(given, label, kept.predicted, weight)
        self._waiting.label(id)
        return kept.answer

    def check(
        self,
        attributes: Attributes = None,
        *,
        votes: Votes = None,
        scores: Scores = None,
        candidates: Candidates = None,
        label: Hashable,
    ) -> None:
        """Raise what `learn` would raise for such an instance and label; nothing is learned.

        Examples
        --------
        >>> Learner("perceptron", classes=["yes", "no"]).check({"rain": 1.0}, label="maybe")
        Traceback (most recent call last):
        ValueError: label: 'maybe' is not among the classes ['yes', 'no'], which were fixed
        """
        if candidates is not None:
            return check_choice(self, candidates, label, (attributes, votes, scores))
        if not no_label(label):
            label = self._reading.label_meant(label)
            self._reading.check_label(label)
        self._reading.read(attributes, votes, scores, label)

    def forget(self, id: Hashable) -> None:
        """Drop an instance whose label will not come."""
        self._waiting.forget(id)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All that it is: plain data that JSON can hold, and arrays. Copies of neither."""
        self._settle()
        return self._with_own(*self._model.state())

    def _with_own(
        self, header: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The state of the model, and what is the learner's own."""
        kinds = {} if self._normaliser is None else {"normalise": list(self._normaliser.kinds)}
        own: dict[str, Any] = {"fixed": self.fixed, "choosing": self._choosing} | kinds | self._waiting.description()
        told, kept = self._asking_state()
        return own | told | {"model": header}, arrays | kept

    @classmethod
    def from_state(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """The learner whose `state` this was; it goes on as if it had never stopped. The arrays are copied."""
        self = cls.__new__(cls)
        self.fixed = bool(description["fixed"])
        self._model = Model.from_state(description["model"], arrays)
        self._waiting = WaitingRoom.from_description(description)
        self._choosing = bool(description.get("choosing"))
        self._normaliser = normaliser_of(description.get("normalise"))
        self._restore_asking(description, arrays)
        self._prepare()
        return self

    def __reduce__(self) -> Any:
        # A learner knows compiled functions and its path by their address in this process.
        self._settle()
        return type(self).from_state, self._with_own(*self._model.packed())

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
