"""The data of the speed benchmark, made from a seed.

Every value is a multiple of 1/256 in [0, 1]. Sums of such values are exact in float64, so two correct
Perceptrons make the same mistakes whatever the order in which they add; and [0, 1] is the range that the
Winnow family asks for.
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

GRID = 256.0
RELEVANT = 300  # features of the sparse target: with more, k = 20 is nearly unlearnable in one pass


@dataclass(frozen=True)
class Problem:
    """One stream of labelled rows, without the constant attribute."""

    name: str
    rows: Any  # a float64 matrix, dense or CSR
    labels: NDArray[np.int64]
    classes: int

    @property
    def trials(self) -> int:
        """Number of rows."""
        return int(self.labels.size)

    @property
    def features(self) -> int:
        """Number of attributes, the constant not counted."""
        return int(self.rows.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are CSR."""
        return bool(sparse.issparse(self.rows))

    @property
    def nonzeros(self) -> float:
        """Mean number of stored values a row."""
        return float(self.rows.nnz) / self.trials if self.is_sparse else float(self.features)

    def head(self, trials: int) -> Problem:
        """The first `trials` rows."""
        return Problem(self.name, self.rows[:trials], self.labels[:trials], self.classes)


def sparse_rows(trials: int, features: int, nonzeros: int, generator: np.random.Generator) -> sparse.csr_matrix:
    """CSR rows whose features follow Zipf's law P(rank) ~ 1/(rank + 10), at random column numbers.

    A row draws `nonzeros` features with repetition, plus those that repetition is expected to lose; frequent
    features are spread over all columns, as in an alphabetical or hashed vocabulary.
    """
    law = np.cumsum(1.0 / (np.arange(features) + 10.0))
    law /= law[-1]
    column_of_rank = generator.permutation(features).astype(np.int32)
    draws = draws_for(nonzeros, np.diff(law, prepend=0.0))
    indptr = np.zeros(trials + 1, dtype=np.int64)
    parts = []
    for start in range(0, trials, 20_000):
        count = min(20_000, trials - start)
        ranks = np.searchsorted(law, generator.random((count, draws)))
        columns = np.sort(column_of_rank[np.minimum(ranks, features - 1)], axis=1)
        new = np.ones(columns.shape, dtype=bool)
        new[:, 1:] = columns[:, 1:] != columns[:, :-1]
        indptr[start + 1 : start + count + 1] = new.sum(axis=1)
        parts.append(columns[new])
    np.cumsum(indptr, out=indptr)
    indices = np.concatenate(parts)
    # word counts damped by a logarithm look like this: many small values, few large ones
    values = np.ceil(GRID * (0.25 + 0.75 * generator.random(indices.size) ** 3)) / GRID
    return sparse.csr_matrix((values, indices, indptr.astype(np.int32)), shape=(trials, features))


def draws_for(nonzeros: int, law: NDArray[np.float64]) -> int:
    """How many draws from `law` give about `nonzeros` distinct values."""
    draws = nonzeros
    while -np.expm1(draws * np.log1p(-law)).sum() < nonzeros:
        draws += 1
    return draws


def linear_labels(scores: NDArray[np.float64], noise: float, generator: np.random.Generator) -> NDArray[np.int64]:
    """Labels of a noisy linear model: argmax of the standardised scores plus Gaussian noise of that size."""
    scores = (scores - scores.mean(axis=0)) / scores.std(axis=0)
    noisy = scores + noise * generator.standard_normal(scores.shape)
    labels: NDArray[np.int64] = np.argmax(noisy, axis=1)
    return labels


def zipf(trials: int, features: int, classes: int, nonzeros: int = 60, seed: int = 0) -> Problem:
    """Sparse text-like rows, labels of a noisy linear model."""
    generator = np.random.default_rng(seed)
    rows = sparse_rows(trials, features, nonzeros, generator)
    target = np.zeros((features, classes))
    frequent = np.argsort(-np.bincount(rows.indices, minlength=features))[:RELEVANT]
    target[frequent] = generator.standard_normal((frequent.size, classes))
    labels = linear_labels(rows @ target, 0.1, generator)
    return Problem(f"sparse k={classes}", rows, labels, classes)


def forest(trials: int, seed: int = 0) -> Problem:
    """Dense rows like forest cover: 10 continuous attributes, one of 4 areas, one of 40 soils; 7 classes."""
    generator = np.random.default_rng(seed)
    rows = np.zeros((trials, 54))
    mixing = generator.standard_normal((10, 10))
    continuous = generator.standard_normal((trials, 10)) @ mixing
    low, high = continuous.min(axis=0), continuous.max(axis=0)
    rows[:, :10] = np.round(GRID * (continuous - low) / (high - low)) / GRID
    every = np.arange(trials)
    rows[every, 10 + generator.choice(4, size=trials, p=[0.45, 0.05, 0.44, 0.06])] = 1.0
    soils = 1.0 / np.arange(1, 41)
    rows[every, 14 + generator.choice(40, size=trials, p=soils / soils.sum())] = 1.0
    target = generator.standard_normal((54, 7))
    # the continuous columns vary less than the one-hot ones and would otherwise not matter
    target[:10] *= 4.0
    return Problem("dense k=7", rows, linear_labels(rows @ target, 0.5, generator), 7)


def real_forest(trials: int) -> Problem | None:
    """The first rows of the real forest cover data, scaled to [0, 1]; None when LINMAX_DATA has none."""
    path = Path(os.environ.get("LINMAX_DATA", "")) / "covtype" / "covtype.csv.gz"
    if "LINMAX_DATA" not in os.environ or not path.is_file():
        return None
    with gzip.open(path, "rt") as lines:
        table = np.loadtxt(lines, delimiter=",", skiprows=1, max_rows=trials)
    rows = table[:, :54]
    low, high = rows.min(axis=0), rows.max(axis=0)
    rows = np.round(GRID * (rows - low) / np.maximum(high - low, 1.0)) / GRID
    return Problem("forest cover", np.ascontiguousarray(rows), table[:, 54].astype(np.int64) - 1, 7)


def noise_stream(trials: int, features: int, spread: int, classes: int, seed: int = 0) -> Problem:
    """Sparse rows with random labels, on `features` columns in runs of 64 with gaps between them.

    Random labels keep the rate of mistakes constant for ever. The gaps make the space `spread` times as large
    without touching more of it, and the runs keep together what shares a page of memory: what then changes the
    cost of a trial is the learner, not the address hardware.
    """
    generator = np.random.default_rng(seed)
    rows = sparse_rows(trials, features, 60, generator)
    columns = rows.indices // 64 * (64 * spread) + rows.indices % 64
    width = -(-features // 64) * 64 * spread
    rows = sparse.csr_matrix((rows.data, columns.astype(np.int32), rows.indptr), shape=(trials, width))
    return Problem("noise", rows, generator.integers(0, classes, trials), classes)
