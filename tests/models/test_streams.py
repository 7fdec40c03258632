"""Readers of streams against plain ones, fuzzed, cut anywhere, packed, and against scikit-learn and Vowpal Wabbit."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import math
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import linmax
import streams_reference as reference
from linmax import stream
from linmax.io.formats import format_of
from linmax.io.read_options import ReadOptions, Refusals
from linmax.io.reader import StreamReader
from linmax.io.vocabulary import SERIAL, Vocabulary
from linmax.jit.compiling import JIT


def rows_of(data: bytes, kind: str, block: int = 1 << 16, rows: int = 4096, **options) -> tuple[list[tuple], Refusals]:
    """(label, {name: value}, importance, tag) of every row, and what was refused."""
    reader = StreamReader([io.BytesIO(data)], kind, ReadOptions(block=block, rows=rows, **options))
    found = []
    for batch in reader:
        tags = batch.tags or [""] * len(batch)
        for t, row in enumerate(batch.dicts()):
            found.append((batch.labels[t], row, float(batch.importance[t]), tags[t]))
    return found, reader.refusals


def expected(data: bytes, parse) -> tuple[list, int]:
    good, refused = [], 0
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    for line in lines if lines[-1] else lines[:-1]:
        try:
            row = parse(line)
        except reference.Refused:
            refused += 1
            continue
        if row is not None:
            good.append(row)
    return good, refused


# -- svmlight -----------------------------------------------------------------------------------------------------

values = st.one_of(
    st.floats(-1e6, 1e6).map(repr),
    st.integers(-99, 99).map(str),
    st.sampled_from(["0", "1", "+2", ".5", "5.", "1e3", "1e-3", "-0.0"]),
)
indices = st.one_of(st.integers(0, 12), st.sampled_from(["255", "256", "00", "12345678", "012345678", "123456789"]))
pairs = st.builds("{}:{}".format, indices, values)
rising = st.dictionaries(st.integers(0, 999), values, max_size=30).map(
    lambda row: [f"{index}:{row[index]}" for index in sorted(row)]
)
svm_lines = st.builds(
    lambda label, qid, row, comment, end: f"{label} {qid}{' '.join(row)}{comment}{end}",
    st.sampled_from(["1", "+1", "-1", "2.0", "0.5", "1e1"]),
    st.sampled_from(["", "qid:3 "]),
    st.lists(pairs, max_size=6) | rising,
    st.sampled_from(["", " # note 3:4", "#x"]),
    st.sampled_from(["", " ", "\r", "\t"]),
)
noise = st.text(st.sampled_from("0123456789:.-+e #|qid\tabnif,\"'"), max_size=25)


@pytest.mark.small
@settings(max_examples=150 if JIT else 40, deadline=None)
@given(
    st.lists(st.one_of(svm_lines, noise), max_size=12),
    st.sampled_from([64, 100, 4096]),
    st.sampled_from([1, 3, 4096]),
    st.booleans(),
)
@example(
    [
        "1 3:1 3:2",
        "1 007:1 7:1",
        "nan 1:1",
        "1 2147483647:1",
        "1 2147483648:1",
        "1 99999999999999999999:1",
        "1 1:1e400",
        "1 1:nan",
        "1 1:1e101",
        "1 1:",
        "1 :1",
        "1 1",
        "1,2 1:1",
        "3:1",
        "1 -1:2",
        "1 1:2x",
        "1:2",
    ],
    4096,
    4096,
    True,
)
def test_svmlight(lines, block, rows, newline):
    data = "\n".join(lines).encode() + (b"\n" if newline and lines else b"")
    good, refused = expected(data, reference.svmlight)
    found, refusals = rows_of(data, "svmlight", block, rows)
    assert [(label, row) for label, row, _, _ in found] == good
    assert refusals.total == refused


def test_svmlight_as_scikit_learn_reads_it(tmp_path):
    from sklearn.datasets import dump_svmlight_file, load_svmlight_file

    random = np.random.default_rng(3)
    x = random.normal(size=(300, 40)) * (random.random((300, 40)) < 0.3)
    path = tmp_path / "data.svm"
    dump_svmlight_file(
        x,
        random.integers(0, 4, 300),
        str(path),
        zero_based=False,
        comment="a comment\nand more",
        query_id=np.arange(300),
    )
    theirs, labels = load_svmlight_file(str(path), zero_based=False, n_features=40)
    count = 0
    for batch in stream(path, rows=70):
        columns = [int(name) - 1 for name in batch.names]
        part = theirs[count : count + len(batch)].toarray()
        np.testing.assert_array_equal(batch.matrix.toarray(), part[:, columns])
        assert np.count_nonzero(part) == len(batch.values)
        assert batch.labels.astype(float).tolist() == labels[count : count + len(batch)].tolist()
        count += len(batch)
    assert count == 300


# -- Vowpal Wabbit ------------------------------------------------------------------------------------------------

names = st.sampled_from(
    ["a", "bb", "price", "a_rather_long_name_that_has_more_than_thirty_two_bytes", "x^y", "\u00e9t\u00e9"]
) | st.sampled_from(["0", "00", "7", "07", "8", "250", "12345678", "123456789"])
tokens = st.one_of(names, st.builds("{}:{}".format, names, values))
spaces = st.builds(
    lambda n, f, row: f"|{n}{f if n else ''} {' '.join(row)}",
    st.sampled_from(["", "f", "title", "longer_than_eight"]),
    st.sampled_from(["", ":2", ":0.5", ":0"]),
    st.lists(tokens, max_size=5) | rising,
)
vw_lines = st.builds(
    lambda head, body: head + "".join(body),
    st.sampled_from(
        ["", "1 ", "spam ", "1 2 ", "1 0.5 0.1 ", "1 'tag ", "1 tag", "tag", "3 2 'x", "1.0 1 ", "2 1 1 t"]
    ),
    st.lists(spaces, min_size=1, max_size=3),
)


@pytest.mark.small
@settings(max_examples=150 if JIT else 40, deadline=None)
@given(st.lists(st.one_of(vw_lines, noise), max_size=10), st.sampled_from([64, 4096]), st.sampled_from([1, 2, 4096]))
@example(
    [
        "1:2 |f a",
        "1 -1 |f a",
        "1 |f :3",
        "1 |f a:nan",
        "1 x |f a",
        "1 |f a:",
        "no bar",
        "1 2 3 4 |f a",
        "|f a",
        "1 |:3 b",
        "1 'a 'b |f c",
        "1 |f a:1e99|g:1e99 b:1e99",
    ],
    4096,
    4096,
)
def test_vw(lines, block, rows):
    data = "\n".join(lines).encode()
    good, refused = expected(data, reference.vw)
    found, refusals = rows_of(data, "vw", block, rows)
    assert refusals.total == refused
    assert len(found) == len(good)
    for (label, row, weight, tag), wanted in zip(found, good, strict=True):
        assert (label, weight, tag) == (wanted[0], wanted[2], wanted[3])
        assert row.keys() == {name for name, value in wanted[1].items()}
        assert all(math.isclose(row[name], value, rel_tol=1e-15, abs_tol=1e-300) for name, value in wanted[1].items())


def test_repeated_integer_names():
    """Most rows then need no look-up by hash; some are out of order, have an attribute twice or a name of letters."""
    random = np.random.default_rng(5)
    lines = []
    for _ in range(800):
        columns = random.integers(0, 3000, random.integers(1, 30))
        if random.random() < 0.8:
            columns = np.unique(columns)
        forms = random.choice(["{:.4f}", "{:.0f}", "{:.9f}", "{:.14f}", "{:e}", "-{:.2f}", "{!r}"], len(columns))
        amounts = (form.format(float(x)) for form, x in zip(forms, random.random(len(columns)) * 100, strict=True))
        lines.append(" ".join(f"{c}:{v}" for c, v in zip(columns, amounts, strict=True)))
    svm = "\n".join(f"{i % 3} {line}" for i, line in enumerate(lines)).encode()
    good, refused = expected(svm, reference.svmlight)
    found, refusals = rows_of(svm, "svmlight", 5000)
    assert [(label, row) for label, row, _, _ in found] == good
    assert refusals.total == refused > 0
    odd = {7: "|a", 11: "|", 13: " word"}
    vw = "\n".join(f"{i % 3} | {line} {odd.get(i % 17, '')}" for i, line in enumerate(lines)).encode()
    found, refusals = rows_of(vw, "vw", 5000)
    assert [(label, row) for label, row, _, _ in found] == [row[:2] for row in expected(vw, reference.vw)[0]]
    assert refusals.total == 0


def test_vw_as_vowpal_wabbit_reads_it():
    pyvw = pytest.importorskip("vowpalwabbit", reason="Vowpal Wabbit's own reading needs the package vowpalwabbit")
    workspace = pyvw.Workspace("--quiet --noconstant")
    lines = [
        "1 |f a b:2 c:0.5",
        "2 3 'tag |f:2 a b |g c",
        "1 tag| x y x",
        "|f a",
        "3|f a:1.5 b:0",
        "1 1.5 |long_name word:0.25 other | none",
    ]
    found, refusals = rows_of("\n".join(lines).encode(), "vw")
    assert not refusals.total
    for line, (label, row, weight, tag) in zip(lines, found, strict=True):
        theirs = workspace.parse(line)
        summed: dict[tuple[int, int], float] = {}
        for space in range(theirs.num_namespaces()):
            for i in range(theirs.num_features_in(space)):
                key = (space, theirs.feature(space, i))
                summed[key] = summed.get(key, 0.0) + theirs.feature_weight(space, i)
        assert sorted(summed.values()) == pytest.approx(sorted(row.values()))
        assert theirs.get_tag() == tag
        if label is not None:
            assert theirs.get_simplelabel_label() == float(label)
            assert theirs.get_simplelabel_weight() == weight
        workspace.finish_example(theirs)
    workspace.finish()


# -- text, tables, JSON -------------------------------------------------------------------------------------------


@pytest.mark.small
@settings(max_examples=100 if JIT else 30, deadline=None)
@given(
    st.lists(
        st.builds(
            "{}{}{}".format,
            st.sampled_from(["spam", " ham ", "1.0", ""]),
            st.sampled_from(["\t", "\t\t", ""]),
            st.text(
                "abAB _-'0\u00e9\u00c9\u4e2d\u20000!\u2019\u201c\u2014\u0130\u00df\u03a3\u03c2\u0301\u200d\u00ad\U0001f600\u023a",
                max_size=30,
            ),
        ),
        max_size=8,
    ),
    st.integers(1, 3),
    st.sampled_from([64, 4096]),
)
def test_text(lines, ngrams, block):
    data = "\n".join(lines).encode()
    good, refused = expected(data, lambda line: reference.text(line, ngrams))
    found, refusals = rows_of(data, "text", block, ngrams=ngrams)
    assert [(label, row) for label, row, _, _ in found] == good
    assert refusals.total == refused


cells = st.one_of(st.sampled_from(["red", "a b", '"x, y"', '"say ""no"""', "", " 7 ", "NA", "1.5", "-2", "nan", "?"]))


