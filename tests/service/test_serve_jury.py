"""Juries over HTTP: candidates, right and wrong, whom to ask, labels when needed, sets; and that a replay gives the same."""

import asyncio
import json
import random
import shutil

import numpy as np
import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import Server, read_log
from local import Local

import linmax
from linmax import Learner, VoteFusion
from linmax.client import AsyncClient, Client, ServiceError
from linmax.service import offline
from linmax.service.keys import KeyFile
from linmax.service.offline import digest

M = "/v1/models/m"


def made(local, learner, name="m", **options):
    answer = local.call("POST", "/v1/models?wait=300", {"name": name, "learner": learner, **options})
    assert answer.status == 201, answer.body


def post(local, verb, **body):
    return local.call("POST", f"{M}/{verb}", body)


def refused(answer, field, words):
    assert answer.status == 422, answer.body
    assert answer.body["field"] == field
    assert words in answer.body["detail"]


def bits(learner):
    return digest(learner.state()[1])


def export(local):
    return [json.loads(line) for line in local.call("GET", "/v1/export").body.splitlines()]


def jury_rows(size, seed=1):
    """Votes of six voters of different skill, who abstain now and then, and the labels."""
    chance = np.random.default_rng(seed)
    skill, labels = chance.uniform(0.4, 0.9, 6), chance.choice(list("abc"), size).tolist()
    rows = []
    for label in labels:
        said = np.where(chance.random(6) < skill, label, chance.choice(list("abc"), 6)).tolist()
        rows.append({f"v{i}": None if chance.random() < 0.1 else said[i] for i in range(6)})
    return rows, labels


def same_after_restarts(local, data, tmp_path):
    """From the log alone, as after a kill, and from a snapshot: the same bits, the same figures, and all verified."""
    model = local.service.models["m"]
    expected, figures = bits(model.learner), local.call("GET", M).body
    shutil.copytree(data, tmp_path / "killed")
    local.__exit__()
    for folder in (tmp_path / "killed", data):
        with Local(folder) as again:
            assert again.call("GET", "/ready").body["quarantined"] == []
            assert bits(again.service.models["m"].learner) == expected
            shown = again.call("GET", M).body
            assert {**shown, "snapshot_seq": 0} == {**figures, "snapshot_seq": 0}
        report = offline.verify(folder)
        assert report.good, report.lines


