"""Serve models over HTTP: predictions and labels come in, nothing acknowledged is lost.

Every label, and every prediction that waits for one, is on stable storage
before it is answered. One process owns one data folder; stop it with Ctrl-C
or SIGTERM, or pull the plug. Without keys, it serves only this machine.

  linmax serve --data DIR
  linmax serve keys add --data DIR NAME --scopes predict,learn
  linmax serve warm
  linmax serve check DIR
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from functools import partial

from linmax.cli.options import JSON_OPTION, Actions

__all__ = ["ACTIONS", "OPTIONS", "run"]

NEEDS = ("starlette", "uvicorn", "httptools", "msgspec", "apsw", "prometheus_client")
SCOPES = ("predict", "learn", "admin")


FOLDER_ARGUMENT = "DIR:path  the data folder"
OPTIONS = f"""
most used:
--data DIR:path  folder of the log, the snapshots and the keys; created if missing
--host HOST=127.0.0.1  address to listen on
--port PORT:int=8471  port to listen on, 0 for any free one
storage:
--snapshot-events N:int=100000  snapshot after N events
--snapshot-seconds S:float=300  snapshot after S seconds
--keep-events N:int  events of each model to keep before its snapshots (default: all)
--keep-days D:float  days of events to keep before the snapshots (default: all)
--queue N:int=8192  maximum number of events waiting for the disk
--gather MS:float=2  milliseconds that a commit waits for further events to join it
limits:
--memory SIZE  memory for all models, such as 2GB (default: a quarter of the machine's memory)
--model-memory SIZE  memory for one model (default: half of --memory)
--max-models N:int=100  maximum number of models
--max-connections N:int=4096  maximum number of connections; more are refused with 503
--max-body BYTES:int=1048576  largest request body
--workers N:int=1  must be 1: one process owns a data folder
output:
--log-requests  log every request, not only failures
{JSON_OPTION}
"""
KEYS_FOLDER = "--data DIR:path!  folder of the service"
KEY_NAME = "NAME  what to call the key"
KEY_ACTIONS: Actions = {
    "add": (
        "make a key and show it once",
        f"""{KEYS_FOLDER}
{KEY_NAME}
--scopes A,B=predict  of predict, learn, admin
--rate R:float  at most R trials per second (default: no limit)""",
    ),
    "list": ("show the keys", KEYS_FOLDER),
    "revoke": ("end a key", f"{KEYS_FOLDER}\n{KEY_NAME}"),
}
MODEL_ARGUMENTS = f"{FOLDER_ARGUMENT}\nMODEL  the name of the model"
ACTIONS: Actions = {
    "keys": ("add, list or revoke keys", KEY_ACTIONS),
    "warm": (
        "compile beforehand what models need, so that neither a start nor a new model waits",
        """LEARNER*  such as auto or 'winnow(1.2)' (default: those of the folder's models; auto if there are none)
--data DIR:path  a data folder, or a backup of one
--kinds A,B=attributes,votes  of attributes, votes, scores, mixed""",
    ),
    "check": (
        "recover every model as a start would, and list what an operator must know",
        f"{FOLDER_ARGUMENT}\n--settle  acknowledge the incidents, which clears them",
    ),
    "skip": (
        "skip one event that cannot be replayed",
        f"{MODEL_ARGUMENTS}\nSEQ:int  the number of the event, as check reports it",
    ),
    "delete": (
        "delete a model with its events",
        f"{MODEL_ARGUMENTS}\n--yes!  required: this cannot be undone",
    ),
    "verify": ("replay everything and compare it with the stored state", FOLDER_ARGUMENT),
    "export": (
        "write the events as JSON lines",
        f"{FOLDER_ARGUMENT}\n--model MODEL  export this model only\n--since SEQ:int=0  export events after this one",
    ),
    "backup": ("copy the folder, also while the service runs", f"{FOLDER_ARGUMENT}\nTARGET:path  the new folder"),
    "compact": ("rewrite the log without the space of removed events", FOLDER_ARGUMENT),
}


def run(arguments: argparse.Namespace) -> None:
    """Serve, or manage keys."""
    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        from linmax.util.installation import install_command

        raise ValueError(f"linmax serve requires {', '.join(missing)}; run {install_command('serve')}")
    os.umask(0o077)  # what is made in a data folder or a backup is its owner's alone
    if arguments.action == "warm":
        _warm(arguments)
        return
    if arguments.action not in (None, "keys"):
        _run_action(arguments)
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
    from linmax.service.service_settings import ServiceSettings
    from linmax.util import checks

    settings = ServiceSettings(
        data=arguments.data,
        queue=checks.whole("--queue", arguments.queue, 1),
        gather=checks.at_least("--gather", arguments.gather, 0.0) / 1e3,
        max_body=checks.whole("--max-body", arguments.max_body, 100),
        max_models=checks.whole("--max-models", arguments.max_models, 1),
        max_connections=checks.whole("--max-connections", arguments.max_connections, 1),
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


def _warm(arguments: argparse.Namespace) -> None:
    import msgspec

    from linmax.cli.warm import in_parallel
    from linmax.engine.notation import parse
    from linmax.service.offline import descriptions
    from linmax.service.schemas import ModelOptions
    from linmax.service.served_model import warm_up

    for name in arguments.learner:
        parse(name)  # raises now for a name that is unknown
    given = [{"learner": name} for name in arguments.learner]
    wanted = [one | {"kind": kind.strip()} for one in given for kind in arguments.kinds.split(",")]
    wanted += descriptions(arguments.data) if arguments.data is not None else []
    if not wanted:
        wanted = [{"kind": kind.strip()} for kind in arguments.kinds.split(",")]
    try:
        options = [msgspec.convert(one, ModelOptions) for one in wanted]
    except msgspec.ValidationError as error:
        raise ValueError(f"--kinds must be of attributes, votes, scores, mixed: {error}") from None
    began = time.perf_counter()
    in_parallel([partial(warm_up, one) for one in options])
    print(f"compiled for {len(options)} kinds of models in {time.perf_counter() - began:.1f} s")


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
        raise ValueError(f"--rate must be a number > 0, got {arguments.rate:g}; try 100, or remove it for no limit")
    if not (arguments.name.isprintable() and 0 < len(arguments.name) <= 100):
        raise ValueError(f"NAME must be 1 to 100 printable characters, got {arguments.name!r}")
    private_folder(arguments.data)
    print(file.add(arguments.name, scopes, arguments.rate))
    print("this key is shown once; only its hash is kept", file=sys.stderr)


def _run_action(arguments: argparse.Namespace) -> None:
    """Do what the command says; exit status 1 if something is wrong with the folder."""
    from linmax.service import offline
    from linmax.service.backup import back_up

    folder, action = arguments.dir, arguments.action
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

    for event in offline.exported(arguments.dir, arguments.model, arguments.since):
        sys.stdout.buffer.write(msgspec.json.encode(event) + b"\n")
