"""Iterative parameter mixing: in each pass every shard starts from the same model, and the results are merged.

McDonald, Hall and Mann (2010). `linmax.cluster.merging` says how models are merged.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from linmax.cluster.checkpoints import Folder
from linmax.cluster.groups import Group, Plan, Report, learn_group, mix_groups, report_on, started, whole_model
from linmax.cluster.held import forget
from linmax.cluster.merge_checks import HOW, refuse_unmergeable
from linmax.cluster.results import Fit, Pass, Progress
from linmax.cluster.rows import Rows
from linmax.cluster.shards import Shard, ShardError, refuse_untold, shards_of
from linmax.cluster.tree import Node, children, covered, top
from linmax.cluster.workers import Workers, workers_of
from linmax.engine.notation import as_learner
from linmax.models.streams import StreamModel
from linmax.rules.mixing import MULTIPLICATIVE
from linmax.util.checks import boolean, one_of, whole

__all__ = ["fit"]

MOST = 16  # passes of which the mixed rows are held


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
        Shares of the shards: "uniform", "trials", or "mistakes": in proportion to their updates in this pass.
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
    workers = workers_of(client)
    plan = Plan(len(parts), mix, multiplicative, options, f"linmax-{uuid.uuid4().hex[:8]}")
    job = Job(parts, plan, Folder.opened(checkpoint, boolean("resume", resume)), watch, workers)
    job.run(job.start(model), passes)
    return job.result


class Job:
    """One run: the shards, where they are learned, and the model that goes from pass to pass."""

    def __init__(
        self,
        shards: list[Shard],
        plan: Plan,
        folder: Folder | None,
        watch: Callable[[Progress], None] | None,
        workers: Workers,
    ) -> None:
        self.shards, self.plan, self.folder, self.watch, self.workers = shards, plan, folder, watch, workers
        self.sources = [workers.hold(shard.source) for shard in shards]
        self.result: Fit

    def settings(self, model: StreamModel) -> dict[str, Any]:
        """What must not change between a checkpoint and its continuation."""
        described = model.state()[0]
        names = ("learner", "thresholds", "tie", "update_on_tie", "hash_bits")
        return {name: described[name] for name in names} | {
            "scale": model.scaling.asked,
            "shards": [shard.name for shard in self.shards],
            "fingerprints": [shard.fingerprint for shard in self.shards],
            "mix": self.plan.mix,
            "multiplicative": self.plan.multiplicative,
            "reading": json.loads(json.dumps(self.plan.reading, sort_keys=True)),
        }

    def start(self, model: StreamModel) -> Fit:
        """From the checkpoint, or from nothing."""
        fresh = Fit(model, [shard.name for shard in self.shards])
        self.fixed = self.settings(model)
        return fresh if self.folder is None else self.folder.load(fresh, self.fixed)

    def run(self, result: Fit, passes: int) -> None:
        """The passes that are still to be made."""
        self.result = result
        if len(result.passes) >= passes:
            return
        group = started(result.model.state(), len(self.shards))
        start = Start(self.workers.keep(group), report_on(group))
        try:
            while len(result.passes) < passes:
                self._one_pass(start)
                if self.folder is not None or len(result.passes) == passes:
                    result.model = self._fetched(start)
                elif start.long:
                    start.restart(self._whole(start))
                if self.folder is not None:
                    self.folder.save(result, self.fixed)
        finally:
            self.workers.everywhere(forget, self.plan.topic)

    def _fetched(self, start: Start) -> StreamModel:
        """The model after the last pass."""
        (mixed,) = self.workers.fetch(self._whole(start) if len(start.groups) > 1 else start.groups[0]).mixed.values()
        assert not isinstance(mixed.state, Rows)
        return StreamModel.from_state(*mixed.state)

    def _whole(self, start: Start) -> Any:
        given = (len(self.result.passes), start.groups, self.plan.topic, len(self.shards))
        return self.workers.submit(whole_model, *given, name="whole")

    def _one_pass(self, start: Start) -> None:
        """Learn from every shard and mix."""
        number, began = len(self.result.passes), time.perf_counter()
        kept = Group() if self.folder is None else self.folder.kept(number, self.fixed)
        holders = self._learn(start, number, kept)
        learned = time.perf_counter()
        mixed = self._mixed(start, holders, top(len(self.shards)))
        report = self._report(mixed)
        self._refuse_columns([report])
        start.add(mixed, report)
        counts = {place: one for _, report in holders for place, one in report.counts.items()}
        shards = [counts[place] for place in sorted(counts)]
        self.result.passes.append(Pass(shards, learned - began, time.perf_counter() - learned, report.seconds))

    def _learn(self, start: Start, number: int, kept: Group) -> list[tuple[Any, Report]]:
        """Groups that together hold every shard, with their reports."""
        size, done = len(self.shards), covered(kept.mixed, len(self.shards))
        left = [place for place in range(size) if place not in done]
        many = max(1, min(self.workers.count, len(left)))
        runs = [left[len(left) * i // many : len(left) * (i + 1) // many] for i in range(many)]
        ended = Counter(number, len(done), size, self.watch)
        holders: list[tuple[Any, Report]] = [(self.workers.keep(kept), report_on(kept))] if kept.mixed else []
        with self.workers.watching(self.plan.topic, ended):
            groups = [self._group(start, number, places, worker) for worker, places in enumerate(runs) if places]
            outcomes = self.workers.gather([self._told(group) for group in groups])
        died = [place for places, outcome in zip(runs, outcomes, strict=False) if outcome.error for place in places]
        failed: dict[int, str] = {}
        holders += [(group, one.result) for group, one in zip(groups, outcomes, strict=True) if not one.error]
        for place in died:  # one by one, to find the one that kills
            group = self._group(start, number, [place], None)
            (outcome,) = self.workers.gather([self._told(group)])
            if outcome.error:
                failed[place] = outcome.error
            else:
                holders.append((group, outcome.result))
        failed |= {place: why for _, report in holders for place, why in report.failed.items()}
        if failed:
            self._fail(number, holders, failed)
        ended.finish()
        self._refuse_columns([report for _, report in holders])
        return holders

    def _group(self, start: Start, number: int, places: Sequence[int], worker: int | None) -> Any:
        sources = [self.sources[place] for place in places]
        name = f"pass{number}-{places[0]}" + (f"to{places[-1]}" if len(places) > 1 else "")
        given = (number, start.groups, self.plan, list(places), *sources)
        return self.workers.submit(learn_group, *given, name=name, worker=worker)

    def _told(self, group: Any) -> Any:
        return self.workers.submit(report_on, group, name="report")

    def _report(self, group: Any) -> Report:
        (outcome,) = self.workers.gather([self._told(group)])
        if outcome.error:
            raise RuntimeError(f"the models could not be mixed: {outcome.error}")
        report: Report = outcome.result
        return report

    def _mixed(self, start: Start, holders: Sequence[tuple[Any, Report]], node: Node) -> Any:
        """The task that holds the model of a node: a group, or a mixture of those below."""
        size = len(self.shards)
        for group, report in holders:
            if node in report.nodes:
                return group
        below = [self._mixed(start, holders, child) for child in children(node, size)]
        groups = list({id(group): group for group in below}.values())
        given = (len(self.result.passes), start.groups, self.plan, node, *groups)
        return self.workers.submit(mix_groups, *given, name=f"mix{node[0]}-{node[1]}")

    def _fail(self, number: int, holders: Sequence[tuple[Any, Report]], failed: Mapping[int, str]) -> None:
        kept = ""
        if self.folder is not None:
            good = 0
            for group, _ in holders:
                fetched = self.workers.fetch(group)
                self.folder.keep(number, fetched, self.fixed)
                good += len(covered(fetched.mixed, len(self.shards)))
            kept = f"; the results of the other {good} are kept in {self.folder.path}, resume when it is put right"
        named = {self.shards[place].name: why for place, why in sorted(failed.items())}
        told = "; ".join(f"{name}: {why}" for name, why in list(named.items())[:5])
        raise ShardError(f"{len(failed)} of {len(self.shards)} shards failed in pass {number + 1}: {told}{kept}", named)

    def _refuse_columns(self, reports: Sequence[Report]) -> None:
        for report in reports:
            if report.columns is not None:
                place, other, differ = report.columns
                one, another = self.shards[place].name, self.shards[other].name
                raise ShardError(
                    f"the columns of numbers of {one} and {another} differ: {differ}", {one: f"other columns: {differ}"}
                )


class Start:
    """The model from which a pass starts: the tasks that hold a whole model, and what was mixed in the passes since."""

    def __init__(self, group: Any, report: Report) -> None:
        self.groups, self.sizes = [group], [report.nbytes]

    def restart(self, group: Any) -> None:
        """Put the task of a whole model in the place of all."""
        self.groups, self.sizes = [group], self.sizes[:1]

    def add(self, group: Any, report: Report) -> None:
        """What was mixed in a pass."""
        if not report.by_rows:
            self.groups, self.sizes = [], []
        self.groups, self.sizes = [*self.groups, group], [*self.sizes, report.nbytes]

    @property
    def long(self) -> bool:
        """Whether a whole model would be less to hold, and to send to a worker that has none."""
        return len(self.groups) > MOST or sum(self.sizes[1:]) > self.sizes[0]


class Counter:
    """Counts the shards of a pass that are done, and tells who watches."""

    def __init__(self, number: int, done: int, shards: int, watch: Callable[[Progress], None] | None) -> None:
        self.number, self.done, self.shards, self.watch = number, done, shards, watch

    def __call__(self) -> None:
        if self.done < self.shards:  # a worker that died may have told of shards that are learned again
            self.done += 1
            if self.watch is not None:
                self.watch(Progress(self.number, self.done, self.shards))

    def finish(self) -> None:
        """All are done, also those that nobody told of."""
        while self.done < self.shards:
            self()
