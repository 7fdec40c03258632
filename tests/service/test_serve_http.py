"""The contract, status by status."""

import asyncio
import json
import random
import threading
import time

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import PATIENCE
from local import Local

from linmax import Learner
from linmax.service import pipeline as pipeline_module
from linmax.service.keys import KeyFile
from linmax.service.log import EventLog

M = "/v1/models/m"
RAIN = {"rain": 1.0}


@pytest.fixture
def local(tmp_path):
    with Local(tmp_path) as local:
        assert local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"}).status == 201
        yield local


def until_purged(local, events):
    end = time.monotonic() + PATIENCE
    while local.sql("SELECT count(*) FROM events") > events:
        assert time.monotonic() < end, "the old log is never purged"
        time.sleep(0.05)


def learn(local, attributes, label, **more):
    return local.call("POST", f"{M}/learn", {"attributes": attributes, "label": label, **more})


class TestTrials:
    def test_a_prediction_without_id_leaves_no_trace(self, local):
        learn(local, RAIN, "wet")
        before = local.service.log.seq
        answer = local.call("POST", f"{M}/predict", {"attributes": RAIN})
        assert (answer.status, answer.body) == (200, {"label": "wet"})
        assert local.service.log.seq == before

    def test_before_any_class_is_known(self, local):
        assert local.call("POST", f"{M}/predict", {"attributes": RAIN}).body == {"label": None}

    def test_the_label_comes_later_and_the_mistake_is_the_served_one(self, local):
        learn(local, RAIN, "wet")
        assert local.call("POST", f"{M}/predict", {"attributes": {"sun": 1.0}, "id": "a"}).body["label"] == "wet"
        for i in range(3):
            learn(local, {"sun": 1.0}, "dry", id=f"x{i}")
        assert local.call("POST", f"{M}/predict", {"attributes": {"sun": 1.0}}).body["label"] == "dry"
        answer = local.call("POST", f"{M}/label", {"id": "a", "label": "dry"})
        assert answer.body["predicted"] == "wet"
        assert answer.body["mistake"] is True

    def test_store_issues_an_id(self, local):
        first = local.call("POST", f"{M}/predict", {"attributes": RAIN, "store": True}).body
        second = local.call("POST", f"{M}/predict", {"attributes": RAIN, "store": True}).body
        assert first["id"] < second["id"]
        assert local.call("GET", M).body["pending"] == 2
        assert local.call("POST", f"{M}/label", {"id": first["id"], "label": "wet"}).status == 200
        assert local.call("GET", M).body["pending"] == 1

    def test_the_same_request_gives_the_same_answer_for_ever(self, tmp_path):
        first = {}
        requests = {
            "learn": {"attributes": RAIN, "label": "wet", "id": "l"},
            "predict": {"attributes": RAIN, "id": "p"},
            "label": {"id": "p", "label": "wet"},
        }
        with Local(tmp_path) as local:
            local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
            for verb, body in requests.items():
                first[verb] = local.call("POST", f"{M}/{verb}", body).body
            learn(local, RAIN, "dry")
            for verb, body in requests.items():
                assert local.call("POST", f"{M}/{verb}", body).body == first[verb]
        with Local(tmp_path) as local:  # from the snapshot
            for verb, body in requests.items():
                assert local.call("POST", f"{M}/{verb}", body).body == first[verb]
            assert local.call("GET", M).body["trials"] == 3
        for path in (tmp_path / "snapshots").iterdir():
            path.unlink()
        with Local(tmp_path) as local:  # from the log
            for verb, body in requests.items():
                assert local.call("POST", f"{M}/{verb}", body).body == first[verb]

    def test_the_same_request_twice_at_once(self, local):
        async def both():
            body = {"attributes": RAIN, "label": "wet", "id": "l"}
            return await asyncio.gather(*(local.request("POST", f"{M}/learn", body) for _ in range(5)))

        answers = local.do(both())
        assert len({json.dumps(answer.body) for answer in answers}) == 1
        assert local.call("GET", M).body["trials"] == 1

    @pytest.mark.parametrize(
        ("verb", "body", "status", "field"),
        [
            ("label", {"id": "l", "label": "dry"}, 409, "label"),
            ("label", {"id": "nobody", "label": "dry"}, 404, "id"),
            ("learn", {"attributes": RAIN, "label": "dry", "id": "l"}, 409, "label"),
            ("learn", {"attributes": {"sun": 1}, "label": "wet", "id": "l"}, 409, "id"),
            ("predict", {"attributes": RAIN, "id": "l"}, 409, "id"),
            ("predict", {"attributes": {"rain": "much"}}, 422, "attributes['rain']"),
            ("predict", {"attributes": {"rain": None}}, 422, "attributes['rain']"),
            ("predict", {}, 422, "attributes"),
            ("predict", {"votes": {"ann": "wet"}}, 422, "attributes"),
            ("predict", {"attributes": RAIN, "votes": {"ann": "wet"}}, 422, "votes"),
            ("predict", {"attributes": RAIN, "colour": 1}, 422, "colour"),
            ("predict", {"attributes": RAIN, "id": "../../etc/passwd"}, 422, "id"),
            ("predict", {"attributes": RAIN, "id": ""}, 422, "id"),
            ("learn", {"attributes": RAIN}, 422, "label"),
            ("learn", {"attributes": RAIN, "label": True}, 422, "label"),
            ("learn", {"attributes": RAIN, "label": 3}, 422, "label"),
            ("learn", {"attributes": {f"f{i}": 1 for i in range(10_001)}, "label": "wet"}, 422, "attributes"),
        ],
    )
    def test_refusals(self, local, verb, body, status, field):
        learn(local, RAIN, "wet", id="l")
        before = local.call("GET", M).body
        answer = local.call("POST", f"{M}/{verb}", body)
        assert answer.status == answer.body["status"] == status
        assert answer.body.get("field") == field
        assert local.call("GET", M).body == before

    @pytest.mark.parametrize(
        "raw", [b"", b"{", b"\xff", b'{"attributes": {"a": NaN}}', b'{"attributes": {"a": 1e999}}', b"[" * 20000]
    )
    def test_invalid_json(self, local, raw):
        answer = local.call("POST", f"{M}/predict", raw=raw)
        assert answer.status == 422
        assert answer.body["field"]

    @pytest.mark.parametrize("name", ['"', '":', '\\":', "label", "a b", " ", ":"])
    def test_names_that_look_like_more(self, local, name):
        assert learn(local, {name: 1.0, "a": 2.0}, "wet").status == 200

    def test_other_refusals(self, local):
        assert local.call("POST", "/v1/models/none/predict", {"attributes": RAIN}).status == 404
        assert local.call("GET", "/nowhere").status == 404
        wrong = local.call("PUT", f"{M}/predict", {"attributes": RAIN})
        assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
        assert local.call("POST", f"{M}/predict", raw=b"x" * (2**20 + 1)).status == 413
        lying = {"content-length": "5"}
        assert local.call("POST", f"{M}/predict", raw=b"x" * (2**20 + 1), headers=lying).status == 413
        assert local.call("POST", f"{M}/predict", {}, headers={"content-type": "text/plain"}).status == 415
        assert local.call("GET", f"{M}/curve?points=many").body["field"] == "points"

    def test_pending_predictions_are_limited_and_can_be_forgotten(self, local):
        local.call("POST", "/v1/models?wait=300", {"name": "few", "learner": "perceptron", "max_pending": 2})
        few = "/v1/models/few"
        for id in "ab":
            assert local.call("POST", f"{few}/predict", {"attributes": RAIN, "id": id}).status == 200
        full = local.call("POST", f"{few}/predict", {"attributes": RAIN, "id": "c"})
        assert full.status == 429
        assert int(full.headers["retry-after"]) >= 1
        assert local.call("POST", f"{few}/predict", {"attributes": RAIN}).status == 200
        assert local.call("DELETE", f"{few}/predictions/a").status == 204
        assert local.call("DELETE", f"{few}/predictions/a").status == 204
        assert local.call("DELETE", f"{few}/predictions/zz").status == 404
        assert local.call("POST", f"{few}/label", {"id": "a", "label": "x"}).status == 404
        assert local.call("POST", f"{few}/predict", {"attributes": RAIN, "id": "c"}).status == 200

    def test_rules_that_need_small_numbers(self, local):
        local.call("POST", "/v1/models?wait=300", {"name": "w", "learner": "winnow(1.1)"})
        before = local.service.log.seq
        answer = local.call("POST", "/v1/models/w/learn", {"attributes": {"a": 2.0}, "label": "x"})
        assert answer.status == 422
        assert "in [-1, 1], got 2.0 for 'a'" in answer.body["detail"]
        assert local.service.log.seq == before


