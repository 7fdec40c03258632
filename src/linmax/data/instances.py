"""Instances: votes, scores and attributes, and any mix of them, as sub-experts side by side.

A sub-expert rates every class. A voter rates its class 1 and the others 0, a rater gives k scores, an attribute is k
sub-experts "this much for class c" (stored as a row of a linear machine), and the constant attribute gives the k
threshold sub-experts (Mesterharm 2001, sections 2.1, 2.2 and 5).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from linmax.core.contract import HUGE, Trials
from linmax.data.arrays import Layout, no_trials
from linmax.data.blocks import (
    Scale,
    copies_for,
    length_of,
    read_attributes,
    read_scores,
    scaled,
    split_voters,
)
from linmax.data.names import distinct_classes
from linmax.data.votes import read_votes
from linmax.util.aliases import Label, Labels, Matrix, Name, VoteColumns
from linmax.util.checks import boolean
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["Instances", "instances", "instances_of_codes"]


@dataclass(frozen=True, eq=False)
class Instances:
    """Instances for `run`. Made by `instances`; may be sliced by trial: ``instances[100:200]``."""

    votes: np.ndarray  # int32 (T, voters): place in `names`, -1 = abstains
    signs: np.ndarray
    scores: np.ndarray  # (T, raters, k)
    dense: np.ndarray
    csr: sparse.csr_array | None
    constant: float
    names: tuple[Label, ...]  # the classes met in votes, or given
    fixed: bool  # whether `names` are all the classes there are
    scale: Scale
    voter_names: tuple[str, ...]
    attribute_names: tuple[str, ...]
    vocabulary: Mapping[Name, int] | None
    sides: tuple[Label, ...] = ()  # values of the side column for which there are copies of the voters

    def __len__(self) -> int:
        return len(self.votes)

    def __repr__(self) -> str:
        return f"<{len(self)} instances: {self.layout}>"

    def __getitem__(self, trials: slice | np.ndarray | Sequence[int]) -> Instances:
        if isinstance(trials, (int, np.integer)):
            raise TypeError(f"instances[{trials}] is one trial; slice it: instances[{trials}:{int(trials) + 1}]")
        csr = None if self.csr is None else self.csr[trials]
        votes, scores, dense = (np.ascontiguousarray(block[trials]) for block in (self.votes, self.scores, self.dense))
        return replace(self, votes=votes, scores=scores, dense=dense, csr=csr)

    @property
    def layout(self) -> Layout:
        """Numbers of voters, raters and attributes."""
        width = 0 if self.csr is None else self.csr.shape[1]
        names = () if self.vocabulary is None else self.attribute_names
        return Layout(len(self.signs), self.scores.shape[1], self.dense.shape[1], width, self.constant, names)

    @cached_property
    def range(self) -> float:
        """Largest difference between two ratings of one sub-expert; some rules need it to be at most 1."""
        sizes = [1.0 if len(self.signs) else 0.0, abs(self.constant)]
        if self.scores.size:
            sizes.append(float(np.ptp(self.scores, axis=2).max()))
        blocks = [block for block in (self.dense, self._sparse[-1]) if block.size]
        return max([*sizes, *(max(float(block.max()), -float(block.min())) for block in blocks)])

    @cached_property
    def largest(self) -> float:
        """The largest magnitude of a score or an attribute."""
        blocks = [block for block in (self.scores, self.dense, self._sparse[-1]) if block.size]
        return max((max(float(block.max()), -float(block.min())) for block in blocks), default=0.0)

    def refuse_huge(self) -> None:
        """Refuse numbers so large that sums of their squares would overflow."""
        if self.largest <= HUGE:
            return
        for name, block in [("scores", self.scores), ("attributes", self.dense), ("attributes", self._sparse[-1])]:
            if not block.size or max(float(block.max()), -float(block.min())) <= HUGE:
                continue
            place = tuple(int(i) for i in np.argwhere(np.abs(block) > HUGE)[0])
            trial, where = place[0], f"rater {place[1]}" if name == "scores" else f"attribute {place[-1]}"
            if block.ndim == 1 and self.csr is not None:
                trial = int(np.searchsorted(self.csr.indptr, place[0], side="right")) - 1
                where = f"attribute {int(self.csr.indices[place[0]])}"
            raise ValueError(
                f"{name} must be at most {HUGE:g} in magnitude, got {block[place]:g} at trial {trial} ({where}); "
                "scale the instances down"
            )

    @property
    def radius(self) -> float:
        """R = max over instances of the 2-norm of the attributes, the constant included."""
        if self.layout.voters or self.layout.raters:
            raise ValueError("radius is defined for attributes only; these instances have voters or raters")
        squares = np.full(len(self), self.constant**2)
        squares += np.einsum("tm,tm->t", self.dense, self.dense)
        if self.csr is not None:
            squares += np.asarray(self.csr.multiply(self.csr).sum(axis=1)).ravel()
        return float(np.sqrt(squares.max(initial=0.0)))

    def compiled(self, classes: Sequence[Label], strict: bool = True) -> Trials:
        """The arrays for the kernels, with classes numbered as given; others are refused, or else left out."""
        place = {name: i for i, name in enumerate(classes)}
        table = np.array([place.get(name, -2 if strict else -1) for name in self.names] + [-1], np.int32)
        votes = table[self.votes]
        if strict and (votes == -2).any():
            t, i = np.argwhere(votes == -2)[0]
            raise ValueError(
                f"votes: voter {self.voter_names[i]!r} voted for {self.names[self.votes[t, i]]!r} at trial {t}, which "
                "is not among the classes of the learner"
            )
        scores = self.scores
        if scores.shape[1] and tuple(classes) != self.names:
            rated = set(self.names)
            if not rated.issuperset(classes) or (strict and len(rated) > len(classes)):
                raise ValueError(f"scores rate the classes {list(self.names)!r}, but the learner has {list(classes)!r}")
            scores = np.ascontiguousarray(scores[:, :, [self.names.index(name) for name in classes]])
        indptr, indices, values = self._sparse
        return no_trials(len(votes))._replace(
            votes=votes, signs=self.signs, scores=scores, dense=self.dense, indptr=indptr, indices=indices,
            values=values, constant=self.constant,
        )  # fmt: skip

    @cached_property
    def _sparse(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row starts, columns and values, in the types that the kernels take."""
        if self.csr is None or not self.csr.shape[1]:
            return np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0)
        starts, columns = self.csr.indptr, self.csr.indices
        return np.require(starts, np.int64, ["C", "W"]), np.require(columns, np.int32, ["C", "W"]), self.csr.data

    def matrix(self, t: int, classes: Sequence[Label] | None = None) -> np.ndarray:
        """Instance t as (k, n) ratings, in the order of `WeightArrays.flat`. For small problems and checks."""
        names = list(self.names if classes is None else classes)
        k, layout = len(names), self.layout
        one = self[t : t + 1].compiled(names)
        votes = np.zeros((k, layout.voters))
        for i, vote in enumerate(one.votes[0]):
            if vote >= 0:
                votes[vote, i] = self.signs[i]
        row = [self.constant] if self.constant else []
        values = np.concatenate([row, self.dense[t], [] if self.csr is None else self.csr[[t]].toarray()[0]])
        return np.hstack([votes, one.scores[0].T if layout.raters else np.zeros((k, 0)), np.kron(values, np.eye(k))])

    def differences(self, t: int, label: Label, classes: Sequence[Label] | None = None) -> np.ndarray:
        """x^label - x^j for every other class j: (k - 1, n)."""
        names = list(self.names if classes is None else classes)
        full, rho = self.matrix(t, names), names.index(label)
        return full[rho] - np.delete(full, rho, axis=0)


