"""True and false, dates and numbers written as text: the same rows from every format, and nothing taken in silence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import linmax
from linmax.cli import main
from linmax.io import vocabulary
from linmax.io.batch import Classes

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")


def rows(source: object, **options: object) -> tuple[list, list[str], list]:
    reader = linmax.stream(source, **options)
    found = [pair for batch in reader for pair in zip(batch.labels.tolist(), batch.dicts(), strict=True)]
    return found, reader.notes, reader.refusals.first


def frame_of(size: int = 60) -> object:
    draw = np.random.default_rng(1)
    frame = pd.DataFrame({"on": draw.random(size) < 0.5, "n": draw.normal(size=size).round(3)})
    frame["y"] = frame.on ^ (frame.n > 0.0)
    return frame


def written(frame: object, folder: Path) -> dict[str, Path]:
    """The same rows in every format that has true and false."""
    paths = {kind: folder / f"rows.{kind}" for kind in ("csv", "tsv", "jsonl", "parquet", "feather")}
    frame.to_csv(paths["csv"], index=False)
    frame.to_csv(paths["tsv"], index=False, sep="\t")
    frame.to_json(paths["jsonl"], orient="records", lines=True)
    frame.to_parquet(paths["parquet"])
    frame.to_feather(paths["feather"])
    capitals = frame.replace({True: "TRUE", False: "FALSE"})
    capitals.to_csv(folder / "capitals.csv", index=False)  # as R writes them
    return paths | {"capitals": folder / "capitals.csv"}


def test_true_and_false_are_numbers_and_classes_from_every_format(tmp_path: Path) -> None:
    frame = frame_of()
    wanted = [(str(y), {"on": float(on), "n": n}) for on, n, y in frame.itertuples(index=False)]
    for source in [frame, pa.Table.from_pandas(frame), *written(frame, tmp_path).values()]:
        found, _, refused = rows(source)
        told = [(y.capitalize(), {name: x[name] for name in ("on", "n") if x.get(name)}) for y, x in found]
        assert told == [(y, {name: v for name, v in x.items() if v}) for y, x in wanted], source
        assert not refused


def test_true_and_false_with_gaps(tmp_path: Path) -> None:
    frame = pd.DataFrame({"on": [True, None, False, True], "n": [1, 2, 3, 4], "y": [True, False, None, True]})
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    for source in (frame, pa.table({name: frame[name].tolist() for name in frame}), tmp_path / "gaps.csv"):
        found, _, _ = rows(source)
        assert [y for y, _ in found] == ["True", "False", None, "True"]
        assert [x.get("on", 0.0) for _, x in found] == [1.0, 0.0, 0.0, 1.0]


def test_a_model_of_one_format_knows_true_and_false_of_another(tmp_path, capsys, monkeypatch) -> None:
    paths = written(frame_of(200), tmp_path)
    monkeypatch.chdir(tmp_path)
    for learned, others in {"parquet": ("csv", "capitals"), "csv": ("parquet", "tsv", "capitals")}.items():
        assert main(["learn", str(paths[learned]), "--learner", "nearest", "--model", "m", "--quiet"]) == 0
        errors = set()
        for other in (learned, *others):
            assert main(["predict", "m", str(paths[other]), "--out", "o", "--json", "figures"]) == 0
            errors.add(json.loads(Path("figures").read_text())["mistakes"])
        assert len(errors) == 1
        assert errors.pop() < 20
    assert "not learned" not in capsys.readouterr().err


def test_known_classes_stay_distinct() -> None:
    classes = Classes(["true", "True"])
    assert [classes.number(word) for word in ("True", "true", "TRUE", "False", "FALSE")] == [1, 0, 0, 2, 2]
    assert classes.names == ["true", "True", "False"]


def test_dates_are_left_out_of_every_format(tmp_path: Path) -> None:
    frame = pd.DataFrame({"when": ["2024-01-05", "2024-02-29"], "n": [1.5, 2.5], "y": ["p", "q"]})
    paths = written(frame, tmp_path)
    for source in [frame, pa.Table.from_pandas(frame), *paths.values()]:
        found, notes, _ = rows(source)
        assert found == [("p", {"n": 1.5}), ("q", {"n": 2.5})]
        assert "Ignored, being dates or times: 'when'." in notes
        assert rows(source, categorical=["when"])[0][0] == ("p", {"when=2024-01-05": 1.0, "n": 1.5})


def test_dates_within_objects_are_left_out() -> None:
    lines = [json.dumps({"label": "p", "seen": {"at": f"2024-01-0{i}T10:00:00Z", "n": i}}) for i in range(1, 5)]
    found, notes, _ = rows(lines, format="jsonl")
    assert found[1] == ("p", {"seen.n": 2.0})
    assert "Ignored, being dates or times: 'seen.at'." in notes


@pytest.mark.parametrize("shown", ["1,275.35", "$671.82", "12 %", "1'250", "1.250,75"])
def test_formatted_numbers_are_reported(shown: str) -> None:
    lines = ["price;n;y", *(f'"{shown}";{i};{"pq"[i % 2]}' for i in range(9))]
    _, notes, _ = rows(lines, format="csv")
    told = [note for note in notes if "'price'" in note]
    assert told == [
        f"The values of 'price', such as {shown!r}, are taken for categories; if they are numbers, write them plainly "
        "(1234.5)."
    ]
    assert not [note for note in rows(lines, format="csv", categorical=["price"])[1] if "'price'" in note]


def test_numbers_as_text_are_reported() -> None:
    table = {"n": ["1.5", "2.5"], "kind": ["a", "b"], "y": ["p", "q"]}
    lines = [json.dumps({"n": n, "kind": kind, "label": y}) for n, kind, y in zip(*table.values(), strict=True)]
    for found in (rows(pd.DataFrame(table)), rows(pa.table(table)), rows(lines, format="jsonl")):
        told = [note for note in found[1] if "as numbers" in note]
        assert told == [
            "The values of 'n', such as '1.5', are taken for categories; if they are numbers, give them as numbers, not "
            "as text."
        ]


def test_a_number_that_python_writes_as_nan_is_missing() -> None:
    found, _, refused = rows([json.dumps({"label": "p", "n": float("nan"), "m": 2.0})], format="jsonl")
    assert found == [("p", {"m": 2.0})]
    assert not refused


@pytest.mark.parametrize(
    ("line", "attributes"),
    [
        ('{"label": "p", "a.b": 1, "a": {"b": 2}}', {"a.b": 3.0}),
        ('{"label": "p", "features": {"n": 1}, "n": 2}', {"n": 3.0}),
    ],
)
def test_an_attribute_from_two_places_is_summed(line: str, attributes: dict[str, float]) -> None:
    found, _, refused = rows([line], format="jsonl")
    assert found == [("p", attributes)]
    assert not refused


def test_the_names_of_all_columns_are_made_ready_together(monkeypatch: pytest.MonkeyPatch) -> None:
    made, prefixes = [], vocabulary._prefixes
    monkeypatch.setattr(vocabulary, "_prefixes", lambda heads: made.append(len(heads)) or prefixes(heads))
    lines = [
        ",".join([*(f"n{i}" for i in range(500)), "y"]),
        *[",".join(["1"] * 500 + ["p"])] * 4,
        ",".join(["2"] * 500 + ["q"]),
        ",".join(["word"] * 500 + ["q"]),
    ]
    found, _, _ = rows(lines, format="csv")
    assert found[5] == ("q", {f"n{i}=word": 1.0 for i in range(500)})
    assert found[4] == ("q", {f"n{i}": 2.0 for i in range(500)})
    assert len([many for many in made if many > 1]) == 1