@pytest.mark.small
@settings(max_examples=100 if JIT else 30, deadline=None)
@given(
    st.lists(st.lists(cells, min_size=3, max_size=5), max_size=8),
    st.sampled_from([64, 4096]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_tables(rows, block, end):
    head = ["1.0,2,red,7,x", "NA,3,blue,8,y"]
    kinds = {"a": "number", "b": "number", "c": "category", "d": "category", "y": "label"}
    lines = head + [",".join(row) for row in rows]
    data = (end.join(["a,b,c,d,y", *lines]) + end).encode()
    parsed, refused = [], 0
    for line in lines:
        try:
            parsed.append(reference.table(line, kinds))
        except reference.Refused:
            refused += 1
    settled = {"header": list(kinds), "kinds": list(kinds.values())}
    options = ReadOptions(categorical=("c", "d"), block=block, settled=settled)
    reader = StreamReader([io.BytesIO(data)], "csv", options)
    found = []
    for batch in reader:
        for t in range(len(batch)):
            part = slice(batch.indptr[t], batch.indptr[t + 1])
            row = {
                batch.vocabulary[i]: v
                for i, v in zip(batch.indices[part].tolist(), batch.values[part].tolist(), strict=True)
            }
            found.append((batch.labels[t], batch.dense[t].tolist(), row))
    assert reader.refusals.total == refused
    assert str(found) == str(parsed)


@pytest.mark.small
@settings(max_examples=100 if JIT else 30, deadline=None)
@given(
    st.lists(st.tuples(st.text('ab",;\n\r |\t\u00e9', max_size=12), st.sampled_from("pq")), min_size=1, max_size=8),
    st.sampled_from([64, 4096]),
    st.sampled_from([",", ";", "\t", "|"]),
)
def test_quoted_fields_as_pythons_own_reader_has_them(rows, block, delimiter):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([("word", "y"), *rows])
    options = ReadOptions(categorical=("word",), delimiter=delimiter, block=block)
    reader = StreamReader([io.BytesIO(text.getvalue().encode())], "csv", options)
    found = [(row, label) for batch in reader for row, label in zip(batch.dicts(), batch.labels, strict=True)]
    assert found == [({f"word={word}": 1.0} if word else {}, label) for word, label in rows]
    assert not reader.refusals.total


def test_columns_are_typed_by_their_first_lines():
    lines = ["size,colour,code,label", "1.5,red,1,a", ",blue,2,b", "NA,,3,a", "2,red,x,b", "two,red,4,a"]
    reader = stream([*lines], format="csv", categorical=["code"])
    (batch,) = reader
    assert batch.dense_names == ()  # "two" is among the first lines
    good = stream(lines[:5], format="csv", categorical=["code"])
    (batch,) = good
    assert batch.dense_names == ("size",)
    np.testing.assert_array_equal(batch.dense[:, 0], [1.5, np.nan, np.nan, 2.0])
    assert batch.names == ["size", "colour=red", "code=1", "colour=blue", "code=2", "code=3", "code=x"]
    assert batch.labels.tolist() == ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("lines", "options", "said"),
    [
        (["a,b", "1,2"], {"label": "c"}, "no column 'c'; it has a, b"),
        (["a,a,b", "1,2,3"], {}, "two columns 'a'"),
        (["1,2", "3,4"], {}, "no header, but numbers"),
        (["a,b", "1,2"], {"ignore": ["z"]}, "no column 'z'"),
    ],
)
def test_tables_that_are_refused(lines, options, said):
    with pytest.raises(ValueError, match=said):
        list(stream(lines, format="csv", **options))


def test_json_lines():
    lines = [
        json.dumps({"label": "a", "features": {"x": 1.5, "colour": "red", "on": True, "off": False, "none": None}}),
        json.dumps({"label": 2.0, "text": "Hello hello, world"}),
        json.dumps({"features": {"x": 2}, "text": "both\nlines"}),
        "",
        "{broken",
        json.dumps([1, 2]),
        json.dumps({"label": "a"}),
        json.dumps({"label": "a", "features": {"x": [1]}}),
        '{"label": "a", "features": {"x": 1, "x": 2}}',
        '{"label": "a", "features": {"x": 1e400}}',
        json.dumps({"label": "b", "features": [0.5, 0, 3]}),
    ]
    found, refusals = rows_of("\n".join(lines).encode(), "jsonl", block=64)
    assert found[0][:2] == ("a", {"x": 1.5, "colour=red": 1.0, "on": 1.0})
    assert found[1][:2] == ("2", {"hello": 2.0, "world": 1.0})
    assert found[2][:2] == (None, {"both": 1.0, "lines": 1.0, "x": 2.0})
    assert found[3][:2] == ("a", {})
    assert found[4][:2] == ("a", {"x.0": 1.0})
    assert found[5][:2] == ("a", {"x": 2.0})  # of repeated names, the last counts
    assert found[6][:2] == ("b", {"0": 0.5, "2": 3.0})
    assert len(found) == 7
    assert [line for _, line, _ in refusals.first] == [5, 6, 10]
    assert refusals.counts["not JSON"] == 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"label": st.sampled_from(["a", "b", 1])},
            optional={
                "features": st.dictionaries(
                    st.text("xy\u00e9", max_size=12), st.one_of(st.floats(-9, 9), st.text("pq", max_size=3)), max_size=4
                ),
                "text": st.text("ab \n,", max_size=20),
            },
        ).filter(lambda row: len(row) > 1),
        max_size=6,
    ),
    st.sampled_from([64, 4096]),
)
def test_json_against_the_plain_reader(rows, block):
    lines = [json.dumps(row) for row in rows]
    found, refusals = rows_of("\n".join(lines).encode(), "jsonl", block)
    assert not refusals.total
    assert [(label, row) for label, row, _, _ in found] == [reference.jsonl(line) for line in lines]


