"""What shards may be: folders, addresses, Hive layouts, Dask collections; and what is refused before anything starts."""

from __future__ import annotations

import json

import numpy as np
import pytest

import linmax
from linmax import cluster
from linmax.cluster.shards import shards_of

pd = pytest.importorskip("pandas")
dask = pytest.importorskip("dask", reason="the extra cluster is not installed")
fsspec = pytest.importorskip("fsspec")

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(90, 3))
NUMBERS = (X @ RANDOM.normal(size=(3, 3))).argmax(axis=1)
TABLE = pd.DataFrame(X, columns=["p", "q", "r"]).assign(**{"class": np.array(["a", "b", "c"])[NUMBERS]})


def bits(model):
    description, arrays = model.state()
    return json.dumps(description, sort_keys=True), {name: array.tobytes() for name, array in arrays.items()}


def learned(shards, learner="A-perceptron", **options):
    return cluster.fit(learner, shards, passes=2, scale="none", **options)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sub").mkdir()
    TABLE[:40].to_parquet(tmp_path / "one.parquet")
    TABLE[40:].to_parquet(tmp_path / "sub" / "two.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "three.parquet").write_text("")
    return tmp_path


def test_a_folder_is_the_files_in_it(folder):
    files = [str(folder / "one.parquet"), str(folder / "sub" / "two.parquet")]
    expected = bits(learned(files).model)
    for given in (folder, str(folder), f"file://{folder}", f"{folder}/*"):
        result = learned(given)
        assert result.shards == files
        assert bits(result.model) == expected
    (folder / "empty").mkdir()
    for nothing in (folder / "empty", f"{folder}/*.none", "memory://nothing/*.csv"):
        with pytest.raises(ValueError, match="shards: "):
            learned(str(nothing))


def test_files_at_any_address(folder):
    memory = fsspec.filesystem("memory")
    for name, rows in [("one", TABLE[:40]), ("two", TABLE[40:])]:
        with memory.open(f"/data/{name}.parquet", "wb") as file:
            rows.to_parquet(file)
        with memory.open(f"/data/{name}.csv.gz", "wb") as file:
            rows.to_csv(file, index=False, compression="gzip")
    expected = learned([TABLE[:40], TABLE[40:]])
    for kind in ("parquet", "csv.gz"):
        result = learned(f"memory://data/*.{kind}")
        assert result.shards == [f"memory:///data/{name}.{kind}" for name in ("one", "two")]
        np.testing.assert_array_equal(result.model.weights.arrays.attributes, expected.model.weights.arrays.attributes)
    assert bits(learned("memory://data/one.parquet").model) == bits(learned(str(folder / "one.parquet")).model)
    assert len(shards_of("memory://data")) == 4
    kept = folder / "kept"
    cluster.fit("perceptron", "memory://data/*.parquet", checkpoint=kept)
    with memory.open("/data/two.parquet", "wb") as file:
        TABLE[41:].to_parquet(file)
    with pytest.raises(ValueError, match=r"two\.parquet has changed since"):
        cluster.fit("perceptron", "memory://data/*.parquet", checkpoint=kept, resume=True, passes=2)
    with pytest.raises(cluster.ShardError, match=r"none\.csv"):
        learned(["memory://data/one.csv.gz", "memory://data/none.csv"])
    with pytest.raises(ValueError, match="requires the package fsspec"):
        learned("nothing://data/one.csv")


def test_folders_named_by_values_are_columns(tmp_path):
    for (label, year), rows in TABLE.assign(year=np.arange(90) % 2 + 2024).groupby(["class", "year"]):
        place = tmp_path / f"year={year}" / f"class={label}"
        place.mkdir(parents=True)
        rows.drop(columns=["class", "year"]).to_parquet(place / "part.parquet")
    result = learned(tmp_path)
    assert sorted(result.model.classes) == ["a", "b", "c"]
    assert result.model.attributes == ["p", "q", "r", "year"]
    assert len(result.shards) == 6
    parts = shards_of(
        ["x/k=1/a.parquet", "x/k=two%20b/a.parquet", "x/k=__HIVE_DEFAULT_PARTITION__/a.parquet", "x/a.csv"]
    )
    assert [part.source.columns for part in parts[:3]] == [(("k", "1"),), (("k", "two b"),), (("k", None),)]
    assert parts[3].source == "x/a.csv"
    (tmp_path / "k=1").mkdir()
    (tmp_path / "k=1" / "a.csv").write_text("x,y\n1,2\n")
    with pytest.raises(cluster.ShardError, match="need Parquet or Arrow files"):
        learned(f"{tmp_path}/k=*/*.csv")


@pytest.mark.parametrize("scale", ["none", "max", "standard"])
def test_columns_of_numbers_may_come_in_any_order(scale):
    parts = [TABLE[:40], TABLE[40:]]
    turned = [parts[0], parts[1][["r", "class", "p", "q"]]]
    found = []
    for given in (parts, turned, [*parts[:1], [turned[1][:20], parts[1][20:]]]):
        model = cluster.fit("A-perceptron", given, passes=2, scale=scale).model
        (batch,) = linmax.stream(TABLE, model=model, grow=False)
        found.append(model.scores(batch))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found[0], found[2], rtol=1e-12, atol=1e-12)


@pytest.fixture
def collections():
    dataframe = pytest.importorskip("dask.dataframe")
    array = pytest.importorskip("dask.array")
    frame = dataframe.from_pandas(TABLE[["p", "q", "r"]], npartitions=3)
    labels = dataframe.from_pandas(pd.Series(NUMBERS, name="kind"), npartitions=3)
    with dask.config.set(scheduler="synchronous"):
        yield frame, labels, array.from_array(X, chunks=(30, 2)), array.from_array(NUMBERS, chunks=45)


