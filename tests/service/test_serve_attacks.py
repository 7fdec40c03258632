"""The service as an attacker, a careless operator or a bad clock meets it."""

import multiprocessing
import os
import shutil
import socket
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

import apsw
from harness import PATIENCE, Server
from local import Local

from linmax.service import keys as keys_module
from linmax.service import offline
from linmax.service.backup import back_up
from linmax.service.keys import Gate, KeyFile
from linmax.service.log import explain_damage
from linmax.service.server import Connection

M = "/v1/models/m"
BODY = b'{"attributes": {"rain": 1}}'
TYPE = b"content-type: application/json\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n" % (len(BODY), BODY)


@pytest.fixture(scope="module")
def server(tmp_path_factory, nursery):
    with Server(tmp_path_factory.mktemp("attacks") / "data", nursery=nursery) as server:
        assert server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})[0] == 201
        assert server.call("POST", f"{M}/learn", {"attributes": {"rain": 1}, "label": "wet"})[0] == 200
        yield server


def statuses(server, content):
    """The statuses of all answers until the other end hangs up."""
    with socket.create_connection((server.host, int(server.port)), timeout=PATIENCE) as line:
        line.sendall(content)
        got = b""
        while piece := line.recv(65536):
            got += piece
    return [int(part[:3]) for part in got.split(b"HTTP/1.1 ")[1:]]


def post(*headers, tail=b"\r\n" + BODY):
    return b"POST /v1/models/m/predict HTTP/1.1\r\n" + b"".join(header + b"\r\n" for header in headers) + TYPE + tail


LENGTH = b"content-length: %d" % len(BODY)
LAST = b"connection: close"


class TestRequests:
    @pytest.mark.parametrize(
        "content",
        [
            post(b"host: localhost", LENGTH, b"transfer-encoding: chunked", tail=b"\r\n0\r\n\r\n"),
            post(b"host: localhost", LENGTH, LENGTH),
            post(b"host: localhost", b"content-length: +%d" % len(BODY)),
            post(b"host: localhost", b"content-length: " + b"9" * 5000),
            post(b"host: localhost", b"transfer-encoding: chunked, identity", tail=b"\r\n0\r\n\r\n"),
            post(b"host: localhost", b"transfer-encoding: xchunked"),
            post(b"host: evil.example", b"host: localhost", LENGTH, LAST),
            post(b"host: localhost", b"authorization: Bearer a", b"authorization: Bearer b", LENGTH, LAST),
        ],
        ids=["two lengths", "length twice", "signed", "long number", "identity", "unknown", "two hosts", "two keys"],
    )
    def test_what_two_readers_could_read_differently_is_refused(self, server, content):
        hidden = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
        assert statuses(server, content + hidden) == [400]

    def test_a_trailer_is_no_header(self, server):
        trailed = post(b"host: evil.example", LAST, tail=CHUNKED + b"host: localhost\r\n\r\n")
        assert statuses(server, trailed) == [403]

    @pytest.mark.parametrize(
        ("host", "status"),
        [
            (b"localhost:80@evil.example", 403),
            (b"localhost:", 403),
            (b"127.0.0.1.evil.example:80", 403),
            (b"LOCALHOST:123", 200),
            (b"[::1]:8471", 200),
            (b"127.0.0.1", 200),
        ],
    )
    def test_hosts(self, server, host, status):
        assert statuses(server, post(b"host: " + host, LENGTH, LAST)) == [status]

    def test_odd_requests_are_counted_and_not_logged_each(self, server):
        before = len(server.said())
        for _ in range(20):
            assert statuses(server, b"FOO / HTTP/1.1\r\n\r\n") == [400]
        upgrade = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\r\n"
        assert statuses(server, upgrade) == [200]
        assert len(server.said()) == before
        text = server.call("GET", "/metrics")[1].decode()
        count = next(line for line in text.splitlines() if 'operation="unreadable",status="400"' in line)
        assert float(count.split()[-1]) >= 20

    def test_a_client_that_takes_nothing_is_hung_up_on(self):
        """For a while, what cannot be sent waits: of a long answer, or of the last one."""
        ends = []
        for closing, paused, seconds in [(False, True, 19), (False, True, 21), (True, False, 21), (False, False, 21)]:
            calls = []
            protocol = object.__new__(Connection)
            protocol.since = None
            protocol.transport = SimpleNamespace(
                abort=lambda calls=calls: calls.append("abort"), is_closing=lambda closing=closing: closing
            )
            protocol.flow = SimpleNamespace(read_paused=False, write_paused=paused)
            protocol.expire(1000.0, patience=20)
            protocol.expire(1000.0 + seconds, patience=20)
            ends.append(calls)
        assert ends == [[], ["abort"], ["abort"], []]


