"""`Learner`: one instance at a time, by name, with its label at once or later.

A `Learner` names its columns: voters, raters and attributes are met in dicts or arrays, and get a column when they are
first learned from. Its state is arrays and plain data; saved, loaded and continued it gives the same bits.

An instance takes this path: `Learner.learn` -> the one-trial path if there is one (`linmax.engine.one_trial`), or
`Learner._encode` where all names are known, or else `InstanceReader.read` (checked, spelling matched) and
`Learner._add` (new names) -> `Model.play` -> the engine.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np

from linmax.core.contract import HUGE, NO_LABEL, Rule, Trials
from linmax.data.answers import Key, TrialAnswers, none_probability, opened_key, stored_key
from linmax.data.arrays import Layout, no_trials
from linmax.data.features import row_attributes
from linmax.data.names import IdWatch, Names, distinct_classes, missing, no_label, refuse_wide
from linmax.engine.engine import Engine, Settings, settings_of
from linmax.engine.one_trial import FAILED, LARGE, REFUSED, NamePlaces, OneTrialPath, may_have_path, path_for, refuse
from linmax.engine.record import note_all
from linmax.models.asking import (
    EXPLORE,
    TOLERANCE,
    Asking,
    Choice,
    Inquiry,
    Question,
    VoterPanels,
    add_class,
    asked_among,
    read_costs,
    read_share,
)
from linmax.models.explanation import InstanceExplanation, explain_trials
from linmax.models.model import Model, chosen
from linmax.models.weights import Columns, Weights
from linmax.normalization import Normalizer
from linmax.techniques.technique import LearnerLike
from linmax.util import files
from linmax.util.aliases import Attributes, Candidates, Costs, Label, Name, PathLike, Scores, Votes
from linmax.util.checks import at_least, boolean, fraction, one_of, whole
from linmax.util.files import Arrays, Header, State
from linmax.util.parts import by_part

__all__ = ["KIND", "Learner"]

KIND = "learner"
MOST_ASKED = 1000  # voters whose trials are stored for panels
STORED_TOGETHER = 256  # of these trials, how many are stored at a time
PLAIN_TYPES = (float, int)


# -- one instance as users give it ------------------------------------------------------------------------------------

Blocks = tuple[Attributes, Votes, Scores]
UNSET: Any = object()  # an argument that was not passed; a label None is one that has not come


class Instance(NamedTuple):
    """An instance by name, checked. A voter that was queried and abstained is there with None.

    With candidates, votes and scores are of their places among these.
    """

    attributes: dict[Name, float]
    votes: dict[Name, Label]
    scores: dict[Name, dict[Label, float]]
    candidates: list[Label] | None = None

    @property
    def blocks(self) -> tuple[Iterable[Name], Iterable[Name], Iterable[Name]]:
        """Names of the attributes, voters and raters in it."""
        return self.attributes, self.votes, self.scores

    @property
    def largest(self) -> float:
        """The largest magnitude in it."""
        rated = [max(map(abs, row.values()), default=0.0) for row in self.scores.values()]
        return max(max(map(abs, self.attributes.values()), default=0.0), *rated, 0.0)


class InstanceReader:
    """Reader of instances, which checks them against fixed classes, and a rule that needs numbers in a range.

    With a ``normalizer`` each rater becomes several, named (rater, normalization).
    """

    def __init__(
        self, classes: Sequence[Label], fixed: bool, bounded: Rule | None, normalizer: Normalizer | None = None
    ) -> None:
        self.classes, self.fixed, self.bounded, self.normalizer = classes, fixed, bounded, normalizer

    @cached_property
    def _known(self) -> dict[Label, None]:
        """The classes, to look them up."""
        return dict.fromkeys(self.classes)

    def read_label(self, label: Label, what: str = "label") -> Any:
        """Return a label in the spelling of its class; refuse what is no label, or not among the classes if fixed."""
        check_hashable(label)
        if label not in self._known:
            refuse_wide("label", label)
            label = Names(self._known).respell([label]).get(label, label)
        if missing(label):
            raise ValueError(f"{what} must be a class, got {label!r}; leave the trial out")
        self._check_class(what, label)
        return label.item() if isinstance(label, np.generic) else label

    def _check_class(self, what: str, name: Label) -> None:
        if self.fixed and name not in self.classes:
            raise ValueError(f"{what}: {name!r} is not among the classes {self.classes!r}, which were fixed")

    def read(self, attributes: Attributes, votes: Votes, scores: Scores, label: Label = UNSET) -> Instance:
        """Return an instance by name, checked; with its label, which may be None, if it is to be learned."""
        if attributes is None and votes is None and scores is None:
            raise TypeError("an instance needs attributes, votes= or scores=; got none of them")
        items = row_attributes(dict(_items("attributes", attributes))).items()
        numbers = {name: _number("attributes", name, value) for name, value in items}
        voted = {name: None if no_label(value) else value for name, value in _items("votes", votes)}
        for name, choice in voted.items():
            if choice.__hash__ is None:
                raise TypeError(
                    f"votes: {choice!r} of {name!r} is not hashable; a vote is one class, and numbers for all classes "
                    "go into scores="
                )
        voted = self.respelled(voted, label)
        for name, choice in cast_votes(voted).items() if self.fixed else ():
            self._check_class(f"votes: {name!r} voted for a class that", choice)
        rated = {name: self._ratings(name, row, label) for name, row in _items("scores", scores)}
        if self.normalizer is not None:
            rated = normalized(self.normalizer, rated)
        if self.bounded is not None:
            self._check_range(self.bounded, numbers, rated)
        return Instance(numbers, voted, rated)

    def respelled(self, voted: dict[Name, Label], label: Label) -> dict[Name, Label]:
        """Return votes in the spelling of the classes, and of the label if the instance is to be learned."""
        votes = cast_votes(voted)
        if all(choice in self._known for choice in votes.values()):
            return voted
        names, choices = Names(self._with(label)), dict.fromkeys(votes.values())
        if self.fixed:
            found = names.respell(choices)
        else:
            voters = {choice: voter for voter, choice in reversed(votes.items())}
            found = names.match(choices, lambda choice: f" of {voters[choice]!r}", learning=label is not UNSET)
        return {name: found.get(choice, choice) for name, choice in voted.items()} if found else voted

    def _with(self, label: Label) -> dict[Label, None]:
        """Return the classes, and the label if there is one."""
        if label is UNSET or no_label(label):
            return self._known
        return {**self._known, label.item() if isinstance(label, np.generic) else label: None}

    def _ratings(self, rater: Name, row: Any, label: Label) -> dict[Label, float]:
        """One rater's {class: number}."""
        if isinstance(row, Mapping):
            if not all(name in self._known for name in row):
                found = Names(self._with(label)).respell(row)
                row = {found.get(name, name): value for name, value in row.items()}
            for name in row:
                self._check_class(f"scores: {rater!r} rates a class that", name)
            return {name: _number(f"scores of {rater!r}", name, value) for name, value in row.items()}
        values = list(row) if isinstance(row, Iterable) and not isinstance(row, str) else None
        if values is None or len(values) != len(self.classes):
            raise ValueError(
                f"scores of {rater!r} must be a dict by class, or {len(self.classes)} numbers in the order of the "
                f"classes {self.classes!r}; got {row!r}"
            )
        return {c: _number(f"scores of {rater!r}", c, v) for c, v in zip(self.classes, values, strict=True)}

    def _check_range(self, rule: Rule, numbers: dict[Name, float], rated: dict[Name, dict[Label, float]]) -> None:
        for name, value in numbers.items():
            if abs(value) > 1.0 + 1e-12:
                raise ValueError(f"{rule} needs attributes in [-1, 1], got {value!r} for {name!r}; scale them")
        for name, row in rated.items():
            values = [*row.values(), 0.0] if len(row) < len(self.classes) else list(row.values())
            if values and max(values) - min(values) > 1.0 + 1e-12:
                raise ValueError(
                    f"{rule} needs ratings that differ by at most 1, got {row!r} of {name!r}; make the Learner with "
                    "normalize='auto', or scale them"
                )


def check_hashable(label: object) -> None:
    """Refuse a label that is no name, such as a list or a masked value."""
    try:
        hash(label)
    except TypeError:
        raise TypeError(f"label must be hashable, got {label!r}; use text, a number or a tuple") from None


def cast_votes(voted: Mapping[Name, Label]) -> dict[Name, Label]:
    """Return the votes without abstentions."""
    return {name: choice for name, choice in voted.items() if choice is not None}


def normalizer_of(kinds: str | Sequence[str] | None) -> Normalizer | None:
    """The normalizations of a learner, each of one instance by itself."""
    return None if kinds is None else Normalizer(kinds)


