"""Recovery: from snapshots whole, damaged, missing or ahead of the log; and a plain model that agrees at every step."""

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import read_log, replayed
from local import Local

from linmax import Learner

M = "/v1/models/m"


def taught(folder, learner="perceptron", kind="attributes", trials=60):
    """A data folder with two snapshots and some events after them, abandoned without any last words."""
    local = Local(folder).__enter__()
    assert local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": learner, "kind": kind}).status == 201
    chance = random.Random(3)
    for i in range(trials):
        local.call("POST", f"{M}/learn", instance(chance, kind) | {"label": chance.choice("xyz")})
        if i % 3 == 0:
            local.call("POST", f"{M}/predict", instance(chance, kind) | {"id": f"p{i}"})
        if i % 6 == 3:
            local.call("POST", f"{M}/label", {"id": f"p{i - 3}", "label": "x"})
        if i in (20, 40):
            local.do(local.service.house.save(local.service.models["m"]))
    state = seen(local)
    local.abandon()
    return state


def instance(chance, kind):
    attributes = {f"f{chance.randrange(9)}": chance.uniform(-1, 1) for _ in range(3)}
    votes = {f"v{i}": chance.choice("xyz") for i in range(4) if chance.random() < 0.8}
    blocks = {"attributes": attributes, "votes": votes}
    return blocks if kind == "mixed" else {kind: blocks[kind]}


