"""What users of scikit-learn look for on an estimator: parameters of the learner, weights, names, representation."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import estimator_html_repr

import linmax
from linmax import FusionClassifier, LinearMaxClassifier

MODELS = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(random_state=0))]


# -- parameters of the learner ------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [LinearMaxClassifier, lambda learner: FusionClassifier(MODELS, learner)])
def test_parameters_of_a_learner(make):
    model = make("AR-winnow(1.1)")
    found = model.get_params()
    assert (found["learner__alpha"], found["learner__s"]) == (1.1, 100)
    assert not any("__" in name for name in model.get_params(deep=False))
    assert model.set_params(learner__alpha=1.3, learner__s=50).learner == "AR(s=50)-winnow(1.3)"
    assert model.set_params(learner="winnow(2)", learner__alpha=1.2).learner == "winnow(1.2)"
    assert clone(model).learner == "winnow(1.2)"
    with pytest.raises(ValueError, match="learner 'winnow\\(1.2\\)' has no parameter 'beta'; it has: alpha"):
        model.set_params(learner__beta=1)
    with pytest.raises(ValueError, match="alpha"):
        model.set_params(learner__alpha=0.5)


def test_learners_that_are_no_text_and_that_have_no_parameters():
    model = LinearMaxClassifier(linmax.rivals(linmax.rules.arow(0.1), "all")).set_params(learner__r=0.5)
    assert str(model.learner) == "arow(r=0.5, rivals=all)"
    assert str(LinearMaxClassifier("softmax(1)").set_params(learner__prior=2.0).learner) == "softmax(2)"
    assert not any(name.startswith("learner__") for name in LinearMaxClassifier("auto").get_params())
    assert LinearMaxClassifier("percepton").get_params()["learner"] == "percepton"  # `fit` refuses it


def test_a_search_over_them():
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(LinearMaxClassifier("A-winnow(1.1)"), {"learner__alpha": [1.05, 1.5]}, cv=2).fit(X, y)
    assert search.best_estimator_.learner == f"A-winnow({search.best_params_['learner__alpha']})"


# -- weights ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["auto", "AR-perceptron"])
@pytest.mark.parametrize("classes", [2, 3])
def test_attributes_are_selected_by_weights(learner, classes):
    X, y = make_classification(
        400,
        12,
        n_informative=3,
        n_redundant=0,
        n_classes=classes,
        n_clusters_per_class=1,
        shuffle=False,
        random_state=3,
    )
    model = LinearMaxClassifier(learner).fit(X, y)
    assert model.coef_.shape == (1 if classes == 2 else 3, 12)
    assert model.intercept_.shape == (1 if classes == 2 else 3,)
    chosen = SelectFromModel(model, prefit=True, max_features=3, threshold=-np.inf).get_support()
    assert chosen[:3].sum() >= 2
    assert RFE(LinearMaxClassifier(learner, max_iter=2), n_features_to_select=6).fit(X, y).support_[:3].sum() >= 2


def test_fused_weights_are_equal():
    X, y = load_iris(return_X_y=True)
    found = FusionClassifier([("bad", DummyClassifier()), *MODELS], cv=3).fit(X, y).weights_
    assert sum(map(abs, found.values())) == pytest.approx(1.0)
    assert list(found) == sorted(found, key=lambda name: -abs(found[name]))
    assert list(found)[-1] == "bad"


# -- the rest -----------------------------------------------------------------------------------------------------


def test_logarithms_of_probabilities():
    X, y = load_iris(return_X_y=True)
    for model in LinearMaxClassifier(), FusionClassifier(MODELS, cv=2):
        np.testing.assert_allclose(np.exp(model.fit(X, y).predict_log_proba(X)), model.predict_proba(X))


def test_names_of_attributes():
    X, y = load_iris(return_X_y=True, as_frame=True)
    for model in LinearMaxClassifier("A-perceptron"), FusionClassifier(MODELS, cv=2):
        for method in ("fit", "partial_fit"):
            assert getattr(clone(model), method)(X, y).feature_names_in_.tolist() == X.columns.tolist()
        with pytest.raises(ValueError, match="feature names should match"):
            model.fit(X, y).predict(pd.DataFrame(X.to_numpy(), columns=list("abcd")))


def test_models_without_names():
    X, y = load_iris(return_X_y=True)
    fusion = FusionClassifier([GaussianNB()])
    assert "GaussianNB" in repr(fusion)
    with pytest.raises(ValueError, match=r"got GaussianNB\(\) in it; try \[\('gaussiannb', GaussianNB\(\)\)\]"):
        fusion.fit(X, y)


def test_html_shows_the_members():
    text = estimator_html_repr(FusionClassifier(MODELS, "AR-winnow(1.1)"))
    for part in ("bayes", "GaussianNB", "tree", "DecisionTreeClassifier", "AR-winnow(1.1)"):
        assert part in text
    assert "LinearMaxClassifier" in estimator_html_repr(LinearMaxClassifier())
    assert estimator_html_repr(FusionClassifier([GaussianNB()]))


# -- files of others ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["auto", "AR-winnow(1.1)", "vr-combine"])
def test_skops(learner, tmp_path):
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    X, y = load_iris(return_X_y=True)
    model = LinearMaxClassifier(learner, max_iter=2).fit(X, y)
    io.dump(model, tmp_path / "model.skops")
    kinds = io.get_untrusted_types(file=tmp_path / "model.skops")
    assert kinds == ["linmax.models.sklearn.classifier.LinearMaxClassifier"]
    other = io.load(tmp_path / "model.skops", trusted=kinds)
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(other.partial_fit(X, y).predict_proba(X), model.partial_fit(X, y).predict_proba(X))


def test_skops_with_a_fusion(tmp_path):
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    X, y = load_iris(return_X_y=True)
    model = FusionClassifier([("bayes", GaussianNB()), ("linear", LinearMaxClassifier("A-perceptron"))], cv=2).fit(X, y)
    io.dump(model, tmp_path / "model.skops")
    other = io.load(tmp_path / "model.skops", trusted=io.get_untrusted_types(file=tmp_path / "model.skops"))
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


def test_mlflow(tmp_path):
    pyfunc = pytest.importorskip("mlflow.pyfunc", reason="MLflow is not installed")
    X, y = load_iris(return_X_y=True)
    model = LinearMaxClassifier("A-perceptron").fit(X, y)
    model.save(tmp_path / "model.linmax")

    class Probabilities(pyfunc.PythonModel):
        def load_context(self, context):
            self.model = LinearMaxClassifier.load(context.artifacts["model"])

        def predict(self, context, model_input, params=None):
            return self.model.predict_proba(model_input)

    artifacts = {"model": str(tmp_path / "model.linmax")}
    pyfunc.save_model(str(tmp_path / "served"), python_model=Probabilities(), artifacts=artifacts, pip_requirements=[])
    served = pyfunc.load_model(str(tmp_path / "served"))
    np.testing.assert_allclose(served.predict(X), model.predict_proba(X))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: linmax.LinearMaxClassifier("A-perceptron"),
        lambda: linmax.FusionClassifier([("bayes", GaussianNB())], "A-perceptron"),
    ],
    ids=["classifier", "fusion"],
)
def test_labels_that_are_missing_or_of_two_kinds(make, method):
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"], dtype=object)[y]
    for gap in None, float("nan"):
        names[3] = gap
        for given in names, names.tolist():
            with pytest.raises(ValueError, match=f"y: the label of sample 3 is {gap}; remove samples without"):
                getattr(make(), method)(X, given)
    names[3] = 7
    with pytest.raises(
        TypeError, match="y must have labels of one kind, got text and numbers; convert all of them to text"
    ):
        getattr(make(), method)(X, names)
    names[3] = "a"
    assert getattr(make(), method)(X, names).classes_.tolist() == ["a", "b", "c"]
