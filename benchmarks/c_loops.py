"""Compiles and calls loops.c, and checks it against the same algorithms in slow numpy."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from problems import Problem, forest, zipf

SOURCE = Path(__file__).with_name("loops.c")
FLAGS = ["-O3", "-march=native", "-fPIC", "-shared"]
WIDTHS = (2, 8, 24)
PADDING = 16  # AHEAD in loops.c


class Missing(RuntimeError):
    """The C loops cannot be had on this machine; the message says why."""


class Rows(ctypes.Structure):
    """`struct rows` of loops.c."""

    _fields_ = [
        ("trials", ctypes.c_int64),
        ("width", ctypes.c_int64),
        ("start", ctypes.c_void_p),
        ("index", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("label", ctypes.c_void_p),
    ]


class Learner(ctypes.Structure):
    """`struct learner` of loops.c."""

    _fields_ = [
        ("k", ctypes.c_int32),
        ("weight", ctypes.c_void_p),
        ("exponent", ctypes.c_void_p),
        ("rate", ctypes.c_double),
    ]


@dataclass
class Loops:
    """The compiled library; call `prepare` once for a problem and `run` for every pass."""

    library: ctypes.CDLL
    compiler: str
    folder: tempfile.TemporaryDirectory[str] = field(repr=False)

    def prepare(self, problem: Problem) -> Prepared:
        """Arrays in the types of loops.c; not part of what is timed."""
        return Prepared(self.library, problem)


def compile_loops() -> Loops:
    """Compile loops.c into a temporary folder.

    Raises
    ------
    Missing
        When there is no C compiler, or it rejects the file.
    """
    compiler = next((path for path in map(shutil.which, ("gcc", "clang", "cc")) if path), None)
    if compiler is None:
        raise Missing("no C compiler (gcc, clang or cc) on the PATH")
    folder = tempfile.TemporaryDirectory(prefix="linmax-loops-")
    target = Path(folder.name) / "loops.so"
    done = subprocess.run(
        [compiler, *FLAGS, str(SOURCE), "-o", str(target), "-lm"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
        raise Missing(f"{compiler} cannot compile {SOURCE.name}: {first}")
    return Loops(ctypes.CDLL(str(target)), compiler, folder)


class Prepared:
    """One problem as loops.c wants it."""

    def __init__(self, library: ctypes.CDLL, problem: Problem) -> None:
        self.problem = problem
        self.library = library
        self.lanes = next((width for width in WIDTHS if width >= problem.classes), 0)
        if not self.lanes:
            raise ValueError(f"classes must be <= {WIDTHS[-1]} for loops.c, got {problem.classes}")
        rows = problem.rows
        self.arrays: dict[str, NDArray[Any]] = {"label": problem.labels.astype(np.int32)}
        if problem.is_sparse:
            self.arrays["start"] = rows.indptr.astype(np.int64)
            self.arrays["index"] = np.concatenate([rows.indices, np.zeros(PADDING)]).astype(np.int32)
            self.arrays["value"] = rows.data.astype(np.float64)
        else:
            self.arrays["value"] = np.ascontiguousarray(rows, dtype=np.float64)
        pointers = {name: array.ctypes.data for name, array in self.arrays.items()}
        self.rows = Rows(trials=problem.trials, width=problem.features, **pointers)

    def run(self, rule: str, alpha: float = 1.1) -> tuple[int, NDArray[np.int32], NDArray[np.float64]]:
        """One pass from zero weights: mistakes, predictions, weights (features + 1, classes)."""
        kind = "sparse" if self.problem.is_sparse else "dense"
        function = self.library[f"{rule}_{kind}_{self.lanes}"]
        function.restype = ctypes.c_int64
        predictions = np.empty(self.problem.trials, dtype=np.int32)
        weights = aligned_zeros(self.problem.features + 1, self.lanes)
        exponents = aligned_zeros(self.problem.features + 1, self.lanes) if "winnow" in rule else None
        learner = Learner(
            k=self.problem.classes,
            weight=weights.ctypes.data,
            exponent=None if exponents is None else exponents.ctypes.data,
            rate=float(np.log(alpha)),
        )
        mistakes = function(ctypes.byref(self.rows), ctypes.byref(learner), ctypes.c_void_p(predictions.ctypes.data))
        return int(mistakes), predictions, weights[:, : self.problem.classes]


def aligned_zeros(rows: int, columns: int) -> NDArray[np.float64]:
    """Zeros that begin on a cache line, so that one feature's weights touch as few lines as possible."""
    flat = np.zeros(rows * columns + 8)
    offset = (-flat.ctypes.data % 64) // 8
    return flat[offset : offset + rows * columns].reshape(rows, columns)


def slow_pass(problem: Problem, rule: str, alpha: float = 1.1) -> tuple[int, NDArray[np.int32], NDArray[np.float64]]:
    """The same pass, one row at a time in numpy: what loops.c must agree with."""
    rows = problem.rows.toarray() if problem.is_sparse else problem.rows
    state = np.zeros((problem.features + 1, problem.classes))
    weights = state.copy()
    predictions = np.empty(problem.trials, dtype=np.int32)
    for t, (row, label) in enumerate(zip(rows, problem.labels, strict=True)):
        x = np.concatenate([[1.0], row])
        scores = x @ weights
        predictions[t] = np.argmax(scores)
        wrong = scores.copy()
        wrong[label] = -np.inf
        rival = int(np.argmax(wrong))
        if scores[label] <= scores[rival]:
            state[:, label] += x
            state[:, rival] -= x
            weights = state if rule == "perceptron" else 2.0 * np.sinh(np.log(alpha) * state)
    return int(np.sum(predictions != problem.labels)), predictions, weights


def check(loops: Loops) -> list[str]:
    """Compare loops.c with `slow_pass` on small problems; the lines to print.

    Raises
    ------
    AssertionError
        When they disagree.
    """
    lines = []
    problems = [zipf(600, 300, k, nonzeros=20, seed=k) for k in (2, 3, 8, 9, 20, 24)] + [forest(600)]
    for problem in problems:
        prepared = loops.prepare(problem)
        for rule in ("perceptron", "balanced_winnow", "balanced_winnow_libm"):
            mistakes, predictions, weights = prepared.run(rule)
            slow_mistakes, slow_predictions, slow_weights = slow_pass(problem, rule)
            np.testing.assert_array_equal(predictions, slow_predictions, err_msg=f"{rule}, {problem.name}")
            np.testing.assert_allclose(weights, slow_weights, rtol=1e-12, atol=1e-12)
            assert mistakes == slow_mistakes
            lines.append(f"{problem.name:12} {rule:21} {mistakes} mistakes in {problem.trials}: agrees")
    return lines
