"""Frames, Parquet and Arrow with columns of every type."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import numpy as np
import pytest

import linmax

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
def test_what_is_no_attribute_is_ignored_with_a_word(column: str, how: str, tmp_path: Path) -> None:
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


def test_the_label_is_chosen_by_name_and_texts_are_taken_apart() -> None:
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
    with pytest.raises(ValueError, match="no column to learn from: 'y' is the label; 'day' is dates or times"):
        list(linmax.stream(pa.table({"day": [DAY], "y": ["p"]})))


def test_ids_become_tags() -> None:
    (batch,) = linmax.stream(pd.DataFrame({"who": ["u1", "u2"], "n": [1, 2], "y": ["p", "q"]}), id="who")
    assert batch.tags == ["u1", "u2"]
    assert list(batch.dicts()) == [{"n": 1.0}, {"n": 2.0}]
