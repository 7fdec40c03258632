"""What a rule says of itself."""

from __future__ import annotations

import math

import pytest

from linmax import rules
from linmax.core.contract import OWN, REACH, Rule


def test_a_rule_describes_itself() -> None:
    rule = rules.winnow(1.5, thickness=0.25, start=2.0)
    assert isinstance(rule, Rule)
    assert repr(rule) == "<rule winnow(1.5, thickness=0.25, start=2)>"
    scalars = rule.first_scalars()
    assert len(scalars) == OWN
    assert rules.perceptron(margin=0.5).first_scalars()[REACH] == 0.5
    assert math.isinf(rules.alma(2, alpha=0.9).first_scalars()[REACH])
    assert len(rules.alma().first_scalars()) == OWN + 2
    with pytest.raises(AttributeError):
        rule.name = "other"  # type: ignore[misc]
