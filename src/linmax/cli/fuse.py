"""Fuse the votes or scores in a table online, and compare with plurality and the best voter.

VOTES is a table (CSV or TSV with a header, Parquet, Arrow, or JSON lines of
objects), compressed or not, or - for standard input; several are read one after
the other, as one. Tables with a row for each answer, and logs of Inspect,
lm-evaluation-harness, promptfoo and OpenAI's evals (one file a model, or one for
all) are recognized. In other tables one column holds the right label. Every
other column is a voter that names a class in each row, except for those of
--ignore and --by: voters get separate weights for each value of a --by column,
such as a subject. If all columns are named rater:class, they hold scores. With
open answers columns named rater:voter hold scores of this voter's answers. An
empty field abstains, and so does a vote for something that is never a label.

Rows are learned in order; each is predicted before its label is seen. Rows
without a label teach auto how far voters agree, and are predicted when all
others have been learned. No row needs to have a label.

  linmax fuse votes.csv --label answer --model fusion.linmax --predictions open.csv
  linmax fuse logs/*.eval --html jury.html
  linmax fuse monday.csv tuesday.csv --label answer
  linmax fuse more.csv --label answer --start fusion.linmax --model fusion.linmax
  linmax predict fusion.linmax new.csv --write probabilities
  linmax fuse votes/part-*.csv --label answer --cluster local:2 --model fusion.linmax
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmax import __version__
from linmax.cli.options import (
    CLUSTER_OPTIONS,
    JSON_OPTION,
    REFUSAL_OPTIONS,
    SHUFFLE_OPTION,
    cells_listed,
    refuse_options,
    refused_share,
)
from linmax.cli.output import counted, refuse_too_many, say, show_refusals, shown_name, shown_names, wide_console
from linmax.util.aliases import Label

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from linmax.models.asking import Simulation
    from linmax.models.fusion import VoteFusion
    from linmax.models.report import Report
    from linmax.models.vote_table import VoteTable

__all__ = ["OPTIONS", "run"]

PROGRESS_ROWS = 500  # rows between updates of the progress bar
LEARNER = "auto"
PREDICTIONS = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}
SERIAL_FUSE_OPTIONS = (
    "long scores shuffle test_fraction ask costs tolerance wrong predictions plot reliability suspicious not_asked"
)


OPTIONS = f"""
most used:
VOTES...  tables with a column for each voter, long tables, or logs; - is standard input
--label COLUMN  the column of right labels (default: label, truth, gold, target, answer ..., if any)
--html FILE  write the report as one page for the browser
--model FILE  save the fusion, to continue with it or to predict
input:
--format F  csv, tsv, parquet, arrow, jsonl, votes, inspect, lm-eval, promptfoo or openai-evals (default: by content)
--ignore A,B  columns that are not voters
--by A,B  side columns, such as a subject: a voter may be trusted on one only
--long ITEM,VOTER,VOTE  columns of a table with a row for each answer (recognized; none declines)
--scores  fuse the log-probabilities or confidences of a log or long table instead of its votes (open answers: with)
--wrong COLUMN  a column that is true where the label is a class known to be wrong
--abstain VALUE  a vote that means abstention, like an empty field
--not-asked VALUE  value marking a voter that was not asked (not an abstention)
{REFUSAL_OPTIONS}
learning:
--learner L  what learns the weights (default: {LEARNER})
--answers auto|open|closed=auto  open: each row has its own answers; closed: answers are classes; auto: by the data
--key number|text|math|json  with open answers, which spellings are one answer
--classes A,B  all classes, in order (default: the labels of the file, sorted)
--start MODEL  continue with this fusion
{SHUFFLE_OPTION}
--test-fraction F:float  hold out this share of the rows, the last ones, for a test
--ask ROWS:int  simulate asking voters one by one, after this many rows with all votes
--tolerance T:float  with --ask, accuracy that may be given up (default: 0.002)
--costs FILE  with --ask or --html, costs of asking each voter: JSON, {{voter: number}}
output:
--predictions FILE  write predictions of rows without a label: .csv, .jsonl or .parquet
--suspicious FILE  write the rows whose labels look wrong, as .csv
--plot FILE  draw the mistake curves as .png, .svg or .pdf
--reliability FILE  draw how often answers are right for each stated probability
--checkpoint FOLDER  with --cluster, save results here in case tables fail
{JSON_OPTION}
{CLUSTER_OPTIONS.replace("MIX", "trials")}"""


def run(arguments: argparse.Namespace) -> None:
    """Read the table, learn, print the report; save the model, plots, predictions and figures if requested."""
    _check_outputs(arguments)
    refused_share(arguments)
    if arguments.cluster:
        refuse_options(arguments, SERIAL_FUSE_OPTIONS, "requires one table in order", "--cluster")
        _fuse_on_cluster(arguments)
    else:
        refuse_options(arguments, "resume checkpoint mix=trials", "requires --cluster")
        _fuse(arguments)


def _fuse(arguments: argparse.Namespace) -> None:
    import numpy as np

    from linmax.cli.votes import votes_to_learn
    from linmax.data.names import label_array
    from linmax.models.vote_table import remember
    from linmax.util import outputs

    screen, fusion = wide_console(arguments), _started(arguments)
    table = votes_to_learn(arguments, fusion)
    if fusion is None and table.silence == 1.0:
        raise ValueError(
            f"{table.name} must have a vote, got none of {counted(table.raters, 'voter')} in "
            f"{counted(len(table.labels), 'row')}; fill in their columns"
        )
    learned, held, unlabelled = _divided(arguments, table.labels)
    costs = _check_asking(arguments, table)
    start = time.perf_counter()
    fusion = fusion or _new(arguments, table)
    remember(fusion, table.silent, table.classes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        _learn(screen, fusion, table, learned)
        y = label_array(table.labels)
        test = (table.rows(held), y[held]) if len(held) else (None, None)
        labelled = np.setdiff1d(learned, unlabelled, assume_unique=True)
        report = fusion.report(*test, costs=costs).numbered([table.lines[row] for row in labelled])
    seconds = time.perf_counter() - start
    # Written before anything is printed: who reads the output may stop reading.
    saved = _save(arguments, fusion, report, test)
    if arguments.predictions is not None:
        saved.append(_predict(arguments.predictions, fusion, table, unlabelled))
    remarks = [*table.remarks, *(str(warning.message) for warning in caught)]
    if len(unlabelled) and arguments.predictions is None:
        remarks.append(f"{counted(len(unlabelled), 'row')} without a label; --predictions FILE predicts them.")
    asked = _asked(arguments, fusion, table, np.concatenate([labelled, held]), costs)
    if arguments.json:
        figures = _figures(arguments, table.classes, report, seconds, len(unlabelled))
        figures |= {"mean_costs": table.costs, "mean_seconds": table.seconds} if table.by_item is not None else {}
        figures |= {"plot": arguments.plot, "predictions": arguments.predictions, "refused": table.refusals.total}
        outputs.write_json(figures | ({} if asked is None else {"asking": asked.to_dict()}), arguments.json)
    say(screen, _headline(arguments, table))
    show_refusals(screen, table.refusals)
    for remark in dict.fromkeys(remarks):
        screen.print(remark, soft_wrap=True, markup=False, style="yellow")
    screen.print()
    screen.print(report)
    say(screen, *saved, *([] if asked is None else [str(asked)]))
    refuse_too_many(arguments, len(table.lines), table.refusals.total)


def _fuse_on_cluster(arguments: argparse.Namespace) -> None:
    """Learn a fusion from each table on the workers of a cluster, and merge them."""
    from linmax.cli.clustered import connected, show_refused_shards
    from linmax.cli.votes import MOST_REMEMBERED
    from linmax.cluster import fit
    from linmax.cluster.shards import labels_of_shard
    from linmax.models.vote_table import remarks_on_strange, remember
    from linmax.util import outputs

    screen, begun, fusion = wide_console(arguments), time.perf_counter(), _started(arguments)
    given = {"label": arguments.label, "ignore": cells_listed(arguments.ignore), "format": arguments.format}
    given["strict"] = arguments.strict
    reading: dict[str, Any] = {name: value for name, value in given.items() if value}
    saved = {"checkpoint": arguments.checkpoint, "resume": arguments.resume}
    with connected(arguments, arguments.votes) as (client, shards, watch):
        fusion = fusion or _new(arguments)
        if fusion.classes is None:  # votes for what is never a label abstain, as with one table
            labels = client.map(labels_of_shard, [shard.source for shard in shards], pure=False, **reading)
            known = [] if arguments.start is None else fusion.classes_.tolist()
            reading["classes"] = list(dict.fromkeys([*known, *chain.from_iterable(client.gather(labels))]))
            if not reading["classes"]:  # the votes are the classes
                del reading["classes"]
        result = fit(fusion, shards, client=client, mix=arguments.mix, reading=reading, watch=watch, **saved)
    counts, model = result.passes[0], result.model
    strange = Counter[Label]()
    for vote, count in (pair for one in counts.shards for pair in one.strange):
        strange[vote] += count
    remember(model, (vote for vote, _ in strange.most_common(MOST_REMEMBERED)))
    report, unlabelled = model.report(), sum(one.unlabelled for one in counts.shards)
    written, refused = _save(arguments, model, report), sum(one.refused for one in counts.shards)
    if arguments.json:
        seconds = time.perf_counter() - begun
        figures = _figures(arguments, model.classes_.tolist(), report, seconds, unlabelled)
        outputs.write_json(figures | {"data": result.shards, "refused": refused}, arguments.json)
    more = f", and {counted(unlabelled, 'row')} without a label" if unlabelled else ""
    say(screen, f"{counted(len(result.shards), 'table')} with {counts.trials:,} labelled rows{more}")
    show_refused_shards(result)
    say(screen, *remarks_on_strange(strange, reading.get("classes", ()), "never a label"))
    screen.print()
    screen.print(report)
    say(screen, *written)
    refuse_too_many(arguments, counts.trials + unlabelled, refused)


def _figures(
    arguments: argparse.Namespace, classes: list[Label], report: Report, seconds: float, unlabelled: int
) -> dict[str, Any]:
    paths: list[str] = arguments.votes
    figures = {"version": __version__, "data": paths[0] if len(paths) == 1 else paths, "classes": classes}
    figures |= report.to_dict() | {"seconds": round(seconds, 3), "unlabelled": unlabelled}
    return figures | {"start": arguments.start, "model": arguments.model}


def _learn(screen: Console, fusion: VoteFusion, table: VoteTable, learned: np.ndarray) -> None:
    """Learn these rows, with a progress bar on a terminal, which is erased at the end."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from linmax.data.names import label_array

    labels, votes = label_array(table.labels), table.rows()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        task = progress.add_task("learning", total=len(learned))
        for begin in range(0, len(learned), PROGRESS_ROWS):
            part = learned[begin : begin + PROGRESS_ROWS]
            mask = None if table.wrong is None else table.wrong[part]
            fusion.partial_fit({name: cells[part] for name, cells in votes.items()}, labels[part], wrong=mask)
            progress.update(task, advance=len(part))


