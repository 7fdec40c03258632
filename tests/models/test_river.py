"""River's own checks, its pipelines and its evaluation."""

import copy
import pickle

import numpy as np
import pytest

pytest.importorskip("river", reason="River is the extra 'river'")
from river import base, compose, datasets, evaluate, metrics, naive_bayes, preprocessing, tree
from river.checks import yield_checks
from sklearn.datasets import load_iris

import linmax
from linmax import river

MODELS = {
    "default": river.LinearMaxClassifier(),
    "fusion": river.FusionClassifier(**next(river.FusionClassifier._unit_test_params())),
}
CHECKS = [
    pytest.param(model, check, id=f"{name}-{i}-{check.__name__}")
    for name, model in MODELS.items()
    for i, check in enumerate(yield_checks(model))
]


@pytest.mark.parametrize(("model", "check"), CHECKS)
def test_conforms_to_river(model, check):
    check(model.clone())


def trials(size=120):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:size]
    names = ["setosa", "versicolor", "virginica"]
    return [(dict(zip("abcd", X[t].tolist(), strict=True)), names[y[t]]) for t in order]


def play(model, data):
    said = []
    for x, y in data:
        said.append((model.predict_one(x), model.predict_proba_one(x)))
        model.learn_one(x, y)
    return said


@pytest.mark.parametrize("learner", ["perceptron", "AR-winnow(1.1)", "vr-combine"])
def test_learns_as_the_scikit_learn_estimator_does(learner):
    data = trials()
    model = river.LinearMaxClassifier(learner)
    play(model, data)
    X = np.array([[x[name] for name in sorted(x)] for x, _ in data])
    other = linmax.LinearMaxClassifier(learner).partial_fit(X, [y for _, y in data])
    assert model.mistakes == other.mistakes_
    assert [model.predict_one(x) for x, _ in data] == other.predict(X).tolist()


def test_in_a_pipeline_and_its_evaluation():
    pipeline = preprocessing.StandardScaler() | river.LinearMaxClassifier("A-perceptron")
    assert evaluate.progressive_val_score(datasets.Phishing(), pipeline, metrics.Accuracy()).get() > 0.85
    selected = compose.SelectType(float) | river.LinearMaxClassifier("AR-perceptron")
    loss = evaluate.progressive_val_score(trials(), selected, metrics.CrossEntropy()).get()
    assert loss < 0.6  # even chances cost 1.1


def test_before_anything_is_known():
    model = river.LinearMaxClassifier("perceptron")
    assert model.predict_one({"a": 1.0}) is None
    assert model.predict_proba_one({"a": 1.0}) == {}
    model.learn_one({"a": 1.0}, "x")
    assert model.predict_one({"b": 1.0}) == "x"
    assert model.predict_proba_one({"b": 1.0}) == {"x": 1.0}


def test_probabilities_follow_predictions():
    model = river.LinearMaxClassifier("AR-perceptron")
    said = play(model, trials())[60:]
    assert all(max(chances, key=chances.get) == predicted for predicted, chances in said)
    assert all(sum(chances.values()) == pytest.approx(1.0) for _, chances in said)
    assert np.mean([max(chances.values()) for _, chances in said]) > 0.7


@pytest.mark.parametrize("scale", ["max", "none"])
def test_scale(scale):
    model = river.LinearMaxClassifier("perceptron", scale=scale)
    for x, y in [({"a": 4.0, "b": 0.0}, "x"), ({"a": -2.0, "b": 5.0}, "y"), ({"a": 8.0}, "x")]:
        model.learn_one(x, y)
    assert model._maxima == ({"a": 8.0, "b": 5.0} if scale == "max" else {})
    divided = model._scaled({"b": 2.5, "a": 16.0, "c": 0.0})
    assert divided == ({"a": 1.0, "b": 0.5, "c": 0.0} if scale == "max" else {"a": 16.0, "b": 2.5, "c": 0.0})


def test_a_rule_that_needs_the_scale_says_so():
    model = river.LinearMaxClassifier("winnow(1.1)", scale="none")
    with pytest.raises(ValueError, match="needs attributes in"):
        model.learn_one({"a": 4.0}, "x")
    assert model.predict_one({"a": 0.5}) is None


@pytest.mark.parametrize("bad", ["text", float("nan")])
def test_attributes_that_are_no_numbers(bad):
    model = river.LinearMaxClassifier("perceptron", scale="none")
    with pytest.raises(ValueError, match="'a' must be a finite number"):
        model.learn_one({"a": bad}, "x")


def test_names_of_several_kinds():
    model = river.LinearMaxClassifier("perceptron")
    for _ in range(2):
        model.learn_one({1: 1.0, "one": 0.0, ("o", "ne"): 0.5}, "x")
        model.learn_one({"one": 1.0, ("o", "ne"): 0.5, 1: 0.0}, "y")
    assert model.predict_one({("o", "ne"): 0.5, "one": 1.0}) == "y"


@pytest.mark.parametrize(
    "make", [lambda: river.LinearMaxClassifier("AR-winnow(1.1)"), lambda: copy.deepcopy(MODELS["fusion"])]
)
def test_goes_on_as_if_it_had_never_stopped(make):
    data = trials()
    model = make()
    play(model, data[:60])
    others = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    expected = play(model, data[60:])
    assert all(play(other, data[60:]) == expected for other in others)


# -- fusion -------------------------------------------------------------------------------------------------------


class Fixed(base.Classifier):
    """Always says the same, and writes down when."""

    def __init__(self, label, diary):
        self.label, self.diary = label, diary

    def learn_one(self, x, y):
        self.diary.append("learn")

    def predict_one(self, x):
        self.diary.append("predict")
        return self.label


def test_models_predict_before_they_learn():
    diary = []
    model = river.FusionClassifier([Fixed("x", diary), Fixed("y", diary)], "perceptron")
    model.learn_one({"a": 1.0}, "x")
    assert diary == ["predict", "predict", "learn", "learn"]


def test_the_better_model_gets_the_weight():
    wrong = Fixed("versicolor", [])
    model = river.FusionClassifier([naive_bayes.GaussianNB(), wrong], "AR-perceptron", soft=False)
    for x, y in trials():
        wrong.label = {"setosa": "versicolor", "versicolor": "virginica", "virginica": "setosa"}[y]
        model.learn_one(x, y)
    assert model.weights[0] > 0 > model.weights[1]
    assert sum(map(abs, model.weights)) == pytest.approx(1.0)


@pytest.mark.parametrize("soft", [True, False])
def test_fuses(soft):
    models = [naive_bayes.GaussianNB(), tree.HoeffdingTreeClassifier(), river.LinearMaxClassifier("A-perceptron")]
    model = river.FusionClassifier(models, soft=soft)
    found = evaluate.progressive_val_score(trials(150), model, metrics.Accuracy())
    assert found.get() > 0.75
    assert len(model.weights) == 3