# -- any bytes, any cut -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["svmlight", "vw", "text", "csv", "jsonl"])
@settings(max_examples=40, deadline=None)
@given(data=st.binary(max_size=300))
@example(data=b"\x0c\n\x0b 1")
def test_no_bytes_do_any_harm(kind, data):
    data = (b"a,b\n" if kind == "csv" else b"\n") + data  # not packed, whatever it begins with
    try:
        found, refusals = rows_of(data, kind, block=64)
    except ValueError as error:
        if not str(error).startswith(("BytesIO is UTF-16", "BytesIO is a JSON array")):
            raise
        return
    lines = [line for line in data.split(b"\n") if line.strip(b" \t\r")]
    plain = [line for line in lines if not (kind == "svmlight" and line.strip(b" \t\r").startswith(b"#"))]
    read = len(found) + refusals.total + (kind == "csv")
    assert read >= len(plain) if kind in ("text", "csv") else read == len(plain)


def test_batches_share_no_memory():
    lines = "".join(f"1 {i + 1}:{i + 1}\n" for i in range(40)).encode()
    held = [batch.values for batch in StreamReader([io.BytesIO(lines)], "svmlight", ReadOptions(rows=1))]
    assert [float(values[0]) for values in held] == list(range(1, 41))


def test_lines_that_are_too_long(monkeypatch):
    monkeypatch.setattr("linmax.io.sources.LONGEST_LINE", 256)
    long = b"1 " + b"7:1 " * 500
    data = b"1 1:1\n" + long + b"\n2 2:2\n" + long
    found, refusals = rows_of(data, "svmlight", block=64)
    assert [(label, row) for label, row, _, _ in found] == [("1", {"1": 1.0}), ("2", {"2": 2.0})]
    assert [line for _, line, _ in refusals.first] == [2, 4]
    assert list(refusals.counts) == ["longer than 16 MB"]


