"""Fuse the votes or scores in a table, on-line, and say whether it beats plurality and the best voter.

VOTES is a table (CSV or TSV with a header, Parquet, Arrow, or JSON lines of
objects), compressed or not, or - for standard input; several are read one after
the other, as one. One column holds the right label; every other one is a voter that names a class in each row, except
those that --ignore leaves out and those that --by names: voters get separate
weights for each value of such a column, say a subject. If all are named
rater:class, they hold scores. An empty field abstains, and so does a vote for
something that is never a label. Rows are learned in order, each predicted
before its label is seen; rows without a label teach auto how far voters agree,
and are predicted when all others have been learned. No row need have a label.

  linmax fuse votes.csv --label answer --model fusion.linmax --predictions open.csv
  linmax fuse monday.csv tuesday.csv --label answer
  linmax fuse more.csv --label answer --start fusion.linmax --model fusion.linmax
  linmax predict fusion.linmax new.csv --output probabilities
  linmax fuse votes/part-*.csv --label answer --cluster local:2 --model fusion.linmax
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from linmax import __version__
from linmax.cli.clustered import add_cluster_options
from linmax.cli.fuse_clustered import PIPED, fuse_on_cluster
from linmax.cli.output import add_json_option, console
from linmax.cli.reading import (
    add_format_option,
    add_refusing_options,
    add_shuffle_option,
    counted,
    refuse_too_many,
    refused_share,
    show_refusals,
    shown_name,
    shown_names,
)
from linmax.cli.votes import FuseTable, objects, read_trials

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from rich.console import Console

    from linmax.models.asking import Simulation
    from linmax.models.fusion import OnLineFusion
    from linmax.models.report import Report

__all__ = ["configure", "run"]

PROGRESS_ROWS = 500  # rows between updates of the progress bar
LEARNER = "auto"
PREDICTIONS = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``linmax fuse``."""
    add = parser.add_argument
    add("votes", metavar="VOTES", nargs="+", help="a table with a column for each voter; - is standard input")
    add_format_option(parser)
    add("--label", metavar="COLUMN", help="the column of right labels (default: label, target, class or y, if any)")
    add("--ignore", metavar="A,B", default="", help="columns that are not voters")
    add("--by", metavar="A,B", default="", help="side columns, such as a subject: a voter may be trusted on one only")
    add("--wrong", metavar="COLUMN", help="a column that is true where the label is a class known to be wrong")
    add("--learner", metavar="TEXT", help=f"what learns the weights (default: {LEARNER})")
    add("--classes", metavar="A,B", help="all classes, in order (default: the labels of the file, sorted)")
    add("--abstain", metavar="VALUE", help="a vote that means abstention, besides an empty field")
    add("--not-asked", metavar="VALUE", help="what stands where a voter was not asked; who abstained was")
    add_shuffle_option(parser, "learn the rows in a random order")
    add("--test-fraction", metavar="F", type=float, help="hold out this share of the rows, the last ones, for a test")
    add("--start", metavar="MODEL", help="continue with this fusion")
    add(
        "--ask", metavar="ROWS", type=int, help="simulate asking voters one by one, after this many rows with all votes"
    )
    add("--tolerance", metavar="T", type=float, help="with --ask, how much accuracy may be given up (default: 0.002)")
    add("--costs", metavar="FILE", help="with --ask or --html, what a call of each voter costs: JSON, {voter: number}")
    add("--model", metavar="OUT", help="save the fusion, to continue with it or to predict")
    add("--html", metavar="OUT", help="write the report as one page for the browser")
    add(
        "--predictions",
        metavar="OUT",
        help="write what is predicted for rows without a label: .csv, .jsonl or .parquet",
    )
    add("--plot", metavar="OUT", help="draw the mistake curves as .png, .svg or .pdf")
    add(
        "--reliability",
        metavar="OUT",
        help="draw how often answers are right against how sure they are (a reliability plot)",
    )
    add_refusing_options(parser)
    add_cluster_options(parser, "trials")
    add("--checkpoint", metavar="FOLDER", help="with --cluster, keep there what was learned when tables fail")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> None:
    """Read the table, learn, print the report; save the model, plots, predictions and figures if requested."""
    import numpy as np

    from linmax.util import outputs

    _check_outputs(arguments)
    refused_share(arguments)
    if arguments.cluster:
        fuse_on_cluster(arguments, _started(arguments))
        return
    _refuse_clustered(arguments)
    screen = console(arguments)
    if not screen.is_terminal:
        screen.width = PIPED
    fusion = _started(arguments)
    trials = read_trials(arguments, fusion)
    learned, held, unlabelled = _divided(arguments, trials.labels)
    _check_asking(arguments, trials)
    start = time.perf_counter()
    fusion = fusion or _new(arguments, trials)
    _remember(fusion, trials)
    with warnings.catch_warnings(record=True) as told_by_warning:
        warnings.simplefilter("always", UserWarning)
        _learn(screen, fusion, trials, learned)
        y = objects(trials.labels)
        told = fusion.report(
            *((trials.rows(held), y[held]) if len(held) else (None, None)), costs=_costs(arguments.costs)
        )
    seconds = time.perf_counter() - start
    # Written before anything is printed: who reads the output may stop reading.
    saved = _save(arguments, fusion, (trials.rows(held), y[held]) if len(held) else None)
    if arguments.html is not None:
        told.to_html(arguments.html)
        saved.append(f"Page saved as {arguments.html}")
    if arguments.predictions is not None:
        saved.append(_predict(arguments.predictions, fusion, trials, unlabelled))
    remarks = [*trials.remarks, *(str(warning.message) for warning in told_by_warning)]
    if len(unlabelled) and arguments.predictions is None:
        remarks.append(f"{counted(len(unlabelled), 'row')} without a label; --predictions FILE predicts them.")
    labelled = np.setdiff1d(learned, unlabelled, assume_unique=True)
    simulated = _asked(arguments, fusion, trials, np.concatenate([labelled, held]))
    if arguments.json:
        figures = {"version": __version__, "data": _data(arguments), "classes": trials.classes, **told.to_dict()}
        figures |= {"asking": simulated.to_dict()} if simulated is not None else {}
        figures |= {"seconds": round(seconds, 3), "unlabelled": len(unlabelled), "start": arguments.start}
        figures |= {"model": arguments.model, "plot": arguments.plot, "predictions": arguments.predictions}
        outputs.write_json(figures | {"refused": trials.refusals.total}, arguments.json)
    _show(screen, arguments, trials, remarks, told)
    for line in [*saved, *([] if simulated is None else [str(simulated)])]:
        screen.print(line, soft_wrap=True, markup=False)
    refuse_too_many(arguments, len(trials.lines), trials.refusals)