def instances(
    votes: VoteColumns | None = None,
    scores: npt.ArrayLike | None = None,
    attributes: Matrix | Sequence[Mapping[Name, float]] | None = None,
    classes: Sequence[Label] | None = None,
    thresholds: bool = True,
    *,
    abstain: Label | Collection[Label] = None,
    negated: bool = False,
    split: str | Mapping[int, Label] | None = None,
    scale: str | float | Scale | None = None,
    vocabulary: Mapping[Name, int] | None = None,
    by: Labels | None = None,
    sides: Sequence[Label] | None = None,
    unseen: float | Sequence[float] = 0.0,
) -> Instances:
    """Combine votes, scores and attributes into instances; any mix of the three is a hybrid problem.

    Parameters
    ----------
    votes
        (T, n) class labels, any hashable; None, nan or empty text abstains. A DataFrame gives the voters' names.
    scores
        (T, n, k) ratings of every class by each of n raters, classes in the order of ``classes`` (0..k-1 if absent).
    attributes
        (T, m) numbers, dense or sparse, or a list of ``{name: strength}`` dicts whose names form a growing
        vocabulary.
    classes
        All classes, in order. Without it they are those met in votes and labels.
    thresholds
        Add the constant attribute 1, that is one threshold for each class.
    abstain
        A label that also means abstention, such as -1, or a set of them.
    negated
        Add a copy -x of every voter, rater and attribute, for rules whose weights stay positive.
    split
        "all", or ``{i: class}`` / ``{i: "all"}`` for voter or rater i (raters count after voters): add its rating of
        that class (of every class) as attributes, so that it may be trusted for one class and not for another.
    scale
        Divide ratings and attributes so that rules that need it see at most 1: "max" (the largest magnitude of each
        column over the instances given), one number, or the ``.scale`` of earlier instances. By default
        nothing is scaled.
    vocabulary
        Names of attributes seen before, from ``.vocabulary``.
    by
        A side column, one value per trial, such as a subject or a source: adds copies of every voter for each value,
        which vote where it holds and abstain elsewhere, so that a voter may be trusted on one subject and not on
        another. A copy rates its class 0.15, so that it takes more evidence to trust it than to trust the voter (for
        a softmax its prior is 44 times as firm). A missing value has no copies.
    sides
        Values for which there are copies already, from ``.sides`` of earlier instances; new ones come after them.
    unseen
        x^inf: what every sub-expert rates a class that no label has named so far, in ``run(..., discover="labels")``;
        one number, or one for each sub-expert in the order of the flat weights. Other than 0 it makes every
        sub-expert a rater with ratings for all classes, lower by this much (which changes nothing between known
        classes): for small problems, with ``classes``.

    References
    ----------
    Mesterharm (2001), Rutgers dcs-tr-460, sections 2.1 (sub-experts), 4.2 (negated copies), 5 (attributes, splits), 6.2
    (new classes).

    Returns
    -------
    Instances
        The instances; they can be sliced, and their ``layout`` says what is in them.

    Examples
    --------
    >>> import linmax
    >>> linmax.instances(votes=[["a", "b", None], ["b", "b", "a"]])
    <2 instances: 3 voters, 0 raters, 0 attributes and thresholds>
    >>> linmax.instances(votes=[["a"], ["b"]], attributes=[[0.5, 1.0], [0.0, 0.2]], split="all")
    <2 instances: 1 voters, 0 raters, 4 attributes and thresholds>
    """
    thresholds, negated = boolean("thresholds", thresholds), boolean("negated", negated)
    sizes = {
        name: length_of(name, block)
        for name, block in [("votes", votes), ("scores", scores), ("attributes", attributes)]
        if block is not None
    }
    if not sizes:
        raise ValueError("instances() needs votes, scores or attributes; got none of them")
    if len(set(sizes.values())) > 1:
        given = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise ValueError(f"votes, scores and attributes must have one row per trial, but {given}")
    size = next(iter(sizes.values()))
    names = None if classes is None else distinct_classes(classes)
    codes, names_met, voter_names = read_votes(votes, size, names, abstain)
    ratings = read_scores(scores, size, names)
    if ratings.shape[1] and names is None:
        names = tuple(range(ratings.shape[2]))
        if set(names_met) - set(names):
            extra = sorted(set(names_met) - set(names), key=str)[0]
            raise ValueError(f"votes: {extra!r} is not among the {len(names)} classes that scores rate; pass classes=")
        codes = np.array([*(names.index(name) for name in names_met), -1], np.int32)[codes]
        names_met = names
    dense, csr, attribute_names, vocabulary = read_attributes(attributes, size, vocabulary)
    dense, csr, ratings, used = scaled(dense, csr, ratings, scale)
    signs = np.ones(codes.shape[1])
    met = codes  # only the voters themselves are split
    codes, signs, voter_names, values = copies_for(by, sides, codes, signs, voter_names)
    extra_dense, extra_csr, extra_names = split_voters(split, met, ratings, names_met, voter_names)
    if negated:
        codes, signs = np.hstack([codes, codes]), np.concatenate([signs, -signs])
        voter_names = voter_names + tuple(f"-{name}" for name in voter_names)
        ratings = np.concatenate([ratings, -ratings], axis=1)
        dense = np.hstack([dense, -dense])
        csr = None if csr is None else sparse.csr_array(sparse.hstack([csr, -csr], format="csr"))
        attribute_names = attribute_names + tuple(f"-{name}" for name in attribute_names)
    dense = np.hstack([dense, extra_dense])
    attribute_names = attribute_names + extra_names[0] if csr is None else extra_names[0] + attribute_names
    attribute_names = attribute_names + extra_names[1]
    if extra_csr is not None:
        csr = extra_csr if csr is None else sparse.csr_array(sparse.hstack([csr, extra_csr], format="csr"))
    found = Instances(
        np.ascontiguousarray(codes, np.int32),
        signs,
        np.ascontiguousarray(ratings),
        np.ascontiguousarray(dense),
        csr,
        1.0 if thresholds else 0.0,
        tuple(names_met),
        names is not None,
        used,
        voter_names,
        attribute_names,
        vocabulary,
        values,
    )
    return found if np.array_equal(unseen, 0.0) else _rated(found, unseen)


