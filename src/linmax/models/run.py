"""`run`: predict each instance, see its label, let the learner update; what happened is a `Trace`."""

from __future__ import annotations

from collections.abc import Iterable

from linmax.data.instances import Instances
from linmax.data.names import distinct_labels, label_array, refuse_kinds
from linmax.engine.engine import settings_of
from linmax.engine.notation import as_learner
from linmax.models.model import Model, refuse_others
from linmax.models.trace import Trace, joined
from linmax.techniques.technique import LearnerLike
from linmax.util.aliases import Label, Labels
from linmax.util.checks import boolean, whole

__all__ = ["classes_of", "run"]


def run(
    learner: LearnerLike,
    instances: Instances,
    labels: Labels,
    *,
    passes: int = 1,
    margins: bool = False,
    discover: bool | str = False,
    tie: str = "smallest",
    update_on_tie: bool = True,
) -> Trace:
    """Play the trials: predict each instance, then see its label and update.

    Parameters
    ----------
    learner
        A rule such as ``rules.winnow(1.1)``, one of your own, or text such as "winnow(1.1)".
    instances
        From `instances`.
    labels
        The right class of each instance. None, nan or empty: there is no label yet. Such an instance is predicted, not
        counted, and teaches what can be learned without a label: the pool for votes compares the voters.
    passes
        More than 1 plays the instances cyclically until a pass makes no update, at most this often: the multi-class
        Perceptron of textbooks when the rule is ``perceptron()`` and ``update_on_tie=False``. The trace then holds
        the trials of every pass.
    margins
        Keep zeta(label) - zeta(rival) of every trial.
    discover
        Classes are known only from the first vote or label on that names them, and never predicted before; a trial
        whose label discovers a class updates with the new class rated 0. "votes" is the same as True; "labels": only
        labels discover classes, as in the paper (Mesterharm 2001, section 6.2).
    tie
        Which of the tied classes is predicted: the "smallest" (first) or the "largest" (last).
    update_on_tie
        Whether a right prediction that only ties is an update, as the bounds allow and the transformation asks. False
        leaves such a trial alone whatever the rule, those included that learn from small leads: a lead of 0 is none.

    Returns
    -------
    Trace
        Record of every trial; ``trace.model`` can continue learning.

    References
    ----------
    Mesterharm (2001), Rutgers dcs-tr-460, section 3: the linear-max transformation.

    Examples
    --------
    >>> import linmax
    >>> trace = linmax.run("perceptron", linmax.instances(attributes=[[0.0], [1.0], [0.0]]), ["low", "high", "low"])
    >>> trace.predictions.tolist(), trace.mistakes.tolist()
    (['high', 'low', 'high'], [1, 2, 3])
    """
    described = as_learner(learner)
    refuse_others(instances)
    whole("passes", passes, 1)
    margins = boolean("margins", margins)
    settings = settings_of(tie, update_on_tie, discover)
    names = label_array(labels)
    found = distinct_labels(names, len(instances), gaps=True)
    classes = classes_of(instances, found[0])
    model = Model(described, instances.layout, [] if settings.discover else classes, settings)
    played = [model.run_numbered(instances, found, margins=margins)]
    while len(played) < passes and played[-1].changed.any():
        played.append(model.run_numbered(instances, found, margins=margins, first_pass=False))
    return joined(played, (instances, names))


def classes_of(instances: Instances, labels: list[Label]) -> list[Label]:
    """Return all classes: those given, or else those of votes and labels, sorted when they can be."""
    if instances.fixed:
        return list(instances.names)
    refuse_kinds(instances.names, labels)
    voted: Iterable[Label] = instances.names
    if labels and all(type(name) is int for name in labels):  # NumPy and pandas write 1.0 for 1 where votes have gaps
        voted = (int(name) if isinstance(name, float) and name.is_integer() else name for name in voted)
    names = {*labels, *voted}
    if not names:
        raise ValueError("there are no trials and no classes; pass classes= to instances(...)")
    try:
        return sorted(names)  # type: ignore[type-var]
    except TypeError:
        return list(dict.fromkeys([*labels, *instances.names]))
