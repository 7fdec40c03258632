"""The first trials of a stream, kept until nothing more is decided from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from linmax.core.contract import KNOWN, Instances
from linmax.data.arrays import Layout, cut, no_instances, widen
from linmax.learners.members import renamed
from linmax.learners.mixing import Mixture, Placement

__all__ = ["LAST", "FirstTrials"]

LAST = 512  # trials that are kept, at most


class FirstTrials:
    """State: attributes, labels and weights of the trials kept, classes known before them, whether more are kept."""

    names = ("dense", "indptr", "indices", "values", "labels", "weights", "numbers")

    def __init__(self) -> None:
        self._instances, self._labels, self._weights = no_instances(0), np.zeros(0, np.int32), np.zeros(0)
        self._latest: list[tuple[Instances, np.ndarray, np.ndarray]] = []  # not yet put together with the others
        self.size, self.known, self.open = 0, 0, True

    @property
    def instances(self) -> Instances:
        """The attributes of the trials kept."""
        self._put_together()
        return self._instances

    @property
    def labels(self) -> np.ndarray:
        """Their labels."""
        self._put_together()
        return self._labels

    @property
    def weights(self) -> np.ndarray:
        """Their weights."""
        self._put_together()
        return self._weights

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All the state."""
        numbers = np.array([self.known, self.open, self.instances.constant])
        found = {name: getattr(self.instances, name) for name in self.names[:4]}
        return found | {"labels": self.labels, "weights": self.weights, "numbers": numbers}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over a state."""
        known, is_open, constant = arrays["numbers"].tolist()
        self.known, self.open, self._labels = int(known), bool(is_open), arrays["labels"].copy()
        self.size, self._latest = len(self._labels), []
        self._weights = arrays["weights"].copy() if "weights" in arrays else np.ones(self.size)
        parts = {name: arrays[name].copy() for name in self.names[:4]}
        self._instances = no_instances(self.size)._replace(**parts, constant=constant)

    @property
    def until(self) -> int:
        """Trials until the next power of 2."""
        return (1 << self.size.bit_length()) - self.size

    @property
    def due(self) -> bool:
        """Whether it is time to look at them."""
        return self.until == self.size or self.size >= LAST

    def keep(
        self, shape: np.ndarray, instances: Instances, labels: np.ndarray, weights: np.ndarray | None = None
    ) -> None:
        """Keep further trials, which count 1 each or as much as ``weights`` say."""
        if not self.size:
            self.known = int(shape[KNOWN])
        held = {name: getattr(instances, name).copy() for name in self.names[:4]}
        counted = np.ones(len(labels)) if weights is None else weights.copy()
        self.add(no_instances(len(labels))._replace(**held, constant=instances.constant), labels.copy(), counted)

    def add(self, instances: Instances, labels: np.ndarray, weights: np.ndarray) -> None:
        """Keep trials after the first, which have memory of their own."""
        self._latest.append((instances, labels, weights))
        self.size += len(labels)

    def _put_together(self) -> None:
        """Join what was kept lately to the rest."""
        if not self._latest:
            return
        parts = [self._instances, *(instances for instances, *_ in self._latest)]
        sparse = any(part.indptr.size for part in parts)
        layout = Layout(0, 0, max(part.dense.shape[1] for part in parts), int(sparse), 0.0)
        fitting = [part.dense.shape[1] == layout.dense and (part.indptr.size > 0) == sparse for part in parts]
        parts = [part if fits else widen(part, layout, 0) for part, fits in zip(parts, fitting, strict=True)]
        filled = np.concatenate([np.diff(part.indptr) for part in parts]) if sparse else np.zeros(0, np.int64)
        self._labels = np.concatenate([self._labels, *(labels for _, labels, _ in self._latest)])
        self._weights = np.concatenate([self._weights, *(weights for *_, weights in self._latest)])
        self._instances = no_instances(self.size)._replace(
            dense=np.concatenate([part.dense for part in parts]),
            indptr=np.concatenate([[0], np.cumsum(filled)]).astype(np.int64) if sparse else np.zeros(0, np.int64),
            indices=np.concatenate([part.indices for part in parts]),
            values=np.concatenate([part.values for part in parts]),
            constant=parts[-1].constant,
        )
        self._latest = []

    def mix(self, mixture: Mixture) -> None:
        """Keep the trials of all parts, those of the base once, if all of them still keep theirs and they are few."""
        base = 0 if mixture.base is None else mixture.base.state.first.size
        firsts = [part.state.first for part in mixture.parts]
        if not all(first.open for first in firsts) or sum(first.size - base for first in firsts) + base >= LAST:
            self.close()
            return
        found = []
        for place, (part, first) in enumerate(zip(mixture.parts, firsts, strict=True)):
            begin = base if place else 0
            kept = cut(first.instances, begin, first.size)
            found.append((part, kept, first.labels[begin:], first.weights[begin:]))
        self.take(found)
        self.known = firsts[0].known

    def take(self, parts: Sequence[tuple[Placement, Instances, np.ndarray, np.ndarray]]) -> None:
        """Keep trials of several, at their places among all columns and classes."""
        for part, kept, labels, weights in parts:
            dense = np.zeros((len(kept.dense), int(part.dense.max(initial=-1)) + 1))
            dense[:, part.dense[: kept.dense.shape[1]]] = kept.dense
            indices = part.sparse[kept.indices].astype(np.int32)
            own = renamed(labels, part.classes)
            self.keep(np.zeros(KNOWN + 1, np.int64), kept._replace(dense=dense, indices=indices), own, weights)

    def close(self) -> None:
        """Forget them; no more are kept."""
        self._instances, self._labels, self._weights = no_instances(0), np.zeros(0, np.int32), np.zeros(0)
        self._latest, self.size, self.open = [], 0, False
