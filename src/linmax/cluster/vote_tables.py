"""What tables of votes hold, looked at on the workers before anything is learned: labels, and classes with scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from linmax.cluster.beforehand import refuse_missing_files
from linmax.cluster.dask_workers import workers_of
from linmax.cluster.shards import Refused, ShardError, shards_of, why
from linmax.cluster.voting import label_among, table_of_votes
from linmax.data.blocks import missing
from linmax.data.score_columns import rated_columns

__all__ = ["VoteTables", "look_at_votes"]


class VoteTables(NamedTuple):
    """Labels, each once, and the classes of columns ``rater:class``, if there are such columns and no others."""

    labels: list[Any]
    rated: list[str] | None


def look_at_votes(shards: Any, reading: Mapping[str, Any], client: Any = None) -> VoteTables:
    """Go through the tables on the workers, one task for each.

    Examples
    --------
    >>> tables = [{"a": ["x", "y"], "label": ["x", None]}, {"a": ["x"], "label": ["z"]}]
    >>> look_at_votes(tables, {})
    VoteTables(labels=['x', 'z'], rated=None)
    """
    parts, workers = shards_of(shards), workers_of(client)
    refuse_missing_files(workers, parts)
    sources = workers.hold([part.source for part in parts], often=False)
    tasks = [
        workers.submit(looked_at, source, dict(reading), name=f"look{place}") for place, source in enumerate(sources)
    ]
    found, failed = [], {}
    for part, outcome in zip(parts, workers.gather(tasks), strict=True):
        if outcome.error or isinstance(outcome.result, Refused):
            failed[part.name] = outcome.error or outcome.result.reason
        else:
            found.append(outcome.result)
    if failed:
        told = "; ".join(f"{name}: {reason}" for name, reason in list(failed.items())[:5])
        raise ShardError(f"{len(failed)} of {len(parts)} tables cannot be read: {told}", failed)
    labels = list(dict.fromkeys(label for one in found for label in one.labels))
    rated = [name for one in found for name in one.rated or ()]
    return VoteTables(labels, list(dict.fromkeys(rated)) if all(one.rated is not None for one in found) else None)


def looked_at(source: Any, reading: Mapping[str, Any]) -> VoteTables | Refused:
    """One of them."""
    try:
        columns = dict(table_of_votes(source, reading).columns)
        labels = columns.pop(label_among(columns, reading))
        rated = rated_columns("the table", columns)
    except (ValueError, TypeError, OverflowError, OSError, ImportError) as error:
        return Refused(why(error))
    return VoteTables(list(dict.fromkeys(one for one in labels if not missing(one))), rated[1] if rated else None)
