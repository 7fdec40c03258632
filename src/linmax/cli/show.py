"""Show what a model file holds: the learner, counts, classes, and the largest weights.

This works for every file that linmax saves: models of `linmax learn` and
their checkpoints, learners, fusions. A damaged file, or one of another
program, is refused.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from linmax.cli.insides import in_words, members_of, print_members
from linmax.cli.output import add_json_option, console

if TYPE_CHECKING:
    import numpy as np


__all__ = ["configure", "run"]

SHORT = 200  # characters of a value


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``linmax show``."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a file that linmax saved")
    add("--top", metavar="N", type=int, default=10, help="attributes to show for each class (default: 10)")
    add("--classes", metavar="A,B", default="", help="show these classes only")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> None:
    """Read the file, print what it holds and write the figures."""
    from linmax.util import checks, files, outputs

    checks.whole("top", arguments.top, 0)
    if arguments.json not in (None, "-"):
        outputs.check_output(arguments.json)
    kind = files.kind_of(arguments.model)
    if kind == "vote fusion":
        from linmax.cli.show_fusion import show_fusion

        told = show_fusion(arguments)
        if arguments.json:
            outputs.write_json(told, arguments.json)
        return
    description, arrays = files.read(arguments.model, kind)
    figures = {"kind": kind} | DESCRIBERS.get(kind, _anything)(description, arrays, arguments)
    _print(figures, arguments)
    if isinstance(members := figures.get("members"), list):
        figures["members"] = {member.name: member.value for member in members}
    if arguments.json:
        outputs.write_json(figures, arguments.json)


def _stream_model(description: dict[str, Any], arrays: dict[str, np.ndarray], arguments: Any) -> dict[str, Any]:
    from linmax.models.streams import StreamModel

    model = StreamModel.from_state(description, arrays)
    found = {
        "learner": str(model.learner),
        "scale": model.scaling.in_effect,
        "trials": model.trials,
        "updates": model.updates,
        "features": model.features,
        "classes": model.classes,
    }
    if model.model is not None:
        found |= {"decided": model.decided or None, "members": members_of(model.model)}
    try:
        weights = model.weights
    except ValueError as error:  # a combination
        return found | {"weights": str(error)}
    return found | {
        "thresholds": weights["thresholds"] or None,
        "weights": _by_class(weights.arrays.attributes, model.attributes, model.classes, arguments),
    }


def _by_class(weights: np.ndarray, names: list[str], classes: list[str], arguments: Any) -> dict[str, dict[str, float]]:
    """The largest weights of each requested class."""
    return {
        name: _largest(weights[:, c], names, arguments.top)
        for c, name in enumerate(classes)
        if _wanted(name, arguments)
    }


def _checkpoint(description: dict[str, Any], arrays: dict[str, np.ndarray], arguments: Any) -> dict[str, Any]:
    model = _stream_model(description["model"], arrays, arguments)
    return {
        "passes": description["passes"],
        "position": description["position"],
        "settings": description["settings"],
    } | model


def _learner(description: dict[str, Any], arrays: dict[str, np.ndarray], arguments: Any) -> dict[str, Any]:
    from linmax.models.online import Learner

    learner = Learner.from_state(description, arrays)
    found = {
        "learner": str(learner.learner),
        "trials": learner.trials,
        "mistakes": learner.mistakes,
        "updates": learner.updates,
        "pending": learner.pending,
        "classes": [str(name) for name in learner.classes],
    }
    if learner.model is not None:
        pool = learner.model.pool
        found |= {"decided": (pool and pool.decided()) or None, "members": members_of(learner.model)}
    try:
        weights = learner.weights
    except ValueError as error:  # a combination
        return found | {"weights": str(error)}
    by_class: dict[str, dict[str, float]] = {}
    for place, name in enumerate(learner.classes):
        if _wanted(str(name), arguments):
            column = [list(row.values())[place] for row in weights["attributes"].values()]
            by_class[str(name)] = _largest(column, list(map(str, weights["attributes"])), arguments.top)
    return found | {
        "voters": {str(name): weight for name, weight in weights["voters"].items()},
        "raters": {str(name): weight for name, weight in weights["raters"].items()},
        "thresholds": {str(name): weight for name, weight in weights["thresholds"].items()},
        "weights": by_class,
    }


def _anything(description: dict[str, Any], arrays: dict[str, np.ndarray], _: Any) -> dict[str, Any]:
    """Any other kind of file: its plain data, and the shapes of its arrays."""
    return dict(description) | {"arrays": {name: list(array.shape) for name, array in sorted(arrays.items())}}


DESCRIBERS = {"stream model": _stream_model, "stream checkpoint": _checkpoint, "learner": _learner}


def _wanted(name: str, arguments: Any) -> bool:
    chosen = [part.strip() for part in arguments.classes.split(",") if part.strip()]
    return not chosen or name in chosen


def _largest(column: Any, names: list[str], count: int) -> dict[str, float]:
    """The attributes with the weights of largest magnitude."""
    import numpy as np

    column = np.asarray(column, float)
    order = np.argsort(-np.abs(column), kind="stable")[:count]
    return {names[i]: float(column[i]) for i in order.tolist() if column[i] != 0.0}


def _print(figures: dict[str, Any], arguments: argparse.Namespace) -> None:
    from rich.markup import escape
    from rich.table import Table

    screen = console(arguments)
    weights = figures.get("weights")
    for name, value in figures.items():
        if value is None or value in ({}, []) or (name == "weights" and isinstance(value, dict)):
            continue
        if name == "members":
            print_members(screen, value)
            continue
        text = in_words(value) if name == "decided" else _short(value)
        screen.print(escape(f"{name}: {text[:SHORT]}{' ...' if len(text) > SHORT else ''}"), soft_wrap=True)
    if isinstance(weights, dict) and any(weights.values()):
        table = Table("class", "attributes with the largest weights", box=None, title_justify="left")
        for name, row in weights.items():
            if isinstance(row, dict):
                table.add_row(escape(name), escape("  ".join(f"{word} {weight:+.3g}" for word, weight in row.items())))
        screen.print(table)


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(
            f"{name} {number:+.3g}" if isinstance(number, float) else f"{name} {number}"
            for name, number in value.items()
        )
    return f"{value:,}" if isinstance(value, int) else str(value)
