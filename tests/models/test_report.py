"""What a report points out: suspicious voters and labels, accuracy by value, the decision, tables and notebooks."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmax
from linmax.cli import main
from linmax.models.calibration import Bin, Reliability
from linmax.models.page import line_chart, marks
from linmax.models.report import MOST_VOTERS_PAIRED, Chart, Report, interval


def jury(size: int = 600, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Six voters, right in 80 %, four classes."""
    random = np.random.default_rng(seed)
    labels = np.array(list("abcd"))[random.integers(4, size=size)]
    other = np.array(list("abcd"))[random.integers(4, size=(6, size))]
    return {f"v{i}": np.where(random.random(size) < 0.75, labels, other[i]) for i in range(6)}, labels


def report_of(table: dict[str, Any], labels: Any, **options: Any) -> Report:
    return linmax.VoteFusion(**options).fit(table, labels).report()


def test_suspicious_voters_are_pointed_out() -> None:
    table, labels = jury()
    assert report_of(table, labels).suspicions() == []
    odd = {"leak": labels, "always": np.full(600, "c"), "twin": table["v1"]}
    report = report_of(table | odd, labels)
    told = report.suspicions()
    assert len(told) == 3
    assert "leak equals the label in all 600 rows" in " ".join(told)
    assert "always always answers 'c', in 600 rows" in " ".join(told)
    assert "v1 and twin give the same answer in every row" in " ".join(told)
    assert "Check this first" in str(report)
    assert report.to_dict()["suspicions"] == told
    assert report.decision[0] == "Check leak first"
    few = {name: column[:40] for name, column in (table | odd).items() if name != "leak"}  # too few rows for a panel
    assert report_of(few, labels[:40]).decision[0] == "Use all voters but always and twin"
    always = {"one": np.full(40, "c"), "two": np.full(40, "d")}
    assert report_of(always, labels[:40]).decision[0] == "Use none of these voters"
    same = report_of({"one": np.full(60, "a"), "two": np.full(60, "a")}, np.full(60, "a"))
    assert same.suspicions() == []  # with one class alone everybody is constant


def test_a_constant_voter_is_not_counted_as_independent() -> None:
    table, labels = jury()
    first, second = (report_of(votes, labels).details for votes in (table, table | {"always": np.full(600, "c")}))
    assert first is not None
    assert second is not None
    assert second.independent == pytest.approx(first.independent)


def test_thousands_of_voters_are_not_compared_with_each_other() -> None:
    labels = np.array(["a", "b"])
    report = report_of({f"v{i}": labels for i in range(MOST_VOTERS_PAIRED + 1)}, labels, learner="perceptron")
    assert report.details is not None
    assert report.details.independent is None
    assert "likeness" not in vars(report.details)
    assert "independent" not in str(report)


def test_labels_that_look_wrong_are_found_and_those_of_hard_rows_are_not(tmp_path: Path) -> None:
    table, labels = jury(1000)
    wrong = np.random.default_rng(5).choice(1000, 12, replace=False)
    changed = labels.copy()
    changed[wrong] = [{"a": "b", "b": "c", "c": "d", "d": "a"}[label] for label in labels[wrong].tolist()]
    report = report_of(table, changed)
    found = report.suspicious_labels()
    rows = {doubt.row for doubt in found}
    assert len(rows & set(wrong.tolist())) >= 9
    assert len(rows - set(wrong.tolist())) <= 6
    for doubt in found:
        assert doubt.label == changed[doubt.row]
        assert doubt.probability > 0.5 > 0.01 >= doubt.of_label
        assert doubt.voters == sum(column[doubt.row] == doubt.answer for column in table.values())
    assert [doubt.probability for doubt in found] == sorted((doubt.probability for doubt in found), reverse=True)
    assert f"{len(found)} labels of 1,000 look wrong" in str(report)

    path, written = tmp_path / "votes.csv", tmp_path / "doubts.csv"
    lines = zip(*table.values(), changed, strict=True)
    path.write_text("\n".join([",".join([*table, "label"]), *(",".join(line) for line in lines)]) + "\n")
    assert main(["fuse", str(path), "--shuffle", "1", "--suspicious", str(written)]) == 0
    with written.open(newline="") as file:
        listed = list(csv.DictReader(file))
    assert listed
    for line in listed:
        assert changed[int(line["line"]) - 2] == line["label"]  # the header is line 1
    assert len({int(line["line"]) - 2 for line in listed} & set(wrong.tolist())) >= 9


def test_labels_of_scores_that_look_wrong_are_found() -> None:
    votes, labels = jury(600)
    scores = {name: np.where(column[:, None] == np.array(list("abcd")), 0.7, 0.1) for name, column in votes.items()}
    wrong = np.arange(100, 600, 50)
    changed = labels.copy()
    changed[wrong] = [{"a": "b", "b": "c", "c": "d", "d": "a"}[label] for label in labels[wrong].tolist()]
    found = report_of(scores, changed, classes=list("abcd")).suspicious_labels()
    assert len({doubt.row for doubt in found} & set(wrong.tolist())) >= 7
    assert len(found) <= 14
    other = report_of(scores, changed, classes=list("abcd"), normalize="borda")  # stored scores are logarithms
    assert other.suspicious_labels() == []