def normalized(normalizer: Normalizer, rated: Mapping[Name, Mapping[Label, float]]) -> dict[Name, dict[Label, float]]:
    """Each rater under every normalization, over the classes that it rates; the others have 0, which is lowest."""
    found: dict[Name, dict[Label, float]] = {}
    for name, row in rated.items():
        if not row:
            continue
        copies = normalizer.apply(np.array([[list(row.values())]]))[0]
        for kind, values in zip(normalizer.kinds, copies.tolist(), strict=True):
            found[name, kind] = dict(zip(row, values, strict=True))
    return found


def check_rows(indptr: np.ndarray, columns: int, values: int, size: int) -> None:
    """Refuse rows that do not lie one after the other."""
    rises = len(indptr) == size + 1 and indptr[0] == 0 and bool((np.diff(indptr) >= 0).all())
    if not rises or indptr[-1] != columns or values != columns:
        raise ValueError(
            f"indptr must rise from 0 to {columns}, the number of columns and values, in {size} steps, one per label; "
            f"got {indptr!r} and {values} values"
        )


def check_places(what: str, places: np.ndarray, count: int, among: str) -> None:
    if len(places) and not 0 <= places.min() <= places.max() < count:
        raise ValueError(
            f"{what} must be places among the {count} {among}, got {places.min()} to {places.max()}; learn() takes in "
            "what is new"
        )


def _items(what: str, block: Attributes | Votes | Scores) -> Iterable[tuple[Name, Any]]:
    """Return names and values of one block of an instance; an array names its columns 0, 1, ..."""
    if block is None:
        return []
    if isinstance(block, Mapping):
        return block.items()
    if isinstance(block, str) or not isinstance(block, Iterable):
        raise TypeError(f"{what} must be a dict by name or an array, got {block!r}")
    values = block.tolist() if isinstance(block, np.ndarray) else list(block)
    return enumerate(values)


def numbered(names: Mapping[Name, int]) -> int:
    """Return how many names, from the first on, are 0, 1, ..."""
    return next((place for place, name in enumerate(names) if type(name) is not int or name != place), len(names))


def _number(what: str, name: Name, value: Any) -> float:
    try:
        number = float(value) if not isinstance(value, str) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what}: {name!r} must be a finite number, got {value!r}")
    if abs(number) > HUGE:
        raise ValueError(
            f"{what}: {name!r} must be at most {HUGE:g} in magnitude, got {value!r}; scale the instances down"
        )
    return number


# -- instances that wait for their label ------------------------------------------------------------------------------


class Pending(NamedTuple):
    """An instance whose label has not come, and what was predicted for it: a class, or a place among candidates."""

    instance: Instance
    predicted: Any

    @property
    def answer(self) -> Label:
        """Prediction, by name."""
        names = self.instance.candidates
        return self.predicted if names is None else names[self.predicted]


