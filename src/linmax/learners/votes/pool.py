"""The pool for voters and raters at work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from linmax.core.contract import EXPERTS, KNOWN, STRIDE, Instances
from linmax.jit.compiling import address_of
from linmax.learners import Description, Running
from linmax.learners.mixing import Mixture
from linmax.learners.softmax_state import RunningSoftmax, new_store, symmetric
from linmax.learners.votes.agreement import CREDIT, LIMIT, Agreement, due, fit_trust, no_agreement
from linmax.learners.votes.confusions import (
    KEPT,
    UNIT,
    Confusions,
    PlacedConfusions,
    join_confusions,
    log_odds,
    new_confusions,
)
from linmax.learners.votes.growth import (
    blocked,
    narrowed,
    new_pool,
    restored,
    silent_block,
    spread_agreement,
    spread_out,
    spread_pool,
)
from linmax.learners.votes.logits import DIAGONAL, step_by_diagonal
from linmax.learners.votes.mixing import mix_pools
from linmax.learners.votes.mixture import (
    AGREED,
    FIRST_SHARES,
    INFORMED,
    LOGITS,
    MEMORIES,
    NARROW,
    OUTSET,
    RIDGE,
    SEES_CONFUSION,
    SPOKEN,
    STEADY,
    TRIALS,
    TRUST,
    MixtureRoom,
    play_votes,
)
from linmax.learners.votes.reach import Evidence, Outlook, Silence, ratings_ahead, stays
from linmax.learners.votes.silence import silence_varies
from linmax.learners.votes.trial import CONFUSED, CONFUSED_LATELY, COPIED, NAMED, SHARE, VOTERS
from linmax.util.blas import one_blas_thread
from linmax.util.names import apart

__all__ = ["RunningVotes", "VotesPool"]

REFITTED = 0.1  # precision of the prior of the logit that is fitted afresh to all trials now and then
GUIDED = 0.95  # first weight of the logit that agreement guides, where it tells all and no label has come
HALVING_LABELS = 50.0  # labels after which it is half as large
STAY = np.zeros(0, np.int32)  # labels of trials that are only judged


class RunningVotes(Running):
    """State: the logits and their mixture (`Pool`), and a robust softmax that is refitted now and then.

    It has coordinates of its own, and so does not mind where the engine has its weights.
    """

    def __init__(self) -> None:
        self.refitted = RunningSoftmax(REFITTED, True, 0)
        self.blocks = np.zeros(4, np.int64)  # voters, raters, thresholds, voters by how many are silent
        self.signs = np.zeros(0)  # of the voters
        self.pool = new_pool()
        self.agreement = no_agreement()
        self.confusions, self.lately = new_confusions(0, 0), new_confusions(0, 0, KEPT)
        self.room: MixtureRoom | None = None

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        own = {"blocks": self.blocks, "signs": self.signs} | {
            f"pool.{name}": array for name, array in self.pool._asdict().items()
        }
        own |= {f"agreement.{name}": array for name, array in self.agreement._asdict().items()}
        own |= {f"confusions.{name}": array for name, array in self.confusions._asdict().items()}
        own |= {f"lately.{name}": array for name, array in self.lately._asdict().items()}
        return own | {f"refitted.{name}": array for name, array in self.refitted.arrays.items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        parts = apart({name: array.copy() for name, array in arrays.items()})
        self.blocks, self.signs = np.zeros(4, np.int64), parts[""]["signs"]
        self.blocks[: parts[""]["blocks"].size] = parts[""]["blocks"]
        self.pool, self.room = restored(parts["pool"]), None
        self.agreement = Agreement(**parts["agreement"])
        self.confusions, self.lately = Confusions(**parts["confusions"]), Confusions(**parts["lately"])
        self.refitted.restore(parts["refitted"])

    def _fits(self, instances: Instances, k: int) -> bool:
        """Whether there is room for these instances."""
        if self.confusions.labels.size < k:
            return False
        return np.array_equal(self.blocks, blocks_of(instances, k))

    def _fit(self, instances: Instances, k: int) -> None:
        """Make room for the voters and raters of these instances and for k classes."""
        blocks = blocks_of(instances, k)
        self._count_confusions(int(blocks[0]), k)
        if np.array_equal(blocks, self.blocks):
            self.room = None
            return
        if blocks[3] < self.blocks[3]:
            self.pool, self.blocks[3] = narrowed(self.pool), 0
        starts = np.append(0, np.cumsum(blocks))
        narrow, size = int(starts[3]), int(starts[4])
        *given, silent = (starts[b] + np.arange(self.blocks[b]) for b in range(4))
        places = np.concatenate(given).astype(np.int64)
        if places.size:
            self.refitted.move(lambda array: spread_out(array, places, narrow))
        else:
            self.refitted = RunningSoftmax(REFITTED, True, narrow)
        raters = np.arange(len(self.pool.scales))
        all_places = np.concatenate([np.arange(VOTERS), VOTERS + places, VOTERS + silent])
        self.pool = spread_pool(self.pool, all_places, VOTERS + size, VOTERS + narrow, raters, int(blocks[1]))
        if self.agreement.trust.size:
            self._compare_voters(int(blocks[0]), k)
        self.blocks, self.signs, self.room = blocks, instances.signs.copy(), None

    def _count_confusions(self, voters: int, k: int) -> None:
        """Make room to count what so many voters name, unless they are too many."""
        places = np.arange(self.blocks[0]), np.arange(k)
        self.confusions = join_confusions([PlacedConfusions(self.confusions, *places, 1.0)], voters, k)
        self.lately = join_confusions([PlacedConfusions(self.lately, *places, 1.0)], voters, k, KEPT)

    def _compare_voters(self, voters: int, k: int) -> None:
        """Make room to count how so many voters agree, unless they are too many."""
        count, classes = self.agreement.habits.shape
        self.agreement = (
            spread_agreement(self.agreement, np.arange(count), voters, np.arange(classes), k)
            if self.pool.precision.size
            else no_agreement()
        )

    def mix(self, mixture: Mixture) -> None:
        mix_pools(self, mixture)

    def room_for(self, k: int) -> MixtureRoom:
        """MixtureRoom for one trial; kept as long as nothing grows."""
        if self.room is None or self.room.scores.size != k:
            n, most = self.pool.weights.shape[1], int(2 * self.blocks[0] + k * (self.blocks[1] + VOTERS + 1))
            self.room = MixtureRoom(
                new_store(1, most),
                np.zeros((FIRST_SHARES.size, k)),
                np.zeros(k),
                np.zeros((6, max(blocked(n), k))),
                np.zeros((LOGITS, n)),
                np.zeros(4, np.int64),
                np.zeros((2, max(k, most)), np.int64),
            )
        return self.room

    def _shape(self, shape: np.ndarray, k: int) -> np.ndarray:
        """That of the engine with the coordinates of this learner."""
        own = shape.copy()
        own[EXPERTS], own[STRIDE] = self.blocks[0] + self.blocks[1], k
        return own

    def play(
        self, shape: np.ndarray, instances: Instances, labels: np.ndarray, begin: int, end: int, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        if not self._fits(instances, k):
            self._fit(instances, k)
        counted = self.agreement.trust.size > 0
        if self.agreement.habits.shape[1] < k and (counted or labels[begin:end].min(initial=0) < 0):
            self._compare_voters(int(self.blocks[0]), k)
        instances = without_attributes(instances)
        _, given = self.refitted.play(self._shape(shape, k), instances, labels, begin, end, k)
        predictions, table = np.zeros(end - begin, np.int32), np.zeros((end - begin, k))
        t, room = begin, self.room_for(k)
        diagonal = 0 if self.pool.precision.shape[1] else address_of(step_by_diagonal, DIAGONAL)
        while t < end:
            t = play_votes(
                instances, labels, t, end, begin, shape, self.pool, self.agreement, self.confusions, self.lately, room,
                given[:, None], diagonal, True, predictions, table,
            )  # fmt: skip
            if due(self.agreement, int(shape[KNOWN])):
                self.follow_agreement(int(shape[KNOWN]))
        return predictions, table

    def judge(self, shape: np.ndarray, instances: Instances, size: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        if not self._fits(instances, k):
            larger = RunningVotes()
            larger.restore(self.arrays)
            larger._fit(instances, k)
            return larger.judge(shape, instances, size, k)
        instances = without_attributes(instances)
        _, given = self.refitted.judge(self._shape(shape, k), instances, size, k)
        predictions, table = np.zeros(size, np.int32), np.zeros((size, k))
        play_votes(
            instances, STAY, 0, size, 0, shape, self.pool, self.agreement, self.confusions, self.lately,
            self.room_for(k), given[:, None], 0, False, predictions, table,
        )  # fmt: skip
        return predictions, table

    def stays(
        self, shape: np.ndarray, instances: Instances, columns: np.ndarray, answer: int, fresh: bool, k: int
    ) -> bool:
        """Whether the answer to one instance stays whatever further voters say; False where that cannot be told.

        ``columns`` (voters, columns) says where each of these voters speaks. With ``fresh`` they may name new classes,
        any number of them, of which the last known one is an example.
        """
        if not self._fits(instances, k):
            larger = RunningVotes()
            larger.restore(self.arrays)
            larger._fit(instances, k)
            return larger.stays(shape, instances, columns, answer, fresh, k)
        raters = int(self.blocks[1])
        if fresh and raters:  # what a rater says depends on how many classes there are
            return False
        self.judge(shape, instances, 1, k)
        return stays(self._outlook(shape, instances, columns, answer, fresh, k))

    def _outlook(
        self, shape: np.ndarray, instances: Instances, columns: np.ndarray, answer: int, fresh: bool, k: int
    ) -> Outlook:
        """The instance that was judged last as the members see it."""
        pool, known, (voters, raters, _, _) = self.pool, int(shape[KNOWN]), self.blocks.tolist()
        room, weights = self.room_for(k), self._weights()
        store, end = room.store, int(room.ends[0])
        places, of, values = store.places[:end], store.of[:end], store.values[:end]
        certain, share = places >= VOTERS, places == SHARE
        scores = np.zeros((LOGITS + 1, known))
        rated = weights[:, places[certain]] * values[certain]
        np.add.at(scores, (np.arange(LOGITS)[:, None], of[certain]), rated)
        scores[LOGITS] = self.refitted.judge(self._shape(shape, k), without_attributes(instances), 1, k)[1][0, :known]
        said = np.where((self.signs == 1.0) & (instances.votes[0] < known), instances.votes[0], -1)
        ratings = np.where(np.abs(self.signs) == 1.0, self.signs, np.copysign(COPIED, self.signs))
        pulls = np.concatenate(
            [weights[:, VOTERS : VOTERS + voters] * ratings, [self.refitted.weights[:voters] * self.signs]]
        )
        speakers = float(
            (said >= 0).sum()
            + len(np.unique(places[(places >= VOTERS + voters) & (places < VOTERS + voters + raters)]))
        )
        votes = np.zeros(known)
        votes[of[share]] = values[share] * speakers
        whole = columns & (self.signs == 1.0)
        guesses = pool.guesses[:, 0] / pool.guesses.sum(axis=1)
        evidence = [
            Evidence(m, float(UNIT * weights[m, place]), counted)
            for place, seen, counted in (
                (CONFUSED, SEES_CONFUSION, self.confusions),
                (CONFUSED_LATELY, SEES_CONFUSION + 1, self.lately),
            )
            for m in np.flatnonzero(INFORMED >= seen).tolist()
            if counted.counts.size and known > 1
        ]
        return Outlook(
            answer=answer,
            trust=pool.mixture * (1.0 - guesses),
            scores=scores,
            pulls=pulls @ columns.T,
            silence=self._silence(instances, columns, said, whole, known),
            shared=np.append(weights[:, SHARE], 0.0),
            naming=np.append(weights[:, NAMED], 0.0),
            votes=votes,
            speakers=speakers,
            named=np.isin(np.arange(known), said),
            evidence=evidence,
            said=said,
            columns=np.where(whole.any(axis=1), whole.argmax(axis=1), -1),
            fresh=fresh,
        )

    def _silence(
        self, instances: Instances, columns: np.ndarray, said: np.ndarray, whole: np.ndarray, known: int
    ) -> Silence:
        """What votes count by how many are silent, if some of further voters speak; ``whole`` are their own columns."""
        pool, voters, spoke = self.pool, int(self.blocks[0]), np.flatnonzero(said >= 0)
        weights, scores = np.zeros((LOGITS + 1, voters)), np.zeros((LOGITS + 1, known))
        lowest, highest = np.zeros((2, int(whole.any(axis=1).sum()) + 1))
        if self.blocks[3] and silence_varies(pool.silence):
            weights[np.flatnonzero(INFORMED)] = pool.weights[INFORMED > 0, pool.counts[NARROW] :]
            weights *= self.signs == 1.0
            np.add.at(scores, (np.arange(LOGITS + 1)[:, None], said[spoke]), weights[:, spoke])
            silent = (pool.seen[VOTERS : VOTERS + voters] == 1) & (instances.votes[0] < 0)
            lowest, highest = ratings_ahead(pool.silence, silent, columns, whole)
        concerned = (said >= 0) | columns.any(axis=0)
        return Silence(scores, weights @ columns.T, np.abs(weights[:, concerned]).sum(axis=1), lowest, highest)

    def follow_agreement(self, known: int) -> None:
        """Fit trust to agreement, and move the logit that it guides as the mean of its prior moves.

        With precision P the weights that fit the labels best change by ridge P^-1 times the change of the mean.
        """
        pool, voters = self.pool, int(self.blocks[0])
        with one_blas_thread():
            fit_trust(self.agreement, known)
        home, (told, rest), numbers = pool.home[STEADY].copy(), self.agreement.trust, self.agreement.numbers
        if numbers[LIMIT] == 0.0:
            numbers[LIMIT] = GUIDED * HALVING_LABELS / (HALVING_LABELS + float(pool.counts[TRIALS]))
            for array in (pool.weights, pool.home, pool.precision, pool.guesses):
                array[AGREED] = array[STEADY]
        credit, before = numbers[LIMIT] * (1.0 - rest[-1]), numbers[CREDIT]
        if before > 0.0:  # what labels have shown stays: the odds change as those of the first weights do
            pool.mixture[AGREED] *= credit / (1.0 - credit) * (1.0 - before) / before
        else:
            pool.mixture[AGREED] = credit / (1.0 - credit) * float(pool.mixture.sum())
        pool.mixture[:] /= pool.mixture.sum()
        numbers[CREDIT] = credit
        home[SHARE] = told[-1] + rest[-1] * OUTSET[SHARE]
        heard = np.flatnonzero(pool.seen[VOTERS : VOTERS + voters] == 1)
        home[VOTERS + heard] = told[heard] + rest[heard] * home[VOTERS + heard]
        with one_blas_thread():
            pool.weights[AGREED] += np.linalg.solve(
                symmetric(pool.precision[AGREED]), RIDGE[AGREED] * (home - pool.home[AGREED])
            )
        pool.home[AGREED] = home
        for kind, block in enumerate(np.split(np.arange(int(self.blocks[:2].sum())), [voters])):
            seen = VOTERS + block[pool.seen[VOTERS + block] == 1]
            pool.sums[AGREED, kind] = pool.weights[AGREED, seen].sum()

    @property
    def members(self) -> dict[str, float]:
        """How far the mixture follows each member at present, by what it is; the shares add up to 1."""
        found: dict[str, float] = {}
        for m, share in enumerate(self.pool.mixture.tolist()):
            name = "robust softmax, refitted now and then"
            if m == AGREED:
                if not share:
                    continue
                name = "logit that starts from how far voters agree"
            elif m < LOGITS:
                memory = "all trials" if MEMORIES[m] == 1.0 else f"about {1.0 / (1.0 - MEMORIES[m]):,.0f} trials"
                confused = ", that sees what voters confuse" if INFORMED[m] >= SEES_CONFUSION else ""
                name = f"logit of {memory}, prior {RIDGE[m]:g}{confused}"
            found[name] = found.get(name, 0.0) + share
        return found

    def _weights(self) -> np.ndarray:
        """(logits, n): with the first weights of voters and raters who have not spoken, but for copies of voters."""
        pool, voters, experts = self.pool, int(self.blocks[0]), int(self.blocks[:2].sum())
        weights = pool.weights.copy()
        for kind, (first, last) in enumerate([(0, voters), (voters, experts)]):
            new = (TRUST + pool.sums[:, kind]) / (1.0 + pool.counts[SPOKEN + kind])
            silent = pool.seen[VOTERS + first : VOTERS + last] == 0
            firsts = np.repeat(new[:, None], last - first, axis=1)
            if kind == 0:
                silent &= self.signs == 1.0
                if self.agreement.trust.size:
                    firsts[AGREED] = self.agreement.trust[0, :-1] + self.agreement.trust[1, :-1] * new[AGREED]
            weights[:, VOTERS + first : VOTERS + last] += np.where(silent, firsts, 0.0)
        return weights

    def hypothesis(self) -> np.ndarray:
        """The mean of the members' weights by the mixture; the share of votes belongs to all voters and raters alike.

        A voter or rater who has not spoken has the weight of a newcomer.
        """
        experts, mixture, pool = int(self.blocks[:2].sum()), self.pool.mixture, self.pool
        weights = self._weights()[:, VOTERS : pool.counts[NARROW]]
        if len(self.confusions.votes):
            for place, counted in ((CONFUSED, self.confusions), (CONFUSED_LATELY, self.lately)):
                told = np.where(self.signs == 1.0, log_odds(counted), 0.0)
                weights[:, : self.blocks[0]] += np.outer(pool.weights[:, place], told)
        copies = np.flatnonzero(np.abs(self.signs) != 1.0)
        weights[:, :experts] += pool.weights[:, [SHARE]] / max(1, experts - len(copies))
        weights[:, copies] = pool.weights[:, VOTERS + copies] * COPIED / np.abs(self.signs[copies])
        return np.asarray(mixture[:LOGITS] @ weights + mixture[LOGITS] * self.refitted.weights)


def blocks_of(instances: Instances, k: int) -> np.ndarray:
    """How many voters, raters and thresholds there are, and voters by how many are silent."""
    voters, raters, thresholds = instances.signs.size, instances.scores.shape[1], k if instances.constant else 0
    return np.array([voters, raters, thresholds, silent_block(voters, raters + thresholds)])


def without_attributes(instances: Instances) -> Instances:
    """The voters and raters alone."""
    if not instances.dense.shape[1] and not instances.indptr.size:
        return instances
    dense, none = np.zeros((len(instances.dense), 0)), np.zeros(0, np.int32)
    return instances._replace(dense=dense, indptr=np.zeros(0, np.int64), indices=none, values=np.zeros(0))


@dataclass(frozen=True)
class VotesPool(Description):
    """Description of the pool; made by ``linmax.vr_combine(pool="votes")``."""

    name: ClassVar[str] = "votes"
    from_zero: ClassVar[bool] = False
    takes_gaps: ClassVar[bool] = True
    linear: ClassVar[bool] = False
    unmixable: ClassVar[str] = ""
    learns_attributes: ClassVar[bool] = False

    def start(self, size: int) -> Running:
        return RunningVotes()
