"""BLAS is held to one thread while something small is solved, in every thread and for every library."""

from __future__ import annotations

import os
import subprocess
import sys
from threading import Event, Thread

from threadpoolctl import threadpool_info

from linmax.util.blas import one_blas_thread

REFIT = """
import random, sys
from threadpoolctl import threadpool_info
import linmax
from linmax.learners import second_order as softmax_state

held = []
factored = softmax_state.factored
def watched(matrix):
    held.extend(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
    found = factored(matrix)
    held.extend(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
    return found
softmax_state.factored = watched

assert "scipy.linalg" not in sys.modules
chance, learner = random.Random(0), linmax.Learner("softmax")
for _ in range(12):
    learner.learn(votes={voter: chance.choice("xyz") for voter in "abcd"}, label=chance.choice("xyz"))
print(sorted(set(held)))
"""


def threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_refit_limits_threads_of_scipy_blas():
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", REFIT], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[1]"


def test_a_thread_that_is_done_does_not_free_another():
    with one_blas_thread():
        pass  # all libraries are loaded
    before, begun, freed, seen = threads(), Event(), Event(), []

    def other():
        begun.set()
        with one_blas_thread():
            freed.wait()  # the first one is done
            seen.extend(threads())

    second = Thread(target=other)
    with one_blas_thread():
        second.start()
        begun.wait()
        with one_blas_thread():
            assert threads() == {1}
        assert threads() == {1}
    freed.set()
    second.join()
    assert seen == [1]
    assert threads() == before
