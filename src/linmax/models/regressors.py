"""Exponentiated gradient: EG and EG+-, the regressors of the Winnow family (Kivinen and Warmuth 1997).

They predict a number and suffer the square loss. They stand apart from the rules because they do not lift
to many classes: the linear-max transformation needs a rule that sees an instance and its label only as
their product z = y x, and these change their weights in every trial by an amount that depends on the
prediction and on y separately. With the gradient of the hinge loss in place of the square loss EG becomes a
rule that lifts, the multiplicative one of `linmax.rules.winnow`.

References
----------
Kivinen and Warmuth, "Exponentiated gradient versus gradient descent for linear predictors", Information and
Computation 132 (1997).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import optimize, sparse, special

from linmax.jit.compiling import kernel
from linmax.util.checks import finite, positive

__all__ = ["EG", "EGPM"]

# Exponents are cut here: so large a number and its sums stay finite, and exp(-LARGEST_WEIGHT) is 0 long before.
LARGEST_WEIGHT = 1e300

_SHAPES = ("one number", "a vector", "a matrix (trials, attributes)")


@kernel(allocates=True)
def _cut(value):  # type: ignore[no-untyped-def]
    return min(max(value, -LARGEST_WEIGHT), LARGEST_WEIGHT)


@kernel(allocates=True)
def _eg_trials(logs, x, y, eta, predictions):  # type: ignore[no-untyped-def]
    """EG over the rows of x: w = exp(logs) / sum of exp(logs); the largest of logs is 0."""
    n = logs.size
    mass = np.empty(n)
    for t in range(y.size):
        whole = 0.0
        for i in range(n):
            mass[i] = math.exp(logs[i])
            whole += mass[i]
        prediction = 0.0
        for i in range(n):
            prediction += mass[i] / whole * x[t, i]
        predictions[t] = prediction
        # The product in this order: 2 eta may be infinite, and infinity times 0 is nan.
        rate = _cut(_cut(eta * _cut(prediction - y[t])) * 2.0)
        top = -math.inf
        for i in range(n):
            # Less the prediction, which all weights share and the sum takes out: keeps the exponents small.
            logs[i] -= _cut(rate * (x[t, i] - prediction))
            top = max(top, logs[i])
        for i in range(n):
            logs[i] = _cut(logs[i] - top)


@kernel(allocates=True)
def _difference(log, top):  # type: ignore[no-untyped-def]
    """exp(log - top) - exp(-log - top), exact also near log = 0."""
    size = abs(log)
    return math.copysign(math.exp(size - top) * -math.expm1(-2.0 * size), log)


@kernel(allocates=True)
def _egpm_trials(logs, x, y, eta, total, predictions):  # type: ignore[no-untyped-def]
    """EG+- over the rows of x: w+ = total exp(logs) / Z, w- = total exp(-logs) / Z, Z sums them all."""
    n = logs.size
    for t in range(y.size):
        top = 0.0
        for i in range(n):
            top = max(top, abs(logs[i]))
        whole, inner = 0.0, 0.0
        for i in range(n):
            whole += math.exp(logs[i] - top) + math.exp(-logs[i] - top)
            inner += _difference(logs[i], top) * x[t, i]
        prediction = total * (inner / whole)
        predictions[t] = prediction
        rate = _cut(_cut(eta * _cut(prediction - y[t])) * 2.0)
        for i in range(n):
            logs[i] = _cut(logs[i] - _cut(rate * (total * x[t, i])))


def _scale(name: str, value: Any) -> float:
    number = finite(name, value)
    if not 1e-70 <= number <= 1e70:  # its square, and that of a product of two, must be a finite number
        raise ValueError(f"{name} must be > 0 (from 1e-70 to 1e70), got {number:g}; try 1.0 with x rescaled")
    return number


def _array(name: str, value: Any, dimensions: int) -> np.ndarray:
    if sparse.issparse(value):
        raise TypeError(f"{name} must be a dense array, got a sparse one; try {name}.toarray()")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} has rows of different lengths; make them equally long") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}; try {name}.astype(float)")
    if array.ndim != dimensions:
        raise ValueError(f"{name} must be {_SHAPES[dimensions]}, got shape {array.shape}; reshape it")
    if not np.isfinite(array).all():
        wrong = array[~np.isfinite(array)].flat[0]
        raise ValueError(f"{name} must be finite, got {wrong:g}; replace or drop missing values")
    # Writable, so that one compiled version serves every array.
    return np.require(array, np.float64, ["C", "W"])


class _Exponentiated(ABC):
    """What EG and EG+- share: a regressor whose weights are exponentials of sums, kept as the sums."""

    def __init__(self, eta: float | None, default: float, spread: float) -> None:
        self.eta = default if eta is None else positive("eta", eta, f"{default:g} or leave it out")
        self._spread = spread  # Rg, the length of the interval of what the weights of total 1 multiply
        self._logs: np.ndarray | None = None

    @property
    def weights(self) -> np.ndarray:
        """The weights w with which `predict` predicts w.x; known from the first trial on."""
        if self._logs is None:
            raise ValueError("weights have no length before the first trial; call learn or run first")
        return self._weights(self._logs)

    def predict(self, x: Any) -> float:
        """Return w.x for one instance; nothing changes."""
        row = self._rows("x", _array("x", x, 1)[np.newaxis])
        return float(row[0] @ self._weights(self._state(row)))

    def learn(self, x: Any, y: float) -> float:
        """Predict one instance, then see its value y and change the weights; return the prediction."""
        row = self._rows("x", _array("x", x, 1)[np.newaxis])
        return float(self._advance(row, _array("y", y, 0).reshape(1))[0])

    def run(self, X: Any, y: Any) -> np.ndarray:
        """Predict and learn row after row; return the predictions, each made before its y was seen.

        Parameters
        ----------
        X
            Instances, (trials, n), dense.
        y
            Their values, (trials,).
        """
        return self._advance(*self._trials(X, y))

    def loss_bound(self, u: Any, X: Any, y: Any) -> float:
        """Bound the total square loss of a run over (X, y) from the start, against any fixed weights u.

        sum (yhat - y)^2 <= 2 / (2 - c) sum (u.x - y)^2 + (Rg^2 / c) KL(u, start), c = eta Rg^2 < 2; infinity
        when c >= 2, where the theorem says nothing.
        """
        rows, values = self._trials(X, y)
        comparator = _array("u", u, 1)
        if comparator.size != rows.shape[1]:
            raise ValueError(f"u must have {rows.shape[1]} weights, as X has columns, got {comparator.size}")
        divergence = self._divergence(comparator)
        with np.errstate(over="ignore"):
            c = self.eta * self._spread**2
            if c >= 2.0:
                return math.inf
            loss = float(np.sum((rows @ comparator - values) ** 2))
            return 2.0 / (2.0 - c) * loss + divergence / self.eta

    def _advance(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        logs = self._state(rows)
        predictions = np.empty(values.size)
        with np.errstate(over="ignore"):  # infinite products are cut; only NumPy (without a compiler) warns
            self._learn(logs, rows, values, predictions)
        self._logs = logs
        return predictions

    def _trials(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        rows, values = self._rows("X", _array("X", X, 2)), _array("y", y, 1)
        if len(rows) != values.size:
            raise ValueError(f"y must have {len(rows)} values, one for each row of X, got {values.size}")
        return rows, values

    def _rows(self, name: str, rows: np.ndarray) -> np.ndarray:
        n = rows.shape[1] if self._logs is None else self._logs.size
        if rows.shape[1] != n or n == 0:
            raise ValueError(f"{name} must have {n or 'some'} attributes, got {rows.shape[1]}; give as many as before")
        self._check(name, rows)
        return rows

    def _state(self, rows: np.ndarray) -> np.ndarray:
        """A copy, so that a trial that fails changes nothing."""
        return np.zeros(rows.shape[1]) if self._logs is None else self._logs.copy()

    @abstractmethod
    def _check(self, name: str, rows: np.ndarray) -> None: ...

    @abstractmethod
    def _weights(self, logs: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def _divergence(self, u: np.ndarray) -> float: ...

    @abstractmethod
    def _learn(self, logs: np.ndarray, X: np.ndarray, y: np.ndarray, predictions: np.ndarray) -> None: ...


class EG(_Exponentiated):
    """Exponentiated gradient: weights on the simplex.

    Start w_i = 1/n. In every trial

        yhat = w.x;   w_i <- w_i exp(-2 eta (yhat - y) x_i) / Z,   Z so that the weights sum to 1.

    Bound, for x_i within an interval of length Rg in each trial, c = eta Rg^2 in (0, 2) and every u on the
    simplex:

        sum (yhat - y)^2 <= 2 / (2 - c) sum (u.x - y)^2 + (Rg^2 / c) KL(u, start),   KL = ln n + sum u_i ln
        u_i.

    It is no rule and does not lift to many classes: it changes in every trial, by the prediction and y
    separately, not by z = y x (see the module).

    Parameters
    ----------
    eta
        Learning rate; 2 / (3 range^2) when not given, c = 2/3, which gives the factors 3/2 and 3/2 Rg^2.
    range
        Rg, the greatest difference of two attributes in one instance.

    References
    ----------
    Kivinen and Warmuth (1997).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((2000, 4))
    >>> y = X @ [0.0, 0.8, 0.0, 0.2]
    >>> regressor = EG()
    >>> predictions = regressor.run(X, y)
    >>> loss = np.sum((predictions - y) ** 2)
    >>> bool(loss < regressor.loss_bound([0.0, 0.8, 0.0, 0.2], X, y))
    True
    >>> regressor.weights.round(2)
    array([0. , 0.8, 0. , 0.2])
    """

    def __init__(self, eta: float | None = None, range: float = 1.0) -> None:
        self.range = _scale("range", range)
        super().__init__(eta, 2.0 / (3.0 * self.range**2), self.range)

    def __repr__(self) -> str:
        return f"EG(eta={self.eta:g}, range={self.range:g})"

    def _check(self, name: str, rows: np.ndarray) -> None:
        with np.errstate(over="ignore"):
            widest = float(np.max(rows.max(axis=1) - rows.min(axis=1), initial=0.0))
        if widest > self.range * (1.0 + 1e-12):
            raise ValueError(
                f"{name} must have attributes within range = {self.range:g} of each other in every instance, "
                f"got {widest:g}; try range={widest:g}"
            )

    def _weights(self, logs: np.ndarray) -> np.ndarray:
        mass = np.exp(logs)
        return np.asarray(mass / mass.sum())

    def _divergence(self, u: np.ndarray) -> float:
        if (u < 0).any() or abs(u.sum() - 1.0) > 1e-9:
            raise ValueError(f"u must be >= 0 with sum 1, got sum {u.sum():g}, least {u.min():g}; try u / u.sum()")
        return max(0.0, math.log(u.size) + float(special.xlogy(u, u).sum()))

    def _learn(self, logs: np.ndarray, X: np.ndarray, y: np.ndarray, predictions: np.ndarray) -> None:
        _eg_trials(logs, X, y, self.eta, predictions)


class EGPM(_Exponentiated):
    """Exponentiated gradient with both signs, EG+-: weights with sum |w_i| <= U.

    Start w+_i = w-_i = U / (2 n). In every trial, with r_i = exp(-2 eta U (yhat - y) x_i),

        yhat = (w+ - w-).x;   w+_i <- U w+_i r_i / Z,   w-_i <- U w-_i / (r_i Z),   Z = sum (w+_i r_i + w-_i
        / r_i).

    This is EG on the attributes [U x, -U x], so with |x_i| <= X, Rg = 2 U X, c = eta Rg^2 in (0, 2) and
    every u with sum |u_i| <= U

        sum (yhat - y)^2 <= 2 / (2 - c) sum (u.x - y)^2 + (Rg^2 / c) KL,   KL <= ln(2 n).

    `loss_bound` takes the least KL among the ways to write u = u+ - u- with total U. It is no rule and does
    not lift to many classes: it changes in every trial, by the prediction and y separately, not by z = y x
    (see the module).

    Parameters
    ----------
    eta
        Learning rate; 1 / (3 U^2 X^2) when not given, c = 4/3, which gives the factors 3 and 3 U^2 X^2.
    total
        U, the total of the weights.
    bound
        X, the greatest magnitude of an attribute.

    References
    ----------
    Kivinen and Warmuth (1997).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (2000, 4))
    >>> y = X @ [0.0, 1.5, -0.5, 0.0]
    >>> regressor = EGPM(total=2.0)
    >>> loss = np.sum((regressor.run(X, y) - y) ** 2)
    >>> bool(loss < regressor.loss_bound([0.0, 1.5, -0.5, 0.0], X, y))
    True
    >>> regressor.weights.round(2) + 0.0  # + 0.0: -0. reads badly
    array([ 0. ,  1.5, -0.5,  0. ])
    """

    def __init__(self, eta: float | None = None, total: float = 1.0, bound: float = 1.0) -> None:
        self.total, self.bound = _scale("total", total), _scale("bound", bound)
        reach = self.total * self.bound
        super().__init__(eta, 1.0 / (3.0 * reach**2), 2.0 * reach)

    def __repr__(self) -> str:
        return f"EGPM(eta={self.eta:g}, total={self.total:g}, bound={self.bound:g})"

    def _check(self, name: str, rows: np.ndarray) -> None:
        largest = float(np.max(np.abs(rows), initial=0.0))
        if largest > self.bound * (1.0 + 1e-12):
            raise ValueError(
                f"{name} must have attributes of magnitude <= bound = {self.bound:g}, got {largest:g}; "
                f"try bound={largest:g}"
            )

    def _weights(self, logs: np.ndarray) -> np.ndarray:
        size = np.abs(logs)
        top = size.max()
        plus, minus = np.exp(size - top), np.exp(-size - top)
        part = np.copysign(plus * -np.expm1(-2.0 * size), logs) / np.sum(plus + minus)
        return np.asarray(self.total * part)

    def _divergence(self, u: np.ndarray) -> float:
        d = u / self.total
        if np.abs(d).sum() > 1.0 + 1e-9:
            raise ValueError(
                f"u must have sum |u| <= total = {self.total:g}, got {np.abs(u).sum():g}; try total={np.abs(u).sum():g}"
            )
        # The least KL has v+_i v-_i the same for all i (Lagrange), so v+_i + v-_i = hypot(d_i, h), and h
        # makes these sum to 1.
        h = 0.0
        if np.abs(d).sum() < 1.0:
            h = optimize.brentq(lambda h: np.hypot(d, h).sum() - 1.0, 0.0, 2.0 / u.size, xtol=1e-18)
        mass = np.hypot(d, h)
        parts = np.maximum(np.concatenate([mass + d, mass - d]) / 2.0, 0.0)
        return max(0.0, math.log(parts.size) + float(special.xlogy(parts, parts).sum()))

    def _learn(self, logs: np.ndarray, X: np.ndarray, y: np.ndarray, predictions: np.ndarray) -> None:
        _egpm_trials(logs, X, y, self.eta, self.total, predictions)
