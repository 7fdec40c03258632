"""What operators and clients ask for beside trials: trial look-up, what waits, limits, export, probabilities."""

import asyncio
import json
import shutil
import socket
import time

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import PATIENCE, Server
from local import Local

from linmax.service import trials as trials_module
from linmax.service.keys import KeyFile
from linmax.service.service import Service

M = "/v1/models/m"
RAIN = {"rain": 1.0}
INSTANCES = {
    "attributes": {"attributes": {"a": 1.0, "b": 0.5}},
    "votes": {"votes": {"ann": "x", "bob": "y"}},
    "scores": {"scores": {"net": {"x": 1.0, "y": 0.2}}},
}
INSTANCES["mixed"] = {kind: block for found in list(INSTANCES.values()) for kind, block in found.items()}


@pytest.fixture
def local(tmp_path):
    with Local(tmp_path) as local:
        assert local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"}).status == 201
        yield local


class TestLearners:
    @pytest.mark.parametrize(
        ("learner", "kind"),
        [("auto", kind) for kind in INSTANCES]
        + [("attributes", "attributes"), ("naive-bayes", "attributes"), ("softmax", "mixed"), ("votes", "votes")],
    )
    def test_everything_works_for_all(self, local, learner, kind):
        instance, several = INSTANCES[kind], "/v1/models/s"
        assert local.call("POST", "/v1/models?wait=300", {"name": "s", "learner": learner, "kind": kind}).status == 201
        for i in range(6):
            assert local.call("POST", f"{several}/learn", instance | {"label": "xy"[i % 2]}).status == 200
        assert local.call("GET", f"{several}/weights").status == 200
        assert local.call("POST", f"{several}/explain", instance).status == 200
        assert local.call("GET", f"{several}/news").body["trials"] == 6
        told = local.call("POST", f"{several}/predict", instance | {"probabilities": True}).body
        assert {row["label"] for row in told["probabilities"]} == {"x", "y"}
        assert sum(row["probability"] for row in told["probabilities"]) == pytest.approx(1.0)

    def test_a_learner_that_does_not_take_such_instances_is_refused(self, local):
        answer = local.call("POST", "/v1/models?wait=300", {"name": "s", "learner": "naive-bayes", "kind": "votes"})
        assert answer.status == 422
        assert answer.body["field"] == "learner"


class TestTrials:
    def test_a_trial_is_found(self, local):
        local.call("POST", f"{M}/learn", {"attributes": RAIN, "label": "wet", "id": "l"})
        local.call("POST", f"{M}/predict", {"attributes": {"new": 2.0}, "id": "p"})
        found = local.call("GET", f"{M}/trials/l").body
        assert (found["state"], found["events"][0]["label"], found["events"][0]["instance"]) == (
            "learned", "wet", {"attributes": RAIN},
        )  # fmt: skip
        assert local.call("GET", f"{M}/trials/p").body["state"] == "pending"
        local.call("POST", f"{M}/label", {"id": "p", "label": "dry"})
        found = local.call("GET", f"{M}/trials/p").body
        assert [event["kind"] for event in found["events"]] == ["predict", "label"]
        assert (found["state"], found["events"][0]["served"]) == ("learned", "wet")
        assert local.call("GET", f"{M}/trials/none").status == 404

    def test_what_waits_is_listed_and_its_limit_changed(self, local):
        local.call("POST", "/v1/models?wait=300", {"name": "few", "learner": "perceptron", "max_pending": 3})
        few = "/v1/models/few"
        body = {"attributes": RAIN, "id": "p0"}
        first = local.call("POST", f"{few}/predict", body)
        for i in range(1, 4):
            answer = local.call("POST", f"{few}/predict", {"attributes": RAIN, "id": f"p{i}"})
        assert answer.status == 429
        assert local.call("POST", f"{few}/predict", body).body == first.body  # acknowledged: answered as before
        found = local.call("GET", f"{few}/predictions?limit=2").body
        assert (found["pending"], [row["id"] for row in found["predictions"]]) == (3, ["p0", "p1"])
        after = found["predictions"][-1]["seq"]
        rest = local.call("GET", f"{few}/predictions?after={after}").body["predictions"]
        assert [row["id"] for row in rest] == ["p2"]
        assert local.call("PATCH", few, {"max_pending": 4}).body["options"]["max_pending"] == 4
        assert local.call("PATCH", few, {"learner": "winnow(2)"}).status == 422
        assert local.call("POST", f"{few}/predict", {"attributes": RAIN, "id": "p3"}).status == 200

    def test_limits_outlive_a_restart(self, tmp_path):
        with Local(tmp_path) as local:
            local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
            local.call("POST", f"{M}/learn", {"attributes": RAIN, "label": "wet"})
            local.call("PATCH", M, {"max_pending": 7, "expire": 60.0})
        with Local(tmp_path) as local:
            options = local.call("GET", M).body["options"]
            assert (options["max_pending"], options["expire"]) == (7, 60.0)
            assert local.service.replayed == 0  # the snapshot still counts

    def test_predictions_expire(self, tmp_path):
        with Local(tmp_path) as local:
            local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron", "expire": 1e-3})
            for i in range(150):
                local.call("POST", f"{M}/predict", {"attributes": RAIN, "id": f"p{i}"})
            time.sleep(0.01)
            local.do(local.service.house._expire())
            assert local.call("GET", M).body["pending"] == 0
            assert local.call("GET", f"{M}/trials/p3").body["state"] == "forgotten"
            assert local.call("POST", f"{M}/label", {"id": "p3", "label": "x"}).status == 404

    def test_export(self, local):
        for i in range(450):
            local.call("POST", f"{M}/learn", {"attributes": {f"f{i % 9}": 1.0}, "label": "xy"[i % 2], "id": f"l{i}"})
        local.call("POST", "/v1/models?wait=300", {"name": "n", "learner": "perceptron"})
        local.call("POST", "/v1/models/n/learn", {"attributes": RAIN, "label": "wet"})
        lines = [json.loads(line) for line in local.call("GET", "/v1/export").body.splitlines()]
        assert [line["id"] for line in lines if line["model"] == "m"] == [f"l{i}" for i in range(450)]
        later = local.call("GET", f"/v1/export?model=m&since={lines[400]['seq']}").body.splitlines()
        assert [json.loads(line) for line in later] == lines[401:450]
        assert local.call("HEAD", "/v1/export").body == b""
        assert local.call("GET", "/v1/export?model=none").status == 404


