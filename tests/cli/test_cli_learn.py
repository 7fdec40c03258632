"""``linmax learn``, ``predict`` and ``show``: results, bad input, interruptions, and going on after a kill."""

from __future__ import annotations

import csv
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from linmax.cli import main
from linmax.models.streams import StreamModel
from linmax.util import files

WORDS = ["left", "right", "up"]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A problem in Vowpal Wabbit's text, in the current folder."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(1)
    lines = []
    for i in range(600):
        k = random.integers(3)
        lines.append(f"{'abc'[k]} 't{i} |f {WORDS[k]} {' '.join(f'w{j}' for j in random.integers(0, 40, 4))}")
    path = tmp_path / "data.vw"
    path.write_text("\n".join(lines) + "\n")
    return path


def learn(*arguments: str) -> dict:
    assert main(["learn", *arguments, "--json", "figures.json"]) == 0
    return json.loads(Path("figures.json").read_text())


def test_learn_show_and_predict(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "data.vw",
        "--learner",
        "perceptron",
        "--model",
        "m",
        "--predictions",
        "p",
        "--test",
        "data.vw",
        "--plot",
        "e.svg",
    ]
    figures = learn(*arguments)
    shown = capsys.readouterr().out
    assert figures["trials"] == 600
    assert figures["mistakes"] < 60
    assert figures["progressive_error"] == figures["mistakes"] / 600
    assert figures["test_error"] < 0.02
    assert (figures["classes"], figures["features"], figures["format"], figures["scale"]) == (3, 43, "vw", "standard")
    assert figures["trials_per_second"] > 0
    assert [line.split()[2] for line in shown.splitlines()[1:11]] == [str(2**i) for i in range(10)]
    predicted = Path("p").read_text().splitlines()
    labels = [line.split()[0] for line in data.read_text().splitlines()]
    assert (
        sum(line.split(" ")[0] != label for line, label in zip(predicted, labels, strict=True)) == figures["mistakes"]
    )
    assert predicted[7].endswith(" t7")
    assert Path("e.svg").stat().st_size > 1000

    assert main(["show", "m", "--top", "2", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["learner"], told["trials"], sorted(told["classes"])) == ("perceptron", 600, ["a", "b", "c"])
    assert next(iter(told["weights"]["b"])) == "f^right"
    assert main(["show", "m", "--classes", "b"]) == 0
    assert "f^right" in capsys.readouterr().out

    assert main(["predict", "m", "data.vw"]) == 0
    plain = capsys.readouterr().out.splitlines()
    assert len(plain) == 600
    assert main(["predict", "m", "data.vw", "--write", "probabilities", "--digits", "0", "--as", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [f"{row['predicted']} {row['tag']}" for row in rows] == plain
    assert all(abs(sum(row["probabilities"].values()) - 1) < 1e-9 for row in rows)
    assert main(["predict", "m", "data.vw", "--write", "scores", "--out", "scores.csv"]) == 0
    table = list(csv.DictReader(Path("scores.csv").read_text().splitlines()))
    assert all(max("abc", key=lambda c: float(row[c])) == row["predicted"] for row in table)
    assert table[9]["line"] == "10"


def test_passes_and_holdout(data: Path) -> None:
    figures = learn("data.vw", "--learner", "perceptron", "--passes", "3", "--holdout", "5", "--quiet")
    assert [p["trials"] for p in figures["passes"]] == [480, 480, 480]
    assert figures["passes"][2]["mistakes"] <= figures["passes"][0]["mistakes"]
    assert figures["holdout_error"] < 0.05


def test_several_passes_hold_lines_out_and_end_early(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = learn("data.vw", "--learner", "perceptron", "--passes", "30", "--model", "early")
    assert "has not fallen for 3 passes" in capsys.readouterr().out
    many = len(figures["passes"])
    assert 4 <= many < 30
    assert figures["passes"][0]["trials"] == 540
    kept = figures["kept_pass"]
    assert kept == many - 3
    more = ["--holdout", "10", "--early-stop", "0", "--quiet"]
    plain = learn("data.vw", "--learner", "perceptron", "--passes", str(kept), "--model", "plain", *more)
    assert figures["holdout_error"] == plain["holdout_error"]
    assert Path("early").read_bytes() == Path("plain").read_bytes()
    figures = learn("data.vw", "--learner", "perceptron", "--passes", "8", "--early-stop", "0", "--quiet")
    assert len(figures["passes"]) == 8
    figures = learn("data.vw", "--learner", "perceptron", "--passes", "2", "--holdout", "0", "--quiet")
    assert [one["trials"] for one in figures["passes"]] == [600, 600]


def test_a_checkpoint_keeps_the_best_pass(data: Path) -> None:
    from linmax import StreamModel, stream
    from linmax.models.streams.progressive import Progressive

    work = Progressive(StreamModel("perceptron", scale="idf"), holdout=10)
    for batch in stream(data, model=work.model):
        work.play(batch)
    work.keep_best()
    work.finish_pass(again=True)
    first = work.model.weights
    for batch in stream(data, model=work.model):
        work.play(batch)
    work.counts.held_out_mistakes = 1000
    work.keep_best()
    work.save("kept", {}, {})
    again = Progressive.load("kept")[0]
    assert again.model.weights == work.model.weights != first
    assert again.return_to_best() == work.return_to_best() == 1
    assert again.model.weights == work.model.weights == first
    assert again.return_to_best() is None


def test_readable_weights(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learn("data.vw", "--learner", "perceptron", "--model", "m", "--readable", "weights.tsv", "--quiet")
    with open("weights.tsv", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    weights = StreamModel.load("m").weights
    named = {
        (row["attribute"], row["class"]): float(row["weight"]) for row in rows if row["attribute"] != "(threshold)"
    }
    for attribute, by_class in weights["attributes"].items():
        for label, weight in by_class.items():
            assert named.get((attribute, label), 0.0) == weight
    assert main(["learn", "data.vw", "--learner", "stack(perceptron, pa)", "--readable", "w2", "--quiet"]) == 2
    assert not Path("w2").exists()


def test_other_formats_at_once(data: Path) -> None:
    lines = data.read_text().splitlines()
    Path("data.tsv").write_text("".join(f"{line.split()[0]}\t{line.split('|f ')[1]}\n" for line in lines))
    Path("data.jsonl").write_text(
        "".join(json.dumps({"label": line.split()[0], "text": line.split("|f ")[1]}) + "\n" for line in lines)
    )
    text, objects = (learn(name, "--learner", "perceptron", "--quiet") for name in ("data.tsv", "data.jsonl"))
    assert (text["format"], objects["format"]) == ("text", "jsonl")
    assert text["mistakes"] == objects["mistakes"] < 60
    numbers = np.random.default_rng(0).normal(size=(300, 2))
    rows = "".join(f"{a:.4f},{b:.4f},{'pq'[int(a > b)]}\n" for a, b in numbers)
    Path("data.csv").write_text("a,b,kind\n" + rows)
    Path("test.csv").write_text(
        "more,b,kind,a\n" + "".join(f"x,{b:.4f},{'pq'[int(a > b)]},{a:.4f}\n" for a, b in numbers)
    )
    table = learn("data.csv", "--learner", "perceptron", "--quiet", "--test", "test.csv", "--model", "m")
    assert table["test_error"] < 0.1  # other columns, in another order
    Path("bare.csv").write_text("b,a\n1,2\n3,1\n")
    assert main(["predict", "m", "bare.csv", "--out", "p.txt"]) == 0
    assert Path("p.txt").read_text() == "q\np\n"
    assert (table["scale"], table["features"]) == ("standard", 2)
    assert table["progressive_error"] < 0.15


def test_standard_input_and_output(data: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "linmax.cli",
        "learn",
        "-",
        "--learner",
        "perceptron",
        "--predictions",
        "-",
        "--json",
        "f",
    ]
    done = subprocess.run(command, input=data.read_bytes(), capture_output=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 600
    assert json.loads(Path("f").read_text())["trials"] == 600


def test_refused_lines_are_reported(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("some.svm").write_text("1 1:1\n1 2:x\n2 3:nan\n2 4:1 4:2\n2 5:1\n")
    assert main(["learn", "some.svm", "--learner", "perceptron", "--quiet", "--model", "m"]) == 2
    shown = capsys.readouterr()
    assert "some.svm, line 3: a value is not finite" in shown.out  # in spite of --quiet
    assert "3 of 5 lines could not be read, more than --max-refused 0.01 allows" in shown.err
    assert Path("m").exists()
    figures = learn("some.svm", "--learner", "perceptron", "--max-refused", "0.6")
    shown = capsys.readouterr().out
    assert (figures["trials"], figures["refused"]) == (2, 3)
    assert "3 lines could not be read" in shown
    assert "some.svm, line 3: a value is not finite" in shown
    assert "some.svm, line 4: the same attribute twice" in shown


def test_what_was_learned_is_saved_when_a_later_line_stops_it(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("late.vw").write_text(data.read_text() + "no bar\n")
    Path("m").write_text("the old one")
    assert main(["learn", "late.vw", "--strict", "--model", "m", "--predictions", "p", "--learner", "perceptron"]) == 2
    assert files.read("m", "stream model")[0]["learner"] == "perceptron"
    assert not Path("p").exists()
    assert not Path("p.part").exists()


def test_a_full_disk_leaves_the_good_file(data: Path) -> None:
    learn("data.vw", "--learner", "perceptron", "--model", "m", "--predictions", "p", "--quiet")
    before = Path("m").read_bytes(), Path("p").read_bytes()
    command = [sys.executable, "-m", "linmax.cli", "learn", "data.vw", "--learner", "perceptron", "--quiet"]
    command += ["--model", "m", "--predictions", "p"]

    def small() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    # Python itself would leave half of a module's bytecode behind, if that were not there yet.
    given = environment() | {"NUMBA_CACHE_DIR": "", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, env=given, preexec_fn=small, check=False)
    assert done.returncode == 2, done.stderr
    assert b": File too large" in done.stderr
    assert b"progressive error" in done.stdout  # what came out is told all the same
    assert (Path("m").read_bytes(), Path("p").read_bytes()) == before
    assert sorted(path.name for path in Path().iterdir()) == ["data.vw", "figures.json", "m", "p"]


# -- interrupted --------------------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}


KILLED = """
import os, signal, sys
import linmax.models.streams as streams
from linmax.models.streams.progressive import Progressive
real, play, count = streams.stream, Progressive.play, 0
streams.stream = lambda *a, **k: real(*a, rows=20, **k)
def cut_short(self, batch):
    global count
    count += 1
    if count == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    return play(self, batch)
Progressive.play = cut_short
from linmax.cli import main
sys.exit(main(sys.argv[2:]))
"""


def killed(batches: int, *arguments: str) -> None:
    """Run the command in small batches until one of them is cut short by kill -9."""
    command = [sys.executable, "-c", KILLED, str(batches), "learn", "data.vw", *arguments]
    done = subprocess.run(command, env=environment(), capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


def small_batches(patch: pytest.MonkeyPatch) -> None:
    import linmax.models.streams

    real = linmax.stream
    patch.setattr(linmax.models.streams, "stream", lambda *a, **k: real(*a, rows=20, **k))


def interrupted(monkeypatch: pytest.MonkeyPatch, batches: int, *arguments: str) -> None:
    """Run the command in small batches, with Ctrl-C in one of them."""
    import linmax.models.streams
    from linmax.models.streams.progressive import Progressive

    play, count = Progressive.play, 0

    def with_ctrl_c(self: Progressive, batch: linmax.models.streams.Batch) -> np.ndarray:
        nonlocal count
        count += 1
        if count == batches:
            os.kill(os.getpid(), signal.SIGINT)
        return play(self, batch)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores Ctrl-C for what runs behind it
    with monkeypatch.context() as patch:
        small_batches(patch)
        patch.setattr(Progressive, "play", with_ctrl_c)
        assert main(["learn", "data.vw", *arguments]) == 130
    signal.signal(signal.SIGINT, before)
    assert count == batches


def saved(name: str) -> tuple:
    description, arrays = files.read(name, "stream model")
    return description, {part: array.tobytes() for part, array in arrays.items()}


COMMON = ["--learner", "A-perceptron", "--passes", "2", "--holdout", "9", "--predictions"]


def test_killed_and_continued(data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    small_batches(monkeypatch)
    assert main(["learn", "data.vw", *COMMON, "whole.txt", "--model", "whole", "--json", "whole.json"]) == 0
    arguments = [*COMMON, "cut.txt", "--model", "cut", "--json", "cut.json", "--checkpoint", "check", "--every", "60"]
    killed(8, *arguments)
    first = Path("check").read_bytes()
    killed(30, *arguments)  # in the second pass, since 6 batches of the first were kept
    assert Path("check").read_bytes() != first
    capsys.readouterr()
    assert main(["learn", "data.vw", *arguments]) == 0
    assert "Continuing from check" in capsys.readouterr().out
    assert saved("cut") == saved("whole")
    assert Path("cut.txt").read_bytes() == Path("whole.txt").read_bytes()
    mine, theirs = json.loads(Path("cut.json").read_text()), json.loads(Path("whole.json").read_text())
    for figures in (mine, theirs):
        del figures["seconds"], figures["trials_per_second"]
    assert mine == theirs
    assert not Path("check").exists()


def test_checkpoints_of_another_run_are_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupted(monkeypatch, 3, "--learner", "perceptron", "--checkpoint", "check")
    capsys.readouterr()
    assert main(["show", "check"]) == 0
    assert "stream checkpoint" in capsys.readouterr().out
    assert main(["learn", "data.vw", "--learner", "A-perceptron", "--checkpoint", "check"]) == 2
    assert "another --learner: 'perceptron', not 'A-perceptron'" in capsys.readouterr().err
    data.write_text("a |f x\n" + data.read_text())
    assert main(["learn", "data.vw", "--learner", "perceptron", "--checkpoint", "check"]) == 2
    assert "the beginning of the files" in capsys.readouterr().err


def test_interrupted(data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--learner", "perceptron", "--model", "m", "--predictions", "p"]
    interrupted(monkeypatch, 4, *arguments, "--checkpoint", "check")
    shown = capsys.readouterr()
    assert "interrupted" in shown.err
    assert "80 trials is saved in m." in shown.out
    assert files.read("m", "stream model")[0]["learner"] == "perceptron"
    assert len(Path("p.part").read_text().splitlines()) == 80
    assert main(["learn", "data.vw", *arguments, "--checkpoint", "check"]) == 0
    predicted = Path("p").read_text()
    assert len(predicted.splitlines()) == 600
    interrupted(monkeypatch, 5, *arguments)
    assert Path("p").read_text() == predicted  # a good file is not replaced by a part
    assert len(Path("p.part").read_text().splitlines()) == 100
    assert "The predictions so far are in p.part." in capsys.readouterr().out


# -- show ---------------------------------------------------------------------------------------------------------


def test_show_the_default_learner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 200).tolist()
    words = [f"{'ab'[c]} | {'xy'[c]} z{random.integers(0, 90)}" for c in labels]
    Path("words.vw").write_text("\n".join(words) + "\n")
    table = [f"{c + random.normal() / 9},{'xy'[c]},{'ab'[c]}" for c in labels]
    Path("table.csv").write_text("\n".join(["number,word,label", *table]) + "\n")
    for name, members in [
        ("words.vw", "PA-I softmax naive Bayes log odds recent labels"),
        ("table.csv", "PA-I SCW-I A-perceptron softmax pairs of 8 bins"),
    ]:
        assert main(["learn", name, "--model", "m", "--quiet"]) == 0
        capsys.readouterr()
        assert main(["show", "m", "--top", "2", "--json", "-"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert " ".join(shown["members"]).startswith(members)
        assert shown["thresholds"].keys() == {"a", "b"}
        largest = {label: next(iter(row)) for label, row in shown["weights"].items()}
        assert largest.keys() == {"a", "b"}
        assert all(attribute.split("=")[-1] in ("x", "y", "number") for attribute in largest.values())
    assert main(["learn", "words.vw", "--learner", "vr-combine", "--model", "m", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["show", "m"]) == 0
    assert "learner: VR-combine" in capsys.readouterr().out


def test_show_any_file(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import linmax

    learner = linmax.Learner("perceptron")
    learner.learn({"rain": 1.0}, label="umbrella")
    learner.learn({"sun": 1.0}, label="hat")
    learner.save("l")
    assert main(["show", "l", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["mistakes"], told["weights"]["umbrella"]) == ("learner", 2, {"sun": -1.0})
    files.write("other", "thing", {"alpha": 1.5}, {"w": np.zeros((2, 3))})
    assert main(["show", "other"]) == 0
    assert "alpha: 1.5" in capsys.readouterr().out
    assert main(["show", "data.vw"]) == 2
    assert main(["predict", "l", "data.vw"]) == 2
    assert "l holds a 'learner' of classes, not of candidates" in capsys.readouterr().err


def test_continuous_labels_are_refused_unless_they_are_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text("x,price\n" + "".join(f"{i % 7},{i * 0.37:.2f}\n" for i in range(300)))
    learn = ["learn", "d.csv", "--learner", "perceptron", "--quiet"]
    assert main(learn) == 2
    message = capsys.readouterr().err
    assert "labels must be classes, got 300 different ones in 300 rows, such as 0 and 110.63" in message
    assert "pass --numeric-classes" in message
    assert main([*learn, "--numeric-classes"]) == 0


def test_data_of_one_class_are_pointed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text("x,label\n1,spam\n2,spam\n")
    assert main(["learn", "d.csv", "--learner", "perceptron", "--quiet"]) == 0
    assert "All labels are 'spam'" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["csv", "jsonl", "svmlight", "vw"])
def test_labels_may_be_integers_beyond_64_bits(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"csv": "{x},{y}", "jsonl": '{{"x": {x}, "label": {y}}}', "svmlight": "{y} 1:{x}", "vw": "{y} | x:{x}"}[kind]
    rows = "".join(row.format(x=2 * (i % 2) - 1, y=10**30 + i % 2) + "\n" for i in range(40))
    Path("d").write_text("x,label\n" * (kind == "csv") + rows)
    assert main(["learn", "d", "--format", kind, "--learner", "perceptron", "--quiet", "--model", "m"]) == 0
    capsys.readouterr()
    assert main(["predict", "m", "d"]) == 0
    assert capsys.readouterr().out.split()[:2] == [str(10**30), str(10**30 + 1)]
