"""Learners that are not rules: their description, their state, and how states grow, are saved and merge.

Each learner has a `Description`, which the user writes, and a `Running` learner, which holds the state and does the
work, a chunk of trials at a time. Both stand alone or among the members of `combine` and `stack`.

A state declares its arrays as `Field`s: their axes, the value before anything was learned, and how states that learned
from different trials merge. `LearnerState` grows, saves, loads and merges what is declared. Counts add up, those of a
common base taken once. Weights are mixed with shares mu_i that add up to 1, as those of rules are
(`linmax.rules.mixtures`). Cells that a state does not have count with their start value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

from linmax.core.contract import LARGEST, Trials
from linmax.data.arrays import Layout
from linmax.jit.struct import Struct
from linmax.util.parts import taken

__all__ = [
    "Arrays",
    "Axes",
    "Description",
    "Field",
    "LearnerState",
    "Mixture",
    "Placement",
    "Running",
    "Spot",
    "Table",
    "WeightForm",
    "grown",
    "merged",
    "mix_by_precision",
    "mix_learned",
    "mix_matrices",
    "scales_attributes",
    "silent",
    "spot_of",
    "struct_of",
]


NOWHERE = np.zeros(0, np.int64)


class Placement(NamedTuple):
    """State of one of several models, and the places of its columns and classes among those of all."""

    state: Any
    voters: np.ndarray = NOWHERE
    raters: np.ndarray = NOWHERE
    dense: np.ndarray = NOWHERE
    sparse: np.ndarray = NOWHERE
    classes: np.ndarray = NOWHERE


class Mixture(NamedTuple):
    """States to be mixed, their shares, and the state that all of them continued from, if there is one."""

    parts: Sequence[Placement]
    shares: np.ndarray
    base: Placement | None
    k: int  # classes of all together
    known: int  # of them, those that may be predicted
    restarted: bool = False  # whether parts may have started from scratch since the base
    last: bool = False  # whether these are all that continued from the base, so that the mixture ends a pass

    @property
    def start(self) -> Placement | None:
        """The state that all parts continued from and still hold what it had learned, if there is one."""
        return None if self.restarted else self.base

    def of(self, take: Callable[[Any], Any]) -> Mixture:
        """Return the mixture of a part of each state; a state without it (None) has no counts and no share."""
        found = [(part._replace(state=take(part.state)), share) for part, share in self.shared]
        base = None if self.base is None else self.base._replace(state=take(self.base.state))
        found = [(part, share) for part, share in found if part.state is not None]
        shares = np.array([share for _, share in found])
        if shares.sum() > 0.0:
            shares /= shares.sum()
        elif len(shares):
            shares[:] = 1.0 / len(shares)
        if base is not None and base.state is None:
            base = None
        return self._replace(parts=[part for part, _ in found], shares=shares, base=base)

    def map(self, change: Callable[[Placement], Placement]) -> Mixture:
        """Return the mixture with every part changed, and the base last."""
        parts = [change(part) for part in self.parts]
        return self._replace(parts=parts, base=None if self.base is None else change(self.base))

    @property
    def shared(self) -> Iterator[tuple[Placement, float]]:
        """All, each with its share."""
        return zip(self.parts, self.shares.tolist(), strict=True)

    @property
    def weighed(self) -> list[tuple[Placement, float]]:
        """(part, share) pairs with positive shares."""
        return [(part, share) for part, share in self.shared if share > 0.0]

    @property
    def counted(self) -> list[tuple[Placement, int]]:
        """All, each with the sign and multiple with which its counts are added up."""
        more = [] if self.base is None else [(self.base, 1 - len(self.parts))]
        return [*((part, 1) for part in self.parts), *more]

    @property
    def alone(self) -> Any:
        """The state of the only one that has a share, or None."""
        weighed = self.weighed
        return weighed[0][0].state if len(weighed) == 1 else None


Spot = tuple[Any, ...]  # where a part's table is in the common one


def spot_of(rows: np.ndarray, columns: np.ndarray) -> Spot:
    """Return an index of rows and columns of a table: slices where they are its first ones, which is much faster."""
    across = slice(columns.size) if _first_ones(columns) else columns
    if _first_ones(rows):
        return slice(rows.size), across
    return (rows, across) if isinstance(across, slice) else np.ix_(rows, columns)


def _first_ones(places: np.ndarray) -> bool:
    return bool((places == np.arange(places.size)).all())


Axes = Mapping[str, np.ndarray]  # by the name of an axis, where the cells of a part are among those of all


@dataclass(frozen=True)
class Field:
    """Declaration of one array of a state.

    Parameters
    ----------
    axes : names of axes, whose sizes grow, or fixed sizes
    start : value of a cell before anything was learned; broadcast over the axes
    merge : "sum": what the parts counted adds up, and never falls below 0; "signed": the same, and it may be negative;
        "max": the largest; "mean": by the shares; "": the state merges it itself
    dtype : of the array
    saved : whether it is part of the state; otherwise it is workspace of the kernels
    """

    axes: tuple[str | int, ...] = (1,)
    start: Any = 0.0
    merge: str = "sum"
    dtype: Any = np.float64
    saved: bool = True

    def shape(self, sizes: Mapping[Any, int]) -> tuple[int, ...]:
        """Shape of the array for these sizes of the axes; those not given have size 0."""
        return tuple(axis if isinstance(axis, int) else sizes.get(axis, 0) for axis in self.axes)

    def filled(self, sizes: Mapping[Any, int]) -> np.ndarray:
        """The array before anything was learned."""
        return np.full(self.shape(sizes), self.start, self.dtype)

    def placed(self, array: np.ndarray, axes: Axes) -> tuple[Spot, np.ndarray]:
        """Return the places of an array's cells among those of all, and these cells; axes not given begin at 0."""
        places = [axes.get(axis) if isinstance(axis, str) else None for axis in self.axes]
        found = [np.arange(n) if own is None else own[:n] for own, n in zip(places, array.shape, strict=True)]
        cells = array[tuple(slice(own.size) for own in found)]
        if all(_first_ones(own) for own in found):
            return tuple(slice(own.size) for own in found), cells
        return np.ix_(*found), cells


