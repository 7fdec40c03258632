"""Theory: bounds of rules and learners on data, regret, certificates, adversaries, hypotheses with a guarantee.

`rows` and `bounding` are below the rules, which state their bounds with them; `mistake_bounds` and `regret` serve
traces of models; certificates, conversions and adversaries run models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linmax.util.lazy import names_of

if TYPE_CHECKING:
    from linmax.theory import adversaries, bounds, conversion
    from linmax.theory.certificates import certify
    from linmax.theory.regressors import EG, EGPM
    from linmax.theory.threshold import LinearThreshold

__all__ = ["EG", "EGPM", "LinearThreshold", "adversaries", "bounds", "certify", "conversion"]

_HOMES = {
    "EG": "theory.regressors",
    "EGPM": "theory.regressors",
    "LinearThreshold": "theory.threshold",
    "certify": "theory.certificates",
}

__getattr__, __dir__ = names_of(__name__, _HOMES, __all__)
