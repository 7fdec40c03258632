"""Reports of a fusion: for programs (plain numbers), the terminal (rich) and the browser (one HTML page)."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from math import ceil, floor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.bounds import adaptive_coverage
from linmax.engine.coverage import COVERAGES, LEVEL_STEPS
from linmax.models.asking import VoterPanels, order_by_worth, panel_of
from linmax.models.baselines import BEST_SO_FAR, FIRST_VOTER, FUSION, PLURALITY, Comparison, Rival, Tally
from linmax.models.model import Model
from linmax.models.reliability import Reliability

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
    from rich.table import Table
    from rich.text import Text

__all__ = ["Change", "Details", "Explanation", "Report", "Side", "Voter", "bar"]

BAR, SHORT_BAR = 20, 12  # characters
COVERAGE = 0.9  # of the prediction sets that are told of
LEVEL_STEP = float(LEVEL_STEPS[COVERAGES == COVERAGE][0])  # by which their levels move
TABLE_ROWS = 30  # voters, or values of side columns, in a table
VOTERS_NAMED = 3  # voters named beside a value of a side column
TEXT_WIDTH = 120  # of str()
VERDICT_COLOURS = {"beats": "green", "loses to": "red", "unclear": "yellow"}
STRETCHES = 40  # in which accuracy over time is shown
CHANGE_ERRORS = 3.5  # standard errors by which a voter's accuracy must have changed to be told of
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
WIDE, HIGH = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 60, 14, 14, 44


# -- what a report holds ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A voter whose accuracy changed, about which trial, and its accuracy before and after."""

    voter: str
    trial: int
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Details:
    """Copies of what a fusion had counted and kept when the report was made."""

    voters: tuple[str, ...]
    leader: int
    times: np.ndarray  # trials at the ends of stretches, from 0
    mistakes: np.ndarray  # (times, rivals): up to each
    rows: tuple[np.ndarray, np.ndarray]  # recent votes and labels
    learner: Any
    weights: np.ndarray
    scored: bool
    thresholds: bool
    costs: np.ndarray | None = None  # of asking each voter, if they are known

    @classmethod
    def of(
        cls,
        tally: Tally,
        voters: Sequence[str],
        recent: Any,
        model: Model,
        weights: Any,
        scored: bool,
        costs: np.ndarray | None = None,
    ) -> Details:
        """Take copies."""
        times = np.unique(np.linspace(0, tally.trials, min(STRETCHES, tally.trials) + 1).astype(int))
        points, counts = tally.points()
        table = np.array([np.interp(times, points, column) for column in counts.T]).T
        taken = tuple(voters), tally.leader, times, table, recent.rows(), model.learner, np.asarray(weights)
        return cls(*taken, scored, bool(model.layout.constant), costs)

    @cached_property
    def curves(self) -> dict[str, np.ndarray]:
        """Share of right answers in each stretch: of the fusion and of what it is compared with."""
        sizes = np.maximum(np.diff(self.times), 1)
        right = 1.0 - np.diff(self.mistakes, axis=0) / sizes[:, None]
        best = f"best voter, {self.voters[self.leader]}"
        places = {"fusion": FUSION, "plurality": PLURALITY, "best voter so far": BEST_SO_FAR}
        return {name: right[:, place] for name, place in {**places, best: FIRST_VOTER + self.leader}.items()}

    @cached_property
    def likeness(self) -> np.ndarray:
        """Correlation of the errors of every two voters, where both spoke; nan where that cannot be told."""
        votes, labels = self.rows
        n = len(self.voters)
        found = np.full((n, n), np.nan)
        width = min(votes.shape[1], n)
        spoke = votes[:, :width] >= 0
        wrong = np.where(spoke, votes[:, :width] != labels[:, None], 0).astype(float)
        both = spoke.T.astype(float) @ spoke
        first, joint = wrong.T @ spoke, wrong.T @ wrong
        with np.errstate(invalid="ignore", divide="ignore"):
            mean, other = first / both, (first / both).T
            found[:width, :width] = (joint / both - mean * other) / np.sqrt(mean * (1 - mean) * other * (1 - other))
        found[~np.isfinite(found)] = np.nan
        return found

    @cached_property
    def independent(self) -> float | None:
        """n / (1 + (n - 1) r): to how many independent voters these amount, r the mean correlation of their errors."""
        n = len(self.voters)
        pairs = self.likeness[~np.eye(n, dtype=bool)]
        if n < 2 or not np.isfinite(pairs).any():
            return None
        return float(n / (1.0 + (n - 1) * max(0.0, float(np.nanmean(pairs)))))

    @cached_property
    def panel(self) -> VoterPanels | None:
        """How few are enough; None of scores and of too few trials."""
        if self.scored or len(self.rows[1]) < 50 or len(self.voters) < 2:
            return None
        costs = np.ones(len(self.voters)) if self.costs is None else self.costs
        order = order_by_worth(self.weights, costs)
        return panel_of(self.learner, self.rows, order, costs, self.voters, self.thresholds)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Voters whose accuracy changed for good at some time, the largest change first."""
        found = []
        total = int(self.times[-1])
        for place, name in enumerate(self.voters):
            wrong = self.mistakes[:, FIRST_VOTER + place]
            best: tuple[float, Change] | None = None
            for cut in range(len(self.times) // 8, len(self.times) - len(self.times) // 8):
                t = int(self.times[cut])
                if min(t, total - t) < 50:
                    continue
                before, after = wrong[cut] / t, (wrong[-1] - wrong[cut]) / (total - t)
                share = wrong[-1] / total
                error = math.sqrt(max(share * (1 - share), 1e-9) * (1 / t + 1 / (total - t)))
                if best is None or abs(after - before) / error > best[0]:
                    best = abs(after - before) / error, Change(name, t, 1.0 - before, 1.0 - after)
            if best is not None and best[0] > CHANGE_ERRORS:
                found.append(best[1])
        return tuple(sorted(found, key=lambda change: -abs(change.after - change.before)))


def bar(share: float, width: int = BAR, *, ascii_only: bool = False) -> str:
    """A bar of this share of the width, in eighths of a character where the terminal has them; hollow if negative.

    Examples
    --------
    >>> bar(0.5, 8), bar(0.19, 8), bar(0.5, 8, ascii_only=True), bar(-0.5, 8), bar(-0.5, 8, ascii_only=True)
    ('████', '█▌', '####', '░░░░', '----')
    """
    negative, share = share < 0.0, min(abs(share), 1.0)
    if ascii_only or negative:
        drawn = ("-" if ascii_only else "░") if negative else "#"
        return drawn * max(round(share * width), int(negative))
    whole, eighths = divmod(round(share * width * 8), 8)
    return "█" * whole + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths]


class _Shown:
    """Text as rich would print it, without colours."""

    def __str__(self) -> str:
        from rich.console import Console

        screen = Console(file=io.StringIO(), width=TEXT_WIDTH, color_system=None, highlight=False)
        screen.print(self)
        assert isinstance(screen.file, io.StringIO)
        return "\n".join(line.rstrip() for line in screen.file.getvalue().splitlines()).strip("\n")


@dataclass(frozen=True)
class Voter:
    """A voter's weight, its share of all trials right (an abstention is not) and of those in which it spoke."""

    name: str
    weight: float | None
    accuracy: float
    spoke: float


