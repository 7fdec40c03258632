"""Table I in small."""

import numpy as np
import pytest

from linmax.experiments import majority, table1
from linmax.experiments.published import LEARNER_GROUPS

SMALL = {"trials": 150, "test": 400}


@pytest.fixture(scope="module")
def small_table():
    return table1.table1([0.0, 0.05], runs=3, **SMALL)


class TestTable1:
    @pytest.mark.parametrize("key", ["cells", "balanced", "paper"])
    def test_structure(self, small_table, key):
        rows = small_table[key]
        assert list(rows) == ["0", "0.05"]
        for row in rows.values():
            assert list(row) == list(LEARNER_GROUPS)
            for cell in row.values():
                assert {"name", "error", "ci95", "mistakes"} <= set(cell)

    def test_paper_is_the_papers(self, small_table):
        assert small_table["paper"]["0.05"]["best_a"]["name"] == "A-Balanced(1.35)"
        assert small_table["paper"]["0.05"]["best_a"]["error"] == 0.05781
        assert small_table["paper"]["0"]["vr_combine"]["mistakes"] == 34

    def test_best_has_the_fewest_mistakes(self, small_table):
        for key in ("cells", "balanced"):
            for row in small_table[key].values():
                for cell in row.values():
                    assert cell["mistakes"] <= cell["papers_choice"]["mistakes"]

    def test_best_is_over_all_runs(self, small_table):
        played = [majority.play(majority.MajorityRun(0.05, first, 150)) for first, _ in majority.seeds_of(0, 3)]
        learners = [each["positive", "best_b"] for each in played]
        means = {name: np.mean([each[name].mistakes for each in learners]) for name in learners[0]}
        best = min(means, key=means.get)
        cell = small_table["cells"]["0.05"]["best_b"]
        assert (cell["name"], cell["mistakes"]) == (best, pytest.approx(means[best]))

    def test_paper_choice_in_our_notation(self, small_table):
        assert small_table["cells"]["0.05"]["best_b"]["papers_choice"]["name"] == "winnow(1.03)"
        assert small_table["balanced"]["0.05"]["best_b"]["papers_choice"]["name"] == "balanced-winnow(1.03)"

    def test_is_reproducible_and_in_processes_the_same(self, small_table):
        assert table1.table1([0.0, 0.05], runs=3, jobs=2, **SMALL) == small_table

    def test_progress_reaches_its_end(self):
        seen = {}
        table1.table1([0.0], runs=2, progress=lambda stage, done, total: seen.update({stage: (done, total)}), **SMALL)
        assert seen == {"compiling": (1, 1), "learning": (2, 2), "testing": (2, 2)}

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"runs": 1}, "runs must be >= 2, got 1"),
            ({"noises": [0.07]}, "noise must be one of the table's rows, 0, 0.01, 0.05, .* got 0.07"),
            ({"noises": []}, "at least one"),
            ({"jobs": 0}, "jobs must be >= 1"),
            ({"trials": 0}, "trials must be >= 1"),
            ({"seed": -1}, "seed must be >= 0"),
        ],
    )
    def test_refuses(self, options, message):
        with pytest.raises(ValueError, match=message):
            table1.table1(**options)
