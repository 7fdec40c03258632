"""Logs of answers and long tables: each format gives the table that a jury has."""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import linmax
from linmax.cli import main

# Two models answer four questions; the second abstains once.
LABELS = ["A", "B", "C", "A"]
ANSWERS = {"model-1": ["A", "B", "B", "A"], "model-2": ["A", None, "C", "B"]}
COSTS = {"model-1": 0.002, "model-2": 0.01}


def inspect_log(model: str) -> dict[str, Any]:
    samples = [
        {
            "id": f"q{row}",
            "epoch": 1,
            "input": "?",
            "choices": ["one", "two", "three"],
            "target": LABELS[row],
            "output": {"model": model, "completion": f"ANSWER: {vote}"},
            "scores": {"choice": {"value": "C" if vote == LABELS[row] else "I", "answer": vote or ""}},
            "metadata": {"subject": "law" if row % 2 else "art"},
            "model_usage": {
                model: {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11, "total_cost": COSTS[model]}
            },
            "total_time": 1.5,
            "error": None if vote is not None else {"message": "refused"},
        }
        for row, vote in enumerate(ANSWERS[model])
    ]
    return {"version": 2, "status": "success", "eval": {"task": "quiz", "model": model}, "samples": samples}


def write_inspect_json(folder: Path, model: str) -> Path:
    path = folder / f"{model}.json"
    path.write_text(json.dumps(inspect_log(model), indent=2), encoding="utf-8")
    return path


def write_inspect_eval(folder: Path, model: str) -> Path:
    log, path = inspect_log(model), folder / f"{model}.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for sample in log.pop("samples"):
            file.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
        file.writestr("header.json", json.dumps(log))
    return path


def write_lm_eval(folder: Path, model: str) -> Path:
    """Multiple choice: log-probabilities of the choices."""
    path = folder / model / "samples_quiz_2026-01-02T03-04-05.678.jsonl"
    path.parent.mkdir()
    rows = []
    for row, vote in enumerate(ANSWERS[model]):
        if vote is not None:
            chances = [[-0.1 if letter == vote else -2.0, letter == vote] for letter in "ABC"]
            texts = {f"gen_args_{i}": {"arg_0": "?", "arg_1": f" {letter}"} for i, letter in enumerate("ABC")}
            facts = {"doc_id": row, "doc": {}, "target": str("ABC".index(LABELS[row])), "arguments": texts}
            rows.append({**facts, "resps": [[c] for c in chances], "filtered_resps": chances, "filter": "none"})
            rows[-1]["acc"] = float(vote == LABELS[row])
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_openai_evals(folder: Path, model: str) -> Path:
    path = folder / f"{model}-run.jsonl"
    lines: list[dict[str, Any]] = [{"spec": {"completion_fns": [model], "eval_name": "quiz.dev.v0", "run_id": "1"}}]
    for row, vote in enumerate(ANSWERS[model]):
        facts = {"run_id": "1", "event_id": row, "sample_id": f"quiz.dev.{row}", "created_at": "2026"}
        lines.append({**facts, "type": "sampling", "data": {"prompt": "?", "sampled": ["text"]}})
        data = {"correct": vote == LABELS[row], "expected": LABELS[row], "picked": vote}
        if vote is not None:
            lines.append({**facts, "type": "match", "data": data})
    lines.append({"final_report": {"accuracy": 0.5}})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def promptfoo_results() -> list[dict[str, Any]]:
    return [
        {
            "promptIdx": 0,
            "testIdx": row,
            "testCase": {"vars": {"question": f"{row}?"}, "assert": [{"type": "equals", "value": LABELS[row]}]},
            "provider": {"id": f"openai:{model}", "label": model},
            "vars": {"question": f"{row}?"},
            "response": {"output": votes[row]},
            "success": votes[row] == LABELS[row],
            "latencyMs": 500,
            "cost": COSTS[model],
        }
        for model, votes in ANSWERS.items()
        for row in range(4)
    ]


def write_promptfoo(folder: Path) -> Path:
    path = folder / "results.json"
    inner = {"version": 3, "timestamp": "2026", "prompts": [], "results": promptfoo_results(), "stats": {}}
    path.write_text(json.dumps({"evalId": "1", "results": inner}, indent=1), encoding="utf-8")
    return path


def write_promptfoo_lines(folder: Path) -> Path:
    path = folder / "results.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in promptfoo_results()), encoding="utf-8")
    return path


