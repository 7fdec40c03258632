"""A model that plays instances from `linmax.experts` and labels as users write them; `linmax.run` leaves one behind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from linmax.core.contract import KNOWN, Instances
from linmax.data.arrays import Layout, widen
from linmax.data.experts import Experts
from linmax.data.labels import distinct_labels, named
from linmax.models.columns import Columns
from linmax.models.model import Model
from linmax.models.trace import Trace, in_a_row

__all__ = ["ExpertsModel", "refuse_others"]


class ExpertsModel(Model):
    """A model that plays, predicts and rates instances from `linmax.experts`. Make one through `linmax.run`."""

    def run(
        self,
        instances: Experts,
        labels: Sequence[Any] | np.ndarray,
        *,
        margins: bool = False,
        grow: bool = False,
        first_pass: bool = True,
        weights: np.ndarray | None = None,
    ) -> Trace:
        """Go on with further trials; returns their `Trace`. A label that is None, nan or empty is none yet.

        Trials count as much as ``weights`` > 0 say (see `linmax.models.showings`).

        With ``grow`` the instances may have further voters, raters and attributes, at the right of their block, and
        labels and votes may name further classes. A new sub-expert starts with the weight of one that has always been
        there and never spoke; a new class is predicted only after its first label (Mesterharm 2001, section 6), or in
        discovery by votes from its first vote on.

        Examples
        --------
        >>> import linmax
        >>> model = linmax.run("perceptron", linmax.experts(votes=[["a"], ["b"]]), ["a", "b"]).model
        >>> more = linmax.experts(votes=[["a", "c"], ["c", "c"]])
        >>> model.run(more, ["c", "c"], grow=True).predictions.tolist()
        ['a', 'c']
        >>> model.classes, model.layout.voters
        (['a', 'b', 'c'], 2)
        """
        refuse_others(instances)
        found = distinct_labels(labels, len(instances), gaps=True)
        options: dict[str, Any] = {"margins": margins, "grow": grow, "first_pass": first_pass}
        return self.run_numbered(instances, found, weights=weights, **options)

    def run_numbered(
        self,
        instances: Experts,
        found: tuple[list[Any], np.ndarray],
        *,
        margins: bool = False,
        grow: bool = False,
        first_pass: bool = True,
        weights: np.ndarray | None = None,
    ) -> Trace:
        """`run`, given the distinct labels and the place of each label among them, -1 where there is none yet."""
        options: dict[str, Any] = {"margins": margins, "grow": grow, "first_pass": first_pass}
        begins = self._debuts(instances, found, grow)
        if len(begins) == 1:
            here = self._named_here(instances) if grow else instances
            return self._run_stretch(here, found, weights=weights, **options)
        self._check(instances, found, grow)  # refused as a whole, or not at all
        parts = []
        for begin, end in pairwise([*begins, len(instances)]):
            part = slice(begin, end)
            seen = np.unique(found[1][part])
            seen, missing = seen[seen >= 0], found[1][part] < 0
            told = [found[0][i] for i in seen], np.where(missing, -1, np.searchsorted(seen, found[1][part]))
            here = self._named_here(instances[part]) if grow else instances[part]
            weights_here = None if weights is None else weights[part]
            parts.append(self._run_stretch(here, told, weights=weights_here, **options))
        return in_a_row(parts)

    def _check(self, instances: Experts, found: tuple[list[Any], np.ndarray], grow: bool) -> None:
        """Raise what any stretch of these trials would raise."""
        more = [*found[0], *instances.names] if grow else []
        classes = list(dict.fromkeys([*self.classes, *more]))
        _numbered(*found, classes)
        self.fitted(instances, self._wider(instances.layout) if grow else self.layout, classes, grow)

    def _debuts(self, instances: Experts, found: tuple[list[Any], np.ndarray], grow: bool) -> list[int]:
        """The first trial, and those at which a label or a vote names a class for the first time.

        There the model grows, or the class becomes known, so that it does not matter how trials are cut into calls.
        """
        grow = grow and not (instances.fixed or instances.layout.raters)
        joining = set(found[0]).union(instances.names) - set(self.classes) if grow else set()
        by_votes = self.engine.settings.by_votes
        strange = joining.union(instances.names).difference(self.known) if by_votes else joining
        begins, size = {0}, len(instances)
        for names, new, codes in (
            (found[0], joining, found[1][:, None]),
            (instances.names, strange, instances.votes),
        ):
            if new:
                first = np.full(len(names) + 1, size)
                first[codes[::-1].ravel()] = np.repeat(np.arange(size)[::-1], codes.shape[1])
                begins |= {int(t) for name, t in zip(names, first, strict=False) if name in new and t < size}
        return sorted(begins)

    def _named_here(self, instances: Experts) -> Experts:
        """The instances without names of classes, new to the model, for which none of them votes."""
        if instances.fixed or instances.layout.raters or set(instances.names) <= set(self.classes):
            return instances
        used = np.unique(instances.votes[instances.votes >= 0])
        place = np.full(len(instances.names) + 1, -1, np.int32)
        place[used] = np.arange(len(used))
        return replace(instances, votes=place[instances.votes], names=tuple(instances.names[i] for i in used))

    def _run_stretch(
        self,
        instances: Experts,
        found: tuple[list[Any], np.ndarray],
        *,
        margins: bool,
        grow: bool,
        first_pass: bool,
        weights: np.ndarray | None,
    ) -> Trace:
        """`run_numbered` where votes name no class for the first time after the first trial."""
        distinct, inverse = found
        classes, layout = self.classes, self.layout
        known = int(self.engine.state.shape[KNOWN])
        met: list[Any] = []  # in the order of their first trials, where it matters
        voted: list[Any] = []
        if grow or known < len(classes):
            met = [distinct[i] for i in dict.fromkeys(inverse.tolist()) if i >= 0]
            voted = [instances.names[vote] for vote in instances.votes[:1].ravel().tolist() if vote >= 0]
        if grow:
            classes, layout = list(dict.fromkeys([*classes, *met, *instances.names])), self._wider(instances.layout)
        if known < len(classes):  # as `meet` will number them
            first = [*voted, *met] if self.engine.settings.by_votes else met
            among = set(classes)
            classes = list(dict.fromkeys([*classes[:known], *(name for name in first if name in among), *classes]))
        places = _numbered(distinct, inverse, classes)
        played = self.fitted(instances, layout, classes, grow)
        self.grows |= grow
        self.grow(layout, classes)
        self.meet(met, voted)
        self.columns = Columns(
            max(self.columns.voters, instances.voter_names, key=len),
            self.columns.raters,
            max(self.columns.attributes, instances.attribute_names, key=len),
        )
        outcome = self.play(played, places, margins, first_pass, weights=weights)
        predictions, changed = outcome.predictions, outcome.changed.view(np.bool_)
        wrong = predictions != places
        if places.min(initial=0) < 0:
            wrong &= places >= 0
        return Trace(self, named(predictions, self.classes), wrong, changed, outcome.margins)

    def _wider(self, other: Layout) -> Layout:
        """The layout that holds this one's columns and the other's."""
        mine = self.layout
        both = Layout(
            max(mine.voters, other.voters),
            max(mine.raters, other.raters),
            max(mine.dense, other.dense),
            max(mine.sparse, other.sparse),
            mine.constant,
            max(mine.names, other.names, key=len),
        )
        return both if both.holds(mine) and both.holds(other) else mine

    def predict(self, instances: Experts) -> np.ndarray:
        """The class of each instance under the current weights; nothing is learned."""
        return named(self.engine.judge(self.fitted(instances), len(instances))[0], self.classes)

    def scores(self, instances: Experts) -> np.ndarray:
        """The votes zeta(j) of each instance for each class, up to one positive factor; nothing is learned."""
        return self.engine.judge(self.fitted(instances), len(instances))[1]

    def rates(self, instances: Experts) -> np.ndarray:
        """The same, and -inf for classes not yet known."""
        return self.judge(self.fitted(instances), len(instances))[1]

    def predict_proba(self, instances: Experts) -> np.ndarray:
        """The probability of each of `classes` for each instance; nothing is learned."""
        return self.probabilities(self.judge(self.fitted(instances), len(instances))[1])

    def margin(self, instances: Experts, labels: Sequence[Any] | np.ndarray) -> float:
        """min over trials of (zeta(label) - zeta(rival)) / (sqrt(2) ||w||_2): the margin that these weights give.

        For attributes alone this is the textbook margin of a multi-class linear classifier: with R = instances.radius
        and gamma the largest margin of any weights, cyclic passes of the Perceptron end after R^2/gamma^2 violations.
        """
        numbers = _numbered(*distinct_labels(labels, len(instances)), self.classes)
        if not len(numbers) or len(self.classes) < 2:
            raise ValueError("margin needs at least one instance and two classes")
        weights, _ = self.engine.top.hypothesis(self.engine)
        _, table = self.engine.rate(self.fitted(instances), len(instances), weights)
        rows = np.arange(len(numbers))
        right = table[rows, numbers].copy()
        table[rows, numbers] = -np.inf
        norm = float(np.linalg.norm(weights))
        return float((right - table.max(axis=1)).min() / (math.sqrt(2.0) * norm)) if norm else 0.0

    def check_range(self, instances: Experts) -> None:
        """Refuse instances beyond the range of floats, or that which a rule needs."""
        instances.refuse_huge()
        if self.bounded is not None and instances.range > 1.0 + 1e-12:
            raise ValueError(
                f"{self.bounded} needs ratings that differ by at most 1 and attributes in [-1, 1], but the instances "
                f"reach {instances.range:g}; pass scale='max' to experts(...) or divide them yourself"
            )

    def fitted(
        self,
        instances: Experts,
        layout: Layout | None = None,
        classes: Sequence[Any] | None = None,
        grow: bool = False,
    ) -> Instances:
        """The instances in these columns and classes, or else the present ones, after the checks that rules need."""
        refuse_others(instances)
        layout, classes = layout or self.layout, self.classes if classes is None else classes
        if instances.layout != layout and not ((grow or self.grows) and layout.holds(instances.layout)):
            raise ValueError(
                f"instances have {instances.layout}, but the learner was made for {self.layout}; give experts(...) the "
                "same blocks and options, and the vocabulary= of named attributes"
            )
        self.check_range(instances)
        return widen(instances.compiled(classes), layout, len(classes))


def _numbered(distinct: list[Any], inverse: np.ndarray, classes: Sequence[Any]) -> np.ndarray:
    """Labels as class indices."""
    place = {name: i for i, name in enumerate(classes)}
    missing = [name for name in distinct if name not in place]
    if missing:
        t = int(np.flatnonzero(inverse == distinct.index(missing[0]))[0])
        raise ValueError(
            f"labels: {missing[0]!r} at trial {t} is not among the classes {_short(classes)}; "
            "pass all classes to experts(classes=...)"
        )
    numbers = np.array([*(place[name] for name in distinct), -1], np.int32)
    if (numbers[:-1] == np.arange(len(distinct))).all():  # as a rule
        return inverse.astype(np.int32, copy=False)
    return numbers[inverse]


def refuse_others(instances: Any) -> None:
    """Say how to make instances of what is not."""
    if not isinstance(instances, Experts):
        raise TypeError(
            f"instances must come from experts(...), got {type(instances).__name__}; try experts(attributes=...)"
        )


def _short(items: Sequence[Any]) -> str:
    return repr(list(items)) if len(items) <= 10 else f"[{', '.join(map(repr, items[:10]))}, ... {len(items)} in all]"
