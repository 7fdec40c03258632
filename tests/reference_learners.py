"""Learners that use all classes, slow and obvious: every instance is a full (k, n) matrix of ratings."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from reference_members import ReferenceNearest, ReferencePairs

__all__ = ["ReferenceBayes", "ReferencePool", "ReferenceSoftmax", "ReferenceVotes", "shares"]


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

    def odds(self) -> np.ndarray:
        """log(p(c | f) / p(c)) for each attribute f and class c; each attribute is drawn to the average by .3."""
        totals = self.counts.sum(axis=0)
        shares = totals / max(totals.sum(), 1e-300)
        ratios = np.divide(self.counts, shares, out=np.zeros_like(self.counts), where=shares > 0) + 0.3
        return np.log(ratios / (self.counts.sum(axis=1, keepdims=True) + 0.3))

    def divergences(self) -> np.ndarray:
        """Of the classes where an attribute is from the classes on average."""
        totals = self.counts.sum(axis=0)
        if not totals.any():
            return np.zeros(len(self.counts))
        ratios = self.odds()
        return (totals / totals.sum() * np.exp(ratios) * ratios).sum(axis=1)


class ReferenceOdds:
    """Log odds of the classes by what naive Bayes counted."""

    def __init__(self, bayes: ReferenceBayes) -> None:
        self.bayes = bayes

    def scores(self, x: np.ndarray) -> np.ndarray:
        return x @ self.bayes.odds()

    def learn(self, x: np.ndarray, label: int) -> None:
        """Naive Bayes counts."""


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


class ReferenceKalman:
    """Softmax by a Kalman filter with a diagonal for each class, of prior variance 10; of numbers it forgets as it learns."""

    def __init__(self, columns: int, k: int, forgetting: float = 1 / 200) -> None:
        self.weights, self.variances, self.forgetting = np.zeros((columns, k)), np.full((columns, k), 10.0), forgetting

    def scores(self, x: np.ndarray) -> np.ndarray:
        return x @ self.weights

    def learn(self, x: np.ndarray, label: int) -> None:
        for c, share in enumerate(shares(self.scores(x))):
            along, curvature = self.variances[:, c] * x, share * (1.0 - share)
            size = 1.0 + curvature * (x @ along)
            self.weights[:, c] += ((c == label) - share) * along / size
            smaller = self.variances[:, c] - curvature * along**2 / size
            self.variances[:, c] = np.minimum(10.0, (1.0 + self.forgetting * curvature) * smaller)


def unit(x: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(x)
    return x / length if length else x


class ReferenceLogit:
    """A conditional logit over members: one for new rows, one for rows that were learned before."""

    def __init__(self, members: int) -> None:
        self.weights = np.tile([0.3, 0.0], members)
        self.matrix = np.diag(np.tile([0.1, 0.03], members))
        self.intercepts: list[float] = []
        self.curvatures: list[float] = []

    def shares(self, inputs: np.ndarray) -> np.ndarray:
        return shares(np.array(self.intercepts) + inputs @ self.weights)

    def learn(self, inputs: np.ndarray, label: int, weight: float) -> None:
        """One Newton step; a label of -2 - c says that it is not class c."""
        found = self.shares(inputs)
        wanted = np.eye(len(found))[label] if label >= 0 else np.where(np.arange(len(found)) == -2 - label, 0.0, found)
        gap = wanted / wanted.sum() - found
        weight = min(weight, 100.0)
        for c, share in enumerate(found):
            self.curvatures[c] += weight * share * (1.0 - share)
            self.intercepts[c] += weight * gap[c] / (4.0 + self.curvatures[c])
        pull = gap @ inputs
        along = self.matrix @ pull
        size = 1.0 + weight * (pull @ along)
        self.weights = self.weights + weight * along / size
        self.matrix = self.matrix - weight * np.outer(along, along) / size + 5e-6 * np.eye(len(pull))
        if label < 0:
            self.weights = np.maximum(self.weights, 0.0)


class ReferenceFusion:
    """The members' scores and votes, two logits over them, and a set of the rows that were learned."""

    def __init__(self, members: int) -> None:
        self.logits = [ReferenceLogit(members), ReferenceLogit(members)]
        self.squares, self.trials, self.repeats, self.seen = np.zeros(members), 0, 0, set[object]()

    def inputs(self, scores: np.ndarray) -> np.ndarray:
        """z and votes, a row for each class, for scores (members, classes)."""
        if not scores.size:
            return np.zeros((0, 2 * len(scores)))
        centered = scores - scores.mean(axis=1, keepdims=True)
        own = (centered**2).mean(axis=1)
        size = np.sqrt(self.squares / max(self.trials, 1) + 0.3 * own)
        standard = np.divide(centered, size[:, None], out=np.zeros_like(centered), where=size[:, None] > 0.0)
        highest = scores == scores.max(axis=1, keepdims=True)
        votes = highest * (highest.sum(axis=1, keepdims=True) == 1)
        return np.stack([standard, votes], axis=1).reshape(-1, scores.shape[1]).T

    def shares(self, row: object, scores: np.ndarray) -> np.ndarray:
        """Probabilities of the classes known."""
        return self.logits[row in self.seen and self.repeats > 0].shares(self.inputs(scores))

    def learn(self, row: object, scores: np.ndarray, label: int, weight: float = 1.0) -> None:
        inputs, known = self.inputs(scores), scores.shape[1]
        self.squares += scores.var(axis=1) if known else 0.0
        if row in self.seen:
            if not self.repeats:
                first, fresh = self.logits[0], ReferenceLogit(scores.shape[0])
                self.logits[1] = fresh
                fresh.weights = first.weights
                fresh.intercepts, fresh.curvatures = [*first.intercepts], [*first.curvatures]
            self.repeats += 1
        if label >= known:
            self.announce(label)
        elif known > 1:
            self.logits[row in self.seen].learn(inputs, label, weight)
        self.seen.add(row)
        self.trials += 1

    def announce(self, label: int) -> None:
        """Let a class be known: it gets the share 1 / (t + 2) of what the intercepts give to all."""
        for logit in self.logits:
            own = np.array(logit.intercepts)
            logit.intercepts.append(math.log(np.exp(own).sum() / (self.trials + 1.0)) if label else 0.0)
            logit.curvatures.append(0.0)


