"""Slips of the hand on the command line: each gets one line with the remedy."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from linmax.cli import COMMANDS, command_parser, main

VOTES = "ann,bob,truth\n" + "x,y,x\ny,y,y\n" * 10


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "votes.csv").write_text(VOTES, encoding="utf-8")
    rows = np.random.default_rng(0).normal(size=(60, 2))
    lines = [f"{a:.3f},{b:.3f},{'yes' if a > 0 else 'no'}\n" for a, b in rows]
    (tmp_path / "data.csv").write_text("a,b,label\n" + "".join(lines), encoding="utf-8")
    assert main(["learn", "data.csv", "--learner", "perceptron", "--model", "m.linmax", "--quiet"]) == 0


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("fuse votes.csv --lable truth", "did you mean --label?"),
        ("learn data.csv --modle m", "did you mean --model?"),
        ("predict m.linmax data.csv --wirte scores", "did you mean --write?"),
        ("predict data.csv m.linmax", "data.csv is no model, but m.linmax is; the model comes first"),
        ("fuse votes.csv --test-fraction 30", "must be a share below 1, got 30; for 30 % pass 0.3"),
        ("fuse votes.csv --test-fraction -1", "--test-fraction must leave rows"),
        ("predict m.linmax data.csv --digits -1", "digits must be >= 0"),
    ],
)
def test_one_line_with_the_remedy(folder, capsys, command, message):
    try:
        status = main(command.split())
    except SystemExit as end:
        status = end.code
    assert status == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_six_digits_unless_others_are_asked_for(folder, capsys):
    def numbers(*options):
        assert main(["predict", "m.linmax", "data.csv", "--write", "probabilities", *options]) == 0
        return capsys.readouterr().out.splitlines()

    short, exact = numbers("--as", "csv"), numbers("--as", "csv", "--digits", "0")
    assert all(len(re.sub(r"^0\.0*", "", cell)) <= 6 for line in short[1:] for cell in line.split(",")[2:])
    assert max(len(cell) for line in exact[1:] for cell in line.split(",")[2:]) > 12
    one, whole = (
        json.loads(lines[0]) for lines in (numbers("--as", "jsonl"), numbers("--as", "jsonl", "--digits", "0"))
    )
    assert one["probabilities"] == {name: float(f"{p:.6g}") for name, p in whole["probabilities"].items()}


@pytest.mark.parametrize(("name", "second"), [*((name, "input") for name in ("bounds", "fuse", "learn", "predict")),
                                              ("serve", "storage")])  # fmt: skip
def test_what_matters_comes_first(name, second):
    text = command_parser(name).format_help()
    places = [text.index(f"\n{group}:\n") for group in ("most used", second, "output")]
    assert places == sorted(places)
    first = text[places[0] : places[1]]
    assert len(re.findall(r"^  --", first, re.MULTILINE)) == 3


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_short_at_the_top(name):
    assert command_parser(name).format_help().partition("\n\n")[0].count("\n") <= 1
