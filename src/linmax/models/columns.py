"""Names of the columns of a model."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from linmax.data.arrays import Layout
from linmax.util import files

__all__ = ["Columns"]


@dataclass
class Columns:
    """Names of the columns, as far as they have any; others go by their numbers."""

    voters: Collection[Any] = ()
    raters: Collection[Any] = ()
    attributes: Collection[Any] = ()

    def all(self, layout: Layout) -> tuple[Collection[Any], Collection[Any], Collection[Any]]:
        """One name for each voter, rater and attribute."""
        counts = (layout.voters, layout.raters, layout.dense + layout.sparse)
        blocks = (self.voters, self.raters, self.attributes)
        voters, raters, attributes = (
            block if len(block) == count else [*block, *range(len(block), count)]
            for block, count in zip(blocks, counts, strict=True)
        )
        return voters, raters, attributes

    def plain(self) -> list[list[Any]]:
        """All names as JSON holds them; text, of which there may be a lot, stays as it is."""
        found = []
        for block in (self.voters, self.raters, self.attributes):
            names = list(block)
            found.append(names if set(map(type, names)) <= {str} else list(map(files.plain, names)))
        return found
