"""Figure 4 in small."""

import numpy as np
import pytest

import linmax
from linmax import cli
from linmax.experiments import figure4


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
