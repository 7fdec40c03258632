"""Labels as users write them, and as numbers: which are distinct, and the place of each among them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from linmax.data.blocks import missing
from linmax.data.distinct import distinct_of
from linmax.util.checks import refuse_masked

__all__ = [
    "as_array",
    "distinct_labels",
    "label_array",
    "labels_with_gaps",
    "named",
    "no_label",
    "refuse_wide",
    "unique_labels",
]


def label_array(labels: Any) -> np.ndarray:
    """Labels as an array, one of objects unless they came in one, so that each keeps its type."""
    refuse_masked("labels", labels)
    if isinstance(labels, np.ndarray):
        return np.asarray(labels)  # without a mask that hides nothing
    if not isinstance(labels, (list, tuple)):
        return np.asarray(labels, dtype=object)
    array = np.empty(len(labels), dtype=object)
    for t, name in enumerate(labels):
        array[t] = name  # one by one: numpy would unpack a tuple
    return array


def as_array(names: Sequence[Any]) -> np.ndarray:
    """Labels as an array of their own kind, or of objects if they are of several."""
    array = np.array(names) if not any(isinstance(name, tuple) for name in names) else np.zeros((0, 0))
    rounded = array.dtype.kind == "f" and any(isinstance(name, int) and abs(name) >= 2**53 for name in names)
    return array if array.ndim == 1 and array.tolist() == list(names) and not rounded else label_array(list(names))


def distinct_labels(labels: Sequence[Any] | np.ndarray, size: int, gaps: bool = False) -> tuple[list[Any], np.ndarray]:
    """`unique_labels` of one label for each of ``size`` trials; with ``gaps``, -1 where there is none yet."""
    names = label_array(labels)
    if names.ndim != 1 or len(names) != size:
        raise ValueError(f"labels must be one per trial: got shape {names.shape} for {size} instances")
    return labels_with_gaps(names) if gaps else unique_labels(names)


def refuse_wide(name: str, value: Any) -> None:
    """Refuse an integer beyond 64 bits, which NumPy cannot hold.

    Examples
    --------
    >>> refuse_wide("labels", 10**20)
    Traceback (most recent call last):
    ValueError: labels: integers must fit in 64 bits, got 100000000000000000000; pass it as text
    """
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise ValueError(f"{name}: integers must fit in 64 bits, got {value}; pass it as text")


def no_label(label: Any) -> bool:
    """Return whether there is no label yet: None, nan, pandas' NA or text that is empty but for spaces."""
    return missing(label) or (isinstance(label, str) and not label.strip())


def labels_with_gaps(labels: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """`unique_labels`, and -1 in place of a label that is None, nan or empty: there is none yet.

    Examples
    --------
    >>> labels_with_gaps(np.array(["b", None, "a", ""], dtype=object))
    (['a', 'b'], array([ 1, -1,  0, -1]))
    """
    if labels.dtype.kind == "f":
        there = ~np.isnan(labels)
    elif labels.dtype.kind in "US":
        there = np.char.strip(labels) != labels.dtype.type()
    elif labels.dtype == object:
        there = np.array([not no_label(name) for name in labels], bool)
    else:
        return unique_labels(labels)
    if there.all():
        return unique_labels(labels)
    if not there.any():
        return [], np.full(len(labels), -1)
    distinct, inverse = unique_labels(labels[there])
    places = np.full(len(labels), -1)
    places[there] = inverse
    return distinct, places


def unique_labels(labels: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Distinct labels (sorted when they can be) and the place of each label among them; missing ones are refused."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        t = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise ValueError(f"labels: {labels[t]!r} at trial {t} is not a class; drop the trial or fill it in")
    if labels.dtype != object:
        distinct, places = distinct_of(labels)
        return distinct.tolist(), places
    for t, name in enumerate(labels):
        if not isinstance(name, Hashable):
            raise TypeError(f"labels: {name!r} at trial {t} is not hashable; use text, a number or a tuple")
        if missing(name):
            raise ValueError(f"labels: {name!r} at trial {t} is not a class; drop the trial or fill it in")
    try:
        names = sorted(set(labels.tolist()))
    except TypeError:  # labels of several kinds have no order
        names = list(dict.fromkeys(labels.tolist()))
    place = {name: i for i, name in enumerate(names)}
    return names, np.array([place[name] for name in labels], np.int64)


def named(numbers: np.ndarray, classes: Sequence[Any]) -> np.ndarray:
    """The classes with these numbers; None for -1, which is before the first class is known."""
    names = as_array(classes)
    if numbers.min(initial=0) < 0:
        return np.array([classes[i] if i >= 0 else None for i in numbers], dtype=object)
    if names.dtype == np.int64 and (names == names[0] + np.arange(len(names))).all():
        found = numbers.astype(np.int64)
        return found + names[0] if names[0] else found
    return names[numbers]
