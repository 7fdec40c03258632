"""Merge models that learned from different examples into one.

All must be of the same learner and settings; their attributes, voters and
classes may differ and are joined by name. Averages stay averages, Winnows are
mixed by the logarithms of their weights, second-order rules by precision, the
pool for votes by what its logits learned. Recent rows, which have no common
order, are dropped. A learner that has no sound mixture is refused.

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
    add("models", metavar="MODEL", nargs="+", help="files saved by linmax learn or linmax fuse, or by save()")
    add("-o", "--output", metavar="OUT", required=True, help="where to save the merged model")
    add("--how", metavar="H", default="uniform", help="shares: uniform, trials, mistakes, or numbers such as 1,2,1")
    add("--multiplicative", metavar="M", default="log", help="how Winnows are mixed: log (default) or plain")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> None:
    """Read the models, merge them, save the result and say what it is."""
    from linmax.models.fusion import OnLineFusion
    from linmax.models.merge import merge, refuse_different
    from linmax.util import files, outputs

    outputs.check_output(arguments.output)
    if arguments.json not in (None, "-"):
        outputs.check_output(arguments.json)
    kinds = [files.kind_of(path) for path in arguments.models]
    if len(set(kinds)) > 1:
        raise ValueError(f"models must be of one kind; these files hold: {', '.join(sorted(set(kinds)))}")
    models = [_loaded(path, kinds[0]) for path in arguments.models]
    if not isinstance(models[0], OnLineFusion):
        refuse_different(models, arguments.models)
    merged = merge(models, _shares(arguments.how), arguments.multiplicative)
    merged.save(arguments.output)
    fused = isinstance(merged, OnLineFusion)
    model: Any = merged.model if fused else merged
    figures = {
        "learner": str(model.learner),
        "models": len(arguments.models),
        "trials": model.trials,
        "updates": model.updates,
        "classes": len(model.classes),
    }
    figures |= {"voters": len(merged.voters_)} if fused else {"features": len(model.attributes)}
    columns = f"{figures['voters']:,} voters" if fused else f"{figures['features']:,} attributes"
    console(arguments).print(
        f"{figures['learner']} from {len(models)} model{'s' * (len(models) != 1)}: {figures['trials']:,} trials, "
        f"{figures['classes']:,} classes, {columns}; saved in {arguments.output}",
        soft_wrap=True,
    )
    if arguments.json:
        outputs.write_json(figures, arguments.json)


def _loaded(path: str, kind: str) -> Any:
    from linmax.models.fusion import FUSION_KIND, OnLineFusion
    from linmax.models.online import KIND, Learner
    from linmax.models.streams.model import STREAM_KIND, StreamModel

    readers = {KIND: Learner.load, STREAM_KIND: StreamModel.load, FUSION_KIND: OnLineFusion.load}
    if kind not in readers:
        told = " or ".join(f"a {known!r}" for known in readers)
        raise ValueError(f"{path} holds a {kind!r}, which cannot be merged; {told} can")
    return readers[kind](path)


def _shares(text: str) -> str | list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return text
