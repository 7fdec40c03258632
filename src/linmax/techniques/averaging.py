"""Averaging, A-B: predict with the average of all hypotheses so far, while B goes on as before.

Freund and Schapire (1998); Mesterharm and Hsu, section V. The arithmetic is in `linmax.core.averages`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linmax.core.contract import L1, MAX, RAW
from linmax.techniques import prefixed
from linmax.util.checks import boolean, one_of

__all__ = ["SCALES", "Averaged"]

SCALES = {"raw": RAW, "max": MAX, "l1": L1}


@dataclass(frozen=True)
class Averaged:
    """Description of A-B; made by `linmax.average`."""

    base: Any
    scale: str
    fade: bool = False

    def __post_init__(self) -> None:
        one_of("scale", self.scale, SCALES)
        boolean("fade", self.fade)

    def __str__(self) -> str:
        options, defaults = {"scale": self.scale, "fade": self.fade}, {"scale": "raw", "fade": False}
        return prefixed("A", options, defaults, self.base)