class TestFairness:
    def test_a_long_batch_gives_way(self, local, monkeypatch):
        """Predictions of a batch are made in slices, and others are answered between them."""
        monkeypatch.setattr(trials_module.pipeline, "SLICE", -1.0)
        order = []

        async def ask(name, path, body):
            answer = await local.request("POST", path, body)
            order.append((name, answer.status))

        async def both():
            items = [{"attributes": RAIN} for _ in range(200)]
            await asyncio.gather(
                ask("batch", f"{M}/predict/batch", {"items": items}),
                ask("learn", f"{M}/learn/batch", {"items": [item | {"label": "x"} for item in items]}),
                ask("one", f"{M}/predict", {"attributes": RAIN}),
            )

        local.do(both())
        assert order[0] == ("one", 200)
        assert {status for _, status in order} == {200}
        assert local.call("GET", M).body["trials"] == 200

    def test_large_weights_are_not_copied_each_time(self, local, monkeypatch):
        local.call("POST", f"{M}/learn", {"attributes": {f"f{i}": 1.0 for i in range(500)}, "label": "x"})
        local.call("POST", f"{M}/learn", {"attributes": {f"f{i}": -1.0 for i in range(400)}, "label": "y"})
        cache = local.service.models["m"].weights
        monkeypatch.setattr("linmax.service.largest_weights.QUICK", -1.0)
        monkeypatch.setattr("linmax.service.largest_weights.COPY_LIFETIME", 1e9)
        view = local.call("GET", f"{M}/weights?limit=7").body
        assert len(view["attributes"]) == 7
        first = cache._arrays
        local.call("POST", f"{M}/learn", {"attributes": {"f1": 1.0}, "label": "x"})
        local.call("POST", f"{M}/explain", {"attributes": {"f1": 1.0, "nobody": 1.0}})
        assert cache._arrays is first
        assert local.call("GET", f"{M}/weights?limit=10001").status == 422

    def test_headers_are_limited(self, tmp_path, nursery):
        with Server(tmp_path / "data", nursery=nursery) as server:
            for flood in (b"x: " + b"y" * 200_000, b"x: y\r\n" * 40_000):
                with socket.create_connection((server.host, int(server.port)), timeout=PATIENCE) as line:
                    line.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n")
                    got = b""
                    try:
                        line.sendall(flood)
                        while piece := line.recv(1000):
                            got += piece
                    except ConnectionError:
                        pass
                    assert got.startswith(b"HTTP/1.1 431") or got == b""
            with socket.create_connection((server.host, int(server.port)), timeout=PATIENCE) as line:
                line.sendall(b"GET /" + b"a" * 100_000)
                got = line.recv(1000)
                assert got.startswith(b"HTTP/1.1 431")
            big = {"attributes": {f"a rather long name {i}": 1.0 for i in range(9000)}}
            server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
            assert server.call("POST", f"{M}/predict", big)[0] == 200  # a long body is none of that