class PendingInstances:
    """Instances by id, ``size`` at most; as many ids that have had their label are remembered."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._pending: dict[Any, Pending] = {}
        self.labelled: dict[Label, None] = {}  # in order; the oldest are forgotten

    def __len__(self) -> int:
        return len(self._pending)

    def __setitem__(self, id: Hashable, pending: Pending) -> None:
        self._pending[id] = pending

    def check_new(self, id: Hashable) -> None:
        """Refuse an id under which nothing can be stored."""
        if not isinstance(id, (str, int)) or isinstance(id, bool):
            raise TypeError(f"id must be text or a whole number, got {id!r}")
        if id in self._pending or id in self.labelled:
            raise ValueError(f"id {id!r} is in use already; give each instance an id of its own")
        if len(self._pending) >= self.size:
            raise ValueError(
                f"{len(self._pending)} instances are waiting for their labels already, which is max_pending; learn or "
                "forget() some first"
            )

    def get(self, id: Hashable, *blocks: Any) -> Pending:
        """Return the instance that waits under this id; of the ``blocks`` passed with it none may be given."""
        if any(block is not None for block in blocks):
            raise TypeError("id= means the instance that was kept; give the instance or the id, not both")
        if id in self.labelled:
            raise ValueError(f"id {id!r} has had its label already; a label is learned once")
        if id not in self._pending:
            raise KeyError(f"id {id!r} is not waiting for a label; predict(..., id={id!r}) comes first")
        return self._pending[id]

    def close(self, id: Hashable) -> None:
        """Remember that the label of an instance has been learned."""
        del self._pending[id]
        self.labelled[id] = None
        while len(self.labelled) > self.size:
            del self.labelled[next(iter(self.labelled))]

    def forget(self, id: Hashable) -> None:
        """Drop an instance whose label will not come."""
        if id not in self._pending:
            raise KeyError(f"id {id!r} is not waiting for a label")
        del self._pending[id]

    def description(self) -> dict[str, Any]:
        """Return all of it, as JSON can hold it."""
        waiting = [
            {
                "id": id,
                "attributes": _pairs(instance.attributes),
                "votes": _pairs(instance.votes),
                "scores": [[files.plain(name), _pairs(row)] for name, row in instance.scores.items()],
                "predicted": files.plain(predicted),
                "candidates": instance.candidates and list(map(files.plain, instance.candidates)),
            }
            for id, (instance, predicted) in self._pending.items()
        ]
        return {"max_pending": self.size, "waiting": waiting, "labelled": list(self.labelled)}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        """Return the instances whose `description` this was."""
        found = cls(int(description["max_pending"]))
        for one in description["waiting"]:
            instance = Instance(
                _unpaired(one["attributes"]),
                _unpaired(one["votes"]),
                {files.named(name): _unpaired(row) for name, row in one["scores"]},
                one.get("candidates") and [files.named(name) for name in one["candidates"]],
            )
            found[one["id"]] = Pending(instance, files.named(one["predicted"]))
        found.labelled = dict.fromkeys(description["labelled"])
        return found


def _pairs(named: Mapping[Name, Label]) -> list[list[Label]]:
    return [[files.plain(name), files.plain(value)] for name, value in named.items()]


def _unpaired(pairs: Sequence[Sequence[Any]]) -> dict[Name, Any]:
    return {files.named(name): files.named(value) for name, value in pairs}


# -- the learner ------------------------------------------------------------------------------------------------------


class Scored(NamedTuple):
    """Scores of one instance: the classes or candidates, the model, the table (1, classes), the place predicted."""

    names: Sequence[Label]
    model: Model
    table: np.ndarray
    place: int


class Learner:
    """Predict and learn one instance at a time.

    Parameters
    ----------
    learner : learner or str, default="auto"
        A rule, a composition of techniques, or text such as "AR-winnow(1.2)"; "auto" is a pool that needs no tuning.
    classes : sequence, optional
        All classes, in order. By default they are discovered.
    discover : {"votes", "labels"}, default="votes"
        A class may be predicted from its first vote on, or after its first label ("votes"), or only after its first
        label ("labels", as in the paper). The trial whose label brings a new class updates with the new class rated 0.
    answers : {"closed", "open"}, default="closed"
        With "open" the candidates of a trial are the answers that its voters give. A label that no voter gave is a
        mistake, and not learned.
    key : str or callable, optional
        Decides which open answers are the same (see `linmax.VoteFusion`).
    normalize : str or sequence of str, optional
        Normalizations under which raters enter, as in `linmax.VoteFusion`: "auto", a name or several (see
        `linmax.normalization.Normalizer`). Each rater then becomes several, named (rater, normalization), in [0, 1]
        whatever its scale. By default scores are taken as they are.
    thresholds : bool, default=True
        Add the constant attribute 1: one threshold for each class.
    tie, update_on_tie
        As in `linmax.run`.
    max_pending : int, default=10000
        Instances that may wait for their label at a time; as many labeled ids are remembered.

    Notes
    -----
    An instance has ``attributes``, ``votes`` and ``scores``, any of them or all (see `predict`). Names may appear at
    any trial: a new sub-expert has the weight of one that was always present and always abstained.

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

    _pending: PendingInstances
    _model: Model
    _choosing: bool  # whether it chooses among candidates
    _answers: TrialAnswers | None  # where answers are open
    _normalizer: Normalizer | None  # of raters
    _fixed: bool
    _asking: Asking
    _recent: list[tuple[dict[Name, Label] | np.ndarray, Hashable]]  # votes (by name, or all as places) and labels of
    # trials that are not yet stored for panels

    def __init__(
        self,
        learner: LearnerLike = "auto",
        *,
        classes: Sequence[Label] | None = None,
        discover: str = "votes",
        answers: str = "closed",
        key: Key = None,
        normalize: str | Sequence[str] | None = None,
        thresholds: bool = True,
        tie: str = "smallest",
        update_on_tie: bool = True,
        max_pending: int = 10_000,
    ) -> None:
        one_of("discover", discover, ("votes", "labels"))
        is_open = one_of("answers", answers, ("closed", "open")) == "open"
        if is_open and classes is not None:
            raise ValueError("classes must not be given where answers are open; remove classes, or answers='open'")
        if key is not None and not is_open:
            raise ValueError(f"key={key!r} is for open answers; pass answers='open', or remove key")
        whole("max_pending", max_pending, 0)
        self._pending = PendingInstances(max_pending)
        self._fixed = classes is not None
        layout = Layout(0, 0, 0, 0, 1.0 if boolean("thresholds", thresholds) else 0.0)
        settings = settings_of(tie, update_on_tie, discover if classes is None else False)
        names = [] if classes is None else list(distinct_classes(classes))
        self._model = Model(learner, layout, names, settings, Columns({}, {}, {})).follow()
        self._choosing, self._answers = False, TrialAnswers(key) if is_open else None
        self._normalizer = normalizer_of(normalize)
        self._restore_asking({}, {})
        self._prepare()
        if is_open:
            self._start_choosing()

    @property
    def _takes_candidates(self) -> bool:
        """True for a learner of candidates, which every instance has to name."""
        return self._choosing and self._answers is None

    @property
    def key(self) -> Key:
        """Key by which open answers count as the same."""
        return None if self._answers is None else self._answers.key

    @key.setter
    def key(self, key: Key) -> None:
        if self._answers is None:
            raise ValueError(f"key={key!r} is for open answers, and this learner has classes or candidates")
        self._answers = TrialAnswers(key, self._answers.unnamed)

    @property
    def max_pending(self) -> int:
        """Number of instances that may wait for their label at a time."""
        return self._pending.size

    @property
    def pending(self) -> int:
        """Number of instances that wait for their label."""
        return len(self._pending)

    @property
    def options(self) -> dict[str, Any]:
        """Learner and options that decide what is learned."""
        by_votes = self._engine.settings.by_votes
        discover = None if self._fixed else "votes" if by_votes else "labels"
        kinds = None if self._normalizer is None else list(self._normalizer.kinds)
        own = {"classes": self.classes if self._fixed else None, "discover": discover, "normalize": kinds}
        if self._answers is not None:
            own |= {"answers": "open", "key": stored_key(self.key)}
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
        reject: float | None = None,
    ) -> Label | None:
        """Return the class of an instance, or None before a class is known; nothing is learned.

        Parameters
        ----------
        attributes : dict of name to number, or sequence
            Names 0, 1, ... if it is a sequence or an array.
        votes : dict of voter to class, or sequence
            None, nan and absent voters abstain.
        scores : dict of rater to dict of class to number
            Or an array (raters, classes) in the order of `classes`. A class without a score has 0.
        id : str or int, optional
            Store the instance under this id until ``learn(id=..., label=...)``.
        candidates : sequence, optional
            The classes of this trial: only these may be predicted (see `learn`).
        reject : float, optional
            Return None, "do not know", where the probability of being wrong is greater.
        """
        if self._has_path and scores is None and id is None and candidates is None and reject is None:
            predicted = self._ask(attributes, votes)
            if predicted is REFUSED:
                predicted = self._retry(attributes, votes)
            if predicted is not REFUSED:
                return predicted
        if reject is not None:
            reject = fraction("reject", reject, 0.1)
        if id is not None:
            self._pending.check_new(id)
        plain = id is None and candidates is None and reject is None
        trial = self._encode(attributes, votes, scores) if plain else None
        if trial is not None:
            number = int(self._engine.judge(trial)[0][0])
            return self.classes[number] if number >= 0 else None
        instance = self._read(attributes, votes, scores, candidates)
        if plain and self._has_path and self._from_zero and not (instance.scores or self._voted(instance.votes)):
            numbers = {name: value for name, value in instance.attributes.items() if name in self._attributes}
            voters = {name: vote for name, vote in instance.votes.items() if name in self._voters}
            predicted = self._ask(numbers, voters or None)  # names that are new have weight 0
            if predicted is not REFUSED:
                return predicted
        scored = self._score(instance)
        place = scored.place
        answer = scored.names[place] if place >= 0 else None
        if id is not None:
            self._pending[id] = Pending(instance, place if instance.candidates is not None else answer)
        if reject is not None and place >= 0:
            share = scored.model.probabilities(scored.table)[0, place] * (1.0 - self._none)
            return answer if share >= 1.0 - reject else None
        return answer

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
    ) -> Label | None:
        """Predict an instance, see its label, and update; return what was predicted.

        Parameters
        ----------
        attributes : dict of name to number, or sequence
            Names 0, 1, ... if it is a sequence or an array.
        votes : dict of voter to class, or sequence
            None, nan and absent voters abstain.
        scores : dict of rater to dict of class to number
            Or an array (raters, classes) in the order of `classes`. A class without a score has 0.
        label : label
            The right class. None, nan or empty text means that there is none yet: nothing is counted, and only what can
            be learned without a label is learned, such as how far voters agree.
        id : str or int, optional
            An instance that `predict` stored, in place of the instance itself. A mistake is counted against what was
            predicted then; the update is made with the present weights.
        candidates : sequence, optional
            The classes of this trial, among them the label. They may be others at each trial, and any number: voters
            name one of them, and raters rate them, by name or in their order. A learner that was given candidates
            requires them with every instance.
        wrong : label, optional
            In place of ``label``, a class that is not the right one; a mistake is counted if it was predicted. Pools
            learn that it is wrong; any other learner learns another class, drawn by the present probabilities.
        weight : float, default=1.0
            Scales the step: 2 equals two separate instances up to the learner's own nonlinearity, and 0 leaves it out.
        """
        if self._has_path and scores is None and id is None and candidates is None and wrong is UNSET and weight == 1.0:
            predicted = self._teach(attributes, votes, label)
            if predicted is REFUSED:
                predicted = self._retry(attributes, votes, label)
            if predicted is FAILED and self._path is not None:
                self._path.complain()
            if predicted is not REFUSED:
                if self._of_votes:
                    self._store(votes, label, by_path=True)
                return predicted
        if weight != 1.0:
            weight = at_least("weight", weight, 0.0)
        if wrong is not UNSET and label is not UNSET:
            raise TypeError("learn() takes label= or wrong=, not both: a label says more")
        denied = wrong is not UNSET
        name = wrong if denied else label
        if name is UNSET:
            raise TypeError("learn() needs label=; to ask for a prediction call predict()")
        blocks, pending = (attributes, votes, scores), None
        if id is not None:
            pending = self._pending.get(id, *blocks, candidates)
            if not denied and no_label(label):
                raise ValueError(
                    f"label must be a class, got {label!r} for id {id!r}; call learn when the label has come"
                )
        if candidates is not None or self._answers is not None or (pending and pending.instance.candidates is not None):
            predicted = self._learn_candidate(blocks, candidates, pending, name, denied, weight)
        else:
            predicted = self._learn_class(blocks, pending, name, denied, weight)
        if pending is not None:
            self._pending.close(id)
            return pending.answer
        return predicted

    def _learn_candidate(
        self, blocks: Blocks, candidates: Candidates, pending: Pending | None, name: Label, denied: bool, weight: float
    ) -> Any:
        """Learn a trial with candidates, or with answers of its own."""
        answers, what = self._answers, "wrong" if denied else "label"
        if answers is None:  # refused before the instance is read
            place = place_of(
                name, read_candidates(candidates) if pending is None else pending.instance.candidates, what
            )
        instance = self._read(*blocks, candidates) if pending is None else pending.instance
        names = instance.candidates or []
        if answers is not None:
            place = answers.place(name, names)
        served = self._score(instance).place if pending is None else pending.predicted
        if answers is not None and place == len(names):  # nobody gave it
            answers.unnamed += not denied
        elif weight > 0.0 and names:
            self._learn_instance(instance, place if place >= 0 else None, denied, served, weight)
        return names[served] if names else None

    def _learn_class(self, blocks: Blocks, pending: Pending | None, name: Label, denied: bool, weight: float) -> Any:
        """Learn a trial whose classes are those of the learner."""
        label = None
        check_hashable(name)
        if denied or not no_label(name):
            label = self._reader.read_label(name, "wrong" if denied else "label")
        elif weight != 1.0:
            raise ValueError(f"weight={weight:g} needs a label; remove it")
        if pending is not None:
            instance, served = pending.instance, pending.predicted
            if weight == 0.0:
                return None
            if not denied:
                instance = instance._replace(votes=self._reader.respelled(instance.votes, label))
            return self._learn_instance(instance, label, denied, served, weight)
        if weight == 0.0:
            self._read(*blocks, label=label)
            return self.predict(blocks[0], votes=blocks[1], scores=blocks[2])
        place = NO_LABEL if label is None else self._places.get(label, -2)
        trial = self._encode(*blocks) if place >= NO_LABEL else None
        if trial is None:
            instance = self._read(*blocks) if denied else self._read(*blocks, label=label)
            return self._learn_instance(instance, label, denied, weight=weight)
        predicted, learned = self._play(trial, -2 - place if denied else place, weight=weight)
        if self._of_votes and learned >= 0:
            self._store(blocks[1], self.classes[learned])
        return predicted

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
            place_of(label, read_candidates(candidates))
        elif self._answers is not None:
            self._answers.place(label, [])
        elif not no_label(label):
            label = self._reader.read_label(label)
        self._read(attributes, votes, scores, candidates, label)

    def forget(self, id: Hashable) -> None:
        """Drop an instance whose label will not arrive."""
        self._pending.forget(id)

    def state(self) -> State:
        """Return all that was learned: plain data that JSON can hold, and arrays that are not copied."""
        self._settle()
        return self._with_own(*self._model.state())

    def _with_own(self, header: Header, arrays: Arrays) -> State:
        """The state of the model, and what is the learner's own."""
        kinds = {} if self._normalizer is None else {"normalize": list(self._normalizer.kinds)}
        own: dict[str, Any] = {"fixed": self._fixed, "choosing": self._choosing} | kinds | self._pending.description()
        if self._answers is not None:
            own["answers"] = {"key": stored_key(self.key), "unnamed": self._answers.unnamed}
        described, kept = self._asking_state()
        return own | described | {"model": header}, arrays | kept

    @classmethod
    def from_state(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """Return the learner with this `state`, which continues as if it had never stopped. The arrays are copied."""
        self = cls.__new__(cls)
        self._fixed = bool(description["fixed"])
        self._model = Model.from_state(description["model"], arrays)
        self._pending = PendingInstances.from_description(description)
        self._choosing, answers = bool(description.get("choosing")), description.get("answers")
        self._answers = None if answers is None else TrialAnswers(opened_key(answers["key"]), answers["unnamed"])
        self._normalizer = normalizer_of(description.get("normalize"))
        self._restore_asking(description, arrays)
        self._prepare()
        return self

    def __reduce__(self) -> Any:
        # A learner knows compiled functions and its path by their address in this process.
        self._settle()
        return type(self).from_state, self._with_own(*self._model.packed())

    def save(self, path: PathLike) -> None:
        """Write everything to one file, which holds no code and is replaced only when the new one is complete."""
        description, arrays = self.state()
        files.write(path, KIND, description, arrays)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Load a learner that was saved, which continues as if it had never stopped.

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

    # -- names of columns and classes ---------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Set up what follows from the model and is not saved."""
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
        """Set up what depends on the columns and classes; there is no one-trial path then."""
        self._places = {name: place for place, name in enumerate(self.classes)}
        self._reader = InstanceReader(self.classes, self._fixed, self._bounded, self._normalizer)
        self._chosen = {None: -1} | self._places
        self._path: OneTrialPath | None = None  # open while the arrays stay where they are (see `_open`)
        self._ask: Callable[..., object] = refuse
        self._teach: Callable[..., object] = refuse
        self._no_attributes: Trials | None = None
        self._numbered_voters = numbered(self._voters)
        others = self._attributes or self._raters or self._takes_candidates or len(self._voters) > MOST_ASKED
        self._of_votes = bool(self._voters) and not others
        if not self._of_votes and (self._recent or self._asking.recent.trials):
            self._recent, self._asking = [], Asking()
        self._has_path = may_have_path(self._engine) and self._asking.choice is None and not self._choosing

    @property
    def learner(self) -> LearnerLike:
        """Description of the learner: a rule, a technique or a pool."""
        return self._model.learner

    @property
    def classes(self) -> list[Label]:
        """Classes that may be predicted: those given, or named by a label or, if votes count, by a vote."""
        return self._model.classes

    @property
    def mistakes(self) -> int:
        """Number of mistakes, each made before the label was seen."""
        return self._model.mistakes + (0 if self._answers is None else self._answers.unnamed)

    @property
    def updates(self) -> int:
        """Number of updates by all members, recycled ones included."""
        return self._model.updates

    @property
    def _engine(self) -> Engine:
        return self._model.engine

    @property
    def voters(self) -> list[Name]:
        """Names of the voters."""
        return list(self._voters)

    @property
    def raters(self) -> list[Name]:
        """Names of the raters."""
        return list(self._raters)

    @property
    def attributes(self) -> list[Name]:
        """Names of the attributes."""
        return list(self._attributes)

    @property
    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Trials, and the mistakes up to each: at most 1,024 points, evenly spread, and the present one."""
        return self._model.curve

    @property
    def weights(self) -> Weights:
        """Weights of the present hypothesis, by name, up to one positive factor.

        A mapping with ``voters`` {name: weight}, ``raters``, ``thresholds`` {class: weight} and ``attributes`` {name:
        {class: weight}}. A pool over attributes has its linear form: the weights of each member, divided by the size of
        its scores, times the weight of the member.
        """
        return self._model.weights

    def _layout(self, *blocks: Iterable[Name]) -> Layout:
        """Return the columns of all names, and of those in ``blocks`` (attributes, votes, scores) that are new."""
        new = [0, 0, 0]
        for number, (names, block) in enumerate(zip(self._columns, blocks, strict=False)):
            new[number] = sum(name not in names for name in block)
        attributes, voters, raters = (len(names) + more for names, more in zip(self._columns, new, strict=True))
        return Layout(voters, raters, 0, attributes, self._engine.layout.constant)

    @property
    def _columns(self) -> tuple[dict[Name, int], dict[Name, int], dict[Name, int]]:
        """Columns of attributes, voters and raters."""
        return self._attributes, self._voters, self._raters

    def _add(self, instance: Instance, classes: Iterable[Label]) -> None:
        """Give new names their columns and new classes their places; if they are refused nothing changes.

        They may be too many for a rule that keeps a matrix.
        """
        before, k = self._layout(), len(self.classes)
        sizes = [len(names) for names in self._columns]
        for names, block in zip(self._columns, instance.blocks, strict=True):
            for name in block:
                names.setdefault(name, len(names))
        try:
            self._model.grow(self._layout(), classes)
        except ValueError:
            for names, size in zip(self._columns, sizes, strict=True):
                while len(names) > size:
                    names.popitem()
            raise
        if self._layout() != before or len(self.classes) > k:
            self._renamed()

    def _trial(
        self,
        instance: Instance,
        layout: Layout | None = None,
        columns: Sequence[Mapping[Name, int]] | None = None,
        places: Mapping[Name, int] | None = None,
    ) -> Trials:
        """Return the arrays of one instance, in columns and classes that there are; others are left out."""
        layout, places = layout or self._engine.layout, self._places if places is None else places
        attributes, voters, raters = columns or self._columns
        votes = np.full((1, layout.voters), -1, np.int32)
        for name, choice in instance.votes.items():
            if name in voters and choice in places:
                votes[0, voters[name]] = places[choice]
        scores = np.zeros((1, layout.raters, len(places) if layout.raters else 0))
        for name, row in instance.scores.items():
            if name in raters:
                for choice, value in row.items():
                    if choice in places:
                        scores[0, raters[name], places[choice]] = value
        known = [(attributes[name], value) for name, value in instance.attributes.items() if name in attributes]
        return no_trials(1)._replace(
            votes=votes,
            signs=np.ones(layout.voters),
            scores=scores,
            indptr=np.array([0, len(known)] if layout.sparse else [], np.int64),
            indices=np.array([column for column, _ in known], np.int32),
            values=np.array([value for _, value in known], float),
            constant=layout.constant,
            known=np.array([len(instance.candidates or ())]),
        )

    def _encode(self, attributes: Attributes, votes: Votes, scores: Scores) -> Trials | None:
        """Return the arrays of an instance whose names are all known, in less time; None for any other."""
        layout = self._engine.layout
        if self._choosing or self._asking.choice is not None or scores is not None or layout.raters:
            return None
        if (attributes is None and votes is None) or (self._bounded is not None and attributes is not None):
            return None
        try:
            trial = self._of_voters(self._codes(votes))
            if attributes is None:
                return trial
            if not isinstance(attributes, Mapping):
                return None
            attributes = row_attributes(attributes)
            columns = np.array([self._attributes[name] for name in attributes], np.int32)
            values = np.array(list(attributes.values()), np.float64)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            return None
        if values.ndim != 1 or not (np.abs(values) <= LARGE).all():
            return None
        indptr = np.array([0, len(columns)] if layout.sparse else [], np.int64)
        return trial._replace(indptr=indptr, indices=columns, values=values)

    def _codes(self, votes: Any) -> np.ndarray:
        """Return the place that each voter voted for, in the order of the voters; raise KeyError for a new name."""
        if votes is None or isinstance(votes, dict):
            row, columns, places = [-1] * len(self._voters), self._voters, self._chosen
            for voter, vote in (votes or {}).items():
                row[columns[voter]] = places[vote]
            return np.array([row], np.int32)
        if len(votes) != len(self._voters) or self._numbered_voters < len(votes):
            raise KeyError
        row = votes.tolist() if isinstance(votes, np.ndarray) else votes
        return np.array([[*map(self._chosen.__getitem__, row)]], np.int32)

    def _of_voters(self, votes: np.ndarray) -> Trials:
        """Return an instance of known voters alone, given the places they vote for."""
        none, layout = self._no_attributes, self._engine.layout
        if none is None:
            indptr = np.zeros(2 if layout.sparse else 0, np.int64)
            none = no_trials(1)._replace(signs=np.ones(layout.voters), indptr=indptr, constant=layout.constant)
            self._no_attributes = none
        return Trials(votes, *none[1:])

    def _voted(self, votes: Mapping[Name, Label]) -> list[Label]:
        """Return the classes that votes make known, in the order of the voters."""
        if not self._engine.settings.by_votes:
            return []
        fresh = {name: choice for name, choice in cast_votes(votes).items() if choice not in self._places}
        order = sorted(fresh, key=lambda name: self._voters.get(name, len(self._voters)))
        return [choice.item() if isinstance(choice, np.generic) else choice for choice in map(fresh.get, order)]

    # -- one trial ----------------------------------------------------------------------------------------------------

    @property
    def _current_model(self) -> Model:
        """The model, after the instances that the compiled path keeps have been handed to it."""
        self._settle()
        return self._model

    def _read(
        self,
        attributes: Attributes,
        votes: Votes,
        scores: Scores,
        candidates: Candidates = None,
        label: Label = UNSET,
    ) -> Instance:
        """Return an instance by name, checked; with its label, which may be None, if it is to be learned."""
        if self._answers is not None:
            if candidates is not None:
                raise ValueError("candidates must be absent where answers are open: they are the answers of the trial")
            return self._read_answers(attributes, votes, scores)
        if candidates is None:
            if self._choosing:
                raise ValueError("this learner chooses among candidates; give candidates= with every instance")
            return self._reader.read(attributes, votes, scores, label)
        return self._read_choice(attributes, votes, scores, read_candidates(candidates))

    def _read_answers(self, attributes: Attributes, votes: Votes, scores: Scores) -> Instance:
        """Return an instance whose candidates are its answers; scores of anything else are left out."""
        assert self._answers is not None
        voted = {name: None if no_label(vote) else vote for name, vote in _items("votes", votes)}
        worth = LearnerVoters(self).worth_by_name
        names, keyed = self._answers.read(cast_votes(voted), worth), self._answers.keyed
        spelled = {name: None if vote is None else names[keyed(vote)] for name, vote in voted.items()}
        rated: dict[Name, dict[Label, float]] = {}
        for rater, row in _items("scores", scores):
            if not isinstance(row, Mapping):
                raise TypeError(f"scores of {rater!r} must be a dict from answer to number where answers are open")
            rated[rater] = {names[key]: value for answer, value in row.items() if (key := keyed(answer)) in names}
        return self._read_choice(attributes, spelled, rated or None, list(names.values()))

    def _read_choice(self, attributes: Attributes, votes: Votes, scores: Scores, names: list[Label]) -> Instance:
        """Return an instance whose candidates have these names."""
        if attributes is not None:
            raise TypeError(
                "attributes have a weight for each class, and candidates have no weights of their own; rate the "
                "candidates: scores={attribute: {candidate: number}}"
            )
        if not self._choosing and (self._fixed or self.trials or len(self._pending)):
            reason = "its classes were fixed" if self._fixed else "it has met classes that are not candidates"
            raise ValueError(f"candidates need a learner of their own, and {reason}; make another Learner for them")
        reader = InstanceReader(names, False, self._model.bounded, self._normalizer)
        instance = reader.read(None, votes, scores)
        places = {name: place for place, name in enumerate(names)}
        voted: dict[Name, Label] = {
            voter: places[choice] for voter, choice in instance.votes.items() if choice in places
        }
        rated: dict[Name, dict[Label, float]] = {
            rater: {places[choice]: value for choice, value in row.items() if choice in places}
            for rater, row in instance.scores.items()
        }
        return Instance({}, voted, rated, names)

    def _score(self, instance: Instance) -> Scored:
        """Score an instance, its candidates if it has any; the state does not change."""
        if instance.candidates is not None:
            self._start_choosing()
            if not instance.candidates:
                return Scored([], self._model, np.zeros((1, 0)), -1)
        model, engine, trial = self._placed(instance)
        predictions, table = engine.judge(trial)
        names = model.classes if instance.candidates is None else instance.candidates
        return Scored(names, model, table[:, : len(names)], int(predictions[0]))

    def _placed(self, instance: Instance) -> tuple[Model, Engine, Trials]:
        """Return the model that scores an instance, the engine that does it, and the instance in its columns.

        Where names are new, a copy takes the place of the learner's own.
        """
        if self._asking.choice is not None:
            found = self._scored_by_few(instance)
            if found is not None:
                return found[0], found[0].engine, found[1]
        choices = self._voted(instance.votes) if instance.candidates is None else range(len(instance.candidates))
        joining = [choice for choice in choices if choice not in self._places]
        layout = self._layout(*instance.blocks)
        if not joining and (self._from_zero or layout == self._engine.layout):
            return self._model, self._engine, self._trial(instance)
        columns: list[Mapping[Name, int]] = []
        for names, block in zip(self._columns, instance.blocks, strict=True):
            new = [name for name in block if name not in names]
            columns.append(ChainMap({name: len(names) + place for place, name in enumerate(new)}, names))
        if not joining:
            return self._model, self._engine.hosting(layout), self._trial(instance, layout, columns)
        model = self._model.enlarged(layout, joining)
        places = {name: place for place, name in enumerate(model.classes)}
        return model, model.engine, self._trial(instance, layout, columns, places)

    def _start_choosing(self) -> None:
        """Choose among candidates only, from the first ones on."""
        if not self._choosing:
            self._model, self._choosing = choosing_model(self._model), True
            self._prepare()

    def _learn_instance(
        self, instance: Instance, label: Label, denied: bool, served: Any = UNSET, weight: float = 1.0
    ) -> Any:
        """Learn an instance with its label, or if ``denied`` with a class that is not its label; None: no label.

        Classes, also those ``served``, are the places of its candidates if it has any. Return the prediction.
        """
        if instance.candidates is not None:
            self._start_choosing()
            joining: Iterable[Label] = range(len(instance.candidates))
        else:
            joining = [*self._voted(instance.votes), *([] if denied or label is None else [label])]
        self._leave_path()
        if not self._fixed and instance.candidates is None:
            self._ids.see(self.trials, instance.votes, self._places, label)
        with self._rolled_back(instance.largest > LARGE):
            if label in self._places and weight == 1.0 and self._asking.choice is not None:
                place, answer = self._places[label], None if served is UNSET else self._places.get(served, -1)
                number = self._learned_by_few(instance, -2 - place if denied else place, answer)
                if number is not None:
                    return self.classes[number] if number >= 0 else None
            self._add(instance, joining)
            place = NO_LABEL if label is None else self._places.get(label, len(self._places))
            predicted, learned = self._play(self._trial(instance), -2 - place if denied else place, served, weight)
        if learned >= 0 and self._of_votes:
            votes = {name: choice if choice in self._places else None for name, choice in instance.votes.items()}
            self._store(votes, self.classes[learned])
        self._asking.changed()
        return predicted

    @contextmanager
    def _rolled_back(self, risky: bool) -> Iterator[None]:
        """Undo everything if ``risky`` numbers carry the weights out of the range of floats."""
        if not risky:
            yield
            return
        try:
            with self._model.rolled_back():
                yield
        except OverflowError:
            self._prepare()
            raise

    def _play(self, trial: Trials, label: int, served: Any = UNSET, weight: float = 1.0) -> tuple[Any, int]:
        """Learn one trial, its label coded as in `Model.play`; return the prediction, and the class learned.

        A mistake is counted against what was ``served`` for it, if that was at another time.
        """
        self._leave_path()
        answers = None if served is UNSET else np.array([self._places.get(served, -1)], np.int32)
        labels = np.array([label], np.int32)
        trial = trial._replace(labels=labels, weights=np.array([weight]))
        number = int(self._model.play(trial, served=answers).predictions[0])
        return self.classes[number] if number >= 0 else None, int(labels[0])

    # -- the one-trial path -------------------------------------------------------------------------------------------

    def _retry(self, attributes: Any, votes: Any, *label: Label) -> Any:
        """Try the one-trial path once more, after new attributes got their columns, or with another path."""
        if label and votes is None and self._add_attributes(attributes, *label):
            predicted = self._teach(attributes, votes, *label)
            if predicted is not REFUSED:
                return predicted
        plain = [block.tolist() if type(block) is np.ndarray else block for block in (attributes, votes)]
        if type(attributes) is dict:
            plain[0] = row_attributes(attributes)
        if plain[0] is not attributes or plain[1] is not votes:
            predicted = self._teach(*plain, *label) if label else self._ask(*plain)
            if predicted is not REFUSED:
                return predicted
        if not self._open(*plain):
            return REFUSED
        return self._teach(*plain, *label) if label else self._ask(*plain)

    def _add_attributes(self, attributes: Any, label: Label) -> bool:
        """Give the new names of a dict of plain numbers their columns, if nothing else is new; whether there were any.

        The path stays open if the engine has room for them.
        """
        engine, names = self._engine, self._attributes
        layout = engine.layout
        if self._path is None or type(attributes) is not dict or self._bounded is not None or not layout.sparse:
            return False
        try:
            new = [name for name in attributes if name not in names]
            if not new or label not in self._places:
                return False
        except TypeError:  # not hashable
            return False
        for value in attributes.values():
            if type(value) not in PLAIN_TYPES or not -LARGE <= value <= LARGE:
                return False
        wider = Layout(layout.voters, layout.raters, 0, layout.sparse + len(new), layout.constant, layout.names)
        stays = wider.rows <= engine.capacity
        if not stays:
            self._leave_path()
        engine.grow(wider, engine.k)
        for name in new:
            names[name] = len(names)
        if stays:
            return True
        self._renamed()
        return self._open(attributes, None)

    def _open(self, attributes: Any, votes: Any) -> bool:
        """Set up a one-trial path for an instance whose names are all known; return whether there is a new one."""
        if not self._has_path:
            return False
        numbers = attributes.values() if type(attributes) is dict else attributes if type(attributes) is list else ()
        count = len(numbers)
        largest = max((abs(v) for v in numbers if isinstance(v, (int, float)) and abs(v) <= LARGE), default=0.0)
        if self._path is not None and self._path.has_room(count, largest):
            return False
        for block, columns in (attributes, self._attributes), (votes, self._voters):
            if isinstance(block, dict) and not block.keys() <= columns.keys():
                return False  # it would be closed before it is used
        names = NamePlaces(
            self._attributes, self._voters, self._chosen, self._places, self.classes,
            numbered(self._attributes), self._numbered_voters,
        )  # fmt: skip
        self._settle()
        path = path_for(self._engine, names, self._model.record, count, largest)
        if path is None:
            return False
        self._path, self._ask, self._teach = path, path.ask, path.teach
        return True

    def _settle(self) -> None:
        """Hand the recent instances that the path stores to the engine."""
        if self._path is not None:
            self._path.settle()

    def _leave_path(self) -> None:
        """Prepare for trials that the path does not see."""
        self._settle()
        if self._path is not None and self._path.remembers:
            self._renamed()

    def _learn_rows(
        self, indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, labels: np.ndarray
    ) -> np.ndarray:
        """Learn many instances of known attributes: the same as `learn` on each of them, in less time.

        Parameters
        ----------
        indptr, columns, values
            The rows as in a CSR array; a column is a place in `attributes`. Rows are finite and within bounds.
        labels
            Places among the known classes.

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
        >>> learner._learn_rows(np.array([0, 1, 2]), np.array([0, 1]), np.array([1.0, 2.0]), np.array([0, 1]))
        array([1, 1], dtype=int32)
        """
        size, layout = len(labels), self._engine.layout
        check_rows(indptr, len(columns), len(values), size)
        check_places("columns", columns, layout.sparse, "attributes")
        check_places("labels", labels, len(self._places), "known classes")
        instances = no_trials(size)._replace(
            votes=np.full((size, layout.voters), -1, np.int32),
            signs=np.ones(layout.voters),
            scores=np.zeros((size, layout.raters, self._engine.k if layout.raters else 0)),
            indptr=np.ascontiguousarray(indptr, np.int64),
            indices=np.ascontiguousarray(columns, np.int32),
            values=np.require(values, float, ["C", "W", "A"]),
            constant=layout.constant,
        )
        self._leave_path()
        return self._model.play(instances._replace(labels=np.ascontiguousarray(labels, np.int32))).predictions

    # -- further answers ----------------------------------------------------------------------------------------------

    def rank(self, candidates: Candidates, *, votes: Votes = None, scores: Scores = None) -> list[Label]:
        """Return the candidates, the best first; nothing is learned.

        Examples
        --------
        >>> from linmax import Learner
        >>> learner = Learner()
        >>> for t in range(20):
        ...     said = {"bm25": [0.2, 0.9, 0.1], "clicks": [0.8, 0.3, 0.4]}
        ...     _ = learner.learn(candidates=[f"{t}a", f"{t}b", f"{t}c"], scores=said, label=f"{t}a")
        >>> learner.rank(["x", "y", "z"], scores={"bm25": [0.5, 0.1, 0.2], "clicks": [0.1, 0.4, 0.9]})
        ['z', 'x', 'y']
        """
        scored = self._score(self._read(None, votes, scores, candidates))
        return [scored.names[place] for place in best_first(self, scored.table[0])]

    def scores(
        self,
        attributes: Attributes = None,
        *,
        votes: Votes = None,
        scores: Scores = None,
        candidates: Candidates = None,
    ) -> dict[Label, float]:
        """Return the score zeta(j) of each class that may be predicted, up to one positive factor."""
        scored = self._rated(attributes, votes, scores, candidates)
        return dict(zip(scored.names, scored.table[0].tolist(), strict=True))

    def predict_proba(
        self,
        attributes: Attributes = None,
        *,
        votes: Votes = None,
        scores: Scores = None,
        candidates: Candidates = None,
    ) -> dict[Label, float]:
        """Return the probability of each class that may be predicted, or of each candidate.

        Examples
        --------
        >>> from linmax import Learner
        >>> learner = Learner()
        >>> for t in range(40):
        ...     found = [f"{t}a", f"{t}b"]
        ...     _ = learner.learn(candidates=found, votes={"anna": found[0]}, label=found[t % 4 == 0])
        >>> shares = learner.predict_proba(candidates=["x", "y", "z"], votes={"anna": "z"})
        >>> {name: round(share, 2) for name, share in shares.items()}
        {'x': 0.17, 'y': 0.17, 'z': 0.66}
        """
        names, model, table, _ = self._rated(attributes, votes, scores, candidates)
        found = model.probabilities(table)[0].tolist() if table.size else []
        if self._answers is None:
            return dict(zip(names, found, strict=True))
        shares = {name: share * (1.0 - self._none) for name, share in zip(names, found, strict=True)}
        return shares | {None: 1.0 - sum(shares.values())}

    def explain(
        self, attributes: Attributes = None, *, votes: Votes = None, scores: Scores = None
    ) -> InstanceExplanation:
        """Return by how much each attribute, vote and rater moved the prediction.

        Each is left out in turn and the instance predicted again, so that all members of a pool count. Numbers of a
        pool are set to their mean instead. Names that the learner has not met contribute nothing.

        Parameters
        ----------
        attributes, votes, scores
            As in `predict`.

        Examples
        --------
        >>> from linmax import Learner
        >>> learner = Learner()
        >>> for text, label in [("cheap offer now", "spam"), ("lunch at noon", "ham")] * 10:
        ...     _ = learner.learn(dict.fromkeys(text.split(), 1.0), label)
        >>> explanation = learner.explain({"cheap": 1.0, "lunch": 1.0, "offer": 1.0})
        >>> explanation.winner, [name for name, added in explanation.contributions.items() if added < 0]
        ('spam', ['lunch'])
        """
        if len(self._model.known) < 2:
            raise ValueError(
                f"explain() requires two classes, got {list(self._model.known)!r}; learn their labels first"
            )
        model, engine, trial = self._placed(self._read(attributes, votes, scores))
        (found,) = explain_trials(model, engine, trial)
        blocks = (found.voters, self.voters), (found.raters, self.raters), (found.sparse, self.attributes)
        return found.named(model.classes, blocks)

    @property
    def _none(self) -> float:
        """Probability that no voter gives the right answer, where answers are open."""
        return 0.0 if self._answers is None else none_probability(self._answers.unnamed, self.trials)

    def predict_set(
        self,
        attributes: Attributes = None,
        *,
        votes: Votes = None,
        scores: Scores = None,
        candidates: Candidates = None,
        coverage: float = 0.9,
    ) -> tuple[Label, ...]:
        """Return classes, or candidates, that contain the right one as often as ``coverage``, the most probable first.

        See `Model.sets`.

        Examples
        --------
        >>> from linmax import Learner
        >>> learner = Learner("perceptron")
        >>> for trial in range(100):
        ...     _ = learner.learn({"rain": 1.0}, label="umbrella" if trial % 10 else "hat")
        >>> learner.predict_set({"rain": 1.0}, coverage=0.99), learner.predict_set({"rain": 1.0}, coverage=0.8)
        (('umbrella', 'hat'), ('umbrella',))
        """
        names, model, table, _ = self._rated(attributes, votes, scores, candidates)
        return chosen(table, model.sets(table, coverage), names)[0] if table.size else ()

    def _rated(self, attributes: Attributes, votes: Votes, scores: Scores, candidates: Candidates) -> Scored:
        """Score an instance, along the one-trial path if there is one that has scores."""
        path = self._path
        if self._has_path and scores is None and candidates is None and (path is None or path.asked is not None):
            answered = self._ask(attributes, votes) is not REFUSED or self._retry(attributes, votes) is not REFUSED
            if answered and self._path is not None and self._path.asked is not None:
                return Scored(self.classes, self._model, self._path.asked[:, : len(self._places)].copy(), -1)
        return self._score(self._read(attributes, votes, scores, candidates))

    def explore(self, attributes: Attributes = None, *, votes: Votes = None, scores: Scores = None) -> Label | None:
        """Return the class to try: as `predict`, and of a bandit learner (`linmax.bandit`) sometimes any class.

        Until the next trial is learned, the draw stays the same. Then ``learn`` the instance, with ``label`` if the
        class was right and with ``wrong`` if it was not.

        Examples
        --------
        >>> from linmax import Learner
        >>> learner = Learner("B(gamma=0.2)-perceptron", classes=["cap", "hat", "umbrella"])
        >>> for _ in range(100):
        ...     tried = learner.explore({"rain": 1.0})
        ...     answer = {"label": tried} if tried == "umbrella" else {"wrong": tried}
        ...     _ = learner.learn({"rain": 1.0}, **answer)
        >>> learner.predict({"rain": 1.0})
        'umbrella'
        """
        scored = self._score(self._read(attributes, votes, scores))
        place = scored.model.explored(scored.place, len(scored.names))
        return scored.names[place] if place >= 0 else None

    def wants_label(
        self,
        attributes: Attributes = None,
        *,
        votes: Votes = None,
        scores: Scores = None,
        id: Hashable = None,
        candidates: Candidates = None,
    ) -> bool:
        """Return whether the label of an instance is worth asking for: drawn by a selective learner, else True.

        If the label is wanted, `learn` learns from the next one, so call this once for each instance. With an ``id``
        the instance is the one that `predict` stored.

        Examples
        --------
        >>> from linmax import Learner
        >>> learner = Learner("S(b=0.1)-perceptron", classes=["hat", "umbrella"])
        >>> for _ in range(50):
        ...     if learner.wants_label({"rain": 1.0}):
        ...         _ = learner.learn({"rain": 1.0}, label="umbrella")
        >>> learner.trials < 15, learner.predict({"rain": 1.0})
        (True, 'umbrella')
        """
        blocks = attributes, votes, scores, candidates
        scored = self._score(self._read(*blocks) if id is None else self._pending.get(id, *blocks).instance)
        return self._model.wants_label(scored.table, len(scored.names))

    def ask(
        self,
        votes: Mapping[Name, Label] | Mapping[str, Label],
        *,
        attributes: Attributes = None,
        candidates: Candidates = None,
        costs: Costs = None,
        tolerance: float = TOLERANCE,
        explore: float = EXPLORE,
        voters: Sequence[Name] | None = None,
    ) -> Name | None:
        """Return the voter to ask next about an instance, or None when asking more is not worth it.

        The decisions are those of `linmax.VoteFusion.ask` on the same trials.

        Parameters
        ----------
        votes : dict of voter to class
            The votes so far. A voter with None was asked and abstained; an absent one was not asked.
        attributes : dict of name to number, optional
            Attributes of the instance; with ``tolerance=0``.
        candidates : sequence, optional
            Candidates of the instance; with ``tolerance=0``.
        costs : dict of voter to number, optional
            Cost of asking each voter, 1 by default. The most weight for its cost comes first.
        tolerance : float, default=0.002
            Accuracy that may be given up. Above 0, for a learner of votes alone, voters are asked until more votes
            are not worth their cost, by the trials so far. With 0 they are asked until those left cannot change the
            answer, whatever they vote: a class, one that nobody has named before unless ``classes`` were given, or
            nothing. That is certain only for a single weight vector, such as "winnow(1.1)"; any other learner, the
            default too, asks all.
        explore : float, default=0.05
            Share of the instances at which one voter from outside the panel is asked as well, so that a voter that
            improves is found. Not with ``tolerance=0``.
        voters : sequence, optional
            Voters that may be asked, all by default.

        Notes
        -----
        Then learn from these votes: ``learn(votes=votes, label=...)``. An absent voter keeps its weight. With a
        tolerance, instances with the votes of the panel alone are answered, and learned, by models of its first voters;
        with ``tolerance=0`` by the model of all voters. Which models these are depends on the tolerance and costs used
        last; asking changes nothing else.

        Examples
        --------
        >>> from linmax import Learner
        >>> learner = Learner("perceptron", thresholds=False)
        >>> for label in ["a", "b"] * 5:
        ...     _ = learner.learn(votes={"anna": label, "ben": "a", "carl": "b"}, label=label)
        >>> learner.ask({}, tolerance=0), learner.ask({"anna": "a"}, tolerance=0)
        ('anna', None)
        """
        inquiry = self._inquiry(
            votes,
            attributes=attributes,
            candidates=candidates,
            costs=costs,
            tolerance=tolerance,
            explore=explore,
            voters=voters,
        )
        self._choose(inquiry.choice)
        return inquiry.next()

    def _inquiry(
        self,
        votes: Mapping[Name, Label] | Mapping[str, Label],
        *,
        attributes: Attributes = None,
        candidates: Candidates = None,
        costs: Costs = None,
        tolerance: float = TOLERANCE,
        explore: float = EXPLORE,
        voters: Sequence[Name] | None = None,
    ) -> Inquiry:
        """A question as `ask` takes it, checked and not yet answered."""
        names = self.voters
        if not names:
            raise ValueError("ask() needs voters, and this learner has met none; learn from trials with votes= first")
        asked = asked_among(votes, names)
        unknown = [name for name in voters or () if name not in names]
        if unknown:
            raise ValueError(f"voters: {unknown[0]!r} is not a known voter; the voters are {names!r}")
        if candidates is not None and attributes is not None:
            raise TypeError("attributes have a weight for each class, and candidates have no weights of their own")
        allowed = None if voters is None else np.array([name in voters for name in names], bool)
        tolerance, explore = read_share("tolerance", tolerance), read_share("explore", explore)
        prices = read_costs(costs, names)
        cast = {name: vote for name, vote in votes.items() if not missing(vote)}
        instance = self._read(attributes, cast, None, candidates)
        choice = read_choice(self, tolerance, costs, attributes is not None)
        codes = self._votes_of(instance)[0] if choice is not None else np.zeros(0, np.int32)
        question = partial(self._question, instance, asked)
        return Inquiry(LearnerVoters(self), codes, asked, question, tolerance, prices, explore, choice, allowed)

    def _question(self, instance: Instance, asked: np.ndarray) -> Question:
        """Return the instance as the model of all voters sees it."""
        model, engine, trial = self._placed(instance)
        joins = engine.settings.by_votes or self._answers is not None
        widen = partial(add_class, model, engine.layout) if joins else None
        return Question(engine, trial, asked, np.eye(len(asked), trial.votes.shape[1], dtype=bool), widen)

    def _ask_by(self, tolerance: float, costs: Costs = None) -> None:
        """Ask by this tolerance and these costs from now on, as `ask` does."""
        self._choose(read_choice(self, tolerance, costs))

    def _choose(self, choice: Choice | None) -> None:
        """Ask by this from now on: by a tolerance and costs, or exactly."""
        if self._asked().choose(choice):
            self._settle()
            self._renamed()

    def panel(self, costs: Costs = None) -> VoterPanels:
        """Return how few voters are enough: for m = 1, 2, ... which ones, their cost, and their accuracy alone.

        As `linmax.VoteFusion.panel` says it of the same trials; for a learner of votes alone.

        Examples
        --------
        >>> import linmax
        >>> data, learner = linmax.datasets.majority_problem(n=20, r=3, k=2, trials=500, seed=1), linmax.Learner()
        >>> for votes, label in zip(data.votes, data.labels.tolist()):
        ...     _ = learner.learn(votes=votes, label=label)
        >>> panel = learner.panel()
        >>> sorted(panel[2].voters), panel[2].accuracy > 0.95, len(panel.enough().voters)
        ([0, 1, 2], True, 3)
        """
        return self._panels_to_compare(costs)()

    def _panels_to_compare(self, costs: Costs = None) -> Callable[[], VoterPanels]:
        """Return a function that compares panels by what was learned up to now."""
        refuse_others(self, "panel()", "make a Learner for the votes")
        return self._asked().compared(LearnerVoters(self), read_costs(costs, self.voters))

    # -- trials kept to ask fewer voters ------------------------------------------------------------------------------

    @property
    def trials(self) -> int:
        """Number of labels seen."""
        return self._model.trials + self._asking.of_few + (0 if self._answers is None else self._answers.unnamed)

    def _asking_state(self) -> State:
        """Return kept trials and choice as plain data and arrays; nothing if there are none."""
        asking = self._asked()
        if not asking.recent.trials and asking.choice is None:
            return {}, {}
        described, blocks = asking.state()
        named = ((f"asking.{block}.{name}", a) for block, arrays in blocks.items() for name, a in arrays.items())
        return {"asking": described}, dict(named)

    def _restore_asking(self, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what `_asking_state` returned."""
        self._recent = []
        self._asking = Asking.restored(description.get("asking", {}), by_part(by_part(arrays).get("asking", {})))

    def _store(self, votes: Any, label: Hashable, by_path: bool = False) -> None:
        """Store the votes of a trial that has been learned, for panels; if ``by_path``, the path has read them."""
        if votes is None:
            return
        if by_path and self._path is not None and len(votes) == len(self._voters):
            votes = self._path.taught_votes().copy()
        else:
            votes = dict(votes) if isinstance(votes, Mapping) else dict(enumerate(votes))
        self._recent.append((votes, label))
        if len(self._recent) >= STORED_TOGETHER:
            self._asked()

    def _asked(self) -> Asking:
        """Return the state for asking fewer voters, with all trials so far."""
        if self._recent:
            recent, self._recent = self._recent, []
            labels = np.array([self._places[label] for _, label in recent], np.int32)
            self._asking.learn_all(*self._in_columns([votes for votes, _ in recent]), labels)
        return self._asking

    def _in_columns(self, rows: Sequence[dict[Name, Label] | np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of votes as places of classes, -1 for an abstention, and who was queried; all names are known."""
        shape = (len(rows), len(self._voters))
        if {*map(len, rows)} == {shape[1]} and dict not in {*map(type, rows)}:
            return np.array(rows, np.int32), np.ones(shape, bool)
        codes, asked = np.full(shape, -1, np.int32), np.zeros(shape, bool)
        for t, row in enumerate(rows):
            columns: Any = slice(len(row))  # further voters have joined since
            if isinstance(row, dict):
                columns = list(map(self._voters.__getitem__, row))
            codes[t, columns] = list(map(self._chosen.__getitem__, row.values())) if isinstance(row, dict) else row
            asked[t, columns] = True
        return codes, asked

    def _votes_of(self, instance: Instance) -> tuple[np.ndarray, np.ndarray]:
        """Return votes of known voters as `_in_columns` does; a vote for an unknown class is an abstention."""
        votes = {name: vote if vote in self._places else None for name, vote in instance.votes.items()}
        codes, asked = self._in_columns([votes])
        return codes[0], asked[0]

    def _is_for_all(self, instance: Instance) -> bool:
        """Return whether a trial cannot be for the few: it has a name or a class that is new."""
        new = self._asking.choice is None or instance.attributes or instance.scores
        if new or instance.votes.keys() - self._voters.keys() or len(instance.candidates or ()) > len(self.classes):
            return True
        return not self._places.keys() >= set(cast_votes(instance.votes).values())

    def _scored_by_few(self, instance: Instance) -> tuple[Model, Trials] | None:
        """Return the model of the few that answers this trial, and the instance in its columns."""
        if self._is_for_all(instance):
            return None
        return self._asked().answering(LearnerVoters(self), *self._votes_of(instance))

    def _learned_by_few(self, instance: Instance, label: int, served: int | None) -> int | None:
        """Learn a trial of the few; return the class predicted, or None if it is for the model of all."""
        if self._is_for_all(instance):
            return None
        found = self._asked().learn_few(LearnerVoters(self), *self._votes_of(instance), label)
        if found is None:
            return None
        predicted, learned = found
        answer = predicted if served is None else served
        note_all(self._model.record, np.array([answer], np.int32), np.array([learned], np.int32))
        return predicted


# -- candidates: the classes of one trial -----------------------------------------------------------------------------


def read_candidates(candidates: Candidates) -> list[Label]:
    """The candidates of one trial as a list, checked."""
    if isinstance(candidates, (str, bytes)) or not isinstance(candidates, Iterable):
        raise TypeError(f"candidates must be a list of classes, got {candidates!r}")
    names = [name.item() if isinstance(name, np.generic) else name for name in candidates]
    if not names:
        raise ValueError("candidates must have at least one class, got none")
    try:
        seen: set[Label] = set()
        twice = next((name for name in names if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]
    except TypeError:
        raise TypeError(f"candidates must be hashable, got {names!r}; use text, numbers or tuples") from None
    if len(seen) < len(names):
        raise ValueError(f"candidates: {twice!r} is given twice; give each once")
    nobody = next((name for name in names if no_label(name)), UNSET)
    if nobody is not UNSET:
        raise ValueError(f"candidates must be classes, got {nobody!r}; remove it")
    return names


def choosing_model(model: Model) -> Model:
    """A model for candidates in the place of one that has learned nothing: thresholds belong to classes."""
    settings = Settings(model.engine.settings.largest, model.engine.settings.update_on_tie, True, candidates=True)
    return Model(model.learner, Layout(0, 0, 0, 0, 0.0), [], settings, Columns({}, {}, {})).follow()


def best_first(learner: Learner, scores: np.ndarray) -> np.ndarray:
    """Places of candidates, the highest score first; ties as the learner breaks them."""
    if learner._current_model.engine.settings.largest:
        return np.asarray(np.argsort(scores, kind="stable")[::-1])
    return np.argsort(-scores, kind="stable")


def place_of(label: Hashable, candidates: Sequence[Label] | None, what: str = "label") -> int:
    """Return the place of a label, which must be one of the candidates."""
    if candidates is None or label not in candidates:
        raise ValueError(f"{what}: {label!r} is not among the candidates {list(candidates or ())!r}")
    return candidates.index(label)


# -- asking fewer voters ----------------------------------------------------------------------------------------------


class LearnerVoters:
    """Voters of a learner, an `AskingModel`."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner

    @property
    def model(self) -> Model:
        return self._learner._current_model

    @property
    def asking(self) -> Asking:
        return self._learner._asked()

    @property
    def voters(self) -> list[Name]:
        return self._learner.voters

    def worth(self) -> np.ndarray:
        """Return the weight of each voter, or its recent accuracy if the learner is not a single weight vector."""
        try:
            weights = self._learner.weights.arrays.voters
        except ValueError:
            return self.asking.recent.accuracy(len(self._learner.voters))
        total = np.abs(weights).sum()
        return np.asarray(weights / total if total > 0.0 else weights)

    def worth_by_name(self) -> dict[Name, float]:
        """Return the worth of each voter by its name."""
        return dict(zip(self.voters, self.worth().tolist(), strict=False))


def read_choice(learner: Learner, tolerance: float, costs: Costs, attributes: bool = False) -> Choice | None:
    """Return what to ask by, checked; None to ask exactly."""
    if read_share("tolerance", tolerance) == 0.0:
        return None
    refuse_others(learner, f"tolerance={tolerance:g}", "ask with tolerance=0", attributes)
    return Choice.read(tolerance, costs, learner.voters)


def refuse_others(learner: Learner, what: str, remedy: str, attributes: bool = False) -> None:
    """Refuse to choose a few of the voters of a learner that has more than votes."""
    if not learner.voters:
        raise ValueError(f"{what} needs voters, and this learner has met none; learn from trials with votes= first")
    if len(learner.voters) > MOST_ASKED:
        raise ValueError(
            f"{what} needs at most {MOST_ASKED} voters, and this learner has {len(learner.voters)}; {remedy}"
        )
    others = {
        "candidates": learner._takes_candidates,
        "attributes": bool(learner.attributes) or attributes,
        "raters": bool(learner.raters),
    }
    present = [name for name, there in others.items() if there]
    if present:
        raise ValueError(f"{what} needs a learner of votes alone, and this one has {present[0]}; {remedy}")