def test_a_number_with_too_many_digits():
    text = "0.1000000000000000055511151231257827021181583404541015626"
    found, _ = rows_of(f"1 3:{text} 4:{text}9\n".encode(), "svmlight")
    assert found[0][1] == {"3": float(text), "4": float(text + "9")}


# -- sources ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, "zstd"])
def test_packed(tmp_path, pack):
    data = b"".join(b"%d 1:%d\n" % (i % 3, i) for i in range(1, 500))
    if pack == "zstd":
        pyarrow = pytest.importorskip("pyarrow", reason="zstd is packed here by pyarrow")
        packed = pyarrow.compress(data, codec="zstd", asbytes=True)
    else:
        packed = pack(data)
    path = tmp_path / "data.svm.packed"
    path.write_bytes(packed)
    assert sum(len(batch) for batch in stream(path, format="svmlight")) == 499
    path.write_bytes(packed[: len(packed) // 2])
    if pack != "zstd":  # whose readers differ in what they say of a cut frame
        with pytest.raises(ValueError, match="damaged or cut short"):
            list(stream(path, format="svmlight"))


def test_several_files_and_places(tmp_path):
    first, second = tmp_path / "a.svm", tmp_path / "b.svm.gz"
    first.write_text("1 1:1\n2 2:1\n")
    second.write_bytes(gzip.compress(b"1 3:1\n2 4:1\n"))
    whole = list(stream([first, second], rows=1))
    assert [len(batch) for batch in whole] == [1, 1, 1, 1]
    place = whole[2].position
    assert (place.file, place.offset, place.line) == (1, 6, 2)
    (rest,) = stream([first, second], format="svmlight", position=place, settled={})
    assert list(rest.dicts()) == [{"4": 1.0}]


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("x.svm", b"", "svmlight"), ("x.vw.gz", b"", "vw"), ("x.CSV", b"", "csv"), ("-", b"-1 3:4 5:6\n", "svmlight"), ("-", b"# c\n1\n2 3:4\n", "svmlight"),
        ("-", b"1 | a b\n", "vw"), ("-", b'{"label": 1}', "jsonl"), ("-", b"spam\tbuy now | today\nham\thello you\n", "text"), ("x.tsv", b"a\tb\ty\n1\t2\t3\n", "tsv"),
        ("-", b"a,b\n1,2\n", "csv"), ("x.tsv.gz", b"sci.med\tthe doctor said\n", "text"), ("x", b"PAR1....", "parquet"), ("x.arrow", b"", "arrow"),
    ],
)  # fmt: skip
def test_formats_are_told(name, head, kind):
    assert format_of(name, head) == kind