class TestOpenAnswers:
    def test_answers_are_the_candidates_and_a_key_says_which_are_the_same(self, tmp_path):
        data, chance, own = tmp_path / "data", random.Random(1), Learner(answers="open", key="number")
        local = Local(data).__enter__()
        made(local, "auto", kind="votes", answers="open", key="number")
        mistakes = 0
        for t in range(40):
            right, wrong = f"{t}.50", f"{t}.{chance.randrange(1, 4)}"
            votes = {"ann": right.rstrip("0"), "bob": chance.choice([right, wrong]), "cy": wrong, "dee": None}
            label = "999" if t % 10 == 9 else right
            if t % 3 == 0:
                post(local, "predict", votes=votes, id=f"t{t}")
                answer = post(local, "label", id=f"t{t}", label=label)
            else:
                answer = post(local, "learn", votes=votes, label=label, id=f"t{t}")
            assert answer.status == 200, answer.body
            assert own.learn(votes=votes, label=label) == answer.body["predicted"]
            mistakes += answer.body["mistake"]
        assert mistakes == own.mistakes == local.call("GET", M).body["mistakes"]
        question = {"ann": "7.5", "bob": "7.50", "cy": "8"}
        answer = post(local, "predict", votes=question, probabilities=True, coverage=0.5, reject=0.9).body
        assert {row["label"]: row["probability"] for row in answer["probabilities"]} == own.predict_proba(
            votes=question
        )
        assert (answer["label"], answer["set"]) == ("7.5", ["7.5"])
        assert post(local, "learn", votes=question, label=None).body["mistake"] is None
        assert post(local, "ask", votes={}, tolerance=0.01).status == 200
        assert post(local, "explain", votes=question).body["label"] == "7.5"
        assert local.call("GET", M).body["classes"] == []
        assert not local.service.models["m"].names.kinds[3]  # answers take no memory
        same_after_restarts(local, data, tmp_path)

    def test_raters_accompany_answers(self, tmp_path):
        data, own = tmp_path / "data", Learner(answers="open", key="number")
        local = Local(data).__enter__()
        made(local, "auto", kind="mixed", answers="open", key="number")
        for t in range(30):
            votes = {"ann": f"{t}", "bob": f"{t + 1}", "cy": f"{t + 2 * (t % 2)}.0"}
            scores = {"confidence": {f"{t}": 0.9, f"{t + 1}": 0.1 * (t % 5), "never given": 3.0}}
            answer = post(local, "learn", votes=votes, scores=scores, label=f"{t}", id=f"t{t}")
            assert answer.status == 200, answer.body
            assert own.learn(votes=votes, scores=scores, label=f"{t}") == answer.body["predicted"]
        question = {"votes": {"ann": "7", "bob": "8"}, "scores": {"confidence": {"7": 0.2, "8.0": 0.9}}}
        answer = post(local, "predict", **question, probabilities=True).body
        assert {row["label"]: row["probability"] for row in answer["probabilities"]} == own.predict_proba(**question)
        assert post(local, "learn", attributes={"length": 3.0}, label="7").status == 422
        same_after_restarts(local, data, tmp_path)

    def test_empty_text_is_no_answer(self, tmp_path):
        data, own = tmp_path / "data", Learner(answers="open")
        local = Local(data).__enter__()
        made(local, "auto", kind="votes", answers="open")
        for t in range(30):
            votes = {"ann": f"{t}", "bob": "", "cy": f"{t + t % 2}" if t % 3 else " "}
            answer = post(local, "learn", votes=votes, label=f"{t}", id=f"t{t}")
            assert answer.status == 200, answer.body
            assert own.learn(votes=votes, label=f"{t}") == answer.body["predicted"]
        question = {"votes": {"ann": "7", "bob": "8", "cy": ""}}
        answer = post(local, "predict", **question, probabilities=True).body
        assert {row["label"]: row["probability"] for row in answer["probabilities"]} == own.predict_proba(**question)
        assert post(local, "predict", votes={"ann": "", "bob": ""}).body["label"] is None
        assert post(local, "ask", votes={"ann": ""}, tolerance=0).body["voter"] in ("bob", "cy")
        same_after_restarts(local, data, tmp_path)

    def test_empty_text_is_refused_where_votes_name_classes(self, tmp_path):
        with Local(tmp_path) as local:
            made(local, "auto", kind="votes")
            refused(post(local, "predict", votes={"ann": ""}), "votes", "null abstains")

    def test_options_that_do_not_fit(self, tmp_path):
        with Local(tmp_path) as local:
            for options, field in (
                ({"kind": "attributes", "answers": "open"}, "answers"),
                ({"kind": "votes", "answers": "open", "candidates": True}, "answers"),
                ({"kind": "votes", "answers": "open", "classes": ["a"]}, "classes"),
                ({"kind": "votes", "key": "number"}, "learner"),
            ):
                answer = local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "auto", **options})
                assert (answer.status, answer.body["field"]) == (422, field), answer.body
            made(local, "auto", kind="votes", answers="open")
            refused(post(local, "predict", votes={"ann": "x"}, candidates=["x"]), "candidates", "must be absent")
            schemas = local.call("GET", "/openapi.json").body["components"]["schemas"]
            assert schemas["NewModel"]["properties"]["key"]["anyOf"][0]["enum"] == ["json", "math", "number", "text"]