def grown(
    fields: Mapping[str, Field], state: Any, sizes: Mapping[str, int], axes: Axes | None = None
) -> dict[str, np.ndarray]:
    """Arrays of a state, or of none, over larger axes: its cells at their places, start values elsewhere.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> state = SimpleNamespace(votes=np.array([3.0, 4.0]))
    >>> grown({"votes": Field(("voter",))}, state, {"voter": 3}, {"voter": np.array([2, 0])})["votes"].tolist()
    [4.0, 0.0, 3.0]
    """
    found = {}
    for name, field in fields.items():
        found[name] = new = field.filled(sizes)
        if state is None or not field.saved or not new.size:
            continue
        spot, cells = field.placed(getattr(state, name), axes or {})
        new[spot] = cells
    return found


def merged(
    fields: Mapping[str, Field], mixture: Mixture, sizes: Mapping[str, int], axes_of: Callable[[Placement], Axes]
) -> dict[str, np.ndarray]:
    """Merged arrays of those fields that say how (see `Field`)."""
    found = {}
    for name, field in fields.items():
        if not (field.merge and field.saved):
            continue
        new = np.full(field.shape(sizes), 0.0 if field.merge == "mean" else field.start, np.float64)
        for part, times in mixture.weighed if field.merge == "mean" else mixture.counted:
            spot, cells = field.placed(getattr(part.state, name), axes_of(part))
            if field.merge == "max":
                new[spot] = np.maximum(new[spot], cells)
            elif field.merge == "mean" or not np.any(field.start):
                new[spot] += times * cells.astype(np.float64)
            else:
                new[spot] += times * (cells - np.full(cells.shape, field.start))
        if field.merge == "sum":
            np.maximum(new, 0.0, out=new)
        found[name] = new.astype(field.dtype)
    return found


