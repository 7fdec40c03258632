"""Run many learners over the same stream, each on some worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from linmax.cluster.apart import EngineApart
from linmax.cluster.dask_workers import workers_of
from linmax.cluster.shards import Refused, State, refuse_untold
from linmax.cluster.workers import Here, Workers
from linmax.data.experts import Experts
from linmax.data.labels import distinct_labels, label_array
from linmax.engine.engine import Engine, Settings
from linmax.engine.notation import as_learners
from linmax.models.experts_model import ExpertsModel
from linmax.models.run import classes_of, run
from linmax.models.streams import StreamModel, stream
from linmax.models.streams.model import weights_of
from linmax.models.trace import Trace
from linmax.util.checks import boolean

__all__ = ["Swept", "sweep"]


@dataclass(frozen=True, eq=False)
class Swept:
    """One learner of a sweep over files: its model afterwards, and which trials were mistakes.

    Attributes
    ----------
    learner
        As it was given.
    model : StreamModel
        The model afterwards.
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

    learner: Any
    model: StreamModel
    wrong: np.ndarray

    @property
    def mistakes(self) -> np.ndarray:
        """Mistakes up to and including each trial."""
        return np.cumsum(self.wrong)

    def __repr__(self) -> str:
        return f"<{self.learner}: {len(self.wrong)} trials, {self.wrong.sum()} mistakes>"


def sweep(
    learners: Sequence[Any],
    data: Any,
    *,
    client: Any = None,
    apart: bool = False,
    scale: str = "auto",
    reading: dict[str, Any] | None = None,
) -> list[Any]:
    """Run each learner over the same stream, as if it were alone.

    Parameters
    ----------
    learners
        Learners, or text; your own rules only without a client.
    data
        A pair (instances, labels) with instances from `linmax.experts`: gives a list of `linmax.Trace`, the same as of
        `linmax.run`. Or what `linmax.stream` reads, from where the workers can reach it: gives a list of `Swept`.
    client
        A ``distributed.Client``; without one the learners run one after the other in this process.
    apart
        Let the members of each combination live on different workers; they are combined here, from their predictions
        and a log of their hypotheses. Worthwhile for pools such as VR-Combine, with 62 members. Needs instances.
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
    >>> problem = linmax.majority_problem(trials=500, seed=1)
    >>> data = linmax.experts(votes=problem.votes), problem.labels
    >>> for trace in linmax.cluster.sweep(["perceptron", "winnow(1.1)"], data):
    ...     print(trace.model.learner, trace.mistakes[-1] < 250)
    perceptron True
    winnow(1.1) True
    """
    described = as_learners(learners)
    workers = workers_of(client)
    if not isinstance(workers, Here):
        for learner in described:
            refuse_untold(learner)
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], Experts):
        if boolean("apart", apart):
            return [_apart(workers, learner, *data) for learner in described]
        given = workers.keep(data)
        tasks = [workers.submit(run_one, str(learner), given, name="sweep") for learner in described]
        return [
            _traced(learner, *data, _result(learner, outcome))
            for learner, outcome in zip(described, workers.gather(tasks), strict=True)
        ]
    if apart:
        raise ValueError("apart=True needs a pair (instances, labels), with instances from experts(...)")
    tasks = [
        workers.submit(read_one, str(learner), scale, data, dict(reading or {}), name="sweep") for learner in described
    ]
    found = []
    for learner, outcome in zip(described, workers.gather(tasks), strict=True):
        state, wrong = _result(learner, outcome)
        found.append(Swept(learner, StreamModel.from_state(*state), wrong))
    return found


def _result(learner: Any, outcome: Any) -> Any:
    why = outcome.result.reason if isinstance(outcome.result, Refused) else outcome.error
    if why:
        raise ValueError(f"{learner}: {why}")
    return outcome.result


class Ran(NamedTuple):
    """The result of `linmax.run` without compiled functions, whose addresses differ between processes."""

    state: tuple[dict[str, Any], dict[str, np.ndarray]]
    predictions: np.ndarray
    wrong: np.ndarray
    changed: np.ndarray


def run_one(learner: str, data: tuple[Experts, Any]) -> Ran | Refused:
    """One learner over instances."""
    try:
        trace = run(learner, *data)
    except (ValueError, TypeError, OverflowError) as error:
        return Refused(str(error))
    return Ran(trace.model.state(), trace.predictions, trace.wrong, trace.changed)


def _traced(learner: Any, instances: Experts, labels: Any, ran: Ran) -> Trace:
    model = ExpertsModel.from_state(*ran.state)
    model.learner = learner
    return Trace(model, ran.predictions, ran.wrong, ran.changed, seen=(instances, labels))


def read_one(learner: str, scale: str, source: Any, reading: dict[str, Any]) -> tuple[State, np.ndarray] | Refused:
    """One learner over what it reads itself."""
    try:
        model, wrong = StreamModel(learner, scale=scale), []
        for batch in stream(source, model=model, prefetch=False, **reading):
            predicted = model.play(model.scaled(batch), batch.codes, weights_of(batch))
            wrong.append((predicted != batch.codes)[batch.codes >= 0])
    except (ValueError, TypeError, OverflowError, FileNotFoundError) as error:
        return Refused(str(error))
    return model.state(), np.concatenate([np.zeros(0, bool), *wrong])


def _apart(workers: Workers, learner: Any, instances: Experts, labels: Any) -> Trace:
    """`linmax.run` with the members on other workers."""
    classes = classes_of(instances, distinct_labels(label_array(labels), len(instances))[0])
    settings, model = Settings(), ExpertsModel(learner, instances.layout, classes)
    model.engine = EngineApart(workers, learner, model.layout, len(classes), settings)
    trace = model.run(instances, labels)
    model.engine = Engine.restored(learner, model.layout, len(classes), settings, model.engine.arrays)
    return trace
