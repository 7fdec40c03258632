"""Mixing what the pool learns from numbers: pairs of bins and rows remembered, of parts that went on from one start."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import linmax
from linmax import StreamModel, merge
from linmax.jit.compiling import JIT
from linmax.learners.attributes.nearest import FEWEST, NearestRows, shared_out
from linmax.learners.base import mix_learned
from linmax.models.merge import merge_since, merge_states

START = 600 if JIT else 520  # the first 512 rows decide on bins
PART = 200 if JIT else 20
WHOLE = (slice(None), slice(None))


def table(rows, seed=0, columns=5):
    """Numbers in three classes that overlap, as lines of a table."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, rows)
    numbers = np.eye(columns)[labels] + 0.8 * random.normal(size=(rows, columns))
    head = ",".join([*(f"x{i}" for i in range(columns)), "label"])
    return [head, *(f"{','.join(f'{x:.3f}' for x in row)},c{c}" for row, c in zip(numbers, labels, strict=True))]


def learned(lines, model=None, learner="auto(dense)"):
    model = StreamModel(learner) if model is None else StreamModel.from_state(*model.state())
    for batch in linmax.stream(lines, model=model, format="csv"):
        model.learn(batch)
    return model


def group(model, name):
    top = model._current_model.engine.top
    return top.pools["attributes"].groups[name]


def continued(parts=2):
    start = learned(table(START))
    return start, [learned(table(PART, seed), start) for seed in range(1, parts + 1)]


def features(pairs):
    """Weights and variances by feature."""
    rows = range(1, int(pairs.keys[0]) + 1)
    return {int(pairs.keys[row]): pairs.cells[row].astype(float) for row in rows}


@pytest.mark.small
def test_weights_by_what_each_learned_since_the_start():
    start = (WHOLE, np.array([[1.0, 2.0, 3.0]]), np.array([[0.5, 0.5, 0.5]]))
    one = (WHOLE, np.array([[4.0, 2.0, 3.5]]), np.array([[0.25, 0.5, 0.5]]))
    two = (WHOLE, np.array([[2.0, 6.0, 3.5]]), np.array([[0.1, 0.25, 0.5]]))
    weights, variances = mix_learned((1, 3), [(one, 0.5), (two, 0.5)], start)
    assert np.allclose(1.0 / variances, [[2.0 + 0.5 * (2.0 + 8.0), 2.0 + 0.5 * 2.0, 2.0]])
    assert np.allclose(weights, [[(2.0 * 4.0 + 8.0 * 2.0) / 10.0, 6.0, 3.5]])
    shares = [0.2, 0.3, 0.5]
    parts = [one, two, (WHOLE, np.array([[0.0, 1.0, 2.0]]), np.array([[0.2, 0.3, 0.4]]))]
    at_once = mix_learned((1, 3), list(zip(parts, shares, strict=True)), start)
    both = (WHOLE, *mix_learned((1, 3), [(one, 0.4), (two, 0.6)], start))
    in_turn = mix_learned((1, 3), [(both, 0.5), (parts[2], 0.5)], start)
    assert np.allclose(at_once, in_turn)


@pytest.mark.small
def test_the_last_mixture_of_a_pass_goes_further_where_several_learned():
    start = (WHOLE, np.array([[1.0, 2.0, 3.0]]), np.array([[0.5, 0.5, 0.5]]))
    one = (WHOLE, np.array([[4.0, 2.0, 3.5]]), np.array([[0.1, 0.5, 0.5]]))
    two = (WHOLE, np.array([[2.0, 6.0, 3.5]]), np.array([[0.1, 0.25, 0.5]]))
    parts = [(one, 0.5), (two, 0.5)]
    mixed, variances = mix_learned((1, 3), parts, start)
    further, same = mix_learned((1, 3), parts, start, last=True)
    assert np.array_equal(variances, same)
    assert np.allclose(mixed, [[3.0, 6.0, 3.5]])
    assert np.allclose(further, [[1.0 + 1.5 * 2.0, 6.0, 3.5]])  # both learned as much; one alone; nobody
    assert np.array_equal(mix_learned((1, 3), parts, None, last=True), mix_learned((1, 3), parts, None))
    alone = mix_learned((1, 3), [(one, 1.0)], start, last=True)
    assert np.allclose(alone[0], one[1])


