"""Frames, Parquet and Arrow with columns of every type."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linmax
from streams_reference import label_name

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

DAY = datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(2024, 2, 29, 10, 0)
STRANGE = {
    "day": [DAY, DAY],
    "moment": [MOMENT, None],
    "clock": [datetime.time(10, 0), None],
    "list": [[1, 2], []],
    "raw": [b"ab", b"c"],
    "object": [{"a": 1}, {"a": 2}],
}


def rows(source: object, **options: object) -> tuple[list, list[str]]:
    reader = linmax.stream(source, **options)
    found = [pair for batch in reader for pair in zip(batch.labels.tolist(), batch.dicts(), strict=True)]
    return found, reader.notes


@pytest.mark.parametrize("how", ["arrow", "pandas", "parquet"])
@pytest.mark.parametrize("column", STRANGE)
def test_ignored_columns_are_reported(column: str, how: str, tmp_path: Path) -> None:
    table = pa.table({column: STRANGE[column], "n": [1.0, 2.0], "y": ["p", "q"]})
    source = {"arrow": table, "pandas": table.to_pandas(), "parquet": tmp_path / "t.parquet"}[how]
    parquet.write_table(table, tmp_path / "t.parquet")
    found, notes = rows(source)
    assert found == [("p", {"n": 1.0}), ("q", {"n": 2.0})]
    assert f"{column!r}." in notes[1]
    assert notes[1].startswith("Ignored, being ")
    assert rows(source, ignore=[column]) == (found, notes[:1])


def test_decimals_and_large_whole_numbers() -> None:
    large = 2**53 + 1
    table = pa.table({"d": [decimal.Decimal("1.5")], "big": [large], "y": [large]})
    found, notes = rows(table)
    assert found == [(str(large), {"d": 1.5, "big": float(large)})]
    assert "'big' has whole numbers beyond 2^53" in notes[1]
    assert rows(table, categorical=["big"])[0] == [(str(large), {"d": 1.5, f"big={large}": 1.0})]
    frame = pd.DataFrame({"d": [decimal.Decimal("1.5")], "big": [large], "y": [large]})
    assert rows(frame)[0] == found


def test_the_index_of_pandas_is_no_label(tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": [1.0, 2.0], "kind": ["p", "q"]}, index=[7, 8])
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv")
    expected = [("p", {"n": 1.0}), ("q", {"n": 2.0})]
    for source in (tmp_path / "t.parquet", tmp_path / "t.csv", frame, frame.reset_index(names="Unnamed: 0")):
        assert rows(source)[0] == expected


def test_label_by_name_and_words_of_texts() -> None:
    frame = pd.DataFrame({"Target": ["p", "q"], "t": ["Red apple", "Green’s “pear”"], "n": [1, 2]})
    found, notes = rows(frame, text=["t"])
    assert found == [
        ("p", {"n": 1.0, "red": 1.0, "apple": 1.0}),
        ("q", {"n": 2.0, "green": 1.0, "pear": 1.0}),
    ]
    assert notes == ["The label is 'Target' (by its name); columns: 1 number, 1 text."]


def test_words_among_numbers_and_missing_values() -> None:
    first = pd.DataFrame({"n": [1.0, np.nan], "c": pd.Categorical(["a", None]), "y": ["p", "q"]})
    second = pd.DataFrame({"n": [2.0, "many"], "c": ["b", "b"], "y": ["p", None]})
    reader = linmax.stream([first, second])
    found = [pair for batch in reader for pair in zip(batch.labels.tolist(), batch.dicts(), strict=True)]
    assert found == [
        ("p", {"n": 1.0, "c=a": 1.0}),
        ("q", {}),
        ("p", {"n": 2.0, "c=b": 1.0}),
        (None, {"n=many": 1.0, "c=b": 1.0}),
    ]
    assert "'n' has words among its numbers, the first in row 4" in reader.remarks()[0]


def test_nothing_to_learn_from() -> None:
    with pytest.raises(ValueError, match="'y' is the label.*'day'"):
        list(linmax.stream(pa.table({"day": [DAY], "y": ["p"]})))


def test_ids_become_tags() -> None:
    (batch,) = linmax.stream(pd.DataFrame({"who": ["u1", "u2"], "n": [1, 2], "y": ["p", "q"]}), id="who")
    assert batch.tags == ["u1", "u2"]
    assert list(batch.dicts()) == [{"n": 1.0}, {"n": 2.0}]


def test_large_whole_numbers_with_gaps_are_names_without_rounding() -> None:
    large = 2**53 + 1
    table = pa.table({"n": [1.0, 2.0, 3.0], "big": [large, None, large + 1], "y": [large, None, large + 1]})
    found, _ = rows(table, categorical=["big"])
    assert [label for label, _ in found] == [str(large), None, str(large + 1)]
    assert [set(row) for _, row in found] == [{"n", f"big={large}"}, {"n"}, {"n", f"big={large + 1}"}]
    assert "'big' has whole numbers beyond 2^53" in rows(table)[1][1]


def test_empty_texts_are_missing_as_in_csv() -> None:
    frame = pd.DataFrame({"n": [1.0, 2.0], "c": ["", "a"], "y": ["p", ""]})
    assert rows(frame)[0] == [("p", {"n": 1.0}), (None, {"n": 2.0, "c=a": 1.0})]


# -- drawn tables against a plain reading of Arrow's own objects ---------------------------------------------------

WORDS = st.sampled_from(["", "a", "b", "na", "x y", "7", "1.0", "ä", "\u2019", "line\nbreak", "=", "a" * 300])
FLOATS = st.one_of(st.floats(width=32), st.sampled_from([0.0, -0.0, 1e100, -1e101, 5e-324, 3.0]))
KINDS = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int64": (pa.int64(), st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1))),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "float32": (pa.float32(), st.floats(width=32)),
    "float64": (pa.float64(), FLOATS),
    "bool": (pa.bool_(), st.booleans()),
    "decimal": (pa.decimal128(12, 3), st.integers(-(10**8), 10**8).map(lambda n: decimal.Decimal(n) / 1000)),
    "words": (pa.string(), WORDS),
    "large": (pa.large_string(), WORDS),
    "codes": (pa.dictionary(pa.int32(), pa.string()), WORDS),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    size = draw(st.integers(1, 12))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5))
    columns = {f"{kind}{place}": (kind, st.none() | KINDS[kind][1]) for place, kind in enumerate(kinds)}
    columns["y"] = (label := draw(st.sampled_from(["words", "int64", "codes", "bool"])), st.none() | KINDS[label][1])
    made = {
        name: pa.array(draw(st.lists(cells, min_size=size, max_size=size)), KINDS[kind][0])
        for name, (kind, cells) in columns.items()
    }
    return pa.table(made)


def text(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def plainly(table: pa.Table) -> list[tuple[str | None, dict[str, float]]]:
    """The rows that a reader should find; those with a number beyond the range are refused."""
    found = []
    for row in table.to_pylist():
        attributes: dict[str, float] = {}
        for name, value in row.items():
            if name == "y" or value is None or value == "" or value != value:
                continue
            if isinstance(value, str):
                attributes[f"{name}={value}"] = 1.0
            elif float(value):
                attributes[name] = float(value)
        label = row["y"]
        if all(abs(value) <= 1e100 for value in attributes.values()):
            found.append((None if label is None or label == "" else label_name(text(label)), attributes))
    return found


@settings(max_examples=150, deadline=None)
@given(tables(), st.integers(1, 5), st.integers(1, 5), st.sampled_from(["none", "snappy", "zstd"]))
def test_parquet_against_a_plain_reading(tmp_path_factory, table: pa.Table, group: int, size: int, pack: str) -> None:
    path = tmp_path_factory.mktemp("drawn") / "t.parquet"
    parquet.write_table(table, path, row_group_size=group, compression=pack)
    expected = plainly(table)
    for source in (path, table):
        reader = linmax.stream(source, rows=size)
        found = [
            (label, {name: value for name, value in row.items() if value})
            for batch in reader
            for label, row in zip(batch.labels.tolist(), batch.dicts(), strict=True)
        ]
        assert found == expected
        assert reader.refusals.total == table.num_rows - len(expected)
