"""In and out: exports imported again, files uploaded, models copied and renamed, weights, Idempotency-Key."""

import gzip
import json

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from local import Local

import linmax
from linmax.service import offline
from linmax.service.keys import KeyFile

MODELS = "/v1/models"
M = f"{MODELS}/m"


def taught(local, name="m", learner="perceptron", kind="attributes"):
    """A model with every kind of event."""
    assert local.call("POST", f"{MODELS}?wait=300", {"name": name, "learner": learner, "kind": kind}).status == 201

    def post(verb, status=200, **body):
        answer = local.call("POST", f"{MODELS}/{name}/{verb}", body)
        assert answer.status == status, answer.body

    for i in range(40):
        given = {"attributes": {f"f{i % 7}": 0.25 * i, f"g{i % 3}": 1.0}}
        if kind == "votes":
            given = {"votes": {"ann": "xyz"[i % 3], "bob": "xy"[i % 2], "cy": None}}
        post("learn", **given, label="xyz"[i % 3], id=f"t{i}")
        post("predict", **given, id=f"p{i}")
        if i % 4 == 0:
            post("label", id=f"p{i}", label="x")
        elif i % 4 == 1:
            post("label", id=f"p{i}", wrong="y")
        elif i % 4 == 2:
            local.call("DELETE", f"{MODELS}/{name}/predictions/p{i}")
    post("learn", **given, label="z", weight=2.5, id="heavy")
    post("learn", **given, label=None, id="unlabelled")
    if kind == "votes":
        post("ask", votes={"ann": "x"}, tolerance=0.1)
    return post


def learned(local, name):
    """Figures and weights of a model, and its events without what the log gives them."""
    figures = local.call("GET", f"{MODELS}/{name}").body
    lines = local.call("GET", f"/v1/export?model={name}").body.splitlines()
    events = [json.loads(line) for line in lines]
    for event in events:
        for own in ("seq", "at", "crc", "model"):
            event.pop(own)
        if event["kind"] == "ask":
            event.pop("id", None)
    shown = {what: figures[what] for what in ("trials", "mistakes", "updates", "classes", "pending")}
    return shown, events, local.service.models[name].learner.weights


def send(local, content, query="", **headers):
    sent = {"content-type": "application/x-ndjson"} | {name.replace("_", "-"): value for name, value in headers.items()}
    return local.call("POST", f"/v1/import{query}", raw=content, headers=sent)


@pytest.mark.parametrize(("learner", "kind"), [("perceptron", "attributes"), ("auto", "votes")])
@pytest.mark.parametrize("zipped", [False, True])
def test_an_export_can_be_imported(tmp_path, learner, kind, zipped):
    with Local(tmp_path / "one") as local:
        taught(local, learner=learner, kind=kind)
        before = learned(local, "m")
        answer = local.call("GET", "/v1/export", headers={"accept-encoding": "gzip"} if zipped else None)
        content = answer.body
        assert (answer.headers.get("content-encoding") == "gzip") == zipped
    headers = {"content_encoding": "gzip"} if zipped else {}
    with Local(tmp_path / "two") as local:
        made = {"name": "m", "learner": learner, "kind": kind}
        assert local.call("POST", f"{MODELS}?wait=300", made).status == 201
        first = send(local, content, **headers)
        assert first.status == 200, first.body
        assert (first.body["stored"], first.body["repeated"], first.body["refused"]) == (len(before[1]), 0, 0)
        assert learned(local, "m") == before
        if kind == "attributes":  # an ask has no id by which it could be known
            again = send(local, content, **headers)
            assert (again.body["stored"], again.body["repeated"]) == (0, len(before[1]))
            assert learned(local, "m") == before
    assert offline.verify(tmp_path / "two").good


