"""Damage to any file of a data folder is repaired or reported, or changes nothing: none is silent."""

import os
import random
import shutil

import msgspec
import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import Editor
from local import Local

from linmax.service import offline
from linmax.service.keys import KeyFile
from linmax.service.log import EventLog

CASES = 40
SECTOR = 512


def made(folder, stopped):
    """A folder with two models, snapshots and later events, limits and keys; after a stop, or as a kill leaves it."""
    key = KeyFile(folder).add("all", ["predict", "learn", "admin"]) if folder.mkdir() is None else None
    local = Local(folder).__enter__()
    chance = random.Random(1)

    def post(path, **body):
        answer = local.call("POST", path, body, key=key)
        assert answer.status < 300, answer.body

    post("/v1/models?wait=300", name="m", learner="perceptron")
    post("/v1/models?wait=300", name="jury", learner="winnow(1.5)", kind="votes")
    for i in range(120):
        attributes = {f"f{chance.randrange(40)}": chance.uniform(-1, 1) for _ in range(5)}
        post("/v1/models/m/learn", attributes=attributes, label=chance.choice("xyz"), id=f"t{i}")
        post("/v1/models/jury/learn", votes={name: chance.choice("ab") for name in "uvw"}, label=chance.choice("ab"))
        post("/v1/models/m/predict", attributes=attributes, id=f"p{i}")
        if i % 3 == 0:
            post("/v1/models/m/label", id=f"p{i}", label="x")
        if i in (40, 80):
            for model in local.service.models.values():
                local.do(local.service.house.save(model))
    assert local.call("PATCH", "/v1/models/m", {"max_pending": 5000}, key=key).status == 200
    truth = seen(local, key)
    if stopped:
        local.__exit__()
    else:
        local.abandon()
    return key, truth


def seen(local, key):
    """All that clients can know."""
    answers = [local.call("GET", path, key=key) for path in ("/v1/models", "/v1/export", "/v1/models/m/predictions")]
    assert [answer.status for answer in answers] == [200, 200, 200], answers
    models, events, waiting = (answer.body for answer in answers)
    for model in models["models"]:
        del model["snapshot_seq"]
    weights = {name: model.learner.weights for name, model in local.service.models.items()}
    return models["models"], [msgspec.json.decode(line) for line in events.splitlines()], waiting, weights


def damage(folder, chance):
    """Damage one file somewhere; returns what was done."""
    path = chance.choice([path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size])
    content = bytearray(path.read_bytes())
    how, at = chance.choice(["bit", "sector", "cut", "longer"]), chance.randrange(len(content))
    if how == "bit":
        content[at] ^= 1 << chance.randrange(8)
    elif how == "sector":
        start = at // SECTOR * SECTOR
        content[start : start + SECTOR] = chance.choice([bytes, chance.randbytes])(len(content[start : start + SECTOR]))
    elif how == "cut":
        del content[at:]
    else:
        content += chance.randbytes(1 + chance.randrange(2 * SECTOR))
    path.write_bytes(content)
    return f"{path.relative_to(folder)}: {how} at {at}"


def is_reported(folder, key, truth):
    """Whether a start reports something; if it does not, everything must be as before."""
    local = Local(folder)
    try:
        local.__enter__()
    except (ValueError, OSError):  # it does not start, and says why
        if hasattr(local, "thread"):
            local.loop.call_soon_threadsafe(local.loop.stop)
        return True
    try:
        ready = local.call("GET", "/ready", key=key).body
        if ready["incidents"] or ready["quarantined"]:
            return True
        assert local.call("GET", "/v1/models", key=key).status == 200, "the key does not work any more"
        return seen(local, key) != truth and "silent"
    finally:
        local.abandon()


@pytest.mark.parametrize(
    ("stopped", "cases"),
    [(True, CASES), (False, CASES), *(pytest.param(stop, 500, marks=pytest.mark.nightly) for stop in (True, False))],
)
def test_no_damage_is_silent(tmp_path, stopped, cases):
    seed = int(os.environ.get("LINMAX_TEST_SEED", random.randrange(10**6)))
    chance = random.Random(seed)
    key, truth = made(tmp_path / "whole", stopped)
    for case in range(cases):
        folder = tmp_path / "damaged"
        shutil.copytree(tmp_path / "whole", folder)
        done = damage(folder, chance)
        assert is_reported(folder, key, truth) != "silent", (seed, case, done)
        shutil.rmtree(folder)


def page_of(folder, index):
    """The number of the first page of an index."""
    with Editor(folder / "log.sqlite") as editor:
        return editor.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (index,)).get


@pytest.mark.parametrize("index", ["of_model", "one_trial", "one_label"])
def test_a_damaged_index_is_made_again_and_reported(tmp_path, index):
    folder = tmp_path / "data"
    key, truth = made(folder, stopped=True)
    path = folder / "log.sqlite"
    content = bytearray(path.read_bytes())
    content[(page_of(folder, index) - 1) * 4096 + 2000] ^= 8
    path.write_bytes(content)
    with Local(folder) as local:
        (message,) = local.call("GET", "/ready", key=key).body["incidents"]
        assert "1 damaged pages" in message
        assert "its rows were whole, and it was made again from them" in message
        assert seen(local, key) == truth
        again = {"attributes": {"f1": 1.0}, "label": "x", "id": "t7"}  # an id that is known is not learned again
        assert local.call("POST", "/v1/models/m/learn", again, key=key).status == 409
    assert next((folder / "aside").glob("log-*")).read_bytes() == content
    assert offline.verify(folder).good


def test_a_damaged_page_of_events_stops_the_start_with_the_remedy(tmp_path):
    folder = tmp_path / "data"
    made(folder, stopped=True)
    path = folder / "log.sqlite"
    with Editor(path) as editor:
        body = editor.execute("SELECT body FROM events WHERE seq = 50").get
    content = bytearray(path.read_bytes())
    content[content.index(body)] ^= 1
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"is damaged \(1 damaged pages .* restore a backup"):
            EventLog(path)
    assert path.read_bytes() == content  # as it was found
