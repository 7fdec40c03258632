"""One history: what was restored, damaged or cannot be replayed is found, set aside and said, and nothing else suffers."""

import os
import platform
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import Editor, read_log, replayed
from local import Local

from linmax.service import offline
from linmax.service.environment import environment
from linmax.service.snapshots import SNAPSHOT
from linmax.util import files

M = "/v1/models/m"


def made(local, learner="perceptron", name="m", **options):
    assert local.call("POST", "/v1/models?wait=300", {"name": name, "learner": learner, **options}).status == 201


def teach(local, first, count, model="m", shift=0.0):
    for i in range(first, first + count):
        body = {"attributes": {f"f{i % 7}": 1.0 + shift, f"g{i % 5}": 0.5}, "label": "xyz"[i % 3], "id": f"{shift}-{i}"}
        assert local.call("POST", f"/v1/models/{model}/learn", body).status == 200


def agrees(folder, local, learner="perceptron"):
    """The service's weights are those of an off-line replay of its log."""
    local.call("GET", "/ready")
    expected, mistakes = replayed(read_log(folder)["m"], learner=learner)
    shown = local.call("GET", M).body
    assert (shown["trials"], shown["mistakes"]) == (expected.trials, mistakes)
    assert local.service.models["m"].learner.weights == expected.weights


def copied(source, target):
    shutil.copytree(source, target, dirs_exist_ok=True)


def test_a_restored_backup(tmp_path):
    """Fifty labels, a copy, a hundred more, the copy put back, others instead: nothing of the hundred is left."""
    data, backup = tmp_path / "data", tmp_path / "backup"
    with Local(data) as local:
        made(local)
        teach(local, 0, 50)
    copied(data, backup)
    with Local(data) as local:
        teach(local, 50, 100)
    copied(backup, data)
    local = Local(data).__enter__()
    teach(local, 50, 130, shift=1.0)
    local.abandon()
    with Local(data) as local:
        copied(data, tmp_path / "look")
        agrees(tmp_path / "look", local)
        told = local.call("GET", "/ready").body["incidents"]
        assert any("snapshot 1-151.linmax is not part of this log's history" in line for line in told)
        assert (data / "aside" / "1-151.linmax").exists()
        assert local.call("GET", "/metrics").body.decode().count("\nlinmax_incidents 1.0") == 1


def test_snapshots_of_models_that_a_restored_log_does_not_have(tmp_path):
    """Otherwise a new model that gets the same number would find them."""
    data = tmp_path / "data"
    with Local(data) as local:
        made(local)
        teach(local, 0, 5)
    shutil.copy(data / "snapshots" / "1-6.linmax", data / "snapshots" / "2-900.linmax")
    with Local(data) as local:
        assert not (data / "snapshots" / "2-900.linmax").exists()
        assert "2-900.linmax is not part" in local.call("GET", "/ready").body["incidents"][0]


def test_log_without_mark_reports_missing_file(tmp_path):
    data = tmp_path / "data"
    with Local(data) as local:
        made(local)
        teach(local, 0, 20)
    shutil.copy(data / "log.sqlite", tmp_path / "old.sqlite")
    with Local(data) as local:
        teach(local, 20, 30)
    shutil.copy(tmp_path / "old.sqlite", data / "log.sqlite")
    with Local(data) as local:
        told = local.call("GET", "/ready").body["incidents"]
        assert any(
            "the log ends at event 21, but events up to 51 were acknowledged: 30 are lost" in line for line in told
        )
        assert local.call("GET", M).body["trials"] == 20
        teach(local, 90, 1)
        assert local.call("GET", M).body["applied_seq"] == 52  # no number is used twice
    with Local(data) as local:  # said until it is settled, and only once
        assert len(local.call("GET", "/ready").body["incidents"]) == len(told)


@pytest.mark.parametrize("place", [0.0, 0.5])
def test_flipped_bit_in_wal_is_reported(tmp_path, place):
    data = tmp_path / "data"
    local = Local(data).__enter__()
    made(local)
    teach(local, 0, 60)
    shutil.copytree(data, tmp_path / "crashed")  # as a kill would leave it
    local.abandon()
    data = tmp_path / "crashed"
    wal = data / "log.sqlite-wal"
    content = bytearray(wal.read_bytes())
    at = 20 if place == 0.0 else int(len(content) * place)
    content[at] ^= 1
    wal.write_bytes(content)
    with Local(data) as local:
        told = local.call("GET", "/ready").body["incidents"]
        assert len(told) == 1
        assert "events up to 61 were acknowledged" in told[0]
        kept = data / told[0].rsplit(" ", 1)[1]
        assert kept.read_bytes() == content
        if place:
            shutil.copytree(data, tmp_path / "look")
            agrees(tmp_path / "look", local)


