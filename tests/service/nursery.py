"""Starts servers quickly: a process that has imported everything forks one for each line that it reads.

A killed child is as dead as any process; only the imports are saved. With ``--small-steps`` backups and the removal of
events take many steps even in a small log, so that kills strike in the middle of them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


class Nursery:
    """The parent, seen from the tests."""

    def __init__(self, *, small_steps=False):
        paths = [str(Path(__file__).parent), *sys.path]
        self.process = subprocess.Popen(
            [sys.executable, __file__, *(["--small-steps"] if small_steps else [])],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, arguments, errors):
        """A new server with these arguments."""
        self.process.stdin.write(json.dumps([arguments, str(errors)]) + "\n")
        self.process.stdin.flush()
        return Child(int(self.process.stdout.readline()))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Child:
    """A forked server, with the part of Popen's face that the tests use."""

    def __init__(self, pid):
        self.pid = pid

    def poll(self):
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return -1
        return None

    def send_signal(self, number):
        os.kill(self.pid, number)

    def wait(self, seconds=300.0):
        end = time.monotonic() + seconds
        while self.poll() is None:
            assert time.monotonic() < end, "the server does not end"
            time.sleep(0.002)


def main():
    from linmax import cli
    from linmax.service import server
    from linmax.service.log import EventLog
    from linmax.service.schemas import ModelOptions
    from linmax.service.served_model import warm_up

    assert server is not None
    if "--small-steps" in sys.argv:
        EventLog.drop.__defaults__ = EventLog.purge.__defaults__ = (5,)
    warm_up(ModelOptions(learner="perceptron"))  # loads the compiled functions
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        arguments, errors = json.loads(line)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            handle = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(handle, 2)
            os.dup2(handle, 1)
            sys.stdin.close()
            os._exit(cli.main(arguments))
        print(pid, flush=True)


if __name__ == "__main__":
    main()