def _show(
    screen: Console, arguments: argparse.Namespace, trials: FuseTable, remarks: Sequence[str], told: Report
) -> None:
    screen.print(_headline(arguments, trials), soft_wrap=True, markup=False)
    show_refusals(screen, trials.refusals)
    for remark in dict.fromkeys(remarks):
        screen.print(remark, soft_wrap=True, markup=False, style="yellow")
    screen.print()
    screen.print(told)


def _refuse_clustered(arguments: argparse.Namespace) -> None:
    """Without a cluster there is nothing to go on from but --start."""
    for option in ("resume", "checkpoint"):
        if getattr(arguments, option):
            raise ValueError(f"--{option} goes with --cluster; leave it out, or go on from a model by --start")


def _data(arguments: argparse.Namespace) -> str | list[str]:
    """The tables, as JSON has them: the name, if there is one."""
    paths: list[str] = arguments.votes
    return paths[0] if len(paths) == 1 else paths


def _learn(screen: Console, fusion: OnLineFusion, trials: FuseTable, learned: np.ndarray) -> None:
    import numpy as np

    labels = objects(trials.labels)
    with _progress(screen, len(learned)) as advance:
        for begin in range(0, len(learned), PROGRESS_ROWS):
            part = learned[begin : begin + PROGRESS_ROWS]
            mask = None if trials.wrong is None else np.array(trials.wrong)[part]
            fusion.partial_fit(trials.rows(part), labels[part], wrong=mask)
            advance(len(part))