def test_unrecognizable_formats():
    with pytest.raises(ValueError, match="cannot be recognized from b'hello'"):
        format_of("-", b"hello\n")
    with pytest.raises(ValueError, match="not text"):
        format_of("-", b"\x7fELF\0\0\n")


def test_bad_sources(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(stream(tmp_path / "missing.svm"))
    with pytest.raises(ValueError, match="folder"):
        stream(tmp_path)
    with pytest.raises(ValueError, match="format must be one of svmlight"):
        stream([], format="arff")
    with pytest.raises(TypeError, match="got int"):
        stream(3)
    with pytest.raises(ValueError, match="Lines, line 2: the label is not a number"):
        list(stream(["1 1:1", "x 1:1"], format="svmlight", strict=True))


# -- frames -------------------------------------------------------------------------------------------------------


def test_frames_and_arrow_and_pairs_agree(tmp_path):
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    pyarrow = pytest.importorskip("pyarrow", reason="Arrow needs pyarrow")
    from pyarrow import ipc, parquet

    frame = pandas.DataFrame({"a": [1.5, np.nan, 3.0], "c": ["x", None, "y"], "n": [1, 2, 3], "y": ["p", "q", "p"]})
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    with ipc.new_file(tmp_path / "t.arrow", table.schema) as file:
        file.write_table(table)
    sources = [
        frame,
        table,
        tmp_path / "t.parquet",
        tmp_path / "t.arrow",
        iter([frame[:1], frame[1:]]),
        table.to_batches()[0],
    ]
    polars = pytest.importorskip("polars", reason="polars frames need polars")
    sources.append(polars.from_arrow(table))
    for source in sources:
        batches = list(stream(source, label="y"))
        dense = np.concatenate([batch.dense for batch in batches])
        np.testing.assert_array_equal(dense, [[1.5, 1.0], [np.nan, 2.0], [3.0, 3.0]])
        assert [row for batch in batches for row in batch.dicts()] == [
            {"a": 1.5, "n": 1.0, "c=x": 1.0},
            {"n": 2.0},
            {"a": 3.0, "n": 3.0, "c=y": 1.0},
        ]
        assert [label for batch in batches for label in batch.labels] == ["p", "q", "p"]
    with pytest.raises(ValueError, match="no column 'z'"):
        list(stream(frame, label="z"))


def test_pairs():
    from scipy import sparse

    x, y = np.array([[0.0, 2.0], [1.0, 0.0]]), np.array([1.0, 0.0])
    (dense,), (thin,) = stream((x, y)), stream((sparse.csr_matrix(x), y))
    assert list(dense.dicts()) == list(thin.dicts()) == [{"1": 2.0}, {"0": 1.0}]
    assert dense.labels.tolist() == thin.labels.tolist() == ["1", "0"]
    rows = stream((np.array([[np.inf], [1.0]]), y))
    assert [len(batch) for batch in rows] == [1]
    assert rows.refusals.first == [
        ("the table", 1, "a value is not finite, or beyond 1e100: 'inf'; leave it out, or scale it")
    ]


# -- the model ----------------------------------------------------------------------------------------------------

PATTERN = [f"{'ab'[i % 2]} |f {'left' if i % 2 else 'right'} n{i % 7}" for i in range(60)]


def test_batches_feed_run_and_learners_alike():
    (batch,) = stream(PATTERN)
    trace = linmax.run("perceptron", batch.instances, batch.labels, discover=True)
    one = linmax.Learner("perceptron")
    single = [one.learn(row, label=label) for row, label in zip(batch.dicts(), batch.labels, strict=True)]
    model = linmax.StreamModel("perceptron", scale="none")
    assert trace.predictions.tolist() == single == model.learn(batch).tolist()


@pytest.mark.parametrize("scale", ["none", "auto", "max", "log"])
@pytest.mark.parametrize(
    "learner", ["perceptron", "AR-perceptron", "winnow(1.1)", "combine(perceptron, A-winnow(1.2))"]
)
def test_saved_and_continued(tmp_path, learner, scale):
    whole, cut = linmax.StreamModel(learner, scale=scale), linmax.StreamModel(learner, scale=scale)
    expected = np.concatenate([whole.learn(batch) for batch in stream(PATTERN, model=whole, rows=20)])
    found = []
    for begin in range(0, 60, 20):
        found += [cut.learn(batch) for batch in stream(PATTERN[begin : begin + 20], model=cut)]
        cut.save(tmp_path / "model")
        cut = linmax.StreamModel.load(tmp_path / "model")
    assert np.concatenate(found).tolist() == expected.tolist()
    mine, theirs = cut.state()[1], whole.state()[1]
    assert {n: a.tobytes() for n, a in mine.items()} == {n: a.tobytes() for n, a in theirs.items()}


def test_importance_and_lines_without_labels():
    model = linmax.StreamModel("perceptron")
    (batch,) = stream(["a 2 |f x", "|f x y", "b 0 |f z", "b |f y"], model=model)
    assert model.learn(batch).tolist() == [None, "a", "a", "a"]
    assert model.trials == 2
    assert model.classes == ["a", "b"]
    weighed, once = (linmax.StreamModel("perceptron", scale="none") for _ in range(2))
    for model, lines in ((weighed, ["a |f x", "b 2 |f y"]), (once, ["a |f x", "b |f y"])):
        (batch,) = stream(lines, model=model)
        model.learn(batch)
    steps = dict(once.weights["attributes"]["f^y"])
    assert weighed.weights["attributes"]["f^y"] == {name: 2.0 * weight for name, weight in steps.items()}
    assert any(steps.values())


def test_probabilities_and_unknown_names():
    model = linmax.StreamModel("perceptron")
    for batch in stream(PATTERN, model=model):
        model.learn(batch)
    before = len(model._vocabulary)
    (batch,) = stream(["|f left never seen", "|f"], model=model, grow=False)
    assert len(model._vocabulary) == before
    assert batch.unknown == 2
    table = model.predict_proba(batch)
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    assert model.predict(batch)[0] == "b"
    assert table[0].argmax() == model.classes.index("b")


def test_words_are_summed_after_any_number_of_lines():
    """Where a word was met is stamped with the number of the line, which must not be rounded."""
    words = Vocabulary()
    words.names.sizes[SERIAL] = 2**31
    data = b"a | x y z x w y\n" * 3 + b"b | v z z x\n"
    rows = [row for batch in StreamReader([io.BytesIO(data)], "vw", vocabulary=words) for row in batch.dicts()]
    assert rows == [{"x": 2.0, "y": 2.0, "z": 1.0, "w": 1.0}] * 3 + [{"v": 1.0, "z": 2.0, "x": 1.0}]


def test_names_from_arrays_that_are_read_only():
    words = Vocabulary()
    words.numbers(["red", "green", "a name longer than eight bytes"])
    arrays = {name: array.copy() for name, array in words.arrays().items()}
    for array in arrays.values():
        array.flags.writeable = False
    again = Vocabulary.from_arrays(arrays)
    assert [again[i] for i in range(len(again))] == ["red", "green", "a name longer than eight bytes"]
    assert again.numbers(["green", "blue"]).tolist() == [1, 3]


def test_hashed_names():
    model = linmax.StreamModel("perceptron", hash_bits=6)
    for batch in stream(PATTERN, model=model):
        predicted = model.learn(batch)
    assert model.features == 64
    assert (predicted != batch.labels).sum() < 20
    with pytest.raises(ValueError, match="hash_bits"):
        linmax.StreamModel("perceptron").learn(next(iter(stream(PATTERN, hash_bits=4))))


def test_rules_that_need_small_attributes():
    model = linmax.StreamModel("winnow(1.1)", scale="none")
    (batch,) = stream(["1 1:5", "2 2:7"], model=model)
    model.learn(next(iter(stream(["1 1:1"], model=model))))
    with pytest.raises(ValueError, match="needs attributes in \\[-1, 1\\], but they reach 7"):
        model.learn(batch)
    scaled = linmax.StreamModel("winnow(1.1)")
    (batch,) = stream(["a,y", "500,p", "2,q"], format="csv", model=scaled)
    scaled.learn(batch)
    assert scaled._scaling.kind == "max"


def test_other_batches_are_refused():
    model = linmax.StreamModel("perceptron")
    model.learn(next(iter(stream(PATTERN))))
    with pytest.raises(ValueError, match="model=model"):
        model.learn(next(iter(stream(PATTERN))))
    table = linmax.StreamModel("perceptron")
    table.learn(next(iter(stream(["a,b,y", "1,2,p"], format="csv", model=table))))
    batch = next(iter(stream(["b,a,y", "1,2,p"], format="csv", model=table)))
    assert batch.dense.tolist() == [[2.0, 1.0]]  # by name


def test_20_newsgroups_progressively():
    import os

    folder = os.environ.get("LINMAX_DATA")
    path = Path(folder or "") / "text_20newsgroups" / "test.tsv.gz"
    if not folder or not path.exists():
        pytest.skip("LINMAX_DATA does not name a folder with text_20newsgroups")
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    np.random.default_rng(0).shuffle(lines)
    model = linmax.StreamModel("A-perceptron")
    wrong = sum(int((model.learn(batch) != batch.labels).sum()) for batch in stream(lines[:4000], model=model))
    assert model._scaling.in_effect == "idf"
    assert wrong / 4000 < 0.33


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "linmax-reader"]


