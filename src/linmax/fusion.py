"""`VoteFusion`: fuse votes or scores that already exist, on-line, and say what it was worth."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from linmax import files
from linmax.ballots import Ballots, read_ballots
from linmax.calibration import KEPT, Calibration
from linmax.checks import boolean, whole
from linmax.comparison import BEST_SO_FAR, FIRST_VOTER, FUSION, PLURALITY, Tally
from linmax.composition import as_learner
from linmax.fusion_report import Explanation, Report, Voter
from linmax.instances import Experts, Layout, experts
from linmax.machine import Settings
from linmax.normalisation import Normaliser, cognitive_diversity
from linmax.trials import Machine, as_array, label_array, unique_labels

__all__ = ["VoteFusion"]

SAMPLE = 1000  # trials of a call from which the diversity of raters is taken
THRESHOLDS = "(thresholds)"


class VoteFusion(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no annotations
    """Learn on-line how far to trust each of several voters, and fuse them.

    Each trial is predicted before its label is seen, then learned from; the order of the rows is the order of the
    trials. So `report` can say what the fusion was worth on the very trials that it learned from.

    Parameters
    ----------
    learner
        Any learner of the library, described or as text.
    classes
        All classes, in order. Without it they are those met in votes and labels, and more may join at any
        `partial_fit`; a vote for a class that was never met then counts as an abstention in `predict`.
    normalise
        For scores only: under which normalisations the learner gets each rater (see `linmax.normalisation`).
    abstain
        A label that means abstention, besides None, nan and pandas' NA.
    thresholds
        Let the learner prefer a class whoever votes for it.
    tie, update_on_tie
        As in `linmax.run`.

    Notes
    -----
    Votes are (trials, voters) labels: an array, lists, a dict of columns, or a DataFrame of pandas or polars, whose
    columns name the voters. Scores are (trials, raters, classes) numbers, or a dict from a rater's name to its
    (trials, classes) array; the classes are then fixed by the first call: those given, or else the labels, sorted, when
    there are as many, or else 0 to k - 1. A voter that is known by name may be absent later, which is an abstention,
    and new ones may join at any `partial_fit`; without names, new ones are further columns at the right.

    Probabilities are a softmax of the scores, mixed with a guess, fitted to the last 1,000 trials as they were scored
    before their labels were seen (see `linmax.calibration`).

    References
    ----------
    Mesterharm and Hsu, Combinatorial fusion with on-line learning algorithms.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.majority_problem(n=20, r=10, k=5, noise=0.05, trials=1500, seed=1)
    >>> fusion = linmax.VoteFusion("AR-winnow(1.1)").fit(data.votes[:1000], data.labels[:1000])
    >>> report = fusion.report(data.votes[1000:], data.labels[1000:])
    >>> report.test.winner, report.test.accuracy["fusion"] > 0.9
    ('fusion', True)
    >>> sorted(int(name) for name in list(fusion.weights())[:10])  # the ten that matter
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    def __init__(
        self,
        learner: Any = "vr-combine",
        *,
        classes: Sequence[Any] | None = None,
        normalise: str | Sequence[str] = "auto",
        abstain: Any = None,
        thresholds: bool = True,
        tie: str = "smallest",
        update_on_tie: bool = True,
    ) -> None:
        self.learner = learner
        self.classes = classes
        self.normalise = normalise
        self.abstain = abstain
        self.thresholds = thresholds
        self.tie = tie
        self.update_on_tie = update_on_tie

    # -- learning -------------------------------------------------------------------------------------------------

    def fit(self, votes: Any, y: Any) -> VoteFusion:
        """Forget everything and learn from these trials, in their order."""
        self._state = self._learn(None, votes, y)
        return self

    def partial_fit(self, votes: Any, y: Any) -> VoteFusion:
        """Go on with further trials; voters and classes may join. An error leaves the model as it was."""
        self._state = self._learn(getattr(self, "_state", None), votes, y)
        return self

    def _learn(self, state: _State | None, votes: Any, y: Any) -> _State:
        ballots = read_ballots(votes)
        labels = label_array(y)
        if labels.shape != (len(ballots),):
            raise ValueError(
                f"y must be one label a trial: got shape {labels.shape} for {len(ballots)} trials of votes"
            )
        distinct, inverse = unique_labels(labels)
        fixed = self._fixed(ballots, distinct) if state is None else state.fixed
        unknown = [name for name in distinct if fixed is not None and name not in fixed]
        if unknown:
            t = int(np.flatnonzero(inverse == distinct.index(unknown[0]))[0])
            raise ValueError(f"y: {unknown[0]!r} at trial {t} is not among the classes {list(fixed or ())!r}; add it")
        voters, named = _joined(state, ballots)
        normaliser = state.normaliser if state is not None else Normaliser(self.normalise) if ballots.scored else None
        batch = _batch(self, ballots, voters, named, fixed, normaliser, learn=True)
        if state is None:
            machine = Machine(
                as_learner(self.learner),
                batch.instances,
                fixed if fixed is not None else _together(distinct, batch.names),
                tie=self.tie,
                update_on_tie=boolean("update_on_tie", self.update_on_tie),
                discover=False,
            )
            state = _State(machine, fixed, named, voters, normaliser)
        state.voters = voters
        state.compare_raters(ballots)
        for begin, end in _stretches(len(ballots)):
            state.advance(batch[begin:end], labels[begin:end])
        return state

    def _fixed(self, ballots: Ballots, labels: Sequence[Any]) -> tuple[Any, ...] | None:
        """The classes when no more may join: those given, or for scores those of the first call."""
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
    def _fitted(self) -> _State:
        state: _State | None = getattr(self, "_state", None)
        if state is None:
            raise NotFittedError("this VoteFusion is not fitted; call fit(votes, y) or partial_fit(votes, y) first")
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_state", None) is not None

    @property
    def classes_(self) -> np.ndarray:
        """The classes, in the order of the columns of `decision_function` and `predict_proba`."""
        return as_array(self._fitted.machine.classes)

    @property
    def voters_(self) -> list[str]:
        """The voters' names."""
        return list(self._fitted.voters)

    @property
    def n_features_in_(self) -> int:
        """Number of voters."""
        return len(self._fitted.voters)

    def predict(self, votes: Any) -> np.ndarray:
        """The class of each trial; nothing is learned."""
        state = self._fitted
        return state.machine.predict(_later(self, state, votes).instances)

    def decision_function(self, votes: Any) -> np.ndarray:
        """Score of each class: (trials, classes); with two classes that of the second less that of the first.

        A voter's vote adds its weight as in `weights`, which add up to 1 in magnitude.
        """
        state = self._fitted
        scores = state.scores(_later(self, state, votes).instances)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, votes: Any) -> np.ndarray:
        """Probability of each class: (trials, classes)."""
        state = self._fitted
        return state.calibration.probabilities(state.scores(_later(self, state, votes).instances))

    # -- telling --------------------------------------------------------------------------------------------------

    def weights(self, *, copies: bool = False) -> dict[str, Any]:
        """Weight of each voter, heaviest first; they add up to 1 in magnitude.

        With ``copies`` a dict for each rater: its weight under each normalisation. A learner that is no single weight
        vector raises ValueError.
        """
        state = self._fitted
        table = state.shares()
        order = np.argsort(-np.abs(table.sum(axis=1)), kind="stable")
        if not copies:
            return {state.voters[i]: float(table[i].sum()) for i in order}
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
        >>> fusion = VoteFusion("winnow(1.5)").fit([["x", "y"], ["x", "y"], ["y", "x"]], ["x", "x", "y"])
        >>> told = fusion.explain(["y", "x"])
        >>> told.winner, told.contributions["0"] > 0 > told.contributions["1"]
        ('y', True)
        """
        state = self._fitted
        batch = _later(self, state, _one_row(instance, state))
        classes = state.machine.classes
        if len(classes) < 2:
            raise ValueError(f"only the class {classes[0]!r} is known; there is nothing to explain")
        winner = classes.index(state.machine.predict(batch.instances)[0])
        rated = state.machine.scores(batch.instances)[0].copy()
        rated[winner] = -np.inf
        second = int(rated.argmax())
        ratings = batch.instances.matrix(0, classes)
        added = (ratings[winner] - ratings[second]) * state.machine.weights.flat / state.unit()[0]
        columns = added[: len(state.voters) * state.copies].reshape(len(state.voters), -1).sum(axis=1)
        found = dict(zip(state.voters, columns.tolist(), strict=True))
        if state.machine.layout.constant:
            found[THRESHOLDS] = float(added[len(state.voters) * state.copies :].sum())
        ordered = dict(sorted(found.items(), key=lambda item: -abs(item[1])))
        said = {name: None if v < 0 else batch.names[v] for name, v in zip(state.voters, batch.said[0], strict=True)}
        return Explanation(classes[winner], classes[second], sum(ordered.values()), ordered, said)

    def report(self, votes: Any = None, y: Any = None, *, seed: int = 0) -> Report:
        """The fusion beside plurality, the best voter in hindsight and the best so far; who won and by how much.

        Parameters
        ----------
        votes, y
            Held-out trials, to be judged as well; nothing is learned from them. There the best voter in hindsight is
            the best on them, and the best so far the one that led when learning ended.
        seed
            Of the bootstrap.

        Notes
        -----
        Intervals are percentiles of 10,000 paired resamples of the trials. They take trials as independent, which those
        of a drifting stream are not. The best voter in hindsight was chosen with the labels at hand, which flatters it.
        """
        state = self._fitted
        whole("seed", seed, 0)
        test = None
        if (votes is None) != (y is None):
            raise ValueError(
                f"report() needs both votes and y of held-out trials, got only {'y' if y is not None else 'votes'}"
            )
        if votes is not None:
            tally = Tally(len(state.voters))
            ballots, labels = read_ballots(votes), label_array(y)
            if labels.shape != (len(ballots),):
                raise ValueError(f"y must be one label a trial: got shape {labels.shape} for {len(ballots)} trials")
            unique_labels(labels)
            batch = _later(self, state, ballots)
            state.count(tally, batch, labels, state.machine.predict(batch.instances) == labels, state.tally.leader)
            test = tally.compare(state.voters, seed, state.tally.leader)
        try:
            weights = self.weights()
        except ValueError:  # the learner is no single weight vector
            weights = {}
        strength = state.diversity_strength()
        order = list(weights) or [state.voters[i] for i in np.argsort(-state.tally.right[FIRST_VOTER:], kind="stable")]
        lines = []
        for name in order:
            place = state.voters.index(name)
            right, spoke = (
                counts[FIRST_VOTER + place] / state.tally.trials for counts in (state.tally.right, state.tally.spoke)
            )
            lines.append(Voter(name, weights.get(name), float(right), float(spoke), strength.get(name)))
        kinds = None
        if state.normaliser is not None:
            kinds = {}
            if weights:
                shares = np.abs(state.shares()).sum(axis=0)
                kinds = dict(zip(state.normaliser.kinds, shares.tolist(), strict=True))
        return Report(str(state.machine.learner), state.tally.compare(state.voters, seed), test, tuple(lines), kinds)

    def plot(self, path: Any = None) -> Any:
        """Draw the mistake curves of the fusion and its rivals; returns the figure, saved when given a path.

        Needs matplotlib (the extra ``plot``).
        """
        from linmax.report import plot_mistakes

        tally, voters = self._fitted.tally, self._fitted.voters
        curves = {
            "fusion": tally.curve(FUSION),
            "plurality": tally.curve(PLURALITY),
            f"best voter, {voters[tally.leader]}": tally.curve(FIRST_VOTER + tally.leader),
            "best voter so far": tally.curve(BEST_SO_FAR),
        }
        subtitle = f"{self._fitted.machine.learner}, {len(voters)} voters, {len(self.classes_)} classes"
        return plot_mistakes(curves, path, title="Mistakes of the fusion", subtitle=subtitle)

    # -- files ----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fusion and all that it has learned to one file, which holds arrays and plain data only.

        Labels may be text, numbers, truth values and tuples of these. `load` goes on bit for bit where this one stands.
        """
        description, arrays = self._fitted.parts()
        parameters = self.get_params(deep=False) | {"learner": str(as_learner(self.learner))}
        if not isinstance(self.normalise, str):
            parameters["normalise"] = list(self.normalise)
        parameters = _with_labels(parameters, files.plain) | {"abstain": files.plain(self.abstain)}
        state = _with_labels(description, files.plain)
        files.write(path, KIND, {"parameters": parameters, "state": state}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> VoteFusion:
        """A fusion from a file that `save` wrote.

        Examples
        --------
        >>> import os, tempfile
        >>> name = os.path.join(tempfile.mkdtemp(), "fusion.linmax")
        >>> VoteFusion("winnow(1.1)").fit([["x", "y"], ["y", "y"]], ["x", "y"]).save(name)
        >>> VoteFusion.load(name).predict([["x", "y"]]).tolist()
        ['x']
        """
        description, arrays = files.read(path, KIND)
        try:
            parameters, state = (_with_labels(description[part], files.named) for part in ("parameters", "state"))
            fusion = cls(**parameters | {"abstain": files.named(parameters["abstain"])})
            fusion._state = _State.restored(state, arrays)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)} does not hold a whole VoteFusion: {error}") from None
        return fusion


