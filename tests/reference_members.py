"""The members of the pool for attributes that are no linear learners, slow and obvious."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, pairwise

import numpy as np

__all__ = ["ReferenceNearest", "ReferencePairs"]


class ReferencePairs:
    """Bins of attributes and their pairs, by name, each a feature of AROW against all classes."""

    def __init__(self, rows: np.ndarray, labels: np.ndarray, bins: int, k: int) -> None:
        self.k, self.means, self.variances = k, {}, {}
        self.edges, self.silent, self.levels, self.trials, telling = [], [], [], 0, []
        classes = Counter(labels.tolist())
        for values in rows.T.tolist():
            edges, size = self.edges_of(values, bins), len(values)
            places = [sum(v >= e for e in edges) for v in values]
            counts = Counter(places)
            place, many = max(counts.items(), key=lambda item: (item[1], -item[0]))
            self.edges.append(edges)
            quantiles = len(set(values)) > bins
            self.levels.append([sum(v < e for v in values) / size for e in edges] if quantiles else [])
            self.silent.append(place if many > size / 2 else None)
            joint = Counter(zip(places, labels.tolist(), strict=True))
            told = sum(n / size * math.log(n * size / (counts[b] * classes[c])) for (b, c), n in joint.items())
            telling.append(told - (len(counts) - 1) * (len(classes) - 1) / (2 * size))
        self.rank = sorted(range(len(telling)), key=lambda f: -telling[f])

    @staticmethod
    def edges_of(values: list[float], bins: int) -> list[float]:
        """Between the values if there are few, otherwise quantiles."""
        distinct, ordered = sorted(set(values)), sorted(values)
        if len(distinct) <= bins:
            return [(a + b) / 2 for a, b in pairwise(distinct)]
        return sorted({ordered[i * len(ordered) // bins] for i in range(1, bins)} - {ordered[0]})

    def features(self, x: np.ndarray) -> list:
        """The constant, the bins that speak, and pairs of them."""
        bins = [(f, sum(x[f] >= e for e in self.edges[f])) for f in self.rank]
        bins = [(f, place) for f, place in bins if place != self.silent[f]]
        return [(), *bins, *(tuple(sorted(pair)) for pair in combinations(bins[:20], 2))]

    def scores(self, x: np.ndarray) -> np.ndarray:
        """Before the trial is learned."""
        found = self.features(x)
        return sum(self.means.get(name, np.zeros(self.k)) for name in found) / math.sqrt(len(found))

    def learn(self, x: np.ndarray, label: int) -> None:
        """One step for each class; then the edges follow."""
        found, scores = self.features(x), self.scores(x)
        spread = sum(self.variances.setdefault(name, np.ones(self.k)).copy() for name in found) / len(found)
        sign = np.where(np.arange(self.k) == label, 1.0, -1.0)
        loss = np.maximum(0.0, 1.0 - sign * scores)
        beta = np.where(loss > 0, 1.0 / (spread + 0.1), 0.0)
        for name in found:
            variance = self.variances[name]
            self.means[name] = self.means.get(name, 0.0) + sign * loss * beta * variance / math.sqrt(len(found))
            self.variances[name] = variance - beta * variance**2 / len(found)
        for f, (edges, levels) in enumerate(zip(self.edges, self.levels, strict=True)):
            if len(levels) > 1:
                place = self.trials % len(levels)
                beyond = [2 * edges[0] - edges[1], *edges, 2 * edges[-1] - edges[-2]]
                step = 0.004 * (levels[place] - (x[f] < edges[place])) * (beyond[place + 2] - beyond[place])
                if beyond[place] < edges[place] + step < beyond[place + 2]:
                    edges[place] += step
        self.trials += 1


class ReferenceNearest:
    """The nearest of the rows that were not predicted surely."""

    def __init__(self, k: int) -> None:
        self.k, self.rows, self.kept = k, [], []

    def scores(self, x: np.ndarray) -> np.ndarray:
        """Before the trial is learned; the deviations are those of all rows and this one."""
        said, past = np.zeros(self.k), np.array([*self.rows, x])
        spread = past.std(axis=0)
        steady = spread <= 1e-10 * np.abs(past.mean(axis=0))
        away = [(np.where(steady, 0.0, (x - row) / np.where(steady, 1.0, spread)) ** 2).sum() for row, _ in self.kept]
        near = 1e-3 * len(x)
        for distance, (_, label) in zip(away, self.kept, strict=True):
            if distance < 4 * (min(away) + near):
                said[label] += ((min(away) + near) / (distance + near)) ** 8
        return said / said.sum() if said.any() else said

    def learn(self, x: np.ndarray, label: int) -> None:
        """Remember the row if it was not predicted surely."""
        if self.scores(x)[label] < 0.9:
            self.kept.append((x, label))
        self.rows.append(x)
