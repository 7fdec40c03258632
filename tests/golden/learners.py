"""The learners that are played, as text."""

from __future__ import annotations

# Every rule of the registry that lifts, and variants that take another path through the kernels.
RULES = [
    "adagrad",
    "alma(2)",
    "alma(3, alpha=0.9)",
    "arow",
    "arow(0.1, rivals=all)",
    "balanced-winnow(1.2)",
    "balanced-winnow(1.2, thickness=0.01)",
    "committee(1.2)",
    "ftrl(l1=0.01)",
    "logistic",
    "nherd",
    "p-norm(3)",
    "pa",
    "pa-i(0.1)",
    "pa-ii(0.5)",
    "perceptron",
    "perceptron(margin=1)",
    "perceptron(rivals=violated)",
    "quasi-additive(exp, rate=0.2)",
    "quasi-additive(sinh, rate=0.2)",
    "romma",
    "sasb",
    "scw-i",
    "scw-ii",
    "second-order-perceptron",
    "winnow(1.2)",
    "winnow(1.1, thickness=0.02)",
]
TWO_CLASSES = ["elimination", "winnow(2, threshold=4)", "winnow(2, threshold=4, demotion=0)"]

AVERAGES = ["A-perceptron", "A-alma(2)", "A-arow", "A(scale=l1)-winnow(1.2)", "A(scale=max, fade=True)-winnow(1.1)"]
# Not the passive-aggressive rules recycled: whether they reach the margin is a matter of rounding.
RECYCLED = [
    "R-perceptron",
    "R-p-norm(3)",
    "R(s=30, u=20, budget=10)-perceptron(margin=1)",
    "AR-winnow(1.2)",
    "AR-alma(2)",
]
VOTED = ["V-arow", "V(h=5, w=20, r=20, d=20)-alma(2)", "VA-pa", "VR-alma(2)", "VAR(s=30)-p-norm(3)"]
COMBINED = [
    "combine(perceptron, A-winnow(1.1), alma(2))",
    "combine(perceptron, A-winnow(1.1), alma(2), how=wma)",
    "combine(perceptron, AR-winnow(1.1), arow, how=weighted)",
    "V(h=5)-combine(alma(2), A-arow)",
    "stack(perceptron, winnow(1.1), fusion=winnow(1.05))",
    "stack(A-arow, AR-winnow(1.1), naive-bayes, fusion=A-arow)",
]
SPARING = [  # of labels, or told right and wrong alone
    "S-perceptron",
    "S(b=0.2)AR-winnow(1.2)",
    "S(b=0.1)-votes",
    "B-perceptron",
    "B(gamma=0.2)A-arow",
    "B-votes",
    "combine(B-perceptron, S-alma(2))",
]
PAPERS = ["combine", "vr-combine"]
WHOLE = ["naive-bayes", "recent-label", "robust-softmax(0.1)", "softmax"]
POOLS = ["attributes", "auto", "votes"]

ALL = [*RULES, *AVERAGES, *RECYCLED, *VOTED, *COMBINED, *SPARING, *PAPERS, *WHOLE, *POOLS]
