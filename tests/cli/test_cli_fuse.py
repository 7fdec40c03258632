"""``linmax fuse``: what it prints, writes and refuses."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import linmax
from linmax.cli import main
from linmax.cli.fuse import PROGRESS_ROWS
from linmax.models.vote_table import VoteTable

LEARNER = "AR-winnow(1.1)"


def problem(trials=400):
    data = linmax.datasets.majority_problem(n=7, r=4, k=3, noise=0.05, trials=trials, seed=4)
    votes = np.where(np.random.default_rng(0).random(data.votes.shape) < 0.1, -1, data.votes)
    return votes, data.labels


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f"voter {i}" for i in range(7)), "right"])
        for t, (row, label) in enumerate(zip(*problem(), strict=True)):
            writer.writerow([f"q{t}", *("abc"[v] if v >= 0 else "" for v in row), "abc"[label]])
    return path


def figures(path: Path) -> dict:
    return json.loads(path.read_text())


def test_decision_matches_fusion(votes, tmp_path, capsys):
    arguments = ["fuse", str(votes), "--label", "right", "--ignore", "id", "--learner", LEARNER]
    arguments += ["--test-fraction", "0.25", "--json", str(tmp_path / "out.json")]
    arguments += ["--model", str(tmp_path / "model.linmax"), "--plot", str(tmp_path / "curves.png")]
    assert main(arguments) == 0
    shown, found = capsys.readouterr().out, figures(tmp_path / "out.json")
    table, labels = problem()
    table = np.where(table < 0, None, np.array(list("abc"), dtype=object)[table])
    labels = np.array(list("abc"))[labels]
    fusion = linmax.VoteFusion(LEARNER, classes=list("abc")).fit(table[:300], labels[:300])
    expected = fusion.report(table[300:], labels[300:]).to_dict()
    assert found["trials"] == 300
    assert found["mistakes"] == expected["mistakes"]
    for key in ("accuracy", "test_accuracy"):
        assert found[key] == expected[key]
        assert set(found[key]) >= {"fusion", "plurality", "best_voter", "best_so_far", "best_recent", "logit"}
    assert found["weights"] == {f"voter {name}": weight for name, weight in expected["weights"].items()}
    assert found["seconds"] > 0
    assert found["classes"] == ["a", "b", "c"]
    for text in (
        "400 rows, 7 voters, 3 classes",
        "% of the votes abstain",
        "Held out: 100 trials",
        "plurality",
        "voter 0",
        "█",
    ):
        assert text in shown
    kept = linmax.VoteFusion.load(tmp_path / "model.linmax")
    np.testing.assert_array_equal(kept.predict(table), fusion.predict(table))
    assert kept.voters_ == [f"voter {i}" for i in range(7)]
    assert (tmp_path / "curves.png").read_bytes()[:4] == b"\x89PNG"


def test_the_same_table_in_every_format(votes, tmp_path, capsys):
    rows = list(csv.reader(votes.read_text(encoding="utf-8").splitlines()))
    tsv = tmp_path / "votes.tsv"
    tsv.write_text(
        "\ufeff" + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8"
    )  # as a spreadsheet writes it
    columns = {name: [row[i] or None for row in rows[1:]] for i, name in enumerate(rows[0])}
    parquet.write_table(pyarrow.table(columns), tmp_path / "votes.parquet")
    found = []
    for path in (votes, tsv, tmp_path / "votes.parquet"):
        options = ["--label", "right", "--ignore", "id", "--learner", LEARNER, "--shuffle", "3", "--json", "-"]
        assert main(["fuse", str(path), *options]) == 0
        said = capsys.readouterr()
        assert "shuffled with seed 3" in said.err  # the figures have standard output for themselves
        found.append(json.loads(said.out))
    for one in found:
        for key in ("data", "seconds"):
            one.pop(key)
    assert found[0] == found[1] == found[2]
    assert "test_accuracy" not in found[0]


def test_numbers_stay_numbers_in_parquet(tmp_path, capsys):
    table, labels = problem(60)
    columns = {f"v{i}": [int(v) if v >= 0 else None for v in table[:, i]] for i in range(7)}
    parquet.write_table(pyarrow.table({**columns, "y": labels.astype(int)}), tmp_path / "votes.parquet")
    options = ["--label", "y", "--learner", LEARNER, "--json", "-"]
    assert main(["fuse", str(tmp_path / "votes.parquet"), *options]) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == [0, 1, 2]
    assert main(["fuse", str(tmp_path / "votes.parquet"), *options, "--classes", "2,1,0"]) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == [2, 1, 0]


def test_votes_that_name_no_label(tmp_path, capsys):
    path = tmp_path / "votes.csv"
    path.write_text("v,w,y\n" + "a,?,a\nb,n/a,b\nx,b,b\n" * 5, encoding="utf-8")
    assert main(["fuse", str(path), "--label", "y", "--learner", "winnow(1.2)", "--abstain", "?", "--json", "-"]) == 0
    said = capsys.readouterr()
    assert "10 votes name something that is never a label, 'x' (5), 'n/a' (5); they count as abstentions." in said.err
    assert json.loads(said.out)["voters"]["w"]["voted"] == pytest.approx(1 / 3)
    assert main(["fuse", str(path), "--label", "y", "--classes", "a,b", "--abstain", "?"]) == 2
    assert "voted for" in capsys.readouterr().err


def test_a_terminal_gets_colours_and_no_folded_rows(votes, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["fuse", str(votes), "--label", "right", "--ignore", "id", "--learner", LEARNER]) == 0
    shown = capsys.readouterr().out
    assert "\x1b[36m" in shown
    assert "fusion, AR-winnow(1.1)" in shown


def test_open_answers_from_a_table_to_predictions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, model = tmp_path / "answers.csv", str(tmp_path / "open.linmax")
    rows = [f"{t}.50,{t}.5,{t}.{t % 7},{t}.5" for t in range(60)]
    table.write_text("\n".join(["ann,ben,cas,answer", *rows, "1,1,2,"]) + "\n")
    assert main(["fuse", str(table), "--label", "answer", "--key", "number", "--model", model]) == 0
    assert "open answers" in capsys.readouterr().out
    assert main(["fuse", str(table), "--label", "answer", "--answers", "open"]) == 0
    capsys.readouterr()
    new = tmp_path / "new.csv"
    new.write_text("ann,ben,cas\n9.50,9.5,8\n,,\n")
    assert main(["predict", model, str(new), "--write", "probabilities", "--as", "jsonl", "--sets", "0.9"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["predicted"] in ("9.50", "9.5")
    assert set(first["probabilities"]) == {first["predicted"], "8", "(none of these)"}
    assert sum(first["probabilities"].values()) == pytest.approx(1.0, abs=1e-4)
    assert (second["predicted"], second["probabilities"]) == (None, {"(none of these)": 1.0})
    assert main(["predict", model, str(new), "--write", "probabilities"]) == 2
    assert "open answers" in capsys.readouterr().err
    assert main(["fuse", str(table), "--label", "answer", "--answers", "closed", "--key", "number"]) == 2
    assert "open" in capsys.readouterr().err


def test_a_table_is_converted_once_however_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, rows, calls = tmp_path / "votes.csv", VoteTable.rows, []
    table.write_text("v,w,y\n" + "p,q,p\nq,q,q\n" * (PROGRESS_ROWS + 1))
    monkeypatch.setattr(VoteTable, "rows", lambda self, *places: calls.append(places) or rows(self, *places))
    assert main(["fuse", str(table), "--label", "y", "--answers", "closed", "--learner", "perceptron"]) == 0
    assert calls == [()]


def test_scores_of_open_answers_in_columns_of_voters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, rows, labels = random.Random(0), [], []
    for t in range(150):
        right = rng.randrange(2)
        row: dict[str, Any] = {"ann": f"{2 * t}", "ben": f"{2 * t + 1}"}
        row |= {"sure:ann": 0.9 - 0.8 * right + 0.1 * rng.random(), "sure:ben": 0.1 + 0.8 * right}
        if rng.random() < 0.2:
            del row["sure:ben"]
        rows.append(row)
        labels.append(row["ben" if right else "ann"])
    table, log, model = tmp_path / "answers.csv", tmp_path / "answers.jsonl", str(tmp_path / "open.linmax")
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["ann", "ben", "sure:ann", "sure:ben", "answer"])
        writer.writeheader()
        writer.writerows([row | {"answer": label} for row, label in zip(rows, labels, strict=True)])
    nested = [{"votes": {"ann": row["ann"], "ben": row["ben"]}, "sure": {}} for row in rows]
    for one, row, label in zip(nested, rows, labels, strict=True):
        one["sure"] = {name.partition(":")[2]: value for name, value in row.items() if ":" in name}
        one["answer"] = label
    log.write_text("".join(f"{json.dumps(one)}\n" for one in nested))
    own = linmax.VoteFusion(answers="open").fit(
        [
            {"ann": row["ann"], "ben": row["ben"]}
            | {f"sure:{name}": {row[name]: row.get(f"sure:{name}")} for name in ("ann", "ben")}
            for row in rows
        ],
        labels,
    )
    one = linmax.Learner(answers="open")
    for row, label in zip(rows, labels, strict=True):
        scores = {name: {row[name.partition(":")[2]]: value} for name, value in row.items() if ":" in name}
        one.learn(votes={"ann": row["ann"], "ben": row["ben"]}, scores=scores, label=label)
    question = [{"ann": "7", "ben": "8", "sure:ann": {"7": 0.1}, "sure:ben": {"8": 0.9}}]
    scores = {"sure:ann": {"7": 0.1}, "sure:ben": {"8": 0.9}}
    for path in (table, log):
        assert main(["fuse", str(path), "--label", "answer", "--model", model]) == 0
        shown = capsys.readouterr().out
        assert "2 voters, 2 raters, open answers" in shown
        assert "Scores of the voters' own answers: sure:ann, sure:ben." in shown
        fusion = linmax.VoteFusion.load(model)
        assert (fusion.voters_, fusion.raters_) == (["ann", "ben"], ["sure:ann", "sure:ben"])
        assert fusion.report().online.accuracy["fusion"] > 0.9
        (found,) = fusion.predict_proba(question)
        assert found == pytest.approx(own.predict_proba(question)[0])
        assert found == pytest.approx(one.predict_proba(votes={"ann": "7", "ben": "8"}, scores=scores))
    new = tmp_path / "new.csv"
    new.write_text("ann,ben,sure:ann,sure:ben\n7,8,0.1,0.9\n7,8,,\n7,8,0.9,0.1\n")
    assert main(["predict", model, str(new)]) == 0
    assert capsys.readouterr().out.splitlines()[::2] == ["8", "7"]
    new.write_text("ann,ben\n7,8\n")
    assert main(["predict", model, str(new)]) == 0
    assert "no scores of sure:ann, sure:ben, which count as 0" in capsys.readouterr().err
    assert main(["fuse", str(table), "--label", "answer", "--start", model, "--model", model]) == 0
    assert "new" not in capsys.readouterr().out.lower()
    assert main(["fuse", str(table), "--label", "answer", "--ask", "50"]) == 2
    assert "remove --ask" in capsys.readouterr().err


def test_confidences_of_a_log_accompany_open_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, path, model = random.Random(0), tmp_path / "log.csv", str(tmp_path / "open.linmax")
    lines = ["task,model,response,confidence,truth"]
    for t in range(100):
        right = rng.randrange(2)
        for place, name in enumerate(("ann", "ben")):
            lines.append(f"task {t},{name},{2 * t + place},{0.9 if right == place else 0.2},{2 * t + right}")
    path.write_text("\n".join(lines) + "\n")
    assert main(["fuse", str(path), "--answers", "open", "--scores", "--model", model]) == 0
    assert "2 voters, 2 raters, open answers" in capsys.readouterr().out
    fusion = linmax.VoteFusion.load(model)
    assert fusion.raters_ == ["confidence:ann", "confidence:ben"]
    assert fusion.report().online.accuracy["fusion"] > 0.85
    assert main(["predict", model, str(path)]) == 0
    found = capsys.readouterr().out.splitlines()
    assert sum(answer.split()[0] == line.split(",")[-1] for answer, line in zip(found, lines[1::2], strict=True)) > 95
    assert main(["fuse", str(path), "--answers", "open"]) == 0
    assert "raters" not in capsys.readouterr().out
    path.write_text("\n".join(",".join(line.split(",")[:3] + line.split(",")[4:]) for line in lines) + "\n")
    assert main(["fuse", str(path), "--answers", "open", "--scores"]) == 2
    assert "remove --scores" in capsys.readouterr().err
