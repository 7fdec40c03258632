"""Clients of every sort: ours, slow ones, ones that hang up, a thousand at once; and the command line."""

import asyncio
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import HERE, PATIENCE, Server, free_port, read_log

import linmax
from linmax import cli, client
from linmax.client import AsyncClient, Client, ServiceError
from linmax.service import schemas
from linmax.service.keys import KeyFile
from linmax.service.server import Connection

M = "/v1/models/m"


@pytest.fixture(scope="module")
def server(tmp_path_factory, nursery):
    with Server(tmp_path_factory.mktemp("clients") / "data", nursery=nursery) as server:
        assert server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})[0] == 201
        yield server


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("Limits", "Limits"),
        ("ModelOptions", "ModelOptions"),
        ("Summary", "Summary"),
        ("Problem", "Problem"),
        ("Probability", "Probability"),
        ("Result", "PredictedItem LearnedItem"),
        ("Weight", "Weight"),
        ("Weights", "WeightsView"),
        ("Score", "Score"),
        ("Explanation", "ExplanationView"),
        ("WaitingPrediction", "WaitingPrediction"),
        ("Trial", "TrialView"),
        ("PanelLine", "PanelLineView"),
        ("Panel", "PanelView"),
        ("Imported", "Imported"),
    ],
)
def test_the_types_of_the_client_are_those_of_the_service(ours, theirs):
    known = set(getattr(client, ours).__annotations__) | ({"name"} if ours == "Limits" else set())  # it is a parameter
    assert known == {field for name in theirs.split() for field in getattr(schemas, name).__struct_fields__}


class TestOurs:
    def test_a_whole_life(self, server, tmp_path):
        with Client(server.address) as client:
            assert client.create("life", "winnow(1.5)", kind="votes")["name"] == "life"
            assert client.learn("life", votes={"ann": "x", "bob": "y"}, label="x") == "x"
            assert client.predict("life", votes={"ann": "x"}) == "x"
            id, label = client.keep("life", votes={"ann": "y", "bob": "x"})
            assert client.learn("life", id=id, label="y") == label
            client.predict("life", votes={"ann": "y"}, id="mine")
            client.forget("life", "mine")
            results = client.learn_many("life", [{"votes": {"ann": "y"}, "label": "y"}, {"votes": {}, "label": 3}])
            assert results[0]["label"] == "y"
            assert results[1]["error"]["status"] == 422
            assert [row["label"] for row in client.predict_many("life", [{"votes": {"ann": "x"}}])] == ["x"]
            client.predict_many("life", [{"votes": {"ann": "x"}, "id": "batch"}])
            assert client.label_many("life", [{"id": "batch", "label": "x"}])[0]["mistake"] is False
            assert client.weights("life")["voters"][0]["name"] == "ann"
            assert client.explain("life", votes={"ann": "x"})["label"] == "x"
            assert client.curve("life")[-1][0] == client.model("life")["trials"] == 4
            file = tmp_path / "life.linmax"
            file.write_bytes(client.snapshot("life"))
            assert linmax.Learner.load(file).predict(votes={"ann": "x"}) == "x"
            assert client.upload("again", client.snapshot("life"))["trials"] == 4
            client.create("told", "winnow(1.5)", kind="votes")
            assert client.import_events(client.export("life"), "told")["stored"] == len(
                client.export("told").splitlines()
            )
            assert client.weights("told") == client.weights("life")
            assert {model["name"] for model in client.models()} >= {"life", "m"}
            assert set(client.predict_proba("life", votes={"ann": "x"})) == {"x", "y"}
            id, _ = client.keep("life", votes={"ann": "x"})
            assert [row["id"] for row in client.waiting("life")] == [id]
            assert client.trial("life", id)["state"] == "pending"
            assert client.change("life", max_pending=5)["options"]["max_pending"] == 5
            client.delete("life", client.ask_to_delete("life"))
            with pytest.raises(ServiceError, match="404: no model is called 'life'") as refused:
                client.model("life")
            assert refused.value.status == 404
            with pytest.raises(ServiceError, match="404"):
                client.ask_to_delete("life")

    def test_idle_connection_that_was_closed(self, server):
        with Client(server.address) as client:
            client.models()
            client._own.connection.sock.shutdown(socket.SHUT_RDWR)  # as the service does after some idle seconds
            assert client.create("rested", "perceptron")["name"] == "rested"
            word = client.ask_to_delete("rested")
            client._own.connection.sock.shutdown(socket.SHUT_RDWR)
            client.delete("rested", word)

        async def rested():
            async with AsyncClient(server.address) as client:
                await client.models()
                client._idle[0][1].transport.abort()
                return await client.create("rested", "perceptron")

        assert asyncio.run(rested())["name"] == "rested"

    def test_async(self, server):
        async def crowd():
            async with AsyncClient(server.address) as client:
                await asyncio.gather(*(client.learn("m", {f"f{i % 5}": 1.0}, label=f"c{i % 5}") for i in range(60)))
                labels = await asyncio.gather(*(client.predict("m", {f"f{i}": 1.0}) for i in range(5)))
                with pytest.raises(ServiceError, match="422"):
                    await client.predict("m", votes={"a": "b"})
                return labels, (await client.model("m"))["trials"]

        before = server.call("GET", M)[1]["trials"]
        labels, trials = asyncio.run(crowd())
        assert labels == [f"c{i}" for i in range(5)]
        assert trials == before + 60

    def test_retries_over_restart_learn_once(self, tmp_path, nursery):
        with Server(tmp_path / "data", "--port", str(free_port()), nursery=nursery) as server:
            server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
            done = []

            def work():
                with Client(server.address, retries=100) as client:
                    for i in range(120):
                        client.learn("m", {f"f{i % 7}": 1.0}, label=f"c{i % 3}")
                        done.append(i)

            thread = threading.Thread(target=work)
            thread.start()
            for goal in (20, 60, 90):
                while len(done) < goal and thread.is_alive():
                    time.sleep(0.002)
                server.kill()
                server.start()
            thread.join()
            assert server.call("GET", M)[1]["trials"] == 120
            server.stop()
            assert len(read_log(tmp_path / "data")["m"]) == 120

    def test_bad_addresses(self):
        with pytest.raises(ValueError, match="address must be http://HOST:PORT, got 'localhost'"):
            Client("localhost")
        with pytest.raises(ConnectionRefusedError):
            Client("http://127.0.0.1:1", retries=0).models()


