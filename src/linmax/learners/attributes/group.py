"""Groups of members of the pool for attributes: diverse learners, in single precision.

A group is one or more members that read the same attributes and are worked out side by side. It is one file, and one
line of the registry in `pool_members`; the pool fuses, saves, grows, merges and shows whatever groups there are.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import boolean, float32, float64, int64

from linmax.core.contract import Indices, Labels, Matrix, Trials, Vector
from linmax.jit.compiling import kernel
from linmax.learners.base import LearnerState, Mixture, Placement, Spot, spot_of

__all__ = [
    "DENIED",
    "ROWS_PLAYED",
    "Group",
    "Single",
    "SingleCube",
    "SingleMatrix",
    "Task",
    "best_rival",
    "kalman_step",
    "moments_of",
    "renamed",
]


PRIOR = 10.0  # variance of a softmax's weights at first
DENIED = -2  # less a class, in the place of a label: all that is known is that it is not this class

Single = float32[::1]
SingleMatrix = float32[:, ::1]
SingleCube = float32[:, :, ::1]


# Arguments of the kernels over dense attributes, after the struct of their group: rows, attributes met at each, the
# constant, known classes, labels and weights of each, whether to learn, votes, the place of the first member in them.
ROWS_PLAYED = Matrix, Indices, float64, Indices, Labels, Vector, boolean, SingleCube, int64


class Task(NamedTuple):
    """Trials for the members."""

    trials: Trials  # with the attributes that are taken for words
    learn: bool
    rows: np.ndarray  # dense attributes
    met: np.ndarray  # how many dense attributes had been met at each of them


class Group(LearnerState):
    """Members that learn from the same attributes; all of their state is declared in ``fields``.

    Axes are "column" (attributes), "row" (the constant, then the attributes) and "class". No group sees another.
    """

    members: tuple[str, ...] = ()  # the names of its members
    sparse: ClassVar[bool] = False  # which attributes it learns from
    studies: ClassVar[bool] = False  # whether it wants to see the first trials together, before it learns from them
    kernel: ClassVar[Any] = None  # of a group over dense attributes: takes its struct and `ROWS_PLAYED`

    def fit(self, columns: int, width: int) -> None:
        """Make room for this many attributes and classes."""
        self.grow(**{"column": columns, "row": columns + 1, "class": width})

    @property
    def columns(self) -> int:
        """Attributes that there is room for."""
        sizes = [len(getattr(self, name)) for name, field in self.fields.items() if field.axes[0] == "column"]
        return max(sizes, default=0)

    def mark(self) -> int:
        """Return what `rewind` takes back to: attributes that are only predicted from leave nothing behind."""
        return 0

    def rewind(self, mark: int) -> None:
        """Forget attributes that room was made for since."""

    def study(self, rows: np.ndarray, labels: np.ndarray) -> None:
        """Look at the first trials, dense attributes only; the group is as it was made, and learns from them next."""

    def play(self, task: Task, votes: np.ndarray, place: int) -> None:
        """Write scores, made before each trial is learned, into ``votes[:, place + m]`` for member m; and learn."""
        rows = task.rows
        if rows.shape[1] < self.columns:
            rows = np.concatenate([rows, np.zeros((len(rows), self.columns - rows.shape[1]))], axis=1)
        trials = task.trials
        self.kernel(
            self.at_work(task.learn), rows, task.met, trials.constant, trials.known, trials.labels, trials.weights,
            task.learn, votes, place,
        )  # fmt: skip

    def at_work(self, learn: bool) -> Any:
        """Return the struct that kernels take; predictions have their own workspace, as threads may share a state."""
        return self.struct if learn else self.reader()

    def tables(self, k: int) -> dict[str, np.ndarray]:
        """Weights of the members that are linear in the attributes: (the constant and the attributes, classes)."""
        return {}

    def decided(self) -> dict[str, str | int | float]:
        """Decisions about the attributes that a user may want to see."""
        return {}

    def axes(self, part: Placement) -> dict[str, np.ndarray]:
        """Return the places of the attributes and classes of a part among those of all."""
        columns = (part.sparse if self.sparse else part.dense)[: part.state.columns]
        rows = np.concatenate([[0], 1 + columns]).astype(np.int64)
        return {"column": columns, "row": rows, "class": part.classes}

    def placed(self, part: Placement) -> tuple[Spot, np.ndarray]:
        """Return the place of a part in a table (row, class) of all, and its cells, (row, kind, class)."""
        axes, cells = self.axes(part), part.state.cells
        rows, classes = axes["row"][: len(cells)], axes["class"][: cells.shape[2]]
        return spot_of(rows, classes), cells[: rows.size, :, : classes.size].astype(np.float64)

    def columns_of(self, mixture: Mixture) -> int:
        """Attributes of all parts together."""
        return 1 + max(int(self.axes(part)["column"].max(initial=-1)) for part, _ in mixture.counted)

    def mix(self, mixture: Mixture, width: int) -> None:
        """Become the mixture of groups that learned from different trials; this one has learned nothing."""
        columns = self.columns_of(mixture)
        self.merge_fields(mixture, {"column": columns, "row": columns + 1, "class": width}, self.axes)


def moments_of(part: Placement, columns: int) -> np.ndarray:
    """Count, mean, squares and more of each attribute of a part, at their places; what it has not seen was 0."""
    own = part.state.stats
    table = np.zeros((columns, own.shape[1]))
    table[:, 0] = own[0, 0] if len(own) else 0.0
    table[part.dense[: len(own)]] = own[: part.dense.size]
    return table


def renamed(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels, and classes denied, with the places of their classes elsewhere.

    Examples
    --------
    >>> renamed(np.array([0, DENIED - 0, DENIED - 1]), np.array([5, 7])).tolist()
    [5, -7, -9]
    """
    denied = labels <= DENIED
    places = classes[np.where(denied, DENIED - labels, labels)]
    return np.where(denied, DENIED - places, places).astype(np.int32)