@dataclass(frozen=True)
class Side:
    """A value of a side column, the trials in which it held, and each voter's weight where it holds, heaviest first."""

    name: str
    trials: int
    weights: Mapping[str, float]


@dataclass(frozen=True)
class Report(_Shown):
    """What `VoteFusion.report` returns: ``to_dict()`` for programs; ``print`` and rich show it to people.

    Attributes
    ----------
    online, test
        The fusion beside its rivals, on the trials that it learned from, each predicted before its label was seen, and
        on held-out ones.
    voters
        Heaviest first.
    normalisations
        Share of the weight under each normalisation, when raters were fused.
    sides
        The values of the side columns, the most frequent first; a voter's weight is then its mean over the trials.
    reliability, test_reliability
        Log loss and calibration error: of the newer half of the recent trials, with probabilities fitted to the older
        half alone, and of the held-out ones (see `linmax.models.reliability`). None of too few trials.
    coverage
        Share of the trials whose label was in the prediction set of each coverage, predicted before it was seen.
    """

    learner: str
    online: Comparison
    test: Comparison | None
    voters: tuple[Voter, ...]
    normalisations: Mapping[str, float] | None = None
    sides: tuple[Side, ...] = ()
    reliability: Reliability | None = None
    test_reliability: Reliability | None = None
    coverage: Mapping[float, float] = field(default_factory=dict)
    details: Details | None = field(default=None, repr=False, compare=False)

    @property
    def unlabelled(self) -> str:
        """What voters are trusted by as long as there is no label."""
        alike = len(self.voters) > 1 and len({voter.weight for voter in self.voters}) == 1
        return "this learner needs labels, and trusts all alike" if alike else "voters are trusted as far as they agree"

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the report as one page that needs nothing else: for the browser, the phone and the printer.

        Examples
        --------
        >>> import linmax, os, tempfile
        >>> data = linmax.majority_problem(trials=300, seed=1)
        >>> page = os.path.join(tempfile.mkdtemp(), "report.html")
        >>> linmax.VoteFusion("perceptron").fit(data.votes, data.labels).report().to_html(page)
        >>> os.path.getsize(page) < 500_000
        True
        """
        from linmax.util.outputs import check_output, replace_file

        check_output(path)
        replace_file(Path(path), page_of(self).encode())

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON."""
        found: dict[str, Any] = {
            "learner": self.learner,
            "trials": self.online.trials,
            "mistakes": self.online.mistakes,
            "accuracy": self.online.accuracy,
            "comparisons": self.online.to_dict(),
        }
        if self.test is not None:
            found |= {
                "test_trials": self.test.trials,
                "test_accuracy": self.test.accuracy,
                "test_comparisons": self.test.to_dict(),
            }
        for key, judged in (("reliability", self.reliability), ("test_reliability", self.test_reliability)):
            if judged is not None:
                found[key] = judged.to_dict()
        found["coverage"] = {f"{asked:g}": share for asked, share in self.coverage.items()}
        found["weights"] = {voter.name: voter.weight for voter in self.voters if voter.weight is not None}
        found["voters"] = {voter.name: {"accuracy": voter.accuracy, "spoke": voter.spoke} for voter in self.voters}
        if self.normalisations is not None:
            found["normalisations"] = dict(self.normalisations)
        if self.sides:
            found["by"] = {side.name: {"trials": side.trials, "weights": dict(side.weights)} for side in self.sides}
        return found

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        del console
        if self.online.trials:
            learned = f"On-line: {_counted(self.online.trials, 'trial')}, each predicted before its label was seen"
            yield from _compared(learned, "best voter so far", self.learner, self.online, options.ascii_only)
        else:
            yield from _unlabelled(self.unlabelled)
        if self.test is not None:
            held = f"Held out: {_counted(self.test.trials, 'trial')}"
            yield from _compared(held, "best voter on-line", self.learner, self.test, options.ascii_only)
        yield from self._probabilities()
        yield from self._weights(options.ascii_only)

    def _probabilities(self) -> Iterator[RenderableType]:
        """What the probabilities and prediction sets were worth."""
        from rich.text import Text

        told = []
        for judged, where in ((self.reliability, "Last"), (self.test_reliability, "Held-out")):
            if judged is not None:
                error, chance = _percent(judged.calibration_error), _percent(judged.by_chance)
                told.append(
                    f"{where} {_counted(judged.trials, 'trial')}: log loss {judged.log_loss:.3f}, calibration error "
                    f"{error} (about {chance} by chance alone)"
                )
        if COVERAGE in self.coverage:
            held = _percent(self.coverage[COVERAGE])
            off = adaptive_coverage(self.online.trials, LEVEL_STEP, 1.0 - COVERAGE)
            told.append(
                f"Sets for a coverage of {_percent(COVERAGE)} held the label in {held} of all trials (never more than "
                f"{_percent(min(off, COVERAGE))} off, whatever changes)"
            )
        if told:
            yield Text("Probabilities", style="bold")
            yield from map(Text, told)
            yield Text("")

    def _weights(self, ascii_only: bool) -> Iterator[RenderableType]:
        from rich.text import Text

        yield Text("Voters", style="bold")
        if not any(voter.weight is not None for voter in self.voters):
            yield Text(f"{self.learner} has no single weight for each voter.", style="dim")
        shown = _grid(["", "weight", "", "accuracy", "speaks"], ["weight", "accuracy", "speaks"], ascii_only)
        largest = max((abs(voter.weight or 0.0) for voter in self.voters), default=0.0) or 1.0
        for voter in self.voters[:TABLE_ROWS]:
            weight = voter.weight or 0.0
            cells = [
                Text(voter.name),
                Text("" if voter.weight is None else _percent(weight)),
                Text(bar(weight / largest, ascii_only=ascii_only), style="cyan" if weight >= 0.0 else "red"),
                Text(_percent(voter.accuracy) if self.online.trials else ""),
                Text(f"{voter.spoke:.0%}".replace("%", " %") if self.online.trials else ""),
            ]
            shown.add_row(*cells)
        yield shown
        if len(self.voters) > TABLE_ROWS:
            yield Text(f"and {_counted(len(self.voters) - TABLE_ROWS, 'more voter')} with less weight", style="dim")
        if self.normalisations:
            told = ", ".join(f"{kind} {_percent(share)}" for kind, share in self.normalisations.items())
            yield Text(f"Weight by normalisation: {told}")
        if any(side.weights for side in self.sides):
            yield from self._sides(ascii_only)
        if self.online.trials or self.test is not None:
            yield Text("An abstention counts as a mistake; ties of plurality go to the first class.", style="dim")

    def _sides(self, ascii_only: bool) -> Iterator[RenderableType]:
        from rich.text import Text

        yield Text("")
        yield Text("Weights by value; those above are their means", style="bold")
        shown = _grid(["", "trials", "heaviest"], ["trials"], ascii_only)
        for side in self.sides[:TABLE_ROWS]:
            heaviest = ", ".join(f"{name} {_percent(w)}" for name, w in list(side.weights.items())[:VOTERS_NAMED])
            shown.add_row(Text(side.name), Text(f"{side.trials:,d}"), Text(heaviest))
        yield shown
        if len(self.sides) > TABLE_ROWS:
            yield Text(f"and {_counted(len(self.sides) - TABLE_ROWS, 'more value')} with fewer trials", style="dim")


