"""Every learner and command gives the result that was kept: the same on all processors, up to rounding.

When a result was meant to change, ``python tests/golden/write.py`` writes all again and says which did (see there).
``LINMAX_GOLDEN_EXACT=1`` compares numbers bit for bit, which holds on the processor that wrote them.
"""

from __future__ import annotations

import pytest

from golden import learners, play_cli, play_run  # noqa: F401
from golden.record import CASES, EXACT, Case, difference, read
from linmax.rules import REGISTRY


def marked(case: Case) -> object:
    marks = [pytest.mark.small] if case.small else []
    return pytest.param(case, id=case.id, marks=marks)


@pytest.mark.portable
@pytest.mark.parametrize("case", [marked(case) for case in CASES.values()])
def test_results_are_those_kept(case: Case) -> None:
    kept = read(case.face)
    assert case.name in kept, f"{case.id} is new; python tests/golden/write.py keeps its result"
    told = difference(kept[case.name], case.result(), case.rounding, EXACT)
    assert told is None, f"{case.id}{told}"


def test_nothing_is_kept_that_is_not_played() -> None:
    for face in {case.face for case in CASES.values()}:
        played = {case.name for case in CASES.values() if case.face == face}
        assert not read(face).keys() - played, f"{face}: run python tests/golden/write.py"


@pytest.mark.parametrize("name", REGISTRY)
def test_every_rule_is_played(name: str) -> None:
    assert any(text.split("(")[0] == name for text in [*learners.RULES, *learners.TWO_CLASSES])


@pytest.mark.parametrize(
    ("kept", "found", "exact", "told"),
    [
        ({"a": 1.0}, {"a": 1.0 + 1e-12}, False, None),
        ({"a": 1.0}, {"a": 1.0 + 1e-12}, True, ".a: kept 1.0, found 1.000000000001"),
        ({"a": [1, 2]}, {"a": [1, 3]}, False, ".a[1]: kept 2, found 3"),
        ({"a": 1}, {"a": True}, False, ".a: kept 1, found True"),
        ({"a": 1}, {"b": 1}, False, " has ['b'], not ['a']"),
        ({"some": [1.0, 0.0], "bits": "x"}, {"some": [1.0, 1e-14], "bits": "y"}, False, None),
        ({"some": [1.0], "bits": "x"}, {"some": [1.0], "bits": "y"}, True, ".bits: kept 'x', found 'y'"),
        ({"a": float("nan")}, {"a": float("nan")}, True, None),
    ],
)
def test_differences_are_reported(kept: object, found: object, exact: bool, told: str | None) -> None:
    assert difference(kept, found, 1e-9, exact) == told
