"""What a `Learner` answers beside the class that it predicts: scores, probabilities, sets, ranks, whom to ask."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from linmax.models.asking import EXPLORE, TOLERANCE, Inquiry, VoterPanels
from linmax.models.model import Model, chosen
from linmax.models.online.asking import ask_by, inquiry_of, panels, read_choice
from linmax.models.online.candidates import best_first, choices, judge_candidates, judged
from linmax.models.online.reading import Attributes, Candidates, Scores, Votes
from linmax.models.online.trials import NamedTrials
from linmax.models.online.waiting import WaitingRoom

__all__ = ["NamedAnswers"]


class NamedAnswers(NamedTrials):
    """Questions that a `Learner` answers; none of them changes what it has learned."""

    _waiting: WaitingRoom

    def rank(self, candidates: Candidates, *, votes: Votes = None, scores: Scores = None) -> list[Any]:
        """The candidates, the best first. Nothing is learned.

        Examples
        --------
        >>> from linmax import Learner
        >>> learner = Learner()
        >>> for t in range(20):
        ...     said = {"bm25": [0.2, 0.9, 0.1], "clicks": [0.8, 0.3, 0.4]}
        ...     _ = learner.learn(candidates=[f"{t}a", f"{t}b", f"{t}c"], scores=said, label=f"{t}a")
        >>> learner.rank(["x", "y", "z"], scores={"bm25": [0.5, 0.1, 0.2], "clicks": [0.1, 0.4, 0.9]})
        ['z', 'y', 'x']
        """
        names = choices(self, candidates)
        _, rated = judge_candidates(self, names, (None, votes, scores))
        return [names[place] for place in best_first(self, rated)]

    def scores(
        self,
        attributes: Attributes = None,
        *,
        votes: Votes = None,
        scores: Scores = None,
        candidates: Candidates = None,
    ) -> dict[Any, float]:
        """The weighted vote zeta(j) for each class that may be predicted, up to one positive factor."""
        names, _, table = self._rated_names(attributes, votes, scores, candidates)
        return dict(zip(names, table[0].tolist(), strict=True))

    def predict_proba(
        self,
        attributes: Attributes = None,
        *,
        votes: Votes = None,
        scores: Scores = None,
        candidates: Candidates = None,
    ) -> dict[Any, float]:
        """The probability of each class that may be predicted, or of each candidate (see `linmax.models.calibration`).

        Examples
        --------
        >>> from linmax import Learner
        >>> learner = Learner()
        >>> for t in range(40):
        ...     found = [f"{t}a", f"{t}b"]
        ...     _ = learner.learn(candidates=found, votes={"anna": found[0]}, label=found[t % 4 == 0])
        >>> shares = learner.predict_proba(candidates=["x", "y", "z"], votes={"anna": "z"})
        >>> {name: round(share, 1) for name, share in shares.items()}
        {'x': 0.2, 'y': 0.2, 'z': 0.6}
        """
        names, model, table = self._rated_names(attributes, votes, scores, candidates)
        return dict(zip(names, model.probabilities(table)[0].tolist(), strict=True)) if table.size else {}

    def predict_set(
        self,
        attributes: Attributes = None,
        *,
        votes: Votes = None,
        scores: Scores = None,
        candidates: Candidates = None,
        coverage: float = 0.9,
    ) -> tuple[Any, ...]:
        """The classes, or candidates, that hold the right one as often as ``coverage`` says, the likeliest first.

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
        names, model, table = self._rated_names(attributes, votes, scores, candidates)
        return chosen(table, model.sets(table, coverage), names)[0] if table.size else ()

    def _rated_names(
        self, attributes: Attributes, votes: Votes, scores: Scores, candidates: Candidates
    ) -> tuple[Sequence[Any], Model, np.ndarray]:
        """The classes that may be predicted, the model that judges them, and their scores."""
        if candidates is None:
            model, table = self._rated(attributes, votes, scores)
            return model.known, model, table
        names = choices(self, candidates)
        rated = judge_candidates(self, names, (attributes, votes, scores))[1]
        return names, self.model, rated[None]

    def explore(self, attributes: Attributes = None, *, votes: Votes = None, scores: Scores = None) -> Any:
        """The class to try: as `predict`, and of a bandit learner (`linmax.bandit`) now and then any class.

        Until the next trial is learned, the draw stays the same. Then ``learn`` the instance, with ``label`` if the
        class was right and with ``wrong`` if it was not.

        Examples
        --------
        >>> from linmax import Learner
        >>> learner = Learner("B(gamma=0.2)-perceptron", classes=["cap", "hat", "umbrella"])
        >>> for _ in range(100):
        ...     tried = learner.explore({"rain": 1.0})
        ...     told = {"label": tried} if tried == "umbrella" else {"wrong": tried}
        ...     _ = learner.learn({"rain": 1.0}, **told)
        >>> learner.predict({"rain": 1.0})
        'umbrella'
        """
        model, predictions, _ = self._judge(self._reading.read(attributes, votes, scores))
        place = model.explored(int(predictions[0]))
        return model.classes[place] if place >= 0 else None

    def wants_label(
        self,
        attributes: Attributes = None,
        *,
        votes: Votes = None,
        scores: Scores = None,
        id: Hashable = None,
        candidates: Candidates = None,
    ) -> bool:
        """Whether the label of an instance is worth asking for: drawn by a selective learner, True for any other.

        The draw counts, and if the label is wanted the next one that `learn` is given is learned from; so ask once for
        each instance. With an ``id`` alone the instance is the one that `predict` kept.

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
        blocks = attributes, votes, scores
        if candidates is not None:
            rated = judge_candidates(self, choices(self, candidates), blocks)[1]
            return self._model.wants_label(rated[None], len(rated))
        if id is None:
            return self._model.wants_label(self._judge(self._reading.read(*blocks))[2])
        given, kept = self._waiting.kept(id, *blocks), self._waiting[id].candidates
        if kept is None:
            return self._model.wants_label(self._judge(given)[2])
        return self._model.wants_label(judged(self, given, len(kept))[None], len(kept))

    def ask(
        self,
        votes: Mapping[Any, Any],
        *,
        attributes: Attributes = None,
        candidates: Candidates = None,
        costs: Mapping[Any, float] | None = None,
        tolerance: float = TOLERANCE,
        explore: float = EXPLORE,
        voters: Sequence[Any] | None = None,
    ) -> Any:
        """Whom of the voters to ask next about an instance, or None when asking more is not worth it.

        The decisions are those of `linmax.VoteFusion.ask` on the same trials.

        Parameters
        ----------
        votes
            The votes so far, {voter: vote}; who was asked and abstained is there with None.
        attributes
            Those of the instance, if there are any; with ``tolerance=0``.
        candidates
            Those of the instance, for a learner that chooses among candidates; with ``tolerance=0``.
        costs
            What asking each voter costs, {voter: number}; 1 each by default. The most weight for its cost comes first.
        tolerance
            How much accuracy may be given up. Above 0, for a learner of votes alone, voters are asked until more votes
            are not worth their cost, by the trials so far. With 0 they are asked until those left cannot change the
            answer, whatever they vote: a class, one that nobody has named before unless ``classes`` were given, or
            nothing. That is certain only for a single weight vector, such as "winnow(1.1)"; any other learner, the
            default too, asks all.
        explore
            Share of the instances at which one voter from outside the panel is asked as well, so that one that got
            better is found. Not with ``tolerance=0``.
        voters
            Who may be asked: all by default.

        Notes
        -----
        Then learn from the votes that there are: ``learn(votes=votes, label=...)``. A voter that is not among them has
        not been asked, and keeps its weight; one that is there with None abstained. With a tolerance, instances with
        the votes of the panel alone are answered, and learned, by models of its first voters; without one by that of
        all. Which of them is settled by the tolerance and costs that were last asked with; asking changes nothing else.

        Examples
        --------
        >>> from linmax import Learner
        >>> learner = Learner("perceptron", thresholds=False)
        >>> for label in ["a", "b"] * 5:
        ...     _ = learner.learn(votes={"anna": label, "ben": "a", "carl": "b"}, label=label)
        >>> learner.ask({}, tolerance=0), learner.ask({"anna": "a"}, tolerance=0)
        ('anna', None)
        """
        inquiry = self.inquiry(
            votes,
            attributes=attributes,
            candidates=candidates,
            costs=costs,
            tolerance=tolerance,
            explore=explore,
            voters=voters,
        )
        ask_by(self, inquiry.choice)
        return inquiry.next()

    def inquiry(
        self,
        votes: Mapping[Any, Any],
        *,
        attributes: Attributes = None,
        candidates: Candidates = None,
        costs: Mapping[Any, float] | None = None,
        tolerance: float = TOLERANCE,
        explore: float = EXPLORE,
        voters: Sequence[Any] | None = None,
    ) -> Inquiry:
        """A question as `ask` takes it, checked and not yet answered; for the rest of the library."""
        names = None if candidates is None else choices(self, candidates)
        return inquiry_of(
            self,
            votes,
            attributes=attributes,
            candidates=names,
            costs=costs,
            tolerance=tolerance,
            explore=explore,
            voters=voters,
        )

    def ask_by(self, tolerance: float, costs: Mapping[Any, float] | None = None) -> None:
        """Ask by this tolerance and these costs from now on, as `ask` does; for the rest of the library."""
        ask_by(self, read_choice(self, tolerance, costs))

    def panel(self, costs: Mapping[Any, float] | None = None) -> VoterPanels:
        """How few voters are enough: for m = 1, 2, ... which ones, their cost, and how often they are right alone.

        As `linmax.VoteFusion.panel` says it of the same trials; for a learner of votes alone.

        Examples
        --------
        >>> import linmax
        >>> data, learner = linmax.majority_problem(n=20, r=3, k=2, trials=500, seed=1), linmax.Learner()
        >>> for votes, label in zip(data.votes, data.labels.tolist()):
        ...     _ = learner.learn(votes=votes, label=label)
        >>> panel = learner.panel()
        >>> sorted(panel[2].voters), panel[2].accuracy > 0.95, len(panel.enough().voters)
        ([0, 1, 2], True, 3)
        """
        return self.panels_to_compare(costs)()

    def panels_to_compare(self, costs: Mapping[Any, float] | None = None) -> Callable[[], VoterPanels]:
        """What finds the panels, by what has been learned up to now; for the rest of the library."""
        return panels(self, costs)