class Arrays(Struct):
    """All arrays of a state, by name, as kernels take them."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> np.ndarray: ...


def struct_of(fields: Mapping[str, Field]) -> type[Arrays]:
    """Return the struct by which kernels take arrays with these declarations; ``numba_type`` is its type."""
    return _struct_of(tuple((name, np.dtype(field.dtype).name, len(field.axes)) for name, field in fields.items()))


@cache
def _struct_of(arrays: tuple[tuple[str, str, int], ...]) -> type[Arrays]:
    kinds = {name: types.Array(from_dtype(np.dtype(dtype)), axes, "C") for name, dtype, axes in arrays}
    members = kinds | {"__annotations__": dict.fromkeys(kinds, np.ndarray)}
    return type("Arrays", (Arrays,), members)


class _Array:
    """An array of a state: an attribute, and in the struct by which kernels take the state."""

    def __init__(self, name: str, dtype: Any) -> None:
        self.name, self.dtype = name, dtype

    def __set__(self, state: Any, array: np.ndarray) -> None:
        vars(state)[self.name] = array = np.ascontiguousarray(array, self.dtype)
        setattr(state.struct, self.name, array)


class LearnerState:
    """Arrays declared by ``fields``, which are attributes: grown, saved, loaded and merged by what is declared.

    Kernels take all of them as one argument, ``struct`` (see `struct_of`). At first axes that grow have size 0.
    """

    fields: ClassVar[Mapping[str, Field]] = {}
    struct: Arrays

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> np.ndarray: ...

        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, field in cls.fields.items():
            setattr(cls, name, _Array(name, field.dtype))

    def __new__(cls, *_: Any, **__: Any) -> Self:
        state = super().__new__(cls)
        vars(state)["struct"] = struct_of(cls.fields)()
        for name, field in cls.fields.items():
            setattr(state, name, field.filled({}))
        return state

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "struct"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def take_out(self, name: str) -> np.ndarray:
        """Remove and return an array, to which nothing else refers then; it is to be set again."""
        setattr(self.struct, name, self.fields[name].filled({}))
        return vars(self).pop(name)

    def reader(self, **arrays: np.ndarray) -> Arrays:
        """Return a struct for predictions: with these arrays and, so that threads do not meet, its own workspace."""
        found = {name: getattr(self, name) for name in self.fields}
        own = {name: a if self.fields[name].saved else np.zeros_like(a) for name, a in found.items()}
        return struct_of(self.fields)(**own | arrays)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All the state, by name."""
        return {name: getattr(self, name) for name, field in self.fields.items() if field.saved}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over a state; what it has no array for is as at first."""
        sizes: dict[str | int, int] = {}
        for name, field in self.fields.items():
            if field.saved:
                array = taken(arrays, name)
                setattr(self, name, array)
                sizes |= dict(zip(field.axes, array.shape, strict=True))
        for name, field in self.fields.items():
            if not field.saved:
                setattr(self, name, field.filled(sizes))

    def grow(self, **sizes: int) -> None:
        """Enlarge axes to at least these sizes; arrays that fit stay as they are."""
        for name, field in self.fields.items():
            old = getattr(self, name)
            larger = tuple(max(n, have) for n, have in zip(field.shape(sizes), old.shape, strict=True))
            if larger != old.shape:
                new = np.full(larger, field.start, field.dtype)
                if field.saved:
                    new[tuple(slice(n) for n in old.shape)] = old
                setattr(self, name, new)

    def merge_fields(self, mixture: Mixture, sizes: Mapping[str, int], axes_of: Callable[[Placement], Axes]) -> None:
        """Set the fields that say how to the merged ones of a mixture."""
        for name, array in merged(self.fields, mixture, sizes, axes_of).items():
            setattr(self, name, array)


def mix_by_precision(
    shape: tuple[int, ...], parts: Sequence[tuple[Spot, np.ndarray, np.ndarray, float]]
) -> tuple[np.ndarray, np.ndarray]:
    """Weights and variances of (spot, weights, variances, share): P = sum mu_i / S_i, w = sum mu_i w_i / S_i / P.

    The first weight is 0 and the first variance 1.
    """
    precision, pull = np.zeros(shape), np.zeros(shape)
    for spot, weights, variances, share in parts:
        own = 1.0 / variances.astype(np.float64)
        precision += share
        precision[spot] += share * (own - 1.0)
        pull[spot] += share * own * weights
    pull /= precision
    return pull, 1.0 / precision


Table = tuple[Spot, np.ndarray, np.ndarray]  # where it is in the common one, weights, variances


def mix_learned(
    shape: tuple[int, ...], parts: Sequence[tuple[Table, float]], start: Table | None, last: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Weights and variances from what each part, given with its share, learned since the start.

    With P_0 the precisions of the start (at first 1) and J_i = 1 / S_i - P_0: P = P_0 + sum mu_i J_i and
    w = sum mu_i J_i w_i / sum mu_i J_i, so that only those who learned something about a weight have a say in it. Where
    nobody's precision grew, w moves by the shares. Rows of a part that became one count together.

    The mean of steps that were taken side by side is shorter than the way that one stream would have gone. So at the
    ``last`` mixture of a pass the step from the start is taken 2 - sum a_i^2 times, a_i = mu_i J_i over their sum: once
    where one part learned all, 1.5 times where two learned as much. This is over-relaxation, which converges below 2.
    """
    before, precision = np.zeros(shape), np.ones(shape)
    if start is not None:
        spot, weights, variances = start
        before[spot], precision[spot] = weights, 1.0 / variances.astype(np.float64)
    learned, pull, moved, squares = (np.zeros(shape) for _ in range(4))
    for (spot, weights, variances), share in parts:
        gained = share * np.maximum(1.0 / variances.astype(np.float64) - precision[spot], 0.0)
        np.add.at(learned, spot, gained)
        np.add.at(squares, spot, gained**2)
        np.add.at(pull, spot, gained * weights)
        moved[spot] += share * (weights - before[spot])
    mixed = np.divide(pull, learned, out=before + moved, where=learned > 0.0)
    if last and start is not None:
        together = np.divide(squares, learned**2, out=np.ones(shape), where=learned > 0.0)
        mixed += (1.0 - together) * (mixed - before)
    return mixed, 1.0 / (precision + learned)


