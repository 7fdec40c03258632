"""Reports of a fusion: plain numbers for programs, and sections for people.

A report is a list of `Section`s of `Line`s, `Grid`s, `Chart`s and `HeatMap`s. Two renderers show them: `_printed` for
the terminal (rich), which omits drawings, and `_page` for the browser (one HTML page).
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib import resources
from math import ceil, floor
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.bounds import adaptive_coverage
from linmax.engine.coverage import COVERAGES, LEVEL_STEPS
from linmax.models.asking import VoterPanels
from linmax.models.baselines import BEST_SO_FAR, FIRST_VOTER, FUSION, PLURALITY, Comparison, Tally
from linmax.models.calibration import Reliability

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType

__all__ = ["Change", "Details", "Explanation", "Report", "Side", "Voter", "bar"]

BAR, SHORT_BAR = 20, 12  # characters
COVERAGE = 0.9  # of the prediction sets in a report
LEVEL_STEP = float(LEVEL_STEPS[COVERAGES == COVERAGE][0])  # by which their levels move
TABLE_ROWS = 30  # voters, or values of side columns, in a table
VOTERS_NAMED = 3  # voters named for a value of a side column
TEXT_WIDTH = 120  # of str()
VERDICT_COLORS = {"beats": "green", "loses to": "red", "unclear": "yellow"}
STRETCHES = 40  # in which accuracy over time is shown
CHANGE_ERRORS = 3.5  # standard errors by which a voter's accuracy must have changed to be reported
MAPPED = 12  # voters whose errors are compared in a heat map
FEWEST_SPLIT = 50  # trials before and after a change of a voter's accuracy
PAIRS = 5  # most similar pairs of voters
WIDE, HIGH = 720, 300  # of a chart
LEFT, RIGHT, TOP, BOTTOM = 60, 14, 14, 44


# -- parts of a report --------------------------------------------------------------------------------------------


class Line:
    """A paragraph: one text in one style, or several (text, style) spans."""

    def __init__(self, text: str, style: str = "", *spans: tuple[str, str]) -> None:
        self.spans = ((text, style), *spans)


@dataclass(frozen=True)
class Bar:
    """A bar of this share of its column."""

    share: float
    style: str
    width: int = BAR


Cell = str | Line | Bar


@dataclass(frozen=True)
class Grid:
    """A table. Columns named in ``numbers`` are aligned right; ``rare`` ones are hidden on a narrow page."""

    headings: Sequence[str]
    numbers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    rare: Sequence[str] = ()


@dataclass(frozen=True)
class Chart:
    """Lines over x, with shares of 1 on the vertical axis; ``about`` describes it to readers who do not see it."""

    x: Sequence[float] | np.ndarray
    lines: Mapping[str, Sequence[float] | np.ndarray]
    about: str
    below: str
    dots: bool = False
    square: bool = False


@dataclass(frozen=True)
class HeatMap:
    """A table of correlations."""

    names: Sequence[str]
    table: np.ndarray


Part = Line | Grid | Chart | HeatMap


@dataclass(frozen=True)
class Section:
    """A heading and the parts below it; ``details`` are for the page only."""

    title: str
    parts: Sequence[Part]
    details: bool = False


def bar(share: float, width: int = BAR, *, ascii_only: bool = False) -> str:
    """Draw a bar of this share of the width, in eighths of a character if the terminal has them; hollow if negative.

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
    """Prints as rich does, without colors."""

    def __str__(self) -> str:
        from rich.console import Console

        screen = Console(file=io.StringIO(), width=TEXT_WIDTH, color_system=None, highlight=False)
        screen.print(self)
        assert isinstance(screen.file, io.StringIO)
        return "\n".join(line.rstrip() for line in screen.file.getvalue().splitlines()).strip("\n")