def _started(arguments: argparse.Namespace) -> OnLineFusion | None:
    """The fusion to go on with, which knows its learner, classes and side columns."""
    if arguments.start is None:
        return None
    for option in ("learner", "classes", "by"):
        if getattr(arguments, option):
            raise ValueError(f"--{option} is that of {arguments.start}, from which --start goes on; leave it out")
    from linmax.models.fusion import OnLineFusion

    return OnLineFusion.load(arguments.start)


def _new(arguments: argparse.Namespace, trials: FuseTable) -> OnLineFusion:
    from linmax.models.fusion import OnLineFusion  # only after the input is checked: it loads the compiler

    # More may join with later tables, unless they are named; the columns of scores name them.
    classes = trials.classes if arguments.classes or trials.scores is not None else None
    return OnLineFusion(arguments.learner or LEARNER, classes=classes, by=list(trials.sides) or None)


def _remember(fusion: OnLineFusion, trials: FuseTable) -> None:
    """Have the fusion take for abstentions what is taken for them here."""
    from linmax.data.blocks import silent_votes

    silent = trials.silent.union(silent_votes(fusion.abstain)).difference(trials.classes)
    fusion.abstain = set(silent) or None


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Raise now if an output could not be written later."""
    from linmax.util import outputs, plots

    for path in (arguments.json if arguments.json != "-" else None, arguments.model, arguments.html):
        if path is not None:
            outputs.check_output(path)
    if arguments.predictions is not None:
        outputs.check_output(arguments.predictions, tuple(PREDICTIONS))
    for option, path in (("plot", arguments.plot), ("reliability", arguments.reliability)):
        if path is not None:
            plots.check_plot(f"--{option}", path)


def _save(arguments: argparse.Namespace, fusion: OnLineFusion, held: tuple[Any, Any] | None) -> list[str]:
    """Write the model and the plots that are wanted; returns what to say of them."""
    saved = []
    if arguments.model is not None:
        fusion.save(arguments.model)
        saved.append(f"Model saved as {arguments.model}")
    if arguments.plot is not None:
        fusion.plot(arguments.plot)
        saved.append(f"Plot saved as {arguments.plot}")
    if arguments.reliability is not None:
        votes, y = held or (None, None)
        fusion.plot_reliability(arguments.reliability, votes=votes, y=y)
        saved.append(f"Reliability plot saved as {arguments.reliability}")
    return saved


def _predict(path: str, fusion: OnLineFusion, trials: FuseTable, rows: np.ndarray) -> str:
    """Write class and probabilities of rows without a label; returns what to say of it."""
    import io
    from pathlib import Path

    from linmax.cli.predictions import OutputOptions, make_form
    from linmax.util.files import replacing

    target = io.BytesIO()
    writer = make_form(PREDICTIONS[Path(path).suffix.lower()], target, "probabilities", 0)
    if len(rows):
        answers = OutputOptions("probabilities").answers(fusion, trials.rows(rows), [trials.lines[row] for row in rows])
        writer.write(answers)
        writer.end(answers)
    with replacing(path) as file:
        file.write(target.getvalue())
    return f"{counted(len(rows), 'prediction')} saved as {path}"


@contextmanager
def _progress(screen: Console, rows: int) -> Iterator[Callable[[int], None]]:
    """A progress bar, erased at the end; none without a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        task = progress.add_task("preparing", total=rows)
        yield lambda done: progress.update(task, advance=done, description="learning")


def _headline(arguments: argparse.Namespace, trials: FuseTable) -> str:
    shuffled = "" if arguments.shuffle is None else f", shuffled with seed {arguments.shuffle}"
    by = "".join(f", by {name} ({counted(len(set(v) - {None}), 'value')})" for name, v in trials.sides.items())
    rows = counted(len(trials.labels), "row")
    if trials.scores is not None:
        silent = sum(float((table == table[:, :1]).all(axis=1).mean()) for table in trials.scores.values())
        said, what = f"{counted(trials.raters, 'rater')}", "scores"
    else:
        silent = sum(column.count(None) / len(column) for column in trials.voters.values())
        said, what = f"{counted(trials.raters, 'voter')}", "votes"
    share = 100.0 * silent / trials.raters
    classes = counted(len(trials.classes), "class").replace("classs", "classes")
    start = "" if arguments.start is None else f"; going on with {shown_name(arguments.start)}"
    return (
        f"{shown_names(arguments.votes)}: {rows}{shuffled}, {said}{by}, {classes}; {share:.1f} % of the {what} "
        f"abstain{start}"
    )


