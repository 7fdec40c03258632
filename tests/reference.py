"""The rules and the linear-max transformation, slow and obvious: what the compiled library must agree with.

Everything here is plain Python with dense numpy vectors, one trial at a time, and follows the papers'
formulas as literally as floating point allows. Sums are correctly rounded (`math.fsum`), so that ties which
hold between the stored weights are seen as ties whatever the order of the coordinates.

Conventions
-----------
z-form
    A rule only ever sees z = y x (two classes) or z = x^label - x^rival (many). `update(z)` is called on
    *every* trial and decides for itself whether the weights change; it returns True when it counted an
    update. Every mistake-driven rule updates when w.z <= 0, ties included. An update with z = 0 is an update
    that changes nothing (ALMA alone skips z = 0).
Weights
    `rule.w` holds the weights on all n coordinates, `rule.log_scale` their scale: the true weights are `w *
    exp(log_scale)`. The scale is 0 until the largest true weight leaves [e^-600, e^600]; from then on `w` is
    divided by its largest magnitude.
Growth
    `rule.grow(n)` appends coordinates at `rule.default_weight`: exactly the weight they would have had if
    they had been there, with value 0, from the first trial. Thick rules compare with a sum over all allocated
    coordinates.
Doubt
    `doubt.smallest` is the least relative gap of any decision so far (an arg max, an update test) which
    another order of summation might have decided otherwise. A test that compares trial by trial does
    `doubt.reset()` first and stops comparing once `doubt.smallest` is at rounding level (say 1e-11): from
    there on two correct programs may part.

References
----------
Mesterharm (2001), Transforming linear-threshold learning algorithms into multi-class linear
learning algorithms, Rutgers TR dcs-tr-460. Mesterharm and Hsu, Combinatorial fusion with on-line learning
algorithms. Littlestone (1988), Learning quickly when irrelevant attributes abound. Grove, Littlestone and
Schuurmans (2001), General convergence results for linear discriminant updates. Gentile (2001), A new
approximate maximal margin classification algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

LOG_LIMIT = 600.0
"""Weights are exposed unscaled while the logarithm of the largest lies within this limit."""


# --- sums, ties and doubt -----------------------------------------------------------------------------------


def total(terms: npt.ArrayLike) -> float:
    """The correctly rounded sum."""
    return math.fsum(np.asarray(terms, dtype=float).tolist())


class Doubt:
    """The closest call so far: the least |sum| / sum of |terms| of a decision that rounding could turn.

    Decisions whose arithmetic is exact in any order are not counted: all terms multiples of 2^-20 below 2^30,
    or all of the same magnitude, unless they are products that were rounded: compiled code may add a product before
    it is rounded (fused multiply-add), which leaves a crumb of w x - w x.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self, products: bool = False) -> None:
        """Begin anew; whether terms are products of weights with other numbers than 0 and +-1."""
        self.smallest, self.products = math.inf, products

    def note(self, terms: npt.ArrayLike) -> None:
        values = np.asarray(terms, dtype=float)
        size = total(np.abs(values))
        share = abs(total(values)) / size if size else math.inf
        if share < self.smallest and not _sums_exactly(np.abs(values[values != 0.0]), self.products):
            self.smallest = share


def _sums_exactly(magnitudes: Vector, products: bool = False) -> bool:
    if not products and bool(np.all(magnitudes == magnitudes[0])):
        return True
    fine = magnitudes * 2.0**20
    return bool(np.all(fine == np.rint(fine)) and magnitudes.max() < 2.0**30)


doubt = Doubt()


def at_most_zero(terms: npt.ArrayLike) -> bool:
    """Whether the terms sum to at most 0; a close call is noted in `doubt`."""
    doubt.note(terms)
    return total(terms) <= 0.0


def exp_scaled(logs: Vector) -> tuple[Vector, float]:
    """exp(logs - shift) and the shift: 0, or the largest logarithm when that is beyond `LOG_LIMIT`."""
    largest = float(logs.max()) if logs.size else 0.0
    shift = largest if abs(largest) > LOG_LIMIT else 0.0
    return np.exp(logs - shift), shift


