"""Repeat the experiments of Mesterharm and Hsu and compare with the paper.

table1   error of the last hypothesis on the majority problem, seven levels
         of noise; both readings of "Balanced" (docs/reproduction.md)
figure4  accuracy of Balanced Winnow(1.2) after every trial on forest cover
         (LINMAX_DATA/covtype/*.csv.gz, or scikit-learn's cached copy)
figure5  mistake curves at noise .05 of the best learner of each group
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmax import __version__
from linmax.cli.output import add_json_option, console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

__all__ = ["configure", "run"]

EXPERIMENTS = ("table1", "figure4", "figure5")
# Which options belong to which experiments; the rest belong to all.
EXPERIMENT_OPTIONS = {
    "runs": ("table1", "figure5"),
    "jobs": ("table1", "figure5"),
    "noise": ("table1",),
    "test": ("table1", "figure4"),
    "plot": ("figure4", "figure5"),
    "no_plot": ("figure4", "figure5"),
}
JOBS = 2
GROUP_NAMES = {
    "best_b": "best basic",
    "best_a": "best averaged",
    "best_ar": "best averaged, recycled",
    "vr_combine": "VR-Combine",
    "optimal": "optimal",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``linmax reproduce``."""
    add = parser.add_argument
    add("experiment", choices=EXPERIMENTS, help="what to repeat")
    add("--runs", type=int, metavar="N", help="independent runs, at least 2 (default: 20)")
    add("--seed", type=int, default=0, metavar="S", help="what the runs are drawn from (default: 0)")
    add("--jobs", type=int, metavar="N", help="processes (default: 2)")
    add("--noise", type=float, nargs="+", metavar="P", help="only these rows of table1, such as 0 0.05")
    add("--trials", type=int, metavar="T", help="trials of a run (default: 5000; figure4: 3000)")
    add("--test", type=int, metavar="N", help="test instances (default: 50000; figure4: 10000)")
    add("--plot", metavar="PATH", help="save the figure as .png, .svg or .pdf (default: linmax-figure4.png, ...)")
    add("--no-plot", action="store_true", default=None, help="save no figure")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> None:
    """Run the experiment; print, plot and write what it found."""
    from linmax.util import outputs

    for option, experiments in EXPERIMENT_OPTIONS.items():
        if getattr(arguments, option) is not None and arguments.experiment not in experiments:
            raise ValueError(f"--{option.replace('_', '-')} is for {' and '.join(experiments)}; leave it out")
    if arguments.json not in (None, "-"):
        outputs.check_output(arguments.json)
    plot = _plot_path(arguments)
    screen = console(arguments)
    start = time.perf_counter()
    perform = {"table1": _table1, "figure4": _figure4, "figure5": _figure5}[arguments.experiment]
    figures = perform(screen, arguments, plot)
    seconds = time.perf_counter() - start
    screen.print(f"{seconds:.0f} seconds", style="dim")
    if arguments.json:
        about = {"version": __version__, "experiment": arguments.experiment}
        outputs.write_json({**about, **figures, "seconds": round(seconds, 3)}, arguments.json)


def _plot_path(arguments: argparse.Namespace) -> Path | None:
    """Where the figure goes; raises now if it could not be written later."""
    from linmax.util import outputs, plots

    if arguments.experiment == "table1" or arguments.no_plot:
        return None
    path = Path(arguments.plot or f"linmax-{arguments.experiment}.png")
    outputs.check_output(path, plots.PLOT_FORMATS)
    try:
        plots.figure_class()
    except ImportError as error:
        raise ValueError(f"{error}; or pass --no-plot") from None
    return path


@contextmanager
def _progress(screen: Console) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar for each stage; none without a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def advance(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done)

        yield advance


def _given(arguments: argparse.Namespace, **names: str) -> dict[str, Any]:
    """The options that were given, as arguments; the others keep their defaults."""
    values = {name: getattr(arguments, option) for name, option in names.items()}
    return {name: value for name, value in values.items() if value is not None}


def _jobs(arguments: argparse.Namespace) -> int:
    return JOBS if arguments.jobs is None else int(arguments.jobs)


