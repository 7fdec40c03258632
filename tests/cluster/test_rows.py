"""Shards that meet few of many attributes: what they change is all that is kept, mixed and sent."""

from __future__ import annotations

import numpy as np
import pytest
from linmax.streams import StreamModel

import linmax
from linmax import cluster
from linmax.cluster import held as holding
from linmax.cluster.groups import RunPlan
from linmax.cluster.held import Held
from linmax.cluster.merge_rows import merge_rows
from linmax.cluster.mixing import Job
from linmax.cluster.rows import ModelRows, few_rows_change
from linmax.cluster.shards import shards_of
from linmax.cluster.workers import Here
from linmax.rules import REGISTRY

NAMES = 300
PLANE = np.random.default_rng(1).normal(size=(NAMES, 4))


def lines(seed, count, of=NAMES):
    random = np.random.default_rng(seed)
    for _ in range(count):
        index = np.sort(random.choice(of, 5, replace=False))
        x = random.random(5).round(3)  # no ties, which rounding would decide
        row = " ".join(f"{i}:{value}" for i, value in zip(index.tolist(), x.tolist(), strict=True))
        yield f"{int(np.argmax(x @ PLANE[index]))} {row}"


def learned(learner, scale="none", rows=400, of=NAMES):
    model = StreamModel(learner, scale=scale)
    for batch in linmax.stream(list(lines(0, rows, of)), model=model):
        model.learn(batch)
    return model


def mixed(model, parts, passes, count=1, mix="uniform", **given):
    workers = Here()
    workers.count = count
    plan = RunPlan(len(parts), mix, "log", {}, "test")
    job = Job(shards_of(parts), plan, None, None, workers)
    job.start(model, passes)
    job.run(cluster.Fit(StreamModel.from_state(*model.state()), [], **given), passes)
    return job.result.model


def arrays(model):
    return {name: array.tobytes() for name, array in model.state()[1].items()}


def stored(rows):
    return {name: array.tobytes() for name, array in rows.stored.items()}


def scores(model):
    (batch,) = linmax.stream(list(lines(99, 60)), model=model, grow=False)
    return model.scores(batch)


@pytest.mark.parametrize("mix", ["uniform", "trials", "mistakes"])
@pytest.mark.parametrize(
    ("learner", "scale"),
    [("A-perceptron", "none"), ("arow", "max"), ("pa-i", "idf"), ("combine(A-pa, ftrl)", "standard")],
)
def test_rows_give_what_whole_models_give(learner, scale, mix, monkeypatch):
    model, parts = learned(learner, scale), [list(lines(seed, 2 + seed)) for seed in range(1, 7)]
    by_rows = mixed(model, parts, 3, mix=mix)
    assert arrays(mixed(model, parts, 3, count=4, mix=mix)) == arrays(by_rows)
    monkeypatch.setattr(holding, "few_rows_change", lambda _: False)
    entire = mixed(model, parts, 3, mix=mix)
    np.testing.assert_allclose(scores(by_rows), scores(entire), rtol=1e-9, atol=1e-9)
    assert (by_rows.trials, by_rows.updates, by_rows.mistakes) == (entire.trials, entire.updates, entire.mistakes)
    assert arrays(by_rows) != arrays(entire)  # the attributes that nobody met have kept their bits


def test_what_was_learned_before_by_the_same_worker_changes_nothing():
    """Not even whether attributes are words or numbers, which is told by how many of them were met."""
    model, parts = learned("pa-i", "auto", of=60), [list(lines(seed, 4, of=60)) for seed in range(1, 41)]
    busy = Held(0, model.state())
    first = [busy.learn(part, {}, by_rows=True)[0] for part in parts]
    assert stored(first[-1]) == stored(Held(0, model.state()).learn(parts[-1], {}, by_rows=True)[0])
    mixture = merge_rows(busy.base(), first[:4], np.full(4, 0.25), "log")
    fresh = Held(0, model.state())
    for held in (busy, fresh):
        held.advance(mixture)
    (again, _), (once, _) = (held.learn(parts[0], {}, by_rows=True) for held in (busy, fresh))
    assert stored(again) == stored(once)


