"""What would keep all clients waiting at once: garbage, probes of a learner, and the weights of a large one."""

import gc

import numpy as np
import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from local import Local

from linmax.models.weights import Columns
from linmax.service import largest_weights as weights
from linmax.service import served_model as model_module
from linmax.service.schemas import BodyReader, LearnBody

M = "/v1/models/m"
RAIN = {"attributes": {"rain": 1.0, "wind": 0.5}}
VOTES = {"votes": {"ann": "x", "bob": "y"}}


def make(local, learner="perceptron", kind="attributes"):
    assert local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": learner, "kind": kind}).status == 201


def garbage_of(local, verb, items):
    """How many objects a hundred requests leave to the garbage collector, beyond what none leave."""

    async def ask(count):
        trials, model = local.service.trials, local.service.model("m")
        body = BodyReader(LearnBody).read
        for i in range(count):
            bodies = [body(b'{"attributes": {"rain": 1}, "label": "%c"}' % b"xy"[i % 2]) for _ in range(items)]
            assert len(await trials.each(model, bodies, getattr(trials, verb))) == items

    gc.collect()
    gc.disable()
    try:
        local.do(ask(1))
        gc.collect()
        local.do(ask(100))
        return gc.collect()
    finally:
        gc.enable()


@pytest.mark.parametrize("items", [1, 3])
def test_requests_leave_no_cycles(tmp_path, items):
    with Local(tmp_path) as local:
        make(local)
        assert garbage_of(local, "learn", items) < 100


def test_a_model_is_probed_before_it_serves(tmp_path):
    with Local(tmp_path) as local:
        model_module.is_fragile.cache_clear()
        make(local)
        local.call("POST", f"{M}/learn", {**RAIN, "label": "x"})
        assert model_module.is_fragile.cache_info().misses == 1
    model_module.is_fragile.cache_clear()
    with Local(tmp_path):
        assert model_module.is_fragile.cache_info().misses == 1


@pytest.mark.parametrize(
    ("learner", "kind"), [("perceptron", "attributes"), ("auto", "attributes"), ("winnow(1.5)", "votes")]
)
def test_the_weights_of_a_large_model_are_found_in_a_thread(tmp_path, monkeypatch, learner, kind):
    monkeypatch.setattr("linmax.service.largest_weights.SMALL_STATE", 0)
    with Local(tmp_path) as local:
        make(local, learner, kind)
        instance = RAIN if kind == "attributes" else VOTES
        for label in "xyxxy":
            assert local.call("POST", f"{M}/learn", {**instance, "label": label}).status == 200
        model = local.service.models["m"]
        expected = model.learner.weights.arrays
        found = local.do(model.weights.arrays(model.learner, model.applied))
        for name in ("voters", "raters", "thresholds", "attributes"):
            assert np.array_equal(getattr(found, name), getattr(expected, name))
        assert local.call("POST", f"{M}/explain", instance).status == 200


def test_a_learner_without_weights_is_not_asked_each_time(tmp_path, monkeypatch):
    asked = []

    async def refuse(_learner):
        asked.append(1)
        raise ValueError("it has none")

    monkeypatch.setattr("linmax.service.largest_weights._weights", refuse)
    with Local(tmp_path) as local:
        make(local)
        assert [local.call("GET", f"{M}/weights").status for _ in range(3)] == [409, 409, 409]
        assert len(asked) == 1


def test_names_as_json_holds_them():
    found = Columns(voters=["ann", "bob"], raters=[("a", 1), "b"], attributes={"x": 0, 3: 1}).plain()
    assert found == [["ann", "bob"], [{"tuple": ["a", 1]}, "b"], ["x", 3]]


def test_largest_weights_are_shared(tmp_path, monkeypatch):
    monkeypatch.setattr("linmax.service.largest_weights.QUICK", -1.0)
    sought = []
    plain = weights._largest
    monkeypatch.setattr(weights, "_largest", lambda *given: sought.append(given[-1]) or plain(*given))
    with Local(tmp_path) as local:
        make(local)
        for label in "xy":
            assert local.call("POST", f"{M}/learn", RAIN | {"label": label}).status == 200
        shown = [local.call("GET", f"{M}/weights?limit={most}").body for most in (5, 5, 6, 5)]
        assert sought == [5, 6]
        assert shown[0] == shown[1] == shown[3]
        monkeypatch.setattr("linmax.service.largest_weights.COPY_LIFETIME", 0.0)
        local.service.models["m"].weights._good_until = 0.0  # long after
        assert local.call("POST", f"{M}/learn", {"attributes": {"snow": 1.0}, "label": "x"}).status == 200
        later = local.call("GET", f"{M}/weights?limit=5").body
        assert sought == [5, 6, 5]
        assert {weight["name"] for weight in later["attributes"]} > {
            weight["name"] for weight in shown[0]["attributes"]
        }
