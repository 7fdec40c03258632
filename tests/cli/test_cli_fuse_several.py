"""`linmax fuse` of several tables: one after the other, as one."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import linmax
from linmax.cli import main

LEARNER = "AR-winnow(1.1)"


def table(trials: int = 120) -> pd.DataFrame:
    data = linmax.datasets.majority_problem(n=4, r=3, k=3, noise=0.1, trials=trials, seed=2)
    frame = pd.DataFrame(data.votes, columns=["ann", "ben", "cy", "dee"])
    return frame.assign(right=data.labels, line=[f"q{t}" for t in range(trials)])


def fused(*paths: Path, more: tuple[str, ...] = (), learner: str = LEARNER) -> dict[str, object]:
    out = paths[0].parent / "figures.json"
    options = ["--label", "right", "--ignore", "line", "--learner", learner, "--json", str(out), *more]
    assert main(["fuse", *map(str, paths), *options]) == 0
    figures = json.loads(out.read_text())
    return {name: value for name, value in figures.items() if name not in ("seconds", "data")}


def test_several_tables_are_one(tmp_path, capsys) -> None:
    frame = table()
    for name, part in {"all": frame, "one": frame[:50], "two": frame[50:51], "three": frame[51:]}.items():
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    frame[51:].drop(columns="line").to_csv(tmp_path / "three.csv", index=False)  # what one lacks need not be ignored
    whole = fused(tmp_path / "all.csv")
    assert fused(*(tmp_path / f"{name}.csv" for name in ("one", "two", "three"))) == whole
    assert "one.csv and 2 more: 120 rows" in capsys.readouterr().out
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["data"] == [str(tmp_path / f"{name}.csv") for name in ("one", "two", "three")]


def test_tables_of_several_formats_with_other_columns(tmp_path, capsys) -> None:
    frame = table()
    frame[:60].drop(columns="dee").to_csv(tmp_path / "one.csv", index=False)
    frame[60:].to_json(tmp_path / "two.jsonl", orient="records", lines=True)
    gaps = frame.astype({"dee": object})
    gaps.loc[:59, "dee"] = None
    gaps.to_csv(tmp_path / "all.csv", index=False)
    found = fused(tmp_path / "one.csv", tmp_path / "two.jsonl")
    told = capsys.readouterr().out
    assert "one.csv has no column dee; empty there." in told
    assert "Labels are written in two ways, and taken for the same" in told
    assert found == fused(tmp_path / "all.csv")


def test_predictions_of_several_tables(tmp_path, capsys) -> None:
    frame = table(80).astype({"right": object})
    frame.loc[frame.index % 10 == 0, "right"] = None
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for path, part in zip(paths, (frame[:40], frame[40:]), strict=True):
        part.to_csv(path, index=False)
    fused(*paths, more=("--predictions", str(tmp_path / "open.csv")))
    assert "8 predictions saved" in capsys.readouterr().out
    assert pd.read_csv(tmp_path / "open.csv")["line"].tolist() == [2, 12, 22, 32] * 2  # of their own table


def test_errors_name_the_table(tmp_path, capsys) -> None:
    frame = table(40)
    frame.to_csv(tmp_path / "one.csv", index=False)
    frame.drop(columns="right").to_csv(tmp_path / "two.csv", index=False)
    paths = [str(tmp_path / "one.csv"), str(tmp_path / "two.csv")]
    for options, reason in [
        (["--label", "right", "--ignore", "line"], "two.csv has no column 'right'"),
        (["--label", "right", "--ignore", "line,nobody"], "two.csv has no column 'right'"),
        (["--ignore", "nobody"], "none of 2 tables has a column 'nobody'; they have ann"),
    ]:
        assert main(["fuse", *paths, *options]) == 2
        assert reason in capsys.readouterr().err


@pytest.mark.parametrize("command", ["fuse", "predict"])
def test_a_header_within_the_data_in_another_order_is_refused(tmp_path, capsys, command) -> None:
    frame, path = table(30).drop(columns="line"), tmp_path / "joined.csv"
    other = frame[list(reversed(frame.columns))]
    path.write_text(frame.to_csv(index=False) + other.to_csv(index=False))
    given = ["fuse", str(path), "--label", "right"]
    if command == "predict":
        frame.to_csv(tmp_path / "one.csv", index=False)
        model = str(tmp_path / "model")
        assert (
            main(["fuse", str(tmp_path / "one.csv"), "--label", "right", "--learner", LEARNER, "--model", model]) == 0
        )
        given = ["predict", model, str(path)]
    assert main(given) == 2
    assert "line 32 is the header again, with its columns in another order" in capsys.readouterr().err


def test_cluster_counts_unknown_votes_as_abstentions(tmp_path, capsys) -> None:
    pytest.importorskip("distributed")
    frame = table(90).drop(columns="line").astype(str)
    frame.loc[frame.index % 9 == 4, "ann"] = "no idea"
    frame.loc[0, "right"] = "0"
    for place in range(3):
        frame[30 * place : 30 * (place + 1)].to_csv(tmp_path / f"{place}.csv", index=False)
    paths = [str(tmp_path / f"{place}.csv") for place in range(3)]
    model = str(tmp_path / "model")
    given = ["fuse", *paths, "--label", "right", "--model", model]
    assert main([*given, "--cluster", "local:1"]) == 0
    message = "10 votes name something that is never a label, 'no idea' (10); they count as abstentions."
    assert message in capsys.readouterr().out
    there = linmax.VoteFusion.load(model)
    assert main(given) == 0
    assert message in capsys.readouterr().out
    here = linmax.VoteFusion.load(model)
    assert there.classes_.tolist() == here.classes_.tolist() == ["0", "1", "2"]
    assert there.abstain == here.abstain == {"no idea"}
    assert main(["predict", model, paths[0]]) == 0
