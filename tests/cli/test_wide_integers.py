"""Integers beyond 64 bits as labels or votes are refused by name in every interface; nothing learned is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import linmax
from linmax.cli import main

WIDE = 10**25
REFUSED = "integers must fit in 64 bits, got 10000000000000000000000000; pass it as text"
X = np.random.default_rng(0).random((12, 2))
Y = [WIDE, 1] * 6


def fuse_votes(label: int, vote: int) -> None:
    linmax.VoteFusion("perceptron").fit([[vote, 1], [1, vote], [1, 1]], [label, 1, 1])


CALLS: dict[str, Callable[[], object]] = {
    "Learner, label": lambda: linmax.Learner("perceptron").learn(votes={"a": 1}, label=WIDE),
    "Learner, vote": lambda: linmax.Learner("perceptron").learn(votes={"a": WIDE}, label=1),
    "Learner, attributes": lambda: linmax.Learner("perceptron").learn({"a": 0.5}, label=WIDE),
    "VoteFusion, label": lambda: fuse_votes(WIDE, 1),
    "VoteFusion, vote": lambda: fuse_votes(1, -WIDE),
    "LinearMaxClassifier": lambda: linmax.LinearMaxClassifier("perceptron").fit(X, Y),
    "partial_fit": lambda: linmax.LinearMaxClassifier("perceptron").partial_fit(X, Y, classes=[1, WIDE]),
    "FusionClassifier": lambda: linmax.FusionClassifier([("l", LogisticRegression())], cv=2).fit(X, Y),
}


@pytest.mark.parametrize("name", CALLS)
def test_wide_integers_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=REFUSED.replace("got ", "got -?")):
        CALLS[name]()


def test_a_refused_label_leaves_the_learner_as_it_was() -> None:
    learner = linmax.Learner("perceptron")
    learner.learn(votes={"a": 1, "b": 2}, label=1)
    before = learner.predict_proba(votes={"a": 1, "b": 2})
    with pytest.raises(ValueError, match=REFUSED):
        learner.learn(votes={"a": 1, "b": 2}, label=WIDE)
    assert (learner.trials, learner.classes) == (1, [1, 2])
    assert learner.predict_proba(votes={"a": 1, "b": 2}) == before


def test_fuse_refuses_wide_integers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "votes.jsonl"
    table.write_text(f'{{"a": 1, "b": {WIDE}, "label": 1}}\n{{"a": 1, "b": 1, "label": 1}}\n' * 3)
    assert main(["fuse", str(table)]) == 2
    assert REFUSED in capsys.readouterr().err


def test_labels_of_64_bits_keep_their_type() -> None:
    large = 2**63
    fusion = linmax.VoteFusion("perceptron").fit([[large, 1], [1, large], [large, large]], [large, 1, large])
    assert fusion.predict([[large, large]]).tolist() == [large]
    assert all(type(label) is int for label in fusion.classes_.tolist())
