"""Exponentiated gradient: EG and EG+-, the regressors of the Winnow family (Kivinen and Warmuth 1997).

They predict a number and suffer the square loss. They are no rules, because they do not lift to many classes: the
linear-max transformation needs a rule that sees an instance and its label only as their product z = y x, and these
change their weights in every trial by an amount that depends on the prediction and on y separately. With the gradient
of the hinge loss in place of the square loss EG becomes a rule that lifts, the multiplicative one of
`linmax.rules.winnow`.

References
----------
Kivinen and Warmuth, "Exponentiated gradient versus gradient descent for linear predictors", Information and
Computation 132 (1997).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import sparse

from linmax.theory import bounds
from linmax.util.checks import finite, positive

__all__ = ["EG", "EGPM"]

# Exponents are limited to this size: they and their sums stay finite, and exp(-LARGEST_EXPONENT) is 0 long before.
LARGEST_EXPONENT = 1e300

SHAPES = ("one number", "a vector", "a matrix (trials, attributes)")


def _limited(values: np.ndarray) -> np.ndarray:
    return np.clip(values, -LARGEST_EXPONENT, LARGEST_EXPONENT)


def _scale(name: str, value: float) -> float:
    number = finite(name, value)
    if not 1e-70 <= number <= 1e70:  # its square, and that of a product of two, must be a finite number
        raise ValueError(f"{name} must be > 0 (from 1e-70 to 1e70), got {number:g}; try 1.0 with x rescaled")
    return number


def _array(name: str, value: npt.ArrayLike, dimensions: int) -> np.ndarray:
    if sparse.issparse(value):
        raise TypeError(f"{name} must be a dense array, got a sparse one; try {name}.toarray()")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} has rows of different lengths; make them equally long") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}; try {name}.astype(float)")
    if array.ndim != dimensions:
        raise ValueError(f"{name} must be {SHAPES[dimensions]}, got shape {array.shape}; reshape it")
    if not np.isfinite(array).all():
        wrong = array[~np.isfinite(array)].flat[0]
        raise ValueError(f"{name} must be finite, got {wrong:g}; replace or drop missing values")
    # Writable, so that one compiled version serves every array.
    return np.require(array, np.float64, ["C", "W"])


class EG:
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

    _copies = 1  # weights for each attribute

    def __init__(self, eta: float | None = None, range: float = 1.0) -> None:
        self.range = _scale("range", range)
        self._start(eta, 2.0 / (3.0 * self.range**2), self.range)

    def _start(self, eta: float | None, default: float, span: float) -> None:
        self.eta = default if eta is None else positive("eta", eta, f"{default:g} or remove it")
        self._span = span  # Rg
        self._logs: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"EG(eta={self.eta:g}, range={self.range:g})"

    @property
    def weights(self) -> np.ndarray:
        """The weights w with which `predict` predicts w.x; known from the first trial on."""
        if self._logs is None:
            raise ValueError("weights have no length before the first trial; call learn or run first")
        return self._weights(self._logs)

    def predict(self, x: npt.ArrayLike) -> float:
        """Return w.x for one instance; nothing changes."""
        rows = self._rows("x", x, 1)
        return float(rows[0] @ EG._weights(self, self._state(rows)))

    def learn(self, x: npt.ArrayLike, y: float) -> float:
        """Predict one instance, then see its value y and change the weights; return the prediction."""
        return float(self._advance(self._rows("x", x, 1), _array("y", y, 0).reshape(1))[0])

    def run(self, X: npt.ArrayLike, y: npt.ArrayLike) -> np.ndarray:
        """Predict and learn row after row; return the predictions, each made before its y was seen.

        Parameters
        ----------
        X : array of shape (trials, n)
            Instances, dense.
        y : array of shape (trials,)
            Their values.
        """
        return self._advance(*self._trials(X, y))

    def loss_bound(self, u: npt.ArrayLike, X: npt.ArrayLike, y: npt.ArrayLike) -> float:
        """Bound the total square loss of a run over (X, y) from the start, against any fixed weights u.

        sum (yhat - y)^2 <= 2 / (2 - c) sum (u.x - y)^2 + (Rg^2 / c) KL(u, start), c = eta Rg^2 < 2; infinity
        when c >= 2, where the theorem says nothing.
        """
        rows, values = self._trials(X, y)
        comparator = _array("u", u, 1)
        if comparator.size * self._copies != rows.shape[1]:
            n = rows.shape[1] // self._copies
            raise ValueError(f"u must have {n} weights, as X has columns, got {comparator.size}")
        divergence, c = self._divergence(comparator), self.eta * self._span**2
        if c >= 2.0:
            return math.inf
        loss = float(np.sum((_array("X", X, 2) @ comparator - values) ** 2))
        return bounds.exponentiated_gradient(divergence, loss, self._span, c)

    def _trials(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        rows, values = self._rows("X", X, 2), _array("y", y, 1)
        if len(rows) != values.size:
            raise ValueError(f"y must have {len(rows)} values, one for each row of X, got {values.size}")
        return rows, values

    def _rows(self, name: str, value: npt.ArrayLike, dimensions: int) -> np.ndarray:
        """Return checked instances as the algorithm takes them."""
        rows = np.atleast_2d(_array(name, value, dimensions))
        n = rows.shape[1] if self._logs is None else self._logs.size // self._copies
        if rows.shape[1] != n or n == 0:
            raise ValueError(f"{name} must have {n or 'some'} attributes, got {rows.shape[1]}; pass as many as before")
        return self._inputs(name, rows)

    def _inputs(self, name: str, rows: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            widest = float(np.max(rows.max(axis=1) - rows.min(axis=1), initial=0.0))
        if widest > self.range * (1.0 + 1e-12):
            raise ValueError(
                f"{name} must have attributes within range = {self.range:g} of each other in every instance, "
                f"got {widest:g}; try range={widest:g}"
            )
        return rows

    def _state(self, rows: np.ndarray) -> np.ndarray:
        """Return a copy, so that a trial that fails changes nothing."""
        return np.zeros(rows.shape[1]) if self._logs is None else self._logs.copy()

    def _advance(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Play the rows: w = exp(logs) / sum of exp(logs); the largest of logs is 0."""
        logs, predictions = self._state(rows), np.empty(values.size)
        with np.errstate(over="ignore"):  # infinite products are limited
            for t, (x, y) in enumerate(zip(rows, values, strict=True)):
                predictions[t] = prediction = EG._weights(self, logs) @ x
                # The product in this order: 2 eta may be infinite, and infinity times 0 is nan.
                rate = _limited(_limited(self.eta * _limited(prediction - y)) * 2.0)
                # Less the prediction, which all weights share and the sum cancels: keeps the exponents small.
                logs -= _limited(rate * (x - prediction))
                logs = _limited(logs - logs.max())
        self._logs = logs
        return predictions

    def _weights(self, logs: np.ndarray) -> np.ndarray:
        mass = np.exp(logs)
        return np.asarray(mass / mass.sum())

    def _divergence(self, u: np.ndarray) -> float:
        if (u < 0).any() or abs(u.sum() - 1.0) > 1e-9:
            raise ValueError(f"u must be >= 0 with sum 1, got sum {u.sum():g}, least {u.min():g}; try u / u.sum()")
        return bounds.divergence(u)


