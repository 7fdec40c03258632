"""The first trials of a stream, kept until nothing more is decided from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from linmax.core.contract import KNOWN, Instances
from linmax.data.arrays import Layout, concatenate, cut, no_instances, widen
from linmax.learners.mixing import Apart, Mixture

__all__ = ["LAST", "FirstTrials"]

LAST = 512  # trials that are kept, at most


class FirstTrials:
    """State: attributes, labels and weights of the trials kept, classes known before them, whether more are kept."""

    names = ("dense", "indptr", "indices", "values", "labels", "weights", "numbers")

    def __init__(self) -> None:
        self.instances = no_instances(0)
        self.labels, self.weights = np.zeros(0, np.int32), np.zeros(0)
        self.known, self.open = 0, True

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All the state."""
        numbers = np.array([self.known, self.open, self.instances.constant])
        found = {name: getattr(self.instances, name) for name in self.names[:4]}
        return found | {"labels": self.labels, "weights": self.weights, "numbers": numbers}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over a state."""
        known, is_open, constant = arrays["numbers"].tolist()
        self.known, self.open, self.labels = int(known), bool(is_open), arrays["labels"].copy()
        self.weights = arrays["weights"].copy() if "weights" in arrays else np.ones(len(self.labels))
        parts = {name: arrays[name].copy() for name in self.names[:4]}
        self.instances = no_instances(len(self.labels))._replace(**parts, constant=constant)

    @property
    def until(self) -> int:
        """Trials until the next power of 2."""
        size = len(self.labels)
        return (1 << size.bit_length()) - size

    @property
    def due(self) -> bool:
        """Whether it is time to look at them."""
        return self.until == len(self.labels) or len(self.labels) >= LAST

    def keep(
        self, shape: np.ndarray, instances: Instances, labels: np.ndarray, weights: np.ndarray | None = None
    ) -> None:
        """Keep further trials, which count 1 each or as much as ``weights`` say."""
        if not len(self.labels):
            self.known = int(shape[KNOWN])
        size = len(labels)
        new = no_instances(size)._replace(**{name: getattr(instances, name) for name in self.names[:4]})
        old = self.instances
        columns = max(old.dense.shape[1], new.dense.shape[1])
        sparse = bool(old.indptr.size or new.indptr.size)
        layout = Layout(0, 0, columns, int(sparse), instances.constant)
        old, new = widen(old, layout, 0), widen(new, layout, 0)
        self.instances = concatenate(old, new)._replace(constant=instances.constant)
        self.labels = np.concatenate([self.labels, labels])
        self.weights = np.concatenate([self.weights, np.ones(size) if weights is None else weights])

    def mix(self, mixture: Mixture) -> None:
        """Keep the trials of all parts, those of the base once, if all of them still keep theirs and they are few."""
        base = 0 if mixture.base is None else len(mixture.base.state.first.labels)
        firsts = [part.state.first for part in mixture.parts]
        if not all(first.open for first in firsts) or sum(len(first.labels) - base for first in firsts) + base >= LAST:
            self.close()
            return
        found = []
        for place, (part, first) in enumerate(zip(mixture.parts, firsts, strict=True)):
            begin = base if place else 0
            kept = cut(first.instances, begin, len(first.labels))
            found.append((part, kept, first.labels[begin:], first.weights[begin:]))
        self.take(found)
        self.known = firsts[0].known

    def take(self, parts: Sequence[tuple[Apart, Instances, np.ndarray, np.ndarray]]) -> None:
        """Keep trials of several, at their places among all columns and classes."""
        for part, kept, labels, weights in parts:
            dense = np.zeros((len(kept.dense), int(part.dense.max(initial=-1)) + 1))
            dense[:, part.dense[: kept.dense.shape[1]]] = kept.dense
            indices = part.sparse[kept.indices].astype(np.int32)
            own = part.classes[labels].astype(np.int32)
            self.keep(np.zeros(KNOWN + 1, np.int64), kept._replace(dense=dense, indices=indices), own, weights)

    def close(self) -> None:
        """Forget them; no more are kept."""
        self.instances, self.open = no_instances(0), False
        self.labels, self.weights = self.labels[:0], self.weights[:0]
