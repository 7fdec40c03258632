"""``linmax bounds``, and the bound that a trace gives of itself."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import linmax
from linmax.cli import main
from linmax.datasets import MajorityProblem


@pytest.fixture
def problem() -> MajorityProblem:
    return linmax.datasets.majority_problem(n=6, r=3, k=3, noise=0.02, trials=120, seed=4)


@pytest.fixture
def votes(problem: MajorityProblem, tmp_path: Path) -> Path:
    path = tmp_path / "votes.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"voter{i}" for i in range(6)), "noise", "label"])
        for row, label in zip(problem.votes, problem.labels, strict=True):
            writer.writerow([*("abc"[v] for v in row), "x", "abc"[label]])
    return path


def test_rules_side_by_side(votes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "figures.json"
    learners = "perceptron;winnow;R-winnow(1.05)"
    assert main(["bounds", str(votes), "--ignore", "noise", "--learners", learners, "--json", str(figures)]) == 0
    shown = capsys.readouterr().out
    found = json.loads(figures.read_text())
    assert found["trials"] == 120
    assert len(found["rules"]) == 3
    for name, rule in found["rules"].items():
        assert name in shown
        assert rule["bound"] is None or rule["updates"] <= rule["bound"]
    fewest = min(found["rules"], key=lambda name: found["rules"][name]["mistakes"])
    assert f"made by {fewest}" in " ".join(shown.split())


def test_svmlight_and_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(0)
    x = random.uniform(-3, 3, (60, 2))
    y = (x[:, 0] > 0).astype(int)
    table = tmp_path / "numbers.csv"
    table.write_text("a,b,y\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in zip(x, y, strict=True)))
    lines = tmp_path / "same.svm"
    lines.write_text("".join(f"{c} 1:{a} 2:{b}\n" for (a, b), c in zip(x, y, strict=True)))
    shown = []
    for path in (table, lines):
        assert main(["bounds", str(path), "--learners", "perceptron;balanced-winnow(1.1)"]) == 0
        shown.append(capsys.readouterr().out.split("instances")[1])
        assert "largest magnitude" in shown[-1]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("learner", ["perceptron", "winnow(1.02)", "balanced-winnow(1.05)", "R-winnow(1.02)"])
def test_trace_bound_is_never_passed(learner: str, problem: MajorityProblem) -> None:
    instances = linmax.instances(votes=problem.votes)
    trace = linmax.run(learner, instances, problem.labels)
    bound = trace.bound(problem.target, margin=problem.margin)
    assert bound.shape == (120,)
    assert (np.diff(bound[np.isfinite(bound)]) >= 0).all()
    assert (trace.updates <= bound).all()
    assert np.isfinite(bound[-1])


def test_trace_bound_wants_the_first_trials(problem: MajorityProblem, tmp_path: Path) -> None:
    instances = linmax.instances(votes=problem.votes)
    trace = linmax.run("winnow(1.02)", instances[:60], problem.labels[:60])
    later = trace.model.run(instances[60:], problem.labels[60:])
    with pytest.raises(ValueError, match="first trials"):
        later.bound(problem.target)
    with pytest.raises(ValueError, match="margin"):
        trace.bound(problem.target, margin=0.0)
    with pytest.raises(ValueError, match="perceptron"):
        linmax.run("A-perceptron", instances, problem.labels).bound(problem.target)
    path = tmp_path / "bound.png"
    trace.plot(path, bound=trace.bound(problem.target, margin=problem.margin))
    assert path.stat().st_size > 1000


def test_a_bound_in_the_mean_is_called_so(votes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "figures.json"
    learners = "perceptron;B(gamma=0.5)-perceptron;S-perceptron"
    assert main(["bounds", str(votes), "--ignore", "noise", "--learners", learners, "--json", str(figures)]) == 0
    rules = json.loads(figures.read_text())["rules"]
    assert [rule["expected"] for rule in rules.values()] == [False, True, True]
    assert capsys.readouterr().out.count("in the mean") == 2
