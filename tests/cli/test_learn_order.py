"""Files that are sorted by class: said, shuffled, and not the ruin of the model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import linmax
from linmax.cli import main
from linmax.io.batch import Runs, shuffled
from linmax.jit.compiling import JIT

CLASSES = ["sport", "art", "trade"]


def lines(trials: int, seed: int = 0) -> list[str]:
    """Texts, sorted by class."""
    random = np.random.default_rng(seed)
    found = []
    for c in np.sort(random.integers(0, 3, trials)).tolist():
        words = np.where(random.random(12) < 0.4, 100 * c + random.integers(0, 100, 12), random.integers(300, 900, 12))
        found.append(f"{CLASSES[c]} | {' '.join(f'w{word}' for word in sorted(set(words.tolist())))}")
    return found


def test_rows_are_shuffled_and_none_is_lost() -> None:
    rows = [f"{CLASSES[t % 3]} '{t} |n a:{t} b{t}" for t in range(5000)]
    batches = list(linmax.stream(rows))
    found = list(shuffled(batches, 3))
    tags = [tag for batch in found for tag in batch.tags or []]
    assert sorted(tags, key=int) == [str(t) for t in range(5000)]
    assert tags != [str(t) for t in range(5000)]
    for batch in found:
        for tag, row, label in zip(batch.tags or [], batch.dicts(), batch.labels, strict=True):
            assert label == CLASSES[int(tag) % 3]
            assert row.get("n^a", 0.0) == float(tag)
            assert f"n^b{tag}" in row


@pytest.mark.small
def test_runs() -> None:
    runs = Runs()
    for part in np.array_split(np.repeat([0, 1, 2], 100), 7):
        runs.count(np.append(part, -1))
    assert (runs.rows, runs.runs, runs.long) == (300, 3, True)
    runs = Runs()
    runs.count(np.arange(300) % 3)
    assert not runs.long


@pytest.mark.small
def test_a_rare_class_in_random_order_does_not_look_sorted() -> None:
    labels = (np.random.default_rng(1).random(20_000) < 0.005).astype(int)
    runs = Runs()
    runs.count(labels)
    assert runs.rows / runs.runs > 50
    assert not runs.long
    runs = Runs()
    runs.count(np.sort(labels))
    assert runs.long


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_a_sorted_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.vw").write_text("\n".join(lines(3000)) + "\n")
    Path("test.vw").write_text("\n".join(lines(1000, 1)) + "\n")
    errors = {}
    for name, more in (("sorted", []), ("shuffled", ["--shuffle"])):
        assert main(["learn", "train.vw", "--test", "test.vw", "--json", f"{name}.json", "--quiet", *more]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert ("the rows look sorted by class" in told) == (name == "sorted")
        figures = json.loads(Path(f"{name}.json").read_text())
        errors[name] = figures["test_error"]
        assert ("mean_run" in figures) == (name == "sorted")
    assert errors["sorted"] <= 1.5 * errors["shuffled"] + 0.01
