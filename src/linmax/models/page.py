"""The report as HTML: a whole page, or its core for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape as escaped
from importlib import resources
from math import ceil, floor, log10

import numpy as np

from linmax.models.report import FEWEST_IN_BIN, FIGURES, Bar, Chart, Grid, HeatMap, Line, Report, Section

__all__ = ["core", "page"]

WIDE, HIGH, SQUARE = 720, 300, 420  # of a chart; a square one is as wide as it is high
LEFT, RIGHT, TOP, BOTTOM = 60, 14, 14, 44
LEAST_RANGE = 0.04  # of the vertical axis
TICK_ROOM = 70  # between ticks on the horizontal axis


def page(report: Report) -> str:
    """Return the report as one HTML page that needs nothing else."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width,initial-scale=1"><title>Report of a jury</title><style>{_style()}</style></head>'
        f'<body class="linmax"><main>{_body(report, whole=True)}</main></body></html>\n'
    )


def core(report: Report, whole: bool) -> str:
    """Return the report, or what a terminal shows of it, as one element with its own style."""
    return f'<div class="linmax"><style>{_style()}</style>{_body(report, whole)}</div>'


def _style() -> str:
    return resources.files("linmax.models").joinpath("report.css").read_text(encoding="utf-8")


def _body(report: Report, whole: bool) -> str:
    headline, text = report.decision
    parts = [f"<h1>{escape(headline)}</h1><p class='lead'>{escape(text)}</p>", _tiles(report)]
    shown = [section for section in report.sections() if whole or not section.details]
    parts += [f"<section><h2>{escape(section.title)}</h2>{_html(section)}</section>" for section in shown]
    if whole:
        meanings = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in FIGURES.items())
        parts.append(f'<section><h2>What the figures mean</h2><dl class="figures">{meanings}</dl></section>')
        parts.append(f"<footer>Learner: {escape(report.learner)}. Made by linmax.</footer>")
    return "".join(parts)


def _tiles(report: Report) -> str:
    """Return at most five figures, each explained by a tooltip."""
    shown = report.test if report.test is not None else report.online
    if not shown.trials:
        return ""
    rivals, accuracy = shown.rivals, shown.accuracy
    best = rivals["best_voter"]
    where = f"{shown.trials:,} {'held-out ' if report.test is not None else ''}trials"
    tiles = [
        (f"{100 * accuracy['fusion']:.1f} %", f"right together, {where}", FIGURES["accuracy"]),
        (f"{100 * best.accuracy:.1f} %", f"best voter, {best.name}", FIGURES["best voter"]),
        (f"{100 * rivals['plurality'].accuracy:.1f} %", "plurality", FIGURES["plurality"]),
    ]
    details = report.details
    if details is not None and details.independent is not None:
        count = f"independent voters among {len(report.voters)}"
        tiles.append((f"{details.independent:.1f}", count, FIGURES["independent voters"]))
    if details is not None and details.suspicious_labels:
        text = "Rows whose label the trusted voters contradict; the list is below."
        tiles.append((f"{len(details.suspicious_labels):,}", "labels to check", text))
    cells = "".join(
        f'<li title="{escape(text)}"><b>{escape(figure)}</b><span>{escape(name)}</span></li>'
        for figure, name, text in tiles
    )
    return f'<ul class="tiles">{cells}</ul>'


def _html(section: Section) -> str:
    found = []
    for part in section.parts:
        if isinstance(part, Line):
            found.append(f"<p>{_spans(part)}</p>")
        elif isinstance(part, Grid):
            found.append(_table(part))
        else:
            found.append(line_chart(part) if isinstance(part, Chart) else heat_map(part))
    return "".join(found)


def _spans(line: str | Line) -> str:
    """Return text with its styles as classes."""
    if isinstance(line, str):
        return escape(line)
    return "".join(
        f'<span class="{style}">{escape(text)}</span>' if style not in ("", "default") else escape(text)
        for text, style in line.spans
    )


