"""A cluster of several machines: separate networks and files, a machine that is cut off, lines that are slow."""

from __future__ import annotations

import hashlib
import json
import shutil

import numpy as np
import pytest
from machines import machines, why_not

from linmax import cluster

pytest.importorskip("distributed")
pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there can be machines")

DRIVER = """
import hashlib, json, sys, threading
from distributed import Client
from linmax import cluster

address, passes, *paths = sys.argv[1:]
done = threading.Event()

def watch_workers(client):
    there = 2
    while not done.wait(0.5):
        now = len(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.workers)))
        if now != there:
            there = now
            print(json.dumps({"workers": there}), flush=True)

with Client(address, timeout=180) as client:
    client.wait_for_workers(2, timeout=180)
    watcher = threading.Thread(target=watch_workers, args=(client,))
    watcher.start()
    def tell(progress):
        print(json.dumps([progress.number, progress.done]), flush=True)
    try:
        result = cluster.fit("A-perceptron", paths, client=client, passes=int(passes), watch=tell)
    finally:
        done.set()
        watcher.join()
    arrays = result.model.state()[1]
    digest = hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays))).hexdigest()
    print(json.dumps({"digest": digest}), flush=True)
"""
SHARDS = 6


def rows(seed: int, count: int) -> str:
    random, plane = np.random.default_rng(seed), np.random.default_rng(99).normal(size=(200, 4))
    lines = []
    for _ in range(count):
        index = np.sort(random.choice(200, 8, replace=False))
        x = random.random(8).round(3)
        pairs = " ".join(f"{i + 1}:{v}" for i, v in zip(index.tolist(), x.tolist(), strict=True))
        lines.append(f"{int(np.argmax(x @ plane[index]))} {pairs}")
    return "\n".join(lines) + "\n"


def digest_here(files: list[tuple[str, str]], passes: int) -> str:
    result = cluster.fit("A-perceptron", [content.splitlines() for _, content in files], passes=passes)
    arrays = result.model.state()[1]
    return hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays))).hexdigest()


def test_a_machine_that_is_cut_off_and_comes_back_changes_no_bit(tmp_path):
    """The driver has none of the files; one worker's machine loses the network in the midst of a pass."""
    files = [(f"part-{seed}.svm", rows(seed, 3000)) for seed in range(SHARDS)]
    passes = 12
    with machines(tmp_path, 2, files) as made:
        paths = [str(made.folder / name) for name, _ in files]
        driver = made.drive(DRIVER, str(passes), *paths)
        assert driver.stdout is not None
        cut, digest = 0, None
        for line in driver.stdout:
            told = json.loads(line)
            if isinstance(told, list):
                if told[0] >= 2 and not cut:
                    cut = 1
                    made.connect_line(1, up=False)
            elif "digest" in told:
                digest = told["digest"]
            elif cut == 1 and told["workers"] < 2:  # it has been given up
                cut = 2
                made.connect_line(1, up=True)
        ended = driver.wait(120)
        assert (ended, cut) == (0, 2), (made.files[0] / "errors").read_text()[-2000:]
    assert digest == digest_here(files, passes)


MISSING = """
import json, sys
from distributed import Client
from linmax import cluster

with Client(sys.argv[1], timeout=180) as client:
    try:
        cluster.fit("A-perceptron", sys.argv[2:], client=client)
    except cluster.ShardError as error:
        print(json.dumps(error.shards), flush=True)
"""


@pytest.mark.skipif(shutil.which("tc") is None, reason="needs tc")
def test_slow_lines_and_missing_file(tmp_path):
    files = [(f"part-{seed}.svm", rows(seed, 300)) for seed in range(SHARDS)]
    with machines(tmp_path, 2, files) as made:
        made.limit("20mbit")
        paths = [str(made.folder / name) for name, _ in files]
        out, _ = made.drive(DRIVER, "3", *paths).communicate(timeout=500)
        assert json.loads(out.splitlines()[-1])["digest"] == digest_here(files, 3)
        missing = str(made.folder / "part-7.svm")
        out, _ = made.drive(MISSING, paths[0], missing).communicate(timeout=500)
        assert list(json.loads(out)) == [missing]
