"""Jobs spread over processes, with progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

from linmax.experiments.majority import MajorityRun, play

__all__ = ["JobPool", "Progress", "silent"]

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[str, int, int], None]  # stage, done, of how many


def silent(stage: str, done: int, total: int) -> None:
    pass


class JobPool:
    """Runs functions over lists of jobs, in this process or in several."""

    def __init__(self, jobs: int, progress: Progress) -> None:
        self.progress = progress
        self.pool = None
        progress("compiling", 0, 1)
        play(MajorityRun(0.05, 0, 2))  # compile once here, so that the processes find everything in the cache
        progress("compiling", 1, 1)
        if jobs > 1:
            self.pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))

    def __enter__(self) -> JobPool:
        return self

    def __exit__(self, *error: object) -> None:
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)

    def map(self, stage: str, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Apply the function to every item; results in order."""
        results: Iterable[Result] = map(function, items) if self.pool is None else self.pool.map(function, items)
        found: list[Result] = []
        self.progress(stage, 0, len(items))
        for result in results:
            found.append(result)
            self.progress(stage, len(found), len(items))
        return found
