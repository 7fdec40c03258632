"""Watch a few learners on the majority problem of Mesterharm and Hsu.

Twenty voters each name one of five classes at random. Ten of them matter:
the label is the class that most of these ten name, and then noise changes
some labels. No learner is told which ten. Each predicts, then sees the label
and learns; a good one makes few mistakes along the way.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmax import __version__
from linmax.cli.beside import compile_beside
from linmax.cli.output import add_json_option, console

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import Console, RenderableType

    from linmax.data.problems import MajorityProblem

__all__ = ["configure", "run"]

DEMO_LEARNERS = ("perceptron", "winnow(1.03)", "balanced-winnow(1.1)", "auto")
DEMO_KERNELS = (
    "learners.votes.pool:play_votes",
    "engine.plain_loop:play_plain",
    "learners.softmax:walk learners.softmax:survey",
    "engine.record:keep_table engine.record:note_all",
    "rules.winnow:step",
    "rules.perceptron:step",
    "rules.balanced_winnow:step",
    "rules.balanced_winnow:spread",
    "rules.winnow:spread",
)  # what the learners need
VOTERS, RELEVANT, CLASSES = 20, 10, 5
LATE = 1000  # the error is taken over this many trials at the end
FRAMES = 100  # steps of the live view
FRAME = 0.03  # seconds for each frame: the learners are too fast to watch
PLOT = "linmax-demo.png"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``linmax demo``."""
    add = parser.add_argument
    add("--trials", type=int, default=5000, metavar="T", help="number of trials (default: 5000)")
    add(
        "--noise",
        type=float,
        default=0.05,
        metavar="P",
        help="chance that a label is changed (default: 0.05)",
    )
    add("--seed", type=int, default=0, metavar="S", help="seed of the problem (default: 0)")
    add("--plot", metavar="PATH", help=f"save the curves as .png, .svg or .pdf (default: {PLOT})")
    add("--no-plot", action="store_true", help="save no plot")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> None:
    """Run the learners side by side, then print the table, save the plot and write the figures."""
    from linmax.data.problems import majority_problem
    from linmax.util import outputs

    if arguments.json not in (None, "-"):
        outputs.check_output(arguments.json)
    plot = _plot_path(arguments)
    screen = console(arguments)
    start = time.perf_counter()
    problem = majority_problem(**_description(arguments))
    compile_beside(DEMO_KERNELS)
    entrants = _watch(screen, problem) if screen.is_terminal else _race_through(problem)
    seconds = time.perf_counter() - start

    rows = [entrant.figures() for entrant in sorted(entrants, key=lambda entrant: entrant.mistakes)]
    screen.print(_table(rows, len(problem.labels)))
    screen.print(_legend(arguments.noise), style="dim")
    saved = plot is not None and _save_plot(screen, entrants, arguments, plot)
    if arguments.json:
        figures = {
            "version": __version__,
            "problem": _description(arguments),
            "learners": {row.pop("learner"): row for row in rows},
            "seconds": round(seconds, 3),
            "plot": str(plot) if saved else None,
        }
        outputs.write_json(figures, arguments.json)


def _description(arguments: argparse.Namespace) -> dict[str, Any]:
    """The problem in full, as `majority_problem` takes it."""
    return {
        "n": VOTERS,
        "r": RELEVANT,
        "k": CLASSES,
        "noise": arguments.noise,
        "trials": arguments.trials,
        "seed": arguments.seed,
    }


# -- the race ------------------------------------------------------------------------------------------


@dataclass
class Entrant:
    """One row of the table: how it predicts a stretch of trials, and its results so far."""

    name: str
    answer: Callable[[slice], tuple[NDArray[Any], int | None]]  # predictions, and updates made during them
    wrong: list[bool] = field(default_factory=list)
    mistakes: int = 0
    updates: int | None = None

    def advance(self, stretch: slice, labels: NDArray[Any]) -> None:
        predictions, updates = self.answer(stretch)
        wrong = (predictions != labels[stretch]).tolist()
        self.wrong += wrong
        self.mistakes += sum(wrong)
        if updates is not None:
            self.updates = updates + (self.updates or 0)

    @property
    def late_error(self) -> float:
        late = self.wrong[-LATE:]
        return sum(late) / len(late)

    def figures(self) -> dict[str, Any]:
        return {
            "learner": self.name,
            "mistakes": self.mistakes,
            "late_error": self.late_error,
            "updates": self.updates,
        }


def _enter(problem: MajorityProblem) -> list[Entrant]:
    """The learners, and two baselines that do not learn."""
    from linmax.data.experts import experts
    from linmax.models.baselines import plurality

    instances = experts(votes=problem.votes, classes=range(CLASSES))
    named = plurality(problem.votes, CLASSES)
    return [
        *(Entrant(learner, _learning(learner, instances, problem.labels)) for learner in DEMO_LEARNERS),
        Entrant("plurality", lambda stretch: (named[stretch], None)),
        Entrant("optimal", lambda stretch: (problem.clean[stretch], None)),
    ]


