"""Plots of mistakes: what they show, where labels go, what is imported."""

import os
import subprocess
import sys
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linmax.util import plots
from linmax.util.plots import plot_mistakes, spread


class TestPlotMistakes:
    def test_curves_start_at_zero_and_keep_every_trial_of_a_short_run(self):
        axes = plot_mistakes({"perceptron": [1, 1, 2]}).axes[0]
        (line,) = axes.lines
        assert line.get_xdata().tolist() == [0, 1, 2, 3]
        assert line.get_ydata().tolist() == [0, 1, 1, 2]

    def test_labels_stand_beside_the_ends_most_mistakes_first(self):
        axes = plot_mistakes({"few": [0, 1], "many": [1, 2], "none": [0, 0]}).axes[0]
        assert [text.get_text() for text in axes.texts] == ["many  2", "few  1", "none  0"]
        heights = [text.xy[1] for text in axes.texts]
        ends = [line.get_ydata()[-1] / axes.get_ylim()[1] for line in axes.lines]
        assert heights == pytest.approx(sorted(ends, reverse=True))

    def test_colours_go_by_learner_and_not_by_rank(self):
        one = plot_mistakes({"a": [0, 1], "b": [1, 2]}).axes[0]
        other = plot_mistakes({"a": [1, 9], "b": [1, 2]}).axes[0]
        colours = [{text.get_text()[0]: text.get_color() for text in axes.texts} for axes in (one, other)]
        assert colours[0] == colours[1]
        assert [text.get_text()[0] for text in other.texts] == ["a", "b"]

    def test_label_has_the_colour_of_its_curve(self):
        axes = plot_mistakes({str(i): [i] for i in range(9)}).axes[0]
        assert [text.get_color() for text in axes.texts] == [line.get_color() for line in reversed(axes.lines)]
        looks = {(line.get_color(), line.get_linestyle()) for line in axes.lines}
        assert len(looks) == 9

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

    def test_without_matplotlib_the_error_says_how_to_get_it(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(ImportError, match=r'pip install "linmax\[plot\]"'):
            plot_mistakes({"perceptron": [1]})


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12).map(sorted))
def test_spread_keeps_order_gap_and_frame(places):
    gap = 0.08
    moved = spread(places, gap)
    assert len(moved) == len(places)
    assert all(b - a >= gap - 1e-9 for a, b in pairwise(moved))
    assert moved[0] >= -1e-9
    assert moved[-1] <= 1 + 1e-9


def test_spread_leaves_distant_places_alone():
    assert spread([0.1, 0.5, 0.9], 0.1) == [0.1, 0.5, 0.9]
