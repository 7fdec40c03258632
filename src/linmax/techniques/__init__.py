"""Techniques: learners made from learners. Each file holds a description and the kernels that do its work.

The functions that users call are in `linmax.engine.composition`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["bracketed", "prefixed"]

PREFIX = re.compile(r"([ARV](\([^()]*\))?)+-")


def bracketed(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """The options that are not the defaults, as in the notation: "(s=200)", or nothing."""
    shown = [f"{key}={value}" for key, value in options.items() if value != defaults[key]]
    return f"({', '.join(shown)})" if shown else ""


def prefixed(letter: str, options: Mapping[str, Any], defaults: Mapping[str, Any], base: Any) -> str:
    """The notation of a technique over a base: "A" over "R-perceptron" is "AR-perceptron"."""
    text = str(base)
    joint = "" if PREFIX.match(text) else "-"
    return f"{letter}{bracketed(options, defaults)}{joint}{text}"