@dataclass(frozen=True)
class Change:
    """A voter whose accuracy changed, near which trial, and its accuracy before and after."""

    voter: str
    trial: int
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Details:
    """Counts and recent trials of a fusion, copied when the report was made."""

    voters: tuple[str, ...]
    leader: int
    times: np.ndarray  # trials at the ends of stretches, from 0
    mistakes: np.ndarray  # (times, rivals): up to each
    rows: tuple[np.ndarray, np.ndarray]  # recent votes and labels
    panels: Callable[[], VoterPanels] | None  # compares panels of voters
    priced: bool  # whether the costs of asking them were given

    @classmethod
    def of(
        cls,
        tally: Tally,
        voters: Sequence[str],
        rows: tuple[np.ndarray, np.ndarray],
        panels: Callable[[], VoterPanels] | None,
        priced: bool,
    ) -> Details:
        """Return details of these counts and trials, which later learning does not change."""
        times = np.unique(np.linspace(0, tally.trials, min(STRETCHES, tally.trials) + 1).astype(int))
        points, counts = tally.points()
        table = np.array([np.interp(times, points, column) for column in counts.T]).T
        return cls(tuple(voters), tally.leaders[0], times, table, rows, panels, priced)

    @cached_property
    def curves(self) -> dict[str, np.ndarray]:
        """Share of right answers in each stretch: of the fusion and its baselines."""
        right = 1.0 - np.diff(self.mistakes, axis=0) / np.maximum(np.diff(self.times), 1)[:, None]
        best = f"best voter, {self.voters[self.leader]}"
        places = {"fusion": FUSION, "plurality": PLURALITY, "best voter so far": BEST_SO_FAR}
        return {name: right[:, place] for name, place in {**places, best: FIRST_VOTER + self.leader}.items()}

    @cached_property
    def likeness(self) -> np.ndarray:
        """Correlation of the errors of every two voters, where both voted; nan where that is undefined."""
        votes, labels = self.rows
        table = np.full((len(self.voters), len(self.voters)), np.nan)
        voted = votes >= 0
        wrong = ((votes != labels[:, None]) & voted).astype(float)
        both, joint = voted.T.astype(float) @ voted, wrong.T @ wrong
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (wrong.T @ voted) / both
            spread = mean * (1 - mean)
            table[: len(both), : len(both)] = (joint / both - mean * mean.T) / np.sqrt(spread * spread.T)
        return np.where(np.isfinite(table), table, np.nan)

    @cached_property
    def independent(self) -> float | None:
        """n / (1 + (n - 1) r): the number of independent voters these amount to, r the mean correlation of errors."""
        n = len(self.voters)
        pairs = self.likeness[~np.eye(n, dtype=bool)]
        if n < 2 or not np.isfinite(pairs).any():
            return None
        return float(n / (1.0 + (n - 1) * max(0.0, float(np.nanmean(pairs)))))

    @cached_property
    def panel(self) -> VoterPanels | None:
        """Panels of voters; None for scores and for few trials."""
        return None if self.panels is None else self.panels()

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Voters whose accuracy changed for good at some time, the largest change first."""
        edge, total = len(self.times) // 8, int(self.times[-1])
        places = np.arange(edge, len(self.times) - edge)
        places = places[np.minimum(self.times[places], total - self.times[places]) >= FEWEST_SPLIT]
        if not len(places):
            return ()
        times, wrong = self.times[places][:, None], self.mistakes[:, FIRST_VOTER:]
        before, after = wrong[places] / times, (wrong[-1] - wrong[places]) / (total - times)
        share = wrong[-1] / total
        errors = np.sqrt(np.maximum(share * (1.0 - share), 1e-9) * (1.0 / times + 1.0 / (total - times)))
        sizes = np.abs(after - before) / errors
        changes = [
            Change(name, int(times[cut, 0]), 1.0 - before[cut, voter], 1.0 - after[cut, voter])
            for voter, (name, cut) in enumerate(zip(self.voters, sizes.argmax(axis=0).tolist(), strict=True))
            if sizes[cut, voter] > CHANGE_ERRORS
        ]
        return tuple(sorted(changes, key=lambda change: -abs(change.after - change.before)))

    def over_time(self) -> Section:
        """Accuracy of the fusion and its baselines over the trials."""
        smooth = {
            name: np.convolve(np.pad(line, 2, mode="edge"), np.full(5, 0.2), mode="valid")
            for name, line in self.curves.items()
        }
        middles = (self.times[1:] + self.times[:-1]) / 2.0
        chart = Chart(middles, smooth, "accuracy of the fusion and its baselines over the trials", "trial")
        note = Line("Share of right answers, smoothed over neighboring stretches of trials.", "dim")
        return Section("Accuracy over time", [chart, note], details=True)

    def sections(self, order: Sequence[str]) -> Iterator[Section]:
        """Sections for the page only; ``order`` lists the voters, the largest weight first."""
        if self.independent is not None:
            yield self._alike(order)
        if self.panel is not None:
            yield self._enough(self.panel)
        rows = [[c.voter, f"{c.trial:,}", _percent(c.before), _percent(c.after)] for c in self.changes[:TABLE_ROWS]]
        headings = ["voter", "about trial", "right before", "right after"]
        none = Line("No voter's accuracy has changed beyond what chance explains.")
        yield Section("What changed, and when", [Grid(headings, headings[1:], rows) if rows else none], details=True)

    def _alike(self, order: Sequence[str]) -> Section:
        chosen = [self.voters.index(name) for name in order[:MAPPED]]
        upper = np.triu(np.nan_to_num(self.likeness, nan=-2.0), 1) - 3.0 * np.tri(len(self.voters))
        pairs = [np.unravel_index(i, upper.shape) for i in np.argsort(-upper, axis=None)[:PAIRS]]
        rows = [
            [f"{self.voters[i]} and {self.voters[j]}", f"{self.likeness[i, j]:.2f}"]
            for i, j in pairs
            if np.isfinite(self.likeness[i, j])
        ]
        text = (
            "Voters that err together add little to each other. By the mean correlation of their errors the "
            f"{len(self.voters)} voters amount to "
        )
        headings = ["most alike", "correlation of errors"]
        parts: list[Part] = [
            Line(text, "", (f"{self.independent:.1f}", "bold"), (" independent ones.", "")),
            Grid(headings, headings[1:], rows),
            Line(f"The {len(chosen)} voters of largest weight; 1 means always together, 0 independent.", "dim"),
            HeatMap([self.voters[i] for i in chosen], self.likeness[np.ix_(chosen, chosen)]),
        ]
        return Section("How alike their errors are", parts, details=True)

    def _enough(self, panel: VoterPanels) -> Section:
        best, last = panel.enough(), panel[len(panel) - 1]
        spans: list[tuple[str, str]] = [(" voters", "")]
        if self.priced:
            spans += [(", at a cost of ", ""), (f"{best.cost:g}", "bold"), (f" of {last.cost:g} a trial,", "")]
        reached = (
            f" reach {_percent(best.accuracy)} alone, all together {_percent(last.accuracy)}, on the last "
            f"{panel.trials:,} such trials."
        )
        summary = Line(f"{len(best.voters)} of {len(self.voters)}", "bold", *spans, (reached, ""))
        rows, known = [], 0
        for line in panel:
            added, more = ", ".join(line.voters[known:][:VOTERS_NAMED]), len(line.voters) - known - VOTERS_NAMED
            known, style = len(line.voters), "bold" if line is best else ""
            cells = [added + (f" and {more} more" if more > 0 else ""), f"{known}", f"{line.cost:g}"]
            rows.append([Line(cell, style) for cell in (*cells, _percent(line.accuracy))])
        headings = ["and", "voters", "cost a trial" if self.priced else "calls a trial", "right together"]
        accuracy = {"accuracy": [line.accuracy for line in panel]}
        chart = Chart([len(line.voters) for line in panel], accuracy, "accuracy by voters", "voters", dots=True)
        return Section("How few are enough", [summary, chart, Grid(headings, headings[1:], rows)], details=True)


# -- the report ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Voter:
    """A voter's weight, its share of all trials right (an abstention is not) and of those in which it voted."""

    name: str
    weight: float | None
    accuracy: float
    voted: float


