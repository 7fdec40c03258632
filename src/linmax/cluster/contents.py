"""Fingerprints of rows in memory, by which they are known again when a run goes on from its checkpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from linmax.cluster.partitions import as_read

__all__ = ["content_of"]

BYTES = 16


def content_of(source: Any) -> list[str] | None:
    """A fingerprint of the rows of a shard: the same for the same values; None for what it cannot look into.

    Examples
    --------
    >>> content_of(["1 1:1", "2 2:1"]) == content_of(["1 1:1", "2 2:1"]), content_of(["1 1:1"]) == content_of(["1 1:2"])
    (True, False)
    """
    try:
        digest = hashlib.blake2b(digest_size=BYTES)
        for piece in _pieces(as_read(source)):
            digest.update(piece)
    except TypeError:
        return None
    return [digest.hexdigest()]


def _pieces(rows: Any) -> Iterable[bytes]:
    """What rows consist of, as bytes."""
    if hasattr(rows, "tocsr"):
        matrix = rows.tocsr()
        yield from (repr(matrix.shape).encode(), matrix.indptr.tobytes(), matrix.indices.tobytes())
        yield matrix.data.tobytes()
    elif hasattr(rows, "to_pandas"):  # of Arrow or polars
        yield from _pieces(rows.to_pandas())
    elif hasattr(rows, "columns") and hasattr(rows, "iloc"):
        import pandas as pd

        yield "\0".join(map(str, rows.columns)).encode()
        yield pd.util.hash_pandas_object(rows, index=False).to_numpy().tobytes()
    elif isinstance(rows, np.ndarray):
        yield from (repr(rows.shape).encode(), b"" if rows.dtype == object else np.ascontiguousarray(rows).tobytes())
        if rows.dtype == object:
            yield "\0".join(map(str, rows.ravel().tolist())).encode()
    elif isinstance(rows, Mapping):
        for name, cells in rows.items():
            yield from (str(name).encode(), *_pieces(np.asarray(cells)))
    elif isinstance(rows, (str, bytes)):
        yield (rows.encode() if isinstance(rows, str) else rows) + b"\n"
    elif isinstance(rows, (list, tuple)):
        for one in rows:
            yield from _pieces(one)
    else:
        yield from _pieces(np.asarray(rows)) if hasattr(rows, "__array__") else _refused(rows)


def _refused(rows: Any) -> Iterable[bytes]:
    raise TypeError(f"rows of the type {type(rows).__name__}")