def _table(grid: Grid) -> str:
    bars = [bool(grid.rows) and isinstance(cell, Bar) for cell in (grid.rows[0] if grid.rows else grid.headings)]
    classes = []
    for i, (heading, is_bar) in enumerate(zip(grid.headings, bars, strict=True)):
        plain = not i or heading in grid.numbers
        name = "wide" if is_bar else "rare" if heading in grid.rare else "" if plain else "names"
        classes.append(f' class="{name}"' if name else "")
    head = []
    for name, mark in zip(grid.headings, classes, strict=True):
        title = f' title="{escape(FIGURES[name])}"' if name in FIGURES else ""
        head.append(f"<th{mark}{title}>{escape(name)}</th>")
    rows = []
    for row in grid.rows:
        cells = (_bar(cell) if isinstance(cell, Bar) else _spans(cell) for cell in row)
        rows.append("".join(f"<td{mark}>{cell}</td>" for cell, mark in zip(cells, classes, strict=True)))
    body = "".join(f"<tr>{cells}</tr>" for cells in rows)
    head_row = "".join(head)
    return f'<div class="scroll"><table><thead><tr>{head_row}</tr></thead><tbody>{body}</tbody></table></div>'


def _bar(cell: Bar) -> str:
    minus = " minus" if cell.share < 0.0 else ""
    return f'<span class="bar{minus}" style="width:{100.0 * abs(cell.share):.1f}%"></span>'


def escape(text: str) -> str:
    """Return text as HTML, in which no number is parted from its percent sign."""
    return escaped(text).replace(" %", "\u00a0%")


# -- charts -------------------------------------------------------------------------------------------------------