@dataclass(frozen=True)
class Side:
    """A value of a side column, its trials, and each voter's weight there, the largest first."""

    name: str
    trials: int
    weights: Mapping[str, float]


@dataclass(frozen=True)
class Report(_Shown):
    """What `VoteFusion.report` returns: ``to_dict()`` for programs; ``print`` and rich show it to people.

    Attributes
    ----------
    online, test
        The fusion and its baselines, on the trials that it learned from, each predicted before its label was seen, and
        on held-out ones.
    voters
        The largest weight first.
    normalizations
        Share of the weight under each normalization, when raters were fused.
    sides
        The values of the side columns, the most frequent first; a voter's weight is then its mean over the trials.
    reliability, test_reliability
        Log loss and calibration error: of the newer half of the recent trials, with probabilities fitted to the older
        half alone, and of the held-out ones (see `linmax.models.calibration`). None for too few trials.
    coverage
        Share of the trials whose label was in the prediction set of each coverage, predicted before it was seen.
    """

    learner: str
    online: Comparison
    test: Comparison | None
    voters: tuple[Voter, ...]
    normalizations: Mapping[str, float] | None = None
    sides: tuple[Side, ...] = ()
    reliability: Reliability | None = None
    test_reliability: Reliability | None = None
    coverage: Mapping[float, float] = field(default_factory=dict)
    details: Details | None = field(default=None, repr=False, compare=False)

    @property
    def unlabelled(self) -> str:
        """How voters are weighted as long as there is no label."""
        alike = len(self.voters) > 1 and len({voter.weight for voter in self.voters}) == 1
        return "this learner needs labels, and weights all alike" if alike else "voters are weighted by how they agree"

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
        from linmax.util.files import replacing
        from linmax.util.outputs import check_output

        check_output(path)
        with replacing(path) as file:
            file.write(_page(self).encode())

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and text, ready for JSON."""
        figures: dict[str, Any] = {
            "learner": self.learner,
            "trials": self.online.trials,
            "mistakes": self.online.mistakes,
            "accuracy": self.online.accuracy,
            "comparisons": self.online.to_dict(),
        }
        if self.test is not None:
            figures |= {
                "test_trials": self.test.trials,
                "test_accuracy": self.test.accuracy,
                "test_comparisons": self.test.to_dict(),
            }
        for key, judged in (("reliability", self.reliability), ("test_reliability", self.test_reliability)):
            if judged is not None:
                figures[key] = judged.to_dict()
        figures["coverage"] = {f"{level:g}": share for level, share in self.coverage.items()}
        figures["weights"] = {voter.name: voter.weight for voter in self.voters if voter.weight is not None}
        figures["voters"] = {voter.name: {"accuracy": voter.accuracy, "voted": voter.voted} for voter in self.voters}
        if self.normalizations is not None:
            figures["normalizations"] = dict(self.normalizations)
        if self.sides:
            figures["by"] = {side.name: {"trials": side.trials, "weights": dict(side.weights)} for side in self.sides}
        return figures

    def sections(self) -> list[Section]:
        """Return the report in reading order."""
        if self.online.trials:
            title = f"Online: {_counted(self.online.trials, 'trial')}, each predicted before its label was seen"
            sections = [_compared(title, "best voter so far", self.learner, self.online)]
        else:
            text = f"How often the fusion is right is not known; {self.unlabelled}."
            sections = [Section("No label yet", [Line(text)])]
        if self.test is not None:
            title = f"Held out: {_counted(self.test.trials, 'trial')}"
            sections.append(_compared(title, "best voter online", self.learner, self.test))
        if self.details is not None and len(self.details.times) > 2:
            sections.append(self.details.over_time())
        probabilities = self._probabilities()
        if probabilities.parts:
            sections.append(probabilities)
        sections.append(self._voters())
        if any(side.weights for side in self.sides):
            sections.append(self._sides())
        if self.online.trials or self.test is not None:
            note = Line("An abstention counts as a mistake; plurality breaks ties by chance.", "dim")
            sections[-1] = Section(sections[-1].title, [*sections[-1].parts, note])
        if self.details is not None:
            sections += self.details.sections([voter.name for voter in self.voters])
        return sections

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        del console
        yield from _printed([section for section in self.sections() if not section.details], options.ascii_only)

    def _probabilities(self) -> Section:
        """Reliability of the probabilities and prediction sets."""
        parts: list[Part] = []
        for judged, where in ((self.reliability, "Last"), (self.test_reliability, "Held-out")):
            if judged is not None:
                text = (
                    f"{where} {_counted(judged.trials, 'trial')}: log loss {judged.log_loss:.3f}, calibration error "
                    f"{_percent(judged.calibration_error)} (about {_percent(judged.by_chance)} by chance alone)"
                )
                parts.append(Line(text))
        if COVERAGE in self.coverage:
            off = min(adaptive_coverage(self.online.trials, LEVEL_STEP, 1.0 - COVERAGE), COVERAGE)
            text = (
                f"Sets for a coverage of {_percent(COVERAGE)} held the label in {_percent(self.coverage[COVERAGE])} "
                f"of all trials (never more than {_percent(off)} off, whatever changes)"
            )
            parts.append(Line(text))
        shown = self.test_reliability or self.reliability
        if shown is not None and len(shown.bins) > 1:
            x, right = [part.confidence for part in shown.bins], {"right": [part.accuracy for part in shown.bins]}
            about = "share of right answers by stated confidence"
            parts.append(Chart(x, right, about, "stated confidence", dots=True, square=True))
        return Section("Probabilities", parts)

    def _voters(self) -> Section:
        parts: list[Part] = []
        if not any(voter.weight is not None for voter in self.voters):
            parts.append(Line(f"{self.learner} has no single weight for each voter.", "dim"))
        largest = max((abs(voter.weight or 0.0) for voter in self.voters), default=0.0) or 1.0
        rows: list[list[Cell]] = []
        for voter in self.voters[:TABLE_ROWS]:
            weight = voter.weight or 0.0
            drawn = Bar(weight / largest, "cyan" if weight >= 0.0 else "red")
            counted = [_percent(voter.accuracy), f"{100.0 * voter.voted:.0f} %"] if self.online.trials else ["", ""]
            rows.append([voter.name, "" if voter.weight is None else _percent(weight), drawn, *counted])
        numbers = ["weight", "accuracy", "voted"]
        parts.append(Grid(["", "weight", "", "accuracy", "voted"], numbers, rows, rare=["voted"]))
        parts += _rest(len(self.voters), "more voter", "with less weight")
        if self.normalizations:
            shares = ", ".join(f"{kind} {_percent(share)}" for kind, share in self.normalizations.items())
            parts.append(Line(f"Weight by normalization: {shares}"))
        return Section("Voters", parts)

    def _sides(self) -> Section:
        rows: list[list[Cell]] = []
        for side in self.sides[:TABLE_ROWS]:
            largest = ", ".join(f"{name} {_percent(w)}" for name, w in list(side.weights.items())[:VOTERS_NAMED])
            rows.append([side.name, f"{side.trials:,d}", largest])
        grid = Grid(["", "trials", "largest weights"], ["trials"], rows)
        rest = _rest(len(self.sides), "more value", "with fewer trials")
        return Section("Weights by value; those above are their means", [grid, *rest])


def _compared(title: str, leading: str, learner: str, comparison: Comparison) -> Section:
    """Return the fusion and its baselines, the most accurate first, and a sentence that says which one won."""
    rivals = comparison.rivals
    best, other, recent = rivals["best_voter"], rivals["best_so_far"], rivals["best_recent"]
    names = {"best_voter": f"best voter, {best.name}", "plurality": "plurality"}
    phrases = {"best_voter": f"the best voter ({best.name})"}
    if (best.name, best.wins, best.losses) != (other.name, other.wins, other.losses):
        names["best_so_far"], phrases["best_so_far"] = leading, f"the {leading}"
    if all((recent.wins, recent.losses) != (rival.wins, rival.losses) for rival in (best, other)):
        names["best_recent"], phrases["best_recent"] = "best recent voter", "the best recent voter"
    if "soft_voting" in rivals:
        names["soft_voting"] = "soft voting"
    if "logit" in rivals:
        names["logit"] = rivals["logit"].name
        phrases["logit"] = f"the {names['logit']}".replace(", last", " of the last")
    rows: list[tuple[float, list[Cell]]] = []
    found: dict[str, list[str]] = {verdict: [] for verdict in VERDICT_COLORS}
    for key, name in names.items():
        rival = rivals[key]
        interval = f" ({100.0 * rival.low:+.1f} to {100.0 * rival.high:+.1f})"
        lead = Line(f"{100.0 * rival.difference:+.1f}", VERDICT_COLORS[rival.verdict], (interval, "default"))
        rows.append((rival.accuracy, [name, _percent(rival.accuracy), Bar(rival.accuracy, "blue", SHORT_BAR), lead]))
        size = "" if rival.verdict == "unclear" else f" by {100.0 * abs(rival.difference):.1f} points"
        found[rival.verdict].append(phrases.get(key, name) + size)
    own = comparison.accuracy["fusion"]
    first: list[Cell] = [
        Line(f"fusion, {learner}", "bold"),
        Line(_percent(own), "bold"),
        Bar(own, "cyan", SHORT_BAR),
        "",
    ]
    ordered = [row for _, row in sorted([(own, first), *rows], key=lambda row: -row[0])]
    clauses = [f"{verdict} {listed(found[verdict])}" for verdict in ("beats", "loses to") if found[verdict]]
    if found["unclear"]:
        clauses.append(f"does not differ clearly from {listed(found['unclear'])}")
    worst = next(verdict for verdict in ("loses to", "unclear", "beats") if found[verdict])
    sentence = Line(f"Fusion {', and '.join(clauses)}.", VERDICT_COLORS[worst])
    numbers = ("accuracy", "fusion leads by (95 %)")
    return Section(title, [Grid(["", numbers[0], "", numbers[1]], numbers, ordered), sentence])


def _rest(count: int, what: str, how: str) -> list[Line]:
    """Return a line about rows that are not shown, if there are any."""
    left = count - TABLE_ROWS
    return [Line(f"and {_counted(left, what)} {how}", "dim")] if left > 0 else []


def listed(parts: Sequence[str]) -> str:
    """Join as in "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _counted(number: int, what: str) -> str:
    return f"{number:,d} {what}{'s' if number != 1 else ''}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %"


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
        Of each voter, largest first, and of the thresholds, which prefer a class regardless of votes. A learner whose
        score is more than a sum over voters, such as `auto`, also has the effect of several together.
    votes
        The vote of each voter; None abstained.
    sides
        The values of the side columns, on which the weights depend; None is missing or unknown.
    """

    winner: Any
    runner_up: Any
    difference: float
    contributions: Mapping[str, float]
    votes: Mapping[str, Any]
    sides: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and labels."""
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
        parts: list[Part] = []
        for name, value in self.sides.items():
            shown = "missing or unknown: the voters' own weights" if value is None else str(value)
            parts.append(Line(f"{name}: {shown}", "dim"))
        largest = max(map(abs, self.contributions.values()), default=0.0) or 1.0
        moved = {name: added for name, added in self.contributions.items() if added}
        rows: list[list[Cell]] = []
        for name, added in moved.items():
            vote, style = self.votes.get(name), "green" if added > 0.0 else "red"
            amount = Line(f"{100.0 * added:+.1f} %", style)
            rows.append([name, "" if vote is None else str(vote), amount, Bar(added / largest, style)])
        parts.append(Grid(["", "vote", "adds", ""], ["adds"], rows))
        silent = len(self.contributions) - len(moved)
        if silent:
            parts.append(Line(f"{silent} abstained or named another class", "dim"))
        title = f"{self.winner} rather than {self.runner_up}, by {_percent(self.difference)} of the weight"
        yield from _printed([Section(title, parts)], options.ascii_only)


