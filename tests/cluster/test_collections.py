"""Dask collections as their users know them: rows with labels and weights, records, predictions, faults."""

from __future__ import annotations

import json
import pickle
import threading
import time

import numpy as np
import pytest

import linmax
from linmax import cluster
from linmax.cli import main
from linmax.cluster.shards import TableFile, shards_of

pd = pytest.importorskip("pandas")
dask = pytest.importorskip("dask", reason="the extra cluster is not installed")
distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")
db = pytest.importorskip("dask.bag")

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(120, 3))
NUMBERS = (X @ RANDOM.normal(size=(3, 3))).argmax(axis=1)
NAMES = np.array(["a", "b", "c"])[NUMBERS]
FRAME = pd.DataFrame(X, columns=["p", "q", "r"])
TABLE = FRAME.assign(kind=NAMES)
LEARNER = "A-perceptron"


def bits(model):
    description, arrays = model.state()
    return json.dumps(description, sort_keys=True), {name: array.tobytes() for name, array in arrays.items()}


@pytest.fixture(scope="module")
def client():
    """Workers that are threads of this process."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, processes=False, dashboard_address=None) as local,
        distributed.Client(local) as connected,
    ):
        yield connected


def split(table, many=3):
    return dd.from_pandas(table, npartitions=many)


class Counted:
    """Counts how often a partition is computed."""

    def __init__(self):
        self.times, self.lock = 0, threading.Lock()

    def __call__(self, part):
        with self.lock:
            self.times += 1
        return part


_counted = Counted()


def counted(part):
    return _counted(part)


@pytest.mark.parametrize("here", [True, False])
def test_what_x_and_y_are_computed_from_is_computed_once(here, client):
    frame = split(TABLE).map_partitions(counted, meta=TABLE[:0])
    block = da.from_array(X, chunks=(40, 3)).map_blocks(counted, dtype=float, meta=np.zeros((0, 0)))
    for x, y in [(frame[["p", "q", "r"]], frame["kind"]), (block * 2.0, block.sum(axis=1) > 0)]:
        before = _counted.times
        cluster.fit(LEARNER, (x, y), client=None if here else client, passes=3)
        assert _counted.times == before + 3


def test_labels_and_weights_as_separate_arrays(client):
    weights = np.linspace(0.1, 2.0, 120)
    parts = [TABLE[i : i + 40].assign(sample_weight=weights[i : i + 40]) for i in (0, 40, 80)]
    expected = cluster.fit("pa-i(0.1)", parts, reading={"label": "kind", "weight": "sample_weight"}).model
    y, w = split(pd.Series(NAMES, name="kind")), split(pd.Series(weights))
    assert bits(cluster.fit("pa-i(0.1)", (split(FRAME), y, w), client=client).model) == bits(expected)
    assert bits(cluster.fit("pa-i(0.1)", (split(FRAME), y.to_frame(), w)).model) == bits(expected)
    blocks = [(X[i : i + 40], NUMBERS[i : i + 40], weights[i : i + 40]) for i in (0, 40, 80)]
    x = da.from_array(X, chunks=(40, 2))
    given = (x, NUMBERS, da.from_array(weights, chunks=30))
    assert bits(cluster.fit("pa-i(0.1)", given, client=client).model) == bits(cluster.fit("pa-i(0.1)", blocks).model)
    plain = cluster.fit("pa-i(0.1)", (x, NUMBERS)).model
    assert (
        bits(cluster.fit("pa-i(0.1)", (x, NUMBERS[:, None])).model)
        == bits(plain)
        != bits(cluster.fit("pa-i(0.1)", blocks).model)
    )
    for wrong, error, reason in [
        ((split(FRAME), NAMES), TypeError, "parts of unknown length, and y is not; give a Dask Series"),
        ((FRAME, y), TypeError, "y is a Dask collection, and X is not"),
        ((split(FRAME), split(FRAME)), ValueError, "y must have one column, got 3: p, q, r; several DataFrames"),
        ((split(FRAME.assign(sample_weight=1.0)), y, w), ValueError, "has a column 'sample_weight', as the weights"),
        ((db.from_sequence(["a | p"], npartitions=1), y), TypeError, "labels of a bag are in its lines"),
        ((split(FRAME), y, w.repartition(npartitions=2)), ValueError, "X has 3 partitions, the weights has 2"),
    ]:
        with pytest.raises(error, match=reason):
            cluster.fit("pa-i(0.1)", wrong)


@pytest.mark.parametrize(
    ("labels", "classes", "kind"),
    [
        (pd.Series(NUMBERS == 1), [False, True], "bool"),
        (pd.Series(NUMBERS, dtype="Int64"), [0, 1, 2], "int64"),
        (pd.Series(NUMBERS, dtype="category"), [0, 1, 2], "int64"),
        (pd.Series(pd.Categorical(NAMES)), ["a", "b", "c"], None),
        (pd.Series(np.where(np.arange(120) % 7, NUMBERS, np.nan)), [0.0, 1.0, 2.0], "float64"),
    ],
)
def test_predictions_have_the_type_of_the_labels(labels, classes, kind, client):
    x = split(FRAME)
    model = cluster.DaskClassifier(LEARNER, passes=3).fit(x, split(labels))
    assert model.classes_.tolist() == classes
    lazy = model.predict(x)
    found = lazy.compute()
    assert kind is None or found.dtype == lazy.dtype == kind
    assert (found[labels.notna()] == labels[labels.notna()]).mean() > 0.85
    shares = model.predict_proba(x)
    assert list(shares.columns) == [str(one) for one in classes]
    pd.testing.assert_frame_equal(shares.compute(), shares.compute()[list(shares.columns)])
    assert (model.classes_[shares.compute().to_numpy().argmax(axis=1)] == found).all()


def test_predictions_belong_to_the_frame_they_come_from(tmp_path, client):
    TABLE.to_parquet(tmp_path / "one.parquet", index=False)
    TABLE[:50].to_parquet(tmp_path / "two.parquet", index=False)
    frame = dd.read_parquet([tmp_path / "one.parquet", tmp_path / "two.parquet"])
    assert not frame.known_divisions
    model = cluster.DaskClassifier(LEARNER, passes=3, reading={"label": "kind"}).fit(frame)
    frame["said"] = model.predict(frame)
    assert float((frame["said"] == frame["kind"]).mean().compute()) == model.score(frame, frame["kind"]) > 0.9
    model.predict_proba(frame).to_parquet(tmp_path / "shares")
    assert list(pd.read_parquet(tmp_path / "shares").columns) == ["a", "b", "c"]
    none = frame[frame["p"] > 100.0]
    assert model.predict(none).compute().shape == (0,)
    assert model.predict_proba(none).compute().shape == (0, 3)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(frame).compute() == model.predict(TABLE).tolist() + model.predict(TABLE[:50]).tolist()).all()


def test_rows_in_memory_are_fitted_as_scikit_learn_does():
    from sklearn.base import clone
    from sklearn.model_selection import cross_val_score

    model = cluster.DaskClassifier(LEARNER, passes=3)
    assert cross_val_score(model, X, NUMBERS, cv=2, error_score="raise").min() > 0.85
    for rows, labels in [(X, NUMBERS), (FRAME, NAMES), (FRAME, pd.Series(NAMES)), (X.tolist(), NAMES.tolist())]:
        fitted = clone(model).fit(rows, labels)
        assert fitted.result_.shards == ["shard 0"]
        assert fitted.score(rows, labels) > 0.9
    weighed = clone(model).set_params(learner="pa").fit(FRAME, NAMES, sample_weight=np.linspace(0, 1, 120))
    assert bits(weighed.model_) != bits(clone(weighed).fit(FRAME, NAMES).model_)
    with pytest.raises(TypeError, match="learner is a fusion of votes; linmax.cluster.fit learns it"):
        cluster.DaskClassifier(linmax.VoteFusion()).fit(FRAME, NAMES)
    with pytest.raises(ValueError, match="sample_weight needs y"):
        model.fit(TABLE, sample_weight=np.ones(120))


def test_classifier_resumes_from_checkpoint(tmp_path):
    kept = str(tmp_path / "kept")
    cluster.DaskClassifier(LEARNER, checkpoint=kept).fit(split(FRAME), split(pd.Series(NAMES)))
    more = cluster.DaskClassifier(LEARNER, passes=2, checkpoint=kept, resume=True)
    more.fit(split(FRAME), split(pd.Series(NAMES)))
    whole = cluster.DaskClassifier(LEARNER, passes=2).fit(split(FRAME), split(pd.Series(NAMES)))
    assert bits(more.model_) == bits(whole.model_)


def test_a_bag_of_records_is_lines_of_json(client):
    records = TABLE.to_dict("records")
    records[5]["p"] = float("nan")
    records[6]["p"] = None
    records[7]["q"] = np.float32(0.5)
    written = [json.dumps({k: float(v) if k == "q" else v for k, v in r.items() if v == v and v}) for r in records]
    bag = db.from_sequence(records, npartitions=3).map(dict)
    lines = db.from_sequence(written, npartitions=3)
    model = cluster.DaskClassifier(LEARNER, reading={"label": "kind"}).fit(bag)
    assert bits(model.model_) == bits(cluster.fit(LEARNER, lines, reading={"label": "kind"}).model)
    assert bits(model.model_) == bits(cluster.fit(LEARNER, bag, client=client, reading={"label": "kind"}).model)
    assert model.predict(bag).compute() == model.predict(lines).compute() == model.predict(records).tolist()
    mixed = db.from_sequence([records[0], "a | p"], npartitions=1)
    with pytest.raises(cluster.ShardError, match="holds records and str objects"):
        cluster.fit(LEARNER, mixed)


def test_many_partitions_are_asked_for_at_once(client, monkeypatch):
    asked = []
    compute = client.compute
    monkeypatch.setattr(client, "compute", lambda given: asked.append(len(given)) or compute(given))
    result = cluster.fit(LEARNER, split(TABLE, 30), client=client, passes=2, reading={"label": "kind"})
    assert asked == [30]
    assert bits(result.model) == bits(cluster.fit(LEARNER, split(TABLE, 30), passes=2, reading={"label": "kind"}).model)


def test_indices_that_dask_writes_are_no_attributes(tmp_path):
    split(TABLE).to_parquet(tmp_path)
    model = cluster.fit(LEARNER, tmp_path, reading={"label": "kind"}).model
    assert model._dense_names == ("p", "q", "r")


def test_parent_folders_are_no_columns(tmp_path):
    root = tmp_path / "run=3"
    for year in (2024, 2025):
        (root / f"year={year}").mkdir(parents=True)
        TABLE.to_parquet(root / f"year={year}" / "a.parquet")
        TABLE.to_csv(root / f"{year}.csv", index=False)
    years = [(("year", 2024.0),), (("year", 2025.0),)]
    files = sorted(map(str, root.glob("*/*.parquet")))
    for given in (root / "year=*" / "*.parquet", files, f"file://{root}/year*"):
        assert [part.source.columns for part in shards_of(given)] == years
    assert [part.source.columns for part in shards_of(root) if isinstance(part.source, TableFile)] == years
    for given in (f"{root}/*.csv", sorted(map(str, root.glob("*.csv"))), [f"{root}/2024.csv", "elsewhere.csv"]):
        assert not any(isinstance(part.source, TableFile) for part in shards_of(given))
    assert [part.source for part in shards_of([f"{root}/year=2024/*", f"{root}/year=2025/"])] == files


def test_who_watches_may_fail(client):
    def broken(_):
        raise RuntimeError("the screen is gone")

    for where in (None, client):
        with pytest.raises(RuntimeError, match="the screen is gone"):
            cluster.fit(LEARNER, split(TABLE), client=where, watch=broken, reading={"label": "kind"})


def test_only_failed_shards_are_reported(client, caplog):
    with pytest.raises(cluster.ShardError, match="5 of 5 shards failed in pass 1"):
        cluster.fit(LEARNER, split(TABLE, 5), client=client, reading={"label": "none"})
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_command_reports_label_and_refused_lines(tmp_path, client, capsys):
    for name in ("one", "two"):
        TABLE.to_csv(tmp_path / f"{name}.csv", index=False)
    with (tmp_path / "two.csv").open("a") as file:
        file.write("1,2\n")
    given = ["learn", str(tmp_path), "--cluster", client.scheduler.address, "--learner", LEARNER]
    assert main(given) == 0
    told = capsys.readouterr()
    assert "The label is 'kind' (the last one); columns: 3 numbers." in told.out
    assert f"two.csv: 1 line could not be read; {tmp_path}/two.csv, line 122: " in told.err
    assert main([*given, "--max-refused", "0.001"]) != 0
    assert "1 of 241 lines could not be read, more than --max-refused 0.001 allows" in capsys.readouterr().err
    assert main(["learn", "-", "--cluster", "local:2"]) != 0
    assert "not standard input; remove --cluster, or save it" in capsys.readouterr().err


def test_an_interrupt_leaves_nothing_on_the_workers(client):
    def left():
        return [
            key
            for key in client.run_on_scheduler(lambda dask_scheduler: list(map(str, dask_scheduler.tasks)))
            if "linmax" in key
        ]

    def interrupt(_):
        raise KeyboardInterrupt

    mine = split(TABLE).persist()
    with pytest.raises(KeyboardInterrupt) as caught:
        cluster.fit(LEARNER, mine, client=client, passes=3, reading={"label": "kind"}, watch=interrupt)
    until = time.monotonic() + 60
    while left() and time.monotonic() < until:
        time.sleep(0.05)
    assert left() == []
    assert caught.traceback  # it is still referenced
    assert len(mine.compute()) == 120


def test_empty_input_is_reported(client):
    for where in (None, client):
        with pytest.raises(ValueError, match="partition 0, partition 1, partition 2.*120 rows"):
            cluster.fit(LEARNER, split(TABLE.assign(kind=None)), client=where, reading={"label": "kind"})
        with pytest.raises(ValueError, match="shard 0: there is no data"):
            cluster.fit(LEARNER, [TABLE[:0]], client=where, reading={"label": "kind"})


def test_an_adaptive_cluster_starts_workers():
    options = {"threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(n_workers=0, **options) as local, distributed.Client(local) as client:
        local.adapt(minimum=0, maximum=3, interval="50ms")
        result = cluster.fit(LEARNER, split(TABLE), client=client, passes=2, reading={"label": "kind"})
    assert bits(result.model) == bits(cluster.fit(LEARNER, split(TABLE), passes=2, reading={"label": "kind"}).model)


@pytest.mark.parametrize("kind", ["int64", "uint64", "float64"])
def test_large_integer_labels_stay_distinct(kind):
    labels = np.array([2**60, 2**60 + 1, 2**60 + 2])[NUMBERS] if kind != "float64" else NUMBERS - 0.5
    y = split(pd.Series(labels.astype(kind), name="kind"))
    model = cluster.DaskClassifier(LEARNER, passes=3).fit(split(FRAME), y)
    assert model.classes_.tolist() == sorted(set(labels.tolist()))
    assert (model.predict(split(FRAME)) == y).compute().mean() > 0.85


def test_feature_names_in(client):
    y = split(pd.Series(NAMES, name="kind"))
    for fitted in (
        cluster.DaskClassifier(LEARNER).fit(split(FRAME), y),
        cluster.DaskClassifier(LEARNER, reading={"label": "kind"}).fit(split(TABLE)),
        cluster.DaskClassifier(LEARNER).fit(FRAME, NAMES),
    ):
        assert fitted.feature_names_in_.tolist() == ["p", "q", "r"]
        assert fitted.n_features_in_ == 3
    fitted.fit(da.from_array(X, chunks=(40, 3)), NUMBERS)
    assert fitted.n_features_in_ == 3
    assert not hasattr(fitted, "feature_names_in_")


def test_unsupported_input_error_names_dask_types(client):
    frame = split(TABLE)
    one, many = dask.delayed(TABLE).persist(), client.submit(lambda: TABLE)
    for wrong, error, reason in [
        (frame["p"], TypeError, "a Dask Series is one column; give the pair"),
        (
            db.from_sequence([(1.0, "a")] * 4, npartitions=2),
            ValueError,
            r"lines of text or records \(dicts\), got tuple",
        ),
        (
            (da.from_array(X, chunks=(40, 3)) + 1j, NUMBERS),
            ValueError,
            "X has complex numbers, and attributes are real",
        ),
        (frame.persist(), ValueError, "partition 0: held by the workers of a Dask client; pass this client"),
        ([TABLE, one], ValueError, "shard 1: held by the workers of a Dask client; pass this client"),
        ([TABLE, TABLE, many], ValueError, "shard 2: held by the workers of a Dask client; pass this client"),
    ]:
        with pytest.raises(error, match=reason):
            cluster.fit(LEARNER, wrong)
    for given in (frame.persist(), [one], [many]):
        assert cluster.fit(LEARNER, given, client=client, reading={"label": "kind"}).model.trials == 120


def test_a_client_that_was_closed_is_called_that():
    options = {"n_workers": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as local, distributed.Client(local) as closed:
        pass
    with pytest.raises(ValueError, match="client is closed; pass one that is connected"):
        cluster.fit(LEARNER, [TABLE], client=closed)


def test_skipped_rows_are_reported(client):
    weights = np.where(np.arange(120) == 50, np.nan, 1.0)
    given = (split(FRAME), split(pd.Series(NAMES, name="kind")), split(pd.Series(weights)))
    for where in (None, client):
        with pytest.warns(
            UserWarning, match=r"partition 1: .*the weight is not a finite number.*1 row could not be read"
        ):
            result = cluster.fit(LEARNER, given, client=where)
        assert result.refused == {"partition 1": 1}
        assert result.model.trials == 119
    with pytest.raises(cluster.ShardError, match="the weight is not a finite number"):
        cluster.fit(LEARNER, given, reading={"strict": True})
    dated = cluster.fit(LEARNER, split(TABLE.assign(day=pd.Timestamp("2024-01-01"))), reading={"label": "kind"})
    assert dated.refused == {}
    assert dated.notes == ["The label is 'kind'; columns: 3 numbers.", "Ignored, being dates or times: 'day'."]


def test_columns_of_other_types_are_named_with_the_remedy():
    other = TABLE[60:].assign(q=TABLE.q[60:].astype(str))
    with pytest.raises(
        cluster.ShardError,
        match="shard 1: cannot be merged with shard 0: only one of them has numbers in q; .* the same types",
    ):
        cluster.fit(LEARNER, [TABLE[:60], other], reading={"label": "kind"})


@pytest.mark.parametrize("learner", [LEARNER, "auto"])
def test_partitions_that_differ_in_all_that_may_differ(learner, client):
    """No rows, a label that only one has, other types of numbers, columns in another order, nulls, categories."""
    colours = TABLE.assign(colour=pd.Categorical(np.where(X[:, 0] > 0, "red", "blue")))
    parts = [
        colours[:0],
        colours[:40].assign(kind="z"),
        colours[40:80].astype({"p": "float32", "colour": "string"}),
        colours[80:].iloc[:, ::-1].assign(q=colours.q[80:].where(colours.p[80:] > 0)),
    ]
    frame = dd.from_delayed([dask.delayed(part) for part in parts], meta=colours[:0], verify_meta=False)
    here = cluster.fit(learner, frame, passes=2, reading={"label": "kind"}).model
    assert bits(cluster.fit(learner, frame, client=client, passes=2, reading={"label": "kind"}).model) == bits(here)
    assert bits(cluster.fit(learner, parts, passes=2, reading={"label": "kind"}).model) == bits(here)
    assert (here.trials, sorted(here.classes), sorted(here._dense_names)) == (240, [*"abcz"], [*"pqr"])
    assert set(here.attributes) >= {"p", "q", "r", "colour=blue", "colour=red"}
