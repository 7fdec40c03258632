"""Fuse the votes in a table, on-line, and say whether it beats plurality and the best voter.

VOTES is a table (CSV or TSV with a header, Parquet, Arrow, or JSON lines of
objects), compressed or not, or - for standard input. One column holds the
right label; every other one is a voter that names a class in each row, except
those that --ignore leaves out and those that --by names: voters get separate
weights for each value of such a column, say a subject. An empty field
abstains, and so does a vote for something that is never a label. Rows are
learned in order, each predicted before its label is seen.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from linmax import __version__
from linmax.cli.beside import compiling_beside
from linmax.cli.output import add_json_option, console
from linmax.cli.reading import add_format_option, cells_listed, labelled_columns, shown_name

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from rich.console import Console

    from linmax.models.fusion.online import OnLineFusion
    from linmax.models.fusion.simulation import Simulation

__all__ = ["configure", "run"]

LEARNER = "auto"
MARKS = {"": False, "0": False, "0.0": False, "false": False, "no": False} | dict.fromkeys(
    ("1", "1.0", "true", "yes"), True
)
STEP = 500  # rows between updates of the progress bar
PIPED = 120  # characters a line, without a terminal
REST = """
from linmax.learners.softmax import judge_all, survey, walk
from linmax.engine.loop import judge
from linmax.techniques.combining import weigh
for kernel in (walk, survey, weigh, judge_all, judge):
    kernel.compiled
"""  # what the default learner needs besides the loop over trials

Columns = dict[str, list[Any]]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``linmax fuse``."""
    add = parser.add_argument
    add("votes", metavar="VOTES", help="a table with a column for each voter; - is standard input")
    add_format_option(parser)
    add("--label", metavar="COLUMN", required=True, help="the column of right labels")
    add("--ignore", metavar="A,B", default="", help="columns that are no voters")
    add("--by", metavar="A,B", default="", help="side columns, such as a subject: a voter may be trusted on one only")
    add("--wrong", metavar="COLUMN", help="a column that is true where the label is only known not to be the one given")
    add("--learner", metavar="TEXT", default=LEARNER, help=f"what learns the weights (default: {LEARNER})")
    add("--classes", metavar="A,B", help="all classes, in order (default: the labels of the file, sorted)")
    add("--abstain", metavar="VALUE", help="a vote that means abstention, besides an empty field")
    add("--shuffle", metavar="SEED", type=int, help="shuffle the rows first")
    add("--test-fraction", metavar="F", type=float, help="hold out this share of the rows, the last ones, for a test")
    add("--ask", metavar="ROWS", type=int, help="try asking voters one by one, after so many rows with all votes")
    add("--tolerance", metavar="T", type=float, default=0.002, help="with --ask, accuracy that may be given up")
    add("--costs", metavar="FILE", help="with --ask, what a call of each voter costs: JSON, {voter: number}")
    add("--model", metavar="OUT", help="save the fusion, to go on with it or to predict")
    add("--html", metavar="OUT", help="write the report as one page for the browser")
    add("--plot", metavar="OUT", help="draw the mistake curves as .png, .svg or .pdf")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> None:
    """Read the table, learn, print the report; save the model, plot and figures if requested."""
    from linmax.util import outputs

    _check_outputs(arguments)
    screen = console(arguments)
    if not screen.is_terminal:
        screen.width = PIPED
    voters, sides, labels = _read(arguments)
    marked = _marked(arguments, voters)
    classes, notes = _classes(arguments, voters, labels)
    votes, order, held = _laid_out(arguments, voters, len(labels))
    table, names = _with_sides(votes, sides, order), [*voters, *sides]
    y = _objects(labels)[order]
    wrong = None if marked is None else _objects(marked)[order].astype(bool)
    start = time.perf_counter()
    from linmax.models.fusion.online import OnLineFusion  # only after the input is checked: it loads the compiler

    fusion = OnLineFusion(arguments.learner, classes=classes, by=list(sides) or None)
    learned = len(y) - held
    beside = compiling_beside(REST) if arguments.learner == LEARNER else nullcontext()
    with _progress(screen, learned) as advance, beside:
        for begin in range(0, learned, STEP):
            end = min(learned, begin + STEP)
            mask = None if wrong is None else wrong[begin:end]
            fusion.partial_fit(_ballots(table[begin:end], names), y[begin:end], wrong=mask)
            advance(end - begin)
    test = (_ballots(table[learned:], names), y[learned:]) if held else (None, None)
    told = fusion.report(*test)
    seconds = time.perf_counter() - start

    screen.print(_headline(arguments, votes, sides, classes), soft_wrap=True, markup=False)
    for note in notes:
        screen.print(note, soft_wrap=True, markup=False, style="yellow")
    screen.print()
    screen.print(told)
    _save(screen, arguments, fusion)
    if arguments.html is not None:
        told.to_html(arguments.html)
        screen.print(f"Page saved as {arguments.html}", soft_wrap=True, markup=False)
    asked = _asked(arguments, fusion, dict(zip(names, table.T, strict=True)), y, list(voters))
    if asked is not None:
        screen.print(str(asked), soft_wrap=True, markup=False)
    if arguments.json:
        figures = {"version": __version__, "data": arguments.votes, "classes": classes, **told.to_dict()}
        figures |= {"asking": asked.to_dict()} if asked is not None else {}
        figures |= {"seconds": round(seconds, 3), "model": arguments.model, "plot": arguments.plot}
        outputs.write_json(figures, arguments.json)


