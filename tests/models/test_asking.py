"""Which voter to ask next, and how few are enough: what is asked and what it costs in accuracy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

import linmax
from linmax.cli import main
from linmax.models.asking import choose_rule, stopping_levels

NAMES = [f"voter {i}" for i in range(12)]


def votes(size: int, seed: int = 0, good: tuple[int, ...] = (0, 1, 2)) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Three voters who are right nine times in ten, and nine who are right four times in ten; four classes."""
    random = np.random.default_rng(seed)
    labels = np.array(list("abcd"))[random.integers(4, size=size)]
    table = {}
    for i, name in enumerate(NAMES):
        right = random.random(size) < (0.9 if i in good else 0.4)
        table[name] = np.where(right, labels, np.array(list("abcd"))[random.integers(4, size=size)])
    return table, labels


def heard(fusion: Any, row: dict[str, Any], **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while (voter := fusion.ask(found, **options)) is not None:
        assert voter not in found
        found[voter] = row[voter]
    return found


def rows(table: dict[str, np.ndarray], part: slice) -> list[dict[str, Any]]:
    return [
        dict(zip(table, row, strict=True)) for row in zip(*(column[part] for column in table.values()), strict=True)
    ]


@pytest.mark.parametrize("learner", ["auto", "perceptron", "A-winnow(1.2)"])
def test_without_tolerance_the_answer_is_that_of_all(learner: str) -> None:
    table, labels = votes(500)
    fusion = linmax.VoteFusion(learner).fit({name: v[:300] for name, v in table.items()}, labels[:300])
    calls = []
    for row in rows(table, slice(300, 400)):
        told = heard(fusion, row, tolerance=0)
        calls.append(len(told))
        full = fusion.predict({name: [vote] for name, vote in row.items()})[0]
        assert fusion.predict({name: [vote] for name, vote in told.items()})[0] == full
    assert np.mean(calls) < 11 if learner != "auto" else min(calls) == len(NAMES)  # a pool asks all


def test_with_tolerance_the_good_ones_are_asked_and_few() -> None:
    table, labels = votes(900)
    fusion = linmax.VoteFusion().fit({name: v[:400] for name, v in table.items()}, labels[:400])
    assert set(fusion.panel()[2].voters) == set(NAMES[:3])
    assert 2 <= len(fusion.panel().enough(0.01).voters) <= 8
    calls, right = [], []
    for row, label in zip(rows(table, slice(400, None)), labels[400:], strict=True):
        told = heard(fusion, row)
        calls.append(len(told))
        said = {name: [vote] for name, vote in told.items()}
        right.append(fusion.predict(said)[0] == label)
        fusion.partial_fit(said, [label])
    assert np.mean(calls) < 6
    assert np.mean(right) > 0.96
    assert set(list(fusion.weights())[:3]) == set(NAMES[:3])  # the order stays right
    assert fusion.recent_rows < 420  # what was asked of few is no measure of all


@pytest.mark.small
def test_stopping_levels_are_the_best_ones() -> None:
    """Of two steps, no other lead would give up and pay less."""
    random = np.random.default_rng(0)
    for _ in range(20):
        leads = random.integers(0, 6, (12, 2)).astype(float)
        losses, prices = random.random((12, 2)) * [0.5, 0.1], np.array([0.1, random.choice([0.01, 0.2])])
        found = stopping_levels(leads, losses, prices)

        def total(level: float, leads: Any = leads, losses: Any = losses, prices: Any = prices) -> float:
            later = losses[:, 1] + prices[1]
            return float(np.where(leads[:, 0] >= level, losses[:, 0], later).sum())

        tried = [total(level) for level in (-np.inf, *np.arange(0.5, 6.0), np.inf)]
        assert total(found[0]) == pytest.approx(min(tried))


@pytest.mark.small
def test_the_rule_that_suits_the_trials_is_chosen() -> None:
    random = np.random.default_rng(1)
    size, costs = 400, np.ones(6)
    noise = random.random((size, 6))
    agreeing = np.minimum(np.arange(1, 7), random.integers(1, 5, (size, 1)) + np.arange(6) // 2)
    by_votes = choose_rule(noise, agreeing, np.where(agreeing >= 2, 0.0, 0.5), costs, 0.002, 0.5)
    assert by_votes.kind == "agree"
    assert by_votes.levels[0] == 2.0
    leads = noise * 4.0
    by_lead = choose_rule(leads, agreeing, np.where(leads > 3.0, 0.0, 0.5), costs, 0.002, 0.5)
    assert by_lead.kind == "lead"
    assert by_lead.levels[0] == pytest.approx(3.0, abs=0.3)


def test_a_panel_is_measured_on_trials_that_did_not_choose_it() -> None:
    """Voters that guess: the first one chosen looks best where it was chosen, and no better elsewhere."""
    lines = []
    for seed in range(6):
        random = np.random.default_rng(seed)
        table = {f"v{i}": random.integers(2, size=300) for i in range(20)}
        fusion = linmax.VoteFusion("winnow(1.1)").fit(table, random.integers(2, size=300))
        lines.append(fusion.panel()[0].accuracy)
    assert abs(np.mean(lines) - 0.5) < 0.06


@pytest.mark.nightly
def test_a_voter_that_got_better_is_found_again() -> None:
    table, labels = votes(400)
    later, later_labels = votes(1300, seed=1, good=(0, 1, 2, 11))
    later[NAMES[11]] = later_labels  # always right from now on
    fusion = linmax.VoteFusion().fit(table, labels)
    asked = []
    for row, label in zip(rows(later, slice(None)), later_labels, strict=True):
        told = heard(fusion, row, explore=0.2)
        asked.append(NAMES[11] in told)
        fusion.partial_fit({name: [vote] for name, vote in told.items()}, [label])
    assert np.mean(asked[:100]) < 0.2
    assert np.mean(asked[-300:]) > 0.9


def test_costs_come_before_weight() -> None:
    table, labels = votes(300)
    fusion = linmax.VoteFusion().fit(table, labels)
    costs = dict.fromkeys(NAMES, 1.0) | {NAMES[0]: 100.0, NAMES[1]: 0.0}
    assert fusion.ask({}, costs=costs) == NAMES[1]
    panel = fusion.panel(costs)
    assert panel[0].voters == (NAMES[1],)
    assert panel[0].cost == 0.0
    assert panel[len(panel) - 1].cost == sum(costs.values())
    assert json.loads(json.dumps(panel.to_dict()))[0]["voters"] == [NAMES[1]]
    assert NAMES[1] in str(panel)


def test_side_columns_saved_and_raters(tmp_path: Path) -> None:
    table, labels = votes(300)
    subject = np.array(["x", "y"] * 150)
    fusion = linmax.VoteFusion("perceptron", by="subject").fit(table | {"subject": subject}, labels)
    told = heard(fusion, rows(table, slice(0, 1))[0], tolerance=0)
    assert told
    assert fusion.ask({"subject": "x"}) in NAMES
    fusion.save(tmp_path / "fusion.linmax")
    again = linmax.VoteFusion.load(tmp_path / "fusion.linmax")
    assert again.panel().to_dict() == fusion.panel().to_dict()
    scores = linmax.VoteFusion("perceptron").fit(np.random.default_rng(0).random((20, 2, 3)), [0, 1] * 10)
    with pytest.raises(ValueError, match="needs votes"):
        scores.ask({})


def test_the_command_tries_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, labels = votes(400)
    path = tmp_path / "votes.csv"
    lines = [",".join([*row.values(), label]) for row, label in zip(rows(table, slice(None)), labels, strict=True)]
    path.write_text("\n".join([",".join([*NAMES, "label"]), *lines]) + "\n")
    costs = tmp_path / "costs.json"
    costs.write_text(json.dumps(dict.fromkeys(NAMES, 2.0)))
    assert main(["fuse", str(path), "--label", "label", "--ask", "200", "--costs", str(costs), "--json", "-"]) == 0
    asking = json.loads(capsys.readouterr().out)["asking"]
    assert asking["trials"] == 200
    assert asking["cost"] == pytest.approx(2 * asking["calls"])
    assert asking["full_cost"] == 24.0
    assert asking["calls"] < 5
    assert asking["accuracy"] > 0.85
    assert main(["fuse", str(path), "--label", "label", "--ask", "400"]) == 2
    costs.write_text("[1]")
    assert main(["fuse", str(path), "--label", "label", "--ask", "200", "--costs", str(costs)]) == 2


def asked_of_few(fusion: Any, table: dict[str, np.ndarray], labels: np.ndarray, part: slice) -> list[dict[str, Any]]:
    """Ask and learn, one by one; what was heard."""
    found = []
    for row, label in zip(rows(table, part), labels[part], strict=True):
        found.append(heard(fusion, row))
        fusion.partial_fit({name: [vote] for name, vote in found[-1].items()}, [label])
    return found


def bits(fusion: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in fusion._state.parts()[1].items()}


def test_panel_model_is_saved_separately(tmp_path: Path) -> None:
    table, labels = votes(700, seed=1)
    fusion = linmax.VoteFusion().fit({name: v[:300] for name, v in table.items()}, labels[:300])
    weights = fusion.weights()
    asked_of_few(fusion, table, labels, slice(300, 380))
    assert fusion.weights() == weights
    fusion.save(tmp_path / "fusion.linmax")
    again = linmax.VoteFusion.load(tmp_path / "fusion.linmax")
    assert bits(again) == bits(fusion)
    first, second = (asked_of_few(model, table, labels, slice(380, 440)) for model in (fusion, again))
    assert first == second
    assert bits(again) == bits(fusion)
    row = {name: [vote] for name, vote in first[0].items()}
    assert fusion.ask({}, tolerance=0) is not None  # from now on the model of all answers
    assert fusion.predict(row)[0] in "abcd"
    assert not any(name.startswith("few.") for name in bits(fusion))
    full = {name: v[440:450] for name, v in table.items()}
    fusion.partial_fit(full, labels[440:450])
    assert fusion.weights() != weights


def test_trials_of_few_may_be_learned_together() -> None:
    table, labels = votes(400)
    single, together = (
        linmax.VoteFusion().fit({name: v[:300] for name, v in table.items()}, labels[:300]) for _ in range(2)
    )
    told = asked_of_few(single, table, labels, slice(300, 360))
    together.ask({})  # the few are chosen
    rows_of_few = {name: np.array([row.get(name, ...) for row in told], dtype=object) for name in NAMES}
    together.partial_fit(rows_of_few, labels[300:360])
    assert bits(single) == bits(together)
    said = {name: column[:40] for name, column in rows_of_few.items()}
    one_by_one = [single.predict({name: [column[t]] for name, column in said.items()})[0] for t in range(40)]
    assert together.predict(said).tolist() == one_by_one
    assert together.predict_proba(said).argmax(axis=1).tolist() == ["abcd".index(label) for label in one_by_one]


@pytest.mark.parametrize("learner", ["auto", "A-winnow(1.2)", "perceptron", "combine(perceptron, alma(2))"])
def test_scores_and_explanations_of_few_are_those_of_the_answer(learner: str) -> None:
    table, labels = votes(420)
    fusion = linmax.VoteFusion(learner).fit({name: v[:300] for name, v in table.items()}, labels[:300])
    told = asked_of_few(fusion, table, labels, slice(300, 360))
    order = fusion.classes_.tolist()
    for row in told:
        said = {name: [vote] for name, vote in row.items()}
        answer, scores = fusion.predict(said)[0], fusion.decision_function(said)[0]
        assert order[int(scores.argmax())] == answer
        assert fusion.predict_proba(said)[0].argmax() == scores.argmax()
        if learner.startswith("combine"):  # no single weight vector
            continue
        explained = fusion.explain(row)
        assert explained.winner == answer
        assert explained.difference == pytest.approx(scores.max() - np.sort(scores)[-2], abs=1e-9)
        silent = set(NAMES) - set(row)
        assert all(explained.contributions[name] == 0.0 for name in silent)


def test_steps_of_a_chain_are_learned_as_far_as_was_asked() -> None:
    """The model of the first m voters is the learner itself on their votes in the trials that came so far."""
    table, labels = votes(500)
    fusion = linmax.VoteFusion(classes=list("abcd")).fit({name: v[:300] for name, v in table.items()}, labels[:300])
    told = asked_of_few(fusion, table, labels, slice(300, 500))
    few = fusion._state.few
    assert len(few.sizes) > 1
    assert not few.joined
    for step, size in enumerate(few.sizes):
        members = [NAMES[i] for i in few.members[:size]]
        reached = [300 + t for t, row in enumerate(told) if members[-1] in row]
        own = linmax.VoteFusion(classes=list("abcd"))
        for part in (list(range(300)), reached):
            own.partial_fit({name: table[name][part] for name in members}, labels[part])
        assert own._current_model.trials == few.models[step].trials
        assert own._current_model.weights.arrays.voters == pytest.approx(few.models[step].weights.arrays.voters)


def test_new_label_is_learned_by_full_model() -> None:
    table, labels = votes(320)
    fusion = linmax.VoteFusion().fit({name: v[:300] for name, v in table.items()}, labels[:300])
    told = heard(fusion, rows(table, slice(300, 301))[0])
    fusion.partial_fit({name: [vote] for name, vote in told.items()}, ["new"])
    assert "new" in fusion.classes_
    assert fusion.ask({}) is not None


def test_thresholds_of_the_fusion_are_those_of_its_panels() -> None:
    random = np.random.default_rng(0)
    labels = np.where(random.random(400) < 0.95, "often", "seldom")
    noise = {name: np.where(random.random(400) < 0.5, "often", "seldom") for name in ("one", "two", "three")}
    right = []
    for thresholds in (False, True):
        fusion = linmax.VoteFusion("A-perceptron", classes=["seldom", "often"], thresholds=thresholds)
        fusion.fit(noise, labels)
        right.append(fusion.panel()[0].accuracy)
        details = fusion.report().details
        assert details is not None
        assert details.panel is not None
        assert details.panel.to_dict() == fusion.panel().to_dict()
    assert right[0] < 0.8
    assert right[1] > 0.9


def jury_with_silence(size: int, seed: int = 3) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Three good voters, nine bad ones, and one who is always right but abstains nine times in ten."""
    table, labels = votes(size, seed)
    speaks = np.random.default_rng(seed + 1).random(size) < 0.1
    return table | {"shy": np.where(speaks, labels.astype(object), None)}, labels


def test_abstaining_differs_from_absent() -> None:
    table, labels = jury_with_silence(500, seed=7)
    fusion = linmax.VoteFusion(classes=list("abcd")).fit({name: v[:300] for name, v in table.items()}, labels[:300])
    assert fusion.ask({}) is not None
    few = fusion._state.few
    assert len(few.sizes) > 1
    members, trials = [fusion.voters_[i] for i in few.members[:2]], [model.trials for model in few.models]
    silent = {members[0]: ["a"], members[1]: [None]}
    fusion.partial_fit({members[0]: ["a"]}, ["a"])
    assert [model.trials for model in few.models[:2]] == [trials[0] + 1, trials[1]]
    fusion.partial_fit(silent, ["a"])
    assert [model.trials for model in few.models[:2]] == [trials[0] + 2, trials[1] + 1]
    ever = fusion._state.recent.ever
    assert ever[few.members[:3]].tolist() == [302, 301, 300]
    fusion.partial_fit({name: [...] for name in fusion.voters_} | silent, ["a"])
    assert [model.trials for model in few.models[:2]] == [trials[0] + 3, trials[1] + 2]
    assert fusion._current_model.trials == 300
    fusion.partial_fit({name: [None] for name in fusion.voters_} | silent, ["a"])  # all were asked
    assert fusion._current_model.trials == 301
    assert fusion.recent_rows == 301


def test_the_order_stays_right_when_some_abstain_often() -> None:
    table, labels = jury_with_silence(900)
    fusion = linmax.VoteFusion(classes=list("abcd")).fit({name: v[:400] for name, v in table.items()}, labels[:400])
    told = asked_of_few(fusion, table, labels, slice(400, None))
    first = [next(iter(row)) for row in told]
    assert set(first) <= set(NAMES[:3])
    assert np.mean(["shy" in row for row in told]) < 0.2
    assert np.mean([len(row) for row in told]) < 6
    assert set(fusion.panel()[2].voters) == set(NAMES[:3])


def test_not_asked_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, labels = votes(120)
    path = tmp_path / "votes.csv"
    lines = [
        ",".join([*(vote if t % 3 or i < 4 else "-" for i, vote in enumerate(row.values())), labels[t]])
        for t, row in enumerate(rows(table, slice(None)))
    ]
    path.write_text("\n".join([",".join([*NAMES, "label"]), *lines]) + "\n")
    saved = tmp_path / "fusion.linmax"
    command = ["fuse", str(path), "--label", "label", "--not-asked", "-", "--learner", "perceptron"]
    assert main([*command, "--model", str(saved)]) == 0
    ever = linmax.VoteFusion.load(saved)._state.recent.ever
    assert ever.tolist() == [120] * 4 + [80] * 8
    capsys.readouterr()
    assert main([*command, "--ask", "60"]) == 2
    assert "'voter 4' was not asked in row 1" in capsys.readouterr().err


def digits_by_parts(seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Votes of ten models of the digits, each of which sees twelve points of the picture."""
    pictures, labels = load_digits(return_X_y=True)
    random = np.random.default_rng(seed)
    order = random.permutation(len(labels))
    pictures, labels, votes = pictures[order], labels[order], {}
    for i in range(10):
        points, rows = random.choice(64, 12, replace=False), random.choice(300, 150)
        model = GaussianNB(var_smoothing=0.01).fit(pictures[rows][:, points], labels[rows])
        votes[f"part {i}"] = model.predict(pictures[300:, points])
    return votes, labels[300:]


@pytest.mark.nightly
def test_accuracy_given_up_is_estimated_on_held_out_answers() -> None:
    lost, learned, later = [], slice(300), slice(300, 1000)
    for seed in range(2):
        table, labels = digits_by_parts(seed)
        fusion = linmax.VoteFusion().fit({name: v[learned] for name, v in table.items()}, labels[learned])
        of_all = fusion.predict({name: v[later] for name, v in table.items()})
        told = [heard(fusion, row, tolerance=0.002, explore=0.0) for row in rows(table, later)]
        answers = np.array([fusion.predict([said])[0] for said in told])
        lost.append((of_all == labels[later]).mean() - (answers == labels[later]).mean())
    assert np.mean(lost) < 0.012  # .026 if a few are judged by what they have learned
