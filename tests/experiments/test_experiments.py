"""Table I, figures 4 and 5 and the race, on small problems; ``python -m linmax.experiments``."""

import json
import re

import numpy as np
import pytest
from scipy import stats

import linmax
from linmax.experiments import forest_cover, majority
from linmax.experiments.__main__ import main
from linmax.experiments.majority import LEARNER_GROUPS, NOISES, PAPER, READINGS, Cell, agrees, interval, translated
from linmax.experiments.race import race

SMALL = {"trials": 150, "test": 400}


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


class TestPublished:
    def test_interval_is_students(self):
        sample = np.random.default_rng(0).normal(size=20)
        low, high = stats.t.interval(0.95, 19, sample.mean(), stats.sem(sample))
        assert interval(sample) == pytest.approx(((low + high) / 2, (high - low) / 2))
        assert interval([3, 3, 3]) == (3.0, 0.0)

    @pytest.mark.parametrize("sign", [-1, 1])
    def test_agreement(self, sign):
        paper = Cell("", 0.1, 0.05)  # the paper's own interval plays no part
        for group in ("vr_combine", "best_ar", "best_a"):
            assert agrees(group, Cell("", 0.1 + sign * 0.00399, 0.001), paper)
            assert not agrees(group, Cell("", 0.1 + sign * 0.00401, 0.001), paper)
        assert agrees("best_b", Cell("", 0.1 + sign * 0.0199, 0.0), paper)
        assert not agrees("best_b", Cell("", 0.1 + sign * 0.0201, 1.0), paper)

    def test_table_is_complete(self):
        assert tuple(PAPER) == NOISES
        assert all(list(row) == list(LEARNER_GROUPS) for row in PAPER.values())
        assert all(cell.error >= noise for noise, row in PAPER.items() for cell in row.values())

    @pytest.mark.parametrize("reading", READINGS)
    def test_every_choice_is_in_our_pool(self, reading):
        known = {str(rule) for rule in majority.pool_of(reading)}
        assert len(known) == 31
        for row in PAPER.values():
            for group in ("best_ar", "best_a", "best_b"):
                assert re.sub("^AR?-", "", translated(row[group].name, reading)) in known


@pytest.fixture(scope="module")
def played():
    return majority.play(0.05, 300, 7, tuple(READINGS))


class TestPlay:
    def test_has_every_learner_of_the_table(self, played):
        sizes = {place: len(learners) for place, learners in played.items()}
        assert sizes == {(r, g): 1 if g == "vr_combine" else 31 for r in READINGS for g in LEARNER_GROUPS}

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
    def test_each_result_is_that_of_the_learner_alone(self, played, place, name):
        problem = linmax.datasets.majority_problem(noise=0.05, trials=300, seed=7)
        trace = linmax.run(name, linmax.instances(votes=problem.votes), problem.labels)
        result = played[place][name]
        assert result.mistakes == trace.mistakes[-1]
        np.testing.assert_allclose(result.weights, trace.model.weights.arrays.flat, rtol=1e-12, atol=1e-12)
        fresh = linmax.datasets.majority_problem(noise=0.05, trials=2000, seed=8)
        wrong = trace.model.predict(linmax.instances(votes=fresh.votes)) != fresh.labels
        assert majority.last_errors(0.05, 2000, 8, result.weights[np.newaxis]) == pytest.approx([wrong.mean()])

    def test_target_errs_by_the_noise_alone_and_ties_go_to_the_smallest_class(self):
        problem = linmax.datasets.majority_problem(noise=0.2, trials=5000, seed=3)
        errors = majority.last_errors(0.2, 5000, 3, np.array([problem.target, np.zeros(25)]))
        assert errors == pytest.approx([np.mean(problem.labels != problem.clean), np.mean(problem.labels != 0)])

    def test_ties_up_to_rounding_go_to_the_smallest_class_too(self):
        whole = np.random.default_rng(0).integers(-3, 4, (20, 25)).astype(float)
        errors, scaled = (majority.last_errors(0.2, 5000, 3, weights) for weights in (whole, 0.1 * whole))
        assert errors.tolist() == scaled.tolist()

    def test_all_seeds_differ(self):
        seeds = [seed for each in (0, 1) for pair in majority.seeds_of(each, 20) for seed in pair]
        assert len(set(seeds)) == 80


