"""Averaging, recycling, voting, combining and stacking, slow and obvious: what the library must agree with.

Techniques take learners and are learners. All of them, and `reference.LinearMax` under them, share

    scores(x), predict(x)      of the hypothesis with which the next trial would be met; they change nothing
    trial(x, label)            predict, count, learn; returns the prediction
    mistakes                   of this learner's own predictions, on real trials
    hypothesis(), log_scale    dense weights and their scale: true weights = hypothesis() exp(log_scale)
    snapshot()                 the same with the weight of unseen coordinates, as a `reference.Hypothesis`
    changed                    whether the last trial counts as having changed the hypothesis (read by `Vote`)
    grow(n), linear            more coordinates; the `LinearMax` that knows the classes and the tie policy

so that `Average(Recycle(LinearMax(...)))` is AR, `Vote(Recycle(LinearMax(...)))` VR. A learner serves one
owner: two members of a `Combine` must not share a base.

References
----------
Mesterharm and Hsu, Combinatorial fusion with on-line learning algorithms (the techniques; what the
paper leaves open is decided in the docstrings). Littlestone and Warmuth (1994), The weighted majority
algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from reference import Hypothesis, LinearMax, Vector, doubt, expand, total


class Learner(Protocol):
    """What techniques need of a learner."""

    @property
    def mistakes(self) -> int: ...
    @property
    def changed(self) -> bool: ...
    @property
    def linear(self) -> LinearMax: ...
    @property
    def log_scale(self) -> float: ...
    def grow(self, n: int) -> None: ...
    def snapshot(self) -> Hypothesis: ...
    def hypothesis(self) -> Vector: ...
    def scores(self, x: Vector) -> Vector: ...
    def predict(self, x: Vector) -> int: ...
    def trial(self, x: Vector, label: int) -> int: ...


class _Linear:
    """The parts that follow from `snapshot()`, `grow(n)` and `linear`."""

    @property
    def linear(self) -> LinearMax:
        raise NotImplementedError

    def grow(self, n: int) -> None:
        raise NotImplementedError

    def snapshot(self) -> Hypothesis:
        raise NotImplementedError

    def hypothesis(self) -> Vector:
        """The weights; true weights are these times exp(`log_scale`)."""
        return self.snapshot().weights

    @property
    def log_scale(self) -> float:
        return self.snapshot().log_scale

    def scores(self, x: Vector) -> Vector:
        self.grow(x.shape[1])
        return self.snapshot().scores(x)

    def predict(self, x: Vector) -> int:
        self.grow(x.shape[1])
        return self.linear.decide(self.hypothesis(), x)


class Average(_Linear):
    """A-B: B runs unchanged, driven by its own predictions; the average of its hypotheses predicts.

    Before trial t the hypothesis is (1/t) sum_{s=1}^{t} w_s, w_s the weights with which B met trial s (w_1 =
    start): one term for each real trial, the current weights included. After T trials `hypothesis()`
    therefore has T + 1 terms, w_{T+1} among them. With a recycling base w_{s+1} is taken after the recycling
    of trial s.

    scale
        `raw`: the true weights. `max`, `l1`: each w_s divided by its largest magnitude, by its sum of
        magnitudes (over the coordinates allocated at trial s; a zero vector stays zero).

    A coordinate that appears later has, for every past trial, the weight of unseen coordinates at that
    trial's scale. With `fade` the term w_s counts s times and the sum is divided by t (t + 1) / 2. Scores are scores of the sum divided by t, not of the divided weights, so that integer
    weights tie exactly. `changed` is always True. `mistakes` are the average's own; B's are in
    `base.mistakes`.
    """

    changed = True

    def __init__(self, base: Learner, scale: str = "raw", fade: bool = False) -> None:
        self.base, self.scale, self.fade = base, scale, fade
        self.mistakes = 0
        self.terms, self.total = 0, 0
        self.sum = Hypothesis(np.zeros(0), 0.0, 0.0)

    @property
    def linear(self) -> LinearMax:
        return self.base.linear

    def grow(self, n: int) -> None:
        self.base.grow(n)
        if self.terms == 0:
            self._add()
        self.sum = self.sum.padded(n)

    def _add(self) -> None:
        term = self.base.snapshot().scaled(self.scale)
        self.terms += 1
        if self.fade:
            term = term.times(float(self.terms))
        empty = self.scale == "l1" and self.sum.touched is not None and not self.sum.touched.any()
        if empty and term.touched.any():  # hypotheses before the first update have no norm, and no part in the sum
            self.sum = self.sum.times(0.0)
        self.sum = term if self.terms == 1 else self.sum.plus(term)
        self.total += self.terms if self.fade else 1

    def snapshot(self) -> Hypothesis:
        return self.sum.times(1.0 / max(1, self.total))

    def scores(self, x: Vector) -> Vector:
        self.grow(x.shape[1])
        return self.sum.scores(x) / self.total

    def predict(self, x: Vector) -> int:
        self.grow(x.shape[1])
        return self.linear.decide(self.sum.weights, x)

    def trial(self, x: Vector, label: int) -> int:
        prediction = self.predict(x)
        self.mistakes += prediction != label
        self.base.trial(x, label)
        self._add()
        return prediction


@dataclass
class Stored:
    """An instance in the recycling buffer and the updates it has caused."""

    x: Vector
    label: int
    count: int
    known: list[int]


class Recycle(_Linear):
    """R-B: after each update the s most recent instances are presented again until none causes an update.

    A trial: B's trial; the instance enters the buffer (the oldest leaves when there are more than s), correct
    ones too, with count 1 if B updated on it and 0 otherwise. If B updated (any update: a tie, a margin),
    repeat passes: every instance of the buffer, oldest first, whose count is below u *at that moment* is
    presented to B with the current weights (its rival may have changed); an update adds 1 to its count. Stop
    after a pass without update. The new instance takes part.

    B must be a `LinearMax`. Updates made here are no mistakes; `updates` counts them together with the real
    ones, `recycled` alone. `u` may be `math.inf`; since noisy data then may never come to rest, passes are
    capped (`max_passes`, 1000 for u = inf, none otherwise); the cap counts passes of one trial.

    `budget`: a token bucket. Each trial adds so many tokens, up to 1000 times as many; every instance passed costs
    one. It goes round and round from where it stopped the last time (or the oldest, when that is gone), and stops
    once all have been passed since the last update, or without tokens.
    """

    def __init__(
        self, base: LinearMax, s: int = 100, u: float = 5, max_passes: int | None = None, budget: int | None = None
    ) -> None:
        self.base, self.s, self.u = base, s, u
        self.max_passes: float = (1000 if u == math.inf else math.inf) if max_passes is None else max_passes
        self.buffer: list[Stored] = []
        self.changed = False
        self.recycled = 0
        self.budget, self.tokens, self.pointer, self.trials = budget, 0, 0, 0

    @property
    def mistakes(self) -> int:
        return self.base.mistakes

    @property
    def updates(self) -> int:
        return self.base.updates

    @property
    def linear(self) -> LinearMax:
        return self.base

    def grow(self, n: int) -> None:
        self.base.grow(n)

    def snapshot(self) -> Hypothesis:
        return self.base.snapshot()

    def trial(self, x: Vector, label: int) -> int:
        prediction = self.base.trial(x, label)
        self.changed = self.base.changed
        self.buffer.append(Stored(x.copy(), label, int(bool(self.changed)), list(self.base.known)))
        if len(self.buffer) > self.s:
            self.buffer.pop(0)
        self.trials += 1
        if self.budget is not None:
            self.tokens = min(self.tokens + self.budget, 1000 * self.budget)
            if self.changed:
                self._spend()
            return prediction
        passes = 0
        again = self.changed
        while again and passes < self.max_passes:
            again = self._one_pass()
            passes += 1
        return prediction

    def _spend(self) -> None:
        oldest = self.trials - len(self.buffer)
        self.pointer = max(self.pointer, oldest)
        quiet = passes = 0
        while self.tokens > 0 and quiet < len(self.buffer) and passes < self.max_passes:
            stored = self.buffer[self.pointer - oldest]
            updates = self._present(stored)
            stored.count += bool(updates)
            self.recycled += updates
            self.tokens -= 1
            quiet = 0 if updates else quiet + 1
            self.pointer += 1
            if self.pointer == self.trials:
                self.pointer = oldest
                passes += 1

    def _present(self, stored: Stored) -> int:
        with self.base.among(stored.known):
            return self.base.learn(stored.x, stored.label) if stored.count < self.u else 0

    def _one_pass(self) -> bool:
        any_update = False
        for stored in self.buffer:
            updates = self._present(stored)
            if updates:
                stored.count += 1
                self.recycled += updates
                any_update = True
        return any_update


@dataclass
class Voter:
    """A saved hypothesis: its nominal trial number, and its weights at the scale at which it votes."""

    number: int
    hypothesis: Hypothesis


class Vote(_Linear):
    """V-B: hypotheses saved at doubling distances vote together with B's current one.

    Parameters
    ----------
    base
        B. Its `trial`, `predict`, `snapshot` and `changed` are used.
    h
        Number of saved hypotheses.
    w
        Largest window, in trials, in which a better hypothesis may take the place of the one just saved.
    r
        Number of recent instances on which hypotheses are compared.
    d
        Trials before the first possible restart; doubled at every restart.
    scale
        `l1`, `l2`, `max`: a hypothesis votes with its scores after its weights were divided by that norm,
        taken when it is saved (for the current one: now). `raw`: with its true weights.

    One trial, in this order:

    1. The voting label is the arg max of the summed scores of the saved hypotheses and B's current one (so a
       hypothesis saved and still current counts twice); B's label is B's prediction. Output: the voting label
       if mv <= mb, else B's.
    2. mv, mb (mistakes of the voting label and of B's label since the last restart) are counted, whatever was
       put out.
    3. B's trial. The instance joins the r most recent. tau (trials since the last restart) += 1.
    4. Windows. Half width hw = floor(min(w, spacing/2)/2), centre c, spacing and c from 1:
       - not open and tau >= c - hw: B's hypothesis (after its learning in this trial) is saved under number
         c, in an empty slot while fewer than h are saved, else in place of the oldest whose number is an odd
         multiple of spacing/2; open;
       - else, open, and B's hypothesis changed in this trial (`base.changed`: B updated; an average: always;
         a `Combine`: also when another member became the best): it takes the place of the one saved in this
         window, keeping number c, if it is right on strictly more of the recent instances;
       - open and tau >= c + hw: close; if c = h spacing: spacing doubles and c = (floor(h/2)+1) spacing, else
         c += spacing.
    5. If tau >= wait and mb < mv: restart: saved hypotheses dropped, spacing = c = 1, tau = mv = mb = 0, wait
       doubles. B and the recent instances stay.

    `scores`, `hypothesis` and `predict` are those of the next output: the sum of all voters, or B's own when
    mv > mb. `mistakes` counts outputs. `changed` is always True.
    """

    changed = True

    def __init__(self, base: Learner, h: int = 20, w: int = 100, r: int = 100, d: int = 100, scale: str = "l1") -> None:
        self.base, self.h, self.w, self.r, self.scale = base, h, w, r, scale
        self.wait = d
        self.mistakes = 0
        self.restarts = 0
        self.recent: list[tuple[Vector, int]] = []
        self._begin()

    def _begin(self) -> None:
        self.voters: list[Voter] = []
        self.spacing = 1
        self.centre = 1
        self.is_open = False
        self.tau = 0
        self.voting_mistakes = 0
        self.basic_mistakes = 0

    @property
    def linear(self) -> LinearMax:
        return self.base.linear

    @property
    def half_window(self) -> int:
        return math.floor(min(self.w, self.spacing / 2) / 2)

    def grow(self, n: int) -> None:
        self.base.grow(n)

    # prediction

    def _at_voting_scale(self, hypothesis: Hypothesis) -> Hypothesis:
        return hypothesis.scaled(self.scale)

    def _all(self) -> list[Hypothesis]:
        return [voter.hypothesis for voter in self.voters] + [self._at_voting_scale(self.base.snapshot())]

    def _sum(self) -> Hypothesis:
        hypotheses = self._all()
        result = hypotheses[0]
        for hypothesis in hypotheses[1:]:
            result = result.plus(hypothesis)
        return result

    def voting_label(self, x: Vector) -> int:
        self.grow(x.shape[1])
        return self._decide(self._sum().weights, x)

    def _decide(self, weights: Vector, x: Vector) -> int:
        """The best class; of those that tie up to rounding the one that a tie goes to."""
        first = self.linear.decide(weights, x)
        if first < 0:
            return first
        terms = x[:, : len(weights)] * weights[: x.shape[1]]
        scores, size = terms.sum(axis=1), float(np.abs(terms).sum(axis=1).max(initial=0.0))
        return self.linear.best_of(np.where(scores >= scores[first] - 1e-12 * size, 1.0, 0.0))

    @property
    def trusts_voting(self) -> bool:
        return self.voting_mistakes <= self.basic_mistakes

    def snapshot(self) -> Hypothesis:
        if not self.trusts_voting:
            return self.base.snapshot()
        return self._sum()

    def scores(self, x: Vector) -> Vector:
        self.grow(x.shape[1])
        if not self.trusts_voting:
            return self.base.scores(x)
        return self._sum().scores(x)

    def predict(self, x: Vector) -> int:
        return self.voting_label(x) if self.trusts_voting else self.base.predict(x)

    # learning

    def trial(self, x: Vector, label: int) -> int:
        voted = self.voting_label(x)
        trusts_voting = self.trusts_voting
        basic = self.base.trial(x, label)
        output = voted if trusts_voting else basic
        self.mistakes += output != label
        self.voting_mistakes += voted != label
        self.basic_mistakes += basic != label
        self.recent = [*self.recent, (x.copy(), label, list(self.linear.known))][-self.r :] if self.r else []
        self.tau += 1
        self._windows()
        if self.tau >= self.wait and self.basic_mistakes < self.voting_mistakes:
            self._begin()
            self.wait *= 2
            self.restarts += 1
        return output

    def _windows(self) -> None:
        if not self.is_open:
            if self.tau >= self.centre - self.half_window:
                self._save()
                self.is_open = True
        elif self.base.changed:
            self._replace_if_better()
        if self.is_open and self.tau >= self.centre + self.half_window:
            self._close()

    def _save(self) -> None:
        if len(self.voters) >= self.h:
            half = self.spacing // 2
            oldest = next(i for i, voter in enumerate(self.voters) if voter.number % self.spacing == half)
            self.voters.pop(oldest)
        self.voters.append(Voter(self.centre, self._at_voting_scale(self.base.snapshot())))

    def _replace_if_better(self) -> None:
        candidate = self._at_voting_scale(self.base.snapshot())
        saved = self.voters[-1]
        if self.accuracy(candidate) > self.accuracy(saved.hypothesis):
            saved.hypothesis = candidate

    def accuracy(self, hypothesis: Hypothesis) -> int:
        """On how many of the recent instances a hypothesis is right, with the classes known after each of them."""
        right = 0
        for x, label, known in self.recent:
            with self.linear.among(known):
                right += self._decide(hypothesis.padded(x.shape[1]).weights, x) == label
        return right

    def _close(self) -> None:
        self.is_open = False
        if self.centre == self.h * self.spacing:
            self.spacing *= 2
            self.centre = (self.h // 2 + 1) * self.spacing
        else:
            self.centre += self.spacing


class SampledVote(_Linear):
    """The majority of a random sample, with replacement, of the hypotheses with which B has met its trials.

    w_t is the hypothesis that meets trial t, from 1. Before each trial every one of the h places holds one of w_1..w_t,
    all equally probable: a place that has taken w_t takes next w_s, s = 1 + floor(t/u), u uniform, for which
    P(s > n) = P(u < t/n) = t/n. Draws are taken in the order of trials, then places; of 64 h the first comes again.
    Each hypothesis has one vote, for its best class; ties go to the class that ties go to.
    """

    changed = True

    def __init__(self, base: Learner, h: int, seed: int) -> None:
        self.base, self.h, self.seed = base, h, seed
        self.mistakes, self.trials, self.draws = 0, 0, 0
        self.due = [1] * h
        self.voters: list[Voter] = [Voter(0, Hypothesis(np.zeros(0), 0.0, 0.0))] * h

    @property
    def linear(self) -> LinearMax:
        return self.base.linear

    def grow(self, n: int) -> None:
        self.base.grow(n)
        if self.trials == 0:
            self.due = [1] * self.h
            self.draws = 0
            self._draw()

    def _draw(self) -> None:
        number = self.trials + 1
        for place, due in enumerate(self.due):
            if due == number:
                self.voters[place] = Voter(number, self.base.snapshot().scaled("l2"))
                u = 1.0 - Select.uniform(self.seed, self.draws % (64 * self.h))
                self.due[place] = 1 + math.floor(min(number / u, 2.0**62))
                self.draws += 1

    def scores(self, x: Vector) -> Vector:
        self.grow(x.shape[1])
        ballots = np.zeros(self.linear.k)
        for voter in self.voters:
            choice = self.decide(voter.hypothesis.padded(x.shape[1]).weights, x)
            if choice >= 0:
                ballots[choice] += 1.0
        return ballots

    def decide(self, weights: Vector, x: Vector) -> int:
        return self.linear.decide(weights, x)

    def predict(self, x: Vector) -> int:
        return self.linear.best_of(self.scores(x))

    def trial(self, x: Vector, label: int) -> int:
        prediction = self.predict(x)
        self.mistakes += prediction != label
        self.base.trial(x, label)
        self.trials += 1
        self._draw()
        return prediction


class Combine(_Linear):
    """Several learners, all run on every trial.

    how
        `best`: predict like the member with the fewest mistakes since trial 1 (its own counter; the first of
        those that tie), decided anew before every trial. Its hypothesis is the combination's.
        `wma`: weighted majority; member i votes for its prediction with weight beta^(M_i - min M), M_i its
        mistakes since trial 1 (on all trials, not only where the majority erred).
        `weighted`: the sum of the members' scores (see `unit_scores`), each divided by the root mean square of
        those of the known classes about their mean, over the trials before (over this very instance as long as
        that is 0; if it is 0 too, the member is left out), times exp(-eta (M_i - min M)),
        eta = sqrt(2 ln N / (min M + 1)), N members.

    `changed`: for `best`, whether the best member is another one after the trial than before it, or its
    hypothesis changed in this trial; otherwise always True. `hypothesis()` exists for `best`.
    """

    def __init__(self, members: Sequence[Learner], how: str = "best", beta: float = 0.5) -> None:
        self.members, self.how, self.beta = list(members), how, beta
        self.spreads: list[Vector] = []  # of each trial, those of the members
        self.mistakes = 0
        self.changed = False

    @property
    def linear(self) -> LinearMax:
        return self.members[0].linear

    def grow(self, n: int) -> None:
        for member in self.members:
            member.grow(n)

    @property
    def best(self) -> int:
        """Index of the member with the fewest mistakes so far."""
        return int(np.argmin([member.mistakes for member in self.members]))

    def member_weights(self) -> Vector:
        """The weight of each member in the next prediction."""
        mistakes = np.array([member.mistakes for member in self.members], dtype=float)
        least = float(mistakes.min())
        if self.how == "best":
            return np.asarray(np.arange(len(mistakes)) == self.best, dtype=float)
        if self.how == "wma":
            return np.asarray(self.beta ** (mistakes - least))
        eta = math.sqrt(2.0 * math.log(len(mistakes)) / (least + 1.0))
        return np.asarray(np.exp(-eta * (mistakes - least)))

    def snapshot(self) -> Hypothesis:
        if self.how == "best":
            return self.members[self.best].snapshot()
        raise TypeError(f"a combination by {self.how!r} has no snapshot here; use 'best'")

    def scores(self, x: Vector) -> Vector:
        self.grow(x.shape[1])
        if self.how == "best":
            return self.members[self.best].scores(x)
        member_scores = self._ballots(x) if self.how == "wma" else self._sized_scores(x)
        weighted = self.member_weights()[:, None] * member_scores
        return np.array([total(column) for column in weighted.T])

    def _ballots(self, x: Vector) -> Vector:
        ballots = np.zeros((len(self.members), self.linear.k))
        for i, member in enumerate(self.members):
            choice = member.predict(x)
            if choice >= 0:
                ballots[i, choice] = 1.0
        return ballots

    def _sized_scores(self, x: Vector) -> Vector:
        rows = np.zeros((len(self.members), self.linear.k))
        present = self._spreads(x)
        past = [total(np.array(column)) / len(column) for column in zip(*self.spreads, strict=True)] or present
        for row, member, before, now in zip(rows, self.members, past, present, strict=True):
            known = member.linear.known
            size = math.sqrt(before or now)
            row[known] = unit_scores(member, x)[known] / size if size else 0.0
        return rows

    def _spreads(self, x: Vector) -> Vector:
        """Variance of each member's scores over the known classes."""
        found = []
        for member in self.members:
            scores = unit_scores(member, x)[member.linear.known]
            mean = float(scores.mean()) if scores.size else 0.0
            spread = float(np.mean((scores - mean) ** 2)) if scores.size else 0.0
            found.append(spread if spread > 1e-24 * mean**2 else 0.0)  # what is less is rounding
        return np.array(found)

    def predict(self, x: Vector) -> int:
        self.grow(x.shape[1])
        if self.how == "best":
            return self.members[self.best].predict(x)
        scores = self.scores(x)
        first = self.linear.best_of(scores)
        for other in self.linear.known:
            if other != first:
                doubt.note([scores[first], -scores[other]])
        return first

    def trial(self, x: Vector, label: int) -> int:
        prediction = self.predict(x)
        self.mistakes += prediction != label
        before = self.best
        if self.how == "weighted":
            self.spreads.append(self._spreads(x))
        for member in self.members:
            member.trial(x, label)
        after = self.members[self.best]
        self.changed = self.how != "best" or self.best != before or after.changed
        return prediction


