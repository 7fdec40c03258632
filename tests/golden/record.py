"""How results are kept and compared.

A result is a dict of plain values. Of predictions their digest is kept, of arrays of numbers a `sample`. Text, truth
values and whole numbers are compared exactly; numbers up to rounding, since other processors fuse multiplications and
additions differently and add vectors of another length: `ROUNDING` for rules, which compute in double precision, and
`SINGLE` for the pools of attributes, which compute in single precision. With ``LINMAX_GOLDEN_EXACT=1`` they are
compared bit for bit.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"
EXACT = os.environ.get("LINMAX_GOLDEN_EXACT") == "1"
ROUNDING = 1e-9  # relative difference that another processor may make
SINGLE = 1e-5  # the same in single precision
SINGLE_LEARNERS = ("auto", "attributes")  # learners that may compute in single precision
CANCELLED = 1e-12  # of the largest number of a sample: what cancels may leave a rest
CANCELLED_SINGLE = 1e-7  # the same in single precision, of 1: scores, weights and probabilities
SHOWN = 3  # numbers of a sample that are kept, unless more are asked for
BITS = "bits"  # the digest of all numbers of a sample, which is compared only bit for bit


# -- cases ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Something to play: the file of its result, its name there, what plays it, and how far numbers may differ."""

    face: str
    name: str
    play: Callable[[], dict[str, Any]]
    rounding: float = ROUNDING
    small: bool = False  # fast enough without a compiler

    def result(self) -> dict[str, Any]:
        """What comes out; a refusal is a result too."""
        try:
            return self.play()
        except ValueError as error:
            return {"refused": " ".join(str(error).split())}

    @property
    def id(self) -> str:
        """The name in reports."""
        return f"{self.face}-{self.name}"


CASES: dict[str, Case] = {}


def case(face: str, name: str, play: Callable[..., dict[str, Any]], *given: Any, **options: Any) -> None:
    """Register ``play(*given)``; the name of a case ends with its learner."""
    if name.rpartition("-")[2] in SINGLE_LEARNERS:
        options.setdefault("rounding", SINGLE)
    made = Case(face, name, lambda: play(*given), **options)
    assert made.id not in CASES, made.id
    CASES[made.id] = made


# -- what is kept --------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """The same as JSON can hold it."""
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    assert value is None or isinstance(value, (str, bool, int, float)), value
    return value


def digest(values: Iterable[Any]) -> str:
    """Of labels, in their order."""
    return hashlib.sha256(json.dumps(plain(list(values))).encode()).hexdigest()[:12]


def answers(predictions: Iterable[Any], labels: Iterable[Any]) -> dict[str, Any]:
    """Predictions before the labels were seen: their digest and the mistakes."""
    said, right = plain(list(predictions)), plain(list(labels))
    return {"predictions": digest(said), "mistakes": sum(a != b for a, b in zip(said, right, strict=True))}


def sample(values: Any, shown: int = SHOWN) -> dict[str, Any]:
    """Some numbers of an array, its size, the sum of its magnitudes and the digest of all its bits."""
    array = np.ascontiguousarray(np.asarray(values, np.float64)).ravel() + 0.0  # which makes -0 to 0
    places = sorted({round(place) for place in np.linspace(0, array.size - 1, min(shown, array.size))})
    return {
        "size": array.size,
        "total": math.fsum(abs(array)) if np.isfinite(array).all() else None,
        "some": [float(array[place]) for place in places],
        BITS: hashlib.sha256(array.astype("<f8").tobytes()).hexdigest()[:12],
    }


def by_name(values: Any, shown: int = SHOWN) -> dict[str, Any]:
    """A `sample` of all numbers in nested dicts and lists, and the digest of all else, names in their order."""
    flat = list(_leaves(values, ()))
    return {
        "names": digest(name for name, _ in flat),
        **sample([number for _, number in flat if number is not None], shown),
    }


def _leaves(value: Any, above: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], float | None]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, (*above, name))
    elif isinstance(value, (list, tuple, np.ndarray)):
        for place, inner in enumerate(value):
            yield from _leaves(inner, (*above, place))
    elif isinstance(value, (float, np.floating)):
        yield above, float(value)
    else:  # whole numbers, text and truth values are compared exactly
        yield (*above, value), None


# -- files ---------------------------------------------------------------------------------------------------------


def read(face: str) -> dict[str, Any]:
    """The kept results of a face by the name of the case."""
    path = RESULTS / f"{face}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def write(face: str, results: Mapping[str, Any]) -> None:
    """Keep them: a line for each, so that a difference is one of lines."""
    RESULTS.mkdir(exist_ok=True)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(result)}" for name, result in sorted(results.items()))
    (RESULTS / f"{face}.json").write_text(f"{{\n{lines}\n}}\n")


def difference(kept: Any, found: Any, rounding: float, exact: bool, largest: float = 0.0) -> str | None:
    """Where two results differ and how; None where they do not."""
    if isinstance(kept, dict) and isinstance(found, dict):
        if kept.keys() != found.keys():
            return f" has {sorted(found)}, not {sorted(kept)}"
        largest = max((abs(number) for number in kept.get("some", [])), default=0.0)
        pairs = [(f".{name}", kept[name], found[name]) for name in kept if exact or name != BITS]
    elif isinstance(kept, list) and isinstance(found, list) and len(kept) == len(found):
        pairs = [(f"[{i}]", a, b) for i, (a, b) in enumerate(zip(kept, found, strict=True))]
    else:
        return None if _equal(kept, found, rounding, exact, largest) else f": kept {kept!r}, found {found!r}"
    for name, a, b in pairs:
        told = difference(a, b, rounding, exact, largest)
        if told is not None:
            return name + told
    return None


def _equal(kept: Any, found: Any, rounding: float, exact: bool, largest: float) -> bool:
    if type(kept) is not type(found):
        return False
    if exact or not isinstance(kept, float) or not math.isfinite(kept):
        return kept == found or kept != kept != found != found
    cancelled = CANCELLED_SINGLE if rounding == SINGLE else CANCELLED * largest
    return math.isclose(kept, found, rel_tol=rounding, abs_tol=cancelled)
