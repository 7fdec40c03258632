"""``linmax reproduce``: figures as JSON, plots, and what it refuses."""

import json
import re

import pytest

from linmax import cli


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