class TestCandidates:
    def test_never_seen_ones_are_learned_and_replayed(self, tmp_path):
        data, chance, own = tmp_path / "data", random.Random(1), Learner("auto")
        local = Local(data).__enter__()
        made(local, "auto", kind="mixed", candidates=True)
        mistakes = 0
        for t in range(40):
            names = [f"{t}-{i}" for i in range(chance.randrange(2, 6))]
            good = chance.choice(names)
            body = {
                "candidates": names,
                "votes": {"ann": good, "bob": chance.choice(names), "cy": "none of them"},
                "scores": {"near": {name: chance.random() for name in names}},
            }
            if t % 3 == 0:
                kept = post(local, "predict", **body, id=f"t{t}").body
                post(local, "predict", **body | {"candidates": [*names, "more", "still more"]})  # changes nothing
                answer = post(local, "label", id=f"t{t}", label=good)
                assert answer.body["predicted"] == kept["label"]
            else:
                answer = post(local, "learn", **body, label=good, id=f"t{t}")
                assert post(local, "learn", **body, label=good, id=f"t{t}").body == answer.body
            assert answer.status == 200
            assert own.learn(**body, label=good) == answer.body["predicted"]
            mistakes += answer.body["mistake"]
        assert mistakes < 12
        assert local.call("GET", M).body["classes"] == []
        assert bits(own) == bits(local.service.models["m"].learner)
        ranked = post(local, "rank", candidates=["x", "y", "z"], votes={"ann": "y"}).body["ranking"]
        assert ranked[0]["label"] == "y"
        assert [row["label"] for row in ranked] == own.rank(["x", "y", "z"], votes={"ann": "y"})
        assert post(local, "explain", candidates=["x", "y"], votes={"ann": "y"}).body["label"] == "y"
        assert local.call("GET", f"{M}/weights").body["voters"][0]["name"] == "ann"
        assert not local.service.models["m"].names.kinds[3]  # candidates take no memory
        post(local, "predict", candidates=["p", "q"], votes={"ann": "q"}, id="open")
        assert local.call("GET", f"{M}/predictions").body["predictions"][0]["label"] == "q"
        same_after_restarts(local, data, tmp_path)
        exported = [line for line in offline.exported(data, "m", 0) if line["kind"] in ("learn", "label")]
        assert len(exported) == 40
        assert all(line["label"].split("-")[0] == line["id"][1:] for line in exported)
        events = read_log(data)["m"]
        assert [event[5] for event in events if event[1] in ("learn", "label")] == [line["label"] for line in exported]

    def test_how_likely_they_are(self, tmp_path):
        data, own = tmp_path / "data", Learner("auto")
        local = Local(data).__enter__()
        made(local, "auto", kind="votes", candidates=True)
        for t in range(40):
            body = {"candidates": [f"{t}a", f"{t}b"], "votes": {"ann": f"{t}b"}, "label": f"{t}b" if t % 4 else f"{t}a"}
            post(local, "learn", **body)
            own.learn(**body)
        asked = {"candidates": ["x", "y", "z"], "votes": {"ann": "y"}}
        shares, likely = own.predict_proba(**asked), list(own.predict_set(**asked, coverage=0.9))
        answer = post(local, "predict", **asked, probabilities=True, coverage=0.9, id="p").body
        assert {row["label"]: row["probability"] for row in answer["probabilities"]} == shares
        assert answer["probabilities"][0]["label"] == answer["label"] == "y"
        assert answer["set"] == likely
        assert post(local, "predict", **asked, probabilities=True, coverage=0.9, id="p").body == answer
        risk = 1.0 - shares["y"]
        assert post(local, "predict", **asked, reject=risk + 0.01).body == {"label": "y", "sure": True}
        assert post(local, "predict", **asked, reject=risk - 0.01).body == {"label": None, "sure": False}
        same_after_restarts(local, data, tmp_path)

    def test_refused_by_name_and_nothing_learned(self, tmp_path):
        with Local(tmp_path) as local:
            made(local, "auto", kind="scores", candidates=True)
            said = {"r": {"a": 1.0}}
            refused(post(local, "learn", candidates=["a", "b", "a"], scores=said, label="a"), "candidates", "twice")
            refused(post(local, "learn", candidates=["a", "b"], scores=said, label="c"), "label", "not among the candi")
            refused(
                post(local, "learn", candidates=["a", "b"], scores=said, wrong="c"), "wrong", "wrong: 'c' is not among"
            )
            refused(post(local, "learn", scores=said, label="a"), "candidates", "chooses among candidates")
            refused(post(local, "predict", candidates=["a", 3], scores=said), "candidates", "must be text")
            refused(post(local, "predict", candidates=["a"], attributes={"x": 1}), "attributes", "rate the candidates")
            refused(post(local, "predict", candidates=[], scores=said), "candidates", "length >= 1")
            refused(post(local, "predict", candidates=["a"], scores={"r": [1, 2]}), "scores", "must be 1 numbers")
            asked = {"candidates": ["a", "b"], "scores": said}
            assert post(local, "predict", **asked, id="kept").status == 200
            refused(post(local, "label", id="kept", label="c"), "label", "not among the candidates ['a', 'b']")
            assert local.call("GET", M).body["trials"] == 0
            assert post(local, "label", id="kept", label="b").status == 200
            made(local, "auto", "plain", kind="votes")
            body = {"candidates": ["a"], "votes": {"v": "a"}}
            refused(local.call("POST", "/v1/models/plain/predict", body), "candidates", '"candidates": true')
            refused(local.call("POST", "/v1/models/plain/rank", body), "candidates", '"candidates": true')

    @pytest.mark.parametrize(
        ("options", "field", "words"),
        [
            ({"kind": "attributes"}, "kind", "need votes or scores"),
            ({"kind": "votes", "classes": ["a", "b"]}, "classes", "must be absent"),
        ],
    )
    def test_models_that_cannot_choose(self, tmp_path, options, field, words):
        with Local(tmp_path) as local:
            body = {"name": "m", "learner": "auto", "candidates": True} | options
            refused(local.call("POST", "/v1/models?wait=300", body), field, words)


