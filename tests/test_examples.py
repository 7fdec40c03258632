"""Every example runs as it stands, draws, and shows what it promises."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the examples draw")

EXAMPLES = Path(__file__).parents[1] / "examples"
ALONE = ["your_own_rule"]  # names a rule, which lasts as long as the process
NAMES = [
    "break_a_bound",
    "calibration",
    "change_half_way",
    "cold_start",
    "compose_a_learner",
    "digits",
    "drift",
    "few_voters",
    "fraud_table",
    "hybrid_search",
    "jury",
    "linear_max",
    "llm_jury",
    "mistake_curves",
    "open_answers",
    "papers_fusion",
    "papers_linear_learners",
    "papers_linear_max",
    "papers_perceptron",
    "papers_winnow",
    "sparse_text",
    *ALONE,
]


def test_all_are_tested_and_have_a_place_in_the_gallery():
    here = sorted(path.stem for path in EXAMPLES.glob("*.py"))
    story = runpy.run_path(str(EXAMPLES.parent / "docs" / "gallery_looks.py"))["STORY"]
    assert here == sorted(NAMES) == sorted(story)


@pytest.fixture
def shown(capsys, monkeypatch):
    """What an example prints; it must draw at least one figure."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    drawn = []
    monkeypatch.setattr(pyplot, "show", lambda: drawn.append(pyplot.get_fignums()))

    def play(name):
        with pyplot.rc_context():
            runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        assert any(drawn), f"{name} draws nothing"
        pyplot.close("all")
        return capsys.readouterr().out

    return play


def figures(text, pattern):
    return {name.strip(): float(value) for name, value in re.findall(pattern, text, re.MULTILINE)}


def test_jury(shown):
    text = shown("jury")
    found = figures(text, r"^(fusion|best voter|plurality).*? +([\d.]+) %")
    assert found["fusion"] > found["best voter"] + 3 > found["plurality"] + 6


def test_cold_start(shown):
    rows = {line[:28].strip(): [float(x) for x in line[28:].split()] for line in shown("cold_start").splitlines()}
    auto, plurality = rows["linmax (auto)"], rows["plurality"]
    assert all(mine > theirs for mine, theirs in zip(auto, plurality, strict=True))
    assert auto[-1] > rows["best model so far"][-1] + 0.03


def test_change_half_way(shown):
    found = figures(shown("change_half_way"), r"^(.+?) +error in .*? change ([\d.]+)")
    assert found["auto (the default)"] < found["VR-Combine of the papers"] < found["logit, all of the past"]


def test_few_voters(shown):
    text = shown("few_voters")
    everyone = float(re.search(r"models asked: ([\d.]+) right", text)[1])
    asked, calls = map(float, re.search(r"one by one: ([\d.]+) right with ([\d.]+) calls", text).groups())
    assert asked > everyone - 0.02
    assert calls < 14


def test_calibration(shown):
    text = shown("calibration")
    found = figures(text, r"^(.+?): expected calibration error ([\d.]+)")
    assert found["probability of the fusion"] < 0.05 < found["share of votes for its answer"]
    sets = figures(text, r"^sets for (\d+)% hold the right answer in ([\d.]+)")
    assert len(sets) == 4
    assert all(abs(float(asked) / 100 - held) < 0.05 for asked, held in sets.items())


def test_hybrid_search(shown):
    found = figures(shown("hybrid_search"), r"^(.+?) +the clicked page first in ([\d.]+)")
    assert max(found, key=found.get) == "linmax"


def test_sparse_text(shown):
    found = figures(shown("sparse_text"), r"^(.+?): ([\d.]+)")
    assert found["linmax, auto"] < min(error for name, error in found.items() if name.startswith("Vowpal"))


def test_drift(shown):
    found = figures(shown("drift"), r"^(.+?) +([\d.]+) wrong")
    assert min(found, key=found.get) == "auto (the default)"


def test_linear_max(shown):
    assert "1 mistakes in 3 trials" in shown("linear_max")


def test_compose_a_learner(shown):
    text = shown("compose_a_learner")
    mistakes = {name: int(count) for count, name in re.findall(r"(\d+) mistakes by (\S+)", text)}
    assert mistakes["AR(s=200)-winnow(1.2)"] < mistakes["A-winnow(1.2)"] < mistakes["winnow(1.2)"]
    assert re.search(r"\d+ by AR-perceptron", text)


def test_mistake_curves(shown):
    ends = {line.split()[0]: float(line.split()[-1]) for line in shown("mistake_curves").splitlines()[1:]}
    assert ends["winnow(1.03)"] > ends["A-winnow(1.35)"] > ends["AR-perceptron"] > ends["auto"] > ends["optimal"]


def test_papers_linear_max(shown):
    text = shown("papers_linear_max")
    mistakes, bound = map(float, re.search(r"(\d+) mistakes, bound (\d+)", text).groups())
    assert mistakes <= bound
    assert re.search("20 voters, 5 classes", text)


