"""Figure 5 in small."""

import numpy as np
import pytest

from linmax.experiments import figure5


@pytest.fixture(scope="module")
def figure():
    return figure5.figure5(runs=3, trials=600)


class TestFigure5:
    def test_curves_rise_to_the_totals(self, figure):
        for group, entry in figure["curves"].items():
            assert (np.diff(entry["curve"]) >= 0).all()
            assert entry["curve"][-1] == pytest.approx(entry["mistakes"])
            assert len(figure["mean"][group]) == 600
        assert figure["at"][-1] == 600

    def test_order_of_the_paper(self, figure):
        assert figure["claims"][0]["holds"]

    def test_claims_can_fail(self):
        same = {"mistakes": 100.0, "late_error": 0.05}
        groups = ["best_b", "best_a", "best_ar", "vr_combine", "optimal"]
        curves = {group: dict(same) for group in groups}
        assert [claim["holds"] for claim in figure5.figure5_claims(curves)] == [False, True, True]
        curves["vr_combine"] = {"mistakes": 120.0, "late_error": 0.07}
        assert [claim["holds"] for claim in figure5.figure5_claims(curves)] == [False, False, False]
