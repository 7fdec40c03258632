"""Every example runs as it stands, and shows what it promises."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = ["break_a_bound.py", "compose_a_learner.py", "digits.py", "mistake_curves.py", "your_own_rule.py"]


def output_of(name, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_are_tested():
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == NAMES


def test_compose_a_learner():
    shown = output_of("compose_a_learner.py")
    mistakes = {name: int(count) for count, name in re.findall(r"(\d+) mistakes by (\S+)", shown)}
    assert mistakes["AR(s=200)-winnow(1.2)"] < mistakes["A-winnow(1.2)"] < mistakes["winnow(1.2)"]
    assert re.search(r"\d+ by AR-perceptron", shown)


def test_mistake_curves(tmp_path):
    path = tmp_path / "curves.png"
    shown = output_of("mistake_curves.py", str(path))
    ends = {line.split()[0]: float(line.split()[-1]) for line in shown.splitlines()[1:]}
    assert ends["winnow(1.03)"] > ends["A-winnow(1.35)"] > ends["AR-perceptron"] > ends["optimal"]
    assert path.read_bytes().startswith(b"\x89PNG")


def test_digits(tmp_path):
    path = tmp_path / "curves.png"
    shown = output_of("digits.py", str(path))
    mistakes = [int(count) for count in re.findall(r"(\d+) (?:mistakes )?by", shown)]
    assert mistakes[0] < mistakes[1] < mistakes[2]
    accuracy = {name.strip(): float(score) for name, score in re.findall(r"^(.{24})(0\.\d+)", shown, re.MULTILINE)}
    assert len(accuracy) == 11
    assert accuracy["linmax fusion"] > accuracy["VotingClassifier"]
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("use", ["averaged", "voted over", "VR-Combine, three limits"])
def test_your_own_rule(use, own_rule):
    assert own_rule[use] < own_rule["alone"]


def test_a_rule_is_the_same_from_text(own_rule):
    assert own_rule["the same, from text"] == own_rule["voted over"]


@pytest.fixture(scope="module")
def own_rule():
    found = re.findall(r"^(.+?)\s+(\d+) mistakes$", output_of("your_own_rule.py"), re.MULTILINE)
    return {use: int(count) for use, count in found}


def test_break_a_bound():
    shown = output_of("break_a_bound.py")
    printed = float(re.search(r"2 ln\(n\)/d\^2: ([\d.]+)", shown)[1])
    rows = {
        name: (int(m), float(b))
        for name, m, b in re.findall(r"(\w+) +alpha.*: (\d+) mistakes, proved bound ([\d.]+)", shown)
    }
    assert rows["corrected"][0] <= printed < rows["printed"][0]
    assert all(made <= proved for made, proved in rows.values())
