"""Reports of a fusion: plain numbers for programs, and sections for people.

A report is a list of `Section`s of `Line`s, `Grid`s, `Chart`s and `HeatMap`s. Two renderers show them: `printed` for
the terminal (rich), which omits drawings, and `linmax.models.page` for the browser and notebooks.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linmax.engine.coverage import COVERAGES, LEVEL_STEPS
from linmax.models.asking import VoterPanels
from linmax.models.baselines import BEST_SO_FAR, FIRST_VOTER, FUSION, NORMAL, PLURALITY, Comparison, Tally
from linmax.models.calibration import Reliability
from linmax.util.aliases import Label, Name

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType

__all__ = [
    "Bar",
    "Cell",
    "Change",
    "Chart",
    "Confusion",
    "Details",
    "Explanation",
    "Grid",
    "HeatMap",
    "Line",
    "Part",
    "Report",
    "Section",
    "Side",
    "StoredRows",
    "SuspiciousLabel",
    "Voter",
    "bar",
    "interval",
]

BAR, SHORT_BAR = 20, 12  # characters
COVERAGE = 0.9  # of the prediction sets in a report
LEVEL_STEP = float(LEVEL_STEPS[COVERAGES == COVERAGE][0])  # by which their levels move
TABLE_ROWS = 30  # voters, or values of side columns, in a table
VOTERS_NAMED = 3  # voters named for a value of a side column
VALUES_SHOWN = 4  # values for which every voter's accuracy is in a table
MOST_IN_HEADLINE = 4  # voters
DOUBTS_SHOWN = 15  # labels that look wrong
TEXT_WIDTH = 120  # of str()
VERDICT_COLORS = {"beats": "green", "loses to": "red", "unclear": "yellow"}
STRETCHES = 40  # in which accuracy over time is shown
CHANGE_ERRORS = 3.5  # standard errors by which a voter's accuracy must have changed to be reported
MAPPED = 12  # voters whose errors are compared in a heat map
FEWEST_SPLIT = 50  # trials before and after a change of a voter's accuracy
MOST_VOTERS_PAIRED = 2000  # voters of whom every two are compared
PAIRS = 5  # most similar pairs of voters
TOLERANCE_OF_PANEL = 0.01  # accuracy that the panel of the decision may give up
UNSURE = 0.5  # probability of an answer below which a person is asked
LEAST_UNSURE = 0.01  # share of such answers that is reported
FEWEST_UNSURE = 50  # trials by which the share of such answers is estimated
FEWEST_IN_BIN = 10  # trials of a bin that counts for the verdict on probabilities
BIN_ERRORS = 2.5  # standard errors by which such a bin is off
FEWEST_SUSPECT = 20  # votes by which a voter is suspicious
IDS = 0.9  # share of distinct votes of a column of ids
DOUBTED = 0.01  # probability of a label that looks wrong

FIGURES = {
    "accuracy": "Share of the rows answered right. Every row is predicted before its label is seen, as in use.",
    "interval": "95 % intervals: Wilson for an accuracy, Agresti and Min for a difference on the same rows.",
    "weight": "A voter's share of the sum of all weights. A negative weight: its votes count against the class named.",
    "plurality": "The class that most voters name, ties broken by chance.",
    "best voter": "The voter most often right. It is chosen with the labels at hand, which flatters it; the best voter "
    "so far is what could have been followed.",
    "conditional logit": "A batch refit: one weight for each voter, fitted again each time there are 10 % more rows.",
    "fixed share": "A weighted vote that forgets, for voters that change.",
    "log loss": "Mean of -log(probability of the right answer). 0 is perfect; lower is better.",
    "calibration error": "Mean difference between stated probability and share of right answers.",
    "independent voters": "n / (1 + (n - 1) r), r the mean correlation of errors: as many voters whose errors are "
    "unrelated would know as much.",
}  # what the figures of a page mean


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
    """Lines over x, with shares of 1 on the vertical axis; ``about`` describes it to readers who do not see it.

    ``counts`` are the trials of each point; points of few trials are hollow.
    """

    x: Sequence[float] | np.ndarray
    lines: Mapping[str, Sequence[float] | np.ndarray]
    about: str
    below: str
    dots: bool = False
    square: bool = False
    counts: Sequence[int] = ()


@dataclass(frozen=True)
class HeatMap:
    """A shaded table of correlations, or of shares in ``percent``; nan is left empty. ``notes`` explain the cells."""

    rows: Sequence[str]
    columns: Sequence[str]
    table: np.ndarray
    percent: bool = False
    notes: Sequence[Sequence[str]] = ()


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


def interval(right: float, trials: int) -> tuple[float, float]:
    """Return the 95 % interval of Wilson for an accuracy.

    Examples
    --------
    >>> [round(end, 3) for end in interval(9, 10)]
    [0.596, 0.982]
    """
    if not trials:
        return 0.0, 1.0
    share, more = right / trials, NORMAL**2 / trials
    reach = NORMAL * math.sqrt(share * (1.0 - share) / trials + more / (4.0 * trials))
    return (share + more / 2.0 - reach) / (1.0 + more), (share + more / 2.0 + reach) / (1.0 + more)


class _Shown:
    """Prints as rich does, without colors."""

    def __str__(self) -> str:
        from rich.console import Console

        screen = Console(file=io.StringIO(), width=TEXT_WIDTH, color_system=None, highlight=False)
        screen.print(self)
        assert isinstance(screen.file, io.StringIO)
        return "\n".join(line.rstrip() for line in screen.file.getvalue().splitlines()).strip("\n")


# -- what the stored rows show ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A voter whose accuracy changed, near which trial, and its accuracy before and after."""

    voter: str
    trial: int
    before: float
    after: float


