"""Merging what learned from votes and scores: the pool for votes, `auto` over them, and fusions."""

from __future__ import annotations

import copy
import json
import os
from typing import Any

import numpy as np
import pytest

import linmax
from linmax import Learner, VoteFusion, merge
from linmax.cli import main
from linmax.jit.compiling import JIT
from linmax.models.merge import merge_since

CLASSES = "abcd"
VOTERS = [f"v{i}" for i in range(7)]
HALF = 60 if JIT else 24
POOLS = ["auto", "votes"]


def votes_of(trials: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Votes and labels as text."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, len(CLASSES), trials)
    good = random.random((trials, len(VOTERS))) < np.linspace(0.3, 0.85, len(VOTERS))
    votes = np.where(good, labels[:, None], random.integers(0, len(CLASSES), good.shape))
    return np.array(list(CLASSES))[votes], np.array(list(CLASSES))[labels]


VOTES, LABELS = votes_of(3 * HALF)
NEW, NEW_LABELS = votes_of(40, seed=1)


def learned(begin: int, end: int, learner: str = "auto", order: Any = None, **options: Any) -> Learner:
    """A `Learner` that saw some trials; the voters join in this order."""
    model = Learner(learner, **options)
    for row, label in zip(VOTES[begin:end], LABELS[begin:end], strict=True):
        model.learn(votes={VOTERS[i]: str(row[i]) for i in order or range(len(VOTERS))}, label=str(label))
    return model


def scores_of(model: Learner, rows: np.ndarray = NEW) -> np.ndarray:
    """Scores of new trials, classes in order."""
    given = [model.scores(votes=dict(zip(VOTERS, row.tolist(), strict=True))) for row in rows]
    return np.array([[row[name] for name in CLASSES] for row in given])


def columns_of(votes: np.ndarray, names: list[str] = VOTERS) -> dict[str, list[Any]]:
    """Votes as a table."""
    return {name: votes[:, VOTERS.index(name)].tolist() for name in names}


# -- learners ---------------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("learner", POOLS)
def test_one_that_learned_nothing_changes_no_bit(learner):
    model, untouched = learned(0, HALF, learner), Learner(learner)
    for merged in (merge([model, untouched]), merge([untouched, model]), merge([model])):
        np.testing.assert_array_equal(scores_of(merged), scores_of(model))
        assert (merged.trials, merged.mistakes) == (model.trials, model.mistakes)
        twin = copy.deepcopy(model)
        for row, label in zip(NEW, NEW_LABELS, strict=True):
            votes = dict(zip(VOTERS, row.tolist(), strict=True))
            assert merged.learn(votes=votes, label=str(label)) == twin.learn(votes=votes, label=str(label))


@pytest.mark.small
@pytest.mark.parametrize("learner", POOLS)
def test_names_in_another_order_change_nothing(learner):
    one, other = learned(0, HALF, learner), learned(HALF, 2 * HALF, learner)
    turned = learned(HALF, 2 * HALF, learner, order=list(range(len(VOTERS)))[::-1])
    np.testing.assert_allclose(scores_of(merge([one, turned])), scores_of(merge([one, other])), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(scores_of(merge([turned, one])), scores_of(merge([one, other])), rtol=1e-9, atol=1e-10)
    assert one.classes != other.classes  # in the order in which they were met
    np.testing.assert_allclose(scores_of(merge([other, one])), scores_of(merge([one, other])), rtol=1e-9, atol=1e-10)


@pytest.mark.small
@pytest.mark.parametrize("learner", POOLS)
@pytest.mark.parametrize("how", ["trials", "uniform"])
def test_the_order_of_merging_only_rounds(learner, how):
    parts = [learned(0, 20, learner), learned(20, HALF, learner), learned(HALF, 2 * HALF, learner)]
    at_once = scores_of(merge(parts, "trials"))
    left = merge([merge(parts[:2], "trials"), parts[2]], "trials")
    right = merge([parts[0], merge(parts[1:], "trials")], "trials")
    for merged in (left, right):
        np.testing.assert_allclose(scores_of(merged), at_once, rtol=1e-8, atol=1e-10)
    back = merge(parts[::-1], how)
    np.testing.assert_allclose(scores_of(back), scores_of(merge(parts, how)), rtol=1e-8, atol=1e-10)


@pytest.mark.small
def test_the_logits_of_a_mixture_have_learned_what_its_parts_did():
    from linmax.learners.votes.pool import MEMORIES, RIDGES

    options = {"learner": "votes", "classes": list(CLASSES)}
    parts = [learned(0, HALF, **options), learned(HALF, 2 * HALF, **options)]
    pools = [part._current_model.engine.top.running for part in [*parts, merge(parts)]]
    for m in range(len(RIDGES)):
        information, pull, home = [], [], []
        for pool in pools:
            precision = np.tril(pool.precision[m]) + np.tril(pool.precision[m], -1).T
            information.append(precision - RIDGES[m] * np.eye(len(precision)))
            pull.append(precision @ pool.weights[m] - RIDGES[m] * pool.home[m])
            home.append(pool.home[m])
        memory = [
            trials if MEMORIES[m] == 1.0 else (1 - MEMORIES[m] ** trials) / (1 - MEMORIES[m])
            for trials in (HALF, 2 * HALF)
        ]
        share = memory[1] / (2 * memory[0])
        np.testing.assert_allclose(information[2], share * (information[0] + information[1]), atol=1e-9)
        np.testing.assert_allclose(pull[2], share * (pull[0] + pull[1]), atol=1e-8)
        between = (np.minimum(*home[:2]) - 1e-9 <= home[2]) & (home[2] <= np.maximum(*home[:2]) + 1e-9)
        assert between.all()
    np.testing.assert_allclose(pools[2].guesses.sum(axis=1), 10 + 2 * HALF)
    assert pools[2].mixture.sum() == pytest.approx(1.0)


@pytest.mark.small
def test_common_base_counts_once():
    base = learned(0, HALF)
    parts = [copy.deepcopy(base) for _ in range(2)]
    for part, begin in zip(parts, (HALF, HALF + 20), strict=True):
        for row, label in zip(VOTES[begin : begin + 20], LABELS[begin : begin + 20], strict=True):
            part.learn(votes=dict(zip(VOTERS, row.tolist(), strict=True)), label=str(label))
    merged, serial = merge_since(base, parts), learned(0, HALF + 40)
    assert merged.trials == HALF + 40
    one, other = (model._current_model.engine.top.pools["votes"] for model in (merged, serial))
    assert one.counts[:3].tolist() == other.counts[:3].tolist()
    np.testing.assert_allclose(np.trace(one.precision[1]), np.trace(other.precision[1]), rtol=0.05)
    same = merge_since(base, [parts[0], copy.deepcopy(base)])
    np.testing.assert_allclose(scores_of(same), scores_of(parts[0]), rtol=1e-9, atol=1e-10)


@pytest.mark.small
def test_voters_raters_and_attributes_that_only_one_has_met(tmp_path):
    one, other = Learner(), Learner()
    for i in range(HALF):
        label = "xy"[i % 2]
        one.learn(votes={"ann": label, "bob": "x"}, label=label)
        other.learn(
            {"word": 1.0 if label == "x" else -1.0}, votes={"cat": label}, scores={"r": {label: 2.0}}, label=label
        )
    for merged in (merge([one, other]), merge([other, one])):
        assert set(merged.voters) == {"ann", "bob", "cat"}
        assert merged.raters == ["r"]
        assert merged.attributes == ["word"]
        merged.save(tmp_path / "merged")
        again = Learner.load(tmp_path / "merged")
        for model in (merged, again):
            assert model.predict(votes={"ann": "y"}) == "y"
            assert model.predict(scores={"r": {"x": 3.0}}) == "x"
            model.learn({"word": 1.0, "more": 1.0}, votes={"dan": "x", "ann": "x"}, label="x")
            assert set(model.weights["voters"]) == {"ann", "bob", "cat", "dan"}
        assert merged.predict_proba(votes={"ann": "y"}) == again.predict_proba(votes={"ann": "y"})


@pytest.mark.small
def test_the_size_of_scores_in_each_part_does_not_matter():
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, HALF)
    table = random.normal(size=(HALF, 2, 2)) + 1.5 * (np.arange(2) == labels[:, None])[:, None]
    parts = []
    for unit in (1.0, 100.0):
        model = Learner("votes", classes=[0, 1])
        for row, label in zip(table, labels.tolist(), strict=True):
            scores = {f"r{i}": {0: unit * row[i, 0], 1: unit * row[i, 1]} for i in range(2)}
            model.learn(scores=scores, label=label)
        parts.append(model)
    pool = merge(parts)._current_model.engine.top.running
    large, small = (np.sqrt(part._current_model.engine.top.running.scales[:, 1]) for part in parts[::-1])
    ratio = large / small
    np.testing.assert_allclose(ratio, 100.0)
    mixed = np.sqrt(pool.scales[:, 1] / 2.0)
    # what a score of the first part adds is about what it added there
    weights = pool.weights[0, 4:6] / mixed
    assert (weights < parts[0]._current_model.engine.top.running.weights[0, 4:6] / small).all()
    assert (weights > parts[1]._current_model.engine.top.running.weights[0, 4:6] / large).all()


@pytest.mark.small
def test_agreement_without_labels_adds_up():
    whole, parts = VoteFusion(classes=list(CLASSES)), [VoteFusion(classes=list(CLASSES)) for _ in range(2)]
    whole.partial_fit(columns_of(VOTES[: 2 * HALF]))
    for place, part in enumerate(parts):
        part.partial_fit(columns_of(VOTES[place * HALF : (place + 1) * HALF]))
    merged = merge(parts, [1.0, 1.0])
    one, other = (fusion._current_model.engine.top.pools["votes"] for fusion in (merged, whole))
    np.testing.assert_array_equal(one.together, other.together)
    np.testing.assert_array_equal(one.agreed, other.agreed)
    np.testing.assert_array_equal(one.unlabelled[:, 0], other.unlabelled[:, 0])
    assert np.corrcoef(one.unlabelled[:, 1], other.unlabelled[:, 1])[0, 1] > 0.8
    assert (merged.predict(columns_of(NEW)) == whole.predict(columns_of(NEW))).mean() > 0.8
    merged.partial_fit(columns_of(NEW), NEW_LABELS)


# -- fusions ----------------------------------------------------------------------------------------------------------


def fused(begin: int, end: int, names: list[str] = VOTERS, **options: Any) -> VoteFusion:
    return VoteFusion(**options).fit(columns_of(VOTES[begin:end], names), LABELS[begin:end])


@pytest.mark.small
def test_fusions_add_their_counts():
    parts = [fused(0, HALF), fused(HALF, 2 * HALF, VOTERS[::-1][:5])]
    merged = merge(parts)
    assert isinstance(merged, VoteFusion)
    assert merged.voters_ == VOTERS
    online, own = merged.report().online, [part.report().online for part in parts]
    assert online.trials == 2 * HALF
    assert online.mistakes == sum(one.mistakes for one in own)
    lines = {line.name: line for line in merged.report().voters}
    assert lines["v0"].voted == pytest.approx(0.5)
    assert lines["v6"].accuracy == pytest.approx(np.mean(VOTES[: 2 * HALF, 6] == LABELS[: 2 * HALF]))
    assert merged.predict_proba(columns_of(NEW)).sum(axis=1) == pytest.approx(np.ones(len(NEW)))
    assert merged.explain(dict(zip(VOTERS, NEW[0].tolist(), strict=True))).winner in CLASSES
    assert sum(map(abs, merged.weights().values())) == pytest.approx(1.0)
    votes, labels = merged._state.recent.rows()
    assert votes.shape == (2 * HALF, len(VOTERS))
    names = np.array(merged._current_model.classes)
    np.testing.assert_array_equal(names[labels[:HALF]], LABELS[:HALF])
    np.testing.assert_array_equal(names[votes[:HALF]], VOTES[:HALF])
    assert [part.report().online.trials for part in parts] == [HALF, HALF]


@pytest.mark.small
def test_a_fusion_that_learned_nothing_changes_no_bit(tmp_path):
    fusion = fused(0, HALF)
    for merged in (merge([fusion, VoteFusion()]), merge([VoteFusion(), fusion]), merge([fusion])):
        np.testing.assert_array_equal(merged.predict_proba(columns_of(NEW)), fusion.predict_proba(columns_of(NEW)))
        assert merged.report().to_dict() == fusion.report().to_dict()
        assert merged is not fusion
    assert not hasattr(merge([VoteFusion(), VoteFusion()]), "_state")
    both = merge([fusion, fused(HALF, 90)])
    both.save(tmp_path / "both")
    again = VoteFusion.load(tmp_path / "both")
    for one in (both, again):
        one.partial_fit({**columns_of(NEW), "new": NEW_LABELS.tolist()}, NEW_LABELS)
    np.testing.assert_array_equal(both.predict_proba(columns_of(NEW)), again.predict_proba(columns_of(NEW)))


@pytest.mark.small
def test_fusions_of_scores():
    random = np.random.default_rng(0)
    labels = np.array(list("xyz"))[random.integers(0, 3, 2 * HALF)]
    table = random.random((2 * HALF, 3, 3)) + (np.array(list("xyz")) == labels[:, None])[:, None] * [
        [0.1],
        [0.4],
        [0.9],
    ]
    names = ["r0", "r1", "r2"]

    def fit(begin: int, end: int, order: list[str]) -> VoteFusion:
        part = {name: table[begin:end, names.index(name)] for name in order}
        return VoteFusion(normalize=["minmax", "log"], classes=list("xyz")).fit(part, labels[begin:end])

    parts = [fit(0, HALF, names), fit(HALF, 2 * HALF, ["r2", "r0"])]
    merged = merge(parts)
    assert merged.voters_ == names
    given = {name: table[:, i] for i, name in enumerate(names)}
    assert (merged.predict(given) == labels).mean() > 0.8
    assert set(merged.report().normalizations) == {"minmax", "log"}


@pytest.mark.small
def test_copies_for_the_values_of_side_columns_are_joined():
    subject = np.array(["maths", "art", "law"])[np.arange(len(LABELS)) % 3]

    def fit(chosen: np.ndarray) -> VoteFusion:
        frame = columns_of(VOTES[chosen]) | {"subject": subject[chosen].tolist()}
        return VoteFusion(by="subject").fit(frame, LABELS[chosen])

    parts = [fit(np.flatnonzero(subject != "law")), fit(np.flatnonzero(subject != "maths"))]
    merged = merge(parts)
    assert dict(zip(merged._state.sides.labels, merged._state.sides.counts.tolist(), strict=True)) == {
        "maths": HALF, "art": 2 * HALF, "law": HALF,
    }  # fmt: skip
    by = merged.weights(copies=True)
    assert set(by["v6"]) == {"maths", "art", "law"}
    frame = columns_of(NEW) | {"subject": ["law"] * len(NEW)}
    assert (merged.predict(frame) == NEW_LABELS).mean() > 0.7
    merged.partial_fit(columns_of(NEW) | {"subject": ["music"] * len(NEW)}, NEW_LABELS)


@pytest.mark.small
def test_fusions_that_do_not_fit_together():
    one = fused(0, 20)
    with pytest.raises(ValueError, match="same thresholds: number 1 has False, number 0 True"):
        merge([one, fused(20, 40, thresholds=False)])
    with pytest.raises(ValueError, match="same learner"):
        merge([one, fused(20, 40, learner="perceptron")])
    with pytest.raises(ValueError, match="voters must be named in all fusions or in none"):
        merge([one, VoteFusion().fit(VOTES[:20], LABELS[:20])])
    with pytest.raises(ValueError, match="stack.*cannot be merged"):
        merge([fused(0, 20, learner="stack(perceptron, pa)")] * 2)
    with pytest.raises(ValueError, match="votes and fusions of scores"):
        merge([one, VoteFusion().fit({"v0": np.eye(4)}, list(CLASSES))])
    scored = [VoteFusion().fit({"v0": np.eye(4)}, list(names)) for names in ("abcd", "bcde")]
    with pytest.raises(ValueError, match="must have the same classes"):
        merge(scored)
    with pytest.raises(TypeError, match="all be Learner objects, all stream models or all fusions"):
        merge([one, Learner()])
    turned = merge([fused(0, 30, classes=list("abcd")), fused(30, 60, classes=list("dcba"))])
    assert turned.classes_.tolist() == list("abcd")


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_eight_shards_are_about_as_good_as_one_stream():
    votes, labels = votes_of(4000, seed=3)
    train, test = slice(0, 2400), slice(2400, None)
    serial = VoteFusion().fit(votes[train], labels[train])
    parts = [VoteFusion().fit(votes[begin : begin + 300], labels[begin : begin + 300]) for begin in range(0, 2400, 300)]
    right = [float((fusion.predict(votes[test]) == labels[test]).mean()) for fusion in (merge(parts), serial)]
    assert right[0] > right[1] - 0.005


def test_the_command_merges_fusions(tmp_path, capsys):
    for place in range(2):
        fused(place * HALF, (place + 1) * HALF).save(tmp_path / f"part{place}")
    paths = [str(tmp_path / f"part{place}") for place in range(2)]
    assert main(["merge", *paths, "--out", str(tmp_path / "both"), "--mix", "trials", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"learner": "auto", "models": 2, "trials": 2 * HALF, "updates": 2 * HALF, "classes": 4, "voters": 7}
    assert linmax.VoteFusion.load(tmp_path / "both").report().online.trials == 2 * HALF


def test_the_command_fuses_tables_on_a_cluster(tmp_path, capsys):
    pytest.importorskip("distributed")
    import pandas as pd

    frames = [pd.DataFrame(columns_of(VOTES[a : a + 40]) | {"right": LABELS[a : a + 40]}) for a in (0, 40)]
    frames[0].loc[0, "v0"] = "no vote"
    for place, frame in enumerate(frames):
        frame.to_csv(tmp_path / f"part{place}.csv", index=False)
    paths = [str(tmp_path / f"part{place}.csv") for place in range(2)]
    given = ["fuse", *paths, "--label", "right"]
    model = str(tmp_path / "model")
    assert main([*given, "--cluster", "local:1", "--abstain", "no vote", "--model", model, "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["data"], told["trials"], told["classes"]) == (paths, 80, list("abcd"))
    frames[0].loc[0, "v0"] = None
    expected = linmax.cluster.fit(VoteFusion(), frames, reading={"label": "right"}).model
    new = columns_of(NEW)
    np.testing.assert_array_equal(VoteFusion.load(model).predict_proba(new), expected.predict_proba(new))
    for wrong, reason in [
        ([*given[:2], "--resume"], "--resume requires --cluster"),
        ([*given, "--cluster", "local:1", "--shuffle", "1"], "--shuffle requires one table in order"),
        ([*given, "--cluster", "local:0"], "cluster must be 'local'"),
        (["fuse", "-", "--cluster", "local:1"], "a cluster reads files"),
    ]:
        assert main(wrong) == 2
        assert reason in capsys.readouterr().err


def test_a_frame_of_dask_holds_votes():
    dataframe = pytest.importorskip("dask.dataframe")
    import dask
    import pandas as pd

    rows = pd.DataFrame(columns_of(VOTES[:120]) | {"label": LABELS[:120]})
    frame = dataframe.from_pandas(rows, npartitions=3)
    with dask.config.set(scheduler="synchronous"):
        whole = linmax.cluster.fit(VoteFusion(), frame).model
        pair = linmax.cluster.fit(VoteFusion(), (frame.drop(columns="label"), frame["label"])).model
    parts = linmax.cluster.fit(VoteFusion(), [rows[begin : begin + 40] for begin in (0, 40, 80)]).model
    new = columns_of(NEW)
    for found in (whole, pair):
        np.testing.assert_array_equal(found.predict_proba(new), parts.predict_proba(new))


# -- shards -----------------------------------------------------------------------------------------------------------


def test_vote_shards_are_merged(tmp_path):
    import pandas as pd

    from linmax.cluster import ShardError, fit

    bounds = [(0, 40), (40, 80), (80, 120), (120, 150), (150, 180)]
    parts = [merge([fused(*bounds[i]) for i in range(4)], "trials"), fused(*bounds[4])]
    expected = merge(parts, "trials")
    frames = [pd.DataFrame(columns_of(VOTES[a:b]) | {"label": LABELS[a:b], "id": range(a, b)}) for a, b in bounds]
    for place, frame in enumerate(frames):
        frame.to_csv(tmp_path / f"part{place}.csv", index=False)
    pairs = [(columns_of(VOTES[a:b]), LABELS[a:b]) for a, b in bounds]
    without = {"ignore": ["id"]}
    for result in [
        fit(VoteFusion(), pairs),
        fit(VoteFusion(), str(tmp_path / "part*.csv"), reading=without),
        fit(VoteFusion(), frames, reading=without),
        fit(VoteFusion(), [*frames[:2], *frames[2:]], reading=without | {"label": "label"}),
    ]:
        fusion = result.model
        assert isinstance(fusion, VoteFusion)
        np.testing.assert_array_equal(fusion.predict_proba(columns_of(NEW)), expected.predict_proba(columns_of(NEW)))
        assert fusion.report().online.trials == 180
        assert [one.trials for one in result.passes[0].shards] == [40, 40, 40, 30, 30]
    start = fused(0, 40)
    more = fit(start, pairs[1:]).model
    assert (more.report().online.trials, start.report().online.trials) == (180, 40)
    assert (more.predict(columns_of(NEW)) == expected.predict(columns_of(NEW))).mean() > 0.9
    with pytest.raises(ShardError, match="1 of 2 shards failed in pass 1: shard 1: no column is called label, truth"):
        fit(VoteFusion(), [frames[0].drop(columns="id"), {"v0": ["a"]}])
    with pytest.raises(ValueError, match="cannot be merged"):
        fit(VoteFusion("vr-combine"), pairs)


@pytest.mark.small
def test_merge_refuses_different_fusions():
    from linmax.cluster import ShardError, fit

    votes = columns_of(VOTES[:20]) | {"label": LABELS[:20]}
    for wrong, error, reason in [
        ({"passes": 2}, ValueError, "a fusion learns from each trial once, got passes=2"),
        ({"hash_bits": 8}, ValueError, "hash_bits=8 is an option of new stream models"),
        ({"reading": {"weight": "w"}}, TypeError, "no option 'weight'"),
        ({"reading": {"ignore": "id"}}, TypeError, r"try \['id'\]"),
        ({"reading": {"label": "answer"}}, ShardError, "has no column 'answer'; it has v0"),
        ({"reading": {"ignore": ["id"]}}, ShardError, "has no column 'id'; it has v0"),
    ]:
        with pytest.raises(error, match=reason):
            fit(VoteFusion(), [votes], **wrong)
    with pytest.raises(ShardError, match="votes must be a file, a table, or a pair"):
        fit(VoteFusion(), [["a b c"]])


@pytest.mark.small
def test_lines_of_a_table_of_votes_that_cannot_be_read_are_counted(tmp_path):
    import pandas as pd

    from linmax.cluster import ShardError, fit

    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    pd.DataFrame(columns_of(VOTES[:40]) | {"label": LABELS[:40]}).to_csv(good, index=False)
    lines = good.read_text().splitlines()
    bad.write_text("\n".join([*lines[:9], "a,b", *lines[9:], "c"]))
    expected = fit(VoteFusion(), [str(good)])
    with pytest.warns(UserWarning, match=r"^[^:]*bad\.csv, line 10: 2 fields .*; 2 rows could not be read"):
        result = fit(VoteFusion(), [str(bad)])
    new = columns_of(NEW)
    np.testing.assert_array_equal(result.model.predict_proba(new), expected.model.predict_proba(new))
    (counts,) = result.passes[0].shards
    assert (counts.trials, counts.refused) == (40, 2)
    assert "bad.csv, line 10: 2 fields where the header has" in counts.first_refused
    with pytest.raises(ShardError, match=r"bad.csv, line 10: 2 fields"):
        fit(VoteFusion(), [str(bad)], reading={"strict": True})
    bad.write_text("\n".join([lines[0], "a,b", "c"]))
    with pytest.raises(ShardError, match=r"not one of 2 lines could be read; .*bad.csv, line 2: 2 fields"):
        fit(VoteFusion(), [str(bad)])


@pytest.mark.small
def test_shards_of_scores_and_of_no_rows():
    from linmax.cluster import fit

    random = np.random.default_rng(5)
    labels = random.integers(0, 3, 60)
    table = {}
    for rater in ("near", "far"):
        scores = random.random((60, 3)) + np.eye(3)[labels]
        table |= {f"{rater}:{place}": scores[:, place] for place in (2, 0, 1)}
    table["class"] = labels.tolist()
    cut = [{name: cells[begin:end] for name, cells in table.items()} for begin, end in ((0, 20), (20, 20), (20, 60))]
    fusion = fit(VoteFusion(), cut).model
    assert fusion.classes_.tolist() == ["0", "1", "2"]
    assert fusion.report().online.trials == 60
    assert set(fusion.voters_) == {"near", "far"}
    given = fit(VoteFusion(classes=[0, 1, 2]), cut).model
    rows = {rater: np.column_stack([table[f"{rater}:{place}"] for place in range(3)]) for rater in ("near", "far")}
    assert (given.predict(rows) == labels).mean() > 0.8


def test_fusion_resumes_from_checkpoint(tmp_path):
    from linmax.cluster import ShardError, fit

    paths = [tmp_path / f"part{place}.csv" for place in range(3)]
    import pandas as pd

    for place, path in enumerate(paths):
        rows = slice(60 * place, 60 * place + 60)
        pd.DataFrame(columns_of(VOTES[rows]) | {"label": LABELS[rows]}).to_csv(path, index=False)
    whole = fit(VoteFusion(), [str(path) for path in paths]).model
    kept, good = tmp_path / "kept", paths[1].read_bytes()
    os.utime(paths[1], ns=(1, 1))
    paths[1].write_bytes(good.replace(b"label", b"table"))
    os.utime(paths[1], ns=(1, 1))
    with pytest.raises(ShardError, match="the results of the other 2 are saved in"):
        fit(VoteFusion(), [str(path) for path in paths], checkpoint=kept)
    paths[1].write_bytes(good)
    os.utime(paths[1], ns=(1, 1))
    again = fit(VoteFusion(), [str(path) for path in paths], checkpoint=kept, resume=True).model
    np.testing.assert_array_equal(again.predict_proba(columns_of(NEW)), whole.predict_proba(columns_of(NEW)))
    done = fit(VoteFusion(), [str(path) for path in paths], checkpoint=kept, resume=True).model
    assert isinstance(done, VoteFusion)
    np.testing.assert_array_equal(done.predict_proba(columns_of(NEW)), whole.predict_proba(columns_of(NEW)))
    with pytest.raises(ValueError, match="made with other parameters"):
        fit(VoteFusion(tie="random"), [str(path) for path in paths], checkpoint=kept, resume=True)
