"""Small drawings for a page, as SVG whose colours the page's style gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor

import numpy as np

__all__ = ["heat_map", "line_chart", "ticks"]

WIDE, HIGH = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 60, 14, 14, 44


def line_chart(
    x: Sequence[float] | np.ndarray,
    lines: Mapping[str, Sequence[float] | np.ndarray],
    about: str,
    below: str,
    *,
    dots: bool = False,
    square: bool = False,
) -> str:
    """Lines over x, with a legend; shares of 1 on the vertical axis. ``about`` is read to those who do not see it."""
    values = np.concatenate([np.asarray(line, float) for line in lines.values()])
    low, high = (0.0, 1.0) if square else (float(values.min()), float(values.max()))
    room = max(high - low, 0.02)
    low, high = (low, high) if square else (max(0.0, low - 0.05 * room), min(1.0, high + 0.05 * room))
    first, last = (0.0, 1.0) if square else (float(min(x)), float(max(x)))

    def across(value: float) -> float:
        return LEFT + (WIDE - LEFT - RIGHT) * (value - first) / ((last - first) or 1.0)

    def down(value: float) -> float:
        return TOP + (HIGH - TOP - BOTTOM) * (1.0 - (value - low) / ((high - low) or 1.0))

    parts = [f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{escape(about)}">']
    for tick in ticks(low, high):
        y = down(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{100 * tick:.4g} %</text>')
    for tick in np.linspace(first, last, 5):
        shown = f"{100 * tick:.0f} %" if square else f"{round(float(tick)):,}"
        anchor = "start" if tick == first else "end" if tick == last else "middle"
        parts.append(f'<text x="{across(float(tick)):.1f}" y="{HIGH - 24}" text-anchor="{anchor}">{shown}</text>')
    parts.append(f'<text x="{WIDE - RIGHT}" y="{HIGH - 3}" text-anchor="end">{escape(below)}</text>')
    if square:
        ends = across(0.0), down(0.0), across(1.0), down(1.0)
        parts.append('<line class="ideal" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'.format(*ends))
    for number, line in reversed(list(enumerate(lines.values()))):
        points = " ".join(f"{across(float(a)):.1f},{down(float(b)):.1f}" for a, b in zip(x, line, strict=True))
        parts.append(f'<polyline class="line c{number}" points="{points}"/>')
        if dots:
            marks = (
                f'<circle class="dot c{number}" cx="{p.split(",")[0]}" cy="{p.split(",")[1]}" r="3.5"/>'
                for p in points.split()
            )
            parts += marks
    parts.append("</svg>")
    legend = "".join(f'<li><span class="key c{i}"></span>{escape(name)}</li>' for i, name in enumerate(lines))
    return "".join(parts) + (f'<ul class="legend">{legend}</ul>' if len(lines) > 1 else "")


def ticks(low: float, high: float) -> list[float]:
    """Round shares between the two: at least three where they are not all but equal.

    Examples
    --------
    >>> [round(tick, 3) for tick in ticks(0.56, 0.77)]
    [0.6, 0.65, 0.7, 0.75]
    """
    step = next((s for s in (0.25, 0.1, 0.05, 0.02, 0.01, 0.005) if (high - low) / s >= 3.0), 0.002)
    return [n * step for n in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def heat_map(names: Sequence[str], table: np.ndarray) -> str:
    """A table of correlations, shaded; the names in full at the left, by number above."""
    head = "".join(f"<th>{i + 1}</th>" for i in range(len(names)))
    rows = []
    for i, name in enumerate(names):
        cells = []
        for j in range(len(names)):
            value = table[i, j]
            if i == j or not np.isfinite(value):
                cells.append("<td></td>")
            else:
                strength = min(1.0, abs(float(value)))
                kind = "warm" if value >= 0.0 else "cold"
                cells.append(f'<td class="{kind}" style="--s:{strength:.2f}">{value:.2f}</td>')
        rows.append(f"<tr><th>{i + 1}. {escape(name)}</th>{''.join(cells)}</tr>")
    return f'<div class="scroll"><table class="heat"><tr><th></th>{head}</tr>{"".join(rows)}</table></div>'