def test_lines_that_cannot_be_imported_are_counted_with_the_reason(tmp_path):
    lines = [
        '{"kind": "learn", "id": "a", "instance": {"attributes": {"f": 1}}, "label": "x", "seq": 7, "unknown": true}',
        "not JSON",
        '{"kind": "learn", "id": "b", "label": "x"}',
        '{"kind": "label", "id": "nobody", "label": "x"}',
        '{"kind": "learn", "model": "other", "instance": {"attributes": {"f": 1}}, "label": "x"}',
        '{"kind": "learn", "id": "a", "instance": {"attributes": {"f": 1}}, "label": "y"}',
        "",
        '{"kind": "learn", "id": "c", "instance": {}, "label": "x"}',
    ]
    with Local(tmp_path) as local:
        assert local.call("POST", f"{MODELS}?wait=300", {"name": "m", "learner": "perceptron"}).status == 201
        answer = send(local, "\n".join(lines).encode(), "?model=m").body
        assert (answer["stored"], answer["repeated"], answer["refused"]) == (3, 0, 4)
        found = {line: (problem["status"], problem["detail"]) for line, problem in answer["problems"]}
        assert sorted(found) == [2, 3, 4, 6]
        assert "not JSON" in found[2][1]
        assert found[3] == (422, "instance is missing")
        assert found[4][0] == 404
        assert found[6][0] == 409
        answer = send(local, lines[4].encode()).body
        assert answer["problems"][0][1]["status"] == 404
        assert send(local, b"x" * 100, content_encoding="gzip").status == 422
        cut = send(local, gzip.compress(lines[0].encode() + b"\n")[:-6], "?model=m", content_encoding="gzip")
        assert (cut.status, cut.body["detail"]) == (422, "the gzip body is not whole; repeat the import with all of it")
        assert send(local, b"x" * (2**20 + 2)).status == 413
        bomb = gzip.compress(b" " * 10**8)
        assert send(local, bomb, content_encoding="gzip").status == 413


@pytest.mark.parametrize(("learner", "kind"), [("perceptron", "attributes"), ("auto", "votes")])
def test_a_copy_goes_its_own_way_and_outlives_a_crash(tmp_path, learner, kind):
    local = Local(tmp_path).__enter__()
    post = taught(local, learner=learner, kind=kind)
    copied = local.call("POST", f"{M}/copy", {"name": "twin"})
    assert copied.status == 201
    assert copied.body["trials"] == local.call("GET", M).body["trials"]
    assert copied.body["pending"] == 0
    assert local.call("POST", f"{M}/copy", {"name": "twin"}).status == 409
    assert local.call("POST", f"{M}/copy", {"name": "M!"}).status == 422
    given = {"votes": {"ann": "x", "bob": "y"}} if kind == "votes" else {"attributes": {"f1": 1.0, "new": 3.0}}
    for name in ("m", "twin"):
        for label in "xzx":
            answer = local.call("POST", f"{MODELS}/{name}/learn", given | {"label": label})
            assert answer.status == 200
    assert local.service.models["twin"].learner.weights == local.service.models["m"].learner.weights
    post("learn", **given, label="y")
    before = {name: learned(local, name) for name in ("m", "twin")}
    assert before["m"][0]["trials"] == before["twin"][0]["trials"] + 1
    local.abandon()
    with Local(tmp_path) as again:
        assert {name: learned(again, name) for name in ("m", "twin")} == before
    assert offline.verify(tmp_path).good
    for path in (tmp_path / "snapshots").iterdir():
        path.unlink()
    with Local(tmp_path) as again:
        assert {name: learned(again, name) for name in ("m", "twin")} == before