def _print(screen: Console, table: Any) -> None:
    """Print the table with lines if it fits, else as plain text without wrapping."""
    from rich.measure import Measurement

    needed = Measurement.get(screen, screen.options.update(max_width=1000), table).maximum
    if screen.is_terminal and needed <= screen.width:
        screen.print(table)
    else:
        screen.print(str(table) + "\n", soft_wrap=True, markup=False)


# -- Table I -------------------------------------------------------------------------------------------


def _table1(screen: Console, arguments: argparse.Namespace, plot: Path | None) -> dict[str, Any]:
    del plot
    from linmax.experiments import majority, published, table1

    options: dict[str, Any] = {
        "noises": published.NOISES,
        "runs": majority.RUNS,
        "trials": majority.TRIALS,
        "test": majority.TEST,
    }
    options |= _given(arguments, noises="noise", runs="runs", trials="trials", test="test")
    with _progress(screen) as progress:
        result = table1.table1(**options, seed=arguments.seed, jobs=_jobs(arguments), progress=progress)
    if (options["trials"], options["test"]) != (majority.TRIALS, majority.TEST):
        screen.print("Not the paper's sizes, which are 5,000 trials and 50,000 test instances.", style="bold")
    for reading, key in (("positive", "cells"), ("balanced", "balanced")):
        for group, heading in published.LEARNER_GROUPS.items():
            title = f'{heading}, "Balanced" = {published.READINGS[reading]}'
            _print(screen, _group_table(title, group, result[key], result["paper"]))
    for key, told in (("cells", "positive weights"), ("balanced", "w+ and w-")):
        screen.print(f'"Balanced" as {told}: {_score(result[key])}', soft_wrap=True)
    screen.print(_legend(options["runs"]), style="dim")
    settings = {**options, "noises": list(options["noises"]), "seed": arguments.seed}
    return {"settings": settings, **result}


def _rate(value: float) -> str:
    return f"{value:.5f}".removeprefix("0")


def _error(cell: Mapping[str, Any]) -> str:
    return f"{_rate(cell['error'])} ± {_rate(cell['ci95'])}"


def _group_table(title: str, group: str, ours: Mapping[str, Any], paper: Mapping[str, Any]) -> Any:
    """One group of Table I, with the paper's entries beside ours."""
    from linmax.util.tables import Heading, table

    rows: list[dict[str, object]] = []
    for noise, cells in ours.items():
        cell, printed = cells[group], paper[noise][group]
        rows.append(
            {
                "noise": noise,
                "printed": printed["name"],
                "printed_error": _error(printed),
                "name": cell["name"],
                "error": _error(cell),
                "mistakes": cell["mistakes"],
                "agrees": "yes" if cell["agrees"] else "NO",
            }
        )
        other = cell["papers_choice"]
        if other["name"] != cell["name"]:
            rows.append(
                {"noise": "", "printed": "", "printed_error": "", "name": other["name"], "error": _error(other)}
                | {"mistakes": other["mistakes"], "agrees": "(yes)" if other["agrees"] else "(no)"}
            )
    columns = [
        Heading("noise"),
        *([Heading("printed", "paper")] if group != "vr_combine" else []),
        Heading("printed_error", "error" if group != "vr_combine" else "paper"),
        *([Heading("name", "ours")] if group != "vr_combine" else []),
        Heading("error", "error" if group != "vr_combine" else "ours"),
        Heading("mistakes", format=".1f"),
        Heading("agrees"),
    ]
    return table(rows, columns, title)


def _score(cells: Mapping[str, Any]) -> str:
    """How many cells agree, and which do not."""
    from linmax.experiments.published import LEARNER_GROUPS

    verdicts = {(noise, group): cell["agrees"] for noise, row in cells.items() for group, cell in row.items()}
    apart = [f"{LEARNER_GROUPS[group]} at {noise}" for (noise, group), agrees in verdicts.items() if not agrees]
    told = f"; not: {', '.join(apart)}" if apart else ""
    return f"{sum(verdicts.values())} of {len(verdicts)} cells agree{told}"


def _legend(runs: int) -> str:
    return (
        f"Errors are means of {runs} runs ± the 95 % t-interval; ours is the learner with the fewest on-line mistakes. "
        "A line without noise tells what the paper's choice did here. Agreement: within .002 + 2 intervals, for "
        "Best(B) within .02."
    )


