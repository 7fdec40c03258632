"""Compile kernels beforehand, on all processors, so that first uses need not wait.

Compiled code is cached on this machine. Without LEARNER, everything is
compiled; with it, only what these learners need for votes and for attributes.

  linmax warm
  linmax warm auto AR-perceptron
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmax.cli.options import JSON_OPTION
from linmax.cli.output import console, counted, say

if TYPE_CHECKING:
    from linmax.jit.compiling import Kernel

__all__ = ["OPTIONS", "Task", "in_parallel", "kernel_tasks", "kernels", "learner_tasks", "run"]

PROCESSES = 8  # at most: each needs some 200 MB
Task = Callable[[], object]


OPTIONS = f"""
LEARNER*  such as auto or 'AR-winnow(1.2)' (default: all)
{JSON_OPTION}
"""


def run(arguments: argparse.Namespace) -> None:
    """Compile, and report how long it took."""
    from linmax.engine.notation import parse
    from linmax.jit.compiling import CHECKED, JIT
    from linmax.util import outputs

    outputs.check_outputs([arguments.json], [])
    for learner in arguments.learner:
        parse(learner)  # raises now for a name that is unknown
    if not JIT or CHECKED:
        raise ValueError("nothing is cached with NUMBA_DISABLE_JIT or NUMBA_BOUNDSCHECK set; unset them")
    begin, before = time.perf_counter(), len(missing_kernels())
    in_parallel(learner_tasks(arguments.learner) if arguments.learner else kernel_tasks())
    figures = {"compiled": before - len(missing_kernels()), "seconds": time.perf_counter() - begin}
    say(console(arguments), f"{counted(int(figures['compiled']), 'kernel')} compiled in {figures['seconds']:.1f} s")
    if arguments.json:
        outputs.write_json(figures, arguments.json)


def kernels() -> Iterator[Kernel]:
    """Yield the kernels of the package that can be called from outside."""
    import pkgutil
    from importlib import import_module

    import linmax
    from linmax.jit.compiling import Kernel

    seen: set[int] = set()
    for info in pkgutil.walk_packages(linmax.__path__, "linmax."):
        if info.name.startswith(("linmax.cli", "linmax.service", "linmax.cluster", "linmax.river")):
            continue  # these have no kernels, and may lack what they import
        for value in vars(import_module(info.name)).values():
            if isinstance(value, Kernel) and value.signature is not None and id(value) not in seen:
                seen.add(id(value))
                yield value


def missing_kernels() -> list[Kernel]:
    """Return the kernels that the cache lacks."""
    from linmax.jit.caching import is_kept

    return [kernel for kernel in kernels() if not is_kept(kernel.dispatcher)]


def kernel_tasks() -> list[Task]:
    """Return tasks that compile what the cache lacks, one for each file, those that depend on most others first."""
    from linmax.jit.caching import sources_of

    found: dict[Path, list[Kernel]] = {}
    for kernel in missing_kernels():
        found.setdefault(Path(kernel.py_func.__code__.co_filename), []).append(kernel)
    order = sorted(found, key=lambda file: len(sources_of(file)), reverse=True)
    return [partial(_compile, found[file]) for file in order]


def _compile(found: Sequence[Kernel]) -> None:
    for kernel in found:
        _ = kernel.compiled


def learner_tasks(learners: Sequence[str]) -> list[Task]:
    """Return tasks that use each learner on a few votes, numbers and words; what it cannot learn from is left out."""
    votes = [{"a": "xyz"[t % 3], "b": "xyz"[t % 2], "c": "z"} for t in range(40)]
    rows = [{"u": 0.1 * t, "v": 1.0 + t % 7} for t in range(400)]
    words = [{f"w{t % 50}": 1.0, f"v{t % 3}": 1.0} for t in range(400)]
    instances = (("votes", votes), ("attributes", rows), ("attributes", words))
    return [partial(_use, learner, name, given) for learner in learners for name, given in instances]


def _use(learner: str, name: str, given: Sequence[Any]) -> None:
    from linmax.models.online import Learner

    model = Learner(learner)
    for t, instance in enumerate(given):
        model.learn(**{name: instance}, label="xyz"[t % 3])
    model.predict_proba(**{name: given[0]})


_tasks: list[Task] = []  # that forked processes inherit


def in_parallel(tasks: Sequence[Task]) -> None:
    """Run tasks in as many processes as there are processors.

    Errors in one task do not stop the others: the function that could not be compiled says why when it is used.
    """
    count = min(PROCESSES, processors(), len(tasks))
    if sys.platform != "linux" or threading.active_count() > 1 or count < 2:  # forks copy no threads
        for task in tasks:
            with suppress(Exception):
                task()
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()  # others inherit what the compiler loads at first
    cpu_target.target_context.refresh()
    _tasks[:] = tasks
    pool = ProcessPoolExecutor(count, get_context("fork"))
    try:
        for done in [pool.submit(_run_task, place) for place in range(len(tasks))]:
            with suppress(Exception):
                done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _run_task(place: int) -> None:
    _tasks[place]()


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
