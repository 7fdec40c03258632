"""The registry of formats, and the one way in which commands and streams read files, pipes and packed files."""

from __future__ import annotations

import ast
import bz2
import gzip
import io
import json
import lzma
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import linmax
from linmax.cli import main
from linmax.io import formats
from linmax.io.formats import FORMATS, endings, format_class, format_of, register_format
from linmax.io.reader import read_columns, read_table
from linmax.io.records import StreamFormat

PAIRS = '''
from linmax.io import lexer
from linmax.io.records import RowFormat

class Pairs(RowFormat):
    """Lines such as ``a=1 b=2 -> yes``."""

    endings = (".pairs",)

    @classmethod
    def looks_like(cls, lines):
        return b" -> " in lines[0]

    def row(self, raw):
        body, arrow, label = raw.partition(b" -> ")
        try:
            found = [(name, float(value)) for name, value in (part.split(b"=") for part in body.split())]
        except ValueError:
            return lexer.VALUE
        return (label.strip(), found, b"") if arrow else lexer.NO_LABEL
'''


@pytest.fixture
def registry() -> Iterator[None]:
    """The registry, which is put back."""
    before = dict(formats.REGISTRY)
    yield
    formats.REGISTRY.clear()
    formats.REGISTRY.update(before)


@pytest.mark.small
def test_a_format_is_one_file_and_one_line(tmp_path, monkeypatch, registry, capsys):
    package = tmp_path / "their_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "pairs.py").write_text(PAIRS)
    monkeypatch.syspath_prepend(tmp_path)

    register_format("pairs", "their_package.pairs:Pairs")

    assert "pairs" in FORMATS
    assert "their_package.pairs" not in sys.modules  # imported when it is wanted
    lines = ["a=1 b=2 -> yes", "b=0.5 -> no", "a=x -> no"]
    reader = linmax.stream(lines)
    (batch,) = reader
    assert reader.format == "pairs"
    assert list(batch.dicts()) == [{"a": 1.0, "b": 2.0}, {"b": 0.5}]
    assert batch.labels.tolist() == ["yes", "no"]
    assert reader.refusals.first == [("Lines", 3, "a value is not a number")]
    data = tmp_path / "data.pairs.gz"
    data.write_bytes(gzip.compress("\n".join(lines[:2] * 20).encode()))
    for options in ([], ["--format", "pairs"]):
        assert main(["learn", str(data), "--learner", "perceptron", "--json", "-", "--quiet", *options]) == 0
        assert json.loads(capsys.readouterr().out)["trials"] == 40
    with pytest.raises(SystemExit):
        main(["learn", "--help"])
    assert "pairs" in capsys.readouterr().out
    assert main(["fuse", str(data), "--label", "y"]) == 2
    assert "files that end in .pairs have no columns; known: .csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "where", "said"),
    [("csv", "m:C", "there is a format 'csv' already"), ("new", "module", "'module:class', got 'module'")],
)
def test_invalid_formats_are_refused(name, where, said, registry):
    with pytest.raises(ValueError, match=said):
        register_format(name, where)


def test_every_format_can_be_made_and_has_endings_of_its_own():
    classes = [format_class(name) for name in FORMATS]
    assert len(set(classes)) == len(classes)
    assert all(issubclass(one, StreamFormat) for one in classes)
    assert all(ending.startswith(".") and ending == ending.lower() for ending in endings())
    claimed = Counter(ending for one in classes for ending in one.endings)
    assert [ending for ending, count in claimed.items() if count > 1] == [".tsv"]  # a text or a table: see its lines


def test_no_class_of_this_room_is_defined_twice():
    names: Counter[str] = Counter()
    for path in Path(linmax.io.__file__).parent.rglob("*.py"):
        names.update(node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("-", b"1 3:4 # one | two\n", "svmlight"),
        ("-", b"tag| 3:4\n", "vw"),
        ("-", b'{"text": "a|b"}\n', "jsonl"),
        ("-", b"\xef\xbb\xbfa,b\n1,2\n", "csv"),
        ("x.tsv", b"1 3:4\n", "svmlight"),
        ("x.tsv", b"", "tsv"),
        ("-", b"", "svmlight"),
    ],
)
def test_formats_are_told(name, head, kind):
    assert format_of(name, head) == kind


def test_table_is_not_read_as_text():
    assert format_of("x.tsv", b"v\ty\none two\tp\n") == "tsv"
    assert format_of("x.tsv", b"y\tv\np\tone two\n") == "text"
    assert format_of("x.tsv", b"y\tv\np\tone two\n", columns=True) == "tsv"


# -- columns --------------------------------------------------------------------------------------------------------

CELLS = {"v, 1": ["a", None, 'say "no"'], "w": ["two\nlines", "é", None], "y": ["a", "b", "a"]}
CSV = '\ufeff"v, 1",w,y\r\na,"two\nlines",a\r\n,é,b\r\n\r\n"say ""no""",,a\r\n'


