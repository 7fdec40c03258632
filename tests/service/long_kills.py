"""The ledger for as long as wanted: ``python tests/service/long_kills.py --kills 1000``.

Clients learn, predict, label and import. Now and then ``linmax serve warm`` is killed while it compiles into a cache
that was empty, and the server starts with what the kill left there.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from harness import Server
from ledger import Ledger, check
from nursery import Nursery

EVERY = 50  # kills between two looks at the whole ledger


def kill_warm(cache, seconds):
    """Kill a compilation into an empty cache after so many seconds."""
    shutil.rmtree(cache, ignore_errors=True)
    command = [sys.executable, "-m", "linmax.cli", "serve", "warm", "perceptron", "--kinds", "attributes"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def start_with(server, cache):
    """Start the server in a process of its own, with this cache of compiled code."""
    nursery, server.nursery = server.nursery, None
    before = os.environ.get("NUMBA_CACHE_DIR")
    os.environ["NUMBA_CACHE_DIR"] = str(cache)
    try:
        server.start()
    finally:
        server.nursery = nursery
        os.environ.pop("NUMBA_CACHE_DIR")
        if before is not None:
            os.environ["NUMBA_CACHE_DIR"] = before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--learner", default="perceptron")
    parser.add_argument("--warm", type=float, default=0.02, help="share of kills that also strike a warm-up")
    parser.add_argument("--folder", default=None, help="on the disk to be tested (default: the temporary folder)")
    arguments = parser.parse_args()
    nursery = Nursery()
    ledger, chance = Ledger(arguments.seed), random.Random(arguments.seed)
    began, warmed = time.monotonic(), 0
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        data = Path(folder) / "data"
        with Server(data, "--snapshot-events", "500", nursery=nursery) as server:
            made = server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": arguments.learner})
            assert made[0] == 201, made
            for kill in range(1, arguments.kills + 1):
                ledger.load(server, seconds=chance.uniform(0.0, 0.4), clients=8)
                server.kill()
                ledger.settle()
                if chance.random() < arguments.warm:
                    kill_warm(Path(folder) / "kernels", chance.uniform(0.5, 12.0))
                    start_with(server, Path(folder) / "kernels")
                    warmed += 1
                else:
                    server.start()
                if kill % EVERY == 0 or kill == arguments.kills:
                    ledger.load(server, seconds=0.2, clients=8)
                    ledger.settle()
                    server.stop()
                    found = check(ledger, data, arguments.learner)
                    told = f"{len(ledger.acknowledged)} labels acknowledged, {len(ledger.imported)} of them imported, "
                    told += f"{found} found, none lost, none twice"
                    struck = f"{kill} kills, {warmed} with one of a warm-up, {time.monotonic() - began:.0f} s"
                    print(f"{struck}: {told}, the same bits", flush=True)
                    server.start()
    nursery.close()


if __name__ == "__main__":
    main()
