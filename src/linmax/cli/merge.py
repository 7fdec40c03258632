"""Merge models that learned from different examples into one.

All must be of the same learner and settings; their attributes, voters and
classes may differ and are joined by name. Averages stay averages, Winnows are
mixed by the logarithms of their weights, second-order rules by precision, the
pool for votes by what its logits learned. Recent rows, which have no common
order, are dropped. A learner that has no sound mixture is refused.

  linmax merge monday.linmax tuesday.linmax --out both.linmax
"""

from __future__ import annotations

import argparse
from typing import Any

from linmax.cli.options import JSON_OPTION
from linmax.cli.output import console, counted, say

__all__ = ["OPTIONS", "run"]

MERGEABLE = ("learner", "stream model", "vote fusion")


OPTIONS = f"""
MODEL...  files saved by linmax learn or linmax fuse, or by save()
--out FILE!  where to save the merged model
--mix HOW=uniform  shares of models: uniform, trials, mistakes, or numbers such as 1,2,1
--multiplicative log|plain=log  how Winnows are mixed
{JSON_OPTION}
"""


def run(arguments: argparse.Namespace) -> None:
    """Read the models, merge them, save the result and print what it is."""
    from linmax.models.load import load
    from linmax.models.merge import merge, refuse_different
    from linmax.util import files, outputs

    outputs.check_outputs([arguments.out, arguments.json], [])
    shares = _shares(arguments.mix, len(arguments.model))
    kinds = sorted({files.kind_of(path) for path in arguments.model})
    if len(kinds) > 1:
        raise ValueError(f"models must be of one kind; these files hold: {', '.join(kinds)}")
    if kinds[0] not in MERGEABLE:
        known = " or ".join(f"a {kind!r}" for kind in MERGEABLE)
        raise ValueError(f"{arguments.model[0]} holds a {kinds[0]!r}, which cannot be merged; {known} can")
    models: list[Any] = [load(path) for path in arguments.model]
    refuse_different(models, arguments.model)
    merged = merge(models, shares, arguments.multiplicative)
    merged.save(arguments.out)
    model, kind = (merged._current_model, "voter") if kinds == ["vote fusion"] else (merged, "attribute")
    columns = len(merged.voters_ if kind == "voter" else merged.attributes)
    figures = {
        "learner": str(model.learner),
        "models": len(models),
        "trials": model.trials,
        "updates": model.updates,
        "classes": len(model.classes),
        "voters" if kind == "voter" else "features": columns,
    }
    say(
        console(arguments),
        f"{figures['learner']} from {counted(len(models), 'model')}: {counted(model.trials, 'trial')}, "
        f"{counted(len(model.classes), 'class', 'classes')}, {counted(columns, kind)}; saved in {arguments.out}",
    )
    if arguments.json:
        outputs.write_json(figures, arguments.json)


def _shares(text: str, models: int) -> str | list[float]:
    """Return ``--mix`` as `linmax.merge` takes it."""
    from linmax.models.merge import HOW

    if text in HOW:
        return text
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        shares = []
    if len(shares) != models:
        raise ValueError(f"--mix must be {', '.join(HOW)}, or a number for each of {models} models, got {text!r}")
    return shares