@pytest.mark.small
def test_only_the_top_of_the_tree_ends_a_pass(monkeypatch):
    seen = []

    def watched(*arguments):
        seen.append(arguments[-1])
        return merge_states(*arguments)

    monkeypatch.setattr(import_module("linmax.cluster.fit"), "merge_states", watched)  # the name is also a function
    parts = [table(20, seed) for seed in range(6)]
    linmax.cluster.fit("auto(dense)", parts, reading={"format": "csv"})
    assert seen == [False, False, True]


@pytest.mark.small
def test_two_bins_that_became_one_count_together():
    spot = (np.array([1, 1]), slice(1))
    part = (spot, np.array([[1.0], [3.0]]), np.array([[0.5], [0.25]]))
    weights, variances = mix_learned((2, 1), [(part, 1.0)], None)
    assert np.allclose(weights, [[0.0], [(1.0 + 3.0 * 3.0) / 4.0]])
    assert np.allclose(variances, [[1.0], [0.2]])


@pytest.mark.small
def test_bins_stay_what_they_were_at_the_start():
    """Edges follow the values of each part; a bin is the same bin in all of them, and its edges are their mean."""
    start, parts = continued()
    merged = merge_since(start, parts)
    for name in ("pairs8", "pairs16"):
        before, one, two, own = (group(model, name) for model in (start, *parts, merged))
        assert not np.array_equal(one.edges, two.edges)
        assert np.allclose(own.edges, 0.5 * (one.edges + two.edges))
        tables = [features(pairs) for pairs in (before, one, two, own)]
        assert set(tables[3]) == set(tables[1]) | set(tables[2])
        first = np.stack([np.zeros(own.width), np.ones(own.width)])
        for key, cells in tables[3].items():
            begun, *others = (found.get(key, first) for found in tables[:3])
            gained = [0.5 * (1.0 / other[1] - 1.0 / begun[1]) for other in others]
            assert np.allclose(1.0 / cells[1], 1.0 / begun[1] + sum(gained), rtol=1e-5)
            pull = sum(g * other[0] for g, other in zip(gained, others, strict=True))
            met = sum(gained) > 0.0
            assert np.allclose(cells[0][met], (pull[met] / sum(gained)[met]), rtol=1e-4, atol=1e-6)


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_edges_that_all_share_keep_their_bits():
    """Those of an attribute that was met late are 0 and the next number, of which no mean can be taken."""
    random = np.random.default_rng(3)
    rows = [f"{i % 2} 1:{random.normal() + i % 2:.3f} 2:{random.normal():.3f}" for i in range(START + 2 * PART)]
    late = [f"{row} 3:{1 + i % 2}" if i % 9 == 0 else row for i, row in enumerate(rows)]
    start = StreamModel("auto(dense)")
    for batch in linmax.stream([*rows[:START], *late[:10]], model=start):
        start.learn(batch)
    parts = []
    for lines in (late[START : START + PART], late[START + PART :]):
        parts.append(StreamModel.from_state(*start.state()))
        for batch in linmax.stream(lines, model=parts[-1]):
            parts[-1].learn(batch)
    own = group(merge_since(start, parts), "pairs8")
    assert own.edges[2, :2].tolist() == [0.0, np.nextafter(0.0, 1.0)]
    assert own.silent[2] == 1


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_the_only_one_with_a_share_is_taken_as_it_is():
    start, parts = continued()
    merged = merge_since(start, parts, [0.0, 1.0])
    for name in ("pairs8", "pairs16", "nearest"):
        own, other = group(merged, name), group(parts[1], name)
        for key, array in other.arrays.items():
            if key not in ("stats", "trials", "used", "keys", "cells"):  # counts add up, features have other rows
                assert np.array_equal(own.arrays[key], array), (name, key)
    for name in ("pairs8", "pairs16"):
        own, other = features(group(merged, name)), features(group(parts[1], name))
        assert all(np.array_equal(own[key], cells) for key, cells in other.items())


# -- rows remembered ---------------------------------------------------------------------------------------------------


