"""``linmax fuse --ask`` and ``--costs``: what asking voters one by one would cost and lose, on a table of all votes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from linmax.cli.fuse_trials import FuseTable
from linmax.cli.fusion_table import counted, objects

if TYPE_CHECKING:
    import numpy as np

    from linmax.models.asking import Simulation
    from linmax.models.fusion import OnLineFusion

__all__ = ["LEARNER", "asked", "check_asking", "costs"]

LEARNER = "auto"
TOLERANCE = 0.002  # of asking one by one


def asked(
    arguments: argparse.Namespace, fusion: OnLineFusion, trials: FuseTable, rows: np.ndarray
) -> Simulation | None:
    """What asking one by one would have cost and lost, if it is wanted."""
    if arguments.ask is None:
        return None
    from linmax.models.asking import simulate_asking
    from linmax.models.fusion import OnLineFusion

    options = {"classes": fusion.classes, "by": fusion.by}
    return simulate_asking(
        lambda: OnLineFusion(arguments.learner or LEARNER, **options),
        {name: objects(column)[rows] for name, column in (trials.voters | trials.sides).items()},
        objects(trials.labels)[rows],
        list(trials.voters),
        first=arguments.ask,
        tolerance=TOLERANCE if arguments.tolerance is None else arguments.tolerance,
        costs=costs(arguments.costs),
    )


def check_asking(arguments: argparse.Namespace, trials: FuseTable) -> None:
    """Refuse now what the simulation of asking could not do later."""
    if arguments.costs is not None:
        _check_costs(arguments, trials)
    if arguments.ask is None:
        if arguments.tolerance is not None:
            raise ValueError("--tolerance goes with --ask; add --ask ROWS, or leave it out")
        return
    from linmax.models.asking import read_share

    if trials.scores is not None:
        raise ValueError("--ask is about votes, and these are scores; leave it out")
    rows = sum(label is not None for label in trials.labels)
    if not 1 < arguments.ask < rows:
        raise ValueError(
            f"--ask must be 2 or more and leave rows to ask about one by one, got {arguments.ask} of "
            f"{counted(rows, 'row')} with a label"
        )
    read_share("--tolerance", TOLERANCE if arguments.tolerance is None else arguments.tolerance)


def _check_costs(arguments: argparse.Namespace, trials: FuseTable) -> None:
    """Refuse costs that nothing asks for, of raters, or that miss a voter."""
    from linmax.models.asking import read_costs

    if arguments.ask is None and arguments.html is None:
        raise ValueError("--costs goes with --ask and --html; add --ask ROWS or --html FILE, or leave it out")
    if trials.scores is not None:
        raise ValueError("--costs are of asking voters, and these are scores; leave it out")
    try:
        read_costs(costs(arguments.costs), list(trials.voters))
    except (TypeError, ValueError) as error:
        raise ValueError(f"--costs {arguments.costs}: {error}") from None


def costs(path: str | None) -> dict[str, float] | None:
    if path is None:
        return None
    import json
    from pathlib import Path

    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"an object {{voter: number}} is needed, got {found!r}")
    return found
