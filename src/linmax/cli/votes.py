"""Tables of votes for `linmax fuse` and `linmax predict`: options checked, classes found, mistakes refused by name."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from linmax.cli.options import cells_listed
from linmax.cli.output import counted, nothing_read, shown_name, shown_names
from linmax.data.answers import are_open
from linmax.data.names import ROWS_OF_IDS, silent_votes, written
from linmax.data.score_columns import rated_columns
from linmax.data.votes import read_ballots
from linmax.io.evaluation_logs import Long
from linmax.io.reader import ReadTable
from linmax.models.fusion import VoteFusion, in_order
from linmax.models.vote_table import (
    CONFIDENCE,
    VoteTable,
    files_in,
    joined,
    remarks_on_strange,
    side_names,
    some,
    vote_columns,
)
from linmax.util.aliases import Label

__all__ = ["MOST_REMEMBERED", "votes_for", "votes_to_learn"]

MOST_REMEMBERED = 1000  # different votes that are no class
MARKS = dict.fromkeys(("", "0", "0.0", "false", "no"), False) | dict.fromkeys(("1", "1.0", "true", "yes"), True)


def votes_to_learn(arguments: argparse.Namespace, fusion: VoteFusion | None) -> VoteTable:
    """Read voters, side columns and labels of the tables of ``linmax fuse``, for a new fusion or one to continue."""
    name = shown_names(arguments.votes)
    by = list(dict.fromkeys(cells_listed(arguments.by) if fusion is None else side_names(fusion)))
    if arguments.label is not None and arguments.label in by:
        raise ValueError(f"--by {arguments.label} is the column of labels, which is not there when predicting")
    read = _joined(arguments, [*([] if arguments.label is None else [arguments.label]), *by])
    table = VoteTable.of(name, read, arguments.label, by)
    label, labels = table.label, table.labels
    table.wrong = _marked(arguments, table, label)
    table.remarks += _same_labels(labels)
    if all(one is None for one in labels):
        where = "no --label is given" if label is None else f"column {label!r} is empty"
        table.remarks.append(
            f"No row has a label ({where}): the fusion learns how far voters agree, and predicts by that."
        )
    if table.wrong is not None and (count := int(table.wrong.sum())):
        drawn = "it, figures count the class" if count == 1 else "them, figures count the classes"
        table.remarks.append(f"{counted(count, 'row')} with a label that is wrong: of {drawn} drawn instead.")
    table.open = _opens(arguments, fusion)
    if table.open:
        table.take_ratings(arguments.scores, () if fusion is None else fusion.raters_)
        if arguments.scores and not table.ratings:
            raise ValueError(f"{name} has no confidences of answers, nor columns rater:voter; remove --scores")
    if fusion is not None:
        _keep_known(fusion, table)
    if not table.voters:
        raise ValueError(f"{name} has no column besides {label!r} that may be a voter")
    if arguments.scores and not table.open:
        table.take_log_probabilities()
        return table
    scored, labelled = None if table.open else table.rated(), {written(one) for one in labels if one is not None}
    # the others are voters whose answers are in an object of JSON
    if scored is not None and (not labelled or not labelled.isdisjoint(map(written, scored[1]))):
        table.take_scores(scored, _in_type(scored[1], labels) if fusion is None else fusion.classes_.tolist())
        return table
    table.replace(arguments.abstain, None)
    if arguments.ask is not None and arguments.not_asked is not None:
        for voter, votes in table.voters.items():
            row = next((row for row, vote in enumerate(votes, 1) if str(vote) == arguments.not_asked), None)
            if row is not None:
                raise ValueError(
                    f"--ask requires the votes of all voters, but {voter!r} was not asked in row {row}; remove --ask"
                )
    table.replace(arguments.not_asked, ...)
    if not table.open and _looks_open(arguments, table, fusion):
        table.open = True
        table.take_ratings(False)
    elif not table.open:
        _find_classes(arguments, table, fusion, read.objects)
    table.silent |= set() if arguments.abstain is None else {arguments.abstain}
    return table


def votes_for(fusion: VoteFusion, arguments: argparse.Namespace, paths: Sequence[str]) -> VoteTable:
    """Read the votes or scores of the voters that a fusion knows, and its side columns, to predict from."""
    by, known, name = side_names(fusion), set(fusion.voters_), shown_names(paths)
    wanted = [name for name in (arguments.id, arguments.label) if name]
    paths = [file for path in paths for file in files_in(path)]
    readable = [*known, *fusion.raters_, *by, *_long(arguments)]
    tables = [_table(arguments, path, wanted, known=readable) for path in paths]
    raw = {column.rpartition(":")[0] or column for table in tables for column in table.columns}
    read = joined(
        list(map(shown_name, paths)), tables, [] if known & raw else _long(arguments) or None, arguments.label
    )
    columns = read.columns if read.by_item is None else read.columns | read.by_item.sides
    tags = None if not arguments.id else ["" if cell is None else str(cell) for cell in columns[arguments.id]]
    labels = columns[arguments.label] if arguments.label in columns else [None] * len(read.lines)
    if read.by_item is not None:
        tags, labels = tags or read.by_item.items, read.by_item.labels if arguments.label not in columns else labels
    columns = {column: cells for column, cells in columns.items() if column != arguments.label}
    absent_side = next((side for side in by if side not in columns), None)
    if absent_side is not None:
        raise ValueError(f"{name} has no column {absent_side!r}, by which the fusion was learned; add it")
    raters = {column: cells for column, cells in columns.items() if column.rpartition(":")[0] in known}
    voting = known | set(fusion.raters_)
    voters = {column: cells for column, cells in columns.items() if column in voting and column not in by}
    table = VoteTable(name, voters, {side: columns[side] for side in by}, labels, read.lines, read.refusals, tags)
    table.by_item = read.by_item
    table.remarks += read.remarks
    if fusion.is_open:
        table.take_ratings(any(rater.startswith(f"{CONFIDENCE}:") for rater in fusion.raters_), fusion.raters_)
        table.ratings = {name: cells for name, cells in table.ratings.items() if name in fusion.raters_}
        voters = table.voters
    present = set(voters) | {column.rpartition(":")[0] for column in raters}
    if not present:
        example = f"such as {fusion.voters_[0]!r}; it has {', '.join(columns)}"
        raise ValueError(f"{name} has no column of a voter of the fusion, {example}")
    absent = [voter for voter in fusion.voters_ if voter not in present]
    if absent:
        table.remarks.append(f"{name}: {len(absent)} of {len(known)} voters are absent, and abstain: {some(absent)}")
    if fusion.is_open:
        if absent := [rater for rater in fusion.raters_ if rater not in table.ratings]:
            table.remarks.append(f"{name}: no scores of {some(absent)}, which count as 0.")
        return table
    classes = fusion.classes_.tolist()
    scored = rated_columns(name, raters) if raters and not voters else None
    if scored is not None:
        table.take_scores(scored, classes)
        return table
    place = len(table.remarks)
    table.match(classes)
    named = {vote for votes in table.voters.values() for vote in votes if vote is not None}
    strange = named.difference(classes)
    if fusion.classes is None:  # others may be right
        strange &= set(silent_votes(fusion.abstain))
    found = table.leave_out(named - strange)
    table.remarks += remarks_on_strange(found, classes, "no class of the fusion")
    table.remarks[place:] = [f"{name}: {remark}" for remark in table.remarks[place:]]
    return table


def _same_labels(labels: list[Label]) -> list[str]:
    """Replace labels in another spelling than before, such as 1 where "1" was; return a remark on it."""
    if len({type(label) for label in labels} - {type(None)}) < 2:  # as in tables of one format
        return []
    meant: dict[str | None, Label] = {}
    found: dict[Label, Label] = {}
    for row, label in enumerate(labels):
        if label is not None:
            labels[row] = meant.setdefault(written(label), label)
            if type(labels[row]) is not type(label):
                found.setdefault(label, labels[row])
    pairs = [f"{label!r} for {first!r}" for label, first in found.items()]
    return [f"Labels are written in two ways, and taken for the same, such as {pairs[0]}."] if pairs else []


def _marked(arguments: argparse.Namespace, table: VoteTable, label: str | None) -> np.ndarray | None:
    """Return for each row whether its label is only known to be wrong, if a column marks that."""
    column = arguments.wrong
    if column is None:
        return None
    if column == label:
        raise ValueError(f"--wrong {label} is the column of labels; name the one that says true or false of them")
    if arguments.test_fraction or arguments.ask:
        raise ValueError("--wrong leaves rows without their label; it does not go with --test-fraction or --ask")
    if column not in table.voters:
        raise ValueError(f"{table.name} has no column {column!r}; it has {', '.join(table.voters)}")
    if label is None:
        raise ValueError("--wrong requires labels that it marks as wrong; name their column by --label")
    cells = table.voters.pop(column)
    marks = [MARKS.get("" if cell is None else str(cell).strip().lower()) for cell in cells]
    if None in marks:
        row = marks.index(None)
        raise ValueError(
            f"--wrong {column} must be true or false in every row; row {row + 1} of {table.name} has {cells[row]!r}"
        )
    return np.array(marks, bool)


def _keep_known(fusion: VoteFusion, table: VoteTable) -> None:
    """Keep the columns of voters or raters for a fusion to continue; remark on those that join or are left out."""
    kept, present = table.voters, list(table.voters)
    if fusion._current_model.layout.raters and not fusion.is_open:
        known = {str(label) for label in fusion.classes_.tolist()}
        rated = {column: column.rpartition(":") for column in table.voters}
        kept = {column: cells for column, cells in kept.items() if rated[column][2] in known and rated[column][0]}
        if not kept:
            example = f"{fusion.voters_[0]}:{fusion.classes_[0]}"
            raise ValueError(f"{table.name} has no columns rater:class, such as {example}")
        present = list(dict.fromkeys(rated[column][0] for column in kept))
    for what, names, others in (
        ("Voters new, and trusted like an average one at first", present, fusion.voters_),
        ("Voters absent, and abstain", fusion.voters_, present),
        ("Columns left out", table.voters, kept),
    ):
        if left := [name for name in names if name not in others]:
            table.remarks.append(f"{what}: {some(left)}.")
    table.voters = kept


def _in_type(classes: Sequence[str], labels: Sequence[Label]) -> list[Label]:
    """Return classes named by text, of the type of the labels."""
    known = {str(label): label for label in labels if label is not None}
    return [known.get(name, name) for name in classes]


def _opens(arguments: argparse.Namespace, fusion: VoteFusion | None) -> bool:
    """Return whether every row is stated to have its own answers."""
    if fusion is not None:
        return fusion.is_open
    if arguments.answers == "closed" and arguments.key is not None:
        raise ValueError(f"--key {arguments.key} requires open answers; pass --answers open, or remove --key")
    return arguments.answers == "open" or (arguments.answers == "auto" and arguments.key is not None)


def _looks_open(arguments: argparse.Namespace, table: VoteTable, fusion: VoteFusion | None) -> bool:
    """Return whether every row has its own answers by the data, where nothing is stated."""
    if fusion is not None or arguments.answers != "auto" or arguments.classes:
        return False
    found = are_open(read_ballots(table.rows()), table.labels)
    if found:
        table.remarks.append(
            "Most rows bring answers never seen before, so each row has its own candidates; --answers closed fuses "
            "answers as classes."
        )
    return found


def _find_classes(
    arguments: argparse.Namespace, table: VoteTable, fusion: VoteFusion | None, objects: Mapping[str, str]
) -> None:
    """Find the classes, and take votes that name none of them for abstentions."""
    labels = [label for label in table.labels if label is not None]
    named = labels or [vote for votes in table.voters.values() for vote in votes if vote not in (None, ...)]
    if fusion is not None:
        classes = fusion.classes_.tolist()
        classes += [] if fusion.classes is not None else [name for name in in_order(named) if name not in classes]
    else:
        classes = _in_type(cells_listed(arguments.classes), labels) if arguments.classes else in_order(named)
        unknown = next((label for label in labels if label not in set(classes)), None)
        if unknown is not None:
            raise ValueError(f"--classes {arguments.classes} lacks {unknown!r}, which is a label; add it")
    table.classes, known = classes, set(classes)
    table.match(classes)
    strangers = [name for name, votes in table.voters.items() if _is_stranger(votes, known)]
    if strangers:
        do, them = ("does", "it") if len(strangers) == 1 else ("do", "them")
        good = {objects[name] for name in table.voters if name in objects and name not in strangers}
        keys = [objects[name] if name in objects and objects[name] not in good else name for name in strangers]
        left = ",".join(dict.fromkeys([*cells_listed(arguments.ignore), *keys]))
        raise ValueError(
            f"{table.name}: {some(list(map(repr, strangers)))} {do} not vote for labels such as {classes[0]!r}; "
            f"remove {them} with --ignore {left}, give a subject to --by, or pass --answers open if each row has "
            "its own answers"
        )
    if not arguments.classes:
        strange = table.leave_out(known)
        table.remarks += remarks_on_strange(strange, known, "never a label")
        table.silent = {vote for vote, _ in strange.most_common(MOST_REMEMBERED)}


def _is_stranger(votes: Sequence[Label], known: Collection[Label]) -> bool:
    """Return whether a column never names a class, or has another value in every row, most of them no class."""
    distinct = set(votes) - {None, ...}
    if distinct and distinct.isdisjoint(known):
        return True
    if len(votes) < ROWS_OF_IDS or len(known) > len(votes) / 2 or len(set(votes)) < len(votes):
        return False
    return sum(vote not in known for vote in votes) > len(votes) / 2


def _long(arguments: argparse.Namespace) -> list[str]:
    """Return the columns of ``--long``, none if it is not given or declined."""
    long = [] if arguments.long in (None, "none") else cells_listed(arguments.long)
    if len(long) not in (0, len(Long._fields)):
        raise ValueError(f"--long must name three columns, ITEM,VOTER,VOTE, got {arguments.long!r}")
    return long


def _table(
    arguments: argparse.Namespace, path: str, wanted: Sequence[str], known: Sequence[str] | None = None
) -> ReadTable:
    """Read a table or a log without the columns to ignore; columns that are ``wanted`` must be there.

    With ``known`` only these columns and those that are wanted need hold what a table can hold.
    """
    ignored, name = cells_listed(arguments.ignore), shown_name(path)
    needed = None if known is None else {*known, *wanted}
    table = vote_columns(path, ignored, arguments.format, arguments.strict, needed)
    if not table.lines and not table.answers and table.refusals.total:
        raise ValueError(nothing_read([name], table.refusals))
    if table.answers:
        return table
    if not table.columns and not table.left_out:
        raise ValueError(f"{name} is empty; give a table")
    for column in wanted:
        if column not in table.columns and column not in table.left_out:
            raise ValueError(f"{name} has no column {column!r}; it has {', '.join(table.columns)}")
    if not table.columns or not table.lines:
        raise ValueError(f"{name} has no rows below its header; add them")
    return table


def _joined(arguments: argparse.Namespace, wanted: Sequence[str]) -> ReadTable:
    """Read one or several tables as one."""
    paths = arguments.votes = [file for path in arguments.votes for file in files_in(path)]
    long = _long(arguments) or (None if arguments.long is None else [])
    read = joined(
        list(map(shown_name, paths)), [_table(arguments, path, wanted) for path in paths], long, arguments.label
    )
    ignored = {name: read.columns.pop(name, None) for name in cells_listed(arguments.ignore)}
    absent = next((name for name, cells in ignored.items() if cells is None and name not in read.left_out), None)
    if absent is not None:
        table = f"{shown_name(paths[0])} has no column {absent!r}; it has"
        several = f"none of {len(paths)} tables has a column {absent!r}; they have"
        raise ValueError(f"{table if len(paths) == 1 else several} {', '.join(read.columns)}")
    return read