def test_papers_fusion(shown):
    text = shown("papers_fusion")
    falls = figures(text, r"^(\S+) falls by up to ([\d.]+)")
    assert falls["A-Balanced(1.2)"] < falls["Balanced(1.2)"] / 4
    error = figures(text, r"^(\S.*?) +\d+ mistakes, last error ([\d.]+)")
    assert len(error) == 7
    assert max(error, key=error.get) == "Balanced(1.2)"
    assert min(error, key=error.get) == "VR-combine"


def test_papers_linear_learners(shown):
    text = shown("papers_linear_learners")
    assert figures(text, r"^(.+): (\d+) updates") == {"perceptron": 512, "winnow(2)": 9}
    assert text.count("weights: ['x0 & ~x1', '~x0 & x1']") == 2
    assert float(re.search(r"examples, error ([\d.]+)", text)[1]) < 0.05


def test_papers_winnow(shown):
    text = shown("papers_winnow")
    ends = figures(text, r"^(\w+): .* (\d+) with 1500")
    assert ends["Winnow"] < ends["Perceptron"] / 4
    printed = figures(text, r"^as printed, beta = ([\d.]+): (\d+)")
    assert printed["0.5"] < printed["1"] / 20
    mistakes, bound = map(int, re.search(r"disjunction: (\d+) mistakes, bound (\d+)", text).groups())
    assert mistakes <= bound


def test_papers_perceptron(shown):
    text = shown("papers_perceptron")
    violations, bound = (int(re.search(pattern, text)[1]) for pattern in (r"(\d+) violations, c", r"gamma\^2: (\d+)"))
    assert violations <= bound
    margin, largest = map(float, re.search(r"margin ([\d.]+), largest ([\d.]+)", text).groups())
    assert 0 < margin <= largest


def test_digits(shown):
    text = shown("digits")
    mistakes = [int(count) for count in re.findall(r"(\d+) (?:mistakes )?by", text)]
    assert mistakes[0] < mistakes[1] < mistakes[2]
    accuracy = figures(text, r"^(.{24})(0\.\d+)")
    assert len(accuracy) == 11
    assert accuracy["linmax fusion"] > accuracy["VotingClassifier"]


def test_break_a_bound(shown):
    text = shown("break_a_bound")
    printed = float(re.search(r"2 ln\(n\)/d\^2: ([\d.]+)", text)[1])
    rows = {
        name: (int(m), float(b))
        for name, m, b in re.findall(r"(\w+) +alpha.*: (\d+) mistakes, proved bound ([\d.]+)", text)
    }
    assert rows["corrected"][0] <= printed < rows["printed"][0]
    assert all(made <= proved for made, proved in rows.values())


@pytest.fixture(scope="module")
def own_rule():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MPLBACKEND": "agg"}
    command = [sys.executable, str(EXAMPLES / "your_own_rule.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^(.+?)\s+(\d+) mistakes$", done.stdout, re.MULTILINE)
    return {use: int(count) for use, count in found}


@pytest.mark.parametrize("use", ["averaged", "voted over", "VR-Combine, three limits"])
def test_your_own_rule(use, own_rule):
    assert own_rule[use] < own_rule["alone"]


def test_a_rule_is_the_same_from_text(own_rule):
    assert own_rule["the same, from text"] == own_rule["voted over"]


def test_open_answers(shown):
    printed = shown("open_answers")
    assert "Use all 4 voters" in printed
    assert float(re.findall(r"without a check, ([\d.]+) % of these are right", printed)[0]) > 90.0
    found = {name: float(share) for name, share in re.findall(r"'([a-z ]+)': ([\d.]+)", printed.splitlines()[-1])}
    assert found["samples"] > found["first sample"]
    assert found["jury and agreement"] > found["jury of samples"] > found["samples"]


def test_llm_jury(shown):
    pattern = r"^([\d.]+) calls a question of \d+, right ([\d.]+); all, after the first 700: ([\d.]+)"
    calls, right, full = map(float, re.findall(pattern, shown("llm_jury"), re.MULTILINE)[0])
    assert calls < 5
    assert right > full - 0.05


def test_fraud_table(shown):
    printed = shown("fraud_table")
    days = re.findall(r"cost +([\d,]+); without checks +([\d,]+)", printed)
    costs, unchecked = (sum(float(one.replace(",", "")) for one in column) for column in zip(*days, strict=True))
    assert costs < 0.85 * unchecked
    stated, found = map(float, re.findall(r"([\d.]+)% frauds?; there are ([\d.]+)%", printed)[0])
    assert abs(stated - found) < 0.4


def test_drift_alarms(shown):
    alarms = [int(row) for row in re.findall(r"alarms at \[(.*)\]", shown("drift"))[0].split(", ")]
    assert [2000 < alarms[0] < 2100, 4000 < alarms[1] < 4100, len(alarms)] == [True, True, 2]
