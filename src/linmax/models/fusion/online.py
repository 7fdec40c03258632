"""Fuse votes or scores that already exist, on-line, and say what it was worth: `linmax.VoteFusion` at work."""

from __future__ import annotations

import os
from collections.abc import Sequence
from inspect import signature
from itertools import pairwise
from typing import Any, Self

import numpy as np

from linmax.data.blocks import silent_votes
from linmax.data.labels import as_array, label_array, labels_with_gaps
from linmax.data.matching import ROWS_OF_IDS, labels_meant, matched, tell_strangers
from linmax.data.normalisation import Normaliser
from linmax.data.side_columns import Sides, read_sides
from linmax.data.votes import Ballots
from linmax.engine.engine import settings_of
from linmax.models.experts_model import ExpertsModel
from linmax.models.fusion.right_or_wrong import learned_with_wrong
from linmax.models.fusion.saving import read_fusion, write_fusion
from linmax.models.fusion.state import FusionState
from linmax.models.fusion.telling import Telling
from linmax.models.fusion.trials import (
    VoteBatch,
    joined,
    later,
    make_batch,
    one_row,
    read_votes,
    side_columns,
    some_rows,
    weights_given,
)
from linmax.util.checks import fraction, one_of

__all__ = ["OnLineFusion"]


class OnLineFusion(Telling):
    """All of `linmax.VoteFusion` but what makes it an estimator of scikit-learn, which takes a second to import."""

    def __init__(
        self,
        learner: Any = "auto",
        *,
        classes: Sequence[Any] | None = None,
        discover: str = "votes",
        normalise: str | Sequence[str] = "auto",
        abstain: Any = None,
        by: Any = None,
        thresholds: bool = True,
        tie: str = "smallest",
        update_on_tie: bool = True,
    ) -> None:
        self.learner = learner
        self.classes = classes
        self.discover = discover
        self.normalise = normalise
        self.abstain = abstain
        self.by = by
        self.thresholds = thresholds
        self.tie = tie
        self.update_on_tie = update_on_tie

    # -- learning -------------------------------------------------------------------------------------------------

    def fit(self, votes: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Forget everything and learn from these trials, in their order: the same as `partial_fit` on a new one."""
        self._state = self._learn(None, votes, y, sample_weight)
        return self

    def partial_fit(self, votes: Any, y: Any = None, sample_weight: Any = None, *, wrong: Any = None) -> Self:
        """Go on with further trials; voters and classes may join. An error leaves the model as it was.

        A class that was not given in ``classes`` is known from its first vote on, or after its first label, so that it
        does not matter how trials are cut into calls.

        Parameters
        ----------
        votes, y
            The trials and their labels. A label that is None, nan or empty means that there is none yet, and no ``y``
            that there are none at all: from such trials the default learner learns how far voters agree. Reports do not
            count them.
        sample_weight
            How much each trial counts, 1 by default: one of weight w is predicted and counted once, and learned w
            times, the rest of a fraction by a draw (see `linmax.models.showings`); 0 leaves it out.
        wrong
            A mask: where it is True, all that is known is that the label is not the class in ``y``. Another class is
            drawn there, by the present probabilities, and learned; figures of `report` count it as the label.
        """
        if wrong is not None:
            self._state = learned_with_wrong(self, votes, y, wrong, sample_weight)
            return self
        state = getattr(self, "_state", None)
        plain = state is not None and self.abstain is None and sample_weight is None
        if state is None or not plain or not state.learn_row(votes, y):
            self._state = self._learn(state, votes, y, sample_weight)
        return self

    def _learn(self, state: FusionState | None, votes: Any, y: Any, sample_weight: Any) -> FusionState:
        ballots = read_votes(votes, self.by)
        labels = label_array([None] * len(ballots) if y is None else y)
        if labels.shape != (len(ballots),):
            raise ValueError(
                f"y must be one label per trial: got shape {labels.shape} for {len(ballots)} trials of votes"
            )
        weights = weights_given(sample_weight, len(ballots))
        if weights is not None and not weights.all():
            shown = weights > 0.0
            if not shown.any():
                if state is None:
                    raise ValueError("sample_weight: all weights are 0; leave it out, or give some trial more")
                return state
            ballots, labels, weights = some_rows(ballots, shown), labels[shown], weights[shown]
        labels = labels_meant(labels, () if state is None else state.model.classes)
        distinct, inverse = labels_with_gaps(labels)
        known = [*(self.classes if self.classes is not None and state is None else ()), *distinct]
        ballots = matched(ballots, known if state is None else [*state.model.classes, *known], self.abstain)
        if state is None and not ballots.scored and (inverse >= 0).sum() >= ROWS_OF_IDS:
            tell_strangers(ballots, distinct, self.abstain)
        fixed = self._fixed(ballots, distinct) if state is None else state.fixed
        unknown = [name for name in distinct if fixed is not None and name not in fixed]
        if unknown:
            t = int(np.flatnonzero(inverse == distinct.index(unknown[0]))[0])
            raise ValueError(f"y: {unknown[0]!r} at trial {t} is not among the classes {list(fixed or ())!r}; add it")
        voters, named = joined(state, ballots)
        normaliser = state.normaliser if state is not None else Normaliser(self.normalise) if ballots.scored else None
        sides = Sides(tuple(map(str, side_columns(self.by)))) if state is None else state.sides
        held = read_sides(sides.names, ballots.sides)
        begins = sides.debuts(held)
        complete = sides.joined(held, len(voters)) if sides.names else sides  # refused as a whole, or not at all
        batch = make_batch(self, ballots, voters, named, fixed, normaliser, complete, learn=True)
        if state is None:
            state = FusionState(self._begun(batch, fixed), fixed, named, voters, normaliser, sides)
        if len(ballots) < ROWS_OF_IDS and not ballots.scored and fixed is None:
            met = {*state.model.classes, *silent_votes(self.abstain)}
            state.ids.see_rows(state.tally.trials, ballots.aligned(voters, named), voters, labels.tolist(), met)
        state.voters = voters
        state.diversity.add(ballots, voters, named, state.tally.trials)
        for first, last in pairwise([*begins, len(ballots)]):
            state.welcome([column[first:last] for column in held])
            part = state.placed(batch[first:last], [column[first:last] for column in held])
            state.advance(part, labels[first:last], None if weights is None else weights[first:last])
        return state

    def _begun(self, batch: VoteBatch, fixed: tuple[Any, ...] | None) -> ExpertsModel:
        """A model for trials like these, before the first of them."""
        one_of("discover", self.discover, ("votes", "labels"))
        settings = settings_of(self.tie, self.update_on_tie, self.discover if fixed is None else False)
        return ExpertsModel(self.learner, batch.instances.layout, fixed or (), settings).follow()

    def _fixed(self, ballots: Ballots, labels: Sequence[Any]) -> tuple[Any, ...] | None:
        """The classes when no more may join: those given, or for scores those of the first call."""
        if isinstance(self.classes, str):
            raise TypeError(
                f"classes must be a list of labels, got the text {self.classes!r}; try {list(self.classes)!r}"
            )
        if self.classes is not None:
            return tuple(as_array(list(self.classes)).tolist())
        if not ballots.scored:
            return None
        k = ballots.table.shape[2]
        if len(labels) == k:
            return tuple(labels)
        if set(labels) <= set(range(k)):
            return tuple(range(k))
        raise ValueError(
            f"scores rate {k} classes but y has {len(labels)} labels, such as {labels[0]!r}; pass classes= in the "
            "order of the scores"
        )

    # -- predicting -----------------------------------------------------------------------------------------------

    @property
    def _fitted(self) -> FusionState:
        state: FusionState | None = getattr(self, "_state", None)
        if state is None:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this VoteFusion is not fitted; call fit(votes, y) or partial_fit(votes, y) first")
        return state

    def _later(self, votes: Any) -> VoteBatch:
        return later(self, self._fitted, votes)

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_state", None) is not None

    @property
    def classes_(self) -> np.ndarray:
        """The classes, in the order of the columns of `decision_function` and `predict_proba`: as given, or sorted."""
        return as_array(self._fitted.classes)

    @property
    def voters_(self) -> list[str]:
        """The voters' names."""
        return list(self._fitted.voters)

    @property
    def n_features_in_(self) -> int:
        """Number of voters."""
        return len(self._fitted.voters)

    @property
    def model(self) -> ExpertsModel:
        """The model under it; for the rest of the library."""
        return self._fitted.model

    @property
    def normalisations(self) -> list[str]:
        """The normalisations under which raters enter; none of votes."""
        return [] if self._fitted.normaliser is None else list(self._fitted.normaliser.kinds)

    @property
    def labels_used_(self) -> int:
        """Labels learned from: those of all trials, or of a selective learner those that it asked for."""
        return self._fitted.model.labels_used

    def predict(self, votes: Any, *, reject: float | None = None) -> np.ndarray:
        """The class of each trial; nothing is learned.

        With ``reject``, a risk, the answer is None, "do not know", where the probability of being wrong is greater.
        """
        state, batch = self._fitted, self._later(votes)
        found = state.predict(batch)
        if reject is None:
            return found
        least, answers = 1.0 - fraction("reject", reject, 0.1), np.array(found, dtype=object)
        answers[state.probabilities(batch).max(axis=1) < least] = None
        return answers

    def decision_function(self, votes: Any) -> np.ndarray:
        """Score of each class: (trials, classes); with two classes that of the second less that of the first.

        A voter's vote adds its weight as in `weights`, which add up to 1 in magnitude; where few were asked (see `ask`)
        its weight among these, which do so as well.
        """
        state = self._fitted
        scores = state.scores(self._later(votes))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, votes: Any) -> np.ndarray:
        """Probability of each class: (trials, classes)."""
        state = self._fitted
        return state.probabilities(self._later(votes))

    def predict_set(self, votes: Any, coverage: float = 0.9) -> list[tuple[Any, ...]]:
        """For each trial the classes that hold the right one as often as ``coverage`` says, the likeliest first.

        Sets widen after they have missed the label of a trial, and narrow otherwise, so that over the trials learned
        their coverage comes to the one asked for, whatever changes (Gibbs and Candes 2021;
        `linmax.bounds.adaptive_coverage` says how near it must be). Any coverage may be asked for; 50, 60, 70, 80, 85,
        90, 95, 97.5 and 99 % are followed, the others lie between them.

        Examples
        --------
        >>> import linmax
        >>> data = linmax.majority_problem(n=20, r=10, k=5, noise=0.3, trials=1500, seed=1)
        >>> fusion = OnLineFusion("AR-winnow(1.1)").fit(data.votes[:1000], data.labels[:1000])
        >>> sets = fusion.predict_set(data.votes[1000:], coverage=0.9)
        >>> covered = np.mean([label in found for label, found in zip(data.labels[1000:].tolist(), sets)])
        >>> bool(abs(covered - 0.9) < 0.04)
        True
        """
        state = self._fitted
        return state.sets(self._later(votes), coverage)

    def wants_label(self, instance: Any) -> bool:
        """Whether the label of one trial is worth asking for: drawn by a selective learner, True for any other.

        The draw counts, and if the label is wanted the next one that `partial_fit` is given is learned from.

        Parameters
        ----------
        instance
            One row of votes (or of scores), or a dict from voter to vote.

        Examples
        --------
        >>> fusion = OnLineFusion("S(b=0.1)-auto").fit([["x", "y"], ["y", "x"]] * 20, ["x", "y"] * 20)
        >>> asked = sum(fusion.wants_label(["x", "y"]) for _ in range(100))
        >>> asked < 30
        True
        """
        state = self._fitted
        instances = state.known(state.laid_out(self._later(one_row(instance, state, self.by))))
        return state.model.wants_label(state.model.scores(instances))

    # -- files ----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fusion and all that it has learned to one file, which holds arrays and plain data only.

        Labels may be text, numbers, truth values and tuples of these. `load` goes on bit for bit where this one stands.
        """
        state = self._fitted
        write_fusion(path, {name: getattr(self, name) for name in signature(type(self)).parameters}, state)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """A fusion from a file that `save` wrote.

        Examples
        --------
        >>> import os, tempfile
        >>> name = os.path.join(tempfile.mkdtemp(), "fusion.linmax")
        >>> OnLineFusion("winnow(1.1)").fit([["x", "y"], ["y", "y"]], ["x", "y"]).save(name)
        >>> OnLineFusion.load(name).predict([["x", "y"]]).tolist()
        ['x']
        """
        fusion, state = read_fusion(path, cls)
        fusion._state = state
        return fusion
