"""The margin and second-order rules again, slow and obvious: whole matrices, no sparsity, the papers' letters.

``full=False`` keeps the diagonal of the matrix after every step. A step that would change nothing is no update.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm

from reference import LinearMax, Rule, Vector, doubt, total


def margin_of(w: Vector, z: Vector, wanted: float) -> float:
    """w.z, with the decision whether it is below ``wanted`` noted.

    A margin that meets it to the last bit is in doubt as well: steps that hang on margins leave crumbs of rounding.
    """
    terms = np.append(w * z, -wanted)
    size = total(np.abs(terms))
    if size > 0.0:
        doubt.smallest = min(doubt.smallest, abs(total(terms)) / size)
    elif w.any():
        doubt.smallest = 0.0
    return total(w * z)


class Additive(Rule):
    """A rule whose weights are simply kept; ``values`` are per-coordinate arrays with what they start at."""

    def __init__(self, n: int, start: float = 0.0) -> None:
        self.n, self.default_weight = n, start
        self._w = np.full(n, start)

    @property
    def w(self) -> Vector:
        return self._w

    def grow(self, n: int) -> None:
        self._w = np.append(self._w, np.full(n - self.n, self.default_weight))
        self.n = n


class PassiveAggressive(Additive):
    """Crammer et al. (2006): tau = l/|z|^2 (PA), min(C, l/|z|^2) (PA-I), l/(|z|^2 + 1/(2C)) (PA-II)."""

    def __init__(self, n: int, variant: str, C: float = 1.0) -> None:
        super().__init__(n)
        self.variant, self.C = variant, C

    def update(self, z: Vector) -> bool:
        loss = max(0.0, 1.0 - margin_of(self.w, z, 1.0))
        square = total(z * z)
        if loss == 0.0 or square == 0.0:
            return False
        tau = {
            "PA": loss / square,
            "PA-I": min(self.C * self.weight, loss / square),
            "PA-II": loss / (square + 1.0 / (2.0 * self.C * self.weight)),
        }[self.variant]
        self._w = self._w + tau * z
        return True


class SecondOrder(Additive):
    """Weights with a covariance matrix S, the identity at first."""

    def __init__(self, n: int, full: bool = False, start: float = 0.0, inflation: float = 0.0) -> None:
        super().__init__(n, start)
        self.full, self.inflation = full, inflation
        self.S = np.eye(n)

    def learn(self, z: Vector, rate: float, shrink: float) -> bool:
        """w += rate S z; S -= shrink S z (S z)', and the inflation added to the diagonal (where z is not 0)."""
        pull = self.S @ z
        if not pull.any():
            return False
        self._w = self._w + rate * pull
        self.S = self.S - shrink * np.outer(pull, pull)
        if not self.full:
            self.S = np.diag(np.diag(self.S))
        self.S = self.S + self.inflation * np.diag(np.ones(self.n) if self.full else 1.0 * (z != 0.0))
        return True

    def grow(self, n: int) -> None:
        larger = np.eye(n)
        larger[: self.n, : self.n] = self.S
        self.S = larger
        super().grow(n)


class Arow(SecondOrder):
    """Crammer, Kulesza and Dredze (2009), figure 1."""

    def __init__(self, n: int, r: float = 1.0, full: bool = False, start: float = 0.0, inflation: float = 0.0) -> None:
        super().__init__(n, full, start, inflation)
        self.r = r

    def update(self, z: Vector) -> bool:
        m = margin_of(self.w, z, 1.0)
        if m >= 1.0:
            return False
        beta = 1.0 / (float(z @ self.S @ z) + self.r / self.weight)
        return self.learn(z, (1.0 - m) * beta, beta)


