"""Tests for what the commands tell of a learner's members and of what its pool decided."""

import json
from pathlib import Path

import numpy as np
import pytest

import linmax
from linmax.cli import main
from linmax.cli.models import decided_text


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def shown(capsys, name):
    assert main(["show", name, "--json", "f.json"]) == 0
    return capsys.readouterr().out, json.loads(Path("f.json").read_text())


def test_a_learner_of_attributes_shows_members_and_what_was_decided(folder, capsys):
    random, learner = np.random.default_rng(0), linmax.Learner()
    for a, b in random.random((60, 2)).tolist():
        learner.learn({"a": a, "b": b}, "yes" if a > b else "no")
    learner.save("m.linmax")
    told, figures = shown(capsys, "m.linmax")
    assert figures["decided"] == learner._current_model.pool.decided()
    assert figures["members"] == {member.name: member.weight for member in learner._current_model.pool.members()}
    assert "attributes are taken for numbers, as the data decided (100.0 % of them were not 0" in told
    assert f"  {figures['members']['PA-I']:+.3f}  PA-I\n" in told


def test_a_learner_of_votes_shows_the_shares_of_its_members(folder, capsys):
    learner = linmax.Learner()
    for label in "AABABB" * 5:
        learner.learn(votes={"right": label, "says A": "A"}, label=label)
    learner.save("m.linmax")
    told, figures = shown(capsys, "m.linmax")
    assert figures["decided"] is None
    assert sum(figures["members"].values()) == pytest.approx(1.0)
    assert all(f"{100 * share:.1f} %  {name}\n" in told for name, share in figures["members"].items())


def test_a_combination_shows_the_mistakes_of_its_members(folder, capsys):
    learner = linmax.Learner(linmax.combine(["perceptron", "A-perceptron"]))
    for label in "AABABB" * 5:
        learner.learn(votes={"right": label, "says A": "A"}, label=label)
    learner.save("m.linmax")
    told, figures = shown(capsys, "m.linmax")
    assert figures["members"].keys() == {"perceptron", "A-perceptron"}
    assert f"{figures['members']['A-perceptron']} mistakes  A-perceptron" in told


def test_show_prints_calibration_once_fitted(folder, capsys):
    for trials, there in [(5, False), (100, True)]:
        jury = linmax.datasets.jury_problem(trials=trials)
        linmax.VoteFusion().fit(jury.votes, jury.labels).save("m.linmax")
        told, figures = shown(capsys, "m.linmax")
        assert bool(figures["calibration"]) == ("calibration: sharpness" in told) == there


def test_user_decision_is_reported():
    assert decided_text({"attributes are": "words", "decided by": "the learner"}) == (
        "attributes are taken for words, as the learner decided"
    )


def test_learn_counts_rows_that_repeat_earlier_ones(folder, capsys):
    rows = [f"{'yes' if a > 0.5 else 'no'},{a},{b}" for a, b in np.random.default_rng(0).random((40, 2)).tolist()]
    for name, given in (("once.csv", rows), ("twice.csv", rows + rows[:30])):
        Path(name).write_text("\n".join(["label,a,b", *given]) + "\n")
        assert main(["learn", name, "--json", "f.json"]) == 0
        told = capsys.readouterr().out
        assert json.loads(Path("f.json").read_text())["repeats"] == len(given) - len(rows)
        assert ("30 rows (42.9%) have the attributes of an earlier row" in told) == (name == "twice.csv")