@dataclass(frozen=True)
class SuspiciousLabel:
    """A row whose label the trusted voters contradict.

    Attributes
    ----------
    row
        Number of the row among the rows with a label, from 0, in the order in which they were learned.
    label, answer
        The label, and the answer of the fusion; None where answers are open, whose text is not stored.
    probability, of_label
        Their probabilities.
    voters
        How many voters named the answer.
    line
        Its line in the file, if that is known.
    """

    row: int
    label: Label
    answer: Label
    probability: float
    of_label: float
    voters: int
    line: int | None = None


@dataclass(frozen=True)
class Confusion(_Shown):
    """Counts of the classes that a voter named, by label: ``counts`` (labels, classes and abstentions)."""

    voter: str
    classes: tuple[Label, ...]
    counts: np.ndarray

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and labels."""
        return {"voter": self.voter, "classes": list(self.classes), "counts": self.counts.tolist()}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        del console
        names = [*map(str, self.classes), "no vote"]
        rows = [
            [name, *(str(n) if n else "" for n in row)] for name, row in zip(names, self.counts.tolist(), strict=False)
        ]
        grid = Grid(["label", *names], names, rows)
        yield from printed([Section(f"Votes of {self.voter}, by label", [grid])], options.ascii_only)


class Suspects(NamedTuple):
    """Voters that equal the label, that never vary, that answer ids, and groups of copies."""

    leaks: list[int]
    constants: list[int]
    ids: list[int]
    copies: list[list[int]]


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Stored trials, the oldest first: votes and labels by class number, -1 for none.

    Attributes
    ----------
    classes, values
        Names of the classes, None where answers are open; and of the values of side columns.
    places
        (trials, side columns) places of the values, -1 where missing.
    right
        Where the fusion was right, before it saw the label; empty if that is not stored.
    shares
        Probabilities of the classes; None for scores.
    first
        Number of the first trial.
    lines
        Lines of the file that hold the latest of these trials, if known.
    """

    classes: tuple[Label, ...] | None
    values: tuple[str, ...]
    votes: np.ndarray
    labels: np.ndarray
    places: np.ndarray
    right: np.ndarray
    shares: np.ndarray | None
    first: int
    lines: tuple[int, ...] = ()

    def suspicious_labels(self) -> list[SuspiciousLabel]:
        """Return the rows whose labels look wrong, the most probable first.

        The label has a probability of 1 % at most, and another class at least the mean probability that it has where
        it is the label (Northcutt, Jiang and Chuang 2021).
        """
        if self.shares is None or not len(self.labels):
            return []
        trials, k = np.arange(len(self.labels)), self.shares.shape[1]
        of_label, answers = self.shares[trials, self.labels], self.shares.argmax(axis=1)
        counts = np.bincount(self.labels, minlength=k)
        usual = np.bincount(self.labels, of_label, k) / np.maximum(counts, 1)
        highest = self.shares.max(axis=1)
        found = (of_label <= DOUBTED) & (highest >= np.maximum(usual[answers], UNSURE)) & (counts[answers] > 0)
        order = np.flatnonzero(found)[np.argsort(-highest[found], kind="stable")]
        agreeing = (self.votes == answers[:, None]).sum(axis=1)
        read = len(self.labels) - len(self.lines)
        return [
            SuspiciousLabel(
                self.first + t,
                None if self.classes is None else self.classes[self.labels[t]],
                None if self.classes is None else self.classes[answers[t]],
                float(highest[t]),
                float(of_label[t]),
                int(agreeing[t]),
                self.lines[t - read] if t >= read else None,
            )
            for t in order.tolist()
            if agreeing[t] > 1
        ]

    def constant(self) -> np.ndarray:
        """Return which voters always name the same class."""
        if self.classes is None:
            return np.zeros(self.votes.shape[1], bool)
        voted = self.votes >= 0
        lowest = np.where(voted, self.votes, np.iinfo(np.int32).max).min(axis=0, initial=np.iinfo(np.int32).max)
        return np.asarray((voted.sum(axis=0) >= FEWEST_SUSPECT) & (self.votes.max(axis=0, initial=-1) == lowest))

    @cached_property
    def suspects(self) -> Suspects:
        """Voters that look like something else."""
        votes, voted = self.votes, self.votes >= 0
        counts = voted.sum(axis=0)
        enough, constant = counts >= FEWEST_SUSPECT, self.constant()
        is_open = self.classes is None  # places among answers, of which nothing but equality means anything
        varied = is_open or len(np.unique(self.labels)) > 1  # with one class alone all voters are constant
        equal = ((votes == self.labels[:, None]) | ~voted).all(axis=0) & enough & varied
        others = np.flatnonzero(enough & ~constant & ~equal).tolist()
        ids = [i for i in others if not is_open and len(np.unique(votes[voted[:, i], i])) > IDS * counts[i]]
        groups: dict[bytes, list[int]] = {}
        for i in others:
            groups.setdefault(np.ascontiguousarray(votes[:, i]).tobytes(), []).append(i)
        constants = np.flatnonzero(constant & ~equal & varied).tolist()
        copies = [group for group in groups.values() if len(group) > 1]
        return Suspects(np.flatnonzero(equal).tolist(), constants, ids, copies)

    def suspicions(self, voters: Sequence[str]) -> list[str]:
        """Return a sentence for each voter that looks like something else."""
        leaks, constants, ids, copies = self.suspects
        counts = (self.votes >= 0).sum(axis=0)
        return [
            *(
                f"{voters[i]} equals the label in all {counts[i]:,} rows in which it votes. Is it a copy?"
                for i in leaks
            ),
            *(
                f"{voters[i]} always answers {(self.classes or ())[int(self.votes[:, i].max())]!r}, in {counts[i]:,} "
                "rows. It adds nothing."
                for i in constants
            ),
            *(f"{voters[i]} answers something else in nearly every row. Remove it if it is an id." for i in ids),
            *(f"{listed([voters[i] for i in group])} give the same answer in every row. Keep one." for group in copies),
        ]

    def accuracy_by(self, voters: Sequence[str]) -> list[dict[str, Any]]:
        """Return the accuracy of each voter, and of the fusion, for each value of the side columns."""
        rows = []
        for place, value in enumerate(self.values):
            here = (self.places == place).any(axis=1)
            size = int(here.sum())
            right = (self.votes[here] == self.labels[here, None]).sum(axis=0).tolist()
            everybody = list(zip(voters, right, strict=False))
            if len(self.right):
                everybody.append(("fusion", int(self.right[here].sum())))
            for name, count in everybody if size else []:
                low, high = interval(count, size)
                rows.append(
                    {"value": value, "voter": name, "accuracy": count / size, "low": low, "high": high, "trials": size}
                )
        return rows

    def confusion(self, voter: str, place: int) -> Confusion:
        """Return how often a voter named each class, by label."""
        if self.classes is None:
            raise ValueError("confusion() requires classes, and answers are open: no answer appears twice")
        k = len(self.classes)
        cells = self.labels.astype(np.int64) * (k + 1) + np.where(self.votes[:, place] < 0, k, self.votes[:, place])
        return Confusion(voter, self.classes, np.bincount(cells, minlength=k * (k + 1)).reshape(k, k + 1))


