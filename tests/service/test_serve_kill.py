"""The ledger: what was acknowledged is there after any kill, nothing is there twice, and the bits are the same."""

import random

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import Server
from ledger import Ledger, check


def test_fifty_kills(tmp_path, nursery):
    """Clients learn, predict and label while the process is killed at random moments and started again."""
    ledger = Ledger(seed=1)
    data = tmp_path / "data"
    kills = 50
    chance = random.Random(2)
    with Server(data, "--snapshot-events", "150", nursery=nursery) as server:
        assert server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})[0] == 201
        for _ in range(kills):
            ledger.load(server, seconds=chance.uniform(0.02, 0.25), clients=4)
            server.kill()
            ledger.settle()
            server.start()
        ledger.load(server, seconds=0.2, clients=4)
        ledger.settle()
        server.stop()
    assert len(ledger.acknowledged) > kills  # at least one before each kill, and after the last
    check(ledger, data)