def _unlabelled(told: str) -> Iterator[RenderableType]:
    """In the place of a comparison before the first label; ``told`` says what is known of the voters."""
    from rich.text import Text

    yield Text("No label yet", style="bold")
    yield Text(f"How often the fusion is right is not known; {told}.")
    yield Text("")


def _compared(
    title: str, leading: str, learner: str, comparison: Comparison, ascii_only: bool
) -> Iterator[RenderableType]:
    """Title, table with bars, and the sentence that says who won."""
    from rich.text import Text

    best, other = comparison.rivals["best_voter"], comparison.rivals["best_so_far"]
    named = {"fusion": f"fusion, {learner}", "best_voter": f"best voter, {best.name}", "plurality": "plurality"}
    spoken = {"best_voter": f"the best voter ({best.name})", "plurality": "plurality"}
    if (best.name, best.wins, best.losses) != (other.name, other.wins, other.losses):
        named["best_so_far"], spoken["best_so_far"] = leading, f"the {leading}"
    recent = comparison.rivals["best_lately"]
    if all((recent.wins, recent.losses) != (rival.wins, rival.losses) for rival in (best, other)):
        named["best_lately"], spoken["best_lately"] = "best voter lately", "the best voter lately"
    if "soft_voting" in comparison.rivals:
        named["soft_voting"] = spoken["soft_voting"] = "soft voting"
    if "logit" in comparison.rivals:
        named["logit"] = comparison.rivals["logit"].name
        spoken["logit"] = f"the {named['logit']}".replace(", last", " of the last")
    numbers = ("accuracy", "fusion leads by (95 %)")
    shown = _grid(["", numbers[0], "", numbers[1]], numbers, ascii_only)
    for key, accuracy in sorted(comparison.accuracy.items(), key=lambda item: -item[1]):
        if key not in named:
            continue
        style = "bold" if key == "fusion" else ""
        drawn = bar(accuracy, SHORT_BAR, ascii_only=ascii_only)
        cells = [Text(named[key], style), Text(_percent(accuracy), style), Text(drawn, "cyan" if style else "blue")]
        if key != "fusion":
            rival = comparison.rivals[key]
            cells.append(Text(f"{100.0 * rival.difference:+.1f}", VERDICT_COLOURS[rival.verdict]))
            cells[-1].append(f" ({100.0 * rival.low:+.1f} to {100.0 * rival.high:+.1f})", "default")
        shown.add_row(*cells)
    yield Text(title, style="bold")
    yield shown
    yield _sentence(comparison.rivals, spoken)
    yield Text("")