def line_chart(chart: Chart) -> str:
    """Return a chart as SVG, whose colors the style of the page gives, and its legend."""
    x, lines, square = chart.x, chart.lines, chart.square
    wide, high = (SQUARE, SQUARE) if square else (WIDE, HIGH)
    values = np.concatenate([np.asarray(line, float) for line in lines.values()])
    low, high_value = (0.0, 1.0) if square else (float(values.min()), float(values.max()))
    if not square:
        room = 0.05 * (high_value - low)
        low, high_value = max(0.0, low - room), min(1.0, high_value + room)
        if high_value - low < LEAST_RANGE:  # nearly equal shares must not look different
            middle = min(max((low + high_value) / 2.0, LEAST_RANGE / 2.0), 1.0 - LEAST_RANGE / 2.0)
            low, high_value = middle - LEAST_RANGE / 2.0, middle + LEAST_RANGE / 2.0
    first, last = (0.0, 1.0) if square else (float(min(x)), float(max(x)))

    def across(value: float) -> float:
        return LEFT + (wide - LEFT - RIGHT) * (value - first) / ((last - first) or 1.0)

    def down(value: float) -> float:
        return TOP + (high - TOP - BOTTOM) * (1.0 - (value - low) / ((high_value - low) or 1.0))

    kind = ' class="square"' if square else ""
    parts = [f'<svg{kind} viewBox="0 0 {wide} {high}" role="img" aria-label="{escape(chart.about)}">']
    for tick in ticks(low, high_value):
        y = down(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{wide - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{100 * tick:.4g} %</text>')
    for tick in ticks(0.0, 1.0) if square else marks(x, first, last, chart.dots):
        place = across(tick)
        shown = f"{100 * tick:.0f} %" if square else f"{round(tick):,}"
        anchor = "end" if place > wide - RIGHT - 15 else "middle"
        base = high - BOTTOM
        parts.append(f'<line class="grid" x1="{place:.1f}" x2="{place:.1f}" y1="{base}" y2="{base + 5}"/>')
        parts.append(f'<text x="{place:.1f}" y="{high - 24}" text-anchor="{anchor}">{shown}</text>')
    parts.append(f'<text x="{wide - RIGHT}" y="{high - 3}" text-anchor="end">{escape(chart.below)}</text>')
    if square:
        ends = across(0.0), down(0.0), across(1.0), down(1.0)
        parts.append('<line class="ideal" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'.format(*ends))
    for number, line in reversed(list(enumerate(lines.values()))):
        points = [(across(float(a)), down(float(b))) for a, b in zip(x, line, strict=True)]
        trusted = [i for i in range(len(points)) if not chart.counts or chart.counts[i] >= FEWEST_IN_BIN]
        path = " ".join(f"{points[i][0]:.1f},{points[i][1]:.1f}" for i in trusted)
        parts.append(f'<polyline class="line c{number}" points="{path}"/>')
        if chart.dots:
            for i, (a, b) in enumerate(points):
                hollow = "" if i in trusted else " hollow"
                parts.append(f'<circle class="dot c{number}{hollow}" cx="{a:.1f}" cy="{b:.1f}" r="4"/>')
        for count, (a, b) in zip(chart.counts, points, strict=False):
            above = b - 9 if b > TOP + 16 else b + 18
            anchor = "end" if a > wide - RIGHT - 20 else "middle"
            parts.append(f'<text x="{a:.1f}" y="{above:.1f}" text-anchor="{anchor}">{count:,}</text>')
    parts.append("</svg>")
    legend = "".join(f'<li><span class="key c{i}"></span>{escape(name)}</li>' for i, name in enumerate(lines))
    return "".join(parts) + (f'<ul class="legend">{legend}</ul>' if len(lines) > 1 else "")


def ticks(low: float, high: float) -> list[float]:
    """Return round shares between the two: at least three where they are not all but equal.

    Examples
    --------
    >>> [round(tick, 3) for tick in ticks(0.56, 0.77)]
    [0.6, 0.65, 0.7, 0.75]
    """
    step = next((s for s in (0.25, 0.1, 0.05, 0.02, 0.01, 0.005) if (high - low) / s >= 3.0), 0.002)
    return [n * step for n in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def marks(x: Sequence[float] | np.ndarray, first: float, last: float, exact: bool) -> list[float]:
    """Return where the horizontal axis has ticks: at round numbers, or ``exact``ly at points, as far as there is room.

    Examples
    --------
    >>> marks([1, 2, 3, 12, 29], 1, 29, exact=True), marks([1, 950], 1, 950, exact=False)
    ([1.0, 3.0, 12.0, 29.0], [200.0, 400.0, 600.0, 800.0])
    """
    if not exact:
        rough = max(last - first, 1.0) / 5.0
        size = 10.0 ** floor(log10(rough))
        step = max(1.0, next(size * n for n in (1, 2, 5, 10) if size * n >= rough))
        return [n * step for n in range(ceil(first / step), floor(last / step) + 1)]
    least = TICK_ROOM / 2 * ((last - first) or 1.0) / (WIDE - LEFT - RIGHT)
    found: list[float] = []
    for value in map(float, x):
        if not found or (value - found[-1] >= least and (value == last or last - value >= least)):
            found.append(value)
    return found


def heat_map(heat: HeatMap) -> str:
    """Return a shaded table; columns that are also the rows go by number."""
    alike = list(heat.rows) == list(heat.columns)
    names = [str(i + 1) for i in range(len(heat.columns))] if alike else heat.columns
    head = "".join(
        f'<th title="{escape(full)}">{escape(name)}</th>' for full, name in zip(heat.columns, names, strict=True)
    )
    low, high = (np.nanmin(heat.table), np.nanmax(heat.table)) if np.isfinite(heat.table).any() else (0.0, 1.0)
    rows = []
    for i, name in enumerate(heat.rows):
        cells = []
        for j, value in enumerate(heat.table[i]):
            if (alike and i == j) or not np.isfinite(value):
                cells.append("<td></td>")
            else:
                share = (value - low) / ((high - low) or 1.0) if heat.percent else min(1.0, abs(float(value)))
                kind = "cold" if heat.percent or value < 0.0 else "warm"
                shown = f"{100 * value:.0f}" if heat.percent else f"{value:.2f}"
                note = f' title="{escape(heat.notes[i][j])}"' if heat.notes else ""
                cells.append(f'<td class="{kind}" style="--s:{share:.2f}"{note}>{shown}</td>')
        number = f"{i + 1}. " if alike else ""
        rows.append(f"<tr><th>{number}{escape(name)}</th>{''.join(cells)}</tr>")
    kind = "heat" if alike else "heat named"
    corner = "%" if heat.percent else ""
    return f'<div class="scroll"><table class="{kind}"><tr><th>{corner}</th>{head}</tr>{"".join(rows)}</table></div>'
