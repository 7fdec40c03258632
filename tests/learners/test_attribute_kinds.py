"""Numbers and words are told apart by the data, whatever they come in; and are learned from alike from every format."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import linmax
from linmax import Learner, StreamModel, instances, run
from linmax.data.arrays import cut, no_trials
from linmax.jit.compiling import JIT
from linmax.learners.attributes.pool import RunningPool
from linmax.models.sklearn import LinearMaxClassifier

TRIALS = 700 if JIT else 40


def numbers(seed: int = 0, trials: int = TRIALS) -> tuple[np.ndarray, np.ndarray]:
    """Classes that only pairs of attributes tell apart; a column of few values, and some zeros."""
    random = np.random.default_rng(seed)
    rows = np.round(random.normal(size=(trials, 4)), 3)
    rows[:, 3] = random.integers(0, 4, trials)
    rows[0, :] = 1.0
    return rows, ((rows[:, 0] > 0) ^ (rows[:, 1] > 0)).astype(int)


def words(seed: int = 0, trials: int = TRIALS) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, trials)
    rows = np.zeros((trials, 400))
    for t, c in enumerate(labels.tolist()):
        rows[t, 2 * random.integers(0, 200, 12) + (random.random(12) < (0.8 if c else 0.2))] = 1.0
    return rows, labels


def decided(model: Any) -> str:
    return str(model.decided()["attributes are"])


@pytest.mark.small
def test_what_it_is_does_not_hang_on_the_array() -> None:
    for (rows, labels), kind in ((numbers(), "numbers"), (words(), "words")):
        dense, thin = (run("auto", instances(attributes=x), labels) for x in (rows, sparse.csr_array(rows)))
        assert dense.predictions.tolist() == thin.predictions.tolist()
        assert decided(dense.model.pool) == decided(thin.model.pool) == kind


def played(rows: np.ndarray, labels: np.ndarray, thin: bool, cuts: list[int]) -> tuple[list[np.ndarray], RunningPool]:
    """Predictions and scores of trials in parts, and the pool that learned from them."""
    found, pool, shape = no_trials(len(rows))._replace(dense=rows, constant=1.0), RunningPool(), np.zeros(16, int)
    if thin:
        x = sparse.csr_array(rows)
        parts = {"indptr": x.indptr.astype(np.int64), "indices": x.indices.astype(np.int32), "values": x.data}
        found = found._replace(dense=rows[:, :0], **parts)
    labels = labels.astype(np.int32)
    known = np.maximum.accumulate(np.append(0, labels[:-1] + 1))
    found = found._replace(labels=labels, known=known)
    parts = [pool.play(shape, cut(found, *ends), 3) for ends in itertools.pairwise(cuts)]
    return [np.concatenate(part) for part in zip(*parts, strict=True)], pool


@pytest.mark.small
@pytest.mark.parametrize("first", [[0, 0], [0, 1], [2, 0], [2, 2]])
def test_the_first_trials_are_learned_alike_together_and_alone(first: list[int]) -> None:
    """Members that wait for the second trial, when it is at hand, learn what those do that cannot wait."""
    for rows, labels in (numbers(trials=20), words(trials=20)):
        labels = np.concatenate([first, labels[2:]])
        for thin in (False, True):
            (together, pool), (alone, other) = (played(rows, labels, thin, cuts) for cuts in ([0, 20], [*range(21)]))
            for one, another in zip(together, alone, strict=True):
                np.testing.assert_array_equal(one, another)
            assert pool.arrays.keys() == other.arrays.keys()
            for name, array in pool.arrays.items():
                np.testing.assert_array_equal(array, other.arrays[name], err_msg=name)


@pytest.mark.small
def test_members_for_words_never_meet_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be needed for the first trials only is not compiled: it is four of twenty seconds of a first run."""
    monkeypatch.setattr("linmax.learners.attributes.words.play_words", None)
    for thin in (False, True):
        _, pool = played(*numbers(trials=20), thin, [0, 20])
        assert decided(pool) == "numbers"


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_what_was_decided_early_is_forgotten() -> None:
    """Rows that look like words at first and are numbers: the same state as if that had been known."""
    rows, labels = numbers()
    young = np.zeros_like(rows)
    young[:6] = np.eye(4)[np.arange(6) % 4] * rows[:6]
    table = np.vstack([young[:6], rows])
    taught = np.concatenate([labels[:6], labels])
    known = run("auto(dense)", instances(attributes=table), taught).model
    found = run("auto", instances(attributes=table), taught).model
    assert np.array_equal(known.scores(instances(attributes=rows)), found.scores(instances(attributes=rows)))
    assert found.pool.decided()["decided by"] == "the data"
    assert known.pool.decided()["decided by"] == "the learner"


def files(folder: Path, rows: np.ndarray, labels: np.ndarray) -> dict[str, list[Path]]:
    """The same rows in every format of text."""
    names = [f"a{f}" for f in range(rows.shape[1])]
    kinds = {name: folder / f"rows.{name}" for name in ("csv", "svm", "vw", "jsonl")}
    table = [",".join([*map(repr, row), "ny"[c]]) for row, c in zip(rows.tolist(), labels.tolist(), strict=True)]
    kinds["csv"].write_text("\n".join([",".join([*names, "label"]), *table]) + "\n")
    lines: dict[str, list[str]] = {"svm": [], "vw": [], "jsonl": []}
    for row, c in zip(rows.tolist(), labels.tolist(), strict=True):
        there = [(f, value) for f, value in enumerate(row) if value]
        lines["svm"].append(" ".join([str(c), *(f"{f + 1}:{value!r}" for f, value in there)]))
        lines["vw"].append(f"{'ny'[c]} | " + " ".join(f"{names[f]}:{value!r}" for f, value in there))
        lines["jsonl"].append(json.dumps({"label": "ny"[c]} | {names[f]: value for f, value in there}))
    for name, found in lines.items():
        kinds[name].write_text("\n".join(found) + "\n")
    return kinds