def _rated(given: Instances, unseen: float | Sequence[float]) -> Instances:
    """Return the instances with every sub-expert as a rater, lower by what it rates a class never seen."""
    if not given.fixed:
        raise ValueError(f"unseen={unseen!r} requires classes=, all classes that may come, known or not")
    ratings = np.array([given.matrix(t).T for t in range(len(given))])
    lower = np.asarray(unseen, float).reshape(-1, 1)
    if lower.size not in (1, ratings.shape[1]):
        raise ValueError(f"unseen must be one number or {ratings.shape[1]}, one a sub-expert, got {lower.size}")
    if ratings.size and not (ratings.min() <= lower.min() and lower.max() <= ratings.max()):
        raise ValueError(f"unseen must be from {ratings.min():g} to {ratings.max():g}, as ratings are, got {unseen!r}")
    return instances(scores=ratings - lower, classes=given.names, thresholds=False)


def instances_of_codes(
    codes: np.ndarray, names: Sequence[Label], voter_names: Sequence[str], fixed: bool = True, thresholds: bool = True
) -> Instances:
    """Return instances of votes that are places in ``names`` already."""
    size, voters = codes.shape
    none = np.zeros((size, 0))
    scale = Scale(np.ones(0), np.ones(0))
    codes, signs, constant = np.ascontiguousarray(codes, np.int32), np.ones(voters), 1.0 if thresholds else 0.0
    block = np.zeros((size, 0, 0))
    return Instances(
        codes, signs, block, none, None, constant, tuple(names), fixed, scale, tuple(voter_names), (), None
    )