class TestWrong:
    def test_right_and_wrong_are_learned_and_replayed(self, tmp_path):
        data, own = tmp_path / "data", Learner("auto")
        local = Local(data).__enter__()
        made(local, "auto", kind="votes")
        mistakes = 0
        for t in range(40):
            label = "abc"[t % 3]
            votes = {"ann": label, "bob": "abc"[t % 2], "cy": "abc"[(5 * t) % 3]}
            served = post(local, "predict", votes=votes, id=f"t{t}").body["label"]
            told = {"label": label} if served == label else {"wrong": served} if served else {"wrong": "d"}
            if t % 2:
                answer = post(local, "label", id=f"t{t}", **told)
                assert answer.body["mistake"] == (served != label and served is not None)
            else:
                answer = post(local, "learn", votes=votes, id=f"l{t}", **told)
                assert post(local, "learn", votes=votes, id=f"l{t}", **told).body == answer.body
            assert answer.status == 200, answer.body
            assert answer.body.get("wrong") == told.get("wrong")
            assert ("label" in answer.body) == ("label" in told)
            own.learn(votes=votes, **told)
            mistakes += answer.body["mistake"]
        assert bits(own) == bits(local.service.models["m"].learner)
        assert local.call("GET", M).body["mistakes"] == mistakes
        same_after_restarts(local, data, tmp_path)

    def test_attributes_are_replayed_one_by_one(self, tmp_path):
        data = tmp_path / "data"
        local = Local(data).__enter__()
        made(local, "perceptron")
        for t in range(90):
            told = {"wrong": "abc"[(t + 1) % 3]} if t % 7 == 3 else {"label": "abc"[t % 3]}
            assert post(local, "learn", attributes={f"f{t % 9}": 1.0, "g": 0.5}, **told).status == 200
        same_after_restarts(local, data, tmp_path)

    def test_baselines_count_known_labels(self, tmp_path):
        with Local(tmp_path) as local:
            made(local, "perceptron", kind="votes")
            post(local, "learn", votes={"ann": "x", "bob": "y", "cy": "y"}, wrong="y")
            assert local.call("GET", f"{M}/curve").body["points"][-1] == [1, 0, 1, 0]

    def test_refused_and_nothing_learned(self, tmp_path):
        with Local(tmp_path) as local:
            made(local, "auto", kind="votes", classes=["a", "b"])
            votes = {"v": "a"}
            refused(post(local, "learn", votes=votes, label="a", wrong="b"), "wrong", "not both")
            refused(post(local, "learn", votes=votes), "label", "label is missing")
            refused(post(local, "learn", votes=votes, wrong="c"), "wrong", "one of the model's classes")
            refused(post(local, "learn", votes=votes, wrong=3), "wrong", "must be text")
            post(local, "predict", votes=votes, id="p")
            refused(post(local, "label", id="p", label="a", wrong="b"), "wrong", "not both")
            assert local.call("GET", M).body["trials"] == 0
            first = post(local, "label", id="p", wrong="a")
            assert first.status == 200
            assert post(local, "label", id="p", wrong="a").body == first.body
            for told in ({"label": "a"}, {"label": "b"}, {"wrong": "b"}):
                again = post(local, "label", id="p", **told)
                assert again.status == 409
                assert "id 'p' is known not to be 'a'" in again.body["detail"]
            assert local.call("GET", M).body["trials"] == 1
            trial = local.call("GET", f"{M}/trials/p").body
            assert trial["state"] == "learned"
            assert trial["events"][-1]["wrong"] == "a"
            batch = {"items": [{"votes": votes, "wrong": "a"}, {"votes": votes, "wrong": "a", "label": "b"}]}
            results = local.call("POST", f"{M}/learn/batch", batch).body["results"]
            assert results[0]["wrong"] == "a"
            assert results[1]["error"]["field"] == "wrong"