def p_norm_of(vector: Vector, p: float) -> float:
    """||v||_p, computed relative to the largest entry."""
    largest = float(np.abs(vector).max()) if vector.size else 0.0
    if largest == 0.0:
        return 0.0
    return largest * math.pow(total((np.abs(vector) / largest) ** p), 1.0 / p)


def p_norm_dual(vector: Vector, p: float) -> Vector:
    """f^-1(v)_i = sign(v_i) |v_i|^(p-1) / N^(p-2), written as sign(v_i) (|v_i|/N)^(p-1) N; N = ||v||_p."""
    norm = p_norm_of(vector, p)
    if norm == 0.0:
        return np.zeros_like(vector)
    return np.asarray(np.sign(vector) * (np.abs(vector) / norm) ** (p - 1.0) * norm)


# --- rules that lift ----------------------------------------------------------------------------------------


class Rule:
    """What every rule in z-form offers: `w`, `log_scale`, `default_weight`, `update(z)`, `grow(n)`."""

    n: int
    default_weight: float = 0.0
    weight: float = 1.0  # how much the trial at hand counts
    touched: Any = None  # which coordinates took part in an update, where the others' weights are not 0

    @property
    def log_scale(self) -> float:
        return 0.0

    @property
    def w(self) -> Vector:
        raise NotImplementedError

    def update(self, z: Vector) -> bool:
        raise NotImplementedError

    def grow(self, n: int) -> None:
        raise NotImplementedError


def _lengthened(vector: Vector, n: int, value: float) -> Vector:
    return np.concatenate([vector, np.full(n - len(vector), value)])


class Perceptron(Rule):
    """w = 0; if w.z <= margin: w += rate z."""

    def __init__(self, n: int, rate: float = 1.0, margin: float = 0.0) -> None:
        self.n, self.rate, self.margin = n, rate, margin
        self._w = np.zeros(n)

    @property
    def w(self) -> Vector:
        return self._w

    def update(self, z: Vector) -> bool:
        if not at_most_zero(np.append(self._w * z, -self.margin)):
            return False
        self._w = self._w + self.rate * (self.weight * z)
        return True

    def grow(self, n: int) -> None:
        self._w, self.n = _lengthened(self._w, n, 0.0), n


class Multiplicative(Rule):
    """Zero-threshold Winnow = WMA / Committee: if w.z <= thickness sum(w): w_i *= alpha^z_i.

    The sum is over the coordinates that updates have touched, before the first over those of z.

    Kept as s_i = sum of z_i over updates, plus ln(start)/ln(alpha); w_i = exp(s_i ln alpha). `start` is one
    number for all coordinates, so that a coordinate which appears later starts like all others.
    """

    def __init__(self, n: int, alpha: float, start: float = 1.0, thickness: float = 0.0) -> None:
        self.n, self.thickness = n, thickness
        self.rate = math.log(alpha)
        self.start_exponent = math.log(start) / self.rate
        self.default_weight = start
        self.s = np.full(n, self.start_exponent)
        self.touched = np.zeros(n, bool)

    @property
    def w(self) -> Vector:
        return exp_scaled(self.rate * self.s)[0]

    @property
    def log_scale(self) -> float:
        return exp_scaled(self.rate * self.s)[1]

    def update(self, z: Vector) -> bool:
        w = self.w
        counted = self.touched if self.touched.any() else z != 0.0
        if not at_most_zero(np.concatenate([w * z, -self.thickness * w[counted]])):
            return False
        self.s = self.s + self.weight * z
        self.touched |= z != 0.0
        return True

    def grow(self, n: int) -> None:
        self.s, self.n = _lengthened(self.s, n, self.start_exponent), n
        self.touched = np.append(self.touched, np.zeros(n - len(self.touched), bool))


