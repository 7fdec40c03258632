"""One named model: a learner, its results so far, and its position in the log.

The learner sees only labelled instances, in the order of the log; predictions do not change it. So the log alone
determines its state, and a replay gives the same bits.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast

import msgspec
import numpy as np

from linmax.core.contract import Rule
from linmax.engine.notation import parse
from linmax.models.online import Learner
from linmax.service.bodies import Instance, InstanceLimits, Label
from linmax.service.environment import environment
from linmax.service.largest_weights import WeightsCache
from linmax.service.log import ASKS, FORGET, LABEL, LEARN, PREDICT, WANTS, Event, ModelRow
from linmax.service.memory_budget import KnownNames
from linmax.service.pipeline import Guess
from linmax.service.schemas import ModelOptions, Probability, Refusal
from linmax.theory import bounds

__all__ = [
    "EMPTY_INSTANCE",
    "PENDING",
    "SAME",
    "UNFIT",
    "Account",
    "Curve",
    "Noted",
    "ServedModel",
    "is_fragile",
    "warm_up",
]

logger = logging.getLogger("linmax.service")

STATE_GROWTH = 1.02  # of the number of names, before the learner is measured again
LARGE = 1e50  # numbers beyond it are looked at more closely
STEEP = (1.0, 30.0, 1e3, 1e6)  # numbers that a rule with a steep link cannot take
EMPTY_INSTANCE: Instance = {"attributes": {}}  # an empty instance is still an instance
UNFIT = (ValueError, TypeError, ArithmeticError)  # what a learner raises about an instance
WARM_UP_TRIALS, VIEWS_AT = 400, 20
MANY_NAMES = 1200  # beyond which learners change from matrices to diagonals
CURVE_POINTS = 2048  # the most points that a curve stores
Point = tuple[int, int, int | None, int | None]
# The options on which a state depends.
SAME = ("learner", "kind", "labels", "classes", "candidates", "answers", "key", "thresholds", "tie", "update_on_tie")
PENDING = {PREDICT: 1, LABEL: -1, FORGET: -1}  # by how many more predictions wait for their label
Noted = Callable[[int, Guess, str | None], None]


class ServedModel:
    """A model at work.

    Parameters
    ----------
    row : its entry in the log.
    """

    def __init__(self, row: ModelRow) -> None:
        self.number, self.name, self.created = row.number, row.name, row.created
        self.description = msgspec.to_builtins(msgspec.convert(row.description, ModelOptions))
        self.options = msgspec.convert(row.description | row.limits, ModelOptions)
        self.limits = InstanceLimits(self.options)
        self.learner = make_learner(self.options)
        self.fragile = is_fragile(self.options.learner, self.options.kind, self.options.thresholds)
        self.account = Account()
        self.applied = 0  # sequence number of the last event in the state
        self.first = row.kept
        self.crc = row.kept_crc  # the running checksum after it
        self.saved = 0  # the same for the newest snapshot
        self.pending = 0  # predictions that wait for their label
        self.unlearned = 0  # stored, but refused by the learner
        self.weights = WeightsCache()
        self.names = KnownNames(self.learner)
        self.nbytes = self.measure()
        self._measured = 0  # names in the learner when it was measured
        self.late = 0  # labels that came after their prediction was served, or say only what is wrong

    def is_described_by(self, description: Mapping[str, object]) -> bool:
        """Return whether these are its options, as they are now or as they were when it was created."""
        return description in (self.description, msgspec.to_builtins(self.options))

    def begin(self, learner: Learner, account: Account) -> None:
        """Begin with what another model has learned, at the place where this one's log begins."""
        self.learner, self.account = learner, account
        self.applied = self.saved = self.first
        self.names, self.nbytes = KnownNames(learner), self.measure()

    def change(self, name: str, limits: Mapping[str, object]) -> None:
        """Change the name, and options that do not affect what is learned."""
        self.name = name
        self.options = msgspec.convert(msgspec.to_builtins(self.options) | dict(limits), ModelOptions)
        self.limits = InstanceLimits(self.options)

    def predict(self, instance: Instance) -> Label | None:
        """Return the label to serve; the state does not change."""
        return cast("Label | None", self.learner.predict(**(instance or EMPTY_INSTANCE)))

    def probabilities(self, instance: Instance) -> list[Probability]:
        """Return the probability of each class, the most probable first."""
        found = self.learner.predict_proba(**(instance or EMPTY_INSTANCE))
        rows = [Probability(label=cast("Label", label), probability=value) for label, value in found.items()]
        return sorted(rows, key=lambda row: -row.probability)

    def likely_set(self, instance: Instance, coverage: float) -> list[Label]:
        """Return the classes that contain the label as often as ``coverage``, the most probable first."""
        return cast("list[Label]", list(self.learner.predict_set(**(instance or EMPTY_INSTANCE), coverage=coverage)))

    def keyed(self, answer: Label | None) -> Label | None:
        """Return what is equal for the same answers, however they are spelled."""
        answers = self.learner._answers
        return answer if answers is None or answer is None else repr(answers.keyed(answer))

    @property
    def selects(self) -> bool:
        """Return whether it draws which labels it wants."""
        return self.learner._current_model.selects

    @property
    def size(self) -> int:
        """Return the bytes of the learner's arrays and of the names."""
        return self.nbytes + self.names.bytes

    def measure(self) -> int:
        """Return the bytes of the learner's arrays."""
        return sum(array.nbytes for array in self.learner.state()[1].values())

    def note_growth(self) -> None:
        """Measure the learner again if it has noticeably more names than last time."""
        columns = self.learner._current_model.columns
        count = sum(map(len, (columns.voters, columns.raters, columns.attributes, self.learner.classes)))
        if count > self._measured * STATE_GROWTH:
            self._measured, self.nbytes = count, self.measure()

    def check(self, instance: Instance, label: Label | None, field: str = "label") -> None:
        """Refuse a trial that could not be learned, before it is stored; `field` is that of the label."""
        attributes = instance.get("attributes")
        safe = self.learner._bounded is None and len(instance) == (attributes is not None)
        if safe and (not attributes or -LARGE < min(attributes.values()) <= max(attributes.values()) < LARGE):
            return
        try:
            self.learner.check(**(instance or EMPTY_INSTANCE), label=label)
        except UNFIT as error:
            if "candidates" in instance and label not in instance["candidates"]:
                raise Refusal(422, f"{field}{str(error).removeprefix('label')}", field=field) from None
            raise Refusal(422, str(error), field=self.options.kind) from None

    def apply(self, event: Event, note: Noted, fault: str | None = None) -> str | None:
        """Apply a stored event, unless a `fault` of it is known; return why it could not be learned, if so.

        `note` is called with the prediction before a learn event, with a draw, and with why an event cannot be learned.
        """
        kind, guess = event.kind, None
        self.pending += PENDING.get(kind, 0)
        if kind not in (PREDICT, FORGET):
            try:
                guess = self._learn(event) if fault is None else None
            except UNFIT as error:
                # It stays in the log; a replay refuses it again, so the state is the same.
                logger.error("model %s: event %d is stored but cannot be learned: %s", self.name, event.seq, error)
                fault = str(error)
            if kind == WANTS:
                guess = bool(guess)
            if kind in (LEARN, WANTS):
                event.answer(guess)
            if kind in (LEARN, WANTS) or fault is not None:
                note(event.seq, guess, fault)
        if kind in (LEARN, LABEL):
            self.late += kind == LABEL or event.wrong
            self.unlearned += fault is not None
            self.note_growth()
            if event.label is not None:
                votes = (event.instance or {}).get("votes") or {}
                if self.learner._answers is not None:
                    votes = {voter: self.keyed(vote) for voter, vote in votes.items()}
                self.account.add(votes, self.keyed(event.served), self.keyed(event.label), wrong=event.wrong)
        self.applied, self.crc = event.seq, event.crc
        return fault

    def _learn(self, event: Event) -> Guess:
        """Learn, draw, or choose by what voters are asked; or raise and leave the learner as it was."""
        given = event.instance or EMPTY_INSTANCE
        if event.kind == WANTS:
            return bool(self.learner.wants_label(**given))
        if event.kind == ASKS:
            self.learner._ask_by(given["tolerance"], given.get("costs"))
            return None
        truth: dict[str, Any] = {"wrong" if event.wrong else "label": event.label}
        if event.weight != 1.0:
            truth["weight"] = event.weight
        before = self.learner_state() if self.fragile else None
        try:
            return cast("Guess", self.learner.learn(**given, **truth))
        except UNFIT:
            if before is not None:
                self.learner = Learner.from_state(*before)
            raise

    def bound(self) -> tuple[float, float] | None:
        """Return (a, b): at every trial so far the mistakes are at most a + b m, m being those of the best voter.

        Known for Winnow over votes when every label came with its instance. The best voter is a comparator u with
        margin 1; a trial that it gets wrong adds at most 2 to the hinge loss N, so with r = ln alpha
        M <= (ln n + r N)/(r - ln cosh r) + k. The k trials that bring a new class are added: a class cannot be
        predicted before. See `linmax.theory.bounds.multiplicative`.
        """
        rule, account = self.learner.learner, self.account
        if not isinstance(rule, Rule) or rule.name != "winnow" or self.limits.kind != "votes":
            return None
        if rule.parameters["threshold"] is not None or rule.parameters["thickness"] or self.late or not account.votes:
            return None
        n = len(self.learner.voters) + (len(self.learner.classes) if self.options.thresholds else 0)
        best, alpha = np.eye(1, n)[0], rule.parameters["alpha"]
        first = bounds.multiplicative(best, 1.0, alpha)
        slope = bounds.multiplicative(best, 1.0, alpha, noise=2.0) - first
        if not math.isfinite(first):
            return None
        return first + (0 if self.learner._fixed else len(self.learner._model.known)), slope

    # -- snapshots and recovery -----------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the whole state, copied: plain data and arrays."""
        description, arrays = self.learner_state()
        header = {
            "model": self.number,
            "applied_seq": self.applied,
            "crc": self.crc,
            "pending": self.pending,
            "unlearned": self.unlearned,
            "late": self.late,
            "options": msgspec.to_builtins(self.options),
            "written_by": environment(),
            "account": self.account.state(),
            "learner": description,
        }
        return header, arrays

    def learner_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the learner's state, copied, so that it can be written while the learner continues."""
        description, arrays = self.learner.state()
        return description, {name: array.copy() for name, array in arrays.items()}

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from a state; ValueError if it is of another model."""
        own = msgspec.to_builtins(self.options)
        if header["model"] != self.number or any(header["options"].get(name, False) != own[name] for name in SAME):
            raise ValueError("it is of another model")
        learner, account = Learner.from_state(header["learner"], arrays), Account.from_state(header["account"])
        pending, unlearned, late = header["pending"], header["unlearned"], header["late"]
        self.learner, self.account = learner, account
        self.applied = self.saved = header["applied_seq"]
        self.crc = header["crc"]
        self.pending, self.unlearned, self.late = pending, unlearned, late


def warm_up(options: ModelOptions) -> None:
    """Use a learner for everything that requests ask for, so that its code is compiled; refuse what it cannot learn.

    Requests are answered in the event loop, where a compilation would let all of them wait.
    """
    labels: list[Label] = options.classes or (["a", "b", "c"] if options.labels == "text" else [0, 1, 2])
    for variant in (_numbers, _words) if options.kind in ("attributes", "mixed") else (_words,):
        learner = make_learner(options)
        for trial in range(WARM_UP_TRIALS):
            instance = _example(options, labels, trial, variant(trial))
            label = labels[trial * trial % (2 + trial // (WARM_UP_TRIALS // 2)) % len(labels)]
            learner.predict(**instance)
            learner.learn(**instance, label=label)
            if trial % (WARM_UP_TRIALS // 2) == VIEWS_AT:
                for use in _uses(learner, instance, label):
                    with contextlib.suppress(*UNFIT):  # what this learner does not have
                        use()
        wide = _widened(instance, labels)
        for _ in range(2):
            learner.predict(**wide)
            learner.learn(**wide, label=label)


def _widened(instance: Instance, labels: list[Label]) -> Instance:
    """Return the instance with many new names."""
    rows = {"attributes": 0.5, "votes": labels[0], "scores": dict.fromkeys(labels, 0.5)}
    return {
        block: {f"w{i}": rows[block] for i in range(MANY_NAMES)} if block in rows else content
        for block, content in instance.items()
    }


def _numbers(trial: int) -> dict[str, float]:
    return {"u": trial * 37 % 100 / 100, "v": trial % 7 / 7}


def _words(trial: int) -> dict[str, float]:
    return {f"a{trial % 50}": 1.0, f"b{trial % 3}": 1.0}


def _example(options: ModelOptions, labels: list[Label], trial: int, attributes: dict[str, float]) -> Instance:
    """Return an instance that a model of these options takes."""
    votes = {voter: labels[(trial * (i + 1) + i) % len(labels)] for i, voter in enumerate(("ann", "bob", "cy"))}
    scores = {"ann": {name: trial * (i + 3) % 10 / 10 for i, name in enumerate(labels)}}
    blocks: Instance = {"attributes": attributes, "votes": votes, "scores": scores}
    kinds = (options.kind,) if options.kind != "mixed" else ("attributes", "votes") if "u" in attributes else blocks
    instance: Instance = {kind: blocks[kind] for kind in kinds}
    if options.candidates or options.answers == "open":
        instance.pop("attributes", None)
    if options.candidates:
        instance["candidates"] = labels
    return instance


def _uses(learner: Learner, instance: Instance, label: Label) -> list[Callable[[], object]]:
    """Return what requests ask of a learner besides predictions and labels."""
    votes = dict(list(instance.get("votes", {}).items())[:1])
    rows = (np.array([0, 1]), np.zeros(1, np.int32), np.ones(1), np.zeros(1, np.int32))
    return [
        lambda: learner.predict_proba(**instance),
        lambda: learner.predict_set(**instance, coverage=0.9),
        lambda: learner.scores(**instance),
        lambda: learner.rank(**instance),
        lambda: learner.learn(**instance, wrong=label),
        lambda: learner.learn(**instance, label=None),
        lambda: learner.learn(**instance, label=label, weight=0.5),
        lambda: learner._learn_rows(*rows),
        lambda: learner.wants_label(**instance),
        lambda: learner._inquiry(votes).next(),
        lambda: learner._panels_to_compare(None)(),
        lambda: learner.weights.arrays,
        lambda: Learner.from_state(*learner.state()).learn(**instance, label=label),
    ]


def options_of(learner: Learner, kind: str | None) -> ModelOptions:
    """Return the options with which a model continues a learner; 422 if it cannot."""
    columns = learner._current_model.columns
    blocks = {"attributes": columns.attributes, "votes": columns.voters, "scores": columns.raters}
    found = [name for name, names in blocks.items() if names]
    options = {
        "learner": str(learner.learner),
        "kind": kind or (found[0] if len(found) == 1 else "mixed"),
        "labels": "integer" if learner.classes and all(type(name) is int for name in learner.classes) else "text",
        "classes": list(learner.classes) if learner._fixed else None,
        "candidates": learner._takes_candidates,
        "answers": "closed" if learner._answers is None else "open",
        "key": learner.key,
        **{name: learner.options[name] for name in ("thresholds", "tie", "update_on_tie")},
    }
    try:
        made = msgspec.convert(options, ModelOptions)
        parse(made.learner)
    except (ValueError, TypeError) as error:
        raise Refusal(422, f"the service cannot continue this model: {error}", field="body") from None
    if any(type(name) is not (int if made.labels == "integer" else str) for name in learner.classes):
        raise Refusal(422, "the classes of the model must all be text, or all whole numbers", field="body")
    return made


def make_learner(options: ModelOptions) -> Learner:
    """Return a new learner; 422 if there is none with these options."""
    if options.candidates and options.kind == "attributes":
        message = (
            "candidates need votes or scores: an attribute has a weight for each class, and candidates are no classes"
        )
        raise Refusal(422, f'{message}; choose kind "votes", "scores" or "mixed"', field="kind")
    try:
        learner = Learner(
            options.learner,
            classes=options.classes,
            answers=options.answers,
            key=options.key,
            thresholds=options.thresholds,
            tie=options.tie,
            update_on_tie=options.update_on_tie,
        )
        if options.candidates:  # from the first ones on it chooses among candidates only
            learner.predict(votes={}, candidates=["one"])
        return learner
    except (ValueError, TypeError) as error:
        raise Refusal(422, str(error), field="learner") from None


# -- results ------------------------------------------------------------------------------------------------------


class Curve:
    """Points at multiples of a stride, which doubles when there are too many; a function of the trials alone.

    Examples
    --------
    >>> curve = Curve(most=4)
    >>> for t in range(1, 11):
    ...     curve.add((t, t // 2, None, None))
    >>> [point[0] for point in curve.points], curve.stride
    ([4, 8], 4)
    """

    def __init__(self, most: int = CURVE_POINTS) -> None:
        self.most, self.stride = most, 1
        self.points: list[Point] = []

    def add(self, point: Point) -> None:
        """Note the state after a trial."""
        if point[0] % self.stride:
            return
        self.points.append(point)
        if len(self.points) >= self.most:
            self.stride *= 2
            self.points = [kept for kept in self.points if kept[0] % self.stride == 0]

    def after(self, trials: int, most: int) -> list[Point]:
        """Return at most `most` points after a trial, evenly thinned; the last one is among them."""
        found = [point for point in self.points if point[0] > trials]
        step = -(-len(found) // max(most, 1))
        return found[::-1][:: max(step, 1)][::-1]


class Account:
    """Trials and mistakes of a model, and of plurality and the best voter when there are votes.

    An abstention counts as a mistake of that voter. Plurality takes the smallest of the labels that most voters
    name.

    Examples
    --------
    >>> account = Account()
    >>> account.add({"ann": "x", "bob": "y", "cy": "y"}, served="x", label="x")
    >>> account.point
    (1, 0, 1, 0)
    """

    def __init__(self) -> None:
        self.trials = self.mistakes = self.plurality = self.best = 0
        self.right: dict[str, int] = {}  # how often each voter named the label
        self.votes = False
        self.curve = Curve()

    @property
    def point(self) -> Point:
        """Return trials and mistakes so far: served, plurality, best voter."""
        if not self.votes:
            return self.trials, self.mistakes, None, None
        return self.trials, self.mistakes, self.plurality, self.trials - self.best

    def add(
        self, votes: Mapping[str, Label | None], served: Label | None, label: Label | None, *, wrong: bool = False
    ) -> None:
        """Count one labelled trial; if the class is only known to be `wrong`, voters of another one are right."""
        self.trials += 1
        if (served == label) == wrong:
            self.mistakes += 1
        given = {voter: vote for voter, vote in votes.items() if vote is not None}
        if given:
            self._count_votes(given, label, wrong)
        elif self.votes:
            self.plurality += 1
        if self.trials % self.curve.stride == 0:
            self.curve.add(self.point)

    def add_many(self, wrong: np.ndarray) -> None:
        """Count labelled trials without votes, by whether each served label was wrong."""
        first, last = self.trials, self.trials + len(wrong)
        mistakes = self.mistakes + np.cumsum(wrong)
        while (trials := self.trials + self.curve.stride - self.trials % self.curve.stride) <= last:
            self.trials, self.mistakes = trials, int(mistakes[trials - first - 1])
            self.curve.add(self.point)
        self.trials, self.mistakes = last, int(mistakes[-1])

    def _count_votes(self, votes: dict[str, Label], label: Label | None, wrong: bool) -> None:
        if not self.votes:
            self.votes, self.plurality = True, self.trials - 1  # nobody had voted before
        for voter, vote in votes.items():
            if (vote == label) != wrong:
                count = self.right[voter] = self.right.get(voter, 0) + 1
                if count > self.best:
                    self.best = count
        counts = Counter(votes.values())
        most = max(counts.values())
        if (min(vote for vote, count in counts.items() if count == most) == label) == wrong:
            self.plurality += 1

    def state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "trials": self.trials,
            "mistakes": self.mistakes,
            "plurality": self.plurality,
            "best": self.best,
            "right": self.right.copy(),
            "votes": self.votes,
            "stride": self.curve.stride,
            "points": [list(point) for point in self.curve.points],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Account:
        """Return the account that had this state."""
        account = cls()
        for name in ("trials", "mistakes", "plurality", "best", "right", "votes"):
            setattr(account, name, state[name])
        account.curve.stride = state["stride"]
        account.curve.points = [(t, m, p, b) for t, m, p, b in state["points"]]
        return account


# -- overflow -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def is_fragile(learner: str, kind: str, thresholds: bool) -> bool:
    """Return whether numbers of ordinary size can carry the weights out of the range of floats, and spoil them.

    A probe learns a few trials and is thrown away; models with the same options share one.

    Examples
    --------
    >>> is_fragile("perceptron", "attributes", True), is_fragile("quasi-additive(sinh)", "attributes", True)
    (False, True)
    """
    blocks = ("attributes", "scores") if kind == "mixed" else (kind,)
    return any(_overflows(learner, block, thresholds) for block in blocks if block != "votes")


def _overflows(learner: str, block: str, thresholds: bool) -> bool:
    probe = Learner(learner, thresholds=thresholds)
    for number in () if probe._bounded is not None else STEEP:
        for label in "aba":
            instance: Instance = {block: {"0": number if block == "attributes" else {label: number}}}
            try:
                probe.learn(**instance, label=label)
            except OverflowError:
                return True
            except (ValueError, TypeError, ArithmeticError):
                return False  # it says so before it changes anything
    return False