class TestAsk:
    def test_as_the_library_asks(self, tmp_path):
        with Local(tmp_path) as local:
            made(local, "auto", kind="votes")
            own = Learner("auto")
            for t in range(60):
                label = "abc"[t % 3]
                votes = {"ann": label, "bob": "abc"[t % 2], "cy": "abc"[(5 * t) % 3], "dee": label if t % 4 else "a"}
                post(local, "learn", votes=votes, label=label)
                own.learn(votes=votes, label=label)
            before = bits(local.service.models["m"].learner)
            costs = {"ann": 5.0, "bob": 1.0, "cy": 1.0, "dee": 0.5}
            for votes in ({}, {"ann": "a"}, {"dee": None}, {"ann": "a", "dee": "b"}):
                exactly = {"votes": votes, "tolerance": 0}
                assert post(local, "ask", **exactly).body["voter"] == own.ask(**exactly)
                assert post(local, "ask", **exactly, costs=costs).body["voter"] == own.ask(**exactly, costs=costs)
            assert post(local, "ask", votes={}, voters=["bob"], tolerance=0).body["voter"] == "bob"
            refused(post(local, "ask", votes={}, costs=costs | {"bob": -1.0}), "costs", "'bob' must be >= 0, got -1")
            refused(post(local, "ask", votes={}, costs={"ann": 1.0}), "costs", "'bob' has none")
            refused(post(local, "ask", votes={"eve": "a"}), "votes", "'eve' is not a known voter")
            refused(post(local, "ask", votes={}, voters=["eve"]), "voters", "'eve' is not a known voter")
            refused(post(local, "ask", votes={"ann": 3}), "votes", "must be text")
            assert bits(local.service.models["m"].learner) == before

    def test_few_are_asked_as_the_library_does_and_replayed(self, tmp_path):
        """The same questions, answers and panels as of a fusion; from the log the same bits, whoever asked meanwhile."""
        data, fusion = tmp_path / "data", VoteFusion()
        local = Local(data).__enter__()
        made(local, "auto", kind="votes")
        rows, labels = jury_rows(150)
        costs = {name: 1.0 + place % 3 for place, name in enumerate(rows[0])}
        calls = []
        for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
            votes = row
            if t >= 40 and t % 20:
                options = {"tolerance": 0.02, "explore": 0.2} | ({"costs": costs} if t >= 100 else {})
                votes = {}
                while (voter := fusion.ask(votes, **options)) is not None:
                    assert post(local, "ask", votes=votes, **options).body == {"voter": voter}
                    votes[voter] = row[voter]
                assert post(local, "ask", votes=votes, **options).body == {"voter": None}
                calls.append(len(votes))
            told = {name: [vote] for name, vote in votes.items()}
            learned = post(local, "learn", votes=votes, label=label)
            if t:
                assert learned.body["predicted"] == fusion.predict(told)[0]
            fusion.partial_fit(told, [label])
            if t == 120:
                found = post(local, "panel", costs=costs).body
                assert found["panels"] == fusion.panel(costs).to_dict()
                before = bits(local.service.models["m"].learner)
        assert np.mean(calls) < 5
        stored = [event for event in export(local) if event["kind"] == "ask"]
        assert [(event["tolerance"], event.get("costs")) for event in stored] == [(0.02, None), (0.02, costs)]
        assert local.service.models["m"].learner.trials == local.call("GET", M).body["trials"] == 150
        assert bits(local.service.models["m"].learner) != before
        before = bits(local.service.models["m"].learner)
        for votes in ({}, {"v0": None}, {"v1": "a", "v2": "b"}):
            post(local, "ask", votes=votes, tolerance=0.02, costs=costs)
            post(local, "predict", votes=votes)
        assert bits(local.service.models["m"].learner) == before
        same_after_restarts(local, data, tmp_path)

    def test_abstentions_are_stored_and_absent_votes_are_not(self, tmp_path):
        data = tmp_path / "data"
        local = Local(data).__enter__()
        made(local, "winnow(1.2)", kind="votes")
        post(local, "learn", votes={"ann": None, "bob": "a"}, label="a")
        post(local, "learn", votes={"bob": "b"}, label="b")
        post(local, "predict", votes={"ann": None, "bob": "b", "new": None}, id="kept")
        post(local, "label", id="kept", label="b")
        learner = local.service.models["m"].learner
        assert learner.voters == ["ann", "bob", "new"]
        assert learner._asked().recent.ever.tolist() == [2, 3, 1]
        told = [event["instance"]["votes"] for event in export(local) if "instance" in event]
        assert told == [{"ann": None, "bob": "a"}, {"bob": "b"}, {"ann": None, "bob": "b", "new": None}]
        same_after_restarts(local, data, tmp_path)

    def test_bad_questions_are_named_and_store_nothing(self, tmp_path):
        with Local(tmp_path) as local:
            made(local, "winnow(1.2)", kind="votes")
            refused(post(local, "ask", votes={}), "votes", "this learner has met none; learn from trials with votes=")
            assert post(local, "panel").status == 409
            rows, labels = jury_rows(30)
            for row, label in zip(rows, labels, strict=True):
                post(local, "learn", votes=row, label=label)
            before, last = bits(local.service.models["m"].learner), local.call("GET", M).body["applied_seq"]
            costs = dict.fromkeys(rows[0], 1.0)
            for more, field, words in (
                ({"tolerance": -0.1}, "tolerance", "between 0 and 1, got -0.1; try 0.002"),
                ({"tolerance": 1.5}, "tolerance", "between 0 and 1, got 1.5"),
                ({"tolerance": "low"}, "tolerance", "Expected `float`"),
                ({"explore": 7}, "explore", "between 0 and 1, got 7"),
                ({"costs": costs | {"v0": -1.0}}, "costs", "'v0' must be >= 0, got -1"),
                ({"costs": {"v0": 1.0}}, "costs", "'v1' has none"),
                ({"costs": costs | {"eve": 1.0}}, "costs", "'eve' is not a known voter"),
                ({"costs": costs | {"v0": None}}, "costs['v0']", "Expected `float`"),
                ({"voters": ["eve"]}, "voters", "'eve' is not a known voter"),
                ({"attributes": {"rain": 1.0}}, "attributes", "must be absent"),
            ):
                refused(post(local, "ask", votes={}, **more), field, words)
            refused(post(local, "panel", costs={"v0": 1.0}), "costs", "'v1' has none")
            nan = local.call("POST", f"{M}/ask", raw=b'{"votes": {}, "costs": {"v0": NaN}}')
            assert nan.status == 422
            assert bits(local.service.models["m"].learner) == before
            assert local.call("GET", M).body["applied_seq"] == last

    def test_a_key_that_may_not_learn_asks_only_as_others_do(self, tmp_path):
        file = KeyFile(tmp_path)
        keys = {"all": file.add("all", ["predict", "learn", "admin"]), "reader": file.add("reader", ["predict"])}
        with Local(tmp_path) as local:
            local.call(
                "POST", "/v1/models?wait=300", {"name": "m", "learner": "winnow(1.2)", "kind": "votes"}, key=keys["all"]
            )
            for row, label in zip(*jury_rows(30), strict=True):
                local.call("POST", f"{M}/learn", {"votes": row, "label": label}, key=keys["all"])
            question = {"votes": {}, "tolerance": 0.01}
            answer = local.call("POST", f"{M}/ask", question, key=keys["reader"])
            assert answer.status == 403
            assert "'reader' does not allow 'learn'" in answer.body["detail"]
            assert local.call("POST", f"{M}/ask", question | {"tolerance": 0}, key=keys["reader"]).status == 200
            first = local.call("POST", f"{M}/ask", question, key=keys["all"])
            assert first.status == 200
            assert local.call("POST", f"{M}/ask", question, key=keys["reader"]).body == first.body

    def test_among_candidates(self, tmp_path):
        with Local(tmp_path) as local:
            made(local, "winnow(1.5)", kind="votes", candidates=True)
            for t in range(30):
                votes = {"ann": f"{t}a", "bob": f"{t}b", "cy": f"{t}a" if t % 5 else f"{t}b"}
                post(local, "learn", votes=votes, candidates=[f"{t}a", f"{t}b"], label=f"{t}a")
            asked = {"candidates": ["x", "y"], "tolerance": 0}
            assert post(local, "ask", votes={}, **asked).body["voter"] == "ann"
            assert post(local, "ask", votes={"ann": "x", "cy": "x"}, **asked).body["voter"] is None
            refused(
                post(local, "ask", votes={}, candidates=["x", "y"]), "tolerance", "has candidates; ask with tolerance=0"
            )


