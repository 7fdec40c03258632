"""The report of a fusion as one page: verdict first, then why, for somebody who decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from linmax.models.fusion.drawing import heat_map, line_chart
from linmax.models.fusion.report import listed

if TYPE_CHECKING:
    from linmax.models.fusion.comparison import Comparison, Rival
    from linmax.models.fusion.details import Details
    from linmax.models.fusion.report import Report

__all__ = ["page_of"]

VOTERS_SHOWN = 40  # rows of a table of voters
MAPPED = 12  # voters whose errors are compared
PAIRS = 5  # of voters that are most alike
RIVAL_NAMES = {
    "best_voter": "the best voter in hindsight",
    "best_so_far": "the best voter so far",
    "best_lately": "the best voter lately",
    "logit": "the conditional logit",
}
FOLLOWERS = ("best_so_far", "best_lately")  # rivals that follow one voter or another
STYLE = """
:root{--paper:#fff;--ink:#1c2127;--soft:#5c6670;--rule:#dde2e7;--card:#f5f7f9;--c0:#0b62c4;--c1:#b85c00;--c2:#6b7480;
--c3:#2b8a3e;--good:#1d7a34;--bad:#b3261e;--warm:200,80,20;--cold:30,100,190;color-scheme:light dark}
@media screen and (prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e8ebee;--soft:#9aa5b0;--rule:#313840;
--card:#1d2228;--c0:#6cb0ff;--c1:#ffa657;--c2:#9aa5b0;--c3:#6fd183;--good:#6fd183;--bad:#ff8a80;--warm:255,140,80;
--cold:110,170,255}}
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:52rem;margin:0 auto;padding:1.5rem 1rem 3rem}h1{font-size:1.6rem;line-height:1.25;margin:.2rem 0 .6rem}
h2{font-size:1.15rem;margin:2.2rem 0 .4rem;padding-top:1rem;border-top:1px solid var(--rule)}p{margin:.4rem 0}
.soft,figcaption,footer{color:var(--soft);font-size:.9rem}.tiles{display:grid;gap:.7rem;margin:1rem 0;
grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr))}.tile{background:var(--card);border-radius:.6rem;
padding:.7rem .9rem}.tile b{display:block;font-size:1.5rem;line-height:1.2}
.tile span{color:var(--soft);font-size:.85rem;overflow-wrap:anywhere}
svg{width:100%;height:auto;display:block}svg text{fill:var(--soft);font-size:12px}.grid{stroke:var(--rule)}
.line{fill:none;stroke-width:2}.line.c0{stroke-width:3}.ideal{stroke:var(--soft);stroke-dasharray:4 4}
.c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}.line.c2{stroke-dasharray:2 3}
.line.c3{stroke-dasharray:7 4}.dot{stroke:none}.dot.c0{fill:var(--c0)}
.legend{list-style:none;display:flex;flex-wrap:wrap;
gap:.2rem 1rem;padding:0;margin:.3rem 0;font-size:.9rem}.key{display:inline-block;width:1.4rem;height:.25rem;
margin-right:.4rem;vertical-align:middle}.key.c0{background:var(--c0)}.key.c1{background:var(--c1)}
.key.c2{background:var(--c2)}.key.c3{background:var(--c3)}.scroll{overflow-x:auto}table{border-collapse:collapse;
width:100%;font-size:.9rem}th,td{padding:.25rem .5rem;text-align:right;border-bottom:1px solid var(--rule);
font-variant-numeric:tabular-nums;white-space:nowrap}th:first-child,td:first-child{text-align:left;white-space:normal;
overflow-wrap:anywhere;min-width:8rem}thead th{color:var(--soft);font-weight:500}.bar{display:inline-block;height:.7rem;
background:var(--c0);border-radius:.15rem;min-width:1px;vertical-align:middle}.bar.minus{background:var(--bad)}
td.wide{width:35%;text-align:left}th.names,td.names{text-align:left;white-space:normal}
.heat td{text-align:center;padding:.2rem .3rem;font-size:.78rem}.heat th{font-size:.78rem;
font-weight:500}.warm{background:rgba(var(--warm),calc(var(--s)*.75))}.cold{background:rgba(var(--cold),calc(var(--s)*.75))}
tr.chosen td{font-weight:700}.beats{color:var(--good)}.loses{color:var(--bad)}footer{margin-top:2.5rem;
border-top:1px solid var(--rule);padding-top:.8rem}
@media screen and (max-width:30rem){.wide,.rare{display:none}h1{font-size:1.3rem}svg text{font-size:19px}
th,td{padding:.25rem .2rem}th{white-space:normal;vertical-align:bottom}.heat td{padding:.2rem .1rem}
.heat th:first-child{min-width:6rem}}
@media print{@page{margin:1.6cm 1.5cm}:root{--ink:#000;--soft:#444;--rule:#bbb;color-scheme:light}
body{font-size:10.5pt}main{max-width:none;padding:0}h1,h2,thead,h2+p,p:has(+svg),p:has(+.scroll),tr:nth-child(-n+3){break-after:avoid}
tr:nth-last-child(-n+2){break-before:avoid}
h2{margin-top:1.2rem;padding-top:.6rem}p{orphans:3;widows:3}
figure,svg,tr,.tile,.legend,.heat{break-inside:avoid}thead{display:table-header-group}.scroll{overflow:visible}
svg{max-height:8cm}svg+.legend,figcaption{break-before:avoid}.tile{border:1px solid var(--rule)}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""


def page_of(report: Report) -> str:
    """The whole page."""
    parts = [*_verdict(report)]
    details = report.details
    if details is not None and len(details.times) > 2:
        parts += _over_time(details)
    parts += _weights(report)
    if details is not None:
        parts += [*_alike(report, details), *_few(details)]
    parts += _calibration(report)
    if details is not None:
        parts += _changes(details)
    parts += _sides(report)
    learner = escape(report.learner)
    foot = (
        f"<footer>Learner: {learner}. Every trial was predicted before its label was seen, so that these figures are "
        "about answers that could have been given. Intervals are 95 % of a paired bootstrap. Made by linmax.</footer>"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width,initial-scale=1"><title>Report of a jury</title>'
        f"<style>{STYLE}</style></head><body><main>{''.join(parts)}{foot}</main></body></html>\n"
    )


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %"


def _verdict(report: Report) -> Iterator[str]:
    shown = report.test if report.test is not None else report.online
    if not shown.trials:
        yield "<h1>The fused jury has not seen a label yet</h1>"
        yield f"<p>How often it is right is not known; {report.unlabelled}.</p>"
        return
    where = "held-out trials" if report.test is not None else "trials, each answered before its label was seen"
    accuracy = shown.accuracy["fusion"]
    yield f"<h1>The fused jury is right {_percent(accuracy)} of the time</h1>"
    yield f"<p>On {shown.trials:,} {where}, it {_sentence(shown)}.</p>"
    yield from _tiles(report, shown)


def _sentence(shown: Comparison) -> str:
    """Whom the fusion beats, whom it loses to, and who is about as good."""
    words = {"beats": '<span class="beats">beats</span>', "loses to": '<span class="loses">loses to</span>'}
    told: dict[str, list[str]] = {}
    for key, rival in _rivals(shown).items():
        name = f"{RIVAL_NAMES.get(key, escape(rival.name))}{f' ({escape(rival.name)})' if key == 'best_voter' else ''}"
        size = "" if rival.verdict == "unclear" else f" by {100.0 * abs(rival.difference):.1f} points"
        interval = f"({100.0 * rival.low:+.1f} to {100.0 * rival.high:+.1f})"
        told.setdefault(rival.verdict, []).append(f"{name}{size} {interval}")
    return "; it ".join(f"{words.get(verdict, 'is about as good as')} {listed(told[verdict])}" for verdict in told)


def _rivals(shown: Comparison) -> dict[str, Rival]:
    """The rivals, those that were right and wrong exactly as the best voter left out."""
    best = shown.rivals["best_voter"]
    same = (best.wins, best.losses)
    return {key: r for key, r in shown.rivals.items() if key not in FOLLOWERS or (r.wins, r.losses) != same}


def _tiles(report: Report, shown: Comparison) -> Iterator[str]:
    tiles = [(_percent(shown.accuracy["fusion"]), "the fused jury")]
    for key, rival in _rivals(shown).items():
        name = f": {escape(rival.name)}" if key == "best_voter" else ""
        tiles.append((_percent(rival.accuracy), f"{RIVAL_NAMES.get(key, escape(rival.name))}{name}"))
    details = report.details
    if details is not None and details.independent is not None:
        tiles.append((f"{details.independent:.1f}", f"independent voters that these {len(details.voters)} amount to"))
    if details is not None and details.panel is not None:
        best = details.panel.enough()
        priced = "" if details.costs is None else f", cost {best.cost:g} a trial"
        be = "voter is" if len(best.voters) == 1 else "voters are"
        tiles.append((f"{len(best.voters)}", f"{be} enough ({_percent(best.accuracy)}{priced})"))
    yield (
        '<div class="tiles">'
        + "".join(f'<div class="tile"><b>{a}</b><span>{b}</span></div>' for a, b in tiles)
        + "</div>"
    )


def _over_time(details: Details) -> Iterator[str]:
    yield "<h2>Accuracy over time</h2><figure style='margin:0'>"
    middles = (details.times[1:] + details.times[:-1]) / 2.0
    smooth = {name: _smoothed(line) for name, line in details.curves.items()}
    yield line_chart(
        middles, smooth, "accuracy of the fusion and of what it is compared with, over the trials", "trial"
    )
    yield "<figcaption>Share of right answers, smoothed over neighbouring stretches of trials.</figcaption></figure>"


def _smoothed(line: np.ndarray) -> np.ndarray:
    padded = np.pad(line, 2, mode="edge")
    return np.convolve(padded, np.full(5, 0.2), mode="valid")


def _table(headings: Sequence[str], rows: Sequence[str], css: Sequence[str] = ()) -> str:
    marks = [f' class="{c}"' if c else "" for c in [*css, *[""] * (len(headings) - len(css))]]
    head = "".join(f"<th{mark}>{name}</th>" for name, mark in zip(headings, marks, strict=True))
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _weights(report: Report) -> Iterator[str]:
    yield "<h2>Whom the jury trusts</h2>"
    largest = max((abs(voter.weight or 0.0) for voter in report.voters), default=0.0) or 1.0
    rows = []
    for voter in report.voters[:VOTERS_SHOWN]:
        weight, css = voter.weight or 0.0, " minus" if (voter.weight or 0.0) < 0.0 else ""
        bar = f'<span class="bar{css}" style="width:{100.0 * abs(weight) / largest:.1f}%"></span>'
        told = "" if voter.weight is None else f"{weight:.3f}"
        numbers = f"<td>{told}</td><td>{_percent(voter.accuracy)}</td><td class='rare'>{_percent(voter.spoke)}</td>"
        rows.append(f'<tr><td>{escape(voter.name)}</td><td class="wide">{bar}</td>{numbers}</tr>')
    yield _table(["voter", "", "weight", "right", "spoke"], rows, ["", "wide", "", "", "rare"])
    if len(report.voters) > VOTERS_SHOWN:
        yield f'<p class="soft">And {len(report.voters) - VOTERS_SHOWN:,} more, of less weight.</p>'


def _alike(report: Report, details: Details) -> Iterator[str]:
    if details.independent is None:
        return
    place = {name: i for i, name in enumerate(details.voters)}
    chosen = [place[voter.name] for voter in report.voters[:MAPPED] if voter.name in place]
    yield "<h2>How alike their errors are</h2>"
    yield (
        f"<p>Voters that err together say the same thing twice. By the mean correlation of their errors the "
        f"{len(details.voters)} voters amount to <b>{details.independent:.1f}</b> independent ones.</p>"
    )
    upper = np.triu(np.nan_to_num(details.likeness, nan=-2.0), 1) - 3.0 * np.tri(len(details.voters))
    pairs = [np.unravel_index(i, upper.shape) for i in np.argsort(-upper, axis=None)[:PAIRS]]
    rows = [
        f"<tr><td>{escape(details.voters[i])} and {escape(details.voters[j])}</td>"
        f"<td>{details.likeness[i, j]:.2f}</td></tr>"
        for i, j in pairs
        if np.isfinite(details.likeness[i, j])
    ]
    yield _table(["most alike", "correlation of errors"], rows)
    yield f'<p class="soft">Of the heaviest {len(chosen)}; 1 is always together, 0 independent.</p>'
    yield heat_map([details.voters[i] for i in chosen], details.likeness[np.ix_(chosen, chosen)])


def _few(details: Details) -> Iterator[str]:
    panel = details.panel
    if panel is None:
        return
    best, whole = panel.enough(), panel[len(panel) - 1].cost
    priced = "" if details.costs is None else f", at a cost of <b>{best.cost:g}</b> of {whole:g} a trial,"
    yield "<h2>How few are enough</h2>"
    yield (
        f"<p><b>{len(best.voters)} of {len(details.voters)}</b> voters{priced} reach {_percent(best.accuracy)} alone, "
        f"all together {_percent(panel[len(panel) - 1].accuracy)}, on the last {panel.trials:,} such trials.</p>"
    )
    sizes = [len(line.voters) for line in panel]
    yield line_chart(sizes, {"accuracy": [line.accuracy for line in panel]}, "accuracy by voters", "voters", dots=True)
    rows, known = [], 0
    for line in panel:
        css = ' class="chosen"' if line is best else ""
        added = ", ".join(escape(name) for name in line.voters[known:][:3])
        more = len(line.voters) - known - 3
        known = len(line.voters)
        added += f" and {more} more" if more > 0 else ""
        rows.append(
            f"<tr{css}><td>{added}</td><td>{known}</td><td>{line.cost:g}</td><td>{_percent(line.accuracy)}</td></tr>"
        )
    yield _table(["and", "voters", "calls a trial" if details.costs is None else "cost a trial", "right alone"], rows)


def _calibration(report: Report) -> Iterator[str]:
    told = report.test_reliability or report.reliability
    if told is None or len(told.bins) < 2:
        return
    yield "<h2>Can its probabilities be believed?</h2>"
    good = told.calibration_error <= 2.0 * told.by_chance + 0.01
    yield (
        f"<p>{'Yes' if good else 'Not quite'}: stated confidence and share of right answers differ by "
        f"{100.0 * told.calibration_error:.1f} points on average over {told.trials:,} trials; true probabilities "
        f"would show about {100.0 * told.by_chance:.1f} by chance.</p>"
    )
    bins = {"right": [found.accuracy for found in told.bins]}
    x = [found.confidence for found in told.bins]
    yield line_chart(
        x, bins, "share of right answers by stated confidence", "stated confidence", dots=True, square=True
    )


def _changes(details: Details) -> Iterator[str]:
    yield "<h2>What changed, and when</h2>"
    if not details.changes:
        yield "<p>No voter's accuracy has changed beyond what chance explains.</p>"
        return
    rows = [
        f"<tr><td>{escape(c.voter)}</td><td>{c.trial:,}</td><td>{_percent(c.before)}</td><td>{_percent(c.after)}</td></tr>"
        for c in details.changes[:VOTERS_SHOWN]
    ]
    yield _table(["voter", "about trial", "right before", "right after"], rows)


def _sides(report: Report) -> Iterator[str]:
    if not report.sides:
        return
    yield "<h2>By side column</h2>"
    rows = []
    for side in report.sides[:VOTERS_SHOWN]:
        heaviest = ", ".join(f"{escape(name)} {weight:.2f}" for name, weight in list(side.weights.items())[:3])
        rows.append(f'<tr><td>{escape(side.name)}</td><td>{side.trials:,}</td><td class="names">{heaviest}</td></tr>')
    yield _table(["value", "trials", "most trusted there"], rows, ["", "", "names"])
