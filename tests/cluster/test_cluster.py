"""The cluster: same bits anywhere, what goes wrong is named, and what was done is kept.

One `LocalCluster` of two processes serves the whole module, but for the tests that kill workers.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import linmax
from linmax import StreamModel, cluster
from linmax.cli import main
from linmax.cluster.shards import shards_of

distributed = pytest.importorskip("distributed", reason="the extra cluster is not installed")
dask = pytest.importorskip("dask")
bag = pytest.importorskip("dask.bag")

WORKERS = 2
PLANE = np.random.default_rng(7).normal(size=(30, 4))


@contextmanager
def running(**options):
    settings = {
        "distributed.worker.memory.terminate": 0.95,
        "distributed.scheduler.allowed-failures": 2,
        "distributed.worker.memory.monitor-interval": "50ms",
        "distributed.comm.timeouts.connect": "60s",
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, memory_limit="1.5GB"
        ) as local,
        distributed.Client(local, **options) as connected,
    ):
        yield connected


@pytest.fixture(scope="module")
def client():
    with running() as connected:
        yield connected


@pytest.fixture
def doomed():
    """A cluster of its own, for who kills workers; results come straight from them, as with `cluster.connect`."""
    with running(direct_to_workers=True) as connected:
        yield connected


def lines(seed, count=200):
    random = np.random.default_rng(seed)
    for _ in range(count):
        index = np.sort(random.choice(30, 6, replace=False))
        x = random.random(6).round(3)
        row = " ".join(f"{i + 1}:{v}" for i, v in zip(index.tolist(), x.tolist(), strict=True))
        yield f"{int(np.argmax(x @ PLANE[index]))} {row}"


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    for seed in range(5):
        (folder / f"part-{seed}.svm").write_text("\n".join(lines(seed)) + "\n")
    return sorted(map(str, folder.glob("*.svm")))


def bits(model):
    description, arrays = model.state()
    return json.dumps(description, sort_keys=True), {name: array.tobytes() for name, array in arrays.items()}


# -- same bits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "learner", ["A-perceptron", "winnow(1.2)", "AR-balanced-winnow(1.1)", "combine(arow, A-pa)", "auto"]
)
def test_one_shard_is_the_serial_run(learner, paths):
    serial = StreamModel(learner, scale="max")
    for _ in range(3):
        for batch in linmax.stream(paths[0], model=serial):
            serial.learn(batch)
    mixed = cluster.fit(learner, paths[0], passes=3, scale="max")
    assert bits(mixed.model)[1] == bits(serial)[1]


@pytest.mark.parametrize("mix", ["uniform", "mistakes"])
@pytest.mark.parametrize("learner", ["A-perceptron", "arow", "A-winnow(1.2)", "auto"])
def test_workers_change_no_bit(learner, mix, paths, client):
    here = cluster.fit(learner, paths, passes=2, mix=mix, scale="max")
    there = cluster.fit(learner, paths, passes=2, mix=mix, scale="max", client=client)
    assert bits(there.model) == bits(here.model)
    assert [one.mistakes for one in there.passes] == [one.mistakes for one in here.passes]
    assert here.passes[1].mistakes < here.passes[0].mistakes
    assert here.model.trials == 2000


@pytest.mark.parametrize("shards", [1, 2, 16, 21])
def test_workers_change_no_bit_with_any_number_of_shards(shards, client):
    """The tree is fixed by the number of shards."""
    parts = [list(lines(seed, 8)) for seed in range(shards)]
    here, there = (cluster.fit("A-perceptron", parts, passes=2, client=where) for where in (None, client))
    assert bits(here.model) == bits(there.model)
    assert [[counts.trials for counts in one.shards] for one in there.passes] == [[8] * shards] * 2


@pytest.mark.parametrize("learner", ["perceptron", "A-perceptron", "arow", "A-winnow(1.2)", "auto"])
@pytest.mark.parametrize("mix", ["uniform", "trials", "mistakes"])
def test_the_tree_gives_what_one_merge_of_all_shards_gives(learner, mix):
    parts = [list(lines(seed, 10 + 5 * seed)) for seed in range(6)]
    tree = cluster.fit(learner, parts, mix=mix, scale="max").model
    models = []
    for part in parts:
        models.append(StreamModel(learner, scale="max"))
        for batch in linmax.stream(part, model=models[-1]):
            models[-1].learn(batch)
    flat = linmax.merge(models, mix)
    scores = []
    for model in (tree, flat):
        (batch,) = linmax.stream(list(lines(9, 50)), model=model, grow=False)
        scores.append(model.scores(batch)[:, [model.classes.index(name) for name in sorted(tree.classes)]])
    close = 1e-5 if learner == "auto" else 1e-8  # parts of the pool are in single precision
    np.testing.assert_allclose(*scores, rtol=close, atol=close)
    assert (tree.trials, tree.updates, tree.mistakes) == (flat.trials, flat.updates, flat.mistakes)


def test_subtrees_that_were_kept_are_not_learned_again(tmp_path):
    parts = [list(lines(seed, 20)) for seed in range(9)]
    paths = [str(tmp_path / f"{seed}.svm") for seed in range(9)]
    for path, part in zip(paths, parts, strict=True):
        Path(path).write_text("\n".join(part) + "\n")
    good = Path(paths[5]).read_text()
    Path(paths[5]).write_text("no good\n")
    with pytest.raises(cluster.ShardError, match="the results of the other 8 are saved"):
        cluster.fit("A-perceptron", paths, checkpoint=tmp_path / "kept")
    kept = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert kept == [f"shards-{part}.linmax" for part in ("0-3", "4-4", "6-6", "7-7", "8-8")]
    Path(paths[5]).write_text(good)
    ran = []
    result = cluster.fit("A-perceptron", paths, checkpoint=tmp_path / "kept", resume=True, watch=ran.append)
    assert [one.done for one in ran] == [9]
    assert bits(result.model) == bits(cluster.fit("A-perceptron", parts).model)
    Path(paths[3]).write_text(good)
    with pytest.raises(ValueError, match=r"3\.svm has changed since"):
        cluster.fit("A-perceptron", paths, checkpoint=tmp_path / "kept", resume=True, passes=2)


def test_a_piece_of_a_collection_is_computed_once(tmp_path, client):
    def counted(rows):
        with (tmp_path / "computed").open("a") as file:
            file.write("x")
        return rows

    parts = [dask.delayed(counted)(list(lines(seed, 20))) for seed in range(3)]
    cluster.fit("perceptron", parts, passes=4, client=client)
    assert (tmp_path / "computed").read_text() == "xxx"


def test_an_asynchronous_client_is_refused(paths):
    class Asynchronous:
        asynchronous = True
        submit = scheduler_info = None

    with pytest.raises(TypeError, match="asynchronous=False"):
        cluster.fit("perceptron", paths, client=Asynchronous())


def test_names_and_classes_that_only_some_shards_have(client):
    parts = [["a |w one two", "b |w three"] * 20, ["c |w four one", "a |w two"] * 20, ["b |w three five"] * 20]
    here, there = cluster.fit("perceptron", parts, passes=3), cluster.fit("perceptron", parts, passes=3, client=client)
    assert bits(there.model) == bits(here.model)
    assert sorted(there.model.classes) == ["a", "b", "c"]
    assert there.model.features == 5
    found = [
        there.model.predict(batch).tolist()
        for batch in linmax.stream(["|w four one", "|w five"], model=there.model, grow=False)
    ]
    assert found == [["c", "b"]]


def test_files_of_every_kind_and_collections(tmp_path, client):
    frame = pytest.importorskip("pandas").DataFrame({"x": [1.0, -1.0, 2.0, -2.0] * 10, "y": ["p", "q", "p", "q"] * 10})
    for place in range(2):
        frame.to_parquet(tmp_path / f"part-{place}.parquet")
        frame.to_csv(tmp_path / f"part-{place}.csv", index=False)
        rows = [{"label": y, "features": {"x": x}} for x, y in zip(frame.x, frame.y, strict=True)]
        (tmp_path / f"part-{place}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        (tmp_path / f"part-{place}.vw").write_text(
            "\n".join(f"{y} | x:{x}" for x, y in zip(frame.x, frame.y, strict=True))
        )
    for kind in ("parquet", "csv", "jsonl", "vw"):
        pattern = str(tmp_path / f"part-*.{kind}")
        here = cluster.fit("perceptron", pattern, passes=2, scale="none")  # first: what it compiles the workers read
        result = cluster.fit("perceptron", pattern, passes=2, client=client, scale="none")
        assert bits(result.model) == bits(here.model)
        assert result.shards == [str(tmp_path / f"part-{place}.{kind}") for place in range(2)]
        assert result.passes[-1].mistakes == 0
    reading = {"label": "y"}
    parts = [dask.delayed(frame), dask.delayed(frame)]
    assert cluster.fit("perceptron", parts, client=client, reading=reading).model.trials == 80
    assert cluster.fit("perceptron", [frame, frame], client=client, reading=reading).model.trials == 80
    read = bag.from_sequence([f"{y} | x:{x}" for x, y in zip(frame.x, frame.y, strict=True)], npartitions=4)
    result = cluster.fit("perceptron", read, client=client, passes=2)
    assert result.shards == [f"partition {i}" for i in range(4)]
    assert bits(result.model) == bits(cluster.fit("perceptron", read, passes=2).model)


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def deadly(marker, rows, how):
    """Rows that kill the worker that reads them first."""
    if how == "always" or not Path(marker).exists():
        Path(marker).write_text(str(os.getpid()))
        if how == "memory":
            held = []
            while True:
                held.append(np.ones(2**23))
                time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGKILL)
    return rows


@pytest.mark.parametrize("how", ["kill", "memory"])
def test_a_worker_that_dies_in_mid_epoch_changes_no_bit(how, tmp_path, doomed):
    parts = [list(lines(seed, 100)) for seed in range(4)]
    marker = str(tmp_path / "died")
    fatal = [dask.delayed(parts[0]), dask.delayed(deadly)(marker, parts[1], how), parts[2], dask.delayed(parts[3])]
    result = cluster.fit("A-perceptron", fatal, passes=2, client=doomed)
    assert Path(marker).exists()
    assert bits(result.model) == bits(cluster.fit("A-perceptron", parts, passes=2).model)


def die_while_mixing(marker):
    """From now on the worker that merges first is killed."""
    fitting = importlib.import_module("linmax.cluster.fit")
    merge = fitting.merge_states

    def deadly_merge(*arguments):
        if not Path(marker).exists():
            Path(marker).write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return merge(*arguments)

    fitting.merge_states = deadly_merge


def test_a_worker_that_dies_while_it_mixes_changes_no_bit(tmp_path, doomed):
    parts = [list(lines(seed, 50)) for seed in range(6)]
    marker = str(tmp_path / "died")
    doomed.run(die_while_mixing, marker)
    result = cluster.fit("A-perceptron", parts, passes=2, client=doomed)
    assert Path(marker).exists()
    assert bits(result.model) == bits(cluster.fit("A-perceptron", parts, passes=2).model)


def results_held(dask_worker):
    return sum(str(key).startswith("linmax") for key in dask_worker.data)


def test_workers_hold_no_more_after_many_passes(paths, client):
    held = {}

    def count(progress):
        if progress.done == progress.shards:
            held[progress.number] = max(client.run(results_held).values())

    cluster.fit("A-perceptron", paths, passes=12, client=client, watch=count)
    assert max(held[number] for number in range(6, 12)) <= max(held[number] for number in range(6)) + 2
    until = time.monotonic() + 60
    while any(client.run(results_held).values()) and time.monotonic() < until:
        time.sleep(0.05)
    assert set(client.run(results_held).values()) == {0}


def free_port():
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return tried.getsockname()[1]


def wait_for_port(port):
    until = time.monotonic() + 120
    while time.monotonic() < until:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nobody listens at port {port}")


def test_lost_scheduler_is_named(tmp_path, paths):
    port = free_port()
    address, python = f"tcp://127.0.0.1:{port}", [sys.executable, "-m"]
    with (tmp_path / "errors").open("w") as errors:
        started = [
            subprocess.Popen([*python, *command, "--no-dashboard"], stderr=errors)
            for command in (
                ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)],
                ["distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"],
            )
        ]
        try:
            wait_for_port(port)
            with distributed.Client(address, timeout=120) as connected:
                connected.wait_for_workers(1, timeout=120)
                connected._timeout = 8  # so long it tries to find the scheduler again

                def kill(progress):
                    if progress.number == 1:
                        started[0].kill()

                with pytest.raises(ConnectionError, match=f"the scheduler at {address} has gone away"):
                    cluster.fit("perceptron", paths, client=connected, passes=1000, watch=kill)
        finally:
            for process in started:
                process.kill()


def test_a_shard_that_always_fails_is_named_and_the_others_kept(tmp_path, doomed):
    parts = [list(lines(seed, 50)) for seed in range(3)]
    fatal = [parts[0], dask.delayed(deadly)(str(tmp_path / "died"), parts[1], "always"), parts[2]]
    with pytest.raises(cluster.ShardError, match="1 of 3 shards failed in pass 1: shard 1: its worker died") as caught:
        cluster.fit("perceptron", fatal, client=doomed, checkpoint=tmp_path / "kept")
    assert list(caught.value.shards) == ["shard 1"]
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["shards-0-0.linmax", "shards-2-2.linmax"]
    ran = []
    whole = cluster.fit("perceptron", parts, checkpoint=tmp_path / "kept", resume=True, passes=2, watch=ran.append)
    assert [(one.number, one.done) for one in ran] == [(0, 3), (1, 1), (1, 2), (1, 3)]  # of the first pass one was left
    assert bits(whole.model) == bits(cluster.fit("perceptron", parts, passes=2).model)
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["latest.linmax"]


def test_bad_shards_are_named(tmp_path, paths, client):
    frame = pytest.importorskip("pandas").DataFrame({"x": np.arange(500.0), "y": ["p", "q"] * 250})
    good, cut, other = (str(tmp_path / name) for name in ("good.parquet", "cut.parquet", "other.parquet"))
    frame.to_parquet(good)
    Path(cut).write_bytes(Path(good).read_bytes()[:-200])
    frame.rename(columns={"x": "z"}).to_parquet(other)
    missing = str(tmp_path / "missing.svm")
    for bad, others, reason in [(cut, good, "cut.parquet"), (missing, paths[0], "No such file"), (other, good, "x, z")]:
        with pytest.raises(cluster.ShardError, match=reason) as caught:
            cluster.fit("perceptron", [others, bad], client=client, passes=2)
        assert list(caught.value.shards) == [bad]
    nonsense = tmp_path / "nonsense.svm"
    nonsense.write_text("no good\nat all\n")
    with pytest.raises(cluster.ShardError, match="not one of 2 lines"):
        cluster.fit("perceptron", [paths[0], str(nonsense)], client=client)
    with pytest.raises(ValueError, match="no file matches"):
        cluster.fit("perceptron", str(tmp_path / "*.none"))


def test_unmixable_learner_is_refused_before_start(paths):
    class Unused:
        """Client that must not be used."""

        def scheduler_info(self):
            raise AssertionError("nothing may start")

        submit = get_versions = run = scheduler_info

    for learner, reason in [
        ("vr-combine", "cannot be merged"),
        ("V-perceptron", "saved hypotheses"),
        ("nonsense", "nonsense"),
    ]:
        with pytest.raises(ValueError, match=reason):
            cluster.fit(learner, paths, client=Unused())

    @linmax.rule
    def ours(weights, memory, scalars, index, z, margin, params):
        return False

    with pytest.raises(ValueError, match="a custom rule"):
        cluster.fit(ours, paths, client=Unused())
    for wrong in ({"passes": 0}, {"mix": "best"}, {"multiplicative": "x"}, {"scale": "x"}, {"resume": True}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            cluster.fit("perceptron", paths, client=Unused(), **wrong)
    with pytest.raises(TypeError, match="client must be"):
        cluster.fit("perceptron", paths, client="tcp://nowhere")


# -- checkpoints -------------------------------------------------------------------------------------------------------


def test_killed_driver_resumes_from_checkpoint(tmp_path, paths):
    folder = tmp_path / "kept"
    script = textwrap.dedent(
        """
        import os, signal, sys
        from linmax import cluster

        def stop(progress):
            if progress.number == 2 and progress.done == 3:
                os.kill(os.getpid(), signal.SIGKILL)

        cluster.fit("A-perceptron", sys.argv[2:], passes=4, checkpoint=sys.argv[1], watch=stop)
        """
    )
    ended = subprocess.run([sys.executable, "-c", script, str(folder), *paths], check=False, timeout=300)
    assert ended.returncode == -signal.SIGKILL
    with pytest.raises(ValueError, match="holds a checkpoint"):
        cluster.fit("A-perceptron", paths, passes=4, checkpoint=folder)
    for wrong, reason in [
        ({"learner": "pa"}, "learner"),
        ({"mix": "mistakes"}, "mix"),
        ({"shards": paths[:2]}, "shards"),
    ]:
        given = {"learner": "A-perceptron", "shards": paths} | wrong
        with pytest.raises(ValueError, match=f"other {reason}"):
            cluster.fit(given.pop("learner"), given.pop("shards"), checkpoint=folder, resume=True, **given)
    resumed = []
    result = cluster.fit("A-perceptron", paths, passes=4, checkpoint=folder, resume=True, watch=resumed.append)
    assert {progress.number for progress in resumed} == {2, 3}
    whole = cluster.fit("A-perceptron", paths, passes=4)
    assert bits(result.model) == bits(whole.model)
    assert [one.mistakes for one in result.passes] == [one.mistakes for one in whole.passes]


# -- sweeps and fusion -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def votes():
    problem = linmax.datasets.majority_problem(n=12, r=6, k=3, noise=0.1, trials=700, seed=3)
    return linmax.instances(votes=problem.votes), problem.labels


def test_a_sweep_is_each_learner_alone(votes, paths, client):
    learners = ["perceptron", "AR-winnow(1.2)", "V-pa"]
    for trace, learner in zip(cluster.sweep(learners, votes, client=client), learners, strict=True):
        alone = linmax.run(learner, *votes)
        assert (trace.predictions == alone.predictions).all()
        assert (trace.model.predict(votes[0]) == alone.model.predict(votes[0])).all()
    read = cluster.sweep(learners, paths[0], client=client, scale="max")
    here = cluster.sweep(learners, paths[0], scale="max")
    for one, other in zip(read, here, strict=True):
        assert bits(one.model) == bits(other.model)
        assert one.mistakes[-1] == other.mistakes[-1] == other.wrong.sum() > 0
    with pytest.raises(ValueError, match="perceptron: .*missing"):
        cluster.sweep(learners, "missing.svm", client=client)


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_command(tmp_path, paths, client, capsys):
    address, model, figures = client.scheduler.address, str(tmp_path / "model"), str(tmp_path / "figures.json")
    base = ["learn", *paths, "--cluster", address, "--checkpoint", str(tmp_path / "kept"), "--learner", "A-perceptron"]
    assert main([*base, "--passes", "2", "--model", model, "--test", paths[0], "--json", figures]) == 0
    told = capsys.readouterr().out
    assert "5 shards; dashboard:" in told
    assert "pass 2:" in told
    assert "test error" in told
    expected = cluster.fit("A-perceptron", paths, passes=2)
    found = json.loads(Path(figures).read_text())
    assert [one["mistakes"] for one in found["passes"]] == [one.mistakes for one in expected.passes]
    assert StreamModel.load(model).weights == expected.model.weights
    assert main([*base, "--passes", "3", "--quiet"]) == 2
    assert "holds a checkpoint" in capsys.readouterr().err
    assert main([*base, "--passes", "3", "--quiet", "--resume", "--model", model]) == 0
    assert StreamModel.load(model).trials == 3000
    assert main(["learn", *paths, "--cluster", address, "--quiet", "--model", model]) == 0  # with the default learner
    assert bits(StreamModel.load(model)) == bits(cluster.fit("auto", paths).model)
    for wrong, reason in [(["--holdout", "3"], "order of one stream"), (["--mix", "best"], "mix must be")]:
        assert main(["learn", paths[0], "--cluster", address, "--learner", "A-perceptron", *wrong]) == 2
        assert reason in capsys.readouterr().err
    assert main(["learn", "-", "--cluster", address]) == 2


def test_without_dask_one_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"pip install .*\[cluster\]"), cluster.connect("local:2"):
        pass


def test_addresses():
    for wrong in ("local:", "local:0", "local:two", "local:-1"):
        with pytest.raises(ValueError, match="cluster must be"), cluster.connect(wrong):
            pass


def test_shards_have_names():
    assert [shard.name for shard in shards_of(["a.svm", ["1 1:1"]])] == ["a.svm", "shard 1"]
    for wrong, error in [([], ValueError), (3, TypeError)]:
        with pytest.raises(error, match="shards must"):
            shards_of(wrong)


def test_fusions_of_votes_have_the_same_bits_on_workers(client):
    data = linmax.datasets.majority_problem(n=5, r=3, k=3, noise=0.1, trials=300, seed=1)
    parts = [(data.votes[begin : begin + 60], data.labels[begin : begin + 60]) for begin in range(0, 300, 60)]
    here, there = (cluster.fit(linmax.VoteFusion(), parts, client=where).model for where in (None, client))
    np.testing.assert_array_equal(here.predict_proba(data.votes), there.predict_proba(data.votes))
    assert there.report().online.trials == 300


def test_numbers_of_tables_are_votes_for_classes_given_as_text():
    data = linmax.datasets.majority_problem(n=4, r=2, k=3, noise=0.1, trials=120, seed=1)
    voters = {f"v{voter}": data.votes[:, voter] for voter in range(4)} | {"quiet": np.full(120, 9)}
    table = voters | {"label": data.labels}
    parts = [{name: cells[begin : begin + 40] for name, cells in table.items()} for begin in (0, 40, 80)]
    for classes in (None, [str(label) for label in range(3)]):
        found = cluster.fit(linmax.VoteFusion(classes=classes, abstain="9"), parts).model
        assert [str(label) for label in found.classes_] == ["0", "1", "2"]
        assert found.report().online.trials == 120
        assert found.report().online.mistakes < 40
