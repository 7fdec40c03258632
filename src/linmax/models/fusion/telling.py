"""What a fusion tells of itself: weights, explanations, reports and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linmax.data.labels import label_array, unique_labels
from linmax.data.matching import labels_meant
from linmax.models.asking.question import read_costs
from linmax.models.fusion.comparison import BEST_LATELY, BEST_SO_FAR, FIRST_VOTER, FUSION, PLURALITY
from linmax.models.fusion.details import Details
from linmax.models.fusion.frugal import Frugal
from linmax.models.fusion.report import Explanation, Report, Side, Voter
from linmax.models.fusion.shares import shares, shares_by, unit, voter_weights
from linmax.models.fusion.state import FusionState
from linmax.models.fusion.trials import VoteBatch, later, one_row
from linmax.util.checks import whole

__all__ = ["Telling"]

THRESHOLDS = "(thresholds)"
TOGETHER = "(together)"


class Telling(Frugal):
    """What a fusion tells of what it has learned."""

    abstain: Any
    by: Any
    thresholds: bool

    def weights(self, *, copies: bool = False) -> dict[str, Any]:
        """Weight of each voter, heaviest first; they add up to 1 in magnitude.

        With ``copies`` a dict for each rater: its weight under each normalisation; or, with side columns, for each
        voter: its weight where each value holds, of which the weight without ``copies`` is the mean over the trials
        learned. A learner that is not a single weight vector raises ValueError.
        """
        state = self._fitted
        table = shares(state)
        order = np.argsort(-np.abs(table.sum(axis=1)), kind="stable")
        if not copies:
            return {state.voters[i]: float(table[i].sum()) for i in order}
        if state.sides.names:
            by = shares_by(state)
            return {state.voters[i]: {value: float(weights[i]) for value, weights in by.items()} for i in order}
        kinds = state.normaliser.kinds if state.normaliser is not None else ("vote",)
        return {state.voters[i]: dict(zip(kinds, table[i].tolist(), strict=True)) for i in order}

    def explain(self, instance: Any) -> Explanation:
        """Which voters moved the decision on one trial, and by how much.

        Parameters
        ----------
        instance
            One row of votes (or of scores), or a dict from voter to vote.

        Examples
        --------
        >>> import linmax
        >>> fusion = linmax.VoteFusion("winnow(1.5)").fit([["x", "y"], ["x", "y"], ["y", "x"]], ["x", "x", "y"])
        >>> told = fusion.explain(["y", "x"])
        >>> told.winner, told.contributions["0"] > 0 > told.contributions["1"]
        ('y', True)
        """
        state = self._fitted
        batch = later(self, state, one_row(instance, state, self.by))
        classes = state.model.classes
        if len(classes) < 2:
            raise ValueError(f"only the class {classes[0]!r} is known; there is nothing to explain")
        model, instances, voters = state.judge_of(batch)
        classes = model.classes
        winner = classes.index(model.predict(instances)[0])
        scores = model.scores(instances)[0]
        rated = scores.copy()
        rated[winner] = -np.inf
        second, total = int(rated.argmax()), unit(state, None if model is state.model else model)[0]
        ratings = instances.matrix(0, classes)
        added = (ratings[winner] - ratings[second]) * model.weights.arrays.flat / total
        count = len(instances.signs) + instances.scores.shape[1]
        columns = np.bincount(voters, added[:count], minlength=len(state.voters))
        found = dict(zip(state.voters, columns.tolist(), strict=True))
        if model.layout.constant:
            found[THRESHOLDS] = float(added[count:].sum())
        if not model.engine.top.linear:
            found[TOGETHER] = float(scores[winner] - scores[second]) / total - sum(found.values())
        ordered = dict(sorted(found.items(), key=lambda item: -abs(item[1])))
        said = {name: None if v < 0 else batch.names[v] for name, v in zip(state.voters, batch.said[0], strict=True)}
        return Explanation(
            classes[winner], classes[second], sum(ordered.values()), ordered, said, state.held(batch.places[0])
        )

    def report(self, votes: Any = None, y: Any = None, *, seed: int = 0, costs: Any = None) -> Report:
        """The fusion beside plurality, soft voting, the best voters and a logit; who won and by how much.

        Parameters
        ----------
        votes, y
            Held-out trials, to be judged as well; nothing is learned from them. There the best voter in hindsight is
            the best on them, and the best so far the one that led when learning ended.
        seed
            Of the bootstrap.
        costs
            What asking each voter costs, {voter: number}, for the page of `Report.to_html` that says how few are
            enough: the most weight for its cost comes first there.

        Notes
        -----
        Intervals are percentiles of 10,000 paired resamples of the trials. They take trials as independent, which those
        of a drifting stream are not. The best voter in hindsight was chosen with the labels at hand, which flatters it.
        """
        state = self._fitted
        whole("seed", seed, 0)
        if (votes is None) != (y is None):
            raise ValueError(
                f"report() needs both votes and y of held-out trials, got only {'y' if y is not None else 'votes'}"
            )
        prices = None if costs is None else read_costs(costs, state.voters)
        test = test_reliability = None
        if votes is not None:
            batch, labels = self._held_out(votes, y)
            test, test_reliability = state.compared(seed, (batch, labels)), state.reliability(batch, labels)
        try:
            weights = self.weights()
        except ValueError:  # the learner is not a single weight vector
            weights = {}
        kinds = None
        if state.normaliser is not None:
            held = np.abs(shares(state)).sum(axis=0).tolist() if weights else []
            kinds = dict(zip(state.normaliser.kinds, held, strict=False))
        online = state.compared(seed)
        lines = voter_lines(state, weights)
        sides, model = side_lines(state, bool(weights)), state.model
        judged = (model.reliability, test_reliability, model.coverage)
        details = Details.of(
            state.tally, state.voters, state.recent, model, voter_weights(state), state.normaliser is not None, prices
        )
        return Report(str(model.learner), online, test, lines, kinds, sides, *judged, details)

    def _held_out(self, votes: Any, y: Any) -> tuple[VoteBatch, np.ndarray]:
        """Trials that nobody learns from, and their labels."""
        state = self._fitted
        batch, labels = later(self, state, votes), label_array(y)
        if labels.shape != (len(batch.said),):
            raise ValueError(
                f"y must be one label per trial: got shape {labels.shape} for {len(batch.said)} trials of votes"
            )
        unique_labels(labels)  # which refuses what is no label
        return batch, labels_meant(labels, state.model.classes)

    def plot(self, path: Any = None) -> Any:
        """Draw the mistake curves of the fusion and its rivals; returns the figure, saved when given a path.

        Needs matplotlib (the extra ``plot``).
        """
        from linmax.util.plots import plot_mistakes

        tally, voters = self._fitted.tally, self._fitted.voters
        if not tally.trials:
            raise ValueError("no trial has a label yet, so there are no mistakes to draw; learn from some labels first")
        curves = {
            "fusion": tally.curve(FUSION),
            "plurality": tally.curve(PLURALITY),
            f"best voter, {voters[tally.leader]}": tally.curve(FIRST_VOTER + tally.leader),
            "best voter so far": tally.curve(BEST_SO_FAR),
            "best voter lately": tally.curve(BEST_LATELY),
        }
        subtitle = f"{self._fitted.model.learner}, {len(voters)} voters, {len(self._fitted.classes)} classes"
        return plot_mistakes(curves, path, title="Mistakes of the fusion", subtitle=subtitle)

    def plot_reliability(self, path: Any = None, *, votes: Any = None, y: Any = None) -> Any:
        """Draw how often answers were right beside how sure they were; returns the figure, saved when given a path.

        Of held-out trials, if ``votes`` and ``y`` are given, else of recent ones (see `Report`).
        """
        from linmax.util.plots import plot_reliability

        state = self._fitted
        found = state.model.reliability if votes is None else state.reliability(*self._held_out(votes, y))
        if found is None:
            raise ValueError(f"{state.model.trials} trials are too few to say how often answers are right; learn more")
        bins = [(part.confidence, part.accuracy, part.trials) for part in found.bins]
        subtitle = (
            f"{found.trials:,d} {'recent' if votes is None else 'held-out'} trials, calibration error "
            f"{100.0 * found.calibration_error:.1f} %, log loss {found.log_loss:.3f}"
        )
        return plot_reliability(bins, path, title="Reliability of the fusion", subtitle=subtitle)


def side_lines(state: FusionState, weighted: bool) -> tuple[Side, ...]:
    """What a report says of each value of the side columns: the most frequent first."""
    by = shares_by(state) if weighted and state.sides.names else {}
    lines = []
    for label, count in zip(state.sides.labels, state.sides.counts.tolist(), strict=True):
        weights = dict(zip(state.voters, by[label].tolist(), strict=True)) if weighted else {}
        lines.append(Side(label, count, dict(sorted(weights.items(), key=lambda item: -abs(item[1])))))
    return tuple(sorted(lines, key=lambda line: -line.trials))


def voter_lines(state: FusionState, weights: Mapping[str, float]) -> tuple[Voter, ...]:
    """What a report says of each voter: the heaviest first, or the most often right where there are no weights."""
    rates = {
        name: (counts[FIRST_VOTER:] / max(1, state.tally.trials)).tolist()
        for name, counts in (("right", state.tally.right), ("spoke", state.tally.spoke))
    }
    order = list(weights) or sorted(state.voters, key=lambda name: -rates["right"][state.voters.index(name)])
    strength = state.diversity.strengths(state.voters)
    lines = []
    for name in order:
        right, spoke = (rates[key][state.voters.index(name)] for key in ("right", "spoke"))
        lines.append(Voter(name, weights.get(name), right, spoke, strength.get(name)))
    return tuple(lines)
