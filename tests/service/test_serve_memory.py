"""Budgets of memory: growth is refused before anything is stored, and predictions take none of it."""

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from local import Local

MEGA = 2**20


def grow(local, model, first, names=400):
    """A trial with new names and a new class."""
    attributes = {f"{first}-{i}": 1.0 for i in range(names)}
    return local.call("POST", f"/v1/models/{model}/learn", {"attributes": attributes, "label": f"c{first}"})


def test_a_model_stops_growing(tmp_path):
    with Local(tmp_path, model_memory=4 * MEGA, memory=6 * MEGA) as local:
        for name in "ab":
            assert local.call("POST", "/v1/models?wait=300", {"name": name, "learner": "perceptron"}).status == 201
        answers = [grow(local, "a", i) for i in range(30)]
        refused = answers[-1]
        assert refused.status == 422
        assert "(--model-memory)" in refused.body["detail"]
        before = local.call("GET", "/v1/models/a").body
        assert before["trials"] == sum(answer.status == 200 for answer in answers) > 3
        taken = sum(array.nbytes for array in local.service.models["a"].learner.state()[1].values())
        assert taken < 4 * 4 * MEGA  # arrays grow in steps
        # What is known is still learned, and predictions of anything are served and kept.
        known = {"attributes": {"0-1": 1.0}, "label": "c0"}
        assert local.call("POST", "/v1/models/a/learn", known).status == 200
        names = len(local.service.models["a"].names)
        for i in range(50, 55):
            unknown = {"attributes": {f"{i}-{j}": 1.0 for j in range(4000)}}
            assert local.call("POST", "/v1/models/a/predict", unknown).status == 200
            assert local.call("POST", "/v1/models/a/predict", unknown | {"id": f"p{i}"}).status == 200
        assert len(local.service.models["a"].names) == names
        assert local.call("POST", "/v1/models/a/label", {"id": "p50", "label": "c0"}).status == 422
        assert local.call("GET", "/v1/models/a").body["pending"] == 5
        answers = [grow(local, "b", i) for i in range(30)]
        assert answers[-1].status == 507
        assert "(--memory)" in answers[-1].body["detail"]
    with Local(tmp_path, model_memory=4 * MEGA, memory=6 * MEGA) as local:  # and after a restart the same
        assert grow(local, "a", 99).status == 422
        assert local.call("POST", "/v1/models/a/predict", {"attributes": {"50-1": 1.0}, "id": "p60"}).status == 200


def test_names_are_limited(tmp_path):
    with Local(tmp_path) as local:
        assert (
            local.call("POST", "/v1/models?wait=300", {"name": "a", "learner": "perceptron", "max_names": 3}).status
            == 201
        )
        learn = {"attributes": {"a": 1.0, "b": 1.0}, "label": "x", "id": "first"}
        first = local.call("POST", "/v1/models/a/learn", learn)
        assert first.status == 200
        for _ in range(2):  # a refused trial leaves no names behind
            answer = local.call("POST", "/v1/models/a/learn", {"attributes": {"c": 1.0}, "label": "x"})
            assert answer.status == 422
            assert "at most 3 names, and has 3; 'c' is new" in answer.body["detail"]
        assert local.call("POST", "/v1/models/a/predict", {"attributes": {"c": 1.0}, "id": "p"}).status == 200
        refused = local.call("POST", "/v1/models/a/label", {"id": "p", "label": "x"})
        assert "'c' is new" in refused.body["detail"]
        assert local.call("POST", "/v1/models/a/learn", learn).body == first.body
    with Local(tmp_path) as local:
        assert local.call("POST", "/v1/models/a/learn", {"attributes": {"c": 1.0}, "label": "x"}).status == 422
        assert local.call("PATCH", "/v1/models/a", {"max_names": 4}).status == 200
        assert local.call("POST", "/v1/models/a/label", {"id": "p", "label": "x"}).status == 200


@pytest.mark.parametrize("learner", ["perceptron", "auto"])
def test_the_account_follows_the_learner(tmp_path, learner):
    with Local(tmp_path) as local:
        assert local.call("POST", "/v1/models?wait=300", {"name": "a", "learner": learner}).status == 201
        for i in range(12):
            assert grow(local, "a", i).status == 200
        model = local.service.models["a"]
        assert model.nbytes == sum(array.nbytes for array in model.learner.state()[1].values())
        assert model.size > model.nbytes + 400 * 12 * 400  # the names too