class TestKinds:
    @pytest.mark.parametrize("kind", ["attributes", "mixed"])
    def test_the_pool_for_votes_takes_no_attributes(self, local, kind):
        answer = local.call("POST", "/v1/models?wait=300", {"name": "v", "learner": "votes", "kind": kind})
        assert answer.status == 422
        assert "votes learns from votes and scores" in answer.body["detail"]

    def test_votes(self, local):
        local.call("POST", "/v1/models?wait=300", {"name": "v", "learner": "winnow(1.5)", "kind": "votes"})
        v = "/v1/models/v"
        for label, votes in [("x", ["x", "y", None]), ("y", ["y", "y", "x"]), ("x", {"0": "x", "2": "y"})]:
            assert local.call("POST", f"{v}/learn", {"votes": votes, "label": label}).status == 200
        points = local.call("GET", f"{v}/curve").body["points"]
        assert [point[2] for point in points] == [0, 0, 0]  # plurality; ties go to the smallest
        assert [point[3] for point in points] == [0, 0, 0]  # voter 0 is always right
        bound = local.call("GET", f"{v}/curve").body["bound"]
        assert bound["constant"] > 0
        assert local.call("POST", f"{v}/predict", {"votes": ["x"], "id": "late"}).status == 200
        assert local.call("POST", f"{v}/label", {"id": "late", "label": "x"}).status == 200
        assert local.call("GET", f"{v}/curve").body["bound"] is None  # a late label: the theorem says nothing
        weights = local.call("GET", f"{v}/weights").body["voters"]
        assert weights[0]["name"] == "0"
        assert {row["name"] for row in weights} == {"0", "1", "2"}

    def test_scores_with_whole_numbers_as_labels(self, local):
        made = {"name": "s", "learner": "perceptron", "kind": "scores", "labels": "integer", "classes": [3, 5]}
        assert local.call("POST", "/v1/models?wait=300", made).status == 201
        s = "/v1/models/s"
        assert local.call("POST", f"{s}/learn", {"scores": {"net": {"3": 0.9, "5": 0.1}}, "label": 3}).status == 200
        answer = local.call("POST", f"{s}/learn", {"scores": {"net": [0.1, 0.9], "tree": [0.5, 0.5]}, "label": 5})
        assert answer.body["label"] == 5
        assert local.call("POST", f"{s}/learn", {"scores": {"net": [0.1]}, "label": 5}).status == 422
        assert local.call("POST", f"{s}/learn", {"scores": {"net": {"4": 1}}, "label": 5}).status == 422
        assert local.call("POST", f"{s}/learn", {"scores": {"net": {"x": 1}}, "label": 5}).status == 422
        assert local.call("POST", f"{s}/learn", {"scores": {"net": [0.1, 0.9]}, "label": "5"}).status == 422
        assert local.call("POST", f"{s}/learn", {"scores": {"net": [0.1, 0.9]}, "label": 4}).status == 422

    def test_mixed_and_empty(self, local):
        local.call("POST", "/v1/models?wait=300", {"name": "mix", "learner": "perceptron", "kind": "mixed"})
        mix = "/v1/models/mix"
        both = {"attributes": [0.5, 0.25], "votes": {"ann": "x"}, "label": "x"}
        assert local.call("POST", f"{mix}/learn", both).status == 200
        assert local.call("POST", f"{mix}/learn", {"label": "y"}).status == 200
        told = local.call("POST", f"{mix}/explain", {"attributes": [1.0, 0.0], "votes": {"ann": "y"}}).body
        assert {row["label"] for row in told["scores"]} == {"x", "y"}
        assert {row["name"] for row in told["weights"]["attributes"]} <= {"0", "1"}

    @pytest.mark.parametrize(
        ("options", "field"),
        [
            ({"learner": "percepton"}, "learner"),
            ({"tie": "any"}, "learner"),
            ({"classes": ["a", "a"]}, "classes"),
            ({"classes": [1, 2]}, "classes"),
            ({"kind": "pictures"}, "kind"),
            ({"max_pending": 0}, "max_pending"),
            ({"name": "../up"}, "name"),
            ({"name": "M"}, "name"),
        ],
    )
    def test_models_that_cannot_be(self, local, options, field):
        answer = local.call("POST", "/v1/models?wait=300", {"name": "new", "learner": "perceptron"} | options)
        assert answer.status == 422
        assert answer.body["field"] == field
        assert [model["name"] for model in local.call("GET", "/v1/models").body["models"]] == ["m"]