class TestNoLabel:
    @pytest.mark.parametrize("kind", ["votes", "attributes"])
    def test_unlabeled_trials_are_learned_and_replayed(self, tmp_path, kind):
        data, own = tmp_path / "data", Learner("auto")
        local = Local(data).__enter__()
        made(local, "auto", kind=kind)
        rows, labels = jury_rows(60)
        for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
            given = {kind: row if kind == "votes" else {name: 1.0 for name, vote in row.items() if vote == label}}
            told = None if t % 3 == 0 else label
            body = {**given, "label": told, "id": f"t{t}"}
            answer = post(local, "learn", **body)
            assert answer.status == 200, answer.body
            assert answer.body["predicted"] == own.learn(**given, label=told)
            assert answer.body["label"] == told
            assert (answer.body["mistake"] is None) == (told is None)
            assert post(local, "learn", **body).body == answer.body
        assert local.call("GET", M).body["trials"] == 40
        assert bits(local.service.models["m"].learner) == bits(own)
        assert [event["label"] for event in export(local)][:3] == [None, *labels[1:3]]
        answer = post(local, "label", id="t0", label="a")
        assert answer.status == 409
        assert "was learned without a label" in answer.body["detail"]
        same_after_restarts(local, data, tmp_path)

    def test_where_there_must_be_one(self, tmp_path):
        with Local(tmp_path) as local:
            made(local, "auto", kind="votes")
            post(local, "predict", votes={"ann": "a"}, id="kept")
            refused(post(local, "label", id="kept", label=None), "label", "got null; send it when it has come")
            refused(post(local, "learn", votes={"ann": "a"}, wrong=None), "wrong", "Expected")
            refused(post(local, "learn", votes={"ann": "a"}), "label", "label is missing")
            assert local.call("GET", M).body["pending"] == 1
        with Local(tmp_path / "other") as local:
            made(local, "auto", kind="votes", candidates=True)
            body = {"votes": {"ann": "a"}, "candidates": ["a", "b"], "label": None}
            refused(post(local, "learn", **body), "label", "must be one of the candidates, got null")