class Balanced(Rule):
    """Balanced Winnow: w = w+ - w-, both from 1.

    if w.z <= thickness sum(w+ + w-), over the coordinates that updates have touched:  w+_i *= alpha^z_i,  w-_i *= alpha^-z_i

    w+_i w-_i = 1 always, so one exponent s_i is kept: w_i = 2 sinh(s_i ln alpha), w+_i + w-_i = 2 cosh(s_i ln
    alpha).
    """

    def __init__(self, n: int, alpha: float, thickness: float = 0.0) -> None:
        self.n, self.thickness = n, thickness
        self.rate = math.log(alpha)
        self.s, self.moved = np.zeros(n), np.zeros(n, bool)

    @property
    def log_scale(self) -> float:
        return exp_scaled(self.rate * np.abs(self.s))[1]

    @property
    def w(self) -> Vector:
        if self.log_scale == 0.0:
            return np.asarray(2.0 * np.sinh(self.rate * self.s))
        plus, minus = self._both()
        return plus - minus

    def _both(self) -> tuple[Vector, Vector]:
        shift = self.log_scale
        return np.exp(self.rate * self.s - shift), np.exp(-self.rate * self.s - shift)

    def update(self, z: Vector) -> bool:
        plus, minus = self._both()
        counted = self.moved if self.moved.any() else z != 0.0
        if not at_most_zero(np.concatenate([self.w * z, -self.thickness * (plus + minus)[counted]])):
            return False
        self.s = self.s + self.weight * z
        self.moved |= z != 0.0
        return True

    def grow(self, n: int) -> None:
        self.s, self.n = _lengthened(self.s, n, 0.0), n
        self.moved = np.append(self.moved, np.zeros(n - len(self.moved), bool))


class QuasiAdditive(Rule):
    """v = 0, w = link(v) coordinate by coordinate; if w.z <= 0: v += rate z."""

    def __init__(self, n: int, link: Callable[[float], float], rate: float = 1.0) -> None:
        self.n, self.link, self.rate = n, link, rate
        self.default_weight = float(link(0.0))
        self.v, self.touched = np.zeros(n), np.zeros(n, bool)

    @property
    def w(self) -> Vector:
        return np.array([float(self.link(float(v))) for v in self.v])

    def update(self, z: Vector) -> bool:
        if not at_most_zero(self.w * z):
            return False
        self.v = self.v + self.rate * (self.weight * z)
        self.touched |= z != 0.0
        return True

    def grow(self, n: int) -> None:
        self.v, self.n = _lengthened(self.v, n, 0.0), n
        self.touched = np.append(self.touched, np.zeros(n - len(self.touched), bool))


class PNorm(Rule):
    """p-norm Perceptron: v = 0; if w.z <= 0: v += z; w_i = sign(v_i) |v_i|^(p-1) / ||v||_p^(p-2).

    The factor ||v||_p^-(p-2), which the quasi-additive form leaves out, changes no prediction and no update;
    with it the weights do not overflow, and it is the scale at which averages of the p-norm rule are taken.
    """

    def __init__(self, n: int, p: float) -> None:
        self.n, self.p = n, p
        self.v = np.zeros(n)

    @property
    def w(self) -> Vector:
        return p_norm_dual(self.v, self.p)

    def update(self, z: Vector) -> bool:
        if not at_most_zero(self.w * z):
            return False
        self.v = self.v + self.weight * z
        return True

    def grow(self, n: int) -> None:
        self.v, self.n = _lengthened(self.v, n, 0.0), n


class Alma(Rule):
    """ALMA_p(alpha; B, C). theta = 0, k = 1, w = f^-1(theta), zhat = z/||z||_p:

    if w.zhat <= (1-alpha) B sqrt(p-1)/sqrt(k):
        theta += C/(sqrt(p-1) sqrt(k)) zhat;  theta /= max(1, ||theta||_p);  k += 1

    k counts updates. z = 0 is skipped (no update, whatever the options). `B=None` means 1/alpha.
    `normalise=False` takes zhat = z, so that B and C carry the bound on ||z||_p. `project=False` leaves out
    the division of theta.
    """

    def __init__(
        self,
        n: int,
        p: float,
        alpha: float = 1.0,
        B: float | None = None,
        C: float = math.sqrt(2.0),
        normalise: bool = True,
        project: bool = True,
    ) -> None:
        self.n, self.p, self.alpha = n, p, alpha
        self.B = 1.0 / alpha if B is None else B
        self.C, self.normalise, self.project = C, normalise, project
        self.theta = np.zeros(n)
        self.k = 1

    @property
    def w(self) -> Vector:
        return p_norm_dual(self.theta, self.p)

    def update(self, z: Vector) -> bool:
        norm = p_norm_of(z, self.p)
        if norm == 0.0:
            return False
        unit = z / norm if self.normalise else z
        gamma = self.B * math.sqrt(self.p - 1.0) / math.sqrt(self.k)
        if not at_most_zero(np.append(self.w * unit, -(1.0 - self.alpha) * gamma)):
            return False
        eta = self.C / (math.sqrt(self.p - 1.0) * math.sqrt(self.k))
        theta = self.theta + self.weight * eta * unit
        self.theta = theta / max(1.0, p_norm_of(theta, self.p)) if self.project else theta
        self.k += 1
        return True

    def grow(self, n: int) -> None:
        self.theta, self.n = _lengthened(self.theta, n, 0.0), n


