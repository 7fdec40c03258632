"""``linmax learn --candidates``: trials with candidates of their own."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmax.cli.choice_lines import each_choice
from linmax.cli.fusion_table import counted
from linmax.cli.output import console
from linmax.cli.prediction_file import STANDARD
from linmax.cli.reading import nothing_read, refuse_too_many, refused_share, show_refusals

if TYPE_CHECKING:
    from linmax.io.choices import ChoiceLine
    from linmax.models.online import Learner

__all__ = ["learn_choices"]

# Options of `linmax learn` that mean nothing here, and the values that they have when they are not given.
OTHER_OPTIONS = (
    "scale hash_bits memory passes holdout checkpoint plot format weight ignore categorical text ngrams pairs "
    "cluster no_thresholds"
)
COUNTED = ("mistake", "trial", "rater", "voter")
NOT_GIVEN = (None, "", False, 0, 1, "auto")


def learn_choices(arguments: argparse.Namespace) -> None:
    """Learn; show the result; save the requested files."""
    from rich.console import Console

    from linmax.models.online import Learner
    from linmax.util.outputs import check_output, replace_file, write_json

    for name in OTHER_OPTIONS.split():
        if getattr(arguments, name) not in NOT_GIVEN:
            raise ValueError(f"--{name.replace('_', '-')} does not go with --candidates; leave it out")
    refused_share(arguments)
    for path in [arguments.json, arguments.model, arguments.predictions]:
        if path not in (None, STANDARD):
            check_output(path)
    learner = Learner.load(arguments.start) if arguments.start else Learner(arguments.learner)
    begun = time.perf_counter()
    counts = Counts()
    refusals = each_choice(arguments, arguments.data, partial(_learn, learner, counts))
    if not counts.predicted:
        raise ValueError(nothing_read(arguments.data, refusals))
    trials, mistakes = learner.trials, learner.mistakes
    figures: dict[str, Any] = {
        "learner": str(learner.learner),
        "trials": trials,
        "mistakes": mistakes,
        "progressive_error": mistakes / trials if trials else None,
        "raters": len(learner.raters),
        "voters": len(learner.voters),
        "unlabelled": counts.unlabelled,
        "seconds": time.perf_counter() - begun,
    }
    played = len(counts.predicted)
    if arguments.test:
        test = Counts()
        refusals.join(each_choice(arguments, [arguments.test], partial(_predict, learner, test)))
        if not test.labelled:
            raise ValueError(f"{arguments.test}: there is no trial with a label")
        played += len(test.predicted)
        figures |= {"test_trials": test.labelled, "test_error": test.wrong / test.labelled}
    if arguments.model:
        learner.save(arguments.model)
    if arguments.predictions:
        text = "\n".join([*counts.predicted, ""])
        if arguments.predictions == STANDARD:
            print(text, end="")
        else:
            replace_file(Path(arguments.predictions), text.encode())
    if arguments.json:
        write_json(figures | {"refused": refusals.total}, arguments.json)
    if STANDARD not in (arguments.json, arguments.predictions):
        _tell(arguments, figures)
    show_refusals(Console(stderr=True, highlight=False), refusals)
    refuse_too_many(arguments, played, refusals)


@dataclass
class Counts:
    """What came of trials."""

    predicted: list[str] = field(default_factory=list)
    labelled: int = 0
    wrong: int = 0
    unlabelled: int = 0

    def add(self, trial: ChoiceLine, answer: object) -> None:
        """Count one of them."""
        self.predicted.append(str(answer))
        self.unlabelled += trial.label is None and trial.wrong is None
        self.labelled += trial.label is not None
        self.wrong += trial.label is not None and answer != trial.label


def _learn(learner: Learner, counts: Counts, trial: ChoiceLine) -> None:
    if trial.label is not None:
        counts.add(trial, learner.learn(label=trial.label, **trial.given))
    elif trial.wrong is not None:
        counts.add(trial, learner.learn(wrong=trial.wrong, **trial.given))
    else:
        _predict(learner, counts, trial)


def _predict(learner: Learner, counts: Counts, trial: ChoiceLine) -> None:
    counts.add(trial, learner.predict(**trial.given))


def _tell(arguments: argparse.Namespace, figures: dict[str, Any]) -> None:
    screen, error = console(arguments), figures["progressive_error"]
    told = "no labels" if error is None else f"progressive error {error:.4f}"
    mistakes, trials, raters, voters = (counted(figures[f"{what}s"], what) for what in COUNTED)
    screen.print(
        f"{figures['learner']}: {told}, {mistakes} in {trials} with candidates; {raters}, {voters}; "
        f"{figures['seconds']:.1f} s",
        soft_wrap=True,
    )
    if figures["unlabelled"]:
        were = "was" if figures["unlabelled"] == 1 else "were"
        screen.print(f"{counted(figures['unlabelled'], 'trial')} without a label {were} predicted only.")
    if "test_error" in figures:
        screen.print(f"test error {figures['test_error']:.4f}")
