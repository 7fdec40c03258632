"""Power that fails at any write: with synchronous=FULL no acknowledged event is lost, with NORMAL some are."""

import random

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

import apsw
from power import PowerVFS

from linmax.service import log as log_module
from linmax.service.log import LEARN, Body, EventLog, StorageFailed

EVENTS = 250


def lost(tmp_path, synchronous, seed):
    """How many crash images there were, and in how many an acknowledged event was missing or the file unreadable."""
    chance = random.Random(seed)
    acknowledged, images = [], []

    def maybe():
        if chance.random() < 0.12:
            images.append((tmp_path / f"{synchronous}-{len(images)}", len(acknowledged)))
            vfs.image(images[-1][0], chance)

    vfs = PowerVFS(f"power-{synchronous}", maybe)
    folder = tmp_path / synchronous
    folder.mkdir()
    log = EventLog(folder / "log.sqlite", vfs=vfs.name, synchronous=synchronous)
    log.begin()
    number = log.create("m", {}).number
    log.commit()
    while len(acknowledged) < EVENTS:
        log.begin()
        batch = [f"id{len(acknowledged) + i}" for i in range(chance.randrange(1, 8))]
        for id in batch:
            instance = {"attributes": {f"f{chance.randrange(300)}": 0.5}}
            log.append(number, LEARN, id, body=Body(instance, "x"))
        log.commit()
        acknowledged += batch
        log.checkpoint()
    log.abandon()
    failures = sum(not survives(folder, acknowledged[:count]) for folder, count in images)
    return len(images), failures


def survives(folder, acknowledged):
    if not acknowledged:
        return True
    try:
        log = EventLog(folder / "log.sqlite")
        whole = log.database.execute("PRAGMA integrity_check").get == "ok"
        known = {id for (id,) in log.database.execute("SELECT id FROM events")}
        unpacked = [log.find(1, id) for id in acknowledged if id in known]
        log.abandon()
    except (apsw.Error, ValueError, StorageFailed):
        return False
    return whole and known >= set(acknowledged) and len(unpacked) == len(acknowledged)


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Checkpoints happen within a short test."""
    monkeypatch.setattr(log_module, "CHECKPOINT_PAGES", 40)


def test_full_loses_nothing(tmp_path):
    images, failures = lost(tmp_path, "FULL", seed=1)
    assert images > 40
    assert failures == 0


def test_normal_does_lose(tmp_path):
    """The control: a simulator that finds nothing here would find nothing at all."""
    images, failures = lost(tmp_path, "NORMAL", seed=1)
    assert failures > images // 4
