"""Learners that use all classes, slow and obvious: every instance is a full (k, n) matrix of ratings."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["ReferenceBayes", "ReferencePool", "ReferenceSoftmax", "shares"]


def shares(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


class ReferenceSoftmax:
    """Conditional logit: Kalman steps, Newton refits at trials 10, 15, 22, ...; with ``robust`` a guess rate by EM."""

    def __init__(self, n: int, prior: float, robust: bool) -> None:
        self.prior, self.robust = prior, robust
        self.weights, self.curvature = np.zeros(n), prior * np.eye(n)
        self.guess = 0.1 if robust else 0.0
        self.seen: list[tuple[np.ndarray, int]] = []
        self.due = 10

    def scores(self, x: np.ndarray) -> np.ndarray:
        return x @ self.weights

    def sure(self, p: np.ndarray, label: int, guess: float) -> float:
        return (1 - guess) * p[label] / ((1 - guess) * p[label] + guess / len(p))

    def learn(self, x: np.ndarray, label: int) -> None:
        p = shares(self.scores(x))
        sure = self.sure(p, label, self.guess)
        self.curvature += sure * x.T @ (np.diag(p) - np.outer(p, p)) @ x
        self.weights = self.weights + np.linalg.solve(self.curvature, sure * (x[label] - p @ x))
        self.seen.append((x, label))
        if len(self.seen) == self.due:
            self.refit()
            self.due += self.due // 2

    def posterior(self, weights: np.ndarray, guess: float) -> tuple[float, np.ndarray, np.ndarray, float]:
        """Logarithm, gradient and curvature of the posterior, and the expected number of guesses."""
        value = -self.prior / 2 * weights @ weights
        if self.robust:
            value += math.log(guess) + 9 * math.log(1 - guess)
        gradient, curvature, guesses = -self.prior * weights, self.prior * np.eye(len(weights)), 0.0
        for x, label in self.seen:
            p = shares(x @ weights)
            value += math.log((1 - guess) * p[label] + guess / len(p))
            sure = self.sure(p, label, guess)
            gradient = gradient + sure * (x[label] - p @ x)
            curvature = curvature + sure * x.T @ (np.diag(p) - np.outer(p, p)) @ x
            guesses += 1 - sure
        return value, gradient, curvature, guesses

    def refit(self) -> None:
        value, gradient, self.curvature, guesses = self.posterior(self.weights, self.guess)
        for _ in range(20):
            direction = np.linalg.solve(self.curvature, gradient)
            guess = (1 + guesses) / (10 + len(self.seen)) if self.robust else 0.0
            for halvings in range(10):
                length = 0.5**halvings
                tried = self.posterior(self.weights + length * direction, guess)
                if tried[0] >= value + 1e-4 * length * (gradient @ direction):
                    break
            else:
                return
            gain = tried[0] - value
            self.weights, self.guess = self.weights + length * direction, guess
            value, gradient, self.curvature, guesses = tried
            if gain < 0.02:
                return


class ReferenceBayes:
    """Complement naive Bayes over dense rows >= 0."""

    def __init__(self, columns: int, k: int, smoothing: float) -> None:
        self.counts, self.seen, self.smoothing = np.zeros((columns, k)), np.zeros(columns, bool), smoothing

    def scores(self, x: np.ndarray) -> np.ndarray:
        others = self.counts.sum(axis=1, keepdims=True) - self.counts + self.smoothing
        total = self.counts.sum() - self.counts.sum(axis=0) + self.smoothing * self.seen.sum()
        if not self.seen.any():
            return np.zeros(self.counts.shape[1])
        return -(x[:, None] * np.log(others)).sum(axis=0) + x.sum() * np.log(total)

    def learn(self, x: np.ndarray, label: int) -> None:
        self.counts[:, label] += x
        self.seen |= x != 0


def rival_of(scores: np.ndarray, label: int) -> int:
    return int(np.argmax(np.where(np.arange(len(scores)) == label, -np.inf, scores)))


class ReferencePa:
    """PA-I, C = 1, on attributes: the row of the label gains what that of the best rival loses."""

    def __init__(self, columns: int, k: int) -> None:
        self.weights = np.zeros((columns, k))

    def scores(self, x: np.ndarray) -> np.ndarray:
        return x @ self.weights

    def learn(self, x: np.ndarray, label: int) -> None:
        scores = self.scores(x)
        rival = rival_of(scores, label)
        step = min(1.0, max(0.0, 1.0 - scores[label] + scores[rival]) / (2 * x @ x)) if x.any() else 0.0
        self.weights[:, label] += step * x
        self.weights[:, rival] -= step * x


class ReferenceArow:
    """AROW with a diagonal, r = .1, a two-class problem for each class."""

    def __init__(self, columns: int, k: int) -> None:
        self.weights, self.variances = np.zeros((columns, k)), np.ones((columns, k))

    def scores(self, x: np.ndarray) -> np.ndarray:
        return x @ self.weights

    def learn(self, x: np.ndarray, label: int) -> None:
        for c, score in enumerate(self.scores(x)):
            y = 1.0 if c == label else -1.0
            if y * score < 1.0:
                along = self.variances[:, c] * x
                beta = 1.0 / (x @ along + 0.1)
                self.weights[:, c] += (1.0 - y * score) * beta * y * along
                self.variances[:, c] -= beta * along**2


class ReferenceScw:
    """SCW-I with a diagonal, eta = .9, C = 1, against the best rival."""

    def __init__(self, columns: int, k: int) -> None:
        self.weights, self.variances = np.zeros((columns, k)), np.ones((columns, k))

    def scores(self, x: np.ndarray) -> np.ndarray:
        return x @ self.weights

    def learn(self, x: np.ndarray, label: int) -> None:
        scores = self.scores(x)
        rival = rival_of(scores, label)
        phi = 1.2815515655446004
        m = scores[label] - scores[rival]
        v = x**2 @ (self.variances[:, label] + self.variances[:, rival])
        if phi * math.sqrt(v) <= m:
            return
        psi, xi = 1 + phi**2 / 2, 1 + phi**2
        a = min(1.0, max(0.0, (-m * psi + math.sqrt(m**2 * phi**4 / 4 + v * phi**2 * xi)) / (v * xi)))
        u = 0.25 * (-a * v * phi + math.sqrt(a**2 * v**2 * phi**2 + 4 * v)) ** 2
        b = a * phi / (math.sqrt(u) + v * a * phi)
        for c, sign in ((label, 1.0), (rival, -1.0)):
            along = self.variances[:, c] * x
            self.weights[:, c] += sign * a * along
            self.variances[:, c] -= b * along**2


class ReferenceAveraged:
    """The Perceptron, which predicts with the mean of the hypotheses with which it met each trial."""

    def __init__(self, columns: int, k: int) -> None:
        self.weights, self.sum, self.trials = np.zeros((columns, k)), np.zeros((columns, k)), 0

    def scores(self, x: np.ndarray) -> np.ndarray:
        return x @ (self.sum + self.weights) / (self.trials + 1)

    def learn(self, x: np.ndarray, label: int) -> None:
        self.sum += self.weights
        self.trials += 1
        scores = x @ self.weights
        rival = rival_of(scores, label)
        if scores[label] <= scores[rival]:
            self.weights[:, label] += x
            self.weights[:, rival] -= x


def unit(x: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(x)
    return x / length if length else x


class ReferencePool:
    """The pool for attributes: members on scaled rows, whose shares are fused by a full AROW."""

    def __init__(self, sparse: bool, columns: int, k: int, constant: float = 1.0) -> None:
        self.sparse, self.k, self.trials, self.constant = sparse, k, 0, constant
        makers = (ReferencePa, ReferenceArow) if sparse else (ReferencePa, ReferenceScw, ReferenceAveraged)
        self.members: list = [maker(columns + 1, k) for maker in makers]
        if sparse:
            self.members.append(ReferenceBayes(columns + 1, k, 0.1))
        self.recent, self.frequency = np.zeros(k), np.zeros(columns)
        self.rows: list[np.ndarray] = []
        n = len(self.members) + sparse
        self.weights, self.matrix, self.squares = np.ones(n), np.eye(n), np.zeros(n)

    def inputs(self, x: np.ndarray) -> list[np.ndarray]:
        """The row as each member sees it, the constant first."""
        if self.sparse:
            value, present = np.append(math.log1p(self.constant), np.log1p(x)), x > 0
            self.frequency += present
            idf = np.where(present, np.log((self.trials + 2) / np.maximum(self.frequency, 1)), 0.0)
            rare = value * np.append(1.0, idf)
            return [unit(rare), unit(value), unit(value)]
        self.rows.append(x)
        past, root = np.array(self.rows), math.sqrt(len(x))
        deviation = past.std(axis=0)
        scaled = np.clip(
            np.divide(x - past.mean(axis=0), deviation, out=np.zeros(len(x)), where=deviation > 1e-9), -5, 5
        )
        return [np.append(self.constant, scaled / root), *[np.append(self.constant, scaled) / root] * 2]

    def trial(self, x: np.ndarray, label: int) -> tuple[np.ndarray, np.ndarray]:
        """The members' shares and the fused scores, before the trial is learned."""
        inputs = self.inputs(x)
        scores = [member.scores(row) for member, row in zip(self.members, inputs, strict=True)]
        if self.sparse:
            scores.append(self.recent)
        self.trials += 1
        votes = []
        for m, given in enumerate(scores):
            centred = given - given.mean()
            self.squares[m] += (centred**2).mean()
            root = math.sqrt(self.squares[m] / self.trials)
            votes.append(shares(centred / root if root > 0 else centred))
        table = np.array(votes)
        fused = self.weights @ table
        z = table[:, label] - table[:, rival_of(fused, label)]
        margin = self.weights @ z
        if margin < 1.0:
            along = self.matrix @ z
            b = 1.0 / (z @ along + 10.0)
            self.weights = self.weights + (1.0 - margin) * b * along
            self.matrix = self.matrix - b * np.outer(along, along) + 1e-4 * np.eye(len(z))
        for member, row in zip(self.members, inputs, strict=True):
            member.learn(row, label)
        self.recent = 0.8 * self.recent + np.eye(self.k)[label]
        return table, fused
