"""``linmax learn --candidates``: trials with candidates of their own."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmax.cli.fusion_table import counted
from linmax.cli.output import console
from linmax.cli.prediction_file import STANDARD

if TYPE_CHECKING:
    from linmax.models.online import Learner

__all__ = ["learn_choices"]

# Options of `linmax learn` that mean nothing here, and the values that they have when they are not given.
OTHER_OPTIONS = (
    "scale hash_bits memory passes holdout delay checkpoint plot format weight ignore categorical text ngrams pairs "
    "cluster no_thresholds"
)
COUNTED = ("mistake", "trial", "rater", "voter")
NOT_GIVEN = (None, "", False, 0, 1, "auto")


def learn_choices(arguments: argparse.Namespace) -> None:
    """Learn; show the result; save the requested files."""
    from linmax.models.online import Learner
    from linmax.util.outputs import check_output, replace_file, write_json

    for name in OTHER_OPTIONS.split():
        if getattr(arguments, name) not in NOT_GIVEN:
            raise ValueError(f"--{name.replace('_', '-')} does not go with --candidates; leave it out")
    for path in [arguments.json, arguments.model, arguments.predictions]:
        if path not in (None, STANDARD):
            check_output(path)
    learner = Learner.load(arguments.start) if arguments.start else Learner(arguments.learner)
    begun = time.perf_counter()
    predicted: list[str] = []
    unlabelled = _play(learner, arguments.data, arguments.label or "label", predicted, learn=True)[2]
    if not predicted:
        raise ValueError(f"{', '.join(arguments.data)}: there is no data")
    trials, mistakes = learner.trials, learner.mistakes
    figures: dict[str, Any] = {
        "learner": str(learner.learner),
        "trials": trials,
        "mistakes": mistakes,
        "progressive_error": mistakes / trials if trials else None,
        "raters": len(learner.raters),
        "voters": len(learner.voters),
        "unlabelled": unlabelled,
        "seconds": time.perf_counter() - begun,
    }
    if arguments.test:
        right, wrong, _ = _play(learner, [arguments.test], arguments.label or "label", [], learn=False)
        if not right + wrong:
            raise ValueError(f"{arguments.test}: there is no trial with a label")
        figures |= {"test_trials": right + wrong, "test_error": wrong / (right + wrong)}
    if arguments.model:
        learner.save(arguments.model)
    if arguments.predictions:
        text = "\n".join([*predicted, ""])
        if arguments.predictions == STANDARD:
            print(text, end="")
        else:
            replace_file(Path(arguments.predictions), text.encode())
    if arguments.json:
        write_json(figures, arguments.json)
    if STANDARD not in (arguments.json, arguments.predictions):
        _tell(arguments, figures)


def _play(learner: Learner, data: list[str], label: str, predicted: list[str], *, learn: bool) -> tuple[int, int, int]:
    """Go through the trials of the files: how many were right, wrong and without a label."""
    from linmax.io.choices import read_choices
    from linmax.io.sources import Source

    right = wrong = unlabelled = 0
    for path in data:
        source = Source.of(path)
        try:
            for trial in read_choices(source.lines(), label):
                wanted, given = trial.label, trial.given
                try:
                    if wanted is not None and learn:
                        answer = learner.learn(label=wanted, **given)
                    elif trial.wrong is not None and learn:
                        answer = learner.learn(wrong=trial.wrong, **given)
                    else:
                        answer = learner.predict(**given)
                except (TypeError, ValueError) as error:
                    raise ValueError(f"line {trial.line}: {error}") from None
                predicted.append(str(answer))
                unlabelled += wanted is None and trial.wrong is None
                right += wanted is not None and answer == wanted
                wrong += wanted is not None and answer != wanted
        except ValueError as error:
            raise ValueError(f"{source.name}, {error}") from None
        finally:
            source.close()
    return right, wrong, unlabelled


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