class Sasb(Rule):
    """An experimental reconstruction of SASB (Littlestone and Mesterharm 1997), whose equations are lost.

    Over m updates with z in [-1, 1], v = sum z:  w_i = v_i G((m+v_i)/2 + 1) G((m-v_i)/2 + 1), G the Gamma
    function; if w.z <= 0: m += 1, v += z. Factors common to all coordinates were dropped from the formula, so
    its scale means nothing: the weights are *always* divided by their largest magnitude and `log_scale` stays
    0.
    """

    def __init__(self, n: int) -> None:
        self.n, self.m = n, 0
        self.v = np.zeros(n)

    @property
    def w(self) -> Vector:
        weights = np.zeros(self.n)
        active = np.flatnonzero(self.v)
        if active.size == 0:
            return weights
        logs = np.array([self._log_weight(float(v)) for v in self.v[active]])
        weights[active] = np.sign(self.v[active]) * np.exp(logs - logs.max())
        return weights

    def _log_weight(self, v: float) -> float:
        return math.log(abs(v)) + math.lgamma((self.m + v) / 2.0 + 1.0) + math.lgamma((self.m - v) / 2.0 + 1.0)

    def update(self, z: Vector) -> bool:
        if float(np.abs(z).max(initial=0.0)) > 1.0:
            raise ValueError(f"z must lie in [-1, 1], got {np.abs(z).max()}; scale the sub-experts")
        if not at_most_zero(self.w * z):
            return False
        self.m += self.weight
        self.v = self.v + self.weight * z
        return True

    def grow(self, n: int) -> None:
        self.v, self.n = _lengthened(self.v, n, 0.0), n


# --- two-class rules that do not lift -----------------------------------------------------------------------


class Winnow:
    """Winnow with a threshold: x in [0, 1]^n, labels {0, 1}, w_i = start.

    predict 1 iff w.x >= threshold

    promotion: y = 1 and w.x <  threshold + thick_positive:  w_i *= alpha^x_i

    demotion:  y = 0 and w.x >= threshold - thick_negative:  w_i /= alpha^x_i, or w_i *= demotion^x_i

    `demotion=None` is Winnow2 (divide by alpha), `demotion=0.0` is Winnow1 (w_i = 0 where x_i > 0), any other
    factor the two-rate form. Without thickness an update is a mistake: at w.x = threshold the prediction is
    1, right for y = 1.
    """

    def __init__(
        self,
        n: int,
        alpha: float,
        threshold: float,
        demotion: float | None = None,
        start: float = 1.0,
        thick_positive: float = 0.0,
        thick_negative: float = 0.0,
    ) -> None:
        self.n, self.alpha, self.threshold, self.demotion = n, alpha, threshold, demotion
        self.thick_positive, self.thick_negative = thick_positive, thick_negative
        self.default_weight = start
        self.w = np.full(n, float(start))
        self.promotions = 0
        self.demotions = 0

    def predict(self, x: Vector) -> int:
        return int(at_most_zero(np.append(-self.w * x, self.threshold)))

    def update(self, x: Vector, y: int) -> bool:
        if y == 1 and not at_most_zero(np.append(-self.w * x, self.threshold + self.thick_positive)):
            self.w = self.w * self.alpha**x
            self.promotions += 1
            return True
        if y == 0 and at_most_zero(np.append(-self.w * x, self.threshold - self.thick_negative)):
            self.w = self.w / self.alpha**x if self.demotion is None else self.w * self.demotion**x
            self.demotions += 1
            return True
        return False