def test_what_nobody_met_keeps_its_bits():
    model, parts = learned("A-perceptron"), [list(lines(seed, 3, of=50)) for seed in range(1, 6)]
    result = mixed(model, parts, 2)
    before, after = (one.engine.state for one in (model, result))
    unmet = [1 + place for place, name in enumerate(model.attributes) if int(name) >= 50]
    for one in ("weights", "backlog"):
        old, new = (getattr(state, one)[0].reshape(-1, state.shape[1])[unmet] for state in (before, after))
        assert old.tobytes() == new.tobytes()
    assert result.trials == model.trials + 2 * 15


def test_long_runs_write_backlogs_anew_and_stay_averages(monkeypatch):
    """Both in a shard and after a pass: with a small limit, many times."""
    monkeypatch.setattr("linmax.cluster.rows.LONG_BACKLOG", 20.0)
    model, parts = learned("A-perceptron"), [list(lines(seed, 8)) for seed in range(1, 5)]
    short = mixed(model, parts, 6)
    monkeypatch.setattr("linmax.cluster.rows.LONG_BACKLOG", 1e9)
    np.testing.assert_allclose(scores(short), scores(mixed(model, parts, 6)), rtol=1e-10, atol=1e-10)


def test_a_shard_that_writes_backlogs_anew_leaves_nothing_behind():
    model = learned("A-perceptron")
    part = list(lines(5, 20, of=20)) * 600  # beyond the number of trials after which averages are written anew
    held = Held(0, model.state())
    rows, counts = held.learn(part, {}, by_rows=True)
    assert isinstance(rows, ModelRows)
    assert counts.trials == 12_000
    again, _ = held.learn(part, {}, by_rows=True)
    assert stored(again) == stored(rows)
    result = mixed(model, [part, list(lines(6, 3))], 2)
    copies = [StreamModel.from_state(*model.state()) for _ in range(2)]
    for copy, rows in zip(copies, [part, list(lines(6, 3))], strict=True):
        for batch in linmax.stream(rows, model=copy):
            copy.learn(batch)
    once = cluster.merging.merge_since(model, copies)
    np.testing.assert_allclose(scores(mixed(model, [part, list(lines(6, 3))], 1)), scores(once), rtol=1e-9)
    assert result.trials == model.trials + 2 * 12_003


def test_a_copy_that_is_put_back_is_the_start_again():
    """Whatever the rule: what `few_rows_change` says of a learner is true."""
    tried = 0
    for name in [*REGISTRY, "A-perceptron", "A-arow", "combine(pa, A-logistic)", "combine(pa, arow, how=weighted)"]:
        try:
            model = learned(name)
        except (TypeError, ValueError):  # rules that need parameters, or have a fixed threshold
            continue
        if not few_rows_change(model.engine):
            continue
        tried += 1
        held = Held(0, model.state())
        before = {part: array.copy() for part, array in model.state()[1].items()}
        rows, _ = held.learn(list(lines(3, 4)), {}, by_rows=True)
        assert isinstance(rows, ModelRows), name
        for part, array in held._model.state()[1].items():
            assert array.tobytes() == before[part].tobytes(), (name, part)
    assert tried > 10


def test_a_shard_with_new_names_or_classes_is_mixed_whole():
    model = learned("A-perceptron")
    parts = [list(lines(1, 3)), ["0 900:1 901:1", "7 5:1"], list(lines(2, 3))]
    result = mixed(model, parts, 3)
    assert arrays(mixed(model, parts, 3, count=3)) == arrays(result)
    assert result.features == model.features + 2
    assert "7" in result.classes


def test_rows_that_were_kept_are_not_learned_again(tmp_path):
    paths = [tmp_path / f"{seed}.svm" for seed in range(6)]
    for seed, path in enumerate(paths):
        path.write_text("\n".join(list(lines(0, 300)) if seed == 0 else list(lines(seed, 4))) + "\n")
    away = tmp_path / "away"

    def lose(progress):
        if progress.number == 0 and progress.done == 6:
            paths[3].rename(away)

    given = [str(path) for path in paths]
    with pytest.raises(cluster.ShardError, match="the results of the other 5 are kept"):
        cluster.fit("A-perceptron", given, passes=3, scale="none", checkpoint=tmp_path / "kept", watch=lose)
    away.rename(paths[3])
    assert [path.name for path in sorted((tmp_path / "kept").glob("shard*"))][-1] == "shards-4-5.linmax"
    resumed = cluster.fit("A-perceptron", given, passes=3, scale="none", checkpoint=tmp_path / "kept", resume=True)
    assert arrays(resumed.model) == arrays(cluster.fit("A-perceptron", given, passes=3, scale="none").model)