class ReferencePool:
    """The pool for attributes: members on scaled rows, fused by a logit over them.

    Dense rows are gone through again from the beginning at trials 16, 64, ..., with bins made of them.
    """

    def __init__(self, sparse: bool, columns: int, k: int, constant: float = 1.0) -> None:
        self.columns, self.past = columns, []
        self.begin(sparse, columns, k, constant)

    def begin(self, sparse: bool, columns: int, k: int, constant: float) -> None:
        """Nothing was met."""
        self.sparse, self.k, self.trials, self.constant = sparse, k, 0, constant
        self.raw: list = [] if sparse else [None, None, ReferenceNearest(k)]
        dense = (ReferencePa, ReferenceScw, ReferenceAveraged, ReferenceKalman)
        makers = (ReferencePa, partial(ReferenceKalman, forgetting=0.0)) if sparse else dense
        self.members: list = [maker(columns + 1, k) for maker in makers]
        if sparse:
            self.members.append(ReferenceBayes(columns + 1, k, 0.1))
            self.members.append(ReferenceOdds(self.members[-1]))
        self.recent, self.frequency = np.zeros(k), np.zeros(columns)
        self.rows: list[np.ndarray] = []
        self.fusion = ReferenceFusion(len(self.members) + (1 if sparse else 3))
        for _ in range(k):  # all are known from the start
            self.fusion.announce(0)

    def inputs(self, x: np.ndarray) -> list[np.ndarray]:
        """The row as each member sees it, the constant first."""
        if self.sparse:
            value, present = np.append(math.log1p(self.constant), np.log1p(x)), x > 0
            self.frequency += present
            idf = np.where(present, np.log((self.trials + 2) / np.maximum(self.frequency, 1)), 0.0)
            rare = value * np.append(1.0, idf)
            telling = unit(rare * (0.1 + self.members[2].divergences()))
            return [telling, unit(value), unit(rare), telling]
        self.rows.append(x)
        past, root = np.array(self.rows), math.sqrt(len(x))
        deviation = past.std(axis=0)
        scaled = np.clip(
            np.divide(x - past.mean(axis=0), deviation, out=np.zeros(len(x)), where=deviation > 1e-9), -5, 5
        )
        return [np.append(self.constant, scaled / root), *[np.append(self.constant, scaled) / root] * 3]

    def trial(self, x: np.ndarray, label: int) -> np.ndarray:
        """Log probabilities of a row that is only predicted; then it is learned, at times with all rows once more."""
        found = self.one_trial(x, label)
        self.past.append((x, label))
        size = len(self.past)
        if not self.sparse and size in (16, 64, 256, 512):
            self.begin(self.sparse, self.columns, self.k, self.constant)
            rows, labels = np.array([row for row, _ in self.past]), np.array([label for _, label in self.past])
            self.raw[:2] = [ReferencePairs(rows, labels, bins, self.k) for bins in (8, 16)]
            for row, own in self.past:
                self.one_trial(row, own)
        return found

    def one_trial(self, x: np.ndarray, label: int) -> np.ndarray:
        """One of them."""
        inputs = self.inputs(x)
        scores = [member.scores(row) for member, row in zip(self.members, inputs, strict=True)]
        if self.sparse:
            scores.append(self.recent)
        scores += [np.zeros(self.k) if member is None else member.scores(x) for member in self.raw]
        self.trials += 1
        table = np.array(scores, float)
        judged = table.copy()
        if self.sparse:
            judged[-1] = 0.0  # recent labels say nothing of a row that is only predicted
        found = np.log(self.fusion.shares(x.tobytes(), judged))
        self.fusion.learn(x.tobytes(), table, label)
        for member, row in zip(self.members, inputs, strict=True):
            member.learn(row, label)
        for own in self.raw:
            if own is not None:
                own.learn(x, label)
        self.recent = 0.8 * self.recent + np.eye(self.k)[label]
        return found


