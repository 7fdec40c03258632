"""Other libraries' learners on the same rows: each makes a function that times itself, or says why it cannot.

Every timer returns seconds for one trial. Converting the rows to a library's own form is not timed; zeros of
dense rows are left out where the library takes named features (Vowpal Wabbit, River), which favours it.
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from problems import Problem

Timer = Callable[[], float]
VW_TRIALS = 200_000
VW_STARTS = 15  # short runs before the first round: one slow start would make every later difference too small
RIVER_TRIALS = 2_000


class Missing(RuntimeError):
    """The library is not installed or does not work here; the message says what to do."""


def require(module: str, package: str) -> None:
    """Raise `Missing` when `module` cannot be imported."""
    if importlib.util.find_spec(module) is None:
        raise Missing(f"not installed; pip install {package}")


def named_features(problem: Problem) -> Iterator[tuple[int, list[int], list[float]]]:
    """Label, columns and values of every row, zeros left out."""
    for t, label in enumerate(problem.labels.tolist()):
        if problem.is_sparse:
            start, stop = problem.rows.indptr[t : t + 2]
            yield label, problem.rows.indices[start:stop].tolist(), problem.rows.data[start:stop].tolist()
        else:
            columns = np.flatnonzero(problem.rows[t])
            yield label, columns.tolist(), problem.rows[t, columns].tolist()


def scikit_learn(problem: Problem) -> Timer:
    """scikit-learn's Perceptron, one epoch in the given order, one-against-all; it predicts nothing."""
    require("sklearn", "scikit-learn")
    from sklearn.linear_model import Perceptron

    def timer() -> float:
        model = Perceptron(max_iter=1, tol=None, shuffle=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one epoch does not converge, as wanted
            start = time.perf_counter()
            model.fit(problem.rows, problem.labels)
            return (time.perf_counter() - start) / problem.trials

    return timer


def vowpal_wabbit(problem: Problem, options: list[str], folder: Path) -> Timer:
    """Vowpal Wabbit one-against-all over its own cache file.

    It has no executable in its Python package and starts slowly. So it runs in a process of its own, over a
    tenth of the cache and over all of it; the difference of the fastest of these is the cost of the rows.
    """
    require("vowpalwabbit", "vowpalwabbit")
    part = problem.head(VW_TRIALS)
    bits = max(18, int(np.ceil(np.log2(problem.features * problem.classes))) + 1)
    text, cache = folder / "rows.txt", folder / "rows.cache"
    learner = ["--oaa", str(problem.classes)] if problem.classes > 2 else ["--binary"]
    command = [sys.executable, "-m", "vowpalwabbit", *learner, "-b", str(bits), "-d", str(text)]
    command += ["--cache_file", str(cache), "--quiet"]
    if not cache.exists():
        write_vw(part, text)
        run_vw([*command, "-k"])  # -k: make the cache afresh

    def seconds(trials: int) -> float:
        start = time.perf_counter()
        run_vw([*command, *options, "--examples", str(trials)])
        return time.perf_counter() - start

    few = part.trials // 10
    starts = [seconds(few) for _ in range(VW_STARTS)]

    def timer() -> float:
        starts.append(seconds(few))
        return (seconds(part.trials) - min(starts)) / (part.trials - few)

    return timer


def write_vw(problem: Problem, path: Path) -> None:
    """Write the rows in Vowpal Wabbit's text format, labels from 1 (or -1 and 1 for two classes)."""
    with path.open("w") as lines:
        for label, columns, values in named_features(problem):
            number = label + 1 if problem.classes > 2 else 2 * label - 1
            features = " ".join(f"{c}:{v:g}" for c, v in zip(columns, values, strict=True))
            lines.write(f"{number} | {features}\n")


def run_vw(command: list[str]) -> None:
    """Run Vowpal Wabbit and pass on what it says when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"failed: {(done.stderr.strip() or done.stdout.strip()).splitlines()[-1]}")


def river(problem: Problem) -> Timer:
    """River's Perceptron: predict_one, then learn_one, on dicts; one-against-all beyond two classes."""
    require("river", "river")
    linear_model = importlib.import_module("river.linear_model")
    multiclass = importlib.import_module("river.multiclass")

    part = problem.head(RIVER_TRIALS)
    stream = [(dict(zip(columns, values, strict=True)), label) for label, columns, values in named_features(part)]

    def timer() -> float:
        model = linear_model.Perceptron()
        if problem.classes > 2:
            model = multiclass.OneVsRestClassifier(model)
        start = time.perf_counter()
        for row, label in stream:
            model.predict_one(row)
            model.learn_one(row, label)
        return (time.perf_counter() - start) / len(stream)

    return timer