def _asked(
    arguments: argparse.Namespace, fusion: OnLineFusion, table: Mapping[str, Any], y: np.ndarray, voters: list[str]
) -> Simulation | None:
    """What asking one by one would have cost and lost, if it is wanted."""
    if arguments.ask is None:
        return None
    from linmax.models.fusion.online import OnLineFusion
    from linmax.models.fusion.simulation import simulate_asking

    options = {"classes": fusion.classes, "by": fusion.by}
    return simulate_asking(
        lambda: OnLineFusion(arguments.learner, **options),
        table,
        y,
        voters,
        first=arguments.ask,
        tolerance=arguments.tolerance,
        costs=_costs(arguments.costs),
    )


def _costs(path: str | None) -> dict[str, float] | None:
    if path is None:
        return None
    import json
    from pathlib import Path

    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"--costs {path}: no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"--costs {path}: an object {{voter: number}} is needed, got {found!r}")
    return found


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Raise now if an output could not be written later."""
    from linmax.util import outputs, plots

    for path in (arguments.json if arguments.json != "-" else None, arguments.model, arguments.html):
        if path is not None:
            outputs.check_output(path)
    if arguments.plot is not None:
        try:
            plots.figure_class()
        except ImportError as error:
            raise ValueError(f"--plot {arguments.plot}: {error}") from None
        outputs.check_output(arguments.plot, plots.PLOT_FORMATS)


def _save(screen: Console, arguments: argparse.Namespace, fusion: OnLineFusion) -> None:
    if arguments.model is not None:
        fusion.save(arguments.model)
        screen.print(f"Model saved as {arguments.model}", soft_wrap=True, markup=False)
    if arguments.plot is not None:
        fusion.plot(arguments.plot)
        screen.print(f"Plot saved as {arguments.plot}", soft_wrap=True, markup=False)


@contextmanager
def _progress(screen: Console, rows: int) -> Iterator[Callable[[int], None]]:
    """A progress bar, erased at the end; none without a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        task = progress.add_task("preparing (the first run compiles)", total=rows)
        yield lambda done: progress.update(task, advance=done, description="learning")


def _headline(
    arguments: argparse.Namespace, votes: np.ndarray, sides: Mapping[str, list[Any]], classes: Sequence[Any]
) -> str:
    silent = sum(vote is None for vote in votes.flat) / votes.size
    shuffled = "" if arguments.shuffle is None else f", shuffled with seed {arguments.shuffle}"
    by = "".join(f", by {name} ({len(set(values) - {None})} values)" for name, values in sides.items())
    return (
        f"{shown_name(arguments.votes)}: {len(votes):,d} rows{shuffled}, {votes.shape[1]} voters{by}, "
        f"{len(classes)} classes; {100.0 * silent:.1f} % of the votes abstain"
    )


# -- from the file to trials -----------------------------------------------------------------------------------------


