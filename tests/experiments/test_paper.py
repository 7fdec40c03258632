"""The published experiments, in small: the logic, the figures as JSON, and what the command refuses."""

import json
import re

import numpy as np
import pytest
from scipy import stats

import linmax
from linmax import cli
from linmax.experiments import figure4, figure5, majority, published, table1
from linmax.experiments.published import GROUPS, NOISES, PAPER, READINGS, Cell, agrees, interval

SMALL = {"trials": 150, "test": 400}


@pytest.fixture(scope="module")
def small_table():
    return table1.table1([0.0, 0.05], runs=3, **SMALL)


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
        assert all(list(row) == list(GROUPS) for row in PAPER.values())

    def test_no_error_is_below_the_noise(self):
        assert all(cell.error >= noise for noise, row in PAPER.items() for cell in row.values())

    @pytest.mark.parametrize("reading", READINGS)
    def test_every_choice_is_in_our_pool(self, reading):
        known = {str(rule) for rule in majority.pool_of(reading)}
        for row in PAPER.values():
            for group in ("best_ar", "best_a", "best_b"):
                name = published.translated(row[group].name, reading)
                assert re.sub("^AR?-", "", name) in known


class TestPools:
    def test_only_winnow_differs(self):
        positive, balanced = majority.pool_of("positive"), majority.pool_of("balanced")
        assert len(positive) == len(balanced) == 31
        assert [str(rule) for rule in balanced[:15]] == [f"balanced-{rule}" for rule in positive[:15]]
        assert balanced[15:] == positive[15:]


@pytest.fixture(scope="module")
def played():
    return majority.play(majority.MajorityRun(0.05, 7, 300, tuple(READINGS)))


class TestPlay:
    def test_has_every_learner_of_the_table(self, played):
        sizes = {place: len(learners) for place, learners in played.items()}
        assert sizes == {(r, g): 1 if g == "vr_combine" else 31 for r in READINGS for g in GROUPS}

    @pytest.mark.parametrize(
        ("place", "name"),
        [
            (("positive", "best_b"), "winnow(1.03)"),
            (("positive", "best_a"), "A-alma(4)"),
            (("positive", "best_ar"), "AR-perceptron"),
            (("balanced", "best_ar"), "AR-balanced-winnow(1.2)"),
            (("positive", "vr_combine"), "VR-combine"),
        ],
    )
    def test_each_is_what_it_would_be_alone(self, played, place, name):
        problem = linmax.majority_problem(noise=0.05, trials=300, seed=7)
        trace = linmax.run(name, linmax.experts(votes=problem.votes), problem.labels)
        assert played[place][name].mistakes == trace.mistakes[-1]
        np.testing.assert_allclose(played[place][name].weights, trace.learner.weights.flat, rtol=1e-12)
        fresh = linmax.majority_problem(noise=0.05, trials=2000, seed=8)
        wrong = trace.learner.predict(linmax.experts(votes=fresh.votes)) != fresh.labels
        weights = played[place][name].weights[np.newaxis]
        assert majority.examine(majority.Exam(0.05, 8, 2000, weights)) == pytest.approx([wrong.mean()])


class TestExamine:
    def test_the_target_errs_by_the_noise_alone(self):
        problem = linmax.majority_problem(noise=0.2, trials=5000, seed=3)
        error = majority.examine(majority.Exam(0.2, 3, 5000, problem.target[np.newaxis]))
        assert error == pytest.approx([np.mean(problem.labels != problem.clean)])

    def test_a_tie_goes_to_the_smallest_class(self):
        problem = linmax.majority_problem(trials=100, seed=3)
        error = majority.examine(majority.Exam(0.0, 3, 100, np.zeros((1, 25))))
        assert error == pytest.approx([np.mean(problem.labels != 0)])


class TestSeeds:
    def test_all_differ(self):
        flat = [seed for pair in majority.seeds_of(0, 20) for seed in pair]
        assert len(set(flat)) == 40
        assert not set(flat) & {seed for pair in majority.seeds_of(1, 20) for seed in pair}


class TestTable1:
    @pytest.mark.parametrize("key", ["cells", "balanced", "paper"])
    def test_structure(self, small_table, key):
        rows = small_table[key]
        assert list(rows) == ["0", "0.05"]
        for row in rows.values():
            assert list(row) == list(GROUPS)
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


@pytest.fixture
def forest(tmp_path, monkeypatch):
    """A small forest in LINMAX_DATA: spruce grows high up, with noise."""
    draws = np.random.default_rng(0)
    attributes = draws.integers(0, 2000, size=(900, 5))
    spruce = attributes[:, 0] + draws.integers(-500, 500, size=900) > 1000
    table = np.column_stack([attributes, np.where(spruce, 1, draws.integers(2, 8, size=900))])
    (tmp_path / "covtype").mkdir()
    header = ",".join(f"c{i}" for i in range(6))
    np.savetxt(tmp_path / "covtype" / "forest.csv.gz", table, fmt="%d", delimiter=",", header=header, comments="")
    monkeypatch.setenv("LINMAX_DATA", str(tmp_path))
    return table


