"""Iterative parameter mixing: in each pass every shard starts from the same model, and the results are merged.

McDonald, Hall and Mann (2010). `linmax.models.merge` merges the models; `linmax.models.shard` learns from rows.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload

from linmax.cluster.checkpoint import LATEST, PARTS, Folder
from linmax.cluster.collections import added_columns, is_joint
from linmax.cluster.connect import DaskWorkers, ThisProcess, workers_of
from linmax.cluster.differences import StateDifference, difference_of
from linmax.cluster.shards import Shard, ShardError, Shards, ShardSource, missing_files, opened, reason_of, shards_of
from linmax.data.arrays import Layout
from linmax.engine.engine import Engine, Settings
from linmax.engine.notation import as_learner
from linmax.models.fusion import VoteFusion
from linmax.models.merge import HOW, ColumnsDiffer, merge_states, open_state, refuse_unmergeable, shares_by
from linmax.models.shard import RowCounts, learn_rows
from linmax.models.streams import StreamModel
from linmax.rules import REGISTRY
from linmax.rules.mixing import MULTIPLICATIVE
from linmax.rules.quasi_additive import LINKS
from linmax.techniques.technique import LearnerLike
from linmax.util.aliases import PathLike
from linmax.util.checks import boolean, one_of, whole

if TYPE_CHECKING:
    from distributed import Client, Future
from linmax.util.files import State

__all__ = ["Fit", "Pass", "Progress", "fit", "refuse_custom_rules"]

FAN = 4  # models merged at a time: each is read once or twice, and few are in memory
# errors of the input, which a second attempt would meet again; others, such as those of a network, are retried
PERMANENT = (ValueError, TypeError, OverflowError, ImportError, FileNotFoundError, IsADirectoryError, PermissionError)
M = TypeVar("M", bound=StreamModel | VoteFusion)
M_co = TypeVar("M_co", bound=StreamModel | VoteFusion, covariant=True)
Mergeable: TypeAlias = StreamModel | VoteFusion


@dataclass(frozen=True)
class Pass:
    """Counts of one pass over the shards.

    Attributes
    ----------
    shards : list
        Counts of each shard, in their order: trials, mistakes, updates, rows that could not be read.
    seconds : float
        Duration of the pass, merging included.

    See Also
    --------
    fit : makes them.

    Examples
    --------
    >>> import linmax
    >>> lines = ["1 1:1", "2 2:1"] * 20
    >>> result = linmax.cluster.fit("perceptron", [lines, lines])
    >>> result.passes[0].trials
    80
    """

    shards: list[RowCounts]
    seconds: float

    @property
    def trials(self) -> int:
        """Number of trials in all shards."""
        return sum(counts.trials for counts in self.shards)

    @property
    def mistakes(self) -> int:
        """Number of mistakes in all shards, each predicting with its own model."""
        return sum(counts.mistakes for counts in self.shards)


@dataclass
class Fit(Generic[M_co]):
    """Result of `fit`: the model, and the counts of each pass.

    Attributes
    ----------
    model : StreamModel or VoteFusion
        The model, ready to predict and to continue learning.
    shards : list of str
        Names of the shards.
    passes : list of Pass
        Counts of each pass.
    notes : list of str
        Remarks about the columns: which one is the label, and which were ignored.
    refused : dict from str to int
        Shards with rows that could not be read, and how many.

    See Also
    --------
    fit : makes it.

    Examples
    --------
    >>> import linmax
    >>> lines = ["1 1:1", "2 2:1"] * 20
    >>> linmax.cluster.fit("perceptron", [lines, lines]).model.classes
    ['1', '2']
    """

    model: M_co
    shards: list[str]
    passes: list[Pass] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """Remarks about the columns, each once."""
        shards = self.passes[0].shards if self.passes else []
        return list(dict.fromkeys(note for counts in shards if counts.rows for note in counts.notes))

    @property
    def refused(self) -> dict[str, int]:
        """Number of rows that could not be read, for shards with any."""
        shards = self.passes[0].shards if self.passes else []
        return {name: counts.refused for name, counts in zip(self.shards, shards, strict=False) if counts.refused}

    def __repr__(self) -> str:
        last = f"{self.passes[-1].mistakes:,} mistakes in the last" if self.passes else "none yet"
        learner = getattr(self.model, "learner", self.model)
        return f"<{learner} mixed from {len(self.shards)} shards, {len(self.passes)} passes: {last}>"


@dataclass(frozen=True)
class Progress:
    """Progress after each shard: the number of the pass (from 0), shards done in it, and all shards.

    Attributes
    ----------
    number : int
        Number of the pass, from 0.
    done, shards : int
        Shards learned in this pass, and all.

    See Also
    --------
    fit : reports it to ``watch``.

    Examples
    --------
    >>> import linmax
    >>> lines = ["1 1:1", "2 2:1"] * 20
    >>> seen = []
    >>> result = linmax.cluster.fit("perceptron", [lines, lines], watch=seen.append)
    >>> seen[-1]
    Progress(number=0, done=2, shards=2)
    """

    number: int
    done: int
    shards: int


class FitOptions(TypedDict, total=False):
    """Options of `fit`."""

    client: Client | None
    passes: int
    mix: str | None
    multiplicative: str
    checkpoint: PathLike | None
    resume: bool
    scale: str
    thresholds: bool
    hash_bits: int | None
    tie: str
    update_on_tie: bool
    reading: Mapping[str, object] | None
    watch: Callable[[Progress], None] | None


@overload
def fit(learner: VoteFusion, shards: Shards, **options: Unpack[FitOptions]) -> Fit[VoteFusion]: ...
@overload
def fit(learner: LearnerLike | StreamModel, shards: Shards, **options: Unpack[FitOptions]) -> Fit[StreamModel]: ...
def fit(
    learner: LearnerLike | Mergeable,
    shards: Shards,
    *,
    client: Client | None = None,
    passes: int = 1,
    mix: str | None = None,
    multiplicative: str = "log",
    checkpoint: PathLike | None = None,
    resume: bool = False,
    scale: str = "auto",
    thresholds: bool = True,
    hash_bits: int | None = None,
    tie: str = "smallest",
    update_on_tie: bool = True,
    reading: Mapping[str, object] | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> Fit[Mergeable]:
    """Learn from shards in parallel by iterative parameter mixing, a model of attributes or a fusion of votes.

    Parameters
    ----------
    learner
        Any learner that `linmax.merge` can merge, for a new `linmax.StreamModel`; or a model to continue from,
        such as a `linmax.VoteFusion`, which stays as it is: the result is a new one.
    shards
        Files that the workers can read, in any format of `linmax.stream`, each a shard; patterns such as
        "part-*.parquet" and folders, also those that Hive writes, whose names ``class=a`` are a column; addresses that
        fsspec opens, such as "s3://bucket/part-*.svm", with the credentials that it finds; tables; a Dask bag of lines
        or of records, or a Dask DataFrame, whose partitions are the shards, or (X, y) or (X, y, weights), Dask
        collections with the same partitions. For a fusion these are tables with a column for each voter, or for each
        rater and class (``rater:class``), and one of labels, in files or as frames, or pairs (votes, y) as
        `VoteFusion.fit` takes them.
    client
        A ``distributed.Client``; without one the shards are learned one after the other in this process, with the same
        result to the last bit.
    passes
        Number of passes over the shards; a fusion learns from each trial once.
    mix
        Shares of the shards: "uniform", "trials", or "mistakes": in proportion to their updates in this pass. Without
        it "uniform", and "trials" for a fusion.
    multiplicative
        "log" or "plain", see `linmax.merge`.
    checkpoint
        Folder in which to save the model after each pass and, when shards fail, the results of the others.
    resume
        Continue from the checkpoint, if there is one.
    scale, thresholds, hash_bits, tie, update_on_tie
        As in `linmax.StreamModel`, for a new one.
    reading
        Options of `linmax.stream`, such as ``{"label": "class"}``. For tables of votes ``label``, the column of labels,
        ``ignore``, a list of columns that are not voters, ``format`` and ``strict``.
    watch
        Called with the `Progress` after each shard.

    Raises
    ------
    ValueError, TypeError
        Before anything starts: for a learner without a sound mixture, unknown options of reading, a checkpoint of
        another run, workers with other versions of Python, linmax, NumPy or Numba.
    ShardError
        Names the shards that could not be learned from. Files that a worker cannot see are named before anything
        starts; if a shard fails later, the others are finished first, and saved in ``checkpoint``.
    ConnectionError
        The scheduler does not answer any more.

    Warns
    -----
    UserWarning
        Some rows could not be read and were skipped.

    Notes
    -----
    With S shards and shares mu_i, pass n is w_n = sum mu_i L_i(w_(n-1)), L_i the learner's pass over shard i. For the
    Perceptron, data separable with margin gamma and any shares: sum over passes of sum_i mu_i k_i <= R^2 / gamma^2,
    k_i the updates on shard i. No bound is known for the other rules. With one shard this is the serial run.

    Each shard is a task, and what neighboring shards learned is merged by fours on the workers, in a tree that depends
    on the number of shards alone. So the bits depend neither on the workers nor on timing, and this process holds one
    model. Partitions of Dask collections are computed once and stay on the workers.

    References
    ----------
    McDonald, Hall and Mann (2010), Distributed training strategies for the structured perceptron.

    Returns
    -------
    Fit
        The model, and the counts of each pass.

    Examples
    --------
    >>> import linmax
    >>> north = ["coat |w snow ice", "hat |w noon", "coat |w snow"]
    >>> south = ["hat |w sun noon", "coat |w wind", "hat |w sun"]
    >>> result = linmax.cluster.fit("A-perceptron", [north, south], passes=3)
    >>> [one.mistakes for one in result.passes]
    [6, 0, 0]
    >>> [result.model.predict(batch)[0] for batch in linmax.stream(["|w sun"], model=result.model, grow=False)]
    ['hat']

    >>> votes = {"a": ["x", "y", "x"], "b": ["x", "x", "y"], "label": ["x", "y", "x"]}
    >>> linmax.cluster.fit(linmax.VoteFusion(), [votes, votes]).model.report().online.trials
    6
    """
    options: dict[str, Any] = {
        "scale": scale,
        "thresholds": thresholds,
        "hash_bits": hash_bits,
        "tie": tie,
        "update_on_tie": update_on_tie,
    }
    if isinstance(learner, Mergeable):
        _refuse_options(options)
        model = learner
    else:
        refuse_unmergeable(as_learner(learner))
        model = StreamModel(learner, **options)
    fuses = isinstance(model, VoteFusion)
    refuse_unmergeable(model.learner)
    refuse_custom_rules(model.learner)
    if whole("passes", passes, 1) > 1 and fuses:
        raise ValueError(f"a fusion learns from each trial once, got passes={passes}; remove passes")
    mix = ("trials" if fuses else "uniform") if mix is None else mix
    one_of("mix", mix, HOW)
    one_of("multiplicative", multiplicative, MULTIPLICATIVE)
    given = (added_columns(shards) if is_joint(shards) else {}) | dict(reading or {})
    _refuse_reading(model, given)
    workers, parts = workers_of(client), shards_of(shards)
    plan = Plan(
        type(model), mix, multiplicative, given, [part.name for part in parts], workers.remote and len(parts) > 1
    )
    folder = Folder.opened(checkpoint, boolean("resume", resume), plan.settings(model, parts))
    job = Job(parts, plan, workers, folder, watch)
    try:
        result = job.run(model, passes)
    finally:  # also when an interrupt, or a traceback, keeps references alive
        workers.release()
    _warn_of_refused(result)
    return result


def refuse_custom_rules(learner: LearnerLike) -> None:
    """Raise for custom rules: workers get the learner as text."""
    for run in Engine(as_learner(learner), Layout(0, 0, 0, 0, 1.0), 0, Settings(discover=True)).runs:
        custom = run.rule.name.replace("_", "-") not in REGISTRY or run.rule.parameters.get("link", "exp") not in LINKS
        if custom:
            raise ValueError(f"{run.rule} is a custom rule, which the workers do not know; use a built-in rule")


def _refuse_options(options: Mapping[str, object]) -> None:
    defaults = signature(fit).parameters
    for name, value in options.items():
        if value != defaults[name].default:
            raise ValueError(f"{name}={value!r} is an option of new stream models; pass it to the model itself")


def _refuse_reading(model: Mergeable, reading: Mapping[str, object]) -> None:
    """Raise for options of reading that do not exist."""
    try:
        learn_rows(type(model).from_state(*model.state()), None, **reading)
    except TypeError as error:
        unknown = str(error).partition("unexpected keyword argument ")[2]
        raise TypeError(f"reading: there is no option {unknown}" if unknown else f"reading: {error}") from None
    except ValueError as error:
        raise ValueError(f"reading: {error}") from None


def _warn_of_refused(result: Fit[M]) -> None:
    if refused := result.refused:
        name, count = next(iter(refused)), sum(refused.values())
        first = next(counts.first_refused for counts in result.passes[0].shards if counts.refused)
        place = first if first.startswith(name) else f"{name}: {first}" if first else name
        rows = "1 row could not be read and was" if count == 1 else f"{count:,} rows could not be read and were"
        warnings.warn(f"{place}; {rows} skipped; reading={{'strict': True}} refuses them", stacklevel=3)


# -- tasks -------------------------------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """Settings that all tasks of a run share."""

    kind: type[Mergeable]
    mix: str
    multiplicative: str
    reading: Mapping[str, object]
    shards: Sequence[str]  # their names
    shortened: bool  # whether results travel between processes, as differences

    def settings(self, model: Mergeable, shards: Sequence[Shard]) -> dict[str, object]:
        """Return what must not change between a checkpoint and its continuation, as plain data."""
        settings = model.state()[0] | {
            "shards": [shard.name for shard in shards],
            "fingerprints": [shard.fingerprint for shard in shards],
            "mix": self.mix,
            "multiplicative": self.multiplicative,
            "reading": dict(self.reading),
        }
        plain: dict[str, object] = json.loads(json.dumps(settings, sort_keys=True))
        return plain


@dataclass(frozen=True)
class ShardResult:
    """Result of the shards from ``first`` to ``stop`` - 1 in one pass.

    ``state`` is None if some of them failed; ``parts`` are then the results of the others.
    """

    first: int
    stop: int
    state: State | StateDifference | None
    counts: dict[int, RowCounts] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    parts: tuple[ShardResult, ...] = ()

    @classmethod
    def failure(cls, place: int, reason: str) -> ShardResult:
        """Return the result of a shard that failed."""
        return cls(place, place + 1, None, failed={place: reason})

    @property
    def model_state(self) -> State:
        """The state of the model that ends a pass, which is never a difference."""
        assert isinstance(self.state, tuple)
        return self.state

    def whole_state(self, start: ShardResult) -> State:
        """Return the model's state, given the model that the pass started from."""
        if isinstance(self.state, StateDifference):
            return self.state.applied(start.model_state)
        return self.model_state

    @property
    def weight(self) -> tuple[int, int, int, int]:
        """Shards with any trial, and their trials, updates and mistakes."""
        shards = self.counts.values()
        return (
            sum(counts.trials > 0 for counts in shards),
            sum(counts.trials for counts in shards),
            sum(counts.updates for counts in shards),
            sum(counts.mistakes for counts in shards),
        )

    def without_models(self) -> ShardResult:
        """Return the counts and failures, without models."""
        return ShardResult(self.first, self.stop, None, self.counts, self.failed)


