"""The commands read the same data from every format, packed or not, from files and from standard input."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from linmax.cli import main

Figures = Callable[..., dict]


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Figures:
    """What a command writes as JSON; data that are bytes are given to standard input."""

    def run(command: str, data: Path | bytes, *options: str) -> dict:
        if isinstance(data, bytes):
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        assert main([command, "-" if isinstance(data, bytes) else str(data), *options, "--json", "-"]) == 0
        said = capsys.readouterr()
        if isinstance(data, bytes):
            assert "standard input: " in said.err
        found = json.loads(said.out)
        return {key: value for key, value in found.items() if key not in ("data", "seconds")}

    return run


def test_bounds(tmp_path: Path, figures: Figures) -> None:
    random = np.random.default_rng(1)
    rows = [
        (int(label), {str(c): round(float(v), 3) for c, v in zip((1, 2, 4), random.uniform(0.1, 3.0, 3), strict=True)})
        for label in random.integers(0, 2, 50)
    ]
    svm = "\n".join(f"{y} " + " ".join(f"{n}:{v}" for n, v in row.items()) for y, row in rows)
    vw = "\n".join(f"{y} | " + " ".join(f"{n}:{v}" for n, v in row.items()) for y, row in rows)
    jsonl = "\n".join(json.dumps({"label": y, "features": row}) for y, row in rows)
    table = "1,2,4,y\n" + "".join(",".join(map(str, row.values())) + f",{y}\n" for y, row in rows)
    options = ["--learners", "perceptron;balanced-winnow(1.1)"]
    found = []
    for name, data in {"a.vw": vw, "a.jsonl": jsonl, "a.tsv": table.replace(",", "\t"), "a.csv": table}.items():
        path = tmp_path / f"{name}.gz"
        path.write_bytes(gzip.compress(data.encode()))
        found += [figures("bounds", path, *options), figures("bounds", data.encode(), *options)]
    assert all(one == found[0] for one in found)
    # Indices of svmlight are columns, so that there is one for 3.
    (tmp_path / "a.svm").write_text(svm)
    theirs = figures("bounds", tmp_path / "a.svm", *options)
    assert theirs == figures("bounds", svm.encode(), "--format", "svmlight", *options)
    for name, rule in theirs["rules"].items():
        assert rule["mistakes"] == found[0]["rules"][name]["mistakes"]


def test_votes(tmp_path: Path, figures: Figures) -> None:
    random = np.random.default_rng(2)
    labels = random.choice(list("abc"), 60)
    rows = [
        {f"v{i}": str(label) if random.random() < 0.7 else "a" for i in range(3)} | {"right": str(label)}
        for label in labels
    ]
    table = "v0,v1,v2,right\n" + "".join(",".join(row.values()) + "\n" for row in rows)
    jsonl = "\n".join(map(json.dumps, rows))
    (tmp_path / "votes.csv").write_text(table)
    (tmp_path / "votes.csv.gz").write_bytes(gzip.compress(table.encode()))
    (tmp_path / "votes.jsonl.gz").write_bytes(gzip.compress(jsonl.encode()))
    sources = [*tmp_path.iterdir(), table.encode(), jsonl.encode(), gzip.compress(table.encode())]
    for command, options in (
        ("fuse", ["--label", "right", "--learner", "AR-winnow(1.1)"]),
        ("bounds", ["--label", "right", "--votes", "--learners", "perceptron"]),
    ):
        found = [figures(command, source, *options) for source in sources]
        assert all(one == found[0] for one in found)
