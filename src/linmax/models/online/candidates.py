"""Candidates: the classes of one trial, which need never have been seen, and may be any number.

Voters and raters have one weight, whatever the classes (Mesterharm 2001). So candidates need no names of their own in
the model: those of a trial are its first classes, in the order in which they are given, and only these may win.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from linmax.core.contract import KNOWN, Instances
from linmax.data.arrays import Layout
from linmax.data.labels import no_label
from linmax.engine.engine import Engine, Settings
from linmax.models.columns import Columns
from linmax.models.model import Model
from linmax.models.online.reading import (
    UNSET,
    Attributes,
    Blocks,
    Candidates,
    Given,
    Reading,
    Scores,
    Votes,
    check_given,
)
from linmax.models.online.waiting import Waiting

if TYPE_CHECKING:
    from linmax.models.online.answers import NamedAnswers

__all__ = [
    "NeedsCandidates",
    "among_candidates",
    "best_first",
    "check_choice",
    "choices",
    "choose",
    "choosing_model",
    "judge_candidates",
    "judged",
    "learn_candidates",
    "learn_choice",
    "place_of",
    "read_candidates",
]


class NeedsCandidates(Reading):
    """The reading of a learner that chooses among candidates: there are no other classes."""

    def check_label(self, label: Hashable, what: str = "label") -> Never:
        """Refuse a label without candidates."""
        raise ValueError(f"this learner chooses among candidates; give candidates= beside {what}={label!r}")

    def read(self, attributes: Attributes, votes: Votes, scores: Scores, label: Hashable = UNSET) -> Never:  # noqa: ARG002
        """Refuse an instance without candidates."""
        raise ValueError("this learner chooses among candidates; give candidates=")


def read_candidates(candidates: Candidates) -> list[Any]:
    """The candidates of one trial as a list, checked."""
    if isinstance(candidates, (str, bytes)) or not isinstance(candidates, Iterable):
        raise TypeError(f"candidates must be a list of classes, got {candidates!r}")
    names = [name.item() if isinstance(name, np.generic) else name for name in candidates]
    if not names:
        raise ValueError("candidates must have at least one class, got none")
    try:
        seen: set[Any] = set()
        twice = next((name for name in names if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]
    except TypeError:
        raise TypeError(f"candidates must be hashable, got {names!r}; use text, numbers or tuples") from None
    if len(seen) < len(names):
        raise ValueError(f"candidates: {twice!r} is given twice; give each once")
    nobody = next((name for name in names if no_label(name)), UNSET)
    if nobody is not UNSET:
        raise ValueError(f"candidates: {nobody!r} names nobody; leave it out")
    return names


def choosing_model(model: Model) -> Model:
    """A model for candidates in the place of one that has learned nothing: without thresholds, which belong to classes.

    It must not look back at trials that had other candidates.
    """
    settings = Settings(model.engine.settings.largest, model.engine.settings.update_on_tie, discover=True)
    made = Model(model.learner, Layout(0, 0, 0, 0, 0.0), [], settings, Columns({}, {}, {})).follow()
    if made.engine.memory or any(inner.memory for node in made.engine.top.walk() for inner in node.engines):
        raise ValueError(
            f"{model.learner} looks at earlier trials again, which had other candidates; leave R and V out, or use auto"
        )
    return made


def in_places(
    learner: NamedAnswers, candidates: Sequence[Any], attributes: Attributes, votes: Votes, scores: Scores
) -> Given:
    """What voters and raters say of the candidates, who go by their places; what they say of others does not count."""
    if attributes is not None:
        raise TypeError(
            "attributes have a weight for each class, and candidates have no weights of their own; rate the "
            "candidates: scores={attribute: {candidate: number}}"
        )
    reading = Reading(candidates, False, learner.model.bounded, learner._normaliser)
    numbers, voted, rated = reading.read(None, votes, scores)
    place = {name: j for j, name in enumerate(candidates)}
    return Given(
        numbers,
        {voter: place[choice] for voter, choice in voted.items() if choice in place},
        {rater: {place[c]: value for c, value in row.items() if c in place} for rater, row in rated.items()},
    )


def judge_candidates(
    learner: NamedAnswers, candidates: Sequence[Any], blocks: Sequence[Any]
) -> tuple[Given, np.ndarray]:
    """The instance as the model sees it, and the scores of the candidates. Nothing is learned."""
    given = in_places(learner, candidates, *blocks)
    return given, judged(learner, given, len(candidates))


def judged(learner: NamedAnswers, given: Given, count: int) -> np.ndarray:
    """The scores of so many candidates; ``given`` in places. The state stays as it is."""
    model = learner.model
    if count > len(model.classes):  # more places than ever: a copy has them
        model = model.visited(model.layout, range(count), ())
    shape = model.engine.state.shape
    before, shape[KNOWN] = int(shape[KNOWN]), count
    try:
        return learner._judge_with(model, given)[0, :count]
    finally:
        shape[KNOWN] = before


def among_candidates(
    learner: NamedAnswers, votes: Mapping[Any, Any], candidates: Sequence[Any]
) -> tuple[Engine, Instances]:
    """A copy of the engine in which only so many classes are known, and an instance with votes for candidates."""
    given, count = in_places(learner, candidates, None, votes, None), len(candidates)
    engine = learner.model.visited(learner.model.layout, range(count), ()).engine
    engine.state.shape[KNOWN] = count
    places = {place: place for place in range(engine.k)}
    return engine, learner._instances(given, places=places)


def best_first(learner: NamedAnswers, scores: np.ndarray) -> np.ndarray:
    """Places of candidates, the highest score first; ties as the learner breaks them."""
    if learner.model.engine.settings.largest:
        return np.asarray(np.argsort(scores, kind="stable")[::-1])
    return np.argsort(-scores, kind="stable")


def learn_candidates(learner: NamedAnswers, given: Given, count: int, label: int, served: Hashable) -> int:
    """Learn one trial; ``given`` and ``label`` in places. Returns the place predicted."""
    model, met = learner.model, [len(names) for names in learner._all_names]
    try:
        for place in range(count):
            learner._class(place)
        model.grow(learner._columns(given), learner._places)
    except ValueError:  # too wide for a rule that keeps a matrix
        for names, size in zip(learner._all_names, met, strict=True):
            while len(names) > size:
                names.popitem()
        raise
    model.engine.state.shape[KNOWN] = count
    try:
        return int(learner._play(learner._instances(given), label, served))
    finally:
        learner._renamed()


def choices(learner: NamedAnswers, candidates: Candidates) -> list[Any]:
    """The candidates, checked. From the first ones on the learner chooses among candidates only."""
    names = read_candidates(candidates)
    if not learner._choosing:
        if learner.fixed or learner.trials or len(learner._waiting):
            told = "its classes were fixed" if learner.fixed else "it has met classes that are not candidates"
            raise ValueError(f"candidates need a learner of their own, and {told}; make another Learner for them")
        learner._model = choosing_model(learner._model)
        learner._choosing = True
        learner._prepare()
    return names


def choose(learner: NamedAnswers, candidates: Candidates, blocks: Blocks, id: Hashable) -> Any:
    """`Learner.predict` among candidates."""
    if id is not None:
        learner._waiting.check_new(id)
    names = choices(learner, candidates)
    given, rated = judge_candidates(learner, names, blocks)
    place = int(best_first(learner, rated)[0])
    if id is not None:
        learner._waiting[id] = Waiting(*given, place, names)
    return names[place]


def learn_choice(learner: NamedAnswers, candidates: Candidates, label: Hashable, blocks: Blocks, id: Hashable) -> Any:
    """`Learner.learn` among candidates."""
    if id is not None:
        raise TypeError("id= means the instance that was kept, with its candidates; leave candidates= out")
    names = read_candidates(candidates)
    place = place_of(label, names)
    choices(learner, names)
    given, rated = judge_candidates(learner, names, blocks)
    served = int(best_first(learner, rated)[0])
    with learner._unharmed(given):
        learn_candidates(learner, given, len(names), place, served)
    return names[served]


def check_choice(learner: NamedAnswers, candidates: Candidates, label: Hashable, blocks: Blocks) -> None:
    """Raise what `learn_choice` would raise."""
    names = read_candidates(candidates)
    place_of(label, names)
    in_places(learner, names, *blocks)


def place_of(label: Hashable, candidates: Sequence[Any], what: str = "label") -> int:
    """The place of a label, which must be one of the candidates."""
    check_given(label)
    if label not in candidates:
        raise ValueError(f"{what}: {label!r} is not among the candidates {list(candidates)!r}")
    return candidates.index(label)