# -- the terminal -------------------------------------------------------------------------------------------------


def _printed(sections: Iterable[Section], ascii_only: bool) -> Iterator[RenderableType]:
    """Sections for a terminal, with a blank line between them; drawings are left out."""
    from rich.table import Table
    from rich.text import Text

    for number, section in enumerate(sections):
        if number:
            yield Text("")
        yield Text(section.title, style="bold")
        for part in section.parts:
            if isinstance(part, Line):
                yield _text(part)
            elif isinstance(part, Grid):
                table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
                for heading in part.headings:  # a name that does not fit is cut
                    justify: JustifyMethod = "right" if heading in part.numbers else "left"
                    table.add_column(
                        heading, justify=justify, no_wrap=True, overflow="crop" if ascii_only else "ellipsis"
                    )
                for row in part.rows:
                    table.add_row(*(_text(cell, ascii_only) for cell in row))
                yield table


def _text(cell: Cell, ascii_only: bool = False) -> Any:
    from rich.text import Text

    if isinstance(cell, str):
        return Text(cell)
    if isinstance(cell, Bar):
        return Text(bar(cell.share, cell.width, ascii_only=ascii_only), cell.style)
    text = Text(*cell.spans[0])
    for span in cell.spans[1:]:
        text.append(*span)
    return text


