"""Nobody starves others: keys before bodies, limited connections and bodies, sizes before work; a private folder."""

import json
import os
import socket

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import PATIENCE, Server
from local import Local

from linmax import cli
from linmax.service.folder import private_folder
from linmax.service.keys import KeyFile

M = "/v1/models/m"


def connected(server):
    return socket.create_connection((server.host, int(server.port)), timeout=PATIENCE)


@pytest.mark.parametrize("verb", ["predict", "learn", "label", "learn/batch"])
def test_a_key_is_checked_before_the_body_arrives(tmp_path, nursery, verb):
    (tmp_path / "data").mkdir()
    KeyFile(tmp_path / "data").add("somebody", ["predict"])
    with Server(tmp_path / "data", nursery=nursery) as server, connected(server) as line:
        head = f"POST {M}/{verb} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
        line.sendall(head.encode())
        assert line.recv(12) == b"HTTP/1.1 401"


def test_connections_are_limited(tmp_path, nursery):
    with Server(tmp_path / "data", "--max-connections", "10", nursery=nursery) as server:
        lines = [connected(server) for _ in range(10)]
        for line in lines:
            line.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert line.recv(12) == b"HTTP/1.1 200"
        with connected(server) as more:
            answer = more.makefile("rb").read()  # to its end: the server hangs up
            assert answer.startswith(b"HTTP/1.1 503")
            assert b"retry-after: 1" in answer
        for line in lines:
            line.close()
        server.until(lambda: server.call("GET", "/health")[0] == 200)


def test_bodies_that_arrive_at_a_time_are_limited(tmp_path):
    large = {"attributes": {f"a rather long name {i}": 1.0 for i in range(2000)}}
    with Local(tmp_path, max_arriving=10**5) as local:
        assert local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"}).status == 201
        assert local.call("POST", f"{M}/predict", large).status == 200
        local.app._arriving = 10**5 - 1000  # others are arriving
        refused = local.call("POST", f"{M}/predict", large)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert local.call("POST", f"{M}/predict", {"attributes": {"a": 1.0}}).status == 200
        assert local.app._arriving == 10**5 - 1000


@pytest.mark.parametrize(
    ("kind", "block", "count"),
    [("attributes", [0] * 500_000, 500_000), ("votes", ["a"] * 240_000, 240_000), ("votes", [None] * 200_000, 200_000)],
)
def test_an_instance_is_counted_before_anything_is_done_with_it(tmp_path, kind, block, count, monkeypatch):
    touched = []
    for name in ("_attributes", "_votes"):
        monkeypatch.setattr(f"linmax.service.bodies.{name}", lambda *given: touched.append(given))
    with Local(tmp_path) as local:
        made = {"name": "m", "learner": "perceptron", "kind": kind}
        assert local.call("POST", "/v1/models?wait=300", made).status == 201
        raw = json.dumps({kind: block, "label": "x"}, separators=(",", ":")).encode()
        answer = local.call("POST", f"{M}/learn", raw=raw)
        assert (answer.status, answer.body["field"]) == (422, kind)
        assert f"the instance has {count} features, this model takes at most 10000" in answer.body["detail"]
        assert not touched


def test_all_files_belong_to_the_owner_alone(tmp_path, nursery):
    data = tmp_path / "data"
    with Server(data, nursery=nursery) as server:
        assert server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})[0] == 201
        assert server.call("POST", f"{M}/learn", {"attributes": {"a": 1.0}, "label": "x"})[0] == 200
        assert server.call("POST", f"{M}/copy", {"name": "twin"})[0] == 201
        server.stop()
    before = os.umask(0o022)
    try:
        assert cli.main(["serve", "keys", "add", "--data", str(data), "somebody"]) == 0
    finally:
        os.umask(before)
    found = {path.name: path.stat().st_mode & 0o077 for path in data.rglob("*")}
    assert {"log.sqlite", "keys.json", "closed", "acknowledged", "snapshots"} <= found.keys()
    assert set(found.values()) == {0}, found
    (data / "log.sqlite").chmod(0o644)
    private_folder(data)
    assert (data / "log.sqlite").stat().st_mode & 0o777 == 0o600


def test_links_and_files_of_others_are_refused(tmp_path):
    data = tmp_path / "data"
    private_folder(data)
    (tmp_path / "elsewhere").write_text("[]")
    (data / "keys.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"keys.json must belong to the folder, .* got a symbolic link; remove it"):
        private_folder(data)
    (data / "keys.json").unlink()
    (tmp_path / "link").symlink_to(data)
    private_folder(tmp_path / "link")  # the folder itself may be one, as systemd makes it
    if os.geteuid() == 0:
        (data / "mine").write_text("")
        os.chown(data / "mine", 12345, 12345)
        with pytest.raises(ValueError, match="got the user 12345; remove it"):
            private_folder(data)
