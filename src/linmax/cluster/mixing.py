"""Iterative parameter mixing: in each pass every shard starts from the same model, and the results are merged.

McDonald, Hall and Mann (2010). `linmax.cluster.merging` says how models are merged.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from inspect import signature
from typing import Any

from linmax.cluster.beforehand import checked_reading, refuse_missing_files
from linmax.cluster.checkpoints import Folder
from linmax.cluster.contents import content_of
from linmax.cluster.dask_workers import workers_of
from linmax.cluster.groups import (
    GroupReport,
    RunPlan,
    ShardGroup,
    learn_group,
    lengthened,
    mix_groups,
    report_on,
    started,
    whole_model,
)
from linmax.cluster.held import forget
from linmax.cluster.merge_checks import HOW, refuse_unmergeable
from linmax.cluster.model_states import ShardModel, model_of, settings_of_model, state_of
from linmax.cluster.one_pass import Counter, Holder, Start
from linmax.cluster.partitions import added_columns, is_joint
from linmax.cluster.results import Fit, Pass, Progress, warn_of_refused
from linmax.cluster.shards import Shard, ShardError, refuse_untold, shards_of
from linmax.cluster.tree import Node, children, covered, top, whole_nodes
from linmax.cluster.versions import refuse_other_versions, versions
from linmax.cluster.voting import checked_votes_reading
from linmax.cluster.workers import TaskOutcome, Workers
from linmax.engine.notation import as_learner
from linmax.models.fusion import OnLineFusion
from linmax.models.streams import StreamModel
from linmax.rules.mixing import MULTIPLICATIVE
from linmax.util.checks import boolean, one_of, whole

__all__ = ["fit"]


def fit(
    learner: Any,
    shards: Any,
    *,
    client: Any = None,
    passes: int = 1,
    mix: str | None = None,
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
) -> Fit[Any]:
    """Learn from shards in parallel by iterative parameter mixing, a model of attributes or a fusion of votes.

    Parameters
    ----------
    learner
        Any learner that `linmax.merge` can merge, for a `linmax.streams.StreamModel`; or a `linmax.VoteFusion`, which
        stays as it is: what is learned from tables of votes goes into a new one that goes on from it.
    shards
        Files that the workers can read (Parquet, svmlight, VW text, JSON lines, CSV and what else `linmax.stream`
        reads), each a shard; patterns such as "part-*.parquet" and folders, also those that Hive writes, whose names
        ``class=a`` are a column; addresses that fsspec opens, such as "s3://bucket/part-*.svm", with the credentials
        that it finds; tables; a Dask bag of lines or of records, or a Dask DataFrame, whose partitions are the shards,
        or (X, y) or (X, y, weights), Dask collections with the same partitions. For a fusion these are tables with a
        column for each voter, or for each rater and class (``rater:class``), and one of labels, in files or as frames,
        or pairs (votes, y) as `VoteFusion.fit` takes them.
    client
        A ``distributed.Client``; without one the shards are learned one after the other in this process, with the same
        result to the last bit.
    passes
        How many times every shard is gone through; a fusion learns from each trial once.
    mix
        Shares of the shards: "uniform", "trials", or "mistakes": in proportion to their updates in this pass. Without
        it "uniform", and "trials" for a fusion.
    multiplicative
        "log" or "plain", see `linmax.merge`.
    checkpoint
        A folder in which to keep the model after each pass and, when shards fail, the results of the others.
    resume
        Continue from the checkpoint, if there is one.
    scale, thresholds, hash_bits, tie, update_on_tie
        As in `linmax.streams.StreamModel`; a fusion has its own.
    reading
        Options of `linmax.stream`, such as ``{"label": "class"}``. For tables of votes ``label``, the column of labels,
        ``ignore``, a list of columns that are not voters, ``format``, and ``others``: what votes for other classes
        than those that the fusion was given are, "refuse" or "abstain".
    watch
        Called with the `Progress` after each shard.

    Raises
    ------
    ValueError, TypeError
        Before anything starts: for a learner without a sound mixture, options of reading that there are not, a
        checkpoint of another run, workers with other versions of Python, linmax, NumPy or Numba.
    ShardError
        Names the shards that could not be learned from. Files that a worker cannot see are named before anything
        starts; if a shard fails later, others are finished first, and kept in ``checkpoint``.
    ConnectionError
        The scheduler has gone away.

    Warns
    -----
    UserWarning
        Rows could not be read; the others were learned from.

    Notes
    -----
    With S shards and shares mu_i, pass n is w_n = sum mu_i L_i(w_(n-1)), L_i the learner's pass over shard i. For the
    Perceptron, data separable with margin gamma and any shares: sum over passes of sum_i mu_i k_i <= R^2 / gamma^2,
    k_i the updates on shard i. No bound is known to us for the other rules. With one shard this is the serial run.

    A worker learns a run of neighbouring shards and mixes them as it goes; what different workers learned is mixed on
    workers too, in a tree that the number of shards fixes. The bits depend neither on the workers nor on timing, and
    this process holds one model. Partitions of Dask collections are computed once and stay on the workers.

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

    >>> votes = {"a": ["x", "y", "x"], "b": ["x", "x", "y"], "label": ["x", "y", "x"]}
    >>> linmax.cluster.fit(linmax.VoteFusion(), [votes, votes]).model.report().online.trials
    6
    """
    fuses = isinstance(learner, OnLineFusion)
    described = as_learner(learner.learner if fuses else learner)
    refuse_unmergeable(described)
    refuse_untold(described)
    whole("passes", passes, 1)
    mix = ("trials" if fuses else "uniform") if mix is None else mix
    one_of("mix", mix, HOW)
    one_of("multiplicative", multiplicative, MULTIPLICATIVE)
    given = (added_columns(shards) if is_joint(shards) else {}) | dict(reading or {})
    options = checked_votes_reading(given) if fuses else checked_reading(given)
    own: dict[str, Any] = {
        "scale": scale,
        "thresholds": thresholds,
        "hash_bits": hash_bits,
        "tie": tie,
        "update_on_tie": update_on_tie,
    }
    if fuses:
        _refuse_for_fusions(passes, own)
    model: ShardModel = learner if fuses else StreamModel(described, **own)
    workers, folder = workers_of(client), Folder.opened(checkpoint, boolean("resume", resume))
    parts = shards_of(shards)
    topic = f"linmax-{uuid.uuid4().hex[:8]}"
    plan = RunPlan(len(parts), mix, multiplicative, options, topic, watch is not None, versions())
    job = Job(parts, plan, folder, watch, workers)
    refuse_other_versions(workers)
    refuse_missing_files(workers, parts)
    try:
        job.run(job.start(model, passes), passes)
    finally:  # a traceback, or a cycle of references, may keep this alive
        workers.abandon()
    warn_of_refused(job.result)
    return job.result


def _refuse_for_fusions(passes: int, options: Mapping[str, Any]) -> None:
    if passes != 1:
        raise ValueError(f"passes={passes}: a fusion learns from each trial once; leave passes out")
    usual = signature(fit).parameters
    for name, value in options.items():
        if value != usual[name].default:
            raise ValueError(f"{name}={value!r}: a fusion has options of its own; give them to VoteFusion")


class Job:
    """One run: the shards, where they are learned, and the model that goes from pass to pass."""

    def __init__(
        self,
        shards: list[Shard],
        plan: RunPlan,
        folder: Folder | None,
        watch: Callable[[Progress], None] | None,
        workers: Workers,
    ) -> None:
        self.shards, self.plan, self.folder, self.watch, self.workers = shards, plan, folder, watch, workers
        self.result: Fit[Any]

    def settings(self, model: ShardModel) -> dict[str, Any]:
        """What must not change between a checkpoint and its continuation."""
        return settings_of_model(model) | {
            "shards": [shard.name for shard in self.shards],
            "fingerprints": [] if self.folder is None else self._fingerprints(),
            "mix": self.plan.mix,
            "multiplicative": self.plan.multiplicative,
            "reading": json.loads(json.dumps(self.plan.reading, sort_keys=True)),
        }

    def _fingerprints(self) -> list[Any]:
        """Of files as they are seen from here, of rows where they are."""
        found = [shard.fingerprint for shard in self.shards]
        rows = [place for place, shard in enumerate(self.shards) if shard.path is None]
        tasks = [self.workers.submit(content_of, self.sources[at], name="fingerprint", again=False) for at in rows]
        for place, outcome in zip(rows, self.workers.gather(tasks) if tasks else [], strict=True):
            found[place] = outcome.result  # none of what cannot be computed, which is said when it is learned from
        return found

    def start(self, model: ShardModel, passes: int) -> Fit[Any]:
        """From the checkpoint, or from nothing."""
        self.sources = self.workers.hold([shard.source for shard in self.shards], often=passes > 1)
        fresh = Fit(model, [shard.name for shard in self.shards])
        self.fixed = self.settings(model)
        return fresh if self.folder is None else self.folder.load(fresh, self.fixed)

    def run(self, result: Fit[Any], passes: int) -> None:
        """The passes that are still to be made."""
        self.result = result
        if len(result.passes) >= passes:
            return
        group = started(state_of(result.model), len(self.shards))
        start = Start(self.workers.keep(group), report_on(group))
        try:
            while len(result.passes) < passes:
                self._one_pass(start)
                self._refuse_nothing(result)
                if self.folder is not None or len(result.passes) == passes:
                    result.model = self._fetched(start)
                elif start.long:
                    start.restart(self._whole(start))
                if self.folder is not None:
                    self.folder.save(result, self.fixed)
        finally:
            with suppress(Exception):  # a worker that is gone has nothing to forget
                self.workers.everywhere(forget, self.plan.topic)

    def _refuse_nothing(self, result: Fit[Any]) -> None:
        """A model of attributes learns from labels alone."""
        last, names = result.passes[-1], ", ".join(result.shards[:3]) + (", ..." if len(result.shards) > 3 else "")
        if last.trials or isinstance(result.model, OnLineFusion):
            return
        rows = sum(counts.unlabelled for counts in last.shards)
        if rows:
            raise ValueError(f"{names}: not one of {rows:,} rows has a label, so there is nothing to learn")
        raise ValueError(f"{names}: there is no data")

    def _fetched(self, start: Start) -> ShardModel:
        """The model after the last pass."""
        (mixed,) = self.workers.fetch(self._whole(start) if len(start.groups) > 1 else start.groups[0]).mixed.values()
        assert isinstance(mixed.state, tuple)
        return model_of(mixed.state)

    def _whole(self, start: Start) -> Any:
        given = (len(self.result.passes), start.groups, self.plan.topic, len(self.shards))
        return self.workers.submit(whole_model, *given, name="whole", again=False)

    def _one_pass(self, start: Start) -> None:
        """Learn from every shard and mix."""
        number, size, began = len(self.result.passes), len(self.shards), time.perf_counter()
        kept = ShardGroup() if self.folder is None else self.folder.kept(number, self.fixed)
        done = covered(kept.mixed, size)
        ended = Counter(number, len(done), size, self.watch)
        with self._watching(ended):
            runs = self._runs([place for place in range(size) if place not in done])
            tasks = [self._group(start, number, places, worker) for worker, places in enumerate(runs)]
            holders = [Holder(task, whole_nodes(places, size)) for task, places in zip(tasks, runs, strict=True)]
            if kept.mixed:
                holders.append(Holder(self.workers.keep(kept), list(kept.mixed)))
            # Mixing is asked for together with learning, so that no worker waits for this process in between.
            mixed = self._mixed(start, holders, top(size))
            times = [began] * (len(holders) + 1)
            *reports, last = self.workers.gather(
                [self._told(task) for task in (*(holder.task for holder in holders), mixed)],
                lambda place: times.__setitem__(place, time.perf_counter()),
            )
        learned = max(times[: len(tasks)], default=began)
        if any(outcome.error or outcome.result.failed for outcome in reports):
            holders = self._one_by_one(start, number, holders, reports, runs)
            mixed = self._mixed(start, holders, top(size))
            reports = [TaskOutcome(holder.report) for holder in holders]
            (last,) = self.workers.gather([self._told(mixed)])
        ended.finish()
        found = [outcome.result for outcome in (*reports, last) if not outcome.error]
        self._refuse_columns(found)
        if last.error:
            raise RuntimeError(f"the models could not be mixed: {last.error}")
        start.add(mixed, last.result)
        counts = {place: one for report in found for place, one in report.counts.items()}
        shards = [counts[place] for place in sorted(counts)]
        mixing = time.perf_counter() - learned
        self.result.passes.append(Pass(shards, learned - began, mixing, last.result.seconds))

    def _watching(self, ended: Counter) -> AbstractContextManager[None]:
        return nullcontext() if self.watch is None else self.workers.watching(self.plan.topic, ended)

    def _runs(self, places: Sequence[int]) -> list[list[int]]:
        """Runs of neighbouring shards, one for each worker."""
        many = min(self.workers.count, len(places))
        return [list(places[len(places) * i // many : len(places) * (i + 1) // many]) for i in range(many)]

    def _one_by_one(
        self,
        start: Start,
        number: int,
        holders: Sequence[Holder],
        reports: Sequence[TaskOutcome],
        runs: Sequence[Sequence[int]],
    ) -> list[Holder]:
        """Learn again, one by one, the shards of groups whose workers died, to find the one that kills."""
        good = [holder.told(one.result) for holder, one in zip(holders, reports, strict=True) if not one.error]
        died = [place for places, one in zip(runs, reports, strict=False) if one.error for place in places]
        failed: dict[int, str] = {}
        for place in died:
            task = self._group(start, number, [place], None)
            (outcome,) = self.workers.gather([self._told(task)])
            if outcome.error:
                failed[place] = outcome.error
            else:
                good.append(Holder(task, []).told(outcome.result))
        failed |= {place: why for holder in good if holder.report for place, why in holder.report.failed.items()}
        if failed:
            self._fail(start, number, good, failed)
        return good

    def _group(self, start: Start, number: int, places: Sequence[int], worker: int | None) -> Any:
        sources = [self.sources[place] for place in places]
        name = f"learn-pass{number + 1}-{places[0]}" + (f"to{places[-1]}" if len(places) > 1 else "")
        given = (number, start.groups, self.plan, list(places), *sources)
        return self.workers.submit(learn_group, *given, name=name, worker=worker, again=False)

    def _told(self, group: Any) -> Any:
        return self.workers.submit(report_on, group, name="report", again=False)

    def _mixed(self, start: Start, holders: Sequence[Holder], node: Node) -> Any:
        """The task that holds the model of a node: that of a group, or a mixture of those below."""
        size = len(self.shards)
        for holder in holders:
            if node in holder.nodes:
                return holder.task
        below = [self._mixed(start, holders, child) for child in children(node, size)]
        tasks = list({id(task): task for task in below}.values())
        given = (len(self.result.passes), start.groups, self.plan, node, *tasks)
        return self.workers.submit(mix_groups, *given, name=f"mix-level{node[0]}-{node[1]}", again=False)

    def _fail(self, start: Start, number: int, holders: Sequence[Holder], failed: Mapping[int, str]) -> None:
        kept = ""
        if self.folder is not None:
            good = 0
            for holder in holders:
                given = (number, start.groups, self.plan.topic, holder.task)
                fetched = self.workers.fetch(self.workers.submit(lengthened, *given, name="kept", again=False))
                self.folder.keep(number, fetched, self.fixed)
                good += len(covered(fetched.mixed, len(self.shards)))
            kept = f"; the results of the other {good} are kept in {self.folder.path}, resume when it is put right"
        named = {self.shards[place].name: why for place, why in sorted(failed.items())}
        told = "; ".join(f"{name}: {why}" for name, why in list(named.items())[:5])
        raise ShardError(f"{len(failed)} of {len(self.shards)} shards failed in pass {number + 1}: {told}{kept}", named)

    def _refuse_columns(self, reports: Sequence[GroupReport]) -> None:
        for report in reports:
            if report.columns is not None:
                place, other, differ = report.columns
                one, another = self.shards[place].name, self.shards[other].name
                raise ShardError(
                    f"the columns of numbers of {one} and {another} differ: {differ}, which only one of them has as "
                    "numbers; give all shards the same columns of the same types",
                    {one: f"other columns: {differ}"},
                )
