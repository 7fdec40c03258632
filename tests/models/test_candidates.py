"""Candidates: only these may win, seen before or not, any number of them, through every interface."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmax
from linmax.cli import main
from linmax.io.choices import ChoiceLine, read_choices

Trial = tuple[list[str], dict[str, list[float]], dict[str, str], str]


def trials(size: int, seed: int = 0) -> list[Trial]:
    """Two to five candidates; one rater is always right, one voter mostly; the others are noise."""
    random = np.random.default_rng(seed)
    found = []
    for t in range(size):
        names = [f"{t}/{i}" for i in range(random.integers(2, 6))]
        right = int(random.integers(len(names)))
        scores = {"noise": random.random(len(names)).tolist()}
        scores["right"] = [float(i == right) for i in range(len(names))]
        voted = names[right] if random.random() < 0.8 else names[0]
        found.append((names, scores, {"voter": voted, "other": "nobody"}, names[right]))
    return found


def taught(learner: str, given: list[Trial]) -> tuple[linmax.Learner, list[Any]]:
    model = linmax.Learner(learner)
    told = [model.learn(candidates=c, scores=s, votes=v, label=label) for c, s, v, label in given]
    return model, told


@pytest.mark.parametrize("learner", ["auto", "perceptron", "winnow(1.5)", "A-perceptron", "arow", "S-perceptron"])
def test_few_mistakes_and_only_candidates(learner: str) -> None:
    given = trials(200)
    model, told = taught(learner, given)
    assert all(answer in names for answer, (names, *_) in zip(told, given, strict=True))
    wrong = sum(answer != label for answer, (*_, label) in zip(told, given, strict=True))
    assert wrong == model.mistakes <= 6
    assert model.trials == 200
    weights = model.weights["raters"]
    assert weights["right"] > abs(weights["noise"])


@pytest.mark.small
def test_the_first_trial_learns() -> None:
    learner = linmax.Learner("perceptron")
    scores = {"right": [0.0, 1.0], "wrong": [1.0, 0.0]}
    assert learner.learn(candidates=["a", "b"], scores=scores, label="b") == "a"
    assert learner.learn(candidates=["x", "y", "z"], scores={"right": [0.0, 0.0, 1.0]}, label="z") == "z"
    assert learner.rank(["p", "q"], scores=scores) == ["q", "p"]
    assert learner.scores(candidates=["p", "q"], scores=scores) == {"p": -1.0, "q": 1.0}


@pytest.mark.small
def test_the_rule_is_that_of_the_reference() -> None:
    """The Perceptron on z = x^label - x^rival, by hand."""
    given = trials(12 if not linmax.jit.compiling.JIT else 100, seed=5)
    model, told = taught("perceptron", given)
    weights: dict[str, float] = {}
    for (names, scores, votes, label), answer in zip(given, told, strict=True):
        ratings = {name: dict(zip(names, row, strict=True)) for name, row in scores.items()}
        ratings |= {name: {vote: 1.0} for name, vote in votes.items()}
        total = [sum(weights.get(r, 0.0) * row.get(c, 0.0) for r, row in ratings.items()) for c in names]
        place = names.index(label)
        assert answer == names[int(np.argmax(total))]
        rival = max((j for j in range(len(names)) if j != place), key=lambda j: (total[j], -j))
        if total[place] <= total[rival]:
            for rater, row in ratings.items():
                weights[rater] = weights.get(rater, 0.0) + row.get(label, 0.0) - row.get(names[rival], 0.0)
    found = {**model.weights["raters"], **model.weights["voters"]}
    assert found == {name: pytest.approx(weights[name]) for name in found}


@pytest.mark.parametrize("learner", ["auto", "S-perceptron"])
def test_saved_and_by_id(learner: str, tmp_path: Path) -> None:
    given = trials(40)
    whole, told = taught(learner, given)
    parts, _ = taught(learner, given[:20])
    parts.predict(candidates=["x", "y"], scores={"right": [1.0, 0.0]}, id=1)
    parts.save(tmp_path / "model")
    parts = linmax.Learner.load(tmp_path / "model")
    again = [parts.learn(candidates=c, scores=s, votes=v, label=label) for c, s, v, label in given[20:]]
    assert again == told[20:]
    assert parts.mistakes == whole.mistakes
    assert parts.wants_label(id=1) in (True, False)
    with pytest.raises(ValueError, match="label: 'z' is not among the candidates"):
        parts.learn(id=1, label="z")
    assert parts.learn(id=1, label="y") == "x"
    assert parts.mistakes == whole.mistakes + 1


@pytest.mark.small
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"candidates": ["a", "a"]}, "candidates: 'a' is given twice"),
        ({"candidates": []}, "at least one class, got none"),
        ({"candidates": "ab"}, "candidates must be a list of classes, got 'ab'"),
        ({"candidates": [["a"]]}, "must be hashable"),
        ({"candidates": ["a", "b"], "label": "c"}, "label: 'c' is not among the candidates"),
        ({"candidates": ["a", "b"], "attributes": {"x": 1.0}}, "rate the candidates"),
        ({"candidates": ["a", "b"], "id": 3}, "the instance or the id, not both"),
        ({"candidates": ["a", "b"], "scores": {"r": [1.0]}}, "2 numbers in the order of the classes"),
        ({}, "this learner chooses among candidates"),
    ],
)
def test_bad_input_is_refused_and_nothing_learned(given: dict[str, Any], words: str) -> None:
    learner = linmax.Learner("perceptron")
    learner.learn(candidates=["a", "b"], scores={"r": [0.0, 1.0]}, label="b")
    before = learner.weights.arrays.flat.copy()
    with pytest.raises((TypeError, ValueError), match=words):
        learner.learn(**{"scores": {"r": [1.0, 0.0]}, "label": "a"} | given)
    assert (learner.weights.arrays.flat == before).all()
    assert learner.trials == 1


@pytest.mark.small
def test_learners_that_cannot() -> None:
    with pytest.raises(ValueError, match="its classes were fixed"):
        linmax.Learner("perceptron", classes=["a", "b"]).predict(candidates=["a"], votes={"v": "a"})
    learner = linmax.Learner("perceptron")
    learner.learn(votes={"v": "a"}, label="a")
    with pytest.raises(ValueError, match="it has met classes that are not candidates"):
        learner.predict(candidates=["a"], votes={"v": "a"})


VW = """shared |s user=1
1:1.0 |a right:1.0 noise:0.5
2:0.0 |a noise
3:2.0 |b:2 other:0.25 |a noise:-1