def mix_matrices(
    weights: Sequence[np.ndarray], matrices: Sequence[np.ndarray], shares: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Mix weights and full matrices by precision."""
    if len(shares) == 1:
        return weights[0].copy(), matrices[0].copy()
    precisions = [share * np.linalg.inv(matrix) for share, matrix in zip(shares, matrices, strict=True)]
    variances = np.linalg.inv(sum(precisions[1:], precisions[0]))
    pulls = [precision @ own for precision, own in zip(precisions, weights, strict=True)]
    mixed = 0.5 * (variances + variances.T)
    return mixed @ sum(pulls[1:], pulls[0]), mixed


@dataclass(frozen=True)
class Description:
    """Description of a learner; its fields are its parameters: numbers, or text that may be empty."""

    name: ClassVar[str]
    from_zero: ClassVar[bool] = True  # whether a sub-expert that is new changes no score
    makes_room: ClassVar[tuple[bool, bool]] = (False, False)  # whether `Running.judge` takes instances with new
    # attributes; whether also with new voters or raters
    scales_attributes: ClassVar[bool] = False  # whether its members scale attributes themselves
    unmixable: ClassVar[str] = "no mixture of its states is known"  # why `Running.mix` cannot be; "" if it can
    linear: ClassVar[bool] = True  # whether its scores are those of its hypothesis, where it has one
    learns_attributes: ClassVar[bool] = True  # whether there is anything in attributes for it

    def __str__(self) -> str:
        values = [getattr(self, field.name) for field in fields(self)]
        shown = [value if isinstance(value, str) else repr(float(value)).removesuffix(".0") for value in values]
        return f"{self.name}({', '.join(shown)})" if any(shown) else self.name

    def start(self, size: int) -> Running:
        """One that has seen nothing, over ``size`` coordinates."""
        raise NotImplementedError


def scales_attributes(learner: Any) -> bool:
    """Return whether a description is that of a learner whose members scale attributes themselves."""
    return isinstance(learner, Description) and learner.scales_attributes


class WeightForm(NamedTuple):
    """Weights to look at, where a learner has no single weight vector."""

    experts: np.ndarray  # of voters, then raters; those left out at the end are 0
    rows: np.ndarray  # (the constant and the attributes, classes)


class Running(LearnerState):
    """A learner at work. ``shape`` is that of `linmax.core.contract.State`, k the number of classes, known or not."""

    takes_gaps = False  # whether `play` takes trials without a label, below 0
    gives_logarithms = False  # whether its scores are used as logarithms of probabilities
    open = False  # whether every trial has its own candidates, so that nothing is to be learned about single classes
    gives_probabilities = False  # whether these are its probabilities, without calibration

    @property
    def pools(self) -> dict[str, Any]:
        """The pools that it consists of, "attributes" and "votes"."""
        return {}

    def meet(self, layout: Layout) -> None:
        """Prepare for instances of this layout; later ones have at least its columns."""

    def stage(self, layout: Layout, k: int, size: int) -> Hashable:
        """Return how it computes for a layout and k classes, over ``size`` coordinates, where that depends on voters.

        A voter that never votes changes nothing as long as this stays the same.
        """
        return None

    def play(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Predict and learn trials: the classes predicted, and the scores of all classes."""
        raise NotImplementedError

    def judge(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores without learning."""
        raise NotImplementedError

    def watch(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Predict instances without labels, and learn what can be learned without them."""
        return self.judge(shape, trials, k)

    def hypothesis(self) -> np.ndarray:
        """Weights over the coordinates, where it predicts with one vector of them; those left out at the end are 0."""
        raise ValueError("this learner is not a single weight vector")

    def linear_form(self, layout: Layout, k: int) -> WeightForm | None:
        """Return weights to look at; None: those of `hypothesis`."""
        return None

    def mix(self, mixture: Mixture) -> None:
        """Become the mixture of other states; this one has seen nothing (see `Description.unmixable`)."""
        raise NotImplementedError

    def move(self, moved: Callable[[np.ndarray], np.ndarray]) -> None:
        """The coordinates have new places: ``moved`` puts the last axis of an array in order."""


def silent(shape: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Predictions where nothing votes, ``known`` classes at each trial."""
    return np.where((shape[LARGEST] != 0) | (known == 0), known - 1, 0).astype(np.int32)