def learn_shard(start: ShardResult, plan: Plan, place: int, source: ShardSource) -> ShardResult:
    """Learn from one shard, beginning with the model of ``start``."""
    state = start.whole_state(start)
    model = open_state(plan.kind, state)
    try:
        with opened(source) as rows:
            counts = learn_rows(model, rows, **plan.reading)
    except PERMANENT as error:
        return ShardResult.failure(place, reason_of(error))
    learned = difference_of(model.state(), state) if plan.shortened else model.state()
    return ShardResult(place, place + 1, learned, {place: counts})


def mix_shards(start: ShardResult, plan: Plan, parts: list[ShardResult], last: bool) -> ShardResult:
    """Merge neighboring results; ``last`` if they are those of all shards."""
    counts = {place: one for part in parts for place, one in part.counts.items()}
    failed = {place: why for part in parts for place, why in part.failed.items()}
    first, stop = parts[0].first, parts[-1].stop
    if not failed:
        base = start.whole_state(start)
        shares = shares_by(plan.mix, [part.weight for part in parts]).tolist()
        try:
            states = [part.whole_state(start) for part in parts]
            merged = merge_states(plan.kind, base, states, shares, plan.multiplicative, last)
            return ShardResult(
                first, stop, difference_of(merged, base) if plan.shortened and not last else merged, counts
            )
        except ColumnsDiffer as error:
            place, other = parts[error.place].first, parts[error.other].first
            why = f"only one of them has numbers in {error.names}; give all shards the same columns of the same types"
        except (ValueError, OverflowError) as error:
            place, other, why = stop - 1, first, reason_of(error)
        failed[place] = f"cannot be merged with {plan.shards[other]}: {why}"
    good = tuple(one for part in parts for one in (part.parts if part.state is None else [part]))
    return ShardResult(first, stop, None, counts, failed, good)


