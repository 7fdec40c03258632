"""Repeat the experiments of Mesterharm and Hsu and compare with the paper.

table1   error of the last hypothesis on the majority problem, seven levels
         of noise; both readings of "Balanced" (docs/reproduction.md)
figure4  accuracy of Balanced Winnow(1.2) after every trial on forest cover
         (LINMAX_DATA/covtype/*.csv.gz, or scikit-learn's cached copy)
figure5  mistake curves at noise .05 of the best learner of each group
race     watch a few learners on the majority problem
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Mapping, Sequence

import numpy as np

from linmax import __version__
from linmax.experiments import forest_cover, majority
from linmax.experiments.majority import LEARNER_GROUPS, NOISES, READINGS
from linmax.experiments.race import RACERS, race, standings
from linmax.util import outputs, plots
from linmax.util.tables import Heading, Table, table

FRAMES, FRAME = 100, 0.03  # steps of the live view, and seconds for each: the learners are too fast to watch
GROUP_NAMES = {
    "best_b": "best basic",
    "best_a": "best averaged",
    "best_ar": "best averaged, recycled",
    "vr_combine": "VR-Combine",
    "optimal": "optimal",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one experiment; print, plot and write its results."""
    parser = _parser()
    arguments = vars(parser.parse_args(argv))
    perform, json, plot = arguments.pop("perform"), arguments.pop("json"), arguments.get("plot")
    start = time.perf_counter()
    try:
        if json not in (None, "-"):
            outputs.check_output(json)
        if plot is not None:
            outputs.check_output(plot, plots.PLOT_FORMATS)
            plots.figure_class()  # raises if matplotlib is missing
        with contextlib.redirect_stdout(sys.stderr) if json == "-" else contextlib.nullcontext():
            results = perform(**arguments)
            print(f"{time.perf_counter() - start:.0f} seconds")
        if json is not None:
            head = {"version": __version__, "experiment": perform.__name__.removeprefix("watch_")}
            outputs.write_json({**head, "settings": arguments, **results}, json)
    except (ValueError, OSError, ImportError) as error:
        parser.error(str(error))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m linmax.experiments", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    experiments = parser.add_subparsers(required=True, metavar="EXPERIMENT")
    for perform, trials, test in (
        (table1, majority.TRIALS, majority.TEST),
        (figure4, forest_cover.FIGURE4_TRIALS, forest_cover.FIGURE4_TEST),
        (figure5, majority.TRIALS, None),
        (watch_race, majority.TRIALS, None),
    ):
        command = experiments.add_parser(perform.__name__.removeprefix("watch_"), help=perform.__doc__)
        command.set_defaults(perform=perform)
        add = command.add_argument
        add("--seed", type=int, default=0, metavar="S", help="seed of the problems (default: 0)")
        add("--trials", type=int, default=trials, metavar="T", help="trials of a run (default: %(default)s)")
        if test is not None:
            add("--test", type=int, default=test, metavar="N", help="test instances (default: %(default)s)")
        if perform in (table1, figure5):
            add("--runs", type=int, default=majority.RUNS, metavar="N", help="independent runs (default: %(default)s)")
            add("--jobs", type=int, default=2, metavar="N", help="processes (default: %(default)s)")
        if perform is table1:
            add("--noise", type=float, nargs="+", default=NOISES, metavar="P", dest="noises", help="rows of the table")
        else:
            add("--plot", metavar="PATH", help="save the figure as .png, .svg or .pdf")
        if perform is watch_race:
            add("--noise", type=float, default=0.05, metavar="P", help="chance that a label is changed (default: 0.05)")
            add("--learner", action="append", metavar="LEARNER", dest="learners", help="a learner; may be repeated")
        add("--json", metavar="FILE", help="write the results as JSON; - for standard output")
    return parser


def table1(noises: Sequence[float], **settings: int) -> majority.Results:
    """Table I."""
    results = majority.table1(noises, **settings)
    if (settings["trials"], settings["test"]) != (majority.TRIALS, majority.TEST):
        print("Not the paper's sizes, which are 5,000 trials and 50,000 test instances.")
    for key, meaning in (("cells", READINGS["positive"]), ("balanced", READINGS["balanced"])):
        cells = results[key]
        title = f'"Balanced" = {meaning}'
        print(f"\n{_table_of_cells(cells, results['paper'], title)}")
        verdicts = {f"{group} at {noise}": row[group]["agrees"] for noise, row in cells.items() for group in row}
        differing = [name for name, same in verdicts.items() if not same]
        print(f"{len(verdicts) - len(differing)} of {len(verdicts)} cells agree", *differing, sep="; not ")
    print(
        f"Errors are means of {settings['runs']} runs ± the 95 % t-interval; ours is the learner with the fewest "
        "online mistakes. A line without noise shows the paper's choice. Agreement: within .002 + 2 intervals, for "
        "Best(B) within .02."
    )
    return results


