"""Explanations of single predictions by what is lost when a part of the instance is left out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import linmax
from linmax import Learner
from linmax.cli import main


def lead(learner: Learner, row: dict[str, float]) -> float:
    shares = np.sort(np.log(list(learner.predict_proba(row).values())))
    return float(shares[-1] - shares[-2])


@pytest.mark.small
@pytest.mark.parametrize("name", ["perceptron", "naive-bayes", "A-arow", "auto(sparse)"])
def test_a_contribution_is_what_is_lost_without_the_attribute(name: str) -> None:
    learner = Learner(name)
    for words, label in [("cheap offer now", "spam"), ("lunch at noon", "ham"), ("cheap lunch", "ham")] * 8:
        learner.learn(dict.fromkeys(words.split(), 1.0), label)
    row = {"cheap": 1.0, "offer": 1.0, "never": 1.0}
    found = learner.explain(row)
    assert found.winner == learner.predict(row) == "spam"
    assert found.runner_up == "ham"
    assert found.difference == pytest.approx(lead(learner, row))
    assert set(found.contributions) == {"cheap", "offer"}  # what is unknown contributes nothing
    without = {name: value for name, value in row.items() if name != "offer"}
    odds = {label: float(np.log(share)) for label, share in learner.predict_proba(without).items()}
    assert found.contributions["offer"] == pytest.approx(found.difference - (odds["spam"] - odds["ham"]), abs=1e-6)


def test_numbers_of_the_pool_are_set_to_their_mean() -> None:
    random, learner = np.random.default_rng(0), Learner()
    ages = random.normal(40.0, 10.0, 600)
    for age, other in zip(ages.tolist(), random.normal(5.0, 1.0, 600).tolist(), strict=True):
        learner.learn({"age": age, "other": other}, label="old" if age > 40.0 else "young")
    found = learner.explain({"age": 60.0, "other": 5.0})
    assert found.winner == "old"
    assert found.contributions["age"] > 2.0 > 10.0 * abs(found.contributions["other"])
    usual = learner.predict_proba({"age": float(ages.mean()), "other": 5.0})
    rest = float(np.log(usual["old"]) - np.log(usual["young"]))
    assert found.contributions["age"] == pytest.approx(found.difference - rest, abs=0.02)
    assert list(found.to_dict()["contributions"]) == ["age", "other"]


@pytest.mark.small
def test_voters_and_raters_are_left_out_too() -> None:
    learner = Learner()
    with pytest.raises(ValueError, match="explain\\(\\) requires two classes, got \\[\\]"):
        learner.explain({"x": 1.0})
    for t in range(40):
        label = "pq"[t % 2]
        learner.learn(votes={"good": label, "constant": "p"}, scores={"rater": {label: 1.0}}, label=label)
    found = learner.explain(votes={"good": "q", "constant": "p"}, scores={"rater": {"q": 1.0}})
    assert found.winner == "q"
    assert found.contributions["good"] > 0.0 < found.contributions["rater"]
    assert "q rather than p" in str(found)


def test_commands_and_streams(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, saved, fused = tmp_path / "rows.csv", str(tmp_path / "model"), str(tmp_path / "fusion")
    random = np.random.default_rng(1)
    rows = [f"{c},{random.normal():.3f},{'yes' if c == 'a' else 'no'}" for c in random.choice(list("abc"), 200)]
    data.write_text("\n".join(["city,number,label", *rows]) + "\n")
    assert main(["learn", str(data), "--model", saved, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["predict", saved, str(data), "--explain", "1"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(answers) == 200
    assert all(len(answer["reasons"]) == 1 for answer in answers)
    reasons = [next(iter(answer["reasons"])) for answer in answers]
    assert np.mean([reason.startswith("city=") for reason in reasons]) > 0.9
    assert main(["predict", saved, str(data), "--explain", "1", "--as", "csv"]) == 2
    assert "--explain writes several numbers per line" in capsys.readouterr().err
    linmax.VoteFusion().fit([["a", "b"], ["b", "b"]], ["a", "b"]).save(fused)
    assert main(["predict", fused, str(data), "--explain", "1"]) == 2
    assert "--explain requires a model of attributes" in capsys.readouterr().err