def unit_scores(member: Learner | Stack, x: Vector) -> Vector:
    """A learner's scores at a scale that does not grow: with its weights at 2-norm 1.

    A vote gives the mean of its voters' scores at the scale at which they vote (B's own when it does not trust
    them), a combination by best those of its best, a stack those of its fusion, other combinations their own.
    """
    if isinstance(member, Vote):
        voters = member._all()
        if not member.trusts_voting:
            voters = voters[-1:]
        return np.asarray(sum(voter.scores(x) for voter in voters) / len(voters))
    if isinstance(member, Combine):
        return unit_scores(member.members[member.best], x) if member.how == "best" else member.scores(x)
    if isinstance(member, Stack):
        return unit_scores(member.fusion, member.instance(x))
    return member.snapshot().scaled("l2").scores(x)


class Stack:
    """The members' scores are the sub-experts of another learner, `fusion`: column i of its x is member i's.

    A trial: the fusion instance is made from the members as they stand; `fusion.trial` on it; every member's
    trial on x.

    A column is made of the member's scores s (see `unit_scores`: the scale of multiplicative weights grows without
    limit) over the known classes: c = s - mean; q = mean of c_j^2 over the known classes, averaged over all trials so
    far, the present one included; x = softmax(c / sqrt(q)); q = 0 gives equal shares. Classes not yet known get 0.

    Predicting uses the running q with the present instance included but keeps it only in `trial`.
    `hypothesis()` is the fusion's: one weight a member, not a hypothesis on x, so that `snapshot()` refuses.
    """

    changed = True

    def __init__(self, members: Sequence[Learner], fusion: Learner) -> None:
        self.members, self.fusion = list(members), fusion
        self.squares = np.zeros(len(self.members))
        self.trials = 0

    @property
    def mistakes(self) -> int:
        return self.fusion.mistakes

    @property
    def linear(self) -> LinearMax:
        return self.fusion.linear

    def grow(self, n: int) -> None:
        for member in self.members:
            member.grow(n)

    def snapshot(self) -> Hypothesis:
        raise TypeError("a stack is not linear in x; hypothesis() gives the weights of its members")

    def _centred(self, member: Learner, x: Vector) -> Vector:
        """Of the known classes only."""
        scores = unit_scores(member, x)[self.linear.known]
        return np.asarray(scores - total(scores) / max(1, len(scores)))

    def _column(self, i: int, x: Vector) -> Vector:
        member = self.members[i]
        member.grow(x.shape[1])
        column = np.zeros(len(x))
        if self.linear.known:
            centred = self._centred(member, x)
            mean_square = (self.squares[i] + total(centred**2) / len(centred)) / (self.trials + 1)
            exponents = centred / (math.sqrt(mean_square) or 1.0)
            shares = np.exp(exponents - exponents.max())
            column[self.linear.known] = shares / total(shares)
        return column

    def instance(self, x: Vector) -> Vector:
        """The instance that the fusion learner sees."""
        columns = np.array([self._column(i, x) for i in range(len(self.members))])
        return expand(scores=columns, k=len(x), thresholds=False)

    def hypothesis(self) -> Vector:
        return self.fusion.hypothesis()

    def scores(self, x: Vector) -> Vector:
        return self.fusion.scores(self.instance(x))

    def predict(self, x: Vector) -> int:
        return self.fusion.predict(self.instance(x))

    def trial(self, x: Vector, label: int) -> int:
        instance = self.instance(x)
        for i, member in enumerate(self.members):
            centred = self._centred(member, x)
            self.squares[i] += total(centred**2) / max(1, len(centred))
        self.trials += 1
        prediction = self.fusion.trial(instance, label)
        for member in self.members:
            member.trial(x, label)
        return prediction


