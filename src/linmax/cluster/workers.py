"""Where tasks run: in this process, or elsewhere (`linmax.cluster.dask_workers`).

A task depends on its arguments alone, so it may run anywhere, repeatedly, and in any order. Results stay where they
were made until they are asked for, and come back in the order in which the tasks were submitted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

__all__ = ["THIS_PROCESS", "Here", "TaskOutcome", "Workers", "here", "is_lazy", "message_of", "tell"]

THIS_PROCESS = "this process"


@dataclass(frozen=True)
class TaskOutcome:
    """What became of a task: its result, or why there is none."""

    result: Any = None
    error: str = ""


class Workers:
    """Somewhere for tasks to run."""

    count = 1

    def keep(self, value: Any) -> Any:
        """Prepare a value that many tasks will take as an argument."""
        raise NotImplementedError

    def hold(self, sources: Sequence[Any], often: bool = True) -> list[Any]:
        """Prepare the rows of shards, which many tasks will take if ``often``.

        Rows are sent once. Pieces of Dask collections are computed once, all of them together.
        """
        raise NotImplementedError

    def submit(
        self, function: Callable[..., Any], *arguments: Any, name: str, worker: int | None = None, again: bool = True
    ) -> Any:
        """Start a task, if possible on the worker of this number.

        Results of `keep`, `hold` and `submit` may be arguments, alone or in lists. With ``again`` it is tried once more
        by itself when it was one of several whose workers died, and its arguments are held until then.
        """
        raise NotImplementedError

    def fetch(self, task: Any) -> Any:
        """The result of one task, which goes on being held."""
        raise NotImplementedError

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """What a function returns, or raises, in each process that runs tasks, by their names."""
        return {THIS_PROCESS: function(*arguments)}

    @contextmanager
    def watching(self, topic: str, watch: Callable[[], None]) -> Iterator[None]:
        """Meanwhile ``watch`` is called whenever a task calls `tell` with this topic.

        It is called by one thread at a time, and no more once it has raised an error, which is raised at the end.
        """
        told = Watched(watch)
        with self._hearing(topic, told):
            yield
        if told.error is not None:
            raise told.error

    @contextmanager
    def _hearing(self, topic: str, watch: Callable[[], None]) -> Iterator[None]:
        """Meanwhile ``watch`` is called by tasks of this process."""
        _watchers[topic] = watch
        try:
            yield
        finally:
            del _watchers[topic]

    def abandon(self) -> None:
        """Nobody wants the results any more: they are forgotten, and what has not begun will not."""

    def gather(self, tasks: Sequence[Any], watch: Callable[[int], None] | None = None) -> list[TaskOutcome]:
        """Wait for all tasks; outcomes in their order. ``watch`` is called with the place of each that ends."""
        raise NotImplementedError


class Watched:
    """Somebody who is told of progress, whatever thread it comes from."""

    def __init__(self, watch: Callable[[], None]) -> None:
        self.watch, self.lock = watch, threading.Lock()
        self.error: Exception | None = None

    def __call__(self) -> None:
        with self.lock:
            if self.error is None:
                try:
                    self.watch()
                except Exception as error:
                    self.error = error


class HeldTask:
    """A task of this process: computed when it is first needed, and held."""

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        self.function, self.arguments = function, arguments
        self.outcome: TaskOutcome | None = None

    def __call__(self) -> Any:
        if self.outcome is None:
            try:
                self.outcome = TaskOutcome(self.function(*(_computed(argument) for argument in self.arguments)))
            except Exception as error:
                self.outcome = TaskOutcome(error=message_of(error))
            self.arguments = ()
        if self.outcome.error:
            raise RuntimeError(self.outcome.error)
        return self.outcome.result


class Here(Workers):
    """This process, one task after the other."""

    def keep(self, value: Any) -> Any:
        return value

    def hold(self, sources: Sequence[Any], often: bool = True) -> list[Any]:
        refuse_elsewhere(sources)
        lazy = [source for source in sources if is_lazy(source)] if often else []
        if not lazy:
            return list(sources)
        import dask

        try:
            found = iter(dask.compute(*lazy, scheduler="synchronous"))
        except Exception:  # to be met again with the piece that fails
            return list(sources)
        return [next(found) if is_lazy(source) else source for source in sources]

    def submit(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        name: str,  # noqa: ARG002
        worker: int | None = None,  # noqa: ARG002
        again: bool = True,  # noqa: ARG002
    ) -> Any:
        return HeldTask(function, arguments)

    def fetch(self, task: Any) -> Any:
        return _computed(task)

    def gather(self, tasks: Sequence[Any], watch: Callable[[int], None] | None = None) -> list[TaskOutcome]:
        found = []
        for place, task in enumerate(tasks):
            try:
                found.append(TaskOutcome(task()))
            except Exception as error:
                found.append(TaskOutcome(error=message_of(error)))
            if watch is not None:
                watch(place)
        return found


def _computed(argument: Any) -> Any:
    if isinstance(argument, HeldTask):
        return argument()
    if isinstance(argument, list) and any(isinstance(item, HeldTask) for item in argument):
        return [_computed(item) for item in argument]
    return argument.compute(scheduler="synchronous") if is_lazy(argument) else argument


def is_lazy(argument: Any) -> bool:
    """Whether this is a piece of a Dask collection."""
    return hasattr(argument, "__dask_graph__") and hasattr(argument, "compute")


def refuse_elsewhere(sources: Sequence[Any]) -> None:
    """Refuse futures of a Dask client, and pieces of collections that were persisted with one."""
    graphs: dict[int, tuple[Any, bool]] = {}  # all pieces of a collection have the same
    for place, source in enumerate(sources):
        held = _is_future(source)
        if is_lazy(source):
            graph = source.__dask_graph__()
            if id(graph) not in graphs:
                graphs[id(graph)] = graph, any(map(_is_future, dict(graph).values()))
            held = graphs[id(graph)][1] or source.key not in graph
        if held:
            raise ValueError(
                f"shard {place} is held by the workers of a Dask client; give this client, or compute the shard first"
            )


def _is_future(given: Any) -> bool:
    return type(given).__module__.startswith("distributed.") and hasattr(given, "key")


_watchers: dict[str, Callable[[], None]] = {}  # of tasks that run in this process


def tell(topic: str) -> None:
    """From within a task: something is done. Reaches who is `Workers.watching` here, or through Dask's scheduler."""
    watch = _watchers.get(topic)
    if watch is not None:
        watch()
        return
    with suppress(ImportError, ValueError):  # ValueError: this process is no worker
        from distributed import get_worker

        get_worker().log_event(topic, 1)


def here() -> str:
    """The address of the worker that runs this task."""
    with suppress(ImportError, ValueError):
        from distributed import get_worker

        return str(get_worker().address)
    return THIS_PROCESS


def message_of(error: BaseException) -> str:
    """What an error says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__