@kernel()
def best_rival(scores: np.ndarray, label: int, known: int) -> int:
    """The best of the known classes but the label; -1 without any."""
    rival = -1
    for c in range(known):
        if c != label and (rival < 0 or scores[c] > scores[rival]):
            rival = c
    return rival


@kernel()
def kalman_step(means: np.ndarray, sizes: np.ndarray, label: int, known: int, weight: float, steps: np.ndarray) -> None:
    """Write how far a softmax by the extended Kalman filter moves for each class, and by how much its variances shrink.

    ``means`` are its scores and ``sizes`` the sums of x_f^2 S_fc; variances are in units of `PRIOR`. With
    along = S_fc x_f, weights move by ``steps[0, c]`` along, and variances fall by ``steps[1, c]`` along^2. ``sizes``
    receives what the trial tells of each class, h = weight P (1 - P). Of a class that is denied, the rest are made more
    probable.
    """
    shares, largest, total, wrong = steps[0], -np.inf, 0.0, DENIED - label if label < 0 else -1
    for c in range(known):
        largest = max(largest, means[c])
    for c in range(known):
        shares[c] = math.exp(means[c] - largest)
        total += shares[c]
    rest = total - shares[wrong] if wrong >= 0 else 0.0
    for c in range(shares.size):
        if c >= known:
            steps[0, c] = steps[1, c] = sizes[c] = 0.0
            continue
        share, right = shares[c] / total, 1.0 if c == label else 0.0
        if wrong >= 0:
            right = shares[c] / rest if c != wrong and rest > 0.0 else 0.0
        information = weight * share * (1.0 - share)
        size = 1.0 + PRIOR * information * sizes[c]
        steps[0, c], steps[1, c] = weight * PRIOR * (right - share) / size, PRIOR * information / size
        sizes[c] = information
