"""The commands, as functions in a folder of their own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from golden import streams
from golden.record import by_name, case, digest
from linmax.cli import main

TIMES = ("seconds", "trials_per_second", "version", "rows_per_second")


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder to work in, with a file of each format and a table of votes."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        for lines, file, _ in streams.FILES.values():
            (Path(name) / file).write_text("\n".join(lines()) + "\n")
        given = streams.votes()
        table = [
            ",".join([*(vote or "" for vote in row), subject, label])
            for row, subject, label in zip(given.votes, given.subjects, given.labels, strict=True)
        ]
        (Path(name) / "votes.csv").write_text(
            "\n".join([",".join([*streams.VOTERS, "subject", "answer"]), *table]) + "\n"
        )
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def call(*arguments: str) -> None:
    """Run a command; what it prints for people is left alone."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as told:
        status = main(arguments)
    if status:
        raise ValueError(told.getvalue())


def figures(path: Path) -> dict[str, Any]:
    """The figures of a command without what depends on the clock."""
    found = json.loads(path.read_text())
    return by_name({name: value for name, value in found.items() if name not in TIMES}, 8)


def learned(kind: str, learner: str, *more: str) -> dict[str, Any]:
    """Learn, show, and predict with the model."""
    _, file, reading = streams.FILES[kind]
    options = [part for name, value in reading.items() for part in (f"--{name}", str(value))]
    with folder() as here:
        call(
            "learn",
            file,
            *options,
            "--learner",
            learner,
            "--model",
            "m",
            "--predictions",
            "p",
            "--json",
            "j",
            "--quiet",
            *more,
        )
        found: dict[str, Any] = {
            "learn": figures(here / "j"),
            "progressive": digest((here / "p").read_text().splitlines()),
        }
        exact = ["--digits", "0", "--as", "jsonl", "--out", "o"]
        call("predict", "m", file, *options, "--write", "probabilities", *exact, "--json", "k")
        rows = [json.loads(line) for line in (here / "o").read_text().splitlines()]
        found["predict"] = figures(here / "k")
        found["predicted"] = digest(row["predicted"] for row in rows)
        found["probabilities"] = by_name([row["probabilities"] for row in rows])
        call("predict", "m", file, *options, "--write", "scores", *exact)
        found["scores"] = by_name([json.loads(line)["scores"] for line in (here / "o").read_text().splitlines()])
        call("show", "m", "--json", "s")
        found["show"] = figures(here / "s")
        return found


for kind in streams.FILES:
    for learner in ("auto", "perceptron", "AR-winnow(1.2)", "A-arow"):
        case("cli", f"learn-{kind}-{learner}", learned, kind, learner)
case("cli", "learn-passes", learned, "svmlight", "A-arow", "--passes", "3", "--holdout", "5")
case("cli", "learn-hashed", learned, "text", "perceptron", "--hash-bits", "7", "--test", "data.txt")


def continued(learner: str) -> dict[str, Any]:
    """Learn from one file, then go on with another."""
    with folder() as here:
        lines = (here / "data.vw").read_text().splitlines()
        (here / "a.vw").write_text("\n".join(lines[:80]) + "\n")
        (here / "b.vw").write_text("\n".join(lines[80:]) + "\n")
        call("learn", "a.vw", "--learner", learner, "--model", "m", "--quiet")
        call("learn", "b.vw", "--start", "m", "--model", "n", "--predictions", "p", "--json", "j", "--quiet")
        return {"learn": figures(here / "j"), "progressive": digest((here / "p").read_text().splitlines())}


def fused(learner: str, *more: str) -> dict[str, Any]:
    with folder() as here:
        ignored = [] if "--by" in more else ["--ignore", "subject"]
        call("fuse", "votes.csv", "--label", "answer", "--learner", learner, "--json", "j", *ignored, *more)
        return figures(here / "j")


def merged(learner: str) -> dict[str, Any]:
    with folder() as here:
        for name in ("vw", "text"):
            call(
                "learn",
                f"data.{'vw' if name == 'vw' else 'txt'}",
                "--format",
                name,
                "--learner",
                learner,
                "--scale",
                "none",
                "--model",
                name,
                "--quiet",
            )
        call("merge", "vw", "text", "--out", "both", "--json", "j", "--mix", "1,2")
        call("show", "both", "--json", "s")
        return {"merge": figures(here / "j"), "show": figures(here / "s")}


def bounded(learners: str) -> dict[str, Any]:
    with folder() as here:
        call(
            "bounds",
            "votes.csv",
            "--label",
            "answer",
            "--ignore",
            "subject",
            "--votes",
            "--learners",
            learners,
            "--json",
            "j",
        )
        rows = json.loads((here / "j").read_text())
        kept = ("learner", "trials", "mistakes", "updates")
        found = rows["rows"] if isinstance(rows, dict) and "rows" in rows else rows
        return {
            "bounds": by_name(
                found if not isinstance(found, list) else [{k: row.get(k) for k in kept} for row in found]
            )
        }


for learner in ("perceptron", "auto"):
    case("cli", f"continued-{learner}", continued, learner)
for learner in ("auto", "AR-winnow(1.2)"):
    case("cli", f"fuse-{learner}", fused, learner)
    case("cli", f"fuse-test-{learner}", fused, learner, "--test-fraction", "0.25", "--shuffle", "3")
    case("cli", f"fuse-by-{learner}", fused, learner, "--by", "subject")
for learner in ("perceptron", "A-arow"):
    case("cli", f"merge-{learner}", merged, learner)
case("cli", "bounds", bounded, "perceptron;winnow(1.1)", rounding=1e-5)