class EGPM(EG):
    """Exponentiated gradient with both signs, EG+-: weights with sum |w_i| <= U.

    Start w+_i = w-_i = U / (2 n). In every trial, with r_i = exp(-2 eta U (yhat - y) x_i),

        yhat = (w+ - w-).x;   w+_i <- U w+_i r_i / Z,   w-_i <- U w-_i / (r_i Z),   Z = sum (w+_i r_i + w-_i
        / r_i).

    This is EG on the attributes [U x, -U x], so with |x_i| <= X, Rg = 2 U X, c = eta Rg^2 in (0, 2) and
    every u with sum |u_i| <= U

        sum (yhat - y)^2 <= 2 / (2 - c) sum (u.x - y)^2 + (Rg^2 / c) KL,   KL <= ln(2 n).

    `loss_bound` takes the least KL among the ways to write u = u+ - u- with total U.

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

    _copies = 2

    def __init__(self, eta: float | None = None, total: float = 1.0, bound: float = 1.0) -> None:
        self.total, self.bound = _scale("total", total), _scale("bound", bound)
        reach = self.total * self.bound
        self._start(eta, 1.0 / (3.0 * reach**2), 2.0 * reach)

    def __repr__(self) -> str:
        return f"EGPM(eta={self.eta:g}, total={self.total:g}, bound={self.bound:g})"

    def _inputs(self, name: str, rows: np.ndarray) -> np.ndarray:
        largest = float(np.max(np.abs(rows), initial=0.0))
        if largest > self.bound * (1.0 + 1e-12):
            raise ValueError(
                f"{name} must have attributes of magnitude <= bound = {self.bound:g}, got {largest:g}; "
                f"try bound={largest:g}"
            )
        return np.hstack([self.total * rows, -self.total * rows])

    def _weights(self, logs: np.ndarray) -> np.ndarray:
        plus, minus = np.split(super()._weights(logs), 2)
        return np.asarray(self.total * (plus - minus))

    def _divergence(self, u: np.ndarray) -> float:
        size = float(np.abs(u).sum())
        if size > self.total * (1.0 + 1e-9):
            raise ValueError(f"u must have sum |u| <= total = {self.total:g}, got {size:g}; try total={size:g}")
        return bounds.divergence_balanced(u / max(self.total, size))
