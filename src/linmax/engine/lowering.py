"""From a description to what the engine runs: members, each one rule, and a tree of nodes above them."""

from __future__ import annotations

from typing import Any, TypeAlias

from linmax.core.contract import Rule
from linmax.engine.learner_node import LearnerNode
from linmax.learners.base import Description
from linmax.techniques.node import Leaf, Node, Run
from linmax.techniques.technique import MemberTechnique, PrefixTechnique, Technique, turned_inside

__all__ = ["Lowering", "lower"]

Learner: TypeAlias = Rule | Technique | Description


def lower(learner: Learner) -> tuple[Node, list[Run]]:
    """The node of a description, and the members that it needs."""
    lowering = Lowering()
    return lowering(learner), lowering.runs


class Lowering:
    """Turns descriptions into nodes and collects their members, which are shared where they are the same."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        # Members by what is quick to compare of their rules.
        self._alike: dict[tuple[str, tuple[float, ...]], list[int]] = {}

    def __call__(self, learner: Learner) -> Node:
        """The node of a description."""
        if isinstance(learner, Technique):
            return learner.node(self)
        if isinstance(learner, Description):
            return LearnerNode(learner)
        return self.member(learner)

    def member(self, learner: Rule | MemberTechnique) -> Leaf:
        """The leaf of one rule and the techniques that change how it is run."""
        applied: list[MemberTechnique] = []
        described: Any = learner
        while isinstance(described, MemberTechnique):
            applied.append(described)
            described = described.base
        run = Run(described)
        for technique in applied:
            technique.configure(run, learner)
        if not isinstance(described, Rule):
            raise ValueError(f"average() and recycle() work on a rule; {_remedy(applied, described)}")
        if not described.lifts:
            raise ValueError(
                f"{described} has a fixed threshold and does not lift to many classes; use LinearThreshold, or a rule "
                "with threshold zero such as winnow(1.1)"
            )
        return Leaf(2 * self._place(run) + bool(run.averaging))

    def _place(self, wanted: Run) -> int:
        """The number of a member that does what is wanted, added if there is none."""
        average = (wanted.averaging, wanted.fade)
        alike = self._alike.setdefault((wanted.rule.name, wanted.rule.values[:1]), [])
        for place in alike:
            run = self.runs[place]
            same_average = not wanted.averaging or not run.averaging or (run.averaging, run.fade) == average
            if run.rule == wanted.rule and run.recycling == wanted.recycling and same_average:
                if wanted.averaging:
                    run.averaging, run.fade = average
                return place
        alike.append(len(self.runs))
        self.runs.append(wanted)
        return len(self.runs) - 1


def _remedy(applied: list[MemberTechnique], described: object) -> str:
    """Return the notation to write instead of a technique of one rule that was applied to something else."""
    if isinstance(described, PrefixTechnique) and isinstance(described.base, (Rule, MemberTechnique)):
        for technique in reversed(applied):
            described = turned_inside(technique, described)
        return f"write {described}"
    if isinstance(described, Technique):
        return f"apply them to the members of {described} instead"
    return f"{described} is not one; remove them"
