"""Budgets of memory: growth is refused before anything is stored, and predictions take none of it."""

import numpy as np
import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from local import Local

from linmax import Learner
from linmax.service.probing import footprint

MEGA = 2**20


def grow(local, model, first, names=400):
    """A trial with new names and a new class."""
    attributes = {f"{first}-{i}": 1.0 for i in range(names)}
    return local.call("POST", f"/v1/models/{model}/learn", {"attributes": attributes, "label": f"c{first}"})


def test_a_model_stops_growing(tmp_path):
    with Local(tmp_path, model_memory=4 * MEGA, memory=6 * MEGA) as local:
        for name in "ab":
            assert local.call("POST", "/v1/models", {"name": name, "learner": "perceptron"}).status == 201
        answers = [grow(local, "a", i) for i in range(30)]
        refused = answers[-1]
        assert refused.status == 422
        assert "(--model-memory)" in refused.body["error"]["message"]
        before = local.call("GET", "/v1/models/a").body
        assert before["trials"] == sum(answer.status == 200 for answer in answers) > 3
        taken = sum(array.nbytes for array in local.service.models["a"].learner.state()[1].values())
        assert taken < 2 * 4 * MEGA  # arrays grow in steps
        # What is known is still learned, and predictions of anything are served and kept.
        known = {"attributes": {"0-1": 1.0}, "label": "c0"}
        assert local.call("POST", "/v1/models/a/learn", known).status == 200
        names = len(local.service.log.models[1].names)
        for i in range(50, 55):
            unknown = {"attributes": {f"{i}-{j}": 1.0 for j in range(4000)}}
            assert local.call("POST", "/v1/models/a/predict", unknown).status == 200
            assert local.call("POST", "/v1/models/a/predict", unknown | {"id": f"p{i}"}).status == 200
        assert len(local.service.log.models[1].names) == names
        assert local.call("POST", "/v1/models/a/label", {"id": "p50", "label": "c0"}).status == 422
        assert local.call("GET", "/v1/models/a").body["pending"] == 5
        answers = [grow(local, "b", i) for i in range(30)]
        assert answers[-1].status == 507
        assert "(--memory)" in answers[-1].body["error"]["message"]
    with Local(tmp_path, model_memory=4 * MEGA, memory=6 * MEGA) as local:  # and after a restart the same
        local.do(local.service.house._measure())
        assert grow(local, "a", 99).status == 422
        assert local.call("POST", "/v1/models/a/predict", {"attributes": {"50-1": 1.0}, "id": "p60"}).status == 200


@pytest.mark.parametrize("learner", ["perceptron", "arow", "AR-alma(2)", "auto"])
def test_the_estimate_is_near_the_truth(learner):
    found = Learner(learner)
    for i in range(12):
        found.learn({str(j): 1.0 for j in range(2000)}, label=str(i))
    taken = sum(np.asarray(array).nbytes for array in found.state()[1].values())
    assert 0.5 < footprint(learner, "attributes", True).bytes([2000, 0, 0], 12) / taken < 2.0
