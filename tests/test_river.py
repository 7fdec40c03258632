"""River's own checks, its pipelines and its evaluation."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("river", reason="River is the extra 'river'")
from river import base, compose, datasets, evaluate, metrics, naive_bayes, preprocessing, tree
from river.checks import yield_checks
from sklearn.datasets import load_iris

import linmax
from linmax import river
from linmax.engine.notation import LEARNERS
from linmax.rules import REGISTRY

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
    assert loss < 0.61  # even chances cost 1.1


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
    divided = model._inputs({"b": 2.5, "a": 16.0, "c": 0.0})["attributes"]
    assert divided == ({"a": 1.0, "b": 0.5, "c": 0.0} if scale == "max" else {"a": 16.0, "b": 2.5, "c": 0.0})


def test_rule_that_requires_scale_raises():
    model = river.LinearMaxClassifier("winnow(1.1)", scale="none")
    with pytest.raises(ValueError, match="needs attributes in"):
        model.learn_one({"a": 4.0}, "x")
    assert model.predict_one({"a": 0.5}) is None


@pytest.mark.parametrize("bad", [float("inf"), [1.0], {"b": 1.0}])
@pytest.mark.parametrize("scale", ["none", "max"])
def test_attributes_that_are_no_numbers(bad, scale):
    model = river.LinearMaxClassifier("perceptron", scale=scale)
    model.learn_one({"a": 1.0, "b": 1.0}, "x")
    with pytest.raises(ValueError, match="'a' must be a finite number"):
        model.learn_one({"a": bad, "b": 9.0}, "x")
    assert model._learner.trials == 1
    assert model._maxima == ({"a": 1.0, "b": 1.0} if scale == "max" else {})


@pytest.mark.parametrize("learner", ["A-perceptron", "auto"])
def test_words_are_categories(learner):
    model = river.LinearMaxClassifier(learner)
    for _ in range(20):
        model.learn_one({"colour": "red", "size": 3.0, "maker": None}, "x")
        model.learn_one({"colour": "blue", "size": 2.0, "maker": None}, "y")
    assert "colour=red" in model._learner.attributes
    assert {"maker", "maker=None"}.isdisjoint(model._learner.attributes)  # None is missing
    model.learn_one({"colour": "red", "size": float("nan")}, "x")
    assert model.predict_one({"colour": "red", "size": 2.5}) == "x"
    assert model.predict_one({"colour": "green", "maker": "none other"}) in ("x", "y")


OFFERED = [*REGISTRY, *LEARNERS, "vr-combine", "combine", "R-combine"]
NEED = {"alma": "alma(2)", "balanced-winnow": "balanced-winnow(1.1)", "p-norm": "p-norm(3)", "winnow": "winnow(1.1)"}


@pytest.mark.parametrize("name", OFFERED)
def test_every_learner_that_messages_offer(name):
    try:
        linmax.parse(name)
        text = name
    except (TypeError, ValueError):
        text = NEED.get(name)
    if text is None:
        pytest.skip("it needs an argument that says what it is")
    if name == "elimination":
        with pytest.raises(ValueError, match="has a fixed threshold .*; use LinearThreshold, or a rule"):
            river.LinearMaxClassifier(text)
        return
    model = river.LinearMaxClassifier(text)
    if name == "votes":
        with pytest.raises(ValueError, match="learns from votes and scores, and these instances have attributes"):
            model.learn_one(*trials(1)[0])
        return
    for x, y in trials(40):
        model.learn_one(x, y)
    assert model.predict_one(trials(1)[0][0]) in ("setosa", "versicolor", "virginica")


@pytest.mark.parametrize("learner", ["A-perceptron", "auto"])
@pytest.mark.parametrize("known", [False, True])
def test_an_array_as_a_value_is_refused_by_name(learner, known):
    model = river.LinearMaxClassifier(learner)
    for x, y in [({"a": 1.0, "b": 2.0}, 0), ({"a": 0.5, "b": 1.0}, 1), ({"a": 0.5, "b": 1.0}, 1)] if known else []:
        model.learn_one(x, y)
    trials_before = model._learner.trials
    for value in np.zeros(2), np.zeros((2, 2)), [1.0, 2.0]:
        with pytest.raises(ValueError, match="attributes: 'a' must be a finite number, got "):
            model.predict_one({"a": value, "b": 1.0})
        with pytest.raises(ValueError, match="attributes: 'a' must be a finite number, got "):
            model.learn_one({"a": value, "b": 1.0}, 1)
    assert model._learner.trials == trials_before


@pytest.mark.parametrize("name", ["winnow", "balanced-winnow", "p-norm", "committee"])
def test_learner_without_parameter_raises(name):
    with pytest.raises(TypeError, match=rf"{name} needs a value for \w+; write it in brackets, as in") as told:
        river.LinearMaxClassifier(name)
    written = str(told.value).rsplit(" ", 1)[1]
    model = river.LinearMaxClassifier(written)
    for x, y in trials(20):
        model.learn_one(x, y)
    assert model.predict_one(trials(1)[0][0]) in ("setosa", "versicolor", "virginica")


# -- weights, many at a time, parameters that change --------------------------------------------------------------


def test_weights_that_cannot_be():
    model = river.LinearMaxClassifier("AR-perceptron")
    for bad, message in ((-1.0, "w must be >= 0"), (float("nan"), "w must be finite, got nan")):
        with pytest.raises(ValueError, match=message):
            model.learn_one({"x": 1.0}, "a", w=bad)
    assert model._learner.trials == 0


def test_many_at_a_time():
    data = trials()
    X, y = pd.DataFrame([x for x, _ in data], index=np.arange(120) + 7), pd.Series([y for _, y in data])
    for make in (
        lambda: river.LinearMaxClassifier("AR-perceptron"),
        lambda: river.FusionClassifier([naive_bayes.GaussianNB(), tree.HoeffdingTreeClassifier()], "perceptron"),
    ):
        one, many = make(), make()
        for x, label in data:
            one.learn_one(x, label)
        many.learn_many(X[:50], y[:50])
        many.learn_many(X[50:], y[50:])
        assert many.mistakes == one.mistakes
        assert many.predict_many(X).tolist() == [one.predict_one(x) for x, _ in data]
        assert many.predict_many(X).index.equals(X.index)
        shares = many.predict_proba_many(X)
        assert shares.index.equals(X.index)
        assert shares.iloc[3].to_dict() == one.predict_proba_one(data[3][0])
    with pytest.raises(ValueError, match="y must have one class for each of 120 rows, got 50"):
        many.learn_many(X, y[:50])
    weighted = river.LinearMaxClassifier("perceptron")
    weighted.learn_many(X, y, w=2.0)
    assert weighted._learner.trials == 120


def test_tables_and_weights_that_do_not_fit():
    model = river.LinearMaxClassifier("A-perceptron")
    table, labels = pd.DataFrame({"a": [1.0, 2.0]}), pd.Series(["x", "y"])
    with pytest.raises(ValueError, match="w must be one number, or one for each of 2 rows; got 1"):
        model.learn_many(table, labels, w=[1.0])
    polars = pytest.importorskip("polars")
    for other in polars.DataFrame({"a": [1.0, 2.0]}), np.zeros((2, 1)):
        with pytest.raises(TypeError, match=r"X must be a pandas DataFrame, .* got (polars.DataFrame|numpy.ndarray)"):
            model.learn_many(other, labels)
        with pytest.raises(TypeError, match="X must be a pandas DataFrame"):
            model.predict_many(other)
    assert model._learner.trials == 0
    for w in np.float32(2.0), np.int64(2), np.array([2.0, 2.0]):
        own = river.LinearMaxClassifier("A-perceptron")
        own.learn_many(table, labels, w=w)
        assert own._learner.trials == 2


def test_names_of_several_kinds():
    model = river.LinearMaxClassifier("perceptron")
    for _ in range(2):
        model.learn_one({1: 1.0, "one": 0.0, ("o", "ne"): 0.5}, "x")
        model.learn_one({"one": 1.0, ("o", "ne"): 0.5, 1: 0.0}, "y")
    assert model.predict_one({("o", "ne"): 0.5, "one": 1.0}) == "y"


@pytest.mark.parametrize(
    "make", [lambda: river.LinearMaxClassifier("AR-winnow(1.1)"), lambda: copy.deepcopy(MODELS["fusion"])]
)
def test_resumes_with_same_bits(make):
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
