"""Tables, plots and JSON files."""

import json
import os
import stat
import subprocess
import sys
import threading
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from linmax.util import report
from linmax.util.report import Column, check_output, plot_mistakes, spread, table, write_json

ROWS = [
    {"learner": "winnow(1.1)", "mistakes": 12345, "error": 0.25},
    {"learner": "[bold]", "mistakes": np.int64(7), "error": None},
]
COLUMNS = [Column("learner"), Column("mistakes", format=",d"), Column("error", "late error", ".3f")]


def rich_text(renderable, width=80):
    console = Console(width=width, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    with console.file:
        console.print(renderable)
    return console.export_text()


class TestTable:
    def test_plain_text(self):
        assert str(table(ROWS, COLUMNS, title="Results")).splitlines() == [
            "Results",
            "learner      mistakes  late error",
            "-----------  --------  ----------",
            "winnow(1.1)    12,345       0.250",
            "[bold]              7           -",
        ]

    def test_rich_shows_the_same_cells(self):
        shown = rich_text(table(ROWS, COLUMNS, title="Results"))
        for cell in ["Results", "winnow(1.1)", "12,345", "0.250", "[bold]", "late error"]:
            assert cell in shown

    def test_no_rows_leaves_the_headings(self):
        assert str(table([], COLUMNS)).startswith("learner  mistakes  late error")

    def test_plain_table_needs_neither_rich_nor_matplotlib(self):
        code = (
            "import sys; from linmax.util.report import *; str(table([{'a': 1}], [Column('a')]));"
            "print([m for m in ('rich', 'matplotlib') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True)
        assert done.stdout.strip() == "[]", done.stderr


def environment():
    """The child imports the same linmax as this process."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


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
        assert heights == pytest.approx(ends)

    def test_label_has_the_colour_of_its_curve(self):
        axes = plot_mistakes({str(i): [i] for i in range(9)}).axes[0]
        assert [text.get_color() for text in axes.texts] == [line.get_color() for line in axes.lines]
        looks = {(line.get_color(), line.get_linestyle()) for line in axes.lines}
        assert len(looks) == 9

    def test_long_runs_are_thinned_but_keep_their_end(self):
        mistakes = np.cumsum(np.arange(100_000) % 3 == 0)
        (line,) = plot_mistakes({"long": mistakes}).axes[0].lines
        assert len(line.get_xdata()) <= report.DRAWN_POINTS + 1
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

    def test_pyplot_is_left_alone(self, tmp_path):
        code = (
            "import sys; from linmax.util.report import plot_mistakes; plot_mistakes({'a': [1]}, sys.argv[1]);"
            "print('matplotlib.pyplot' in sys.modules)"
        )
        command = [sys.executable, "-c", code, str(tmp_path / "a.png")]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True)
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


class TestWriteJson:
    def test_numpy_values_become_plain(self, tmp_path):
        figures = {
            "a": np.int64(3),
            "b": np.float64(0.5),
            "c": np.array([1, 2]),
            "d": np.bool_(True),
            "e": None,
        }
        write_json(figures, tmp_path / "f.json")
        text = (tmp_path / "f.json").read_text(encoding="utf-8")
        assert json.loads(text) == {"a": 3, "b": 0.5, "c": [1, 2], "d": True, "e": None}
        assert text.endswith("}\n")

    def test_dash_is_standard_output(self, capsys):
        write_json({"a": 1}, "-")
        assert json.loads(capsys.readouterr().out) == {"a": 1}

    @pytest.mark.parametrize("bad", [float("nan"), float("inf"), np.float64("nan")])
    def test_what_is_no_json_leaves_the_old_file(self, tmp_path, bad):
        path = tmp_path / "f.json"
        path.write_text("old")
        with pytest.raises(ValueError, match="JSON compliant"):
            write_json({"a": bad}, path)
        assert path.read_text() == "old"

    def test_unknown_object(self, tmp_path):
        with pytest.raises(TypeError, match="cannot write <object"):
            write_json({"a": object()}, tmp_path / "f.json")

    def test_a_failed_write_leaves_the_old_file_and_no_draft(self, tmp_path, monkeypatch):
        path = tmp_path / "f.json"
        path.write_text("old")

        def full(self, target):
            raise OSError(28, "No space left on device", str(self))

        monkeypatch.setattr("pathlib.Path.replace", full)
        with pytest.raises(OSError, match="No space left"):
            write_json({"a": 1}, path)
        assert path.read_text() == "old"
        assert os.listdir(tmp_path) == ["f.json"]

    @pytest.mark.skipif(os.name == "nt", reason="POSIX modes and links")
    def test_mode_follows_the_umask_and_a_link_stays_a_link(self, tmp_path):
        (tmp_path / "link.json").symlink_to("real.json")
        before = os.umask(0o022)
        try:
            write_json({"a": 1}, tmp_path / "link.json")
        finally:
            os.umask(before)
        assert (tmp_path / "link.json").is_symlink()
        assert stat.S_IMODE((tmp_path / "real.json").stat().st_mode) == 0o644

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
    def test_a_pipe_is_written_to_not_replaced(self, tmp_path):
        path = tmp_path / "pipe"
        os.mkfifo(path)
        received = []
        reader = threading.Thread(target=lambda: received.append(path.read_text()))
        reader.start()
        write_json({"a": 1}, path)
        reader.join(timeout=10)
        assert json.loads(received[0]) == {"a": 1}
        assert stat.S_ISFIFO(path.stat().st_mode)


class TestCheckOutput:
    def test_good(self, tmp_path):
        check_output(tmp_path / "new.png", (".png",))
        assert os.listdir(tmp_path) == []

    def test_folder_in_place_of_a_file(self, tmp_path):
        with pytest.raises(IsADirectoryError, match="is a folder"):
            check_output(tmp_path)

    def test_missing_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="no folder .*nowhere; make it first"):
            check_output(tmp_path / "nowhere" / "a.png")
