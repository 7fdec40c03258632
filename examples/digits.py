"""
Eight views of the digits
=========================

`FusionClassifier` fuses eight models of the digits, each with its own features, and is compared with voting and
stacking. The images ship with scikit-learn. The models are fitted once, on a third of them. From the next third the
fusion learns their weights online, predicting each image before its label. The last third is for the comparison.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

import linmax


def view(of_images, model):
    """A model that sees 8 x 8 images through a function."""
    return make_pipeline(FunctionTransformer(lambda X: of_images(X.reshape(-1, 8, 8)).reshape(len(X), -1)), model)


def sums(x):
    """Of rows and of columns."""
    return np.concatenate([x.sum(axis=1), x.sum(axis=2)], axis=1)


def blocks(x):
    """Sums over 2 x 2 pixels."""
    return x.reshape(-1, 4, 2, 4, 2).sum(axis=(2, 4))


MODELS = [
    ("upper half, nearest", view(lambda x: x[:, :4], KNeighborsClassifier(3))),
    ("lower half, nearest", view(lambda x: x[:, 4:], KNeighborsClassifier(3))),
    ("left half, Gauss", view(lambda x: x[:, :, :4], GaussianNB())),
    ("right half, LDA", view(lambda x: x[:, :, 4:], LinearDiscriminantAnalysis())),
    ("sums, ridge", view(sums, RidgeClassifier())),
    ("ink or none, Bernoulli", view(lambda x: (x > 8).astype(float), BernoulliNB())),
    ("2 x 2 blocks, tree", view(blocks, DecisionTreeClassifier(max_depth=8, random_state=0))),
    ("edges, centroid", view(lambda x: np.abs(np.diff(x, axis=2)), NearestCentroid())),
]

X, y = load_digits(return_X_y=True)
first, second, last = np.array_split(np.random.default_rng(0).permutation(len(y)), 3)
fitted = [(name, model.fit(X[first], y[first])) for name, model in MODELS]

fusion = linmax.FusionClassifier(fitted, cv="prefit")
batches = np.array_split(second, len(second) // 25)  # as labels come in
wrong = []
for rows in batches:
    before = fusion.mistakes_ if wrong else 0
    fusion.partial_fit(X[rows], y[rows], classes=np.arange(10))
    wrong.append(fusion.mistakes_ - before)

said = np.array([model.predict(X[second]) for _, model in fitted])
plurality = np.array([np.bincount(votes, minlength=10).argmax() for votes in said.T])
best = (said == y[second]).mean(axis=1).argmax()
print(f"while it learned, of {len(second)}: {fusion.mistakes_} mistakes by the fusion,", end=" ")
print(f"{(plurality != y[second]).sum()} by a plain vote, {(said[best] != y[second]).sum()} by the best model\n")

frozen = [(name, FrozenEstimator(model)) for name, model in fitted]
voting = VotingClassifier(frozen).fit(X[second], y[second])
stacking = StackingClassifier(frozen, LogisticRegression(max_iter=1000), cv="prefit").fit(X[second], y[second])
print(f"accuracy on the {len(last)} images kept back")
results = {"linmax fusion": fusion, "StackingClassifier": stacking, "VotingClassifier": voting} | dict(fitted)
for name, model in results.items():
    weight = f"   weight {fusion.weights_[name]:.2f}" if name in fusion.weights_ else ""
    print(f"{name:24s}{model.score(X[last], y[last]):.3f}{weight}")

# %%
# Mistakes while it learned.

ends = np.cumsum([len(rows) for rows in batches])
curves = {
    "fusion": np.interp(np.arange(1, len(second) + 1), [0, *ends], [0, *np.cumsum(wrong)]),
    "plain vote": np.cumsum(plurality != y[second]),
    f"best model, {fitted[best][0]}": np.cumsum(said[best] != y[second]),
}
figure, axes = plt.subplots(figsize=(8, 4.5))
for name, curve in curves.items():
    axes.plot(curve, label=name)
axes.set(xlabel="images", title="mistakes, each image predicted before its label is seen")
axes.legend()
plt.show()
