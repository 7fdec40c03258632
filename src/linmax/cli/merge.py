"""Merge models that learned from different examples into one.

All must be of the same learner and settings; their attributes, voters and
classes may differ and are joined by name. Averages stay averages, Winnows are
mixed by the logarithms of their weights, second-order rules by precision. A
learner that has no sound mixture is refused.

  linmax merge monday.linmax tuesday.linmax -o both.linmax
"""

from __future__ import annotations

import argparse
from typing import Any

from linmax.cli.output import add_json_option, console

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``linmax merge``."""
    add = parser.add_argument
    add("models", metavar="MODEL", nargs="+", help="files saved by linmax learn, or by Learner.save")
    add("-o", "--output", metavar="OUT", required=True, help="where to save the merged model")
    add("--how", metavar="H", default="uniform", help="shares: uniform, trials, mistakes, or numbers such as 1,2,1")
    add("--multiplicative", metavar="M", default="log", help="how Winnows are mixed: log (default) or plain")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> None:
    """Read the models, merge them, save the result and say what it is."""
    from linmax.cluster.merging import merge
    from linmax.util import files, outputs

    outputs.check_output(arguments.output)
    if arguments.json not in (None, "-"):
        outputs.check_output(arguments.json)
    kinds = [files.kind_of(path) for path in arguments.models]
    if len(set(kinds)) > 1:
        raise ValueError(f"models must be of one kind; these files hold: {', '.join(sorted(set(kinds)))}")
    models = [_loaded(path, kinds[0]) for path in arguments.models]
    merged = merge(models, _shares(arguments.how), arguments.multiplicative)
    merged.save(arguments.output)
    figures = {
        "learner": str(merged.learner),
        "models": len(arguments.models),
        "trials": merged.trials,
        "updates": merged.updates,
        "classes": len(merged.classes),
        "features": len(merged.attributes),
    }
    console(arguments).print(
        f"{figures['learner']} from {figures['models']} models: {figures['trials']:,} trials, {figures['classes']:,} "
        f"classes, {figures['features']:,} attributes; saved in {arguments.output}",
        soft_wrap=True,
    )
    if arguments.json:
        outputs.write_json(figures, arguments.json)


def _loaded(path: str, kind: str) -> Any:
    from linmax.models.online import KIND, Learner
    from linmax.models.streams.model import KIND as STREAMS
    from linmax.models.streams.model import StreamModel

    if kind not in (KIND, STREAMS):
        raise ValueError(f"{path} holds a {kind!r}, which cannot be merged; a {KIND!r} or a {STREAMS!r} can")
    return Learner.load(path) if kind == KIND else StreamModel.load(path)


def _shares(text: str) -> str | list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return text
