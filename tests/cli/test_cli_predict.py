"""``linmax predict`` reads as the model was taught, with labels or without, and writes in every form."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path

import pytest

from linmax.cli import main

DRAW = random.Random(3)
ROWS = [(c := DRAW.choice("pq"), 2.0 * (c == "p") + DRAW.random(), f"{'red' if c == 'p' else 'green'} w{i % 5}", i)
        for i in range(60)]  # fmt: skip


def table(delimiter: str = ",", header: bool = True, label: bool = True) -> str:
    """The rows as a table, the label last."""
    lines = [["id", "n", "t", "kind"]] if header else []
    lines += [[f"u{i}", f"{n:.3f}", t, c] for c, n, t, i in ROWS]
    return "".join(delimiter.join(line if label else line[:-1]) + "\n" for line in lines)


# name, options of learn, the data with labels, and without
CASES = {
    "text": ("a.tsv", ["--ngrams", "2"], "".join(f"{c}\t{t} x{i}\n" for c, _, t, i in ROWS),
             "".join(f"{t} x{i}\n" for _, _, t, i in ROWS)),
    "csv": ("a.csv", ["--ignore", "id", "--text", "t"], table(), table(label=False)),
    "semicolon": ("a.csv", ["--ignore", "id", "--text", "t"], table(";"), table(";", label=False)),
    "no header": ("a.csv", ["--no-header", "--ignore", "1", "--text", "3"], table(header=False),
                  table(header=False, label=False)),
    "other order": ("a.csv", ["--ignore", "id", "--text", "t"], table(),
                    "t,id,n\n" + "".join(f"{t},u{i},{n:.3f}\n" for _, n, t, i in ROWS)),
    "svmlight": ("a.svm", [], "".join(f"{'pq'.index(c)} {1 + (c == 'p')}:1 7:{n:.3f}\n" for c, n, _, _ in ROWS),
                 "".join(f"{1 + (c == 'p')}:1 7:{n:.3f}\n" for c, n, _, _ in ROWS)),
    "vw": ("a.vw", [], "".join(f"{c} |f {t} n:{n:.3f}\n" for c, n, t, _ in ROWS),
           "".join(f"|f {t} n:{n:.3f}\n" for _, n, t, _ in ROWS)),
    "json": ("a.jsonl", ["--label", "kind", "--text", "t", "--ignore", "id"],
             "".join(json.dumps({"id": i, "kind": c, "n": n, "t": t}) + "\n" for c, n, t, i in ROWS),
             "".join(json.dumps({"id": i, "n": n, "t": t}) + "\n" for _, n, t, i in ROWS)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_predict_remembers(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name, options, labelled, plain = CASES[case]
    Path(name).write_text(labelled)
    unnamed = "new.txt" if case in ("text", "svmlight", "vw") else f"new{Path(name).suffix}"
    Path(unnamed).write_text(plain)
    assert main(["learn", name, *options, "--model", "m", "--learner", "perceptron", "--passes", "5", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["predict", "m", name, "--json", "figures"]) == 0
    with_labels = capsys.readouterr()
    figures = json.loads(Path("figures").read_text())
    assert figures["labelled"] == figures["lines"] == 60
    assert figures["error"] <= 0.05
    assert f"error {figures['error']:.4f}, {figures['mistakes']} mistakes in 60 labels" in with_labels.err
    assert main(["predict", "m", unnamed]) == 0
    assert capsys.readouterr() == (with_labels.out, "")


def test_other_settings_than_those_learned_with_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.tsv").write_text(CASES["text"][2])
    assert main(["learn", "a.tsv", "--model", "m", "--learner", "perceptron", "--quiet"]) == 0
    assert main(["predict", "m", "a.tsv", "--ngrams", "2"]) == 2
    assert "ngrams is 2, but the model was learned with 1" in capsys.readouterr().err


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(table())
    options = ["--ignore", "id", "--text", "t", "--learner", "perceptron", "--quiet"]
    assert main(["learn", "a.csv", *options, "--model", "m"]) == 0
    capsys.readouterr()
    return tmp_path


def test_forms(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predict = ["predict", "m", "a.csv", "--id", "id"]
    assert main(predict) == 0
    plain = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [tag for _, tag in plain] == [f"u{i}" for i in range(60)]
    assert main([*predict, "--top", "1", "--as", "jsonl"]) == 0
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["predicted"], one["id"]) for one in objects] == [(name, tag) for name, tag in plain]
    assert all(list(one["probabilities"]) == [one["predicted"]] for one in objects)
    assert main([*predict, "--top", "2"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(rows[0]) == ["line", "id", "predicted", "class_1", "probability_1", "class_2", "probability_2"]
    assert all(row["class_1"] == row["predicted"] != row["class_2"] for row in rows)
    assert all(float(row["probability_1"]) >= float(row["probability_2"]) for row in rows)
    assert main([*predict, "--write", "scores"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "line,id,predicted,p,q"


COLUMN_CELLS = {"id": [f"u{i}" for *_, i in ROWS], "n": [f"{n:.3f}" for _, n, _, _ in ROWS],
                "t": [t for _, _, t, _ in ROWS], "kind": [c for c, *_ in ROWS]}  # fmt: skip


@pytest.mark.parametrize("column", COLUMN_CELLS)
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_id_returns_any_column_and_leaves_predictions_as_they_are(
    kind: str, column: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(COLUMN_CELLS), "a.parquet")
    else:
        rows = [dict(zip(COLUMN_CELLS, row, strict=True)) for row in zip(*COLUMN_CELLS.values(), strict=True)]
        lines = table() if kind == "csv" else "".join(json.dumps(row) + "\n" for row in rows)
        Path(f"a.{kind}").write_text(lines)
    data = f"a.{kind}"
    assert main(["learn", data, "--label", "kind", "--text", "t", "--learner", "perceptron", "--model", "m"]) == 0
    capsys.readouterr()
    assert main(["predict", "m", data, "--write", "scores", "--as", "jsonl"]) == 0
    before, error = capsys.readouterr()
    assert main(["predict", "m", data, "--write", "scores", "--as", "jsonl", "--id", column]) == 0
    after, error_after = capsys.readouterr()
    found = [json.loads(line) for line in after.splitlines()]
    assert [row.pop(column) for row in found] == COLUMN_CELLS[column]
    assert found == [json.loads(line) for line in before.splitlines()]
    assert error == error_after


def test_no_answer_where_it_would_be_too_risky(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "m", "a.csv", "--write", "probabilities"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    risks = sorted(1.0 - max(float(row["p"]), float(row["q"])) for row in rows)
    limit = 0.5 * (risks[0] + risks[-1])
    assert main(["predict", "m", "a.csv", "--reject", repr(limit)]) == 0
    shown = capsys.readouterr()
    expected = [row["predicted"] if max(float(row["p"]), float(row["q"])) >= 1.0 - limit else "" for row in rows]
    assert shown.out.splitlines() == expected
    assert f"{expected.count('')} of 60 lines not answered" in shown.err
    assert main(["predict", "m", "a.csv", "--sets", "0.9"]) == 2
    assert "--sets requires" in capsys.readouterr().err


def test_parquet(model: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert main(["predict", "m", "a.csv", "--id", "id", "--top", "2", "--as", "parquet", "--out", "p.parquet"]) == 0
    table = parquet.read_table("p.parquet").to_pydict()
    assert list(table) == ["line", "id", "predicted", "class_1", "probability_1", "class_2", "probability_2"]
    assert table["line"][:2] == [2, 3]
    assert table["class_1"] == table["predicted"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "a.csv"], "a.csv is read and cannot be written as well"),
        (["--out", "p", "--json", "./p"], "cannot hold two outputs"),
        (["--out", "none/p"], "no folder none"),
        (["--id", "nobody"], "no column 'nobody'"),
        (["--id", "line", "--as", "csv"], "the output has a column 'line' of its own; rename"),
    ],
)
def test_refused(arguments: list[str], said: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("a.csv").read_text()
    assert main(["predict", "m", "a.csv", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert Path("a.csv").read_text() == before
