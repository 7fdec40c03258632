"""Nasty files give the right rows or a message, through `linmax.stream`, `learn`, `predict` and `fuse` alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from nasty import FILES, Entry, Expected, Row

import linmax
from linmax.cli import main

FLAGS = {"header": ["--no-header"]}


def flags(options: dict[str, Any]) -> list[str]:
    """The options as a command takes them."""
    found: list[str] = []
    for name, value in options.items():
        found += FLAGS.get(name) or [f"--{name}", ",".join(value) if isinstance(value, list) else str(value)]
    return found


def parts(expected: Expected) -> tuple[list[Row], list[int]]:
    """The rows and the lines refused."""
    return expected if isinstance(expected, tuple) else (list(expected), [])


def test_there_are_many() -> None:
    assert len(FILES) >= 100
    assert len({name for name, *_ in FILES}) == len(FILES)


@pytest.mark.parametrize("entry", FILES, ids=[name for name, *_ in FILES])
def test_rows_and_messages(
    entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name, data, options, expected = entry
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(data)
    learned = [name, *flags(options), "--learner", "perceptron", "--model", "m", "--quiet", "--max-refused", "1"]
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected.replace("(", r"\(")):
            list(linmax.stream(name, **options))
        assert main(["learn", *learned]) == 2
        assert expected in capsys.readouterr().err
        assert not Path("m").exists()
        return
    rows, refused = parts(expected)
    reader = linmax.stream(name, **options)
    found = [pair for batch in reader for pair in zip(batch.labels.tolist(), batch.dicts(), strict=True)]
    assert found == rows
    assert [line for _, line, _ in reader.refusals.first] == refused

    assert main(["learn", *learned, "--json", "figures"]) == (0 if rows else 2)
    shown = capsys.readouterr()
    for line in refused:
        assert f"{name}, line {line}: " in shown.out
    if not rows:
        assert "there is no data" in shown.err
        return
    figures = json.loads(Path("figures").read_text())
    assert figures["trials"] == sum(label is not None for label, _ in rows)
    assert figures["refused"] == len(refused)
    assert main(["predict", "m", name, "--as", "jsonl", "--max-refused", "1", "--json", "figures"]) == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) >= len(rows)  # some lines are refused for want of a label only
    assert "error " in shown.err


@pytest.mark.parametrize("entry", FILES, ids=[name for name, *_ in FILES])
def test_fuse_reads_or_refuses(
    entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name, data, _, _ = entry
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(data)
    status = main(["fuse", name, "--label", "y", "--learner", "perceptron"])
    shown = capsys.readouterr()
    assert status in (0, 2)
    assert (shown.err.count("\n"), shown.err.startswith("linmax: error: ")) == (1, True) if status else not shown.err
