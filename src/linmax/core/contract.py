"""The compiled contract: what a rule is, and what a learner's state is.

A rule is one function on the support of ``z`` (the instance times its label, or the difference of two classes):

``step(weights, memory, scalars, index, z, margin, params) -> bool``

It may change ``weights`` and ``memory`` at the coordinates ``index`` only, ``scalars`` as it likes, and returns
whether it changed anything. Python objects describe; arrays carry the state; kernels call rules by address, so a
user's rule runs in the same compiled loop, at the same speed, as a built-in one.

A trial that counts ``scalars[WEIGHT]`` times scales the step: ``z`` is multiplied by it and the margin is not, which
scales the rate of rules that add and the exponent of rules that multiply. A rule that ``weighs`` gets z as it is and
reads the scalar.

Weights are known up to a positive factor: the true weight of coordinate i is
``weights[i] * exp(scalars[SHIFT] + scalars[GAUGE])``. Rules that multiply would otherwise overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numba import boolean, float32, float64, int8, int32, int64, typeof, types, uint8
from numba.extending import intrinsic

from linmax.jit.compiling import JIT, calling, kernel
from linmax.jit.struct import Struct
from linmax.jit.vectors import I64

if TYPE_CHECKING:
    from linmax.theory.bounding import Bound
    from linmax.theory.rows import Rows

__all__ = [
    "GAUGE",
    "HUGE",
    "MASS",
    "NO_LABEL",
    "OWN",
    "PEAK",
    "REACH",
    "SHIFT",
    "SPREAD",
    "STEP",
    "TOP",
    "UNTOUCHED",
    "WEIGHT",
    "Part",
    "Played",
    "Rule",
    "RunningTrials",
    "State",
    "Trials",
    "TrialsT",
]

# The scalars every member has; a rule's own follow.
SHIFT = 0  # true weight = stored weight * exp(SHIFT + GAUGE); the loop raises SHIFT to keep stored weights small
GAUGE = 1  # the rule's own common factor (its logarithm), such as a norm
REACH = 2  # promise: no update while margin > REACH, so z need not be built
MASS = 3  # a sum over all coordinates that the rule keeps, at the stored scale
PEAK = 4  # largest MASS since it was last summed from scratch
TOP = 5  # largest magnitude that the last update wrote, or nan: the rule does not say and the loop looks
WEIGHT = 6  # how much the trial at hand counts; 1 but for trials with weights
OWN = 7

UNTOUCHED = 1e-300  # memory of a coordinate that took part in no update; adding a step to it gives the step
HUGE = 1e100  # a stored weight beyond this is rescaled (or refused, when its rule has no log form)

Vector = float64[::1]
Matrix = float64[:, ::1]
Cube = float64[:, :, ::1]
Indices = int64[::1]
Bytes = uint8[::1]
Labels = int32[::1]
LabelTable = int32[:, ::1]
Pair = types.UniTuple(float64, 2)

STEP = boolean(Vector, Matrix, Vector, Indices, Vector, float64, Vector)
SPREAD = Pair(Matrix, Vector, int64, Vector)
LINK = float64(float64)
GAIN = Pair(float64, float64, float64, Vector)


# -- calling by address -------------------------------------------------------------------------------------------

call_step, call_spread, link_at, gain_at = calling(STEP), calling(SPREAD), calling(LINK), calling(GAIN)

if JIT:

    @intrinsic
    def address_in(_, number):  # type: ignore[no-untyped-def]
        """Return the address that `as_number` has stored in a float."""
        return int64(float64), lambda _context, builder, _signature, args: builder.bitcast(args[0], I64)

else:

    def address_in(number: float) -> int:
        return int(np.float64(number).view(np.int64))


@kernel()
def call_link(number: float, value: float) -> float:
    """Call the link function whose address is among a rule's parameters (see `as_number`)."""
    return link_at(address_in(number), value)


@kernel()
def call_gain(number: float, margin: float, variance: float, weight: float, params: np.ndarray) -> tuple[float, float]:
    """Call the gain of a second-order rule, whose address is among its parameters."""
    return gain_at(address_in(number), margin, variance, weight, params)


def as_number(address: int) -> float:
    """An address as a float with the same bits, so that it travels among a rule's parameters."""
    return float(np.int64(address).view(np.float64))


