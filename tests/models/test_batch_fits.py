"""Batch fits: passes that end, weights whose scale does not matter, probabilities of the final model."""

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_digits, load_iris, make_blobs, make_classification
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from linmax import LinearMaxClassifier
from linmax.learners.attributes.pairs import PairMembers

FAST = "AR-perceptron"


@pytest.fixture(scope="module")
def noisy():
    X, y = make_classification(1800, 20, n_informative=8, n_classes=3, flip_y=0.2, random_state=0)
    return X[:1200], y[:1200], X[1200:], y[1200:]


# -- passes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["auto", "perceptron", "AR-winnow(1.1)", "vr-combine", "arow(0.1)"])
def test_passes_end_whatever_the_learner(learner):
    X, y = make_blobs(300, centers=3, random_state=0)
    model = LinearMaxClassifier(learner, max_iter=1000).fit(X, y)
    assert model.n_iter_ <= len(model.loss_curve_) < 60
    assert model.score(X, y) > 0.85


def test_the_number_of_passes_is_that_of_the_lowest_loss(noisy):
    X, y, *_ = noisy
    model = LinearMaxClassifier(FAST).fit(X, y)
    assert model.n_iter_ == int(np.argmin(model.loss_curve_)) + 1
    assert len(LinearMaxClassifier(FAST, max_iter=4, tol=None).fit(X, y).loss_curve_) == 4
    patient = LinearMaxClassifier(FAST, n_iter_no_change=8).fit(X, y)
    assert len(patient.loss_curve_) > len(model.loss_curve_)
    assert len(LinearMaxClassifier(FAST, tol=10.0).fit(X, y).loss_curve_) == 3  # the first, and two in vain
    assert LinearMaxClassifier(FAST, max_iter=1).fit(X, y).n_iter_ == 1


def test_more_passes_than_one_help():
    X, y = load_digits(return_X_y=True)
    once = LinearMaxClassifier(max_iter=1).fit(X[:1200], y[:1200])
    model = LinearMaxClassifier().fit(X[:1200], y[:1200])
    assert model.score(X[1200:], y[1200:]) > once.score(X[1200:], y[1200:])
    assert log_loss(y[1200:], model.predict_proba(X[1200:])) < log_loss(y[1200:], once.predict_proba(X[1200:]))


@pytest.mark.parametrize("size", [300, 1500])
def test_a_warm_start_takes_in_a_class_of_one_sample_held_out_or_not(size):
    random = np.random.default_rng(0)
    X = random.normal(size=(size, 4))
    y = (X[:, 0] > 0.0).astype(int)
    for place in range(4):
        labels = y.copy()
        labels[place] = 7
        model = LinearMaxClassifier("perceptron", warm_start=True, random_state=place).fit(X, y).fit(X, labels)
        assert model.classes_.tolist() == [0, 1, 7]
        assert model.predict_proba(X[:3]).shape == (3, 3)


def test_a_batch_is_studied_once(monkeypatch):
    X, y = load_digits(return_X_y=True)
    studied = []
    study = PairMembers.study
    monkeypatch.setattr(PairMembers, "study", lambda self, rows, labels: studied.append(study(self, rows, labels)))
    model = LinearMaxClassifier(max_iter=2).fit(X[:300], y[:300])
    assert len(studied) == 2  # by the two that pair bins, and none of it again in copies and later passes
    model.partial_fit(X[300:600], y[300:600])
    assert len(studied) == 2


@pytest.mark.parametrize("learner", ["auto", FAST])
def test_the_loss_at_each_look(learner, capsys):
    X, y = load_digits(return_X_y=True)
    model = LinearMaxClassifier(learner, max_iter=2, tol=0.0, n_iter_no_change=100, verbose=1).fit(X[:1100], y[:1100])
    told = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in told] == ["pass 1", "pass 2"]
    assert [f"{loss:.4f}" for loss in model.loss_curve_] == [line.split()[-1] for line in told]
    assert 1 <= model.n_iter_ <= 2


@pytest.mark.parametrize("early_stopping", [True, False])
def test_ways_to_stop(early_stopping, noisy):
    X, y, *test = noisy
    model = LinearMaxClassifier(FAST, early_stopping=early_stopping, validation_fraction=0.2).fit(X, y)
    assert 1 <= model.n_iter_ <= len(model.loss_curve_)
    assert model.score(*test) > 0.55


def test_samples_held_out_are_not_learned():
    X, y = make_blobs(400, centers=4, random_state=1)
    model = LinearMaxClassifier(FAST, early_stopping=True, validation_fraction=0.25, max_iter=1).fit(X, y)
    assert model._model.trials == 300
    assert LinearMaxClassifier(FAST, early_stopping=False, max_iter=1).fit(X, y)._model.trials == 400


def test_warm_start_resumes(noisy):
    X, y, *_ = noisy
    model = LinearMaxClassifier(FAST, warm_start=True, max_iter=2).fit(X[:600], y[:600])
    before = model._model.trials
    model.fit(X[600:], y[600:])
    assert model._model.trials > before
    model.fit(X[600:], np.where(np.arange(600) < 20, 7, y[600:]))  # a class that is new
    assert model.classes_.tolist() == [0, 1, 2, 7]
    cold = LinearMaxClassifier(FAST, max_iter=2).fit(X[:600], y[:600]).fit(X[600:], y[600:])
    assert cold._model.trials <= 2 * 600