class TestBound:
    @pytest.mark.parametrize("alpha", [1.1, 1.5, 3.0])
    def test_never_broken(self, tmp_path, alpha):
        """Voters of all sorts, labels against the weighted majority: mistakes stay below the bound at every trial."""
        chance = random.Random(7)
        with Local(tmp_path) as local:
            local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": f"winnow({alpha})", "kind": "votes"})
            for start in range(0, 600, 100):
                items = []
                for _ in range(100):
                    label = chance.choice("abcd")
                    votes = {f"v{i}": label if chance.random() < 0.1 * i else chance.choice("abcd") for i in range(10)}
                    items.append({"votes": votes, "label": label})
                assert local.call("POST", f"{M}/learn/batch", {"items": items}).status == 200, start
            curve = local.call("GET", f"{M}/curve?points=10000").body
        constant, slope = curve["bound"]["constant"], curve["bound"]["slope"]
        assert all(served <= constant + slope * best for _, served, _, best in curve["points"])
        assert constant + slope * curve["points"][-1][3] < 600 * 2


class TestBatches:
    def test_learned_in_order(self, local):
        items = [{"attributes": {f"f{i % 3}": 1.0}, "label": f"c{i % 3}", "id": f"b{i}"} for i in range(30)]
        answer = local.call("POST", f"{M}/learn/batch", {"items": items})
        assert answer.status == 200
        learner = Learner("perceptron")
        expected = [learner.learn(item["attributes"], label=item["label"]) for item in items]
        assert [result["predicted"] for result in answer.body["results"]] == expected
        again = local.call("POST", f"{M}/learn/batch", {"items": items})
        assert again.body == answer.body

    def test_each_item_has_its_own_result(self, local):
        kept = local.call("POST", f"{M}/predict/batch", {"items": [{"attributes": RAIN, "id": id} for id in "abc"]})
        assert [result["id"] for result in kept.body["results"]] == ["a", "b", "c"]
        labels = [
            {"id": "a", "label": "x"},
            {"id": "zz", "label": "x"},
            {"id": "a", "label": "y"},
            {"id": "b", "label": 4},
        ]
        answer = local.call("POST", f"{M}/label/batch", {"items": labels})
        assert answer.status == 207
        statuses = [result.get("error", {}).get("status", 200) for result in answer.body["results"]]
        assert statuses == [200, 404, 409, 422]

    def test_one_reason_for_all_is_the_answer(self, local):
        answer = local.call(
            "POST", f"{M}/label/batch", {"items": [{"id": "x", "label": "a"}, {"id": "y", "label": "a"}]}
        )
        assert answer.status == 404
        assert len(answer.body["results"]) == 2

    def test_size(self, local):
        assert local.call("POST", f"{M}/learn/batch", {"items": []}).body["field"] == "items"
        many = [{"id": "x", "label": "a"}] * 1001
        assert local.call("POST", f"{M}/label/batch", {"items": many}).status == 422