KIND = "vote fusion"


def _with_labels(description: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The same with every list of labels changed to what a file holds, or back."""
    lists = {name: description.get(name) for name in ("classes", "fixed", "judged")}
    changed = {name: [change(label) for label in labels] for name, labels in lists.items() if labels is not None}
    return {**description, **changed}


# -- the state ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Batch:
    """Trials for the machine, and what each voter said: places in ``names``, -1 for an abstention."""

    instances: Experts
    said: np.ndarray
    names: tuple[Any, ...]

    def __getitem__(self, trials: slice) -> _Batch:
        return _Batch(self.instances[trials], self.said[trials], self.names)


@dataclass
class _State:
    """What a VoteFusion has learned."""

    machine: Machine
    fixed: tuple[Any, ...] | None  # all classes, when no more may join
    named: bool  # whether voters came with names
    voters: tuple[str, ...]
    normaliser: Normaliser | None
    tally: Tally = field(default_factory=Tally)
    calibration: Calibration = field(default_factory=Calibration)
    apart: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))  # cognitive diversity of raters, summed
    together: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))  # over so many trials

    def parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All of it as plain data and arrays."""
        machine = self.machine
        blocks = {
            "engine": machine.engine.arrays,
            "tally": self.tally.arrays,
            "calibration": self.calibration.arrays,
            "normaliser": {} if self.normaliser is None else self.normaliser.arrays,
            "raters": {"apart": self.apart, "together": self.together},
        }
        description = {
            "learner": str(machine.learner),
            "classes": list(machine.classes),
            "layout": list(astuple(machine.layout)),
            "settings": list(astuple(machine.engine.settings)),
            "fixed": self.fixed,
            "named": self.named,
            "voters": list(self.voters),
            "kinds": None if self.normaliser is None else list(self.normaliser.kinds),
            "judged": list(self.calibration.classes),
        }
        return description, {f"{block}.{name}": a for block, arrays in blocks.items() for name, a in arrays.items()}

    @classmethod
    def restored(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> _State:
        """What `parts` gave, at work again."""
        blocks: dict[str, dict[str, np.ndarray]] = {}
        for name, array in arrays.items():
            block, _, rest = name.partition(".")
            blocks.setdefault(block, {})[rest] = array
        machine = Machine.restored(
            as_learner(description["learner"]),
            Layout(*description["layout"]),
            description["classes"],
            Settings(*description["settings"]),
            blocks["engine"],
        )
        normaliser = None
        if description["kinds"] is not None:
            normaliser = Normaliser(description["kinds"])
            normaliser.restore(blocks["normaliser"])
        return cls(
            machine,
            None if description["fixed"] is None else tuple(description["fixed"]),
            description["named"],
            tuple(description["voters"]),
            normaliser,
            Tally.restored(blocks["tally"]),
            Calibration.restored(description["judged"], blocks["calibration"]),
            **blocks["raters"],
        )

    def __getstate__(self) -> dict[str, Any]:
        description, arrays = self.parts()
        return {"description": description, "arrays": {name: array.copy() for name, array in arrays.items()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = _State.restored(state["description"], state["arrays"]).__dict__

    @property
    def copies(self) -> int:
        """Columns of a voter."""
        return 1 if self.normaliser is None else len(self.normaliser.kinds)

    def advance(self, batch: _Batch, labels: np.ndarray) -> None:
        """Learn from a stretch, after seeing how the present weights score it."""
        before = list(self.machine.classes)
        judged = self.scores(self.known(batch.instances)) if self.tally.trials else None
        trace = self.machine.run(batch.instances, labels, grow=True)
        self.count(self.tally, batch, labels, ~trace.wrong)
        if judged is not None:
            place = {name: i for i, name in enumerate(self.machine.classes)}
            scores = np.full((len(labels), len(place)), -np.inf)
            scores[:, [place[name] for name in before]] = judged
            numbers = np.array([place[name] for name in labels.tolist()], np.int64)
            self.calibration.add(scores, numbers, self.machine.classes)

    def count(
        self, tally: Tally, batch: _Batch, labels: np.ndarray, right: np.ndarray, leader: int | None = None
    ) -> None:
        """Count who was right; what only these voters or labels name is a class too."""
        names = labels.tolist()
        classes = list(dict.fromkeys([*self.machine.classes, *batch.names, *names]))
        place = {name: i for i, name in enumerate(classes)}
        said = np.array([*(place[name] for name in batch.names), -1])[batch.said]
        tally.add(right, said, np.array([place[name] for name in names]), len(classes), leader)

    def known(self, instances: Experts) -> Experts:
        """The instances without voters that have not joined yet, and without votes for classes not yet met."""
        layout, classes = self.machine.layout, set(self.machine.classes)
        votes = instances.votes[:, : layout.voters]
        strange = [i for i, name in enumerate(instances.names) if name not in classes]
        if strange:
            votes = np.where(np.isin(votes, strange), np.int32(-1), votes)
        return replace(
            instances,
            votes=np.ascontiguousarray(votes),
            signs=instances.signs[: layout.voters],
            scores=np.ascontiguousarray(instances.scores[:, : layout.raters]),
        )

    def scores(self, instances: Experts) -> np.ndarray:
        """Scores in units of the voters' weight; -inf for classes of which no label was seen."""
        scores = self.machine.scores(instances)
        try:
            total, factor = self.unit()
        except ValueError:  # the learner is no single weight vector: its scores have their own unit
            total, factor = 1.0, 1.0
        scores = scores / (total * factor)
        scores[:, len(self.machine.known) :] = -np.inf
        return scores

    def unit(self) -> tuple[float, float]:
        """Magnitude of the voters' weights, and how many times as large the machine's scores are as w.x.

        The machine gives scores up to one positive factor. It shows when one voter, the heaviest, speaks alone.
        """
        weights, k = self.machine.weights, len(self.machine.classes)
        columns = np.concatenate([weights.voters, weights.raters])
        heaviest = int(np.abs(columns).argmax())
        total = float(np.abs(columns).sum())
        if total == 0.0 or k < 2:
            return 1.0, 1.0
        ratings = np.zeros((2, len(columns), k))
        ratings[1, heaviest, 0] = 1.0
        layout = self.machine.layout
        blocks: dict[str, Any] = {"scores": ratings}
        if layout.voters:
            blocks = {"votes": np.where(ratings[:, :, 0] > 0.0, 0, -1), "abstain": -1}
        probe = experts(**blocks, classes=range(k), thresholds=bool(layout.constant))
        silent, alone = self.machine.scores(replace(probe, names=tuple(self.machine.classes)))
        return total, float(((alone - silent)[0] - (alone - silent)[1]) / columns[heaviest])

    def shares(self) -> np.ndarray:
        """(voters, copies) weights that add up to 1 in magnitude, or are all 0."""
        weights = self.machine.weights
        columns = np.concatenate([weights.voters, weights.raters])
        total = np.abs(columns).sum()
        return (columns / total if total > 0.0 else columns).reshape(len(self.voters), self.copies)

    def compare_raters(self, ballots: Ballots) -> None:
        """Add to the cognitive diversity of those who rated."""
        if not ballots.scored:
            return
        named = self.named and ballots.names is not None
        present = [self.voters.index(name) for name in ballots.names or ()] if named else range(ballots.table.shape[1])
        sample = ballots.table[:: -(-len(ballots) // SAMPLE)]
        new = len(self.voters) - len(self.apart)
        self.apart, self.together = (np.pad(matrix, (0, new)) for matrix in (self.apart, self.together))
        pairs = np.ix_(present, present)
        self.apart[pairs] += len(sample) * cognitive_diversity(sample)
        self.together[pairs] += len(sample)

    def diversity_strength(self) -> dict[str, float]:
        """Mean cognitive diversity of each rater to those it was seen with; empty for voters, who have none."""
        met = self.together > 0.0
        mean = np.divide(self.apart, self.together, out=np.zeros_like(self.apart), where=met)
        others = np.maximum(met.sum(axis=1) - 1, 1)
        return dict(zip(self.voters, (mean.sum(axis=1) / others).tolist(), strict=False))


# -- from what users give to trials -------------------------------------------------------------------------------


def _joined(state: _State | None, ballots: Ballots) -> tuple[tuple[str, ...], bool]:
    """The voters, these included, and whether they go by name."""
    if state is None:
        return ballots.voters(None, False), ballots.names is not None
    if ballots.scored != (state.normaliser is not None):
        fitted, given = ("scores", "votes") if state.normaliser is not None else ("votes", "scores")
        raise ValueError(f"this VoteFusion was fitted to {fitted}, got {given} of shape {ballots.table.shape}")
    return ballots.voters(state.voters, state.named), state.named


def _batch(
    fusion: VoteFusion,
    ballots: Ballots,
    voters: tuple[str, ...],
    named: bool,
    fixed: tuple[Any, ...] | None,
    normaliser: Normaliser | None,
    *,
    learn: bool,
) -> _Batch:
    table = ballots.aligned(voters, named)
    if normaliser is None:
        instances = experts(table, classes=fixed, abstain=fusion.abstain, thresholds=fusion.thresholds)
        return _Batch(instances, instances.votes, instances.names)
    if fixed is None or table.shape[2] != len(fixed):
        raise ValueError(
            f"scores rate {table.shape[2]} classes, but there are {len(fixed or ())}: {list(fixed or ())!r}"
        )
    spread = np.ptp(table, axis=2)
    if "raw" in normaliser.kinds and spread.max() > 1.0 + 1e-12:
        raise ValueError(
            f"raw scores must differ by at most 1 within a trial, got {spread.max():g}; divide them, or use another "
            "normalisation"
        )
    instances = experts(scores=normaliser.apply(table, learn=learn), classes=fixed, thresholds=fusion.thresholds)
    return _Batch(instances, np.where(spread > 0.0, table.argmax(axis=2), -1), fixed)


def _later(fusion: VoteFusion, state: _State, votes: Any) -> _Batch:
    """Trials of voters that are all known; votes for classes never met are abstentions to the machine."""
    ballots = read_ballots(votes)
    voters, named = _joined(state, ballots)
    if len(voters) > len(state.voters):
        if named:
            raise ValueError(f"votes: {voters[len(state.voters)]!r} is no known voter; partial_fit with it, or drop it")
        raise ValueError(f"votes have {len(voters)} columns, but {len(state.voters)} voters are known; drop the others")
    batch = _batch(fusion, ballots, voters, named, state.fixed, state.normaliser, learn=False)
    return replace(batch, instances=state.known(batch.instances))


def _one_row(instance: Any, state: _State) -> Any:
    """One instance as a table of one row."""
    if hasattr(instance, "columns"):
        rows = instance
    elif hasattr(instance, "to_dict") and hasattr(instance, "index"):  # a row of a DataFrame
        rows = {name: [vote] for name, vote in instance.to_dict().items()} if state.named else [instance.tolist()]
    elif isinstance(instance, Mapping):
        rows = {name: [vote] for name, vote in instance.items()}
    else:
        wanted = 1 if state.normaliser is None else 2
        rows = instance if isinstance(instance, np.ndarray) and instance.ndim > wanted else [instance]
        rows = np.asarray(rows) if isinstance(instance, np.ndarray) else rows
    ballots = read_ballots(rows)
    if len(ballots) != 1:
        raise ValueError(f"explain() takes one trial, got {len(ballots)}; give it a row")
    return ballots


def _together(labels: Sequence[Any], named: Sequence[Any]) -> list[Any]:
    """Classes met in labels and in votes, sorted when they can be; where they are equal, as the labels write them."""
    met = list(dict.fromkeys([*labels, *named]))
    try:
        return sorted(met)
    except TypeError:
        return met


def _stretches(size: int) -> Iterator[tuple[int, int]]:
    """How to cut trials: those that the calibration will keep come in stretches, scored before they are learned."""
    begin = max(0, size - KEPT)
    if begin:
        yield 0, begin
    step = min(max(size // 4, 1), KEPT // 4)
    for first in range(begin, size, step):
        yield first, min(size, first + step)
