"""A server in a process of its own, a plain HTTP client, and a reader of the log that shares no code with the service."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import msgspec

HERE = Path(__file__).parent
PATIENCE = 300.0  # of a test that would fail; a machine may be slow and busy, and has to compile


def free_port():
    """A port that nobody listens on, and that no client is given by chance while the server that had it is down."""
    given = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first = int(given.read_text().split()[0]) if given.exists() else 32_768
    while True:
        port = random.randrange(first - 12_000, first)
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port


class Server:
    """``linmax serve`` on a data folder; killed when the block ends."""

    def __init__(self, data, *options, nursery=None, script=None, prefix=()):
        self.data = Path(data)
        self.options, self.nursery = options, nursery
        self.command = [*prefix, sys.executable, *([str(script)] if script else ["-m", "linmax.cli", "serve"])]
        self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()

    def start(self, wait=True):
        told = self.data.parent / f"{self.data.name}.json"
        told.unlink(missing_ok=True)
        errors = self.data.parent / f"{self.data.name}.err"
        arguments = ["--data", str(self.data), "--port", "0", "--json", str(told), *self.options]
        if self.nursery is not None:
            self.process = self.nursery.start(["serve", *arguments], errors)
        else:
            paths = os.pathsep.join([str(HERE), *sys.path])
            with errors.open("ab") as file:
                environment = {**os.environ, "PYTHONPATH": paths}
                self.process = subprocess.Popen([*self.command, *arguments], env=environment, stderr=file)
        self.until(lambda: told.exists() and told.read_text().endswith("\n"))
        self.address = json.loads(told.read_text())["address"]
        self.host, self.port = self.address.removeprefix("http://").rsplit(":", 1)
        if wait:
            self.until(self.is_ready)
        return self

    def until(self, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None, f"the server ended: {self.said()[-2000:]}"
            assert time.monotonic() < end, f"the server is too slow: {self.said()[-2000:]}"
            time.sleep(0.01)

    def is_ready(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.call("GET", "/ready")[0] == 200
        return False

    def said(self):
        return (self.data.parent / f"{self.data.name}.err").read_text()

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        return self.process.poll()

    def connect(self):
        return http.client.HTTPConnection(self.host, int(self.port), timeout=PATIENCE)

    def call(self, method, path, body=None, **headers):
        connection = self.connect()
        try:
            return exchange(connection, method, path, body, **headers)
        finally:
            connection.close()


def exchange(connection, method, path, body=None, **headers):
    """Status and decoded body of one request."""
    content = body if body is None or isinstance(body, str) else json.dumps(body)
    sent = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, content, sent)
    answer = connection.getresponse()
    text = answer.read()
    is_json = answer.headers["Content-Type"] in ("application/json", "application/problem+json") and text
    return answer.status, json.loads(text) if is_json else text


class Editor:
    """Changes the rows of a log behind the back of everybody, with the checksums of its pages as they should be."""

    def __init__(self, path):
        from linmax.service.pages import CheckedVFS, connect

        self.vfs = CheckedVFS()
        self.database = connect(path, self.vfs)
        self.execute, self.close = self.database.execute, self.database.close

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def read_log(data):
    """Every event of every live model as plain Python, read from a copy without the code of the service.

    Returns {model name: [(seq, kind, id, instance, served, label)]}; kinds are predict, learn, label, forget and wants.
    A label that is only known to be wrong is ("wrong", class).
    """
    database = sqlite3.connect(f"file:{Path(data) / 'log.sqlite'}?mode=ro", uri=True)
    found = {}
    for number, name in database.execute("SELECT model, name FROM models WHERE deleted IS NULL").fetchall():
        events, trials = [], {}
        rows = database.execute(
            "SELECT seq, kind, id, refers, body FROM events WHERE model = ? ORDER BY seq", (number,)
        )
        for seq, kind, id, refers, body in rows:
            instance, label, wrong, served, *_ = msgspec.msgpack.decode(body)
            if refers is None:
                trials[seq] = id, instance, served
            id, instance, served = trials[seq if refers is None else refers]
            told = ("wrong", label) if wrong else label
            events.append((seq, ("predict", "learn", "label", "forget", "wants")[kind - 1], id, instance, served, told))
        found[name] = events
    database.close()
    return found


def replayed(events, **options):
    """A learner taught what the log holds, one by one, and the mistakes of what was served."""
    from linmax import Learner

    learner, mistakes = Learner(**options), 0
    for _, kind, _, instance, served, label in events:
        if kind in ("learn", "label"):
            predicted = learner.learn(**(instance or {"attributes": {}}), label=label)
            mistakes += (served if kind == "label" else predicted) != label
    return learner, mistakes
