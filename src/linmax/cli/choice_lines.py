"""Trials with candidates, as `linmax learn` and `linmax predict` go through them: bad ones are left out and told."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linmax.io.choices import ChoiceLine
    from linmax.io.refusals import Refusals

__all__ = ["each_choice"]


def each_choice(arguments: argparse.Namespace, data: Sequence[str], play: Callable[[ChoiceLine], None]) -> Refusals:
    """Play the trials of these files in turn; with --strict, the first that cannot be played ends it."""
    from linmax.io.choices import read_choices
    from linmax.io.refusals import Refusals
    from linmax.io.sources import Source

    refusals = Refusals()
    for path in data:
        source = Source.of(path)

        def refuse(line: int, reason: str, name: str = source.name) -> None:
            if arguments.strict:
                raise ValueError(f"{name}, line {line}: {reason}")
            refusals.add(name, line, "no trial with candidates", reason)

        try:
            for trial in read_choices(source.lines(), arguments.label or "label", refuse):
                try:
                    play(trial)
                except (TypeError, ValueError) as error:
                    refuse(trial.line, str(error))
        finally:
            source.close()
    return refusals
