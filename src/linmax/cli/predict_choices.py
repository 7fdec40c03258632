"""``linmax predict`` with a model that chooses among candidates: who wins each trial, and numbers or sets if wanted."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from linmax.cli.choice_lines import each_choice
from linmax.cli.prediction_counts import PredictionCounts
from linmax.cli.prediction_forms import Answers, make_form
from linmax.cli.reading import nothing_read, refuse_too_many, show_refusals
from linmax.util.checks import about

if TYPE_CHECKING:
    from linmax.io.choices import ChoiceLine
    from linmax.models.online import Learner

__all__ = ["predict_choices"]


def predict_choices(arguments: argparse.Namespace, what: str, form: str) -> None:
    """Predict the trials of files of JSON lines or of Vowpal Wabbit's blocks of lines."""
    from rich.console import Console

    from linmax.cli.predict import target_of
    from linmax.models.online import Learner
    from linmax.util.outputs import write_json

    _refuse(arguments, what, form)
    begun, learner, counts = time.perf_counter(), Learner.load(arguments.model), PredictionCounts()
    if learner.trials and not learner.takes_candidates:
        raise ValueError(
            f"{arguments.model} holds a 'learner' of classes, not of candidates: linmax predict takes models of linmax "
            "learn and fuse; load it with linmax.Learner.load"
        )
    with target_of(arguments.out) as target:
        writer = make_form(form, target, what, arguments.top)

        def play(trial: ChoiceLine) -> None:
            answers = _answered(learner, trial, what, arguments)
            counts.add([None if trial.label is None else str(trial.label)], answers.predicted)
            with about(arguments.out or "standard output"):
                writer.write(answers)
                if arguments.out is None:
                    target.flush()

        refusals = each_choice(arguments, arguments.data, play)
        if not counts.lines:
            raise ValueError(nothing_read(arguments.data, refusals))
        writer.end(Answers([], None, [], None, []))
    screen = Console(stderr=True, highlight=False)
    show_refusals(screen, refusals)
    for told in counts.told():
        screen.print(told)
    if arguments.json is not None:
        more = {"refused": refusals.total, "seconds": time.perf_counter() - begun}
        write_json(counts.figures(arguments.reject) | more, arguments.json)
    refuse_too_many(arguments, counts.lines, refusals)


def _answered(learner: Learner, trial: ChoiceLine, what: str, arguments: argparse.Namespace) -> Answers:
    """The winner of one trial, if it is sure enough, and the numbers or the set that are wanted."""
    import numpy as np

    rated = (learner.predict_proba if what == "probabilities" else learner.scores)(**trial.given)
    answer = learner.predict(**trial.given, reject=arguments.reject)
    table, sets = None if what == "labels" else np.array([list(rated.values())]), None
    if arguments.sets is not None:
        sets = [list(map(str, learner.predict_set(**trial.given, coverage=arguments.sets)))]
    names = [str(name) for name in rated]
    return Answers([trial.line], None, ["" if answer is None else str(answer)], table, names, sets)


def _refuse(arguments: argparse.Namespace, what: str, form: str) -> None:
    """Refuse what candidates have not."""
    if what != "labels" and form != "jsonl":
        raise ValueError(f"each trial has its own candidates, so that {what} fill no columns; write them --as jsonl")
    for option in ("format", "id"):
        if getattr(arguments, option) is not None:
            raise ValueError(f"--{option} does not go with a model that chooses among candidates; leave it out")