def test_a_file_can_be_uploaded(tmp_path):
    learner = linmax.Learner("winnow(1.5)")
    for i in range(30):
        learner.learn(votes={"ann": "xyz"[i % 3], "bob": "xy"[i % 2]}, label="xyz"[i % 3])
    learner.save(tmp_path / "jury.linmax")
    content = (tmp_path / "jury.linmax").read_bytes()
    file = {"content-type": "application/octet-stream"}
    with Local(tmp_path / "data") as local:
        answer = local.call("PUT", f"{MODELS}/jury/snapshot", raw=content, headers=file)
        assert answer.status == 201, answer.body
        assert (answer.body["trials"], answer.body["mistakes"]) == (30, learner.mistakes)
        assert (answer.body["options"]["kind"], answer.body["options"]["learner"]) == ("votes", "winnow(1.5)")
        assert local.service.models["jury"].learner.weights == learner.weights
        back = local.call("GET", f"{MODELS}/jury/snapshot").body
        (tmp_path / "back.linmax").write_bytes(back)
        assert linmax.Learner.load(tmp_path / "back.linmax").weights == learner.weights
        assert local.call("PUT", f"{MODELS}/jury/snapshot", raw=content, headers=file).status == 409
        assert local.call("PUT", f"{MODELS}/Jury/snapshot", raw=content, headers=file).status == 422
        for wrong in (b"", content[:100], content[:-20], b"x" * 1000):
            answer = local.call("PUT", f"{MODELS}/next/snapshot", raw=wrong, headers=file)
            assert (answer.status, answer.body["field"]) == (422, "body")
        answer = local.call("POST", f"{MODELS}/jury/learn", {"votes": {"ann": "x", "eve": "y"}, "label": "x"})
        assert answer.status == 200
        learner.learn(votes={"ann": "x", "eve": "y"}, label="x")
    with Local(tmp_path / "data") as local:
        assert local.service.models["jury"].learner.weights == learner.weights
    with Local(tmp_path / "small", model_memory=1000) as local:
        answer = local.call("PUT", f"{MODELS}/jury/snapshot", raw=content, headers=file)
        assert answer.status == 413
        assert local.call("GET", MODELS).body["models"] == []


def test_a_model_can_be_renamed(tmp_path):
    with Local(tmp_path) as local:
        taught(local)
        taught(local, "other")
        before = learned(local, "m")
        assert local.call("PATCH", M, {"name": "other"}).status == 409
        assert local.call("PATCH", M, {"name": "new", "max_pending": 77}).body["name"] == "new"
        assert local.call("GET", M).status == 404
        assert learned(local, "new") == before
        assert local.call("POST", f"{MODELS}?wait=300", {"name": "m", "learner": "perceptron"}).status == 201
    with Local(tmp_path) as local:
        assert learned(local, "new") == before
        assert local.call("GET", f"{MODELS}/new").body["options"]["max_pending"] == 77
        names = [model["name"] for model in local.call("GET", MODELS).body["models"]]
        assert names == ["m", "new", "other"]


def test_weights_of_trials(tmp_path):
    given = {"attributes": {"a": 1.0, "b": 0.5}}
    expected = linmax.Learner("softmax")
    with Local(tmp_path) as local:
        assert local.call("POST", f"{MODELS}?wait=300", {"name": "m", "learner": "softmax"}).status == 201

        def post(verb, **body):
            return local.call("POST", f"{M}/{verb}", body)

        for i, weight in enumerate((1.0, 2.5, 0.0, 0.5)):
            assert post("learn", **given, label="xyx"[i % 3], weight=weight, id=f"t{i}").status == 200
            expected.learn(**given, label="xyx"[i % 3], weight=weight)
        assert post("predict", **given, id="p").status == 200
        assert post("label", id="p", label="y", weight=3).status == 200
        expected.learn(**given, label="y", weight=3.0)
        assert local.service.models["m"].learner.weights == expected.weights
        again = post("learn", **given, label="y", weight=2.0, id="t1")
        assert (again.status, again.body["field"]) == (409, "weight")
        assert post("learn", **given, wrong="y", weight=2.0).body["field"] == "weight"
        assert post("learn", **given, label="y", weight=-1.0).body["field"] == "weight"
    with Local(tmp_path) as local:
        assert local.service.models["m"].learner.weights == expected.weights


