"""Counts and curve of many trials at once are those of one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from linmax.engine.record import JUDGED, POINTS, new_record, note, note_all, pass_over


@pytest.mark.small
@pytest.mark.parametrize("share", [1.0, 0.7, 0.0])
def test_many_trials_are_counted_as_one_by_one(share: float) -> None:
    random = np.random.default_rng(0)
    size = 3 * POINTS + 77
    labels, predicted = random.integers(0, 3, size).astype(np.int32), random.integers(-1, 3, size).astype(np.int32)
    labels[random.random(size) >= share] = -1
    together, single = new_record(3), new_record(3)
    for begin, end in ((0, 5), (5, 5), (5, 2000), (2000, size)):
        note_all(together, predicted[begin:end], labels[begin:end])
    for guess, label in zip(predicted, labels, strict=True):
        if label >= 0:
            note(single, int(guess != label))
    np.testing.assert_array_equal(together.counts, single.counts)
    np.testing.assert_array_equal(together.curve, single.curve)


@pytest.mark.small
def test_trials_that_are_passed_over() -> None:
    """Those that name a class first have no scores, and those without a label neither."""
    record = new_record(4)
    pass_over(record, np.array([0, -1, 1, 0], np.int32), np.array([2, 2, 2, 2]))
    assert record.counts[JUDGED] == 3
    pass_over(record, np.array([0, 2, -1, 2, 3, 3], np.int32), np.array([2, 2, 3, 3, 3, 4]))
    assert record.counts[JUDGED] == 6
