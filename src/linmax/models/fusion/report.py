"""What a fusion says of itself, for people (text, rich) and for programs (plain numbers)."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmax.bounds import adaptive_coverage
from linmax.engine.coverage import COVERAGES, LEVEL_STEPS
from linmax.models.fusion.comparison import Comparison, Rival
from linmax.models.fusion.details import Details
from linmax.models.reliability import Reliability

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
    from rich.table import Table
    from rich.text import Text

__all__ = ["Explanation", "Report", "Side", "Voter", "bar", "listed"]

BAR, SHORT_BAR = 20, 12  # characters
COVERAGE = 0.9  # of the prediction sets that are told of
LEVEL_STEP = float(LEVEL_STEPS[COVERAGES == COVERAGE][0])  # by which their levels move
TABLE_ROWS = 30  # voters, or values of side columns, in a table
VOTERS_NAMED = 3  # voters named beside a value of a side column
TEXT_WIDTH = 120  # of str()
VERDICT_COLOURS = {"beats": "green", "loses to": "red", "unclear": "yellow"}


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
    diversity: float | None = None


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
        from linmax.models.fusion.page import page_of
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
            found["diversity_strength"] = {voter.name: voter.diversity for voter in self.voters}
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
        headings = ["", "weight", "", "accuracy", "speaks", *(["diversity"] if self.normalisations else [])]
        shown = _grid(headings, [heading for heading in headings if heading], ascii_only)
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
            shown.add_row(*cells, *([Text(f"{voter.diversity:.3f}")] if voter.diversity is not None else []))
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