class Scw(SecondOrder):
    """Wang, Zhao and Hoi (2012), propositions 1 (SCW-I) and 2 (SCW-II)."""

    def __init__(self, n: int, variant: str, eta: float = 0.9, C: float = 1.0, full: bool = False) -> None:
        super().__init__(n, full)
        self.variant, self.C, self.phi = variant, C, float(norm.ppf(eta))

    def update(self, z: Vector) -> bool:
        phi, v, C = self.phi, float(z @ self.S @ z), self.C * self.weight
        m = margin_of(self.w, z, phi * math.sqrt(v))
        if phi * math.sqrt(v) - m <= 0.0:
            return False
        if self.variant == "I":
            psi, zeta = 1.0 + phi**2 / 2.0, 1.0 + phi**2
            a = (-m * psi + math.sqrt(m**2 * phi**4 / 4.0 + v * phi**2 * zeta)) / (v * zeta)
            a = min(C, max(0.0, a))
        else:
            n = v + 1.0 / (2.0 * C)
            gamma = phi * math.sqrt(phi**2 * m**2 * v**2 + 4.0 * n * v * (n + v * phi**2))
            a = max(0.0, (-(2.0 * m * n + phi**2 * m * v) + gamma) / (2.0 * (n**2 + n * v * phi**2)))
        u = 0.25 * (-a * v * phi + math.sqrt(a**2 * v**2 * phi**2 + 4.0 * v)) ** 2
        beta = a * phi / (math.sqrt(u) + v * a * phi)
        return self.learn(z, a, beta)


class Nherd(SecondOrder):
    """Crammer and Lee (2010): the full matrix, of which ``full=False`` keeps the diagonal."""

    def __init__(self, n: int, C: float = 1.0, full: bool = False) -> None:
        super().__init__(n, full)
        self.C = C

    def update(self, z: Vector) -> bool:
        m, C = margin_of(self.w, z, 1.0), self.C * self.weight
        if m >= 1.0:
            return False
        v = float(z @ self.S @ z)
        return self.learn(z, (1.0 - m) / (v + 1.0 / C), (C**2 * v + 2.0 * C) / (1.0 + C * v) ** 2)


class SecondOrderPerceptron(Additive):
    """Cesa-Bianchi, Conconi and Gentile (2005), with the present z left out of the matrix that predicts."""

    def __init__(self, n: int, a: float = 1.0, full: bool = False) -> None:
        super().__init__(n)
        self.a, self.full = a, full
        self.A, self.y = a * np.eye(n), np.zeros(n)

    @property
    def w(self) -> Vector:
        return np.linalg.solve(self.A, self.y) if self.full else self.y / np.diag(self.A)

    def update(self, z: Vector) -> bool:
        if self.full and not self.w.any() and self.A.trace() > self.a * self.n:
            doubt.smallest = 0.0  # what came back to 0 has left crumbs where the inverse is kept
        if margin_of(self.w, z, 0.0) > 0.0 or not z.any():
            return False
        self.A = self.A + self.weight * np.outer(z, z)
        self.y = self.y + self.weight * z
        return True

    def grow(self, n: int) -> None:
        larger = self.a * np.eye(n)
        larger[: self.n, : self.n] = self.A
        self.A, self.y = larger, np.append(self.y, np.zeros(n - self.n))
        super().grow(n)


class AdaGrad(Additive):
    """Duchi, Hazan and Singer (2011), diagonal, hinge loss."""

    def __init__(self, n: int, rate: float = 1.0) -> None:
        super().__init__(n)
        self.rate, self.G = rate, np.zeros(n)

    def update(self, z: Vector) -> bool:
        if margin_of(self.w, z, 1.0) >= 1.0:
            return False
        at = z != 0.0
        self.G = self.G + (self.weight * z) ** 2
        self._w = self._w.copy()
        self._w[at] += self.rate * self.weight * z[at] / np.sqrt(self.G[at])
        return bool(at.any())

    def grow(self, n: int) -> None:
        self.G = np.append(self.G, np.zeros(n - self.n))
        super().grow(n)


class Logistic(Additive):
    """The gradient of ln(1 + exp(-w.z))."""

    def __init__(self, n: int, rate: float = 1.0, l2: float = 0.0) -> None:
        super().__init__(n)
        self.rate, self.l2 = rate, l2

    def update(self, z: Vector) -> bool:
        shrunk = self.rate * self.l2 * np.where(z != 0.0, self._w, 0.0)
        self._w = self._w + self.rate * self.weight * z / (1.0 + math.exp(total(self.w * z))) - shrunk
        return True