class TestKeys:
    def test_closed_stays_closed(self, tmp_path, monkeypatch):
        monkeypatch.setattr("linmax.service.keys.RELOAD_SECONDS", -1.0)
        file = KeyFile(tmp_path)
        file.add("a", ["predict", "admin"])
        with Local(tmp_path) as local:
            assert local.call("GET", "/v1/models").status == 401
            file.revoke("a")
            assert local.call("GET", "/v1/models").status == 401
            file.path.unlink()
            assert local.call("GET", "/v1/models").status == 401
            assert local.call("GET", "/v1/models").status == 401
        with Local(tmp_path) as local:  # nor does a restart open it
            assert not local.app.gate.open
            assert local.call("GET", "/v1/models").status == 401
            key = file.add("b", ["predict"])
            assert local.call("GET", "/v1/models", key=key).status == 200

    def test_keys_of_an_older_version_close_too(self, tmp_path):
        file = KeyFile(tmp_path)
        key = file.add("a", ["predict"])
        file.closed.unlink()
        with Local(tmp_path) as local:
            assert local.call("GET", "/v1/models", key=key).status == 200
        file.path.unlink()
        with Local(tmp_path) as local:
            assert local.call("GET", "/v1/models").status == 401

    def test_every_operation_counts_against_the_rate(self, tmp_path):
        key = KeyFile(tmp_path).add("a", ["predict", "admin"], rate=20.0)
        with Local(tmp_path) as local:
            statuses = [local.call("GET", "/v1/export", key=key).status for _ in range(3)]
        assert statuses[0] == 200
        assert 429 in statuses


class TestSmallOnes:
    def test_the_folder_is_private(self, tmp_path):
        for data in (tmp_path / "new", tmp_path / "old"):
            if data.name == "old":
                data.mkdir(mode=0o755)
            with Local(data):
                assert data.stat().st_mode & 0o777 == 0o700

    def test_models_are_limited_under_concurrent_creation(self, tmp_path):
        with Local(tmp_path, max_models=3) as local:

            async def crowd():
                made = ({"name": f"m{i}", "learner": "perceptron"} for i in range(8))
                return await asyncio.gather(*(local.request("POST", "/v1/models?wait=300", body) for body in made))

            statuses = [answer.status for answer in local.do(crowd())]
            assert sorted(statuses) == [201] * 3 + [429] * 5


class TestUpkeep:
    def test_failures_are_counted_reported_and_retried(self, local, monkeypatch, caplog):
        house, calls = local.service.house, []

        async def broken():
            calls.append(1)
            if len(calls) < 3:
                raise OSError("no room")

        async def rounds():
            for _ in range(3):
                await house._attempt("purge", broken)

        local.do(rounds())
        assert house.failures["purge"] == 2
        assert caplog.text.count("purge failed and will be tried again: no room") == 1
        assert "purge works again" in caplog.text
        assert b'linmax_housekeeping_failures_total{duty="purge"} 2.0' in local.call("GET", "/metrics").body

    def test_a_signal_interrupts_the_replay(self, tmp_path):
        with Local(tmp_path / "data") as local:
            local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
            for i in range(100):
                local.call("POST", f"{M}/learn", {"attributes": RAIN, "label": "xy"[i % 2]})
        shutil.rmtree(tmp_path / "data" / "snapshots")
        local = Local(tmp_path / "data")

        async def start():
            service = Service(local.settings)
            service.stopping.set()
            await service.start()
            assert not service.ready
            await service.stop()
            return service.replayed

        assert asyncio.run(start()) == 0
        with Local(tmp_path / "data") as local:
            assert local.call("GET", M).body["trials"] == 100

    def test_no_query_walks_over_the_events_of_others(self, local):
        """Ten idle models beside a busy one cost nothing at the start: everything goes by an index."""
        queries = [
            "SELECT seq, crc FROM events WHERE model = 1 ORDER BY seq DESC LIMIT 1",
            "SELECT count(*) FROM pending WHERE model = 1",
            "SELECT seq FROM events WHERE model = 1 AND seq > 5 AND seq <= 9 ORDER BY seq",
            "SELECT seq FROM events WHERE model = 1 LIMIT 500",
            "SELECT a.seq FROM answers a JOIN events e ON e.seq = a.seq WHERE a.fault IS NOT NULL AND a.seq > 5",
        ]
        for query in queries:
            plan = local.do(_plan(local, query))
            assert not any(step.startswith("SCAN") and "INDEX" not in step for step in plan), (query, plan)


async def _plan(local, query):
    work = local.service.pipeline.call(lambda log: [row[3] for row in log.run(f"EXPLAIN QUERY PLAN {query}")])
    return await work
