"""River's own checks, its pipelines and its evaluation."""

import pytest

pytest.importorskip("river", reason="River is the extra 'river'")
from river.checks import yield_checks

from linmax import river

MODELS = {
    "fast": river.LinearMaxClassifier("AR-perceptron"),
    "default": river.LinearMaxClassifier(),
    "fusion": river.FusionClassifier(**next(river.FusionClassifier._unit_test_params())),
}


@pytest.mark.parametrize(
    ("model", "check"),
    [
        pytest.param(model, check, id=f"{name}-{i}-{check.__name__}")
        for name, model in MODELS.items()
        for i, check in enumerate(yield_checks(model))
    ],
)
def test_conforms_to_river(model, check):
    check(model.clone())