def test_a_damaged_event_puts_its_model_alone_into_quarantine(tmp_path):
    with Local(tmp_path) as local:
        for name in "mn":
            made(local, name=name)
            teach(local, 0, 10, name)
    for path in (tmp_path / "snapshots").iterdir():
        path.unlink()
    database = Editor(tmp_path / "log.sqlite")
    seq = database.execute("SELECT seq FROM events WHERE model = 1 LIMIT 1 OFFSET 4").fetchone()[0]
    database.execute("UPDATE events SET body = zeroblob(length(body)) WHERE seq = ?", (seq,))
    database.close()
    with Local(tmp_path) as local:
        ready = local.call("GET", "/ready")
        assert (ready.status, ready.body["quarantined"]) == (200, ["m"])
        answer = local.call("POST", f"{M}/predict", {"attributes": {"f1": 1.0}})
        assert answer.status == 503
        assert f"event {seq} is damaged" in answer.body["detail"]
        assert local.call("GET", "/v1/models").body["quarantined"][0]["name"] == "m"
        teach(local, 20, 3, "n")
        assert local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "winnow"}).status == 409
        word = local.call("DELETE", M).body["confirm"]
        assert local.call("DELETE", f"{M}?confirm={word}").status == 204
        made(local)


def test_unlearnable_trial_is_refused_after_restart(tmp_path):
    bad = {"attributes": {"a": 1000.0}, "label": "y", "id": "bad"}
    with Local(tmp_path) as local:
        made(local, "quasi-additive(sinh)")
        made(local, name="other")
        for i in range(6):
            local.call("POST", f"{M}/learn", {"attributes": {"a": 0.5, "b": 1.0 * (i % 2)}, "label": "xy"[i % 2]})
        before = local.service.models["m"].learner.weights.arrays.flat.tobytes()
        first = local.call("POST", f"{M}/learn", bad)
        assert first.status == 422
        assert local.service.models["m"].learner.weights.arrays.flat.tobytes() == before
        assert local.call("POST", f"{M}/learn", bad).body == first.body
        late = {"attributes": {"a": 900.0}, "id": "late"}
        assert local.call("POST", f"{M}/predict", late).status == 200
        second = local.call("POST", f"{M}/label", {"id": "late", "label": "y"})
        assert second.status == 422
        shutil.copytree(tmp_path, tmp_path.with_name("killed"))
    with Local(tmp_path.with_name("killed")) as local:
        assert local.call("GET", "/ready").body["quarantined"] == []
        assert local.service.models["m"].learner.weights.arrays.flat.tobytes() == before
        assert local.call("POST", f"{M}/learn", bad).body == first.body
        assert local.call("POST", f"{M}/label", {"id": "late", "label": "y"}).body == second.body
        assert local.service.models["m"].unlearned == 2
    with Local(tmp_path.with_name("killed")) as local:  # from the snapshot
        assert local.call("POST", f"{M}/learn", bad).body == first.body
        assert local.call("POST", f"{M}/label", {"id": "late", "label": "y"}).body == second.body


def test_checksum_matches_documentation(tmp_path):
    """Computed again from the file by its description."""
    with Local(tmp_path) as local:
        made(local)
        teach(local, 0, 5)
        local.call("POST", f"{M}/predict", {"attributes": {"new": 1.0}, "id": "p"})
        local.call("POST", f"{M}/label", {"id": "p", "label": "x"})
    database = Editor(tmp_path / "log.sqlite")
    running = database.execute("SELECT kept_crc FROM models").fetchone()[0]
    sql = "SELECT seq, kind, at, id, refers, body, crc FROM events ORDER BY seq"
    for *fields, body, crc in database.execute(sql):
        running = zlib.crc32(body, zlib.crc32(" ".join(map(str, fields)).encode(), running))
        assert running == crc
    database.close()


