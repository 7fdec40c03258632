"""Bounds in the mean and on log loss: fixed share against every sequence of members, selective sampling exactly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from linmax.theory import bounds

Vector = npt.NDArray[np.float64]


# -- fixed share -----------------------------------------------------------------------------------------


def mixed(likelihoods: Vector, share: float) -> float:
    """Log loss of fixed share on the probabilities (trials, members) that the members gave to the labels."""
    m = likelihoods.shape[1]
    weights, loss = np.full(m, 1.0 / m), 0.0
    for given in likelihoods:
        weights = weights * given
        loss -= math.log(float(weights.sum()))
        weights = weights / weights.sum()
        if m > 1:
            weights = (1.0 - share) * weights + share / (m - 1) * (1.0 - weights)
    return loss


def switches(sequence: tuple[int, ...]) -> int:
    return sum(a != b for a, b in itertools.pairwise(sequence))


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("share", [0.01, 0.2, 0.7])
def test_fixed_share_against_every_sequence(m: int, share: float) -> None:
    random = np.random.default_rng(m)
    for trials in (1, 2, 6):
        likelihoods = random.beta(0.3, 0.3, (trials, m)).clip(1e-6, 1.0)
        loss, total = mixed(likelihoods, share), 0.0
        for sequence in itertools.product(range(m), repeat=trials):
            best = -float(np.log(likelihoods[np.arange(trials), sequence]).sum())
            regret = bounds.fixed_share(m, trials, switches(sequence), share)
            assert loss <= best + regret + 1e-9
            total += math.exp(-regret)
        assert total == pytest.approx(1.0)  # the regrets are the prior of the sequences: none could be smaller for all


@pytest.mark.parametrize("times", [0, 1, 5])
def test_an_adversary_reaches_the_regret_of_fixed_share(times: int) -> None:
    """All members but one give the label no chance; which one changes."""
    m, trials = 4, 60
    leader = np.minimum(np.arange(trials) // 10, times) % m
    share = bounds.best_share_rate(trials, times) or 1e-3
    loss = mixed(np.eye(m)[leader], share)
    assert loss == pytest.approx(bounds.fixed_share(m, trials, times, share))


def test_fixed_share_numbers() -> None:
    m, trials, s = 5, 1001, 10
    share = bounds.best_share_rate(trials, s)
    entropy = -share * math.log(share) - (1 - share) * math.log(1 - share)
    least = bounds.fixed_share(m, trials, s, share)
    assert least == pytest.approx(math.log(m) + s * math.log(m - 1) + (trials - 1) * entropy)
    assert all(least <= bounds.fixed_share(m, trials, s, a) for a in np.geomspace(1e-4, 0.5, 50))
    assert bounds.fixed_share(m, trials, s, 0.0) == math.inf
    assert bounds.fixed_share(m, trials, s, 1.0) == math.inf
    assert bounds.fixed_share(2, 3, 2, 1.0) == math.log(2)
    assert bounds.fixed_share(m, trials, s, share, rate=2.0) == pytest.approx(least / 2)
    wide = bounds.fixed_share(m, trials, s, share * (m - 1) / m)  # share/m to every member, itself included
    prior = -math.log(m) + s * math.log(share / m) + (trials - 1 - s) * math.log(1 - share + share / m)
    assert wide == pytest.approx(-prior)


# -- selective sampling ----------------------------------------------------------------------------------


def expected(trials: list[Vector], label: list[int], u: Vector, margin: float, b: float) -> tuple[float, float]:
    """Exact means over all draws: mistakes, and the hinge loss of u on trials asked for and wrong.

    A trial is a matrix (classes, n). Only trials with a wrong prediction branch: the others never change the weights.
    """

    def go(t: int, w: Vector) -> tuple[float, float]:
        if t == len(trials):
            return 0.0, 0.0
        scores = trials[t] @ w
        first = int(np.argmax(scores))
        if first == label[t]:
            return go(t + 1, w)
        lead = float(scores[first] - np.sort(scores)[-2])
        ask = b / (b + lead)
        z = trials[t][label[t]] - trials[t][first]
        loss = max(0.0, margin - float(u @ z))
        taught, same = go(t + 1, w + z), go(t + 1, w) if ask < 1.0 else (0.0, 0.0)
        return 1.0 + ask * taught[0] + (1 - ask) * same[0], ask * (loss + taught[1]) + (1 - ask) * same[1]

    return go(0, np.zeros(trials[0].shape[1]))


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("flips", [0.0, 0.3])
def test_selective_sampling_in_the_exact_mean(k: int, flips: float) -> None:
    for seed in range(15):
        random = np.random.default_rng(seed)
        u = random.normal(size=3)
        x = [random.normal(size=(k, 3)) for _ in range(12)]
        labels = [int(random.integers(k)) if random.random() < flips else int(np.argmax(matrix @ u)) for matrix in x]
        z = [m[y] - m[j] for m, y in zip(x, labels, strict=True) for j in range(k) if j != y]
        radius = max(float(np.linalg.norm(v)) for v in z)
        for margin in (0.1, 1.0, 5.0):
            for b in (0.05, 1.0, 20.0):
                mistakes, noise = expected(x, labels, u, margin, b)
                norm = float(np.linalg.norm(u))
                assert mistakes <= bounds.selective_perceptron(radius, norm, margin, b, noise) * (1 + 1e-9)


def sampled(next_z: Callable[[Vector], Vector], b: float, trials: int, seed: int) -> int:
    random = np.random.default_rng(seed)
    w, wrong = np.zeros(next_z(np.zeros(1)).size), 0
    for _ in range(trials):
        z = next_z(w)
        lead = float(w @ z)
        if lead > 0.0:
            continue
        wrong += 1
        if random.random() < b / (b - lead):
            w = w + z
    return wrong


def test_an_adversary_comes_near_to_the_bound_of_selective_sampling() -> None:
    """Unit vectors a little on the wrong side of the weights, with margin gamma for u = e_0: at best b, near R^2/gamma^2."""
    n, margin = 200, 0.2
    b = bounds.best_selective_b(1.0, 1.0, margin)

    def next_z(w: Vector) -> Vector:
        z = np.zeros(n)
        z[0] = margin
        if w.size == n and w[1:].any():
            back = w[1:] / np.linalg.norm(w[1:])
            size = min(0.99, (w[0] * margin + 1e-6) / float(np.linalg.norm(w[1:])))
            z[1:] -= size * back
        free = np.zeros(n)
        unused = [i for i in range(1, n) if w.size != n or w[i] == 0.0]
        free[unused[0]] = math.sqrt(max(0.0, 1.0 - float(z @ z)))
        return z + free

    runs = [sampled(next_z, b, 60, seed) for seed in range(20)]
    bound = bounds.selective_perceptron(1.0, 1.0, margin, b)
    assert bound == pytest.approx(25.0)
    assert 0.8 * bound < float(np.mean(runs)) <= bound * (1 + 1e-3)


def test_selective_sampling_numbers() -> None:
    assert bounds.selective_perceptron(2.0, 1.0, 0.5, 2.0) == pytest.approx(bounds.perceptron(2.0, 1.0, 0.5))
    assert bounds.selective_perceptron(1.0, 1.0, 0.0, 1.0) == math.inf
    b = bounds.best_selective_b(1.5, 2.0, 0.3, 4.0)
    least = bounds.selective_perceptron(1.5, 2.0, 0.3, b, 4.0)
    assert all(least <= bounds.selective_perceptron(1.5, 2.0, 0.3, c, 4.0) + 1e-9 for c in np.geomspace(0.01, 100, 99))
