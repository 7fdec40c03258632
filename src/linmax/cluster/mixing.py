"""Iterative parameter mixing: in each pass every shard starts from the same model, and the results are merged.

McDonald, Hall and Mann (2010). `linmax.cluster.merging` says how models are merged.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from linmax.cluster.merge_checks import HOW, refuse_unmergeable
from linmax.cluster.merging import merge_since
from linmax.cluster.shards import (
    Refused,
    Shard,
    ShardCounts,
    ShardError,
    State,
    learn_shard,
    refuse_untold,
    same_names,
    shards_of,
)
from linmax.cluster.workers import TaskOutcome, workers_of
from linmax.engine.notation import as_learner
from linmax.io.vocabulary import Vocabulary
from linmax.models.streams import StreamModel
from linmax.rules.mixing import MULTIPLICATIVE
from linmax.util import files
from linmax.util.checks import boolean, one_of, whole

__all__ = ["Fit", "Pass", "Progress", "fit"]

CHECKPOINT, RESULT = "cluster checkpoint", "shard result"
LATEST = "latest.linmax"


@dataclass(frozen=True)
class Pass:
    """One pass: the counts of each shard, in their order, and how long learning and mixing took.

    Attributes
    ----------
    shards : list
        What happened in each shard, in their order: trials, mistakes, updates.
    learning, mixing : float
        Seconds.

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

    shards: list[ShardCounts]
    learning: float
    mixing: float

    @property
    def trials(self) -> int:
        """Of all shards."""
        return sum(counts.trials for counts in self.shards)

    @property
    def mistakes(self) -> int:
        """Of all shards, each predicting with the model that it had."""
        return sum(counts.mistakes for counts in self.shards)


@dataclass
class Fit:
    """What `fit` returns: the model, and what happened in each pass.

    Attributes
    ----------
    model : StreamModel
        The model, ready to predict and to go on learning.
    shards : list of str
        Their names.
    passes : list of Pass
        What happened in each pass.

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

    model: StreamModel
    shards: list[str]
    passes: list[Pass] = field(default_factory=list)

    def __repr__(self) -> str:
        told = f"{self.passes[-1].mistakes:,} mistakes in the last" if self.passes else "none yet"
        return f"<{self.model.learner} mixed from {len(self.shards)} shards, {len(self.passes)} passes: {told}>"


@dataclass(frozen=True)
class Progress:
    """Progress after each shard: the number of the pass (from 0), shards done in it, and all shards.

    Attributes
    ----------
    number : int
        Of the pass, from 0.
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


