"""Plots of mistakes: what they show and what is imported."""

import os
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from linmax.util import plots
from linmax.util.plots import plot_mistakes


class TestPlotMistakes:
    def test_curves_start_at_zero_and_keep_every_trial_of_a_short_run(self):
        axes = plot_mistakes({"perceptron": [1, 1, 2]}).axes[0]
        (line,) = axes.lines
        assert line.get_xdata().tolist() == [0, 1, 2, 3]
        assert line.get_ydata().tolist() == [0, 1, 1, 2]

    def test_legend_lists_most_mistakes_first_in_the_colors_of_the_curves(self):
        axes = plot_mistakes({"few": [0, 1], "many": [1, 2], "none": [0, 0]}).axes[0]
        legend, colors = axes.get_legend(), [line.get_color() for line in axes.lines]
        assert [text.get_text() for text in legend.get_texts()] == ["many  2", "few  1", "none  0"]
        assert [line.get_color() for line in legend.get_lines()] == [colors[i] for i in (1, 0, 2)]

    def test_many_curves_look_different(self):
        axes = plot_mistakes({str(i): [i] for i in range(9)}).axes[0]
        assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines}) == 9

    def test_long_runs_are_thinned_but_keep_their_end(self):
        mistakes = np.cumsum(np.arange(100_000) % 3 == 0)
        (line,) = plot_mistakes({"long": mistakes}).axes[0].lines
        assert len(line.get_xdata()) <= plots.DRAWN_POINTS + 1
        assert line.get_xdata()[-1] == 100_000
        assert line.get_ydata()[-1] == mistakes[-1]

    def test_curves_of_different_lengths_share_the_axis(self):
        axes = plot_mistakes({"short": [1], "long": [0, 1, 2, 3]}).axes[0]
        assert axes.get_xlim() == (0, 4)

    def test_no_mistakes_at_all(self):
        assert plot_mistakes({"perfect": [0, 0]}).axes[0].get_ylim() == (0, 1)

    def test_ending_chooses_the_format(self, tmp_path):
        plot_mistakes({"perceptron": [1, 2]}, tmp_path / "a.PNG")
        plot_mistakes({"perceptron": [1, 2]}, str(tmp_path / "a.svg"), title="Ours", subtitle="on votes")
        assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")
        assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
        assert sorted(os.listdir(tmp_path)) == ["a.PNG", "a.svg"]

    def test_pyplot_is_left_alone(self, tmp_path, environment):
        code = (
            "import sys; from linmax.util.plots import plot_mistakes; plot_mistakes({'a': [1]}, sys.argv[1]);"
            "print('matplotlib.pyplot' in sys.modules)"
        )
        command = [sys.executable, "-c", code, str(tmp_path / "a.png")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.stdout.strip() == "False", done.stderr

    @pytest.mark.parametrize(
        ("curves", "message"),
        [
            ({}, "at least one curve"),
            ({"empty": []}, r"'empty' must have shape \(trials,\)"),
            ({"flat": [[1, 2]]}, r"'flat' must have shape \(trials,\).*\(1, 2\)"),
            ({"odd": [1, np.nan]}, "'odd' must be finite, got nan"),
        ],
    )
    def test_bad_curves(self, curves, message):
        with pytest.raises(ValueError, match=message):
            plot_mistakes(curves)

    def test_unknown_ending(self, tmp_path):
        with pytest.raises(ValueError, match=r"a\.gif: the ending must be one of \.png, \.svg, \.pdf"):
            plot_mistakes({"perceptron": [1]}, tmp_path / "a.gif")

    def test_missing_matplotlib_names_command(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(ImportError, match=r"pip install .*\[plot\]"):
            plot_mistakes({"perceptron": [1]})
