"""The estimators: scikit-learn's own checks, and what they promise beyond them."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

import linmax

ORDER = "an on-line learner depends on the order of the samples, and the check shuffles the weighted ones only"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": ORDER,
    "check_sample_weight_equivalence_on_sparse_data": ORDER,
}


def fusion(learner):
    models = [("logistic", LogisticRegression()), ("bayes", GaussianNB())]
    return linmax.FusionClassifier(models, learner, cv=3)


@parametrize_with_checks(
    [linmax.LinearMaxClassifier("AR-perceptron"), linmax.LinearMaxClassifier(), fusion("AR-perceptron"), fusion("vr-combine")],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_conforms_to_scikit_learn(estimator, check):
    check(estimator)