# -- descriptions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rule:
    """A linear-threshold rule: its name, its parameters and its compiled step. It holds no state.

    Attributes
    ----------
    name, parameters
        What the user wrote; ``str(rule)`` prints them and `linmax.parse` reads them back.
    step
        The compiled function of the module's docstring.
    values
        ``params`` as the step receives them.
    start
        Weight of a coordinate never seen, w_inf (Mesterharm 2001, section 6.1).
    first
        Weights of the first coordinates before the first trial, where these differ; in the order of the flat weights.
    remember
        Where ``memory`` follows from the weights: ``remember(rule, weights) -> (first row of memory, parts of MASS)``.
    slots
        First value of each per-coordinate array of ``memory``.
    scalars
        First values of the rule's own scalars, ``scalars[OWN:]``.
    reach
        The step does nothing while ``margin > reach``; infinity when it must see every trial.
    thickness
        Of a separator relative to the sum MASS; its step is called on every trial before the first update.
    marks
        Whether memory[0] of coordinates that took part in no update is UNTOUCHED; norms and MASS leave these out, so
        that sub-experts that never vote change nothing.
    spread
        For rules whose weights may outgrow a float: ``spread(memory, scalars, i, params) -> (factor, log)`` with
        weight ``factor * exp(log)`` (before GAUGE); lets the loop rescale without losing anything.
    everywhere
        Every update may change every weight; the step then gets all coordinates, z = 0 included.
    gain
        Second-order rules: params[0] is the address of the function that gives the length of a step, and memory[0] is
        the variances (see `linmax.rules.second_order`).
    weighs
        The step reads ``scalars[WEIGHT]`` itself; else its z is multiplied by it.
    only_sign
        The step asks whether the margin is above REACH, and nothing else of it; then none need be exact.
    rivals
        Which z a trial presents (see `linmax.core.rivals`).
    bounded
        The rule needs every |z_i| <= 1.
    nonnegative
        The rule needs attributes >= 0 (threshold forms).
    threshold
        Fixed threshold of a two-class form; such a rule does not lift.
    mix
        How its states are mixed when models are merged: ``mix(rule, parts, shares, plain, target)`` writes the mixture
        of the parts, with shares that add up to 1, over ``target``, a state before the first trial. ``plain`` asks a
        rule that multiplies to mix weights, not their logarithms. Or the reason why there is no mixture.
    bound
        The mistake bound that it obeys: ``bound(rule, rows)`` states it on these z (see `linmax.theory.bounding`). Or
        the reason why none can be stated.
    """

    name: str
    parameters: Mapping[str, Any]
    step: Any
    values: tuple[float, ...] = ()
    start: float = 0.0
    first: tuple[float, ...] = ()
    remember: Callable[[Rule, np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
    slots: tuple[float, ...] = ()
    scalars: tuple[float, ...] = ()
    reach: float = 0.0
    thickness: float = 0.0
    marks: bool = False
    spread: Any = None
    everywhere: bool = False
    gain: bool = False
    weighs: bool = False
    only_sign: bool = False
    rivals: str = "best"
    bounded: bool = False
    nonnegative: bool = False
    threshold: float | None = None
    mix: Mixture | str = "no mixture of its states is known"
    bound: BoundOf | str = "none is known that depends on a comparator, its margin and its noise alone"
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lifts(self) -> bool:
        """True if the linear-max transformation applies (no fixed threshold)."""
        return self.threshold is None

    def __str__(self) -> str:
        shown: list[str] = []
        for key, value in self.parameters.items():
            if key in self.defaults and value == self.defaults[key]:
                continue
            text = repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
            shown.append(f"{key}={text}" if key in self.defaults else text)
        if self.rivals != "best":
            shown.append(f"rivals={self.rivals}")
        name = self.name.replace("_", "-")
        return f"{name}({', '.join(shown)})" if shown else name

    def __repr__(self) -> str:
        return f"<rule {self}>"

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Rule)
            and self.step is other.step
            and self.values == other.values
            and str(self) == str(other)
        )

    def __hash__(self) -> int:
        return hash((str(self), self.values))

    def first_scalars(self) -> list[float]:
        """Return the scalars of a member that has seen nothing."""
        return [0.0, 0.0, math.inf if self.thickness else self.reach, 0.0, 0.0, math.nan, 1.0, *self.scalars]

    def place_first(self, weights: np.ndarray, memory: np.ndarray, scalars: np.ndarray, places: np.ndarray) -> None:
        """Write the weights `first`, before the first trial, to the coordinates at ``places``, as many as there are."""
        count = len(self.first)
        if count > len(places):
            raise ValueError(
                f"start has {count} weights, but there are {len(places)} coordinates before the first trial (voters "
                "and raters, then thresholds and attributes by class); pass at most as many"
            )
        weights[places[:count]] = self.first
        if self.remember is None or not count:
            return
        memory[0, places[:count]], masses = self.remember(self, weights[places[:count]])
        scalars[MASS] = scalars[PEAK] = float(masses.sum())
        if self.thickness:
            scalars[REACH] = self.thickness * scalars[MASS]

    def fill(self, memory: np.ndarray, places: np.ndarray) -> None:
        """Write into a member's memory what coordinates that have seen nothing remember."""
        memory[: len(self.slots), places] = np.reshape(self.slots, (-1, 1))