def test_accuracy_by_value_has_intervals_and_its_definition() -> None:
    table, labels = jury(400)
    subject = np.array(["law", "maths"])[(np.arange(400) % 4 == 0).astype(int)]
    table["v0"] = np.where(subject == "law", labels, "a")
    report = report_of(table | {"subject": subject}, labels, by="subject")
    rows = {(row["value"], row["voter"]): row for row in report.accuracy_by()}
    assert len(rows) == 2 * 7  # six voters and the fusion
    row = rows["maths", "v0"]
    right = (labels == "a")[subject == "maths"]
    assert row["trials"] == 100
    assert row["accuracy"] == pytest.approx(right.mean())
    assert (row["low"], row["high"]) == pytest.approx(interval(right.sum(), 100))
    assert rows["law", "v0"]["accuracy"] == 1.0
    assert "Accuracy by value" in str(report)
    shown = f"{100 * row['accuracy']:.1f} % ({100 * row['low']:.0f} to {100 * row['high']:.0f})"
    line = next(line for line in str(report).split("Accuracy by value")[1].splitlines() if line.startswith("v0"))
    assert shown in line
    assert report.to_dict()["by"]["law"]["accuracy"]["v0"][0] == 1.0


def test_a_confusion_counts_votes_by_label() -> None:
    report = report_of({"v": ["a", "b", None, "b"] * 20, "w": ["a", "b", "a", "a"] * 20}, ["a", "b", "a", "a"] * 20)
    confusion = report.confusion("v")
    assert confusion.classes == ("a", "b")
    assert confusion.counts.tolist() == [[20, 20, 20], [0, 20, 0]]
    assert "Votes of v, by label" in str(confusion)
    with pytest.raises(ValueError, match="voter must be one of v, w; got 'x'"):
        report.confusion("x")


@pytest.mark.small
def test_intervals_of_an_accuracy_cover_it() -> None:
    random = np.random.default_rng(0)
    for share in (0.5, 0.9, 0.98):
        ends = [interval(count, 60) for count in random.binomial(60, share, 2000).tolist()]
        assert np.mean([low <= share <= high for low, high in ends]) > 0.93


def test_the_decision_comes_first() -> None:
    table, labels = jury(900)
    noise = {f"noise {i}": np.random.default_rng(i).permutation(labels) for i in range(8)}
    report = report_of(table | noise, labels)
    headline, text = report.decision
    assert headline.startswith("Use these ")
    assert "noise" not in headline + text
    assert text.startswith("Expect ")
    assert str(report).startswith(headline[:40])
    assert report._repr_html_().index(headline) < report._repr_html_().index("<h2>")
    flat, flat_labels = {"good": labels, "bad": np.random.default_rng(3).permutation(labels)}, labels
    assert "good" in report_of(flat, flat_labels).decision[0]


def test_few_rows_of_a_bin_give_no_verdict() -> None:
    table, labels = jury(300)
    report = report_of(table, labels)
    few = (Bin(0.35, 0.0, 4), Bin(0.95, 0.94, 200))
    many = (Bin(0.35, 0.0, 40), Bin(0.95, 0.94, 200))
    for bins, words in (
        (few, "agree with how often"),
        (many, "are too sure: where they are about 35.0 %, 0.0 % of 40"),
    ):
        judged = Reliability(sum(part.trials for part in bins), 0.3, 0.02, 0.02, bins)
        shown = str(Report(report.learner, report.online, None, report.voters, reliability=judged))
        assert words in " ".join(shown.split())


@pytest.mark.small
def test_ticks_stand_where_their_numbers_are() -> None:
    assert marks([1, 2, 3, 29], 1, 29, exact=True)[-1] == 29
    assert set(marks(range(1, 101), 1, 100, exact=True)) <= set(range(1, 101))
    chart = line_chart(Chart([1, 5, 29], {"x": [0.5, 0.6, 0.7]}, "about", "voters", dots=True))
    circles, texts = chart.split("<circle")[1:], chart.split("<text")
    for value in ("1", "5", "29"):
        place = next(text.split('x="')[1].split('"')[0] for text in texts if f">{value}</text>" in text)
        assert any(f'cx="{place}"' in circle for circle in circles)
    counted = line_chart(Chart([0.2, 0.9], {"x": [0.1, 0.9]}, "", "", dots=True, square=True, counts=[3, 50]))
    assert counted.count("hollow") == 1
    assert ">50</text>" in counted


def test_tables_become_frames_and_notebooks_show_the_core() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table, labels = jury(300)
    fusion = linmax.VoteFusion().fit(table, labels)
    report = fusion.report()
    for name, rows in report.tables().items():
        assert isinstance(report.to_pandas(name), pd.DataFrame)
        assert len(report.to_pandas(name)) == len(report.to_polars(name)) == len(rows)
        assert isinstance(report.to_polars(name), pl.DataFrame)
    assert set(report.to_pandas()["name"]) == set(table)
    with pytest.raises(ValueError, match="table must be one of comparisons, voters"):
        report.to_pandas("weights")
    assert fusion._repr_html_() == report._repr_html_()
    assert fusion._repr_html_().startswith('<div class="linmax"><style>')
    assert "VoteFusion" in linmax.VoteFusion()._repr_html_()
