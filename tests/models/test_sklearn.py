"""The estimators: scikit-learn's own checks, and what they promise beyond them."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import linmax
from linmax import FusionClassifier, LinearMaxClassifier
from linmax.models.sklearn.early_stopping import repetitions
from linmax.models.sklearn.fusion_classifier import unit_range
from linmax.models.sklearn.params import DEFAULT_LEARNER
from linmax.util import files

FAST = "AR-perceptron"
LEARNERS = [
    "perceptron",
    "A-winnow(1.1)",
    "AR-perceptron",
    "alma(2.5)",
    "V-balanced-winnow(1.2)",
    "combine(perceptron, A-winnow(1.1))",
    "vr-combine",
    "combine(perceptron, winnow(1.1), how=weighted)",
    "stack(perceptron, A-perceptron, fusion=winnow(1.05))",
    "auto",
]
ONE_VECTOR = LEARNERS[:-2]


def problem(seed=0, size=90, classes=3, features=5, spread=3.0):
    """Blobs in random order, attributes of very different size."""
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, size)
    X = (random.normal(size=(classes, features)) * spread)[y] + random.normal(size=(size, features))
    return X * 10.0 ** np.arange(features), y


# -- scikit-learn's checks ----------------------------------------------------------------------------------------

ORDER = "an on-line learner depends on the order of the samples, and the check shuffles the weighted ones only"
NOT_APPLICABLE = {
    "check_sample_weight_equivalence_on_dense_data": ORDER,
    "check_sample_weight_equivalence_on_sparse_data": ORDER,
}


def fusion(learner=FAST, **options):
    models = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=4, random_state=0))]
    return FusionClassifier(models, learner, **options)


@parametrize_with_checks(
    [LinearMaxClassifier(FAST), LinearMaxClassifier(), fusion(cv=2), fusion(DEFAULT_LEARNER, cv=2)],
)
def test_conforms_to_scikit_learn(estimator, check):
    if check.func.__name__ in NOT_APPLICABLE:
        pytest.skip(NOT_APPLICABLE[check.func.__name__])
    check(estimator)


@pytest.mark.parametrize("make", [lambda: LinearMaxClassifier(FAST), fusion])
def test_works_in_scikit_learns_tools(make):
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), make())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.85
    name = pipeline.steps[-1][0]
    search = GridSearchCV(pipeline, {f"{name}__learner": ["perceptron", FAST]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.85
    assert clone(search.best_estimator_[-1]).get_params()["learner"] == search.best_params_[f"{name}__learner"]


@pytest.mark.parametrize("make", [LinearMaxClassifier, fusion])
def test_not_fitted(make):
    model = make()
    with pytest.raises(NotFittedError):
        model.predict([[0.0]])
    with pytest.raises(NotFittedError):
        model.save("never.linmax")
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "weights_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learner": "percepton"}, "did you mean 'perceptron'"),
        ({"learner": 3}, "learner must be a rule"),
        ({"scale": "min"}, "scale must be one of none, max"),
        ({"max_iter": 0}, "max_iter must be >= 1, got 0"),
        ({"thresholds": "yes"}, "thresholds must be True or False"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        LinearMaxClassifier(**options).fit(*problem())


# -- LinearMaxClassifier ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS)
def test_learns_as_run_does(learner):
    X, y = problem()
    scaled = np.array([X[t] / np.abs(X[: t + 1]).max(axis=0) for t in range(len(X))])
    maxima = np.abs(X).max(axis=0)
    if learner == "auto":  # whose members scale attributes
        scaled, maxima = X, np.ones(X.shape[1])
    trace = linmax.run(learner, linmax.instances(attributes=scaled, classes=[0, 1, 2]), y)
    model = LinearMaxClassifier(learner).partial_fit(X, y, classes=[0, 1, 2])
    assert model.mistakes_ == trace.mistakes[-1]
    expected = trace.model.predict(linmax.instances(attributes=X / maxima, classes=[0, 1, 2]))
    np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize("learner", LEARNERS)
def test_dense_and_sparse_agree(learner):
    X, y = problem()
    X[np.abs(X) < 2.0] = 0.0
    dense, csr = LinearMaxClassifier(learner).fit(X, y), LinearMaxClassifier(learner).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(dense.decision_function(X), csr.decision_function(X), rtol=1e-9, atol=1e-12)
    for model in (dense, csr):  # either kind of sample goes with either kind of model
        np.testing.assert_array_equal(model.predict(X), model.predict(sparse.csr_matrix(X)))
        model.partial_fit(sparse.csc_array(X), y)
        model.partial_fit(X, y)


@pytest.mark.parametrize("learner", ONE_VECTOR)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("options", [{}, {"thresholds": False}])
def test_coefficients_are_those_of_the_decision(learner, classes, options):
    X, y = problem(classes=classes)
    model = LinearMaxClassifier(learner, **options).fit(X, y)
    rows = 1 if classes == 2 else classes
    assert model.coef_.shape == (rows, X.shape[1])
    assert model.intercept_.shape == (rows,)
    decision = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), decision[:, 0] if rows == 1 else decision, atol=1e-9)


def test_coefficients_without_scale():
    X, y = problem()
    X /= np.abs(X).max(axis=0)
    model = LinearMaxClassifier("perceptron", scale="none").fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_, atol=1e-12)


def test_no_coefficients_where_there_are_several_vectors():
    model = LinearMaxClassifier(LEARNERS[-2]).fit(*problem())
    with pytest.raises(AttributeError, match="predicts with several weight vectors; choose one such as"):
        _ = model.coef_


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("classes", [1, 2, 4])
def test_prediction_decision_and_probabilities_agree(learner, classes):
    X, y = problem(classes=classes, spread=0.5)
    model = LinearMaxClassifier(learner).fit(X, y + 10)
    decision, probabilities = model.decision_function(X), model.predict_proba(X)
    assert probabilities.shape == (len(X), classes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    best = (decision > 0).astype(int) if classes == 2 else decision.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[best])
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))


def test_probabilities_are_honest():
    X, y = make_classification(2500, 20, n_informative=8, n_classes=4, flip_y=0.2, random_state=0)
    model = LinearMaxClassifier(FAST, random_state=2).fit(X[:1500], y[:1500])
    probabilities = model.predict_proba(X[1500:])
    confidence = probabilities.max(axis=1)
    assert confidence.mean() == pytest.approx(model.score(X[1500:], y[1500:]), abs=0.05)
    logistic = LogisticRegression(max_iter=500).fit(X[:1500], y[:1500])
    assert log_loss(y[1500:], probabilities) < log_loss(y[1500:], logistic.predict_proba(X[1500:])) + 0.1


def test_samples_of_one_class_after_another_are_shuffled():
    X, y = load_digits(return_X_y=True)
    order = np.argsort(y, kind="stable")
    shuffled = LinearMaxClassifier("A-perceptron", max_iter=1).fit(X[order], y[order])
    in_order = LinearMaxClassifier("A-perceptron", max_iter=1, shuffle=False).fit(X[order], y[order])
    assert shuffled.score(X, y) > 0.9 > in_order.score(X, y)


def test_the_same_data_give_the_same_model():
    X, y = problem()
    first, second = (LinearMaxClassifier().fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))
    other = LinearMaxClassifier(random_state=np.random.RandomState(1)).fit(X, y)
    assert (first.decision_function(X) != other.decision_function(X)).any()


@pytest.mark.parametrize("learner", [DEFAULT_LEARNER, "V-combine"])
def test_default_is_worth_having(learner):
    X, y = load_breast_cancer(return_X_y=True)
    assert cross_val_score(LinearMaxClassifier(learner), X, y, cv=3).mean() > 0.93


# scale


def test_nothing_is_scaled_unasked():
    X, y = problem()
    with pytest.raises(ValueError, match="needs ratings that differ by at most 1 and attributes in"):
        LinearMaxClassifier("winnow(1.1)", scale="none").fit(X, y)
    plain, scaled = (LinearMaxClassifier("perceptron", scale=scale).fit(X, y) for scale in ("none", "max"))
    by_hand = LinearMaxClassifier("perceptron", scale="none").fit(X / np.abs(X).max(axis=0), y)
    np.testing.assert_allclose(scaled.coef_, by_hand.coef_ / np.abs(X).max(axis=0), atol=1e-12)
    assert not np.allclose(scaled.coef_, plain.coef_)


def test_samples_beyond_the_scale_count_as_the_largest():
    X, y = problem()
    model = LinearMaxClassifier("AR-winnow(1.1)").fit(X, y)
    edge = np.abs(X).max(axis=0)
    clipped = np.clip(100 * X, -edge, edge)
    np.testing.assert_allclose(model.decision_function(100 * X), model.decision_function(clipped), atol=1e-12)


def test_samples_left_out_do_not_scale():
    X, y = problem()
    wild, labels = np.vstack([X, np.full((1, 5), 1e9)]), np.append(y, 0)
    model = LinearMaxClassifier(FAST, shuffle=False).fit(wild, labels, sample_weight=np.append(np.ones(90), 0.0))
    np.testing.assert_array_equal(model.coef_, LinearMaxClassifier(FAST, shuffle=False).fit(X, y).coef_)


@pytest.mark.parametrize("scale", ["length", "log", "idf", "standard", "auto"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_other_scales(scale, kind, tmp_path):
    X, y = problem(size=200)
    X /= 10.0 ** np.arange(5)
    X[np.abs(X) < 1.5] = 0.0
    model = LinearMaxClassifier(FAST, scale=scale).fit(kind(X[:100]), y[:100])
    assert model.score(kind(X[100:]), y[100:]) > 0.5
    model.save(tmp_path / "model.linmax")
    other = LinearMaxClassifier.load(tmp_path / "model.linmax")
    for one in (model, other):
        one.partial_fit(kind(X[100:]), y[100:])
    np.testing.assert_array_equal(model.decision_function(kind(X)), other.decision_function(kind(X)))
    with pytest.raises(AttributeError, match="scores are not linear in the attributes"):
        _ = model.coef_


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_an_error_at_the_last_sample_leaves_the_model_as_it_is(method):
    X, y = problem()
    X /= np.abs(X).max(axis=0)
    model = LinearMaxClassifier("AR-winnow(1.1)", scale="none")
    wild = np.vstack([X, np.full((1, 5), 2.0)])
    with pytest.raises(ValueError, match="attributes in"):
        getattr(model, method)(wild, np.append(y, 0))
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="attributes in"):
        getattr(model, method)(wild, np.append(y, 0))
    np.testing.assert_array_equal(model.predict_proba(X), before)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        getattr(model, method)(X, y[:-1])
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_an_error_leaves_the_scale_as_it_is():
    X, y = problem()
    model = LinearMaxClassifier(FAST).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="of another kind"):
        model.partial_fit(1000 * X, np.array(["a", "b", "c"])[y])
    np.testing.assert_array_equal(model.predict_proba(X), before)


# sample_weight


def slow_repetitions(weights, carry):
    counts, purse = [], carry
    for weight in weights:
        purse += weight
        shown = 0
        while purse >= 1 - 1e-9:
            purse, shown = purse - 1, shown + 1
        counts.append(shown)
    return counts


@given(st.lists(st.sampled_from([0.0, 0.1, 0.25, 1.0, 1.5, 3.0]), min_size=1, max_size=40), st.sampled_from([0.0, 0.5]))
def test_repetitions(weights, carry):
    assert repetitions(np.array(weights), carry).tolist() == slow_repetitions(weights, carry)


def test_counts_of_a_whole_weight_are_those_of_repeated_samples():
    X, y = problem()
    X, learner = np.abs(X), "naive-bayes(0.1)"
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = LinearMaxClassifier(learner, scale=None).partial_fit(X, y, sample_weight=weights)
    rows = np.repeat(np.arange(len(y)), weights)
    repeated = LinearMaxClassifier(learner, scale=None).partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.append(np.ones(89), -1.0), "sample_weight must be >= 0, got -1"),
        (np.zeros(90), "[Ss]ample.weight"),
    ],
)
def test_weights_that_cannot_be(weights, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        LinearMaxClassifier(FAST).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("learner", [FAST, "auto"])
def test_a_huge_weight_is_no_loop(learner):
    X, y = problem()
    model = LinearMaxClassifier(learner).partial_fit(X, y, sample_weight=np.append(np.ones(89), 1e9))
    assert model.predict(X[89:]) == y[89]
    assert np.isfinite(model.predict_proba(X)).all()


# classes that come later


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_class_appears(learner):
    X, y = problem(size=150, spread=10.0)
    old = y < 2
    model = LinearMaxClassifier(learner).fit(X[old], y[old])
    assert model.classes_.tolist() == [0, 1]
    model.partial_fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(X, y) > 0.8
    assert model.predict_proba(X).shape == (150, 3)
    assert model.decision_function(X).shape == (150, 3)


def test_classes_stay_sorted_whenever_they_come():
    X, y = problem(spread=10.0)
    names = np.array(["middle", "zebra", "aardvark"])[y]
    model = LinearMaxClassifier(FAST)
    for label in ("middle", "zebra", "aardvark"):
        model.partial_fit(X[names == label], names[names == label])
    model.partial_fit(X, names)
    assert model.classes_.tolist() == ["aardvark", "middle", "zebra"]
    assert model.score(X, names) > 0.9
    np.testing.assert_array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        ([0, 5], None, "y: .*5.* is not among the classes .0, 1, 2. of the first call; remove classes="),
        (["a", "b"], None, "y: .*'a'.* is of another kind than the classes .0, 1, 2."),
        ([0, 1], [0, 1, 7], "classes: .*7.* was not declared in the first call"),
        ([0.5, 1.5], None, "Unknown label type"),
    ],
)
def test_labels_that_cannot_be_leave_the_model_as_it_is(labels, classes, message):
    X, y = problem()
    model = LinearMaxClassifier(FAST).partial_fit(X, y, classes=[0, 1, 2])
    before = model.decision_function(X)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X[:2], labels, classes=classes)
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model.n_iter_ == 1


def test_a_sample_of_weight_zero_names_no_class():
    X, y = problem()
    model = LinearMaxClassifier(FAST).fit(X, y).partial_fit(X[:2], [0, 9], sample_weight=[1.0, 0.0])
    assert model.classes_.tolist() == [0, 1, 2]
    model.partial_fit(X[:1], y[:1], sample_weight=[0.5])
    model.partial_fit(X[:2], [9, 9], sample_weight=[0.0, 0.0])
    assert model.classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="classes= is required where no sample has a label and a weight > 0"):
        LinearMaxClassifier(FAST).partial_fit(X[:1], y[:1], sample_weight=[0.0])
    assert LinearMaxClassifier(FAST).partial_fit(X[:1], y[:1], sample_weight=[0.5]).classes_.tolist() == [y[0]]


# tables


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_with_named_columns(library):
    frames = pytest.importorskip(library)
    X, y = problem()
    table = frames.DataFrame({name: X[:, i] for i, name in enumerate("abcde")})
    model = LinearMaxClassifier(FAST).fit(table, frames.Series(y))
    assert model.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_array_equal(model.predict(table), LinearMaxClassifier(FAST).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frames.DataFrame({name: X[:, i] for i, name in enumerate("edcba")}))


# keeping


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_resumes_with_same_bits(learner, kind, tmp_path):
    X, y = problem(size=120)
    model = LinearMaxClassifier(learner).partial_fit(kind(X[:50]), y[:50] % 2, sample_weight=np.full(50, 0.7))
    model.save(tmp_path / "model.linmax")
    joblib.dump(model, tmp_path / "model.joblib")
    others = [
        LinearMaxClassifier.load(tmp_path / "model.linmax"),
        joblib.load(tmp_path / "model.joblib"),
        joblib.load(tmp_path / "model.joblib", mmap_mode="r"),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
    ]
    for one in (model, *others):
        one.partial_fit(kind(X[50:]), y[50:], sample_weight=np.full(70, 0.7))
    for other in others:
        assert other.mistakes_ == model.mistakes_
        assert other.get_params() == model.get_params()
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(other.coef_, model.coef_) if learner in ONE_VECTOR else None
        for name, array in model._model.engine.arrays.items():
            np.testing.assert_array_equal(array, other._model.engine.arrays[name], err_msg=name)


def test_file_stores_parameters(tmp_path):
    X, y = problem()
    table = pd.DataFrame(X, columns=list("abcde"))
    model = LinearMaxClassifier(linmax.rules.perceptron(), thresholds=False).fit(table, np.array(["x", "y", "z"])[y])
    model.save(tmp_path / "model.linmax")
    other = LinearMaxClassifier.load(tmp_path / "model.linmax")
    assert other.feature_names_in_.tolist() == list("abcde")
    assert other.n_features_in_ == 5
    assert other.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(other.predict(table), model.predict(table))
    np.testing.assert_array_equal(other.coef_, model.coef_)


def test_files_that_are_refused(tmp_path):
    X, y = problem()
    path = tmp_path / "model.linmax"
    fusion().fit(X, y).save(path)
    with pytest.raises(ValueError, match="holds a 'FusionClassifier', not a 'LinearMaxClassifier'"):
        LinearMaxClassifier.load(path)
    LinearMaxClassifier(FAST).fit(X, y).save(path)
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged"):
        LinearMaxClassifier.load(path)
    path.write_bytes(pickle.dumps(LinearMaxClassifier(FAST)))
    with pytest.raises(ValueError, match="model file"):
        LinearMaxClassifier.load(path)
    files.write(path, "LinearMaxClassifier", {"parameters": {"learner": FAST}}, {})
    with pytest.raises(ValueError, match="does not hold a whole estimator: 'classes'"):
        LinearMaxClassifier.load(path)
    with pytest.raises(TypeError, match="random_state=.* cannot be saved; use a number or text"):
        LinearMaxClassifier(FAST, random_state=np.random.RandomState(0)).fit(X, y).save(path)


# -- FusionClassifier ---------------------------------------------------------------------------------------------


class Spy(ClassifierMixin, BaseEstimator):
    """Votes at random, and writes down what it is asked and what it is taught."""

    def __init__(self, diary=None):
        self.diary = diary

    def __sklearn_clone__(self):
        return Spy(self.diary)

    def __deepcopy__(self, _):
        return copy.copy(self)  # with the same diary

    def partial_fit(self, X, y, classes=None):
        if classes is not None:
            self.classes_ = np.asarray(classes)
        self.diary.append(("learn", X[:, 0].tolist()))
        return self

    def predict(self, X):
        self.diary.append(("predict", X[:, 0].tolist()))
        return self.classes_[X[:, 0].astype(int) % len(self.classes_)]


def test_models_predict_what_they_have_not_learned():
    X, y = np.column_stack([np.arange(100.0), np.ones(100)]), np.arange(100) % 3
    diary = []
    model = FusionClassifier([("spy", Spy(diary))], FAST)
    model.partial_fit(X[:70], y[:70], classes=[0, 1, 2]).partial_fit(X[70:], y[70:])
    learned, judged = set(), []
    for what, rows in diary:
        if what == "predict":
            assert not learned & set(rows)
            judged += rows
        else:
            learned |= set(rows)
    assert learned == set(range(100))
    assert judged == list(range(16, 100))  # in their order


def test_fit_uses_out_of_fold_predictions():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(400, 3)), random.integers(0, 2, 400)  # nothing to be learned
    model = FusionClassifier([("memory", KNeighborsClassifier(1))], FAST).fit(X, y)
    assert 150 < model.mistakes_ < 250
    assert model.named_estimators_["memory"].score(X, y) == 1.0  # fitted on all samples in the end


def views(**options):
    """Three models of which one knows nothing."""
    useful = make_pipeline(StandardScaler(), LogisticRegression())
    return FusionClassifier(
        [
            ("a", useful),
            ("b", GaussianNB()),
            ("noise", DecisionTreeClassifier(max_features=1, max_depth=1, random_state=3)),
        ],
        **options,
    )


def test_fuses():
    X, y = load_digits(return_X_y=True)
    model = views(learner=FAST, cv=2).fit(X[:500], y[:500])
    alone = {name: one.score(X[900:], y[900:]) for name, one in model.named_estimators_.items()}
    assert model.score(X[900:], y[900:]) > max(alone.values()) - 0.01
    assert sum(map(abs, model.weights_.values())) == pytest.approx(1.0)
    assert model.weights_["a"] > model.weights_["noise"]
    assert not hasattr(views(learner=LEARNERS[-2], cv=2).fit(X[:200], y[:200]), "weights_")


def test_each_method_is_asked_as_it_is_called():
    X, y = problem()
    models = [("logistic", LogisticRegression()), ("ridge", RidgeClassifier()), ("svc", SVC())]
    model = FusionClassifier(models, FAST, cv=3).fit(X / 1e4, y)
    assert model.stack_method_ == ["predict_proba", "decision_function", "decision_function"]
    model.set_params(stack_method="predict").fit(X / 1e4, y)
    assert model.stack_method_ == ["predict"] * 3
    assert set(model.weights_) == {"logistic", "ridge", "svc"}  # the heaviest first
    with pytest.raises(ValueError, match="ridge does not implement the method predict_proba"):
        model.set_params(stack_method="predict_proba").fit(X, y)
    with pytest.raises(ValueError, match="must have a column for each of 4 classes, got 6"):
        FusionClassifier([("svc", SVC(decision_function_shape="ovo"))], FAST, cv=2).fit(*problem(classes=4))


def test_unit_range():
    least = np.finfo(float).min
    found = unit_range(np.array([[1.0, 3.0, 2.0], [5.0, 5.0, 5.0], [least, -1.0, 1.0], [-1e300, 0.0, 1e300]]))
    np.testing.assert_array_equal(found, [[0, 1, 0.5], [0, 0, 0], [0, 0, 1], [0, 0.5, 1]])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_passthrough_is_a_hybrid(kind):
    X, y = problem(size=200)
    blind = [("blind", DecisionTreeClassifier(max_depth=1, random_state=0))]
    with_attributes = FusionClassifier(blind, FAST, passthrough=True).fit(kind(X[:120]), y[:120])
    without = FusionClassifier(blind, FAST).fit(kind(X[:120]), y[:120])
    assert with_attributes.score(kind(X[120:]), y[120:]) > without.score(kind(X[120:]), y[120:]) + 0.1
    assert with_attributes.transform(kind(X)).shape == (200, 3 + 5)
    with_attributes.partial_fit(kind(10 * X[120:]), y[120:])  # beyond the scale so far
    assert with_attributes.predict(kind(X)).shape == (200,)


def test_transform_and_its_columns():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = fusion(passthrough=True).fit(X, y).set_output(transform="pandas")
    table = model.transform(X)
    assert table.columns[:4].tolist() == ["bayes_0", "bayes_1", "bayes_2", "tree_0"]
    assert table.columns[6:].tolist() == X.columns.tolist()
    np.testing.assert_allclose(table.iloc[:, :3], model.named_estimators_["bayes"].predict_proba(X))
    votes = fusion(stack_method="predict").fit(X, y).transform(X)
    np.testing.assert_array_equal(votes[:, 3:].argmax(axis=1), model.named_estimators_["tree"].predict(X))


def test_prefit_models_are_taken_as_they_are():
    X, y = problem(size=200)
    tree = DecisionTreeClassifier(random_state=0).fit(X[:100], y[:100])
    bayes = GaussianNB().fit(X[:100], y[:100])
    for method in ("fit", "partial_fit"):
        model = FusionClassifier([("tree", tree), ("bayes", bayes)], FAST, cv="prefit")
        getattr(model, method)(X[100:], y[100:])
        assert model.estimators_ == [tree, bayes]
        assert model.score(X, y) > 0.9
    with pytest.raises(NotFittedError):
        fusion(cv="prefit").fit(X, y)


def test_prefit_models_may_know_more_classes():
    X, y = problem(size=200)
    bayes = GaussianNB().fit(X, y)
    model = FusionClassifier([("bayes", bayes)], FAST, cv="prefit").fit(X[y < 2], y[y < 2])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(X).shape == (200, 3)


@pytest.mark.parametrize("learner", [FAST, "vr-combine"])
def test_a_class_appears_in_the_fusion(learner):
    X, y = problem(size=300, spread=10.0)
    X /= np.abs(X).max(axis=0)
    old = np.flatnonzero(y < 2)
    models = [("growing", LinearMaxClassifier(FAST)), ("fixed", SGDClassifier(random_state=0))]
    model = FusionClassifier(models, learner).partial_fit(X[old], y[old])
    model.partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.named_estimators_["growing"].classes_.tolist() == [0, 1, 2]
    assert model.named_estimators_["fixed"].classes_.tolist() == [0, 1]
    assert model.score(X, y) > 0.8
    declared = FusionClassifier(models, learner).partial_fit(X[old], y[old], classes=[0, 1])
    with pytest.raises(ValueError, match="is not among the classes"):
        declared.partial_fit(X, y)


def test_models_without_partial_fit_are_fitted_once():
    X, y = problem(size=200)
    model = fusion().partial_fit(X[:100], y[:100])
    tree, bayes = model.named_estimators_["tree"], model.named_estimators_["bayes"]
    before, seen = tree.tree_.node_count, bayes.class_count_.sum()
    model.partial_fit(X[100:], y[100:])
    assert tree.tree_.node_count == before
    assert bayes.class_count_.sum() == seen + 100


def test_a_frozen_model_stays_as_it_is():
    X, y = problem(size=200)
    bayes = GaussianNB().fit(X[:100], y[:100])
    model = FusionClassifier([("bayes", FrozenEstimator(bayes))], FAST, cv="prefit").fit(X[:100], y[:100])
    model.partial_fit(X[100:], y[100:])
    assert bayes.class_count_.sum() == 100


def test_the_order_is_kept_when_asked_for():
    X, y = problem()
    in_order, shuffled = fusion(shuffle=False).fit(X, y), fusion().fit(X, y)
    np.testing.assert_array_equal(in_order.decision_function(X), fusion().partial_fit(X, y).decision_function(X))
    assert (in_order.decision_function(X) != shuffled.decision_function(X)).any()


def test_weights_of_samples_go_to_all_models():
    X, y = problem()
    weights = np.where(y == 2, 0.0, 1.0)
    model = fusion(cv=KFold(3)).fit(X, y, sample_weight=weights)
    assert not (model.predict(X) == 2).any()
    with pytest.raises(ValueError, match="sample_weight: the fit of 'near' takes none; remove it, or drop that model"):
        FusionClassifier([("near", KNeighborsClassifier())], FAST).fit(X, y, sample_weight=weights)


def test_models_are_named_set_and_dropped():
    X, y = problem()
    model = fusion().set_params(tree__max_depth=1, bayes="drop").fit(X, y)
    assert model.get_params()["tree__max_depth"] == 1
    assert list(model.named_estimators_) == list(model.weights_) == ["tree"]
    assert model.named_estimators_["tree"].get_depth() == 1
    assert model.named_estimators.bayes == "drop"


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        ([], {}, "should be a non-empty list of .string, estimator. tuples"),
        ([("a", GaussianNB()), ("a", GaussianNB())], {}, "not unique"),
        ([("a", StandardScaler())], {}, "estimators: 'a' must be a classifier or 'drop'"),
        ([("a", "drop")], {}, "All estimators are dropped"),
        ([("a", GaussianNB())], {"cv": "postfit"}, "cv must be one of prefit, got 'postfit'"),
        ([("a", GaussianNB())], {"stack_method": "guess"}, "stack_method must be one of auto"),
    ],
)
def test_bad_models(models, options, message):
    with pytest.raises(ValueError, match=message):
        FusionClassifier(models, FAST, **options).fit(*problem())


def test_a_class_that_a_fold_lacks():
    X, y = problem()
    y[0] = 3  # one sample of its own class
    models = [("ridge", RidgeClassifier()), ("bayes", GaussianNB())]
    with pytest.warns(RuntimeWarning, match="training fold .3. does not match total number of classes .4."):
        model = FusionClassifier(models, FAST, cv=KFold(3)).fit(X, y)
    assert model.predict_proba(X).shape == (90, 4)


@pytest.mark.parametrize("passthrough", [False, True])
@pytest.mark.parametrize("learner", [FAST, "vr-combine"])
def test_fusion_resumes_with_same_bits(learner, passthrough, tmp_path):
    X, y = problem(size=200)
    model = fusion(learner, passthrough=passthrough).fit(X[:100], y[:100])
    model.save(tmp_path / "fusion.linmax")
    models = copy.deepcopy(list(model.named_estimators_.items()))
    others = [FusionClassifier.load(tmp_path / "fusion.linmax", models), pickle.loads(pickle.dumps(model))]
    for one in (model, *others):
        one.partial_fit(X[100:], y[100:])
    for other in others:
        assert other.weights_ == model.weights_
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="fuses .'bayes', 'tree'., got .'bayes'."):
        FusionClassifier.load(tmp_path / "fusion.linmax", models[:1])