class TestModels:
    def test_delete_is_asked_twice(self, local):
        learn(local, RAIN, "wet", id="a")
        local.do(local.service.house.save(local.service.models["m"]))
        first = local.call("DELETE", M)
        assert first.status == 428
        word = first.body["confirm"]
        local.call("POST", "/v1/models?wait=300", {"name": "other", "learner": "perceptron"})
        assert local.call("DELETE", f"/v1/models/other?confirm={word}").status == 428
        assert local.call("DELETE", f"{M}?confirm={word}").status == 204
        assert local.call("GET", M).status == 404
        assert list((local.settings.data / "snapshots").iterdir()) == []
        assert local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "winnow(1.1)"}).status == 201
        assert learn(local, RAIN, "wet", id="a").body["predicted"] is None
        until_purged(local, events=1)

    def test_deleted_while_an_earlier_one_is_being_purged(self, local, monkeypatch):
        learn(local, RAIN, "wet")
        entered, go_on = threading.Event(), threading.Event()

        def slow(log):
            entered.set()
            assert go_on.wait(PATIENCE)
            return False

        monkeypatch.setattr(EventLog, "give_back", slow)
        local.do(local.service.house.deleted(0))
        assert entered.wait(PATIENCE)
        word = local.call("DELETE", M).body["confirm"]
        asked = threading.Thread(target=local.call, args=("DELETE", f"{M}?confirm={word}"))
        asked.start()
        go_on.set()
        asked.join()
        until_purged(local, events=0)

    def test_snapshot_resumes_elsewhere_with_same_bits(self, local, tmp_path):
        for i in range(20):
            learn(local, {f"f{i % 7}": 0.1 * i}, f"c{i % 3}")
        file = tmp_path / "elsewhere.linmax"
        answer = local.call("GET", f"{M}/snapshot")
        file.write_bytes(answer.body)
        assert answer.headers["content-disposition"] == 'attachment; filename="m-21.linmax"'
        learner = Learner.load(file)
        for i in range(20):
            instance = {f"f{i % 5}": 0.3}
            assert learn(local, instance, f"c{i % 2}").body["predicted"] == learner.learn(instance, label=f"c{i % 2}")
        assert learner.weights == local.service.models["m"].learner.weights

    def test_curve_and_weights(self, local):
        for i in range(50):
            learn(local, {f"f{i % 7}": 1.0}, f"c{i % 7}")
        curve = local.call("GET", f"{M}/curve?points=10").body
        assert curve["trials"] == 50
        assert len(curve["points"]) <= 11
        assert curve["points"][-1][0] == 50
        assert local.call("GET", f"{M}/curve?after=50").body["points"] == []
        weights = local.call("GET", f"{M}/weights?limit=3").body
        sizes = [abs(row["weight"]) for row in weights["attributes"]]
        assert len(sizes) == 3
        assert sizes == sorted(sizes, reverse=True)

    @pytest.mark.parametrize("learner", ["auto", "attributes", "naive-bayes", "stack(perceptron, arow)"])
    def test_weights_of_learners_that_are_several(self, local, learner):
        assert local.call("POST", "/v1/models?wait=300", {"name": "several", "learner": learner}).status == 201
        several = "/v1/models/several"
        for i in range(40):
            body = {"attributes": {f"f{i % 3}": 1.0, "all": 1.0}, "label": f"c{i % 3}"}
            assert local.call("POST", f"{several}/learn", body).status == 200
        answer = local.call("GET", f"{several}/weights")
        told = local.call("POST", f"{several}/explain", {"attributes": {"f1": 1.0}})
        assert told.status == 200
        assert told.body["label"] == "c1"
        assert {row["label"] for row in told.body["scores"]} == {"c0", "c1", "c2"}
        if learner.startswith("stack"):
            assert answer.status == 409
            assert "has no weights to show" in answer.body["detail"]
            assert told.body["weights"]["attributes"] == []
            return
        assert answer.status == 200
        assert {row["name"] for row in answer.body["attributes"]} >= {"f0", "f1", "f2"}
        best = max(told.body["weights"]["attributes"], key=lambda row: row["weight"])
        assert (best["name"], best["label"]) == ("f1", "c1")


