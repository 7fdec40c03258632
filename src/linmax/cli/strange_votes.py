"""Votes in a table that are no class as they stand: matched with one, or counted and left out, and said so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from linmax.cli.fusion_table import Columns, counted, some

__all__ = ["VOTES_SHOWN", "are_ids", "leave_out", "match", "never_a_class", "of_strange_votes"]

VOTES_SHOWN = 3


def match(voters: Columns, classes: Sequence[Any]) -> list[str]:
    """Replace votes that are a label written otherwise, such as 1.0 for 1; returns what to say about it."""
    from linmax.data.matching import written

    meant = {written(name): name for name in reversed(list(classes))}
    known = set(classes)
    told: dict[str, list[str]] = {}
    for name, votes in voters.items():
        found = {vote for vote in set(votes) - known - {None} if written(vote) in meant}
        if found:
            voters[name] = [meant[written(vote)] if vote in found else vote for vote in votes]
            vote = min(found, key=str)
            told.setdefault(f"{vote!r} is taken for the label {meant[written(vote)]!r}", []).append(name)
    return [f"{some(names)}: {what}." for what, names in told.items()]


def never_a_class(voters: Columns, known: Collection[Any]) -> list[str]:
    """Columns with votes of which none names a class."""
    spoken = {name: set(votes) - {None} for name, votes in voters.items()}
    return [name for name, votes in spoken.items() if votes and votes.isdisjoint(known)]


def are_ids(votes: Sequence[Any], known: Collection[Any]) -> bool:
    """Whether a column has another value in every row, most of them never a label."""
    from linmax.data.matching import ROWS_OF_IDS

    if len(votes) < ROWS_OF_IDS or len(known) > len(votes) / 2 or len(set(votes)) < len(votes):
        return False
    return sum(vote not in known for vote in votes) > len(votes) / 2


def leave_out(voters: Columns, known: Collection[Any]) -> Counter[Any]:
    """Replace votes that name no class by abstentions; returns how often each was there."""
    found: Counter[Any] = Counter()
    for name, votes in voters.items():
        found.update(vote for vote in votes if vote is not None and vote not in known)
        voters[name] = [vote if vote in known else None for vote in votes]
    return found


def of_strange_votes(outside: Counter[Any], known: Collection[Any], what: str) -> list[str]:
    """What to say of votes that name no class, and of those among them that nearly do."""
    count = outside.total()
    if not count:
        return []
    named = ", ".join(f"{vote!r} ({often:,d})" for vote, often in outside.most_common(VOTES_SHOWN))
    named += ", ..." * (len(outside) > VOTES_SHOWN)
    end = "it counts as an abstention" if count == 1 else "they count as abstentions"
    name = "names" if count == 1 else "name"
    return [f"{counted(count, 'vote')} {name} something that is {what}, {named}; {end}.", *_nearly(outside, known)]


def _nearly(outside: Counter[Any], known: Collection[Any]) -> list[str]:
    """What to say of votes that differ from a class in case or punctuation only."""
    from linmax.data.matching import near_misses

    near = near_misses(outside, known)
    if not near:
        return []
    count = sum(outside[vote] for vote in near)
    vote = max(near, key=lambda one: outside[one])
    be, them = ("is", "it counts") if count == 1 else ("are", "they count")
    return [
        f"{count:,d} of these {be} a class but for case or punctuation, such as {vote!r} for {near[vote]!r}; written "
        f"like the labels, {them} as votes."
    ]
