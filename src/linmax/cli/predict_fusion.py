"""``linmax predict`` with a fusion: the class of each row of votes or scores, and numbers or sets if wanted."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linmax.cli.fuse_trials import in_places
from linmax.cli.fusion_table import Columns, as_ballots, counted, some, table_of
from linmax.cli.reading import refuse_too_many, show_refusals, shown_name
from linmax.cli.strange_votes import VOTES_SHOWN, leave_out, match, of_strange_votes
from linmax.util.checks import about

if TYPE_CHECKING:
    from rich.console import Console

    from linmax.cli.prediction_forms import Answers
    from linmax.models.fusion import OnLineFusion

__all__ = ["AnswerOptions", "predict_votes"]


@dataclass(frozen=True)
class AnswerOptions:
    """What is to be said of each row: numbers of the classes, only answers of little risk, prediction sets."""

    what: str
    reject: float | None = None
    coverage: float | None = None

    def answers(self, fusion: OnLineFusion, votes: Any, lines: list[int], tags: list[str] | None = None) -> Answers:
        """What the fusion says of these rows."""
        import numpy as np

        from linmax.cli.prediction_forms import Answers

        table = None
        if self.what == "probabilities":
            table = fusion.predict_proba(votes)
        elif self.what == "scores":
            table = fusion.decision_function(votes)
            if table.ndim == 1:  # of two classes
                table = np.column_stack([np.zeros(len(table)), table])
        predicted = fusion.predict(votes, reject=self.reject).tolist()
        sets = None
        if self.coverage is not None:
            sets = [list(map(str, found)) for found in fusion.predict_set(votes, self.coverage)]
        names = [str(name) for name in fusion.classes_.tolist()]
        return Answers(lines, tags, ["" if name is None else str(name) for name in predicted], table, names, sets)


def predict_votes(arguments: argparse.Namespace, what: str, form: str) -> None:
    """Predict the rows of tables with a fusion; columns that are not voters are left out."""
    import numpy as np
    from rich.console import Console

    from linmax.cli.predict import target_of
    from linmax.cli.prediction_counts import PredictionCounts
    from linmax.cli.prediction_forms import make_form
    from linmax.io.refusals import Refusals
    from linmax.models.fusion import OnLineFusion
    from linmax.util.outputs import write_json

    begin, screen = time.perf_counter(), Console(stderr=True, highlight=False)
    fusion, counts, refusals = OnLineFusion.load(arguments.model), PredictionCounts(), Refusals()
    wanted = AnswerOptions(what, arguments.reject, arguments.sets)
    with target_of(arguments.out) as target:
        writer = make_form(form, target, what, arguments.top, arguments.id)
        for path in arguments.data:
            needed = [name for name in (arguments.id, arguments.label) if name]
            table = table_of(arguments, path, needed, [*fusion.voters_, *_sides(fusion)])
            columns, rows = table.columns, len(table.lines)
            refusals.join(table.refusals)
            tags = None if not arguments.id else ["" if cell is None else str(cell) for cell in columns[arguments.id]]
            labels = columns.pop(arguments.label) if arguments.label else [None] * rows
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                votes = _votes(screen, fusion, shown_name(path), columns, np.arange(rows))
                answers = wanted.answers(fusion, votes, table.lines, tags)
            remarks = [str(warning.message) for warning in caught]
            if told := _new_answers(fusion, answers.predicted):
                remarks.append(f"{shown_name(path)}: {told}")
            for remark in dict.fromkeys(remarks):
                screen.print(remark, soft_wrap=True, markup=False)
            counts.add([None if label is None else str(label) for label in labels], answers.predicted)
            with about(arguments.out or "standard output"):
                writer.write(answers)
        writer.end(answers)
    show_refusals(screen, refusals)
    for told in counts.told():
        screen.print(told)
    if arguments.json is not None:
        write_json(counts.figures(arguments.reject) | {"seconds": time.perf_counter() - begin}, arguments.json)
    sys.stdout.flush()
    refuse_too_many(arguments, counts.lines, refusals)


def _sides(fusion: OnLineFusion) -> list[str]:
    return [] if fusion.by is None else [fusion.by] if isinstance(fusion.by, str) else [str(side) for side in fusion.by]


def _votes(screen: Console, fusion: OnLineFusion, name: str, columns: Columns, rows: Any) -> Any:
    """The votes or scores of those whom the fusion knows, and its side columns."""
    by = _sides(fusion)
    for side in by:
        if side not in columns:
            raise ValueError(f"{name} has no column {side!r}, by which the fusion was learned; add it")
    known = set(fusion.voters_)
    voters = {column: cells for column, cells in columns.items() if column in known and column not in by}
    raters = {column: cells for column, cells in columns.items() if column.rpartition(":")[0] in known}
    present = set(voters) | {column.rpartition(":")[0] for column in raters}
    if not present:
        raise ValueError(
            f"{name} has no column of a voter of the fusion, such as {fusion.voters_[0]!r}; it has {', '.join(columns)}"
        )
    absent = [voter for voter in fusion.voters_ if voter not in present]
    if absent:
        told = f"{name}: {len(absent)} of {len(known)} voters are absent, and abstain: {some(absent)}"
        screen.print(told, soft_wrap=True, markup=False)
    from linmax.data.score_columns import rated_columns

    scored = rated_columns(name, raters) if raters and not voters else None
    if scored is None:
        voters = _heard(screen, fusion, name, voters)
        return as_ballots(voters, {side: columns[side] for side in by}, rows)
    return in_places(scored, fusion.classes_.tolist(), name)


def _heard(screen: Console, fusion: OnLineFusion, name: str, voters: Columns) -> Columns:
    """The votes as the fusion takes them, and what there is to say of those that name no class."""
    from linmax.data.blocks import silent_votes

    classes = fusion.classes_.tolist()
    remarks = match(voters, classes)
    named = {vote for votes in voters.values() for vote in votes if vote is not None}
    silent = named.difference(classes)
    if fusion.classes is None:  # others may be right
        silent &= set(silent_votes(fusion.abstain))
    remarks += of_strange_votes(leave_out(voters, named - silent), classes, "no class of the fusion")
    for told in remarks:
        screen.print(f"{name}: {told}", soft_wrap=True, markup=False)
    return voters


def _new_answers(fusion: OnLineFusion, predicted: Sequence[str]) -> str | None:
    """What to say of answers that were never met in learning."""
    counts = Counter(predicted)
    for known in ["", *map(str, fusion.classes_.tolist())]:
        counts.pop(known, None)
    if not counts:
        return None
    shown = ", ".join(f"{answer!r} ({often:,d})" for answer, often in counts.most_common(VOTES_SHOWN))
    return (
        f"{counted(counts.total(), 'row')} answered with a class that the fusion had never met: {shown}; if it means "
        "no answer, leave these votes empty"
    )