def remembered(model):
    """Rows with their classes, and how often."""
    own = group(model, "nearest")
    rows = (own.memory[:, own.by_age()] + own.stats[:, 3][:, None]).T.round(3)
    classes = [model.classes[c] for c in own.classes[own.by_age()]]
    return sorted((*row, c) for row, c in zip(rows.tolist(), classes, strict=True))


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_rows_of_the_start_are_remembered_once_and_new_ones_are_added():
    start, parts = continued(3)
    merged = merge_since(start, parts)
    before, found = remembered(start), remembered(merged)
    new = [row for part in parts for row in remembered(part) if row not in before]
    assert found == sorted([*before, *new])
    tree = merge_since(start, [merge_since(start, parts[:2]), parts[2]], [2 / 3, 1 / 3])
    assert remembered(tree) == found


def filled(rows, room=FEWEST, start=None):
    """A memory to which these rows, numbers, were added."""
    own = NearestRows()
    if start is not None:
        own.restore(start.arrays)
    else:
        own.fit(1, 2)
        own.restore(own.arrays | {"places": np.array([0, 0, room])})
    for row in rows:
        used, following = own.places.tolist()
        own.memory[0, following], own.classes[following] = row, 0
        own.places[:] = max(used, following + 1), (following + 1) % room
    return own


@pytest.mark.small
def test_how_many_rows_are_new():
    start = filled(range(100))
    for many in (0, 5, 28, 29, 127, 128, 129, 300):
        assert filled(1000 + np.arange(many), start=start).since(start) == min(many, FEWEST)
    full = filled(range(200))
    for many in (0, 5, 127, 128, 129, 256, 300):
        assert filled(1000 + np.arange(many), start=full).since(full) == min(many, FEWEST)
    assert full.since(None) == FEWEST
    assert full.memory[0, full.by_age()].tolist() == list(range(200 - FEWEST, 200))


@pytest.mark.small
def test_room_is_shared_out():
    third = np.full(3, 1 / 3)
    assert shared_out(np.array([5, 6, 7]), third, 100).tolist() == [5, 6, 7]
    assert shared_out(np.array([50, 60, 70]), third, 90).tolist() == [50, 40, 0]
    assert shared_out(np.array([60, 60]), np.array([0.25, 0.75]), 80).tolist() == [20, 60]


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_a_full_memory_gives_up_as_many_old_rows_as_the_parts_did():
    start = learned(table(4500, columns=40))
    parts = [learned(table(800, seed, columns=40), start) for seed in (1, 2)]
    own, begun = group(merge_since(start, parts), "nearest"), group(start, "nearest")
    room, new = begun.classes.size, [group(part, "nearest").since(begun) for part in parts]
    assert int(begun.places[0]) == room
    assert min(new) > 0
    assert own.since(begun) == sum(new) // 2
    stay = room - own.since(begun)
    assert np.array_equal(own.memory[:, own.by_age()[:stay]], begun.memory[:, begun.by_age()[-stay:]])


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_passes_over_shards_are_as_good_as_one_stream():
    lines, later = table(2400, 5), table(1500, 6)
    shards = [[lines[0], *lines[1 + place :: 8]] for place in range(8)]
    mixed = linmax.cluster.fit("auto", shards, passes=3, reading={"format": "csv"}).model
    serial = linmax.cluster.fit("auto", [lines], passes=3, reading={"format": "csv"}).model
    wrong = []
    for model in (serial, mixed):
        batches = list(linmax.stream(later, model=model, grow=False, format="csv"))
        right = [batch.labelled.names[code] for batch in batches for code in batch.codes]
        wrong.append(np.mean(np.concatenate([model.predict(batch) for batch in batches]) != np.array(right, object)))
    assert wrong[1] < wrong[0] + 0.01


@pytest.mark.small
def test_small_starts_may_restart():
    """Parts that set their bins after the start learned its rows once more: these count, however often."""
    start = learned(table(40))
    parts = [learned(table(100 if JIT else 30, seed), start) for seed in (1, 2)]
    merged = merge_since(start, parts)
    assert merged.trials == sum(part.trials for part in parts) - start.trials
    assert np.isfinite(group(merged, "pairs8").cells[: group(merged, "pairs8").keys[0] + 1]).all()
    again = merge([merged, StreamModel("auto(dense)")])
    assert remembered(again) == remembered(merged)