# -- the driver --------------------------------------------------------------------------------------------------------


Task: TypeAlias = "Future | ShardResult"  # on the workers; in this process its result


class Job:
    """One run of `fit`."""

    def __init__(
        self,
        shards: list[Shard],
        plan: Plan,
        workers: DaskWorkers | ThisProcess,
        folder: Folder | None,
        watch: Callable[[Progress], None] | None,
    ) -> None:
        self.shards, self.plan, self.workers, self.folder, self.watch = shards, plan, workers, folder, watch
        self.leaves: dict[int, Task] = {}  # tasks on workers that learn from shards, in this pass
        self.saved: dict[tuple[int, int], Task] = {}  # results of this pass that a checkpoint holds
        self.number = self.done = 0  # pass, and shards done in it

    def run(self, model: M, passes: int) -> Fit[M]:
        """Make the passes that the checkpoint does not contain."""
        names = [shard.name for shard in self.shards]
        self.workers.refuse_other_versions()
        self._refuse_missing_files()
        self.sources = self.workers.hold([shard.source for shard in self.shards], passes > 1)
        state: State = model.state()
        result = Fit(model, names)
        if latest := [] if self.folder is None else [*self.folder.saved(LATEST)]:
            ((description, state),) = latest
            for counts, seconds in description["passes"]:
                result.passes.append(Pass([RowCounts(**one) for one in counts], seconds))
        start, before = self._held(ShardResult(0, len(names), state)), None
        while len(result.passes) < passes:
            self.number = len(result.passes)
            if self.number:
                self.workers.refuse_other_versions()  # of workers that came meanwhile
            began = time.perf_counter()
            top, report = self._one_pass(start)
            result.passes.append(Pass([report.counts[p] for p in sorted(report.counts)], time.perf_counter() - began))
            self._refuse_nothing(result)
            start, before = top, start  # the one before is held until the next is there, to repeat lost tasks from
            if self.folder is not None:
                made = [[[asdict(counts) for counts in one.shards], one.seconds] for one in result.passes]
                self.folder.save(self.workers.result(start).model_state, 0, len(names), passes=made)
        del before
        result.model = cast("M", self.plan.kind.from_state(*self.workers.result(start).model_state))
        return result

    def _refuse_missing_files(self) -> None:
        """Raise unless every worker can read every file, since it may get any of them."""
        files = [(shard.name, shard.path) for shard in self.shards if shard.path is not None]
        failed: dict[str, str] = {}
        if files:
            for address, found in self.workers.run(missing_files, [path for _, path in files]).items():
                if isinstance(found, Mapping):  # else the worker has just gone
                    for place, why in found.items():
                        failed.setdefault(files[place][0], f"{why} on {address}" if address else why)
        if failed:
            raise ShardError(f"{len(failed)} of {len(self.shards)} shards cannot be read: {_list(failed)}", failed)

    def _held(self, result: ShardResult) -> Task:
        """Return a task that holds a result."""
        return self.workers.hold([result], often=True)[0]

    def _one_pass(self, start: Task) -> tuple[Task, ShardResult]:
        """Learn from every shard and merge; returns the task that holds the model, and its report."""
        self.leaves, self.saved, size = {}, {}, len(self.shards)
        for description, state in () if self.folder is None else self.folder.saved(PARTS):
            if description["pass"] == self.number:
                counts = {int(place): RowCounts(**one) for place, one in description["counts"].items()}
                first, stop = description["shards"]
                self.saved[first, stop] = self._held(ShardResult(first, stop, state, counts))
        self.done = sum(stop - first for first, stop in self.saved)
        top = self._tree(start, range(size))
        report = self.workers.submit(ShardResult.without_models, top, name="report")
        if isinstance(self.workers, DaskWorkers):
            for _ in self.workers.each_done(list(self.leaves.values())):
                self._advance()
            if self.workers.failure_of(report):
                self.workers.refuse_other_versions()  # also raises if the scheduler has gone away
                self._repeat_failed(start)
                top = self._tree(start, range(size))
                report = self.workers.submit(ShardResult.without_models, top, name="report")
                if reason := self.workers.failure_of(report):
                    raise RuntimeError(f"the models could not be merged: {reason}")
        while self.done < size:  # all of them are saved
            self._advance()
        found: ShardResult = self.workers.result(report)
        if found.failed:
            self._fail(start, top, found)
        return top, found

    def _advance(self) -> None:
        self.done += 1
        if self.watch is not None:
            self.watch(Progress(self.number, self.done, len(self.shards)))

    def _tree(self, start: Task, places: range) -> Task:
        """Return the task that holds the result of these shards: the tree depends on their number alone."""
        saved = self.saved.get((places.start, places.stop))
        if saved is not None:
            return saved
        if len(places) == 1:
            return self._leaf(start, places[0])
        step = 1
        while step * FAN < len(places):
            step *= FAN
        parts = [self._tree(start, places[begin : begin + step]) for begin in range(0, len(places), step)]
        name = f"mix-pass{self.number + 1}-{places[0]}to{places[-1]}"
        return self.workers.submit(mix_shards, start, self.plan, parts, len(places) == len(self.shards), name=name)

    def _leaf(self, start: Task, place: int) -> Task:
        if place in self.leaves:
            return self.leaves[place]
        try:
            name = f"learn-pass{self.number + 1}-{place}"
            task = self.workers.submit(learn_shard, start, self.plan, place, self.sources[place], name=name)
        except ConnectionError:
            raise
        except Exception as error:
            task = ShardResult.failure(place, reason_of(error))
        if self.workers.remote:
            self.leaves[place] = task
        else:
            self._advance()
        return task

    def _repeat_failed(self, start: Task) -> None:
        """Learn again, one by one, from shards whose workers died, to find the one that kills."""
        assert isinstance(self.workers, DaskWorkers)
        failed = [(place, leaf) for place, leaf in self.leaves.items() if self.workers.failure_of(leaf)]
        for place, leaf in failed:
            self.workers.repeat([start, self.sources[place], leaf])
            if reason := self.workers.failure_of(leaf):
                self.leaves[place] = ShardResult.failure(place, reason)

    def _fail(self, start: Task, top: Task, report: ShardResult) -> None:
        saved = ""
        if self.folder is not None:
            base = self.workers.result(start)
            for part in self.workers.result(top).parts:
                counts = {str(place): asdict(one) for place, one in part.counts.items()}
                state = part.whole_state(base)
                self.folder.save(state, part.first, part.stop, **{"pass": self.number, "counts": counts})
            good = len(self.shards) - len(report.failed)
            saved = f"; the results of the other {good} are saved in {self.folder.path}, resume when it is put right"
        named = {self.shards[place].name: why for place, why in sorted(report.failed.items())}
        count = f"{len(named)} of {len(self.shards)} shards failed in pass {self.number + 1}"
        raise ShardError(f"{count}: {_list(named)}{saved}", named)

    def _refuse_nothing(self, result: Fit[M]) -> None:
        """Raise if a model that needs labels got none."""
        last, names = result.passes[-1], ", ".join(result.shards[:3]) + (", ..." if len(result.shards) > 3 else "")
        if last.trials or self.plan.kind is not StreamModel:
            return
        rows = sum(counts.unlabelled for counts in last.shards)
        if rows:
            raise ValueError(f"{names}: not one of {rows:,} rows has a label, so there is nothing to learn")
        raise ValueError(f"{names}: there is no data")


def _list(named: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {why}" for name, why in list(named.items())[:5])
