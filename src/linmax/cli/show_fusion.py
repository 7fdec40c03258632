"""What ``linmax show`` tells of a fusion: what it learned from, its members, its calibration and its voters."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from linmax.cli.insides import members_of, print_members
from linmax.cli.output import console

if TYPE_CHECKING:
    from linmax.models.fusion import OnLineFusion

__all__ = ["show_fusion"]

SHORT = 200  # characters of a line


def show_fusion(arguments: argparse.Namespace) -> dict[str, Any]:
    """Print what a fusion has learned; returns the figures."""
    from linmax.models.fusion import OnLineFusion

    fusion = OnLineFusion.load(arguments.model)
    report, screen = fusion.report(), console(arguments)
    if not screen.is_terminal:
        screen.width = 120
    figures = _figures(fusion)
    for name, value in figures.items():
        if name == "members":
            print_members(screen, value)
        elif value:
            screen.print(f"{name}: {_short(value)}", soft_wrap=True, markup=False)
    screen.print()
    screen.print(report)
    figures["members"] = {member.name: member.value for member in figures["members"]}
    return figures | report.to_dict()


def _figures(fusion: OnLineFusion) -> dict[str, Any]:
    model = fusion.model
    beta, guess = model.calibration
    judged = model.reliability is not None  # before that, chance would speak
    return {
        "kind": "vote fusion",
        "learner": str(model.learner),
        "trials": model.trials,
        "mistakes": model.mistakes,
        "classes": [str(name) for name in fusion.classes_.tolist()],
        "by": [] if fusion.by is None else [str(fusion.by)] if isinstance(fusion.by, (str, int)) else list(fusion.by),
        "normalisations": fusion.normalisations,
        "members": members_of(model),
        "calibration": {"sharpness": beta, "guess rate": guess} if judged else {},
    }


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name} {_short(number)}" for name, number in value.items())
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list):
        text = ", ".join(map(str, value))
        return text if len(text) <= SHORT else f"{text[:SHORT]} ..."
    return f"{value:,d}" if isinstance(value, int) else str(value)
