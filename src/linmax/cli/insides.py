"""What a learner is made of, for people to read: its members, and what its pool took the attributes for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console

    from linmax.models.model import Model

__all__ = ["Inside", "in_words", "members_of", "print_members"]


class Inside(NamedTuple):
    """A member of a combination or a pool: its name, how far it is followed, and that in words."""

    name: str
    value: float
    told: str


def members_of(model: Model) -> list[Inside]:
    """What runs side by side: mistakes of a combination's members, or how far a pool follows each of its own.

    The pool for votes gives shares that sum to 1, the one for attributes factors of either sign.
    """
    from linmax.learners.votes.pool import RunningVotes

    found = [Inside(one.name, one.mistakes, f"{one.mistakes:,d} mistakes") for one in model.members]
    for node in model.engine.top.walk():
        for running in vars(node).values():
            if isinstance(running, RunningVotes):
                found += [Inside(name, share, f"{100.0 * share:.1f} %") for name, share in running.members.items()]
    members = [] if model.pool is None else model.pool.members()
    both = len({member.sparse for member in members}) > 1
    for member in members:
        kind = "" if not both else " (sparse)" if member.sparse else " (dense)"
        found.append(Inside(member.name + kind, member.weight, f"{member.weight:+.3f}"))
    return found


def print_members(screen: Console, members: Sequence[Inside]) -> None:
    """A line for each member, figures below each other."""
    if not members:
        return
    width = max(len(member.told) for member in members)
    screen.print("members:", markup=False)
    for member in members:
        screen.print(f"  {member.told:>{width}}  {member.name}", soft_wrap=True, markup=False)


def in_words(decided: Mapping[str, str | int | float]) -> str:
    """One sentence about what the pool for attributes decided (`linmax.learners.attributes.pool.decided`)."""
    reasons = []
    if "trials looked at" in decided:
        share, trials = 100.0 * float(decided["share not 0"]), int(decided["trials looked at"])
        first = f"first {trials:,} trials" if trials > 1 else "first trial"
        reasons.append(f"{share:.1f} % of them were not 0 in the {first}")
    if "columns of numbers" in decided:
        numbers, few = decided["columns of numbers"], decided["columns of few values"]
        reasons.append(f"columns of numbers: {numbers}, of few values: {few}")
    why = f" ({'; '.join(reasons)})" if reasons else ""
    return f"attributes are taken for {decided['attributes are']}, as {decided['decided by']} decided{why}"
