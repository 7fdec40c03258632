"""Join the names of several models: classes, voters, and the columns of vocabularies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from linmax.io.name_table import number_names
from linmax.io.scan import PADDING
from linmax.io.vocabulary import Vocabulary
from linmax.models.streams.model import StreamModel

__all__ = ["begins_with", "union_of_classes", "union_of_names", "union_of_vocabularies"]


def union_of_names(lists: Sequence[Sequence[Any]]) -> tuple[list[Any], list[np.ndarray]]:
    """All names in order of appearance, and the places of each list's names among them."""
    table: dict[Any, int] = {}
    maps = [np.array([table.setdefault(name, len(table)) for name in names], np.int64) for names in lists]
    return list(table), maps


def union_of_classes(classes: Sequence[Sequence[Any]], known: Sequence[int]) -> tuple[list[Any], int, list[np.ndarray]]:
    """The classes of all, known ones first, how many are known, and their places."""
    first = list(dict.fromkeys(name for names, count in zip(classes, known, strict=True) for name in names[:count]))
    names, maps = union_of_names([first, *classes])
    return names, len(first), maps[1:]


def union_of_vocabularies(models: Sequence[StreamModel]) -> tuple[Vocabulary, list[np.ndarray]]:
    """The names of all, and the place of each model's columns."""
    first = models[0].vocabulary
    if first.bits:
        return Vocabulary(first.bits), [np.arange(2**first.bits) for _ in models]
    longest = max(models, key=lambda model: model.columns)
    names = longest.vocabulary.arrays(longest.columns)
    if all(begins_with(names, model.vocabulary.arrays(model.columns)) for model in models):
        whole = len(longest.vocabulary) == longest.columns
        union = deepcopy(longest.vocabulary) if whole else Vocabulary.from_arrays(names)
        return union, [np.arange(model.columns) for model in models]
    union = Vocabulary()
    return union, [_joined(union, model) for model in models]


def begins_with(names: Mapping[str, np.ndarray], first: Mapping[str, np.ndarray]) -> bool:
    """Whether the first names are the others; both as returned by `Vocabulary.arrays`."""
    return all(np.array_equal(names[part][: first[part].size], first[part]) for part in ("offsets", "names"))


def _joined(union: Vocabulary, model: StreamModel) -> np.ndarray:
    """The numbers of the model's names in the union, where new ones are added."""
    arrays = model.vocabulary.arrays(model.columns)
    store, offsets = arrays["names"], np.ascontiguousarray(arrays["offsets"], np.int64)
    block = np.concatenate([store, np.zeros(PADDING, np.uint8)])
    numbers = np.zeros(offsets.size - 1, np.int64)
    union.reserve(numbers.size, store.size)
    number_names(union.names, block, offsets, numbers, 0, True)
    return numbers