class TestFigure4:
    def test_reads_the_data(self, forest):
        attributes, classes = figure4.forest_cover()
        np.testing.assert_array_equal(np.column_stack([attributes, classes]), forest)

    def test_accuracy_after_every_trial(self, forest):
        result = figure4.figure4(trials=200, test=500)
        assert result["accuracy"].shape == (200,)
        assert 0.6 < result["highest"] <= 1.0
        assert result["lowest"] <= result["mean"] <= result["highest"]

    def test_accuracy_is_that_of_the_learner(self, forest):
        attributes, classes = forest[:, :-1].astype(float), (forest[:, -1] == 1).astype(int)
        drawn = np.random.default_rng(4).permutation(900)[:150]
        scaled = ((attributes - attributes.min(axis=0)) / np.ptp(attributes, axis=0))[drawn]
        learner = linmax.LinearThreshold("balanced-winnow(1.2)", labels=(0, 1), constant=True)
        learner.run(scaled[:50], classes[drawn[:50]])
        right = np.mean(learner.predict(scaled[50:]) == classes[drawn[50:]])
        result = figure4.figure4(4, trials=50, test=100)
        assert result["final"] == pytest.approx(right)
        assert result["mistakes"] == learner.mistakes

    def test_too_many(self, forest):
        with pytest.raises(ValueError, match="trials \\+ test must be <= 900"):
            figure4.figure4(trials=500, test=500)

    def test_without_data(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setenv("LINMAX_DATA", str(tmp_path))
        monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
        assert cli.main(["reproduce", "figure4", "--no-plot"]) == 2
        assert "set LINMAX_DATA to a folder that holds covtype/*.csv.gz" in capsys.readouterr().err


class TestCommand:
    def test_table1(self, tmp_path, capsys):
        path = tmp_path / "table.json"
        sizes = ["--runs", "2", "--trials", "100", "--test", "300", "--jobs", "1"]
        assert cli.main(["reproduce", "table1", "--noise", "0", "0.4", *sizes, "--json", str(path)]) == 0
        figures = json.loads(path.read_text())
        assert figures["experiment"] == "table1"
        assert list(figures["cells"]) == list(figures["paper"]) == ["0", "0.4"]
        assert figures["settings"] == {"noises": [0, 0.4], "runs": 2, "trials": 100, "test": 300, "seed": 0}
        shown = capsys.readouterr().out
        assert "Not the paper's sizes" in shown
        assert "AR-Balanced(1.3)" in shown
        assert ".42271 ± .00128" in shown
        assert len(re.findall(r"of 8 cells agree", shown)) == 2

    def test_figure5(self, tmp_path, capsys):
        plot, path = tmp_path / "five.svg", tmp_path / "five.json"
        sizes = ["--runs", "2", "--trials", "150", "--jobs", "1"]
        assert cli.main(["reproduce", "figure5", *sizes, "--plot", str(plot), "--json", str(path)]) == 0
        assert "<svg" in plot.read_text()
        figures = json.loads(path.read_text())
        assert list(figures["curves"]) == ["best_b", "best_a", "best_ar", "vr_combine", "optimal"]
        assert len(figures["curves"]["optimal"]["curve"]) == len(figures["at"])
        assert "mean" not in figures
        assert "best averaged, recycled" in capsys.readouterr().out

    def test_figure4(self, forest, tmp_path, capsys):
        plot = tmp_path / "four.png"
        sizes = ["--trials", "100", "--test", "200"]
        assert cli.main(["reproduce", "figure4", *sizes, "--plot", str(plot), "--json", "-"]) == 0
        assert plot.read_bytes().startswith(b"\x89PNG")
        shown = capsys.readouterr()
        assert len(json.loads(shown.out)["accuracy"]) == 100
        assert "jumps of 5 points" in shown.err

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["table1", "--plot", "x.png"], "--plot is for figure4 and figure5"),
            (["table1", "--noise", "0.5"], "noise must be one of the table's rows"),
            (["table1", "--runs", "1"], "runs must be >= 2"),
            (["table1", "--jobs", "0"], "jobs must be >= 1"),
            (["figure4", "--runs", "3"], "--runs is for table1 and figure5"),
            (["figure5", "--noise", "0.1"], "--noise is for table1"),
            (["figure5", "--plot", "x.gif"], "the ending must be one of"),
            (["figure5", "--plot", "/no/such/folder/x.png"], "no folder"),
            (["table1", "--json", "/no/such/folder/x.json"], "no folder"),
        ],
    )
    def test_bad_input(self, arguments, message, capsys):
        assert cli.main(["reproduce", *arguments]) == 2
        assert message in capsys.readouterr().err

    @pytest.mark.parametrize("arguments", [["table2"], [], ["table1", "--runs", "few"]])
    def test_bad_arguments(self, arguments):
        with pytest.raises(SystemExit) as leaving:
            cli.main(["reproduce", *arguments])
        assert leaving.value.code == 2
