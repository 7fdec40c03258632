"""`FusionClassifier`: models of all folds together, weights for each class, metadata."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from linmax import FusionClassifier
from linmax.models.sklearn.base_models import FoldModels
from linmax.models.sklearn.class_weights import cross_fitted, from_arrays, rate, shares, to_arrays

MODELS = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(random_state=0)), ("ridge", RidgeClassifier())]


def iris(names: bool = False) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], np.array(["a", "c", "b"])[y[order]] if names else y[order]


def test_models_of_all_folds_answer_together() -> None:
    X, y = iris()
    model = FusionClassifier(MODELS, cv=3).fit(X, y)
    tree = model.named_estimators_["tree"]
    assert isinstance(tree, FoldModels)
    assert len(tree.models) == 4
    assert tree.get_depth() == tree.whole.get_depth()  # whatever else is asked is about that of all samples
    expected = np.mean([one.predict_proba(X) for one in tree.models], axis=0)
    np.testing.assert_allclose(tree.predict_proba(X), expected)
    np.testing.assert_allclose(model.transform(X)[:, 3:6], expected)
    assert not hasattr(model.named_estimators_["ridge"], "predict_proba")
    assert model.named_estimators_["ridge"].predict(X).shape == y.shape
    alone = FusionClassifier(MODELS, cv=3, ensemble=False).fit(X, y)
    assert [type(one) for one in alone.estimators_] == [type(one) for _, one in MODELS]
    with pytest.raises(TypeError, match="ensemble must be True or False"):
        FusionClassifier(MODELS, ensemble="yes").fit(X, y)


def test_those_of_all_folds_go_on_learning() -> None:
    X, y = iris()
    model = FusionClassifier([("bayes", GaussianNB())], cv=3, shuffle=False).fit(X[:120], y[:120])
    before = [one.class_count_.sum() for one in model.estimators_[0].models]
    model.partial_fit(X[120:], y[120:])
    assert [one.class_count_.sum() for one in model.estimators_[0].models] == [count + 30 for count in before]


def test_folds_hold_out_every_sample_once() -> None:
    X, y = iris()
    with pytest.raises(ValueError, match="cv must hold out every sample exactly once, as KFold does"):
        FusionClassifier(MODELS, cv=ShuffleSplit(3, random_state=0)).fit(X, y)


def test_weights_for_each_class_pay_where_models_know_some_classes() -> None:
    generator = np.random.default_rng(0)
    y = generator.integers(4, size=600)
    said = np.full((600, 2, 4), 0.25)
    for model, known in enumerate(([0, 1], [2, 3])):  # each is right about two classes, and names the first otherwise
        named = np.where(np.isin(y, known), y, known[0])
        said[:, model] = 0.7 * np.eye(4)[named] + 0.1
    found = cross_fitted(said, y, None, np.arange(4))
    assert found is not None
    assert (found[1].argmax(axis=1) == y).mean() > (said.mean(axis=1).argmax(axis=1) == y).mean() + 0.1
    np.testing.assert_allclose(found[1].sum(axis=1), 1.0)
    np.testing.assert_allclose(shares(found[0], 2).sum(), 1.0)
    wider = np.concatenate([said[:, :, :1], np.zeros((600, 2, 1)), said[:, :, 1:]], axis=2)  # a class in between
    later = rate(found[0], wider, np.array([0.0, 0.5, 1.0, 2.0, 3.0]))
    np.testing.assert_allclose(np.delete(later, 1, axis=1), rate(found[0], said, np.arange(4)))
    kept = from_arrays(to_arrays(found[0], np.arange(4)), np.arange(4))
    assert kept is not None
    np.testing.assert_array_equal(rate(kept, said, np.arange(4)), rate(found[0], said, np.arange(4)))
    assert cross_fitted(said[:20], y[:20], None, np.arange(4)) is None
    assert cross_fitted(said, np.zeros(600, int), None, np.arange(4)) is None


def test_names_of_classes_files_and_classes_to_come(tmp_path) -> None:
    X, y = iris(names=True)
    old = np.flatnonzero(y != "b")
    model = FusionClassifier([("bayes", GaussianNB()), ("sgd", SGDClassifier(random_state=0))], cv=3)
    model.fit(X[old], y[old])
    model.save(tmp_path / "fusion.linmax")
    models = list(pickle.loads(pickle.dumps(model.named_estimators_)).items())
    others = [FusionClassifier.load(tmp_path / "fusion.linmax", models), pickle.loads(pickle.dumps(model))]
    for one in (model, *others):
        one.partial_fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    for other in others:
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        assert other.weights_ == model.weights_


def test_metadata_goes_to_those_that_request_it() -> None:
    X, y = iris()
    weights, groups = np.where(y == 2, 0.0, 1.0), np.arange(len(y)) % 10
    with sklearn.config_context(enable_metadata_routing=True):
        models = [
            ("bayes", GaussianNB().set_fit_request(sample_weight=True)),
            ("near", KNeighborsClassifier()),  # takes no weights
        ]
        model = FusionClassifier(models, cv=GroupKFold(3)).set_fit_request(sample_weight=True)
        model.fit(X, y, sample_weight=weights, groups=groups)
        assert model.named_estimators_["bayes"].class_count_.tolist() == [50, 50, 0]
        assert not (model.predict(X) == 2).any()
        plain = FusionClassifier(models, cv=KFold(3))
        assert plain.fit(X, y).score(X, y) > 0.9
    with pytest.raises(
        TypeError, match="fit.. got 'groups', which is metadata for the models; call sklearn.set_config"
    ):
        FusionClassifier(MODELS).fit(X, y, groups=groups)


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