def write_nested(folder: Path) -> Path:
    path = folder / "nested.jsonl"
    rows = []
    for row, label in enumerate(LABELS):
        votes = [{"voter": name, "vote": given[row], "cost": COSTS[name]} for name, given in ANSWERS.items()]
        rows.append({"id": f"q{row}", "votes": votes, "truth": label, "subject": "law"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def long_table() -> dict[str, list[Any]]:
    rows = [(f"q{row}", model, votes[row], LABELS[row]) for row in range(4) for model, votes in ANSWERS.items()]
    table = dict(zip(("question_id", "model", "answer", "truth"), map(list, zip(*rows, strict=True)), strict=True))
    return table | {"cost": [COSTS[model] for _, model, _, _ in rows]}


def write_long(folder: Path) -> Path:
    path = folder / "long.csv"
    pd.DataFrame(long_table()).to_csv(path, index=False)
    return path


ONE_FOR_ALL = [write_promptfoo, write_promptfoo_lines, write_nested, write_long]
ONE_A_MODEL = [write_inspect_json, write_inspect_eval, write_lm_eval, write_openai_evals]


@pytest.mark.parametrize("write", [*ONE_FOR_ALL, *ONE_A_MODEL])
def test_every_log_gives_the_same_table(write, tmp_path):
    files = [write(tmp_path)] if write in ONE_FOR_ALL else [write(tmp_path, model) for model in ANSWERS]
    read = linmax.read_votes(files)
    assert {name: votes.tolist() for name, votes in read.votes.items()} == ANSWERS
    assert read.y.tolist() == LABELS
    assert len(read.tags) == 4
    assert len({*read.tags}) == 4
    if write in (write_inspect_json, write_inspect_eval, *ONE_FOR_ALL):
        assert read.costs == pytest.approx(COSTS)
    if write in (write_inspect_json, write_promptfoo):
        assert read.seconds == pytest.approx(dict.fromkeys(ANSWERS, 1.5 if write is write_inspect_json else 0.5))


def test_a_frame_in_long_format():
    read = linmax.read_votes(pd.DataFrame(long_table()))
    assert {name: votes.tolist() for name, votes in read.votes.items()} == ANSWERS
    assert read.y.tolist() == LABELS
    assert "items 'question_id', voters 'model', votes 'answer', labels 'truth'" in read.remarks[0]
    named = pd.DataFrame(long_table()).rename(columns={"question_id": "a", "model": "b", "answer": "c"})
    read = linmax.read_votes(named, long=("a", "b", "c"), label="truth")
    assert read.y.tolist() == LABELS
    with pytest.raises(ValueError, match="there is no column 'z' among a, b, c"):
        linmax.read_votes(named, long=("a", "b", "z"))
    wide = linmax.read_votes(pd.DataFrame(long_table()), long=(), ignore=["answer"])
    assert list(wide.voters) == ["question_id", "model", "cost"]


def test_wide_table_is_not_read_as_long():
    frame = pd.DataFrame({"id": range(6), "model": list("xyxyxy"), "vote": list("xxyyxy"), "truth": list("xyxyxx")})
    assert list(linmax.read_votes(frame, ignore=["id"]).voters) == ["model", "vote"]
    three = pd.DataFrame({"ann": list("xyxyxy"), "bob": list("xxyyxy"), "eve": list("xyxyxx")})
    assert list(linmax.read_votes(three).voters) == ["ann", "bob", "eve"]


def test_three_columns_without_known_names():
    rows = [(f"t{row}", f"w{voter}", "yes" if (row + voter) % 3 else "no") for row in range(6) for voter in range(3)]
    read = linmax.read_votes(pd.DataFrame(rows, columns=["a", "b", "c"]))
    assert list(read.voters) == ["w0", "w1", "w2"]
    assert not any(label is not None for label in read.labels)


def test_answers_judged_right_count_as_the_label(tmp_path):
    """Open answers: the scorer of the log decides which spellings are the same."""
    rows = [
        {"doc_id": 0, "target": "3 + 4 = 7 #### 7", "filtered_resps": ["7"], "exact_match": 1.0, "filter": "strict"},
        {"doc_id": 0, "target": "3 + 4 = 7 #### 7", "filtered_resps": ["7."], "exact_match": 0.0, "filter": "loose"},
        {"doc_id": 1, "target": "#### 9", "filtered_resps": ["8"], "exact_match": 0.0, "filter": "strict"},
    ]
    path = tmp_path / "gpt" / "samples_sums_2026-01-02T03-04-05.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    read = linmax.read_votes(path)
    assert read.voters == {"gpt": ["7", "8"]}
    assert read.labels == ["7", "#### 9"]
    assert read.remarks == [
        "samples_sums_2026-01-02T03-04-05.jsonl: responses of the filter 'strict' are used; others: loose."
    ]


def test_log_probabilities_in_the_place_of_votes(tmp_path):
    files = [write_lm_eval(tmp_path, model) for model in ANSWERS]
    read = linmax.read_votes(files, scores=True)
    assert read.classes == ["A", "B", "C"]
    assert read.votes["model-1"][0].tolist() == [-0.1, -2.0, -2.0]
    assert read.votes["model-2"][1].tolist() == [0.0, 0.0, 0.0]  # abstained
    with pytest.raises(ValueError, match="has no log-probabilities"):
        linmax.read_votes(write_promptfoo(tmp_path), scores=True)
    confident = long_table() | {"logprob": [-0.5] * 8}
    read = linmax.read_votes(confident, scores=True)
    rest = math.log((1 - math.exp(-0.5)) / 2)
    assert read.votes["model-1"][2].tolist() == pytest.approx([rest, -0.5, rest])


def test_fuse_and_predict_from_logs(tmp_path, capsys):
    rows = [{"task": t, "worker": w, "label": "ab"[(t * w) % 5 % 2]} for t in range(40) for w in range(1, 4)]
    frame = pd.DataFrame(rows)
    frame["truth"] = ["ab"[t % 2] for t in frame["task"]]
    frame["cost"] = 0.5
    frame.to_csv(tmp_path / "long.csv", index=False)
    model = tmp_path / "model.linmax"
    options = [
        "--learner",
        "AR-winnow(1.1)",
        "--model",
        str(model),
        "--json",
        str(tmp_path / "out.json"),
        "--ask",
        "10",
    ]
    assert main(["fuse", str(tmp_path / "long.csv"), *options]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "A row is an answer: items 'task', voters 'worker', votes 'label', labels 'truth'" in shown
    assert "40 rows, 3 voters, 2 classes" in shown
    assert "Costs are the mean costs of the answers in the data" in shown
    assert json.loads((tmp_path / "out.json").read_text())["mean_costs"] == {"1": 0.5, "2": 0.5, "3": 0.5}
    assert main(["predict", str(model), str(tmp_path / "long.csv"), "--as", "jsonl"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert first.keys() == {"line", "predicted", "tag"}
    assert main(["fuse", str(tmp_path / "long.csv"), "--long", "task,worker", *options]) == 2
    assert "--long must name three columns" in capsys.readouterr().err


def _zip(**members: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return file.getvalue()


def test_members_of_a_zip_file_compressed_by_zstd(tmp_path):
    """Newer logs of Inspect use a compression that Python's zipfile does not know."""
    log = inspect_log("model-1")
    members = {f"samples/{one['id']}_epoch_1.json": json.dumps(one).encode() for one in log.pop("samples")}
    members["header.json"] = json.dumps(log).encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, raw in members.items():
            archive.writestr(name, pa.Codec("zstd").compress(raw, asbytes=True))
        places = [(one.header_offset, len(members[one.filename])) for one in archive.infolist()]
    raw = bytearray(file.getvalue())
    central = [place.start() for place in re.finditer(b"PK\x01\x02", raw)]
    for (local, size), entry in zip(places, central, strict=True):
        raw[local + 8 : local + 10] = raw[entry + 10 : entry + 12] = (93).to_bytes(2, "little")
        raw[local + 22 : local + 26] = raw[entry + 24 : entry + 28] = size.to_bytes(4, "little")
    (tmp_path / "log.eval").write_bytes(raw)
    assert linmax.read_votes(tmp_path / "log.eval").voters == {"model-1": ANSWERS["model-1"]}


BAD = [
    ("cut.eval", _zip(a="b" * 100)[:50], "cut.eval is damaged or cut short"),
    ("other.eval", _zip(a="b"), "not a log of Inspect: it has no header.json"),
    ("none.json", b'{"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}', "has no samples"),
    ("cut.json", b'{\n"version": 2, "status": "success", "eval": {"task": "t",', "cut.json is damaged or cut short"),
    (
        "no-id.json",
        b'{"version": 2, "status": "s", "eval": {"model": "m"}, "samples": [{"target": "A"}]}',
        "lacks what is",
    ),
    ("no-match.jsonl", b'{"spec": {"completion_fns": ["m"]}}\n{"final_report": {}}\n', "has no events of type 'match'"),
    ("half.jsonl", b'{"doc_id": 1, "target": "1", "filtered_resps": ["1"]}\n{"doc_id": 2,\n', "1 of 2 lines could not"),
    ("empty.jsonl", b'{"doc_id": 1, "resps": []}\n', "not one of 1 lines could be read"),
    (
        "foo.json",
        b'{"results": {"version": 3, "timestamp": "", "stats": {}, "results": [{}]}}',
        "lacks what is expected",
    ),
]


@pytest.mark.parametrize(("name", "raw", "message"), BAD, ids=[name for name, *_ in BAD])
def test_damaged_logs_give_one_line(name, raw, message, tmp_path, capsys):
    (tmp_path / name).write_bytes(raw)
    assert main(["fuse", str(tmp_path / name), "--learner", "AR-winnow(1.1)"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_logs_and_tables_do_not_mix(tmp_path, capsys):
    (tmp_path / "wide.csv").write_text("ann,bob,truth\nx,y,x\ny,y,y\n", encoding="utf-8")
    assert main(["fuse", str(write_promptfoo(tmp_path)), str(tmp_path / "wide.csv")]) == 2
    assert "results.json is a log of answers, and others are tables" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["truth", "Gold", "ground_truth", "Ground Truth", "answer", "correct", "y_true", "target"]
)
def test_labels_are_found_by_name(name, tmp_path, capsys):
    (tmp_path / "votes.csv").write_text(f"ann,bob,{name}\n" + "x,y,x\ny,y,y\n" * 4, encoding="utf-8")
    assert main(["fuse", str(tmp_path / "votes.csv"), "--learner", "AR-winnow(1.1)"]) == 0
    assert f"The label is {name!r} (by its name); --label COLUMN names another." in capsys.readouterr().out


def test_a_second_column_of_labels_is_no_voter(tmp_path, capsys):
    (tmp_path / "votes.csv").write_text("ann,bob,truth,gold\n" + "x,y,x,x\ny,y,y,y\n" * 4, encoding="utf-8")
    assert main(["fuse", str(tmp_path / "votes.csv")]) == 2
    assert "remove it with --ignore gold, pass --label gold, or rename it" in capsys.readouterr().err
    options = ["--label", "gold", "--ignore", "truth", "--learner", "AR-winnow(1.1)"]
    assert main(["fuse", str(tmp_path / "votes.csv"), *options]) == 0


def test_a_folder_of_logs_of_inspect(tmp_path):
    for model in ANSWERS:
        write_inspect_json(tmp_path, model)
    (tmp_path / "notes.json").write_text('{"author": "ann"}', encoding="utf-8")
    assert linmax.read_votes(tmp_path).y.tolist() == LABELS


def test_a_folder_of_logs(tmp_path):
    for model in ANSWERS:
        write_lm_eval(tmp_path, model)
        (tmp_path / model / "results_2026.json").write_text('{"results": {}}', encoding="utf-8")
    assert linmax.read_votes(tmp_path).y.tolist() == LABELS
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty is a folder without logs of evaluations"):
        linmax.read_votes(tmp_path / "empty")
    (tmp_path / "empty" / "votes.parquet").write_bytes(b"")
    with pytest.raises(ValueError, match=r"as .*empty/\*\.parquet"):
        linmax.read_votes(tmp_path / "empty")


def test_a_model_in_the_place_of_votes_is_named(tmp_path):
    linmax.VoteFusion("winnow(1.1)").fit([["x", "y"], ["y", "y"]], ["x", "y"]).save(tmp_path / "model.linmax")
    with pytest.raises(ValueError, match="is a model, and votes are required; continue it with --start"):
        linmax.read_votes(tmp_path / "model.linmax")


def test_the_column_that_names_the_rows_is_no_voter(tmp_path):
    (tmp_path / "votes.csv").write_text("question_id,ann,bob,truth\nq1,x,y,x\nq2,y,y,y\nq3,x,x,x\n", encoding="utf-8")
    read = linmax.read_votes(tmp_path / "votes.csv")
    assert (list(read.voters), read.tags) == (["ann", "bob"], ["q1", "q2", "q3"])
    assert "Column 'question_id' differs in each row: it names the rows, and is no voter." in read.remarks
    answers = {"task": ["x", "y", "z"], "bob": ["x", "y", "y"], "truth": ["x", "y", "z"]}
    assert list(linmax.read_votes(answers).voters) == ["task", "bob"]  # it names labels: a voter