@dataclass(frozen=True, eq=False)
class Details:
    """Counts and stored trials of a fusion, copied when the report was made."""

    voters: tuple[str, ...]
    leader: int
    times: np.ndarray  # trials at the ends of stretches, from 0
    mistakes: np.ndarray  # (times, rivals): up to each
    rows: StoredRows
    panels: Callable[[], VoterPanels] | None  # compares panels of voters
    priced: bool  # whether the costs of asking them were given

    @classmethod
    def of(
        cls,
        tally: Tally,
        voters: Sequence[str],
        rows: StoredRows,
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
        votes, labels = self.rows.votes, self.rows.labels
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
        """The number of independent voters that these amount to, without those that always give the same answer.

        None where that is undefined, or where there are too many voters to compare every two.
        """
        varied = np.flatnonzero(~self.rows.constant())
        n = len(varied)
        if n > MOST_VOTERS_PAIRED:
            return None
        pairs = self.likeness[np.ix_(varied, varied)][~np.eye(n, dtype=bool)]
        if n < 2 or not np.isfinite(pairs).any():
            return None
        return float(n / (1.0 + (n - 1) * max(0.0, float(np.nanmean(pairs)))))

    @cached_property
    def panel(self) -> VoterPanels | None:
        """Panels of voters; None for scores and for few trials."""
        return None if self.panels is None else self.panels()

    @cached_property
    def doubtful(self) -> tuple[list[str], list[str]]:
        """Voters that equal the label, and those that add nothing."""
        suspects = self.rows.suspects
        useless = [*suspects.constants, *(i for group in suspects.copies for i in group[1:])]
        return [self.voters[i] for i in suspects.leaks], [self.voters[i] for i in sorted(useless)]

    @cached_property
    def suspicious_labels(self) -> list[SuspiciousLabel]:
        """Rows whose labels look wrong."""
        return self.rows.suspicious_labels()

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

    # -- sections -------------------------------------------------------------------------------------------------

    def warned(self) -> Section | None:
        """Section on what is suspicious, if anything is."""
        sentences = self.rows.suspicions(self.voters)
        parts: list[Part] = [Line(sentence, "yellow") for sentence in sentences]
        doubts = self.suspicious_labels
        if doubts:
            text = (
                f"{_counted(len(doubts), 'label')} of {len(self.rows.labels):,} look wrong: the trusted voters agree "
            )
            parts.append(Line(f"{text}on another answer.", "yellow"))
        return Section("Check this first", parts) if parts else None

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
        if self.panel is not None:
            yield self._enough(self.panel)
        if self.rows.values and len(self.rows.labels):
            yield self._by_value(order)
        if self.suspicious_labels:
            yield self._doubts()
        if self.independent is not None:
            yield self._alike(order)
        rows = [[c.voter, f"{c.trial:,}", _percent(c.before), _percent(c.after)] for c in self.changes[:TABLE_ROWS]]
        headings = ["voter", "near trial", "accuracy before", "after"]
        none = Line("No voter's accuracy has changed beyond what chance explains.")
        yield Section("What changed, and when", [Grid(headings, headings[1:], rows) if rows else none], details=True)

    def _doubts(self) -> Section:
        rows: list[list[Cell]] = []
        for doubt in self.suspicious_labels[:DOUBTS_SHOWN]:
            place = doubt.row + 1 if doubt.line is None else doubt.line
            shares = _percent(doubt.probability), _percent(doubt.of_label)
            names = ["" if name is None else str(name) for name in (doubt.label, doubt.answer)]
            rows.append([f"{place:,}", *names, *shares, str(doubt.voters)])
        by_line = bool(self.rows.lines)
        headings = ["line" if by_line else "row", "label", "fusion", "probability", "of the label", "voters"]
        note = "" if by_line else "Rows in the order in which they were learned, those without a label not counted. "
        parts: list[Part] = [
            Grid(headings, [headings[0], *headings[3:]], rows, rare=headings[4:]),
            *_rest(len(self.suspicious_labels) - DOUBTS_SHOWN, "more row", "with a lower probability"),
            Line(f"{note}All of them: --suspicious FILE, or report.suspicious_labels() in Python.", "dim"),
        ]
        return Section("Labels that look wrong", parts, details=True)

    def _by_value(self, order: Sequence[str]) -> Section:
        found = {(row["value"], row["voter"]): row for row in self.rows.accuracy_by(self.voters)}
        sizes = [(self.rows.places == place).sum() for place in range(len(self.rows.values))]
        values = [self.rows.values[place] for place in np.argsort(sizes, kind="stable")[::-1][:TABLE_ROWS]]
        names = [*(["fusion"] if len(self.rows.right) else []), *order[:MAPPED]]
        cells = [[found.get((value, name)) for name in names] for value in values]
        table = np.array([[np.nan if cell is None else cell["accuracy"] for cell in row] for row in cells])
        notes = [[_estimated(cell, named=True) for cell in row] for row in cells]
        text = f"Accuracy on the last {len(self.rows.labels):,} rows with a label; an abstention counts as a mistake."
        heat, note = HeatMap(values, names, table, percent=True, notes=notes), text
        return Section("Who is good at what", [heat, Line(note, "dim")], details=True)

    def _alike(self, order: Sequence[str]) -> Section:
        chosen = [self.voters.index(name) for name in order[:MAPPED]]
        upper = np.triu(np.nan_to_num(self.likeness, nan=-2.0), 1) - 3.0 * np.tri(len(self.voters))
        pairs = [np.unravel_index(i, upper.shape) for i in np.argsort(-upper, axis=None)[:PAIRS]]
        rows = [
            [f"{self.voters[i]} and {self.voters[j]}", f"{self.likeness[i, j]:.2f}"]
            for i, j in pairs
            if np.isfinite(self.likeness[i, j])
        ]
        constant = int(self.rows.constant().sum())
        text = (
            "Voters that make the same mistakes add little to each other. By the mean correlation of their errors the "
            f"{len(self.voters) - constant} voters{' that vary' if constant else ''} amount to "
        )
        headings = ["most alike", "correlation of errors"]
        names = [self.voters[i] for i in chosen]
        parts: list[Part] = [
            Line(text, "", (f"{self.independent:.1f}", "bold"), (" independent ones.", "")),
            Grid(headings, headings[1:], rows),
            Line(f"The {len(chosen)} voters of largest weight; 1 means always together, 0 independent.", "dim"),
            HeatMap(names, names, self.likeness[np.ix_(chosen, chosen)]),
        ]
        return Section("How alike their errors are", parts, details=True)

    def _enough(self, panel: VoterPanels) -> Section:
        best, last = panel.enough(TOLERANCE_OF_PANEL), panel[len(panel) - 1]
        cost = f", at a cost of {best.cost:g} of {last.cost:g} a trial," if self.priced else ""
        summary = Line(
            f"{len(best.voters)} of {len(self.voters)}",
            "bold",
            (f" voters{cost} are right in {_percent(best.accuracy)}, all together in {_percent(last.accuracy)}.", ""),
        )
        rows, known = [], 0
        for line in panel:
            added, more = (
                ", ".join(map(str, line.voters[known:][:VOTERS_NAMED])),
                len(line.voters) - known - VOTERS_NAMED,
            )
            known, style = len(line.voters), "bold" if line is best else ""
            cells = [added + (f" and {more} more" if more > 0 else ""), f"{known}"]
            cells += [f"{line.cost:g}"] if self.priced else []
            rows.append([Line(cell, style) for cell in (*cells, _percent(line.accuracy))])
        headings = ["adds", "voters", *(["cost a trial"] if self.priced else []), "accuracy together"]
        accuracy = {"accuracy of these voters together": [line.accuracy for line in panel]}
        sizes = [len(line.voters) for line in panel]
        chart = Chart(sizes, accuracy, "accuracy of the first voters together", "voters", dots=True)
        note = Line(f"Accuracy on {panel.trials:,} trials that chose neither the order of voters nor the size.", "dim")
        return Section("How few are enough", [summary, chart, Grid(headings, headings[1:], rows), note], details=True)


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
    """Result of `VoteFusion.report`: ``to_dict()`` for programs; ``print``, rich and notebooks show it to people.

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
        """Section on the weights of voters as long as there is no label."""
        alike = len(self.voters) > 1 and len({voter.weight for voter in self.voters}) == 1
        return "this learner requires labels, and weights all alike" if alike else "voters are weighted by agreement"

    # -- for programs ---------------------------------------------------------------------------------------------

    def suspicious_labels(self) -> list[SuspiciousLabel]:
        """Return the rows whose labels look wrong, the most probable first.

        Examples
        --------
        >>> import linmax
        >>> data = linmax.datasets.majority_problem(n=20, r=10, k=5, noise=0.0, trials=1000, seed=1)
        >>> labels = data.labels.copy()
        >>> labels[700] = (labels[700] + 1) % 5  # a mistake
        >>> [doubt.row for doubt in linmax.VoteFusion().fit(data.votes, labels).report().suspicious_labels()][:1]
        [700]
        """
        return [] if self.details is None else self.details.suspicious_labels

    def numbered(self, lines: Sequence[int]) -> Report:
        """Return the report with the lines of a file that hold the latest rows with a label, in their order."""
        if self.details is None:
            return self
        size = len(self.details.rows.labels)
        rows = replace(self.details.rows, lines=tuple(lines[-size:] if size else ()))
        return replace(self, details=replace(self.details, rows=rows))

    def suspicions(self) -> list[str]:
        """Return a sentence for each voter that looks like a copy, a constant, an id or the label itself."""
        return [] if self.details is None else self.details.rows.suspicions(self.details.voters)

    def accuracy_by(self) -> list[dict[str, Any]]:
        """Return the accuracy of each voter for each value of the side columns, with 95 % intervals."""
        return [] if self.details is None else self.details.rows.accuracy_by(self.details.voters)

    def confusion(self, voter: Name) -> Confusion:
        """Return how often a voter named each class, by label, in the stored rows."""
        names = () if self.details is None else self.details.voters
        if self.details is None or str(voter) not in names:
            raise ValueError(f"voter must be one of {', '.join(names)}; got {voter!r}")
        return self.details.rows.confusion(str(voter), names.index(str(voter)))

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return the tables of the report by name, as lists of rows."""
        compared = {"online": self.online} | ({} if self.test is None else {"held out": self.test})
        tables = {
            "comparisons": [
                {"on": where, "rival": key, **vars(rival), "verdict": rival.verdict}
                for where, comparison in compared.items()
                for key, rival in comparison.rivals.items()
            ],
            "voters": [asdict(voter) for voter in self.voters],
            "accuracy_by": self.accuracy_by(),
            "suspicious_labels": [asdict(doubt) for doubt in self.suspicious_labels()],
        }
        shown = self.test_reliability or self.reliability
        tables["reliability"] = [] if shown is None else [asdict(part) for part in shown.bins]
        panel = None if self.details is None else self.details.panel
        tables["panel"] = [] if panel is None else [asdict(line) for line in panel]
        return tables

    def to_pandas(self, table: str = "voters") -> Any:
        """Return one of `tables` as a DataFrame of pandas."""
        import pandas

        return pandas.DataFrame(self._table(table))

    def to_polars(self, table: str = "voters") -> Any:
        """Return one of `tables` as a DataFrame of polars."""
        import polars

        return polars.DataFrame(self._table(table))

    def _table(self, name: str) -> list[dict[str, Any]]:
        tables = self.tables()
        if name not in tables:
            raise ValueError(f"table must be one of {', '.join(tables)}; got {name!r}")
        return tables[name]

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the report as one page that needs nothing else: for the browser, the phone and the printer.

        Examples
        --------
        >>> import linmax, os, tempfile
        >>> data = linmax.datasets.majority_problem(trials=300, seed=1)
        >>> page = os.path.join(tempfile.mkdtemp(), "report.html")
        >>> linmax.VoteFusion("perceptron").fit(data.votes, data.labels).report().to_html(page)
        >>> os.path.getsize(page) < 500_000
        True
        """
        from linmax.models.page import page
        from linmax.util.files import replacing
        from linmax.util.outputs import check_output

        check_output(path)
        with replacing(path) as file:
            file.write(page(self).encode())

    def _repr_html_(self) -> str:
        """Return the core of the page, for notebooks."""
        from linmax.models.page import core

        return core(self, whole=False)

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
            for row in self.accuracy_by():
                there = figures["by"].setdefault(row["value"], {}).setdefault("accuracy", {})
                there[row["voter"]] = [row["accuracy"], row["low"], row["high"]]
        figures["suspicions"] = self.suspicions()
        figures["suspicious_labels"] = len(self.suspicious_labels())
        return figures

    # -- for people -----------------------------------------------------------------------------------------------

    @cached_property
    def decision(self) -> tuple[str, str]:
        """Decision: a headline, and a sentence or two with what to expect."""
        shown = self.test or self.online
        if not shown.trials:
            return "The fused jury has not seen a label yet", f"How often it is right is not known; {self.unlabelled}."
        accuracy, trials, count = shown.accuracy["fusion"], shown.trials, len(self.voters)
        panel = None if self.details is None else self.details.panel
        leaks, useless = ([], []) if self.details is None else self.details.doubtful
        if leaks:
            headline = f"Check {listed(leaks)} first"
            return headline, "It equals the label wherever it votes; remove it if it is a copy, and run this again."
        rival = shown.rivals["best_so_far"]
        if rival.verdict == "loses to":
            headline = f"Follow {rival.name} alone"
            text = (
                f"It is right in {_percent(rival.accuracy)}, the fusion of all {count} voters in {_percent(accuracy)}."
            )
            return headline, text
        best = panel.enough(TOLERANCE_OF_PANEL) if panel is not None else None
        if (
            best is not None and best.behind - NORMAL * best.error > TOLERANCE_OF_PANEL
        ):  # on rows that did not choose it
            best = None
        named = ""
        low, high = interval(accuracy * trials, trials)
        if best is None or len(best.voters) == count:
            headline, others = f"Use all {count} voters", ""
            if len(useless) == count:
                return "Use none of these voters", "Each always gives the same answer; add voters that tell rows apart."
            if useless:
                headline = f"Use all voters but {listed(useless)}"
        else:
            size, others = len(best.voters), f"; all {count} voters reach {_percent(accuracy)}"
            headline = f"Use {'this voter' if size == 1 else f'these {size} voters'}: {listed(best.voters)}"
            if size > MOST_IN_HEADLINE:
                headline, named = f"Use these {size} of {count} voters", f" They are {listed(best.voters)}."
            reach = math.hypot((high - low) / 2.0, NORMAL * best.error)
            accuracy -= best.behind
            low, high = max(0.0, accuracy - reach), min(1.0, accuracy + reach)
        expect = f"Expect {_percent(accuracy)} right ({100 * low:.0f} to {100 * high:.0f} %){others}.{named}"
        return headline, " ".join([expect, *self._unsure()])

    def _unsure(self) -> list[str]:
        """Return a sentence about the answers of which a person should be asked, if there are enough trials."""
        shown = self.test_reliability or self.reliability
        if shown is None or shown.trials < FEWEST_UNSURE:
            return []
        unsure = sum(part.trials for part in shown.bins if part.confidence < UNSURE)
        sure = sum(part.trials * part.accuracy for part in shown.bins if part.confidence >= UNSURE)
        if not LEAST_UNSURE <= unsure / shown.trials < 1.0:
            return []
        marked, right = f"{100.0 * unsure / shown.trials:.0f} %", _percent(sure / (shown.trials - unsure))
        return [
            f"Ask a person about the {marked} of rows whose answer has a probability below {100 * UNSURE:.0f} %; the "
            f"other answers are right in {right}."
        ]

    def sections(self) -> list[Section]:
        """Return the report in reading order; the decision comes before it."""
        sections = []
        details = self.details
        warned = None if details is None else details.warned()
        if warned is not None:
            sections.append(warned)
        changed = details is not None and bool(details.changes)
        if self.online.trials:
            title = f"Online: {_counted(self.online.trials, 'trial')}, each predicted before its label was seen"
            sections.append(_compared(title, "best voter so far", self.learner, self.online, changed))
        else:
            text = f"How often the fusion is right is not known; {self.unlabelled}."
            sections.append(Section("No label yet", [Line(text)]))
        if self.test is not None:
            title = f"Held out: {_counted(self.test.trials, 'trial')}"
            sections.append(_compared(title, "best voter online", self.learner, self.test, changed))
        if details is not None and len(details.times) > 2:
            sections.append(details.over_time())
        probabilities = self._probabilities()
        if probabilities.parts:
            sections.append(probabilities)
        sections.append(self._voters())
        if self.sides:
            sections.append(self._sides())
        if self.online.trials or self.test is not None:
            note = Line("An abstention counts as a mistake; plurality breaks ties by chance.", "dim")
            sections[-1] = Section(sections[-1].title, [*sections[-1].parts, note])
        if details is not None:
            sections += details.sections([voter.name for voter in self.voters])
        return sections

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        del console
        shown = [section for section in self.sections() if not section.details]
        if self.online.trials or self.test is not None:
            headline, text = self.decision
            shown.insert(0, Section(headline, [Line(text)]))
        yield from printed(shown, options.ascii_only)

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
            from linmax.theory.bounds import adaptive_coverage  # SciPy's optimizers take long to import

            off = min(adaptive_coverage(self.online.trials, LEVEL_STEP, 1.0 - COVERAGE), COVERAGE)
            text = (
                f"Sets for a coverage of {_percent(COVERAGE)} held the label in {_percent(self.coverage[COVERAGE])} "
                f"of all trials (never more than {_percent(off)} off, whatever changes)"
            )
            parts.append(Line(text))
        shown = self.test_reliability or self.reliability
        if shown is not None and len(shown.bins) > 1:
            x, right = [part.confidence for part in shown.bins], {"right": [part.accuracy for part in shown.bins]}
            about, counts = "share of right answers by stated probability", [part.trials for part in shown.bins]
            parts.append(_believed(shown))
            parts.append(Chart(x, right, about, "stated probability", dots=True, square=True, counts=counts))
            note = f"Numbers are the trials of each point; hollow points have fewer than {FEWEST_IN_BIN}."
            parts.append(Line(note, "dim page"))
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
        parts += _rest(len(self.voters) - TABLE_ROWS, "more voter", "with less weight")
        if self.normalizations:
            shares = ", ".join(f"{kind} {_percent(share)}" for kind, share in self.normalizations.items())
            parts.append(Line(f"Weight by normalization: {shares}"))
        return Section("Voters", parts)

    def _sides(self) -> Section:
        rows: list[list[Cell]] = []
        by: dict[str, list[dict[str, Any]]] = {}
        for row in self.accuracy_by():
            by.setdefault(row["value"], []).append(row)
        for side in self.sides[:TABLE_ROWS]:
            found = sorted(by.get(side.name, []), key=lambda row: -row["accuracy"])
            best = next((row for row in found if row["voter"] != "fusion"), None)
            own = next((row for row in found if row["voter"] == "fusion"), None)
            largest = ", ".join(f"{name} {_percent(w)}" for name, w in list(side.weights.items())[:VOTERS_NAMED])
            cells = [largest] if not by else [_estimated(own), _estimated(best, named=True)]
            rows.append([side.name, f"{side.trials:,d}", *cells])
        headings = ["", "trials", *(["fusion", "most accurate voter"] if by else ["largest weights"])]
        parts: list[Part] = [Grid(headings, ["trials"], rows, rare=["trials"])]
        parts += _rest(len(self.sides) - TABLE_ROWS, "more value", "with fewer trials")
        if by:
            parts += self._voters_by_value([side.name for side in self.sides[:VALUES_SHOWN]], by)
        return Section("Accuracy by value" if by else "Weights by value; those above are their means", parts)

    def _voters_by_value(self, values: Sequence[str], by: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Part]:
        """Return the accuracy of each voter for the most frequent values, with intervals."""
        found = {(value, row["voter"]): row for value in values for row in by.get(value, ())}
        names = [voter.name for voter in self.voters[:TABLE_ROWS]]
        rows = [[name, *(_estimated(found.get((value, name))) for value in values)] for name in names]
        left = len(by) - len(values)
        note = f"The most frequent values; {left} more in report.accuracy_by(), --html and --json." if left > 0 else ""
        return [Grid(["voter", *values], [], rows), *([Line(note, "dim")] if note else [])]


def _estimated(row: Mapping[str, Any] | None, named: bool = False) -> str:
    """Return an accuracy with its interval."""
    if row is None:
        return ""
    name = f"{row['voter']} " if named else ""
    return f"{name}{_percent(row['accuracy'])} ({100 * row['low']:.0f} to {100 * row['high']:.0f})"


def _believed(judged: Reliability) -> Line:
    """Return the verdict on probabilities, by the bins with enough trials."""
    off = []
    for part in judged.bins:
        error = math.sqrt(max(part.confidence * (1.0 - part.confidence), 0.01) / part.trials)
        if part.trials >= FEWEST_IN_BIN and abs(part.accuracy - part.confidence) > BIN_ERRORS * error:
            off.append(part)
    if not any(part.trials >= FEWEST_IN_BIN for part in judged.bins):
        return Line("There are too few trials to judge the probabilities.")
    if not off:
        return Line("The probabilities agree with how often answers are right, as far as chance allows.", "green")
    worst = max(off, key=lambda part: part.trials * abs(part.accuracy - part.confidence))
    stated, found = _percent(worst.confidence), _percent(worst.accuracy)
    kind = "too sure" if worst.accuracy < worst.confidence else "not sure enough"
    text = (
        f"The probabilities are {kind}: where they are about {stated}, {found} of {worst.trials:,} answers are right."
    )
    return Line(text, "yellow")


def _compared(title: str, leading: str, learner: str, comparison: Comparison, changed: bool) -> Section:
    """Return the fusion and its baselines, the most accurate first, and a sentence that says which one won.

    Rivals that forget are shown where voters have changed, or where they are the best.
    """
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
    for key in ("logit", "logit_recent", "fixed_share"):
        if key in rivals and (key == "logit" or changed or rivals[key].verdict == "loses to"):
            names[key] = rivals[key].name
            article = "" if key == "fixed_share" else "the "
            phrases[key] = article + names[key].split(", ")[0]
    rows: list[tuple[float, list[Cell]]] = []
    found: dict[str, list[str]] = {verdict: [] for verdict in VERDICT_COLORS}
    for key, name in names.items():
        rival = rivals[key]
        reach = f" ({100.0 * rival.low:+.1f} to {100.0 * rival.high:+.1f})"
        lead = Line(f"{100.0 * rival.difference:+.1f}", VERDICT_COLORS[rival.verdict], (reach, "default"))
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


def _rest(left: int, what: str, how: str) -> list[Line]:
    """Return a line about rows that are not shown, if there are any."""
    return [Line(f"and {_counted(left, what)} {how}", "dim")] if left > 0 else []


def listed(parts: Sequence[object]) -> str:
    """Join as in "a, b and c"."""
    texts = list(map(str, parts))
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


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

    winner: Label
    runner_up: Label
    difference: float
    contributions: Mapping[str, float]
    votes: Mapping[str, Label]
    sides: Mapping[str, Label] = field(default_factory=dict)

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
        yield from printed([Section(title, parts)], options.ascii_only)


# -- the terminal -------------------------------------------------------------------------------------------------


def printed(sections: Iterable[Section], ascii_only: bool) -> Iterator[RenderableType]:
    """Sections for a terminal, with a blank line between them; drawings are left out."""
    from rich.table import Table
    from rich.text import Text

    for number, section in enumerate(sections):
        if number:
            yield Text("")
        yield Text(section.title, style="bold")
        for part in section.parts:
            if isinstance(part, Line) and part.spans[0][1] != "dim page":
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