@pytest.mark.parametrize("taken", [0, 1])
def test_reading_starts_at_once_and_stops_without_reader(taken: int) -> None:
    reached = threading.Event()

    def lines() -> Iterator[str]:
        for number in range(1000):
            if number == 10:
                reached.set()
            yield f"1 {number + 1}:1"

    before = set(readers())
    batches = iter(stream(lines(), format="svmlight", rows=100))
    assert reached.wait(60)
    (reader,) = set(readers()) - before
    for _ in range(taken):
        next(batches)
    del batches
    reader.join(60)
    assert not reader.is_alive()


@pytest.mark.small
@pytest.mark.parametrize("learner", ["perceptron", "A-winnow(1.3)", "naive-bayes"])
def test_names_never_learned_from_in_a_prediction(learner: str) -> None:
    """They have the weight that they start with, the same for every class: predict says what learn would."""
    model = linmax.StreamModel(learner, scale="none")
    lines = ["a |w x:1", "b |w y:1", "a |w x:0.5 y:0.25"]
    for batch in stream(lines, format="vw", model=model):
        model.learn(batch)
    met = model.features
    (batch,) = stream(["b |w y:1 " + " ".join(f"n{i}:1" for i in range(3000))], format="vw", model=model)
    predicted = model.predict(batch).tolist()
    assert np.isfinite(model.scores(batch)).all()
    assert model.features == met
    assert model.learn(batch).tolist() == predicted
    assert model.features == met + 3000