def _learning(learner: str, instances: Any, labels: NDArray[Any]) -> Callable[[slice], tuple[Any, int]]:
    """Continue learning where the last stretch ended."""
    from linmax.models.run import run as play

    proceed: Callable[..., Any] = partial(play, learner)

    def answer(stretch: slice) -> tuple[NDArray[Any], int]:
        nonlocal proceed
        trace = proceed(instances[stretch], labels[stretch])
        proceed = trace.model.run
        return trace.predictions, int(trace.updates[-1])

    return answer


def _race(problem: MajorityProblem, frames: int) -> Iterator[list[Entrant]]:
    """Let all entrants predict stretch after stretch; yield before the first and after each."""
    import numpy as np

    entrants = _enter(problem)
    yield entrants
    cuts = np.unique(np.linspace(0, len(problem.labels), frames + 1).astype(int)).tolist()
    for begin, end in pairwise(cuts):
        for entrant in entrants:
            entrant.advance(slice(begin, end), problem.labels)
        yield entrants


def _race_through(problem: MajorityProblem) -> list[Entrant]:
    *_, last = _race(problem, 1)
    return last


# -- the live view -------------------------------------------------------------------------------------


def _watch(screen: Console, problem: MajorityProblem) -> list[Entrant]:
    """Run the race in a live view, which is erased at the end."""
    from rich.live import Live
    from rich.spinner import Spinner

    waiting = Spinner("dots", "preparing")
    with Live(waiting, console=screen, transient=True) as live:
        for entrants in _race(problem, FRAMES):
            if entrants[0].wrong:
                live.update(_frame(entrants, len(problem.labels)))
                time.sleep(FRAME)
    return entrants


def _frame(entrants: Sequence[Entrant], trials: int) -> RenderableType:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    done = len(entrants[0].wrong)
    longest = max(1, *(entrant.mistakes for entrant in entrants))
    view = Table(box=None, padding=(0, 2, 0, 0), title_justify="left")
    view.add_column("learner")
    view.add_column("mistakes", justify="right", min_width=8)
    view.add_column("", width=32)
    view.add_column("recent error", justify="right")
    for entrant in entrants:
        bar = ProgressBar(total=longest, completed=entrant.mistakes, width=32)
        view.add_row(entrant.name, f"{entrant.mistakes:,d}", bar, f"{entrant.late_error:.3f}")
    progress = Table.grid(padding=(0, 1))
    progress.add_row("trial", f"{done:,d} of {trials:,d}", ProgressBar(total=trials, completed=done, width=32))
    return Group(progress, "", view)


# -- the results ---------------------------------------------------------------------------------------


def _table(rows: list[dict[str, Any]], trials: int) -> RenderableType:
    from linmax.util.tables import Heading, table

    columns = [
        Heading("learner"),
        Heading("mistakes", format=",d"),
        Heading("late_error", f"error, last {min(LATE, trials):,d}", ".3f"),
        Heading("updates", format=",d"),
    ]
    return table(rows, columns, title=f"Majority problem, {trials:,d} trials")


def _legend(noise: float) -> str:
    return (
        f"plurality counts all {VOTERS} voters alike; optimal knows the {RELEVANT} that matter, so that only "
        f"noise ({noise:g} of the labels) defeats it; auto is "
        "what you get when you name no learner."
    )


def _plot_path(arguments: argparse.Namespace) -> Path | None:
    """Where the plot goes; raises now if it could not be written later."""
    from linmax.util import outputs, plots

    if arguments.no_plot:
        return None
    if arguments.plot is not None:
        plots.check_plot("--plot", arguments.plot)
    path = Path(arguments.plot or PLOT)
    outputs.check_output(path, plots.PLOT_FORMATS)
    return path


def _save_plot(screen: Console, entrants: Sequence[Entrant], arguments: argparse.Namespace, path: Path) -> bool:
    from linmax.util.plots import plot_mistakes

    curves = {entrant.name: list(accumulate(entrant.wrong)) for entrant in entrants}
    subtitle = (
        f"{VOTERS} voters, {RELEVANT} of them relevant, {CLASSES} classes, "
        f"noise {arguments.noise:g}, seed {arguments.seed}"
    )
    try:
        plot_mistakes(curves, path, title="Mistakes on the majority problem", subtitle=subtitle)
    except ImportError as error:
        screen.print(f"No plot: {error}", soft_wrap=True, markup=False)
        return False
    screen.print(f"Plot saved as {path}", soft_wrap=True, markup=False)
    return True
