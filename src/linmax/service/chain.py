"""A running hash over the events of a model: what it holds follows from the log's identity and every event before.

The hash of an event is BLAKE2b, 16 bytes, of the hash before it, the JSON array ``[seq, kind, at, id, refers, votes,
scores, served, label]``, and the bytes of *places* and *numbers* (see `linmax.service.log_file`). The first one
follows from the log's identity and the model's description. So a state that carries the hash of its last event
belongs to one history and to no other, and a damaged event is found.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from linmax.service.packing import Label

__all__ = ["HASH_BYTES", "first_hash", "name_hash", "next_hash"]

HASH_BYTES = 16
_encode = msgspec.json.Encoder().encode


def first_hash(identity: str, number: int, name: str, description: str, created: int) -> bytes:
    """The hash of a model before its first event.

    Examples
    --------
    >>> first_hash("log", 1, "spam", "{}", 0) == first_hash("log", 2, "spam", "{}", 0)
    False
    """
    return blake2b(_encode([identity, number, name, description, created]), digest_size=HASH_BYTES).digest()


def next_hash(before: bytes, fields: tuple[Any, ...], places: bytes | None, numbers: bytes | None) -> bytes:
    """The hash after an event; `fields` are those of the JSON array."""
    found = blake2b(before, digest_size=HASH_BYTES)
    found.update(_encode(fields))
    if places is not None:
        found.update(places)
    if numbers is not None:
        found.update(numbers)
    return found.digest()


def name_hash(kind: int, number: int, name: Label) -> int:
    """What a name adds, by exclusive or, to the sum over all names of a model."""
    return int.from_bytes(blake2b(_encode([kind, number, name]), digest_size=HASH_BYTES).digest(), "big")