class TestWork:
    def test_an_explanation_is_bounded(self, tmp_path, monkeypatch):
        monkeypatch.setattr("linmax.service.largest_weights.MOST_BEHIND", 7)
        with Local(tmp_path) as local:
            assert local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"}).status == 201
            instance = {f"f{i}": 1.0 + i for i in range(10)}
            for label in "abcde":
                local.call("POST", f"{M}/learn", {"attributes": instance, "label": label})
            told = local.call("POST", f"{M}/explain", {"attributes": instance}).body
            shown = [abs(row["weight"]) for row in told["weights"]["attributes"]]
            assert len(shown) == 7
            assert shown == sorted(shown, reverse=True)
            assert shown[0] == max(np_abs(local))
            assert len(told["scores"]) == 5

    def test_asking_for_labels_takes_no_memory(self, tmp_path):
        with Local(tmp_path) as local:
            options = {"name": "m", "learner": "S(b=0.1)-perceptron"}
            assert local.call("POST", "/v1/models?wait=300", options).status == 201
            local.call("POST", f"{M}/learn", {"attributes": {"a": 1.0}, "label": "x"})
            for i in range(5):
                new = {f"{i}-{j}": 1.0 for j in range(500)}
                assert local.call("POST", f"{M}/wants_label", {"attributes": new}).status == 200
            assert len(local.service.models["m"].learner.attributes) == 1


def np_abs(local):
    return abs(local.service.models["m"].learner.weights.arrays.attributes).ravel().tolist()


def add_key(folder, name):
    KeyFile(folder).add(name, ["predict"])


class TestKeys:
    def test_keys_made_at_the_same_time_are_all_kept(self, tmp_path, monkeypatch):
        slow = keys_module.msgspec.json.decode
        monkeypatch.setattr(keys_module.msgspec.json, "decode", lambda *a, **k: (time.sleep(0.05), slow(*a, **k))[1])
        KeyFile(tmp_path).add("first", ["predict"])
        many = [multiprocessing.get_context("fork").Process(target=add_key, args=(tmp_path, f"k{i}")) for i in range(5)]
        for one in many:
            one.start()
        for one in many:
            one.join()
        assert {key.name for key in KeyFile(tmp_path).read()} == {"first", *(f"k{i}" for i in range(5))}

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
    def test_keys_made_by_root_belong_to_the_service(self, tmp_path):
        data = tmp_path / "data"
        data.mkdir(mode=0o700)
        os.chown(data, 12345, 12346)
        KeyFile(data).add("shop", ["predict"])
        KeyFile(data).revoke("shop")
        assert {(path.stat().st_uid, path.stat().st_gid) for path in data.iterdir()} == {(12345, 12346)}

    def test_keys_that_cannot_be_read(self, tmp_path, monkeypatch, caplog):
        text = KeyFile(tmp_path).add("reader", ["predict"])
        gate = Gate(tmp_path)

        def refuse(_path):
            raise PermissionError(13, "Permission denied")

        KeyFile(tmp_path).add("other", ["predict"])
        monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
        gate.reload()
        assert "the keys stay as they were" in caplog.text
        assert gate.admit(f"Bearer {text}".encode(), "predict").name == "reader"
        with pytest.raises(ValueError, match="cannot be read: Permission denied; it must belong to this user"):
            Gate(tmp_path)


