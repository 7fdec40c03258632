"""Figure 4: the accuracy of Balanced Winnow after every trial on the forest cover data."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from linmax.experiments.majority import Results
from linmax.theory.threshold import LinearThreshold
from linmax.util.checks import whole

__all__ = ["FIGURE4_TEST", "FIGURE4_TRIALS", "figure4", "forest_cover"]

SPRUCE = 1
FIGURE4_TRIALS, FIGURE4_TEST = 3000, 10_000
FIGURE4_RULE = "balanced-winnow(1.2)"
JUMP = 0.05  # smallest change of accuracy that counts as a jump


def forest_cover() -> tuple[np.ndarray, np.ndarray]:
    """Read attributes (581,012 x 54) and classes 1..7 from LINMAX_DATA, or else from scikit-learn's cache.

    Raises
    ------
    FileNotFoundError
        If the data are in neither place.
    """
    folder = os.environ.get("LINMAX_DATA")
    files = sorted(Path(folder, "covtype").glob("*.csv.gz")) if folder else []
    if files:
        table = np.loadtxt(files[0], dtype=np.int16, delimiter=",", skiprows=1, ndmin=2)
        return table[:, :-1], table[:, -1]
    from sklearn.datasets import fetch_covtype

    try:
        return tuple(fetch_covtype(download_if_missing=False, return_X_y=True))
    except OSError:
        raise FileNotFoundError(
            "figure 4 requires the forest cover data: set LINMAX_DATA to a folder with covtype/*.csv.gz, or "
            "download it once with scikit-learn: python -c 'import sklearn.datasets as d; d.fetch_covtype()'"
        ) from None


def figure4(
    seed: int = 0,
    *,
    trials: int = FIGURE4_TRIALS,
    test: int = FIGURE4_TEST,
    data: tuple[np.ndarray, np.ndarray] | None = None,
) -> Results:
    """Compute figure 4: accuracy of Balanced Winnow(1.2) after every trial on forest cover, spruce against the rest.

    Parameters
    ----------
    seed : int, default=0
        Seed for drawing the trials and the test instances.
    trials, test : int
        Number of trials and of test instances.
    data : pair of arrays, optional
        Attributes and classes; by default those of `forest_cover`.

    Returns
    -------
    dict
        ``accuracy`` after each trial; ``largest_fall`` between neighbouring trials of the second half, the number of
        ``jumps`` of at least 5 points there, ``lowest``, ``highest`` and ``mean`` accuracy there; ``claims``.
    """
    trials, test, seed = whole("trials", trials, 2), whole("test", test, 1), whole("seed", seed, 0)
    attributes, classes = forest_cover() if data is None else data
    if trials + test > len(classes):
        raise ValueError(
            f"trials + test must be <= {len(classes):,d}, the number of instances, got {trials + test:,d}; "
            f"try {FIGURE4_TRIALS} and {FIGURE4_TEST}"
        )
    least, most = attributes.min(axis=0), attributes.max(axis=0)
    drawn = np.random.default_rng(seed).permutation(len(classes))[: trials + test]
    scaled = (attributes[drawn] - least.astype(np.float64)) / np.maximum(most - least.astype(np.float64), 1.0)
    spruce = (classes[drawn] == SPRUCE).astype(np.int64)
    tested, truth = np.hstack([np.ones((test, 1)), scaled[trials:]]), spruce[trials:] == 1
    learner = LinearThreshold(FIGURE4_RULE, labels=(0, 1), constant=True)
    accuracy = np.zeros(trials)
    for t in range(trials):
        before = learner.updates
        learner.learn(scaled[t], spruce[t])
        changed = t == 0 or learner.updates > before
        accuracy[t] = np.mean((tested @ learner.weights >= 0.0) == truth) if changed else accuracy[t - 1]
    late = accuracy[trials // 2 :]
    steps = np.diff(accuracy)[trials // 2 - 1 :]
    jumps = int((np.abs(steps) >= JUMP).sum())
    return {
        "learner": FIGURE4_RULE,
        "mistakes": learner.mistakes,
        "mean": float(late.mean()),
        "lowest": float(late.min()),
        "highest": float(late.max()),
        "final": float(accuracy[-1]),
        "largest_fall": float(max(0.0, -steps.min())),
        "jumps": jumps,
        "claims": {"the accuracy is unstable: it jumps by 5 points and more between neighbouring trials": jumps > 0},
        "accuracy": accuracy,
    }
