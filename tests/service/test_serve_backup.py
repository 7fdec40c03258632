"""Backups while it runs, retention behind snapshots, and space that is given back."""

import shutil
import threading

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import Server, read_log
from local import Local

from linmax import cli
from linmax.service.backup import back_up

M = "/v1/models/m"


def body(i, size=4):
    return {"attributes": {f"f{(i + j) % 40}": 1.0 for j in range(size)}, "label": "xyz"[i % 3], "id": f"l{i}"}


def teach(local, first, count, size=4):
    for start in range(first, first + count, 100):
        items = [body(i, size) for i in range(start, min(start + 100, first + count))]
        assert local.call("POST", f"{M}/learn/batch", {"items": items}).status == 200


@pytest.fixture
def local(tmp_path):
    with Local(tmp_path / "data", keep_events=50) as local:
        assert local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"}).status == 201
        yield local


class TestBackup:
    def test_while_it_runs(self, tmp_path, nursery, capsys):
        data, target = tmp_path / "data", tmp_path / "copy"
        with Server(data, nursery=nursery) as server:
            server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
            for i in range(30):
                assert server.call("POST", f"{M}/learn", body(i))[0] == 200
            over, acknowledged = threading.Event(), []

            def load():
                i = 30
                while not over.is_set():
                    assert server.call("POST", f"{M}/learn", body(i))[0] == 200
                    acknowledged.append(f"l{i}")
                    i += 1

            thread = threading.Thread(target=load)
            thread.start()
            try:
                assert cli.main(["serve", "backup", str(data), str(target)]) == 0
            finally:
                over.set()
                thread.join()
            assert "has everything up to event" in capsys.readouterr().out
            assert cli.main(["serve", "backup", str(data), str(target)]) == 2
            assert "exists; choose a name that is free" in capsys.readouterr().err
        found = [event[2] for event in read_log(target)["m"]]
        assert found == [f"l{i}" for i in range(len(found))]
        assert len(found) >= 30
        assert cli.main(["serve", "verify", str(target)]) == 0
        with Local(target) as local:
            assert local.call("GET", "/ready").body["incidents"] == []
            assert local.call("GET", M).body["trials"] == len(found)

    def test_while_it_is_stopped(self, local, tmp_path):
        teach(local, 0, 20)
        shutil.copytree(tmp_path / "data", tmp_path / "crashed")
        told = back_up(tmp_path / "crashed", tmp_path / "copy")
        assert told.endswith("has everything up to event 21")
        with Local(tmp_path / "copy") as copy:
            assert copy.call("GET", M).body["trials"] == 20

    def test_killed_backup_is_no_backup(self, local, tmp_path):
        (tmp_path / ".copy.partial").mkdir()
        (tmp_path / ".copy.partial" / "log.sqlite").write_bytes(b"half")
        teach(local, 0, 5)
        shutil.copytree(tmp_path / "data", tmp_path / "crashed")
        back_up(tmp_path / "crashed", tmp_path / "copy")
        assert not (tmp_path / ".copy.partial").exists()


class TestRetention:
    def cut(self, local):
        local.do(local.service.house._retain())

    def save(self, local):
        local.do(local.service.house.save(local.service.models["m"]))

    def test_events_go_behind_the_snapshots(self, local, tmp_path):
        local.call("POST", f"{M}/predict", {"attributes": {"f1": 1.0}, "id": "old"})
        local.call("POST", f"{M}/predict", {"attributes": {"f2": 1.0}, "id": "late"})
        for first in range(0, 600, 200):
            teach(local, first, 200)
            self.save(local)
        teach(local, 600, 20)
        local.call("POST", f"{M}/label", {"id": "late", "label": "x"})
        self.cut(local)
        shown = local.call("GET", M).body
        left = local.sql("SELECT count(*) FROM events")
        assert 200 < left < 240  # back to the older snapshot, and the predictions that are needed
        assert local.call("POST", f"{M}/learn", body(615)).body["seq"] < shown["applied_seq"]  # still known
        assert local.call("GET", f"{M}/trials/l3").status == 404
        weights = local.service.models["m"].learner.weights
        shutil.copytree(tmp_path / "data", tmp_path / "crashed")
        with Local(tmp_path / "crashed") as again:
            assert again.call("GET", "/ready").body["quarantined"] == []
            assert again.service.models["m"].learner.weights == weights
            assert again.call("POST", f"{M}/label", {"id": "old", "label": "y"}).status == 200
        assert cli.main(["serve", "verify", str(tmp_path / "crashed")]) == 0
        newest = max((tmp_path / "crashed" / "snapshots").iterdir(), key=lambda path: int(path.stem.split("-")[1]))
        newest.unlink()
        with Local(tmp_path / "crashed") as again:  # the older snapshot is enough
            assert again.call("GET", "/ready").body["quarantined"] == []
            assert again.call("GET", M).body["trials"] == 622
        shutil.rmtree(tmp_path / "crashed" / "snapshots")
        with Local(tmp_path / "crashed") as again:  # without any the model cannot be had, and that is said
            assert again.call("GET", "/ready").body["quarantined"] == ["m"]
            told = again.call("GET", M).body["detail"]
            assert "no snapshot that this linmax can read reaches that far" in told

    def test_by_age(self, tmp_path):
        with Local(tmp_path, keep_seconds=0.0) as local:
            local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
            for first in (0, 100):
                teach(local, first, 100)
                self.save(local)
            self.cut(local)
            assert local.sql("SELECT count(*) FROM events") == 100
            assert local.call("GET", M).body["trials"] == 200
        with Local(tmp_path, keep_seconds=3600.0) as local:
            self.cut(local)
            assert local.sql("SELECT count(*) FROM events") == 100

    def test_a_damaged_snapshot_cuts_nothing(self, local, tmp_path):
        for first in (0, 100):
            teach(local, first, 100)
            self.save(local)
        path = next((tmp_path / "data" / "snapshots").glob("1-101.linmax"))
        content = bytearray(path.read_bytes())
        content[-9] ^= 4
        path.write_bytes(content)
        with pytest.raises(ValueError, match="damaged"):
            self.cut(local)
        assert local.sql("SELECT count(*) FROM events") == 200

    def test_space_is_given_back(self, local, tmp_path):
        for first in (0, 1500, 3000):
            teach(local, first, 1500 if first < 3000 else 60, size=30)
            self.save(local)
        before = local.sql("PRAGMA page_count")
        self.cut(local)
        assert local.sql("PRAGMA page_count") < before / 2