def _sentence(rivals: Mapping[str, Rival], spoken: Mapping[str, str]) -> Text:
    """Who won, and by how much, in words."""
    from rich.text import Text

    told: dict[str, list[str]] = {verdict: [] for verdict in VERDICT_COLOURS}
    for key, name in spoken.items():
        lead = f" by {100.0 * abs(rivals[key].difference):.1f} points"
        told[rivals[key].verdict].append(name if rivals[key].verdict == "unclear" else name + lead)
    clauses = [f"{verdict} {listed(told[verdict])}" for verdict in ("beats", "loses to") if told[verdict]]
    if told["unclear"]:
        clauses.append(f"does not differ clearly from {listed(told['unclear'])}")
    worst = next(verdict for verdict in ("loses to", "unclear", "beats") if told[verdict])
    return Text(f"Fusion {', and '.join(clauses)}.", VERDICT_COLOURS[worst])


def listed(parts: Sequence[str]) -> str:
    """One after the other: "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _counted(number: int, what: str) -> str:
    return f"{number:,d} {what}{'s' if number != 1 else ''}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %"


def _grid(headings: Sequence[str], numbers: Sequence[str], ascii_only: bool) -> Table:
    """An empty table with these columns, the numbers set to the right; a name that does not fit is cut."""
    from rich.table import Table

    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for heading in headings:
        justify: JustifyMethod = "right" if heading in numbers else "left"
        grid.add_column(heading, justify=justify, no_wrap=True, overflow="crop" if ascii_only else "ellipsis")
    return grid


@dataclass(frozen=True)
class Explanation(_Shown):
    """Why one class was preferred to the next: what each voter added to the difference of their scores.

    Attributes
    ----------
    winner, runner_up
        The class predicted and the one after it.
    difference
        Score of the winner less that of the runner-up, as a share of the weight of all voters: the sum of the
        contributions.
    contributions
        Of each voter, largest first, and of the thresholds, which prefer a class whoever votes. A learner whose score
        is more than a sum over voters, such as `auto`, also has what they do together: by how many agree, for one.
    votes
        What each voter said; None abstained.
    sides
        The values of the side columns, on which the weights depend; None is missing or was never met.
    """

    winner: Any
    runner_up: Any
    difference: float
    contributions: Mapping[str, float]
    votes: Mapping[str, Any]
    sides: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and labels."""
        return {
            "winner": self.winner,
            "runner_up": self.runner_up,
            "difference": self.difference,
            "contributions": dict(self.contributions),
            "votes": dict(self.votes),
            **({"sides": dict(self.sides)} if self.sides else {}),
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        del console
        from rich.text import Text

        yield Text(f"{self.winner} rather than {self.runner_up}, by {_percent(self.difference)} of the weight", "bold")
        for name, value in self.sides.items():
            told = "missing or never met: the voters' own weights" if value is None else str(value)
            yield Text(f"{name}: {told}", style="dim")
        shown = _grid(["", "says", "adds", ""], ["adds"], options.ascii_only)
        largest = max(map(abs, self.contributions.values()), default=0.0) or 1.0
        moved = {name: added for name, added in self.contributions.items() if added}
        for name, added in moved.items():
            vote = self.votes.get(name)
            drawn = bar(added / largest, ascii_only=options.ascii_only)
            style = "green" if added > 0.0 else "red"
            said = "" if vote is None else str(vote)
            shown.add_row(Text(name), Text(said), Text(f"{100.0 * added:+.1f} %", style), Text(drawn, style))
        yield shown
        silent = len(self.contributions) - len(moved)
        if silent:
            yield Text(f"{silent} abstained or named another class", style="dim")


# -- the page ---------------------------------------------------------------------------------------------------------


def page_of(report: Report) -> str:
    """The whole page."""
    parts = [*_page_verdict(report)]
    details = report.details
    if details is not None and len(details.times) > 2:
        parts += _over_time(details)
    parts += _page_weights(report)
    if details is not None:
        parts += [*_alike(report, details), *_few(details)]
    parts += _calibration(report)
    if details is not None:
        parts += _changes(details)
    parts += _page_sides(report)
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


def _page_verdict(report: Report) -> Iterator[str]:
    shown = report.test if report.test is not None else report.online
    if not shown.trials:
        yield "<h1>The fused jury has not seen a label yet</h1>"
        yield f"<p>How often it is right is not known; {report.unlabelled}.</p>"
        return
    where = "held-out trials" if report.test is not None else "trials, each answered before its label was seen"
    accuracy = shown.accuracy["fusion"]
    yield f"<h1>The fused jury is right {_percent(accuracy)} of the time</h1>"
    yield f"<p>On {shown.trials:,} {where}, it {_page_sentence(shown)}.</p>"
    yield from _tiles(report, shown)


def _page_sentence(shown: Comparison) -> str:
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


def _page_table(headings: Sequence[str], rows: Sequence[str], css: Sequence[str] = ()) -> str:
    marks = [f' class="{c}"' if c else "" for c in [*css, *[""] * (len(headings) - len(css))]]
    head = "".join(f"<th{mark}>{name}</th>" for name, mark in zip(headings, marks, strict=True))
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _page_weights(report: Report) -> Iterator[str]:
    yield "<h2>Whom the jury trusts</h2>"
    largest = max((abs(voter.weight or 0.0) for voter in report.voters), default=0.0) or 1.0
    rows = []
    for voter in report.voters[:VOTERS_SHOWN]:
        weight, css = voter.weight or 0.0, " minus" if (voter.weight or 0.0) < 0.0 else ""
        bar = f'<span class="bar{css}" style="width:{100.0 * abs(weight) / largest:.1f}%"></span>'
        told = "" if voter.weight is None else f"{weight:.3f}"
        numbers = f"<td>{told}</td><td>{_percent(voter.accuracy)}</td><td class='rare'>{_percent(voter.spoke)}</td>"
        rows.append(f'<tr><td>{escape(voter.name)}</td><td class="wide">{bar}</td>{numbers}</tr>')
    yield _page_table(["voter", "", "weight", "right", "spoke"], rows, ["", "wide", "", "", "rare"])
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
    yield _page_table(["most alike", "correlation of errors"], rows)
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
    yield _page_table(
        ["and", "voters", "calls a trial" if details.costs is None else "cost a trial", "right alone"], rows
    )


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
    yield _page_table(["voter", "about trial", "right before", "right after"], rows)


def _page_sides(report: Report) -> Iterator[str]:
    if not report.sides:
        return
    yield "<h2>By side column</h2>"
    rows = []
    for side in report.sides[:VOTERS_SHOWN]:
        heaviest = ", ".join(f"{escape(name)} {weight:.2f}" for name, weight in list(side.weights.items())[:3])
        rows.append(f'<tr><td>{escape(side.name)}</td><td>{side.trials:,}</td><td class="names">{heaviest}</td></tr>')
    yield _page_table(["value", "trials", "most trusted there"], rows, ["", "", "names"])


# -- drawings ---------------------------------------------------------------------------------------------------------


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