def test_pairs_of_collections_are_rows_with_their_labels(collections):
    frame, labels, x, y = collections
    parts = [TABLE[["p", "q", "r"]][i : i + 30].assign(kind=NUMBERS[i : i + 30]) for i in (0, 30, 60)]
    assert bits(learned((frame, labels)).model) == bits(learned(parts, reading={"label": "kind"}).model)
    blocks = [(X[i : i + 30], NUMBERS[i : i + 30]) for i in (0, 30, 60)]
    assert bits(learned((x, y)).model) == bits(learned(blocks).model)
    for wrong, error, reason in [
        (x, TypeError, "has no labels"),
        ((frame, labels.repartition(npartitions=2)), ValueError, "X has 3 partitions, y has 2"),
        ((frame.assign(kind=labels), labels), ValueError, "drop it from X"),
        ((y, y), ValueError, "rows and columns"),
    ]:
        with pytest.raises(error, match=reason):
            learned(wrong)


def test_a_classifier_predicts_lazily(collections):
    frame, labels, x, y = collections
    for rows, of in [(frame, labels), (x, y)]:
        model = cluster.DaskClassifier("A-perceptron", passes=3).fit(rows, of)
        lazy = model.predict(rows)
        assert type(lazy) is type(of)
        found = np.asarray(lazy.compute())
        assert found.dtype == NUMBERS.dtype
        assert (found == NUMBERS).mean() > 0.85
        np.testing.assert_array_equal(model.predict(rows.compute()), found)
        shares = model.predict_proba(rows)
        assert type(shares) is type(rows)
        shares = np.asarray(shares.compute())
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], found)
        assert model.score(X if rows is x else rows.compute(), NUMBERS) == (found == NUMBERS).mean()
    lines = [f"{name} | p:{p} q:{q}" for p, q, _, name in TABLE.itertuples(index=False)]
    bag = pytest.importorskip("dask.bag").from_sequence(lines, npartitions=2)
    model = cluster.DaskClassifier("perceptron").fit(bag)
    assert model.predict(bag).compute() == model.predict(lines).tolist()
    named = pytest.importorskip("dask.dataframe").from_pandas(TABLE, npartitions=2)
    model = cluster.DaskClassifier("A-perceptron", reading={"label": "class"}).fit(named)
    assert set(model.predict(named[["r", "q", "p"]]).compute()) <= {"a", "b", "c"}


class FarClient:
    """Client of workers whose versions are given."""

    status, scheduler = "running", type("Far", (), {"address": "tcp://far:8786"})()
    submit = scheduler_info = run = compute = None

    def __init__(self, answer):
        self.answer = answer

    def get_versions(self, packages):
        if isinstance(self.answer, Exception):
            raise self.answer
        ours = {"python": "3.11.7", "numpy": "2.4", "numba": "0.6", "linmax": "0.1"}
        return {"client": {"packages": ours}, "workers": {"tcp://far": {"packages": ours | self.answer}}}


def test_bad_settings_are_refused_before_anything_starts(tmp_path):
    from distributed.comm.core import CommClosedError

    for wrong, error, reason in [
        ({"labels": "x"}, TypeError, "no option 'labels'"),
        ({"format": "zip"}, ValueError, "reading: format must be"),
        ({"text": "words"}, TypeError, "reading: text must be a list"),
        ({"model": 1}, ValueError, "reading: model cannot be chosen"),
    ]:
        with pytest.raises(error, match=reason):
            cluster.fit("perceptron", [["1 1:1"]], reading=wrong)
    missing = str(tmp_path / "missing.svm")
    with pytest.raises(cluster.ShardError, match="cannot be read: .*missing.svm: No such file") as caught:
        cluster.fit("perceptron", [missing])
    assert list(caught.value.shards) == [missing]
    for answer, error, reason in [
        ({"numpy": "1.0"}, ValueError, "worker tcp://far has numpy 1.0, the driver 2.4"),
        ({"python": "3.12.1"}, ValueError, "worker tcp://far has python 3.12.1, the driver 3.11.7"),
        ({"linmax": None}, ValueError, "worker tcp://far cannot import linmax"),
        (CommClosedError("closed"), ConnectionError, "the scheduler at tcp://far:8786 has gone away"),
    ]:
        with pytest.raises(error, match=reason):
            cluster.fit("perceptron", [["1 1:1"]], client=FarClient(answer))


# -- rows that are left out --------------------------------------------------------------------------------------------

ROWS = ["1 1:1", "2 2:1", "1 1:1 3:1", "2 2:1 3:1"] * 10


def test_every_row_of_a_collection_has_an_answer_or_none_has():
    bag = pytest.importorskip("dask.bag")
    model = cluster.DaskClassifier("perceptron").fit([ROWS])
    for wrong, told in ((["1 1:1", "1 one:two", "2 2:1"], "line 2"), (["1 1:1", "", "2 2:1"], "3 lines are 2 rows")):
        asked = bag.from_sequence(wrong, npartitions=1)
        for answers in (model.predict(asked), model.predict_proba(asked)):
            with pytest.raises(ValueError, match=told):
                answers.compute(scheduler="synchronous")
        with pytest.raises(ValueError, match=told):
            model.predict(wrong)


def test_empty_table_decides_no_columns(tmp_path):
    full, empty = tmp_path / "full.csv", tmp_path / "empty.csv"
    full.write_text("colour,x,class\n" + "red,1.5,p\ngreen,-1,q\n" * 5)
    empty.write_text("colour,x,class\n")
    result = cluster.fit("perceptron", [full, empty])
    assert result.notes == cluster.fit("perceptron", [full]).notes
    assert result.passes[0].trials == 10