def tables(folder: Path, rows: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """The same rows in tables, and files of them."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {f"a{f}": rows[:, f] for f in range(rows.shape[1])} | {"label": np.array(["n", "y"])[labels]}
    made, parquet, arrow = pa.table(columns), folder / "rows.parquet", folder / "rows.arrow"
    pq.write_table(made, parquet, row_group_size=100)
    with pa.OSFile(str(arrow), "wb") as file, pa.ipc.new_file(file, made.schema) as writer:
        writer.write_table(made)
    frame = pytest.importorskip("pandas").DataFrame(columns)
    return {"parquet": str(parquet), "arrow": str(arrow), "frame": frame, "arrays": (rows, labels)}


@pytest.mark.skipif(not JIT, reason="needs many trials")
@pytest.mark.parametrize("made", [numbers, words], ids=["numbers", "words"])
def test_the_same_figures_from_every_format_and_face(made: Any, tmp_path: Path) -> None:
    rows, labels = made()
    whole = run("auto", instances(attributes=rows, classes=[0, 1]), labels, discover=True)
    found = {"array": int(whole.mistakes[-1])}
    for name, path in files(tmp_path, rows, labels).items():
        model = StreamModel("auto")
        for batch in linmax.stream(str(path), model=model):
            model.learn(batch)
        found[name] = model.mistakes
        assert model.decided["attributes are"] == whole.model.pool.decided()["attributes are"], name
    for name, table in tables(tmp_path, rows, labels).items():
        model = StreamModel("auto")
        for batch in linmax.stream(table, model=model):
            model.learn(batch)
        found[name] = model.mistakes
        assert model.decided["attributes are"] == whole.model.pool.decided()["attributes are"], name
    learner = Learner("auto")
    for row, c in zip(rows.tolist(), labels.tolist(), strict=True):
        learner.learn({f"a{f}": value for f, value in enumerate(row) if value}, label=c)
    found["dicts"] = learner.mistakes
    for name, table in (("estimator", rows), ("estimator, CSR", sparse.csr_array(rows))):
        model = LinearMaxClassifier().partial_fit(table, labels, classes=[0, 1])
        found[name] = model.mistakes_
    assert max(found.values()) - min(found.values()) <= 0.01 * len(labels), found
    if made is numbers:
        same = found.keys() - {"estimator", "estimator, CSR"}
        assert len({found[name] for name in same}) == 1, found
        assert found["estimator"] == found["estimator, CSR"]
        assert whole.wrong[-200:].mean() < 0.2  # a linear learner has .5


@pytest.mark.skipif(not JIT, reason="needs many trials")
@pytest.mark.parametrize("made", [numbers, words], ids=["numbers", "words"])
def test_probabilities_are_as_sharp_as_they_prove_right(made: Any) -> None:
    """Rows that are not learned from: the share that is right is about the mean probability of what is predicted."""
    rows, labels = made(trials=2500)
    noisy = np.where(np.random.default_rng(1).random(2500) < 0.15, 1 - labels, labels)
    head, tail = slice(0, 1500), slice(1500, 2500)
    streamed, learner = StreamModel("auto"), Learner("auto")
    for batch in linmax.stream((rows[head], noisy[head]), model=streamed):
        streamed.learn(batch)
    for row, c in zip(rows[head].tolist(), noisy[head].tolist(), strict=True):
        learner.learn({f: value for f, value in enumerate(row) if value}, label=c)
    estimator = LinearMaxClassifier(max_iter=1).fit(rows[head], noisy[head])
    shares = {"estimator": estimator.predict_proba(rows[tail])}
    told = [learner.predict_proba({f: v for f, v in enumerate(row) if v}) for row in rows[tail].tolist()]
    shares["dicts"] = np.array([[one[0], one[1]] for one in told])
    later = linmax.stream((rows[tail], noisy[tail]), model=streamed, grow=False)
    parts = [streamed.predict_proba(batch) for batch in later]
    shares["stream"] = np.concatenate(parts)[:, [streamed.classes.index(name) for name in "01"]]
    for name, table in shares.items():
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
        right = float((table.argmax(axis=1) == noisy[tail]).mean())
        assert right > 0.6, name
        assert abs(float(table.max(axis=1).mean()) - right) < 0.08, name


def test_overruled_by_text() -> None:
    for text in ("auto(dense)", "auto(sparse)", "attributes(dense)", "binned-pairs(8)", "nearest"):
        assert str(linmax.parse(text)) == text
    for text in ("auto(thick)", "attributes(thick)"):
        with pytest.raises(ValueError, match="kind must be dense or sparse, got 'thick'; leave it out"):
            linmax.parse(text)
    with pytest.raises(ValueError, match="bins must be a whole number from 2 to 63, got 1; try 16"):
        linmax.learners.binned_pairs(1)