class Part(NamedTuple):
    """One member's state over the coordinates that exist, as `Rule.mix` sees it."""

    weights: np.ndarray  # (N,)
    memory: np.ndarray  # (slots, N)
    scalars: np.ndarray


Mixture: TypeAlias = Callable[[Rule, Sequence[Part], np.ndarray, bool, Part], None]
BoundOf: TypeAlias = "Callable[[Rule, Rows], Bound]"


# -- state --------------------------------------------------------------------------------------------------------


class Trials(NamedTuple):
    """T trials: instances in blocks, of which an absent one has no columns, and three columns with them.

    Coordinates: voters, then score sub-experts, then attribute f (0 = the constant) of class c at
    ``experts + f * stride + c``. Dense attributes come before sparse ones.
    """

    votes: np.ndarray  # int32 (T, voters), class index, -1 = abstains
    signs: np.ndarray  # (voters,) +1, or -1 for a negated copy
    scores: np.ndarray  # (T, raters, k)
    dense: np.ndarray  # (T, dense attributes)
    indptr: np.ndarray  # int64 (T + 1,), or () without sparse attributes
    indices: np.ndarray  # int32
    values: np.ndarray
    constant: float  # value of attribute 0; 0 = no thresholds
    known: np.ndarray  # int64 (T,): the first known[t] classes may be predicted in trial t
    labels: np.ndarray  # int32 (T,): a class; NO_LABEL; or -2 - c, which says only that it is not class c
    weights: np.ndarray  # (T,): how much a trial counts; 0 predicts only

    @property
    def size(self) -> int:
        """Number of trials."""
        return len(self.labels)


NO_LABEL = -1
RAW, MAX, L1 = 1, 2, 3
BEST, VIOLATED, ALL = 0, 1, 2


class State(NamedTuple):
    """All that the members remember, with the member first. Absent coordinates have weight 0 and memory nan."""

    weights: np.ndarray  # (B, N)
    memory: np.ndarray  # (B, most slots, N)
    scalars: np.ndarray  # (B, most scalars)
    backlog: np.ndarray  # (B, N), or (B, 0) when no member averages: see `linmax.core.averages`
    means: np.ndarray  # (B, 12): the same
    counts: np.ndarray  # int64 (B, 5): trials, updates, of these recycled; look-ups left, where the next begins
    shape: np.ndarray  # int64 (5,): experts, stride, known classes, largest wins ties, update on ties


EXPERTS, STRIDE, KNOWN, LARGEST, ON_TIES = range(5)
TRIALS, UPDATES, RECYCLED, LEFT, NEXT = range(5)


class RunningTrials(Struct):
    """`Trials` at work, and a panel of them, which may be empty (see `linmax.core.search`)."""

    votes: np.ndarray = int32[:, ::1]  # as in `Trials`
    signs: np.ndarray = Vector
    scores: np.ndarray = Cube
    dense: np.ndarray = Matrix
    indptr: np.ndarray = Indices
    indices: np.ndarray = int32[::1]
    values: np.ndarray = Vector
    constant: float = float64
    known: np.ndarray = Indices
    labels: np.ndarray = Labels
    weights: np.ndarray = Vector
    weighted: int = int64  # whether some weight is not 1: most are, and looking at each costs a miss of the cache
    shape: np.ndarray = Indices  # that of the state
    coordinates: int = int64  # the length of a vector of weights
    classes: int = int64  # rows of each instance in the panel
    codes: np.ndarray = int8[::1]  # [block, row, group, lane]: a bit for each of four coordinates that rate the row 1
    ratings: np.ndarray = float32[::1]  # [block, row, coordinate, lane], where not all ratings are 0 or 1
    largest: float = float64  # largest magnitude of a rating in the panel


class Played(Struct):
    """Predictions and changes at each trial: a row for each output of the members and of the nodes above them."""

    predictions: np.ndarray = LabelTable
    changed: np.ndarray = uint8[:, ::1]  # whether its hypothesis is new after the trial
    before: np.ndarray = LabelTable  # the output that it followed, before and after the trial
    after: np.ndarray = LabelTable
    scored: int = int64  # the first trial whose scores are wanted
    tables: np.ndarray = Cube  # scores from that trial on; or (rows, 0, 0)
    margins: np.ndarray = Vector  # of the first member; or none


TrialsT = typeof(
    Trials(
        np.zeros((1, 1), np.int32), np.zeros(1), np.zeros((1, 1, 1)), np.zeros((1, 1)), np.zeros(1, np.int64),
        np.zeros(1, np.int32), np.zeros(1), 0.0, np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1),
    )
)  # fmt: skip