@pytest.fixture(scope="module")
def small_table():
    return majority.table1([0.0, 0.05], runs=3, **SMALL)


class TestTable1:
    @pytest.mark.parametrize("key", ["cells", "balanced", "paper"])
    def test_structure(self, small_table, key):
        assert list(small_table[key]) == ["0", "0.05"]
        for row in small_table[key].values():
            assert list(row) == list(LEARNER_GROUPS)
            for cell in row.values():
                assert {"name", "error", "ci95", "mistakes"} <= set(cell)
                if key != "paper":
                    assert cell["mistakes"] <= cell["papers_choice"]["mistakes"]

    def test_best_is_over_all_runs(self, small_table):
        played = [majority.play(0.05, 150, first) for first, _ in majority.seeds_of(0, 3)]
        learners = [each["positive", "best_b"] for each in played]
        means = {name: np.mean([each[name].mistakes for each in learners]) for name in learners[0]}
        best = min(means, key=means.get)
        cell = small_table["cells"]["0.05"]["best_b"]
        assert (cell["name"], cell["mistakes"]) == (best, pytest.approx(means[best]))
        assert cell["papers_choice"]["name"] == "winnow(1.03)"
        assert small_table["balanced"]["0.05"]["best_b"]["papers_choice"]["name"] == "balanced-winnow(1.03)"

    def test_is_reproducible_and_in_processes_the_same(self, small_table):
        assert majority.table1([0.0, 0.05], runs=3, jobs=2, **SMALL) == small_table

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"runs": 1}, "runs must be >= 2, got 1"),
            ({"noises": [0.07]}, "rows of the table, 0, 0.01, 0.05, .* got .0.07"),
            ({"noises": []}, "got none"),
            ({"jobs": 0}, "jobs must be >= 1"),
            ({"trials": 0}, "trials must be >= 1"),
            ({"seed": -1}, "seed must be >= 0"),
        ],
    )
    def test_refuses(self, options, message):
        with pytest.raises(ValueError, match=message):
            majority.table1(**{"noises": [0.0], "runs": 2, **SMALL, **options})


class TestFigures:
    def test_figure5_curves_rise_to_the_totals(self):
        figure = majority.figure5(runs=3, trials=600)
        for group, entry in figure["curves"].items():
            assert (np.diff(entry["curve"]) >= 0).all()
            assert entry["curve"][-1] == pytest.approx(entry["mistakes"])
            assert len(figure["mean"][group]) == 600
        assert figure["at"][-1] == 600
        assert next(iter(figure["claims"].values()))  # the order of the paper

    def test_figure5_claims_can_fail(self):
        groups = ["best_b", "best_a", "best_ar", "vr_combine", "optimal"]
        curves = {group: {"mistakes": 100.0, "late_error": 0.05} for group in groups}
        assert list(majority.figure5_claims(curves).values()) == [False, True, True]
        curves["vr_combine"] = {"mistakes": 120.0, "late_error": 0.07}
        assert list(majority.figure5_claims(curves).values()) == [False, False, False]

    def test_figure4_accuracy_is_that_of_the_learner(self, forest):
        np.testing.assert_array_equal(np.column_stack(forest_cover.forest_cover()), forest)
        attributes, classes = forest[:, :-1].astype(float), (forest[:, -1] == 1).astype(int)
        drawn = np.random.default_rng(4).permutation(900)[:150]
        scaled = ((attributes - attributes.min(axis=0)) / np.ptp(attributes, axis=0))[drawn]
        learner = linmax.theory.LinearThreshold("balanced-winnow(1.2)", labels=(0, 1), constant=True)
        learner.run(scaled[:50], classes[drawn[:50]])
        right = np.mean(learner.predict(scaled[50:]) == classes[drawn[50:]])
        result = forest_cover.figure4(4, trials=50, test=100)
        assert result["final"] == result["accuracy"][-1] == pytest.approx(right)
        assert result["mistakes"] == learner.mistakes
        assert result["lowest"] <= result["mean"] <= result["highest"]

    def test_figure4_refuses_too_many_trials(self, forest):
        with pytest.raises(ValueError, match="trials \\+ test must be <= 900"):
            forest_cover.figure4(trials=500, test=500)


