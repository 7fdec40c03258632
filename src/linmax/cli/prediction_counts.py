"""What ``linmax predict`` counts: lines, those answered, and mistakes where labels are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["PredictionCounts"]


@dataclass
class PredictionCounts:
    """Lines, those without an answer, and of the others those with a label and those answered wrongly."""

    lines: int = 0
    unanswered: int = 0
    labelled: int = 0
    mistakes: int = 0

    def add(self, labels: Sequence[str | None], predicted: Sequence[str]) -> None:
        """Count a batch; a label may be missing, and an answer that is empty is none.

        Examples
        --------
        >>> counts = PredictionCounts()
        >>> counts.add(["a", "b", None, "b"], ["a", "a", "a", ""])
        >>> counts.told()
        ['error 0.5000, 1 mistakes in 2 labels', '1 of 4 lines not answered']
        """
        for label, answer in zip(labels, predicted, strict=True):
            self.lines += 1
            self.unanswered += not answer
            if label is not None and answer:
                self.labelled += 1
                self.mistakes += label != answer

    @property
    def error(self) -> float | None:
        """The share of mistakes among answers with a label."""
        return self.mistakes / self.labelled if self.labelled else None

    def figures(self, reject: float | None) -> dict[str, float | None]:
        """The figures for programs; how many lines have no answer where a risk was given."""
        found = {"lines": self.lines, "labelled": self.labelled, "mistakes": self.mistakes, "error": self.error}
        return found if reject is None else found | {"unanswered": self.unanswered}

    def told(self) -> list[str]:
        """The figures in words."""
        found = []
        if self.labelled:
            found.append(f"error {self.error:.4f}, {self.mistakes:,} mistakes in {self.labelled:,} labels")
        if self.unanswered:
            found.append(f"{self.unanswered:,} of {self.lines:,} lines not answered")
        return found
