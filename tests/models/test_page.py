"""The report as a page: whole, safe, small, and it says what the report says."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import linmax
from linmax.cli import main

VOID = {"meta", "line", "circle", "polyline"}


class Checked(HTMLParser):
    """Every element is closed, and nothing is fetched from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe")
        assert not {"src", "href"} & {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text.append(data)


def read(path: Path) -> str:
    parser, text = Checked(), path.read_text(encoding="utf-8")
    parser.feed(text)
    assert parser.open == []
    assert "http" not in text
    assert "url(" not in text
    assert len(text) < 500_000
    return " ".join(parser.text)


def jury(size: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    random = np.random.default_rng(0)
    labels = np.array(list("abc"))[random.integers(3, size=size)]
    other = np.array(list("abc"))[random.integers(3, size=(6, size))]
    names = ["<b>anna</b>", "ben", "carl", "dora", "eve", "fay"]
    table = {}
    for i, name in enumerate(names):
        right = random.random(size) < (0.85 if i == 0 else 0.5)
        table[name] = np.where(right, labels, other[i])
    table["carl"] = table["ben"]  # the same voter twice
    half = size // 2
    table["dora"] = np.where(np.arange(size) < half, other[3], labels)  # right from half-way on
    return table, labels


def test_a_whole_page(tmp_path: Path) -> None:
    table, labels = jury(600)
    subject = np.array(["x", "y"] * 300)
    report = linmax.VoteFusion(by="subject").fit(table | {"subject": subject}, labels).report()
    report.to_html(tmp_path / "report.html")
    told = read(tmp_path / "report.html")
    headline, text = report.decision
    assert headline in told
    assert text in told.replace("\xa0", " ")
    assert f"{100 * report.online.accuracy['fusion']:.1f} %" in told.replace("\xa0", " ")
    assert told.index(headline) < told.index("Online: 600 trials")
    assert "<b>anna</b>" in told  # as text
    for heading in (
        "Accuracy over time",
        "Voters",
        "How alike",
        "How few",
        "What changed",
        "Accuracy by value",
        "Who is good",
    ):
        assert heading in told
    details = report.details
    assert details is not None
    assert details.likeness[1, 2] == pytest.approx(1.0)
    assert details.independent is not None
    assert 1.0 < details.independent < 6.0
    assert "ben and carl give the same answer" in told
    assert [change.voter for change in details.changes] == ["dora"]
    change = details.changes[0]
    assert abs(change.trial - 300) < 60
    assert change.after > 0.95 > 0.5 > change.before


def test_pages_of_little(tmp_path: Path) -> None:
    linmax.VoteFusion("perceptron").fit([["x", "y"], ["y", "x"]], ["x", "y"]).report().to_html(tmp_path / "two.html")
    assert "Use all 2 voters" in read(tmp_path / "two.html")
    scores = np.random.default_rng(0).random((80, 2, 3))
    fusion = linmax.VoteFusion("perceptron").fit(scores, scores[:, 0].argmax(axis=1))
    fusion.report(scores, scores[:, 0].argmax(axis=1)).to_html(tmp_path / "scores.html")
    assert "held-out trials" in read(tmp_path / "scores.html")
    learner = "combine(perceptron, winnow(1.1), how=wma)"  # no single weight vector
    linmax.VoteFusion(learner).fit([["x", "y"], ["y", "x"]] * 40, ["x", "y"] * 40).report().to_html(tmp_path / "c.html")
    read(tmp_path / "c.html")


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, labels = jury(120)
    rows = zip(*table.values(), labels, strict=True)
    path = tmp_path / "votes.csv"
    path.write_text("\n".join([",".join([*table, "label"]), *(",".join(row) for row in rows)]) + "\n")
    page = tmp_path / "page.html"
    assert main(["fuse", str(path), "--label", "label", "--html", str(page)]) == 0
    assert re.search(r"Page saved as .*page\.html", capsys.readouterr().out)
    read(page)
    assert "cost a trial" not in page.read_text(encoding="utf-8")
    assert main(["fuse", str(path), "--label", "label", "--html", str(tmp_path / "no" / "page.html")]) == 2
    costs = {name: 2.5 + place for place, name in enumerate(table)}
    (tmp_path / "costs.json").write_text(json.dumps(costs))
    assert main(["fuse", str(path), "--html", str(page), "--costs", str(tmp_path / "costs.json")]) == 0
    text = re.sub(r"</?span[^>]*>", "", page.read_text(encoding="utf-8"))
    text = text.replace("\xa0", " ")
    fusion = linmax.VoteFusion().fit(table, labels)
    for line in (panel := fusion.panel(costs)):
        assert f"<td>{line.cost:g}</td><td>{100.0 * line.accuracy:.1f}" in text
    assert f"at a cost of {panel.enough(0.01).cost:g} of {sum(costs.values()):g} a trial" in text
    assert "cost a trial" in text
    with pytest.raises(ValueError, match="costs must have a number for every voter"):
        fusion.report(costs={})


def test_print_uses_light_colors(tmp_path: Path) -> None:
    linmax.VoteFusion("perceptron").fit(*jury(60)).report().to_html(tmp_path / "jury.html")
    style = re.search(r"<style>(.*?)</style>", (tmp_path / "jury.html").read_text(encoding="utf-8"), re.DOTALL)
    assert style is not None
    style = ["", re.sub(r"\s*([{};,:+])\s*|;\s*(?=})", r"\1", style[1]).replace(";}", "}")]
    asked = re.findall(r"@media ([^{]*)\{", style[1])
    assert "print" in asked
    assert all(condition.startswith("screen and") for condition in asked if condition != "print")
    used, set_at_first = (
        set(re.findall(r"var\((--\w+)", style[1])),
        set(re.findall(r"(--\w+):", style[1].split("}")[0])),
    )
    assert used - {"--s"} <= set_at_first
    paper = style[1][style[1].index("@media print") :]
    for rule in ("overflow:visible", "break-inside:avoid", "break-after:avoid", "table-header-group"):
        assert rule in paper  # nothing is cut, no heading stands alone, tables have their head on every page
    for what in (
        "h2+p",
        "p:has(+svg)",
        "p:has(+.scroll)",
        "tr:nth-child(-n+3)",
    ):  # nor with no more than its first words
        assert what in paper.split("{break-after:avoid}")[0]


def test_no_table_is_wider_than_a_phone(tmp_path: Path) -> None:
    chromium, driver = shutil.which("chromium"), pytest.importorskip("playwright.sync_api")
    if chromium is None:
        pytest.skip("needs chromium on the PATH; apt-get install chromium")
    table, labels = jury(300)
    prices = dict.fromkeys(table, 1234.5)
    page = tmp_path / "page.html"
    linmax.VoteFusion().fit(table, labels).report(costs=prices).to_html(page)
    with driver.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        phone = browser.new_page(viewport={"width": 390, "height": 800})
        phone.goto(page.as_uri())
        widths = "[...document.querySelectorAll('.scroll')].map(box => box.scrollWidth - box.clientWidth)"
        beyond = phone.evaluate(widths)
        browser.close()
    assert len(beyond) >= 4
    assert max(beyond) <= 0
