"""Run many learners over the same stream, in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed, parallel_config

from linmax.cluster.connect import workers_of
from linmax.cluster.fit import refuse_custom_rules
from linmax.data.instances import Instances
from linmax.engine.notation import as_learners
from linmax.models.run import run
from linmax.models.streams import StreamModel, stream
from linmax.models.streams.stream_model import weights_of
from linmax.models.trace import Trace
from linmax.techniques.technique import LearnerLike
from linmax.util.aliases import Labels, Source

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Swept", "sweep"]


@dataclass(frozen=True, eq=False)
class Swept:
    """Result of one learner in a sweep over files.

    Attributes
    ----------
    learner
        The learner, as given.
    model : StreamModel
        The model after the last row.
    wrong : array of bool
        Whether each trial was a mistake.

    See Also
    --------
    sweep : makes it.

    Examples
    --------
    >>> import linmax
    >>> lines = ["1 1:1", "2 2:1"] * 20
    >>> (swept,) = linmax.cluster.sweep(["perceptron"], lines)
    >>> len(swept.wrong), int(swept.mistakes[-1]) < 5
    (40, True)
    """

    learner: LearnerLike
    model: StreamModel
    wrong: np.ndarray

    @property
    def mistakes(self) -> np.ndarray:
        """Mistakes up to and including each trial."""
        return np.cumsum(self.wrong)

    def __repr__(self) -> str:
        return f"<{self.learner}: {len(self.wrong)} trials, {self.wrong.sum()} mistakes>"


def sweep(
    learners: Sequence[LearnerLike],
    data: tuple[Instances, Labels] | Source,
    *,
    client: Client | None = None,
    scale: str = "auto",
    reading: dict[str, object] | None = None,
) -> list[Trace] | list[Swept]:
    """Run each learner over the same stream, independently of the others.

    Parameters
    ----------
    learners
        Learners, or text; custom rules only without a client.
    data
        A pair (instances, labels), with instances from `linmax.instances`: gives a list of `linmax.Trace`, the same
        as of `linmax.run`. Or what `linmax.stream` reads, from where the workers can reach it: gives a list of `Swept`.
    client
        A ``distributed.Client``, which joblib uses as its Dask backend. Without one the learners run as joblib is
        configured (``joblib.parallel_config``): by default one after the other in this process.
    scale, reading
        For what is read: how attributes are scaled, and options of `linmax.stream`.

    Returns
    -------
    list of Trace or of Swept
        One for each learner, in their order.

    See Also
    --------
    linmax.combine : runs learners side by side as one learner.

    Examples
    --------
    >>> import linmax
    >>> problem = linmax.datasets.majority_problem(trials=500, seed=1)
    >>> data = linmax.instances(votes=problem.votes), problem.labels
    >>> for trace in linmax.cluster.sweep(["perceptron", "winnow(1.1)"], data):
    ...     print(trace.model.learner, trace.mistakes[-1] < 250)
    perceptron True
    winnow(1.1) True
    """
    described = as_learners(learners)
    if workers_of(client).remote:
        for learner in described:
            refuse_custom_rules(learner)
    in_memory = isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], Instances)
    call = delayed(run_one) if in_memory else delayed(partial(read_one, scale, dict(reading or {})))
    with nullcontext() if client is None else parallel_config("dask", n_jobs=-1, client=client):
        found = Parallel()([call(learner if client is None else str(learner), data) for learner in described])
    for learner, one in zip(described, found, strict=True):
        if isinstance(one, str):
            raise ValueError(f"{learner}: {one}")
    return [replace(trace, seen=data) for trace in found] if in_memory else list(found)


def run_one(learner: LearnerLike, data: tuple[Instances, Labels]) -> Trace | str:
    """Run one learner over instances, which stay here; returns a message if they are refused."""
    try:
        return replace(run(learner, *data), seen=None)
    except (ValueError, TypeError, OverflowError) as error:
        return str(error)


def read_one(scale: str, reading: dict[str, Any], learner: LearnerLike, source: Source) -> Swept | str:
    """Run one learner over the rows that it reads itself; returns a message if they are refused."""
    try:
        model, wrong = StreamModel(learner, scale=scale), [np.zeros(0, bool)]
        for batch in stream(source, model=model, prefetch=False, **reading):
            predicted = model._play(model._scaled(batch), batch.codes, weights_of(batch))
            wrong.append((predicted != batch.codes)[batch.codes >= 0])
    except (ValueError, TypeError, OverflowError, FileNotFoundError) as error:
        return str(error)
    return Swept(learner, model, np.concatenate(wrong))
