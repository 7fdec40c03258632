"""Creating models: one at a time, repeated without harm, while kernels are compiled."""

import http.client
import json
import threading
import time

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import PATIENCE, Server, exchange
from local import Local

LEARNERS = ("perceptron", "pa", "arow", "winnow(1.1)", "A-perceptron", "romma", "alma(2)", "auto")


def test_a_repeated_request_gets_the_same_model(tmp_path):
    asked = {"name": "m", "learner": "perceptron", "classes": ["x", "y"]}
    with Local(tmp_path) as local:
        first = local.call("POST", "/v1/models", asked)
        assert first.status == 201
        assert local.call("POST", "/v1/models", asked).body == first.body
        assert local.call("POST", "/v1/models", asked | {"classes": ["x"]}).status == 409
        learn = {"attributes": {"a": 1.0}, "label": "x"}
        assert local.call("POST", "/v1/models/m/learn", learn).status == 200
        assert local.call("POST", "/v1/models", asked).status == 409  # it is at work


def create_patiently(server, name, learner):
    """Ask for a model with a short timeout, again and again."""
    body = {"name": name, "learner": learner}
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        connection = http.client.HTTPConnection(server.host, int(server.port), timeout=0.7)
        try:
            return exchange(connection, "POST", "/v1/models", body)
        except TimeoutError:
            continue
        finally:
            connection.close()
    raise AssertionError(f"{name} is not created")


def test_eight_models_from_clients_that_time_out_while_kernels_compile(tmp_path, monkeypatch):
    """The cache of kernels is empty; every model is created once, and learns."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    answers = {}

    def work(server, i, learner):
        answers[i] = create_patiently(server, f"m{i}", learner)
        connection = server.connect()
        for t in range(40):
            body = {"attributes": {"f": 0.5, "g": t % 3 * 0.2}, "label": "xyz"[t % 3]}
            assert exchange(connection, "POST", f"/v1/models/m{i}/learn", body)[0] == 200
        connection.close()

    with Server(tmp_path / "data") as server:
        threads = [threading.Thread(target=work, args=(server, i, name)) for i, name in enumerate(LEARNERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {status for status, _ in answers.values()} == {201}, answers
        models = server.call("GET", "/v1/models")[1]["models"]
        assert {model["name"]: model["trials"] for model in models} == {f"m{i}": 40 for i in range(8)}
        assert server.stop() == 0


def test_the_address_is_announced_once_the_server_listens(tmp_path, nursery):
    with Server(tmp_path / "data", nursery=nursery) as server:
        server.kill()
        server.start(wait=False)
        told = json.loads((tmp_path / "data.json").read_text())
        connection = http.client.HTTPConnection(*told["address"].removeprefix("http://").split(":"), timeout=PATIENCE)
        assert exchange(connection, "GET", "/health")[0] == 200  # at the first attempt
        connection.close()