class TestOthers:
    def test_a_thousand_connections(self, server):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        count = min(1000, most - 200)
        before = server.call("GET", M)[1]["trials"]
        sockets = []
        try:
            body = json.dumps({"attributes": {"a": 1.0}, "label": "c0"}).encode()
            head = f"POST {M}/learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            for _ in range(count):  # the first may be answered while the last connect; all of them stay
                sockets.append(socket.create_connection((server.host, int(server.port)), timeout=PATIENCE))
                sockets[-1].sendall(head.encode() + body)
            answers = [each.recv(4000) for each in sockets]
            assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)
            assert server.call("GET", M)[1]["trials"] == before + count
        finally:
            for each in sockets:
                each.close()

    def test_hanging_up_does_not_lose_or_stop_anything(self, server):
        body = json.dumps({"attributes": {"a": 1.0}, "label": "c0", "id": "hung-up"}).encode()
        head = f"POST {M}/learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        for content in (head.encode() + body, head.encode() + body[:10], head.encode()[:30]):
            with socket.create_connection((server.host, int(server.port))) as one:
                one.sendall(content)
        stream = socket.create_connection((server.host, int(server.port)))
        stream.sendall(b"GET /v1/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"application/x-ndjson" in stream.recv(4000)
        stream.close()
        status, answer = server.call("POST", f"{M}/learn", {"attributes": {"a": 1.0}, "label": "c0", "id": "hung-up"})
        assert (status, answer["label"]) == (200, "c0")

    def test_slow_clients_are_hung_up_on(self):
        """A request that never ends is cut off; not one that waits for its answer, or for others before it."""
        now, ends = 1000.0, []
        for since, paused in [(970.0, False), (970.0, True), (990.0, False), (None, False)]:
            calls = []
            transport = SimpleNamespace(abort=lambda calls=calls: calls.append("abort"), is_closing=lambda: False)
            protocol = object.__new__(Connection)
            protocol.since, protocol.transport = since, transport
            protocol.flow = SimpleNamespace(
                read_paused=paused, write_paused=False
            )  # we do not read, so the client cannot go on
            protocol.expire(now, patience=20)
            ends.append(calls)
        assert ends == [["abort"], [], [], []]

    def test_an_idle_connection_is_closed(self, server):
        with socket.create_connection((server.host, int(server.port)), timeout=PATIENCE) as one:
            one.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert one.recv(4000).startswith(b"HTTP/1.1 200")
            while one.recv(4000):
                pass


class TestProcess:
    def test_stops_in_good_order(self, tmp_path):
        """In an interpreter of its own: drains, saves, exits with 0; streams do not hold it back."""
        server = Server(tmp_path / "data")
        with server:
            server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
            server.call("POST", f"{M}/learn", {"attributes": {"a": 1.0}, "label": "x"})
            stream = socket.create_connection((server.host, int(server.port)))
            stream.sendall(b"GET /v1/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
            stream.recv(100)
            assert server.stop() == 0
            stream.close()
        assert [path.name for path in (tmp_path / "data" / "snapshots").iterdir()] == ["1-2.linmax"]
        lines = [json.loads(line) for line in server.said().splitlines() if line.startswith("{")]
        messages = [line["message"].split(":")[0] for line in lines if "is compiled" not in line["message"]]
        assert messages == ["ready", "compiling for model m", "model m created", "stopped"]
        assert "no keys: open to everybody on this machine, and to nobody else" in server.said()

    def test_a_failed_sync_ends_it(self, tmp_path):
        """The disk stops answering: exit status 74 and no acknowledgement; after a restart nothing is missing."""
        marker = tmp_path / "broken"
        server = Server(tmp_path / "data", script=HERE / "failing.py")
        os.environ["LINMAX_TEST_MARKER"] = str(marker)
        try:
            with server:
                server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
                assert (
                    server.call("POST", f"{M}/learn", {"attributes": {"a": 1.0}, "label": "x", "id": "safe"})[0] == 200
                )
                marker.touch()
                with pytest.raises((OSError, ConnectionError)):
                    server.call("POST", f"{M}/learn", {"attributes": {"a": 1.0}, "label": "x", "id": "doubtful"})
                assert server.process.wait(PATIENCE) == 74
        finally:
            del os.environ["LINMAX_TEST_MARKER"]
        assert "storage failed, the process ends" in server.said()
        marker.unlink()
        with Server(tmp_path / "data") as server:
            answer = server.call("POST", f"{M}/label", {"id": "safe", "label": "x"})
            assert answer[0] == 200

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to mount a small tmpfs")
    def test_a_really_full_disk(self, tmp_path):
        done = subprocess.run(
            ["unshare", "-m", sys.executable, str(HERE / "small_disk.py"), str(tmp_path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])},
            capture_output=True, text=True, check=False, timeout=2 * PATIENCE,
        )  # fmt: skip
        if "cannot mount" in done.stderr:
            pytest.skip("cannot mount a tmpfs here")
        assert done.returncode == 0, done.stderr[-3000:]
        figures = json.loads(done.stdout.splitlines()[-1])
        assert figures["full"] == 507
        assert figures["acknowledged"] == figures["recovered"] == figures["again"] > 50
        assert figures["stopped"] == 0
        assert figures["predict"] == 200

    def test_second_server_is_refused(self, server):
        command = [sys.executable, "-m", "linmax.cli", "serve", "--data", str(server.data), "--port", "0"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE)
        assert done.returncode == 2
        assert "is in use by another linmax serve" in done.stderr


class TestCommandLine:
    def run(self, *arguments):
        return cli.main(["serve", *map(str, arguments)])

    def test_keys(self, tmp_path, capsys):
        assert self.run("keys", "add", "ann", "--data", tmp_path, "--scopes", "predict,learn", "--rate", "5") == 0
        key = capsys.readouterr().out.strip()
        assert key.startswith("lmx_")
        assert len(key) == 47
        assert self.run("keys", "add", "ann", "--data", tmp_path) == 2
        assert "a key called 'ann' exists" in capsys.readouterr().err
        assert self.run("keys", "list", "--data", tmp_path) == 0
        assert capsys.readouterr().out.startswith("ann: predict,learn, 5 trials per second, sha256 ")
        assert self.run("keys", "revoke", "bob", "--data", tmp_path) == 2
        assert "no key is called 'bob'; there are: ann" in capsys.readouterr().err
        assert self.run("keys", "revoke", "ann", "--data", tmp_path) == 0
        assert self.run("keys", "list", "--data", tmp_path) == 0
        assert "revoked" in capsys.readouterr().out
        assert KeyFile(tmp_path).read()[0].revoked

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "--data DIR is missing"),
            (
                ["--workers", "4", "--data", "x"],
                "--workers must be 1, got 4: a learner takes one label after the other",
            ),
            (
                ["--data", "{}", "--host", "0.0.0.0"],
                "host must be a loopback address while there is no key, got '0.0.0.0'",
            ),
            (["--data", "{}", "--queue", "0"], "--queue must be >= 1, got 0"),
            (["--data", "{}", "--port", "99999"], "cannot listen on 127.0.0.1, port 99999"),
            (
                ["keys", "add", "a", "--data", "{}", "--scopes", "fly"],
                "--scopes must be of predict, learn, admin, got 'fly'",
            ),
            (["keys", "add", "a", "--data", "{}", "--rate", "-1"], "--rate must be a number > 0, got -1"),
            (["keys", "add", "a", "--data", "{}", "--rate", "inf"], "--rate must be a number > 0, got inf"),
            (["keys", "add", "a\n", "--data", "{}"], "NAME must be 1 to 100 printable characters"),
            (["--data", "{}", "--memory", "-1"], "--memory must be a size such as 500MB or 2GB, got '-1'"),
        ],
    )
    def test_mistakes(self, tmp_path, capsys, arguments, message):
        assert self.run(*(argument.format(tmp_path) for argument in arguments)) == 2
        assert message in capsys.readouterr().err

    def test_interrupt(self, tmp_path, nursery):
        with Server(tmp_path / "data", nursery=nursery) as server:
            server.process.send_signal(signal.SIGINT)
            server.process.wait(PATIENCE)
        assert "stopped" in server.said()