def _table_of_cells(ours: majority.Results, paper: majority.Results, title: str) -> Table:
    """Lay out our entries next to the paper's."""
    rows: list[dict[str, object]] = []
    for group, heading in LEARNER_GROUPS.items():
        for noise, cells in ours.items():
            cell, printed = cells[group], paper[noise][group]
            row = {"group": heading, "noise": noise, "printed": printed["name"], "printed_error": _error(printed)}
            rows.append(row | _own_columns(cell))
            if cell["papers_choice"]["name"] != cell["name"]:
                rows.append(dict.fromkeys(row, "") | _own_columns(cell["papers_choice"]))
    columns = [Heading("group"), Heading("noise"), Heading("printed", "paper"), Heading("printed_error", "error")]
    columns += [Heading("name", "ours"), Heading("error"), Heading("mistakes", format=".1f"), Heading("agrees")]
    return table(rows, columns, title)


def _own_columns(cell: majority.Results) -> dict[str, object]:
    agreement = "yes" if cell["agrees"] else "NO"
    return {"name": cell["name"], "error": _error(cell), "mistakes": cell["mistakes"], "agrees": agreement}


def _error(cell: majority.Results) -> str:
    return f"{cell['error']:.5f} ± {cell['ci95']:.5f}".replace("0.", ".")


def figure4(plot: str | None, seed: int, trials: int, test: int) -> majority.Results:
    """Figure 4."""
    results = forest_cover.figure4(seed, trials=trials, test=test)
    rows = [{"result": name, "value": results[name]} for name in ("mean", "lowest", "highest", "largest_fall", "jumps")]
    print(table(rows, [Heading("result", "second half of the trials"), Heading("value", format=".3g")]))
    _print_claims(results["claims"])
    if plot is not None:
        subtitle = f"spruce against the rest, accuracy on {test:,d} test instances after every trial"
        plots.plot_accuracy(results["accuracy"], plot, title="Balanced Winnow(1.2) on forest cover", subtitle=subtitle)
    return results


def figure5(plot: str | None, **settings: int) -> majority.Results:
    """Figure 5."""
    results = majority.figure5(**settings)
    whole_curves = results.pop("mean")
    rows = [{"group": GROUP_NAMES[group], **entry} for group, entry in results["curves"].items()]
    columns = [Heading("group"), Heading("name", "learner"), Heading("mistakes", format=".1f")]
    columns += [Heading("ci95", "±", ".1f"), Heading("late_error", "late error", ".4f")]
    print(table(rows, columns))
    _print_claims(results["claims"])
    if plot is not None:
        names = {group: entry["name"] for group, entry in results["curves"].items()} | {"vr_combine": "VR-Combine"}
        curves = {names[group]: curve for group, curve in whole_curves.items()}
        _plot_curves(curves, plot, f"noise {majority.FIGURE5_NOISE:g}, means of {settings['runs']} runs")
    return results


def watch_race(plot: str | None, learners: Sequence[str] | None, noise: float, **settings: int) -> majority.Results:
    """Live race."""
    from rich.live import Live

    frames = race(learners or RACERS, noise, **settings, frames=FRAMES if sys.stdout.isatty() else 1)
    if sys.stdout.isatty():
        with Live(transient=True) as live:
            for wrong in frames:
                live.update(standings(wrong))
                time.sleep(FRAME)
    else:
        (wrong,) = frames
    print(standings(wrong))
    curves = {name: np.cumsum(each) for name, each in wrong.items()}
    if plot is not None:
        _plot_curves(curves, plot, f"noise {noise:g}, seed {settings['seed']}")
    return {"mistakes": {name: int(curve[-1]) for name, curve in curves.items()}}


def _plot_curves(curves: Mapping[str, np.ndarray], path: str, subtitle: str) -> None:
    subtitle = f"20 voters, 10 of them relevant, 5 classes, {subtitle}"
    plots.plot_mistakes(curves, path, title="Mistakes on the majority problem", subtitle=subtitle)


def _print_claims(claims: Mapping[str, bool]) -> None:
    for claim, holds in claims.items():
        print(f"The paper: {claim}: {'agrees' if holds else 'DOES NOT AGREE'}")


if __name__ == "__main__":
    sys.exit(main())