def seen(local):
    model = local.service.models["m"]
    description, arrays = model.state()
    return description, {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize(
    ("learner", "kind"), [("perceptron", "attributes"), ("winnow(1.2)", "votes"), ("alma(2)", "mixed")]
)
@pytest.mark.parametrize("damage", ["none", "newest cut", "newest flipped", "all flipped", "all deleted", "ahead"])
def test_the_same_bits(tmp_path, learner, kind, damage):
    before = taught(tmp_path, learner, kind)
    files = sorted((tmp_path / "snapshots").iterdir(), key=lambda path: int(path.stem.split("-")[1]))
    assert len(files) == 2
    for path in files if "all" in damage else files[1:]:
        content = bytearray(path.read_bytes())
        if "cut" in damage:
            path.write_bytes(content[: len(content) // 2])
        elif "flipped" in damage:
            content[-9] ^= 4
            path.write_bytes(content)
        elif "deleted" in damage:
            path.unlink()
        elif damage == "ahead":
            path.rename(path.with_name("1-999999.linmax"))
    with Local(tmp_path) as local:
        assert seen(local) == before
        assert local.service.replayed < 60 or "all" in damage
    learner_again, mistakes = replayed(read_log(tmp_path)["m"], learner=learner)
    assert {name: np.ascontiguousarray(a).tobytes() for name, a in learner_again.state()[1].items()} == before[1]
    assert before[0]["account"]["mistakes"] == mistakes


def test_a_long_log_in_bulk(tmp_path):
    """Many rows at once, rows one by one, and a fresh learner taught off-line: the same bits."""
    chance = random.Random(5)
    with Local(tmp_path) as local:
        local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "winnow(1.3)"})
        for start in range(0, 3000, 500):
            many = []
            for i in range(start, start + 500):
                names = chance.sample(range(40 if i < 2000 else 50), 6)
                label = chance.choice("xy" if i < 1000 else "xyz")
                many.append(
                    {"attributes": {f"f{n}": chance.uniform(-1, 1) for n in names}, "label": label, "id": f"i{i}"}
                )
            assert local.call("POST", f"{M}/learn/batch", {"items": many}).status == 200
            kept = [{"attributes": item["attributes"], "id": f"p{i}"} for i, item in enumerate(many[:200], start)]
            local.call("POST", f"{M}/predict/batch", {"items": kept})
            local.call("POST", f"{M}/label/batch", {"items": [{"id": item["id"], "label": "x"} for item in kept[:150]]})
        before = seen(local)
        answers = local.call("POST", f"{M}/learn/batch", {"items": many}).body
    for path in (tmp_path / "snapshots").iterdir():
        path.unlink()
    with Local(tmp_path) as local:
        assert local.service.replayed == 3000 + 900
        assert seen(local) == before
        assert local.call("POST", f"{M}/learn/batch", {"items": many}).body == answers
    again, mistakes = replayed(read_log(tmp_path)["m"], learner="winnow(1.3)")
    assert {name: np.ascontiguousarray(a).tobytes() for name, a in again.state()[1].items()} == before[1]
    assert before[0]["account"]["mistakes"] == mistakes


def test_numbers_too_large_to_learn_from(tmp_path):
    """What overflows is stored, told, not learned; and a replay does the same."""
    with Local(tmp_path) as local:
        local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
        statuses = []
        for i in range(12):
            body = {"attributes": {"a": 1e100, "b": -1e100 if i % 2 else 1.0}, "label": "xyz"[i % 3]}
            statuses.append(local.call("POST", f"{M}/learn", body).status)
        assert 422 in statuses
        before = seen(local)
        assert before[0]["unlearned"] == statuses.count(422)
    for path in (tmp_path / "snapshots").iterdir():
        path.unlink()
    with Local(tmp_path) as local:
        assert seen(local) == before


def test_half_written_snapshots_are_swept_away(tmp_path):
    taught(tmp_path, trials=5)
    (tmp_path / "snapshots" / ".1-5.linmax.abc").write_bytes(b"half")
    (tmp_path / "snapshots" / "notes.txt").write_text("mine")
    with Local(tmp_path):
        assert [path.name for path in (tmp_path / "snapshots").iterdir()] == ["notes.txt"]


def test_old_snapshots_go(tmp_path):
    with Local(tmp_path) as local:
        local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
        for i in range(5):
            local.call("POST", f"{M}/learn", {"attributes": {"a": 1.0}, "label": str(i)})
            assert local.do(local.service.house.save(local.service.models["m"])).exists()
        assert local.do(local.service.house.save(local.service.models["m"])) is None
        assert len(list((tmp_path / "snapshots").iterdir())) == 2


class PlainModel(RuleBasedStateMachine):
    """The service beside a dict and a learner: late, double, contradicting and unknown labels, and restarts."""

    folder = None  # set by the test

    def __init__(self):
        super().__init__()
        self.data = self.folder / str(len(list(self.folder.iterdir())))
        self.local = Local(self.data).__enter__()
        self.local.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
        self.learner, self.mistakes, self.trials = Learner("perceptron"), 0, 0
        self.known = {}  # id -> [instance, served or None, label or None, answer or None]

    def teardown(self):
        self.local.__exit__()

    ids = some.sampled_from("abcdef")
    labels = some.sampled_from("xy")
    instances = some.dictionaries(some.sampled_from("pqr"), some.sampled_from([-1.0, 0.5, 2.0]), max_size=3)

    @rule(id=ids, instance=instances)
    def predict(self, id, instance):
        answer = self.local.call("POST", f"{M}/predict", {"attributes": instance, "id": id})
        if id not in self.known:
            served = self.learner.predict(instance)
            assert (answer.status, answer.body["label"]) == (200, served)
            self.known[id] = [instance, "predict", served, None, None]
        elif self.known[id][1] == "predict" and self.known[id][0] == instance:
            assert (answer.status, answer.body["label"]) == (200, self.known[id][2])
        else:
            assert answer.status == 409

    @rule(instance=instances)
    def only_ask(self, instance):
        answer = self.local.call("POST", f"{M}/predict", {"attributes": instance})
        assert answer.body == {"label": self.learner.predict(instance)}

    @rule(id=ids, label=labels)
    def label(self, id, label):
        answer = self.local.call("POST", f"{M}/label", {"id": id, "label": label})
        if id not in self.known:
            assert answer.status == 404
            return
        trial = self.known[id]
        if trial[3] is None:
            self.learner.learn(trial[0], label=label)
            self.count(trial, label, trial[2], answer)
        elif trial[3] == label:
            assert answer.body == trial[4]
        else:
            assert answer.status == 409

    @rule(id=ids, instance=instances, label=labels)
    def learn(self, id, instance, label):
        answer = self.local.call("POST", f"{M}/learn", {"attributes": instance, "label": label, "id": id})
        if id not in self.known:
            trial = self.known[id] = [instance, "learn", None, None, None]
            self.count(trial, label, self.learner.learn(instance, label=label), answer)
            return
        trial = self.known[id]
        if trial[1] == "learn" and trial[0] == instance and trial[3] == label:
            assert answer.body == trial[4]
        else:
            assert answer.status == 409

    def count(self, trial, label, predicted, answer):
        self.trials += 1
        self.mistakes += predicted != label
        assert answer.status == 200
        assert answer.body["predicted"] == predicted
        assert answer.body["mistake"] == (predicted != label)
        trial[3:] = [label, answer.body]

    @rule(gently=some.booleans(), forgetful=some.booleans())
    def restart(self, gently, forgetful):
        if gently:
            self.local.__exit__()
        else:
            self.local.abandon()
        if forgetful:
            for path in (self.data / "snapshots").iterdir():
                path.unlink()
        self.local = Local(self.data).__enter__()

    @rule()
    def snapshot(self):
        self.local.do(self.local.service.house.save(self.local.service.models["m"]))

    @invariant()
    def agrees(self):
        shown = self.local.call("GET", M).body
        assert (shown["trials"], shown["mistakes"]) == (self.trials, self.mistakes)
        assert shown["pending"] == sum(trial[1] == "predict" and trial[3] is None for trial in self.known.values())
        assert self.local.service.models["m"].learner.weights == self.learner.weights


def test_state_machine(tmp_path):
    PlainModel.folder = tmp_path
    checks = list(HealthCheck)
    run_state_machine_as_test(
        PlainModel,
        settings=settings(
            max_examples=15,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=checks,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink a failure takes too long here
        ),
    )