class TestWantsLabel:
    def test_draws_are_stored_repeated_and_replayed(self, tmp_path):
        data, own = tmp_path / "data", Learner("S(b=0.3)-perceptron")
        local = Local(data).__enter__()
        made(local, "S(b=0.3)-perceptron")
        said = []
        for t in range(60):
            attributes, label = {f"f{t % 4}": 1.0, f"new{t}": 0.5}, "xy"[t % 4 > 1]
            if t % 2:
                post(local, "predict", attributes=attributes, id=f"t{t}")
                answer = post(local, "wants_label", id=f"t{t}")
            else:
                answer = post(local, "wants_label", attributes=attributes, id=f"t{t}")
            assert answer.status == 200, answer.body
            assert post(local, "wants_label", id=f"t{t}").body == answer.body  # drawn once
            assert answer.body["wanted"] == own.wants_label(attributes)
            said.append(answer.body["wanted"])
            if said[-1]:
                told = {"id": f"t{t}", "label": label} | ({} if t % 2 else {"attributes": attributes})
                assert post(local, "label" if t % 2 else "learn", **told).status == 200
                own.learn(attributes, label=label)
        assert 4 < sum(said) < 50
        assert bits(own) == bits(local.service.models["m"].learner)
        assert local.call("GET", f"{M}/trials/t0").body["events"][0]["kind"] == "wants_label"
        conflict = post(local, "wants_label", attributes={"other": 1.0}, id="t0")
        assert conflict.status == 409
        same_after_restarts(local, data, tmp_path)

    def test_others_want_every_label(self, tmp_path):
        with Local(tmp_path) as local:
            made(local, "perceptron")
            assert post(local, "wants_label", attributes={"a": 1.0}).body == {"wanted": True}
            assert post(local, "wants_label", id="nobody").status == 404
            post(local, "predict", attributes={"a": 1.0}, id="p")
            assert post(local, "wants_label", id="p").body["wanted"] is True
            post(local, "label", id="p", label="x")
            assert post(local, "wants_label", id="p").status == 409
            assert local.call("GET", f"{M}").body["applied_seq"] == 3  # nothing was stored


def test_sets_and_probabilities_are_repeated(tmp_path):
    with Local(tmp_path) as local:
        made(local, "perceptron")
        for t in range(60):
            post(local, "learn", attributes={"rain": 1.0}, label="umbrella" if t % 5 else "hat")
        body = {"attributes": {"rain": 1.0}, "coverage": 0.99, "probabilities": True, "id": "p"}
        first = post(local, "predict", **body)
        assert first.body["set"] == ["umbrella", "hat"]
        assert first.body["probabilities"][0]["label"] == "umbrella"
        post(local, "label", id="p", label="hat")
        assert post(local, "predict", **body).body == first.body
        assert "probabilities" not in post(local, "predict", attributes={"rain": 1.0}, coverage=0.5).body
        for coverage in (0.0, 1.0, 1.5):
            assert post(local, "predict", attributes={"rain": 1.0}, coverage=coverage).status == 422
    with Local(tmp_path) as local:
        assert post(local, "predict", **body).body == first.body


def test_an_answer_that_is_not_sure_is_hidden(tmp_path):
    with Local(tmp_path) as local:
        made(local, "perceptron")
        for t in range(60):
            post(local, "learn", attributes={"rain": 1.0}, label="umbrella" if t % 5 else "hat")
        instance = {"attributes": {"rain": 1.0}}
        likely = post(local, "predict", **instance, probabilities=True).body["probabilities"][0]["probability"]
        assert post(local, "predict", **instance, reject=1.01 - likely).body == {"label": "umbrella", "sure": True}
        assert post(local, "predict", **instance, reject=0.99 - likely).body == {"label": None, "sure": False}
        first = post(local, "predict", **instance, reject=0.99 - likely, id="p").body
        assert (first["label"], first["sure"]) == (None, False)
        assert post(local, "label", id="p", label="hat").body["predicted"] == "umbrella"  # which is a mistake
        assert post(local, "predict", **instance, reject=0.99 - likely, id="p").body == first
        for risk in (0.0, 1.0, -1):
            assert post(local, "predict", **instance, reject=risk).status == 422


