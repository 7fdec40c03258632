"""Averaging, A-B: predict with the average of all hypotheses so far, while B continues as before.

Freund and Schapire (1998); Mesterharm and Hsu, section V. The arithmetic is in `linmax.core.averages`, since a member
keeps its average while it learns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from linmax.core.contract import L1, MAX, RAW
from linmax.techniques.node import Node, Run
from linmax.techniques.technique import LearnerLike, NodeMaker, PrefixTechnique, as_learner
from linmax.util.checks import boolean, one_of

__all__ = ["AVERAGE_SCALES", "Averaged", "average"]

AVERAGE_SCALES = {"raw": RAW, "max": MAX, "l1": L1}


@dataclass(frozen=True)
class Averaged(PrefixTechnique):
    """Description of A-B; made by `linmax.average`."""

    notation: ClassVar[str] = "A"
    scale: str = "raw"
    fade: bool = False

    def __post_init__(self) -> None:
        one_of("scale", self.scale, AVERAGE_SCALES)
        boolean("fade", self.fade)

    def node(self, make: NodeMaker) -> Node:
        return make.member(self)

    def configure(self, run: Run, learner: Any) -> None:
        if run.averaging:
            raise ValueError(f"{learner} averages twice; once is enough")
        run.averaging, run.fade = AVERAGE_SCALES[self.scale], self.fade


def average(learner: LearnerLike, scale: str = "raw", fade: bool = False) -> Averaged:
    """A-B: predict with the average of the hypotheses with which B met each trial; B itself learns as before.

    Before trial t the weights are (1/t) (w_1 + ... + w_t), w_s those of B at trial s. Kept lazily: a trial without
    update costs nothing extra, one with an update O(nonzeros).

    Parameters
    ----------
    learner
        A rule, or a recycled one.
    scale
        "raw": the weights as they are. "max", "l1": each divided by its largest magnitude, by the sum of its
        magnitudes, so that late hypotheses of a multiplicative rule do not drown early ones.
    fade
        Weigh w_s by s: (w_1 + 2 w_2 + ... + t w_t) / (t (t + 1) / 2), so that early hypotheses fade.

    References
    ----------
    Freund and Schapire (1998), Large margin classification using the perceptron algorithm. Mesterharm and Hsu,
    section V.

    Examples
    --------
    >>> import linmax
    >>> print(linmax.average("perceptron"))
    A-perceptron
    >>> print(linmax.average("winnow(1.1)", scale="max", fade=True))
    A(scale=max, fade=True)-winnow(1.1)
    """
    return Averaged(as_learner(learner), scale, fade)
