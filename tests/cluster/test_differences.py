"""Of a model only the blocks that changed travel, whatever its learner is, and no bit is lost on the way."""

from __future__ import annotations

import numpy as np
import pytest

import linmax
from linmax import StreamModel
from linmax.cluster.differences import StateDifference, difference_of, state_bytes

WORDS = [f"w{number}" for number in range(3000)]


def lines(seed, count, words=60):
    random = np.random.default_rng(seed)
    some = random.choice(WORDS, words, replace=False)
    return [f"{t % 4} |w " + " ".join(random.choice(some, 5, replace=False)) for t in range(count)]


def learned(learner):
    model = StreamModel(learner)
    rows = [f"{t % 4} |w " + " ".join(WORDS[10 * t : 10 * t + 10]) for t in range(300)]
    for batch in linmax.stream(rows * 2, model=model):
        model.learn(batch)
    return model


@pytest.mark.small
def test_a_state_comes_back_from_its_difference():
    random = np.random.default_rng(0)
    base = (
        {"of": 1},
        {
            "same": random.random((400, 3)),
            "some": random.random((500, 7)).astype(np.float32),
            "longer": random.random((100, 4)),
            "shorter": random.random(2000),
            "wider": random.random((90, 4)),
            "gone": np.zeros(5000),
            "odd": random.integers(0, 9, 5001).astype(np.uint8),
            "few": np.arange(4),
        },
    )
    arrays = {name: array.copy() for name, array in base[1].items() if name != "gone"}
    arrays["some"][[3, 499]] += 1.0
    arrays["longer"] = np.concatenate([arrays["longer"], np.ones((3, 4))])
    arrays["shorter"] = arrays["shorter"][:1500].copy()
    arrays["wider"] = np.concatenate([arrays["wider"], np.ones((90, 1))], axis=1)
    arrays["odd"][-1] += 1
    arrays["new"] = np.ones(300)
    state = {"of": 2}, arrays
    found = difference_of(state, base)
    assert isinstance(found, StateDifference)
    assert found.nbytes < state_bytes(state) / 3
    description, back = found.applied(base)
    assert description == {"of": 2}
    assert set(back) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)
        assert (back[name].dtype, back[name].shape) == (array.dtype, array.shape)
    assert back["same"] is base[1]["same"]
    other = {"of": 1}, {name: array + 1 for name, array in base[1].items()}
    assert difference_of(other, base) is other


@pytest.mark.parametrize("learner", ["auto", "naive-bayes"])
def test_few_words_change_few_blocks_of_any_model(learner):
    model = learned(learner)
    base = model.state()
    base = base[0], {name: array.copy() for name, array in base[1].items()}
    for batch in linmax.stream(lines(1, 6), model=model):
        model.learn(batch)
    found = difference_of(model.state(), base)
    assert isinstance(found, StateDifference)
    assert found.nbytes < state_bytes(base) / 3
    for name, array in found.applied(base)[1].items():
        assert array.tobytes() == model.state()[1][name].tobytes()