def _read(arguments: argparse.Namespace) -> tuple[Columns, Columns, list[Any]]:
    """Voters, side columns and labels of the file; None is an abstention or a missing value."""
    ignored, by = cells_listed(arguments.ignore), list(dict.fromkeys(cells_listed(arguments.by)))
    if arguments.label in by:
        raise ValueError(f"--by {arguments.label} is the column of labels, which is not there when predicting")
    columns, labels, label = labelled_columns(arguments.votes, arguments.format, arguments.label, [*ignored, *by])
    sides = {name: columns[name] for name in by}
    voters = {name: values for name, values in columns.items() if name not in [*ignored, *by]}
    if not voters:
        raise ValueError(f"{shown_name(arguments.votes)} has no column besides {label!r} that may be a voter")
    if arguments.abstain is not None:
        voters = {
            name: [None if str(vote) == arguments.abstain else vote for vote in votes] for name, votes in voters.items()
        }
    return voters, sides, labels


def _marked(arguments: argparse.Namespace, voters: Columns) -> list[bool] | None:
    """For each row whether its label is only known to be wrong, if there is a column that says so."""
    if arguments.wrong is None:
        return None
    if arguments.test_fraction or arguments.ask:
        raise ValueError("--wrong leaves rows without their label; it does not go with --test-fraction or --ask")
    if arguments.wrong not in voters:
        raise ValueError(f"{shown_name(arguments.votes)} has no column {arguments.wrong!r}; it has {', '.join(voters)}")
    found = []
    for row, value in enumerate(voters.pop(arguments.wrong), start=1):
        said = MARKS.get("" if value is None else str(value).strip().lower())
        if said is None:
            raise ValueError(f"row {row}: {arguments.wrong} must be true or false, got {value!r}")
        found.append(said)
    return found


def _classes(arguments: argparse.Namespace, voters: Columns, labels: Sequence[Any]) -> tuple[list[Any], list[str]]:
    """The classes, and remarks on votes that name none of them; such votes are removed from ``voters``."""
    classes = _given_classes(arguments.classes, labels) if arguments.classes else _sorted(labels)
    known = set(classes)
    strangers = [
        name for name, votes in voters.items() if not known.intersection(votes) and any(v is not None for v in votes)
    ]
    if strangers:
        raise ValueError(
            f"{shown_name(arguments.votes)}: {', '.join(map(repr, strangers))} never name a label such as "
            f"{classes[0]!r}; leave them out with --ignore {','.join([*cells_listed(arguments.ignore), *strangers])}"
        )
    if arguments.classes:
        return classes, []
    outside = 0
    for name, votes in voters.items():
        kept = [vote if vote in known else None for vote in votes]
        outside += kept.count(None) - votes.count(None)
        voters[name] = kept
    told = f"{outside:,d} votes name what is never a label; they count as abstentions."
    return classes, [told] if outside else []


def _given_classes(text: str, labels: Sequence[Any]) -> list[Any]:
    """The given classes, converted from text to the type of the labels."""
    written = {str(label): label for label in labels}
    return [written.get(name, name) for name in cells_listed(text)]


def _sorted(labels: Sequence[Any]) -> list[Any]:
    met = dict.fromkeys(labels)
    try:
        return sorted(met)
    except TypeError:
        return list(met)


def _laid_out(
    arguments: argparse.Namespace, voters: Mapping[str, list[Any]], rows: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Votes (rows, voters) in the order of learning, that order, and the number of held-out rows at the end."""
    import numpy as np

    from linmax.util.checks import whole

    fraction = 0.0 if arguments.test_fraction is None else arguments.test_fraction
    held = round(fraction * rows) if 0.0 <= fraction < 1.0 else -1
    if held < 0 or held >= rows or (fraction > 0.0 and not held):
        raise ValueError(f"--test-fraction must leave rows to learn and rows to test, got {fraction:g} of {rows} rows")
    order = np.arange(rows)
    if arguments.shuffle is not None:
        order = np.random.default_rng(whole("--shuffle", arguments.shuffle, 0)).permutation(rows)
    table = np.empty((rows, len(voters)), dtype=object)
    for i, votes in enumerate(voters.values()):
        table[:, i] = _objects(votes)
    return table[order], order, held


def _with_sides(votes: np.ndarray, sides: Mapping[str, list[Any]], order: np.ndarray) -> np.ndarray:
    """Votes with the side columns to their right."""
    import numpy as np

    return np.column_stack([votes, *(_objects(values)[order] for values in sides.values())]) if sides else votes


def _objects(values: Sequence[Any]) -> np.ndarray:
    import numpy as np

    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _ballots(table: np.ndarray, names: Sequence[str]) -> Any:
    from linmax.data.votes import Ballots

    return Ballots(table, tuple(names))
