"""Conversions from online to batch: a hypothesis with a guarantee from any online learner.

A learner is any object with ``predict(x)`` and ``learn(x, label)`` (`OneByOne` makes one of any learner of this
library); examples are pairs (x, label), drawn independently from one distribution. Each function runs the learner and
returns one of its hypotheses (a deep copy) with a guarantee: error at most ``error`` with probability at least
1 - ``failure``.

The survivors need a conservative learner, whose hypothesis lasts from one mistake to the next, so it is shown its
mistakes only. A mistake bound holds for every sequence, in particular for that of the mistakes: a mistake-driven rule
loses nothing; learners that also learn from trials that they predict right (thick separators, PA, AROW, softmax,
averages) do. The other conversions show the learner every trial, or its mistakes only where ``mistakes_only=True``.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from linmax.data.instances import Instances
from linmax.data.instances import instances as instances_of
from linmax.engine.notation import as_learner
from linmax.models.model import Model
from linmax.techniques.technique import LearnerLike
from linmax.theory import bounds
from linmax.theory.declaration import fraction
from linmax.util.aliases import Attributes, Label
from linmax.util.checks import boolean, whole

__all__ = ["Guaranteed", "OneByOne", "drawn", "first_survivor", "longest_survivor", "selected", "two_phase"]

CANDIDATES = 100  # hypotheses that `selected` tests of a learner that is shown every trial


@dataclass(frozen=True, eq=False)
class Guaranteed:
    """A hypothesis and what is known of it.

    Attributes
    ----------
    hypothesis
        A copy of the learner as it was; ``hypothesis.predict(x)``.
    error, failure
        With probability at least 1 - failure over the examples the error of the hypothesis is at most this.
    examples
        Examples used.
    mistakes
        Mistakes that the learner made on them.
    basis
        Why the guarantee holds, in words.

    See Also
    --------
    first_survivor, longest_survivor, two_phase, selected, drawn : make it.

    Examples
    --------
    >>> class Last:
    ...     answer = 0
    ...     def predict(self, x): return self.answer
    ...     def learn(self, x, label): self.answer = label
    >>> print(selected(Last(), [(None, 1)] * 1000, mistakes_only=True))
    error <= 0.09173 with probability 0.95 (1000 examples, 1 mistakes; tested on the 999 examples after it)
    """

    hypothesis: OnlineLearner
    error: float
    failure: float
    examples: int
    mistakes: int
    basis: str

    def __str__(self) -> str:
        return (
            f"error <= {self.error:.4g} with probability {1 - self.failure:.4g} "
            f"({self.examples} examples, {self.mistakes} mistakes; {self.basis})"
        )


class OnlineLearner(Protocol):
    """Learner that a conversion can use: of instances of any kind."""

    def predict(self, x: Any) -> Label: ...

    def learn(self, x: Any, label: Any) -> object: ...


Example: TypeAlias = tuple[object, Label]  # an instance as the learner takes it, and its label


class OneByOne:
    """Learner of this library for the conversions: one instance at a time.

    Parameters
    ----------
    learner : Rule, Technique or str
        A rule, a technique or text, as for `linmax.run`.
    classes : sequence
        All classes.
    kind : str, default="attributes"
        Kind of an instance: "attributes" (numbers, or a dict of strengths), "votes" (one class a voter) or "scores"
        (one row of k ratings a rater).

    See Also
    --------
    linmax.Learner : for other uses; with names, files and delayed labels.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(n=3, r=3, k=2, trials=2000, seed=1)
    >>> learner = OneByOne("winnow(1.2)", classes=[0, 1], kind="votes")
    >>> found = linmax.theory.conversion.longest_survivor(learner, zip(data.votes, data.labels), failure=0.05)
    >>> found.error < 0.05, found.hypothesis.predict([0, 0, 1])
    (True, 0)
    """

    def __init__(self, learner: LearnerLike, classes: Sequence[Label], kind: str = "attributes") -> None:
        if kind not in ("attributes", "votes", "scores"):
            raise ValueError(f"kind must be 'attributes', 'votes' or 'scores', got {kind!r}")
        self.learner, self.classes, self.kind = as_learner(learner), list(classes), kind
        self._model: Model | None = None

    def _given(self, x: Attributes) -> tuple[Model, Instances]:
        """Return the model, made for the first instance, and the instance."""
        block: dict[str, Any] = {self.kind: [x] if isinstance(x, dict) or self.kind == "votes" else np.asarray(x)[None]}
        instances = instances_of(**block, classes=self.classes)
        if self._model is None:
            self._model = Model(self.learner, instances.layout, self.classes)
        return self._model, instances

    def predict(self, x: Attributes) -> Label:
        """Predict the class of one instance."""
        model, instances = self._given(x)
        return model.predict(instances)[0].item()

    def learn(self, x: Attributes, label: Label) -> Label:
        """Predict, then learn from the label; return the prediction."""
        model, instances = self._given(x)
        return model.run(instances, [label]).predictions[0].item()


def _is_right(prediction: Label, label: Label) -> bool:
    value = np.asarray(prediction)
    return bool(value.item() == label) if value.size == 1 else bool(prediction == label)


class OnlineRun(NamedTuple):
    """Run of a learner: copies of hypotheses by the number of trials before them, the trials it got wrong, and all."""

    hypotheses: dict[int, OnlineLearner]
    wrong: list[int]
    trials: int


def play(
    learner: OnlineLearner, examples: Iterable[Example], moments: Container[int] | None, most: int | None = None
) -> OnlineRun:
    """Run a learner, and keep its hypotheses at some moments.

    Parameters
    ----------
    moments
        Numbers of trials. None shows the learner its mistakes only, and keeps every hypothesis.
    most
        The promised mistake bound.
    """
    hypotheses: dict[int, OnlineLearner] = {}
    wrong: list[int] = []
    trials, is_new = 0, True
    for x, label in examples:
        if is_new if moments is None else trials in moments:
            hypotheses[trials] = copy.deepcopy(learner)
        is_new = not _is_right(learner.predict(x), label)
        if is_new:
            wrong.append(trials)
            _keep_promise(len(wrong), most)
        if is_new or moments is not None:
            learner.learn(x, label)
        trials += 1
    if is_new and moments is None:
        hypotheses[trials] = copy.deepcopy(learner)
    return OnlineRun(hypotheses, wrong, trials)


def _keep_promise(made: int, most: int | None) -> None:
    if most is not None and made > most:
        raise ValueError(f"mistakes must bound the learner, got {most}, but it made {made}; raise it or pass None")


def _stored(examples: Iterable[Example], reason: str) -> list[Example]:
    stored = list(examples)
    if not stored:
        raise ValueError(f"examples must not be empty; {reason}")
    return stored


def first_survivor(
    learner: OnlineLearner,
    examples: Iterable[Example],
    *,
    error: float,
    failure: float = 0.05,
    mistakes: int | None = None,
) -> Guaranteed:
    """The first hypothesis that is right often enough in a row.

    Parameters
    ----------
    learner
        With ``predict`` and ``learn``; it is changed.
    examples
        Pairs (x, label); as many are used as needed.
    error, failure
        The guarantee that is wanted.
    mistakes
        A mistake bound M of the learner: a hypothesis must then be right ceil((1/error) ln((M +
        1)/failure)) times in a row, and M + 1 such runs of examples always suffice. None: the i-th
        hypothesis must be right ceil((1/error) ln(i(i + 1)/failure)) times.

    Notes
    -----
    The lecture notes on linear learners (theorem 9.1) ask for (1/error) ln(1/failure), which would do for
    one hypothesis fixed in advance, not for the first of many.

    Returns
    -------
    Guaranteed
        The hypothesis, its error and why that holds.

    References
    ----------
    Littlestone (1989), From on-line to batch learning.

    Examples
    --------
    >>> class Last:  # says what was right last
    ...     answer = 0
    ...     def predict(self, x): return self.answer
    ...     def learn(self, x, label): self.answer = label
    >>> found = first_survivor(Last(), [(None, 1)] * 100, error=0.1, mistakes=1)
    >>> found.hypothesis.answer, found.examples
    (1, 38)
    """
    run = wrong = used = 0
    for x, label in examples:
        used += 1
        if _is_right(learner.predict(x), label):
            run += 1
            if run >= _needed(wrong, error, failure, mistakes):
                basis = f"{run} right in a row"
                return Guaranteed(copy.deepcopy(learner), float(error), float(failure), used, wrong, basis)
        else:
            run, wrong = 0, wrong + 1
            _keep_promise(wrong, mistakes)
            learner.learn(x, label)
    always = "" if mistakes is None else f"; {bounds.survival_examples(mistakes, error, failure)} always suffice"
    raise ValueError(
        f"examples ran out after {used}, with {run} right in a row where "
        f"{_needed(wrong, error, failure, mistakes)} are needed{always}; give more, or use longest_survivor"
    )


def _needed(wrong: int, error: float, failure: float, mistakes: int | None) -> int:
    if mistakes is None:
        return bounds.survival_run_unknown(wrong + 1, error, failure)
    return bounds.survival_run(mistakes, error, failure)


def longest_survivor(
    learner: OnlineLearner,
    examples: Iterable[Example],
    *,
    failure: float = 0.05,
    mistakes: int | None = None,
) -> Guaranteed:
    """The hypothesis with the longest run of right predictions, over all the examples.

    Its error is at most 1 - (failure/(M + 1))^(1/run) when M = ``mistakes`` bounds the learner. Without a
    bound the i-th hypothesis has failure/(i(i + 1)) in place of failure/(M + 1), and the one with the least
    such number is taken.

    Source: Gallant's pocket algorithm; Kearns, Li, Pitt and Valiant (1987).

    Parameters
    ----------
    learner
        With ``predict`` and ``learn``; it is changed.
    examples
        Pairs (x, label).
    failure
        The probability that the guarantee may fail.
    mistakes
        A mistake bound of the learner, if one is known.

    Returns
    -------
    Guaranteed
        The hypothesis, its error and why that holds.

    Examples
    --------
    >>> class Last:
    ...     answer = 0
    ...     def predict(self, x): return self.answer
    ...     def learn(self, x, label): self.answer = label
    >>> found = longest_survivor(Last(), [(None, 0)] * 5 + [(None, 1)] * 200, mistakes=1)
    >>> found.hypothesis.answer, round(found.error, 4)
    (1, 0.0184)
    """
    played = play(learner, examples, None, mistakes)
    runs = np.subtract([*played.wrong, played.trials], list(played.hypotheses)).tolist()
    errors = [bounds.survival_error(run, failure, mistakes, i + 1) for i, run in enumerate(runs)]
    at = int(np.argmin(errors))
    hypothesis, basis = list(played.hypotheses.values())[at], f"{runs[at]} right in a row"
    return Guaranteed(hypothesis, errors[at], float(failure), played.trials, len(played.wrong), basis)


def two_phase(
    learner: OnlineLearner,
    examples: Iterable[Example],
    *,
    mistakes: int,
    error: float,
    failure: float = 0.05,
    mistakes_only: bool = False,
    seed: int = 0,
) -> Guaranteed:
    """Learn on m1 examples, test hypotheses on m2 fresh ones, return the one with the fewest errors.

    m1 and m2 are `linmax.theory.bounds.two_phase_examples`(mistakes, error, failure, mistakes_only). For a large
    mistake bound this needs far fewer examples than `first_survivor`: about (4M + 32 ln M)/error against
    (M ln M)/error.

    The theorem tests all M + 1 hypotheses of a conservative learner (``mistakes_only=True``). A learner that is shown
    every trial may have m1; then a few are tested that are drawn at random, and m1 is twice as large.

    Source: after Littlestone (1989), From on-line to batch learning.

    Parameters
    ----------
    learner
        With ``predict`` and ``learn``; it is changed.
    examples
        Pairs (x, label).
    mistakes
        A mistake bound of the learner.
    error, failure
        The guarantee that is wanted.
    mistakes_only
        Show the learner its mistakes only.
    seed
        Of the draw, where every trial is shown.

    Returns
    -------
    Guaranteed
        The hypothesis, its error and why that holds.

    Examples
    --------
    >>> class Last:
    ...     answer = 0
    ...     def predict(self, x): return self.answer
    ...     def learn(self, x, label): self.answer = label
    >>> found = two_phase(Last(), [(None, 1)] * 4000, mistakes=1, error=0.1)
    >>> found.hypothesis.answer, found.examples
    (1, 3249)
    >>> two_phase(Last(), [(None, 1)] * 3000, mistakes=1, error=0.1, mistakes_only=True).examples
    2123
    """
    only = boolean("mistakes_only", mistakes_only)
    learn, test = bounds.two_phase_examples(mistakes, error, failure, only)
    draws = np.random.default_rng(whole("seed", seed, 0)).integers(learn, size=bounds.two_phase_draws(failure))
    stream = iter(examples)
    played = play(learner, islice(stream, learn), None if only else set(draws.tolist()), mistakes)
    fresh = list(islice(stream, test))
    used = played.trials + len(fresh)
    if used < learn + test:
        raise ValueError(
            f"examples must be {learn} to learn and {test} to test, got {used}; give more, or a larger error"
        )
    hypotheses = list(played.hypotheses.values())
    errors = [_errors(hypothesis, fresh) for hypothesis in hypotheses]
    at = int(np.argmin(errors))
    basis = f"{errors[at]} errors on {test} fresh examples, the fewest of {len(errors)} hypotheses"
    return Guaranteed(hypotheses[at], float(error), float(failure), used, len(played.wrong), basis)


def _errors(hypothesis: OnlineLearner, examples: list[Example]) -> int:
    return sum(not _is_right(hypothesis.predict(x), label) for x, label in examples)


def selected(
    learner: OnlineLearner,
    examples: Iterable[Example],
    *,
    failure: float = 0.05,
    mistakes_only: bool = False,
) -> Guaranteed:
    """The hypothesis with the least error on the examples after it, plus a penalty for their number.

    No mistake bound is needed and noise is allowed: risk <= errors/tested + sqrt(ln(n(n + 1)/failure)/(2
    tested)), for all n hypotheses at once. Each candidate is tested on all later examples. A learner that is shown
    every trial has 100 candidates at equal distances. One that is shown its mistakes only has all of its M + 1
    hypotheses; the risk is then also at most M/n + 6 sqrt(ln(2(n + 1)/failure)/n)
    (`linmax.theory.bounds.selection_risk`).

    Source: Cesa-Bianchi, Conconi and Gentile (2004), On the generalization ability of on-line learning
    algorithms.

    Parameters
    ----------
    learner
        With ``predict`` and ``learn``; it is changed.
    examples
        Pairs (x, label).
    failure
        The probability that the guarantee may fail.
    mistakes_only
        Show the learner its mistakes only. Mistake-driven rules lose nothing. Others do: after 2,000 trials of the
        majority problem with noise .2 ``arow(1)`` errs on .49 of new instances instead of .24, ``A-perceptron`` on .33
        instead of .25, ``softmax`` on .29 instead of .22.

    Returns
    -------
    Guaranteed
        The hypothesis, its error and why that holds.

    Examples
    --------
    >>> class Last:
    ...     answer = 0
    ...     def predict(self, x): return self.answer
    ...     def learn(self, x, label): self.answer = label
    >>> found = selected(Last(), [(None, 1)] * 1000, mistakes_only=True)
    >>> found.hypothesis.answer, round(found.error, 3)
    (1, 0.092)
    """
    stored = _stored(examples, "a hypothesis is chosen by what comes after it")
    n = len(stored)
    spaced = {place * n // CANDIDATES for place in range(CANDIDATES)}
    played = play(learner, stored, None if boolean("mistakes_only", mistakes_only) else spaced)
    best: tuple[float, int] = math.inf, 0
    for since, hypothesis in played.hypotheses.items():
        penalty = bounds.selection_penalty(n, n - since, failure)
        if penalty >= best[0]:
            break  # later hypotheses have larger penalties still
        best = min(best, (_errors(hypothesis, stored[since:]) / (n - since) + penalty, since))
    risk, since = best
    basis = f"tested on the {n - since} examples after it"
    return Guaranteed(played.hypotheses[since], min(1.0, risk), float(failure), n, len(played.wrong), basis)


def drawn(
    learner: OnlineLearner,
    examples: Iterable[Example],
    *,
    failure: float = 0.05,
    seed: int = 0,
    mistakes_only: bool = False,
) -> Guaranteed:
    """A hypothesis drawn at random among those used, each as likely as it was used often.

    Its error *in the mean over the draw* is at most M/n + sqrt(ln(1/failure)/(2n)) with probability 1 -
    failure (`linmax.theory.bounds.average_risk`): the cheapest guarantee that online mistakes give, for every learner.

    Source: Cesa-Bianchi, Conconi and Gentile (2004), proposition 1.

    Parameters
    ----------
    learner
        With ``predict`` and ``learn``; it is changed.
    examples
        Pairs (x, label).
    failure
        The probability that the guarantee may fail.
    seed
        Of the draw.
    mistakes_only
        Show the learner its mistakes only (see `selected`).

    Returns
    -------
    Guaranteed
        The hypothesis, its error and why that holds.

    Examples
    --------
    >>> class Last:
    ...     answer = 0
    ...     def predict(self, x): return self.answer
    ...     def learn(self, x, label): self.answer = label
    >>> found = drawn(Last(), [(None, 1)] * 1000)
    >>> found.hypothesis.answer, round(found.error, 4)
    (1, 0.0397)
    """
    failure = fraction("failure", failure)
    stored = _stored(examples, "hypotheses are drawn by how often they were used")
    n = len(stored)
    moment = int(np.random.default_rng(whole("seed", seed, 0)).integers(n))
    played = play(learner, stored, None if boolean("mistakes_only", mistakes_only) else {moment})
    since = max(place for place in played.hypotheses if place <= moment)
    mistakes, basis = len(played.wrong), "in the mean over the draw"
    error = bounds.average_risk(mistakes / n, n, failure)
    return Guaranteed(played.hypotheses[since], error, failure, n, mistakes, basis)
