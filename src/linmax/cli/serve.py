"""Serve models over HTTP: predictions and labels come in, nothing acknowledged is lost.

Every label, and every prediction that waits for one, is on stable storage
before it is answered. One process owns one data folder; stop it with Ctrl-C
or SIGTERM, or pull the plug. Without keys, it serves only this machine.

  linmax serve --data DIR
  linmax serve keys add --data DIR NAME --scopes predict,learn
  linmax serve check DIR
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

from linmax.cli.options import add_json_option
from linmax.cli.serve_folder import ACTIONS, configure_actions, run_action

__all__ = ["configure", "run"]

NEEDS = ("starlette", "uvicorn", "httptools", "msgspec", "apsw", "prometheus_client")
SCOPES = ("predict", "learn", "admin")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``linmax serve``."""
    add = parser.add_argument
    add("--data", metavar="DIR", type=Path, help="folder of the log, the snapshots and the keys; created if missing")
    add("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    add("--port", type=int, default=8471, help="port to listen on, 0 for any free one (default: 8471)")
    add("--snapshot-events", type=int, default=100_000, metavar="N", help="snapshot after N events (default: 100000)")
    add("--snapshot-seconds", type=float, default=300.0, metavar="S", help="snapshot after S seconds (default: 300)")
    add("--max-body", type=int, default=2**20, metavar="BYTES", help="largest request body (default: 1048576)")
    add("--max-models", type=int, default=100, metavar="N", help="maximum number of models (default: 100)")
    add(
        "--memory",
        metavar="SIZE",
        help="memory for all models, such as 2GB (default: a quarter of the machine's memory)",
    )
    add("--model-memory", metavar="SIZE", help="memory for one model (default: half of --memory)")
    add("--keep-events", type=int, metavar="N", help="events of each model to keep before its snapshots (default: all)")
    add("--keep-days", type=float, metavar="D", help="days of events to keep before the snapshots (default: all)")
    add(
        "--queue",
        type=int,
        default=8192,
        metavar="N",
        help="maximum number of events waiting for the disk (default: 8192)",
    )
    add(
        "--gather",
        type=float,
        default=2.0,
        metavar="MS",
        help="how long a commit waits for further events to join it (default: 2 ms)",
    )
    add("--log-requests", action="store_true", help="log every request, not only failures")
    add("--workers", type=int, default=1, help=argparse.SUPPRESS)
    add_json_option(add)
    actions = parser.add_subparsers(dest="action", metavar="COMMAND", title="other commands")
    _configure_keys(actions.add_parser("keys", help="add, list or revoke keys"))
    configure_actions(actions)


def _configure_keys(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="add|list|revoke")
    for verb, summary in (("add", "make a key and show it once"), ("list", "show them"), ("revoke", "end one")):
        command = verbs.add_parser(verb, help=summary, description=summary)
        command.add_argument("--data", metavar="DIR", type=Path, required=True, help="folder of the service")
        if verb != "list":
            command.add_argument("name", metavar="NAME", help="what to call the key")
        if verb == "add":
            command.add_argument("--scopes", default="predict", metavar="A,B", help="of predict, learn, admin")
            command.add_argument(
                "--rate", type=float, metavar="R", help="at most R trials per second (default: no limit)"
            )


def run(arguments: argparse.Namespace) -> None:
    """Serve, or manage keys."""
    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(f"linmax serve needs {', '.join(missing)}; install them with pip install 'linmax[serve]'")
    if arguments.action in ACTIONS:
        run_action(arguments)
        return
    if arguments.data is None:
        raise ValueError("--data DIR is missing: the folder of the log, the snapshots and the keys")
    if arguments.action == "keys":
        _keys(arguments)
        return
    if arguments.workers != 1:
        raise ValueError(
            f"--workers must be 1, got {arguments.workers}: a learner takes one label after the other, so that one "
            "process owns a data folder; serve other models from other folders"
        )
    _serve(arguments)


def _serve(arguments: argparse.Namespace) -> None:
    from linmax.service import logs
    from linmax.service.server import serve
    from linmax.service.settings import ServiceSettings
    from linmax.util import checks

    settings = ServiceSettings(
        data=arguments.data,
        queue=checks.whole("--queue", arguments.queue, 1),
        gather=checks.at_least("--gather", arguments.gather, 0.0) / 1e3,
        max_body=checks.whole("--max-body", arguments.max_body, 100),
        max_models=checks.whole("--max-models", arguments.max_models, 1),
        memory=_bytes("--memory", arguments.memory),
        model_memory=_bytes("--model-memory", arguments.model_memory),
        snapshot_events=checks.whole("--snapshot-events", arguments.snapshot_events, 1),
        snapshot_seconds=checks.positive("--snapshot-seconds", arguments.snapshot_seconds, 300),
        keep_events=None if arguments.keep_events is None else checks.whole("--keep-events", arguments.keep_events, 0),
        keep_seconds=None
        if arguments.keep_days is None
        else checks.at_least("--keep-days", arguments.keep_days, 0.0) * 86_400,
        log_requests=arguments.log_requests,
    )
    logs.set_up()
    serve(settings, host=arguments.host, port=arguments.port, notice=arguments.json)


def _bytes(option: str, size: str | None) -> int:
    """Return a size such as 500MB in bytes; 0 if it is not given."""
    from linmax.models.streams.budget import bytes_given

    try:
        return 0 if size is None else bytes_given(size)
    except ValueError:
        raise ValueError(f"{option} must be a size such as 500MB or 2GB, got {size!r}") from None


def _keys(arguments: argparse.Namespace) -> None:
    from linmax.service.folder import private_folder
    from linmax.service.keys import KeyFile

    file = KeyFile(arguments.data)
    if arguments.verb == "list":
        for key in file.read() or []:
            rate = "" if key.rate is None else f", {key.rate:g} trials per second"
            state = "" if key.revoked is None else ", revoked"
            print(f"{key.name}: {','.join(key.scopes)}{rate}{state}, sha256 {key.sha256[:12]}")
        return
    if arguments.verb == "revoke":
        file.revoke(arguments.name)
        print(f"revoked {arguments.name}")
        return
    scopes = [scope.strip() for scope in arguments.scopes.split(",")]
    for scope in scopes:
        if scope not in SCOPES:
            raise ValueError(f"--scopes must be of {', '.join(SCOPES)}, got {scope!r}")
    if arguments.rate is not None and not 0 < arguments.rate < float("inf"):
        raise ValueError(f"--rate must be a number > 0, got {arguments.rate:g}; try 100, or leave it out for no limit")
    if not (arguments.name.isprintable() and 0 < len(arguments.name) <= 100):
        raise ValueError(f"NAME must be 1 to 100 printable characters, got {arguments.name!r}")
    private_folder(arguments.data)
    print(file.add(arguments.name, scopes, arguments.rate))
    print("this key is shown once; only its hash is kept", file=sys.stderr)