class TestTrouble:
    def test_a_full_disk(self, local):
        learn(local, RAIN, "wet")
        pages = local.sql("PRAGMA page_count")
        local.sql(f"PRAGMA max_page_count = {pages}")
        big = {f"a rather long name of a feature, number {i}": 1.0 for i in range(500)}
        before = local.call("GET", M).body
        assert learn(local, big, "dry", id="big").status == 507
        assert local.call("POST", f"{M}/predict", {"attributes": big, "id": "p"}).status == 507
        assert local.call("POST", f"{M}/predict", {"attributes": RAIN}).body == {"label": "wet"}
        assert local.call("GET", "/ready").body["disk_full"] is True
        assert local.call("GET", M).body == before
        local.sql("PRAGMA max_page_count = 100000")
        assert learn(local, big, "dry", id="big").status == 200
        assert local.call("GET", "/ready").body["disk_full"] is False

    def test_a_full_queue(self, tmp_path):
        with Local(tmp_path, queue=5) as local:
            local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})

            async def crowd():
                bodies = [{"attributes": RAIN, "label": "wet", "id": f"q{i}"} for i in range(30)]
                return await asyncio.gather(*(local.request("POST", f"{M}/learn", body) for body in bodies))

            answers = local.do(crowd())
            refused = [answer for answer in answers if answer.status == 503]
            assert refused
            assert all(answer.headers["retry-after"] == "1" for answer in refused)
            done = sum(answer.status == 200 for answer in answers)
            assert done + len(refused) == 30
            assert local.call("GET", M).body["trials"] == done

    def test_a_failed_sync_ends_the_process(self, tmp_path):
        from power import PowerVFS

        failing, ends = [], []
        vfs = PowerVFS("failing", fail_sync=lambda: bool(failing))
        with Local(tmp_path, options={"vfs": vfs.name, "fail": ends.append}) as local:
            local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
            assert learn(local, RAIN, "wet").status == 200
            failing.append(True)
            asked = asyncio.run_coroutine_threadsafe(
                local.request("POST", f"{M}/learn", {"attributes": RAIN, "label": "dry", "id": "lost"}), local.loop
            )
            end = time.monotonic() + PATIENCE
            while not ends:
                assert time.monotonic() < end
                time.sleep(0.01)
            assert not asked.done()  # nobody was told anything
            assert "StorageFailed" in repr(ends[0])
            asked.cancel()
            failing.clear()
            local.service.stop = _nothing

    def test_abandoned_request_blocks_nobody(self, local):
        async def give_up():
            learn = local.request("POST", f"{M}/learn", {"attributes": RAIN, "label": "wet", "id": "a"})
            asked = asyncio.create_task(learn)
            await asyncio.sleep(0)
            asked.cancel()

        local.do(give_up())
        assert learn(local, RAIN, "wet", id="b").status == 200
        assert learn(local, RAIN, "wet", id="a").status == 200
        assert local.call("GET", M).body["trials"] == 2

    def test_stored_trials_are_never_skipped(self, tmp_path, monkeypatch):
        """Should the learner break in a way that nobody has foreseen, the process ends; the next start replays."""
        ends = []
        with Local(tmp_path, options={"fail": ends.append}) as local:
            local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
            monkeypatch.setattr(local.service.models["m"], "apply", broken_apply)
            asked = asyncio.run_coroutine_threadsafe(
                local.request("POST", f"{M}/learn", {"attributes": RAIN, "label": "wet", "id": "kept"}), local.loop
            )
            end = time.monotonic() + PATIENCE
            while not ends:
                assert time.monotonic() < end
                time.sleep(0.01)
            assert not asked.done()
            assert isinstance(ends[0], MemoryError)
            asked.cancel()
            local.service.stop = _nothing
        with Local(tmp_path) as local:
            assert local.call("GET", M).body["trials"] == 1
            assert learn(local, RAIN, "wet", id="kept").status == 200
            assert local.call("GET", M).body["trials"] == 1

    def test_applying_yields_to_others(self, local, monkeypatch):
        """A long batch does not keep the loop for itself."""
        monkeypatch.setattr(pipeline_module, "SLICE", -1.0)
        items = [{"attributes": {f"f{i % 3}": 1.0}, "label": "a", "id": f"s{i}"} for i in range(50)]

        async def several():
            return await asyncio.gather(*(local.request("POST", f"{M}/learn", item) for item in items))

        answers = local.do(several())
        assert [answer.status for answer in answers] == [200] * 50
        assert local.call("GET", M).body["trials"] == 50

    def test_internal_error_reveals_nothing(self, local, monkeypatch):
        def broken(*_):
            raise RuntimeError("the password is hunter2")

        monkeypatch.setattr("linmax.service.admin.summary", broken)
        answer = local.call("GET", M)
        assert answer.status == 500
        assert answer.body == {
            "title": "Internal Server Error",
            "status": 500,
            "detail": "the server failed; its log says why",
        }