class Ftrl(Additive):
    """McMahan et al. (2013), algorithm 1: the weights are made from z and n when they are asked for."""

    def __init__(self, n: int, alpha: float, beta: float, l1: float, l2: float, loss: str) -> None:
        super().__init__(n)
        self.alpha, self.beta, self.l1, self.l2, self.loss = alpha, beta, l1, l2, loss
        self.sums, self.squares = np.zeros(n), np.zeros(n)

    @property
    def w(self) -> Vector:
        rates = (self.beta + np.sqrt(self.squares)) / self.alpha + self.l2
        moved = -(self.sums - np.sign(self.sums) * self.l1)
        w = np.divide(moved, rates, out=np.zeros(self.n), where=rates > 0.0)
        return np.asarray(np.where(np.abs(self.sums) <= self.l1, 0.0, w))

    def update(self, z: Vector) -> bool:
        w = self.w
        if self.loss == "hinge":
            g = -self.weight * z if margin_of(w, z, 1.0) < 1.0 else 0.0 * z
        else:
            g = -self.weight * z / (1.0 + math.exp(total(w * z)))
        sigma = (np.sqrt(self.squares + g**2) - np.sqrt(self.squares)) / self.alpha
        self.sums = self.sums + g - sigma * w
        self.squares = self.squares + g**2
        return bool(g.any())

    def grow(self, n: int) -> None:
        more = np.zeros(n - self.n)
        self.sums, self.squares = np.append(self.sums, more), np.append(self.squares, more)
        super().grow(n)


class Romma(Additive):
    """Li and Long (2002), figure 2; z parallel to w is passed over.

    ``blur`` is what rounding may have been magnified to by steps that nearly divided by 0.
    """

    blur = 1e-16

    def update(self, z: Vector) -> bool:
        w, m = self.w, margin_of(self.w, z, 0.0)
        size, square = total(z * z), total(w * w)
        if self.blur > 1e-8:
            doubt.smallest = 0.0
        if m > 0.0 or size == 0.0:
            return False
        if square == 0.0:
            self._w = z / size
            return True
        apart = size * square - m**2
        if apart <= 1e-9 * size * square:
            return False
        self.blur = 1e-16 + self.blur * size * square / apart
        self._w = (size * square - m) / apart * w + square * (1.0 - m) / apart * z
        return True


class Violated(LinearMax):
    """z = x^label - x^j for every j with w.z <= reach when the trial is met, the highest score first."""

    reach = 0.0

    def _learn(self, x: Vector, label: int) -> int:
        scores, weights = self.scores(x), self.hypothesis()
        sign = 1 if self.tie == "smallest" else -1
        order = sorted((j for j in self.known if j != label), key=lambda j: (-scores[j], sign * self.known.index(j)))
        if not order:
            return 0
        leads = [total(weights * (x[label] - x[j])) for j in order]
        if not self.update_on_tie and self.best_of(scores) == label and leads[0] == 0.0:
            return 0
        updates = 0
        for place, (j, lead) in enumerate(zip(order, leads, strict=True)):
            if self.reach < math.inf:
                doubt.note(np.append(weights * (x[label] - x[j]), -self.reach))
            if lead > self.reach:
                break
            for other in order[place + 1 :]:
                doubt.note(weights * (x[j] - x[other]))
            updates += self.rule.update(x[label] - x[j])
        return updates


class OneVsAll(LinearMax):
    """z = x^label, then z = -x^j for every other known class: k two-class problems with threshold 0."""

    def _learn(self, x: Vector, label: int) -> int:
        others = [j for j in self.known if j != label]
        return int(self.rule.update(x[label])) + sum(self.rule.update(-x[j]) for j in others)

    def _discover(self, x: Vector, label: int) -> int:
        self.known.append(label)
        return self._learn(x, label)
