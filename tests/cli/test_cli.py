"""The command line as its user meets it."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import linmax
from linmax import cli
from linmax.cli import demo

QUICK = ["demo", "--rows", "50"]


def environment():
    """The child imports the same linmax as this process under plain settings."""
    dropped = ("FORCE_COLOR", "COLUMNS", "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path)}


def call(*arguments, **options):
    """Run ``linmax ARGUMENTS`` in a process of its own."""
    command = [sys.executable, "-m", "linmax.cli", *arguments]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, **options)


def status_of(arguments):
    """The exit status, whether returned or raised (as argparse does)."""
    try:
        return cli.main(arguments)
    except SystemExit as leaving:
        return leaving.code


COMMON = [
    ("learn --quiet", "rows.vw", "sklearn,scipy.sparse,scipy.stats,pandas,matplotlib"),
    ("fuse --label label", "votes.csv", "sklearn,scipy.stats,pandas,matplotlib"),
]


class TestHelp:
    @pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["demo", "--help"], [], ["dmeo"]])
    def test_loads_nothing_heavy(self, arguments):
        code = (
            "import sys\n"
            "from linmax.cli import main\n"
            "try: main(sys.argv[1:])\n"
            "except SystemExit: pass\n"
            "heavy = {'numpy', 'scipy', 'numba', 'rich', 'matplotlib', 'sklearn'} & set(sys.modules)\n"
            "print('heavy:', sorted(heavy))"
        )
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "heavy: []"

    @pytest.mark.parametrize(("command", "name", "slow"), COMMON)
    def test_common_commands_load_no_more_than_they_need(self, command, name, slow, tmp_path):
        data = tmp_path / name
        data.write_text("a,b,label\nx,y,x\ny,y,y\nx,x,x\n" if name.endswith("csv") else "1 | a b\n2 | b c\n1 | a\n")
        code = (
            "import sys\n"
            "from linmax.cli import main\n"
            "status = main(sys.argv[2:])\n"
            "print(status, sorted(set(sys.argv[1].split(',')) & set(sys.modules)))"
        )
        arguments = [slow, *command.split(), str(data)]
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], env=environment(), capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == "0 []"

    def test_version(self):
        done = call("--version")
        assert (done.returncode, done.stdout) == (0, f"linmax {linmax.__version__}\n")

    def test_help_lists_every_command(self, capsys):
        assert status_of(["--help"]) == 0
        shown = capsys.readouterr().out
        for name, summary in cli.COMMANDS.items():
            assert re.search(rf"^  {name} +{re.escape(summary)}$", shown, re.MULTILINE)

    @pytest.mark.parametrize("command", cli.COMMANDS)
    def test_every_command_has_help_and_json(self, command, capsys):
        assert status_of([command, "--help"]) == 0
        assert "--json FILE" in capsys.readouterr().out

    def test_no_command_shows_the_help_and_is_bad_input(self, capsys):
        assert status_of([]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert "commands:" in shown.err


class TestErrors:
    def test_a_message_of_several_lines_becomes_one(self, capsys, monkeypatch):
        def fail(arguments):
            raise ValueError("first\n    second")

        monkeypatch.setattr(demo, "run", fail)
        assert cli.main(["demo"]) == 2
        assert capsys.readouterr().err == "linmax: error: first second\n"

    def test_a_fault_of_ours_is_not_dressed_up_as_the_users(self, monkeypatch):
        def fail(arguments):
            raise RuntimeError("a defect")

        monkeypatch.setattr(demo, "run", fail)
        with pytest.raises(RuntimeError, match="a defect"):
            cli.main(["demo"])

    def test_interrupt(self, capsys, monkeypatch):
        def interrupt(arguments):
            raise KeyboardInterrupt

        monkeypatch.setattr(demo, "run", interrupt)
        assert cli.main(["demo"]) == 130
        assert capsys.readouterr().err == "linmax: interrupted\n"

    @pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
    def test_ctrl_c_in_a_running_command(self):
        code = (
            "import sys, time\n"
            "from linmax import cli\n"
            "from linmax.cli import demo\n"
            "demo.run = lambda arguments: (print('running', flush=True), time.sleep(60))\n"
            "sys.exit(cli.main(['demo']))"
        )
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", code]
        with subprocess.Popen(command, env=environment(), stdout=pipe, stderr=pipe, text=True) as process:
            assert process.stdout.readline() == "running\n"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (130, "linmax: interrupted\n")

    @pytest.mark.skipif(os.name == "nt", reason="POSIX pipes")
    @pytest.mark.parametrize("arguments", [["--help"], QUICK, [*QUICK, "--json", "-"]])
    def test_a_broken_pipe_is_quiet(self, arguments, tmp_path):
        reading, writing = os.pipe()
        os.close(reading)
        try:
            command = [sys.executable, "-m", "linmax.cli", *arguments]
            done = subprocess.run(
                command, env=environment(), stdout=writing, stderr=subprocess.PIPE, text=True, cwd=tmp_path
            )
        finally:
            os.close(writing)
        assert done.returncode == 1
        assert "Error" not in done.stderr
        assert "Exception" not in done.stderr


def figures_of(tmp_path, *arguments):
    path = tmp_path / "figures.json"
    assert cli.main([*arguments, "--json", str(path)]) == 0
    return json.loads(path.read_text())


class TestDemo:
    def test_fuses_a_table_and_saves_the_page(self, tmp_path):
        figures = figures_of(tmp_path, "demo", "--rows", "300", "--out", str(tmp_path))
        jury = linmax.datasets.jury_problem(trials=300)
        assert figures["data"] == str(tmp_path / "linmax-demo.csv")
        assert len((tmp_path / "linmax-demo.csv").read_text().splitlines()) == 301
        assert (tmp_path / "linmax-demo.html").stat().st_size > 10_000
        fusion = linmax.VoteFusion(by="subject").fit({**jury.votes, "subject": jury.subjects}, jury.labels)
        assert figures["trials"] == fusion.report().to_dict()["trials"] == 300

    def test_without_a_terminal_no_animation_and_what_to_do_next(self, tmp_path):
        done = call(*QUICK, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert "\x1b" not in done.stdout
        assert "Open linmax-demo.html in a browser." in done.stdout
        assert "linmax fuse linmax-demo.csv --label answer --by subject --html linmax-demo.html" in done.stdout

    def test_json_on_standard_output_stands_alone(self, tmp_path):
        done = call(*QUICK, "--json", "-", cwd=tmp_path)
        assert json.loads(done.stdout)["data"] == "linmax-demo.csv"
        assert "Open linmax-demo.html" in done.stderr

    def test_learn_refuses_a_plot_without_matplotlib_before_it_learns(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        (tmp_path / "a.vw").write_text("a | x\nb | y\n")
        assert cli.main(["learn", "a.vw", "--plot", "x.png", "--model", "m"]) == 2
        shown = capsys.readouterr()
        assert re.fullmatch(r'linmax: error: --plot x.png: plots require .* pip install .*\[plot\]"\n', shown.err)
        assert not (tmp_path / "m").exists()


class TestRules:
    RULES = Path(__file__).parents[2] / "docs" / "rules.md"

    def test_every_rule_is_in_the_table(self):
        text = self.RULES.read_text(encoding="utf-8")
        for name in linmax.rules.REGISTRY:
            assert f"`{name.replace('-', '_')}(" in text