1 | x
2 | y:3
"""


@pytest.mark.small
def test_blocks_of_vowpal_wabbit() -> None:
    refused: list[tuple[int, str]] = []

    def read(*lines: bytes) -> list[ChoiceLine]:
        return list(read_choices(lines, "label", lambda line, reason: refused.append((line, reason))))

    first, second = read(*VW.encode().splitlines())
    assert first.candidates == ["1", "2", "3"]
    assert first.label == "2"
    assert first.scores == {"a^right": {"1": 1.0}, "a^noise": {"1": 0.5, "2": 1.0, "3": -1.0}, "b^other": {"3": 0.5}}
    assert second.label is None
    assert second.scores == {"x": {"1": 1.0}, "y": {"2": 3.0}}
    assert not refused
    (good,) = read(b"1:0 a b", b"", b"1 | a", b"2:x | a", b"", b"", b"1:0 | a")  # those after bad ones are read
    assert good.line == 7
    assert refused == [(1, "a candidate's line needs a |, got '1:0 a b'"), (4, "'x' is not a number")]
    (same,) = read(b"0:1 | a", b"0:0 | b")  # names that tell nothing apart
    assert (same.candidates, same.label, same.scores) == (["0", "1"], "1", {"a": {"0": 1.0}, "b": {"1": 1.0}})


def test_the_command_reads_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = trials(80)
    objects = tmp_path / "trials.jsonl"
    lines = [{"candidates": c, "scores": s, "votes": v, "label": label} for c, s, v, label in given]
    objects.write_text("".join(json.dumps(line) + "\n" for line in lines))
    model, told = tmp_path / "ranker.linmax", tmp_path / "told.txt"
    arguments = ["--candidates", "--model", str(model), "--predictions", str(told), "--test", str(objects)]
    assert main(["learn", str(objects), *arguments]) == 0
    expected = taught("auto", given)
    assert told.read_text().split() == expected[1]
    assert f"{expected[0].mistakes} mistakes in 80 trials with candidates" in capsys.readouterr().out
    assert linmax.Learner.load(model).mistakes == expected[0].mistakes
    blocks = tmp_path / "trials.vw"
    text = ""
    for names, scores, _, label in given:
        for i, name in enumerate(names):
            text += f"{name}:{0 if name == label else 1} | noise:{scores['noise'][i]!r} right:{scores['right'][i]!r}\n"
        text += "\n"
    blocks.write_text(text)
    assert main(["learn", str(blocks), "--candidates", "--learner", "perceptron", "--json", "-"]) == 0
    figures = json.loads(capsys.readouterr().out)
    alone = taught("perceptron", [(c, s, {}, label) for c, s, _, label in given])[0]
    assert (figures["trials"], figures["mistakes"]) == (80, alone.mistakes)
    assert main(["learn", str(objects), "--candidates", "--passes", "2"]) == 2
    objects.write_text('{"label": 1}\n')
    assert main(["learn", str(objects), "--candidates"]) == 2
    assert "line 1" in capsys.readouterr().err


@pytest.mark.parametrize("learner", ["auto", "perceptron", "A-winnow(1.2)", "S-perceptron"])
def test_judging_changes_not_a_bit(learner: str) -> None:
    """Whatever is asked about, more candidates than ever and strangers included."""
    given = trials(25)
    quiet, asked = (linmax.Learner(learner) for _ in range(2))
    many = [f"m{i}" for i in range(9)]
    for names, scores, votes, label in given:
        asked.predict(
            candidates=many, scores={"new": [i / 9 for i in range(9)], "right": [0.0] * 9}, votes={"who": "m3"}
        )
        asked.rank(names, scores=scores, votes=votes)
        asked.scores(candidates=many[:1], votes={"voter": "m0"})
        for model in (quiet, asked):
            model.learn(candidates=names, scores=scores, votes=votes, label=label)
    (header, arrays), (other, others) = quiet.state(), asked.state()
    assert header == other
    assert arrays.keys() == others.keys()
    assert all(array.tobytes() == others[name].tobytes() for name, array in arrays.items())


def test_a_learner_that_chooses_asks_too() -> None:
    learner = linmax.Learner("winnow(1.5)")
    for t in range(30):
        votes = {"good": f"{t}a", "bad": f"{t}b", "fair": f"{t}a" if t % 5 else f"{t}b"}
        learner.learn(candidates=[f"{t}a", f"{t}b"], votes=votes, label=f"{t}a")
    assert learner.ask({}, candidates=["x", "y"], tolerance=0) == "good"
    assert learner.ask({"good": "x", "fair": "x"}, candidates=["x", "y"], tolerance=0) is None
    with pytest.raises(ValueError, match="candidates: 'x' is given twice"):
        learner.ask({}, candidates=["x", "x"])
    with pytest.raises(ValueError, match="voters: 'eve' is not a known voter"):
        learner.ask({}, candidates=["x", "y"], voters=["eve"])


def test_command_learns_wrong_and_predicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = trials(40)
    objects, model = tmp_path / "trials.jsonl", str(tmp_path / "ranker.linmax")
    expected, lines = linmax.Learner("perceptron"), []
    for t, (names, scores, votes, label) in enumerate(given):
        wrong = next(name for name in names if name != label)
        told = {"wrong": wrong} if t % 2 else {"label": label}
        expected.learn(candidates=names, scores=scores, votes=votes, **told)
        lines.append(json.dumps({"candidates": names, "scores": scores, "votes": votes} | told) + "\n")
    objects.write_text("".join(lines))
    assert main(["learn", str(objects), "--candidates", "--learner", "perceptron", "--model", model]) == 0
    assert linmax.Learner.load(model).weights["raters"] == expected.weights["raters"]
    capsys.readouterr()
    asked = [{"candidates": c, "scores": s, "votes": v} for c, s, v, _ in given]
    assert main(["predict", model, str(objects)]) == 0
    assert capsys.readouterr().out.split() == [expected.predict(**one) for one in asked]
    assert main(["predict", model, str(objects), "--write", "scores", "--as", "jsonl", "--digits", "0"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["scores"] for row in found] == [pytest.approx(expected.scores(**one), rel=1e-5) for one in asked]
    assert main(["predict", model, str(objects), "--write", "scores", "--top", "1", "--as", "jsonl"]) == 0
    for row in map(json.loads, capsys.readouterr().out.splitlines()):
        assert list(row["scores"]) == [row["predicted"]]
    options = ["--write", "probabilities", "--as", "jsonl", "--digits", "0", "--sets", "0.9", "--reject", "0.1"]
    assert main(["predict", model, str(objects), *options, "--json", str(tmp_path / "figures.json")]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["probabilities"] for row in found] == [expected.predict_proba(**one) for one in asked]
    assert [row["set"] for row in found] == [list(expected.predict_set(**one, coverage=0.9)) for one in asked]
    assert [row["predicted"] for row in found] == [expected.predict(**one, reject=0.1) for one in asked]
    unsure = sum(row["predicted"] is None for row in found)
    assert 0 < json.loads((tmp_path / "figures.json").read_text())["unanswered"] == unsure
    assert main(["predict", model, str(objects), "--sets", "0.9"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "line,predicted,set"
    for what in ("scores", "probabilities"):
        assert main(["predict", model, str(objects), "--write", what]) == 2
        assert f"{what} fill no columns; write them --as jsonl" in capsys.readouterr().err
    for line, told in (
        ({"candidates": ["x", "y"], "votes": {"v": "x"}, "label": "x", "wrong": "y"}, '"label" or "wrong", not both'),
        ({"candidates": ["x", "y"], "score": {"r": [1, 2]}, "label": "x"}, '"votes" or "scores" must say something'),
        ({"candidates": ["x", "y"], "votes": {"v": "x"}, "wrong": "z"}, "wrong: 'z' is not among the candidates"),
    ):
        objects.write_text(json.dumps(line) + "\n")
        assert main(["learn", str(objects), "--candidates", "--learner", "perceptron"]) == 2
        assert f"trials.jsonl, line 1: {told}" in capsys.readouterr().err


def test_bad_trials_are_skipped_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = [{"candidates": c, "scores": s, "votes": v, "label": label} for c, s, v, label in trials(300)]
    clean, mixed = (tmp_path / name for name in ("clean.jsonl", "mixed.jsonl"))
    good = [json.dumps(line) for line in objects]
    clean.write_text("\n".join(good))
    stray = json.dumps(objects[0] | {"label": "nobody"})
    mixed.write_text("\n".join([*good[:10], "{", *good[10:20], stray, *good[20:]]))
    models = {path: str(path.with_suffix(".linmax")) for path in (clean, mixed)}
    learn = ["--candidates", "--learner", "perceptron", "--json", str(tmp_path / "figures.json"), "--model"]
    for path, model in models.items():
        assert main(["learn", str(path), *learn, model]) == 0
    assert json.loads((tmp_path / "figures.json").read_text())["refused"] == 2
    told = capsys.readouterr().out
    assert "2 lines could not be read" in told
    assert "mixed.jsonl, line 11: not a JSON object" in told
    assert "mixed.jsonl, line 22: label: 'nobody' is not among the candidates" in told
    of_clean, of_mixed = (linmax.Learner.load(model).weights for model in models.values())
    assert of_clean == of_mixed
    assert main(["predict", models[clean], str(mixed)]) == 0
    ended = capsys.readouterr()
    assert len(ended.out.split()) == 301  # the label of a trial says nothing about whether it can be predicted
    assert "mixed.jsonl, line 11: not a JSON object" in ended.err
    for command in (["learn", str(mixed), *learn, models[mixed]], ["predict", models[clean], str(mixed)]):
        assert main([*command, "--strict"]) == 2
        assert "mixed.jsonl, line 11: not a JSON object" in capsys.readouterr().err
        assert main([*command, "--max-refused", "0"]) == 2
        assert "more than --max-refused 0 allows" in capsys.readouterr().err


@pytest.mark.parametrize("learner", ["auto", "perceptron", "arow"])
def test_probabilities_of_candidates_are_calibrated(learner: str) -> None:
    random = np.random.default_rng(3)
    model, chances, hits, held = linmax.Learner(learner), [], [], []
    for t in range(600):
        names = [f"{t}/{i}" for i in range(random.integers(2, 6))]
        right = int(random.integers(len(names)))
        rated = {f"r{i}": (random.normal(size=len(names)) + np.eye(len(names))[right]).tolist() for i in range(3)}
        shares = model.predict_proba(candidates=names, scores=rated)
        assert list(shares) == names
        assert sum(shares.values()) == pytest.approx(1.0)
        assert max(shares, key=shares.__getitem__) == model.rank(names, scores=rated)[0] or t == 0
        likely = model.predict_set(candidates=names, scores=rated, coverage=0.9)
        assert set(likely) <= set(names)
        assert likely[0] == model.predict(candidates=names, scores=rated)
        if t >= 200:
            chances.append(max(shares.values()))
            hits.append(model.predict(candidates=names, scores=rated) == names[right])
            held.append(names[right] in likely)
        model.learn(candidates=names, scores=rated, label=names[right])
    assert np.mean(chances) == pytest.approx(np.mean(hits), abs=0.06)
    assert np.corrcoef(chances, hits)[0, 1] > 0.2
    assert 0.86 <= np.mean(held) <= 0.95


@pytest.mark.small
def test_an_answer_among_candidates_may_be_rejected() -> None:
    learner = linmax.Learner("perceptron")
    assert learner.predict_proba(candidates=["a", "b"], votes={"v": "a"}) == {"a": 0.5, "b": 0.5}
    assert learner.predict_proba(candidates=["a"], votes={"v": "a"}) == {"a": 1.0}
    assert set(learner.predict_set(candidates=["a", "b"], votes={"v": "a"})) == {"a", "b"}
    assert learner.predict(candidates=["a", "b"], votes={"v": "a"}, reject=0.2) is None
    for t in range(60):
        learner.learn(candidates=[f"{t}a", f"{t}b"], votes={"v": f"{t}b"}, label=f"{t}b")
    shares = learner.predict_proba(candidates=["x", "y", "z"], votes={"v": "z"})
    assert shares["z"] > 0.9
    assert shares["x"] == shares["y"]
    assert learner.predict(candidates=["x", "y", "z"], votes={"v": "z"}, reject=0.1, id="kept") == "z"
    assert learner.predict(candidates=["x", "y"], votes={}, reject=0.1, id="open") is None
    assert learner.learn(id="open", label="y") in ("x", "y")
    before = learner.state()[1]
    with pytest.raises(ValueError, match="candidates: 'x' is given twice"):
        learner.predict_proba(candidates=["x", "x"], votes={"v": "x"})
    with pytest.raises(ValueError, match="coverage must lie between"):
        learner.predict_set(candidates=["x", "y"], votes={"v": "x"}, coverage=2.0)
    with pytest.raises(TypeError, match="rate the candidates"):
        learner.predict_proba({"a": 1.0}, candidates=["x", "y"])
    with pytest.raises(ValueError, match="give candidates="):
        learner.predict_proba(votes={"v": "x"})
    assert all(np.array_equal(before[name], array) for name, array in learner.state()[1].items())


@pytest.mark.small
def test_sets_of_a_model_that_did_not_keep_what_they_need_are_refused() -> None:
    learner = linmax.Learner("perceptron")
    learner.learn(candidates=["a", "b"], votes={"v": "a"}, label="b")
    model = learner._current_model
    model.record = model.record._replace(gaps=np.zeros(0), levels=np.zeros(0))  # as it was saved formerly
    with pytest.raises(ValueError, match="prediction sets need the scores of every trial"):
        learner.predict_set(candidates=["x", "y"], votes={"v": "x"})
    assert sum(learner.predict_proba(candidates=["x", "y"], votes={"v": "x"}).values()) == pytest.approx(1.0)
