"""Which path there is for an engine."""

from __future__ import annotations

from linmax.engine.engine import Engine
from linmax.engine.one_trial.numbers import NumbersPath, plays_numbers
from linmax.engine.one_trial.path import NamePlaces, OneTrialPath
from linmax.engine.one_trial.rules import RulesPath, has_path
from linmax.engine.record import Record
from linmax.jit.compiling import JIT
from linmax.learners.attributes.pool import RunningPool

__all__ = ["may_have_path", "path_for"]


def may_have_path(engine: Engine) -> bool:
    """Whether there can be a path, now or when the pool for attributes has seen enough."""
    return JIT and (has_path(engine) or pool_of(engine) is not None)


def pool_of(engine: Engine) -> RunningPool | None:
    """The pool for attributes that learns by itself, if the learner is one."""
    return None if engine.layout.voters else engine.top.weighing


def path_for(engine: Engine, names: NamePlaces, record: Record, count: int, largest: float) -> OneTrialPath | None:
    """A path for instances such as one of ``count`` attributes up to ``largest``; None if there is none yet."""
    longest, pool = max(32, 2 * count), pool_of(engine)
    if pool is None:
        return RulesPath(engine, names, record, longest, 2.0 * largest)
    return NumbersPath(engine, pool, names, record, longest) if plays_numbers(pool) else None