class Elimination:
    """Monotone disjunctions over n literals (pass [x, 1-x] for all 2n), labels {0, 1}.

    predict 1 iff some literal of H is true (x_i > 0)

    y = 0, predicted 1: the literals true in x leave H. y = 1, predicted 0: no disjunction fits;
    `inconsistent` is set and nothing else changes. `w` is the indicator of H.
    """

    default_weight = 1.0

    def __init__(self, n: int) -> None:
        self.n = n
        self.w = np.ones(n)
        self.inconsistent = False

    def predict(self, x: Vector) -> int:
        return int(bool(np.any((self.w > 0.0) & (x > 0.0))))

    def update(self, x: Vector, y: int) -> bool:
        predicted = self.predict(x)
        if y == 1 and predicted == 0:
            self.inconsistent = True
        if y == 1 or predicted == 0:
            return False
        self.w = np.where(x > 0.0, 0.0, self.w)
        return True


# --- hypotheses ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hypothesis:
    """Linear weights frozen at some trial: true weights are `weights * exp(log_scale)`.

    `default` is the weight of unseen coordinates, at the same scale; `touched` are the coordinates that norms are
    taken over, all if None.
    """

    weights: Vector
    log_scale: float
    default: float
    touched: Any = None

    def padded(self, n: int) -> Hypothesis:
        """The same hypothesis on n coordinates."""
        if n <= len(self.weights):
            return self
        touched = None if self.touched is None else np.append(self.touched, np.zeros(n - len(self.touched), bool))
        return Hypothesis(_lengthened(self.weights, n, self.default), self.log_scale, self.default, touched)

    def scores(self, x: Vector) -> Vector:
        """zeta(j) = sum_i w_i x_i^j for every row j of x, from the stored weights (`log_scale` aside)."""
        weights = self.padded(x.shape[1]).weights
        return np.array([total(weights * row) for row in fitted(x, len(weights))])

    def times(self, factor: float) -> Hypothesis:
        return Hypothesis(self.weights * factor, self.log_scale, self.default * factor, self.touched)

    def plus(self, other: Hypothesis) -> Hypothesis:
        """The sum of the true weights, at the larger of the two scales."""
        n = max(len(self.weights), len(other.weights))
        scale = max(self.log_scale, other.log_scale)
        mine = self.padded(n).times(math.exp(self.log_scale - scale))
        theirs = other.padded(n).times(math.exp(other.log_scale - scale))
        touched = None if mine.touched is None or theirs.touched is None else mine.touched | theirs.touched
        return Hypothesis(mine.weights + theirs.weights, scale, mine.default + theirs.default, touched)

    def scaled(self, how: str) -> Hypothesis:
        """`raw`: as it is; `max`, `l1`, `l2`: divided by that norm (0 stays 0), with `log_scale` 0."""
        if how == "raw":
            return self
        norms = {
            "max": lambda w: float(np.abs(w).max(initial=0.0)),
            "l1": lambda w: total(np.abs(w)),
            "l2": lambda w: math.sqrt(total(w * w)),
        }
        if how not in norms:
            raise ValueError(f"scale must be one of raw, max, l1, l2, got {how!r}")
        counted = self.weights if self.touched is None else self.weights[self.touched]
        norm = norms[how](counted)
        if self.touched is not None and not self.touched.any():
            norm = abs(self.default)  # before the first update: as if of one weight
        return Hypothesis(self.weights / (norm or 1.0), 0.0, self.default / (norm or 1.0), self.touched)


def fitted(x: Vector, n: int) -> Vector:
    """x with columns of zeros appended up to n: an older instance knows nothing of newer sub-experts."""
    return np.pad(x, ((0, 0), (0, n - x.shape[1]))) if x.shape[1] < n else x


# --- linear-max ---------------------------------------------------------------------------------------------


