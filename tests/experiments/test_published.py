"""The published table, and when an entry of ours agrees with it."""

import re

import numpy as np
import pytest
from scipy import stats

from linmax.experiments import majority, published
from linmax.experiments.published import LEARNER_GROUPS, NOISES, PAPER, READINGS, Cell, agrees, interval


class TestInterval:
    def test_is_students(self):
        sample = np.random.default_rng(0).normal(size=20)
        low, high = stats.t.interval(0.95, 19, sample.mean(), stats.sem(sample))
        mean, half = interval(sample)
        assert mean == pytest.approx((low + high) / 2)
        assert half == pytest.approx((high - low) / 2)

    def test_of_equal_values_is_nothing(self):
        assert interval([3, 3, 3]) == (3.0, 0.0)


class TestAgreement:
    @pytest.mark.parametrize("group", ["vr_combine", "best_ar", "best_a"])
    @pytest.mark.parametrize("sign", [-1, 1])
    def test_within_a_margin_and_two_intervals(self, group, sign):
        paper = Cell("", 0.1, 0.05)  # the paper's own interval plays no part
        assert agrees(group, Cell("", 0.1 + sign * 0.00399, 0.001), paper)
        assert not agrees(group, Cell("", 0.1 + sign * 0.00401, 0.001), paper)

    def test_basic_rules_have_more_room_whatever_the_interval(self):
        paper = Cell("", 0.1, 0.0)
        assert agrees("best_b", Cell("", 0.1199, 0.0), paper)
        assert not agrees("best_b", Cell("", 0.1201, 1.0), paper)


class TestPaper:
    def test_is_complete(self):
        assert tuple(PAPER) == NOISES
        assert all(list(row) == list(LEARNER_GROUPS) for row in PAPER.values())

    def test_no_error_is_below_the_noise(self):
        assert all(cell.error >= noise for noise, row in PAPER.items() for cell in row.values())

    @pytest.mark.parametrize("reading", READINGS)
    def test_every_choice_is_in_our_pool(self, reading):
        known = {str(rule) for rule in majority.pool_of(reading)}
        for row in PAPER.values():
            for group in ("best_ar", "best_a", "best_b"):
                name = published.translated(row[group].name, reading)
                assert re.sub("^AR?-", "", name) in known