def fit(
    learner: Any,
    shards: Any,
    *,
    client: Any = None,
    passes: int = 1,
    mix: str = "uniform",
    multiplicative: str = "log",
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    scale: str = "auto",
    thresholds: bool = True,
    hash_bits: int | None = None,
    tie: str = "smallest",
    update_on_tie: bool = True,
    reading: Mapping[str, Any] | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> Fit:
    """Learn from shards in parallel by iterative parameter mixing.

    Parameters
    ----------
    learner
        Any learner that `linmax.merge` can merge.
    shards
        Files that the workers can read (Parquet, svmlight, VW text, JSON lines, CSV and what else `linmax.stream`
        reads; patterns such as "part-*.parquet" too), tables, or a Dask bag of lines or DataFrame, whose partitions
        are the shards.
    client
        A ``distributed.Client``; without one the shards are learned one after the other in this process, with the same
        result to the last bit.
    passes
        How many times every shard is gone through.
    mix
        Shares of the shards: "uniform", or "mistakes": in proportion to their updates in this pass.
    multiplicative
        "log" or "plain", see `linmax.merge`.
    checkpoint
        A folder in which to keep the model after each pass and, when shards fail, the results of the others.
    resume
        Continue from the checkpoint, if there is one.
    scale, thresholds, hash_bits, tie, update_on_tie
        As in `linmax.streams.StreamModel`.
    reading
        Options of `linmax.stream`, such as ``{"label": "class"}``.
    watch
        Called with the `Progress` after each shard.

    Raises
    ------
    ValueError
        Before anything starts, for a learner without a sound mixture.
    ShardError
        Names the shards that could not be learned from. Others have been finished, and are kept in ``checkpoint``.

    Notes
    -----
    With S shards and shares mu_i, pass n is w_n = sum mu_i L_i(w_(n-1)), L_i the learner's pass over shard i. For the
    Perceptron, data separable with margin gamma and any shares: sum over passes of sum_i mu_i k_i <= R^2 / gamma^2,
    k_i the updates on shard i. No bound is known to us for the other rules. With one shard this is the serial run.

    References
    ----------
    McDonald, Hall and Mann (2010), Distributed training strategies for the structured perceptron.

    Returns
    -------
    Fit
        The model, and what happened in each pass.

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
    """
    described = as_learner(learner)
    refuse_unmergeable(described)
    refuse_untold(described)
    whole("passes", passes, 1)
    one_of("mix", mix, HOW)
    one_of("multiplicative", multiplicative, MULTIPLICATIVE)
    parts = shards_of(shards)
    model = StreamModel(
        described, scale=scale, thresholds=thresholds, hash_bits=hash_bits, tie=tie, update_on_tie=update_on_tie
    )
    options = dict(reading or {})
    job = Job(parts, mix, multiplicative, options, Folder.opened(checkpoint, boolean("resume", resume)), watch)
    result = job.start(model)
    workers = workers_of(client)
    while len(result.passes) < passes:
        job.one_pass(workers, result)
    return result


@dataclass
class Job:
    """What stays the same from pass to pass."""

    shards: list[Shard]
    mix: str
    multiplicative: str
    reading: dict[str, Any]
    folder: Folder | None
    watch: Callable[[Progress], None] | None

    def settings(self, model: StreamModel) -> dict[str, Any]:
        """What must not change between a checkpoint and its continuation."""
        described = model.state()[0]
        names = ("learner", "thresholds", "tie", "update_on_tie", "hash_bits")
        return {name: described[name] for name in names} | {
            "scale": model.scaling.asked,
            "shards": [shard.name for shard in self.shards],
            "mix": self.mix,
            "multiplicative": self.multiplicative,
            "reading": json.loads(json.dumps(self.reading, sort_keys=True)),
        }

    def start(self, model: StreamModel) -> Fit:
        """From the checkpoint, or from nothing."""
        fresh = Fit(model, [shard.name for shard in self.shards])
        return fresh if self.folder is None else self.folder.load(fresh, self.settings(model))

    def one_pass(self, workers: Any, result: Fit) -> None:
        """Learn from every shard, mix, keep."""
        number, started = len(result.passes), time.perf_counter()
        done = {} if self.folder is None else self.folder.kept(number, self.settings(result.model))
        outcomes = self._learn(workers, number, result.model.state(), done)
        failed = {place: why for place, outcome in outcomes.items() if (why := _why(outcome))}
        if failed:
            self._fail(number, result, outcomes, failed)
        results = [outcomes[place].result for place in range(len(self.shards))]
        learned = time.perf_counter()
        models = [self._model(state, result.model.vocabulary) for state, _ in results]
        self._refuse_columns(models)
        merged = merge_since(result.model, models, self.mix, self.multiplicative)
        counts = [counts for _, counts in results]
        result.model = merged
        result.passes.append(Pass(counts, learned - started, time.perf_counter() - learned))
        if self.folder is not None:
            self.folder.save(result, self.settings(merged))

    def _learn(
        self, workers: Any, number: int, state: State, done: Mapping[int, TaskOutcome]
    ) -> dict[int, TaskOutcome]:
        places = [place for place in range(len(self.shards)) if place not in done]
        model = workers.keep(state)
        tasks = [
            workers.submit(learn_shard, model, self.shards[place].source, self.reading, name=f"pass{number}-{place}")
            for place in places
        ]
        ended = len(done)

        def told(_: int) -> None:
            nonlocal ended
            ended += 1
            if self.watch is not None:
                self.watch(Progress(number, ended, len(self.shards)))

        return dict(done) | dict(zip(places, workers.gather(tasks, told), strict=True))

    def _fail(self, number: int, result: Fit, outcomes: Mapping[int, TaskOutcome], failed: Mapping[int, str]) -> None:
        kept = ""
        if self.folder is not None:
            good = {place: outcome for place, outcome in outcomes.items() if place not in failed}
            self.folder.keep(number, good, self.settings(result.model))
            kept = f"; the results of the other {len(good)} are kept in {self.folder.path}, resume when it is put right"
        named = {self.shards[place].name: why for place, why in failed.items()}
        told = "; ".join(f"{name}: {why}" for name, why in list(named.items())[:5])
        raise ShardError(f"{len(failed)} of {len(self.shards)} shards failed in pass {number + 1}: {told}{kept}", named)

    def _model(self, state: State, names: Vocabulary) -> StreamModel:
        """The model of a shard, ready to be merged; if it met no new names, it shares those it started with."""
        return StreamModel.from_state(*state, names if same_names(state, names) else None, copied=False)

    def _refuse_columns(self, models: Sequence[StreamModel]) -> None:
        started = [place for place, model in enumerate(models) if model.engine is not None]
        for place in started[1:]:
            mine, first = set(models[place].dense_names), set(models[started[0]].dense_names)
            if mine != first or models[place].dense_names != models[started[0]].dense_names:
                one, other = self.shards[place].name, self.shards[started[0]].name
                told = ", ".join(sorted(mine ^ first)[:5]) or "their order"
                raise ShardError(
                    f"the columns of numbers of {one} and {other} differ: {told}", {one: f"other columns: {told}"}
                )


def _why(outcome: TaskOutcome) -> str:
    return outcome.result.reason if isinstance(outcome.result, Refused) else outcome.error


# -- checkpoints -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Folder:
    """The checkpoint: the model after the last pass, and results of the next one where some shards failed."""

    path: Path

    @classmethod
    def opened(cls, path: str | os.PathLike[str] | None, resume: bool) -> Folder | None:
        """The folder, made if necessary."""
        if path is None:
            if resume:
                raise ValueError("resume=True needs the checkpoint= folder to go on from")
            return None
        made = cls(Path(path))
        if made.path.exists() and not made.path.is_dir():
            raise ValueError(f"checkpoint must be a folder, and {made.path} is a file")
        made.path.mkdir(parents=True, exist_ok=True)
        if not resume and any(made.path.glob("*.linmax")):
            raise ValueError(f"{made.path} holds a checkpoint; go on from it with resume, or give another folder")
        return made

    def load(self, fresh: Fit, settings: Mapping[str, Any]) -> Fit:
        """What was kept; ``fresh`` where nothing was."""
        if not (self.path / LATEST).exists():
            return fresh
        description, arrays = files.read(self.path / LATEST, CHECKPOINT)
        self._refuse_others(LATEST, description["settings"], settings)
        passes = [
            Pass([ShardCounts(**counts) for counts in one["shards"]], one["learning"], one["mixing"])
            for one in description["passes"]
        ]
        return Fit(StreamModel.from_state(description["model"], arrays), fresh.shards, passes)

    def save(self, result: Fit, settings: Mapping[str, Any]) -> None:
        """Keep the model; the results that went into it are no longer needed."""
        described, arrays = result.model.state()
        description = {
            "settings": dict(settings),
            "model": described,
            "passes": [asdict(one) for one in result.passes],
        }
        files.write(self.path / LATEST, CHECKPOINT, description, arrays)
        for path in self.path.glob("shard-*.linmax"):
            path.unlink()

    def keep(self, number: int, outcomes: Mapping[int, TaskOutcome], settings: Mapping[str, Any]) -> None:
        """Keep the results of some shards."""
        for place, outcome in outcomes.items():
            (described, arrays), counts = outcome.result
            description = {
                "settings": dict(settings),
                "pass": number,
                "model": described,
                "counts": asdict(counts),
            }
            files.write(self.path / f"shard-{place}.linmax", RESULT, description, arrays)

    def kept(self, number: int, settings: Mapping[str, Any]) -> dict[int, TaskOutcome]:
        """The results that were kept of this pass."""
        found = {}
        for path in sorted(self.path.glob("shard-*.linmax")):
            description, arrays = files.read(path, RESULT)
            if description["pass"] == number:
                self._refuse_others(path.name, description["settings"], settings)
                counts = ShardCounts(**description["counts"])
                found[int(path.stem.removeprefix("shard-"))] = TaskOutcome(((description["model"], arrays), counts))
        return found

    def _refuse_others(self, name: str, kept: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        for key, value in settings.items():
            if kept.get(key) != value:
                raise ValueError(
                    f"{self.path / name} was made with another {key}: {kept.get(key)!r}, not {value!r}; give another "
                    "folder to begin anew"
                )