def test_race_does_not_depend_on_its_frames():
    (once,) = race(["perceptron", "auto"], trials=300)
    *_, last = race(["perceptron", "auto"], trials=300, frames=7)
    problem = linmax.datasets.majority_problem(noise=0.05, trials=300, seed=0)
    alone = linmax.run("perceptron", linmax.instances(votes=problem.votes), problem.labels)
    assert once["perceptron"].sum() == alone.mistakes[-1]
    for name, wrong in once.items():
        np.testing.assert_array_equal(wrong, last[name])


class TestCommand:
    def test_table1(self, tmp_path, capsys):
        path = tmp_path / "table.json"
        sizes = ["--runs", "2", "--trials", "100", "--test", "300", "--jobs", "1"]
        assert main(["table1", "--noise", "0", "0.4", *sizes, "--json", str(path)]) == 0
        figures = json.loads(path.read_text())
        assert list(figures["cells"]) == list(figures["paper"]) == ["0", "0.4"]
        assert figures["settings"] == {"noises": [0, 0.4], "runs": 2, "trials": 100, "test": 300, "seed": 0, "jobs": 1}
        shown = capsys.readouterr().out
        assert "Not the paper's sizes" in shown
        assert re.search(r"AR-Balanced\(1.3\) +\.42271 ± \.00128", shown)
        assert len(re.findall(r"of 8 cells agree", shown)) == 2

    def test_figure5(self, tmp_path, capsys):
        plot, path = tmp_path / "five.svg", tmp_path / "five.json"
        sizes = ["--runs", "2", "--trials", "150", "--jobs", "1"]
        assert main(["figure5", *sizes, "--plot", str(plot), "--json", str(path)]) == 0
        assert "VR-Combine" in plot.read_text()
        figures = json.loads(path.read_text())
        assert list(figures["curves"]) == ["best_b", "best_a", "best_ar", "vr_combine", "optimal"]
        assert len(figures["curves"]["optimal"]["curve"]) == len(figures["at"])
        assert "best averaged, recycled" in capsys.readouterr().out

    def test_figure4_and_race_write_files_only_where_asked(self, forest, tmp_path, monkeypatch, capsys):
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        assert main(["figure4", "--trials", "100", "--test", "200"]) == 0
        assert main(["race", "--trials", "100", "--learner", "perceptron"]) == 0
        assert not list((tmp_path / "here").iterdir())
        shown = capsys.readouterr().out
        assert "jumps" in shown
        assert "plurality" in shown
        assert main(["race", "--trials", "100", "--learner", "perceptron", "--plot", "race.png"]) == 0
        assert (tmp_path / "here" / "race.png").read_bytes().startswith(b"\x89PNG")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["table1", "--plot", "x.png"], "unrecognized arguments"),
            (["table1", "--noise", "0.5"], "rows of the table"),
            (["figure4", "--runs", "3"], "unrecognized arguments"),
            (["figure4"], "set LINMAX_DATA to a folder"),
            (["figure5", "--plot", "x.gif"], "the ending must be one of"),
            (["figure5", "--plot", "/no/such/folder/x.png"], "no folder"),
            (["table1", "--json", "/no/such/folder/x.json"], "no folder"),
            (["table2"], "invalid choice"),
            ([], "required"),
        ],
    )
    def test_bad_input(self, arguments, message, tmp_path, monkeypatch, capsys):
        monkeypatch.setenv("LINMAX_DATA", str(tmp_path))
        monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
        with pytest.raises(SystemExit) as leaving:
            main(arguments)
        assert leaving.value.code == 2
        assert message in capsys.readouterr().err
