"""The file of predictions that ``linmax learn`` writes as it goes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, TYPE_CHECKING

from linmax.util.checks import about

if TYPE_CHECKING:
    import numpy as np

    from linmax.models.streams import Batch

__all__ = ["STANDARD", "Predictions"]

STANDARD = "-"


class Predictions:
    """The file of predictions: written beside its destination and moved there when it is complete."""

    def __init__(self, path: str, keep: int) -> None:
        from linmax.util.outputs import is_special

        self.path = path
        self.draft = Path(path).with_name(f"{Path(path).name}.part")
        self.passes_on = path == STANDARD or is_special(Path(path))  # a device or a pipe is not replaced by a file
        if path == STANDARD:
            self.file: IO[bytes] = os.fdopen(os.dup(1), "wb")
        elif self.passes_on:
            self.file = open(path, "wb")  # noqa: SIM115
        else:
            self.file = open(self.draft, "r+b" if keep else "wb")  # noqa: SIM115
            self.file.truncate(keep)
            self.file.seek(keep)

    def write(self, batch: Batch, predicted: np.ndarray) -> None:
        """Write one line for each row: the class, and the tag if there is one."""
        names = [*batch.classes, ""]
        if batch.tags is None:
            lines = [names[number] for number in predicted.tolist()]
        else:
            pairs = zip(predicted.tolist(), batch.tags, strict=True)
            lines = [f"{names[number]} {tag}" if tag else names[number] for number, tag in pairs]
        with about(self.path):
            self.file.write(("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))
            if self.passes_on:
                self.file.flush()  # somebody may be waiting for the answer

    def sync(self) -> int:
        """Flush everything to disk; returns the number of bytes."""
        with about(self.path):
            self.file.flush()
        if self.passes_on:
            return 0
        os.fsync(self.file.fileno())
        return self.file.tell()

    def close(self, keep: bool, part: bool = False) -> None:
        """Close; move the file to its destination if it is to be kept, unless it stays a part, to be continued."""
        try:
            with about(self.path):
                self.file.close()
            if not self.passes_on and keep and not part:
                self.draft.replace(self.path)
        finally:
            if not self.passes_on and not part:
                self.draft.unlink(missing_ok=True)
