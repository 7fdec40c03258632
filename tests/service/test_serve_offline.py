"""The data folder without its server: check, skip, delete, verify, export, compact."""

import json

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import Editor, read_log
from local import Local

from linmax import cli

M = "/v1/models/m"


@pytest.fixture
def folder(tmp_path):
    """Two models, with learned, late, pending and forgotten trials."""
    with Local(tmp_path) as local:
        for name in "mn":
            assert local.call("POST", "/v1/models?wait=300", {"name": name, "learner": "perceptron"}).status == 201
            for i in range(12):
                body = {"attributes": {f"f{i % 5}": 1.0, "all": 0.5}, "label": "xyz"[i % 3], "id": f"l{i}"}
                assert local.call("POST", f"/v1/models/{name}/learn", body).status == 200
            for i in range(4):
                local.call(
                    "POST", f"/v1/models/{name}/predict", {"attributes": {"f1": 1.0, f"new{i}": 1.0}, "id": f"p{i}"}
                )
            local.call("POST", f"/v1/models/{name}/label", {"id": "p0", "label": "x"})
            local.call("DELETE", f"/v1/models/{name}/predictions/p1")
    return tmp_path


def damage(folder, offset=4):
    """Change one event of the first model, behind the back of everybody."""
    for path in (folder / "snapshots").glob("1-*"):
        path.unlink()
    database = Editor(folder / "log.sqlite")
    seq = database.execute("SELECT seq FROM events WHERE model = 1 LIMIT 1 OFFSET ?", (offset,)).fetchone()[0]
    database.execute("UPDATE events SET body = zeroblob(length(body)) WHERE seq = ?", (seq,))
    database.close()
    return seq


def run(capsys, *words):
    """Exit status and what was printed."""
    try:
        status = cli.main(["serve", *map(str, words)])
    except SystemExit as end:
        status = end.code
    told = capsys.readouterr()
    return status, told.out + told.err


def test_all_is_well(folder, capsys):
    status, told = run(capsys, "check", folder)
    assert status == 0
    assert "m: 13 trials" in told
    status, told = run(capsys, "verify", folder)
    assert status == 0
    assert "m: 13 trials replayed, 12 answers and 1 snapshots are the same, the running checksum fits" in told


def test_a_damaged_event_is_named_and_skipped(folder, capsys):
    seq = damage(folder)
    for command in ("check", "verify"):
        status, told = run(capsys, command, folder)
        assert status == 1
        assert f"m: event {seq} is damaged" in told
        assert "n: 13 trials" in told
    assert f"linmax serve skip {folder} m {seq}" in run(capsys, "check", folder)[1]
    assert run(capsys, "skip", folder, "m", 10**6)[0] == 2
    assert run(capsys, "skip", folder, "m", seq)[0] == 0
    assert run(capsys, "check", folder)[0] == 0
    with Local(folder) as local:
        assert local.call("GET", "/ready").body["quarantined"] == []
        assert local.call("GET", M).body["trials"] == 12
        assert local.service.models["m"].unlearned == 1
        answer = local.call("POST", f"{M}/learn", {"attributes": {"f0": 0.0, "all": 0.0}, "label": "y", "id": "l4"})
        assert answer.status in (409, 422)
    assert run(capsys, "verify", folder)[0] == 0


def test_delete(folder, capsys):
    damage(folder)
    assert run(capsys, "delete", folder, "none", "--yes")[0] == 2
    assert run(capsys, "delete", folder, "m", "--yes")[0] == 0
    assert run(capsys, "check", folder)[0] == 0
    assert list(read_log(folder)) == ["n"]
    assert "MB" in run(capsys, "compact", folder)[1]
    with Local(folder) as local:
        assert [model["name"] for model in local.call("GET", "/v1/models").body["models"]] == ["n"]


@pytest.mark.parametrize("what", ["body", "checksum", "answer"])
def test_verify_finds_hidden_damage(folder, capsys, what):
    database = Editor(folder / "log.sqlite")
    if what == "body":
        database.execute("UPDATE events SET body = zeroblob(length(body)) WHERE seq = 7")
    elif what == "answer":
        database.execute("UPDATE answers SET predicted = 'none of them' WHERE seq IN (SELECT max(seq) FROM answers)")
    else:
        database.execute("UPDATE events SET crc = 0 WHERE seq = 5")
    database.close()
    assert run(capsys, "check", folder)[0] == 0  # from the snapshots
    assert run(capsys, "verify", folder)[0] == 1


def test_export(folder, capsys):
    status, told = run(capsys, "export", folder)
    assert status == 0
    events = [json.loads(line) for line in told.splitlines()]
    for name, expected in read_log(folder).items():
        own = [event for event in events if event["model"] == name]
        assert [(e["seq"], e["kind"], e["id"], e.get("label")) for e in own] == [
            (e[0], e[1], e[2], e[5]) for e in expected
        ]
        assert all(event["instance"] == e[3] for event, e in zip(own, expected, strict=True) if "instance" in event)
    since = run(capsys, "export", folder, "--model", "n", "--since", events[-3]["seq"])[1]
    assert [json.loads(line) for line in since.splitlines()] == events[-2:]


def test_incidents_are_settled(folder, capsys):
    (folder / "acknowledged").unlink()
    with Local(folder) as local:
        local.service.log._mark.write(local.service.log.identity, 999)
        seq = local.service.log.seq
    status, told = run(capsys, "check", folder)
    assert status == 1
    assert f"the log ends at event {seq}" in told
    assert run(capsys, "check", folder, "--settle")[0] == 0
    assert run(capsys, "check", folder)[0] == 0


def test_a_folder_in_use_and_no_folder(folder, capsys, tmp_path_factory):
    with Local(folder):
        status, told = run(capsys, "check", folder)
        assert status == 2
        assert "is in use" in told
    status, told = run(capsys, "verify", tmp_path_factory.mktemp("empty"))
    assert status == 2
    assert "holds no log" in told
