"""Every rule against the slow reference, trial by trial, and against the numbers of the papers."""

from __future__ import annotations

import numpy as np
import pytest

from compare import CASES, follow, problems
from linmax import rules

PROBLEMS = problems(30)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_reference(case):
    for name, given in PROBLEMS.items():
        compared = follow(case, given)
        print(case, name, compared)
