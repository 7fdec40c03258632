"""The ledger for as long as wanted: ``python tests/service/long_kills.py --kills 1000``."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from harness import Server
from ledger import Ledger, check
from nursery import Nursery

EVERY = 50  # kills between two looks at the whole ledger


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--learner", default="perceptron")
    parser.add_argument("--folder", default=None, help="on the disk to be tested (default: the temporary folder)")
    arguments = parser.parse_args()
    nursery = Nursery()
    ledger, chance = Ledger(arguments.seed), random.Random(arguments.seed)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        data = Path(folder) / "data"
        with Server(data, "--snapshot-events", "500", nursery=nursery) as server:
            made = server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": arguments.learner})
            assert made[0] == 201, made
            for kill in range(1, arguments.kills + 1):
                ledger.load(server, seconds=chance.uniform(0.0, 0.4), clients=8)
                server.kill()
                ledger.settle()
                server.start()
                if kill % EVERY == 0 or kill == arguments.kills:
                    ledger.load(server, seconds=0.2, clients=8)
                    ledger.settle()
                    server.stop()
                    found = check(ledger, data, arguments.learner)
                    told = f"{len(ledger.acknowledged)} labels acknowledged, {found} found, none lost, none twice"
                    print(f"{kill} kills, {time.monotonic() - began:.0f} s: {told}, the same bits", flush=True)
                    server.start()
    nursery.close()


if __name__ == "__main__":
    main()
