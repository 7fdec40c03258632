"""Lines and rows that could not be read, counted by reason."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["REFUSALS_KEPT", "Refusals"]

REFUSALS_KEPT = 20  # refused lines that are remembered


@dataclass
class Refusals:
    """Lines that could not be read: how many for each reason, and the first of them.

    Attributes
    ----------
    counts : dict from str to int
        How many lines for each reason.
    first : list
        The first of them: file, line and reason.

    See Also
    --------
    linmax.stream : counts them in ``refusals``.

    Examples
    --------
    >>> Refusals().counts
    {}
    """

    counts: dict[str, int] = field(default_factory=dict)
    first: list[tuple[str, int, str]] = field(default_factory=list)  # file, line, reason

    @property
    def total(self) -> int:
        """How many."""
        return sum(self.counts.values())

    def add(self, file: str, line: int, reason: str, told: str | None = None) -> None:
        """Count one; ``told`` is the reason with what was given in the line."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        if len(self.first) < REFUSALS_KEPT:
            self.first.append((file, line, told or reason))

    def join(self, other: Refusals) -> None:
        """Count those of another file, too."""
        for reason, count in other.counts.items():
            self.counts[reason] = self.counts.get(reason, 0) + count
        self.first = [*self.first, *other.first][:REFUSALS_KEPT]

    def copy(self) -> Refusals:
        """As it is now."""
        return Refusals(dict(self.counts), list(self.first))