def _started(arguments: argparse.Namespace) -> VoteFusion | None:
    """Return the fusion to continue, which knows its learner, classes and side columns."""
    if arguments.start is None:
        return None
    for option in ("learner", "classes", "by"):
        if getattr(arguments, option):
            raise ValueError(f"--{option} is that of {arguments.start}, which --start continues; remove it")
    from linmax.models.fusion import VoteFusion

    return VoteFusion.load(arguments.start)


def _new(arguments: argparse.Namespace, table: VoteTable | None = None) -> VoteFusion:
    """Return a new fusion; classes may join with later tables unless they are given, or columns of scores name them."""
    from linmax.models.fusion import VoteFusion  # only after the input is checked: it loads the compiler

    by = list(dict.fromkeys(cells_listed(arguments.by))) or None
    classes: Sequence[Label] | None = cells_listed(arguments.classes) or None
    if table is not None:
        classes = table.classes if classes or table.scores is not None else None
    answers = arguments.answers if table is None else "open" if table.open else "closed"
    return VoteFusion(
        arguments.learner or LEARNER,
        classes=classes,
        by=by,
        abstain=arguments.abstain,
        answers=answers,
        key=arguments.key,
    )


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Raise now if an output could not be written later."""
    from linmax.util import outputs, plots

    outputs.check_outputs(
        [arguments.json, arguments.model, arguments.html, arguments.predictions, arguments.suspicious], arguments.votes
    )
    if arguments.predictions is not None:
        outputs.check_output(arguments.predictions, tuple(PREDICTIONS))
    if arguments.suspicious is not None:
        outputs.check_output(arguments.suspicious, (".csv",))
    for option in ("plot", "reliability"):
        if (path := getattr(arguments, option)) is not None:
            plots.check_plot(f"--{option}", path)


def _save(
    arguments: argparse.Namespace, fusion: VoteFusion, report: Report, test: tuple[Any, Any] = (None, None)
) -> list[str]:
    """Write the model, the page and the plots that are wanted; return messages about them."""
    saved = []
    if arguments.model is not None:
        fusion.save(arguments.model)
        saved.append(f"Model saved as {arguments.model}")
    if arguments.plot is not None:
        fusion.plot(arguments.plot)
        saved.append(f"Plot saved as {arguments.plot}")
    if arguments.reliability is not None:
        fusion.plot_reliability(arguments.reliability, votes=test[0], y=test[1])
        saved.append(f"Reliability plot saved as {arguments.reliability}")
    if arguments.suspicious is not None:
        saved.append(_write_doubts(arguments.suspicious, report))
    if arguments.html is not None:
        report.to_html(arguments.html)
        saved.append(f"Page saved as {arguments.html}")
    return saved


def _predict(path: str, fusion: VoteFusion, table: VoteTable, rows: np.ndarray) -> str:
    """Write class and probabilities of rows without a label; return a message about it."""
    from linmax.cli.models import FusionFile, RowPart
    from linmax.cli.predictions import OutputOptions, PredictionWriter
    from linmax.util.files import replacing

    with replacing(path) as file:
        writer = PredictionWriter(PREDICTIONS[Path(path).suffix.lower()], file, "probabilities")
        if len(rows):
            tags = None if table.tags is None else [table.tags[row] for row in rows]
            part = RowPart([table.lines[row] for row in rows], [], tags, table.rows(rows))
            answers = FusionFile(model=fusion).predict(part, OutputOptions("probabilities"))
            writer.write(answers)
            writer.end()
    return f"{counted(len(rows), 'prediction')} saved as {path}"


def _write_doubts(path: str, report: Report) -> str:
    """Write the rows whose labels look wrong; return a message about it."""
    import csv
    import io

    from linmax.util.files import replacing

    doubts, text = report.suspicious_labels(), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["line", "label", "answer", "probability", "probability_of_label", "voters"])
    for doubt in doubts:
        shares = f"{doubt.probability:.6g}", f"{doubt.of_label:.6g}"
        writer.writerow([doubt.line, doubt.label, doubt.answer, *shares, doubt.voters])
    with replacing(path) as file:
        file.write(text.getvalue().encode())
    return f"{counted(len(doubts), 'suspicious label')} saved as {path}"


def _headline(arguments: argparse.Namespace, table: VoteTable) -> str:
    shuffled = "" if arguments.shuffle is None else f", shuffled with seed {arguments.shuffle}"
    by = "".join(f", by {name} ({counted(len(set(v) - {None}), 'value')})" for name, v in table.sides.items())
    rated = f", {counted(len(table.ratings), 'rater')}" if table.ratings else ""
    voter, votes = ("voter", "votes") if table.scores is None else ("rater", "scores")
    start = "" if arguments.start is None else f"; continuing {shown_name(arguments.start)}"
    classes = "open answers" if table.open else counted(len(table.classes), "class", "classes")
    return (
        f"{shown_names(arguments.votes)}: {counted(len(table.labels), 'row')}{shuffled}, "
        f"{counted(table.raters, voter)}{rated}{by}, {classes}; "
        f"{100.0 * table.silence:.1f} % of the {votes} abstain{start}"
    )


def _divided(arguments: argparse.Namespace, labels: Sequence[Label]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows to learn, in their order, those held out, the last with a label, and those without one."""
    import numpy as np

    from linmax.util.checks import whole

    given = np.array([label is not None for label in labels])
    rows = int(given.sum())
    fraction = 0.0 if arguments.test_fraction is None else arguments.test_fraction
    held = round(fraction * rows) if 0.0 <= fraction < 1.0 else -1
    if 1.0 < fraction <= 100.0:
        raise ValueError(
            f"--test-fraction must be a share below 1, got {fraction:g}; for {fraction:g} % pass {fraction / 100:g}"
        )
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
    arguments: argparse.Namespace, fusion: VoteFusion, table: VoteTable, rows: np.ndarray, costs: Any
) -> Simulation | None:
    """Return what asking one by one would have cost and lost, if it is wanted."""
    if arguments.ask is None:
        return None
    from linmax.data.names import label_array
    from linmax.models.asking import TOLERANCE, simulate_asking
    from linmax.models.fusion import VoteFusion

    options: dict[str, Any] = {"classes": fusion.classes, "by": fusion.by, "answers": fusion.answers, "key": fusion.key}
    return simulate_asking(
        lambda: VoteFusion(arguments.learner or LEARNER, **options),
        table.rows(rows),
        label_array(table.labels)[rows],
        list(table.voters),
        first=arguments.ask,
        tolerance=TOLERANCE if arguments.tolerance is None else arguments.tolerance,
        costs=costs,
    )


