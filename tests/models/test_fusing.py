"""`FusionClassifier`: weights for each class, cuts, folds, metadata, files."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from linmax import FusionClassifier, LinearMaxClassifier

MODELS = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(random_state=0)), ("ridge", RidgeClassifier())]


def iris(names: bool = False) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], np.array(["a", "c", "b"])[y[order]] if names else y[order]


def test_folds_hold_out_every_sample_once() -> None:
    X, y = iris()
    with pytest.raises(ValueError, match="only works for partitions"):
        FusionClassifier(MODELS, cv=ShuffleSplit(3, random_state=0)).fit(X, y)


class Specialist(ClassifierMixin, BaseEstimator):
    """Knows two of four classes, which its only attribute names, and otherwise names the first of the two."""

    def __init__(self, first: int = 0) -> None:
        self.first = first

    def fit(self, X: np.ndarray, y: np.ndarray) -> Specialist:
        self.classes_, self.n_features_in_ = np.arange(4), 1
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        labels = X[:, 0].astype(int)
        return 0.7 * np.eye(4)[np.where(labels // 2 == self.first // 2, labels, self.first)] + 0.1 - 0.025


def test_weights_for_each_class_pay_where_models_know_some_classes() -> None:
    y = np.random.default_rng(0).integers(4, size=900)
    X, models = y[:, None].astype(float), [("low", Specialist(0)), ("high", Specialist(2))]
    fusion = FusionClassifier(models, cv="prefit")
    for _, model in models:
        model.fit(X, y)
    fusion.fit(X[:600], y[:600])
    soft = np.mean([model.predict_proba(X[600:]) for _, model in models], axis=0).argmax(axis=1)
    assert fusion.score(X[600:], y[600:]) > (soft == y[600:]).mean() + 0.1
    assert fusion.transform(X).shape == (900, 8)
    assert sum(map(abs, fusion.weights_.values())) == pytest.approx(1.0)


@pytest.mark.parametrize("options", [{}, {"cv": "prefit"}, {"passthrough": True}, {"learner": "AR-perceptron"}])
def test_it_does_not_matter_how_rows_are_cut_into_calls(options: dict[str, Any]) -> None:
    X, y = load_digits(return_X_y=True)
    X, y = X[:600], y[:600]
    models = [("softmax", LinearMaxClassifier("softmax")), ("linear", LinearMaxClassifier("A-perceptron"))]
    fitted = [(name, clone(model).fit(X[:100], y[:100])) for name, model in models]
    whole, parts = (FusionClassifier(copy.deepcopy(fitted if "cv" in options else models), **options) for _ in range(2))
    whole.partial_fit(X[100:], y[100:], classes=range(10))
    for number, part in enumerate(np.array_split(np.arange(100, 600), 12)):
        parts.partial_fit(X[part], y[part], classes=range(10))
        if number == 5:
            parts = pickle.loads(pickle.dumps(parts))
    # many attributes are computed in single precision, whose sums depend on the size of a block
    np.testing.assert_allclose(
        parts.predict_proba(X), whole.predict_proba(X), rtol=1e-3 if "passthrough" in options else 0
    )
    assert parts.mistakes_ == whole.mistakes_


def test_names_of_classes_files_and_classes_to_come(tmp_path) -> None:
    X, y = iris(names=True)
    old = np.flatnonzero(y != "b")
    model = FusionClassifier([("bayes", GaussianNB()), ("sgd", SGDClassifier(random_state=0))], cv=3)
    model.fit(X[old], y[old])
    before = model.transform(X)
    model.save(tmp_path / "fusion.linmax")
    models = list(pickle.loads(pickle.dumps(model.named_estimators_)).items())
    others = [FusionClassifier.load(tmp_path / "fusion.linmax", models), pickle.loads(pickle.dumps(model))]
    for one in others:
        np.testing.assert_array_equal(one.transform(X), before)
    for one in (model, *others):
        one.partial_fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    for other in others:
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        assert other.weights_ == model.weights_


def test_metadata_goes_to_those_that_request_it() -> None:
    X, y = iris()
    weights = np.where(y == 2, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        models = [
            ("bayes", GaussianNB().set_fit_request(sample_weight=True)),
            ("near", KNeighborsClassifier()),  # takes no weights
        ]
        model = FusionClassifier(models, cv=3).fit(X, y, sample_weight=weights)
        assert model.named_estimators_["bayes"].class_count_.tolist() == [50, 50, 0]
        assert not (model.predict(X) == 2).any()
        plain = FusionClassifier(models, cv=KFold(3))
        assert plain.fit(X, y).score(X, y) > 0.9
    with pytest.raises(
        TypeError, match="fit.. got 'groups', which is metadata for the models; call sklearn.set_config"
    ):
        FusionClassifier(MODELS).fit(X, y, groups=y)


def test_fewer_errors_than_voting_on_digits() -> None:
    X, y = load_digits(return_X_y=True)
    models = [
        ("logistic", LogisticRegression(max_iter=50)),
        ("bayes", GaussianNB()),
        ("tree", DecisionTreeClassifier()),
    ]
    model = FusionClassifier([(name, one) for name, one in models], cv=3).fit(X[:900] / 16, y[:900])
    soft = np.mean([one.predict_proba(X[900:] / 16) for one in model.estimators_], axis=0).argmax(axis=1)
    assert model.score(X[900:] / 16, y[900:]) > (soft == y[900:]).mean()