# -- the figures ---------------------------------------------------------------------------------------


def _figure5(screen: Console, arguments: argparse.Namespace, plot: Path | None) -> dict[str, Any]:
    from linmax.experiments import figure5, majority
    from linmax.util import plots, tables
    from linmax.util.tables import Heading

    options = {"runs": majority.RUNS, "trials": majority.TRIALS} | _given(arguments, runs="runs", trials="trials")
    with _progress(screen) as progress:
        result = figure5.figure5(**options, seed=arguments.seed, jobs=_jobs(arguments), progress=progress)
    mean = result.pop("mean")
    rows = [
        {
            "group": GROUP_NAMES[group],
            "learner": entry["name"],
            "mistakes": f"{entry['mistakes']:.1f} ± {entry['ci95']:.1f}",
            "late_error": entry["late_error"],
        }
        for group, entry in result["curves"].items()
    ]
    late = min(figure5.LATE, options["trials"])
    columns = [
        Heading("group"),
        Heading("learner"),
        Heading("mistakes"),
        Heading("late_error", f"error, last {late:,d}", ".4f"),
    ]
    title = f"Figure 5: mistakes in {options['trials']:,d} trials at noise .05, {options['runs']} runs"
    _print(screen, tables.table(rows, columns, title))
    _print_claims(screen, result["claims"])
    if plot is not None:
        curves = {_curve_name(group, result["curves"][group]["name"]): curve for group, curve in mean.items()}
        subtitle = f"20 voters, 10 of them relevant, 5 classes, noise .05, mean of {options['runs']} runs"
        plots.plot_mistakes(curves, plot, title="Mistakes on the majority problem", subtitle=subtitle)
        screen.print(f"Figure saved as {plot}", soft_wrap=True, markup=False)
    return {"settings": {**options, "seed": arguments.seed}, **result, "plot": None if plot is None else str(plot)}


def _curve_name(group: str, name: str) -> str:
    return GROUP_NAMES[group] if group in ("vr_combine", "optimal") else name


def _figure4(screen: Console, arguments: argparse.Namespace, plot: Path | None) -> dict[str, Any]:
    from linmax.experiments import figure4
    from linmax.util import plots, tables
    from linmax.util.tables import Heading

    options: dict[str, Any] = {"trials": figure4.FIGURE4_TRIALS, "test": figure4.FIGURE4_TEST}
    options |= _given(arguments, trials="trials", test="test")
    with _progress(screen) as progress:
        result = figure4.figure4(arguments.seed, **options, progress=progress)
    half = options["trials"] - options["trials"] // 2
    rows = [
        {"what": "mean accuracy", "value": f"{result['mean']:.3f}"},
        {"what": "lowest, highest", "value": f"{result['lowest']:.3f}, {result['highest']:.3f}"},
        {"what": "largest fall from one trial to the next", "value": f"{result['largest_fall']:.3f}"},
        {"what": "jumps of 5 points and more", "value": f"{result['jumps']}"},
    ]
    columns = [Heading("what", f"last {half:,d} trials"), Heading("value", "")]
    title = f"Figure 4: {result['learner']} on forest cover, spruce against the rest"
    _print(screen, tables.table(rows, columns, title))
    _print_claims(screen, result["claims"])
    if plot is not None:
        subtitle = f"spruce against the rest, accuracy on {options['test']:,d} test instances after every trial"
        plots.plot_accuracy(result["accuracy"], plot, title="Balanced Winnow(1.2) on forest cover", subtitle=subtitle)
        screen.print(f"Figure saved as {plot}", soft_wrap=True, markup=False)
    return {"settings": {**options, "seed": arguments.seed}, **result, "plot": None if plot is None else str(plot)}


def _print_claims(screen: Console, claims: Sequence[Mapping[str, Any]]) -> None:
    """Print the paper's claims about a figure, and whether they hold."""
    for claim in claims:
        verdict = "agrees" if claim["holds"] else "DOES NOT AGREE"
        screen.print(f"The paper: {claim['claim']}: {verdict}", soft_wrap=True, markup=False)