class LinearMax:
    """The linear-max transformation: many classes out of any rule in z-form.

    An instance is a dense matrix x of shape (k, n): row x^j holds what the n sub-experts say for class j.

        zeta(j) = w.x^j;  predict the arg max;  rival = arg max over j != label
        rule.update(x^label - x^rival)

    Parameters
    ----------
    rule_factory
        n -> rule. The rule is made when the first instance tells n; it grows when a wider instance comes.
    k
        Number of classes = rows of an instance.
    tie
        "smallest" or "largest" class among those that tie, for the prediction and for the rival.
    update_on_tie
        False: a *correct* prediction with w.z exactly 0 does not reach the rule. Everything else does.
    discover
        Classes become known with their first label and are numbered in that order (which is what `tie` refers
        to); x still has one row for each of the k possible classes. Unknown classes are in no arg max. The
        trial that brings a new label is a mistake by definition (the prediction is -1 while no class is
        known); the rule gets z = 0 - x^first, and nothing when no other class is known. With only the label's
        class known there is no rival and no update. Instances that are looked at again later (recycling,
        accuracy of voters) are among the classes that were known after their own trial.
    """

    def __init__(
        self,
        rule_factory: Callable[[int], Any],
        k: int,
        tie: str = "smallest",
        update_on_tie: bool = True,
        discover: bool = False,
    ) -> None:
        if tie not in ("smallest", "largest"):
            raise ValueError(f"tie must be 'smallest' or 'largest', got {tie!r}")
        if k < 2 and not discover:
            raise ValueError(f"k must be >= 2, got {k}; one class leaves nothing to learn")
        self.rule_factory, self.k, self.tie = rule_factory, k, tie
        self.update_on_tie, self.discover = update_on_tie, discover
        self.known: list[int] = [] if discover else list(range(k))
        self.rule: Any = None
        self.mistakes = 0
        self.updates = 0
        self.changed = False

    @property
    def linear(self) -> LinearMax:
        """The learner that knows the classes and the tie policy: itself; techniques hand theirs on."""
        return self

    def grow(self, n: int) -> None:
        if self.rule is None:
            self.rule = self.rule_factory(n)
        elif n > self.rule.n:
            self.rule.grow(n)

    def snapshot(self) -> Hypothesis:
        if self.rule is None:
            return Hypothesis(np.zeros(0), 0.0, float(self.rule_factory(0).default_weight))
        scale = float(self.rule.log_scale)
        # when every weight is below e^-700 an unseen coordinate outweighs them all anyway
        default = self.rule.default_weight * math.exp(min(-scale, 700.0))
        touched = None if self.rule.touched is None or not self.rule.default_weight else self.rule.touched.copy()
        return Hypothesis(self.rule.w.copy(), scale, default, touched)

    def hypothesis(self) -> Vector:
        """The weights; true weights are these times exp(`log_scale`)."""
        return self.snapshot().weights

    @property
    def log_scale(self) -> float:
        return self.snapshot().log_scale

    def scores(self, x: Vector) -> Vector:
        self.grow(x.shape[1])
        return self.snapshot().scores(x)

    def best_of(self, scores: Vector, without: int = -1) -> int:
        """The known class of largest score, or -1 when there is none."""
        candidates = [j for j in self.known if j != without]
        if not candidates:
            return -1
        largest = max(scores[j] for j in candidates)
        tied = [j for j in candidates if scores[j] == largest]
        return tied[0] if self.tie == "smallest" else tied[-1]

    def decide(self, weights: Vector, x: Vector, without: int = -1) -> int:
        """The class that linear weights choose for x, close calls noted."""
        x = fitted(x, len(weights))
        first = self.best_of(np.array(list(map(math.fsum, (x * weights).tolist()))), without)
        for other in self.known:
            if other not in (first, without):
                doubt.note(weights * (x[first] - x[other]))
        return first

    def predict(self, x: Vector) -> int:
        self.grow(x.shape[1])
        return self.decide(self.hypothesis(), x)

    @contextmanager
    def among(self, known: Sequence[int]) -> Iterator[None]:
        """Know only these classes for a while."""
        now, self.known = self.known, list(known)
        yield
        self.known = now

    def learn(self, x: Vector, label: int, weight: float = 1.0) -> bool:
        """One presentation of (x, label) that counts no mistake; True when the rule updated."""
        if not 0 <= label < self.k:
            raise ValueError(f"label must be in 0..{self.k - 1}, got {label}")
        self.grow(x.shape[1])
        x, self.rule.weight = fitted(x, self.rule.n), weight
        self.changed = self._discover(x, label) if label not in self.known else self._learn(x, label)
        self.updates += self.changed
        return self.changed

    def _discover(self, x: Vector, label: int) -> bool:
        first = self.best_of(self.scores(x))
        self.known.append(label)
        return first >= 0 and bool(self.rule.update(-x[first]))

    def _learn(self, x: Vector, label: int) -> bool:
        scores = self.scores(x)
        rival = self.best_of(scores, without=label)
        if rival < 0:
            return False
        z = x[label] - x[rival]
        weights = self.hypothesis()
        correct = self.best_of(scores) == label
        if not self.update_on_tie and correct and total(weights * z) == 0.0:
            return False
        updated = bool(self.rule.update(z))
        if updated:  # only then does it matter which rival was the largest
            self.decide(weights, x, without=label)
        return updated

    def trial(self, x: Vector, label: int, weight: float = 1.0) -> int:
        """Predict, see the label, learn; returns the prediction."""
        prediction = self.predict(x)
        self.mistakes += prediction != label
        self.learn(x, label, weight)
        return prediction