def _divided(arguments: argparse.Namespace, labels: Sequence[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows to learn, in their order, those held out, the last with a label, and those without one."""
    import numpy as np

    from linmax.util.checks import whole

    given = np.array([label is not None for label in labels])
    rows = int(given.sum())
    fraction = 0.0 if arguments.test_fraction is None else arguments.test_fraction
    held = round(fraction * rows) if 0.0 <= fraction < 1.0 else -1
    if held < 0 or (rows and held >= rows) or (fraction > 0.0 and not held):
        raise ValueError(
            f"--test-fraction must leave rows to learn and rows to test, got {fraction:g} of {counted(rows, 'row')}"
        )
    order = np.arange(len(labels))
    if arguments.shuffle is not None:
        order = np.random.default_rng(whole("--shuffle", arguments.shuffle, 0)).permutation(len(labels))
    test = order[given[order]][rows - held :]
    return order[~np.isin(order, test)], test, np.flatnonzero(~given)


def _asked(
    arguments: argparse.Namespace, fusion: OnLineFusion, trials: FuseTable, rows: np.ndarray
) -> Simulation | None:
    """What asking one by one would have cost and lost, if it is wanted."""
    if arguments.ask is None:
        return None
    from linmax.models.asking import TOLERANCE, simulate_asking
    from linmax.models.fusion import OnLineFusion

    options = {"classes": fusion.classes, "by": fusion.by}
    return simulate_asking(
        lambda: OnLineFusion(arguments.learner or LEARNER, **options),
        {name: objects(column)[rows] for name, column in (trials.voters | trials.sides).items()},
        objects(trials.labels)[rows],
        list(trials.voters),
        first=arguments.ask,
        tolerance=TOLERANCE if arguments.tolerance is None else arguments.tolerance,
        costs=_costs(arguments.costs),
    )


def _check_asking(arguments: argparse.Namespace, trials: FuseTable) -> None:
    """Refuse now what the simulation of asking could not do later."""
    if arguments.costs is not None:
        _check_costs(arguments, trials)
    if arguments.ask is None:
        if arguments.tolerance is not None:
            raise ValueError("--tolerance goes with --ask; add --ask ROWS, or leave it out")
        return
    from linmax.models.asking import TOLERANCE, read_share

    if trials.scores is not None:
        raise ValueError("--ask is about votes, and these are scores; leave it out")
    rows = sum(label is not None for label in trials.labels)
    if not 1 < arguments.ask < rows:
        raise ValueError(
            f"--ask must be 2 or more and leave rows to ask about one by one, got {arguments.ask} of "
            f"{counted(rows, 'row')} with a label"
        )
    read_share("--tolerance", TOLERANCE if arguments.tolerance is None else arguments.tolerance)


def _check_costs(arguments: argparse.Namespace, trials: FuseTable) -> None:
    """Refuse costs that nothing asks for, of raters, or that miss a voter."""
    from linmax.models.asking import read_costs

    if arguments.ask is None and arguments.html is None:
        raise ValueError("--costs goes with --ask and --html; add --ask ROWS or --html FILE, or leave it out")
    if trials.scores is not None:
        raise ValueError("--costs are of asking voters, and these are scores; leave it out")
    try:
        read_costs(_costs(arguments.costs), list(trials.voters))
    except (TypeError, ValueError) as error:
        raise ValueError(f"--costs {arguments.costs}: {error}") from None


def _costs(path: str | None) -> dict[str, float] | None:
    """Read the costs of voters."""
    if path is None:
        return None
    import json
    from pathlib import Path

    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"an object {{voter: number}} is needed, got {found!r}")
    return found