# -- the page -----------------------------------------------------------------------------------------------------


def _page(report: Report) -> str:
    """The report as one HTML page: the verdict, then all sections."""
    shown = report.test if report.test is not None else report.online
    title = "The fused jury has not seen a label yet"
    if shown.trials:
        where = "held-out trials" if report.test is not None else "trials"
        title = f"The fused jury is right {_percent(shown.accuracy['fusion'])} of the time, on {shown.trials:,} {where}"
    body = "".join(f"<h2>{escape(section.title)}</h2>{_html(section)}" for section in report.sections())
    foot = (
        f"Learner: {report.learner}. Every trial was predicted before its label was seen, as in use. "
        "Intervals are 95 % (Agresti and Min). Made by linmax."
    )
    style = resources.files("linmax.models").joinpath("report.css").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width,initial-scale=1"><title>Report of a jury</title>'
        f"<style>{style}</style></head><body><main><h1>{title}</h1>{body}<footer>{escape(foot)}</footer></main></body></html>\n"
    )


def _html(section: Section) -> str:
    found = []
    for part in section.parts:
        if isinstance(part, Line):
            found.append(f"<p>{_spans(part)}</p>")
        elif isinstance(part, Grid):
            found.append(_html_table(part))
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


def _html_table(grid: Grid) -> str:
    bars = [bool(grid.rows) and isinstance(cell, Bar) for cell in (grid.rows[0] if grid.rows else grid.headings)]
    classes = []
    for i, (heading, is_bar) in enumerate(zip(grid.headings, bars, strict=True)):
        plain = not i or heading in grid.numbers
        name = "wide" if is_bar else "rare" if heading in grid.rare else "" if plain else "names"
        classes.append(f' class="{name}"' if name else "")
    head = "".join(f"<th{mark}>{escape(name)}</th>" for name, mark in zip(grid.headings, classes, strict=True))
    rows = []
    for row in grid.rows:
        cells = (_html_bar(cell) if isinstance(cell, Bar) else _spans(cell) for cell in row)
        rows.append("".join(f"<td{mark}>{cell}</td>" for cell, mark in zip(cells, classes, strict=True)))
    body = "".join(f"<tr>{cells}</tr>" for cells in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _html_bar(cell: Bar) -> str:
    minus = " minus" if cell.share < 0.0 else ""
    return f'<span class="bar{minus}" style="width:{100.0 * abs(cell.share):.1f}%"></span>'


def line_chart(chart: Chart) -> str:
    """A chart as SVG, whose colors the style of the page gives, and its legend."""
    x, lines, square = chart.x, chart.lines, chart.square
    values = np.concatenate([np.asarray(line, float) for line in lines.values()])
    low, high = (0.0, 1.0) if square else (float(values.min()), float(values.max()))
    room = max(high - low, 0.02)
    low, high = (low, high) if square else (max(0.0, low - 0.05 * room), min(1.0, high + 0.05 * room))
    first, last = (0.0, 1.0) if square else (float(min(x)), float(max(x)))

    def across(value: float) -> float:
        return LEFT + (WIDE - LEFT - RIGHT) * (value - first) / ((last - first) or 1.0)

    def down(value: float) -> float:
        return TOP + (HIGH - TOP - BOTTOM) * (1.0 - (value - low) / ((high - low) or 1.0))

    parts = [f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{escape(chart.about)}">']
    for tick in ticks(low, high):
        y = down(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{100 * tick:.4g} %</text>')
    for tick in np.linspace(first, last, 5):
        shown = f"{100 * tick:.0f} %" if square else f"{round(float(tick)):,}"
        anchor = "start" if tick == first else "end" if tick == last else "middle"
        parts.append(f'<text x="{across(float(tick)):.1f}" y="{HIGH - 24}" text-anchor="{anchor}">{shown}</text>')
    parts.append(f'<text x="{WIDE - RIGHT}" y="{HIGH - 3}" text-anchor="end">{escape(chart.below)}</text>')
    if square:
        ends = across(0.0), down(0.0), across(1.0), down(1.0)
        parts.append('<line class="ideal" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'.format(*ends))
    for number, line in reversed(list(enumerate(lines.values()))):
        points = [(across(float(a)), down(float(b))) for a, b in zip(x, line, strict=True)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        parts.append(f'<polyline class="line c{number}" points="{path}"/>')
        if chart.dots:
            parts += [f'<circle class="dot c{number}" cx="{a:.1f}" cy="{b:.1f}" r="3.5"/>' for a, b in points]
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


def heat_map(heat: HeatMap) -> str:
    """A table of correlations, shaded; the names in full at the left, by number above."""
    names, table = heat.names, heat.table
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
