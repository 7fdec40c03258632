"""Data that a model has not learned from: what is strange about them is told, in ``predict`` and with ``--test``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from linmax.cli import main

TABLE = "n,y\n" + "".join(f"{i % 7},{'pq'[i % 7 > 3]}\n" for i in range(60))
FAST = ["--learner", "perceptron"]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(TABLE)


def test_unreadable_test_lines_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text("n,y\n1,p\n2,3,q\n6,q\n")
    assert main(["learn", "a.csv", *FAST, "--test", "t.csv", "--model", "m", "--json", "f", "--quiet"]) == 2
    said = capsys.readouterr()
    assert "t.csv, line 3: 3 fields where the header has 2" in said.out
    assert "1 of 3 lines could not be read, more than --max-refused 0.01 allows" in said.err
    figures = json.loads(Path("f").read_text())
    assert (figures["refused"], figures["test_refused"], figures["test_trials"]) == (0, 1, 2)
    assert Path("m").exists()
    command = ["learn", "a.csv", *FAST, "--test", "t.csv", "--max-refused", "0.5", "--json", "f", "--quiet"]
    assert main(command) == 0


@pytest.mark.parametrize("how", ["predict", "test"])
def test_unknown_labels_are_reported(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text("n,y\n1,p\n6,Q\n5,Q\n3,\n")
    if how == "test":
        assert main(["learn", "a.csv", *FAST, "--test", "t.csv", "--quiet"]) == 0
        told = capsys.readouterr().out
    else:
        assert main(["learn", "a.csv", *FAST, "--model", "m", "--quiet"]) == 0
        capsys.readouterr()
        assert main(["predict", "m", "t.csv"]) == 0
        told = capsys.readouterr().err
    assert (
        "2 of 3 labels are classes that the model has not learned, such as 'Q', and count as mistakes; it has learned "
        "'p', 'q'."
    ) in told


def test_labels_that_look_missing_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text(f"{TABLE}1,\n2,NA\n")
    assert main(["learn", "a.csv", *FAST]) == 0
    said = capsys.readouterr().out
    assert "1 line without a label was predicted only." in said
    assert "Labels such as 'NA' are a class; leave a label that is missing empty." in said
