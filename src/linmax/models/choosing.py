"""`linmax.run` on trials with candidates: the same as a `Learner` taught one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linmax.data.choices import Choices
from linmax.models.online import Learner
from linmax.models.trace import Trace

__all__ = ["run_choices"]


def run_choices(learner: Any, instances: Choices, labels: Sequence[Any] | np.ndarray, **options: Any) -> Trace:
    """Play the trials; the model of the trace is a `Learner`."""
    if len(labels) != len(instances):
        raise ValueError(f"labels must be one per trial: got {len(labels)} for {len(instances)} trials")
    model = Learner(learner, **options)
    size = len(instances)
    predictions = np.full(size, None, object)
    wrong, changed = np.zeros(size, bool), np.zeros(size, bool)
    for t, given in enumerate(labels):
        label, before = given.item() if isinstance(given, np.generic) else given, model.updates
        try:
            predictions[t] = model.learn(**instances.trial(t), label=label)
        except (TypeError, ValueError) as error:
            raise type(error)(f"trial {t}: {error}") from None
        wrong[t], changed[t] = predictions[t] != label, model.updates > before
    return Trace(model, predictions, wrong, changed)