def broken_apply(*_):
    raise MemoryError


async def _nothing():
    """Stands for a stop that has nothing to do."""


class TestKeys:
    @pytest.fixture
    def guarded(self, tmp_path):
        file = KeyFile(tmp_path)
        keys = {scope: file.add(scope, [scope]) for scope in ("predict", "learn", "admin")}
        with Local(tmp_path) as local:
            made = local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"}, key=keys["admin"])
            assert made.status == 201
            yield local, keys, file

    def test_scopes(self, guarded):
        local, keys, _ = guarded
        cases = [
            ("POST", f"{M}/predict", {"attributes": RAIN}, "predict"),
            ("POST", f"{M}/learn", {"attributes": RAIN, "label": "wet"}, "learn"),
            ("GET", M, None, "predict"),
            ("GET", "/metrics", None, "predict"),
            ("GET", f"{M}/snapshot", None, "admin"),
            ("DELETE", M, None, "admin"),
        ]
        for method, path, body, scope in cases:
            for name, key in keys.items():
                expected = {200, 428} if name == scope else {403}
                assert local.call(method, path, body, key=key).status in expected, (path, name)
            nobody = local.call(method, path, body)
            assert (nobody.status, nobody.headers["www-authenticate"]) == (401, "Bearer")
            assert local.call(method, path, body, key=keys[scope] + "x").status == 401

    def test_everybody_may_ask_for_health(self, guarded):
        local, _, _ = guarded
        for path in ("/health", "/ready", "/openapi.json", "/", "/static/page.js"):
            assert local.call("GET", path, headers={"host": "example.org"}).status == 200

    def test_revoked_while_running(self, guarded, monkeypatch):
        local, keys, file = guarded
        monkeypatch.setattr("linmax.service.keys.RELOAD_SECONDS", -1.0)
        assert local.call("GET", M, key=keys["predict"]).status == 200
        file.revoke("predict")
        assert local.call("GET", M, key=keys["predict"]).status == 401
        late = file.add("late", ["predict"])
        assert local.call("GET", M, key=late).status == 200
        file.path.write_text("garbage")
        assert local.call("GET", M, key=late).status == 200  # a broken file changes nothing
        file.path.unlink()
        assert local.call("GET", M).status == 401  # and a missing one opens nothing

    def test_rate(self, guarded, monkeypatch):
        local, _, file = guarded
        monkeypatch.setattr("linmax.service.keys.RELOAD_SECONDS", -1.0)
        slow = file.add("slow", ["predict"], rate=1e-4)  # one at once, the next hours later
        answers = [local.call("POST", f"{M}/predict", {"attributes": RAIN}, key=slow) for _ in range(5)]
        assert [answer.status for answer in answers] == [200, 429, 429, 429, 429]
        assert 9000 < int(answers[-1].headers["retry-after"]) <= 10_000

    def test_no_secret_is_stored_or_logged(self, guarded, caplog):
        local, keys, file = guarded
        caplog.set_level("DEBUG")
        for path in (M, "/nowhere", "/v1/models/none"):
            for key in (*keys.values(), "lmx_wrong"):
                assert key not in str(local.call("GET", path, key=key).body)
        stored = b"".join(path.read_bytes() for path in local.settings.data.rglob("*") if path.is_file())
        for key in keys.values():
            assert key.encode() not in stored
            assert key not in caplog.text
        assert file.path.stat().st_mode & 0o077 == 0

    def test_without_keys_only_this_machine(self, local):
        assert local.call("GET", M, headers={"host": "127.0.0.1:8471"}).status == 200
        assert local.call("GET", M, headers={"host": "[::1]:8471"}).status == 200
        assert local.call("GET", M, headers={"host": "evil.example"}).status == 403