class TestUpgrade:
    """Snapshots of other versions and other processors."""

    def rewritten(self, data, change):
        """Every snapshot, changed as another library might have written it."""
        for path in (data / "snapshots").iterdir():
            told, arrays = files.read(path, SNAPSHOT)
            change(told)
            files.write(path, SNAPSHOT, told, arrays)

    def test_upgrade_drift_differs_from_damage(self, tmp_path, monkeypatch):
        with monkeypatch.context() as before:
            before.setattr("linmax.service.service.environment", lambda: environment() | {"linmax": "0.0.9"})
            with Local(tmp_path) as local:
                made(local)
                teach(local, 0, 30)
        self.rewritten(tmp_path, lambda told: told["account"].update(mistakes=29))  # which a replay would not give
        report = offline.verify(tmp_path)
        assert report.good
        assert "learned by linmax 0.0.9 (numba" in report.lines[1]
        assert "the same but for 1 snapshots" in report.lines[2]
        with Local(tmp_path) as local:
            assert local.call("GET", "/ready").body["incidents"] == []
            assert local.call("GET", M).body["mistakes"] == 29
            teach(local, 30, 20)
        assert [path.name for path in (tmp_path / "baselines").iterdir()] == ["1-31.linmax"]
        report = offline.verify(tmp_path)
        assert report.good, report.lines
        assert "20 trials replayed from event 31 on, 20 answers and 1 snapshots are the same" in report.lines[1]
        shutil.copytree(tmp_path, tmp_path / "copies" / "answer")
        shutil.copytree(tmp_path, tmp_path / "copies" / "event", ignore=shutil.ignore_patterns("copies"))
        with Editor(tmp_path / "copies" / "answer" / "log.sqlite") as editor:
            editor.execute("UPDATE answers SET predicted = 'none of them' WHERE seq = 40")
        assert "event 40 was answered with" in offline.verify(tmp_path / "copies" / "answer").lines[1]
        with Editor(tmp_path / "copies" / "event" / "log.sqlite") as editor:
            editor.execute("UPDATE events SET crc = 0 WHERE seq = 5")  # before the baseline
        assert "event 5 is damaged" in offline.verify(tmp_path / "copies" / "event").lines[1]

    @pytest.mark.skipif(platform.machine() != "x86_64", reason="names processors of this family")
    def test_a_folder_moves_to_another_processor(self, tmp_path):
        data, cache = tmp_path / "data", tmp_path / "kernels"
        with Local(data) as local:
            made(local, "arow")
            teach(local, 0, 200)
            local.do(local.service.house.save(local.service.models["m"]))
            teach(local, 200, 20)
        code = (
            "import sys; from pathlib import Path; from local import Local; from linmax.service import offline\n"
            f"data = Path({str(data)!r})\n"
            "with Local(data) as local:\n"
            "    ready = local.call('GET', '/ready').body\n"
            "    assert not ready['incidents'] and not ready['quarantined'], ready\n"
            "    body = {'attributes': {'f1': 1.0, 'g1': 0.3}, 'label': 'x'}\n"
            "    assert local.call('POST', '/v1/models/m/learn', body).status == 200\n"
            "report = offline.verify(data)\n"
            "print(*report.lines, sep='\\n'); sys.exit(not report.good)\n"
        )
        paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        other = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(cache)}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **other, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "1 trials replayed from event 221 on, 1 answers and 1 snapshots are the same, the" in done.stdout
        back = offline.verify(data)
        assert back.good
        assert "learned by linmax" in back.lines[1]

    @pytest.mark.parametrize("whole", [True, False])
    def test_a_state_that_cannot_be_read_is_replayed_or_quarantined(self, tmp_path, whole):
        with Local(tmp_path) as local:
            made(local)
            teach(local, 0, 30)
            weights = local.service.models["m"].learner.weights
        self.rewritten(tmp_path, lambda told: told["learner"].pop("model"))
        if not whole:
            database = Editor(tmp_path / "log.sqlite")
            database.execute("DELETE FROM events WHERE seq < 20")
            database.execute("UPDATE models SET kept = 20")
            database.close()
        with Local(tmp_path) as local:
            ready = local.call("GET", "/ready").body
            assert "snapshot 1-31.linmax of model m is passed over: no 'model'" in ready["incidents"][0]
            assert ready["quarantined"] == ([] if whole else ["m"])
            if whole:
                assert local.service.models["m"].learner.weights == weights
            else:
                reason = local.call("GET", M).body["detail"]
                assert "go back to the linmax that wrote the snapshots, or restore a backup" in reason
