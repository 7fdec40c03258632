"""A fusion learned from shards in parallel: each worker learns its own, and they are merged in a fixed order."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeVar, cast

import numpy as np

from linmax.cluster.merge_checks import refuse_unmergeable
from linmax.cluster.merging import merge_since
from linmax.cluster.shards import Refused, ShardError, shards_of
from linmax.cluster.tree import Node, children, top
from linmax.cluster.workers import Workers, workers_of
from linmax.io.reader import open_source, read_columns
from linmax.models.fusion.online import OnLineFusion
from linmax.util.checks import one_of

__all__ = ["fit_votes"]

F = TypeVar("F", bound=OnLineFusion)
MIXES = ("trials", "mistakes")  # in which the order of merging only rounds


def fit_votes(
    fusion: F, shards: Any, *, label: str = "label", ignore: Sequence[str] = (), client: Any = None, mix: str = "trials"
) -> F:
    """Learn a `linmax.VoteFusion` from shards in parallel.

    Every shard is learned from, once, starting with the given fusion, and what they learned is merged on the workers:
    `linmax.merge` says how. The bits depend on the shards and their order alone.

    Parameters
    ----------
    fusion
        What learns; it stays as it is. One that has learned already is gone on with.
    shards
        Tables with a column for each voter and one of labels: files that the workers can read (patterns too), data
        frames, dicts of columns; or pairs (votes, y) as `VoteFusion.fit` takes them.
    label, ignore
        The column of labels in a table, and columns that are not voters. Side columns are named by the fusion's ``by``.
    client
        A ``distributed.Client``; without one all is done in this process, with the same result.
    mix
        Shares of the shards: "trials" or "mistakes".

    Returns
    -------
    A new fusion; its report counts the trials of all shards.

    Raises
    ------
    ShardError
        Names the shards that could not be learned from.

    See Also
    --------
    linmax.merge : merges fusions that exist.
    fuse : models score the shards in parallel, and one fusion learns from the scores in order.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.majority_problem(n=7, r=3, k=3, noise=0.1, trials=600, seed=1)
    >>> parts = [(data.votes[begin : begin + 200], data.labels[begin : begin + 200]) for begin in (0, 200, 400)]
    >>> fusion = linmax.cluster.fit_votes(linmax.VoteFusion(), parts)
    >>> fusion.report().online.trials
    600
    >>> sorted(list(fusion.weights())[:3])
    ['0', '1', '2']
    """
    if not isinstance(fusion, OnLineFusion):
        raise TypeError(f"fusion must be a VoteFusion, got {fusion!r}; for a learner of attributes use fit")
    refuse_unmergeable(fusion.learner)
    one_of("mix", mix, MIXES)
    parts, workers = shards_of(shards), workers_of(client)
    base = workers.keep(deepcopy(fusion))
    learned = [
        workers.submit(learn_votes, base, part.source, label, list(ignore), name=f"votes{place}")
        for place, part in enumerate(parts)
    ]
    told = workers.gather([workers.submit(why_refused, task, name="report") for task in learned])
    failed = {part.name: one.error or one.result for part, one in zip(parts, told, strict=True)}
    failed = {name: why for name, why in failed.items() if why}
    if failed:
        shown = "; ".join(f"{name}: {why}" for name, why in list(failed.items())[:5])
        raise ShardError(f"{len(failed)} of {len(parts)} shards could not be learned from: {shown}", failed)
    result: F = workers.fetch(_mixed(workers, base, learned, mix, top(len(parts))))
    return result


def learn_votes(fusion: F, source: Any, label: str, ignore: Sequence[str]) -> F | Refused:
    """Go on from a fusion through one shard. Depends on its arguments alone and does not change them."""
    try:
        votes, labels = _read(source, label, ignore)
        return deepcopy(fusion).partial_fit(votes, labels)
    except (ValueError, TypeError, OverflowError, OSError, ImportError) as error:
        return Refused(" ".join(str(error).split()) or type(error).__name__)


def why_refused(outcome: OnLineFusion | Refused) -> str:
    """The reason, or no text."""
    return outcome.reason if isinstance(outcome, Refused) else ""


def mix_votes(base: F, mix: str, *fusions: F) -> F:
    """One fusion from several that went on from the base."""
    started = base if getattr(base, "_state", None) is not None else None
    merged = cast(F, merge_since(started, list(fusions), mix))  # of their type
    return merged


def _mixed(workers: Workers, base: Any, learned: Sequence[Any], mix: str, node: Node) -> Any:
    """The task that holds the fusion of a node."""
    if node[0] == 0:
        return learned[node[1]]
    below = [_mixed(workers, base, learned, mix, child) for child in children(node, len(learned))]
    if len(below) == 1:
        return below[0]
    return workers.submit(mix_votes, base, mix, *below, name=f"mix{node[0]}-{node[1]}")


def _read(source: Any, label: str, ignore: Sequence[str]) -> tuple[Any, Any]:
    """Votes and labels of a shard."""
    if isinstance(source, tuple) and len(source) == 2:
        return source
    if isinstance(source, (str, os.PathLike)):
        source = read_columns(*open_source(os.fspath(source), None, columns=True))
    if isinstance(source, Mapping):
        columns = dict(source)
    elif hasattr(source, "columns"):  # a frame of pandas or polars
        columns = {str(name): np.array(source[name], dtype=object) for name in source.columns}
    else:
        raise TypeError(f"a shard must be a file, a table, or a pair (votes, y), got {type(source).__name__}")
    for name in (label, *ignore):
        if name not in columns:
            raise ValueError(f"there is no column {name!r} among {', '.join(map(str, columns))}")
    labels = columns.pop(label)
    return {name: list(cells) for name, cells in columns.items() if name not in ignore}, labels