def written(folder: Path) -> dict[str, bytes]:
    """The same table in every format that has columns."""
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet and Arrow need pyarrow")
    from pyarrow import feather, ipc, parquet

    table = pyarrow.table(CELLS)
    parquet.write_table(table, folder / "t.parquet")
    feather.write_feather(table, folder / "t.feather")
    stream = io.BytesIO()
    with ipc.new_stream(stream, table.schema) as file:
        file.write_table(table)
    rows = [dict(zip(CELLS, row, strict=True)) for row in zip(*CELLS.values(), strict=True)]
    nested = [{"y": row.pop("y"), "features": row} for row in map(dict, rows)]
    lines = [json.dumps({name: cell for name, cell in row.items() if cell is not None}) for row in rows]
    return {
        "t.csv": CSV.encode(),
        "t.tsv": CSV.replace('"v, 1",w,y', "v, 1\tw\ty").replace('a,"two\nlines",a', 'a\t"two\nlines"\ta').replace(",é,b", "\té\tb").replace('"say ""no""",,a', '"say ""no"""\t\ta').encode(),
        "t.jsonl": "\n".join(lines).encode(),
        "nested.json": "\n\n".join(map(json.dumps, nested)).encode(),
        "t.parquet": (folder / "t.parquet").read_bytes(),
        "t.arrow": (folder / "t.feather").read_bytes(),
        "stream.arrow": stream.getvalue(),
    }  # fmt: skip


def test_columns_are_the_same_from_every_file_and_pipe(tmp_path, monkeypatch):
    packers: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}  # fmt: skip
    for name, data in written(tmp_path).items():
        for ending, pack in packers.items():
            path = tmp_path / f"copy.{name}{ending}"
            path.write_bytes(pack(data))
            assert read_columns(path) == CELLS, path.name
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(pack(data))))
            assert read_columns("-") == CELLS, path.name


def test_types_are_kept(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1, "b": 1.5, "c": true}\n{"d": "", "a": null}\n')
    assert read_columns(path) == {"a": [1, None], "b": [1.5, None], "c": [True, None], "d": [None, None]}


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("t.jsonl", b'{"a": 1}\n[1]\n', "t.jsonl, line 2: not a JSON object"),
        ("t.jsonl", b'{"a": 1}\n\n{"a"\n', "t.jsonl, line 3: not JSON"),
        ("t.jsonl", b'{"a": [1, 2]}\n', r"line 1: 'a' is \[1, 2\], neither text.*remove it with --ignore a"),
        ("t.csv", b'a,b\n1,"2\n3,4\n', "t.csv, line 2: a quote is not closed"),
        ("t.csv", b'a,b\n1,"2"3\n', "t.csv, line 2: a quote is not closed"),
        ("t.csv", b"a,b\n1,2,3\n", "t.csv, line 2: 3 fields where the header has 2"),
        ("t.csv.gz", gzip.compress(b"a,b\n" * 9999, mtime=0)[:40], "damaged or cut short"),
        ("t.parquet", b"", "t.parquet cannot be read as Parquet"),
        ("t.arrow", b"no", "t.arrow cannot be read as Arrow"),
        ("t.vw", b"1 |f a,b\n", "files that end in .vw have no columns; known: .csv, .tsv, .parquet"),
    ],
)  # fmt: skip
def test_tables_that_are_refused(name, data, said, tmp_path):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ValueError, match=said):
        read_columns(path)


def test_a_format_without_columns(tmp_path):
    with pytest.raises(ValueError, match="is svmlight, which has no columns; give a table"):
        read_columns(io.BytesIO(b"1 1:1\n"), "svmlight")
    with pytest.raises(ValueError, match="format must be one of svmlight"):
        read_columns("-", "arff")


# -- streams --------------------------------------------------------------------------------------------------------


@pytest.mark.small
def test_parquet_and_arrow_from_pipes_and_packed_files(tmp_path):
    data = written(tmp_path)
    expected = [list(batch.dicts()) for batch in linmax.stream(tmp_path / "t.parquet")]
    for name in ("t.parquet", "t.arrow", "stream.arrow"):
        packed = tmp_path / f"copy.{name}.gz"
        packed.write_bytes(gzip.compress(data[name], mtime=0))
        for source in (packed, io.BytesIO(data[name])):
            assert [list(batch.dicts()) for batch in linmax.stream(source)] == expected


@pytest.mark.small
def test_table_stream_resumes_from_position(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    from pyarrow import parquet

    path = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.table({"a": [1.0, 2.0, 3.0], "y": ["p", "q", "p"]}), path)
    rows = linmax.stream(path, rows=2)
    first, rest = list(rows)
    assert rows.format == "parquet"
    (again,) = linmax.stream(path, format=rows.format, position=first.position, settled=first.settled)
    assert again.dense.tolist() == rest.dense.tolist() == [[3.0]]


@pytest.mark.small
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_with_a_name_loses_nothing(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("1 1:1\n2 2:1\n",))
    writer.start()
    found = [row for batch in linmax.stream(path) for row in batch.dicts()]
    writer.join()
    assert found == [{"1": 1.0}, {"2": 1.0}]