def _check_asking(arguments: argparse.Namespace, table: VoteTable) -> dict[str, float] | None:
    """Refuse now what the simulation of asking could not do later; return the costs of voters, if they are given."""
    from linmax.models.asking import TOLERANCE, read_costs, read_share

    costs = None
    if arguments.costs is not None:
        if arguments.ask is None and arguments.html is None:
            raise ValueError("--costs requires --ask or --html; add --ask ROWS or --html FILE, or remove it")
        if table.scores is not None:
            raise ValueError("--costs requires votes, but the table contains scores; remove --costs")
        try:
            costs = json.loads(Path(arguments.costs).read_text(encoding="utf-8"))
            if not isinstance(costs, dict):
                raise TypeError(f"an object {{voter: number}} is required, got {costs!r}")
            read_costs(costs, list(table.voters))
        except (TypeError, ValueError) as error:
            what = "not JSON: " if isinstance(error, json.JSONDecodeError) else ""
            raise ValueError(f"--costs {arguments.costs}: {what}{error}") from None
    elif (
        (arguments.ask is not None or arguments.html is not None)
        and table.voters
        and table.voters.keys() <= table.costs.keys()
    ):
        costs = {voter: table.costs[voter] for voter in table.voters}
        table.remarks.append("Costs are the mean costs of the answers in the data; --costs FILE gives others.")
    if arguments.ask is None:
        if arguments.tolerance is not None:
            raise ValueError("--tolerance requires --ask; add --ask ROWS, or remove it")
        return costs
    if table.scores is not None or table.ratings:
        raise ValueError("--ask requires votes, but the table contains scores; remove --ask")
    rows = sum(label is not None for label in table.labels)
    if not 1 < arguments.ask < rows:
        raise ValueError(
            f"--ask must be 2 or more and leave rows to ask about one by one, got {arguments.ask} of "
            f"{counted(rows, 'row')} with a label"
        )
    read_share("--tolerance", TOLERANCE if arguments.tolerance is None else arguments.tolerance)
    return costs
