"""Learners that use all classes, slow and obvious: every instance is a full (k, n) matrix of ratings."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["ReferenceSoftmax"]


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