class TestFromOutside:
    def test_metrics_agree(self, local):
        for i in range(7):
            learn(local, {f"f{i}": 1.0}, f"c{i}")
        local.call("POST", f"{M}/predict", {"attributes": RAIN, "id": "p"})
        lines = dict(
            line.rsplit(" ", 1) for line in local.call("GET", "/metrics").body.decode().splitlines() if line[0] != "#"
        )
        shown = local.call("GET", M).body
        assert float(lines['linmax_trials_total{model="m"}']) == shown["trials"] == 7
        assert float(lines['linmax_mistakes_total{model="m"}']) == shown["mistakes"] == 7
        assert float(lines['linmax_pending{model="m"}']) == 1
        assert float(lines['linmax_requests_total{operation="learn",status="200"}']) == 7
        assert float(lines["linmax_commit_events_sum"]) == 8

    def test_headers(self, local):
        for path in ("/", M, "/nowhere", "/static/uPlot.min.css"):
            headers = local.call("GET", path).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"
        for path in ("/", "/static/uPlot.min.css"):
            policy = local.call("GET", path).headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy

    def test_no_path_reaches_the_file_system(self, local):
        for name in ("../keys.json", "..%2fkeys.json", "page.css/../../app.py", "log.sqlite"):
            assert local.call("GET", f"/static/{name}").status == 404

    def test_head(self, local):
        answer = local.call("HEAD", M)
        assert (answer.status, answer.body) == (200, b"")
        assert int(answer.headers["content-length"]) > 0
