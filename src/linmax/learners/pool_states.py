"""Stored states of the pool for attributes: its parts by name, and states that earlier versions wrote."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linmax.learners.at_large import AtLarge
from linmax.learners.attribute_kinds import MIXED, SPARSE, Kinds
from linmax.learners.first_trials import FirstTrials
from linmax.learners.members import Group
from linmax.util.names import Handed

__all__ = ["STATE_PARTS", "as_now", "under", "with_log_odds"]

STATE_PARTS = {"kinds", "first", "large"}  # of the state, beside the groups


def as_now(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A state as it was stored before the groups had names: nothing was decided, attributes were as they came."""
    found, names = dict(arrays), []
    for place, kind in enumerate(arrays["order"].tolist()):
        names += ["dense"] if kind else ["sparse", "recent"]
        found |= {f"{names[-1] if kind else 'sparse'}.{key}": own for key, own in under(f"team{place}", arrays).items()}
    found["recent.recent"] = arrays["recent"]
    kinds, first = Kinds(SPARSE if names == ["sparse", "recent"] else MIXED), FirstTrials()
    first.close()
    found |= {f"kinds.{key}": own for key, own in kinds.arrays.items()}
    found |= {f"first.{key}": own for key, own in first.arrays.items()}
    found |= {f"large.{key}": own for key, own in AtLarge().arrays.items()}
    found = {key: own for key, own in found.items() if not key.startswith("team")}
    present = sorted({key.partition(".")[0] for key in found if "." in key} - STATE_PARTS)
    if "sparse" not in names:
        del found["recent.recent"]
        present.remove("recent")
    return found | {"order": np.array([present.index(name) for name in names], np.int64)}


def with_log_odds(fusion: Mapping[str, np.ndarray], groups: Mapping[str, Group]) -> Mapping[str, np.ndarray]:
    """The state of the fusion; one from before words had log odds gets them, after naive Bayes and with weight 0.

    Their scores are taken to be as large as those of naive Bayes.
    """
    sizes = [(name, len(group.members)) for name, group in groups.items()]
    if len(fusion["weights"]) == sum(size for _, size in sizes):
        return fusion
    place = sum(size for _, size in sizes[: [name for name, _ in sizes].index("sparse") + 1]) - 1
    old = [i for i in range(len(fusion["weights"]) + 1) if i != place]
    matrix = np.eye(len(old) + 1)
    matrix[np.ix_(old, old)] = fusion["matrix"]
    return dict(fusion) | {
        "weights": np.insert(fusion["weights"], place, 0.0),
        "squares": np.insert(fusion["squares"], place, fusion["squares"][place - 1]),
        "matrix": matrix,
    }


def under(name: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a part, by their own names. Those handed over are so again."""
    if isinstance(arrays, Handed):
        return Handed(
            {key.removeprefix(f"{name}."): arrays.pop(key) for key in list(arrays) if key.startswith(f"{name}.")}
        )
    return {key.removeprefix(f"{name}."): array for key, array in arrays.items() if key.startswith(f"{name}.")}