def test_verbose_prints_progress(capsys, noisy):
    X, y, *_ = noisy
    model = LinearMaxClassifier(FAST, verbose=1).fit(X, y)
    assert len(capsys.readouterr().out.splitlines()) == len(model.loss_curve_)
    LinearMaxClassifier(FAST).fit(X, y)
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": -1.0}, "tol must be >= 0"),
        ({"validation_fraction": 1.5}, "validation_fraction must be between 0 and 1, got 1.5; try 0.1"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be >= 1"),
        ({"early_stopping": "yes"}, "early_stopping must be True, False or 'auto'"),
        ({"warm_start": 3}, "warm_start must be True or False"),
    ],
)
def test_what_cannot_be(options, message, noisy):
    with pytest.raises((TypeError, ValueError), match=message):
        LinearMaxClassifier(FAST, **options).fit(*noisy[:2])


def test_early_stopping_needs_samples():
    with pytest.raises(ValueError, match="early_stopping=True.*12.*got 4.*'auto'"):
        LinearMaxClassifier(FAST, early_stopping=True).fit(np.eye(4), [0, 1, 0, 1])
    assert LinearMaxClassifier(FAST).fit(np.eye(4), [0, 1, 0, 1]).score(np.eye(4), [0, 1, 0, 1]) == 1.0


@pytest.mark.parametrize("learner", ["auto", FAST, "arow(0.1)"])
@pytest.mark.parametrize(
    "options", [{}, {"early_stopping": False, "max_iter": 20, "tol": None}, {"early_stopping": True}]
)
def test_probabilities_are_those_of_the_final_model(learner, options, noisy):
    X, y, X_test, y_test = noisy
    model = LinearMaxClassifier(learner, **options).fit(X, y)
    shares = model.predict_proba(X_test)
    assert abs(shares.max(axis=1).mean() - model.score(X_test, y_test)) < (0.07 if learner == "auto" else 0.06)
    assert log_loss(y_test, shares) < np.log(3.0)


# -- weights ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-9, 0.02, 1.0, 3.7, 1e12])
@pytest.mark.parametrize("learner", ["auto", FAST])
def test_the_scale_of_weights_does_not_matter(scale, learner):
    X, y = load_iris(return_X_y=True)
    plain = LinearMaxClassifier(learner).fit(X, y)
    weighted = LinearMaxClassifier(learner).fit(X, y, sample_weight=np.full(150, scale))
    np.testing.assert_array_equal(weighted.predict(X), plain.predict(X))
    uneven = 1.0 + np.arange(150) % 3
    one = LinearMaxClassifier(learner).fit(X, y, sample_weight=uneven)
    other = LinearMaxClassifier(learner).fit(X, y, sample_weight=uneven * 2.0**10)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_weights_of_one_class_move_the_border():
    X, y = make_blobs([400, 400], centers=[[0.0], [1.0]], random_state=0)
    shares = [
        LinearMaxClassifier("logistic").fit(X, y, sample_weight=np.where(y == 0, weight, 1.0)).predict(X).mean()
        for weight in (0.1, 1.0, 10.0)
    ]
    assert shares[0] > shares[1] + 0.1 > shares[2] + 0.2


def test_class_weights():
    X, y = make_blobs([900, 60], centers=[[0.0, 0.0], [1.5, 0.0]], random_state=0)
    plain = LinearMaxClassifier("logistic").fit(X, y)
    balanced = LinearMaxClassifier("logistic", class_weight="balanced").fit(X, y)
    assert balanced_accuracy_score(y, balanced.predict(X)) > balanced_accuracy_score(y, plain.predict(X)) + 0.1
    by_hand = LinearMaxClassifier("logistic").fit(X, y, sample_weight=np.where(y == 1, 15.0, 1.0))
    named = LinearMaxClassifier("logistic", class_weight={1: 15.0}).fit(X, y)
    np.testing.assert_array_equal(named.decision_function(X), by_hand.decision_function(X))
    with pytest.raises(ValueError, match="class_weight='balanced' needs all samples at once"):
        balanced.partial_fit(X, y)
    twice = LinearMaxClassifier(FAST, class_weight={1: 2.0}).partial_fit(X, y)
    by_hand = LinearMaxClassifier(FAST).partial_fit(X, y, sample_weight=np.where(y == 1, 2.0, 1.0))
    np.testing.assert_array_equal(twice.decision_function(X), by_hand.decision_function(X))
    assert twice._model.trials == 960


def test_boosting_and_bagging():
    X, y = load_iris(return_X_y=True)
    base = LinearMaxClassifier("A-perceptron", max_iter=5)
    boosted = AdaBoostClassifier(base, n_estimators=5, random_state=0).fit(X, y)
    assert boosted.score(X, y) > 0.85
    bagged = BaggingClassifier(LinearMaxClassifier("A-perceptron"), n_estimators=3, random_state=0).fit(X, y)
    assert bagged.score(X, y) > 0.9


def test_metadata_is_routed():
    X, y = load_iris(return_X_y=True)
    weights = np.where(y == 1, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = LinearMaxClassifier("A-perceptron").set_fit_request(sample_weight=True)
        estimator.set_score_request(sample_weight=False)
        pipeline = make_pipeline(MaxAbsScaler(), estimator).fit(X, y, sample_weight=weights)
        assert not (pipeline.predict(X) == 1).any()
        search = GridSearchCV(estimator, {"max_iter": [1, 2]}, cv=2).fit(X, y, sample_weight=weights)
        assert not (search.predict(X) == 1).any()
        found = cross_validate(estimator, X, y, params={"sample_weight": weights}, cv=2, return_estimator=True)
        assert all(not (model.predict(X) == 1).any() for model in found["estimator"])