def test_obvious_mistakes_get_errors(tmp_path):
    with Local(tmp_path) as local:
        made(local, "perceptron", kind="votes", labels="integer")
        for t in range(9):
            post(local, "learn", votes={"ann": t % 3, "bob": 0}, label=t % 3)
        refused(post(local, "predict", votes={"ann": -1, "bob": 0}), "votes", "-1 of 'ann' is not a label")


def test_both_clients(tmp_path, nursery):
    with Server(tmp_path / "data", nursery=nursery) as server:
        with Client(server.address) as client:
            client.create("jury", "auto", kind="votes", candidates=True)
            assert client.learn("jury", votes={"ann": "p", "bob": "q"}, candidates=["p", "q"], label="p") in ("p", "q")
            id, _ = client.keep("jury", votes={"ann": "r", "bob": "s"}, candidates=np.array(["r", "s"]))
            client.learn("jury", id=id, wrong="s")
            assert client.predict("jury", votes={"ann": "x", "bob": "y"}, candidates=("y", "x")) == "x"
            shares = client.predict_proba("jury", votes={"ann": "x", "bob": "y"}, candidates=["y", "x"])
            assert next(iter(shares)) == "x"
            assert sum(shares.values()) == pytest.approx(1.0)
            assert client.predict_set("jury", votes={"ann": "x"}, candidates=["y", "x"], coverage=0.9)[0] == "x"
            assert client.rank("jury", ["y", "x"], votes={"ann": "x", "bob": "y"}) == ["x", "y"]
            assert client.ask("jury", {}, candidates=["x", "y"], tolerance=0) == "ann"
            assert client.ask("jury", {}, candidates=["x", "y"], tolerance=0, costs={"ann": 100, "bob": 1}) == "bob"
            assert client.explain("jury", votes={"ann": "x"}, candidates=["x", "y"])["label"] == "x"
            assert client.wants_label("jury", votes={"ann": "x"}, candidates=["x", "y"]) is True
            with pytest.raises(TypeError, match="label= or wrong="):
                client.learn("jury", votes={"ann": "x"}, candidates=["x", "y"], label="x", wrong="y")
            with pytest.raises(ServiceError, match="given twice"):
                client.predict("jury", votes={"ann": "x"}, candidates=["x", "x"])
            client.create("few", "S(b=0.5)-perceptron")
            client.keep("few", {"a": 1.0})
            client.predict("few", {"a": 1.0}, id="mine")
            assert client.wants_label("few", id="mine") is True  # no class is known yet
            assert client.wants_label("few", {"a": 1.0}) in (True, False)
            client.learn("few", id="mine", label="x")
            assert client.predict_set("few", {"a": 1.0}, coverage=0.9) == ("x",)
            assert client.predict("few", {"a": 1.0}, reject=0.5) in ("x", None)
            assert client.trial("few", "mine")["state"] == "learned"

        async def same():
            async with AsyncClient(server.address) as client:
                return (
                    await client.rank("jury", ["y", "x"], votes={"ann": "x", "bob": "y"}),
                    await client.ask("jury", {}, candidates=["x", "y"], tolerance=0),
                    await client.learn("jury", votes={"ann": "x"}, candidates=["x", "y"], wrong="y"),
                    await client.wants_label("few", id="mine"),
                    await client.predict_set("few", {"a": 1.0}),
                )

        assert asyncio.run(same()) == (["x", "y"], "ann", "x", True, ("x",))


def test_the_snapshot_is_a_learner_that_chooses(tmp_path):
    with Local(tmp_path / "data") as local:
        made(local, "auto", kind="votes", candidates=True, labels="integer")
        for t in range(20):
            post(local, "learn", votes={"ann": t, "bob": t + 1}, candidates=[t, t + 1], label=t)
        content = local.call("GET", f"{M}/snapshot").body
    path = tmp_path / "m.linmax"
    path.write_bytes(content)
    assert linmax.Learner.load(path).predict(votes={"ann": 7, "bob": 8}, candidates=[8, 7]) == 7
    assert json.loads(json.dumps(linmax.Learner.load(path).trials)) == 20