@pytest.mark.small
def test_standard_input_among_files(tmp_path, monkeypatch):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"2 2:1\n")))
    assert [row for batch in linmax.stream([path, Path("-")]) for row in batch.dicts()] == [{"1": 1.0}, {"2": 1.0}]


def objects(*rows: dict) -> io.BytesIO:
    return io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode())


def test_all_lines_decide_object_schema():
    some = objects({"a": None}, {"a": {"x": 1, "y": "no"}}, {"a": {"x": None}}, {"a": {}}, {"a": {"x": 0.5, "y": ""}})
    assert read_columns(some, "jsonl") == {"x": [None, 1, None, None, 0.5], "y": [None, "no", None, None, None]}
    numbers = objects({"a": {"x": 1}, "b": "p"}, {"a": {"x": 2, "y": 3}})
    assert read_columns(numbers, "jsonl") == {"a:x": [1, 2], "b": ["p", None], "a:y": [None, 3]}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"a": {"x": "1"}, "b": {"x": "2"}}, "'x' is in the object of 'b' and in that of 'a'; .* --ignore b"),
        ({"x": "1", "b": {"x": "2"}}, "'x' is in the object of 'b' and outside of it; .* --ignore b"),
        ({"b": {"x": "2"}, "x": "1"}, "'x' is in the object of 'b' and outside of it; .* --ignore b"),
        ({"features": {"x": 2}, "x": 1}, "'x' is in the object of 'features' and outside of it"),
        ({"a": {"x": ["1"]}}, r"line 1: 'x' of 'a' is \[\"1\"\], neither text.*--ignore a"),
    ],
)  # fmt: skip
def test_no_value_of_an_object_takes_the_place_of_another(row, said):
    with pytest.raises(ValueError, match=said):
        read_columns(objects(row), "jsonl")


def test_whole_objects_and_lists_are_left_out_by_their_key():
    row = {"id": 7, "seen": [1, 2], "meta": {"when": "now", "tags": ["a"], "n": {"m": 1}}, "votes": {"ann": "p"}}
    table = read_table(objects(row), "jsonl", ["seen", "meta"])
    assert (table.columns, table.left_out) == ({"id": [7], "ann": ["p"]}, {"seen", "meta"})
    table = read_table(objects(row), "jsonl", ["seen", "tags", "n", "id"])
    assert (table.columns, table.left_out) == ({"when": ["now"], "ann": ["p"]}, {"seen", "tags", "n", "id"})
    assert table.objects == {"when": "meta", "ann": "votes"}
    assert read_table(objects(row), "jsonl", wanted=["ann", "id"]).columns == {"id": [7], "when": ["now"], "ann": ["p"]}
    assert read_table(objects(row), "jsonl", wanted=["tags"]).refusals.total == 1


@pytest.mark.parametrize(
    ("kind", "text", "columns", "lines", "refused"),
    [
        ("jsonl", '{"a": 1}\n\n{"a"\n[1]\n{"a": [2]}\n{"a": 3}', {"a": [1, 3]}, [1, 6], [3, 4, 5]),
        ("csv", 'a,b\n1,"p\nq"\n\n2\n3,4,5\n6,7\n', {"a": ["1", "6"], "b": ["p\nq", "7"]}, [2, 7], [5, 6]),
    ],
)  # fmt: skip
def test_lines_that_cannot_be_read_cost_no_others(kind, text, columns, lines, refused):
    table = read_table(io.BytesIO(text.encode()), kind)
    assert (table.columns, table.lines, [line for _, line, _ in table.refusals.first]) == (columns, lines, refused)
    with pytest.raises(ValueError, match=f"line {refused[0]}: "):
        read_table(io.BytesIO(text.encode()), kind, strict=True)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_header_within_the_data_is_no_row(newline, quote, tmp_path):
    header = newline.join([",".join(f"{quote}{name}{quote}" for name in ("a", "b", "y")), ""])
    rows = [newline.join([f"{t % 7},{t * 5 % 11},{'pq'[t % 2]}", ""]) for t in range(6000)]
    whole, joined = tmp_path / "whole.csv", tmp_path / "joined.csv"
    whole.write_text("".join([header, *rows]), newline="")
    joined.write_text("".join([header, header, *rows[:150], header, header, *rows[150:], header]), newline="")
    models = []
    for path in (whole, joined):
        model = linmax.StreamModel("perceptron")
        batches = linmax.stream(path, model=model)
        for batch in batches:
            model.learn(batch)
        model.save(tmp_path / "model.linmax")
        models.append((model.classes, model.trials, (tmp_path / "model.linmax").read_bytes()))
    assert models[0] == models[1]
    assert "4 lines are the header again, and left out: line 2, 153, 154, 6,005." in batches.remarks()
    table = read_table(joined)
    assert table.columns == read_columns(whole)
    assert table.refusals.counts == {"the header again": 4}
