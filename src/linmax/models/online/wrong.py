"""`Learner.learn` where all that is known is that the label is not this one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from linmax.models.calibration import softmax
from linmax.models.online.candidates import choices, judge_candidates, judged, place_of
from linmax.models.online.reading import Candidates
from linmax.models.wrong import denied, draw_other, other_label

if TYPE_CHECKING:
    from linmax.models.online.learner import Learner

__all__ = ["learn_wrong"]


def learn_wrong(learner: Learner, wrong: Hashable, blocks: dict[str, Any], id: Hashable, candidates: Candidates) -> Any:
    """Learn that the label is not ``wrong``; where that says nothing, nothing is learned."""
    waiting = learner._waiting
    if id is not None:
        kept = waiting.kept(id, *blocks.values(), candidates)
        names = waiting[id].candidates
        rated = judged(learner, kept, len(names)) if names is not None else None
    else:
        names = None if candidates is None else choices(learner, candidates)
        rated = None if names is None else judge_candidates(learner, names, tuple(blocks.values()))[1]
    if names is not None and rated is not None:
        place_of(wrong, names, "wrong")
        drawn = draw_other(dict(zip(names, softmax(rated[None])[0].tolist(), strict=True)), wrong, learner.trials)
    else:
        wrong = learner._reading.label_meant(wrong)
        learner._reading.check_label(wrong, "wrong")
        model, _, instance = learner._judging(learner._reading.read(*blocks.values()) if id is None else kept)
        drawn = other_label(model, instance, wrong, learner.trials)
    given = blocks if candidates is None else blocks | {"candidates": candidates}
    if drawn is None and id is not None:
        answer = waiting[id].answer
        waiting.label(id)  # the label has come, although it says nothing
        return answer
    if drawn is None:
        return learner.predict(**given)
    with denied(learner.model, drawn.wrong):
        if id is not None:
            return learner.learn(id=id, label=drawn.label)
        if candidates is not None:
            return learner.learn(label=drawn.label, **given)
        return learner._learn_alone(blocks, drawn.label)
