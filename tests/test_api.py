"""The reference: every public name is described in full, and has its place in it."""

import inspect
import re
from pathlib import Path

import pytest

import linmax
from api_names import missing_parts, public_names

NAMES = dict(public_names())
DESCRIBED = {name: value for name, value in NAMES.items() if inspect.isclass(value) or inspect.isroutine(value)}
PAGE = Path(__file__).parents[1] / "docs" / "api" / "index.md"


@pytest.mark.parametrize("name", DESCRIBED)
def test_docstrings_are_whole(name):
    """Parameters, what is returned, an example, and a source or what to see also."""
    assert missing_parts(DESCRIBED[name]) == []


def test_what_is_no_class_or_function_is_a_constant_or_a_type():
    assert set(NAMES) - set(DESCRIBED) <= {
        "normalization.NORMALIZATIONS",
        "theory.adversaries.Adversary",
    }


def test_the_reference_lists_every_public_name():
    listed, module = set(), ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. currentmodule:: linmax\.?(.*)", line):
            module = f"{found[1]}." if found[1] else ""
        elif found := re.fullmatch(r"   (\w+)", line):
            listed.add(module + found[1])
    listed = {name for name in listed if not name.startswith("river.") or name in NAMES}
    assert listed - {"rules.Rule"} == set(NAMES)


def test_a_bare_docstring_is_noticed():
    def bare(x: int) -> int:
        """Nothing but this line."""
        return x

    assert missing_parts(bare) == ["Parameters", "Returns", "Examples", "References"]


@pytest.mark.parametrize(
    ("former", "present"),
    [
        ("experts", linmax.instances),
        ("jury_problem", linmax.datasets.jury_problem),
        ("majority_problem", linmax.datasets.majority_problem),
    ],
)
def test_former_names_warn(former: str, present: object) -> None:
    with pytest.warns(DeprecationWarning, match=f"linmax.{former} is now linmax"):
        assert getattr(linmax, former) is present
