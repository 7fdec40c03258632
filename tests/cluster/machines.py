"""Machines for tests: network namespaces on one bridge, each with its own files at the same path.

The first machine has the scheduler and the driver, the others a worker each. Needs root and Linux' `ip` and `unshare`;
`why_not` says what is missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PORT = 8786
# A line that is cut is given up after seconds: kernels acknowledge what arrives, however busy the programs are. Programs
# have minutes: workers that import and compile on a busy machine miss heartbeats and are slow to take up connections.
IMPATIENT = {
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "300s",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "10",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "11s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "30s",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
}


def why_not() -> str:
    """Why there can be no machines here, or nothing."""
    missing = [name for name in ("ip", "unshare", "mount") if shutil.which(name) is None]
    if missing:
        return f"needs {', '.join(missing)}"
    tried = subprocess.run(["unshare", "-n", "-m", "true"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"network namespaces are not permitted here: {tried.stderr.strip()}"


class Machines:
    """``names[0]`` is the scheduler's machine."""

    def __init__(self, folder: Path, workers: int) -> None:
        tag = f"lm{os.getpid() % 10_000}"
        self.names = [f"{tag}-{number}" for number in range(workers + 1)]
        self.folder = folder  # the path under which each machine sees files of its own
        self.files = [folder.parent / name for name in self.names]
        self.started: list[subprocess.Popen[bytes]] = []

    def address(self, number: int) -> str:
        return f"10.87.{os.getpid() % 250}.{number + 1}"

    @property
    def scheduler(self) -> str:
        return f"tcp://{self.address(0)}:{PORT}"

    def connect(self) -> None:
        """A bridge on the first machine, and a line from each of the others to it."""
        hub = self.names[0]
        self.folder.mkdir()
        for number, name in enumerate(self.names):
            self.files[number].mkdir()
            _run("ip", "netns", "add", name)
            self.on(number, "ip", "link", "set", "lo", "up")
        self.on(0, "ip", "link", "add", "bridge", "type", "bridge")
        self.on(0, "ip", "addr", "add", f"{self.address(0)}/24", "dev", "bridge")
        self.on(0, "ip", "link", "set", "bridge", "up")
        for number, name in enumerate(self.names[1:], 1):
            port = f"port{number}"
            _run("ip", "-n", hub, "link", "add", port, "type", "veth", "peer", "name", "line", "netns", name)
            self.on(0, "ip", "link", "set", port, "master", "bridge")
            self.on(0, "ip", "link", "set", port, "up")
            self.on(number, "ip", "addr", "add", f"{self.address(number)}/24", "dev", "line")
            self.on(number, "ip", "link", "set", "line", "up")

    def on(self, number: int, *command: str) -> None:
        """Run a command on a machine."""
        _run("ip", "netns", "exec", self.names[number], *command)

    def start(self, number: int, *command: str) -> subprocess.Popen[bytes]:
        """Start a program on a machine, in its own file tree."""
        inside = f'mount --bind "{self.files[number]}" "{self.folder}" && exec "$@"'
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.names[number], "unshare", "-m", "sh", "-c", inside, "sh", *command],
            env=os.environ | IMPATIENT,
            stdout=subprocess.PIPE,
            stderr=(self.files[number] / "errors").open("ab"),
        )
        self.started.append(process)
        return process

    def serve(self) -> None:
        """Start the scheduler, and a worker on each other machine."""
        dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
        self.start(0, *dask, "--host", self.address(0), "--port", str(PORT), "--no-dashboard")
        for number in range(1, len(self.names)):
            self.start(
                number,
                *(sys.executable, "-m", "distributed.cli.dask_worker", self.scheduler),
                *("--host", self.address(number), "--nthreads", "1", "--no-dashboard"),
            )

    def drive(self, script: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a script on the first machine."""
        return self.start(0, sys.executable, "-c", script, self.scheduler, *arguments)

    def connect_line(self, number: int, up: bool) -> None:
        """Take a machine off the network, or put it back."""
        self.on(0, "ip", "link", "set", f"port{number}", "up" if up else "down")

    def limit(self, rate: str) -> None:
        """Let so much pass through each line."""
        for number in range(1, len(self.names)):
            shape = ("tc", "qdisc", "replace", "dev")
            self.on(0, *shape, f"port{number}", "root", "tbf", "rate", rate, "burst", "64kb", "latency", "200ms")
            self.on(number, *shape, "line", "root", "tbf", "rate", rate, "burst", "64kb", "latency", "200ms")

    def stop(self) -> None:
        for process in self.started:
            process.terminate()
        for process in self.started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def machines(folder: Path, workers: int, files: Sequence[tuple[str, str]]) -> Iterator[Machines]:
    """Machines that are connected and serving; the workers' ones have these files, by name and content."""
    made = Machines(folder / "data", workers)
    try:
        made.connect()
        for own in made.files[1:]:
            for name, content in files:
                (own / name).write_text(content)
        made.serve()
        yield made
    finally:
        made.stop()
