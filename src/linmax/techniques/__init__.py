"""Techniques: learners made from learners. A file holds all there is of one: description, kernels, node and function.

To add one, write its file and add its line to `REGISTRY`. The notation, the public names of `linmax` and the engine
then know it. The description derives from a class of `linmax.techniques.technique`, the node from
`linmax.techniques.node.Node`.
"""

from __future__ import annotations

from collections.abc import Callable

from linmax.techniques.averaging import Averaged, average
from linmax.techniques.combining import Combined, combine
from linmax.techniques.exploring import Explored, bandit
from linmax.techniques.recycling import Recycled, recycle
from linmax.techniques.rivals import rivals
from linmax.techniques.selecting import Selected, selective
from linmax.techniques.stacking import Stacked, stack
from linmax.techniques.technique import Technique, as_learner, as_learners, as_rule
from linmax.techniques.voting import Voted, vote

__all__ = [
    "REGISTRY",
    "as_learner",
    "as_learners",
    "as_rule",
    "average",
    "bandit",
    "combine",
    "recycle",
    "rivals",
    "selective",
    "stack",
    "vote",
]

# How each technique is written in text, and the public function that makes its description. A capital letter is
# written in front of a learner, as in A-perceptron; a name takes learners in brackets, as in combine(...).
REGISTRY: dict[str, Callable[..., Technique]] = {
    Averaged.notation: average,
    Recycled.notation: recycle,
    Voted.notation: vote,
    Combined.notation: combine,
    Stacked.notation: stack,
    Selected.notation: selective,
    Explored.notation: bandit,
}