class ReferenceVotes:
    """The pool for voters and raters, all classes known: four logits, a robust softmax, the best juror, two shares, and
    a corrected logit.

    Coordinates: share of votes, whether a class is named, votes of the jury, scores, thresholds; then the evidence of
    all and, with ``full`` precision, that of each juror. Otherwise the logits keep the diagonal of their precision.
    """

    wide = (False, False, True, True)
    ridge = (10.0, 10.0, 10.0, 1.0)
    kept = (0.999, 0.99, 1.0, 1.0)

    def __init__(self, voters: int, raters: int, k: int, thresholds: bool, full: bool = True) -> None:
        self.voters, self.raters, self.k, self.thresholds, self.full = voters, raters, k, thresholds, full
        self.jurors = voters + raters
        self.narrow = 2 + self.jurors + raters + k * thresholds
        n = self.narrow + 1 + self.jurors * full
        self.home = np.zeros((4, n))
        self.home[:, :2] = 1.0
        self.weights = self.home.copy()
        self.precision = [ridge * np.eye(n) for ridge in self.ridge]
        self.heard = np.zeros(n, bool)
        self.sizes: list[list[np.ndarray]] = [[] for _ in range(raters)]
        self.refitted = ReferenceSoftmax(self.narrow - 2, 0.1, True)
        self.mixture = np.array([1.0, 1.0, 0.5, 0.02, 0.01, 0.1, 20.0, 10.0, 0.02])
        self.mixture /= self.mixture.sum()
        self.guesses = np.array([0.1] * 6 + [0.0, 0.1, 0.1])
        self.pulls, self.bends = np.zeros((2, self.jurors, k, k))  # of corrections, by juror, vote and class
        self.factors = [(1.0, 1.0)] * 2  # by which scores are sharpened, and their precisions
        self.past: list[tuple[list[int], np.ndarray, float]] = []  # votes of the jury, target, how much it counted
        self.rows: list[tuple[np.ndarray, np.ndarray]] = []  # without a label: votes, and the probabilities taken
        self.beyond = [0.0, 0.0]  # how far jurors agreed beyond their habits, and the variance
        self.usual = [0.0, 0.0]  # votes that were weighed, and their weights
        self.trials = 0

    def jury(self, votes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """The votes, and those of raters: their highest class, if there is a difference."""
        return np.array([*votes, *(-1 if np.ptp(given) == 0.0 else given.argmax() for given in scores)], int)

    def counts(self, i: int) -> tuple[float, float, np.ndarray]:
        """Votes of juror i, right ones, and how often it named which class (label, named)."""
        table = np.zeros((self.k, self.k))
        for row, target, sure in self.past:
            if row[i] >= 0:
                table[:, row[i]] += sure * target
        return table.sum(), np.trace(table), table

    def evidence(self, jury: np.ndarray) -> np.ndarray:
        """(jurors, k): what each vote says, by what was named before."""
        found = np.zeros((len(jury), self.k))
        totals = np.array([self.counts(i)[:2] for i in range(len(jury))]).reshape(-1, 2)
        usual = (totals[:, 1].sum() + 1) / (totals[:, 0].sum() + 2)
        labels = np.sum([sure * target for _, target, sure in self.past], axis=0) if self.past else np.zeros(self.k)
        for i, vote in enumerate(jury):
            if vote < 0:
                continue
            votes, hits, table = self.counts(i)
            good = (hits + 5 * usual) / (votes + 5)
            habit = (table.sum(axis=0) + 5 / self.k) / (votes + 5)
            for c in range(self.k):
                guess = good if c == vote else (1 - good) * habit[vote] / (1 - habit[c])
                share = labels[c] / labels.sum() if labels.sum() else 0.0
                found[i, c] = np.log((table[c, vote] + 5 * guess) / (votes * share + 5))
        return found

    def ballots(self, votes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Votes for each class; raters divide theirs by softmax of their scores over the size of these so far."""
        counts = np.array([(votes == c).sum() for c in range(self.k)], float)
        for given, z in zip(scores, self.scaled(scores), strict=True):
            counts += shares(z) if np.ptp(given) else 0.0
        return counts

    def scaled(self, scores: np.ndarray) -> np.ndarray:
        """Scores, centred and divided by the root of their mean square so far."""
        found = np.zeros((self.raters, self.k))
        for i, given in enumerate(scores):
            centred = given - given.mean()
            if centred.any():
                found[i] = centred / np.sqrt(np.mean([*(past**2 for past in self.sizes[i]), centred**2]))
        return found

    def matrix(self, votes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """(k, n) ratings; votes are -1 where a voter abstains."""
        x, jury, counts = (
            np.zeros((self.k, self.weights.shape[1])),
            self.jury(votes, scores),
            self.ballots(votes, scores),
        )
        for i, vote in enumerate(jury):
            if vote >= 0:
                x[vote, 2 + i] = x[vote, 1] = 1.0
        x[:, 0] = counts / max(counts.sum(), 1.0)
        x[:, 2 + self.jurors : 2 + self.jurors + self.raters] = 0.3 * self.scaled(scores).T
        if self.thresholds:
            x[:, self.narrow - self.k : self.narrow] = np.eye(self.k)
        evidence = 0.3 * self.evidence(jury)
        evidence -= evidence.mean(axis=1, keepdims=True)
        x[:, self.narrow] = evidence.sum(axis=0)
        if self.full:
            x[:, self.narrow + 1 :] = evidence.T
        return x

    def given(self, votes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """What the robust softmax sees."""
        x = self.matrix(votes, scores)[:, 2 : self.narrow]
        x[:, self.jurors : self.jurors + self.raters] = scores.T
        return x

    def welcomed(self, x: np.ndarray) -> np.ndarray:
        """The weights, and those of newcomers."""
        weights = self.weights.copy()
        first, last = 2 + self.jurors, 2 + self.jurors + self.raters
        for block in (slice(2, first), slice(first, last)):
            old = self.heard[block]
            new = x[:, block].any(axis=0) & ~old
            for m in range(4):
                weights[m, block][new] = (0.03 + self.weights[m, block][old].sum()) / (1 + old.sum())
        return weights

    def seen(self, m: int, x: np.ndarray) -> np.ndarray:
        """The ratings that logit m sees."""
        return np.asarray(x * (self.wide[m] | (np.arange(x.shape[1]) < self.narrow)))

    def rated(self, votes: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
        """The scores of the logits."""
        x = self.matrix(votes, scores)
        return [self.seen(m, x) @ weights for m, weights in enumerate(self.welcomed(x))]

    def odds(self, i: int) -> float:
        """Log odds of juror i, by labels and, fading, by rows without."""
        votes, hits, _ = self.counts(i)
        fading = 50 / (50 + sum(sure for _, _, sure in self.past))
        squared = max(0.0, self.beyond[0]) ** 2 / max(self.beyond[1], 1e-300)
        habits = np.bincount([row[i] for row, _ in self.rows if row[i] >= 0], minlength=self.k) + 1.0
        variety = (1 - (habits @ habits) / habits.sum() ** 2) * self.k / (self.k - 1)
        fading *= squared / (squared + 16) * min(1.0, 2 * variety)
        named = [p[row[i]] for row, p in self.rows if row[i] >= 0]
        weights = np.arange(1, len(named) + 1)  # later votes count more
        votes += fading * len(named)
        hits += fading * len(named) * (weights @ named / weights.sum() if named else 0.0)
        right = np.clip((2.8 + hits) / (4 + votes), 0.02, 0.98)
        return float(np.log(right / (1 - right) * (self.k - 1)))

    def redundancy(self, i: int, jury: np.ndarray) -> float:
        """How many copies of juror i there are, as it were, among those who vote."""
        right = [1 / (1 + (self.k - 1) * np.exp(-self.odds(j))) for j in range(len(jury))]
        found = 1.0
        for j in np.flatnonzero(jury >= 0):
            both = [row for row, _ in self.rows if row[i] >= 0 and row[j] >= 0]
            agreed = sum(row[i] == row[j] for row in both)
            chance = right[i] * right[j] + (1 - right[i]) * (1 - right[j]) / (self.k - 1)
            if j != i:
                found += 0.7 * max(0.0, (agreed - chance * len(both)) / ((len(both) + 10) * (1 - chance)))
        return found

    def weigh(self, jury: np.ndarray, sure: float) -> None:
        """Count the weights of votes."""
        for i in np.flatnonzero(jury >= 0):
            self.usual[0] += sure
            self.usual[1] += sure * max(0.0, self.odds(i)) ** 3

    def best(self, jury: np.ndarray) -> np.ndarray:
        """What the most accurate juror says; those that tie together."""
        right = np.array([(hits + 1) / (votes + 2) for votes, hits, _ in map(self.counts, range(len(jury)))])
        voting = jury >= 0
        if not voting.any():
            return np.full(self.k, 1 / self.k)
        most = right[voting].max()
        share = np.bincount(jury[voting & (right > most - 1e-12)], minlength=self.k)
        share = share / share.sum()
        return np.asarray(most * share + (1 - most) * (1 - share) / (self.k - 1))

    def probabilities(self, votes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """(9, k): of each member, without guesses."""
        left, jury, ballots = 300 / (300 + self.trials), self.jury(votes, scores), self.ballots(votes, scores)
        rated = self.rated(votes, scores)
        for m, (factor, _) in enumerate(self.factors):
            rated[m] = rated[m] * (1.0 + (factor - 1.0) * left)
        weighed = np.full(self.k, 1 / self.k)
        for i in np.flatnonzero(jury >= 0):
            usual = (self.usual[1] + np.log(0.7 / 0.3 * (self.k - 1)) ** 3) / (self.usual[0] + 1)
            weighed[jury[i]] += max(0.0, self.odds(i)) ** 3 / usual
        plain = (ballots + 1 / self.k) / (ballots.sum() + 1)
        fitted = [shares(own) for own in (*rated, self.refitted.scores(self.given(votes, scores)))]
        corrected = rated[2].copy()
        for i in np.flatnonzero(jury >= 0):
            corrected += self.pulls[i, jury[i]] / (10 + self.bends[i, jury[i]])
        return np.array([*fitted, self.best(jury), plain, weighed**2 / (weighed**2).sum(), shares(corrected)])

    def scores(self, votes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Logarithms of the probabilities, of which that of the answer is the largest."""
        guess = (self.guesses / (10 + self.trials))[:, None]
        parts = self.mixture[:, None] * ((1 - guess) * self.probabilities(votes, scores) + guess / self.k)
        labelled = sum(sure for _, _, sure in self.past)
        jury = self.jury(votes, scores)
        rating = (jury[self.voters :] >= 0).sum() / max(1, (jury >= 0).sum())
        unlabelled = 0.6 * len(self.rows) / (len(self.rows) + 1) * 2 / (2 + labelled)
        soft = 0.1 + 0.4 * 20 / (20 + labelled)
        says = np.array([1.0] * 6 + [soft * rating, unlabelled, 1.0])
        mixed, answer = parts.sum(axis=0), int((says @ parts).argmax())
        best = int(mixed.argmax())
        mixed[[answer, best]] = mixed[[best, answer]]
        return np.asarray(np.log(mixed))

    def watch(self, votes: np.ndarray, scores: np.ndarray) -> None:
        """Learn from a row without a label."""
        jury = self.jury(votes, scores)
        if (jury < 0).all():
            return
        odds = np.zeros(self.k)
        for i in np.flatnonzero(jury >= 0):
            odds[jury[i]] += self.odds(i) / self.redundancy(i, jury)
        self.weigh(jury, 1.0)
        p = shares(odds)
        habits = [
            np.bincount([row[i] for row, _ in self.rows if row[i] >= 0], minlength=self.k) + 1.0
            for i in range(len(jury))
        ]
        for i in np.flatnonzero(jury >= 0):
            for j in np.flatnonzero(jury[:i] >= 0):
                chance = habits[i] @ habits[j] / habits[i].sum() / habits[j].sum()
                self.beyond[0] += (jury[i] == jury[j]) - chance
                self.beyond[1] += chance * (1 - chance)
        self.rows.append((jury, p))

    def learn(self, votes: np.ndarray, scores: np.ndarray, label: int, weight: float = 1.0) -> None:
        """Learn a trial; a label of -2 - c says that it is not class c."""
        whole, p, rated = self.matrix(votes, scores), self.probabilities(votes, scores), self.rated(votes, scores)
        allowed = np.arange(self.k) == label if label >= 0 else np.arange(self.k) != -2 - label
        guess = (self.guesses / (10 + self.trials))[:, None]
        mixed = self.mixture @ ((1 - guess) * p + guess / self.k)
        target, scale = allowed * mixed / mixed[allowed].sum(), weight * (1.0 if label >= 0 else mixed[~allowed].sum())
        right = (((1 - guess) * p + guess / self.k) * allowed).sum(axis=1)
        self.mixture = self.mixture * right**weight
        self.mixture = 0.999 * self.mixture / self.mixture.sum() + 0.001 / 9
        sure = 1 - guess[:, 0] * allowed.mean() / right
        self.guesses = self.guesses + weight * (1 - sure)
        self.trials += 1
        for m, (factor, precision) in enumerate(self.factors):
            own, q = rated[m], shares(factor * rated[m])
            mean = q @ own
            precision = 0.99 * precision + 0.01 + sure[m] * scale * (q @ (own - mean) ** 2)
            factor += (sure[m] * scale * (target @ own - mean) + 0.01 * (1.0 - factor)) / precision
            self.factors[m] = float(np.clip(factor, 1.0, 10.0)), float(precision)
        welcomed, speak = self.welcomed(whole), whole.any(axis=0)
        experts = slice(2, 2 + self.jurors + self.raters)
        new = (speak & ~self.heard)[experts]
        self.home[:, experts][:, new] = welcomed[:, experts][:, new]
        self.weights = welcomed
        self.heard |= speak
        for m, (ridge, kept) in enumerate(zip(self.ridge, self.kept, strict=True)):
            x, q = self.seen(m, whole), shares(rated[m])
            speak = x.any(axis=0)
            curvature = scale * x.T @ (np.diag(q) - np.outer(q, q)) @ x
            prior = (1 - kept) * ridge * (1.0 if self.full else speak)
            old = self.precision[m]
            old = kept * old if self.full else np.where(speak, kept, 1.0) * old
            old = old + np.diag(np.broadcast_to(prior, speak.shape))
            gradient = scale * (target - q) @ x + prior * (self.home[m] - self.weights[m])
            self.weights[m] += np.linalg.solve(old + curvature, gradient)
            self.precision[m] = old + (curvature if self.full else np.diag(np.diag(curvature)))
        jury = self.jury(votes, scores)
        precisions = {i: 10 + self.bends[i, jury[i]] for i in np.flatnonzero(jury >= 0).tolist()}
        curvature = scale * p[8] * (1 - p[8])
        step = scale * (target - p[8]) / (1 + curvature * sum(1 / own for own in precisions.values()))
        for i, own in precisions.items():
            self.pulls[i, jury[i]] = (self.pulls[i, jury[i]] / own + step / own) * (own + curvature)
            self.bends[i, jury[i]] += curvature
        self.weigh(jury, scale)
        for i, given in enumerate(scores):
            if (given != given.mean()).any():
                self.sizes[i].append(given - given.mean())
        if label >= 0 and weight == 1.0:
            self.refitted.learn(self.given_before(whole, scores), label)
        self.past.append((jury.tolist(), target, scale))

    def given_before(self, whole: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """What the robust softmax saw before the trial."""
        x = whole[:, 2 : self.narrow].copy()
        x[:, self.jurors : self.jurors + self.raters] = scores.T
        return x
