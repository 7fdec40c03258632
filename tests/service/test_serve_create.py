"""Creating models: one at a time, repeated without harm, while kernels are compiled."""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import PATIENCE, Server, exchange
from local import Local

from linmax import cli

MODELS = "/v1/models"
LEARNERS = ("perceptron", "pa", "arow", "winnow(1.1)", "A-perceptron", "romma", "alma(2)", "auto")


def test_a_repeated_request_gets_the_same_model(tmp_path):
    asked = {"name": "m", "learner": "perceptron", "classes": ["x", "y"]}
    with Local(tmp_path) as local:
        first = local.call("POST", f"{MODELS}?wait=300", asked)
        assert first.status == 201
        again = local.call("POST", MODELS, asked)
        assert (again.status, again.body) == (200, first.body)
        assert local.call("POST", MODELS, asked | {"classes": ["x"]}).status == 409
        learn = {"attributes": {"a": 1.0}, "label": "x"}
        assert local.call("POST", f"{MODELS}/m/learn", learn).status == 200
        assert local.call("PATCH", f"{MODELS}/m", {"max_pending": 7}).status == 200
        again = local.call("POST", MODELS, asked)
        assert (again.status, again.body["trials"]) == (200, 1)  # it is at work, and may be asked for again


@pytest.fixture
def slow_compiler(monkeypatch):
    """Compilation that takes until the event is set."""
    done = threading.Event()
    monkeypatch.setattr("linmax.service.service.warm_up", lambda _: done.wait(PATIENCE))
    yield done
    done.set()


def test_create_reports_compiling_and_blocks_nobody(tmp_path, slow_compiler):
    asked = {"name": "slow", "learner": "winnow(1.5)", "kind": "votes"}
    with Local(tmp_path) as local:
        slow_compiler.set()
        assert local.call("POST", MODELS, {"name": "m", "learner": "perceptron"}).status == 201
        slow_compiler.clear()
        first = local.call("POST", f"{MODELS}?wait=0", asked)
        assert (first.status, first.body["state"], first.headers["retry-after"]) == (202, "compiling", "1")
        waiting = local.call("POST", MODELS, asked | {"name": "next"}, headers={"prefer": "respond-async, wait=0"})
        assert waiting.status == 202
        assert local.call("POST", f"{MODELS}?wait=0.01", asked).status == 202
        assert local.call("POST", MODELS, asked | {"tie": "largest"}).status == 409
        assert local.call("GET", f"{MODELS}/slow").body["state"] == "compiling"
        states = {model["name"]: model["state"] for model in local.call("GET", MODELS).body["models"]}
        assert states == {"m": "ready", "slow": "compiling", "next": "compiling"}
        assert local.call("GET", "/ready").body["compiling"] == ["next", "slow"]
        assert b'linmax_compiling{model="slow"} 1.0' in local.call("GET", "/metrics").body
        early = local.call("POST", f"{MODELS}/slow/learn", {"votes": {"a": "x"}, "label": "x"})
        assert (early.status, early.headers["retry-after"]) == (503, "1")
        given = {"attributes": {"a": 1.0}}
        assert local.call("POST", f"{MODELS}/m/learn", given | {"label": "x"}).status == 200
        assert local.call("POST", f"{MODELS}/m/predict", given | {"probabilities": True}).status == 200
        slow_compiler.set()
        assert local.call("POST", f"{MODELS}?wait=300", asked).status in (200, 201)
        assert local.call("POST", f"{MODELS}?wait=300", asked | {"name": "next"}).status in (200, 201)
        assert local.call("GET", f"{MODELS}/slow").body["state"] == "ready"


def test_start_reports_progress(tmp_path, slow_compiler):
    slow_compiler.set()
    with Local(tmp_path) as local:
        assert local.call("POST", MODELS, {"name": "m", "learner": "perceptron"}).status == 201
    slow_compiler.clear()
    local = Local(tmp_path)
    begun = threading.Thread(target=local.__enter__)
    begun.start()
    end = time.monotonic() + PATIENCE
    while not (hasattr(local, "service") and "compiling for" in local.service.activity):
        assert time.monotonic() < end
        time.sleep(0.01)
    for path in ("/ready", f"{MODELS}/m"):
        answer = local.call("GET", path)
        assert answer.status == 503
        assert "compiling for model m" in json.dumps(answer.body)
    slow_compiler.set()
    begun.join()
    assert local.call("GET", "/ready").status == 200
    local.__exit__()


@pytest.mark.parametrize(
    ("learner", "kind"),
    [("auto", "attributes"), ("auto", "votes"), ("perceptron", "mixed"), ("AR-winnow(1.5)", "votes")],
)
def test_no_request_waits_for_the_compiler(learner, kind):
    """After the warm-up of a learner nothing more is compiled or loaded, whatever is asked of it."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("late_kernels.py"), learner, kind],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


def test_what_models_need_can_be_compiled_beforehand(tmp_path, capsys):
    with Local(tmp_path / "data") as local:
        made = {"name": "m", "learner": "winnow(1.5)", "kind": "votes"}
        assert local.call("POST", f"{MODELS}?wait=300", made).status == 201
        assert cli.main(["serve", "warm", "--data", str(tmp_path / "data")]) == 0  # while it is served
    assert cli.main(["serve", "warm", "perceptron", "--kinds", "votes,scores"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" in ")[0] for line in lines] == [
        "compiled for 1 kinds of models", "compiled for 2 kinds of models"
    ]  # fmt: skip
    for wrong in (["nonsense"], ["--kinds", "words"], ["--data", str(tmp_path / "none")]):
        assert cli.main(["serve", "warm", *wrong]) == 2


def create_patiently(server, name, learner):
    """Ask for a model with a short timeout, again and again."""
    body = {"name": name, "learner": learner}
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        connection = http.client.HTTPConnection(server.host, int(server.port), timeout=0.7)
        try:
            return exchange(connection, "POST", "/v1/models?wait=300", body)
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
        assert {status for status, _ in answers.values()} <= {200, 201}, answers
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
