"""The command line: ``linmax COMMAND ...``.

One module for each command, named in `COMMANDS` and imported when it is called; libraries are imported when the command
runs. So ``linmax --help`` loads neither NumPy nor Numba.

A command module has its docstring as description, its arguments as text, `OPTIONS` (see `linmax.cli.options`), perhaps
`ACTIONS`, which are commands of its own, and a function ``run(arguments)``, which does the work and raises
``ValueError`` or ``OSError`` for what the user can fix.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from linmax import __version__

__all__ = ["COMMANDS", "command_parser", "main", "script"]

COMMANDS = {
    "bounds": "compare mistake bounds and mistakes of the rules on a file",
    "demo": "fuse the answers of twelve models, as a first example",
    "fuse": "fuse a table of votes and compare with plurality and the best voter",
    "learn": "learn from files and pipes, predicting every line first",
    "merge": "merge models that learned from different examples",
    "predict": "predict each line of files and pipes with a saved model",
    "serve": "serve models that learn online over HTTP",
    "show": "show what a model file holds",
    "warm": "compile kernels beforehand, on all processors",
}

DONE, FAILED, BAD_INPUT = 0, 1, 2
INTERRUPT, BY_SIGNAL = 2, 128  # the number of Ctrl-C's signal; what is added to a signal's number
ARGUMENT = re.compile(r"[A-Z]+\S*  ")  # of a command, in the text of its options
COLLECT_AFTER = 1_000_000  # new objects before the garbage collector runs; imports alone make a tenth of them


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status: 0 done, 2 bad input, 128 + n ended by signal n, 1 otherwise.

    Examples
    --------
    >>> main(["demo", "--rows", "-1"])
    2
    """
    try:
        try:
            return _dispatch(list(sys.argv[1:] if argv is None else argv))
        finally:
            sys.stdout.flush()  # here, where a broken pipe is still caught
    except KeyboardInterrupt as error:
        number = getattr(error, "signal", INTERRUPT)
        print("linmax: interrupted" if number == INTERRUPT else "linmax: asked to end", file=sys.stderr)
        return BY_SIGNAL + int(number)
    except MemoryError:
        print("linmax: error: out of memory; use --hash-bits or --memory, or a machine with more", file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        _silence_stdout()
        return FAILED
    except (ValueError, OSError) as error:
        print(f"linmax: error: {_one_line(error)}", file=sys.stderr)
        return BAD_INPUT


def script() -> int:
    """`main` as a process: the garbage collector need not scan what the imports made, during the run or at its end."""
    _occupy_standard_streams()
    gc.set_threshold(COLLECT_AFTER)
    status = main()
    gc.freeze()
    return status


def _occupy_standard_streams() -> None:
    """Open the null device in place of a closed standard stream, so that no file opened later takes its place."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, without the usage text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"linmax: error: {message}{self._meant(message)}; see '{self.prog} --help'\n")

    def _meant(self, message: str) -> str:
        """Return the option that an unknown one resembles."""
        from difflib import get_close_matches

        unknown = next((word.partition("=")[0] for word in message.split() if word.startswith("--")), "")
        known = [option for option in self._option_string_actions if option.startswith("--")]
        close = get_close_matches(unknown, known, n=1) if "unrecognized" in message else []
        return f"; did you mean {close[0]}?" if close else ""


def _dispatch(argv: list[str]) -> int:
    parser = _top_parser()
    if not argv:
        parser.print_help(sys.stderr)
        return BAD_INPUT
    chosen = parser.parse_args(argv)
    if chosen.command not in COMMANDS:
        parser.error(_unknown(chosen.command))
    arguments = command_parser(chosen.command).parse_args(chosen.rest)
    from linmax.jit.announce import spinning  # imports what help does without

    with spinning():
        importlib.import_module(f"linmax.cli.{chosen.command}").run(arguments)
    return DONE


def command_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command's arguments."""
    from linmax.cli.options import add_actions, add_options

    module = importlib.import_module(f"linmax.cli.{name}")
    lines = [line.split("  ")[0] for line in module.OPTIONS.splitlines() if ARGUMENT.match(line)]
    shown = [f"[{line[:-1]}...]" if line.endswith("*") else line for line in lines]
    usage = " ".join(["linmax", name, *shown, "[options]", *["[COMMAND ...]"] * hasattr(module, "ACTIONS")])
    parser = _Parser(prog=f"linmax {name}", usage=usage, description=module.__doc__)
    add_options(parser, module.OPTIONS)
    if hasattr(module, "ACTIONS"):
        add_actions(parser, module.ACTIONS)
    return parser


def _top_parser() -> _Parser:
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items())
    parser = _Parser(
        prog="linmax",
        usage="linmax [--help] [--version] COMMAND ...",
        description="Online multi-class linear learning and classifier fusion.",
        epilog=f"commands:\n{commands}\n\n'linmax COMMAND --help' describes a command.",
    )
    parser.add_argument("--version", action="version", version=f"linmax {__version__}")
    parser.add_argument("command", metavar="COMMAND", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"known: {', '.join(COMMANDS)}"
    return f"unknown command '{name}', {hint}"


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


def _silence_stdout() -> None:
    """Send the interpreter's last flush to the null device: the reader of the pipe has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