def test_an_idempotency_key_is_the_id(tmp_path):
    given = {"attributes": {"a": 1.0}}
    with Local(tmp_path) as local:
        assert local.call("POST", f"{MODELS}?wait=300", {"name": "m", "learner": "perceptron"}).status == 201
        for _ in range(2):
            answer = local.call("POST", f"{M}/learn", given | {"label": "x"}, headers={"idempotency-key": "order-7"})
            assert (answer.status, answer.body["id"], answer.body["seq"]) == (200, "order-7", 2)
        answer = local.call("POST", f"{M}/predict", given, headers={"idempotency-key": '"order-8"'})
        assert answer.body["id"] == "order-8"
        wrong = local.call("POST", f"{M}/learn", given | {"label": "x"}, headers={"idempotency-key": "no spaces"})
        assert (wrong.status, wrong.body["field"]) == (422, "idempotency-key")
        both = local.call("POST", f"{M}/learn", given | {"label": "x", "id": "a"}, headers={"idempotency-key": "b"})
        assert (both.status, both.body["field"]) == (422, "id")
        assert local.call("GET", M).body["trials"] == 1
        late = {"id": "order-8", "label": "x"}
        assert local.call("POST", f"{M}/label", late, headers={"idempotency-key": "any"}).body["id"] == "order-8"


def test_an_import_through_a_short_queue(tmp_path):
    row = {"kind": "learn", "instance": {"attributes": {"a": 1.0}}, "label": "x"}
    content = b"".join(json.dumps(row | {"id": f"t{i}"}).encode() + b"\n" for i in range(500))
    with Local(tmp_path, queue=16) as local:
        assert local.call("POST", f"{MODELS}?wait=300", {"name": "m", "learner": "perceptron"}).status == 201
        assert send(local, content, "?model=m").body["stored"] == 500


def test_a_key_for_predictions_stores_nothing(tmp_path):
    tmp_path.joinpath("data").mkdir()
    reader, admin = (KeyFile(tmp_path / "data").add(name, [name, "predict"]) for name in ("predict", "admin"))
    given = {"attributes": {"a": 1.0}}
    with Local(tmp_path / "data") as local:
        assert local.call("POST", f"{MODELS}?wait=300", {"name": "m", "learner": "perceptron"}, key=admin).status == 201
        assert local.call("POST", f"{M}/predict", given, key=reader).status == 200
        for body in ({"id": "a"}, {"store": True}):
            assert local.call("POST", f"{M}/predict", given | body, key=reader).status == 403
            items = {"items": [given, given | body]}
            assert local.call("POST", f"{M}/predict/batch", items, key=reader).status == 403
        answer = local.call("POST", f"{M}/predict", given, key=reader, headers={"idempotency-key": "a"})
        assert (answer.status, answer.headers["content-type"]) == (403, "application/problem+json")
        assert local.call("GET", M, key=reader).body["pending"] == 0


def test_models_by_pages_and_filters(tmp_path):
    with Local(tmp_path) as local:
        for name, kind in (("b", "votes"), ("a", "attributes"), ("d", "votes"), ("c", "attributes")):
            made = {"name": name, "learner": "perceptron", "kind": kind}
            assert local.call("POST", f"{MODELS}?wait=300", made).status == 201

        def names(query):
            answer = local.call("GET", f"{MODELS}{query}").body
            return [model["name"] for model in answer["models"]], answer["next"]

        assert names("") == (["a", "b", "c", "d"], None)
        assert names("?limit=3") == (["a", "b", "c"], "c")
        assert names("?limit=3&after=c") == (["d"], None)
        assert names("?kind=votes") == (["b", "d"], None)
        assert names("?state=compiling") == ([], None)
        assert names("?learner=auto") == ([], None)
        unknown = local.call("GET", f"{MODELS}?page=2")
        assert (unknown.status, unknown.body["field"]) == (422, "page")
        assert "after, limit, kind, learner, state" in unknown.body["detail"]
        assert local.call("POST", f"{MODELS}/a/predict?id=7", {"attributes": {}}).status == 422