def expand(
    votes: npt.ArrayLike | None = None,
    scores: npt.ArrayLike | None = None,
    attributes: npt.ArrayLike | None = None,
    *,
    k: int,
    thresholds: bool = True,
) -> Vector:
    """One instance as the dense (k, n) matrix of its sub-experts.

    Columns in this order: voters (one-hot in the class voted for; -1 abstains: zeros), score sub-experts (row
    i of `scores` is its k values), then features. Feature 0 is the constant 1 if `thresholds`, then the
    attributes; feature f gives k sub-experts, the one for class c at column n_experts + f k + c with value
    a_f in row c and 0 elsewhere.
    """
    vote = np.asarray([] if votes is None else votes, dtype=int)
    score = np.asarray(np.zeros((0, k)) if scores is None else scores, dtype=float)
    attribute = np.asarray([] if attributes is None else attributes, dtype=float)
    feature = np.concatenate([[1.0] if thresholds else [], attribute])
    experts = len(vote) + len(score)
    x = np.zeros((k, experts + len(feature) * k))
    for i, c in enumerate(vote):
        if c >= 0:
            x[c, i] = 1.0
    for i, values in enumerate(score):
        x[:, len(vote) + i] = values
    for f, value in enumerate(feature):
        for c in range(k):
            x[c, experts + f * k + c] = value
    return x


# --- the multi-class Perceptron -----------------------------------------------------------------------------


@dataclass(frozen=True)
class MulticlassPerceptron:
    """Weights (k, d), the number of violations, passes made, and whether the last pass found no violation."""

    weights: Vector
    violations: int
    epochs: int
    converged: bool


def multiclass_perceptron(
    points: Vector, labels: Sequence[int], k: int, max_epochs: int = 1000
) -> MulticlassPerceptron:
    """W = 0 (k x d), then cyclic passes.

    A point p with label l and prediction z = arg max_i w_i.p != l (smallest class on ties) is a violation:
    w_l += p, w_z -= p. Stops after a pass without violation or after `max_epochs` passes.
    """
    weights = np.zeros((k, points.shape[1]))
    violations = 0
    for epoch in range(1, max_epochs + 1):
        before = violations
        for p, label in zip(points, labels, strict=True):
            predicted = int(np.argmax([total(row * p) for row in weights]))
            if predicted != label:
                weights[label] += p
                weights[predicted] -= p
                violations += 1
        if violations == before:
            return MulticlassPerceptron(weights, violations, epoch, True)
    return MulticlassPerceptron(weights, violations, max_epochs, False)


def margin(weights: Vector, points: Vector, labels: Sequence[int]) -> float:
    """min over points p (label l) and z != l of (w_l.p - w_z.p) / sqrt(2 sum_i |w_i|^2)."""
    norm = math.sqrt(2.0 * total(weights.ravel() ** 2))
    gaps = [
        total((weights[label] - weights[z]) * p)
        for p, label in zip(points, labels, strict=True)
        for z in range(len(weights))
        if z != label
    ]
    return min(gaps) / norm


def radius(points: Vector) -> float:
    """R = max |p|."""
    return max(math.sqrt(total(p * p)) for p in points)
