"""Trace: the record of a run, trial by trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from linmax.techniques.exploring import Explored
from linmax.theory.mistake_bounds import bound_so_far
from linmax.theory.regret import Regret, least, losses_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from linmax.data.instances import Instances
    from linmax.models.model import Model

__all__ = ["Trace", "joined"]


@dataclass(frozen=True, eq=False)
class Trace:
    """Record of a run, trial by trial.

    Attributes
    ----------
    model
        The `linmax.models.model.Model` afterwards: it continues learning, predicts, and shows its weights.
    predictions
        The class predicted at each trial, before its label was seen (None before any class was known).
    wrong, changed
        Whether each trial was a mistake; whether it changed the weights. The second counts ties as well, and is what
        mistake bounds bound.
    margins
        zeta(label) - zeta(rival) at each trial, when asked for.
    passes, consistent
        Passes played, and whether the last one made no update.
    seen
        Instances and labels, when these were the learner's first trials and played once: what `bound` needs.
    learned
        Number of the class learned at each trial: of its label, or drawn in place of a wrong class; or -1.

    See Also
    --------
    linmax.run : makes a trace.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(trials=500, seed=0)
    >>> trace = linmax.run("perceptron", linmax.instances(votes=data.votes), data.labels)
    >>> len(trace), int(trace.mistakes[-1]) == int(trace.wrong.sum())
    (500, True)
    """

    model: Model
    predictions: np.ndarray
    wrong: np.ndarray
    changed: np.ndarray
    margins: np.ndarray | None = None
    passes: int = 1
    consistent: bool = False
    seen: tuple[Instances, np.ndarray] | None = None
    learned: np.ndarray | None = None

    @property
    def mistakes(self) -> np.ndarray:
        """Mistakes up to and including each trial."""
        return np.cumsum(self.wrong)

    @property
    def updates(self) -> np.ndarray:
        """Updates up to and including each trial."""
        return np.cumsum(self.changed)

    def __len__(self) -> int:
        return len(self.predictions)

    def __repr__(self) -> str:
        share = f" ({self.wrong.mean():.1%})" if len(self) else ""
        counts = f"{len(self)} trials, {self.wrong.sum()} mistakes{share}, {self.changed.sum()} updates"
        return f"<{self.model.learner}: {counts}>"

    def bound(self, u: npt.ArrayLike, margin: float | None = None) -> np.ndarray:
        """The learner's mistake bound after each trial: any weights u that would do well bound its mistakes.

        Parameters
        ----------
        u
            The comparator, one number for each weight of the learner, such as ``data.target`` of `majority_problem`. It
            may have any length: it is divided by the norm in the bound.
        margin
            How far u should be ahead at every trial, after that division; what it falls short of counts as noise. By
            default the least lead that it has, for which u must be right on all trials.

        Returns
        -------
        array
            One number for each trial, infinite where the theory says nothing, as for too large an alpha of Winnow.

        See Also
        --------
        linmax.theory.certify : finds the u and the margin with the least bound.

        Examples
        --------
        >>> import linmax
        >>> data = linmax.datasets.majority_problem(trials=200, seed=1)
        >>> trace = linmax.run("winnow(1.017)", linmax.instances(votes=data.votes), data.labels)
        >>> bool((trace.bound(data.target) >= trace.mistakes).all())
        True
        """
        if self.seen is None:
            raise ValueError("bound() needs the learner's first trials, played once; this trace continues others")
        if isinstance(self.model.learner, Explored) and self.model.engine.settings.discover:
            raise ValueError("the bound of B- needs all classes known from the start; leave discover= out")
        return bound_so_far(self.model.learner, *self.seen, u, margin)

    def regret(self, switches: int = 0) -> Regret:
        """Return the log loss of a pool for votes, and that of the best of its members, or the best sequence of them.

        ``votes``, and ``auto`` on votes and scores, mix the probabilities of their members by fixed share. So the log
        loss, in hindsight, is at most that of any sequence of members that changes ``switches`` times, and
        `linmax.theory.bounds.fixed_share` more. The trials are played again to see what each member said.

        Returns
        -------
        Regret
            ``loss`` of the pool and ``best`` of the members, in nats over all trials; ``loss <= best + bound`` for
            any data, even chosen by an adversary.

        Examples
        --------
        >>> import linmax
        >>> data = linmax.datasets.majority_problem(trials=300, noise=0.1, seed=0)
        >>> found = linmax.run("votes", linmax.instances(votes=data.votes), data.labels).regret(switches=2)
        >>> found.loss <= found.best + found.bound
        True
        """
        if self.seen is None:
            raise ValueError("regret() needs the learner's first trials, played once; this trace continues others")
        instances, labels = self.seen
        settings = self.model.engine.settings
        classes = () if settings.discover else self.model.classes
        model = type(self.model)(self.model.learner, instances.layout, classes, settings)
        return least(losses_of(model, instances, labels), switches)

    def plot(self, path: str | Path | None = None, bound: npt.ArrayLike | None = None) -> Figure:
        """Draw the mistake curve, and a bound if given; return the figure, saved when given a path.

        ``bound`` is one number, or one for each trial, as from `bound`. Needs matplotlib (the extra ``plot``).
        """
        from linmax.util.plots import plot_mistakes

        curves = {str(self.model.learner): self.mistakes}
        if bound is not None:
            given = np.asarray(bound, float)
            if given.shape not in ((), (len(self),)):
                raise ValueError(
                    f"bound must be one number, or one for each of the {len(self)} trials, got shape {given.shape}"
                )
            curves["bound"] = np.broadcast_to(given, len(self))
        return plot_mistakes(curves, path)


def joined(traces: Sequence[Trace], seen: tuple[Instances, np.ndarray] | None = None) -> Trace:
    """One trace of several passes over the same trials; ``seen`` are these, and kept if they were played once."""
    consistent = not traces[-1].changed.any()
    if len(traces) == 1:
        return replace(traces[0], consistent=consistent, seen=seen)
    margins = [trace.margins for trace in traces if trace.margins is not None]
    learned = [trace.learned for trace in traces if trace.learned is not None]
    return Trace(
        traces[-1].model,
        np.concatenate([trace.predictions for trace in traces]),
        np.concatenate([trace.wrong for trace in traces]),
        np.concatenate([trace.changed for trace in traces]),
        np.concatenate(margins) if margins else None,
        len(traces),
        consistent,
        learned=np.concatenate(learned) if learned else None,
    )