class TestOperators:
    @pytest.mark.parametrize("harm", ["moved", "overwritten"])
    def test_a_folder_that_is_replaced_under_a_running_service(self, tmp_path, nursery, harm):
        """Nothing is acknowledged that the next start would not find."""
        data, backup = tmp_path / "data", tmp_path / "backup"
        with Server(data, nursery=nursery) as server:
            assert server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})[0] == 201
            learn = {"attributes": {"rain": 1.0}, "label": "wet"}
            assert server.call("POST", f"{M}/learn", learn)[0] == 200
            back_up(data, backup)
            assert server.call("POST", f"{M}/learn", learn)[0] == 200
            if harm == "moved":
                data.rename(tmp_path / "old")
                shutil.copytree(backup, data)
            else:
                time.sleep(0.05)
                shutil.copytree(backup, data, dirs_exist_ok=True)
            with pytest.raises(OSError):  # noqa: PT011 - it hangs up
                server.call("POST", f"{M}/learn", learn)
            server.process.wait()
            assert "stop the service before" in server.said()

    def test_a_backup_is_put_back_over_a_folder_that_was_killed(self, tmp_path, nursery):
        """The WAL that the kill left is of the other log, and must not be mixed with the backup."""
        data, backup = tmp_path / "data", tmp_path / "backup"
        learn = {"attributes": {f"f{i}": 1.0 for i in range(200)}, "label": "wet"}
        with Server(data, nursery=nursery) as server:
            assert server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})[0] == 201
            for _ in range(20):
                assert server.call("POST", f"{M}/learn", learn)[0] == 200
            back_up(data, backup)
            for count in (200, 10):  # a start and a stop in between, so that the WAL does not have everything
                for i in range(count):
                    body = {"attributes": {f"g{i}": 1.0}, "label": f"c{i}"}
                    assert server.call("POST", f"{M}/learn", body)[0] == 200
                server.stop() if count == 200 else server.kill()
                if count == 200:
                    server.start()
            assert (data / "log.sqlite-wal").stat().st_size > 0
            shutil.copytree(backup, data, dirs_exist_ok=True)
            server.start()
            assert server.call("GET", M)[1]["trials"] == 20
            assert server.call("POST", f"{M}/learn", learn)[0] == 200
            incidents = server.call("GET", "/ready")[1]["incidents"]
            assert any("the WAL of the log before is set aside" in told for told in incidents)
            server.stop()
            report = offline.verify(data)
            assert report.good, report.lines
            assert not (data / "backup").exists()

    def test_damaged_log_is_reported(self, tmp_path):
        with Local(tmp_path) as local:
            assert local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"}).status == 201
            for i in range(50):
                local.call("POST", f"{M}/learn", {"attributes": {f"f{i}": 1.0}, "label": "x"})
        path = tmp_path / "log.sqlite"
        content = bytearray(path.read_bytes())
        for page in range(2 * 4096, len(content), 4096):
            content[page : page + 50] = b"\xff" * 50
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is damaged .*; restore a backup"):
            offline.check(tmp_path)

    def test_a_disk_that_cannot_be_written_to(self, tmp_path):
        with (
            pytest.raises(OSError, match="cannot be used: disk I/O error; its disk must let this user write"),
            explain_damage(apsw.Connection(":memory:"), tmp_path / "log.sqlite"),
        ):
            raise apsw.IOError("disk I/O error")

    def test_late_clock_is_reported(self, tmp_path, monkeypatch, caplog):
        with Local(tmp_path) as local:
            assert local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"}).status == 201
        real = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: real() - 86_400 * 10**9)
        with Local(tmp_path) as local:
            assert local.call("GET", "/ready").status == 200
        assert "the clock is 24.0 hours behind the last event" in caplog.text
