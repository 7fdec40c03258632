"""Tables that are sorted by class: what is predicted of other rows is nearly as good as if they had been shuffled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linmax
from linmax import StreamModel, stream
from linmax.data.arrays import no_trials
from linmax.learners.attributes import warm_up as at_large

RNG = np.random.default_rng(5)
K = 6
LABELS = np.arange(1800) % K
ROWS = np.hstack([np.cos(LABELS), np.sin(LABELS)]).reshape(2, -1).T * 2.0
ROWS = np.hstack([ROWS, ROWS[:, :1] * ROWS[:, 1:]]) + 0.5 * RNG.normal(size=(1800, 3))
TRAIN, TEST = slice(0, 1200), slice(1200, 1800)
SORTED = np.argsort(LABELS[TRAIN], kind="stable")
SHUFFLED = np.random.default_rng(0).permutation(1200)


def error(model: object, table: np.ndarray = ROWS) -> float:
    return float(np.mean(model.predict(linmax.instances(attributes=table[TEST])) != LABELS[TEST]))  # type: ignore[attr-defined]


@pytest.mark.parametrize("learner", ["auto", "binned-pairs(8)"])
def test_a_sorted_table(learner: str) -> None:
    shuffled = linmax.run(learner, linmax.instances(attributes=ROWS[SHUFFLED]), LABELS[SHUFFLED]).model
    ordered = linmax.run(learner, linmax.instances(attributes=ROWS[SORTED]), LABELS[SORTED]).model
    assert error(ordered) < 1.5 * error(shuffled) + 0.002 < 0.3  # one of 600 rows


@pytest.mark.parametrize("learner", ["auto", "attributes"])
def test_probabilities_after_a_sorted_table(learner: str, tmp_path: Path) -> None:
    """They are as sure as they prove right on other rows, not as on rows of which the last label foretold the next."""
    lines = [f"{LABELS[t]} | " + " ".join(f"x{i}:{v}" for i, v in enumerate(ROWS[t])) for t in range(1800)]
    tests = [line.partition(" ")[2] for line in lines[TEST]]
    losses = []
    for order in (SORTED, SHUFFLED):
        model = StreamModel(learner)
        for batch in stream([lines[t] for t in order], model=model):
            model.learn(batch)
        (batch,) = stream(tests, model=model, grow=False)
        shares = model.predict_proba(batch)
        places = [model.classes.index(str(label)) for label in LABELS[TEST]]
        losses.append(-np.log(shares[np.arange(600), places]).mean())
        model.save(tmp_path / "model")
        (batch,) = stream(tests, model=(again := StreamModel.load(tmp_path / "model")), grow=False)
        np.testing.assert_array_equal(again.predict_proba(batch), shares)
    assert losses[0] < 1.3 * losses[1]


@pytest.mark.parametrize("parts", [2, 7])
def test_cuts_faces_and_files_change_nothing(parts: int, tmp_path: Path) -> None:
    whole = StreamModel()
    lines = [f"{LABELS[t]} | " + " ".join(f"x{i}:{v}" for i, v in enumerate(ROWS[t])) for t in SORTED]
    for batch in stream(lines, model=whole):
        whole.learn(batch)
    cut = StreamModel()
    for batch in stream(lines, model=cut, rows=1200 // parts):
        cut.learn(batch)
        (few,) = stream(lines[:20], model=cut, grow=False)
        cut.predict(few)  # that it was asked meanwhile changes nothing
    cut.save(tmp_path / "model")
    tests = ["| " + " ".join(f"x{i}:{v}" for i, v in enumerate(row)) for row in ROWS[TEST]]
    told = []
    for model in (whole, cut, StreamModel.load(tmp_path / "model")):
        (batch,) = stream(tests, model=model, grow=False)
        told.append(model.predict(batch).tolist())
    assert told[0] == told[1] == told[2]
    learner = linmax.Learner()
    for t in SORTED:
        learner.learn({f"x{i}": float(v) for i, v in enumerate(ROWS[t])}, str(LABELS[t]))
    assert [learner.predict({f"x{i}": float(v) for i, v in enumerate(row)}) for row in ROWS[TEST][:50]] == told[0][:50]


def test_the_sample_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_large, "SORTED_NUMBERS", 900)
    model = linmax.run("auto", linmax.instances(attributes=ROWS[SORTED]), LABELS[SORTED]).model
    assert len(model.pool.at_large.rows) <= 300
    assert model.pool.at_large.numbers <= 900
    assert error(model) < 0.3


def test_labels_that_change_keep_the_small_sample() -> None:
    model = linmax.run("auto", linmax.instances(attributes=ROWS[TRAIN]), LABELS[TRAIN]).model
    assert len(model.pool.at_large.rows) <= at_large.SAMPLE_ROWS


def test_it_is_not_learned_again_at_every_trial() -> None:
    large, settled = at_large.AtLarge(), []
    instances = no_trials(1)
    for label in np.repeat(np.arange(5), 400).tolist():
        large.keep_one(instances._replace(labels=np.array([label], np.int32)), label)
        settled.append((large.settled, large.step))
    assert len(set(settled)) < 110
    assert all(0.87 * size <= learned <= size for size, (learned, _) in enumerate(settled, 1))
