"""Commands on the data folder of ``linmax serve``: check, skip, delete, verify, export, backup, compact."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

__all__ = ["ACTIONS", "configure_actions", "run_action"]

ACTIONS = {
    "check": "recover every model as a start would, and list what an operator must know",
    "skip": "skip one event that cannot be replayed",
    "delete": "delete a model with its events",
    "verify": "replay everything and compare it with the stored state",
    "export": "write the events as JSON lines",
    "backup": "copy the folder, also while the service runs",
    "compact": "rewrite the log without the space of removed events",
}


def configure_actions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    for name, summary in ACTIONS.items():
        parser = actions.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        parser.add_argument("folder", metavar="DIR", type=Path, help="the data folder")
        if name == "backup":
            parser.add_argument("target", metavar="TARGET", type=Path, help="the new folder")
        if name in ("skip", "delete"):
            parser.add_argument("model", metavar="MODEL", help="the name of the model")
        if name == "skip":
            parser.add_argument("seq", metavar="SEQ", type=int, help="the number of the event, as check reports it")
        if name == "delete":
            parser.add_argument("--yes", action="store_true", required=True, help="required: this cannot be undone")
        if name == "check":
            parser.add_argument("--settle", action="store_true", help="acknowledge the incidents, which clears them")
        if name == "export":
            parser.add_argument("--model", help="export this model only")
            parser.add_argument(
                "--since", metavar="SEQ", type=int, default=0, help="export events after this one (default: 0)"
            )


def run_action(arguments: argparse.Namespace) -> None:
    """Do what the command says; exit status 1 if something is wrong with the folder."""
    from linmax.service import offline
    from linmax.service.backup import back_up

    folder, action = arguments.folder, arguments.action
    if action in ("check", "verify"):
        report = offline.check(folder, settle=arguments.settle) if action == "check" else offline.verify(folder)
        print("\n".join(report.lines))
        if not report.good:
            sys.exit(1)
    elif action == "skip":
        print(offline.skip(folder, arguments.model, arguments.seq))
    elif action == "delete":
        print(offline.delete(folder, arguments.model))
    elif action == "backup":
        print(back_up(folder, arguments.target))
    elif action == "compact":
        print(offline.compact(folder))
    else:
        _export(arguments)


def _export(arguments: argparse.Namespace) -> None:
    import msgspec

    from linmax.service import offline

    for event in offline.exported(arguments.folder, arguments.model, arguments.since):
        sys.stdout.buffer.write(msgspec.json.encode(event) + b"\n")
