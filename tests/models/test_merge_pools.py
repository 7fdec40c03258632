"""Merging the pool for attributes and its parts: what is counted exactly, what is mixed by its formula."""

from __future__ import annotations

import json

import numpy as np
import pytest

import linmax
from linmax import Learner, StreamModel, cluster, merge
from linmax.cli import main
from linmax.jit.compiling import JIT
from linmax.models.merge import merge_since, refuse_unmergeable

TRIALS = 300 if JIT else 30
FIRST, HALF = TRIALS // 10, TRIALS // 2
CLASSES = ["ham", "spam", "news"]
KINDS = ["words", "numbers", "both"]
POOLS = ["auto", "attributes"]


def stream_of(kind, trials=TRIALS, seed=0):
    """Lines of words, a table of numbers, or both, in classes that can be told apart, mostly."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, trials)
    words = np.where(random.random((trials, 6)) < 0.6, labels[:, None] + 3 * random.integers(0, 5, (trials, 6)), 15)
    words = np.where(words == 15, 15 + random.integers(0, 10, (trials, 6)), words)
    if kind == "words":
        rows = zip(labels, words, strict=True)
        return [f"{CLASSES[c]} |w {' '.join(f'{n}:{1 + n % 3}' for n in sorted(set(row.tolist())))}" for c, row in rows]
    numbers = 5.0 * np.eye(4)[labels] + 2.0 * random.normal(size=(trials, 4)) + 40.0
    word = [f",{'nsh'[c]}{random.integers(0, 4)}" if kind == "both" else "" for c in labels]
    head = f"a,b,c,d{',word' if kind == 'both' else ''},label"
    rows = zip(numbers, word, labels, strict=True)
    return [head, *(f"{','.join(f'{x:.4f}' for x in row)}{text},{CLASSES[c]}" for row, text, c in rows)]


def cut_lines(lines, kind, begin, end):
    head = [] if kind == "words" else lines[:1]
    return [*head, *lines[len(head) :][begin:end]]


def options(kind):
    return {} if kind == "words" else {"format": "csv"}


def read(lines, kind, learner="auto", model=None, **settings):
    model = model or StreamModel(learner, **settings)
    for batch in linmax.stream(lines, model=model, **options(kind)):
        model.learn(batch)
    return model


def scores(model, lines, kind):
    """By class."""
    batches = list(linmax.stream(lines, model=model, grow=False, **options(kind)))
    table = np.concatenate([model.scores(batch) for batch in batches])
    return {name: table[:, place] for place, name in enumerate(model.classes)}


def errors(model, lines, kind):
    wrong = total = 0
    for batch in linmax.stream(lines, model=model, grow=False, **options(kind)):
        right = [batch.labelled.names[code] for code in batch.codes]
        wrong += int((model.predict(batch) != np.array(right, dtype=object)).sum())
        total += len(batch)
    return wrong / total


def pool_of(model):
    top = model._current_model.engine.top
    return top.pools["attributes"]


def halves(kind, learner="auto", **settings):
    lines = stream_of(kind)
    parts = [cut_lines(lines, kind, 0, HALF), cut_lines(lines, kind, HALF, TRIALS)]
    return lines, [read(part, kind, learner, **settings) for part in parts]


# -- what is exact -----------------------------------------------------------------------------------------------------


@pytest.mark.small
def test_naive_bayes_of_two_halves_is_that_of_the_whole():
    lines, parts = halves("words", "naive-bayes(0.3)", scale="none")
    whole, merged = read(lines, "words", "naive-bayes(0.3)", scale="none"), merge(parts)
    assert merged.trials == whole.trials
    found, expected = scores(merged, lines, "words"), scores(whole, lines, "words")
    for name in expected:
        assert np.allclose(found[name], expected[name], rtol=1e-12, atol=1e-12)
    base = read(lines[:FIRST], "words", "naive-bayes(0.3)", scale="none")
    others = [
        read(part, "words", model=StreamModel.from_state(*base.state())) for part in (lines[FIRST:HALF], lines[HALF:])
    ]
    since = scores(merge_since(base, others), lines, "words")
    for name in expected:
        assert np.allclose(since[name], expected[name], rtol=1e-12, atol=1e-12)


@pytest.mark.small
@pytest.mark.parametrize("kind", KINDS)
def test_what_the_pool_counts_is_that_of_the_whole(kind):
    """Of two halves, and of parts that went on from one base, which is counted once."""
    learner = {"words": "auto(sparse)", "numbers": "auto", "both": "auto(dense)"}[kind]
    lines, parts = halves(kind, learner)
    whole = pool_of(read(lines, kind, learner))
    base = read(cut_lines(lines, kind, 0, FIRST), kind, learner)
    since = [
        read(cut_lines(lines, kind, begin, end), kind, model=StreamModel.from_state(*base.state()))
        for begin, end in ((FIRST, HALF), (HALF, TRIALS))
    ]
    for model in (merge(parts), merge_since(base, since)):
        assert model.trials == TRIALS
        merged = pool_of(model)
        assert merged.fusion.trials == TRIALS
        assert sorted(merged.groups) == sorted(whole.groups)
        for name in {"dense", "sparse"} & set(merged.groups):
            group, other = merged.groups[name], whole.groups[name]
            assert group.trials == TRIALS
            if name == "dense":
                tables = [sorted(one.stats.round(9).tolist()) for one in (group, other)]
                assert np.allclose(*tables, rtol=1e-6)
                continue
            assert sorted(group.frequency[: group.used - 1]) == sorted(other.frequency[: other.used - 1])
            assert group.totals[-1] == other.totals[-1]
            # Each part weighs words by how rare they were in it, so that counts are those of the whole but for that.
            assert np.allclose(sorted(group.totals[:-1]), sorted(other.totals[:-1]), rtol=0.05)
            sums = [np.sort(one.counts[: one.used].sum(axis=1)) for one in (group, other)]
            assert np.allclose(*sums, rtol=0.2)


@pytest.mark.small
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("learner", POOLS)
def test_one_that_learned_nothing_changes_nothing(learner, kind):
    lines, (model, _) = halves(kind, learner)
    for models in ([model, StreamModel(learner)], [StreamModel(learner), model]):
        merged = merge(models)
        found, expected = scores(merged, lines, kind), scores(model, lines, kind)
        for name in expected:
            assert np.array_equal(found[name], expected[name])
        again = read(cut_lines(lines, kind, 0, 30), kind, model=merged)
        alone = read(cut_lines(lines, kind, 0, 30), kind, model=StreamModel.from_state(*model.state()))
        assert all(np.array_equal(scores(again, lines, kind)[c], scores(alone, lines, kind)[c]) for c in CLASSES)


# -- what is mixed -----------------------------------------------------------------------------------------------------


def by_name(model, table):
    """Rows of a table of the sparse group, by attribute and class."""
    names = ["", *model.attributes]
    return {
        (names[row], c): float(table[row, place]) for row in range(len(table)) for place, c in enumerate(model.classes)
    }


@pytest.mark.small
def test_the_formulas_of_the_sparse_members():
    lines, parts = halves("words", "auto(sparse)")
    parts[1] = read(
        [*lines[-100:], "late |w new 3"], "words", "auto(sparse)"
    )  # a class and a word that only one has met
    shares = [0.25, 0.75]
    merged = merge(parts, shares)
    assert "late" in merged.classes
    assert "w^new" in merged.attributes
    tables = []
    for model in (*parts, merged):
        group = pool_of(model).groups["sparse"]
        tables.append([by_name(model, group.cells[: group.used, row]) for row in range(3)])
    for key in tables[2][0]:
        pa = sum(share * own[0].get(key, 0.0) for share, own in zip(shares, tables, strict=False))
        assert tables[2][0][key] == pytest.approx(pa, rel=1e-5, abs=1e-7)
        precision = sum(share / own[2].get(key, 1.0) for share, own in zip(shares, tables, strict=False))
        pull = sum(s * own[1].get(key, 0.0) / own[2].get(key, 1.0) for s, own in zip(shares, tables, strict=False))
        assert tables[2][2][key] == pytest.approx(1.0 / precision, rel=1e-5)
        assert tables[2][1][key] == pytest.approx(pull / precision, rel=1e-5, abs=1e-7)


@pytest.mark.small
def test_the_formulas_of_the_dense_members_and_of_their_fusion():
    lines, _ = halves("numbers")
    base = read(cut_lines(lines, "numbers", 0, FIRST), "numbers")
    parts = [
        read(cut_lines(lines, "numbers", begin, end), "numbers", model=StreamModel.from_state(*base.state()))
        for begin, end in ((FIRST, HALF), (HALF, TRIALS))
    ]
    shares = [0.25, 0.75]
    merged, (mine, yours), first = pool_of(merge_since(base, parts, shares)), map(pool_of, parts), pool_of(base)
    cells = [pool.groups["dense"].cells.astype(float) for pool in (mine, yours, first, merged)]
    trials = [float(pool.groups["dense"].trials[0]) for pool in (mine, yours, first, merged)]
    for row in (0, 3):  # PA-I, the Perceptron
        assert np.allclose(cells[3][:, row], 0.25 * cells[0][:, row] + 0.75 * cells[1][:, row], rtol=1e-5, atol=1e-6)
    met = [t * own[:, 3] - own[:, 4] for t, own in zip(trials, cells, strict=True)]  # sums of hypotheses
    assert np.allclose(met[3], met[0] + met[1] - met[2], rtol=1e-3, atol=1e-2)
    for mean, variance in ((1, 2), (5, 6)):  # SCW-I, softmax
        precision = 0.25 / cells[0][:, variance] + 0.75 / cells[1][:, variance]
        pull = 0.25 * cells[0][:, mean] / cells[0][:, variance] + 0.75 * cells[1][:, mean] / cells[1][:, variance]
        assert np.allclose(cells[3][:, variance], 1.0 / precision, rtol=1e-5)
        assert np.allclose(cells[3][:, mean], pull / precision, rtol=1e-5, atol=1e-6)
    inverse = [np.linalg.inv(pool.fusion.variances[0]) for pool in (mine, yours, merged)]
    assert np.allclose(inverse[2], 0.25 * inverse[0] + 0.75 * inverse[1])
    pulled = 0.25 * inverse[0] @ mine.fusion.weights[0] + 0.75 * inverse[1] @ yours.fusion.weights[0]
    assert np.allclose(inverse[2] @ merged.fusion.weights[0], pulled)
    marks = [set(pool.fusion.marks.tolist()) for pool in (mine, yours, merged)]
    assert marks[2] == marks[0] | marks[1]
    assert np.allclose(merged.fusion.squares, mine.fusion.squares + yours.fusion.squares - first.fusion.squares)


@pytest.mark.small
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("learner", [*POOLS, "combine(auto, naive-bayes(0.1), perceptron)"])
def test_the_order_of_models_only_rounds(learner, kind):
    lines, parts = halves(kind, learner, scale="none")
    mixed, other = merge(parts, [1.0, 2.0]), merge(parts[::-1], [2.0, 1.0])
    found, expected = scores(mixed, lines, kind), scores(other, lines, kind)
    for name in expected:
        assert np.allclose(found[name], expected[name], rtol=1e-4, atol=1e-4)


@pytest.mark.small
def test_recent_labels_of_several_streams_are_forgotten():
    rows, merged = [({"x": 1.0}, label) for label in "aab"], {}
    for decay in ("0.5", "1"):
        models = [Learner(f"recent-label({decay})") for _ in range(2)]
        for model, count in zip(models, (3, 2), strict=True):
            for row, label in rows[:count]:
                model.learn(row, label=label)
        merged[decay] = merge(models)
        merged[decay].learn(rows[0][0], label="a")
        alone = merge([models[0], Learner(f"recent-label({decay})")])
        assert alone.scores(rows[0][0]) == models[0].scores(rows[0][0])
    assert merged["0.5"].scores(rows[0][0]) == {"a": 1.0, "b": 0.0}
    assert merged["1"].scores(rows[0][0]) == {"a": 5.0, "b": 1.0}  # counts add up


# -- the whole ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not JIT, reason="needs many trials")
@pytest.mark.parametrize("kind", KINDS)
def test_a_mixture_is_about_as_good_as_the_serial_model(kind):
    lines, later = stream_of(kind, 3000), stream_of(kind, 1000, 1)
    serial = read(lines, kind)
    merged = merge([read(cut_lines(lines, kind, 750 * part, 750 * (part + 1)), kind) for part in range(4)])
    errors_of = [errors(model, later, kind) for model in (serial, merged)]
    assert errors_of[0] < 0.25
    assert errors_of[1] < errors_of[0] + 0.02


@pytest.mark.small
@pytest.mark.parametrize("kind", KINDS)
def test_a_mixture_is_saved_grows_and_learns_on(kind, tmp_path):
    _, parts = halves(kind)
    merged = merge(parts, "mistakes")
    merged.save(tmp_path / "model")
    again = StreamModel.load(tmp_path / "model")
    more = stream_of(kind, 40, 3)
    if kind != "numbers":
        more = [line.replace("w 1", "w strange 1").replace(",n0", ",odd") for line in more]
    for model in (merged, again):
        read([*more, more[-1].replace(CLASSES[0], "new").replace(CLASSES[1], "new")], kind, model=model)
    arrays = again.state()[1]
    for name, array in merged.state()[1].items():
        assert np.array_equal(array, arrays[name], equal_nan=True), name
    assert merged.trials > TRIALS


@pytest.mark.small
def test_learners_are_joined_by_name():
    learners = []
    for words in ("abcd", "cdef"):
        learner = Learner("auto", classes=["x", "y"])
        for i in range(max(HALF, 24)):
            label = "xy"[i % 2]
            learner.learn({words[i // 2 % 4] + label: 1.0, "common": 1.0}, label=label)
        learners.append(learner)
    merged = merge(learners)
    assert set(merged.attributes) == {"common", *(word + label for word in "abcdef" for label in "xy")}
    for word in "abcdef":
        assert merged.predict({word + "x": 1.0, "common": 1.0}) == "x"
        assert merged.predict({word + "y": 1.0, "common": 1.0}) == "y"


@pytest.mark.small
def test_what_has_no_mixture_yet():
    refuse_unmergeable("auto")
    refuse_unmergeable("votes")
    with pytest.raises(ValueError, match="softmax.*cannot be merged: no mixture of its states is known"):
        refuse_unmergeable("softmax")


# -- clusters and commands ---------------------------------------------------------------------------------------------


def test_passes_over_shards():
    lines = stream_of("words")
    shards = [lines[part::3] for part in range(3)]
    result = cluster.fit("auto", shards, passes=2)
    assert result.model.trials == 2 * TRIALS
    assert pool_of(result.model).groups["dense"].trials == 2 * TRIALS
    assert result.passes[1].mistakes < result.passes[0].mistakes
    one, serial = cluster.fit("auto", [lines]), read(lines, "words")
    for name, column in scores(one.model, lines, "words").items():
        assert np.array_equal(column, scores(serial, lines, "words")[name])


def test_commands(tmp_path, capsys):
    lines = stream_of("words")
    paths = [tmp_path / f"part-{part}.vw" for part in range(2)]
    for place, path in enumerate(paths):
        path.write_text("\n".join(lines[place::2]) + "\n")
        assert main(["learn", str(path), "--model", f"{path}.linmax", "--quiet"]) == 0
    both = str(tmp_path / "both")
    assert main(["merge", *(f"{path}.linmax" for path in paths), "--out", both]) == 0
    assert "auto from 2 models" in capsys.readouterr().out
    assert main(["show", both, "--json", "-"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["trials"] == len(lines)
    assert list(shown["members"])[:3] == ["PA-I", "SCW-I", "A-perceptron"]


@pytest.mark.small
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_column_of_words_that_only_one_has_met(order):
    """Whichever comes first: the kinds of columns are joined, and so are the groups of members."""
    both = stream_of("both", seed=4)
    models = [read(stream_of("numbers"), "numbers"), read(both, "both")]
    merged = merge([models[place] for place in order])
    assert merged._schema["word"] == models[1]._schema["word"]
    assert errors(merged, both, "both") <= errors(models[1], both, "both") + 0.05