class _Host(_Linear):
    """Predicts as the learner inside, which is shown some of the trials."""

    base: Learner
    changed = True

    @property
    def linear(self) -> LinearMax:
        return self.base.linear

    def grow(self, n: int) -> None:
        self.base.grow(n)

    def snapshot(self) -> Hypothesis:
        return self.base.snapshot()

    def scores(self, x: Vector) -> Vector:
        return self.base.scores(x)

    def predict(self, x: Vector) -> int:
        return self.base.predict(x)


class Select(_Host):
    """S-B: the label of a trial is asked for with probability b / (b + lead), and only such trials are played by B.

    The lead is that of the best known class over the second best under the hypothesis that predicts: with its true
    weights, divided by their sum where they multiply. Trial t (from 0) is asked for if `uniform(seed, t)` is below that
    probability, or if its label is a new class, or if fewer than two classes are known.
    """

    def __init__(self, base: Learner, b: float, seed: int, multiplies: bool) -> None:
        self.base, self.b, self.seed, self.multiplies = base, b, seed, multiplies
        self.mistakes = self.trials = self.asked = 0

    @staticmethod
    def uniform(seed: int, t: int) -> float:
        """Splitmix64, as Steele, Lea and Flood (2014) give it, from a state made of seed and trial."""
        size = 2**64
        z = ((t + 1) * 0x9E3779B97F4A7C15 + (seed + 1) * 0xD1342543DE82EF95) % size
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % size
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % size
        return ((z ^ (z >> 31)) // 2**11) / 2**53

    def trial(self, x: Vector, label: int) -> int:
        self.grow(x.shape[1])
        prediction = self.predict(x)
        self.mistakes += prediction != label
        known = self.linear.known
        chance = 1.0
        if len(known) >= 2:
            second, first = sorted(self.scores(x)[known])[-2:]
            weights = self.base.snapshot()
            scale = math.exp(weights.log_scale)
            if self.multiplies:
                counted = np.abs(weights.weights if weights.touched is None else weights.weights[weights.touched])
                scale = 1.0 / (total(counted) or weights.default)
            chance = self.b / (self.b + (first - second) * scale)
        drawn = self.uniform(self.seed, self.trials)
        doubt.smallest = min(doubt.smallest, abs(drawn - chance)) if chance < 1.0 else doubt.smallest
        if drawn < chance or label not in known:
            self.asked += 1
            self.base.trial(x, label)
        self.trials += 1
        return prediction


class Explore(_Host):
    """B-L: with probability gamma the class tried is drawn from those known, else it is L's prediction.

    B plays a trial if the class tried is right, if two classes are known, or if the label is a new class; of more than
    two classes that tie at the top only if the class was drawn.
    """

    def __init__(self, base: Learner, gamma: float, seed: int) -> None:
        self.base, self.gamma, self.seed = base, gamma, seed
        self.mistakes = self.trials = self.told = 0

    def trial(self, x: Vector, label: int) -> int:
        self.grow(x.shape[1])
        known, drawn = list(self.linear.known), Select.uniform(self.seed, self.trials)
        tried = known[math.floor(drawn / self.gamma * len(known))] if drawn < self.gamma and known else self.predict(x)
        self.mistakes += tried != label
        self.trials += 1
        taught = label not in known or len(known) == 2 or tried == label
        if taught and label in known and len(known) > 2 and drawn >= self.gamma:
            scores = self.scores(x)[known]
            second, first = sorted(scores)[-2:]
            gap = (first - second) / (np.abs(scores).max() or 1.0)
            doubt.smallest = min(doubt.smallest, gap or doubt.smallest)
            taught = gap > 1e-12
        if taught:
            self.told += 1
            self.base.trial(x, label)
        return tried


__all__ = [
    "Average",
    "Combine",
    "Explore",
    "Learner",
    "Recycle",
    "SampledVote",
    "Select",
    "Stack",
    "Vote",
    "unit_scores",
]
