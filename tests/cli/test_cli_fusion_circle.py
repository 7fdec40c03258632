"""From votes to a fusion, on with more votes, and predictions: the whole circle on the command line."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

import linmax
from linmax.cli import main

LEARNER = "AR-winnow(1.1)"
NAMES = [f"voter {i}" for i in range(7)]


def problem(trials: int = 400) -> tuple[list[list[str]], list[str]]:
    data = linmax.datasets.majority_problem(n=7, r=4, k=3, noise=0.05, trials=trials, seed=4)
    return [["abc"[vote] for vote in row] for row in data.votes.tolist()], ["abc"[label] for label in data.labels]


def write(path: Path, rows: list[list[str]], labels: list[str]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *NAMES, "right"])
        writer.writerows([[f"q{t}", *row, label] for t, (row, label) in enumerate(zip(rows, labels, strict=True))])
    return str(path)


def columns(rows: list[list[str]]) -> dict[str, list[str]]:
    return {name: [row[i] for row in rows] for i, name in enumerate(NAMES)}


def fuse(*arguments: str) -> None:
    assert main(["fuse", *arguments, "--label", "right", "--ignore", "id"]) == 0


def test_resumed_fusion_equals_one_fit(tmp_path, capsys) -> None:
    rows, labels = problem()
    first, more, whole = (str(tmp_path / name) for name in ("first.linmax", "more.linmax", "whole.linmax"))
    halves = (
        write(tmp_path / "one.csv", rows[:250], labels[:250]),
        write(tmp_path / "two.csv", rows[250:], labels[250:]),
    )
    fuse(halves[0], "--learner", LEARNER, "--model", first)
    fuse(halves[1], "--start", first, "--model", more)
    assert "2 classes" not in capsys.readouterr().out
    fuse(write(tmp_path / "all.csv", rows, labels), "--learner", LEARNER, "--model", whole)
    capsys.readouterr()
    one, other = linmax.VoteFusion.load(more), linmax.VoteFusion.load(whole)
    assert one.report().to_dict() == other.report().to_dict()
    assert main(["predict", more, halves[1]]) == 0
    assert capsys.readouterr().out.split() == one.predict(columns(rows[250:])).tolist()
    out = tmp_path / "out.csv"
    assert main(["predict", more, halves[1], "--write", "probabilities", "--digits", "0", "--id", "id", "--label", "right",
                 "--out", str(out)]) == 0  # fmt: skip
    assert "mistakes in 150 labels" in capsys.readouterr().err
    found = list(csv.DictReader(io.StringIO(out.read_text())))
    expected = one.predict_proba(columns(rows[250:]))
    assert (found[0]["line"], found[0]["id"]) == ("2", "q0")
    np.testing.assert_allclose([[float(row[name]) for name in "abc"] for row in found], expected)
    for column in (one.voters_[0], "right"):  # a voter stays a voter, labels stay labels
        assert main(["predict", more, halves[1], "--write", "probabilities", "--digits", "0", "--id", column, "--label", "right",
                     "--out", str(out)]) == 0  # fmt: skip
        assert "mistakes in 150 labels" in capsys.readouterr().err
        again = list(csv.DictReader(io.StringIO(out.read_text())))
        assert all(row[column] for row in again)
        assert [[row[name] for name in "abc"] for row in again] == [[row[name] for name in "abc"] for row in found]


def test_rows_without_a_label_are_predicted_in_place(tmp_path, capsys) -> None:
    rows, labels = problem(120)
    open_rows = [t for t in range(120) if t % 4 == 0]
    told = ["" if t in open_rows else label for t, label in enumerate(labels)]
    table = write(tmp_path / "votes.csv", rows, told)
    fuse(table, "--learner", LEARNER)
    assert "30 rows without a label; --predictions FILE predicts them." in capsys.readouterr().out
    fusion = linmax.VoteFusion(LEARNER, classes=list("abc"))
    kept = [t for t in range(120) if t not in open_rows]
    fusion.partial_fit([rows[t] for t in kept], [labels[t] for t in kept])
    expected = fusion.predict([rows[t] for t in open_rows]).tolist()
    for ending in ("csv", "jsonl", "parquet"):
        path = tmp_path / f"open.{ending}"
        fuse(table, "--learner", LEARNER, "--predictions", str(path))
        assert "30 predictions saved" in capsys.readouterr().out
        found: list[dict[str, Any]]
        if ending == "csv":
            found = list(csv.DictReader(io.StringIO(path.read_text())))
        elif ending == "jsonl":
            found = [json.loads(line) for line in path.read_text().splitlines()]
        else:
            found = parquet.read_table(path).to_pylist()
        assert [row["predicted"] for row in found] == expected
        assert [int(row["line"]) for row in found] == [t + 2 for t in open_rows]


def test_unlabeled_table_is_learned_by_agreement(tmp_path, capsys) -> None:
    random = np.random.default_rng(3)
    truth = random.integers(0, 3, 200)
    right = random.random((200, 7)) < [0.9, 0.9, 0.9, 0.4, 0.4, 0.4, 0.4]
    codes = np.where(right, truth[:, None], random.integers(0, 3, (200, 7)))
    rows, labels = [["abc"[vote] for vote in row] for row in codes], ["abc"[label] for label in truth]
    empty = write(tmp_path / "none.csv", rows, [""] * 200)
    model, out, page = (str(tmp_path / name) for name in ("fusion.linmax", "open.csv", "page.html"))
    fuse(empty, "--model", model, "--predictions", out, "--html", page)
    shown = capsys.readouterr().out
    assert "No row has a label (column 'right' is empty)" in shown
    assert "No label yet" in shown
    assert "has not seen a label yet" in Path(page).read_text(encoding="utf-8")
    expected = linmax.VoteFusion().fit(columns(rows))
    found = list(csv.DictReader(io.StringIO(Path(out).read_text())))
    assert [row["predicted"] for row in found] == expected.predict(columns(rows)).tolist()
    assert main(["fuse", empty, "--label", "right", "--ignore", "id", "--test-fraction", "0.5"]) == 2
    assert "--test-fraction must leave rows" in capsys.readouterr().err
    more = write(tmp_path / "more.csv", rows, ["d", *labels[1:]])  # a class that nobody has named yet
    fuse(more, "--start", model, "--model", model)
    expected.partial_fit(columns(rows), ["d", *labels[1:]])
    assert linmax.VoteFusion.load(model).report().to_dict() == expected.report().to_dict()
    plain = tmp_path / "plain.csv"
    plain.write_text("anna,ben,label\nx,x,x\ny,x,y\n")
    assert main(["fuse", str(plain), "--learner", LEARNER]) == 0  # the usual name of the label
    assert "2 rows, 2 voters, 2 classes" in capsys.readouterr().out


def test_predict_gives_no_answer_at_a_risk_and_adds_sets(tmp_path, capsys) -> None:
    rows, labels = problem(300)
    table, model = write(tmp_path / "votes.csv", rows, labels), str(tmp_path / "fusion.linmax")
    fuse(table, "--learner", LEARNER, "--model", model)
    capsys.readouterr()
    fusion, voted = linmax.VoteFusion.load(model), columns(rows)
    sure, sets = fusion.predict(voted, reject=0.2).tolist(), fusion.predict_set(voted, 0.95)
    assert None in sure
    assert any(len(found) > 1 for found in sets)
    for form in ("csv", "jsonl", "parquet"):
        out, figures = tmp_path / f"out.{form}", tmp_path / "figures.json"
        options = ["--reject", "0.2", "--sets", "0.95", "--as", form, "--out", str(out), "--label", "right"]
        assert main(["predict", model, table, *options, "--json", str(figures)]) == 0
        assert f"{sure.count(None)} of 300 lines not answered" in capsys.readouterr().err
        counts = json.loads(figures.read_text())
        assert counts["labelled"] == 300 - sure.count(None) == counts["lines"] - counts["unanswered"]
        if form == "csv":
            found = [row | {"set": json.loads(row["set"])} for row in csv.DictReader(io.StringIO(out.read_text()))]
        elif form == "jsonl":
            found = [json.loads(line) for line in out.read_text().splitlines()]
        else:
            found = parquet.read_table(out).to_pylist()
        assert [row["predicted"] or None for row in found] == sure
        assert [tuple(row["set"]) for row in found] == sets
    assert main(["predict", model, table, "--reject", "0.2"]) == 0
    assert [line or None for line in capsys.readouterr().out.splitlines()] == sure
    for options, told in (
        (["--reject", "1.5"], "--reject must lie between 0 and 1"),
        (["--sets", "0.9", "--as", "plain"], "sets are several classes per line"),
    ):
        assert main(["predict", model, table, *options]) == 2
        assert told in capsys.readouterr().err


def test_scores_from_columns_and_objects_and_pipes(tmp_path, capsys, monkeypatch) -> None:
    random = np.random.default_rng(1)
    y = random.integers(0, 3, 200)
    scores = random.normal(size=(200, 2, 3)) * [[[1.0], [100.0]]]
    scores[np.arange(200), 0, y] += 1.0
    scores[np.arange(200), 1, y] += 150.0
    table, lines = tmp_path / "scores.csv", tmp_path / "scores.jsonl"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([f"{rater}:{c}" for rater in ("big", "small") for c in range(3)] + ["right"])
        writer.writerows([[*row.ravel().tolist(), label] for row, label in zip(scores, y, strict=True)])
    lines.write_text("".join(
        json.dumps({"big": dict(zip("012", row[0], strict=True)), "small": dict(zip("012", row[1], strict=True)),
                    "right": str(label)}) + "\n"
        for row, label in zip(scores.tolist(), y.tolist(), strict=True)
    ))  # fmt: skip
    expected = linmax.VoteFusion(LEARNER, classes=["0", "1", "2"]).partial_fit(
        {"big": scores[:, 0], "small": scores[:, 1]}, y.astype(str)
    )
    for path in (table, lines):
        packed = tmp_path / f"{path.name}.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        for source in (str(path), str(packed), "-"):
            if source == "-":
                monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(packed.read_bytes())))
            model, figures = str(tmp_path / "model.linmax"), tmp_path / "figures.json"
            assert main(["fuse", source, "--label", "right", "--learner", LEARNER, "--model", model, "--json",
                         str(figures)]) == 0  # fmt: skip
            assert "200 rows, 2 raters, 3 classes" in capsys.readouterr().out
            assert json.loads(figures.read_text())["weights"] == pytest.approx(expected.weights())
        assert main(["predict", model, str(path)]) == 0
        found = capsys.readouterr().out.split()
        assert found == expected.predict({"big": scores[:, 0], "small": scores[:, 1]}).tolist()
    table.write_text("a:x,a:y,right\n0.1,0.9,x\n0.2,,y\n")
    assert main(["fuse", str(table), "--label", "right"]) == 2
    assert "row 2: column 'a:y' is empty, and others of 'a' are not" in capsys.readouterr().err
    table.write_text("a:x,a:y,right\n0.1,0.9,x\n0.2,much,y\n")
    assert main(["fuse", str(table), "--label", "right"]) == 2
    assert "row 2: the score in column 'a:y' is 'much', which is not a number" in capsys.readouterr().err


def test_show_prints_members_calibration_and_weights(tmp_path, capsys) -> None:
    rows, labels = problem(150)
    model, figures = str(tmp_path / "fusion.linmax"), tmp_path / "figures.json"
    fuse(write(tmp_path / "votes.csv", rows, labels), "--model", model)
    capsys.readouterr()
    assert main(["show", model, "--json", str(figures)]) == 0
    shown, found = capsys.readouterr().out, json.loads(figures.read_text())
    for text in (
        "learner: auto",
        "trials: 150",
        "classes: a, b, c",
        "logit of about 1,000 trials",
        "guess rate",
        "voter 3",
        "weight",
    ):
        assert text in shown
    assert "engine" not in shown
    assert sum(found["members"].values()) == pytest.approx(1.0)
    assert set(found["weights"]) == set(NAMES)


def test_what_the_circle_refuses_and_remarks(tmp_path, capsys) -> None:
    rows, labels = problem(60)
    table, model = write(tmp_path / "votes.csv", rows, labels), str(tmp_path / "fusion.linmax")
    fuse(table, "--learner", LEARNER, "--model", model)
    for option, value in (("--learner", "perceptron"), ("--classes", "a,b"), ("--by", "id")):
        assert main(["fuse", table, "--label", "right", "--start", model, option, value]) == 2
        assert f"{option} is that of" in capsys.readouterr().err
    (tmp_path / "other.csv").write_text("x,y\n1,2\n")
    assert main(["predict", model, str(tmp_path / "other.csv")]) == 2
    assert "has no column of a voter of the fusion, such as 'voter 0'; it has x, y" in capsys.readouterr().err
    (tmp_path / "few.csv").write_text("voter 0,voter 1\na,a\n")
    assert main(["predict", model, str(tmp_path / "few.csv")]) == 0
    assert "5 of 7 voters are absent, and abstain: voter 2, " in capsys.readouterr().err
    (tmp_path / "gaps.csv").write_text("a,b,right\n" + "1.0,2,1\n2.0,2,2\n" * 10 + "1.0,3,1\n")
    assert main(["fuse", str(tmp_path / "gaps.csv"), "--label", "right", "--learner", LEARNER]) == 0
    shown = capsys.readouterr().out
    assert "a: '1.0' is taken for the label '1'." in shown
    assert "1 vote names something that is never a label, '3' (1); it counts as an abstention." in shown
    (tmp_path / "one.csv").write_text("a,right\nx,x\n")
    assert main(["fuse", str(tmp_path / "one.csv"), "--label", "right", "--learner", LEARNER]) == 0
    assert "one.csv: 1 row, 1 voter, 1 class;" in capsys.readouterr().out


def test_voters_and_classes_may_join_with_a_later_table(tmp_path, capsys) -> None:
    first, second = tmp_path / "one.csv", tmp_path / "two.csv"
    first.write_text("ann,bob,label\n" + "cat,dog,cat\ndog,dog,dog\n" * 5)
    second.write_text("zed,ann,label\n" + "owl,owl,owl\ndog,cat,dog\n" * 5)
    model = str(tmp_path / "fusion.linmax")
    assert main(["fuse", str(first), "--learner", LEARNER, "--model", model]) == 0
    capsys.readouterr()
    assert main(["fuse", str(second), "--start", model, "--model", model]) == 0
    shown = capsys.readouterr().out
    assert "Voters new, and trusted like an average one at first: zed." in shown
    assert "Voters absent, and abstain: bob." in shown
    found = linmax.VoteFusion.load(model)
    one = linmax.VoteFusion(LEARNER).fit({"ann": ["cat", "dog"] * 5, "bob": ["dog"] * 10}, ["cat", "dog"] * 5)
    one.partial_fit({"zed": ["owl", "dog"] * 5, "ann": ["owl", "cat"] * 5}, ["owl", "dog"] * 5)
    assert found.report().to_dict() == one.report().to_dict()
    assert found.classes_.tolist() == ["cat", "dog", "owl"]
    second.write_text("ann,bob,zed\nfox,fox,fox\n")
    assert main(["predict", model, str(second)]) == 0
    assert capsys.readouterr().out.split() == ["fox"]  # a class that a vote names, as VoteFusion.predict has it


def test_resumed_scores_follow_class_order(tmp_path, capsys) -> None:
    random = np.random.default_rng(2)
    labels, scores = random.integers(0, 2, 60), random.random((60, 2))
    scores[np.arange(60), labels] += 0.5
    text = ["cat", "dog"]
    rows = [f"{cat},{dog},{text[y]}" for (cat, dog), y in zip(scores.tolist(), labels, strict=True)]
    turned = [f"{dog},{cat},{text[y]}" for (cat, dog), y in zip(scores.tolist(), labels, strict=True)]
    whole, head, tail = (tmp_path / name for name in ("whole.csv", "head.csv", "tail.csv"))
    whole.write_text("\n".join(["r:cat,r:dog,label", *rows]))
    head.write_text("\n".join(["r:cat,r:dog,label", *rows[:30]]))
    tail.write_text("\n".join(["r:dog,r:cat,label", *turned[30:]]))
    models = [str(tmp_path / name) for name in ("whole.linmax", "parts.linmax")]
    assert main(["fuse", str(whole), "--learner", LEARNER, "--model", models[0]]) == 0
    assert main(["fuse", str(head), "--learner", LEARNER, "--model", models[1]]) == 0
    assert main(["fuse", str(tail), "--start", models[1], "--model", models[1]]) == 0
    one, other = (linmax.VoteFusion.load(model).report().to_dict() for model in models)
    assert one == other
    capsys.readouterr()
    tail.write_text("r:dog,label\n0.5,dog\n")
    assert main(["fuse", str(tail), "--start", models[1]]) == 2
    assert (
        main(["fuse", str(write(tmp_path / "votes.csv", *problem(30))), "--label", "right", "--start", models[1]]) == 2
    )
    assert "votes.csv has no columns rater:class, such as r:cat" in capsys.readouterr().err


def test_ids_are_no_voters_and_options_that_contradict_are_refused(tmp_path, capsys) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(["id,v,w,label", *[f"{t},{t % 3},{(t + t % 5) % 3},{t % 3}" for t in range(40)]]))
    assert main(["fuse", str(path), "--learner", LEARNER]) == 0
    assert "Column 'id' differs in each row: it names the rows, and is no voter." in capsys.readouterr().out
    for option, told in (
        (["--wrong", "label"], "--wrong label is the column of labels; name the one that says true or false"),
        (["--costs", "costs.json"], "--costs requires --ask or --html; add --ask ROWS or --html FILE"),
        (["--tolerance", "0.1"], "--tolerance requires --ask"),
        (["--ask", "40"], "--ask must be 2 or more and leave rows to ask about one by one, got 40 of 40 rows"),
        (["--ask", "10", "--tolerance", "-1"], "--tolerance must be between 0 and 1"),
    ):
        assert main(["fuse", str(path), "--ignore", "id", *option]) == 2
        shown = capsys.readouterr()
        assert told in shown.err
        assert not shown.out  # before anything is learned
    for costs, told in (
        ({"v": 1}, "costs must have a number for every voter; 'w' has none"),
        ({"v": 1, "w": -2}, "costs of 'w' must be >= 0, got -2"),
        ([1], "an object {voter: number} is required, got [1]"),
    ):
        (tmp_path / "costs.json").write_text(json.dumps(costs))
        asked = ["--ask", "10", "--costs", str(tmp_path / "costs.json")]
        assert main(["fuse", str(path), "--ignore", "id", *asked]) == 2
        shown = capsys.readouterr()
        assert f"costs.json: {told}" in shown.err or f"costs.json: costs: {told}" in shown.err
        assert not shown.out


def test_wrong_rows_are_reported_separately(tmp_path, capsys) -> None:
    rows, labels = problem(40)
    path = tmp_path / "votes.csv"
    marked = [f"{','.join(row)},{label},{t % 4 == 1}" for t, (row, label) in enumerate(zip(rows, labels, strict=True))]
    path.write_text("\n".join([",".join([*NAMES, "label", "bad"]), *marked]))
    assert main(["fuse", str(path), "--learner", LEARNER, "--wrong", "bad"]) == 0
    assert (
        "10 rows with a label that is wrong: of them, figures count the classes drawn instead."
        in capsys.readouterr().out
    )


def test_answers_in_an_object_of_their_own_are_votes(tmp_path, capsys) -> None:
    rows, labels = problem(60)
    said = [
        {name: None if t % 7 == 3 else vote for name, vote in zip(NAMES, row, strict=True)}
        for t, row in enumerate(rows)
    ]
    flat, nested, new = (tmp_path / name for name in ("flat.jsonl", "nested.jsonl", "new.jsonl"))
    pairs = list(zip(said, labels, strict=True))
    flat.write_text("".join(json.dumps(row | {"right": label}) + "\n" for row, label in pairs))
    nested.write_text("".join(json.dumps({"answers": row, "right": label}) + "\n" for row, label in pairs))
    new.write_text("".join(json.dumps({"answers": row}) + "\n" for row, _ in pairs))
    found = []
    for path in (flat, nested):
        model = str(tmp_path / "fusion.linmax")
        assert main(["fuse", str(path), "--label", "right", "--learner", LEARNER, "--model", model]) == 0
        fusion = linmax.VoteFusion.load(model)
        found.append((fusion.voters_, fusion.report().to_dict()))
    assert found[0] == found[1]
    capsys.readouterr()
    assert main(["predict", model, str(new)]) == 0
    votes = {name: [row[name] for row in said] for name in NAMES}
    assert capsys.readouterr().out.split() == fusion.predict(votes).tolist()
    nested.write_text('{"answers": {"ann": "x"}, "ann": "y", "right": "x"}\n')
    assert main(["fuse", str(nested), "--label", "right"]) == 2
    assert (
        "'ann' is in the object of 'answers' and outside of it; remove one, for instance with --ignore answers"
        in capsys.readouterr().err
    )


def test_abstentions_are_the_same_in_predict(tmp_path, capsys) -> None:
    lines = [f"{t % 3},{-1 if t % 4 == 1 else (t + t % 5) % 3},{t % 3}" for t in range(40)]
    path, model = tmp_path / "votes.csv", str(tmp_path / "fusion.linmax")
    path.write_text("\n".join(["v,w,label", *lines]))
    assert main(["fuse", str(path), "--learner", LEARNER, "--model", model]) == 0
    assert (
        "10 votes name something that is never a label, '-1' (10); they count as abstentions."
        in capsys.readouterr().out
    )
    assert main(["predict", model, str(path)]) == 0
    shown = capsys.readouterr()
    told = "votes.csv: 10 votes name something that is no class of the fusion, '-1' (10); they count as abstentions."
    assert told in shown.err
    path.write_text("\n".join(["v,w,label", *[line.replace("-1", "") for line in lines]]))
    assert main(["predict", model, str(path)]) == 0
    assert capsys.readouterr().out == shown.out


def log(path: Path, rows: list[list[str]], labels: list[str], broken: str = "") -> str:
    """Rows as JSON lines, after every seventh a line that cannot be read."""
    lines = []
    for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
        answers = dict(zip(NAMES, row, strict=True))
        lines.append(json.dumps({"id": t, "answers": answers, "tools": ["x"], "ms": {"ann": 3.5}, "right": label}))
        lines += [broken] if broken and t % 7 == 6 else []
    path.write_text("\n".join(lines))
    return str(path)


def test_a_log_with_broken_lines_gives_what_the_others_give(tmp_path, capsys) -> None:
    rows, labels = problem(120)
    good, bad = log(tmp_path / "good.jsonl", rows, labels), log(tmp_path / "bad.jsonl", rows, labels, '{"id": ')
    options = ["--label", "right", "--ignore", "id,tools,ms", "--learner", LEARNER]
    models = [str(tmp_path / name) for name in ("good.linmax", "bad.linmax", "shards.linmax")]
    assert main(["fuse", good, *options, "--model", models[0]]) == 0
    assert main(["fuse", bad, *options, "--model", models[1], "--json", str(tmp_path / "bad.json")]) == 2
    shown = capsys.readouterr()
    assert "17 lines could not be read (not JSON: 17), the first of them:" in shown.out
    assert f"{tmp_path / 'bad.jsonl'}, line 8: not JSON" in shown.out
    assert "17 of 137 lines could not be read, more than --max-refused 0.01 allows" in shown.err
    assert json.loads((tmp_path / "bad.json").read_text())["refused"] == 17
    assert Path(models[0]).read_bytes() == Path(models[1]).read_bytes()
    assert main(["fuse", bad, *options, "--max-refused", "0.2"]) == 0
    assert main(["fuse", bad, *options, "--strict"]) == 2
    assert "bad.jsonl, line 8: not JSON" in capsys.readouterr().err
    assert main(["predict", models[0], bad, "--id", "id", "--as", "jsonl", "--max-refused", "0.2"]) == 0
    shown = capsys.readouterr()
    answers = [json.loads(line) for line in shown.out.splitlines()]
    assert [one["line"] for one in answers] == [1 + t + t // 7 for t in range(120)]
    assert [one["predicted"] for one in answers] == linmax.VoteFusion.load(models[0]).predict(columns(rows)).tolist()
    assert "17 lines could not be read" in shown.err
    assert main(["predict", models[0], bad, "--strict"]) == 2


def test_answers_that_are_whole_numbers_in_an_object_are_votes(tmp_path, capsys) -> None:
    rows, labels = problem(100)
    numbers = [["abc".index(vote) for vote in row] for row in rows]
    path = tmp_path / "votes.jsonl"
    pairs = zip(numbers, labels, strict=True)
    lines = [{"answers": dict(zip("tuvwxyz", row, strict=True)), "right": "abc".index(label)} for row, label in pairs]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    model = str(tmp_path / "fusion.linmax")
    assert main(["fuse", str(path), "--label", "right", "--learner", LEARNER, "--model", model]) == 0
    assert "7 voters, 3 classes" in capsys.readouterr().out
    fusion = linmax.VoteFusion(LEARNER, classes=[0, 1, 2]).fit(numbers, ["abc".index(label) for label in labels])
    assert linmax.VoteFusion.load(model).report().to_dict()["mistakes"] == fusion.report().to_dict()["mistakes"]


def test_unknown_votes_abstain_and_near_misses_are_reported(tmp_path, capsys) -> None:
    rows, labels = problem()
    for t in range(0, 400, 10):  # many refuse at once
        rows[t] = ["N/A"] * 5 + ["B.", "c"]
    said, model, out = write(tmp_path / "votes.csv", rows, labels[:300] + [""] * 100), "m.linmax", tmp_path / "out.csv"
    fuse(said, "--model", str(tmp_path / model), "--predictions", str(out))
    near = "40 of these are a class but for case or punctuation, such as 'B.' for 'b'; written like the labels, they"
    assert near in capsys.readouterr().out
    assert main(["predict", str(tmp_path / model), said, "--write", "probabilities"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[301:] == out.read_text().splitlines()[1:]
    assert "votes.csv: 240 votes name something that is no class of the fusion, 'N/A' (200), 'B.' (40)" in shown.err
    fusion = linmax.VoteFusion.load(tmp_path / model)
    assert fusion.abstain == {"N/A", "B."}
    assert fusion.predict(columns(rows[300:])).tolist() == [line.split(",")[1] for line in shown.out.splitlines()[301:]]
    more = write(tmp_path / "more.csv", [["B.", *row[1:]] for row in rows], ["B."] * 200 + labels[200:])
    fuse(more, "--start", str(tmp_path / model), "--model", str(tmp_path / model))
    assert linmax.VoteFusion.load(tmp_path / model).abstain == {"N/A"}
    new = write(tmp_path / "new.csv", [["fox"] * 7], [""])
    capsys.readouterr()
    assert main(["predict", str(tmp_path / model), new]) == 0
    shown = capsys.readouterr()
    assert shown.out.split() == ["fox"]
    assert "1 row answered with a class that the fusion had never met: 'fox' (1); if it means" in shown.err
