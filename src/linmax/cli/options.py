"""Options of commands: described as text, shared by commands, and read as the library takes them.

A line describes an option: ``--name VALUE:type=default  help``. Without ``VALUE`` it is a flag; ``!`` before the help
makes it required, ``?`` makes its value optional, and ``a|b|c`` is a choice. A line without ``--name`` describes an
argument, with ``...`` one or more, with ``*`` any number. A line that ends with ``:`` begins a group.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linmax.io.formats import FORMATS

__all__ = [
    "CLUSTER_OPTIONS",
    "FORMAT_OPTION",
    "INPUT_OPTIONS",
    "JSON_OPTION",
    "LABEL_OPTION",
    "REFUSAL_OPTIONS",
    "SHUFFLE_OPTION",
    "Actions",
    "add_actions",
    "add_options",
    "cells_listed",
    "listed",
    "reading_options",
    "refuse_options",
    "refused_share",
]

MOST_REFUSED = 0.01
Actions = Mapping[str, tuple[str, Any]]  # summary, and options as text or actions of its own, by the name of an action

FORMAT_OPTION = "--format F  {formats} (default: by ending and content)"
JSON_OPTION = "--json FILE  also write the figures as JSON ('-' = standard output)"
SHUFFLE_OPTION = "--shuffle SEED:int?  learn all rows in random order, from memory"
REFUSAL_OPTIONS = f"""
--strict  stop at the first line that cannot be read
--max-refused SHARE:float={MOST_REFUSED:g}  exit with status 2 if a larger share of the lines cannot be read
"""
LABEL_OPTION = "--label COLUMN  column or key of the label (default: label, target, class, y, or the last)"
INPUT_OPTIONS = f"""
input:
{FORMAT_OPTION}
--weight COLUMN  column or key of the weights of the rows (default: 1)
--ignore A,B  columns to leave out
--categorical A,B  columns whose numbers are categories
--text A,B  columns whose words are attributes
--delimiter D  separator of a table: a character, tab or space (default: detected)
--no-header  the first line of a table is data; its columns are 1, 2, ...
--ngrams N:int  longest run of words that is an attribute of a text (default: 1)
--pairs A:B,C:D  pair the attributes of A with those of B; all: all of them
{REFUSAL_OPTIONS}
"""
CLUSTER_OPTIONS = """
cluster:
--cluster ADDRESS  learn the files in parallel: local, local:N or the address of a Dask scheduler
--mix HOW=MIX  weight of each file: uniform, trials or mistakes
--resume  continue from the folder of --checkpoint
"""

OPTION_LINE = re.compile(
    r"(?P<flag>--[\w-]+)?(?: ?(?P<value>[^\s=!?*]+?)(?P<type>:int|:float|:path)?(?:=(?P<default>\S+))?)?"
    r"(?P<mark>!|\?|\*|\.\.\.)?  (?P<help>.+)"
)
VALUE_TYPES = {":int": int, ":float": float, ":path": Path, None: str}


def add_options(parser: argparse.ArgumentParser, text: str) -> None:
    """Add the options that a text describes."""
    add = parser.add_argument
    *others, last = FORMATS
    for line in filter(None, text.replace("{formats}", f"{', '.join(others)} or {last}").splitlines()):
        if line.endswith(":"):
            add = parser.add_argument_group(line[:-1]).add_argument
            continue
        match = OPTION_LINE.fullmatch(line)
        assert match is not None, line
        flag, value, kind, default, mark, shown = match.groups()
        given: dict[str, Any] = {"help": shown.replace("%", "%%") + (f" (default: {default})" if default else "")}
        if value is None:
            given |= {"action": "store_true"}
        elif "|" in value:
            given |= {"default": default, "choices": value.split("|")}
        else:
            given |= {"default": default, "type": VALUE_TYPES[kind], "metavar": value}
        if flag is None:
            add(value.lower(), nargs={"...": "+"}.get(mark, mark), **given)
        elif mark == "?":
            add(flag, nargs="?", const=0, **given)
        else:
            add(flag, required=mark == "!", **given)


def add_actions(parser: argparse.ArgumentParser, actions: Actions, dest: str = "action") -> None:
    """Add commands of a command, which may have commands of their own."""
    commands = parser.add_subparsers(
        prog=parser.prog, dest=dest, metavar="COMMAND", title="commands", required=dest != "action"
    )
    for name, (summary, options) in actions.items():
        command = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if isinstance(options, str):
            add_options(command, options)
        else:
            add_actions(command, options, "verb")


def refuse_options(arguments: argparse.Namespace, names: str, reason: str, mode: str = "") -> None:
    """Raise for the first of these options that is given and makes no sense, in this mode of the command.

    A name may have its default, as in "passes=1", with which it counts as not given.
    """
    for name in names.split():
        name, _, default = name.partition("=")
        value = getattr(arguments, name)
        if value is not None and value is not False and str(value) != default:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} {reason}; remove {f'{mode} or ' if mode else ''}{option}")


def listed(text: str | None) -> list[str]:
    """Return names separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def cells_listed(text: str | None) -> list[str]:
    """Return names separated by commas, with their spaces, exactly as in the cells of a table (RFC 4180)."""
    return [name for name in (text or "").split(",") if name]


def reading_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `INPUT_OPTIONS` as `linmax.stream` takes them."""
    lists = {name: listed(getattr(arguments, name)) for name in ("ignore", "categorical", "text", "pairs")}
    plain = {name: getattr(arguments, name) for name in ("format", "label", "weight", "delimiter", "ngrams", "strict")}
    return plain | lists | {"header": False if arguments.no_header else None}


def refused_share(arguments: argparse.Namespace) -> float:
    """Return the share of lines that may be refused, checked."""
    share: float = arguments.max_refused
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"--max-refused must be a share from 0 to 1, got {share:g}; try {MOST_REFUSED:g}")
    return share
